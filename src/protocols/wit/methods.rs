//! One function per method: submit, encode. wit, 5.

use std::collections::BTreeMap;

use serde_json::json;
use serde_json::value::RawValue;

use super::map::{self, WitError};
use super::request::{Acquire, Check, Declare, Intents, Release, WitRequest, Written};
use super::{Wit, rows, wire};
use provost_base::{AgentId, ContractId, IntentId, RepoPath, SymbolPath};
use provost_domain::command::{NameAgent, Rival};
use provost_domain::view::{SomeContracts, SomeIntents};
use provost_domain::{Door, Principal, Refusal};
use provost_service::{IntentOrder, LockOrder, Staged};

type Answered = Result<Box<RawValue>, WitError>;

impl Wit {
    /// Carries out a request.
    pub(super) async fn perform(&self, asked: WitRequest) -> Answered {
        match asked {
            WitRequest::Ping => Ok(wire::json(&"pong")),
            WitRequest::Register(who, name) => self.register(who, name).await,
            WitRequest::Acquire(who, acquire) => self.acquire(who, acquire).await,
            WitRequest::Release(who, release) => self.release(who, release).await,
            WitRequest::Locks(session) => self.locks(session).await,
            WitRequest::Declare(who, declare) => self.declare(who, declare).await,
            WitRequest::Update(who, id, to) => {
                let who = self.speaks_as(who)?;
                let id = IntentId::parse(&id).map_err(|_| WitError::from(Refusal::IntentNotFound))?;
                let moved = self.0.provost.update_intent(&who, id, to).await?.intent;
                Ok(wire::json(&rows::updated(&moved)))
            }
            WitRequest::Intents(wanted) => self.intents(wanted).await,
            WitRequest::Propose(who, at) => self.propose(who, at).await,
            WitRequest::Respond(who, id, accept) => {
                let who = self.speaks_as(who)?;
                let done = self.0.provost.answer_contract(&who, contract_id(&id)?, accept).await?;
                Ok(wire::json(&rows::settled(&done)))
            }
            WitRequest::Contracts(symbol, status) => self.contracts(symbol, status).await,
            WitRequest::Check(check) => self.check(check).await,
            WitRequest::Leave(who, intents) => {
                let left = self.0.provost.leave(&self.speaks_as(who)?, intents, None).await?;
                Ok(wire::json(&json!({ "locks": left.locks, "intents": left.intents })))
            }
            WitRequest::Withdraw(who, id) => {
                let who = self.speaks_as(who)?;
                let done = self.0.provost.withdraw_contract(&who, contract_id(&id)?).await?;
                Ok(wire::json(&rows::settled(&done)))
            }
        }
    }

    /// Returns the caller's principal under the name that it gives. The name must be one that every process of this
    /// user may use.
    fn speaks_as(&self, session: AgentId) -> Result<Principal, WitError> {
        // A client looks for its own `sessionId` in the answers, and would not know itself by a longer name.
        let who = self.0.names.just_as_said(session, Door::Wit, None, &self.1);
        who.map_err(|why| {
            tracing::warn!(door = "wit", cause = why.cause(), "request refused");
            WitError::reserved()
        })
    }

    async fn register(&self, who: AgentId, name: Box<str>) -> Answered {
        let named = self.0.provost.submit(&self.speaks_as(who)?, NameAgent { name }).await?;
        Ok(wire::json(&json!({ "agentId": named.number })))
    }

    async fn acquire(&self, who: AgentId, acquire: Acquire) -> Answered {
        let who = self.speaks_as(who)?;
        let (at, asked) = acquire.at;
        let order = LockOrder {
            base: self.0.base.clone(),
            at: at.clone(),
            asked: asked.clone(),
            ttl: acquire.ttl,
            at_least: false,
            wait: acquire.wait,
            reason: acquire.reason,
            process: acquire.process,
            in_session: false,
            apart: Default::default(),
        };
        match self.0.provost.lock(&who, order).await {
            Ok(granted) => Ok(wire::json(&rows::granted(&asked, &granted))),
            Err(refusal) => Err(match &refusal {
                Refusal::LockConflict(rival) | Refusal::WouldDeadlock { rival, .. } => {
                    self.conflict(&refusal, rival, at.file()).await?
                }
                other => map::refused(other),
            }),
        }
    }

