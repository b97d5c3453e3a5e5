//! The turn at a store that other daemons write, too: when the engine has it, the entries of the others, and a
//! commit whose answer was lost.
//!
//! ```text
//!   [out of turn] --begin: the others' entries are folded--> [in turn] --commit, or let go--> [out of turn]
//!        ^                                                       |
//!        |                                                       +--commit without an answer--> [unsure]
//!        +---- the next begin finds the batch, or that nothing of it was done ---------------------+
//! ```
//! Memory is never ahead of the store, except for a batch whose commit is unsure: its callers, and all queries,
//! wait until that is decided, or for `UNKNOWN_KEPT_MS`. A store with one writer has none of this: its turn costs
//! no more than a call that returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::clock::StoreClock;
use super::super::{EntryCheck, Found, Given, StateQuery};
use super::beside::Batch;
use super::hosts::HostWatch;
use super::receiving::Publisher;
use super::{Lost, Waiting, Worker};
use provost_base::limits::{HOST_BEAT_MS, NUMBERS_SKIPPED, UNKNOWN_KEPT_MS};
use provost_base::{DaemonId, Timestamp};
use provost_domain::{Change, Gone, LogEntry, Principal, Refusal};
use provost_store::{Behind, Head, Loaded, StoreError};

/// The number of times in a row that the turn is taken, each time after memory was loaded again.
const TURNS_TRIED: u32 = 4;
/// The time after which a daemon without work takes a turn, so that it gives a sign of life and sees those of the others.
const BEAT: Duration = Duration::from_millis(HOST_BEAT_MS);
const UNKNOWN_KEPT: Duration = Duration::from_millis(UNKNOWN_KEPT_MS);

/// The text for callers of a command whose outcome is unknown.
const NOT_KNOWN: &str = "it is not known whether this was done, since the shared store has not answered; \
                         look whether it was before you ask again";
/// The text for callers if it is known that the command was not carried out.
const NOT_DONE: &str = "the shared store did not answer, and nothing of this was done; ask again";

/// The reason why a daemon ends that the others have buried: its resources are free, so it begins again as another daemon.
const IS_DOWN: &str = "another host has taken this one for dead, and what it held is free; its runs are ended, and it begins again \
                       from what the others have";

/// The reason why a daemon ends whose host a person has removed.
const IS_REMOVED: &str = "this host was removed from the repository, and what it held is free; its state folder takes part no \
                          more: to join again as a new host, move it away and run `provost host join`";

/// The reason why a daemon ends whose memory has what a person has given up as lost.
const LOSS_IS_ACCEPTED: &str = "a person has gone on without what the database had lost (`provost store accept-loss`); the runs of this \
                                daemon are ended, and it begins again from what the database has";

/// The engine's knowledge of the other daemons.
pub(in super::super) struct Others {
    /// The store's clock; `None` if the store has one writer.
    clock: Option<Arc<StoreClock>>,
    /// This daemon, as the others know it.
    daemon: DaemonId,
    /// The last entry of the log that memory has.
    pub(super) head: Head,
    /// The observations about the other hosts.
    pub(super) watch: HostWatch,
    /// Whether memory was just loaded, and what belongs to the time before still has to end.
    is_new: bool,
    /// When a person has last gone on without a part of the history, as of the last load.
    broke_off: Option<Timestamp>,
    /// When the last turn was taken.
    looked: Instant,
    /// Whether the store has announced a possible new entry.
    woken: Arc<AtomicBool>,
    unsure: Option<Unsure>,
    /// The check of each entry of another daemon.
    check: EntryCheck,
    /// Whether an entry has failed this check. This daemon then writes no more.
    distrusts: bool,
    /// Whether memory has unstored changes, and must be loaded again before anything else.
    must_load: bool,
    /// Queries that wait until memory matches the store, or until this time.
    looks: Vec<StateQuery>,
    hidden_until: Instant,
    /// Grants to callers that have gone.
    gave_back: Vec<(Principal, Given)>,
}

/// A batch that may or may not be stored, and the callers that wait to learn it.
struct Unsure {
    batch: Batch,
    waiting: Vec<Waiting>,
    asked: Vec<(Publisher, Result<(), Refusal>)>,
}

