//! Notices between daemons about new commits, so that they need not wait for their next sign of life to see them.
//!
//! A connection of its own listens, and sends notices in transactions of their own: a notice in the writing
//! transaction would take a lock over all databases of the server. A lost notice only costs the others a beat.
//!
//! [`HostWords`] go the same way, each to the channel of its host: no other host gets it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::address::Server;
use super::remembered::Newest;
use super::session::{Heard, Purpose, Session, Step, Waited};
use crate::{HostWords, StoreError};
use provost_base::HostId;
use provost_base::limits::{HOST_WORDS_AT_ONCE, LISTEN_AGAIN_MS, WAKE_EVERY_MS};

/// The thread that listens and sends. It ends when this value is dropped.
pub(super) struct Waker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Notified when a notice is due, or the thread has to end.
    turn: Notify,
    tells: AtomicBool,
    ends: AtomicBool,
}

impl Waker {
    /// Starts the thread, which calls `wake` when a daemon of another host has committed something in this
    /// repository, and after each time in which it could not listen.
    ///
    /// # Errors
    /// If the system provides no thread or no runtime.
    pub(super) fn start(
        servers: Vec<Server>,
        newest: Newest,
        (repo, host): (i32, HostId),
        words: HostWords,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StoreError> {
        let (wake, own): (Arc<dyn Fn() + Send + Sync>, _) = (wake.into(), host.to_string());
        let (told, heard_words, all) = (wake.clone(), words.clone(), channel_of_all(repo));
        let heard: Heard = Arc::new(move |channel, said| {
            if channel != all {
                heard_words.hear(host, said);
            } else if said != own {
                told();
            }
        });
        let session = Session::new(servers, Purpose::Listen)?.hearing(heard);
        let shared = Arc::new(Shared::default());
        let bell = shared.clone();
        words.go_with(move || bell.turn.notify_one());
        let mut ear = Ear { session, newest, repo, host, words, wake, shared: shared.clone() };
        let no_thread = |source| StoreError::Io { path: "a thread for the database".into(), source };
        let thread =
            std::thread::Builder::new().name("wakes".into()).spawn(move || ear.work()).map_err(no_thread)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sends the others a notice soon.
    pub(super) fn tell(&self) {
        self.shared.tells.store(true, Ordering::Release);
        self.shared.turn.notify_one();
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.turn.notify_one();
        // If the thread has panicked, there is nothing left to end.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The state of the thread.
struct Ear {
    session: Session,
    newest: Newest,
    repo: i32,
    host: HostId,
    words: HostWords,
    wake: Arc<dyn Fn() + Send + Sync>,
    shared: Arc<Shared>,
}

impl Ear {
    fn work(&mut self) {
        let mut was_deaf = false;
        while !self.ends() {
            match self.listen() {
                Ok(()) => was_deaf = false,
                Err(err) => {
                    if !std::mem::replace(&mut was_deaf, true) {
                        tracing::warn!(%err, "what other hosts commit is seen some seconds later");
                    }
                    self.session.drop_link();
                    self.session.pause(self.next_turn(Duration::from_millis(LISTEN_AGAIN_MS)));
                }
            }
        }
    }

    fn ends(&self) -> bool {
        self.shared.ends.load(Ordering::Acquire)
    }

    /// Listens until the connection is lost, or the thread has to end.
    fn listen(&mut self) -> Result<(), StoreError> {
        self.session.follow(&self.newest)?;
        let (all, own) = (channel_of_all(self.repo), channel_of(self.repo, self.host));
        self.session.ask(&[all, own].map(|it| Step::new(format!("listen {it}"))))?;
        // Earlier notices are lost.
        (self.wake)();
        while !self.ends() {
            let newest = self.newest.place();
            if self.session.is_before(&newest) || self.session.is_foreign(&newest) {
                return Err(StoreError::Away("it is an old primary, or has another database".into()));
            }
            let said = self.to_say();
            let waited = if !said.is_empty() {
                self.session.ask(&said)?;
                // Notices that come meanwhile are sent together.
                self.session.wait_for(sleep_for(WAKE_EVERY_MS))?
            } else {
                let shared = self.shared.clone();
                self.session.wait_for(async move { shared.turn.notified().await })?
            };
            if waited == Waited::Cut {
                return Err(StoreError::Away("the connection was lost".into()));
            }
        }
        Ok(())
    }

    /// Returns the statements that are due now: the notice of new commits, and words for single hosts.
    fn to_say(&self) -> Vec<Step> {
        let tell =
            |channel: String, what: String| Step::new("select pg_notify($1, $2)").with(channel).with(what);
        let news = self.shared.tells.swap(false, Ordering::AcqRel);
        let news = news.then(|| tell(channel_of_all(self.repo), self.host.to_string()));
        let words = std::iter::from_fn(|| self.words.next(self.host)).take(HOST_WORDS_AT_ONCE);
        let words = words.map(|(to, word)| tell(channel_of(self.repo, to), word));
        news.into_iter().chain(words).collect()
    }

    /// Returns a future for the end of a pause, which the end of the thread cuts short.
    fn next_turn(&self, most: Duration) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        async move {
            let until = tokio::time::Instant::now() + most;
            while !shared.ends.load(Ordering::Acquire) {
                if tokio::time::timeout_at(until, shared.turn.notified()).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns the channel on which daemons announce their commits.
fn channel_of_all(repo: i32) -> String {
    format!("provost_{repo}")
}

/// Returns the channel for words to one host.
fn channel_of(repo: i32, host: HostId) -> String {
    format!("provost_{repo}_{host}")
}

/// Pauses; the timer begins when the future is first polled.
async fn sleep_for(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}