    /// Makes the error for a conflict, with the data for the asker's next try.
    async fn conflict(
        &self,
        refusal: &Refusal,
        rival: &Rival,
        file: &RepoPath,
    ) -> Result<WitError, WitError> {
        let (locks, now) = self.0.provost.locks(Some(rival.by.clone()), Vec::new()).await?;
        let waiting = self.0.provost.lock_waiters().await?;
        let before = waiting.iter().filter(|it| it.at.file() == file && it.asked == rival.asked).count();
        let name = locks.into_iter().find_map(|it| it.name);
        Ok(map::conflict(refusal, rival, name, now, before))
    }

    async fn release(&self, who: AgentId, release: Release) -> Answered {
        let who = self.speaks_as(who)?;
        // A text that is no symbol was never locked.
        let at = SymbolPath::parse(&release.at).map_err(|_| WitError::from(Refusal::LockNotFound))?;
        self.0.provost.unlock(&who, self.0.base.as_ref(), &at, release.fence, false).await?;
        Ok(wire::json(&json!({ "released": true })))
    }

    async fn locks(&self, session: Option<String>) -> Answered {
        // No agent has a malformed name, so it has no locks.
        let Some(holder) = all_or_one(session, agent) else { return Ok(nothing()) };
        let (found, now) = self.0.provost.locks(holder, Vec::new()).await?;
        Ok(wire::json(&rows::locks(&found, now)))
    }

    async fn declare(&self, who: AgentId, declare: Declare) -> Answered {
        let who = self.speaks_as(who)?;
        let order = IntentOrder {
            base: self.0.base.clone(),
            id: IntentId::parse(&fresh_id()).expect("a UUID is an id"),
            description: declare.description,
            files: declare.files,
            symbols: declare.symbols,
            ttl: declare.ttl,
            grants: Vec::new(),
        };
        Ok(wire::json(&rows::report(&self.0.provost.declare(&who, order).await?)))
    }

    async fn intents(&self, wanted: Intents) -> Answered {
        let read_file =
            |it: &str| RepoPath::parse(it).ok().filter(|it| !it.is_root()).map(|it| it.as_str().into());
        let (session, file) = (all_or_one(wanted.session, agent), all_or_one(wanted.file, read_file));
        let status = all_or_one(wanted.status, map::intent_status);
        let (Some(agent), Some(file), Some(status)) = (session, file, status) else { return Ok(nothing()) };
        let found = self.0.provost.intents(SomeIntents { agent, file, status }).await?;
        Ok(wire::json(&rows::intents(&found)))
    }

    async fn propose(&self, who: AgentId, (at, asked): Written<SymbolPath>) -> Answered {
        let who = self.speaks_as(who)?;
        let id = ContractId::parse(&fresh_id()).expect("a UUID is an id");
        let proposed = self.0.provost.propose(&who, self.0.base.as_ref(), id, &at, &asked).await;
        let contract = proposed.map_err(|fault| map::not_proposed(fault, &asked))?;
        Ok(wire::json(&rows::proposed(&contract)))
    }

    async fn contracts(&self, symbol: Option<String>, status: Option<String>) -> Answered {
        let Some(status) = all_or_one(status, map::contract_status) else { return Ok(nothing()) };
        let symbol = symbol.map(|it| SymbolPath::parse(&it).map_or(it, |at| at.to_string()).into());
        let found = self.0.provost.contracts(SomeContracts { symbol, status }).await?;
        Ok(wire::json(&rows::contracts(&found)))
    }

    async fn check(&self, check: Check) -> Answered {
        let mut from: BTreeMap<RepoPath, RepoPath> =
            check.renamed.into_iter().map(|(from, to)| (to, from)).collect();
        let staged = check.files.into_iter().map(|((path, _), content)| {
            let renamed_from = from.remove(&path);
            Staged { path, content: Some(content.into_bytes().into()), renamed_from }
        });
        let staged: Vec<Staged> = staged.collect();
        // A file that was renamed, and whose new content was not sent, counts as deleted.
        let mut deleted = check.deleted;
        deleted.extend(from.into_values());
        let base = self.0.base.as_ref();
        Ok(wire::json(&rows::checked(&self.0.provost.check_contracts(base, staged, deleted).await?)))
    }
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn nothing() -> Box<RawValue> {
    wire::json(&[(); 0])
}

fn agent(name: &str) -> Option<AgentId> {
    AgentId::parse(name).ok()
}

fn contract_id(id: &str) -> Result<ContractId, WitError> {
    ContractId::parse(id).map_err(|_| Refusal::ContractNotFound.into())
}

/// Converts a filter; `None` for one that nothing can match.
fn all_or_one<T>(filter: Option<String>, read: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    filter.map_or(Some(None), |text| read(&text).map(Some))
}
