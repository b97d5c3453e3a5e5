//! Homes of agents' sessions: for how long they are kept, and which of too many go. Their age is the time that daemons have seen pass.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use provost::base::limits::SESSIONS_KEPT_MAX;
use provost::domain::artifact::shelf;
use serde_json::{Value, json};

use super::started;
use super::steering::{begun, over};
use crate::support::World;
use crate::support::waits::until_some;

const YEAR_S: u64 = 365 * 24 * 60 * 60;

fn homes(world: &World) -> PathBuf {
    world.state_dir().with_extension("sessions")
}

fn kept(world: &World) -> BTreeSet<String> {
    let entries = fs::read_dir(homes(world)).unwrap().map(Result::unwrap);
    entries.map(|it| it.file_name().into_string().unwrap()).collect()
}

fn home_of(world: &World, task: &str) -> PathBuf {
    homes(world).join(shelf(&task.parse().unwrap()))
}

/// Has a task begin and end a session of its own, or go on with that of an earlier task. Then old homes are removed.
fn runs(world: &World, task: &str, earlier: Option<&str>) {
    let used = home_of(world, earlier.unwrap_or(task)).join("used");
    let before = fs::metadata(&used).and_then(|it| it.modified()).ok();
    match earlier {
        None => begun(world, task, "say ok"),
        Some(earlier) => {
            let words = ["delegate", "--continue", earlier, "say again", "--task", task];
            let output = world.command(&words).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
    assert_eq!(over(world, task)["state"], "completed");
    until_some("the session is let go", || {
        let now = fs::metadata(&used).and_then(|it| it.modified()).ok();
        (now.is_some() && now != before).then_some(())
    });
}

fn set_used(home: &Path, at: SystemTime) {
    fs::File::options().append(true).create(true).open(home.join("used")).unwrap().set_modified(at).unwrap();
}

/// Changes the record of the ages, as time or another daemon would.
fn change_ages(world: &World, change: impl FnOnce(&mut Value)) {
    let path = world.state_dir().with_extension("session-ages");
    let mut seen: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut seen);
    fs::write(&path, seen.to_string()).unwrap();
}

fn passes(seen: &mut Value, seconds: u64) {
    seen["passed"] = json!(seen["passed"].as_u64().unwrap() + seconds);
}

#[test]
fn a_clock_that_was_set_removes_no_home_of_a_session_and_the_time_that_has_passed_does() {
    let (world, _daemon) = started("resumes", "", &[]);
    runs(&world, "t1", None);
    runs(&world, "t2", None);
    let (first, second) = (home_of(&world, "t1"), home_of(&world, "t2"));
    // As if the clock had been set ahead by decades since then.
    set_used(&first, SystemTime::UNIX_EPOCH);
    runs(&world, "t3", None);
    assert!(first.is_dir() && second.is_dir(), "{:?}", kept(&world));
    // A session that is used again is young, and one that is not goes when its time is up.
    change_ages(&world, |seen| passes(seen, YEAR_S));
    runs(&world, "t4", Some("t2"));
    until_some("what is old is removed", || (!first.exists()).then_some(()));
    assert!(second.join("home").is_dir(), "{:?}", kept(&world));
    assert!(!home_of(&world, "t3").exists(), "{:?}", kept(&world));
}

#[test]
fn of_too_many_sessions_the_one_that_is_kept_longest_goes_first_and_then_the_one_used_longest_ago() {
    let (world, _daemon) = started("resumes", "", &[]);
    runs(&world, "t1", None);
    let now = SystemTime::now();
    let name = |number: usize| format!("s{number:02}");
    for number in 0..SESSIONS_KEPT_MAX {
        let home = homes(&world).join(name(number));
        fs::create_dir_all(home.join("home")).unwrap();
        set_used(&home, now - Duration::from_secs(3_600 * (1 + number as u64)));
    }
    change_ages(&world, |seen| passes(seen, 3_600));
    // All others are first seen in the same moment, so the order of their last uses counts for them.
    runs(&world, "t2", None);
    let last = SESSIONS_KEPT_MAX - 1;
    until_some("there are as many as may be", || (kept(&world).len() == SESSIONS_KEPT_MAX).then_some(()));
    let all = kept(&world);
    assert!(home_of(&world, "t2").is_dir() && !home_of(&world, "t1").exists(), "{all:?}");
    assert!(!all.contains(&name(last)) && all.contains(&name(last - 1)) && all.contains(&name(0)), "{all:?}");

    // The longer kept one goes before one that was used earlier: a clock that was set back has written later times.
    change_ages(&world, |seen| {
        passes(seen, 3_600);
        let passed = seen["passed"].clone();
        let young = |(session, first): (&String, &mut Value)| {
            if !session.starts_with(&name(0)) {
                *first = passed.clone();
            }
        };
        seen["first"].as_object_mut().unwrap().iter_mut().for_each(young);
    });
    runs(&world, "t3", None);
    until_some("one goes", || (!kept(&world).contains(&name(0))).then_some(()));
    let all = kept(&world);
    assert!(all.len() == SESSIONS_KEPT_MAX && all.contains(&name(last - 1)), "{all:?}");
}
