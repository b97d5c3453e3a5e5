//! The queue: who may put a branch there, what a restart leaves of it, and that a bad branch holds no other
//! up.

use serde_json::{Value, json};

use super::symbols::{inbox, signed};
use super::{branch, entry, person, queue, repository, tip};
use crate::support::own_api::own;
use crate::support::repositories::well;
use crate::support::{World, eventually};

fn world() -> World {
    repository(&[("a.txt", "one\n"), ("b.txt", "one\n")], "[merge]\nchecks = [\"sh check.sh\"]\n")
}

fn ask(world: &World, agent: &str, path: &str, body: Value) -> (u16, Value) {
    own(world, ("POST", path), &[("x-provost-agent", agent)], &body)
}

#[test]
fn the_queue_outlives_the_daemon_and_a_bad_branch_holds_no_other_up() {
    let world = world();
    let daemon = world.start();
    branch(&world, "main2", "main", &[("check.sh", Some("test ! -e broken\n"))], "check");
    person(&world, "merge main2 --no-checks", 0);
    branch(&world, "bad", "main", &[("broken", Some("\n"))], &signed("bad", "coder"));
    branch(&world, "good", "main", &[("a.txt", Some("two\n"))], "good");
    branch(&world, "clash", "main", &[("a.txt", Some("three\n"))], &signed("clash", "other"));
    branch(&world, "last", "main", &[("b.txt", Some("two\n"))], "last");
    let said = person(&world, "merge queue add bad good clash last", 0);
    assert!(said.contains("waits to be merged into main"), "{said}");
    person(&world, "merge queue remove last", 0);
    person(&world, "merge queue add last", 0);
    daemon.stop();
    let _daemon = world.start();
    assert_eq!(queue(&world).iter().filter(|it| it["state"] == "waiting").count(), 4);
    for agent in ["coder", "other"] {
        inbox(&world, agent);
    }
    let said = person(&world, "merge queue run --wait", 7);
    for part in [
        "good: merged",
        "last: merged",
        "bad: set aside (check), returned to coder",
        "clash: set aside (text), returned to other",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(inbox(&world, "coder").contains("the check \\\"sh check.sh\\\" fails on the merged tree"));
    assert!(inbox(&world, "other").contains("a.txt"));
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
    // Once it is mended, it is added again, and only what waits is merged.
    branch(&world, "clash", "main", &[("a.txt", Some("three\n"))], "clash");
    person(&world, "merge queue add clash", 0);
    assert_eq!(entry(&world, "clash")["state"], "waiting");
    let said = person(&world, "merge queue run --wait --json", 0);
    assert!(said.contains("\"merged\"") && !said.contains("bad"), "{said}");
    assert_eq!(well(&world.repo(), &["show", "main:a.txt"]), "three\n");
}

#[test]
fn an_agent_adds_to_the_queue_after_a_yes_and_never_moves_the_trunk() {
    let world = world();
    let _daemon = world.start();
    branch(&world, "work", "main", &[("a.txt", Some("two\n"))], "work");
    let before = tip(&world, "main");
    let order = json!({ "branches": ["work"] });
    let (status, said) = ask(&world, "coder", "/queue-merges", order.clone());
    assert_eq!((status, &said["state"]), (200, &json!("awaiting")), "{said}");
    let approval = said["approval"].as_u64().unwrap();
    assert!(queue(&world).is_empty());
    let shown = person(&world, &format!("approve {approval}"), 0);
    assert!(!shown.contains("error"), "{shown}");
    let (_, said) = ask(&world, "coder", "/queue-merges", order);
    assert_eq!(said["state"], "queued", "{said}");
    assert_eq!(entry(&world, "work")["by"], "coder");
    let (status, said) = ask(&world, "coder", "/run-merges", json!({}));
    assert_eq!(status, 403, "{said}");
    for passes in ["settings", "held", "symbols", "unchecked"] {
        let order = json!({ "branches": ["work"], "passes": [passes] });
        let (_, said) = ask(&world, "coder", "/queue-merges", order);
        assert_ne!(said["state"], "queued", "{passes}: {said}");
    }
    let (status, said) = ask(&world, "other", "/remove-merges", json!({ "branches": ["work"] }));
    assert_eq!(status, 403, "{said}");
    assert_eq!(tip(&world, "main"), before);
    let (status, said) = ask(&world, "coder", "/remove-merges", json!({ "branches": ["work"] }));
    assert_eq!((status, &said["count"]), (200, &json!(1)), "{said}");
}

#[test]
fn what_runs_later_asks_for_a_person_who_says_so() {
    let world = world();
    let _daemon = world.start();
    let settings = [
        (".claude/settings.json", Some("{}\n")),
        (".github/workflows/x.yml", Some("on: push\n")),
        ("a.txt", Some("two\n")),
    ];
    branch(&world, "later", "main", &settings, "later");
    let said = person(&world, "merge later --preview", 0);
    assert!(said.contains("runs later: .claude/settings.json (asks for --with-settings)"), "{said}");
    assert!(said.contains("runs later: .github/workflows/x.yml"), "{said}");
    let said = person(&world, "merge later --no-checks", 7);
    assert!(said.contains("set aside (settings)"), "{said}");
    assert!(!world.repo().join(".claude").exists());
    person(&world, "merge later --no-checks --with-settings", 0);
    assert!(world.repo().join(".claude/settings.json").exists());
}

#[test]
fn a_branch_that_has_moved_since_it_was_added_is_looked_at_again() {
    let world = world();
    let _daemon = world.start();
    branch(&world, "moves", "main", &[("a.txt", Some("two\n"))], "one");
    branch(&world, "goes", "main", &[("b.txt", Some("two\n"))], "two");
    person(&world, "merge queue add moves goes --no-checks", 0);
    branch(&world, "moves", "main", &[("a.txt", Some("three\n"))], "other");
    well(&world.repo(), &["branch", "-q", "-D", "goes"]);
    let said = person(&world, "merge queue run --wait", 7);
    assert!(
        said.contains("moves: set aside (branch_moved)") && said.contains("goes: set aside (branch_gone)"),
        "{said}"
    );
    assert_eq!(well(&world.repo(), &["show", "main:a.txt"]), "one\n");
}

#[test]
fn two_runs_at_once_follow_each_other() {
    let world = repository(&[("a.txt", "one\n")], "");
    let _daemon = world.start();
    for n in 0..6 {
        branch(&world, &format!("b{n}"), "main", &[(&format!("f{n}"), Some("x\n"))], "work");
    }
    std::thread::scope(|scope| {
        let runs = ["merge b0 b1 b2", "merge b3 b4 b5"].map(|line| scope.spawn(|| person(&world, line, 0)));
        for run in runs {
            run.join().unwrap();
        }
    });
    eventually("all are merged", || queue(&world).iter().all(|it| it["state"] == "merged"));
    assert_eq!((0..6).filter(|n| world.repo().join(format!("f{n}")).exists()).count(), 6);
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
}
