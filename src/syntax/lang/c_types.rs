//! Types as they are written in C and C++, and the values of names, as far as their types can be seen.

use std::ops::Range;

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::within::Within;
use super::c::range;
use super::c_declarators::{self as declarators, Declared, value_of};
use super::c_grammar::{Field, Kind};
use super::children::{child_of, children_of};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

/// Types whose `->` leads to the type in their brackets.
const SEEN_THROUGH: &[&str] = &[
    "unique_ptr",
    "shared_ptr",
    "optional",
    "scoped_ptr",
    "scoped_refptr",
    "intrusive_ptr",
    "reference_wrapper",
    "QPointer",
    "QSharedPointer",
    "QScopedPointer",
    "RefPtr",
    "Ref",
    "sp",
    "atomic",
];

/// Members of those types themselves, which take precedence over the members of the inner type.
const OF_POINTERS: &[&str] = &[
    "get",
    "reset",
    "release",
    "use_count",
    "unique",
    "lock",
    "value",
    "value_or",
    "has_value",
    "swap",
    "data",
    "isNull",
    "load",
    "store",
];

/// The beginning of a receiver that is the surrounding instance, wherever the class stands: no name begins with it.
pub const AROUND: &str = "@";

/// The scope of a call in front of a constructor's code that may as well copy or move a value that is there: no name is like it.
pub const COPIED: &str = "=";

/// The beginning of a receiver that is what a constructor writes before the name of a base: no name begins with it.
pub const NAMED_BASE: char = ':';

/// The name of a type, a function or a namespace with dots between its parts, without what templates are made with.
pub(super) fn path_of(walk: &Walk<'_>, named: Node<'_>) -> Option<String> {
    let (mut names, mut at): (Vec<String>, Node<'_>) = (Vec::new(), named);
    for _ in 0..2 * NESTED_MAX {
        at = match Kind::at(walk, at)? {
            Kind::Identifier
            | Kind::TypeIdentifier
            | Kind::FieldIdentifier
            | Kind::NamespaceIdentifier
            | Kind::Destructor
            | Kind::Operator => {
                names.push(walk.text(at).split_whitespace().collect());
                return Some(names.join("."));
            }
            Kind::Qualified => {
                if let Some(scope) = walk.field(at, Field::Scope as u8) {
                    names.push(path_of_scope(walk, scope)?);
                }
                walk.field(at, Field::Name as u8)?
            }
            Kind::TemplateType | Kind::TemplateFunction | Kind::TemplateMethod => {
                walk.field(at, Field::Name as u8)?
            }
            Kind::Class | Kind::Struct | Kind::Union | Kind::Enum => walk.field(at, Field::Name as u8)?,
            Kind::TypeDescriptor => walk.field(at, Field::Type as u8)?,
            Kind::DependentName | Kind::DependentType => at.named_child(0)?,
            Kind::NestedNamespace => {
                let mut cursor = at.walk();
                let all: Vec<String> =
                    at.named_children(&mut cursor).filter_map(|it| path_of_scope(walk, it)).collect();
                names.extend(all);
                return Some(names.join("."));
            }
            _ => return None,
        };
    }
    None
}

fn path_of_scope(walk: &Walk<'_>, scope: Node<'_>) -> Option<String> {
    match Kind::at(walk, scope)? {
        Kind::TemplateType => walk.field(scope, Field::Name as u8).map(|it| walk.text(it).into_owned()),
        Kind::NestedNamespace => {
            let mut cursor = scope.walk();
            let all: Vec<String> =
                scope.named_children(&mut cursor).filter_map(|it| path_of_scope(walk, it)).collect();
            Some(all.join("."))
        }
        Kind::DependentName => scope.named_child(0).and_then(|it| path_of_scope(walk, it)),
        _ => Some(walk.text(scope).into_owned()),
    }
}

/// What a template is made with, first.
pub(super) fn first_argument<'t>(walk: &Walk<'_>, named: Node<'t>) -> Option<Node<'t>> {
    let mut at = named;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, at)? {
            Kind::Qualified => at = walk.field(at, Field::Name as u8)?,
            Kind::DependentName => at = at.named_child(0)?,
            _ => break,
        }
    }
    walk.field(at, Field::Arguments as u8)?.named_child(0)
}

