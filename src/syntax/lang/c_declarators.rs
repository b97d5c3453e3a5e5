//! Declarators of C and C++: the declared name, whether it is a function, and the parts that callers rely on.

use tree_sitter::Node;

use super::super::Signature;
use super::super::canon::Scribe;
use super::super::walk::{Broken, Walk};
use super::super::within::Within;
use super::c_grammar::{Field, Kind};
use super::c_types as types;
use super::children::{child_of, children_of};

/// The deepest nesting of declarators that is followed.
const NESTED_MAX: usize = 32;

/// A declared name.
pub(super) struct Declared<'t> {
    /// The node of the name, with the scope before it.
    pub(super) name: Node<'t>,
    /// The declarator with the parameters, if it is a function; `None` for a pointer to one.
    pub(super) function: Option<Node<'t>>,
    /// The whole declarator.
    pub(super) top: Node<'t>,
}

/// The declarator that one is around, or whose value it gives.
fn inner<'t>(walk: &Walk<'_>, declarator: Node<'t>) -> Option<Node<'t>> {
    match Kind::at(walk, declarator)? {
        Kind::FunctionDeclarator
        | Kind::PointerDeclarator
        | Kind::ArrayDeclarator
        | Kind::InitDeclarator
        | Kind::AttributedDeclarator => {
            walk.field(declarator, Field::Declarator as u8).or_else(|| declarator.named_child(0))
        }
        Kind::ReferenceDeclarator | Kind::ParenthesizedDeclarator | Kind::VariadicDeclarator => {
            let mut cursor = declarator.walk();
            let inner = declarator.named_children(&mut cursor).filter(|it| !it.is_extra()).last();
            inner.filter(|it| !it.is_error())
        }
        _ => None,
    }
}

/// The name of a declarator; none of one without.
pub(super) fn of_declarator<'t>(walk: &Walk<'_>, declarator: Node<'t>) -> Option<Declared<'t>> {
    let (top, mut at, mut function) = (declarator, declarator, None);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, at)? {
            Kind::FunctionDeclarator => function = Some(at),
            Kind::ParenthesizedDeclarator | Kind::InitDeclarator | Kind::AttributedDeclarator => {}
            Kind::OperatorCast => return Some(Declared { name: at, function: Some(at), top }),
            Kind::Qualified if operator_cast(walk, at).is_some() => {
                return Some(Declared { name: at, function: operator_cast(walk, at), top });
            }
            Kind::Identifier
            | Kind::FieldIdentifier
            | Kind::TypeIdentifier
            | Kind::Qualified
            | Kind::Destructor
            | Kind::Operator
            | Kind::TemplateFunction
            | Kind::TemplateMethod => {
                let is_there = at.start_byte() < at.end_byte();
                return is_there.then_some(Declared { name: at, function, top });
            }
            // A pointer to a function, or an array of them.
            _ => function = None,
        }
        at = inner(walk, at)?;
    }
    None
}

/// `operator bool` behind scopes.
fn operator_cast<'t>(walk: &Walk<'_>, qualified: Node<'t>) -> Option<Node<'t>> {
    let mut at = qualified;
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, at)? {
            Kind::OperatorCast => return Some(at),
            Kind::Qualified => at = walk.field(at, Field::Name as u8)?,
            _ => return None,
        }
    }
    None
}

/// The function that a definition defines.
pub(super) fn of_function<'t>(walk: &Walk<'_>, node: Node<'t>) -> Option<Declared<'t>> {
    let declared = of_declarator(walk, walk.field(node, Field::Declarator as u8)?)?;
    declared.function.is_some().then_some(declared)
}

/// The value that a declarator is given.
pub(super) fn value_of<'t>(walk: &Walk<'_>, declarator: Node<'t>) -> Option<Node<'t>> {
    walk.field(declarator, Field::Value as u8)
}

/// Whether a declaration begins with this word among others.
pub(super) fn has_word(walk: &Walk<'_>, node: Node<'_>, word: &str) -> bool {
    if child_of(walk, node, &[Kind::Storage]).is_none() {
        return false;
    }
    // A declaration may have many further names behind the first one.
    let names = walk.field(node, Field::Declarator as u8).map_or(node.end_byte(), |it| it.start_byte());
    Within::of(node)
        .take_while(|it| it.start_byte() < names && Kind::at(walk, *it) != Some(Kind::Block))
        .any(|it| Kind::at(walk, it) == Some(Kind::Storage) && *walk.text(it) == *word)
}

