//! Calls: callers and callees within a file, and calls out of it.

use std::collections::HashSet;
use std::sync::Arc;

use super::{BOTH, Given, Kind, Reading};
use provost_base::limits::{CLASSES_ABOVE_MAX, NAMESAKES_MAX, SCOPES_MAX};

/// A place in a file from which a function or method is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The innermost function with a name around it, as a number in [`Reading::symbols`]; `None` for code of
    /// the module. A call in a callback belongs to the function in which the callback is written.
    pub caller: Option<u32>,
    /// The called function or method, as it is written.
    pub callee: Callee,
    /// The position, in bytes, as on disk.
    pub at: u32,
}

/// The called function or method, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Callee {
    /// The last name: `f` of `a.b.f()`. Calls of one name in a file share it.
    pub name: Arc<str>,
    /// The expression before the name.
    pub receiver: Receiver,
    /// The syntax of the call.
    pub form: Form,
}

/// The expression before the name of the called function or method.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Receiver {
    /// Nothing: `f()`.
    None,
    /// The instance or class around: `this.f()`, `self.f()`, `cls.f()`.
    This,
    /// The base class: `super.f()`, `super().f()`.
    Super,
    /// Names: `a` of `a.f()`, `a.b` of `a.b.f()`.
    Path(Box<str>),
    /// Names that begin at the top of the file, even if they mean something else at the call: `a` of `self::a::f()`; empty for
    /// the file itself.
    Within(Box<str>),
    /// An instance of the class of this name, as far as the file shows: `s.f()` after `s = new S()`.
    Instance(Box<str>),
    /// A value of one of the language's own types: `[].f()`.
    BuiltIn,
    /// A value that may be of several classes, as far as the file shows, or of an unknown one:
    /// `s.f()` after `s = x ? new S() : new T()`, `new S().f()` in `function g(S) {}`. The graph makes no guess
    /// about it.
    Several,
    /// No receiver, and the name is that of a parameter or a variable: `f()` in `function g(f) {}`.
    Local,
    /// Anything else: `g().f()`, `this.a.f()` with an `a` of unknown type.
    Other,
}

/// The syntax of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Form {
    /// `f()`.
    Plain,
    /// `new F()`.
    New,
    /// `<F/>`.
    Jsx,
    /// A tag of a template: ``f`text` ``.
    Tag,
    /// `@f` or `@f()`.
    Decorator,
}

/// A call of one symbol by another, or by a symbol outside of the file. There is one edge for each caller and callee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge<'a> {
    /// The calling symbol, as a number in [`Reading::symbols`].
    pub caller: u32,
    /// The called symbol, or its stand-in outside of the file.
    pub target: Target<'a>,
    /// The first such call in the file.
    pub call: &'a Call,
}

/// The target of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target<'a> {
    /// A symbol of the same file: its number in [`Reading::symbols`], the first of its path.
    Here(u32),
    /// A symbol of this name elsewhere; imports may tell where.
    Elsewhere(&'a str),
}

/// The meaning of a name for a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Near {
    /// A symbol of the file.
    Symbol(u32),
    /// An import of a function around the caller.
    Import {
        /// The function, as a number in [`Reading::symbols`].
        within: u32,
        /// The import, as a number in [`Reading::imports`].
        number: u32,
    },
    /// Neither: imported at the top, or unknown.
    Nothing,
}

impl Reading {
    /// Whether a caller knows a symbol: every function around that is around the caller as well.
    fn is_known_to(&self, caller: Option<u32>, symbol: Option<u32>) -> bool {
        let mut around = symbol;
        for _ in 0..SCOPES_MAX {
            let Some(at) = around else { return true };
            let symbol = &self.symbols[at as usize];
            if symbol.kind.is_callable() {
                return caller.is_some_and(|caller| self.is_within(caller, at));
            }
            around = symbol.parent;
        }
        false
    }