/// What is known of a value by its type.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, typed) {
            Some(Kind::PrimitiveType | Kind::SizedType) => return Seen::BuiltIn,
            Some(Kind::TypeDescriptor) => match walk.field(typed, Field::Type as u8) {
                Some(inner) => typed = inner,
                None => return Seen::Unknown,
            },
            Some(Kind::DependentType) => return Seen::Unknown,
            _ => {
                let Some(path) = path_of(walk, typed) else { return Seen::Unknown };
                let name = path.rsplit('.').next().unwrap_or(&path);
                if SEEN_THROUGH.contains(&name)
                    && let Some(inner) = first_argument(walk, typed)
                {
                    typed = inner;
                    continue;
                }
                return match () {
                    () if is_parameter_of_types(walk, typed, &path) => Seen::Unknown,
                    () if path.starts_with("std.") => Seen::BuiltIn,
                    () => Seen::Of(path.into()),
                };
            }
        }
    }
    Seen::Unknown
}

/// Whether the first name of a type is that of a parameter of a template around it, and not the name of a class elsewhere.
pub(super) fn is_parameter_of_types(walk: &Walk<'_>, at: Node<'_>, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    matches!(walk.facts.locals.seen(first, offset(at.start_byte())), Some(Seen::Unknown))
}

/// What a function gives back, also where that stands behind it.
pub(super) fn of_result(walk: &Walk<'_>, node: Node<'_>, declared: &Declared<'_>) -> Seen {
    let behind = declared.function.and_then(|it| child_of(walk, it, &[Kind::TrailingReturn]));
    if let Some(typed) = behind.and_then(|it| it.named_child(0)) {
        return of_type(walk, typed);
    }
    match walk.field(node, Field::Type as u8) {
        Some(typed) if Kind::at(walk, typed) == Some(Kind::Placeholder) => Seen::Unknown,
        Some(typed) => of_type(walk, typed),
        None => Seen::Unknown,
    }
}

/// What is known of a variable or a field.
pub(super) fn of_declared(walk: &mut Walk<'_>, node: Node<'_>, declarator: Node<'_>) -> Seen {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return Seen::Unknown };
    if Kind::at(walk, typed) != Some(Kind::Placeholder) {
        return of_type(walk, typed);
    }
    value_of(walk, declarator).map_or(Seen::Unknown, |value| of_value(walk, value))
}

/// An expression without brackets, `*` and `&` around it.
pub(super) fn unwrapped<'t>(walk: &Walk<'_>, node: Node<'t>) -> Node<'t> {
    let mut node = node;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, node) {
            Some(Kind::Parenthesized) => node.named_child(0),
            Some(Kind::Pointer | Kind::Subscript) => walk.field(node, Field::Argument as u8),
            Some(Kind::DependentName) => node.named_child(0),
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
    let value = unwrapped(walk, value);
    match Kind::at(walk, value) {
        Some(Kind::New | Kind::Cast | Kind::CompoundLiteral) => {
            walk.field(value, Field::Type as u8).map_or(Seen::Unknown, |typed| of_type(walk, typed))
        }
        Some(Kind::Call) => called(walk, value),
        Some(Kind::String | Kind::RawString | Kind::Char | Kind::Number | Kind::True | Kind::False) => {
            Seen::BuiltIn
        }
        Some(Kind::Null) => Seen::Unset,
        Some(Kind::This) => Seen::Of(AROUND.into()),
        Some(Kind::Identifier) => {
            let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
            known.cloned().unwrap_or_else(|| Seen::Of(walk.text(value).as_ref().into()))
        }
        Some(Kind::FieldExpression) => match names(walk, value) {
            Some(path) => along(walk, value, &path),
            None => Seen::Unknown,
        },
        _ => Seen::Unknown,
    }
}

/// What a call gives back: the graph looks up what the function says of it.
fn called(walk: &Walk<'_>, call: Node<'_>) -> Seen {
    let Some(function) = walk.field(call, Field::Function as u8) else { return Seen::Unknown };
    let function = unwrapped(walk, function);
    if Kind::at(walk, function) == Some(Kind::FieldExpression) {
        return match names(walk, function) {
            Some(path) => along(walk, call, &path),
            None => Seen::Unknown,
        };
    }
    let Some(path) = path_of(walk, function) else { return Seen::Unknown };
    let name = path.rsplit('.').next().unwrap_or(&path);
    let makes = name.ends_with("_cast") || matches!(name, "make_unique" | "make_shared");
    if makes && let Some(typed) = first_argument(walk, function) {
        return of_type(walk, typed);
    }
    if matches!(name, "move" | "forward" | "ref" | "as_const") && path.starts_with("std.") {
        let argument = walk.field(call, Field::Arguments as u8).and_then(|it| it.named_child(0));
        return argument.map_or(Seen::Unknown, |it| match Kind::at(walk, it) {
            Some(Kind::Identifier) => of_value(walk, it),
            _ => Seen::Unknown,
        });
    }
    if path.starts_with("std.") { Seen::Unknown } else { Seen::Of(path.into()) }
}

