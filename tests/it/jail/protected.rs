//! Files that stay read-only, or out of sight, inside of a workspace that can be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use provost::jail::{Missing, ReadOnlyPath};

use crate::support::jails::*;

fn git(world: &World, args: &[&str]) -> String {
    let mut git = Command::new("/usr/bin/git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(world.workspace());
    let done = git.env_clear().env("HOME", world.path("home")).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn repository() -> World {
    let world = World::new();
    git(&world, &["init", "-q", "-b", "main"]);
    fs::write(world.path("workspace/file"), "one\n").unwrap();
    git(&world, &["add", "file"]);
    git(&world, &["commit", "-qm", "one"]);
    world
}

/// Names in a directory, sorted.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn git_works_beside_its_protected_files() {
    let world = repository();
    let worker = |script: &str| {
        let mut draft = world.sh(script);
        draft.git = provost::jail::Git::Write;
        draft
    };
    let script = "export GIT_AUTHOR_NAME=w GIT_AUTHOR_EMAIL=w@example.org GIT_COMMITTER_NAME=w \
                  GIT_COMMITTER_EMAIL=w@example.org; \
                  echo two >> file && git status --short && git commit -qam two && git log --format=%s";
    world.run(worker(script)).await.says(" M file\ntwo\none");
    assert_eq!(git(&world, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&world, &["status", "--short"]), "");
    let planted = "echo x > .git/hooks/post-commit; git config core.fsmonitor ./m.sh; mv .git/hooks h; \
                   mkdir .git/worktrees/x; echo x > .git/commondir; echo x >> .git/config; mv .git g; true";
    world.run(worker(planted)).await.says("");
    assert!(!world.path("workspace/.git/hooks/post-commit").exists());
    assert!(!fs::read_to_string(world.path("workspace/.git/config")).unwrap().contains("fsmonitor"));
}

#[tokio::test]
async fn a_repository_can_be_read_and_not_written() {
    let world = repository();
    let script = "echo two >> file; git status --short; git log --format=%s; git add file; echo x > .git/info/exclude; \
                  git -c user.name=w -c user.email=w@example.org commit -qam two; git branch other; rm -rf .git; mv .git g; \
                  git diff --stat | head -n 1";
    world.run(world.sh(script)).await.says(" M file\none\n file | 1 +");
    assert_eq!(git(&world, &["log", "--format=%s"]), "one\n");
    assert_eq!(git(&world, &["status", "--short"]), " M file\n");
    assert_eq!(git(&world, &["branch", "--format=%(refname:short)"]), "main\n");
}

#[tokio::test]
async fn no_hook_or_setting_of_git_can_be_planted() {
    let world = repository();
    let before = fs::read_to_string(world.path("workspace/.git/config")).unwrap();
    let inside = names(&world.path("workspace/.git"));
    let hooks = names(&world.path("workspace/.git/hooks"));
    let attempts = "
        echo x > .git/hooks/pre-commit
        mv .git/hooks .git/h2 && mkdir .git/hooks && echo x > .git/hooks/pre-commit
        rm -rf .git/hooks
        mv .git x && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit
        echo x >> .git/config
        mv .git/config .git/c2
        git config core.hooksPath /tmp
        mkdir .git/rebase-merge; echo x > .git/index; git add -A; git stash
        echo x > .git/config.new; mv -f .git/config.new .git/config; rm -f .git/config.new
        echo /tmp > .git/commondir; rm -f .git/commondir
        echo x > .git/config.worktree; rm -f .git/config.worktree
        mkdir -p .git/modules/sub/hooks .git/worktrees/x
        ln -sfT /tmp .git; ln -sf /tmp/x .git/config
        true";
    world.run(world.sh(attempts)).await.says("");
    assert_eq!(fs::read_to_string(world.path("workspace/.git/config")).unwrap(), before);
    assert_eq!(names(&world.path("workspace/.git/hooks")), hooks);
    assert!(!world.path("workspace/x").exists());
    assert_eq!(
        names(&world.path("workspace/.git")),
        inside,
        "nothing was added, and no placeholder was left"
    );
}

#[tokio::test]
async fn missing_hooks_cannot_be_created() {
    let world = repository();
    fs::remove_dir_all(world.path("workspace/.git/hooks")).unwrap();
    world.run(world.sh("mkdir .git/hooks; echo x > .git/hooks/pre-commit; true")).await.says("");
    assert!(!world.path("workspace/.git/hooks").exists());
}

#[tokio::test]
async fn a_repository_cannot_be_made_where_none_is() {
    let world = World::new();
    world.run(world.sh("git init -q .; mkdir -p .git/hooks; ls -A .git; true")).await.says("");
    assert_eq!(names(&world.workspace()), [""; 0]);
}

#[tokio::test]
async fn the_link_of_a_worktree_cannot_be_turned_elsewhere() {
    let world = World::new();
    fs::write(world.path("workspace/.git"), "gitdir: /nowhere\n").unwrap();
    world
        .run(world.sh("echo x > .git; rm -f .git; mv .git y; mkdir .git; cat .git"))
        .await
        .says("gitdir: /nowhere");
    assert_eq!(names(&world.workspace()), [".git"]);
}

#[tokio::test]
async fn settings_of_agents_can_be_read_but_not_made_or_changed() {
    let world = World::new();
    fs::create_dir(world.path("workspace/.claude")).unwrap();
    fs::write(world.path("workspace/.claude/settings.json"), "mine").unwrap();
    let script = "echo x > .claude/settings.json; mv .claude c; mkdir .codex; echo x > .codex/config.toml; \
                  echo x > .mcp.json; cat .claude/settings.json; ls -A .codex";
    world.run(world.sh(script)).await.says("mine");
    assert_eq!(names(&world.workspace()), [".claude"]);
    assert_eq!(names(&world.path("workspace/.claude")), ["settings.json"]);
}

#[tokio::test]
async fn settings_of_editors_and_shells_can_be_read_but_not_made_or_changed() {
    let world = World::new();
    for (path, text) in [(".vscode/tasks.json", "tasks"), (".envrc", "mine"), (".husky/pre-commit", "hook")] {
        fs::create_dir_all(world.path("workspace").join(path).parent().unwrap()).unwrap();
        fs::write(world.path("workspace").join(path), text).unwrap();
    }
    let script = "for f in .vscode/tasks.json .vscode/settings.json .envrc .husky/pre-commit .husky/_/pre-push \
                  .idea/workspace.xml .zed/tasks.json .helix/languages.toml .nvim.lua .exrc .vimrc .devcontainer/devcontainer.json \
                  .devcontainer.json .dir-locals.el .mise.toml .pre-commit-config.yaml lefthook.yml opencode.json; do \
                  mkdir -p $(dirname $f); echo x > $f; mv -f $f n; ln -sf /tmp/x $f; done; rm -rf .vscode .idea .envrc; \
                  mv .husky h; rm -f n; cat .vscode/tasks.json .envrc .husky/pre-commit; git init -q .; ls .idea | wc -l";
    world.run(world.sh(script)).await.says("tasksminehook0");
    assert_eq!(names(&world.workspace()), [".envrc", ".husky", ".vscode"]);
    assert_eq!(names(&world.path("workspace/.vscode")), ["tasks.json"]);
    assert_eq!(fs::read_to_string(world.path("workspace/.envrc")).unwrap(), "mine");
}

#[tokio::test]
async fn folders_of_daemons_are_seen_empty_and_stay_as_they_are() {
    let world = World::new();
    fs::create_dir(world.path("workspace/.wit")).unwrap();
    fs::write(world.path("workspace/.wit/daemon.pid"), "1").unwrap();
    let script =
        "ls -A .wit .provost | sort; echo x > .wit/x; echo x > .provost/provost.toml; rm -rf .devit; true";
    world.run(world.sh(script)).await.says("\n.provost:\n.wit:");
    assert_eq!(names(&world.workspace()), [".wit"]);
    assert_eq!(names(&world.path("workspace/.wit")), ["daemon.pid"]);
}

#[tokio::test]
async fn further_paths_are_protected_as_asked_with_all_that_lies_above() {
    let world = World::new();
    fs::create_dir_all(world.path("workspace/.github/workflows")).unwrap();
    fs::write(world.path("workspace/.github/workflows/ci.yml"), "mine").unwrap();
    let script = "echo x > .github/workflows/ci.yml; mv .github g; echo ok > .github/other; \
                  mkdir -p tools; echo x > tools/run.sh; ls tools .github";
    let mut draft = world.sh(script);
    let guard =
        |path: &str, missing| ReadOnlyPath { path: provost::base::RepoPath::parse(path).unwrap(), missing };
    draft.guards.push(guard(".github/workflows", Missing::Leave));
    draft.guards.push(guard("tools/run.sh", Missing::File));
    world.run(draft).await.says(".github:\nother\nworkflows\n\ntools:");
    assert_eq!(fs::read_to_string(world.path("workspace/.github/workflows/ci.yml")).unwrap(), "mine");
    assert_eq!(names(&world.workspace()), [".github"]);
}

#[tokio::test]
async fn a_protected_path_that_is_a_link_refuses_the_worker() {
    let world = repository();
    fs::rename(world.path("workspace/.git"), world.path("outside/git")).unwrap();
    symlink(world.path("outside/git"), world.path("workspace/.git")).unwrap();
    let error = world.start(world.sh("touch ran")).await.unwrap_err();
    assert_eq!(error.step, provost::jail::Step::Placeholders, "{error}");
    assert!(error.to_string().contains("workspace/.git"), "{error}");
    assert!(!world.path("workspace/ran").exists());
    assert_eq!(names(&world.workspace()).iter().filter(|n| n.starts_with(".provost")).count(), 0);
}

#[tokio::test]
async fn one_worker_leaving_does_not_uncover_what_another_relies_on() {
    let world = World::new();
    let wait = "echo up; while [ ! -e go ]; do sleep 0.01; done; \
                mkdir .claude .git .wit; echo x > .claude/settings.json; echo x > .mcp.json; mkdir .git/hooks; ls -A";
    let mut second = world.start(world.sh(wait)).await.unwrap();
    second.output().follow(0).await;
    for _ in 0..3 {
        world.run(world.sh("true")).await.says("");
        assert!(world.path("workspace/.claude").exists(), "the other one still needs it");
    }
    fs::write(world.path("workspace/go"), "").unwrap();
    second.wait().await;
    assert_eq!(names(&world.workspace()), ["go"]);
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_a_killed_supervisor_left_is_removed_by_the_next() {
    use rustix::process::{Pid, Signal, kill_process};
    let world = World::new();
    let mut running = world.start(world.sh("sleep 1000")).await.unwrap();
    let supervisor = Pid::from_raw(running.supervisor().try_into().unwrap()).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    running.wait().await;
    assert!(!names(&world.workspace()).is_empty());
    world.run(world.sh("true")).await.says("");
    assert_eq!(names(&world.workspace()), [""; 0]);
}

#[tokio::test]
async fn what_a_person_puts_in_a_placeholder_stays() {
    let world = World::new();
    let mut running = world.start(world.sh("echo up; sleep 1000")).await.unwrap();
    running.output().follow(0).await;
    fs::write(world.path("workspace/.claude/settings.json"), "mine").unwrap();
    running.stop();
    running.wait().await;
    assert_eq!(names(&world.workspace()), [".claude"]);
    assert_eq!(fs::read_to_string(world.path("workspace/.claude/settings.json")).unwrap(), "mine");
}

/// The folder in which the placeholders of a workspace are kept between runs.
fn spares(world: &World) -> PathBuf {
    let all = world.path("state/spares");
    let folders = names(&all);
    assert_eq!(folders.len(), 1, "{folders:?}");
    all.join(&folders[0])
}

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path).unwrap())
}

