//! The engine's thread: drain, apply, commit, answer.
//!
//! ```text
//!   [working] --commit fails--> [read-only] --probe succeeds--> [working]
//! ```
//! A failed commit is rolled back and memory is rebuilt from the store; reads go on, and writes are refused with a
//! reason. The process ends only if memory cannot be rebuilt.

pub(super) mod beside;
mod counting;
pub(super) mod handed;
mod hosts;
mod indexing;
pub(super) mod receiving;
mod repeated;
pub(super) mod steps;
pub(super) mod turn;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::live::Teller;
use super::measures::Measures;
use super::message_queue::{Message, MessageQueue};
use super::repeats::{Repeats, Said};
use super::token_board::TokenBoard;
use beside::{Batch, Beside, Home};
use handed::Handed;
use indexing::Indexing;
use receiving::Receiving;
use turn::Others;

use super::{Answered, Clock, EmptyQueues, Envelope, Given, InboxIndex, Lost, StateQuery, Trouble};
use provost_base::limits::{AFTER_MAX, BATCH_MAX, CLOCK_JUMP_MS_MIN, REPEATS_TOLD_MS_MAX};
use provost_base::{TaskId, Timestamp};
use provost_domain::command::{Publish, ReleaseLock, SettleMail};
use provost_domain::post::{Post, Source};
use provost_domain::{
    Answer, Call, Change, Command, Core, Facts, Outbox, PostChange, Principal, Refusal, Reply, Task,
};
use provost_store::{CommitError, Intake, JournalHead, Retention, Store, StoreError};

/// The interval at which old history is pruned, and a failed store is tried again.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// The delay after a start, so that the process that waited for it is served first: many daemons never run that long.
const PRUNE_FIRST: Duration = Duration::from_secs(1);
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// The pause between two portions, if there is no other work.
const PRUNE_PAUSE: Duration = Duration::from_millis(20);
/// Rows pruned at a time, so that no command waits long for housekeeping.
const PRUNE_BITE: u32 = 200;
/// The time for which repeated statuses wait for more.
const REPEATS_TOLD: Duration = Duration::from_millis(REPEATS_TOLD_MS_MAX);

/// An answer that a caller gets once the batch is committed.
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
    Measures,
);

/// The store with the parts of the engine that use it.
pub(super) type AtStore = (Box<dyn Store>, Option<Box<dyn Intake>>, Beside, Others);

pub(super) struct Worker {
    core: Core,
    store: Home,
    /// The intake that keeps messages until their commit.
    intake: Option<Box<dyn Intake>>,
    /// The thread that commits while this one goes on.
    beside: Beside,
    others: Others,
    clock: Arc<dyn Clock>,
    retention: Retention,
    events: Teller,
    effects: Handed,
    empty_queues: Arc<EmptyQueues>,
    inbox_index: Arc<InboxIndex>,
    repeats: Arc<Repeats>,
    /// When the waiting repeats have to be recorded.
    repeats_due: Option<Instant>,
    /// Repeated statuses that this batch records.
    repeated: Vec<Arc<Said>>,
    /// Messages that wait, and room for those that are taken.
    messages: Arc<MessageQueue>,
    taken: Vec<Message>,
    /// Messages that are answered before their commit.
    receiving: Receiving,
    /// Statuses of this batch, which may be repeated.
    said: Vec<Said>,
    /// The number of commands in this batch.
    applied: u32,
    tokens: Arc<TokenBoard>,
    out: Outbox,
    /// An empty outbox, with room.
    spare: Outbox,
    /// Tasks that ended in this batch, which the store does not know yet.
    ended: HashMap<TaskId, Arc<Task>>,
    now: Timestamp,
    /// When that time was read.
    told: Instant,
    broken: Option<Box<str>>,
    /// The reason why requests can no longer be answered.
    lost: Option<Lost>,
    /// When the engine's thread wakes by itself.
    wakes_at: Instant,
    /// Room for a step's commands and views.
    waiting: Vec<Waiting>,
    looks: Vec<StateQuery>,
    trouble: Trouble,
    probed: Instant,
    prune_at: Instant,
    prune_on: bool,
    indexing: Indexing,
    measures: Measures,
}

