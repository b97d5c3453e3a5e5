//! The reasons why the core refuses a command. Each door has its own words for them; a refusal has changed nothing.

use super::command::Rival;
use super::host_names::next_name;
use super::{ContractStatus, CrewRefusal, IntentStatus, Nick, Reservation, Scope, TaskState, UserRole};
use provost_base::{AgentId, ApplyId, ApprovalId, Fence, RuleId};

/// The four kinds of "no" are told apart in `docs/style.md`; this is the third, "refused".
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The caller's key or door does not carry this right.
    #[error("this needs the right to {}, which the caller does not hold", needs.as_str())]
    OutOfScope {
        /// The right that the verb needs.
        needs: Scope,
    },
    /// The role of this host's user does not carry this right.
    #[error("the user of this host is {} of this repository, and this needs {}", article(*role), article(*needs))]
    RoleTooLow {
        /// The user's role.
        role: UserRole,
        /// The lowest role that may do it.
        needs: UserRole,
    },
    /// This host has joined only to carry out tasks; the forbidden action, as a part of a sentence.
    #[error("this machine only works for others, and {0}: do it on a full host of this repository")]
    OnlyWorks(Box<str>),
    /// Users cannot be changed in this way.
    #[error("{why}")]
    UserCannot {
        /// The reason, for people.
        why: Box<str>,
    },
    /// REGISTER announced another version than the configuration expects.
    #[error("expected worker version '{expected}' but client reported '{received}'")]
    VersionMismatch {
        /// Accepted versions, joined with ` or `.
        expected: Box<str>,
        /// The version that the agent has announced.
        received: Box<str>,
    },
    /// REGISTER announced no version where one is expected.
    #[error("expected worker version '{expected}' but client omitted version field")]
    VersionMissing {
        /// Accepted versions, joined with ` or `.
        expected: Box<str>,
    },
    /// A version is expected, and this agent has not registered with it.
    #[error("register with worker version '{expected}' first")]
    RegisterFirst {
        /// Accepted versions, joined with ` or `.
        expected: Box<str>,
    },
    /// Another task has this id.
    #[error("another task already has this id")]
    TaskExists,
    /// No task has this id.
    #[error("no such task")]
    TaskNotFound,
    /// Only the task's worker may report on it; only its asker or the operator may cancel it.
    #[error("this task belongs to {owner}")]
    TaskNotYours {
        /// The worker or the asker that may do this.
        owner: AgentId,
    },
    /// The task has ended already.
    #[error("this task has already ended")]
    TaskFinished,
    /// The task cannot go from its state to the one that the caller wants.
    #[error("a task that is {} cannot do that", from.as_str())]
    TaskCannot {
        /// The state that the task is in.
        from: TaskState,
    },
    /// No changes of the task's run are kept.
    #[error("nothing is kept of what this task has changed")]
    NoChanges,
    /// The changes of the task's run were discarded.
    #[error("what this task has changed was discarded")]
    ChangesGone,
    /// An apply writes changes of the task at this moment.
    #[error("apply {apply} writes what this task has changed, and is not over yet")]
    ChangesInUse {
        /// The apply that goes on.
        apply: ApplyId,
    },
    /// The worker's entry in the configuration is wrong.
    #[error("worker {worker} cannot be used: {why}")]
    WorkerBroken {
        /// The worker that was asked for.
        worker: AgentId,
        /// The mistake in the entry, for the person who wrote it.
        why: Box<str>,
    },
    /// No run can have the work tree that a delegation asks for.
    #[error("there is no work tree for this task: {why}")]
    NoWorkTree {
        /// The reason and the next step, for the asker.
        why: Box<str>,
    },
    /// A task cannot have the turn or the place that a delegation asks for.
    #[error("{why}")]
    NotPlaced {
        /// The problem, the reason and the next step, for the asker.
        why: Box<str>,
    },
    /// An agent takes no words or no answer from this caller, or cannot go on with a session.
    #[error("{why}")]
    SessionCannot {
        /// The problem, the reason and the next step, for the asker.
        why: Box<str>,
    },
    /// A work tree of a run cannot be removed, or the work trees cannot be listed.
    #[error("{why}")]
    WorkTreeCannot {
        /// The problem, the reason and the next step, for the asker.
        why: Box<str>,
    },
    /// Another agent, or a person, holds the worker back.
    #[error("worker {worker} is not switched: {why}")]
    NotYoursToSwitch {
        /// The worker that the caller wanted to switch.
        worker: AgentId,
        /// The agent or person that has paused it, and the next step.
        why: Box<str>,
    },
    /// The approval was answered, has expired, or never existed.
    #[error("no approval {0} is waiting; it was answered, it expired, or it never was")]
    ApprovalNotFound(ApprovalId),
    /// No agent answers its own request.
    #[error("no agent may answer its own request")]
    ApprovalOwn,
    /// Nor does an agent from the same tree of processes, under any name and with any key.
    #[error(
        "this was asked by {asker} from the session that the answer comes from, or from one above or below it; an answer has \
         to come from elsewhere: answer it in another terminal, or start the approver in one of its own"
    )]
    ApprovalFromAsker {
        /// The agent that made the request.
        asker: AgentId,
    },
    /// The rule that asks does not name this caller.
    #[error("rule {rule} does not let this caller answer")]
    ApprovalNotYours {
        /// The rule that parked the request.
        rule: RuleId,
    },
    /// A passkey, or its signature, does not count.
    #[error("{why}")]
    PasskeyRefused {
        /// The reason, for people.
        why: Box<str>,
    },
    /// The approver was shown a different request.
    #[error("the approved request is not the waiting one; look at it again")]
    ApprovalChanged,
    /// Policy denied a verb that leaves no task behind.
    #[error("denied by rule {rule}: {reason}")]
    Denied {
        /// The rule that denied.
        rule: RuleId,
        /// The rule's reason, for callers.
        reason: Box<str>,
    },
    /// A capability that the configuration has switched off.
    #[error("{what} is disabled by configuration")]
    SwitchedOff {
        /// The capability, in words for people.
        what: Box<str>,
    },
    /// A capability was used as often as the configuration allows.
    #[error("{what} rate limit exceeded (max {most} per {per_s}s)")]
    TooOften {
        /// The capability, in words for people.
        what: Box<str>,
        /// The number of uses that the rate permits.
        most: u32,
        /// The window in which the uses are counted, in seconds.
        per_s: u64,
    },
    /// A message that is not (or no longer) in the caller's queue.
    #[error("no such message in this queue")]
    MailNotFound,
    /// The agent has a name already.
    #[error("this session is registered already, as {} (number {})", nick.name, nick.number)]
    AlreadyNamed {
        /// The name and number that the agent has.
        nick: Nick,
    },
    /// Another agent has the lock, or waits for it already.
    #[error("{} is locked by {} until {}", _0.asked, _0.by, _0.until)]
    LockConflict(Box<Rival>),
    /// Waiting would never end: each agent in the circle waits for the next one.
    #[error("{} is locked by {}, and waiting for it would never end: {}", rival.asked, rival.by, shown(circle))]
    WouldDeadlock {
        /// The agents in the circle, from the caller on; each waits for the next one, and the last one for the caller.
        circle: Vec<AgentId>,
        /// The lock that the caller wanted, with its holder.
        rival: Box<Rival>,
    },
    /// The request asks for more units of a counted kind than exist, or for none.
    #[error("there are {of} of @{kind}, and {asked} does not ask for 1 to {of} of them")]
    NotSoMany {
        /// The resource, as the caller wrote it.
        asked: Box<str>,
        /// The kind, without its `@`.
        kind: Box<str>,
        /// The number of units that exist.
        of: u32,
    },
    /// A worker needs a resource that the asker of its work holds.
    #[error(
        "{worker} needs {resource}, which you have (grant {fence}); release it first, and its run takes it"
    )]
    NeedsYours {
        /// The worker whose need it is.
        worker: AgentId,
        /// The resource that the worker needs.
        resource: Box<str>,
        /// The asker's grant.
        fence: Fence,
    },
    /// No agent has that lock.
    #[error("no agent has this lock")]
    LockNotFound,
    /// Another agent has the lock, or another grant of it is in force.
    #[error("this lock is {by}'s (grant {fence}{})", other_grant(*asked))]
    LockNotHeld {
        /// The agent that has the lock.
        by: AgentId,
        /// The grant that is in force.
        fence: Fence,
        /// The grant that the caller meant, if the agent is the right one.
        asked: Option<Fence>,
    },
    /// Another agent has the place through another door, and the configuration refuses that.
    #[error("{} {} {}, through another protocol ({})", _0.at, _0.kind.verb(), _0.agent, _0.kind.as_str())]
    HeldElsewhere(Box<Reservation>),
    /// No intent has this id.
    #[error("no such intent")]
    IntentNotFound,
    /// Only the agent that declared an intent may update it.
    #[error("this intent is {by}'s")]
    IntentNotOwned {
        /// The agent that declared the intent.
        by: AgentId,
    },
    /// The intent cannot go from its status to the one that the caller wants.
    #[error("an intent that is {} cannot become {}", from.as_str(), to.as_str())]
    IntentCannot {
        /// The status that it has.
        from: IntentStatus,
        /// The status that the caller wants.
        to: IntentStatus,
    },
    /// No contract has this id.
    #[error("no such contract")]
    ContractNotFound,
    /// The contract is not open any more: it was answered, replaced or withdrawn.
    #[error("this contract is {} already", status.as_str())]
    ContractSettled {
        /// The status that it has.
        status: ContractStatus,
    },
    /// No agent accepts or rejects its own offer.
    #[error("no agent may answer its own contract")]
    ContractOwn,
    /// Only the proposer of a contract may withdraw it.
    #[error("this contract was offered by {by}")]
    ContractNotYours {
        /// The agent that offered it.
        by: AgentId,
    },
    /// A rule of the crew refuses the command.
    #[error(transparent)]
    Crew(#[from] CrewRefusal),
    /// The agent has a token, and the caller has not shown it.
    #[error("{agent} has a token, and a request as {agent} has to show it")]
    NameTaken {
        /// The name that the token reserves.
        agent: AgentId,
    },
    /// An agent of another host has the name, and the caller has proved nothing.
    #[error(
        "{agent} is the name of an agent of another host, and nothing proves that this is the same agent: {}",
        next_name(.agent)
    )]
    NameElsewhere {
        /// The name.
        agent: AgentId,
    },
    /// The name is in use in a spelling that differs only by case.
    #[error("{used} is in use here, and {agent} is the same name: speak as {used}, or take another name")]
    OtherSpelling {
        /// The name as the caller spells it.
        agent: AgentId,
        /// The name as it is in use.
        used: AgentId,
    },
    /// No token has this id, or it is not the caller's.
    #[error("no such token")]
    TokenNotFound,
    /// The daemon has no room at this moment; the same request may succeed later.
    #[error("too busy: {what}")]
    Busy {
        /// The resource without room, in words for people.
        what: Box<str>,
    },
    /// The caller has reached its bound. The same request succeeds once the caller has made room.
    #[error("{what} ({most}): {next}")]
    Quota {
        /// The bound in words, as the beginning of a sentence: "as many locks as one agent can have".
        what: Box<str>,
        /// The bound that the caller has reached.
        most: u64,
        /// The next step, by which the caller makes room.
        next: Box<str>,
    },
    /// The request has more, or longer, members than are accepted. It can never succeed.
    #[error("{what} has at most {most} {unit}")]
    TooLong {
        /// The member of the request, in words for people.
        what: Box<str>,
        /// The bound that is in force.
        most: u64,
        /// The unit of the bound: `bytes`, `files`.
        unit: &'static str,
    },
    /// The queue of merges does not allow it in its present state.
    #[error("{why}")]
    MergeCannot {
        /// The reason, as a sentence.
        why: Box<str>,
    },
    /// The id that the caller has chosen is in use.
    #[error("{what} of this id is there already: choose another id")]
    Exists {
        /// The kind of thing that has the id already.
        what: &'static str,
    },
    /// The system lacks what the daemon needs for this.
    #[error("the daemon is not ready for this: {why}")]
    NotReady {
        /// The missing part, in words for people.
        why: Box<str>,
    },
    /// The store does not answer or can only be read, the host is being drained, or an outcome is not known yet; the same request may succeed
    /// later.
    #[error("the daemon cannot do this at the moment: {why}")]
    Unavailable {
        /// The store's error, without paths or statements.
        why: Box<str>,
    },
    /// The daemon ends, or begins again as another one after the other hosts took it for dead; nothing was changed.
    #[error("the daemon is stopping or starting again; ask again in a moment")]
    Stopping,
}

