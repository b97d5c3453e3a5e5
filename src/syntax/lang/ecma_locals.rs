//! Parameters and variables of functions, and the classes of their values, in JavaScript and TypeScript.

use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Given, Receiver};
use super::ecma::{Field, Kind};
use super::ecma_given::in_places;
use super::ecma_names::{bound_names, dotted};

/// The deepest nesting of casts and types that is followed.
const NESTED_MAX: usize = 8;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

pub(super) fn class_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| Kind::of(kind) == Some(Kind::ClassBody))
}

/// Records what a function calls its arguments, what a loop goes through, what was caught.
pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::FunctionDeclaration
        | Kind::GeneratorDeclaration
        | Kind::FunctionExpression
        | Kind::GeneratorFunction
        | Kind::ArrowFunction
        | Kind::MethodDefinition => {
            type_parameters(walk, node);
            parameters(walk, node);
        }
        Kind::ClassDeclaration
        | Kind::AbstractClass
        | Kind::Class
        | Kind::Interface
        | Kind::TypeAlias
        | Kind::FunctionSignature => type_parameters(walk, node),
        Kind::ForIn => names_of(walk, node, Field::Left),
        Kind::Catch => names_of(walk, node, Field::Parameter),
        _ => {}
    }
}

/// The name of a parameter of types among the locals. A value may have the same name, and is another thing.
fn type_key(name: &str) -> String {
    format!("type {name}")
}

/// The types that a declaration takes as parameters: what is known of them is their bound, and nothing without one.
fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(list) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut cursor = list.walk();
    for parameter in list.named_children(&mut cursor) {
        let Some(name) = walk.field(parameter, Field::Name as u8) else { continue };
        let bound = walk.field(parameter, Field::Constraint as u8).and_then(|it| it.named_child(0));
        let seen = match bound.map(|bound| of_type(walk, bound)) {
            Some(seen @ (Seen::Of(_) | Seen::BuiltIn)) => seen,
            _ => Seen::Several,
        };
        let name = walk.text(name);
        walk.local(&type_key(&name), range(item), seen, true);
    }
}

fn names_of(walk: &mut Walk<'_>, node: Node<'_>, field: Field) {
    let Some(pattern) = walk.field(node, field as u8) else { return };
    for name in bound_names(walk, pattern) {
        let text = walk.text(name);
        walk.local(&text, range(node), Seen::Unknown, false);
    }
}

fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    let given = walk.notes.given_to.remove(&function.id());
    let given = |place: u8| match &given {
        Some((path, argument)) => Seen::Of(Given::named(path, (*argument, place))),
        None => Seen::Unknown,
    };
    if let Some(alone) = walk.field(function, Field::Parameter as u8) {
        let name = walk.text(alone);
        return walk.local(&name, range(function), given(0), false);
    }
    let Some(parameters) = walk.field(function, Field::Parameters as u8) else { return };
    for (place, parameter) in in_places(walk, parameters) {
        let pattern = walk.field(parameter, Field::Pattern as u8).unwrap_or(parameter);
        if Kind::at(walk, pattern) != Some(Kind::Identifier) {
            for name in bound_names(walk, pattern) {
                let text = walk.text(name);
                walk.local(&text, range(function), Seen::Unknown, false);
            }
            continue;
        }
        let name = walk.text(pattern);
        let typed = walk.field(parameter, Field::Type as u8);
        let seen = typed.map_or_else(|| given(place), |typed| of_type(walk, typed));
        // `constructor(private store: Store)` makes a field.
        let first = parameter.child(0);
        let is_field = first.is_some_and(|first| {
            Kind::at(walk, first) == Some(Kind::Accessibility) || walk.is_token(first, "readonly")
        });
        if is_field && let Some(class) = class_around(walk) {
            walk.local(&format!("this.{name}"), class, seen.clone(), true);
        }
        walk.local(&name, range(function), seen, typed.is_some());
    }
}

