//! C and C++: the meaning of their grammars' nodes. The grammar of C++ contains all of C's.
//!
//! Names are joined by dots, wherever a definition stands: `ns.Store.find`, also for `int ns::Store::find() { … }`. Unnamed
//! namespaces, inline ones and `extern "C"` are no part of a name, since callers do not write them.

use std::ops::Range;

use tree_sitter::Node;

use super::super::reading::offset;
use super::super::walk::{Found, Walk};
use super::super::{Form, Import, ImportForm, Imported, ImportedName, Kind as Sort, Receiver};
use super::c_declarators::{self as declarators, Declared};
use super::c_grammar::{Field, Kind};
use super::{c_classes as classes, c_macros as macros, c_types as types};

pub(super) fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Comment => {
            let text = walk.text(node);
            let is_doc = ["/**", "/*!", "///", "//!"].iter().any(|it| text.starts_with(it));
            let is_behind = text.get(3..).is_some_and(|rest| rest.starts_with('<'));
            walk.attribute(node, is_doc && !is_behind && text.len() > 4);
            return false;
        }
        Kind::Include => {
            include(walk, node);
            return false;
        }
        Kind::Define | Kind::DefineFunction => {
            macros::definition(walk, node, kind);
            return false;
        }
        Kind::Using => {
            using(walk, node);
            return false;
        }
        Kind::NamespaceAlias => {
            namespace_alias(walk, node);
            return false;
        }
        Kind::Namespace => namespace(walk, node),
        // The declaration after it begins with it.
        Kind::Template | Kind::Linkage | Kind::Friend => {
            walk.attributes_go_in(start_of(walk, node));
            if kind == Kind::Template {
                types::type_parameters(walk, node);
            }
        }
        // `format(printf, 1, 2)` in an attribute looks like a call and is none.
        Kind::TemplateInstantiation | Kind::AccessSpecifier => return false,
        Kind::Attribute | Kind::AttributeDeclaration => return false,
        Kind::Class | Kind::Struct | Kind::Union => classes::class(walk, node, kind),
        Kind::Enum => classes::enumeration(walk, node),
        Kind::Enumerator => classes::enumerator(walk, node),
        Kind::Typedef => classes::typedef(walk, node),
        Kind::Alias => classes::alias(walk, node),
        Kind::Concept => classes::concept(walk, node),
        Kind::Function => function(walk, node),
        Kind::Declaration | Kind::FieldDeclaration => declaration(walk, node),
        Kind::Lambda => {
            if !walk.is_claimed(node) {
                walk.open_anonymous();
            }
            types::parameters(walk, node, range(node));
        }
        Kind::RangeLoop | Kind::Catch => types::bound(walk, node, kind),
        Kind::Call => call(walk, node),
        Kind::FieldInitializer => initialised(walk, node),
        Kind::New => {
            let made = walk.field(node, Field::Type as u8).and_then(|typed| types::path_of(walk, typed));
            if let Some(path) = made {
                made_of(walk, node, &path);
            }
        }
        _ => {}
    }
    true
}

pub(super) fn range(node: Node<'_>) -> Range<u32> {
    offset(node.start_byte())..offset(node.end_byte())
}

/// Where a node begins, with the macros before it that the grammar was not shown.
pub(super) fn start_of(walk: &Walk<'_>, node: Node<'_>) -> usize {
    let mut start = node.start_byte();
    let before = walk.notes.masked.partition_point(|it| it.end as usize <= start);
    for masked in walk.notes.masked[..before].iter().rev() {
        let between = walk.source.get(masked.end as usize..start).unwrap_or_default();
        if !between.iter().all(u8::is_ascii_whitespace) {
            break;
        }
        start = masked.start as usize;
    }
    start
}

/// The bytes of a definition, with `template <…>`, `extern "C"` and `friend` before it, without line ends behind it.
pub(super) fn whole(walk: &Walk<'_>, node: Node<'_>) -> Range<usize> {
    let mut start = start_of(walk, node);
    for above in walk.above.iter().rev() {
        if !matches!(Kind::of(above.kind), Some(Kind::Template | Kind::Linkage | Kind::Friend)) {
            break;
        }
        start = start.min(above.range().start as usize);
    }
    let text = walk.source.get(start..node.end_byte()).unwrap_or_default();
    start..start + text.trim_ascii_end().len()
}

