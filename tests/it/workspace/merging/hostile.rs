//! Names, contents and circumstances that are meant to mislead a merge, or that stand in its way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::symbols::inbox;
use super::{bench, branch, entry, person, queue, repository, tip};
use crate::support::own_api::own;
use crate::support::repositories::{git, well};
use crate::support::{World, eventually};

fn world() -> World {
    repository(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("d/e.txt", "one\n")], "")
}

/// The status and the error of a request about one branch.
fn preview(world: &World, name: &str) -> (u16, String) {
    let (status, said) = own(world, ("POST", "/preview-merge"), &[], &json!({ "branches": [name] }));
    (status, said.to_string())
}

#[test]
fn a_name_is_a_branch_and_nothing_else() {
    let world = world();
    let _daemon = world.start();
    let names = [
        "--upload-pack=touch x",
        "-x",
        "..",
        "a..b",
        "refs/tags/v1",
        "refs/heads/../x",
        "HEAD",
        "@{-1}",
        "main^",
        "a b",
        "a\nb",
        "\u{1b}[2J",
        "",
        "/",
        "a.lock",
        "heads/nothing",
        ".git/config",
        "v1",
        &"x".repeat(400),
    ];
    well(&world.repo(), &["tag", "v1"]);
    for name in names {
        let (status, said) = preview(&world, name);
        assert_eq!(status, 400, "{name:?}: {said}");
    }
    let (status, _) =
        own(&world, ("POST", "/preview-merge"), &[], &json!({ "branches": ["x"], "into": "--x" }));
    assert_eq!(status, 400);
    for body in [
        json!({}),
        json!({ "branches": [] }),
        json!({ "branches": ["main"] }),
        json!({ "branches": vec!["b"; 200] }),
    ] {
        let (status, said) = own(&world, ("POST", "/preview-merge"), &[], &body);
        assert!(status == 400 || status == 413, "{body}: {status} {said}");
    }
    // A tag of the same name is none of the branch's.
    let commit = branch(&world, "same", "main", &[("a.txt", Some("branch\n"))], "branch");
    well(&world.repo(), &["tag", "same", "main"]);
    assert!(preview(&world, "same").1.contains(&commit));
    assert!(preview(&world, "refs/heads/same").1.contains(&commit));
    person(&world, "merge same", 0);
    assert_eq!(well(&world.repo(), &["show", "refs/heads/main:a.txt"]), "branch\n");
    assert!(!world.repo().join("x").exists());
}

#[test]
fn no_hook_no_filter_no_driver_and_no_monitor_of_the_repository_runs() {
    let world = world();
    let _daemon = world.start();
    let repo = world.repo();
    let trap = world.path("trap.sh");
    let mark = world.path("sprung");
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    let attributes = "*.txt merge=trap diff=trap\n*.bin filter=trap\n";
    let files = [(".gitattributes", Some(attributes)), ("a.txt", Some("two\n")), ("c.txt", Some("new\n"))];
    branch(&world, "work", "main", &files, "work");
    branch(&world, "other", "main", &[("b.txt", Some("two\n"))], "other");
    branch(&world, "text", "main", &[("a.txt", Some("three\n"))], "text");
    branch(
        &world,
        "filtered",
        "main",
        &[(".gitattributes", Some(attributes)), ("x.bin", Some("1\n"))],
        "filtered",
    );
    for hook in [
        "reference-transaction",
        "post-merge",
        "pre-merge-commit",
        "post-index-change",
        "post-checkout",
        "commit-msg",
        "pre-commit",
    ] {
        fs::create_dir_all(repo.join(".git/hooks")).unwrap();
        fs::copy(trap, repo.join(".git/hooks").join(hook)).unwrap();
    }
    for (key, value) in [
        ("filter.trap.smudge", trap),
        ("filter.trap.clean", trap),
        ("filter.trap.process", trap),
        ("filter.trap.required", "true"),
        ("merge.trap.driver", trap),
        ("diff.trap.textconv", trap),
        ("diff.trap.command", trap),
        ("diff.external", trap),
        ("core.fsmonitor", trap),
        ("core.editor", trap),
        ("core.pager", trap),
        ("gpg.program", trap),
        ("commit.gpgsign", "true"),
        ("core.sshcommand", trap),
    ] {
        well(&repo, &["-c", "core.hooksPath=/dev/null", "config", key, value]);
    }
    let said = person(&world, "merge work other text filtered --with-settings", 7);
    assert!(
        said.contains("work: merged")
            && said.contains("other: merged")
            && said.contains("text: set aside (text)"),
        "{said}"
    );
    assert!(
        said.contains("filtered: set aside (in_the_way)") && said.contains("the filter \\\"trap\\\"")
            || said.contains("the filter \"trap\""),
        "{said}"
    );
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap_or_default());
    assert!(!repo.join(".git/index.lock").exists());
}

