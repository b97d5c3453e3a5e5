//! The rows that a command changes: memory and store apply the same ones.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::post::PostChange;
use super::{
    ApplyChange, Contract, Counters, CrewChange, Deed, Door, Gone, GrantChange, HostAbility, Intent,
    JobChange, Lock, Mail, MergeEntry, Notice, OutgoingNotice, Parked, PasskeyChange, PushChange,
    RefusedCircle, RegisteredAgent, SeenAt, SpendChange, Switched, Task, Token, User, Uses, Waiter,
};
use provost_base::{
    AgentId, ApprovalId, ContractId, DaemonId, Digest, EffectId, Fence, HostId, IntentId, MailSeq,
    SymbolPath, TaskId, Ticket, Timestamp,
};

/// A row to write. Memory and store apply the same changes in the same order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A task that is not finished: kept in memory and in the store.
    PutTask(Arc<Task>),
    /// A task that has just finished: it leaves memory, and stays in the store as history.
    FinishTask(Arc<Task>),
    /// An addition to the record of a finished task; its place in history stays.
    AmendTask(Arc<Task>),
    /// A known agent, with its announcements.
    PutAgent(Arc<RegisteredAgent>),
    /// A sign of life. In memory only.
    Beat(AgentId, Timestamp),
    /// An agent has come by a door. In memory only.
    CameBy(AgentId, Door),
    /// The daemon at which an agent has given a sign of life, and the time; `None` if that is long ago. In memory only.
    At(AgentId, Option<SeenAt>),
    /// An agent that the daemon need not remember.
    DropAgent(AgentId),
    /// A message in an agent's queue.
    PutMail(Arc<Mail>),
    /// A message that arrived or was given up.
    DropMail(AgentId, MailSeq),
    /// A message is on its way through a daemon (or, with `None`, came back). In memory only.
    CarryMail(AgentId, MailSeq, Option<DaemonId>),
    /// A command that waits for approval.
    PutApproval(Arc<Parked>),
    /// An approval that is settled.
    DropApproval(ApprovalId),
    /// The outcome of a question, kept or used. In memory only.
    Grant(GrantChange),
    /// A change to the memory of recent applies. In memory only.
    Apply(ApplyChange),
    /// Uses of a rate-limited rule.
    PutUses(Uses),
    /// A lock on a symbol, held or lapsed.
    PutLock(Arc<Lock>),
    /// A lock that is free.
    DropLock(SymbolPath),
    /// An agent waits for a lock. In memory only.
    PutWaiter(Arc<Waiter>),
    /// An agent no longer waits for a lock. In memory only.
    DropWaiter(Ticket),
    /// A circle of waiting was refused. In memory only.
    RefuseCircle(Arc<RefusedCircle>),
    /// An announced change, or an update of one.
    PutIntent(Arc<Intent>),
    /// An announced change that is forgotten.
    DropIntent(IntentId),
    /// A contract that is offered, or whose status has changed.
    PutContract(Arc<Contract>),
    /// A contract that is forgotten.
    DropContract(ContractId),
    /// A change that results from a message between agents.
    Post(PostChange),
    /// A changed row of the crew's state.
    Crew(CrewChange),
    /// A token that is valid from now on.
    PutToken(Arc<Token>),
    /// A token that is no longer valid.
    DropToken(Digest),
    /// A changed row of the passkeys on record.
    Passkey(PasskeyChange),
    /// A browser that gets notices, or no longer gets any.
    Push(PushChange),
    /// A changed row of a job.
    Job(JobChange),
    /// A branch of the queue of merges, with its state.
    PutMerge(Arc<MergeEntry>),
    /// A branch of the queue that is forgotten.
    DropMerge(Fence),
    /// The usage of a run's calls, and the sums that budgets need.
    Spend(SpendChange),
    /// A worker that begins no tasks, or (with `None`) begins them again. In memory only.
    Switch(AgentId, Option<Switched>),
    /// A notification hook is owed, by the effect with that number. In memory only; the effect itself is stored.
    OweHook(EffectId, Arc<Notice>),
    /// A notice is owed to an address elsewhere, by the effect with that number. In memory only; the effect itself is stored.
    OweNotice(EffectId, Arc<OutgoingNotice>),
    /// A job or an apply is owed, by the effect with that number; an apply of a task's changes comes with the task.
    /// In memory only; the effect itself is stored.
    OweDeed(EffectId, Deed, Option<TaskId>),
    /// A daemon has gone, and everything it held is free. In memory only.
    HostDown(DaemonId, Gone),
    /// The role of a host's user. Only with several hosts.
    PutUser(Arc<User>),
    /// The user of a host is no longer listed. Only with several hosts.
    DropUser(HostId),
    /// The abilities of a host from now on. In memory only.
    PutAbility(Arc<HostAbility>),
    /// A host's daemon has stopped. In memory only.
    DropAbility(HostId),
    /// An effect is being carried out; after a crash it is not tried again.
    StartEffect(EffectId),
    /// An effect is settled.
    DropEffect(EffectId),
    /// The last number issued of each kind, and the totals.
    Count(Counters),
}

/// The daemons and stores that have to know of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeClass {
    /// Every store keeps it, and every daemon has it in memory.
    Row,
    /// Every daemon has it in memory. A store with one writer does not keep it, since it ends with that daemon; a
    /// shared store does, until the host that it belongs to is down.
    Shared,
    /// It belongs to the daemon that has decided it, and only that daemon has it in memory.
    Own,
}

impl Change {
    /// Returns which daemons and stores have to know of the change.
    pub fn class(&self) -> ChangeClass {
        match self {
            Change::PutTask(_)
            | Change::FinishTask(_)
            | Change::AmendTask(_)
            | Change::PutAgent(_)
            | Change::DropAgent(_)
            | Change::PutMail(_)
            | Change::DropMail(..)
            | Change::PutApproval(_)
            | Change::DropApproval(_)
            | Change::PutUses(_)
            | Change::PutLock(_)
            | Change::DropLock(_)
            | Change::PutIntent(_)
            | Change::DropIntent(_)
            | Change::PutContract(_)
            | Change::DropContract(_)
            | Change::Crew(_)
            | Change::PutToken(_)
            | Change::DropToken(_)
            | Change::Passkey(_)
            | Change::Push(_)
            | Change::Job(_)
            | Change::PutMerge(_)
            | Change::DropMerge(_)
            | Change::Spend(_)
            | Change::Switch(..)
            | Change::StartEffect(_)
            | Change::DropEffect(_)
            | Change::Count(_) => ChangeClass::Row,
            Change::Post(PostChange::Newest(..))
            | Change::At(..)
            | Change::Grant(_)
            | Change::CarryMail(..)
            | Change::PutWaiter(_)
            | Change::DropWaiter(_)
            | Change::OweHook(..)
            | Change::OweNotice(..)
            | Change::OweDeed(..)
            | Change::PutUser(_)
            | Change::DropUser(_)
            | Change::PutAbility(_)
            | Change::DropAbility(_)
            | Change::HostDown(..) => ChangeClass::Shared,
            Change::Post(_) => ChangeClass::Row,
            Change::Beat(..) | Change::CameBy(..) | Change::Apply(_) | Change::RefuseCircle(_) => {
                ChangeClass::Own
            }
        }
    }

    /// Checks whether every store keeps this change; the others are in memory only, except in a shared store.
    pub fn is_stored(&self) -> bool {
        self.class() == ChangeClass::Row
    }

    /// Checks whether the daemons of other hosts have to know of the change, and a shared store keeps it.
    pub fn is_shared(&self) -> bool {
        self.class() != ChangeClass::Own
    }
}
