//! A second evaluator, written for clarity and not for speed.
//!
//! It starts from the rules as read and the request as written, shares no matching code with the compiled
//! one, and repeats all work for every request. Differential tests compare the two;
//! when they disagree, this one is usually right.

use std::collections::BTreeSet;

use super::naive_calls;
use provost_base::{AgentId, RuleId, Ttl, later};
use provost_domain::{Action, Approver, Credentials, Decision, Git, Rate, Terms, Tier, WorkerKind};
use provost_policy::{
    APPROVAL_WAIT, File, GIT_UNNAMED, Hours, JOB_UNNAMED, Missing, Net, Request, Rule, Ruling, Stated,
    cannot_wait,
};

/// Judges a request by the files given, the base first.
pub fn decide(files: &[&File], request: &Request) -> Decision {
    let delegates = request.action == Action::Delegate;
    let place = locate(request);
    if delegates && let Err(why) = &place {
        return no("sandbox", why);
    }
    let place = place.unwrap_or_default();
    let matching = |file: &&File| -> Vec<Rule> {
        file.rules.iter().filter(|rule| applies(rule, request, &place)).cloned().collect()
    };
    let by_layer: Vec<Vec<Rule>> = files.iter().map(matching).collect();
    let base_is_silent = by_layer.first().is_none_or(Vec::is_empty);
    let all: Vec<Rule> = by_layer.concat();
    let first = |ruling: Ruling| all.iter().find(|rule| rule.decision == ruling);

    if base_is_silent {
        return no("no-rule", "no rule allows this");
    }
    if let Some(rule) = first(Ruling::Deny) {
        return no(rule.id.as_str(), &rule.reason);
    }
    if let Some(why) = cannot_wait(request.action)
        && let Some(rule) = first(Ruling::Approve)
    {
        return no(rule.id.as_str(), why);
    }
    let mut terms = terms_of(&all, request);
    let secrets = |rules: &[Rule]| rules.iter().filter_map(|rule| rule.limit.credentials).min();
    let (base, above) = (secrets(&by_layer[0]), secrets(&by_layer[1..].concat()));
    terms.credentials = match above {
        Some(above) => Some(above.min(base.unwrap_or(Credentials::Proxy))),
        None => base,
    };
    if delegates && let Some(refusal) = confinement(&all, &by_layer[0], &terms, request) {
        return refusal;
    }
    let wanted = if delegates { request.credentials } else { None };
    let admitted = terms.credentials.unwrap_or(Credentials::Proxy);
    if let Some(wanted) = wanted
        && wanted > admitted
    {
        let named = first(Ruling::Approve).unwrap_or(&all[0]);
        let why = format!(
            "a secret of the worker would be given as {}, and the rules let it go no further than {}; \
             a rule that means it says limit.credentials",
            wanted.name(),
            admitted.name()
        );
        return no(named.id.as_str(), &why);
    }
    let Some(asking) = first(Ruling::Approve) else {
        let rule = all[0].id.clone();
        return Decision::Allow { rule, terms };
    };
    let asks: Vec<_> = all.iter().filter_map(|rule| rule.ask.clone()).collect();
    let by = approvers_of_all(&asks.iter().map(|ask| ask.by.as_slice()).collect::<Vec<_>>());
    if by.is_empty() {
        let why = "several rules ask for approval, and no approver is accepted by all of them";
        return no(asking.id.as_str(), why);
    }
    let wait: Ttl = asks.iter().map(|ask| ask.expires).min().unwrap_or(APPROVAL_WAIT);
    // Each rule says how many questions there may be; the fewest of all are asked.
    let questions = asks.iter().map(|ask| ask.again + 1).min().unwrap_or(1);
    let (rule, reason) = (asking.id.clone(), asking.reason.clone());
    Decision::NeedApproval { rule, reason, terms, wait, again: questions - 1, by }
}

