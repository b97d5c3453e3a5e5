//! The entries that others have committed, read in a turn or out of turn, checked, and the state with them.

use tokio_postgres::Row as Line;

use super::bounds::{self, Page};
use super::entry;
use super::load;
use super::repo_row::{REPO_ROW, RepoRow};
use super::session::Step;
use super::start::mac_of;
use super::{PostgresStore, Written, signing, unreadable};
use crate::codec::{self, int};
use crate::host_keys::At;
use crate::{Behind, Head, JournalHead, StoreError, StoredEvent};
use provost_base::limits::{NUMBERS_SKIPPED_AT_ONCE_MAX, POSTGRES_PAGE_BYTES_MAX, POSTGRES_TURN_BYTES_MAX};
use provost_base::{Digest, EntryNo, EventSeq};
use provost_domain::{Change, Counters, LogEntry};

/// The highest number of entries read at a time; if there are more, the rows are read again.
const BITE: i64 = 2_000;
/// The highest number of events read along with them. If the entries have more, the rest costs a round trip.
const EVENTS_BITE: i64 = 2_000;

/// Entries whose links hold, and the ends of log and journal with them.
type Opened = (Vec<LogEntry>, (Head, JournalHead));

impl PostgresStore {
    /// Returns the numbers that were given last as far as the entries tell that this daemon has folded, and these, which come after them.
    pub(super) fn counted(&self, entries: &[LogEntry]) -> Counters {
        let counted = entries.iter().rev().find_map(|it| codec::counted(&it.changes));
        counted.unwrap_or(self.written.counters)
    }

    /// Returns the entries committed after `head`, and the state with them.
    pub(super) fn behind(
        &mut self,
        head: Head,
        row: &RepoRow,
        (lines, events): (&[Line], &[Line]),
    ) -> Result<(Behind, Written), StoreError> {
        let end = row.state.entry;
        let was = self.written.head.seq;
        let went_back = || StoreError::WentBack { was, is: row.state.head.seq };
        if is_before(end, head) {
            return Err(went_back());
        }
        let ours = &self.written;
        let mut at = Written { own_n: ours.own_n, ..row.state.clone() };
        let place = self.session.place()?;
        if row.place == *place && self.remembered.place == *place {
            // A row from before the last pruning or indexing has a seal, too. After a failover, what this daemon did last may be lost.
            at.checkpoint = at.checkpoint.max(ours.checkpoint);
            at.pruned_to = at.pruned_to.max(ours.pruned_to);
            at.indexed_to = at.indexed_to.max(ours.indexed_to);
        }
        if end.n.0 - head.n.0 > lines.len() as u64 {
            return Ok((Behind::TooFar, at));
        }
        let Some((entries, ends)) = self.entries_after(head, row.state.head, (lines, events))? else {
            return Ok((Behind::TooFar, at));
        };
        if ends != (end, row.state.head) {
            return Err(match entries.is_empty() {
                true => went_back(),
                false => StoreError::BrokenLog {
                    n: end.n,
                    what: "the entries do not lead to the head of the log".into(),
                },
            });
        }
        let counted = self.counted(&entries);
        at.counters = row.state.counters.raised(&counted);
        must_be_in_reach(end.n, &at.counters, &counted)?;
        // Entries up to the engine's own head have been counted already.
        let new = entries.iter().filter(|it| it.n > self.written.entry.n);
        at.own_n += new.filter(|it| it.by == self.daemon()).count() as u64;
        Ok((if entries.is_empty() { Behind::Nothing } else { Behind::Entries(entries) }, at))
    }

