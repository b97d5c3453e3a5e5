//! `code.*`: a question about a selection, answered by one run, or by two if a review has to be corrected. A6s 6.5 to
//! 6.7.

use serde_json::Value;

use super::runner::{JobRunner, Stop, failed};
use super::runs::{Ran, RunRequest};
use crate::code_actions::{CodeAnswer, CodeEdit, lost_tests, no_change};
use crate::{
    AgentService, Ask, CodePlan, CodeQuestion, PromptFor, Review, as_markdown, code_in, code_of_json,
    code_schema, line_count, review, review_schema, unread_review,
};
use provost_base::Json;
use provost_base::limits::{ANSWER_BYTES_MAX, JOB_ANSWER_BYTES_MAX};
use provost_domain::artifact::is_test;
use provost_domain::{Artifact, Changeset, JobResult, PhaseName};

/// How much of an agent's answer is quoted in the reason why there is no change, in characters.
const WHY_CHARS_MAX: usize = 300;

/// Makes a file from an answer. Blocking.
type Make = fn(&AgentService, &CodePlan, &str) -> Result<CodeEdit, String>;

impl JobRunner {
    /// Carries out a question about a selection.
    pub(super) async fn code(&self, plan: &CodePlan, kept: &mut JobResult) -> Result<(), Stop> {
        let mut answer = CodeAnswer { was: plan.was, review: None };
        match plan.question {
            CodeQuestion::Explain => {
                let ran = self.put(self.order.prompt.clone(), None, None).await?;
                kept.text = Some(clip(as_markdown(&ran.answer).trim()).into());
            }
            CodeQuestion::Review => answer.review = Some(self.review_code(plan).await?),
            CodeQuestion::Refactor | CodeQuestion::GenerateTests if plan.edits => {
                self.edit_code(plan, kept).await?
            }
            CodeQuestion::Refactor => {
                let (ran, new) = self.new_text(plan).await?;
                self.keep_made(kept, ran, self.make(plan, new, AgentService::refactored).await?).await?;
            }
            CodeQuestion::GenerateTests => {
                let (ran, new) = self.new_text(plan).await?;
                self.keep_made(kept, ran, self.make(plan, new, AgentService::with_tests).await?).await?;
            }
        }
        kept.answer = Some(Json::from_value(&serde_json::to_value(&answer).map_err(|err| failed(&err))?));
        Ok(())
    }

    /// Runs the agent once, and returns its whole answer; stores its changes in `kept`, if that is given.
    async fn put(
        &self,
        prompt: Box<str>,
        schema: Option<&Value>,
        kept: Option<&mut JobResult>,
    ) -> Result<Ran, Stop> {
        let run = RunRequest {
            phase: PhaseName::Generate,
            worker: self.job.worker.clone(),
            by_agent: self.order.by_agent,
            prompt,
            working_dir: self.order.working_dir.clone(),
            schema: schema.map(Json::from_value),
            copy: None,
            command: None,
            harvest: kept.is_some(),
        };
        let mut ran = self.run(run).await?;
        if let Some(kept) = kept {
            // For a run that has failed, this is the whole result.
            (kept.artifacts, kept.left_out) = (ran.artifacts.clone(), ran.left_out.clone());
            kept.incomplete = ran.incomplete;
        }
        ran = ran.done()?;
        let (artifacts, task) = (self.service.provost().artifacts(), ran.task.id().clone());
        let whole = tokio::task::spawn_blocking(move || artifacts.of(&task)).await.map_err(|_| Stop::Over)?;
        if let Some(whole) = whole.map_err(|err| failed(&err))? {
            ran.answer = whole.answer.into();
        }
        if ran.answer.trim().is_empty() && ran.artifacts.is_empty() {
            return Err(Stop::Failed(
                format!("The worker gave no answer\n{}", ran.last_words).trim_end().to_owned(),
            ));
        }
        Ok(ran)
    }

