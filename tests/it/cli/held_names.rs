//! Names that agents use for what they hold: of several symbols, as a language writes them, of folders, and in files that cannot
//! be read.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::World;

const SHAPES: &str = "pub struct Circle;\n\nimpl Circle {\n    pub fn area(&self) -> f64 {\n        1.0\n    }\n}\n\n\
                      pub struct Square;\n\nimpl Square {\n    pub fn area(&self) -> f64 {\n        2.0\n    }\n}\n";

/// Whether an agent may write this content: the exit code.
fn may_write(world: &World, agent: &str, file: &str, content: &str) -> i32 {
    let mut check = world.command(&["file", "check", file, "--agent", agent, "--stdin-content"]);
    let mut check = check.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    check.wait().unwrap().code().unwrap()
}

fn is_free(world: &World, agent: &str, place: &str) -> bool {
    let code = world.command(&["file", "check", place, "--agent", agent]).output().unwrap().status.code();
    assert!(matches!(code, Some(0 | 5)), "{place}: {code:?}");
    code == Some(0)
}

#[test]
fn a_lock_by_a_name_of_several_symbols_holds_each_of_them() {
    let world = World::new();
    world.write("src/shapes.rs", SHAPES);
    let _daemon = world.start();
    let held = world.done("a", &["lock", "src/shapes.rs:area"]);
    assert!(held.to_string().contains("ambiguous_symbol"), "{held}");
    for symbol in ["Circle.area", "Square.area"] {
        let place = format!("src/shapes.rs:{symbol}");
        let (code, said) = world.ask("b", &["lock", &place]);
        assert_eq!(code, 5, "{symbol} is held: {said}");
        assert!(!is_free(&world, "b", &place) && is_free(&world, "a", &place), "{symbol}");
    }
    let edited = SHAPES.replace("2.0", "3.0");
    assert_eq!(may_write(&world, "a", "src/shapes.rs", &edited), 0, "its holder writes");
    assert_eq!(may_write(&world, "b", "src/shapes.rs", &edited), 5);
    // The other way round: who asks for all waits for who has one.
    world.done("a", &["unlock", "src/shapes.rs:area"]);
    world.done("b", &["lock", "src/shapes.rs:Square.area"]);
    assert_eq!(world.ask("a", &["lock", "src/shapes.rs:area"]).0, 5);
    world.done("a", &["lock", "src/shapes.rs:Circle.area"]);
}

#[test]
fn a_check_counts_what_several_names_share_and_comments_as_hooks_do() {
    let world = World::new();
    let cases = [
        ("s.c", "y", "int x, y;\nint q;\n", "long x, y;\nint q;\n", "int x, y;\nlong q;\n"),
        (
            "s.ts",
            "x",
            "export const x = 1, y = 2;\nlet q = 1;\n",
            "const x = 1, y = 2;\nlet q = 1;\n",
            "export const x = 1, y = 2;\nlet q = 2;\n",
        ),
        (
            "s.go",
            "Y",
            "package p\n\nvar X, Y int\n\nvar q = 1\n",
            "package p\n\nvar X, Y uint\n\nvar q = 1\n",
            "package p\n\nvar X, Y int\n\nvar q = 2\n",
        ),
        (
            "s.rs",
            "f",
            "/// Says one.\nfn f() {}\n\nfn q() {}\n",
            "/// Says two.\nfn f() {}\n\nfn q() {}\n",
            "/// Says one.\nfn f() {}\n\nfn q() { f() }\n",
        ),
    ];
    cases.iter().for_each(|(file, _, text, ..)| world.write(file, text));
    let _daemon = world.start();
    for (file, symbol, _, touches, is_beside) in cases {
        world.done("a", &["lock", &format!("{file}:{symbol}")]);
        assert_eq!(may_write(&world, "b", file, touches), 5, "{file}");
        assert_eq!(may_write(&world, "a", file, touches), 0, "{file}: its holder");
        assert_eq!(may_write(&world, "b", file, is_beside), 0, "{file}: what is beside it");
    }
}

#[test]
fn a_symbol_is_known_as_its_language_writes_it() {
    let world = World::new();
    world.write("src/shapes.rs", SHAPES);
    world.write("pkg/store.go", "package pkg\n\ntype Store struct{}\n\nfunc (s *Store) Put(n int) {}\n");
    let _daemon = world.start();
    for (as_written, path) in [
        ("src/shapes.rs:Circle::area", "src/shapes.rs:Circle.area"),
        ("pkg/store.go:(*Store).Put", "pkg/store.go:Store.Put"),
    ] {
        world.done("a", &["lock", path]);
        assert!(!is_free(&world, "b", as_written) && is_free(&world, "a", as_written), "{as_written}");
        world.done("a", &["unlock", path]);
        let held = world.done("a", &["lock", as_written]);
        assert!(!held.to_string().contains("unknown_symbol"), "{held}");
        assert_eq!(world.ask("b", &["lock", path]).0, 5, "{as_written} holds {path}");
        world.done("a", &["unlock", as_written]);
    }
}

#[test]
fn a_folder_is_not_locked_and_what_is_claimed_or_announced_of_it_counts_for_its_files() {
    let world = World::new();
    world.write("py/sums.py", "def total():\n    return 1\n");
    world.write("pyx/sums.py", "def total():\n    return 1\n");
    let _daemon = world.start();
    let (code, said): (i32, Value) = world.ask("a", &["lock", "py"]);
    assert!(code != 0 && said.to_string().contains("is a folder"), "{said}");
    assert!(is_free(&world, "b", "py/sums.py"));
    world.done("a", &["claim", "acquire", "py"]);
    assert!(!is_free(&world, "b", "py/sums.py") && is_free(&world, "a", "py/sums.py"));
    assert!(is_free(&world, "b", "pyx/sums.py"), "another folder");
    world.done("a", &["claim", "release", "py"]);
    world.done("a", &["intent", "declare", "all of it", "--file", "py"]);
    let near = world.done("b", &["file", "check", "py/sums.py"]);
    assert!(near["near"].to_string().contains("all of it"), "{near}");
    let far = world.done("b", &["file", "check", "pyx/sums.py"]);
    assert!(!far["near"].to_string().contains("all of it"), "{far}");
}

#[test]
fn in_a_file_that_cannot_be_read_the_earlier_agent_writes_and_the_later_one_waits() {
    let world = World::new();
    let broken = "package a\n\nfunc Good() int {\n\treturn 1\n}\n\nfunc Good2( {\n";
    world.write("bad.go", broken);
    world.write("README.txt", "x\ny\n");
    let _daemon = world.start();
    for (file, names, old) in [("bad.go", ["Good", "Good2"], broken), ("README.txt", ["x", "y"], "x\ny\n")] {
        for (agent, name) in ["a", "b"].into_iter().zip(names) {
            world.done(agent, &["lock", &format!("{file}:{name}")]);
        }
        // What is known of a file that does not parse: this is not in the earlier agent's function.
        let later = if file == "bad.go" { 0 } else { 5 };
        let edited = format!("{old}\n// more\n");
        assert_eq!(may_write(&world, "a", file, &edited), 0, "{file}: the earlier one");
        assert_eq!(may_write(&world, "b", file, &edited), later, "{file}: the later one");
    }
    let edited = broken.replace("return 1", "return 2");
    assert_eq!(may_write(&world, "a", "bad.go", &edited), 0, "its own");
    assert_eq!(may_write(&world, "b", "bad.go", &edited), 5, "the other one's");
}
