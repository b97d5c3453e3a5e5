//! The types for queries about the code of the repository.

use serde::{Deserialize, Serialize};

/// `GET /graph/callers`, `GET /graph/callees`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphQuery {
    /// `file:Path`, or a name that only one file has.
    pub symbol: String,
}

/// The other ends of a symbol's calls, one step away.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Calls {
    /// The symbols that the query meant, by their full paths.
    pub of: Vec<String>,
    /// Its callers or callees; `?:name` was not found in the repository.
    pub symbols: Vec<String>,
    /// The guesses among them: matched by name alone, or one of several candidates.
    #[serde(default)]
    pub guessed: Vec<String>,
    /// Those among them that a `.scip` index alone knows.
    #[serde(default)]
    pub indexed: Vec<String>,
    /// Whether all files have been read.
    pub complete: bool,
    /// The reasons why not, a sentence for each; empty when `complete`.
    pub missing: Vec<String>,
    /// The programs that have made the `.scip` indexes in use.
    pub scip: Option<String>,
}

/// `GET /graph`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Graph {
    /// The number of source files that have been read.
    pub files: usize,
    /// The number of symbols that these files define.
    pub symbols: usize,
    /// The number of pairs of caller and callee.
    pub edges: usize,
    /// The number of files that could not be read whole.
    pub broken: usize,
    /// The files that could not be read whole, in order; the first 5,000 of them.
    pub not_whole: Vec<NotWhole>,
    /// The approximate memory that the graph takes, in bytes.
    pub bytes: usize,
    /// Whether all files have been read.
    pub complete: bool,
    /// The reasons why not, a sentence for each; empty when `complete`.
    pub missing: Vec<String>,
    /// Whether the system reports changed files.
    pub watching: bool,
    /// The duration of the first reading, in milliseconds.
    pub took_ms: Option<u64>,
    /// The `.scip` indexes that are used.
    pub scip: Option<Scip>,
}

/// A file that could not be read whole.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NotWhole {
    /// The file.
    pub file: String,
    /// The reasons, in a few words each, such as `too long`, `time limit`, `deep nesting`, `does not parse` or `not UTF-8`.
    pub why: Vec<String>,
}

/// An index that another program has made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scip {
    /// The name of the program that made the index, as the index says it.
    pub tool: String,
    /// The number of files for which it is used.
    pub files: usize,
    /// The number of files that have changed since it was made.
    pub outdated: usize,
    /// The number of calls that it contains.
    pub edges: usize,
}
