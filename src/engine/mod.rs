//! Order. One thread owns the core and the store; all others send it commands and wait.
//!
//! Promises: commands are applied one after another; the engine answers no command before its commit; an idle
//! Provost commits each command at once and a busy one commits many with one flush, without any timer; reads never
//! see uncommitted state. `domain` defines the meaning of commands, and `store` keeps the state.
#![forbid(unsafe_code)]

mod clock;
mod empty_queues;
mod fanout;
mod follower;
mod held;
mod inbox_index;
mod live;
mod lost;
mod measures;
mod message_queue;
mod observed;
mod readers;
mod repeats;
mod standing;
mod started;
mod token_board;
mod turns;
mod wait;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use clock::StoreClock;
pub use clock::{Clock, SteadyClock, SystemClock};
pub use empty_queues::{EmptyQueues, QueueSlot};
pub use fanout::{Encoded, Fanout, Frame};
pub use follower::{Follower, Numbered};
pub use inbox_index::{InboxIndex, InboxMark};
pub use live::Listener;
use live::Live;
pub use lost::{EntryCheck, Lost};
pub use measures::{Durations, Histogram, Measures, Spread};
use message_queue::{Closing, Message, MessageQueue};
pub use observed::{Found, HOST_STATES, Observed, Outcome, Sample, Signal, TaskEnd, WorkerUse};

use provost_base::limits::ENGINE_QUEUE_MAX;
use provost_base::{AgentId, Digest, EventSeq, Fence, MailSeq, SymbolPath, Timestamp};
use provost_domain::command::{Collected, Locked};
use provost_domain::post::{Owner, Post};
use provost_domain::view::View;
use provost_domain::{
    Answer, Command, Core, Facts, HostNames, Judge, JudgedVerb, Principal, Proof, Refusal, Reply, Settings,
    State, Verb, VerbName,
};
pub use provost_store::ENTRY_FORMAT;
/// A store's protection of acknowledged writes, for doors.
pub use provost_store::Protection;
use provost_store::{JournalHead, OpensReader, Retention, Store, StoreError};
use readers::Readers;
use repeats::{Repeats, Taken};
use standing::Trouble;
pub use standing::{HostSeen, HostsSeen, Standing};
pub use started::Started;
use token_board::TokenBoard;
use turns::Turns;
pub use wait::Woken;
use worker::Worker;
use worker::beside::Beside;
use worker::handed::Handed;
use worker::receiving;
use worker::turn::Others;

type Answered = Result<Answer<Reply>, Refusal>;
type StateQuery = Box<dyn FnOnce(Timestamp, &State) + Send>;

/// A request to the engine's thread.
enum Envelope {
    Command {
        who: Principal,
        command: Box<Command>,
        facts: Box<Facts>,
        reply: oneshot::Sender<Answered>,
    },
    /// Messages wait among those whose senders do not need their numbers.
    Messages,
    /// A commit on the second thread is over.
    Committed,
    /// Another daemon may have committed an entry.
    Wake,
    /// A caller went away before it read an answer that gave it something.
    TakeBack(Principal, Given),
    Look(StateQuery),
    /// A status waits among the repeated ones.
    Repeated,
    Reader(oneshot::Sender<Result<OpensReader, StoreError>>),
    Head(oneshot::Sender<JournalHead>),
    /// Asks to index what can be searched, as far as a search waits for it.
    Index(oneshot::Sender<()>),
    SetJudge(Box<dyn Judge>),
    SetSettings(Box<Settings>),
    SetCodeOwners(Vec<Owner>),
    Stop,
}

impl Envelope {
    /// Checks whether the request needs nothing but memory.
    fn only_looks(&self) -> bool {
        matches!(self, Envelope::Look(_) | Envelope::Reader(_) | Envelope::Head(_))
    }
}

