//! The types for locks, intents and contracts. Paths and symbols are named from the root of the repository, and
//! mean the same in all its work trees; `worktree` is the absolute path of the one where the caller's files are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `POST /lock`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TakeLock {
    /// `file:symbol`; without a symbol, the whole file; or a resource, `@kind` or `@kind:value`.
    pub symbol: String,
    /// How long the lock lasts, in milliseconds; half an hour when absent.
    pub ttl_ms: Option<u64>,
    /// Whether a lock that the caller already has keeps its end if that is later.
    pub at_least: bool,
    /// How long to wait while another agent has it, in milliseconds; the daemon does not wait when absent.
    pub wait_ms: Option<u64>,
    /// The purpose, for people; shown to agents that the lock stops.
    pub reason: Option<String>,
    /// The process with which the lock ends.
    pub pid: Option<u32>,
    /// Whether a lock of the caller for another process blocks it, too.
    pub apart: bool,
    /// Whether every lock of the caller blocks it, so that none is renewed.
    pub fresh: bool,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    pub worktree: Option<String>,
}

/// Answer to [`TakeLock`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Locked {
    /// The caller's lock, as it is now.
    pub lock: Lock,
    /// Warnings for the holder.
    pub warnings: Vec<Told>,
    /// The number of warnings that are not listed.
    pub more: usize,
}

/// A lock that an agent has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// The symbol, in the file's one spelling; a resource begins with `@`.
    pub symbol: String,
    /// The symbol as the holder wrote it.
    pub asked: String,
    /// The agent that has the lock.
    pub holder: String,
    /// The holder's name for people; absent if it has none.
    pub name: Option<String>,
    /// The number of the grant, which rises with every grant.
    pub fence: u64,
    /// When the lock was granted or last refreshed.
    pub since: String,
    /// When the lock ends by itself.
    pub until: String,
    /// Its purpose, in the holder's words; absent when the holder has named none.
    pub reason: Option<String>,
    /// The process with which the lock ends.
    pub pid: Option<u32>,
    /// The task with which the lock ends.
    pub task: Option<String>,
    /// The absolute path of the work tree in which the holder writes; absent for a lock that an agent asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_in: Option<String>,
    /// Whether it ends with the commit of its file, because the holder was refused a write there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_commit: bool,
    /// The number of units of a counted resource; absent for other locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
}

/// A warning about an obstacle or a fact. Never a refusal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Told {
    /// `caller_locked`, `container_locked`, `member_locked`, `intended`, `unknown_symbol`, `ambiguous_symbol`, `no_file`,
    /// `unread_file`, `intent_overlap`, `symbol_locked`, `callee_locked`, `locked_within`; and of other doors
    /// `file_claimed`, `locked`, `announced`; of a port `port_in_use`. `incomplete` says that callers and callees may be missing.
    pub kind: String,
    /// The warning as a sentence; it names the other agent if there is one.
    pub message: String,
    /// The agent that has the lock, claim or intent.
    pub holder: Option<String>,
    /// The symbol that is locked.
    pub symbol: Option<String>,
    /// The number of the lock's grant; absent if the warning concerns no lock.
    pub fence: Option<u64>,
    /// When the lock or claim of the other agent ends; absent if that is not known.
    pub until: Option<String>,
    /// The id of the other agent's intent; absent if the warning concerns no intent.
    pub intent: Option<String>,
    /// Whether a call that the warning is about was found by a name alone, or as one of several possible ones.
    pub guessed: bool,
}

/// `POST /unlock`; the answer is the released lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Unlock {
    /// `file:symbol`.
    pub symbol: String,
    /// The grant that the lock must still have to be released.
    pub fence: Option<u64>,
    /// Whether to release another agent's lock, which only the user may do.
    pub force: bool,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    pub worktree: Option<String>,
}

/// Query of `GET /locks` and `GET /intents`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Whose {
    /// Only the caller's own.
    pub mine: bool,
    /// Only this agent's.
    pub agent: Option<String>,
    /// Only those in this file.
    pub file: Option<String>,
    /// Intents only: those with this status; live ones when absent.
    pub status: Option<String>,
}

/// `GET /locks`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Locks {
    /// The locks, in the order of their first grants.
    pub locks: Vec<Lock>,
    /// The agents that wait for a lock, longest wait first.
    pub waiting: Vec<Waiter>,
}

/// An agent that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    /// The symbol whose lock it waits for.
    pub symbol: String,
    /// The agent that waits.
    pub agent: String,
    /// When it began to wait.
    pub since: String,
    /// When it stops waiting, with or without the lock.
    pub until: String,
    /// The task for which the agent waits; absent if the agent waits for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The number of its place in the queue, which `POST /end-wait` takes.
    #[serde(default)]
    pub ticket: u64,
}

/// `POST /leave`: the caller's session ends, and its locks with it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Leave {
    /// Whether its intents are abandoned, too.
    pub intents: bool,
    /// The process whose locks are released; locks for other processes of the agent stay.
    pub pid: Option<u32>,
}

