//! Rust: the meaning of its grammar's nodes.
//!
//! A method's path begins with the name of its type, wherever the `impl` stands: `Store.get`. If it implements a trait, the
//! trait's name follows, so that two traits with a method of one name are distinguished: `Store.Display.fmt`.

use tree_sitter::Node;

use super::super::canon::{Role, Scribe};
use super::super::locals::Seen;
use super::super::notes::Implementation;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Kind as Sort, Receiver, Signature};
use super::children::child_of;
use super::rust_macros as macros;
use super::rust_modules as modules;
use super::rust_types as types;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect =
    Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish: modules::finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Attribute = "attribute_item",
        InnerAttribute = "inner_attribute_item",
        LineComment = "line_comment",
        BlockComment = "block_comment",
        Function = "function_item",
        Signature = "function_signature_item",
        Struct = "struct_item",
        Union = "union_item",
        Enum = "enum_item",
        Variant = "enum_variant",
        FieldDeclaration = "field_declaration",
        Trait = "trait_item",
        Impl = "impl_item",
        Mod = "mod_item",
        Const = "const_item",
        Static = "static_item",
        TypeItem = "type_item",
        AssociatedType = "associated_type",
        MacroDefinition = "macro_definition",
        MacroInvocation = "macro_invocation",
        MacroRule = "macro_rule",
        TokenTree = "token_tree",
        Identifier = "identifier",
        FieldIdentifier = "field_identifier",
        ShorthandField = "shorthand_field_identifier",
        TypeIdentifier = "type_identifier",
        PrimitiveType = "primitive_type",
        SelfName = "self",
        Super = "super",
        Crate = "crate",
        Scoped = "scoped_identifier",
        ScopedType = "scoped_type_identifier",
        GenericType = "generic_type",
        GenericTurbofish = "generic_type_with_turbofish",
        GenericFunction = "generic_function",
        BracketedType = "bracketed_type",
        QualifiedType = "qualified_type",
        ReferenceType = "reference_type",
        PointerType = "pointer_type",
        ArrayType = "array_type",
        TupleType = "tuple_type",
        FunctionType = "function_type",
        DynamicType = "dynamic_type",
        AbstractType = "abstract_type",
        TypeArguments = "type_arguments",
        TypeParameters = "type_parameters",
        TypeParameter = "type_parameter",
        Visibility = "visibility_modifier",
        Modifiers = "function_modifiers",
        Where = "where_clause",
        Parameter = "parameter",
        SelfParameter = "self_parameter",
        Use = "use_declaration",
        UseList = "use_list",
        ScopedUseList = "scoped_use_list",
        UseAs = "use_as_clause",
        UseWildcard = "use_wildcard",
        ExternCrate = "extern_crate_declaration",
        Call = "call_expression",
        FieldExpression = "field_expression",
        StructExpression = "struct_expression",
        Reference = "reference_expression",
        Unary = "unary_expression",
        Parenthesized = "parenthesized_expression",
        Try = "try_expression",
        Await = "await_expression",
        Cast = "type_cast_expression",
        StringLiteral = "string_literal",
        RawString = "raw_string_literal",
        CharLiteral = "char_literal",
        IntegerLiteral = "integer_literal",
        FloatLiteral = "float_literal",
        BooleanLiteral = "boolean_literal",
        ArrayExpression = "array_expression",
        TupleExpression = "tuple_expression",
        Block = "block",
        Let = "let_declaration",
        LetCondition = "let_condition",
        Closure = "closure_expression",
        For = "for_expression",
        If = "if_expression",
        While = "while_expression",
        Match = "match_expression",
        MatchArm = "match_arm",
        MatchPattern = "match_pattern",
        FieldPattern = "field_pattern",
        OrderedFields = "ordered_field_declaration_list",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Body = "body",
        Parameters = "parameters",
        ReturnType = "return_type",
        TypeParameters = "type_parameters",
        TypeArguments = "type_arguments",
        Type = "type",
        Trait = "trait",
        Bounds = "bounds",
        Path = "path",
        List = "list",
        Alias = "alias",
        Argument = "argument",
        Function = "function",
        Arguments = "arguments",
        Value = "value",
        Member = "field",
        Pattern = "pattern",
        Macro = "macro",
        Left = "left",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "line_comment" | "block_comment" => Role::Comment,
        "string_literal" | "raw_string_literal" | "char_literal" => Role::Verbatim,
        "integer_literal" | "float_literal" => Role::Number,
        "type_arguments" | "type_parameters" => Role::Angles,
        "tuple_type" | "tuple_expression" | "tuple_pattern" => Role::Tuple,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Attribute => {
            walk.attribute(node, true);
            return false;
        }
        Kind::LineComment | Kind::BlockComment => {
            let text = walk.text(node);
            let is_doc = text.starts_with("///") || (text.starts_with("/**") && text.len() > 4);
            walk.attribute(node, is_doc);
            return false;
        }
        Kind::InnerAttribute | Kind::Visibility => return false,
        Kind::Use => {
            modules::import(walk, node);
            return false;
        }
        Kind::ExternCrate => modules::extern_crate(walk, node),
        Kind::Mod => module(walk, node),
        Kind::Function | Kind::Signature => function(walk, node, kind),
        Kind::Struct | Kind::Union | Kind::Enum => data(walk, node, kind),
        Kind::Variant | Kind::FieldDeclaration => member(walk, node),
        Kind::OrderedFields => {
            numbered_members(walk, node);
            return false;
        }
        Kind::Trait => of_trait(walk, node),
        Kind::Impl => implementation(walk, node),
        Kind::Const | Kind::Static => constant(walk, node),
        Kind::TypeItem | Kind::AssociatedType => type_alias(walk, node, kind),
        Kind::MacroDefinition => macro_definition(walk, node),
        Kind::MacroRule => return false,
        Kind::MacroInvocation => macros::invocation(walk, node),
        Kind::TokenTree => macros::tokens(walk, node),
        Kind::Identifier => macros::named(walk, node),
        Kind::Call => call(walk, node),
        // No code is in types.
        Kind::GenericType | Kind::ReferenceType | Kind::TupleType | Kind::FunctionType => return false,
        Kind::DynamicType | Kind::AbstractType | Kind::PointerType | Kind::ScopedType => return false,
        Kind::Match => types::compared(walk, node),
        Kind::Let | Kind::LetCondition | Kind::Closure | Kind::For | Kind::MatchArm => {
            types::bound(walk, node, kind);
        }
        _ => {}
    }
    true
}

