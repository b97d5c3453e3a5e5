//! Words for an agent while it runs: the run takes them from the core between turns, or at once if they end the agent's turn.

use tokio::time::Instant;

use super::{Untold, untold};
use crate::engine_handle::{EngineHandle, FOR_EVER};
use provost_base::{TaskId, Timestamp};
use provost_domain::command::{NoteSaid, NoteSession, TakeSayings};
use provost_domain::view::View;
use provost_domain::{AgentSession, Event, EventKind, Saying, State, TalkEvent};

/// The part of a run that gets the words for its agent.
#[derive(Clone)]
pub(crate) struct Steering {
    handle: EngineHandle,
    task: TaskId,
}

impl Steering {
    pub(crate) fn of(handle: &EngineHandle, task: &TaskId) -> Self {
        Self { handle: handle.clone(), task: task.clone() }
    }

    /// Records the session, before the agent gets its first prompt.
    pub(super) async fn begun(&self, session: AgentSession) -> Result<(), Untold> {
        let verb = NoteSession { task: self.task.clone(), session };
        self.handle
            .tell(verb)
            .await
            .map(drop)
            .map_err(|it| untold(format!(": its session is not on record: {it}")))
    }

    /// Takes the words that wait for the agent. If none wait, the core accepts no more for this run.
    pub(super) async fn take(&self) -> Vec<Saying> {
        let taken = self.handle.tell(TakeSayings { task: self.task.clone() }).await;
        // If the task is over, the core has already reported the words that were not delivered.
        taken.map(|it| it.sayings).unwrap_or_default()
    }

    /// Records that the agent has the words up to this number.
    pub(super) async fn delivered(&self, through: u32) {
        // A task that is over no longer needs the record.
        self.handle.tell(NoteSaid { task: self.task.clone(), through }).await.ok();
    }

    /// Returns when a caller ends the agent's turn with words of a later number than this.
    pub(super) async fn hurried(&self, after: u32) {
        let said = |event: &Event| matches!(&event.kind, EventKind::Talk(TalkEvent::TaskSaid { task, now: true, .. }) if *task == self.task);
        let waits = || async {
            let hurried = self.handle.look_at(IsHurried(self.task.clone(), after)).await?;
            Ok(hurried.then_some(()))
        };
        let woken = self.handle.engine.wait_for(Instant::now() + FOR_EVER, said, waits).await;
        if !matches!(woken, Ok(Some(()))) {
            // The engine has stopped, and the run ends with it.
            std::future::pending::<()>().await;
        }
    }
}

/// The query whether waiting words end the agent's turn.
#[derive(Clone)]
struct IsHurried(TaskId, u32);

impl View for IsHurried {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.tasks.get(&self.0).is_some_and(|task| task.is_hurried(self.1))
    }
}
