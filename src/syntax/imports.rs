//! Imports and exports: what ties a file to others, as it is written. Where it leads is not decided here.

/// One statement or expression that takes something from another module, or passes it on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Import {
    /// The module: `./opts`, `react`; for Python with its dots, `..a.b`, `.`.
    pub from: Box<str>,
    /// How it is taken.
    pub form: ImportForm,
    /// The names that are taken; none when the module is imported for its effects.
    pub names: Vec<ImportedName>,
    /// Types only, so that nothing runs.
    pub types_only: bool,
    /// The symbol in which it stands; none at the top.
    pub within: Option<u32>,
    /// Whether it stands in a branch of a condition or of a `try`, so that another import of the same name
    /// may be the one that counts.
    pub either: bool,
    /// Where, in bytes, as on disk.
    pub at: u32,
}

/// How a module is taken in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImportForm {
    /// `import … from`, `import a.b`, `from a import b`, `import x = require(…)`.
    Static,
    /// `export … from`: passed on, and not known by name here.
    ReExport,
    /// `require("…")`.
    Require,
    /// `import("…")`.
    Dynamic,
}

/// A name that an import takes from a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportedName {
    /// The name that it has in the other module.
    pub imported: Imported,
    /// The name that it has here; for a re-export, the name that other files use. `None`
    /// for `*` of everything.
    pub local: Option<Box<str>>,
}

/// The part of a module that is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Imported {
    /// One of its names; `default` is one, too.
    Name(Box<str>),
    /// The module itself: `import * as ns`, `import a.b as c`, `const x = require(…)`.
    Module,
    /// Of `import a.b`: its first part, through which the rest is reached.
    Root,
    /// All its names, under their own: `export *`, `from a import *`.
    Everything,
}

/// One name under which others can import something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name: `renamed`, `default`; `export=` where the whole module is set to something, `*` for
    /// everything of another module.
    pub name: Box<str>,
    /// The symbol or import that the name stands for.
    pub what: Exported,
}

/// Where the value of an exported name is defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exported {
    /// Something of this file: the path of a symbol, or the local name of an import.
    Local(Box<str>),
    /// Something of another file: a number in [`Reading::imports`](super::Reading::imports), and what of it.
    Passed {
        /// The import that brings it, as a number in [`Reading::imports`](super::Reading::imports).
        import: u32,
        /// The name that the other file has for it, or all of its names.
        imported: Imported,
    },
}
