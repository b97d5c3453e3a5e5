//! Parameters and variables of functions, and the classes of their values, in JavaScript and TypeScript.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Above, Walk};
use super::super::{Given, Kind as Sort, Receiver};
use super::ecma::{Field, Kind};
use super::ecma_docs::{Doc, cast};
use super::ecma_given::{class_name, in_places};
use super::ecma_names::{bound_names, dotted, first_that_counts, property_name, unwrapped};

/// The deepest nesting of casts and types that is followed.
const NESTED_MAX: usize = 8;

fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

pub(super) fn class_around(walk: &Walk<'_>) -> Option<Range<u32>> {
    walk.range_above(|kind| Kind::of(kind) == Some(Kind::ClassBody))
}

/// The class that `this` is an instance of where the walk is. A `function`, and a method of an object, have a `this` of their own.
pub(super) fn class_of_this(walk: &Walk<'_>) -> Option<Range<u32>> {
    let mut above = walk.above.iter().rev().peekable();
    while let Some(it) = above.next() {
        match Kind::of(it.kind) {
            Some(Kind::ClassBody) => return Some(it.range()),
            Some(Kind::MethodDefinition) => {
                return above
                    .peek()
                    .filter(|it| Kind::of(it.kind) == Some(Kind::ClassBody))
                    .map(|it| it.range());
            }
            Some(
                Kind::FunctionDeclaration
                | Kind::GeneratorDeclaration
                | Kind::FunctionExpression
                | Kind::GeneratorFunction,
            ) => return None,
            _ => {}
        }
    }
    None
}

/// Whether `this` means the instance or the object of the symbol around. It does in methods, in functions that are the value of a field,
/// in fields and static blocks, and in arrow functions within these. In any other `function`, the caller decides what `this` is.
pub(super) fn is_this_known(walk: &Walk<'_>) -> bool {
    let has_own = |it: &Above| {
        matches!(
            Kind::of(it.kind),
            Some(
                Kind::MethodDefinition
                    | Kind::FunctionDeclaration
                    | Kind::GeneratorDeclaration
                    | Kind::FunctionExpression
                    | Kind::GeneratorFunction
                    | Kind::FieldDefinition
                    | Kind::PublicField
                    | Kind::StaticBlock
            )
        )
    };
    let Some(at) = walk.above.iter().rposition(has_own) else { return true };
    let range = walk.above[at].range();
    let all = &walk.facts.symbols;
    let owners = std::iter::successors(walk.scope.owner, |at| all[*at as usize].parent);
    let mut owners = owners.map(|at| &all[at as usize]);
    let Some(symbol) = owners.find(|it| it.range.start <= range.start) else { return false };
    let class = symbol.parent.map(|at| &all[at as usize]).filter(|it| it.kind == Sort::Class);
    let begins = class.unwrap_or(symbol).range.start;
    let mut between = walk.above[..at].iter().rev().take_while(|it| it.range().start >= begins);
    // An arrow function that gives this one back, or code that makes an object with it.
    if between.any(|it| matches!(Kind::of(it.kind), Some(Kind::ArrowFunction | Kind::StaticBlock))) {
        return false;
    }
    let is_its_own = symbol.range.end == range.end;
    match Kind::of(walk.above[at].kind) {
        Some(Kind::StaticBlock) => symbol.kind == Sort::Class,
        Some(Kind::FieldDefinition | Kind::PublicField) => {
            symbol.kind == Sort::Class || is_its_own && class.is_some()
        }
        _ => {
            let is_member =
                matches!(symbol.kind, Sort::Method | Sort::Getter | Sort::Setter | Sort::Constructor);
            is_member && is_its_own && !is_in_code_of_class(walk, symbol.parent)
        }
    }
}

