//! Verbs by which agents coordinate their edits: locks, intents, contracts. wit, 5.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Contract, Intent, IntentStatus, Lock, Meeting, ProcessMark, Reservation, UntilCommit};
use provost_base::{
    AgentId, ContractId, Fence, IntentId, RepoPath, Span, SymbolPath, TaskId, Ticket, Timestamp, Ttl,
};

/// wit `register`: a name for people beside the session id.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NameAgent {
    /// The name; several agents may have the same one.
    pub name: Box<str>,
}

/// The agent has a name and a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentNamed {
    /// The agent's number: counted from 1, never given twice.
    pub number: u64,
}

/// Take a lock on a symbol, or refresh it. wit `lock.acquire`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AcquireLock {
    /// The symbol to lock, in the file's one spelling.
    pub at: SymbolPath,
    /// The symbol, as the caller wrote it.
    pub asked: Box<str>,
    /// The time for which the lock is held without a refresh, from now.
    pub ttl: Ttl,
    /// Whether a refresh never shortens the lock: the caller has named no time of its own, or wants at least the
    /// time that is left.
    #[serde(default)]
    pub keeps_longer: bool,
    /// The time to wait for the lock while another agent has it; `None` to be refused at once.
    pub wait: Option<Ttl>,
    /// The place in the queue that the caller was given before.
    pub ticket: Option<Ticket>,
    /// The purpose, for others to read; a refresh without one keeps the lock's.
    pub reason: Option<Box<str>>,
    /// The process with which the lock ends; a refresh without a process keeps the lock's.
    pub process: Option<ProcessMark>,
    /// Whether the door ties the lock to a session instead, so that a refresh keeps no process.
    #[serde(default)]
    pub in_session: bool,
    /// The grants of the caller's own agent that block the request, too.
    #[serde(default)]
    pub apart: Apart,
    /// Set if the lock ends with the commit of its file; a refresh without it keeps the lock's.
    #[serde(default)]
    pub until_commit: Option<UntilCommit>,
    /// The facts about the symbol that were read before the submit.
    pub seen: SymbolFacts,
}

/// The grants of an agent that block its own request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Apart {
    /// None: the request refreshes what the agent has.
    #[default]
    FromNone,
    /// Grants to other processes: several commands of one agent take turns.
    FromOtherProcesses,
    /// All: the request is for a lock that the agent does not have yet.
    FromAll,
}

/// Facts about a symbol that were read before the submit of a verb about it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SymbolFacts {
    /// Whether the file defines it.
    pub known: SymbolPresence,
    /// The other names of the symbol in its file: `Session.renew` for `renew`, and the other way round.
    pub names: Vec<Box<str>>,
    /// Symbols in any file that call it directly.
    pub callers: Vec<SymbolPath>,
    /// Symbols in any file that it calls directly.
    pub callees: Vec<SymbolPath>,
    /// The callers among them that were found by their name alone, or as one of several possible ones.
    pub guessed_callers: Vec<SymbolPath>,
    /// The same of the callees.
    pub guessed_callees: Vec<SymbolPath>,
    /// The reasons why callers or callees may be missing here.
    pub gaps: Vec<Box<str>>,
}

/// Whether a file defines a symbol.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolPresence {
    /// The daemon did not look, or cannot: it does not read the file's language.
    #[default]
    Unasked,
    /// The file does not exist.
    NoFile,
    /// The file defines the symbol.
    Found,
    /// The file was read, and does not define it.
    Missing,
    /// Several symbols of the file have this name: their full names.
    Ambiguous(Vec<Box<str>>),
    /// The file could not be read as code, for this reason.
    Unreadable(Box<str>),
}

/// The outcome of a request for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Locked {
    /// The caller has the lock.
    Held {
        /// The lock as it is now, with its grant and its end.
        lock: Arc<Lock>,
        /// Whether the caller did not have the lock before. If the caller goes away before it reads this answer,
        /// the lock is given back.
        fresh: bool,
        /// Facts that the caller should know, at most `WARNINGS_MAX`.
        warnings: Vec<Warning>,
        /// The number of further warnings.
        more: usize,
    },
    /// Another agent has the lock; the caller waits, and asks again with this ticket when something has changed.
    Queued {
        /// The caller's place in the queue, with which it asks again.
        ticket: Ticket,
        /// The number of requests that wait before it.
        ahead: usize,
        /// When the caller loses its place, unless it asks again before.
        until: Timestamp,
    },
}

