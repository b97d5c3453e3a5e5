//! The types that Swift expects of values at their places: `.paid(1)` is a member of the type that the function gives back, or that is
//! written for the name to which the value is given.

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::children::children_of;
use super::swift::{Field, Kind};
use super::swift_types as types;

/// The name by which a function's result is known within the function: no local has this name.
const RESULT: &str = "result of the function around";

/// Records the type of what the code in a node gives back.
pub(super) fn gives_back(walk: &mut Walk<'_>, code: Node<'_>, seen: Seen) {
    walk.local(RESULT, offset(code.start_byte())..offset(code.end_byte()), seen, true);
}

/// Notes the type that is expected of a value.
pub(super) fn expect(walk: &mut Walk<'_>, value: Option<Node<'_>>, seen: &Seen) {
    if let (Some(value), Seen::Of(_)) = (value, seen) {
        walk.notes.expected.insert(value.id(), seen.clone());
    }
}

/// Notes what is expected of the values within a node, before they are visited.
pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::Transfer => {
            let value = walk.field(node, Field::Result as u8);
            result(walk, node, value);
        }
        // The only expression of a function is its result.
        Kind::Statements if node.named_child_count() == 1 => {
            let around = Kind::of(walk.kind_above(0));
            let value = node.named_child(0);
            match around {
                Some(Kind::FunctionBody | Kind::Computed | Kind::ComputedGetter) => result(walk, node, value),
                _ => pass_on(walk, node, [value, None]),
            }
        }
        Kind::Assignment => {
            let target = walk.field(node, Field::Target as u8).and_then(|it| it.named_child(0));
            let seen = target.map_or(Seen::Unknown, |target| types::of_value(walk, target));
            let value = walk.field(node, Field::Result as u8);
            expect(walk, value, &seen);
        }
        Kind::Ternary => {
            let values = [Field::IfTrue, Field::IfFalse].map(|field| walk.field(node, field as u8));
            pass_on(walk, node, values);
        }
        Kind::NilCoalescing => {
            let values = [Field::Value, Field::IfNil].map(|field| walk.field(node, field as u8));
            pass_on(walk, node, values);
        }
        Kind::Try | Kind::Await => {
            let value = walk.field(node, Field::Expression as u8);
            pass_on(walk, node, [value, None]);
        }
        Kind::Switch => {
            let Some(seen) = walk.notes.expected.remove(&node.id()) else { return };
            for entry in children_of(walk, node, Kind::SwitchEntry) {
                let code = children_of(walk, entry, Kind::Statements).pop();
                expect(walk, code, &seen);
            }
        }
        _ => {}
    }
}

fn result(walk: &mut Walk<'_>, node: Node<'_>, value: Option<Node<'_>>) {
    let seen = walk.facts.locals.seen(RESULT, offset(node.start_byte())).cloned();
    expect(walk, value, &seen.unwrap_or(Seen::Unknown));
}

/// What is expected of a node is expected of the values that it may have.
fn pass_on(walk: &mut Walk<'_>, node: Node<'_>, values: [Option<Node<'_>>; 2]) {
    if let Some(seen) = walk.notes.expected.remove(&node.id()) {
        values.into_iter().for_each(|value| expect(walk, value, &seen));
    }
}

/// The receiver of `.paid(1)`, whose type is not said. Cases of an optional are those of the language's own type.
pub(super) fn receiver(walk: &mut Walk<'_>, call: Node<'_>, called: &str) -> Receiver {
    let seen = walk.notes.expected.remove(&call.id()).filter(|_| called != "some");
    seen.and_then(Seen::receiver).unwrap_or(Receiver::Other)
}
