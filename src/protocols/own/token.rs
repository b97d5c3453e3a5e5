//! Tokens: one handler per path.

use hyper::StatusCode;

use super::Own;
use super::handle::{Answered, Call, Handles};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_auth::{bearer, role};
use provost_base::Ttl;
use provost_domain::command::{MintToken, RevokeTokens, WhichTokens};
use provost_domain::view::GoodTokens;
use provost_domain::{Scope, Scopes, TOKEN_SCOPES, Token};

/// How long a token is valid if the request names no time.
const TTL: Ttl = Ttl::minutes(24 * 60);

impl Handles<endpoints::MintToken> for Own {
    async fn handle(&self, call: &Call, body: wire::MintToken) -> Answered<wire::Minted> {
        let wire::MintToken { agent, scopes, ttl_s } = body;
        let agent = map::agent(&agent, "agent")?;
        if role::is_reserved(&agent) {
            let message =
                format!("{agent} belongs to the daemon, to a page or to a person, and never has a token");
            return Err(OwnError::new(StatusCode::FORBIDDEN, "reserved", message));
        }
        self.check_other(&call.who, &agent)?;
        if ttl_s == Some(0) {
            return Err(OwnError::invalid("ttl_s is zero"));
        }
        let scopes = scopes.map_or(Ok(role::usual_token_scopes()), |words| read(&words))?;
        let secret = bearer::fresh().map_err(|_| {
            OwnError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "the system has no randomness to give",
            )
        })?;
        let verb = MintToken {
            digest: bearer::digest(secret.expose()),
            agent,
            scopes,
            ttl: ttl_s.map_or(TTL, Ttl::seconds_clamped),
        };
        let minted = self.submit_judged(&call.who, verb).await?;
        let secret = String::from_utf8_lossy(secret.expose()).into_owned();
        Ok(wire::Minted { secret, token: row(&minted.token) })
    }
}

impl Handles<endpoints::Tokens> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::Token>> {
        let tokens = self.0.provost.view(GoodTokens).await.map_err(map::fault)?;
        Ok(tokens.iter().map(|token| row(token)).collect())
    }
}

impl Handles<endpoints::RevokeTokens> for Own {
    async fn handle(&self, call: &Call, body: wire::RevokeTokens) -> Answered<Vec<wire::Token>> {
        let which = match body {
            wire::RevokeTokens { id: Some(id), agent: None } => WhichTokens::Id(id.into()),
            wire::RevokeTokens { id: None, agent: Some(agent) } => {
                WhichTokens::Of(map::agent(&agent, "agent")?)
            }
            _ => return Err(OwnError::invalid("say either id or agent")),
        };
        let revoked = self.submit(&call.who, RevokeTokens { which }).await?;
        Ok(revoked.tokens.iter().map(|token| row(token)).collect())
    }
}

fn read(words: &[String]) -> Result<Scopes, OwnError> {
    let scope = |word: &String| -> Result<Scope, OwnError> {
        TOKEN_SCOPES.into_iter().find(|scope| scope.as_str() == word).ok_or_else(|| {
            let known = TOKEN_SCOPES.map(Scope::as_str).join(", ");
            OwnError::invalid(format!("scopes: a token is good for {known}"))
        })
    };
    let scopes = words.iter().map(scope).collect::<Result<Vec<_>, _>>()?;
    if scopes.is_empty() { Err(OwnError::invalid("scopes is empty")) } else { Ok(Scopes::of(&scopes)) }
}

fn row(token: &Token) -> wire::Token {
    wire::Token {
        id: token.id(),
        agent: token.agent.to_string(),
        scopes: token.scopes.iter().map(|scope| scope.as_str().into()).collect(),
        minted_at: token.minted_at.rfc3339(),
        minted_by: token.minted_by.to_string(),
        expires_at: token.expires_at.rfc3339(),
    }
}
