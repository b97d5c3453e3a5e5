//! Comments and attributes that belong to the symbol directly below them, in languages in which any comment may.

use tree_sitter::Node;

use super::super::walk::Walk;

/// How many lines end between two places; more than one leave an empty line between.
fn ends(walk: &Walk<'_>, from: usize, to: usize) -> usize {
    let between = walk.source.get(from..to).unwrap_or_default();
    between.iter().filter(|it| **it == b'\n').count()
}

/// Remembers a comment on lines of its own; one behind code belongs to that code.
pub(super) fn comment(walk: &mut Walk<'_>, node: Node<'_>) {
    let before = walk.source.get(..node.start_byte()).unwrap_or_default();
    let line = before.iter().rposition(|it| *it == b'\n').map_or(0, |at| at + 1);
    if !before[line..].iter().all(u8::is_ascii_whitespace) {
        return;
    }
    let end = walk.decorators.as_ref().map(|it| it.end);
    // A grammar may count the end of the line to the comment.
    if end.is_some_and(|end| ends(walk, end, node.start_byte()) > 1) {
        walk.decorators = None;
    }
    walk.attribute(node, true);
}

/// What begins here has the comments directly above it, and no others. It may stand some levels deeper than they do, where a word
/// before it begins at the same place as it: `private def f`.
pub(super) fn end_at(walk: &mut Walk<'_>, at: usize, levels: usize) {
    let depth = walk.above.len();
    if let Some(known) = walk.decorators.as_mut().filter(|it| it.depth + levels == depth) {
        known.depth = depth;
    }
    walk.attributes_end(at);
    let end = walk.decorators.as_ref().map(|it| it.end);
    if end.is_some_and(|end| ends(walk, end, at) > 1) {
        walk.decorators = None;
    }
}
