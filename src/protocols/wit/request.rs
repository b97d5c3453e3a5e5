//! The requests of the protocol, in Provost's types: each method with its members. wit, 5.

use serde_json::value::RawValue;

use super::map::{WitError, intent_status};
use super::params::{Given, Params, kind, path};
use super::wire::{Envelope, members, string};
use provost_base::limits::{INTENT_FILES_MAX, INTENT_SYMBOLS_MAX, STAGED_FILES_MAX, SYMBOL_LEN_MAX};
use provost_base::{AgentId, Fence, RepoPath, SymbolPath, Ttl};
use provost_domain::{IntentStatus, ProcessMark};
use provost_service::Checkouts;

/// A path or a symbol in its one spelling, and as it was written.
pub(super) type Written<T> = (T, Box<str>);

/// A request, with checked members.
pub(super) enum WitRequest {
    Ping,
    Register(AgentId, Box<str>),
    Acquire(AgentId, Acquire),
    Release(AgentId, Release),
    /// The agent whose locks are wanted; `None` for all agents.
    Locks(Option<String>),
    Declare(AgentId, Declare),
    Update(AgentId, String, IntentStatus),
    Intents(Intents),
    Propose(AgentId, Written<SymbolPath>),
    Respond(AgentId, String, bool),
    Contracts(Option<String>, Option<String>),
    Check(Check),
    /// Provost's own: ends a session, and its intents if the flag is set.
    Leave(AgentId, bool),
    /// Provost's own: withdraws an offer.
    Withdraw(AgentId, String),
}

pub(super) struct Acquire {
    pub(super) at: Written<SymbolPath>,
    pub(super) ttl: Option<Ttl>,
    pub(super) wait: Option<Ttl>,
    pub(super) reason: Option<Box<str>>,
    pub(super) process: Option<ProcessMark>,
}

pub(super) struct Release {
    pub(super) at: String,
    pub(super) fence: Option<Fence>,
}

pub(super) struct Declare {
    pub(super) description: Box<str>,
    pub(super) files: Vec<Written<RepoPath>>,
    pub(super) symbols: Vec<Box<str>>,
    pub(super) ttl: Option<Ttl>,
}

pub(super) struct Intents {
    pub(super) session: Option<String>,
    pub(super) file: Option<String>,
    pub(super) status: Option<String>,
}

pub(super) struct Check {
    pub(super) files: Vec<(Written<RepoPath>, String)>,
    /// The renamed files: the old path and the new path.
    pub(super) renamed: Vec<(RepoPath, RepoPath)>,
    pub(super) deleted: Vec<RepoPath>,
}

impl WitRequest {
    /// Reads a request; the result owns all of its data.
    pub(super) fn read(envelope: &Envelope<'_>, checkouts: &Checkouts) -> Result<Self, WitError> {
        let params = Given { params: envelope.params, checkouts };
        match envelope.method.as_str() {
            "ping" => Ok(Self::Ping),
            "register" => register(params),
            "lock.acquire" => acquire(params),
            "lock.release" => release(params),
            "lock.query" => locks(params),
            "intent.declare" => declare(params),
            "intent.update" => update(params),
            "intent.query" => intents(params),
            "contract.propose" => propose(params),
            "contract.respond" => respond(params),
            "contract.query" => contracts(params),
            "check-contracts" => check(params),
            "provost.leave" => leave(params),
            "provost.contract.withdraw" => withdraw(params),
            _ => Err(WitError::unknown_method()),
        }
    }
}

fn register(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["name", "sessionId"])?;
    let (name, who) = (read.name("name"), read.session("sessionId"));
    let (name, who) = read.all(name.zip(who))?;
    Ok(WitRequest::Register(who, name))
}

fn acquire(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["symbolPath", "sessionId", "ttlMs", "waitMs", "reason", "pid"])?;
    let (at, who) = (read.symbol("symbolPath"), read.session("sessionId"));
    let (ttl, wait) = (read.duration("ttlMs"), read.wait("waitMs"));
    let (reason, process) = (read.reason("reason"), read.process("pid"));
    let rest = ttl.zip(wait).zip(reason.zip(process));
    let ((at, who), ((ttl, wait), (reason, process))) = read.all(at.zip(who).zip(rest))?;
    Ok(WitRequest::Acquire(who, Acquire { at, ttl, wait, reason, process }))
}

fn release(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["symbolPath", "sessionId", "fence"])?;
    let (at, who) = (read.text("symbolPath"), read.session("sessionId"));
    let at = at.map(|it| params.checkouts.inside(&it).into_owned());
    let fence = read.integer("fence");
    let ((at, who), fence) = read.all(at.zip(who).zip(fence))?;
    Ok(WitRequest::Release(who, Release { at, fence: fence.map(Fence) }))
}

