//! Kotlin: the meaning of its grammar's nodes.
//!
//! A symbol's path contains the names of the types around it, without its package. A top-level function that extends a type has the
//! type's name before its own, `Store.total`, though it stands apart from the type.

use tree_sitter::Node;

use super::super::canon::{Role, Scribe};
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Form, Import, ImportForm, Imported, ImportedName, Kind as Sort, Receiver, Signature};
use super::children::{child_of, children_of};
use super::kotlin_contexts as contexts;
use super::kotlin_types as types;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Source = "source_file",
        LineComment = "line_comment",
        BlockComment = "block_comment",
        Package = "package_header",
        Import = "import",
        Qualified = "qualified_identifier",
        Identifier = "identifier",
        FileAnnotation = "file_annotation",
        Modifiers = "modifiers",
        ClassModifier = "class_modifier",
        Class = "class_declaration",
        Object = "object_declaration",
        Companion = "companion_object",
        ObjectLiteral = "object_literal",
        ClassBody = "class_body",
        EnumBody = "enum_class_body",
        EnumEntry = "enum_entry",
        TypeAlias = "type_alias",
        PrimaryConstructor = "primary_constructor",
        ClassParameters = "class_parameters",
        ClassParameter = "class_parameter",
        SecondaryConstructor = "secondary_constructor",
        DelegationCall = "constructor_delegation_call",
        Specifiers = "delegation_specifiers",
        Specifier = "delegation_specifier",
        ConstructorInvocation = "constructor_invocation",
        ExplicitDelegation = "explicit_delegation",
        Initializer = "anonymous_initializer",
        Function = "function_declaration",
        AnonymousFunction = "anonymous_function",
        FunctionBody = "function_body",
        Property = "property_declaration",
        Variable = "variable_declaration",
        MultiVariable = "multi_variable_declaration",
        Delegate = "property_delegate",
        Getter = "getter",
        Setter = "setter",
        TypeParameters = "type_parameters",
        TypeParameter = "type_parameter",
        TypeConstraints = "type_constraints",
        TypeConstraint = "type_constraint",
        Parameters = "function_value_parameters",
        Parameter = "parameter",
        UserType = "user_type",
        NullableType = "nullable_type",
        NonNullableType = "non_nullable_type",
        ParenthesizedType = "parenthesized_type",
        FunctionType = "function_type",
        TypeArguments = "type_arguments",
        Block = "block",
        Lambda = "lambda_literal",
        AnnotatedLambda = "annotated_lambda",
        LambdaParameters = "lambda_parameters",
        For = "for_statement",
        Catch = "catch_block",
        If = "if_expression",
        When = "when_expression",
        WhenSubject = "when_subject",
        WhenEntry = "when_entry",
        TypeTest = "type_test",
        Is = "is_expression",
        Call = "call_expression",
        Infix = "infix_expression",
        Navigation = "navigation_expression",
        Reference = "callable_reference",
        This = "this_expression",
        Super = "super_expression",
        Parenthesized = "parenthesized_expression",
        As = "as_expression",
        Unary = "unary_expression",
        Annotation = "annotation",
        String = "string_literal",
        MultilineString = "multiline_string_literal",
        Character = "character_literal",
        Number = "number_literal",
        Float = "float_literal",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Type = "type",
        Left = "left",
        Right = "right",
        Condition = "condition",
        Argument = "argument",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        // Annotations and visibility are none of the callers' business.
        "line_comment" | "block_comment" | "annotation" => Role::Comment,
        // The other modifiers, such as `vararg` and `suspend`, concern callers.
        "visibility_modifier" | "member_modifier" | "inheritance_modifier" | "platform_modifier" => {
            Role::Comment
        }
        "string_literal" | "multiline_string_literal" | "character_literal" => Role::Verbatim,
        "number_literal" | "float_literal" => Role::Number,
        "type_arguments" | "type_parameters" => Role::Angles,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Source => package(walk, node),
        Kind::LineComment | Kind::BlockComment => {
            let text = walk.text(node);
            walk.attribute(node, text.starts_with("/**") && text.len() > 4);
            return false;
        }
        Kind::Package | Kind::FileAnnotation | Kind::Modifiers => return false,
        Kind::Import => {
            import(walk, node);
            return false;
        }
        Kind::Class | Kind::Object | Kind::Companion => data(walk, node, kind),
        Kind::ObjectLiteral => types::nameless(walk, node),
        Kind::EnumEntry => entry(walk, node),
        Kind::TypeAlias => alias(walk, node),
        Kind::SecondaryConstructor => constructor(walk, node),
        Kind::DelegationCall => other_constructor(walk, node),
        Kind::ConstructorInvocation => invoked(walk, node),
        Kind::Initializer | Kind::ClassParameters | Kind::ExplicitDelegation => walk.open_for_owner(),
        Kind::Function => function(walk, node),
        Kind::AnonymousFunction => {
            walk.open_anonymous();
            types::parameters(walk, node);
        }
        Kind::Property => property(walk, node),
        Kind::Lambda => types::lambda(walk, node),
        Kind::For | Kind::Catch | Kind::WhenSubject | Kind::WhenEntry | Kind::If => {
            types::bound(walk, node, kind)
        }
        Kind::Call => call(walk, node),
        Kind::Infix => infix(walk, node),
        Kind::Reference => reference(walk, node),
        Kind::Navigation if has_token(walk, node, &["::"]) => bound_reference(walk, node),
        // No code is in types.
        Kind::UserType | Kind::NullableType | Kind::FunctionType | Kind::TypeParameters => return false,
        _ => {}
    }
    true
}

