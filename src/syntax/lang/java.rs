//! Java: the meaning of its grammar's nodes.
//!
//! A symbol's path contains the names of the types around it, without its package: `Store.Entry.get`. The package is in the name
//! under which others can import it. Code in an anonymous class belongs to the method around it.

use tree_sitter::Node;

use super::super::canon::{Role, Scribe};
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Import, ImportForm, Imported, ImportedName, Kind as Sort, Receiver, Signature};
use super::children::child_of;
use super::java_mask::is_of_module;
use super::java_types as types;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Program = "program",
        LineComment = "line_comment",
        BlockComment = "block_comment",
        Package = "package_declaration",
        Import = "import_declaration",
        Asterisk = "asterisk",
        Class = "class_declaration",
        Interface = "interface_declaration",
        Enum = "enum_declaration",
        Record = "record_declaration",
        AnnotationType = "annotation_type_declaration",
        ClassBody = "class_body",
        EnumConstant = "enum_constant",
        FieldDeclaration = "field_declaration",
        ConstantDeclaration = "constant_declaration",
        Method = "method_declaration",
        Element = "annotation_type_element_declaration",
        Constructor = "constructor_declaration",
        CompactConstructor = "compact_constructor_declaration",
        StaticInitializer = "static_initializer",
        Modifiers = "modifiers",
        Throws = "throws",
        Superclass = "superclass",
        Extends = "extends_interfaces",
        Implements = "super_interfaces",
        Permits = "permits",
        TypeList = "type_list",
        TypeParameter = "type_parameter",
        TypeBound = "type_bound",
        Declarator = "variable_declarator",
        Parameters = "formal_parameters",
        Parameter = "formal_parameter",
        SpreadParameter = "spread_parameter",
        InferredParameters = "inferred_parameters",
        Identifier = "identifier",
        ScopedIdentifier = "scoped_identifier",
        TypeIdentifier = "type_identifier",
        ScopedType = "scoped_type_identifier",
        GenericType = "generic_type",
        AnnotatedType = "annotated_type",
        ArrayType = "array_type",
        IntegralType = "integral_type",
        FloatingType = "floating_point_type",
        BooleanType = "boolean_type",
        VoidType = "void_type",
        TypeArguments = "type_arguments",
        Block = "block",
        ConstructorBody = "constructor_body",
        Local = "local_variable_declaration",
        EnhancedFor = "enhanced_for_statement",
        For = "for_statement",
        CatchClause = "catch_clause",
        CatchParameter = "catch_formal_parameter",
        CatchType = "catch_type",
        TryWith = "try_with_resources_statement",
        Resource = "resource",
        SwitchGroup = "switch_block_statement_group",
        SwitchRule = "switch_rule",
        InstanceOf = "instanceof_expression",
        TypePattern = "type_pattern",
        PatternComponent = "record_pattern_component",
        Lambda = "lambda_expression",
        Invocation = "method_invocation",
        Creation = "object_creation_expression",
        ExplicitConstructor = "explicit_constructor_invocation",
        MethodReference = "method_reference",
        FieldAccess = "field_access",
        Parenthesized = "parenthesized_expression",
        Cast = "cast_expression",
        Ternary = "ternary_expression",
        Assignment = "assignment_expression",
        ArrayCreation = "array_creation_expression",
        String = "string_literal",
        Character = "character_literal",
        DecimalInteger = "decimal_integer_literal",
        HexInteger = "hex_integer_literal",
        DecimalFloat = "decimal_floating_point_literal",
        True = "true",
        False = "false",
        Null = "null_literal",
        ClassLiteral = "class_literal",
        This = "this",
        Super = "super",
        Annotation = "annotation",
        Marker = "marker_annotation",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Body = "body",
        Type = "type",
        TypeParameters = "type_parameters",
        Parameters = "parameters",
        Dimensions = "dimensions",
        Value = "value",
        Object = "object",
        Member = "field",
        Constructor = "constructor",
        Right = "right",
        Consequence = "consequence",
        Alternative = "alternative",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        // Annotations and `final` of a parameter are none of its callers' business.
        "line_comment" | "block_comment" | "modifiers" => Role::Comment,
        "string_literal" | "character_literal" => Role::Verbatim,
        "decimal_integer_literal" | "hex_integer_literal" | "decimal_floating_point_literal" => Role::Number,
        "type_arguments" | "type_parameters" => Role::Angles,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Program => package(walk, node),
        Kind::LineComment | Kind::BlockComment => {
            let text = walk.text(node);
            let is_doc = text.starts_with("///") || (text.starts_with("/**") && text.len() > 4);
            walk.attribute(node, is_doc);
            return false;
        }
        Kind::Package => return false,
        Kind::Import => {
            import(walk, node);
            return false;
        }
        Kind::Class | Kind::Interface | Kind::Enum | Kind::Record | Kind::AnnotationType => {
            data(walk, node, kind);
        }
        Kind::EnumConstant => constant(walk, node),
        Kind::FieldDeclaration | Kind::ConstantDeclaration => fields(walk, node),
        Kind::Declarator => types::value_of_declarator(walk, node),
        Kind::Method | Kind::Element | Kind::Constructor | Kind::CompactConstructor => {
            function(walk, node, kind);
        }
        Kind::StaticInitializer => walk.open_for_owner(),
        Kind::Block if Kind::of(walk.kind_above(0)) == Some(Kind::ClassBody) => walk.open_for_owner(),
        Kind::Local
        | Kind::EnhancedFor
        | Kind::CatchParameter
        | Kind::Resource
        | Kind::InstanceOf
        | Kind::TypePattern
        | Kind::PatternComponent => types::bound(walk, node, kind),
        Kind::Lambda => types::lambda(walk, node),
        Kind::Invocation => invocation(walk, node),
        Kind::Creation => creation(walk, node),
        Kind::ExplicitConstructor => other_constructor(walk, node),
        Kind::MethodReference => reference(walk, node),
        // No code is in types.
        Kind::GenericType | Kind::ScopedType | Kind::ArrayType => return false,
        _ => {}
    }
    true
}

