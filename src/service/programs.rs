//! Computes the digests of the workers' executables, once per content, and switches workers on and off.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Provost;
use provost_base::{AgentId, Digest};
use provost_domain::command::SwitchWorker;
use provost_domain::{Principal, Refusal, Switch};
use provost_jail::resolve_program;
use provost_system::version_of;

impl Provost {
    /// Pauses a worker or lets it begin tasks again. `command` is the name of the command in the journal.
    ///
    /// # Errors
    /// A [`Refusal`]; then the switch is unchanged.
    pub async fn switch_worker(
        &self,
        who: &Principal,
        worker: &AgentId,
        to: Switch,
        command: &str,
    ) -> Result<Switch, Refusal> {
        let verb = SwitchWorker { worker: worker.clone(), to, command: command.into() };
        Ok(self.submit(who, verb).await?.from)
    }

    /// Returns the digest that identifies the version of a worker's program; `None` if there is no program.
    ///
    /// # Errors
    /// [`Refusal::NotReady`], when programs cannot be examined at the moment.
    pub async fn program_of(&self, worker: &AgentId) -> Result<Option<Digest>, Refusal> {
        let Some(program) = self.profiles().get(worker).map(|it| it.program.clone()) else { return Ok(None) };
        let provost = self.clone();
        let digest = tokio::task::spawn_blocking(move || provost.0.programs.digest(&program)).await;
        digest.map_err(|_| Refusal::NotReady { why: "programs cannot be examined".into() })
    }
}

/// The metadata that tells one content from the next without reading it.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    len: u64,
    version: (u64, i64, i64),
}

#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<PathBuf, (Stamp, Digest)>>);

impl Programs {
    /// Returns the digest of an executable, or `None` if there is none; the error at its start will say why.
    pub(super) fn digest(&self, path: &Path) -> Option<Digest> {
        let stamp = stamp(path)?;
        if let Some((known, digest)) = self.table().get(path)
            && *known == stamp
        {
            return Some(*digest);
        }
        // Hashing a large executable takes a while, so the table is not locked meanwhile.
        let digest = resolve_program(path).ok()?.digest();
        self.table().insert(path.to_owned(), (stamp, digest));
        Some(digest)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Stamp, Digest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Stamp { len: meta.len(), version: version_of(&meta) })
}
