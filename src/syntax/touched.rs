//! The symbols that an edit touches: those whose text differs before and after it, each as far inside as the change
//! lies.
//!
//! A symbol includes the rest of its lines (`export`, a semicolon), except a part that belongs to the construct around it, and the
//! comments and attributes directly above it, so that a new function with its comment touches only itself. For a symbol that
//! contains others, and for the file, only the text outside of these counts, without empty lines.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use provost_base::Digest;

use super::reading::{Together, offset};
use super::{Language, Reading, together};

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
        return around_the_change(old, new);
    }
    let (before, after) = (owned(old), owned(new));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let differs: BTreeSet<&str> = names.into_iter().filter(|it| before.get(it) != after.get(it)).collect();
    // A change beside the symbols, such as an import, says nothing about those within the file.
    let is_inner =
        |name: &str| name.match_indices('.').any(|(at, _)| at > 0 && differs.contains(&name[..at]));
    let outermost = differs.iter().filter(|it| !is_inner(it)).map(|it| (*it).into());
    outermost.collect()
}

/// The symbols that have moved among their neighbours. The orders of an edit are compared once, for all queries about
/// single symbols.
pub struct Moves<'a> {
    old: &'a Reading,
    new: &'a Reading,
    /// By the name of the symbol around them; `None` if none has moved.
    orders: BTreeMap<Box<str>, Option<Orders<'a>>>,
}

/// The orders before and after an edit, of the symbols that both versions have.
struct Orders<'a> {
    before: Vec<&'a str>,
    after: Vec<&'a str>,
    /// The length of the longest order in common.
    in_common: usize,
}

impl<'a> Moves<'a> {
    /// Of an edit, by what it reads before and after.
    pub fn of(old: &'a Reading, new: &'a Reading) -> Self {
        Self { old, new, orders: BTreeMap::new() }
    }

    /// Whether a symbol has changed its place, though its text may be the same. Of two that have changed places, both have.
    pub fn has(&mut self, name: &str) -> bool {
        let around = name.rsplit_once('.').map_or("", |(around, _)| around);
        let (old, new) = (self.old, self.new);
        let found = self.orders.entry(around.into()).or_insert_with(|| orders(old, new, around));
        let Some(Orders { before, after, in_common: longest }) = found else { return false };
        // An edit may have moved a name that the longest common order does not need.
        before.contains(&name) && *longest == in_common(before, after, Some(name))
    }
}

/// The orders before and after of what is in both, where they differ.
fn orders<'a>(old: &'a Reading, new: &'a Reading, around: &str) -> Option<Orders<'a>> {
    let (mut before, mut after) = (siblings(old, around), siblings(new, around));
    let (had, has): (BTreeSet<&str>, BTreeSet<&str>) =
        (before.iter().copied().collect(), after.iter().copied().collect());
    before.retain(|it| has.contains(it));
    after.retain(|it| had.contains(it));
    if before == after {
        return None;
    }
    let in_common = in_common(&before, &after, None);
    Some(Orders { before, after, in_common })
}

/// The symbols directly within a name, each once, in the order of the file.
fn siblings<'a>(reading: &'a Reading, around: &str) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let is_beside = |path: &str| path.rsplit_once('.').map_or("", |(it, _)| it) == around;
    let paths = reading.symbols.iter().map(|it| &*it.path).filter(|it| is_beside(it));
    paths.filter(|it| seen.insert(*it)).collect()
}

/// The length of the longest order that two orders of the same names have in common, with one of the names left out.
fn in_common(before: &[&str], after: &[&str], without: Option<&str>) -> usize {
    let places: BTreeMap<&str, usize> = after.iter().enumerate().map(|(at, it)| (*it, at)).collect();
    // The least end that an order of each length can have so far.
    let mut ends: Vec<usize> = Vec::new();
    for name in before.iter().filter(|it| Some(**it) != without) {
        let Some(at) = places.get(name) else { continue };
        let longer_than = ends.partition_point(|end| end < at);
        match ends.get_mut(longer_than) {
            Some(end) => *end = *at,
            None => ends.push(*at),
        }
    }
    ends.len()
}

