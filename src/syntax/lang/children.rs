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

/// A node with more within it than this is remembered until one of about its size or more is asked, so that the many small nodes
/// within it do not make it forgotten.
const WIDE: u32 = 64;

/// How many sizes of wide nodes there are: each is twice the one before.
const SIZES: usize = u32::BITS as usize;

/// The kinds of what is directly within the nodes that were asked last: a dialect asks a definition for one part after the other,
/// most of which it does not have.
#[derive(Default)]
pub(in super::super) struct Inside {
    slots: RefCell<[Slot; REMEMBERED]>,
    wide: RefCell<[Slot; SIZES]>,
}

#[derive(Default)]
struct Slot {
    /// The node; no node has the number 0.
    id: usize,
    /// The kinds of the named nodes in it, each with the place of its first one, in order.
    firsts: Vec<(u8, u32)>,
}

impl Slot {
    /// Looks at what is within a node. A declaration may have hundreds of thousands of names and is asked for each of them, so that
    /// no answer may look at all of them again.
    fn fill(&mut self, walk: &Walk<'_>, node: Node<'_>) {
        self.id = node.id();
        self.firsts.clear();
        let mut known = [false; 1 << u8::BITS];
        for (at, child) in (0..).zip(Within::of(node).filter(Node::is_named)) {
            let kind = walk.kind_of(child);
            if !std::mem::replace(&mut known[usize::from(kind)], true) {
                self.firsts.push((kind, at));
            }
        }
    }
}

impl Inside {
    /// The place among the named nodes within a node of the first one of a kind that counts.
    fn first(&self, walk: &Walk<'_>, node: Node<'_>, counts: impl Fn(u8) -> bool) -> Option<u32> {
        let (count, mut slots, mut wide) =
            (node.child_count(), self.slots.borrow_mut(), self.wide.borrow_mut());
        // Nodes lie some words apart.
        let slot = match count.checked_ilog2() {
            Some(size) if count > WIDE => &mut wide[size as usize],
            _ => &mut slots[(node.id() >> 3) % REMEMBERED],
        };
        if slot.id != node.id() {
            slot.fill(walk, node);
        }
        slot.firsts.iter().find(|(kind, _)| counts(*kind)).map(|(_, at)| *at)
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
