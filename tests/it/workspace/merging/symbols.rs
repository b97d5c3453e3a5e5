//! Merges that are clean as text and not as symbols: both sides change one, one side calls a symbol that the other has
//! changed, a contract is broken. The agent whose branch it is reads why.

use serde_json::{Value, json};

use super::{branch, entry, person, repository, tip};
use crate::support::World;
use crate::support::own_api::own;

const BETWEEN: &str = "\n# a line in between\n# another one\n# and another one\n# and one more\n\n";

fn code(functions: &[&str]) -> String {
    functions.iter().map(|it| format!("{it}{BETWEEN}")).collect()
}

const LONG: &str = "def long(a):
    one = 1
    two = 2
    three = 3
    four = 4
    five = 5
    six = 6
    seven = 7
    return one + seven
";

fn app() -> Vec<(&'static str, String)> {
    let lib = code(&["def greet(name):\n    return name\n", LONG, "def kept(a, b):\n    return a\n"]);
    let user = code(&["from lib import greet\n", "def hello():\n    return greet(1)\n"]);
    vec![("lib.py", lib), ("user.py", user)]
}

fn world() -> World {
    let files = app();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    repository(&files, "")
}

fn lib(world: &World, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(world.repo().join("lib.py")).unwrap();
    assert!(text.contains(from));
    text.replace(from, to)
}

/// Messages that an agent reads.
pub(super) fn inbox(world: &World, agent: &str) -> String {
    let (status, read) = own(world, ("POST", "/read-inbox"), &[("x-provost-agent", agent)], &json!({}));
    assert_eq!(status, 200, "{read}");
    read.to_string()
}

pub(super) fn signed(text: &str, agent: &str) -> String {
    format!("{text}\n\nProvost-Task: t-{agent}\nProvost-Agent: {agent}\n")
}

#[test]
fn a_call_of_what_the_other_side_has_renamed_is_caught_and_its_owner_reads_why() {
    let world = world();
    let _daemon = world.start();
    let renamed = lib(&world, "def greet(name)", "def welcome(name)");
    let user = code(&["from lib import welcome\n", "def hello():\n    return welcome(1)\n"]);
    let files = [("lib.py", Some(renamed.as_str())), ("user.py", Some(user.as_str()))];
    branch(&world, "feat/rename", "main", &files, "rename");
    let caller = "from lib import greet\n\n\ndef more():\n    return greet(2)\n";
    branch(&world, "feat/caller", "main", &[("more.py", Some(caller))], &signed("call", "coder"));
    // Before anything is merged, the pair says so; the one that changes what the other calls goes first.
    let said = person(&world, "merge feat/caller feat/rename --preview", 0);
    assert!(
        said.contains("1. feat/rename") && said.contains("early, since it changes what feat/caller calls"),
        "{said}"
    );
    assert!(
        said.contains("has removed or renamed greet in lib.py, which feat/caller calls in more.py:more"),
        "{said}"
    );
    assert!(said.contains("owner: coder"), "{said}");
    inbox(&world, "coder");
    let said = person(&world, "merge feat/caller feat/rename", 7);
    assert!(
        said.contains("feat/rename: merged") && said.contains("set aside (call), returned to coder"),
        "{said}"
    );
    let read = inbox(&world, "coder");
    for part in [
        "main has removed or renamed greet in lib.py",
        "Rebase it with `git rebase main feat/caller`",
        "cannot prove",
    ] {
        assert!(read.contains(part), "{part}: {read}");
    }
    // Nobody else reads it, and a branch that is mended is merged.
    assert!(!inbox(&world, "other").contains("Rebase"));
    let caller = caller.replace("greet", "welcome");
    branch(&world, "feat/caller", "main", &[("more.py", Some(&caller))], &signed("call", "coder"));
    person(&world, "merge feat/caller", 0);
    assert_eq!(entry(&world, "feat/caller")["state"], "merged");
}

