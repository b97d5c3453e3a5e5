//! Words for an agent while it runs: taken from the core between turns, or at once if they end the agent's turn.

use tokio::time::Instant;

use super::{Untold, untold};
use crate::engine_handle::{EngineHandle, FOR_EVER};
use provost_base::{TaskId, Timestamp};
use provost_domain::command::{NoteSaid, NoteSession, TakeSayings};
use provost_domain::view::View;
use provost_domain::{AgentSession, Event, EventKind, Saying, State, TalkEvent};

/// The way by which one run gets the words that are said to its agent.
#[derive(Clone)]
pub(crate) struct Steering {
    handle: EngineHandle,
    task: TaskId,
}

impl Steering {
    pub(crate) fn of(handle: &EngineHandle, task: &TaskId) -> Self {
        Self { handle: handle.clone(), task: task.clone() }
    }

    /// Puts the session on record, before the agent is asked to do anything in it.
    pub(super) async fn begun(&self, session: AgentSession) -> Result<(), Untold> {
        let verb = NoteSession { task: self.task.clone(), session };
        self.handle
            .tell(verb)
            .await
            .map(drop)
            .map_err(|it| untold(format!(": its session is not on record: {it}")))
    }

    /// What waits for the agent. When nothing does, nothing is taken on any more.
    pub(super) async fn take(&self) -> Vec<Saying> {
        let taken = self.handle.tell(TakeSayings { task: self.task.clone() }).await;
        // Of a task that is over, the core has told already what was not delivered.
        taken.map(|it| it.sayings).unwrap_or_default()
    }

    /// Says that the agent has what was said up to this number.
    pub(super) async fn delivered(&self, through: u32) {
        // A task that is over needs it no more.
        self.handle.tell(NoteSaid { task: self.task.clone(), through }).await.ok();
    }

    /// Returns when the agent's turn is to be ended for something that was said, with a later number than this.
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

/// Whether an agent's turn is to be ended.
#[derive(Clone)]
struct IsHurried(TaskId, u32);

impl View for IsHurried {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.tasks.get(&self.0).is_some_and(|task| task.is_hurried(self.1))
    }
}
