//! Words from one daemon to another one that shares its database: they travel in the server's notifications, over
//! the connection that already listens, and are not stored.
//!
//! Each word is sealed with the journal's key, which the database never has, for the host that it goes to: a daemon accepts
//! only words of other hosts. A word can be lost, and it can come twice; a daemon that needs an answer asks again.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::files;
use super::journal::Key;
use provost_base::HostId;
use provost_base::limits::{HOST_WORD_BYTES_MAX, HOST_WORDS_WAITING_MAX};

/// The label in the seal of a word.
const SEALED: &[u8] = b"provost-host-word-v1";

/// A function that gets each word and the host that has sent it, on the thread that listens.
type Hears = Box<dyn Fn(HostId, Vec<u8>) + Send + Sync>;

/// The words that go out and come in. Cheap to clone.
#[derive(Clone)]
pub struct HostWords(Arc<Inner>);

struct Inner {
    state: PathBuf,
    key: OnceLock<Key>,
    hears: OnceLock<Hears>,
    out: Mutex<Outgoing>,
}

#[derive(Default)]
struct Outgoing {
    waiting: VecDeque<(HostId, Vec<u8>)>,
    /// Wakes the thread that sends words; `None` if there is none.
    bell: Option<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for HostWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostWords").finish_non_exhaustive()
    }
}

impl HostWords {
    /// Returns the words of this state folder's daemon.
    pub fn of(state: &Path) -> Self {
        let (key, hears, out) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self(Arc::new(Inner { state: state.to_owned(), key, hears, out }))
    }

    /// Has this function called for each word of another host. Only the first function counts.
    pub fn heard_by(&self, hears: impl Fn(HostId, Vec<u8>) + Send + Sync + 'static) {
        let _there_is_one = self.0.hears.set(Box::new(hears));
    }

    /// Sends a word to a host, soon; returns `false` if it is too long, too many wait already, or the store has one writer.
    pub fn say(&self, to: HostId, word: Vec<u8>) -> bool {
        let mut out = self.lock();
        if word.len() > HOST_WORD_BYTES_MAX || out.waiting.len() >= HOST_WORDS_WAITING_MAX {
            return false;
        }
        let Outgoing { waiting, bell: Some(bell) } = &mut *out else { return false };
        waiting.push_back((to, word));
        bell();
        true
    }

    /// Accepts words from now on, and calls `bell` for each.
    pub(super) fn go_with(&self, bell: impl Fn() + Send + Sync + 'static) {
        self.lock().bell = Some(Box::new(bell));
    }

    /// Returns the next word that waits, as the payload of a notification, and its host.
    pub(super) fn next(&self, from: HostId) -> Option<(HostId, String)> {
        loop {
            let (to, word) = self.lock().waiting.pop_front()?;
            if let Some(seal) = self.seal(from, to, &word) {
                return Some((to, format!("{from} {seal} {}", STANDARD_NO_PAD.encode(word))));
            }
        }
    }

    /// Takes in the payload of a notification at this host, if another host has sealed it.
    pub(super) fn hear(&self, here: HostId, payload: &str) {
        let Some((from, word)) = self.open(here, payload) else {
            return tracing::debug!("a word that no host has sealed is not heard");
        };
        self.0.hears.get().iter().for_each(|hears| hears(from, word.clone()));
    }

    fn open(&self, here: HostId, payload: &str) -> Option<(HostId, Vec<u8>)> {
        let mut parts = payload.splitn(3, ' ');
        let from: HostId = parts.next()?.parse().ok()?;
        let (seal, word) = (parts.next()?, STANDARD_NO_PAD.decode(parts.next()?).ok()?);
        let is_sealed = self.seal(from, here, &word)?.to_string() == seal;
        (is_sealed && from != here).then_some((from, word))
    }

    fn seal(&self, from: HostId, to: HostId, word: &[u8]) -> Option<provost_base::Digest> {
        let key = match self.0.key.get() {
            Some(key) => key,
            None => {
                let secret = files::journal_key(&self.0.state).ok()??;
                self.0.key.get_or_init(|| Key::new(&secret))
            }
        };
        Some(key.mac(SEALED, &[from.to_string().as_bytes(), to.to_string().as_bytes(), word]))
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        // The queue is consistent between any two statements.
        self.0.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
