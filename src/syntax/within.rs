//! The nodes directly within a node, one after the other.

use tree_sitter::{Node, TreeCursor};

/// Up to so many, counting from the first one to each costs less than a cursor, which remembers the way to the top.
const FEW: u32 = 8;

/// The nodes directly within a node, in order.
pub(super) struct Within<'t> {
    node: Node<'t>,
    /// The place of the next one.
    next: u32,
    count: u32,
    /// At the next one; none where there are few.
    cursor: Option<TreeCursor<'t>>,
}

impl<'t> Within<'t> {
    pub(super) fn of(node: Node<'t>) -> Self {
        let count = node.child_count();
        let cursor = (count > FEW).then(|| {
            let mut cursor = node.walk();
            cursor.goto_first_child();
            cursor
        });
        Self { node, next: 0, count, cursor }
    }
}

impl<'t> Iterator for Within<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        if self.next == self.count {
            return None;
        }
        let at = self.next;
        self.next += 1;
        let Some(cursor) = &mut self.cursor else { return self.node.child(at) };
        // It stands at the first one already.
        if at > 0 && !cursor.goto_next_sibling() {
            return None;
        }
        Some(cursor.node())
    }
}
