//! A turn: the flush that takes the repository's row, the flush that writes and commits, and the outcome of a
//! commit whose answer was lost.

use std::time::{Duration, Instant};

use tokio_postgres::Row as Line;

use super::batch::Rows;
use super::bounds::{self, Page};
use super::entry;
use super::load::{self, HEAD, Head as Row};
use super::session::{Place, Step, rows};
use super::signing::HostKeys;
use super::start::{mac_of, must_be_readable, replaced};
use super::waker::Waker;
use super::{PostgresStore, Turn, Written, signing, unreadable, write};
use crate::codec::{self, int, nat, text};
use crate::host_keys::At;
use crate::marks::As;
use crate::{Anchor, JournalHead, StoreError, StoredEvent};
use crate::{Begun, Behind, CommitError, Head, HostBeat, HostState};
use provost_base::limits::{
    CHECKPOINT_EVENTS_MAX, CHECKPOINT_EVERY, CHECKPOINT_PAUSE_MS, COMMIT_MS_MAX, HOST_BEAT_MS,
    POSTGRES_PAGE_BYTES_MAX, POSTGRES_TURN_BYTES_MAX, TURN_AGAIN_MS_MAX, TURN_MS_MAX,
};
use provost_base::{DaemonId, EntryNo, EventSeq, HostId, Timestamp};
use provost_domain::{EventKind, LogEntry, Outbox};

/// The highest number of entries read at a time; if there are more, the rows are read again.
const BITE: i64 = 2_000;
/// The highest number of events read along with them. If the entries have more, the rest costs a round trip.
const EVENTS_BITE: i64 = 2_000;

const HOSTS: &str =
    "select left(id, 64), inc, left(state, 64), case when isfinite(beat) then (extract(epoch from beat) * 1000)::bigint else 0 end, lower(formats),
        case when upper(formats) > 0 then upper(formats) - 1 end,
        (select m.body from provost.meta m where m.repo = host.repo and m.id = 'out:' || host.id and length(m.body) <= 1024)
    from provost.host where repo = $1";

/// This statement, and the transaction with it, fails if the host's row has changed; COMMIT is already on its way after it.
const BEAT: &str = "with told as (
        update provost.host set beat = clock_timestamp(), head = $4 where repo = $1 and id = $2 and inc = $3 returning 1
    ) select 1 / count(*)::int from told";

/// This statement does the same for the repository's row: a second fence in addition to the lock.
const HEAD_MOVES: &str = "with moved as (
        update provost.repo set n = $2, mac = $3, event = $4, event_mac = $5, pruned_to = $6, counters = $7::text::jsonb,
        finished = $8, searched_to = $9, at = greatest(at, $10), system = $13, timeline = $14
        where id = $1 and n = $11 and event = $12 returning 1
    ) select 1 / count(*)::int from moved";

/// Entries whose links hold, and the ends of log and journal with them.
type Opened = (Vec<LogEntry>, (Head, JournalHead));

/// A batch in the form in which it is sent, with the state after it.
struct Prepared {
    steps: Vec<Step>,
    next: Written,
    /// Whether the head is published to the anchors.
    anchored: bool,
    /// Whether it tells the database that the host is alive.
    beats: bool,
}

impl PostgresStore {
    /// Takes the turn. A connection that was lost since the last one is made again once: nothing was sent on it.
    ///
    /// # Errors
    /// Any; then the turn is not taken.
    pub(super) fn take_turn(&mut self, head: Head) -> Result<Begun, StoreError> {
        self.must_run()?;
        self.roll_back();
        if self.refused {
            self.note_awake(head)?;
        }
        let (was_linked, began) = (self.session.is_linked(), Instant::now());
        let is_soon = || began.elapsed() < Duration::from_millis(TURN_AGAIN_MS_MAX);
        let begun = match self.try_turn(head) {
            Err(StoreError::Away(_)) if was_linked && !self.session.is_linked() && is_soon() => {
                self.try_turn(head)
            }
            done => done,
        };
        if begun.is_err() {
            self.roll_back();
        }
        self.refused = match &begun {
            Ok(it) => matches!(it.behind, Behind::TooFar),
            Err(_) => true,
        };
        begun
    }

