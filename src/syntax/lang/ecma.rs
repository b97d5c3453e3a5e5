//! TypeScript, TSX and JavaScript: three grammars, one dialect.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Kind as Sort, Receiver, Signature};
use super::ecma_classes::{
    self as classes, class, class_declaration, enum_members, enumeration, interface, namespace, type_alias,
};
use super::ecma_doc_imports as doc_imports;
use super::ecma_given as given;
use super::ecma_locals as locals;
use super::ecma_modules as modules;
use super::ecma_names::{Head, bound_names, callee, dotted, property_name, unwrapped, wrapped_function};
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect =
    Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish: modules::finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        FunctionDeclaration = "function_declaration",
        GeneratorDeclaration = "generator_function_declaration",
        FunctionSignature = "function_signature",
        FunctionExpression = "function_expression",
        GeneratorFunction = "generator_function",
        ArrowFunction = "arrow_function",
        MethodDefinition = "method_definition",
        MethodSignature = "method_signature",
        AbstractMethod = "abstract_method_signature",
        PropertySignature = "property_signature",
        FieldDefinition = "field_definition",
        PublicField = "public_field_definition",
        ClassDeclaration = "class_declaration",
        AbstractClass = "abstract_class_declaration",
        Class = "class",
        ClassBody = "class_body",
        Interface = "interface_declaration",
        TypeAlias = "type_alias_declaration",
        Enum = "enum_declaration",
        EnumBody = "enum_body",
        EnumAssignment = "enum_assignment",
        Namespace = "internal_module",
        Module = "module",
        Ambient = "ambient_declaration",
        Lexical = "lexical_declaration",
        Variable = "variable_declaration",
        Declarator = "variable_declarator",
        Object = "object",
        Pair = "pair",
        Shorthand = "shorthand_property_identifier",
        Assignment = "assignment_expression",
        Call = "call_expression",
        New = "new_expression",
        JsxOpening = "jsx_opening_element",
        JsxSelfClosing = "jsx_self_closing_element",
        StaticBlock = "class_static_block",
        Decorator = "decorator",
        Import = "import_statement",
        Export = "export_statement",
        ExportClause = "export_clause",
        ExportSpecifier = "export_specifier",
        NamespaceExport = "namespace_export",
        ImportClause = "import_clause",
        NamespaceImport = "namespace_import",
        NamedImports = "named_imports",
        ImportSpecifier = "import_specifier",
        ImportRequire = "import_require_clause",
        ImportWord = "import",
        Identifier = "identifier",
        PropertyIdentifier = "property_identifier",
        PrivateIdentifier = "private_property_identifier",
        TypeIdentifier = "type_identifier",
        NestedType = "nested_type_identifier",
        GenericType = "generic_type",
        ComputedName = "computed_property_name",
        Member = "member_expression",
        Subscript = "subscript_expression",
        This = "this",
        Super = "super",
        String = "string",
        Template = "template_string",
        Arguments = "arguments",
        Parenthesized = "parenthesized_expression",
        As = "as_expression",
        Satisfies = "satisfies_expression",
        NonNull = "non_null_expression",
        TypeAssertion = "type_assertion",
        Instantiation = "instantiation_expression",
        Await = "await_expression",
        Sequence = "sequence_expression",
        Ternary = "ternary_expression",
        Binary = "binary_expression",
        AugmentedAssignment = "augmented_assignment_expression",
        Unary = "unary_expression",
        ObjectPattern = "object_pattern",
        ArrayPattern = "array_pattern",
        PairPattern = "pair_pattern",
        RestPattern = "rest_pattern",
        AssignmentPattern = "assignment_pattern",
        ObjectAssignment = "object_assignment_pattern",
        ShorthandPattern = "shorthand_property_identifier_pattern",
        Heritage = "class_heritage",
        Extends = "extends_clause",
        ExtendsType = "extends_type_clause",
        Implements = "implements_clause",
        TypeAnnotation = "type_annotation",
        TypeArguments = "type_arguments",
        TypeParameters = "type_parameters",
        ObjectType = "object_type",
        Comment = "comment",
        Statement = "expression_statement",
        Accessibility = "accessibility_modifier",
        Block = "statement_block",
        For = "for_statement",
        ForIn = "for_in_statement",
        Catch = "catch_clause",
        SwitchBody = "switch_body",
        Array = "array",
        Number = "number",
        Regex = "regex",
        Null = "null",
        Undefined = "undefined",
        Union = "union_type",
        PredefinedType = "predefined_type",
        ArrayType = "array_type",
        TupleType = "tuple_type",
        FunctionType = "function_type",
        ParenthesizedType = "parenthesized_type",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Value = "value",
        Type = "type",
        Key = "key",
        Property = "property",
        Object = "object",
        Index = "index",
        Left = "left",
        Right = "right",
        Function = "function",
        Constructor = "constructor",
        Arguments = "arguments",
        Body = "body",
        Parameters = "parameters",
        Parameter = "parameter",
        ReturnType = "return_type",
        TypeParameters = "type_parameters",
        Source = "source",
        Alias = "alias",
        Declaration = "declaration",
        Pattern = "pattern",
        Operator = "operator",
        Consequence = "consequence",
        Alternative = "alternative",
        Constraint = "constraint",
    }
}