/// Answer to [`Leave`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Left {
    /// The number of released locks.
    pub locks: usize,
    /// The number of abandoned intents.
    pub intents: usize,
}

/// `POST /declare`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Declare {
    /// The change, in the caller's words; must not be empty.
    pub description: String,
    /// The paths of the files that the change is about, from the root of the repository.
    pub files: Vec<String>,
    /// The symbols of these files that the change is about; empty for whole files.
    pub symbols: Vec<String>,
    /// The time after which the intent lapses, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    pub worktree: Option<String>,
    /// The grants of the locks that the caller took for this change.
    pub grants: Vec<u64>,
}

/// Answer to [`Declare`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Declared {
    /// The caller's new intent.
    pub intent: Intent,
    /// The locks, claims and intents of other agents that the change collides with.
    pub conflicts: Vec<Told>,
    /// The number of conflicts that are not listed.
    pub more: usize,
}

/// `POST /check-conflicts`: asks for the conflicts that a change would have, without announcing it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckConflicts {
    /// The paths of the files that the change would be about, from the root of the repository.
    pub files: Vec<String>,
    /// The symbols of these files that the change would be about; empty for whole files.
    pub symbols: Vec<String>,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    pub worktree: Option<String>,
}

/// Answer to [`CheckConflicts`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    /// The locks, claims and intents that the change would collide with.
    pub conflicts: Vec<Told>,
    /// The number of conflicts that are not listed.
    pub more: usize,
}

/// An intent. `GET /intents`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Intent {
    /// The id that identifies it in `POST /update-intent`.
    pub id: String,
    /// The agent that has announced it.
    pub agent: String,
    /// That agent's name for people; absent if it has none.
    pub name: Option<String>,
    /// The change, in that agent's words.
    pub description: String,
    /// The files that it will change.
    pub files: Vec<IntentFile>,
    /// The symbols of these files that it will change; empty for whole files.
    pub symbols: Vec<String>,
    /// `declared`, `active`, `resolved`, `abandoned`.
    pub status: String,
    /// When it was declared.
    pub declared_at: String,
    /// When its status last changed.
    pub updated_at: String,
    /// When it lapses.
    pub expires_at: String,
    /// The grants of the locks that the agent took for it.
    #[serde(default)]
    pub grants: Vec<u64>,
}

/// A file of an intent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IntentFile {
    /// The path of the file, from the root of the repository.
    pub path: String,
    /// The places of the symbols in it: the first byte, and the byte after the last one.
    pub spans: Vec<(u32, u32)>,
}

/// `POST /update-intent`, answered with the intent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UpdateIntent {
    /// The id of the intent.
    pub id: String,
    /// `active`, `resolved`, `abandoned`.
    pub to: String,
    /// Whether to end another agent's intent, which only the user may do; `to` is `abandoned` then.
    #[serde(default)]
    pub force: bool,
}

/// `POST /release-agent`: takes from an agent all that it holds, waits for and has announced, which only the user may do.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseAgent {
    /// The agent.
    pub agent: String,
}

/// Answer to [`ReleaseAgent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentReleased {
    /// The number of released locks.
    pub locks: usize,
    /// The number of places in queues that were given up.
    pub waits: usize,
    /// The number of freed claims.
    pub claims: usize,
    /// The number of abandoned intents.
    pub intents: usize,
}

impl AgentReleased {
    /// Returns the counts as the end of a sentence.
    pub fn in_words(&self) -> String {
        let many = |count: usize, what: &str| {
            (count > 0).then(|| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
        };
        let all = [
            many(self.locks, "lock"),
            many(self.waits, "place in a queue")
                .map(|it| it.replace("place in a queues", "places in queues")),
            many(self.claims, "claimed file"),
            many(self.intents, "intent"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    }
}

/// `POST /propose-contract`, answered with the contract.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Propose {
    /// `file:symbol`.
    pub symbol: String,
    /// The absolute path of the work tree whose file has the signature; the daemon's own when absent.
    pub worktree: Option<String>,
}

/// `POST /answer-contract`, answered with the contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AnswerContract {
    /// The id of the contract.
    pub id: String,
    /// Whether the caller accepts the contract; `false` rejects it.
    pub accept: bool,
}

/// `POST /withdraw-contract`, answered with the contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WithdrawContract {
    /// The id of the contract; only its proposer may withdraw it.
    pub id: String,
}

/// `POST /appoint-lead`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppointLead {
    /// The name of the agent that will lead the crew.
    pub agent: String,
}

/// `POST /import-events`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ImportEvents {
    /// The absolute path of the database.
    pub file: String,
}

/// Answer to [`ImportEvents`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Imported {
    /// The number of events that are new on the timeline.
    pub taken: u64,
    /// The number of events that were there already.
    pub known: u64,
    /// The number of events without a valid form.
    pub unfit: u64,
}

