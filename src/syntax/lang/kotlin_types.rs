//! Types as they are written in Kotlin, and the values of names, as far as their types can be seen.

use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Found, Walk};
use super::super::{Kind as Sort, Receiver};
use super::children::{child_of, children_of};
use super::kotlin::{Field, Kind};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

/// The name by which the value of `this` is known if it is not the class around: no local has this name.
const THIS: &str = "this";

const TYPES: &[Kind] =
    &[Kind::UserType, Kind::NullableType, Kind::NonNullableType, Kind::ParenthesizedType, Kind::FunctionType];

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// A name without the marks of one that is no word.
pub(super) fn name(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.text(node).trim_matches('`').to_owned()
}

/// `a.b.c` without blanks and marks.
pub(super) fn plain_text(walk: &Walk<'_>, node: Node<'_>) -> String {
    walk.text(node).chars().filter(|it| !it.is_whitespace() && *it != '`').collect()
}

/// The first type that stands directly within a node.
pub(super) fn type_in<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<Node<'t>> {
    child_of(walk, node, TYPES)
}

/// The type that a function or a property extends, before its name, and the one that it gives back, behind its parameters.
pub(super) fn around_name<'t>(
    walk: &Walk<'_>,
    node: Node<'t>,
    named: Node<'_>,
    parameters: Option<Node<'_>>,
) -> (Option<Node<'t>>, Option<Node<'t>>) {
    let mut cursor = node.walk();
    let is_type = |it: &Node<'_>| Kind::at(walk, *it).is_some_and(|it| TYPES.contains(&it));
    let all: Vec<Node<'t>> = node.named_children(&mut cursor).filter(is_type).collect();
    let before = all.iter().find(|it| it.end_byte() <= named.start_byte()).copied();
    let behind =
        parameters.and_then(|list| all.iter().find(|it| it.start_byte() >= list.end_byte()).copied());
    (before, behind)
}

/// The name of a type, `Store` or `a.b.Store`, without its arguments; none of one without a name.
pub(super) fn path_of(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::UserType => {
                let names = children_of(walk, typed, Kind::Identifier);
                let names: Vec<String> = names.into_iter().map(|it| name(walk, it)).collect();
                return (!names.is_empty()).then(|| names.join("."));
            }
            Kind::NullableType | Kind::NonNullableType | Kind::ParenthesizedType => type_in(walk, typed)?,
            _ => return None,
        };
    }
    None
}

/// The types that stand behind the colon of a class.
pub(super) fn in_list(walk: &Walk<'_>, list: Node<'_>) -> Vec<Box<str>> {
    let typed = |it: Node<'_>| {
        let inner =
            child_of(walk, it, &[Kind::ConstructorInvocation, Kind::ExplicitDelegation]).unwrap_or(it);
        type_in(walk, inner).and_then(|typed| path_of(walk, typed))
    };
    children_of(walk, list, Kind::Specifier).into_iter().filter_map(typed).map(Into::into).collect()
}

/// What is known of a value by its type. A parameter of types stands for its bound.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    path_of(walk, typed).map_or(Seen::Unknown, |path| walk.of_path(path, typed))
}

/// An expression without brackets and `!!` around it.
pub(super) fn unwrapped<'t>(walk: &Walk<'_>, node: Node<'t>) -> Node<'t> {
    let mut node = node;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, node) {
            Some(Kind::Parenthesized) => node.named_child(0),
            Some(Kind::Unary) if walk.text(node).ends_with("!!") => walk.field(node, Field::Argument as u8),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

/// What stands before the last name of `a.b.c`, and that name.
pub(super) fn parts_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<(Node<'t>, String)> {
    let object = node.named_child(0)?;
    let last = node.named_child(u32::try_from(node.named_child_count().checked_sub(1)?).ok()?)?;
    (Kind::at(walk, last) == Some(Kind::Identifier) && last != object).then(|| (object, name(walk, last)))
}

/// The value that a declaration gives a name.
pub(super) fn value_in<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.find(|it| walk.is_token(*it, "="))?;
    children.find(Node::is_named)
}

