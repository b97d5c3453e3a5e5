//! What notices on the desktop need, on every system.

use std::sync::Arc;

use tokio::sync::watch;

use provost_domain::Principal;

/// Which ends of tasks are told.
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
    /// Whether there are any.
    pub enabled: bool,
    /// Whether approvals can be answered from them.
    pub answer: bool,
    /// Whether that includes a yes to a tool of a host.
    pub answer_permissions: bool,
    /// Which ends of tasks are told.
    pub tasks: TaskNotices,
    /// How many come in a minute at most.
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
    /// Where a notice leads that has no button.
    pub page: PageAddress,
}