    fn try_turn(&mut self, head: Head) -> Result<Begun, StoreError> {
        let place = self.connect()?;
        let limit = Duration::from_millis(TURN_MS_MAX);
        let steps = [
            Step::new("begin"),
            Step::new("select 1 from provost.repo where id = $1 for update").with(self.repo),
            Step::new(HEAD).with(self.repo),
            bounds::entries(self.repo, int(head.n.0)?, Page::of_turn(BITE)),
            self.events_step()?,
            Step::new(HOSTS).with(self.repo),
        ];
        // From here on there is a transaction, even if an answer is an error.
        self.turn = Some(Turn::default());
        let mut answers = rows(self.session.flush(&steps, limit)?)?;
        let mut last = || answers.pop().unwrap_or_default();
        let (hosts, events, entries) = (last(), last(), last());
        let row = answers.pop().unwrap_or_default();
        let row = Row::read(row.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)?;
        let before = Place { system: row.system.clone(), timeline: row.timeline };
        let format = must_be_readable(&row)?;
        self.turn = Some(Turn { now: row.now, format, place: before, at: Written::default() });
        self.note_tables(row.tables);
        let (behind, at) = self.behind(head, &row, (&entries, &events))?;
        let hosts = hosts.iter().map(|it| host(it, &self.keys)).collect::<Result<Vec<_>, _>>()?;
        let takes_part =
            |it: &HostBeat| matches!(it.state, HostState::Live | HostState::Draining | HostState::Removing);
        self.is_heard = hosts.iter().any(|it| it.daemon.host != self.host() && takes_part(it));
        if !hosts.iter().any(|it| it.daemon == self.daemon()) {
            return Err(replaced());
        }
        self.turn.iter_mut().for_each(|it| it.at = at.clone());
        if !matches!(behind, Behind::TooFar) {
            self.looked = Some(row.clock);
        }
        // On another timeline, numbers continue above those that may be lost, and the commit of this turn notes
        // where.
        let moved = row.system != place.system || row.timeline != place.timeline;
        Ok(Begun { now: Some(row.now), behind, hosts, moved })
    }

    fn note_tables(&mut self, version: i32) {
        let was = self.tables_note();
        self.tables = u32::try_from(version).unwrap_or(0);
        if let Some(note) = self.tables_note().filter(|_| was.is_none()) {
            tracing::warn!("{note}");
        }
    }

    /// Returns the entries committed after `head`, and the state with them.
    fn behind(
        &mut self,
        head: Head,
        row: &Row,
        (lines, events): (&[Line], &[Line]),
    ) -> Result<(Behind, Written), StoreError> {
        let end = Head { n: EntryNo(nat(row.n)?), mac: mac_of(&row.mac)? };
        let was = self.written.head.seq;
        let went_back = || StoreError::WentBack { was, is: row.event.seq };
        if end.n < head.n || (end.n == head.n && end.mac != head.mac) {
            return Err(went_back());
        }
        let mut at = Written {
            head: row.event,
            entry: end,
            own_n: self.written.own_n,
            counters: row.counters,
            checkpoint: row.checkpoint,
            pruned_to: self.pruned_to(row.pruned_to)?,
            finished: row.finished,
            indexed_to: row.searched_to,
        };
        if end.n.0 - head.n.0 > lines.len() as u64 {
            return Ok((Behind::TooFar, at));
        }
        let Some((entries, ends)) = self.entries_after(head, row.event, (lines, events))? else {
            return Ok((Behind::TooFar, at));
        };
        if ends != (end, row.event) {
            return Err(match entries.is_empty() {
                true => went_back(),
                false => StoreError::BrokenLog {
                    n: end.n,
                    what: "the entries do not lead to the head of the log".into(),
                },
            });
        }
        // Entries up to the engine's own head have been counted already.
        let new = entries.iter().filter(|it| it.n > self.written.entry.n);
        at.own_n += new.filter(|it| it.by == self.daemon()).count() as u64;
        Ok((if entries.is_empty() { Behind::Nothing } else { Behind::Entries(entries) }, at))
    }