/// The text that is each symbol's own, under its path, or its digest; the file's text under an empty path.
fn owned<'a>(version: Version<'a>) -> BTreeMap<&'a str, Vec<u8>> {
    let (ranges, children) = places(version);
    // Thousands of names may share the text of one declaration, which is read once.
    let mut digests: BTreeMap<(usize, usize), Digest> = BTreeMap::new();
    let mut digest = |range: Range<usize>| {
        let read = || Digest::of(version.bytes.get(range.clone()).unwrap_or_default());
        *digests.entry((range.start, range.end)).or_insert_with(read)
    };
    let mut found: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let file = 0..version.bytes.len();
    found.insert("", outside_of(version.bytes, &file, children.last().map_or(&[], Vec::as_slice), &ranges));
    for (at, symbol) in version.reading.symbols.iter().enumerate() {
        let text = match children[at].as_slice() {
            [] => digest(ranges[at].clone()).as_bytes().to_vec(),
            inner => outside_of(version.bytes, &ranges[at], inner, &ranges),
        };
        let all = found.entry(&symbol.path).or_default();
        all.push(0);
        all.extend(text);
    }
    for group in &version.reading.together {
        let shared = digest(together::shared(group, &ranges));
        for at in group.symbols.iter().skip(1) {
            let all = found.entry(&version.reading.symbols[*at as usize].path).or_default();
            all.push(1);
            all.extend_from_slice(shared.as_bytes());
        }
    }
    found
}

/// For each symbol the range that belongs to it, and the numbers of those directly within it; those of the
/// file come last.
fn places(version: Version<'_>) -> (Vec<Range<usize>>, Vec<Vec<usize>>) {
    let symbols = &version.reading.symbols;
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); symbols.len() + 1];
    for (at, symbol) in symbols.iter().enumerate() {
        // A symbol that is assigned to another symbol from outside, as with `S.a = function …`, has its name and stands elsewhere.
        let mut parent = symbol.parent;
        while let Some(around) = parent.map(|it| &symbols[it as usize])
            && (symbol.range.start < around.range.start || around.range.end < symbol.range.end)
        {
            parent = around.parent;
        }
        children[parent.map_or(symbols.len(), |it| it as usize)].push(at);
    }
    let plain = |at: usize| symbols[at].range.start as usize..symbols[at].range.end as usize;
    // A name may be recorded before the type that is defined before it: `typedef struct point { … } point_t`.
    children.iter_mut().for_each(|inner| inner.sort_by_key(|at| (plain(*at).start, *at)));
    let mut ranges: Vec<Range<usize>> = (0..symbols.len()).map(plain).collect();
    for (parent, inner) in children.iter().enumerate() {
        let bounds = if parent < symbols.len() { plain(parent) } else { 0..version.bytes.len() };
        let (mut from, mut outer) = (bounds.start, 0..0);
        for (nth, at) in inner.iter().enumerate() {
            let own = plain(*at);
            let is_behind = |start: &usize| *start >= own.end;
            let next = inner[nth + 1..].iter().map(|it| plain(*it).start).find(is_behind);
            let next = next.unwrap_or(bounds.end);
            // A symbol within a sibling shares its lines with the sibling: a property among the parameters of a constructor.
            if outer.start < own.start && own.end < outer.end {
                ranges[*at] = own;
                continue;
            }
            outer = own.clone();
            ranges[*at] = with_its_lines(version, own, from..next);
            from = ranges[*at].end;
        }
        together::share(version, inner, bounds, &mut ranges);
    }
    (ranges, children)
}

/// A range with the rest of its lines, and the comments and attributes directly above it, within bounds. The text before a bracket that
/// opens before the range on its line, and behind one that closes there, belongs to the construct around:
/// `class Point(val x: Int) : Shape()`.
fn with_its_lines(version: Version<'_>, range: Range<usize>, bounds: Range<usize>) -> Range<usize> {
    let bytes = version.bytes;
    let line_start = |at: usize| bytes[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let mut start = range.start.min(bytes.len());
    // Only the text within the bounds is searched, so that a file of one line costs no more than its length.
    let before = bytes.get(bounds.start..start).unwrap_or_default();
    let is_at_line = bounds.start == 0 || bytes.get(bounds.start - 1) == Some(&b'\n');
    let line = before.iter().rposition(|it| *it == b'\n').map(|it| bounds.start + it + 1);
    let line = line.or((is_at_line && bounds.start <= start).then_some(bounds.start));
    if let Some(line) = line.filter(|line| brackets(&bytes[*line..start]).1 == 0) {
        start = line;
        while start > bounds.start {
            let above = line_start(start - 1);
            let line = &bytes[above..start];
            let language = version.reading.language;
            let block = || {
                let is_above = !line.trim_ascii().is_empty();
                let begin = is_above.then(|| comment_that_ends(language, &bytes[bounds.start..start]))?;
                begin.map(|it| bounds.start + it)
            };
            let Some(begin) = (if is_note(language, line) { Some(above) } else { block() }) else { break };
            if begin < bounds.start {
                break;
            }
            start = begin;
        }
    }
    let end = range.end.min(bytes.len());
    let last = bounds.end.min(bytes.len()).max(end);
    let rest = &bytes[end..last];
    let ends_line = last == bytes.len() || bytes[last] == b'\n';
    let line = rest.iter().position(|it| *it == b'\n').map(|it| end + it).or(ends_line.then_some(last));
    start..line.filter(|line| brackets(&bytes[end..*line]).0 == 0).unwrap_or(end)
}

/// Counts the brackets that a part of a line closes and that open before it, and those that it opens and that close behind it, up to a
/// comment.
fn brackets(text: &[u8]) -> (usize, usize) {
    let (mut closed, mut open) = (0, 0_usize);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' if open > 0 => open -= 1,
            b')' | b']' | b'}' => closed += 1,
            b'/' if matches!(text.get(at + 1), Some(b'/' | b'*')) => break,
            b'#' if at > 0 && text[at - 1] == b' ' => break,
            _ => {}
        }
    }
    (closed, open)
}

