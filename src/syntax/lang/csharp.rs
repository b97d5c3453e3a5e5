//! C#: the meaning of its grammar's nodes.
//!
//! A symbol's path contains the names of the types around it, without its namespace: `Store.Entry.Get`. The namespace is in the name
//! under which others can use it. Code between `#if` and `#endif` counts in each branch.

use tree_sitter::Node;

use super::super::canon::{Role, Scribe};
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Kind as Sort, Receiver, Signature};
use super::children::{child_of, children_of};
use super::csharp_names as namespaces;
use super::csharp_types as types;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect =
    Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish: namespaces::finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Unit = "compilation_unit",
        Comment = "comment",
        Using = "using_directive",
        Namespace = "namespace_declaration",
        FileNamespace = "file_scoped_namespace_declaration",
        If = "preproc_if",
        Elif = "preproc_elif",
        Else = "preproc_else",
        GlobalAttribute = "global_attribute",
        AttributeList = "attribute_list",
        Attribute = "attribute",
        Modifier = "modifier",
        Class = "class_declaration",
        Struct = "struct_declaration",
        Interface = "interface_declaration",
        Record = "record_declaration",
        Enum = "enum_declaration",
        EnumMember = "enum_member_declaration",
        Delegate = "delegate_declaration",
        DeclarationList = "declaration_list",
        FieldDeclaration = "field_declaration",
        EventField = "event_field_declaration",
        Event = "event_declaration",
        Property = "property_declaration",
        Indexer = "indexer_declaration",
        AccessorList = "accessor_list",
        Accessor = "accessor_declaration",
        Method = "method_declaration",
        Constructor = "constructor_declaration",
        ConstructorInitializer = "constructor_initializer",
        Destructor = "destructor_declaration",
        Operator = "operator_declaration",
        Conversion = "conversion_operator_declaration",
        LocalFunction = "local_function_statement",
        ExplicitInterface = "explicit_interface_specifier",
        BaseList = "base_list",
        PrimaryBase = "primary_constructor_base_type",
        ParameterList = "parameter_list",
        BracketedParameters = "bracketed_parameter_list",
        Parameter = "parameter",
        ImplicitParameter = "implicit_parameter",
        TypeParameters = "type_parameter_list",
        TypeParameter = "type_parameter",
        Constraints = "type_parameter_constraints_clause",
        Constraint = "type_parameter_constraint",
        Arrow = "arrow_expression_clause",
        Block = "block",
        VariableDeclaration = "variable_declaration",
        Declarator = "variable_declarator",
        LocalDeclaration = "local_declaration_statement",
        For = "for_statement",
        Foreach = "foreach_statement",
        UsingStatement = "using_statement",
        Fixed = "fixed_statement",
        CatchClause = "catch_clause",
        CatchDeclaration = "catch_declaration",
        SwitchSection = "switch_section",
        SwitchArm = "switch_expression_arm",
        DeclarationPattern = "declaration_pattern",
        RecursivePattern = "recursive_pattern",
        VarPattern = "var_pattern",
        DeclarationExpression = "declaration_expression",
        Query = "query_expression",
        From = "from_clause",
        Let = "let_clause",
        Lambda = "lambda_expression",
        AnonymousMethod = "anonymous_method_expression",
        Invocation = "invocation_expression",
        Creation = "object_creation_expression",
        ImplicitCreation = "implicit_object_creation_expression",
        MemberAccess = "member_access_expression",
        ConditionalAccess = "conditional_access_expression",
        MemberBinding = "member_binding_expression",
        Parenthesized = "parenthesized_expression",
        Cast = "cast_expression",
        As = "as_expression",
        Await = "await_expression",
        Postfix = "postfix_unary_expression",
        Conditional = "conditional_expression",
        Assignment = "assignment_expression",
        Typeof = "typeof_expression",
        Argument = "argument",
        Identifier = "identifier",
        GenericName = "generic_name",
        QualifiedName = "qualified_name",
        AliasQualified = "alias_qualified_name",
        PredefinedType = "predefined_type",
        NullableType = "nullable_type",
        ArrayType = "array_type",
        PointerType = "pointer_type",
        RefType = "ref_type",
        ScopedType = "scoped_type",
        TupleType = "tuple_type",
        ImplicitType = "implicit_type",
        TypeArguments = "type_argument_list",
        String = "string_literal",
        VerbatimString = "verbatim_string_literal",
        RawString = "raw_string_literal",
        InterpolatedString = "interpolated_string_expression",
        Character = "character_literal",
        Integer = "integer_literal",
        Real = "real_literal",
        Boolean = "boolean_literal",
        Null = "null_literal",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Body = "body",
        Type = "type",
        Returns = "returns",
        TypeParameters = "type_parameters",
        Parameters = "parameters",
        Accessors = "accessors",
        Value = "value",
        Operator = "operator",
        Function = "function",
        Expression = "expression",
        Condition = "condition",
        Left = "left",
        Right = "right",
        Consequence = "consequence",
        Alternative = "alternative",
        Qualifier = "qualifier",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        // Attributes do not concern callers.
        "comment" | "attribute_list" => Role::Comment,
        "string_literal" | "verbatim_string_literal" | "raw_string_literal" | "character_literal" => {
            Role::Verbatim
        }
        "interpolated_string_expression" => Role::Verbatim,
        "integer_literal" | "real_literal" => Role::Number,
        "type_argument_list" | "type_parameter_list" => Role::Angles,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Unit => namespaces::unit(walk, node),
        Kind::Comment => {
            let text = walk.text(node);
            let is_doc = text.starts_with("///") || (text.starts_with("/**") && text.len() > 4);
            walk.attribute(node, is_doc);
            return false;
        }
        Kind::Using => {
            namespaces::using(walk, node);
            return false;
        }
        Kind::Namespace | Kind::FileNamespace => namespaces::namespace(walk, node, kind),
        Kind::GlobalAttribute | Kind::AttributeList => return false,
        Kind::Class | Kind::Struct | Kind::Interface | Kind::Record => data(walk, node, kind),
        Kind::Enum => enumeration(walk, node),
        Kind::EnumMember => constant(walk, node),
        Kind::Delegate => delegate(walk, node),
        Kind::FieldDeclaration | Kind::EventField => fields(walk, node),
        Kind::Declarator => types::value_of_declarator(walk, node),
        Kind::Event | Kind::Property | Kind::Indexer => property(walk, node, kind),
        Kind::Method | Kind::Constructor | Kind::Destructor | Kind::Operator | Kind::Conversion => {
            function(walk, node, kind);
        }
        Kind::LocalFunction => function(walk, node, kind),
        Kind::ConstructorInitializer => other_constructor(walk, node),
        Kind::VariableDeclaration
        | Kind::Foreach
        | Kind::CatchDeclaration
        | Kind::DeclarationPattern
        | Kind::RecursivePattern
        | Kind::VarPattern
        | Kind::DeclarationExpression
        | Kind::From
        | Kind::Let => types::bound(walk, node, kind),
        Kind::Lambda | Kind::AnonymousMethod => types::lambda(walk, node),
        Kind::Invocation => invocation(walk, node),
        Kind::Creation => creation(walk, node),
        Kind::ImplicitCreation => types::created(walk, node),
        Kind::Argument => reference(walk, node),
        // No code is in types.
        Kind::GenericName | Kind::QualifiedName | Kind::NullableType | Kind::ArrayType | Kind::Typeof => {
            return false;
        }
        _ => {}
    }
    true
}

