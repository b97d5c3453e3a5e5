//! Repositories that git can have and that are rare: names that are other names, work trees that are gone, indexes in
//! parts, clones with a part of the history.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{branch, entry, person, queue, repository, tip};
use crate::support::repositories::well;
use crate::support::{UP, World, eventually};

fn world() -> World {
    repository(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("d/e.txt", "one\n")], "")
}

fn text(world: &World, file: &str) -> String {
    fs::read_to_string(world.repo().join(file)).unwrap_or_else(|_| "-".into())
}

#[test]
fn a_branch_that_is_another_name_of_the_trunk_is_the_trunk() {
    let world = world();
    let _daemon = world.start();
    let repo = world.repo();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    well(&repo, &["symbolic-ref", "refs/heads/master", "refs/heads/main"]);
    well(&repo, &["symbolic-ref", "refs/heads/tagged", "refs/tags/none"]);
    let said = person(&world, "merge feat --into master", 0);
    assert!(said.contains("feat: merged; main is at"), "{said}");
    assert_eq!(
        (text(&world, "a.txt").as_str(), well(&repo, &["status", "--porcelain"]).as_str()),
        ("two\n", "")
    );
    assert_eq!(well(&repo, &["symbolic-ref", "refs/heads/master"]).trim(), "refs/heads/main");
    let said = person(&world, "merge master", 4);
    assert!(said.contains("is the branch into which"), "{said}");
    let said = person(&world, "merge feat --into tagged", 4);
    assert!(said.contains("is no branch, but another name of refs/tags/none"), "{said}");
    // One that becomes another name while it waits is looked at again.
    branch(&world, "next", "main", &[("b.txt", Some("two\n"))], "next");
    well(&repo, &["branch", "rel", "main"]);
    person(&world, "merge queue add next --into rel", 0);
    well(&repo, &["symbolic-ref", "refs/heads/rel", "refs/heads/main"]);
    let before = tip(&world, "main");
    let said = person(&world, "merge queue run --wait", 7);
    assert!(said.contains("set aside (no_trunk)"), "{said}");
    assert_eq!(tip(&world, "main"), before);
}

#[test]
fn a_folder_that_is_another_repository_by_now_is_left_alone() {
    let world = world();
    let _daemon = world.start();
    let (repo, beside) = (world.repo(), world.path("beside"));
    well(&repo, &["branch", "rel", "main"]);
    well(&repo, &["worktree", "add", "-q", beside.to_str().unwrap(), "rel"]);
    fs::remove_dir_all(&beside).unwrap();
    well(&world.path("."), &["clone", "-q", "-b", "rel", repo.to_str().unwrap(), beside.to_str().unwrap()]);
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    person(&world, "merge feat --into rel", 0);
    assert_eq!(well(&repo, &["show", "rel:a.txt"]), "two\n");
    assert_eq!(fs::read_to_string(beside.join("a.txt")).unwrap(), "one\n");
    assert_eq!(well(&beside, &["status", "--porcelain"]), "");
    // The same where it is another work tree of this repository.
    fs::remove_dir_all(&beside).unwrap();
    let moved = world.path("moved");
    well(&repo, &["worktree", "add", "-q", "--detach", moved.to_str().unwrap(), "main"]);
    fs::rename(&moved, &beside).unwrap();
    branch(&world, "more", "rel", &[("b.txt", Some("two\n"))], "more");
    person(&world, "merge more --into rel", 0);
    assert_eq!(fs::read_to_string(beside.join("b.txt")).unwrap(), "one\n");
}

#[test]
fn an_index_in_two_parts_and_refs_in_a_table_are_merged() {
    let world = world();
    let repo = world.repo();
    well(&repo, &["config", "core.splitIndex", "true"]);
    well(&repo, &["update-index", "--split-index"]);
    let _daemon = world.start();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n")), ("n.txt", Some("n\n"))], "feat");
    person(&world, "merge feat", 0);
    assert_eq!(well(&repo, &["status", "--porcelain"]), "");
    assert_eq!(text(&world, "n.txt"), "n\n");
}