/// Whether the class body that many levels up is that of a class without a name.
pub(super) fn is_nameless(walk: &Walk<'_>, levels: usize) -> bool {
    Kind::of(walk.kind_above(levels)) == Some(Kind::Creation)
}

/// Whether the current node is a member of a class without a name.
fn is_in_nameless(walk: &Walk<'_>) -> bool {
    Kind::of(walk.kind_above(0)) == Some(Kind::ClassBody) && is_nameless(walk, 1)
}

fn name_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    walk.field(node, Field::Name as u8).map(|name| walk.text(name).into_owned()).filter(|it| !it.is_empty())
}

// Packages and imports.

/// What the other files of the package define is known without an import.
fn package(walk: &mut Walk<'_>, program: Node<'_>) {
    let all = ImportedName { imported: Imported::Everything, local: None };
    add_import(walk, 0, package_of(walk, program), vec![all]);
}

fn package_of(walk: &Walk<'_>, program: Node<'_>) -> String {
    let declared = child_of(walk, program, &[Kind::Package]);
    let name = declared.and_then(|it| child_of(walk, it, &[Kind::Identifier, Kind::ScopedIdentifier]));
    name.map_or(String::new(), |name| types::without_blanks(&walk.text(name)))
}

fn add_import(walk: &mut Walk<'_>, at: u32, from: String, names: Vec<ImportedName>) {
    let (form, from) = (ImportForm::Static, from.into());
    walk.import(Import { from, form, names, types_only: false, within: None, either: false, at });
}

