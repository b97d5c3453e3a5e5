//! Go: the meaning of its grammar's nodes.
//!
//! A method's path begins with the name of its receiver's type, pointer or value: `Store.Get`. It may be in any file of the package.

use tree_sitter::Node;

use super::super::canon::{Role, Scribe};
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Import, ImportForm, Imported, ImportedName, Kind as Sort, Receiver, Signature};
use super::go_types as types;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Source = "source_file",
        Comment = "comment",
        Import = "import_spec",
        Dot = "dot",
        Blank = "blank_identifier",
        Function = "function_declaration",
        Method = "method_declaration",
        TypeDeclaration = "type_declaration",
        TypeSpec = "type_spec",
        TypeAlias = "type_alias",
        StructType = "struct_type",
        InterfaceType = "interface_type",
        FieldList = "field_declaration_list",
        FieldDeclaration = "field_declaration",
        MethodElem = "method_elem",
        TypeElem = "type_elem",
        TypeConstraint = "type_constraint",
        ConstDeclaration = "const_declaration",
        VarDeclaration = "var_declaration",
        VarSpecList = "var_spec_list",
        ConstSpec = "const_spec",
        VarSpec = "var_spec",
        Identifier = "identifier",
        FieldIdentifier = "field_identifier",
        TypeIdentifier = "type_identifier",
        PackageIdentifier = "package_identifier",
        QualifiedType = "qualified_type",
        PointerType = "pointer_type",
        GenericType = "generic_type",
        ParenthesizedType = "parenthesized_type",
        SliceType = "slice_type",
        ArrayType = "array_type",
        MapType = "map_type",
        ChannelType = "channel_type",
        FunctionType = "function_type",
        ParameterList = "parameter_list",
        Parameter = "parameter_declaration",
        Variadic = "variadic_parameter_declaration",
        TypeParameters = "type_parameter_list",
        TypeParameter = "type_parameter_declaration",
        Call = "call_expression",
        Selector = "selector_expression",
        Parenthesized = "parenthesized_expression",
        Unary = "unary_expression",
        Index = "index_expression",
        Assertion = "type_assertion_expression",
        Instantiation = "type_instantiation_expression",
        Composite = "composite_literal",
        Literal = "func_literal",
        ShortVar = "short_var_declaration",
        Range = "range_clause",
        Receive = "receive_statement",
        TypeSwitch = "type_switch_statement",
        ExpressionList = "expression_list",
        Block = "block",
        If = "if_statement",
        For = "for_statement",
        Switch = "expression_switch_statement",
        TypeCase = "type_case",
        Case = "expression_case",
        DefaultCase = "default_case",
        CommunicationCase = "communication_case",
        String = "interpreted_string_literal",
        RawString = "raw_string_literal",
        Rune = "rune_literal",
        Int = "int_literal",
        Float = "float_literal",
        True = "true",
        False = "false",
        Nil = "nil",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Path = "path",
        Receiver = "receiver",
        TypeParameters = "type_parameters",
        TypeArguments = "type_arguments",
        Parameters = "parameters",
        Result = "result",
        Type = "type",
        Value = "value",
        Function = "function",
        Operand = "operand",
        Member = "field",
        Package = "package",
        Left = "left",
        Right = "right",
        Alias = "alias",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" => Role::Comment,
        "interpreted_string_literal" | "raw_string_literal" | "rune_literal" => Role::Verbatim,
        "int_literal" | "float_literal" | "imaginary_literal" => Role::Number,
        // Line ends stand for semicolons.
        "field_declaration_list" | "interface_type" => Role::Members,
        // Callers do not say the names of parameters.
        "parameter_declaration" | "variadic_parameter_declaration" => Role::Declares,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Source => own_package(walk),
        Kind::Import => {
            import(walk, node);
            return false;
        }
        Kind::Function => function(walk, node),
        Kind::Method => method(walk, node),
        Kind::TypeSpec | Kind::TypeAlias => type_spec(walk, node, kind),
        Kind::FieldDeclaration => fields(walk, node),
        Kind::MethodElem => interface_method(walk, node),
        Kind::ConstSpec | Kind::VarSpec => values(walk, node),
        Kind::Call => call(walk, node),
        Kind::Literal => {
            types::parameters(walk, node, node);
            walk.open_anonymous();
        }
        Kind::ShortVar | Kind::Range | Kind::Receive | Kind::TypeSwitch => types::bound(walk, node, kind),
        Kind::TypeCase => types::in_case(walk, node),
        _ => {}
    }
    true
}

