//! Words from one daemon to another one that shares its database: they go with the server's notifications, over the connection that listens
//! already, and are kept nowhere.
//!
//! The sending host signs each word for the host that it goes to. What it signs is a seal with the journal's key, which the database never
//! has. So a daemon hears a word only from the very host that the word names: the key alone, which all hosts know, is not enough. A word can be
//! lost, and it can come twice; a daemon that needs an answer asks again.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::files;
use super::host_keys::{self, HostKey, KNOWN_HOSTS, KnownHosts, Signer};
use super::journal::Key;
use provost_base::HostId;
use provost_base::limits::{HOST_WORD_BYTES_MAX, HOST_WORDS_WAITING_MAX};

/// The label of the seal.
const SEALED: &[u8] = b"provost-host-word-v1";
/// The label of the signed text, which ends with the seal.
const SIGNED: &[u8] = b"provost-host-word-signature-v1";

/// Called with the host that has said something, and what it was, on the thread that listens.
type Hears = Box<dyn Fn(HostId, Vec<u8>) + Send + Sync>;

/// The words that go out and come in. Cheap to clone.
#[derive(Clone)]
pub struct HostWords(Arc<Inner>);

struct Inner {
    state: PathBuf,
    key: OnceLock<Key>,
    /// The key with which this host signs, and the host.
    signer: OnceLock<(HostId, Signer)>,
    known: Mutex<Known>,
    hears: OnceLock<Hears>,
    out: Mutex<Outgoing>,
}

#[derive(Default)]
struct Outgoing {
    waiting: VecDeque<(HostId, Vec<u8>)>,
    /// Has the thread that tells look here; `None` where there is none.
    bell: Option<Box<dyn Fn() + Send + Sync>>,
}

/// The hosts of the state folder, as its file had them when it was read last.
#[derive(Default)]
struct Known {
    /// The time of the file's last change.
    of: Option<SystemTime>,
    hosts: KnownHosts,
}

impl fmt::Debug for HostWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostWords").finish_non_exhaustive()
    }
}

impl HostWords {
    /// For the daemon of this state folder.
    pub fn of(state: &Path) -> Self {
        Self(Arc::new(Inner {
            state: state.to_owned(),
            key: OnceLock::new(),
            signer: OnceLock::new(),
            known: Mutex::default(),
            hears: OnceLock::new(),
            out: Mutex::default(),
        }))
    }

    /// Has this called for each word of another host. The first one counts.
    pub fn heard_by(&self, hears: impl Fn(HostId, Vec<u8>) + Send + Sync + 'static) {
        let _there_is_one = self.0.hears.set(Box::new(hears));
    }

    /// Says something to a host, soon; `false` where it is too long, too much waits already, or the store has one writer.
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

    /// Takes words from now on, and calls this for each.
    pub(super) fn go_with(&self, bell: impl Fn() + Send + Sync + 'static) {
        self.lock().bell = Some(Box::new(bell));
    }

    /// Takes the next word that waits, and returns the host that it is for, and the payload of its notification:
    /// `FROM SIGNATURE WORD`, the signature and the word in base64.
    pub(super) fn next(&self, from: HostId) -> Option<(HostId, String)> {
        loop {
            let (to, word) = self.lock().waiting.pop_front()?;
            let signed = self.to_sign(from, to, &word).zip(self.signer(from));
            if let Some((text, signer)) = signed {
                let signature = STANDARD_NO_PAD.encode(signer.sign(&text).into_bytes());
                return Some((to, format!("{from} {signature} {}", STANDARD_NO_PAD.encode(word))));
            }
        }
    }

    /// Hears the payload of a notification at this host, if the host that it names has signed it.
    pub(super) fn hear(&self, here: HostId, payload: &str) {
        let Some((from, word)) = self.open(here, payload) else {
            return tracing::debug!("a word that no host has signed is not heard");
        };
        self.0.hears.get().iter().for_each(|hears| hears(from, word.clone()));
    }

    fn open(&self, here: HostId, payload: &str) -> Option<(HostId, Vec<u8>)> {
        let mut parts = payload.splitn(3, ' ');
        let from: HostId = parts.next()?.parse().ok()?;
        let signature = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        let word = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        let is_signed = self.key_of(from)?.has_signed(&self.to_sign(from, here, &word)?, &signature);
        (is_signed && from != here).then_some((from, word))
    }

    /// The text that a host signs for a word.
    fn to_sign(&self, from: HostId, to: HostId, word: &[u8]) -> Option<Vec<u8>> {
        let key = match self.0.key.get() {
            Some(key) => key,
            None => {
                let secret = files::journal_key(&self.0.state).ok()??;
                self.0.key.get_or_init(|| Key::new(&secret))
            }
        };
        let seal = key.mac(SEALED, &[from.to_string().as_bytes(), to.to_string().as_bytes(), word]);
        Some([SIGNED, seal.as_bytes()].concat())
    }

    /// The own key of this host.
    fn signer(&self, here: HostId) -> Option<&Signer> {
        let (host, signer) = match self.0.signer.get() {
            Some(own) => own,
            None => {
                let own = host_keys::own_key(&self.0.state, Some(here)).ok()??;
                self.0.signer.get_or_init(|| own)
            }
        };
        (*host == here).then_some(signer)
    }

    /// The key of a host that takes part. The file that has it is read again when it has changed.
    fn key_of(&self, host: HostId) -> Option<HostKey> {
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = std::fs::metadata(self.0.state.join(KNOWN_HOSTS)).ok()?.modified().ok()?;
        if known.of != Some(changed) {
            known.hosts = KnownHosts::read(&self.0.state).ok()??;
            known.of = Some(changed);
        }
        known.hosts.get(host).filter(|it| it.gone.is_none()).map(|it| it.key)
    }

    fn lock(&self) -> MutexGuard<'_, Outgoing> {
        // The queue is whole between any two statements.
        self.0.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
