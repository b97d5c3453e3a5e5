//! Words for the agent of a task: who may say them, how much, their fate, and a run that begins again.

use provost::base::{TaskId, Ttl};
use provost::domain::command::{
    BeginRun, EndRun, NoteSaid, NoteSession, ResumeRun, SayToTask, SayingsTaken, Status, TakeSayings,
};
use provost::domain::view::{Gauges, View as _};
use provost::domain::{
    AgentSession, Answer, EventKind, Principal, Refusal, Reply, Report, SayingState, TalkEvent, Task,
};

use crate::support::script::{Script, client, host};

fn say(s: &mut Script, who: &Principal, task: &TaskId, text: &str) -> Result<u32, Refusal> {
    let verb = SayToTask { task: task.clone(), text: text.into(), now: false };
    match s.say(who, verb)? {
        Answer::Done(Reply::SaidToTask(said)) => Ok(said.number),
        other => panic!("{other:?}"),
    }
}

fn taken(s: &mut Script, task: &TaskId) -> Vec<String> {
    match s.say(&host(), TakeSayings { task: task.clone() }).unwrap() {
        Answer::Done(Reply::SayingsTaken(SayingsTaken { sayings })) => {
            sayings.iter().map(|it| it.text.to_string()).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn begun(s: &mut Script) -> (TaskId, provost::base::EffectId) {
    let task = s.delegate(&client("ada"), "do", "cli");
    let effect = s.out.effects[0].0;
    let until = s.now.after(Ttl::minutes(5));
    s.say(&host(), BeginRun { effect, task: task.clone(), until }).unwrap();
    (task, effect)
}

fn session(kept: Option<&TaskId>) -> AgentSession {
    let (id, folder) = ("s".into(), "/copy".into());
    AgentSession { id, folder, loads: false, resumes: true, lists: false, closes: false, kept: kept.cloned() }
}

fn found(s: &Script, task: &TaskId) -> std::sync::Arc<Task> {
    s.core.state().tasks.get(task).unwrap().clone()
}

#[test]
fn what_is_said_waits_until_it_is_delivered_and_nothing_is_taken_on_after_the_last_turn() {
    let mut s = Script::new();
    let (task, _) = begun(&mut s);
    assert_eq!(say(&mut s, &client("ada"), &task, "one"), Ok(1));
    assert_eq!(say(&mut s, &client("ada"), &task, &"two".repeat(1_000)), Ok(2));
    assert_eq!(taken(&mut s, &task).len(), 2);
    assert_eq!(taken(&mut s, &task).len(), 2, "they wait until they are delivered");
    s.say(&host(), NoteSaid { task: task.clone(), through: 2 }).unwrap();
    let talk = found(&s, &task).talk.clone().unwrap();
    assert!(talk.sayings.iter().all(|it| matches!(it.state, SayingState::Delivered { .. })));
    assert_eq!(talk.sayings[1].text.len(), 1_024, "the beginning of what was delivered");
    assert!(taken(&mut s, &task).is_empty());
    let late = say(&mut s, &client("ada"), &task, "three");
    assert!(matches!(late, Err(Refusal::SessionCannot { .. })), "{late:?}");
}

#[test]
fn what_is_said_to_a_queued_task_makes_its_wait_no_shorter() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "cli");
    let queued = s.now;
    s.pass(Ttl::minutes(1));
    say(&mut s, &client("ada"), &task, "hurry").unwrap();
    assert!(found(&s, &task).updated_at > queued);
    let waiting = Gauges.look(s.now, s.core.state()).queued;
    assert_eq!((waiting.count, waiting.since), (1, Some(queued)));
}

#[test]
fn of_a_thousand_sayings_as_many_are_kept_as_may_wait() {
    let mut s = Script::new();
    let (task, _) = begun(&mut s);
    let kept = (0..1_000).filter(|_| say(&mut s, &client("ada"), &task, "again").is_ok()).count();
    assert_eq!(kept, 16);
    assert!(matches!(say(&mut s, &client("ada"), &task, "x"), Err(Refusal::Quota { .. })));
    let long = say(&mut s, &client("ada"), &task, &"x".repeat(200_000));
    assert!(matches!(long, Err(Refusal::TooLong { .. })), "{long:?}");
}

#[test]
fn a_runs_end_tells_what_was_not_delivered() {
    let mut s = Script::new();
    let (task, effect) = begun(&mut s);
    say(&mut s, &client("ada"), &task, "never heard").unwrap();
    let report = Report { summary: "It died.".into(), ..Report::default() };
    let end = EndRun {
        effect,
        task: task.clone(),
        status: Status::Failed,
        report,
        failure: None,
        model_used: None,
        changes: None,
    };
    s.say(&host(), end).unwrap();
    let is_lost = |it: &EventKind| matches!(it, EventKind::Talk(TalkEvent::SayingsLost { numbers, .. }) if *numbers == [1]);
    assert!(s.events().iter().any(|it| is_lost(it)));
    assert_eq!(say(&mut s, &client("ada"), &task, "too late"), Err(Refusal::TaskFinished));
}

#[test]
fn no_other_agent_says_something() {
    let mut s = Script::new();
    let (task, _) = begun(&mut s);
    for other in ["bob", "cli"] {
        let why = say(&mut s, &client(other), &task, "x");
        assert!(matches!(why, Err(Refusal::TaskNotYours { .. })), "{other}: {why:?}");
    }
}

#[test]
fn a_run_begins_again_once_and_only_in_a_session_whose_home_is_kept() {
    let mut s = Script::new();
    let (task, _) = begun(&mut s);
    let resume = |s: &mut Script| {
        let until = s.now.after(Ttl::minutes(5));
        s.say(&host(), ResumeRun { task: task.clone(), until }).map(drop)
    };
    assert!(resume(&mut s).is_err(), "it has no session");
    s.say(&host(), NoteSession { task: task.clone(), session: session(None) }).unwrap();
    assert!(resume(&mut s).is_err(), "its home is gone");
    s.say(&host(), NoteSession { task: task.clone(), session: session(Some(&task)) }).unwrap();
    assert_eq!(resume(&mut s), Ok(()));
    assert!(resume(&mut s).is_err(), "once");
    assert_eq!(found(&s, &task).talk.as_ref().unwrap().resumed, 1);
}
