//! Full names, by which other files know a file's definitions: the namespace's name and their own.

use super::walk::Walk;
use super::{Export, Exported};
use provost_base::limits::SOURCE_FACTS_MAX;

impl Walk<'_> {
    /// The path of the type around, from the innermost function on that it is in.
    pub(super) fn own_type(&self) -> Option<String> {
        let mut around = self.scope.owner;
        let mut names: Vec<&str> = Vec::new();
        while let Some(at) = around {
            let symbol = &self.facts.symbols[at as usize];
            match (symbol.kind.has_members(), names.is_empty()) {
                (true, _) => names.push(symbol.name()),
                (false, true) => {}
                (false, false) => break,
            }
            around = symbol.parent;
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join("."))
    }

    /// Exports all that is at the top of the file by its full name.
    pub(super) fn export_by_full_name(&mut self, namespace: &str) {
        let tops = 0..self.facts.symbols.len();
        for at in tops.filter(|at| self.facts.symbols[*at].parent.is_none()).collect::<Vec<_>>() {
            self.export_one(namespace, at);
        }
    }

    /// Exports one symbol by its full name.
    pub(super) fn export_one(&mut self, namespace: &str, at: usize) {
        let path = self.facts.symbols[at].path.clone();
        let name = self.facts.symbols[at].name();
        let full = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") };
        self.export_as(full, path);
    }

    /// Exports something of the file under a name, once, if there is room.
    pub(super) fn export_as(&mut self, name: String, path: Box<str>) {
        let is_known = self.facts.exports.last().is_some_and(|last| *last.name == *name);
        if is_known || self.facts.exports.len() >= SOURCE_FACTS_MAX || !self.spend(2 * name.len()) {
            return;
        }
        self.facts.exports.push(Export { name: name.into(), what: Exported::Local(path) });
    }
}
