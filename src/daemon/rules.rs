//! What is told of the rules in force, and of a request that is only thought of.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use provost_api::wire;
use provost_domain::{Approver, Network, WorkerKind, WorkerSetting, approvers_text};
use provost_policy::{Explanation, Request, RuleSet, explain_request};
use provost_protocols::own::TellRules;

/// Tells of the rules that were put in force last, for the repository at this place.
pub(super) fn told(rules: watch::Receiver<RuleSet>, root: PathBuf) -> TellRules {
    Box::new(move |query, setting| {
        let rules = rules.borrow().clone();
        let explained = match setting {
            None => None,
            Some(setting) => Some(explain_request(&rules, &request(query, setting, &root)?)),
        };
        Ok(in_words(&rules, explained.as_ref()))
    })
}

/// The request that a person has made up, with what the configuration says of its worker.
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
    let names = |by: &[Approver]| match by.is_empty() {
        true => Vec::new(),
        false => approvers_text(by).split(", ").map(str::to_owned).collect(),
    };
    let mut told = Vec::new();
    for layer in rules.layers() {
        for rule in &layer.file().rules {
            // Traces stand in the same order.
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
        outcome: explained.map(|it| wire::RuleOutcome {
            decision: it.outcome.decision.name().into(),
            rule: it.outcome.rule.to_string(),
            reason: it.outcome.reason.to_string(),
            by: names(&it.outcome.by),
            wait_s: it.outcome.wait.map(|it| it.as_seconds()),
        }),
    }
}
