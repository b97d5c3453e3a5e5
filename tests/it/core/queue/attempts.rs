//! Attempts: a failed run begins again, as often as its worker's entry says.

use super::*;
use provost::domain::Retries;

fn retrying(most: u32, lost: bool) -> Settings {
    let mut settings = settings();
    settings.workers.get_mut(&named("cli")).unwrap().retries =
        Retries { most, delay: Ttl::seconds_clamped(10), lost };
    settings
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
fn only_an_exit_code_begins_again_and_a_lost_run_where_the_entry_says_so() {
    let time_over = Failure::RunTimeout { timeout_s: 3 };
    let jail = Failure::JailRefused { why: "no namespaces".into() };
    let not_started = Failure::WorkerFailed { why: "it is not in the configuration any more".into() };
    for (failure, lost, again) in [
        (time_over, true, false),
        (jail, true, false),
        (not_started, true, false),
        (Failure::Lost, false, false),
        (Failure::Lost, true, true),
    ] {
        let mut s = Script::with(retrying(1, lost));
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
