//! Tasks that may run on another host than their asker's.
//!
//! ```text
//!              a place at home
//!   [allowed] ------------------> [queued at its host] --its run begins--> [running]
//!       |                               ^     |                               |
//!       | none, or not its worker       |     | that host has gone            | lost, and to be tried again
//!       v            one host takes it  |     v                               v
//!     [open] ---------------------------+   [open]                        [retrying] --> [open]
//!       |
//!       +-- each host that could has said why it does not --> [finished: failed]
//! ```
//! An open task is queued and belongs to no host. A host with a free place takes it in its turn at the store, so
//! exactly one does. The rules of its asker's host judge the task first, those of the taking host later. Both judge
//! the same: a host whose worker reaches further than was allowed leaves the task to others.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{Delegated, EndRun, Status};
use super::queue::refused;
use super::view::View;
use super::{
    AbleWorker, Change, Delegate, Effect, EventKind, Facts, Failure, HostAbility, MailKind, Outbox, Parked,
    Placement, Principal, QueueEvent, Refusal, Report, Retries, State, Task, TaskState, WorkerKind,
};
use provost_base::{AgentId, DaemonId, Digest, EffectId, HostId, HostRole, Timestamp};

/// The data of a task that may run on another host than its asker's.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Travel {
    /// The host on which the task was asked for.
    pub home: HostId,
    /// The asker, so that the rules of another host can judge the task.
    pub asker: Principal,
    /// The approver that granted it, if it needed an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<Principal>,
    /// The commit whose files it works on, on another host.
    pub commit: Box<str>,
    /// The worker for which it was allowed.
    pub judged: AbleWorker,
    /// The retries by the host that has the task.
    #[serde(default)]
    pub retries: Retries,
    /// The effect by which that host starts the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<EffectId>,
    /// The daemons that do not take the task, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(DaemonId, Box<str>)>,
}

impl Delegate {
    /// Returns the label that its host must have.
    pub fn label(&self) -> Option<&str> {
        self.placement.as_ref()?.on.as_deref()
    }

    /// Checks whether the task waits for a host if no host can do it now.
    pub fn waits_for_host(&self) -> bool {
        self.placement.as_ref().is_some_and(|it| it.wait_for_host)
    }

    /// Returns why its run has to be on its asker's host; `None` if it may be on another one.
    fn stays(&self) -> Option<&'static str> {
        match () {
            () if self.errand.is_some() => Some("a part of a job runs where the job does"),
            () if self.continues.is_some() => Some("a session can continue only on its own host"),
            () if self.work_tree.is_some() => Some("a run in a work tree commits in its asker's clone"),
            () => None,
        }
    }
}

impl Task {
    /// Checks whether the task waits for a host that takes it.
    pub fn is_open(&self) -> bool {
        self.travel.is_some() && self.daemon.is_alone() && self.state.is_queued()
    }

    /// Returns the commit whose files its run works on, if it runs on another host than its asker's.
    pub fn commit_away(&self) -> Option<&str> {
        self.travel.as_ref().filter(|it| it.home != self.daemon.host).map(|it| &*it.commit)
    }
}

impl AbleWorker {
    /// Completes facts with the worker's properties.
    fn facts(self, facts: Facts) -> Facts {
        let Self { tier, network, git, secrets, .. } = self;
        Facts { worker_kind: Some(WorkerKind::Cli), tier, network, git, secrets, ..facts }
    }
}

/// The place where a delegation can be done.
enum Destination {
    /// This host, or a worker that comes for its tasks.
    Here,
    /// Only another host, with such a worker.
    Away(AbleWorker),
}

