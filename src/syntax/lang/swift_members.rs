//! The declarations of a Swift file: types, extensions and their members.

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::notes::Implementation;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Kind as Sort, Signature};
use super::children::{child_of, children_of};
use super::swift::{Field, Kind, all_of, behind, operator_name};
use super::swift_expected as expected;
use super::swift_locals as locals;
use super::swift_properties as properties;
pub(super) use super::swift_properties::property;
use super::swift_signatures::{Parts, parts_of, signed, words};
use super::swift_types as types;

/// Whether the current node is directly in the body of a type, conditions of the compiler included.
pub(super) fn is_member(walk: &Walk<'_>) -> bool {
    matches!(Kind::of(walk.kind_above(0)), Some(Kind::ClassBody | Kind::EnumBody | Kind::ProtocolBody))
}

/// Whether others than the file itself cannot know a declaration.
pub(super) fn is_private(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let written = words(walk, node);
    written.iter().any(|it| matches!(&**it, "private" | "fileprivate"))
}

/// Notes that no other file knows a symbol at the top.
pub(super) fn hide(walk: &mut Walk<'_>, node: Node<'_>, at: Option<u32>) {
    let is_private = at.is_some() && is_private(walk, node);
    hide_if(walk, is_private, at);
}

/// The same, where it is known whether the declaration is one that others cannot know.
pub(super) fn hide_if(walk: &mut Walk<'_>, is_private: bool, at: Option<u32>) {
    let at = at.filter(|at| walk.facts.symbols[*at as usize].parent.is_none());
    if let Some(at) = at.filter(|_| is_private) {
        walk.notes.hidden.insert(at);
    }
}

// Types and extensions.

pub(super) fn data(walk: &mut Walk<'_>, node: Node<'_>) {
    let word = walk.field(node, Field::DeclarationKind as u8).map(|it| walk.text(it));
    if word.as_deref() == Some("extension") {
        return extension(walk, node);
    }
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let (name, word) = (types::name(walk, named), word.unwrap_or_default());
    let sort = if &*word == "enum" { Sort::Enum } else { Sort::Class };
    let body = walk.field(node, Field::Body as u8);
    let shown = match (body, &*word) {
        (Some(body), "enum") => children_of(walk, body, Kind::EnumEntry),
        (Some(body), "struct") => made_of(walk, body),
        _ => Vec::new(),
    };
    let mut parts = parts_of(walk, node);
    parts.word = word.into_owned();
    parts.shown = shown;
    declare_type(walk, node, (&name, sort), &parts);
}

/// The properties that a struct is made with, where no initialiser of its own says it.
fn made_of<'t>(walk: &Walk<'_>, body: Node<'t>) -> Vec<Node<'t>> {
    if child_of(walk, body, &[Kind::Init]).is_some() {
        return Vec::new();
    }
    let is_stored = |it: &Node<'_>| {
        let static_or_lazy = words(walk, *it).iter().any(|it| matches!(&**it, "static" | "class" | "lazy"));
        walk.field(*it, Field::ComputedValue as u8).is_none() && !static_or_lazy
    };
    children_of(walk, body, Kind::Property).into_iter().filter(is_stored).collect()
}

pub(super) fn protocol(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let name = types::name(walk, named);
    let mut parts = parts_of(walk, node);
    parts.word = "protocol".into();
    if let Some(body) = walk.field(node, Field::Body as u8) {
        let mut cursor = body.walk();
        let is_comment =
            |it: &Node<'_>| matches!(Kind::at(walk, *it), Some(Kind::Comment | Kind::MultilineComment));
        parts.shown = body.named_children(&mut cursor).filter(|it| !is_comment(it)).collect();
    }
    declare_type(walk, node, (&name, Sort::Interface), &parts);
}

fn declare_type(walk: &mut Walk<'_>, node: Node<'_>, (name, sort): (&str, Sort), parts: &Parts<'_>) {
    let signature = signed(walk, parts);
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(name, sort, node.byte_range()) });
    hide(walk, node, at);
    let bases = above(walk, node);
    walk.bases(at, bases);
    walk.open(at);
    locals::type_parameters(walk, node);
}

/// The types that stand behind the colon of a type.
fn above(walk: &Walk<'_>, node: Node<'_>) -> Vec<Box<str>> {
    let listed = children_of(walk, node, Kind::Inheritance).into_iter();
    let typed = listed.filter_map(|it| walk.field(it, Field::InheritsFrom as u8));
    typed.filter_map(|it| types::path_of(walk, it)).map(Into::into).collect()
}

