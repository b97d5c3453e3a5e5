//! Tasks, from delegation to the last word, as scripts over the core.

use provost::base::limits::{MAIL_MAX, NOTES_MAX, SUMMARY_LEN_MAX};
use provost::base::{Json, Ttl};
use provost::domain::command::{AckTask, BeginRun, CancelTask, EndRun, Status};
use provost::domain::{
    Answer, Change, Effect, EventKind, Facts, Failure, MailKind, Refusal, Reply, Report, TaskState,
};

use crate::support::script::{
    FEW, RATED, Script, client, host, last_words, named, person, report, rule, task_id, works,
};
use crate::support::storm::settings;

// Delegating.

#[test]
fn a_repeat_gets_the_same_answer_and_changes_nothing() {
    let mut s = Script::new();
    for goal in ["do", "ask", "never"] {
        let order = s.order(goal, "cli");
        let first = s.say(&client("ada"), order.clone()).unwrap();
        let again = s.say(&client("ada"), order).unwrap();
        assert_eq!(first, again, "{goal}");
        assert!(s.out.is_empty(), "{goal}");
    }
}

#[test]
fn an_id_belongs_to_one_caller_and_one_request() {
    let mut s = Script::new();
    let order = s.order("do", "cli");
    s.say(&client("ada"), order.clone()).unwrap();
    assert_eq!(s.say(&client("bob"), order.clone()), Err(Refusal::TaskExists));
    let mut other = order.clone();
    other.goal = "do something else".into();
    assert_eq!(s.say(&client("ada"), other.clone()), Err(Refusal::TaskExists));
    s.cancel(&client("ada"), &order.task).unwrap();
    assert_eq!(s.say(&client("ada"), other), Err(Refusal::TaskExists), "also when it has ended");
    let again = s.say(&client("ada"), order).unwrap();
    assert!(matches!(again, Answer::Done(Reply::Delegated(it)) if it.state.status() == Status::Cancelled));
}

#[test]
fn a_denied_delegation_is_on_record_and_starts_nothing() {
    let mut s = Script::new();
    let order = s.order("never", "cli");
    let Ok(Answer::Denied(denial)) = s.say(&client("ada"), order.clone()) else { panic!("not denied") };
    assert_eq!((denial.rule, denial.failure.reason()), (rule("never"), "policy_denied"));
    assert!(s.spawned().is_empty());
    assert_eq!(s.state(&order.task).status(), Status::Failed);
    let mail = s.receive_all(&client("ada"));
    assert_eq!(last_words(&mail), [(order.task, "failed".to_owned())]);
}

#[test]
fn a_broken_worker_is_refused_with_what_to_mend() {
    let mut settings = settings();
    settings.workers.get_mut(&named("cli")).unwrap().broken = Some("no binary".into());
    let mut s = Script::with(settings);
    let order = s.order("do", "cli");
    let said = s.say(&client("ada"), order);
    assert!(matches!(said, Err(Refusal::WorkerBroken { why, .. }) if &*why == "no binary"));
}

#[test]
fn a_directory_outside_fails_the_task_before_policy_is_asked() {
    let mut s = Script::new();
    let order = s.order("ask", "cli");
    let facts = Facts { directory_refused: Some("outside".into()), ..Facts::default() };
    let who = client("ada");
    let call =
        provost::domain::Call { now: s.now, wall: s.now, who: &who, facts, past: None, earlier: Vec::new() };
    let said = s.core.apply(call, order.into(), &mut s.out).unwrap();
    assert!(matches!(said, Answer::Denied(it) if it.rule == rule("sandbox")));
    assert!(s.core.state().approvals.iter().next().is_none());
}

