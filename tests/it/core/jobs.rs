//! Jobs: what editors ask for, as rules and in every store.

use std::sync::Arc;

use provost::base::limits::{JOBS_KEPT_MAX, JOBS_LIVE_MAX, JOBS_OF_ONE_MAX};
use provost::base::{Digest, JobId, Json, Ttl};
use provost::domain::command::{CancelJob, EndJob, MoveJob, NoteFeedback, OpenJob, Status};
use provost::domain::{
    Artifact, Change, Deed, Door, Effect, EventKind, Job, JobEvent, JobKind, JobResult, JobState, PhaseName,
    PhaseState, Principal, Proof, Refusal, Scope, StepOf, TaskState,
};
use provost::store::{Options, Store, open};
use provost_test_equipment::MemoryStore;
use provost_test_equipment::callers::{caller, from_tree};

use crate::support::script::{Script, host, person, task_id};
use crate::support::storm::{agent, order, settings};

fn editor() -> Principal {
    caller("editor", Door::Own, &[Scope::Join, Scope::Read, Scope::Delegate], Proof::PeerUid)
}

fn id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

fn opening(job: &str) -> OpenJob {
    OpenJob {
        job: id(job),
        kind: JobKind::Execution,
        method: "agents.invoke".into(),
        title: "mend it".into(),
        agent: "Claude".into(),
        worker: agent("coder-ai"),
        order: Json::from_value(&serde_json::json!({ "task": "mend it" })),
        key: Some(Digest::of(job.as_bytes())),
        step: None,
    }
}

fn phase(job: &str, name: PhaseName, state: PhaseState) -> MoveJob {
    MoveJob { job: id(job), phase: Some((name, state)), task: None, runs: false }
}

fn tied(job: &str, task: &str) -> MoveJob {
    MoveJob { job: id(job), phase: None, task: Some(task_id(task)), runs: false }
}

fn ending(job: &str, state: JobState, result: Option<JobResult>) -> EndJob {
    EndJob { job: id(job), state, error: None, result: result.map(Arc::new), steps: 0 }
}

fn result() -> JobResult {
    let artifact = Artifact {
        id: "art_1".into(),
        kind: "file".into(),
        path: "src/a.rs".into(),
        content: "fn a() {}\n".into(),
        language: "rust".into(),
        base_hash: Some(Digest::of(b"before")),
        mode: None,
        base_mode: None,
    };
    JobResult { text: Some("done".into()), answer: None, artifacts: vec![artifact], ..JobResult::default() }
}

impl Script {
    fn job(&self, job: &str) -> Arc<Job> {
        self.core.state().jobs.get(&id(job)).expect("a job of this id").clone()
    }

    fn jobs_said(&self) -> Vec<JobEvent> {
        let of = |kind: &EventKind| match kind {
            EventKind::Job(event) => Some(event.clone()),
            _ => None,
        };
        self.out.events.iter().filter_map(|it| of(&it.kind)).collect()
    }
}

#[test]
fn a_job_goes_from_the_question_to_the_answer_through_its_phases() {
    let mut s = Script::new();
    s.say(&editor(), opening("j1")).unwrap();
    assert_eq!((s.job("j1").state, s.job("j1").phases.current()), (JobState::Queued, None));
    s.say(&host(), phase("j1", PhaseName::Research, PhaseState::Running)).unwrap();
    s.now.0 += 40;
    s.say(&host(), phase("j1", PhaseName::Research, PhaseState::Completed)).unwrap();
    s.say(&host(), phase("j1", PhaseName::Inspect, PhaseState::Running)).unwrap();
    let job = s.job("j1");
    assert_eq!(job.state, JobState::Queued, "its worker does not run yet");
    let runs = MoveJob { job: id("j1"), phase: None, task: None, runs: true };
    s.say(&host(), runs).unwrap();
    assert_eq!(s.job("j1").state, JobState::Running);
    let (name, now) = job.phases.current().unwrap();
    assert_eq!((name, now.state), (PhaseName::Inspect, PhaseState::Running));
    let first = job.phases.iter().next().unwrap().1;
    assert_eq!(first.ended_at.unwrap().0 - first.began_at.unwrap().0, 40);
    s.say(&host(), ending("j1", JobState::Completed, Some(result()))).unwrap();
    let digest = Some(result().digest());
    let ended = JobEvent::JobEnded { job: id("j1"), state: JobState::Completed, result: digest };
    assert_eq!(s.jobs_said(), [ended]);
    let job = s.job("j1");
    assert_eq!((job.state, job.ended_at), (JobState::Completed, Some(s.now)));
    assert_eq!(job.phases.current().unwrap().1.state, PhaseState::Completed, "what was under way is done");
    let too_late = s.say(&host(), phase("j1", PhaseName::Review, PhaseState::Running));
    assert_eq!(too_late, Err(Refusal::TaskFinished));
    assert_eq!(s.say(&host(), ending("j1", JobState::Failed, None)), Err(Refusal::TaskFinished));
    assert_eq!(s.job("j1"), job);
}

