//! Questions about selected code in an editor: the place of the selection, the agent that is asked, and the
//! recognition of repeated questions.
//!
//! Promises: equal questions become one request; an agent's answer replaces the selection if that occurs exactly once
//! in the file, or nothing; no existing test is lost. This module writes no file of the user's; its results are
//! artifacts. A6s 6.4 to 6.7.

mod conventions;
mod edit;
mod location;
mod patch;
mod request;
mod test_merge;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::jobs::{JobAsk, Plan, fresh_job_id};
use super::{AgentOutput, AgentService, NoAgent, PromptFor, ResolvedAgent, Review, TooLong};
pub use conventions::{WorkspaceProbe, further_tests_of, named_after, tests_of};
pub(super) use edit::CodeEdit;
pub use patch::{NoPlace, Placed, place};
use provost_base::{AgentId, ApprovalId, Digest, JobId, RepoPath, Timestamp, Ttl};
use provost_domain::view::{AllSwitches, View};
use provost_domain::{Artifact, Job, JobKind, JobResult, JobState, Principal, Refusal, State, TaskState};
pub use test_merge::{MergedTests, keep_tests, lost_tests};

/// How long an answer is given to the same question again.
const ANSWER_KEPT_FOR: Ttl = Ttl::minutes(10);

/// The kinds of questions about selected code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeQuestion {
    /// An explanation of the code.
    Explain,
    /// An improvement of the code.
    Refactor,
    /// Tests for the code.
    GenerateTests,
    /// A review of the code.
    Review,
}

impl CodeQuestion {
    /// Returns the method by which editors ask it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Explain => "code.explain",
            Self::Refactor => "code.refactor",
            Self::GenerateTests => "code.generateTests",
            Self::Review => "code.review",
        }
    }

    fn prompt(self) -> PromptFor {
        match self {
            Self::Explain => PromptFor::Explain,
            Self::Refactor => PromptFor::Refactor,
            Self::GenerateTests => PromptFor::GenerateTests,
            Self::Review => PromptFor::Review,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Explain => "Explain",
            Self::Refactor => "Refactor",
            Self::GenerateTests => "Write tests for",
            Self::Review => "Review",
        }
    }
}

/// A question as an editor asks it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeAsk {
    /// The kind of question.
    pub question: CodeQuestion,
    /// The selected code, as the editor sends it.
    pub code: String,
    /// The language as the editor names it; may be empty.
    pub language: String,
    /// An absolute path, or the name of a buffer without a file; may be empty.
    pub file_path: String,
    /// The user's own words.
    pub instructions: Option<String>,
    /// The focus of a review, as its prompt says it.
    pub focus: &'static str,
}

/// The reason why no agent is asked a question.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeActionError {
    /// The core refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No agent could answer.
    #[error(transparent)]
    Nobody(#[from] NoAgent),
    /// The prompt would be too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The selection cannot be used, for this reason.
    #[error("{0}")]
    Selection(Box<str>),
}

/// A prepared question, kept with its job for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CodePlan {
    pub(super) question: CodeQuestion,
    /// The selected code, as the editor sent it.
    pub(super) code: Box<str>,
    pub(super) language: Box<str>,
    /// The file of the selection; `None` for a buffer without a file in the workspace.
    pub(super) file: Option<RepoPath>,
    /// The name of the buffer in the editor.
    pub(super) name: Box<str>,
    /// Whether the agent answers by changing its copy, instead of in words.
    pub(super) edits: bool,
    /// Whether the agent answers with JSON.
    pub(super) json: bool,
    /// The file for new tests; `None` for questions of other kinds.
    pub(super) tests: Option<RepoPath>,
    /// The state of the file when the question was asked; `None` if it is unknown.
    pub(super) was: Option<Digest>,
}

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodeResult {
    /// Markdown for people.
    Text(String),
    /// Files with a proposed content.
    Artifacts(Vec<Artifact>),
    /// The findings of a review.
    Review(Review),
}

/// The parts of an answer that are kept in addition to its text and its artifacts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CodeAnswer {
    /// The state of the file when the question was asked.
    pub(super) was: Option<Digest>,
    pub(super) review: Option<Review>,
}

/// The agent that is asked, with its role.
struct Whom {
    agent: AgentId,
    role: Option<String>,
    preamble: String,
    output: AgentOutput,
}

impl Whom {
    fn of(meant: &ResolvedAgent<'_>) -> Self {
        Self {
            agent: meant.agent.id.clone(),
            role: meant.role.map(str::to_owned),
            preamble: meant.preamble.unwrap_or_default().to_owned(),
            output: meant.agent.output,
        }
    }
}

/// Runs a function that may take long on a thread that may block.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::Stopping)
}

/// The view of the newest job that answers a question, and of the current time.
struct NewestAnswer(Digest);

impl View for NewestAnswer {
    type Out = (Timestamp, Option<Arc<Job>>);
    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        (now, state.jobs.same(&self.0).cloned())
    }
}