#[test]
fn a_rule_is_used_as_often_as_it_allows_by_each_client() {
    let mut s = Script::new();
    for who in ["ada", "bob"] {
        for _ in 0..RATED {
            s.delegate(&client(who), "rated", "cli");
        }
        let order = s.order("rated", "cli");
        let said = s.say(&client(who), order).unwrap();
        assert!(matches!(said, Answer::Denied(it) if it.reason.contains("again in 60s")));
    }
    s.pass(Ttl::seconds_clamped(59));
    let order = s.order("rated", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Denied(_))), "a denied use is none");
    s.pass(Ttl::seconds_clamped(1));
    let order = s.order("rated", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Done(_))));
}

#[test]
fn uses_that_count_no_more_are_forgotten() {
    let mut s = Script::new();
    s.delegate(&client("ada"), "rated", "cli");
    assert!(!s.core.state().quota.is_empty());
    s.pass(Ttl::minutes(3));
    assert!(s.core.state().quota.is_empty(), "a name that was made up once does not stay for ever");
}

#[test]
fn a_refused_command_uses_nothing_up() {
    let mut few = settings();
    few.tasks_per_agent = 1;
    let mut s = Script::with(few);
    let held = s.delegate(&client("ada"), "do", "cli");
    for _ in 0..2 * RATED {
        let order = s.order("rated", "cli");
        assert!(matches!(s.say(&client("ada"), order), Err(Refusal::Quota { .. })));
    }
    s.cancel(&client("ada"), &held).unwrap();
    let order = s.order("rated", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Done(_))));
}

#[test]
fn no_more_tasks_at_once_than_a_rule_allows() {
    let mut s = Script::new();
    let tasks: Vec<_> = (0..FEW).map(|_| s.delegate(&client("ada"), "few", "cli")).collect();
    let order = s.order("few", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Denied(_))));
    s.delegate(&client("bob"), "few", "cli");
    s.cancel(&client("ada"), &tasks[0]).unwrap();
    let order = s.order("few", "cli");
    assert!(matches!(s.say(&client("ada"), order), Ok(Answer::Done(_))));
}

#[test]
fn no_more_unfinished_tasks_per_agent_than_configured_waiting_ones_included() {
    let mut few = settings();
    few.tasks_per_agent = 3;
    let mut s = Script::with(few);
    s.delegate(&client("ada"), "do", "cli");
    s.ask(&client("ada"), "ask", "cli");
    let (_, last) = s.ask(&client("ada"), "ask", "cli");
    for goal in ["do", "ask"] {
        let order = s.order(goal, "cli");
        assert!(matches!(s.say(&client("ada"), order), Err(Refusal::Quota { .. })), "{goal}");
    }
    s.answer(&person("owner"), last, provost::domain::Verdict::Granted).unwrap();
    assert_eq!(s.spawned().len(), 1, "a granted task has its place already");
}

#[test]
fn delegations_do_not_go_deeper_than_rules_allow() {
    let mut s = Script::new();
    let names = ["a", "b", "c", "d", "e"];
    for pair in names.windows(2) {
        s.delegate(&client(pair[0]), "do", pair[1]);
    }
    let order = s.order("do", "f");
    assert!(matches!(s.say(&client("e"), order), Ok(Answer::Denied(_))));
    assert_eq!(s.core.state().tasks.iter().map(|it| it.depth).max(), Some(3));
}

#[test]
fn a_worker_whose_queue_is_full_is_given_no_more_work() {
    let mut s = Script::new();
    let mut first = None;
    for n in 0..MAIL_MAX {
        let who = client(if n % 2 == 0 { "ada" } else { "bob" });
        first.get_or_insert(s.delegate(&who, "do", "wes"));
    }
    let order = s.order("do", "wes");
    assert!(matches!(s.say(&client("eve"), order), Err(Refusal::Busy { .. })));
    let mail = s.receive(&client("wes")).unwrap();
    assert_eq!(works(&[mail]), [first.unwrap()], "the oldest was not pushed out");
}

// Polling workers.

