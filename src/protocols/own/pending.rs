//! What waits for a signature: challenges and the code for a new passkey. In memory alone, so nothing of it outlives the daemon.
//!
//! A nonce is used up by the first request that names it, good or bad. A flood of challenges pushes out older ones and changes
//! nothing else: who was pushed out asks again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::hub::Counted;
use super::map::OwnError;
use super::verbs::Said;
use hyper::StatusCode;
use provost_api::wire::AllowedPasskey;
use provost_auth::passkeys::ListedPasskey;
use provost_base::limits::{
    CHALLENGE_MS_MAX, CHALLENGES_MAX, CHALLENGES_PER_MINUTE_MAX, PASSKEY_CODE_MS_MAX, PASSKEY_CODE_TRIES_MAX,
    WEB_SECRET_BYTES, WORDS_PER_MINUTE_MAX,
};
use provost_base::{Json, Timestamp};
use provost_passkey::{Asserted, Party, Transcript};

/// What a nonce was made for.
pub(super) enum Asked {
    /// A word of a known passkey.
    Word(Transcript),
    /// A verb with its arguments; the word has their digest.
    Verb(Transcript, Said),
    /// A new passkey of this name, for this party.
    Create(Transcript, Box<str>, Party),
    /// The first signature of a new passkey.
    Confirm(Transcript, Box<ListedPasskey>),
    /// A browser that signs in.
    Session(Transcript, Box<Opening>),
}

/// A session that is not open yet.
// No `Debug`: it holds a secret.
pub(super) struct Opening {
    /// What the browser gets once a passkey has signed.
    pub(super) secret: [u8; WEB_SECRET_BYTES],
    /// The page, and the host to which its passkeys belong.
    pub(super) origin: Box<str>,
    pub(super) host: Box<str>,
    /// When it is to end at the latest.
    pub(super) until: Timestamp,
    /// What is signed, as canonical JSON.
    pub(super) arguments: Json,
}

/// A new passkey that has signed for itself, and waits until a known one has signed for it at another page.
#[derive(Clone)]
pub(super) struct Awaited {
    pub(super) transcript: Transcript,
    pub(super) listed: Box<ListedPasskey>,
    pub(super) asserted: Asserted,
    /// Those that may sign for it.
    pub(super) known: Vec<AllowedPasskey>,
    pub(super) until: Instant,
}

/// What a process does too often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// It has challenges made.
    Challenge,
    /// It has signatures checked.
    Word,
}

/// A code for one new passkey.
struct Code {
    text: String,
    until: Instant,
    tries: u32,
}

#[derive(Default)]
struct Inner {
    open: VecDeque<([u8; 32], Instant, Asked)>,
    lately: HashMap<(Counted, Kind), VecDeque<Instant>>,
    code: Option<Code>,
    awaited: Option<Awaited>,
}

/// Everything that waits.
#[derive(Default)]
pub(super) struct Pending(Mutex<Inner>);

/// The letters of a code: none looks like another one.
const LETTERS: &[u8; 31] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";
const CODE_LETTERS: usize = 12;
const MINUTE: Duration = Duration::from_secs(60);

impl Pending {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a nonce was made for; the oldest gives way.
    pub(super) fn put(&self, nonce: [u8; 32], asked: Asked) {
        let mut inner = self.inner();
        inner.forget_old(Instant::now());
        while inner.open.len() >= CHALLENGES_MAX {
            inner.open.pop_front();
        }
        inner.open.push_back((nonce, Instant::now(), asked));
    }

    /// What the nonce was made for. From now on it is nothing.
    pub(super) fn take(&self, nonce: &[u8]) -> Result<Asked, OwnError> {
        let mut inner = self.inner();
        inner.forget_old(Instant::now());
        let at = inner.open.iter().position(|(it, _, _)| it == nonce);
        let found = at.and_then(|at| inner.open.remove(at)).map(|(_, _, asked)| asked);
        found.ok_or_else(|| {
            let why =
                "this challenge was used, is older than two minutes, or was made before the daemon's start";
            OwnError::new(StatusCode::GONE, "challenge_gone", why)
                .hint("have the request shown again, and sign once more")
        })
    }