/// Returns the verb of a sentence about a call. A guess is never told as certain.
pub fn call_verb(guessed: bool) -> &'static str {
    if guessed { "may call" } else { "calls" }
}

/// A fact that the holder of a lock should know. No warning is a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Warning {
    /// Another agent has locked a symbol that calls this one.
    CallerLocked {
        /// The symbol that calls the locked one.
        caller: SymbolPath,
        /// The lock that covers it.
        lock: Arc<Lock>,
        /// Whether the call is a guess: the other end was found by its name alone, or as one of several possible ones.
        guessed: bool,
    },
    /// Another agent has locked a symbol that this one calls.
    CalleeLocked {
        /// The symbol that the locked one calls.
        callee: SymbolPath,
        /// The lock that covers it.
        lock: Arc<Lock>,
        /// Whether the call is a guess: the other end was found by its name alone, or as one of several possible ones.
        guessed: bool,
    },
    /// Callers and callees may be missing from the warnings, for this reason.
    Incomplete(Box<str>),
    /// Another agent has locked a symbol that contains this one.
    Inside(Arc<Lock>),
    /// Another agent has locked a part of this symbol.
    Around(Arc<Lock>),
    /// Another agent has announced a change of this symbol.
    Intended(Arc<Intent>),
    /// Another agent has the file, or a part of it, through another door.
    Elsewhere(Arc<Reservation>),
    /// A program listens at the port that was locked.
    PortInUse(u16),
    /// The repository has no such file.
    NoFile,
    /// The file does not define this symbol.
    Unknown,
    /// Several symbols of the file have this name, and this lock is for none of them: their full names.
    Ambiguous(Vec<Box<str>>),
    /// The file could not be read as code, for this reason; warnings that depend on its code are missing.
    Unreadable(Box<str>),
}

/// Take or renew leases on the places that a write touches: all of them, or none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HoldPlaces {
    /// The symbols and files that the write touches, each once.
    pub places: Vec<PlaceToHold>,
    /// The files that the write is about.
    pub files: Vec<RepoPath>,
    /// The other agents' grants in these files; the service has found that none of them blocks this write.
    pub seen: Vec<Fence>,
    /// The top of the work tree in which the agent writes.
    pub tree: Box<str>,
    /// The commit that the work tree is at; `None` if it is not known.
    pub commit: Option<Box<str>>,
    /// Folders of these files that are repositories of their own, each with the commit that it is at.
    #[serde(default)]
    pub nested: Vec<(RepoPath, Option<Box<str>>)>,
    /// The subagent of the session that writes.
    pub part: Option<Box<str>>,
    /// The process with which the leases end.
    pub process: Option<ProcessMark>,
}

impl HoldPlaces {
    /// Returns the commit of the repository that contains a file.
    pub(crate) fn commit_around(&self, file: &RepoPath) -> Option<&str> {
        let is_in = |folder: &RepoPath| {
            file.as_str().strip_prefix(folder.as_str()).is_some_and(|it| it.starts_with('/'))
        };
        let inner = self.nested.iter().filter(|it| is_in(&it.0)).max_by_key(|it| it.0.as_str().len());
        inner.map_or(self.commit.as_deref(), |it| it.1.as_deref())
    }
}

/// A symbol that a write touches, or a whole file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlaceToHold {
    /// The symbol, by its whole path; without a symbol, the file.
    pub at: SymbolPath,
    /// The other names of the same symbol.
    pub names: Vec<Box<str>>,
}

/// The outcome of a request to hold places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlacesHeld {
    /// The caller holds the places that its write touches, by these leases and locks.
    Held(Vec<Arc<Lock>>),
    /// Another agent got a grant there after the service had looked; nothing has changed.
    Overtaken,
}

/// Free the leases of work that is committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FreeCommitted {
    /// The top of the work tree.
    pub tree: Box<str>,
    /// The commit that it is at now; a lease that was taken at this commit stays.
    pub commit: Box<str>,
    /// Files whose content is as committed there.
    pub files: Vec<RepoPath>,
}

/// The leases are free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedFreed {
    /// The number of leases that were freed.
    pub count: usize,
}

/// Take all resources that a task's worker needs, or wait for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TakeNeeds {
    /// The task whose run is about to begin.
    pub task: TaskId,
    /// The longest time that its run may take.
    pub lasts: Ttl,
}

