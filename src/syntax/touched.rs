//! What an edit touches: the symbols whose text differs before and after it, each as far inside as the change
//! lies.
//!
//! To a symbol belong the rest of its lines (`export`, a semicolon) and the comments and attributes directly
//! above it, so that a new function with its comment touches nothing but itself. Of what contains others, and
//! of the file, only what lies outside of these counts, without empty lines.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use provost_base::encloses;

use super::Reading;

/// A file's code and its bytes.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// The symbols.
    pub reading: &'a Reading,
    /// The bytes that were read.
    pub bytes: &'a [u8],
}

/// The paths of the symbols that an edit touches; an empty path stands for the file, where a part of the change lies
/// outside of all symbols, or where it cannot be told. Nothing where both versions say the same.
pub fn touched(old: Version<'_>, new: Version<'_>) -> Vec<Box<str>> {
    if old.bytes == new.bytes {
        return Vec::new();
    }
    if !old.reading.is_whole() || !new.reading.is_whole() {
        return vec![around_the_change(old, new)];
    }
    let (before, after) = (owned(old), owned(new));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let differs: Vec<&str> = names.into_iter().filter(|it| before.get(it) != after.get(it)).collect();
    // A change beside the symbols, such as an import, says nothing about those within the file.
    let is_inner = |name: &&str| differs.iter().any(|it| !it.is_empty() && encloses(it, name));
    let outermost = differs.iter().filter(|it| !is_inner(it)).map(|it| (*it).into());
    outermost.collect()
}

/// Whether a symbol has changed its place among those beside it, though its text may be the same. Of two that
/// have changed places, both have.
pub fn has_moved(old: &Reading, new: &Reading, name: &str) -> bool {
    let around = name.rsplit_once('.').map_or("", |(around, _)| around);
    let (before, after) = (siblings(old, around), siblings(new, around));
    let before: Vec<&str> = before.into_iter().filter(|it| siblings_has(&after, it)).collect();
    let after: Vec<&str> = after.into_iter().filter(|it| siblings_has(&before, it)).collect();
    if before == after || !before.contains(&name) {
        return false;
    }
    let without =
        |list: &[&'_ str]| list.iter().copied().filter(|it| *it != name).map(String::from).collect();
    let (rest_before, rest_after): (Vec<String>, Vec<String>) = (without(&before), without(&after));
    let all = in_common(&before, &after);
    // What can be left out of the longest order in common is what an edit may have moved.
    all.is_none() || all == in_common(&rest_before, &rest_after)
}

fn siblings_has(list: &[&str], name: &str) -> bool {
    list.contains(&name)
}

/// The symbols directly within a name, each once, in the order of the file.
fn siblings<'a>(reading: &'a Reading, around: &str) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let is_beside = |path: &str| path.rsplit_once('.').map_or("", |(it, _)| it) == around;
    let paths = reading.symbols.iter().map(|it| &*it.path).filter(|it| is_beside(it));
    paths.filter(|it| seen.insert(*it)).collect()
}

/// Symbols beside each other of which the order is compared.
const COMPARED_MAX: usize = 2_000;

/// The length of the longest order that two lists have in common; `None` where they are too long to be compared.
fn in_common<T: PartialEq>(a: &[T], b: &[T]) -> Option<usize> {
    if a.len().max(b.len()) > COMPARED_MAX {
        return None;
    }
    let mut row = vec![0; b.len() + 1];
    for one in a {
        let mut corner = 0;
        for (at, other) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if one == other { corner + 1 } else { above.max(row[at]) };
            corner = above;
        }
    }
    row.last().copied()
}

/// The text that is each symbol's own, under its path; the file's under an empty one.
fn owned<'a>(version: Version<'a>) -> BTreeMap<&'a str, Vec<u8>> {
    let (ranges, children) = places(version);
    let mut found: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let file = 0..version.bytes.len();
    found.insert("", outside_of(version.bytes, &file, children.last().map_or(&[], Vec::as_slice), &ranges));
    for (at, symbol) in version.reading.symbols.iter().enumerate() {
        let text = match children[at].as_slice() {
            [] => version.bytes.get(ranges[at].clone()).unwrap_or_default().to_vec(),
            inner => outside_of(version.bytes, &ranges[at], inner, &ranges),
        };
        let all = found.entry(&symbol.path).or_default();
        all.push(0);
        all.extend(text);
    }
    found
}

