//! Swift: the meaning of its grammar's nodes.
//!
//! A symbol's path contains the names of the types around it, without its module. A member of an extension has the name of the extended
//! type before its own, wherever the extension stands; the extension itself is a further part of the type.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::notes::ELSEWHERE;
use super::super::walk::Walk;
use super::super::{Form, Receiver};
use super::children::child_of;
use super::swift_expected as expected;
use super::swift_locals as locals;
use super::swift_members as members;
use super::swift_types as types;
use super::{Dialect, kinds, names, swift_modules as modules};

pub(crate) const DIALECT: Dialect =
    Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish: modules::finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Source = "source_file",
        Comment = "comment",
        MultilineComment = "multiline_comment",
        Directive = "directive",
        Import = "import_declaration",
        Identifier = "identifier",
        SimpleIdentifier = "simple_identifier",
        TypeIdentifier = "type_identifier",
        Modifiers = "modifiers",
        Attribute = "attribute",
        Class = "class_declaration",
        Protocol = "protocol_declaration",
        ClassBody = "class_body",
        EnumBody = "enum_class_body",
        ProtocolBody = "protocol_body",
        EnumEntry = "enum_entry",
        EnumTypes = "enum_type_parameters",
        TypeAlias = "typealias_declaration",
        AssociatedType = "associatedtype_declaration",
        Function = "function_declaration",
        ProtocolFunction = "protocol_function_declaration",
        Init = "init_declaration",
        Deinit = "deinit_declaration",
        Subscript = "subscript_declaration",
        Property = "property_declaration",
        ProtocolProperty = "protocol_property_declaration",
        Requirements = "protocol_property_requirements",
        ValueBinding = "value_binding_pattern",
        Pattern = "pattern",
        TypeAnnotation = "type_annotation",
        Computed = "computed_property",
        ComputedGetter = "computed_getter",
        ComputedSetter = "computed_setter",
        ComputedModify = "computed_modify",
        GetterSpecifier = "getter_specifier",
        SetterSpecifier = "setter_specifier",
        Operator = "operator_declaration",
        CustomOperator = "custom_operator",
        PrecedenceGroup = "precedence_group_declaration",
        Macro = "macro_declaration",
        MacroInvocation = "macro_invocation",
        TypeParameters = "type_parameters",
        TypeParameter = "type_parameter",
        TypeConstraints = "type_constraints",
        TypeConstraint = "type_constraint",
        InheritanceConstraint = "inheritance_constraint",
        Inheritance = "inheritance_specifier",
        Parameter = "parameter",
        Throws = "throws",
        ThrowsClause = "throws_clause",
        UserType = "user_type",
        OptionalType = "optional_type",
        ArrayType = "array_type",
        DictionaryType = "dictionary_type",
        TupleType = "tuple_type",
        FunctionType = "function_type",
        ExistentialType = "existential_type",
        OpaqueType = "opaque_type",
        CompositionType = "protocol_composition_type",
        MetaType = "metatype",
        TypeArguments = "type_arguments",
        FunctionBody = "function_body",
        Statements = "statements",
        Lambda = "lambda_literal",
        LambdaType = "lambda_function_type",
        LambdaParameters = "lambda_function_type_parameters",
        LambdaParameter = "lambda_parameter",
        For = "for_statement",
        If = "if_statement",
        Guard = "guard_statement",
        While = "while_statement",
        Switch = "switch_statement",
        SwitchEntry = "switch_entry",
        Transfer = "control_transfer_statement",
        Assignment = "assignment",
        Catch = "catch_block",
        Call = "call_expression",
        CallSuffix = "call_suffix",
        ValueArguments = "value_arguments",
        ValueArgument = "value_argument",
        ArgumentLabel = "value_argument_label",
        Navigation = "navigation_expression",
        Prefix = "prefix_expression",
        Postfix = "postfix_expression",
        Infix = "infix_expression",
        Additive = "additive_expression",
        Multiplicative = "multiplicative_expression",
        SelfExpression = "self_expression",
        Super = "super_expression",
        Tuple = "tuple_expression",
        As = "as_expression",
        Try = "try_expression",
        Await = "await_expression",
        Ternary = "ternary_expression",
        NilCoalescing = "nil_coalescing_expression",
        Constructor = "constructor_expression",
        Selector = "selector_expression",
        LineString = "line_string_literal",
        MultiLineString = "multi_line_string_literal",
        RawString = "raw_string_literal",
        Integer = "integer_literal",
        Hexadecimal = "hex_literal",
        Octal = "oct_literal",
        Binary = "bin_literal",
        Real = "real_literal",
        Boolean = "boolean_literal",
        Array = "array_literal",
        Dictionary = "dictionary_literal",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        DeclarationKind = "declaration_kind",
        InheritsFrom = "inherits_from",
        Body = "body",
        Value = "value",
        ComputedValue = "computed_value",
        ExternalName = "external_name",
        Target = "target",
        Suffix = "suffix",
        Operation = "operation",
        Expression = "expr",
        IfTrue = "if_true",
        IfFalse = "if_false",
        IfNil = "if_nil",
        Result = "result",
        ConstructedType = "constructed_type",
        Wrapped = "wrapped",
        Item = "item",
        Error = "error",
        Operator = "op",
        Right = "rhs",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        // Attributes are none of the callers' business.
        "comment" | "multiline_comment" | "directive" | "attribute" => Role::Comment,
        "line_string_literal" | "multi_line_string_literal" | "raw_string_literal" => Role::Verbatim,
        "integer_literal" | "real_literal" | "hex_literal" | "bin_literal" => Role::Number,
        "type_arguments" | "type_parameters" => Role::Angles,
        "parameter" => Role::Declares,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    expected::enter(walk, node, kind);
    match kind {
        Kind::Comment | Kind::MultilineComment => {
            let text = walk.text(node);
            let is_doc = text.starts_with("///") || (text.starts_with("/**") && text.len() > 4);
            walk.attribute(node, is_doc);
            return false;
        }
        Kind::Import => {
            modules::import(walk, node);
            return false;
        }
        // No code that is called is in these.
        Kind::Modifiers | Kind::Attribute | Kind::Directive | Kind::Inheritance => return false,
        Kind::UserType | Kind::OptionalType | Kind::ArrayType | Kind::DictionaryType => return false,
        Kind::TupleType | Kind::FunctionType | Kind::TypeParameters | Kind::TypeConstraints => return false,
        Kind::Class => members::data(walk, node),
        Kind::Protocol => members::protocol(walk, node),
        Kind::EnumEntry => members::entry(walk, node),
        Kind::TypeAlias | Kind::AssociatedType => members::alias(walk, node, kind),
        Kind::Function | Kind::ProtocolFunction => members::function(walk, node, kind),
        Kind::Init => members::initialiser(walk, node),
        Kind::Deinit => members::end_of_life(walk, node),
        Kind::Subscript => members::subscript(walk, node),
        Kind::Property | Kind::ProtocolProperty => members::property(walk, node, kind),
        Kind::Operator | Kind::PrecedenceGroup => members::operator(walk, node, kind),
        Kind::Macro => members::macro_declaration(walk, node),
        Kind::Lambda => locals::lambda(walk, node),
        Kind::For | Kind::If | Kind::Guard | Kind::While | Kind::SwitchEntry | Kind::Catch => {
            locals::bound(walk, node, kind);
        }
        Kind::Call => call(walk, node),
        Kind::Constructor => constructed(walk, node),
        Kind::MacroInvocation => invoked(walk, node),
        Kind::Selector => selected(walk, node),
        Kind::Infix => infix(walk, node),
        _ => {}
    }
    true
}

