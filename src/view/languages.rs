//! Languages: what is known of each, and what becomes of files of all others.

use provost_syntax::Language;
use serde::Serialize;

/// The languages that are read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Languages {
    /// Each of them.
    pub languages: Vec<LanguageRow>,
    /// What becomes of a file of any other.
    pub others: &'static str,
    /// What goes before all of this.
    pub index: &'static str,
}

/// One language.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LanguageRow {
    /// Its name.
    pub name: &'static str,
    /// The ends of its files' names.
    pub suffixes: &'static [&'static str],
    /// What follows from the file and the language's rules.
    pub exact: &'static str,
    /// What is likely, and marked as a guess.
    pub guessed: &'static str,
    /// What nothing is said about.
    pub unknown: &'static str,
}

/// What is known of each language.
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
        index: "Where a file is as it was when index.scip was made, the calls that the index tells of go before guesses.",
    }
}