    /// Returns the entries committed after `head`, and the state with them, where no host has sealed the repository's row: no value of the row
    /// counts. The commit of the turn writes the right ones. If this daemon does not know them, it has to load.
    pub(super) fn behind_unsealed(
        &mut self,
        head: Head,
        (lines, events): (&[Line], &[Line]),
    ) -> Result<(Behind, Written), StoreError> {
        let too_far = (Behind::TooFar, Written::default());
        if head != self.written.entry {
            return Ok(too_far);
        }
        let Some((entries, (end, journal))) = self.entries_after(head, self.written.head, (lines, events))?
        else {
            return Ok(too_far);
        };
        if !self.ends_at(end)? {
            return Ok(too_far);
        }
        tracing::warn!(
            entry = end.n.0,
            "a login of the database has changed the repository's row; this turn writes it again"
        );
        let mut at = Written { entry: end, head: journal, ..self.written.clone() };
        at.counters = self.counted(&entries);
        at.finished = at.finished.saturating_add(finished(&entries));
        at.own_n += entries.iter().filter(|it| it.by == self.daemon()).count() as u64;
        Ok((if entries.is_empty() { Behind::Nothing } else { Behind::Entries(entries) }, at))
    }

    /// Reads entries after a head.
    pub(super) fn entries_step(&self, head: Head) -> Result<Step, StoreError> {
        Ok(bounds::entries(self.repo, int(head.n.0)?, Page::of_turn(BITE)))
    }

    /// Reads events after an end of the journal, together with the entries that name them: a separate
    /// query would cost a round trip while this daemon has the row.
    pub(super) fn events_step(&self, after: EventSeq) -> Result<Step, StoreError> {
        Ok(bounds::events_to_end(self.repo, int(after.0)?, Page::of_turn(EVENTS_BITE)))
    }

    /// Returns the entries after `head`, whose links hold, with their events; and the ends of log and journal with
    /// them; `None` if they have too many bytes, or if texts of these events were pruned while this daemon was asleep, so
    /// that only the rows say what the entries have done. For a head older than the engine's, the database gives the end of the journal at that time;
    /// without events it ends at `last`. The events in `read` come after the engine's own end.
    fn entries_after(
        &mut self,
        mut head: Head,
        last: JournalHead,
        (lines, read): (&[Line], &[Line]),
    ) -> Result<Option<Opened>, StoreError> {
        let sealed = lines.iter().map(entry::read).collect::<Result<Vec<_>, _>>()?;
        let signatures = lines.iter().map(entry::signature).collect::<Result<Vec<_>, _>>()?;
        let numbers = sealed.iter().map(entry::events_of).collect::<Result<Vec<_>, _>>()?;
        let first = numbers.iter().flatten().min().copied();
        let mut journal = match first {
            _ if head == self.written.entry => self.written.head,
            None => last,
            Some(first) => {
                let seq = EventSeq(first.0.saturating_sub(1));
                let mac = load::event_mac(&mut self.session, self.repo, seq)?.unwrap_or_default();
                JournalHead { seq, mac }
            }
        };
        let mut events = Vec::new();
        let last = numbers.iter().flatten().max();
        let needed = last.map_or(0, |it| it.0.saturating_sub(journal.seq.0));
        if journal.seq == self.written.head.seq && needed <= read.len() as u64 {
            let read = read.iter().take(usize::try_from(needed).unwrap_or(usize::MAX));
            events = read.map(load::event).collect::<Result<Vec<_>, _>>()?;
        } else if let Some(last) = last {
            if journal.seq == self.written.head.seq {
                let read = read.iter().map(load::event).collect::<Result<Vec<_>, _>>()?;
                if self.turn.is_some() && bytes_of(&read) >= POSTGRES_TURN_BYTES_MAX {
                    // A second query would read the same.
                    return Ok(None);
                }
            }
            let (page, most) = match self.turn {
                Some(_) => (Page::of_turn(i64::MAX), POSTGRES_TURN_BYTES_MAX),
                None => (Page::of(i64::MAX), POSTGRES_PAGE_BYTES_MAX),
            };
            let step = bounds::events(self.repo, (int(journal.seq.0)?, int(last.0)?), page);
            events = self.session.rows(step)?.iter().map(load::event).collect::<Result<Vec<_>, _>>()?;
            if (events.len() as u64) < needed && bytes_of(&events) >= most {
                return Ok(None);
            }
        }
        let lost = events.iter().rfind(|it| it.body.is_none()).map(|it| it.seq);
        if let Some(lost) = lost
            && self.slept_while_pruned(lost)?
        {
            return Ok(None);
        }
        let (mut found, mut events) = (Vec::with_capacity(sealed.len()), events.into_iter());
        for ((sealed, numbers), signature) in sealed.into_iter().zip(numbers).zip(signatures) {
            let is_first = found.is_empty();
            let of_it = events.by_ref().take(numbers.len()).collect();
            match self.key.open_entry((&mut head, &mut journal), sealed, of_it) {
                Ok(mut entry) => {
                    self.must_be_signed(&entry, &journal, signature)?;
                    entry.role = self.keys.known.role_of(entry.by.host);
                    found.push(entry);
                }
                // Other daemons may have continued from an older end than this daemon's.
                Err(StoreError::BrokenLog { .. }) if is_first && !self.has_entry(head)? => {
                    return Err(StoreError::WentBack { was: journal.seq, is: journal.seq });
                }
                Err(err) => return Err(self.with_version(err)),
            }
        }
        Ok(Some((found, (head, journal))))
    }