fn name_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let name = walk.field(node, Field::Name as u8)?;
    Some(walk.text(name).trim_start_matches('@').to_owned()).filter(|it| !it.is_empty())
}

/// The modifiers that make a difference to others, each with a blank behind it, always in the same order.
fn shown_modifiers(walk: &Walk<'_>, node: Node<'_>, shown: &[&str]) -> String {
    let there = children_of(walk, node, Kind::Modifier);
    let is_there = |word: &&&str| there.iter().any(|it| *walk.text(*it) == ***word);
    shown.iter().filter(is_there).map(|word| format!("{word} ")).collect()
}

fn after(scribe: &mut Scribe<'_>, word: &str, node: Option<Node<'_>>) {
    if let Some(node) = node {
        scribe.word(word).node(node);
    }
}

fn length(parts: &[Option<Node<'_>>]) -> usize {
    parts.iter().flatten().map(|part| part.byte_range().len()).sum()
}

// Types and their members.

fn data(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let (sort, word) = match kind {
        Kind::Interface => (Sort::Interface, "interface"),
        Kind::Struct => (Sort::Class, "struct"),
        Kind::Record => (Sort::Class, "record"),
        _ => (Sort::Class, "class"),
    };
    let [generic, components, bases] =
        [Kind::TypeParameters, Kind::ParameterList, Kind::BaseList].map(|kind| child_of(walk, node, &[kind]));
    let constraints = children_of(walk, node, Kind::Constraints);
    let asked = if sort == Sort::Interface { asked_members(walk, node) } else { Vec::new() };
    let modifiers = shown_modifiers(walk, node, &["abstract", "static", "sealed", "readonly", "ref"]);
    let all = length(&[generic, components, bases])
        + constraints.iter().chain(&asked).map(|it| it.byte_range().len()).sum::<usize>();
    let signature = walk.sign(all, |scribe| {
        scribe.word(&modifiers).word(word);
        after(scribe, "", generic);
        after(scribe, "", components);
        after(scribe, " ", bases);
        constraints.iter().for_each(|it| after(scribe, " ", Some(*it)));
        if !asked.is_empty() {
            scribe.word(" {");
            asked.iter().for_each(|it| after(scribe, " ", Some(*it)));
            scribe.word(" }");
        }
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    namespaces::with_parameters(walk, at, generic);
    types::type_parameters(walk, node);
    let bases = bases.map_or(Vec::new(), |bases| types::in_list(walk, bases));
    walk.bases(at, bases);
    walk.open(at);
    if let Some(components) = components {
        match kind {
            Kind::Record => self::components(walk, components),
            _ => types::in_parameters(walk, components, node),
        }
    }
}

/// What an interface asks of those who implement it.
fn asked_members<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let Some(body) = walk.field(node, Field::Body as u8) else { return Vec::new() };
    let mut cursor = body.walk();
    let is_asked = |it: &Node<'_>| match Kind::at(walk, *it) {
        Some(Kind::Method | Kind::Operator | Kind::Conversion) => {
            walk.field(*it, Field::Body as u8).is_none()
        }
        Some(Kind::Property | Kind::Indexer) => !has_code(walk, *it),
        Some(Kind::EventField) => true,
        _ => false,
    };
    body.named_children(&mut cursor).filter(is_asked).collect()
}

/// What a record is made of, which others read by these names.
fn components(walk: &mut Walk<'_>, list: Node<'_>) {
    for component in children_of(walk, list, Kind::Parameter) {
        let (Some(name), Some(typed)) = (name_of(walk, component), walk.field(component, Field::Type as u8))
        else {
            continue;
        };
        let seen = types::of_type(walk, typed);
        let signature = walk.sign(typed.byte_range().len(), |scribe| {
            scribe.node(typed);
        });
        let found =
            Found { signature, seen, typed: true, ..Found::new(&name, Sort::Field, component.byte_range()) };
        walk.symbol(found);
    }
}

fn enumeration(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let base = child_of(walk, node, &[Kind::BaseList]);
    let body = walk.field(node, Field::Body as u8);
    let members = body.map_or(Vec::new(), |body| children_of(walk, body, Kind::EnumMember));
    let names: Vec<Node<'_>> = members.iter().filter_map(|it| walk.field(*it, Field::Name as u8)).collect();
    let all = length(&[base]) + names.iter().map(|it| it.byte_range().len()).sum::<usize>();
    let signature = walk.sign(all, |scribe| {
        scribe.word("enum");
        after(scribe, " ", base);
        for (nth, name) in names.iter().enumerate() {
            scribe.word(if nth == 0 { " { " } else { ", " }).node(*name);
        }
        scribe.word(if names.is_empty() { "" } else { " }" });
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Enum, node.byte_range()) });
    walk.open(at);
}