    /// Reads events after the engine's own end of the journal, together with the entries that name them: a separate
    /// query would cost a round trip while this daemon has the row.
    fn events_step(&self) -> Result<Step, StoreError> {
        Ok(bounds::events(self.repo, (int(self.written.head.seq.0)?, i64::MAX), Page::of_turn(EVENTS_BITE)))
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
                if bytes_of(&read) >= POSTGRES_TURN_BYTES_MAX {
                    // A second query would read the same.
                    return Ok(None);
                }
            }
            let step =
                bounds::events(self.repo, (int(journal.seq.0)?, int(last.0)?), Page::of_turn(i64::MAX));
            events = self.session.rows(step)?.iter().map(load::event).collect::<Result<Vec<_>, _>>()?;
            if (events.len() as u64) < needed && bytes_of(&events) >= POSTGRES_TURN_BYTES_MAX {
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
        let sql = "select substr(mac, 1, 33) from provost.entry where repo = $1 and n = $2";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(int(head.n.0)?))?;
        let mac: Option<Vec<u8>> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
        let is_it = |mac: Vec<u8>| bounds::in_row("entry", head.n, || Ok(mac_of(&mac)? == head.mac));
        mac.map_or(Ok(true), is_it)
    }

    /// Returns the entries that others have committed after `head`, without the turn. One statement reads the
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
        let entries = bounds::entries(self.repo, int(head.n.0)?, Page::of_turn(BITE));
        // The events are read after the entries, so they include all that these name.
        let mut answers = self.session.ask(&[entries, self.events_step()?])?;
        let (events, lines) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
        let Some(first) = lines.first() else { return Ok(Behind::Nothing) };
        if entry::read(first)?.n != head.n.next() {
            return Ok(Behind::TooFar);
        }
        let opened = self.entries_after(head, self.written.head, (&lines, &events))?;
        let Some((entries, (end, journal))) = opened else { return Ok(Behind::TooFar) };
        self.written.own_n += entries.iter().filter(|it| it.by == self.daemon()).count() as u64;
        (self.written.entry, self.written.head) = (end, journal);
        Ok(Behind::Entries(entries))
    }

    /// Gives the turn up; tells the database that the host is alive, if that is due.
    ///
    /// # Errors
    /// If the database does not answer; the turn is given up nevertheless.
    pub(super) fn end_turn(&mut self) -> Result<(), StoreError> {
        if self.turn.is_none() || !self.is_beat_due() {
            self.roll_back();
            return Ok(());
        }
        let steps = [self.beat_step(self.written.entry)?, Step::new("commit")];
        self.turn = None;
        let answers = self.session.flush(&steps, Duration::from_millis(COMMIT_MS_MAX));
        answers.and_then(rows).inspect_err(|_| self.session.drop_link())?;
        self.beat = Some(Instant::now());
        Ok(())
    }

    /// Ends the transaction without a commit, or the connection if that is not possible.
    pub(super) fn roll_back(&mut self) {
        if self.turn.take().is_some() && self.session.is_linked() {
            let done = self.session.ask(&[Step::new("rollback")]);
            if let Err(err) = done {
                tracing::debug!(%err, "a turn without a commit has not ended in order");
                self.session.drop_link();
            }
        }
    }

    fn is_beat_due(&self) -> bool {
        self.beat.is_none_or(|at| at.elapsed() >= Duration::from_millis(HOST_BEAT_MS))
    }

    pub(super) fn beat_step(&self, head: Head) -> Result<Step, StoreError> {
        let inc = int(self.incarnation)?;
        Ok(Step::new(BEAT).with(self.repo).with(self.host().to_string()).with(inc).with(int(head.n.0)?))
    }

    /// Checks that writing works.
    ///
    /// # Errors
    /// If it does not work.
    pub(super) fn probe_writing(&mut self) -> Result<(), StoreError> {
        self.take_turn(self.written.entry)?;
        self.beat = None;
        self.end_turn()
    }

    /// Writes a batch, in the turn that was taken, or in one of its own.
    ///
    /// # Errors
    /// [`CommitError::Unknown`] if COMMIT was sent and its answer is missing, or was a warning; the next turn finds
    /// out.
    pub(super) fn write(&mut self, batch: &Outbox) -> Result<Head, CommitError> {
        self.must_run()?;
        if !batch.is_shared() {
            self.end_turn()?;
            return Ok(self.written.entry);
        }
        if self.turn.is_none() {
            self.take_turn(self.written.entry)?;
            if self.turn.as_ref().is_none_or(|it| it.at.entry != self.written.entry) {
                // The batch was decided without what others have committed meanwhile.
                self.roll_back();
                return Err(StoreError::NotRunning.into());
            }
        }
        let Prepared { steps, next, anchored, beats } = match self.prepared(batch) {
            Ok(it) => it,
            Err(err) => {
                self.roll_back();
                return Err(err.into());
            }
        };
        self.commit_steps(&steps)?;
        let has_sealed = next.checkpoint != self.written.checkpoint;
        self.keys.follow(At { n: next.entry.n, event: next.head.seq }, &batch.changes);
        self.take_over(next);
        // A word costs a commit of its own, and perhaps no other host listens.
        self.waker.iter().filter(|_| self.is_heard).for_each(Waker::tell);
        if beats {
            self.beat = Some(Instant::now());
        }
        if has_sealed {
            self.sealed = Some(Instant::now());
            self.marks.sync();
            self.remember_hosts();
        }
        if anchored {
            self.publish();
        }
        Ok(self.written.entry)
    }

    /// Has the folder remember the place up to which entries were checked. If that fails, a later check begins earlier.
    pub(super) fn remember_hosts(&self) {
        if let Err(err) = self.keys.keep() {
            tracing::warn!(%err, "what is known of the hosts cannot be written");
        }
    }

    /// Takes over the state after a commit.
    pub(super) fn take_over(&mut self, next: Written) {
        self.written = next;
        self.marks.write(&self.key, &self.written.head, &self.written.counters, As::Durable);
    }

    /// Returns the statements of a batch up to COMMIT, and the state after them.
    fn prepared(&self, batch: &Outbox) -> Result<Prepared, StoreError> {
        let turn = self.turn.as_ref().ok_or(StoreError::NotRunning)?;
        let linked = self.key.extend(&turn.at.head, &batch.events)?;
        let mut next = turn.at.clone();
        next.head = linked.last().map_or(next.head, |it| JournalHead { seq: it.seq, mac: it.mac });
        next.counters = codec::counters(batch).unwrap_or(next.counters);
        next.counters.event = next.head.seq;
        let mut steps = Vec::new();
        write::rows(self.repo, Rows::of(batch, self.daemon(), &mut next.finished)?, &mut steps);
        write::events(self.repo, &linked, &batch.events, &mut steps)?;
        let own_n = turn.at.own_n + 1;
        let sealed =
            self.key.entry(&turn.at.entry, (self.daemon(), own_n), (turn.now, turn.format), batch)?;
        if sealed.body.len() as i64 > POSTGRES_PAGE_BYTES_MAX {
            let why = "a batch has more bytes than the other hosts read of an entry: do less at a time";
            return Err(StoreError::Database(why.into()));
        }
        (next.entry, next.own_n) = (sealed.head(), own_n);
        let signature = self.keys.sign(sealed.n, &sealed.mac, &next.head)?;
        if !batch.events.is_empty() {
            let by = (self.host(), sealed.n, &sealed.mac);
            steps.push(signing::signature_step(self.repo, by, &next.head, signature.clone())?);
        }
        steps.push(entry::step(self.repo, &sealed, signature)?);
        let is_due = self.seals_after(next.head.seq.0.saturating_sub(next.checkpoint.0));
        if is_due {
            let checkpoint = self.key.checkpoint(next.head, next.pruned_to, &next.counters)?;
            steps.push(write::checkpoint(self.repo, &checkpoint)?);
            next.checkpoint = next.head.seq;
        }
        steps.push(self.head_step(&next, turn)?);
        let beats = self.is_beat_due();
        if beats {
            steps.push(self.beat_step(next.entry)?);
        }
        steps.push(Step::new("commit"));
        let answered = batch.events.iter().any(|it| matches!(it.kind, EventKind::ApprovalAnswered { .. }));
        Ok(Prepared { steps, next, anchored: is_due || answered, beats })
    }

    /// Returns the statement that moves the repository's row on, from exactly its known state.
    pub(super) fn head_step(&self, next: &Written, turn: &Turn) -> Result<Step, StoreError> {
        let Anchor { seq, mac } = next.head;
        Ok(Step::new(HEAD_MOVES)
            .with(self.repo)
            .with(int(next.entry.n.0)?)
            .with(next.entry.mac.as_bytes().to_vec())
            .with(int(seq.0)?)
            .with(mac.as_bytes().to_vec())
            .with(int(next.pruned_to.0)?)
            .with(text(&next.counters)?)
            .with(next.finished)
            .with(int(next.indexed_to.0)?)
            .with(turn.now.0)
            .with(int(turn.at.entry.n.0)?)
            .with(int(turn.at.head.seq.0)?)
            .with(turn.place.system.clone())
            .with(int(turn.place.timeline)?))
    }

    /// Sends everything, COMMIT last, and checks each answer: COMMIT of a failed transaction is answered without an
    /// error.
    fn commit_steps(&mut self, steps: &[Step]) -> Result<(), CommitError> {
        self.turn = None;
        if !self.session.is_linked() {
            return Err(StoreError::Away("the connection was lost during the turn".into()).into());
        }
        let limit = Duration::from_millis(COMMIT_MS_MAX);
        if let Err(err) = self.session.prepare(steps, limit) {
            self.session.drop_link();
            return Err(err.into());
        }
        let answers = self.session.flush(steps, limit).map_err(CommitError::Unknown)?;
        let was_warned = self.session.was_warned();
        match rows(answers) {
            Err(err) => {
                self.session.drop_link();
                Err(err.into())
            }
            Ok(_) if was_warned => Err(CommitError::Unknown(StoreError::Away(
                "it has warned while it committed, so that a standby may not have the commit".into(),
            ))),
            Ok(_) => Ok(()),
        }
    }

    /// Checks whether a checkpoint is due after so many events since the last one.
    fn seals_after(&self, events: u64) -> bool {
        let paused = self.sealed.is_none_or(|at| at.elapsed() >= Duration::from_millis(CHECKPOINT_PAUSE_MS));
        events >= CHECKPOINT_EVENTS_MAX || (events >= CHECKPOINT_EVERY && paused)
    }
}

fn bytes_of(events: &[StoredEvent]) -> i64 {
    events.iter().map(|it| it.body.as_ref().map_or(0, |body| body.len() as i64)).sum()
}

fn host(row: &Line, keys: &HostKeys) -> Result<HostBeat, StoreError> {
    let id: &str = row.try_get(0).map_err(unreadable)?;
    bounds::in_row("host", id, || beat_of(row, id, keys))
}

fn beat_of(row: &Line, id: &str, keys: &HostKeys) -> Result<HostBeat, StoreError> {
    let id: HostId = id.parse().map_err(StoreError::damaged)?;
    let state = HostState::parse(row.try_get(2).map_err(unreadable)?)?;
    let state = keys.counted(id, state, row.try_get(6).map_err(unreadable)?);
    let format = |at: usize| -> Result<u32, StoreError> {
        let it: i32 = row.try_get(at).map_err(unreadable)?;
        u32::try_from(it).map_err(StoreError::damaged)
    };
    Ok(HostBeat {
        daemon: DaemonId { host: id, incarnation: nat(row.try_get(1).map_err(unreadable)?)? },
        state,
        beat: Timestamp(row.try_get(3).map_err(unreadable)?),
        formats: (format(4)?, format(5)?),
    })
}
