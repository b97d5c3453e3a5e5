//! What notices need of the daemon: those on the desktop, and those to addresses elsewhere.

use tokio::sync::watch;

use std::sync::{Arc, Mutex, PoisonError};

use super::{Prepared, Shared, Start, notice_addresses};
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

/// What shows notices on the desktop, and what sends them elsewhere; and by which of both a reload reaches them.
pub(super) fn both(
    start: &Start,
    prepared: &Prepared,
    config: &Config,
    shared: &Arc<Mutex<Shared>>,
) -> (watch::Sender<DesktopOptions>, watch::Sender<Arc<NoticeSettings>>, DesktopParts, NoticeParts) {
    let (notices, options) = watch::channel(options(config));
    let page = page(shared.clone());
    // A click counts as the user's, as far as a session bus can show it.
    let person = role::desktop(prepared.user.clone());
    let desktop = DesktopParts { person, options, page: page.clone() };
    let settings = notice_addresses::settings(config, &start.places);
    let (addresses, settings) = watch::channel(Arc::new(settings));
    let vault = Vault::at(start.places.secrets());
    (notices, addresses, desktop, NoticeParts { settings, vault, page })
}

/// Where the page is, while it is open; where browsers elsewhere have it, there. Links lead to it.
fn page(shared: Arc<Mutex<Shared>>) -> PageAddress {
    Arc::new(move || {
        let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let open = shared.0.doors.iter().find(|it| it.door == Door::Web.name());
        let here = open.map(|it| it.address.trim_end_matches('/').to_owned());
        shared.0.public.first().cloned().or(here)
    })
}
