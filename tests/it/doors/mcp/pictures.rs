//! Pictures of the screen, over MCP: who gets one, and how much of it is shown right away.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::World;
use crate::support::mcp_host::Host;
use crate::support::rules::{policy, rule};
use crate::support::screens::{PIXEL, X11, pixel, size, start};

const ON: &str = "[screenshot]\nenabled = true\nbackend = \"scrot\"\n";

fn rules(decision: &str) -> String {
    let by = if decision == "approve" { "approve.by = [\"human\"]" } else { "" };
    policy([rule("see", decision, "a test", &["when.action = [\"screenshot\"]", by])])
}

/// The picture in an answer, as a file.
fn embedded(world: &World, result: &Value) -> std::path::PathBuf {
    let block = result["content"].as_array().unwrap().iter().find(|it| it["type"] == "image").unwrap();
    assert_eq!(block["mimeType"], "image/png");
    let bytes = base64::engine::general_purpose::STANDARD.decode(block["data"].as_str().unwrap()).unwrap();
    let at = world.path("shown.png");
    std::fs::write(&at, bytes).unwrap();
    at
}

#[test]
fn a_small_picture_is_shown_and_the_whole_one_is_a_file() {
    let screen = X11::start();
    let world = World::new();
    world.configure(ON);
    world.rule(&rules("allow"));
    let _daemon = start(&world, &screen.display, None);
    let (mut one, mut other) = (Host::old(&world, "one"), Host::new_era(&world, "other"));
    let result = one.call("screenshot", json!({ "thumb_width": 160 }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["state"], "completed", "{result}");
    let path = answer["path"].as_str().unwrap();
    assert_eq!(size(path.as_ref()), "PNG 320x240");
    let link = result["content"].as_array().unwrap().iter().find(|it| it["type"] == "resource_link").unwrap();
    assert_eq!(link["uri"], format!("file://{path}"));
    let small = embedded(&world, &result);
    assert_eq!((size(&small), pixel(&small)), ("PNG 160x120".into(), PIXEL));
    let again = one.call("screenshot", json!({ "task_id": answer["task_id"], "thumb_width": 5_000 }));
    assert_eq!(size(&embedded(&world, &again)), "PNG 320x240", "it is never made larger");
    let task = answer["task_id"].clone();
    assert!(!other.fails("screenshot", json!({ "task_id": task })).is_empty(), "it is its asker's alone");

    let devit = one.call("devit_screenshot", json!({ "thumb_width": 80 }));
    let image = &devit["structuredContent"]["image"];
    assert_eq!(
        (&image["embedded"], &image["inline"], &image["format"], &image["thumbnail"]["width"]),
        (&json!(true), &json!(true), &json!("png"), &json!(80))
    );
    assert_eq!(size(&embedded(&world, &devit)), "PNG 80x60");
    for wanted in [json!({ "inline": false }), json!({ "max_inline_kb": 0 })] {
        let devit = one.call("devit_screenshot", wanted);
        assert_eq!(devit["structuredContent"]["image"]["embedded"], false);
        assert!(devit["content"].as_array().unwrap().iter().all(|it| it["type"] == "text"));
    }
    std::fs::write(path, b"something else").unwrap();
    let swapped = one.does("screenshot", json!({ "task_id": task }));
    assert!(swapped["not_shown"].as_str().unwrap().contains("no longer the picture"), "{swapped}");
}

#[test]
fn a_picture_that_needs_a_yes_says_so_and_is_refused_where_rules_say_no() {
    let world = World::new();
    world.configure(ON);
    world.rule(&rules("approve"));
    let daemon = world.start();
    let mut host = Host::old(&world, "one");
    let waits = host.does("screenshot", json!({ "max_wait_s": 0 }));
    assert_eq!((&waits["state"], waits["approval_id"].is_number()), (&json!("awaiting"), true));
    let devit = host.call("devit_screenshot", json!({}));
    assert!(devit["isError"] == true && devit["content"][0]["text"].as_str().unwrap().contains("approval"));
    drop(host);
    daemon.stop();
    world.rule(&rules("deny"));
    let daemon = world.start();
    let mut host = Host::old(&world, "two");
    assert!(host.fails("screenshot", json!({})).contains("denied by rule test.see"));
    drop(host);
    daemon.stop();
    world.configure("[screenshot]\nenabled = false\n");
    let _daemon = world.start();
    let mut host = Host::old(&world, "two");
    let tools = host.ask("tools/list", json!({}))["tools"].to_string();
    assert!(!tools.contains("screenshot"), "what is switched off is not offered");
}
