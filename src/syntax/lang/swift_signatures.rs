//! Signatures of Swift: the parts that callers rely on. Labels count, the names behind them do not; a default counts, its value does not.

use tree_sitter::Node;

use super::super::Signature;
use super::super::canon::Scribe;
use super::super::walk::{Broken, Walk};
use super::children::{child_of, children_of};
use super::swift::{Field, Kind, all_of};
use super::swift_properties as properties;

/// The parts of a declaration that make a difference to others.
#[derive(Clone, Default)]
pub(super) struct Parts<'t> {
    /// Access and modifiers, each followed by a blank.
    pub(super) words: String,
    /// The keyword, such as `class` or `var`; empty if the name implies it.
    pub(super) word: String,
    pub(super) generic: Option<Node<'t>>,
    /// The parameters, each with whether it has a default; `None` without brackets for them.
    pub(super) parameters: Option<Vec<(Node<'t>, bool)>>,
    /// Whether a parameter with one name has no label.
    pub(super) unlabelled: bool,
    pub(super) is_async: bool,
    pub(super) throws: Option<Node<'t>>,
    pub(super) result: Option<Node<'t>>,
    /// The types behind the colon.
    pub(super) bases: Vec<Node<'t>>,
    /// The expression behind the equals sign.
    pub(super) value: Option<Node<'t>>,
    pub(super) accessors: String,
    pub(super) constraints: Option<Node<'t>>,
    /// Members that belong to the signature of their type.
    pub(super) shown: Vec<Node<'t>>,
}

/// The modifiers of a declaration as they are written, without its attributes.
pub(super) fn words(walk: &Walk<'_>, node: Node<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for child in all_of(node) {
        if Kind::at(walk, child) == Some(Kind::Modifiers) {
            let mut cursor = child.walk();
            let all = child.named_children(&mut cursor);
            let all = all.filter(|it| Kind::at(walk, *it) != Some(Kind::Attribute));
            found.extend(all.map(|it| walk.text(it).split_whitespace().collect::<String>()));
        }
        // The grammar has some of them outside of the rest.
        for word in ["class", "indirect"] {
            if walk.is_token(child, word) && node.kind() != "class_declaration" {
                found.push(word.to_owned());
            }
        }
    }
    found
}

/// The words that make a difference to others, always in the same order.
fn shown_words(walk: &Walk<'_>, node: Node<'_>) -> String {
    const SHOWN: &[&str] = &[
        "open",
        "public",
        "package",
        "fileprivate",
        "private",
        "open(set)",
        "public(set)",
        "package(set)",
        "internal(set)",
        "fileprivate(set)",
        "private(set)",
        "static",
        "class",
        "final",
        "required",
        "convenience",
        "indirect",
        "optional",
        "mutating",
        "nonmutating",
        "consuming",
        "borrowing",
        "prefix",
        "postfix",
        "infix",
        "nonisolated",
        "isolated",
        "distributed",
    ];
    let written = words(walk, node);
    let mut shown: Vec<&str> =
        SHOWN.iter().copied().filter(|word| written.iter().any(|it| it == word)).collect();
    // Within an extension that says its access, that is the one of its members.
    let of_extension = walk.scope.owner.and_then(|owner| walk.notes.for_members.get(&owner));
    let is_access = |it: &&str| matches!(*it, "open" | "public" | "package" | "fileprivate" | "private");
    let has_access = shown.iter().any(is_access) || written.iter().any(|it| it == "internal");
    if let Some((of_all, _)) = of_extension.filter(|_| !has_access)
        && let Some(access) = of_all.split(' ').find(is_access)
    {
        shown.insert(0, access);
    }
    shown.iter().map(|word| format!("{word} ")).collect()
}

/// The parts of a declaration that can be told by their kinds and places.
pub(super) fn parts_of<'t>(walk: &Walk<'_>, node: Node<'t>) -> Parts<'t> {
    let mut parts = Parts {
        words: shown_words(walk, node),
        generic: child_of(walk, node, &[Kind::TypeParameters]),
        constraints: child_of(walk, node, &[Kind::TypeConstraints]),
        bases: children_of(walk, node, Kind::Inheritance),
        ..Parts::default()
    };
    let mut is_inside = false;
    let mut is_result = false;
    for child in all_of(node) {
        let kind = Kind::at(walk, child);
        match () {
            () if walk.is_token(child, "(") && parts.parameters.is_none() => {
                is_inside = true;
                parts.parameters = Some(Vec::new());
            }
            () if is_inside && walk.is_token(child, ")") => is_inside = false,
            () if is_inside && kind == Some(Kind::Parameter) => {
                parts.parameters.get_or_insert_default().push((child, false));
            }
            () if is_inside && walk.is_token(child, "=") => {
                if let Some(last) = parts.parameters.as_mut().and_then(|all| all.last_mut()) {
                    last.1 = true;
                }
            }
            () if is_inside => {}
            () if walk.is_token(child, "async") => parts.is_async = true,
            () if matches!(kind, Some(Kind::Throws | Kind::ThrowsClause)) => parts.throws = Some(child),
            () if walk.is_token(child, "->") => is_result = true,
            () if is_result && child.is_named() => {
                parts.result = Some(child);
                is_result = false;
            }
            () => {}
        }
    }
    parts
}

