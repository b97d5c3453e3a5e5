//! Pending effects, the end of the engine, and the start after it.

use provost::base::{EffectId, Timestamp};
use provost::domain::command::{BeginRun, CancelTask, EndRun, Status};
use provost::domain::view::LiveTask;
use provost::domain::{Effect, Facts, Refusal, Report, TaskState};
use provost::engine::Clock as _;
use provost::store::{Options, open};
use provost_test_equipment::MemoryStore;
use tempfile::TempDir;

use super::{id, memory, ordered, record, run};
use crate::support::script::{client, host};

#[tokio::test]
async fn effects_come_once_and_in_order() {
    const MANY: u64 = 60;
    let (mut ran, _) = memory();
    let mut crowd = tokio::task::JoinSet::new();
    for n in 0..MANY {
        let engine = ran.engine.clone();
        crowd.spawn(async move {
            let who = client(["ada", "bob", "eve"][usize::try_from(n % 3).unwrap()]);
            engine.submit_judged(&who, ordered(n, "do", "cli"), Facts::default()).await.unwrap();
            engine.submit(&who, CancelTask { task: id(n), reason: "enough".into() }).await.unwrap();
        });
    }
    crowd.join_all().await;
    let (mut last, mut started, mut stopped) = (EffectId(0), Vec::new(), Vec::new());
    for _ in 0..2 * MANY {
        let (number, effect) = ran.next_effect().await;
        assert_eq!(number, last.next());
        last = number;
        match effect {
            Effect::SpawnWorker { task } => started.push(task),
            Effect::StopWorker { task, .. } => {
                assert!(started.contains(&task) && !stopped.contains(&task));
                stopped.push(task);
            }
            other => panic!("{other:?} without a hook and without a picture"),
        }
    }
    assert_eq!((started.len(), stopped.len()), (60, 60));
    assert!(ran.effects.try_recv().is_err());
}

#[tokio::test]
async fn a_stop_finishes_what_is_queued_and_is_noted() {
    let dir = TempDir::new().unwrap();
    let ran = run(open(dir.path(), Options::default()).unwrap());
    assert!(ran.clean, "a new store has no crash behind it");
    let engine = ran.engine.clone();
    let queued = ran
        .behind_a_gate(|engine| {
            let say = |n| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.submit(&host(), record(n)).await })
            };
            (0..50).map(say).collect()
        })
        .await;
    engine.stop();
    for task in queued {
        task.await.unwrap().expect("what was queued before the stop is carried out");
    }
    ran.thread.join().unwrap();
    let late = engine.submit(&host(), record(99)).await;
    assert!(matches!(late, Err(Refusal::Stopping)), "{late:?}");
    drop(ran.effects);

    let ran = run(open(dir.path(), Options::default()).unwrap());
    assert!(ran.clean, "a stop in order leaves a clean store");
    assert!(ran.engine.journal_head().await.unwrap().seq.0 >= 50);
}

#[tokio::test]
async fn what_is_owed_comes_back_after_a_start() {
    let store = MemoryStore::new();
    let control = store.control();
    let mut ran = run(Box::new(store));
    for n in 1..=3 {
        ran.delegate("ada", n, "do", "cli").await.unwrap();
    }
    let first = ran.next_effect().await.0;
    let second = ran.next_effect().await.0;
    let until = Timestamp(ran.clock.now().0 + 1_000_000);
    ran.engine.submit(&host(), BeginRun { effect: first, task: id(1), until }).await.unwrap();
    ran.engine.submit(&host(), BeginRun { effect: second, task: id(2), until }).await.unwrap();
    let report = Report { summary: "done".into(), ..Report::default() };
    let end = EndRun {
        effect: second,
        task: id(2),
        status: Status::Completed,
        report,
        failure: None,
        model_used: None,
        changes: None,
    };
    ran.engine.submit(&host(), end).await.unwrap();
    ran.engine.stop();
    ran.thread.join().unwrap();

    let ran = run(Box::new(control.reopen()));
    let owed: Vec<_> = ran.owed.iter().map(|it| (it.effect.clone(), it.started)).collect();
    let spawn = |n| Effect::SpawnWorker { task: id(n) };
    assert_eq!(owed, [(spawn(1), true), (spawn(3), false)]);
    let task = ran.engine.view(LiveTask(id(1))).await.unwrap().unwrap();
    assert!(matches!(task.state, TaskState::Running { .. }));
}
