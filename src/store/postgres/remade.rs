//! The repository's row, worked out again at a load from what no login of the database can make: signed entries, the chain of the journal, and
//! checkpoints and marks with a seal.
//!
//! This is needed where the row's seal does not hold, as after a login has changed the row or the tables got their column for it, and where
//! the row is an earlier one, with a seal. Numbers go on above all that may have been given, as after a failover.

use serde::Deserialize;
use serde_json::Value;
use tokio_postgres::Row;

use super::behind::must_be_in_reach;
use super::bounds::{self, Page, in_row};
use super::repo_row::{self, RepoRow};
use super::session::{Place, Session, Step};
use super::signing::HostKeys;
use super::{PostgresStore, Stage, Written, entry, load, unreadable};
use crate::codec::{int, nat, parse};
use crate::host_keys::At;
use crate::journal::{Checkpoint, Key};
use crate::marks::FoundMarks;
use crate::sqlite::highest_of;
use crate::{Head, JournalHead, StoreError};
use provost_base::limits::{ENTRIES_COUNTED, NUMBERS_SKIPPED, POSTGRES_NUMBER_MAX};
use provost_base::{ApplyId, EntryNo, EventSeq, HostId, Ticket};
use provost_domain::Counters;

/// The newest row of entries, and the signature at the end of the journal; the later one of the two is the end of the log.
const LAST_ENTRY: &str = "select n, left(host, 64), substr(mac, 1, 33), substr(sig, 1, 65) from provost.entry where repo = $1 order by n desc limit 1";
const LAST_SIGNED: &str = "select n, left(host, 64), substr(mac, 1, 33), substr(sig, 1, 65) from provost.signature where repo = $1 and event = $2 and event > 0";

/// The highest place of a finished task, and the last event in the index. Each login can write both, so numbers above `$3` do not count.
const TOLD: &str = "select
    coalesce((select finished_seq from provost.task where repo = $1 and not live and finished_seq between 0 and $3::bigint
        order by finished_seq desc limit 1), 0),
    coalesce((select seq from provost.search_event where repo = $1 and seq between 0 and $2 order by seq desc limit 1), 0)";

/// The last entry of the log as a row says, which counts once its signature was checked.
pub(super) struct LastEntry {
    entry: Head,
    /// The host, and its signature; `None` for a log without entries.
    signed: Option<(HostId, Vec<u8>)>,
}

impl LastEntry {
    fn read(table: &str, row: &Row) -> Result<Self, StoreError> {
        let n: i64 = row.try_get(0).map_err(unreadable)?;
        in_row(table, n, || {
            let host: &str = row.try_get(1).map_err(unreadable)?;
            let host = host.parse().map_err(StoreError::damaged)?;
            let signature: Option<Vec<u8>> = row.try_get(3).map_err(unreadable)?;
            let entry = Head { n: EntryNo(nat(n)?), mac: load::digest(row, 2)? };
            Ok(Self { entry, signed: Some((host, signature.unwrap_or_default())) })
        })
    }

    /// Returns the last entry of a log whose journal ends with `event`.
    ///
    /// # Errors
    /// If the database does not answer, or the row cannot be read.
    fn of(session: &mut Session, repo: i32, event: EventSeq) -> Result<Self, StoreError> {
        let signed = Step::new(LAST_SIGNED).with(repo).with(int(event.0)?);
        let answers = session.ask(&[Step::new(LAST_ENTRY).with(repo), signed])?;
        let mut last = Self { entry: Head::default(), signed: None };
        for (rows, table) in answers.iter().zip(["entry", "signature"]) {
            let found = rows.first().map(|row| Self::read(table, row)).transpose()?;
            last = found.filter(|it| it.entry.n > last.entry.n).unwrap_or(last);
        }
        Ok(last)
    }

    /// Checks that a host has signed it, where the journal ends with it.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] if none has.
    pub(super) fn must_be_signed(
        &self,
        of: (&mut Session, i32, &Key),
        keys: &mut HostKeys,
        journal: &JournalHead,
    ) -> Result<(), StoreError> {
        let Some((host, signature)) = &self.signed else { return Ok(()) };
        if keys.known.from.is_none_or(|from| self.entry.n <= from.n) {
            // It is from before hosts had keys.
            return Ok(());
        }
        keys.check(of, (*host, self.entry.n, self.entry.mac), journal, Some(signature))
    }
}

