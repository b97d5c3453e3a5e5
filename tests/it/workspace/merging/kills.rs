//! kill -9 of the daemon at each step of a merge: the trunk is at the old commit or at the merged one, and
//! the next start brings the work tree to where its branch is, and leaves no lock.
//!
//! The daemon's git is a script that stops before or after one step, so that the moment is hit for certain.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{branch, entry, person, repository, tip};
use crate::support::repositories::well;
use crate::support::{Daemon, UP, World, eventually};

const SCRIPT: &str = r#"#!/bin/sh
real=$(PATH=/usr/local/bin:/usr/bin:/bin command -v git)
pause() { : > "@HOME@/stopped"; while [ -e "@HOME@/stop" ]; do /bin/sleep 0.02; done; }
step=; when=; skip=0
[ -e "@HOME@/stop" ] && read -r when step < "@HOME@/stop"
case " $* " in
*" $step "*)
    if [ -n "$step" ]; then
        if [ "$when" = before ]; then pause; exec "$real" "$@"; fi
        "$real" "$@"; done=$?; pause; exit $done
    fi ;;
esac
exec "$real" "$@"
"#;

fn start(world: &World) -> Daemon {
    let bin = world.path("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("git"), SCRIPT.replace("@HOME@", world.home().to_str().unwrap())).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut up = world.command(UP);
    up.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    world.start_as(up)
}

fn files() -> Vec<(String, String)> {
    (0..40).map(|n| (format!("d{}/f{n}", n % 4), format!("old {n}\n").repeat(200))).collect()
}

/// Each file is as one of these commits has it, and all are of one.
fn is_at(world: &World, commit: &str) -> bool {
    well(&world.repo(), &["diff", "--name-only", commit]).is_empty()
        && well(&world.repo(), &["diff", "--cached", "--name-only", commit]).is_empty()
        && well(&world.repo(), &["ls-files", "--others", "--exclude-standard"]).is_empty()
}

#[test]
fn after_a_kill_at_any_step_the_trunk_is_as_it_was_or_as_it_should_be() {
    let files = files();
    let steps = [
        "before merge-tree",
        "after merge-tree",
        "before commit-tree",
        "after commit-tree",
        "before read-tree",
        "after read-tree",
        "before checkout-index",
        "after checkout-index",
        "before update-ref",
        "after update-ref",
        "before diff-files",
        "after diff-files",
        "after --refresh",
    ];
    for step in steps {
        let old: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        let world = repository(&old, "");
        let first = tip(&world, "main");
        branch(&world, "side", "main", &[("side", Some("x\n"))], "side");
        let changed: Vec<(String, Option<String>)> = files
            .iter()
            .enumerate()
            .map(|(n, (path, text))| match n % 3 {
                0 => (path.clone(), None),
                1 => (path.clone(), Some(text.replace("old", "new"))),
                _ => (format!("e/{path}"), Some("fresh\n".into())),
            })
            .collect();
        let changed: Vec<(&str, Option<&str>)> =
            changed.iter().map(|(path, text)| (&**path, text.as_deref())).collect();
        branch(&world, "work", &first, &changed, "work");
        let mut daemon = start(&world);
        person(&world, "merge side", 0);
        let before = tip(&world, "main");
        person(&world, "merge queue add work", 0);
        fs::write(world.home().join("stop"), format!("{step}\n")).unwrap();
        person(&world, "merge queue run", 0);
        let stopped = world.home().join("stopped");
        eventually(&format!("{step} is reached"), || stopped.exists());
        daemon.kill();
        // A git of the daemon that is gone goes on, if one was under way.
        fs::remove_file(world.home().join("stop")).unwrap();
        let middle = tip(&world, "main");
        assert!(middle == before || is_merge_of(&world, &middle, &before), "{step}: {middle}");
        let _daemon = start(&world);
        eventually(&format!("{step}: it ends"), || entry(&world, "work")["state"] == "merged");
        let after = tip(&world, "main");
        assert!(is_merge_of(&world, &after, &before), "{step}: {after}");
        assert_eq!(entry(&world, "work")["trunk"], after.as_str(), "{step}");
        assert!(is_at(&world, "main"), "{step}: {}", well(&world.repo(), &["status", "--porcelain"]));
        let git = world.repo().join(".git");
        assert!(!super::is_half_way(&world, &git), "{step}");
        well(&world.repo(), &["fsck", "--no-dangling"]);
    }
}

/// Whether a commit is the merge of the branch into the trunk as it was.
fn is_merge_of(world: &World, commit: &str, trunk: &str) -> bool {
    let parents = well(&world.repo(), &["log", "-1", "--format=%P", commit]);
    parents.trim() == format!("{trunk} {}", tip(world, "work"))
}

#[test]
fn what_a_person_does_between_a_kill_and_the_next_start_is_theirs() {
    let world = repository(&[("a.txt", "old\n"), ("b.txt", "old\n"), ("c.txt", "old\n")], "");
    branch(
        &world,
        "work",
        "main",
        &[("a.txt", Some("new\n")), ("b.txt", None), ("c.txt", Some("new\n"))],
        "work",
    );
    let mut daemon = start(&world);
    person(&world, "merge queue add work", 0);
    fs::write(world.home().join("stop"), "after update-ref\n").unwrap();
    person(&world, "merge queue run", 0);
    eventually("the trunk is moved", || world.home().join("stopped").exists());
    daemon.kill();
    fs::remove_file(world.home().join("stop")).unwrap();
    // No git of theirs works in a tree that is half of each.
    let commit = crate::support::repositories::git(&world.repo(), &["commit", "-qam", "half"]);
    assert!(!commit.status.success());
    fs::write(world.repo().join("a.txt"), "theirs\n").unwrap();
    let _daemon = start(&world);
    eventually("it ends", || entry(&world, "work")["state"] == "merged");
    let text = |name: &str| fs::read_to_string(world.repo().join(name)).unwrap_or_else(|_| "-".into());
    assert_eq!(
        (text("a.txt").as_str(), text("b.txt").as_str(), text("c.txt").as_str()),
        ("theirs\n", "-", "new\n")
    );
    assert!(entry(&world, "work")["why"].as_str().unwrap().contains("a.txt"));
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]).trim(), "M a.txt");
}

