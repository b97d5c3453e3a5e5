//! Signs browsers in to the page with a passkey, and out again.
//!
//! ```text
//!   begin (origin) -> a secret is made, and a word over its digest -> a passkey of that host signs -> the secret is handed out, once
//! ```
//! The word is a verb, `open-web-session`, so it is recorded with its signature and counts once. A session can only
//! read: each answer is signed by itself.

use std::sync::PoisonError;

use hyper::StatusCode;
use serde_json::json;

use super::handle::{Answered, Call, Handles};
use super::hub::Asker;
use super::map::{self, OwnError};
use super::pending::{Kind, NoncePurpose, Opening, random};
use super::words::{Brought, bytes, refused};
use super::{InProcessApi, Own, Provost};
use provost_api::{endpoints, wire};
use provost_auth::role;
use provost_auth::web_sessions::{GoodSession, WebReader, WebSession, WebSessions, digest};
use provost_base::limits::{WEB_INVITE_S, WEB_SECRET_BYTES, WEB_SESSION_S_MAX, WEB_SESSIONS_MAX};
use provost_base::{Digest, Json, Ttl};
use provost_domain::command::{Record, SayWord};
use provost_domain::view::AllPasskeys;
use provost_domain::{Principal, Refusal, Scope};
use provost_passkey::{Refused, VerbWord, Word, bytes_of, text_of};

/// The verb that a passkey signs in order to sign in.
const OPEN: &str = "open-web-session";

/// The names of the events about the ends of sessions, and about invitations.
const ENDED: &str = "web_session.ended";
const INVITED: &str = "web_session.invited";

/// A session with its secret, for the cookie.
// No `Debug`: it holds a secret.
pub struct OpenedSession {
    /// 32 random bytes, base64url.
    pub secret: String,
    /// The session.
    pub session: WebSession,
}

/// The session that a request has shown.
pub type Reading = GoodSession;

fn full() -> OwnError {
    let why = format!("{WEB_SESSIONS_MAX} browsers are signed in or invited, as many as may be");
    OwnError::new(StatusCode::CONFLICT, "sessions_full", why)
        .hint("end one: provost web session list, provost web session end ID")
}

/// Returns the digest of a base64url secret; `None` for a text that cannot be one.
fn digest_of(secret: &str) -> Option<Digest> {
    let bytes = bytes_of(secret, "the secret").ok()?;
    Some(digest(&<[u8; WEB_SECRET_BYTES]>::try_from(bytes).ok()?))
}

impl Own {
    /// Returns whether a passkey counts now.
    async fn counts(&self, credential: &str) -> bool {
        let Ok(known) = self.0.provost.view(AllPasskeys).await else { return false };
        let is_good = known.passkeys.get(credential).is_some_and(|it| it.revoked_at.is_none());
        is_good && known.waits_until.is_none() && !known.passkeys.standing().is_unusable
    }

    /// Ends the sessions of passkeys that no longer count.
    pub(super) async fn end_orphans(&self) {
        let sessions = &self.0.sessions;
        let mut gone = Vec::new();
        for it in sessions.list(self.now()) {
            if let WebReader::Passkey { credential } = &it.reader
                && !self.counts(credential).await
            {
                gone.push(it.digest);
            }
        }
        if gone.is_empty() {
            return;
        }
        let ended = sessions.end(|it| gone.contains(&it.digest));
        self.note_ends(self.0.provost.system(), &ended, "its passkey counts no more").await;
        if let Err(why) = sessions.keep().await {
            // The passkey is checked again at the session's next use.
            tracing::warn!(%why, "sessions that have ended are still in their file");
        }
    }

    async fn note_ends(&self, who: &Principal, ended: &[WebSession], why: &str) {
        for it in ended {
            let details = json!({ "by": who.agent().as_str(), "why": why, "origin": it.origin });
            self.note(ENDED, &it.id(), details).await;
        }
    }

    async fn note(&self, what: &str, subject: &str, details: serde_json::Value) {
        let details = Json::from_value(&details);
        let record = Record { what: what.into(), subject: subject.into(), details };
        if let Err(why) = self.submit(self.0.provost.system(), record).await {
            tracing::warn!(why = why.body.message, what, subject, "this is not on record");
        }
    }

