//! Compiled conditions: each knows its key and its value, and checks whether it holds.
//!
//! Cheap ones come first, so that a rule for other requests costs almost nothing.

use super::file::{ACTIONS, Action, DOORS, GITS, KINDS, NETS, Net, PROOFS, Ruling, TIERS, When};
use super::glob::{NameGlobs, PathGlobs};
use super::subject::{Subject, Work};
use super::units::Hours;
use crate::base::Ttl;
use crate::domain::{Door, Git, Proof, Tier, WorkerKind};

/// A rule's conditions, ready to be asked.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) ruling: Ruling,
    pub(super) clauses: Vec<Clause>,
}

/// One condition.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    /// Its key in the file, without `when.`.
    pub(super) key: &'static str,
    /// Its value in the file, for people and for comparison.
    pub(super) wants: Box<str>,
    condition: Condition,
}

#[derive(Clone, Debug)]
enum Condition {
    Action(Vec<Action>),
    Door(Vec<Door>),
    Proof(Vec<Proof>),
    WorkerKind(Vec<WorkerKind>),
    Tier(Vec<Tier>),
    Network(Vec<Net>),
    Git(Vec<Git>),
    PathMissing,
    MaxBytesOver(u64),
    TimeoutOver(Ttl),
    GoalBytesMax(u64),
    GoalBytesOver(u64),
    DepthOver(u32),
    RunningOver(u32),
    Hours(Hours),
    Tool(NameGlobs),
    Client(NameGlobs),
    Worker(NameGlobs),
    Cwd(PathGlobs),
    Path(PathGlobs),
    PathOutside(PathGlobs),
    CommandHas(Vec<Box<str>>),
}

impl Rule {
    /// Compiles the conditions.
    ///
    /// # Errors
    /// A sentence, when the patterns together are too large to compile.
    pub(super) fn compile(ruling: Ruling, when: &When) -> Result<Self, String> {
        let mut clauses = Vec::new();
        compile_words(when, &mut clauses);
        compile_numbers(when, &mut clauses);
        compile_patterns(when, &mut clauses)?;
        Ok(Self { ruling, clauses })
    }

    pub(super) fn matches(&self, subject: &Subject<'_>) -> bool {
        self.clauses.iter().all(|clause| clause.holds(subject))
    }

    /// The first condition that does not hold.
    pub(super) fn fails(&self, subject: &Subject<'_>) -> Option<&Clause> {
        self.clauses.iter().find(|clause| !clause.holds(subject))
    }

    /// Whether every request that `narrower` matches is matched by this rule too. May say no where a closer
    /// look would say yes.
    pub(super) fn covers(&self, narrower: &Rule) -> bool {
        let states = |clause: &Clause| {
            narrower.clauses.iter().any(|it| it.key == clause.key && it.wants == clause.wants)
        };
        self.clauses.iter().all(states)
    }
}

fn compile_words(when: &When, out: &mut Vec<Clause>) {
    if let Some(it) = &when.action {
        out.push(Clause::new("action", names(ACTIONS, it), Condition::Action(it.clone())));
    }
    if let Some(it) = &when.worker_kind {
        out.push(Clause::new("worker_kind", names(KINDS, it), Condition::WorkerKind(it.clone())));
    }
    if let Some(it) = &when.tier {
        out.push(Clause::new("tier", names(TIERS, it), Condition::Tier(it.clone())));
    }
    if let Some(it) = &when.network {
        out.push(Clause::new("network", names(NETS, it), Condition::Network(it.clone())));
    }
    if let Some(it) = &when.git {
        out.push(Clause::new("git", names(GITS, it), Condition::Git(it.clone())));
    }
    if let Some(it) = &when.door {
        out.push(Clause::new("door", names(DOORS, it), Condition::Door(it.clone())));
    }
    if let Some(it) = &when.proof {
        out.push(Clause::new("proof", names(PROOFS, it), Condition::Proof(it.clone())));
    }
    if when.path_missing {
        out.push(Clause::new("path_missing", "true".into(), Condition::PathMissing));
    }
}