/// The names of `a::b<T>::f`, the last one last. What a template is made with belongs to the name of a specialisation, and not to
/// that of the template itself, where it is only its own parameters.
pub(super) fn names_of(walk: &Walk<'_>, name: Node<'_>, own: &[String]) -> Vec<String> {
    let (mut names, mut at) = (Vec::new(), name);
    for _ in 0..NESTED_MAX {
        match Kind::at(walk, at) {
            Some(Kind::Qualified) => {
                names.extend(walk.field(at, Field::Scope as u8).map(|scope| shown(walk, scope, own)));
                match walk.field(at, Field::Name as u8) {
                    Some(inner) => at = inner,
                    None => break,
                }
            }
            Some(Kind::DependentName) => match at.named_child(0) {
                Some(inner) => at = inner,
                None => break,
            },
            _ => {
                names.push(shown(walk, at, own));
                break;
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// One name as a part of a path.
pub(super) fn shown(walk: &Walk<'_>, name: Node<'_>, own: &[String]) -> String {
    match Kind::at(walk, name) {
        Some(Kind::TemplateType | Kind::TemplateFunction | Kind::TemplateMethod) => {
            let plain =
                walk.field(name, Field::Name as u8).map(|it| walk.text(it).into_owned()).unwrap_or_default();
            let Some(arguments) = walk.field(name, Field::Arguments as u8) else { return plain };
            let mut cursor = arguments.walk();
            let mut all = arguments.named_children(&mut cursor);
            let is_own = !own.is_empty()
                && all.all(|it| {
                    let text = walk.text(it);
                    own.contains(&text.trim_end_matches('.').trim_end().to_owned())
                });
            if is_own { plain } else { format!("{plain}{}", compact(&walk.text(arguments))) }
        }
        Some(Kind::OperatorCast) => {
            let typed =
                walk.field(name, Field::Type as u8).map(|it| compact(&walk.text(it))).unwrap_or_default();
            format!("operator {typed}")
        }
        _ => compact(&walk.text(name)),
    }
}

/// A text as a part of a path, in which a dot tells one name from the next.
fn compact(text: &str) -> String {
    // Most are one word.
    if text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return text.to_owned();
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace('.', "_").replace(", ", ",").replace(char::is_control, "");
    // `operator ==` is `operator==`; a word keeps its blank.
    match text.strip_prefix("operator ") {
        Some(rest) if !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_') => {
            format!("operator{rest}")
        }
        _ => text,
    }
}

// Signatures.

/// What callers rely on: the type before the name, what stands around the name, and the parameters.
pub(super) fn signature(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    declared: &Declared<'_>,
) -> Option<Result<Signature, Broken>> {
    let template = types::template_of(walk, node);
    let mut parts: Vec<Node<'_>> = Vec::new();
    // Of several names in one declaration, each has what stands before all of them.
    let first =
        walk.field(node, Field::Declarator as u8).map_or(declared.top.start_byte(), |it| it.start_byte());
    // Each of many names may have many words before it. Where there is no room for the words, nothing looks at them.
    if !walk.has_room(first.saturating_sub(node.start_byte())) {
        return None;
    }
    for child in Within::of(node) {
        if child.start_byte() >= first.min(declared.top.start_byte()) {
            break;
        }
        let counts = match Kind::at(walk, child) {
            Some(Kind::Storage) => {
                !matches!(&*walk.text(child), "extern" | "inline" | "register" | "__inline" | "__inline__")
            }
            Some(Kind::Attribute | Kind::AttributeDeclaration | Kind::Comment) => false,
            _ => child.is_named() || walk.is_token(child, "explicit"),
        };
        if counts && !child.is_extra() {
            parts.push(child);
        }
    }
    // A type that is defined here is a symbol of its own.
    let shown: Vec<(Node<'_>, Option<Node<'_>>)> =
        parts.iter().map(|it| (*it, walk.field(*it, Field::Body as u8))).collect();
    let kinds = around(walk, declared);
    let old_style = old_style_parameters(walk, node);
    let deleted = child_of(walk, node, &[Kind::DeleteClause]).is_some();
    let length =
        declared.top.end_byte().saturating_sub(node.start_byte()).min(
            parts.iter().map(|it| it.byte_range().len()).sum::<usize>() + declared.top.byte_range().len(),
        );
    walk.sign(length, |scribe| {
        if let Some(template) = template {
            scribe.word("template ").node(template).word(" ");
        }
        for (nth, (part, body)) in shown.iter().enumerate() {
            if nth > 0 {
                scribe.word(" ");
            }
            match body {
                Some(_) => head_of(scribe, *part),
                None => {
                    scribe.node(*part);
                }
            }
        }
        for part in &kinds {
            match part {
                Part::Word(word) => scribe.word(word),
                Part::Node(it) => scribe.node(*it),
                Part::After(it) => scribe.word(" ").node(*it),
            };
        }
        for parameter in &old_style {
            scribe.word(" ").node(*parameter);
        }
        if deleted {
            scribe.word(" = delete");
        }
    })
}

/// `struct name` of a type with its members.
fn head_of(scribe: &mut Scribe<'_>, typed: Node<'_>) {
    let mut cursor = typed.walk();
    for (nth, child) in typed.children(&mut cursor).enumerate() {
        if child.kind().ends_with("_list") || child.kind() == "{" {
            break;
        }
        if nth > 0 {
            scribe.word(" ");
        }
        scribe.node(child);
    }
}

/// A part of a declarator without its name.
enum Part<'t> {
    Word(&'static str),
    Node(Node<'t>),
    After(Node<'t>),
}

/// What stands around the name: `*`, `&`, brackets, parameters and what follows them.
fn around<'t>(walk: &Walk<'_>, declared: &Declared<'t>) -> Vec<Part<'t>> {
    let mut levels = Vec::new();
    let mut at = declared.top;
    for _ in 0..NESTED_MAX {
        if at == declared.name {
            break;
        }
        // Brackets around a name alone keep a macro of that name away.
        let kind = Kind::at(walk, at);
        let inside = inner(walk, at);
        if !(kind == Some(Kind::ParenthesizedDeclarator) && inside == Some(declared.name)) {
            levels.push((at, kind, inside));
        }
        match inside {
            Some(it) => at = it,
            None => break,
        }
    }
    let mut found = vec![Part::Word(" ")];
    let (mut before, mut behind): (Vec<Part<'t>>, Vec<Vec<Part<'t>>>) = (Vec::new(), Vec::new());
    for (level, kind, within) in levels {
        if kind == Some(Kind::InitDeclarator) {
            continue;
        }
        let inside = within.map_or(level.end_byte(), |it| it.start_byte());
        let is_function = kind == Some(Kind::FunctionDeclarator);
        let mut after = Vec::new();
        for child in Within::of(level).filter(|it| !it.is_extra()) {
            if Some(child) == within {
                continue;
            }
            let is_left_out = match Kind::at(walk, child) {
                Some(Kind::Attribute | Kind::AttributeDeclaration) => true,
                Some(Kind::VirtualSpecifier | Kind::Comment) => true,
                // A macro behind a function is none of its callers' business.
                Some(Kind::Identifier) => is_function,
                _ => false,
            };
            if is_left_out {
                continue;
            }
            if child.end_byte() <= inside {
                before.push(Part::Node(child));
            } else if is_function && !after.is_empty() {
                after.push(Part::After(child));
            } else {
                after.push(Part::Node(child));
            }
        }
        behind.push(after);
    }
    found.extend(before);
    if Kind::at(walk, declared.name) == Some(Kind::OperatorCast)
        || declared.function.is_some_and(|it| Kind::at(walk, it) == Some(Kind::OperatorCast))
    {
        let cast = declared.function.unwrap_or(declared.name);
        let parts = [Field::Type, Field::Declarator].map(|field| walk.field(cast, field as u8));
        found.extend(parts.into_iter().flatten().map(Part::Node));
        return found;
    }
    found.extend(behind.into_iter().rev().flatten());
    found
}

/// The types of parameters between the brackets and the body, as they were written before 1989.
fn old_style_parameters<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    if Kind::at(walk, node) != Some(Kind::Function) {
        return Vec::new();
    }
    children_of(walk, node, Kind::Declaration)
}

/// The parameters of a lambda, and what it says that it gives back.
pub(super) fn signature_of_lambda(
    walk: &mut Walk<'_>,
    lambda: Node<'_>,
) -> Option<Result<Signature, Broken>> {
    let declarator = walk.field(lambda, Field::Declarator as u8)?;
    walk.sign(declarator.byte_range().len(), |scribe| {
        scribe.node(declarator);
    })
}