/// A variable that a function has for itself.
pub(super) fn variable(walk: &mut Walk<'_>, node: Node<'_>, pattern: Node<'_>, value: Option<Node<'_>>) {
    // `var` is known in the whole function.
    let is_hoisted = Kind::of(walk.kind_above(0)) == Some(Kind::Variable);
    let block = |kind: u8| match Kind::of(kind) {
        Some(Kind::Block | Kind::For | Kind::ForIn | Kind::SwitchBody) => !is_hoisted,
        Some(
            Kind::FunctionDeclaration
            | Kind::GeneratorDeclaration
            | Kind::FunctionExpression
            | Kind::GeneratorFunction
            | Kind::ArrowFunction
            | Kind::MethodDefinition,
        ) => true,
        _ => false,
    };
    let Some(scope) = walk.range_above(block) else { return };
    if Kind::at(walk, pattern) != Some(Kind::Identifier) {
        for name in bound_names(walk, pattern) {
            let text = walk.text(name);
            walk.local(&text, scope.clone(), Seen::Unknown, false);
        }
        return;
    }
    let is_definition = value
        .and_then(|value| Kind::at(walk, value))
        .is_some_and(|kind| kind.is_function() || kind == Kind::Class);
    if !is_definition {
        let seen = of_named(walk, node, value);
        let typed = walk.field(node, Field::Type as u8).is_some();
        let name = walk.text(pattern);
        walk.local(&name, scope, seen, typed);
    }
}

/// `s ??= …`, and what else gives a name another value beside the one that it has.
pub(super) fn filled(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = [Field::Left, Field::Right].map(|field| walk.field(node, field as u8));
    let operator = walk.field(node, Field::Operator as u8);
    if let ([Some(left), Some(right)], Some(operator)) = (parts, operator)
        && matches!(&*walk.text(operator), "??=" | "||=" | "&&=")
    {
        assigned(walk, left, right);
    }
}

fn assign(walk: &mut Walk<'_>, name: Node<'_>, seen: Seen) {
    let (text, at, owner) = (walk.text(name), offset(name.start_byte()), walk.scope.owner);
    walk.facts.locals.assign(&text, at, owner, seen);
}

/// `s = …`, `[s] = …` and `this.s = …`.
pub(super) fn assigned(walk: &mut Walk<'_>, left: Node<'_>, right: Node<'_>) {
    let seen = seen_of(walk, right);
    match Kind::at(walk, left) {
        Some(Kind::Identifier) => return assign(walk, left, seen),
        Some(Kind::ArrayPattern | Kind::ObjectPattern) => {
            for name in bound_names(walk, left) {
                assign(walk, name, Seen::Unknown);
            }
            return;
        }
        _ => {}
    }
    let field = dotted(walk, left).filter(|path| path.starts_with("this.") && path.matches('.').count() == 1);
    if let (Some(path), Some(class)) = (field, class_around(walk)) {
        walk.local(&path, class, seen, false);
    }
}

/// The value of a name, by its type or else by what is assigned.
pub(super) fn of_named(walk: &Walk<'_>, node: Node<'_>, value: Option<Node<'_>>) -> Seen {
    match walk.field(node, Field::Type as u8) {
        Some(typed) => of_type(walk, typed),
        None => value.map_or(Seen::Unset, |value| seen_of(walk, value)),
    }
}

/// The value of an expression.
pub(super) fn seen_of(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    one_of(walk, value, 0)
}

/// The value of an expression that is one of two.
fn either(walk: &Walk<'_>, values: [Option<Node<'_>>; 2], depth: usize) -> Seen {
    let [one, other] = values.map(|it| it.map_or(Seen::Unknown, |it| one_of(walk, it, depth + 1)));
    one.or(other)
}

