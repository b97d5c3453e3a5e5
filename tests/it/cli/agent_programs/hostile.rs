//! Programs, files and answers that are not what they seem.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    KEY, add, at, auth_json, command, jwt, log_in, ok, renewed_at, said, secrets, text_of, tried, vendors,
};
use crate::support::World;
use crate::support::rules::ALLOW;
use crate::support::webserver::Server;

fn script(world: &World, path: &Path, lines: &str) {
    world.put(path, &format!("#!/bin/sh\n{lines}\n"));
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Returns the paths that an entry for this program would show to the jail.
fn shown(world: &World, server: &Server, path: &Path) -> Vec<String> {
    let more = ["--dry-run", "--json", "--program", path.to_str().unwrap()];
    let entry: Value = serde_json::from_str(&ok(&add(world, server, "claude", &more))).unwrap();
    let entry: toml::Table = entry["entry"].as_str().unwrap().parse().unwrap();
    let list =
        entry["agent"][0].get("read_only").and_then(toml::Value::as_array).cloned().unwrap_or_default();
    list.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_program_opens_its_installation_to_the_jail_and_no_other_folder() {
    let world = World::new();
    let server = Server::saying("ok");
    let home = world.home().canonicalize().unwrap();
    let package = |name: &str| json!({ "name": name, "version": "1.2.3" }).to_string();
    let (ours, other) = (package("@anthropic-ai/claude-code"), package("something-else"));
    // The file, a description beside it, and what is shown of the home.
    let cases = [
        ("claude", None, "claude"),
        // The home is no installation, whatever lies in it.
        ("claude", Some(("package.json", &ours)), "claude"),
        ("tools/claude", Some(("tools/package.json", &other)), "tools/claude"),
        ("tools/claude", Some(("tools/package.json", &ours)), "tools"),
        (".local/bin/claude", Some((".local/lib/node_modules/x/package.json", &other)), ".local/bin/claude"),
        (".local/share/claude/versions/2.1.330", None, ".local/share/claude/versions"),
        ("my/versions/claude", None, "my/versions/claude"),
        (
            "p/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            None,
            "p/lib/node_modules/@anthropic-ai/claude-code",
        ),
        ("q/node_modules/claude/cli.js", None, "q/node_modules"),
    ];
    for (file, beside, expected) in cases {
        let path = home.join(file);
        script(&world, &path, "echo claude 9.8.7");
        if let Some((name, text)) = beside {
            world.put(&home.join(name), text);
        }
        let expected = home.join(expected).to_str().unwrap().to_owned();
        assert_eq!(shown(&world, &server, &path), [expected], "{file}");
        std::fs::remove_file(&path).unwrap();
        let _none = beside.map(|(name, _)| std::fs::remove_file(home.join(name)));
    }
}

#[test]
fn an_entry_that_its_jail_would_refuse_is_not_kept() {
    let world = World::new();
    let server = Server::saying("ok");
    world.configure("");
    // Provost's own files are in no jail.
    let path = world.config_dir().join("secrets/claude");
    script(&world, &path, "echo claude 9.8.7");
    let output = add(&world, &server, "claude", &["--program", path.to_str().unwrap()]);
    let text = said(&output);
    assert!(!output.status.success() && text.contains("the jail would refuse the entry of claude"), "{text}");
    assert_eq!(text_of(&world), "");
}

#[test]
fn an_answer_without_the_word_that_was_asked_for_is_none() {
    let world = World::new();
    let folder = vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    let message =
        json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "name": "Bash" }] } });
    let refusal =
        json!({ "type": "result", "result": "Invalid API key. Please run /login", "is_error": false });
    let cases = [
        ("says-no", format!("echo '{refusal}'"), "answered something else", "another key"),
        ("zeros", "head -c 100000000 /dev/zero".to_owned(), "", "provost task show"),
        ("tool", format!("echo '{message}'"), "answered something else", ""),
        ("echo", "cat".to_owned(), "", ""),
        ("plain", "cat >/dev/null; echo PROVOST-READY".to_owned(), "wrote no message", ""),
    ];
    for (name, lines, ..) in &cases {
        let path = folder.join(name);
        script(&world, &path, lines);
        ok(&add(
            &world,
            &server,
            "claude",
            &["--name", name, "--secret", name, "--program", path.to_str().unwrap()],
        ));
    }
    let _daemon = world.start();
    for (name, _, words, next) in &cases {
        let (code, answer) = tried(&world, name);
        let first = &answer["missing"][0];
        assert_eq!((code, &answer["ok"]), (1, &json!(false)), "{name}: {answer}");
        assert!(first["what"].as_str().unwrap().contains(words), "{name}: {answer}");
        assert!(first["next"].as_str().unwrap().contains(next), "{name}: {answer}");
    }
}