/// Where a row is worked out from.
pub(super) struct Sources<'a> {
    pub(super) session: &'a mut Session,
    pub(super) repo: i32,
    pub(super) key: &'a Key,
    /// The marks of the state folder.
    pub(super) marks: &'a FoundMarks,
    /// The end of the journal and the last checkpoint, both checked.
    pub(super) journal: &'a JournalHead,
    pub(super) checkpoint: Option<&'a Checkpoint>,
}

impl Sources<'_> {
    /// Returns the highest numbers that are known to have been given, up to the end of the log; `known` is what the daemon knows of.
    fn given(&mut self, end: Head, known: Counters) -> Result<Counters, StoreError> {
        let mut all = vec![known];
        all.extend(self.checkpoint.map(|it| parse::<Counters>(&it.counters)).transpose()?);
        all.extend(self.marks.all().map(|it| it.counters));
        all.extend(self.counted(end)?);
        Ok(Counters { event: self.journal.seq, ..highest_of(&all) })
    }

    /// Works the row out, for a database at `place`, where the daemon knows of these numbers. Of the row as it was read, the format, the version
    /// of the tables and the clock remain.
    ///
    /// # Errors
    /// If the database does not answer, or a row cannot be read.
    pub(super) fn remake(
        mut self,
        was: &RepoRow,
        place: &Place,
        known: Counters,
    ) -> Result<Remade, StoreError> {
        let (repo, seq) = (self.repo, self.journal.seq);
        let last = LastEntry::of(self.session, repo, seq)?;
        let given = self.given(last.entry, known)?;
        let is_empty = last.entry == Head::default() && seq == EventSeq::default();
        let next = if is_empty { given } else { above(&given) };
        let told =
            self.session.rows(Step::new(TOLD).with(repo).with(int(seq.0)?).with(POSTGRES_NUMBER_MAX))?;
        let told = told.first().ok_or_else(|| StoreError::damaged("the tables have no answer"))?;
        let state = Written {
            entry: last.entry,
            head: *self.journal,
            own_n: 0,
            pruned_to: self.checkpoint.map(|it| it.pruned_to).unwrap_or_default(),
            checkpoint: self.checkpoint.map(|it| it.head.seq).unwrap_or_default(),
            counters: next,
            finished: told.try_get(0).map_err(unreadable)?,
            indexed_to: EventSeq(nat(told.try_get(1).map_err(unreadable)?)?),
        };
        let at = load::event_time(self.session, repo, seq)?;
        Ok(Remade { row: was.with(state, at, place.clone()), last, given })
    }

    /// Returns the numbers that the newest entries tell: of those from which an unbroken chain leads to the last one, whose signature is checked.
    fn counted(&mut self, last: Head) -> Result<Vec<Counters>, StoreError> {
        let mut n = last.n.0.saturating_sub(ENTRIES_COUNTED);
        let first = Some(Head::default()).filter(|it| it.n.0 == n);
        let (mut before, mut found): (Option<Head>, Vec<Counters>) = (first, Vec::new());
        loop {
            let rows =
                self.session.rows(bounds::entries(self.repo, int(n)?, Page::of(int(ENTRIES_COUNTED)?)))?;
            for row in &rows {
                let Ok(it) = entry::read(row) else {
                    // A login has added it, and no chain leads over it.
                    (n, before) = (nat(row.try_get(0).map_err(unreadable)?)?, None);
                    continue;
                };
                if !before.is_some_and(|before| self.key.is_next_entry(&before, &it)) {
                    found.clear();
                } else if let Some(counters) = counted_in(&it.body) {
                    found.push(counters);
                }
                (n, before) = (it.n.0, Some(it.head()));
            }
            if rows.is_empty() || n >= last.n.0 {
                return Ok(if before == Some(last) { found } else { Vec::new() });
            }
        }
    }
}

/// Returns the numbers in an entry's body, which may have changes that this release does not know.
fn counted_in(body: &str) -> Option<Counters> {
    #[derive(Deserialize)]
    struct Body {
        changes: Vec<Value>,
    }
    let body: Body = serde_json::from_str(body).ok()?;
    let counted = body.changes.into_iter().rev().find_map(|mut it| it.get_mut("count").map(Value::take))?;
    serde_json::from_value(counted).ok()
}

