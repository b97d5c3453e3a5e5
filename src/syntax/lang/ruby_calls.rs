//! Calls in Ruby, and those among them that define a symbol: `attr_reader`, `define_method`, `Struct.new`, `require`.

use tree_sitter::Node;

use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Found, Walk};
use super::super::{Form, Import, ImportForm, Kind as Sort, Receiver};
use super::ruby::{self, Field, Kind, path_of};
use super::{comments, ruby_locals as locals};

/// Words that look like calls and affect the text behind them.
const WORDS: &[&str] = &[
    "private",
    "public",
    "protected",
    "module_function",
    "private_class_method",
    "private_constant",
    "block_given?",
    "binding",
    "raise",
    "loop",
    "lambda",
    "proc",
    "__method__",
    "__FILE__",
    "__LINE__",
    "__dir__",
    "__ENCODING__",
];

pub(super) fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let method = walk.field(node, Field::Method as u8);
    if let Some(method) = method {
        walk.claim(method);
    }
    let name = method.map_or_else(|| "call".into(), |method| walk.text(method));
    let Some(receiver) = walk.field(node, Field::Receiver as u8) else {
        if method.is_some_and(|method| Kind::at(walk, method) == Some(Kind::Super)) {
            return above(walk, node);
        }
        if !defines(walk, node, &name) && !WORDS.contains(&&*name) {
            sent(walk, node, &name, Receiver::None);
        }
        return;
    };
    if name == "new"
        && let Some(path) = path_of(walk, receiver)
    {
        return made(walk, node, &path);
    }
    if matches!(&*name, "class_eval" | "class_exec" | "module_eval" | "module_exec")
        && let (Some(path), Some(block)) = (path_of(walk, receiver), walk.field(node, Field::Block as u8))
        && walk.scope.functions == 0
    {
        walk.claim(block);
        return ruby::opened_again(walk, node, &path);
    }
    let receiver = receiver_of(walk, receiver);
    // `s.size = 1` calls `size=`.
    let is_set = Kind::of(walk.kind_above(0)) == Some(Kind::Assignment)
        && node.parent().and_then(|it| it.child_by_field_name("left")) == Some(node);
    if is_set {
        return walk.call(node, &format!("{name}="), receiver, Form::Plain);
    }
    sent(walk, node, &name, receiver);
}

/// `sig { … }` of Sorbet, which says the types of the method below it.
pub(super) fn is_type_signature(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let has = |field: Field| walk.field(node, field as u8);
    let is_named = has(Field::Method).is_some_and(|method| walk.text(method) == "sig");
    is_named && has(Field::Receiver).is_none() && has(Field::Block).is_some()
}

/// A call by its name, or by one that is written among its arguments: `send(:name)`. `new` within a class is that of the class.
fn sent(walk: &mut Walk<'_>, node: Node<'_>, name: &str, receiver: Receiver) {
    let own = locals::own_class(walk).filter(|_| name == "new");
    if let Some(own) = own.filter(|_| matches!(receiver, Receiver::None | Receiver::This)) {
        return made(walk, node, &own);
    }
    let by_name = matches!(name, "send" | "public_send" | "__send__" | "method" | "try");
    let named = if by_name { symbols(walk, node).into_iter().next() } else { None };
    let name = named.as_ref().map_or(name, |(named, _)| named);
    walk.call(node, name, receiver, Form::Plain);
}

/// `A::B.new`: the class is what is called.
fn made(walk: &mut Walk<'_>, node: Node<'_>, path: &str) {
    match path.rsplit_once('.') {
        Some((before, name)) => walk.call(node, name, Receiver::Path(before.into()), Form::New),
        None => walk.call(node, path, Receiver::None, Form::New),
    }
}

fn receiver_of(walk: &Walk<'_>, receiver: Node<'_>) -> Receiver {
    if let Some(path) = path_of(walk, receiver) {
        return Receiver::Path(path.into());
    }
    match Kind::at(walk, receiver) {
        Some(Kind::Own) => Receiver::This,
        Some(Kind::Identifier) if locals::is_local(walk, receiver) => {
            Receiver::Path(walk.text(receiver).into())
        }
        Some(Kind::Identifier) if walk.text(receiver) == "new" => {
            locals::own_class(walk).map_or(Receiver::Other, |class| Receiver::Instance(class.into()))
        }
        // A method with the name of an instance variable most likely returns that variable.
        Some(Kind::Identifier) => Receiver::Path(format!("this.@{}", walk.text(receiver)).into()),
        Some(Kind::InstanceVariable | Kind::ClassVariable) => {
            Receiver::Path(format!("this.{}", walk.text(receiver)).into())
        }
        Some(Kind::Call) if is_own_class(walk, receiver) => Receiver::This,
        _ => locals::of_value(walk, receiver).receiver().unwrap_or(Receiver::Other),
    }
}

