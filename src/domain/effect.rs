//! Effects: actions that the daemon owes to the outside world, and their form after a start.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Change, Deed, Notice, OutgoingNotice, Principal};
use provost_base::{AgentId, ApplyId, DaemonId, EffectId, Fence, JobId, TaskId};

/// An action owed to the outside world: stored with the change that caused it, carried out after the commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Start a worker of the configuration in the jail. At most once.
    SpawnWorker {
        /// The task that the worker does.
        task: TaskId,
    },
    /// End a worker that runs. At least once.
    StopWorker {
        /// The task that the worker works on.
        task: TaskId,
        /// The reason, for the task's result.
        reason: Box<str>,
    },
    /// Run the notification hook. At least once, each time with the same number of the effect.
    RunHook {
        /// The message that the hook gets.
        notice: Arc<Notice>,
    },
    /// Send a notice to an address elsewhere. At least once, each time with the same id.
    SendNotice {
        /// The notice, and the address of the configuration to which it goes.
        notice: Arc<OutgoingNotice>,
    },
    /// Release the hooks of a task that were owed before. At least once.
    SignalAck {
        /// The task that was acknowledged.
        task: TaskId,
    },
    /// Watch files while a collecting worker has a task. Goes on after a crash.
    WatchFiles {
        /// The task whose files are watched.
        task: TaskId,
    },
    /// Take a picture of the screen. At most once, and not after a restart: no agent expects it then.
    Capture {
        /// The task whose result is the picture.
        task: TaskId,
        /// The agent that asked, so that the core can ask the rules once more.
        asker: Principal,
    },
    /// Carry out an editor's job. A job whose runs have begun is not begun a second time: the next start ends it.
    RunJob {
        /// The job, whose request is in the store.
        job: JobId,
    },
    /// Write the files of an apply. At most once: its asker has the new contents, and the next start finds out how
    /// far it came.
    WriteFiles {
        /// The apply, whose record has the old contents.
        apply: ApplyId,
        /// The agent that asked for it.
        by: AgentId,
        /// The task whose changes the apply writes; `None` if they are no task's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<TaskId>,
    },
    /// Merge branches of the queue, one after the other. At least once: each entry has its progress on record.
    RunMerges {
        /// The numbers of the entries, in order.
        numbers: Vec<Fence>,
        /// The user in whose name checks are delegated.
        asker: Principal,
    },
    /// Remove a run's discarded changes from the disk. At least once.
    DropChanges {
        /// The task of that run.
        task: TaskId,
    },
}

/// An owed effect as the store remembers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owed {
    /// The effect's number, by which it is settled.
    pub id: EffectId,
    /// The action outside of the daemon.
    pub effect: Effect,
    /// Whether a daemon had begun to carry it out.
    pub started: bool,
    /// The daemon that owes it; a later one of the same host takes it up.
    pub by: DaemonId,
}

impl Owed {
    /// Returns the change that brings the effect back to memory at a start; `None` if it is not kept in memory.
    pub fn in_memory(&self) -> Option<Change> {
        match &self.effect {
            Effect::RunHook { notice } => Some(Change::OweHook(self.id, notice.clone())),
            Effect::SendNotice { notice } => Some(Change::OweNotice(self.id, notice.clone())),
            Effect::WriteFiles { apply, of, .. } => {
                Some(Change::OweDeed(self.id, Deed::Apply(*apply), of.clone()))
            }
            effect => effect.deed().map(|deed| Change::OweDeed(self.id, deed, None)),
        }
    }
}
