//! Locks follow files that are renamed: by `git mv`, by `mv`, and with the folder that they are in.

use std::fs;

use serde_json::{Value, json};

use crate::support::wit_client::{Wit, git, world};
use crate::support::wit_world::{lock, started};
use crate::support::{World, eventually};

const CODE: &str = "export function f() { return 1 }\nexport function g() { return 2 }\n";

/// Every lock as `path:symbol holder`, in the order of their grants.
fn held(wit: &Wit) -> Vec<String> {
    let rows = wit.ask("lock.query", json!({}));
    let row =
        |it: &Value| format!("{} {}", it["symbolPath"].as_str().unwrap(), it["sessionId"].as_str().unwrap());
    rows.as_array().unwrap().iter().map(row).collect()
}

/// A repository that has been read, with a file in a folder.
fn at_work() -> (World, crate::support::Daemon, Wit) {
    let world = world();
    world.write("src/a.ts", CODE);
    world.write("src/other.ts", CODE);
    git(&world.repo(), &["add", "src"]);
    let (daemon, wit) = started(&world);
    eventually("the repository is read", || {
        let row = wit.ask("lock.acquire", lock("src/other.ts:g", "reader"));
        !row["warnings"].to_string().contains("INCOMPLETE")
    });
    wit.ask("lock.release", lock("src/other.ts:g", "reader"));
    (world, daemon, wit)
}

#[test]
fn locks_follow_git_mv_with_their_holders_grants_and_queues() {
    let (world, _daemon, wit) = at_work();
    let first = wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    wit.ask("lock.acquire", lock("src/a.ts:g", "B"));
    fs::create_dir(world.repo().join("lib")).unwrap();
    git(&world.repo(), &["mv", "src/a.ts", "lib/b.ts"]);
    eventually("the locks have gone along", || held(&wit) == ["lib/b.ts:f A", "lib/b.ts:g B"]);
    let refused = wit.refused("lock.acquire", lock("lib/b.ts:f", "C"));
    assert_eq!(refused["data"]["heldBy"], "A", "{refused}");
    let again = wit.ask("lock.acquire", lock("lib/b.ts:f", "A"));
    assert_eq!(again["fence"], first["fence"], "the same grant: {again}");
    wit.ask("lock.release", lock("lib/b.ts:f", "A"));
    assert_eq!(held(&wit), ["lib/b.ts:g B"], "its holder gives it up under the new name");
}

#[test]
fn locks_follow_the_folder_and_stay_over_a_restart() {
    let (world, daemon, wit) = at_work();
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    fs::rename(world.repo().join("src"), world.repo().join("core")).unwrap();
    eventually("the lock has gone along", || held(&wit) == ["core/a.ts:f A"]);
    daemon.stop();
    let (_daemon, wit) = started(&world);
    assert_eq!(held(&wit), ["core/a.ts:f A"]);
}

#[test]
fn what_is_no_rename_moves_no_lock() {
    let (world, _daemon, wit) = at_work();
    let at = |name: &str| world.repo().join(name);
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    fs::copy(at("src/a.ts"), at("src/copy.ts")).unwrap();
    fs::remove_file(at("src/a.ts")).unwrap();
    // Written again under another name with the same text: another file.
    world.write("src/new.ts", CODE);
    // A rename that was seen after all of this shows that this was seen as well.
    wit.ask("lock.acquire", lock("src/other.ts:f", "B"));
    fs::rename(at("src/other.ts"), at("src/seen.ts")).unwrap();
    eventually("the rename is seen", || held(&wit).contains(&"src/seen.ts:f B".into()));
    assert_eq!(held(&wit), ["src/a.ts:f A", "src/seen.ts:f B"]);
}

#[test]
fn a_rename_onto_the_lock_of_another_agent_takes_nothing_from_it() {
    let (world, _daemon, wit) = at_work();
    let at = |name: &str| world.repo().join(name);
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    wit.ask("lock.acquire", lock("src/a.ts:g", "A"));
    wit.ask("lock.acquire", lock("src/other.ts:f", "B"));
    fs::rename(at("src/a.ts"), at("src/other.ts")).unwrap();
    eventually("the free one has gone along", || held(&wit).contains(&"src/other.ts:g A".into()));
    let mut held = held(&wit);
    held.sort();
    assert_eq!(held, ["src/a.ts:f A", "src/other.ts:f B", "src/other.ts:g A"]);
}
