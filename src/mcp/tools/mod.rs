//! The tools by subject, and the selection for a host.
#![forbid(unsafe_code)]

mod approvals;
mod changes;
mod claims;
mod contracts;
pub(super) mod delegate;
mod devit;
mod handoffs;
mod intents;
mod locks;
mod merges;
mod messages;
mod pictures;
mod reports;
mod say;
pub(super) mod tasks;
mod work;
mod workers;

use super::Settings;
use super::tool::Entry;

/// Makes the tools of one module.
type Make = fn() -> Vec<Entry>;

/// Sets of tools, as the configuration names them, in the order in which hosts list their tools.
const SETS: [(&str, &[Make]); 11] = [
    ("tasks", &[delegate::tools, tasks::tools, say::tools, changes::tools, reports::tools, workers::tools]),
    ("approvals", &[approvals::tools]),
    ("locks", &[work::tools, locks::tools]),
    ("intents", &[intents::tools]),
    ("contracts", &[contracts::tools]),
    ("claims", &[claims::tools]),
    ("handoffs", &[handoffs::tools]),
    ("merges", &[merges::tools]),
    ("messages", &[messages::tools]),
    (PICTURES, &[pictures::tools]),
    (DEVIT, &[devit::tools]),
];

/// The set that is offered only where pictures are enabled.
const PICTURES: &str = "pictures";

/// Other names for the same tools: offered only on request.
const DEVIT: &str = "devit";

/// The tools from all sets that agents need to work side by side. They are small enough to be in every request to a model.
const DEFAULT: [&str; 18] = [
    "delegate",
    "task_wait",
    "task_status",
    "task_output",
    "task_cancel",
    "task_diff",
    "task_apply",
    "workers_list",
    "work_begin",
    "work_end",
    "lock_acquire",
    "lock_release",
    "locks_list",
    "intents_list",
    "conflicts_check",
    "message_send",
    "inbox_read",
    "screenshot",
];

/// Returns the tools that a host is offered, in their sets' order.
pub(super) fn all(settings: &Settings) -> Vec<Entry> {
    let wants = |set: &str| settings.tools.iter().any(|it| it == set);
    let mut offered = Vec::new();
    for (set, entry) in every(settings) {
        let by_default = wants("default") && DEFAULT.contains(&&*entry.tool.name);
        if wants(set) || by_default || (set != DEVIT && wants("all")) {
            offered.push(entry);
        }
    }
    if !settings.output_schemas {
        offered.iter_mut().for_each(|entry| entry.tool.output_schema = None);
    }
    offered
}

/// Returns the set of a tool that a host is not offered.
pub(super) fn set_of(name: &str, settings: &Settings) -> Option<&'static str> {
    every(settings).find(|(_, entry)| entry.tool.name == name).map(|(set, _)| set)
}

fn every(settings: &Settings) -> impl Iterator<Item = (&'static str, Entry)> {
    let screenshots = settings.screenshots;
    let sets = SETS.into_iter().filter(move |(set, _)| screenshots || *set != PICTURES);
    let more: &[Make] = if screenshots { &[pictures::devit_tools] } else { &[] };
    let all = sets.chain([(DEVIT, more)]);
    all.flat_map(|(set, makes)| makes.iter().flat_map(|make| make()).map(move |entry| (set, entry)))
}
