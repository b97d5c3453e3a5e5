//! The command line for programs: `--json` wherever there is something to say, and exit codes.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::source::project_root;

/// Runs a command with `--json`; its exit code and what it said, wherever it said it.
fn ask(world: &World, line: &str) -> (i32, Value) {
    let args: Vec<&str> = line.split_whitespace().chain(["--json"]).collect();
    let output = world.command(&args).output().unwrap();
    let code = output.status.code().unwrap();
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let value = serde_json::from_slice(text);
    (code, value.unwrap_or_else(|err| panic!("{line}: {err} in {}", String::from_utf8_lossy(text))))
}

#[test]
fn every_command_answers_a_program_in_json() {
    let world = World::new();
    world.put(&world.repo().join("cases.toml"), "[[case]]\nworker = \"shell\"\nexpect = \"allow\"\n");
    for line in [
        "config init",
        "up",
        "status",
        "delegate true --task t1 --wait",
        "delegate true --task t2",
        "task list",
        "task show t1",
        "task show t2 --wait",
        "task report t1 --status ack",
        "approval list",
        "agent list",
        "workflow list",
        "workflow show dev:fix_and_review",
        "lock a.ts:f",
        "lock list",
        "unlock a.ts:f",
        "claim list",
        "intent declare tidy --file a.ts",
        "intent list",
        "contract list",
        "contract check",
        "guard a.ts",
        "git install",
        "git status",
        "git uninstall",
        "key add worker:a",
        "key list",
        "key rotate worker:a",
        "key revoke worker:a",
        "env",
        "config allow",
        "policy check",
        "policy test cases.toml",
        "policy explain",
        "policy diff builtin:strict --cases cases.toml",
        "journal verify",
        "journal head",
        "log --limit 1",
        "daemon reload",
        "",
        "up",
        "down",
    ] {
        let (code, _) = ask(&world, line);
        assert_eq!(code, 0, "{line}");
    }
    for line in ["journal export", "log"] {
        let mut args: Vec<&str> = line.split(' ').collect();
        args.push("--json");
        let output = world.command(&args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 5);
        text.lines().for_each(|line| assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}"));
    }
}

#[test]
fn what_goes_wrong_is_told_a_program_in_json_too() {
    let world = World::new();
    let (code, said) = ask(&world, "status");
    assert_eq!((code, &said["exit_code"], &said["try"]), (3, &json!(3), &json!("provost up")));
    let _daemon = world.start();
    for (line, expected, word) in [
        ("task show never", 1, "no such task"),
        ("task cancel never", 1, "no such task"),
        ("approve 9", 1, "no approval 9"),
        ("deny 9 --reason no", 1, "no approval 9"),
        ("key add client:approver", 4, "has a key"),
        ("config allow ../x", 1, ""),
    ] {
        let (code, said) = ask(&world, line);
        assert_eq!((code, &said["exit_code"]), (expected, &json!(expected)), "{line}: {said}");
        assert!(said["error"].as_str().is_some() && said.to_string().contains(word), "{line}: {said}");
    }
}

#[test]
fn the_help_has_every_exit_code_that_commands_end_with() {
    let world = World::new();
    let output = world.command(&["--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, table) = help.split_once("Exit codes:").unwrap();
    let words: Vec<&str> = table.split_whitespace().collect();
    let source = std::fs::read_to_string(project_root().join("src/cli/cli_error.rs")).unwrap();
    let codes =
        source.lines().filter_map(|line| line.strip_prefix("pub(super) const ")?.split_once(": u8 = "));
    let codes: Vec<&str> = codes.filter_map(|(_, code)| code.strip_suffix(';')).collect();
    assert!(codes.len() >= 12, "{codes:?}");
    for code in codes {
        assert!(words.contains(&code), "{code} is not in the table: {table}");
    }
}

#[test]
fn what_is_wrong_in_a_file_of_settings_is_a_sentence_of_its_own() {
    let world = World::new();
    world.configure("[screenshot] # text\nenabled = true one\n");
    let output = world.command(&["up"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("is not valid TOML: ") && said.contains(". Correct it, or remove it"), "{said}");
}