/// A contract. `GET /contracts`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Contract {
    /// The id that identifies it in `POST /answer-contract`.
    pub id: String,
    /// The symbol whose signature it fixes.
    pub symbol: String,
    /// Files to which the symbol was moved; it binds there, too.
    pub also: Vec<String>,
    /// The signature that was agreed on.
    pub signature: String,
    /// The branch on which it binds; absent if it binds on all.
    pub branch: Option<String>,
    /// The agent that has offered it.
    pub proposer: String,
    /// The agent that has accepted or rejected it; absent while it waits for an answer.
    pub responder: Option<String>,
    /// `proposed`, `accepted`, `rejected`, `superseded`, `withdrawn`.
    pub status: String,
    /// When it was offered.
    pub proposed_at: String,
    /// When it was answered.
    pub responded_at: Option<String>,
}

/// Query of `GET /contracts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContractsQuery {
    /// Only those on this symbol.
    pub symbol: Option<String>,
    /// Only contracts with this status.
    pub status: Option<String>,
}

/// `POST /concerned`: asks which of these files have a contract in force, or a lock of another agent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Paths {
    /// The paths of the files, from the root of the repository.
    pub paths: Vec<String>,
}

/// Answer to [`Paths`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Concerned {
    /// Files with contracts in force.
    pub contracts: Vec<String>,
    /// Files with locks or claims of other agents.
    pub locks: Vec<String>,
}

/// `POST /check-contracts`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckContracts {
    /// Files as a commit would contain them.
    pub files: Vec<StagedFile>,
    /// Files whose content in the commit would be that on disk.
    pub on_disk: Vec<String>,
    /// Files that the commit would remove.
    pub deleted: Vec<String>,
    /// The absolute path of the work tree where the commit would be made; the daemon's own when absent.
    pub worktree: Option<String>,
}

/// A file as a commit would contain it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StagedFile {
    /// The path of the file, from the root of the repository.
    pub path: String,
    /// The content, in Base64.
    pub content: String,
    /// The path before a rename, if the file was renamed.
    pub from: Option<String>,
}

/// Answer to [`CheckContracts`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Checked {
    /// Contracts that a commit would break.
    pub violations: Vec<Violation>,
    /// The number of contracts that were compared.
    pub compared: usize,
}

/// A contract that a commit would break.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The id of the contract.
    pub contract: String,
    /// The symbol whose signature the contract fixes.
    pub symbol: String,
    /// The file that breaks it.
    pub file: String,
    /// `changed`, `missing`, `deleted`, `untold`.
    pub fault: String,
    /// The signature that was agreed on.
    pub expected: String,
    /// The signature that the commit would have, or what happens to the symbol.
    pub actual: String,
    /// The agents that have agreed on it.
    pub between: Vec<String>,
}

/// `POST /guard`: asks whether the caller may write to these files.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Guard {
    /// The files that the caller is about to write.
    pub edits: Vec<Edit>,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
}

/// `POST /hold-edits`: announces that the caller is about to write. It gets short leases on the places, or the names of their holders.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldEdits {
    /// The files that the caller is about to write.
    pub edits: Vec<Edit>,
    /// The absolute path of the caller's work tree; the daemon's own when absent.
    pub worktree: Option<String>,
    /// The process of the host; the leases end with it.
    pub pid: Option<u32>,
    /// The subagent of the host's session that writes; absent for the session itself.
    pub part: Option<String>,
}

/// A file that the caller is about to write.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Edit {
    /// The path of the file, from the root of the repository.
    pub path: String,
    /// The content before the write, in Base64; with `after` or not at all.
    pub before: Option<String>,
    /// The content after the write, in Base64; with `before` or not at all.
    pub after: Option<String>,
    /// The only symbol that the edit is about; absent for the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Whether the host itself will refuse the edit, so that nothing is written and no lease is taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fails: bool,
}

/// Answer to [`Guard`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Guarded {
    /// The name of the agent for which the daemon checked.
    pub agent: String,
    /// Locks and claims of other agents that block the writes.
    pub blocked: Vec<Blocked>,
    /// Intents of other agents for the same places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<NearIntent>,
    /// Other agents' leases on the same places that do not keep writers out of this work tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<Lock>,
}

/// An intent of another agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NearIntent {
    /// The agent that has announced the change.
    pub agent: String,
    /// The file, or a symbol of it.
    pub at: String,
    /// The change, in that agent's words.
    pub description: String,
}

/// A lock or a claim of another agent on a place that the caller is about to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blocked {
    /// The lock in the way; absent if it is a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The claim in the way; absent if it is a lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Whether the edit is known to change the held place; for a lock, otherwise only its file is known to change.
    pub touched: bool,
    /// The holder's own description of its work; absent if it has given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// A claim on a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The path of the claimed file, from the root of the repository.
    pub file: String,
    /// The agent that has claimed the file.
    pub holder: String,
    /// When the holder claimed the file.
    pub since: Option<String>,
    /// The number of the grant, which rises with every grant.
    pub fence: u64,
}
