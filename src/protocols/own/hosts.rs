//! The requests of a host about the tasks that its agent has asked for, and the answers of the person at the host.
//! Tasks of other agents do not exist for a host.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_auth::role;
use provost_base::ApprovalId;
use provost_base::limits::{
    CONVERSATION_PAGE_BYTES, HOST_DIALOG_MS_MAX, HOST_DIALOGS_MAX, ID_LEN_MAX, MY_TASKS_MAX,
};
use provost_domain::Refusal;
use provost_domain::view::WaitingOne;

/// The context from which the key for dialogs is derived.
const DIALOGS: &[u8] = b"provost-host-dialogs-v1";

/// The answered dialogs, by their approval, for as long as a host could show one again.
#[derive(Default)]
pub(super) struct Dialogs(Mutex<HashMap<ApprovalId, HashMap<String, Instant>>>);

impl Dialogs {
    /// Marks a dialog about an approval as answered, which is possible once. Each approval has its own bound.
    fn spend(&self, approval: ApprovalId, dialog: &str) -> Result<(), OwnError> {
        let (now, life) = (Instant::now(), Duration::from_millis(HOST_DIALOG_MS_MAX));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, spent| {
            spent.retain(|_, at| now.duration_since(*at) <= life);
            !spent.is_empty()
        });
        let spent = all.entry(approval).or_default();
        if spent.contains_key(dialog) {
            let message = "this dialog has been answered already, and counts once";
            return Err(OwnError::new(StatusCode::CONFLICT, "dialog_answered", message)
                .hint("have the question asked again"));
        }
        if spent.len() >= HOST_DIALOGS_MAX {
            let why = "too many dialogs about this approval have been answered lately";
            return Err(map::fault(Refusal::busy(why)));
        }
        spent.insert(dialog.to_owned(), now);
        Ok(())
    }
}

impl Handles<endpoints::MyTask> for Own {
    async fn handle(&self, call: &Call, query: wire::MyTaskQuery) -> Answered<wire::Task> {
        let id = map::task_id(&query.id)?;
        // This comes before any wait: the duration of another agent's task is not the caller's business.
        let now = self.0.provost.task(&id).await.map_err(map::fault)?;
        if now.asked_by != *call.who.agent() {
            return Err(map::fault(Refusal::TaskNotFound));
        }
        let seen = query.seen.unwrap_or_default();
        let unchanged = |task: &provost_domain::Task| task.updated_at.rfc3339() == seen;
        let task =
            self.0.provost.task_after(&id, unchanged, patience(query.wait_ms)).await.map_err(map::fault)?;
        Ok(self.told(&task).await)
    }
}

impl Handles<endpoints::MyTasks> for Own {
    async fn handle(&self, call: &Call, query: wire::MyTasksQuery) -> Answered<wire::MyTasks> {
        let limit = query.limit.unwrap_or(MY_TASKS_MAX).clamp(1, MY_TASKS_MAX);
        let after = query.after.map(|it| map::task_id(&it)).transpose()?;
        let whose = (call.who.agent(), query.session.as_deref());
        let page = self.0.provost.asked_by(whose, after, limit).await.map_err(|refusal| match refusal {
            Refusal::TaskNotFound => OwnError::invalid("the cursor is not one of a page of yours"),
            other => map::fault(other),
        })?;
        let there = self.0.provost.with_changes(page.tasks.iter().map(|it| &**it)).await;
        let tasks = page.tasks.iter().map(|task| map::task(task, there.contains(task.id()))).collect();
        Ok(wire::MyTasks { tasks, next: page.next.map(|id| id.to_string()) })
    }
}

impl Handles<endpoints::MyTurn> for Own {
    async fn handle(&self, call: &Call, query: wire::MyTurnQuery) -> Answered<wire::MyTurn> {
        let task = self.0.provost.task(&map::task_id(&query.id)?).await.map_err(map::fault)?;
        if task.asked_by != *call.who.agent() {
            return Err(map::fault(Refusal::TaskNotFound));
        }
        let Some((all, as_of)) = self.0.provost.turn_again(&task, query.as_of).await else {
            let why = "the turn was rewritten after its first page was read";
            return Err(OwnError::new(StatusCode::CONFLICT, wire::TURN_CHANGED, why)
                .hint("read it from its first page again, without `as_of`"));
        };
        let (mut updates, mut bytes) = (Vec::new(), 0);
        for update in all.iter().skip(query.from) {
            bytes += update.to_string().len();
            if bytes > CONVERSATION_PAGE_BYTES && !updates.is_empty() {
                break;
            }
            updates.push(update.clone());
        }
        let end = query.from.saturating_add(updates.len());
        Ok(wire::MyTurn { updates, next: (end < all.len()).then_some(end), as_of })
    }
}

impl Handles<endpoints::DialogKey> for Own {
    async fn handle(&self, call: &Call, (): ()) -> Answered<wire::DialogKey> {
        let key = self.0.names.keys().derived(DIALOGS);
        let key = String::from_utf8_lossy(key.expose()).into_owned();
        Ok(wire::DialogKey { user: self.0.user.to_string(), agent: call.who.agent().to_string(), key })
    }
}

impl Handles<endpoints::HostAnswer> for Own {
    // The caller speaks for the person at its host, about a request of its own. The rule that demanded the approval
    // decides whether that counts.
    async fn handle(&self, call: &Call, body: wire::HostAnswer) -> Answered<wire::Answered> {
        if let Some(dialog) = &body.dialog {
            if dialog.is_empty() || dialog.len() > ID_LEN_MAX {
                return Err(OwnError::invalid("dialog is not the name of one"));
            }
            let approval = ApprovalId(body.approval);
            let parked = self.0.provost.view(WaitingOne(approval)).await.map_err(map::fault)?;
            // An answer to a request that does not wait, or is another agent's, does not count and is not remembered.
            if parked.is_some_and(|it| it.who.agent() == call.who.agent()) {
                self.0.dialogs.spend(approval, dialog)?;
            }
        }
        let Some(grant) = body.grant else { return Ok(wire::Answered { task: None, failed: None }) };
        let (approval, note, digest) = (body.approval, body.note, Some(body.digest));
        let verb = map::answer(wire::Answer { approval, grant, note, digest })?;
        let done = self.submit_judged(&role::host_dialog(&call.who), verb).await?;
        let (task, failed) = (done.task.map(|it| it.to_string()), done.failed.map(Into::into));
        Ok(wire::Answered { task, failed })
    }
}
