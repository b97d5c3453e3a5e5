//! Properties and variables of Swift, with one or several in a declaration.

use tree_sitter::Node;

use super::super::Kind as Sort;
use super::super::locals::Seen;
use super::super::walk::{Found, Walk};
use super::children::child_of;
use super::swift::Kind;
use super::swift_expected as expected;
use super::swift_locals as locals;
use super::swift_members::{hide_if, is_member, is_private};
use super::swift_signatures::{Parts, parts_of, signed};
use super::swift_types as types;

/// The deepest nesting of patterns that is followed.
const NESTED_MAX: usize = 8;

/// What one declaration declares, each from its name on: `a: Int = 1` and `b` of `var a: Int = 1, b`.
pub(super) fn groups<'t>(node: Node<'t>, begins: &str) -> Vec<Vec<Node<'t>>> {
    let mut found: Vec<Vec<Node<'t>>> = Vec::new();
    let mut cursor = node.walk();
    let mut is_there = cursor.goto_first_child();
    while is_there {
        let child = cursor.node();
        if cursor.field_name() == Some(begins) {
            found.push(vec![child]);
        } else if let Some(last) = found.last_mut().filter(|_| !matches!(child.kind(), "," | ";")) {
            last.push(child);
        }
        is_there = cursor.goto_next_sibling();
    }
    found
}

/// `let` or `var`
pub(super) fn word_of(walk: &Walk<'_>, node: Node<'_>) -> &'static str {
    let binding = child_of(walk, node, &[Kind::ValueBinding]).or_else(|| {
        let pattern = child_of(walk, node, &[Kind::Pattern])?;
        child_of(walk, pattern, &[Kind::ValueBinding])
    });
    if binding.is_some_and(|it| walk.text(it).trim_end().ends_with("let")) { "let" } else { "var" }
}

/// The type that is written behind a name.
pub(super) fn annotation<'t>(walk: &Walk<'_>, group: &[Node<'t>]) -> Option<Node<'t>> {
    group.iter().find(|it| Kind::at(walk, **it) == Some(Kind::TypeAnnotation))?.named_child(0)
}

/// The names in a pattern.
pub(super) fn names_in<'t>(walk: &Walk<'_>, pattern: Node<'t>) -> Vec<Node<'t>> {
    let (mut found, mut waiting) = (Vec::new(), vec![(pattern, 0)]);
    while let Some((node, depth)) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::SimpleIdentifier) => found.push(node),
            Some(Kind::Pattern) if depth < NESTED_MAX => {
                let mut cursor = node.walk();
                waiting.extend(node.named_children(&mut cursor).map(|it| (it, depth + 1)));
            }
            _ => {}
        }
    }
    found.sort_by_key(Node::start_byte);
    found
}

/// Which accessors there are, where they are others than those of what is stored.
pub(super) fn accessors(walk: &Walk<'_>, node: Option<Node<'_>>) -> String {
    let Some(node) = node else { return String::new() };
    let inner = |kinds: &[Kind]| child_of(walk, node, kinds);
    if inner(&[Kind::ComputedSetter, Kind::ComputedModify, Kind::SetterSpecifier]).is_some() {
        return String::new();
    }
    let getter = inner(&[Kind::ComputedGetter]).or(inner(&[Kind::Requirements])).unwrap_or(node);
    let specifier = child_of(walk, getter, &[Kind::GetterSpecifier]);
    let says = specifier.map_or_else(|| "get".into(), |it| walk.text(it));
    let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(" {{ {says} }}")
}

/// A property of a type or of a file, or a variable of a function.
pub(super) fn property(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let at_top = walk.scope.owner.is_none() && Kind::of(walk.kind_above(0)) == Some(Kind::Source);
    if !at_top && !is_member(walk) {
        return locals::declared(walk, node);
    }
    let groups = groups(node, "name");
    // Looked at once, since there may be thousands of names.
    let said = Said {
        words: parts_of(walk, node).words,
        word: word_of(walk, node),
        is_private: is_private(walk, node),
    };
    let mut declared: Vec<u32> = Vec::new();
    walk.attributes_end(node.start_byte());
    for (nth, group) in groups.iter().enumerate() {
        let (Some(pattern), Some(last)) = (group.first().copied(), group.last()) else { continue };
        let names = names_in(walk, pattern);
        let is_one = names.len() == 1;
        let ends = if nth + 1 == groups.len() { node.end_byte() } else { last.end_byte() };
        for (at, named) in names.into_iter().enumerate() {
            // The first name of a pattern stands for all of it.
            let begins = if nth == 0 && at == 0 { node.start_byte() } else { named.start_byte() };
            let range = begins..if at == 0 { ends } else { named.end_byte() };
            let own = if is_one { &group[..] } else { &[] };
            let symbol = declare(walk, &said, kind, (named, own), range);
            // Of a pattern all is shared, of a list what stands before it.
            let shared_to = if is_one { pattern.start_byte() } else { ends };
            walk.declared_by(node, shared_to, symbol);
            hide_if(walk, said.is_private, symbol);
            declared.extend(symbol);
        }
    }
    walk.open(declared.first().copied());
    walk.open_for_owner();
}

/// What a declaration says of all its names.
struct Said {
    words: String,
    word: &'static str,
    is_private: bool,
}

fn declare(
    walk: &mut Walk<'_>,
    said: &Said,
    kind: Kind,
    (named, group): (Node<'_>, &[Node<'_>]),
    range: std::ops::Range<usize>,
) -> Option<u32> {
    let name = types::name(walk, named);
    let typed = annotation(walk, group);
    let of_kind = |kinds: &[Kind]| {
        group.iter().copied().find(|it| Kind::at(walk, *it).is_some_and(|it| kinds.contains(&it)))
    };
    let (computed, asked) = (of_kind(&[Kind::Computed]), of_kind(&[Kind::Requirements]));
    let seen = match typed {
        Some(typed) => types::of_type(walk, typed),
        None => value_of(walk, group).map_or(Seen::Unknown, |value| types::of_value(walk, value)),
    };
    if typed.is_some() {
        let value = value_of(walk, group);
        expected::expect(walk, value, &seen);
        if let Some(code) = computed {
            expected::gives_back(walk, code, seen.clone());
        }
    }
    let signature = typed.and_then(|typed| {
        let parts = Parts {
            words: said.words.clone(),
            word: said.word.into(),
            bases: vec![typed],
            accessors: accessors(walk, computed.or(asked)),
            ..Parts::default()
        };
        signed(walk, &parts)
    });
    let sort = match () {
        () if computed.is_some() => Sort::Getter,
        () if walk.owner_kind().is_some_and(Sort::has_members) => Sort::Field,
        () => Sort::Variable,
    };
    let declared = kind == Kind::ProtocolProperty;
    let typed = typed.is_some();
    walk.symbol(Found { signature, declared, seen, typed, ..Found::new(&name, sort, range) })
}

/// The value that a name is given.
pub(super) fn value_of<'t>(walk: &Walk<'_>, group: &[Node<'t>]) -> Option<Node<'t>> {
    let at = group.iter().position(|it| walk.is_token(*it, "="))?;
    group.get(at + 1).copied()
}
