//! Types and values in PHP, as far as the file shows them, and the local names of functions.

use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::notes::BOTH;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::super::{Kind as Sort, Receiver};
use super::children::{child_of, children_of};
use super::php::{Field, Kind};
use super::php_names as names;

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 16;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// The path of the class around.
pub(super) fn own_class(walk: &Walk<'_>) -> Option<String> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        let symbol = &walk.facts.symbols[at as usize];
        if symbol.kind.has_members() && symbol.kind != Sort::Namespace {
            return Some(symbol.name().to_owned());
        }
        around = symbol.parent;
    }
    None
}

/// The class above the one around.
pub(super) fn parent_class(walk: &Walk<'_>) -> Option<String> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        if let Some(above) = walk.notes.stands_for.get(&at) {
            return Some(above.to_string());
        }
        around = walk.facts.symbols[at as usize].parent;
    }
    None
}

fn of_own(walk: &Walk<'_>, word: &str) -> Seen {
    let class = if word == "parent" { parent_class(walk) } else { own_class(walk) };
    class.map_or(Seen::Unknown, |class| Seen::Of(class.into()))
}

/// What is known of a value by its type.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, typed) {
            Some(Kind::NamedType | Kind::OptionalType) => typed.named_child(0),
            Some(Kind::UnionType | Kind::TypeList) => {
                let mut cursor = typed.walk();
                let mut all = typed.named_children(&mut cursor).filter(|it| walk.text(*it) != "null");
                let only = all.next();
                if all.next().is_some() { None } else { only }
            }
            Some(Kind::PrimitiveType) => {
                return match &*walk.text(typed) {
                    "static" => of_own(walk, "static"),
                    "mixed" | "object" | "callable" | "iterable" => Seen::Unknown,
                    _ => Seen::BuiltIn,
                };
            }
            Some(Kind::Name | Kind::QualifiedName | Kind::RelativeName) => {
                let text = walk.text(typed);
                if matches!(&*text, "self" | "static" | "parent") {
                    return of_own(walk, &text);
                }
                return names::class_of(walk, typed).map_or(Seen::Unknown, |class| Seen::Of(class.into()));
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

/// What a function gives back, by what it says.
pub(super) fn of_result(walk: &Walk<'_>, function: Node<'_>) -> Seen {
    walk.field(function, Field::ReturnType as u8).map_or(Seen::Unknown, |typed| of_type(walk, typed))
}

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    one_of(walk, value, 0)
}

fn one_of(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    let either = |values: [Option<Node<'_>>; 2]| {
        let [one, other] = values.map(|it| it.map_or(Seen::Unknown, |it| one_of(walk, it, depth + 1)));
        one.or(other)
    };
    let mut value = value;
    for _ in depth..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized | Kind::Clone) => value.named_child(0),
            Some(Kind::Assignment) => walk.field(value, Field::Right as u8),
            Some(Kind::Conditional) => {
                return either([Field::Body, Field::Alternative].map(|it| walk.field(value, it as u8)));
            }
            Some(Kind::Binary) => {
                let operator = walk.field(value, Field::Operator as u8).map(|it| walk.text(it));
                return match operator.as_deref() {
                    Some("??") => either([Field::Left, Field::Right].map(|it| walk.field(value, it as u8))),
                    _ => Seen::BuiltIn,
                };
            }
            Some(Kind::New) => return made(walk, value),
            Some(
                Kind::String
                | Kind::EncapsedString
                | Kind::Heredoc
                | Kind::Nowdoc
                | Kind::Integer
                | Kind::Float
                | Kind::Boolean
                | Kind::Array,
            ) => return Seen::BuiltIn,
            Some(Kind::Null) => return Seen::Unset,
            Some(Kind::Variable) => {
                let name = walk.text(value);
                if name == "$this" {
                    return of_own(walk, "self");
                }
                return match walk.facts.locals.seen(&name, offset(value.start_byte())) {
                    // Of several classes the one counts that was asked for last.
                    Some(Seen::Of(class)) => Seen::Of(class.split(BOTH).next().unwrap_or(class).into()),
                    None | Some(Seen::Unset) => Seen::Unknown,
                    Some(seen) => seen.clone(),
                };
            }
            Some(
                Kind::Call
                | Kind::MemberCall
                | Kind::SafeMemberCall
                | Kind::ScopedCall
                | Kind::Member
                | Kind::SafeMember
                | Kind::ScopedMember,
            ) => return along(walk, value, depth + 1).map_or(Seen::Unknown, |path| Seen::Of(path.into())),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// `new A`, `new self`.
fn made(walk: &Walk<'_>, node: Node<'_>) -> Seen {
    let Some(class) = node.named_child(0) else { return Seen::Unknown };
    match Kind::at(walk, class) {
        Some(Kind::AnonymousClass) => Seen::Unknown,
        _ => of_type(walk, class),
    }
}

