//! Reads the members of requests over HTTP: from the query of a `GET`, from the body of a `POST`.

use axum::Json;
use axum::extract::Query;
use axum::http::request::Parts;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use serde::de::DeserializeOwned;

use super::handle::Answered;
use super::map::OwnError;
use provost_api::wire::*;
use provost_api::{self as api, Which, for_each_endpoint};

macro_rules! read {
    ($($(#[$doc:meta])+ $method:ident $path:literal $name:ident $Kind:ident($($Asked:ident)?) -> $Answer:ty,
        tools $tools:tt, commands $commands:tt $(, $flag:ident)*;)+) => {
        /// Reads the members of a request.
        pub(super) fn read(which: Which, head: &Parts, body: &Bytes) -> Answered<api::Request> {
            match which { $(
                Which::$Kind => Ok(api::Request::$Kind(Box::new(read!(@members $method head body $($Asked)?)))),
            )+ }
        }
    };
    (@members $method:ident $head:ident $body:ident) => { () };
    (@members GET $head:ident $body:ident $Asked:ident) => { of_query::<$Asked>($head)? };
    (@members POST $head:ident $body:ident $Asked:ident) => { of_body::<$Asked>($head, $body)? };
}

for_each_endpoint!(read);

pub(super) fn of_query<T: DeserializeOwned>(head: &Parts) -> Answered<T> {
    let read = Query::<T>::try_from_uri(&head.uri);
    read.map(|Query(members)| members).map_err(|why| OwnError::new(why.status(), "invalid", why.body_text()))
}

fn of_body<T: DeserializeOwned>(head: &Parts, body: &Bytes) -> Answered<T> {
    if !is_json(&head.headers) {
        let message = "Expected request with `Content-Type: application/json`";
        return Err(OwnError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid", message));
    }
    let read = Json::<T>::from_bytes(body);
    read.map(|Json(members)| members).map_err(|why| OwnError::new(why.status(), "invalid", why.body_text()))
}

/// Returns whether a body's type is JSON: `application/json`, or a variant such as `application/merge-patch+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some(kind) = kind.strip_prefix("application/") else { return false };
    kind == "json" || kind.ends_with("+json")
}