fn locks(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of_question(params, ["sessionId"])?;
    let session = read.filter("sessionId");
    // Here, and only here, an empty name means no filter.
    Ok(WitRequest::Locks(read.all(session)?.filter(|it| !it.is_empty())))
}

fn declare(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["sessionId", "description", "files", "symbols", "ttlMs"])?;
    let (who, description) = (read.session("sessionId"), read.description("description"));
    let files = read.full_list("files", INTENT_FILES_MAX, |it| path(it, params.checkouts));
    if files.as_ref().is_some_and(Vec::is_empty) {
        read.wrong::<()>("files", "must name at least one file");
    }
    let (symbols, ttl) = (read.list("symbols", INTENT_SYMBOLS_MAX, symbol), read.duration("ttlMs"));
    let what = description.zip(files).zip(symbols.zip(ttl));
    let (who, ((description, files), (symbols, ttl))) = read.all(who.zip(what))?;
    Ok(WitRequest::Declare(who, Declare { description, files, symbols, ttl }))
}

/// Reads a symbol within a file; an empty one matches no symbol, and is no error.
fn symbol(value: &RawValue) -> Result<Box<str>, String> {
    let text = string(value).ok_or_else(|| format!("must be a string, not {}", kind(value)))?;
    if text.len() > SYMBOL_LEN_MAX {
        return Err(format!("is longer than {SYMBOL_LEN_MAX} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err("contains a control character".into());
    }
    Ok(text.into())
}

fn update(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["intentId", "sessionId", "status"])?;
    let (id, who) = (read.text("intentId"), read.session("sessionId"));
    let status = read.any_text("status").and_then(|word| {
        let status = intent_status(&word).filter(|it| *it != IntentStatus::Declared);
        status.or_else(|| read.wrong("status", "must be one of active, resolved, abandoned"))
    });
    let ((id, who), status) = read.all(id.zip(who).zip(status))?;
    Ok(WitRequest::Update(who, id, status))
}

fn intents(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of_question(params, ["sessionId", "file", "status"])?;
    let (session, file) = (read.filter("sessionId"), read.place("file"));
    let status = read.filter("status");
    let ((session, file), status) = read.all(session.zip(file).zip(status))?;
    Ok(WitRequest::Intents(Intents { session, file, status }))
}

fn propose(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["sessionId", "symbolPath"])?;
    let (who, at) = (read.session("sessionId"), read.symbol("symbolPath"));
    let (who, at) = read.all(who.zip(at))?;
    Ok(WitRequest::Propose(who, at))
}

fn respond(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["contractId", "sessionId", "accept"])?;
    let (id, who) = (read.text("contractId"), read.session("sessionId"));
    let accept = read.flag("accept");
    let ((id, who), accept) = read.all(id.zip(who).zip(accept))?;
    Ok(WitRequest::Respond(who, id, accept))
}

fn contracts(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of_question(params, ["symbolPath", "status"])?;
    let (symbol, status) = (read.place("symbolPath"), read.filter("status"));
    let (symbol, status) = read.all(symbol.zip(status))?;
    Ok(WitRequest::Contracts(symbol, status))
}

fn check(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["files", "renamed", "deleted"])?;
    let files = read.full_list("files", STAGED_FILES_MAX, |it| {
        let [at, content] = members(it, ["path", "content"]).ok_or("must be an object")?;
        let at = path(at.ok_or("has no path")?, params.checkouts)
            .map_err(|why| format!("has a path that {why}"))?;
        let content = content.ok_or("has no content")?;
        let text =
            string(content).ok_or_else(|| format!("has {} as content, not a string", kind(content)))?;
        Ok((at, text))
    });
    let renamed = read.list("renamed", STAGED_FILES_MAX, |it| {
        let [from, to] = members(it, ["from", "to"]).ok_or("must be an object")?;
        let (from, to) = from.zip(to).ok_or("must have `from` and `to`")?;
        Ok((path(from, params.checkouts)?.0, path(to, params.checkouts)?.0))
    });
    let deleted = read.list("deleted", STAGED_FILES_MAX, |it| Ok(path(it, params.checkouts)?.0));
    let (files, (renamed, deleted)) = read.all(files.zip(renamed.zip(deleted)))?;
    Ok(WitRequest::Check(Check { files, renamed, deleted }))
}

fn leave(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["sessionId", "intents"])?;
    let (who, intents) = (read.session("sessionId"), read.switch("intents"));
    let (who, intents) = read.all(who.zip(intents))?;
    Ok(WitRequest::Leave(who, intents))
}

fn withdraw(params: Given<'_>) -> Result<WitRequest, WitError> {
    let mut read = Params::of(params, ["contractId", "sessionId"])?;
    let (id, who) = (read.text("contractId"), read.session("sessionId"));
    let (id, who) = read.all(id.zip(who))?;
    Ok(WitRequest::Withdraw(who, id))
}
