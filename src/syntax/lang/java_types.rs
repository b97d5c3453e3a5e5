//! Types as they are written in Java, and the values of names, as far as their types can be seen.

use std::ops::Range;

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::children::child_of;
use super::java::{Field, Kind, is_nameless};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

pub(super) fn without_blanks(text: &str) -> String {
    if text.bytes().any(|it| it.is_ascii_whitespace()) {
        text.split_whitespace().collect()
    } else {
        text.to_owned()
    }
}

/// The name of a type, `Store` or `a.b.Store`, without its arguments; none of one without a name.
pub(super) fn path_of(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::TypeIdentifier | Kind::Identifier => return Some(walk.text(typed).into_owned()),
            Kind::ScopedType => return scoped(walk, typed),
            Kind::GenericType => typed.named_child(0)?,
            // The annotations come first.
            Kind::AnnotatedType => typed.named_child(typed.named_child_count().checked_sub(1)? as u32)?,
            _ => return None,
        };
    }
    None
}

/// `a.b.C<T>.D`, without arguments and annotations.
fn scoped(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let (mut names, mut next) = (Vec::new(), Some(typed));
    for _ in 0..NESTED_MAX {
        let Some(node) = next.take() else { break };
        match Kind::at(walk, node) {
            Some(Kind::TypeIdentifier) => names.push(walk.text(node).into_owned()),
            Some(Kind::GenericType) => next = node.named_child(0),
            Some(Kind::ScopedType) => {
                let last = node.named_child(node.named_child_count().checked_sub(1)? as u32)?;
                names.push(walk.text(last).into_owned());
                next = node.named_child(0);
            }
            _ => return None,
        }
    }
    names.reverse();
    Some(names.join("."))
}

/// The types that a part of a declaration lists: `extends A, b.C`.
pub(super) fn in_list(walk: &Walk<'_>, part: Node<'_>) -> Vec<String> {
    let list = child_of(walk, part, &[Kind::TypeList]).unwrap_or(part);
    let mut cursor = list.walk();
    list.named_children(&mut cursor).filter_map(|it| path_of(walk, it)).collect()
}

/// What is known of a value by its type. A parameter of types stands for its bound.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    match path_of(walk, typed) {
        Some(path) => walk.of_path(path, typed),
        None => match Kind::at(walk, typed) {
            Some(Kind::ArrayType | Kind::IntegralType | Kind::FloatingType | Kind::BooleanType) => {
                Seen::BuiltIn
            }
            _ => Seen::Unknown,
        },
    }
}

/// The class without a name around the current node, if one is nearer than any with a name: the type that it extends.
fn nameless_around(walk: &Walk<'_>) -> Option<Option<Seen>> {
    let body = walk.above.iter().rev().position(|it| Kind::of(it.kind) == Some(Kind::ClassBody))?;
    is_nameless(walk, body + 1).then(|| {
        let start = walk.above[walk.above.len() - 1 - body].range().start;
        walk.facts.locals.seen(THIS, start).cloned()
    })
}