/// Whether a name is known in the innermost file alone: `static` outside of classes, or in a namespace without a name.
pub(super) fn is_hidden(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let in_class = walk.owner_kind() == Some(Sort::Class);
    let nameless = walk.notes.nameless.iter().any(|it| it.contains(&offset(node.start_byte())));
    nameless || (!in_class && declarators::has_word(walk, node, "static"))
}

/// Records a symbol, in its scope and with its linkage.
pub(super) fn record(
    walk: &mut Walk<'_>,
    path: Option<String>,
    hidden: bool,
    found: Found<'_>,
) -> Option<u32> {
    let at = match path {
        Some(path) => walk.symbol_at(path, found),
        None => walk.symbol(found),
    };
    if let Some(at) = at.filter(|_| hidden) {
        walk.notes.hidden.insert(at);
    }
    at
}

// Imports, which tie files and names together.

fn add_import(walk: &mut Walk<'_>, node: Node<'_>, from: &str, name: ImportedName) {
    let (at, form, names) = (offset(node.start_byte()), ImportForm::Static, vec![name]);
    walk.import(Import {
        from: from.into(),
        form,
        names,
        types_only: false,
        within: None,
        either: false,
        at,
    });
}

/// `#include "a.h"` and `#include <a.h>`: kept with the first mark, since it says where to look.
fn include(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let Some(path) = walk.field(node, Field::Path as u8) else { return };
    let text = walk.text(path).into_owned();
    if text.starts_with(['"', '<']) && text.len() > 2 {
        let everything = ImportedName { imported: Imported::Everything, local: None };
        add_import(walk, node, &text[..text.len() - 1], everything);
    }
}

/// `using namespace a::b;` and `using a::b::f;`
fn using(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let mut cursor = node.walk();
    let Some(named) = node.named_children(&mut cursor).last() else { return };
    let Some(path) = types::path_of(walk, named) else { return };
    let mut cursor = node.walk();
    let is_namespace = node.children(&mut cursor).any(|it| walk.is_token(it, "namespace"));
    if is_namespace {
        let everything = ImportedName { imported: Imported::Everything, local: None };
        return add_import(walk, node, &format!("using:{path}"), everything);
    }
    let local = path.rsplit('.').next().map(Into::into);
    add_import(walk, node, "using", ImportedName { imported: Imported::Name(path.as_str().into()), local });
}

/// `namespace x = a::b;`
fn namespace_alias(walk: &mut Walk<'_>, node: Node<'_>) {
    walk.attributes_end(node.start_byte());
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let mut cursor = node.walk();
    let Some(path) = node.named_children(&mut cursor).last().and_then(|it| types::path_of(walk, it)) else {
        return;
    };
    let local = Some(walk.text(name).as_ref().into());
    add_import(walk, node, "using", ImportedName { imported: Imported::Name(path.as_str().into()), local });
}

/// Each part of `namespace a::b` is a symbol of its own.
fn namespace(walk: &mut Walk<'_>, node: Node<'_>) {
    let start = start_of(walk, node);
    walk.attributes_end(start);
    let Some(name) = walk.field(node, Field::Name as u8) else {
        walk.notes.nameless.push(range(node));
        return;
    };
    let mut cursor = node.walk();
    if node.children(&mut cursor).any(|it| walk.is_token(it, "inline")) {
        return;
    }
    let mut parts = Vec::new();
    let mut waiting = vec![name];
    while let Some(it) = waiting.pop() {
        if it.named_child_count() == 0 {
            parts.push(it);
            continue;
        }
        let mut cursor = it.walk();
        let from = waiting.len();
        waiting.extend(it.named_children(&mut cursor));
        waiting[from..].reverse();
    }
    for (nth, part) in parts.into_iter().enumerate() {
        let text = walk.text(part).into_owned();
        // Each lies within the one before.
        let from = if nth == 0 { start } else { part.start_byte() };
        let at = walk.symbol(Found::new(&text, Sort::Namespace, from..node.end_byte()));
        let path = at.map(|at| walk.facts.symbols[at as usize].path.clone());
        walk.notes.namespace_paths.extend(path);
        walk.open(at);
    }
}