/// The name of an item, without the mark of a raw one.
pub(super) fn name_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let name = walk.field(node, Field::Name as u8)?;
    let text = walk.text(name);
    Some(text.strip_prefix("r#").unwrap_or(&text).to_owned())
}

// Items with code: functions and macros.

fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let is_method = matches!(walk.owner_kind(), Some(Sort::Class | Sort::Interface));
    let sort = if is_method { Sort::Method } else { Sort::Function };
    types::type_parameters(walk, node);
    let signature = function_signature(walk, node);
    let result = walk.field(node, Field::ReturnType as u8);
    let seen = result.map_or(Seen::Unknown, |result| types::of_result(walk, result));
    let declared = kind == Kind::Signature;
    walk.attributes_end(node.start_byte());
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    types::parameters(walk, node);
    walk.open(at);
}

fn function_signature(walk: &mut Walk<'_>, node: Node<'_>) -> Option<Result<Signature, Broken>> {
    let modifiers = child_of(walk, node, &[Kind::Modifiers]);
    let clause = child_of(walk, node, &[Kind::Where]);
    let [generic, parameters, result] = [Field::TypeParameters, Field::Parameters, Field::ReturnType]
        .map(|field| walk.field(node, field as u8));
    let parts = [modifiers, generic, parameters, result, clause];
    let clauses = clauses(clause);
    walk.sign(length(&parts), |scribe| {
        if let Some(modifiers) = modifiers {
            scribe.node(modifiers).word(" ");
        }
        for part in [generic, parameters].into_iter().flatten() {
            scribe.node(part);
        }
        after(scribe, " -> ", result);
        bounds_of(scribe, &clauses);
    })
}

