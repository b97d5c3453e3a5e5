//! Reads requests over HTTP within bounds, and answers them in this door's form.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::Own;
use super::handle::Answered;
use super::map::OwnError;
use super::read::read;
use super::ties::Tied;
use provost_api::{self as api, Which, wire};
use provost_auth::peer::PeerId;
use provost_base::limits::{FRAME_LEN_MAX, OWN_BODY_MS_MAX, OWN_FILES_BYTES_MAX};
use provost_transport::accept::Guard;

/// Answers a peer's request, in this version of the API.
pub(super) async fn answer(
    own: Own,
    peer: Arc<PeerId>,
    guard: Guard,
    request: Request<Incoming>,
) -> Response<Body> {
    let allowed = allowed(request.uri().path());
    let answer = match check_version(request.headers()) {
        Ok(()) => answered(&own, peer, &guard, request).await,
        Err(fault) => Err(fault),
    };
    let mut answer = versioned(answer.unwrap_or_else(|fault| faulty(&fault)));
    if let Some(age_ms) = own.age_ms().filter(|_| answer.status() == StatusCode::OK) {
        answer.headers_mut().insert(wire::AGE_HEADER, age_ms.into());
    }
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    answer
}

/// Returns the methods of a path.
fn allowed(path: &str) -> &'static str {
    match Which::at(path).map(Which::method) {
        Some(Method::POST) => "POST",
        _ => "GET, HEAD",
    }
}

/// Adds the version of the API to an answer. Without it, a client takes the daemon for one of another version.
pub(super) fn versioned(mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert(wire::VERSION_HEADER, HeaderValue::from_static(wire::API_VERSION));
    answer
}

/// Refuses a request of another version of this API, with a sentence; a browser's request never gets this far.
fn check_version(headers: &HeaderMap) -> Result<(), OwnError> {
    match headers.get(wire::VERSION_HEADER) {
        Some(theirs) if theirs == wire::API_VERSION => Ok(()),
        Some(_) => {
            let message = "this daemon speaks another version";
            Err(OwnError::new(StatusCode::UPGRADE_REQUIRED, "version", message)
                .hint("client and daemon differ: `provost down`, then `provost up`"))
        }
        None => Err(OwnError::invalid("the header x-provost-api is missing").hint("send x-provost-api: 1")),
    }
}

async fn answered(
    own: &Own,
    peer: Arc<PeerId>,
    guard: &Guard,
    request: Request<Incoming>,
) -> Answered<Response<Body>> {
    let (head, body) = request.into_parts();
    let known = own.caller(&head.headers, &peer).await?;
    let which = Which::at(head.uri.path());
    own.check_page(&known.who, which)?;
    if head.uri.path() == wire::EVENT_STREAM {
        return own.stream(known, guard, &head).await;
    }
    let taken = async {
        let bytes = whole(which, body).await?;
        let mut request = read(wanted(which, &head.method)?, &head, &bytes)?;
        if let api::Request::Delegate(asked) = &mut request {
            let header = head.headers.get("traceparent").and_then(|it| it.to_str().ok());
            asked.traceparent = asked.traceparent.take().or_else(|| header.map(str::to_owned));
        }
        Ok(request)
    };
    // A query takes nothing that could end with its process.
    let tied =
        if head.method == Method::POST { Tied::of_process(&head.headers) } else { Tied::of_session(None) };
    let reply = own.respond(&known, (tied, Some(peer)), which, taken).await?;
    let json = reply.to_json().map_err(|why| {
        OwnError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            format!("the answer cannot be written: {why}"),
        )
    })?;
    Ok(whole_answer(StatusCode::OK, json))
}

/// Reads the whole body before any work is done, within bounds of size and time.
async fn whole(which: Option<Which>, body: Incoming) -> Answered<Bytes> {
    let large = which.is_some_and(|it| it.row().carries_files);
    let most = if large { OWN_FILES_BYTES_MAX } else { FRAME_LEN_MAX };
    let read = axum::body::to_bytes(Body::new(body), most);
    match tokio::time::timeout(Duration::from_millis(OWN_BODY_MS_MAX), read).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body is larger than {} MiB, or broke off", most >> 20);
            Err(OwnError::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid", message))
        }
        Err(_) => Err(OwnError::new(StatusCode::REQUEST_TIMEOUT, "invalid", "the body did not come in time")),
    }
}

/// Returns the endpoint at the path of a request, if the method is the endpoint's.
fn wanted(which: Option<Which>, method: &Method) -> Answered<Which> {
    let which =
        which.ok_or_else(|| OwnError::new(StatusCode::NOT_FOUND, "no_such_path", "there is no such path"))?;
    let asked = if *method == Method::HEAD { &Method::GET } else { method };
    if which.method() == *asked {
        return Ok(which);
    }
    let message = "questions are GET, verbs are POST";
    Err(OwnError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message))
}

/// Encodes an error as an answer.
pub(super) fn faulty(fault: &OwnError) -> Response<Body> {
    let json = serde_json::to_vec(&fault.body).unwrap_or_default();
    whole_answer(fault.status, json)
}

fn whole_answer(status: StatusCode, json: Vec<u8>) -> Response<Body> {
    let mut answer = Response::new(Body::from(json));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