impl Others {
    pub(in super::super) fn of(
        (daemon, head, broke_off): (DaemonId, Head, Option<Timestamp>),
        clock: Option<Arc<StoreClock>>,
        woken: Arc<AtomicBool>,
        check: EntryCheck,
    ) -> Self {
        Self {
            clock,
            daemon,
            head,
            watch: HostWatch::default(),
            is_new: true,
            broke_off,
            looked: Instant::now(),
            woken,
            unsure: None,
            check,
            distrusts: false,
            must_load: false,
            looks: Vec::new(),
            hidden_until: Instant::now(),
            gave_back: Vec::new(),
        }
    }

    /// Checks whether there can be other daemons.
    pub(super) fn are_there(&self) -> bool {
        self.clock.is_some()
    }

    /// Returns when a daemon without work has to look at the store again.
    pub(super) fn due_in(&self) -> Option<Duration> {
        if self.is_ahead() || (self.is_new && self.are_there()) {
            return Some(Duration::ZERO);
        }
        self.are_there().then(|| BEAT.saturating_sub(self.looked.elapsed()))
    }

    /// Takes note that the store has announced an entry, which the turn folds.
    pub(super) fn takes_note(&self) {
        self.woken.store(false, Ordering::Release);
    }

    /// Checks whether this daemon may go on once its store answers.
    pub(super) fn are_trusted(&self) -> bool {
        !self.distrusts
    }

    /// Returns this daemon, as the others know it.
    pub(super) fn daemon(&self) -> DaemonId {
        self.daemon
    }

    /// Checks whether memory has changes that may not be stored.
    pub(super) fn is_ahead(&self) -> bool {
        self.unsure.is_some() || self.must_load
    }

    /// Checks whether queries of memory have to wait for that reason.
    pub(super) fn hides_memory(&self) -> bool {
        self.is_ahead() && Instant::now() < self.hidden_until
    }

    /// Notes that memory has changes from now on that may not be stored.
    fn is_ahead_from_now(&mut self) {
        self.hidden_until = Instant::now() + UNKNOWN_KEPT;
    }
}

impl Worker {
    /// Takes the turn, and folds the others' entries. If that fails, no writes are taken until the store answers
    /// again. While the second thread commits, the store has one writer.
    pub(super) fn take_turn(&mut self) {
        if self.store.is_away() || self.broken.is_some() || self.lost.is_some() {
            return;
        }
        for _ in 0..TURNS_TRIED {
            match self.try_turn() {
                Ok(true) => return,
                Ok(false) => {}
                Err(err) => return self.turned_away(&err),
            }
            if self.lost.is_some() {
                return;
            }
        }
        let why = "its log grows faster than this daemon reads it";
        self.turned_away(&StoreError::Stopped(why.into()));
    }

    /// Tries to take the turn; returns `false` if memory was loaded again meanwhile, out of turn.
    fn try_turn(&mut self) -> Result<bool, StoreError> {
        if self.others.must_load {
            self.load_again()?;
        }
        let began = Instant::now();
        let begun = self.store.begin(self.others.head)?;
        if let Some(clock) = &self.others.clock {
            begun.now.iter().for_each(|now| clock.tell(*now));
            self.others.looked = Instant::now();
            let took = began.elapsed();
            let server = self.store.server();
            self.measures.observed().inspect(|it| it.took_turn(took, &begun, server.as_ref()));
            self.trouble.tell_turn(server, took, &begun);
        }
        if matches!(begun.behind, Behind::TooFar) {
            self.store.let_go()?;
            if self.store.has_to_judge(self.others.head)? && self.reads_on()? {
                return Ok(false);
            }
        }
        let is_known = self.fold(begun.behind)?;
        // Before anything is decided, which may give numbers.
        if let Some(skipped) = begun.skipped.filter(|_| is_known) {
            self.core.raise_numbers(self.now, &skipped, &mut self.out);
        }
        if is_known && begun.moved {
            tracing::warn!(
                "the database is continued by another server, or a login has changed the repository's row; numbers that may have been given are \
                 skipped"
            );
            self.core.skip_numbers(self.now, NUMBERS_SKIPPED, &mut self.out);
        }
        if is_known && self.lost.is_none() && std::mem::take(&mut self.others.is_new) {
            self.goes_on_from_load();
        }
        if is_known && self.lost.is_none() && self.others.are_there() {
            self.tell_time();
            if !self.look_at_hosts(&begun.hosts)? {
                return Ok(self.broken.is_some() || !self.others.is_ahead());
            }
            self.core.publish_ability(self.now, &mut self.out);
        }
        if !is_known {
            self.others.must_load = true;
            self.store.let_go()?;
            self.load_again()?;
        }
        Ok(is_known)
    }

