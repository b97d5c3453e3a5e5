//! Types as they are written in Go, and the values of names, as far as their types can be seen.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Kind as Sort, Receiver};
use super::go::{Field, Kind};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

/// The language's own types; `error` has one method.
const BUILT_IN: &[&str] = &[
    "any",
    "bool",
    "byte",
    "complex128",
    "complex64",
    "error",
    "float32",
    "float64",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "rune",
    "string",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uintptr",
];

/// The language's own functions; a conversion to one of its types looks like a call, too.
const FUNCTIONS: &[&str] = &[
    "append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len", "make", "max", "min",
    "new", "panic", "print", "println", "real", "recover",
];

pub(super) fn is_built_in_function(name: &str) -> bool {
    FUNCTIONS.contains(&name) || BUILT_IN.contains(&name)
}

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// The name of a type, `Store` or `pkg.Store`, also behind a pointer; none of one without a name.
pub(super) fn path_of(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::TypeIdentifier | Kind::Identifier => return Some(walk.text(typed).into_owned()),
            Kind::QualifiedType => {
                let parts = [Field::Package, Field::Name].map(|field| walk.field(typed, field as u8));
                let [Some(package), Some(name)] = parts else { return None };
                return Some(format!("{}.{}", walk.text(package), walk.text(name)));
            }
            Kind::GenericType => walk.field(typed, Field::Type as u8)?,
            Kind::PointerType | Kind::ParenthesizedType | Kind::TypeElem => typed.named_child(0)?,
            // Of several that it may be, none is known.
            Kind::TypeConstraint if typed.named_child_count() == 1 => typed.named_child(0)?,
            _ => return None,
        };
    }
    None
}

/// What is known of a value by its type.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    match path_of(walk, typed) {
        Some(path) if BUILT_IN.contains(&path.as_str()) => Seen::BuiltIn,
        Some(path) => walk.of_path(path, typed),
        None => match Kind::at(walk, typed) {
            Some(Kind::SliceType | Kind::ArrayType | Kind::MapType | Kind::ChannelType) => Seen::BuiltIn,
            _ => Seen::Unknown,
        },
    }
}

/// What a function gives back, or the first of several.
pub(super) fn of_result(walk: &Walk<'_>, function: Node<'_>) -> Seen {
    let Some(result) = walk.field(function, Field::Result as u8) else { return Seen::Unknown };
    if Kind::at(walk, result) != Some(Kind::ParameterList) {
        return of_type(walk, result);
    }
    let first = result.named_child(0).and_then(|first| walk.field(first, Field::Type as u8));
    first.map_or(Seen::Unknown, |typed| of_type(walk, typed))
}

/// The types that a struct or an interface takes the members of.
pub(super) fn embedded(walk: &Walk<'_>, typed: Node<'_>, sort: Sort) -> Vec<Box<str>> {
    let mut found = Vec::new();
    match Kind::at(walk, typed) {
        Some(Kind::StructType) => {
            let Some(list) = typed.named_child(0) else { return found };
            let mut cursor = list.walk();
            for field in list.named_children(&mut cursor) {
                if Kind::at(walk, field) == Some(Kind::FieldDeclaration)
                    && walk.field(field, Field::Name as u8).is_none()
                {
                    let path = walk.field(field, Field::Type as u8).and_then(|typed| path_of(walk, typed));
                    found.extend(path.map(Into::into));
                }
            }
        }
        Some(Kind::InterfaceType) => {
            let mut cursor = typed.walk();
            let elements =
                typed.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) == Some(Kind::TypeElem));
            let alone = elements.filter(|it| it.named_child_count() == 1);
            found.extend(alone.filter_map(|it| path_of(walk, it)).map(Into::into));
        }
        // `type A = B` has the methods of B; `type A B` has its fields alone.
        _ if sort == Sort::TypeAlias => found.extend(path_of(walk, typed).map(Into::into)),
        _ => {}
    }
    found
}

