//! kill -9 in the middle of everything: what was answered stands, nothing stands twice, what is owed is paid
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use provost::base::{Digest, EffectId, EventSeq, Json, MailSeq, TaskId};
use provost::domain::command::{BeginRun, CollectMail, EndRun, Record, SettleEffect, SettleMail, Status};
use provost::domain::view::LiveTasks;
use provost::domain::{
    Answer, Decision, Effect, EventKind, Facts, Failure, Judge, MailKind, Owed, Principal, Refusal, Report,
    Settings, TaskState, Terms,
};
use provost::engine::{Engine, Started, SystemClock, start};
use provost::store::{Options, Retention, Verdict, open, open_reader};
use tempfile::TempDir;

use crate::support::script::{client, host, report, rule};
use crate::support::storm::{Dice, order, settings};

const ROUNDS: u64 = 24;
const CROWD: u64 = 16;
/// Where the victim finds its store; without it, it has nothing to do.
const PLACE: &str = "PROVOST_TEST_VICTIM";
const ROUND: &str = "PROVOST_TEST_ROUND";
const FOR_EVER: Retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };

// The victim.

/// Everything is allowed: this is about rest, not about rules.
struct Open;

impl Judge for Open {
    fn decide(&self, _: &Principal, _: &provost::domain::Command, _: &Facts) -> Decision {
        Decision::Allow { rule: rule("open"), terms: Terms::default() }
    }

    fn version(&self) -> Digest {
        Digest::of(b"open")
    }
}

fn started(dir: &Path) -> Started {
    let store = open(dir, Options::default()).expect("the store opens after a kill");
    let settings = Settings { hooks: true, ..settings() };
    start(store, Box::new(Open), settings, Box::new(SystemClock), FOR_EVER).unwrap()
}

/// One line, written as a whole: what has been answered.
fn tell(line: &str) {
    std::io::stdout().lock().write_all(format!("\n!{line}\n").as_bytes()).unwrap();
}

/// The hands: each start is put on record, leaves a trace in a file, and its end is put on record.
async fn carry_out(engine: Engine, dir: Arc<Path>, effect: EffectId, what: Effect) {
    let Effect::SpawnWorker { task } = what else {
        engine.submit(&host(), SettleEffect { effect }).await.unwrap();
        return;
    };
    let until = provost::base::Timestamp(i64::MAX / 2);
    if engine.submit(&host(), BeginRun { effect, task: task.clone(), until }).await.is_err() {
        return;
    }
    let mut ran = fs::OpenOptions::new().append(true).create(true).open(dir.join("ran")).unwrap();
    ran.write_all(format!("{task}\n").as_bytes()).unwrap();
    end(&engine, effect, task, Status::Completed, None).await;
}

async fn end(engine: &Engine, effect: EffectId, task: TaskId, status: Status, failure: Option<Failure>) {
    let report = Report { summary: "over".into(), ..Report::default() };
    let end = EndRun { effect, task: task.clone(), status, report, failure, model_used: None, changes: None };
    if engine.submit(&host(), end).await.is_ok() {
        tell(&format!("E {task}"));
    }
}

async fn pay(engine: &Engine, dir: &Arc<Path>, owed: Vec<Owed>) {
    for Owed { id, effect, started, .. } in owed {
        match effect {
            Effect::SpawnWorker { task } if started => {
                end(engine, id, task, Status::Failed, Some(Failure::Lost)).await;
            }
            effect => carry_out(engine.clone(), dir.clone(), id, effect).await,
        }
    }
}

