//! The difference between two contents of a file in git's format, and the merge of two changes.
//!
//! Contents are bytes, and lines end with a line feed; other bytes have no meaning here.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Instant;

use provost_base::visible;
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// One content of a file; `None` when there is no file.
pub type Side<'a> = Option<&'a [u8]>;

/// The effort for a difference.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Until this moment the shortest difference is looked for; a later one may be longer.
    pub until: Instant,
    /// The most bytes of the difference's text; of a longer one only the lines are counted.
    pub bytes: usize,
}

/// A difference, with its numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    /// The text in git's form.
    pub text: String,
    /// The number of added lines.
    pub added: u64,
    /// The number of removed lines.
    pub removed: u64,
    /// How much of the difference the text shows.
    pub extent: Extent,
}

/// How much of a difference its text shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Extent {
    /// The whole difference: `git apply` turns one side into the other.
    #[default]
    Whole,
    /// Only that the bytes, which are no text, differ.
    Binary,
    /// Only the number of the lines, since the text would be too long.
    Counted,
}

/// Returns the difference in git's form.
pub fn unified(path: &str, mode: Option<u32>, old: Side<'_>, new: Side<'_>, budget: Budget) -> String {
    difference(path, mode, old, new, budget).text
}

/// Returns the difference, with the numbers of its lines.
pub fn difference(path: &str, mode: Option<u32>, old: Side<'_>, new: Side<'_>, budget: Budget) -> Difference {
    let (a, b) = (name("a/", path), name("b/", path));
    let mut text = format!("diff --git {a} {b}\n");
    let executable = mode.is_some_and(|it| it & 0o100 != 0);
    let mode = if executable { "100755" } else { "100644" };
    let word = match (old, new) {
        (None, _) => format!("new file mode {mode}\n"),
        (_, None) => format!("deleted file mode {mode}\n"),
        _ => String::new(),
    };
    text.push_str(&word);
    let (old_bytes, new_bytes) = (old.unwrap_or_default(), new.unwrap_or_default());
    let ends = (old.map_or("/dev/null".to_owned(), |_| a), new.map_or("/dev/null".to_owned(), |_| b));
    if is_binary(old_bytes) || is_binary(new_bytes) {
        text.push_str(&format!("Binary files {} and {} differ\n", ends.0, ends.1));
        return Difference { text, extent: Extent::Binary, ..Difference::default() };
    }
    if old_bytes.is_empty() && new_bytes.is_empty() {
        // Git makes or removes an empty file only if the patch has this line.
        const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let zero = "0".repeat(EMPTY.len());
        let (from, to) = if old.is_none() { (&*zero, EMPTY) } else { (EMPTY, &*zero) };
        text.push_str(&format!("index {from}..{to}\n"));
        return Difference { text, ..Difference::default() };
    }
    let tab = if path.contains(' ') { "\t" } else { "" };
    let end = |it: &str| if it == "/dev/null" { String::new() } else { tab.to_owned() };
    let _ = write!(text, "--- {}{}\n+++ {}{}\n", ends.0, end(&ends.0), ends.1, end(&ends.1));
    let (old, new) = (lines(old_bytes), lines(new_bytes));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(budget.until));
    let (removed, added) = count(&ops);
    let (head, mut extent) = (text.len(), Extent::Whole);
    for hunk in group_diff_ops(ops, CONTEXT) {
        put_hunk(&mut text, &hunk, &old, &new);
        if text.len() > budget.bytes {
            text.truncate(head);
            let _ = writeln!(
                text,
                "The diff is too long to be shown: {removed} lines are removed, {added} added."
            );
            extent = Extent::Counted;
            break;
        }
    }
    Difference { text, added, removed, extent }
}

/// Counts removed and added lines; none if a content is no text. After the given moment, the numbers may be too large, and never too small.
pub fn lines_changed(old: &[u8], new: &[u8], until: Instant) -> (u64, u64) {
    if is_binary(old) || is_binary(new) {
        return (0, 0);
    }
    count(&capture_diff_slices_deadline(Algorithm::Myers, &lines(old), &lines(new), Some(until)))
}

/// Adds the change of the file's mode in git's form; `alone` if the mode is the only change.
pub fn with_mode(text: String, (old, new): (Option<u32>, Option<u32>), alone: bool) -> String {
    let word = |mode: u32| if mode & 0o100 != 0 { "100755" } else { "100644" };
    let Some((old, new)) = old.zip(new).map(|(old, new)| (word(old), word(new))) else { return text };
    let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
    match (old == new, alone) {
        (true, _) => text,
        (false, true) => format!("{head}\nold mode {old}\nnew mode {new}\n"),
        (false, false) => format!("{head}\nold mode {old}\nnew mode {new}\n{rest}"),
    }
}