fn constant(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let of = walk.scope.owner.map(|owner| walk.facts.symbols[owner as usize].name().to_owned());
    let seen = of.map_or(Seen::Unknown, |of| Seen::Of(of.into()));
    walk.attributes_end(node.start_byte());
    walk.symbol(Found { seen, typed: true, ..Found::new(&name, Sort::Field, node.byte_range()) });
}

/// A type of functions.
fn delegate(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let [typed, generic, parameters] =
        [Field::Type, Field::TypeParameters, Field::Parameters].map(|field| walk.field(node, field as u8));
    let constraints = children_of(walk, node, Kind::Constraints);
    let signature = walk.sign(length(&[typed, generic, parameters]), |scribe| {
        scribe.word("delegate");
        after(scribe, " ", typed);
        after(scribe, " ", generic);
        after(scribe, if generic.is_some() { "" } else { " " }, parameters);
        constraints.iter().for_each(|it| after(scribe, " ", Some(*it)));
    });
    walk.attributes_end(node.start_byte());
    walk.symbol(Found { signature, ..Found::new(&name, Sort::TypeAlias, node.byte_range()) });
}

/// `T a = …, b;`: the first begins with the declaration, and the last ends with it.
fn fields(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(declaration) = child_of(walk, node, &[Kind::VariableDeclaration]) else { return };
    let Some(typed) = walk.field(declaration, Field::Type as u8) else { return };
    let modifiers = shown_modifiers(walk, node, &["static", "const", "readonly"]);
    let event = if Kind::at(walk, node) == Some(Kind::EventField) { "event " } else { "" };
    let all = children_of(walk, declaration, Kind::Declarator);
    walk.attributes_end(node.start_byte());
    for (nth, declarator) in all.iter().enumerate() {
        let Some(name) = name_of(walk, *declarator) else { continue };
        let start = if nth == 0 { node.start_byte() } else { declarator.start_byte() };
        let end = if nth + 1 == all.len() { node.end_byte() } else { declarator.end_byte() };
        let seen = types::of_type(walk, typed);
        let signature = walk.sign(typed.byte_range().len(), |scribe| {
            scribe.word(&modifiers).word(event).node(typed);
        });
        let declared = !event.is_empty() && is_asked(walk, node);
        let found =
            Found { signature, declared, seen, typed: true, ..Found::new(&name, Sort::Field, start..end) };
        let at = walk.symbol(found);
        walk.declared_by(node, all[0].start_byte(), at);
        if let Some(at) = at {
            walk.notes.bodies.insert(declarator.id(), at);
        }
    }
}