/// `self.class`.
fn is_own_class(walk: &Walk<'_>, call: Node<'_>) -> bool {
    let parts = [Field::Receiver, Field::Method].map(|field| walk.field(call, field as u8));
    match parts {
        [Some(receiver), Some(method)] => {
            Kind::at(walk, receiver) == Some(Kind::Own) && walk.text(method) == "class"
        }
        _ => false,
    }
}

/// `super`: the method of the same name above.
pub(super) fn above(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(method) = walk.field(node, Field::Method as u8) {
        walk.claim(method);
    }
    let caller = walk.scope.caller.map(|caller| walk.facts.symbols[caller as usize].name().to_owned());
    if let Some(name) = caller {
        walk.call(node, &name, Receiver::Super, Form::Plain);
    }
}

/// A name that is no variable calls a method.
pub(super) fn bare(walk: &mut Walk<'_>, node: Node<'_>) {
    let name = walk.text(node);
    // `_1` and `it` are the parameters of a block that names none.
    let is_given = matches!(&*name, "it" | "_1" | "_2" | "_3") && walk.scope.functions > 0;
    if is_given {
        return;
    }
    if !locals::is_local(walk, node) && !WORDS.contains(&&*name) {
        sent(walk, node, &name, Receiver::None);
    }
}

/// `&:name` calls `name` of each of something.
pub(super) fn by_symbol(walk: &mut Walk<'_>, node: Node<'_>) {
    let symbol = node.named_child(0).filter(|it| Kind::at(walk, *it) == Some(Kind::Symbol));
    if let Some(name) = symbol.map(|it| walk.text(it).trim_start_matches(':').to_owned()) {
        walk.call(node, &name, Receiver::Other, Form::Plain);
    }
}

/// The names that are written as symbols or strings among the arguments, each with its node.
fn symbols<'t>(walk: &Walk<'_>, call: Node<'t>) -> Vec<(String, Node<'t>)> {
    let Some(arguments) = walk.field(call, Field::Arguments as u8) else { return Vec::new() };
    let mut cursor = arguments.walk();
    let all: Vec<Node<'t>> = arguments.named_children(&mut cursor).collect();
    all.into_iter().filter_map(|it| Some((literal(walk, it)?, it))).collect()
}

/// `:name`, `"name"`.
fn literal(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    match Kind::at(walk, node)? {
        Kind::Symbol => Some(walk.text(node).trim_start_matches(':').to_owned()),
        Kind::String if node.named_child_count() == 1 => {
            let content =
                node.named_child(0).filter(|it| Kind::at(walk, *it) == Some(Kind::StringContent))?;
            Some(walk.text(content).into_owned())
        }
        _ => None,
    }
}

/// What a call without a receiver defines, takes in or loads; whether it is such a call.
fn defines(walk: &mut Walk<'_>, node: Node<'_>, name: &str) -> bool {
    match name {
        "require" | "require_relative" | "load" | "autoload" => loads(walk, node, name),
        "include" | "extend" | "prepend" if walk.scope.functions == 0 => takes_in(walk, node),
        "attr_reader" | "cattr_reader" | "mattr_reader" | "attr" => attributes(walk, node, true),
        "attr_writer" | "cattr_writer" | "mattr_writer" => attributes(walk, node, false),
        "attr_accessor" | "cattr_accessor" | "mattr_accessor" | "class_attribute" => {
            attributes(walk, node, true);
        }
        "def_delegators" | "delegate" | "def_delegator" | "instance_delegate" => passed_on(walk, node, name),
        "define_method" | "define_singleton_method" => return by_name(walk, node),
        "alias_method" => {
            let names = symbols(walk, node);
            if let [(name, _), (of, _)] = &names[..] {
                comments::end_at(walk, node.start_byte(), 0);
                renamed(walk, node, name, of);
            }
        }
        _ => return false,
    }
    true
}

/// `require "a/b"`, `require_relative "b"`, `autoload :B, "a/b"`.
fn loads(walk: &mut Walk<'_>, node: Node<'_>, word: &str) {
    let names = symbols(walk, node);
    let Some((file, _)) = names.get(usize::from(word == "autoload")) else { return };
    let from = match word {
        "require_relative" => format!("./{file}"),
        // From where the program was started.
        _ => file.strip_prefix("./").map_or_else(|| file.clone(), |file| format!("/{file}")),
    };
    walk.import(Import {
        from: from.into(),
        form: ImportForm::Require,
        names: Vec::new(),
        types_only: false,
        within: None,
        either: false,
        at: offset(node.start_byte()),
    });
}

fn takes_in(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(arguments) = walk.field(node, Field::Arguments as u8) else { return };
    let mut cursor = arguments.walk();
    let modules: Vec<String> =
        arguments.named_children(&mut cursor).filter_map(|it| path_of(walk, it)).collect();
    ruby::takes_in(walk, modules);
}