fn length(nodes: &[Node<'_>]) -> usize {
    nodes.iter().map(|it| it.byte_range().len()).sum()
}

/// Writes the signature of the parts, with the conditions of the extension around.
pub(super) fn signed(walk: &mut Walk<'_>, parts: &Parts<'_>) -> Option<Result<Signature, Broken>> {
    let parameters = parts.parameters.as_deref().unwrap_or_default();
    let named: Vec<(Option<String>, Option<Node<'_>>)> =
        parameters.iter().map(|(it, _)| label_of(walk, *it)).collect();
    let members: Vec<Member<'_>> = parts.shown.iter().map(|it| Member::of(walk, *it)).collect();
    let of_extension = walk.scope.owner.and_then(|owner| walk.notes.for_members.get(&owner));
    let condition = of_extension.map_or(String::new(), |(_, condition)| condition.to_string());
    let single = [parts.generic, parts.throws, parts.result, parts.value, parts.constraints];
    let single: Vec<Node<'_>> = single.into_iter().flatten().collect();
    let several: Vec<Node<'_>> = parameters.iter().map(|it| it.0).collect();
    let size = length(&single) + length(&several) + length(&parts.bases) + length(&parts.shown);
    walk.sign(size + condition.len(), |scribe| {
        scribe.word(&parts.words).word(&parts.word);
        after(scribe, "", parts.generic);
        if parts.parameters.is_some() {
            scribe.word("(");
            for (nth, ((node, has_default), label)) in parameters.iter().zip(&named).enumerate() {
                scribe.word(if nth == 0 { "" } else { ", " });
                parameter(scribe, *node, label, parts.unlabelled);
                scribe.word(if *has_default { " = …" } else { "" });
            }
            scribe.word(")");
        }
        scribe.word(if parts.is_async { " async" } else { "" });
        // Of `throws(E)` the grammar shows the brackets alone.
        let is_typed = parts.throws.is_some_and(|it| it.kind() == "throws_clause");
        after(scribe, if is_typed { " throws" } else { " " }, parts.throws);
        after(scribe, " -> ", parts.result);
        for (nth, base) in parts.bases.iter().enumerate() {
            after(scribe, if nth == 0 { ": " } else { ", " }, Some(*base));
        }
        after(scribe, " = ", parts.value);
        scribe.word(&parts.accessors);
        after(scribe, " ", parts.constraints);
        if !condition.is_empty() {
            scribe.word(" ").word(&condition);
        }
        for (nth, member) in members.iter().enumerate() {
            scribe.word(if nth == 0 { " { " } else { "; " });
            member.write(scribe);
        }
        scribe.word(if members.is_empty() { "" } else { " }" });
    })
}

fn after(scribe: &mut Scribe<'_>, word: &str, node: Option<Node<'_>>) {
    if let Some(node) = node {
        scribe.word(word).node(node);
    }
}

/// The label that a parameter is called by, where it has two names, and its own name, where that is its only one.
fn label_of<'t>(walk: &Walk<'_>, parameter: Node<'t>) -> (Option<String>, Option<Node<'t>>) {
    let external = walk.field(parameter, Field::ExternalName as u8).map(|it| walk.text(it).into_owned());
    let own = walk.field(parameter, Field::Name as u8);
    let own = own.filter(|it| external.is_none() && Kind::at(walk, *it) == Some(Kind::SimpleIdentifier));
    (external, own)
}

/// A parameter; of an operator or a subscript, a lone name is none that callers say.
fn parameter(
    scribe: &mut Scribe<'_>,
    node: Node<'_>,
    label: &(Option<String>, Option<Node<'_>>),
    unlabelled: bool,
) {
    match label {
        (None, Some(own)) if unlabelled => {
            let mut cursor = node.walk();
            for child in node.children(&mut cursor).filter(|it| it.start_byte() >= own.end_byte()) {
                match child.kind() {
                    ":" => scribe.word("_: "),
                    "parameter_modifiers" => scribe.node(child).word(" "),
                    _ => scribe.node(child),
                };
            }
        }
        _ => {
            scribe.node(node);
        }
    }
}

/// A member as it stands in the signature of its type: for a stored one its text up to the name, its type, and whether it
/// has a value; any other member completely.
struct Member<'t> {
    node: Node<'t>,
    stored: Vec<(String, Option<Node<'t>>, bool)>,
}

impl<'t> Member<'t> {
    fn of(walk: &Walk<'_>, node: Node<'t>) -> Self {
        let mut member = Self { node, stored: Vec::new() };
        if Kind::at(walk, node) != Some(Kind::Property) {
            return member;
        }
        let word = properties::word_of(walk, node);
        for group in properties::groups(node, "name") {
            let Some(named) = group.first() else { continue };
            let typed = properties::annotation(walk, &group);
            let has_value = group.iter().any(|it| walk.is_token(*it, "="));
            member.stored.push((format!("{word} {}", walk.text(*named)), typed, has_value));
        }
        member
    }

    fn write(&self, scribe: &mut Scribe<'_>) {
        if self.stored.is_empty() {
            scribe.node(self.node);
        }
        for (nth, (named, typed, has_value)) in self.stored.iter().enumerate() {
            scribe.word(if nth == 0 { "" } else { "; " }).word(named);
            after(scribe, ": ", *typed);
            scribe.word(if *has_value { " = …" } else { "" });
        }
    }
}
