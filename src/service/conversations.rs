//! The turns of editors' sessions: by the session that a task names, and with what is kept of them.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::Provost;
use provost_base::limits::CONVERSATION_WRITTEN_MS_MAX;
use provost_base::{AgentId, acp};
use provost_domain::Task;
use provost_jail::SessionTurn;

/// Returns whether a task is a turn of an editor's session.
pub(super) fn is_turn_of(task: &Task, session: &str) -> bool {
    let context = task.order.context.as_ref().map(provost_base::Json::value);
    context.is_some_and(|it| acp::editor_session(&it) == Some(session))
}

impl Provost {
    /// Returns the updates of the agent in a turn of an editor's session, in order, as they were at a moment that an earlier call has returned, or
    /// as they are now, with that moment. Empty for another task, and if nothing is kept any more; `None` if the turn was rewritten since then.
    pub async fn turn_again(&self, task: &Task, at: Option<String>) -> Option<(Vec<Value>, String)> {
        let context = task.order.context.as_ref().map(provost_base::Json::value).unwrap_or_default();
        let session = acp::editor_session(&context);
        let Some((session, kept)) = session.zip(self.outputs().conversations().cloned()) else {
            return Some((Vec::new(), String::new()));
        };
        let turn = SessionTurn {
            owner: AgentId::clone(&task.asked_by),
            session: session.into(),
            task: task.id().clone(),
        };
        let said = self.outputs().get(task.id()).map_or(0, |it| it.total());
        if let Some(mut written) = kept.written_of(task.id()).filter(|_| at.is_none()) {
            // The answer has all that the agent has said before the request.
            let most = Duration::from_millis(CONVERSATION_WRITTEN_MS_MAX);
            let _late_or_over = timeout(most, written.wait_for(|it| *it >= said)).await;
        }
        let read = tokio::task::spawn_blocking(move || kept.of_moment(&turn, at.as_deref())).await;
        let read = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        read.unwrap_or_else(|error| {
            tracing::warn!(%error, task = %task.id(), "a turn of an editor's session cannot be read");
            Some((Vec::new(), String::new()))
        })
    }
}