/// An extension: more of its type. What it says of access and conditions holds for each of its members.
fn extension(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let Some(path) = types::path_of(walk, named) else { return };
    let parts = Parts { word: "extension".into(), ..parts_of(walk, node) };
    // Without these, it makes no difference to the type itself.
    let says_more = !parts.bases.is_empty() || parts.constraints.is_some();
    let signature =
        if says_more { signed(walk, &Parts { words: String::new(), ..parts.clone() }) } else { None };
    walk.attributes_end(node.start_byte());
    let name = path.rsplit('.').next().unwrap_or(&path).to_owned();
    let found = Found { signature, ..Found::new(&name, Sort::Class, node.byte_range()) };
    let at = walk.symbol_at(path.clone(), found);
    let bases = above(walk, node);
    walk.bases(at, bases);
    if let Some(at) = at {
        let condition = parts.constraints.map_or(String::new(), |it| {
            let text = walk.text(it);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        walk.notes.for_members.insert(at, (parts.words.into(), condition.into()));
        walk.notes.implementations.push(Implementation { at, of_type: path.into(), path: None });
    }
    walk.open(at);
}

/// `case a, b(Int)`
pub(super) fn entry(walk: &mut Walk<'_>, node: Node<'_>) {
    let of = walk.scope.owner.map(|owner| walk.facts.symbols[owner as usize].name().to_owned());
    let groups = properties::groups(node, "name");
    let alone = groups.len() == 1;
    for group in groups {
        let Some(named) = group.first().copied() else { continue };
        let name = types::name(walk, named);
        let data = group.iter().copied().find(|it| Kind::at(walk, *it) == Some(Kind::EnumTypes));
        let signature = match data {
            Some(data) => walk.sign(data.byte_range().len(), |scribe| {
                scribe.node(data);
            }),
            None => None,
        };
        let range = match group.last() {
            Some(last) if !alone => named.start_byte()..last.end_byte(),
            _ => node.byte_range(),
        };
        walk.attributes_end(node.start_byte());
        let seen = of.clone().map_or(Seen::Unknown, |of| Seen::Of(of.into()));
        walk.symbol(Found { signature, seen, typed: true, ..Found::new(&name, Sort::Field, range) });
    }
    walk.open_for_owner();
}

/// `typealias A = B`, `associatedtype A: B`
pub(super) fn alias(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let name = types::name(walk, named);
    let (bound, value) = (behind(walk, node, ":"), behind(walk, node, "="));
    let mut parts = parts_of(walk, node);
    let declared = kind == Kind::AssociatedType;
    parts.word = if declared { "associatedtype" } else { "typealias" }.into();
    parts.bases = bound.into_iter().collect();
    parts.value = value;
    let signature = signed(walk, &parts);
    walk.attributes_end(node.start_byte());
    let found = Found { signature, declared, ..Found::new(&name, Sort::TypeAlias, node.byte_range()) };
    let at = walk.symbol(found);
    hide(walk, node, at);
    let base = if declared { bound } else { value };
    let base = base.and_then(|it| types::path_of(walk, it));
    walk.bases(at, base.into_iter().map(Into::into).collect());
}

// Functions, initialisers, subscripts, operators and macros.

/// Declares what runs: its name, its kind, and the type of what it gives back.
fn runs(walk: &mut Walk<'_>, node: Node<'_>, (name, sort): (&str, Sort), parts: &Parts<'_>, seen: Seen) {
    let signature = if name == "deinit" { None } else { signed(walk, parts) };
    let declared = Kind::of(walk.kind_above(0)) == Some(Kind::ProtocolBody);
    walk.attributes_end(node.start_byte());
    expected::gives_back(walk, node, if name == "init" { Seen::Unknown } else { seen.clone() });
    let found = Found { signature, declared, seen, typed: true, ..Found::new(name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    hide(walk, node, at);
    locals::type_parameters(walk, node);
    locals::parameters(walk, node);
    walk.open(at);
}

pub(super) fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let is_plain = Kind::at(walk, named) == Some(Kind::SimpleIdentifier);
    let name = if is_plain { types::name(walk, named) } else { operator_name(&walk.text(named)) };
    let is_method = is_member(walk) || kind == Kind::ProtocolFunction;
    let sort = if is_method { Sort::Method } else { Sort::Function };
    locals::type_parameters(walk, node);
    let parts = Parts { unlabelled: !is_plain, ..parts_of(walk, node) };
    let seen = parts.result.map_or(Seen::Unknown, |result| types::of_type(walk, result));
    runs(walk, node, (&name, sort), &parts, seen);
}

pub(super) fn initialiser(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut parts = parts_of(walk, node);
    parts.word = all_of(node)
        .into_iter()
        .take_while(|it| !walk.is_token(*it, "("))
        .find_map(|it| ["?", "!"].into_iter().find(|mark| walk.is_token(it, mark)))
        .unwrap_or_default()
        .into();
    let seen = types::own_type(walk).map_or(Seen::Unknown, |own| Seen::Of(own.into()));
    runs(walk, node, ("init", Sort::Constructor), &parts, seen);
}

pub(super) fn end_of_life(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = parts_of(walk, node);
    runs(walk, node, ("deinit", Sort::Method), &parts, Seen::Unknown);
}

pub(super) fn subscript(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = Parts { unlabelled: true, ..parts_of(walk, node) };
    let accessors = child_of(walk, node, &[Kind::Computed]);
    let parts = Parts { accessors: properties::accessors(walk, accessors), ..parts };
    let seen = parts.result.map_or(Seen::Unknown, |result| types::of_type(walk, result));
    runs(walk, node, ("subscript", Sort::Getter), &parts, seen);
}

/// `infix operator +++: AdditionPrecedence`, and a group of precedence.
pub(super) fn operator(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let (name, sort) = if kind == Kind::Operator {
        let mut children = all_of(node).into_iter();
        if !children.any(|it| walk.is_token(it, "operator")) {
            return;
        }
        let Some(sign) = children.next() else { return };
        (operator_name(&walk.text(sign)), Sort::Function)
    } else {
        let Some(named) = child_of(walk, node, &[Kind::SimpleIdentifier]) else { return };
        (types::name(walk, named), Sort::Variable)
    };
    let signature: Option<Result<Signature, Broken>> = walk.sign(node.byte_range().len(), |scribe| {
        scribe.node(node);
    });
    walk.attributes_end(node.start_byte());
    let declared = kind == Kind::Operator;
    walk.symbol(Found { signature, declared, ..Found::new(&name, sort, node.byte_range()) });
}

pub(super) fn macro_declaration(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(named) = child_of(walk, node, &[Kind::SimpleIdentifier]) else { return };
    let name = types::name(walk, named);
    let mut parts = parts_of(walk, node);
    parts.word = "macro".into();
    let signature = signed(walk, &parts);
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Function, node.byte_range()) });
    hide(walk, node, at);
    // What it is defined as is no code of the repository.
    walk.open(at);
}
