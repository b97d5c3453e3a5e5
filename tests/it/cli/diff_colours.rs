//! `provost task diff` at a terminal: colours by language, none where they are not wanted, and a patch to the letter for programs.

use serde_json::Value;

use crate::support::World;
use crate::support::rules::ALLOW;
use crate::support::terminal::at_a_hosts_terminal;

const CODE: &str = "# why\ndef login(name):\n    return check(name)\n";

#[test]
fn a_difference_at_a_terminal_has_the_colours_of_its_language_and_programs_get_the_patch() {
    let world = World::new();
    world.configure("[[agent]]\nid = \"coder\"\ncommand = [\"/bin/sh\"]\n");
    world.rule(ALLOW);
    world.write("src/auth.py", CODE);
    let _daemon = world.start();
    let script = "sed -i 's/check(name)/check(name, other)/' src/auth.py; printf 'x = \"\\033[2J\\342\\200\\256\"\\n' > odd.py";
    let done =
        world.command(&["delegate", "--worker", "coder", script, "--wait", "--json"]).output().unwrap();
    let task: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    let id = task["id"].as_str().unwrap();
    let said = at_a_hosts_terminal(&world, &format!("provost task diff {id}"));
    // The word of the language, what has changed, and the sign of the line.
    for there in
        ["\u{1b}[32m+\u{1b}[m", "\u{1b}[32;34mreturn\u{1b}[m", "\u{1b}[32;4m, other\u{1b}[m", "\u{1b}[36m@@"]
    {
        assert!(said.contains(there), "{there:?} is not in {said:?}");
    }
    assert!(
        said.contains("\\u{1b}[2J\\u{202e}") && !said.contains("\u{1b}[2J") && !said.contains('\u{202e}'),
        "{said:?}"
    );
    let plain = at_a_hosts_terminal(&world, &format!("export NO_COLOR=1; provost task diff {id}"));
    assert!(!plain.contains('\u{1b}') && plain.contains("+    return check(name, other)"), "{plain:?}");
    // The same text in both: a colour only repeats it.
    let mut bare = String::new();
    let mut rest = said.as_str();
    while let Some(at) = rest.find("\u{1b}[") {
        bare.push_str(&rest[..at]);
        rest = &rest[at + rest[at..].find('m').unwrap() + 1..];
    }
    assert_eq!(bare + rest, plain);
    let patch = world.command(&["task", "diff", id]).output().unwrap();
    let patch = String::from_utf8(patch.stdout).unwrap();
    assert!(
        patch.contains("+    return check(name, other)\n") && patch.contains("\u{1b}[2J\u{202e}"),
        "{patch:?}"
    );
    assert!(!patch.contains("\u{1b}[32"), "{patch:?}");
}