/// Whether reading or writing it runs code.
fn has_code(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let accessors = walk.field(node, Field::Accessors as u8);
    let of_them = accessors.map_or(Vec::new(), |it| children_of(walk, it, Kind::Accessor));
    let is_arrow = |it: Node<'_>| Kind::at(walk, it) == Some(Kind::Arrow);
    of_them.iter().any(|it| walk.field(*it, Field::Body as u8).is_some())
        || walk.field(node, Field::Value as u8).is_some_and(is_arrow)
}

/// A property, an event with code, or `this[…]`.
fn property(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let name = if kind == Kind::Indexer { Some("this[]".to_owned()) } else { name_of(walk, node) };
    let (Some(name), Some(typed)) = (name, walk.field(node, Field::Type as u8)) else { return };
    let (code, seen) = (has_code(walk, node), types::of_type(walk, typed));
    let parameters = walk.field(node, Field::Parameters as u8);
    let accessors = walk.field(node, Field::Accessors as u8);
    let shown: Vec<(String, String)> = accessors.map_or(Vec::new(), |list| {
        let of_one = |it: &Node<'_>| {
            let limits = shown_modifiers(walk, *it, &["private", "protected", "internal"]);
            let name = walk.field(*it, Field::Name as u8);
            let name = name.map_or_else(|| walk.text(*it), |name| walk.text(name));
            (limits, name.split([';', '{', '=', ' ']).next().unwrap_or_default().to_owned())
        };
        children_of(walk, list, Kind::Accessor).iter().map(of_one).collect()
    });
    let modifiers = shown_modifiers(walk, node, &["static", "abstract", "virtual"]);
    let signature = walk.sign(length(&[Some(typed), parameters]), |scribe| {
        scribe.word(&modifiers).word(if kind == Kind::Event { "event " } else { "" }).node(typed);
        after(scribe, " ", parameters);
        if kind != Kind::Event {
            scribe.word(" { ");
            if accessors.is_none() {
                scribe.word("get").word("; ");
            }
            shown.iter().for_each(|(limits, name)| {
                scribe.word(limits).word(name).word("; ");
            });
            scribe.word("}");
        }
    });
    let sort = if code { Sort::Getter } else { Sort::Field };
    let declared = !code && is_asked(walk, node);
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = member(walk, node, found);
    if let Some(parameters) = parameters {
        types::in_parameters(walk, parameters, node);
    }
    types::given_values(walk, accessors, typed);
    walk.open(at);
    walk.open_for_owner();
}