fn has_token(walk: &Walk<'_>, node: Node<'_>, words: &[&str]) -> bool {
    let mut cursor = node.walk();
    node.children(&mut cursor).any(|it| words.iter().any(|word| walk.is_token(it, word)))
}

/// Whether the current node is a member of an object without a name.
fn is_in_nameless(walk: &Walk<'_>) -> bool {
    Kind::of(walk.kind_above(0)) == Some(Kind::ClassBody)
        && Kind::of(walk.kind_above(1)) == Some(Kind::ObjectLiteral)
}

// Packages and imports.

/// What the other files of the package define is known without an import.
fn package(walk: &mut Walk<'_>, source: Node<'_>) {
    let named =
        child_of(walk, source, &[Kind::Package]).and_then(|it| child_of(walk, it, &[Kind::Qualified]));
    let name = named.map_or(String::new(), |name| types::plain_text(walk, name));
    add_import(walk, 0, name, ImportedName { imported: Imported::Everything, local: None });
}

fn add_import(walk: &mut Walk<'_>, at: u32, from: String, name: ImportedName) {
    let (form, from) = (ImportForm::Static, from.into());
    walk.import(Import { from, form, names: vec![name], types_only: false, within: None, either: false, at });
}

/// `import a.b.C`, `import a.b.f as g`, `import a.b.*`
fn import(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(path) = child_of(walk, node, &[Kind::Qualified]) else { return };
    let path = types::plain_text(walk, path);
    let at = offset(node.start_byte());
    if walk.text(node).trim_end().ends_with('*') {
        // Of an object its members are taken in, and of a package, which begins with a small letter, all that is in it.
        let is_type = path.rsplit('.').next().is_some_and(|it| it.starts_with(char::is_uppercase));
        let from = if is_type { format!("static {path}") } else { path };
        return add_import(walk, at, from, ImportedName { imported: Imported::Everything, local: None });
    }
    let (from, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let local =
        child_of(walk, node, &[Kind::Identifier]).map_or_else(|| name.to_owned(), |it| types::name(walk, it));
    let taken = ImportedName { imported: Imported::Name(name.into()), local: Some(local.into()) };
    add_import(walk, at, from.to_owned(), taken);
}

// Types and their members.

/// The modifiers that make a difference to others, each with a blank behind it, always in the same order.
fn shown_modifiers(walk: &Walk<'_>, node: Node<'_>, shown: &[&str]) -> String {
    let Some(modifiers) = child_of(walk, node, &[Kind::Modifiers]) else { return String::new() };
    let mut cursor = modifiers.walk();
    let there: Vec<_> = modifiers.named_children(&mut cursor).map(|it| walk.text(it)).collect();
    let is_there = |word: &&&str| there.iter().any(|it| **it == ***word);
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

fn data(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let name = walk.field(node, Field::Name as u8).map(|it| types::name(walk, it));
    let Some(name) = name.or_else(|| (kind == Kind::Companion).then(|| "Companion".to_owned())) else {
        return;
    };
    let is_interface = kind == Kind::Class && has_token(walk, node, &["interface"]);
    let enumeration = child_of(walk, node, &[Kind::EnumBody]);
    let sort = match () {
        () if is_interface => Sort::Interface,
        () if enumeration.is_some() || !shown_modifiers(walk, node, &["enum"]).is_empty() => Sort::Enum,
        () => Sort::Class,
    };
    let word = match kind {
        Kind::Class if is_interface => "interface",
        Kind::Class => "class",
        Kind::Companion => "companion object",
        _ => "object",
    };
    let [generic, primary, bases, constraints] =
        [Kind::TypeParameters, Kind::PrimaryConstructor, Kind::Specifiers, Kind::TypeConstraints]
            .map(|kind| child_of(walk, node, &[kind]));
    // The word `constructor` before the parameters is no part of the contract.
    let parameters = primary.map(|it| child_of(walk, it, &[Kind::ClassParameters]).unwrap_or(it));
    let modifiers = ["abstract", "sealed", "enum", "annotation", "data", "value", "inner"];
    let modifiers = shown_modifiers(walk, node, &modifiers);
    let asked = match enumeration {
        Some(body) => children_of(walk, body, Kind::EnumEntry)
            .into_iter()
            .filter_map(|it| child_of(walk, it, &[Kind::Identifier]))
            .collect(),
        None if is_interface => asked_members(walk, node),
        None => Vec::new(),
    };
    let contexts: Vec<_> = asked.iter().map(|it| contexts::of(walk, *it)).collect();
    let between = if enumeration.is_some() { ", " } else { "; " };
    let all = length(&[generic, primary, bases, constraints])
        + asked.iter().map(|it| it.byte_range().len()).sum::<usize>();
    let signature = walk.sign(all, |scribe| {
        scribe.word(&modifiers).word(word);
        after(scribe, "", generic);
        after(scribe, "", parameters);
        after(scribe, " : ", bases);
        after(scribe, " ", constraints);
        for (nth, (member, context)) in asked.iter().zip(&contexts).enumerate() {
            scribe.word(if nth == 0 { " { " } else { between });
            contexts::write(scribe, context);
            scribe.node(*member);
        }
        scribe.word(if asked.is_empty() { "" } else { " }" });
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    types::type_parameters(walk, node);
    let mut above: Vec<Box<str>> = bases.map_or(Vec::new(), |bases| types::in_list(walk, bases));
    // Members of the companion are known as the class' own.
    let body = child_of(walk, node, &[Kind::ClassBody, Kind::EnumBody]);
    if let (Some(at), Some(companion)) = (at, body.and_then(|it| child_of(walk, it, &[Kind::Companion]))) {
        let name = walk.field(companion, Field::Name as u8).map(|it| types::name(walk, it));
        let path = &walk.facts.symbols[at as usize].path;
        above.push(format!("{path}.{}", name.as_deref().unwrap_or("Companion")).into());
    }
    walk.bases(at, above);
    walk.open(at);
    if let Some(primary) = primary {
        primary_constructor(walk, primary, node);
    }
}

/// What an interface asks of those who implement it.
fn asked_members<'t>(walk: &Walk<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let Some(body) = child_of(walk, node, &[Kind::ClassBody]) else { return Vec::new() };
    let mut cursor = body.walk();
    let is_asked = |it: &Node<'_>| match Kind::at(walk, *it) {
        Some(Kind::Function) => child_of(walk, *it, &[Kind::FunctionBody]).is_none(),
        Some(Kind::Property) => child_of(walk, *it, &[Kind::Getter, Kind::Delegate]).is_none(),
        _ => false,
    };
    body.named_children(&mut cursor).filter(is_asked).collect()
}

/// What a class is made of: properties for all, and names for the code in it.
fn primary_constructor(walk: &mut Walk<'_>, primary: Node<'_>, class: Node<'_>) {
    let list = child_of(walk, primary, &[Kind::ClassParameters]).unwrap_or(primary);
    for parameter in children_of(walk, list, Kind::ClassParameter) {
        let Some(name) = child_of(walk, parameter, &[Kind::Identifier]).map(|it| types::name(walk, it))
        else {
            continue;
        };
        let typed = types::type_in(walk, parameter);
        let seen = typed.map_or(Seen::Unknown, |typed| types::of_type(walk, typed));
        if !has_token(walk, parameter, &["val", "var"]) {
            types::local(walk, &name, class, seen);
            continue;
        }
        let word = if has_token(walk, parameter, &["var"]) { "var: " } else { "val: " };
        let signature = typed.and_then(|typed| {
            walk.sign(typed.byte_range().len(), |scribe| {
                scribe.word(word).node(typed);
            })
        });
        let range = parameter.byte_range();
        walk.symbol(Found { signature, seen, typed: true, ..Found::new(&name, Sort::Field, range) });
    }
}

/// A constant of an enumeration, which may have members of its own.
fn entry(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = child_of(walk, node, &[Kind::Identifier]).map(|it| types::name(walk, it)) else {
        return;
    };
    let of = walk.scope.owner.map(|owner| walk.facts.symbols[owner as usize].name().to_owned());
    let seen = of.map_or(Seen::Unknown, |of| Seen::Of(of.into()));
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { seen, typed: true, ..Found::new(&name, Sort::Field, node.byte_range()) });
    walk.open(at);
    walk.open_for_owner();
}

fn alias(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = walk.field(node, Field::Type as u8).map(|it| types::name(walk, it)) else { return };
    let (generic, typed) = (child_of(walk, node, &[Kind::TypeParameters]), types::type_in(walk, node));
    let signature = walk.sign(length(&[generic, typed]), |scribe| {
        scribe.word("typealias");
        after(scribe, "", generic);
        after(scribe, " = ", typed);
    });
    walk.attributes_end(node.start_byte());
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::TypeAlias, node.byte_range()) });
    let of = typed.and_then(|typed| types::path_of(walk, typed));
    walk.bases(at, of.into_iter().map(Into::into).collect());
}