/// Whether a line is a comment or an attribute of what follows it, and nothing else.
fn is_note(language: Language, line: &[u8]) -> bool {
    let line = line.trim_ascii();
    match line {
        [b'/', b'/' | b'*', b'!', ..] if has_inner_docs(language) => false,
        [b'/', b'/', ..] => true,
        [b'/', b'*', inside @ ..] => {
            let end = inside.windows(2).position(|it| it == b"*/");
            end.is_none_or(|end| is_nothing_or_remark(&inside[end + 2..]))
        }
        [b'#', b'[', inside @ ..] => {
            let mut depth = 1_usize;
            let end = inside.iter().position(|byte| {
                match byte {
                    b'[' => depth += 1,
                    b']' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let rest = end.map_or(&[][..], |end| inside[end + 1..].trim_ascii());
            is_nothing_or_remark(rest) || is_note(language, rest)
        }
        [b'#', rest @ ..] => language.hash_remarks() && !rest.starts_with(b"!"),
        // The construct around may follow the attribute: `@Entity class Point {`. An import has its own: `@testable import Shop`.
        [b'@', ..] => {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
            language.at_attributes() && brackets(line).1 == 0 && !words.any(|it| it == b"import")
        }
        _ => false,
    }
}

/// Whether a comment that begins with `//!` or `/*!` is about what is around it, and not about what follows it.
fn has_inner_docs(language: Language) -> bool {
    language == Language::Rust
}

fn is_nothing_or_remark(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.is_empty() || text.starts_with(b"//")
}

/// Where the line begins on which a comment of several lines begins that ends at the end of a text, on lines of its own.
fn comment_that_ends(language: Language, text: &[u8]) -> Option<usize> {
    let text = text.trim_ascii_end();
    if language == Language::Ruby {
        let inside = text.strip_suffix(b"\n=end")?;
        let begin = inside.windows(7).rposition(|it| it == b"\n=begin").map(|it| it + 1);
        return begin.or(inside.starts_with(b"=begin").then_some(0));
    }
    let inside = text.strip_suffix(b"*/")?;
    let begin = inside.windows(2).rposition(|it| it == b"/*")?;
    if has_inner_docs(language) && inside[begin..].starts_with(b"/*!") {
        return None;
    }
    let line = inside[..begin].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    inside[line..begin].iter().all(u8::is_ascii_whitespace).then_some(line)
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

/// The innermost symbol in which everything that differs lies, in the version that was read as a whole; of names that are declared
/// together, each. Where neither was, the symbol of both.
fn around_the_change(old: Version<'_>, new: Version<'_>) -> Vec<Box<str>> {
    let same = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let before = same(old.bytes, new.bytes);
    let backwards = |it: &[u8]| it[before..].iter().rev().copied().collect::<Vec<u8>>();
    let after = same(&backwards(old.bytes), &backwards(new.bytes));
    let around = |version: Version<'_>| innermost(version, before..version.bytes.len() - after);
    if let Some(version) = [old, new].into_iter().find(|it| it.reading.is_whole()) {
        return around(version);
    }
    // What two readings agree on, though neither is whole, is no error of a parse.
    let (in_old, in_new) = (around(old), around(new));
    if in_old == in_new { in_old } else { vec!["".into()] }
}

/// The innermost symbol of a version in which a change lies; of names that are declared together, each.
fn innermost(version: Version<'_>, change: Range<usize>) -> Vec<Box<str>> {
    let (ranges, _) = places(version);
    let is_around = |at: &usize| ranges[*at].start <= change.start && change.end <= ranges[*at].end;
    let Some(innermost) = (0..ranges.len()).filter(is_around).min_by_key(|at| ranges[*at].len()) else {
        return vec!["".into()];
    };
    let shares = |group: &&Together| {
        let shared = together::shared(group, &ranges);
        group.symbols.contains(&offset(innermost)) && shared.start <= change.start && change.end <= shared.end
    };
    let path = |at: usize| version.reading.symbols[at].path.clone();
    if let Some(group) = version.reading.together.iter().find(shares) {
        return group.symbols.iter().map(|at| path(*at as usize)).collect();
    }
    (0..ranges.len()).filter(|at| ranges[*at] == ranges[innermost]).map(path).collect()
}
