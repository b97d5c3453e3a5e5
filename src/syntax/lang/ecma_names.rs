//! Names as JavaScript and TypeScript write them: of properties, in patterns, before a call.

use std::borrow::Cow;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::walk::Walk;
use super::super::{Kind as Sort, Receiver};
use super::ecma::{Field, Kind};
use super::ecma_locals as locals;

/// The most names in a chain that are followed; a longer chain leads nowhere.
const CHAIN_MAX: usize = 16;

/// The words before a function's parameters.
#[derive(Default)]
pub(super) struct Head {
    pub(super) is_async: bool,
    pub(super) generator: bool,
    pub(super) get: bool,
    pub(super) set: bool,
    pub(super) optional: bool,
}

impl Head {
    pub(super) fn of(walk: &Walk<'_>, function: Node<'_>) -> Self {
        let mut head = Self::default();
        let mut cursor = function.walk();
        let mut more = cursor.goto_first_child();
        while more {
            let child = cursor.node();
            let field = cursor.field_name();
            if matches!(field, Some("parameters" | "parameter" | "type_parameters" | "body")) {
                break;
            }
            if !child.is_named() {
                match &*walk.text(child) {
                    "async" => head.is_async = true,
                    "*" => head.generator = true,
                    "get" => head.get = true,
                    "set" => head.set = true,
                    "?" => head.optional = true,
                    _ => {}
                }
            }
            more = cursor.goto_next_sibling();
        }
        head
    }

    pub(super) fn sort(&self, name: &str, in_class: bool) -> Sort {
        match () {
            () if self.get => Sort::Getter,
            () if self.set => Sort::Setter,
            () if in_class && name == "constructor" => Sort::Constructor,
            () => Sort::Method,
        }
    }
}

/// The expression within parentheses, casts and assertions, and the last of several.
pub(super) fn unwrapped<'t>(walk: &Walk<'_>, mut node: Node<'t>) -> Node<'t> {
    loop {
        let inner = match Kind::at(walk, node) {
            Some(Kind::Parenthesized | Kind::As | Kind::Satisfies | Kind::NonNull | Kind::Instantiation) => {
                first_that_counts(walk, node)
            }
            // `(0, f)(…)` is how compilers call what is imported.
            Some(Kind::TypeAssertion | Kind::Sequence) => u32::try_from(node.named_child_count())
                .ok()
                .and_then(|all| node.named_child(all.checked_sub(1)?)),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => return node,
        }
    }
}

pub(super) fn first_that_counts<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).find(|child| Kind::at(walk, *child) != Some(Kind::Comment))
}

/// The name of a property: `a`, `"a"`, `#a`, `1`; `[a]` for one that is computed.
pub(super) fn property_name<'a>(walk: &Walk<'a>, node: Node<'_>) -> Option<Cow<'a, str>> {
    match Kind::at(walk, node) {
        Some(Kind::String) => string_content(walk, node),
        Some(Kind::ComputedName) => {
            let inner = first_that_counts(walk, node)?;
            if Kind::at(walk, inner) == Some(Kind::String) {
                return string_content(walk, inner);
            }
            let text = walk.text(inner);
            Some(format!("[{}]", text.split_whitespace().collect::<Vec<_>>().join(" ")).into())
        }
        _ => Some(walk.text(node)),
    }
}

/// The text between the quotes, escapes as they are.
pub(super) fn string_content<'a>(walk: &Walk<'a>, node: Node<'_>) -> Option<Cow<'a, str>> {
    let range = node.start_byte() + 1..node.end_byte().checked_sub(1)?;
    walk.source.get(range).map(String::from_utf8_lossy)
}

/// The names that a pattern binds: `a`, `c` and `d` of `{ a, b: c, ...d }`.
pub(super) fn bound_names<'t>(walk: &Walk<'_>, pattern: Node<'t>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut waiting = vec![pattern];
    while let Some(node) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::Identifier | Kind::ShorthandPattern) => found.push(node),
            Some(Kind::PairPattern) => waiting.extend(walk.field(node, Field::Value as u8)),
            Some(Kind::AssignmentPattern | Kind::ObjectAssignment) => {
                waiting.extend(walk.field(node, Field::Left as u8));
            }
            Some(Kind::ObjectPattern | Kind::ArrayPattern | Kind::RestPattern) => {
                let mut cursor = node.walk();
                let from = waiting.len();
                waiting.extend(node.named_children(&mut cursor));
                waiting[from..].reverse();
            }
            _ => {}
        }
    }
    found
}