/// What stands behind names; the first one may be known here.
fn along(walk: &Walk<'_>, at: Node<'_>, path: &str) -> Seen {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match walk.facts.locals.seen(first, offset(at.start_byte())) {
        Some(Seen::Of(class)) if !rest.is_empty() => Seen::Of(format!("{class}.{rest}").into()),
        Some(_) => Seen::Unknown,
        None => Seen::Of(path.into()),
    }
}

/// `a.b->c`, if it is nothing but names; `this` is the instance around.
fn names(walk: &Walk<'_>, value: Node<'_>) -> Option<String> {
    let (mut found, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::FieldExpression => {
                let member = walk.field(value, Field::Member as u8)?;
                found.push(path_of(walk, member)?);
                value = walk.field(value, Field::Argument as u8)?;
            }
            Kind::Parenthesized | Kind::Pointer | Kind::Subscript => value = unwrapped(walk, value),
            Kind::Identifier | Kind::This => {
                let is_this = Kind::at(walk, value) == Some(Kind::This);
                found.push(if is_this { AROUND.to_owned() } else { walk.text(value).into_owned() });
                found.reverse();
                return Some(found.join("."));
            }
            Kind::Qualified => {
                found.push(path_of(walk, value)?);
                found.reverse();
                return Some(found.join("."));
            }
            // `get().f()`: what the function gives back goes on.
            Kind::Call => {
                let function = walk.field(value, Field::Function as u8)?;
                value = match Kind::at(walk, function)? {
                    Kind::FieldExpression | Kind::Identifier | Kind::Qualified => function,
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
    None
}

/// The receiver of a call of a member, by the expression before it.
pub(super) fn receiver(walk: &Walk<'_>, argument: Node<'_>, name: &str, by_arrow: bool) -> Receiver {
    let value = unwrapped(walk, argument);
    if !by_arrow && OF_POINTERS.contains(&name) {
        return Receiver::Other;
    }
    match Kind::at(walk, value) {
        Some(Kind::This) => return Receiver::This,
        Some(Kind::Call) => return of_value(walk, value).receiver().unwrap_or(Receiver::Other),
        _ => {}
    }
    match names(walk, value) {
        Some(path) if path.starts_with(AROUND) => Receiver::Instance(path.into()),
        Some(path) => Receiver::Path(path.into()),
        None => of_value(walk, value).receiver().unwrap_or(Receiver::Other),
    }
}

// Templates.

/// The parameters of the template that a definition is one of.
pub(super) fn template_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<Node<'t>> {
    let is_template = Kind::of(walk.kind_above(0)) == Some(Kind::Template);
    let template = if is_template { node.parent() } else { None };
    template.and_then(|it| walk.field(it, Field::Parameters as u8)).filter(|it| it.named_child_count() > 0)
}

/// The names of the parameters of the templates directly around a definition.
pub(super) fn parameters_of_template(walk: &Walk<'_>, node: Node<'_>) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), node);
    for above in walk.above.iter().rev() {
        if Kind::of(above.kind) != Some(Kind::Template) {
            break;
        }
        let Some(template) = at.parent() else { break };
        if let Some(list) = walk.field(template, Field::Parameters as u8) {
            let mut cursor = list.walk();
            found.extend(list.named_children(&mut cursor).filter_map(|it| parameter_name(walk, it)));
        }
        at = template;
    }
    found
}

fn parameter_name(walk: &Walk<'_>, parameter: Node<'_>) -> Option<String> {
    // `template <class> class C` has its name in a parameter within.
    let mut cursor = parameter.walk();
    let nested =
        parameter.named_children(&mut cursor).find(|it| it.kind().ends_with("type_parameter_declaration"));
    let parameter = nested.unwrap_or(parameter);
    // Behind the name of one with a default stands a type.
    if let Some(name) = walk.field(parameter, Field::Name as u8) {
        return Some(walk.text(name).into_owned());
    }
    if let Some(declarator) = walk.field(parameter, Field::Declarator as u8) {
        return declarators::of_declarator(walk, declarator).map(|it| walk.text(it.name).into_owned());
    }
    let mut cursor = parameter.walk();
    let is_name =
        |it: &Node<'_>| matches!(Kind::at(walk, *it), Some(Kind::TypeIdentifier | Kind::Identifier));
    parameter.named_children(&mut cursor).filter(is_name).map(|it| walk.text(it).into_owned()).last()
}