// Functions.

fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(declared) = declarators::of_function(walk, node) else { return };
    let scope = range(node);
    let (path, name, sort, signature) = match macros::defined_by(walk, node) {
        // Nothing calls it by its name.
        Some((path, name)) => (Some(path), name, Sort::Function, None),
        None => {
            let own = types::parameters_of_template(walk, node);
            let (path, name, sort) = named(walk, &declared, &own);
            (path, name, sort, declarators::signature(walk, node, &declared))
        }
    };
    let seen = types::of_result(walk, node, &declared);
    let whole = whole(walk, node);
    let hidden = is_hidden(walk, node);
    walk.attributes_end(start_of(walk, node));
    let at =
        record(walk, path, hidden, Found { signature, seen, typed: true, ..Found::new(&name, sort, whole) });
    types::parameters(walk, node, scope);
    walk.open(at);
}

/// The path of what is defined outside of its scope, its own name, and what it is.
fn named(walk: &Walk<'_>, declared: &Declared<'_>, own: &[String]) -> (Option<String>, String, Sort) {
    let mut names = declarators::names_of(walk, declared.name, own);
    let name = names.pop().unwrap_or_default();
    let owner = walk.scope.owner.map(|owner| walk.facts.symbols[owner as usize].path.to_string());
    let in_class = walk.owner_kind() == Some(Sort::Class);
    let around = match (&owner, names.last()) {
        (_, Some(last)) => Some(last.as_str()),
        (Some(owner), None) if in_class => owner.rsplit('.').next(),
        _ => None,
    };
    let is_made = around.is_some_and(|around| around.split('<').next() == Some(name.as_str()));
    let path = (!names.is_empty()).then(|| {
        let before =
            owner.filter(|owner| !owner.is_empty()).map_or(String::new(), |owner| format!("{owner}."));
        format!("{before}{}.{name}", names.join("."))
    });
    let is_of_namespace = path.as_ref().is_some_and(|path| {
        let around = path.rsplit_once('.').map_or("", |it| it.0);
        walk.notes.namespace_paths.contains(around)
    });
    let sort = match () {
        () if is_made => Sort::Constructor,
        () if in_class || (path.is_some() && !is_of_namespace) => Sort::Method,
        () => Sort::Function,
    };
    (path, name, sort)
}

/// What is declared outside of functions: prototypes, variables, fields. Within, names of the function's own.
fn declaration(walk: &mut Walk<'_>, node: Node<'_>) {
    let start = start_of(walk, node);
    let in_class = walk.owner_kind() == Some(Sort::Class);
    if walk.scope.functions > 0 && !in_class {
        types::declared(walk, node);
        return;
    }
    // A type that is defined on the way comes first.
    let typed = walk.field(node, Field::Type as u8);
    let has_body = typed.is_some_and(|typed| walk.field(typed, Field::Body as u8).is_some());
    if has_body {
        walk.attributes_go_in(start);
    } else {
        walk.attributes_end(start);
    }
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    // A named type is a symbol beside the variable that it is defined for: `struct Point { … } origin;`.
    let has_name = typed.is_some_and(|typed| {
        let parts = [Field::Body, Field::Name].map(|field| walk.field(typed, field as u8));
        parts.iter().all(Option::is_some)
    });
    let alone = all.len() == 1 && !has_name;
    let shared = Shared::of(walk, node);
    let mut last = None;
    for (nth, declarator) in all.iter().enumerate() {
        if let Some(list) = types::structured_binding(walk, *declarator) {
            last = bind(walk, node, list, &shared).or(last);
            continue;
        }
        let range = match alone {
            true => shared.whole.clone(),
            // The text of a type that is defined here is the type's.
            false if has_body => declarator.byte_range(),
            false => part(&shared.whole, (nth, all.len()), declarator.byte_range()),
        };
        let at = declare(walk, node, *declarator, (range, &shared));
        if !has_body {
            walk.declared_by(node, all[0].start_byte(), at);
        }
        last = at.or(last);
    }
    if alone && last.is_some() {
        walk.open(last);
        // The variable is the caller of the functions in its initial value.
        walk.open_for_owner();
        types::made_outside(walk, node, all[0]);
    }
}