/// Whether a symbol is a function in the code of a class. An object that this function makes is not the class.
fn is_in_code_of_class(walk: &Walk<'_>, symbol: Option<u32>) -> bool {
    let is = |at: Option<u32>, is_one: fn(Sort) -> bool| {
        at.is_some_and(|at| is_one(walk.facts.symbols[at as usize].kind))
    };
    let above = |at: u32| walk.facts.symbols[at as usize].parent;
    is(symbol, Sort::is_callable)
        && std::iter::successors(symbol, |at| above(*at)).any(|at| is(Some(at), |it| it == Sort::Class))
}

/// Records what a function calls its arguments, what a loop goes through, what was caught.
pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    match kind {
        Kind::FunctionDeclaration
        | Kind::GeneratorDeclaration
        | Kind::FunctionExpression
        | Kind::GeneratorFunction
        | Kind::ArrowFunction
        | Kind::MethodDefinition => {
            let doc = Doc::before(walk, node);
            type_parameters(walk, node, doc.as_ref());
            parameters(walk, node, doc.as_ref());
        }
        Kind::ClassDeclaration
        | Kind::AbstractClass
        | Kind::Class
        | Kind::Interface
        | Kind::TypeAlias
        | Kind::FunctionSignature => {
            let doc = Doc::before(walk, node);
            type_parameters(walk, node, doc.as_ref());
        }
        Kind::ForIn => names_of(walk, node, Field::Left),
        Kind::Catch => names_of(walk, node, Field::Parameter),
        _ => {}
    }
}

/// The name of a parameter of types among the locals. A value may have the same name, and is another thing.
pub(super) fn type_key(name: &str) -> String {
    format!("type {name}")
}

/// The types that a declaration takes as parameters: what is known of them is their bound, and nothing without one.
fn type_parameters(walk: &mut Walk<'_>, item: Node<'_>, doc: Option<&Doc<'_>>) {
    for name in doc.map(Doc::templates).into_iter().flatten() {
        walk.local(&type_key(name), range(item), Seen::Several, true);
    }
    let Some(list) = walk.field(item, Field::TypeParameters as u8) else { return };
    let mut cursor = list.walk();
    for parameter in list.named_children(&mut cursor) {
        let Some(name) = walk.field(parameter, Field::Name as u8) else { continue };
        let bound = walk.field(parameter, Field::Constraint as u8).and_then(|it| it.named_child(0));
        let seen = match bound.map(|bound| of_type(walk, bound)) {
            Some(seen @ (Seen::Of(_) | Seen::BuiltIn)) => seen,
            _ => Seen::Several,
        };
        let name = walk.text(name);
        walk.local(&type_key(&name), range(item), seen, true);
    }
}

fn names_of(walk: &mut Walk<'_>, node: Node<'_>, field: Field) {
    let Some(pattern) = walk.field(node, field as u8) else { return };
    for name in bound_names(walk, pattern) {
        let text = walk.text(name);
        walk.local(&text, range(node), Seen::Unknown, false);
    }
}

fn parameters(walk: &mut Walk<'_>, function: Node<'_>, doc: Option<&Doc<'_>>) {
    let given = walk.notes.given_to.remove(&function.id());
    let given = |place: u8| match &given {
        Some((path, argument)) => Seen::Of(Given::named(path, (*argument, place))),
        None => Seen::Unknown,
    };
    if let Some(alone) = walk.field(function, Field::Parameter as u8) {
        let name = walk.text(alone);
        let written = doc.and_then(|doc| doc.of_param(walk, &name, alone));
        let typed = written.is_some();
        return walk.local(&name, range(function), written.unwrap_or_else(|| given(0)), typed);
    }
    let Some(parameters) = walk.field(function, Field::Parameters as u8) else { return };
    for (place, parameter) in in_places(walk, parameters) {
        let pattern = without_default(walk, walk.field(parameter, Field::Pattern as u8).unwrap_or(parameter));
        if Kind::at(walk, pattern) != Some(Kind::Identifier) {
            let typed = walk.field(parameter, Field::Type as u8);
            let whole = typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            taken_apart(walk, pattern, &whole, typed, &range(function));
            continue;
        }
        let name = walk.text(pattern);
        let typed = walk.field(parameter, Field::Type as u8);
        let written = match typed {
            Some(typed) => Some(of_type(walk, typed)),
            None => doc.and_then(|doc| doc.of_param(walk, &name, pattern)),
        };
        let is_typed = written.is_some();
        let seen = written.unwrap_or_else(|| given(place));
        // `constructor(private store: Store)` makes a field.
        let first = parameter.child(0);
        let is_field = first.is_some_and(|first| {
            Kind::at(walk, first) == Some(Kind::Accessibility) || walk.is_token(first, "readonly")
        });
        if is_field && let Some(class) = class_around(walk) {
            walk.local(&format!("this.{name}"), class, seen.clone(), true);
        }
        walk.local(&name, range(function), seen, is_typed);
    }
}

