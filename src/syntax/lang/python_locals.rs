//! Parameters and variables of functions, and the classes of their values, in Python.

use std::ops::Range;

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::python::{Field, Kind, bound_names, dotted};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 8;

/// Functions that make a value of one of the language's own types.
const BUILT_IN: &[&str] = &[
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "iter",
    "list",
    "map",
    "memoryview",
    "open",
    "range",
    "reversed",
    "set",
    "sorted",
    "str",
    "tuple",
    "zip",
];

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

fn class_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| Kind::of(kind) == Some(Kind::Class))
}

fn function_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| matches!(Kind::of(kind), Some(Kind::Function | Kind::Lambda)))
}

/// Records what a function calls its arguments, what a loop goes through, what is managed or caught.
pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::Function | Kind::Lambda => {
            type_parameters(walk, node);
            parameters(walk, node);
        }
        Kind::Class => type_parameters(walk, node),
        Kind::For => {
            if let Some(scope) = function_around(walk) {
                names_of(walk, node, scope);
            }
        }
        Kind::ForIn => {
            let comprehension = walk.above.last().map(|above| above.range());
            if let Some(scope) = comprehension {
                names_of(walk, node, scope);
            }
        }
        Kind::AsPattern => managed(walk, node),
        Kind::NamedExpression => named(walk, node),
        Kind::CasePattern => captured(walk, node),
        Kind::SplatPattern => capture(walk, node.named_child(0)),
        Kind::Global | Kind::Nonlocal => outside(walk, node),
        _ => {}
    }
}

/// `case s`, `case … as s`, `case C(key=s)`.
fn captured(walk: &mut Walk<'_>, pattern: Node<'_>) {
    let Some(inner) = pattern.named_child(0) else { return };
    let last = u32::try_from(inner.named_child_count()).ok().and_then(|all| all.checked_sub(1));
    match Kind::at(walk, inner) {
        Some(Kind::DottedName) => capture(walk, Some(inner)),
        Some(Kind::AsPattern | Kind::KeywordPattern) => {
            capture(walk, last.and_then(|last| inner.named_child(last)));
        }
        _ => {}
    }
}

/// A name that a pattern gives to what it meets; one with dots is a value that it compares with.
fn capture(walk: &mut Walk<'_>, name: Option<Node<'_>>) {
    let is_name =
        |name: &Node<'_>| matches!(Kind::at(walk, *name), Some(Kind::Identifier | Kind::DottedName));
    let Some((name, scope)) = name.filter(is_name).zip(function_around(walk)) else { return };
    let text = walk.text(name);
    if !text.contains('.') {
        of_no_type(walk, &text, scope);
    }
}

/// `(s := …)`.
fn named(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = [Field::Name, Field::Value].map(|field| walk.field(node, field as u8));
    if let ([Some(name), Some(value)], Some(scope)) = (parts, function_around(walk)) {
        let (text, seen) = (walk.text(name), of_value(walk, value));
        walk.local(&text, scope, seen, false);
    }
}

/// `global s`, `nonlocal s`.
fn outside(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(scope) = function_around(walk) else { return };
    let mut cursor = node.walk();
    for name in node.named_children(&mut cursor) {
        let text = walk.text(name);
        walk.outside(&text, scope.clone());
    }
}

fn names_of(walk: &mut Walk<'_>, node: Node<'_>, scope: Range<u32>) {
    let Some(left) = walk.field(node, Field::Left as u8) else { return };
    for name in bound_names(walk, left) {
        let text = walk.text(name);
        of_no_type(walk, &text, scope.clone());
    }
}

/// A name that is bound to something of unknown type: what is written elsewhere as its type does not hold for this value.
fn of_no_type(walk: &mut Walk<'_>, name: &str, scope: Range<u32>) {
    walk.local(name, scope, Seen::Unknown, true);
}

fn managed(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(scope), Some(value)) = (function_around(walk), node.named_child(0)) else { return };
    let target = walk.field(node, Field::Alias as u8).and_then(|target| target.named_child(0));
    let Some(target) = target else { return };
    if Kind::at(walk, target) == Some(Kind::Identifier) {
        let name = walk.text(target);
        return match of_value(walk, value) {
            Seen::Unknown => of_no_type(walk, &name, scope),
            seen => walk.local(&name, scope, seen, false),
        };
    }
    for name in bound_names(walk, target) {
        let text = walk.text(name);
        of_no_type(walk, &text, scope.clone());
    }
}

/// The name of a parameter of types among the locals, where types are written. A value may have the same name, and is another thing.
fn type_key(name: &str) -> String {
    format!("type {name}")
}