#[test]
fn a_question_is_not_put_twice_while_it_is_being_answered() {
    let mut s = Script::new();
    s.say(&editor(), opening("j1")).unwrap();
    let again = || OpenJob { job: id("j2"), ..opening("j1") };
    s.say(&editor(), again()).unwrap();
    assert!(s.jobs_said().is_empty() && s.core.state().jobs.get(&id("j2")).is_none());
    s.say(&host(), phase("j1", PhaseName::Generate, PhaseState::Running)).unwrap();
    s.say(&editor(), again()).unwrap();
    assert_eq!(s.core.state().jobs.iter().count(), 1);
    s.now.0 += 1;
    s.say(&host(), ending("j1", JobState::Failed, None)).unwrap();
    s.say(&editor(), again()).unwrap();
    assert_eq!(s.job("j2").state, JobState::Queued, "it failed, and is begun anew");
    s.say(&editor(), OpenJob { job: id("j3"), key: None, ..opening("j1") }).unwrap();
    s.say(&editor(), OpenJob { job: id("j4"), key: None, ..opening("j1") }).unwrap();
    assert_eq!(s.core.state().jobs.iter().count(), 4, "what has no key is like nothing else");
}

#[test]
fn only_the_daemon_moves_jobs_and_only_who_asked_takes_them_back() {
    let mut s = Script::new();
    s.say(&editor(), opening("j1")).unwrap();
    assert!(s.say(&editor(), opening("j1")).is_err(), "an id is used once");
    let needs = Refusal::OutOfScope { needs: Scope::Host };
    assert_eq!(s.say(&editor(), phase("j1", PhaseName::Review, PhaseState::Completed)), Err(needs.clone()));
    assert_eq!(s.say(&person("ann"), ending("j1", JobState::Completed, None)), Err(needs));
    let other = caller("other", Door::Own, &[Scope::Join, Scope::Delegate], Proof::PeerUid);
    let cancel = || CancelJob { job: id("j1"), reason: "no more".into() };
    assert_eq!(s.say(&other, cancel()), Err(Refusal::TaskNotYours { owner: agent("editor") }));
    assert_eq!(s.job("j1").state, JobState::Queued);
    s.say(&person("ann"), cancel()).unwrap();
    assert_eq!(s.job("j1").state, JobState::Cancelled);
    s.say(&editor(), cancel()).unwrap();
    assert!(s.jobs_said().is_empty(), "once is enough");
    let unknown = CancelJob { job: id("j2"), reason: "x".into() };
    assert_eq!(s.say(&editor(), unknown), Err(Refusal::TaskNotFound));
}

