//! The tools, by what they are about.
#![forbid(unsafe_code)]

mod approvals;
pub(super) mod delegate;
mod locks;
pub(super) mod tasks;

use super::Settings;
use super::tool::Entry;

/// All of them, in the order in which hosts list them.
pub(super) fn all(_settings: Settings) -> Vec<Entry> {
    [delegate::tools(), tasks::tools(), approvals::tools(), locks::tools()].into_iter().flatten().collect()
}