    /// Has all challenges end: whose passkey was revoked signs nothing any more.
    pub(super) fn clear(&self) {
        let mut inner = self.inner();
        inner.open.clear();
        inner.awaited = None;
    }

    /// Keeps a new passkey that waits; the one before gives way.
    pub(super) fn hold(&self, awaited: Awaited) {
        self.inner().awaited = Some(awaited);
    }

    /// Looks at the passkey that waits, if one does.
    pub(super) fn with_awaited<T>(&self, look: impl FnOnce(Option<&Awaited>) -> T) -> T {
        let now = Instant::now();
        look(self.inner().awaited.as_ref().filter(|it| now < it.until))
    }

    /// The passkey under this nonce waits no more.
    pub(super) fn let_go(&self, nonce: &[u8; 32]) {
        let mut inner = self.inner();
        if inner.awaited.as_ref().is_some_and(|it| it.transcript.nonce == *nonce) {
            inner.awaited = None;
        }
    }

    /// Counts a request of a process, unless it has made too many within a minute.
    pub(super) fn count(&self, process: Counted, kind: Kind) -> Result<(), OwnError> {
        let (most, what) = match kind {
            Kind::Challenge => (CHALLENGES_PER_MINUTE_MAX, "challenges made"),
            Kind::Word => (WORDS_PER_MINUTE_MAX, "signatures checked"),
        };
        let now = Instant::now();
        let mut inner = self.inner();
        inner.lately.retain(|_, at| at.back().is_some_and(|last| now.duration_since(*last) < MINUTE));
        let times = inner.lately.entry((process, kind)).or_default();
        times.retain(|at| now.duration_since(*at) < MINUTE);
        if times.len() >= most {
            let why = format!("this process has had {most} {what} within a minute, as many as one may");
            return Err(
                OwnError::new(StatusCode::TOO_MANY_REQUESTS, "too_often", why).hint("try again in a minute")
            );
        }
        times.push_back(now);
        Ok(())
    }

    /// A new code; one that was open is worth nothing from now on.
    pub(super) fn new_code(&self) -> Result<String, OwnError> {
        let mut text = String::with_capacity(CODE_LETTERS);
        while text.len() < CODE_LETTERS {
            // Bytes beyond the last whole multiple would make some letters likelier than others.
            let fair = random::<32>()?
                .into_iter()
                .filter(|byte| usize::from(*byte) < 256 / LETTERS.len() * LETTERS.len());
            let letters = fair.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
            let missing = CODE_LETTERS - text.len();
            text.extend(letters.take(missing));
        }
        let until = Instant::now() + Duration::from_millis(PASSKEY_CODE_MS_MAX);
        self.inner().code = Some(Code { text: text.clone(), until, tries: 0 });
        Ok(text)
    }

    /// Uses the code up, if it is this one. Blanks and dashes between its letters do not count, nor does their case.
    pub(super) fn use_code(&self, said: &str) -> Result<(), OwnError> {
        let said = said.chars().filter(|it| !it.is_whitespace() && *it != '-');
        let said: String = said.map(|it| it.to_ascii_uppercase()).collect();
        let mut inner = self.inner();
        let is_open = |code: &Code| Instant::now() < code.until && code.tries < PASSKEY_CODE_TRIES_MAX;
        let Some(mut code) = inner.code.take().filter(is_open) else {
            let why = "no code is good at the moment: it was used, is older than five minutes, or was guessed at too often";
            return Err(OwnError::new(StatusCode::FORBIDDEN, "code_gone", why)
                .hint("make another one: provost passkey add"));
        };
        if code.text == said {
            return Ok(());
        }
        code.tries += 1;
        inner.code = Some(code);
        Err(OwnError::new(StatusCode::FORBIDDEN, "code_wrong", "this is not the code")
            .hint("type it once more"))
    }
}

impl Inner {
    fn forget_old(&mut self, now: Instant) {
        let old = |at: &Instant| now.duration_since(*at) >= Duration::from_millis(CHALLENGE_MS_MAX);
        while self.open.front().is_some_and(|(_, at, _)| old(at)) {
            self.open.pop_front();
        }
    }
}

/// Bytes that no process can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], OwnError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| {
        let why = "the system has no randomness to give";
        OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why)
    })?;
    Ok(bytes)
}
