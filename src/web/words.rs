//! What the page sends: words for passkeys to sign, and what they have signed. All of it is handed on to the own API as it is;
//! the signature is the proof, and the page's door adds no right.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

use super::{JSON, Web, WebError};
use provost_auth::caller::Caller;
use provost_base::limits::WEB_BODY_BYTES_MAX;
use provost_client::Client;
use provost_protocols::loopback::{Answer, Body, whole};
use provost_transport::http::{Taken, Untaken};

/// The paths at which something is taken: those of the own API.
const PATHS: [&str; 5] =
    ["/word-challenge", "/signed-word", "/begin-passkey", "/finish-passkey", "/confirm-passkey"];

impl Web {
    /// Hands on what the page has sent, and answers with what the own API says.
    ///
    /// # Errors
    /// Another method or path, another kind of body, one that cannot be read, and what the own API says.
    pub(super) async fn hand_on(
        &self,
        head: &Parts,
        caller: &Caller,
        body: Body,
    ) -> Result<Answer, WebError> {
        let path = head.uri.path();
        let taken = taken(head, path, body).await?;
        // Its process counts for the limits, and gives itself no name: the person's browser is no agent.
        let process = caller.began_at().and_then(|it| i32::try_from(it.pid).ok());
        let client = self.client(&caller.clone().from_line(Arc::default()), process)?;
        Ok(whole(StatusCode::OK, JSON, said(&client, path, &taken.bytes).await?))
    }
}

/// What was sent for one of the paths, if it is for one and is JSON.
///
/// # Errors
/// Another method or path, another kind of body, and one that cannot be read.
pub(super) async fn taken(head: &Parts, path: &str, body: Body) -> Result<Taken, WebError> {
    if head.method != Method::POST || !PATHS.contains(&path) {
        let message = "at this address nothing is taken; an answer is a word that a passkey has signed";
        let mut err = WebError::new(StatusCode::METHOD_NOT_ALLOWED, "only_signed", message);
        err.body.hint = Some("at a terminal: provost approve, provost deny".into());
        return Err(err);
    }
    if !is_json(&head.headers) {
        let message = "what is sent here says that it is application/json, which no form of another page can";
        return Err(WebError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    body.take().await.map_err(|why| untaken(&why))
}

/// What the own API says to what was sent.
///
/// # Errors
/// What it says instead of an answer, and a body that is none of the path's.
pub(super) async fn said(client: &Client, path: &str, sent: &[u8]) -> Result<String, WebError> {
    match path {
        "/word-challenge" => text(&client.word_challenge(&read(sent)?).await?),
        "/signed-word" => text(&client.signed_word(&read(sent)?).await?),
        "/begin-passkey" => text(&client.begin_passkey(&read(sent)?).await?),
        "/finish-passkey" => text(&client.finish_passkey(&read(sent)?).await?),
        "/confirm-passkey" => text(&client.confirm_passkey(&read(sent)?).await?),
        _ => Err(WebError::not_there()),
    }
}

fn read<T: DeserializeOwned>(sent: &[u8]) -> Result<T, WebError> {
    serde_json::from_slice(sent).map_err(|err| {
        let message = format!("what was sent is not what this address takes: {err}");
        WebError::new(StatusCode::BAD_REQUEST, "invalid", message)
    })
}

fn text(answer: &impl Serialize) -> Result<String, WebError> {
    serde_json::to_string(answer).map_err(|err| {
        let message = format!("the answer cannot be written: {err}");
        WebError::new(StatusCode::INTERNAL_SERVER_ERROR, "unavailable", message)
    })
}

/// Whether a body says once that it is JSON. Other pages cannot send such a one without asking first, which is refused.
fn is_json(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let kind = kinds.next().map(HeaderValue::as_bytes).unwrap_or_default();
    let kind = kind.split(|it| *it == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(JSON.as_bytes()) && kinds.next().is_none()
}

fn untaken(why: &Untaken) -> WebError {
    let (status, message) = match why {
        Untaken::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("what was sent is larger than {} KiB", WEB_BODY_BYTES_MAX >> 10),
        ),
        Untaken::TooSlow => (StatusCode::REQUEST_TIMEOUT, "what was sent did not come in time".into()),
        Untaken::BrokeOff => (StatusCode::BAD_REQUEST, "what was sent broke off".into()),
    };
    WebError::new(status, "invalid", message)
}
