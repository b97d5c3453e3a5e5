//! Files that the user has told git not to look at: a merge loses neither what is in them nor the mark.

use std::fs;

use super::{branch, entry, person, repository};
use crate::support::World;
use crate::support::repositories::well;

fn world() -> World {
    let world = repository(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "one\n")], "");
    branch(&world, "a", "main", &[("a.txt", Some("two\n"))], "a");
    branch(&world, "c", "main", &[("c.txt", Some("two\n"))], "c");
    world
}

/// The marks of a file, as git lists them.
fn mark(world: &World, path: &str) -> String {
    well(&world.repo(), &["ls-files", "-v", path]).split(' ').next().unwrap().to_owned()
}

#[test]
fn a_file_that_is_assumed_unchanged_keeps_its_mark_and_what_was_written_in_it() {
    let world = world();
    let _daemon = world.start();
    well(&world.repo(), &["update-index", "--assume-unchanged", "a.txt", "b.txt", "c.txt"]);
    world.write("a.txt", "mine\n");
    world.write("b.txt", "mine\n");
    // One that changes, and is as committed, goes along; the others stay as they are.
    person(&world, "merge c --no-checks", 0);
    assert_eq!(fs::read_to_string(world.repo().join("c.txt")).unwrap(), "two\n");
    for path in ["a.txt", "b.txt", "c.txt"] {
        assert_eq!(mark(&world, path), "h", "{path}");
    }
    // One that was changed is in the way, as any change of the user's.
    let said = person(&world, "merge a --no-checks", 7);
    assert!(said.contains("in the way") && said.contains("a.txt"), "{said}");
    assert_eq!(entry(&world, "a")["what"], "in_the_way");
    for path in ["a.txt", "b.txt"] {
        assert_eq!(fs::read_to_string(world.repo().join(path)).unwrap(), "mine\n");
        assert_eq!(mark(&world, path), "h", "{path}");
    }
}

#[test]
fn a_file_that_git_skips_is_not_written_over() {
    let world = world();
    let _daemon = world.start();
    well(&world.repo(), &["update-index", "--skip-worktree", "a.txt", "b.txt"]);
    world.write("a.txt", "mine\n");
    world.write("b.txt", "mine\n");
    person(&world, "merge c --no-checks", 0);
    let said = person(&world, "merge a --no-checks", 7);
    assert!(said.contains("skip-worktree") && said.contains("a.txt"), "{said}");
    for path in ["a.txt", "b.txt"] {
        assert_eq!(fs::read_to_string(world.repo().join(path)).unwrap(), "mine\n");
        assert_eq!(mark(&world, path), "S", "{path}");
    }
    assert!(!world.repo().join(".git/index.lock").exists());
}
