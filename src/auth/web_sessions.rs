//! Browsers that are signed in to the page, and invitations that wait to be opened.
//!
//! A session is 256 random bits in a cookie. The daemon keeps only their digest, with the origin that they are
//! valid for and the passkey that has signed for them. All of it lies in one private file beside the store, not in
//! the store, so that a copy of the store is no way in. An unreadable file counts as empty, so that every browser
//! signs in again. The caller checks at each use whether the passkey still counts.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, watch};

use provost_base::limits::{
    WEB_SECRET_BYTES, WEB_SESSION_IDLE_MS_MAX, WEB_SESSION_NOTED_MS_MAX, WEB_SESSIONS_FILE_BYTES_MAX,
    WEB_SESSIONS_MAX,
};
use provost_base::{Digest, Timestamp};
use provost_system::private_file;

/// The version of the file's format.
const VERSION: u32 = 1;

/// The reader behind a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WebReader {
    /// The person whose passkey has signed in.
    Passkey {
        /// Its credential id.
        credential: String,
    },
    /// An invited person, who sees states alone.
    Invited,
    /// No browser yet: an invitation, whose secret is in a link.
    Invitation,
}

/// A session, or an invitation to one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSession {
    /// The digest of its secret.
    pub digest: Digest,
    /// The origin of the pages that it is valid for: scheme, host and port.
    pub origin: String,
    /// Its reader.
    pub reader: WebReader,
    /// When it began.
    pub began_at: Timestamp,
    /// When it was used last; in the file this may lag by some minutes.
    pub used_at: Timestamp,
    /// When it ends at the latest.
    pub until: Timestamp,
}

impl WebSession {
    /// Returns its short id for people.
    pub fn id(&self) -> String {
        self.digest.short()
    }

    /// Returns when it ends if it is not used again.
    pub fn ends_at(&self) -> Timestamp {
        let idle = i64::try_from(WEB_SESSION_IDLE_MS_MAX).unwrap_or(i64::MAX);
        match self.reader {
            // No browser uses it before it is opened.
            WebReader::Invitation => self.until,
            _ => self.until.min(Timestamp(self.used_at.0.saturating_add(idle))),
        }
    }

    /// Checks whether it is over. A session that begins in the future was made under a wrong clock, and is over as well.
    pub fn is_over(&self, now: Timestamp) -> bool {
        now < self.began_at || now >= self.ends_at()
    }
}

/// Returns the digest of a secret, by which a session is found.
pub fn digest(secret: &[u8; WEB_SECRET_BYTES]) -> Digest {
    Digest::of_fields([b"provost web session".as_slice(), secret])
}

/// The error for a session beyond the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// A valid session, with a channel whose sender is dropped when it ends.
pub struct GoodSession {
    /// The session.
    pub session: WebSession,
    /// Its `changed` fails once the session has ended.
    pub ended: watch::Receiver<()>,
    /// Whether the file's time of last use is too old, so that the caller should write the file.
    pub is_to_be_kept: bool,
}

struct LiveSession {
    session: WebSession,
    noted_at: Timestamp,
    alive: watch::Sender<()>,
}

impl LiveSession {
    fn new(session: WebSession) -> Self {
        Self { noted_at: session.used_at, session, alive: watch::Sender::new(()) }
    }
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    sessions: Vec<WebSession>,
}

/// All sessions of a daemon.
pub struct WebSessions {
    all: Mutex<Vec<LiveSession>>,
    file: PathBuf,
    /// Held while the file is written, so that an older state never replaces a newer one.
    writing: Semaphore,
}

impl WebSessions {
    /// Loads the file's sessions that are not over. Blocks for as long as the disk does.
    pub fn load(file: PathBuf, now: Timestamp) -> Self {
        let found = read(&file).unwrap_or_else(|why| {
            tracing::warn!(file = %file.display(), %why, "who was signed in to the page cannot be read, and signs in again");
            Vec::new()
        });
        let good = found.into_iter().filter(|it| !it.is_over(now)).take(WEB_SESSIONS_MAX);
        Self { all: Mutex::new(good.map(LiveSession::new).collect()), file, writing: Semaphore::new(1) }
    }

    fn all(&self) -> MutexGuard<'_, Vec<LiveSession>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether there is room for one more session.
    pub fn has_room(&self, now: Timestamp) -> bool {
        self.list(now).len() < WEB_SESSIONS_MAX
    }