/// What the other files of the package define is known without an import.
fn own_package(walk: &mut Walk<'_>) {
    let all = ImportedName { imported: Imported::Everything, local: None };
    add_import(walk, 0, ".", vec![all]);
}

fn add_import(walk: &mut Walk<'_>, at: u32, from: &str, names: Vec<ImportedName>) {
    let (form, from) = (ImportForm::Static, from.into());
    walk.import(Import { from, form, names, types_only: false, within: None, either: false, at });
}

/// `import x "a/b"`, `import . "a/b"`, `import _ "a/b"`.
fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(path) = walk.field(node, Field::Path as u8) else { return };
    let text = walk.text(path).trim_matches(['"', '`']).to_owned();
    let at = offset(node.start_byte());
    let alias = walk.field(node, Field::Name as u8);
    let module = |local: &str| ImportedName { imported: Imported::Module, local: Some(local.into()) };
    let names = match alias.and_then(|alias| Kind::at(walk, alias)) {
        Some(Kind::Dot) => vec![ImportedName { imported: Imported::Everything, local: None }],
        Some(Kind::Blank) => Vec::new(),
        Some(_) => alias.map(|alias| module(&walk.text(alias))).into_iter().collect(),
        None => vec![module(package_name(&text))],
    };
    add_import(walk, at, &text, names);
}

/// The name of a package by the end of its path, without a version: the `package` clause is in another file.
fn package_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_version =
        |it: &str| it.len() > 1 && it.starts_with('v') && it[1..].bytes().all(|it| it.is_ascii_digit());
    let name = if is_version(last) { parts.next().unwrap_or(last) } else { last };
    // `gopkg.in/yaml.v3`, `go-redis`
    let name = name
        .rsplit_once(".v")
        .filter(|(_, it)| it.bytes().all(|it| it.is_ascii_digit()))
        .map_or(name, |it| it.0);
    let name = name.strip_prefix("go-").unwrap_or(name);
    name.strip_suffix("-go").unwrap_or(name)
}

fn name_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    walk.field(node, Field::Name as u8).map(|name| walk.text(name).into_owned()).filter(|name| name != "_")
}

// Functions and methods.

fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return nameless(walk, node) };
    types::type_parameters(walk, node);
    let (signature, seen) = (signature_of(walk, node), types::of_result(walk, node));
    let found =
        Found { signature, seen, typed: true, ..Found::new(&name, Sort::Function, node.byte_range()) };
    let at = walk.symbol(found);
    types::parameters(walk, node, node);
    walk.open(at);
}

/// `func _() { … }`: no code calls it, and what it declares is known to it alone.
fn nameless(walk: &mut Walk<'_>, node: Node<'_>) {
    types::parameters(walk, node, node);
    walk.open_anonymous();
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(name), Some(receiver)) = (name_of(walk, node), walk.field(node, Field::Receiver as u8)) else {
        return nameless(walk, node);
    };
    let mut cursor = receiver.walk();
    let of = receiver.named_children(&mut cursor).find(|it| Kind::at(walk, *it) == Some(Kind::Parameter));
    let typed = of.and_then(|of| walk.field(of, Field::Type as u8));
    if let Some(typed) = typed {
        types::types_of_receiver(walk, typed, node);
    }
    let of = typed.and_then(|typed| types::path_of(walk, typed));
    let Some(of) = of else { return nameless(walk, node) };
    let (signature, seen) = (signature_of(walk, node), types::of_result(walk, node));
    let found = Found { signature, seen, typed: true, ..Found::new(&name, Sort::Method, node.byte_range()) };
    // It stands beside its type, not in it.
    let at = walk.symbol_at(format!("{of}.{name}"), found);
    types::parameters(walk, node, node);
    types::receiver_parameters(walk, receiver, node);
    walk.open(at);
}

