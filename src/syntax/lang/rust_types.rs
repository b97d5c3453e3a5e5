//! Types as they are written in Rust, and the values of names, as far as their types can be seen.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::notes::{HOLDS, TAKEN_OUT};
use super::super::reading::offset;
use super::super::walk::Walk;
use super::rust::{Field, Kind};
use super::rust_known::{BUILT_IN, HOLDERS, SEEN_THROUGH, STANDARD_TRAITS};
use super::rust_modules as modules;

/// The deepest nesting of values, types and patterns that is followed.
const NESTED_MAX: usize = 16;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

fn text_of(walk: &Walk<'_>, node: Node<'_>) -> String {
    let text = walk.text(node);
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// What `Self` is called where the walk is.
pub(super) fn self_type(walk: &Walk<'_>) -> Option<Box<str>> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        if let Some(name) = walk.notes.stands_for.get(&at) {
            return Some(name.clone());
        }
        around = walk.facts.symbols[at as usize].parent;
    }
    None
}

/// The names of a path, of a type or a value, with dots between them; none of what is no path.
pub(super) fn path_of(walk: &mut Walk<'_>, node: Node<'_>) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut node = node;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, node)? {
            Kind::Identifier | Kind::TypeIdentifier => {
                let text = text_of(walk, node);
                match text.as_str() {
                    "Self" => names.push(self_type(walk)?.into()),
                    _ => names.push(text),
                }
                return Some(whole(walk, names));
            }
            Kind::SelfName => names.push("self".into()),
            Kind::Super => names.push("super".into()),
            Kind::Crate => names.push("crate".into()),
            Kind::Scoped | Kind::ScopedType => {
                names.push(text_of(walk, walk.field(node, Field::Name as u8)?));
                match walk.field(node, Field::Path as u8) {
                    Some(path) => node = path,
                    // `::std::mem`
                    None => return Some(whole(walk, names)),
                }
                continue;
            }
            Kind::GenericType | Kind::GenericTurbofish => {
                node = walk.field(node, Field::Type as u8)?;
                continue;
            }
            Kind::GenericFunction => {
                node = walk.field(node, Field::Function as u8)?;
                continue;
            }
            // `<Store as Keeper>`: the methods of that `impl`, and of the trait where the type has no name of its own.
            Kind::QualifiedType => {
                let (typed, of) =
                    (walk.field(node, Field::Type as u8)?, walk.field(node, Field::Alias as u8)?);
                let is_named = matches!(
                    Kind::at(walk, typed),
                    Some(Kind::TypeIdentifier | Kind::ScopedType | Kind::GenericType)
                ) && bound_of(walk, typed).is_none();
                if is_named {
                    names.push(shown(walk, of));
                }
                node = if is_named { typed } else { of };
                continue;
            }
            Kind::BracketedType | Kind::ReferenceType => {
                node = walk.field(node, Field::Type as u8).or_else(|| node.named_child(0))?;
                continue;
            }
            _ => return None,
        }
        return Some(whole(walk, names));
    }
    None
}

/// What is known of a type that is a parameter of types: its bound.
fn bound_of<'w>(walk: &'w Walk<'_>, typed: Node<'_>) -> Option<&'w Seen> {
    walk.facts.locals.seen(&walk.text(typed), offset(typed.start_byte()))
}

/// The receiver of `T::f()`, if that is a parameter of types.
pub(super) fn receiver_by_bound(walk: &Walk<'_>, at: Node<'_>, before: &str) -> Option<Receiver> {
    if !is_type_name(before) {
        return None;
    }
    match walk.facts.locals.seen(before, offset(at.start_byte()))? {
        Seen::Of(bound) => Some(Receiver::Instance(bound.clone())),
        _ => Some(Receiver::Several),
    }
}

/// Notes with which name a path begins, which may be that of a module.
fn whole(walk: &mut Walk<'_>, mut names: Vec<String>) -> String {
    names.reverse();
    if names.len() > 1 {
        walk.notes.heads.insert(names[0].as_str().into());
    }
    names.join(".")
}