#[test]
fn what_a_person_has_in_the_work_tree_is_in_the_way_and_stays() {
    let world = world();
    let _daemon = world.start();
    let repo = world.repo();
    branch(&world, "work", "main", &[("a.txt", Some("two\n")), ("new/x.txt", Some("x\n"))], "work");
    let before = tip(&world, "main");
    let refused = |why: &str| {
        let said = person(&world, "merge work", 7);
        assert!(said.contains("set aside (in_the_way)") && said.contains(why), "{why}: {said}");
        assert_eq!(tip(&world, "main"), before);
        assert!(!super::is_half_way(&world, &repo.join(".git")));
    };
    fs::write(repo.join("a.txt"), "mine\n").unwrap();
    refused("commit or stash");
    well(&repo, &["add", "a.txt"]);
    refused("commit or stash");
    well(&repo, &["reset", "-q", "--hard"]);
    fs::create_dir(repo.join("new")).unwrap();
    fs::write(repo.join("new/x.txt"), "mine\n").unwrap();
    refused("git does not know it");
    fs::remove_dir_all(repo.join("new")).unwrap();
    fs::write(repo.join("new"), "mine\n").unwrap();
    refused("is in the way of");
    fs::remove_file(repo.join("new")).unwrap();
    let outside = world.path("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, repo.join("new")).unwrap();
    refused("is in the way of");
    fs::remove_file(repo.join("new")).unwrap();
    fs::write(repo.join(".git/index.lock"), "").unwrap();
    let said = person(&world, "merge work", 7);
    assert!(said.contains("index.lock"), "{said}");
    assert!(repo.join(".git/index.lock").exists(), "another's lock stays");
    fs::remove_file(repo.join(".git/index.lock")).unwrap();
    fs::write(repo.join(".git/MERGE_HEAD"), &before).unwrap();
    refused("a merge is under way there");
    fs::remove_file(repo.join(".git/MERGE_HEAD")).unwrap();
    // What is in no file that changes is in nobody's way.
    fs::write(repo.join("b.txt"), "mine\n").unwrap();
    fs::write(repo.join("loose.txt"), "mine\n").unwrap();
    person(&world, "merge work", 0);
    assert_eq!(well(&repo, &["status", "--porcelain"]), " M b.txt\n?? loose.txt\n");
    assert!(fs::read_dir(&outside).unwrap().next().is_none());
}

#[test]
fn files_of_all_kinds_come_as_git_writes_them() {
    let world = world();
    let _daemon = world.start();
    let repo = world.repo();
    let bench = bench(&world);
    well(&bench, &["checkout", "-q", "-b", "kinds", "main"]);
    fs::write(bench.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bench.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("../../etc/passwd", bench.join("link")).unwrap();
    fs::write(bench.join("bytes"), [0, 159, 146, 150, 0]).unwrap();
    // A file becomes a folder, and a folder a file.
    fs::remove_file(bench.join("a.txt")).unwrap();
    fs::create_dir(bench.join("a.txt")).unwrap();
    fs::write(bench.join("a.txt/in"), "in\n").unwrap();
    fs::remove_dir_all(bench.join("d")).unwrap();
    fs::write(bench.join("d"), "file\n").unwrap();
    well(&bench, &["add", "-A"]);
    well(&bench, &["commit", "-qm", "kinds"]);
    well(&bench, &["checkout", "-q", "--detach"]);
    branch(&world, "beside", "main", &[("b.txt", Some("two\n"))], "beside");
    person(&world, "merge beside kinds", 0);
    assert_eq!(well(&repo, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_link(repo.join("link")).unwrap().to_str(), Some("../../etc/passwd"));
    assert_ne!(fs::metadata(repo.join("run.sh")).unwrap().permissions().mode() & 0o111, 0);
    assert!(repo.join("a.txt/in").is_file() && repo.join("d").is_file());
    // Two branches of which one has a file where the other has a folder.
    branch(&world, "file", "main", &[("spot", Some("x\n"))], "file");
    branch(&world, "folder", "main", &[("spot/in", Some("x\n"))], "folder");
    let said = person(&world, "merge file folder --preview", 0);
    assert!(said.contains("file and folder collide"), "{said}");
    let said = person(&world, "merge file folder", 7);
    assert!(said.contains("folder: set aside (text)"), "{said}");
    assert_eq!(well(&repo, &["status", "--porcelain"]), "");
}

#[test]
fn trailers_give_no_name_a_right_and_no_line_of_their_own() {
    let world = world();
    let _daemon = world.start();
    let lies = "work\n\nProvost-Task: nothing\nProvost-Agent: bo\u{1b}[31mss\nProvost-Agent: victim\n";
    branch(&world, "lies", "main", &[("a.txt", Some("two\n"))], lies);
    branch(&world, "first", "main", &[("a.txt", Some("three\n"))], "first\n\nProvost-Agent: x\u{7}y\n");
    branch(&world, "ahead", "main", &[("b.txt", Some("two\n"))], "ahead");
    person(&world, "merge ahead", 0);
    inbox(&world, "victim");
    let said = person(&world, "merge first lies", 7);
    assert!(said.contains("lies: set aside (text), returned to victim"), "{said}");
    assert!(inbox(&world, "victim").contains("which the daemon cannot prove"));
    let message = well(&world.repo(), &["log", "-1", "--format=%B", "main"]);
    assert!(message.starts_with("Merge branch 'first'") && !message.contains('\u{7}'), "{message}");
}

#[test]
fn histories_that_are_unrelated_crossed_or_cut_off() {
    let world = world();
    let _daemon = world.start();
    let (repo, bench) = (world.repo(), bench(&world));
    well(&bench, &["checkout", "-q", "--orphan", "apart"]);
    well(&bench, &["commit", "-qm", "apart"]);
    well(&bench, &["checkout", "-q", "--detach", "main"]);
    let said = person(&world, "merge apart", 7);
    assert!(said.contains("their histories are unrelated"), "{said}");
    // Each of two branches has merged the other's first commit.
    let one = branch(&world, "one", "main", &[("a.txt", Some("two\n"))], "one");
    let two = branch(&world, "two", "main", &[("b.txt", Some("two\n"))], "two");
    for (name, other) in [("one", &two), ("two", &one)] {
        well(&bench, &["checkout", "-q", name]);
        well(&bench, &["merge", "-q", "--no-edit", other]);
    }
    well(&bench, &["checkout", "-q", "--detach", "main"]);
    branch(&world, "one", "one", &[("c.txt", Some("c\n"))], "more");
    branch(&world, "two", "two", &[("e.txt", Some("e\n"))], "more");
    person(&world, "merge one two", 0);
    assert_eq!(well(&repo, &["status", "--porcelain"]), "");
    assert!(repo.join("c.txt").exists() && repo.join("e.txt").exists());
    // What the trunk has is not merged once more.
    let before = tip(&world, "main");
    let said = person(&world, "merge one", 0);
    assert!(said.contains("is in it already"), "{said}");
    assert_eq!(tip(&world, "main"), before);
}

#[test]
fn a_trunk_that_is_checked_out_elsewhere_twice_or_nowhere_is_moved_alike() {
    let world = world();
    let _daemon = world.start();
    let repo = world.repo();
    branch(&world, "work", "main", &[("a.txt", Some("two\n"))], "work");
    well(&repo, &["branch", "release", "main"]);
    person(&world, "merge work --into release", 0);
    assert_eq!(well(&repo, &["show", "release:a.txt"]), "two\n");
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "one\n");
    let twice = world.path("twice");
    well(&repo, &["worktree", "add", "-q", "-f", twice.to_str().unwrap(), "main"]);
    fs::write(twice.join("a.txt"), "mine\n").unwrap();
    let said = person(&world, "merge work", 7);
    assert!(said.contains("twice cannot follow"), "{said}");
    assert_eq!(well(&repo, &["status", "--porcelain"]), "");
    assert!(!repo.join(".git/index.lock").exists());
    well(&twice, &["checkout", "-q", "a.txt"]);
    person(&world, "merge work", 0);
    for tree in [&repo, &twice] {
        assert_eq!(well(tree, &["status", "--porcelain"]), "");
        assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "two\n");
    }
}

#[test]
fn a_trunk_that_a_person_moves_meanwhile_is_merged_into_once_more() {
    let world = repository(
        &[("a.txt", "one\n"), ("check.sh", "touch /dev/null; sleep 2\n")],
        "[merge]\nchecks = [\"sh check.sh\"]\n",
    );
    let _daemon = world.start();
    branch(&world, "work", "main", &[("a.txt", Some("two\n"))], "work");
    let theirs = branch(&world, "theirs", "main", &[("b.txt", Some("b\n"))], "theirs");
    person(&world, "merge queue add work", 0);
    person(&world, "merge queue run", 0);
    eventually("it is checked", || {
        entry(&world, "work")["what"].as_str().is_some_and(|it| it.starts_with("check"))
    });
    well(&world.repo(), &["merge", "-q", "--ff-only", "theirs"]);
    eventually("it is merged", || entry(&world, "work")["state"] == "merged");
    let parents = well(&world.repo(), &["log", "-1", "--format=%P", "main"]);
    assert_eq!(parents.trim(), format!("{theirs} {}", tip(&world, "work")));
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn git_that_does_not_know_the_person_is_told_so() {
    let world = world();
    let _daemon = world.start();
    branch(&world, "work", "main", &[("a.txt", Some("two\n"))], "work");
    well(&world.repo(), &["config", "--unset", "user.name"]);
    let said = person(&world, "merge work", 7);
    assert!(said.contains("set user.name and user.email"), "{said}");
    // Names in it are data, and no line of a commit.
    assert!(git(&world.repo(), &["config", "user.name", "Pat <x>"]).status.success());
    person(&world, "merge work", 7);
    assert_eq!(queue(&world).len(), 1);
}

#[test]
fn a_branch_of_ten_thousand_files_is_merged_and_a_submodule_is_told() {
    let world = world();
    let _daemon = world.start();
    let bench = bench(&world);
    well(&bench, &["checkout", "-q", "-b", "many", "main"]);
    for folder in 0..100 {
        fs::create_dir_all(bench.join(format!("many/{folder}"))).unwrap();
        for n in 0..100 {
            fs::write(bench.join(format!("many/{folder}/{n}.txt")), format!("{folder} {n}\n")).unwrap();
        }
    }
    well(&bench, &["add", "-A"]);
    well(&bench, &["commit", "-qm", "many"]);
    well(&bench, &["checkout", "-q", "--detach", "main"]);
    branch(&world, "beside", "main", &[("b.txt", Some("two\n"))], "beside");
    person(&world, "merge beside many", 0);
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
    assert!(world.repo().join("many/99/99.txt").exists());
    let commit = tip(&world, "main");
    well(&bench, &["checkout", "-q", "-b", "module", "main"]);
    well(&bench, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},sub")]);
    well(&bench, &["commit", "-qm", "module"]);
    well(&bench, &["checkout", "-q", "-f", "--detach", "main"]);
    let said = person(&world, "merge module", 7);
    assert!(said.contains("set aside (settings)") && said.contains("sub"), "{said}");
    person(&world, "merge module --with-settings", 0);
    assert!(world.repo().join("sub").is_dir());
}

#[test]
fn a_clone_that_has_not_all_of_the_history_merges_what_it_has() {
    let world = World::new();
    let (repo, origin) = (world.repo(), world.path("origin"));
    fs::create_dir(&origin).unwrap();
    well(&origin, &["init", "-q", "-b", "main"]);
    for n in 0..3 {
        fs::write(origin.join("a.txt"), format!("{n}\n")).unwrap();
        well(&origin, &["add", "-A"]);
        well(&origin, &["commit", "-qm", "more"]);
    }
    well(&origin, &["branch", "old", "main~2"]);
    let url = format!("file://{}", origin.display());
    well(&repo, &["symbolic-ref", "HEAD", "refs/heads/start"]);
    well(&repo, &["fetch", "-q", "--depth", "1", &url, "main:main", "old:old"]);
    well(&repo, &["checkout", "-q", "main"]);
    well(&repo, &["config", "user.name", "Pat"]);
    well(&repo, &["config", "user.email", "pat@example.invalid"]);
    let _daemon = world.start();
    branch(&world, "one", "main", &[("b.txt", Some("b\n"))], "one");
    branch(&world, "two", "main", &[("c.txt", Some("c\n"))], "two");
    person(&world, "merge one two", 0);
    assert!(well(&repo, &["status", "--porcelain"]).is_empty() && repo.join("c.txt").exists());
    // Where the common commit is cut off, git knows of none.
    let said = person(&world, "merge old", 7);
    assert!(said.contains("git fetch --unshallow"), "{said}");
}

#[test]
fn a_folder_gives_way_to_a_file_only_if_all_in_it_is_gits() {
    let world = world();
    let _daemon = world.start();
    branch(&world, "flat", "main", &[("d/e.txt", None), ("d", Some("file\n"))], "flat");
    fs::write(world.repo().join("d/mine.txt"), "mine\n").unwrap();
    let said = person(&world, "merge flat", 7);
    assert!(said.contains("set aside (in_the_way)"), "{said}");
    assert!(world.repo().join("d/e.txt").exists() && world.repo().join("d/mine.txt").exists());
    fs::remove_file(world.repo().join("d/mine.txt")).unwrap();
    person(&world, "merge flat", 0);
    assert!(world.repo().join("d").is_file());
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
}
