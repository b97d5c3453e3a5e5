//! Encodes results: locks, intents and contracts in wit's form. wit, 5; Provost's own members come after wit's.

use std::sync::Arc;

use serde::Serialize;

use provost_base::{AgentId, ContractId, Fence, IntentId, RepoPath, Timestamp};
use provost_domain::command::{Conflict, Declared, Warning, call_verb};
use provost_domain::view::Named;
use provost_domain::{Contract, Intent, Lock, Meeting, Reservation, ReservationKind};
use provost_service as service;

/// A lock that was granted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Granted {
    symbol_path: Box<str>,
    session_id: AgentId,
    acquired_at: String,
    expires_at: String,
    warnings: Vec<Alert>,
    fence: Fence,
    /// The number of warnings that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_warnings: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A warning: wit's members, and the text that its command line prints.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Alert {
    locked_symbol: Box<str>,
    held_by: Option<AgentId>,
    chain: Vec<String>,
    r#type: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent_id: Option<String>,
}

/// Returns the answer to `lock.acquire`; the symbol is written as the caller wrote it.
pub(super) fn granted(asked: &str, granted: &service::Granted) -> Granted {
    let lock = &granted.lock;
    Granted {
        symbol_path: asked.into(),
        session_id: lock.holder.clone(),
        acquired_at: lock.acquired_at.rfc3339(),
        expires_at: lock.expires_at.rfc3339(),
        warnings: granted.warnings.iter().map(|it| told(asked, it)).collect(),
        fence: lock.fence,
        more_warnings: granted.more,
    }
}

/// Encodes a warning with wit's word, or with Provost's own if wit has none.
fn told(asked: &str, warning: &Warning) -> Alert {
    match warning {
        Warning::CallerLocked { caller, lock, guessed } => {
            let message =
                format!("{caller}, which {} {asked}, is locked by {}", call_verb(*guessed), held(lock));
            let chain = vec![caller.to_string(), asked.into()];
            Alert { locked_symbol: caller.to_string().into(), chain, ..about(lock, "CALLER_LOCKED", message) }
        }
        Warning::CalleeLocked { callee, lock, guessed } => {
            let message =
                format!("{callee}, which {asked} {}, is locked by {}", call_verb(*guessed), held(lock));
            let chain = vec![asked.into(), callee.to_string()];
            Alert { locked_symbol: callee.to_string().into(), chain, ..about(lock, "CALLEE_LOCKED", message) }
        }
        Warning::Incomplete(why) => plain(
            asked,
            "INCOMPLETE",
            format!("{asked} is locked; callers and callees may be missing here: {why}"),
        ),
        Warning::Inside(lock) => {
            let message = format!("{}, which {asked} is part of, is locked by {}", lock.asked, held(lock));
            about(lock, "CONTAINER_LOCKED", message)
        }
        Warning::Around(lock) => {
            let message = format!("{}, a part of {asked}, is locked by {}", lock.asked, held(lock));
            about(lock, "MEMBER_LOCKED", message)
        }
        Warning::Intended(intent) => Alert {
            locked_symbol: asked.into(),
            held_by: Some(intent.agent.clone()),
            r#type: "INTENDED",
            message: format!("{} intends to change this: {}", intent.agent, intent.description),
            intent_id: Some(intent.id.to_string()),
            ..Alert::default()
        },
        Warning::Elsewhere(stake) => Alert {
            locked_symbol: asked.into(),
            held_by: Some(stake.agent.clone()),
            r#type: elsewhere(stake.kind),
            message: format!("{}, where {asked} is, {}", stake.at, had(stake)),
            expires_at: stake.until.map(|it| it.rfc3339()),
            ..Alert::default()
        },
        // No symbol is a port.
        Warning::PortInUse(port) => plain(asked, "PORT_IN_USE", format!("a program listens at port {port}")),
        Warning::NoFile => plain(
            asked,
            "NO_FILE",
            format!("{asked} is locked, but there is no such file; is it spelt right, or not made yet?"),
        ),
        Warning::Unknown => plain(
            asked,
            "UNKNOWN_SYMBOL",
            format!("{asked} is locked, but its file does not define it; is it spelt right?"),
        ),
        Warning::Ambiguous(paths) => plain(
            asked,
            "AMBIGUOUS_SYMBOL",
            format!("{asked} is locked, but several symbols have this name: {}", paths.join(", ")),
        ),
        Warning::Unreadable(why) => plain(
            asked,
            "UNREAD_FILE",
            format!("{asked} is locked, but could not be read as code, so its callers are not known: {why}"),
        ),
    }
}

