//! Finds the owner of a branch, and writes what the owner is told.
//!
//! The commits name the owner in their trailers, which their writer has chosen: so such a name is reported with the
//! branch, and gives no right. Without trailers, an agent that has named the branch in an intent or a lock counts
//! as its owner.

use std::collections::BTreeSet;

use super::super::Provost;
use super::MergeError;
use provost_base::{AgentId, TaskId, shell_word};
use provost_domain::command::NoteMerged;
use provost_domain::view::{KnownAgents, LiveLocks, LiveTasks, SomeIntents};
use provost_domain::{MergeEntry, Refusal, Task};
use provost_workspace::git_objects::CommitInfo;

/// The trailers of commits that a run has left.
const AGENT: &str = "Provost-Agent: ";
const TASK: &str = "Provost-Task: ";

/// The owner of a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The agent.
    pub agent: AgentId,
    /// The source of that knowledge, as part of a sentence.
    pub by: &'static str,
    /// Whether the daemon's own record confirms it.
    pub is_proven: bool,
    /// Whether the daemon knows such an agent. Only known agents are told.
    pub is_known: bool,
    /// Whether the agent is a worker of the configuration without a run that could read a message.
    pub is_away: bool,
}

/// The makers of a branch, as its commits name them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Makers {
    /// The newest agent and task that are named in one commit.
    pub(super) newest: Option<(AgentId, Option<TaskId>)>,
    /// All agents, and all authors as `Name <address>`.
    pub(super) agents: BTreeSet<String>,
    pub(super) tasks: BTreeSet<String>,
    pub(super) authors: BTreeSet<String>,
    /// The names of all commits.
    pub(super) commits: BTreeSet<String>,
}

impl Makers {
    pub(super) fn of(commits: &[CommitInfo]) -> Self {
        let mut makers = Self::default();
        for commit in commits {
            let agent = trailer(commit, AGENT).and_then(|it| AgentId::parse(&it).ok());
            let task = trailer(commit, TASK).and_then(|it| TaskId::parse(&it).ok());
            makers.commits.insert(commit.id.clone());
            makers.tasks.extend(task.as_ref().map(ToString::to_string));
            if let Some(agent) = agent {
                makers.agents.insert(agent.to_string());
                makers.newest.get_or_insert((agent, task));
            }
            let author = commit.author.trim();
            let is_plain = !author.chars().any(char::is_control) && author.len() < 256;
            if is_plain && author.ends_with('>') && author.matches('<').count() == 1 {
                makers.authors.insert(author.to_owned());
            }
        }
        makers
    }
}

impl Provost {
    /// Returns the owner of a branch, if that is known.
    pub(super) async fn owner_of(&self, branch: &str, makers: &Makers) -> Result<Option<Owner>, Refusal> {
        if let Some((agent, task)) = &makers.newest {
            let record = match task {
                Some(task) => self.task(task).await.ok(),
                None => None,
            };
            // Trailers can be copied: only a commit that the record of the run names proves its maker.
            let is_left = |it: &Task| left(it).is_some_and(|it| is_among(&it, &makers.commits));
            let is_proven = record.is_some_and(|it| it.order.worker == *agent && is_left(&it));
            let is_known = is_proven || self.knows(agent).await?;
            return Ok(Some(Owner {
                agent: agent.clone(),
                by: "the trailers of its commits",
                is_proven,
                is_known,
                is_away: self.is_away(agent).await?,
            }));
        }
        let names = |text: &str| {
            let is_part = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
            text.split(|c| !is_part(c)).any(|word| word == branch)
        };
        let intents = self.view(SomeIntents::default()).await?;
        let intent = intents.into_iter().rev().find(|it| names(&it.it.description));
        if let Some(intent) = intent {
            return Ok(Some(Owner {
                agent: intent.it.agent.clone(),
                by: "its intent",
                is_proven: false,
                is_known: true,
                is_away: false,
            }));
        }
        let locks = self.view(LiveLocks { holder: None, files: Vec::new() }).await?.0;
        let lock = locks.into_iter().find(|it| it.it.reason.as_deref().is_some_and(names));
        Ok(lock.map(|it| Owner {
            agent: it.it.holder.clone(),
            by: "its lock",
            is_proven: false,
            is_known: true,
            is_away: false,
        }))
    }