    async fn begin_session(&self, origin: &str, process: Option<i32>) -> Answered<wire::SignIn> {
        self.0.pending.count((process, None), Kind::Challenge)?;
        let page = self.pages().into_iter().find(|it| it.origin == origin);
        let host = page.ok_or_else(|| refused(Refused::Origin))?.host;
        let list = self.synced_list().await?;
        if !list.passkeys.iter().any(|it| it.rp_id == host) {
            let why = format!("no passkey is enrolled for pages at {host}");
            return Err(OwnError::new(StatusCode::FORBIDDEN, "no_passkey_here", why)
                .hint("have a code printed, and enrol one at this page: provost passkey add"));
        }
        let secret = random::<WEB_SECRET_BYTES>()?;
        let until = self.now().after(Ttl::seconds_clamped(WEB_SESSION_S_MAX));
        let arguments = json!({
            "origin": origin, "session": digest(&secret).to_string(), "until": until.rfc3339(),
        });
        let text = Json::from_value(&arguments);
        let word = VerbWord { verb: OPEN.into(), arguments: Digest::of(text.as_str().as_bytes()) };
        let opening =
            Opening { secret, origin: origin.into(), host: host.as_str().into(), until, arguments: text };
        let asked = |transcript| NoncePurpose::Session(transcript, Box::new(opening));
        let mut challenge = self.challenge(Word::Verb(word), &list, asked).await?;
        challenge.allow.retain(|it| it.rp_id == host);
        // Every visitor of the page can read this. The ids are useless without the keys; the names are left out.
        challenge.allow.iter_mut().for_each(|it| it.name.clear());
        let daemon = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.passkeys.daemon().to_owned();
        Ok(wire::SignIn { challenge, arguments, daemon })
    }

    async fn open_session(
        &self,
        origin: &str,
        body: wire::SignedWord,
        process: Option<i32>,
    ) -> Answered<OpenedSession> {
        // Only browsers of the daemon's own pages sign in here.
        let asker = Asker { process: (process, None), pages: self.pages() };
        self.0.pending.count(asker.process, Kind::Word)?;
        let NoncePurpose::Session(transcript, opening) =
            self.0.pending.take(&bytes(&body.nonce, "nonce")?)?
        else {
            return Err(refused(Refused::Challenge));
        };
        let brought = Brought::read(body.assertion)?;
        let list = self.synced_list().await?;
        let asserted = self.known_word(&asker, &list, &transcript, &brought).await?;
        let of_the_page = list.get(&brought.credential).is_some_and(|it| *it.rp_id == *opening.host);
        if *opening.origin != *origin || !of_the_page || brought.origin().as_deref() != Some(origin) {
            return Err(refused(Refused::Origin));
        }
        if !self.0.sessions.has_room(self.now()) {
            return Err(full());
        }
        // The word is recorded first, so that the signature counts once.
        let who = role::passkey_verb(self.0.user.clone(), &asserted);
        let signed = brought.for_log(&transcript, &asserted);
        self.submit(&who, SayWord { verb: OPEN.into(), arguments: opening.arguments, signed }).await?;
        let now = self.now();
        let session = WebSession {
            digest: digest(&opening.secret),
            origin: origin.to_owned(),
            reader: WebReader::Passkey { credential: brought.credential.clone() },
            began_at: now,
            used_at: now,
            until: opening.until,
        };
        self.0.sessions.open(session.clone()).map_err(|_| full())?;
        self.keep_sessions().await;
        Ok(OpenedSession { secret: text_of(&opening.secret), session })
    }

    async fn redeem(&self, origin: &str, invitation: &str, process: Option<i32>) -> Answered<OpenedSession> {
        self.0.pending.count((process, None), Kind::Word)?;
        let secret = random::<WEB_SECRET_BYTES>()?;
        let found = digest_of(invitation)
            .and_then(|it| self.0.sessions.redeem(&it, origin, digest(&secret), self.now()));
        let session = found.ok_or_else(|| {
            let why = "this invitation was opened already, is over, or was never made for this page";
            OwnError::new(StatusCode::GONE, "invitation_gone", why)
                .hint("ask for another one: provost web invite --read")
        })?;
        self.keep_sessions().await;
        Ok(OpenedSession { secret: text_of(&secret), session })
    }

