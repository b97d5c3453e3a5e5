//! How a run ends before it is done: out of time, cancelled, stopped, or with a daemon that died.

use super::*;
use crate::support::runs::host;
use crate::support::waits::eventually_so;

#[tokio::test]
async fn the_shortest_time_limit_ends_a_run() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.order("", "t-1", "echo begun; sleep 313.1", Ttl::seconds_clamped(1)).await;
    let done = world.finished(&task).await;
    assert_eq!(status(&done), Status::Failed);
    assert_eq!(summary(&done), "Worker execution error: worker timed out after 1s");
    assert_eq!(done.failure, Some(Failure::RunTimeout { timeout_s: 1 }));
    assert_eq!(metadata(&done)["exit_code"], -1);
    assert_eq!(details(&done)["stdout"], "begun\n");
    assert_eq!(alive("313.1"), 0);
    hands.stop().await;

    let mut strict = World::under(Terms { timeout: Ttl::from_millis(300), ..Terms::default() });
    let hands = strict.hands();
    let task = strict.delegate("t-2", "sleep 313.2").await;
    assert!(matches!(strict.finished(&task).await.failure, Some(Failure::RunTimeout { .. })));
    hands.stop().await;
}

#[tokio::test]
async fn a_cancelled_run_leaves_no_process() {
    let mut world = World::new();
    let hands = world.hands();
    let goal = "setsid sleep 314.1 & (trap '' TERM; sleep 314.1) & echo begun; sleep 314.1";
    let task = world.delegate("t-1", goal).await;
    world.heard(&task).await;
    assert!(alive("314.1") > 0);
    world.cancel(&task).await;
    assert_eq!(status(&world.finished(&task).await), Status::Cancelled);
    // Stopping waits for the kill that the cancellation owes; it does not bring it about.
    eventually_so("the end of the tree of processes", async || alive("314.1") == 0).await;
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_task_cancelled_while_it_waits_never_runs() {
    let mut world = World::new();
    world.concurrent = 1;
    let hands = world.hands();
    let first = world.delegate("t-1", "echo begun; sleep 315.1").await;
    world.heard(&first).await;
    let second = world.delegate("t-2", "touch ran").await;
    world.cancel(&second).await;
    world.cancel(&first).await;
    let third = world.delegate("t-3", "echo after").await;
    assert_eq!(summary(&world.finished(&third).await), "after");
    assert!(!world.path("repo/ran").exists());
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_run_that_nobody_saw_end_is_lost_and_not_repeated() {
    let mut world = World::new();
    let task = world.delegate("t-1", "touch ran").await;
    let (effect, _) = world.effects.as_mut().unwrap().recv().await.unwrap();
    let begin = BeginRun { effect, task: task.clone(), until: Timestamp(i64::MAX / 2) };
    world.engine.submit(&host(), begin).await.unwrap();
    world.restart();
    assert!(world.owed[0].started);
    let hands = world.hands();
    let lost = world.finished(&task).await;
    assert_eq!((status(&lost), lost.failure.clone()), (Status::Failed, Some(Failure::Lost)));
    assert_eq!(summary(&lost), "Worker shell was lost: daemon ended while it ran");
    assert!(!world.path("repo/ran").exists());
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_run_that_had_not_begun_is_made_up_for_after_a_restart() {
    let mut world = World::new();
    let task = world.delegate("t-1", "echo late but done").await;
    world.restart();
    assert!(!world.owed[0].started);
    let hands = world.hands();
    assert_eq!(summary(&world.finished(&task).await), "late but done");
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn stopping_ends_what_runs_and_keeps_what_waits() {
    let mut world = World::new();
    world.concurrent = 1;
    let hands = world.hands();
    let first = world.delegate("t-1", "echo begun; sleep 316.1").await;
    world.heard(&first).await;
    let second = world.delegate("t-2", "echo next time").await;
    hands.stop().await;
    assert_eq!(alive("316.1"), 0);
    let lost = world.finished(&first).await;
    assert_eq!(
        (lost.failure.clone(), &metadata(&lost)["exit_reason"]),
        (Some(Failure::Lost), &"daemon stopped".into())
    );
    assert_eq!(details(&lost)["stdout"], "begun\n", "what it had said is kept");
    world.restart();
    let hands = world.hands();
    assert_eq!(summary(&world.finished(&second).await), "next time");
    hands.stop().await;
}
