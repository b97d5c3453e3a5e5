//! Locks, intents and contracts: the dictionary between the own API's words and Provost's.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{OwnError, agent, text};
use provost_api::wire;
use provost_base::limits::STAGED_FILES_MAX;
use provost_base::{AgentId, BadSymbol, ContractId, Fence, IntentId, RepoPath, SymbolPath, Ttl};
use provost_domain::command::{Conflict, Declared, Rival, Warning, call_verb};
use provost_domain::view::{Named, SomeContracts, SomeIntents};
use provost_domain::{
    Claim, Contract, ContractStatus, Intent, IntentStatus, Lock, Meeting, Refusal, Reservation,
    ReservationKind, Waiter,
};
use provost_service::{Blocked, Edit, Granted, Guarded, Obstacle, ProposeError, Staged, Violation};

/// Adds the data of a refusal for programs, and the next step.
pub(in super::super) fn with_data(fault: OwnError, refusal: &Refusal) -> OwnError {
    match refusal {
        Refusal::LockConflict(rival) => {
            let wait = "wait for it with --wait, work on something else, or ask the holder; `provost lock list` lists all";
            fault.data(in_the_way(rival)).hint(wait)
        }
        Refusal::WouldDeadlock { circle, rival } => {
            let mut data = in_the_way(rival);
            data["cycle"] = json!(circle.iter().map(AgentId::as_str).collect::<Vec<_>>());
            fault.data(data).hint("give up a lock of yours that one of them waits for, then try again")
        }
        Refusal::HeldElsewhere(stake) => {
            let ask = "work on something else, or ask the holder; `[coordination] across_doors` decides whether this is refused";
            let data = json!({
                "holder": stake.agent.as_str(),
                "hold": stake.kind.as_str(),
                "file": stake.at.as_str(),
                "since": stake.since.rfc3339(),
                "until": stake.until.map(|it| it.rfc3339()),
            });
            fault.data(data).hint(ask)
        }
        Refusal::NotSoMany { kind, of, .. } => fault
            .data(json!({ "kind": &**kind, "count": of }))
            .hint("`[coordination] resources` says how many there are"),
        Refusal::NeedsYours { resource, fence, .. } => fault
            .data(json!({ "resource": &**resource, "fence": fence.0 }))
            .hint(format!("`provost lock release {resource}`, then delegate again")),
        Refusal::LockNotFound => fault.hint("`provost lock list` lists what there is"),
        Refusal::LockNotHeld { by, fence, asked } => {
            let fault = fault.data(json!({ "holder": by.as_str(), "fence": fence.0 }));
            match asked {
                Some(_) => fault
                    .hint(format!("the same with --fence {fence}, the grant in force, or without --fence")),
                None => fault.hint("`provost lock list` shows whose it is; the user may end it with --force"),
            }
        }
        Refusal::IntentNotFound => fault.hint("`provost intent list` lists those that live"),
        Refusal::IntentNotOwned { by } => fault.data(json!({ "owner": by.as_str() })),
        Refusal::IntentCannot { from, to } => fault.data(json!({ "from": from.as_str(), "to": to.as_str() })),
        Refusal::ContractNotFound => fault.hint("`provost contract list` lists what there is"),
        Refusal::ContractSettled { status } => fault.data(json!({ "status": status.as_str() })),
        Refusal::ContractNotYours { by } => fault.data(json!({ "proposer": by.as_str() })),
        _ => fault,
    }
}

fn in_the_way(rival: &Rival) -> Value {
    json!({
        "holder": rival.by.as_str(),
        "symbol": &*rival.asked,
        "until": rival.until.rfc3339(),
        "since": rival.since.rfc3339(),
        "fence": rival.fence.map(|it| it.0),
        "reason": rival.reason.as_deref(),
    })
}

pub(in super::super) fn proposed(fault: ProposeError) -> OwnError {
    match fault {
        ProposeError::Refused(refusal) => super::fault(refusal),
        ProposeError::NoSymbol { why, candidates } => {
            let fault = OwnError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_symbol", why);
            match candidates.is_empty() {
                true => fault,
                false => fault
                    .hint(format!("one of: {}", candidates.join(", ")))
                    .data(json!({ "candidates": candidates })),
            }
        }
    }
}

