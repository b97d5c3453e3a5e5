//! A turn that is begun together with the commit of the one before it, so that the next command of a busy host waits for one round trip and not
//! for two.
//!
//! Only a host without others begins turns ahead, since it keeps the repository's row meanwhile. It may be wrong: one that starts just then
//! waits for the row, and does not get it between a commit and what was sent with it. So some commits have no turn behind them.

use std::time::{Duration, Instant};

use tokio_postgres::Row as Line;

use super::session::{Place, Step, rows};
use super::{PostgresStore, Turn};
use crate::{Head, StoreError};
use provost_base::EventSeq;
use provost_base::limits::{
    AHEAD_LOCK_TIMEOUT_MS, IDLE_IN_TRANSACTION_MS, LOCK_TIMEOUT_MS, TURN_AHEAD_MS_MAX, TURN_MS_MAX,
    TURNS_AHEAD_MS_MAX,
};

/// The server that has begun a turn, and its answers.
pub(super) type Beginning = (Place, Vec<Vec<Line>>);

impl PostgresStore {
    /// Returns the answers to the beginning of a turn after `head` that was sent with the last commit; `None` if there is none that can be used.
    ///
    /// # Errors
    /// [`StoreError::Away`] if the connection is lost.
    pub(super) fn begun_ahead(&mut self, head: Head) -> Result<Option<Beginning>, StoreError> {
        let begun_for = self.ahead.take();
        let Some(age) = self.session.ahead_for() else { return Ok(None) };
        if age >= Duration::from_millis(IDLE_IN_TRANSACTION_MS) {
            // The server has ended the session by now.
            self.session.drop_link();
        }
        if !self.session.is_linked() {
            // A new connection knows nothing of it.
            return Ok(None);
        }
        if begun_for != Some(head) || age >= Duration::from_millis(TURN_AHEAD_MS_MAX) {
            // It asks for what comes after another entry, or its time is over.
            self.session.end_ahead()?;
            return Ok(None);
        }
        let Some(answers) = self.session.begun_ahead(Duration::from_millis(TURN_MS_MAX))? else {
            return Ok(None);
        };
        if !self.session.is_linked() {
            // The server has ended the session since, and others may have gone on.
            return Ok(None);
        }
        self.turn = Some(Turn::default());
        match rows(answers) {
            Ok(mut answers) => {
                // Those of the statements that only a turn ahead has.
                for at in [3, 1] {
                    answers.remove(at);
                }
                Ok(Some((self.session.place()?.clone(), answers)))
            }
            Err(err) => {
                // As after a wait for the row that was too long. The caller may get it now.
                tracing::debug!(%err, "a turn could not be begun ahead");
                self.roll_back();
                Ok(None)
            }
        }
    }

    /// Returns the statements that begin a turn ahead. Another session may have the row: then this one does not wait for it for long, since the next command
    /// would wait for the end of that, and then begin once more.
    pub(super) fn beginning_ahead(&self, head: Head, event: EventSeq) -> Result<Vec<Step>, StoreError> {
        let mut steps = self.beginning(head, event)?;
        steps.insert(1, Step::new(format!("set local lock_timeout = {AHEAD_LOCK_TIMEOUT_MS}")));
        // What the turn changes later may wait as in any other turn.
        steps.insert(3, Step::new(format!("set local lock_timeout = {LOCK_TIMEOUT_MS}")));
        Ok(steps)
    }

    /// Checks whether the next turn is to be begun with this commit.
    pub(super) fn may_begin_ahead(&mut self) -> bool {
        if !self.is_asked_about_ahead || self.is_heard {
            return false;
        }
        let since = *self.ahead_since.get_or_insert_with(Instant::now);
        let may = since.elapsed() < Duration::from_millis(TURNS_AHEAD_MS_MAX);
        if !may {
            self.ahead_since = None;
        }
        may
    }

    /// Returns how long a turn that was begun ahead stays; ends it if its time is over.
    ///
    /// # Errors
    /// If the server does not answer.
    pub(super) fn stays_ahead(&mut self) -> Result<Option<Duration>, StoreError> {
        self.is_asked_about_ahead = true;
        let Some(age) = self.session.ahead_for() else { return Ok(None) };
        let left = Duration::from_millis(TURN_AHEAD_MS_MAX).saturating_sub(age);
        if left.is_zero() {
            self.ahead_since = None;
            self.session.end_ahead()?;
            return Ok(None);
        }
        Ok(Some(left))
    }
}
