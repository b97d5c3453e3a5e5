//! The limits of a work machine: a host that has joined with the role `worker`, and carries out tasks that other hosts have asked for.
//!
//! ```text
//!   may: take an open task, run it, say how it has ended, and let go what has waited for that; what agents in its jails coordinate; ask
//!        whether such an agent may use a tool; say what it can do, and leave
//!   may not: answer, ask for tasks, change what runs elsewhere, tokens, passkeys, users, files and branches, or say that others have gone
//! ```
//! One rule serves both sides. The machine's own daemon applies it to each command before it changes anything, and refuses the command.
//! Each other daemon applies it to each entry of such a machine before folding the entry, so that a compromised machine gains nothing. Only
//! full hosts keep the time of leases, questions and waits, since a rule could not tell an early end from a true one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    Change, Command, Core, Effect, Event, EventKind, Failure, GrantChange, HOST_ABLE, HOST_DOWN, HostAbility,
    Lock, LogEntry, Outbox, Outcome, Parked, Proof, QueueEvent, Refusal, State, Task, TaskState,
    USER_CHANGED, WorkerKind,
};
use provost_base::limits::NUMBERS_SKIPPED_AT_ONCE_MAX;
use provost_base::{AgentId, ApprovalId, DaemonId, EffectId, HostId, HostRole, SymbolPath, TaskId, Ticket};

/// Kinds of events that such a machine decides in no state.
pub const NEVER_WORK: [&str; 13] = [
    "approval_answered",
    "changes_discarded",
    "changes_merged",
    "grant_failed",
    "passkey_added",
    "passkey_revoked",
    "passkeys_reset",
    "push_added",
    "push_removed",
    "task_delegated",
    "token_ended",
    "token_minted",
    "worker_switched",
];

/// The act that such a machine may not do, in words that continue a sentence about the machine.
type Beyond = Box<str>;

/// The greatest step of a number in one entry: a turn may skip half as many, and then give some.
const STEP_MAX: u64 = 2 * NUMBERS_SKIPPED_AT_ONCE_MAX;

impl Core {
    /// Says what this host has joined for.
    pub fn joined_for(&mut self, role: HostRole) {
        self.state.works_only = role == HostRole::Worker;
    }
}

impl State {
    /// Whether this host only works.
    pub fn only_works(&self) -> bool {
        self.works_only
    }

    /// Checks that an entry of a work machine decides nothing that such a machine may not decide, by the state before the entry.
    ///
    /// # Errors
    /// The first such act, in words that continue a sentence about the machine.
    pub fn must_be_work(&self, entry: &LogEntry) -> Result<(), Beyond> {
        let mut checking = Checking::of(self, entry.by);
        entry.events.iter().try_for_each(|it| never_work(&it.kind))?;
        entry.changes.iter().try_for_each(|it| checking.change(it))?;
        entry.events.iter().try_for_each(|it| checking.event(it))?;
        entry.effects.iter().try_for_each(|(_, host, effect)| checking.effect(*host, effect))
    }

    /// Takes back what a step of the daemon's own has put into the outbox, where a host that only works may not decide it.
    pub(super) fn keep_to_work(&self, out: &mut Outbox) {
        if self.must_be_work_here(out).is_err() {
            out.undo();
        }
    }

    /// Whether what a command has put into the outbox is work, where this host only works.
    ///
    /// # Errors
    /// [`Refusal::OnlyWorks`].
    pub(super) fn must_be_work_here(&self, out: &Outbox) -> Result<(), Refusal> {
        if !self.works_only {
            return Ok(());
        }
        let mut checking = Checking::of(self, self.here);
        let (events, changes) = out.news();
        // Tasks that have ended in this batch already are no longer in memory.
        let before = out.changes.len() - changes.len();
        checking.has_ended.extend(out.changes[..before].iter().filter_map(ended));
        let mut all = changes.iter().filter(|it| it.is_shared());
        let is_never = events.iter().try_for_each(|it| never_work(&it.kind));
        is_never
            .and_then(|()| all.try_for_each(|it| checking.change(it)))
            .and_then(|()| events.iter().try_for_each(|it| checking.event(it)))
            .and_then(|()| {
                let owed = out.owed_news();
                owed.into_iter().try_for_each(|(host, effect)| checking.effect(host, effect))
            })
            .map_err(Refusal::OnlyWorks)
    }
}

fn ended(change: &Change) -> Option<TaskId> {
    match change {
        Change::FinishTask(task) => Some(task.id().clone()),
        _ => None,
    }
}

