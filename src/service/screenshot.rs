//! Pictures of the screen: submits the request, and waits for the picture as long as the caller does.

use std::sync::Arc;

use tokio::time::Instant;

use super::Provost;
use provost_base::TaskId;
use provost_domain::command::TakeScreenshot;
use provost_domain::view::LastWord;
use provost_domain::{Answer, Mail, Principal, Refusal, Task};

/// The state of a picture at the end of the wait.
#[derive(Clone, Debug)]
pub struct Screenshot {
    /// Its task: finished, or still running at the end of the wait.
    pub task: Arc<Task>,
    /// The queued message about the end of the task. It need not be sent if the caller gets the end at once.
    pub mail: Option<Arc<Mail>>,
}

impl Provost {
    /// Asks for a picture, and waits for it until the given moment.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn screenshot(
        &self,
        who: &Principal,
        task: TaskId,
        until: Instant,
    ) -> Result<Answer<Screenshot>, Refusal> {
        let captured = match self.submit_judged(who, TakeScreenshot { task }).await? {
            Answer::Done(captured) => captured,
            Answer::Parked(approval) => return Ok(Answer::Parked(approval)),
            Answer::Denied(denial) => return Ok(Answer::Denied(denial)),
        };
        let mut seen = None;
        let task = loop {
            let left = until.saturating_duration_since(Instant::now());
            let known = seen;
            let unchanged = |task: &Task| known == Some(task.state);
            let task = self.task_after(&captured.task, unchanged, left).await?;
            if task.state.is_finished() || seen == Some(task.state) {
                break task;
            }
            seen = Some(task.state);
        };
        let mail = match task.state.is_finished() {
            true => self.view(LastWord { to: who.agent().clone(), task: captured.task }).await?,
            false => None,
        };
        Ok(Answer::Done(Screenshot { task, mail }))
    }
}
