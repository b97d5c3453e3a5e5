//! Parameters and variables in Ruby, and the classes of their values.

use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::ruby::{Field, Kind, path_of};

/// The deepest nesting of values that is followed.
const NESTED_MAX: usize = 8;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// The method or block around, which has the names that are given within it.
fn scope_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    let is_scope = |kind: u8| {
        matches!(
            Kind::of(kind),
            Some(
                Kind::Method
                    | Kind::SingletonMethod
                    | Kind::Block
                    | Kind::DoBlock
                    | Kind::Lambda
                    | Kind::Class
                    | Kind::Module
                    | Kind::SingletonClass
            )
        )
    };
    let around = walk.above.iter().rev().find(|above| is_scope(above.kind))?;
    // Methods do not know the variables of the class or the file around them.
    let is_class = matches!(Kind::of(around.kind), Some(Kind::Class | Kind::Module | Kind::SingletonClass));
    (!is_class).then(|| around.range())
}

fn class_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| matches!(Kind::of(kind), Some(Kind::Class | Kind::Module)))
}

/// Whether a name is that of a variable here.
pub(super) fn is_local(walk: &Walk<'_>, name: Node<'_>) -> bool {
    walk.facts.locals.seen(&walk.text(name), offset(name.start_byte())).is_some()
}

/// Records names that are given to something: by parameters, assignments, patterns, loops.
pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::Method | Kind::SingletonMethod | Kind::Block | Kind::DoBlock | Kind::Lambda => {
            for part in [Field::Name, Field::Object] {
                if let Some(name) = walk.field(node, part as u8) {
                    walk.claim(name);
                    name.named_child(0).into_iter().for_each(|it| walk.claim(it));
                }
            }
            if let Some(parameters) = walk.field(node, Field::Parameters as u8) {
                let scope = range(node);
                bind_all(walk, parameters, &scope);
            }
        }
        Kind::Assignment => given(walk, node),
        Kind::OperatorAssignment => given(walk, node),
        Kind::For => {
            let pattern = walk.field(node, Field::Pattern as u8);
            if let Some((pattern, scope)) = pattern.zip(scope_around(walk)) {
                bind_all(walk, pattern, &scope);
            }
        }
        Kind::ExceptionVariable => {
            if let Some(scope) = scope_around(walk) {
                bind_all(walk, node, &scope);
            }
        }
        Kind::Identifier => matched(walk, node),
        Kind::Splat | Kind::HashSplat if is_in_pattern(walk) => {
            if let Some((name, scope)) = walk.field(node, Field::Name as u8).zip(scope_around(walk)) {
                give(walk, name, &scope, Seen::Unknown);
            }
        }
        Kind::KeywordPattern => {
            // `in { name: }` gives the name.
            let key = node.named_child(0).filter(|_| node.named_child_count() == 1);
            if let Some((key, scope)) = key.zip(scope_around(walk)) {
                let name = walk.text(key).into_owned();
                walk.local(&name, scope, Seen::Unknown, false);
            }
        }
        _ => {}
    }
}

fn is_in_pattern(walk: &Walk<'_>) -> bool {
    matches!(
        Kind::of(walk.kind_above(0)),
        Some(
            Kind::ArrayPattern
                | Kind::FindPattern
                | Kind::HashPattern
                | Kind::KeywordPattern
                | Kind::AsPattern
                | Kind::In
        )
    )
}

/// A name in a pattern is given to what is found there.
fn matched(walk: &mut Walk<'_>, node: Node<'_>) {
    let is_pattern = is_in_pattern(walk)
        || matches!(Kind::of(walk.kind_above(0)), Some(Kind::MatchPattern | Kind::TestPattern))
            && node.parent().and_then(|it| it.child_by_field_name("pattern")) == Some(node);
    if is_pattern && let Some(scope) = scope_around(walk) {
        give(walk, node, &scope, Seen::Unknown);
    }
}

/// All names within a pattern or a list of parameters.
fn bind_all(walk: &mut Walk<'_>, within: Node<'_>, scope: &Range<u32>) {
    let mut waiting = vec![within];
    while let Some(node) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::Identifier) => give_new(walk, node, scope),
            Some(Kind::Optional | Kind::Keyword | Kind::Splat | Kind::HashSplat | Kind::BlockParameter) => {
                if let Some(name) = walk.field(node, Field::Name as u8) {
                    give_new(walk, name, scope);
                }
            }
            Some(
                Kind::MethodParameters
                | Kind::BlockParameters
                | Kind::LambdaParameters
                | Kind::Destructured
                | Kind::LeftList
                | Kind::DestructuredLeft
                | Kind::RestAssignment
                | Kind::ExceptionVariable,
            ) => {
                let mut cursor = node.walk();
                waiting.extend(node.named_children(&mut cursor));
            }
            _ => {}
        }
    }
}

fn give_new(walk: &mut Walk<'_>, name: Node<'_>, scope: &Range<u32>) {
    walk.claim(name);
    let text = walk.text(name);
    walk.local(&text, scope.clone(), Seen::Unknown, false);
}