impl State {
    fn destination(&self, verb: &Delegate, facts: &Facts) -> Result<Destination, Refusal> {
        let setting = self.settings.workers.get(&verb.worker);
        if setting.is_some_and(|it| it.kind == WorkerKind::Polling) || self.here.is_alone() {
            return Ok(Destination::Here);
        }
        if self.fits_here(verb) && !self.drains {
            return Ok(Destination::Here);
        }
        let placement = verb.placement.as_deref();
        let first = self.others().filter(|it| it.takes(verb)).min_by_key(|it| Reverse(self.free_at(it)));
        let is_known = self.abilities.iter().any(|it| it.workers.contains_key(&verb.worker));
        // A name that no host starts belongs to a worker that comes for its tasks.
        let comes_by_itself = setting.is_none() && !is_known && !verb.waits_for_host();
        let able = match first {
            Some(it) => it.workers.get(&verb.worker).cloned().unwrap_or_default(),
            None if comes_by_itself => return Ok(Destination::Here),
            None if verb.waits_for_host() => self.expected(verb),
            None if self.fits_here(verb)
                || placement.is_none_or(|it| it.on.is_none()) && setting.is_some() =>
            {
                return Ok(Destination::Here);
            }
            None => return Err(refused(self.who_could(verb))),
        };
        if let Some(why) = verb.stays() {
            return Err(refused(format!("{}; {why}", self.not_here(verb))));
        }
        match (&facts.commit, &facts.commit_refused) {
            (Some(_), _) => Ok(Destination::Away(able)),
            (None, why) => Err(refused(format!(
                "{}, and another host works on a commit that both have: {}",
                self.not_here(verb),
                why.as_deref().unwrap_or("it is not known which one this clone is at; ask again")
            ))),
        }
    }

    /// Returns the worker for which a task is judged that waits for a host: as a host with the label has it, or else as this one starts it, or
    /// another one. A host whose worker is another one leaves the task to others.
    fn expected(&self, verb: &Delegate) -> AbleWorker {
        let here = self.settings.workers.get(&verb.worker).filter(|it| it.kind == WorkerKind::Cli);
        let worker = |it: &HostAbility| it.workers.get(&verb.worker).cloned();
        let labelled = self.abilities.iter().filter(|it| it.has(verb)).find_map(|it| worker(it));
        let here = || here.map(AbleWorker::of);
        let elsewhere = || self.abilities.iter().find_map(|it| worker(it));
        labelled.or_else(here).or_else(elsewhere).unwrap_or_default()
    }

    fn not_here(&self, verb: &Delegate) -> String {
        if self.drains {
            return "this host is being drained and takes no new tasks".to_owned();
        }
        let with = verb.label().map_or_else(String::new, |it| format!(" with the label {it}"));
        format!("this host cannot start worker {}{with}", verb.worker)
    }

    /// Returns why no host can do it now: the hosts that have the worker, each with its obstacle.
    fn who_could(&self, verb: &Delegate) -> String {
        let mut said = vec![match verb.label() {
            Some(label) => {
                format!("no host with the label {label} that takes tasks has the worker {}", verb.worker)
            }
            None => format!("no host that takes tasks of other hosts has the worker {}", verb.worker),
        }];
        for it in self.abilities.iter().filter(|it| it.workers.contains_key(&verb.worker)) {
            let takes = it.workers.get(&verb.worker).is_some_and(|it| it.takes);
            let labels: Vec<&str> = it.labels.iter().map(|it| &**it).collect();
            let lacks = match () {
                () if it.drains => "is being drained".to_owned(),
                () if it.has(verb) && !takes => {
                    "has it without a copy, so that its tasks stay there (`other_hosts` in its entry)"
                        .to_owned()
                }
                () if labels.is_empty() => "has it, and no label".to_owned(),
                () => format!("has it, with the labels {}", labels.join(", ")),
            };
            said.push(format!("host {} {lacks}", it.daemon.host.short()));
        }
        said.push("`--wait-for-host` waits until one comes".to_owned());
        said.join("; ")
    }

    /// Completes facts with the worker's properties on the host that would do this.
    ///
    /// # Errors
    /// [`Refusal::NotPlaced`] if no host can, [`Refusal::WorkerBroken`].
    pub(super) fn facts_of(&self, verb: &Delegate, facts: Facts) -> Result<Facts, Refusal> {
        let able = match self.destination(verb, &facts)? {
            Destination::Here => return self.settings.facts_of(verb, facts),
            Destination::Away(able) => able,
        };
        Ok(able.facts(facts))
    }

    /// Completes the facts of a parked delegation, with the worker on the host that asked: the grant is for the request as made there.
    pub(super) fn facts_of_parked(&self, verb: &Delegate, parked: &Parked) -> Result<Facts, Refusal> {
        let asked_at = self.abilities.of(parked.daemon.host).filter(|_| !self.is_here(parked.daemon));
        match asked_at.and_then(|it| it.workers.get(&verb.worker)).filter(|_| verb.command().is_none()) {
            Some(able) => Ok(able.clone().facts(parked.facts.clone())),
            None => self.facts_of(verb, parked.facts.clone()),
        }
    }

