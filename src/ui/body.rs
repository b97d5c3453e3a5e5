//! The lines of a list. Drawing and clicks use them, so that both find the same row.

use super::merged::Item;
use super::model::ListState;
use provost_view::Cell;

/// A line of a list, with the section or notice that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListLine {
    Notice(usize),
    Heading(usize),
    Columns(usize),
    /// The folder or file at this depth that the next rows are in, where it differs from that of the row before.
    Under(usize, usize),
    /// The section, and the index of the row in the whole list.
    Item(usize, usize),
    Empty(usize),
    /// The command that makes the first row.
    EmptyCommand(usize),
    More(usize),
    Blank,
}

/// Returns the lines of a list.
pub(crate) fn list_lines(list: &ListState) -> Vec<ListLine> {
    let mut lines: Vec<ListLine> = (0..list.merged.notices.len()).map(ListLine::Notice).collect();
    let mut item = 0;
    for (n, section) in list.merged.sections.iter().enumerate() {
        if !lines.is_empty() {
            lines.push(ListLine::Blank);
        }
        lines.push(ListLine::Heading(n));
        if section.items.is_empty() {
            lines.push(ListLine::Empty(n));
            if section.empty.command.is_some() {
                lines.push(ListLine::EmptyCommand(n));
            }
            continue;
        }
        lines.push(ListLine::Columns(n));
        let mut before: &[String] = &[];
        for one in &section.items {
            let under = under(one);
            let same = before.iter().zip(under).take_while(|(a, b)| a == b).count();
            lines.extend((same..under.len()).map(|depth| ListLine::Under(item, depth)));
            lines.push(ListLine::Item(n, item));
            before = under;
            item += 1;
        }
        if section.more > 0 {
            lines.push(ListLine::More(n));
        }
    }
    lines
}

/// Returns the folders and files that contain a row, the outermost first, where its list is a tree.
pub(crate) fn under(item: &Item) -> &[String] {
    let places = item.row.cells.iter();
    places
        .into_iter()
        .find_map(|it| if let Cell::Place { under, .. } = it { Some(&under[..]) } else { None })
        .unwrap_or(&[])
}

/// Returns the first line that is drawn: the chosen row is in sight, and in the middle where lines follow on both sides.
pub(crate) fn list_offset(lines: &[ListLine], chosen: usize, rows: usize) -> usize {
    let at = lines.iter().position(|it| matches!(it, ListLine::Item(_, item) if *item == chosen));
    let last = lines.len().saturating_sub(rows);
    at.unwrap_or(0).saturating_sub(rows / 2).min(last)
}

/// The width down to which a column may shrink before the last column is left out.
const NARROWEST: usize = 10;

/// Returns the widths of columns that fit beside each other, from their wanted widths, with two spaces between. Where
/// not all of them fit, the last ones are left out: the detail shows them.
pub(crate) fn fitted(wanted: &[usize], columns: usize) -> Vec<usize> {
    let mut count = wanted.len();
    let least = |count: usize| {
        let narrow = wanted[..count].iter().map(|it| (*it).min(NARROWEST));
        narrow.sum::<usize>() + 2 * count.saturating_sub(1)
    };
    while count > 1 && least(count) > columns {
        count -= 1;
    }
    let mut widths = wanted[..count].to_vec();
    let room = columns.saturating_sub(2 * count.saturating_sub(1));
    // The widest column shrinks first: it loses the least.
    loop {
        let total: usize = widths.iter().sum();
        let Some(widest) = widths.iter().copied().max().filter(|it| total > room && *it > 0) else { break };
        let second = widths.iter().copied().filter(|it| *it < widest).max().unwrap_or(0);
        let many = widths.iter().filter(|it| **it == widest).count();
        let over = total - room;
        let less = over.div_ceil(many).min(widest - second).max(1);
        for it in widths.iter_mut().filter(|it| **it == widest) {
            *it -= less.min(*it);
        }
    }
    widths
}