// Functions, constructors and properties.

fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    if is_in_nameless(walk) {
        walk.open_anonymous();
        return types::parameters(walk, node);
    }
    let Some(named) = walk.field(node, Field::Name as u8) else { return };
    let name = types::name(walk, named);
    let parameters = child_of(walk, node, &[Kind::Parameters]);
    let (receiver, result) = types::around_name(walk, node, named, parameters);
    let body = child_of(walk, node, &[Kind::FunctionBody]);
    let seen = match (result, body) {
        (Some(result), _) => types::of_type(walk, result),
        (None, Some(body)) => types::of_body(walk, body),
        (None, None) => Seen::Unknown,
    };
    let signature = function_signature(walk, node, parameters, receiver, result);
    let is_member = matches!(Kind::of(walk.kind_above(0)), Some(Kind::ClassBody | Kind::EnumBody));
    let sort = if is_member { Sort::Method } else { Sort::Function };
    walk.attributes_end(node.start_byte());
    let declared = body.is_none() && shown_modifiers(walk, node, &["external"]).is_empty();
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = extending(walk, receiver, found);
    types::type_parameters(walk, node);
    types::parameters(walk, node);
    contexts::known_within(walk, node);
    types::this_of(walk, receiver, node);
    walk.open(at);
}

/// Records a symbol; at the top, one that extends a type has the type before its name.
fn extending(walk: &mut Walk<'_>, receiver: Option<Node<'_>>, found: Found<'_>) -> Option<u32> {
    let of = receiver.and_then(|receiver| types::path_of(walk, receiver));
    match of.filter(|_| walk.scope.owner.is_none()) {
        Some(of) => {
            let last = of.rsplit('.').next().unwrap_or(&of).to_owned();
            let sort = if found.kind == Sort::Function { Sort::Method } else { found.kind };
            let path = format!("{last}.{}", found.name);
            walk.symbol_at(path, Found { kind: sort, ..found })
        }
        None => walk.symbol(found),
    }
}