/// The name by which an anonymous class is known within itself: no local has this name.
const THIS: &str = "this";

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    let mut value = value;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized) => value.named_child(0),
            Some(Kind::Assignment) => walk.field(value, Field::Right as u8),
            Some(Kind::Creation | Kind::Cast) => {
                return walk
                    .field(value, Field::Type as u8)
                    .map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::Ternary) => {
                let [one, other] = [Field::Consequence, Field::Alternative].map(|field| {
                    let of = walk.field(value, field as u8);
                    // Two of two of two … are not followed.
                    of.filter(|it| Kind::at(walk, *it) != Some(Kind::Ternary))
                        .map_or(Seen::Unknown, |it| of_value(walk, it))
                });
                return one.or(other);
            }
            Some(
                Kind::String
                | Kind::Character
                | Kind::DecimalInteger
                | Kind::HexInteger
                | Kind::DecimalFloat
                | Kind::True
                | Kind::False
                | Kind::ClassLiteral
                | Kind::ArrayCreation,
            ) => return Seen::BuiltIn,
            Some(Kind::Null) => return Seen::Unset,
            Some(Kind::Identifier | Kind::FieldAccess | Kind::Invocation | Kind::This) => {
                return path_to(walk, value).unwrap_or(Seen::Unknown);
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

/// What names and calls behind each other lead to: `a.b().c` is the `c` of what `a.b` gives back. The graph looks up what the
/// members say of themselves.
fn path_to(walk: &Walk<'_>, value: Node<'_>) -> Option<Seen> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        let first = match Kind::at(walk, value)? {
            Kind::FieldAccess => {
                let (member, object) =
                    (walk.field(value, Field::Member as u8)?, walk.field(value, Field::Object as u8)?);
                // `Outer.this`
                if Kind::at(walk, member) == Some(Kind::This) {
                    walk.text(object).into_owned()
                } else {
                    names.push(walk.text(member).into_owned());
                    value = object;
                    continue;
                }
            }
            Kind::Invocation => {
                let name = walk.text(walk.field(value, Field::Name as u8)?).into_owned();
                match walk.field(value, Field::Object as u8) {
                    Some(object) => {
                        names.push(name);
                        value = object;
                        continue;
                    }
                    None => name,
                }
            }
            Kind::Parenthesized => {
                value = value.named_child(0)?;
                continue;
            }
            Kind::Identifier => {
                let name = walk.text(value).into_owned();
                match walk.facts.locals.seen(&name, offset(value.start_byte())) {
                    // Through a local, only its type leads on.
                    Some(Seen::Of(class)) => class.to_string(),
                    Some(other) => return names.is_empty().then(|| other.clone()),
                    None => name,
                }
            }
            Kind::This | Kind::Super => match nameless_around(walk) {
                Some(of) => match of? {
                    Seen::Of(class) => class.to_string(),
                    _ => return None,
                },
                None => walk.own_type()?,
            },
            Kind::Creation | Kind::Cast => match of_value(walk, value) {
                Seen::Of(class) => class.to_string(),
                _ => return None,
            },
            _ => return None,
        };
        names.push(first);
        names.reverse();
        return Some(Seen::Of(names.join(".").into()));
    }
    None
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>, name: &str) -> Receiver {
    let mut object = object;
    while Kind::at(walk, object) == Some(Kind::Parenthesized)
        && let Some(inner) = object.named_child(0)
    {
        object = inner;
    }
    match Kind::at(walk, object) {
        Some(Kind::This) => match nameless_around(walk) {
            // Its own members have no names that others know.
            Some(_) if walk.facts.locals.seen(name, offset(object.start_byte())).is_some() => Receiver::Local,
            Some(of) => of.and_then(Seen::receiver).unwrap_or(Receiver::Other),
            None => Receiver::This,
        },
        Some(Kind::Super) => match nameless_around(walk) {
            Some(of) => of.and_then(Seen::receiver).unwrap_or(Receiver::Other),
            None => Receiver::Super,
        },
        Some(Kind::Identifier) => Receiver::Path(walk.text(object)[..].into()),
        Some(Kind::FieldAccess) => match plain_path(walk, object) {
            Some(path) => Receiver::Path(path.into()),
            None => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
        },
        _ => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
    }
}

/// `a.b.c`, if it is nothing but names.
fn plain_path(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::FieldAccess => {
                let member = walk.field(value, Field::Member as u8)?;
                names.push(Some(member).filter(|it| Kind::at(walk, *it) == Some(Kind::Identifier))?);
                value = walk.field(value, Field::Object as u8)?;
            }
            Kind::Identifier => {
                names.push(value);
                names.reverse();
                return Some(names.iter().map(|it| walk.text(*it)).collect::<Vec<_>>().join("."));
            }
            _ => return None,
        }
    }
    None
}

// Names that functions have for themselves.

/// The types that a declaration takes as parameters: what is known of them is their bound.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(parameters) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut cursor = parameters.walk();
    for parameter in parameters.named_children(&mut cursor) {
        if Kind::at(walk, parameter) != Some(Kind::TypeParameter) {
            continue;
        }
        let bound = child_of(walk, parameter, &[Kind::TypeBound]).and_then(|it| it.named_child(0));
        let seen = bound.map_or(Seen::Unknown, |bound| of_type(walk, bound));
        if let Some(name) = child_of(walk, parameter, &[Kind::TypeIdentifier]) {
            let name = walk.text(name);
            walk.local(&name, range(item), seen, true);
        }
    }
}

/// The name and the type of a parameter; the type of one that stands for several is that of each.
pub(super) fn parameter<'t>(walk: &Walk<'_>, parameter: Node<'t>) -> Option<(Node<'t>, Node<'t>)> {
    match Kind::at(walk, parameter)? {
        Kind::Parameter => {
            Some((walk.field(parameter, Field::Name as u8)?, walk.field(parameter, Field::Type as u8)?))
        }
        Kind::SpreadParameter => {
            let name = child_of(walk, parameter, &[Kind::Declarator])?;
            let mut cursor = parameter.walk();
            let is_type =
                |it: &Node<'_>| !matches!(Kind::at(walk, *it), Some(Kind::Modifiers | Kind::Declarator));
            Some((walk.field(name, Field::Name as u8)?, parameter.named_children(&mut cursor).find(is_type)?))
        }
        _ => None,
    }
}

/// What a function calls its arguments.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    if let Some(list) = walk.field(function, Field::Parameters as u8) {
        in_parameters(walk, list, &range(function));
    }
}

fn in_parameters(walk: &mut Walk<'_>, list: Node<'_>, scope: &Range<u32>) {
    let mut cursor = list.walk();
    for it in list.named_children(&mut cursor) {
        let Some((name, typed)) = parameter(walk, it) else { continue };
        let several = Kind::at(walk, it) == Some(Kind::SpreadParameter);
        let seen = if several { Seen::BuiltIn } else { of_type(walk, typed) };
        let name = walk.text(name);
        walk.local(&name, scope.clone(), seen, true);
    }
}

