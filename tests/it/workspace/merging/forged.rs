//! A process that may write git's folder, as a worker with `git = "write"` may, makes locks and folders of ours there: the
//! daemon writes nothing for them, writes through none of them, and waits for none of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{branch, person, repository, tip};
use crate::support::World;
use crate::support::repositories::well;

/// A lock with our text for a move of the trunk that some other process has made, and files for it where ours were once.
fn forge(world: &World) {
    let git = world.repo().join(".git");
    let old = tip(world, "main");
    branch(world, "theirs", "main", &[(".vscode/tasks.json", Some("{\"evil\":1}\n"))], "theirs");
    let new = tip(world, "theirs");
    well(&world.repo(), &["update-ref", "refs/heads/main", &new]);
    let beside = git.join("provost-merge");
    fs::create_dir_all(beside.join("files/.vscode")).unwrap();
    fs::write(beside.join("files/.vscode/tasks.json"), "{\"evil\":2}\n").unwrap();
    fs::copy(git.join("index"), beside.join("old")).unwrap();
    fs::copy(git.join("index"), beside.join("new")).unwrap();
    fs::write(git.join("index.lock"), format!("provost merge {old} {new}\n")).unwrap();
}

#[test]
fn a_lock_with_our_text_has_nothing_written_at_a_start_or_at_a_merge() {
    let world = repository(&[("a.txt", "a\n")], "");
    let mut daemon = world.start();
    person(&world, "merge queue list", 0);
    daemon.kill();
    drop(daemon);
    forge(&world);
    let _daemon = world.start();
    branch(&world, "other", "main", &[("a.txt", Some("b\n"))], "other");
    let said = person(&world, "merge other", 7);
    assert!(said.contains("index.lock"), "{said}");
    assert!(!world.repo().join(".vscode").exists(), "what another process has put there is not written");
    fs::remove_file(world.repo().join(".git/index.lock")).unwrap();
}

#[test]
fn a_link_in_the_place_of_a_file_of_ours_is_not_written_through() {
    let world = repository(&[("a.txt", "a\n")], "");
    let _daemon = world.start();
    let outside = world.path("outside");
    fs::write(&outside, "precious\n").unwrap();
    for name in ["provost-merge.lock", "provost-merge"] {
        symlink(&outside, world.repo().join(".git").join(name)).unwrap();
    }
    branch(&world, "work", "main", &[("a.txt", Some("b\n"))], "work");
    person(&world, "merge work", 0);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious\n");
}

#[test]
fn a_pipe_in_the_place_of_a_lock_or_a_list_is_not_waited_for() {
    for name in ["index.lock", "shallow"] {
        let world = repository(&[("a.txt", "a\n")], "");
        let daemon = world.start();
        branch(&world, "work", "main", &[("a.txt", Some("b\n"))], "work");
        let pipe = world.repo().join(".git").join(name);
        // Another process holds both ends, so that a read of it waits for ever.
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _held = fs::File::options().read(true).write(true).open(&pipe).unwrap();
        let said = world.command(&["merge", "work"]).output().unwrap();
        assert!(!said.status.success(), "{name}: {said:?}");
        fs::remove_file(&pipe).unwrap();
        daemon.stop();
    }
}