fn function_signature(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    parameters: Option<Node<'_>>,
    receiver: Option<Node<'_>>,
    result: Option<Node<'_>>,
) -> Option<Result<Signature, Broken>> {
    let [generic, constraints] =
        [Kind::TypeParameters, Kind::TypeConstraints].map(|kind| child_of(walk, node, &[kind]));
    let modifiers = shown_modifiers(walk, node, &["abstract", "suspend", "operator", "infix", "inline"]);
    let context = contexts::of(walk, node);
    walk.sign(length(&[generic, receiver, parameters, result, constraints]), |scribe| {
        contexts::write(scribe, &context);
        scribe.word(&modifiers);
        after(scribe, "", generic);
        if let Some(receiver) = receiver {
            scribe.word(if generic.is_some() { " " } else { "" }).node(receiver).word(".");
        }
        after(scribe, "", parameters);
        after(scribe, ": ", result);
        after(scribe, " ", constraints);
    })
}

fn constructor(walk: &mut Walk<'_>, node: Node<'_>) {
    let parameters = child_of(walk, node, &[Kind::Parameters]);
    let signature = walk.sign(length(&[parameters]), |scribe| after(scribe, "", parameters));
    walk.attributes_end(node.start_byte());
    let found = Found { signature, ..Found::new("constructor", Sort::Constructor, node.byte_range()) };
    let at = walk.symbol(found);
    types::parameters(walk, node);
    walk.open(at);
}