    /// Ends what belongs to the time before memory was loaded: what earlier daemons of this host held, and tasks that waited before a person
    /// went on without a part of the history.
    fn goes_on_from_load(&mut self) {
        self.tell_time();
        if self.others.are_there() {
            self.core.begin_again(self.now, &mut self.out);
        }
        if let Some(at) = self.others.broke_off {
            self.core.give_up_what_waited(self.now, at, &mut self.out);
        }
    }

    /// Folds what is too much for a turn, out of turn: rows that are loaded are not judged. Returns `false` if they have to be loaded.
    fn reads_on(&mut self) -> Result<bool, StoreError> {
        let mut has_read = false;
        while self.lost.is_none() {
            match self.store.catch_up(self.others.head)? {
                Behind::TooFar => return Ok(false),
                Behind::Nothing => return Ok(has_read),
                behind => has_read = self.fold(behind)?,
            }
        }
        Ok(true)
    }

    pub(super) fn turned_away(&mut self, err: &StoreError) {
        // The next turn is a new one, even if the store refuses this.
        let _ = self.store.let_go();
        let why = self.report("cannot take the turn", err);
        self.break_off(why, err);
    }

    /// Gives the turn up without a commit.
    pub(super) fn let_go(&mut self) {
        if let Err(err) = self.store.let_go() {
            self.has_not_ended(&err);
        }
    }

    fn has_not_ended(&mut self, err: &StoreError) {
        tracing::debug!(%err, "a turn without a commit has not ended in order");
        // The next command would wait for such a server as long again.
        if err.silent().is_some() && self.broken.is_none() {
            self.turned_away(err);
        }
    }

    /// Returns when a turn has to be ended that the store has begun ahead, if no command comes.
    pub(super) fn keeps_turn(&mut self) -> Option<Duration> {
        if self.store.is_away() || !self.others.are_there() {
            return None;
        }
        self.store.stays_begun().unwrap_or_else(|err| {
            self.has_not_ended(&err);
            None
        })
    }

    /// Folds the entries of other daemons, and finds out the outcome of an unsure commit. Returns `false` if memory
    /// has to be loaded again.
    fn fold(&mut self, behind: Behind) -> Result<bool, StoreError> {
        let entries = match behind {
            Behind::TooFar => {
                self.end_unsure((Found::Never, NOT_KNOWN));
                return Ok(false);
            }
            Behind::Nothing => return self.fold_entries(Vec::new()),
            Behind::Entries(entries) => entries,
        };
        let began = Instant::now();
        let is_known = self.fold_entries(entries)?;
        self.measures.observed().inspect(|it| it.folds.note(began.elapsed()));
        Ok(is_known)
    }

    fn fold_entries(&mut self, entries: Vec<LogEntry>) -> Result<bool, StoreError> {
        // The batch was decided in turn, so no other entry can be between its place and the head.
        if let Some(unsure) = self.others.unsure.take() {
            match entries.first() {
                Some(first) if first.by == self.others.daemon => self.is_on_record(unsure),
                _ => {
                    self.others.unsure = Some(unsure);
                    self.end_unsure((Found::NotStored, NOT_DONE));
                    return Ok(false);
                }
            }
        }
        for entry in entries {
            if entry.n != self.others.head.n.next() {
                return Err(StoreError::BrokenLog {
                    n: entry.n,
                    what: "an entry before it is missing".into(),
                });
            }
            self.must_be_proved(&entry)?;
            self.has_log_to(Head { n: entry.n, mac: entry.mac });
            if let Some(gone) = self.has_gone(&entry) {
                self.takes_part_no_more(gone);
                return Ok(true);
            }
            // Memory already has this daemon's own decisions.
            if entry.by != self.others.daemon {
                self.fold_entry(entry);
            }
        }
        Ok(true)
    }