/// All children of a node, punctuation included.
pub(super) fn all_of(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// The named child behind a punctuation or keyword.
pub(super) fn behind<'t>(walk: &Walk<'_>, node: Node<'t>, token: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.find(|it| walk.is_token(*it, token))?;
    children.find(Node::is_named)
}

/// The name of an operator: what it looks like, without dots, which separate names.
pub(super) fn operator_name(sign: &str) -> String {
    format!("operator{}", sign.trim().replace('.', "_"))
}

// Calls.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(written) = node.named_child(0) else { return };
    if types::is_element(walk, node) {
        return;
    }
    modules::target(walk, node, written);
    let called = types::before_a_call(walk, written, &mut true);
    match Kind::at(walk, called) {
        Some(Kind::SimpleIdentifier) => {
            let name = types::name(walk, called);
            match &*name {
                // These are words of the language to which the grammar has no form of its own.
                "defer" | "type" => {}
                "Self" => walk.call(node, "init", Receiver::This, Form::Plain),
                _ => walk.call(node, &name, Receiver::None, Form::Plain),
            }
        }
        Some(Kind::Navigation) => member(walk, node, called),
        // `.paid(1)`, of a type that is not said.
        Some(Kind::Prefix) if types::is_implicit(walk, called) => {
            if let Some(target) = walk.field(called, Field::Target as u8) {
                let name = types::name(walk, target);
                // Behind an operator, another type may be expected than that of the whole.
                let is_whole = types::is_implicit(walk, written);
                let receiver = if is_whole { expected::receiver(walk, node, &name) } else { Receiver::Other };
                walk.call(node, &name, receiver, Form::Plain);
            }
        }
        _ => {}
    }
}