#[test]
fn a_call_outside_of_all_functions_is_one() {
    let world = world();
    let _daemon = world.start();
    let changed = lib(&world, "def greet(name)", "def greet(name, loud)");
    let user = code(&["from lib import greet\n", "def hello():\n    return greet(1, 2)\n"]);
    branch(&world, "sig", "main", &[("lib.py", Some(&changed)), ("user.py", Some(&user))], "sig");
    let script = "from lib import greet\n\nprint(greet(3))\n";
    branch(&world, "script", "main", &[("run.py", Some(script))], "script");
    // One of the same name that is another one, and one that calls something else.
    let own = "from lib import kept\n\n\ndef greet(a):\n    return a\n\n\nprint(greet(3), kept(1, 2))\n";
    branch(&world, "own", "main", &[("own.py", Some(own))], "own");
    let said = person(&world, "merge sig script own --preview", 0);
    assert!(said.contains("which script calls in run.py, outside of functions"), "{said}");
    assert!(!said.contains("own.py, outside"), "{said}");
    let said = person(&world, "merge sig script own", 7);
    assert!(said.contains("script: set aside (call)") && said.contains("own: merged"), "{said}");
}

#[test]
fn another_signature_and_a_new_caller_collide_and_a_caller_that_was_there_does_not() {
    let world = world();
    let _daemon = world.start();
    let changed = lib(&world, "def greet(name)", "def greet(name, loud)");
    let user = code(&["from lib import greet\n", "def hello():\n    return greet(1, 2)\n"]);
    branch(&world, "sig", "main", &[("lib.py", Some(&changed)), ("user.py", Some(&user))], "sig");
    branch(
        &world,
        "new",
        "main",
        &[("n.py", Some("import lib\n\n\ndef n():\n    return lib.greet(3)\n"))],
        "new",
    );
    branch(&world, "old", "main", &[("o.py", Some("def o():\n    return 1\n"))], "old");
    let said = person(&world, "merge sig new old", 7);
    assert!(said.contains("new: set aside (call)") && said.contains("old: merged"), "{said}");
    assert!(said.contains("no agent is told"), "{said}");
    // A person who knows better lets it pass.
    let said = person(&world, "merge new --with-symbols", 0);
    assert!(said.contains("new: merged"), "{said}");
}

#[test]
fn another_signature_and_a_change_of_a_function_that_calls_it_collide() {
    let world = world();
    let _daemon = world.start();
    let changed = lib(&world, "def greet(name)", "def greet(name, loud)");
    branch(&world, "sig", "main", &[("lib.py", Some(&changed))], "sig");
    let user = code(&["from lib import greet\n", "def hello():\n    return greet(1) + greet(2)\n"]);
    branch(&world, "user", "main", &[("user.py", Some(&user))], "user");
    let said = person(&world, "merge sig user", 7);
    assert!(
        said.contains("user: set aside (call)") && said.contains("user calls in user.py:hello"),
        "{said}"
    );
}

#[test]
fn one_symbol_that_both_sides_have_changed_is_caught_and_two_symbols_of_one_file_are_not() {
    let world = world();
    let _daemon = world.start();
    let first = lib(&world, "one = 1", "one = 10");
    let last = lib(&world, "seven = 7", "seven = 70");
    let beside = lib(&world, "    return name", "    return name * 2");
    branch(&world, "first", "main", &[("lib.py", Some(&first))], "first");
    branch(&world, "last", "main", &[("lib.py", Some(&last))], "last");
    branch(&world, "beside", "main", &[("lib.py", Some(&beside))], "beside");
    let said = person(&world, "merge first last beside", 7);
    assert!(said.contains("main and last have both changed long in lib.py"), "{said}");
    assert!(said.contains("first: merged") && said.contains("beside: merged"), "{said}");
    let text = std::fs::read_to_string(world.repo().join("lib.py")).unwrap();
    assert!(text.contains("one = 10") && text.contains("name * 2") && text.contains("seven = 7\n"));
}

#[test]
fn an_import_hides_neither_a_symbol_that_both_sides_change_nor_a_new_call() {
    let world = world();
    let _daemon = world.start();
    let with_import = |text: String| format!("import os\n{text}");
    branch(&world, "one", "main", &[("lib.py", Some(&lib(&world, "one = 1", "one = 10")))], "one");
    let both = with_import(lib(&world, "seven = 7", "seven = 70"));
    branch(&world, "both", "main", &[("lib.py", Some(&both))], "both");
    let changed = lib(&world, "def greet(name)", "def greet(name, loud)");
    branch(&world, "sig", "main", &[("lib.py", Some(&changed))], "sig");
    let user = code(&["from lib import greet, kept\n", "def hello():\n    return greet(1) + kept(1, 2)\n"]);
    branch(&world, "calls", "main", &[("user.py", Some(&user))], "calls");
    let said = person(&world, "merge one both sig calls", 7);
    assert!(said.contains("main and both have both changed long in lib.py"), "{said}");
    assert!(said.contains("calls: set aside (call)"), "{said}");
    assert!(said.contains("one: merged") && said.contains("sig: merged"), "{said}");
}

