//! The common part of both proxies: serving a connection, sending a request to a host, and the headers that are passed on.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::RunProxy;
use super::dial::Refused;
use provost_base::limits::{EGRESS_HEAD_BYTES_MAX, EGRESS_MS_MAX};

/// A body that passes through, or an answer of the daemon's own.
pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// The headers that concern a single connection and not the message (RFC 9110, 7.6.1), and those for proxies.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    TE,
    TRAILER,
    UPGRADE,
    hyper::header::TRANSFER_ENCODING,
    hyper::header::PROXY_AUTHENTICATE,
    hyper::header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
];

/// Serves requests on a worker's connection, within bounds.
pub(super) async fn serve<F>(
    stream: TcpStream,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let answer = std::sync::Arc::new(answer);
    let service = service_fn(move |request| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(answer(request).await) }
    });
    let served = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(EGRESS_MS_MAX))
        .max_buf_size(EGRESS_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(err) = served.await {
        tracing::debug!(%err, "a worker's connection to its proxy ended");
    }
}

/// Sends a request over a new connection, and returns the answer. Follows no redirect.
pub(super) async fn ask<S>(
    way: &std::sync::Arc<RunProxy>,
    stream: S,
    request: Request<Body>,
) -> Response<Body>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut maker = client::conn::http1::Builder::new();
    maker.max_buf_size(EGRESS_HEAD_BYTES_MAX);
    let (mut sender, connection) = match maker.handshake(TokioIo::new(stream)).await {
        Ok(made) => made,
        Err(err) => return says(StatusCode::BAD_GATEWAY, &format!("the host does not speak HTTP: {err}")),
    };
    way.spawn(async move {
        if let Err(err) = connection.await {
            tracing::debug!(%err, "a connection to a host ended");
        }
    });
    match sender.send_request(request).await {
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            strip(&mut head.headers);
            Response::from_parts(head, body.boxed())
        }
        Err(err) => says(StatusCode::BAD_GATEWAY, &format!("the host gave no answer: {err}")),
    }
}

/// Removes the headers that were meant for this proxy only.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Makes a body from a text.
pub(super) fn whole(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed()
}

/// Makes an answer of the daemon's own.
pub(super) fn says(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(whole(format!("provost: {why}\n")));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

/// Makes the answer for a host that could not be connected to.
pub(super) fn refuses(refused: &Refused) -> Response<Body> {
    let status = match refused {
        it if it.is_final() => StatusCode::FORBIDDEN,
        Refused::TooLate(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    says(status, &refused.to_string())
}
