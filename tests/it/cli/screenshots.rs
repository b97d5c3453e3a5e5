//! Pictures of the screen: what is on it, who may have one, and what comes of programs that do not behave.

mod folder;
mod programs;
mod rules;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::rules::{allow, approvers, ask as asking, policy};
use crate::support::screens::{PIXEL, Wayland, X11, pixel, size, stand_in, start};
use crate::support::{Client, World, eventually, fresh};

const ON: &str = "[screenshot]\nenabled = true\n";

/// Pictures are allowed, and shells run.
fn allowed() -> String {
    let see = ["when.action = [\"screenshot\"]"];
    policy([allow("see", &see), allow("run", &["when.action = [\"delegate\"]"])])
}

/// The default in short: a person has to approve it.
fn asked() -> String {
    policy([asking("\"human\", \"client:approver\"", &["when.action = [\"screenshot\"]"]), approvers()])
}

fn world(configuration: &str, rules: &str) -> World {
    let world = World::new();
    world.configure(configuration);
    world.rule(rules);
    world
}

/// The pictures in the usual folder, oldest first.
fn pictures(world: &World) -> Vec<String> {
    let folder = std::fs::read_dir(world.repo().join(".devit/screenshots"));
    let names = folder.into_iter().flatten().flatten().map(|it| it.file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|it| it.starts_with("screenshot-")).collect();
    names.sort_unstable();
    names
}

fn ask(client: &Client) -> Value {
    client.say("SCREENSHOT", json!({})).message()["payload"].clone()
}

