//! One function per method: submit, encode. wit, 5.

use serde_json::json;
use serde_json::value::RawValue;

use super::asked::{Acquire, Asked, Declare, Intents, Release};
use super::map::{self, Fault};
use super::wire;
use super::{Wit, rows};
use crate::auth::role;
use crate::base::{AgentId, ContractId, IntentId, RepoPath, SymbolPath, Ttl};
use crate::domain::command::{
    AcquireLock, AnswerContract, DeclareIntent, IntendedFile, Leave, Locked, NameAgent, ReleaseLock,
    SymbolFacts, UpdateIntent, WithdrawContract,
};
use crate::domain::view::{LiveLocks, SomeContracts, SomeIntents};
use crate::domain::{Principal, Refusal, Verb};

/// How long a lock is for that comes without a time.
const LOCK_TTL: Ttl = Ttl::minutes(30);

type Answered = Result<Box<RawValue>, Fault>;

impl Wit {
    /// Carries out one request.
    pub(super) async fn perform(&self, asked: Asked) -> Answered {
        match asked {
            Asked::Ping => Ok(wire::json(&"pong")),
            Asked::Register(who, name) => self.register(who, name).await,
            Asked::Release(who, release) => self.release(who, release).await,
            Asked::Locks(session) => self.locks(session).await,
            Asked::Update(who, id, to) => {
                let id = IntentId::parse(&id).map_err(|_| map::refused(&Refusal::IntentNotFound))?;
                let moved = self.submit(&self.speaks_as(who)?, UpdateIntent { id, to }).await?.intent;
                let (id, status) = (&moved.id, moved.status.word());
                Ok(wire::json(&rows::Updated { intent_id: id, status, updated_at: moved.updated_at }))
            }
            Asked::Intents(wanted) => self.intents(wanted).await,
            Asked::Respond(who, id, accept) => {
                let id = contract_id(&id)?;
                let done = self.submit(&self.speaks_as(who)?, AnswerContract { id, accept }).await?.contract;
                Ok(wire::json(&rows::settled(&done)))
            }
            Asked::Acquire(who, acquire) => self.acquire(who, acquire).await,
            Asked::Declare(who, declare) => self.declare(who, declare).await,
            Asked::Contracts(symbol, status) => self.contracts(symbol, status).await,
            Asked::Leave(who, intents) => {
                let left = self.submit(&self.speaks_as(who)?, Leave { intents }).await?;
                Ok(wire::json(&json!({ "locks": left.locks, "intents": left.intents })))
            }
            Asked::Withdraw(who, id) => {
                let id = contract_id(&id)?;
                let done = self.submit(&self.speaks_as(who)?, WithdrawContract { id }).await?.contract;
                Ok(wire::json(&rows::settled(&done)))
            }
        }
    }

    /// The caller under the name that it gave itself, which must be free for anyone to take.
    fn speaks_as(&self, session: AgentId) -> Result<Principal, Fault> {
        if role::is_reserved(&session) || self.0.keys.is_reserved(&session) {
            return Err(Fault::reserved());
        }
        Ok(role::wit(session))
    }

    async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Result<V::Reply, Fault> {
        let answer = self.0.provost.submit(who, verb).await.map_err(|it| map::refused(&it))?;
        map::not_done(answer)
    }

    async fn register(&self, who: AgentId, name: Box<str>) -> Answered {
        let named = self.submit(&self.speaks_as(who)?, NameAgent { name }).await?;
        Ok(wire::json(&json!({ "agentId": named.number })))
    }

    async fn acquire(&self, who: AgentId, acquire: Acquire) -> Answered {
        let who = self.speaks_as(who)?;
        let (at, asked) = acquire.at;
        let verb = AcquireLock {
            at,
            asked,
            ttl: acquire.ttl.unwrap_or(LOCK_TTL),
            wait: None,
            ticket: None,
            reason: acquire.reason,
            process: None,
            seen: SymbolFacts::default(),
        };
        match self.submit(&who, verb).await? {
            Locked::Held { lock, warnings, more, .. } => {
                Ok(wire::json(&rows::granted(&lock, &warnings, more)))
            }
            Locked::Queued { .. } => Err(map::refused(&Refusal::busy("nobody was to wait"))),
        }
    }

    async fn declare(&self, who: AgentId, declare: Declare) -> Answered {
        let who = self.speaks_as(who)?;
        let id = uuid::Uuid::new_v4().to_string();
        let files = declare.files.into_iter();
        let verb = DeclareIntent {
            id: IntentId::parse(&id).expect("a UUID is an id"),
            description: declare.description,
            files: files
                .map(|(path, asked)| IntendedFile { path, asked, spans: Vec::new(), names: Vec::new() })
                .collect(),
            symbols: declare.symbols,
            ttl: declare.ttl,
            calls: Vec::new(),
            fresh: Vec::new(),
        };
        Ok(wire::json(&rows::report(&self.submit(&who, verb).await?)))
    }

    async fn release(&self, who: AgentId, release: Release) -> Answered {
        let who = self.speaks_as(who)?;
        // What is no symbol was never locked.
        let at = SymbolPath::parse(&release.at).map_err(|_| map::refused(&Refusal::LockNotFound))?;
        self.submit(&who, ReleaseLock { at, fence: release.fence, force: false }).await?;
        Ok(wire::json(&json!({ "released": true })))
    }

    async fn locks(&self, session: Option<String>) -> Answered {
        // What is no name is nobody's.
        let Some(holder) = all_or_one(session, agent) else { return Ok(nothing()) };
        let wanted = LiveLocks { holder, files: Vec::new() };
        let (found, now) = self.0.provost.view(wanted).await.map_err(|it| map::refused(&it))?;
        Ok(wire::json(&rows::locks(&found, now)))
    }

    async fn intents(&self, wanted: Intents) -> Answered {
        let read_file =
            |it: &str| RepoPath::parse(it).ok().filter(|it| !it.is_root()).map(|it| it.as_str().into());
        let (session, file) = (all_or_one(wanted.session, agent), all_or_one(wanted.file, read_file));
        let status = all_or_one(wanted.status, map::intent_status);
        let (Some(agent), Some(file), Some(status)) = (session, file, status) else { return Ok(nothing()) };
        let found = self.0.provost.view(SomeIntents { agent, file, status }).await;
        Ok(wire::json(&rows::intents(&found.map_err(|it| map::refused(&it))?)))
    }

    async fn contracts(&self, symbol: Option<String>, status: Option<String>) -> Answered {
        let Some(status) = all_or_one(status, map::contract_status) else { return Ok(nothing()) };
        let symbol = symbol.map(|it| SymbolPath::parse(&it).map_or(it, |at| at.to_string()).into());
        let found = self.0.provost.view(SomeContracts { symbol, status }).await;
        Ok(wire::json(&rows::contracts(&found.map_err(|it| map::refused(&it))?)))
    }
}

fn nothing() -> Box<RawValue> {
    wire::json(&[(); 0])
}

fn agent(name: &str) -> Option<AgentId> {
    AgentId::parse(name).ok()
}

fn contract_id(id: &str) -> Result<ContractId, Fault> {
    ContractId::parse(id).map_err(|_| map::refused(&Refusal::ContractNotFound))
}

/// A filter in our words; `None` for one that nothing can meet.
fn all_or_one<T>(filter: Option<String>, read: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    filter.map_or(Some(None), |text| read(&text).map(Some))
}