#[test]
fn a_polled_task_walks_from_queue_to_end() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    assert!(matches!(s.state(&task), TaskState::Queued { .. }));
    let mail = s.collect(&wes).unwrap();
    assert!(matches!(s.state(&task), TaskState::Queued { .. }), "not before it has arrived");
    s.say(&wes, provost::domain::command::SettleMail { seq: mail.seq, delivered: true }).unwrap();
    assert!(matches!(s.state(&task), TaskState::Assigned { .. }));
    s.report(&wes, &task, Status::InProgress).unwrap();
    assert!(matches!(s.state(&task), TaskState::Running { .. }));
    s.report(&wes, &task, Status::Completed).unwrap();
    assert_eq!(s.state(&task).status(), Status::Completed);
    assert_eq!(s.report(&wes, &task, Status::InProgress), Err(Refusal::TaskFinished));
    assert_eq!(last_words(&s.receive_all(&ada)), [(task, "completed".to_owned())]);
}

#[test]
fn only_its_worker_moves_a_task() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "wes");
    s.receive_all(&client("wes"));
    for (who, status) in [
        ("ada", Status::Completed),
        ("ada", Status::InProgress),
        ("bob", Status::Failed),
        ("bob", Status::Cancelled),
    ] {
        let said = s.report(&client(who), &task, status);
        assert!(matches!(said, Err(Refusal::TaskNotYours { .. })), "{who} {status:?} {said:?}");
    }
    assert_eq!(s.report(&client("wes"), &task_id("t-0"), Status::Completed), Err(Refusal::TaskNotFound));
    let jailed = s.delegate(&client("ada"), "do", "cli");
    assert!(
        s.report(&client("cli"), &jailed, Status::Completed).is_err(),
        "a jailed worker's name is no proof"
    );
}

#[test]
fn a_task_that_waits_for_approval_cannot_be_reported_on() {
    let mut s = Script::new();
    let (task, _) = s.ask(&client("ada"), "ask", "wes");
    assert!(matches!(s.report(&client("wes"), &task, Status::Completed), Err(Refusal::TaskCannot { .. })));
}

#[test]
fn a_repeated_report_is_taken_once() {
    let mut s = Script::new();
    let (ada, wes) = (client("ada"), client("wes"));
    let task = s.delegate(&ada, "do", "wes");
    for status in [Status::InProgress, Status::Completed] {
        let mut verb = report(&task, status);
        verb.message = Some(format!("{status:?}").into());
        s.say(&wes, verb.clone()).unwrap();
        s.say(&wes, verb).unwrap();
        assert!(s.out.is_empty());
    }
    assert_eq!(s.task(&task).notes.len(), 2);
}

#[test]
fn progress_on_a_queued_task_takes_its_work_out_of_the_queue() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "wes");
    s.report(&client("wes"), &task, Status::InProgress).unwrap();
    assert!(s.receive_all(&client("wes")).is_empty());
    assert!(matches!(s.state(&task), TaskState::Running { .. }));
}

#[test]
fn progress_never_breaks_the_route_to_the_delegator() {
    let mut s = Script::new();
    let (ada, rex, wes) = (client("ada"), client("rex"), client("wes"));
    let mut order = s.order("do", "wes");
    order.return_to = Some(named("rex"));
    let task = order.task.clone();
    s.say(&ada, order).unwrap();
    s.receive_all(&wes);
    for _ in 0..5 {
        s.report(&wes, &task, Status::InProgress).unwrap();
    }
    assert_eq!((s.receive_all(&rex).len(), s.receive_all(&ada).len()), (5, 0));
    s.report(&wes, &task, Status::Failed).unwrap();
    for who in [ada, rex] {
        assert_eq!(last_words(&s.receive_all(&who)), [(task.clone(), "failed".to_owned())], "{who}");
    }
}

#[test]
fn the_first_note_and_the_newest_are_kept() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "wes");
    for n in 0..3 * NOTES_MAX {
        let mut verb = report(&task, Status::InProgress);
        verb.report.summary = format!("{n} {}", "é".repeat(SUMMARY_LEN_MAX)).into();
        verb.report.relay = Some(Json::null());
        s.say(&client("wes"), verb).unwrap();
    }
    let notes = &s.task(&task).notes;
    assert_eq!(notes.len(), NOTES_MAX);
    assert!(notes[0].report.summary.starts_with("0 ") && notes[1].report.summary.starts_with("33 "));
    assert!(notes.iter().all(|it| it.report.summary.len() <= SUMMARY_LEN_MAX && it.report.relay.is_none()));
}