/// What is read by a name, and maybe written, or written alone; with the whole call for its range where it is about one name.
fn attributes(walk: &mut Walk<'_>, node: Node<'_>, is_read: bool) {
    if walk.owner_kind() != Some(Sort::Class) {
        return;
    }
    let names = symbols(walk, node);
    comments::end_at(walk, node.start_byte(), 0);
    let comments = walk.decorators.take();
    let Some((_, first)) = names.first() else { return };
    for (nth, (name, at)) in names.iter().enumerate() {
        // The first one has the text before it, and the last one that behind it.
        let mut range = at.byte_range();
        if nth == 0 {
            range.start = comments.as_ref().map_or(node.start_byte(), |it| it.start);
        }
        range.end = if nth + 1 == names.len() { node.end_byte() } else { range.end };
        let symbol = match is_read {
            true => walk.symbol(Found::new(name, Sort::Getter, range)),
            false => walk.symbol(Found::new(&format!("{name}="), Sort::Setter, range)),
        };
        walk.declared_by(node, first.start_byte(), symbol);
    }
}

/// `delegate :a, :b, to: :c`, `def_delegators :@c, :a, :b`, `def_delegator :@c, :a, :b`.
fn passed_on(walk: &mut Walk<'_>, node: Node<'_>, word: &str) {
    if walk.owner_kind() != Some(Sort::Class) {
        return;
    }
    let names = symbols(walk, node);
    let names = match word {
        "def_delegators" => names.get(1..),
        "def_delegator" => names.last().map(std::slice::from_ref),
        _ => Some(&names[..]),
    };
    comments::end_at(walk, node.start_byte(), 0);
    walk.decorators = None;
    for (nth, (name, at)) in names.unwrap_or_default().iter().enumerate() {
        // What they are passed on to may stand before the names or behind them: the first one has all of it.
        let range = if nth == 0 { node.byte_range() } else { at.byte_range() };
        let symbol = walk.symbol(Found::new(name, Sort::Method, range));
        walk.declared_by(node, node.end_byte(), symbol);
    }
}

/// `define_method(:name) { |a| … }`; whether the name is written there.
fn by_name(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let Some((name, _)) = symbols(walk, node).into_iter().next() else { return false };
    let block = walk.field(node, Field::Block as u8);
    let parameters = block.and_then(|block| walk.field(block, Field::Parameters as u8));
    let signature = ruby::signature_of(walk, parameters, false);
    comments::end_at(walk, node.start_byte(), 0);
    let sort = ruby::sort_of(walk, &name);
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    if let Some(block) = block {
        walk.claim(block);
    }
    walk.open(at);
    true
}

/// Another name for a method, which calls the method.
pub(super) fn renamed(walk: &mut Walk<'_>, node: Node<'_>, name: &str, of: &str) {
    let sort = ruby::sort_of(walk, name);
    let at = walk.symbol(Found::new(name, sort, node.byte_range()));
    walk.open(at);
    if at.is_some() {
        walk.call(node, of, Receiver::This, Form::Plain);
    }
}

/// `Point = Struct.new(:x, :y) do … end`, `Data.define`, `Class.new(Base)`, `Module.new`.
pub(super) fn made_class(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    right: Node<'_>,
    path: &str,
    own: &str,
) -> Option<u32> {
    let parts = [Field::Receiver, Field::Method].map(|field| walk.field(right, field as u8));
    let [Some(receiver), Some(method)] = parts else { return None };
    let (of, method) = (path_of(walk, receiver)?, walk.text(method));
    let of = of.trim_start_matches("::");
    let has_fields = matches!((of, &*method), ("Struct", "new") | ("Data", "define"));
    if !has_fields && !matches!((of, &*method), ("Class" | "Module", "new")) {
        return None;
    }
    let arguments = walk.field(right, Field::Arguments as u8);
    let word = format!("{of}.{method}");
    let signature = walk.sign(arguments.map_or(0, |it| it.byte_range().len()), |scribe| {
        scribe.word(&word);
        if let Some(arguments) = arguments {
            scribe.node(arguments);
        }
    });
    let found = Found { signature, seen: Seen::Unknown, ..Found::new(own, Sort::Class, node.byte_range()) };
    let at = walk.symbol_at(path.to_owned(), found)?;
    if has_fields {
        walk.open(Some(at));
        for (name, field) in symbols(walk, right) {
            walk.symbol(Found::new(&name, Sort::Getter, field.byte_range()));
        }
    } else {
        let base = arguments.and_then(|it| it.named_child(0)).and_then(|it| path_of(walk, it));
        walk.bases(Some(at), base.into_iter().map(Into::into).collect());
    }
    if let Some(block) = walk.field(right, Field::Block as u8) {
        walk.claim(block);
    }
    Some(at)
}
