//! Types as they are written in C#, and the values of names, as far as their types can be seen.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Form, Receiver};
use super::children::{child_of, children_of};
use super::csharp::{Field, Kind};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

pub(super) fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The name of a type, `Store` or `A.B.Store`, without its arguments; none of one without a name.
pub(super) fn path_of(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let (mut names, mut typed) = (Vec::new(), typed);
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::Identifier | Kind::PredefinedType => {
                names.push(walk.text(typed).trim_start_matches('@').to_owned());
                names.reverse();
                return Some(names.join("."));
            }
            Kind::GenericName => typed.named_child(0)?,
            Kind::QualifiedName => {
                names.push(bare_name(walk, walk.field(typed, Field::Name as u8)?)?);
                walk.field(typed, Field::Qualifier as u8)?
            }
            Kind::AliasQualified => {
                names.push(bare_name(walk, walk.field(typed, Field::Name as u8)?)?);
                names.reverse();
                return Some(names.join("."));
            }
            Kind::NullableType | Kind::RefType | Kind::ScopedType => walk.field(typed, Field::Type as u8)?,
            _ => return None,
        };
    }
    None
}

/// A name without type arguments and without the mark of one that is also a word of the language.
pub(super) fn bare_name(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let name = match Kind::at(walk, node)? {
        Kind::Identifier => node,
        Kind::GenericName => node.named_child(0)?,
        _ => return None,
    };
    Some(walk.text(name).trim_start_matches('@').to_owned())
}

/// The types that stand behind the colon of a declaration.
pub(super) fn in_list(walk: &Walk<'_>, list: Node<'_>) -> Vec<Box<str>> {
    let mut cursor = list.walk();
    let typed = |it: Node<'_>| match Kind::at(walk, it) {
        Some(Kind::PrimaryBase) => walk.field(it, Field::Type as u8).and_then(|it| path_of(walk, it)),
        _ => path_of(walk, it),
    };
    list.named_children(&mut cursor).filter_map(typed).map(Into::into).collect()
}

/// What is known of a value by its type. A parameter of types stands for what it has to be.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    match path_of(walk, typed) {
        Some(path) if path == "void" => Seen::Unknown,
        Some(path) => walk.of_path(path, typed),
        None => match Kind::at(walk, typed) {
            Some(Kind::ArrayType | Kind::PointerType | Kind::TupleType) => Seen::BuiltIn,
            _ => Seen::Unknown,
        },
    }
}

/// What a function gives back; of a task what it is awaited for.
pub(super) fn of_result(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let name = path_of(walk, typed);
    let is_task = matches!(name.as_deref(), Some("Task" | "ValueTask"));
    let inner = child_of(walk, typed, &[Kind::TypeArguments]).and_then(|it| it.named_child(0));
    of_type(walk, inner.filter(|_| is_task).unwrap_or(typed))
}

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    let mut value = value;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized | Kind::Await | Kind::Postfix) => value.named_child(0),
            Some(Kind::Assignment) => walk.field(value, Field::Right as u8),
            Some(Kind::Creation | Kind::Cast) => {
                return walk
                    .field(value, Field::Type as u8)
                    .map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::As) => {
                return walk
                    .field(value, Field::Right as u8)
                    .map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::Conditional) => {
                let [one, other] = [Field::Consequence, Field::Alternative].map(|field| {
                    let of = walk.field(value, field as u8);
                    // Two of two of two … are not followed.
                    let of = of.filter(|it| Kind::at(walk, *it) != Some(Kind::Conditional));
                    of.map_or(Seen::Unknown, |it| of_value(walk, it))
                });
                return one.or(other);
            }
            Some(Kind::String | Kind::VerbatimString | Kind::RawString | Kind::InterpolatedString) => {
                return Seen::Of("string".into());
            }
            Some(Kind::Integer) => return Seen::Of("int".into()),
            Some(Kind::Boolean) => return Seen::Of("bool".into()),
            Some(Kind::Character | Kind::Real | Kind::Typeof) => return Seen::BuiltIn,
            Some(Kind::Null) => return Seen::Unset,
            Some(
                Kind::Identifier
                | Kind::GenericName
                | Kind::MemberAccess
                | Kind::ConditionalAccess
                | Kind::Invocation,
            ) => return path_to(walk, value).unwrap_or(Seen::Unknown),
            _ if walk.is_token(value, "this") => return path_to(walk, value).unwrap_or(Seen::Unknown),
            _ => return Seen::Unknown,
        };
        match inner {
            Some(inner) => value = inner,
            None => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// What names and calls behind each other lead to: `a.B().C` is the `C` of what `a.B` gives back. The graph looks up what the
/// members say of themselves.
fn path_to(walk: &Walk<'_>, value: Node<'_>) -> Option<Seen> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        let first = match Kind::at(walk, value) {
            Some(Kind::MemberAccess) => {
                names.push(bare_name(walk, walk.field(value, Field::Name as u8)?)?);
                value = walk.field(value, Field::Expression as u8)?;
                continue;
            }
            Some(Kind::ConditionalAccess) => {
                let binding = child_of(walk, value, &[Kind::MemberBinding])?;
                names.push(bare_name(walk, walk.field(binding, Field::Name as u8)?)?);
                value = walk.field(value, Field::Condition as u8)?;
                continue;
            }
            Some(Kind::Invocation) => {
                value = walk.field(value, Field::Function as u8)?;
                continue;
            }
            Some(Kind::Parenthesized | Kind::Await | Kind::Postfix) => {
                value = value.named_child(0)?;
                continue;
            }
            Some(Kind::Identifier | Kind::GenericName | Kind::AliasQualified | Kind::PredefinedType) => {
                let name = match Kind::at(walk, value) {
                    Some(Kind::AliasQualified | Kind::PredefinedType) => path_of(walk, value)?,
                    _ => bare_name(walk, value)?,
                };
                match walk.facts.locals.seen(&name, offset(value.start_byte())) {
                    // Through a local, only its type leads on.
                    Some(Seen::Of(class)) => class.to_string(),
                    Some(other) => return names.is_empty().then(|| other.clone()),
                    None => name,
                }
            }
            Some(_) => match of_value(walk, value) {
                Seen::Of(class) => class.to_string(),
                _ => return None,
            },
            None if walk.is_token(value, "this") || walk.is_token(value, "base") => walk.own_type()?,
            None => return None,
        };
        names.push(first);
        names.reverse();
        return Some(Seen::Of(names.join(".").into()));
    }
    None
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Receiver {
    let mut object = object;
    while matches!(Kind::at(walk, object), Some(Kind::Parenthesized | Kind::Postfix))
        && let Some(inner) = object.named_child(0)
    {
        object = inner;
    }
    if walk.is_token(object, "this") {
        return Receiver::This;
    }
    if walk.is_token(object, "base") {
        return Receiver::Super;
    }
    match plain_path(walk, object) {
        Some(path) => Receiver::Path(path.into()),
        None => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
    }
}

