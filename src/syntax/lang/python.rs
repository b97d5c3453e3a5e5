//! Python: the meaning of its grammar's nodes.

use tree_sitter::Node;

use super::super::canon::Role;
use super::super::locals::Seen;
use super::super::reading::offset;
use super::super::walk::{Broken, Found, Note, Walk};
use super::super::{Form, Kind as Sort, Receiver, Signature};
use super::python_locals as locals;
use super::python_modules as modules;
use super::{Dialect, kinds, names};

pub(crate) const DIALECT: Dialect =
    Dialect { kinds: Kind::NAMES, fields: Field::NAMES, role, enter, finish: modules::finish };

/// The most names in a chain that are followed; a longer chain leads nowhere.
const CHAIN_MAX: usize = 16;

kinds! {
    /// The nodes that this module uses.
    enum Kind {
        Function = "function_definition",
        Class = "class_definition",
        Decorated = "decorated_definition",
        Decorator = "decorator",
        Lambda = "lambda",
        Assignment = "assignment",
        AugmentedAssignment = "augmented_assignment",
        TypeAlias = "type_alias_statement",
        Call = "call",
        Identifier = "identifier",
        Attribute = "attribute",
        Subscript = "subscript",
        Parenthesized = "parenthesized_expression",
        Patterns = "pattern_list",
        TuplePattern = "tuple_pattern",
        ListPattern = "list_pattern",
        Tuple = "tuple",
        List = "list",
        Splat = "list_splat_pattern",
        String = "string",
        StringContent = "string_content",
        Import = "import_statement",
        ImportFrom = "import_from_statement",
        FutureImport = "future_import_statement",
        AliasedImport = "aliased_import",
        Wildcard = "wildcard_import",
        DottedName = "dotted_name",
        GenericType = "generic_type",
        Type = "type",
        KeywordArgument = "keyword_argument",
        Parameters = "parameters",
        LambdaParameters = "lambda_parameters",
        Comment = "comment",
        TypedParameter = "typed_parameter",
        DefaultParameter = "default_parameter",
        TypedDefault = "typed_default_parameter",
        DictionarySplat = "dictionary_splat_pattern",
        TypeParameter = "type_parameter",
        ConstrainedType = "constrained_type",
        For = "for_statement",
        ForIn = "for_in_clause",
        AsPattern = "as_pattern",
        BinaryOperator = "binary_operator",
        Dictionary = "dictionary",
        Set = "set",
        Generator = "generator_expression",
        ListComprehension = "list_comprehension",
        DictionaryComprehension = "dictionary_comprehension",
        SetComprehension = "set_comprehension",
        Integer = "integer",
        Float = "float",
        None = "none",
        Conditional = "conditional_expression",
        BooleanOperator = "boolean_operator",
        NamedExpression = "named_expression",
        Global = "global_statement",
        Nonlocal = "nonlocal_statement",
        CasePattern = "case_pattern",
        KeywordPattern = "keyword_pattern",
        SplatPattern = "splat_pattern",
    }
}

names! {
    /// The fields that this module asks for.
    enum Field {
        Name = "name",
        Alias = "alias",
        ModuleName = "module_name",
        Parameters = "parameters",
        TypeParameters = "type_parameters",
        ReturnType = "return_type",
        Superclasses = "superclasses",
        Left = "left",
        Right = "right",
        Type = "type",
        Function = "function",
        Object = "object",
        Attribute = "attribute",
        Value = "value",
    }
}

fn role(kind: &str) -> Role {
    match kind {
        "comment" | "line_continuation" => Role::Comment,
        "string" => Role::Text,
        "integer" | "float" => Role::Number,
        "tuple" | "subscript" | "type_parameter" => Role::Tuple,
        _ => Role::Plain,
    }
}

