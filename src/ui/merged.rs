//! Lists of several repositories as one: sections under the same heading become one, and each row keeps its repository.

use super::ask::text_of;
use provost_view::{Block, Cell, Empty, Line, Row, Shown};

/// A row and its repository.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Item {
    pub repository: usize,
    pub row: Row,
}

/// Rows under one heading.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Section {
    pub title: String,
    pub columns: Vec<&'static str>,
    pub items: Vec<Item>,
    /// The number of rows that are left out after those.
    pub more: usize,
    pub empty: Empty,
    /// Whether its heading has the number of rows.
    counts: bool,
}

impl Section {
    /// Returns the heading, with the number of rows where it had one.
    pub(crate) fn heading(&self) -> String {
        match self.counts {
            true => format!("{} ({})", self.title, self.items.len() + self.more),
            false => self.title.clone(),
        }
    }
}

/// A list over all repositories.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Merged {
    pub notices: Vec<(usize, Line)>,
    pub sections: Vec<Section>,
}

/// Returns the moment that sorts two rows of different repositories.
fn place(item: &Item) -> Option<&str> {
    item.row.cells.iter().find_map(|cell| match cell {
        Cell::Until { at, .. } => Some(at.as_str()),
        _ => None,
    })
}

fn moment(item: &Item) -> &str {
    item.row.cells.iter().find(|it| matches!(it, Cell::Time { .. })).map_or("", text_of)
}

impl Merged {
    /// Merges the lists of these repositories, in their order.
    pub(crate) fn of<'a>(lists: impl Iterator<Item = (usize, &'a Shown)>) -> Self {
        let mut merged = Self::default();
        for (repository, shown) in lists {
            for block in &shown.blocks {
                match block {
                    Block::Notice(line) => merged.notices.push((repository, line.clone())),
                    Block::List(rows) => {
                        let (title, counts) = without_count(&rows.title);
                        let section = merged.section(title, counts, &rows.columns, &rows.empty);
                        section.widen(&rows.columns);
                        let rows_in_it =
                            rows.rows.iter().map(|row| section.in_columns(&rows.columns, row.clone()));
                        let items: Vec<Item> = rows_in_it.map(|row| Item { repository, row }).collect();
                        section.items.extend(items);
                        section.more += rows.more;
                        // The newest event over all repositories.
                        let newest =
                            [section.empty.last.take(), rows.empty.last.clone()].into_iter().flatten();
                        section.empty.last = newest.max_by(|a, b| a.1.cmp(&b.1));
                    }
                    _ => {}
                }
            }
        }
        for section in &mut merged.sections {
            section.in_order();
        }
        merged
    }

    fn section(
        &mut self,
        title: &str,
        counts: bool,
        columns: &[&'static str],
        empty: &Empty,
    ) -> &mut Section {
        let at = match self.sections.iter().position(|it| it.title == title) {
            Some(at) => at,
            None => {
                self.sections.push(Section {
                    title: title.to_owned(),
                    columns: columns.to_vec(),
                    items: Vec::new(),
                    more: 0,
                    empty: empty.clone(),
                    counts,
                });
                self.sections.len() - 1
            }
        };
        &mut self.sections[at]
    }

    /// Returns all rows, in the order in which they are drawn.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.sections.iter().flat_map(|it| &it.items)
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.sections.iter().map(|it| it.items.len()).sum()
    }

    pub(crate) fn item(&self, at: usize) -> Option<&Item> {
        self.items().nth(at)
    }
}

impl Section {
    /// Takes over the columns that only another repository's list has: agents have a host only where there are several hosts.
    fn widen(&mut self, columns: &[&'static str]) {
        for (at, name) in columns.iter().enumerate() {
            if self.columns.contains(name) {
                continue;
            }
            // Its neighbour on the left is there: it was before, or has just been taken over.
            let left = columns[..at].last().and_then(|left| self.columns.iter().position(|it| it == left));
            let place = left.map_or(0, |left| left + 1);
            self.columns.insert(place, name);
            for item in &mut self.items {
                let place = place.min(item.row.cells.len());
                item.row.cells.insert(place, Cell::None);
            }
        }
    }

    /// Returns a row of a list with these columns in the columns of this section, which has all of them.
    fn in_columns(&self, columns: &[&'static str], mut row: Row) -> Row {
        if self.columns != columns {
            let mut of_list: Vec<_> = columns.iter().zip(row.cells).collect();
            let cell = |name: &&'static str| {
                let at = of_list.iter().position(|(it, _)| *it == name);
                at.map_or(Cell::None, |at| of_list.swap_remove(at).1)
            };
            row.cells = self.columns.iter().map(cell).collect();
        }
        row
    }

    /// Sorts the rows. Within a repository `view` has decided the order; over all repositories, approvals that wait
    /// are sorted by their end, and events and messages by their time.
    fn in_order(&mut self) {
        match self.title.as_str() {
            "Waiting for your word" => {
                self.items.sort_by(|a, b| {
                    let key = |it| place(it).map_or((true, ""), |at| (false, at));
                    key(a).cmp(&key(b))
                });
            }
            "Newest first" => self.items.sort_by(|a, b| moment(b).cmp(moment(a))),
            "Waiting, longest first" => self.items.sort_by(|a, b| moment(a).cmp(moment(b))),
            _ => {}
        }
    }
}

/// Returns a heading without the number of rows behind it, and whether it had one.
fn without_count(title: &str) -> (&str, bool) {
    let counted = title.strip_suffix(')').and_then(|it| it.rsplit_once(" ("));
    match counted {
        Some((title, count)) if !count.is_empty() && count.bytes().all(|it| it.is_ascii_digit()) => {
            (title, true)
        }
        _ => (title, false),
    }
}