    /// Checks that the host which an entry names has signed it, and that its events name no other host.
    fn must_be_signed(
        &mut self,
        it: &LogEntry,
        journal: &JournalHead,
        signature: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        // This comes first: the rest is only checked once.
        if let Some(event) = it.events.iter().find(|event| !event.host.is_alone() && event.host != it.by.host)
        {
            let what = format!("event {} in it names another host than {}", event.seq, it.by.host.short());
            return Err(StoreError::BrokenLog { n: it.n, what: what.into() });
        }
        let Self { keys, session, key, repo, .. } = self;
        keys.check((session, *repo, key), (it.by.host, it.n, it.mac), journal, signature)?;
        // The engine checks whether the role of a host permits an entry; removed hosts are already noted here.
        if let Some(gone) = signing::removed(&it.changes).find(|gone| !keys.may_remove(it.by.host, *gone)) {
            let what = format!(
                "the host {} has written it, and that machine has joined to work alone, and it says that the host {} has gone",
                it.by.host.short(),
                gone.short()
            );
            keys.distrust(it.n, &what);
            keys.keep()?;
            return Err(StoreError::BrokenLog { n: it.n, what: what.into() });
        }
        keys.follow(At { n: it.n, event: journal.seq }, &it.changes);
        Ok(())
    }

    /// Checks whether the log has this entry, if it still keeps it.
    fn has_entry(&mut self, head: Head) -> Result<bool, StoreError> {
        Ok(self.link_of_entry(head.n)?.is_none_or(|mac| mac == head.mac))
    }