/// Asks, and expects to be turned down with this code; returns the sentence.
fn refused(client: &Client, code: &str) -> String {
    let answer = ask(client);
    assert_eq!(answer["code"], code, "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

/// Asks, and expects a picture; returns where it is.
fn taken(world: &World, client: &Client) -> PathBuf {
    let answer = ask(client);
    assert_eq!(answer["status"], "ok", "{answer}");
    world.repo().join(answer["path"].as_str().unwrap())
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_picture_shows_what_is_on_the_screen() {
    let screen = X11::start();
    for (backend, format, kind) in
        [("scrot", "png", "PNG"), ("import", "jpg", "JPEG"), ("imagemagick", "png", "PNG")]
    {
        let settings = format!("{ON}backend = \"{backend}\"\nformat = \"{format}\"\n");
        let world = world(&settings, &allowed());
        let daemon = start(&world, &screen.display, None);
        let client = world.client(&daemon, "mcp-screenshot-1");
        let answer = client.say("SCREENSHOT", json!({})).ack();
        let path = answer["path"].as_str().unwrap();
        let file = world.repo().join(path);
        let meta = std::fs::metadata(&file).unwrap();
        let human = format!(
            "{:.2} {}",
            meta.len() as f64 / if meta.len() < 1024 { 1.0 } else { 1024.0 },
            if meta.len() < 1024 { "B" } else { "KB" }
        );
        assert_eq!(
            answer,
            json!({ "status": "ok", "path": path, "format": format, "size": { "bytes": meta.len(), "human": human } })
        );
        let name = path.strip_prefix(".devit/screenshots/screenshot-").unwrap();
        let moment = name.strip_suffix(&format!("Z.{format}")).unwrap();
        assert!(
            moment.len() == 19 && moment.as_bytes()[8] == b'T' && moment.as_bytes()[15] == b'.',
            "{name}"
        );
        assert_eq!(size(&file), format!("{kind} 320x240"), "{backend}");
        let far = pixel(&file).iter().zip(PIXEL).map(|(a, b)| a.abs_diff(b)).max().unwrap();
        assert!(far <= 2, "{backend} took {:?}", pixel(&file));

        assert_eq!((meta.permissions().mode() & 0o777, meta.nlink()), (0o600, 1));
        let folder = std::fs::metadata(file.parent().unwrap()).unwrap();
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
        let untracked = std::process::Command::new("git")
            .args(["-C", world.repo().to_str().unwrap(), "status", "--porcelain", "--untracked-files=all"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&untracked.stdout), "", "git would take the picture along");
        assert_eq!(client.poll(), crate::support::Reply::Nothing, "what was answered is not told again");
        assert!(
            std::fs::read_dir(world.state_dir().join("screen")).unwrap().next().is_none(),
            "nothing is left over"
        );

        let journal = world.command(&["log", "--json"]).output().unwrap();
        let journal = String::from_utf8(journal.stdout).unwrap();
        let digest = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
        let digest = String::from_utf8(digest.stdout).unwrap()[..64].to_owned();
        assert!(journal.contains("screen_captured") && journal.contains(&digest), "{journal}");
    }
}

#[test]
fn wayland_has_pictures_too() {
    let screen = Wayland::start();
    let world = world(ON, &allowed());
    let mut command = world.command(&["up", "--foreground"]);
    command.env("WAYLAND_DISPLAY", screen.socket());
    let daemon = world.start_as(command);
    let file = taken(&world, &world.client(&daemon, "orch:a"));
    assert_eq!((size(&file), pixel(&file)), ("PNG 320x240".into(), PIXEL));
}

#[test]
fn nothing_is_captured_without_an_allow_or_an_approval() {
    let screen = X11::start();
    let world = world(ON, &asked());
    let daemon = start(&world, &screen.display, None);
    let approver = world.approver(&daemon);
    // Today's client has a new name for every picture.
    let client =
        |n: u8| world.client(&daemon, &format!("mcp-screenshot-0a1b2c3d-0000-4000-8000-0000000000{n:02x}"));
    let answer = ask(&client(1));
    assert_eq!(
        (&answer["code"], &answer["status"]),
        (&json!("E_SCREENSHOT_DENIED"), &json!("pending")),
        "{answer}"
    );
    let again = ask(&client(2));
    assert_eq!(again["approval_id"], answer["approval_id"], "one question at a time");
    assert!(pictures(&world).is_empty());

    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    assert_eq!(question["msg_id"], answer["approval_id"]);
    let payload = &question["payload"];
    assert_eq!(
        (&payload["tool"], &payload["risk_level"]),
        (&json!("TakeScreenshot"), &json!("high")),
        "{payload}"
    );
    assert_eq!(payload["task_id"], answer["task_id"]);
    let id = question["msg_id"].as_str().unwrap();
    approver
        .say_to(
            "APPROVAL_DECISION",
            id,
            "orchestrator",
            json!({ "status": "granted", "digest": payload["digest"] }),
        )
        .ack();

    let word = client(1).result_of(answer["task_id"].as_str().unwrap());
    assert_eq!(word["status"], "completed", "{word}");
    let path = word["artifacts"]["details"]["path"].as_str().unwrap();
    assert_eq!(pixel(&world.repo().join(path)), PIXEL);
    let handed = ask(&client(3));
    assert_eq!((&handed["status"], &handed["path"]), (&json!("ok"), &json!(path)), "{handed}");
    assert!(refused(&client(4), "E_SCREENSHOT_DENIED").contains("approval"), "one grant, one picture");
    assert_eq!(pictures(&world).len(), 1);
    assert_eq!(ask(&world.client(&daemon, "orch:b"))["status"], "pending", "others ask for themselves");
    assert_eq!(pictures(&world).len(), 1);
}

#[test]
fn a_denied_and_an_unanswered_picture_are_told() {
    let screen = X11::start();
    let world = world(ON, &asked().replace("5m", "1s"));
    let daemon = start(&world, &screen.display, None);
    let client = world.client(&daemon, "orch:a");
    let answer = ask(&client);
    let word = client.result_of(answer["task_id"].as_str().unwrap());
    assert_eq!(word["artifacts"]["metadata"]["failure"]["reason"], "approval_timeout", "{word}");

    world.rule(&asked().replace("5m", "3m"));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let (approver, answer) = (world.approver(&daemon), ask(&client));
    let id = answer["approval_id"].as_str().unwrap();
    approver
        .say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "denied", "note": "my bank" }))
        .ack();
    let word = client.result_of(answer["task_id"].as_str().unwrap());
    let failure = &word["artifacts"]["metadata"]["failure"];
    assert_eq!((&failure["reason"], &failure["note"]), (&json!("approval_denied"), &json!("my bank")));
    assert!(pictures(&world).is_empty());
}