impl Kind {
    fn above(walk: &Walk<'_>, levels: usize) -> Option<Self> {
        Self::of(walk.kind_above(levels))
    }

    pub(super) fn is_function(self) -> bool {
        matches!(self, Self::FunctionExpression | Self::GeneratorFunction | Self::ArrowFunction)
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" | "html_comment" => Role::Comment,
        "string" => Role::Text,
        "template_string" | "regex" | "jsx_text" => Role::Verbatim,
        "number" => Role::Number,
        "object_type" | "interface_body" => Role::Members,
        "union_type" | "intersection_type" => Role::Choice,
        "type_arguments" | "type_parameters" => Role::Angles,
        "arrow_function" => Role::Arrow,
        "property_signature" | "method_signature" | "pair" => Role::Named,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    locals::enter(walk, node, kind);
    match kind {
        Kind::FunctionDeclaration | Kind::GeneratorDeclaration => function(walk, node),
        Kind::FunctionSignature => function_signature(walk, node),
        kind if kind.is_function() && !walk.is_claimed(node) => walk.open_anonymous(),
        Kind::MethodDefinition => method(walk, node),
        Kind::MethodSignature | Kind::AbstractMethod => {
            method_signature(walk, node, kind);
            return false;
        }
        Kind::PropertySignature => {
            property_signature(walk, node);
            return false;
        }
        Kind::FieldDefinition | Kind::PublicField => field_definition(walk, node),
        Kind::ClassDeclaration | Kind::AbstractClass => class_declaration(walk, node),
        Kind::Class => drop(walk.is_claimed(node)),
        Kind::Interface => interface(walk, node),
        Kind::TypeAlias => return type_alias(walk, node),
        Kind::Enum => enumeration(walk, node),
        Kind::EnumBody => enum_members(walk, node),
        Kind::Namespace | Kind::Module => namespace(walk, node),
        Kind::Declarator => declarator(walk, node),
        Kind::Pair => pair(walk, node),
        Kind::Assignment => assignment(walk, node),
        Kind::AugmentedAssignment => locals::filled(walk, node),
        Kind::Call => call(walk, node),
        Kind::New => new(walk, node),
        Kind::JsxOpening | Kind::JsxSelfClosing => element(walk, node),
        Kind::Comment => doc_imports::imports(walk, node),
        Kind::StaticBlock => walk.open_for_owner(),
        Kind::Decorator => decorator(walk, node),
        Kind::Import => return modules::import(walk, node),
        Kind::Export => modules::export(walk, node),
        Kind::TypeAnnotation | Kind::TypeArguments | Kind::TypeParameters | Kind::Implements => return false,
        Kind::ObjectType => return Kind::above(walk, 0) == Some(Kind::TypeAlias),
        _ => {}
    }
    true
}

// Functions: their signatures, parameters and bodies.

/// A signature of one function-like node.
fn signature(walk: &mut Walk<'_>, node: Node<'_>, head: &Head) -> Option<Result<Signature, Broken>> {
    let parts = [Field::TypeParameters, Field::Parameters, Field::Parameter, Field::ReturnType]
        .map(|field| walk.field(node, field as u8));
    let length = parts.iter().flatten().map(|part| part.byte_range().len()).sum();
    let [type_parameters, parameters, parameter, return_type] = parts;
    walk.sign(length, |scribe| {
        for (said, word) in [
            (head.optional, "?"),
            (head.get, "get "),
            (head.set, "set "),
            (head.is_async, "async "),
            (head.generator, "*"),
        ] {
            if said {
                scribe.word(word);
            }
        }
        if let Some(part) = type_parameters {
            scribe.node(part);
        }
        if let Some(part) = parameters {
            scribe.node(part);
        }
        if let Some(part) = parameter {
            scribe.word("(").node(part).word(")");
        }
        if let Some(part) = return_type {
            scribe.node(part);
        }
    })
}

fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    let head = Head::of(walk, node);
    let signature = signature(walk, node, &head);
    // Only `export default function () {}` has no name.
    let name = walk.field(node, Field::Name as u8).map_or("default".into(), |name| walk.text(name));
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Function, node.byte_range()) });
    given::record(walk, at, node);
    walk.open(at);
}