/// Parses `file:symbol`; a file alone stands for the whole file.
pub(in super::super) fn symbol(text: &str) -> Result<SymbolPath, OwnError> {
    let whole = if text.contains(':') { String::new() } else { format!("{text}:") };
    let text = if whole.is_empty() { text } else { &whole };
    SymbolPath::parse(text).map_err(|err| OwnError::invalid(format!("symbol {err}")))
}

/// Parses the name of a symbol, a file, or a resource that can be locked.
pub(in super::super) fn lockable(text: &str) -> Result<SymbolPath, OwnError> {
    let named = |err| match err {
        BadSymbol::Resource(err) => OwnError::invalid(format!("the resource {err}")),
        err => OwnError::invalid(format!("symbol {err}")),
    };
    SymbolPath::parse_lockable(text).map_err(named)
}

pub(in super::super) fn path(text: &str, member: &str) -> Result<RepoPath, OwnError> {
    let path = RepoPath::parse(text).map_err(|err| OwnError::invalid(format!("{member} {err}")))?;
    if path.is_root() {
        return Err(OwnError::invalid(format!("{member} names no file")));
    }
    Ok(path)
}

pub(in super::super) fn ttl(ms: Option<u64>, member: &str) -> Result<Option<Ttl>, OwnError> {
    let wrong = || OwnError::invalid(format!("{member} is between one millisecond and a week"));
    ms.map(|ms| Ttl::from_millis(ms).ok_or_else(wrong)).transpose()
}

pub(in super::super) fn whose(query: &wire::Whose, caller: &AgentId) -> Result<Option<AgentId>, OwnError> {
    match &query.agent {
        _ if query.mine => Ok(Some(caller.clone())),
        Some(name) => agent(name, "agent").map(Some),
        None => Ok(None),
    }
}

pub(in super::super) fn intents_wanted(
    query: &wire::Whose,
    caller: &AgentId,
) -> Result<SomeIntents, OwnError> {
    use IntentStatus::{Abandoned, Active, Declared, Resolved};
    let status =
        one_of(query.status.as_deref(), [Active, Declared, Resolved, Abandoned], IntentStatus::as_str)?;
    let file = query.file.as_deref().map(|it| path(it, "file")).transpose()?;
    let file = file.map(|it| it.as_str().into());
    Ok(SomeIntents { agent: whose(query, caller)?, file, status })
}

pub(in super::super) fn intent_status(word: &str) -> Result<IntentStatus, OwnError> {
    use IntentStatus::{Abandoned, Active, Resolved};
    let found = one_of(Some(word), [Active, Resolved, Abandoned], IntentStatus::as_str)?;
    found.ok_or_else(|| OwnError::invalid("status is missing"))
}

pub(in super::super) fn contracts_wanted(query: &wire::ContractsQuery) -> Result<SomeContracts, OwnError> {
    use ContractStatus::{Accepted, Proposed, Rejected, Superseded, Withdrawn};
    let all = [Proposed, Accepted, Rejected, Superseded, Withdrawn];
    let status = one_of(query.status.as_deref(), all, ContractStatus::as_str)?;
    let symbol = query.symbol.as_deref().map(symbol).transpose()?;
    Ok(SomeContracts { symbol: symbol.map(|it| it.to_string().into()), status })
}

fn one_of<const N: usize, T: Copy>(
    word: Option<&str>,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
) -> Result<Option<T>, OwnError> {
    let Some(word) = word else { return Ok(None) };
    all.into_iter().find(|it| name(*it) == word).map(Some).ok_or_else(|| {
        OwnError::invalid(format!("status '{word}' is not one of {}", all.map(&name).join(", ")))
    })
}

pub(in super::super) fn intent_id(id: &str) -> Result<IntentId, OwnError> {
    IntentId::parse(id).map_err(|err| OwnError::invalid(format!("intent {err}")))
}

pub(in super::super) fn contract_id(id: &str) -> Result<ContractId, OwnError> {
    ContractId::parse(id).map_err(|err| OwnError::invalid(format!("contract {err}")))
}

pub(in super::super) fn words(it: &str, member: &str) -> Result<Box<str>, OwnError> {
    text(Some(it.to_owned())).ok_or_else(|| OwnError::invalid(format!("{member} is empty")))
}

