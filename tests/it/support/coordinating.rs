//! Locks, intents and contracts as commands to the core.

use std::sync::Arc;

use provost::base::IntentId;
use provost::base::{ContractId, RepoPath, Span, SymbolPath, Ttl};
use provost::domain::command::ProposeContract;
use provost::domain::command::{
    AcquireLock, Apart, Locked, ReleaseLock, SymbolFacts, SymbolPresence, Warning,
};
use provost::domain::command::{DeclareIntent, IntendedFile};
use provost::domain::{Answer, Lock, Refusal, Reply};

pub(crate) fn at(text: &str) -> SymbolPath {
    SymbolPath::parse_lockable(text).unwrap()
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

pub(crate) fn acquire(symbol: &str) -> AcquireLock {
    AcquireLock {
        at: at(symbol),
        asked: symbol.into(),
        ttl: Ttl::minutes(30),
        keeps_longer: false,
        wait: None,
        ticket: None,
        reason: None,
        process: None,
        seen: SymbolFacts { known: SymbolPresence::Found, ..SymbolFacts::default() },
        in_session: false,
        apart: Apart::FromNone,
        until_commit: None,
    }
}

pub(crate) fn release(symbol: &str) -> ReleaseLock {
    ReleaseLock { at: at(symbol), fence: None, force: false }
}

pub(crate) fn held(said: Result<Answer<Reply>, Refusal>) -> (Arc<Lock>, Vec<Warning>) {
    match said.unwrap() {
        Answer::Done(Reply::Locked(Locked::Held { lock, warnings, .. })) => (lock, warnings),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn propose(number: u64, symbol: &str, canon: &str) -> ProposeContract {
    ProposeContract {
        id: contract_id(number),
        at: at(symbol),
        asked: symbol.into(),
        signature: canon.into(),
        canon: canon.into(),
        branch: None,
    }
}

pub(crate) fn intent(number: u64, files: &[(&str, &[(u32, u32)])], symbols: &[&str]) -> DeclareIntent {
    let file = |(file, spans): &(&str, &[(u32, u32)])| IntendedFile {
        path: path(file),
        asked: (*file).into(),
        spans: spans.iter().map(|(start, end)| Span { start: *start, end: *end }).collect(),
        names: Vec::new(),
    };
    DeclareIntent {
        id: IntentId::parse(&format!("i-{number}")).unwrap(),
        description: "change it".into(),
        files: files.iter().map(file).collect(),
        symbols: symbols.iter().map(|it| (*it).into()).collect(),
        ttl: None,
        calls: Vec::new(),
        callers: Vec::new(),
        guessed: Vec::new(),
        fresh: Vec::new(),
        gaps: Vec::new(),
        grants: Vec::new(),
    }
}

pub(crate) fn contract_id(number: u64) -> ContractId {
    ContractId::parse(&format!("c-{number}")).unwrap()
}
