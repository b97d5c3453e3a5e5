//! Calls in PHP.

use tree_sitter::Node;

use super::super::walk::{Found, Walk};
use super::super::{Export, Exported, Form, Kind as Sort, Receiver};
use super::php::{Field, Kind};
use super::{comments, php_names as names, php_types as types};

/// `f()`, `\A\f()`; `define("A", 1)` defines a constant.
pub(super) fn function(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(called) = walk.field(node, Field::Function as u8) else { return };
    let Some(name) = names::function_of(walk, called) else { return };
    if name.trim_start_matches('\\') == "define" && defined(walk, node) {
        return;
    }
    walk.call(node, &name, Receiver::None, Form::Plain);
}

fn defined(walk: &mut Walk<'_>, node: Node<'_>) -> bool {
    let arguments = node.child_by_field_name("arguments");
    let first = arguments.and_then(|it| it.named_child(0)).and_then(|it| it.named_child(0));
    let Some(name) = first.and_then(|it| names::literal(walk, it)) else { return false };
    if walk.scope.owner.is_none() {
        let name = name.trim_start_matches('\\').replace('\\', ".");
        comments::end_at(walk, node.start_byte(), 1);
        let at = walk.symbol(Found::new(&name, Sort::Variable, node.byte_range()));
        if at.is_some() {
            let name: Box<str> = name.into();
            walk.export(node, Export { name: name.clone(), what: Exported::Local(name) });
        }
    }
    true
}

/// `$x->f()`, `$x?->f()`.
pub(super) fn member(walk: &mut Walk<'_>, node: Node<'_>) {
    let [object, name] = [Field::Object, Field::Name].map(|field| walk.field(node, field as u8));
    let Some((object, name)) = object.zip(name.filter(|it| Kind::at(walk, *it) == Some(Kind::Name))) else {
        return;
    };
    let receiver = types::receiver(walk, object);
    let name = walk.text(name);
    walk.call(node, &name, receiver, Form::Plain);
}

/// `A::f()`, `self::f()`, `parent::f()`.
pub(super) fn scoped(walk: &mut Walk<'_>, node: Node<'_>) {
    let [scope, name] = [Field::Scope, Field::Name].map(|field| walk.field(node, field as u8));
    let Some((scope, name)) = scope.zip(name.filter(|it| Kind::at(walk, *it) == Some(Kind::Name))) else {
        return;
    };
    let name = walk.text(name);
    let receiver = match Kind::at(walk, scope) {
        Some(Kind::RelativeScope) if walk.text(scope) == "parent" => {
            types::parent_class(walk).map_or(Receiver::Super, |class| Receiver::Path(class.into()))
        }
        Some(Kind::RelativeScope) => Receiver::This,
        Some(Kind::Name | Kind::QualifiedName | Kind::RelativeName) => {
            names::class_of(walk, scope).map_or(Receiver::Other, |class| Receiver::Path(class.into()))
        }
        // A variable may hold an instance, or the name of a class.
        _ => types::receiver(walk, scope),
    };
    walk.call(node, &name, receiver, Form::Plain);
}

/// `new A`: the class is what is called.
pub(super) fn made(walk: &mut Walk<'_>, node: Node<'_>) {
    let Some(class) = node.named_child(0) else { return };
    let name = match &*walk.text(class) {
        "self" | "static" => types::own_class(walk),
        "parent" => types::parent_class(walk),
        _ => names::class_of(walk, class),
    };
    if let Some(name) = name {
        walk.call(node, &name, Receiver::None, Form::New);
    }
}