/// Returns the approvers that all of these lists accept. Each word is expanded to the ways of answering that it stands for.
fn approvers_of_all(lists: &[&[Approver]]) -> Vec<Approver> {
    let ways = |by: &Approver| match by {
        Approver::Human => {
            vec!["a person beside a passkey".to_owned(), "a person without".into(), "a passkey".into()]
        }
        Approver::PasskeyIfEnrolled => vec!["a person without".to_owned(), "a passkey".into()],
        Approver::Passkey => vec!["a passkey".to_owned()],
        Approver::Host => vec!["a host".to_owned()],
        Approver::Agent(id) => vec![format!("agent {id}")],
    };
    let of_list = |list: &&[Approver]| list.iter().flat_map(ways).collect::<BTreeSet<String>>();
    let all = lists.iter().map(of_list).reduce(|one, other| one.intersection(&other).cloned().collect());
    let all = all.unwrap_or_default();
    let has = |way: &str| all.contains(way);
    let person = match (has("a person beside a passkey"), has("a person without"), has("a passkey")) {
        (true, _, _) => Some(Approver::Human),
        (_, true, _) => Some(Approver::PasskeyIfEnrolled),
        (_, _, true) => Some(Approver::Passkey),
        _ => None,
    };
    let host = has("a host").then_some(Approver::Host);
    let agents = all.iter().filter_map(|way| way.strip_prefix("agent "));
    let agents = agents.map(|id| Approver::Agent(AgentId::parse(id).expect("it was one")));
    person.into_iter().chain(host).chain(agents).collect()
}

fn no(rule: &str, why: &str) -> Decision {
    Decision::Deny { rule: RuleId::parse(rule).expect("an id that was parsed before"), reason: why.into() }
}

/// The working directory as components below the root, and as components below `/`.
#[derive(Default)]
pub(super) struct Located {
    below: Vec<String>,
    absolute: Vec<String>,
}

pub(super) fn locate(request: &Request) -> Result<Located, String> {
    let cwd = request.cwd.clone().unwrap_or_else(|| ".".into());
    let root = match (&request.root, cwd.starts_with('/')) {
        (Some(root), _) => root.to_string(),
        (None, true) => cwd.to_string(),
        (None, false) => "/workspace".to_owned(),
    };
    let root = walk(Vec::new(), &root);
    let absolute = if cwd.starts_with('/') { walk(Vec::new(), &cwd) } else { walk(root.clone(), &cwd) };
    if absolute.len() < root.len() || absolute[..root.len()] != root[..] {
        return Err(format!("/{} is outside the repository /{}", absolute.join("/"), root.join("/")));
    }
    Ok(Located { below: absolute[root.len()..].to_vec(), absolute })
}

/// Follows a path from an absolute directory.
fn walk(mut at: Vec<String>, path: &str) -> Vec<String> {
    for step in path.replace('\\', "/").split('/') {
        if step == ".." {
            at.pop();
        } else if !step.is_empty() && step != "." {
            at.push(step.to_owned());
        }
    }
    at
}

/// A tool's path as whether it is absolute, and its components.
fn tool_path(path: &str) -> (bool, Vec<String>) {
    let path = path.replace('\\', "/");
    if path.starts_with('/') {
        return (true, walk(Vec::new(), &path));
    }
    let mut at: Vec<String> = Vec::new();
    for step in path.split('/') {
        let can_go_up = at.last().is_some_and(|last| last != "..");
        if step == ".." && can_go_up {
            at.pop();
        } else if !step.is_empty() && step != "." {
            at.push(step.to_owned());
        }
    }
    (false, at)
}

fn applies(rule: &Rule, request: &Request, place: &Located) -> bool {
    rule.when.stated().into_iter().all(|it| holds(it, rule.decision, request, place))
}

/// Whether one condition holds in a rule of this kind; what is said of work holds for delegations alone.
fn holds(stated: Stated<'_>, ruling: Ruling, request: &Request, place: &Located) -> bool {
    let delegates = request.action == Action::Delegate;
    let permits = request.action == Action::Permission;
    match stated {
        Stated::Tool(it) => (delegates || permits) && name_matches(&it.0, &request.tool),
        Stated::Path(it) if permits => of_calls_paths(&it.0, ruling, request),
        Stated::Command(it) => permits && naive_calls::command_is(&it.0, ruling, request),
        Stated::Action(it) => it.0.contains(&request.action),
        Stated::Door(it) => it.0.contains(&request.door),
        Stated::Proof(it) => it.0.contains(&request.proof),
        Stated::Client(it) => name_matches(&it.0, &request.client),
        Stated::Hours(it) => is_within(it.0, request),
        work => delegates && holds_for_work(work, request, place),
    }
}