#[test]
fn a_delegate_without_a_word_is_handed_over_once_more() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    assert_eq!(works(&s.receive_all(&wes)), std::slice::from_ref(&task));
    s.pass(Ttl::seconds_clamped(59));
    assert!(s.receive_all(&wes).is_empty());
    s.pass(Ttl::seconds_clamped(1));
    assert_eq!(works(&s.receive_all(&wes)), std::slice::from_ref(&task));
    for _ in 0..10 {
        s.pass(Ttl::minutes(1));
        assert!(s.receive_all(&wes).is_empty(), "twice is enough");
    }
    s.report(&wes, &task, Status::Completed).unwrap();
}

#[test]
fn a_worker_that_said_pending_has_seen_its_task() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    s.receive_all(&wes);
    s.report(&wes, &task, Status::Pending).unwrap();
    s.pass(Ttl::minutes(3));
    assert!(works(&s.receive_all(&wes)).is_empty());
    assert_eq!(s.state(&task).status(), Status::Pending);
}

#[test]
fn lease_is_renewed_by_signs_of_life() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    s.receive_all(&wes);
    s.report(&wes, &task, Status::InProgress).unwrap();
    for _ in 0..12 {
        s.pass(Ttl::minutes(5));
        s.beat(&wes);
    }
    assert!(matches!(s.state(&task), TaskState::Running { .. }), "an hour of signs of life");
    s.pass(Ttl::minutes(14));
    assert!(matches!(s.state(&task), TaskState::Running { .. }));
    s.pass(Ttl::minutes(1));
    let ended = s.task(&task);
    assert!(matches!(&ended.failure, Some(Failure::LeaseTimeout { timeout_s: 900, .. })), "{ended:?}");
    assert_eq!(last_words(&s.receive_all(&wes)), [(task.clone(), "timeout".to_owned())]);
    assert_eq!(last_words(&s.receive_all(&client("ada"))), [(task, "failed".to_owned())]);
}

#[test]
fn nobody_is_late_for_the_time_the_daemon_was_away() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    s.report(&wes, &task, Status::InProgress).unwrap();
    let stored: Vec<_> = s.core.state().tasks.iter().cloned().map(Change::PutTask).collect();
    s.restart_after(Ttl::minutes(60), &stored);
    s.pass(Ttl::minutes(1));
    s.beat(&wes);
    assert!(matches!(s.state(&task), TaskState::Running { .. }), "the worker could not be heard");
    s.pass(Ttl::minutes(14));
    assert!(matches!(s.state(&task), TaskState::Running { .. }));
    s.pass(Ttl::minutes(2));
    assert_eq!(s.state(&task).status(), Status::Failed);
}

#[test]
fn terms_bind_a_polling_worker_however_much_it_talks() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "short", "wes");
    s.receive_all(&wes);
    for _ in 0..11 {
        s.pass(Ttl::seconds_clamped(10));
        s.report(&wes, &task, Status::InProgress).unwrap();
    }
    s.pass(Ttl::seconds_clamped(10));
    assert!(
        matches!(s.task(&task).failure, Some(Failure::RunTimeout { timeout_s: 120 })),
        "{:?}",
        s.task(&task)
    );
    assert_eq!(s.report(&wes, &task, Status::Completed), Err(Refusal::TaskFinished));
}

#[test]
fn a_renewed_lease_does_not_outlast_the_terms() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "hasty", "wes");
    s.report(&wes, &task, Status::InProgress).unwrap();
    for _ in 0..3 {
        s.pass(Ttl::minutes(5));
        s.beat(&wes);
    }
    s.pass(Ttl::seconds_clamped(299));
    assert!(matches!(s.state(&task), TaskState::Running { .. }), "past its first lease");
    s.pass(Ttl::seconds_clamped(1));
    assert!(matches!(s.task(&task).failure, Some(Failure::RunTimeout { timeout_s: 1_200 })));
}