#[tokio::test]
async fn placeholders_are_kept_for_the_next_run_in_the_same_place() {
    let world = World::new();
    world.run(world.sh("ls -d .claude .vscode")).await.says(".claude\n.vscode");
    assert_eq!(names(&world.workspace()), [""; 0]);
    let kept = spares(&world);
    let claude = inode(&kept.join(".claude"));
    let mut running =
        world.start(world.sh("echo x > .claude/y; mv .claude z; echo up; sleep 1000")).await.unwrap();
    running.output().follow(0).await;
    assert_eq!(inode(&world.path("workspace/.claude")), claude, "it is the one of the first run");
    assert_eq!(names(&kept), [""; 0]);
    running.stop();
    running.wait().await;
    assert_eq!(names(&world.workspace()), [""; 0]);
    assert_eq!(inode(&kept.join(".claude")), claude);
    // Another place has its own.
    let mut draft = world.sh("true");
    fs::create_dir(world.path("other")).unwrap();
    draft.cwd = find_place(&world.path("other")).unwrap();
    draft.writable = vec![draft.cwd.clone()];
    world.run(draft).await.says("");
    assert_eq!(names(&world.path("state/spares")).len(), 2);
    assert_eq!(inode(&kept.join(".claude")), claude);
}

#[tokio::test]
async fn a_spare_that_somebody_has_touched_is_not_used() {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let world = World::new();
    world.run(world.sh("true")).await.says("");
    let kept = spares(&world);
    let mark = Timespec { tv_sec: provost::jail::PLACEHOLDER_MTIME, tv_nsec: 0 };
    // One with something in it and the right mark, one empty without it, one that is a link to elsewhere.
    fs::write(kept.join(".vscode/tasks.json"), "planted").unwrap();
    let times = Timestamps { last_access: mark, last_modification: mark };
    utimensat(CWD, kept.join(".vscode"), &times, AtFlags::empty()).unwrap();
    fs::write(kept.join(".zed/x"), "").unwrap();
    fs::remove_file(kept.join(".zed/x")).unwrap();
    fs::remove_dir(kept.join(".claude")).unwrap();
    symlink(world.path("home"), kept.join(".claude")).unwrap();
    let mut running = world.start(world.sh("ls -A .vscode .zed .claude; echo up; sleep 1000")).await.unwrap();
    running.output().follow(0).await;
    for name in [".vscode", ".zed", ".claude"] {
        let there = world.workspace().join(name);
        assert!(fs::symlink_metadata(&there).unwrap().is_dir(), "{name}");
        assert_eq!(names(&there), [""; 0], "{name}");
        assert_ne!(inode(&there), inode(&kept.join(name)), "{name}");
    }
    running.stop();
    running.wait().await;
    assert_eq!(names(&world.workspace()), [""; 0]);
}

