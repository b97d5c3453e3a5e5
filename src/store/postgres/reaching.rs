//! Connects to the database beside the engine, which answers questions meanwhile. It does so while the engine has given the database up.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::PostgresStore;
use super::session::{Place, Purpose, Session};
use crate::StoreError;
use provost_base::limits::REACHED_AT_ONCE_MS_MAX;

/// The attempt that is under way, and the reason why the server was not reached before it.
pub(super) struct Reaching {
    attempt: Option<Receiver<Result<Session, StoreError>>>,
    why: Box<str>,
}

impl Default for Reaching {
    fn default() -> Self {
        Self { attempt: None, why: "it has not answered yet".into() }
    }
}

impl Reaching {
    /// Notes why the server was not reached.
    pub(super) fn note(&mut self, why: &str) {
        self.why = why.into();
    }
}

impl PostgresStore {
    /// Takes over the connection that a thread has made. If there is none yet, returns why there was none before, and the next call
    /// looks again.
    ///
    /// # Errors
    /// As for [`Session::connect`].
    pub(super) fn must_be_reached(&mut self) -> Result<(), StoreError> {
        if self.session.is_linked() {
            return Ok(());
        }
        let attempt = match self.reaching.attempt.take() {
            Some(it) => it,
            None => {
                let session = Session::new(self.session.servers.clone(), Purpose::Write)?;
                attempt(session, self.remembered.place.clone())?
            }
        };
        match attempt.recv_timeout(Duration::from_millis(REACHED_AT_ONCE_MS_MAX)) {
            Ok(Ok(session)) => {
                (self.session, self.turn) = (session, None);
                Ok(())
            }
            Ok(Err(err)) => {
                if let StoreError::Away(why) = &err {
                    self.reaching.note(why);
                }
                Err(err)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.reaching.attempt = Some(attempt);
                Err(StoreError::Away(self.reaching.why.clone()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::NotRunning),
        }
    }
}

/// Has a thread connect this session.
fn attempt(mut session: Session, least: Place) -> Result<Receiver<Result<Session, StoreError>>, StoreError> {
    let (give, take) = channel();
    let work = move || {
        let done = session.connect(&least).map(drop);
        // The store may have been closed meanwhile.
        let _ = give.send(done.map(|()| session));
    };
    let no_thread = |source| StoreError::Io { path: "a thread for the database".into(), source };
    std::thread::Builder::new().name("reaches".into()).spawn(work).map_err(no_thread)?;
    Ok(take)
}