/// A handle for doors, services and effects. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    queue: Arc<SyncSender<Envelope>>,
    events: Live,
    empty_queues: Arc<EmptyQueues>,
    inbox_index: Arc<InboxIndex>,
    repeats: Arc<Repeats>,
    messages: Arc<MessageQueue>,
    turns: Arc<Turns>,
    /// Whether there are acknowledged messages that are not on record.
    received: Arc<AtomicBool>,
    /// Committed tokens, which doors read without asking the thread.
    tokens: Arc<TokenBoard>,
    readers: Arc<Readers>,
    clock: Arc<dyn Clock>,
    trouble: Trouble,
    measures: Measures,
    /// Cancelled when the thread ends. A handle keeps the channel of events open, so the channel's end does not show it.
    over: CancellationToken,
}

/// Loads the store and starts the engine's thread, for a store with one writer, or with trusted writers.
///
/// # Errors
/// If the store cannot be read or its journal does not verify.
pub fn start(
    store: Box<dyn Store>,
    judge: Box<dyn Judge>,
    settings: Settings,
    clock: Box<dyn Clock>,
    retention: Retention,
) -> Result<Started, StoreError> {
    start_checking(store, judge, settings, clock, retention, Box::new(|_, _| Ok(())))
}

/// Starts the engine with a check of each entry of another daemon before it is folded.
///
/// # Errors
/// As [`start`].
// tidy: long because it hands each board to all who share it
pub fn start_checking(
    mut store: Box<dyn Store>,
    judge: Box<dyn Judge>,
    settings: Settings,
    clock: Box<dyn Clock>,
    retention: Retention,
    check: EntryCheck,
) -> Result<Started, StoreError> {
    let loaded = store.load(settings)?;
    let clock: Arc<dyn Clock> = Arc::from(clock);
    // An event in the log is never later than the next one, even if the system's clock was set back.
    let received = loaded.received.last().map_or(loaded.until, |it| it.at.max(loaded.until));
    clock.at_least(received);
    let of_store = store.is_shared().then(|| Arc::new(StoreClock::at(loaded.until, clock.clone())));
    let clock = of_store.clone().map_or(clock, |it| it as Arc<dyn Clock>);
    let mut core = Core::new(loaded.state, judge);
    core.decides_at(loaded.daemon);
    core.joined_for(store.role());
    let intake = receiving::recover(&mut core, &loaded.received, &mut *store, loaded.intake)?;
    let (queue, inbox) = sync_channel(ENGINE_QUEUE_MAX);
    let queue = Arc::new(queue);
    let beside = Beside::start(Arc::downgrade(&queue)).map_err(no_thread)?;
    let woken = woken_by(&mut *store, &queue);
    let others = Others::of((loaded.daemon, loaded.head, loaded.broke_off), of_store, woken, check);
    let events = Live::behind(store.journal_head().seq);
    let (owe, effects) = mpsc::unbounded_channel();
    let empty_queues = Arc::new(EmptyQueues::default());
    let inbox_index = Arc::new(InboxIndex::default());
    inbox_index.load(core.state());
    let repeats = Arc::new(Repeats::default());
    repeats.open(!store.waits_for_disk());
    let (received, messages) = (Arc::new(AtomicBool::new(false)), Arc::new(MessageQueue::default()));
    let tokens = Arc::new(TokenBoard::new(core.state()));
    let (trouble, measures) = (Trouble::default(), Measures::default());
    let worker = Worker::new(
        core,
        (store, intake, beside, others),
        clock.clone(),
        retention,
        events.teller(),
        Handed::of(owe, &loaded.owed),
        (
            empty_queues.clone(),
            inbox_index.clone(),
            repeats.clone(),
            messages.clone(),
            received.clone(),
            tokens.clone(),
            trouble.clone(),
            measures.clone(),
        ),
    );
    let turns = Arc::new(Turns::new(worker, messages.clone()));
    let engine = Engine {
        queue,
        events,
        empty_queues,
        inbox_index,
        repeats,
        messages: messages.clone(),
        turns: turns.clone(),
        received,
        tokens,
        readers: Arc::default(),
        clock,
        trouble,
        measures,
        over: CancellationToken::new(),
    };
    let (running, ended) = oneshot::channel();
    let over = engine.over.clone().drop_guard();
    let running: (oneshot::Sender<()>, DropGuard, Closing) = (running, over, Closing(messages));
    let run = move || {
        let _running = running;
        turns.run(&inbox)
    };
    let thread = std::thread::Builder::new().name("engine".into()).spawn(run).map_err(no_thread)?;
    Ok(Started { engine, effects, owed: loaded.owed, clean: loaded.clean, thread, ended })
}