/// The name by which the members of a type go: that of the type without what it is made with.
pub(super) fn implemented(walk: &mut Walk<'_>, typed: Node<'_>) -> String {
    let mut inner = typed;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, inner) {
            Some(Kind::ReferenceType | Kind::PointerType) => match walk.field(inner, Field::Type as u8) {
                Some(it) => inner = it,
                None => break,
            },
            Some(Kind::DynamicType | Kind::AbstractType) => match walk.field(inner, Field::Trait as u8) {
                Some(it) => inner = it,
                None => break,
            },
            _ => break,
        }
    }
    match path_of(walk, inner) {
        Some(path) => path.rsplit('.').next().unwrap_or(&path).to_owned(),
        None => compact(&walk.text(inner)),
    }
}

/// A trait as it is told from others: its name with its arguments, `From<io::Error>`.
pub(super) fn shown(walk: &Walk<'_>, implemented: Node<'_>) -> String {
    let (name, arguments) = match Kind::at(walk, implemented) {
        Some(Kind::GenericType) => (
            walk.field(implemented, Field::Type as u8).unwrap_or(implemented),
            walk.field(implemented, Field::TypeArguments as u8),
        ),
        _ => (implemented, None),
    };
    let name = match Kind::at(walk, name) {
        Some(Kind::ScopedType) => walk.field(name, Field::Name as u8).unwrap_or(name),
        _ => name,
    };
    let arguments = arguments.map(|it| compact(&walk.text(it))).unwrap_or_default();
    format!("{}{arguments}", text_of(walk, name))
}

/// A type's text as a part of a path, in which a dot tells one name from the next.
fn compact(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('.', "_").replace(", ", ",").replace(char::is_control, "")
}

/// What is known of something that holds a value, by what is known of the value.
fn held(seen: Seen) -> Seen {
    match seen {
        Seen::Of(path) => Seen::Of(format!("{path}{HOLDS}").into()),
        seen => seen,
    }
}

/// What is known of the value that something holds. Where it is one of a name that the graph has to look up, the graph takes it out.
fn taken_out(seen: Seen) -> Seen {
    match seen {
        Seen::Of(path) => match path.strip_suffix(HOLDS) {
            Some(inner) => Seen::Of(inner.into()),
            None => Seen::Of(format!("{path}.{TAKEN_OUT}").into()),
        },
        seen => seen,
    }
}

/// What is known of a value by its type.
pub(super) fn of_type(walk: &mut Walk<'_>, typed: Node<'_>) -> Seen {
    of_type_within(walk, typed, 0)
}

