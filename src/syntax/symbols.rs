//! Symbols: the definitions of a file, by name and place.

use std::ops::Range;

use super::{Receiver, Signature};

/// The kind of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A function by declaration, or a constant that is one; a lambda with a name.
    Function,
    /// A function that belongs to a class, an interface or an object.
    Method,
    /// A function that runs when an instance is made: `constructor`, `__init__`.
    Constructor,
    /// A function that is read like a field: `get`, `@property`.
    Getter,
    /// A function that is written like a field: `set`, `@x.setter`, `@x.deleter`.
    Setter,
    /// A class, by declaration or expression.
    Class,
    /// An interface of TypeScript.
    Interface,
    /// A name for a type.
    TypeAlias,
    /// An enumeration, with its members.
    Enum,
    /// A namespace or a declared module.
    Namespace,
    /// A constant or variable outside functions.
    Variable,
    /// A member that is no function: a class' attribute, an object's or interface's property, an
    /// enumeration's case.
    Field,
}

impl Kind {
    /// Whether it has code that runs when it is called, read or written.
    pub fn is_callable(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor | Self::Getter | Self::Setter)
    }

    /// Whether other symbols are its members.
    pub fn has_members(self) -> bool {
        matches!(self, Self::Class | Self::Interface | Self::TypeAlias | Self::Enum | Self::Namespace)
    }
}

/// One definition. A name that is defined several times (overloads, a getter and its setter, a function in
/// either branch of an `if`) has a symbol for each, with the same path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// Its name behind those of the symbols around it: `Base.run`, `NS.inNs`, `outer.nested`.
    pub path: Box<str>,
    /// Length of its own name, with which the path ends. A name may contain dots.
    pub(super) name_len: u32,
    /// The kind of definition.
    pub kind: Kind,
    /// Its bytes, as on disk, with decorators, without a leading `export`.
    pub range: Range<u32>,
    /// The symbol that contains it, as a number in [`Reading::symbols`](super::Reading::symbols).
    pub parent: Option<u32>,
    /// The signature that callers rely on; `None` if none is declared.
    pub signature: Option<Signature>,
    /// Whether its declaration has syntax errors, so that it has no usable signature.
    pub unparsable: bool,
    /// Whether it is one of several signatures of one function, without code.
    pub overload: bool,
    /// Whether it is declared and not defined: members of interfaces and types, abstract methods, `declare`.
    pub declared: bool,
    /// Whether other files can import it, or the outermost symbol that contains it.
    pub exported: bool,
    /// Classes that a class extends, as they are written, without arguments: `Base`, `ns.Base`. Of a field of C++ that is an instance
    /// itself, and no pointer to one, its class.
    pub bases: Box<[Box<str>]>,
    /// The receiver in a call of a member of this variable or field: an instance of a class, or a
    /// value of one of the language's own types; in languages with written types, also the result of a function. `None`
    /// if the file does not show it.
    pub instance: Option<Receiver>,
}

impl Symbol {
    /// Its own name: `run` of `Base.run`.
    pub fn name(&self) -> &str {
        let start = self.path.len().saturating_sub(self.name_len as usize);
        self.path.get(start..).unwrap_or(&self.path)
    }

    /// Whether a path is this one's, or its end from some name on: `run`, `Base.run` and `NS.Base.run`.
    pub(super) fn answers_to(&self, asked: &str) -> bool {
        self.path.strip_suffix(asked).is_some_and(|before| before.is_empty() || before.ends_with('.'))
            && asked.len() >= self.name_len as usize
    }
}