/// An expression without brackets and type arguments around it.
pub(super) fn unwrapped<'t>(walk: &Walk<'_>, node: Node<'t>) -> Node<'t> {
    let mut node = node;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, node) {
            Some(Kind::Parenthesized) => node.named_child(0),
            Some(Kind::Instantiation) => walk.field(node, Field::Type as u8).or_else(|| node.named_child(0)),
            Some(Kind::Index) => walk.field(node, Field::Operand as u8),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    let mut value = value;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Unary) => match walk.source.get(value.start_byte()) {
                Some(b'&' | b'*') => walk.field(value, Field::Operand as u8),
                _ => return Seen::Unknown,
            },
            Some(Kind::Parenthesized) => value.named_child(0),
            Some(Kind::Composite | Kind::Assertion) => {
                let typed = walk.field(value, Field::Type as u8);
                return typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::Call) => return called(walk, value),
            Some(
                Kind::String
                | Kind::RawString
                | Kind::Rune
                | Kind::Int
                | Kind::Float
                | Kind::True
                | Kind::False,
            ) => {
                return Seen::BuiltIn;
            }
            Some(Kind::Nil) => return Seen::Unset,
            Some(Kind::Identifier) => {
                let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
                return known.cloned().unwrap_or(Seen::Unknown);
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

/// What a call gives back: the graph looks up what the function says of it.
fn called(walk: &Walk<'_>, call: Node<'_>) -> Seen {
    let Some(function) = walk.field(call, Field::Function as u8) else { return Seen::Unknown };
    let function = unwrapped(walk, function);
    match names(walk, function) {
        Some(path) if path == "new" => {
            let argument = call.child_by_field_name("arguments").and_then(|it| it.named_child(0));
            argument.map_or(Seen::Unknown, |typed| of_type(walk, typed))
        }
        Some(path) if is_built_in_function(&path) => Seen::BuiltIn,
        Some(path) => {
            // Through a local, only its type leads to what is called.
            let (first, rest) = path.split_once('.').unwrap_or((&path, ""));
            match walk.facts.locals.seen(first, offset(call.start_byte())) {
                Some(Seen::Of(class)) if !rest.is_empty() => Seen::Of(format!("{class}.{rest}").into()),
                Some(_) => Seen::Unknown,
                None => Seen::Of(path.into()),
            }
        }
        None => Seen::Unknown,
    }
}

/// `a.b.c`, if it is nothing but names.
fn names(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    let (mut found, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::Selector => {
                found.push(walk.text(walk.field(value, Field::Member as u8)?).into_owned());
                value = walk.field(value, Field::Operand as u8)?;
            }
            Kind::Parenthesized => value = value.named_child(0)?,
            Kind::Identifier => {
                found.push(walk.text(value).into_owned());
                found.reverse();
                return Some(found.join("."));
            }
            _ => return None,
        }
    }
    None
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, operand: Node<'_>) -> Receiver {
    match names(walk, operand) {
        Some(path) => Receiver::Path(path.into()),
        None => of_value(walk, operand).receiver().unwrap_or(Receiver::Other),
    }
}

// Names that functions have for themselves.

/// The types that a declaration takes as parameters: what is known of them is their bound, if that is one type.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(parameters) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut cursor = parameters.walk();
    for parameter in parameters.named_children(&mut cursor) {
        let mut inner = parameter.walk();
        let names: Vec<Node<'_>> = parameter.children_by_field_name("name", &mut inner).collect();
        let bound = bound_of(walk, parameter);
        for name in names.into_iter().filter(|name| name.is_named()) {
            let name = walk.text(name);
            walk.local(
                &name,
                range(item),
                bound.clone().map_or(Seen::Unknown, |it| Seen::Of(it.into())),
                true,
            );
        }
    }
}

