//! A turn: the flush that takes the repository's row, the flush that writes and commits, and the outcome of a
//! commit whose answer was lost.

use std::time::{Duration, Instant};

use tokio_postgres::Row as Line;

use super::ahead::Beginning;
use super::batch::Rows;
use super::behind::has_skipped;
use super::bounds;
use super::entry;
use super::gaps;
use super::hosts::MACHINE_SIGNS_MAX;
use super::repo_row::{self, REPO_ROW, RepoRow};
use super::session::{Place, Step, rows};
use super::signing::HostKeys;
use super::start::{REPLACED, must_be_readable, replaced};
use super::taken_out;
use super::waker::Waker;
use super::{PostgresStore, Turn, Written, signing, unreadable, write};
use crate::codec::{self, int, nat};
use crate::host_keys::At;
use crate::marks::As;
use crate::{Begun, Behind, CommitError, Head, HostBeat, HostState, JournalHead, StoreError};
use provost_base::limits::{
    CHECKPOINT_EVENTS_MAX, CHECKPOINT_EVERY, CHECKPOINT_PAUSE_MS, COMMIT_MS_MAX, HOST_BEAT_MS,
    POSTGRES_PAGE_BYTES_MAX, TURN_AGAIN_MS_MAX, TURN_MS_MAX,
};
use provost_base::{DaemonId, EventSeq, HostId, Timestamp, visible_name};
use provost_domain::{EventKind, Outbox};

const HOSTS: &str =
    "select left(id, 64), inc, left(state, 64), case when isfinite(beat) then (extract(epoch from beat) * 1000)::bigint else 0 end, lower(formats),
        case when upper(formats) > 0 then upper(formats) - 1 end,
        (select m.body from provost.meta m where m.repo = host.repo and m.id = 'out:' || host.id and length(m.body) <= 1024),
        left(name, 200), clean
    from provost.host where repo = $1";

/// This statement, and the transaction with it, fails if the host's row has changed; COMMIT is already on its way after it.
const BEAT: &str = "with told as (
        update provost.host set beat = clock_timestamp(), head = $4 where repo = $1 and id = $2 and inc = $3 returning 1
    ) select 1 / count(*)::int from told";

/// A batch in the form in which it is sent, with the state after it.
struct Prepared {
    steps: Vec<Step>,
    next: Written,
    /// The beginning of the turn after it, if it is to be sent with it.
    ahead: Vec<Step>,
    /// Whether the head is published to the anchors.
    anchored: bool,
    /// Whether it tells the database that the host is alive.
    beats: bool,
}

/// Checks whether this may be what a daemon finds whose newest entries a person has given up as lost: a log that ends earlier, or continues without
/// them, or an incarnation of its own that is higher.
fn is_of_another_end(err: &StoreError) -> bool {
    match err {
        StoreError::WentBack { .. } | StoreError::BrokenLog { .. } => true,
        StoreError::Database(says) => **says == *REPLACED,
        _ => false,
    }
}

impl PostgresStore {
    /// Takes the turn.
    ///
    /// # Errors
    /// Any; then the turn is not taken.
    pub(super) fn take_turn(&mut self, head: Head) -> Result<Begun, StoreError> {
        self.try_turn_again(head).map_err(|err| match err {
            StoreError::Away(ref why) => {
                self.reaching.note(why);
                err
            }
            err if is_of_another_end(&err) && self.is_loss_accepted() => {
                tracing::warn!(%err, "a person has accepted a loss");
                StoreError::LossAccepted
            }
            err if is_of_another_end(&err) && self.session.is_foreign(&self.remembered.place) => {
                // The server of the database that was seen may answer at the next try.
                self.session.drop_link();
                err
            }
            err => err,
        })
    }

    /// Checks whether the journal has a gap above the newest event that this daemon knows. A gap is sealed with the journal's key.
    fn is_loss_accepted(&mut self) -> bool {
        let seen = self.written.head.seq;
        let gaps = gaps::newest(&mut self.session, self.repo).unwrap_or_default();
        gaps.iter().any(|it| it.to > seen && self.key.has_sealed(it))
    }