    async fn keep_sessions(&self) {
        if let Err(why) = self.0.sessions.keep().await {
            tracing::warn!(%why, "sessions cannot be saved; browsers have to sign in again after the next start");
        }
    }

    async fn reading(&self, secret: &str, origin: &str) -> Option<Reading> {
        let found = self.0.sessions.find(&digest_of(secret)?, origin, self.now())?;
        if let WebReader::Passkey { credential } = &found.session.reader
            && !self.counts(credential).await
        {
            return None;
        }
        if found.is_to_be_kept {
            self.keep_sessions().await;
        }
        Some(found)
    }

    async fn end_sessions(
        &self,
        who: &Principal,
        is_meant: impl Fn(&WebSession) -> bool,
        why: &str,
    ) -> Answered<Vec<WebSession>> {
        let ended = self.0.sessions.end(is_meant);
        self.note_ends(who, &ended, why).await;
        self.0.sessions.keep().await.map_err(|err| {
            let why = format!("it has ended, but its file cannot be written, so that it would be good again after a start: {err}");
            OwnError::new(StatusCode::INTERNAL_SERVER_ERROR, "unavailable", why).hint("make room, and end it again")
        })?;
        Ok(ended)
    }

    async fn session_rows(&self, sessions: &[WebSession]) -> Answered<Vec<wire::WebSession>> {
        let known = self.0.provost.view(AllPasskeys).await.map_err(map::fault)?.passkeys;
        let named = |it: &WebSession| {
            let WebReader::Passkey { credential } = &it.reader else { return row(it, None) };
            row(it, known.get(credential).map(|it| it.passkey.name.to_string()))
        };
        Ok(sessions.iter().map(named).collect())
    }
}

fn row(it: &WebSession, passkey: Option<String>) -> wire::WebSession {
    let reader = match &it.reader {
        WebReader::Passkey { .. } => "passkey",
        WebReader::Invited => "invited",
        WebReader::Invitation => "invitation",
    };
    wire::WebSession {
        id: it.id(),
        reader: reader.into(),
        passkey,
        origin: it.origin.clone(),
        began_at: it.began_at.rfc3339(),
        used_at: it.used_at.rfc3339(),
        ends_at: it.ends_at().rfc3339(),
        until: it.until.rfc3339(),
    }
}

impl InProcessApi {
    fn own(&self) -> &Own {
        &self.0
    }

    /// Begins the sign-in of a browser at a page of this origin. `process` counts for the limits.
    ///
    /// # Errors
    /// The status and the error that a connection would have returned; the same for all methods that follow.
    pub async fn begin_session(
        &self,
        origin: &str,
        process: Option<i32>,
    ) -> Result<wire::SignIn, StatusAndBody> {
        self.own().begin_session(origin, process).await.map_err(faulty)
    }

    /// Signs the browser in, if a passkey has signed.
    ///
    /// # Errors
    /// An invalid signature; too many sessions.
    pub async fn open_session(
        &self,
        origin: &str,
        body: wire::SignedWord,
        process: Option<i32>,
    ) -> Result<OpenedSession, StatusAndBody> {
        self.own().open_session(origin, body, process).await.map_err(faulty)
    }

    /// Signs in a browser that has an invitation.
    ///
    /// # Errors
    /// The invitation is invalid or used.
    pub async fn redeem_invitation(
        &self,
        origin: &str,
        invitation: &str,
        process: Option<i32>,
    ) -> Result<OpenedSession, StatusAndBody> {
        self.own().redeem(origin, invitation, process).await.map_err(faulty)
    }

    /// Returns the session of a secret at a page of this origin, if it is valid and its passkey still counts.
    pub async fn reading(&self, secret: &str, origin: &str) -> Option<Reading> {
        self.own().reading(secret, origin).await
    }

    /// Returns how long the session with this digest still lasts, if it has not ended.
    pub fn session_ends_in(&self, digest: &Digest) -> Option<std::time::Duration> {
        let now = self.own().now();
        let found = self.own().0.sessions.get(digest, now)?;
        Some(std::time::Duration::from_millis(found.ends_at().since_ms(now)))
    }