fn is_within(hours: Hours, request: &Request) -> bool {
    let minutes = i128::from(request.now.0).div_euclid(60_000) + i128::from(hours.offset);
    let minute = minutes.rem_euclid(24 * 60);
    let after_start = minute >= i128::from(hours.from);
    let before_end = minute < i128::from(hours.to);
    if hours.from < hours.to { after_start && before_end } else { after_start || before_end }
}

fn holds_for_work(stated: Stated<'_>, request: &Request, place: &Located) -> bool {
    let path = request.path.as_ref().map(|path| tool_path(path));
    let covers = |patterns: &[Box<str>]| {
        path.as_ref().map(|(absolute, parts)| patterns.iter().any(|it| path_matches(it, *absolute, parts)))
    };
    match stated {
        Stated::Action(_)
        | Stated::Door(_)
        | Stated::Proof(_)
        | Stated::Client(_)
        | Stated::Hours(_)
        | Stated::Tool(_)
        | Stated::Command(_) => false,
        Stated::Worker(it) => name_matches(&it.0, &request.worker),
        Stated::WorkerKind(it) => request.worker_kind.is_some_and(|kind| it.0.contains(&kind)),
        Stated::Tier(it) => tier_of(request).is_some_and(|tier| it.0.contains(&tier)),
        Stated::Network(it) => it.0.contains(&request.network),
        Stated::Git(it) => it.0.contains(&request.git),
        Stated::Cwd(it) => {
            let below = |it: &str| path_matches(it, false, &place.below);
            it.0.iter().any(|it| path_matches(it, true, &place.absolute) || below(it))
        }
        Stated::Path(it) => covers(&it.0) == Some(true),
        Stated::PathOutside(it) => covers(&it.0) == Some(false),
        Stated::PathMissing(Missing) => path.is_none(),
        Stated::MaxBytesOver(it) => request.max_bytes > Some(it.0),
        Stated::TimeoutOver(it) => {
            request.timeout_secs.is_some_and(|s| u128::from(s) * 1000 > u128::from(it.0.as_millis()))
        }
        Stated::GoalBytesMax(it) => request.goal_bytes <= it.0,
        Stated::GoalBytesOver(it) => request.goal_bytes > it.0,
        Stated::DepthOver(it) => request.depth > it.0,
        Stated::RunningOver(it) => request.running > it.0,
        Stated::CommandHas(it) => {
            request.command.as_ref().is_some_and(|command| it.0.iter().any(|it| has_phrase(command, it)))
        }
    }
}

