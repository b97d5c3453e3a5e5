//! Runs of one job in one private copy: what they find there, what of it is kept, how much may be in it, and
//! when it is gone.

use std::fs;

use provost::base::{AgentId, JobId, Json, TaskId, Ttl};
use provost::domain::command::{EndJob, OpenJob};
use provost::domain::{Answer, Delegate, Failure, JobContext, JobKind, JobState, Network, Refusal, Status};
use provost::store::Artifacts;

use crate::support::runs::{World, asker, details, host, status, summary};

fn job(name: &str) -> JobId {
    JobId::parse(name).unwrap()
}

async fn open(world: &World, name: &str) {
    let verb = OpenJob {
        job: job(name),
        kind: JobKind::Execution,
        method: "agents.invoke".into(),
        title: "a test".into(),
        agent: "shell".into(),
        worker: AgentId::parse("shell").unwrap(),
        order: Json::null(),
        key: None,
        step: None,
    };
    world.engine().submit(&asker(), verb).await.unwrap();
}

async fn end(world: &World, name: &str) {
    let verb = EndJob { job: job(name), state: JobState::Completed, error: None, result: None, steps: 0 };
    world.engine().submit(&host(), verb).await.unwrap();
}

fn errand(copy: Option<&str>, command: Option<&[&str]>) -> JobContext {
    JobContext {
        job: "exec_0123456789abcdef".into(),
        method: "agents.invoke".into(),
        phase: "optimize".into(),
        schema: None,
        harvest: true,
        copy: copy.map(job),
        command: command.map(|words| words.iter().map(|it| (*it).into()).collect()),
        commit: None,
    }
}

/// A run in a folder of the workspace, under an errand.
async fn begin(world: &World, folder: &str, task: &str, goal: &str, errand: JobContext) -> TaskId {
    let (order, mut facts) = world.delegation(folder, task, goal, Ttl::minutes(2));
    if let Some([program, ..]) = errand.command.as_deref() {
        facts.program = world.program_instead(program);
    }
    let order = Delegate { errand: Some(Box::new(errand)), ..order };
    let answer = world.engine().submit_judged(&asker(), order, facts).await;
    assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
    TaskId::parse(task).unwrap()
}

async fn run(world: &World, task: &str, goal: &str, copy: &str) -> provost::domain::Task {
    let task = begin(world, "", task, goal, errand(Some(copy), None)).await;
    world.finished(&task).await
}

fn paths(world: &World, task: &str) -> Vec<String> {
    let kept = Artifacts::at(&world.path("state")).of(&TaskId::parse(task).unwrap()).unwrap().unwrap();
    kept.artifacts.iter().map(|it| it.path.to_string()).collect()
}

fn copies(world: &World) -> usize {
    fs::read_dir(world.path("copies")).map_or(0, Iterator::count)
}

