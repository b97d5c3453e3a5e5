//! No frame is believed twice, and what is not remembered is not believed.

use provost::auth::Rejected;
use provost::auth::replay::ReplayGuard;
use provost::base::Timestamp;

const START: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp((START + seconds) * 1000)
}

fn guard(capacity: usize) -> ReplayGuard {
    ReplayGuard::new(at(-10_000), 300, capacity)
}

fn ts(seconds: i64) -> u64 {
    at(seconds).seconds()
}

#[test]
fn a_nonce_is_good_once_per_sender() {
    let guard = guard(100);
    assert_eq!(guard.check("a", ts(0), "n", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(0), "n", at(0)), Err(Rejected::Replayed));
    assert_eq!(guard.check("a", ts(0), "n", at(299)), Err(Rejected::Replayed));
    assert_eq!(guard.check("b", ts(0), "n", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(0), "m", at(0)), Ok(()));
    // Names are not run together.
    assert_eq!(guard.check("ab", ts(0), "c", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(0), "bc", at(0)), Ok(()));
}

#[test]
fn the_window_has_two_ends() {
    let guard = guard(100);
    assert_eq!(guard.check("a", ts(-300), "1", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(-301), "2", at(0)), Err(Rejected::TooOld));
    assert_eq!(guard.check("a", ts(300), "3", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(301), "4", at(0)), Err(Rejected::TooNew));
    assert_eq!(guard.check("a", 0, "5", at(0)), Err(Rejected::TooOld));
    assert_eq!(guard.check("a", u64::MAX, "6", at(0)), Err(Rejected::TooNew));
}

#[test]
fn frames_from_before_the_start_are_refused_by_whole_seconds() {
    let started = Timestamp(START * 1000 + 900);
    let guard = ReplayGuard::new(started, 300, 100);
    let now = Timestamp(START * 1000 + 950);
    assert_eq!(guard.check("a", ts(-1), "1", now), Err(Rejected::BeforeStart));
    assert_eq!(guard.check("a", ts(0), "2", now), Ok(()));
}

#[test]
fn what_has_left_the_window_is_forgotten_and_stays_refused() {
    let guard = guard(100);
    for second in 0..50 {
        guard.check("a", ts(second), "n", at(second)).unwrap();
    }
    assert_eq!(guard.remembered(), 50);
    guard.check("a", ts(340), "n", at(340)).unwrap();
    assert_eq!(guard.remembered(), 11);
    // Even when the clock is set back.
    assert_eq!(guard.check("a", ts(20), "n", at(30)), Err(Rejected::Forgotten));
}

#[test]
fn a_full_memory_drops_the_oldest_second_and_refuses_what_is_as_old() {
    let guard = guard(4);
    for (second, nonce) in [(0, "1"), (0, "2"), (1, "3"), (2, "4")] {
        guard.check("a", ts(second), nonce, at(2)).unwrap();
    }
    assert_eq!(guard.check("a", ts(2), "5", at(2)), Ok(()));
    assert_eq!(guard.remembered(), 3);
    assert_eq!(guard.check("a", ts(0), "1", at(2)), Err(Rejected::Forgotten));
    assert_eq!(guard.check("a", ts(0), "new", at(2)), Err(Rejected::Forgotten));
    assert_eq!(guard.check("a", ts(1), "3", at(2)), Err(Rejected::Replayed));
}

#[test]
fn a_memory_that_is_full_within_one_second_refuses() {
    let guard = guard(3);
    for nonce in ["1", "2", "3"] {
        guard.check("a", ts(0), nonce, at(0)).unwrap();
    }
    assert_eq!(guard.check("a", ts(0), "4", at(0)), Err(Rejected::TooMany));
    // A frame that is older than all that is remembered does not push it out.
    assert_eq!(guard.check("a", ts(-1), "5", at(0)), Err(Rejected::TooMany));
    assert_eq!(guard.check("a", ts(0), "1", at(0)), Err(Rejected::Replayed));
    assert_eq!(guard.check("a", ts(1), "4", at(1)), Ok(()));
}

#[test]
fn who_dates_frames_ahead_cannot_lock_out_the_others() {
    let guard = guard(100);
    for n in 0..50 {
        guard.check("honest", ts(0), &n.to_string(), at(0)).unwrap();
    }
    // All of it at once, and again in every second.
    let flood = |now: i64| {
        let ahead =
            |n: &i64| guard.check("hostile", ts(now + 1 + n % 300), &format!("{now} {n}"), at(now)).is_ok();
        (0..1000).filter(ahead).count()
    };
    assert_eq!(flood(0), 13);
    for now in 0..300 {
        assert_eq!(guard.check("honest", ts(now), "next", at(now)), Ok(()), "{now}");
        flood(now);
        assert_eq!(guard.check("honest", ts(now), "next", at(now)), Err(Rejected::Replayed), "{now}");
    }
}