    /// To what in this file a call leads, by scope and receiver; none if to nothing here. Of several
    /// definitions of one path the first is named.
    pub fn resolve(&self, call: &Call) -> Option<u32> {
        let name = &*call.callee.name;
        match &call.callee.receiver {
            Receiver::None => {
                self.in_scope(call.caller, name).filter(|found| !self.may_inherit(call.caller, *found, name))
            }
            Receiver::This => self.member_of(self.class_around(call.caller)?, name),
            Receiver::Super => {
                let class = self.class_around(call.caller)?;
                self.member_above(class, name)
            }
            Receiver::Path(path) => {
                let mut names = path.split('.');
                let first = self.in_scope(call.caller, names.next()?);
                match first {
                    Some(first) => names
                        .try_fold(first, |of, name| self.member_of(of, name))
                        .and_then(|of| self.member_of(of, name)),
                    None => None,
                }
                .or_else(|| self.only_member(call.caller, name))
            }
            Receiver::Within(path) if path.is_empty() => self.at_path(name).next(),
            Receiver::Within(path) => self.member_of(self.at_path(path).next()?, name),
            // The graph knows what other files say of it.
            Receiver::Instance(class) if Given::is_asked_for(class) => self.only_member(call.caller, name),
            Receiver::Instance(class) => class.split(BOTH).find_map(|class| {
                let mut names = class.split('.');
                let first = self.in_scope(call.caller, names.next()?)?;
                let class = names.try_fold(first, |of, name| self.member_of(self.value_of(of)?, name))?;
                self.member_of(self.value_of(class)?, name)
            }),
            Receiver::BuiltIn | Receiver::Several | Receiver::Local => None,
            Receiver::Other => self.only_member(call.caller, name),
        }
    }

