//! Type definitions of C and C++: classes, structs, unions, enumerations, and names for types.

use tree_sitter::Node;

use super::super::Kind as Sort;
use super::super::locals::Seen;
use super::super::walk::{Found, Walk};
use super::c::{is_hidden, part, record, start_of, whole};
use super::c_declarators::{self as declarators, names_of};
use super::c_grammar::{Field, Kind};
use super::c_types as types;
use super::children::child_of;

/// A class with its members. One that is only named defines nothing.
pub(super) fn class(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    // Members of one without a name are those of what is around; of a field, those of the field.
    let (Some(_), Some(name)) = (walk.field(node, Field::Body as u8), walk.field(node, Field::Name as u8))
    else {
        return;
    };
    if walk.is_claimed(node) {
        return;
    }
    let range = whole(walk, node);
    define(walk, node, name, kind, range);
}

fn define(walk: &mut Walk<'_>, node: Node<'_>, name: Node<'_>, kind: Kind, range: std::ops::Range<usize>) {
    let own = types::parameters_of_template(walk, node);
    let mut names = names_of(walk, name, &own);
    let Some(last) = names.pop() else { return };
    let owner = walk.scope.owner.map(|owner| format!("{}.", walk.facts.symbols[owner as usize].path));
    let path =
        (!names.is_empty()).then(|| format!("{}{}.{last}", owner.unwrap_or_default(), names.join(".")));
    let word = match kind {
        Kind::Class => "class",
        Kind::Union => "union",
        _ => "struct",
    };
    let (template, clause) = (types::template_of(walk, node), child_of(walk, node, &[Kind::BaseClause]));
    // Where all can be seen, those who use it rely on the fields and their order. What a class shows has contracts of its own.
    let fields = if kind == Kind::Class { Vec::new() } else { fields_of(walk, node) };
    let bits: Vec<_> = fields.iter().map(|it| nameless_bits(walk, *it)).collect();
    let length = clause.map_or(0, |it| it.byte_range().len())
        + fields.iter().map(|it| it.byte_range().len()).sum::<usize>();
    let signature = walk.sign(length, |scribe| {
        if let Some(template) = template {
            scribe.word("template ").node(template).word(" ");
        }
        scribe.word(word);
        if let Some(clause) = clause {
            scribe.word(" ").node(clause);
        }
        if !fields.is_empty() {
            scribe.word(" {");
            for (field, bits) in fields.iter().zip(&bits) {
                match bits {
                    // What the grammar is not shown is read from the file.
                    Some((typed, bits)) => scribe.word(" ").node(*typed).word(bits),
                    None => scribe.word(" ").node(*field),
                };
            }
            scribe.word(" }");
        }
    });
    let bases = clause.map_or(Vec::new(), |clause| bases_of(walk, clause));
    let hidden = walk.notes.nameless.iter().any(|it| it.contains(&super::c::range(node).start));
    walk.attributes_end(start_of(walk, node));
    let at = record(walk, path, hidden, Found { signature, ..Found::new(&last, Sort::Class, range) });
    walk.bases(at, bases);
    walk.open(at);
}

/// The fields of a struct, those in branches of a condition too.
fn fields_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut waiting: Vec<Node<'t>> = walk.field(node, Field::Body as u8).into_iter().collect();
    while let Some(it) = waiting.pop() {
        match Kind::at(walk, it) {
            Some(Kind::FieldDeclaration) => {
                let declarator = walk.field(it, Field::Declarator as u8);
                let declared = declarator.and_then(|it| declarators::of_declarator(walk, it));
                if declared.is_none_or(|it| it.function.is_none()) {
                    found.push(it);
                }
            }
            Some(Kind::Function | Kind::Class | Kind::Struct | Kind::Union | Kind::Enum | Kind::Template) => {
            }
            _ => {
                let mut cursor = it.walk();
                let from = waiting.len();
                waiting.extend(it.named_children(&mut cursor));
                waiting[from..].reverse();
            }
        }
    }
    found
}

/// The type and the width of bits without a name, ` : 5;`, which decide where the next field is.
fn nameless_bits<'t>(walk: &Walk<'_>, field: Node<'t>) -> Option<(Node<'t>, String)> {
    let typed = walk
        .field(field, Field::Type as u8)
        .filter(|_| walk.field(field, Field::Declarator as u8).is_none())?;
    let behind = walk.source.get(typed.end_byte()..field.end_byte())?;
    let width =
        std::str::from_utf8(behind).ok()?.trim_start().strip_prefix(':')?.trim_end_matches(';').trim();
    Some((typed, format!(" : {width};")))
}

fn bases_of(walk: &Walk<'_>, clause: Node<'_>) -> Vec<Box<str>> {
    let mut cursor = clause.walk();
    let all: Vec<Node<'_>> = clause.named_children(&mut cursor).collect();
    let is_type = |it: &Node<'_>| !matches!(Kind::at(walk, *it), Some(Kind::AccessSpecifier | Kind::Virtual));
    let all = all.into_iter().filter(is_type);
    let paths = all.filter_map(|it| types::path_of(walk, it).map(|path| (it, path)));
    paths
        .filter(|(it, path)| !types::is_parameter_of_types(walk, *it, path))
        .map(|(_, path)| path.into())
        .collect()
}

pub(super) fn enumeration(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(name), Some(_)) = (walk.field(node, Field::Name as u8), walk.field(node, Field::Body as u8))
    else {
        return;
    };
    if walk.is_claimed(node) {
        return;
    }
    let range = whole(walk, node);
    define_enumeration(walk, node, &[], name, range);
}