#[test]
fn a_worker_that_is_away_keeps_its_task_within_the_bound() {
    let mut s = Script::new();
    let wes = client("wes");
    let kept = s.delegate(&client("ada"), "do", "wes");
    s.pass(Ttl::minutes(24 * 60 - 1));
    assert_eq!(works(&s.receive_all(&wes)), [kept]);
    let lost = s.delegate(&client("ada"), "do", "zoë");
    s.pass(Ttl::minutes(24 * 60));
    assert!(matches!(s.task(&lost).failure, Some(Failure::WorkerAway { kept_s: 86_400, .. })));
    assert!(s.receive_all(&client("zoë")).is_empty(), "nobody waits for its work any more");
}

#[test]
fn work_is_kept_as_long_as_its_task_even_where_mail_is_not() {
    let mut short = settings();
    short.mail_keep = Ttl::minutes(5);
    let mut s = Script::with(short);
    let task = s.delegate(&client("ada"), "do", "wes");
    s.pass(Ttl::minutes(60));
    assert_eq!(works(&s.receive_all(&client("wes"))), [task]);
}

// Taking back.

#[test]
fn its_asker_and_the_operator_take_a_task_back() {
    let mut s = Script::new();
    for who in [client("ada"), person("owner")] {
        let task = s.delegate(&client("ada"), "do", "wes");
        assert!(matches!(s.cancel(&client("bob"), &task), Err(Refusal::TaskNotYours { .. })));
        assert!(matches!(s.cancel(&client("wes"), &task), Err(Refusal::TaskNotYours { .. })));
        s.cancel(&who, &task).unwrap();
        let again = s.cancel(&who, &task).unwrap();
        assert!(s.out.is_empty() && matches!(again, Answer::Done(Reply::Cancelled(_))));
        assert!(s.receive_all(&client("wes")).is_empty(), "what was not collected is withdrawn");
    }
    let task = s.delegate(&client("ada"), "do", "wes");
    s.report(&client("wes"), &task, Status::Completed).unwrap();
    assert_eq!(s.cancel(&client("ada"), &task), Err(Refusal::TaskFinished));
}

#[test]
fn a_delegator_that_notifies_cancelled_takes_its_task_back() {
    let mut s = Script::new();
    let wes = client("wes");
    let task = s.delegate(&client("ada"), "do", "wes");
    s.receive_all(&wes);
    s.report(&client("ada"), &task, Status::Cancelled).unwrap();
    assert_eq!(s.state(&task).status(), Status::Cancelled);
    assert_eq!(last_words(&s.receive_all(&wes)), [(task, "cancelled".to_owned())], "the worker is told");
}

#[test]
fn a_worker_hears_of_a_cancel_that_meets_its_task_on_the_way() {
    let (mut s, ada, wes) = (Script::new(), client("ada"), client("wes"));
    let task = s.delegate(&ada, "long", "wes");
    let on_the_way = s.collect(&wes).unwrap();
    assert_eq!(works(&[on_the_way]), std::slice::from_ref(&task));
    s.cancel(&ada, &task).unwrap();
    assert_eq!(last_words(&s.receive_all(&wes)), [(task, "cancelled".to_owned())]);
    // Nobody who has not come for a task is told that it is gone.
    let other = s.delegate(&ada, "long", "wes");
    s.cancel(&ada, &other).unwrap();
    assert!(s.receive_all(&wes).is_empty());
}

#[test]
fn a_cancelled_question_is_withdrawn() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    s.cancel(&client("ada"), &task).unwrap();
    assert!(s.core.state().approvals.get(approval).is_none());
    assert!(s.receive_all(&client("boss")).is_empty());
    assert!(s.answer(&person("owner"), approval, provost::domain::Verdict::Granted).is_err());
}

