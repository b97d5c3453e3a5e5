//! The state that waits for signatures: challenges, and the code for a new passkey. It is in memory only, and ends with the daemon.
//!
//! A nonce is used up by the first request that names it, valid or not. A flood of challenges only displaces older
//! ones: a client whose challenge was displaced asks again.

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

/// The purpose of a nonce.
pub(super) enum NoncePurpose {
    /// A word that a known passkey signs.
    Word(Transcript),
    /// A verb with its arguments; the signed word has their digest.
    Verb(Transcript, Said),
    /// A new passkey with this name, for this party.
    Create(Transcript, Box<str>, Party),
    /// The first signature of a new passkey.
    Confirm(Transcript, Box<ListedPasskey>),
    /// A browser that is signing in.
    Session(Transcript, Box<Opening>),
}

/// A session that is not open yet.
// No `Debug`: it holds a secret.
pub(super) struct Opening {
    /// The secret that the browser gets once a passkey has signed.
    pub(super) secret: [u8; WEB_SECRET_BYTES],
    /// The origin of the page, and the host to which its passkeys belong.
    pub(super) origin: Box<str>,
    pub(super) host: Box<str>,
    /// When it ends at the latest.
    pub(super) until: Timestamp,
    /// The signed arguments, as canonical JSON.
    pub(super) arguments: Json,
}

/// A new passkey that has signed for itself, and waits until a known one signs for it at another page.
#[derive(Clone)]
pub(super) struct Awaited {
    pub(super) transcript: Transcript,
    pub(super) listed: Box<ListedPasskey>,
    pub(super) asserted: Asserted,
    /// The passkeys that may sign for it.
    pub(super) known: Vec<AllowedPasskey>,
    pub(super) until: Instant,
}

/// The kinds of requests that are counted for each process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    /// Requests for challenges.
    Challenge,
    /// Requests with signatures to check.
    Word,
}

/// The code for a new passkey.
struct Code {
    text: String,
    until: Instant,
    tries: u32,
}

#[derive(Default)]
struct Inner {
    open: VecDeque<([u8; 32], Instant, NoncePurpose)>,
    lately: HashMap<(Counted, Kind), VecDeque<Instant>>,
    code: Option<Code>,
    awaited: Option<Awaited>,
}

/// All waiting state.
#[derive(Default)]
pub(super) struct Pending(Mutex<Inner>);

/// The letters of a code, which cannot be mistaken for one another.
const LETTERS: &[u8; 31] = b"23456789ABCDEFGHJKMNPQRSTUVWXYZ";
const CODE_LETTERS: usize = 12;
const MINUTE: Duration = Duration::from_secs(60);

impl Pending {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the purpose of a nonce; the oldest is dropped.
    pub(super) fn put(&self, nonce: [u8; 32], asked: NoncePurpose) {
        let mut inner = self.inner();
        inner.forget_old(Instant::now());
        while inner.open.len() >= CHALLENGES_MAX {
            inner.open.pop_front();
        }
        inner.open.push_back((nonce, Instant::now(), asked));
    }

    /// Returns the purpose of a nonce, which is used up from now on.
    pub(super) fn take(&self, nonce: &[u8]) -> Result<NoncePurpose, OwnError> {
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

    /// Ends all challenges: a revoked passkey must not sign any more.
    pub(super) fn clear(&self) {
        let mut inner = self.inner();
        inner.open.clear();
        inner.awaited = None;
    }

    /// Stores a new passkey that waits, in place of the previous one.
    pub(super) fn hold(&self, awaited: Awaited) {
        self.inner().awaited = Some(awaited);
    }

    /// Calls `look` with the passkey that waits, if there is one.
    pub(super) fn with_awaited<T>(&self, look: impl FnOnce(Option<&Awaited>) -> T) -> T {
        let now = Instant::now();
        look(self.inner().awaited.as_ref().filter(|it| now < it.until))
    }

    /// Forgets the waiting passkey with this nonce.
    pub(super) fn let_go(&self, nonce: &[u8; 32]) {
        let mut inner = self.inner();
        if inner.awaited.as_ref().is_some_and(|it| it.transcript.nonce == *nonce) {
            inner.awaited = None;
        }
    }

    /// Counts a request of a process; an error if it has made too many within a minute.
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

    /// Makes a new code, in place of an open one.
    pub(super) fn new_code(&self) -> Result<String, OwnError> {
        let mut text = String::with_capacity(CODE_LETTERS);
        while text.len() < CODE_LETTERS {
            // Bytes beyond the last whole multiple would make some letters more likely than others.
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

    /// Uses the code up if it is this one. Blanks, dashes and case do not count.
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

/// Returns bytes that no process can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], OwnError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| {
        let why = "the system has no randomness to give";
        OwnError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why)
    })?;
    Ok(bytes)
}