#[test]
fn of_a_file_that_cannot_be_read_as_a_whole_each_symbol_counts() {
    let world = repository(
        &[("odd.ts", "export function f() { return 1; }\n\n\n\n\n\nconst (;\n\n\n\n\n// end\n")],
        "",
    );
    let _daemon = world.start();
    let odd = |from: &str, to: &str| {
        std::fs::read_to_string(world.repo().join("odd.ts")).unwrap().replace(from, to)
    };
    branch(&world, "one", "main", &[("odd.ts", Some(&odd("return 1", "return 2")))], "one");
    branch(&world, "two", "main", &[("odd.ts", Some(&odd("// end", "// the end")))], "two");
    let said = person(&world, "merge one two", 7);
    assert!(said.contains("one: merged") && said.contains("two: set aside (symbol)"), "{said}");
}

fn agree(world: &World, symbol: &str) {
    let said = |by: &str, args: &[&str]| world.done(by, args);
    let offered: Value = said("ada", &["contract", "propose", symbol]);
    said("bob", &["contract", "accept", offered["id"].as_str().unwrap()]);
}

#[test]
fn a_broken_contract_keeps_a_branch_out_and_a_kept_one_does_not() {
    let world = world();
    let _daemon = world.start();
    agree(&world, "lib.py:kept");
    inbox(&world, "coder");
    let broken = lib(&world, "def kept(a, b)", "def kept(a)");
    branch(&world, "breaks", "main", &[("lib.py", Some(&broken))], &signed("break", "coder"));
    let kept = lib(&world, "    return a\n", "    return b\n");
    branch(&world, "keeps", "main", &[("lib.py", Some(&kept))], "keep");
    let before = tip(&world, "main");
    let said = person(&world, "merge breaks keeps --preview", 0);
    assert!(said.contains("2. breaks") && said.contains("last, since it breaks a contract"), "{said}");
    assert_eq!(tip(&world, "main"), before);
    let said = person(&world, "merge breaks keeps", 7);
    assert!(said.contains("keeps: merged") && said.contains("breaks: set aside"), "{said}");
    let read = inbox(&world, "coder");
    assert!(read.contains("of ada and bob says") && read.contains("kept"), "{read}");
    // A file that is gone with its contract is no other case.
    branch(&world, "gone", "main", &[("lib.py", None), ("user.py", None)], "gone");
    let said = person(&world, "merge gone", 7);
    assert!(said.contains("contract") && said.contains("its file would be gone"), "{said}");
    // One that has another name has its contract with it.
    let text = std::fs::read_to_string(world.repo().join("lib.py")).unwrap();
    let user = code(&["from lab import greet\n", "def hello():\n    return greet(1)\n"]);
    let files = [("lib.py", None), ("lab.py", Some(text.as_str())), ("user.py", Some(user.as_str()))];
    branch(&world, "moved", "main", &files, "moved");
    person(&world, "merge moved", 0);
    branch(
        &world,
        "later",
        "main",
        &[("lab.py", Some(&text.replace("def kept(a, b)", "def kept(b)")))],
        "later",
    );
    let said = person(&world, "merge later", 7);
    assert!(said.contains("later: set aside (contract)"), "{said}");
}

#[test]
fn what_an_agent_holds_keeps_a_branch_out_and_what_it_has_announced_is_told() {
    let world = world();
    let _daemon = world.start();
    world.done("ada", &["lock", "acquire", "lib.py:greet", "--ttl", "30m"]);
    world.done("bob", &["intent", "declare", "tidy", "--file", "user.py"]);
    let greet = lib(&world, "    return name", "    return name * 2");
    branch(&world, "held", "main", &[("lib.py", Some(&greet))], &signed("held", "ada"));
    let user = code(&["from lib import greet\n", "def hello():\n    return greet(5)\n"]);
    branch(&world, "told", "main", &[("user.py", Some(&user))], "told");
    let said = person(&world, "merge held told --preview", 0);
    for part in [
        "1. told",
        "2. held",
        "late, since ada holds",
        "held: ada has a lock on lib.py:greet",
        "announced: bob has announced",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Whose the branch is, its commits alone say: that opens no lock of theirs.
    let said = person(&world, "merge held told", 7);
    assert!(said.contains("held: set aside (held)") && said.contains("told: merged"), "{said}");
    person(&world, "merge held --with-held", 0);
}