#[test]
fn refs_in_a_table_are_merged_and_a_cherry_pick_is_seen_there() {
    let world = World::new();
    let repo = world.repo();
    fs::remove_dir_all(repo.join(".git")).unwrap();
    well(&repo, &["init", "-q", "-b", "main", "--ref-format=reftable", "."]);
    for (key, value) in [("user.name", "Pat"), ("user.email", "pat@example.invalid")] {
        well(&repo, &["config", key, value]);
    }
    for file in ["a.txt", "b.txt"] {
        world.write(file, "one\n");
    }
    well(&repo, &["add", "-A"]);
    well(&repo, &["commit", "-q", "-m", "first"]);
    let _daemon = world.start();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    branch(&world, "clash", "main", &[("a.txt", Some("three\n"))], "clash");
    person(&world, "merge feat", 0);
    assert_eq!(
        (text(&world, "a.txt").as_str(), well(&repo, &["status", "--porcelain"]).as_str()),
        ("two\n", "")
    );
    branch(&world, "more", "main", &[("b.txt", Some("two\n"))], "more");
    assert!(!crate::support::repositories::git(&repo, &["cherry-pick", "clash"]).status.success());
    well(&repo, &["reset", "-q"]);
    well(&repo, &["checkout", "-q", "a.txt"]);
    well(&repo, &["update-ref", "CHERRY_PICK_HEAD", "clash"]);
    let said = person(&world, "merge more", 7);
    assert!(said.contains("a cherry-pick is under way"), "{said}");
}

#[test]
fn a_sparse_work_tree_is_asked_for_itself() {
    let world = world();
    let repo = world.repo();
    well(&repo, &["config", "core.sparseCheckout", "0"]);
    let _daemon = world.start();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    person(&world, "merge feat", 0);
    // One work tree alone is sparse: the setting is in a file of its own.
    well(&repo, &["config", "--unset", "core.sparseCheckout"]);
    let beside = world.path("beside");
    well(&repo, &["worktree", "add", "-q", "-b", "rel", beside.to_str().unwrap()]);
    well(&beside, &["sparse-checkout", "set", "d"]);
    branch(&world, "deep", "main", &[("x/y.txt", Some("y\n"))], "deep");
    let said = person(&world, "merge deep --into rel", 7);
    assert!(said.contains("sparse checkout") && said.contains("git merge --ff-only"), "{said}");
    assert!(!beside.join("x").exists() && !tip(&world, "rel").is_empty());
    assert_eq!(well(&beside, &["status", "--porcelain"]), "");
    person(&world, "merge deep", 0);
}

