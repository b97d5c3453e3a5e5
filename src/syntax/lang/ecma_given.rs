//! The types of callbacks' parameters in TypeScript, and the functions that are passed as callbacks.

use tree_sitter::Node;

use super::super::walk::Walk;
use super::super::{Given, locals::Seen};
use super::ecma::{Field, Kind};
use super::ecma_locals::{class_of_this, is_chosen, of_type, seen_of};
use super::ecma_names::{dotted, unwrapped};
use provost_base::limits::SOURCE_FACTS_MAX;

/// The most arguments of a call that are examined.
const PLACES_MAX: u8 = 16;

/// The deepest nesting of types that is followed.
const NESTED_MAX: usize = 8;

/// The parameters of a function with their places; `this` has none.
pub(super) fn in_places<'t>(walk: &Walk<'_>, parameters: Node<'t>) -> Vec<(u8, Node<'t>)> {
    let mut cursor = parameters.walk();
    let counts = |it: &Node<'t>| {
        let pattern = walk.field(*it, Field::Pattern as u8).unwrap_or(*it);
        !matches!(Kind::at(walk, pattern), Some(Kind::This | Kind::Comment | Kind::Decorator))
    };
    (0..Given::ITSELF).zip(parameters.named_children(&mut cursor).filter(counts)).collect()
}

/// The function types in a type.
enum Functions<'t> {
    /// A function type that is written out.
    Written(Node<'t>),
    /// The name of a type, which may be a function type.
    Named(Node<'t>),
    Nothing,
}

fn functions<'t>(walk: &Walk<'_>, typed: Node<'t>) -> Functions<'t> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, typed) {
            Some(Kind::TypeAnnotation | Kind::ParenthesizedType) => typed.named_child(0),
            Some(Kind::FunctionType) => return Functions::Written(typed),
            Some(Kind::TypeIdentifier | Kind::NestedType | Kind::GenericType) => {
                return Functions::Named(typed);
            }
            Some(Kind::Union) => return one_of(walk, typed),
            _ => None,
        };
        match inner {
            Some(inner) => typed = inner,
            None => break,
        }
    }
    Functions::Nothing
}

/// The only one of several types that is one of functions.
fn one_of<'t>(walk: &Walk<'_>, union: Node<'t>) -> Functions<'t> {
    let (mut waiting, mut written) = (vec![union], Vec::new());
    while let Some(node) = waiting.pop() {
        match Kind::at(walk, node) {
            // A union of three is one of two in another one.
            Some(Kind::Union | Kind::ParenthesizedType) if written.len() < NESTED_MAX => {
                let mut cursor = node.walk();
                waiting.extend(node.named_children(&mut cursor));
            }
            Some(Kind::FunctionType) => written.push(node),
            _ => {}
        }
    }
    if let [only] = written[..] { Functions::Written(only) } else { Functions::Nothing }
}

/// The names of the types that a function or a type is made for.
fn made_for<'a>(walk: &Walk<'a>, node: Node<'_>) -> Vec<std::borrow::Cow<'a, str>> {
    let Some(list) = walk.field(node, Field::TypeParameters as u8) else { return Vec::new() };
    let mut cursor = list.walk();
    list.named_children(&mut cursor)
        .filter_map(|it| walk.field(it, Field::Name as u8))
        .map(|it| walk.text(it))
        .collect()
}

/// Records what a function gives to those that it is given, by its signature.
pub(super) fn record(walk: &mut Walk<'_>, symbol: Option<u32>, function: Node<'_>) {
    let Some(symbol) = symbol else { return };
    let Some(parameters) = walk.field(function, Field::Parameters as u8) else { return };
    let mut made_for = made_for(walk, function);
    for (argument, parameter) in in_places(walk, parameters) {
        let Some(typed) = walk.field(parameter, Field::Type as u8) else { continue };
        match functions(walk, typed) {
            Functions::Written(written) => {
                let outer = made_for.len();
                made_for.extend(self::made_for(walk, written));
                takes(walk, symbol, argument, written, &made_for);
                made_for.truncate(outer);
            }
            Functions::Named(named) => given(walk, symbol, (argument, Given::ALL), named, &made_for),
            Functions::Nothing => {}
        }
    }
}