/// The outcome of a request for the resources of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NeedsTaken {
    /// The task has all of them.
    Held,
    /// The task waits, and the daemon asks again when a resource is free.
    Waits {
        /// The first resource that the task lacks.
        wanted: Box<str>,
        /// The agent that has the resource, or has waited for it longer, with that agent's grant.
        by: Box<Rival>,
    },
}

/// Give up a lock. wit `lock.release`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReleaseLock {
    /// The symbol to release, in the file's one spelling.
    pub at: SymbolPath,
    /// Release the lock only if it still is this grant.
    pub fence: Option<Fence>,
    /// Release it for any holder; this needs the right to operate.
    pub force: bool,
}

/// The lock is free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockReleased {
    /// The lock as it was before its release.
    pub lock: Arc<Lock>,
}

/// Give up a place in the queue for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaveQueue {
    /// The place, as the answer to the request for the lock named it.
    pub ticket: Ticket,
}

/// The caller is no longer in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueLeft;

/// Report the end of the caller's session: its locks and places in queues are freed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leave {
    /// Whether its intents are abandoned, too.
    pub intents: bool,
    /// Free only what ends with this process: another process of the same name goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessMark>,
}

/// The caller holds nothing any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HasLeft {
    /// Locks that were released.
    pub locks: usize,
    /// Intents that were abandoned.
    pub intents: usize,
}

/// Free locks whose holders are gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReapLocks {
    /// The locks; each one is freed only if it still is this grant.
    pub locks: Vec<(SymbolPath, Fence)>,
    /// The reason, for the log.
    pub why: Box<str>,
}

/// The locks are free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocksReaped {
    /// The number of locks that were freed; the others have got another grant meanwhile.
    pub count: usize,
}

/// Report files that were renamed: the locks in them go along.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FollowLocks {
    /// Each file's old name and new name.
    pub moves: Vec<(RepoPath, RepoPath)>,
}

/// The locks are under the files' new names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocksFollowed {
    /// The number of locks that have gone along.
    pub count: usize,
}

/// Announce a change. wit `intent.declare`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeclareIntent {
    /// The id; the door chooses it, since the core has no random source.
    pub id: IntentId,
    /// The change, in words.
    pub description: Box<str>,
    /// The files in which the agent will make the change.
    pub files: Vec<IntendedFile>,
    /// The symbols in those files that will change; none for whole files.
    pub symbols: Vec<Box<str>>,
    /// The time until the intent lapses by itself; `None` for the longest time that is accepted.
    pub ttl: Option<Ttl>,
    /// Calls from one of those symbols: the symbol, and the symbol that it calls.
    pub calls: Vec<(SymbolPath, SymbolPath)>,
    /// Calls to one of those symbols: the symbol, and its caller.
    #[serde(default)]
    pub callers: Vec<(SymbolPath, SymbolPath)>,
    /// Those of these calls whose other end was found by its name alone, or as one of several possible ones.
    #[serde(default)]
    pub guessed: Vec<(SymbolPath, SymbolPath)>,
    /// The reasons why some of these calls may be missing.
    #[serde(default)]
    pub gaps: Vec<Box<str>>,
    /// The present places of the symbols of other agents' intents in the same files.
    pub fresh: Vec<FreshSpans>,
    /// The grants of locks that were taken for this change.
    #[serde(default)]
    pub grants: Vec<Fence>,
}

/// One file of an intent, as found before it was declared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFile {
    /// The path, in its one spelling.
    pub path: RepoPath,
    /// The path, as the caller wrote it.
    pub asked: Box<str>,
    /// The places of the intent's symbols; empty if the file defines none of them.
    pub spans: Vec<Span>,
    /// Other names of the intent's symbols in this file: the symbol's place in the list, and the name.
    pub names: Vec<(u32, Box<str>)>,
}

/// The places of an intent's symbols in one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FreshSpans {
    /// The intent whose symbols were looked for.
    pub intent: IntentId,
    /// The file in which they were looked for.
    pub file: RepoPath,
    /// The ranges of bytes of the symbols that the file has now.
    pub spans: Vec<Span>,
}

/// The intent is on record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// The intent as it was recorded.
    pub intent: Arc<Intent>,
    /// Others' claims in the same places, at most `WARNINGS_MAX`.
    pub conflicts: Vec<Conflict>,
    /// The number of further conflicts.
    pub more: usize,
}

