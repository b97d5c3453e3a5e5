//! One run at a time in a work tree: a second one on the same branch waits, without keeping other runs from starting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::prepare::jail_refused;
use provost_domain::Failure;
use provost_workspace::work_trees::{Held, WorkTrees};

type Turn = tokio::sync::Mutex<()>;

/// The turns of all work trees in which runs work or wait.
#[derive(Default)]
pub(super) struct TreeTurns(Mutex<HashMap<Box<str>, Weak<Turn>>>);

/// A run's turn in a work tree; meanwhile the work tree cannot be removed.
pub(super) struct TreeTurn {
    _held: Held,
    _turn: tokio::sync::OwnedMutexGuard<()>,
}

impl TreeTurns {
    /// Waits until no other run works in the work tree of a branch, and no removal and no merge changes it.
    ///
    /// # Errors
    /// The daemon is shutting down.
    pub(super) async fn wait(&self, trees: &Arc<WorkTrees>, branch: &str) -> Result<TreeTurn, Failure> {
        let turn = self.of(branch).lock_owned().await;
        let (trees, branch) = (trees.clone(), branch.to_owned());
        let held = tokio::task::spawn_blocking(move || trees.hold_when_free(&branch)).await;
        let held = held.map_err(|_| jail_refused("it is shutting down"))?;
        Ok(TreeTurn { _held: held, _turn: turn })
    }

    fn of(&self, branch: &str) -> Arc<Turn> {
        // Inserting and removing leave it valid at every moment.
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(branch).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::default());
        turns.insert(branch.into(), Arc::downgrade(&turn));
        turn
    }
}