impl Worker {
    pub(super) fn new(
        core: Core,
        (store, intake, beside, others): AtStore,
        clock: Arc<dyn Clock>,
        retention: Retention,
        events: Teller,
        effects: Handed,
        (empty_queues, inbox_index, repeats, messages, received, tokens, trouble, measures): Boards,
    ) -> Self {
        let now = clock.now();
        let mut worker = Self {
            core,
            store: Home::of(store),
            intake,
            beside,
            others,
            clock,
            retention,
            events,
            effects,
            empty_queues,
            inbox_index,
            repeats,
            repeats_due: None,
            repeated: Vec::new(),
            messages,
            taken: Vec::new(),
            receiving: Receiving::new(received),
            said: Vec::new(),
            applied: 0,
            tokens,
            out: Outbox::default(),
            spare: Outbox::default(),
            ended: HashMap::new(),
            now,
            told: Instant::now(),
            broken: None,
            lost: None,
            wakes_at: Instant::now(),
            waiting: Vec::with_capacity(BATCH_MAX),
            looks: Vec::new(),
            trouble,
            probed: Instant::now(),
            prune_at: Instant::now() + PRUNE_FIRST,
            prune_on: false,
            indexing: Indexing::default(),
            measures,
        };
        worker.tell_note();
        worker.indexing.begin(&*worker.store);
        worker
    }

