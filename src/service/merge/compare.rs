//! Compares two sides: finds the symbols that both have changed, and calls by one side of symbols that the other
//! side has changed. Pure.

use provost_base::SymbolPath;
use provost_base::limits::MERGE_TOLD_MAX;

use super::study::{Broken, CallsAtTop, SideFacts};

/// The kinds of conflicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConflictKind {
    /// Git cannot merge the text.
    Text,
    /// Both sides have changed one symbol.
    Symbol,
    /// One side calls a symbol that the other side has removed or given another signature.
    Call,
    /// A contract in force would be broken.
    Contract,
}

impl ConflictKind {
    /// Returns the word for this kind.
    pub fn as_str(self) -> &'static str {
        match self {
            ConflictKind::Text => "text",
            ConflictKind::Symbol => "symbol",
            ConflictKind::Call => "call",
            ConflictKind::Contract => "contract",
        }
    }
}

/// A place in which two sides collide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeConflict {
    /// The kind of conflict.
    pub kind: ConflictKind,
    /// The file, from the top of the repository.
    pub file: String,
    /// The symbol in the file; `None` if the conflict concerns the file.
    pub symbol: Option<String>,
    /// The conflict as a sentence.
    pub text: String,
}

/// Returns the conflicts of the symbols of two sides, up to the number that is reported. Each side comes with its name.
pub(super) fn compared(one: (&str, &SideFacts), other: (&str, &SideFacts)) -> Vec<MergeConflict> {
    let mut found = both_changed(one, other);
    found.extend(calls_of_broken(one, other));
    found.extend(calls_of_broken(other, one));
    found.truncate(MERGE_TOLD_MAX);
    found
}

fn both_changed(one: (&str, &SideFacts), other: (&str, &SideFacts)) -> Vec<MergeConflict> {
    let mut found = Vec::new();
    for (file, symbols) in &one.1.touched {
        let Some(theirs) = other.1.touched.get(file) else { continue };
        let is_same =
            |side: &SideFacts| side.changes.iter().find(|it| it.path == *file).map(|it| it.new.clone());
        if is_same(one.1) == is_same(other.1) {
            continue;
        }
        for symbol in symbols.intersection(theirs) {
            let text = format!("{} and {} have both changed {symbol} in {file}", one.0, other.0);
            let (file, symbol) = (file.clone(), Some(symbol.to_string()));
            found.push(MergeConflict { kind: ConflictKind::Symbol, file, symbol, text });
        }
    }
    found
}

/// Returns the name of a symbol; for a constructor, the name of its class.
fn class(name: &str) -> &str {
    let inner = name.rsplit_once('.').filter(|(_, it)| matches!(*it, "constructor" | "__init__"));
    inner.map_or(name, |(class, _)| class)
}

/// Checks whether a call is to this symbol; a class and its constructor count as the same.
fn is_call_of(called: &SymbolPath, file: &str, symbol: &str) -> bool {
    called.file().as_str() == file && class(called.symbol()) == class(symbol)
}

fn calls_of_broken(broken: (&str, &SideFacts), calls: (&str, &SideFacts)) -> Vec<MergeConflict> {
    let mut found: Vec<MergeConflict> = Vec::new();
    for ((file, symbol), how) in &broken.1.broken {
        // A side that has made the same change knows of it.
        if calls.1.broken.get(&(file.clone(), symbol.clone())) == Some(how) {
            continue;
        }
        let callers = calls.1.calls.iter().filter(|(_, called)| is_call_of(called, file, symbol));
        let callers = callers.map(|(caller, _)| caller.to_string());
        // These are files that import the changed file, and call the symbol when they are loaded.
        let is_at_top = |(_, it): &(&String, &CallsAtTop)| {
            it.imports.contains(file.as_str()) && it.names.contains(class(symbol))
        };
        let at_top = calls
            .1
            .at_top
            .iter()
            .filter(is_at_top)
            .map(|(caller, _)| format!("{caller}, outside of functions"));
        for caller in callers.chain(at_top) {
            let did = match how {
                Broken::Gone => "has removed or renamed".to_owned(),
                Broken::Changed(now) => format!("has made `{}` of", now.lines().next().unwrap_or_default()),
            };
            let text = format!("{} {did} {symbol} in {file}, which {} calls in {caller}", broken.0, calls.0);
            let is_told =
                found.iter().any(|it| it.text == text || (it.file == *file && is_inner(it, symbol)));
            if !is_told {
                let (file, symbol) = (file.clone(), Some(symbol.to_string()));
                found.push(MergeConflict { kind: ConflictKind::Call, file, symbol, text });
            }
        }
    }
    found
}

/// Checks whether a conflict for the same call was already reported for the symbol's class.
fn is_inner(told: &MergeConflict, symbol: &str) -> bool {
    told.symbol.as_deref().is_some_and(|it| symbol.starts_with(&format!("{it}.")))
}

/// Checks whether one side breaks a symbol that the other side calls.
pub(super) fn is_called_by(broken: &SideFacts, calls: &SideFacts) -> bool {
    !calls_of_broken(("", broken), ("", calls)).is_empty()
}