fn enter(walk: &mut Walk<'_>, node: Node<'_>, kind: u8) -> bool {
    let Some(kind) = Kind::of(kind) else { return true };
    locals::enter(walk, node, kind);
    match kind {
        Kind::Function => function(walk, node),
        Kind::Class => class(walk, node),
        Kind::Decorator => decorator(walk, node),
        Kind::Lambda if !walk.is_claimed(node) => walk.open_anonymous(),
        Kind::Assignment => assignment(walk, node),
        Kind::AugmentedAssignment => {
            locals::changed(walk, node);
            modules::more_of_all(walk, node);
        }
        Kind::TypeAlias => type_alias(walk, node),
        Kind::Call => call(walk, node),
        Kind::Import | Kind::ImportFrom | Kind::FutureImport => return modules::import(walk, node, kind),
        Kind::Type => return false,
        _ => {}
    }
    true
}

fn text_of<'a>(walk: &Walk<'a>, node: Node<'_>, field: Field) -> Option<std::borrow::Cow<'a, str>> {
    walk.field(node, field as u8).map(|node| walk.text(node))
}

// Definitions: functions, classes and their decorators.

fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = text_of(walk, node, Field::Name) else { return };
    let note = walk.decorators_say();
    let in_class = walk.owner_kind() == Some(Sort::Class);
    let sort = match note {
        Note::Getter => Sort::Getter,
        Note::Setter => Sort::Setter,
        _ if in_class && name == "__init__" => Sort::Constructor,
        _ if in_class => Sort::Method,
        _ => Sort::Function,
    };
    let signature = function_signature(walk, node, sort);
    let overload = note == Note::Overload;
    bound_in_class(walk, &name, node);
    // A property is a value of the type that its function gives back.
    let result = walk.field(node, Field::ReturnType as u8).filter(|_| sort == Sort::Getter);
    let (typed, seen) = (result.is_some(), result.map_or(Seen::Unknown, |it| locals::of_type(walk, it)));
    let found = Found { signature, overload, seen, typed, ..Found::new(&name, sort, node.byte_range()) };
    let at = walk.symbol(found);
    walk.open(at);
}

fn function_signature(walk: &mut Walk<'_>, node: Node<'_>, sort: Sort) -> Option<Result<Signature, Broken>> {
    let is_async = node.child(0).is_some_and(|first| walk.is_token(first, "async"));
    let parts = [Field::TypeParameters, Field::Parameters, Field::ReturnType]
        .map(|field| walk.field(node, field as u8));
    let length = parts.iter().flatten().map(|part| part.byte_range().len()).sum();
    let [type_parameters, parameters, return_type] = parts;
    walk.sign(length, |scribe| {
        match sort {
            Sort::Getter => {
                scribe.word("get ");
            }
            Sort::Setter => {
                scribe.word("set ");
            }
            _ => {}
        }
        if is_async {
            scribe.word("async ");
        }
        for part in [type_parameters, parameters].into_iter().flatten() {
            scribe.node(part);
        }
        if let Some(part) = return_type {
            scribe.word(" -> ").node(part);
        }
    })
}

fn class(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(name) = text_of(walk, node, Field::Name) else { return };
    let parts = [Field::TypeParameters, Field::Superclasses].map(|field| walk.field(node, field as u8));
    let length = parts.iter().flatten().map(|part| part.byte_range().len()).sum();
    let signature = walk.sign(length, |scribe| {
        scribe.word("class");
        // `class A():` says no more than `class A:`.
        for part in parts.into_iter().flatten().filter(|part| part.named_child_count() > 0) {
            scribe.node(part);
        }
    });
    bound_in_class(walk, &name, node);
    let at = walk.symbol(Found { signature, ..Found::new(&name, Sort::Class, node.byte_range()) });
    let bases = parts[1].map_or(Vec::new(), |superclasses| {
        let mut cursor = superclasses.walk();
        let bases = superclasses.named_children(&mut cursor).filter_map(|base| {
            let base = if Kind::at(walk, base) == Some(Kind::Subscript) {
                walk.field(base, Field::Value as u8)?
            } else {
                base
            };
            dotted(walk, base).map(Into::into)
        });
        bases.collect()
    });
    walk.bases(at, bases);
    walk.open(at);
}