    /// Refuses an entry of another daemon that does not prove its content. Its rows are stored already, so the
    /// folder remembers that they must not take effect, even after a restart.
    fn must_be_proved(&mut self, entry: &LogEntry) -> Result<(), StoreError> {
        if entry.by == self.others.daemon {
            return Ok(());
        }
        let Err(why) = (self.others.check)(self.core.state(), entry) else { return Ok(()) };
        let what = format!("the host {} has written it, and {why}", entry.by.host.short());
        self.others.distrusts = true;
        self.store.distrust(entry.n, &what);
        Err(StoreError::BrokenLog { n: entry.n, what: what.into() })
    }

    /// Returns how this daemon has gone, if another one has committed that it has.
    fn has_gone(&self, entry: &LogEntry) -> Option<Gone> {
        entry.changes.iter().find_map(|it| match it {
            Change::HostDown(daemon, gone) if *daemon == self.others.daemon => Some(*gone),
            _ => None,
        })
    }

    /// Decides no more requests of this step, and ends the daemon.
    pub(super) fn takes_part_no_more(&mut self, gone: Gone) {
        let (why, begins_again) = match gone {
            Gone::Silent => (IS_DOWN, true),
            Gone::Removed => (IS_REMOVED, false),
        };
        self.ends(why, begins_again);
    }

    /// Ends a daemon whose memory has what a person has given up as lost. It begins again.
    pub(super) fn forgets_what_is_lost(&mut self, err: &StoreError) {
        if let StoreError::LossAccepted = err {
            self.ends(LOSS_IS_ACCEPTED, true);
        }
    }

    fn ends(&mut self, why: &str, begins_again: bool) {
        (self.lost, self.broken) = (Some(Lost { why: why.into(), begins_again }), Some(why.into()));
    }

    /// Folds an entry of another daemon: the boards follow, as after a commit of this one.
    fn fold_entry(&mut self, entry: LogEntry) {
        // If the store's clock was set back, each daemon continues at its own pace, and none falls behind what another one has written.
        if let (Some(clock), Some(last)) = (&self.others.clock, entry.events.last()) {
            clock.tell(last.at);
        }
        self.core.fold(&entry);
        self.show(&entry.changes, &entry.events);
        self.follow_changes(&entry.changes);
        if !entry.events.is_empty() {
            self.indexing.has_events();
        }
        entry.events.into_iter().for_each(|event| self.events.tell(event));
        for (id, host, effect) in entry.effects {
            if host == self.others.daemon.host {
                self.effects.hand(id, effect);
            }
        }
        self.effects.follow(&entry.changes);
    }

    /// Loads memory again from the store, while other daemons go on.
    fn load_again(&mut self) -> Result<(), StoreError> {
        let loaded = self.store.load(self.core.state().settings.clone())?;
        self.take_over(loaded);
        Ok(())
    }

    /// Continues from a loaded state.
    pub(super) fn take_over(&mut self, loaded: Loaded) {
        self.others.daemon = loaded.daemon;
        self.has_log_to(loaded.head);
        if self.others.are_there() {
            self.core.take_over(loaded.state);
            self.core.decides_at(loaded.daemon);
            self.inbox_index.load(self.core.state());
            self.tokens.replace(self.core.state());
        } else {
            self.core.restore(loaded.state);
        }
        self.effects.catch_up(loaded.daemon.host, loaded.owed);
        self.empty_queues.forget_all();
        self.events.tell_missed(self.store.journal_head().seq);
        (self.others.must_load, self.others.is_new, self.others.broke_off) = (false, true, loaded.broke_off);
        self.show_hidden();
    }

    /// Notes that memory cannot be loaded now after a failed commit: the shared store may only be away.
    pub(super) fn load_later(&mut self, err: &StoreError) {
        tracing::warn!(%err, "memory has to be loaded again, as soon as the shared store answers");
        self.others.must_load = true;
        self.others.is_ahead_from_now();
    }

    /// Keeps a batch for which the store has not confirmed or denied the commit.
    pub(super) fn keep_unsure(&mut self, batch: Batch, err: &StoreError, waiting: &mut Vec<Waiting>) {
        tracing::warn!(%err, "it is not known whether a batch is stored; the next turn tells");
        let (waiting, asked) = (std::mem::take(waiting), self.receiving.take_asked());
        self.others.unsure = Some(Unsure { batch, waiting, asked });
        self.others.is_ahead_from_now();
        self.trouble.tell_unsure(true);
    }

