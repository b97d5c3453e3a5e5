//! Questions of people about the call graph: a name as they write it, looked up in files as they are now.

use super::Provost;
use crate::base::SymbolPath;
use crate::base::limits::GRAPH_CANDIDATES_MAX;
use crate::graph::Asked;
use crate::index::{Index, State};

/// Along calls, or against them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Who calls it.
    Callers,
    /// What it calls.
    Callees,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphFault {
    /// It is no symbol's name.
    Malformed(String),
    /// The file is not known: not there, ignored, or not read yet.
    NoSuchFile(SymbolPath),
    /// Nothing has this name; what may be meant instead.
    NoSuchSymbol(Vec<SymbolPath>),
    /// Several files have it.
    Several(Vec<SymbolPath>),
    /// The daemon ends.
    Ending,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calls {
    /// What was meant.
    pub of: Vec<SymbolPath>,
    /// The other ends of its calls.
    pub symbols: Vec<SymbolPath>,
    /// What is known, at this moment.
    pub state: State,
}

impl Provost {
    /// Who calls a symbol, or what it calls, one step away: `file:Path`, or a name that only one file has.
    ///
    /// # Errors
    /// [`GraphFault`].
    pub async fn calls(&self, symbol: &str, way: Way) -> Result<Calls, GraphFault> {
        let (index, symbol) = (self.index().clone(), symbol.to_owned());
        // The file is looked at, and read if it has changed.
        let done = tokio::task::spawn_blocking(move || calls(&index, &symbol, way)).await;
        done.unwrap_or(Err(GraphFault::Ending))
    }

    /// How much of the repository is known.
    pub async fn graph_state(&self) -> Result<State, GraphFault> {
        let index = self.index().clone();
        tokio::task::spawn_blocking(move || index.state()).await.map_err(|_| GraphFault::Ending)
    }
}

fn calls(index: &Index, symbol: &str, way: Way) -> Result<Calls, GraphFault> {
    let of = meant(index, symbol)?;
    let mut symbols: Vec<SymbolPath> = Vec::new();
    for one in &of {
        symbols.extend(match way {
            Way::Callers => index.callers(one),
            Way::Callees => index.callees(one),
        });
    }
    if of.len() > 1 {
        let mut seen = std::collections::BTreeSet::new();
        symbols.retain(|it| seen.insert(it.clone()));
    }
    Ok(Calls { of, symbols, state: index.state() })
}

fn meant(index: &Index, symbol: &str) -> Result<Vec<SymbolPath>, GraphFault> {
    if !symbol.contains(':') {
        let found = index.named(symbol);
        return match found.len() {
            0 => Err(GraphFault::NoSuchSymbol(Vec::new())),
            1 => Ok(found),
            _ => Err(GraphFault::Several(found.into_iter().take(GRAPH_CANDIDATES_MAX).collect())),
        };
    }
    let symbol =
        SymbolPath::parse(symbol).map_err(|err| GraphFault::Malformed(format!("{symbol}: {err}")))?;
    index.touch(symbol.file());
    match index.asked(&symbol) {
        Asked::Found(found) => Ok(found),
        Asked::NoSuchFile => Err(GraphFault::NoSuchFile(symbol)),
        Asked::NoSuchSymbol(alike) => Err(GraphFault::NoSuchSymbol(alike)),
    }
}