fn of_type_within(walk: &mut Walk<'_>, typed: Node<'_>, depth: usize) -> Seen {
    let mut typed = typed;
    for _ in depth..NESTED_MAX {
        let inner = match Kind::at(walk, typed) {
            Some(Kind::ReferenceType) => walk.field(typed, Field::Type as u8),
            Some(Kind::DynamicType | Kind::AbstractType) => walk.field(typed, Field::Trait as u8),
            Some(Kind::BracketedType) => typed.named_child(0),
            Some(Kind::PrimitiveType | Kind::ArrayType | Kind::TupleType) => return Seen::BuiltIn,
            Some(Kind::GenericType) => {
                let Some(path) = path_of(walk, typed) else { return Seen::Unknown };
                let name = path.rsplit('.').next().unwrap_or(&path);
                let is_holder = HOLDERS.contains(&name);
                if !SEEN_THROUGH.contains(&name) && !is_holder {
                    return named(&modules::from_here(walk, path));
                }
                let arguments = walk.field(typed, Field::TypeArguments as u8);
                let inner = arguments.and_then(|arguments| {
                    let mut cursor = arguments.walk();
                    let is_type = |it: &Node<'_>| it.kind() != "lifetime";
                    arguments.named_children(&mut cursor).find(is_type)
                });
                if is_holder {
                    return inner.map_or(Seen::Unknown, |it| held(of_type_within(walk, it, depth + 1)));
                }
                inner
            }
            Some(Kind::TypeIdentifier | Kind::ScopedType) => {
                let Some(path) = path_of(walk, typed) else { return Seen::Unknown };
                // A parameter of types stands for its bound.
                return match walk.facts.locals.seen(&path, offset(typed.start_byte())) {
                    Some(bound) => bound.clone(),
                    None => named(&modules::from_here(walk, path)),
                };
            }
            _ => return Seen::Unknown,
        };
        match inner {
            Some(inner) => typed = inner,
            None => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

fn named(path: &str) -> Seen {
    if BUILT_IN.contains(&path) { Seen::BuiltIn } else { Seen::Of(path.into()) }
}

/// What a function gives back. Of what may also be nothing or an error under a name of its own, nothing is said.
pub(super) fn of_result(walk: &mut Walk<'_>, typed: Node<'_>) -> Seen {
    match of_type(walk, typed) {
        Seen::Of(path) if path.ends_with("Result") || path.ends_with("Option") => Seen::Unknown,
        Seen::BuiltIn if Kind::at(walk, typed) == Some(Kind::GenericType) => Seen::Unknown,
        seen => seen,
    }
}

/// What is known of the value of an expression.
fn of_value(walk: &mut Walk<'_>, value: Node<'_>) -> Seen {
    of_value_within(walk, value, 0)
}

fn of_value_within(walk: &mut Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    let mut value = value;
    for _ in depth..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Reference) => walk.field(value, Field::Value as u8),
            Some(Kind::Parenthesized | Kind::Unary | Kind::Await) => value.named_child(0),
            Some(Kind::Try) => {
                let inner = value.named_child(0);
                return inner.map_or(Seen::Unknown, |it| taken_out(of_value_within(walk, it, depth + 1)));
            }
            Some(Kind::FieldExpression) => return of_member(walk, value, depth),
            Some(Kind::Cast) => {
                let typed = walk.field(value, Field::Type as u8);
                return typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::StructExpression) => {
                let name = walk.field(value, Field::Name as u8).and_then(|it| modules::path_here(walk, it));
                return name.map_or(Seen::Unknown, |path| Seen::Of(made(&path).into()));
            }
            Some(Kind::Call) => {
                let Some(called) = walk.field(value, Field::Function as u8) else { return Seen::Unknown };
                if let Some(copied) = copied(walk, called) {
                    value = copied;
                    continue;
                }
                if Kind::at(walk, called) == Some(Kind::FieldExpression) {
                    return of_member(walk, called, depth);
                }
                let Some(path) = path_of(walk, called) else { return Seen::Unknown };
                let (before, name) = path.rsplit_once('.').unwrap_or(("", &path));
                if !(SEEN_THROUGH.contains(&before) && matches!(name, "new" | "from" | "clone")) {
                    return called_value(&modules::from_here(walk, path));
                }
                walk.field(value, Field::Arguments as u8).and_then(|it| it.named_child(0))
            }
            Some(Kind::Scoped) => {
                let path = modules::path_here(walk, value);
                return path.as_deref().and_then(case_of).map_or(Seen::Unknown, |of| Seen::Of(of.into()));
            }
            Some(
                Kind::StringLiteral
                | Kind::RawString
                | Kind::CharLiteral
                | Kind::IntegerLiteral
                | Kind::FloatLiteral
                | Kind::BooleanLiteral
                | Kind::ArrayExpression
                | Kind::TupleExpression,
            ) => return Seen::BuiltIn,
            Some(Kind::Identifier | Kind::SelfName) => {
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

/// A field, or what a method gives back: the graph looks up what it says of itself. What takes a value out, or leaves it in, is known.
fn of_member(walk: &mut Walk<'_>, member: Node<'_>, depth: usize) -> Seen {
    const TAKES_OUT: &[&str] = &["expect", "unwrap", "unwrap_or", "unwrap_or_default", "unwrap_or_else"];
    const LEAVES_IN: &[&str] = &[
        "as_deref",
        "as_deref_mut",
        "cloned",
        "context",
        "copied",
        "map_err",
        "ok_or",
        "ok_or_else",
        "with_context",
    ];
    let parts = [Field::Value, Field::Member].map(|field| walk.field(member, field as u8));
    let [Some(of), Some(named)] = parts else { return Seen::Unknown };
    let of = of_value_within(walk, of, depth + 1);
    let name = text_of(walk, named);
    match of {
        seen if TAKES_OUT.contains(&name.as_str()) => taken_out(seen),
        seen if LEAVES_IN.contains(&name.as_str()) => seen,
        // The language itself defines all other methods of a type that holds a value.
        Seen::Of(path) if path.ends_with(HOLDS) => Seen::Unknown,
        Seen::Of(path) => Seen::Of(format!("{path}.{name}").into()),
        _ => Seen::Unknown,
    }
}

/// `x` of `x.clone()`.
fn copied<'t>(walk: &Walk<'_>, called: Node<'t>) -> Option<Node<'t>> {
    let is_field = Kind::at(walk, called) == Some(Kind::FieldExpression);
    let name = is_field.then(|| walk.field(called, Field::Member as u8)).flatten()?;
    let is_copy = matches!(&*walk.text(name), "clone" | "as_ref" | "as_mut");
    is_copy.then(|| walk.field(called, Field::Value as u8)).flatten()
}

/// What a call gives back: an instance of a type, by the convention of names, or else what the function says.
fn called_value(path: &str) -> Seen {
    let (before, name) = path.rsplit_once('.').unwrap_or(("", path));
    let of_type = before.rsplit('.').next().is_some_and(is_type_name);
    match name {
        "Some" | "Ok" | "Err" => Seen::BuiltIn,
        "new" | "default" if of_type => named(before),
        _ if of_type && is_type_name(name) => Seen::Of(before.into()),
        _ if is_type_name(name) => Seen::Of(path.into()),
        // The graph looks up what it gives back.
        _ => Seen::Of(path.into()),
    }
}

fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// `Kind` of `Kind::Case`.
fn case_of(path: &str) -> Option<&str> {
    let (before, name) = path.rsplit_once('.')?;
    let is_case = is_type_name(name) && name.chars().any(char::is_lowercase);
    (is_case && before.rsplit('.').next().is_some_and(is_type_name)).then_some(before)
}

/// The type of `T { … }` and `Kind::Case { … }`.
fn made(path: &str) -> &str {
    case_of(path).unwrap_or(path)
}

/// The receiver of a method, by the expression before its name.
pub(super) fn receiver(walk: &mut Walk<'_>, value: Node<'_>) -> Receiver {
    let mut value = value;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized) => value.named_child(0),
            Some(Kind::Reference) => walk.field(value, Field::Value as u8),
            Some(Kind::Unary) if walk.source.get(value.start_byte()) == Some(&b'*') => value.named_child(0),
            Some(Kind::Call) => copied(walk, walk.field(value, Field::Function as u8).unwrap_or(value)),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    match Kind::at(walk, value) {
        Some(Kind::Identifier | Kind::SelfName) => Receiver::Path(text_of(walk, value).into()),
        Some(Kind::FieldExpression) => fields(walk, value).unwrap_or(Receiver::Other),
        _ => of_value(walk, value).receiver().unwrap_or(Receiver::Other),
    }
}

/// `a.b.c`, if it is nothing but names.
fn fields(walk: &Walk<'_>, value: Node<'_>) -> Option<Receiver> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, value)? {
            Kind::FieldExpression => {
                let name = walk.field(value, Field::Member as u8)?;
                names.push(text_of(walk, name));
                value = walk.field(value, Field::Value as u8)?;
            }
            Kind::Identifier | Kind::SelfName => {
                names.push(text_of(walk, value));
                names.reverse();
                return Some(Receiver::Path(names.join(".").into()));
            }
            _ => return None,
        }
    }
    None
}