/// Makes a warning about the symbol alone.
fn plain(asked: &str, r#type: &'static str, message: String) -> Alert {
    Alert { locked_symbol: asked.into(), r#type, message, ..Alert::default() }
}

/// Returns the type of a warning about a reservation of another door.
fn elsewhere(kind: ReservationKind) -> &'static str {
    match kind {
        ReservationKind::Claim => "FILE_CLAIMED",
        ReservationKind::Lock => "LOCKED",
        ReservationKind::Intent | ReservationKind::Plan => "ANNOUNCED",
    }
}

fn had(stake: &Reservation) -> String {
    let until = stake.until.map(|it| format!(" until {it}")).unwrap_or_default();
    format!("{} {}{until}: {}", stake.kind.verb(), stake.agent, stake.asked)
}

fn about(lock: &Lock, r#type: &'static str, message: String) -> Alert {
    Alert {
        locked_symbol: lock.asked.clone(),
        held_by: Some(lock.holder.clone()),
        r#type,
        message,
        expires_at: Some(lock.expires_at.rfc3339()),
        fence: Some(lock.fence),
        ..Alert::default()
    }
}

fn held(lock: &Lock) -> String {
    let why = lock.reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{} until {}{why}", lock.holder, lock.expires_at)
}

/// A row of `lock.query`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LockRow {
    symbol_path: Box<str>,
    session_id: AgentId,
    acquired_at: String,
    expires_at: String,
    ttl_remaining_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<Box<str>>,
    fence: Fence,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Box<str>>,
}

/// Returns the rows of `lock.query`. Resources are left out: wit has only symbols, and its clients would take `@db:test` for a file's.
pub(super) fn locks(found: &[Named<Arc<Lock>>], now: Timestamp) -> Vec<LockRow> {
    let row = |Named { it: lock, name }: &Named<Arc<Lock>>| LockRow {
        symbol_path: lock.asked.clone(),
        session_id: lock.holder.clone(),
        acquired_at: lock.acquired_at.rfc3339(),
        expires_at: lock.expires_at.rfc3339(),
        ttl_remaining_ms: lock.expires_at.since_ms(now),
        agent_name: name.clone(),
        fence: lock.fence,
        reason: lock.reason.clone(),
    };
    found.iter().filter(|it| !it.it.at.is_resource()).map(row).collect()
}

/// The answer to `intent.declare`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    intent_id: String,
    conflicts: Conflicts,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Conflicts {
    /// Whether there is a conflict of a kind that wit has; clients take it for "go no further".
    has_conflicts: bool,
    items: Vec<Item>,
    #[serde(skip_serializing_if = "is_zero")]
    more_items: usize,
}

/// A conflict. Each kind has members of its own; all have a description and a message, which are printed.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Item {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlapping_intent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlapping_session_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent_symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked_callee: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    description: String,
    message: String,
}

pub(super) fn report(declared: &Declared) -> Report {
    let ours = |it: &Conflict| {
        matches!(
            it,
            Conflict::Within(_)
                | Conflict::Elsewhere(_)
                | Conflict::CallerLocked { .. }
                | Conflict::Incomplete(_)
        ) || matches!(it, Conflict::Chain { symbol, .. } if symbol.symbol().is_empty())
    };
    Report {
        intent_id: declared.intent.id.to_string(),
        conflicts: Conflicts {
            has_conflicts: !declared.conflicts.iter().all(ours),
            items: declared.conflicts.iter().map(item).collect(),
            more_items: declared.more,
        },
    }
}