fn function_signature(walk: &mut Walk<'_>, node: Node<'_>) {
    let head = Head::of(walk, node);
    let signature = signature(walk, node, &head);
    let Some(name) = walk.field(node, Field::Name as u8).map(|name| walk.text(name)) else { return };
    let declared = is_ambient(walk);
    let found =
        Found { signature, overload: true, declared, ..Found::new(&name, Sort::Function, node.byte_range()) };
    let at = walk.symbol(found);
    given::record(walk, at, node);
    walk.open(at);
}

pub(super) fn is_ambient(walk: &Walk<'_>) -> bool {
    (0..8).any(|levels| Kind::above(walk, levels) == Some(Kind::Ambient))
}

fn method(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8).and_then(|name| property_name(walk, name)) else {
        return;
    };
    let head = Head::of(walk, node);
    let signature = signature(walk, node, &head);
    let sort = head.sort(&name, Kind::above(walk, 0) == Some(Kind::ClassBody));
    // A property is a value of the type that its function gives back.
    let result = if head.get { locals::of_result(walk, node) } else { None };
    let (typed, seen) = (result.is_some(), result.unwrap_or(Seen::Unknown));
    let at = walk.symbol(Found { signature, seen, typed, ..Found::new(&name, sort, node.byte_range()) });
    given::record(walk, at, node);
    walk.open(at);
}

fn method_signature(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = walk.field(node, Field::Name as u8).and_then(|name| property_name(walk, name)) else {
        return;
    };
    let head = Head::of(walk, node);
    let signature = signature(walk, node, &head);
    let in_class = Kind::above(walk, 0) == Some(Kind::ClassBody);
    let sort = head.sort(&name, in_class);
    let declared = !in_class || kind == Kind::AbstractMethod || is_ambient(walk);
    let overload = !head.get && !head.set;
    let at =
        walk.symbol(Found { signature, overload, declared, ..Found::new(&name, sort, node.byte_range()) });
    given::record(walk, at, node);
}

/// The type that is declared for a name, without its colon.
fn declared_type(walk: &mut Walk<'_>, node: Node<'_>) -> Option<Result<Signature, Broken>> {
    let annotation = walk.field(node, Field::Type as u8)?;
    let last = u32::try_from(annotation.named_child_count()).ok()?.checked_sub(1)?;
    let declared = annotation.named_child(last)?;
    walk.sign(declared.byte_range().len(), |scribe| {
        scribe.node(declared);
    })
}

fn property_signature(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8).and_then(|name| property_name(walk, name)) else {
        return;
    };
    let signature = declared_type(walk, node);
    let (seen, _) = locals::of_named(walk, node, None);
    let found =
        Found { signature, declared: true, seen, ..Found::new(&name, Sort::Field, node.byte_range()) };
    walk.symbol(Found { typed: true, ..found });
}

// Names for values: constants, fields and properties.

/// A name with a value: a constant, a field, a property. The name decides how the value counts.
struct Named<'n> {
    name: &'n str,
    /// The whole definition, with name and value.
    node: Node<'n>,
    value: Option<Node<'n>>,
    /// The kind of symbol if the value is a function.
    as_function: Sort,
    /// The kind of symbol otherwise; `None` if there is none then.
    otherwise: Option<Sort>,
}

