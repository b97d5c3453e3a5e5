//! The judge with compiled rules.
//!
//! The judge checks all rules. The strictest matching rule wins: deny, then approve, then allow; without a match,
//! the request is denied. The first rule of the winning kind, in the order of the file, gives its name and reason.
//! A permission carries the limits of every matching allow and approve rule, the tightest of each.
//!
//! A rule set has a base, which alone can permit, and layers over it, which can only restrict further: a
//! request that the base does not match is denied, regardless of the layers.

use std::sync::Arc;

use super::file::{Ask, File, Limit, Ruling, cannot_wait};
use super::parse::approver_rank;
use super::reader::{Notes, Problems};
use super::request::Request;
use super::rule::Rule;
use super::subject::{Subject, Work};
use provost_base::{Digest, RuleId, Ttl};
use provost_domain::{
    Approver, Command, Credentials, Decision, Facts, Git, Judge, Network, Principal, Rate, Terms, Tier,
    WorkerKind,
};

/// The reason of a denial when no rule matches.
const NO_RULE: &str = "no rule allows this";

/// The reason why a rule that does not name tier `job` does not permit it.
pub const JOB_UNNAMED: &str = "the worker would run in tier job, in which it reads whatever its user may read and the \
     network is open; only a rule that names the tier lets it run: when.tier = [\"job\"]";

/// The reason why a rule that does not name writing to the repository does not permit it.
pub const GIT_UNNAMED: &str = "the worker may write to the repository itself, where what it stages, hides or moves decides what \
     a review shows; only a rule that names that lets it run: when.git = [\"write\"]";

/// The rules of one file, checked and compiled.
#[derive(Clone, Debug)]
pub struct Layer {
    file: File,
    compiled: Vec<Rule>,
}

impl Layer {
    /// Reads a rule file, compiles it and tries its examples.
    ///
    /// # Errors
    /// All mistakes in the file, with lines.
    pub fn parse(text: &str, name: &str) -> Result<Self, Problems> {
        let layer = Self::compile(File::parse(text, name)?)?;
        let mut notes = Notes::new(name, text);
        layer.try_examples(&mut notes);
        notes.finish(layer)
    }

    /// Compiles rules that have been read.
    ///
    /// # Errors
    /// Patterns that are too large to compile.
    pub fn compile(file: File) -> Result<Self, Problems> {
        let mut notes = Notes::new(&file.name, "");
        let mut compiled = Vec::with_capacity(file.rules.len());
        for rule in &file.rules {
            match Rule::compile(rule.decision, &rule.when) {
                Ok(it) => compiled.push(it),
                Err(why) => notes.add_line(rule.line, format!("`when`: {why}")),
            }
        }
        notes.finish(())?;
        Ok(Self { file, compiled })
    }

    /// Returns the rules as they were read.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns each rule with its compiled conditions, in the order of the file.
    pub(super) fn rules(&self) -> impl Iterator<Item = Matched<'_>> {
        self.file.rules.iter().zip(&self.compiled).map(|(rule, compiled)| Matched { rule, compiled })
    }

    fn try_examples(&self, notes: &mut Notes<'_>) {
        let alone = RuleSet::new(self.clone());
        for Matched { rule, compiled } in self.rules() {
            for example in &rule.examples {
                let subject = example.request.subject();
                let failed = compiled.fails(&subject);
                let decision = alone.judge(&subject);
                let what = match (example.matches, failed) {
                    (false, None) => format!("an example of what `{}` is not about matches it", rule.id),
                    (true, Some(clause)) => format!(
                        "an example of `{}` does not match it: when.{} wants {}, the example has {}",
                        rule.id,
                        clause.key,
                        clause.wants,
                        clause.found(&subject)
                    ),
                    (true, None) if ruling_of(&decision) != rule.decision => format!(
                        "an example of `{}` matches it, but the file as a whole says {} because of `{}`",
                        rule.id,
                        ruling_of(&decision).name(),
                        rule_of(&decision)
                    ),
                    _ => continue,
                };
                notes.add_line(example.line, format!("{what}; correct the example or the rules"));
            }
        }
    }
}