fn compile_numbers(when: &When, out: &mut Vec<Clause>) {
    if let Some(it) = when.depth_over {
        out.push(Clause::new("depth_over", it.to_string(), Condition::DepthOver(it)));
    }
    if let Some(it) = when.running_over {
        out.push(Clause::new("running_over", it.to_string(), Condition::RunningOver(it)));
    }
    if let Some(it) = when.goal_bytes_max {
        out.push(Clause::new("goal_bytes_max", it.to_string(), Condition::GoalBytesMax(it)));
    }
    if let Some(it) = when.goal_bytes_over {
        out.push(Clause::new("goal_bytes_over", it.to_string(), Condition::GoalBytesOver(it)));
    }
    if let Some(it) = when.max_bytes_over {
        out.push(Clause::new("max_bytes_over", it.to_string(), Condition::MaxBytesOver(it)));
    }
    if let Some(it) = when.timeout_over {
        let wants = format!("{}s", f64::from(it.as_millis()) / 1000.0);
        out.push(Clause::new("timeout_over", wants, Condition::TimeoutOver(it)));
    }
    if let Some(it) = when.hours {
        out.push(Clause::new("hours", it.to_string(), Condition::Hours(it)));
    }
}

fn compile_patterns(when: &When, out: &mut Vec<Clause>) -> Result<(), String> {
    if let Some(it) = &when.tool {
        out.push(Clause::new("tool", it.join(", "), Condition::Tool(NameGlobs::new(it)?)));
    }
    if let Some(it) = &when.client {
        out.push(Clause::new("client", it.join(", "), Condition::Client(NameGlobs::new(it)?)));
    }
    if let Some(it) = &when.worker {
        out.push(Clause::new("worker", it.join(", "), Condition::Worker(NameGlobs::new(it)?)));
    }
    if let Some(it) = &when.cwd {
        out.push(Clause::new("cwd", it.join(", "), Condition::Cwd(PathGlobs::new(it)?)));
    }
    if let Some(it) = &when.path {
        out.push(Clause::new("path", it.join(", "), Condition::Path(PathGlobs::new(it)?)));
    }
    if let Some(it) = &when.path_outside {
        out.push(Clause::new("path_outside", it.join(", "), Condition::PathOutside(PathGlobs::new(it)?)));
    }
    if let Some(it) = &when.command_has {
        out.push(Clause::new("command_has", it.join(", "), Condition::CommandHas(it.clone())));
    }
    Ok(())
}

impl Clause {
    fn new(key: &'static str, wants: String, condition: Condition) -> Self {
        Self { key, wants: wants.into(), condition }
    }

    pub(super) fn holds(&self, subject: &Subject<'_>) -> bool {
        match &self.condition {
            Condition::Action(it) => it.contains(&subject.action),
            Condition::Door(it) => it.contains(&subject.door),
            Condition::Proof(it) => it.contains(&subject.proof),
            Condition::Client(it) => it.matches(subject.client),
            Condition::Hours(it) => it.hold(subject.now),
            other => subject.work.as_ref().is_some_and(|work| holds_for(other, work)),
        }
    }

    /// What the request has instead, for people.
    pub(super) fn found(&self, subject: &Subject<'_>) -> String {
        match &self.condition {
            Condition::Action(_) => names(ACTIONS, &[subject.action]),
            Condition::Door(_) => subject.door.name().to_owned(),
            Condition::Proof(_) => names(PROOFS, &[subject.proof]),
            Condition::Client(_) => subject.client.to_owned(),
            Condition::Hours(_) => subject.now.to_string(),
            other => {
                subject.work.as_ref().and_then(|work| found_in(other, work)).unwrap_or("nothing".to_owned())
            }
        }
    }
}