fn type_alias(walk: &mut Walk<'_>, node: Node<'_>) {
    let (Some(left), Some(right)) =
        (walk.field(node, Field::Left as u8), walk.field(node, Field::Right as u8))
    else {
        return;
    };
    let mut name = left;
    while let Some(Kind::Type | Kind::GenericType) = Kind::at(walk, name)
        && let Some(inner) = name.named_child(0)
    {
        name = inner;
    }
    let name = walk.text(name);
    let signature = walk.sign(node.byte_range().len(), |scribe| {
        scribe.node(left).word(" = ").node(right);
    });
    walk.symbol(Found { signature, ..Found::new(&name, Sort::TypeAlias, node.byte_range()) });
}

fn decorator(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(named) = node.named_child(0) else { return };
    let target = if Kind::at(walk, named) == Some(Kind::Call) {
        walk.field(named, Field::Function as u8)
    } else {
        Some(named)
    };
    let path = target.and_then(|target| dotted(walk, target)).unwrap_or_default();
    let note = match path.rsplit('.').next().unwrap_or_default() {
        "overload" => Note::Overload,
        "property" | "cached_property" | "abstractproperty" | "getter" => Note::Getter,
        "setter" | "deleter" if path.contains('.') => Note::Setter,
        _ => Note::None,
    };
    walk.decorated(node, note);
    if target == Some(named)
        && let Some((name, receiver)) = callee(walk, named)
    {
        let receiver = of_class_body(walk, node, &name, receiver);
        walk.call(node, &name, receiver, Form::Decorator);
    }
}

// Variables: assignments at the top of a file and in classes.

fn assignment(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(left) = walk.field(node, Field::Left as u8) else { return };
    let right = walk.field(node, Field::Right as u8);
    let lambda = right.filter(|right| Kind::at(walk, *right) == Some(Kind::Lambda));
    let in_class = walk.owner_kind() == Some(Sort::Class);
    let sort = match lambda {
        Some(_) if in_class => Sort::Method,
        Some(_) => Sort::Function,
        None if in_class => Sort::Field,
        None => Sort::Variable,
    };
    if walk.scope.functions > 0 && lambda.is_none() {
        locals::assigned(walk, node, left);
    }
    // Local variables of functions are no part of a contract; local functions are.
    if walk.scope.functions > 0 && lambda.is_none() {
        return;
    }
    modules::all_is(walk, left, right);
    if Kind::at(walk, left) != Some(Kind::Identifier) {
        let mut first = None;
        for name in bound_names(walk, left) {
            let text = walk.text(name);
            bound_in_class(walk, &text, node);
            let at = walk.symbol(Found::new(&text, sort, name.byte_range()));
            first = first.or(at);
        }
        return walk.open_for_value(first);
    }
    let name = walk.text(left);
    let signature = declared(walk, node, lambda);
    let seen = locals::of_assignment(walk, node);
    let typed = walk.field(node, Field::Type as u8).is_some();
    bound_in_class(walk, &name, node);
    let at = walk.symbol(Found { signature, seen, typed, ..Found::new(&name, sort, node.byte_range()) });
    if let Some(lambda) = lambda {
        walk.claim(lambda);
    }
    // Of `a = b = …` the outer one is also around the inner one, which is no member of it.
    if right.is_none_or(|right| Kind::at(walk, right) != Some(Kind::Assignment)) {
        walk.open_value(at);
    }
}