impl AgentService {
    /// Asks an agent a question about code. The same question is not asked twice while the first is being answered, nor while
    /// its answer is new and the file unchanged; a question that failed is asked again.
    ///
    /// # Errors
    /// [`CodeActionError`]; nothing has begun then.
    pub async fn ask_about_code(&self, who: &Principal, ask: CodeAsk) -> Result<Arc<Job>, CodeActionError> {
        let agents = self.configured();
        let switches = self.provost().view(AllSwitches).await?;
        let whom = Whom::of(&agents.asked_for(ask.question.method(), |agent| switches.of(agent))?);
        let key = self.key_of(who, &whom, &ask);
        let service = self.clone();
        let (ask, found) = off_thread(move || {
            let found = service.find_out(&ask);
            (ask, found)
        })
        .await?;
        if let (now, Some(job)) = self.provost().view(NewestAnswer(key)).await?
            && self.answers_still(&job, now, found.was).await?
        {
            return Ok(job);
        }
        let id = fresh_job_id()?;
        let job = off_thread(move || {
            let order = request::of(&agents.prompts, &whom, &ask, &found)?;
            let shown = found.file.as_ref().map_or(found.name.as_str(), RepoPath::as_str);
            Ok::<_, CodeActionError>(JobAsk {
                id,
                kind: JobKind::Code,
                method: ask.question.method(),
                title: format!("{} {shown}", ask.question.title()),
                agent: whom.role.unwrap_or_else(|| whom.agent.to_string()),
                worker: whom.agent,
                prompt: order.prompt,
                working_dir: None,
                by_agent: true,
                key: Some(key),
                plan: Plan::Code(Box::new(order.plan)),
            })
        })
        .await??;
        Ok(self.begin_job(who, job).await?)
    }

    /// Returns the key of a question. The asker is a part of it: an answer is only for agents that may ask.
    fn key_of(&self, who: &Principal, whom: &Whom, ask: &CodeAsk) -> Digest {
        let root = self.provost().root().place().path().to_string_lossy().into_owned();
        let fields = [
            ask.question.method(),
            who.agent().as_str(),
            whom.agent.as_str(),
            whom.role.as_deref().unwrap_or_default(),
            &root,
            &ask.code,
            &ask.language,
            &ask.file_path,
            ask.instructions.as_deref().unwrap_or_default(),
            ask.focus,
        ];
        Digest::of_fields(fields.iter().map(|field| field.as_bytes()))
    }

    /// Checks whether a job is the answer to the same question asked now.
    async fn answers_still(&self, job: &Job, now: Timestamp, was: Option<Digest>) -> Result<bool, Refusal> {
        match job.state {
            JobState::Queued | JobState::Running => Ok(true),
            JobState::Failed | JobState::Cancelled => Ok(false),
            JobState::Completed if job.ended_at.is_none_or(|at| at.after(ANSWER_KEPT_FOR) <= now) => {
                Ok(false)
            }
            JobState::Completed => {
                let before = self.job_result(&job.id).await?.answer;
                let before = before.and_then(|it| serde_json::from_str::<CodeAnswer>(it.as_str()).ok());
                Ok(was.is_some() && before.is_some_and(|it| it.was == was))
            }
        }
    }

    /// Returns the progress of a question that is not answered yet.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn so_far(&self, job: &Job) -> Result<SoFar, Refusal> {
        self.provost().view(SoFarOf(job.id.clone())).await
    }

    /// Returns the result of a question that was answered.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn code_result(&self, job: &Job) -> Result<CodeResult, Refusal> {
        let JobResult { text, answer, artifacts, .. } = self.job_result(&job.id).await?;
        let review = answer.and_then(|it| serde_json::from_str::<CodeAnswer>(it.as_str()).ok()?.review);
        Ok(match (review, &*job.method) {
            (Some(review), _) => CodeResult::Review(review),
            (None, "code.explain") => CodeResult::Text(text.unwrap_or_default().into()),
            (None, _) => CodeResult::Artifacts(artifacts),
        })
    }
}

/// The progress of a question that is not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoFar {
    /// The time since the question was asked, in milliseconds.
    pub ms: u64,
    /// The approval that the question's task waits for, if it waits for one.
    pub waits_for: Option<ApprovalId>,
}

impl View for SoFarOf {
    type Out = SoFar;
    fn look(self, now: Timestamp, state: &State) -> SoFar {
        let job = state.jobs.get(&self.0);
        let task = job.and_then(|job| state.tasks.get(job.tasks.last()?));
        let waits_for = task.and_then(|task| match task.state {
            TaskState::Awaiting { approval } => Some(approval),
            _ => None,
        });
        SoFar { ms: job.map_or(0, |job| now.since_ms(job.opened_at)), waits_for }
    }
}

/// The view of the progress of a job's question.
struct SoFarOf(JobId);

/// Returns the sentence for an answer that changes no file.
pub(super) fn no_change(why: &str) -> String {
    format!("No change proposed: {why}")
}