/// Conditions on what only a delegation has.
fn holds_for(condition: &Condition, work: &Work<'_>) -> bool {
    match condition {
        Condition::WorkerKind(it) => work.kind.is_some_and(|kind| it.contains(&kind)),
        Condition::Tier(it) => work.tier.is_some_and(|tier| it.contains(&tier)),
        Condition::Network(it) => it.contains(&Net::of(&work.network)),
        Condition::Git(it) => it.contains(&work.git),
        Condition::PathMissing => work.path.is_none(),
        Condition::MaxBytesOver(it) => work.max_bytes.is_some_and(|bytes| bytes > *it),
        Condition::TimeoutOver(it) => {
            work.timeout_s.is_some_and(|s| s.saturating_mul(1000) > u64::from(it.as_millis()))
        }
        Condition::GoalBytesMax(it) => work.goal_bytes <= *it,
        Condition::GoalBytesOver(it) => work.goal_bytes > *it,
        Condition::DepthOver(it) => work.depth > *it,
        Condition::RunningOver(it) => work.running > *it,
        Condition::Tool(it) => it.matches(work.tool),
        Condition::Worker(it) => it.matches(work.worker),
        Condition::Cwd(it) => {
            let place = work.place.as_ref();
            place.is_some_and(|place| it.matches(&place.relative) || it.matches(&place.absolute))
        }
        Condition::Path(it) => work.path.as_ref().is_some_and(|path| it.matches(path)),
        Condition::PathOutside(it) => work.path.as_ref().is_some_and(|path| !it.matches(path)),
        Condition::CommandHas(it) => {
            work.command.is_some_and(|command| it.iter().any(|phrase| says(command, phrase)))
        }
        Condition::Action(_)
        | Condition::Door(_)
        | Condition::Proof(_)
        | Condition::Client(_)
        | Condition::Hours(_) => false,
    }
}

fn found_in(condition: &Condition, work: &Work<'_>) -> Option<String> {
    let place = || work.place.as_ref().map(|place| place.absolute.to_string());
    match condition {
        Condition::WorkerKind(_) => work.kind.map(|it| names(KINDS, &[it])),
        Condition::Tier(_) => work.tier.map(|it| names(TIERS, &[it])),
        Condition::Network(_) => Some(work.network.name().to_owned()),
        Condition::Git(_) => Some(names(GITS, &[work.git])),
        Condition::Path(_) | Condition::PathOutside(_) | Condition::PathMissing => {
            work.path.as_ref().map(ToString::to_string)
        }
        Condition::MaxBytesOver(_) => work.max_bytes.map(|it| it.to_string()),
        Condition::TimeoutOver(_) => work.timeout_s.map(|it| format!("{it}s")),
        Condition::GoalBytesMax(_) | Condition::GoalBytesOver(_) => Some(work.goal_bytes.to_string()),
        Condition::DepthOver(_) => Some(work.depth.to_string()),
        Condition::RunningOver(_) => Some(work.running.to_string()),
        Condition::Tool(_) => Some(work.tool.to_owned()),
        Condition::Worker(_) => Some(work.worker.to_owned()),
        Condition::Cwd(_) => place(),
        Condition::CommandHas(_) => work.command.map(str::to_owned),
        _ => None,
    }
}

/// The words of a command: runs of letters, digits and `_`. So `/usr/bin/sudo` says `sudo`, `pseudo` does
/// not.
pub(super) fn command_words(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether the words of a phrase occur one after the other.
fn says(command: &str, phrase: &str) -> bool {
    let mut rest = command_words(command);
    loop {
        let mut here = rest.clone();
        if command_words(phrase).all(|word| here.next().is_some_and(|it| it.eq_ignore_ascii_case(word))) {
            return true;
        }
        if rest.next().is_none() {
            return false;
        }
    }
}

/// Words of a table, as written in rules.
pub(super) fn names<T: Copy + PartialEq>(table: &[(&'static str, T)], values: &[T]) -> String {
    let known = |value: &T| table.iter().find(|(_, it)| it == value).map(|(name, _)| *name);
    values.iter().filter_map(known).collect::<Vec<_>>().join(", ")
}
