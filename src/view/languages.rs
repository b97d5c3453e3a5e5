//! Languages: how much Provost knows about files of each, and how it treats files of all others.

use provost_syntax::Language;
use serde::Serialize;

/// The languages that are read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Languages {
    /// One row for each language.
    pub languages: Vec<LanguageRow>,
    /// How files of any other language are treated.
    pub others: &'static str,
    /// When a `.scip` index goes before these findings.
    pub index: &'static str,
}

/// One language.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LanguageRow {
    /// Its name.
    pub name: &'static str,
    /// The suffixes of its files' names.
    pub suffixes: &'static [&'static str],
    /// Findings that follow from the file and the language's rules.
    pub exact: &'static str,
    /// Findings that are likely, and marked as guesses.
    pub guessed: &'static str,
    /// Cases about which Provost says nothing.
    pub unknown: &'static str,
}

/// Returns how much is known about each language.
pub fn languages() -> Languages {
    let row = |language: Language| {
        let known = language.knowledge();
        LanguageRow {
            name: language.name(),
            suffixes: language.suffixes(),
            exact: known.exact,
            guessed: known.guessed,
            unknown: known.unknown,
        }
    };
    Languages {
        languages: Language::all().map(row).collect(),
        others: "Any other file is held as a whole: an edit of it takes the whole file, and a lock on a name in it is taken as it is \
                 written. The same is true of a file that is too large, does not parse where it is changed, or was written by a \
                 program.",
        index: "Where a file is as it was when a .scip index at the root was made, the index goes before all of this: before guesses, and before \
                what the rules find where it knows every call of a name.",
    }
}