/// What the names of a declaration have in common. It is looked at once, since there may be hundreds of thousands of names.
struct Shared {
    whole: Range<usize>,
    hidden: bool,
    is_extern: bool,
    /// The parameters of the templates around it.
    own: Vec<String>,
}

impl Shared {
    fn of(walk: &Walk<'_>, node: Node<'_>) -> Self {
        Self {
            whole: whole(walk, node),
            hidden: is_hidden(walk, node),
            is_extern: declarators::has_word(walk, node, "extern"),
            own: types::parameters_of_template(walk, node),
        }
    }
}

/// The range of one of several names that a declaration declares: the first one has the text before it, the last one that behind it.
pub(super) fn part(whole: &Range<usize>, (nth, count): (usize, usize), own: Range<usize>) -> Range<usize> {
    let start = if nth == 0 { whole.start } else { own.start };
    start..if nth + 1 == count { whole.end } else { own.end }
}

/// `auto [a, b] = …`: the first name stands for all of it.
fn bind(walk: &mut Walk<'_>, node: Node<'_>, list: Node<'_>, shared: &Shared) -> Option<u32> {
    let (whole, hidden) = (&shared.whole, shared.hidden);
    let mut first = None;
    let mut cursor = list.walk();
    let names = list.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) == Some(Kind::Identifier));
    for named in names.collect::<Vec<_>>() {
        let name = walk.text(named).into_owned();
        let range = if first.is_none() { whole.clone() } else { named.byte_range() };
        let at = record(walk, None, hidden, Found::new(&name, Sort::Variable, range));
        walk.declared_by(node, whole.end, at);
        first = first.or(at);
    }
    first
}

fn declare(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    declarator: Node<'_>,
    (range, shared): (Range<usize>, &Shared),
) -> Option<u32> {
    let declared = declarators::of_declarator(walk, declarator)?;
    let (hidden, own) = (shared.hidden, &shared.own);
    if declared.function.is_some() {
        let (path, name, sort) = named(walk, &declared, own);
        let signature = declarators::signature(walk, node, &declared);
        let seen = types::of_result(walk, node, &declared);
        let found = Found { signature, seen, typed: true, declared: true, ..Found::new(&name, sort, range) };
        return record(walk, path, hidden, found);
    }
    let lambda =
        declarators::value_of(walk, declarator).filter(|it| Kind::at(walk, *it) == Some(Kind::Lambda));
    let mut names = declarators::names_of(walk, declared.name, own);
    let name = names.pop()?;
    let before = walk.scope.owner.map(|owner| format!("{}.", walk.facts.symbols[owner as usize].path));
    let path =
        (!names.is_empty()).then(|| format!("{}{}.{name}", before.unwrap_or_default(), names.join(".")));
    if let Some(lambda) = lambda {
        walk.claim(lambda);
        let signature = declarators::signature_of_lambda(walk, lambda);
        return record(walk, path, hidden, Found { signature, ..Found::new(&name, Sort::Function, range) });
    }
    let in_class = Kind::at(walk, node) == Some(Kind::FieldDeclaration);
    let seen = types::of_declared(walk, node, declarator);
    let signature = declarators::signature(walk, node, &declared);
    let is_extern = shared.is_extern && declarators::value_of(walk, declarator).is_none();
    let sort = if in_class { Sort::Field } else { Sort::Variable };
    let class = types::class_within(walk, node, &declared).filter(|_| in_class);
    let found = Found { signature, seen, typed: true, declared: is_extern, ..Found::new(&name, sort, range) };
    let at = record(walk, path, hidden, found);
    // A constructor that names the field runs one of this class.
    walk.bases(at, class.into_iter().map(Into::into).collect());
    at
}