/// `import a.b.C;`, `import a.b.*;`, `import static a.b.C.f;`, `import static a.b.C.*;`
fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(path) = child_of(walk, node, &[Kind::Identifier, Kind::ScopedIdentifier]) else { return };
    // No file says which packages a module has.
    if walk.text(node).strip_prefix("import").is_some_and(|it| is_of_module(it.as_bytes())) {
        return;
    }
    let path = types::without_blanks(&walk.text(path));
    let at = offset(node.start_byte());
    if child_of(walk, node, &[Kind::Asterisk]).is_some() {
        let all = ImportedName { imported: Imported::Everything, local: None };
        // Of a type its members are taken in, and of a package, which begins with a small letter, its types.
        let is_type = path.rsplit('.').next().is_some_and(|it| it.starts_with(char::is_uppercase));
        return add_import(walk, at, if is_type { format!("static {path}") } else { path }, vec![all]);
    }
    let (from, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let taken = ImportedName { imported: Imported::Name(name.into()), local: Some(name.into()) };
    add_import(walk, at, from.to_owned(), vec![taken]);
}

// Types and their members.

fn data(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let (sort, word) = match kind {
        Kind::Interface => (Sort::Interface, "interface"),
        Kind::AnnotationType => (Sort::Interface, "@interface"),
        Kind::Enum => (Sort::Enum, "enum"),
        Kind::Record => (Sort::Class, "record"),
        _ => (Sort::Class, "class"),
    };
    if walk.scope.owner.is_none() {
        walk.notes.generated |= is_generated(walk, node);
    }
    let above = [Kind::Superclass, Kind::Extends, Kind::Implements, Kind::Permits]
        .map(|kind| child_of(walk, node, &[kind]));
    let [generic, components] =
        [Field::TypeParameters, Field::Parameters].map(|field| walk.field(node, field as u8));
    let asked = match sort {
        Sort::Interface => asked_members(walk, node),
        Sort::Enum => constants(walk, node),
        _ => Vec::new(),
    };
    let between = if sort == Sort::Enum { ", " } else { " " };
    let parts = [generic, components].into_iter().chain(above).chain(asked.iter().copied().map(Some));
    let length = parts.flatten().map(|part| part.byte_range().len()).sum();
    let modifiers = shown_modifiers(walk, node, &["abstract", "static", "sealed", "final"]);
    let signature = walk.sign(length, |scribe| {
        scribe.word(&modifiers).word(word);
        for part in [generic, components].into_iter().flatten() {
            scribe.node(part);
        }
        for part in above.into_iter().flatten() {
            scribe.word(" ").node(part);
        }
        if !asked.is_empty() {
            scribe.word(" {");
            for (nth, member) in asked.iter().enumerate() {
                scribe.word(if nth == 0 { " " } else { between }).node(*member);
            }
            scribe.word(" }");
        }
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    types::type_parameters(walk, node);
    let mut bases: Vec<Box<str>> = Vec::new();
    for part in above.iter().take(3).flatten() {
        bases.extend(types::in_list(walk, *part).into_iter().map(Into::into));
    }
    walk.bases(at, bases);
    walk.open(at);
    if let Some(components) = components {
        self::components(walk, components);
    }
}

/// Whether a type at the top is annotated as what a program has written.
fn is_generated(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let Some(modifiers) = child_of(walk, node, &[Kind::Modifiers]) else { return false };
    let mut cursor = modifiers.walk();
    let names = modifiers.named_children(&mut cursor).filter_map(|it| walk.field(it, Field::Name as u8));
    names.map(|name| walk.text(name)).any(|name| name.rsplit('.').next() == Some("Generated"))
}

/// The methods that an interface asks of those who implement it, and the elements of an annotation.
fn asked_members<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let Some(body) = walk.field(node, Field::Body as u8) else { return Vec::new() };
    let mut cursor = body.walk();
    let is_asked = |it: &Node<'_>| match Kind::at(walk, *it) {
        Some(Kind::Method) => walk.field(*it, Field::Body as u8).is_none(),
        Some(Kind::Element) => true,
        _ => false,
    };
    body.named_children(&mut cursor).filter(is_asked).collect()
}

/// The names of an enumeration's constants.
fn constants<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let Some(body) = walk.field(node, Field::Body as u8) else { return Vec::new() };
    let mut cursor = body.walk();
    let constants =
        body.named_children(&mut cursor).filter(|it| Kind::at(walk, *it) == Some(Kind::EnumConstant));
    constants.filter_map(|it| walk.field(it, Field::Name as u8)).collect()
}

