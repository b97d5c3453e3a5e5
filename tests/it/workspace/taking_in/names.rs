//! Names that others have chosen, of tasks and of files: what a person copies from a text, or sees in one,
//! means what it says.

use std::process::Command;

use serde_json::json;

use super::parts::freely;
use super::{done, ran, text, world};
use crate::support::World;
use crate::support::desk::ask;
use crate::support::eventually;
use crate::support::terminal::at_the_terminal;

/// Has the agent `eve` delegate a task with an id of its choice, and waits for its end.
fn chosen(world: &World, id: &str, goal: &str) {
    let body = json!({ "task": id, "worker": "coder", "goal": goal, "watch_patterns": [] });
    let (status, answer) = ask(world, "eve", "POST /delegate", &body);
    assert!(status < 300, "{answer}");
    eventually("the end of the task", || {
        let done = world.command(&["task", "list", "--json"]).output().unwrap();
        let all: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let mut tasks = all["finished"].as_array().unwrap().iter();
        tasks.any(|it| it["id"] == id && it["changes"]["state"] == "kept")
    });
}

/// The words of a command line as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {line}");
    let done =
        Command::new("bash").args(["-c", &script]).env_clear().env("LC_ALL", "C.UTF-8").output().unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn an_id_is_one_word_in_each_command_that_is_printed() {
    let world = world(&[("a.txt", "old\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let ids = ["a;touch${IFS}bad", "$(touch bad)", "--yes", "-C", "list", "undo", "help", "it's one", "id:x"];
    for (at, id) in ids.iter().enumerate() {
        chosen(&world, id, &format!("echo {at} > f{at}"));
        let exact = format!("id:{id}");
        let shown = ran(&world, &["task", "show", &exact], 0);
        let write = shown.lines().find_map(|it| it.strip_prefix("write them:")).expect(&shown).trim();
        let words = words(write);
        assert_eq!(words[0], "provost", "{id}: {write}");
        assert!(!world.repo().join("bad").exists() && !std::path::Path::new("bad").exists(), "{write}");
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let said = ran(&world, &args, 0);
        assert!(said.contains("written: 1"), "{id}: {write}: {said}");
        assert!(said.contains(&format!("of task {id}, which eve has asked for")), "{said}");
        assert_eq!(text(&world, &format!("f{at}")), format!("{at}\n"), "{id}");
        // Nor where nobody can be asked.
        let refused = ran(&world, &["discard", "--", &exact], 4);
        assert!(refused.contains(" --yes"), "{refused}");
        let next = refused.lines().find_map(|it| it.split_once("provost discard")).expect(&refused).1;
        assert!(self::words(next).iter().any(|it| it == id || *it == exact), "{next}");
    }
}

#[test]
fn an_id_that_is_the_beginning_of_another_one_names_neither() {
    let world = world(&[("a.txt", "old\n")], "");
    world.rule(&freely());
    let _daemon = world.start();
    let mine = done(&world, "echo mine > a.txt");
    let short = &mine[..4];
    chosen(&world, short, "echo theirs > a.txt");
    for verb in
        [&["apply"][..], &["discard", "--yes"], &["task", "diff"], &["task", "show"], &["task", "cancel"]]
    {
        let args: Vec<&str> = verb.iter().copied().chain([short]).collect();
        let said = ran(&world, &args, 2);
        assert!(said.contains(&format!("2 tasks begin with {short}")), "{said}");
        assert!(said.contains(&mine) && said.contains("asked by eve"), "{said}");
    }
    assert_eq!(text(&world, "a.txt"), "old\n");
    let said = ran(&world, &["apply", &mine[..6]], 0);
    assert!(said.contains(&format!("of task {mine}, which ")), "{said}");
    assert_eq!(text(&world, "a.txt"), "mine\n");
    // One that is longer than a generated id takes nothing from it.
    chosen(&world, &format!("{mine}0"), "echo more > b.txt");
    ran(&world, &["task", "show", &mine], 0);
    let person = at_the_terminal(&world, &format!("discard --yes id:{short}"));
    let said = String::from_utf8_lossy(&person.stdout).into_owned();
    assert!(said.contains(&format!("of task {short}, which eve")), "{person:?}");
    let said = ran(&world, &["apply", &mine[..3]], 1);
    assert!(said.contains("at least 4 characters"), "{said}");
}

#[test]
fn names_of_files_hide_nothing_where_they_are_listed() {
    let world = world(&[], "");
    world.rule(&freely());
    let _daemon = world.start();
    let script = "mkdir src; for f in $(printf 'bidi\\342\\200\\256txt.exe src/a\\342\\200\\213.txt'); do echo x > $f; done; \
         echo x > 'two  spaces'; echo x > 'two spaces'; ln -s /etc/passwd $(printf 'li\\342\\200\\256nk')";
    let id = done(&world, script);
    let hidden = ["bidi\\u{202e}txt.exe", "src/a\\u{200b}.txt"];
    for args in [&["task", "diff", &id, "--stat"][..], &["task", "show", &id], &["task", "diff", &id]] {
        let said = ran(&world, args, 0);
        let is_patch = args.len() == 3 && args[1] == "diff";
        if !is_patch {
            hidden.iter().for_each(|it| assert!(said.contains(it), "{args:?}: {said:?}"));
            assert!(!said.contains('\u{202e}') && !said.contains('\u{200b}'), "{args:?}: {said:?}");
            assert!(said.contains("two  spaces") && said.contains("two spaces"), "{args:?}: {said:?}");
        }
        assert!(said.contains("not kept: li\\u{202e}nk"), "{args:?}: {said:?}");
    }
    // What is offered instead of a wrong name can be typed.
    let said = ran(&world, &["task", "diff", &id, "txt.exe"], 4);
    let among = said.lines().find_map(|it| it.split_once("among them: ")).expect(&said).1;
    let typed = words(&among.replace(", ", " "));
    assert!(
        !among.contains('\u{202e}') && typed.iter().any(|it| it.contains("  ") || it.contains('\u{202e}')),
        "{said:?}"
    );
    for it in typed.iter().filter(|it| it.contains("spaces") || it.contains("exe")) {
        ran(&world, &["task", "diff", &id, it], 0);
    }
    let person = at_the_terminal(&world, &format!("apply {id}"));
    assert!(person.status.success(), "{person:?}");
    let said = ran(&world, &["apply", "list"], 0);
    assert!(!said.contains('\u{202e}') && !said.contains('\u{200b}'), "{said:?}");
}