#[test]
fn a_job_that_is_taken_back_takes_its_tasks_along() {
    let mut s = Script::new();
    s.say(&editor(), opening("j1")).unwrap();
    let work = order(1, "allow this", "coder-ai", Json::from_value(&serde_json::json!({})));
    s.say(&editor(), work).unwrap();
    s.say(&host(), tied("j1", "t-1")).unwrap();
    assert_eq!(s.job("j1").tasks, [task_id("t-1")]);
    s.say(&editor(), CancelJob { job: id("j1"), reason: "no more".into() }).unwrap();
    assert_eq!(s.job("j1").state, JobState::Cancelled);
    let stops =
        |effect: &Effect| matches!(effect, Effect::StopWorker { task, .. } if *task == task_id("t-1"));
    let stopped = s.out.effects.iter().any(|(_, effect)| stops(effect));
    let over = s.finished.iter().any(|task| {
        matches!(task.state, TaskState::Finished { status: Status::Cancelled, .. })
            && *task.id() == task_id("t-1")
    });
    assert!(stopped || over, "the task ends, too");
    assert!(s.core.state().tasks.get(&task_id("t-1")).is_none());
}

/// A workflow of two steps, each with a task.
fn workflow(s: &mut Script) {
    s.say(&editor(), OpenJob { kind: JobKind::Workflow, ..opening("flow") }).unwrap();
    for number in 0..2 {
        let step = Some(StepOf { job: id("flow"), number, phase: PhaseName::Generate });
        let (job, task) = (format!("s{number}"), format!("t-{}", number + 1));
        s.say(&editor(), OpenJob { kind: JobKind::Step, step, ..opening(&job) }).unwrap();
        let work =
            order(u64::from(number) + 1, "allow this", "coder-ai", Json::from_value(&serde_json::json!({})));
        s.say(&editor(), work).unwrap();
        s.say(&host(), tied(&job, &task)).unwrap();
    }
}

#[test]
fn no_step_goes_on_without_its_workflow() {
    let ends: [fn(&mut Script); 2] = [
        |s| drop(s.say(&editor(), CancelJob { job: id("flow"), reason: "no more".into() }).unwrap()),
        |s| drop(s.say(&host(), ending("flow", JobState::Failed, None)).unwrap()),
    ];
    for end in ends {
        let mut s = Script::new();
        workflow(&mut s);
        s.say(&host(), ending("s0", JobState::Completed, None)).unwrap();
        end(&mut s);
        let states = ["flow", "s0", "s1"].map(|job| s.job(job).state);
        assert!(states[0].is_over() && states[1] == JobState::Completed, "{states:?}");
        assert_eq!(states[2], JobState::Cancelled);
        assert!(s.core.state().tasks.get(&task_id("t-2")).is_none(), "its task has ended, too");
    }
}

#[test]
fn a_step_that_ends_leaves_the_others_and_its_workflow() {
    let mut s = Script::new();
    workflow(&mut s);
    s.say(&editor(), CancelJob { job: id("s0"), reason: "not this one".into() }).unwrap();
    let states = ["flow", "s0", "s1"].map(|job| s.job(job).state);
    assert_eq!(states, [JobState::Queued, JobState::Cancelled, JobState::Queued]);
}

#[test]
fn what_was_thought_of_a_job_is_kept_with_it() {
    let mut s = Script::new();
    s.say(&editor(), opening("j1")).unwrap();
    s.say(&host(), ending("j1", JobState::Completed, None)).unwrap();
    let reject = |reason: Option<&str>| NoteFeedback {
        job: id("j1"),
        signal: "reject".into(),
        reason: reason.map(Into::into),
    };
    s.say(&editor(), reject(Some("too long"))).unwrap();
    assert_eq!(s.job("j1").feedback.as_deref(), Some("reject: too long"));
    s.say(&editor(), reject(None)).unwrap();
    assert_eq!(s.job("j1").feedback.as_deref(), Some("reject"));
    let unknown = NoteFeedback { job: id("j9"), signal: "accept".into(), reason: None };
    assert_eq!(s.say(&editor(), unknown), Err(Refusal::TaskNotFound));
}

