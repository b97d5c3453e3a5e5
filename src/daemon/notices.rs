//! What notices need of the daemon: those on the desktop, and those to addresses elsewhere.

use tokio::sync::watch;

use std::sync::{Arc, Mutex, PoisonError};

use super::{Prepared, Shared, Start};
use provost_auth::role;
use provost_config::{Config, DesktopTasks};
use provost_domain::Door;
use provost_effects::{DesktopOptions, DesktopParts, NoticeParts, NoticeSettings, PageAddress, TaskNotices};
use provost_vault::Vault;

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
pub(super) fn parts(
    prepared: &Prepared,
    options: watch::Receiver<DesktopOptions>,
    page: PageAddress,
) -> DesktopParts {
    DesktopParts { person: role::desktop(prepared.user.clone()), options, page }
}

/// Where the page is, while it is open.
pub(super) fn page(shared: Arc<Mutex<Shared>>) -> PageAddress {
    Arc::new(move || {
        let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let open = shared.0.doors.iter().find(|it| it.door == Door::Web.name());
        open.map(|it| it.address.trim_end_matches('/').to_owned())
    })
}

/// What sends notices elsewhere. Links lead to the page where it is open.
pub(super) fn outgoing(
    start: &Start,
    settings: watch::Receiver<Arc<NoticeSettings>>,
    page: PageAddress,
) -> NoticeParts {
    NoticeParts { settings, vault: Vault::at(start.places.secrets()), page }
}
