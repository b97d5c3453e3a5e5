//! Git work trees of runs: the list, and the removal.

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map;
use provost_api::{endpoints, wire};

impl Handles<endpoints::WorkTrees> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::WorkTree>> {
        let found = self.0.provost.listed_work_trees().await.map_err(map::fault)?;
        let row = |it: provost_service::ListedWorkTree| wire::WorkTree {
            branch: it.branch,
            path: it.path.to_string_lossy().into_owned(),
            agent: it.agent,
            task: it.task,
            ahead: it.ahead,
            uncommitted: it.uncommitted as u64,
            running: it.running,
            stale: it.stale,
        };
        Ok(found.into_iter().map(row).collect())
    }
}

impl Handles<endpoints::RemoveWorkTree> for Own {
    async fn handle(&self, call: &Call, body: wire::RemoveWorkTree) -> Answered<wire::RemovedWorkTree> {
        let wire::RemoveWorkTree { which, force, branch } = body;
        let done = self.0.provost.remove_work_tree(&call.who, &which, (force, branch)).await;
        let done = done.map_err(map::fault)?;
        let path = done.path.to_string_lossy().into_owned();
        Ok(wire::RemovedWorkTree { branch: done.branch, path, branch_deleted: done.branch_deleted })
    }
}
