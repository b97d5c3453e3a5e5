//! What the page sends: words for passkeys to sign, what they have signed, and rules that are asked what they would have decided. All of
//! it is handed on to the own API as it is; the signature is the proof, and the page's door adds no right.

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
use provost_view::Lead;

/// The paths at which something is taken: those of the own API.
const PATHS: [&str; 8] = [
    "/word-challenge",
    "/signed-word",
    "/begin-passkey",
    "/finish-passkey",
    "/confirm-passkey",
    "/hold-passkey",
    "/vouch-passkey",
    REPLAYS,
];

/// At which other rules are asked about what is on record: they come as a body, and nothing changes.
const REPLAYS: &str = "/replay-rules";

/// Those of push services. The page over all repositories has none of them: a browser has one subscription for a page, which is of one
/// daemon.
const PUSH_PATHS: [&str; 3] = ["/begin-push", "/offer-push", "/snooze-push"];

/// Those by which a passkey is enrolled.
const ENROLS: [&str; 4] = ["/begin-passkey", "/finish-passkey", "/confirm-passkey", "/hold-passkey"];

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
        (at, proxy): (&str, Option<i32>),
    ) -> Result<Answer, WebError> {
        let path = head.uri.path();
        if head.method != Method::POST || !(PATHS.contains(&path) || PUSH_PATHS.contains(&path)) {
            return Err(nothing_taken());
        }
        // A new passkey comes with a code, before its browser can sign in; everything else is for those who have.
        let is_signed_in = match ENROLS.contains(&path) {
            true => false,
            false => self.reader(head, at).await?.may_sign()?,
        };
        let sent = taken(head, body).await?;
        // The person's browser is no agent. Those who are signed in count together for the limits, and apart from those who are not.
        let process = if is_signed_in { None } else { super::process_of(caller).or(proxy) };
        let client = self.client(&caller.clone().from_line(Arc::default()), process)?;
        Ok(whole(StatusCode::OK, JSON, said(&client, path, &sent.bytes, None).await?))
    }
}

fn nothing_taken() -> WebError {
    let message = "at this address nothing is taken; an answer is a word that a passkey has signed";
    let mut err = WebError::new(StatusCode::METHOD_NOT_ALLOWED, "only_signed", message);
    err.body.hint = Some("at a terminal: provost approve, provost deny".into());
    err
}

/// What was sent to the page over all repositories for one of the paths below that of a repository.
///
/// # Errors
/// Another method or path, another kind of body, and one that cannot be had.
pub(super) async fn taken_over_all(head: &Parts, path: &str, body: Body) -> Result<Taken, WebError> {
    if head.method != Method::POST || !PATHS.contains(&path) {
        return Err(nothing_taken());
    }
    taken(head, body).await
}

/// The body of a request that says that it is JSON.
///
/// # Errors
/// Another kind of body, and one that cannot be had.
pub(super) async fn taken(head: &Parts, body: Body) -> Result<Taken, WebError> {
    if !is_json(&head.headers) {
        let message = "what is sent here says that it is application/json, which no form of another page can";
        return Err(WebError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    body.take().await.map_err(|why| untaken(&why))
}

/// What the own API says to what was sent; with a lead, as the page over all repositories shows it.
///
/// # Errors
/// What it says instead of an answer, and a body that is none of the path's.
pub(super) async fn said(
    client: &Client,
    path: &str,
    sent: &[u8],
    lead: Option<&Lead>,
) -> Result<String, WebError> {
    match path {
        "/word-challenge" => text(&client.word_challenge(&read(sent)?).await?),
        "/signed-word" => text(&client.signed_word(&read(sent)?).await?),
        "/begin-passkey" => text(&client.begin_passkey(&read(sent)?).await?),
        "/finish-passkey" => text(&client.finish_passkey(&read(sent)?).await?),
        "/confirm-passkey" => text(&client.confirm_passkey(&read(sent)?).await?),
        "/begin-push" => {
            read::<()>(sent)?;
            text(&client.begin_push().await?)
        }
        "/snooze-push" => text(&client.snooze_push(&read(sent)?).await?),
        "/offer-push" => text(&client.offer_push(&read(sent)?).await?),
        "/hold-passkey" => text(&client.hold_passkey(&read(sent)?).await?),
        "/vouch-passkey" => text(&client.vouch_passkey(&read(sent)?).await?),
        REPLAYS => {
            let shown = provost_view::replayed(&client.replay_rules(&read(sent)?).await?);
            text(&match lead {
                Some(lead) => lead.of(shown),
                None => shown,
            })
        }
        _ => Err(WebError::not_there()),
    }
}

pub(super) fn read<T: DeserializeOwned>(sent: &[u8]) -> Result<T, WebError> {
    serde_json::from_slice(sent).map_err(|err| {
        let message = format!("what was sent is not what this address takes: {err}");
        WebError::new(StatusCode::BAD_REQUEST, "invalid", message)
    })
}

pub(super) fn text(answer: &impl Serialize) -> Result<String, WebError> {
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