    /// Ends the session of a browser that signs out.
    ///
    /// # Errors
    /// The file of sessions cannot be written.
    pub async fn sign_out(&self, digest: &Digest) -> Result<(), StatusAndBody> {
        let system = self.own().0.provost.system();
        let ended = self.own().end_sessions(system, |it| it.digest == *digest, "its browser has signed out");
        ended.await.map(drop).map_err(faulty)
    }

    /// Sets the origins of the page for browsers on other machines.
    pub fn serves_elsewhere(&self, origins: Vec<String>) {
        *self.own().0.public.lock().unwrap_or_else(PoisonError::into_inner) = origins;
    }
}

/// A status, with the body of the error.
pub type StatusAndBody = (u16, wire::ErrorBody);

fn faulty(err: OwnError) -> StatusAndBody {
    (err.status.as_u16(), err.body)
}

impl Handles<endpoints::WebSessions> for Own {
    async fn handle(&self, _call: &Call, (): ()) -> Answered<Vec<wire::WebSession>> {
        let all = self.0.sessions.list(self.now());
        self.session_rows(&all).await
    }
}

impl Handles<endpoints::EndWebSession> for Own {
    async fn handle(&self, call: &Call, body: wire::EndWebSession) -> Answered<Vec<wire::WebSession>> {
        if !call.who.may(Scope::Operate) {
            return Err(map::fault(Refusal::OutOfScope { needs: Scope::Operate }));
        }
        let ended = match (&body.id, body.all) {
            (None, true) => self.end_sessions(&call.who, |_| true, "a person has ended all").await?,
            (Some(id), false) => {
                let ended =
                    self.end_sessions(&call.who, |it| it.id() == *id, "a person has ended it").await?;
                if ended.is_empty() {
                    return Err(OwnError::new(
                        StatusCode::NOT_FOUND,
                        "not_found",
                        "no browser is signed in under this id",
                    )
                    .hint("provost web session list"));
                }
                ended
            }
            _ => return Err(OwnError::invalid("say either id or all")),
        };
        self.session_rows(&ended).await
    }
}

impl Handles<endpoints::InviteReader> for Own {
    async fn handle(&self, call: &Call, body: wire::InviteReader) -> Answered<wire::Invitation> {
        Self::check_terminal(call, "invites readers")?;
        let public = self.0.public.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let origin = match body.origin {
            Some(said) => public.into_iter().find(|it| *it == said).ok_or_else(|| {
                OwnError::invalid("origin: this is none of the public addresses of the page")
            })?,
            None => public.into_iter().next().ok_or_else(|| {
                let why = "the page is at no public address, where an invitation could be opened";
                OwnError::new(StatusCode::CONFLICT, "not_public", why)
                    .hint("set `public` and `proxy_uids` in [web], and open it: provost web open")
            })?,
        };
        let ttl_s = body.ttl_s.unwrap_or(WEB_INVITE_S);
        if ttl_s == 0 || ttl_s > WEB_SESSION_S_MAX {
            return Err(OwnError::invalid(format!(
                "ttl_s: 1 to {WEB_SESSION_S_MAX} seconds, which are seven days"
            )));
        }
        let (secret, now) = (random::<WEB_SECRET_BYTES>()?, self.now());
        let session = WebSession {
            digest: digest(&secret),
            origin,
            reader: WebReader::Invitation,
            began_at: now,
            used_at: now,
            until: now.after(Ttl::seconds_clamped(ttl_s)),
        };
        self.0.sessions.open(session.clone()).map_err(|_| full())?;
        let details = json!({
            "by": call.who.agent().as_str(), "origin": session.origin, "until": session.until.rfc3339(),
        });
        self.note(INVITED, &session.id(), details).await;
        self.keep_sessions().await;
        let link = format!("{}/#invite={}", session.origin, text_of(&secret));
        Ok(wire::Invitation { link, session: row(&session, None) })
    }
}

/// Loads the sessions of a daemon whose state is in this folder. Blocks for as long as the disk does.
pub(super) fn sessions(state: &std::path::Path, provost: &Provost) -> WebSessions {
    WebSessions::load(state.join("web-sessions.json"), provost.engine().now())
}
