//! HTTP around the messages: one path, one method, bounded bodies. wit, 3.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::Wit;
use super::map::WitError;
use super::request::WitRequest;
use super::wire::{BadEnvelope, Envelope, response};
use provost_base::limits::{WIT_BODIES_BYTES_MAX, WIT_BODY_BYTES_MAX, WIT_BODY_MS_MAX, WIT_SMALL_BODY_BYTES};
use provost_transport::http::{BodyLimits, Taken, Untaken};

/// The bounds of bodies at this door.
pub(super) const BODIES: BodyLimits = BodyLimits {
    most: WIT_BODY_BYTES_MAX,
    total: WIT_BODIES_BYTES_MAX,
    small: WIT_SMALL_BODY_BYTES,
    time: Duration::from_millis(WIT_BODY_MS_MAX),
};

/// Answers a request. Errors of methods are answers like others; only an invalid request gets another status.
pub(super) async fn serve(wit: Wit, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        return Ok(empty(StatusCode::BAD_REQUEST));
    }
    if !is_rpc(request.uri().path()) {
        let mut answer = Response::new(Full::from("404 Not Found"));
        *answer.status_mut() = StatusCode::NOT_FOUND;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
        return Ok(answer);
    }
    if request.method() != Method::POST {
        let fault = WitError::invalid(&json!({ "message": "requests are sent with POST" }));
        let mut answer = in_json(StatusCode::METHOD_NOT_ALLOWED, response(None, &Err(fault.0)));
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Ok(answer);
    }
    Ok(match wit.0.room.take(request.into_body()).await {
        Ok(taken) => {
            let (status, text) = respond(&wit, taken).await;
            in_json(status, text)
        }
        Err(Untaken::TooLarge) => closing(empty(StatusCode::PAYLOAD_TOO_LARGE)),
        Err(Untaken::TooSlow) => closing(empty(StatusCode::REQUEST_TIMEOUT)),
        Err(Untaken::BrokeOff) => closing(empty(StatusCode::BAD_REQUEST)),
    })
}

/// Returns the answer for a peer that could not be identified, or has too many connections: it should try again.
pub(super) fn turned_away(cause: &str) -> Result<Response<Full<Bytes>>, Infallible> {
    let fault = WitError::method("BUSY", &json!({ "message": format!("{cause}; try again") }));
    Ok(closing(in_json(StatusCode::SERVICE_UNAVAILABLE, response(None, &Err(fault.0)))))
}

async fn respond(wit: &Wit, taken: Taken) -> (StatusCode, String) {
    let Taken { bytes, share } = taken;
    let mut share = Some(share);
    let checkouts = wit.checkouts();
    let read = Envelope::parse(&bytes).map(|envelope| {
        let asked = WitRequest::read(&envelope, &checkouts);
        (envelope.id, asked)
    });
    drop(bytes);
    let bad = |fault: WitError| (StatusCode::BAD_REQUEST, response(None, &Err(fault.0)));
    match read {
        Ok((id, asked)) => {
            // A request that waits for a lock keeps no other request from being answered.
            share.take_if(|_| matches!(asked, Ok(WitRequest::Acquire(..))));
            let outcome = match asked {
                Ok(asked) => wit.perform(asked).await,
                Err(fault) => Err(fault),
            };
            (StatusCode::OK, response(Some(&id), &outcome.map_err(|fault| fault.0)))
        }
        Err(BadEnvelope::NotJson) => bad(WitError::not_json()),
        Err(BadEnvelope::NotARequest) => bad(WitError::not_a_request()),
        Err(BadEnvelope::OtherVersion(received)) => bad(WitError::other_version(received.as_deref())),
    }
}

fn in_json(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

/// Ends the connection: the rest of the body is not read, so no request can follow it.
fn closing(mut answer: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Returns whether a path is `/rpc`, plain or percent-encoded.
fn is_rpc(path: &str) -> bool {
    percent_decode_str(path).eq("/rpc".bytes())
}