    /// Returns an agent's findings; if its reply is in no form even after the request to correct it, the reply itself.
    async fn review_code(&self, plan: &CodePlan) -> Result<Review, Stop> {
        let (schema, lines) = (review_schema(), line_count(&plan.code));
        let first = self.put(self.order.prompt.clone(), Some(&schema), None).await?.answer;
        let why = match read_review(first.clone(), lines).await? {
            Ok(review) => return Ok(review),
            Err(why) => why,
        };
        let text = schema.to_string();
        let said = Ask { task: &why, code: &first, schema: &text, ..Ask::default() };
        if let Ok(prompt) = self.service.configured().prompts.render_asking(PromptFor::Repair, &said) {
            match self.put(prompt.into(), Some(&schema), None).await {
                Ok(again) => {
                    if let Ok(review) = read_review(again.answer, lines).await? {
                        return Ok(review);
                    }
                }
                // The reply already counts as an answer, although its form is wrong.
                Err(Stop::Failed(why)) => {
                    tracing::debug!(job = %self.job.id, why, "a review was not put right")
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(unread_review(clip(&first)))
    }

    /// Takes over the changes that an agent has made in its copy.
    async fn edit_code(&self, plan: &CodePlan, kept: &mut JobResult) -> Result<(), Stop> {
        let ran = self.put(self.order.prompt.clone(), None, Some(&mut *kept)).await?;
        (kept.artifacts, kept.left_out) = (Vec::new(), None);
        let (mut artifacts, mut left_out) =
            (ran.artifacts.clone(), ran.left_out.as_deref().map(str::to_owned));
        if plan.question == CodeQuestion::GenerateTests {
            let lost;
            (artifacts, lost) = self.without_losses(artifacts).await?;
            left_out = [left_out, lost].into_iter().flatten().reduce(|all, more| format!("{all}; {more}"));
            if artifacts.is_empty() && plan.file.is_none() {
                let new = code_in(&ran.answer, &plan.language, &plan.code).map_err(unchanged)?.to_owned();
                let made = self.make(plan, new, AgentService::with_tests).await?;
                return self.keep_made(kept, ran, made).await;
            }
        }
        if artifacts.is_empty() {
            let said = ran.answer.lines().map(str::trim).find(|line| !line.is_empty());
            let why = left_out.as_deref().or(said).unwrap_or("the agent has changed no file");
            return Err(unchanged(why.chars().take(WHY_CHARS_MAX).collect::<String>()));
        }
        kept.text = Some(clip(&ran.answer).into());
        (kept.artifacts, kept.left_out) = (artifacts, left_out.map(Into::into));
        Ok(())
    }

    /// Removes artifacts that would lose tests; also returns their names, for people.
    async fn without_losses(&self, all: Vec<Artifact>) -> Result<(Vec<Artifact>, Option<String>), Stop> {
        let store = self.service.provost().artifacts();
        let sorted = tokio::task::spawn_blocking(move || {
            let (mut good, mut said) = (Vec::new(), Vec::new());
            for artifact in all {
                let before = store.base_of(&artifact.id).ok().flatten().filter(|_| is_test(&artifact.path));
                let before = before.and_then(|bytes| String::from_utf8(bytes).ok());
                let lost = match (&*artifact.kind, before) {
                    ("delete", _) if is_test(&artifact.path) => vec!["all of it".to_owned()],
                    (_, Some(before)) => lost_tests(&before, &artifact.content),
                    _ => Vec::new(),
                };
                if lost.is_empty() {
                    good.push(artifact);
                } else {
                    said.push(format!(
                        "{}: tests that are there would be lost: {}",
                        artifact.path,
                        lost.join(", ")
                    ));
                }
            }
            (good, (!said.is_empty()).then(|| said.join("; ")))
        });
        sorted.await.map_err(|_| Stop::Over)
    }

    /// Returns the new text in an agent's answer.
    async fn new_text(&self, plan: &CodePlan) -> Result<(Ran, String), Stop> {
        let schema = plan.json.then(code_schema);
        let ran = self.put(self.order.prompt.clone(), schema.as_ref(), None).await?;
        // An answer that was cut off is no file.
        if ran.answer.len() > ANSWER_BYTES_MAX - char::MAX.len_utf8() {
            return Err(unchanged(format!("the answer has more than {ANSWER_BYTES_MAX} bytes")));
        }
        let new = match plan.json {
            true => code_of_json(&ran.answer, &plan.language, &plan.code),
            false => code_in(&ran.answer, &plan.language, &plan.code).map(str::to_owned),
        };
        let new = new.map_err(unchanged)?;
        if new.trim().is_empty() {
            return Err(unchanged("the answer holds no code"));
        }
        Ok((ran, new))
    }

    async fn make(&self, plan: &CodePlan, new: String, make: Make) -> Result<CodeEdit, Stop> {
        let (service, plan) = (self.service.clone(), plan.clone());
        let made = tokio::task::spawn_blocking(move || make(&service, &plan, &new)).await;
        made.map_err(|_| Stop::Over)?.map_err(Stop::Failed)
    }

    /// Keeps a file that was made from an answer as if the run had made it, with the file's old content.
    async fn keep_made(&self, kept: &mut JobResult, ran: Ran, made: CodeEdit) -> Result<(), Stop> {
        let (store, task) = (self.service.provost().artifacts(), ran.task.id().clone());
        let gathered = made.collected(&task);
        kept.text = Some(clip(&ran.answer).into());
        kept.artifacts = vec![gathered.artifact.clone()];
        let keep = move || {
            let harvest = Changeset { collected: vec![gathered], ..Changeset::default() };
            store.keep((&task, ran.task.attempt()), &harvest, &ran.answer)
        };
        tokio::task::spawn_blocking(keep).await.map_err(|_| Stop::Over)?.map_err(|err| failed(&err))
    }
}

fn unchanged(why: impl AsRef<str>) -> Stop {
    Stop::Failed(no_change(why.as_ref()))
}

/// Reads a review on a thread that may block, since a reply can be very long.
async fn read_review(reply: String, lines: u64) -> Result<Result<Review, String>, Stop> {
    tokio::task::spawn_blocking(move || review(&reply, lines)).await.map_err(|_| Stop::Over)
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(JOB_ANSWER_BYTES_MAX.min(text.len()))]
}
