//! Types as they are written in Swift, and the values of names, as far as their types can be seen.

use tree_sitter::Node;

use super::super::Receiver;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::Walk;
use super::children::{child_of, children_of};
use super::swift::{Field, Kind};

/// The deepest nesting of values and types that is followed.
const NESTED_MAX: usize = 24;

/// A name without the marks of one that is no word.
pub(super) fn name(walk: &Walk<'_>, node: Node<'_>) -> String {
    let text = walk.text(node);
    // Between marks may be anything, and dots separate names.
    text.strip_prefix('`').map_or_else(|| text.to_string(), |it| it.trim_end_matches('`').replace('.', "_"))
}

/// The path of the type around, from the innermost function on that it is in.
pub(super) fn own_type(walk: &Walk<'_>) -> Option<String> {
    let symbols = &walk.facts.symbols;
    let mut around = walk.scope.owner;
    while let Some(at) = around {
        let symbol = &symbols[at as usize];
        if symbol.kind.has_members() {
            let mut outer = symbol.parent;
            while let Some(of) = outer {
                if symbols[of as usize].kind.is_callable() {
                    return Some(symbol.name().to_owned());
                }
                outer = symbols[of as usize].parent;
            }
            return Some(symbol.path.to_string());
        }
        around = symbol.parent;
    }
    None
}

/// The name of a type, `Store` or `Shop.Store`, without its arguments; none of one without a name.
pub(super) fn path_of(walk: &Walk<'_>, typed: Node<'_>) -> Option<String> {
    let mut typed = typed;
    for _ in 0..NESTED_MAX {
        typed = match Kind::at(walk, typed)? {
            Kind::UserType => {
                let names = children_of(walk, typed, Kind::TypeIdentifier);
                let mut names: Vec<String> = names.into_iter().map(|it| name(walk, it)).collect();
                names.retain(|it| !matches!(&**it, "Type" | "Protocol"));
                if names.first().is_some_and(|it| it == "Self") {
                    names[0] = own_type(walk)?;
                }
                // These are what they wrap to all who use it.
                if names == ["Optional"]
                    && let Some(wrapped) = child_of(walk, typed, &[Kind::TypeArguments])
                {
                    typed = wrapped.named_child(0)?;
                    continue;
                }
                return (!names.is_empty()).then(|| names.join("."));
            }
            Kind::OptionalType => walk.field(typed, Field::Wrapped as u8)?,
            Kind::ArrayType => return Some("Array".into()),
            Kind::DictionaryType => return Some("Dictionary".into()),
            Kind::ExistentialType | Kind::OpaqueType | Kind::CompositionType | Kind::MetaType => {
                typed.named_child(0)?
            }
            // One in brackets, and `()` of nothing.
            Kind::TupleType if typed.named_child_count() == 1 => typed.named_child(0)?.named_child(0)?,
            _ => return None,
        };
    }
    None
}

/// What is known of a value by its type. A parameter of types stands for its bound.
pub(super) fn of_type(walk: &Walk<'_>, typed: Node<'_>) -> Seen {
    path_of(walk, typed).map_or(Seen::Unknown, |path| walk.of_path(path, typed))
}