    /// Checks whether the row is an earlier one, with its seal: the log has not gone back, and still has the entry up to which this daemon has read.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn is_from_before(&mut self, head: Head, row: &RepoRow) -> Result<bool, StoreError> {
        Ok(is_before(row.state.entry, head) && self.link_of_entry(head.n)? == Some(head.mac))
    }

    fn link_of_entry(&mut self, n: EntryNo) -> Result<Option<Digest>, StoreError> {
        let sql = "select substr(mac, 1, 33) from provost.entry where repo = $1 and n = $2";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(int(n.0)?))?;
        let mac: Option<Vec<u8>> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
        mac.map(|mac| bounds::in_row("entry", n, || mac_of(&mac))).transpose()
    }

    /// Checks whether a host that is not known as a full one has written an entry after `head`: what it decides is judged when the entry is folded,
    /// and the rows do not say who has written them.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn is_followed_by_work(&mut self, head: Head) -> Result<bool, StoreError> {
        let full = self.keys.known.hosts.iter().filter(|it| it.role.is_full());
        let full: Vec<String> = full.map(|it| it.host.to_string()).collect();
        let sql =
            "select 1 from provost.entry where repo = $1 and n > $2 and host <> all($3::text[]) limit 1";
        let step = Step::new(sql).with(self.repo).with(int(head.n.0)?).with(full);
        self.connect()?;
        Ok(!self.session.rows(step)?.is_empty())
    }

    /// Returns entries that others have committed after `head`, the first ones if there are many, without the turn. One statement reads the
    /// entries, which become visible in their order.
    ///
    /// # Errors
    /// If the database does not answer, or a link does not hold.
    pub(super) fn behind_now(&mut self, head: Head) -> Result<Behind, StoreError> {
        self.must_run()?;
        if head != self.written.entry {
            return Ok(Behind::TooFar);
        }
        self.connect()?;
        let entries = self.entries_step(head)?;
        // The events are read after the entries, so they include all that these name.
        let row = Step::new(REPO_ROW).with(self.repo);
        let mut answers = self.session.ask(&[entries, self.events_step(self.written.head.seq)?, row])?;
        let mut next = || answers.pop().unwrap_or_default();
        let (row, events, lines) = (next(), next(), next());
        let (Some(first), Some(last), Some(row)) = (lines.first(), lines.last(), row.first()) else {
            return Ok(Behind::Nothing);
        };
        // The row is read last, so it has the entries that were committed. One behind it was added by a login, and the next turn refuses it.
        let row = RepoRow::read(row)?;
        if row.is_sealed(&self.key) && entry::read(last)?.n > row.state.entry.n {
            return Ok(Behind::Nothing);
        }
        if entry::read(first)?.n != head.n.next() {
            return Ok(Behind::TooFar);
        }
        let opened = self.entries_after(head, self.written.head, (&lines, &events))?;
        let Some((entries, (end, journal))) = opened else { return Ok(Behind::TooFar) };
        self.written.own_n += entries.iter().filter(|it| it.by == self.daemon()).count() as u64;
        self.written.counters = self.counted(&entries);
        self.written.finished = self.written.finished.saturating_add(finished(&entries));
        (self.written.entry, self.written.head) = (end, journal);
        Ok(Behind::Entries(entries))
    }
}

/// Checks whether an end of the log is none that comes after this one.
fn is_before(end: Head, head: Head) -> bool {
    end.n < head.n || (end.n == head.n && end.mac != head.mac)
}

/// Returns how many tasks these entries have finished: each has a place of its own.
fn finished(entries: &[LogEntry]) -> i64 {
    let changes = entries.iter().flat_map(|it| &it.changes);
    changes.filter(|it| matches!(it, Change::FinishTask(_))).count() as i64
}

/// Returns the numbers that a skip raises.
fn numbers(it: &Counters) -> [u64; 7] {
    [it.effect.0, it.approval.0, it.mail.0, it.fence.0, it.post.0, it.apply.0, it.ticket.0]
}

/// Checks whether numbers were skipped between these two.
pub(super) fn has_skipped(now: &Counters, counted: &Counters) -> bool {
    numbers(now).iter().zip(numbers(counted)).any(|(now, counted)| *now > counted)
}

/// Refuses numbers that are further ahead than hosts skip, as a host could seal them that has turned.
pub(super) fn must_be_in_reach(end: EntryNo, now: &Counters, counted: &Counters) -> Result<(), StoreError> {
    let is_beyond = |(now, counted): (&u64, u64)| *now > counted.saturating_add(NUMBERS_SKIPPED_AT_ONCE_MAX);
    if !numbers(now).iter().zip(numbers(counted)).any(is_beyond) {
        return Ok(());
    }
    let what = "the repository's row has numbers that no host has given".into();
    Err(StoreError::BrokenLog { n: end, what })
}

fn bytes_of(events: &[StoredEvent]) -> i64 {
    events.iter().map(|it| it.body.as_ref().map_or(0, |body| body.len() as i64)).sum()
}
