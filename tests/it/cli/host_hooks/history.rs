//! Commands of git that write what differs, on repositories with a history and a remote.

use super::{CODE, told, world};
use crate::support::World;

fn refused(world: &World, commands: &[&str]) {
    commands.iter().for_each(|it| drop(world.is_refused("claude", &told(world, it))));
}

fn free(world: &World, commands: &[&str]) {
    commands.iter().for_each(|it| world.goes_on("claude", &told(world, it)));
}

fn commit(world: &World, path: &str, text: &str) {
    world.write(path, text);
    world.git(&["add", "-A", "src", "docs"]);
    world.git(&["commit", "-qm", path]);
}

/// A repository with a remote: one commit here changes `docs/a.md`, one that only the remote has changes
/// `src/auth.ts`.
fn with_remote() -> World {
    let world = world("claude");
    commit(&world, "docs/a.md", "a\n");
    commit(&world, "docs/kept.md", "kept\n");
    world.git(&["clone", "-q", "--bare", ".", "../away"]);
    world.git(&["remote", "add", "origin", "../away"]);
    world.git(&["checkout", "-q", "-b", "work"]);
    commit(&world, "src/auth.ts", &format!("{CODE}// theirs\n"));
    world.git(&["push", "-q", "origin", "work", "work:feature", "HEAD~1:refs/heads/docs-only"]);
    world.git(&["fetch", "-q", "origin"]);
    world.git(&["reset", "-q", "--hard", "HEAD~1"]);
    world.git(&["branch", "-q", "--set-upstream-to", "origin/work"]);
    commit(&world, "docs/a.md", "b\n");
    world
}

#[test]
fn what_an_older_commit_has_is_written_by_going_back_to_it() {
    let world = world("claude");
    commit(&world, "docs/a.md", "a\n");
    commit(&world, "src/auth.ts", &format!("{CODE}// more\n"));
    commit(&world, "docs/a.md", "b\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "git checkout HEAD~1 -- src/auth.ts",
            "git checkout HEAD~2 src/auth.ts",
            "git checkout HEAD~2 -- src",
            "git restore --source HEAD~2 src/auth.ts",
            "git checkout HEAD~2",
            "git switch --detach HEAD~2",
            "git reset --hard HEAD~2",
            "git revert HEAD~1",
            "git revert --no-edit HEAD~2..HEAD~1",
            "git revert HEAD~2..HEAD",
            "git switch -c b HEAD~2",
            "git checkout -b b HEAD~2",
            "git rebase --onto HEAD~2 HEAD~1",
            "git cherry-pick HEAD~1",
            "git show HEAD~2:src/auth.ts > src/auth.ts",
        ],
    );
    free(
        &world,
        &[
            "git checkout HEAD~1 -- docs/a.md",
            "git checkout HEAD~2 docs/a.md",
            "git checkout HEAD~1",
            "git reset --hard HEAD~1",
            "git reset --soft HEAD~2",
            "git revert HEAD",
            "git switch -c b HEAD~1",
            "git switch -c b",
            "git checkout -b b",
            "git cherry-pick HEAD",
            "git merge HEAD~2",
        ],
    );
}

#[test]
fn bare_commands_go_to_the_upstream() {
    let world = with_remote();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "git pull",
            "git pull --rebase",
            "git pull origin work",
            "git merge",
            "git merge @{u}",
            "git merge origin/work",
            "git rebase",
            "git rebase origin/work",
            "git reset --hard @{u}",
            "git reset --hard @{upstream}",
            "git cherry-pick @{u}",
            "git cherry-pick ..@{u}",
        ],
    );
    free(&world, &["git fetch", "git cherry-pick --abort", "git rebase --abort", "git merge --abort"]);
    world.git(&["branch", "-q", "--set-upstream-to", "origin/docs-only"]);
    free(&world, &["git pull", "git merge", "git rebase", "git reset --hard @{u}", "git cherry-pick HEAD"]);
}

#[test]
fn a_merge_writes_what_the_other_side_brings() {
    let world = with_remote();
    commit(&world, "src/auth.ts", &format!("{CODE}// ours\n"));
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    // Ours has changed it since they parted, and the other side has not.
    free(&world, &["git merge origin/docs-only", "git merge HEAD~1"]);
    refused(&world, &["git merge origin/feature", "git merge origin/docs-only origin/feature"]);
}

#[test]
fn a_branch_that_a_remote_alone_has_is_that_branch() {
    let world = with_remote();
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    free(&world, &["git checkout docs-only", "git switch docs-only", "git checkout -t origin/docs-only"]);
    refused(&world, &["git checkout feature", "git switch feature", "git checkout --track origin/feature"]);
    // What nobody knows yet may come to be on the way.
    refused(&world, &["git branch later origin/feature && git checkout later"]);
}

#[test]
fn a_stash_takes_away_and_gives_back() {
    let world = world("claude");
    commit(&world, "docs/a.md", "a\n");
    world.write("docs/new.md", "new\n");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "docs/new.md"]);
    world.done("codex-1", &["lock", "src/auth.ts"]);
    free(&world, &["git stash", "git stash push"]);
    refused(
        &world,
        &["git stash -u", "git stash push --include-untracked", "git clean -fd", "git stash --all"],
    );
    world.git(&["stash", "push", "-q", "-u", "--", "docs"]);
    refused(&world, &["git stash pop", "git stash apply", "git stash apply stash@{0}", "git stash branch b"]);
    world.write("src/auth.ts", "other\n");
    world.git(&["stash", "push", "-q"]);
    refused(&world, &["git stash pop", "git stash pop 1"]);
    world.done("codex-1", &["unlock", "docs/new.md"]);
    free(&world, &["git stash pop stash@{1}", "git stash drop", "git stash show -p"]);
}

#[test]
fn aliases_of_git_are_what_they_stand_for() {
    let world = world("claude");
    commit(&world, "docs/a.md", "a\n");
    commit(&world, "src/auth.ts", &format!("{CODE}// more\n"));
    for (name, stands_for) in [
        ("undo", "reset --hard HEAD~1"),
        ("co", "checkout"),
        ("wipe", "!rm -rf src"),
        ("round", "around"),
        ("around", "round"),
        ("say", "!echo"),
        ("lg", "log --oneline"),
        ("both", "!f() { git checkout \"$@\"; }; f"),
    ] {
        world.git(&["config", &format!("alias.{name}"), stands_for]);
    }
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    refused(
        &world,
        &[
            "git undo",
            "git co HEAD~1 -- src/auth.ts",
            "cd docs && git wipe",
            "git -C docs co HEAD~1",
            "git -c alias.x='!rm src/auth.ts' x",
            "git -c alias.y='checkout HEAD~1' y",
            // Git refuses these itself.
            "git round",
        ],
    );
    free(&world, &["git lg", "git say hello", "git co HEAD~1 -- docs/a.md", "git nothing"]);
}
