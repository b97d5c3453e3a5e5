//! Entries that change while a run of the queue goes on, and entries of others.

use serde_json::json;

use super::{branch, entry, person, queue, repository, tip};
use crate::support::own_api::own;
use crate::support::repositories::well;
use crate::support::rules::{allow, policy};
use crate::support::{World, eventually};

/// A check that waits for a file beside the repository.
fn world() -> World {
    let world =
        repository(&[("a.txt", "one\n"), ("check.sh", "while [ -e wait ]; do sleep 0.05; done\n")], "");
    world.configure("[merge]\nchecks = [\"sleep 2\"]\n");
    branch(&world, "s1", "main", &[("s1", Some("x\n"))], "s1");
    branch(&world, "s2", "main", &[("s2", Some("x\n"))], "s2");
    world
}

fn is_checked(world: &World, branch: &str) {
    eventually("it is checked", || {
        entry(world, branch)["what"].as_str().is_some_and(|it| it.starts_with("check"))
    });
}

#[test]
fn a_branch_that_is_taken_out_during_a_run_is_named_and_counts_as_not_merged() {
    let world = world();
    let _daemon = world.start();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| person(&world, "merge s1 s2", 7));
        is_checked(&world, "s1");
        person(&world, "merge queue remove s2", 0);
        let said = run.join().unwrap();
        assert!(said.contains("s1: merged") && said.contains("s2: taken out"), "{said}");
    });
    assert!(!world.repo().join("s2").exists());
}

#[test]
fn a_branch_of_a_run_that_goes_on_is_not_added_again() {
    let world = world();
    let _daemon = world.start();
    person(&world, "merge queue add s1 s2", 0);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| person(&world, "merge queue run --wait", 0));
        is_checked(&world, "s1");
        for name in ["s1", "s2"] {
            let said = person(&world, &format!("merge queue add {name}"), 4);
            assert!(said.contains("wait for its end"), "{said}");
        }
        let said = run.join().unwrap();
        assert!(said.contains("s1: merged") && said.contains("s2: merged"), "{said}");
    });
    // Afterwards it may be added again, and one that waits is put at its newest commit.
    person(&world, "merge queue add s2", 0);
    person(&world, "merge queue add s2", 0);
    assert_eq!(queue(&world).iter().filter(|it| it["branch"] == "s2").count(), 1);
}

#[test]
fn an_agent_drops_no_entry_of_another_and_none_of_its_passes() {
    let world = world();
    world.rule(&policy([allow("apply", &["when.action = [\"apply\"]"])]));
    let _daemon = world.start();
    person(&world, "merge queue add s1 --with-settings --no-checks", 0);
    let before = entry(&world, "s1");
    let add = |agent: &str| {
        own(&world, ("POST", "/queue-merges"), &[("x-provost-agent", agent)], &json!({ "branches": ["s1"] }))
    };
    let (_, said) = add("coder");
    assert_eq!(said["entries"][0]["number"], before["number"], "{said}");
    assert_eq!(entry(&world, "s1"), before);
    // At another commit it would be another request than the person's.
    branch(&world, "s1", "main", &[("s1", Some("y\n"))], "other");
    let (status, said) = add("coder");
    assert_ne!(status, 200, "{said}");
    assert!(said.to_string().contains("was put into the queue by"), "{said}");
    assert_eq!(entry(&world, "s1"), before);
    let (status, said) = own(
        &world,
        ("POST", "/remove-merges"),
        &[("x-provost-agent", "coder")],
        &json!({ "branches": ["s1"] }),
    );
    assert_eq!(status, 403, "{said}");
    // Its own it puts there again; the person, any.
    let two = json!({ "branches": ["s2"] });
    for _ in 0..2 {
        let (_, said) = own(&world, ("POST", "/queue-merges"), &[("x-provost-agent", "coder")], &two);
        assert_eq!(said["state"], "queued", "{said}");
    }
    person(&world, "merge queue add s1 s2", 0);
    assert_eq!(entry(&world, "s1")["commit"], tip(&world, "s1").as_str());
}

#[test]
fn a_removal_takes_what_waits_for_the_trunk_that_is_meant() {
    let world = world();
    let _daemon = world.start();
    well(&world.repo(), &["branch", "rel", "main"]);
    person(&world, "merge queue add s1", 0);
    person(&world, "merge queue add s1 s2 --into rel", 0);
    let said = person(&world, "merge queue remove s1", 4);
    assert!(said.contains("main") && said.contains("rel") && said.contains("--into"), "{said}");
    assert_eq!(queue(&world).len(), 3);
    person(&world, "merge queue remove s1 --into rel", 0);
    assert_eq!(
        queue(&world).iter().map(|it| it["into"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
        ["main", "rel"]
    );
    // Where it waits for one alone, that one is meant.
    person(&world, "merge queue remove s2", 0);
    person(&world, "merge queue run --wait", 0);
    let said = person(&world, "merge queue remove s1", 4);
    assert!(said.contains("does not wait"), "{said}");
    assert_eq!(entry(&world, "s1")["state"], "merged");
}
