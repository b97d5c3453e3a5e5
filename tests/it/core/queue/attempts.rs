//! Attempts: a failed run begins again, as often as its worker's entry, a rule and its asker say.

use super::*;
use crate::support::script::BOUNDED;
use provost::base::limits::RETRIES_MAX;
use provost::domain::{Answer, Reply, Retries};

fn retrying(most: u32, lost: bool) -> Settings {
    with(Retries { most, lost, ..Retries::default() })
}

fn with(retries: Retries) -> Settings {
    let mut settings = settings();
    settings.workers.get_mut(&named("cli")).unwrap().retries = retries;
    settings
}

/// Asks for a task with so many further attempts.
fn asking(
    s: &mut Script,
    goal: &str,
    worker: &str,
    retries: u32,
) -> (TaskId, Result<Answer<Reply>, Refusal>) {
    let placement = Placement { retries: Some(retries), ..Placement::default() }.unless_usual();
    let order = Delegate { placement, ..s.order(goal, worker) };
    let task = order.task.clone();
    (task, s.say(&client("ada"), order))
}

/// How often a task begins whose runs all fail.
fn attempts(s: &mut Script, task: &TaskId) -> u32 {
    let mut begun = 0;
    while !s.task(task).state.is_finished() {
        if !spawned(s).is_empty() {
            attempt(s, task, 1);
            begun += 1;
        } else {
            s.pass(Ttl::minutes(60));
        }
    }
    begun
}

/// Begins and ends the run that was handed over last.
fn attempt(s: &mut Script, task: &TaskId, code: i64) {
    let (effect, spawned) = spawned(s).remove(0);
    assert_eq!(spawned, *task);
    begin(s, effect, task);
    end(s, effect, task, code);
}