// Calls.

/// Words that look like functions, and modify or query a type.
const NO_FUNCTIONS: &[&str] = &[
    "const_cast",
    "decltype",
    "defined",
    "dynamic_cast",
    "offsetof",
    "reinterpret_cast",
    "static_assert",
    "static_cast",
    "typeof",
    "va_arg",
    "va_copy",
    "va_end",
    "va_start",
    "_Static_assert",
    "_Generic",
    "__typeof__",
    "alignof",
];

/// Functions that make an instance of the type between their brackets.
const MAKERS: &[&str] = &["make_unique", "make_shared", "allocate_shared", "make_optional"];

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(called) = walk.field(node, Field::Function as u8) else { return };
    let called = types::unwrapped(walk, called);
    match Kind::at(walk, called) {
        Some(Kind::FieldExpression) => {
            let (Some(argument), Some(member)) =
                (walk.field(called, Field::Argument as u8), walk.field(called, Field::Member as u8))
            else {
                return;
            };
            let Some(path) = types::path_of(walk, member) else { return };
            let name = path.rsplit('.').next().unwrap_or(&path).to_owned();
            let by_arrow =
                walk.field(called, Field::Operator as u8).is_some_and(|it| walk.is_token(it, "->"));
            let receiver = types::receiver(walk, argument, &name, by_arrow);
            // `this->Base::f()` says which one.
            let receiver = match path.rsplit_once('.') {
                Some((of, _)) => Receiver::Instance(of.into()),
                None => receiver,
            };
            walk.call(node, &name, receiver, Form::Plain);
        }
        Some(Kind::Identifier | Kind::Qualified | Kind::TemplateFunction | Kind::TypeIdentifier) => {
            let Some(path) = types::path_of(walk, called) else { return };
            let (before, name) = path.rsplit_once('.').map_or(("", path.as_str()), |it| it);
            if NO_FUNCTIONS.contains(&name) || name.starts_with("__builtin") {
                return;
            }
            if MAKERS.contains(&name) && matches!(before, "" | "std" | "boost" | "absl") {
                if let Some(path) =
                    types::first_argument(walk, called).and_then(|it| types::path_of(walk, it))
                {
                    made_of(walk, node, &path);
                }
                return;
            }
            let is_from_top = walk.source.get(called.start_byte()..).is_some_and(|it| it.starts_with(b"::"));
            let receiver = match before {
                before if is_from_top => Receiver::Within(before.into()),
                "" => Receiver::None,
                before if before == "std" || before.starts_with("std.") => return,
                before => Receiver::Path(before.into()),
            };
            walk.call(node, name, receiver, Form::Plain);
        }
        _ => {}
    }
}

/// `Base(…)` or `field(…)` before the code of a constructor; the graph knows which of both it is.
fn initialised(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(path) = node.named_child(0).and_then(|it| types::path_of(walk, it)) else { return };
    let (receiver, name) = match path.rsplit_once('.') {
        Some((before, name)) => (Receiver::Instance(format!("{}{before}", types::NAMED_BASE).into()), name),
        None if types::may_be_copied(walk, node) => (Receiver::Within(types::COPIED.into()), path.as_str()),
        None => (Receiver::Super, path.as_str()),
    };
    if !path.starts_with("std.") {
        walk.call(node, name, receiver, Form::New);
    }
}

/// An instance of a type is made: `new T`, `T x(…)`.
pub(super) fn made_of(walk: &mut Walk<'_>, at: Node<'_>, path: &str) {
    let (before, name) = path.rsplit_once('.').map_or(("", path), |it| it);
    if before == "std" || before.starts_with("std.") {
        return;
    }
    let receiver = if before.is_empty() { Receiver::None } else { Receiver::Path(before.into()) };
    walk.call(at, name, receiver, Form::New);
}

pub(super) fn finish(walk: &mut Walk<'_>) {
    let hidden = std::mem::take(&mut walk.notes.hidden);
    walk.mark_exported(|_| true);
    for at in hidden {
        walk.facts.symbols[at as usize].exported = false;
    }
}
