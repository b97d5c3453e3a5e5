//! Ruby: the meaning of its grammar's nodes.
//!
//! A method's path begins with the name of its class or module: `def self.find` and `def find` of `Store` are both
//! `Store.find`. `module A; class B` and `class A::B` are both `A.B`, however often they are opened again.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Kind as Sort, Signature};
use super::ruby_calls as calls;
use super::ruby_locals as locals;
use super::{Dialect, comments, kinds, names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Comment = "comment",
        Class = "class",
        Module = "module",
        SingletonClass = "singleton_class",
        Method = "method",
        SingletonMethod = "singleton_method",
        Alias = "alias",
        Undef = "undef",
        Assignment = "assignment",
        OperatorAssignment = "operator_assignment",
        LeftList = "left_assignment_list",
        DestructuredLeft = "destructured_left_assignment",
        RestAssignment = "rest_assignment",
        Call = "call",
        Arguments = "argument_list",
        Identifier = "identifier",
        Constant = "constant",
        ScopeResolution = "scope_resolution",
        Own = "self",
        Super = "super",
        InstanceVariable = "instance_variable",
        ClassVariable = "class_variable",
        Block = "block",
        DoBlock = "do_block",
        Lambda = "lambda",
        Superclass = "superclass",
        MethodParameters = "method_parameters",
        BlockParameters = "block_parameters",
        LambdaParameters = "lambda_parameters",
        Optional = "optional_parameter",
        Keyword = "keyword_parameter",
        Splat = "splat_parameter",
        HashSplat = "hash_splat_parameter",
        BlockParameter = "block_parameter",
        Destructured = "destructured_parameter",
        ExceptionVariable = "exception_variable",
        For = "for",
        ArrayPattern = "array_pattern",
        FindPattern = "find_pattern",
        HashPattern = "hash_pattern",
        KeywordPattern = "keyword_pattern",
        AsPattern = "as_pattern",
        In = "in_clause",
        MatchPattern = "match_pattern",
        TestPattern = "test_pattern",
        BlockArgument = "block_argument",
        Symbol = "simple_symbol",
        String = "string",
        StringContent = "string_content",
        StringArray = "string_array",
        SymbolArray = "symbol_array",
        Heredoc = "heredoc_beginning",
        Regex = "regex",
        Integer = "integer",
        Float = "float",
        Array = "array",
        Hash = "hash",
        Range = "range",
        Nil = "nil",
        True = "true",
        False = "false",
        Parenthesized = "parenthesized_statements",
        Conditional = "conditional",
        Binary = "binary",
        Pair = "pair",
        Program = "program",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Alias = "alias",
        Scope = "scope",
        Superclass = "superclass",
        Value = "value",
        Object = "object",
        Parameters = "parameters",
        Receiver = "receiver",
        Method = "method",
        Arguments = "arguments",
        Block = "block",
        Left = "left",
        Right = "right",
        Pattern = "pattern",
        Consequence = "consequence",
        Alternative = "alternative",
        Operator = "operator",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" => Role::Comment,
        "string" => Role::Text,
        "integer" | "float" => Role::Number,
        "heredoc_body" | "regex" => Role::Verbatim,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    locals::enter(walk, node, kind);
    match kind {
        Kind::Comment => {
            comments::comment(walk, node);
            return false;
        }
        Kind::Class | Kind::Module => class(walk, node, kind),
        Kind::Method | Kind::SingletonMethod => method(walk, node, kind),
        Kind::Alias => {
            alias(walk, node);
            return false;
        }
        Kind::Undef => return false,
        Kind::SingletonClass => singleton(walk, node),
        Kind::Assignment => return assignment(walk, node),
        Kind::Call if calls::is_type_signature(walk, node) => {
            comments::comment(walk, node);
            return false;
        }
        Kind::Call => calls::call(walk, node),
        Kind::Super if !walk.is_claimed(node) => calls::above(walk, node),
        Kind::Identifier if !walk.is_claimed(node) => calls::bare(walk, node),
        Kind::BlockArgument => calls::by_symbol(walk, node),
        Kind::Block | Kind::DoBlock | Kind::Lambda if !walk.is_claimed(node) => walk.open_anonymous(),
        _ => {}
    }
    true
}

