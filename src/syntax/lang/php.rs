//! PHP: the meaning of its grammar's nodes.
//!
//! A symbol's path lacks the namespace if the namespace is that of the whole file; if namespaces have braces,
//! the path begins with theirs. Other files find it by its full name, which is exported.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::locals::Seen;
use super::super::walk::{Broken, Found, Walk};
use super::super::{Export, Exported, Form, Kind as Sort, Receiver, Signature};
use super::children::{child_of, children_of};
use super::php_calls as calls;
use super::php_types as types;
use super::{Dialect, comments, kinds, names, php_names};

pub(crate) const DIALECT: Dialect = Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish };

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Comment = "comment",
        Namespace = "namespace_definition",
        Use = "namespace_use_declaration",
        UseGroup = "namespace_use_group",
        UseClause = "namespace_use_clause",
        NamespaceName = "namespace_name",
        Name = "name",
        QualifiedName = "qualified_name",
        RelativeName = "relative_name",
        RelativeScope = "relative_scope",
        Class = "class_declaration",
        Interface = "interface_declaration",
        Trait = "trait_declaration",
        Enum = "enum_declaration",
        AnonymousClass = "anonymous_class",
        BaseClause = "base_clause",
        InterfaceClause = "class_interface_clause",
        UseTraits = "use_declaration",
        UseAs = "use_as_clause",
        ClassConstant = "class_constant_access_expression",
        If = "if_statement",
        Const = "const_declaration",
        ConstElement = "const_element",
        Property = "property_declaration",
        PropertyElement = "property_element",
        Hooks = "property_hook_list",
        Case = "enum_case",
        Method = "method_declaration",
        Function = "function_definition",
        Parameters = "formal_parameters",
        Parameter = "simple_parameter",
        Promoted = "property_promotion_parameter",
        Variadic = "variadic_parameter",
        Static = "static_modifier",
        Abstract = "abstract_modifier",
        Final = "final_modifier",
        Readonly = "readonly_modifier",
        AnonymousFunction = "anonymous_function",
        ArrowFunction = "arrow_function",
        UseVariables = "anonymous_function_use_clause",
        Assignment = "assignment_expression",
        ReferenceAssignment = "reference_assignment_expression",
        AugmentedAssignment = "augmented_assignment_expression",
        List = "list_literal",
        Foreach = "foreach_statement",
        Catch = "catch_clause",
        TypeList = "type_list",
        StaticVariable = "static_variable_declaration",
        Variable = "variable_name",
        Call = "function_call_expression",
        MemberCall = "member_call_expression",
        SafeMemberCall = "nullsafe_member_call_expression",
        ScopedCall = "scoped_call_expression",
        Member = "member_access_expression",
        SafeMember = "nullsafe_member_access_expression",
        ScopedMember = "scoped_property_access_expression",
        New = "object_creation_expression",
        Require = "require_expression",
        RequireOnce = "require_once_expression",
        Include = "include_expression",
        IncludeOnce = "include_once_expression",
        Binary = "binary_expression",
        Conditional = "conditional_expression",
        Parenthesized = "parenthesized_expression",
        Clone = "clone_expression",
        NamedType = "named_type",
        OptionalType = "optional_type",
        UnionType = "union_type",
        PrimitiveType = "primitive_type",
        String = "string",
        EncapsedString = "encapsed_string",
        StringContent = "string_content",
        Heredoc = "heredoc",
        Nowdoc = "nowdoc",
        Integer = "integer",
        Float = "float",
        Boolean = "boolean",
        Null = "null",
        Array = "array_creation_expression",
        Program = "program",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Alias = "alias",
        Type = "type",
        Body = "body",
        Parameters = "parameters",
        ReturnType = "return_type",
        Function = "function",
        Object = "object",
        Scope = "scope",
        Left = "left",
        Right = "right",
        Operator = "operator",
        Alternative = "alternative",
        Condition = "condition",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" => Role::Comment,
        "string" | "encapsed_string" => Role::Text,
        "heredoc" | "nowdoc" => Role::Verbatim,
        "integer" | "float" => Role::Number,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    match kind {
        Kind::Comment => {
            comments::comment(walk, node);
            return false;
        }
        Kind::Namespace => php_names::namespace(walk, node),
        Kind::Use => {
            php_names::import(walk, node);
            return false;
        }
        Kind::Class | Kind::Interface | Kind::Trait | Kind::Enum => class(walk, node, kind),
        Kind::AnonymousClass => anonymous(walk, node),
        Kind::UseTraits => traits(walk, node),
        Kind::UseAs => renamed(walk, node),
        Kind::If => types::narrowed(walk, node),
        Kind::Const => constants(walk, node),
        Kind::Property => properties(walk, node),
        Kind::Case => case(walk, node),
        Kind::Method | Kind::Function => function(walk, node, kind),
        Kind::AnonymousFunction | Kind::ArrowFunction => closure(walk, node),
        Kind::Assignment | Kind::ReferenceAssignment | Kind::AugmentedAssignment => {
            types::assigned(walk, node);
            return true;
        }
        Kind::Foreach | Kind::Catch | Kind::StaticVariable => types::bound(walk, node, kind),
        Kind::Call => calls::function(walk, node),
        Kind::MemberCall | Kind::SafeMemberCall => calls::member(walk, node),
        Kind::ScopedCall => calls::scoped(walk, node),
        Kind::New => calls::made(walk, node),
        Kind::Require | Kind::RequireOnce | Kind::Include | Kind::IncludeOnce => {
            php_names::loaded(walk, node)
        }
        // No code is in types.
        Kind::NamedType | Kind::OptionalType | Kind::UnionType => return false,
        _ => {}
    }
    true
}