#[test]
fn a_cancelled_run_is_stopped_and_cannot_begin() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "cli");
    let effect = s.out.effects[0].0;
    s.cancel(&client("ada"), &task).unwrap();
    assert!(matches!(&s.out.effects[..], [(_, Effect::StopWorker { .. })]));
    let until = s.now.after(Ttl::minutes(1));
    assert_eq!(s.say(&host(), BeginRun { effect, task: task.clone(), until }), Err(Refusal::TaskFinished));
    let report = Report::default();
    let status = Status::Completed;
    s.say(
        &host(),
        EndRun { effect, task: task.clone(), status, report, failure: None, model_used: None, changes: None },
    )
    .unwrap();
    assert_eq!(s.state(&task).status(), Status::Cancelled, "a late end changes nothing");
    assert_eq!(s.finished.len(), 1);
}

#[test]
fn a_run_that_never_ends_is_ended_after_its_limit() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "cli");
    let effect = s.out.effects[0].0;
    let until = s.now.after(Ttl::minutes(10));
    s.say(&host(), BeginRun { effect, task: task.clone(), until }).unwrap();
    assert!(s.say(&host(), BeginRun { effect, task: task.clone(), until }).is_err(), "it begins once");
    s.pass(Ttl::minutes(11));
    assert!(matches!(s.out.effects[..], [(_, Effect::StopWorker { .. })]));
    assert!(matches!(s.task(&task).failure, Some(Failure::RunTimeout { .. })));
}

#[test]
fn a_worker_that_asked_itself_hears_every_end_within_bounds() {
    let mut s = Script::new();
    let ada = client("ada");
    let task = s.delegate(&ada, "do", "ada");
    s.receive_all(&ada);
    for _ in 0..MAIL_MAX + 5 {
        s.report(&ada, &task, Status::InProgress).unwrap();
    }
    let other = s.delegate(&ada, "do", "wes");
    for _ in 0..MAIL_MAX + 5 {
        s.report(&client("wes"), &other, Status::InProgress).unwrap();
    }
    s.cancel(&ada, &task).unwrap();
    assert!(s.core.state().mail.waiting(&named("ada")) <= MAIL_MAX);
    let words = last_words(&s.receive_all(&ada));
    assert_eq!(words.len(), 2, "as worker and as asker: {words:?}");
}

// Acknowledging.

#[test]
fn whom_a_task_concerns_acknowledges_it_and_never_its_worker() {
    let mut s = Script::new();
    let mut order = s.order("do", "wes");
    order.return_to = Some(named("rex"));
    let task = order.task.clone();
    s.say(&client("ada"), order).unwrap();
    let own = s.delegate(&client("wes"), "do", "wes");
    for who in [client("ada"), client("rex"), person("owner")] {
        s.say(&who, AckTask { task: task.clone() }).unwrap();
        assert!(matches!(s.events()[..], [EventKind::TaskAcked { .. }]));
    }
    for (who, task) in [("wes", &task), ("bob", &task), ("wes", &own)] {
        let said = s.say(&client(who), AckTask { task: task.clone() });
        assert!(matches!(said, Err(Refusal::TaskNotYours { .. })), "{who}");
    }
    s.say(&person("owner"), CancelTask { task: task.clone(), reason: "x".into() }).unwrap();
    s.say(&client("rex"), AckTask { task }).unwrap();
}

#[test]
fn the_last_word_carries_the_report_to_the_letter() {
    let mut s = Script::new();
    let task = s.delegate(&client("ada"), "do", "wes");
    let mut verb = report(&task, Status::InProgress);
    verb.report.relay = Some(Json::parse(r#"{"status":"reviewing","x":1.50}"#).unwrap());
    s.say(&client("wes"), verb.clone()).unwrap();
    let mail = s.receive(&client("ada")).unwrap();
    let MailKind::Word { said, report, last: false, .. } = &mail.kind else { panic!("{mail:?}") };
    assert_eq!((&**said, &report.relay), ("reviewing", &verb.report.relay));
}
