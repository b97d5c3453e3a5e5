//! Damage to a store from outside: files that vanish or are swapped, history that is lost, bytes that are flipped. The
//! daemon reports each where people look, and each has a way on that gives no number twice.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::tasks_of_hosts::{builder, delegate, is, rules, task};
use crate::support::waits::within;
use crate::support::{Daemon, UP, World, eventually};

fn world() -> World {
    let world = World::new();
    world.write("src/a.ts", "export function f() {}\nexport function g() {}\nexport function h() {}\n");
    world
}

/// Grants a lock; its number.
fn fence(world: &World, name: &str) -> u64 {
    world.done("a", &["lock", &format!("src/a.ts:{name}")])["lock"]["fence"].as_u64().unwrap()
}

/// The database and what SQLite keeps beside it.
fn files(state: &Path) -> [PathBuf; 3] {
    ["provost.db", "provost.db-wal", "provost.db-shm"].map(|name| state.join(name))
}

/// Returns a command's output, on either stream, and whether it has succeeded.
fn says(world: &World, args: &[&str]) -> (bool, String) {
    let output = world.command(args).output().unwrap();
    let both = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&both).into_owned())
}

/// The same for what has to succeed.
fn does(world: &World, args: &[&str]) -> String {
    let (done, text) = says(world, args);
    assert!(done, "{args:?}: {text}");
    text
}

/// A start, `status` and `doctor` all refuse with these words, and name the way on.
fn is_told(world: &World, words: &str) {
    for args in [UP, &["up"], &["status"], &["doctor"]] {
        let (done, text) = says(world, args);
        assert!(!done && text.contains(words) && text.contains("provost store restore"), "{args:?}: {text}");
    }
}

fn last_event(world: &World) -> u64 {
    let text = does(world, &["journal", "export"]);
    let last: Value = serde_json::from_str(text.lines().rfind(|it| it.starts_with('{')).unwrap()).unwrap();
    last["seq"].as_u64().unwrap()
}

/// A daemon runs, all is well, and its numbers are above these.
fn goes_on(world: &World, fence_before: u64, event_before: u64) -> Daemon {
    let daemon = world.start();
    let above = fence(world, "h");
    assert!(above > fence_before, "the fence {above} was given before: up to {fence_before}");
    let seen = last_event(world);
    assert!(seen > event_before, "event {seen} was there before: up to {event_before}");
    does(world, &["journal", "verify"]);
    let (_, doctor) = says(world, &["doctor"]);
    assert!(!doctor.contains("BROKEN"), "{doctor}");
    daemon
}

fn taken_away_under_a_daemon(away: impl Fn(&Path)) {
    let world = world();
    let mut daemon = world.start();
    fence(&world, "f");
    away(&world.state_dir_of_one());
    let (code, no) = world.ask("a", &["lock", "src/a.ts:g"]);
    assert!(code != 0 && no.to_string().contains("moved, removed or changed"), "{no}");
    eventually("status tells", || says(&world, &["status"]).1.contains("moved, removed or changed"));
    let (done, doctor) = says(&world, &["doctor"]);
    assert!(!done && doctor.contains("moved, removed or changed"), "{doctor}");
    let (done, text) = says(&world, &["down"]);
    assert!(!done && text.contains("not kept"), "{text}");
    assert!(!daemon.ended().success(), "{}", world.log());
}

#[test]
fn files_that_vanish_under_a_daemon_stop_its_writes_and_its_stop_is_not_clean() {
    taken_away_under_a_daemon(|state| files(state).iter().for_each(|it| fs::remove_file(it).unwrap()));
}

#[test]
fn a_log_that_vanishes_under_a_daemon_stops_its_writes() {
    taken_away_under_a_daemon(|state| fs::remove_file(&files(state)[1]).unwrap());
}

#[test]
fn a_key_of_the_journal_that_vanishes_under_a_daemon_stops_its_writes() {
    taken_away_under_a_daemon(|state| fs::remove_file(state.join("journal.key")).unwrap());
}

#[test]
fn another_file_in_the_databases_place_stops_a_daemons_writes() {
    taken_away_under_a_daemon(|state| {
        let [database, ..] = files(state);
        fs::copy(&database, state.join("other")).unwrap();
        fs::rename(state.join("other"), &database).unwrap();
    });
}

#[test]
fn an_older_copy_written_over_the_database_stops_a_daemons_writes() {
    taken_away_under_a_daemon(|state| {
        let [database, ..] = files(state);
        let old = fs::read(&database).unwrap();
        fs::write(&database, old).unwrap();
    });
}