/// What a parameter is called that has a value if none is given.
fn without_default<'t>(walk: &Walk<'_>, pattern: Node<'t>) -> Node<'t> {
    let is_default = Kind::at(walk, pattern) == Some(Kind::AssignmentPattern);
    let left = if is_default { walk.field(pattern, Field::Left as u8) } else { None };
    left.unwrap_or(pattern)
}

/// A variable that a function has for itself.
pub(super) fn variable(walk: &mut Walk<'_>, node: Node<'_>, pattern: Node<'_>, value: Option<Node<'_>>) {
    // `var` is known in the whole function.
    let is_hoisted = Kind::of(walk.kind_above(0)) == Some(Kind::Variable);
    let block = |kind: u8| match Kind::of(kind) {
        Some(Kind::Block | Kind::For | Kind::ForIn | Kind::SwitchBody) => !is_hoisted,
        Some(
            Kind::FunctionDeclaration
            | Kind::GeneratorDeclaration
            | Kind::FunctionExpression
            | Kind::GeneratorFunction
            | Kind::ArrowFunction
            | Kind::MethodDefinition,
        ) => true,
        _ => false,
    };
    let Some(scope) = walk.range_above(block) else { return };
    if Kind::at(walk, pattern) != Some(Kind::Identifier) {
        let typed = walk.field(node, Field::Type as u8);
        let (whole, _) = of_named(walk, node, value);
        return taken_apart(walk, pattern, &whole, typed, &scope);
    }
    let is_definition = value
        .and_then(|value| Kind::at(walk, value))
        .is_some_and(|kind| kind.is_function() || kind == Kind::Class);
    if !is_definition {
        let (seen, typed) = of_named(walk, node, value);
        let name = walk.text(pattern);
        walk.local(&name, scope, seen, typed);
    }
}

/// The names of a pattern, each with the type of the property that it is given: `shop` of `{ shop }: Props` is what `Props` says of it.
fn taken_apart(
    walk: &mut Walk<'_>,
    pattern: Node<'_>,
    whole: &Seen,
    typed: Option<Node<'_>>,
    scope: &Range<u32>,
) {
    let known = properties(walk, pattern, whole, typed);
    for name in bound_names(walk, pattern) {
        let seen = known.get(&name.id()).cloned().unwrap_or(Seen::Unknown);
        let text = walk.text(name);
        walk.local(&text, scope.clone(), seen, false);
    }
}

/// The types of the properties that a type of an object writes, by the properties' names; the first one of a name counts.
fn written_properties<'a, 't>(
    walk: &Walk<'a>,
    written: Node<'t>,
) -> BTreeMap<Cow<'a, str>, Option<Node<'t>>> {
    let mut found = BTreeMap::new();
    let mut cursor = written.walk();
    for it in written.named_children(&mut cursor) {
        let name = walk.field(it, Field::Name as u8).and_then(|name| property_name(walk, name));
        if let Some(name) = name.filter(|_| Kind::at(walk, it) == Some(Kind::PropertySignature)) {
            found.entry(name).or_insert_with(|| walk.field(it, Field::Type as u8));
        }
    }
    found
}