/// Returns numbers above all that may have been given, where those were the last known ones.
pub(super) fn above(known: &Counters) -> Counters {
    let mut next = known.skipped(NUMBERS_SKIPPED);
    next.apply = ApplyId(next.apply.0.saturating_add(NUMBERS_SKIPPED));
    next.ticket = Ticket(next.ticket.0.saturating_add(NUMBERS_SKIPPED));
    next
}

/// A row that was worked out.
pub(super) struct Remade {
    pub(super) row: RepoRow,
    /// The end of the log that it has.
    pub(super) last: LastEntry,
    /// The highest numbers that are known to have been given. The row has higher ones, above which the next turn goes on with an entry that tells it.
    pub(super) given: Counters,
}

impl PostgresStore {
    /// Checks whether a host has sealed the row, and the log ends with its end: with an entry, or after an accepted loss with a signature.
    ///
    /// # Errors
    /// If the database does not answer, or a row cannot be read.
    pub(super) fn is_true(&mut self, row: &RepoRow) -> Result<bool, StoreError> {
        if !row.is_sealed(&self.key) {
            return Ok(false);
        }
        let last = LastEntry::of(&mut self.session, self.repo, row.state.head.seq)?.entry;
        Ok(last == row.state.entry || self.last_entry()? == Some(row.state.entry))
    }

    /// Refuses numbers of a sealed row that are further ahead than hosts skip.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the end of the log.
    pub(super) fn must_have_numbers_in_reach(
        &mut self,
        row: &RepoRow,
        journal: &JournalHead,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(), StoreError> {
        let (end, known) = (row.state.entry, self.known_numbers());
        let Self { session, key, known: marks, repo, .. } = self;
        let given = Sources { session, repo: *repo, key, marks, journal, checkpoint }.given(end, known)?;
        must_be_in_reach(end.n, &row.state.counters, &given)
    }

    fn known_numbers(&self) -> Counters {
        if self.stage == Stage::Running { self.written.counters } else { Counters::default() }
    }

    /// Checks whether this is the end of the log, as far as the log has entries.
    ///
    /// # Errors
    /// If the database does not answer, or a row cannot be read.
    pub(super) fn ends_at(&mut self, end: Head) -> Result<bool, StoreError> {
        Ok(self.last_entry()?.is_none_or(|last| last == end))
    }

    fn last_entry(&mut self) -> Result<Option<Head>, StoreError> {
        let rows = self.session.rows(Step::new(LAST_ENTRY).with(self.repo))?;
        Ok(rows.first().map(|it| LastEntry::read("entry", it)).transpose()?.map(|it| it.entry))
    }

    /// Works the row out.
    ///
    /// # Errors
    /// If the database does not answer, or a row cannot be read.
    pub(super) fn remade(
        &mut self,
        row: &RepoRow,
        (journal, checkpoint): (&JournalHead, Option<&Checkpoint>),
        place: &Place,
    ) -> Result<Remade, StoreError> {
        let known = self.known_numbers();
        let Self { session, key, known: marks, repo, .. } = self;
        Sources { session, repo: *repo, key, marks, journal, checkpoint }.remake(row, place, known)
    }

    /// Writes the row that was worked out, after all signatures behind `since` were checked.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] if its end of the log is not signed, or is behind what this daemon has checked before.
    pub(super) fn take_remade(&mut self, remade: &Remade, since: At) -> Result<(), StoreError> {
        let Remade { row, last, .. } = remade;
        let Self { keys, session, key, repo, .. } = self;
        last.must_be_signed((session, *repo, key), keys, &row.state.head)?;
        let end = row.state.entry.n;
        if end < since.n {
            let what = format!("the log ends there, and this host has read it up to entry {}", since.n);
            return Err(StoreError::BrokenLog { n: end, what: what.into() });
        }
        let moves = row.moves(key, &row.state, (row.at, &row.place))?;
        session.ask(&[repo_row::unseals(*repo), moves])?;
        tracing::warn!(
            entry = end.0,
            event = row.state.head.seq.0,
            "the repository's row had no seal of a host for the end of the log, as after `provost store migrate` or a change by a login of the \
             database: it is worked out from the signed log, and numbers go on above those that may have been given"
        );
        Ok(())
    }
}