/// One client among many: delegates, collects, reports, and says what it was answered.
async fn client_of_many(engine: Engine, round: String, number: u64) {
    static NAMED: AtomicU64 = AtomicU64::new(0);
    let (who, next) = (client(&format!("a{number}")), format!("a{}", (number + 1) % CROWD));
    loop {
        for worker in ["cli", &next] {
            let mut order = order(0, "do", worker, Json::null());
            let n = NAMED.fetch_add(1, Ordering::Relaxed);
            order.task = TaskId::parse(&format!("t-{round}-{n}")).unwrap();
            let line = format!("D {}", order.task);
            match engine.submit_judged(&who, order, Facts::default()).await {
                Ok(Answer::Done(_)) => tell(&line),
                Err(Refusal::Busy { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        let subject: Box<str> = format!("{round}-{}", NAMED.fetch_add(1, Ordering::Relaxed)).into();
        let record = Record { what: "test".into(), subject: subject.clone(), details: Json::null() };
        engine.submit(&host(), record).await.unwrap();
        tell(&format!("R {subject}"));
        for _ in 0..8 {
            let said = engine.submit(&who, CollectMail { alive: true }).await.unwrap();
            let Some(mail) = said.mail else { break };
            engine.submit(&who, SettleMail { seq: mail.seq, delivered: true }).await.unwrap();
            tell(&format!("M {}", mail.seq));
            if let MailKind::Work { task, .. } = &mail.kind {
                engine.submit(&who, report(task, Status::InProgress)).await.unwrap();
                engine.submit(&who, report(task, Status::Completed)).await.unwrap();
                tell(&format!("E {task}"));
            }
        }
    }
}

/// Not a test by itself: the process that the other one kills. Alone it ends at once.
#[test]
fn a_victim_works_until_it_is_killed() {
    let Some(dir) = std::env::var_os(PLACE) else { return };
    let dir: Arc<Path> = Path::new(&dir).into();
    let round = std::env::var(ROUND).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let Started { engine, mut effects, owed, .. } = started(&dir);
        tell("up");
        let (payer, place) = (engine.clone(), dir.clone());
        tokio::spawn(async move { pay(&payer, &place, owed).await });
        let mut crowd = tokio::task::JoinSet::new();
        for number in 0..CROWD {
            crowd.spawn(client_of_many(engine.clone(), round.clone(), number));
        }
        let hands = async {
            while let Some((id, effect)) = effects.recv().await {
                tokio::spawn(carry_out(engine.clone(), dir.clone(), id, effect));
            }
        };
        tokio::select! {
            () = hands => {}
            ended = crowd.join_next() => panic!("a client has ended: {ended:?}"),
            // A process that nobody kills must not stay for ever.
            // tidy: sleeps because it is a limit and no pause
            () = tokio::time::sleep(Duration::from_secs(30)) => {}
        }
    });
}

struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a victim, kills it after a while, and returns what it had been answered.
fn kill_one(dir: &Path, round: u64, dice: &mut Dice) -> Vec<String> {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "core::crash::a_victim_works_until_it_is_killed", "--nocapture"])
        .env(PLACE, dir)
        .env(ROUND, round.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut victim = Victim(child);
    let mut lines = BufReader::new(victim.0.stdout.take().unwrap());
    let (enough, pause) = (1 + dice.roll(600), Duration::from_micros(dice.roll(15_000)));
    let (mut answered, mut killed, mut line) = (Vec::new(), false, String::new());
    let until = Instant::now() + Duration::from_secs(25);
    while lines.read_line(&mut line).unwrap() > 0 {
        // The last line may be cut short by the kill.
        if let Some(said) = line.strip_prefix('!').and_then(|it| it.strip_suffix('\n')) {
            answered.push(said.to_owned());
        }
        line.clear();
        if !killed && answered.len() as u64 > enough {
            // tidy: sleeps because the moment of the kill is one by chance
            std::thread::sleep(pause);
            victim.0.kill().unwrap();
            killed = true;
        }
        assert!(Instant::now() < until, "round {round}: only {} answers", answered.len());
    }
    assert!(killed, "round {round}: the victim ended by itself after {answered:?}");
    victim.0.wait().unwrap();
    answered
}

// The inquest.

/// Everything that the log has said so far.
#[derive(Default)]
struct Told {
    cursor: EventSeq,
    times: BTreeMap<(&'static str, String), u32>,
    lost: BTreeSet<String>,
}

impl Told {
    fn read(&mut self, dir: &Path) {
        let mut reader = open_reader(dir).unwrap();
        assert!(matches!(reader.verify(None).unwrap(), Verdict::Ok { .. }));
        loop {
            let page = reader.events_after(self.cursor, 500).unwrap();
            for stored in &page {
                assert_eq!(stored.seq, self.cursor.next(), "the log is dense");
                self.cursor = stored.seq;
                let (what, which) = match stored.event().unwrap().unwrap().kind {
                    EventKind::TaskDelegated { task, .. } => ("delegated", task.to_string()),
                    EventKind::TaskStarted { task } => ("started", task.to_string()),
                    EventKind::TaskFinished { task, failure, .. } => {
                        if failure == Some(Failure::Lost) {
                            self.lost.insert(task.to_string());
                        }
                        ("finished", task.to_string())
                    }
                    EventKind::MailQueued { mail, .. } => ("queued", mail.to_string()),
                    EventKind::MailDelivered { mail, .. } => ("delivered", mail.to_string()),
                    EventKind::Recorded { subject, .. } => ("recorded", subject.into()),
                    _ => continue,
                };
                let times = self.times.entry((what, which.clone())).or_default();
                *times += 1;
                assert_eq!(*times, 1, "{which} was {what} twice");
            }
            if page.is_empty() {
                return;
            }
        }
    }

    fn has(&self, what: &'static str, which: &str) -> bool {
        self.times.contains_key(&(what, which.to_owned()))
    }
}

fn inquest(dir: &Path, told: &mut Told, answered: &[String], round: u64) {
    told.read(dir);
    let mut store = open(dir, Options::default()).unwrap();
    let loaded = store.load(settings()).unwrap();
    let queued: BTreeSet<MailSeq> = loaded.state.mail.iter().map(|it| it.seq).collect();
    for line in answered.iter().filter(|it| *it != "up") {
        let (kind, which) = line.split_once(' ').unwrap();
        let lost = || panic!("round {round}: answered and lost: {line}");
        match kind {
            "D" | "E" => {
                let id = TaskId::parse(which).unwrap();
                let (live, past) = (loaded.state.tasks.get(&id), store.past_task(&id).unwrap());
                assert!(live.is_none() || past.is_none(), "{line} is there twice");
                let there = told.has("delegated", which) && (live.is_some() || past.is_some());
                if !there || (kind == "E" && past.is_none()) {
                    lost();
                }
            }
            "M" => {
                if !told.has("delivered", which) || queued.contains(&which.parse().unwrap()) {
                    lost();
                }
            }
            "R" if told.has("recorded", which) => {}
            _ => lost(),
        }
    }
    let mut starts = BTreeSet::new();
    for owed in &loaded.owed {
        let Effect::SpawnWorker { task } = &owed.effect else { continue };
        assert!(starts.insert(task.clone()), "{task} is owed twice");
        let task = loaded.state.tasks.get(task).expect("a start is owed to a task that is not over");
        assert_eq!(matches!(task.state, TaskState::Running { .. }), owed.started);
    }
    check_runs(dir);
}

fn check_runs(dir: &Path) -> BTreeSet<String> {
    let ran = fs::read_to_string(dir.join("ran")).unwrap_or_default();
    let mut once = BTreeSet::new();
    for task in ran.lines() {
        assert!(once.insert(task.to_owned()), "{task} was carried out twice");
    }
    once
}

#[test]
fn what_was_answered_survives_kill_9() {
    let dir = TempDir::new().unwrap();
    let (mut dice, mut told) = (Dice::new(9), Told::default());
    let mut answers = 0;
    for round in 0..ROUNDS {
        let answered = kill_one(dir.path(), round, &mut dice);
        answers += answered.len();
        inquest(dir.path(), &mut told, &answered, round);
    }
    assert!(answers > 1_000, "{answers} answers in {ROUNDS} rounds");

    // A last start pays what is owed; then every start was carried out once or is known to be lost.
    let place: Arc<Path> = dir.path().into();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let Started { engine, owed, thread, clean, .. } = started(&place);
        assert!(!clean);
        pay(&engine, &place, owed).await;
        let left = engine.view(LiveTasks).await.unwrap().tasks;
        let unpaid: Vec<_> = left.iter().filter(|it| it.order.worker.as_str() == "cli").collect();
        assert!(unpaid.is_empty(), "{unpaid:?}");
        engine.stop();
        thread.join().unwrap();
    });
    told.read(dir.path());
    let ran = check_runs(dir.path());
    for (what, task) in told.times.keys() {
        if *what == "started" && !told.lost.contains(task) {
            assert!(ran.contains(task), "{task} completed and never ran");
        }
    }
    for task in &ran {
        assert!(told.has("started", task), "{task} ran without a record");
    }
    assert!(!told.lost.is_empty(), "no kill hit a run");
}