    /// Checks whether an agent is a worker that cannot read messages now: it has no unfinished task, and no other program uses its name.
    async fn is_away(&self, agent: &AgentId) -> Result<bool, Refusal> {
        if !self.profiles().contains_key(agent) {
            return Ok(false);
        }
        let works = self.view(LiveTasks).await?.tasks.iter().any(|it| it.order.worker == *agent);
        Ok(!works && !self.view(KnownAgents).await?.iter().any(|it| it.id == *agent && it.alive))
    }

    /// Checks whether an agent of this name exists: one that has come to a door, or a worker of the configuration.
    async fn knows(&self, agent: &AgentId) -> Result<bool, Refusal> {
        let is_worker = self.profiles().contains_key(agent);
        Ok(is_worker || self.view(KnownAgents).await?.iter().any(|it| it.id == *agent))
    }
}

impl Provost {
    /// Records that the commits of runs are merged. A commit counts if the daemon's record of the task names it, or
    /// names the branch on which the run left it before a rebase, and if it held all changes of the run.
    ///
    /// # Errors
    /// A [`Refusal`] of the core. If git does not answer, the changes are left as they are, and the log says so.
    pub(super) async fn note_merged(&self, entry: &MergeEntry, from: Option<&str>) -> Result<(), Refusal> {
        let (from, commit) = (from.map(str::to_owned), entry.commit.to_string());
        let commits = self.with_objects(move |objects| Ok(objects.commits(from.as_deref(), &commit)?)).await;
        let commits = match commits {
            Ok(commits) => commits,
            Err(MergeError::Refused(refusal)) => return Err(refusal),
            Err(error) => {
                tracing::warn!(%error, branch = %entry.branch, "it is not known which tasks have made the merged commits");
                return Ok(());
            }
        };
        for commit in commits {
            let Some(id) = trailer(&commit, TASK).and_then(|it| TaskId::parse(&it).ok()) else { continue };
            let Ok(task) = self.task(&id).await else { continue };
            if holds_all(&task, &commit.id, &entry.branch) {
                self.submit(self.system(), NoteMerged { task: id, into: entry.into.clone() }).await?;
            }
        }
        Ok(())
    }
}

/// Returns the work tree that a run has left, by the record of its task.
fn left(task: &Task) -> Option<serde_json::Value> {
    let said = task.notes.iter().rev().filter_map(|it| it.report.details.as_ref());
    said.map(|it| it.value()["work_tree"].clone()).find(|it| it["branch"].is_string())
}

/// Checks whether these commits include the one that the run has left.
fn is_among(left: &serde_json::Value, commits: &BTreeSet<String>) -> bool {
    left["commit"].as_str().is_some_and(|it| commits.contains(it))
}

/// Checks whether a run has left this commit and no other changes, by the record of its task. A rebase changes the
/// commit's id, and maybe its message; its trailer and the branch on which the run has left it stay.
fn holds_all(task: &Task, commit: &str, branch: &str) -> bool {
    left(task).is_some_and(|it| {
        (it["commit"] == commit || it["branch"] == branch)
            && it["not_committed"].as_array().is_some_and(Vec::is_empty)
    })
}

/// Returns the value of a key in the last paragraph of a commit's message.
fn trailer(commit: &CommitInfo, key: &str) -> Option<String> {
    let last = commit.message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    last.lines().rev().find_map(|line| line.strip_prefix(key)).map(|it| it.trim().to_owned())
}

impl Owner {
    /// Names the agent that is told, and why, for the end of a message that a person and the owner read.
    pub(super) fn why_told(&self, branch: &str) -> String {
        let agent = &self.agent;
        if !self.is_known {
            return format!(
                "The trailers of its commits name {agent}, which is no agent that the daemon knows, so no agent is told."
            );
        }
        if self.is_away {
            return format!(
                "{agent} has made it, by {}, and no run of that worker is there to be told. Have it mended by another run: \
                 `provost delegate GOAL --worker {} --worktree {}`.",
                self.by,
                shell_word(agent.as_str()),
                shell_word(branch)
            );
        }
        let known = if self.is_proven { "" } else { ", which the daemon cannot prove" };
        format!("The daemon has told {agent}, the owner by {}{known}.", self.by)
    }
}
