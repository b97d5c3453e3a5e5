//! Questions about the code of the repository, as they travel.

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
    /// What was meant, by its full path.
    pub of: Vec<String>,
    /// Its callers, or what it calls; `?:name` was not found in the repository.
    pub symbols: Vec<String>,
    /// Those among them that are guesses: found by their names alone, or one of several that it may be.
    #[serde(default)]
    pub guessed: Vec<String>,
    /// Whether all files are known.
    pub complete: bool,
    /// Why not, a sentence for each cause; empty when `complete`.
    pub missing: Vec<String>,
    /// The `.scip` index that was used besides.
    pub scip: Option<String>,
}

/// `GET /graph`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Graph {
    /// Source files that are known.
    pub files: usize,
    /// Symbols that are defined in these files.
    pub symbols: usize,
    /// Pairs of caller and callee.
    pub edges: usize,
    /// Files that could not be read whole.
    pub broken: usize,
    /// About how many bytes of memory all of it takes.
    pub bytes: usize,
    /// Whether all files are known.
    pub complete: bool,
    /// Why not, a sentence for each cause; empty when `complete`.
    pub missing: Vec<String>,
    /// Whether the system tells of changed files.
    pub watching: bool,
    /// What the first reading took, in milliseconds.
    pub took_ms: Option<u64>,
    /// A `.scip` index that is used.
    pub scip: Option<Scip>,
}

/// An index that another program has made.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scip {
    /// The name of the program that made the index, as the index says it.
    pub tool: String,
    /// Files for which it is used.
    pub files: usize,
    /// Files that have changed since.
    pub outdated: usize,
    /// Calls that it tells of.
    pub edges: usize,
}
