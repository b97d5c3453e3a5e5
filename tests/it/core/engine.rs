//! Order: what the engine answers, when, and what happens when its store or its callers go away.

mod fanout;
mod following;
mod owed;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use provost::base::limits::ENGINE_QUEUE_MAX;
use provost::base::{Digest, EffectId, EventSeq, Json, TaskId, Timestamp};
use provost::domain::command::{BeginRun, CollectMail, Collected, Delegate, Delegated, Record, SettleMail};
use provost::domain::view::{HasMail, LiveTask, LiveTasks};
use provost::domain::{Answer, Command, Decision, Effect, EventKind, Facts, Judge, Owed, Principal, Refusal};
use provost::engine::{Clock, Engine, Lost, Started, SystemClock, start};
use provost::store::{Retention, Store, Verdict};
use provost_test_equipment::{MemoryControl, MemoryStore};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::support::script::{ByWord, client, host};
use crate::support::storm::{agent, order, settings};
use crate::support::waits::{eventually_so, within};

const PATIENCE: Duration = Duration::from_secs(20);
const FOR_EVER: Retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };

/// A clock that a test turns.
#[derive(Clone)]
struct Turned(Arc<AtomicI64>);

impl Turned {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_700_000_000_000)))
    }

    fn turn(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Turned {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// Rules that stop at the word `wait` until they are let go, so that a batch can be filled at leisure.
struct Gate(Arc<Bar>);

#[derive(Default)]
struct Bar {
    down: AtomicBool,
    reached: AtomicBool,
}

impl Judge for Gate {
    fn decide(&self, who: &Principal, command: &Command, facts: &Facts) -> Decision {
        if matches!(command, Command::Delegate(it) if it.goal.starts_with("wait")) {
            self.0.reached.store(true, Ordering::SeqCst);
            assert!(within(PATIENCE, || !self.0.down.load(Ordering::SeqCst)), "nobody lets it go");
        }
        ByWord::default().decide(who, command, facts)
    }

    fn version(&self) -> Digest {
        ByWord::default().version()
    }
}

/// An engine over a store that can be opened again.
struct Ran {
    engine: Engine,
    effects: UnboundedReceiver<(EffectId, Effect)>,
    owed: Vec<Owed>,
    clean: bool,
    thread: std::thread::JoinHandle<Option<Lost>>,
    clock: Turned,
    gate: Arc<Bar>,
}

fn run(store: Box<dyn Store>) -> Ran {
    run_for(store, FOR_EVER)
}

fn run_for(store: Box<dyn Store>, retention: Retention) -> Ran {
    let (clock, gate) = (Turned::new(), Arc::new(Bar::default()));
    let judge = Box::new(Gate(gate.clone()));
    let Started { engine, effects, owed, clean, thread, .. } =
        start(store, judge, settings(), Box::new(clock.clone()), retention).unwrap();
    Ran { engine, effects, owed, clean, thread, clock, gate }
}

fn memory() -> (Ran, MemoryControl) {
    let store = MemoryStore::new();
    let control = store.control();
    (run(Box::new(store)), control)
}

impl Ran {
    async fn delegate(
        &self,
        who: &str,
        number: u64,
        goal: &str,
        worker: &str,
    ) -> Result<Answer<Delegated>, Refusal> {
        self.engine.submit_judged(&client(who), ordered(number, goal, worker), Facts::default()).await
    }

    async fn unfinished(&self) -> usize {
        self.engine.view(LiveTasks).await.unwrap().tasks.len()
    }

    async fn next_effect(&mut self) -> (EffectId, Effect) {
        timeout(PATIENCE, self.effects.recv()).await.unwrap().unwrap()
    }

    /// Stops the engine's thread at a command of `gate`'s.
    async fn stop_at_the_gate(&self) -> tokio::task::JoinHandle<Result<Answer<Delegated>, Refusal>> {
        self.gate.down.store(true, Ordering::SeqCst);
        let engine = self.engine.clone();
        let first = tokio::spawn(async move {
            engine.submit_judged(&client("gate"), ordered(9_999, "wait", "cli"), Facts::default()).await
        });
        eventually_so("the gate", async || self.gate.reached.load(Ordering::SeqCst)).await;
        first
    }

    fn open_the_gate(&self) {
        self.gate.down.store(false, Ordering::SeqCst);
    }

    /// Lets everything that is queued be taken in as one batch behind `wait`.
    async fn behind_a_gate<T>(&self, queue: impl FnOnce(&Engine) -> Vec<T>) -> Vec<T> {
        let first = self.stop_at_the_gate().await;
        let queued = queue(&self.engine);
        let_all_submit().await;
        self.open_the_gate();
        let _ = first.await.unwrap();
        queued
    }
}

/// Gives every spawned task its turn: they share this thread, which sees to some sixty of them between two of
/// ours.
async fn let_all_submit() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

fn ordered(number: u64, goal: &str, worker: &str) -> Delegate {
    order(number, goal, worker, Json::parse(&format!(r#"{{"n":{number}}}"#)).unwrap())
}

fn id(number: u64) -> TaskId {
    TaskId::parse(&format!("t-{number}")).unwrap()
}

fn record(n: u64) -> Record {
    Record { what: "test".into(), subject: n.to_string().into(), details: Json::null() }
}

async fn collect(engine: &Engine, who: &str) -> Collected {
    engine.submit(&client(who), CollectMail { alive: true }).await.unwrap()
}

// Failing stores.

#[tokio::test]
async fn a_failed_commit_is_answered_as_one_and_leaves_nothing() {
    let (mut ran, store) = memory();
    ran.delegate("ada", 1, "do", "cli").await.unwrap();
    let mut events = ran.engine.subscribe();
    let head = ran.engine.journal_head().await.unwrap();
    store.fail_commits(true);
    let said = ran.delegate("ada", 2, "do", "cli").await;
    assert!(matches!(said, Err(Refusal::Unavailable { .. })), "{said:?}");

    assert_eq!(ran.unfinished().await, 1, "reads go on, and see what is stored");
    assert_eq!(ran.engine.journal_head().await.unwrap(), head);
    assert!(events.try_recv().is_err(), "nothing of it was announced");
    let said = ran.delegate("ada", 3, "do", "cli").await;
    assert!(matches!(said, Err(Refusal::Unavailable { .. })), "writes wait for the store: {said:?}");

    store.fail_commits(false);
    eventually_so("a write, once the store answers", async || {
        ran.delegate("ada", 4, "do", "cli").await.is_ok()
    })
    .await;
    assert_eq!(ran.unfinished().await, 2);
    let mut spawned = Vec::new();
    for _ in 0..2 {
        let Effect::SpawnWorker { task } = ran.next_effect().await.1 else { panic!("a stop") };
        spawned.push(task);
    }
    assert_eq!(spawned, [id(1), id(4)]);
    assert!(ran.effects.try_recv().is_err(), "nothing is carried out for what was rolled back");
    let seqs: Vec<_> = store.events().iter().map(|it| it.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no number was lost");
    assert!(matches!(
        store.reopen().opens_reader().and_then(|open| open()).unwrap().verify(None).unwrap(),
        Verdict::Ok { .. }
    ));
}

#[tokio::test]
async fn all_of_a_failed_batch_is_unavailable_refusals_included() {
    let (ran, store) = memory();
    store.fail_commit(1);
    let queued = ran
        .behind_a_gate(|engine| {
            let say = |verb: Delegate, who: &str| {
                let (engine, who) = (engine.clone(), client(who));
                tokio::spawn(async move { engine.submit_judged(&who, verb, Facts::default()).await })
            };
            vec![say(ordered(9_999, "wait", "cli"), "thief"), say(ordered(1, "do", "cli"), "ada")]
        })
        .await;
    for said in queued {
        let said = said.await.unwrap();
        assert!(matches!(said, Err(Refusal::Unavailable { .. })), "{said:?} rests on what never was");
    }
}

#[tokio::test]
async fn nobody_sees_what_is_not_committed() {
    let (ran, store) = memory();
    store.fail_commit(1);
    let views = ran
        .behind_a_gate(|engine| {
            let engine = engine.clone();
            vec![tokio::spawn(async move { engine.view(LiveTask(id(9_999))).await })]
        })
        .await;
    for view in views {
        assert_eq!(view.await.unwrap().unwrap(), None);
    }
}

// Batches.

#[tokio::test]
async fn a_crowd_shares_commits() {
    const CROWD: u64 = 200;
    let (ran, store) = memory();
    let tasks = ran
        .behind_a_gate(|engine| {
            let say = |n| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.submit(&host(), record(n)).await })
            };
            (0..CROWD).map(say).collect()
        })
        .await;
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let commits = store.commits();
    let events: usize = commits.iter().map(|it| it.events).sum();
    assert!(events as u64 > CROWD);
    assert!(commits.len() < 20, "{} commits for {CROWD} commands", commits.len());
}

#[tokio::test]
async fn one_command_alone_is_committed_at_once() {
    let (ran, store) = memory();
    for n in 0..5 {
        ran.engine.submit(&host(), record(n)).await.unwrap();
        assert_eq!(store.commits().len() as u64, n + 1);
    }
}

#[tokio::test]
async fn an_id_is_taken_from_the_moment_its_task_ends_within_a_batch_too() {
    let (ran, _) = memory();
    let order = ordered(1, "never", "cli");
    let answers = ran
        .behind_a_gate(|engine| {
            let say = || {
                let (engine, order) = (engine.clone(), order.clone());
                tokio::spawn(
                    async move { engine.submit_judged(&client("ada"), order, Facts::default()).await },
                )
            };
            (0..5).map(|_| say()).collect()
        })
        .await;
    for answer in answers {
        assert!(matches!(answer.await.unwrap(), Ok(Answer::Denied(_))));
    }
    let ended = ran.engine.view(LiveTasks).await.unwrap();
    assert_eq!(ended.failed, 1, "it was denied once and the repeats were told so");
    assert!(collect(&ran.engine, "ada").await.mail.is_some());
    assert!(collect(&ran.engine, "ada").await.mail.is_none());
}

#[tokio::test]
async fn more_than_the_queue_holds_is_told_so() {
    let (ran, _) = memory();
    let mut tasks = ran
        .behind_a_gate(|engine| {
            let say = |n| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.submit(&host(), record(n)).await })
            };
            (0..ENGINE_QUEUE_MAX as u64 + 200).map(say).collect()
        })
        .await;
    let (mut done, mut busy) = (0, 0);
    for task in tasks.drain(..) {
        match task.await.unwrap() {
            Ok(_) => done += 1,
            Err(Refusal::Busy { .. }) => busy += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(done >= ENGINE_QUEUE_MAX && busy > 0, "{done} done, {busy} too many");
}

// Callers.

#[tokio::test]
async fn a_caller_that_has_gone_gets_nothing_granted() {
    let (ran, _) = memory();
    let first = ran.stop_at_the_gate().await;
    let engine = ran.engine.clone();
    let leaves = tokio::spawn(async move {
        engine.submit_judged(&client("ada"), ordered(3, "do", "cli"), Facts::default()).await
    });
    let_all_submit().await;
    leaves.abort();
    assert!(leaves.await.is_err());
    ran.open_the_gate();
    first.await.unwrap().unwrap();
    assert_eq!(ran.engine.view(LiveTask(id(3))).await.unwrap(), None);
}

#[tokio::test]
async fn a_message_that_its_caller_did_not_wait_for_goes_back() {
    let (ran, _) = memory();
    ran.delegate("ada", 1, "do", "bob").await.unwrap();
    let who = client("bob");
    for round in 0..200_u64 {
        let asked = ran.engine.submit(&who, CollectMail { alive: true });
        // Given up before, while or after the engine answers.
        let in_time = timeout(Duration::from_micros(round * 3), asked).await;
        let received = match in_time {
            Ok(Ok(Collected { mail: Some(mail), .. })) => mail,
            Ok(other) => panic!("{other:?}"),
            Err(_) => {
                let until = Instant::now() + PATIENCE;
                loop {
                    if let Some(mail) = collect(&ran.engine, "bob").await.mail {
                        break mail;
                    }
                    assert!(Instant::now() < until, "a message was lost in round {round}");
                    tokio::task::yield_now().await;
                }
            }
        };
        ran.engine.submit(&who, SettleMail { seq: received.seq, delivered: false }).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_answer_is_a_message_kept() {
    let (ran, _) = memory();
    ran.delegate("ada", 1, "do", "bob").await.unwrap();
    let who = client("bob");
    // Asked, answered, and never looked at.
    let first = ran.stop_at_the_gate().await;
    let mut asked = Box::pin(ran.engine.submit(&who, CollectMail { alive: true }));
    assert!(poll_once(asked.as_mut()).is_none());
    ran.open_the_gate();
    first.await.unwrap().unwrap();
    ran.engine.journal_head().await.unwrap();
    ran.engine.view(LiveTasks).await.unwrap();
    assert!(!ran.engine.view(HasMail(agent("bob"))).await.unwrap(), "it is on its way");
    drop(asked);
    assert!(ran.engine.view(HasMail(agent("bob"))).await.unwrap(), "it waits again");
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(out) => Some(out),
        std::task::Poll::Pending => None,
    }
}

// Mail and the board.

#[tokio::test]
async fn an_empty_queue_is_known_to_be_empty_until_mail_comes() {
    let (ran, _) = memory();
    let slot = ran.engine.empty_queues().slot(&agent("bob"));
    let now = || ran.clock.now();
    assert!(!slot.is_idle(now()), "nothing is known at first");
    assert!(collect(&ran.engine, "bob").await.mail.is_none());
    assert!(slot.is_idle(now()));
    let mut arrived = std::pin::pin!(slot.arrived.notified());
    arrived.as_mut().enable();
    ran.delegate("ada", 1, "do", "bob").await.unwrap();
    timeout(PATIENCE, arrived).await.unwrap();
    assert!(!slot.is_idle(now()));

    let mail = collect(&ran.engine, "bob").await.mail.unwrap();
    let mut back = std::pin::pin!(slot.arrived.notified());
    back.as_mut().enable();
    ran.engine.submit(&client("bob"), SettleMail { seq: mail.seq, delivered: false }).await.unwrap();
    timeout(PATIENCE, back).await.unwrap();
    assert_eq!(collect(&ran.engine, "bob").await.mail.unwrap().seq, mail.seq);
}

// Time.

#[tokio::test]
async fn time_does_not_run_backwards() {
    let (ran, store) = memory();
    ran.engine.submit(&host(), record(1)).await.unwrap();
    ran.clock.turn(60_000);
    ran.engine.submit(&host(), record(2)).await.unwrap();
    ran.clock.turn(-3_600_000);
    ran.engine.submit(&host(), record(3)).await.unwrap();
    let at: Vec<_> = store.events().iter().map(|it| it.at).collect();
    assert!(at.is_sorted() && at[1] == at[2], "{at:?}");
}

#[tokio::test]
async fn deadlines_come_without_anybody_asking() {
    let (mut ran, store) = memory();
    ran.delegate("ada", 1, "do", "cli").await.unwrap();
    let (effect, _) = ran.next_effect().await;
    let until = Timestamp(ran.clock.now().0 - 59_990);
    ran.engine.submit(&host(), BeginRun { effect, task: id(1), until }).await.unwrap();
    let mut follower = ran.engine.follow(EventSeq(0));
    ran.clock.turn(20);
    timeout(PATIENCE, async {
        while !matches!(follower.next().await.unwrap().kind, EventKind::TaskFinished { .. }) {}
    })
    .await
    .unwrap();
    assert!(matches!(ran.next_effect().await.1, Effect::StopWorker { .. }));
    assert!(store.events().len() > 3);
}

// The follower.

// Effects, stop and start.
