//! Checks a policy before it comes into force.

use super::condition::When;
use super::explain::Outcome;
use super::file::{Action, Ruling};
use super::judge::{Layer, Matched, RuleSet, rule_of, ruling_of};
use super::reader::Problem;
use super::request::{Case, Request};
use super::subject::Subject;
use provost_base::Digest;
use provost_domain::{Approver, Judge, WorkerKind};

/// The findings about a rule file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Mistakes; with any of them the file is refused.
    pub problems: Vec<Problem>,
    /// Rules that are valid, but hardly intended by their author.
    pub warnings: Vec<Problem>,
    /// The number of rules in the file; 0 if it does not load.
    pub rules: usize,
    /// The version of the rules, if the file loads.
    pub version: Option<Digest>,
}

impl Report {
    /// Checks whether the file would be accepted.
    pub fn loads(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Checks a rule file.
pub fn check(text: &str, name: &str) -> Report {
    match Layer::parse(text, name) {
        Err(problems) => Report { problems: problems.0, warnings: Vec::new(), rules: 0, version: None },
        Ok(layer) => Report {
            problems: Vec::new(),
            warnings: warnings(&layer, name),
            rules: layer.file().rules.len(),
            version: Some(RuleSet::new(layer).version()),
        },
    }
}

/// Returns the rules that only a passkey can answer: while none is enrolled, their requests expire as denials.
/// Empty for a file that does not load.
pub fn by_passkey_alone(text: &str, name: &str) -> Vec<Problem> {
    let Ok(layer) = Layer::parse(text, name) else { return Vec::new() };
    let alone = |it: &Matched<'_>| it.rule.ask.as_ref().is_some_and(|ask| is_passkey_alone(&ask.by));
    let problem = |it: Matched<'_>| {
        let what = format!("rule `{}` {PASSKEY_MISSING}", it.rule.id).into();
        Problem { file: name.into(), line: it.rule.line, what }
    };
    layer.rules().filter(alone).map(problem).collect()
}

/// Checks whether only a passkey may answer.
pub fn is_passkey_alone(by: &[Approver]) -> bool {
    !by.is_empty() && by.iter().all(|it| *it == Approver::Passkey)
}

/// The text for a rule that only a passkey can answer, while none is enrolled.
pub const PASSKEY_MISSING: &str = "lets only a passkey answer, and none is enrolled: what it asks about expires as a denial; enrol one on the page: provost passkey add";

fn warnings(layer: &Layer, name: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    let rules: Vec<Matched<'_>> = layer.rules().collect();
    for (i, it) in rules.iter().enumerate() {
        let stricter = rules
            .iter()
            .find(|other| other.compiled.ruling > it.compiled.ruling && other.compiled.covers(it.compiled));
        let repeated = rules[..i].iter().find(|other| {
            it.compiled.ruling == Ruling::Deny
                && other.compiled.ruling == Ruling::Deny
                && other.compiled.covers(it.compiled)
        });
        let shadow = stricter.or(repeated).map(|other| {
            format!(
                "can never decide: `{}` in line {} says {} to everything it matches",
                other.rule.id,
                other.rule.line,
                other.rule.decision.name()
            )
        });
        for what in
            shadow.into_iter().chain(impossible(&it.rule.when)).chain(unmeetable(it)).chain(evaded(it))
        {
            let what = format!("rule `{}` {what}", it.rule.id).into();
            found.push(Problem { file: name.into(), line: it.rule.line, what });
        }
    }
    if !rules.iter().any(|it| it.compiled.ruling != Ruling::Deny) {
        let what = "no rule allows anything, so that everything is denied".into();
        found.push(Problem { file: name.into(), line: 1, what });
    }
    found
}

/// Returns conditions that no request can meet together.
fn impossible(when: &When) -> Option<String> {
    let leaves_out = |action| when.action.as_ref().is_some_and(|it| !it.contains(&action));
    let (work, call) = (Request::any_work(), Request::any_call());
    let fits = [(Action::Delegate, &work), (Action::Permission, &call)];
    let fits = fits.iter().any(|(action, it)| !leaves_out(*action) && !when.needs_more_than(&it.subject()));
    let why = if !fits && when.needs_more_than(&Subject::WITHOUT_WORK) {
        "only a delegation has a worker and a directory, and only a delegation and a permission have a tool; \
         `when.action` leaves them out, or no request has all that is asked for"
    } else if when.path_missing.is_some() && (when.path.is_some() || when.path_outside.is_some()) {
        "`path_missing` contradicts the conditions on the path"
    } else if when
        .goal_bytes_max
        .is_some_and(|most| when.goal_bytes_over.is_some_and(|over| over.0 >= most.0))
    {
        "`goal_bytes_over` leaves nothing below `goal_bytes_max`"
    } else if when.tier.is_some() && when.worker_kind.as_ref().is_some_and(|it| it.0 == [WorkerKind::Polling])
    {
        "a polling worker has no tier"
    } else {
        return None;
    };
    Some(format!("can never match: {why}"))
}

/// Returns limits that always end in a denial.
fn unmeetable(it: &Matched<'_>) -> Option<String> {
    let polling = it.rule.when.worker_kind.as_ref().is_some_and(|it| it.0 == [WorkerKind::Polling]);
    let least = it.rule.limit.tier_min?;
    let weaker = it.rule.when.tier.as_ref().is_some_and(|tiers| tiers.0.iter().all(|tier| *tier < least));
    (polling || weaker)
        .then(|| "denies what it matches: `limit.tier_min` asks for more than such a worker has".to_owned())
}

/// Finds short options combined in one word, which a command may separate or reorder.
fn evaded(it: &Matched<'_>) -> Option<String> {
    let commands = it.rule.when.command.as_ref().filter(|_| it.compiled.ruling != Ruling::Allow)?;
    let is_bundle = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        (2..=4).contains(&letters.len()) && letters.chars().all(|it| it.is_ascii_alphabetic())
    };
    let (pattern, word) =
        commands.0.iter().find_map(|it| Some((it, it.split(' ').skip(1).find(|word| is_bundle(word))?)))?;
    let program = pattern.split(' ').next().unwrap_or_default();
    Some(format!(
        "does not see the options of `{word}` apart or in another order (`{pattern}`): write `{program} **` to stop all of them"
    ))
}