/// The last name of what is called, and what stands before it; none for what has no name.
pub(super) fn callee<'a>(walk: &Walk<'a>, node: Node<'_>) -> Option<(Cow<'a, str>, Receiver)> {
    let node = unwrapped(walk, node);
    match Kind::at(walk, node)? {
        Kind::Identifier => Some((walk.text(node), Receiver::None)),
        Kind::Member => {
            let property = walk.field(node, Field::Property as u8)?;
            Some((walk.text(property), receiver(walk, walk.field(node, Field::Object as u8)?)))
        }
        Kind::Subscript => {
            let index = walk.field(node, Field::Index as u8)?;
            let name =
                if Kind::at(walk, index)? == Kind::String { string_content(walk, index) } else { None };
            Some((name?, receiver(walk, walk.field(node, Field::Object as u8)?)))
        }
        _ => None,
    }
}

fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Receiver {
    if let Some(receiver) = locals::receiver(walk, object) {
        return receiver;
    }
    let object = unwrapped(walk, object);
    match Kind::at(walk, object) {
        Some(Kind::This) if locals::is_this_known(walk) => Receiver::This,
        Some(Kind::This) => Receiver::Other,
        Some(Kind::Super) => Receiver::Super,
        _ => match dotted(walk, object) {
            Some(path) if path.starts_with("this.") && !locals::is_this_known(walk) => Receiver::Other,
            Some(path) => Receiver::Path(path.into()),
            None => Receiver::Other,
        },
    }
}

/// `a.b.c`, if it is nothing but names; `this` counts as one at its beginning.
pub(super) fn dotted(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let mut names = Vec::new();
    let mut node = unwrapped(walk, node);
    while Kind::at(walk, node)? == Kind::Member {
        if names.len() >= CHAIN_MAX {
            return None;
        }
        names.push(walk.text(walk.field(node, Field::Property as u8)?));
        node = unwrapped(walk, walk.field(node, Field::Object as u8)?);
    }
    if !matches!(Kind::at(walk, node)?, Kind::Identifier | Kind::This) {
        return None;
    }
    names.push(walk.text(node));
    names.reverse();
    Some(names.join("."))
}

/// The names of the classes that a class extends.
pub(super) fn base_names(walk: &Walk<'_>, heritage: Node<'_>) -> Vec<Box<str>> {
    let mut cursor = heritage.walk();
    let mut found = Vec::new();
    for child in heritage.named_children(&mut cursor) {
        // JavaScript has the expression here, TypeScript a clause around it.
        let base = match Kind::at(walk, child) {
            Some(Kind::Extends) => walk.field(child, Field::Value as u8),
            Some(Kind::Implements) => None,
            _ => Some(child),
        };
        found.extend(base.and_then(|base| dotted(walk, base)).map(Into::into));
    }
    found
}

/// The names of the types that an interface extends.
pub(super) fn extended_names(walk: &Walk<'_>, extends: Node<'_>) -> Vec<Box<str>> {
    let mut cursor = extends.walk();
    let named = extends.named_children(&mut cursor).map(|base| locals::of_type(walk, base));
    named.filter_map(|base| if let Seen::Of(name) = base { Some(name) } else { None }).collect()
}

/// The function that is handed to what makes the value: `memo(forwardRef(function …))`.
pub(super) fn wrapped_function<'t>(walk: &Walk<'_>, value: Node<'t>) -> Option<Node<'t>> {
    let mut call = value;
    // Real code wraps a function in fewer calls than this.
    for _ in 0..4 {
        if Kind::at(walk, call) != Some(Kind::Call) {
            return None;
        }
        let first = walk.field(call, Field::Arguments as u8)?.named_child(0)?;
        let first = unwrapped(walk, first);
        if Kind::at(walk, first).is_some_and(Kind::is_function) {
            return Some(first);
        }
        call = first;
    }
    None
}
