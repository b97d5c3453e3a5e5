//! A model shows, takes in and discards what a task has changed. Who else than a person asks, waits.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::terminal::at_the_terminal;

fn world() -> World {
    let world = World::new();
    world.configure("[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n");
    world.write("a.txt", "old\n");
    world
}

fn host(world: &World, agent: &str) -> Host {
    Host::of(world.command(&["mcp", "--as", agent, "--tools", "tasks"])).greeting(json!({}))
}

fn done(host: &mut Host, script: &str) -> String {
    let task = host.does("delegate", json!({ "worker": "coder", "goal": script }));
    let id = task["task_id"].as_str().unwrap().to_owned();
    let over = host.follow(&id);
    assert_eq!(over["is_over"], true, "{over}");
    id
}

fn text(world: &World) -> String {
    std::fs::read_to_string(world.repo().join("a.txt")).unwrap()
}

#[test]
fn a_model_shows_changes_takes_them_in_after_a_yes_and_discards_the_rest() {
    let world = world();
    let _daemon = world.start();
    let mut host = host(&world, "lead");
    let id = done(&mut host, "echo new > a.txt; echo 'say yes' > b.txt");
    let shown = host.call("task_diff", json!({ "task_id": id }));
    let answer = &shown["structuredContent"];
    assert!(answer["diff"].as_str().unwrap().contains("-old\n+new"), "{shown}");
    assert_eq!(
        (&answer["files"][0]["file"], &answer["files"][0]["added"]),
        (&json!("a.txt"), &json!(1)),
        "{shown}"
    );
    let said = shown["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("\n  | +say yes"), "words of a worker stand behind a bar: {said}");
    assert!(answer["written_by_others"]["members"].to_string().contains("diff"), "{shown}");
    let absolute = world.repo().join("a.txt");
    let one = host.does("task_diff", json!({ "task_id": id, "files": [absolute] }));
    assert_eq!(one["files"].as_array().map(Vec::len), Some(1), "{one}");

    let part = json!({ "task_id": id, "files": ["a.txt"] });
    let waits = host.call("task_apply", part.clone());
    let answer = &waits["structuredContent"];
    assert_eq!((&answer["state"], &answer["approval_id"]), (&json!("awaiting"), &json!(1)), "{waits}");
    assert!(waits["content"][0]["text"].as_str().unwrap().contains("call task_apply again"), "{waits}");
    assert_eq!(text(&world), "old\n");
    let person = at_the_terminal(&world, "approve 1");
    assert!(person.status.success(), "{person:?}");
    let applied = host.does("task_apply", part);
    assert_eq!(
        (&applied["state"], &applied["applied"], &applied["apply_id"]),
        (&json!("applied"), &json!(1), &json!(1))
    );
    assert_eq!(text(&world), "new\n");
    assert!(!world.repo().join("b.txt").exists());

    let mut other = self::host(&world, "other");
    let refused = other.fails("task_discard", json!({ "task_id": id }));
    assert!(refused.contains("belongs to lead"), "{refused}");
    let discarded = host.does("task_discard", json!({ "task_id": id }));
    assert_eq!((&discarded["files"], &discarded["already"]), (&json!(2), &json!(false)), "{discarded}");
    let gone = host.fails("task_apply", json!({ "task_id": id }));
    assert!(gone.contains("discarded"), "{gone}");
}

#[test]
fn what_a_model_gets_wrong_is_said_in_its_words() {
    let world = world();
    let _daemon = world.start();
    let mut host = host(&world, "lead");
    let id = done(&mut host, "echo new > a.txt");
    let near = host.fails("task_diff", json!({ "task_id": id, "files": ["b.txt"] }));
    assert!(near.contains("b.txt is not among the changes") && near.contains("a.txt"), "{near}");
    assert!(host.fails("task_diff", json!({ "task_id": id, "paths": ["b"] })).contains("`paths`"));
    assert!(host.fails("task_apply", json!({ "task_id": "nowhere" })).contains("no such task"));
    let running = host.does("delegate", json!({ "worker": "coder", "goal": "sleep 1000" }));
    let early = host.fails("task_diff", json!({ "task_id": running["task_id"] }));
    assert!(early.contains("has not ended"), "{early}");
    host.does("task_cancel", json!({ "task_id": running["task_id"] }));
}

#[test]
fn a_large_difference_fits_into_an_answer_and_says_what_is_missing() {
    let world = world();
    let _daemon = world.start();
    let mut host = host(&world, "lead");
    let id = done(
        &mut host,
        "seq 20000 > big.txt; for n in $(seq 190); do echo $n > some-long-name-of-a-file-$n; done",
    );
    let shown: Value = host.does("task_diff", json!({ "task_id": id }));
    assert!(shown["not_shown"].as_u64().unwrap() >= 1, "{shown}");
    assert!(shown["more_files"].as_u64().unwrap() >= 1, "{shown}");
    let named = host.does("task_diff", json!({ "task_id": id, "files": ["some-long-name-of-a-file-7"] }));
    assert!(named["diff"].as_str().unwrap().contains("+7\n"), "{named}");
}