    /// Lets these queries wait until memory matches the store.
    pub(super) fn hide(&mut self, looks: &mut Vec<StateQuery>) {
        self.others.looks.append(looks);
    }

    fn show_hidden(&mut self) {
        let looks = std::mem::take(&mut self.others.looks);
        looks.into_iter().for_each(|look| look(self.now, self.core.state()));
    }

    /// Handles a commit without an answer that turned out to be stored.
    fn is_on_record(&mut self, unsure: Unsure) {
        self.trouble.tell_unsure(false);
        let Unsure { batch, mut waiting, asked } = unsure;
        self.found_out(Found::Stored);
        self.receiving.done();
        self.follow(batch);
        self.receiving.tell(asked);
        self.answer_all(&mut waiting);
        self.show_hidden();
    }

    /// Handles one that was not stored, or that stays unknown: its callers learn it, and memory is loaded again.
    fn end_unsure(&mut self, (found, why): (Found, &str)) {
        if let Some(mut unsure) = self.others.unsure.take() {
            self.found_out(found);
            self.others.must_load = true;
            self.trouble.tell_unsure(false);
            self.refuse_unsure(&mut unsure, why);
            self.receiving.refuse(why);
        }
    }

    fn refuse_unsure(&mut self, unsure: &mut Unsure, why: &str) {
        let told = || Refusal::Unavailable { why: why.into() };
        unsure.waiting.iter_mut().for_each(|it| it.answer = Err(told()));
        unsure.asked.iter_mut().for_each(|(_, it)| *it = Err(told()));
        self.receiving.tell(std::mem::take(&mut unsure.asked));
        self.answer_all(&mut unsure.waiting);
    }

    /// Releases those that have waited long enough: callers go without an answer, and queries see memory as it is.
    /// The outcome of the commit is still found out before anything else is decided.
    pub(super) fn give_up_waiting(&mut self, at_once: bool) {
        if !self.others.is_ahead() || (self.others.hides_memory() && !at_once) {
            return;
        }
        if let Some(mut unsure) = self.others.unsure.take() {
            self.refuse_unsure(&mut unsure, NOT_KNOWN);
            self.others.unsure = Some(unsure);
        }
        self.show_hidden();
    }

    /// Ends this daemon's holds before a stop, so that the other hosts see at once that no caller waits here any more.
    pub(super) fn leave(&mut self) {
        if !self.others.are_there() {
            return;
        }
        self.take_turn();
        if self.broken.is_none() && self.lost.is_none() {
            self.core.leave(self.now, &mut self.out);
            self.commit(&mut Vec::new());
        }
    }

    /// Notes that the store has announced a possible new entry.
    pub(super) fn is_woken(&mut self) {
        self.others.takes_note();
        if self.store.is_away() || self.broken.is_some() || self.others.is_ahead() {
            return;
        }
        let folded = self.store.catch_up(self.others.head).and_then(|behind| self.fold(behind));
        let folded = folded.and_then(|is_known| {
            self.others.must_load |= !is_known;
            if is_known { Ok(()) } else { self.load_again() }
        });
        if let Err(err) = folded {
            self.turned_away(&err);
        }
    }

    /// Takes back the grants to callers that have gone. Returns `true` if there were any.
    pub(super) fn take_back_all(&mut self) -> bool {
        let gave_back = std::mem::take(&mut self.others.gave_back);
        let any = !gave_back.is_empty();
        gave_back.into_iter().for_each(|(who, given)| self.take_back(&who, given));
        any
    }

    /// Answers callers. The peer may have hung up: its command counts nevertheless, and only its grant is taken back.
    pub(super) fn answer_all(&mut self, waiting: &mut Vec<Waiting>) {
        for Waiting { who, reply, answer } in waiting.drain(..) {
            if let Err(answer) = reply.send(answer)
                && let Some(given) = Given::by(&answer)
            {
                self.others.gave_back.push((who, given));
            }
        }
    }

    /// Checks whether there are grants to take back.
    pub(super) fn has_to_take_back(&self) -> bool {
        !self.others.gave_back.is_empty()
    }
}