fn item(conflict: &Conflict) -> Item {
    let locked = |lock: &Lock, r#type, message: String| Item {
        r#type,
        held_by: Some(lock.holder.clone()),
        expires_at: Some(lock.expires_at.rfc3339()),
        description: message.clone(),
        message,
        ..Item::default()
    };
    match conflict {
        Conflict::Overlap(intent) => Item {
            r#type: "INTENT_OVERLAP",
            overlapping_intent_id: Some(intent.id.to_string()),
            overlapping_session_id: Some(intent.agent.clone()),
            description: intent.description.to_string(),
            message: format!("{} intends to work at the same place: {}", intent.agent, intent.description),
            ..Item::default()
        },
        Conflict::Locked { symbol, lock } => {
            let message = format!("{symbol} is locked by {}", held(lock));
            Item { symbol_path: Some(symbol.to_string()), ..locked(lock, "LOCK_INTERSECTION", message) }
        }
        Conflict::Incomplete(why) => {
            let message = format!("callers and callees may be missing here: {why}");
            Item { r#type: "INCOMPLETE", description: message.clone(), message, ..Item::default() }
        }
        // wit has no such kind for a whole file.
        Conflict::Chain { symbol, lock, guessed } if symbol.symbol().is_empty() => {
            let (calls, file) = (call_verb(*guessed), symbol.file());
            let message = format!("{file} {calls} {}, which is locked by {}", lock.asked, held(lock));
            let file = Some(symbol.file().to_string());
            Item { intent_symbol: file, ..locked(lock, "LOCKED_CALLEE", message) }
        }
        Conflict::Chain { symbol, lock, guessed } => {
            let message =
                format!("{symbol} {} {}, which is locked by {}", call_verb(*guessed), lock.asked, held(lock));
            let (symbol, callee) = (Some(symbol.to_string()), Some(lock.asked.to_string()));
            Item { intent_symbol: symbol, locked_callee: callee, ..locked(lock, "DEP_CHAIN", message) }
        }
        Conflict::CallerLocked { symbol, lock, guessed } => {
            let message = format!(
                "{}, which {} {symbol}, is locked by {}",
                lock.asked,
                call_verb(*guessed),
                held(lock)
            );
            Item { intent_symbol: Some(symbol.to_string()), ..locked(lock, "LOCKED_CALLER", message) }
        }
        Conflict::Elsewhere(Meeting { mine, with }) => {
            let message = format!("{}, where this intent reaches, {}", mine.at, had(with));
            Item {
                r#type: elsewhere(with.kind),
                held_by: Some(with.agent.clone()),
                expires_at: with.until.map(|it| it.rfc3339()),
                description: message.clone(),
                message,
                ..Item::default()
            }
        }
        Conflict::Within(lock) => {
            let message = format!("{}, where this intent reaches, is locked by {}", lock.asked, held(lock));
            Item { symbol_path: Some(lock.asked.to_string()), ..locked(lock, "LOCK_IN_FILE", message) }
        }
    }
}

/// The answer to `intent.update`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Updated<'a> {
    intent_id: &'a IntentId,
    status: &'static str,
    updated_at: Timestamp,
}

pub(super) fn updated(intent: &Intent) -> Updated<'_> {
    Updated { intent_id: &intent.id, status: intent.status.as_str(), updated_at: intent.updated_at }
}

/// A row of `intent.query`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IntentRow {
    intent_id: String,
    session_id: AgentId,
    description: Box<str>,
    files: String,
    symbols: String,
    start_byte: Option<u32>,
    end_byte: Option<u32>,
    status: &'static str,
    declared_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_name: Option<Box<str>>,
    expires_at: String,
    /// The files, each by itself.
    ranges: Vec<Range>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    file: Box<str>,
    start_byte: u32,
    end_byte: u32,
}