/// A property of a class or of a file, or a variable of a function.
fn property(walk: &mut Walk<'_>, node: Node<'_>) {
    let is_member =
        matches!(Kind::of(walk.kind_above(0)), Some(Kind::Source | Kind::ClassBody | Kind::EnumBody) | None);
    if is_member && !is_in_nameless(walk) && types::destructured(walk, node) {
        return;
    }
    let variable = child_of(walk, node, &[Kind::Variable]);
    let named = variable.and_then(|it| child_of(walk, it, &[Kind::Identifier]));
    let (true, false, Some(variable), Some(named)) = (is_member, is_in_nameless(walk), variable, named)
    else {
        return types::declared(walk, node);
    };
    let name = types::name(walk, named);
    let (receiver, _) = types::around_name(walk, node, variable, None);
    let typed = types::type_in(walk, variable);
    let accessors = [Kind::Getter, Kind::Setter].map(|kind| child_of(walk, node, &[kind]));
    let code = accessors.iter().flatten().any(|it| child_of(walk, *it, &[Kind::FunctionBody]).is_some());
    let seen = match typed {
        Some(typed) => types::of_type(walk, typed),
        None => types::value_in(walk, node).map_or(Seen::Unknown, |value| types::of_value(walk, value)),
    };
    let modifiers = shown_modifiers(walk, node, &["abstract", "const", "lateinit"]);
    let word = if has_token(walk, node, &["var"]) { "var: " } else { "val: " };
    let context = contexts::of(walk, node);
    let signature = typed.and_then(|typed| {
        walk.sign(length(&[receiver, Some(typed)]), |scribe| {
            contexts::write(scribe, &context);
            scribe.word(&modifiers).word(word);
            if let Some(receiver) = receiver {
                scribe.node(receiver).word(".");
            }
            scribe.node(typed);
        })
    });
    let sort = match () {
        () if code => Sort::Getter,
        () if walk.owner_kind().is_some_and(Sort::has_members) => Sort::Field,
        () => Sort::Variable,
    };
    walk.attributes_end(node.start_byte());
    let declared = !code
        && child_of(walk, node, &[Kind::Delegate]).is_none()
        && (walk.owner_kind() == Some(Sort::Interface) || modifiers.starts_with("abstract"));
    let found = Found {
        signature,
        declared,
        seen,
        typed: typed.is_some(),
        ..Found::new(&name, sort, node.byte_range())
    };
    let at = extending(walk, receiver, found);
    contexts::known_within(walk, node);
    types::this_of(walk, receiver, node);
    walk.open(at);
    walk.open_for_owner();
}