/// Waits until the copies that were given back are removed, which happens beside all other work.
async fn until_copies(world: &World, most: usize) {
    let start = std::time::Instant::now();
    while copies(world) > most {
        assert!(start.elapsed().as_secs() < 60, "{} copies are left", copies(world));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn runs_of_one_job_go_on_where_the_last_one_ended_and_the_last_harvest_is_everything() {
    let mut world = World::new();
    fs::write(world.path("repo/sub/a.txt"), "old\n").unwrap();
    let hands = world.hands();
    open(&world, "one").await;
    open(&world, "two").await;
    let done = run(&world, "t-1", "echo first > sub/a.txt; echo x > b.txt", "one").await;
    assert_eq!(status(&done), Status::Completed, "{done:?}");
    assert_eq!(paths(&world, "t-1"), ["b.txt", "sub/a.txt"]);
    fs::write(world.path("repo/sub/a.txt"), "meanwhile\n").unwrap();
    let done = run(&world, "t-2", "cat sub/a.txt; echo second > sub/a.txt; echo y > c.txt", "one").await;
    assert_eq!(summary(&done), "first");
    assert_eq!(paths(&world, "t-2"), ["b.txt", "c.txt", "sub/a.txt"]);
    let store = Artifacts::at(&world.path("state"));
    let kept = store.of(&TaskId::parse("t-2").unwrap()).unwrap().unwrap();
    assert_eq!(&*kept.artifacts[2].content, "second\n");
    let base = store.base_of(&kept.artifacts[2].id).unwrap().unwrap();
    assert_eq!(base, b"old\n", "the base is of when the copy was made");
    let done = run(&world, "t-3", "cat sub/a.txt; ls -d *b*", "two").await;
    assert_eq!(details(&done)["stdout"], "meanwhile\nsub\n", "another job has another copy");
    assert_eq!(fs::read_to_string(world.path("repo/sub/a.txt")).unwrap(), "meanwhile\n");

    until_copies(&world, 2).await;
    assert_eq!(copies(&world), 2, "they are kept between runs");
    end(&world, "one").await;
    until_copies(&world, 1).await;
    hands.stop().await;
    assert_eq!(copies(&world), 0, "the daemon gives back what is left when it stops");
}

#[tokio::test]
async fn who_works_in_a_jobs_copy_has_it_alone_and_keeps_nobody_else_waiting() {
    let mut world = World::new();
    let hands = world.hands();
    open(&world, "one").await;
    open(&world, "two").await;
    let mkfifo = "mkfifo gate; echo ready; read line < gate; echo $line > said";
    let first = begin(&world, "", "t-1", mkfifo, errand(Some("one"), None)).await;
    world.heard(&first).await;
    let second = begin(&world, "", "t-2", "cat said", errand(Some("one"), None)).await;
    let done = run(&world, "t-3", "echo by itself", "two").await;
    assert_eq!(summary(&done), "by itself");
    assert!(!world.has_begun(&second).await, "it works beside another one in the same copy");
    let entry = fs::read_dir(world.path("copies")).unwrap().flatten();
    let gate = entry.map(|it| it.path().join("gate")).find(|it| it.exists()).unwrap();
    fs::write(gate, "through\n").unwrap();
    assert_eq!(summary(&world.finished(&second).await), "through");
    hands.stop().await;
}

#[tokio::test]
async fn when_a_job_is_over_its_copy_goes_and_nobody_works_in_it_any_more() {
    let mut world = World::new();
    let hands = world.hands();
    open(&world, "one").await;
    let first = begin(&world, "", "t-1", "echo ready; sleep 60", errand(Some("one"), None)).await;
    world.heard(&first).await;
    let waits = begin(&world, "", "t-2", "echo never", errand(Some("one"), None)).await;
    open(&world, "two").await;
    // By the time that a later one has run, it waits.
    run(&world, "t-0", "true", "two").await;
    end(&world, "two").await;
    until_copies(&world, 1).await;
    end(&world, "one").await;
    assert_eq!(copies(&world), 1, "one that runs keeps what it works in");
    world.cancel(&first).await;
    let refused = world.finished(&waits).await;
    assert!(matches!(&refused.failure, Some(Failure::JailRefused { why }) if why.contains("is over")));
    until_copies(&world, 0).await;
    for (task, copy) in [("t-3", "one"), ("t-4", "never-heard-of")] {
        let refused = run(&world, task, "echo never", copy).await;
        assert!(matches!(&refused.failure, Some(Failure::JailRefused { why }) if why.contains("is over")));
    }
    assert_eq!(copies(&world), 0);
    hands.stop().await;
}

#[tokio::test]
async fn nothing_begins_for_a_job_that_was_taken_back_meanwhile() {
    let world = World::new();
    open(&world, "one").await;
    let errand =
        |job: &str| Some(Box::new(JobContext { job: format!("job_{job}").into(), ..errand(None, None) }));
    let (order, facts) = world.delegation("", "t-1", "true", Ttl::minutes(2));
    let order = Delegate { errand: errand("one"), ..order };
    let answer = world.engine().submit_judged(&asker(), order.clone(), facts.clone()).await;
    assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
    end(&world, "one").await;
    let later = Delegate { task: TaskId::parse("t-2").unwrap(), ..order.clone() };
    let answer = world.engine().submit_judged(&asker(), later, facts.clone()).await;
    assert!(matches!(answer, Err(Refusal::TaskFinished)), "{answer:?}");
    let other = Delegate { task: TaskId::parse("t-3").unwrap(), errand: errand("two"), ..order };
    let answer = world.engine().submit_judged(&asker(), other, facts).await;
    assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
}

#[tokio::test]
async fn a_daemon_removes_the_copies_that_an_earlier_one_has_left() {
    let mut world = World::new();
    fs::create_dir_all(world.path("copies/left/behind")).unwrap();
    open(&world, "one").await;
    let hands = world.hands();
    let done = run(&world, "t-1", "ls -d s*", "one").await;
    assert_eq!(summary(&done), "sub");
    assert_eq!(copies(&world), 1);
    hands.stop().await;
}

#[tokio::test]
async fn runs_add_together_no_more_to_their_copy_than_one_might() {
    let mut world = World::new();
    world.profile.bounds.growth_bytes = Some(1 << 20);
    world.profile.bounds.growth_entries = Some(100);
    let hands = world.hands();
    open(&world, "one").await;
    open(&world, "two").await;
    let fill = "head -c 600000 /dev/zero > shut/$DEVIT_TASK_ID; chmod 0 shut";
    let done = run(&world, "t-1", &format!("mkdir shut; {fill}"), "one").await;
    assert_eq!(status(&done), Status::Completed, "{done:?}");
    let done = run(&world, "t-2", "head -c 600000 /dev/zero > more; sleep 60", "one").await;
    assert!(summary(&done).contains("took more space than it may"), "{done:?}");
    let done = run(&world, "t-3", "echo never", "one").await;
    assert!(summary(&done).contains("as much as `growth`"), "{done:?}");
    let done = run(&world, "t-4", "touch $(seq 99)", "two").await;
    assert_eq!(status(&done), Status::Completed, "{done:?}");
    let done = run(&world, "t-5", "rm 1 2 3; touch x y z", "two").await;
    assert_eq!(status(&done), Status::Completed, "what was removed makes room: {done:?}");
    hands.stop().await;
}

#[tokio::test]
async fn a_copy_is_of_one_folder() {
    let mut world = World::new();
    let hands = world.hands();
    open(&world, "one").await;
    let task = begin(&world, "sub", "t-1", "echo x > a.txt; ls *.txt", errand(Some("one"), None)).await;
    assert_eq!(summary(&world.finished(&task).await), "a.txt");
    assert_eq!(paths(&world, "t-1"), ["sub/a.txt"]);
    let refused = run(&world, "t-2", "ls", "one").await;
    assert!(summary(&refused).contains("is of the folder 'sub', and not of '.'"), "{refused:?}");
    hands.stop().await;
}

#[tokio::test]
async fn a_command_runs_in_the_workers_place_and_is_given_nothing_of_its() {
    let mut world = World::new();
    world.profile.env = [("CODER_HOME".to_owned(), "/opt/coder".to_owned())].into();
    world.profile.args = vec!["-c".into(), "echo the worker itself".into()];
    let hands = world.hands();
    open(&world, "one").await;
    run(&world, "t-1", "x", "one").await;
    let words = ["sh", "-c", "env; cat; echo {goal} > made.txt; echo at last", "arg"];
    let task = begin(&world, "", "t-2", "a secret goal", errand(Some("one"), Some(&words))).await;
    let done = world.finished(&task).await;
    assert_eq!(status(&done), Status::Completed, "{done:?}");
    let said = details(&done)["stdout"].as_str().unwrap().to_owned();
    assert!(said.contains("PROVOST_PHASE=optimize\n") && said.contains("CODER_HOME=/opt/coder\n"), "{said}");
    assert!(!said.contains("secret goal") && said.ends_with("at last\n"), "{said}");
    assert_eq!((done.network, paths(&world, "t-2")), (Network::None, vec!["made.txt".into()]));
    let kept = Artifacts::at(&world.path("state")).of(&task).unwrap().unwrap();
    assert_eq!(&*kept.artifacts[0].content, "{goal}\n", "nothing is filled in");

    let words = ["sh", "-c", "echo half; echo no good >&2; exit 3"];
    let task = begin(&world, "", "t-3", "", errand(Some("one"), Some(&words))).await;
    let done = world.finished(&task).await;
    assert_eq!(done.failure, Some(Failure::WorkerFailed { why: "exit code 3".into() }));
    assert_eq!(paths(&world, "t-3"), ["made.txt"], "what is there is kept whatever became of the command");
    for (task, words, why) in [
        ("t-4", vec!["no-such-program-anywhere"], "there is no executable 'no-such-program-anywhere'"),
        ("t-5", vec![], "the command to run is empty"),
        ("t-6", vec!["/etc/passwd"], "may not be executed"),
    ] {
        let task = begin(&world, "", task, "", errand(Some("one"), Some(&words))).await;
        let done = world.finished(&task).await;
        assert!(summary(&done).contains(why), "{done:?}");
    }
    hands.stop().await;
}