/// The annotation, or else the parameters of a lambda.
fn declared(
    walk: &mut Walk<'_>,
    node: Node<'_>,
    lambda: Option<Node<'_>>,
) -> Option<Result<Signature, Broken>> {
    if let Some(annotation) = walk.field(node, Field::Type as u8) {
        return walk.sign(annotation.byte_range().len(), |scribe| {
            scribe.node(annotation);
        });
    }
    let parameters = walk.field(lambda?, Field::Parameters as u8);
    walk.sign(parameters.map_or(0, |parameters| parameters.byte_range().len()), |scribe| {
        scribe.word("(");
        if let Some(parameters) = parameters {
            scribe.node(parameters);
        }
        scribe.word(")");
    })
}

pub(super) fn bound_names<'t>(walk: &Walk<'_>, pattern: Node<'t>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut waiting = vec![pattern];
    while let Some(node) = waiting.pop() {
        match Kind::at(walk, node) {
            Some(Kind::Identifier) => found.push(node),
            Some(
                Kind::Patterns
                | Kind::TuplePattern
                | Kind::ListPattern
                | Kind::Splat
                | Kind::Tuple
                | Kind::List,
            ) => {
                let mut cursor = node.walk();
                let from = waiting.len();
                waiting.extend(node.named_children(&mut cursor));
                waiting[from..].reverse();
            }
            _ => {}
        }
    }
    found
}

/// Notes that the body of the class around has a value for a name behind a statement: the statement itself does not know it yet.
fn bound_in_class(walk: &mut Walk<'_>, name: &str, statement: Node<'_>) {
    let class = walk.scope.owner.filter(|_| walk.owner_kind() == Some(Sort::Class));
    if let Some(class) = class.filter(|_| walk.spend(name.len())) {
        walk.notes.in_class.entry((class, name.into())).or_insert(offset(statement.end_byte()));
    }
}

/// Whether a node stands in the body of a class itself. Decorators, the default values of parameters and that which a comprehension
/// goes through first are evaluated there; other parts of functions and comprehensions are not.
fn is_in_class_body(walk: &Walk<'_>, node: Node<'_>) -> bool {
    let (mut of_parameter, mut of_clause) = (false, false);
    for above in walk.above.iter().rev() {
        match Kind::of(above.kind) {
            Some(Kind::Class) => return true,
            Some(Kind::Parameters | Kind::LambdaParameters) => of_parameter = true,
            Some(Kind::ForIn) => of_clause = is_in_first_clause(walk, node, above.id),
            Some(Kind::Function | Kind::Lambda) if std::mem::take(&mut of_parameter) => {}
            Some(
                Kind::Generator
                | Kind::ListComprehension
                | Kind::SetComprehension
                | Kind::DictionaryComprehension,
            ) if std::mem::take(&mut of_clause) => {}
            Some(
                Kind::Function
                | Kind::Lambda
                | Kind::Generator
                | Kind::ListComprehension
                | Kind::SetComprehension
                | Kind::DictionaryComprehension,
            ) => return false,
            _ => {}
        }
    }
    false
}

/// Whether a clause of a comprehension, by its node above another one, is the first of them.
fn is_in_first_clause(walk: &Walk<'_>, node: Node<'_>, clause: usize) -> bool {
    let mut around = Some(node);
    while let Some(at) = around.filter(|at| at.id() != clause) {
        around = at.parent();
    }
    let before = around.and_then(|clause| clause.prev_named_sibling());
    before.is_some_and(|before| Kind::at(walk, before) != Some(Kind::ForIn))
}

