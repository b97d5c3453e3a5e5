//! The acts by which a person takes things from agents: claimed files, everything that an agent holds, and several tasks at once.

use std::collections::BTreeSet;

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::wire::CANCELLED_AT_ONCE_MAX;
use provost_api::{endpoints, wire};
use provost_base::{Fence, RepoPath, visible_name};

impl Handles<endpoints::ReleaseAgent> for Own {
    async fn handle(&self, call: &Call, body: wire::ReleaseAgent) -> Answered<wire::AgentReleased> {
        let agent = map::agent(&body.agent, "agent")?;
        let done = self.0.provost.release_agent(&call.who, agent).await.map_err(map::fault)?;
        let provost_domain::command::AgentReleased { locks, waits, claims, intents } = done;
        Ok(wire::AgentReleased { locks, waits, claims, intents })
    }
}

impl Own {
    /// Frees a file that any agent has claimed.
    ///
    /// # Errors
    /// A file without a claim, a claim with another fence, and the refusals of the core.
    pub(super) async fn free_claim(
        &self,
        call: &Call,
        file: RepoPath,
        fence: Option<u64>,
    ) -> Answered<wire::Released> {
        let name = visible_name(file.as_str(), 200);
        let done = self.0.provost.free_claim(&call.who, file, fence.map(Fence)).await.map_err(map::fault)?;
        match done.released {
            true => Ok(wire::Released { released: true }),
            false => {
                let message = format!("no agent has claimed {name}: it was released, or never claimed");
                Err(OwnError::new(StatusCode::NOT_FOUND, "claim_not_found", message)
                    .hint("`provost claim list` lists those that are"))
            }
        }
    }

    /// Cancels these tasks, one by one; returns a sentence about the outcome. A task that is over stays as it is.
    pub(super) async fn cancel_tasks(&self, call: &Call, it: wire::CancelTasks) -> String {
        let (mut ended, mut not) = (0, Vec::new());
        for task in it.tasks {
            let name = visible_name(&task, 40);
            let one = wire::Cancel { task, reason: Some(it.reason.clone()).filter(|it| !it.is_empty()) };
            match Handles::<endpoints::Cancel>::handle(self, call, one).await {
                Ok(_) => ended += 1,
                Err(err) => not.push(format!("{name}: {}", err.body.message)),
            }
        }
        let tasks =
            if ended == 1 { "1 task is cancelled.".into() } else { format!("{ended} tasks are cancelled.") };
        match not.is_empty() {
            true => tasks,
            false => format!("{tasks} Not cancelled: {}.", not.join("; ")),
        }
    }
}

/// Checks that these tasks can be cancelled together, before a passkey signs.
///
/// # Errors
/// No task, too many, or one that is named twice.
pub(super) fn check(it: &wire::CancelTasks) -> Answered<()> {
    if it.tasks.is_empty() || it.tasks.len() > CANCELLED_AT_ONCE_MAX {
        return Err(OwnError::invalid(format!("tasks: name 1 to {CANCELLED_AT_ONCE_MAX} tasks")));
    }
    let each: BTreeSet<&str> = it.tasks.iter().map(String::as_str).collect();
    match each.len() < it.tasks.len() || each.contains("") {
        true => Err(OwnError::invalid("tasks: each task is named once")),
        false => Ok(()),
    }
}

/// Checks that a request says that it uses force: without force, a person releases the person's own things, which needs no signature.
///
/// # Errors
/// Arguments without `force`.
pub(super) fn is_forced(force: bool) -> Answered<()> {
    let missing = || OwnError::invalid("force: a passkey signs that another agent's is taken; say so");
    force.then_some(()).ok_or_else(missing)
}