/// For each symbol the range that belongs to it, and the numbers of those directly within it; those of the
/// file come last.
fn places(version: Version<'_>) -> (Vec<Range<usize>>, Vec<Vec<usize>>) {
    let symbols = &version.reading.symbols;
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); symbols.len() + 1];
    for (at, symbol) in symbols.iter().enumerate() {
        let parent = symbol.parent.map_or(symbols.len(), |it| it as usize);
        children[parent].push(at);
    }
    let plain = |at: usize| symbols[at].range.start as usize..symbols[at].range.end as usize;
    let mut ranges: Vec<Range<usize>> = (0..symbols.len()).map(plain).collect();
    for (parent, inner) in children.iter().enumerate() {
        let bounds = if parent < symbols.len() { plain(parent) } else { 0..version.bytes.len() };
        let mut from = bounds.start;
        for (nth, at) in inner.iter().enumerate() {
            let next = inner.get(nth + 1).map_or(bounds.end, |it| plain(*it).start);
            ranges[*at] = with_its_lines(version.bytes, plain(*at), from..next);
            from = ranges[*at].end;
        }
    }
    (ranges, children)
}

/// A range with the rest of its lines, and the comments and attributes directly above it, within bounds.
fn with_its_lines(bytes: &[u8], range: Range<usize>, bounds: Range<usize>) -> Range<usize> {
    let line_start = |at: usize| bytes[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let mut start = range.start.min(bytes.len());
    let line = line_start(start);
    if line >= bounds.start {
        start = line;
        while start > bounds.start {
            let above = line_start(start - 1);
            if above < bounds.start || !is_note(&bytes[above..start]) {
                break;
            }
            start = above;
        }
    }
    let end = range.end.min(bytes.len());
    let line = bytes[end..].iter().position(|it| *it == b'\n').map_or(bytes.len(), |it| end + it);
    start..if line <= bounds.end { line } else { end }
}

/// Whether a line is a comment or an attribute of what follows it.
fn is_note(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    const MARKS: [&[u8]; 5] = [b"//", b"/*", b"*", b"# ", b"@"];
    line == b"#" || MARKS.iter().any(|it| line.starts_with(it))
}

/// A range without those of some symbols, and without empty lines.
fn outside_of(bytes: &[u8], range: &Range<usize>, inner: &[usize], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut from = range.start;
    for at in inner {
        text.extend_from_slice(bytes.get(from..ranges[*at].start).unwrap_or_default());
        from = from.max(ranges[*at].end);
    }
    text.extend_from_slice(bytes.get(from..range.end).unwrap_or_default());
    let lines = text.split(|it| *it == b'\n').map(<[u8]>::trim_ascii_end).filter(|it| !it.is_empty());
    lines.collect::<Vec<_>>().join(&b'\n')
}

/// The innermost symbol of the version that was read as a whole in which everything that differs lies.
fn around_the_change(old: Version<'_>, new: Version<'_>) -> Box<str> {
    let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let before = same(old.bytes, new.bytes);
    let backwards = |it: &[u8]| it[before..].iter().rev().copied().collect::<Vec<u8>>();
    let after = same(&backwards(old.bytes), &backwards(new.bytes));
    let whole = [old, new].into_iter().find(|it| it.reading.is_whole());
    let Some(version) = whole else { return "".into() };
    let change = before..version.bytes.len() - after;
    let (ranges, _) = places(version);
    let is_around = |at: &usize| ranges[*at].start <= change.start && change.end <= ranges[*at].end;
    let innermost = (0..ranges.len()).filter(is_around).min_by_key(|at| ranges[*at].len());
    innermost.map_or("".into(), |at| version.reading.symbols[at].path.clone())
}
