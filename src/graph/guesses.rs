//! Guesses: members of values of unknown type, found by their names alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Target;
use super::lang::Namesakes;
use super::outline::{Node, Outline, Use};
use super::resolve::{Resolver, Value};
use provost_base::limits::RESOLVE_STEPS_MAX;
use provost_syntax::Kind;

impl<'g> Resolver<'g> {
    /// Takes a target for a guess that has namesakes which the call may mean, and adds these.
    pub(super) fn with_namesakes(&mut self, of: Namesakes, caller: u32, all: &mut Vec<(Target, bool)>) {
        for at in 0..all.len() {
            let (Target::Symbol { file, node }, false) = all[at] else { continue };
            let found = of(self, caller, (file, node));
            all[at].1 = !found.is_empty();
            all.extend(found.into_iter().map(|(file, node)| (Target::Symbol { file, node }, true)));
        }
    }

    /// The best guess for a member of something of unknown type: the only one of its name in the module where that
    /// something is, in this file, among the classes that this file imports, or wherever the language looks.
    pub(super) fn guess_of(&mut self, one: &Use, of: Option<Value>, guess: Option<u32>) -> (Target, bool) {
        let name = self.outline.word(one.name);
        if self.outline.language.has_built_in(name) {
            return (Target::Unknown(one.name), false);
        }
        let there = of.and_then(|of| match of {
            Value::Symbol { file, .. } if file != self.at => self.only_member_in(file, name),
            _ => None,
        });
        let here = guess.map(|node| Value::Symbol { file: self.at, node });
        let found = there.or(here).or_else(|| self.only_member_imported(name));
        let found = found.or_else(|| self.outline.rules().only_one.and_then(|look| look(self, name)));
        match found.and_then(|value| self.called(value)) {
            Some(target) => (target, true),
            None => (Target::Unknown(one.name), false),
        }
    }

    pub(super) fn only_member_in(&mut self, file: u32, name: &str) -> Option<Value> {
        let outline = self.outline_of(file)?;
        let is_it = |node: &Node| {
            outline.word(node.name) == name
                && is_method(node.kind)
                && !node.declared
                && !is_in_function(outline, node)
        };
        let mut found = (0..).zip(&*outline.nodes).filter(|(_, node)| is_it(node)).map(|(at, _)| at);
        let node = found.next()?;
        found.next().is_none().then_some(Value::Symbol { file, node })
    }

    fn only_member_imported(&mut self, name: &str) -> Option<Value> {
        if self.imported.is_none() {
            self.imported = Some(self.members_of_imports());
        }
        let (file, node) = (*self.imported.as_ref()?.get(name)?)?;
        Some(Value::Symbol { file, node })
    }

    /// The methods of all classes that are imported, and of those above them.
    fn members_of_imports(&mut self) -> BTreeMap<&'g str, Option<(u32, u32)>> {
        self.steps_left = RESOLVE_STEPS_MAX;
        let mut waiting: Vec<Value> = Vec::new();
        for binding in &*self.outline.bindings {
            waiting.extend(self.bound(self.at, binding, 0));
        }
        let mut classes = BTreeSet::new();
        while let Some(value) = waiting.pop() {
            let (file, node) = match value {
                Value::Symbol { file, node } => (file, node),
                Value::Module(file) => {
                    let whole = self.files.outline(file).and_then(|outline| outline.rules().whole);
                    let whole = whole.and_then(|name| self.export(file, name, 0));
                    waiting.extend(whole.filter(|it| matches!(it, Value::Symbol { .. })));
                    continue;
                }
            };
            let Some(outline) = self.outline_of(file) else { continue };
            let is_class = matches!(outline.nodes[node as usize].kind, Kind::Class | Kind::Interface);
            if is_class && classes.insert((file, node)) && self.step(0).is_some() {
                waiting.extend(self.bases(file, node, 0));
            }
        }
        let mut members: BTreeMap<&'g str, Option<(u32, u32)>> = BTreeMap::new();
        for (file, class) in classes {
            let Some(outline) = self.files.outline(file) else { continue };
            for node in outline.inside(class) {
                let it = &outline.nodes[node as usize];
                if it.parent == Some(class) && is_method(it.kind) {
                    let only = |known: &mut Option<(u32, u32)>| *known = None;
                    members.entry(outline.word(it.name)).and_modify(only).or_insert(Some((file, node)));
                }
            }
        }
        members
    }
}

fn is_method(kind: Kind) -> bool {
    matches!(kind, Kind::Method | Kind::Getter | Kind::Setter)
}

/// Whether only a function can know it: it is of a class that is defined there.
fn is_in_function(outline: &Outline, node: &Node) -> bool {
    let mut around = node.parent;
    while let Some(node) = around {
        let it = &outline.nodes[node as usize];
        if it.kind.is_callable() {
            return true;
        }
        around = it.parent;
    }
    false
}