/// What is known of the names directly in a pattern of an object, by their nodes.
fn properties(
    walk: &Walk<'_>,
    pattern: Node<'_>,
    whole: &Seen,
    typed: Option<Node<'_>>,
) -> BTreeMap<usize, Seen> {
    let mut found = BTreeMap::new();
    if Kind::at(walk, pattern) != Some(Kind::ObjectPattern) || !walk.language.has_typed_members() {
        return found;
    }
    let written = typed
        .and_then(|typed| typed.named_child(0))
        .filter(|it| Kind::at(walk, *it) == Some(Kind::ObjectType))
        .map(|written| written_properties(walk, written));
    let of_property = |key: Node<'_>| {
        let key = property_name(walk, key)?;
        if let Some(written) = &written {
            return written.get(&key)?.map(|typed| of_type(walk, typed));
        }
        member_of(whole, &key)
    };
    let mut cursor = pattern.walk();
    for part in pattern.named_children(&mut cursor) {
        let (key, bound) = match Kind::at(walk, part) {
            Some(Kind::ShorthandPattern) => (Some(part), Some(part)),
            // What stands there if the property is not given has the type of the property.
            Some(Kind::ObjectAssignment) => {
                let left = walk.field(part, Field::Left as u8);
                (left, left)
            }
            Some(Kind::PairPattern) => {
                (walk.field(part, Field::Key as u8), walk.field(part, Field::Value as u8))
            }
            _ => continue,
        };
        if let Some((key, bound)) = key.zip(bound) {
            found.extend(of_property(key).map(|seen| (bound.id(), seen)));
        }
    }
    found
}

/// What the type of a value says of one of its properties.
fn member_of(whole: &Seen, name: &str) -> Option<Seen> {
    match whole {
        Seen::Of(class) if !name.contains(['.', '[']) => Some(Seen::Of(format!("{class}.{name}").into())),
        _ => None,
    }
}

/// `s ??= …`, and what else gives a name another value beside the one that it has.
pub(super) fn filled(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = [Field::Left, Field::Right].map(|field| walk.field(node, field as u8));
    let operator = walk.field(node, Field::Operator as u8);
    let ([Some(left), Some(right)], Some(operator)) = (parts, operator) else { return };
    if matches!(&*walk.text(operator), "??=" | "||=" | "&&=") {
        assigned(walk, left, right);
    } else if Kind::at(walk, left) == Some(Kind::Identifier) {
        // Numbers and texts are all that operators make.
        assign(walk, left, Seen::BuiltIn);
    }
}

fn assign(walk: &mut Walk<'_>, name: Node<'_>, seen: Seen) {
    let (text, at, owner) = (walk.text(name), offset(name.start_byte()), walk.scope.owner);
    walk.facts.locals.assign(&text, at, owner, seen);
}

/// `s = …`, `[s] = …` and `this.s = …`.
pub(super) fn assigned(walk: &mut Walk<'_>, left: Node<'_>, right: Node<'_>) {
    let seen = seen_of(walk, right);
    match Kind::at(walk, left) {
        Some(Kind::Identifier) => return assign(walk, left, seen),
        Some(Kind::ArrayPattern | Kind::ObjectPattern) => {
            for name in bound_names(walk, left) {
                assign(walk, name, Seen::Unknown);
            }
            return;
        }
        _ => {}
    }
    let field = dotted(walk, left).filter(|path| path.starts_with("this.") && path.matches('.').count() == 1);
    if let (Some(path), Some(class)) = (field, class_of_this(walk)) {
        let written = Doc::before(walk, left).and_then(|doc| doc.of_value(walk, left));
        let is_written = written.is_some();
        walk.local(&path, class, written.unwrap_or(seen), is_written);
    }
}

/// The value of a name, by its type or else by what is assigned; whether its type is written.
pub(super) fn of_named(walk: &Walk<'_>, node: Node<'_>, value: Option<Node<'_>>) -> (Seen, bool) {
    let written = match walk.field(node, Field::Type as u8) {
        Some(typed) => Some(of_type(walk, typed)),
        // An object that is written there has members of its own.
        None if value.is_some_and(|it| Kind::at(walk, unwrapped(walk, it)) == Some(Kind::Object)) => None,
        None => Doc::before(walk, node).and_then(|doc| doc.of_value(walk, node)),
    };
    let is_written = written.is_some();
    let set = || value.map_or(Seen::Unset, |value| seen_of(walk, value));
    (written.unwrap_or_else(set), is_written)
}