/// The modifiers that make a difference to others, each with a blank behind it, always in the same order.
fn shown_modifiers(walk: &Walk<'_>, node: Node<'_>, shown: &[&str]) -> String {
    let Some(modifiers) = child_of(walk, node, &[Kind::Modifiers]) else { return String::new() };
    let mut cursor = modifiers.walk();
    let there: Vec<Node<'_>> = modifiers.children(&mut cursor).collect();
    let is_there = |word: &&&str| there.iter().any(|it| walk.is_token(*it, word));
    shown.iter().filter(is_there).map(|word| format!("{word} ")).collect()
}

/// What a record is made of: fields that are read by methods of the same names.
fn components(walk: &mut Walk<'_>, list: Node<'_>) {
    let mut cursor = list.walk();
    for component in list.named_children(&mut cursor) {
        let Some((name, typed)) = types::parameter(walk, component) else { continue };
        let text = walk.text(name).into_owned();
        let seen = types::of_type(walk, typed);
        let signature = walk.sign(typed.byte_range().len(), |scribe| {
            scribe.node(typed);
        });
        let found =
            Found { signature, seen, typed: true, ..Found::new(&text, Sort::Field, component.byte_range()) };
        walk.symbol(found);
    }
}

/// A constant of an enumeration, which may have members of its own.
fn constant(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    let of = walk.scope.owner.map(|owner| walk.facts.symbols[owner as usize].name().to_owned());
    let seen = of.map_or(Seen::Unknown, |of| Seen::Of(of.into()));
    walk.attributes_end(node.start_byte());
    let found = Found { seen, typed: true, ..Found::new(&name, Sort::Field, node.byte_range()) };
    let at = walk.symbol(found);
    walk.open(at);
    walk.open_for_owner();
}

/// `T a = …, b;`: the first begins with the declaration, and the last ends with it.
fn fields(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(typed) = walk.field(node, Field::Type as u8) else { return };
    if is_in_nameless(walk) {
        return;
    }
    let modifiers = shown_modifiers(walk, node, &["static"]);
    let mut cursor = node.walk();
    let all: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
    walk.attributes_end(node.start_byte());
    for (nth, declarator) in all.iter().enumerate() {
        let Some(name) = name_of(walk, *declarator) else { continue };
        let start = if nth == 0 { node.start_byte() } else { declarator.start_byte() };
        let end = if nth + 1 == all.len() { node.end_byte() } else { declarator.end_byte() };
        let dimensions = walk.field(*declarator, Field::Dimensions as u8);
        let seen = if dimensions.is_some() { Seen::BuiltIn } else { types::of_type(walk, typed) };
        let signature = walk.sign(typed.byte_range().len(), |scribe| {
            scribe.word(&modifiers).node(typed);
            if let Some(dimensions) = dimensions {
                scribe.node(dimensions);
            }
        });
        let found = Found { signature, seen, typed: true, ..Found::new(&name, Sort::Field, start..end) };
        let at = walk.symbol(found);
        walk.declared_by(node, all[0].start_byte(), at);
        if let Some(at) = at {
            walk.notes.bodies.insert(declarator.id(), at);
        }
    }
}

// Methods and constructors.

fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    if is_in_nameless(walk) {
        walk.open_anonymous();
        return types::parameters(walk, node);
    }
    let (name, sort) = match kind {
        Kind::Constructor | Kind::CompactConstructor => (Some("constructor".to_owned()), Sort::Constructor),
        _ => (name_of(walk, node), Sort::Method),
    };
    let Some(name) = name else { return };
    let typed = walk.field(node, Field::Type as u8);
    let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
    let declared = walk.field(node, Field::Body as u8).is_none()
        && !shown_modifiers(walk, node, &["native"]).contains("native");
    let signature = function_signature(walk, node);
    walk.attributes_end(node.start_byte());
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    types::type_parameters(walk, node);
    types::parameters(walk, node);
    walk.open(at);
}