/// The way to a value through members, from a class on: `Store.repository.find`.
fn along(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Option<String> {
    if depth > NESTED_MAX {
        return None;
    }
    let name =
        |field: Field| walk.field(value, field as u8).filter(|it| Kind::at(walk, *it) == Some(Kind::Name));
    match Kind::at(walk, value)? {
        Kind::Call => names::function_of(walk, walk.field(value, Field::Function as u8)?),
        Kind::MemberCall | Kind::SafeMemberCall | Kind::Member | Kind::SafeMember => {
            let name = walk.text(name(Field::Name)?);
            match one_of(walk, walk.field(value, Field::Object as u8)?, depth + 1) {
                Seen::Of(class) => Some(format!("{class}.{name}")),
                _ => None,
            }
        }
        Kind::ScopedCall => {
            let name = walk.text(name(Field::Name)?);
            Some(format!("{}.{name}", scope_of(walk, value)?))
        }
        Kind::ScopedMember => {
            let name = walk.field(value, Field::Name as u8)?;
            Some(format!("{}.{}", scope_of(walk, value)?, walk.text(name).trim_start_matches('$')))
        }
        _ => None,
    }
}

/// The class before `::`.
pub(super) fn scope_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let scope = walk.field(node, Field::Scope as u8)?;
    match Kind::at(walk, scope)? {
        Kind::RelativeScope if walk.text(scope) == "parent" => parent_class(walk),
        Kind::RelativeScope => own_class(walk),
        Kind::Name | Kind::QualifiedName | Kind::RelativeName => names::class_of(walk, scope),
        _ => None,
    }
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Receiver {
    let mut object = object;
    while Kind::at(walk, object) == Some(Kind::Parenthesized)
        && let Some(inner) = object.named_child(0)
    {
        object = inner;
    }
    match Kind::at(walk, object) {
        Some(Kind::Variable) if walk.text(object) == "$this" => Receiver::This,
        Some(Kind::Variable) => Receiver::Path(walk.text(object).into()),
        Some(Kind::Member | Kind::SafeMember) => {
            let [of, name] = [Field::Object, Field::Name].map(|field| walk.field(object, field as u8));
            match (of, name) {
                (Some(of), Some(name))
                    if walk.text(of) == "$this" && Kind::at(walk, name) == Some(Kind::Name) =>
                {
                    Receiver::Path(format!("this.{}", walk.text(name)).into())
                }
                _ => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
            }
        }
        _ => of_value(walk, object).receiver().unwrap_or(Receiver::Other),
    }
}

// Names that functions have for themselves.

fn function_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(
            Kind::of(kind),
            Some(Kind::Function | Kind::Method | Kind::AnonymousFunction | Kind::ArrowFunction)
        )
    })
}

fn class_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| {
        matches!(Kind::of(kind), Some(Kind::Class | Kind::Trait | Kind::Enum | Kind::AnonymousClass))
    })
}

/// What a function calls its arguments, and what it takes in from around.
pub(super) fn parameters(walk: &mut Walk<'_>, function: Node<'_>) {
    let list = walk.field(function, Field::Parameters as u8);
    let scope = range(function);
    for parameter in list.map_or(Vec::new(), |list| {
        let mut cursor = list.walk();
        list.named_children(&mut cursor).collect::<Vec<_>>()
    }) {
        let typed = walk.field(parameter, Field::Type as u8);
        let seen = match (Kind::at(walk, parameter), typed) {
            (Some(Kind::Variadic), _) => Seen::BuiltIn,
            (Some(Kind::Parameter | Kind::Promoted), Some(typed)) => of_type(walk, typed),
            (Some(Kind::Parameter | Kind::Promoted), None) => Seen::Unknown,
            _ => continue,
        };
        if let Some(name) = walk.field(parameter, Field::Name as u8) {
            let name = walk.text(name).trim_start_matches('&').to_owned();
            // Another value may be given to the name, which need not have the type that is written here.
            walk.local(&name, scope.clone(), seen, false);
        }
    }
    if let Some(taken) = child_of(walk, function, &[Kind::UseVariables]) {
        for name in children_of(walk, taken, Kind::Variable) {
            let seen = of_value(walk, name);
            let name = walk.text(name);
            walk.local(&name, scope.clone(), seen, false);
        }
    }
}

