//! Questions that are asked again when their time is over, as scripts over the core and its rules.

use provost::base::{Json, Ttl};
use provost::domain::command::{AskPermission, Status};
use provost::domain::{Decision, EventKind, Failure, MailKind, Refusal, TaskState, Verdict};
use provost::policy::{Layer, Request, RuleSet, explain_request};

use crate::support::rules::{policy, rule};
use crate::support::script::{AGAIN, Script, approver, client, last_words, person};

/// The events of one kind about asking again: how often so far, and how often still.
fn asked_again(s: &Script) -> Vec<(u32, u32)> {
    let of = |event: &&EventKind| match event {
        EventKind::ApprovalAskedAgain { asked, left, .. } => Some((*asked, *left)),
        _ => None,
    };
    s.events().iter().filter_map(of).collect()
}

#[test]
fn a_question_is_asked_as_often_as_its_rule_says_and_then_denied() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask-again", "cli");
    for time in 1..=AGAIN {
        s.pass(Ttl::minutes(5));
        assert_eq!(asked_again(&s), [(time, AGAIN - time)]);
        assert_eq!(s.state(&task), TaskState::Awaiting { approval }, "the doors see it waiting");
    }
    assert!(s.core.state().approvals.get(approval).is_some());
    s.pass(Ttl::minutes(5));
    assert!(asked_again(&s).is_empty());
    assert!(matches!(s.task(&task).failure, Some(Failure::ApprovalTimeout { .. })));
    assert_eq!(last_words(&s.receive_all(&client("ada"))), [(task, "failed".to_owned())]);
}

#[test]
fn an_answer_counts_in_every_round_and_between_two_of_them() {
    for rounds in 0..=AGAIN {
        let mut s = Script::new();
        let (_, approval) = s.ask(&client("ada"), "ask-again", "cli");
        for _ in 0..rounds {
            s.pass(Ttl::minutes(5));
        }
        s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
        assert_eq!(s.spawned().len(), 1);
    }
    // The time is over, and no process has looked at the clock since.
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask-again", "cli");
    s.now = s.now.after(Ttl::minutes(6));
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    // After the last round it does not.
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask-again", "cli");
    (0..AGAIN).for_each(|_| s.pass(Ttl::minutes(5)));
    s.now = s.now.after(Ttl::minutes(6));
    let late = s.answer(&person("owner"), approval, Verdict::Granted);
    assert_eq!(late, Err(Refusal::ApprovalNotFound(approval)));
}

#[test]
fn the_approver_has_one_question_in_its_queue_with_the_new_time_and_the_old_digest() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask-again", "cli");
    let shown = s.core.state().approvals.get(approval).unwrap().shown;
    s.pass(Ttl::minutes(5));
    s.pass(Ttl::minutes(4));
    let until = s.core.state().approvals.get(approval).unwrap().expires_at;
    assert_eq!(until, s.now.after(Ttl::minutes(1)));
    let questions = s.receive_all(&approver("boss"));
    let [question] = &questions[..] else { panic!("{questions:?}") };
    let MailKind::Approval { approval: id, shown: digest, expires_at, .. } = &question.kind else {
        panic!("{question:?}")
    };
    assert_eq!((*id, *digest, *expires_at), (approval, shown, until));
    s.answer(&approver("boss"), approval, Verdict::Denied).unwrap();
    assert!(s.receive_all(&approver("boss")).is_empty());
}

#[test]
fn a_question_that_was_over_while_no_daemon_ran_is_asked_from_then_on() {
    let mut s = Script::new();
    let (_, approval) = s.ask(&client("ada"), "ask-again", "cli");
    let changes = s.out.changes.clone();
    s.restart_after(Ttl::minutes(24 * 60), &changes);
    s.out.clear();
    let now = s.now;
    s.core.tick(now, &mut s.out);
    assert_eq!(asked_again(&s), [(1, AGAIN - 1)]);
    assert_eq!(s.core.state().approvals.get(approval).unwrap().expires_at, now.after(Ttl::minutes(5)));
}

#[test]
fn a_task_that_is_taken_back_takes_its_question_along() {
    let mut s = Script::new();
    let (task, approval) = s.ask(&client("ada"), "ask-again", "cli");
    s.pass(Ttl::minutes(5));
    s.cancel(&client("ada"), &task).unwrap();
    s.pass(Ttl::minutes(60));
    assert_eq!(s.state(&task).status(), Status::Cancelled);
    assert!(s.core.state().approvals.get(approval).is_none() && asked_again(&s).is_empty());
}

