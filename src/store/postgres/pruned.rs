//! The pruned part of the journal: up to which event the texts may be missing, and a daemon that was asleep while they were pruned.
//!
//! Each checkpoint has that number under a seal with the journal's key, which is not in the database, and so has the repository's row.

use std::time::Duration;

use super::session::Step;
use super::{PostgresStore, load, unreadable};
use crate::codec::{before, int, nat};
use crate::host_keys::At;
use crate::{Head, StoreError};
use provost_base::limits::{AWAKE_MS_MAX, CLOCK_SLACK_MS, EVENT_TEXTS_STAY_MS, LONG_STATEMENT_MS_MAX};
use provost_base::{EventSeq, Timestamp};

/// The server's own clock. The repository's row has a time that each login can set ahead.
const CLOCK: &str = "select (extract(epoch from clock_timestamp()) * 1000)::bigint";

/// The same, where the log has no entry behind a given one.
const CLOCK_IF_READ: &str = "select (extract(epoch from clock_timestamp()) * 1000)::bigint
    where not exists (select from provost.entry where repo = $1 and n > $2)";

const SLACK: Duration = Duration::from_millis(CLOCK_SLACK_MS);

/// The first event behind a given one that has no text.
const WITHOUT_TEXT: &str =
    "select seq from provost.event where repo = $1 and seq > $2 and body is null order by seq limit 1";

impl PostgresStore {
    /// Returns the number in the last checkpoint; `None` if there is no checkpoint, or none with the journal's seal.
    fn sealed_pruned_to(&mut self) -> Result<Option<EventSeq>, StoreError> {
        let last = load::last_checkpoint(&mut self.session, self.repo, &self.key)?;
        Ok(last.filter(|it| self.key.is_sealed(it)).map(|it| it.pruned_to))
    }

    /// Notes that this daemon has read everything, if the log has no entry behind `head`. Called before a turn if the one before has failed, and
    /// before a load: otherwise a login that keeps the repository's row could make an awake daemon accept missing texts, as a daemon does that has
    /// slept. It asks the table of entries alone. Without an answer in time it notes nothing, and the connection is gone.
    ///
    /// # Errors
    /// If no server can be reached.
    pub(super) fn note_awake(&mut self, head: Head) -> Result<(), StoreError> {
        self.connect()?;
        let step = Step::new(CLOCK_IF_READ).with(self.repo).with(int(head.n.0)?);
        let limit = Duration::from_millis(AWAKE_MS_MAX);
        let seen = self.session.ask_within(&[step], limit).and_then(|mut answers| {
            let rows = answers.pop().unwrap_or_default();
            rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)
        });
        match seen {
            // A turn of another daemon may be under way, whose events have an earlier time than this one.
            Ok(Some(clock)) => self.looked = self.looked.max(Some(before(Timestamp(clock), SLACK))),
            Ok(None) => {}
            Err(err) => tracing::debug!(%err, "whether the log has anything new is not known"),
        }
        Ok(())
    }

    /// Checks whether this daemon had not seen the end of the log for so long, at a time of the server's clock, that texts which it has not read
    /// may have been pruned. Nothing is known of a time that is ahead, as after a clock that was set back.
    pub(super) fn has_slept_at(&self, now: Timestamp) -> bool {
        let was_ahead = |at: Timestamp| before(at, SLACK) > now;
        self.looked.is_some_and(|at| was_ahead(at) || now.since_ms(at) >= EVENT_TEXTS_STAY_MS)
    }

    /// Checks whether the texts up to this event, which this daemon has not read, were pruned while it was asleep. A daemon that looks every few
    /// seconds has read each event long before a host may prune the event's text, so at such a daemon a missing text is an attack.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn slept_while_pruned(&mut self, upto: EventSeq) -> Result<bool, StoreError> {
        let rows = self.session.rows(Step::new(CLOCK))?;
        let now: Option<i64> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
        if !now.is_some_and(|now| self.has_slept_at(Timestamp(now))) {
            return Ok(false);
        }
        let is_sealed = self.sealed_pruned_to()?.is_some_and(|to| upto <= to);
        if is_sealed {
            tracing::warn!(
                event = upto.0,
                "this host was asleep for longer than texts of events are kept; it reads the rows instead of the log"
            );
        }
        Ok(is_sealed)
    }

    /// Refuses a journal with an event without its text, behind what this daemon had checked before (`since`) and behind what was pruned.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the first such event.
    pub(super) fn must_have_texts(&mut self, since: At, pruned_to: EventSeq) -> Result<(), StoreError> {
        let after = int(since.event.max(pruned_to).0)?;
        // Also where there is no answer, the next attempt has to look again.
        let checked = std::mem::replace(&mut self.keys.known.checked, since);
        let step = Step::new(WITHOUT_TEXT).with(self.repo).with(after);
        let mut answers = self.session.ask_within(&[step], Duration::from_millis(LONG_STATEMENT_MS_MAX))?;
        let rows = answers.pop().unwrap_or_default();
        let Some(row) = rows.first() else {
            self.keys.known.checked = checked;
            return Ok(());
        };
        let seq = EventSeq(nat(row.try_get(0).map_err(unreadable)?)?);
        let what = format!(
            "the text of event {seq} is missing, and was not pruned: have the database's administrator put it back from a copy of the database"
        );
        Err(StoreError::BrokenLog { n: self.entry_of(seq)?, what: what.into() })
    }
}