/// Whether a member without code is one that others have to define.
fn is_asked(walk: &Walk<'_>, node: Node<'_>) -> bool {
    walk.owner_kind() == Some(Sort::Interface) || !shown_modifiers(walk, node, &["abstract"]).is_empty()
}

/// Records a member; one that it has for an interface alone has the interface before its name.
fn member(walk: &mut Walk<'_>, node: Node<'_>, found: Found<'_>) -> Option<u32> {
    walk.attributes_end(node.start_byte());
    let explicit = child_of(walk, node, &[Kind::ExplicitInterface]).and_then(|it| it.named_child(0));
    let interface = explicit.and_then(|it| types::path_of(walk, it));
    match (interface, walk.scope.owner) {
        (Some(interface), Some(owner)) => {
            let last = interface.rsplit('.').next().unwrap_or(&interface).to_owned();
            let path = format!("{}.{last}.{}", walk.facts.symbols[owner as usize].path, found.name);
            walk.symbol_at(path, found)
        }
        _ => walk.symbol(found),
    }
}

// Methods, constructors and operators.

fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let typed = walk.field(node, Field::Returns as u8).or_else(|| walk.field(node, Field::Type as u8));
    let (name, sort) = match kind {
        Kind::Constructor => (Some("constructor".to_owned()), Sort::Constructor),
        Kind::Destructor => (name_of(walk, node).map(|name| format!("~{name}")), Sort::Method),
        Kind::Operator => (Some(operator_name(walk, node)), Sort::Method),
        Kind::Conversion => (
            typed.map(|typed| format!("operator({})", types::without_blanks(&walk.text(typed)))),
            Sort::Method,
        ),
        Kind::LocalFunction => (name_of(walk, node), Sort::Function),
        _ => (name_of(walk, node), Sort::Method),
    };
    let Some(name) = name else { return };
    let seen = typed.map_or(Seen::Unknown, |typed| types::of_result(walk, typed));
    let declared =
        walk.field(node, Field::Body as u8).is_none() && shown_modifiers(walk, node, &["extern"]).is_empty();
    let signature = function_signature(walk, node, typed);
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = member(walk, node, found);
    types::type_parameters(walk, node);
    if let Some(parameters) = walk.field(node, Field::Parameters as u8) {
        namespaces::extended(walk, at, parameters);
        types::in_parameters(walk, parameters, node);
    }
    walk.open(at);
}

