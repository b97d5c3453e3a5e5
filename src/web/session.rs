//! The readers of a page: a browser of this machine, one in which a passkey has signed in, or an invited one that sees states only.
//!
//! The secret of a session is in a cookie that no script reads, and that goes only to this host and not along with requests of
//! other pages. The secret is made after the passkey has signed, so no value that the browser had before becomes a session.

use std::future::Future;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use hyper::http::request::Parts;
use serde::{Deserialize, Serialize};

use super::words::{read, taken, text};
use super::{JSON, PageAddress, Web, WebError};
use provost_api::wire;
use provost_auth::caller::Caller;
use provost_auth::web_sessions::WebReader;
use provost_protocols::loopback::{Answer, Body, whole};
use provost_protocols::own::{InProcessApi, OpenedSession, Reading};

/// The path at which a browser asks who it is.
pub(super) const PATH: &str = "/session";

const BEGIN: &str = "/begin-session";
const OPEN: &str = "/open-session";
const REDEEM: &str = "/open-invitation";
const SIGN_OUT: &str = "/sign-out";

/// Returns whether a path is for signing in and out.
pub(super) fn is_about(path: &str) -> bool {
    [BEGIN, OPEN, REDEEM, SIGN_OUT].contains(&path)
}

/// The reader of a page.
pub(super) enum Reader {
    /// A process of this user, at this machine.
    Local,
    /// A person whose passkey has signed in.
    Person(Box<Reading>),
    /// A person who was invited.
    Invited(Box<Reading>),
}

/// The data that a reader may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sees {
    /// Everything that the page shows.
    All,
    /// States only, without texts.
    States,
}

/// Returns the error for a browser that must sign in first.
fn signed_out() -> WebError {
    let why = "this browser is not signed in, or not any more";
    let mut err = WebError::new(StatusCode::UNAUTHORIZED, "signed_out", why);
    err.body.hint = Some("sign in with a passkey at this page".into());
    err
}

/// Returns the error for an invited browser that asks for more than states.
pub(super) fn not_for_the_invited() -> WebError {
    let why = "who was invited to read sees states alone: no differences, no logs, no words, and nothing by a search";
    WebError::new(StatusCode::FORBIDDEN, "invited", why)
}

impl Reader {
    pub(super) fn sees(&self) -> Sees {
        match self {
            Self::Local | Self::Person(_) => Sees::All,
            Self::Invited(_) => Sees::States,
        }
    }

    /// Returns whether a signed request comes from a browser that is signed in.
    ///
    /// # Errors
    /// The browser was only invited.
    pub(super) fn may_sign(&self) -> Result<bool, WebError> {
        match self {
            Self::Local => Ok(false),
            Self::Person(_) => Ok(true),
            Self::Invited(_) => Err(not_for_the_invited()),
        }
    }

    fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Local => None,
            Self::Person(it) | Self::Invited(it) => Some(it),
        }
    }

    /// Returns whether the streams of this reader count for the limit.
    pub(super) fn is_signed_in(&self) -> bool {
        self.reading().is_some()
    }

    /// Returns the result of work, unless the session ends first.
    ///
    /// # Errors
    /// The session has ended.
    pub(super) async fn while_good<T>(&self, work: impl Future<Output = T>) -> Result<T, WebError> {
        let Some(reading) = self.reading() else { return Ok(work.await) };
        let mut ended = reading.ended.clone();
        tokio::select! {
            biased;
            _ = ended.changed() => Err(signed_out()),
            done = work => Ok(done),
        }
    }

    /// Returns once the session has ended.
    pub(super) async fn over(&self, api: &InProcessApi) {
        let Some(reading) = self.reading() else { return std::future::pending().await };
        let mut ended = reading.ended.clone();
        loop {
            let left = api.session_ends_in(&reading.session.digest).unwrap_or(Duration::ZERO);
            if left.is_zero() {
                return;
            }
            let end = tokio::time::Instant::now() + left;
            tokio::select! {
                _ = ended.changed() => return,
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }
}

/// The body of a browser that begins a sign-in: empty.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {}

/// The body with which an invited browser signs in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Redeem {
    invitation: String,
}

/// The answer that tells a browser who it is.
#[derive(Serialize)]
struct Who {
    /// Whether reading needs a session here.
    signs_in: bool,
    /// Returns whether a request declares JSON, once. Other pages cannot send that without a preflight, which is refused.
    reader: Option<&'static str>,
    /// The time at which the session ends if it is not used.
    ends_at: Option<String>,
    /// Whether a passkey is enrolled for pages of this host.
    has_passkey: bool,
    /// Whether a known passkey must sign for a new one.
    vouch: bool,
    /// The reason why no passkey can be enrolled now.
    why_not: Option<&'static str>,
    /// The id of the daemon that signatures are made for.
    daemon: String,
}

impl Web {
    /// Returns the name of the cookie. A browser sends cookies to all ports of a host, so each door of this machine has its own name.
    fn cookie_name(&self) -> String {
        match &self.place {
            PageAddress::Here { port, .. } => format!("__Host-provost-{port}"),
            PageAddress::Elsewhere { .. } => "__Host-provost".into(),
        }
    }