/// Something that an intent collides with. A conflict is never a refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Conflict {
    /// No conflict is known, but callers and callees may be missing, for this reason.
    Incomplete(Box<str>),
    /// Another agent's intent for the same place.
    Overlap(Arc<Intent>),
    /// Another agent's lock on a symbol of the intent.
    Locked {
        /// The symbol, as the intent names it.
        symbol: SymbolPath,
        /// The other agent's lock on that symbol.
        lock: Arc<Lock>,
    },
    /// A symbol of the intent calls a symbol that another agent has locked.
    Chain {
        /// The symbol, as the intent names it.
        symbol: SymbolPath,
        /// The lock on the called symbol.
        lock: Arc<Lock>,
        /// Whether the call is a guess: the other end was found by its name alone, or as one of several possible ones.
        guessed: bool,
    },
    /// Another agent has locked a symbol that calls a symbol of the intent.
    CallerLocked {
        /// The symbol, as the intent names it.
        symbol: SymbolPath,
        /// The lock on its caller.
        lock: Arc<Lock>,
        /// Whether the call is a guess: the other end was found by its name alone, or as one of several possible ones.
        guessed: bool,
    },
    /// Another agent's lock in a file that is intended as a whole, or inside or around a symbol of the intent.
    Within(Arc<Lock>),
    /// Another agent's hold on a file of the intent through another door.
    Elsewhere(Meeting),
}

/// Change the status of an intent. wit `intent.update`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UpdateIntent {
    /// The intent to update.
    pub id: IntentId,
    /// Active, resolved or abandoned.
    pub to: IntentStatus,
}

/// The intent has its new status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentUpdated {
    /// The intent as it is now.
    pub intent: Arc<Intent>,
}

/// Report that files have changed, and with them the places of intents' symbols.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefreshIntents {
    /// The present places of the symbols, for each intent and file.
    pub spans: Vec<FreshSpans>,
}

/// The intents are up to date.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentsRefreshed {
    /// The number of intents whose symbols have moved.
    pub moved: usize,
}

/// Offer a contract on a symbol's signature as it is on disk. wit `contract.propose`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProposeContract {
    /// The id; the door chooses it, since the core has no random source.
    pub id: ContractId,
    /// The symbol that the contract is about, in the file's one spelling and under its full name.
    pub at: SymbolPath,
    /// The symbol, as the caller wrote it.
    pub asked: Box<str>,
    /// The signature, for people.
    pub signature: Box<str>,
    /// The signature in the form by which it is compared.
    pub canon: Box<str>,
    /// The branch of the caller's work tree; `None` if it is on no branch.
    #[serde(default)]
    pub branch: Option<Box<str>>,
}

/// The contract is offered, and binds no agent yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractProposed {
    /// The contract as it was recorded.
    pub contract: Arc<Contract>,
}

/// Accept or reject another agent's contract. wit `contract.respond`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerContract {
    /// The contract to answer.
    pub id: ContractId,
    /// Whether the caller accepts it; `false` rejects it.
    pub accept: bool,
}

/// The contract is accepted or rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractAnswered {
    /// The contract as it is now.
    pub contract: Arc<Contract>,
}

/// Take an offer back. An accepted contract binds both agents and is only replaced by another accepted contract; a
/// person may end it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithdrawContract {
    /// The contract to withdraw.
    pub id: ContractId,
}

/// The contract binds no agent any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractWithdrawn {
    /// The contract as it was withdrawn.
    pub contract: Arc<Contract>,
}

/// Report files that were renamed while the signatures in their contracts stayed the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FollowContracts {
    /// The contracts, and the file in which each is looked for from now on, too.
    pub moves: Vec<(ContractId, RepoPath)>,
}

/// The contracts are looked for in the new files, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractsFollowed {
    /// The number of contracts that were not looked for there before.
    pub count: usize,
}

/// The lock that blocks a request, or an earlier request that waits for the same lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rival {
    /// The agent that has the lock, or waits for it already.
    pub by: AgentId,
    /// The symbol, as that agent wrote it.
    pub asked: Box<str>,
    /// When the lock, or the wait for it, ends.
    pub until: Timestamp,
    /// When the lock, or the wait for it, began.
    pub since: Timestamp,
    /// The number of the grant; `None` for an agent that waits and gets the next grant.
    pub fence: Option<Fence>,
    /// The reason that the agent gave, for others to read.
    pub reason: Option<Box<str>>,
}