fn bytes(base64: &str, member: &str) -> Result<std::sync::Arc<[u8]>, OwnError> {
    let wrong = |err| OwnError::invalid(format!("{member} is not Base64: {err}"));
    STANDARD.decode(base64).map(Into::into).map_err(wrong)
}

pub(in super::super) fn staged(file: wire::StagedFile) -> Result<Staged, OwnError> {
    Ok(Staged {
        path: path(&file.path, "path")?,
        content: Some(bytes(&file.content, "content")?),
        renamed_from: file.from.as_deref().map(|it| path(it, "from")).transpose()?,
    })
}

/// Makes a staged file with its content on disk.
pub(in super::super) fn on_disk(path: RepoPath) -> Staged {
    Staged { path, content: None, renamed_from: None }
}

pub(in super::super) fn paths(paths: &[String], member: &str) -> Result<Vec<RepoPath>, OwnError> {
    if paths.len() > STAGED_FILES_MAX {
        return Err(OwnError::invalid(format!("{member} has more than {STAGED_FILES_MAX} entries")));
    }
    paths.iter().map(|it| path(it, member)).collect()
}

pub(in super::super) fn edit(it: &wire::Edit) -> Result<Edit, OwnError> {
    let change = match (&it.before, &it.after) {
        (Some(before), Some(after)) => Some((bytes(before, "before")?, bytes(after, "after")?)),
        (None, None) => None,
        _ => return Err(OwnError::invalid("before and after come together")),
    };
    let symbol = it.symbol.as_deref().map(|it| words(it, "symbol")).transpose()?;
    Ok(Edit { path: path(&it.path, "path")?, change, symbol, fails: it.fails })
}

pub(in super::super) fn lock(lock: &Lock, name: Option<&str>) -> wire::Lock {
    wire::Lock {
        symbol: lock.shown(),
        asked: lock.asked.to_string(),
        holder: lock.holder.to_string(),
        name: name.map(str::to_owned),
        fence: lock.fence.0,
        since: lock.acquired_at.rfc3339(),
        until: lock.expires_at.rfc3339(),
        reason: lock.reason.as_ref().map(ToString::to_string),
        pid: lock.process.map(|it| it.pid),
        task: lock.run.as_ref().map(ToString::to_string),
        written_in: lock.writing.as_ref().map(|it| it.tree.to_string()),
        until_commit: lock.until_commit.is_some(),
        units: lock.units,
    }
}

pub(in super::super) fn named_lock<T: AsRef<Lock>>(it: &Named<T>) -> wire::Lock {
    lock(it.it.as_ref(), it.name.as_deref())
}

pub(in super::super) fn waiter(it: &Waiter) -> wire::Waiter {
    wire::Waiter {
        symbol: it.at.to_string(),
        agent: it.agent.to_string(),
        since: it.since.rfc3339(),
        until: it.until.rfc3339(),
        task: it.run.as_ref().map(ToString::to_string),
        ticket: it.ticket.0,
    }
}

pub(in super::super) fn granted(it: &Granted) -> wire::Locked {
    let warnings = it.warnings.iter().map(|warning| warning_told(&it.lock.asked, warning)).collect();
    wire::Locked { lock: lock(&it.lock, None), warnings, more: it.more }
}

fn held(lock: &Lock) -> String {
    let why = lock.reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{} until {}{why}", lock.holder, lock.expires_at)
}

fn about(lock: &Lock, kind: &str, message: String) -> wire::Told {
    wire::Told {
        kind: kind.into(),
        message,
        holder: Some(lock.holder.to_string()),
        symbol: Some(lock.at.to_string()),
        fence: Some(lock.fence.0),
        guessed: false,
        until: Some(lock.expires_at.rfc3339()),
        intent: None,
    }
}

fn plain(kind: &str, message: String) -> wire::Told {
    wire::Told { kind: kind.into(), message, ..wire::Told::default() }
}

fn had(stake: &Reservation) -> String {
    let until = stake.until.map(|it| format!(" until {it}")).unwrap_or_default();
    format!("{} {}{until}: {}", stake.kind.verb(), stake.agent, stake.asked)
}

