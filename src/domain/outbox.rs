//! Collects the results of the commands of one batch: events, rows and effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::effect::Effect;
use super::event::{Event, EventKind};
use super::row::Change;
use super::{Counters, Durability, JudgedRequest, Mail};
use provost_base::{
    AgentId, ApplyId, ApprovalId, DaemonId, EffectId, EventSeq, Fence, HostId, MailSeq, PostSeq, Ticket,
    Timestamp,
};

/// The outputs of a batch, in order. The store writes all of them or none.
#[derive(Debug)]
pub struct Outbox {
    /// Rows to write, in the order in which memory and store apply them.
    pub changes: Vec<Change>,
    /// Events to append to the log.
    pub events: Vec<Event>,
    /// Effects that are owed from now on.
    pub effects: Vec<(EffectId, Effect)>,
    /// The effects among them that the daemons of other hosts carry out.
    elsewhere: BTreeMap<EffectId, DaemonId>,
    /// The daemon that carries out the present command's effects, if it is another one.
    owes_at: Option<DaemonId>,
    /// The durability that the batch's commit has to wait for.
    pub durability: Durability,
    start: Mark,
    counters: Counters,
    before: Counters,
    stamp: Option<(Timestamp, AgentId)>,
    here: DaemonId,
}

/// A point to which an [`Outbox`] can be rewound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    changes: usize,
    events: usize,
    effects: usize,
    counters: Counters,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            events: Vec::new(),
            effects: Vec::new(),
            elsewhere: BTreeMap::new(),
            owes_at: None,
            durability: Durability::Unstored,
            start: Mark::default(),
            counters: Counters::default(),
            before: Counters::default(),
            stamp: None,
            here: DaemonId::default(),
        }
    }
}

impl Outbox {
    pub(super) fn begin(&mut self, counters: Counters, (now, actor): (Timestamp, AgentId), here: DaemonId) {
        (self.counters, self.before) = (counters, counters);
        self.stamp = Some((now, actor));
        (self.here, self.owes_at) = (here, None);
        self.start = self.mark();
    }

    /// Closes one command and returns its changes.
    pub(super) fn finish(&mut self, durability: Durability) -> &[Change] {
        if self.counters != self.before {
            self.changes.push(Change::Count(self.counters));
        }
        self.durability = self.durability.max(durability);
        &self.changes[self.start.changes..]
    }

    /// Returns the events and changes of the current command.
    pub(super) fn news(&self) -> (&[Event], &[Change]) {
        (&self.events[self.start.events..], &self.changes[self.start.changes..])
    }

    /// Returns the effects of the current command, each with the host that carries it out.
    pub(super) fn owed_news(&self) -> Vec<(HostId, &Effect)> {
        let host = |id| self.owed_at(id).unwrap_or(self.here).host;
        self.effects[self.start.effects..].iter().map(|(id, effect)| (host(*id), effect)).collect()
    }