    /// Returns the data of a task that may run on another host; `None` for a task that stays.
    pub(super) fn travel_of(&self, who: &Principal, verb: &Delegate, facts: &Facts) -> Option<Box<Travel>> {
        if facts.worker_kind != Some(WorkerKind::Cli) || verb.stays().is_some() || self.here.is_alone() {
            return None;
        }
        let judged = AbleWorker {
            tier: facts.tier,
            network: facts.network.clone(),
            git: facts.git,
            secrets: facts.secrets.clone(),
            ..AbleWorker::default()
        };
        let retries = self.settings.workers.get(&verb.worker).map(|it| it.retries).unwrap_or_default();
        Some(Box::new(Travel {
            home: self.here.host,
            asker: who.clone(),
            granted_by: None,
            commit: facts.commit.clone()?,
            judged,
            retries,
            start: None,
            refused: Vec::new(),
        }))
    }

    /// Hands an allowed or granted task on to its worker. This is the only way there.
    ///
    /// # Errors
    /// [`Refusal::Busy`], [`Refusal::Quota`].
    pub(super) fn dispatch(
        &self,
        now: Timestamp,
        task: Task,
        policy: Digest,
        out: &mut Outbox,
    ) -> Result<Delegated, Refusal> {
        // A granted task is already counted.
        if self.tasks.get(task.id()).is_none() {
            self.tasks.room_for(&task.share(), &self.settings)?;
        }
        self.tasks.has_room_at_worker(&task, &self.mail)?;
        out.append_event(EventKind::TaskDelegated {
            task: task.id().clone(),
            worker: task.order.worker.clone(),
            tool: task.order.tool.name.clone(),
            rule: task.rule.clone(),
            policy,
            request: task.request,
            working_dir: task.directory.as_ref().map(|dir| dir.relative.as_str().into()),
            approval: task.approval,
            judged: None,
            trace: task.order.trace.clone(),
        });
        if !task.waits.is_empty() {
            return Ok(self.tasks.let_wait(now, task, out));
        }
        Ok(self.hand_over(now, task, out))
    }

    /// Hands the task to its worker now, or opens it for a host that takes it.
    pub(super) fn hand_over(&self, now: Timestamp, mut task: Task, out: &mut Outbox) -> Delegated {
        task.state = TaskState::Queued { until: now.after(self.settings.away_keep) };
        task.updated_at = now;
        match task.kind {
            WorkerKind::Cli if task.travel.is_some() && !self.begins_at_home(&task, out) => {
                task.daemon = DaemonId::default();
                task.travel.iter_mut().for_each(|it| it.start = None);
                out.append_event(EventKind::Queue(QueueEvent::TaskOpen { task: task.id().clone() }));
            }
            WorkerKind::Cli => {
                // A task that has waited goes to the host that accepted it.
                if task.daemon.is_alone() {
                    task.daemon = out.owner();
                }
                let start = out.owe_at(task.daemon, Effect::SpawnWorker { task: task.id().clone() });
                task.travel.iter_mut().for_each(|it| it.start = Some(start));
            }
            WorkerKind::Polling => {
                let work = MailKind::Work { task: task.id().clone(), payload: task.order.payload.clone() };
                self.mail.post(now, &task.order.worker, work, out);
            }
        }
        let done = Delegated { task: task.id().clone(), state: task.state };
        out.put(Change::PutTask(Arc::new(task)));
        done
    }

    /// Checks whether a task that could go to other hosts begins here, on its asker's host.
    fn begins_at_home(&self, task: &Task, out: &Outbox) -> bool {
        let is_here = |host: HostId| host == self.here.host;
        let at_home = task.travel.as_ref().is_some_and(|it| is_here(it.home)) && is_here(out.owner().host);
        at_home
            && self.fits_here(&task.order)
            && !self.drains
            && task.refused_by(self.here).is_none()
            && (self.has_room_here() || !self.others().any(|it| task.may_go_to(it)))
    }