/// What a function without a written type gives back, where its body is that alone.
pub(super) fn of_body(walk: &Walk<'_>, body: Node<'_>) -> Seen {
    let Some(value) = value_in(walk, body) else { return Seen::Unknown };
    let makes = |it: Node<'_>| {
        let called = it.named_child(0).filter(|called| Kind::at(walk, *called) == Some(Kind::Identifier));
        called.is_some_and(|called| walk.text(called).starts_with(char::is_uppercase))
    };
    match Kind::at(walk, value) {
        Some(Kind::Call) if makes(value) => of_value(walk, value),
        _ => Seen::Unknown,
    }
}

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    let value = unwrapped(walk, value);
    match Kind::at(walk, value) {
        Some(Kind::As) => {
            walk.field(value, Field::Right as u8).map_or(Seen::Unknown, |typed| of_type(walk, typed))
        }
        Some(Kind::String | Kind::MultilineString) => Seen::Of("String".into()),
        Some(Kind::Number) => Seen::Of("Int".into()),
        Some(Kind::Float) => Seen::Of("Double".into()),
        Some(Kind::Character) => Seen::Of("Char".into()),
        Some(Kind::Identifier) if &*walk.text(value) == "null" => Seen::Unset,
        Some(Kind::Identifier | Kind::Navigation | Kind::Call | Kind::This) => {
            path_to(walk, value).unwrap_or(Seen::Unknown)
        }
        _ => Seen::Unknown,
    }
}

/// What names and calls behind each other lead to: `a.b().c` is the `c` of what `a.b` gives back. The graph looks up what the
/// members say of themselves.
fn path_to(walk: &Walk<'_>, value: Node<'_>) -> Option<Seen> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        value = unwrapped(walk, value);
        let first = match Kind::at(walk, value)? {
            Kind::Navigation => {
                let (object, last) = parts_of(walk, value)?;
                // These give back what they are asked of.
                if !(matches!(&*last, "apply" | "also") && names.is_empty()) {
                    names.push(last);
                }
                value = object;
                continue;
            }
            Kind::Call => {
                value = value.named_child(0)?;
                continue;
            }
            Kind::Identifier => {
                let name = name(walk, value);
                match walk.facts.locals.seen(&name, offset(value.start_byte())) {
                    // Through a local, only its type leads on.
                    Some(Seen::Of(class)) => class.to_string(),
                    Some(other) => return names.is_empty().then(|| other.clone()),
                    None => name,
                }
            }
            Kind::This => match this_at(walk, value)? {
                Seen::Of(class) => class.to_string(),
                _ => return None,
            },
            Kind::Super => walk.own_type()?,
            _ => match of_value(walk, value) {
                Seen::Of(class) => class.to_string(),
                _ => return None,
            },
        };
        names.push(first);
        names.reverse();
        return Some(Seen::Of(names.join(".").into()));
    }
    None
}

/// What `this` is at a place; `this@Store` says it.
fn this_at(walk: &Walk<'_>, node: Node<'_>) -> Option<Seen> {
    let text = walk.text(node);
    if let Some((_, label)) = text.split_once('@') {
        let own = walk.own_type().unwrap_or_default();
        let path = own.split_inclusive('.').scan(String::new(), |path, part| {
            path.push_str(part);
            Some(path.trim_end_matches('.').to_owned())
        });
        let around = path.into_iter().find(|path| path.rsplit('.').next() == Some(label));
        return around.map(|path| Seen::Of(path.into()));
    }
    match walk.facts.locals.seen(THIS, offset(node.start_byte())) {
        Some(seen) => Some(seen.clone()),
        None => walk.own_type().map(|own| Seen::Of(own.into())),
    }
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>, called: &str) -> Receiver {
    let object = unwrapped(walk, object);
    let place = offset(object.start_byte());
    match Kind::at(walk, object) {
        Some(Kind::This) => match walk.facts.locals.seen(THIS, place) {
            None if !walk.text(object).contains('@') => Receiver::This,
            // Members of an object without a name have no names that others know.
            Some(_) if walk.facts.locals.seen(called, place).is_some() => Receiver::Local,
            _ => this_at(walk, object).and_then(Seen::receiver).unwrap_or(Receiver::Other),
        },
        Some(Kind::Super) => match walk.facts.locals.seen(THIS, place) {
            Some(seen) => seen.clone().receiver().unwrap_or(Receiver::Other),
            None => Receiver::Super,
        },
        _ => match plain_path(walk, object) {
            Some(path) => Receiver::Path(path.into()),
            None => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
        },
    }
}

/// `a.b.c`, if it is nothing but names.
fn plain_path(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::Navigation => {
                let (object, last) = parts_of(walk, value)?;
                names.push(last);
                value = object;
            }
            Kind::Identifier => {
                names.push(name(walk, value));
                names.reverse();
                return Some(names.join("."));
            }
            _ => return None,
        }
    }
    None
}

// Names that functions have for themselves.

/// A name that is known within a node.
pub(super) fn local(walk: &mut Walk<'_>, name: &str, within: Node<'_>, seen: Seen) {
    walk.local(name, range(within), seen, true);
}