/// Counts removed and added lines.
fn count(ops: &[DiffOp]) -> (u64, u64) {
    let (mut gone, mut come) = (0, 0);
    for op in ops {
        let (tag, old, new) = op.as_tag_tuple();
        if tag != DiffTag::Equal {
            (gone, come) = (gone + old.len() as u64, come + new.len() as u64);
        }
    }
    (gone, come)
}

fn put_hunk(text: &mut String, hunk: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
    let old_range = first.old_range().start..last.old_range().end;
    let new_range = first.new_range().start..last.new_range().end;
    let _ = writeln!(text, "@@ -{} +{} @@", numbers(&old_range), numbers(&new_range));
    for op in hunk {
        let (tag, from, to) = op.as_tag_tuple();
        match tag {
            DiffTag::Equal => put_lines(text, ChangeTag::Equal, &old[from]),
            _ => {
                put_lines(text, ChangeTag::Delete, &old[from]);
                put_lines(text, ChangeTag::Insert, &new[to]);
            }
        }
    }
}

/// Returns a range of lines in git's form, counted from one; an empty range names the line before it.
fn numbers(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn put_lines(text: &mut String, tag: ChangeTag, lines: &[&[u8]]) {
    let sign = match tag {
        ChangeTag::Equal => ' ',
        ChangeTag::Delete => '-',
        ChangeTag::Insert => '+',
    };
    for line in lines {
        text.push(sign);
        text.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Returns a name as git writes it: in quotation marks if it contains one, or an invisible character. The bytes of such a character
/// are octal numbers, which git reads and a terminal does not act upon.
fn name(side: &str, path: &str) -> String {
    let hides = |c: char| {
        let mut bytes = [0; 4];
        let text = c.encode_utf8(&mut bytes);
        c.is_control() || *visible(text) != *text
    };
    if !path.contains(|c| c == '"' || hides(c)) {
        return format!("{side}{path}");
    }
    let mut quoted = format!("\"{side}");
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if hides(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a String never fails.
                    let _ = write!(quoted, "\\{byte:03o}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Checks whether a content is no text.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|it| *it == b'\n').collect()
}

/// One change: lines of the base, and the lines of the other side that replace them.
#[derive(Clone, Debug)]
struct Hunk {
    base: Range<usize>,
    side: Range<usize>,
}

fn hunks(base: &[&[u8]], side: &[&[u8]], until: Instant) -> Vec<Hunk> {
    let ops = capture_diff_slices_deadline(Algorithm::Myers, base, side, Some(until));
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in &ops {
        let (tag, base, side) = op.as_tag_tuple();
        match hunks.last_mut() {
            _ if tag == DiffTag::Equal => {}
            Some(last) if last.base.end == base.start && last.side.end == side.start => {
                (last.base.end, last.side.end) = (base.end, side.end);
            }
            _ => hunks.push(Hunk { base, side }),
        }
    }
    hunks
}

/// Merges both changes of a base into one content. `None` if they differ and concern the same lines, or
/// lines that touch.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8], until: Instant) -> Option<Vec<u8>> {
    if [base, ours, theirs].into_iter().any(is_binary) {
        return None;
    }
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let (a, b) = (hunks(&base, &ours, until), hunks(&base, &theirs, until));
    let (mut a, mut b) = (a.as_slice(), b.as_slice());
    let (mut merged, mut at) = (Vec::new(), 0);
    while let Some(start) = [a.first(), b.first()].into_iter().flatten().map(|it| it.base.start).min() {
        let mut end = start;
        let (mut of_a, mut of_b) = (0, 0);
        // A region is a group of changes that touch each other.
        loop {
            let next =
                |hunks: &[Hunk], taken: usize| hunks.get(taken).filter(|it| it.base.start <= end).cloned();
            match (next(a, of_a), next(b, of_b)) {
                (Some(hunk), _) => (of_a, end) = (of_a + 1, end.max(hunk.base.end)),
                (None, Some(hunk)) => (of_b, end) = (of_b + 1, end.max(hunk.base.end)),
                (None, None) => break,
            }
        }
        merged.extend_from_slice(&base[at..start]);
        let mine = &ours[span(&a[..of_a], &(start..end))];
        let other = &theirs[span(&b[..of_b], &(start..end))];
        match (of_a, of_b) {
            (_, 0) => merged.extend_from_slice(mine),
            (0, _) => merged.extend_from_slice(other),
            _ if mine == other => merged.extend_from_slice(mine),
            _ => return None,
        }
        (a, b, at) = (&a[of_a..], &b[of_b..], end);
    }
    merged.extend_from_slice(&base[at..]);
    Some(merged.concat())
}

/// Returns the lines of a side that correspond to a region of the base, given the side's changes in it.
fn span(hunks: &[Hunk], region: &Range<usize>) -> Range<usize> {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return 0..0 };
    let start = first.side.start - (first.base.start - region.start);
    start..last.side.end + (region.end - last.base.end)
}