/// A rule in both its forms.
#[derive(Clone, Copy)]
pub(super) struct Matched<'r> {
    pub(super) rule: &'r super::file::Rule,
    pub(super) compiled: &'r Rule,
}

/// The rules in force. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RuleSet {
    layers: Arc<[Layer]>,
    version: Digest,
}

impl RuleSet {
    /// Makes a rule set of one file, with no layer over it.
    pub fn new(base: Layer) -> Self {
        Self::layered(base, Vec::new())
    }

    /// Returns the digest of all rules, which identifies one version of them.
    pub fn digest(&self) -> Digest {
        self.version
    }

    /// Makes a rule set of a base and layers over it, which can only restrict further.
    pub fn layered(base: Layer, tighter: Vec<Layer>) -> Self {
        let layers: Arc<[Layer]> = std::iter::once(base).chain(tighter).collect();
        let normal: Vec<&File> = layers.iter().map(Layer::file).collect();
        // Provost's own types always encode.
        let normal = serde_json::to_string(&normal).unwrap_or_default();
        Self { version: Digest::of(normal.as_bytes()), layers }
    }

    /// Reads one file's rules.
    ///
    /// # Errors
    /// All mistakes in the file.
    pub fn parse(text: &str, name: &str) -> Result<Self, Problems> {
        Layer::parse(text, name).map(Self::new)
    }

    /// Returns the base first, then the layers over it.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Judges a hand-written request.
    pub fn decide_request(&self, request: &Request) -> Decision {
        self.judge(&request.subject())
    }

    pub(super) fn judge(&self, subject: &Subject<'_>) -> Decision {
        if let Some(why) = subject.work.as_ref().and_then(|work| work.refused.as_deref()) {
            return deny(&named("sandbox"), why);
        }
        let mut found = Found::default();
        for (height, layer) in self.layers.iter().enumerate() {
            for matched in layer.rules() {
                if !matched.compiled.matches(subject) {
                    continue;
                }
                if matched.compiled.ruling == Ruling::Deny {
                    return deny(&matched.rule.id, &matched.rule.reason);
                }
                found.add(matched.rule);
                found.names_job |= height == 0 && names_job(matched.rule);
                found.names_git |= height == 0 && names_git(matched.rule);
                found.let_secrets(matched.rule.limit.credentials, height == 0);
            }
            if height == 0 && found.is_empty() {
                return deny(&named("no-rule"), NO_RULE);
            }
        }
        found.decide(subject)
    }
}

impl Judge for RuleSet {
    fn decide(&self, who: &Principal, command: &Command, facts: &Facts) -> Decision {
        match Subject::of(who, command, facts) {
            Some(subject) => self.judge(&subject),
            None => deny(&named("no-rule"), NO_RULE),
        }
    }

    fn version(&self) -> Digest {
        self.version
    }
}

fn named(id: &str) -> RuleId {
    RuleId::parse(id).expect("a constant that is a valid id")
}

fn deny(rule: &RuleId, reason: &str) -> Decision {
    Decision::Deny { rule: rule.clone(), reason: reason.into() }
}

pub(super) fn ruling_of(decision: &Decision) -> Ruling {
    match decision {
        Decision::Allow { .. } => Ruling::Allow,
        Decision::NeedApproval { .. } => Ruling::Approve,
        Decision::Deny { .. } => Ruling::Deny,
    }
}

pub(super) fn rule_of(decision: &Decision) -> &RuleId {
    match decision {
        Decision::Allow { rule, .. } | Decision::NeedApproval { rule, .. } | Decision::Deny { rule, .. } => {
            rule
        }
    }
}

/// Checks whether a rule names tier `job`, so that its author has considered it.
pub(super) fn names_job(rule: &super::file::Rule) -> bool {
    let listed = rule.when.tier.as_ref().is_some_and(|tiers| tiers.contains(&Tier::Job));
    listed || rule.limit.tier_min == Some(Tier::Job)
}