#[test]
fn a_denying_rule_is_named() {
    let world = world(ON, &allowed().replace("\"screenshot\"", "\"apply\""));
    let daemon = start(&world, ":1", None);
    let answer = ask(&world.client(&daemon, "orch:a"));
    assert_eq!(
        (&answer["code"], &answer["details"]["rule"]),
        (&json!("E_SCREENSHOT_DENIED"), &json!("no-rule"))
    );
    assert!(pictures(&world).is_empty());
}

#[test]
fn the_rules_are_asked_again_before_the_picture() {
    let world = world(ON, &allowed());
    // The first one holds the second one up.
    let tools = stand_in(
        &world,
        "scrot",
        "while ! [ -e \"$tools/go\" ]; do sleep 0.05; done; cat \"$tools/good.png\" > \"$last\"",
    );
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let (first, second) = (ask(&client), ask(&client));
    assert_eq!(
        (&first["status"], &second["status"]),
        (&json!("pending"), &json!("pending")),
        "{first} {second}"
    );
    let live = client.task(first["task_id"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&live["status"], &live["delegated_to"]),
        (&json!("in_progress"), &json!("provost")),
        "{live}"
    );
    world.rule(&asked());
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    std::fs::write(tools.join("go"), "").unwrap();
    let done = client.result_of(first["task_id"].as_str().unwrap());
    assert_eq!(done["status"], "completed", "it had begun: {done}");
    let failed = client.result_of(second["task_id"].as_str().unwrap());
    let failure = &failed["artifacts"]["metadata"]["failure"];
    assert_eq!(
        (&failure["reason"], &failure["rule"]),
        (&json!("policy_denied"), &json!("test.ask")),
        "{failed}"
    );
    assert_eq!(pictures(&world).len(), 1);
}

#[test]
fn the_rate_is_kept_and_failures_do_not_use_it_up() {
    let world = world(&format!("{ON}rate_limit = {{ max = 2, window_secs = 3600 }}\n"), &allowed());
    let tools = stand_in(&world, "scrot", "[ -e \"$tools/good\" ] && cat \"$tools/good.png\" > \"$last\"");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    for _ in 0..5 {
        refused(&client, "E_SCREENSHOT_FAILED");
    }
    std::fs::write(tools.join("good"), "").unwrap();
    taken(&world, &client);
    taken(&world, &client);
    let message = refused(&client, "E_SCREENSHOT_DENIED");
    assert_eq!(message, "Screenshot rate limit exceeded (max 2 per 3600s)");
    assert_eq!(pictures(&world).len(), 2);
    drop(daemon);
    let daemon = start(&world, ":77", Some(&tools));
    let other = world.client(&daemon, "orch:b");
    refused(&other, "E_SCREENSHOT_DENIED");

    world.configure(&format!("{ON}rate_limit = {{ max = 3, window_secs = 3600 }}\n"));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    std::fs::remove_file(tools.join("good")).unwrap();
    let mut tries = 0;
    while ask(&other)["code"] == "E_SCREENSHOT_FAILED" {
        tries += 1;
        assert!(tries < 20, "a program that always fails is run without end");
    }
    assert_eq!(refused(&other, "E_SCREENSHOT_DENIED"), "Screenshot rate limit exceeded (max 3 per 3600s)");
}