fn length(parts: &[Option<Node<'_>>]) -> usize {
    parts.iter().flatten().map(|part| part.byte_range().len()).sum()
}

/// The bounds in a `where`, with the same commas however they are written.
fn bounds_of(scribe: &mut Scribe<'_>, clauses: &[Node<'_>]) {
    for (at, bound) in clauses.iter().enumerate() {
        scribe.word(if at == 0 { " where " } else { ", " }).node(*bound);
    }
}

fn clauses<'t>(clause: Option<Node<'t>>) -> Vec<Node<'t>> {
    let Some(clause) = clause else { return Vec::new() };
    let mut cursor = clause.walk();
    let is_bound = |it: &Node<'_>| !it.kind().ends_with("comment");
    clause.named_children(&mut cursor).filter(is_bound).collect()
}

fn after(scribe: &mut Scribe<'_>, word: &str, node: Option<Node<'_>>) {
    if let Some(node) = node {
        scribe.word(word).node(node);
    }
}

fn macro_definition(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let mut cursor = node.walk();
    let rules = node.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) == Some(Kind::MacroRule));
    let patterns: Vec<Node<'_>> = rules.filter_map(|it| walk.field(it, Field::Left as u8)).collect();
    let length = patterns.iter().map(|it| it.byte_range().len()).sum();
    let signature = walk.sign(length, |scribe| {
        scribe.word("macro");
        patterns.iter().for_each(|it| after(scribe, " ", Some(*it)));
    });
    walk.attributes_end(node.start_byte());
    walk.symbol(Found { signature, ..Found::new(&name, Sort::Function, node.byte_range()) });
}

// Types, their members and what is implemented for them.