/// The types that a function or a class takes as parameters: what is known of an instance is the bound, and of the type itself
/// nothing.
fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(list) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut cursor = list.walk();
    for parameter in list.named_children(&mut cursor).filter_map(|it| it.named_child(0)) {
        // `A`, `A: Bound`, `*A`.
        let is_bound = Kind::at(walk, parameter) == Some(Kind::ConstrainedType);
        let parts = [0, 1].map(|at| parameter.named_child(at).filter(|_| is_bound));
        let named = parts[0].and_then(|it| it.named_child(0)).unwrap_or(parameter);
        let named =
            if Kind::at(walk, named) == Some(Kind::Identifier) { Some(named) } else { named.named_child(0) };
        let Some(named) = named else { continue };
        let seen = parts[1].map_or(Seen::Unknown, |bound| of_type(walk, bound));
        let name = walk.text(named);
        walk.local(&type_key(&name), range(item), seen, true);
        of_no_type(walk, &name, range(item));
    }
}

fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    let Some(parameters) = walk.field(function, Field::Parameters as u8) else { return };
    let mut cursor = parameters.walk();
    for parameter in parameters.named_children(&mut cursor) {
        let named = match Kind::at(walk, parameter) {
            Some(Kind::Identifier) => Some(parameter),
            Some(Kind::DefaultParameter | Kind::TypedDefault) => walk.field(parameter, Field::Name as u8),
            Some(Kind::TypedParameter | Kind::Splat | Kind::DictionarySplat) => parameter.named_child(0),
            _ => None,
        };
        // `*names: Type`
        let named = named.and_then(|named| match Kind::at(walk, named) {
            Some(Kind::Splat | Kind::DictionarySplat) => named.named_child(0),
            _ => Some(named),
        });
        let Some(named) = named.filter(|named| Kind::at(walk, *named) == Some(Kind::Identifier)) else {
            continue;
        };
        let name = walk.text(named);
        if matches!(&*name, "self" | "cls") {
            continue;
        }
        let typed = walk.field(parameter, Field::Type as u8);
        let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
        // Another value may be bound to the name, which need not have the type that is written here.
        walk.local(&name, range(function), seen, false);
    }
}

/// `s = …` within a function, and `self.s = …` anywhere in a class.
pub(super) fn assigned(walk: &mut Walk<'_>, node: Node<'_>, left: Node<'_>) {
    let seen = of_assignment(walk, node);
    let typed = walk.field(node, Field::Type as u8).is_some();
    let path = dotted(walk, left);
    if let Some(field) = path.as_deref().and_then(own_field) {
        if let Some(class) = class_around(walk) {
            walk.local(&format!("this.{field}"), class, seen, typed);
        }
        return;
    }
    let Some(scope) = function_around(walk) else { return };
    if Kind::at(walk, left) == Some(Kind::Identifier) {
        one_assigned(walk, left, scope, seen, typed);
        return;
    }
    for name in bound_names(walk, left) {
        one_assigned(walk, name, scope.clone(), Seen::Unknown, true);
    }
}

fn one_assigned(walk: &mut Walk<'_>, name: Node<'_>, scope: Range<u32>, seen: Seen, typed: bool) {
    let (text, at) = (walk.text(name), offset(name.start_byte()));
    if walk.facts.locals.is_outside(&text, at) {
        walk.facts.locals.assign(&text, at, walk.scope.owner, seen);
    } else {
        walk.local(&text, scope, seen, typed);
    }
}

/// `s += …` makes a value of a type that the operator says, where it is not one of the language's own types.
pub(super) fn changed(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(left) = walk.field(node, Field::Left as u8) else { return };
    let Some(path) = dotted(walk, left) else { return };
    let is_field = own_field(&path).is_some();
    let name = own_field(&path).map_or_else(|| path.clone(), |field| format!("this.{field}"));
    let known = walk.facts.locals.seen(&name, offset(left.start_byte()));
    if !matches!(known, Some(Seen::Of(_))) {
        return;
    }
    match (function_around(walk), class_around(walk)) {
        (_, Some(class)) if is_field => walk.local(&name, class, Seen::Unknown, false),
        (Some(scope), _) if !is_field => one_assigned(walk, left, scope, Seen::Unknown, false),
        _ => {}
    }
}

/// `x` of `self.x`.
pub(super) fn own_field(path: &str) -> Option<&str> {
    let field = path.strip_prefix("self.").or_else(|| path.strip_prefix("cls."))?;
    (!field.contains('.')).then_some(field)
}

/// The value that an assignment gives to a name, by its annotation or else by the assigned expression.
pub(super) fn of_assignment(walk: &Walk<'_>, node: Node<'_>) -> Seen {
    match walk.field(node, Field::Type as u8) {
        Some(typed) => of_type(walk, typed),
        None => walk.field(node, Field::Right as u8).map_or(Seen::Unset, |value| of_value(walk, value)),
    }
}

fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    one_of(walk, value, 0)
}

