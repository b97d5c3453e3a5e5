//! Requests that the core accepts from inside a jail, as scripts: the core checks them as well as the door in front of it.

use provost::auth::role;
use provost::base::limits::PROGRESS_WAITING_MAX;
use provost::base::{Digest, TaskId, Ttl};
use provost::domain::command::{AckTask, AnswerApproval, BeginRun, Record, Status};
use provost::domain::{Answer, MailKind, Principal, Refusal, Scope, Verdict};

use crate::support::script::{Script, client, host, named, report};

/// A task of the worker `cli` that runs, and that worker in its jail.
fn running(s: &mut Script) -> (TaskId, Principal) {
    let task = s.delegate(&client("ada"), "do", "cli");
    let (effect, until) = (s.out.effects[0].0, s.now.after(Ttl::minutes(10)));
    s.say(&host(), BeginRun { effect, task: task.clone(), until }).unwrap();
    let inside = role::worker(named("cli"), &task);
    (task, inside)
}

#[test]
fn a_jailed_worker_has_a_say_in_its_own_task_while_it_runs_and_in_no_other() {
    let mut s = Script::new();
    let (mine, inside) = running(&mut s);
    let (other, _) = running(&mut s);
    s.report(&inside, &mine, Status::InProgress).unwrap();
    assert_eq!(
        s.report(&inside, &other, Status::InProgress),
        Err(Refusal::TaskNotFound),
        "of the same worker"
    );
    let elsewhere = s.delegate(&client("ada"), "do", "polling");
    assert_eq!(s.report(&inside, &elsewhere, Status::InProgress), Err(Refusal::TaskNotFound));
    let impostor = role::worker(named("polling"), &mine);
    assert_eq!(s.report(&impostor, &mine, Status::InProgress), Err(Refusal::TaskNotFound), "another's name");
    let queued = s.delegate(&client("ada"), "do", "cli");
    let early = role::worker(named("cli"), &queued);
    assert!(matches!(s.report(&early, &queued, Status::InProgress), Err(Refusal::TaskCannot { .. })));
    s.cancel(&client("ada"), &mine).unwrap();
    assert_eq!(s.report(&inside, &mine, Status::InProgress), Err(Refusal::TaskFinished));
}

#[test]
fn no_word_from_inside_ends_a_task_or_prolongs_it() {
    let mut s = Script::new();
    let (task, inside) = running(&mut s);
    let before = s.state(&task);
    s.pass(Ttl::minutes(5));
    for word in [Status::Completed, Status::Failed, Status::Cancelled, Status::Pending, Status::InProgress] {
        s.report(&inside, &task, word).unwrap();
        assert_eq!(s.state(&task), before, "{word:?}");
    }
    let mut repeated = report(&task, Status::InProgress);
    repeated.message = Some("m1".into());
    s.say(&inside, repeated.clone()).unwrap();
    let notes = s.task(&task).notes.len();
    s.say(&inside, repeated).unwrap();
    assert_eq!(s.task(&task).notes.len(), notes, "a repeat is taken once");
    s.pass(Ttl::minutes(10));
    assert!(s.state(&task).is_finished(), "its time is over, whatever it says");
}

#[test]
fn endless_progress_pushes_nothing_else_out_of_a_queue() {
    let mut s = Script::new();
    let (task, inside) = running(&mut s);
    let (other, _) = running(&mut s);
    s.cancel(&client("ada"), &other).unwrap();
    for _ in 0..3 * PROGRESS_WAITING_MAX {
        s.report(&inside, &task, Status::InProgress).unwrap();
    }
    let mail = s.receive_all(&client("ada"));
    let about = |id: &TaskId| mail.iter().filter(|it| it.kind.task() == Some(id)).count();
    assert_eq!((about(&task), about(&other)), (PROGRESS_WAITING_MAX, 1));
    assert!(
        mail.iter().all(|it| !matches!(&it.kind, MailKind::Word { report, .. } if report.relay.is_some()))
    );
}

#[test]
fn a_jailed_worker_has_no_other_rights() {
    let mut s = Script::new();
    let (task, inside) = running(&mut s);
    let (_, approval) = s.ask(&client("ada"), "ask", "cli");
    let needs = |needs| Err(Refusal::OutOfScope { needs });
    let order = s.order("do", "cli");
    assert_eq!(s.say(&inside, order), needs(Scope::Delegate));
    assert_eq!(s.cancel(&inside, &task), needs(Scope::Delegate));
    let yes = AnswerApproval {
        approval,
        verdict: Verdict::Granted,
        note: None,
        shown: Some(Digest::default()),
        signed: None,
    };
    assert_eq!(s.say(&inside, yes), needs(Scope::Approve));
    let details = provost::base::Json::parse("{}").unwrap();
    let record = Record { what: "key.added".into(), subject: "x".into(), details };
    assert_eq!(s.say(&inside, record), needs(Scope::Operate));
    assert!(matches!(s.say(&inside, AckTask { task }), Err(Refusal::TaskNotYours { .. })));
    assert!(matches!(
        s.answer(&crate::support::script::approver("boss"), approval, Verdict::Denied),
        Ok(Answer::Done(_))
    ));
}