pub(super) fn intents(found: &[Named<Arc<Intent>>]) -> Vec<IntentRow> {
    found.iter().map(|Named { it, name }| intent(it, name.clone())).collect()
}

fn intent(intent: &Intent, agent_name: Option<Box<str>>) -> IntentRow {
    let files: Vec<&str> = intent.files.iter().map(|it| &*it.asked).collect();
    let ranges = intent.files.iter().flat_map(|file| {
        let range = |it: &provost_base::Span| Range {
            file: file.asked.clone(),
            start_byte: it.start,
            end_byte: it.end,
        };
        file.spans.iter().map(range)
    });
    let reach = intent.reach();
    IntentRow {
        intent_id: intent.id.to_string(),
        session_id: intent.agent.clone(),
        description: intent.description.clone(),
        files: format!(",{},", files.join(",")),
        symbols: super::wire::json(&intent.symbols).get().to_owned(),
        start_byte: reach.map(|it| it.start),
        end_byte: reach.map(|it| it.end),
        status: intent.status.as_str(),
        declared_at: intent.declared_at,
        updated_at: intent.updated_at,
        agent_name,
        expires_at: intent.expires_at.rfc3339(),
        ranges: ranges.collect(),
    }
}

/// The answer to `contract.propose`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Proposed<'a> {
    contract_id: &'a ContractId,
    symbol_path: &'a str,
    signature: &'a str,
}

pub(super) fn proposed(contract: &Contract) -> Proposed<'_> {
    Proposed { contract_id: &contract.id, symbol_path: &contract.asked, signature: &contract.signature }
}

/// The answer to `contract.respond`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settled<'a> {
    contract_id: &'a ContractId,
    status: &'static str,
}

pub(super) fn settled(contract: &Contract) -> Settled<'_> {
    Settled { contract_id: &contract.id, status: contract.status.as_str() }
}

/// A row of `contract.query`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContractRow {
    contract_id: String,
    proposer_session_id: AgentId,
    symbol_path: Box<str>,
    signature: Box<str>,
    status: &'static str,
    responder_session_id: Option<AgentId>,
    proposed_at: Timestamp,
    responded_at: Option<Timestamp>,
}

pub(super) fn contracts(found: &[Arc<Contract>]) -> Vec<ContractRow> {
    let row = |contract: &Arc<Contract>| ContractRow {
        contract_id: contract.id.to_string(),
        proposer_session_id: contract.proposer.clone(),
        symbol_path: contract.asked.clone(),
        signature: contract.signature.clone(),
        status: contract.status.as_str(),
        responder_session_id: contract.responder.clone(),
        proposed_at: contract.proposed_at,
        responded_at: contract.responded_at,
    };
    found.iter().map(row).collect()
}

/// The answer to `check-contracts`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verdict {
    violations: Vec<Violated>,
    /// The number of contracts that were compared.
    compared: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Violated {
    contract_id: ContractId,
    symbol_path: Box<str>,
    expected: Box<str>,
    actual: String,
    /// `changed`, `missing`, `deleted`, or `untold`.
    fault: &'static str,
    file: RepoPath,
}

pub(super) fn checked(checked: &service::Checked) -> Verdict {
    let row = |it: &service::Violation| {
        let (fault, actual) = match &it.fault {
            service::ContractMismatch::Changed(signature) => ("changed", signature.to_string()),
            // These are wit's own texts, since its clients may compare them.
            service::ContractMismatch::Missing => ("missing", "(symbol not found in staged content)".into()),
            service::ContractMismatch::Deleted => ("deleted", "(file deleted)".into()),
            service::ContractMismatch::Untold(why) => ("untold", format!("(not known: {why})")),
        };
        Violated {
            contract_id: it.contract.id.clone(),
            symbol_path: it.contract.asked.clone(),
            expected: it.contract.signature.clone(),
            actual,
            fault,
            file: it.file.clone(),
        }
    };
    Verdict { violations: checked.violations.iter().map(row).collect(), compared: checked.compared }
}
