//! Answers queries about the rules in force, about a hypothetical request, and about the decisions of other rules.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use provost_api::wire;
use provost_base::limits::REPLAY_SHOWN;
use provost_domain::{
    Approver, Event, EventKind, JudgedRequest, Network, WorkerKind, WorkerSetting, approvers_text,
};
use provost_policy::{
    Builtin, Explanation, Layer, NotAskable, Outcome, Replayed, Request, RuleSet, Ruling, explain_request,
    replay,
};
use provost_protocols::own::{AboutRules, AskOtherRules, TellRules};

/// Returns the answers to queries about rules, for the repository at this place.
pub(super) fn about(rules: watch::Receiver<RuleSet>, root: PathBuf) -> AboutRules {
    AboutRules { told: told(rules.clone(), root.clone()), other: other(rules, root) }
}

/// Returns the function that asks rules which are not in force about recorded decisions. They stand in for the user's rules;
/// root's rules stay above them.
fn other(in_force: watch::Receiver<RuleSet>, root: PathBuf) -> AskOtherRules {
    Box::new(move |asked, decisions, until| {
        let above = in_force.borrow().layers().iter().skip(1).cloned().collect();
        let rules = RuleSet::layered(named(asked)?, above);
        let root = root.to_string_lossy();
        let mut told =
            wire::RulesReplayed { digest: rules.digest().to_string(), ..wire::RulesReplayed::default() };
        for it in decisions {
            if Instant::now() >= until {
                told.late = true;
                break;
            }
            let Some((judged, was)) = it.event.kind.judged() else { continue };
            let command = it.task.as_ref().and_then(|task| task.order.tool.command.as_deref());
            match Request::on_record(judged, command, &root) {
                Err(NotAskable::Arguments) => told.without_arguments += 1,
                Err(NotAskable::Command) => told.without_command += 1,
                Ok(request) => {
                    let Some(Replayed { was, would }) = replay(&rules, was, &request) else { continue };
                    told.asked += 1;
                    if was == would.decision {
                        continue;
                    }
                    match told.changed.len() < REPLAY_SHOWN {
                        true => told.changed.push(otherwise(&it.event, judged, was, &would)),
                        false => told.more += 1,
                    }
                }
            }
        }
        Ok(told)
    })
}

fn named(asked: &wire::ReplayRules) -> Result<Layer, String> {
    match (&asked.builtin, &asked.text) {
        (Some(name), _) => Builtin::named(name).map(Builtin::layer).ok_or_else(|| {
            let name = provost_base::visible_name(name, 40);
            format!("there are no ready-made rules {name}: there are default, strict and open")
        }),
        (None, Some(text)) => {
            Layer::parse(text, "these rules").map_err(|err| format!("these rules cannot be used: {err}"))
        }
        (None, None) => Err("no rules are named".into()),
    }
}

fn otherwise(event: &Event, judged: &JudgedRequest, was: Ruling, would: &Outcome) -> wire::DecidedOtherwise {
    let rule = match &event.kind {
        EventKind::TaskDelegated { rule, .. }
        | EventKind::ApprovalAsked { rule, .. }
        | EventKind::Denied { rule, .. } => rule.to_string(),
        _ => String::new(),
    };
    wire::DecidedOtherwise {
        seq: event.seq.0,
        at: event.at.rfc3339(),
        action: judged.action.name().into(),
        asked_by: judged.asked_by.to_string(),
        worker: judged.work.as_ref().map(|it| it.worker.to_string()),
        task: event.kind.task().map(ToString::to_string),
        was: was.name().into(),
        was_rule: rule,
        would: outcome(would),
    }
}

/// Returns the function that describes the rules that were put in force last, for the repository at this place.
fn told(rules: watch::Receiver<RuleSet>, root: PathBuf) -> TellRules {
    Box::new(move |query, setting| {
        let rules = rules.borrow().clone();
        let explained = match setting {
            None => None,
            Some(setting) => Some(explain_request(&rules, &request(query, setting, &root)?)),
        };
        Ok(in_words(&rules, explained.as_ref()))
    })
}

/// Returns the request that a person has made up, with the settings of its worker.
fn request(
    query: &wire::RulesQuery,
    setting: &WorkerSetting,
    root: &std::path::Path,
) -> Result<Request, String> {
    let mut parts = Map::new();
    let mut put = |name: &str, value: Option<&String>| {
        if let Some(value) = value.filter(|it| !it.is_empty()) {
            parts.insert(name.into(), json!(value));
        }
    };
    put("worker", query.worker.as_ref());
    put("cwd", query.dir.as_ref());
    put("client", query.client.as_ref());
    put("door", query.door.as_ref());
    put("proof", query.proof.as_ref());
    put("action", query.action.as_ref());
    put("tool", query.tool.as_ref());
    put("command", query.command.as_ref());
    put("path", query.path.as_ref());
    parts.insert("root".into(), json!(root.to_string_lossy()));
    parts.insert("now".into(), json!(super::now()));
    let polling = setting.kind == WorkerKind::Polling;
    parts.insert("worker_kind".into(), json!(setting.kind));
    parts.insert("network".into(), json!(setting.network.name()));
    if let Network::Hosts(hosts) = &setting.network {
        parts.insert("hosts".into(), json!(hosts));
    }
    let furthest = setting.secrets.iter().map(|it| it.by).max();
    parts.insert("credentials".into(), json!(furthest));
    if !polling {
        parts.insert("tier".into(), json!(setting.tier));
    }
    if !polling && !setting.copy {
        parts.insert("git".into(), json!(setting.git));
    }
    serde_json::from_value(Value::Object(parts))
        .map_err(|err| format!("such a request cannot be made: {err}"))
}

fn in_words(rules: &RuleSet, explained: Option<&Explanation>) -> wire::Rules {
    let mut told = Vec::new();
    for layer in rules.layers() {
        for rule in &layer.file().rules {
            // Traces have the same order.
            let trace = explained.and_then(|it| it.rules.get(told.len()));
            let unmet = trace.and_then(|it| it.first_failed.as_ref());
            told.push(wire::RuleTold {
                id: rule.id.to_string(),
                decision: rule.decision.name().into(),
                reason: rule.reason.to_string(),
                file: layer.file().name.to_string(),
                line: rule.line,
                by: rule.ask.as_ref().map(|it| names(&it.by)).unwrap_or_default(),
                matched: trace.map(|it| it.matched),
                unmet: unmet.map(|it| format!("{} wants {}, found {}", it.key, it.wants, it.found)),
            });
        }
    }
    wire::Rules {
        digest: rules.digest().to_string(),
        sources: rules.layers().iter().map(|it| it.file().name.to_string()).collect(),
        rules: told,
        outcome: explained.map(|it| outcome(&it.outcome)),
    }
}

/// Returns the names of approvers.
fn names(by: &[Approver]) -> Vec<String> {
    match by.is_empty() {
        true => Vec::new(),
        false => approvers_text(by).split(", ").map(str::to_owned).collect(),
    }
}

fn outcome(it: &Outcome) -> wire::RuleOutcome {
    wire::RuleOutcome {
        decision: it.decision.name().into(),
        rule: it.rule.to_string(),
        reason: it.reason.to_string(),
        by: names(&it.by),
        wait_s: it.wait.map(|it| it.as_seconds()),
    }
}
