//! The proxy inside of a jail: tunnels (`CONNECT`), and plain requests that name their host.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::OwnedSemaphorePermit;

use super::dial::Dialer;
use super::http::{self, Body, refuses, says, strip};
use super::token::{Token, USER};
use super::{Caller, RunProxy};
use provost_base::{Authority, BadAuthority};

/// The port of a request without one.
const HTTP_PORT: u16 = 80;

/// The proxy of a run.
pub(super) struct Proxy {
    token: Token,
    dialer: Arc<Dialer>,
}

/// The parts that the requests of a connection share.
struct Shared {
    proxy: Arc<Proxy>,
    way: Arc<RunProxy>,
    /// The permit, which a tunnel keeps, since it outlives the request.
    place: Arc<OwnedSemaphorePermit>,
}

/// Serves a connection of the worker.
pub(super) async fn serve(caller: Caller, proxy: Arc<Proxy>) {
    let Caller { stream, place, way } = caller;
    let shared = Arc::new(Shared { proxy, way, place });
    http::serve(stream, move |request| answer(shared.clone(), request)).await;
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    if !shared.proxy.knows(&request) {
        let mut response =
            says(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "the proxy of a run takes that run's token only");
        response
            .headers_mut()
            .insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"provost\""));
        return response;
    }
    if request.method() == Method::CONNECT {
        tunnel(&shared, request).await
    } else {
        plain(&shared, request).await
    }
}

impl Proxy {
    pub(super) fn new(token: Token, dialer: Arc<Dialer>) -> Self {
        Self { token, dialer }
    }

    fn knows(&self, request: &Request<Incoming>) -> bool {
        let given = request.headers().get(PROXY_AUTHORIZATION).map(HeaderValue::as_bytes);
        let encoded = given.and_then(|it| it.split_at_checked(6));
        let encoded = encoded.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Basic "));
        let Some(plain) = encoded.and_then(|(_, it)| STANDARD.decode(it.trim_ascii()).ok()) else {
            return false;
        };
        let password = plain.strip_prefix(USER.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
        password.is_some_and(|guess| self.token.is(guess))
    }

    /// Parses a host into its one spelling; an invalid one is recorded, and the error is the answer.
    fn parse(&self, uri: &Uri, default: Option<u16>) -> Result<Authority, BadAuthority> {
        let text = uri.authority().map(hyper::http::uri::Authority::as_str).unwrap_or_default();
        let parsed = match default {
            Some(port) => Authority::parse_or(text, port),
            None => Authority::parse(text),
        };
        parsed.inspect_err(|_| self.dialer.ledger().refuse(text))
    }
}

fn misspelt(why: BadAuthority) -> Response<Body> {
    says(StatusCode::FORBIDDEN, &format!("the host {why}"))
}

/// Answers `CONNECT host:port`: copies bytes both ways, without reading them.
async fn tunnel(shared: &Arc<Shared>, mut request: Request<Incoming>) -> Response<Body> {
    let to = match shared.proxy.parse(request.uri(), None) {
        Ok(to) => to,
        Err(why) => return misspelt(why),
    };
    let mut outside = match shared.proxy.dialer.host(&to).await {
        Ok(outside) => outside,
        Err(refused) => return refuses(&refused),
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let place = shared.place.clone();
    shared.way.spawn(async move {
        let _held = place;
        if let Ok(inside) = upgraded.await {
            // A premature end concerns only the two programs.
            let _ended = copy_bidirectional(&mut TokioIo::new(inside), &mut outside).await;
        }
    });
    Response::new(Empty::new().map_err(|never| match never {}).boxed())
}

/// Answers a request for `http://host/...`.
async fn plain(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    match head.uri.scheme_str() {
        Some("http") => {}
        Some("https") => return says(StatusCode::BAD_REQUEST, "https goes through CONNECT"),
        _ => return says(StatusCode::BAD_REQUEST, "this is a proxy; a request names its host"),
    }
    let to = match shared.proxy.parse(&head.uri, Some(HTTP_PORT)) {
        Ok(to) => to,
        Err(why) => return misspelt(why),
    };
    let outside = match shared.proxy.dialer.host(&to).await {
        Ok(outside) => outside,
        Err(refused) => return refuses(&refused),
    };
    strip(&mut head.headers);
    let host = if to.port == HTTP_PORT { to.host.to_string() } else { to.to_string() };
    // The header names the checked host, and not the worker's text.
    match (HeaderValue::try_from(host), path_of(&head.uri)) {
        (Ok(host), Ok(path)) => {
            head.headers.insert(HOST, host);
            head.uri = path;
            head.version = Version::HTTP_11;
        }
        _ => return says(StatusCode::BAD_REQUEST, "the request cannot be passed on"),
    }
    http::ask(&shared.way, outside, Request::from_parts(head, body.boxed())).await
}

/// Returns only path and query, in the form for the host itself.
fn path_of(uri: &Uri) -> Result<Uri, hyper::http::uri::InvalidUri> {
    uri.path_and_query().map_or("/", |it| it.as_str()).parse()
}