#[test]
fn what_was_moved_away_and_put_back_is_written_again() {
    let world = world();
    let _daemon = world.start();
    fence(&world, "f");
    let [database, ..] = files(&world.state_dir_of_one());
    let away = database.with_extension("away");
    fs::rename(&database, &away).unwrap();
    assert_ne!(world.ask("a", &["lock", "src/a.ts:g"]).0, 0);
    fs::rename(&away, &database).unwrap();
    eventually("it is written again", || world.ask("a", &["lock", "src/a.ts:g"]).0 == 0);
    assert!(says(&world, &["status"]).0);
}

#[test]
fn another_program_that_opens_and_closes_the_database_takes_no_log_away() {
    let world = world();
    let mut daemon = world.start();
    fence(&world, "f");
    // The daemon has read beside its writer.
    does(&world, &["task", "list"]);
    does(&world, &["log"]);
    let [database, log, _] = files(&world.state_dir_of_one());
    let other = rusqlite::Connection::open(&database).unwrap();
    other.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap();
    drop(other);
    assert!(log.exists(), "the log is the daemon's");
    // What is granted from now on is there after a crash.
    fence(&world, "g");
    daemon.kill();
    let _daemon = world.start();
    let locks = world.done("a", &["lock", "list"])["locks"].to_string();
    assert!(locks.contains("src/a.ts:g"), "{locks}");
}

#[test]
fn a_start_without_the_log_refuses_until_it_is_told_to_go_on() {
    let world = world();
    let mut daemon = world.start();
    fence(&world, "f");
    let (given, seen) = (fence(&world, "g"), last_event(&world));
    daemon.kill();
    let [_, log, shared] = files(&world.state_dir_of_one());
    fs::remove_file(log).unwrap();
    fs::remove_file(shared).unwrap();
    is_told(&world, "newest history is missing");
    does(&world, &["store", "restore", "--as-it-is"]);
    goes_on(&world, given, seen).stop();
    world.start().stop();
    does(&world, &["journal", "verify"]);
}

#[test]
fn an_older_copy_put_back_is_refused_also_where_the_marks_beside_it_are_older_too() {
    let world = world();
    world.start().stop();
    let state = world.state_dir_of_one();
    let old = world.path("old");
    fs::create_dir(&old).unwrap();
    let kept = ["provost.db", "journal.anchor"];
    for name in kept {
        fs::copy(state.join(name), old.join(name)).unwrap();
    }
    let daemon = world.start();
    let (given, seen) = (fence(&world, "g"), last_event(&world));
    daemon.stop();
    for name in kept {
        fs::copy(old.join(name), state.join(name)).unwrap();
    }
    is_told(&world, "newest history is missing");
    does(&world, &["store", "restore", "--as-it-is"]);
    goes_on(&world, given, seen).stop();
}

#[test]
fn a_database_that_is_gone_while_its_key_is_there_is_no_new_beginning() {
    let world = world();
    let daemon = world.start();
    fence(&world, "f");
    let copy = world.path("copy.db");
    does(&world, &["store", "backup", copy.to_str().unwrap()]);
    let (done, text) = says(&world, &["store", "backup", copy.to_str().unwrap()]);
    assert!(!done && text.contains("does not exist"), "no file is written over: {text}");
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a key is in it");
    let (given, seen) = (fence(&world, "g"), last_event(&world));
    let (done, text) = says(&world, &["store", "restore", copy.to_str().unwrap()]);
    assert!(!done && text.contains("provost down"), "not under a daemon: {text}");
    daemon.stop();
    fs::remove_file(&files(&world.state_dir_of_one())[0]).unwrap();
    is_told(&world, "is gone");
    does(&world, &["store", "restore", copy.to_str().unwrap()]);
    let daemon = goes_on(&world, given, seen);
    let locks = world.done("a", &["lock", "list"])["locks"].to_string();
    assert!(locks.contains("src/a.ts:f"), "what the copy had is there: {locks}");
    daemon.stop();
}

#[test]
fn an_attempt_that_was_to_come_when_the_backup_was_made_never_begins() {
    let world = World::new();
    world.configure(&builder("retries = 1\nretry_delay = \"30m\""));
    world.rule(&rules());
    let daemon = world.start();
    assert_eq!(delegate(&world, "again", "exit 1", &[]).0, 0);
    eventually("its attempt has failed", || task(&world, "again")["state"] == "retrying");
    let copy = world.path("copy.db");
    does(&world, &["store", "backup", copy.to_str().unwrap()]);
    daemon.stop();
    does(&world, &["store", "restore", copy.to_str().unwrap()]);
    let daemon = world.start();
    let lost = is(&world, "again", "failed").to_string();
    assert!(lost.contains("a part of the history was lost while the task waited"), "{lost}");
    daemon.stop();
}