/// Has the store wake the engine when another daemon may have committed something.
fn woken_by(store: &mut dyn Store, queue: &Arc<SyncSender<Envelope>>) -> Arc<AtomicBool> {
    let (queue, woken) = (Arc::downgrade(queue), Arc::new(AtomicBool::new(false)));
    let said = woken.clone();
    store.wake_by(Box::new(move || {
        // One call in the queue is enough, and a full queue wakes the engine as well.
        if !said.swap(true, Ordering::AcqRel)
            && let Some(queue) = queue.upgrade()
            && queue.try_send(Envelope::Wake).is_err()
        {
            said.store(false, Ordering::Release);
        }
    }));
    woken
}

fn no_thread(err: std::io::Error) -> StoreError {
    StoreError::Stopped(format!("cannot start the engine's thread: {err}").into())
}

impl Engine {
    /// Hands a verb to the core and waits until its outcome is committed.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn submit<V: Verb>(&self, who: &Principal, verb: V) -> Result<V::Reply, Refusal> {
        match self.decided(who, verb.into(), Facts::default()).await? {
            Answer::Done(reply) => Ok(paired(reply)),
            Answer::Parked(_) | Answer::Denied(_) => {
                unreachable!("policy is asked about a `JudgedVerb` alone")
            }
        }
    }

    /// Submits a verb that is subject to policy, with the facts that a service has found about it.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn submit_judged<V: JudgedVerb>(
        &self,
        who: &Principal,
        verb: V,
        facts: Facts,
    ) -> Result<Answer<V::Reply>, Refusal> {
        Ok(match self.decided(who, verb.into(), facts).await? {
            Answer::Parked(id) => Answer::Parked(id),
            Answer::Denied(denial) => Answer::Denied(denial),
            Answer::Done(reply) => Answer::Done(paired(reply)),
        })
    }

    /// Hands a command to the thread and waits until its outcome is committed. Each command of a door passes here.
    async fn decided(&self, who: &Principal, command: Command, facts: Facts) -> Answered {
        let watch = self.measures.watch(who.door(), command.verb());
        let answer = self.asked(who, command, facts).await;
        watch.answered(&answer);
        answer
    }

    async fn asked(&self, who: &Principal, command: Command, facts: Facts) -> Answered {
        let (reply, answer) = oneshot::channel();
        let (command, facts) = (Box::new(command), Box::new(facts));
        self.hand_over(Envelope::Command { who: who.clone(), command, facts, reply })?;
        let mut unread = Unread { engine: self, who, answer };
        (&mut unread.answer).await.map_err(|_| gone())?
    }

    /// Publishes a message for a sender that does not need its number, and waits until it is kept: it is on record
    /// before any later query is answered, and soon in any case. A start carries out kept messages that are not on
    /// record.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn publish(&self, who: Principal, post: Post) -> Result<(), Refusal> {
        let watch = self.measures.watch(who.door(), VerbName::Publish);
        let told = self.published(who, post).await;
        watch.told(&told);
        told
    }

    async fn published(&self, who: Principal, post: Post) -> Result<(), Refusal> {
        let (reply, answer) = oneshot::channel();
        // If the thread's queue is full, the thread takes messages before it takes anything from there.
        self.messages.put(Message { who, post, reply })?;
        let turn = Turn(self);
        // Messages that other connections have sent by now come into the same step. Each sender has its message
        // carried out if no other one has done so, so that none depends on a busy thread.
        tokio::task::yield_now().await;
        drop(turn);
        answer.await.map_err(|_| gone())?
    }

    /// Answers a query from memory.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn view<V: View>(&self, view: V) -> Result<V::Out, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.hand_over(Envelope::Look(Box::new(move |now, state| {
            // The caller may have gone; no other caller wants the answer.
            let _ = reply.send(view.look(now, state));
        })))?;
        answer.await.map_err(|_| gone())
    }

    /// Takes in a status that repeats its agent's last one, and returns whether it was a repeat. It is on record
    /// before any later request to the engine is answered, and soon in any case.
    pub fn repeats(&self, who: &Principal, post: &Post) -> bool {
        // A full queue makes the engine look as well.
        match self.repeats.take(who, post) {
            Taken::No => return false,
            Taken::Yes => {}
            Taken::First => drop(self.hand_over(Envelope::Repeated)),
            Taken::Many => self.wake(),
        }
        self.measures.observed().inspect(|it| it.repeated(who.door()));
        true
    }

    /// Waits until everything taken in before is on record, so that the store shows it.
    async fn settled(&self) {
        if self.repeats.any() || self.received.load(Ordering::Acquire) {
            let (reply, done) = oneshot::channel();
            let look = Box::new(move |_: Timestamp, _: &State| {
                // The reader may have given up.
                let _ = reply.send(());
            });
            // If the engine has stopped, or is too busy, there is nothing to wait for.
            if self.hand_over(Envelope::Look(look)).is_ok() {
                let _ = done.await;
            }
        }
    }

    /// Waits until what is on record can be searched, or as much of it as a search waits for.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn index(&self) -> Result<(), Refusal> {
        self.settled().await;
        let (reply, done) = oneshot::channel();
        self.hand_over(Envelope::Index(reply))?;
        done.await.map_err(|_| gone())
    }

    /// Returns the present end of the journal's chain.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn journal_head(&self) -> Result<JournalHead, Refusal> {
        self.settled().await;
        let (reply, answer) = oneshot::channel();
        self.hand_over(Envelope::Head(reply))?;
        answer.await.map_err(|_| gone())
    }

    /// Puts other rules in force.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub fn set_judge(&self, judge: Box<dyn Judge>) -> Result<(), Refusal> {
        self.hand_over(Envelope::SetJudge(judge))
    }

    /// Takes over another configuration.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub fn set_settings(&self, settings: Settings) -> Result<(), Refusal> {
        self.hand_over(Envelope::SetSettings(Box::new(settings)))
    }

    /// Takes over the repository's statement of who owns which files.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub fn set_code_owners(&self, owners: Vec<Owner>) -> Result<(), Refusal> {
        self.hand_over(Envelope::SetCodeOwners(owners))
    }

    /// Returns the time that measures everything, and that the log has. It only goes forward.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Checks whether the thread has ended, so that requests are no longer answered.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Returns why the store takes no writes at present, for a person; `None` while it does.
    pub fn trouble(&self) -> Option<Box<str>> {
        self.trouble.why()
    }

    /// Returns a problem of the store that a person should know though it still takes every write; `None` if all is
    /// well.
    pub fn note(&self) -> Option<Box<str>> {
        self.trouble.note()
    }

    /// Returns the state of the database that has the state; `None` if the state folder has it.
    pub fn standing(&self) -> Option<Standing> {
        self.trouble.standing()
    }

    /// Returns the hosts as the last turn at the database has found them; `None` if the state folder has the state.
    pub fn hosts_seen(&self) -> Option<HostsSeen> {
        self.trouble.hosts_seen()
    }

    /// Returns the age of what this daemon shows, if it has not heard in time from the database that has the state.
    pub fn stale(&self) -> Option<Duration> {
        self.trouble.stale()
    }

    /// Makes the thread look at the time, which may have gone on while the machine slept.
    pub fn wake(&self) {
        // A full queue wakes the thread as well.
        let _ = self.hand_over(Envelope::Look(Box::new(|_, _| {})));
    }

    /// Returns a listener for events after the newest, as they are committed.
    pub fn subscribe(&self) -> Listener {
        self.events.listen()
    }

    /// Returns such a listener without messages between agents, for long-lived listeners that do not need these.
    pub fn subscribe_beside_posts(&self) -> Listener {
        self.events.listen_beside_posts()
    }

    /// Returns a follower of the events after a cursor, then live; it never skips one.
    pub fn follow(&self, after: EventSeq) -> Follower {
        Follower::new(self, self.subscribe(), Some(after), Some)
    }

    /// Returns a follower of the events after the newest; it never skips one, except messages between agents.
    pub fn follow_beside_posts(&self) -> Follower {
        Follower::new(self, self.subscribe_beside_posts(), None, Some)
    }

    /// Returns the empty queues, which doors read without asking the engine.
    pub fn empty_queues(&self) -> &EmptyQueues {
        &self.empty_queues
    }

    /// Returns the newest number in every inbox of the broker.
    pub fn inbox_index(&self) -> &InboxIndex {
        &self.inbox_index
    }

    /// Checks whether a token reserves a name, so that this proof alone does not suffice for it.
    pub fn is_taken(&self, agent: &AgentId, proof: Proof) -> bool {
        self.tokens.is_taken(agent, proof, self.now())
    }

    /// Returns the names of other hosts' agents, as doors see them.
    pub fn host_names(&self) -> impl std::ops::Deref<Target = HostNames> + '_ {
        self.tokens.names()
    }

    /// Returns for how long the token with this digest is valid from now; `None` if it is not valid.
    pub fn is_good_for(&self, token: &Digest) -> Option<Duration> {
        self.tokens.good_for(token, self.now())
    }

    /// Returns the notice of changed tokens, also sent when the engine's time has gone on faster than timers know.
    pub fn token_changes(&self) -> &Arc<Notify> {
        self.tokens.changed()
    }

    /// Gives back a message whose carrier has gone; if that cannot be handed over, the message waits for the next start.
    pub fn put_back(&self, who: &Principal, seq: MailSeq) {
        let _ = self.hand_over(Envelope::TakeBack(who.clone(), Given::Mail(seq)));
    }

    /// Ends the thread after the requests that are already queued. Later commands are refused.
    pub fn stop(&self) {
        // A full queue empties within milliseconds; blocking here would stop the runtime with it.
        let mut envelope = Envelope::Stop;
        while let Err(TrySendError::Full(back)) = self.queue.try_send(envelope) {
            envelope = back;
            std::thread::yield_now();
        }
    }

    fn hand_over(&self, envelope: Envelope) -> Result<(), Refusal> {
        self.queue.try_send(envelope).map_err(|err| match err {
            TrySendError::Full(_) => Refusal::busy("too many requests at once"),
            TrySendError::Disconnected(_) => gone(),
        })?;
        self.measures.came();
        Ok(())
    }

    /// Returns the engine's measures of itself.
    pub fn measures(&self) -> &Measures {
        &self.measures
    }
}