/// `a.b()`, also as a value that will be called.
fn member(walk: &mut Walk<'_>, at: Node<'_>, called: Node<'_>) {
    let Some((object, name)) = types::parts_of(walk, called) else { return };
    if name != "init" {
        let receiver = types::receiver(walk, object);
        return walk.call(at, &name, receiver, Form::Plain);
    }
    match types::receiver(walk, object) {
        // `Store.init(…)` is `Store(…)`.
        Receiver::Path(path) => along(walk, at, &path),
        receiver => walk.call(at, "init", receiver, Form::Plain),
    }
}

/// A call of what has a name behind others.
fn along(walk: &mut Walk<'_>, at: Node<'_>, path: &str) {
    match path.rsplit_once('.') {
        Some((before, name)) => walk.call(at, name, Receiver::Path(before.into()), Form::Plain),
        None => walk.call(at, path, Receiver::None, Form::Plain),
    }
}

/// `Store<Int>()`
fn constructed(walk: &mut Walk<'_>, node: Node<'_>) {
    let of = walk.field(node, Field::ConstructedType as u8);
    if let Some(path) = of.and_then(|of| types::path_of(walk, of)) {
        along(walk, node, &path);
    }
}

/// `#stringify(…)`
fn invoked(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(named) = child_of(walk, node, &[Kind::SimpleIdentifier]) {
        let name = types::name(walk, named);
        walk.call(node, &name, Receiver::None, Form::Plain);
    }
}

/// `#selector(Store.find)`: that it will be called is as good as a call.
fn selected(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(named) = node.named_child(0) else { return };
    match Kind::at(walk, named) {
        Some(Kind::SimpleIdentifier) => {
            let name = types::name(walk, named);
            walk.call(node, &name, Receiver::None, Form::Plain);
        }
        Some(Kind::Navigation) => member(walk, node, named),
        _ => {}
    }
}

/// An operator that the language does not have.
fn infix(walk: &mut Walk<'_>, node: Node<'_>) {
    let sign = walk.field(node, Field::Operator as u8);
    if let Some(sign) = sign.filter(|it| Kind::at(walk, *it) == Some(Kind::CustomOperator)) {
        let name = operator_name(&walk.text(sign));
        walk.call(node, &name, Receiver::None, Form::Plain);
    }
}

/// With which the name of a type begins that an extension adds to and that stands elsewhere.
pub(super) fn elsewhere(path: &str) -> Box<str> {
    format!("{ELSEWHERE}{path}").into()
}