fn one_of(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    let mut value = value;
    for _ in depth..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized | Kind::NonNull) => value.named_child(0),
            Some(Kind::As | Kind::Satisfies) => {
                let last = u32::try_from(value.named_child_count()).unwrap_or(0).saturating_sub(1);
                return value.named_child(last).map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::TypeAssertion) => {
                let typed = value.named_child(0).and_then(|typed| typed.named_child(0));
                return typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::New) => {
                let class = walk.field(value, Field::Constructor as u8).and_then(|it| dotted(walk, it));
                // Of a class that a parameter stands for, nothing is known.
                let at = offset(value.start_byte());
                let is_local = |class: &str| {
                    walk.facts.locals.seen(class.split('.').next().unwrap_or(class), at).is_some()
                };
                return match class {
                    Some(class) if is_local(&class) => Seen::Several,
                    Some(class) => Seen::Of(class.into()),
                    None => Seen::Unknown,
                };
            }
            Some(Kind::Ternary) => {
                let values = [Field::Consequence, Field::Alternative];
                return either(walk, values.map(|it| walk.field(value, it as u8)), depth);
            }
            Some(Kind::Binary) => {
                let operator = walk.field(value, Field::Operator as u8).map(|it| walk.text(it));
                if !matches!(operator.as_deref(), Some("||" | "??" | "&&")) {
                    return Seen::Unknown;
                }
                let values = [Field::Left, Field::Right];
                return either(walk, values.map(|it| walk.field(value, it as u8)), depth);
            }
            Some(Kind::Array | Kind::String | Kind::Template | Kind::Number | Kind::Regex) => {
                return Seen::BuiltIn;
            }
            Some(Kind::Null | Kind::Undefined) => return Seen::Unset,
            Some(Kind::Identifier) => {
                let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
                return known.filter(|seen| **seen != Seen::Unset).cloned().unwrap_or(Seen::Unknown);
            }
            _ => return Seen::Unknown,
        };
        match inner {
            Some(inner) => value = inner,
            None => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// The name of a type that is made for others; of those types of the language that have the members of what they are made for, that
/// one.
fn without_helper<'t>(walk: &Walk<'_>, typed: Node<'t>) -> Option<Node<'t>> {
    let name = walk.field(typed, Field::Name as u8).or_else(|| typed.named_child(0))?;
    if !matches!(&*walk.text(name), "Partial" | "Readonly" | "Required" | "NonNullable") {
        return Some(name);
    }
    let mut cursor = typed.walk();
    let arguments =
        typed.named_children(&mut cursor).find(|it| Kind::at(walk, *it) == Some(Kind::TypeArguments));
    arguments.and_then(|it| it.named_child(0))
}

/// A value of a type that is written.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, typed) {
            Some(Kind::TypeAnnotation | Kind::ParenthesizedType) => typed.named_child(0),
            Some(Kind::GenericType) => without_helper(walk, typed),
            Some(Kind::TypeIdentifier | Kind::NestedType) => {
                let name = walk.text(typed).split_whitespace().collect::<String>();
                let of_caller = walk.facts.locals.seen(&type_key(&name), offset(typed.start_byte()));
                return of_caller.cloned().unwrap_or_else(|| Seen::Of(name.into()));
            }
            Some(Kind::ArrayType | Kind::TupleType) => return Seen::BuiltIn,
            Some(Kind::PredefinedType) => {
                let is_any = matches!(&*walk.text(typed), "any" | "unknown" | "object");
                return if is_any { Seen::Unknown } else { Seen::BuiltIn };
            }
            Some(Kind::Union) => {
                let mut cursor = typed.walk();
                let mut parts = typed.named_children(&mut cursor).filter(|part| {
                    !matches!(&*walk.text(*part), "null" | "undefined")
                        && Kind::at(walk, *part) != Some(Kind::Comment)
                });
                let only = parts.next();
                if parts.next().is_some() { None } else { only }
            }
            _ => None,
        };
        match inner {
            Some(inner) => typed = inner,
            None => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// The receiver of a call, where it is an expression that shows its type: `new S().f()`, `(x as S).f()`.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Option<Receiver> {
    let mut bare = object;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, bare) {
            Some(Kind::Parenthesized | Kind::NonNull) => bare = bare.named_child(0)?,
            Some(Kind::Identifier) => return None,
            _ => break,
        }
    }
    seen_of(walk, bare).receiver()
}
