//! The nodes and fields of the grammars of C and C++ that this module uses.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::walk::Walk;
use super::c::{enter, finish};
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes.
    enum Kind {
        Comment = "comment",
        Include = "preproc_include",
        Define = "preproc_def",
        DefineFunction = "preproc_function_def",
        IfDef = "preproc_ifdef",
        Using = "using_declaration",
        Namespace = "namespace_definition",
        NamespaceAlias = "namespace_alias_definition",
        Linkage = "linkage_specification",
        Template = "template_declaration",
        TemplateInstantiation = "template_instantiation",
        Friend = "friend_declaration",
        AccessSpecifier = "access_specifier",
        Class = "class_specifier",
        Struct = "struct_specifier",
        Union = "union_specifier",
        Enum = "enum_specifier",
        Enumerator = "enumerator",
        BaseClause = "base_class_clause",
        Typedef = "type_definition",
        Alias = "alias_declaration",
        Concept = "concept_definition",
        Function = "function_definition",
        Declaration = "declaration",
        FieldDeclaration = "field_declaration",
        FunctionDeclarator = "function_declarator",
        AbstractFunction = "abstract_function_declarator",
        PointerDeclarator = "pointer_declarator",
        ReferenceDeclarator = "reference_declarator",
        ArrayDeclarator = "array_declarator",
        ParenthesizedDeclarator = "parenthesized_declarator",
        AttributedDeclarator = "attributed_declarator",
        InitDeclarator = "init_declarator",
        StructuredBinding = "structured_binding_declarator",
        VariadicDeclarator = "variadic_declarator",
        OperatorCast = "operator_cast",
        Storage = "storage_class_specifier",
        Qualifier = "type_qualifier",
        Virtual = "virtual",
        VirtualSpecifier = "virtual_specifier",
        Attribute = "attribute_specifier",
        AttributeDeclaration = "attribute_declaration",
        DeleteClause = "delete_method_clause",
        TrailingReturn = "trailing_return_type",
        TypeDescriptor = "type_descriptor",
        TemplateParameters = "template_parameter_list",
        Parameter = "parameter_declaration",
        OptionalParameter = "optional_parameter_declaration",
        ParameterList = "parameter_list",
        Identifier = "identifier",
        FieldIdentifier = "field_identifier",
        TypeIdentifier = "type_identifier",
        NamespaceIdentifier = "namespace_identifier",
        Qualified = "qualified_identifier",
        NestedNamespace = "nested_namespace_specifier",
        DependentName = "dependent_name",
        DependentType = "dependent_type",
        Destructor = "destructor_name",
        Operator = "operator_name",
        TemplateType = "template_type",
        TemplateFunction = "template_function",
        TemplateMethod = "template_method",
        TemplateArguments = "template_argument_list",
        PrimitiveType = "primitive_type",
        SizedType = "sized_type_specifier",
        Placeholder = "placeholder_type_specifier",
        Call = "call_expression",
        FieldInitializer = "field_initializer",
        New = "new_expression",
        FieldExpression = "field_expression",
        This = "this",
        Parenthesized = "parenthesized_expression",
        Pointer = "pointer_expression",
        Subscript = "subscript_expression",
        Cast = "cast_expression",
        Argument = "argument_list",
        InitializerList = "initializer_list",
        CompoundLiteral = "compound_literal_expression",
        Lambda = "lambda_expression",
        RangeLoop = "for_range_loop",
        Catch = "catch_clause",
        Block = "compound_statement",
        For = "for_statement",
        If = "if_statement",
        While = "while_statement",
        Switch = "switch_statement",
        String = "string_literal",
        RawString = "raw_string_literal",
        Char = "char_literal",
        Number = "number_literal",
        True = "true",
        False = "false",
        Null = "null",
    }
}

names! {
    /// The fields.
    enum Field {
        Name = "name",
        Path = "path",
        Scope = "scope",
        Body = "body",
        Type = "type",
        Declarator = "declarator",
        Parameters = "parameters",
        Value = "value",
        Arguments = "arguments",
        Function = "function",
        Argument = "argument",
        Member = "field",
        Operator = "operator",
        Base = "base",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" => Role::Comment,
        "string_literal" | "raw_string_literal" | "char_literal" | "system_lib_string" => Role::Verbatim,
        "number_literal" => Role::Number,
        "template_argument_list" | "template_parameter_list" => Role::Angles,
        // Names of parameters are for those who read, and make no difference to callers.
        "parameter_declaration" | "optional_parameter_declaration" | "variadic_parameter_declaration" => {
            Role::Declares
        }
        "pointer_declarator" | "reference_declarator" | "array_declarator" | "parenthesized_declarator" => {
            Role::Declares
        }
        "variadic_declarator" => Role::Declares,
        // Words that do not concern callers: `override`, `final`, attributes.
        "virtual_specifier" | "attribute_specifier" | "attribute_declaration" => Role::Comment,
        _ => Role::Plain,
    }
}
