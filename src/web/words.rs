//! The requests of the page: challenges for passkeys, signed requests, and trials of other rules on past decisions.
//! The page passes them on to the own API unchanged; the signature is the proof, and the page's door adds no right.

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

use super::{JSON, Web, WebError};
use provost_api::Which;
use provost_auth::caller::Caller;
use provost_base::limits::WEB_BODY_BYTES_MAX;
use provost_client::Client;
use provost_protocols::loopback::{Answer, Body, whole};
use provost_transport::http::{Taken, Untaken};
use provost_view::Lead;

/// The endpoints of the own API to which the page passes requests on.
const PASSED_ON: [Which; 8] = [
    Which::WordChallenge,
    Which::SignedWord,
    Which::BeginPasskey,
    Which::FinishPasskey,
    Which::ConfirmPasskey,
    Which::HoldPasskey,
    Which::VouchPasskey,
    // Other rules are tried on recorded decisions: the rules come in the body, and nothing changes.
    Which::ReplayRules,
];

/// The endpoints for push services. The page over all repositories has none of them: a browser has one subscription per
/// page, which belongs to one daemon.
const PUSH: [Which; 3] = [Which::BeginPush, Which::OfferPush, Which::SnoozePush];

/// The endpoints that enrol a passkey.
const ENROLS: [Which; 4] =
    [Which::BeginPasskey, Which::FinishPasskey, Which::ConfirmPasskey, Which::HoldPasskey];

impl Web {
    /// Passes on a request of the page, and returns the answer of the own API.
    ///
    /// # Errors
    /// Another method or path, another kind of body, an unreadable body, and the errors of the own API.
    pub(super) async fn hand_on(
        &self,
        head: &Parts,
        caller: &Caller,
        body: Body,
        (at, proxy): (&str, Option<i32>),
    ) -> Result<Answer, WebError> {
        let which = Which::at(head.uri.path()).filter(|it| PASSED_ON.contains(it) || PUSH.contains(it));
        let which = which.filter(|it| head.method == it.method()).ok_or_else(nothing_taken)?;
        // A new passkey comes with a code, before its browser can sign in; all other requests need a sign-in where the page needs one.
        let is_signed_in = match ENROLS.contains(&which) {
            true => false,
            false => self.reader(head, at).await?.may_sign()?,
        };
        let sent = taken(head, body).await?;
        // A person's browser is no agent. Signed-in readers share one limit, apart from the others.
        let process = if is_signed_in { None } else { super::process_of(caller).or(proxy) };
        let client = self.client(&caller.clone().from_line(Arc::default()), process)?;
        Ok(whole(StatusCode::OK, JSON, said(&client, which, &sent.bytes, None).await?))
    }
}

fn nothing_taken() -> WebError {
    let message = "this address accepts only answers that a passkey has signed";
    let mut err = WebError::new(StatusCode::METHOD_NOT_ALLOWED, "only_signed", message);
    err.body.hint = Some("at a terminal: provost approve, provost deny".into());
    err
}

/// Reads a request to the page over all repositories, for a path below that of a repository. Returns the endpoint to which it goes,
/// and its body.
///
/// # Errors
/// Another method or path, another kind of body, and a body that cannot be received.
pub(super) async fn taken_over_all(head: &Parts, path: &str, body: Body) -> Result<(Which, Taken), WebError> {
    let which = Which::at(path).filter(|it| PASSED_ON.contains(it) && head.method == it.method());
    Ok((which.ok_or_else(nothing_taken)?, taken(head, body).await?))
}

/// Reads the body of a request that declares JSON.
///
/// # Errors
/// Another kind of body, and a body that cannot be received.
pub(super) async fn taken(head: &Parts, body: Body) -> Result<Taken, WebError> {
    if !is_json(&head.headers) {
        let message = "send it as application/json, which no form of another page can";
        return Err(WebError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message));
    }
    body.take().await.map_err(|why| untaken(&why))
}

/// Returns the own API's answer to a request; with a lead, in the form for the page over all repositories.
///
/// # Errors
/// The errors of the own API, a body that does not fit the endpoint, and an endpoint to which the page passes nothing on.
pub(super) async fn said(
    client: &Client,
    which: Which,
    sent: &[u8],
    lead: Option<&Lead>,
) -> Result<String, WebError> {
    match which {
        Which::WordChallenge => text(&client.word_challenge(&read(sent)?).await?),
        Which::SignedWord => text(&client.signed_word(&read(sent)?).await?),
        Which::BeginPasskey => text(&client.begin_passkey(&read(sent)?).await?),
        Which::FinishPasskey => text(&client.finish_passkey(&read(sent)?).await?),
        Which::ConfirmPasskey => text(&client.confirm_passkey(&read(sent)?).await?),
        Which::BeginPush => {
            read::<()>(sent)?;
            text(&client.begin_push().await?)
        }
        Which::SnoozePush => text(&client.snooze_push(&read(sent)?).await?),
        Which::OfferPush => text(&client.offer_push(&read(sent)?).await?),
        Which::HoldPasskey => text(&client.hold_passkey(&read(sent)?).await?),
        Which::VouchPasskey => text(&client.vouch_passkey(&read(sent)?).await?),
        Which::ReplayRules => {
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

/// Returns whether a request declares JSON, once. Other pages cannot send that without a preflight, which is refused.
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