// Names that functions have for themselves.

/// The types that an item takes as parameters: what is known of them is the first of their bounds that is none of the standard
/// library, there or behind `where`.
pub(super) fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>) {
    let Some(parameters) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut behind: BTreeMap<String, Vec<Node<'_>>> = BTreeMap::new();
    let mut cursor = item.walk();
    let clause = item.named_children(&mut cursor).find(|it| Kind::at(walk, *it) == Some(Kind::Where));
    if let Some(clause) = clause {
        let mut cursor = clause.walk();
        for it in clause.named_children(&mut cursor) {
            if let (Some(of), Some(bounds)) =
                (walk.field(it, Field::Left as u8), walk.field(it, Field::Bounds as u8))
            {
                behind.entry(walk.text(of).into_owned()).or_default().push(bounds);
            }
        }
    }
    let mut cursor = parameters.walk();
    for parameter in parameters.named_children(&mut cursor) {
        if Kind::at(walk, parameter) == Some(Kind::TypeParameter)
            && let Some(name) = walk.field(parameter, Field::Name as u8)
        {
            let name = walk.text(name);
            let there = walk.field(parameter, Field::Bounds as u8);
            let of_it = behind.get(&*name).into_iter().flatten().copied();
            let bound = there.into_iter().chain(of_it).find_map(|bounds| bound_in(walk, bounds));
            walk.local(&name, range(item), bound.map_or(Seen::Unknown, |it| Seen::Of(it.into())), true);
        }
    }
}