    /// Adds a session.
    ///
    /// # Errors
    /// [`Full`].
    pub fn open(&self, session: WebSession) -> Result<(), Full> {
        let mut all = self.all();
        all.retain(|it| !it.session.is_over(session.began_at));
        if all.len() >= WEB_SESSIONS_MAX {
            return Err(Full);
        }
        all.push(LiveSession::new(session));
        Ok(())
    }

    /// Replaces an invitation, which is valid once, with a session under the digest of a fresh secret.
    pub fn redeem(
        &self,
        invitation: &Digest,
        origin: &str,
        fresh: Digest,
        now: Timestamp,
    ) -> Option<WebSession> {
        let mut all = self.all();
        let is_meant = |it: &LiveSession| {
            let (session, is_over) = (&it.session, it.session.is_over(now));
            session.digest == *invitation
                && session.reader == WebReader::Invitation
                && session.origin == origin
                && !is_over
        };
        let at = all.iter().position(is_meant)?;
        let invited = all.swap_remove(at).session;
        let session =
            WebSession { digest: fresh, reader: WebReader::Invited, began_at: now, used_at: now, ..invited };
        all.push(LiveSession::new(session.clone()));
        Some(session)
    }

    /// Returns the session of a secret's digest, for a page of this origin, and counts as its use.
    pub fn find(&self, digest: &Digest, origin: &str, now: Timestamp) -> Option<GoodSession> {
        let mut all = self.all();
        all.retain(|it| !it.session.is_over(now));
        let known = all.iter_mut().find(|it| it.session.digest == *digest)?;
        if known.session.origin != origin || known.session.reader == WebReader::Invitation {
            return None;
        }
        known.session.used_at = now;
        let is_to_be_kept = now.since_ms(known.noted_at) >= WEB_SESSION_NOTED_MS_MAX;
        Some(GoodSession { session: known.session.clone(), ended: known.alive.subscribe(), is_to_be_kept })
    }

    /// Returns the session of this digest, without counting as its use.
    pub fn get(&self, digest: &Digest, now: Timestamp) -> Option<WebSession> {
        self.all().iter().map(|it| &it.session).find(|it| it.digest == *digest && !it.is_over(now)).cloned()
    }

    /// Returns the sessions that are not over, in the order in which they began.
    pub fn list(&self, now: Timestamp) -> Vec<WebSession> {
        let mut found: Vec<WebSession> =
            self.all().iter().filter(|it| !it.session.is_over(now)).map(|it| it.session.clone()).collect();
        found.sort_by_key(|it| it.began_at);
        found
    }

    /// Ends the sessions for which `is_meant` holds, and returns them.
    pub fn end(&self, is_meant: impl Fn(&WebSession) -> bool) -> Vec<WebSession> {
        let mut all = self.all();
        let ended = all.iter().filter(|it| is_meant(&it.session)).map(|it| it.session.clone()).collect();
        all.retain(|it| !is_meant(&it.session));
        ended
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The disk's. The changes hold in memory until the daemon ends.
    pub async fn keep(&self) -> io::Result<()> {
        let _turn = self.writing.acquire().await;
        let sessions = {
            let mut all = self.all();
            all.iter_mut().for_each(|it| it.noted_at = it.session.used_at);
            all.iter().map(|it| it.session.clone()).collect()
        };
        let (file, text) = (self.file.clone(), serde_json::to_vec(&Written { version: VERSION, sessions })?);
        let written = tokio::task::spawn_blocking(move || write(&file, &text)).await;
        written.unwrap_or_else(|err| Err(io::Error::other(err)))
    }
}

fn read(file: &Path) -> io::Result<Vec<WebSession>> {
    let opened = match fs::File::open(file) {
        Ok(opened) => opened,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err),
    };
    let mut text = Vec::new();
    opened.take(WEB_SESSIONS_FILE_BYTES_MAX).read_to_end(&mut text)?;
    let written: Written = serde_json::from_slice(&text)?;
    match written.version {
        VERSION => Ok(written.sessions),
        other => Err(io::Error::other(format!("it has version {other}, and {VERSION} is known"))),
    }
}

fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let beside = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    let mut opened = private_file(options.write(true).create(true).truncate(true)).open(&beside)?;
    opened.write_all(text)?;
    opened.sync_all()?;
    fs::rename(&beside, file)
}
