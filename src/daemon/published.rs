//! The data that the published server of Agent Protocol has left in the repository: reported once, or imported.
//!
//! The daemon does not trust a repository's content. It opens the database only after a person has allowed it,
//! in the configuration or by the command.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::Daemon;
use provost_base::Door;
use provost_config::{Config, ImportFound};
use provost_service::{CallGraphImportError, Provost};
use provost_system::{folder_inside, private_file};

/// The path of the database, from the top of the repository.
const DATABASE: [&str; 2] = [".agent-protocol", "protocol.db"];

/// The file in the daemon's state that records what was done with the database.
const SEEN: &str = "protocol.db.seen";

impl Daemon {
    /// Reports the database, or imports its events, as the configuration says.
    pub(super) fn take_over_published(&mut self, config: &Config) {
        let settings = &config.agent_protocol;
        if !config.doors.is_open(Door::AgentProtocol) || settings.import == ImportFound::Never {
            return;
        }
        let Some(stamp) = stamp(&self.provost) else { return };
        let seen = self.start.places.state.join(SEEN);
        let known = std::fs::read_to_string(&seen).ok();
        if settings.import == ImportFound::Ask {
            if known.is_none() {
                self.say_until_the_end(
                    "agent_protocol: .agent-protocol/protocol.db is of the published server; its events are imported only on request: `provost agent-protocol import` (this is reported once)"
                        .into(),
                );
                remember(&seen, "told");
            }
            return;
        }
        if known.as_deref() != Some(&stamp) {
            let (provost, system, stop) = (self.provost.clone(), self.system.clone(), self.stop.clone());
            let file = self.provost.root().place().path().join(DATABASE[0]).join(DATABASE[1]);
            self.doors.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    done = provost.import(&system, &file) => match done {
                        Ok(done) => {
                            let (taken, known, unfit) = (done.taken, done.known, done.unfit);
                            tracing::info!(taken, known, unfit, "the published server's events are on the timeline");
                            remember(&seen, &stamp);
                        }
                        Err(CallGraphImportError::File(why)) => {
                            tracing::warn!(why, ".agent-protocol/protocol.db cannot be imported");
                        }
                        Err(CallGraphImportError::Refused(err)) => {
                            tracing::warn!(%err, ".agent-protocol/protocol.db was not imported");
                        }
                    }
                }
            });
        }
    }
}

/// Returns the text by which the database is recognised again; `None` if there is no database with any content.
fn stamp(provost: &Provost) -> Option<String> {
    let folder = folder_inside(provost.root().handle(), DATABASE[0]).ok()?;
    let meta = folder.symlink_metadata(DATABASE[1]).ok().filter(|it| it.is_file() && it.len() > 0)?;
    let written = meta.modified().ok()?.into_std().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(format!("{} {}", meta.len(), written.as_nanos()))
}

/// Records what was done with the database. If that fails, the next start reports it or reads it again.
fn remember(path: &Path, what: &str) {
    let fresh: PathBuf = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file =
            private_file(OpenOptions::new().write(true).create(true).truncate(true)).open(&fresh)?;
        file.write_all(what.as_bytes())?;
        std::fs::rename(&fresh, path)
    };
    if let Err(err) = write() {
        tracing::warn!(%err, "what became of .agent-protocol/protocol.db is not remembered");
    }
}
