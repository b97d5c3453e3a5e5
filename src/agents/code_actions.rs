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

/// For how long an answer is given again.
const ANSWER_KEPT_FOR: Ttl = Ttl::minutes(10);

/// The kinds of questions about selected code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeQuestion {
    /// What does it do?
    Explain,
    /// How could it be better?
    Refactor,
    /// What would its tests be?
    GenerateTests,
    /// What is wrong with it?
    Review,
}

impl CodeQuestion {
    /// As editors call it.
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
    /// What the editor wants to know or to have.
    pub question: CodeQuestion,
    /// The selected code, as the editor sends it.
    pub code: String,
    /// As the editor calls it; may be empty.
    pub language: String,
    /// Absolute, or whatever a buffer without a file is called; may be empty.
    pub file_path: String,
    /// The user's own words.
    pub instructions: Option<String>,
    /// The focus of a review, as its prompt says it.
    pub focus: &'static str,
}

/// Why no agent is asked a question.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeActionError {
    /// The core says no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No agent could answer.
    #[error(transparent)]
    Nobody(#[from] NoAgent),
    /// It would be too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The selection cannot be used, for this reason.
    #[error("{0}")]
    Selection(Box<str>),
}

/// A question on its way, kept with its job for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CodePlan {
    pub(super) question: CodeQuestion,
    /// What was selected, as it was sent.
    pub(super) code: Box<str>,
    pub(super) language: Box<str>,
    /// Where it is; `None` for a buffer without a file in the workspace.
    pub(super) file: Option<RepoPath>,
    /// The name of the buffer in the editor.
    pub(super) name: Box<str>,
    /// Whether what the agent changes in its copy is the answer; otherwise what it says is.
    pub(super) edits: bool,
    /// Whether it answers with JSON.
    pub(super) json: bool,
    /// The file for new tests; `None` for questions of other kinds.
    pub(super) tests: Option<RepoPath>,
    /// What the file was when it was asked about; `None` where that could not be found out.
    pub(super) was: Option<Digest>,
}

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodeResult {
    /// Markdown for people.
    Text(String),
    /// Files as they could be.
    Artifacts(Vec<Artifact>),
    /// The findings of a review.
    Review(Review),
}

/// What is kept of an answer beside its text and its artifacts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CodeAnswer {
    /// What the file was when it was asked about.
    pub(super) was: Option<Digest>,
    pub(super) review: Option<Review>,
}

/// The agent that is asked, and how.
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

/// Does something that may take long on a thread that may block.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Refusal::Unavailable { why: "it is shutting down".into() })
}

/// The newest job that answers a question, and what time it is.
struct NewestAnswer(Digest);

impl View for NewestAnswer {
    type Out = (Timestamp, Option<Arc<Job>>);
    fn look(self, now: Timestamp, state: &State) -> Self::Out {
        (now, state.jobs.same(&self.0).cloned())
    }
}

impl AgentService {
    /// Puts a question about code to an agent. The same question is not put twice while it is being answered, nor while
    /// its answer is new and the file what it was; one that failed is asked again.
    ///
    /// # Errors
    /// [`CodeActionError`]; then nothing has begun.
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

    /// By what a question is known again. Who asks is a part of it: an answer is for those who may ask.
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

    /// Whether a job is the answer to the same question asked now.
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

    /// How far a question is that is not answered yet.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn so_far(&self, job: &Job) -> Result<SoFar, Refusal> {
        self.provost().view(SoFarOf(job.id.clone())).await
    }

    /// What has come of a question that was answered.
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

/// How far a question is that is not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoFar {
    /// Since it was asked, in milliseconds.
    pub ms: u64,
    /// The approval that its task waits for, if it does.
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

/// Reads how far the question of a job is.
struct SoFarOf(JobId);

/// Why an answer changes nothing, as a sentence.
pub(super) fn no_change(why: &str) -> String {
    format!("No change proposed: {why}")
}