/// What a function gives back, if it is written.
pub(super) fn of_result(walk: &Walk<'_>, function: Node<'_>) -> Option<Seen> {
    match walk.field(function, Field::ReturnType as u8) {
        Some(typed) => Some(of_type(walk, typed)),
        None => Doc::before(walk, function).and_then(|doc| doc.of_result(walk, function)),
    }
}

/// The value of an expression.
pub(super) fn seen_of(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    one_of(walk, value, 0)
}

/// The value of an expression that is one of two.
fn either(walk: &Walk<'_>, values: [Option<Node<'_>>; 2], depth: usize) -> Seen {
    let [one, other] = values.map(|it| it.map_or(Seen::Unknown, |it| one_of(walk, it, depth + 1)));
    one.or(other)
}

/// An instance of a class that `new` makes.
fn made(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    let class = walk.field(value, Field::Constructor as u8).and_then(|it| dotted(walk, it));
    // Of a class that a parameter stands for, nothing is known.
    let at = offset(value.start_byte());
    let is_local =
        |class: &str| walk.facts.locals.seen(class.split('.').next().unwrap_or(class), at).is_some();
    match class {
        Some(class) if is_local(&class) => Seen::Several,
        Some(class) => Seen::Of(class.into()),
        None => Seen::Unknown,
    }
}