/// `A::B` with dots; `::` stays before one that begins outside of everything. None of what is no path of constants.
pub(super) fn path_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    /// The most constants in a chain that are followed.
    const CHAIN_MAX: usize = 16;
    let (mut names, mut node) = (Vec::new(), node);
    for _ in 0..CHAIN_MAX {
        match Kind::at(walk, node)? {
            Kind::Constant => {
                names.push(walk.text(node).into_owned());
                names.reverse();
                return Some(names.join("."));
            }
            Kind::ScopeResolution => {
                names.push(walk.text(walk.field(node, Field::Name as u8)?).into_owned());
                match walk.field(node, Field::Scope as u8) {
                    Some(scope) => node = scope,
                    None => {
                        names.reverse();
                        return Some(format!("::{}", names.join(".")));
                    }
                }
            }
            _ => return None,
        }
    }
    None
}

/// Where something of this name is, as it is written within what is around: its path and its own name.
fn placed(walk: &Walk<'_>, written: &str) -> (String, String) {
    let own = written.rsplit(['.', ':']).next().unwrap_or(written).to_owned();
    if let Some(whole) = written.strip_prefix("::") {
        return (whole.to_owned(), own);
    }
    let before = walk.scope.owner.map(|owner| &*walk.facts.symbols[owner as usize].path);
    (before.map_or_else(|| written.to_owned(), |before| format!("{before}.{written}")), own)
}

/// How many levels above a definition the word begins that is put before it: `private def f`, `memoize def f`.
fn levels_before(walk: &Walk<'_>) -> usize {
    let is = |level: usize, kind: Kind| Kind::of(walk.kind_above(level)) == Some(kind);
    if is(0, Kind::Arguments) && is(1, Kind::Call) { 2 } else { 0 }
}

/// The range of a definition with the word before it, and the comments above it.
fn with_word(walk: &mut Walk<'_>, node: Node<'_>) -> std::ops::Range<usize> {
    let levels = levels_before(walk);
    let above = levels.checked_sub(1).and_then(|nth| walk.above.iter().rev().nth(nth));
    let range =
        above.map_or(node.byte_range(), |above| above.range().start as usize..above.range().end as usize);
    comments::end_at(walk, range.start, levels);
    range
}

// Classes and modules.

fn class(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(written) = walk.field(node, Field::Name as u8).and_then(|name| path_of(walk, name)) else {
        return;
    };
    let superclass = walk.field(node, Field::Superclass as u8).and_then(|it| it.named_child(0));
    let word = if kind == Kind::Module { "module" } else { "class" };
    let signature = walk.sign(superclass.map_or(0, |it| it.byte_range().len()), |scribe| {
        scribe.word(word);
        if let Some(superclass) = superclass {
            scribe.word(" < ").node(superclass);
        }
    });
    let (path, own) = placed(walk, &written);
    comments::end_at(walk, node.start_byte(), 0);
    let at = walk.symbol_at(path, Found { signature, ..Found::new(&own, Sort::Class, node.byte_range()) });
    let base = superclass.and_then(|it| made_of(walk, it));
    walk.bases(at, base.into_iter().map(Into::into).collect());
    walk.open(at);
}

/// The class that an expression for a superclass names: `Base`, `Struct.new(…)` has none.
fn made_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    // `ActiveRecord::Migration[7.0]`
    let node = if node.kind() == "element_reference" { node.named_child(0)? } else { node };
    path_of(walk, node)
}