#[test]
fn a_folder_that_cannot_be_written_keeps_the_branch_out_before_anything_is_moved() {
    let world = world();
    let _daemon = world.start();
    let (folder, before) = (world.repo().join("d"), tip(&world, "main"));
    branch(&world, "feat", "main", &[("d/e.txt", Some("two\n")), ("a.txt", Some("two\n"))], "feat");
    branch(&world, "new", "main", &[("d/f/g/new.txt", Some("two\n"))], "new");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let said = person(&world, "merge feat new", 7);
    assert_eq!(said.matches("set aside (in_the_way)").count(), 2, "{said}");
    assert!(said.contains("\"d\"") && said.contains("cannot be written"), "{said}");
    assert_eq!((tip(&world, "main"), text(&world, "a.txt").as_str()), (before, "one\n"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    person(&world, "merge feat new", 0);
    assert_eq!(well(&world.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn a_person_whom_git_knows_as_its_committer_alone_merges() {
    let world = world();
    let repo = world.repo();
    for key in ["user.name", "user.email"] {
        well(&repo, &["config", "--unset", key]);
    }
    for (key, value) in [("committer.name", "Cy"), ("committer.email", "cy@example.invalid")] {
        well(&repo, &["config", key, value]);
    }
    let _daemon = world.start();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    branch(&world, "more", "main", &[("b.txt", Some("two\n"))], "more");
    person(&world, "merge feat more", 0);
    let said = well(&repo, &["log", "-1", "--format=%an <%ae>|%cn <%ce>", "main"]);
    assert_eq!(said.trim(), "Cy <cy@example.invalid>|Cy <cy@example.invalid>");
}

#[test]
fn what_a_repository_shares_with_a_group_stays_shared() {
    let world = world();
    let repo = world.repo();
    well(&repo, &["config", "core.sharedRepository", "group"]);
    let mode = |file: &str| fs::metadata(repo.join(file)).unwrap().mode() & 0o777;
    for file in ["a.txt", ".git/index"] {
        fs::set_permissions(repo.join(file), fs::Permissions::from_mode(0o664)).unwrap();
    }
    branch(
        &world,
        "feat",
        "main",
        &[("a.txt", Some("two\n")), ("n/new.txt", Some("n\n")), ("z.txt", Some("z\n"))],
        "feat",
    );
    branch(&world, "side", "main", &[("b.txt", Some("two\n"))], "side");
    let before = fs::File::create(world.path("before")).unwrap().metadata().unwrap().modified().unwrap();
    let mut up = std::process::Command::new("sh");
    let daemon = world.command(UP);
    up.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(daemon.get_program()).args(daemon.get_args());
    up.env_clear().current_dir(world.repo());
    up.envs(daemon.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let _daemon = world.start_as(up);
    person(&world, "merge side feat", 0);
    assert_eq!(text(&world, "n/new.txt"), "n\n");
    let modes = ["a.txt", "z.txt", ".git/index", "n/new.txt", "n"].map(mode);
    assert_eq!(modes.map(|it| format!("{it:o}")), ["664", "660", "664", "660", "770"]);
    let made = |it: &std::path::Path| it.metadata().unwrap().modified().unwrap() >= before;
    let folders = fs::read_dir(repo.join(".git/objects")).unwrap().flatten().map(|it| it.path());
    let objects =
        folders.filter(|it| it.file_name().unwrap().len() == 2).flat_map(|it| fs::read_dir(it).unwrap());
    let new: Vec<_> = objects.flatten().map(|it| it.path()).filter(|it| made(it)).collect();
    assert!(!new.is_empty());
    assert!(new.iter().all(|it| it.metadata().unwrap().mode() & 0o040 != 0), "{new:?}");
}

#[test]
fn a_merge_into_a_branch_on_which_a_run_works_waits_for_a_person() {
    let world = world();
    world.configure(super::AGENT);
    let _daemon = world.start();
    branch(&world, "feat", "main", &[("a.txt", Some("two\n"))], "feat");
    let script = "touch begun; for n in $(seq 400); do [ -e go ] && break; sleep 0.05; done; rm -f go begun; cat a.txt > seen.txt";
    let args = ["delegate", "--worker", "coder", script, "--worktree", "rel", "--wait"];
    std::thread::scope(|scope| {
        let run = scope.spawn(|| world.command(&args).output().unwrap());
        let tree = crate::support::waits::until_some("it runs", || {
            let done = world.command(&["worktree", "list", "--json"]).output().unwrap();
            let all: Vec<serde_json::Value> = serde_json::from_slice(&done.stdout).unwrap();
            let path = std::path::PathBuf::from(all.first()?["path"].as_str()?);
            path.join("begun").exists().then_some(path)
        });
        let before = tip(&world, "rel");
        let said = person(&world, "merge feat --into rel", 7);
        assert!(said.contains("set aside (in_the_way)") && said.contains("a run works there"), "{said}");
        assert_eq!(
            (tip(&world, "rel"), fs::read_to_string(tree.join("a.txt")).unwrap().as_str()),
            (before, "one\n")
        );
        fs::write(tree.join("go"), "").unwrap();
        let done = run.join().unwrap();
        assert!(done.status.success(), "{done:?}");
    });
    assert_eq!(well(&world.repo(), &["show", "rel:seen.txt"]), "one\n");
    person(&world, "merge feat --into rel", 0);
}

#[test]
fn a_command_that_a_reason_gives_is_one_to_copy() {
    let world = world();
    let _daemon = world.start();
    let odd = "x;touch${IFS}sign;#";
    branch(&world, odd, "main", &[("a.txt", Some("two\n"))], "odd");
    person(&world, &format!("merge queue add '{odd}'"), 0);
    branch(&world, odd, "main", &[("a.txt", Some("three\n"))], "odd");
    person(&world, "merge queue run --wait", 7);
    let why = entry(&world, odd)["why"].as_str().unwrap().to_owned();
    assert!(why.contains(&format!("provost merge queue add '{odd}'")), "{why}");
    eventually("it is over", || queue(&world).iter().all(|it| it["state"] == "set_aside"));
}
