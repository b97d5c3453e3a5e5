//! What another source, as the index of a compiler, knows of the calls in a file, and what it replaces of what was found here.

use std::collections::BTreeSet;

use super::outline::Outline;
use super::{Edge, FoundBy, Graph, Target};
use provost_base::RepoPath;

/// A call of which another source tells.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ToldCall {
    /// The path of the calling symbol.
    pub caller: Box<str>,
    /// The name at the call.
    pub name: Box<str>,
    /// The file of the called symbol.
    pub file: RepoPath,
    /// The path of the called symbol there.
    pub callee: Box<str>,
}

/// The facts of another source about the calls in a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Told {
    /// The calls to symbols of the repository.
    pub calls: BTreeSet<ToldCall>,
    /// The pairs of a calling symbol's path and a name for which `calls` has the target of each call of that name.
    pub settled: BTreeSet<(Box<str>, Box<str>)>,
}

/// The facts that count now: a symbol of which a source tells may have gone since.
#[derive(Default)]
struct Facts<'a> {
    edges: BTreeSet<(u32, Target)>,
    /// What contains the called symbols, as the class of a constructor.
    around: BTreeSet<(u32, Target)>,
    /// The names of called symbols that were not found here by rules, by the number of the caller.
    replaced: BTreeSet<(u32, &'a str)>,
    /// The names of which each call is known, by the number of the caller.
    settled: BTreeSet<(u32, &'a str)>,
}

impl Graph {
    /// Adds the facts of another source about a file. They replace guesses and calls without a known target; where each call of a name is
    /// known, they replace what the rules have found, too.
    pub(super) fn add_told(&self, number: u32, told: &Told, edges: &mut Vec<Edge>, deps: &mut Vec<u32>) {
        let Some(outline) = self.files.outline(number) else { return };
        let facts = self.facts_of((number, outline), told, edges, deps);
        edges.retain(|edge| {
            let at = (edge.caller, edge.target);
            let Some(name) = self.name_of(outline, edge.target) else { return true };
            let key = (edge.caller, name);
            let is_weaker = edge.found == FoundBy::Guess || matches!(edge.target, Target::Unknown(_));
            match facts.edges.contains(&at) || facts.around.contains(&at) {
                true => !is_weaker,
                false => !(facts.settled.contains(&key) || is_weaker && facts.replaced.contains(&key)),
            }
        });
        let known: BTreeSet<(u32, Target)> = edges.iter().map(|it| (it.caller, it.target)).collect();
        let new = facts.edges.into_iter().filter(|it| !known.contains(it));
        edges.extend(new.map(|(caller, target)| Edge { caller, target, found: FoundBy::Index }));
    }

    fn facts_of<'a>(
        &'a self,
        (number, outline): (u32, &'a Outline),
        told: &'a Told,
        edges: &[Edge],
        deps: &mut Vec<u32>,
    ) -> Facts<'a> {
        let by_rules = edges.iter().filter(|it| it.found == FoundBy::Rules);
        let by_rules: BTreeSet<(u32, Target)> = by_rules.map(|it| (it.caller, it.target)).collect();
        let (mut facts, mut gone) = (Facts::default(), BTreeSet::new());
        for call in &told.calls {
            let Some(caller) = outline.node(&call.caller) else { continue };
            let Some(file) = self.files.at(call.file.as_str()) else {
                gone.insert((caller, &*call.name));
                continue;
            };
            if let Err(at) = deps.binary_search(&file)
                && file != number
            {
                deps.insert(at, file);
            }
            let there = self.files.outline(file);
            let Some((there, node)) = there.and_then(|it| Some((it, it.node(&call.callee)?))) else {
                gone.insert((caller, &*call.name));
                continue;
            };
            let edge = (caller, Target::Symbol { file, node });
            if !by_rules.contains(&edge) {
                facts.replaced.insert((caller, there.word(there.nodes[node as usize].name)));
            }
            let around = there.nodes[node as usize].parent;
            facts.around.extend(around.map(|node| (caller, Target::Symbol { file, node })));
            facts.edges.insert(edge);
        }
        let settled = told.settled.iter().filter_map(|(caller, name)| Some((outline.node(caller)?, &**name)));
        facts.settled.extend(settled.filter(|it| !gone.contains(it)));
        facts
    }

    /// Returns the name of what a file's call leads to.
    fn name_of<'a>(&'a self, outline: &'a Outline, target: Target) -> Option<&'a str> {
        match target {
            Target::Unknown(word) => Some(outline.word(word)),
            Target::Symbol { file, node } => {
                self.files.outline(file).map(|it| it.word(it.nodes[node as usize].name))
            }
        }
    }
}
