//! Changes that are not wanted, that are not there yet, and that are not there any more.

use std::fs;

use serde_json::json;

use super::parts::freely;
use super::{done, kept, printed, ran, task, text, world};
use crate::support::own_api::own;
use crate::support::terminal::{at_the_terminal, typed_at_the_terminal};
use crate::support::{World, eventually};

fn discarded_events(world: &World) -> usize {
    let log = printed(world, &["--json", "log", "--limit", "1000"]);
    log.lines().filter(|line| line.contains("\"changes_discarded\"")).count()
}

#[test]
fn what_is_discarded_is_gone_from_the_disk_and_the_journal_says_so_once() {
    let world = world(&[("a.txt", "old\n"), ("b.txt", "old\n")], "");
    world.rule(&freely());
    let daemon = world.start();
    let id = done(&world, "echo new > a.txt; echo new > b.txt; exit 3");
    ran(&world, &["apply", &id, "a.txt"], 0);
    assert_eq!(kept(&world), 1);
    let said = ran(&world, &["discard", &id, "--yes"], 0);
    assert!(said.contains("discarded: 2 changed files"), "{said}");
    assert_eq!(discarded_events(&world), 1);
    eventually("its files are gone", || kept(&world) == 0);
    let said = ran(&world, &["discard", &id, "--yes"], 0);
    assert!(said.contains("discarded before: 2 changed files"), "once more is the same: {said}");
    assert_eq!(discarded_events(&world), 1);
    for args in [&["task", "diff", &id][..], &["apply", &id], &["apply", &id, "b.txt"]] {
        let said = ran(&world, args, 4);
        assert!(said.contains("what this task has changed was discarded"), "{args:?}: {said}");
    }
    for args in [&["task", "list"][..], &["task", "show", &id]] {
        let said = ran(&world, args, 0);
        assert!(said.contains("changes discarded") && !said.contains("provost apply"), "{args:?}: {said}");
    }
    assert_eq!(task(&world, &id)["changes"]["next"], json!([]));
    // What was taken in stays, and can still be taken back, also by a later daemon.
    assert_eq!((text(&world, "a.txt").as_str(), text(&world, "b.txt").as_str()), ("new\n", "old\n"));
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(task(&world, &id)["changes"]["state"], "discarded");
    ran(&world, &["undo", "1"], 0);
    assert_eq!(text(&world, "a.txt"), "old\n");
    ran(&world, &["journal", "verify"], 0);
}

#[test]
fn a_person_is_asked_before_changes_are_discarded_for_good() {
    let world = world(&[("a.txt", "old\n")], "");
    let _daemon = world.start();
    let id = done(&world, "echo new > a.txt");
    let said = ran(&world, &["discard", &id], 4);
    assert!(said.contains("there is no person to ask") && said.contains("--yes"), "{said}");
    let no = typed_at_the_terminal(&world, &format!("discard {id}"), "n");
    let shown = String::from_utf8_lossy(&no.stdout).into_owned();
    assert!(!no.status.success() && shown.contains("a.txt | ") && shown.contains("gone for good"), "{shown}");
    assert_eq!(kept(&world), 1);
    let yes = typed_at_the_terminal(&world, &format!("discard {id}"), "y");
    assert!(yes.status.success(), "{yes:?}");
    assert_eq!(discarded_events(&world), 1);
    eventually("its files are gone", || kept(&world) == 0);
}

#[test]
fn who_may_read_a_task_may_see_its_changes_and_only_its_asker_or_its_user_discards_them() {
    let world = world(&[("a.txt", "old\n")], "");
    let _daemon = world.start();
    let order =
        json!({ "task": "t-ada", "worker": "coder", "goal": "echo new > a.txt", "watch_patterns": [] });
    let (status, answer) = own(&world, ("POST", "/delegate"), &[("x-provost-agent", "ada")], &order);
    assert_eq!(status, 200, "{answer}");
    ran(&world, &["task", "show", "t-ada", "--wait"], 0);
    let ask =
        |agent: &str, path: &str, body| own(&world, ("POST", path), &[("x-provost-agent", agent)], &body);
    // The task's result says all of it to who asks already.
    let read =
        |agent: &str| own(&world, ("GET", "/task?id=t-ada"), &[("x-provost-agent", agent)], &json!(null)).0;
    for agent in ["ada", "bob"] {
        let (status, files) = ask(agent, "/preview-task", json!({ "task": "t-ada" }));
        assert_eq!((status, read(agent)), (200, 200), "{files}");
        assert!(files[0]["diff"].as_str().unwrap().contains("+new"), "{files}");
        let (_, waits) = ask(agent, "/apply-task", json!({ "task": "t-ada" }));
        assert_eq!(waits["state"], "awaiting", "{waits}");
    }
    let (status, answer) = ask("bob", "/discard-task", json!({ "task": "t-ada" }));
    assert_eq!((status, &answer["error"]), (403, &json!("task_not_yours")), "{answer}");
    assert_eq!(kept(&world), 1);
    let (status, answer) = ask("ada", "/discard-task", json!({ "task": "t-ada" }));
    assert_eq!((status, &answer["files"]), (200, &json!(1)), "{answer}");
    eventually("its files are gone", || kept(&world) == 0);
    assert_eq!(text(&world, "a.txt"), "old\n");
    for path in ["/preview-task", "/apply-task", "/discard-task"] {
        for task in ["", "x\u{0}", "nowhere"] {
            let (status, answer) = ask("ada", path, json!({ "task": task }));
            assert!(matches!(status, 400 | 404), "{path} {task:?}: {answer}");
        }
    }
}

