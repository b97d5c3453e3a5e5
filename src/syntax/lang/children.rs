//! The direct children of a node, by their kinds.
#![forbid(unsafe_code)]

use tree_sitter::Node;

use super::super::walk::Walk;

/// A kind of node in a dialect.
pub(super) trait Numbered: Copy + PartialEq + 'static {
    /// The kind with a number, from 1.
    fn numbered(number: u8) -> Option<Self>;
}

/// The first child of some kinds, directly within a node.
pub(super) fn child_of<'t, K: Numbered>(walk: &Walk<'_>, node: Node<'t>, kinds: &[K]) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .find(|child| K::numbered(walk.kind_of(*child)).is_some_and(|it| kinds.contains(&it)))
}

/// The children of a kind, directly within a node.
pub(super) fn children_of<'t, K: Numbered>(walk: &Walk<'_>, node: Node<'t>, kind: K) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| K::numbered(walk.kind_of(*child)) == Some(kind)).collect()
}