#[test]
fn a_command_that_is_killed_leaves_the_run_to_the_daemon() {
    let world = repository(&[("a.txt", "old\n")], "[merge]\nchecks = [\"sleep 1\"]\n");
    let _daemon = world.start();
    branch(&world, "work", "main", &[("a.txt", Some("new\n"))], "work");
    person(&world, "merge queue add work", 0);
    // As after the end of the terminal: only the run was asked for.
    person(&world, "merge queue run", 0);
    eventually("it is merged", || entry(&world, "work")["state"] == "merged");
    assert_eq!(fs::read_to_string(world.repo().join("a.txt")).unwrap(), "new\n");
}

#[test]
fn a_contract_goes_along_with_its_file_although_the_daemon_was_killed_behind_the_move() {
    let login = "export function login(user: string): string { return user }\n";
    let world = repository(&[("src/auth.ts", login)], "");
    let first = tip(&world, "main");
    branch(&world, "work", &first, &[("src/auth.ts", None), ("src/session.ts", Some(login))], "work");
    let broken = login.replace("user: string)", "user: number)");
    branch(&world, "breaks", "work", &[("src/session.ts", Some(&broken))], "breaks");
    let mut daemon = start(&world);
    let offered = world.done("ada", &["contract", "propose", "src/auth.ts:login"]);
    world.done("bob", &["contract", "accept", offered["id"].as_str().unwrap()]);
    person(&world, "merge queue add work", 0);
    fs::write(world.home().join("stop"), "after update-ref\n").unwrap();
    person(&world, "merge queue run", 0);
    eventually("the trunk is moved", || world.home().join("stopped").exists());
    daemon.kill();
    fs::remove_file(world.home().join("stop")).unwrap();
    let _daemon = start(&world);
    eventually("it ends", || entry(&world, "work")["state"] == "merged");
    let said = person(&world, "merge breaks", 7);
    assert!(said.contains("set aside (contract)") && said.contains("src/session.ts"), "{said}");
}

#[test]
fn a_file_that_is_as_it_should_be_after_a_kill_is_not_called_one_with_changes() {
    let world = repository(&[("a.txt", "old\n"), ("b.txt", "old\n")], "");
    let files = [("a.txt", Some("new\n")), ("b.txt", Some("new\n")), ("c.txt", Some("new\n"))];
    branch(&world, "work", "main", &files, "work");
    let mut daemon = start(&world);
    person(&world, "merge queue add work", 0);
    fs::write(world.home().join("stop"), "after update-ref\n").unwrap();
    person(&world, "merge queue run", 0);
    eventually("the trunk is moved", || world.home().join("stopped").exists());
    daemon.kill();
    fs::remove_file(world.home().join("stop")).unwrap();
    // As a copy between file systems leaves it that was broken off at its last step, for an old file and for a new one.
    fs::write(world.repo().join("a.txt"), "new\n").unwrap();
    fs::write(world.repo().join("c.txt"), "new\n").unwrap();
    let _daemon = start(&world);
    eventually("it ends", || entry(&world, "work")["state"] == "merged");
    let shown = entry(&world, "work").to_string();
    assert!(!shown.contains("changes of yours"), "{shown}");
    assert!(is_at(&world, "main"), "{}", well(&world.repo(), &["status", "--porcelain"]));
}
