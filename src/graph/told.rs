//! What another source, as the index of a compiler, knows of the calls in a file, and what it replaces of what was found here.

use std::collections::BTreeSet;

use super::outline::Outline;
use super::{Edge, FoundBy, Graph, Target};
use provost_base::RepoPath;

/// An edge from another source: the path of the calling symbol, and the file and path
/// of the called one.
pub type ImportedEdge = (Box<str>, RepoPath, Box<str>);

/// The facts of another source about the calls in a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Told {
    /// The calls to known symbols.
    pub edges: Vec<ImportedEdge>,
    /// The pairs of a calling symbol's path and a called name of which the source knows every call, so that nothing else is called by
    /// that name there.
    pub settled: Vec<(Box<str>, Box<str>)>,
}

impl Graph {
    /// The facts of another source replace guesses and calls without a known target; where it knows all calls of a name, they replace
    /// what the rules have found, too.
    pub(super) fn add_told(&self, number: u32, told: &Told, edges: &mut Vec<Edge>, deps: &mut Vec<u32>) {
        let Some(outline) = self.files.outline(number) else { return };
        let mut facts = Vec::new();
        for (caller, path, callee) in &told.edges {
            let Some(caller) = outline.node(caller) else { continue };
            let Some(file) = self.files.at(path.as_str()) else { continue };
            let Some(there) = self.files.outline(file) else { continue };
            if let Err(at) = deps.binary_search(&file)
                && file != number
            {
                deps.insert(at, file);
            }
            let Some(node) = there.node(callee) else { continue };
            facts.push(Edge { caller, target: Target::Symbol { file, node }, found: FoundBy::Index });
        }
        self.remove_settled(outline, told, &facts, edges);
        for fact in facts {
            let name = self.name_of(outline, fact.target);
            edges.retain(|edge| {
                let weaker = edge.found == FoundBy::Guess || matches!(edge.target, Target::Unknown(_));
                !(edge.caller == fact.caller && weaker && self.name_of(outline, edge.target) == name)
            });
            if !edges.iter().any(|edge| (edge.caller, edge.target) == (fact.caller, fact.target)) {
                edges.push(fact);
            }
        }
    }

    /// Removes calls of names of which another source knows every call, unless it tells of them, or of a member of the called symbol,
    /// as of the constructor of a class.
    fn remove_settled(&self, outline: &Outline, told: &Told, facts: &[Edge], edges: &mut Vec<Edge>) {
        let node = |(caller, name): &'_ (Box<str>, Box<str>)| Some((outline.node(caller)?, name.clone()));
        let settled: BTreeSet<(u32, Box<str>)> = told.settled.iter().filter_map(node).collect();
        if settled.is_empty() {
            return;
        }
        edges.retain(|edge| {
            let Target::Symbol { file, node } = edge.target else { return true };
            let Some(there) = self.files.outline(file) else { return true };
            let name = there.word(there.nodes[node as usize].name);
            let is_told = |fact: &Edge| match fact.target {
                Target::Symbol { file: its, node: told } if fact.caller == edge.caller && its == file => {
                    told == node || there.nodes[told as usize].parent == Some(node)
                }
                _ => false,
            };
            !settled.contains(&(edge.caller, name.into())) || facts.iter().any(is_told)
        });
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