fn data(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let (sort, word) = match kind {
        Kind::Enum => (Sort::Enum, "enum"),
        Kind::Union => (Sort::Class, "union"),
        _ => (Sort::Class, "struct"),
    };
    types::type_parameters(walk, node);
    let generic = walk.field(node, Field::TypeParameters as u8);
    let (body, clause) = (walk.field(node, Field::Body as u8), child_of(walk, node, &[Kind::Where]));
    // Fields that only the type's own module sees do not concern callers.
    let shown = body.map(|body| shown_fields(walk, body));
    let clauses = clauses(clause);
    let signature = walk.sign(length(&[generic, body, clause]), |scribe| {
        scribe.word(word);
        if let Some(generic) = generic {
            scribe.node(generic);
        }
        match (body, shown) {
            (Some(_), Some(Some((fields, all)))) => {
                scribe.word(" { ");
                for field in fields {
                    scribe.node(field).word(", ");
                }
                scribe.word(if all { "}" } else { ".. }" });
            }
            (body, _) => after(scribe, " ", body),
        }
        bounds_of(scribe, &clauses);
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    walk.open(at);
}

/// The fields with names that others can see, and whether these are all; none of other bodies.
fn shown_fields<'t>(walk: &Walk<'_>, body: Node<'t>) -> Option<(Vec<Node<'t>>, bool)> {
    let mut cursor = body.walk();
    let is_field = |it: &Node<'_>| Kind::at(walk, *it) == Some(Kind::FieldDeclaration);
    let fields: Vec<Node<'t>> = body.named_children(&mut cursor).filter(is_field).collect();
    if fields.is_empty() {
        return None;
    }
    let all = fields.len();
    let shown: Vec<Node<'t>> =
        fields.into_iter().filter(|it| child_of(walk, *it, &[Kind::Visibility]).is_some()).collect();
    let is_all = shown.len() == all;
    Some((shown, is_all))
}

/// A field, or a case of an enumeration.
fn member(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let typed = walk.field(node, Field::Type as u8);
    let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
    let signature = match typed {
        Some(typed) => walk.sign(typed.byte_range().len(), |scribe| {
            scribe.word(": ").node(typed);
        }),
        None => None,
    };
    walk.attributes_end(node.start_byte());
    let found = Found {
        signature,
        seen,
        typed: typed.is_some(),
        ..Found::new(&name, Sort::Field, node.byte_range())
    };
    let at = walk.symbol(found);
    walk.open(at);
}

/// The fields of `struct Keeper(Store, u32)`, by their numbers; those of a case of an enumeration are known by patterns alone.
fn numbered_members(walk: &mut Walk<'_>, fields: Node<'_>) {
    if walk.owner_kind() != Some(Sort::Class) {
        return;
    }
    let mut cursor = fields.walk();
    let (mut number, mut start) = (0_usize, None);
    for part in fields.named_children(&mut cursor) {
        // Attributes, a comment and the visibility of a field stand before its type.
        let from = *start.get_or_insert(part.start_byte());
        let is_before = matches!(
            Kind::at(walk, part),
            Some(Kind::Attribute | Kind::LineComment | Kind::BlockComment | Kind::Visibility)
        );
        if is_before {
            continue;
        }
        let seen = types::of_type(walk, part);
        let signature = walk.sign(part.byte_range().len(), |scribe| {
            scribe.word(": ").node(part);
        });
        let name = number.to_string();
        let range = from..part.end_byte();
        walk.symbol(Found { signature, seen, typed: true, ..Found::new(&name, Sort::Field, range) });
        (number, start) = (number + 1, None);
    }
}

fn of_trait(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    types::type_parameters(walk, node);
    let [generic, bounds, body] =
        [Field::TypeParameters, Field::Bounds, Field::Body].map(|field| walk.field(node, field as u8));
    let clause = child_of(walk, node, &[Kind::Where]);
    let is_part = |it: &Node<'_>| {
        matches!(
            Kind::at(walk, *it),
            Some(Kind::Signature | Kind::Function | Kind::AssociatedType | Kind::Const)
        )
    };
    let parts: Vec<Node<'_>> = body.map_or(Vec::new(), |body| {
        let mut cursor = body.walk();
        body.named_children(&mut cursor).filter(is_part).collect()
    });
    // Of what the trait has the code of, the code is none of the contract.
    let parts: Vec<(Node<'_>, Option<Node<'_>>)> =
        parts.into_iter().map(|it| (it, walk.field(it, Field::Body as u8))).collect();
    let clauses = clauses(clause);
    let signature = walk.sign(length(&[generic, bounds, body, clause]), |scribe| {
        scribe.word("trait");
        for part in [generic, bounds].into_iter().flatten() {
            scribe.node(part);
        }
        bounds_of(scribe, &clauses);
        for (part, code) in &parts {
            match code {
                Some(code) => provided(scribe, *part, *code),
                None => after(scribe, " ", Some(*part)),
            }
        }
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Interface, node.byte_range()) });
    let bases = bounds.map_or(Vec::new(), |bounds| {
        let mut cursor = bounds.walk();
        let all: Vec<Node<'_>> = bounds.named_children(&mut cursor).collect();
        all.into_iter().filter_map(|it| types::path_of(walk, it)).map(Into::into).collect()
    });
    walk.bases(at, bases);
    if let Some(at) = at {
        walk.notes.stands_for.insert(at, name.into());
    }
    walk.open(at);
}

/// A function of a trait that has its code there: all but the code.
fn provided(scribe: &mut Scribe<'_>, function: Node<'_>, code: Node<'_>) {
    let mut cursor = function.walk();
    for child in function.children(&mut cursor).filter(|it| *it != code) {
        // Brackets stand close to what is before them.
        let is_close = matches!(child.kind(), "parameters" | "type_parameters");
        scribe.remark(if is_close { "" } else { " " }).node(child);
    }
    scribe.word(" { … }");
}

/// An `impl`: more of its type, or what a trait asks of the type.
fn implementation(walk: &mut Walk<'_>, node: Node<'_>) {
    types::type_parameters(walk, node);
    let Some(of) = walk.field(node, Field::Type as u8) else { return };
    let named = types::implemented(walk, of);
    let implemented = walk.field(node, Field::Trait as u8);
    let before = walk.scope.owner.map(|owner| &*walk.facts.symbols[owner as usize].path);
    let of_type = before.map_or_else(|| named.clone(), |before| format!("{before}.{named}"));
    walk.attributes_end(node.start_byte());
    let (path, name, bases) = match implemented {
        Some(it) => {
            let name: String = types::shown(walk, it);
            let base = types::path_of(walk, it);
            (format!("{of_type}.{name}"), name, base.into_iter().map(Into::into).collect())
        }
        None => (of_type.clone(), named.clone(), Vec::new()),
    };
    let at = walk.symbol_at(path, Found::new(&name, Sort::Class, node.byte_range()));
    walk.bases(at, bases);
    if let Some(at) = at {
        walk.notes.stands_for.insert(at, named.into());
        let path = types::path_of(walk, of).map(Into::into);
        walk.notes.implementations.push(Implementation { at, of_type: of_type.into(), path });
    }
    walk.open(at);
}

