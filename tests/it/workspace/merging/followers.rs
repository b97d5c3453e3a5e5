//! The trunk is moved, and a work tree does not follow: git fails, or is killed. Nothing is called unmerged that is merged,
//! and no index stays locked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{branch, entry, is_half_way, person, repository, tip};
use crate::support::repositories::well;
use crate::support::{Daemon, UP, World, eventually};

/// Git that dies at a step as often as the file `dies` says, in the work tree that it names.
const SCRIPT: &str = r#"#!/bin/sh
real=$(PATH=/usr/local/bin:/usr/bin:/bin command -v git)
if [ -e "@HOME@/dies" ]; then
    read -r step times where < "@HOME@/dies"
    case " $* $(pwd)" in
    *" $step "*"$where")
        if [ "$times" -le 1 ]; then rm "@HOME@/dies"; else echo "$step $((times - 1)) $where" > "@HOME@/dies"; fi
        kill -9 $$ ;;
    esac
fi
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

fn world() -> World {
    let world = repository(&[("a.txt", "one\n"), ("b.txt", "one\n")], "");
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    branch(&world, "more", "main", &[("b.txt", Some("two\n"))], "more");
    world
}

fn dies(world: &World, step: &str, times: u32, place: &Path) {
    fs::write(world.home().join("dies"), format!("{step} {times} {}\n", place.display())).unwrap();
}

fn is_settled(world: &World, tree: &Path, git_dir: &Path) -> bool {
    !is_half_way(world, git_dir) && well(tree, &["status", "--porcelain"]).is_empty()
}

#[test]
fn a_git_that_dies_once_after_the_trunk_has_moved_is_asked_again() {
    let world = world();
    let _daemon = start(&world);
    dies(&world, "diff-files", 1, &world.repo());
    person(&world, "merge feat", 0);
    assert_eq!(entry(&world, "feat")["state"], "merged");
    assert!(is_settled(&world, &world.repo(), &world.repo().join(".git")));
}

#[test]
fn a_trunk_that_has_moved_is_merged_whatever_becomes_of_its_work_trees() {
    let world = world();
    let (repo, beside) = (world.repo(), world.path("beside"));
    well(&repo, &["worktree", "add", "-q", "-f", beside.to_str().unwrap(), "main"]);
    let mut daemon = start(&world);
    dies(&world, "diff-files", 1000, &repo);
    let said = person(&world, "merge feat", 0);
    assert!(said.contains("feat: merged") && said.contains("has not followed"), "{said}");
    let own = repo.join(".git");
    // Each other work tree has followed.
    assert!(is_settled(&world, &beside, &own.join("worktrees/beside")));
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "one\n");
    assert!(own.join("index.lock").exists());
    // The next merge settles it first, and so does a start.
    fs::remove_file(world.home().join("dies")).unwrap();
    person(&world, "merge more", 0);
    assert!(is_settled(&world, &repo, &own), "{}", well(&repo, &["status", "--porcelain"]));
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "two\n");
    branch(&world, "last", "main", &[("a.txt", Some("three\n"))], "last");
    dies(&world, "diff-files", 1000, &repo);
    person(&world, "merge last", 0);
    assert!(own.join("index.lock").exists());
    fs::remove_file(world.home().join("dies")).unwrap();
    daemon.kill();
    let _daemon = start(&world);
    eventually("the start settles it", || is_settled(&world, &repo, &own));
    assert_eq!(fs::read_to_string(repo.join("a.txt")).unwrap(), "three\n");
}

#[test]
fn a_git_that_dies_while_it_moves_the_trunk_leaves_the_truth_to_the_trunk() {
    let world = world();
    let _daemon = start(&world);
    let before = tip(&world, "main");
    dies(&world, "update-ref", 1, &world.repo());
    person(&world, "merge feat", 7);
    assert_eq!(tip(&world, "main"), before);
    assert!(is_settled(&world, &world.repo(), &world.repo().join(".git")));
    person(&world, "merge feat", 0);
}