fn define_enumeration(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    own: &[String],
    name: Node<'_>,
    range: std::ops::Range<usize>,
) {
    let Some(last) = names_of(walk, name, own).pop() else { return };
    let base = walk.field(node, Field::Base as u8);
    // Each case has a number by those before it.
    let body = walk.field(node, Field::Body as u8);
    let length = node.byte_range().len();
    let signature = walk.sign(length, |scribe| {
        scribe.word("enum");
        if let Some(base) = base {
            scribe.word(" : ").node(base);
        }
        if let Some(body) = body {
            scribe.word(" ").node(body);
        }
    });
    walk.attributes_end(start_of(walk, node));
    let at = walk.symbol(Found { signature, ..Found::new(&last, Sort::Enum, range) });
    walk.open(at);
}

pub(super) fn enumerator(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let name = walk.text(name).into_owned();
    let value = walk.field(node, Field::Value as u8);
    let signature = value.and_then(|value| {
        walk.sign(value.byte_range().len(), |scribe| {
            scribe.word("= ").node(value);
        })
    });
    walk.attributes_end(start_of(walk, node));
    walk.symbol(Found { signature, ..Found::new(&name, Sort::Field, node.byte_range()) });
}

/// `typedef`: the members of a struct in it are those of its first name, if it has none of its own.
pub(super) fn typedef(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return };
    let whole = whole(walk, node);
    let body = walk.field(typed, Field::Body as u8);
    let tag = walk.field(typed, Field::Name as u8);
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    let all: Vec<declarators::Declared<'_>> =
        all.into_iter().filter_map(|it| declarators::of_declarator(walk, it)).collect();
    let kind = Kind::at(walk, typed);
    let is_plain = |it: &declarators::Declared<'_>| it.top == it.name;
    let first = all.iter().find(|it| is_plain(it)).map(|it| it.name);
    let own_name = tag.or_else(|| body.and(first));
    let own_text = own_name.map(|it| walk.text(it).into_owned());
    // Recorded before its members, though its names stand behind them.
    let start = start_of(walk, node);
    walk.attributes_end(start);
    // A type that the `typedef` defines has a name of its own; the comments above and the text before the other names belong to it.
    let is_apart = body.is_some() && own_name.is_some();
    let comments = if is_apart { walk.decorators.take() } else { None };
    let mut aliases = Vec::new();
    for (nth, declared) in all.iter().enumerate() {
        let text = walk.text(declared.name).into_owned();
        if body.is_some() && Some(&text) == own_text.as_ref() {
            continue;
        }
        aliases.push(text.clone());
        let base = types::path_of(walk, typed).or_else(|| own_text.clone());
        // `typedef struct s s;` says nothing of what `s` has.
        let declared_only = base.as_ref() == Some(&text);
        let signature = declarators::signature(walk, node, declared);
        let is_whole = !is_apart && (all.len() == 1 || body.is_some());
        let range = match declared.top.byte_range() {
            _ if is_whole => whole.clone(),
            own if body.is_some() => own,
            own => part(&whole, (nth, all.len()), own),
        };
        let found = Found { signature, declared: declared_only, ..Found::new(&text, Sort::TypeAlias, range) };
        let at = walk.symbol(found);
        if body.is_none() {
            walk.declared_by(node, all[0].top.start_byte(), at);
        }
        let is_same = declared.function.is_none() && is_of_type(walk, declared);
        walk.bases(at, base.filter(|_| is_same && !declared_only).map(Into::into).into_iter().collect());
    }
    if is_apart {
        walk.decorators = comments;
    }
    let (Some(_), Some(name)) = (body, own_name) else { return };
    walk.claim(typed);
    // The text behind its members belongs to the other names.
    let whole = if tag.is_some() { whole.start..typed.end_byte() } else { whole };
    match kind {
        Some(Kind::Enum) => define_enumeration(walk, typed, &[], name, whole),
        Some(kind @ (Kind::Struct | Kind::Union | Kind::Class)) => define(walk, typed, name, kind, whole),
        _ => {}
    }
}

/// Whether it is the type itself or a pointer to it.
fn is_of_type(walk: &Walk<'_>, declared: &declarators::Declared<'_>) -> bool {
    !matches!(Kind::at(walk, declared.top), Some(Kind::FunctionDeclarator | Kind::ArrayDeclarator))
}

/// `using A = B;`
pub(super) fn alias(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(name), Some(typed)) =
        (walk.field(node, Field::Name as u8), walk.field(node, Field::Type as u8))
    else {
        return;
    };
    let text = walk.text(name).into_owned();
    let template = types::template_of(walk, node);
    let signature = walk.sign(typed.byte_range().len(), |scribe| {
        if let Some(template) = template {
            scribe.word("template ").node(template).word(" ");
        }
        scribe.word("= ").node(typed);
    });
    let base = match types::of_type(walk, typed) {
        Seen::Of(path) => Some(path),
        _ => None,
    };
    let (hidden, range) = (is_hidden(walk, node), whole(walk, node));
    walk.attributes_end(start_of(walk, node));
    let at = record(walk, None, hidden, Found { signature, ..Found::new(&text, Sort::TypeAlias, range) });
    walk.bases(at, base.into_iter().collect());
}

pub(super) fn concept(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let text = walk.text(name).into_owned();
    let template = types::template_of(walk, node);
    let mut cursor = node.walk();
    let said = node.named_children(&mut cursor).last().filter(|it| *it != name);
    let length = said.map_or(0, |it| it.byte_range().len());
    let signature = walk.sign(length, |scribe| {
        if let Some(template) = template {
            scribe.word("template ").node(template).word(" ");
        }
        scribe.word("concept");
        if let Some(said) = said {
            scribe.word(" = ").node(said);
        }
    });
    let range = whole(walk, node);
    walk.attributes_end(start_of(walk, node));
    walk.symbol(Found { signature, ..Found::new(&text, Sort::Interface, range) });
}