/// `class << self`: what is within is of the class around. That of another class is more of that one.
fn singleton(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(written) = walk.field(node, Field::Value as u8).and_then(|it| path_of(walk, it)) else { return };
    let (path, own) = placed(walk, &written);
    let around = walk.scope.owner.map(|owner| &walk.facts.symbols[owner as usize]);
    if around.is_some_and(|around| around.name() == own) {
        return;
    }
    let at = walk.symbol_at(path, Found::new(&own, Sort::Class, node.byte_range()));
    walk.open(at);
}

/// Records `Store.class_eval do … end`, which opens the class again.
pub(super) fn opened_again(walk: &mut Walk<'_>, node: Node<'_>, written: &str) {
    let (path, own) = placed(walk, written);
    comments::end_at(walk, node.start_byte(), 0);
    let at = walk.symbol_at(path, Found::new(&own, Sort::Class, node.byte_range()));
    walk.open(at);
}

/// `include A, B`: what they have is found before what the superclass has.
pub(super) fn takes_in(walk: &mut Walk<'_>, modules: Vec<String>) {
    let Some(owner) = walk.scope.owner.filter(|_| walk.owner_kind() == Some(Sort::Class)) else { return };
    let mut all: Vec<Box<str>> = modules.into_iter().map(Into::into).collect();
    all.extend(walk.facts.symbols[owner as usize].bases.iter().cloned());
    walk.bases(Some(owner), all);
}

// Methods.

fn method(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = walk.field(node, Field::Name as u8).map(|name| walk.text(name).into_owned()) else {
        return;
    };
    let of_self = kind == Kind::SingletonMethod;
    let signature =
        signature_of(walk, walk.field(node, Field::Parameters as u8), of_self || is_in_singleton(walk));
    let object = walk.field(node, Field::Object as u8).and_then(|it| path_of(walk, it));
    let range = with_word(walk, node);
    let found = Found { signature, ..Found::new(&name, sort_of(walk, &name), range) };
    let around = walk.scope.owner.map(|owner| &walk.facts.symbols[owner as usize]);
    // `def Store.find` within `Store` and beside it.
    let at = match object.filter(|object| around.is_none_or(|around| *around.name() != **object)) {
        Some(object) => {
            let (path, _) = placed(walk, &object);
            walk.symbol_at(format!("{path}.{name}"), Found { kind: Sort::Method, ..found })
        }
        None => walk.symbol(found),
    };
    walk.open(at);
}

fn is_in_singleton(walk: &Walk<'_>) -> bool {
    let around = walk.above.iter().rev().filter_map(|above| Kind::of(above.kind));
    let mut around = around.filter(|it| matches!(it, Kind::SingletonClass | Kind::Class | Kind::Module));
    around.next() == Some(Kind::SingletonClass)
}

pub(super) fn sort_of(walk: &Walk<'_>, name: &str) -> Sort {
    let in_class = walk.owner_kind() == Some(Sort::Class);
    let is_block = |kind: u8| matches!(Kind::of(kind), Some(Kind::Block | Kind::DoBlock));
    let in_block = walk.scope.owner.is_none() && walk.above.iter().any(|above| is_block(above.kind));
    let sets =
        name.len() > 1 && name.ends_with('=') && name.starts_with(|it: char| it.is_alphabetic() || it == '_');
    match name {
        "initialize" if in_class => Sort::Constructor,
        _ if in_class && sets => Sort::Setter,
        // A block may be run for a class that the file does not show: what it defines is no function of everything.
        _ if in_class || in_block => Sort::Method,
        _ => Sort::Function,
    }
}