impl Named<'_> {
    fn record(&self, walk: &mut Walk<'_>) {
        let value = self.value.map(|value| unwrapped(walk, value));
        let kind = value.and_then(|value| Kind::at(walk, value));
        let declared_type = declared_type(walk, self.node);
        match (value, kind) {
            (Some(value), Some(kind)) if kind.is_function() => {
                let head = Head::of(walk, value);
                let signature = declared_type.or_else(|| signature(walk, value, &head));
                let at = walk.symbol(Found {
                    signature,
                    ..Found::new(self.name, self.as_function, self.node.byte_range())
                });
                inner_name(walk, value, self.name, at);
                given::record(walk, at, value);
                walk.claim(value);
                walk.open(at);
            }
            (Some(value), Some(Kind::Class)) => {
                let at = class(walk, value, self.node, self.name);
                inner_name(walk, value, self.name, at);
                walk.claim(value);
                walk.open(at);
            }
            _ => {
                let Some(sort) = self.otherwise else { return };
                let wrapped = value.and_then(|value| wrapped_function(walk, value));
                let signature = declared_type.or_else(|| {
                    let head = Head::of(walk, wrapped?);
                    signature(walk, wrapped?, &head)
                });
                let (seen, typed) = locals::of_named(walk, self.node, self.value);
                let at = walk.symbol(Found {
                    signature,
                    seen,
                    typed,
                    ..Found::new(self.name, sort, self.node.byte_range())
                });
                if let Some(wrapped) = wrapped {
                    inner_name(walk, wrapped, self.name, at);
                }
                walk.open_value(at);
                if let (Some(value), Some(Kind::Object)) = (value, kind) {
                    walk.open_object(value);
                }
            }
        }
    }
}

/// The name that a function or class has within itself.
fn inner_name(walk: &mut Walk<'_>, value: Node<'_>, outer: &str, at: Option<u32>) {
    if let Some(inner) = walk.field(value, Field::Name as u8) {
        let inner = walk.text(inner);
        if inner != outer {
            walk.alias(&inner, at);
        }
    }
}

fn declarator(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Name as u8) else { return };
    let value = walk.field(node, Field::Value as u8);
    if value.is_some_and(|value| modules::taken_by(walk, name, value)) {
        return;
    }
    let is_named = Kind::at(walk, name) == Some(Kind::Identifier);
    let value = value.map(|it| if is_named { modules::exported_too(walk, name, it) } else { it });
    let outside = walk.scope.functions == 0;
    if !outside {
        locals::variable(walk, node, name, value);
    }
    if Kind::at(walk, name) == Some(Kind::Identifier) {
        let name = walk.text(name);
        let otherwise = outside.then_some(Sort::Variable);
        let before = walk.facts.symbols.len();
        Named { name: &name, node, value, as_function: Sort::Function, otherwise }.record(walk);
        // `let` and `const` are those of all names behind them.
        let at = (walk.facts.symbols.len() > before).then(|| offset(before));
        if let Some(declaration) = walk.above.last().copied() {
            walk.declared_at(declaration.range().start, node.start_byte(), at);
        }
    } else if outside {
        let mut first = None;
        for name in bound_names(walk, name) {
            let text = walk.text(name);
            let at = walk.symbol(Found::new(&text, Sort::Variable, name.byte_range()));
            first = first.or(at);
        }
        walk.open_for_value(first);
    }
}

/// `export default …` and `module.exports = …` of something without a name.
pub(super) fn default_export(walk: &mut Walk<'_>, value: Node<'_>) {
    let otherwise = Some(Sort::Variable);
    Named { name: "default", node: value, value: Some(value), as_function: Sort::Function, otherwise }
        .record(walk);
}

fn field_definition(walk: &mut Walk<'_>, node: Node<'_>) {
    let name = walk.field(node, Field::Name as u8).or_else(|| walk.field(node, Field::Property as u8));
    let Some(name) = name.and_then(|name| property_name(walk, name)) else { return };
    let value = walk.field(node, Field::Value as u8);
    Named { name: &name, node, value, as_function: Sort::Method, otherwise: Some(Sort::Field) }.record(walk);
}

fn pair(walk: &mut Walk<'_>, node: Node<'_>) {
    // In an object without a name, functions are callbacks of the code that writes it.
    if walk.scope.object.is_none() || walk.scope.object != walk.above.last().map(|above| above.id) {
        return;
    }
    let Some(name) = walk.field(node, Field::Key as u8).and_then(|name| property_name(walk, name)) else {
        return;
    };
    let value = walk.field(node, Field::Value as u8);
    Named { name: &name, node, value, as_function: Sort::Method, otherwise: Some(Sort::Field) }.record(walk);
}

