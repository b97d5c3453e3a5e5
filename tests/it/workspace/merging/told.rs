//! The texts for a person and an agent about a branch that was set aside, and about one that waits.

use serde_json::json;

use super::symbols::{inbox, signed};
use super::{branch, entry, person, repository};
use crate::support::rules::ASK;
use crate::support::{World, eventually};

fn clashing(world: &World) {
    branch(world, "first", "main", &[("a.txt", Some("two\n"))], "first");
    person(world, "merge first --no-checks", 0);
}

#[test]
fn a_name_in_a_trailer_is_told_only_if_there_is_such_an_agent() {
    let world = repository(&[("a.txt", "one\n")], "");
    let _daemon = world.start();
    inbox(&world, "known");
    branch(&world, "forged", "main", &[("a.txt", Some("three\n"))], &signed("forged", "nobody-known"));
    branch(&world, "named", "main", &[("a.txt", Some("four\n"))], &signed("named", "known"));
    clashing(&world);
    let said = person(&world, "merge forged named", 7);
    assert!(!said.contains("returned to nobody-known"), "{said}");
    assert!(said.contains("name nobody-known, which is no agent that the daemon knows"), "{said}");
    assert!(said.contains("named: set aside (text), returned to known"), "{said}");
    // What the person reads is not said to the agent, and the other way round.
    assert!(!said.contains("You are told"), "{said}");
    assert!(said.contains("The daemon has told known, the owner by the trailers of its commits"), "{said}");
    assert_eq!(entry(&world, "forged")["told"], serde_json::Value::Null);
    assert!(inbox(&world, "known").contains("cannot prove"));
}

#[test]
fn a_check_that_waits_for_a_person_is_named_and_a_denied_one_is_the_persons() {
    let world = repository(&[("a.txt", "one\n")], "[merge]\nchecks = [\"true\"]\n");
    world.rule(ASK);
    let _daemon = world.start();
    for name in ["yes", "no"] {
        branch(&world, name, "main", &[(name, Some("x\n"))], &signed(name, "known"));
    }
    inbox(&world, "known");
    std::thread::scope(|scope| {
        for (name, answer, code) in [("yes", "approve", 0), ("no", "deny --reason not-now", 7)] {
            let line = format!("merge {name}");
            let world = &world;
            let run = scope.spawn(move || person(world, &line, code));
            eventually("it waits for an answer", || {
                entry(world, name)["what"].as_str().is_some_and(|it| it.contains("waits for approval"))
            });
            let what = entry(world, name)["what"].as_str().unwrap().to_owned();
            let number = what
                .split("provost approve ")
                .nth(1)
                .and_then(|it| it.split(|c: char| !c.is_ascii_digit()).next());
            person(world, &format!("{answer} {}", number.unwrap_or_else(|| panic!("{what}"))), 0);
            let said = run.join().unwrap();
            assert!(said.contains("waits for approval"), "{said}");
        }
    });
    let denied = entry(&world, "no");
    assert_eq!((&denied["what"], &denied["told"]), (&json!("check_denied"), &json!(null)), "{denied}");
    let why = denied["why"].as_str().unwrap();
    assert!(why.contains("not-now") && !why.contains("Rebase"), "{why}");
}

#[test]
fn a_clone_with_a_part_of_the_history_says_how_to_get_the_rest() {
    let world = World::new();
    let (repo, origin) = (world.repo(), world.path("origin"));
    std::fs::create_dir(&origin).unwrap();
    let well = crate::support::repositories::well;
    well(&origin, &["init", "-q", "-b", "main"]);
    for n in 0..3 {
        std::fs::write(origin.join("a.txt"), format!("{n}\n")).unwrap();
        well(&origin, &["add", "-A"]);
        well(&origin, &["commit", "-qm", "more"]);
    }
    well(&origin, &["branch", "old", "main~2"]);
    let url = format!("file://{}", origin.display());
    well(&repo, &["symbolic-ref", "HEAD", "refs/heads/start"]);
    well(&repo, &["fetch", "-q", "--depth", "1", &url, "main:main", "old:old"]);
    well(&repo, &["checkout", "-q", "main"]);
    for (key, value) in [("user.name", "Pat"), ("user.email", "pat@example.invalid")] {
        well(&repo, &["config", key, value]);
    }
    let _daemon = world.start();
    let said = person(&world, "merge old", 7);
    assert!(said.contains("set aside (shallow)") && said.contains("git fetch --unshallow"), "{said}");
    assert!(!said.contains("unrelated") && !said.contains("Rebase"), "{said}");
    let said = person(&world, "merge old --preview", 0);
    assert!(said.contains("git fetch --unshallow"), "{said}");
}
