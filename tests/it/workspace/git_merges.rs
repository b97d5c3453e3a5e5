//! The changes that a merge brings and those that its committer adds, told apart by symbols and contracts, through the
//! installed hook.

use std::process::Output;

use crate::support::World;

/// Far enough from each other for git to merge them.
fn code(bodies: &[(&str, &str)]) -> String {
    let rest = "// a line in between\n".repeat(8);
    let one =
        |(name, body): &(&str, &str)| format!("export function {name}({body}) {{\n  return 1\n}}\n{rest}");
    bodies.iter().map(one).collect()
}

const BASE: [(&str, &str); 4] = [("ours", "a"), ("theirs", "a"), ("held", "a"), ("agreed", "a")];

/// The code with other parameters of some functions.
fn with(changed: &[(&'static str, &'static str)]) -> String {
    let mut bodies = BASE;
    for it in &mut bodies {
        if let Some(new) = changed.iter().find(|new| new.0 == it.0) {
            *it = *new;
        }
    }
    code(&bodies)
}

fn world() -> World {
    let world = World::new();
    world.configure("[coordination]\nenforce = \"deny\"\n");
    world.write("code.ts", &with(&[]));
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    world.git(&["branch", "-q", "-M", "main"]);
    world
}

/// A branch from the first commit with other code; the hook has nothing to say about it yet.
fn branch(world: &World, name: &str, changed: &[(&'static str, &'static str)]) {
    world.git(&["switch", "-q", "main"]);
    world.git(&["switch", "-q", "-c", name]);
    world.write("code.ts", &with(changed));
    world.git(&["commit", "-q", "--no-verify", "-am", name]);
    world.git(&["switch", "-q", "main"]);
}

fn as_agent(world: &World, args: &[&str]) -> Output {
    world
        .git_in(&world.repo(), args)
        .env("PROVOST_AGENT", "merger")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap()
}

fn commit(world: &World) -> Output {
    world.git(&["add", "-A"]);
    as_agent(world, &["commit", "-qm", "merged"])
}

#[track_caller]
fn goes(done: &Output) {
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && !words.contains("provost:"), "{done:?}");
}

#[track_caller]
fn is_refused(done: &Output, why: &str) {
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && words.contains(why), "{done:?}");
}

fn install(world: &World) {
    assert!(world.command(&["git", "install"]).output().unwrap().status.success());
}

