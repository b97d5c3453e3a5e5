//! The parts of the daemon that notices need: those on the desktop, and those to addresses elsewhere.

use anyhow::{Result, anyhow};
use tokio::sync::{oneshot, watch};

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Daemon, Prepared, Shared, Start, notice_addresses};
use provost_auth::role;
use provost_config::{Config, DesktopTasks};
use provost_domain::Door;
use provost_effects::{
    DesktopOptions, DesktopParts, NoticeParts, NoticeSettings, Notices, PageAddress, TaskNotices,
};
use provost_protocols::own::{PushTold, TellPush};
use provost_vault::Vault;

/// Returns the options of notices from the configuration.
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

/// Returns the parts for notices on the desktop and for those elsewhere, with the senders by which a reload reaches both.
pub(super) fn both(
    start: &Start,
    prepared: &Prepared,
    config: &Config,
    shared: &Arc<Mutex<Shared>>,
) -> (watch::Sender<DesktopOptions>, watch::Sender<Arc<NoticeSettings>>, DesktopParts, NoticeParts) {
    let (notices, options) = watch::channel(options(config));
    let page = page(shared.clone());
    // A click counts as the user's, as far as a session bus can prove it.
    let person = role::desktop(prepared.user.clone());
    let desktop = DesktopParts { person, options, page: page.clone() };
    let settings = notice_addresses::settings(config, &start.places);
    let (addresses, settings) = watch::channel(Arc::new(settings));
    let vault = Vault::at(start.places.secrets());
    (notices, addresses, desktop, NoticeParts { settings, vault, page })
}

impl Daemon {
    /// Sends the key with which browsers subscribe. Reads it from a file in a task of its own, so that no other order waits.
    pub(super) fn say_push_key(&self, reply: oneshot::Sender<Result<String, String>>) {
        let sender = self.sender.clone();
        // The asker may be gone.
        self.doors.spawn(async move { reply.send(sender.push_key().await).ok() });
    }

    /// Checks the parts of a browser's subscription: its address, its public key, and the shared secret.
    pub(super) fn check_push(&self, endpoint: &str, keys: &(Box<str>, Box<str>)) -> Result<String> {
        let checked = self.sender.check_push(endpoint, &keys.0, &keys.1);
        checked.map(|()| "messages for this browser can be sent".into()).map_err(|why| anyhow!(why))
    }
}

/// Returns the function that describes the messages to browsers, once their sender exists.
pub(super) fn push_told(sender: Arc<OnceLock<Notices>>) -> TellPush {
    Box::new(move || {
        let Some(sender) = sender.get() else { return PushTold::default() };
        let last =
            sender.last().iter().map(|(to, it)| (to.to_string(), notice_addresses::attempt(it))).collect();
        PushTold { problem: sender.push_trouble(), last }
    })
}

/// Returns the function that finds the page's address while it is open, preferably its address for browsers elsewhere. Links lead to it.
fn page(shared: Arc<Mutex<Shared>>) -> PageAddress {
    Arc::new(move || {
        let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let open = shared.0.doors.iter().find(|it| it.door == Door::Web.name());
        let here = open.map(|it| it.address.trim_end_matches('/').to_owned());
        shared.0.public.first().cloned().or(here)
    })
}