fn no(why: impl Into<Beyond>) -> Result<(), Beyond> {
    Err(why.into())
}

/// Refuses the events of decisions that such a machine never makes. It comes first, since its words name the attempt best.
fn never_work(kind: &EventKind) -> Result<(), Beyond> {
    match kind {
        EventKind::ApprovalAnswered { approval, .. } => no(format!("it answers approval {}", approval.0)),
        EventKind::GrantFailed { approval, .. } => no(format!("it grants approval {}", approval.0)),
        EventKind::TaskDelegated { task, .. } => no(format!("it asks for task {task}")),
        EventKind::TokenMinted { .. } | EventKind::TokenEnded { .. } => no("it changes tokens"),
        EventKind::PasskeyAdded { .. }
        | EventKind::PasskeyRevoked { .. }
        | EventKind::PasskeysReset { .. }
        | EventKind::WordSaid(_) => no("it changes passkeys, or says what one has signed"),
        EventKind::PushAdded { .. } | EventKind::PushRemoved { .. } => {
            no("it changes which browsers are told")
        }
        EventKind::WorkerSwitched { worker, .. } => no(format!("it switches worker {worker}")),
        EventKind::Job(_) | EventKind::Apply(_) | EventKind::Merge(_) => {
            no("it has a job, an apply or a merge")
        }
        EventKind::ChangesDiscarded { task, .. } | EventKind::ChangesMerged { task, .. } => {
            no(format!("it reports what happened to the changes of task {task}"))
        }
        EventKind::Published { proof: Some(Proof::Terminal | Proof::Desktop | Proof::Passkey), .. } => {
            no("it speaks for a person")
        }
        _ => Ok(()),
    }
}

/// An entry on its way through the rule.
struct Checking<'a> {
    state: &'a State,
    by: DaemonId,
    /// Tasks as they stand in the middle of the entry.
    tasks: BTreeMap<TaskId, Arc<Task>>,
    /// Tasks that have ended in it.
    has_ended: BTreeSet<TaskId>,
    /// Questions that are asked in it.
    asked: BTreeSet<ApprovalId>,
    /// The places that the machine locks in the entry.
    locked: BTreeSet<SymbolPath>,
    /// The abilities that the machine publishes in the entry.
    ability: Option<Arc<HostAbility>>,
}

impl<'a> Checking<'a> {
    fn of(state: &'a State, by: DaemonId) -> Self {
        let (tasks, has_ended, asked, locked) = Default::default();
        Self { state, by, tasks, has_ended, asked, locked, ability: None }
    }

    // tidy: long because it has one arm for each kind of change
    fn change(&mut self, change: &Change) -> Result<(), Beyond> {
        match change {
            Change::PutTask(task) => self.task_goes_on(task),
            Change::FinishTask(task) => self.task_ends(task),
            Change::AmendTask(task) => match self.task(task.id()) {
                None if task.state.is_finished() && self.is_by(task.daemon) => Ok(()),
                _ => no(format!("it adds to task {}, which it has not run", task.id())),
            },
            Change::PutApproval(parked) => self.question(parked),
            Change::DropApproval(id) => self.is_its_question(*id),
            Change::Grant(GrantChange::Keep(_, _, grant, _)) => match grant.outcome {
                Outcome::Denied(..) => self.is_its_question(grant.approval),
                Outcome::Granted | Outcome::Made(_) => no(format!("it grants approval {}", grant.approval.0)),
            },
            Change::HostDown(daemon, _) if !self.is_by(*daemon) => {
                no(format!("it says that the host {} has gone", daemon.host.short()))
            }
            Change::PutAbility(it) if it.daemon != self.by => no("it publishes what another host can do"),
            Change::PutAbility(it) if it.role.is_full() => no("it says that it is a full host"),
            Change::PutAbility(it) => {
                self.ability = Some(it.clone());
                Ok(())
            }
            Change::DropAbility(host) if *host != self.by.host => no("it withdraws what another host can do"),
            Change::StartEffect(id) | Change::DropEffect(id) => self.is_its_effect(*id),
            Change::Count(new) => self.numbers_rise(new),
            Change::PutToken(_) | Change::DropToken(_) => no("it changes tokens"),
            Change::Passkey(_) => no("it changes passkeys"),
            Change::Push(_) => no("it changes which browsers are told"),
            Change::PutUser(_) | Change::DropUser(_) => no("it changes users"),
            Change::Job(_) => no("it changes a job"),
            Change::PutMerge(_) | Change::DropMerge(_) => no("it changes what is to be merged"),
            Change::Switch(worker, _) => no(format!("it switches worker {worker}")),
            Change::OweDeed(..) => no("it writes files of the repository"),
            Change::PutLock(lock) => self.takes_lock(lock),
            Change::DropLock(at) => self.frees_lock(at),
            Change::PutWaiter(it) if !self.is_by(it.daemon) => no("it has an agent of another host wait"),
            Change::PutWaiter(it) => self.ends_wait(it.ticket),
            Change::DropWaiter(ticket) => self.ends_wait(*ticket),
            Change::At(agent, at) if at.is_none_or(|it| !self.is_by(it.daemon)) => {
                no(format!("it says that {agent} is elsewhere"))
            }
            Change::DropAgent(agent) if !self.is_its_agent(agent) => no(format!("it forgets {agent}")),
            Change::HostDown(..)
            | Change::DropAbility(_)
            | Change::Grant(GrantChange::Use(..))
            | Change::PutAgent(_)
            | Change::Beat(..)
            | Change::CameBy(..)
            | Change::At(..)
            | Change::DropAgent(_)
            | Change::PutMail(_)
            | Change::DropMail(..)
            | Change::CarryMail(..)
            | Change::Apply(_)
            | Change::PutUses(_)
            | Change::RefuseCircle(_)
            | Change::PutIntent(_)
            | Change::DropIntent(_)
            | Change::PutContract(_)
            | Change::DropContract(_)
            | Change::Post(_)
            | Change::Crew(_)
            | Change::Spend(_)
            | Change::OweHook(..)
            | Change::OweNotice(..) => Ok(()),
        }
    }

