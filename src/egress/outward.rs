//! A request of the daemon's own to an address of its configuration, such as a notice, outside of every jail.
//!
//! A name leads to public addresses only, unless the configuration names its address, and never to a door of this daemon. The host must
//! prove itself before the first byte is sent. No redirect is followed; the time, the head and the body of the answer are bounded.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, client};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::auth_proxy::{connector, server_name};
use super::dial::{Dialer, Resolver};
use provost_base::limits::{NOTICE_ANSWER_BYTES_MAX, NOTICE_ATTEMPT_MS_MAX};
use provost_base::{Destination, WebAddress, clipped, visible};

/// The largest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// How long to wait for the beginning of an answer's body.
const BODY_TIME_MAX: Duration = Duration::from_secs(2);

/// A request with its destination. Has no `Debug`: headers and the address may be secrets.
pub struct Outward {
    /// The destination.
    pub to: WebAddress,
    /// The address to connect to, instead of the one that the name leads to.
    pub at: Option<IpAddr>,
    /// The authority of the host's certificate, as PEM, if it is not a public one.
    pub authority: Option<String>,
    /// Headers, by name in lower case.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The host's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutwardAnswer {
    /// The status.
    pub status: u16,
    /// How long it wants no further request, in seconds, if it says so.
    pub retry_after_s: Option<u64>,
    /// The beginning of its text, without hidden characters.
    pub text: String,
}

/// Sends the request, once.
///
/// # Errors
/// The reason why there is no answer; of the address, it only names the host.
pub async fn post(order: Outward, resolver: Resolver) -> Result<OutwardAnswer, String> {
    let most = Duration::from_millis(NOTICE_ATTEMPT_MS_MAX);
    let late = format!("{} did not answer within {} s", order.to.authority(), most.as_secs());
    timeout(most, exchange(order, resolver)).await.unwrap_or(Err(late))
}

async fn exchange(order: Outward, resolver: Resolver) -> Result<OutwardAnswer, String> {
    let Outward { to, at, authority, headers, body } = order;
    let granted = Destination { authority: to.authority().clone(), at };
    let dialer = Dialer::new(&[granted], Default::default(), resolver);
    let mut request = Request::post(to.target())
        .header(HOST, to.host_header())
        .header(USER_AGENT, concat!("provost/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close");
    for (name, value) in headers {
        request = request.header(name.as_ref(), value);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|_| "a header has characters that no header may have".to_owned())?;
    let stream = dialer.with_key(to.authority()).await.map_err(|why| why.to_string())?;
    if !to.tls() {
        return send(stream, request).await;
    }
    let tls = connector(authority.as_deref())?;
    let proved = tls.connect(server_name(&to.authority().host), stream).await;
    let stream = proved.map_err(|err| format!("{} has not proved who it is: {err}", to.authority()))?;
    send(stream, request).await
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<OutwardAnswer, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |err: hyper::Error| format!("the connection has ended without an answer: {err}");
    let made = client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await;
    let (mut sender, connection) = made.map_err(broken)?;
    // The connection ends with this request, also if the request is cancelled.
    let mut connection = tokio::task::JoinSet::from_iter([connection]);
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status().as_u16();
    let retry_after_s =
        answer.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.trim().parse().ok());
    let mut kept = Vec::new();
    // The status is enough: a body that breaks off, or does not end, is no failure.
    let _ended = timeout(BODY_TIME_MAX, beginning(answer, &mut kept)).await;
    connection.abort_all();
    let text = clipped(&visible(String::from_utf8_lossy(&kept).trim()), NOTICE_ANSWER_BYTES_MAX);
    Ok(OutwardAnswer { status, retry_after_s, text })
}

/// Reads only the beginning of a body.
async fn beginning(answer: Response<Incoming>, kept: &mut Vec<u8>) {
    let mut body = answer.into_body();
    while kept.len() < NOTICE_ANSWER_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            kept.extend_from_slice(&data[..data.len().min(NOTICE_ANSWER_BYTES_MAX - kept.len())]);
        }
    }
}