/// A further value of a name that is known, or the first one of a new name.
fn give(walk: &mut Walk<'_>, name: Node<'_>, scope: &Range<u32>, seen: Seen) {
    walk.claim(name);
    let (text, at) = (walk.text(name), offset(name.start_byte()));
    if walk.facts.locals.seen(&text, at).is_some() {
        let owner = walk.scope.owner;
        walk.facts.locals.assign(&text, at, owner, seen);
    } else {
        walk.local(&text, scope.clone(), seen, false);
    }
}

/// `x = …`, `@x = …`, `x ||= …`, `a, b = …`.
fn given(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(left) = walk.field(node, Field::Left as u8) else { return };
    let right = walk.field(node, Field::Right as u8);
    let operator = walk.field(node, Field::Operator as u8).map(|it| walk.text(it));
    let seen = match operator.as_deref() {
        None | Some("||=" | "&&=") => right.map_or(Seen::Unknown, |right| of_value(walk, right)),
        Some(_) => Seen::Unknown,
    };
    match Kind::at(walk, left) {
        Some(Kind::Identifier) => match scope_around(walk) {
            Some(scope) => give(walk, left, &scope, seen),
            None => walk.claim(left),
        },
        Some(Kind::InstanceVariable | Kind::ClassVariable) => {
            if let Some(class) = class_around(walk) {
                let name = format!("this.{}", walk.text(left));
                walk.local(&name, class, seen, false);
            }
        }
        Some(Kind::LeftList) => {
            if let Some(scope) = scope_around(walk) {
                each_given(walk, left, &scope);
            }
        }
        _ => {}
    }
}

fn each_given(walk: &mut Walk<'_>, list: Node<'_>, scope: &Range<u32>) {
    let mut waiting = vec![list];
    while let Some(node) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::Identifier) => give(walk, node, scope, Seen::Unknown),
            Some(Kind::LeftList | Kind::DestructuredLeft | Kind::RestAssignment) => {
                let mut cursor = node.walk();
                waiting.extend(node.named_children(&mut cursor));
            }
            _ => {}
        }
    }
}

/// The name of the class around, as it is known there.
pub(super) fn own_class(walk: &Walk<'_>) -> Option<String> {
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        let symbol = &walk.facts.symbols[at as usize];
        if symbol.kind.has_members() {
            return Some(symbol.name().to_owned());
        }
        around = symbol.parent;
    }
    None
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
        match Kind::at(walk, value) {
            Some(Kind::Parenthesized) if value.named_child_count() == 1 => match value.named_child(0) {
                Some(inner) => value = inner,
                None => return Seen::Unknown,
            },
            // `a = b = Store.new`
            Some(Kind::Assignment) => match walk.field(value, Field::Right as u8) {
                Some(inner) => value = inner,
                None => return Seen::Unknown,
            },
            Some(Kind::Conditional) => {
                return either(
                    [Field::Consequence, Field::Alternative].map(|it| walk.field(value, it as u8)),
                );
            }
            Some(Kind::Binary) => {
                let operator = walk.field(value, Field::Operator as u8).map(|it| walk.text(it));
                return match operator.as_deref() {
                    Some("||" | "or") => {
                        either([Field::Left, Field::Right].map(|it| walk.field(value, it as u8)))
                    }
                    _ => Seen::Unknown,
                };
            }
            Some(Kind::Call) => return made(walk, value),
            Some(
                Kind::String
                | Kind::Heredoc
                | Kind::Symbol
                | Kind::StringArray
                | Kind::SymbolArray
                | Kind::Regex
                | Kind::Integer
                | Kind::Float
                | Kind::Array
                | Kind::Hash
                | Kind::Range
                | Kind::True
                | Kind::False,
            ) => return Seen::BuiltIn,
            Some(Kind::Nil) => return Seen::Unset,
            Some(Kind::Own) => return own_class(walk).map_or(Seen::Unknown, |class| Seen::Of(class.into())),
            Some(Kind::Identifier) => {
                let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
                return known.filter(|seen| **seen != Seen::Unset).cloned().unwrap_or(Seen::Unknown);
            }
            _ => return Seen::Unknown,
        }
    }
    Seen::Unknown
}

/// `Store.new(…)`, and `new(…)` within `Store`.
fn made(walk: &Walk<'_>, call: Node<'_>) -> Seen {
    let Some(method) = walk.field(call, Field::Method as u8) else { return Seen::Unknown };
    if walk.text(method) != "new" {
        // A literal that is made fast is one still.
        let frozen = walk.field(call, Field::Receiver as u8).filter(|_| walk.text(method) == "freeze");
        return match frozen.map(|it| one_of(walk, it, NESTED_MAX - 1)) {
            Some(Seen::BuiltIn) => Seen::BuiltIn,
            _ => Seen::Unknown,
        };
    }
    let class = match walk.field(call, Field::Receiver as u8) {
        None => own_class(walk),
        Some(receiver) if Kind::at(walk, receiver) == Some(Kind::Own) => own_class(walk),
        Some(receiver) => path_of(walk, receiver),
    };
    class.map_or(Seen::Unknown, |class| Seen::Of(class.into()))
}