fn shown(circle: &[AgentId]) -> String {
    let names: Vec<&str> = circle.iter().chain(circle.first()).map(AgentId::as_str).collect();
    names.join(" waits for ")
}

/// The kinds of refusals, for doors that answer many of them alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// The caller lacks a right.
    Rights,
    /// The caller's name is another agent's, or another spelling of one in use.
    Name,
    /// A rule or the configuration forbids the request.
    Forbidden,
    /// The daemon has no room, for anyone or for this caller.
    Full,
    /// The system or the store cannot serve the request at this moment.
    Unready,
    /// The request is too large.
    Size,
    /// The chosen id is in use.
    Exists,
    /// Another agent has the place through another door.
    HeldElsewhere,
    /// Workers, tasks, approvals, rates and messages.
    Delegation,
    /// Sessions, locks, intents and contracts.
    Coordination,
    /// A rule of the crew.
    Crew,
    /// No token has that id.
    Token,
}

/// Returns a role with its article.
fn article(role: UserRole) -> String {
    format!("{} {}", if matches!(role, UserRole::Viewer) { "a" } else { "an" }, role.as_str())
}

impl Refusal {
    /// Returns the kind of this refusal. A door that answers all refusals of a kind alike matches over these.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Refusal::OutOfScope { .. } | Refusal::RoleTooLow { .. } | Refusal::UserCannot { .. } => {
                RefusalKind::Rights
            }
            Refusal::NameTaken { .. } | Refusal::NameElsewhere { .. } | Refusal::OtherSpelling { .. } => {
                RefusalKind::Name
            }
            Refusal::Denied { .. } | Refusal::SwitchedOff { .. } => RefusalKind::Forbidden,
            Refusal::OnlyWorks(_) => RefusalKind::Forbidden,
            Refusal::Busy { .. } | Refusal::Quota { .. } => RefusalKind::Full,
            Refusal::NotReady { .. } | Refusal::Unavailable { .. } | Refusal::Stopping => {
                RefusalKind::Unready
            }
            Refusal::TooLong { .. } => RefusalKind::Size,
            Refusal::Exists { .. } => RefusalKind::Exists,
            Refusal::HeldElsewhere(_) => RefusalKind::HeldElsewhere,
            Refusal::VersionMismatch { .. }
            | Refusal::VersionMissing { .. }
            | Refusal::RegisterFirst { .. }
            | Refusal::TaskExists
            | Refusal::TaskNotFound
            | Refusal::TaskNotYours { .. }
            | Refusal::TaskFinished
            | Refusal::TaskCannot { .. }
            | Refusal::NoChanges
            | Refusal::ChangesGone
            | Refusal::ChangesInUse { .. }
            | Refusal::MergeCannot { .. }
            | Refusal::WorkerBroken { .. }
            | Refusal::NoWorkTree { .. }
            | Refusal::NotPlaced { .. }
            | Refusal::WorkTreeCannot { .. }
            | Refusal::SessionCannot { .. }
            | Refusal::NotYoursToSwitch { .. }
            | Refusal::ApprovalNotFound(_)
            | Refusal::ApprovalOwn
            | Refusal::ApprovalFromAsker { .. }
            | Refusal::ApprovalNotYours { .. }
            | Refusal::ApprovalChanged
            | Refusal::PasskeyRefused { .. }
            | Refusal::TooOften { .. }
            | Refusal::MailNotFound => RefusalKind::Delegation,
            Refusal::AlreadyNamed { .. }
            | Refusal::LockConflict(_)
            | Refusal::WouldDeadlock { .. }
            | Refusal::NotSoMany { .. }
            | Refusal::NeedsYours { .. }
            | Refusal::LockNotFound
            | Refusal::LockNotHeld { .. }
            | Refusal::IntentNotFound
            | Refusal::IntentNotOwned { .. }
            | Refusal::IntentCannot { .. }
            | Refusal::ContractNotFound
            | Refusal::ContractSettled { .. }
            | Refusal::ContractOwn
            | Refusal::ContractNotYours { .. } => RefusalKind::Coordination,
            Refusal::Crew(_) => RefusalKind::Crew,
            Refusal::TokenNotFound => RefusalKind::Token,
        }
    }

    /// Returns a refusal for lack of room at this moment.
    pub fn busy(what: &str) -> Self {
        Refusal::Busy { what: what.into() }
    }

    /// Returns a refusal for a caller that has reached its bound.
    pub(super) fn quota(what: &str, most: impl TryInto<u64>, next: &str) -> Self {
        let most = most.try_into().unwrap_or(u64::MAX);
        Refusal::Quota { what: what.into(), most, next: next.into() }
    }

    /// Returns a refusal for a request with more, or longer, members than are accepted.
    pub fn too_long(what: &str, most: usize, unit: &'static str) -> Self {
        Refusal::TooLong { what: what.into(), most: most as u64, unit }
    }
}

/// Returns how the grant that was meant differs from the one in force, as a part of a sentence.
fn other_grant(asked: Option<Fence>) -> String {
    asked.map(|it| format!(", and not {it}")).unwrap_or_default()
}