/// Checks whether a rule names `git = "write"`, so that its author has considered workers that write to the
/// repository.
fn names_git(rule: &super::file::Rule) -> bool {
    rule.when.git.as_ref().is_some_and(|may| may.contains(&Git::Write))
}

/// The sum of the rules that permit a request.
#[derive(Default)]
struct Found<'r> {
    allow: Option<&'r RuleId>,
    approve: Option<(&'r RuleId, &'r str)>,
    terms: Terms,
    tier_by: Option<&'r RuleId>,
    names_job: bool,
    names_git: bool,
    hosts: Option<Vec<&'r str>>,
    ask: Option<Met<'r>>,
}

impl<'r> Found<'r> {
    fn is_empty(&self) -> bool {
        self.allow.is_none() && self.approve.is_none()
    }

    fn add(&mut self, rule: &'r super::file::Rule) {
        match &rule.ask {
            Some(ask) => {
                self.approve.get_or_insert((&rule.id, &rule.reason));
                self.ask = Some(meet(self.ask.take(), ask));
            }
            None => {
                self.allow.get_or_insert(&rule.id);
            }
        }
        self.tighten(&rule.limit, &rule.id);
    }

    fn tighten(&mut self, limit: &'r Limit, id: &'r RuleId) {
        let terms = &mut self.terms;
        if limit.tier_min > terms.tier_min {
            terms.tier_min = limit.tier_min;
            self.tier_by = Some(id);
        }
        terms.timeout = least(terms.timeout, limit.timeout);
        terms.memory = least(terms.memory, limit.memory);
        terms.processes = least(terms.processes, limit.processes);
        terms.concurrent = least(terms.concurrent, limit.concurrent);
        terms.rate = slower(terms.rate, limit.rate);
        terms.retries = least(terms.retries, limit.retries);
        if let Some(hosts) = &limit.hosts {
            let admitted = |host: &str| hosts.iter().any(|it| &**it == host);
            self.hosts = Some(match self.hosts.take() {
                Some(known) => known.into_iter().filter(|host| admitted(host)).collect(),
                None => hosts.iter().map(|it| &**it).collect(),
            });
        }
    }

    /// Limits how far secrets may go. If the base is silent, they stay in the proxy, and no layer over it can let
    /// them out.
    fn let_secrets(&mut self, limit: Option<Credentials>, is_base: bool) {
        let Some(limit) = limit else { return };
        let known = self.terms.credentials.or((!is_base).then_some(Credentials::Proxy));
        self.terms.credentials = least(known, Some(limit));
    }

    fn decide(self, subject: &Subject<'_>) -> Decision {
        // All that denies comes before the question: no person is asked to approve what is then refused.
        if let (Some((rule, _)), Some(why)) = (self.approve, cannot_wait(subject.action)) {
            return deny(rule, why);
        }
        if let Some(why) = subject.work.as_ref().and_then(|work| too_weak(work, self.terms.tier_min))
            && let Some(rule) = self.tier_by
        {
            return deny(rule, &why);
        }
        if subject.work.as_ref().is_some_and(|work| work.tier == Some(Tier::Job))
            && !self.names_job
            && let Some(rule) = self.approve.map(|(rule, _)| rule).or(self.allow)
        {
            return deny(rule, JOB_UNNAMED);
        }
        if subject.work.as_ref().is_some_and(|work| work.git == Git::Write)
            && !self.names_git
            && let Some(rule) = self.approve.map(|(rule, _)| rule).or(self.allow)
        {
            return deny(rule, GIT_UNNAMED);
        }
        if let Some(why) = subject.work.as_ref().and_then(|work| too_far(work, self.terms.credentials))
            && let Some(rule) = self.approve.map(|(rule, _)| rule).or(self.allow)
        {
            return deny(rule, &why);
        }
        let mut terms = self.terms;
        if let Some(Network::Hosts(wanted)) = subject.work.as_ref().map(|work| &*work.network) {
            let admitted = |host: &str| match &self.hosts {
                Some(hosts) => hosts.iter().any(|it| it.eq_ignore_ascii_case(host)),
                None => true,
            };
            terms.hosts = wanted.iter().filter(|host| admitted(host)).cloned().collect();
        }
        match (self.approve, self.ask, self.allow) {
            (Some((rule, _)), Some(met), _) if met.by.is_empty() => {
                deny(rule, "several rules ask for approval, and no approver is accepted by all of them")
            }
            (Some((rule, reason)), Some(met), _) => Decision::NeedApproval {
                rule: rule.clone(),
                reason: reason.into(),
                terms,
                wait: met.wait,
                again: met.again,
                by: met.by.into_iter().cloned().collect(),
            },
            (_, _, Some(rule)) => Decision::Allow { rule: rule.clone(), terms },
            _ => deny(&named("no-rule"), NO_RULE),
        }
    }
}

