//! Translates the configuration of desktop notices for the module that shows them.

use tokio::sync::watch;

use super::Prepared;
use provost_auth::role;
use provost_config::{Config, DesktopTasks};
use provost_effects::{DesktopOptions, DesktopParts, TaskNotices};

/// The options of notices, from the configuration.
pub(super) fn options(config: &Config) -> DesktopOptions {
    let desktop = &config.desktop;
    DesktopOptions {
        enabled: desktop.enabled,
        answer: desktop.answer,
        answer_permissions: desktop.answer_permissions,
        tasks: match desktop.tasks {
            DesktopTasks::All => TaskNotices::All,
            DesktopTasks::Failed => TaskNotices::Failed,
            DesktopTasks::None => TaskNotices::None,
        },
        per_minute: desktop.per_minute,
    }
}

/// A click counts as the user's, as far as a session bus can show it.
pub(super) fn parts(prepared: &Prepared, options: watch::Receiver<DesktopOptions>) -> DesktopParts {
    DesktopParts { person: role::desktop(prepared.user.clone()), options }
}