fn one_of(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    let mut value = value;
    for _ in depth..NESTED_MAX {
        let inner = match Kind::at(walk, value) {
            Some(Kind::Parenthesized) => match cast(walk, value) {
                Some(seen) => return seen,
                None => first_that_counts(walk, value),
            },
            Some(Kind::NonNull) => value.named_child(0),
            Some(Kind::As | Kind::Satisfies) => {
                let last = u32::try_from(value.named_child_count()).unwrap_or(0).saturating_sub(1);
                return value.named_child(last).map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::TypeAssertion) => {
                let typed = value.named_child(0).and_then(|typed| typed.named_child(0));
                return typed.map_or(Seen::Unknown, |typed| of_type(walk, typed));
            }
            Some(Kind::New) => return made(walk, value),
            Some(Kind::Ternary) => {
                let values = [Field::Consequence, Field::Alternative];
                return either(walk, values.map(|it| walk.field(value, it as u8)), depth);
            }
            Some(Kind::Binary) => {
                let operator = walk.field(value, Field::Operator as u8).map(|it| walk.text(it));
                if !matches!(operator.as_deref(), Some("||" | "??" | "&&")) {
                    return Seen::Unknown;
                }
                let values = [Field::Left, Field::Right];
                return either(walk, values.map(|it| walk.field(value, it as u8)), depth);
            }
            Some(Kind::Array | Kind::String | Kind::Template | Kind::Number | Kind::Regex) => {
                return Seen::BuiltIn;
            }
            Some(Kind::Null | Kind::Undefined) => return Seen::Unset,
            Some(Kind::Member) if walk.language.has_typed_members() => {
                let path = dotted(walk, value)
                    .filter(|path| path.starts_with("this.") && class_of_this(walk).is_some());
                let set = path.and_then(|it| walk.facts.locals.seen(&it, offset(value.start_byte())));
                if let Some(set @ (Seen::Of(_) | Seen::BuiltIn)) = set {
                    return set.clone();
                }
                let [of, name] = [Field::Object, Field::Property].map(|it| walk.field(value, it as u8));
                let of = of.map_or(Seen::Unknown, |of| one_of(walk, of, depth + 1));
                let name = name.map(|name| walk.text(name)).unwrap_or_default();
                return member_of(&of, &name).unwrap_or(Seen::Unknown);
            }
            Some(Kind::This) if walk.language.has_typed_members() => {
                let class = class_of_this(walk).and_then(|_| class_name(walk));
                return class.map_or(Seen::Unknown, |class| Seen::Of(class.into()));
            }
            Some(Kind::Identifier) => {
                let known = walk.facts.locals.seen(&walk.text(value), offset(value.start_byte()));
                return known.filter(|seen| **seen != Seen::Unset).cloned().unwrap_or(Seen::Unknown);
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

/// The name of a type that is made for others; of those types of the language that have the members of what they are made for, that
/// one.
fn without_helper<'t>(walk: &Walk<'_>, typed: Node<'t>) -> Option<Node<'t>> {
    let name = walk.field(typed, Field::Name as u8).or_else(|| typed.named_child(0))?;
    if !matches!(&*walk.text(name), "Partial" | "Readonly" | "Required" | "NonNullable") {
        return Some(name);
    }
    let mut cursor = typed.walk();
    let arguments =
        typed.named_children(&mut cursor).find(|it| Kind::at(walk, *it) == Some(Kind::TypeArguments));
    arguments.and_then(|it| it.named_child(0))
}

/// Whether a type is one that the caller chooses: a parameter of types of a declaration around it, or one of those with these names.
pub(super) fn is_chosen(walk: &Walk<'_>, typed: Node<'_>, made_for: &[Cow<'_, str>]) -> bool {
    let bare = bare_type(walk, typed).filter(|it| Kind::at(walk, *it) == Some(Kind::TypeIdentifier));
    bare.is_some_and(|it| {
        let name = walk.text(it);
        let is_known = walk.facts.locals.seen(&type_key(&name), offset(it.start_byte())).is_some();
        is_known || made_for.contains(&name)
    })
}

/// What stands for a type within brackets, what makes a type of it that has its members, and an annotation. None of one of several.
fn bare_type<'t>(walk: &Walk<'_>, typed: Node<'t>) -> Option<Node<'t>> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::TypeAnnotation | Kind::ParenthesizedType => typed.named_child(0),
            Kind::GenericType => without_helper(walk, typed),
            Kind::Union => {
                let mut cursor = typed.walk();
                let mut parts = typed.named_children(&mut cursor).filter(|part| {
                    !matches!(&*walk.text(*part), "null" | "undefined")
                        && Kind::at(walk, *part) != Some(Kind::Comment)
                });
                let only = parts.next();
                if parts.next().is_some() { None } else { only }
            }
            _ => return Some(typed),
        }?;
    }
    None
}

/// A value of a type that is written.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    let Some(typed) = bare_type(walk, typed) else { return Seen::Unknown };
    match Kind::at(walk, typed) {
        Some(Kind::TypeIdentifier | Kind::NestedType) => {
            let name = walk.text(typed).split_whitespace().collect::<String>();
            let of_caller = walk.facts.locals.seen(&type_key(&name), offset(typed.start_byte()));
            of_caller.cloned().unwrap_or_else(|| Seen::Of(name.into()))
        }
        Some(Kind::ArrayType | Kind::TupleType) => Seen::BuiltIn,
        Some(Kind::PredefinedType) => {
            let is_any = matches!(&*walk.text(typed), "any" | "unknown" | "object");
            if is_any { Seen::Unknown } else { Seen::BuiltIn }
        }
        _ => Seen::Unknown,
    }
}

/// The receiver of a call, where it is an expression that shows its type: `new S().f()`, `(x as S).f()`.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Option<Receiver> {
    let mut bare = object;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, bare) {
            Some(Kind::Parenthesized) if cast(walk, bare).is_some() => break,
            Some(Kind::Parenthesized | Kind::NonNull) => bare = first_that_counts(walk, bare)?,
            // What names say is looked at by their ways.
            Some(Kind::Identifier | Kind::Member) if dotted(walk, bare).is_some() => return None,
            _ => break,
        }
    }
    seen_of(walk, bare).receiver()
}
