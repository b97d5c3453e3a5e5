//! The engine's thread: drain, apply, commit, answer.
//!
//! ```text
//!   [working] --commit fails--> [read-only] --probe succeeds--> [working]
//! ```
//! A failed commit is rolled back and memory is rebuilt from the store; reads go on, writes are refused with a
//! reason. The process ends only when memory cannot be rebuilt.

pub(super) mod receiving;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::live::Teller;
use super::message_queue::{Message, MessageQueue};
use super::repeats::{Repeats, Said, last_ones};
use super::token_board::TokenBoard;
use receiving::Receiving;

use super::{Answered, Clock, EmptyQueues, Envelope, Given, InboxIndex, Lost, StateQuery, Trouble};
use provost_base::limits::{BATCH_MAX, CLOCK_JUMP_MS_MIN, REPEATS_TOLD_MS_MAX};
use provost_base::{EffectId, TaskId, Timestamp};
use provost_domain::command::{Publish, ReleaseLock, Republish, SettleMail};
use provost_domain::post::{Post, Source};
use provost_domain::{
    Answer, Call, Change, Command, Core, Effect, Facts, Outbox, PostChange, Principal, Refusal, Reply, Task,
};
use provost_store::{Retention, Store, StoreError};

/// How often old history is pruned, and a failed store is tried again.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// After a start, once the process that waited for it is served: many daemons never run that long.
const PRUNE_FIRST: Duration = Duration::from_secs(1);
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Between two bites, when nothing else happens.
const PRUNE_PAUSE: Duration = Duration::from_millis(20);
/// Rows pruned at a time, so that no command waits long for housekeeping.
const PRUNE_BITE: u32 = 200;
/// How long repeated statuses wait for more.
const REPEATS_TOLD: Duration = Duration::from_millis(REPEATS_TOLD_MS_MAX);

/// An answer that one caller gets once the batch is committed.
struct Waiting {
    who: Principal,
    reply: oneshot::Sender<Answered>,
    answer: Answered,
}

/// Facts that doors read without asking the thread.
pub(super) type Boards = (
    Arc<EmptyQueues>,
    Arc<InboxIndex>,
    Arc<Repeats>,
    Arc<MessageQueue>,
    Arc<AtomicBool>,
    Arc<TokenBoard>,
    Trouble,
);

pub(super) struct Worker {
    core: Core,
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    retention: Retention,
    inbox: Receiver<Envelope>,
    events: Teller,
    effects: mpsc::UnboundedSender<(EffectId, Effect)>,
    board: Arc<EmptyQueues>,
    letterboxes: Arc<InboxIndex>,
    repeats: Arc<Repeats>,
    /// When those that wait have to be put on record.
    repeats_due: Option<Instant>,
    /// Repeated statuses that this batch puts on record.
    repeated: Vec<Arc<Said>>,
    /// Messages that wait to be taken, and room for those that are.
    messages: Arc<MessageQueue>,
    taken: Vec<Message>,
    /// Messages that are answered before their commit.
    receiving: Receiving,
    /// Statuses of this batch, which may be said again.
    said: Vec<Said>,
    tokens: Arc<TokenBoard>,
    out: Outbox,
    /// Tasks that ended in this batch, which the store does not know yet.
    ended: HashMap<TaskId, Arc<Task>>,
    now: Timestamp,
    /// When that time was taken.
    told: Instant,
    broken: Option<Box<str>>,
    /// Why nothing can be answered any more.
    lost: Option<Lost>,
    trouble: Trouble,
    probed: Instant,
    prune_at: Instant,
    prune_on: bool,
}