// Modules, constants and names for types.

fn module(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    walk.attributes_end(node.start_byte());
    if walk.field(node, Field::Body as u8).is_none() {
        modules::file_of(walk, node, &name);
        return;
    }
    let at = walk.symbol(Found::new(&name, Sort::Namespace, node.byte_range()));
    walk.open(at);
}

fn constant(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    walk.attributes_end(node.start_byte());
    // Local values of functions are no part of a contract; local functions and types are.
    if walk.scope.functions > 0 || name == "_" {
        return;
    }
    let in_type = matches!(walk.owner_kind(), Some(Sort::Class | Sort::Interface));
    let sort = if in_type { Sort::Field } else { Sort::Variable };
    let typed = walk.field(node, Field::Type as u8);
    let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
    let signature = typed.and_then(|typed| {
        walk.sign(typed.byte_range().len(), |scribe| {
            scribe.word(": ").node(typed);
        })
    });
    let found = Found { signature, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    walk.open(at);
    // The constant is the caller of the functions in its value.
    walk.open_for_owner();
}

fn type_alias(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let [generic, bounds, typed] =
        [Field::TypeParameters, Field::Bounds, Field::Type].map(|field| walk.field(node, field as u8));
    let signature = walk.sign(length(&[generic, bounds, typed]), |scribe| {
        scribe.word("type");
        for part in [generic, bounds].into_iter().flatten() {
            scribe.node(part);
        }
        after(scribe, " = ", typed);
    });
    walk.attributes_end(node.start_byte());
    let declared = kind == Kind::AssociatedType;
    // A name for another type has the members of that one.
    let base = typed.and_then(|typed| types::path_of(walk, typed)).map(Into::into);
    let at =
        walk.symbol(Found { signature, declared, ..Found::new(&name, Sort::TypeAlias, node.byte_range()) });
    walk.bases(at, base.into_iter().collect());
}

// Calls.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(mut called) = walk.field(node, Field::Function as u8) else { return };
    if Kind::at(walk, called) == Some(Kind::GenericFunction)
        && let Some(inner) = walk.field(called, Field::Function as u8)
    {
        called = inner;
    }
    match Kind::at(walk, called) {
        Some(Kind::Identifier) => {
            let name = walk.text(called);
            // The cases of options and results are called all the time, and nothing of anyone's runs.
            if !matches!(&*name, "Some" | "Ok" | "Err") {
                walk.call(node, name.strip_prefix("r#").unwrap_or(&name), Receiver::None, Form::Plain);
            }
        }
        Some(Kind::Scoped) => {
            let Some(path) = types::path_of(walk, called) else { return };
            along(walk, node, &path);
        }
        Some(Kind::FieldExpression) => {
            let Some(field) = walk.field(called, Field::Member as u8) else { return };
            let Some(value) = walk.field(called, Field::Value as u8) else { return };
            let receiver = types::receiver(walk, value);
            let name = walk.text(field);
            walk.call(node, &name, receiver, Form::Plain);
        }
        _ => {}
    }
}

/// `a::b::f()`, by its names with dots between them.
pub(super) fn along(walk: &mut Walk<'_>, at: Node<'_>, path: &str) {
    let Some((before, name)) = path.rsplit_once('.') else {
        return walk.call(at, path, Receiver::None, Form::Plain);
    };
    let by_bound = types::receiver_by_bound(walk, at, before);
    let receiver = by_bound.unwrap_or_else(|| modules::receiver(walk, before));
    walk.call(at, name, receiver, Form::Plain);
}