fn one_of(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    let either = |values: [Option<Node<'_>>; 2]| {
        let [one, other] = values.map(|it| it.map_or(Seen::Unknown, |it| one_of(walk, it, depth + 1)));
        one.or(other)
    };
    let mut value = value;
    for _ in depth..NESTED_MAX {
        match Kind::at(walk, value) {
            // The condition is in the middle.
            Some(Kind::Conditional) => return either([value.named_child(0), value.named_child(2)]),
            Some(Kind::BooleanOperator) => {
                return either([Field::Left, Field::Right].map(|field| walk.field(value, field as u8)));
            }
            Some(Kind::NamedExpression) => match walk.field(value, Field::Value as u8) {
                Some(inner) => value = inner,
                None => return Seen::Unknown,
            },
            Some(Kind::Parenthesized) => match value.named_child(0) {
                Some(inner) => value = inner,
                None => return Seen::Unknown,
            },
            Some(Kind::Call) => {
                let class = walk.field(value, Field::Function as u8).and_then(|it| dotted(walk, it));
                let at = offset(value.start_byte());
                return class.map_or(Seen::Unknown, |class| match made_by(&class) {
                    // Of a class that a parameter stands for, nothing is known.
                    Seen::Of(class)
                        if walk
                            .facts
                            .locals
                            .seen(class.split('.').next().unwrap_or(&class), at)
                            .is_some() =>
                    {
                        Seen::Several
                    }
                    seen => seen,
                });
            }
            Some(
                Kind::Dictionary
                | Kind::List
                | Kind::Set
                | Kind::Tuple
                | Kind::String
                | Kind::ListComprehension
                | Kind::DictionaryComprehension
                | Kind::SetComprehension
                | Kind::Integer
                | Kind::Float,
            ) => return Seen::BuiltIn,
            Some(Kind::None) => return Seen::Unset,
            Some(Kind::Identifier) => {
                let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
                return known.filter(|seen| **seen != Seen::Unset).cloned().unwrap_or(Seen::Unknown);
            }
            _ => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// The value that a call makes: by the convention of names, an instance if the name is that of a class.
fn made_by(path: &str) -> Seen {
    let name = path.rsplit('.').next().unwrap_or(path);
    match () {
        () if BUILT_IN.contains(&path) => Seen::BuiltIn,
        () if name.trim_start_matches('_').starts_with(char::is_uppercase) => Seen::Of(path.into()),
        () => Seen::Unknown,
    }
}

pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, typed) {
            Some(Kind::Type | Kind::TypeParameter | Kind::Parenthesized) => typed.named_child(0),
            Some(Kind::Identifier | Kind::Attribute) => {
                return dotted(walk, typed).map_or(Seen::Unknown, |path| named_here(walk, &path, typed));
            }
            Some(Kind::String) => {
                let mut cursor = typed.walk();
                let text = typed
                    .named_children(&mut cursor)
                    .find(|it| Kind::at(walk, *it) == Some(Kind::StringContent));
                let path = text.map(|text| walk.text(text)).unwrap_or_default();
                let is_path = path.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '.'));
                return if is_path && !path.is_empty() {
                    named_here(walk, &path, typed)
                } else {
                    Seen::Unknown
                };
            }
            Some(Kind::GenericType | Kind::Subscript) => {
                let name = walk.field(typed, Field::Value as u8).or_else(|| typed.named_child(0));
                let Some(name) = name.and_then(|name| dotted(walk, name)) else { return Seen::Unknown };
                // These say something of the type that they hold.
                if !matches!(
                    name.rsplit('.').next(),
                    Some("Optional" | "Annotated" | "Final" | "ClassVar" | "Required" | "NotRequired")
                ) {
                    return named_here(walk, &name, typed);
                }
                typed.named_child(1)
            }
            Some(Kind::BinaryOperator) => {
                let parts = [Field::Left, Field::Right].map(|field| walk.field(typed, field as u8));
                let mut parts =
                    parts.into_iter().flatten().filter(|part| Kind::at(walk, *part) != Some(Kind::None));
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

/// An instance of a type by its path, at a place. A parameter of types stands for its bound.
fn named_here(walk: &Walk<'_>, path: &str, at: Node<'_>) -> Seen {
    let bound = walk.facts.locals.seen(&type_key(path), offset(at.start_byte()));
    bound.cloned().unwrap_or_else(|| named_type(path))
}

fn named_type(path: &str) -> Seen {
    match path.rsplit('.').next() {
        Some("Any" | "object" | "Self" | "Union") => Seen::Unknown,
        _ if BUILT_IN.contains(&path) => Seen::BuiltIn,
        _ => Seen::Of(path.into()),
    }
}

/// The receiver of a call, where it is an expression that shows its type: `S().f()`, `"".f()`.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Option<Receiver> {
    if Kind::at(walk, object) == Some(Kind::Identifier) {
        return None;
    }
    of_value(walk, object).receiver()
}