/// `operator+`, as it is written, without the blank.
fn operator_name(walk: &Walk<'_>, node: Node<'_>) -> String {
    let sign = walk.field(node, Field::Operator as u8).map(|it| {
        let is_compound = walk.source.get(it.end_byte()) == Some(&b'=');
        walk.text(it).into_owned() + if is_compound { "=" } else { "" }
    });
    let sign = sign.unwrap_or_else(|| {
        let text = walk.text(node);
        let behind = text.split_once("operator").map_or("", |(_, behind)| behind);
        behind.split('(').next().unwrap_or_default().trim().to_owned()
    });
    match sign.chars().all(char::is_alphabetic) {
        true => format!("operator({sign})"),
        false => format!("operator{sign}"),
    }
}

fn function_signature(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    typed: Option<Node<'_>>,
) -> Option<Result<Signature, Broken>> {
    let [generic, parameters] =
        [Field::TypeParameters, Field::Parameters].map(|field| walk.field(node, field as u8));
    let constraints = children_of(walk, node, Kind::Constraints);
    let modifiers = shown_modifiers(walk, node, &["static", "abstract", "virtual", "implicit", "explicit"]);
    let all = length(&[typed, generic, parameters])
        + constraints.iter().map(|it| it.byte_range().len()).sum::<usize>();
    walk.sign(all, |scribe| {
        scribe.word(&modifiers);
        after(scribe, "", typed);
        after(scribe, if typed.is_some() { " " } else { "" }, generic);
        after(scribe, if typed.is_some() && generic.is_none() { " " } else { "" }, parameters);
        constraints.iter().for_each(|it| after(scribe, " ", Some(*it)));
    })
}

// Calls.

fn invocation(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(called) = walk.field(node, Field::Function as u8) else { return };
    if let Some((name, receiver)) = target(walk, called) {
        walk.call(node, &name, receiver, Form::Plain);
    }
}

/// The name and the receiver of something that is called, or will be.
fn target(walk: &Walk<'_>, called: Node<'_>) -> Option<(String, Receiver)> {
    match Kind::at(walk, called)? {
        Kind::Identifier | Kind::GenericName => {
            let name = types::bare_name(walk, called)?;
            (name != "nameof").then_some((name, Receiver::None))
        }
        Kind::MemberAccess => {
            let name = types::bare_name(walk, walk.field(called, Field::Name as u8)?)?;
            let receiver = types::receiver(walk, walk.field(called, Field::Expression as u8)?);
            Some((name, receiver))
        }
        Kind::ConditionalAccess => {
            let binding = child_of(walk, called, &[Kind::MemberBinding])?;
            let name = types::bare_name(walk, walk.field(binding, Field::Name as u8)?)?;
            Some((name, types::receiver(walk, walk.field(called, Field::Condition as u8)?)))
        }
        _ => None,
    }
}

/// `new Store()`, `new A.B.Store()`.
fn creation(walk: &mut Walk<'_>, node: Node<'_>) {
    let path = walk.field(node, Field::Type as u8).and_then(|typed| types::path_of(walk, typed));
    if let Some(path) = path {
        types::call_new(walk, node, &path);
    }
}

/// `: this(…)` and `: base(…)` of a constructor.
fn other_constructor(walk: &mut Walk<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    let is_base = node.children(&mut cursor).any(|it| walk.is_token(it, "base"));
    walk.call(node, "constructor", if is_base { Receiver::Super } else { Receiver::This }, Form::New);
}

/// A method that is handed over: that it will be called is as good as a call. A value that is handed over has no such name.
fn reference(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(value) = node.named_child(node.named_child_count().saturating_sub(1) as u32) else { return };
    if Kind::at(walk, value) != Some(Kind::MemberAccess) {
        return;
    }
    let own = walk.field(value, Field::Expression as u8).filter(|it| walk.is_token(*it, "this"));
    if let (Some(_), Some((name, receiver))) = (own, target(walk, value)) {
        let is_method = walk.scope.owner.is_some() && name.chars().next().is_some_and(char::is_uppercase);
        if is_method {
            walk.call(value, &name, receiver, Form::Plain);
        }
    }
}

/// The place of a node, as on disk.
pub(super) fn start(node: Node<'_>) -> u32 {
    offset(node.start_byte())
}