/// `a -> …`, `(a, b) -> …`, `(T a) -> …`
pub(super) fn lambda(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.open_anonymous();
    let Some(parameters) = walk.field(node, Field::Parameters as u8) else { return };
    let scope = range(node);
    match Kind::at(walk, parameters) {
        Some(Kind::Identifier) => {
            let name = walk.text(parameters);
            walk.local(&name, scope, Seen::Unknown, false);
        }
        Some(Kind::InferredParameters) => {
            let mut cursor = parameters.walk();
            for name in parameters.named_children(&mut cursor) {
                let name = walk.text(name);
                walk.local(&name, scope.clone(), Seen::Unknown, false);
            }
        }
        _ => in_parameters(walk, parameters, &scope),
    }
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Block
                    | Kind::ConstructorBody
                    | Kind::For
                    | Kind::EnhancedFor
                    | Kind::CatchClause
                    | Kind::TryWith
                    | Kind::SwitchGroup
                    | Kind::SwitchRule
                    | Kind::Lambda
                    | Kind::Method
                    | Kind::Constructor
                    | Kind::ClassBody
            )
        )
    })
}

/// Local variables, what a loop goes through, what is caught, resources, and names in patterns.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(around) = scope_around(walk) else { return };
    let end = offset(node.end_byte());
    let behind = end.min(around.end)..around.end;
    match kind {
        Kind::Local => return declared(walk, node, &behind),
        Kind::CatchParameter => {
            let Some(name) = walk.field(node, Field::Name as u8) else { return };
            let types = child_of(walk, node, &[Kind::CatchType]);
            let only = types.filter(|it| it.named_child_count() == 1).and_then(|it| it.named_child(0));
            let seen = only.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            let name = walk.text(name);
            return walk.local(&name, around, seen, true);
        }
        _ => {}
    }
    let (typed, name) = match kind {
        Kind::InstanceOf => (node.child_by_field_name("right"), walk.field(node, Field::Name as u8)),
        Kind::TypePattern | Kind::PatternComponent => {
            let last = child_of(walk, node, &[Kind::Identifier]);
            (node.named_child(0).filter(|first| Some(*first) != last), last)
        }
        _ => (walk.field(node, Field::Type as u8), walk.field(node, Field::Name as u8)),
    };
    let Some(name) = name.filter(|it| Kind::at(walk, *it) == Some(Kind::Identifier)) else { return };
    let scope = if kind == Kind::EnhancedFor { range(node) } else { behind };
    let value = walk.field(node, Field::Value as u8).filter(|_| kind == Kind::Resource);
    let seen = typed.map_or(Seen::Unknown, |typed| of_declared(walk, typed, value));
    let name = walk.text(name);
    walk.local(&name, scope, seen, true);
}

/// The type that is written, or that of the value where it is `var`.
fn of_declared(walk: &Walk<'_>, typed: Node<'_>, value: Option<Node<'_>>) -> Seen {
    if &*walk.text(typed) == "var" {
        return value.map_or(Seen::Unknown, |value| of_value(walk, value));
    }
    of_type(walk, typed)
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, scope: &Range<u32>) {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return };
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    for declarator in all {
        let Some(name) = walk.field(declarator, Field::Name as u8) else { continue };
        let several = walk.field(declarator, Field::Dimensions as u8).is_some();
        let value = walk.field(declarator, Field::Value as u8);
        let seen = if several { Seen::BuiltIn } else { of_declared(walk, typed, value) };
        let name = walk.text(name);
        walk.local(&name, scope.clone(), seen, true);
    }
}

/// Code in the value of a field belongs to the field.
pub(super) fn value_of_declarator(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(at) = walk.notes.bodies.remove(&node.id()) {
        walk.open(Some(at));
        walk.open_for_owner();
    }
}

/// The members of a class without a name are known within it, and nowhere else.
pub(super) fn nameless_body(walk: &mut Walk<'_>, creation: Node<'_>, body: Node<'_>) {
    let scope = range(body);
    let extended =
        walk.field(creation, Field::Type as u8).map_or(Seen::Unknown, |typed| of_type(walk, typed));
    walk.local(THIS, scope.clone(), extended, true);
    let mut cursor = body.walk();
    let members: Vec<Node<'_>> = body.named_children(&mut cursor).collect();
    for member in members {
        match Kind::at(walk, member) {
            Some(Kind::Method) => {
                if let Some(name) = walk.field(member, Field::Name as u8) {
                    let name = walk.text(name);
                    walk.local(&name, scope.clone(), Seen::Unknown, true);
                }
            }
            Some(Kind::FieldDeclaration) => declared(walk, member, &scope),
            _ => {}
        }
    }
}