/// The parameters, in brackets whether they are written or not.
pub(super) fn signature_of(
    walk: &mut Walk<'_>,
    parameters: Option<Node<'_>>,
    of_self: bool,
) -> Option<Result<Signature, Broken>> {
    let mut cursor = parameters.map(|it| it.walk());
    let all: Vec<Node<'_>> = match (parameters, cursor.as_mut()) {
        (Some(parameters), Some(cursor)) => parameters
            .named_children(cursor)
            .filter(|it| Kind::at(walk, *it) != Some(Kind::Comment))
            .collect(),
        _ => Vec::new(),
    };
    let broken = parameters.is_some_and(|it| it.has_error());
    if broken {
        return Some(Err(Broken));
    }
    walk.sign(parameters.map_or(0, |it| it.byte_range().len()), |scribe| {
        scribe.word(if of_self { "self.(" } else { "(" });
        for (at, parameter) in all.iter().enumerate() {
            if at > 0 {
                scribe.word(", ");
            }
            scribe.node(*parameter);
        }
        scribe.word(")");
    })
}

/// `alias other find`: calls the method that it is another name of.
fn alias(walk: &mut Walk<'_>, node: Node<'_>) {
    let parts = [Field::Name, Field::Alias].map(|field| walk.field(node, field as u8));
    let [Some(name), Some(of)] =
        parts.map(|it| it.map(|it| walk.text(it).trim_start_matches(':').to_owned()))
    else {
        return;
    };
    // `alias $new $old`
    if !name.starts_with('$') {
        comments::end_at(walk, node.start_byte(), 0);
        calls::renamed(walk, node, &name, &of);
    }
}

// Constants.

/// A constant; everything else that is given a value is looked at by what it is.
fn assignment(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let (left, right) = (walk.field(node, Field::Left as u8), walk.field(node, Field::Right as u8));
    if let Some(list) = left.filter(|it| Kind::at(walk, *it) == Some(Kind::LeftList)) {
        several(walk, node, list);
        return true;
    }
    let Some(written) = left.and_then(|left| path_of(walk, left)) else { return true };
    let (path, own) = placed(walk, &written);
    comments::end_at(walk, node.start_byte(), 0);
    if let Some(right) = right.filter(|it| Kind::at(walk, *it) == Some(Kind::Call))
        && let Some(at) = calls::made_class(walk, node, right, &path, &own)
    {
        walk.open(Some(at));
        return true;
    }
    let sort = if walk.owner_kind() == Some(Sort::Class) { Sort::Field } else { Sort::Variable };
    let seen = right.map_or(super::super::locals::Seen::Unknown, |right| locals::of_value(walk, right));
    let at = walk.symbol_at(path, Found { seen, ..Found::new(&own, sort, node.byte_range()) });
    walk.open_value(at);
    true
}

/// `A, (B, *C) = …`: the first constant stands for all of it, and what is on the right belongs to each.
fn several(walk: &mut Walk<'_>, node: Node<'_>, list: Node<'_>) {
    const NESTED_MAX: usize = 8;
    let (mut found, mut waiting) = (Vec::new(), vec![(list, 0)]);
    while let Some((it, depth)) = waiting.pop() {
        let is_list = matches!(
            Kind::at(walk, it),
            Some(Kind::LeftList | Kind::DestructuredLeft | Kind::RestAssignment)
        );
        if is_list && depth < NESTED_MAX {
            let mut cursor = it.walk();
            waiting.extend(it.named_children(&mut cursor).map(|it| (it, depth + 1)));
        } else if let Some(written) = path_of(walk, it) {
            found.push((it, written));
        }
    }
    found.sort_by_key(|(it, _)| it.start_byte());
    comments::end_at(walk, node.start_byte(), 0);
    let sort = if walk.owner_kind() == Some(Sort::Class) { Sort::Field } else { Sort::Variable };
    let mut first = None;
    for (nth, (named, written)) in found.into_iter().enumerate() {
        let (path, own) = placed(walk, &written);
        let range = if nth == 0 { node.byte_range() } else { named.byte_range() };
        let at = walk.symbol_at(path, Found::new(&own, sort, range));
        walk.declared_by(node, node.end_byte(), at);
        first = first.or(at);
    }
    if first.is_some() {
        walk.open_value(first);
    }
}

/// A name can be used wherever its file was loaded.
fn finish(walk: &mut Walk<'_>) {
    walk.mark_exported(|_| true);
}
