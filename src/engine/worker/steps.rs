//! The steps of the engine: requests are taken, applied, kept or committed, and answered.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::super::{Envelope, Lost, StateQuery};
use super::receiving::StoreWait;
use super::{PROBE_EVERY, PRUNE_PAUSE, REPEATS_TOLD, Waiting, Worker};
use provost_base::limits::BATCH_MAX;

/// The continuation after a step.
pub(in super::super) enum Step {
    /// Wait for the next request, or for work that is due after this time.
    Wait(Duration),
    /// The end, with the reason if no caller has told the engine to stop.
    End(Option<Lost>),
}

impl Worker {
    /// Does one step of any kind, on the engine's own thread. Without an envelope, some work is due.
    pub(in super::super) fn step(&mut self, first: Option<Envelope>, inbox: &Receiver<Envelope>) -> Step {
        self.went(first.as_ref());
        if matches!(first, Some(Envelope::Repeated)) {
            self.repeats_due.get_or_insert_with(|| Instant::now() + REPEATS_TOLD);
            return self.wait();
        }
        if matches!(first, Some(Envelope::Wake)) {
            return self.wake(inbox);
        }
        self.welcome();
        self.give_up_waiting(false);
        let tells = matches!(first, None | Some(Envelope::Messages | Envelope::Committed));
        // An earlier step has done it.
        let is_due = self.messages.any() || !self.is_through() || self.patience().is_zero();
        let is_due = is_due || self.broken.is_some() || self.prune_on || self.indexing.is_due();
        if self.lost.is_none() && tells && !is_due {
            return self.wait();
        }
        let is_idle = first.is_none();
        let (mut waiting, mut looks) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.looks));
        let stop = self.step_of_all(first, inbox, &mut waiting, &mut looks);
        (self.waiting, self.looks) = (waiting, looks);
        if stop && self.lost.is_none() {
            self.close();
            return Step::End(None);
        }
        if self.lost.is_none() {
            self.housekeeping();
            self.index(is_idle);
        }
        self.after()
    }

    /// Folds what other daemons have committed. If a command waits, or work is due, its own turn does that, and saves a round trip.
    fn wake(&mut self, inbox: &Receiver<Envelope>) -> Step {
        let next = inbox.try_recv().ok();
        // The others may commit one entry after the other: this host gives its signs of life meanwhile, and looks after its store.
        let probes = self.broken.is_some() && self.probed.elapsed() >= PROBE_EVERY;
        let is_due = next.is_none() && (probes || self.patience().is_zero());
        if is_due || matches!(next, Some(Envelope::Command { .. })) {
            self.others.takes_note();
            return self.step(next, inbox);
        }
        self.is_woken();
        if next.is_some() { self.step(next, inbox) } else { self.after() }
    }

    fn after(&mut self) -> Step {
        // Later callers learn that the engine has ended.
        match self.lost.take() {
            Some(lost) => Step::End(Some(lost)),
            None => self.wait(),
        }
    }

    /// Notes that a request has left the queue. The end of a commit on the second thread was not counted when it came.
    fn went(&self, envelope: Option<&Envelope>) {
        if envelope.is_some_and(|it| !matches!(it, Envelope::Committed | Envelope::Wake | Envelope::Stop)) {
            self.measures.went();
        }
    }

    fn wait(&mut self) -> Step {
        let kept = self.keeps_turn();
        let patience = self.patience();
        let patience = kept.map_or(patience, |it| it.min(patience));
        self.wakes_at = Instant::now() + patience;
        Step::Wait(patience)
    }

    /// Does a step of messages only, on the thread of a door. Returns `true` if the engine's own thread has to go on.
    pub(in super::super) fn step_of_messages(&mut self) -> bool {
        self.welcome();
        // A turn at a shared store is taken on the engine's own thread.
        if self.lost.is_some() || self.broken.is_some() || !self.is_through() || self.others.are_there() {
            return true;
        }
        self.begin();
        self.tick();
        if !self.receive(StoreWait::None) {
            return true;
        }
        let due = Instant::now() + self.patience();
        let is_sooner = due < self.wakes_at;
        self.wakes_at = self.wakes_at.min(due);
        is_sooner
    }

    /// Does the first part of each step: the turn, the time, and the waiting messages.
    fn begin(&mut self) {
        self.take_turn();
        self.tell_time();
        self.lapse();
        self.take_back_all();
        self.put_on_record();
        self.take_messages();
    }

    /// Does the rest of a step; returns `true` if it was the last one.
    fn step_of_all(
        &mut self,
        first: Option<Envelope>,
        inbox: &Receiver<Envelope>,
        waiting: &mut Vec<Waiting>,
        looks: &mut Vec<StateQuery>,
    ) -> bool {
        let mut stop = false;
        // A query that only reads memory waits for no other daemon.
        let mut has_begun = !(self.others.are_there() && first.as_ref().is_some_and(Envelope::only_looks));
        if has_begun {
            self.begin();
        }
        let mut next = first;
        while let Some(envelope) = next.take() {
            if matches!(envelope, Envelope::Wake) {
                if !has_begun {
                    self.is_woken();
                    // Queries do not wait for one notice after the other.
                    break;
                }
                // The turn has folded all entries, and the others wait until it ends: a question would cost them a round trip.
                self.others.takes_note();
            } else {
                if !has_begun && !envelope.only_looks() {
                    self.begin();
                    has_begun = true;
                }
                // Statuses acknowledged before this request come before it.
                self.put_on_record();
                stop |= self.take_in(envelope, waiting, looks);
            }
            if waiting.len() + looks.len() + self.receiving.asked() < BATCH_MAX {
                next = inbox.try_recv().ok();
                self.went(next.as_ref());
            }
        }
        if has_begun {
            self.tick();
            let is_quiet = waiting.is_empty() && looks.is_empty() && !stop;
            if !(is_quiet && self.receive(StoreWait::ForStore)) {
                self.commit(waiting);
            }
            self.receiving.answer();
            self.answer(waiting);
        } else {
            self.tell_time();
        }
        if self.others.hides_memory() {
            self.hide(looks);
        } else if self.lost.is_none() {
            looks.drain(..).for_each(|look: StateQuery| look(self.now, self.core.state()));
        }
        stop
    }

    fn answer(&mut self, waiting: &mut Vec<Waiting>) {
        self.answer_all(waiting);
        if self.has_to_take_back() {
            self.take_turn();
            self.take_back_all();
            self.commit(&mut Vec::new());
        }
    }

    /// Returns how long to sleep if no request comes.
    fn patience(&self) -> Duration {
        if self.broken.is_some() {
            return PROBE_EVERY;
        }
        if self.prune_on {
            return PRUNE_PAUSE;
        }
        let deadline =
            self.core.state().next_deadline().map(|at| Duration::from_millis(at.since_ms(self.clock.now())));
        let prune = self.prune_at.saturating_duration_since(Instant::now());
        let repeats = self.repeats_due.map(|at| at.saturating_duration_since(Instant::now()));
        // The end of a commit on the second thread wakes this one.
        let due = self.receiving.due().filter(|_| !self.store.is_away());
        let received = due.map(|at| at.saturating_duration_since(Instant::now()));
        let index = self.indexing.due_in().filter(|_| !self.store.is_away());
        let others = self.others.due_in();
        [deadline, repeats, received, index, others].into_iter().flatten().fold(prune, Duration::min)
    }
}