/// The types that a method's receiver gives names to: `T` of `func (k *Kept[T]) …`. What is known of them are the bounds that the
/// type has for them, if it is in this file.
pub(super) fn types_of_receiver(walk: &mut Walk<'_>, typed: Node<'_>, method: Node<'_>) {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        match (Kind::at(walk, typed), typed.named_child(0)) {
            (Some(Kind::PointerType | Kind::ParenthesizedType), Some(inner)) => typed = inner,
            _ => break,
        }
    }
    let parts = [Field::Type, Field::TypeArguments].map(|field| walk.field(typed, field as u8));
    let ([Some(of), Some(arguments)], Some(Kind::GenericType)) = (parts, Kind::at(walk, typed)) else {
        return;
    };
    if walk.notes.bounds.is_none() {
        walk.notes.bounds = method.parent().map(|file| bounds_in(walk, file));
    }
    let of = walk.text(of);
    let bounds = walk.notes.bounds.as_ref().and_then(|all| all.get(&*of)).cloned().unwrap_or_default();
    let mut cursor = arguments.walk();
    for (nth, argument) in arguments.named_children(&mut cursor).enumerate() {
        if let Some(name) = path_of(walk, argument).filter(|name| name != "_") {
            let bound = bounds.get(nth).cloned().flatten();
            walk.local(&name, range(method), bound.map_or(Seen::Unknown, Seen::Of), true);
        }
    }
}

/// The bounds that the types at the top of a file have for their parameters, in order, by the types' names.
fn bounds_in(walk: &Walk<'_>, file: Node<'_>) -> BTreeMap<Box<str>, Vec<Option<Box<str>>>> {
    let mut found = BTreeMap::new();
    let mut cursor = file.walk();
    let is_types = |it: &Node<'_>| Kind::at(walk, *it) == Some(Kind::TypeDeclaration);
    for declaration in file.named_children(&mut cursor).filter(is_types) {
        let mut cursor = declaration.walk();
        for typed in declaration.named_children(&mut cursor) {
            let parts = [Field::Name, Field::TypeParameters].map(|field| walk.field(typed, field as u8));
            let [Some(name), Some(parameters)] = parts else { continue };
            let mut bounds = Vec::new();
            let mut cursor = parameters.walk();
            for parameter in parameters.named_children(&mut cursor) {
                let bound = bound_of(walk, parameter);
                let mut cursor = parameter.walk();
                let names = parameter.children_by_field_name("name", &mut cursor).filter(Node::is_named);
                bounds.extend(names.map(|_| bound.clone().map(Into::into)));
            }
            found.insert(walk.text(name).into(), bounds);
        }
    }
    found
}

/// The bound of a parameter of types, if that is one type.
fn bound_of(walk: &Walk<'_>, parameter: Node<'_>) -> Option<String> {
    let bound = walk.field(parameter, Field::Type as u8).and_then(|it| path_of(walk, it));
    bound.filter(|it| !BUILT_IN.contains(&it.as_str()) && it != "comparable")
}

/// What a function calls its arguments and its results.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>, scope: Node<'_>) {
    for field in [Field::Parameters, Field::Result] {
        let list = walk.field(function, field as u8);
        if let Some(list) = list.filter(|list| Kind::at(walk, *list) == Some(Kind::ParameterList)) {
            receiver_parameters(walk, list, scope);
        }
    }
}

/// The names in a list of parameters, and in that of the receiver.
pub(super) fn receiver_parameters(walk: &mut Walk<'_>, list: Node<'_>, scope: Node<'_>) {
    let mut cursor = list.walk();
    for parameter in list.named_children(&mut cursor) {
        let kind = Kind::at(walk, parameter);
        let typed = walk.field(parameter, Field::Type as u8);
        let seen = match (kind, typed) {
            (Some(Kind::Parameter), Some(typed)) => of_type(walk, typed),
            (Some(Kind::Variadic), _) => Seen::BuiltIn,
            _ => continue,
        };
        let mut inner = parameter.walk();
        let names: Vec<Node<'_>> = parameter.children_by_field_name("name", &mut inner).collect();
        for name in names {
            if Kind::at(walk, name) == Some(Kind::Identifier) {
                let name = walk.text(name);
                walk.local(&name, range(scope), seen.clone(), true);
            }
        }
    }
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Block
                    | Kind::If
                    | Kind::For
                    | Kind::Switch
                    | Kind::TypeSwitch
                    | Kind::TypeCase
                    | Kind::Case
                    | Kind::DefaultCase
                    | Kind::CommunicationCase
                    | Kind::Literal
                    | Kind::Function
                    | Kind::Method
            )
        )
    })
}