#[tokio::test]
async fn spares_of_many_places_do_not_add_up() {
    let world = World::new();
    for number in 0..provost::base::limits::SPARE_FOLDERS_MAX + 3 {
        let folder = world.path(&format!("place{number}"));
        fs::create_dir(&folder).unwrap();
        let mut draft = world.sh("true");
        draft.cwd = find_place(&folder).unwrap();
        draft.writable = vec![draft.cwd.clone()];
        world.run(draft).await.says("");
        assert_eq!(names(&folder), [""; 0]);
    }
    let kept = names(&world.path("state/spares")).len();
    assert_eq!(kept, provost::base::limits::SPARE_FOLDERS_MAX);
}

#[tokio::test]
async fn a_protected_file_that_is_replaced_from_outside_ends_the_worker() {
    let world = World::new();
    // Replacing a file takes its mount away with it, in every namespace: the kernel's rule.
    let goes_on = "echo up; while :; do echo '# planted' >> .envrc; sleep 0.01; done 2>/dev/null";
    let leaves = "echo up; until echo '# planted' >> .envrc; do :; done 2>/dev/null";
    for script in [goes_on, leaves] {
        fs::write(world.path("workspace/.envrc"), "mine").unwrap();
        let mut running = world.start(world.sh(script)).await.unwrap();
        running.output().follow(0).await;
        fs::write(world.path("outside/new"), "newer").unwrap();
        fs::rename(world.path("outside/new"), world.path("workspace/.envrc")).unwrap();
        let exit = tokio::time::timeout(Duration::from_secs(10), running.wait()).await;
        assert_eq!(exit.unwrap().reason, ExitReason::ProtectionLost);
    }
}