    /// Reads the time, which never runs backwards, even if the system clock does. A system clock that is ahead is
    /// adopted if no duration runs that would end too soon.
    fn tell_time(&mut self) {
        if self.core.state().next_deadline().is_none() {
            self.clock.catch_up();
        }
        let before = self.now;
        self.now = before.max(self.clock.now());
        // The machine has slept, or a clock that was set ahead is adopted at once; timers know of neither.
        let passed = u64::try_from(self.told.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.now.since_ms(before) > passed.saturating_add(CLOCK_JUMP_MS_MIN) {
            self.tokens.time_jumped();
        }
        self.told = Instant::now();
    }

    /// Takes one envelope; returns `true` if it was the last.
    fn take_in(
        &mut self,
        envelope: Envelope,
        waiting: &mut Vec<Waiting>,
        looks: &mut Vec<StateQuery>,
    ) -> bool {
        if !matches!(envelope, Envelope::Messages | Envelope::Committed | Envelope::Repeated | Envelope::Wake)
        {
            self.have_store(waiting);
        }
        match envelope {
            Envelope::Command { who, command, facts, reply } => {
                // A caller that has gone before a grant gets nothing granted.
                if !reply.is_closed() {
                    let answer = self.apply(&who, *command, *facts);
                    waiting.push(Waiting { who, reply, answer });
                }
            }
            Envelope::Messages => self.take_messages(),
            Envelope::TakeBack(who, given) => self.take_back(&who, given),
            // They are on record already, or the step has folded what they announce.
            Envelope::Repeated | Envelope::Committed | Envelope::Wake => {}
            // Views wait for the commit, so that no reader sees state that may still be rolled back.
            Envelope::Look(look) => looks.push(look),
            Envelope::Reader(reply) => {
                let _ = reply.send(self.store.opens_reader());
            }
            Envelope::Head(reply) => {
                let _ = reply.send(self.store.journal_head());
            }
            Envelope::Index(reply) => self.indexing.asked.push(reply),
            Envelope::SetJudge(judge) => self.core.set_judge(judge),
            Envelope::SetSettings(settings) => {
                self.core.set_settings(*settings);
                self.tokens.replace(self.core.state());
                self.empty_queues.forget_all();
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
            Some(id) => self.past_task(id)?,
            None => None,
        };
        let mut earlier = Vec::new();
        for id in command.waits_for().iter().take(AFTER_MAX) {
            earlier.extend(self.past_task(id)?);
        }
        let collects = matches!(command, Command::CollectMail(_));
        // The command moves into the core, and a refusal may have to name what it wanted.
        let wanted = match &command {
            Command::AcquireLock(verb) if verb.wait.is_some() => Some(verb.at.clone()),
            _ => None,
        };
        let said = said_by(who, &command);
        self.applied = self.applied.saturating_add(1);
        let call = Call { now: self.now, wall: self.clock.wall(), who, facts, past, earlier };
        let before = self.out.changes.len();
        let answer = self.core.apply(call, command, &mut self.out);
        if let (Err(refusal), Some(wanted)) = (&answer, &wanted) {
            self.core.note_circle(self.now, who.agent(), wanted, refusal, &mut self.out);
        }
        // The outbox has the changes of the whole batch; only those of this command are new.
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
            self.empty_queues.empty(who.agent(), self.now);
        }
        answer
    }

    /// Returns the finished task with an id; `None` if it is not finished, or does not exist.
    fn past_task(&mut self, id: &TaskId) -> Result<Option<Arc<Task>>, Refusal> {
        if self.core.state().tasks.get(id).is_some() {
            return Ok(None);
        }
        // A task that ended in this batch is in the state no more, and not in the store yet.
        if let Some(task) = self.ended.get(id) {
            return Ok(Some(task.clone()));
        }
        let read = self.store.past_task(id);
        read.map_err(|err| Refusal::Unavailable { why: self.report("cannot read a task", &err) })
    }

    /// Handles answers whose callers have gone: the message waits for the next collection, and the lock becomes
    /// free.
    fn take_back(&mut self, who: &Principal, given: Given) {
        match given {
            Given::Mail(seq) => {
                // If it was given up or withdrawn meanwhile, it needs nothing more.
                let _ = self.apply(who, SettleMail { seq, delivered: false }.into(), Facts::default());
                self.empty_queues.arrived(who.agent());
            }
            Given::Lock(at, fence) => {
                let release = ReleaseLock { at, fence: Some(fence), force: false };
                // If it was released or has lapsed meanwhile, it needs nothing more.
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

    fn commit(&mut self, waiting: &mut Vec<Waiting>) {
        if !self.have_store(waiting) {
            return;
        }
        self.ended.clear();
        let (batch, head) = (self.take_batch(), self.store.journal_head());
        if self.has_to_commit(&batch.out) {
            let began = Instant::now();
            match self.store.commit(&batch.out) {
                Ok(head) => self.has_log_to(head),
                Err(CommitError::Failed(err)) => return self.roll_back(batch, &err, waiting),
                Err(CommitError::Unknown(err)) => return self.keep_unsure(batch, &err, waiting),
            }
            self.committed(began.elapsed(), &batch);
            self.keep_after(head);
            self.receiving.done();
        } else {
            self.let_go();
        }
        self.follow(batch);
    }

    /// Checks whether a batch has anything for the store or for other daemons.
    fn has_to_commit(&self, out: &Outbox) -> bool {
        !out.is_empty() || (self.others.are_there() && out.is_shared())
    }

    /// Lets the intake keep messages after the present head, if the journal has gone on since it ended at `head`.
    fn keep_after(&mut self, head: JournalHead) {
        let now = self.store.journal_head();
        if let Some(intake) = self.intake.as_mut().filter(|_| now != head) {
            intake.begin_at(&now);
        }
    }

    /// Takes everything that the next commit includes.
    fn take_batch(&mut self) -> Batch {
        let out = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
        let (said, repeated) = (std::mem::take(&mut self.said), std::mem::take(&mut self.repeated));
        let (shown, commands) = (self.receiving.begin(), std::mem::take(&mut self.applied));
        Batch { out, said, repeated, shown, commands }
    }

    /// Follows a batch that is on record: the boards are updated, and all who wait for the batch get their answers.
    fn follow(&mut self, mut batch: Batch) {
        self.tell_note();
        self.show_rest(&batch.out, batch.shown);
        self.count(&batch.out.changes);
        self.follow_changes(&batch.out.changes);
        if !batch.out.events.is_empty() {
            self.indexing.has_events();
        }
        for event in batch.out.events.drain(..) {
            self.events.tell(event);
        }
        for said in batch.said {
            if self.core.state().broker.has_heard(&said.post) {
                self.repeats.learn(said);
            }
        }
        let mut effects = std::mem::take(&mut batch.out.effects);
        // The daemon that carries the others out finds them in the log.
        effects.retain(|(id, _)| batch.out.owed_at(*id).is_none());
        effects.into_iter().for_each(|(id, effect)| self.effects.hand(id, effect));
        self.effects.follow(&batch.out.changes);
        batch.out.clear();
        self.spare = batch.out;
    }

    /// Updates the boards, which doors read without asking, with changes that are on record.
    fn follow_changes(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::PutMail(mail) => self.empty_queues.arrived(&mail.to),
                Change::CarryMail(agent, _, None) => self.empty_queues.arrived(agent),
                // An inbox is emptied in small portions.
                Change::Post(PostChange::DropMailbox(slug)) => {
                    self.prune_on = true;
                    self.repeats.forget(slug);
                }
                Change::PutToken(_) | Change::DropToken(_) => self.tokens.follow(change),
                Change::At(..)
                | Change::DropAgent(_)
                | Change::PutAbility(_)
                | Change::DropAbility(_)
                | Change::HostDown(..) => self.tokens.follow_names(change),
                _ => {}
            }
        }
    }

    /// Handles a batch that is not on record.
    fn roll_back(&mut self, batch: Batch, err: &StoreError, waiting: &mut [Waiting]) {
        let later = std::mem::replace(&mut self.repeated, batch.repeated);
        self.repeated.extend(later);
        self.fall_back(err, waiting);
    }

    /// Handles memory that is ahead of the store: it is rebuilt as at a start, and writes are refused until the
    /// store answers.
    fn fall_back(&mut self, err: &StoreError, waiting: &mut [Waiting]) {
        let why = self.report("cannot commit", err);
        self.out.clear();
        self.receiving.refuse(&why);
        // This includes refusals: they may rest on state that was just rolled back.
        for it in waiting.iter_mut() {
            it.answer = Err(Refusal::Unavailable { why: why.clone() });
        }
        let (settings, head) = (self.core.state().settings.clone(), self.store.journal_head());
        match self.store.load(settings) {
            Ok(loaded) => {
                self.take_over(loaded);
                // At a shared store, messages are not acknowledged before their commit, and others may have gone on.
                if self.others.are_there() || self.store.journal_head() == head {
                    self.receiving.unsent();
                } else {
                    tracing::warn!("a commit that was reported as failed is on record");
                    // Messages are already kept after the batch that was committed on the second thread.
                    if !self.receiving.is_sent() {
                        self.keep_after(head);
                    }
                    self.receiving.done();
                }
            }
            Err(err) if self.others.are_there() => self.load_later(&err),
            Err(err) => {
                tracing::error!(%err, "memory cannot be rebuilt from the store; the daemon ends, so that no answer is wrong");
                let why = format!(
                    "the store cannot be read any more: {err}; the daemon has ended, so that no answer is wrong: check its disk, \
                     and run `provost doctor`"
                );
                self.lost = Some(Lost { why: why.into(), begins_again: false });
            }
        }
        self.empty_queues.forget_all();
        self.break_off(why, err);
    }

    /// Takes no writes until the store answers again. Messages taken in before wait for that.
    fn break_off(&mut self, why: Box<str>, err: &StoreError) {
        self.repeats.open(false);
        self.repeats.put_back(std::mem::take(&mut self.repeated));
        self.said.clear();
        self.applied = 0;
        self.measures.observed().inspect(|it| it.store_failed());
        self.tell_trouble(Some(err));
        (self.broken, self.probed) = (Some(why), Instant::now());
        self.forgets_what_is_lost(err);
    }

    fn tell_trouble(&self, err: Option<&StoreError>) {
        self.trouble.tell(err, self.now);
    }

    fn tell_note(&self) {
        self.trouble.tell_note(self.store.note());
    }

    /// Logs the cause under a number, and returns a sentence without paths or statements.
    fn report(&self, what: &str, err: &StoreError) -> Box<str> {
        // The caller gets the number, and the log has the cause with its paths.
        let incident = format!("{:x}", self.now.0);
        tracing::error!(%err, incident, "{what}");
        if let StoreError::Swapped { .. } = err {
            return format!(
                "the store's files were moved, removed or changed by another program, so nothing is written any more \
                 (incident {incident}; `provost doctor` says what to do)"
            )
            .into();
        }
        if self.others.are_there() {
            let says = hosts::said_of(err);
            let next = if says == hosts::SILENT {
                "see the log); ask again once it does"
            } else {
                "`provost status` says more)"
            };
            return format!("{says} (incident {incident}; {next}").into();
        }
        format!("the store failed (incident {incident}; see the log and the free space of its disk)").into()
    }

    fn housekeeping(&mut self) {
        if self.store.is_away() {
            return;
        }
        if self.broken.is_some() && self.others.are_trusted() && self.probed.elapsed() >= PROBE_EVERY {
            self.probed = Instant::now();
            match self.store.probe() {
                Ok(()) => self.answers_again(),
                Err(err) => self.is_still_away(&err),
            }
        } else if self.broken.is_none() && self.probed.elapsed() >= PROBE_EVERY {
            self.probed = Instant::now();
            match self.store.look() {
                Ok(()) => self.store_answers(),
                Err(err) => {
                    let why = self.report("the store is not what it was", &err);
                    self.break_off(why, &err);
                }
            }
        }
        if self.broken.is_none() && (self.prune_on || Instant::now() >= self.prune_at) {
            // In bites: commands wait while the store deletes.
            match self.store.prune(self.now, &self.retention, PRUNE_BITE) {
                Ok(pruned) if pruned.more => self.prune_on = true,
                Ok(_) => (self.prune_at, self.prune_on) = (Instant::now() + PRUNE_EVERY, false),
                Err(err) => {
                    tracing::warn!(%err, "old history could not be pruned");
                    (self.prune_at, self.prune_on) = (Instant::now() + PRUNE_EVERY, false);
                    if err.silent().is_some() {
                        self.turned_away(&err);
                    }
                }
            }
        }
    }

    /// Stops the store. Answers that came back while the last ones went out are in memory only; a failed store has
    /// not stopped in order.
    fn close(&mut self) {
        self.have_store(&mut []);
        self.give_up_waiting(true);
        self.leave();
        if self.broken.is_some() {
            return;
        }
        match self.store.close() {
            Ok(()) => self.intake.iter_mut().for_each(|it| it.clear()),
            Err(err) => {
                tracing::error!(%err, "the stop could not be noted; the next start counts as one after a crash");
                self.tell_trouble(Some(&err));
            }
        }
    }
}

/// Returns a status that its agent may repeat.
fn said_by(who: &Principal, command: &Command) -> Option<Said> {
    match command {
        Command::Publish(Publish { post: post @ Post::Status { .. }, source: Source::Client }) => {
            Some(Said { who: who.clone(), post: post.clone() })
        }
        _ => None,
    }
}
