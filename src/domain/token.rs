//! Tokens: the proof of a request without a signature and without a connection of its own.
//!
//! ```text
//! minted --> good --> expired | revoked | superseded     (and then forgotten)
//! ```
//!
//! The daemon keeps only a digest. As long as an agent has a valid token, its name is reserved: being a process of
//! this user is no proof for it. The secret that all DevIt clients share still speaks for an agent whose tokens were
//! all obtained with that secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{MintToken, RevokeTokens, TokenMinted, TokensRevoked, WhichTokens};
use super::judged::{Judged, Permit};
use super::post::owned_slug;
use super::{
    Action, Call, Change, EventKind, Judge, Outbox, Principal, Proof, Refusal, Reply, Scope, Scopes, Share,
    State,
};
use provost_base::limits::{AGENT_TOKENS_MAX, MINTED_TOKENS_MAX};
use provost_base::{AgentId, Digest, Slug, Timestamp};

/// The rights that a token may have. Approvals need a person or a key, and the daemon's own actions need no token.
pub const TOKEN_SCOPES: [Scope; 6] =
    [Scope::Read, Scope::Join, Scope::Coordinate, Scope::Delegate, Scope::Work, Scope::Apply];

/// The daemon's record of a token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Token {
    /// The digest of the token, by which requests find this record.
    pub digest: Digest,
    /// The agent that its bearer acts as.
    pub agent: AgentId,
    /// The rights of its bearer.
    pub scopes: Scopes,
    /// The time after which the token is not valid.
    pub expires_at: Timestamp,
    /// When the token was made.
    pub minted_at: Timestamp,
    /// The agent that had it made.
    pub minted_by: AgentId,
    /// The proof of that agent.
    pub proof: Proof,
    /// The share of its bearer: its maker's, since an agent can request any number of tokens. `None` if a person
    /// had it made; then it counts to its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Token {
    /// Returns the token's public id, for places where the token must not be shown.
    pub fn id(&self) -> String {
        self.digest.short()
    }

    /// Checks whether the token is valid.
    pub fn is_good(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }
}

/// All tokens that are not forgotten.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tokens {
    all: BTreeMap<Digest, Arc<Token>>,
    /// The tokens by the form that all spellings of an agent's name share.
    by_name: BTreeMap<Slug, BTreeSet<Digest>>,
}

impl Tokens {
    pub(super) fn put(&mut self, token: Arc<Token>) {
        self.by_name.entry(owned_slug(token.agent.as_str())).or_default().insert(token.digest);
        self.all.insert(token.digest, token);
    }

    pub(super) fn remove(&mut self, digest: &Digest) {
        let Some(token) = self.all.remove(digest) else { return };
        let name = owned_slug(token.agent.as_str());
        if let Some(of_agent) = self.by_name.get_mut(&name) {
            of_agent.remove(digest);
            if of_agent.is_empty() {
                self.by_name.remove(&name);
            }
        }
    }

    /// Returns the token with this digest, if it is valid.
    pub fn good(&self, digest: &Digest, now: Timestamp) -> Option<&Arc<Token>> {
        self.all.get(digest).filter(|token| token.is_good(now))
    }

    /// Returns all tokens, by agent.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.by_name.values().flatten().filter_map(|digest| self.all.get(digest))
    }

    /// Returns an agent's tokens, valid or not, in any spelling of its name.
    fn of<'a>(&'a self, agent: &AgentId) -> impl Iterator<Item = &'a Arc<Token>> {
        // Usually there are no tokens, and every request of a door asks.
        let named = (!self.by_name.is_empty()).then(|| self.by_name.get(&owned_slug(agent.as_str())));
        named.flatten().into_iter().flatten().filter_map(|digest| self.all.get(digest))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Checks whether a caller with this proof may use an agent's name.
    ///
    /// # Errors
    /// [`Refusal::NameTaken`].
    pub(super) fn admit(&self, who: &Principal, now: Timestamp) -> Result<(), Refusal> {
        let taken = self.is_taken(who.agent(), who.proof(), now);
        if taken { Err(Refusal::NameTaken { agent: who.agent().clone() }) } else { Ok(()) }
    }

    /// Checks whether a token reserves a name, so that this proof alone does not suffice for it in any spelling. A token
    /// that was obtained with the shared secret does not keep out others that have this secret, under the same spelling.
    pub fn is_taken(&self, agent: &AgentId, proof: Proof, now: Timestamp) -> bool {
        let mut good = self.of(agent).filter(|token| token.is_good(now));
        match proof {
            Proof::PeerUid => good.next().is_some(),
            Proof::SharedKey => good.any(|token| token.proof != Proof::SharedKey || token.agent != *agent),
            _ => false,
        }
    }

    /// Follows a change to the tokens.
    pub fn follow(&mut self, change: &Change) {
        match change {
            Change::PutToken(token) => self.put(token.clone()),
            Change::DropToken(digest) => self.remove(digest),
            _ => {}
        }
    }

    /// Returns the agents that have a valid token.
    pub(super) fn holders(&self, now: Timestamp) -> impl Iterator<Item = &AgentId> {
        self.all.values().filter(move |token| token.is_good(now)).map(|token| &token.agent)
    }

    /// Forgets tokens whose time is up.
    pub(super) fn expire(&self, now: Timestamp, out: &mut Outbox) {
        let over = self.all.values().filter(|token| !token.is_good(now));
        over.for_each(|token| end(token, "expired", out));
    }
}