/// Encodes a warning about another agent's reservation through another door.
fn of_stake(stake: &Reservation, message: String) -> wire::Told {
    let kind = match stake.kind {
        ReservationKind::Claim => "file_claimed",
        ReservationKind::Lock => "locked",
        ReservationKind::Intent | ReservationKind::Plan => "announced",
    };
    let until = stake.until.map(|it| it.rfc3339());
    wire::Told { holder: Some(stake.agent.to_string()), until, ..plain(kind, message) }
}

fn of_intent(intent: &Intent, kind: &str, message: String) -> wire::Told {
    let (holder, id) = (intent.agent.to_string(), intent.id.to_string());
    wire::Told { holder: Some(holder), intent: Some(id), ..plain(kind, message) }
}

fn warning_told(asked: &str, warning: &Warning) -> wire::Told {
    match warning {
        Warning::CallerLocked { caller, lock, guessed } => {
            let calls = call_verb(*guessed);
            let message = format!("{caller}, which {calls} {asked}, is locked by {}", held(lock));
            wire::Told { guessed: *guessed, ..about(lock, "caller_locked", message) }
        }
        Warning::CalleeLocked { callee, lock, guessed } => {
            let calls = call_verb(*guessed);
            let message = format!("{callee}, which {asked} {calls}, is locked by {}", held(lock));
            wire::Told { guessed: *guessed, ..about(lock, "callee_locked", message) }
        }
        Warning::Incomplete(why) => {
            plain("incomplete", format!("{asked} is locked; callers and callees may be missing here: {why}"))
        }
        Warning::Inside(lock) => {
            let message = format!("{}, which {asked} is part of, is locked by {}", lock.at, held(lock));
            about(lock, "container_locked", message)
        }
        Warning::Around(lock) => about(
            lock,
            "member_locked",
            format!("{}, a part of {asked}, is locked by {}", lock.at, held(lock)),
        ),
        Warning::Intended(intent) => {
            let message = format!("{} intends to change it: {}", intent.agent, intent.description);
            of_intent(intent, "intended", message)
        }
        Warning::Elsewhere(stake) => {
            of_stake(stake, format!("{}, where {asked} is, {}", stake.at, had(stake)))
        }
        Warning::PortInUse(port) => plain(
            "port_in_use",
            format!("{asked} is locked, and a program listens at port {port} already; is it yours?"),
        ),
        Warning::NoFile => plain(
            "no_file",
            format!("{asked} is locked, but there is no such file; is it spelt right, or not made yet?"),
        ),
        Warning::Unknown => plain(
            "unknown_symbol",
            format!("{asked} is locked, but its file does not define it; is it spelt right?"),
        ),
        Warning::Ambiguous(paths) => plain(
            "ambiguous_symbol",
            format!("{asked} is locked, and with it each symbol that has this name: {}", paths.join(", ")),
        ),
        Warning::Unreadable(why) => plain(
            "unread_file",
            format!("{asked} is locked, but was not read as code, so its callers are not known: {why}"),
        ),
    }
}

pub(in super::super) fn declared(it: &Declared) -> wire::Declared {
    wire::Declared { intent: intent(&it.intent, None), conflicts: conflicts(&it.conflicts), more: it.more }
}

pub(in super::super) fn conflicts(all: &[Conflict]) -> Vec<wire::Told> {
    all.iter().map(conflict_told).collect()
}

/// Writes a symbol, or a whole file as its path alone.
fn place(symbol: &SymbolPath) -> String {
    symbol.to_string().trim_end_matches(':').to_owned()
}

fn conflict_told(conflict: &Conflict) -> wire::Told {
    match conflict {
        Conflict::Overlap(intent) => {
            let message =
                format!("{} intends to work at the same place: {}", intent.agent, intent.description);
            of_intent(intent, "intent_overlap", message)
        }
        Conflict::Locked { symbol, lock } => {
            about(lock, "symbol_locked", format!("{symbol} is locked by {}", held(lock)))
        }
        Conflict::Incomplete(why) => {
            plain("incomplete", format!("callers and callees may be missing here: {why}"))
        }
        Conflict::Chain { symbol, lock, guessed } => {
            let (symbol, calls) = (place(symbol), call_verb(*guessed));
            let message = format!("{symbol} {calls} {}, which is locked by {}", lock.at, held(lock));
            wire::Told { guessed: *guessed, ..about(lock, "callee_locked", message) }
        }
        Conflict::CallerLocked { symbol, lock, guessed } => {
            let (symbol, calls) = (place(symbol), call_verb(*guessed));
            let message = format!("{}, which {calls} {symbol}, is locked by {}", lock.at, held(lock));
            wire::Told { guessed: *guessed, ..about(lock, "caller_locked", message) }
        }
        Conflict::Elsewhere(Meeting { mine, with }) => {
            of_stake(with, format!("{}, where this intent reaches, {}", mine.at, had(with)))
        }
        Conflict::Within(lock) => {
            let message = format!("{}, where this intent reaches, is locked by {}", lock.at, held(lock));
            about(lock, "locked_within", message)
        }
    }
}

