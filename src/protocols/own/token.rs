//! Tokens: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};

use super::asked::{Asked, Caller};
use super::map::{self, Fault};
use super::routes::{Answered, submit, submit_judged};
use super::{Own, wire};
use crate::auth::{bearer, role};
use crate::base::Ttl;
use crate::domain::command::{MintToken, RevokeTokens, WhichTokens};
use crate::domain::view::GoodTokens;
use crate::domain::{Scope, Scopes, TOKEN_SCOPES, Token};

/// How long a token is good for that nobody has said more of.
const TTL: Ttl = Ttl::minutes(24 * 60);

pub(super) fn routes() -> Router<Own> {
    Router::new()
        .route("/mint-token", post(mint))
        .route("/tokens", get(tokens))
        .route("/revoke-tokens", post(revoke))
}

async fn mint(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::MintToken>,
) -> Answered<wire::Minted> {
    let wire::MintToken { agent, scopes, ttl_s } = body;
    let agent = map::agent(&agent, "agent")?;
    if role::is_reserved(&agent) {
        let message = format!("{agent} belongs to the daemon or a person, and never has a token");
        return Err(Fault::new(StatusCode::FORBIDDEN, "reserved", message));
    }
    own.check_other(&who, &agent)?;
    if ttl_s == Some(0) {
        return Err(Fault::invalid("ttl_s is zero"));
    }
    let scopes = scopes.map_or(Ok(role::loopback_scopes()), |words| read(&words))?;
    let secret = bearer::fresh().map_err(|_| {
        Fault::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the system has no randomness to give")
    })?;
    let verb = MintToken {
        digest: bearer::digest(secret.expose()),
        agent,
        scopes,
        ttl: ttl_s.map_or(TTL, Ttl::seconds_clamped),
    };
    let minted = submit_judged(&own, &who, verb).await?;
    let secret = String::from_utf8_lossy(secret.expose()).into_owned();
    Ok(Json(wire::Minted { secret, token: row(&minted.token) }))
}

async fn tokens(State(own): State<Own>, Caller(_who): Caller) -> Answered<Vec<wire::Token>> {
    let tokens = own.0.provost.view(GoodTokens).await.map_err(map::fault)?;
    Ok(Json(tokens.iter().map(|token| row(token)).collect()))
}

async fn revoke(
    State(own): State<Own>,
    Caller(who): Caller,
    Asked(body): Asked<wire::RevokeTokens>,
) -> Answered<Vec<wire::Token>> {
    let which = match body {
        wire::RevokeTokens { id: Some(id), agent: None } => WhichTokens::Id(id.into()),
        wire::RevokeTokens { id: None, agent: Some(agent) } => WhichTokens::Of(map::agent(&agent, "agent")?),
        _ => return Err(Fault::invalid("say either id or agent")),
    };
    let revoked = submit(&own, &who, RevokeTokens { which }).await?;
    Ok(Json(revoked.tokens.iter().map(|token| row(token)).collect()))
}

fn read(words: &[String]) -> Result<Scopes, Fault> {
    let scope = |word: &String| -> Result<Scope, Fault> {
        TOKEN_SCOPES.into_iter().find(|scope| scope.word() == word).ok_or_else(|| {
            let known = TOKEN_SCOPES.map(Scope::word).join(", ");
            Fault::invalid(format!("scopes: a token is good for {known}"))
        })
    };
    let scopes = words.iter().map(scope).collect::<Result<Vec<_>, _>>()?;
    if scopes.is_empty() { Err(Fault::invalid("scopes is empty")) } else { Ok(Scopes::of(&scopes)) }
}

fn row(token: &Token) -> wire::Token {
    wire::Token {
        id: token.id(),
        agent: token.agent.to_string(),
        scopes: token.scopes.iter().map(|scope| scope.word().into()).collect(),
        minted_at: token.minted_at.rfc3339(),
        minted_by: token.minted_by.to_string(),
        expires_at: token.expires_at.rfc3339(),
    }
}
