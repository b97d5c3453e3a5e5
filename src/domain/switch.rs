//! Workers that a command has switched off, or holds back.
//!
//! ```text
//!   [on] --pause--> [paused] --resume--> [on]      new work waits
//!   [on] --stop---> [off] ----start----> [on]      new work is refused
//! ```
//! Only a person can resume a worker that a person has paused. A worker that an agent has paused can be resumed by
//! the same agent, from the same place, or by a person. In either case running work comes to its end, and accepted
//! work waits. A person's pause lasts until a person ends it, even over starts of the daemon; an agent's pause ends
//! with the daemon. A6s 6.9.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::command::{SwitchWorker, WorkerSwitched};
use super::{Change, Delegate, Door, EventKind, Outbox, Principal, Refusal, Share, State};
use provost_base::{AgentId, DaemonId};

/// Whether a worker begins tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// The worker accepts tasks, and begins them.
    #[default]
    On,
    /// The worker begins nothing at the moment: its tasks wait.
    Paused,
    /// The worker accepts no tasks; those that it had accepted wait.
    Off,
}

impl Switch {
    /// Returns the word that people read.
    pub fn as_str(self) -> &'static str {
        match self {
            Switch::On => "on",
            Switch::Paused => "paused",
            Switch::Off => "off",
        }
    }
}

/// A worker that begins no tasks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Switched {
    /// The state of the switch: paused or off.
    pub to: Switch,
    /// The agent or person that has switched it.
    pub by: AgentId,
    /// The share of that agent, since any agent can take a free name; `None` for a person, who may come from
    /// another place tomorrow.
    pub from: Option<Share>,
    /// The daemon at which it was switched; an agent's switch ends with that daemon.
    #[serde(default, skip_serializing_if = "DaemonId::is_alone")]
    pub daemon: DaemonId,
}

impl Switched {
    /// Checks whether the switch is kept over starts of the daemon: only a person's is, since an agent can have the daemon start again.
    pub fn is_lasting(&self) -> bool {
        self.from.is_none()
    }

    /// Checks whether this caller may let the worker begin again.
    fn is_undone_by(&self, who: &Principal) -> bool {
        let same = self.from.as_ref().is_some_and(|from| *from == who.share() && self.by == *who.agent());
        same || who.is_person()
    }
}

/// All workers that begin no tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Switches(BTreeMap<AgentId, Switched>);

impl Switches {
    /// Returns the state of a worker's switch.
    pub fn of(&self, worker: &AgentId) -> Switch {
        self.0.get(worker).map_or(Switch::On, |it| it.to)
    }

    /// Returns each worker that is not on.
    pub fn iter(&self) -> impl Iterator<Item = (&AgentId, &Switched)> {
        self.0.iter()
    }

    pub(super) fn put(&mut self, worker: &AgentId, to: Option<&Switched>) {
        match to {
            Some(to) => drop(self.0.insert(worker.clone(), to.clone())),
            None => drop(self.0.remove(worker)),
        }
    }

    /// Checks whether a worker accepts new tasks.
    ///
    /// # Errors
    /// [`Refusal::WorkerBroken`], which names the caller that has switched it off.
    pub(super) fn takes_on(&self, worker: &AgentId) -> Result<(), Refusal> {
        match self.0.get(worker) {
            Some(Switched { to: Switch::Off, by, .. }) => Err(refusal(worker, Switch::Off, by)),
            _ => Ok(()),
        }
    }

    /// Checks whether a worker may begin the tasks that it has accepted.
    ///
    /// # Errors
    /// [`Refusal::WorkerBroken`], which names the caller that has switched it off or paused it.
    pub(super) fn begins(&self, worker: &AgentId) -> Result<(), Refusal> {
        match self.0.get(worker) {
            Some(Switched { to, by, .. }) => Err(refusal(worker, *to, by)),
            None => Ok(()),
        }
    }
}

fn refusal(worker: &AgentId, to: Switch, by: &AgentId) -> Refusal {
    let why = format!(
        "{by} has switched it {}; the fleet command `start` from where that was said, or `provost worker resume {worker}`, switches it on",
        to.as_str()
    );
    Refusal::WorkerBroken { worker: worker.clone(), why: why.into() }
}

impl State {
    /// Checks whether a delegation's worker accepts it. The tasks of a job were accepted with the job.
    pub(super) fn takes_on(&self, verb: &Delegate) -> Result<(), Refusal> {
        let of_a_job = || self.jobs.iter().any(|job| !job.state.is_over() && job.tasks.contains(&verb.task));
        self.switches.takes_on(&verb.worker).or_else(|refusal| if of_a_job() { Ok(()) } else { Err(refusal) })
    }

    /// Switches a worker. An agent that may delegate to a worker of the configuration may hold it back.
    pub(super) fn switch_worker(
        &self,
        who: &Principal,
        verb: &SwitchWorker,
        out: &mut Outbox,
    ) -> Result<WorkerSwitched, Refusal> {
        let before = self.switches.of(&verb.worker);
        if !self.settings.workers.contains_key(&verb.worker) {
            let why = "it is not in the configuration; `provost status` lists those that are".into();
            return Err(Refusal::WorkerBroken { worker: verb.worker.clone(), why });
        }
        if who.door() == Door::Own && !who.is_person() {
            let why = "only a person does that here, with `provost worker resume` and `pause` at a terminal that is not below an \
                       agent";
            return Err(Refusal::NotYoursToSwitch { worker: verb.worker.clone(), why: why.into() });
        }
        // The agent that has paused a worker, or a person, can resume it; other agents may only pause it as well.
        let held = self.switches.0.get(&verb.worker);
        let others = held.filter(|it| !it.is_undone_by(who));
        if let Some(Switched { to, by, from, .. }) = others
            && verb.to != Switch::Off
        {
            let worker = verb.worker.clone();
            let whose = if from.is_some() { "it or a person has" } else { "a person has" };
            let why = format!(
                "{by} has switched it {}, and {whose} it begin again: `provost worker resume {worker}`, at a terminal that is not \
                 below an agent",
                to.as_str()
            );
            return Err(Refusal::NotYoursToSwitch { worker, why: why.into() });
        }
        let own = || (who.agent().clone(), (!who.is_person()).then(|| who.share()));
        let (by, from) = others.map_or_else(own, |it| (it.by.clone(), it.from.clone()));
        out.append_event(EventKind::WorkerSwitched {
            worker: verb.worker.clone(),
            to: verb.to,
            command: verb.command.clone(),
        });
        let switched = Switched { to: verb.to, by, from, daemon: self.here };
        let switched = (verb.to != Switch::On).then_some(switched);
        out.put(Change::Switch(verb.worker.clone(), switched));
        Ok(WorkerSwitched { from: before })
    }
}