pub(in super::super) fn intent(it: &Intent, name: Option<&str>) -> wire::Intent {
    let file = |file: &provost_domain::IntentFile| wire::IntentFile {
        path: file.path.to_string(),
        spans: file.spans.iter().map(|span| (span.start, span.end)).collect(),
    };
    wire::Intent {
        id: it.id.to_string(),
        agent: it.agent.to_string(),
        name: name.map(str::to_owned),
        description: it.description.to_string(),
        files: it.files.iter().map(file).collect(),
        symbols: it.symbols.iter().map(ToString::to_string).collect(),
        status: it.status.as_str().into(),
        declared_at: it.declared_at.rfc3339(),
        updated_at: it.updated_at.rfc3339(),
        expires_at: it.expires_at.rfc3339(),
        grants: it.grants.iter().map(|it| it.0).collect(),
    }
}

pub(in super::super) fn contract(it: &Contract) -> wire::Contract {
    wire::Contract {
        id: it.id.to_string(),
        symbol: it.at.to_string(),
        also: it.also.iter().map(ToString::to_string).collect(),
        signature: it.signature.to_string(),
        branch: it.branch.as_ref().map(ToString::to_string),
        proposer: it.proposer.to_string(),
        responder: it.responder.as_ref().map(ToString::to_string),
        status: it.status.as_str().into(),
        proposed_at: it.proposed_at.rfc3339(),
        responded_at: it.responded_at.map(|it| it.rfc3339()),
    }
}

pub(in super::super) fn violation(it: &Violation) -> wire::Violation {
    use provost_service::ContractMismatch::{Changed, Deleted, Missing, Untold};
    let (fault, actual) = match &it.fault {
        Changed(signature) => ("changed", signature.to_string()),
        Missing => ("missing", "(the symbol is gone)".into()),
        Deleted => ("deleted", "(the file is gone)".into()),
        Untold(why) => ("untold", format!("(not known: {why})")),
    };
    let contract = &it.contract;
    let between = std::iter::once(&contract.proposer).chain(&contract.responder);
    wire::Violation {
        contract: contract.id.to_string(),
        symbol: contract.at.to_string(),
        file: it.file.to_string(),
        fault: fault.into(),
        expected: contract.signature.to_string(),
        actual,
        between: between.map(ToString::to_string).collect(),
    }
}

fn blocked(it: &Blocked) -> wire::Blocked {
    let (lock, claim) = match &it.by {
        Obstacle::Lock(lock) => (Some(named_lock(lock)), None),
        Obstacle::Claim(it) => (None, Some(claim(it))),
    };
    wire::Blocked { lock, claim, touched: it.touched, doing: it.doing.as_ref().map(ToString::to_string) }
}

/// Encodes the obstacles to an agent's edits, and the intents near them.
pub(in super::super) fn guarded(agent: &AgentId, found: &Guarded) -> wire::Guarded {
    let near = found.near.iter().map(|(intent, at)| wire::NearIntent {
        agent: intent.agent.to_string(),
        at: at.to_string(),
        description: intent.description.to_string(),
    });
    wire::Guarded {
        agent: agent.to_string(),
        blocked: found.blocked.iter().map(blocked).collect(),
        near: near.collect(),
        written: found.written.iter().map(|it| lock(it, None)).collect(),
    }
}

fn claim(it: &Claim) -> wire::Claim {
    wire::Claim {
        file: it.file.to_string(),
        holder: it.held.owner().map(ToString::to_string).unwrap_or_default(),
        since: it.held.since().map(|it| it.rfc3339()),
        fence: it.fence.0,
    }
}

pub(in super::super) fn fence(it: Option<u64>) -> Option<Fence> {
    it.map(Fence)
}