fn signature_of(walk: &mut Walk<'_>, node: Node<'_>) -> Option<Result<Signature, Broken>> {
    let parts = [Field::Receiver, Field::TypeParameters, Field::Parameters, Field::Result]
        .map(|field| walk.field(node, field as u8));
    let length = parts.iter().flatten().map(|part| part.byte_range().len()).sum();
    let [receiver, generic, parameters, result] = parts;
    // By value or by pointer: not every value has the methods of the latter.
    let by_pointer = receiver.is_some_and(|receiver| walk.text(receiver).contains('*'));
    let parameters = parameters.map(|list| listed(walk, list));
    let is_list = result.is_some_and(|it| Kind::at(walk, it) == Some(Kind::ParameterList));
    let results = result.filter(|_| is_list).map(|list| listed(walk, list));
    walk.sign(length, |scribe| {
        if by_pointer {
            scribe.word("*");
        }
        if let Some(generic) = generic {
            scribe.node(generic);
        }
        if let Some(parameters) = &parameters {
            scribe.word("(");
            write_list(scribe, parameters);
            scribe.word(")");
        }
        match (&results, result) {
            // One result is the same in brackets and with a name.
            (Some(results), _) if results.len() == 1 && results[0].0.len() < 2 => {
                scribe.remark(" (");
                write_list(scribe, results);
                scribe.remark(")");
            }
            (Some(results), _) => {
                scribe.word(" (");
                write_list(scribe, results);
                scribe.word(")");
            }
            (None, Some(result)) => {
                scribe.word(" ").node(result);
            }
            (None, None) => {}
        }
    })
}

/// Parameters or results, by type: the names with one type, whether there may be any number of them, and the type.
type Listed<'t> = Vec<(Vec<String>, bool, Node<'t>)>;

fn listed<'t>(walk: &Walk<'_>, list: Node<'t>) -> Listed<'t> {
    let mut cursor = list.walk();
    let mut found = Vec::new();
    for parameter in list.named_children(&mut cursor) {
        let is_any_number = match Kind::at(walk, parameter) {
            Some(Kind::Parameter) => false,
            Some(Kind::Variadic) => true,
            _ => continue,
        };
        let Some(typed) = walk.field(parameter, Field::Type as u8) else { continue };
        let mut inner = parameter.walk();
        let names = parameter.children_by_field_name("name", &mut inner).filter(Node::is_named);
        found.push((names.map(|it| walk.text(it).into_owned()).collect(), is_any_number, typed));
    }
    found
}

/// Writes the types, each as often as there are names of it; the names are shown and make no difference.
fn write_list(scribe: &mut Scribe<'_>, listed: &Listed<'_>) {
    for (nth, (names, is_any_number, typed)) in listed.iter().enumerate() {
        scribe.word(if nth == 0 { "" } else { ", " });
        let dots = if *is_any_number { "..." } else { "" };
        scribe.remark(&names.join(", ")).remark(if names.is_empty() { "" } else { " " });
        for _ in 1..names.len() {
            scribe.unsaid(|scribe| {
                scribe.word(dots).node(*typed).word(",");
            });
        }
        scribe.word(dots).node(*typed);
    }
}

// Types and their members.

fn type_spec(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    // Only a function without a name knows it.
    if walk.scope.functions > 0 && walk.scope.owner.is_none() {
        return;
    }
    let typed = walk.field(node, Field::Type as u8);
    let sort = match typed.and_then(|typed| Kind::at(walk, typed)) {
        _ if kind == Kind::TypeAlias => Sort::TypeAlias,
        Some(Kind::InterfaceType) => Sort::Interface,
        _ => Sort::Class,
    };
    types::type_parameters(walk, node);
    let generic = walk.field(node, Field::TypeParameters as u8);
    let length = node.byte_range().len();
    let signature = walk.sign(length, |scribe| {
        scribe.word(if kind == Kind::TypeAlias { "type =" } else { "type" });
        if let Some(generic) = generic {
            scribe.node(generic);
        }
        if let Some(typed) = typed {
            scribe.word(" ").node(typed);
        }
    });
    let range = alone(walk, node, Kind::TypeDeclaration);
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, range) });
    let bases = typed.map_or(Vec::new(), |typed| types::embedded(walk, typed, sort));
    walk.bases(at, bases);
    walk.open(at);
}

/// The range of a declaration, with the word before it where it is not one of a group.
fn alone(walk: &Walk<'_>, node: Node<'_>, declaration: Kind) -> std::ops::Range<usize> {
    let above = walk
        .above
        .last()
        .filter(|above| Kind::of(above.kind) == Some(declaration))
        .map(super::super::walk::Above::range);
    let Some(above) = above else { return node.byte_range() };
    let (start, end) = (above.start as usize, above.end as usize);
    let between = walk.source.get(start..node.start_byte()).unwrap_or_default();
    if between.contains(&b'(') { node.byte_range() } else { start..end }
}

