//! A reload: the configuration, the policy and the keys are read again, and what counts only after the next start is named.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use provost_config::{Limits, StoreSettings};
use provost_vault::Vault;

use super::policy_file::PolicyFile;
use super::{Daemon, about, load_config, notice_addresses, notices, pictures, wiring};

/// The next step of each note about a setting that is read at a start alone.
const AFTER_A_START: &str = "it counts after `provost down` and `provost up`";
/// The end of the note about another store.
const STORE_MOVED: &str = "; `provost store move` takes the state to another store";

impl Daemon {
    /// Reads configuration, policy and keys again. If anything is wrong, the old ones stay in force.
    pub(super) async fn reload(&mut self) -> Result<String> {
        let mut loaded = load_config(&self.start)?;
        let store = std::mem::replace(&mut loaded.config.store, self.store.clone());
        let waiting: Vec<String> = store_note(&self.store, &store)
            .into_iter()
            .chain(limit_notes(&self.limits, &loaded.config.limits))
            .collect();
        // What the hosts hear of this one's places has to be what it has.
        loaded.config.limits.workers = self.limits.workers;
        let mut policy = PolicyFile::find(&loaded.config, &self.start.places)?;
        let rules = policy.load()?;
        self.keys.iter().try_for_each(|ring| ring.reload())?;
        let (settings, workers, agents) = wiring::of_this_repository(&loaded.config, &self.start.places);
        let lasting_notes = self.lasting_notes.clone();
        {
            let about = &mut self.shared().0;
            about.notes = loaded
                .notes
                .iter()
                .map(ToString::to_string)
                .chain(pictures::note(&loaded.config, &self.start.places))
                .chain(waiting)
                .chain(lasting_notes)
                .collect();
            about.workers = about::workers_at(&settings, &loaded.config);
            about.notices = notice_addresses::rows(&loaded.config, &Vault::at(self.start.places.secrets()));
        }
        self.engine().set_settings(settings).map_err(|err| anyhow!("{err}"))?;
        self.provost.set_configured(workers);
        self.agents.set_settings(agents);
        self.provost.set_apply_rules(wiring::apply_rules(&loaded.config));
        self.hook.send_replace(wiring::hook(&loaded.config));
        self.notices.send_replace(notices::options(&loaded.config));
        let addresses = notice_addresses::settings(&loaded.config, &self.start.places);
        self.addresses.send_replace(Arc::new(addresses));
        self.capture_config
            .send_replace(Arc::new(pictures::capture_config(&loaded.config, &self.start.places)));
        self.policy = policy;
        self.put_in_force(rules).await?;
        Ok("configuration, policy and keys were read again; doors, `limits.workers` and `limits.hooks` keep what they started with".into())
    }
}

/// Returns the note about other settings of the store than those with which it was opened.
fn store_note(opened: &StoreSettings, read: &StoreSettings) -> Option<String> {
    let is_elsewhere = (&read.url, &read.name) != (&opened.url, &opened.name);
    let moved = if is_elsewhere { STORE_MOVED } else { "" };
    (read != opened).then(|| format!("[store] is read at a start, and has changed: {AFTER_A_START}{moved}"))
}

/// Returns the notes about limits that are read at a start alone, since as many places were made then.
fn limit_notes(started: &Limits, read: &Limits) -> Vec<String> {
    let limits = [("workers", started.workers, read.workers), ("hooks", started.hooks, read.hooks)];
    let changed = limits.into_iter().filter(|(_, was, is)| was != is);
    changed
        .map(|(name, was, is)| {
            format!("limits.{name} is read at a start, and has changed from {was} to {is}: {AFTER_A_START}")
        })
        .collect()
}