fn name_of(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let name = walk.field(node, Field::Name as u8)?;
    Some(walk.text(name).trim_start_matches('$').to_owned()).filter(|name| !name.is_empty())
}

fn is_in_type(walk: &Walk<'_>) -> bool {
    matches!(walk.owner_kind(), Some(Sort::Class | Sort::Interface | Sort::Enum))
}

/// What others find by its full name, unless it is within a function.
fn exported(walk: &mut Walk<'_>, node: Node<'_>, at: Option<u32>) {
    let Some(symbol) = at.map(|at| &walk.facts.symbols[at as usize]) else { return };
    let around = symbol.parent.map(|parent| walk.facts.symbols[parent as usize].kind);
    if around.is_some_and(|kind| kind != Sort::Namespace) {
        return;
    }
    let path = symbol.path.clone();
    let before = &walk.notes.namespace;
    let name =
        if before.is_empty() || around.is_some() { path.clone() } else { format!("{before}.{path}").into() };
    walk.export(node, Export { name, what: Exported::Local(path) });
}

// Types and what is in them.

fn class(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let (sort, word) = match kind {
        Kind::Interface => (Sort::Interface, "interface"),
        Kind::Enum => (Sort::Enum, "enum"),
        Kind::Trait => (Sort::Class, "trait"),
        _ => (Sort::Class, "class"),
    };
    let is_said = |it: &Node<'_>| {
        matches!(
            Kind::at(walk, *it),
            Some(
                Kind::Abstract
                    | Kind::Final
                    | Kind::Readonly
                    | Kind::BaseClause
                    | Kind::InterfaceClause
                    | Kind::PrimitiveType
            )
        )
    };
    let mut cursor = node.walk();
    let parts: Vec<Node<'_>> = node.named_children(&mut cursor).filter(is_said).collect();
    let is_before =
        |it: &Node<'_>| matches!(Kind::at(walk, *it), Some(Kind::Abstract | Kind::Final | Kind::Readonly));
    let (before, behind): (Vec<Node<'_>>, Vec<Node<'_>>) = parts.into_iter().partition(is_before);
    let length = before.iter().chain(&behind).map(|it| it.byte_range().len()).sum();
    let signature = walk.sign(length, |scribe| {
        for part in &before {
            scribe.node(*part).word(" ");
        }
        scribe.word(word);
        for part in &behind {
            scribe.word(" ").node(*part);
        }
    });
    comments::end_at(walk, node.start_byte(), 0);
    let at = walk.symbol(Found { signature, ..Found::new(&name, sort, node.byte_range()) });
    exported(walk, node, at);
    extends(walk, node, at);
    walk.open(at);
}

/// What a class takes its members from, those of traits before those of the class above.
fn extends(walk: &mut Walk<'_>, node: Node<'_>, at: Option<u32>) {
    let named = |walk: &Walk<'_>, clause: Option<Node<'_>>| -> Vec<String> {
        let Some(clause) = clause else { return Vec::new() };
        let mut cursor = clause.walk();
        clause.named_children(&mut cursor).filter_map(|it| php_names::class_of(walk, it)).collect()
    };
    let above = named(walk, child_of(walk, node, &[Kind::BaseClause]));
    if let (Some(at), Some(first)) = (at, above.first()) {
        walk.notes.stands_for.insert(at, first.as_str().into());
    }
    let body = walk.field(node, Field::Body as u8).or_else(|| child_of(walk, node, &[Kind::BaseClause]));
    let traits = body.map_or(Vec::new(), |body| children_of(walk, body, Kind::UseTraits));
    let mut all: Vec<String> = traits.into_iter().flat_map(|it| named(walk, Some(it))).collect();
    all.extend(above);
    all.extend(named(walk, child_of(walk, node, &[Kind::InterfaceClause])));
    walk.bases(at, all.into_iter().map(Into::into).collect());
}