#[test]
fn a_crash_takes_no_picture_later_and_its_asker_is_told() {
    let world = world(ON, &allowed());
    let tools = stand_in(&world, "scrot", "echo $$ > \"$last.pid\"; sleep 1000");
    let mut daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let (running, waiting) = (ask(&client), ask(&client));
    let staged = std::fs::read_dir(world.state_dir().join("screen")).unwrap().flatten().next().unwrap();
    let pid = std::fs::read_to_string(staged.path().join("screen.png.pid")).unwrap().trim().to_owned();
    assert!(is_alive(&pid));
    daemon.kill();
    eventually("the end of a program whose daemon has died", || !is_alive(&pid));
    stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    let mut told = std::collections::BTreeSet::new();
    while told.len() < 2 {
        let word = client.poll_until(|it| it["msg_type"] == "NOTIFY")["payload"].clone();
        assert_eq!(word["artifacts"]["metadata"]["failure"]["reason"], "lost", "{word}");
        told.insert(word["task_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(told, [running, waiting].map(|it| it["task_id"].as_str().unwrap().to_owned()).into());
    assert!(pictures(&world).is_empty(), "nobody expected a picture any more");
    assert!(std::fs::read_dir(world.state_dir().join("screen")).unwrap().next().is_none());
}

#[test]
fn a_repeated_request_is_one_picture_and_a_strangers_id_is_refused() {
    let world = world(ON, &allowed());
    let tools = stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&world, ":77", Some(&tools));
    let (client, other) = (world.client(&daemon, "orch:a"), world.client(&daemon, "orch:b"));
    let id = fresh("picture");
    let first = client.say_to("SCREENSHOT", &id, "orchestrator", json!({})).ack();
    let again = client.say_to("SCREENSHOT", &id, "orchestrator", json!({})).ack();
    assert_eq!(first, again);
    assert_eq!(other.say_to("SCREENSHOT", &id, "orchestrator", json!({})).code(), "E_TASK_EXISTS");
    assert_eq!(client.say_to("SCREENSHOT", "", "orchestrator", json!({})).code(), "E_INVALID");
    assert_eq!(pictures(&world).len(), 1);
}

#[test]
fn a_worker_does_not_see_the_pictures() {
    let world = world(ON, &allowed());
    let tools = stand_in(&world, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&world, ":77", Some(&tools));
    let client = world.client(&daemon, "orch:a");
    taken(&world, &client);
    let (task, reply) = client.delegate("shell", "cat .devit/screenshots/*.png && echo seen", json!({}));
    reply.ack();
    assert_eq!(client.result_of(&task)["status"], "failed", "it saw a picture");
}

#[test]
fn the_command_line_takes_pictures_too() {
    let bare = world(ON, &allowed());
    let tools = stand_in(&bare, "scrot", "cp \"$tools/good.png\" \"$last\"");
    let daemon = start(&bare, ":77", Some(&tools));
    let output = bare.command(&["screenshot", "take"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.starts_with(".devit/screenshots/screenshot-"), "{said}");
    let output = bare.command(&["screenshot", "take", "--json"]).output().unwrap();
    let task: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&task["state"], &task["capture"]), (&json!("completed"), &json!(true)), "{task}");

    bare.rule(&asked());
    assert!(bare.command(&["daemon", "reload"]).status().unwrap().success());
    let output = bare.command(&["screenshot", "take"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("provost approve"), "{said}");
    bare.rule("version = 1\ndefault = \"deny\"\n");
    assert!(bare.command(&["daemon", "reload"]).status().unwrap().success());
    let output = bare.command(&["screenshot", "take", "--as", "somebody"]).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("no-rule"));
    drop(daemon);
}

#[test]
fn rules_are_compared_by_what_was_asked_and_pictures_are_pictures() {
    let screen = X11::start();
    let world = world(ON, &allowed());
    let _daemon = start(&world, &screen.display, None);
    let done = |args: &[&str]| {
        let output = world.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    done(&["screenshot", "take"]);
    done(&["delegate", "true", "--wait"]);
    let changed = |rules: &str| -> (Value, Vec<String>) {
        let file = world.path("new.toml");
        std::fs::write(&file, rules).unwrap();
        let said: Value =
            serde_json::from_str(&done(&["policy", "diff", file.to_str().unwrap(), "--json"])).unwrap();
        let rows = said["changed"].as_array().unwrap();
        (said["requests"].clone(), rows.iter().map(|it| it["request"].as_str().unwrap().to_owned()).collect())
    };
    assert_eq!(changed(&allowed()), (json!(2), Vec::new()), "nothing changes, nothing is listed");
    let (_, rows) = changed(&allowed().replace("[\"delegate\"]", "[\"apply\"]"));
    assert!(rows.len() == 1 && rows[0].contains(": shell for "), "the picture is none of them: {rows:?}");
    let (_, rows) = changed(&allowed().replace("[\"screenshot\"]", "[\"apply\"]"));
    assert!(rows.len() == 1 && !rows[0].contains(": shell for "), "the picture alone: {rows:?}");
    let said = done(&["policy", "diff", "builtin:strict"]);
    assert!(said.contains("of 2 requests would be answered differently"), "{said}");
}