#[test]
fn the_question_for_a_version_is_bounded_and_leaves_no_process() {
    let world = World::new();
    let server = Server::saying("ok");
    let path = world.home().join("claude");
    let pid = world.home().join("left");
    script(&world, &path, &format!("sleep 300 &\necho $! > {}\necho claude 9.8.7\nexit 0", pid.display()));
    let text = ok(&add(&world, &server, "claude", &["--dry-run", "--program", path.to_str().unwrap()]));
    assert!(text.contains("9.8.7"), "{text}");
    let number = std::fs::read_to_string(&pid).unwrap();
    // A signal ends it, which the system carries out when it comes to it.
    crate::support::eventually("its end", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
        stat.map_or(true, |it| it.contains(") Z "))
    });
    script(&world, &path, "exec yes 9.8.7");
    let began = std::time::Instant::now();
    ok(&add(&world, &server, "claude", &["--dry-run", "--program", path.to_str().unwrap()]));
    assert!(began.elapsed().as_secs() < 15, "it was read to its end");
}

#[test]
fn a_program_of_another_work_tree_is_not_started() {
    let world = World::new();
    let server = Server::saying("ok");
    let tree = world.path("tree");
    let mut git = std::process::Command::new("git");
    git.args(["worktree", "add", "-q", "--orphan", "-b", "other"]).arg(&tree).current_dir(world.repo());
    assert!(git.status().unwrap().success());
    let (path, ran) = (tree.join("claude"), world.home().join("ran"));
    script(&world, &path, &format!("touch {}; echo 1.2.3", ran.display()));
    let output = add(&world, &server, "claude", &["--dry-run", "--program", path.to_str().unwrap()]);
    let text = said(&output);
    assert!(!output.status.success() && text.contains("lies in the repository") && !ran.exists(), "{text}");
}

#[test]
fn small_mistakes_are_refused_with_a_step_that_works() {
    let world = World::new();
    let folder = vendors(&world);
    let server = Server::saying("ok");
    let shell = said(&add(&world, &server, "claude", &["--name", "shell"]));
    assert!(!shell.contains("agent remove") && shell.contains("--name ANOTHER"), "{shell}");
    let path = folder.join("codex");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let text = said(&add(&world, &server, "codex", &["--program", path.to_str().unwrap()]));
    assert!(text.contains("is not executable"), "{text}");
    for model in ["a\nb", &"m".repeat(257)] {
        let output = add(&world, &server, "claude", &["--model", model]);
        assert!(!output.status.success() && said(&output).contains("no control characters"), "{output:?}");
        let output = command(&world, &["delegate", "--model", model, "true"]).output().unwrap();
        assert!(said(&output).contains("no control characters"), "{output:?}");
    }
    world.configure("[[agent]]\nid = \"mine\"\ncommand = [\"/bin/true\"]\n");
    let text = ok(&command(&world, &["agent", "remove", "mine"]).output().unwrap());
    assert!(!text.contains("its secret"), "{text}");
}

#[test]
fn a_log_in_that_cannot_be_used_is_refused_when_it_is_added() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    let add = || command(&world, &["agent", "add", "codex", "--upstream", &at(&server)]).output().unwrap();
    log_in(&world, &jwt(-5), "acct-1");
    let text = std::fs::read_to_string(auth_json(&world)).unwrap().replace(KEY, "");
    std::fs::write(auth_json(&world), text).unwrap();
    let text = said(&add());
    assert!(text.contains("has expired") && text.contains("codex login"), "{text}");
    log_in(&world, &jwt(3_600), "acct\r\nx-evil: 1");
    let text = said(&add());
    assert!(text.contains("an account of several lines"), "{text}");
    assert_eq!((text_of(&world), secrets(&world).len()), (String::new(), 0));
}

#[test]
fn a_renewal_uses_no_token_up_that_it_cannot_keep() {
    let world = World::new();
    vendors(&world);
    let server = Server::saying("ok");
    world.rule(ALLOW);
    log_in(&world, &jwt(-5), "acct-1");
    ok(&command(&world, &["agent", "add", "codex", "--upstream", &at(&server)]).output().unwrap());
    let _daemon = world.start();
    let service = Server::saying(&json!({ "access_token": jwt(3_600), "refresh_token": "rt-2" }).to_string());
    renewed_at(&world, &service);
    // A process that holds the lock is named, and the run does not wait for it.
    let held = File::open(auth_json(&world)).unwrap();
    held.lock().unwrap();
    let (code, answer) = tried(&world, "codex");
    let what = answer["missing"][0]["what"].as_str().unwrap();
    assert!(code == 1 && what.contains("has held it for") && what.contains("fuser"), "{answer}");
    assert_eq!(service.heard().len(), 0);
    drop(held);
    // Nothing can be written beside the file: its token stays good.
    let folder = auth_json(&world).parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let (code, answer) = tried(&world, "codex");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    assert!(code == 1 && answer.to_string().contains("no file can be written beside it"), "{answer}");
    assert_eq!(service.heard().len(), 0);
    // What an earlier process left goes.
    let left = folder.join("auth.provost-4194304");
    std::fs::write(&left, "old").unwrap();
    assert_eq!(tried(&world, "codex").0, 0);
    assert_eq!((service.heard().len(), left.exists()), (1, false));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}