/// `use A, B { … }`: names in the braces are those of methods.
fn traits(walk: &mut Walk<'_>, node: Node<'_>) {
    comments::end_at(walk, node.start_byte(), 0);
}

/// `t as t2`: a method that calls the one that it is another name of.
fn renamed(walk: &mut Walk<'_>, clause: Node<'_>) {
    let names = children_of(walk, clause, Kind::Name);
    let of_one = child_of(walk, clause, &[Kind::ClassConstant]);
    let (receiver, of, name) = match (of_one, &names[..]) {
        (Some(of_one), [name]) => {
            let (Some(class), Some(of)) = (of_one.named_child(0), of_one.named_child(1)) else { return };
            let Some(class) = php_names::class_of(walk, class) else { return };
            (Receiver::Path(class.into()), of, *name)
        }
        // The members of traits come before those of the class above.
        (None, [of, name]) => (Receiver::Super, *of, *name),
        _ => return,
    };
    let (of, name) = (walk.text(of).into_owned(), walk.text(name).into_owned());
    let at = walk.symbol(Found::new(&name, Sort::Method, clause.byte_range()));
    walk.open(at);
    if at.is_some() {
        walk.call(clause, &of, receiver, Form::Plain);
    }
}

/// `new class { … }` goes by the name of the variable that it is given to.
fn anonymous(walk: &mut Walk<'_>, node: Node<'_>) {
    let given = node
        .parent()
        .and_then(|made| made.parent())
        .filter(|it| Kind::at(walk, *it) == Some(Kind::Assignment));
    let left = given.and_then(|it| walk.field(it, Field::Left as u8));
    let name = left.and_then(|left| match Kind::at(walk, left) {
        Some(Kind::Variable) => Some(walk.text(left).trim_start_matches('$').to_owned()),
        Some(Kind::Member) => name_of(walk, left),
        _ => None,
    });
    let name = name.unwrap_or_else(|| "class".to_owned());
    let range = given.map_or(node.byte_range(), |it| it.byte_range());
    let range = if is_on_lines_of_its_own(walk, range.start) { range } else { node.byte_range() };
    let at = walk.symbol(Found::new(&name, Sort::Class, range));
    extends(walk, node, at);
    walk.open(at);
}

/// Whether what begins here is around the symbol that is recorded now: symbols are in the order in which they begin.
fn is_on_lines_of_its_own(walk: &Walk<'_>, start: usize) -> bool {
    walk.facts.symbols.last().is_none_or(|last| last.range.start as usize <= start)
}

fn constants(walk: &mut Walk<'_>, node: Node<'_>) {
    if walk.scope.functions > 0 && !is_in_type(walk) {
        return;
    }
    let all = children_of(walk, node, Kind::ConstElement);
    let sort = if is_in_type(walk) { Sort::Field } else { Sort::Variable };
    let typed = walk.field(node, Field::Type as u8);
    comments::end_at(walk, node.start_byte(), 0);
    let mut first = None;
    for (nth, element) in all.iter().enumerate() {
        let Some(name) = element.named_child(0).map(|it| walk.text(it).into_owned()) else { continue };
        let signature = type_signature(walk, typed);
        let range = one_of(node, &all, nth);
        let at = walk.symbol(Found { signature, ..Found::new(&name, sort, range) });
        walk.declared_by(node, all[0].start_byte(), at);
        exported(walk, *element, at);
        first = first.or(at);
    }
    walk.open_for_value(first);
}

/// Of what one declaration declares, the first begins with it, and the last ends with it.
fn one_of(declaration: Node<'_>, all: &[Node<'_>], nth: usize) -> std::ops::Range<usize> {
    let start = if nth == 0 { declaration.start_byte() } else { all[nth].start_byte() };
    start..if nth + 1 == all.len() { declaration.end_byte() } else { all[nth].end_byte() }
}

fn type_signature(walk: &mut Walk<'_>, typed: Option<Node<'_>>) -> Option<Result<Signature, Broken>> {
    let typed = typed?;
    walk.sign(typed.byte_range().len(), |scribe| {
        scribe.word(": ").node(typed);
    })
}