#[test]
fn a_clock_that_was_ahead_does_not_shut_the_door_for_ever() {
    let guard = guard(3);
    let year = 365 * 86_400;
    for nonce in ["1", "2", "3"] {
        guard.check("a", ts(year), nonce, at(year)).unwrap();
    }
    assert_eq!(guard.check("a", ts(0), "4", at(0)), Ok(()));
    assert_eq!(guard.check("a", ts(0), "4", at(0)), Err(Rejected::Replayed));
    assert_eq!(guard.check("a", ts(year), "1", at(year)), Err(Rejected::Forgotten));
}

#[test]
fn refused_frames_leave_no_trace() {
    let guard = guard(10);
    assert!(guard.check("a", ts(-1000), "n", at(0)).is_err());
    assert!(guard.check("a", ts(1000), "n", at(0)).is_err());
    assert_eq!(guard.remembered(), 0);
    assert_eq!(guard.check("a", ts(0), "n", at(0)), Ok(()));
}

#[test]
fn of_many_threads_with_one_frame_one_is_believed() {
    let guard = guard(1000);
    for round in 0..50 {
        let nonce = format!("n{round}");
        let believed: usize = std::thread::scope(|scope| {
            let check = || usize::from(guard.check("a", ts(0), &nonce, at(0)).is_ok());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(check)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(believed, 1);
    }
}

#[test]
fn memory_never_exceeds_its_bound() {
    let guard = guard(500);
    let mut state = 1u64;
    for step in 0..20_000i64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let now = step / 20;
        let second = now + (state >> 33) as i64 % 600 - 300;
        let accepted = guard.check("a", ts(second.max(0)), &step.to_string(), at(now));
        assert!(guard.remembered() <= 500);
        if accepted.is_ok() {
            let again = guard.check("a", ts(second.max(0)), &step.to_string(), at(now));
            assert!(matches!(again, Err(Rejected::Replayed | Rejected::Forgotten)));
        }
    }
}

#[test]
fn a_frame_dated_ahead_is_not_believed_again_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ahead");
    let begin = |now: i64| ReplayGuard::new(at(now), 300, 100).remembering(&file).unwrap();
    let first = begin(0);
    assert_eq!(first.check("a", ts(200), "n", at(0)), Ok(()));
    assert_eq!(first.check("a", ts(0), "m", at(0)), Ok(()));
    drop(first);
    let second = begin(5);
    assert_eq!(second.check("a", ts(200), "n", at(5)), Err(Rejected::Replayed));
    assert_eq!(second.check("a", ts(0), "m", at(5)), Err(Rejected::BeforeStart));
    assert_eq!(second.check("a", ts(200), "other", at(5)), Ok(()));
    assert_eq!(second.check("b", ts(200), "n", at(5)), Ok(()));
    drop(second);
    // Also when its time has come, and over any number of starts.
    let third = begin(150);
    for now in [150, 200, 450] {
        for (from, nonce) in [("a", "n"), ("a", "other"), ("b", "n")] {
            assert_eq!(third.check(from, ts(200), nonce, at(now)), Err(Rejected::Replayed), "{from} {nonce}");
        }
    }
    drop(third);
    // What is over is not kept.
    drop(begin(1_000));
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(left.lines().all(|line| line.ends_with(" -")), "{left}");
}

#[test]
fn a_frame_is_not_believed_again_after_a_start_with_a_clock_that_was_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ahead");
    let begin = |now: i64| ReplayGuard::new(at(now), 300, 100).remembering(&file).unwrap();
    let first = begin(100);
    assert_eq!(first.check("a", ts(200), "n", at(200)), Ok(()));
    drop(first);
    let second = begin(0);
    assert_eq!(second.check("a", ts(200), "n", at(0)), Err(Rejected::BeforeStart));
    assert_eq!(second.check("a", ts(200), "n", at(250)), Err(Rejected::BeforeStart));
    assert_eq!(second.check("a", ts(201), "m", at(201)), Ok(()));
    drop(second);
    // Nor within the same second.
    assert_eq!(begin(201).check("a", ts(201), "m", at(201)), Err(Rejected::BeforeStart));
}

#[test]
fn a_start_with_a_clock_that_is_ahead_forgets_no_frame() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ahead");
    let begin = |now: i64| ReplayGuard::new(at(now), 300, 100).remembering(&file).unwrap();
    assert_eq!(begin(0).check("a", ts(200), "n", at(0)), Ok(()));
    // Beyond the second of the frame, and beyond its window.
    for ahead in [300, 5_000] {
        drop(begin(ahead));
        let next = begin(5);
        let refused = next.check("a", ts(200), "n", at(5));
        assert!(matches!(refused, Err(Rejected::Replayed | Rejected::BeforeStart)), "{ahead}: {refused:?}");
    }
}

#[test]
fn the_frames_dated_ahead_that_are_kept_have_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ahead");
    let guard = ReplayGuard::new(at(0), 300, 1 << 18).remembering(&file).unwrap();
    let mut refused = 0;
    for second in 0..20 {
        for n in 0..500 {
            let nonce = format!("{second} {n}");
            refused += usize::from(guard.check("a", ts(second + 1), &nonce, at(second)).is_err());
        }
    }
    assert!(refused > 0, "more than the bound were kept");
    assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20);
    // Those who date their frames as they should are not hindered.
    assert_eq!(guard.check("b", ts(20), "n", at(20)), Ok(()));
}