/// Returns the reason why the worker cannot meet the least tier, if it cannot. The request is then denied at once
/// rather than at the worker's start: the daemon does not start polling workers, and could not enforce the term on
/// them.
fn too_weak(work: &Work<'_>, least: Option<Tier>) -> Option<String> {
    let least = least.filter(|least| work.tier < Some(*least))?;
    let least = least.name();
    Some(match (work.tier, work.kind) {
        (Some(tier), _) => {
            format!("this rule wants tier {least} at least, and the worker would run in tier {}", tier.name())
        }
        (None, Some(WorkerKind::Polling)) => {
            format!("this rule wants tier {least} at least, and no jail binds a polling worker")
        }
        (None, _) => format!("this rule wants tier {least} at least, and the worker has no confinement"),
    })
}

/// Returns the reason of a denial if a secret would go further than the rules that let the worker run permit; if
/// no rule says anything, further than the proxy.
fn too_far(work: &Work<'_>, most: Option<Credentials>) -> Option<String> {
    let most = most.unwrap_or(Credentials::Proxy);
    let wanted = work.credentials.filter(|wanted| *wanted > most)?;
    Some(format!(
        "a secret of the worker would be given as {}, and the rules let it go no further than {}; \
         a rule that means it says limit.credentials",
        wanted.name(),
        most.name()
    ))
}

/// The approval that all rules together demand.
struct Met<'r> {
    by: Vec<&'r Approver>,
    wait: Ttl,
    again: u32,
}

fn meet<'r>(known: Option<Met<'r>>, ask: &'r Ask) -> Met<'r> {
    match known {
        None => Met { by: widest(ask.by.iter().collect()), wait: ask.expires, again: ask.again },
        Some(Met { by, wait, again }) => {
            let both = by.iter().flat_map(|it| ask.by.iter().filter_map(|other| it.narrower(other)));
            Met { by: widest(both.collect()), wait: wait.min(ask.expires), again: again.min(ask.again) }
        }
    }
}

/// Returns the approvers without those that another one of them covers.
fn widest(mut by: Vec<&Approver>) -> Vec<&Approver> {
    let mut kept: Vec<&Approver> = Vec::with_capacity(by.len());
    by.sort_by(|one, other| approver_rank(one).cmp(&approver_rank(other)));
    for it in by {
        if !kept.iter().any(|wider| wider.covers(it)) {
            kept.push(it);
        }
    }
    kept
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Returns the rate that lets less through in the long run; of equal ones the one with the shorter burst.
fn slower(a: Option<Rate>, b: Option<Rate>) -> Option<Rate> {
    let (Some(one), Some(other)) = (a, b) else { return a.or(b) };
    let uses = |rate: Rate, per: Ttl| u64::from(rate.count) * u64::from(per.as_millis());
    let other_is_slower = (uses(other, one.per), other.count) < (uses(one, other.per), one.count);
    Some(if other_is_slower { other } else { one })
}