/// The types that a declaration takes as parameters: what is known of them is their bound.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(parameters) = child_of(walk, item, &[Kind::TypeParameters]) else { return };
    for parameter in children_of(walk, parameters, Kind::TypeParameter) {
        let Some(named) = child_of(walk, parameter, &[Kind::Identifier]) else { continue };
        let seen = type_in(walk, parameter).map_or(Seen::Unknown, |bound| of_type(walk, bound));
        let name = name(walk, named);
        walk.local(&name, range(item), seen, true);
    }
}

/// What a function calls its arguments.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    let Some(list) = child_of(walk, function, &[Kind::Parameters]) else { return };
    for parameter in children_of(walk, list, Kind::Parameter) {
        let Some(named) = child_of(walk, parameter, &[Kind::Identifier]) else { continue };
        let seen = type_in(walk, parameter).map_or(Seen::Unknown, |typed| of_type(walk, typed));
        let name = name(walk, named);
        walk.local(&name, range(function), seen, true);
    }
}

/// In the code of what extends a type, `this` is of that type.
pub(super) fn this_of(walk: &mut Walk<'_>, receiver: Option<Node<'_>>, within: Node<'_>) {
    if let Some(receiver) = receiver {
        let seen = of_type(walk, receiver);
        walk.local(THIS, range(within), seen, true);
    }
}

/// What the lambda of a call is given, where the call says it: the receiver of `let` and `also`.
pub(super) fn lambda_of(walk: &mut Walk<'_>, call: Node<'_>, called: Node<'_>) {
    let Some(lambda) = child_of(walk, call, &[Kind::AnnotatedLambda]) else { return };
    let Some(lambda) = child_of(walk, lambda, &[Kind::Lambda]) else { return };
    if Kind::at(walk, called) != Some(Kind::Navigation) {
        return;
    }
    let Some((object, name)) = parts_of(walk, called) else { return };
    if matches!(&*name, "let" | "also" | "takeIf" | "takeUnless") {
        let seen = of_value(walk, object);
        walk.notes.given.insert(lambda.id(), seen);
    }
}

/// `{ a, b -> … }`, and `it` where nothing is said.
pub(super) fn lambda(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.open_anonymous();
    let given = walk.notes.given.remove(&node.id()).unwrap_or(Seen::Unknown);
    let Some(list) = child_of(walk, node, &[Kind::LambdaParameters]) else {
        return walk.local("it", range(node), given, true);
    };
    let alone = list.named_child_count() == 1;
    let mut cursor = list.walk();
    let all: Vec<Node<'_>> = list.named_children(&mut cursor).collect();
    for parameter in all {
        variables(walk, parameter, &range(node), if alone { given.clone() } else { Seen::Unknown });
    }
}

/// One variable, or several in brackets.
fn variables(walk: &mut Walk<'_>, node: Node<'_>, scope: &Range<u32>, seen: Seen) {
    match Kind::at(walk, node) {
        Some(Kind::Variable) => {
            let typed = type_in(walk, node).map(|typed| of_type(walk, typed));
            let Some(named) = child_of(walk, node, &[Kind::Identifier]) else { return };
            let name = name(walk, named);
            walk.local(&name, scope.clone(), typed.unwrap_or(seen), true);
        }
        Some(Kind::MultiVariable) => {
            for one in children_of(walk, node, Kind::Variable) {
                variables(walk, one, scope, Seen::Unknown);
            }
        }
        _ => {}
    }
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Block
                    | Kind::Lambda
                    | Kind::For
                    | Kind::Catch
                    | Kind::When
                    | Kind::WhenEntry
                    | Kind::Function
                    | Kind::Getter
                    | Kind::Setter
                    | Kind::ClassBody
                    | Kind::Source
            )
        )
    })
}

/// What a loop goes through, what is caught, the subject of a `when`, and names whose type is asked for.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::For => {
            if let Some(it) = child_of(walk, node, &[Kind::Variable, Kind::MultiVariable]) {
                variables(walk, it, &range(node), Seen::Unknown);
            }
        }
        Kind::Catch => {
            let seen = type_in(walk, node).map_or(Seen::Unknown, |typed| of_type(walk, typed));
            if let Some(named) = child_of(walk, node, &[Kind::Identifier]) {
                let name = name(walk, named);
                walk.local(&name, range(node), seen, true);
            }
        }
        Kind::WhenSubject => subject(walk, node),
        Kind::WhenEntry => {
            let test = walk.field(node, Field::Condition as u8);
            let test = test
                .filter(|it| Kind::at(walk, *it) == Some(Kind::TypeTest) && !walk.text(*it).starts_with('!'));
            let typed = test.and_then(|it| type_in(walk, it));
            // The subject is noted by the place of its `when`.
            let around = walk.above.last().map_or(0, |above| above.range().start);
            let named = walk.notes.subjects.get(&around).cloned();
            if let (Some(typed), Some(name)) = (typed, named) {
                let seen = of_type(walk, typed);
                walk.local(&name, range(node), seen, true);
            }
        }
        _ => if_it_is(walk, node),
    }
}