#[test]
fn as_many_jobs_as_there_is_room_for() {
    let mut s = Script::new();
    // Each tree of processes has a share of it.
    for tree in 0..JOBS_LIVE_MAX / JOBS_OF_ONE_MAX {
        let from = from_tree(editor(), 7 + u32::try_from(tree).unwrap());
        for n in 0..JOBS_OF_ONE_MAX {
            s.say(&from, opening(&format!("j{}", tree * JOBS_OF_ONE_MAX + n))).unwrap();
        }
        assert!(
            matches!(s.say(&from, opening("more")), Err(Refusal::Quota { .. } | Refusal::Busy { .. })),
            "{tree}"
        );
    }
    assert!(matches!(s.say(&editor(), opening("more")), Err(Refusal::Busy { .. })));
    for n in 0..=JOBS_KEPT_MAX {
        s.now.0 += 1;
        s.say(&host(), ending(&format!("j{n}"), JobState::Failed, None)).unwrap();
    }
    s.say(&editor(), opening("more")).unwrap();
    s.now.0 += 61_000;
    s.core.tick(s.now, &mut s.out);
    assert!(s.core.state().jobs.get(&id("j0")).is_none(), "the one that was over first");
    assert!(s.core.state().jobs.get(&id("j1")).is_some());
    s.now = s.now.after(Ttl::minutes(7 * 24 * 60));
    s.core.tick(s.now, &mut s.out);
    let left = s.core.state().jobs.iter().all(|job| !job.state.is_over());
    assert!(left && s.core.state().jobs.get(&id("more")).is_some(), "unfinished ones are never forgotten");
}

#[test]
fn a_job_is_owed_from_its_opening_to_its_end() {
    let runs = || MoveJob { job: id("j1"), phase: None, task: None, runs: true };
    let taken_back = || CancelJob { job: id("j1"), reason: "enough".into() };
    for is_taken_back in [false, true] {
        let mut s = Script::new();
        s.say(&editor(), opening("j1")).unwrap();
        let (effect, what) = s.out.effects[0].clone();
        assert_eq!((s.out.effects.len(), what), (1, Effect::RunJob { job: id("j1") }));
        assert!(s.core.state().owing.has(&Deed::Job(id("j1"))));
        s.say(&editor(), OpenJob { job: id("j2"), ..opening("j1") }).unwrap();
        assert!(s.out.effects.is_empty(), "the same question is owed already");
        s.say(&host(), phase("j1", PhaseName::Research, PhaseState::Running)).unwrap();
        assert!(!s.out.changes.contains(&Change::StartEffect(effect)), "no worker runs yet");
        s.say(&host(), runs()).unwrap();
        assert!(s.out.changes.contains(&Change::StartEffect(effect)), "not to be begun twice");
        s.say(&host(), runs()).unwrap();
        assert!(!s.out.changes.contains(&Change::StartEffect(effect)));
        match is_taken_back {
            true => drop(s.say(&editor(), taken_back()).unwrap()),
            false => drop(s.say(&host(), ending("j1", JobState::Completed, None)).unwrap()),
        }
        assert!(s.out.changes.contains(&Change::DropEffect(effect)));
        assert!(!s.core.state().owing.has(&Deed::Job(id("j1"))));
        s.say(&editor(), taken_back()).unwrap();
        assert!(!s.out.changes.contains(&Change::DropEffect(effect)), "once");
    }
}

#[test]
fn a_workflow_owes_its_steps() {
    let mut s = Script::new();
    workflow(&mut s);
    let owed = |s: &Script, job: &str| s.core.state().owing.has(&Deed::Job(id(job)));
    assert!(owed(&s, "flow"));
    let steps: Vec<JobId> = s.core.state().jobs.steps_of(&id("flow")).map(|it| it.id.clone()).collect();
    assert!(
        steps.len() > 1 && steps.iter().all(|step| !owed(&s, step.as_str())),
        "it goes on with them, or ends them"
    );
}

/// Returns the owed effects, as a start finds them.
fn owed(store: &mut dyn Store) -> Vec<(Effect, bool)> {
    store.load(settings()).unwrap().owed.into_iter().map(|it| (it.effect, it.started)).collect()
}

