//! A rule's conditions, compiled.

use super::condition::{Clause, When};
use super::file::Ruling;
use super::subject::Subject;

/// A rule's conditions, ready for a check.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) ruling: Ruling,
    pub(super) clauses: Vec<Clause>,
}

impl Rule {
    /// Compiles the conditions of a rule.
    ///
    /// # Errors
    /// A sentence, if the patterns together are too large to compile.
    pub(super) fn compile(ruling: Ruling, when: &When) -> Result<Self, String> {
        Ok(Self { ruling, clauses: when.compile(ruling)? })
    }

    pub(super) fn matches(&self, subject: &Subject<'_>) -> bool {
        self.clauses.iter().all(|clause| clause.holds(subject))
    }

    /// Returns the first condition that does not hold.
    pub(super) fn fails(&self, subject: &Subject<'_>) -> Option<&Clause> {
        self.clauses.iter().find(|clause| !clause.holds(subject))
    }

    /// Checks whether this rule matches every request that `narrower` matches. May return `false` where a closer
    /// look would find `true`.
    pub(super) fn covers(&self, narrower: &Rule) -> bool {
        let states = |clause: &Clause| {
            narrower.clauses.iter().any(|it| it.key == clause.key && it.wants == clause.wants)
        };
        self.clauses.iter().all(states)
    }
}