/// `a, b T` of a struct; an embedded type is a field of its name.
fn fields(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return };
    let is_named = walk.owner_kind().is_some_and(Sort::has_members);
    if !is_named || walk.scope.owner.is_none() {
        return;
    }
    let mut cursor = node.walk();
    let names =
        node.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) == Some(Kind::FieldIdentifier));
    let mut names: Vec<String> = names.map(|name| walk.text(name).into_owned()).collect();
    if names.is_empty() {
        let path = types::path_of(walk, typed);
        names.extend(path.map(|path| path.rsplit('.').next().unwrap_or(&path).to_owned()));
    }
    let mut last = None;
    for name in names.iter().filter(|name| *name != "_") {
        let seen = types::of_type(walk, typed);
        let signature = walk.sign(typed.byte_range().len(), |scribe| {
            scribe.node(typed);
        });
        let found =
            Found { signature, seen, typed: true, ..Found::new(name, Sort::Field, node.byte_range()) };
        last = walk.symbol(found).or(last);
    }
    // The fields of a struct without a name are none of the type around.
    walk.open(last);
}

fn interface_method(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    if !walk.owner_kind().is_some_and(Sort::has_members) {
        return;
    }
    let (signature, seen) = (signature_of(walk, node), types::of_result(walk, node));
    let declared = true;
    walk.symbol(Found {
        signature,
        declared,
        seen,
        typed: true,
        ..Found::new(&name, Sort::Method, node.byte_range())
    });
}

/// `a, b T = …` outside of functions, alone or in a group.
fn values(walk: &mut Walk<'_>, node: Node<'_>) {
    if walk.scope.functions > 0 {
        types::declared(walk, node);
        return;
    }
    let typed = walk.field(node, Field::Type as u8);
    let value = walk.field(node, Field::Value as u8).and_then(|list| list.named_child(0));
    let mut cursor = node.walk();
    let names = node.children_by_field_name("name", &mut cursor);
    let names: Vec<Node<'_>> = names.filter(|it| Kind::at(walk, *it) == Some(Kind::Identifier)).collect();
    let declaration =
        walk.above.last().and_then(|above| Kind::of(above.kind)).unwrap_or(Kind::VarDeclaration);
    let whole = alone(walk, node, declaration);
    let mut last = None;
    for name in &names {
        let text = walk.text(*name).into_owned();
        if text == "_" {
            continue;
        }
        let seen = match (typed, value) {
            (Some(typed), _) => types::of_type(walk, typed),
            (None, Some(value)) if names.len() == 1 => types::of_value(walk, value),
            _ => Seen::Unknown,
        };
        let signature = typed.and_then(|typed| {
            walk.sign(typed.byte_range().len(), |scribe| {
                scribe.node(typed);
            })
        });
        let range = if names.len() == 1 { whole.clone() } else { name.byte_range() };
        let found =
            Found { signature, seen, typed: typed.is_some(), ..Found::new(&text, Sort::Variable, range) };
        last = walk.symbol(found);
    }
    // Code in its value belongs to it, and it is the caller of the functions there.
    if names.len() == 1 && last.is_some() {
        walk.open(last);
        walk.open_for_owner();
    }
}

// Calls.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(called) = walk.field(node, Field::Function as u8) else { return };
    let called = types::unwrapped(walk, called);
    match Kind::at(walk, called) {
        Some(Kind::Identifier) => {
            let name = walk.text(called);
            if !types::is_built_in_function(&name) {
                walk.call(node, &name, Receiver::None, Form::Plain);
            }
        }
        Some(Kind::Selector) => {
            let (Some(field), Some(operand)) =
                (walk.field(called, Field::Member as u8), walk.field(called, Field::Operand as u8))
            else {
                return;
            };
            let receiver = types::receiver(walk, operand);
            let name = walk.text(field);
            walk.call(node, &name, receiver, Form::Plain);
        }
        _ => {}
    }
}

/// In its package each name is known, also one with a small first letter.
fn finish(walk: &mut Walk<'_>) {
    walk.mark_exported(|_| true);
}
