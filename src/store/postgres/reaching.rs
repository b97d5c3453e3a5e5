//! Connects to the database beside the engine, which answers questions meanwhile. It does so while the engine has given the database up.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::PostgresStore;
use super::session::{Place, Purpose, Session};
use crate::StoreError;
use provost_base::limits::REACHED_AT_ONCE_MS_MAX;

/// What an attempt gives: the connected session, or why there is none.
type Attempt = Receiver<Result<Session, StoreError>>;

/// The attempt that is under way, and the reason why the server was not reached before it.
pub(super) struct Reaching {
    attempt: Option<Attempt>,
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
        // An earlier attempt that has failed says nothing of this moment: another one begins at once.
        if let Some(earlier) = self.reaching.attempt.take()
            && self.is_adopted(earlier).is_ok_and(|is_adopted| is_adopted)
        {
            return Ok(());
        }
        if self.reaching.attempt.is_none() {
            let session = Session::new(self.session.servers.clone(), Purpose::Write)?;
            let attempt = attempt(session, self.remembered.place.clone())?;
            if self.is_adopted(attempt)? {
                return Ok(());
            }
        }
        Err(StoreError::Away(self.reaching.why.clone()))
    }

    /// Takes over the connection of an attempt that has one. Returns `false` if the attempt is still under way.
    fn is_adopted(&mut self, attempt: Attempt) -> Result<bool, StoreError> {
        match attempt.recv_timeout(Duration::from_millis(REACHED_AT_ONCE_MS_MAX)) {
            Ok(Ok(session)) => {
                (self.session, self.turn) = (session, None);
                self.session.hurry();
                Ok(true)
            }
            Ok(Err(err)) => {
                if let StoreError::Away(why) = &err {
                    self.reaching.note(why);
                }
                Err(err)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.reaching.attempt = Some(attempt);
                Ok(false)
            }
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::NotRunning),
        }
    }
}

/// Has a thread connect this session.
fn attempt(mut session: Session, least: Place) -> Result<Attempt, StoreError> {
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
