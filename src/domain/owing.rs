//! Deeds that go on longer than the command that began them: jobs and applies, owed until their ends are on record.
//!
//! ```text
//!   begun: the effect is owed --carried out--> [started] --its end is committed--> gone
//!                    \                            \
//!                     +-- the daemon dies: still owed, and taken up by the next start
//! ```
//! The store has the effects. Memory has the deed of each effect, so that an end finds its effect, and the core
//! knows which deeds go on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Change, Effect, Outbox, State};
use provost_base::{AgentId, ApplyId, EffectId, JobId, TaskId};

/// A deed that is owed from its beginning to its end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A job of its own is carried out. The steps of a workflow belong to the workflow.
    Job(JobId),
    /// The files of an apply are written.
    Apply(ApplyId),
}

/// The deeds that are owed, each with its effect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Owing {
    effects: BTreeMap<Deed, EffectId>,
    deeds: BTreeMap<EffectId, Deed>,
    /// The tasks whose changes are being written.
    tasks: BTreeMap<EffectId, TaskId>,
}

impl Owing {
    /// Checks whether a deed goes on.
    pub fn has(&self, deed: &Deed) -> bool {
        self.effects.contains_key(deed)
    }

    /// Checks whether this effect owes a deed that goes on.
    pub(super) fn has_effect(&self, effect: EffectId) -> bool {
        self.deeds.contains_key(&effect)
    }

    /// Returns all deeds that go on.
    pub fn deeds(&self) -> impl Iterator<Item = &Deed> {
        self.effects.keys()
    }

    /// Returns the applies that go on.
    pub fn applies(&self) -> impl Iterator<Item = ApplyId> {
        self.effects.keys().filter_map(|deed| match deed {
            Deed::Apply(apply) => Some(*apply),
            Deed::Job(_) => None,
        })
    }

    /// Returns the apply that writes changes of this task at the moment.
    pub(super) fn apply_of(&self, task: &TaskId) -> Option<ApplyId> {
        let (effect, _) = self.tasks.iter().find(|(_, it)| *it == task)?;
        match self.deeds.get(effect)? {
            Deed::Apply(apply) => Some(*apply),
            Deed::Job(_) => None,
        }
    }

    /// Returns the task whose changes an apply writes at the moment.
    pub fn task_of(&self, apply: ApplyId) -> Option<&TaskId> {
        self.tasks.get(self.effects.get(&Deed::Apply(apply))?)
    }

    pub(super) fn put(&mut self, effect: EffectId, deed: Deed, of: Option<TaskId>) {
        self.tasks.extend(of.map(|task| (effect, task)));
        self.effects.insert(deed.clone(), effect);
        self.deeds.insert(effect, deed);
    }

    pub(super) fn remove(&mut self, effect: EffectId) {
        self.tasks.remove(&effect);
        if let Some(deed) = self.deeds.remove(&effect) {
            self.effects.remove(&deed);
        }
    }
}

impl Effect {
    /// Returns the deed that the effect carries out, if it is one.
    pub(super) fn deed(&self) -> Option<Deed> {
        match self {
            Effect::RunJob { job } => Some(Deed::Job(job.clone())),
            Effect::WriteFiles { apply, .. } => Some(Deed::Apply(*apply)),
            Effect::SpawnWorker { .. }
            | Effect::StopWorker { .. }
            | Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::WatchFiles { .. }
            | Effect::DropChanges { .. }
            | Effect::RunMerges { .. }
            | Effect::Capture { .. } => None,
        }
    }
}

/// Owes a job that begins.
pub(super) fn owe_job(job: &JobId, out: &mut Outbox) {
    let id = out.owe(Effect::RunJob { job: job.clone() });
    out.put(Change::OweDeed(id, Deed::Job(job.clone()), None));
}

/// Owes an apply that begins, with the task whose changes it writes, if any.
pub(super) fn owe_apply(apply: ApplyId, by: &AgentId, of: Option<&TaskId>, out: &mut Outbox) {
    let id = out.owe(Effect::WriteFiles { apply, by: by.clone(), of: of.cloned() });
    out.put(Change::OweDeed(id, Deed::Apply(apply), of.cloned()));
}

impl State {
    /// Records that a deed has come so far that it must not be done a second time after a crash.
    pub(super) fn start_deed(&self, deed: &Deed, out: &mut Outbox) {
        if let Some(id) = self.owing.effects.get(deed) {
            out.put(Change::StartEffect(*id));
        }
    }

    /// Settles a deed that is over.
    pub(super) fn settle_deed(&self, deed: &Deed, out: &mut Outbox) {
        if let Some(id) = self.owing.effects.get(deed) {
            out.put(Change::DropEffect(*id));
        }
    }
}