/// The paths of a call: all of them in a rule that allows, any in another one.
fn of_calls_paths(patterns: &[Box<str>], ruling: Ruling, request: &Request) -> bool {
    let call = naive_calls::named(request);
    let start = start_of(request);
    let root = root_of(request);
    let covers = |(absolute, parts): &(bool, Vec<String>)| {
        patterns.iter().any(|it| path_matches(it, *absolute, parts))
    };
    let leads = |path: &String| {
        let whole = if path.replace('\\', "/").starts_with('/') {
            walk(Vec::new(), path)
        } else {
            walk(start.clone(), path)
        };
        let below = whole.starts_with(&root).then(|| whole[root.len()..].to_vec());
        below.is_some_and(|it| covers(&(false, it))) || covers(&(true, whole))
    };
    let machinery = |path: &String| {
        let whole = if path.replace('\\', "/").starts_with('/') {
            walk(Vec::new(), path)
        } else {
            walk(start.clone(), path)
        };
        let of_hosts = [".git", ".claude", ".codex", ".cursor", ".provost", ".mcp.json"];
        whole.iter().any(|part| of_hosts.contains(&part.to_ascii_lowercase().as_str()))
    };
    let runs_later = |path: &String| {
        let from_top = !path.replace('\\', "/").starts_with('/');
        let whole = walk(if from_top { start.clone() } else { Vec::new() }, path);
        let is_below = whole.starts_with(&root);
        let parts = if is_below { whole[root.len()..].to_vec() } else { whole };
        let name = parts.last().map(|it| it.to_ascii_lowercase()).unwrap_or_default();
        let of_git = ["head", "config", "objects", "refs", "commondir"].contains(&name.as_str());
        ((of_git || name.starts_with(".git")) && !(is_below && parts.len() == 1))
            || later::row_over(parts.join("/").as_bytes()).is_some()
    };
    match ruling {
        Ruling::Allow => {
            let writes = &*request.tool != "Read";
            let may_be = |it: &String| {
                let is_no = machinery(it) || is_of_any_process(it) || (writes && runs_later(it));
                leads(it) && !is_no
            };
            call.certain && !call.paths.is_empty() && call.paths.iter().all(may_be)
        }
        _ => {
            call.any
                || call.paths.iter().any(|it| leads(it) || covers(&tool_path(it)) || is_of_any_process(it))
                || call.open.iter().any(|word| patterns.iter().any(|it| may_be_below(it, word)))
        }
    }
}

/// Whether an absolute path goes through a link by which each process comes to a place of its own.
fn is_of_any_process(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let links = ["cwd", "root", "exe", "fd", "map_files", "ns", "task"];
    path.starts_with("/proc/self/") && parts.iter().any(|it| links.contains(it))
}

/// Whether a word with stars may be a path that a pattern covers.
fn may_be_below(pattern: &str, word: &str) -> bool {
    let name = pattern.split('/').rfind(|part| *part != "**").unwrap_or("*");
    word.split('/').any(|part| may_meet(part.as_bytes(), name.as_bytes()))
}

fn may_meet(one: &[u8], other: &[u8]) -> bool {
    match (one.split_first(), other.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            may_meet(rest, other) || other.split_first().is_some_and(|(_, behind)| may_meet(one, behind))
        }
        (_, Some((b'*', rest))) => {
            may_meet(one, rest) || one.split_first().is_some_and(|(_, behind)| may_meet(behind, other))
        }
        (Some((sign, rest)), Some((it, behind))) => sign == it && may_meet(rest, behind),
        _ => false,
    }
}

fn root_of(request: &Request) -> Vec<String> {
    let cwd = request.cwd.as_deref().filter(|it| it.starts_with('/'));
    walk(Vec::new(), request.root.as_deref().or(cwd).unwrap_or("/workspace"))
}

/// The folder in which a call is made.
fn start_of(request: &Request) -> Vec<String> {
    let cwd = request.cwd.as_deref().unwrap_or(".");
    walk(if cwd.starts_with('/') { Vec::new() } else { root_of(request) }, cwd)
}

fn name_matches(patterns: &[Box<str>], name: &str) -> bool {
    patterns.iter().any(|it| letters_match(it.as_bytes(), name.as_bytes()))
}

fn path_matches(pattern: &str, absolute: bool, path: &[String]) -> bool {
    if pattern.starts_with('/') != absolute {
        return false;
    }
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts_match(&parts, path)
}

fn parts_match(pattern: &[&str], path: &[String]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((&"**", rest)), step) => {
            parts_match(rest, path) || step.is_some_and(|(_, below)| parts_match(pattern, below))
        }
        (Some((part, rest)), Some((name, below))) => {
            letters_match(part.as_bytes(), name.as_bytes()) && parts_match(rest, below)
        }
        (Some(_), None) => false,
    }
}

pub(super) fn letters_match(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((b'*', rest)), step) => {
            letters_match(rest, text) || step.is_some_and(|(_, after)| letters_match(pattern, after))
        }
        (Some((letter, rest)), Some((found, after))) => letter == found && letters_match(rest, after),
        (Some(_), None) => false,
    }
}