/// A line of a test table whose answer was not the expected one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// The line of the test table, with its request.
    pub case: Case,
    /// The rules' answer to that request.
    pub outcome: Outcome,
}

/// Puts every request of a test table to the rules; returns those with another answer.
pub fn run_cases(rules: &RuleSet, cases: &[Case]) -> Vec<Failed> {
    let mut failed = Vec::new();
    for case in cases {
        let decision = rules.decide_request(&case.request);
        let as_expected = ruling_of(&decision) == case.expect
            && case.rule.as_ref().is_none_or(|rule| rule == rule_of(&decision));
        if !as_expected {
            failed.push(Failed { case: case.clone(), outcome: Outcome::of(rules, &decision) });
        }
    }
    failed
}

/// A request that two policies answer differently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The request's place in the list, counted from zero.
    pub index: usize,
    /// The answer of the old policy.
    pub before: Outcome,
    /// The answer of the new one.
    pub after: Outcome,
}

/// Returns the requests whose decision, terms or approvers change from one policy to another. A different rule with
/// the same effect is no difference.
pub fn diff(old: &RuleSet, new: &RuleSet, requests: &[Request]) -> Vec<Difference> {
    let mut changed = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let before = Outcome::of(old, &old.decide_request(request));
        let after = Outcome::of(new, &new.decide_request(request));
        let says = |it: &Outcome| (it.decision, it.terms.clone(), it.wait, it.by.clone());
        if says(&before) != says(&after) {
            changed.push(Difference { index, before, after });
        }
    }
    changed
}
