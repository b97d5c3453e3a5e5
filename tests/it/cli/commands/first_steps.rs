//! The first things that people do, and the first that go wrong: what is misspelt, copied from the README, or
//! gone.

use std::path::Path;
use std::time::Duration;

use crate::support::waits::within;

use super::*;

fn until(what: &str, condition: impl Fn() -> bool) {
    assert!(within(Duration::from_secs(60), condition), "{what} has not happened");
}

/// The parts of the README that are configuration.
fn blocks_of_the_readme() -> Vec<String> {
    let text = fs::read_to_string("README.md").unwrap();
    let blocks = text.split("```toml\n").skip(1).map(|it| it.split("```").next().unwrap().to_owned());
    blocks
        .filter(|it| it.starts_with("[workers") || it.starts_with("[hooks") || it.starts_with("[[agent]]"))
        .collect()
}

#[test]
fn what_the_readme_has_written_down_is_a_configuration() {
    let blocks = blocks_of_the_readme();
    assert!(blocks.len() >= 3, "{blocks:?}");
    let desk = Desk::new();
    fs::create_dir_all(desk.config("")).unwrap();
    fs::write(desk.config("provost.toml"), blocks.concat()).unwrap();
    let said = desk.run(&["doctor", "--json"]).json();
    let settings: Vec<&Value> =
        said["findings"].as_array().unwrap().iter().filter(|it| it["what"] == "settings").collect();
    assert!(settings.iter().all(|it| it["health"] == "fine"), "{settings:?}");
    for block in blocks.iter().filter(|it| it.contains("type = \"cli\"")) {
        assert!(block.contains("parse_mode = \"text\""), "programs that print text would fail: {block}");
    }
}

#[test]
fn what_the_readme_has_written_down_goes_below_what_init_has_written() {
    let desk = Desk::new();
    desk.run(&["config", "init"]).ends(DONE);
    let mut written = fs::read_to_string(desk.config("provost.toml")).unwrap();
    for block in blocks_of_the_readme() {
        written.push_str(&block);
        fs::write(desk.config("provost.toml"), &written).unwrap();
        let said = desk.run(&["doctor", "--json"]).json();
        let findings = said["findings"].as_array().unwrap().iter();
        let settings: Vec<&Value> = findings.filter(|it| it["what"] == "settings").collect();
        assert!(settings.iter().all(|it| it["health"] == "fine"), "{block}: {settings:?}");
    }
    desk.run(&["policy", "explain", "--worker", "unittest"]).ends(DONE);
}

#[test]
fn what_is_there_twice_is_named_with_the_line_of_the_first() {
    let desk = Desk::new();
    desk.run(&["config", "init"]).ends(DONE);
    let written = fs::read_to_string(desk.config("provost.toml")).unwrap();
    let written = format!("{written}\n[hooks.notify]\ntimeout = \"2m\"\n");
    let line = 1 + written.lines().position(|it| it == "[hooks.notify]").unwrap();
    let again = format!("{written}\n[hooks.notify]\ncommand = \"true\"\n");
    fs::write(desk.config("provost.toml"), again).unwrap();
    let said = desk.run(&["policy", "explain"]).ends(FAILED).err;
    assert!(said.contains(&format!("`[hooks.notify]` is there twice, first in line {line}")), "{said}");
    let twice = "# mine\nhooks.notify.timeout = \"1m\"\n\n[hooks.notify]\ncommand = \"true\"\n";
    fs::write(desk.config("provost.toml"), twice).unwrap();
    let said = desk.run(&["policy", "explain"]).ends(FAILED).err;
    assert!(said.contains("begun already, by `hooks.notify.timeout` in line 2"), "{said}");
    let twice = "[limits]\nworkers = 2\n\n# more\nworkers = 3\n";
    fs::write(desk.config("provost.toml"), twice).unwrap();
    let said = desk.run(&["policy", "explain"]).ends(FAILED).err;
    assert!(
        said.contains("provost.toml:5") && said.contains("`workers` is set twice, first in line 2"),
        "{said}"
    );
}

