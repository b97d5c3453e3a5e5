//! Imports and exports: the ties of a file to others, as they are written. Their targets are not resolved here.

/// One statement or expression that takes symbols from another module, or passes them on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Import {
    /// The module: `./opts`, `react`; for Python with its dots, `..a.b`, `.`.
    pub from: Box<str>,
    /// The syntax of the import.
    pub form: ImportForm,
    /// The names that are taken; empty if the module is imported for its effects.
    pub names: Vec<ImportedName>,
    /// Whether it takes only types, so that nothing runs.
    pub types_only: bool,
    /// The symbol that contains it; `None` at the top.
    pub within: Option<u32>,
    /// Whether it stands in a branch of a condition or of a `try`, so that another import of the same name
    /// may apply instead.
    pub either: bool,
    /// The position, in bytes, as on disk.
    pub at: u32,
}

/// The syntax by which a module is imported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImportForm {
    /// `import … from`, `import a.b`, `from a import b`, `import x = require(…)`.
    Static,
    /// `export … from`: passed on, and not known by name in this file.
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
    /// For `import a.b`: its first part, through which the rest is reached.
    Root,
    /// All its names, under their own: `export *`, `from a import *`.
    Everything,
}

/// One name under which other files can import a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name: `renamed`, `default`; `export=` if the whole module is set to a value, `*` for
    /// all names of another module.
    pub name: Box<str>,
    /// The symbol or import that the name stands for.
    pub what: Exported,
}

/// The place of an exported name's definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Exported {
    /// In this file: the path of a symbol, or the local name of an import.
    Local(Box<str>),
    /// In another file: a number in [`Reading::imports`](super::Reading::imports), and the part of it.
    Passed {
        /// The import that brings it, as a number in [`Reading::imports`](super::Reading::imports).
        import: u32,
        /// The name in the other file, or all of its names.
        imported: Imported,
    },
}