/// The types that a template takes: nothing is known of them.
pub(super) fn type_parameters(walk: &mut Walk<'_>, template: Node<'_>) {
    let Some(list) = walk.field(template, Field::Parameters as u8) else { return };
    let mut cursor = list.walk();
    let names: Vec<String> =
        list.named_children(&mut cursor).filter_map(|it| parameter_name(walk, it)).collect();
    for name in names {
        walk.local(&name, range(template), Seen::Unknown, true);
    }
}

// Names that functions have for themselves.

/// What a function or a lambda calls its arguments.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>, scope: Range<u32>) {
    let mut at = walk.field(function, Field::Declarator as u8);
    let mut list = None;
    for _ in 0..NESTED_MAX {
        let Some(it) = at else { break };
        list = walk.field(it, Field::Parameters as u8).or(list);
        at = walk.field(it, Field::Declarator as u8).or_else(|| {
            let is_around = matches!(
                Kind::at(walk, it),
                Some(Kind::ReferenceDeclarator | Kind::ParenthesizedDeclarator | Kind::PointerDeclarator)
            );
            is_around.then(|| it.named_child(0)).flatten()
        });
    }
    let Some(list) = list else { return };
    let mut all: Vec<Node<'_>> = Within::of(list).filter(Node::is_named).collect();
    // Those of old have their types behind the brackets.
    all.extend(children_of(walk, function, Kind::Declaration));
    for parameter in all {
        let Some(typed) = walk.field(parameter, Field::Type as u8) else { continue };
        let seen = of_type(walk, typed);
        let is_auto = Kind::at(walk, typed) == Some(Kind::Placeholder);
        for declarator in declarators_of(walk, parameter) {
            if let Some(declared) = declarators::of_declarator(walk, declarator) {
                let seen = if is_auto { Seen::Unknown } else { seen.clone() };
                walk.local(&walk.text(declared.name), scope.clone(), seen, true);
            }
        }
    }
}

/// What a declaration or a parameter declares: of a declaration it may be several names.
fn declarators_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let Some(first) = walk.field(node, Field::Declarator as u8) else { return Vec::new() };
    // Most have a type and one name.
    if node.named_child_count() <= 2 && walk.field(node, Field::Type as u8).is_some() {
        return vec![first];
    }
    let mut cursor = node.walk();
    node.children_by_field_name("declarator", &mut cursor).collect()
}

fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Block
                    | Kind::For
                    | Kind::If
                    | Kind::While
                    | Kind::Switch
                    | Kind::RangeLoop
                    | Kind::Catch
                    | Kind::Lambda
                    | Kind::Function
            )
        )
    })
}

/// `[a, b]` of `auto& [a, b] = …`.
pub(super) fn structured_binding<'t>(walk: &Walk<'_>, declarator: Node<'t>) -> Option<Node<'t>> {
    let mut node = declarator;
    for _ in 0..NESTED_MAX {
        if Kind::at(walk, node) == Some(Kind::StructuredBinding) {
            return Some(node);
        }
        node = match Kind::at(walk, node) {
            Some(Kind::InitDeclarator) => walk.field(node, Field::Declarator as u8)?,
            Some(Kind::ReferenceDeclarator) => node.named_child(0)?,
            _ => return None,
        };
    }
    None
}

/// `T a = …, *b;` within a function.
pub(super) fn declared(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(scope) = scope_around(walk) else { return };
    let typed = walk.field(node, Field::Type as u8);
    let is_auto = typed.is_some_and(|typed| Kind::at(walk, typed) == Some(Kind::Placeholder));
    for declarator in declarators_of(walk, node) {
        if let Some(list) = structured_binding(walk, declarator) {
            let mut inner = list.walk();
            let names: Vec<Node<'_>> = list.named_children(&mut inner).collect();
            for name in names {
                let name = walk.text(name).into_owned();
                walk.local(&name, scope.clone(), Seen::Unknown, false);
            }
            continue;
        }
        let Some(known) = declarators::of_declarator(walk, declarator) else { continue };
        let value = value_of(walk, declarator);
        if let Some(lambda) = value.filter(|it| Kind::at(walk, *it) == Some(Kind::Lambda)) {
            named_lambda(walk, node, known.name, lambda);
            continue;
        }
        let seen = of_declared(walk, node, declarator);
        let name = walk.text(known.name).into_owned();
        // The value does not know the name yet.
        let from = offset(declarator.end_byte()).min(scope.end);
        walk.local(&name, from..scope.end, seen, !is_auto);
        made(walk, typed, declarator, value, &known);
    }
}

