//! The tools, by what they are about.
#![forbid(unsafe_code)]

mod approvals;
mod claims;
mod contracts;
pub(super) mod delegate;
mod devit;
mod handoffs;
mod intents;
mod locks;
mod messages;
mod reports;
pub(super) mod tasks;

use super::Settings;
use super::tool::Entry;

/// All of them, in the order in which hosts list them.
pub(super) fn all(settings: Settings) -> Vec<Entry> {
    let all = [
        delegate::tools(),
        tasks::tools(),
        reports::tools(),
        approvals::tools(),
        locks::tools(),
        intents::tools(),
        contracts::tools(),
        claims::tools(),
        handoffs::tools(),
        messages::tools(),
    ];
    let devit = if settings.devit_tools { devit::tools() } else { Vec::new() };
    all.into_iter().flatten().chain(devit).collect()
}
