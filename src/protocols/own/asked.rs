//! What every handler takes from its request: who asks, and the members of its query or body. What is wrong with them is
//! answered in this door's own form, in the order in which a handler names them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::inside::Known;
use super::map::Fault;
use super::{Own, not_ones_own};
use crate::auth::peer::PeerId;
use crate::domain::Principal;
use crate::protocols::proven::while_proven;

/// The caller of a request, whom [`prove`] has found out.
pub(super) struct Caller(pub(super) Principal);

/// Routes whose own work may end the proof of whoever asks for it.
const CHANGE_PROOF: [&str; 2] = ["/mint-token", "/revoke-tokens"];

/// Finds out who asks, before any handler runs and whichever it is: there is no route without it. Whoever another door of
/// this process has let in is asked for their name once more, since it may have become somebody's meanwhile; and so is
/// whoever has waited, before the answer is given, and now and then while they wait.
pub(super) async fn prove(State(own): State<Own>, mut request: Request, next: Next) -> Response {
    let who = match request.extensions().get::<Known>() {
        // A door of this process gives back what a session has taken whose host has lost its name.
        Some(known) if request.uri().path() == "/end-session" => Ok(known.clone()),
        Some(known) => own.still(known).map(|()| known.clone()),
        None => match request.extensions().get::<Arc<PeerId>>().cloned() {
            Some(peer) => own.caller(request.headers(), &peer).await,
            None => Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "no peer")),
        },
    };
    match who {
        Ok(who) => {
            request.extensions_mut().insert(Proven(Principal::clone(&who.who)));
            let changes_proof = CHANGE_PROOF.contains(&request.uri().path());
            let answer = next.run(request);
            if changes_proof {
                return answer.await;
            }
            while_proven(answer, || own.still(&who)).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(fault) => fault.into_response(),
    }
}

impl Own {
    fn still(&self, known: &Known) -> Result<(), Fault> {
        let still = self.0.names.still(&known.who, known.token.as_ref());
        still.map_err(|why| not_ones_own(why, known.who.agent(), None))
    }
}

/// Who asks.
#[derive(Clone)]
struct Proven(Principal);

impl FromRequestParts<Own> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _own: &Own) -> Result<Self, Fault> {
        let who = parts.extensions.get().map(|Proven(who)| Self(who.clone()));
        who.ok_or_else(|| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "nobody has asked"))
    }
}

/// The members of a query.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Own> for Query<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, own: &Own) -> Result<Self, Fault> {
        let read: Result<_, QueryRejection> = axum::extract::Query::from_request_parts(parts, own).await;
        read.map(|axum::extract::Query(members)| Self(members))
            .map_err(|why| Fault::new(why.status(), "invalid", why.body_text()))
    }
}

/// The members of a body.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Own> for Asked<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, own: &Own) -> Result<Self, Fault> {
        let read: Result<_, JsonRejection> = Json::from_request(request, own).await;
        read.map(|Json(members)| Self(members))
            .map_err(|why| Fault::new(why.status(), "invalid", why.body_text()))
    }
}