fn bound_in(walk: &mut Walk<'_>, bounds: Node<'_>) -> Option<String> {
    let mut cursor = bounds.walk();
    let all: Vec<Node<'_>> = bounds.named_children(&mut cursor).collect();
    let is_own = |it: &String| !STANDARD_TRAITS.contains(&it.rsplit('.').next().unwrap_or(it));
    all.into_iter().filter_map(|it| modules::path_here(walk, it)).find(is_own)
}

/// What a function calls its arguments.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    let Some(parameters) = walk.field(function, Field::Parameters as u8) else { return };
    let mut cursor = parameters.walk();
    for parameter in parameters.named_children(&mut cursor) {
        match Kind::at(walk, parameter) {
            Some(Kind::SelfParameter) => {
                let seen = self_type(walk).map_or(Seen::Unknown, Seen::Of);
                walk.local("self", range(function), seen, true);
            }
            Some(Kind::Parameter) => {
                let typed = walk.field(parameter, Field::Type as u8);
                let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
                if let Some(pattern) = walk.field(parameter, Field::Pattern as u8) {
                    pattern_names(walk, pattern, &range(function), seen, typed.is_some());
                }
            }
            _ => {}
        }
    }
}

/// Notes for the cases of a `match` what is known of the value that is compared with them.
pub(super) fn compared(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = [Field::Value, Field::Body].map(|field| walk.field(node, field as u8));
    let [Some(value), Some(cases)] = parts else { return };
    let seen = of_value(walk, value);
    if !matches!(seen, Seen::Of(_)) {
        return;
    }
    let mut cursor = cases.walk();
    for case in cases.named_children(&mut cursor) {
        walk.notes.expected.insert(case.id(), seen.clone());
    }
}