/// An expression without brackets, `try`, `await` and `!` around it.
pub(super) fn unwrapped<'t>(walk: &Walk<'_>, node: Node<'t>) -> Node<'t> {
    let mut node = node;
    for _ in 0..NESTED_MAX {
        let inner = match Kind::at(walk, node) {
            Some(Kind::Try | Kind::Await) => walk.field(node, Field::Expression as u8),
            Some(Kind::Tuple) if node.named_child_count() == 1 => walk.field(node, Field::Value as u8),
            Some(Kind::Postfix) if walk.text(node).ends_with('!') => walk.field(node, Field::Target as u8),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

/// What stands directly before a dot or a bracket, without what `unwrapped` takes off. The grammar takes `1 + b.c` in `1 + b.c()` for
/// what is called, and `-b!` in `-b!.c` for what has the member: only the operand on the right is. `after_operators` says whether
/// operators may stand before it, which ends within brackets.
pub(super) fn before_a_call<'t>(walk: &Walk<'_>, node: Node<'t>, after_operators: &mut bool) -> Node<'t> {
    let mut node = node;
    for _ in 0..if *after_operators { NESTED_MAX } else { 0 } {
        let operand = match Kind::at(walk, node) {
            Some(Kind::Additive | Kind::Multiplicative) => walk.field(node, Field::Right as u8),
            Some(Kind::Prefix) if !is_implicit(walk, node) => walk.field(node, Field::Target as u8),
            Some(Kind::Postfix) if walk.text(node).ends_with('!') => walk.field(node, Field::Target as u8),
            Some(Kind::Try | Kind::Await) => walk.field(node, Field::Expression as u8),
            _ => None,
        };
        let Some(operand) = operand else { break };
        node = operand;
    }
    *after_operators &= Kind::at(walk, node) != Some(Kind::Tuple);
    unwrapped(walk, node)
}

/// `.name`, of a type that is not said.
pub(super) fn is_implicit(walk: &Walk<'_>, node: Node<'_>) -> bool {
    Kind::at(walk, node) == Some(Kind::Prefix)
        && walk.field(node, Field::Operation as u8).is_some_and(|it| walk.is_token(it, "."))
}

/// `a[0]`, which has the form of a call in the grammar.
pub(super) fn is_element(walk: &Walk<'_>, call: Node<'_>) -> bool {
    let suffix = child_of(walk, call, &[Kind::CallSuffix]);
    let list = suffix.and_then(|it| child_of(walk, it, &[Kind::ValueArguments]));
    list.and_then(|it| it.child(0)).is_some_and(|it| walk.is_token(it, "["))
}

/// What stands before the last name of `a.b.c`, and that name.
pub(super) fn parts_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<(Node<'t>, String)> {
    let object = walk.field(node, Field::Target as u8)?;
    let suffix = walk.field(node, Field::Suffix as u8)?;
    let last = walk.field(suffix, Field::Suffix as u8)?;
    (Kind::at(walk, last) == Some(Kind::SimpleIdentifier)).then(|| (object, name(walk, last)))
}

/// What is known of the value of an expression.
pub(super) fn of_value(walk: &Walk<'_>, value: Node<'_>) -> Seen {
    of_value_within(walk, value, 0)
}

fn of_value_within(walk: &Walk<'_>, value: Node<'_>, depth: usize) -> Seen {
    const BRANCHES_MAX: usize = 4;
    let value = unwrapped(walk, value);
    let field = |field: Field| walk.field(value, field as u8);
    let branch = |node: Option<Node<'_>>| match node {
        Some(node) if depth < BRANCHES_MAX => of_value_within(walk, node, depth + 1),
        _ => Seen::Unknown,
    };
    match Kind::at(walk, value) {
        Some(Kind::As) => field(Field::Name).map_or(Seen::Unknown, |typed| of_type(walk, typed)),
        Some(Kind::LineString | Kind::MultiLineString | Kind::RawString) => Seen::Of("String".into()),
        Some(Kind::Integer | Kind::Hexadecimal | Kind::Octal | Kind::Binary) => Seen::Of("Int".into()),
        Some(Kind::Real) => Seen::Of("Double".into()),
        Some(Kind::Boolean) => Seen::Of("Bool".into()),
        Some(Kind::Array) => Seen::Of("Array".into()),
        Some(Kind::Dictionary) => Seen::Of("Dictionary".into()),
        Some(Kind::Ternary) => branch(field(Field::IfTrue)).or(branch(field(Field::IfFalse))),
        Some(Kind::NilCoalescing) => branch(field(Field::Value)),
        Some(
            Kind::SimpleIdentifier | Kind::Navigation | Kind::Call | Kind::SelfExpression | Kind::Constructor,
        ) => path_to(walk, value, false).unwrap_or(Seen::Unknown),
        None if &*walk.text(value) == "nil" => Seen::Unset,
        _ => Seen::Unknown,
    }
}

/// What names and calls behind each other lead to: `a.b().c` is the `c` of what `a.b` gives back. The graph looks up what the
/// members say of themselves.
fn path_to(walk: &Walk<'_>, value: Node<'_>, mut after_operators: bool) -> Option<Seen> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        value = before_a_call(walk, value, &mut after_operators);
        let first = match Kind::at(walk, value)? {
            Kind::Navigation => {
                let (object, last) = parts_of(walk, value)?;
                // `Store.init(…)` is a `Store`, and `Store.self` the type.
                if !matches!(&*last, "init" | "self") {
                    names.push(last);
                }
                value = object;
                continue;
            }
            Kind::Call if !is_element(walk, value) => {
                value = value.named_child(0)?;
                continue;
            }
            Kind::SimpleIdentifier => {
                let name = name(walk, value);
                match walk.facts.locals.seen(&name, offset(value.start_byte())) {
                    // Through a local, only its type leads on.
                    Some(Seen::Of(class)) => class.to_string(),
                    Some(other) => return names.is_empty().then(|| other.clone()),
                    None if name == "Self" => own_type(walk)?,
                    // `type(of: …)` is a word of the language.
                    None if name == "type" => return None,
                    None => name,
                }
            }
            Kind::SelfExpression | Kind::Super => own_type(walk)?,
            Kind::Constructor => path_of(walk, walk.field(value, Field::ConstructedType as u8)?)?,
            Kind::As | Kind::Array | Kind::Dictionary | Kind::LineString | Kind::NilCoalescing => {
                match of_value(walk, value) {
                    Seen::Of(class) => class.to_string(),
                    _ => return None,
                }
            }
            _ => return None,
        };
        names.push(first);
        names.reverse();
        return Some(Seen::Of(names.join(".").into()));
    }
    None
}

/// The receiver of a call, by the expression before its name.
pub(super) fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Receiver {
    let mut after_operators = true;
    let object = before_a_call(walk, object, &mut after_operators);
    let kind = Kind::at(walk, object);
    match kind {
        Some(Kind::SelfExpression) => return Receiver::This,
        Some(Kind::Super) => return Receiver::Super,
        _ => {}
    }
    if let Some(path) = plain_path(walk, object, after_operators) {
        return if path == "Self" { Receiver::This } else { Receiver::Path(path.into()) };
    }
    let seen = match kind {
        Some(Kind::Navigation | Kind::Call) => path_to(walk, object, after_operators),
        _ => Some(of_value(walk, object)),
    };
    seen.and_then(Seen::receiver).unwrap_or(Receiver::Other)
}

/// `a.b.c`, if it is nothing but names.
fn plain_path(walk: &Walk<'_>, value: Node<'_>, mut after_operators: bool) -> Option<String> {
    let (mut names, mut value) = (Vec::new(), value);
    for _ in 0..NESTED_MAX {
        value = before_a_call(walk, value, &mut after_operators);
        match Kind::at(walk, value)? {
            Kind::Navigation => {
                let (object, last) = parts_of(walk, value)?;
                // `Store.self` is the type.
                names.extend((last != "self").then_some(last));
                value = object;
            }
            Kind::SimpleIdentifier => {
                names.push(name(walk, value));
                names.reverse();
                return Some(names.join("."));
            }
            _ => return None,
        }
    }
    None
}