#[test]
fn flipped_bytes_are_told_and_there_is_a_way_on_with_nothing() {
    let world = world();
    let daemon = world.start();
    let (given, seen) = (fence(&world, "f"), last_event(&world));
    daemon.stop();
    let [database, ..] = files(&world.state_dir_of_one());
    let mut bytes = fs::read(&database).unwrap();
    for page in [2, 5, 9] {
        bytes[page * 4096] ^= 0xff;
    }
    fs::write(&database, bytes).unwrap();
    is_told(&world, "malformed");
    let (done, text) = says(&world, &["store", "restore", "--as-it-is"]);
    assert!(!done && text.contains("--empty"), "pages that are no pages are not gone on with: {text}");
    assert!(!text.contains("--as-it-is` goes"), "it is not advised to do this again: {text}");
    let told = does(&world, &["store", "restore", "--empty"]);
    assert!(told.contains("damaged-"), "what was there is kept: {told}");
    goes_on(&world, given, seen).stop();
}

#[test]
fn an_event_that_was_changed_is_told_with_the_ways_on_that_there_are() {
    let world = world();
    let daemon = world.start();
    let (given, seen) = (fence(&world, "f"), last_event(&world));
    daemon.stop();
    let [database, ..] = files(&world.state_dir_of_one());
    let other = rusqlite::Connection::open(&database).unwrap();
    let changed = other.execute(
        "UPDATE event SET body = replace(body, 'a.ts', 'b.ts') WHERE seq = ?1",
        [i64::try_from(seen).unwrap()],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(other);
    is_told(&world, "tampered with at event");
    let (done, text) = says(&world, &["store", "restore", "--as-it-is"]);
    assert!(!done && !text.contains("--as-it-is` goes"), "{text}");
    does(&world, &["store", "restore", "--empty"]);
    goes_on(&world, given, seen).stop();
}

#[test]
fn a_journal_whose_database_is_gone_is_not_called_one_that_never_was() {
    let world = world();
    let daemon = world.start();
    daemon.stop();
    fs::remove_file(world.state_dir_of_one().join("provost.db")).unwrap();
    let (done, text) = says(&world, &["journal", "verify"]);
    assert!(!done && text.contains("is gone") && !text.contains("no daemon has run"), "{text}");
}

#[test]
fn a_store_without_anything_that_tells_its_numbers_goes_on_above_all_that_were_given() {
    let world = world();
    let daemon = world.start();
    let (given, seen) = (fence(&world, "f"), last_event(&world));
    daemon.stop();
    let state = world.state_dir_of_one();
    for name in ["provost.db", "journal.anchor"] {
        fs::remove_file(state.join(name)).unwrap();
    }
    fs::remove_dir_all(world.config_dir().join("anchors")).unwrap();
    is_told(&world, "is gone");
    does(&world, &["store", "restore", "--empty"]);
    goes_on(&world, given, seen).stop();
}

#[test]
fn a_tail_that_was_deleted_is_told_and_gone_on_without() {
    let world = world();
    let daemon = world.start();
    fence(&world, "f");
    let (given, seen) = (fence(&world, "g"), last_event(&world));
    daemon.stop();
    let [database, ..] = files(&world.state_dir_of_one());
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute("DELETE FROM event WHERE seq > ?1", [i64::try_from(seen).unwrap() - 2]).unwrap();
    drop(other);
    is_told(&world, "tampered with");
    does(&world, &["store", "restore", "--as-it-is"]);
    goes_on(&world, given, seen).stop();
}

#[test]
fn what_was_owed_when_a_backup_was_made_is_not_done_again_after_it() {
    let world = world();
    world.configure("[limits]\nworkers = 1\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    client.delegate("shell", "while ! test -e go; do sleep 0.1; done", json!({})).1.ack();
    let (queued, reply) = client.delegate("shell", "echo ran >> ran", json!({}));
    reply.ack();
    does(&world, &["token", "mint", "feat-auth"]);
    let copy = world.path("copy.db");
    does(&world, &["store", "backup", copy.to_str().unwrap()]);
    world.write("go", "");
    assert_eq!(client.result_of(&queued)["status"], "completed");
    crate::support::tokens::revoke_of(&world, "feat-auth");
    daemon.stop();
    let told = does(&world, &["store", "restore", copy.to_str().unwrap()]);
    assert!(told.contains("lost") && told.contains("token"), "{told}");

    let daemon = world.start();
    let result = world.client(&daemon, "orch:a").result_of(&queued);
    assert_eq!(result["status"], "failed", "{result}");
    assert_eq!(fs::read_to_string(world.repo().join("ran")).unwrap(), "ran\n", "the worker ran once");
    let listed = does(&world, &["token", "list", "--json"]);
    assert!(!listed.contains("feat-auth"), "it is good again: {listed}");
    daemon.stop();
}

#[test]
fn a_backup_without_marks_goes_on_above_all_that_can_have_been_given() {
    let world = world();
    let daemon = world.start();
    fence(&world, "f");
    let copy = world.path("copy.db");
    does(&world, &["store", "backup", copy.to_str().unwrap()]);
    daemon.stop();
    let state = world.state_dir_of_one();
    fs::remove_file(state.join("journal.anchor")).unwrap();
    fs::remove_dir_all(world.config_dir().join("anchors")).unwrap();
    let since = std::time::SystemTime::UNIX_EPOCH;
    let now = u64::try_from(since.elapsed().unwrap().as_millis()).unwrap();
    does(&world, &["store", "restore", copy.to_str().unwrap()]);
    let daemon = goes_on(&world, now, now);
    // Readers of JSON take numbers as doubles.
    assert!(last_event(&world) < 1 << 53);
    daemon.stop();
}

#[test]
fn a_place_for_marks_that_comes_back_is_written_again_and_meanwhile_it_is_told() {
    let world = world();
    let anchors = world.config_dir().join("anchors");
    fs::create_dir_all(&anchors).unwrap();
    fs::set_permissions(&anchors, fs::Permissions::from_mode(0o500)).unwrap();
    let daemon = world.start();
    fence(&world, "f");
    eventually("status tells", || says(&world, &["status"]).1.contains("cannot be noted"));
    let (_, doctor) = says(&world, &["doctor"]);
    assert!(doctor.contains("cannot be noted"), "{doctor}");
    fs::set_permissions(&anchors, fs::Permissions::from_mode(0o700)).unwrap();
    fence(&world, "g");
    assert_eq!(fs::read_dir(&anchors).unwrap().count(), 1, "the mark is there with the next commit");
    eventually("it is over", || !says(&world, &["status"]).1.contains("cannot be noted"));
    daemon.stop();
}

#[test]
fn a_backup_of_a_store_that_another_program_holds_ends_with_a_sentence() {
    let world = world();
    world.start().stop();
    let [database, ..] = files(&world.state_dir_of_one());
    let other = rusqlite::Connection::open(&database).unwrap();
    other.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let copy = world.path("copy.db");
    let mut child =
        world.command(&["store", "backup", copy.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap();
    within(std::time::Duration::from_secs(40), || child.try_wait().unwrap().is_some());
    let ended = child.try_wait().unwrap();
    let _ = child.kill();
    let text = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(ended.is_some_and(|it| !it.success()) && text.contains("another program"), "{ended:?} {text}");
    assert!(!copy.exists());
}

#[test]
fn a_restore_from_what_has_no_end_or_is_no_database_ends_and_leaves_nothing() {
    let world = world();
    world.start().stop();
    let pipe = world.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = world.path("text");
    fs::write(&text, "SQLite format 3, but none").unwrap();
    for from in ["/dev/zero", "/dev/null", "/", pipe.to_str().unwrap(), text.to_str().unwrap()] {
        let (done, said) = says(&world, &["store", "restore", from]);
        assert!(!done && said.contains("no file that `provost store backup` has written"), "{from}: {said}");
        assert!(!world.state_dir_of_one().join("provost.db.new").exists(), "{from}");
    }
    let _daemon = world.start();
}

#[test]
fn a_backup_of_another_repository_is_taken_only_where_that_is_said() {
    let (world, other) = (world(), world());
    let daemon = other.start();
    fence(&other, "f");
    let copy = other.path("copy.db");
    does(&other, &["store", "backup", copy.to_str().unwrap()]);
    daemon.stop();
    let daemon = world.start();
    fence(&world, "g");
    daemon.stop();
    let (done, said) = says(&world, &["store", "restore", copy.to_str().unwrap()]);
    assert!(!done && said.contains("another journal") && said.contains("--from-elsewhere"), "{said}");
    let daemon = world.start();
    let locks = world.done("a", &["lock", "list"])["locks"].to_string();
    assert!(locks.contains("src/a.ts:g"), "nothing has changed: {locks}");
    daemon.stop();
    does(&world, &["store", "restore", copy.to_str().unwrap(), "--from-elsewhere"]);
    let daemon = world.start();
    let locks = world.done("a", &["lock", "list"])["locks"].to_string();
    assert!(locks.contains("src/a.ts:f") && !locks.contains("src/a.ts:g"), "{locks}");
    daemon.stop();
}

#[test]
fn a_daemon_whose_files_may_not_grow_refuses_and_lives() {
    let world = world();
    let mut limited = std::process::Command::new("bash");
    limited.args(["-c", "ulimit -f 1500; exec \"$0\" \"$@\""]);
    let plain = world.command(crate::support::UP);
    limited.arg(plain.get_program()).args(plain.get_args()).current_dir(world.repo()).env_clear();
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut daemon = world.start_as(limited);
    let long = crate::support::broker_client::feedback("feat-x", &"x".repeat(20_000));
    let refused = (0..200).find_map(|_| {
        let (done, said) = says(&world, &["broker", "publish", &long.to_string()]);
        (!done).then_some(said)
    });
    assert!(refused.is_some(), "the database grows without an end");
    let (_, said) = says(&world, &["status"]);
    assert!(daemon.child.try_wait().unwrap().is_none(), "it was ended by the signal: {said} {}", world.log());
    daemon.kill();
    world.start().stop();
}

#[test]
fn numbers_that_a_restore_has_passed_over_are_told_as_that_and_not_counted_as_events() {
    let world = world();
    let daemon = world.start();
    fence(&world, "f");
    let copy = world.path("copy.db");
    does(&world, &["store", "backup", copy.to_str().unwrap()]);
    fence(&world, "g");
    daemon.stop();
    let lost = does(&world, &["journal", "head"]);
    let lines = |world: &World| does(world, &["journal", "export"]).lines().count() as u64;
    let verified = |world: &World| -> Value {
        serde_json::from_str(&does(world, &["journal", "verify", "--json"])).unwrap()
    };
    assert_eq!(verified(&world)["passed_over"], json!([]));
    let restored: Value =
        serde_json::from_str(&does(&world, &["store", "restore", copy.to_str().unwrap(), "--json"])).unwrap();
    let kept = restored["kept_to"].as_u64().unwrap();
    let daemon = world.start();
    fence(&world, "h");
    let it = verified(&world);
    assert_eq!(it["events"].as_u64(), Some(lines(&world)), "{it}");
    let leap = &it["passed_over"][0];
    assert_eq!((&leap["kept_to"], &leap["from"]), (&json!(kept), &json!(kept + 1)), "{it}");
    assert_eq!(leap["with"], "from a backup", "{it}");
    // The event of the restore is the one behind them.
    let mark = leap["restored_by_event"].as_u64().unwrap();
    assert_eq!(leap["to"].as_u64(), Some(mark - 1), "{it}");
    let exported = does(&world, &["journal", "export"]);
    let event = exported.lines().find(|it| it.contains(&format!("\"seq\":{mark},"))).unwrap();
    assert!(event.contains("store.restored") && event.contains(leap["at"].as_str().unwrap()), "{event}");
    let said = does(&world, &["journal", "verify"]);
    let counted = format!("nothing wrong in {} events", it["events"]);
    let passed = format!(
        "no event has a number from {} to {}: `provost store restore` (from a backup)",
        kept + 1,
        mark - 1
    );
    assert!(said.contains(&counted) && said.contains(&passed), "{said}");
    let (_, doctor) = says(&world, &["doctor"]);
    assert!(doctor.contains(&format!("{} events, unchanged", it["events"])), "{doctor}");
    // What was given up is not called a missing end.
    let (good, said) = says(&world, &["journal", "verify", "--anchor", lost.trim()]);
    assert!(
        !good && said.contains("given up") && said.contains(&format!("event {kept} was the last")),
        "{said}"
    );
    assert!(!said.contains("the end of the journal is missing"), "{said}");
    daemon.stop();
    // A second restore passes more of them over, and one with nothing all.
    does(&world, &["store", "restore", copy.to_str().unwrap()]);
    does(&world, &["store", "restore", "--as-it-is"]);
    let it = verified(&world);
    assert_eq!(it["passed_over"].as_array().unwrap().len(), 2, "{it}");
    assert_eq!(it["events"].as_u64(), Some(lines(&world)), "{it}");
    let (done, said) = says(&world, &["store", "restore", "--empty"]);
    assert!(!done && said.contains("the store is undamaged") && said.contains("--yes"), "{said}");
    assert_eq!(verified(&world), it, "and nothing has changed");
    does(&world, &["store", "restore", "--empty", "--yes"]);
    let it = verified(&world);
    assert_eq!((&it["events"], &it["passed_over"][0]["from"]), (&json!(1), &json!(1)), "{it}");
}
