//! The local names of functions in Swift.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::children::{child_of, children_of};
use super::swift::{Field, Kind, all_of};
use super::swift_expected as expected;
use super::swift_properties::{annotation, groups, names_in, value_of};
use super::swift_types as types;

/// The most nodes of a condition or a case that are examined.
const LOOKED_AT: usize = 256;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// The types that a declaration takes as parameters: what is known of them is their bound, there or behind `where`.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(list) = child_of(walk, item, &[Kind::TypeParameters]) else { return };
    let mut bounds: BTreeMap<String, String> = BTreeMap::new();
    if let Some(constraints) = child_of(walk, item, &[Kind::TypeConstraints]) {
        for it in children_of(walk, constraints, Kind::TypeConstraint) {
            let Some(it) = child_of(walk, it, &[Kind::InheritanceConstraint]) else { continue };
            let of = child_of(walk, it, &[Kind::Identifier]).map(|it| walk.text(it).into_owned());
            let bound = walk.field(it, Field::InheritsFrom as u8).or(walk.field(it, Field::Name as u8));
            if let Some((of, bound)) = of.zip(bound.and_then(|it| types::path_of(walk, it))) {
                bounds.entry(of).or_insert(bound);
            }
        }
    }
    for parameter in children_of(walk, list, Kind::TypeParameter) {
        let Some(named) = child_of(walk, parameter, &[Kind::TypeIdentifier]) else { continue };
        let name = types::name(walk, named);
        let mut cursor = parameter.walk();
        let bound = parameter.named_children(&mut cursor).find(|it| it.start_byte() > named.start_byte());
        let bound = bound.and_then(|it| types::path_of(walk, it));
        let bound = bound.or_else(|| bounds.get(&*name).cloned());
        let seen = bound.map_or(Seen::Unknown, |it| Seen::Of(it.into()));
        walk.local(&name, range(item), seen, true);
    }
}

/// What a function calls its arguments.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    for parameter in children_of(walk, function, Kind::Parameter) {
        let Some(named) = walk.field(parameter, Field::Name as u8) else { continue };
        let mut cursor = parameter.walk();
        let typed = parameter.named_children(&mut cursor).filter(|it| it.start_byte() > named.start_byte());
        let typed = typed.last().filter(|_| !walk.text(parameter).ends_with("..."));
        let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
        let name = types::name(walk, named);
        walk.local(&name, range(function), seen, true);
    }
}

/// `{ a, b in … }`
pub(super) fn lambda(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.open_anonymous();
    expected::gives_back(walk, node, Seen::Unknown);
    let Some(typed) = child_of(walk, node, &[Kind::LambdaType]) else { return };
    let Some(list) = child_of(walk, typed, &[Kind::LambdaParameters]) else { return };
    for parameter in children_of(walk, list, Kind::LambdaParameter) {
        let Some(named) = child_of(walk, parameter, &[Kind::SimpleIdentifier]) else { continue };
        let mut cursor = parameter.walk();
        let typed = parameter.named_children(&mut cursor).find(|it| types::path_of(walk, *it).is_some());
        let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
        let name = types::name(walk, named);
        walk.local(&name, range(node), seen, true);
    }
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(Kind::Statements | Kind::Lambda | Kind::FunctionBody | Kind::SwitchEntry | Kind::Source)
        )
    })
}

/// `let a: T = …, (b, c) = …` within a function.
pub(super) fn declared(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(around) = scope_around(walk) else { return };
    for group in groups(node, "name") {
        let Some(pattern) = group.first() else { continue };
        let end = group.last().map_or(node.end_byte(), Node::end_byte);
        let scope = offset(end).min(around.end)..around.end;
        let names = names_in(walk, *pattern);
        let seen = match (annotation(walk, &group), value_of(walk, &group)) {
            _ if names.len() > 1 => Seen::Unknown,
            (Some(typed), _) => types::of_type(walk, typed),
            (None, Some(value)) => types::of_value(walk, value),
            (None, None) => Seen::Unknown,
        };
        let is_typed = annotation(walk, &group).is_some();
        if is_typed {
            let value = value_of(walk, &group);
            expected::expect(walk, value, &seen);
        }
        // The code of a computed variable gives back the variable's type, and not that of the function around it.
        if let Some(code) = group.iter().find(|it| Kind::at(walk, **it) == Some(Kind::Computed)) {
            expected::gives_back(walk, *code, if is_typed { seen.clone() } else { Seen::Unknown });
        }
        for named in names {
            let name = types::name(walk, named);
            // Without a type, another value may follow.
            let seen = if seen == Seen::Unset && is_typed { Seen::Unknown } else { seen.clone() };
            walk.local(&name, scope.clone(), seen, true);
        }
    }
}

