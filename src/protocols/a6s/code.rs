//! Questions about code. A6s 6.4 to 6.7.
//!
//! Editors give up after half a minute, but agents may need several. So the door answers in time with an error
//! about the delay, and the work goes on. If the editor asks the same question again, the answer is the result of
//! the first one.

use std::time::Duration;

use tokio::time::Instant;

use super::A6s;
use super::envelope::{A6sError, Said};
use super::map::{artifact, execution_id, review, task_id};
use super::session::{Outcome, Session};
use super::wire::{OfCode, ReviewType};
use provost_agents::{CodeAsk, CodeQuestion, CodeResult};
use provost_domain::{Job, JobState};

impl A6s {
    /// Answers `code.explain`, `code.refactor`, `code.generateTests` and `code.review`.
    pub(super) async fn code(&self, session: &Session, question: CodeQuestion, asked: &OfCode) -> Outcome {
        let until = Instant::now() + self.soft_deadline();
        let ask = CodeAsk {
            question,
            code: asked.code.as_str().to_owned(),
            language: asked.language().to_owned(),
            file_path: asked.file_path().to_owned(),
            instructions: asked.instructions().map(str::to_owned),
            focus: focus(asked.review_type.unwrap_or_default()),
        };
        let begun = self.service().ask_about_code(&session.who, ask).await;
        let job = begun.map_err(|fault| A6sError::new(fault.to_string()))?;
        if job.state.is_over() {
            return Ok((self.answer_of(&job).await?, None));
        }
        let about = execution_id(&job.id);
        if let Some(listener) = session.listener() {
            // An earlier request got the error about the delay. This one waits again, so it needs no event.
            self.audience().unwatch(listener, &about);
        }
        let attending = self.waiters().attend(&job.id);
        let over = tokio::select! {
            over = self.service().job_over(&job.id, until) => over?,
            // The job goes on, but its answer has no receiver any more.
            () = session.gone() => return Err(A6sError::new("The connection has ended")),
        };
        if let Some(job) = over {
            attending.answered();
            return Ok((self.answer_of(&job).await?, None));
        }
        // From now on the connection gets the event of the end. A question that has ended by now is answered.
        let hold = session.listener().map(|listener| self.audience().hold(listener, &about));
        if attending.gives_up() {
            return Ok((self.takes_longer(&job).await?, hold));
        }
        let job = self.service().job(&job.id).await?;
        Ok((self.answer_of(&job).await?, None))
    }

    /// Returns the answer to a question that is over.
    async fn answer_of(&self, job: &Job) -> Result<Said, A6sError> {
        let log = Some(format!("job_{}", job.id));
        if job.state != JobState::Completed {
            return Ok(Said::failure(A6sError::new(job.error.as_deref().unwrap_or_default()), log));
        }
        let mut said = match self.service().code_result(job).await? {
            CodeResult::Text(text) => Said::new(&text),
            CodeResult::Artifacts(all) => Said::new(&all.iter().map(artifact).collect::<Vec<_>>()),
            CodeResult::Review(found) => Said::new(&review(&found)),
        }?;
        said.log = log;
        Ok(said)
    }

    /// Returns the answer that the work goes on.
    async fn takes_longer(&self, job: &Job) -> Result<Said, A6sError> {
        let so_far = self.service().so_far(job).await?;
        let waits = match so_far.waits_for {
            Some(approval) => format!(": it waits for approval {approval}, see `provost approval list`"),
            None => String::new(),
        };
        // The time is rounded, since a deadline is not exact to the second.
        let seconds = (so_far.ms + 500) / 1_000;
        let says = format!(
            "Still running as {} ({seconds} s so far){waits}. Repeat the command to get the result.",
            task_id(&job.id)
        );
        Ok(Said::failure(A6sError::new(says), Some(format!("job_{}", job.id))))
    }

    fn soft_deadline(&self) -> Duration {
        self.service().configured().soft_deadline.as_duration()
    }
}

fn focus(kind: ReviewType) -> &'static str {
    match kind {
        ReviewType::Security => "security",
        ReviewType::Performance => "performance",
        ReviewType::Quality => "quality",
        ReviewType::All => "all",
    }
}
