//! Runs that are part of an editor's job: the worker's environment, and the changes that are kept.

use std::fs;
use std::sync::Arc;

use provost::base::{JobId, Json, TaskId};
use provost::domain::{Answer, Delegate, JobContext, Status};
use provost::jail::{AsAgent, Copies, Reader};
use provost::store::Artifacts;
use serde_json::json;

use crate::support::runs::{World, asker, details, status, summary};

fn errand(harvest: bool, schema: Option<&str>) -> Option<Box<JobContext>> {
    let schema = schema.map(|text| Json::parse(text).unwrap());
    let (job, method, phase) = ("exec_0123456789abcdef".into(), "code.review".into(), "generate".into());
    Some(Box::new(JobContext {
        job,
        method,
        phase,
        schema,
        harvest,
        copy: None,
        command: None,
        commit: None,
    }))
}

async fn run(world: &World, task: &str, goal: &str, errand: Option<Box<JobContext>>) -> TaskId {
    let (order, facts) = world.delegation("", task, goal, provost::base::Ttl::minutes(2));
    let answer = world.engine().submit_judged(&asker(), Delegate { errand, ..order }, facts).await;
    assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
    TaskId::parse(task).unwrap()
}

#[tokio::test]
async fn a_worker_is_told_what_its_run_is_a_part_of() {
    let mut world = World::new();
    let hands = world.hands();
    let goal = "echo $PROVOST_METHOD $PROVOST_JOB_ID $PROVOST_PHASE; cat $PROVOST_SCHEMA; echo; \
                echo x > $PROVOST_SCHEMA || echo kept; ls -d s*";
    let task = run(&world, "t-1", goal, errand(true, Some("{\"type\":\"object\"}"))).await;
    let done = world.finished(&task).await;
    let said = details(&done)["stdout"].as_str().unwrap().to_owned();
    assert_eq!(
        said, "code.review exec_0123456789abcdef generate\n{\"type\":\"object\"}\nkept\nsub\n",
        "{done:?}"
    );
    let task = run(&world, "t-2", "echo [$PROVOST_METHOD$PROVOST_SCHEMA]", None).await;
    assert_eq!(summary(&world.finished(&task).await), "[]");
    hands.stop().await;
    assert!(fs::read_dir(world.path("copies")).unwrap().next().is_none(), "nothing of it is left");
}

#[tokio::test]
async fn an_order_to_keep_changes_makes_any_worker_work_apart() {
    let mut world = World::new();
    fs::write(world.path("repo/sub/a.txt"), "old\n").unwrap();
    fs::write(world.path("repo/.gitignore"), "*.log\n").unwrap();
    let hands = world.hands();
    let goal = "echo new > sub/a.txt; echo x > b.txt; echo x > c.log; echo the answer";
    let task = run(&world, "t-1", goal, errand(true, None)).await;
    assert_eq!(status(&world.finished(&task).await), Status::Completed);
    assert_eq!(fs::read_to_string(world.path("repo/sub/a.txt")).unwrap(), "old\n");
    let store = Artifacts::at(&world.path("state"));
    let kept = store.of(&task).unwrap().unwrap();
    let paths: Vec<&str> = kept.artifacts.iter().map(|it| &*it.path).collect();
    assert_eq!((paths, &*kept.answer), (vec!["b.txt", "sub/a.txt"], "the answer\n"));
    assert_eq!(store.base_of(&kept.artifacts[1].id).unwrap().unwrap(), b"old\n");

    let only_said = run(&world, "t-2", "echo y > b.txt; echo said", errand(false, None)).await;
    assert_eq!(status(&world.finished(&only_said).await), Status::Completed);
    assert_eq!(store.of(&only_said).unwrap(), None, "an ordinary worker of which nothing was to be kept");
    assert_eq!(fs::read_to_string(world.path("repo/b.txt")).unwrap(), "y\n", "it works where it always does");

    world.profile.agent = Some(AsAgent { by_stdin: false, reader: Reader::Lines, edits: true, parallel: 1 });
    world.profile.copies = Copies::Kept;
    hands.stop().await;
    world.restart();
    let hands = world.hands();
    let task = run(&world, "t-3", "echo z > b.txt; echo said", errand(false, None)).await;
    let done = world.finished(&task).await;
    let kept = store.of(&task).unwrap().unwrap();
    assert_eq!((kept.artifacts.len(), &*kept.answer), (0, "said\n"), "an agent's answer is always kept");
    assert_eq!(details(&done)["artifacts"], json!([]));
    assert_eq!(fs::read_to_string(world.path("repo/b.txt")).unwrap(), "y\n");
    hands.stop().await;
}

#[tokio::test]
async fn what_cannot_be_kept_fails_the_task_and_says_so() {
    let mut world = World::new();
    fs::write(world.path("state/artifacts"), "in the way").unwrap();
    let hands = world.hands();
    let task = run(&world, "t-1", "echo x > b.txt", errand(true, None)).await;
    let done = world.finished(&task).await;
    assert_eq!(status(&done), Status::Failed);
    assert!(summary(&done).contains("its changes are lost"), "{}", summary(&done));
    hands.stop().await;
}

#[tokio::test]
async fn what_an_approver_approves_includes_the_errand() {
    let world = World::new();
    let (order, _) = world.delegation("", "t-1", "true", provost::base::Ttl::minutes(2));
    let digest = |errand| Delegate { errand, ..order.clone() }.digest();
    assert_ne!(digest(None), digest(errand(true, None)));
    assert_ne!(digest(errand(false, None)), digest(errand(true, None)));
    let with = |change: fn(&mut JobContext)| {
        let mut errand = errand(true, None);
        change(errand.as_mut().unwrap());
        Delegate { errand, ..order.clone() }
    };
    let copy = with(|it| it.copy = Some(JobId::parse("one").unwrap()));
    let command = with(|it| it.command = Some(vec!["cargo".into(), "fmt".into()]));
    assert!(copy.digest() != command.digest() && copy.digest() != digest(errand(true, None)));
    assert_eq!(command.shown().value()["errand"]["command"], json!(["cargo", "fmt"]), "and is shown");
    assert_eq!(order.shown(), order.payload);
    let of_before = serde_json::to_string(&errand(true, None)).unwrap();
    assert!(!of_before.contains("copy") && !of_before.contains("command"), "{of_before}");
    let text = serde_json::to_string(&order).unwrap();
    assert!(!text.contains("errand"), "requests of before have the digest that they had: {text}");
    assert_eq!(serde_json::from_str::<Delegate>(&text).unwrap(), order);
    let with = Delegate { errand: errand(true, Some("{}")), ..order };
    let back: Arc<Delegate> = serde_json::from_str(&serde_json::to_string(&with).unwrap()).unwrap();
    assert_eq!(*back, with);
}