    /// Takes the turn. A connection that was lost since the last one is made again once: nothing was sent on it.
    fn try_turn_again(&mut self, head: Head) -> Result<Begun, StoreError> {
        self.must_run()?;
        self.roll_back();
        if self.refused {
            self.note_awake(head)?;
        }
        let (was_linked, began) = (self.session.is_linked(), Instant::now());
        let is_soon = || began.elapsed() < Duration::from_millis(TURN_AGAIN_MS_MAX);
        let begun = match self.try_turn(head) {
            Err(StoreError::Away(_)) if was_linked && !self.session.is_linked() && is_soon() => {
                self.turn = None;
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

    /// Returns the statements that begin a turn of a daemon that has the log up to `head`, and the journal up to `event`.
    pub(super) fn beginning(&self, head: Head, event: EventSeq) -> Result<Vec<Step>, StoreError> {
        Ok(vec![
            Step::new("begin"),
            Step::new("select 1 from provost.repo where id = $1 for update").with(self.repo),
            Step::new(REPO_ROW).with(self.repo),
            self.entries_step(head)?,
            self.events_step(event)?,
            Step::new(HOSTS).with(self.repo),
        ])
    }

    /// Begins a turn, and returns the answers.
    fn begin_now(&mut self, head: Head) -> Result<Beginning, StoreError> {
        let place = self.connect()?;
        let steps = self.beginning(head, self.written.head.seq)?;
        // From here on there is a transaction, even if an answer is an error.
        self.turn = Some(Turn::default());
        let answers = rows(self.session.flush(&steps, Duration::from_millis(TURN_MS_MAX))?)?;
        Ok((place, answers))
    }

    fn try_turn(&mut self, head: Head) -> Result<Begun, StoreError> {
        let (place, mut answers) = match self.begun_ahead(head)? {
            Some(begun) => begun,
            None => self.begin_now(head)?,
        };
        let mut last = || answers.pop().unwrap_or_default();
        let (hosts, events, entries) = (last(), last(), last());
        let row = answers.pop().unwrap_or_default();
        let row =
            RepoRow::read(row.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)?;
        let format = must_be_readable(&row)?;
        let is_sealed = row.is_sealed(&self.key) && !self.is_from_before(head, &row)?;
        let ends = row.ends;
        let now = if is_sealed { row.now() } else { row.clock };
        let place_was = row.place.clone();
        self.turn = Some(Turn { now, format, place: place_was, ends, is_sealed, ..Turn::default() });
        self.note_tables(row.tables);
        let (behind, at) = match is_sealed {
            true => self.behind(head, &row, (&entries, &events))?,
            false => self.behind_unsealed(head, (&entries, &events))?,
        };
        let hosts = hosts.iter().map(|it| host(it, &self.keys)).collect::<Result<Vec<_>, _>>()?;
        let takes_part =
            |it: &HostBeat| matches!(it.state, HostState::Live | HostState::Draining | HostState::Removing);
        self.is_heard = hosts.iter().any(|it| it.daemon.host != self.host() && takes_part(it));
        if !hosts.iter().any(|it| it.daemon == self.daemon()) {
            return Err(replaced());
        }
        let log_end = at.entry.n;
        let entries = if let Behind::Entries(entries) = &behind { &**entries } else { &[] };
        let counted = self.counted(entries);
        let skipped = has_skipped(&at.counters, &counted).then_some(at.counters);
        self.turn.iter_mut().for_each(|it| (it.at, it.counted) = (at.clone(), counted));
        if !matches!(behind, Behind::TooFar) {
            self.looked = Some(row.clock);
        }
        // On another timeline, numbers continue above those that may be lost, and the commit of this turn notes
        // where. So they do where the row does not say which were given.
        let moved = !is_sealed || row.place != place;
        if !moved && !matches!(behind, Behind::TooFar) {
            self.remember(place);
        }
        Ok(Begun { now: Some(now), behind, log_end, hosts, moved, skipped })
    }

    /// Remembers the server's history once numbers are given there. An old primary that comes back is told by that, also while the new one is away.
    fn remember(&mut self, place: Place) {
        match self.remembered.see(place) {
            // It may listen at the old one.
            Ok(true) => self.waker.iter().for_each(Waker::tell),
            Ok(false) => {}
            Err(err) => {
                tracing::warn!(%err, "the history of the database cannot be noted in the state folder")
            }
        }
    }

    fn note_tables(&mut self, version: i32) {
        let was = self.tables_note();
        self.tables = u32::try_from(version).unwrap_or(0);
        if let Some(note) = self.tables_note().filter(|_| was.is_none()) {
            tracing::warn!("{note}");
        }
    }

    /// Gives the turn up; tells the database that the host is alive, if that is due.
    ///
    /// # Errors
    /// If the database does not answer; the turn is given up nevertheless.
    pub(super) fn end_turn(&mut self) -> Result<(), StoreError> {
        if self.turn.is_none() || !self.is_beat_due() {
            return self.end_transaction();
        }
        let steps = [self.beat_step(self.written.entry)?, Step::new("commit")];
        self.turn = None;
        let answers = self.session.flush(&steps, Duration::from_millis(COMMIT_MS_MAX));
        answers.and_then(rows).inspect_err(|_| self.session.drop_link())?;
        self.beat = Some(Instant::now());
        Ok(())
    }

    /// Ends the transaction without a commit. If that is not possible, ends the connection.
    pub(super) fn roll_back(&mut self) {
        if let Err(err) = self.end_transaction() {
            tracing::debug!(%err, "a turn without a commit has not ended in order");
        }
    }

    /// Ends the transaction without a commit. If that is not possible, ends the connection, and returns the reason.
    fn end_transaction(&mut self) -> Result<(), StoreError> {
        if self.turn.take().is_none() || !self.session.is_linked() {
            return Ok(());
        }
        // The next turn waits for it.
        let limit = Duration::from_millis(TURN_MS_MAX);
        let done = self.session.ask_within(&[Step::new("rollback")], limit);
        done.map(drop).inspect_err(|_| self.session.drop_link())
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
            let begun = self.take_turn(self.written.entry)?;
            let is_behind = self.turn.as_ref().is_none_or(|it| it.at.entry != self.written.entry);
            let is_unsealed = self.turn.as_ref().is_none_or(|it| !it.is_sealed);
            let is_too_far = matches!(begun.behind, Behind::TooFar);
            if is_behind || is_unsealed || is_too_far || begun.skipped.is_some() {
                // The batch was decided without what others have committed meanwhile.
                self.roll_back();
                return Err(StoreError::NotRunning.into());
            }
        }
        let begins_next = self.may_begin_ahead();
        let Prepared { steps, next, ahead, anchored, beats } = match self.prepared(batch, begins_next) {
            Ok(it) => it,
            Err(err) => {
                self.roll_back();
                return Err(err.into());
            }
        };
        self.commit_steps(&steps, ahead)?;
        let has_sealed = next.checkpoint != self.written.checkpoint;
        self.keys.follow(At { n: next.entry.n, event: next.head.seq }, &batch.changes);
        self.ahead = Some(next.entry);
        self.take_over(next);
        // A turn that found another history has not remembered it: its commit was to note that first.
        if let Some(place) = self.session.place().ok().filter(|it| **it != self.remembered.place).cloned() {
            self.remember(place);
        }
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

    /// Returns the statements of a batch up to COMMIT, and the state after them; with the beginning of the next turn, if that is to be sent with it.
    fn prepared(&self, batch: &Outbox, begins_next: bool) -> Result<Prepared, StoreError> {
        let turn = self.turn.as_ref().ok_or(StoreError::NotRunning)?;
        let linked = self.key.extend(&turn.at.head, &batch.events)?;
        let mut next = turn.at.clone();
        next.head = linked.last().map_or(next.head, |it| JournalHead { seq: it.seq, mac: it.mac });
        next.counters = codec::counted(&batch.changes).unwrap_or(next.counters);
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
        let ahead = match begins_next {
            true => self.beginning_ahead(next.entry, next.head.seq)?,
            false => Vec::new(),
        };
        let answered = batch.events.iter().any(|it| matches!(it.kind, EventKind::ApprovalAnswered { .. }));
        Ok(Prepared { steps, next, ahead, anchored: is_due || answered, beats })
    }

    /// Returns the statement that moves the repository's row on, from exactly its known state.
    pub(super) fn head_step(&self, next: &Written, turn: &Turn) -> Result<Step, StoreError> {
        repo_row::moves((self.repo, &self.key), turn.ends, next, (turn.now, &turn.place))
    }

    /// Sends everything, COMMIT last, and checks each answer: COMMIT of a failed transaction is answered without an
    /// error.
    fn commit_steps(&mut self, steps: &[Step], ahead: Vec<Step>) -> Result<(), CommitError> {
        self.turn = None;
        if !self.session.is_linked() {
            return Err(StoreError::Away("the connection was lost during the turn".into()).into());
        }
        let limit = Duration::from_millis(COMMIT_MS_MAX);
        let prepared = self.session.prepare(steps, limit).and_then(|()| self.session.prepare(&ahead, limit));
        if let Err(err) = prepared {
            self.session.drop_link();
            return Err(err.into());
        }
        let answers = self.session.flush_before(steps, ahead, limit).map_err(CommitError::Unknown)?;
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

fn host(row: &Line, keys: &HostKeys) -> Result<HostBeat, StoreError> {
    let id: &str = row.try_get(0).map_err(unreadable)?;
    bounds::in_row("host", id, || beat_of(row, id, keys))
}

fn beat_of(row: &Line, id: &str, keys: &HostKeys) -> Result<HostBeat, StoreError> {
    let id: HostId = id.parse().map_err(StoreError::damaged)?;
    let told = HostState::parse(row.try_get(2).map_err(unreadable)?)?;
    let request: Option<&str> = row.try_get(6).map_err(unreadable)?;
    let state = keys.counted(id, told, request);
    let is_asked_for = matches!(state, HostState::Removing | HostState::Draining);
    let format = |at: usize| -> Result<u32, StoreError> {
        let it: i32 = row.try_get(at).map_err(unreadable)?;
        u32::try_from(it).map_err(StoreError::damaged)
    };
    Ok(HostBeat {
        daemon: DaemonId { host: id, incarnation: nat(row.try_get(1).map_err(unreadable)?)? },
        state,
        asked_by: request.filter(|_| is_asked_for).and_then(taken_out::asker),
        beat: Timestamp(row.try_get(3).map_err(unreadable)?),
        formats: (format(4)?, format(5)?),
        // Each login can write there, and people read it at a terminal.
        name: visible_name(row.try_get(7).map_err(unreadable)?, MACHINE_SIGNS_MAX).into(),
        role: keys.known.role_of(id),
        is_stopped: row.try_get(8).map_err(unreadable)? && told == HostState::Down && state == told,
    })
}