#[test]
fn a_failed_run_begins_again_after_a_delay_that_grows_and_as_often_as_may_be() {
    let mut s = Script::with(retrying(2, false));
    let ada = client("ada");
    let task = s.delegate(&ada, "do", "cli");
    attempt(&mut s, &task, 3);
    assert!(matches!(s.state(&task), TaskState::Retrying { .. }));
    s.pass(Ttl::seconds_clamped(9));
    assert!(spawned(&s).is_empty(), "before its time");
    s.pass(Ttl::seconds_clamped(1));
    attempt(&mut s, &task, 4);
    s.pass(Ttl::seconds_clamped(19));
    assert!(spawned(&s).is_empty(), "the delay grows");
    s.pass(Ttl::seconds_clamped(1));
    attempt(&mut s, &task, 5);
    let done = s.task(&task);
    assert_eq!(done.state.status(), Status::Failed, "three attempts, and no more");
    let numbers: Vec<u64> = done
        .notes
        .iter()
        .map(|it| it.report.metadata.as_ref().unwrap().value()["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3], "each has a note of its own");
    assert_eq!(last_words(&s.receive_all(&ada)).len(), 1, "one last word");
}

#[test]
fn an_attempt_that_succeeds_is_the_last_and_those_who_wait_begin() {
    let mut s = Script::with(retrying(5, false));
    let ada = client("ada");
    let task = s.delegate(&ada, "do", "cli");
    let first: Vec<_> = s.out.effects.clone();
    let next = waits(&mut s, &ada, &[&task]);
    s.out.effects = first;
    attempt(&mut s, &task, 1);
    let failed =
        |it: &&EventKind| matches!(it, EventKind::Queue(QueueEvent::AttemptFailed { attempt: 1, .. }));
    assert!(s.events().iter().any(failed), "{:?}", s.events());
    assert_eq!(s.state(&next), TaskState::Waiting, "a failed attempt is no end");
    s.pass(Ttl::seconds_clamped(10));
    let begins =
        |it: &&EventKind| matches!(it, EventKind::Queue(QueueEvent::AttemptBegins { attempt: 2, .. }));
    assert!(s.events().iter().any(begins), "{:?}", s.events());
    attempt(&mut s, &task, 0);
    assert_eq!(s.state(&task).status(), Status::Completed);
    assert!(s.state(&next).is_queued());
}

#[test]
fn only_an_exit_code_begins_again_and_lost_runs_and_late_ones_where_the_entry_says_so() {
    let time_over = Failure::RunTimeout { timeout_s: 3 };
    let jail = Failure::JailRefused { why: "no namespaces".into() };
    let not_started = Failure::WorkerFailed { why: "it is not in the configuration any more".into() };
    for (failure, lost, timeouts, again) in [
        (time_over.clone(), true, false, false),
        (time_over, false, true, true),
        (jail, true, true, false),
        (not_started, true, true, false),
        (Failure::Lost, false, true, false),
        (Failure::Lost, true, false, true),
    ] {
        let mut s = Script::with(with(Retries { most: 1, lost, timeouts, ..Retries::default() }));
        let task = s.delegate(&client("ada"), "do", "cli");
        let (effect, _) = spawned(&s).remove(0);
        begin(&mut s, effect, &task);
        ended(&mut s, effect, &task, Some(failure.clone()), Report::default());
        assert_eq!(matches!(s.state(&task), TaskState::Retrying { .. }), again, "{failure:?}");
    }
}

#[test]
fn a_cancel_ends_all_further_attempts() {
    let mut s = Script::with(retrying(5, true));
    let ada = client("ada");
    let task = s.delegate(&ada, "do", "cli");
    attempt(&mut s, &task, 1);
    s.cancel(&ada, &task).unwrap();
    assert!(s.out.effects.is_empty());
    s.pass(Ttl::minutes(120));
    assert!(spawned(&s).is_empty());
    assert_eq!(s.state(&task).status(), Status::Cancelled);
}

#[test]
fn each_attempt_is_a_use_of_a_rate_limited_rule() {
    let mut s = Script::with(retrying(5, false));
    let order = s.order("rated", "cli");
    let task = order.task.clone();
    s.say(&client("ada"), order).unwrap();
    let mut attempts = 0;
    while !s.state(&task).is_finished() {
        attempt(&mut s, &task, 1);
        attempts += 1;
        if !s.state(&task).is_finished() {
            let until = s.core.state().tasks.get(&task).unwrap().state;
            let TaskState::Retrying { at } = until else { panic!("{until:?}") };
            let wait = Ttl::from_millis(at.since_ms(s.now)).unwrap();
            s.pass(wait);
        }
    }
    assert_eq!(attempts, crate::support::script::RATED as usize, "the rule allows no more within its window");
}

#[test]
fn time_that_jumps_begins_an_attempt_once() {
    let mut s = Script::with(retrying(1, false));
    let task = s.delegate(&client("ada"), "do", "cli");
    attempt(&mut s, &task, 1);
    // A day at once, as after a suspended night.
    s.pass(Ttl::minutes(23 * 60));
    assert_eq!(spawned(&s).len(), 1);
    s.pass(Ttl::seconds_clamped(10));
    assert!(spawned(&s).is_empty());
}

#[test]
fn an_asker_has_the_attempts_that_it_asks_for_within_those_of_the_entry() {
    let mut s = Script::with(retrying(2, false));
    for (asked, begun) in [(0, 1), (1, 2), (2, 3)] {
        let (task, said) = asking(&mut s, "do", "cli", asked);
        assert!(matches!(said, Ok(Answer::Done(_))), "{said:?}");
        assert_eq!(attempts(&mut s, &task), begun, "{asked} were asked for");
    }
    let (_, said) = asking(&mut s, "do", "cli", 3);
    let Ok(Answer::Denied(denial)) = said else { panic!("{said:?}") };
    assert!(
        denial.reason.contains("3 further attempts") && denial.reason.contains("worker cli is 2"),
        "{denial:?}"
    );
    assert!(spawned(&s).is_empty());
    let plain = s.delegate(&client("ada"), "do", "cli");
    assert_eq!(attempts(&mut s, &plain), 3, "without a word of its asker");
}

#[test]
fn a_rule_bounds_attempts_before_the_entry_does() {
    for (entry, asked, begun) in
        [(0, Some(BOUNDED), BOUNDED + 1), (0, None, 1), (5, None, BOUNDED + 1), (5, Some(1), 2)]
    {
        let mut s = Script::with(retrying(entry, false));
        let task = match asked {
            Some(asked) => asking(&mut s, "bounded", "cli", asked).0,
            None => s.delegate(&client("ada"), "bounded", "cli"),
        };
        assert_eq!(attempts(&mut s, &task), begun, "entry {entry}, asked {asked:?}");
        let (_, said) = asking(&mut s, "bounded", "cli", BOUNDED + 1);
        let Ok(Answer::Denied(denial)) = said else { panic!("{said:?}") };
        assert!(denial.reason.contains("`limit.retries` of rule bounded is 3"), "{denial:?}");
    }
}

#[test]
fn no_number_of_a_configuration_goes_beyond_the_bound() {
    // The entry of another host is what that host says.
    let mut s = Script::with(retrying(1_000, false));
    let task = s.delegate(&client("ada"), "do", "cli");
    assert_eq!(attempts(&mut s, &task), RETRIES_MAX + 1);
}

#[test]
fn a_worker_that_starts_by_itself_has_no_further_attempts() {
    let mut s = Script::with(retrying(2, true));
    let (_, said) = asking(&mut s, "do", "bob", 1);
    assert!(matches!(&said, Err(Refusal::NotPlaced { why }) if why.contains("starts by itself")), "{said:?}");
    let (_, said) = asking(&mut s, "do", "bob", 0);
    assert!(matches!(said, Ok(Answer::Done(_))), "{said:?}");
}

#[test]
fn another_number_of_attempts_is_another_request() {
    let mut s = Script::with(retrying(2, false));
    let (task, _) = asking(&mut s, "do", "cli", 1);
    let placement = |retries| Placement { retries: Some(retries), ..Placement::default() }.unless_usual();
    let order =
        |s: &Script, retries| Delegate { placement: placement(retries), ..s.task(&task).order.clone() };
    let (same, other) = (order(&s, 1), order(&s, 2));
    assert!(matches!(s.say(&client("ada"), same), Ok(Answer::Done(_))));
    assert_eq!(s.say(&client("ada"), other), Err(Refusal::TaskExists));
}

#[test]
fn what_a_person_denies_has_no_attempt() {
    let mut s = Script::with(retrying(5, true));
    let (task, approval) = s.ask(&client("ada"), "ask", "cli");
    s.answer(&person("pat"), approval, Verdict::Denied).unwrap();
    s.pass(Ttl::minutes(120));
    assert!(spawned(&s).is_empty());
    assert_eq!(s.state(&task).status(), Status::Failed);
}
