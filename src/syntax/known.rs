//! What is known of each language, for people who have to rely on it.

/// What is known of one language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knowledge {
    /// What follows from the file and the language's rules.
    pub exact: &'static str,
    /// What is likely, and marked as a guess.
    pub guessed: &'static str,
    /// What nothing is said about.
    pub unknown: &'static str,
}

pub(super) const ECMA: Knowledge = Knowledge {
    exact: "symbols, their ranges and signatures; imports, re-exports, CommonJS and the paths of tsconfig.json; methods of `this` \
            and of instances whose class the file shows",
    guessed: "a method of a value of unknown type, where one class in reach has the name",
    unknown: "types that are inferred across files; what is called by a computed name",
};

pub(super) const PYTHON: Knowledge = Knowledge {
    exact: "symbols, their ranges and signatures; packages, relative imports, `__all__` and stars; methods of `self` and of \
            instances whose class the file shows",
    guessed: "a method of a value of unknown type, where one class in reach has the name; either of two imports of one name",
    unknown: "attributes that are set from outside, and `getattr`",
};

pub(super) const RUST: Knowledge = Knowledge {
    exact: "symbols, their ranges and signatures, those of both branches of a `cfg` too; modules, `use` with groups, globs and \
            re-exports, and the crates of the repository; methods and fields by written types, wherever the `impl` stands",
    guessed: "a method of a value whose type is inferred, or of a trait; calls and items between the brackets of macros",
    unknown: "what macros make of their input, types behind `Option` and `Result`, closures that are kept and called",
};

pub(super) const GO: Knowledge = Knowledge {
    exact: "symbols, their ranges and signatures; packages by folder and the module path of go.mod; methods and fields by written \
            types, by embedded ones, and by what functions give back, in any file of the package",
    guessed: "a method of an interface or of a value of unknown type; each of several files for different systems",
    unknown: "the name of a package that differs from the end of its path, elements of slices and maps, functions in variables; \
              files that say `Code generated … DO NOT EDIT.` are left out",
};