#[test]
fn jobs_of_a_store_that_owed_none_are_owed_from_then_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path(), Options::default()).unwrap();
    let mut s = Script::new();
    s.core.restore(store.load(settings()).unwrap().state);
    let mut say = |who: &Principal, command: provost::domain::Command| {
        s.say(who, command).unwrap();
        store.commit(&s.out).unwrap();
    };
    for job in ["j1", "j2", "j3"] {
        say(&editor(), opening(job).into());
    }
    say(&host(), MoveJob { job: id("j2"), phase: None, task: None, runs: true }.into());
    say(&host(), ending("j3", JobState::Completed, None).into());
    let step = Some(StepOf { job: id("j2"), number: 0, phase: PhaseName::Generate });
    say(&editor(), OpenJob { kind: JobKind::Step, step, key: None, ..opening("j4") }.into());
    store.close().unwrap();
    drop(store);
    let db = rusqlite::Connection::open(dir.path().join("provost.db")).unwrap();
    let of_later_versions = "DROP TABLE usage_day; DROP TABLE usage_task; DROP TABLE spent; DROP TABLE counted_day; DROP TABLE counted_task; DROP TABLE merge_entry;
        DROP TABLE passkey; DROP TABLE passkey_reset; DROP TABLE daemon;
        DROP TABLE search_event; DROP TABLE search_task; DROP TABLE searched_task; DROP TABLE push;";
    db.execute_batch(&format!("DELETE FROM effect; {of_later_versions} PRAGMA user_version = 12;")).unwrap();
    drop(db);
    let mut store = open(dir.path(), Options::default()).unwrap();
    let run = |job: &str| Effect::RunJob { job: id(job) };
    assert_eq!(owed(&mut *store), [(run("j1"), false), (run("j2"), true)]);
    s.core.restore(store.load(settings()).unwrap().state);
    assert!(s.core.state().owing.has(&Deed::Job(id("j1"))));
    s.say(&editor(), opening("j5")).unwrap();
    store.commit(&s.out).expect("a new effect has a number of its own");
}

fn each_store(test: impl Fn(Box<dyn Store>, &dyn Fn() -> Box<dyn Store>)) {
    let control = MemoryStore::new().control();
    test(Box::new(control.reopen()), &|| Box::new(control.reopen()));
    let dir = tempfile::tempdir().unwrap();
    let again = || open(dir.path(), Options::default()).unwrap();
    test(again(), &again);
}

#[test]
fn jobs_and_what_they_brought_about_survive_a_crash() {
    each_store(|mut store, again| {
        let mut s = Script::new();
        s.core.restore(store.load(settings()).unwrap().state);
        let mut say = |who: &Principal, command: provost::domain::Command| {
            s.now.0 += 10;
            s.say(who, command).unwrap();
            store.commit(&s.out).unwrap();
        };
        say(&editor(), opening("j1").into());
        say(&editor(), opening("j2").into());
        say(&host(), phase("j1", PhaseName::Generate, PhaseState::Running).into());
        say(&host(), tied("j1", "t-1").into());
        say(&host(), ending("j1", JobState::Completed, Some(result())).into());
        drop(store);
        let mut store = again();
        let loaded = store.load(settings()).unwrap();
        assert!(!loaded.clean);
        assert_eq!(loaded.state.jobs, s.core.state().jobs);
        assert_eq!(loaded.state.owing, s.core.state().owing);
        assert_eq!(
            loaded.owed.iter().map(|it| it.effect.clone()).collect::<Vec<_>>(),
            [Effect::RunJob { job: id("j2") }]
        );
        let mut reader = store.opens_reader().and_then(|open| open()).unwrap();
        assert_eq!(reader.job_result(&id("j1")).unwrap(), Some(result()));
        assert_eq!(reader.job_result(&id("j2")).unwrap(), None);
        assert_eq!(reader.job_order(&id("j1")).unwrap(), None, "nobody needs it any more");
        assert_eq!(reader.job_order(&id("j2")).unwrap(), Some(opening("j2").order));
        drop(reader);
        s.core.restore(loaded.state);
        s.now = s.now.after(Ttl::minutes(8 * 24 * 60));
        s.out.clear();
        s.core.tick(s.now, &mut s.out);
        store.commit(&s.out).unwrap();
        let mut reader = store.opens_reader().and_then(|open| open()).unwrap();
        assert_eq!(reader.job_result(&id("j1")).unwrap(), None, "forgotten with its job");
        assert!(s.core.state().jobs.get(&id("j2")).is_some());
    });
}