/// `a, b := …`, what a loop goes through, what is received, what a `switch` over types gives a name to.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let (left, scope) = match kind {
        Kind::TypeSwitch => (walk.field(node, Field::Alias as u8), Some(range(node))),
        // Code in the same statement does not know the name yet.
        _ => {
            let end = offset(node.end_byte());
            (walk.field(node, Field::Left as u8), scope_around(walk).map(|it| end.min(it.end)..it.end))
        }
    };
    let (Some(left), Some(scope)) = (left, scope) else { return };
    if kind == Kind::TypeSwitch {
        let name = walk.text(left).trim().into();
        walk.notes.subjects.insert(offset(node.start_byte()), name);
    }
    let right = walk.field(node, Field::Right as u8).filter(|_| kind == Kind::ShortVar);
    give(walk, left, right, &scope);
}

/// In a case of one type, what is switched over has that type.
pub(super) fn in_case(walk: &mut Walk<'_>, case: Node<'_>) {
    let around = walk.range_above(|kind| Kind::of(kind) == Some(Kind::TypeSwitch));
    let name = around.and_then(|it| walk.notes.subjects.get(&it.start).cloned());
    let mut cursor = case.walk();
    let types: Vec<Node<'_>> =
        case.children_by_field_name("type", &mut cursor).filter(Node::is_named).collect();
    if let (Some(name), [only]) = (name, &types[..]) {
        let seen = of_type(walk, *only);
        walk.local(&name, range(case), seen, false);
    }
}

/// Names on the left, and values; the first stands for all if it is a call that gives back several.
fn give(walk: &mut Walk<'_>, left: Node<'_>, right: Option<Node<'_>>, scope: &Range<u32>) {
    let mut cursor = left.walk();
    let mut names: Vec<Node<'_>> = left.named_children(&mut cursor).collect();
    if Kind::at(walk, left) == Some(Kind::Identifier) {
        names = vec![left];
    }
    let values: Vec<Node<'_>> = right.map_or(Vec::new(), |right| {
        let mut cursor = right.walk();
        right.named_children(&mut cursor).collect()
    });
    for (at, name) in names.iter().enumerate() {
        if Kind::at(walk, *name) != Some(Kind::Identifier) {
            continue;
        }
        let value =
            if values.len() == names.len() { values.get(at) } else { values.first().filter(|_| at == 0) };
        let seen = value.map_or(Seen::Unknown, |value| of_value(walk, *value));
        let text = walk.text(*name);
        walk.local(&text, scope.clone(), seen, false);
    }
}

/// `var a T = …` and `const a = …` within a function.
pub(super) fn declared(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(scope) = scope_around(walk) else { return };
    let typed = walk.field(node, Field::Type as u8);
    let value = walk.field(node, Field::Value as u8).and_then(|list| list.named_child(0));
    let mut cursor = node.walk();
    let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut cursor).collect();
    let alone = names.len() == 1;
    for name in names {
        if Kind::at(walk, name) != Some(Kind::Identifier) {
            continue;
        }
        let seen = match (typed, value) {
            (Some(typed), _) => of_type(walk, typed),
            (None, Some(value)) if alone => of_value(walk, value),
            _ => Seen::Unknown,
        };
        let text = walk.text(name);
        walk.local(&text, scope.clone(), seen, typed.is_some());
    }
}
