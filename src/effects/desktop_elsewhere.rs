//! Systems without desktop notices.

use tokio::sync::watch;

use super::engine_handle::EngineHandle;
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

/// The parts of the daemon that notices need.
pub struct DesktopParts {
    /// The principal that answers by a click.
    pub person: Principal,
    /// The options, as the configuration has them now.
    pub options: watch::Receiver<DesktopOptions>,
}

/// Takes the place of the observer where there are no notices, and looks at nothing.
pub(super) struct Desktop;

impl Desktop {
    pub(super) fn new(_handle: EngineHandle, _parts: DesktopParts) -> Self {
        Self
    }

    pub(super) async fn look_on(self) {}
}