/// `a.B.c`, if it is nothing but names; what stands before `::` is left out.
fn plain_path(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::MemberAccess => {
                names.push(bare_name(walk, walk.field(value, Field::Name as u8)?)?);
                value = walk.field(value, Field::Expression as u8)?;
            }
            Kind::Identifier | Kind::GenericName => {
                names.push(bare_name(walk, value)?);
                break;
            }
            Kind::AliasQualified => {
                names.push(path_of(walk, value)?);
                break;
            }
            _ => return None,
        }
    }
    names.reverse();
    Some(names.join("."))
}

/// A call that makes an instance of the type of a path.
pub(super) fn call_new(walk: &mut Walk<'_>, node: Node<'_>, path: &str) {
    let (receiver, name) = match path.rsplit_once('.') {
        Some((before, name)) => (Receiver::Path(before.into()), name),
        None => (Receiver::None, path),
    };
    walk.call(node, name, receiver, Form::New);
}

/// `new(…)` for a variable or a field whose type stands before it.
pub(super) fn created(walk: &mut Walk<'_>, node: Node<'_>) {
    let around = [0, 1].map(|levels| Kind::of(walk.kind_above(levels)));
    if around != [Some(Kind::Declarator), Some(Kind::VariableDeclaration)] {
        return;
    }
    let [declarator, declaration] =
        [1, 2].map(|levels| walk.above[walk.above.len() - levels].range().start as usize);
    let typed =
        String::from_utf8_lossy(walk.source.get(declaration..declarator).unwrap_or_default()).into_owned();
    let path = without_blanks(typed.split(['<', '?', '[']).next().unwrap_or(&typed));
    if path.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '.')) && path != "var" {
        call_new(walk, node, &path);
    }
}

// Names that functions have for themselves.

/// The types that a declaration takes as parameters: what is known of them is what they have to be.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(parameters) = child_of(walk, item, &[Kind::TypeParameters]) else { return };
    let mut bounds: BTreeMap<String, Seen> = BTreeMap::new();
    for clause in children_of(walk, item, Kind::Constraints) {
        let Some(name) = child_of(walk, clause, &[Kind::Identifier]) else { continue };
        let typed = children_of(walk, clause, Kind::Constraint);
        let bound = typed.iter().find_map(|it| walk.field(*it, Field::Type as u8));
        if let Some(bound) = bound {
            bounds.entry(walk.text(name).into_owned()).or_insert_with(|| of_type(walk, bound));
        }
    }
    for parameter in children_of(walk, parameters, Kind::TypeParameter) {
        let Some(name) = walk.field(parameter, Field::Name as u8) else { continue };
        let name = walk.text(name);
        let seen = bounds.get(&*name).cloned().unwrap_or(Seen::Unknown);
        walk.local(&name, range(item), seen, true);
    }
}

