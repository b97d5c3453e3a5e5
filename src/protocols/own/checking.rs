//! A check of the whole journal, which goes on while a caller asks for its progress.
//!
//! At most one check runs. It changes nothing, and ends by itself when no caller has asked about it for a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::{EventSeq, Timestamp};
use provost_domain::Refusal;
use provost_passkey::record::{Checked, Record};
use provost_service::JournalVerdict;

/// How long a check goes on after the last request about it.
const UNASKED_MAX: Duration = Duration::from_secs(10);

/// The number of events after which a check tests whether a caller still asks about it.
const EVENTS_BETWEEN_LOOKS: u64 = 1_024;

/// The running check, or the last one.
#[derive(Default)]
pub(super) struct JournalChecks(Mutex<Option<Arc<Check>>>);

/// A check.
struct Check {
    number: u64,
    /// The last event of the journal when the check began.
    last: EventSeq,
    /// The last event that was checked so far.
    checked: AtomicU64,
    /// Until when the check counts as asked about.
    asked: Mutex<Instant>,
    found: watch::Sender<Option<wire::JournalFound>>,
}

impl Check {
    /// Notes that a caller waits for the check until this moment.
    fn is_asked_about(&self, until: Instant) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = until.max(*asked);
    }

    fn is_wanted(&self) -> bool {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.elapsed() < UNASKED_MAX
    }

    fn told(&self) -> wire::JournalCheck {
        let found = self.found.borrow().clone();
        wire::JournalCheck {
            check: self.number,
            checked: self.checked.load(Ordering::Relaxed),
            last: self.last.0,
            found,
        }
    }
}

/// The findings of a check so far.
struct Seen {
    check: Arc<Check>,
    record: Record,
    last: EventSeq,
    /// The first event whose signature is invalid, with the reason.
    unsigned: Option<(EventSeq, String)>,
}

impl Seen {
    fn of(check: Arc<Check>) -> Self {
        Self { check, record: Record::default(), last: EventSeq::default(), unsigned: None }
    }

    fn see(&mut self, seq: EventSeq, kind: &str, body: Option<&str>) -> bool {
        if seq <= self.last {
            // The connection to the store broke, and the check has begun again.
            *self = Self::of(self.check.clone());
        }
        self.last = seq;
        self.check.checked.store(seq.0, Ordering::Relaxed);
        if self.unsigned.is_none()
            && let Err(why) = self.record.take(kind, body)
        {
            self.unsigned = Some((seq, why));
        }
        !seq.0.is_multiple_of(EVENTS_BETWEEN_LOOKS) || self.check.is_wanted()
    }
}

impl JournalChecks {
    fn of(&self, number: u64) -> Option<Arc<Check>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(|it| it.number == number)
    }

    /// Returns the running check, or a new one; and whether it is new.
    fn going(&self, last: EventSeq) -> (Arc<Check>, bool) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(check) = known.as_ref().filter(|it| it.found.borrow().is_none()) {
            return (check.clone(), false);
        }
        let check = Arc::new(Check {
            number: known.as_ref().map_or(1, |it| it.number + 1),
            last,
            checked: AtomicU64::new(0),
            asked: Mutex::new(Instant::now()),
            found: watch::Sender::new(None),
        });
        *known = Some(check.clone());
        (check, true)
    }
}

impl Own {
    async fn begin_journal_check(&self) -> Answered<Arc<Check>> {
        let engine = self.0.provost.engine();
        let head = engine.journal_head().await.map_err(map::fault)?;
        let (check, begins) = self.0.checks.going(head.seq);
        if begins {
            let (own, check) = (self.clone(), check.clone());
            tokio::spawn(async move {
                let checked = own.0.provost.check_journal(Seen::of(check.clone()), Seen::see).await;
                let found = found(checked, own.0.provost.engine().now());
                check.found.send_replace(Some(found));
            });
        }
        Ok(check)
    }
}

impl Handles<endpoints::JournalCheck> for Own {
    async fn handle(&self, _call: &Call, query: wire::JournalCheckQuery) -> Answered<wire::JournalCheck> {
        let until = Instant::now() + patience(query.wait_ms);
        let check = match query.check {
            None => self.begin_journal_check().await?,
            Some(number) => self.0.checks.of(number).ok_or_else(|| {
                let message = format!("there is no check {number}: a later one has begun, or the daemon has");
                OwnError::new(StatusCode::NOT_FOUND, "check_not_found", message).hint("begin another one")
            })?,
        };
        check.is_asked_about(until);
        // This waits for the result; if the check goes on, the answer has its progress.
        let _ = timeout_at(until, check.found.subscribe().wait_for(Option::is_some)).await;
        check.is_asked_about(Instant::now());
        Ok(check.told())
    }
}

fn found(checked: Result<(JournalVerdict, Seen), Refusal>, now: Timestamp) -> wire::JournalFound {
    let none = wire::JournalFound { at: now.rfc3339(), ..wire::JournalFound::default() };
    let (verdict, seen) = match checked {
        Ok(checked) => checked,
        Err(refusal) => {
            let says = format!("The journal cannot be checked: {}.", map::fault(refusal).body.message);
            return wire::JournalFound { says, ..none };
        }
    };
    let bad =
        |seq: EventSeq, says: String| wire::JournalFound { says, first_bad: Some(seq.0), ..none.clone() };
    match verdict {
        JournalVerdict::Ok { events, head, .. } => {
            let Checked { signed, without_key, unvouched } = seen.record.checked();
            let (ok, says, first_bad) = match seen.unsigned {
                None => (true, format!("Nothing is wrong in {events} events."), None),
                Some((seq, why)) => {
                    let says = format!("The chain holds, and a signature does not: event {seq}: {why}.");
                    (false, says, Some(seq.0))
                }
            };
            let anchor = Some(head.to_string());
            wire::JournalFound { ok, says, first_bad, events, anchor, signed, without_key, unvouched, ..none }
        }
        JournalVerdict::Tampered { first_bad_seq, what } => {
            bad(first_bad_seq, format!("The journal has been changed: event {first_bad_seq}: {what}."))
        }
        JournalVerdict::Truncated { anchor, head } => bad(
            head.seq.next(),
            format!(
                "The end of the journal is missing: it had reached event {} and ends at {}.",
                anchor.seq, head.seq
            ),
        ),
        JournalVerdict::GivenUp { anchor, .. } => {
            bad(anchor.seq, format!("The journal's history up to event {} was given up.", anchor.seq))
        }
        JournalVerdict::CannotCheck(why) => {
            wire::JournalFound { says: format!("The journal was not checked: {why}."), ..none }
        }
    }
}