/// The duty to carry out waiting messages, even if their sender goes away.
struct Turn<'a>(&'a Engine);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // The engine's thread finds out what a panic has broken.
        let step = AssertUnwindSafe(|| self.0.turns.step_at_door());
        if std::thread::panicking() || catch_unwind(step).unwrap_or(true) {
            // If the thread's queue is full, the thread takes messages before it takes anything from there.
            let _ = self.0.hand_over(Envelope::Messages);
        }
    }
}

/// An answer whose caller may stop waiting at any moment. A message in it goes back to its queue.
struct Unread<'a> {
    engine: &'a Engine,
    who: &'a Principal,
    answer: oneshot::Receiver<Answered>,
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(answer) = self.answer.try_recv()
            && let Some(given) = Given::by(&answer)
        {
            // If the queue is full or the engine stops, mail is left to the next start, and locks to their time.
            let _ = self.engine.hand_over(Envelope::TakeBack(self.who.clone(), given));
        }
    }
}

/// The part of an answer that only its caller has. It is given back if the caller has gone before the answer.
enum Given {
    Mail(MailSeq),
    Lock(SymbolPath, Fence),
}

impl Given {
    fn by(answer: &Answered) -> Option<Self> {
        match answer {
            Ok(Answer::Done(Reply::Collected(Collected { mail: Some(mail), .. }))) => {
                Some(Self::Mail(mail.seq))
            }
            Ok(Answer::Done(Reply::Locked(Locked::Held { lock, fresh: true, .. }))) => {
                Some(Self::Lock(lock.at.clone(), lock.fence))
            }
            _ => None,
        }
    }
}

/// Returns the reply of a verb, out of all replies.
fn paired<R: TryFrom<Reply>>(reply: Reply) -> R {
    reply.try_into().map_err(|_| ()).expect("the table of verbs pairs each verb with its reply")
}

fn gone() -> Refusal {
    Refusal::Stopping
}