#[test]
fn of_a_file_that_both_sides_change_only_what_is_neither_ones_is_the_committers() {
    let world = world();
    branch(&world, "other", &[("theirs", "b"), ("held", "b")]);
    world.write("code.ts", &with(&[("ours", "c")]));
    world.git(&["commit", "-qam", "ours"]);
    let _daemon = world.start();
    world.done("holder", &["lock", "code.ts:theirs"]);
    world.done("holder", &["lock", "code.ts:held"]);
    install(&world);
    let merge = || {
        world.git(&["reset", "-q", "--hard"]);
        world.git(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
    };
    merge();
    world.write("code.ts", &with(&[("ours", "c"), ("theirs", "b"), ("held", "x")]));
    is_refused(&commit(&world), "code.ts:held");
    merge();
    world.write("code.ts", &with(&[("ours", "x"), ("theirs", "x"), ("held", "b")]));
    is_refused(&commit(&world), "code.ts:theirs");
    // As this side has it, it was before; and what nobody holds is free.
    merge();
    world.write("code.ts", &with(&[("ours", "x"), ("theirs", "a"), ("held", "b")]));
    goes(&commit(&world));
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    merge();
    goes(&commit(&world));
}

#[test]
fn a_conflict_is_the_committers_where_it_takes_neither_side() {
    let world = world();
    branch(&world, "other", &[("held", "theirs")]);
    world.write("code.ts", &with(&[("held", "ours"), ("ours", "c")]));
    world.git(&["commit", "-qam", "ours"]);
    let _daemon = world.start();
    world.done("holder", &["lock", "code.ts:held"]);
    install(&world);
    for (held, is_own) in [("theirs", false), ("ours", false), ("ours, theirs", true)] {
        let merged = as_agent(&world, &["merge", "-q", "--no-ff", "other"]);
        assert!(!merged.status.success(), "there is a conflict: {merged:?}");
        world.write("code.ts", &with(&[("held", held), ("ours", "d")]));
        match is_own {
            true => is_refused(&commit(&world), "code.ts:held"),
            false => {
                goes(&commit(&world));
                world.git(&["reset", "-q", "--hard", "HEAD~1"]);
            }
        }
    }
}

#[test]
fn a_contract_that_another_parent_breaks_is_not_broken_by_the_merge() {
    let world = world();
    branch(&world, "other", &[("agreed", "b"), ("theirs", "b")]);
    world.write("code.ts", &with(&[("ours", "c")]));
    world.git(&["commit", "-qam", "ours"]);
    let _daemon = world.start();
    for symbol in ["code.ts:agreed", "code.ts:ours"] {
        let id = world.done("a", &["contract", "propose", symbol])["id"].as_str().unwrap().to_owned();
        world.done("b", &["contract", "accept", &id]);
    }
    install(&world);
    let merge = || {
        world.git(&["reset", "-q", "--hard"]);
        world.git(&["merge", "-q", "--no-ff", "--no-commit", "other"]);
    };
    merge();
    world.write("code.ts", &with(&[("ours", "x"), ("theirs", "b"), ("agreed", "b")]));
    let refused = commit(&world);
    is_refused(&refused, "Contract violation: code.ts:ours");
    assert!(!String::from_utf8_lossy(&refused.stderr).contains("code.ts:agreed"), "{refused:?}");
    merge();
    world.write("code.ts", &with(&[("ours", "c"), ("theirs", "b"), ("agreed", "x")]));
    is_refused(&commit(&world), "Contract violation: code.ts:agreed");
    merge();
    std::fs::remove_file(world.repo().join("code.ts")).unwrap();
    is_refused(&commit(&world), "Contract violation");
    merge();
    goes(&commit(&world));
}

#[test]
fn of_a_merge_of_several_each_parent_counts() {
    let world = world();
    branch(&world, "one", &[("theirs", "b")]);
    branch(&world, "two", &[("held", "b")]);
    world.write("code.ts", &with(&[("ours", "c")]));
    world.git(&["commit", "-qam", "ours"]);
    let _daemon = world.start();
    for symbol in ["code.ts:theirs", "code.ts:held"] {
        world.done("holder", &["lock", symbol]);
    }
    install(&world);
    let merge = || {
        world.git(&["reset", "-q", "--hard"]);
        world.git(&["merge", "-q", "--no-commit", "one", "two"]);
        let heads = std::fs::read_to_string(world.repo().join(".git/MERGE_HEAD")).unwrap();
        assert_eq!(heads.lines().count(), 2);
    };
    merge();
    world.write("code.ts", &with(&[("ours", "c"), ("theirs", "b"), ("held", "x")]));
    is_refused(&commit(&world), "code.ts:held");
    merge();
    goes(&commit(&world));
}

#[test]
fn what_is_picked_reverted_or_rebased_is_the_committers() {
    let world = world();
    branch(&world, "other", &[("held", "b")]);
    world.write("code.ts", &with(&[("held", "c")]));
    world.git(&["commit", "-qam", "ours"]);
    let _daemon = world.start();
    world.done("holder", &["lock", "code.ts:held"]);
    install(&world);
    // Each with what another commit than the one below has.
    for (begin, held) in [
        (&["cherry-pick", "other"][..], "b"),
        (&["rebase", "other"], "c"),
        (&["revert", "--no-commit", "HEAD"], "a"),
        (&["merge", "--squash", "other"], "b"),
    ] {
        let _conflict = as_agent(&world, begin);
        world.write("code.ts", &with(&[("held", held), ("ours", "x")]));
        is_refused(&commit(&world), "code.ts:held");
        for end in [["cherry-pick", "--abort"], ["rebase", "--abort"], ["revert", "--abort"]] {
            let _none = as_agent(&world, &end);
        }
        world.git(&["reset", "-q", "--hard"]);
        world.git(&["switch", "-q", "main"]);
    }
}