    /// Checks whether the current command has left anything that must be stored.
    pub(super) fn wrote(&self) -> bool {
        self.events.len() > self.start.events
            || self.effects.len() > self.start.effects
            || self.changes[self.start.changes..].iter().any(Change::is_stored)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            changes: self.changes.len(),
            events: self.events.len(),
            effects: self.effects.len(),
            counters: self.counters,
        }
    }

    /// Drops everything that came after `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.changes.truncate(mark.changes);
        self.events.truncate(mark.events);
        self.effects.truncate(mark.effects);
        self.counters = mark.counters;
        // Their numbers are issued again.
        self.elsewhere.split_off(&mark.counters.effect.next());
    }

    /// Drops everything that the current command did.
    pub(super) fn undo(&mut self) {
        self.rewind(self.start);
    }

    pub(super) fn put(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(super) fn append_event(&mut self, kind: EventKind) -> EventSeq {
        // Both places that hand an outbox to a rule call `begin` first.
        let Some((at, actor)) = self.stamp.clone() else { return self.counters.event };
        self.counters.event = self.counters.event.next();
        let event = Event { seq: self.counters.event, at, actor, kind, host: self.here.host };
        self.counters.timeline += u64::from(event.topic().is_some());
        self.events.push(event);
        self.counters.event
    }

    /// Adds the rules' input to the events since `mark` that it has allowed.
    pub(super) fn put_judged(&mut self, mark: Mark, request: &JudgedRequest) {
        self.events.iter_mut().skip(mark.events).for_each(|it| it.kind.put_judged(request));
    }

    /// Appends an event and returns it, for a rule that shows the event to its caller.
    pub(super) fn told(&mut self, kind: EventKind) -> Event {
        self.append_event(kind);
        self.events.last().cloned().expect("something was said just now")
    }

    pub(super) fn owe(&mut self, effect: Effect) -> EffectId {
        self.counters.effect = self.counters.effect.next();
        self.effects.push((self.counters.effect, effect));
        self.elsewhere.extend(self.owes_at.map(|at| (self.counters.effect, at)));
        self.counters.effect
    }

    /// Owes an effect for the daemon of another host, if the daemon is another one.
    pub(super) fn owe_at(&mut self, daemon: DaemonId, effect: Effect) -> EffectId {
        let other = self.other(daemon);
        let before = std::mem::replace(&mut self.owes_at, other);
        let id = self.owe(effect);
        self.owes_at = before;
        id
    }

    /// Assigns the effects of the present command from now on to that daemon.
    pub(super) fn owes_at(&mut self, daemon: DaemonId) {
        self.owes_at = self.other(daemon);
    }

    fn other(&self, daemon: DaemonId) -> Option<DaemonId> {
        Some(daemon).filter(|it| !it.is_alone() && it.host != self.here.host)
    }

    /// Takes over an effect that a down daemon has owed. The effect keeps its number.
    pub(super) fn take_over(&mut self, id: EffectId, effect: Effect) {
        self.effects.push((id, effect));
    }

    /// Returns the daemon of another host that carries this effect out; `None` if the deciding one does.
    pub fn owed_at(&self, id: EffectId) -> Option<DaemonId> {
        self.elsewhere.get(&id).copied()
    }

    /// Returns the daemon that carries out the effects of the present command.
    pub(super) fn owner(&self) -> DaemonId {
        self.owes_at.unwrap_or(self.here)
    }

    /// Returns the daemon that decides.
    pub(super) fn here(&self) -> DaemonId {
        self.here
    }

    pub(super) fn next_approval(&mut self) -> ApprovalId {
        self.counters.approval = self.counters.approval.next();
        self.counters.approval
    }

    pub(super) fn next_apply(&mut self) -> ApplyId {
        self.counters.apply = self.counters.apply.next();
        self.counters.apply
    }

    pub(super) fn next_mail(&mut self) -> MailSeq {
        self.counters.mail = self.counters.mail.next();
        self.counters.mail
    }

    pub(super) fn next_fence(&mut self) -> Fence {
        self.counters.fence = self.counters.fence.next();
        self.counters.fence
    }

    pub(super) fn next_post(&mut self) -> PostSeq {
        self.counters.post = self.counters.post.next();
        self.counters.post
    }

    pub(super) fn next_ticket(&mut self) -> Ticket {
        self.counters.ticket = self.counters.ticket.next();
        self.counters.ticket
    }

    pub(super) fn next_named(&mut self) -> u64 {
        self.counters.named += 1;
        self.counters.named
    }

    /// Skips `step` numbers of each kind.
    pub(super) fn skip_numbers(&mut self, step: u64) {
        self.counters = self.counters.skipped(step);
    }

    /// Goes on above these numbers.
    pub(super) fn raise_numbers(&mut self, to: &Counters) {
        self.counters = self.counters.raised(to);
    }

    pub(super) fn count_finished(&mut self, failed: bool) {
        if failed {
            self.counters.failed += 1;
        } else {
            self.counters.completed += 1;
        }
    }

    /// Returns the messages that the current command has queued for an agent, and the numbers of those that it has removed.
    pub(super) fn mail_of(&self, agent: &AgentId) -> (Vec<Arc<Mail>>, BTreeSet<MailSeq>) {
        let (mut put, mut gone) = (Vec::new(), BTreeSet::new());
        for change in &self.changes[self.start.changes..] {
            match change {
                Change::PutMail(mail) if mail.to == *agent => put.push(mail.clone()),
                Change::DropMail(to, seq) if to == agent => drop(gone.insert(*seq)),
                _ => {}
            }
        }
        (put, gone)
    }

    /// Checks whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.effects.is_empty() && !self.changes.iter().any(Change::is_stored)
    }

    /// Checks whether there is anything that the daemons of other hosts have to know.
    pub fn is_shared(&self) -> bool {
        !self.is_empty() || self.changes.iter().any(Change::is_shared)
    }

    /// Empties the outbox for the next batch.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.events.clear();
        self.effects.clear();
        self.elsewhere.clear();
        self.durability = Durability::Unstored;
    }
}