/// Records what functions of a type are given, and give to those that they are given.
pub(super) fn record_type(walk: &mut Walk<'_>, symbol: Option<u32>, alias: Node<'_>, value: Node<'_>) {
    if let (Some(at), Functions::Written(written)) = (symbol, functions(walk, value)) {
        let made_for = made_for(walk, alias);
        takes(walk, at, Given::ITSELF, written, &made_for);
        record(walk, symbol, written);
    }
}

fn takes(
    walk: &mut Walk<'_>,
    symbol: u32,
    argument: u8,
    written: Node<'_>,
    made_for: &[std::borrow::Cow<'_, str>],
) {
    let Some(parameters) = walk.field(written, Field::Parameters as u8) else { return };
    for (parameter, node) in in_places(walk, parameters) {
        if let Some(typed) = walk.field(node, Field::Type as u8) {
            given(walk, symbol, (argument, parameter), typed, made_for);
        }
    }
}

fn given(
    walk: &mut Walk<'_>,
    symbol: u32,
    (argument, parameter): (u8, u8),
    typed: Node<'_>,
    made_for: &[std::borrow::Cow<'_, str>],
) {
    // Of a type that the caller chooses, nothing is known: what a class of it has may be another thing than what its bound has.
    if is_chosen(walk, typed, made_for) {
        return;
    }
    let Seen::Of(class) = of_type(walk, typed) else { return };
    if walk.facts.given.len() < SOURCE_FACTS_MAX && walk.spend(class.len()) {
        walk.facts.given.push(Given { symbol, argument, parameter, class });
    }
}

/// Remembers of the functions among the arguments of a call to what they are given.
pub(super) fn arguments(walk: &mut Walk<'_>, call: Node<'_>, called: Node<'_>) {
    let Some(arguments) = walk.field(call, Field::Arguments as u8) else { return };
    if Kind::at(walk, arguments) != Some(Kind::Arguments) {
        return;
    }
    let mut cursor = arguments.walk();
    let values =
        arguments.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) != Some(Kind::Comment));
    let functions: Vec<(u8, Node<'_>)> = (0..PLACES_MAX)
        .zip(values)
        .map(|(at, value)| (at, unwrapped(walk, value)))
        .filter(|(_, value)| Kind::at(walk, *value).is_some_and(Kind::is_function))
        .collect();
    if functions.is_empty() {
        return;
    }
    let Some(path) = path_of(walk, called) else { return };
    for (argument, function) in functions {
        walk.notes.given_to.insert(function.id(), (path.clone(), argument));
    }
}

/// The path of what is called, from a name that is none of the function around.
fn path_of(walk: &Walk<'_>, called: Node<'_>) -> Option<Box<str>> {
    let called = unwrapped(walk, called);
    let Some(path) = dotted(walk, called) else {
        // `new Store().each(…)`
        let object = walk.field(called, Field::Object as u8)?;
        let name = walk.text(walk.field(called, Field::Property as u8)?);
        return match seen_of(walk, object) {
            Seen::Of(class) => Some(format!("{class}.{name}").into()),
            _ => None,
        };
    };
    let (first, rest) = path.split_once('.').unwrap_or((&path, ""));
    if first == "this" {
        let class = class_of_this(walk).and_then(|_| class_name(walk))?;
        return (!rest.is_empty() && !rest.contains('.')).then(|| format!("{class}.{rest}").into());
    }
    let at = u32::try_from(called.start_byte()).ok()?;
    match walk.facts.locals.seen(first, at) {
        None => Some(path.into()),
        Some(Seen::Of(class)) if !rest.is_empty() && !rest.contains('.') => {
            Some(format!("{class}.{rest}").into())
        }
        Some(_) => None,
    }
}

/// The path of the class around.
pub(super) fn class_name<'w>(walk: &'w Walk<'_>) -> Option<&'w str> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        let symbol = &walk.facts.symbols[at as usize];
        if symbol.kind == super::super::Kind::Class {
            return Some(&symbol.path);
        }
        around = symbol.parent;
    }
    None
}