    async fn reading(&self, head: &Parts, at: &str) -> Option<Reader> {
        let secret = only_cookie(&head.headers, &self.cookie_name())?;
        let reading = Box::new(self.api.reading(&secret, at).await?);
        Some(match reading.session.reader {
            WebReader::Passkey { .. } => Reader::Person(reading),
            WebReader::Invited | WebReader::Invitation => Reader::Invited(reading),
        })
    }

    /// Returns the reader that sends a request to a page of this origin.
    ///
    /// # Errors
    /// The reader must sign in first.
    pub(super) async fn reader(&self, head: &Parts, at: &str) -> Result<Reader, WebError> {
        if !self.place.signs_in() {
            return Ok(Reader::Local);
        }
        self.reading(head, at).await.ok_or_else(signed_out)
    }

    /// Tells a browser who it is, without data of the repository.
    pub(super) async fn who_reads(
        &self,
        head: &Parts,
        caller: &Caller,
        at: &str,
    ) -> Result<Answer, WebError> {
        let known = self.client(caller, None)?.passkeys().await?;
        let host = at.split_once("://").map_or("", |(_, it)| it.split(':').next().unwrap_or_default());
        let good = || known.passkeys.iter().filter(|it| it.revoked_at.is_none());
        let why_not = match (&known.problem, &known.waits_until, known.of_root) {
            (Some(_), ..) | (_, Some(_), _) => Some("No passkey counts at the moment: provost passkey list."),
            (.., true) => Some("The list of passkeys is root's, and only root changes it."),
            _ => None,
        };
        let reader = match self.place.signs_in() {
            true => self.reading(head, at).await,
            false => None,
        };
        let who = Who {
            signs_in: self.place.signs_in(),
            reader: reader.as_ref().map(|it| match it.sees() {
                Sees::All => "passkey",
                Sees::States => "invited",
            }),
            ends_at: reader.as_ref().and_then(Reader::reading).map(|it| it.session.ends_at().rfc3339()),
            has_passkey: good().any(|it| it.rp_id == host),
            vouch: good().next().is_some(),
            why_not,
            daemon: known.daemon.clone(),
        };
        Ok(whole(StatusCode::OK, JSON, text(&who)?))
    }

    /// Handles the requests by which a browser signs in or out.
    pub(super) async fn about_session(
        &self,
        head: &Parts,
        at: &str,
        body: Body,
        process: Option<i32>,
    ) -> Result<Answer, WebError> {
        if head.method != hyper::Method::POST || !self.place.signs_in() {
            let why = "at this page no browser signs in: each of yours at this machine reads it";
            return Err(WebError::new(StatusCode::METHOD_NOT_ALLOWED, "no_session", why));
        }
        let sent = taken(head, body).await?;
        match head.uri.path() {
            BEGIN => {
                let Begin {} = read(&sent.bytes)?;
                let begun = self.api.begin_session(at, process).await?;
                Ok(whole(StatusCode::OK, JSON, text(&begun)?))
            }
            OPEN => {
                let signed: wire::SignedWord = read(&sent.bytes)?;
                let opened = self.api.open_session(at, signed, process).await?;
                self.leave_old(head, at).await;
                self.opened(&opened)
            }
            REDEEM => {
                let Redeem { invitation } = read(&sent.bytes)?;
                // A link from another site must not end the session of a signed-in person.
                if let Some(Reader::Person(_)) = self.reading(head, at).await {
                    let why = "a passkey is signed in here, which sees more than the invitation shows";
                    let mut err = WebError::new(StatusCode::CONFLICT, "signed_in", why);
                    err.body.hint = Some("sign out, or open the link in another browser".into());
                    return Err(err);
                }
                let opened = self.api.redeem_invitation(at, &invitation, process).await?;
                self.leave_old(head, at).await;
                self.opened(&opened)
            }
            _ => {
                let Begin {} = read(&sent.bytes)?;
                if let Some(reader) = self.reading(head, at).await
                    && let Some(reading) = reader.reading()
                {
                    self.api.sign_out(&reading.session.digest).await?;
                }
                self.with_cookie("", 0)
            }
        }
    }

    /// Ends the browser's earlier session: a browser has only one.
    async fn leave_old(&self, head: &Parts, at: &str) {
        let old = self.reading(head, at).await;
        let Some(reading) = old.as_ref().and_then(Reader::reading) else { return };
        if self.api.sign_out(&reading.session.digest).await.is_err() {
            tracing::warn!("the session that a browser had before is still in its file");
        }
    }

    fn opened(&self, opened: &OpenedSession) -> Result<Answer, WebError> {
        let session = &opened.session;
        let good_s = session.until.since_ms(session.began_at) / 1_000;
        self.with_cookie(&opened.secret, good_s)
    }

    fn with_cookie(&self, secret: &str, good_s: u64) -> Result<Answer, WebError> {
        let name = self.cookie_name();
        let cookie = format!("{name}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={good_s}");
        let mut answer = whole(StatusCode::OK, JSON, "{}");
        let cookie = HeaderValue::from_str(&cookie).map_err(|_| WebError::not_there())?;
        answer.headers_mut().insert(SET_COOKIE, cookie);
        Ok(answer)
    }
}

/// Returns the value of the cookie of this name. If there are two, another party has set one of them, and neither counts.
fn only_cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = lines.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    let mut found = pairs.filter(|(it, _)| *it == name).map(|(_, value)| value.to_owned());
    found.next().filter(|_| found.next().is_none())
}