#[test]
fn nobody_waits_for_a_worker_that_there_is_none_of() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["delegate", "true", "--worker", "shel", "--wait"]).ends(FAILED).err;
    assert!(said.contains("no worker shel is configured") && said.contains("did you mean shell?"), "{said}");
    assert!(said.contains("try: --worker shell"), "{said}");
    let said = desk.run(&["delegate", "true", "--worker", "somebody-else", "--wait"]).ends(FAILED).err;
    assert!(said.contains("configured: shell") && !said.contains("did you mean"), "{said}");
    assert_eq!(
        desk.run(&["status", "--json"]).ends(DONE).json()["active"],
        0,
        "and nothing is left to be done"
    );
}

#[test]
fn a_failure_names_its_values() {
    let desk = Desk::with_daemon();
    let said = desk.run(&["delegate", "sleep 600", "--timeout", "1s", "--wait"]).ends(124);
    assert!(said.err.contains("It ran longer than the 1 s that it had."), "{}", said.err);
}

#[test]
fn names_of_people_and_of_the_daemon_get_no_key() {
    let desk = Desk::new();
    desk.run(&["config", "init"]).ends(DONE);
    for name in ["human", "user:ada", "provost", "orchestrator"] {
        let said = desk.run(&["key", "add", name]).ends(FAILED).err;
        assert!(said.contains("no client may speak under it"), "{said}");
    }
    assert!(!desk.run(&["key", "list"]).ends(DONE).out.contains("human"));
    desk.run(&["key", "add", "client:a"]).ends(DONE);
}

#[test]
fn what_is_wrong_with_the_journal_is_said_in_words() {
    let desk = Desk::with_daemon();
    desk.run(&["delegate", "true", "--wait"]).ends(DONE);
    let about = desk.run(&["status", "--json"]).ends(DONE).json();
    desk.run(&["down"]).ends(DONE);
    let folder = Path::new(about["state_dir"].as_str().unwrap());
    let db = rusqlite::Connection::open(folder.join("provost.db")).unwrap();
    db.execute("DELETE FROM event WHERE seq = 2", []).unwrap();
    drop(db);
    let said = desk.run(&["doctor"]).ends(FAILED).out;
    assert!(said.contains("the journal has been tampered with at event 2"), "{said}");
    assert!(!said.contains("Tampered") && !said.contains("first_bad_seq"), "{said}");
}

#[test]
fn rules_that_were_looked_over_say_from_when_they_count() {
    let desk = Desk::new();
    desk.run(&["config", "init", "--policy", "default"]).ends(DONE);
    assert!(desk.run(&["policy", "check"]).ends(DONE).out.contains("no daemon runs"));
    desk.run(&["up"]).ends(DONE);
    assert!(desk.run(&["policy", "check"]).ends(DONE).out.contains("they are in force"));
    let rules = fs::read_to_string(desk.config("policy.toml")).unwrap();
    let more =
        "\n[[rule]]\nid = \"mine\"\ndecision = \"deny\"\nreason = \"not here\"\nwhen.worker = [\"nobody\"]\n";
    fs::write(desk.config("policy.toml"), rules + more).unwrap();
    let said = desk.run(&["policy", "check"]).ends(DONE).out;
    assert!(
        said.contains("not in force yet: the daemon looks every 2 s") || said.contains("in force"),
        "{said}"
    );
    until("the rules count", || desk.run(&["policy", "check"]).out.contains("they are in force"));
}

#[test]
fn a_daemon_ends_whose_repository_was_deleted() {
    let desk = Desk::with_daemon();
    let pid = desk.run(&["status", "--json"]).ends(DONE).json()["pid"].to_string();
    let runs = || Path::new("/proc").join(&pid).exists();
    assert!(runs());
    fs::remove_dir_all(desk.path("repo")).unwrap();
    until("the daemon ends", || !runs());
    fs::create_dir(desk.path("repo")).unwrap();
}

#[test]
fn a_daemon_ends_in_whose_repositorys_place_another_one_is() {
    let desk = Desk::with_daemon();
    let pid = desk.run(&["status", "--json"]).ends(DONE).json()["pid"].to_string();
    let runs = || Path::new("/proc").join(&pid).exists();
    // It looks at the folder every two seconds.
    crate::support::waits::stays("the daemon", std::time::Duration::from_secs(6), runs);
    fs::rename(desk.path("repo"), desk.path("old")).unwrap();
    let cloned = std::process::Command::new("git")
        .arg("clone")
        .arg("--quiet")
        .arg(desk.path("old"))
        .arg(desk.path("repo"))
        .status();
    assert!(cloned.unwrap().success());
    until("the daemon ends", || !runs());
}
