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
    /// A task that has just finished: leaves memory, stays in the store as history.
    FinishTask(Arc<Task>),
    /// More is known of a finished task; its place in history stays.
    AmendTask(Arc<Task>),
    /// An agent that is known, with what it announced.
    PutAgent(Arc<RegisteredAgent>),
    /// A sign of life. Memory only.
    Beat(AgentId, Timestamp),
    /// An agent has come by a door. Memory only.
    CameBy(AgentId, Door),
    /// At which daemon an agent has given a sign of life, and when; with `None` that is long ago. Memory only.
    At(AgentId, Option<SeenAt>),
    /// An agent that the daemon need not remember.
    DropAgent(AgentId),
    /// A message in an agent's queue.
    PutMail(Arc<Mail>),
    /// A message that arrived or was given up.
    DropMail(AgentId, MailSeq),
    /// A message is on its way through a daemon (or, with `None`, came back). Memory only.
    CarryMail(AgentId, MailSeq, Option<DaemonId>),
    /// A command that waits for approval.
    PutApproval(Arc<Parked>),
    /// An approval that is settled.
    DropApproval(ApprovalId),
    /// The outcome of a question, kept or used. Memory only.
    Grant(GrantChange),
    /// A change of the memory of recent applies. Memory only.
    Apply(ApplyChange),
    /// Uses of a rate-limited rule.
    PutUses(Uses),
    /// A lock on a symbol, held or lapsed.
    PutLock(Arc<Lock>),
    /// A lock that is free.
    DropLock(SymbolPath),
    /// An agent waits for a lock. Memory only.
    PutWaiter(Arc<Waiter>),
    /// An agent waits for a lock no longer. Memory only.
    DropWaiter(Ticket),
    /// A circle of waiting was refused. Memory only.
    RefuseCircle(Arc<RefusedCircle>),
    /// An announced change, or a change of one.
    PutIntent(Arc<Intent>),
    /// An announced change that is forgotten.
    DropIntent(IntentId),
    /// A contract that is offered, or whose status has changed.
    PutContract(Arc<Contract>),
    /// A contract that is forgotten.
    DropContract(ContractId),
    /// A change that a message between agents makes.
    Post(PostChange),
    /// A row of what a crew works by.
    Crew(CrewChange),
    /// A token that is good from now on.
    PutToken(Arc<Token>),
    /// A token that is good no more.
    DropToken(Digest),
    /// A row of the passkeys on record.
    Passkey(PasskeyChange),
    /// A browser that gets notices, or gets no more.
    Push(PushChange),
    /// A row of a job.
    Job(JobChange),
    /// A branch that is to be merged, or how far it is.
    PutMerge(Arc<MergeEntry>),
    /// A branch of the queue that is forgotten.
    DropMerge(Fence),
    /// What a run's calls have used, and the sums that budgets need.
    Spend(SpendChange),
    /// A worker that begins nothing, or (with `None`) does. Memory only.
    Switch(AgentId, Option<Switched>),
    /// A notification hook is owed, by its effect of that number. Memory only; the effect itself is stored.
    OweHook(EffectId, Arc<Notice>),
    /// A notice is owed to an address elsewhere, by its effect of that number. Memory only; the effect itself is stored.
    OweNotice(EffectId, Arc<OutgoingNotice>),
    /// A job or an apply is owed, by its effect of that number; an apply of a task's changes with the task. Memory only; the
    /// effect itself is stored.
    OweDeed(EffectId, Deed, Option<TaskId>),
    /// A daemon has gone, and what it held is free. Memory only.
    HostDown(DaemonId, Gone),
    /// What the user of a host may do. Of several hosts alone.
    PutUser(Arc<User>),
    /// The user of a host is not listed any more. Of several hosts alone.
    DropUser(HostId),
    /// What a host can do from now on. Memory only.
    PutAbility(Arc<HostAbility>),
    /// A host's daemon has stopped. Memory only.
    DropAbility(HostId),
    /// An effect is being carried out; after a crash it is not tried again.
    StartEffect(EffectId),
    /// An effect needs nothing more.
    DropEffect(EffectId),
    /// The last number handed out, of each kind, and what was counted.
    Count(Counters),
}

/// Who has to know of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeClass {
    /// Every store keeps it, and every daemon has it in memory.
    Row,
    /// Every daemon has it in memory. A store of one writer does not keep it, since it ends with that daemon; a shared store does,
    /// until the host that it belongs to is down.
    Shared,
    /// It belongs to the daemon that has decided it, and is in that memory alone.
    Own,
}

impl Change {
    /// Who has to know of it.
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

    /// Whether every store keeps this; the rest is memory's, but in a shared store.
    pub fn is_stored(&self) -> bool {
        self.class() == ChangeClass::Row
    }

    /// Whether the daemons of other hosts have to know of it, and a shared store keeps it.
    pub fn is_shared(&self) -> bool {
        self.class() != ChangeClass::Own
    }
}