// Calls.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(called) = node.named_child(0) else { return };
    types::lambda_of(walk, node, called);
    let called = types::unwrapped(walk, called);
    match Kind::at(walk, called) {
        Some(Kind::Identifier) => {
            let name = types::name(walk, called);
            walk.call(node, &name, Receiver::None, Form::Plain);
        }
        Some(Kind::Navigation) => {
            let Some((object, name)) = types::parts_of(walk, called) else { return };
            let receiver = types::receiver(walk, object, &name);
            walk.call(node, &name, receiver, Form::Plain);
        }
        _ => {}
    }
}

/// `a times b`
fn infix(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(object), Some(name)) = (node.named_child(0), node.named_child(1)) else { return };
    if Kind::at(walk, name) == Some(Kind::Identifier) && node.named_child_count() == 3 {
        let name = types::name(walk, name);
        let receiver = types::receiver(walk, object, &name);
        walk.call(node, &name, receiver, Form::Plain);
    }
}

/// `: Base(…)` of a class makes an instance of what is above it.
fn invoked(walk: &mut Walk<'_>, node: Node<'_>) {
    if Kind::of(walk.kind_above(0)) != Some(Kind::Specifier) {
        return;
    }
    let Some(path) = child_of(walk, node, &[Kind::UserType]).and_then(|it| types::path_of(walk, it)) else {
        return;
    };
    let (receiver, name) = match path.rsplit_once('.') {
        Some((before, name)) => (Receiver::Path(before.into()), name),
        None => (Receiver::None, &*path),
    };
    walk.open_for_owner();
    walk.call(node, name, receiver, Form::New);
}

/// `: this(…)` and `: super(…)` of a constructor.
fn other_constructor(walk: &mut Walk<'_>, node: Node<'_>) {
    let receiver = if has_token(walk, node, &["super"]) { Receiver::Super } else { Receiver::This };
    walk.call(node, "constructor", receiver, Form::New);
}

/// `::top`, `Store::find`: that it will be called is as good as a call.
fn reference(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = children_of(walk, node, Kind::Identifier).pop() else { return };
    let of = child_of(walk, node, &[Kind::UserType]).and_then(|it| types::path_of(walk, it));
    let receiver = of.map_or(Receiver::None, |of| Receiver::Path(of.into()));
    let name = types::name(walk, name);
    if name != "class" {
        walk.call(node, &name, receiver, Form::Plain);
    }
}

/// `this::find`
fn bound_reference(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some((object, name)) = types::parts_of(walk, node).filter(|(_, name)| name != "class") {
        let receiver = types::receiver(walk, object, &name);
        walk.call(node, &name, receiver, Form::Plain);
    }
}

/// Others know what is at the top by its package and its name; what extends a type, also by the type.
fn finish(walk: &mut Walk<'_>) {
    walk.mark_exported(|_| true);
    let package = walk.facts.imports.first().map_or(String::new(), |own| own.from.to_string());
    walk.export_by_full_name(&package);
    for at in 0..walk.facts.symbols.len() {
        let symbol = &walk.facts.symbols[at];
        if symbol.parent.is_none()
            && let Some((of, name)) = symbol.path.rsplit_once('.')
        {
            let of = if of.len() == 1 { "*" } else { of };
            let before = if package.is_empty() { String::new() } else { format!("{package}.") };
            let (full, path) = (format!("{before}{of}+{name}"), symbol.path.clone());
            walk.export_as(full, path);
        }
    }
}