/// What a function calls its arguments.
pub(super) fn in_parameters(walk: &mut Walk<'_>, list: Node<'_>, function: Node<'_>) {
    let scope = range(function);
    for parameter in children_of(walk, list, Kind::Parameter) {
        let Some(name) = walk.field(parameter, Field::Name as u8) else { continue };
        let seen =
            walk.field(parameter, Field::Type as u8).map_or(Seen::Unknown, |typed| of_type(walk, typed));
        let name = bare_name(walk, name).unwrap_or_default();
        walk.local(&name, scope.clone(), seen, true);
    }
    // `params` stands in the list itself.
    if let Some(name) = walk.field(list, Field::Name as u8).and_then(|name| bare_name(walk, name)) {
        walk.local(&name, scope, Seen::BuiltIn, true);
    }
}

/// What code that sets a property calls the value that it is given: `value`.
pub(super) fn given_values(walk: &mut Walk<'_>, accessors: Option<Node<'_>>, typed: Node<'_>) {
    let seen = of_type(walk, typed);
    for accessor in accessors.map_or(Vec::new(), |list| children_of(walk, list, Kind::Accessor)) {
        let name = walk.field(accessor, Field::Name as u8).map(|name| walk.text(name));
        if name.is_some_and(|name| matches!(&*name, "set" | "init" | "add" | "remove")) {
            walk.local("value", range(accessor), seen.clone(), true);
        }
    }
}

/// `a => …`, `(a, b) => …`, `delegate (T a) { … }`
pub(super) fn lambda(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.open_anonymous();
    let Some(parameters) = walk.field(node, super::csharp::Field::Parameters as u8) else { return };
    match Kind::at(walk, parameters) {
        Some(Kind::ImplicitParameter) => {
            let name = walk.text(parameters);
            walk.local(&name, range(node), Seen::Unknown, false);
        }
        _ => in_parameters(walk, parameters, node),
    }
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Block
                    | Kind::For
                    | Kind::Foreach
                    | Kind::UsingStatement
                    | Kind::Fixed
                    | Kind::CatchClause
                    | Kind::SwitchSection
                    | Kind::SwitchArm
                    | Kind::Query
                    | Kind::Lambda
                    | Kind::AnonymousMethod
                    | Kind::Accessor
                    | Kind::LocalFunction
                    | Kind::Method
                    | Kind::Constructor
                    | Kind::Property
                    | Kind::DeclarationList
                    | Kind::Unit
            )
        )
    })
}

/// Variables of all kinds: declared, gone through, caught, given out, named by a pattern or a query.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let is_member = matches!(Kind::of(walk.kind_above(0)), Some(Kind::FieldDeclaration | Kind::EventField));
    let Some(around) = scope_around(walk).filter(|_| !is_member) else { return };
    let end = offset(node.end_byte());
    let behind = end.min(around.end)..around.end;
    match kind {
        Kind::VariableDeclaration => return declared(walk, node, &behind),
        // A pattern in an arm of a `switch` is known before the arm begins.
        Kind::From | Kind::Let => {
            if let Some(name) = child_of(walk, node, &[Kind::Identifier]).and_then(|it| bare_name(walk, it)) {
                walk.local(&name, behind, Seen::Unknown, false);
            }
            return;
        }
        _ => {}
    }
    let name = match kind {
        Kind::Foreach => walk.field(node, Field::Left as u8),
        _ => walk.field(node, Field::Name as u8),
    };
    let Some(name) = name.and_then(|name| bare_name(walk, name)) else { return };
    let scope = match kind {
        Kind::Foreach => range(node),
        Kind::CatchDeclaration => around,
        _ => behind,
    };
    let typed =
        walk.field(node, Field::Type as u8).filter(|it| Kind::at(walk, *it) != Some(Kind::ImplicitType));
    let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
    walk.local(&name, scope, seen, true);
}

fn declared(walk: &mut Walk<'_>, node: Node<'_>, scope: &Range<u32>) {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return };
    let is_implicit = Kind::at(walk, typed) == Some(Kind::ImplicitType);
    for declarator in children_of(walk, node, Kind::Declarator) {
        let name = walk.field(declarator, Field::Name as u8);
        let Some(name) = name.and_then(|name| bare_name(walk, name)) else { continue };
        let value = declarator.named_child(declarator.named_child_count().saturating_sub(1) as u32);
        let seen = match value.filter(|_| is_implicit && declarator.named_child_count() > 1) {
            Some(value) => of_value(walk, value),
            None if is_implicit => Seen::Unknown,
            None => of_type(walk, typed),
        };
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
