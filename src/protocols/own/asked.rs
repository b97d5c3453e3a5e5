//! What every handler takes from its request: who asks, and the members of its query or body. What is wrong with them is
//! answered in this door's own form, in the order in which a handler names them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Own;
use super::inside::Known;
use super::map::Fault;
use crate::auth::peer::PeerId;
use crate::domain::Principal;

/// The caller of a request, proved by its connection.
pub(super) struct Caller(pub(super) Principal);

impl FromRequestParts<Own> for Caller {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, own: &Own) -> Result<Self, Fault> {
        if let Some(Known(who)) = parts.extensions.get() {
            return Ok(Self(Principal::clone(who)));
        }
        let peer = parts.extensions.get::<Arc<PeerId>>().cloned();
        let peer =
            peer.ok_or_else(|| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "no peer"))?;
        own.caller(&parts.headers, &peer).await.map(Caller)
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