/// A lambda with a name is a function within its function.
fn named_lambda(walk: &mut Walk<'_>, node: Node<'_>, name: Node<'_>, lambda: Node<'_>) {
    let text = walk.text(name).into_owned();
    let signature = declarators::signature_of_lambda(walk, lambda);
    let found = super::super::walk::Found::new(&text, super::super::Kind::Function, node.byte_range());
    let at = walk.symbol(super::super::walk::Found { signature, ..found });
    walk.claim(lambda);
    walk.open(at);
}

/// `T x(1)` and `T x{1}` run a constructor.
fn made(
    walk: &mut Walk<'_>,
    typed: Option<Node<'_>>,
    declarator: Node<'_>,
    value: Option<Node<'_>>,
    known: &Declared<'_>,
) {
    let Some(typed) = typed else { return };
    let is_plain = |it: Node<'_>| {
        let between = walk.source.get(known.top.start_byte()..it.start_byte()).unwrap_or_default();
        !between.contains(&b'=')
    };
    let is_made = match value.map(|value| (Kind::at(walk, value), value)) {
        Some((Some(Kind::Argument), _)) => true,
        Some((Some(Kind::InitializerList), value)) => is_plain(value),
        Some(_) => false,
        // It may as well be taken for a function that is declared.
        None => known.function == Some(declarator),
    };
    if is_made && let (Seen::Of(_), Some(path)) = (of_type(walk, typed), path_of(walk, typed)) {
        super::c::made_of(walk, declarator, &path);
    }
}

/// The class of a field that is itself an instance, and neither points to one nor keeps one in a type of a library.
pub(super) fn class_within(walk: &Walk<'_>, node: Node<'_>, known: &Declared<'_>) -> Option<String> {
    let typed = walk.field(node, Field::Type as u8).filter(|_| known.top == known.name)?;
    let path = path_of(walk, typed)?;
    matches!(of_type(walk, typed), Seen::Of(of) if *of == *path).then_some(path)
}

/// `Store store{path};` outside of functions runs a constructor.
pub(super) fn made_outside(walk: &mut Walk<'_>, node: Node<'_>, declarator: Node<'_>) {
    let value = value_of(walk, declarator).or_else(|| node.child_by_field_name("default_value"));
    if let (Some(known), Some(_)) = (declarators::of_declarator(walk, declarator), value) {
        made(walk, walk.field(node, Field::Type as u8), declarator, value, &known);
    }
}

/// Whether what a field is made with may be another instance of its class, which is copied or moved: one value that is none of the
/// language's own types.
pub(super) fn may_be_copied(walk: &Walk<'_>, initializer: Node<'_>) -> bool {
    let mut cursor = initializer.walk();
    let Some(list) = initializer.named_children(&mut cursor).last() else { return false };
    let mut cursor = list.walk();
    let values: Vec<Node<'_>> =
        list.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) != Some(Kind::Comment)).collect();
    matches!(values[..], [value] if !matches!(of_value(walk, value), Seen::BuiltIn | Seen::Unset))
}

/// What a loop goes through, and what is caught.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let holder = match kind {
        Kind::Catch => walk.field(node, Field::Parameters as u8).and_then(|it| it.named_child(0)),
        _ => Some(node),
    };
    let Some(holder) = holder else { return };
    let (Some(typed), Some(declarator)) =
        (walk.field(holder, Field::Type as u8), walk.field(holder, Field::Declarator as u8))
    else {
        return;
    };
    let is_auto = Kind::at(walk, typed) == Some(Kind::Placeholder);
    let seen = if is_auto { Seen::Unknown } else { of_type(walk, typed) };
    if let Some(declared) = declarators::of_declarator(walk, declarator) {
        let name = walk.text(declared.name).into_owned();
        walk.local(&name, range(node), seen, true);
    }
}