/// `$x = …`, `$x ??= …`, `$this->x = …`, `[$a, $b] = …`.
pub(super) fn assigned(walk: &mut Walk<'_>, node: Node<'_>) {
    let [left, right] = [Field::Left, Field::Right].map(|field| walk.field(node, field as u8));
    let Some(left) = left else { return };
    let operator = walk.field(node, Field::Operator as u8).map(|it| walk.text(it));
    let seen = match operator.as_deref() {
        None | Some("??=") => right.map_or(Seen::Unknown, |right| of_value(walk, right)),
        // Numbers, texts and lists are all that the other ones make.
        Some(_) => Seen::BuiltIn,
    };
    match Kind::at(walk, left) {
        Some(Kind::Variable) => {
            if let Some(scope) = function_around(walk) {
                let name = walk.text(left);
                let is_made = right.is_some_and(|right| Kind::at(walk, right) == Some(Kind::New));
                let known = walk.facts.locals.seen(&name, offset(left.start_byte()));
                // What a function gives back may be of the same class: `$a = $a->with(…)`.
                let is_other =
                    matches!((known, &seen), (Some(Seen::Of(one)), Seen::Of(other)) if one != other);
                let seen = if is_other && !is_made { Seen::Unknown } else { seen };
                give(walk, &name, left, scope, seen);
            }
        }
        Some(Kind::Member) => {
            let [of, name] = [Field::Object, Field::Name].map(|field| walk.field(left, field as u8));
            if let (Some(of), Some(name), Some(class)) = (of, name, class_around(walk))
                && walk.text(of) == "$this"
            {
                let name = format!("this.{}", walk.text(name));
                walk.local(&name, class, seen, false);
            }
        }
        Some(Kind::List | Kind::Array) => {
            if let Some(scope) = function_around(walk) {
                all_unknown(walk, left, &scope);
            }
        }
        _ => {}
    }
}

/// Gives a name a value, also where conditions have said what the name is.
fn give(walk: &mut Walk<'_>, name: &str, at: Node<'_>, scope: Range<u32>, seen: Seen) {
    walk.local(name, scope.clone(), seen.clone(), false);
    walk.facts.locals.assign_within(&scope, name, offset(at.start_byte()), &seen);
}

/// `if ($x instanceof A && …) { … }`: from there to the end of the branch, the name has that class.
pub(super) fn narrowed(walk: &mut Walk<'_>, node: Node<'_>) {
    let [condition, body] = [Field::Condition, Field::Body].map(|field| walk.field(node, field as u8));
    let (Some(condition), Some(body), Some(function)) = (condition, body, function_around(walk)) else {
        return;
    };
    let mut waiting = vec![condition];
    for _ in 0..NESTED_MAX {
        let Some(it) = waiting.pop() else { return };
        let [left, operator, right] =
            [Field::Left, Field::Operator, Field::Right].map(|field| walk.field(it, field as u8));
        match (Kind::at(walk, it), left, right) {
            (Some(Kind::Parenthesized), ..) => waiting.extend(it.named_child(0)),
            (Some(Kind::Binary), Some(left), Some(right)) => {
                match operator.map(|it| walk.text(it).to_ascii_lowercase()).as_deref() {
                    // The left one comes first, so that what is asked behind it adds to it.
                    Some("&&" | "and") => waiting.extend([right, left]),
                    Some("instanceof") if Kind::at(walk, left) == Some(Kind::Variable) => {
                        let name = walk.text(left);
                        let scope = offset(it.end_byte())..offset(body.end_byte());
                        if let Seen::Of(class) = of_type(walk, right)
                            && name != "$this"
                        {
                            let seen = also_of(walk, &name, it, class);
                            // The function has the name, too, so that it is known there what else it is given.
                            walk.local(&name, function.clone(), Seen::Unset, false);
                            walk.local(&name, scope, seen, false);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// What is known of a name that is also of a class: it keeps the members of the class that it is of by what is written.
fn also_of(walk: &Walk<'_>, name: &str, at: Node<'_>, class: Box<str>) -> Seen {
    match walk.facts.locals.seen(name, offset(at.start_byte())) {
        Some(Seen::Of(known)) if known.matches(BOTH).count() < NESTED_MAX => {
            Seen::Of(format!("{class}{BOTH}{known}").into())
        }
        _ => Seen::Of(class),
    }
}

fn all_unknown(walk: &mut Walk<'_>, within: Node<'_>, scope: &Range<u32>) {
    let mut waiting = vec![within];
    for _ in 0..NESTED_MAX * NESTED_MAX {
        let Some(node) = waiting.pop() else { return };
        if Kind::at(walk, node) == Some(Kind::Variable) {
            let name = walk.text(node);
            give(walk, &name, node, scope.clone(), Seen::Unknown);
        } else {
            let mut cursor = node.walk();
            waiting.extend(node.named_children(&mut cursor));
        }
    }
}

/// What a loop goes through, what is caught.
pub(super) fn bound(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(scope) = function_around(walk) else { return };
    match kind {
        Kind::Catch => {
            let typed = walk.field(node, Field::Type as u8);
            let seen = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            if let Some(name) = walk.field(node, Field::Name as u8) {
                let name = walk.text(name);
                walk.local(&name, range(node), seen, true);
            }
        }
        Kind::Foreach => {
            let mut cursor = node.walk();
            let body = walk.field(node, Field::Body as u8);
            let parts: Vec<Node<'_>> =
                node.named_children(&mut cursor).filter(|it| Some(*it) != body).collect();
            // The first is what is gone through.
            for part in parts.into_iter().skip(1) {
                all_unknown(walk, part, &scope);
            }
        }
        _ => {
            if let Some(name) = walk.field(node, Field::Name as u8) {
                let name = walk.text(name);
                walk.local(&name, scope, Seen::Unknown, false);
            }
        }
    }
}