fn function_signature(walk: &mut Walk<'_>, node: Node<'_>) -> Option<Result<Signature, Broken>> {
    let parts = [Field::TypeParameters, Field::Type, Field::Parameters, Field::Dimensions, Field::Value]
        .map(|field| walk.field(node, field as u8));
    let throws = child_of(walk, node, &[Kind::Throws]);
    let modifiers = shown_modifiers(walk, node, &["static", "abstract"]);
    let length = parts.iter().chain([&throws]).flatten().map(|part| part.byte_range().len()).sum();
    let [generic, typed, parameters, dimensions, default] = parts;
    // The short form of a record's constructor takes what the record says.
    parts.iter().any(Option::is_some).then_some(())?;
    walk.sign(length, |scribe| {
        scribe.word(&modifiers);
        after(scribe, "", generic);
        after(scribe, if generic.is_some() { " " } else { "" }, typed);
        after(scribe, if typed.is_some() && parameters.is_some() { " " } else { "" }, parameters);
        after(scribe, "", dimensions);
        after(scribe, " ", throws);
        after(scribe, " default ", default);
    })
}

fn after(scribe: &mut Scribe<'_>, word: &str, node: Option<Node<'_>>) {
    if let Some(node) = node {
        scribe.word(word).node(node);
    }
}

// Calls.

fn invocation(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = name_of(walk, node) else { return };
    // Behind other statements of a constructor these have the form of a method's call.
    if let "this" | "super" = &*name {
        let receiver = if name == "super" { Receiver::Super } else { Receiver::This };
        return walk.call(node, "constructor", receiver, Form::New);
    }
    let receiver = match walk.field(node, Field::Object as u8) {
        None => Receiver::None,
        Some(object) => types::receiver(walk, object, &name),
    };
    walk.call(node, &name, receiver, Form::Plain);
}

/// `new Store()`, `new a.b.Store()`, `new Store() { … }`.
fn creation(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(body) = child_of(walk, node, &[Kind::ClassBody]) {
        types::nameless_body(walk, node, body);
    }
    let path = walk.field(node, Field::Type as u8).and_then(|typed| types::path_of(walk, typed));
    let Some(path) = path else { return };
    let (receiver, name) = match path.rsplit_once('.') {
        Some((before, name)) => (Receiver::Path(before.into()), name),
        None => (Receiver::None, &*path),
    };
    walk.call(node, name, receiver, Form::New);
}

/// `this(…)` and `super(…)` as the first statement of a constructor.
fn other_constructor(walk: &mut Walk<'_>, node: Node<'_>) {
    let which = walk.field(node, Field::Constructor as u8).and_then(|it| Kind::at(walk, it));
    let receiver = if which == Some(Kind::Super) { Receiver::Super } else { Receiver::This };
    walk.call(node, "constructor", receiver, Form::New);
}

/// `Store::open`, `this::find`, `Store::new`: that it will be called is as good as a call.
fn reference(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(of), Some(last)) = (node.named_child(0), node.child(node.child_count().saturating_sub(1)))
    else {
        return;
    };
    if walk.is_token(last, "new") {
        if let Some(path) = types::path_of(walk, of) {
            walk.call(node, &path, Receiver::None, Form::New);
        }
    } else if Kind::at(walk, last) == Some(Kind::Identifier) {
        let name = walk.text(last).into_owned();
        let receiver = match types::path_of(walk, of).filter(|_| Kind::at(walk, of) != Some(Kind::Identifier))
        {
            Some(path) => Receiver::Path(path.into()),
            None => types::receiver(walk, of, &name),
        };
        walk.call(node, &name, receiver, Form::Plain);
    }
}

/// Others know what is at the top by its package and its name.
fn finish(walk: &mut Walk<'_>) {
    if walk.leave_out_generated() {
        return;
    }
    walk.mark_exported(|_| true);
    let package = walk.facts.imports.first().map_or(String::new(), |own| own.from.to_string());
    walk.export_by_full_name(&package);
}