/// Records what a statement, a closure, a loop or a case of a `match` gives names to.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    // Code in the same statement, and the value that a loop goes through, does not know the name yet.
    let around = |walk: &Walk<'_>, kinds: &[Kind]| {
        let all = walk.range_above(|kind| Kind::of(kind).is_some_and(|kind| kinds.contains(&kind)));
        all.map(|all| offset(node.end_byte()).min(all.end)..all.end)
    };
    let (pattern, scope) = match kind {
        Kind::Let => (
            walk.field(node, Field::Pattern as u8),
            around(walk, &[Kind::Block, Kind::Closure, Kind::Function]),
        ),
        Kind::LetCondition => {
            let scope = around(walk, &[Kind::If, Kind::While, Kind::MatchArm, Kind::Block]);
            (walk.field(node, Field::Pattern as u8), scope)
        }
        Kind::Closure => (walk.field(node, Field::Parameters as u8), Some(range(node))),
        Kind::For => (walk.field(node, Field::Pattern as u8), walk.field(node, Field::Body as u8).map(range)),
        _ => (walk.field(node, Field::Pattern as u8), Some(range(node))),
    };
    let (Some(pattern), Some(scope)) = (pattern, scope) else { return };
    if let Some(seen) = walk.notes.expected.remove(&node.id()).filter(|_| kind == Kind::MatchArm) {
        return pattern_names(walk, pattern, &scope, seen, false);
    }
    let gives = matches!(kind, Kind::Let | Kind::LetCondition);
    let typed = walk.field(node, Field::Type as u8).filter(|_| kind == Kind::Let);
    let seen = match (typed, walk.field(node, Field::Value as u8).filter(|_| gives)) {
        (Some(typed), _) => of_type(walk, typed),
        (None, Some(value)) => of_value(walk, value),
        (None, None) => Seen::Unknown,
    };
    pattern_names(walk, pattern, &scope, seen, typed.is_some());
}

/// `Some(x)` or `Ok(x)`
fn is_some(walk: &Walk<'_>, pattern: Node<'_>) -> bool {
    let named = walk.field(pattern, Field::Type as u8);
    pattern.kind() == "tuple_struct_pattern"
        && pattern.named_child_count() == 2
        && named.is_some_and(|it| matches!(&*walk.text(it), "Some" | "Ok"))
}

/// The names in a pattern; only one that stands alone has the value itself.
fn pattern_names(walk: &mut Walk<'_>, pattern: Node<'_>, scope: &Range<u32>, seen: Seen, typed: bool) {
    let mut waiting = vec![(pattern, 0_usize)];
    let mut alone = Some((seen, typed));
    while let Some((node, depth)) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::Identifier | Kind::ShorthandField) => {
                let name = text_of(walk, node);
                // Those are cases and constants, with which the value is compared.
                if !is_type_name(&name) {
                    let (seen, typed) = alone.take().unwrap_or((Seen::Unknown, false));
                    walk.local(&name, scope.clone(), seen, typed);
                }
            }
            Some(Kind::Scoped | Kind::ScopedType | Kind::TypeIdentifier | Kind::FieldIdentifier) => {}
            // `a: T` of a closure.
            Some(Kind::Parameter) => {
                let typed = walk.field(node, Field::Type as u8);
                let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
                if let Some(inner) = walk.field(node, Field::Pattern as u8) {
                    alone = Some((seen, typed.is_some()));
                    waiting.push((inner, depth + 1));
                }
            }
            Some(Kind::Call | Kind::Block | Kind::StringLiteral) => {}
            // `Some(x)` has what is held.
            _ if depth < NESTED_MAX && alone.is_some() && is_some(walk, node) => {
                let inner = node.named_child(1);
                alone = alone.map(|(seen, _)| (taken_out(seen), false));
                waiting.extend(inner.map(|it| (it, depth + 1)));
            }
            _ if depth < NESTED_MAX => {
                // `mut x` and `ref x` have the value too; parts of it have not.
                if !matches!(
                    node.kind(),
                    "mut_pattern" | "ref_pattern" | "match_pattern" | "closure_parameters"
                ) {
                    alone = None;
                }
                let condition = node.child_by_field_name("condition");
                let mut cursor = node.walk();
                let from = waiting.len();
                let inner = node.named_children(&mut cursor).filter(|it| Some(*it) != condition);
                waiting.extend(inner.map(|it| (it, depth + 1)));
                waiting[from..].reverse();
            }
            _ => {}
        }
    }
}