impl Worker {
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, in `start`, that wires the thread's ends together"
    )]
    pub(super) fn new(
        core: Core,
        store: Box<dyn Store>,
        clock: Arc<dyn Clock>,
        retention: Retention,
        inbox: Receiver<Envelope>,
        events: Teller,
        effects: mpsc::UnboundedSender<(EffectId, Effect)>,
        (board, letterboxes, repeats, messages, received, tokens, trouble): Boards,
    ) -> Self {
        let now = clock.now();
        Self {
            core,
            store,
            clock,
            retention,
            inbox,
            events,
            effects,
            board,
            letterboxes,
            repeats,
            repeats_due: None,
            repeated: Vec::new(),
            messages,
            taken: Vec::new(),
            receiving: Receiving::new(received),
            said: Vec::new(),
            tokens,
            out: Outbox::default(),
            ended: HashMap::new(),
            now,
            told: Instant::now(),
            broken: None,
            lost: None,
            trouble,
            probed: Instant::now(),
            prune_at: Instant::now() + PRUNE_FIRST,
            prune_on: false,
        }
    }

    /// Works until it is told to stop, or nothing can be answered any more.
    pub(super) fn run(mut self) -> Option<Lost> {
        self.tell_note();
        let mut waiting = Vec::with_capacity(BATCH_MAX);
        let mut looks = Vec::new();
        loop {
            let first = match self.inbox.recv_timeout(self.patience()) {
                Ok(envelope) => Some(envelope),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if matches!(first, Some(Envelope::Repeated)) {
                self.repeats_due.get_or_insert_with(|| Instant::now() + REPEATS_TOLD);
                continue;
            }
            // An earlier step has taken them.
            if matches!(first, Some(Envelope::Messages)) && !self.messages.any() {
                continue;
            }
            let mut stop = false;
            self.tell_time();
            self.lapse();
            self.put_on_record();
            self.take_messages();
            let mut next = first;
            while let Some(envelope) = next.take() {
                // What was acknowledged before this was asked comes before it.
                self.put_on_record();
                stop |= self.take_in(envelope, &mut waiting, &mut looks);
                if waiting.len() + looks.len() + self.receiving.asked() < BATCH_MAX {
                    next = self.inbox.try_recv().ok();
                }
            }
            self.tick();
            let is_quiet = waiting.is_empty() && looks.is_empty() && !stop;
            if !(is_quiet && self.receive()) {
                self.commit(&mut waiting);
            }
            self.receiving.answer();
            let mut gave_back = false;
            for Waiting { who, reply, answer } in waiting.drain(..) {
                // The peer may have hung up. Its command stands nevertheless; only what it was
                // given is taken back.
                if let Err(answer) = reply.send(answer)
                    && let Some(given) = Given::by(&answer)
                {
                    self.take_back(&who, given);
                    gave_back = true;
                }
            }
            if gave_back {
                self.commit(&mut []);
            }
            // Later callers learn that the engine has ended.
            if self.lost.is_some() {
                return self.lost;
            }
            looks.drain(..).for_each(|look: StateQuery| look(self.now, self.core.state()));
            if stop {
                break;
            }
            self.housekeeping();
        }
        self.close();
        None
    }

    /// How long to sleep when nothing comes in.
    fn patience(&self) -> Duration {
        if self.broken.is_some() {
            return PROBE_EVERY;
        }
        if self.prune_on {
            return PRUNE_PAUSE;
        }
        let due =
            self.core.state().next_deadline().map(|at| Duration::from_millis(at.since_ms(self.clock.now())));
        let prune = self.prune_at.saturating_duration_since(Instant::now());
        let repeats = self.repeats_due.map(|at| at.saturating_duration_since(Instant::now()));
        let received = self.receiving.due().map(|at| at.saturating_duration_since(Instant::now()));
        [due, repeats, received].into_iter().flatten().fold(prune, Duration::min)
    }

    /// Time never runs backwards, whatever the system clock does. What the system's clock is ahead is taken up when
    /// nothing runs that would end too soon.
    fn tell_time(&mut self) {
        if self.core.state().next_deadline().is_none() {
            self.clock.catch_up();
        }
        let before = self.now;
        self.now = before.max(self.clock.now());
        // The machine has slept, or a clock that was set ahead is followed at once; timers know of neither.
        let passed = u64::try_from(self.told.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.now.since_ms(before) > passed.saturating_add(CLOCK_JUMP_MS_MIN) {
            self.tokens.time_jumped();
        }
        self.told = Instant::now();
    }

    /// Takes one envelope; `true` when it was the last.
    fn take_in(
        &mut self,
        envelope: Envelope,
        waiting: &mut Vec<Waiting>,
        looks: &mut Vec<StateQuery>,
    ) -> bool {
        match envelope {
            Envelope::Command { who, command, facts, reply } => {
                // A caller that has gone before anything was granted gets nothing granted.
                if !reply.is_closed() {
                    let answer = self.apply(&who, *command, *facts);
                    waiting.push(Waiting { who, reply, answer });
                }
            }
            Envelope::Messages => self.take_messages(),
            Envelope::TakeBack(who, given) => self.take_back(&who, given),
            // They are on record already.
            Envelope::Repeated => {}
            // Views wait for the commit, so that no reader sees what may still be rolled back.
            Envelope::Look(look) => looks.push(look),
            Envelope::Reader(reply) => {
                let _ = reply.send(self.store.reader());
            }
            Envelope::Head(reply) => {
                let _ = reply.send(self.store.journal_head());
            }
            Envelope::SetJudge(judge) => self.core.set_judge(judge),
            Envelope::SetSettings(settings) => {
                self.core.set_settings(*settings);
                self.tokens.replace(self.core.state().tokens.clone());
                self.board.forget_all();
            }
            Envelope::SetCodeOwners(owners) => self.core.set_code_owners(owners),
            Envelope::Stop => {
                self.repeats.open(false);
                self.put_on_record();
                self.take_messages();
                return true;
            }
        }
        false
    }

    fn apply(&mut self, who: &Principal, command: Command, facts: Facts) -> Answered {
        if let Some(why) = &self.broken {
            return Err(Refusal::Unavailable { why: why.clone() });
        }
        let past = match command.names_task() {
            Some(id) if self.core.state().tasks.get(id).is_none() => match self.ended.get(id) {
                Some(task) => Some(task.clone()),
                None => self
                    .store
                    .past_task(id)
                    .map_err(|err| Refusal::Unavailable { why: self.report("cannot read a task", &err) })?,
            },
            _ => None,
        };
        let collects = matches!(command, Command::CollectMail(_));
        let said = said_by(who, &command);
        let call = Call { now: self.now, wall: self.clock.wall(), who, facts, past };
        let before = self.out.changes.len();
        let answer = self.core.apply(call, command, &mut self.out);
        for change in &self.out.changes[before..] {
            if let Change::FinishTask(task) | Change::AmendTask(task) = change {
                self.ended.insert(task.id().clone(), task.clone());
            }
        }
        self.said.extend(said.filter(|_| answer.is_ok()));
        if collects
            && let Ok(Answer::Done(Reply::Collected(collected))) = &answer
            && collected.mail.is_none()
        {
            self.board.empty(who.agent(), self.now);
        }
        answer
    }

    /// Applies what agents have said again. Of one that did so several times the last has all that follows from it.
    fn put_on_record(&mut self) {
        if self.broken.is_some() || !self.repeats.any() {
            return;
        }
        self.repeats_due = None;
        self.of_messages(Self::put_repeats_on_record);
    }

    fn put_repeats_on_record(&mut self) {
        let taken = self.repeats.drain();
        for (it, is_last) in taken.iter().zip(last_ones(&taken)) {
            let post = it.post.clone();
            let command: Command = match is_last {
                true => Publish { post, source: Source::Client }.into(),
                false => Republish { post }.into(),
            };
            if let Err(refusal) = self.apply(&it.who, command, Facts::default()) {
                tracing::debug!(agent = %it.who, %refusal, "a repeated status is not recorded");
            }
        }
        self.repeated.extend(taken);
    }

    /// Handles answers whose callers have gone: the message waits for the next collection, and
    /// the lock becomes free.
    fn take_back(&mut self, who: &Principal, given: Given) {
        match given {
            Given::Mail(seq) => {
                // Given up or withdrawn meanwhile, it needs nothing more.
                let _ = self.apply(who, SettleMail { seq, delivered: false }.into(), Facts::default());
                self.board.arrived(who.agent());
            }
            Given::Lock(at, fence) => {
                let release = ReleaseLock { at, fence: Some(fence), force: false };
                // Released or lapsed meanwhile, it needs nothing more.
                let _ = self.apply(who, release.into(), Facts::default());
            }
        }
    }

    fn lapse(&mut self) {
        if self.broken.is_none() {
            self.core.lapse(self.now, &mut self.out);
        }
    }

    fn tick(&mut self) {
        if self.broken.is_none() && self.core.state().next_deadline().is_some_and(|at| at <= self.now) {
            self.core.tick(self.now, &mut self.out);
        }
    }

    fn commit(&mut self, waiting: &mut [Waiting]) {
        self.ended.clear();
        if !self.out.is_empty()
            && let Err(err) = self.store.commit(&self.out)
        {
            self.fall_back(&err, waiting);
            return;
        }
        self.repeated.clear();
        self.tell_note();
        self.show();
        for change in &self.out.changes {
            match change {
                Change::PutMail(mail) => self.board.arrived(&mail.to),
                Change::CarryMail(agent, _, false) => self.board.arrived(agent),
                // An inbox is emptied bit by bit.
                Change::Post(PostChange::DropMailbox(slug)) => {
                    self.prune_on = true;
                    self.repeats.forget(slug);
                }
                Change::PutToken(_) | Change::DropToken(_) => self.tokens.follow(change),
                _ => {}
            }
        }
        if !self.out.is_empty() {
            self.receiving.done();
        }
        for event in self.out.events.drain(..) {
            self.events.tell(event);
        }
        for said in self.said.drain(..) {
            if self.core.state().broker.has_heard(&said.post) {
                self.repeats.learn(said);
            }
        }
        for effect in self.out.effects.drain(..) {
            // Without hands the effects stay owed in the store, which is where a restart finds them.
            let _ = self.effects.send(effect);
        }
        self.out.clear();
    }

    /// Memory is ahead of the store: rebuild it the way a start does, and refuse writes until the store answers.
    fn fall_back(&mut self, err: &StoreError, waiting: &mut [Waiting]) {
        let why = self.report("cannot commit", err);
        self.out.clear();
        self.receiving.refuse(&why);
        // Refusals as well: they may rest on what has just been rolled back.
        for it in waiting.iter_mut() {
            it.answer = Err(Refusal::Unavailable { why: why.clone() });
        }
        let (settings, head) = (self.core.state().settings.clone(), self.store.journal_head());
        match self.store.load(settings) {
            Ok(loaded) => {
                self.core.restore(loaded.state);
                if self.store.journal_head() != head {
                    tracing::warn!("a commit that was reported as failed is on record");
                    self.receiving.done();
                }
            }
            Err(err) => {
                tracing::error!(%err, "memory cannot be rebuilt from the store; the daemon ends, so that no answer is wrong");
                self.lost = Some(Lost(err.to_string().into()));
            }
        }
        self.board.forget_all();
        self.break_off(why, err);
    }

    /// Nothing is taken until the store answers again. What was taken in before waits for that.
    fn break_off(&mut self, why: Box<str>, err: &StoreError) {
        self.repeats.open(false);
        self.repeats.put_back(std::mem::take(&mut self.repeated));
        self.said.clear();
        self.tell_trouble(Some(err.to_string().into()));
        (self.broken, self.probed) = (Some(why), Instant::now());
    }

    fn tell_trouble(&self, why: Option<Box<str>>) {
        self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner).trouble = why;
    }

    fn tell_note(&self) {
        self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner).note = self.store.note();
    }

    /// Logs the cause under a number, and returns a sentence without paths or statements.
    fn report(&self, what: &str, err: &StoreError) -> Box<str> {
        let incident = format!("{:x}", self.now.0);
        tracing::error!(%err, incident, "{what}");
        if let StoreError::Swapped { .. } = err {
            return format!(
                "the store's files were moved, removed or changed by another program, so nothing is written any more \
                 (incident {incident}; `provost doctor` says what to do)"
            )
            .into();
        }
        format!("the store failed (incident {incident}; see the log and the free space of its disk)").into()
    }

    fn housekeeping(&mut self) {
        if self.broken.is_some() && self.probed.elapsed() >= PROBE_EVERY {
            self.probed = Instant::now();
            if self.store.probe().is_ok() {
                tracing::warn!("the store answers again; writes go on");
                self.broken = None;
                self.repeats.open(!self.store.waits_for_disk());
                self.repeats_due = Some(Instant::now());
                self.tell_trouble(None);
                self.catch_up();
            }
        } else if self.broken.is_none() && self.probed.elapsed() >= PROBE_EVERY {
            self.probed = Instant::now();
            if let Err(err) = self.store.look() {
                let why = self.report("the store is not what it was", &err);
                self.break_off(why, &err);
            }
        }
        if self.broken.is_none() && (self.prune_on || Instant::now() >= self.prune_at) {
            match self.store.prune(self.now, &self.retention, PRUNE_BITE) {
                Ok(pruned) if pruned.more => self.prune_on = true,
                Ok(_) => (self.prune_at, self.prune_on) = (Instant::now() + PRUNE_EVERY, false),
                Err(err) => {
                    tracing::warn!(%err, "old history could not be pruned");
                    (self.prune_at, self.prune_on) = (Instant::now() + PRUNE_EVERY, false);
                }
            }
        }
    }

    /// What was on its way back while the last answers went out is memory's alone; a failed store has not stopped
    /// in order.
    fn close(&mut self) {
        if self.broken.is_some() {
            return;
        }
        if let Err(err) = self.store.close() {
            tracing::error!(%err, "the stop could not be noted; the next start counts as one after a crash");
            self.tell_trouble(Some(err.to_string().into()));
        }
    }
}

/// A status that its agent may say again.
fn said_by(who: &Principal, command: &Command) -> Option<Said> {
    match command {
        Command::Publish(Publish { post: post @ Post::Status { .. }, source: Source::Client }) => {
            Some(Said { who: who.clone(), post: post.clone() })
        }
        _ => None,
    }
}