/// `f = () => …`, `X.prototype.f = function …`, `module.exports = …`.
fn assignment(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(left), Some(right)) =
        (walk.field(node, Field::Left as u8), walk.field(node, Field::Right as u8))
    else {
        return;
    };
    if walk.is_claimed(node) {
        return;
    }
    let value = Some(right);
    locals::assigned(walk, left, right);
    if Kind::at(walk, left) == Some(Kind::Identifier) {
        let name = walk.text(left);
        Named { name: &name, node, value, as_function: Sort::Function, otherwise: None }.record(walk);
        return;
    }
    let Some(path) = dotted(walk, left) else { return };
    let mut names: Vec<&str> = path.split('.').collect();
    if modules::is_exports(&names) {
        modules::set_exports(walk, node, right);
    } else if let ["module", "exports", name] | ["exports", name] = names[..] {
        modules::export_value(walk, node, name, right);
        // A value that is only passed on, or assigned later, is no symbol.
        let passed = matches!(
            Kind::at(walk, unwrapped(walk, right)),
            Some(Kind::Identifier | Kind::Member | Kind::Assignment | Kind::Unary)
        );
        let otherwise = (walk.scope.functions == 0 && !passed).then_some(Sort::Variable);
        Named { name, node, value, as_function: Sort::Function, otherwise }.record(walk);
    } else {
        if let ([of, "prototype"], Some(Kind::Object)) = (&names[..], Kind::at(walk, unwrapped(walk, right)))
        {
            return classes::members_of(walk, of, unwrapped(walk, right));
        }
        names.retain(|name| *name != "prototype");
        let value = unwrapped(walk, right);
        let is_function = Kind::at(walk, value).is_some_and(Kind::is_function);
        if let ([of, name], true) = (&names[..], is_function) {
            let head = Head::of(walk, value);
            let signature = signature(walk, value, &head);
            let at =
                walk.symbol_of(of, Found { signature, ..Found::new(name, Sort::Method, node.byte_range()) });
            walk.claim(value);
            walk.open(at);
        }
    }
}

// Calls: functions, constructors, tags and elements.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(function) = walk.field(node, Field::Function as u8) else { return };
    if walk.is_claimed(node) || modules::taken(walk, node, function) {
        return;
    }
    if Kind::at(walk, function) == Some(Kind::Super) {
        walk.call(node, "constructor", Receiver::Super, Form::New);
        return;
    }
    let arguments = walk.field(node, Field::Arguments as u8);
    let is_tag = arguments.is_some_and(|arguments| Kind::at(walk, arguments) == Some(Kind::Template));
    let form = match () {
        () if is_tag => Form::Tag,
        () if Kind::above(walk, 0) == Some(Kind::Decorator) => Form::Decorator,
        () => Form::Plain,
    };
    given::arguments(walk, node, function);
    if let Some((name, receiver)) = callee(walk, function) {
        walk.call(node, &name, receiver, form);
    }
}

fn new(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(constructor) = walk.field(node, Field::Constructor as u8) else { return };
    given::arguments(walk, node, constructor);
    if let Some((name, receiver)) = callee(walk, constructor) {
        walk.call(node, &name, receiver, Form::New);
    }
}

fn element(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some((name, receiver)) = walk.field(node, Field::Name as u8).and_then(|name| callee(walk, name))
    else {
        return;
    };
    // `<div>` is the page's own.
    let is_own = receiver == Receiver::None && name.chars().next().is_some_and(char::is_lowercase);
    if !is_own {
        walk.call(node, &name, receiver, Form::Jsx);
    }
}

fn decorator(walk: &mut Walk<'_>, node: Node<'_>) {
    match Kind::above(walk, 0) {
        Some(Kind::ClassBody | Kind::Export) => walk.decorated(node, Default::default()),
        Some(
            Kind::ClassDeclaration
            | Kind::AbstractClass
            | Kind::Class
            | Kind::PublicField
            | Kind::FieldDefinition,
        ) => {
            walk.open_for_owner();
        }
        _ => {}
    }
    let plain = node.named_child(0).filter(|named| Kind::at(walk, *named) != Some(Kind::Call));
    if let Some((name, receiver)) = plain.and_then(|named| callee(walk, named)) {
        walk.call(node, &name, receiver, Form::Decorator);
    }
}