/// Reports how each try to connect has ended, until its input says to stop.
const CALLER: &str = "
import os, socket, time
def tried():
    try: socket.socket(socket.AF_UNIX).connect('dev.sock'); return 'through'
    except OSError as e: return e.strerror
print(tried(), flush=True)
while not os.path.exists('stop'): time.sleep(0.01)
";

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_of_the_users_is_covered_while_it_is_there_and_another_in_its_place_ends_the_run() {
    for comes_again in [false, true] {
        let world = World::new();
        let path = world.path("workspace/dev.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut draft = world.python(CALLER);
        draft.sockets.push(path.clone());
        let mut running = world.start(draft).await.unwrap();
        soon("the first try", || running.output().text(Stream::Out).contains('\n'));
        assert_eq!(running.output().text(Stream::Out), "Connection refused\n");
        drop(listener);
        fs::remove_file(&path).unwrap();
        let _again = comes_again.then(|| UnixListener::bind(&path).unwrap());
        if !comes_again {
            fs::write(world.path("workspace/stop"), "").unwrap();
        }
        let expected = if comes_again { ExitReason::ProtectionLost } else { ExitReason::Code(0) };
        assert_eq!(running.wait().await.reason, expected);
        assert_eq!(path.exists(), comes_again, "nothing was left in its place");
    }
}

#[tokio::test]
async fn who_uses_git_outside_meanwhile_disturbs_no_worker() {
    let world = repository();
    let mut running = world
        .start(world.sh("echo up; until [ -e go ]; do sleep 0.01; done; git log --format=%s"))
        .await
        .unwrap();
    running.output().follow(0).await;
    git(&world, &["config", "some.key", "value"]);
    fs::write(world.path("workspace/file"), "two\n").unwrap();
    git(&world, &["commit", "-qam", "two"]);
    fs::write(world.path("workspace/go"), "").unwrap();
    let exit = tokio::time::timeout(Duration::from_secs(10), running.wait()).await;
    assert_eq!(exit.unwrap().reason, ExitReason::Code(0));
    assert!(running.output().text(provost::jail::Stream::Out).contains("two\none"));
}

#[tokio::test]
async fn one_more_repository_ends_a_worker_and_an_empty_folder_or_another_jails_does_not() {
    let world = repository();
    fs::create_dir_all(world.path("workspace/old/.git")).unwrap();
    fs::write(world.path("workspace/old/.git/HEAD"), "x").unwrap();
    let worker = |script: &str| {
        let mut draft = world.sh(script);
        let known = [".git", "old/.git"].map(|it| world.path("workspace").join(it)).into();
        draft.repositories = Some(provost::jail::Repositories { known, own: None });
        draft
    };
    for made in [
        "mkdir -p a/.git && echo x > a/.git/HEAD",
        "mkdir b && ln -s x b/.git",
        "echo x > .GIT",
        "git init -q c",
    ] {
        for rest in ["sleep 1000", "true"] {
            let mut running = world.start(worker(&format!("{made}; {rest}"))).await.unwrap();
            let exit = tokio::time::timeout(Duration::from_secs(20), running.wait()).await;
            assert_eq!(exit.unwrap().reason, ExitReason::RepositoryMade, "{made}; {rest}");
            for name in ["a", "b", "c"] {
                let _there = fs::remove_dir_all(world.path("workspace").join(name));
            }
            let _there = fs::remove_file(world.path("workspace/.GIT"));
        }
    }
    // Another jail, for a folder of the workspace, has a placeholder there.
    fs::create_dir(world.path("workspace/part")).unwrap();
    let mut draft = world.sh("echo up; sleep 1000");
    draft.cwd = find_place(&world.path("workspace/part")).unwrap();
    draft.writable = vec![draft.cwd.clone()];
    let mut other = world.start(draft).await.unwrap();
    other.output().follow(0).await;
    assert!(world.path("workspace/part/.git").exists());
    let mut running = world.start(worker("mkdir -p z/.git; sleep 2.5")).await.unwrap();
    assert_eq!(running.wait().await.reason, ExitReason::Code(0));
    other.stop();
    other.wait().await;
}

#[tokio::test]
async fn one_more_repository_ends_a_worker_long_before_the_next_walk() {
    let world = repository();
    fs::create_dir(world.path("workspace/folder")).unwrap();
    let mut lived = Vec::new();
    // How far a worker comes afterwards, counted in short sleeps: a walk comes by once a second.
    for place in ["one", "folder/two", "three/four/five", "folder/six", "seven"] {
        let script = format!(
            "sleep 0.8; mkdir -p {place}/.git; sleep 0.3; echo x > {place}/.git/HEAD; while :; do echo; sleep 0.01; done"
        );
        let mut draft = world.sh(&script);
        let known = [world.path("workspace/.git")].into();
        draft.repositories = Some(provost::jail::Repositories { known, own: None });
        let mut running = world.start(draft).await.unwrap();
        let exit = tokio::time::timeout(Duration::from_secs(20), running.wait()).await;
        assert_eq!(exit.unwrap().reason, ExitReason::RepositoryMade, "{place}");
        lived.push(running.output().text(Stream::Out).lines().count());
        fs::remove_dir_all(world.path("workspace").join(place)).unwrap();
    }
    lived.sort_unstable();
    assert!(lived[2] < 25, "{lived:?}");
}
