//! Twenty branches of agents in one queue: three merge cleanly as text and break a contract or a caller, one
//! conflicts as text, one fails its check. All five are returned to their owners, the others are merged, and
//! each commit of the trunk passes.

use std::fs;

use super::symbols::{inbox, signed};
use super::{branch, entry, person, queue, repository, tip};
use crate::support::World;
use crate::support::repositories::well;

/// The check: each module can be read and called, and no forbidden file is there.
const CHECK: &str = "test ! -e forbidden && python3 run.py";

const RUN: &str = "import glob, importlib\n\
for name in sorted(glob.glob('m*.py')):\n    importlib.import_module(name[:-3]).run()\nprint('all ran')\n";

const LIB: &str = "def parse(text):\n    return text\n\n\n# between\n# between\n# between\n\n\n\
def agreed(a, b):\n    return a\n\n\n# between\n# between\n# between\n\n\n\
def render(text):\n    return text\n";

fn module(n: usize) -> String {
    format!("def run():\n    return {n}\n")
}

/// Runs the check on a commit of the trunk, in a folder of its own.
fn is_green(world: &World, commit: &str) -> bool {
    let folder = world.path(&format!("green-{commit}"));
    well(&world.repo(), &["worktree", "add", "-q", "--detach", folder.to_str().unwrap(), commit]);
    let done = std::process::Command::new("sh").args(["-c", CHECK]).current_dir(&folder).output().unwrap();
    well(&world.repo(), &["worktree", "remove", "--force", folder.to_str().unwrap()]);
    done.status.success()
}

#[test]
fn of_twenty_branches_every_bad_one_is_caught_and_the_trunk_is_always_green() {
    let mut files = vec![("run.py".to_owned(), RUN.to_owned()), ("lib.py".to_owned(), LIB.to_owned())];
    files.extend((0..3).map(|n| (format!("m{n}.py"), module(n))));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let world = repository(&files, &format!("[merge]\nchecks = [\"{CHECK}\"]\ncheck_timeout = \"2m\"\n"));
    let _daemon = world.start();
    let offered = world.done("ada", &["contract", "propose", "lib.py:agreed"]);
    world.done("bob", &["contract", "accept", offered["id"].as_str().unwrap()]);
    let first = tip(&world, "main");
    let mut names = Vec::new();
    let mut add = |name: &str, files: &[(&str, Option<&str>)]| {
        let message = signed(name, &format!("agent-{name}"));
        branch(&world, name, &first, files, &message);
        names.push(name.to_owned());
    };
    // Fifteen that are good, among them one that gives a function another name.
    for n in 10..24 {
        add(&format!("good{n}"), &[(&format!("m{n}.py"), Some(&module(n)))]);
    }
    let renamed = LIB.replace("def parse(text)", "def read(text)");
    add("good-renames", &[("lib.py", Some(&renamed))]);
    // Three merge cleanly as text: a caller of the old name, one that breaks the contract, and one that gives
    // what is called by another one a further parameter.
    add("bad-caller", &[("m30.py", Some("import lib\n\n\ndef run():\n    return lib.parse('x')\n"))]);
    add("bad-contract", &[("lib.py", Some(&LIB.replace("def agreed(a, b)", "def agreed(a)")))]);
    let both = "from lib import parse\n\n\ndef run():\n    return parse('y') if False else 1\n";
    add("bad-quiet", &[("m31.py", Some(both))]);
    // One conflicts as text, and one fails its check.
    add("bad-text", &[("m10.py", Some("def run():\n    return 'another'\n"))]);
    add("bad-check", &[("forbidden", Some("\n"))]);
    assert_eq!(names.len(), 20);
    // Agents that the daemon knows are told.
    names.iter().for_each(|it| drop(inbox(&world, &format!("agent-{it}"))));
    person(&world, &format!("merge {}", names.join(" ")), 7);
    let expected = [
        ("bad-caller", "call"),
        ("bad-contract", "contract"),
        ("bad-quiet", "call"),
        ("bad-text", "text"),
        ("bad-check", "check"),
    ];
    for (name, cause) in expected {
        let entry = entry(&world, name);
        assert_eq!((&entry["state"], &entry["what"]), (&"set_aside".into(), &cause.into()), "{entry}");
        assert_eq!(entry["told"], format!("agent-{name}"), "{entry}");
        let read = inbox(&world, &format!("agent-{name}"));
        assert!(read.contains(&format!("Branch {name} is not merged into main")), "{read}");
    }
    let merged = queue(&world).iter().filter(|it| it["state"] == "merged").count();
    assert_eq!(merged, 15);
    // Each commit at which the trunk ever was passes the check.
    let log = well(&world.repo(), &["reflog", "show", "--format=%H", "refs/heads/main"]);
    let commits: Vec<&str> = log.lines().collect();
    assert_eq!(commits.len(), 16, "{log}");
    for commit in commits {
        assert!(is_green(&world, commit), "the trunk was red at {commit}");
    }
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
    assert!(fs::read_to_string(world.repo().join("lib.py")).unwrap().contains("def read(text)"));
    let said = world.command(&["journal", "verify"]).output().unwrap();
    assert!(said.status.success());
}