/// The receiver of a call that stands in the body of a class itself, where the names of the class come before those of the file.
fn of_class_body(walk: &Walk<'_>, node: Node<'_>, name: &str, receiver: Receiver) -> Receiver {
    let first = match &receiver {
        Receiver::None => name,
        Receiver::Path(path) => path.split('.').next().unwrap_or_default(),
        _ => return receiver,
    };
    let owner = walk.scope.owner.map(|owner| (owner, &walk.facts.symbols[owner as usize]));
    let class = owner.and_then(|(at, it)| if it.kind == Sort::Class { Some(at) } else { it.parent });
    let Some(class) = class else { return receiver };
    let known = walk.notes.in_class.get(&(class, first.into()));
    let is_own = known.is_some_and(|from| *from <= offset(node.start_byte()));
    if !is_own || !is_in_class_body(walk, node) {
        return receiver;
    }
    // The call belongs to the class that is decorated, which has not come yet and has other names.
    let decorated = walk.above.iter().rev().find(|above| Kind::of(above.kind) == Some(Kind::Decorated));
    let path = &walk.facts.symbols[class as usize].path;
    match &receiver {
        Receiver::None if decorated.is_some() => Receiver::Within(path.clone()),
        Receiver::Path(names) if decorated.is_some() => Receiver::Within(format!("{path}.{names}").into()),
        Receiver::Path(names) => Receiver::Path(format!("this.{names}").into()),
        _ => Receiver::This,
    }
}

// Calls: functions, classes and decorators.

fn call(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(function) = walk.field(node, Field::Function as u8) else { return };
    let decorates = walk.above.last().is_some_and(|above| Kind::of(above.kind) == Some(Kind::Decorator));
    let form = if decorates { Form::Decorator } else { Form::Plain };
    if let Some((name, receiver)) = callee(walk, function) {
        if matches!(&receiver, Receiver::Path(path) if **path == *"__all__") {
            modules::more_than_is_said(walk, node);
        }
        let receiver = of_class_body(walk, node, &name, receiver);
        walk.call(node, &name, receiver, form);
    }
}

fn callee<'a>(walk: &Walk<'a>, node: Node<'_>) -> Option<(std::borrow::Cow<'a, str>, Receiver)> {
    let node = unwrapped(walk, node);
    match Kind::at(walk, node)? {
        Kind::Identifier => Some((walk.text(node), Receiver::None)),
        Kind::Attribute => {
            let object = unwrapped(walk, walk.field(node, Field::Object as u8)?);
            Some((text_of(walk, node, Field::Attribute)?, receiver(walk, object)))
        }
        _ => None,
    }
}

fn receiver(walk: &Walk<'_>, object: Node<'_>) -> Receiver {
    if Kind::at(walk, object) == Some(Kind::Call) {
        let is_super =
            walk.field(object, Field::Function as u8).is_some_and(|called| walk.text(called) == "super");
        if is_super {
            return Receiver::Super;
        }
    }
    if let Some(receiver) = locals::receiver(walk, object) {
        return receiver;
    }
    match dotted(walk, object) {
        Some(path) if path == "self" || path == "cls" => Receiver::This,
        Some(path) => match locals::own_field(&path) {
            Some(field) => Receiver::Path(format!("this.{field}").into()),
            None if path.starts_with("self.") || path.starts_with("cls.") => Receiver::Other,
            None => Receiver::Path(path.into()),
        },
        None => Receiver::Other,
    }
}

fn unwrapped<'t>(walk: &Walk<'_>, mut node: Node<'t>) -> Node<'t> {
    while Kind::at(walk, node) == Some(Kind::Parenthesized)
        && let Some(inner) = node.named_child(0)
    {
        node = inner;
    }
    node
}

/// `a.b.c`, if it is nothing but names.
pub(super) fn dotted(walk: &Walk<'_>, node: Node<'_>) -> Option<String> {
    let mut names = Vec::new();
    let mut node = unwrapped(walk, node);
    while Kind::at(walk, node)? == Kind::Attribute {
        if names.len() >= CHAIN_MAX {
            return None;
        }
        names.push(text_of(walk, node, Field::Attribute)?);
        node = unwrapped(walk, walk.field(node, Field::Object as u8)?);
    }
    if Kind::at(walk, node)? != Kind::Identifier {
        return None;
    }
    names.push(walk.text(node));
    names.reverse();
    Some(names.join("."))
}