fn end(token: &Token, why: &str, out: &mut Outbox) {
    let (agent, token_id) = (token.agent.clone(), token.id().into());
    out.append_event(EventKind::TokenEnded { agent, token: token_id, why: why.into() });
    out.put(Change::DropToken(token.digest));
}

impl Judged for MintToken {
    fn action(&self) -> Action {
        Action::Token
    }

    fn by_person(
        &self,
        state: &State,
        _judge: &dyn Judge,
        call: &Call<'_>,
        out: &mut Outbox,
    ) -> Option<Result<Reply, Refusal>> {
        Some(state.mint_token(call.now, call.who, self, out).map(Reply::TokenMinted))
    }

    fn permitted(
        &self,
        state: &State,
        _judge: &dyn Judge,
        call: &Call<'_>,
        _permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        state.mint_token(call.now, call.who, self, out).map(Reply::TokenMinted)
    }

    fn tool(&self) -> Box<str> {
        "MintToken".into()
    }
}

impl State {
    /// Mints a token. Every agent may mint tokens for itself; a token for another agent needs the operator. Where agents have spoken, a
    /// process that leaves out its name may be a model: it may make itself a new agent, but get no token for an existing one.
    fn mint_token(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &MintToken,
        out: &mut Outbox,
    ) -> Result<TokenMinted, Refusal> {
        let for_others = who.may(Scope::Operate);
        let is_given = for_others && !(who.is_of_agents() && self.agents.is_used(&verb.agent));
        if *who.agent() != verb.agent && !is_given {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        // The operator may give any of these rights, an agent only its own. The consent to applies is a person's alone.
        let gives = |scope: &Scope| match scope {
            Scope::Apply => who.is_person(),
            scope => for_others || who.may(*scope),
        };
        let most: Vec<Scope> = TOKEN_SCOPES.into_iter().filter(gives).collect();
        if let Some(needs) = verb.scopes.beyond(Scopes::of(&most)) {
            return Err(Refusal::OutOfScope { needs });
        }
        if self.tokens.all.contains_key(&verb.digest) {
            return Err(Refusal::Exists { what: "a token" });
        }
        let of_agent: Vec<&Arc<Token>> = self.tokens.of(&verb.agent).collect();
        // A name keeps one spelling for as long as an agent has it.
        if let Some(other) = of_agent.iter().find(|it| it.agent != verb.agent && it.is_good(now)) {
            return Err(Refusal::NameTaken { agent: other.agent.clone() });
        }
        if of_agent.len() >= AGENT_TOKENS_MAX {
            let first = of_agent.iter().min_by_key(|token| (token.expires_at, token.digest));
            first.into_iter().for_each(|token| end(token, "superseded", out));
        } else if self.tokens.all.len() >= MINTED_TOKENS_MAX {
            return Err(Refusal::quota("as many tokens as there can be", MINTED_TOKENS_MAX, "revoke some"));
        }
        let token = Arc::new(Token {
            digest: verb.digest,
            agent: verb.agent.clone(),
            scopes: verb.scopes,
            expires_at: now.after(verb.ttl),
            minted_at: now,
            minted_by: who.agent().clone(),
            proof: who.proof(),
            share: (!who.is_person()).then(|| who.share()),
        });
        out.append_event(EventKind::TokenMinted {
            agent: token.agent.clone(),
            token: token.id().into(),
            scopes: token.scopes,
            expires_at: token.expires_at,
        });
        out.put(Change::PutToken(token.clone()));
        Ok(TokenMinted { token })
    }

    /// Revokes tokens: every caller may end its own; the operator may end any.
    pub(super) fn revoke_tokens(
        &self,
        who: &Principal,
        verb: &RevokeTokens,
        out: &mut Outbox,
    ) -> Result<TokensRevoked, Refusal> {
        let wanted = |token: &&Arc<Token>| match &verb.which {
            WhichTokens::Id(id) => *token.id() == **id,
            WhichTokens::Of(agent) => owned_slug(token.agent.as_str()) == owned_slug(agent.as_str()),
        };
        // A model that has left out its name must not free the names of others for itself.
        let for_others = who.operates();
        let mine = |token: &&Arc<Token>| token.agent == *who.agent() || for_others;
        let tokens: Vec<Arc<Token>> = self.tokens.iter().filter(wanted).filter(mine).cloned().collect();
        if tokens.is_empty() && who.may(Scope::Operate) && self.tokens.iter().any(|token| wanted(&token)) {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        if tokens.is_empty() {
            return Err(Refusal::TokenNotFound);
        }
        tokens.iter().for_each(|token| end(token, "revoked", out));
        Ok(TokensRevoked { tokens })
    }
}
