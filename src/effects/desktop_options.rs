//! The options of notices on the desktop, for every system.

use std::sync::Arc;

use tokio::sync::watch;

use provost_domain::Principal;

/// The tasks whose ends are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskNotices {
    /// The ends of all tasks.
    All,
    /// The ends of failed tasks only.
    Failed,
    /// No ends of tasks.
    None,
}

/// The configuration of notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DesktopOptions {
    /// Whether any notice is shown.
    pub enabled: bool,
    /// Whether a person can answer approvals from notices.
    pub answer: bool,
    /// Whether such an answer can allow a tool of a host.
    pub answer_permissions: bool,
    /// The tasks whose ends are shown.
    pub tasks: TaskNotices,
    /// The most notices in a minute.
    pub per_minute: u32,
}

/// Finds the address of the page, without a slash at the end, where it is open.
pub type PageAddress = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// The parts of the daemon that notices need.
pub struct DesktopParts {
    /// The principal that answers by a click, where a notice has a button for that.
    pub person: Principal,
    /// The options, as the configuration has them now.
    pub options: watch::Receiver<DesktopOptions>,
    /// The address that a notice without buttons leads to.
    pub page: PageAddress,
}