fn subject(walk: &mut Walk<'_>, node: Node<'_>) {
    let around = walk.range_above(|kind| Kind::of(kind) == Some(Kind::When));
    let Some(around) = around else { return };
    let named = match child_of(walk, node, &[Kind::Variable]) {
        Some(variable) => {
            let value = value_in(walk, node).map_or(Seen::Unknown, |value| of_value(walk, value));
            variables(walk, variable, &around, value);
            child_of(walk, variable, &[Kind::Identifier])
        }
        None => child_of(walk, node, &[Kind::Identifier]),
    };
    if let Some(named) = named {
        let name = name(walk, named).into_boxed_str();
        walk.notes.subjects.insert(around.start, name);
    }
}

/// `if (a is T) …`: within, it is one.
fn if_it_is(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(condition) = walk.field(node, Field::Condition as u8) else { return };
    if Kind::at(walk, condition) != Some(Kind::Is) || walk.text(condition).contains("!is") {
        return;
    }
    let [left, right] = [Field::Left, Field::Right].map(|field| walk.field(condition, field as u8));
    let (Some(left), Some(right)) = (left, right) else { return };
    let mut cursor = node.walk();
    let then = node.named_children(&mut cursor).find(|it| it.start_byte() >= condition.end_byte());
    if let (Some(Kind::Identifier), Some(then)) = (Kind::at(walk, left), then) {
        let (name, seen) = (name(walk, left), of_type(walk, right));
        walk.local(&name, range(then), seen, true);
    }
}

/// `val a: T = …` and `val (a, b) = …` within a function.
pub(super) fn declared(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(around) = scope_around(walk) else { return };
    let end = offset(node.end_byte());
    let scope = end.min(around.end)..around.end;
    let seen = value_in(walk, node).map_or(Seen::Unknown, |value| of_value(walk, value));
    if let Some(it) = child_of(walk, node, &[Kind::Variable, Kind::MultiVariable]) {
        variables(walk, it, &scope, seen);
    }
}

/// `val (a, b: T) = …` at the top of a script: the first name stands for all of it. Whether it is one.
pub(super) fn destructured(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let Some(list) = child_of(walk, node, &[Kind::MultiVariable]) else { return false };
    walk.attributes_end(node.start_byte());
    let mut first = None;
    for variable in children_of(walk, list, Kind::Variable) {
        let Some(named) = child_of(walk, variable, &[Kind::Identifier]) else { continue };
        let (name, typed) = (name(walk, named), type_in(walk, variable));
        if name == "_" {
            continue;
        }
        let signature = typed.and_then(|typed| {
            walk.sign(typed.byte_range().len(), |scribe| {
                scribe.word("val: ").node(typed);
            })
        });
        let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
        let range = if first.is_none() { node.byte_range() } else { variable.byte_range() };
        let found =
            Found { signature, seen, typed: typed.is_some(), ..Found::new(&name, Sort::Variable, range) };
        let at = walk.symbol(found);
        walk.declared_by(node, node.end_byte(), at);
        first = first.or(at);
    }
    walk.open(first);
    walk.open_for_owner();
    true
}

/// The members of an object without a name are known within it, and nowhere else.
pub(super) fn nameless(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(body) = child_of(walk, node, &[Kind::ClassBody]) else { return };
    let scope = range(body);
    let above = child_of(walk, node, &[Kind::Specifiers]).map_or(Vec::new(), |list| in_list(walk, list));
    let seen = above.into_iter().next().map_or(Seen::Unknown, Seen::Of);
    walk.local(THIS, scope.clone(), seen, true);
    for member in children_of(walk, body, Kind::Function) {
        if let Some(named) = walk.field(member, Field::Name as u8) {
            let name = name(walk, named);
            walk.local(&name, scope.clone(), Seen::Unknown, true);
        }
    }
    for member in children_of(walk, body, Kind::Property) {
        if let Some(it) = child_of(walk, member, &[Kind::Variable]) {
            variables(walk, it, &scope, Seen::Unknown);
        }
    }
}
