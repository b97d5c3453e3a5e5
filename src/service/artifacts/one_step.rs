//! Judges and writes a file in one step if it counts together with other files: parts of repositories, settings
//! that run later, and the files that these name. Two applies that bring one half each are judged like one apply.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

use super::Applying;
use super::held::{FileDecision, becomes_one, part, repositories, word_of};
use crate::Provost;
use provost_base::later::RunsOutside;
use provost_workspace::artifact_path;
use provost_workspace::change_plan::{FileWrite, Want};

/// The state in which the files of an apply were judged.
pub(super) struct Judged {
    /// The number of settings that applies had written by then.
    settings: u64,
    /// The files that run later, as found again after this number of written settings.
    again: Option<(u64, Result<RunsOutside, String>)>,
}

impl Judged {
    /// Makes a judgement as of this number of written settings.
    pub(super) fn at(settings: u64) -> Self {
        Self { settings, again: None }
    }
}

/// A guard that keeps a judgement true until the file is written.
pub(super) enum Beside {
    /// An ordinary file: others are written at the same time.
    Others { _held: OwnedRwLockReadGuard<()> },
    /// A file that counts together with others: no other file is written meanwhile.
    Nothing { _held: OwnedRwLockWriteGuard<()> },
}

impl Applying {
    /// Waits until a file can be judged and written in one step.
    pub(super) async fn beside_others(&self, order: &FileWrite) -> Beside {
        let is_part = order.path.as_str().split('/').any(|name| part(name).is_some());
        match is_part || counts_as_setting(order) {
            true => Beside::Nothing { _held: self.together.clone().write_owned().await },
            false => Beside::Others { _held: self.together.clone().read_owned().await },
        }
    }

    /// Returns the number of settings that applies have written.
    pub(super) fn settings_written(&self) -> u64 {
        self.settings_written.load(Ordering::SeqCst)
    }
}

impl Provost {
    /// Checks whether a file can still be written, given what other applies have written since it was judged.
    /// Blocking; the caller holds the guard of [`Applying::beside_others`] until the file is written.
    ///
    /// # Errors
    /// The reason why it cannot, safe to show.
    pub(super) fn judge_again(&self, order: &FileWrite, judged: &mut Judged) -> Result<(), String> {
        let root = self.root().place().path();
        if !order.is_removal() {
            let (path, none) = (BTreeSet::from([order.path.clone()]), BTreeSet::new());
            // An undo restores a file in a repository that was created since, and does not create one.
            let is_back = matches!(order.want, Want::Kept { .. });
            let is_one = if is_back { repositories(root, &none, &path) } else { Vec::new() };
            if let Some(folder) = repositories(root, &path, &path).iter().find(|it| !is_one.contains(it)) {
                return Err(becomes_one(folder));
            }
        }
        let applying = &self.0.applying;
        if counts_as_setting(order) {
            let before = applying.settings_written.fetch_add(1, Ordering::SeqCst);
            // The files of one apply were judged together with its settings.
            if judged.settings == before {
                judged.settings = before + 1;
            }
            return Ok(());
        }
        let now = applying.settings_written();
        if now == judged.settings {
            return Ok(());
        }
        let again = judged.again.take().filter(|(at, _)| *at == now);
        let (_, outside) =
            judged.again.insert(again.unwrap_or_else(|| (now, (applying.bounds().held)(root, &[]))));
        let outside = outside.as_ref().map_err(String::clone)?;
        match word_of(root, outside, &order.path, true) {
            FileDecision::Free => Ok(()),
            _ => Err("what another apply has written meanwhile runs it, or leads to it; ask again".into()),
        }
    }
}

fn counts_as_setting(order: &FileWrite) -> bool {
    order.runs_later || artifact_path::setting(&order.path).is_some()
}
