//! Names that are declared together, such as `a, b = f()` or `const { a, b } = f()`: the declaration belongs to each of them.

use std::ops::Range;

use super::Kind;
use super::touched::Version;

/// Gives each of such names among the symbols `inner`, which stand beside each other in this order, the range of the whole
/// declaration. `end` is where what is around them ends.
pub(super) fn share(version: Version<'_>, inner: &[usize], end: usize, ranges: &mut [Range<usize>]) {
    let symbols = &version.reading.symbols;
    let plain = |at: usize| symbols[at].range.start as usize..symbols[at].range.end as usize;
    // Of a name that is declared alone the range is its declaration's.
    let is_bare =
        |at: usize| symbols[at].kind == Kind::Variable && plain(at).len() == symbols[at].name().len();
    let mut from = 0;
    while from < inner.len() {
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
            let start = ranges[inner[from]].start;
            let all = start..closing(version.bytes, start, ranges[inner[to - 1]].end, bound);
            for at in &inner[from..to] {
                ranges[*at] = all.clone();
            }
        }
        from = to;
    }
}

/// Whether what is between two names is between two of a list.
fn is_list(between: &[u8]) -> bool {
    between.contains(&b',') && !between.contains(&b';')
}

/// The end of the line at or behind `end` at which all brackets since `start` are closed; `bound` at the latest, and never before
/// `end`.
fn closing(bytes: &[u8], start: usize, end: usize, bound: usize) -> usize {
    let bound = bound.min(bytes.len()).max(end);
    let mut open = 0_i32;
    for (at, byte) in bytes.iter().enumerate().take(bound).skip(start) {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open -= 1,
            b'\n' if at >= end && open <= 0 => return at,
            _ => {}
        }
    }
    bound
}