#[test]
fn who_waits_for_seconds_is_not_asked_about_again() {
    let mut s = Script::new();
    let verb = AskPermission {
        id: "q1".into(),
        host: "claude".into(),
        tool: "ask-again".into(),
        arguments: Json::null(),
        wait: Ttl::seconds_clamped(20),
        folder: None,
    };
    s.say(&client("ada"), verb).unwrap();
    assert_eq!(s.core.state().approvals.iter().next().unwrap().asks_left(), 0);
    s.pass(Ttl::minutes(5));
    assert!(s.core.state().approvals.iter().next().is_none());
}

fn decided(rules: &RuleSet) -> (Ttl, u32) {
    match rules.decide_request(&Request::default()) {
        Decision::NeedApproval { wait, again, .. } => (wait, again),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_several_rules_the_one_that_asks_least_often_counts() {
    let asks = |name: &str, more: &str| {
        rule(name, "approve", "look", &["when.any = true", "approve.by = [\"human\"]", more])
    };
    let text = policy([asks("a", "approve.ask_again = 4"), asks("b", "approve.ask_again = 2")]);
    let rules = RuleSet::parse(&text, "t").unwrap();
    assert_eq!(decided(&rules).1, 2);
    let said = explain_request(&rules, &Request::default()).to_string();
    assert!(said.contains("(ask human within 600s, asked again 2 times)"), "{said}");
    let silent = policy([asks("a", "approve.ask_again = 4"), asks("b", "approve.expires = \"9m\"")]);
    assert_eq!(decided(&RuleSet::parse(&silent, "t").unwrap()), (Ttl::minutes(9), 0));
}

#[test]
fn a_rule_that_asks_too_often_or_with_nonsense_is_refused_with_its_line() {
    for (value, expected) in [
        ("101", "a question is asked again at most 100 times"),
        ("-1", "ask_again"),
        ("\"often\"", "ask_again"),
        ("1.5", "ask_again"),
    ] {
        let line = format!("approve.ask_again = {value}");
        let lines = ["when.any = true", "approve.by = [\"human\"]", &line];
        let text = policy([rule("a", "approve", "look", &lines)]);
        let problems = RuleSet::parse(&text, "t").unwrap_err().to_string();
        assert!(problems.contains(expected) && problems.contains("t:"), "{value}: {problems}");
    }
    let denies = policy([rule("a", "deny", "no", &["when.any = true", "approve.ask_again = 1"])]);
    assert!(Layer::parse(&denies, "t").unwrap_err().to_string().contains("belongs to approve rules"));
}

#[test]
fn rules_without_the_key_have_the_digest_that_they_had_before_there_was_one() {
    let lines = ["when.any = true", "approve.by = [\"human\"]"];
    let plain = RuleSet::parse(&policy([rule("a", "approve", "look", &lines)]), "t").unwrap();
    let zero = [lines.as_slice(), &["approve.ask_again = 0"]].concat();
    let zero = RuleSet::parse(&policy([rule("a", "approve", "look", &zero)]), "t").unwrap();
    let twice = [lines.as_slice(), &["approve.ask_again = 2"]].concat();
    let twice = RuleSet::parse(&policy([rule("a", "approve", "look", &twice)]), "t").unwrap();
    assert_eq!(plain.digest(), zero.digest());
    assert_ne!(plain.digest(), twice.digest());
}

#[test]
fn the_shipped_rules_wait_for_people_who_are_at_lunch() {
    for name in ["default", "strict", "open"] {
        let text = std::fs::read_to_string(
            crate::support::source::project_root().join(format!("policy/{name}.toml")),
        );
        let layer = Layer::parse(&text.unwrap(), name).unwrap();
        for rule in layer.file().rules.iter().filter(|it| it.id.as_str() == "worker.network") {
            let ask = rule.ask.as_ref().unwrap();
            let whole = u64::from(ask.again + 1) * ask.expires.as_seconds();
            assert_eq!(whole, 2 * 60 * 60, "{name}: two hours in all");
        }
        let permission = layer.file().rules.iter().find(|it| it.id.as_str() == "permission.ask");
        assert!(permission.is_none_or(|it| it.ask.as_ref().is_none_or(|ask| ask.again == 0)), "{name}");
    }
}
