//! Classes, interfaces, types, enumerations and namespaces of JavaScript and TypeScript.

use tree_sitter::Node;

use super::super::Kind as Sort;
use super::super::walk::{Found, Walk};
use super::ecma::{Field, Kind, is_ambient};
use super::ecma_given::record_type;
use super::ecma_names::{base_names, extended_names, property_name};

/// Records a class under a name; `whole` is the node whose bytes the symbol gets.
pub(super) fn class(walk: &mut Walk<'_>, class: Node<'_>, whole: Node<'_>, name: &str) -> Option<u32> {
    let type_parameters = walk.field(class, Field::TypeParameters as u8);
    let mut cursor = class.walk();
    let heritage =
        class.named_children(&mut cursor).find(|child| Kind::at(walk, *child) == Some(Kind::Heritage));
    let length = [type_parameters, heritage].iter().flatten().map(|part| part.byte_range().len()).sum();
    let signature = walk.sign(length, |scribe| {
        scribe.word("class");
        if let Some(part) = type_parameters {
            scribe.node(part);
        }
        if let Some(part) = heritage {
            scribe.word(" ").node(part);
        }
    });
    let at = walk.symbol(Found { signature, ..Found::new(name, Sort::Class, whole.byte_range()) });
    if let Some(heritage) = heritage {
        let bases = base_names(walk, heritage);
        walk.bases(at, bases);
    }
    at
}

pub(super) fn class_declaration(walk: &mut Walk<'_>, node: Node<'_>) {
    let name = walk.field(node, Field::Name as u8).map_or("default".into(), |name| walk.text(name));
    let at = class(walk, node, node, &name);
    walk.open(at);
}

/// A symbol whose signature is some of its parts, one after the other.
fn with_parts(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    sort: Sort,
    word: Option<&str>,
    parts: &[Option<Node<'_>>],
) -> Option<u32> {
    let name = walk.field(node, Field::Name as u8).map(|name| walk.text(name))?;
    let length = parts.iter().flatten().map(|part| part.byte_range().len()).sum();
    let signature = walk.sign(length, |scribe| {
        if let Some(word) = word {
            scribe.word(word);
        }
        for (number, part) in parts.iter().flatten().enumerate() {
            if number > 0 {
                scribe.word(" ");
            }
            scribe.node(*part);
        }
    });
    let declared = is_ambient(walk);
    let at = walk.symbol(Found { signature, declared, ..Found::new(&name, sort, node.byte_range()) });
    walk.open(at);
    at
}

pub(super) fn interface(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    let extends =
        node.named_children(&mut cursor).find(|child| Kind::at(walk, *child) == Some(Kind::ExtendsType));
    let parts = [walk.field(node, Field::TypeParameters as u8), extends, walk.field(node, Field::Body as u8)];
    let at = with_parts(walk, node, Sort::Interface, None, &parts);
    if let Some(extends) = extends {
        let bases = extended_names(walk, extends);
        walk.bases(at, bases);
    }
}

pub(super) fn type_alias(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let value = walk.field(node, Field::Value as u8);
    let parts = [walk.field(node, Field::TypeParameters as u8), value];
    let at = with_parts(walk, node, Sort::TypeAlias, None, &parts);
    if let Some(value) = value {
        record_type(walk, at, node, value);
    }
    value.is_some_and(|value| Kind::at(walk, value) == Some(Kind::ObjectType))
}

pub(super) fn enumeration(walk: &mut Walk<'_>, node: Node<'_>) {
    let is_const = node.child(0).is_some_and(|first| walk.is_token(first, "const"));
    let body = walk.field(node, Field::Body as u8);
    with_parts(walk, node, Sort::Enum, is_const.then_some("const "), &[body]);
}

pub(super) fn enum_members(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    for member in node.named_children(&mut cursor) {
        let name = match Kind::at(walk, member) {
            Some(Kind::EnumAssignment) => walk.field(member, Field::Name as u8),
            Some(Kind::Comment) => None,
            _ => Some(member),
        };
        if let Some(name) = name.and_then(|name| property_name(walk, name)) {
            walk.symbol(Found::new(&name, Sort::Field, member.byte_range()));
        }
    }
}

pub(super) fn namespace(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let name = match Kind::at(walk, name) {
        Some(Kind::String) => property_name(walk, name).unwrap_or_default(),
        _ => walk.text(name),
    };
    let at = walk.symbol(Found::new(&name, Sort::Namespace, node.byte_range()));
    walk.open(at);
}

/// `X.prototype = { … }`: the members of the object are members of `X`.
pub(super) fn members_of(walk: &mut Walk<'_>, of: &str, object: Node<'_>) {
    let Some(at) = walk.at_top(of) else { return };
    let (caller, functions) = (walk.scope.caller, walk.scope.functions);
    walk.open(Some(at));
    // The constructor does not call the code around these members.
    (walk.scope.caller, walk.scope.functions) = (caller, functions);
    walk.open_object(object);
}
