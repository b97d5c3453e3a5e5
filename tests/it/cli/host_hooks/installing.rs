//! Hooks in the configuration of hosts: added, reported and removed, while all other settings stay.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::Value;

use super::{CODE, HOSTS, command_of, finish, recorded, start, world};
use crate::support::World;

fn hooks(world: &World, args: &[&str]) -> (i32, String) {
    let done = world.command(&[&["hook"][..], args].concat()).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[track_caller]
pub(super) fn done(world: &World, args: &[&str]) -> String {
    let (code, said) = hooks(world, args);
    assert_eq!(code, 0, "{args:?}: {said}");
    said
}

#[track_caller]
pub(super) fn refused(world: &World, args: &[&str]) -> String {
    let (code, said) = hooks(world, args);
    assert_eq!(code, 4, "{args:?}: {said}");
    said
}

/// Files of other programs, as people write them.
const THEIRS: [&str; 9] = [
    "",
    "{}",
    "{}\n",
    "{ \"hooks\": {} }",
    "{\"model\":\"opus\",\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"./mine\"}]}]}}",
    "\u{feff}{\r\n\t\"permissions\": { \"allow\": [\"Bash(ls)\", \"Read\"] }\r\n}\r\n",
    "{\n    // Ours alone, please.\n    \"model\": \"opus\", // the large one, always\n    /* and, well, */ \"hooks\": {\n        \
     \"PreToolUse\": [\n            { \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"./a, b\" }] } // last\n        ],\n        \
     \"Stop\": []\n    }\n    // the end\n}",
    "{\n  \"version\": 1,\n  \"hooks\": {\n    \"preToolUse\": [{ \"command\": \"./mine\", \"matcher\": \"Shell\" }],\n    \"stop\": [\n      { \"command\": \"./bye\" }\n    ]\n  }\n}\n",
    "{\"hooks\":{\"SessionEnd\":[]},\"last\":{\"a\":[1,2.5e3,null,true,\"\\u00e9\\\"}\"]}}",
];

/// JSON without its comments, good enough for what stands above.
fn value(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}').replace("/* and, well, */", "");
    let plain = |line: &str| line.split(" // ").next().unwrap_or_default().to_owned();
    let lines = text.lines().filter(|it| !it.trim_start().starts_with("//")).map(plain);
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.trim().is_empty() {
        Value::Object(Default::default())
    } else {
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn what_is_there_stays_and_what_was_there_comes_back_to_the_byte() {
    let world = World::new();
    for (host, file) in HOSTS {
        let path = world.repo().join(file);
        for theirs in THEIRS {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, theirs).unwrap();
            done(&world, &["install", host]);
            let ours = fs::read_to_string(&path).unwrap();
            let (before, after) = (value(theirs), value(&ours));
            for (name, it) in before.as_object().unwrap().iter().filter(|it| it.0 != "hooks") {
                match name.as_str() {
                    "permissions" if host == "claude" => {
                        let allowed = after[name]["allow"].as_array().unwrap();
                        assert_eq!(allowed[..2], it["allow"].as_array().unwrap()[..], "{ours}");
                    }
                    _ => assert_eq!(&after[name], it, "{ours}"),
                }
            }
            let rules = after["permissions"]["allow"].to_string();
            assert_eq!(rules.contains("mcp__provost__*"), host == "claude", "{ours}");
            for (event, entries) in before["hooks"].as_object().into_iter().flatten() {
                for (at, entry) in entries.as_array().unwrap().iter().enumerate() {
                    assert_eq!(&after["hooks"][event][at], entry, "{ours}");
                }
            }
            for comment in [
                "// Ours alone, please.",
                "// the large one, always",
                "/* and, well, */",
                "// last",
                "// the end",
            ] {
                assert_eq!(ours.contains(comment), theirs.contains(comment), "{ours}");
            }
            // Once more is the same.
            done(&world, &["install", host]);
            assert_eq!(fs::read_to_string(&path).unwrap(), ours);
            done(&world, &["remove", host]);
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
            done(&world, &["remove", host]);
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
            // Without what was kept of it, the same is meant.
            done(&world, &["install", host]);
            fs::remove_dir_all(world.home().join(".local/state/provost")).unwrap();
            done(&world, &["remove", host]);
            let left = value(&fs::read_to_string(&path).unwrap());
            let nothing_empty = |mut it: Value| {
                if let Some(hooks) = it.get_mut("hooks").and_then(Value::as_object_mut) {
                    hooks.retain(|_, entries| entries.as_array().is_none_or(|it| !it.is_empty()));
                }
                let it = it.as_object_mut().unwrap();
                it.retain(|name, it| {
                    (name != "hooks" || it.as_object().is_none_or(|it| !it.is_empty())) && name != "version"
                });
                it.clone()
            };
            assert_eq!(nothing_empty(left), nothing_empty(before), "{theirs}");
        }
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

#[test]
fn a_file_that_was_not_there_is_not_there_afterwards() {
    let world = World::new();
    for (host, file) in HOSTS {
        let (path, folder) = (world.repo().join(file), PathBuf::from(file));
        let folder = world.repo().join(folder.parent().unwrap());
        let said = done(&world, &["install", host]);
        assert!(said.contains(if host == "codex" { "untrusted" } else { "installed" }), "{said}");
        assert!(path.is_file());
        assert!(done(&world, &["remove", host]).contains("missing"));
        assert!(!folder.exists());
        // A folder in which something else is stays.
        done(&world, &["install", host]);
        fs::write(folder.join("mine"), "x").unwrap();
        done(&world, &["remove", host]);
        assert!(!path.exists() && folder.join("mine").exists());
    }
}

#[test]
fn what_somebody_has_written_since_stays() {
    let world = World::new();
    let path = world.repo().join(HOSTS[0].1);
    done(&world, &["install", "claude"]);
    let text = fs::read_to_string(&path).unwrap();
    // Into the file, into an event of ours, and into a group of ours.
    let text = text.replacen('{', "{\n  \"model\": \"opus\",", 1);
    let text = text.replace(
        "\"SessionEnd\": [",
        "\"SessionEnd\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"./bye\" }] },",
    );
    let at = text.find("\"type\": \"command\"").unwrap();
    let at = text[..at].rfind('{').unwrap();
    let text =
        format!("{}{{ \"type\": \"command\", \"command\": \"./mine\" }}, {}", &text[..at], &text[at..]);
    fs::write(&path, &text).unwrap();
    assert!(done(&world, &["status"]).contains("claude: installed"), "{text}");
    // Anew, with another name: ours alone is another one.
    done(&world, &["install", "claude", "--agent", "ada"]);
    let again = value(&fs::read_to_string(&path).unwrap());
    assert_eq!(again["model"], "opus");
    assert!(again.to_string().contains("--as ada") && again.to_string().contains("./mine"));
    done(&world, &["remove", "claude"]);
    let left = fs::read_to_string(&path).unwrap();
    assert!(!left.contains("provost"), "{left}");
    let left = value(&left);
    assert_eq!(left["model"], "opus");
    assert_eq!(left["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "./mine");
    assert_eq!(left["hooks"]["SessionEnd"][0]["hooks"][0]["command"], "./bye");
    assert_eq!(left["hooks"].as_object().unwrap().len(), 2, "{left}");
}

#[test]
fn a_file_that_is_not_as_its_host_has_it_is_left_alone() {
    let world = World::new();
    let path = world.repo().join(HOSTS[0].1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let deep = "[".repeat(100_000);
    for bad in [
        "{",
        "{ \"a\": 1, }",
        "{ \"hooks\": [] }",
        "{ \"hooks\": { \"Stop\": {} } }",
        "{ \"hooks\": {}, \"hooks\": {} }",
        "[]",
        "not JSON",
        "{} {}",
        "{ \"a\": \"\n\" }",
        "{ /* no end }",
        &deep,
    ] {
        fs::write(&path, bad).unwrap();
        for what in ["install", "remove"] {
            let said = refused(&world, &[what, "claude"]);
            assert!(said.contains("stays as it is"), "{said}");
        }
        assert!(done(&world, &["status"]).contains("claude: unreadable"));
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
    fs::write(&path, b"{ \"a\": \"\xff\" }").unwrap();
    refused(&world, &["install", "claude"]);
    fs::write(&path, vec![b' '; 5 << 20]).unwrap();
    refused(&world, &["install", "claude"]);
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(refused(&world, &["install", "claude"]).contains("read-only"));
    fs::remove_file(&path).unwrap();
    // A link leads who knows where.
    let elsewhere = world.path("elsewhere.json");
    fs::write(&elsewhere, "{}").unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(refused(&world, &["install", "claude"]).contains("symbolic link"));
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "{}");
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    symlink(world.path("home"), path.parent().unwrap()).unwrap();
    assert!(refused(&world, &["install", "claude"]).contains("symbolic link"));
    assert!(!world.path("home/settings.local.json").exists());
}

#[test]
fn status_says_what_is_in_place_of_every_host_and_of_git() {
    let world = World::new();
    let state = |host: &str| {
        let said: Value = serde_json::from_str(&done(&world, &["status", "--json"])).unwrap();
        assert_eq!(said["git"].as_array().unwrap().len(), 4);
        let hosts = said["hosts"].as_array().unwrap();
        assert!(matches!(hosts.len(), 4 | 5), "{said}");
        hosts.iter().find(|it| it["host"] == host).unwrap()["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state("codex"), "missing");
    done(&world, &["install", "codex"]);
    assert_eq!(state("codex"), "untrusted", "Codex runs what a person has trusted");
    let path = world.repo().join(".codex/hooks.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("/provost'", "/gone'")).unwrap();
    assert_eq!(state("codex"), "outdated");
    fs::write(&path, text.replace("\"SessionEnd\"", "\"Stop\"")).unwrap();
    assert_eq!(state("codex"), "partly");
    // What it says to do mends it.
    done(&world, &["install", "codex"]);
    assert_eq!(state("codex"), "untrusted");
    // Git's are the same as with `provost git`.
    done(&world, &["install", "git"]);
    assert!(world.repo().join(".git/hooks/pre-commit").is_file());
    let git = world.command(&["git", "status"]).output().unwrap();
    assert!(String::from_utf8(git.stdout).unwrap().contains("pre-commit: installed"));
    done(&world, &["remove", "git"]);
    assert!(!world.repo().join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_hook_finds_the_program_where_it_went_and_says_when_it_is_gone() {
    let world = World::new();
    world.write("src/auth.ts", CODE);
    let folder = world.path("a folder, it's odd $HOME");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("provost");
    fs::copy(crate::support::provost(), &program).unwrap();
    let like = world.command(&["hook", "install", "claude"]);
    let mut install = std::process::Command::new(&program);
    install.args(like.get_args()).current_dir(world.repo()).env_clear();
    install.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(install.output().unwrap().status.success());
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    let told = recorded(&world, "claude/edit");
    assert!(world.is_refused("claude", &told).contains("codex-1"));
    // Gone, and nowhere else: nobody can tell whether somebody is at it.
    let away = world.path("bin");
    fs::create_dir(&away).unwrap();
    fs::rename(&program, away.join("provost")).unwrap();
    let output = world.call("claude", "PreToolUse", &told);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not checked: the program is gone"));
    assert_eq!(world.call("claude", "SessionEnd", &told).status.code(), Some(0));
    // On the PATH it is found again.
    let line = format!("PATH={}:$PATH; {}", away.display(), command_of(&world, "claude", "PreToolUse"));
    let output = finish(start(&world, &line, &world.repo()), told.to_string().as_bytes());
    assert!(String::from_utf8_lossy(&output.stdout).contains("codex-1"), "{output:?}");
}

#[test]
fn the_file_of_everybody_calls_the_program_by_its_name_and_asks_it_of_nobody() {
    let world = world("claude");
    done(&world, &["install", "claude", "--shared"]);
    let text = fs::read_to_string(world.repo().join(".claude/settings.json")).unwrap();
    assert!(
        !text.contains(crate::support::provost().to_str().unwrap()) && !text.contains("onFailure"),
        "{text}"
    );
    let settings: Value = serde_json::from_str(&text).unwrap();
    let line = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    // Whoever does not have it works as without.
    let output =
        finish(start(&world, line, &world.repo()), recorded(&world, "claude/edit").to_string().as_bytes());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    done(&world, &["remove", "claude"]);
    assert!(!world.repo().join(".claude").exists());
}

#[test]
fn words_that_make_no_sense_are_refused() {
    let world = World::new();
    for args in [
        &["install", "vim"][..],
        &["install", "claude", "--agent", "a b"],
        &["install", "claude", "--agent", "'; rm -rf /"],
        &["install", "claude", "--permission-wait", "1h"],
        &["install", "claude", "--permission-wait", "soon"],
        &["run", "claude", "halt"],
    ] {
        let (code, said) = hooks(&world, args);
        assert_eq!(code, 2, "{args:?}: {said}");
    }
    assert!(!world.repo().join(".claude").exists());
    done(&world, &["install", "claude", "--permission-wait", "0s"]);
    let text = fs::read_to_string(world.repo().join(HOSTS[0].1)).unwrap();
    assert!(!text.contains("PermissionRequest"), "{text}");
}
