//! What commands say: sentences instead of records, times of one clock, exit codes that mean something, and errors that name
//! their subject.

use super::*;

fn numbers(log: &str) -> Vec<u64> {
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter_map(|it| it["seq"].as_u64()).collect()
}

#[test]
fn the_log_ends_after_as_many_events_as_asked_for() {
    let desk = Desk::with_daemon();
    for name in ["worker:a", "worker:b", "worker:c"] {
        desk.run(&["key", "add", name]).ends(DONE);
    }
    let asked = ["log", "--json", "--after", "1", "--limit", "2"];
    assert_eq!(numbers(&desk.run(&asked).ends(DONE).out), [2, 3]);
    assert!(numbers(&desk.run(&asked[..4]).ends(DONE).out).len() > 2, "without a number all are shown");
    desk.run(&["down"]).ends(DONE);
    assert_eq!(numbers(&desk.run(&asked).ends(DONE).out), [2, 3], "the same without a daemon");
}

#[test]
fn the_log_has_times_and_the_names_of_rights() {
    let desk = Desk::with_daemon();
    desk.run(&["token", "mint", "feat-auth", "--scopes", "read,join"]).ends(DONE);
    let mut log = desk.command(&["log"]);
    let log: Said = log.env("TZ", "<+0530>-5:30").output().unwrap().into();
    let log = log.ends(DONE).out;
    let minted = log.lines().find(|it| it.contains("token_minted")).unwrap_or_else(|| panic!("{log}"));
    assert!(minted.contains("scopes=read,join"), "{minted}");
    assert!(minted.contains("expires_at=20") && minted.matches("+05:30").count() == 2, "{minted}");
}

#[test]
fn tokens_keys_and_refusals_have_the_time_of_the_lists() {
    let desk = Desk::with_daemon();
    desk.run(&["token", "mint", "feat-auth"]).ends(DONE);
    desk.run(&["key", "add", "worker:gpu"]).ends(DONE);
    desk.run(&["lock", "@db:test", "--as", "x1"]).ends(DONE);
    for (line, code) in [("token list", DONE), ("key list", DONE), ("lock @db:test --as x2", 5)] {
        let args: Vec<&str> = line.split(' ').collect();
        let said: Said = desk.command(&args).env("TZ", "<+0530>-5:30").output().unwrap().into();
        let said = said.ends(code);
        assert!((said.out + &said.err).contains("+05:30"), "{line}: {}", said.err);
    }
    let mut refused = desk.command(&["lock", "@db:test", "--as", "x2", "--json"]);
    let said: Said = refused.env("TZ", "<+0530>-5:30").output().unwrap().into();
    let said = said.ends(5);
    assert!(!said.err.contains("+05:30"), "a program reads the time as the daemon has it: {}", said.err);
}