    /// Handles a task whose host has gone, if the task may go to others; returns `false` if it has to end instead.
    pub(super) fn goes_on_elsewhere(&self, now: Timestamp, task: &Arc<Task>, out: &mut Outbox) -> bool {
        let Some(travel) = &task.travel else { return false };
        match task.state {
            // The task was not on that host yet.
            TaskState::Waiting | TaskState::Retrying { .. } => true,
            TaskState::Queued { .. } => {
                self.reopen(now, task, out);
                true
            }
            TaskState::Running { .. } => {
                let effect = travel.start.unwrap_or_default();
                let summary = format!("Worker {} was lost: its host is down", task.order.worker).into();
                let report = Report { summary, ..Report::default() };
                let end = EndRun {
                    effect,
                    task: task.id().clone(),
                    status: Status::Failed,
                    report,
                    failure: Some(Failure::Lost),
                    model_used: None,
                    changes: None,
                };
                self.tries_again(now, task, &end, out)
            }
            _ => false,
        }
    }

    /// Opens a task whose run has not begun for any host again.
    fn reopen(&self, now: Timestamp, task: &Task, out: &mut Outbox) {
        let mut task = task.clone();
        out.append_event(EventKind::Queue(QueueEvent::TaskOpen { task: task.id().clone() }));
        (task.daemon, task.updated_at) = (DaemonId::default(), now);
        task.travel.iter_mut().for_each(|it| it.start = None);
        out.put(Change::PutTask(Arc::new(task)));
    }

    /// Opens the tasks that a stopping daemon has taken and not begun for any host again.
    pub(super) fn give_back_taken(&self, now: Timestamp, out: &mut Outbox) {
        let is_its =
            |it: &&Arc<Task>| it.daemon.host == self.here.host && it.state.is_queued() && it.travel.is_some();
        let has_others = self.others().next().is_some();
        for task in self.tasks.iter().filter(is_its).filter(|_| has_others) {
            if let Some(start) = task.travel.as_ref().and_then(|it| it.start) {
                out.put(Change::DropEffect(start));
                self.reopen(now, task, out);
            }
        }
    }
}

impl Task {
    /// Returns why a daemon does not take the task; `None` if it has not refused it.
    pub(super) fn refused_by(&self, daemon: DaemonId) -> Option<&str> {
        let refused = &self.travel.as_ref()?.refused;
        refused.iter().find(|(it, _)| *it == daemon).map(|(_, why)| &**why)
    }

    /// Checks whether another host may take the task.
    pub(super) fn may_go_to(&self, host: &HostAbility) -> bool {
        let is_home = self.travel.as_ref().is_some_and(|it| it.home == host.daemon.host);
        let takes = if is_home { host.has(&self.order) } else { host.takes(&self.order) };
        takes && !host.drains && self.refused_by(host.daemon).is_none()
    }
}

/// The query whether a delegation might go to another host, so that the commit that it works on must be known.
#[derive(Clone, Debug)]
pub struct MightTravel {
    /// The worker that is asked for.
    pub worker: AgentId,
    /// When and where it begins.
    pub placement: Option<Box<Placement>>,
}

impl View for MightTravel {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        let waits = self.placement.as_ref().is_some_and(|it| it.wait_for_host);
        let has_it = |it: &Arc<HostAbility>| it.workers.get(&self.worker).is_some_and(|it| it.takes);
        !state.here.is_alone() && (waits || state.others().any(has_it))
    }
}

/// The query for the workers for which other hosts take tasks, each with these hosts and their roles.
#[derive(Clone, Copy, Debug)]
pub struct WorkersElsewhere;

impl View for WorkersElsewhere {
    type Out = BTreeMap<AgentId, Vec<(HostId, HostRole)>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        let mut found = Self::Out::new();
        for host in state.others() {
            for (id, _) in host.workers.iter().filter(|(_, it)| it.takes) {
                found.entry(id.clone()).or_default().push((host.daemon.host, host.role));
            }
        }
        found
    }
}

/// The query for the daemon that decides here.
#[derive(Clone, Copy, Debug)]
pub struct HereIs;

impl View for HereIs {
    type Out = DaemonId;

    fn look(self, _now: Timestamp, state: &State) -> DaemonId {
        state.here
    }
}

/// The query whether this host only works for others.
#[derive(Clone, Copy, Debug)]
pub struct OnlyWorks;

impl View for OnlyWorks {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.only_works()
    }
}

/// The query whether other hosts take part.
#[derive(Clone, Copy, Debug)]
pub struct HasOthers;

impl View for HasOthers {
    type Out = bool;

    fn look(self, _now: Timestamp, state: &State) -> bool {
        state.abilities.iter().any(|it| it.daemon.host != state.here.host)
    }
}