    /// Checks that the machine takes a lock of its own, and replaces no lock of another host's.
    fn takes_lock(&mut self, lock: &Lock) -> Result<(), Beyond> {
        if !self.is_by(lock.daemon) {
            return no(format!("it has the lock on {} for another host", lock.at));
        }
        if self.state.locks.at_place(lock.place).is_some_and(|at| *at != lock.at) {
            return no(format!("its lock on {} has the place of another lock", lock.at));
        }
        self.frees_lock(&lock.at)?;
        self.locked.insert(lock.at.clone());
        Ok(())
    }

    /// Checks that the machine frees a lock that it has granted, or a lock whose time is up, which the next agent takes over.
    fn frees_lock(&self, at: &SymbolPath) -> Result<(), Beyond> {
        let other = |it: &&Arc<Lock>| !it.lapsed && !self.is_by(it.daemon) && !self.locked.contains(at);
        match self.state.locks.get(at).filter(other) {
            Some(lock) => no(format!("it frees the lock on {at}, which {} has at another host", lock.holder)),
            None => Ok(()),
        }
    }

    fn ends_wait(&self, ticket: Ticket) -> Result<(), Beyond> {
        match self.state.locks.waiter(ticket).filter(|it| !self.is_by(it.daemon)) {
            Some(it) => no(format!("it has {} wait no longer, which waits at another host", it.agent)),
            None => Ok(()),
        }
    }

    fn is_its_agent(&self, agent: &AgentId) -> bool {
        self.state.agents.at(agent).is_none_or(|it| self.is_by(it.daemon))
    }

    fn is_by(&self, daemon: DaemonId) -> bool {
        daemon.host == self.by.host
    }

    /// A task that has not ended, as it stands by now.
    fn task(&self, id: &TaskId) -> Option<&Arc<Task>> {
        if self.has_ended.contains(id) {
            return None;
        }
        self.tasks.get(id).or_else(|| self.state.tasks.get(id))
    }

    /// Whether a task may go on now since one that it waits for has ended by this machine.
    fn is_released(&self, task: &Task) -> bool {
        let waits = matches!(task.state, TaskState::Waiting | TaskState::Awaiting { .. });
        waits && task.waits.iter().any(|it| self.has_ended.contains(it))
    }