fn properties(walk: &mut Walk<'_>, node: Node<'_>) {
    if !is_in_type(walk) {
        return;
    }
    let all = children_of(walk, node, Kind::PropertyElement);
    let typed = walk.field(node, Field::Type as u8);
    let has_code = child_of(walk, node, &[Kind::Hooks]).is_some();
    comments::end_at(walk, node.start_byte(), 0);
    let mut last = None;
    for (nth, element) in all.iter().enumerate() {
        let Some(name) = name_of(walk, *element) else { continue };
        let sort = if has_code { Sort::Getter } else { Sort::Field };
        last = property(walk, &name, typed, sort, one_of(node, &all, nth));
        walk.declared_by(node, all[0].start_byte(), last);
    }
    if has_code {
        walk.open(last);
    }
}

fn property(
    walk: &mut Walk<'_>,
    name: &str,
    typed: Option<Node<'_>>,
    sort: Sort,
    range: std::ops::Range<usize>,
) -> Option<u32> {
    let signature = type_signature(walk, typed);
    let seen = typed.map_or(Seen::Unset, |typed| types::of_type(walk, typed));
    walk.symbol(Found { signature, seen, typed: typed.is_some(), ..Found::new(name, sort, range) })
}

fn case(walk: &mut Walk<'_>, node: Node<'_>) {
    if let Some(name) = name_of(walk, node) {
        comments::end_at(walk, node.start_byte(), 0);
        let seen = types::own_class(walk).map_or(Seen::Unknown, |class| Seen::Of(class.into()));
        walk.symbol(Found { seen, typed: true, ..Found::new(&name, Sort::Field, node.byte_range()) });
    }
}

// Functions.

fn function(walk: &mut Walk<'_>, node: Node<'_>, kind: Kind) {
    let Some(name) = name_of(walk, node) else { return };
    let sort = match kind {
        Kind::Method if name == "__construct" => Sort::Constructor,
        Kind::Method => Sort::Method,
        _ => Sort::Function,
    };
    let signature = signature_of(walk, node);
    let seen = types::of_result(walk, node);
    let declared = kind == Kind::Method && walk.field(node, Field::Body as u8).is_none();
    comments::end_at(walk, node.start_byte(), 0);
    let found =
        Found { signature, declared, seen, typed: true, ..Found::new(&name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    if kind == Kind::Function {
        exported(walk, node, at);
    } else if is_in_type(walk) {
        promoted(walk, node);
    }
    types::parameters(walk, node);
    walk.open(at);
}

/// Properties that a constructor takes in are the class's.
fn promoted(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(parameters) = walk.field(node, Field::Parameters as u8) else { return };
    for parameter in children_of(walk, parameters, Kind::Promoted) {
        if let Some(name) = name_of(walk, parameter) {
            let typed = walk.field(parameter, Field::Type as u8);
            property(
                walk,
                name.trim_start_matches('&').trim_start_matches('$'),
                typed,
                Sort::Field,
                parameter.byte_range(),
            );
        }
    }
}

fn signature_of(walk: &mut Walk<'_>, node: Node<'_>) -> Option<Result<Signature, Broken>> {
    let [parameters, result] =
        [Field::Parameters, Field::ReturnType].map(|field| walk.field(node, field as u8));
    let of_class = child_of(walk, node, &[Kind::Static]).is_some();
    let length = [parameters, result].iter().flatten().map(|it| it.byte_range().len()).sum();
    walk.sign(length, |scribe| {
        if of_class {
            scribe.word("static ");
        }
        if let Some(parameters) = parameters {
            scribe.node(parameters);
        }
        if let Some(result) = result {
            scribe.word(": ").node(result);
        }
    })
}

/// A function without a name; at the top of a file it goes by that of the variable that it is given to.
fn closure(walk: &mut Walk<'_>, node: Node<'_>) {
    types::parameters(walk, node);
    let is_given = Kind::of(walk.kind_above(0)) == Some(Kind::Assignment) && walk.scope.functions == 0;
    let given = node.parent().filter(|_| is_given && walk.scope.owner.is_none());
    let name = given.and_then(|it| walk.field(it, Field::Left as u8));
    let Some((given, name)) = given.zip(name.filter(|it| Kind::at(walk, *it) == Some(Kind::Variable))) else {
        return walk.open_anonymous();
    };
    let signature = signature_of(walk, node);
    let name = walk.text(name).trim_start_matches('$').to_owned();
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Function, given.byte_range()) });
    walk.open(at);
}

/// Everything can be used wherever its file was loaded.
fn finish(walk: &mut Walk<'_>) {
    walk.mark_exported(|_| true);
}