    /// Pairs of caller and callee, each once, in the order of first calls. Calls by the module itself
    /// are not among them.
    pub fn edges(&self) -> Vec<Edge<'_>> {
        let (mut calls, mut pairs) = (HashSet::new(), HashSet::new());
        let mut edges = Vec::new();
        for call in &self.calls {
            // A second call in the same way has the same target.
            let Some(caller) = call.caller else { continue };
            if !calls.insert((caller, &call.callee.name, &call.callee.receiver)) {
                continue;
            }
            let target = self.resolve(call).map_or(Target::Elsewhere(&call.callee.name), Target::Here);
            // Overloads and their function are one caller.
            if pairs.insert((&self.symbols[caller as usize].path, target)) {
                edges.push(Edge { caller, target, call });
            }
        }
        edges
    }

    /// The nearest symbol of this name, looking outwards from a caller through functions, and through classes where their
    /// members are known by their names alone; none where an import is nearer.
    pub(super) fn in_scope(&self, caller: Option<u32>, name: &str) -> Option<u32> {
        match self.nearest(caller, name) {
            Near::Symbol(found) => Some(found),
            Near::Import { .. } | Near::Nothing => None,
        }
    }

    /// Whether a class between a caller and what has a name further out may have a member of that name from above.
    fn may_inherit(&self, caller: Option<u32>, found: u32, name: &str) -> bool {
        let (mut around, found) = (caller, &self.symbols[found as usize]);
        for _ in 0..SCOPES_MAX {
            let Some(at) = around.filter(|at| Some(*at) != found.parent) else { return false };
            let scope = &self.symbols[at as usize];
            let inherits =
                scope.kind.has_members() && self.language.has_open_types() && !scope.bases.is_empty();
            let has_it = |above: Vec<u32>| above.into_iter().any(|of| self.child(Some(of), name).is_some());
            if inherits && scope.path != found.path && self.all_above(at).is_none_or(has_it) {
                return !self.language.is_of_self(name);
            }
            around = scope.parent;
        }
        false
    }

    /// The meaning of a name for a caller, as far as this file says: a symbol, or an import
    /// of a function around.
    pub(super) fn nearest(&self, caller: Option<u32>, name: &str) -> Near {
        let mut around = caller;
        for _ in 0..SCOPES_MAX {
            let Some(at) = around else { break };
            let scope = &self.symbols[at as usize];
            let is_open =
                scope.kind == Kind::Namespace || (scope.kind.has_members() && self.language.has_open_types());
            let opens = scope.kind.is_callable() || is_open;
            if let Some(found) = opens.then(|| self.child(Some(at), name)).flatten()
                && !self.is_called_like_its_type(found)
            {
                return Near::Symbol(found);
            }
            // Methods do not know the imports of their class.
            if scope.kind != Kind::Class
                && let Some(number) = self.imported_within(at, name)
            {
                return Near::Import { within: at, number };
            }
            if is_open && self.language.is_of_self(name) {
                // What is above the class elsewhere may have the method.
                let Some(above) = self.all_above(at) else { return Near::Nothing };
                if let Some(found) = above.into_iter().find_map(|of| self.child(Some(of), name)) {
                    return Near::Symbol(found);
                }
                break;
            }
            around = scope.parent;
        }
        self.child(None, name).or_else(|| self.alias(name)).map_or(Near::Nothing, Near::Symbol)
    }

    /// Whether a member has the name of its own type, so that where a type may be the type is meant.
    fn is_called_like_its_type(&self, found: u32) -> bool {
        let symbol = &self.symbols[found as usize];
        self.language.has_open_types()
            && matches!(&symbol.instance, Some(Receiver::Instance(class)) if class.rsplit('.').next() == Some(symbol.name()))
    }

    /// The first symbol of this name directly within another, or at the top.
    pub(super) fn child(&self, parent: Option<u32>, name: &str) -> Option<u32> {
        match parent {
            Some(parent) => self.first_within(&self.symbols[parent as usize].path, name),
            None => self.at_path(name).next(),
        }
    }

    /// A member of a class, an object or a namespace, or of a class above it in the same file.
    fn member_of(&self, of: u32, name: &str) -> Option<u32> {
        self.child(Some(of), name).or_else(|| self.member_above(of, name))
    }

    /// A member of the classes above one.
    fn member_above(&self, class: u32, name: &str) -> Option<u32> {
        self.all_above(class)?.into_iter().find_map(|of| self.child(Some(of), name))
    }

    /// The classes above one, in the order in which a member is looked for in them. None if one of them is in another file: it may
    /// have the member, or come before one that has it.
    fn all_above(&self, class: u32) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        let mut waiting = self.bases_here(class)?;
        // The graph asks them in another order.
        if self.language.asks_bases_by_depth() && waiting.len() > 1 {
            return None;
        }
        // Classes may be said to extend each other.
        for _ in 0..CLASSES_ABOVE_MAX {
            let Some(of) = waiting.pop() else {
                if self.language.asks_shared_bases_last() {
                    keep_last(&mut found);
                }
                return Some(found);
            };
            found.push(of);
            waiting.extend(self.bases_here(of)?);
        }
        None
    }

    /// The type of what a symbol gives: of a field its type, of a function what it gives back; of a type itself.
    fn value_of(&self, of: u32) -> Option<u32> {
        let symbol = &self.symbols[of as usize];
        if !self.language.has_typed_members() {
            return Some(of);
        }
        match &symbol.instance {
            Some(Receiver::Instance(class)) if !class.contains('.') => self.in_scope(symbol.parent, class),
            Some(_) => None,
            None => (!symbol.kind.is_callable()).then_some(of),
        }
    }

    /// The bases of a class, the first one last; none if one of them is not in this file.
    fn bases_here(&self, class: u32) -> Option<Vec<u32>> {
        let symbol = &self.symbols[class as usize];
        let found: Option<Vec<u32>> = symbol
            .bases
            .iter()
            .rev()
            .map(|base| {
                // A name that leads back to the class is that of a class elsewhere.
                let base = self.in_scope(symbol.parent, base).filter(|base| *base != class)?;
                let kind = self.symbols[base as usize].kind;
                (kind.has_members() || kind.is_callable()).then_some(base)
            })
            .collect();
        let lacks_interfaces = symbol.kind == Kind::Class && !self.language.inherits_from_interfaces();
        let is_asked = |base: &u32| !lacks_interfaces || self.symbols[*base as usize].kind != Kind::Interface;
        Some(found?.into_iter().filter(is_asked).collect())
    }

    pub(super) fn class_around(&self, caller: Option<u32>) -> Option<u32> {
        let mut around = caller;
        while let Some(at) = around {
            let symbol = &self.symbols[at as usize];
            let is_type =
                symbol.kind == Kind::Class || (symbol.kind.has_members() && self.language.has_open_types());
            if is_type {
                return Some(at);
            }
            // Methods of an object, and of a function that makes instances, have that for `this`.
            if symbol.kind == Kind::Method {
                return symbol.parent;
            }
            around = symbol.parent;
        }
        None
    }

    /// The member with this name, if all that have it share one path: the best guess for a receiver of
    /// unknown type. None for names that members of the language's own types have. Classes that a function
    /// has for itself are known within that function alone.
    fn only_member(&self, caller: Option<u32>, name: &str) -> Option<u32> {
        if self.language.has_built_in(name) {
            return None;
        }
        let mut found: Option<u32> = None;
        for at in self.numbers(name).take(NAMESAKES_MAX) {
            let symbol = &self.symbols[at as usize];
            let is_method = matches!(symbol.kind, Kind::Method | Kind::Getter | Kind::Setter);
            if !is_method || symbol.declared || !self.is_known_to(caller, symbol.parent) {
                continue;
            }
            match found {
                Some(first) if self.symbols[first as usize].path != symbol.path => return None,
                Some(_) => {}
                None => found = Some(at),
            }
        }
        found
    }
}

/// Of several places in an order the last one counts: a class that several others extend is asked behind all of them.
pub fn keep_last<T: PartialEq>(order: &mut Vec<T>) {
    let mut at = 0;
    while at < order.len() {
        if order[at + 1..].contains(&order[at]) {
            order.remove(at);
        } else {
            at += 1;
        }
    }
}