    fn task_goes_on(&mut self, new: &Arc<Task>) -> Result<(), Beyond> {
        let Some(old) = self.task(new.id()).cloned() else {
            return no(format!("it asks for task {}", new.id()));
        };
        must_be_the_same(&old, new)?;
        let goes_back = new.daemon.is_alone();
        let may = match () {
            () if new.state.is_finished() => false,
            () if old.is_open() => new.state.is_queued() && (goes_back || new.daemon == self.by),
            () if self.is_by(old.daemon) && old.kind == WorkerKind::Cli => {
                goes_back || self.is_by(new.daemon)
            }
            () if self.is_released(&old) => {
                let stays =
                    new.state == old.state || (old.state == TaskState::Waiting && new.state.is_queued());
                stays
                    && (goes_back || new.daemon == old.daemon)
                    && new.waits.iter().all(|it| old.waits.contains(it))
            }
            () => false,
        };
        if !may {
            return no(format!("it changes task {}, which it does not run", new.id()));
        }
        self.tasks.insert(new.id().clone(), new.clone());
        Ok(())
    }

    fn task_ends(&mut self, new: &Arc<Task>) -> Result<(), Beyond> {
        let Some(old) = self.task(new.id()) else {
            return no(format!("it ends task {}, which is not there", new.id()));
        };
        must_be_the_same(old, new)?;
        let may = match &new.failure {
            _ if self.is_by(old.daemon) => true,
            // It could have done it, and each other host that could has said that it does not.
            Some(Failure::NoHost { .. }) => {
                let ability = self.ability.as_ref().or_else(|| self.state.abilities.of(self.by.host));
                let could = ability.is_some_and(|it| old.may_go_to(it));
                let mut others =
                    self.state.abilities.iter().filter(|it| !self.is_by(it.daemon) && !it.drains);
                let waits = old.order.waits_for_host() || !old.is_open();
                could && !waits && !others.any(|it| old.may_go_to(it))
            }
            Some(Failure::NotBegun { .. }) => self.is_released(old),
            _ => false,
        };
        if !may {
            let whose = match old.daemon.is_alone() {
                true => "which no host has taken".to_owned(),
                false => format!("which is the host {}'s", old.daemon.host.short()),
            };
            return no(format!("it ends task {}, {whose}", new.id()));
        }
        self.has_ended.insert(new.id().clone());
        Ok(())
    }

    /// It may ask whether an agent in a jail of its may use a tool, or use more of a budget.
    fn question(&mut self, parked: &Parked) -> Result<(), Beyond> {
        let is_new = self.state.approvals.get(parked.id).is_none_or(|it| self.is_by(it.daemon));
        let is_of_run = matches!(parked.command, Command::AskPermission(_) | Command::GoOn(_));
        if !is_new || !is_of_run || !self.is_by(parked.daemon) {
            return no(format!("it asks for approval {}", parked.id.0));
        }
        self.asked.insert(parked.id);
        Ok(())
    }

    fn is_its_question(&self, id: ApprovalId) -> Result<(), Beyond> {
        let parked = self.state.approvals.get(id);
        let never_begins = |it: &Arc<Parked>| {
            it.task().and_then(|task| self.task(task)).is_some_and(|task| self.is_released(task))
        };
        match parked {
            _ if self.asked.contains(&id) => Ok(()),
            Some(it) if self.is_by(it.daemon) || never_begins(it) => Ok(()),
            _ => no(format!("it settles approval {}, which it has not asked for", id.0)),
        }
    }

    /// Of other hosts' effects, memory knows the starts of tasks.
    fn is_its_effect(&self, id: EffectId) -> Result<(), Beyond> {
        let is_start = |it: &&Arc<Task>| it.travel.as_ref().is_some_and(|it| it.start == Some(id));
        match self.state.tasks.iter().find(is_start) {
            Some(task) if !self.is_by(task.daemon) => {
                no(format!("it settles the start of task {}, which it does not run", task.id()))
            }
            _ if self.state.owing.has_effect(id) => no("it settles what another host writes"),
            _ => Ok(()),
        }
    }

    fn numbers_rise(&self, new: &super::Counters) -> Result<(), Beyond> {
        let pairs = self.state.counters.all().into_iter().zip(new.all());
        match pairs.into_iter().all(|(old, new)| (old..=old.saturating_add(STEP_MAX)).contains(&new)) {
            true => Ok(()),
            false => no("its numbers do not go on from those that were given"),
        }
    }

