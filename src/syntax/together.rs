//! Names that are declared together, such as `a, b = f()` or `const { a, b } = f()`: the declaration belongs to each of them.

use std::ops::Range;

use super::Kind;
use super::reading::Together;
use super::touched::Version;

/// What the symbols of one declaration share: all before the first name, with the comments above.
pub(super) fn shared(group: &Together, ranges: &[Range<usize>]) -> Range<usize> {
    let first = group.symbols.first().and_then(|at| ranges.get(*at as usize));
    first.map_or(0, |it| it.start)..group.shared_to as usize
}

/// Gives each of such names among the symbols `inner`, which stand beside each other in this order, the range of the whole
/// declaration. `around` is the range of what is around them.
pub(super) fn share(
    version: Version<'_>,
    inner: &[usize],
    around: Range<usize>,
    ranges: &mut [Range<usize>],
) {
    let Range { start, end } = around;
    let symbols = &version.reading.symbols;
    let plain = |at: usize| symbols[at].range.start as usize..symbols[at].range.end as usize;
    // Of a name that is declared alone the range is its declaration's.
    let is_bare = |at: usize| {
        let may_be = match symbols[at].kind {
            Kind::Variable => true,
            Kind::Field => version.reading.language.has_bare_fields(),
            _ => false,
        };
        may_be && plain(at).len() == symbols[at].name().len()
    };
    let mut from = 0;
    while from < inner.len() {
        let behind = from.checked_sub(1).map_or(start, |at| ranges[inner[at]].end);
        let mut to = from + 1;
        if is_bare(inner[from]) {
            let goes_on = |to: usize| {
                let between = plain(inner[to - 1]).end..plain(inner[to]).start;
                is_bare(inner[to]) && is_list(version.bytes.get(between).unwrap_or_default())
            };
            while to < inner.len() && goes_on(to) {
                to += 1;
            }
            let bound = inner.get(to).map_or(end, |at| ranges[*at].start);
            let start = opening(version.bytes, behind, ranges[inner[from]].start, plain(inner[from]).start);
            let all = start..closing(version.bytes, start, ranges[inner[to - 1]].end, bound);
            for at in &inner[from..to] {
                ranges[*at] = all.clone();
            }
        }
        from = to;
    }
}

/// Whether what is between two names is between two of a list. A list goes on behind a line that ends with a comma or within
/// brackets.
fn is_list(between: &[u8]) -> bool {
    let (mut depth, mut last, mut has_comma, mut at) = (0_i32, b' ', false, 0);
    while let Some(byte) = between.get(at) {
        match byte {
            b';' => return false,
            b'\n' if depth <= 0 && !matches!(last, b',' | b'(' | b'[' | b'{' | b'\\') => return false,
            b'#' => {
                at += between[at..].iter().take_while(|it| **it != b'\n').count();
                continue;
            }
            b'/' if between.get(at + 1) == Some(&b'/') => {
                at += between[at..].iter().take_while(|it| **it != b'\n').count();
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' => has_comma = true,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = *byte;
        }
        at += 1;
    }
    has_comma
}

/// Where the line begins on which the bracket of a pattern opens that `name` is in, as in `const {` of several lines; `start`, the
/// line of the name, where there is none behind `behind`.
fn opening(bytes: &[u8], behind: usize, start: usize, name: usize) -> usize {
    let before = bytes.get(behind..name).unwrap_or_default();
    let Some(at) = before.iter().rposition(|it| matches!(it, b'{' | b'[' | b'(')) else { return start };
    // `var (` of Go holds declarations, and is no pattern.
    let is_around = before[at] == b'('
        && before[at + 1..].contains(&b'\n')
        && [&b"var"[..], b"const"].iter().any(|word| before[..at].trim_ascii_end().ends_with(word));
    if is_around {
        return start;
    }
    // Between the bracket and the name are other parts of the pattern alone.
    let mut parts = before[at + 1..].split(u8::is_ascii_whitespace).filter(|it| !it.is_empty());
    if !parts.all(|it| it.ends_with(b",") || it.ends_with(b":") || it == b"...") {
        return start;
    }
    start.min(behind + before[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1))
}

/// The end of the line at or behind `end` at which all brackets since `start` are closed; `bound` at the latest, and never before
/// `end`.
fn closing(bytes: &[u8], start: usize, end: usize, bound: usize) -> usize {
    let bound = bound.min(bytes.len()).max(end);
    let mut open = 0_i32;
    for (at, byte) in bytes.iter().enumerate().take(bound).skip(start) {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            // The construct around the names ends.
            b')' | b']' | b'}' if open <= 0 && at >= end => return at,
            b')' | b']' | b'}' => open -= 1,
            b'\n' if at >= end && open <= 0 => return at,
            _ => {}
        }
    }
    bound
}