/// What conditions, loops and cases give names to.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::For => {
            let Some(item) = walk.field(node, Field::Item as u8) else { return };
            names_of(walk, item, &range(node));
        }
        Kind::SwitchEntry => {
            let mut cursor = node.walk();
            let patterns = node.named_children(&mut cursor).filter(|it| it.kind() == "switch_pattern");
            for pattern in patterns.collect::<Vec<_>>() {
                names_of(walk, pattern, &range(node));
            }
        }
        Kind::Catch => match walk.field(node, Field::Error as u8) {
            Some(pattern) => names_of(walk, pattern, &range(node)),
            None => walk.local("error", range(node), Seen::Unknown, true),
        },
        _ => conditions(walk, node, kind),
    }
}

/// Names in a pattern, with the type that it asks for, if it is about one name.
fn names_of(walk: &mut Walk<'_>, pattern: Node<'_>, scope: &Range<u32>) {
    let (mut names, mut typed): (Vec<Node<'_>>, Option<Node<'_>>) = (Vec::new(), None);
    let mut waiting = vec![pattern];
    for _ in 0..LOOKED_AT {
        let Some(node) = waiting.pop() else { break };
        match Kind::at(walk, node) {
            Some(Kind::SimpleIdentifier) => names.push(node),
            Some(Kind::UserType | Kind::OptionalType) => typed = Some(node),
            _ => {
                let mut cursor = node.walk();
                waiting.extend(node.named_children(&mut cursor));
            }
        }
    }
    let seen = match (&names[..], typed) {
        ([_], Some(typed)) => types::of_type(walk, typed),
        _ => Seen::Unknown,
    };
    for named in names {
        // The cases of an enumeration and what is compared stand behind a dot or look like calls.
        let before = walk.source.get(..named.start_byte()).and_then(|it| it.last());
        if before != Some(&b'.') {
            let name = types::name(walk, named);
            walk.local(&name, scope.clone(), seen.clone(), true);
        }
    }
}

/// `if let a = …, let b`, `guard let …`, `while case let .c(d) = …`
fn conditions(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let children = all_of(node);
    let is_block = |it: &Node<'_>| walk.is_token(*it, "{");
    let end = children.iter().position(is_block).unwrap_or(children.len());
    // Names that `guard` binds are known after it.
    let scope = match kind {
        Kind::Guard => {
            let Some(around) = scope_around(walk) else { return };
            offset(node.start_byte())..around.end
        }
        _ => range(node),
    };
    let conditions: Vec<&[Node<'_>]> =
        children[..end].split(|it| walk.is_token(*it, ",")).take(LOOKED_AT).collect();
    for condition in conditions {
        let is_case = condition.iter().any(|it| walk.is_token(*it, "case"));
        let binding = condition.iter().position(|it| Kind::at(walk, *it) == Some(Kind::ValueBinding));
        let equals = condition.iter().position(|it| walk.is_token(*it, "="));
        if is_case {
            let before = &condition[..equals.unwrap_or(condition.len())];
            let patterns = before.iter().filter(|it| Kind::at(walk, **it) == Some(Kind::Pattern));
            for pattern in patterns.copied().collect::<Vec<_>>() {
                names_of(walk, pattern, &scope);
            }
            continue;
        }
        let Some(named) = binding.and_then(|at| condition.get(at + 1)).copied() else { continue };
        let typed = condition.iter().find(|it| Kind::at(walk, **it) == Some(Kind::TypeAnnotation));
        let value = equals.and_then(|at| condition.get(at + 1)).copied();
        let seen = match (typed.and_then(|it| it.named_child(0)), value) {
            (Some(typed), _) => types::of_type(walk, typed),
            (None, Some(value)) => types::of_value(walk, value),
            // `if let a`: of what it had the name before.
            (None, None) => types::of_value(walk, named),
        };
        let name = types::name(walk, named);
        if name == "self" {
            continue;
        }
        let from = value.unwrap_or(named).end_byte();
        walk.local(&name, offset(from).min(scope.end)..scope.end, seen, true);
    }
}