fn has_phrase(command: &str, phrase: &str) -> bool {
    let cut = |text: &str| -> Vec<String> {
        let spaced: String =
            text.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { ' ' }).collect();
        spaced.split_whitespace().map(str::to_ascii_lowercase).collect()
    };
    let (command, phrase) = (cut(command), cut(phrase));
    command.windows(phrase.len().max(1)).any(|window| window == phrase)
}

fn tier_of(request: &Request) -> Option<Tier> {
    match (request.tier, request.worker_kind) {
        (None, Some(WorkerKind::Cli)) => Some(Tier::Ns),
        (tier, _) => tier,
    }
}

fn terms_of(rules: &[Rule], request: &Request) -> Terms {
    let mut hosts = Vec::new();
    if request.action == Action::Delegate && request.network == Net::Hosts {
        for host in &request.hosts {
            let plain = host.to_ascii_lowercase();
            let limits = rules.iter().filter_map(|rule| rule.limit.hosts.as_ref());
            if limits.into_iter().all(|admitted| admitted.iter().any(|it| **it == *plain)) {
                hosts.push(host.clone());
            }
        }
    }
    Terms {
        tier_min: rules.iter().filter_map(|rule| rule.limit.tier_min).max(),
        timeout: rules.iter().filter_map(|rule| rule.limit.timeout).min(),
        memory: rules.iter().filter_map(|rule| rule.limit.memory).min(),
        processes: rules.iter().filter_map(|rule| rule.limit.processes).min(),
        retries: rules.iter().filter_map(|rule| rule.limit.retries).min(),
        concurrent: rules.iter().filter_map(|rule| rule.limit.concurrent).min(),
        rate: rules.iter().filter_map(|rule| rule.limit.rate).min_by(|a, b| {
            let per_week =
                |rate: &Rate, other: &Rate| u128::from(rate.count) * u128::from(other.per.as_millis());
            per_week(a, b).cmp(&per_week(b, a)).then(a.count.cmp(&b.count))
        }),
        hosts,
        credentials: None,
    }
}

/// Whether a rule of the base speaks of tier `job`, for a worker that would run in it.
fn names_job(base: &[Rule], request: &Request) -> bool {
    let says = |rule: &Rule| {
        rule.when.tier.iter().flat_map(|it| &it.0).chain(&rule.limit.tier_min).any(|it| *it == Tier::Job)
    };
    tier_of(request) != Some(Tier::Job) || base.iter().any(says)
}

/// The worker cannot have the confinement that the rules insist on.
fn confinement(rules: &[Rule], base: &[Rule], terms: &Terms, request: &Request) -> Option<Decision> {
    too_weak(rules, terms, request).or_else(|| {
        let asking = rules.iter().find(|rule| rule.decision == Ruling::Approve);
        let named = asking.unwrap_or(&rules[0]).id.as_str();
        if !names_job(base, request) {
            return Some(no(named, JOB_UNNAMED));
        }
        let says = |rule: &Rule| rule.when.git.iter().flat_map(|it| &it.0).any(|it| *it == Git::Write);
        let unnamed = request.git == Git::Write && !base.iter().any(says);
        unnamed.then(|| no(named, GIT_UNNAMED))
    })
}

fn too_weak(rules: &[Rule], terms: &Terms, request: &Request) -> Option<Decision> {
    let wanted = terms.tier_min?;
    let has = tier_of(request);
    if has.is_some_and(|has| has >= wanted) {
        return None;
    }
    let rule = rules.iter().find(|rule| rule.limit.tier_min == Some(wanted))?;
    let spelled = |tier| match tier {
        Tier::Ns => "ns",
        Tier::Ll => "ll",
        Tier::Job => "job",
    };
    let wanted = spelled(wanted);
    let rest = match (has, request.worker_kind) {
        (Some(has), _) => format!("the worker would run in tier {}", spelled(has)),
        (None, Some(WorkerKind::Polling)) => "no jail binds a polling worker".to_owned(),
        (None, _) => "the worker has no confinement".to_owned(),
    };
    Some(no(rule.id.as_str(), &format!("this rule wants tier {wanted} at least, and {rest}")))
}
