//! Words from one daemon to another one that shares its database: they travel in the server's notifications, over
//! the connection that already listens, and are not stored.
//!
//! The sending host signs each word for the host that it goes to ([`HostSeals`]), so a daemon hears a word only from the very host that the
//! word names. A word can be lost, and it can come twice; a daemon that needs an answer asks again.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::host_seals::HostSeals;
use provost_base::HostId;
use provost_base::limits::{HOST_WORD_BYTES_MAX, HOST_WORDS_WAITING_MAX};

/// The label under which words are signed: from, to and the word.
const WORD: &[u8] = b"provost-host-word-v1";

/// A function that gets each word and the host that has sent it, on the thread that listens.
type Hears = Box<dyn Fn(HostId, Vec<u8>) + Send + Sync>;

/// The words that go out and come in. Cheap to clone.
#[derive(Clone)]
pub struct HostWords(Arc<Inner>);

struct Inner {
    seals: HostSeals,
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
        let (seals, hears, out) = (HostSeals::of(state), OnceLock::new(), Mutex::default());
        Self(Arc::new(Inner { seals, hears, out }))
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

    /// Takes the next word that waits, and returns the host that it is for, and the payload of its notification:
    /// `FROM SIGNATURE WORD`, the signature and the word in base64. A word that this host cannot sign is lost.
    pub(super) fn next(&self, from: HostId) -> Option<(HostId, String)> {
        loop {
            let (to, word) = self.lock().waiting.pop_front()?;
            let (by, at) = (from.to_string(), to.to_string());
            match self.0.seals.sign(WORD, &[by.as_bytes(), at.as_bytes(), &word]) {
                Ok((_, signature)) => {
                    let signature = STANDARD_NO_PAD.encode(signature);
                    return Some((to, format!("{from} {signature} {}", STANDARD_NO_PAD.encode(word))));
                }
                Err(error) => tracing::warn!(%error, "a word for another host cannot be signed"),
            }
        }
    }

    /// Takes in the payload of a notification at this host, if the host that it names has signed it.
    pub(super) fn hear(&self, here: HostId, payload: &str) {
        let Some((from, word)) = self.open(here, payload) else {
            return tracing::debug!("a message that no host has signed was ignored");
        };
        self.0.hears.get().iter().for_each(|hears| hears(from, word.clone()));
    }

    fn open(&self, here: HostId, payload: &str) -> Option<(HostId, Vec<u8>)> {
        let mut parts = payload.splitn(3, ' ');
        let from: HostId = parts.next()?.parse().ok()?;
        let signature = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        let word = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        let (by, at) = (from.to_string(), here.to_string());
        let is_signed =
            self.0.seals.has_signed(from, false, (WORD, &[by.as_bytes(), at.as_bytes(), &word]), &signature);
        let is_signed =
            is_signed.inspect_err(|error| tracing::warn!(%error, "a message of another host was ignored"));
        (is_signed.ok()? && from != here).then_some((from, word))
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        // The queue is consistent between any two statements.
        self.0.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