#[test]
fn before_a_run_has_ended_there_is_nothing_to_be_shown() {
    let world = world(&[("a.txt", "old\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let script = "echo new > a.txt; echo up; sleep 1000";
    let id = ran(&world, &["delegate", "--worker", "coder", script], 0).lines().next().unwrap().to_owned();
    let copies = world.state_dir().with_extension("copies");
    let says_so =
        |folder: fs::DirEntry| fs::read_to_string(folder.path().join("a.txt")).is_ok_and(|it| it == "new\n");
    eventually("its work", || fs::read_dir(&copies).into_iter().flatten().flatten().any(says_so));
    for args in [&["task", "diff", &id][..], &["apply", &id], &["apply", &id, "a.txt"]] {
        let said = ran(&world, args, 4);
        assert!(said.contains("has not ended (running)") && said.contains("--wait"), "{args:?}: {said}");
    }
    let said = ran(&world, &["discard", &id, "--yes"], 4);
    assert!(said.contains("running"), "{said}");
    ran(&world, &["task", "cancel", &id], 0);
    // Changes of a run that was cancelled are kept as soon as it has ended.
    eventually("its changes", || task(&world, &id)["changes"]["state"] == "kept");
    assert!(printed(&world, &["task", "diff", &id]).contains("+new"));
    ran(&world, &["apply", &id], 0);
    assert_eq!(text(&world, "a.txt"), "new\n");
    let none = done(&world, "true");
    let said = ran(&world, &["task", "diff", &none], 1);
    assert!(said.contains("nothing is kept of what task"), "{said}");
    assert!(ran(&world, &["discard", &none, "--yes"], 1).contains("nothing is kept"));
}

#[test]
fn changes_that_the_daemon_has_removed_for_their_age_say_so() {
    let world = world(&[("a.txt", "old\n")], "\n[changes]\nruns = 1\ndays = 3\n");
    world.rule(&freely());
    let _daemon = world.start();
    let id = done(&world, "echo new > a.txt");
    let newer = done(&world, "echo newer > a.txt");
    // The newest run alone has its changes kept, by the setting.
    eventually("the old ones go", || kept(&world) == 1);
    for args in [&["task", "diff", &id][..], &["apply", &id]] {
        let said = ran(&world, args, 4);
        assert!(
            said.contains("is not kept any more") && said.contains("1 runs are, for 3 days"),
            "{args:?}: {said}"
        );
        assert!(said.contains("changes.days"), "{said}");
    }
    let shown = ran(&world, &["task", "show", &id], 0);
    assert!(shown.contains("changes removed") && !shown.contains("provost apply"), "{shown}");
    // One file of what is kept is damaged: an error, and nothing is written.
    let folder = fs::read_dir(world.state_dir().join("artifacts")).unwrap().next().unwrap().unwrap().path();
    fs::write(folder.join("kept.json"), "{").unwrap();
    ran(&world, &["apply", &newer], 1);
    assert_eq!(text(&world, "a.txt"), "old\n");
    let person = at_the_terminal(&world, &format!("discard {newer} --yes"));
    assert!(!person.status.success(), "{person:?}");
}

#[test]
fn a_worker_whose_copy_is_deleted_says_so_and_nothing_is_asked_about_it() {
    let more = "[workers.thrown]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\n\
                parse_mode = \"text\"\ncopy = true\n";
    let world = world(&[("a.txt", "old\n")], more);
    world.rule(&freely());
    let _daemon = world.start();
    let said =
        ran(&world, &["delegate", "echo new > a.txt", "--worker", "thrown", "--task", "gone", "--wait"], 0);
    assert!(said.contains("a copy that is deleted afterwards"), "{said}");
    assert_eq!(text(&world, "a.txt"), "old\n");
    let said = ran(&world, &["task", "diff", "gone"], 1);
    assert!(said.contains("with `copy = true` they are deleted"), "{said}");
    // Without --yes, and at no terminal: that nothing is kept is found before there is a question.
    let said = ran(&world, &["discard", "gone"], 1);
    assert!(said.contains("with `copy = true` they are deleted") && !said.contains("no person"), "{said}");
}
