//! Renews a log-in at its service, before a run that needs it: outside of every jail, and without a run's proxy.

use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode, client};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::auth_proxy::{connector, host_header, server_name};
use super::dial::{Dialer, Resolver};
use provost_base::limits::{EGRESS_MS_MAX, LOGIN_FILE_BYTES_MAX};
use provost_base::{Destination, Timestamp};
use provost_vault::{LoginError, LoginFile, OpenRenewal};

/// The most time for a service to renew a log-in. Other runs that need it wait meanwhile.
const TIME_MAX: Duration = Duration::from_millis(3 * EGRESS_MS_MAX);

/// Renews an expired log-in; one that is valid, or cannot be renewed, stays as it is.
///
/// # Errors
/// The reason why it was not renewed, without any token.
pub async fn renew(login: LoginFile, resolver: Resolver) -> Result<(), LoginError> {
    let begun = tokio::task::spawn_blocking(move || login.begin_renewal(SystemTime::now())).await;
    let Ok(begun) = begun else { return Ok(()) };
    let Some(open) = begun? else { return Ok(()) };
    let (status, answer) = match timeout(TIME_MAX, ask(&open, resolver)).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(why)) => return Err(why),
        Err(_) => return Err(open.unreachable("it does not answer in time")),
    };
    if status != StatusCode::OK {
        return Err(open.refused(status.as_u16()));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap_or(0));
    tokio::task::spawn_blocking(move || open.finish(&answer, now)).await.unwrap_or(Ok(()))
}

async fn ask(open: &OpenRenewal, resolver: Resolver) -> Result<(StatusCode, Bytes), LoginError> {
    let (to, body) = (open.endpoint(), open.request()?);
    let unreachable = |why: &dyn std::fmt::Display| open.unreachable(&why.to_string());
    let granted = Destination { authority: to.authority().clone(), at: None };
    let dialer = Dialer::new(&[granted], Default::default(), resolver);
    let stream = dialer.with_key(to.authority()).await.map_err(|why| unreachable(&why))?;
    let request = Request::post(to.base())
        .header(HOST, host_header(to).map_err(|why| unreachable(&why))?)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .header(CONNECTION, "close")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .map_err(|why| unreachable(&why))?;
    let answered = match to.tls() {
        false => send(stream, request).await,
        true => {
            let tls = connector(None).map_err(|why| unreachable(&why))?;
            // The service must prove itself before the first byte of the request is sent.
            let stream = tls.connect(server_name(&to.authority().host), stream).await;
            send(stream.map_err(|why| unreachable(&why))?, request).await
        }
    };
    answered.map_err(|why| unreachable(&why))
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let made = client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|err| err.to_string())?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|err| err.to_string())?;
    let status = answer.status();
    let most = usize::try_from(LOGIN_FILE_BYTES_MAX).unwrap_or(usize::MAX);
    let body = Limited::new(answer.into_body(), most).collect().await.map_err(|err| err.to_string())?;
    connection.abort();
    Ok((status, body.to_bytes()))
}
