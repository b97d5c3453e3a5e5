//! The direct children of a node, by their kinds.
#![forbid(unsafe_code)]

use std::cell::RefCell;

use tree_sitter::Node;

use super::super::walk::Walk;
use super::super::within::Within;

/// A kind of node in a dialect.
pub(super) trait Numbered: Copy + PartialEq + 'static {
    /// The kind with a number, from 1.
    fn numbered(number: u8) -> Option<Self>;
}

/// How many nodes are remembered at once.
const REMEMBERED: usize = 16;

/// The kinds of what is directly within the nodes that were asked last: a dialect asks a definition for one part after the other,
/// most of which it does not have.
#[derive(Default)]
pub(in super::super) struct Inside {
    slots: RefCell<[Slot; REMEMBERED]>,
}

#[derive(Default)]
struct Slot {
    /// The node; no node has the number 0.
    id: usize,
    /// The kinds of the named nodes in it, in order.
    kinds: Vec<u8>,
}

impl Inside {
    /// The place among the named nodes within a node of the first one of a kind that counts.
    fn first(&self, walk: &Walk<'_>, node: Node<'_>, counts: impl Fn(u8) -> bool) -> Option<u32> {
        // Nodes lie some words apart.
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[(node.id() >> 3) % REMEMBERED];
        if slot.id != node.id() {
            slot.id = node.id();
            slot.kinds.clear();
            let named = Within::of(node).filter(Node::is_named);
            slot.kinds.extend(named.map(|child| walk.kind_of(child)));
        }
        slot.kinds.iter().position(|kind| counts(*kind)).and_then(|at| u32::try_from(at).ok())
    }
}

/// The first child of some kinds, directly within a node.
pub(super) fn child_of<'t, K: Numbered>(walk: &Walk<'_>, node: Node<'t>, kinds: &[K]) -> Option<Node<'t>> {
    let counts = |kind| K::numbered(kind).is_some_and(|it| kinds.contains(&it));
    walk.inside.first(walk, node, counts).and_then(|at| node.named_child(at))
}

/// The children of a kind, directly within a node.
pub(super) fn children_of<'t, K: Numbered>(walk: &Walk<'_>, node: Node<'t>, kind: K) -> Vec<Node<'t>> {
    if walk.inside.first(walk, node, |it| K::numbered(it) == Some(kind)).is_none() {
        return Vec::new();
    }
    Within::of(node)
        .filter(|child| child.is_named() && K::numbered(walk.kind_of(*child)) == Some(kind))
        .collect()
}
