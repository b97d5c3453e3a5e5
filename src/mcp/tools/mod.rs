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
mod pictures;
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
    let on = |wanted: bool, tools: fn() -> Vec<Entry>| if wanted { tools() } else { Vec::new() };
    let more = [
        on(settings.screenshots, pictures::tools),
        on(settings.devit_tools, devit::tools),
        on(settings.devit_tools && settings.screenshots, pictures::devit_tools),
    ];
    all.into_iter().chain(more).flatten().collect()
}
