//! Makes the answer to `GET /about` from the daemon's data about itself.

use super::policy_file::PolicyFile;
use super::{Prepared, Start, VERSION, notice_addresses, now, pictures, wiring};
use provost_api::wire;
use provost_base::AgentId;
use provost_config::Config;
use provost_domain::Judge as _;
use provost_policy::RuleSet;
use provost_vault::Vault;

/// Makes the answer for the start; doors are added as they open, and a reload replaces the parts that it changes.
pub(super) fn about(
    start: &Start,
    prepared: &Prepared,
    config: &Config,
    policy: &PolicyFile,
    rules: &RuleSet,
) -> wire::About {
    let notes = prepared.loaded.notes.iter().map(ToString::to_string);
    let (settings, _) = wiring::workers_and_settings(config, &Vault::at(start.places.secrets()));
    wire::About {
        version: VERSION.into(),
        pid: std::process::id(),
        started_at: now().rfc3339(),
        root: start.places.root.display().to_string(),
        state_dir: start.places.state.display().to_string(),
        policy: rules.version().to_string(),
        policy_source: policy.name(),
        workers: workers_at(&settings, config),
        notices: notice_addresses::rows(config, &Vault::at(start.places.secrets())),
        notes: notes.chain(start.places.notes.clone()).chain(pictures::note(config, &start.places)).collect(),
        ..wire::About::default()
    }
}

pub(super) fn workers_at(settings: &provost_domain::Settings, config: &Config) -> Vec<wire::WorkerAt> {
    let stream = |id: &AgentId| {
        let Some(agent) = config.agents.iter().find(|it| it.id == *id) else {
            // The daemon itself writes down such a worker's output, since it speaks with the worker; the entry makes no difference.
            let is_acp = config.workers.get(id).is_some_and(|it| it.kind == provost_config::WorkerKind::Acp);
            return is_acp.then(|| provost_config::Reader::Acp.as_str().to_owned());
        };
        (agent.stream != provost_config::Reader::Lines).then(|| agent.stream.as_str().to_owned())
    };
    // The entry names the kind; the core knows only whether the worker starts a program.
    let kind = |id: &AgentId, it: &provost_domain::WorkerSetting| match config.workers.get(id) {
        Some(entry) => entry.kind.as_str(),
        None if it.kind == provost_domain::WorkerKind::Polling => "polling",
        None => "cli",
    };
    let row = |(id, it): (&AgentId, &provost_domain::WorkerSetting)| wire::WorkerAt {
        id: id.to_string(),
        kind: kind(id, it).to_owned(),
        broken: it.broken.as_ref().map(ToString::to_string),
        stream: stream(id),
        switched: None,
        hosts: Vec::new(),
    };
    settings.workers.iter().map(row).collect()
}
