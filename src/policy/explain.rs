//! Explains the answer to a request: every rule, with the first condition that failed.

use std::fmt;

use serde::Serialize;

use super::file::Ruling;
use super::judge::{Matched, RuleSet, rule_of, ruling_of};
use super::request::Request;
use super::subject::Subject;
use provost_base::{Digest, RuleId, Ttl};
use provost_domain::{Approver, Command, Decision, Facts, Judge, Principal, Terms, approvers_text};

/// A decision as data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Outcome {
    /// Allow, approve or deny.
    pub decision: Ruling,
    /// The name of the rule that decided; `no-rule` when none matched.
    pub rule: RuleId,
    /// The rule's reason, for callers and approvers.
    pub reason: Box<str>,
    /// The limits of the permission.
    pub terms: Option<Terms>,
    /// The time that an approval waits for an answer.
    pub wait: Option<Ttl>,
    /// The number of times that the question is repeated after that, before it counts as denied.
    pub again: u32,
    /// The kinds of approvers whose answer counts; empty unless the decision is to approve.
    pub by: Vec<Approver>,
}

/// One rule's part in a decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleTrace {
    /// The rule's name.
    pub id: RuleId,
    /// The name of the rule's file.
    pub file: Box<str>,
    /// The line at which it begins in that file, from 1.
    pub line: usize,
    /// The rule's ruling for requests that match.
    pub decision: Ruling,
    /// Whether all of its conditions hold for the request.
    pub matched: bool,
    /// The first condition that did not hold; others may not hold either.
    pub first_failed: Option<Unmet>,
}

/// A condition that did not hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unmet {
    /// The key in the file, with `when.`.
    pub key: Box<str>,
    /// The value that the rule names.
    pub wants: Box<str>,
    /// The value that the request has.
    pub found: Box<str>,
}

/// A decision and its derivation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explanation {
    /// The answer to the request.
    pub outcome: Outcome,
    /// Every rule, in the order of the check.
    pub rules: Vec<RuleTrace>,
    /// The digest of the rules.
    pub version: Digest,
}

/// Explains a decision; it is the one that [`Judge::decide`] gives.
pub fn explain(rules: &RuleSet, who: &Principal, command: &Command, facts: &Facts) -> Explanation {
    let traces = match Subject::of(who, command, facts) {
        Some(subject) => traces(rules, &subject),
        None => Vec::new(),
    };
    explained(rules, &rules.decide(who, command, facts), traces)
}

/// Explains the decision about a hand-written request.
pub fn explain_request(rules: &RuleSet, request: &Request) -> Explanation {
    let subject = request.subject();
    explained(rules, &rules.judge(&subject), traces(rules, &subject))
}

fn explained(rules: &RuleSet, decision: &Decision, traces: Vec<RuleTrace>) -> Explanation {
    Explanation { outcome: Outcome::of(rules, decision), rules: traces, version: rules.version() }
}

fn traces(rules: &RuleSet, subject: &Subject<'_>) -> Vec<RuleTrace> {
    let mut traces = Vec::new();
    for layer in rules.layers() {
        for Matched { rule, compiled } in layer.rules() {
            let failed = compiled.fails(subject);
            traces.push(RuleTrace {
                id: rule.id.clone(),
                file: layer.file().name.clone(),
                line: rule.line,
                decision: rule.decision,
                matched: failed.is_none(),
                first_failed: failed.map(|clause| Unmet {
                    key: format!("when.{}", clause.key).into(),
                    wants: clause.wants.clone(),
                    found: clause.found(subject).into(),
                }),
            });
        }
    }
    traces
}

impl Outcome {
    pub(super) fn of(rules: &RuleSet, decision: &Decision) -> Self {
        let (reason, terms, wait, again, by) = match decision {
            Decision::Allow { rule, terms } => (reason_of(rules, rule), Some(terms), None, 0, Vec::new()),
            Decision::NeedApproval { reason, terms, wait, again, by, .. } => {
                (reason.clone(), Some(terms), Some(*wait), *again, by.clone())
            }
            Decision::Deny { reason, .. } => (reason.clone(), None, None, 0, Vec::new()),
        };
        let (decision, rule) = (ruling_of(decision), rule_of(decision).clone());
        Self { decision, rule, reason, terms: terms.cloned(), wait, again, by }
    }
}

/// Returns the reason of a rule that allows. A permission does not carry it, but a person who wants an explanation needs it.
fn reason_of(rules: &RuleSet, id: &RuleId) -> Box<str> {
    let mut all = rules.layers().iter().flat_map(|layer| &layer.file().rules);
    all.find(|rule| rule.id == *id && rule.decision == Ruling::Allow)
        .map(|rule| rule.reason.clone())
        .unwrap_or_default()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}: {}", self.decision.name(), self.rule, self.reason)?;
        if let Some(wait) = self.wait {
            let again = match self.again {
                0 => String::new(),
                1 => ", asked again once".into(),
                times => format!(", asked again {times} times"),
            };
            write!(f, " (ask {} within {}s{again})", approvers_text(&self.by), wait.as_seconds())?;
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.outcome)?;
        for rule in &self.rules {
            let mark = if rule.matched { "matches" } else { "-" };
            write!(f, "  {:<8} {:<8} {} ({}:{})", mark, rule.decision.name(), rule.id, rule.file, rule.line)?;
            if let Some(unmet) = &rule.first_failed {
                write!(f, ": {} wants {}, found {}", unmet.key, unmet.wants, unmet.found)?;
            }
            writeln!(f)?;
        }
        write!(f, "policy {}", self.version.short())
    }
}