    // tidy: long because it has one arm for each kind of event
    fn event(&self, event: &Event) -> Result<(), Beyond> {
        match &event.kind {
            EventKind::ApprovalExpired { approval } | EventKind::ApprovalAskedAgain { approval, .. } => {
                self.is_its_question(*approval)
            }
            EventKind::Recorded { what, subject, .. } => self.recorded(what, subject),
            EventKind::TaskStarted { task }
            | EventKind::TaskAssigned { task, .. }
            | EventKind::TaskBeside { task, .. }
            | EventKind::TaskTainted { task, .. }
            | EventKind::FilesChanged { task, .. }
            | EventKind::ScreenCaptured { task, .. }
            | EventKind::TaskMoved { task, .. }
            | EventKind::TaskFinished { task, .. } => self.is_about_its_task(task),
            // It leaves a task to others, which stays as it is.
            EventKind::Queue(QueueEvent::TaskLeft { .. }) => Ok(()),
            EventKind::Queue(it) => self.is_about_its_task(it.task()),
            EventKind::Talk(it) => self.is_about_its_task(it.task()),
            // See `never_work`.
            EventKind::ApprovalAnswered { .. }
            | EventKind::GrantFailed { .. }
            | EventKind::TaskDelegated { .. }
            | EventKind::TokenMinted { .. }
            | EventKind::TokenEnded { .. }
            | EventKind::PasskeyAdded { .. }
            | EventKind::PasskeyRevoked { .. }
            | EventKind::PasskeysReset { .. }
            | EventKind::WordSaid(_)
            | EventKind::PushAdded { .. }
            | EventKind::PushRemoved { .. }
            | EventKind::WorkerSwitched { .. }
            | EventKind::Job(_)
            | EventKind::Apply(_)
            | EventKind::Merge(_)
            | EventKind::ChangesDiscarded { .. }
            | EventKind::ChangesMerged { .. } => Ok(()),
            EventKind::AgentRegistered { .. }
            | EventKind::AgentRevived
            | EventKind::Denied { .. }
            | EventKind::TaskAcked { .. }
            | EventKind::HookDropped { .. }
            | EventKind::MailQueued { .. }
            | EventKind::MailDelivered { .. }
            | EventKind::MailDropped { .. }
            | EventKind::ApprovalAsked { .. }
            | EventKind::AgentNamed { .. }
            | EventKind::LockAcquired { .. }
            | EventKind::LockFreed { .. }
            | EventKind::LockAwaited { .. }
            | EventKind::LockWaitEnded { .. }
            | EventKind::LockWaitRefused { .. }
            | EventKind::IntentDeclared { .. }
            | EventKind::IntentMoved { .. }
            | EventKind::ContractProposed { .. }
            | EventKind::ContractMoved { .. }
            | EventKind::StakesMet { .. }
            | EventKind::Published { .. }
            | EventKind::PostDelivered { .. }
            | EventKind::PostLogBegun { .. }
            | EventKind::Crew(_)
            | EventKind::Permission(_) => Ok(()),
        }
    }

    /// A task that is not over is one that the machine runs, or one that this entry has changed by the rule.
    fn is_about_its_task(&self, id: &TaskId) -> Result<(), Beyond> {
        match self.state.tasks.get(id) {
            Some(task) if !self.is_by(task.daemon) && !self.has_changed(id) => {
                no(format!("it speaks of task {id}, which it does not run"))
            }
            _ => Ok(()),
        }
    }

    fn has_changed(&self, id: &TaskId) -> bool {
        self.tasks.contains_key(id) || self.has_ended.contains(id)
    }

    fn recorded(&self, what: &str, subject: &str) -> Result<(), Beyond> {
        let is_own = || subject.starts_with(&self.by.host.to_string());
        match what {
            USER_CHANGED => no("it changes users"),
            HOST_DOWN | HOST_ABLE if !is_own() => no(format!("it speaks of the host {subject}")),
            _ => Ok(()),
        }
    }

    /// Of what other hosts are to do, it may have tasks begin that have waited for what it has ended.
    fn effect(&self, host: HostId, effect: &Effect) -> Result<(), Beyond> {
        match effect {
            _ if host == self.by.host => Ok(()),
            Effect::SpawnWorker { task } if self.tasks.contains_key(task) => Ok(()),
            _ => no(format!("it has the host {} do something", host.short())),
        }
    }
}

/// Checks that a task's request stays the same, also when another host carries it out.
fn must_be_the_same(old: &Task, new: &Task) -> Result<(), Beyond> {
    let asked = |it: &Task| {
        let travel = it.travel.as_ref();
        let asked = travel.map(|it| (it.home, it.asker.clone(), it.granted_by.clone(), it.commit.clone()));
        (it.asked_by.clone(), it.asked_from.clone(), it.request, it.kind, it.approval, asked)
    };
    if old.order != new.order || asked(old) != asked(new) {
        return no(format!("it makes task {} another one than was asked for", new.id()));
    }
    Ok(())
}
