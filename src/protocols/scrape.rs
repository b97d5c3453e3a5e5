//! The numbers for collectors and probes over HTTP: metrics, and whether the daemon is alive and ready.
//!
//! Callers prove nothing, and get only numbers and the state of the daemon as a whole. Promises: there are four paths, and no request
//! changes anything; a page in a browser cannot read them, under any name that resolves to this machine; connections, heads and silence
//! are bounded; and however many callers there are, the engine is queried at most four times a second. `/livez` queries neither engine
//! nor store.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Body as _;
use hyper::header::{ALLOW, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::loopback::{Answer, closing, dressed, only_host, whole};
use super::own::{NotReady, Own};
use provost_api::{EXPOSITION, exposition};
use provost_base::limits::{METRICS_FRESH_MS, METRICS_HEAD_MS_MAX, METRICS_WRITE_MS_MAX, READY_ASK_MS_MAX};
use provost_transport::accept::Guard;
use provost_transport::http::converse;
use provost_transport::write_timeout::WriteTimeout;

/// The phase of a daemon between its start and its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Its doors are not open yet.
    Starting,
    /// It accepts requests.
    Open,
    /// It finishes its work, and accepts no more.
    Draining,
}

/// The server of these paths. Clones share everything.
#[derive(Clone)]
pub struct Scrape(Arc<Inner>);

struct Inner {
    own: Own,
    phase: watch::Receiver<Phase>,
    /// The names by which it may be reached, beside addresses and `localhost`.
    names: Vec<String>,
    metrics: Fresh<Result<Arc<str>, &'static str>>,
    ready: Fresh<Option<NotReady>>,
}

/// An answer that is reused while it is fresh, and is made by one caller at a time.
struct Fresh<T> {
    turn: Semaphore,
    kept: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Fresh<T> {
    fn new() -> Self {
        Self { turn: Semaphore::new(1), kept: Mutex::new(None) }
    }

    fn kept(&self) -> Option<T> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: &Instant| at.elapsed() < Duration::from_millis(METRICS_FRESH_MS);
        kept.as_ref().filter(|(at, _)| is_fresh(at)).map(|(_, it)| it.clone())
    }

    async fn get(&self, make: impl Future<Output = T>) -> T {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        if let Some(kept) = self.kept() {
            return kept;
        }
        let made = make.await;
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), made.clone()));
        made
    }
}

impl Scrape {
    /// Makes a server for the daemon of this API, which is in this phase; callers may also use these names.
    pub fn new(own: Own, phase: watch::Receiver<Phase>, names: Vec<String>) -> Self {
        Self(Arc::new(Inner { own, phase, names, metrics: Fresh::new(), ready: Fresh::new() }))
    }

    /// Serves one connection until it ends.
    pub async fn serve<S>(self, stream: S, guard: Guard)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let busy = guard.clone();
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let (scrape, busy) = (self.clone(), busy.busy());
            async move {
                let (head, body) = request.into_parts();
                let answer = dressed(scrape.answer(&head).await);
                // No body is read.
                let answer = if body.is_end_stream() { answer } else { closing(answer) };
                Ok::<_, Infallible>(answer.map(|it| it.keeping(Some(busy))))
            }
        });
        let stream = WriteTimeout::new(stream, Duration::from_millis(METRICS_WRITE_MS_MAX));
        converse("metrics", stream, Duration::from_millis(METRICS_HEAD_MS_MAX), &guard, service).await;
    }

    async fn answer(&self, head: &Parts) -> Answer {
        if let Err(why) = self.check(head) {
            tracing::warn!(why, "a request for metrics or health is refused");
            return said(
                StatusCode::FORBIDDEN,
                "this is not for you: ask by an address, `localhost` or a name of `[metrics] names`",
            );
        }
        let path = head.uri.path();
        if !["/metrics", "/livez", "/readyz", "/healthz"].contains(&path) {
            return said(StatusCode::NOT_FOUND, "there are /metrics, /livez, /readyz and /healthz");
        }
        if !matches!(head.method, Method::GET | Method::HEAD) {
            let mut answer = said(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match path {
            "/metrics" => match self.metrics().await {
                Ok(text) => whole(StatusCode::OK, EXPOSITION, text.as_bytes().to_vec()),
                Err(why) => said(StatusCode::SERVICE_UNAVAILABLE, why),
            },
            "/livez" => state(StatusCode::OK, &json!({ "alive": true })),
            // `/healthz` covers both: a daemon that can answer is alive.
            _ => match self.not_ready().await {
                None => state(StatusCode::OK, &json!({ "alive": true, "ready": true })),
                Some(NotReady { reason, says }) => {
                    let why = json!({ "alive": true, "ready": false, "reason": reason, "says": says });
                    state(StatusCode::SERVICE_UNAVAILABLE, &why)
                }
            },
        }
    }

    async fn metrics(&self) -> Result<Arc<str>, &'static str> {
        let ask = async {
            match timeout(Duration::from_millis(READY_ASK_MS_MAX), self.0.own.told_metrics()).await {
                Ok(Some(metrics)) => Ok(exposition(&metrics).into()),
                _ => Err("the engine does not answer in time"),
            }
        };
        self.0.metrics.get(ask).await
    }

    async fn not_ready(&self) -> Option<NotReady> {
        let phase = *self.0.phase.borrow();
        match phase {
            Phase::Starting => Some(NotReady { reason: "starting", says: "its doors are not open yet" }),
            Phase::Draining => Some(NotReady { reason: "draining", says: "it ends, and takes nothing more" }),
            Phase::Open => self.0.ready.get(self.0.own.not_ready()).await,
        }
    }

    /// Checks that a request was meant for this server, and that no page has sent it. The owner of a name can let it resolve to this
    /// machine; an address has no owner.
    ///
    /// # Errors
    /// The cause, for the log.
    fn check(&self, head: &Parts) -> Result<(), &'static str> {
        let host = only_host(&head.headers)?;
        let is_known = |authority: &str| {
            let Ok(authority) = authority.parse::<Authority>() else { return false };
            let name = authority.host();
            let address = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
            address.parse::<IpAddr>().is_ok()
                || name.eq_ignore_ascii_case("localhost")
                || self.0.names.iter().any(|it| it.eq_ignore_ascii_case(name))
        };
        if !is_known(host) || head.uri.authority().is_some_and(|it| !is_known(it.as_str())) {
            return Err("the Host is a name that is not known");
        }
        if head.headers.contains_key(ORIGIN) {
            return Err("a page asks");
        }
        // A person may type the address.
        let is_near = |site: &HeaderValue| site == "none" || site == "same-origin";
        match head.headers.get_all("sec-fetch-site").iter().all(is_near) {
            true => Ok(()),
            false => Err("a page of another site asks"),
        }
    }
}

fn said(status: StatusCode, sentence: &str) -> Answer {
    whole(status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

fn state(status: StatusCode, body: &serde_json::Value) -> Answer {
    whole(status, "application/json", format!("{body}\n"))
}
