//! The git hooks, with real repositories: what they refuse, what they leave alone, and when they could not tell.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::support::World;

const LOGIN: &str = "export function login(a: string): string { return a }\n";
const CHANGED: &str = "export function login(a: number): string { return \"\" }\n";

impl World {
    /// A git command in a folder of the world.
    pub(crate) fn git_in(&self, folder: &Path, args: &[&str]) -> Command {
        let like = self.command(&[]);
        let mut git = Command::new("git");
        git.args(args).current_dir(folder).env_clear();
        git.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.org");
        }
        git
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let done = self.git_in(&self.repo(), args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Stages everything and commits it, as an agent; what git said.
    fn commit(&self, agent: &str) -> Output {
        self.git(&["add", "-A"]);
        self.git_in(&self.repo(), &["commit", "-qm", "more"]).env("PROVOST_AGENT", agent).output().unwrap()
    }

    fn install(&self) {
        let done = self.command(&["git", "install"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn agree(&self, symbol: &str) -> String {
        let id = self.done("a", &["contract", "propose", symbol])["id"].as_str().unwrap().to_owned();
        self.done("b", &["contract", "accept", &id]);
        id
    }

    fn hook(&self, name: &str) -> PathBuf {
        self.repo().join(".git/hooks").join(name)
    }

    fn write_hook(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// A repository with one commit.
fn world() -> World {
    let world = World::new();
    world.write("src/auth.ts", LOGIN);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    world
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn goes(output: &Output) -> String {
    assert!(output.status.success(), "{}", words(output));
    words(output)
}

#[track_caller]
fn is_refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", words(output));
    words(output)
}

#[test]
fn a_commit_that_breaks_a_contract_is_refused_whatever_git_calls_the_change() {
    let world = world();
    let _daemon = world.start();
    world.write("src/one.jsx", "export function one(a) { return a }\n");
    // Long enough for git to know it again.
    let rest = "# one line of many\n".repeat(20);
    world.write("src/two.py", &format!("def two(a: int) -> int:\n    return a\n{rest}"));
    world.write("src/odd name's \"x\".tsx", LOGIN);
    goes(&world.commit("a"));
    for symbol in ["src/auth.ts:login", "src/one.jsx:one", "src/two.py:two", "src/odd name's \"x\".tsx:login"]
    {
        world.agree(symbol);
    }
    world.install();
    let restore = || {
        world.git(&["reset", "-q", "--hard"]);
    };
    for (path, text) in [
        ("src/auth.ts", CHANGED),
        ("src/one.jsx", "export function one(a, b) { return a }\n"),
        ("src/two.py", "def two(a: str) -> int:\n    return 1\n"),
        ("src/odd name's \"x\".tsx", CHANGED),
    ] {
        world.write(path, text);
        let no = is_refused(&world.commit("c"));
        assert!(no.contains(&format!("Contract violation: {path}:")), "{no}");
        assert!(no.contains("\n  expected: ") && no.contains("\n  actual:   "), "{no}");
        restore();
    }
    world.git(&["rm", "-q", "src/auth.ts"]);
    assert!(is_refused(&world.commit("c")).contains("the file is gone"));
    restore();
    // A link in its place is no file any more.
    fs::remove_file(world.repo().join("src/auth.ts")).unwrap();
    std::os::unix::fs::symlink("two.py", world.repo().join("src/auth.ts")).unwrap();
    is_refused(&world.commit("c"));
    restore();
    // Renamed as it is, the contract goes along; renamed and changed, it is broken; and so it is later on.
    world.git(&["mv", "src/two.py", "src/three.py"]);
    world.write("src/three.py", &format!("# a comment\ndef two( a:int )->int:\n    return a\n{rest}"));
    goes(&world.commit("c"));
    world.write("src/three.py", &format!("def two(a: str) -> int:\n    return 1\n{rest}"));
    is_refused(&world.commit("c"));
    restore();
    world.git(&["mv", "src/one.jsx", "src/new.jsx"]);
    world.write("src/new.jsx", "export function one(a, b) { return a }\n");
    is_refused(&world.commit("c"));
    restore();
    // Under a name that nobody can write down, it has gone.
    world.git(&["mv", "src/one.jsx", "src/li\nne.jsx"]);
    is_refused(&world.commit("c"));
    restore();
    // Layout does not matter, and what is on disk but not staged does not either.
    world.write("src/auth.ts", &format!("// moved\n{}", LOGIN.replace("(a: string)", "( a:string, )")));
    world.git(&["add", "-A"]);
    world.write("src/auth.ts", CHANGED);
    goes(&world.git_in(&world.repo(), &["commit", "-qm", "layout"]).output().unwrap());
    is_refused(&world.git_in(&world.repo(), &["commit", "-qam", "all"]).output().unwrap());
    goes(&world.git_in(&world.repo(), &["commit", "-qam", "all", "--no-verify"]).output().unwrap());
}

#[test]
fn one_violation_among_many_files_with_odd_names_is_found() {
    let world = world();
    let _daemon = world.start();
    for number in 0..120 {
        world.write(&format!("src/file {number}.ts"), &LOGIN.replace("login", &format!("f{number}")));
    }
    world.write("src/line\nbreak.ts", LOGIN);
    let bytes = std::ffi::OsStr::from_bytes(b"src/not-\xff-text.ts");
    fs::write(world.repo().join(bytes), LOGIN).unwrap();
    goes(&world.commit("a"));
    for number in [7, 60, 119] {
        world.agree(&format!("src/file {number}.ts:f{number}"));
    }
    world.install();
    let change = |number: u32, text: &str| {
        world.write(&format!("src/file {number}.ts"), &text.replace("login", &format!("f{number}")));
    };
    (0..120).for_each(|number| change(number, &format!("// more\n{LOGIN}")));
    change(60, CHANGED);
    world.write("src/line\nbreak.ts", CHANGED);
    fs::write(world.repo().join(bytes), CHANGED).unwrap();
    let no = is_refused(&world.commit("c"));
    assert_eq!(no.matches("Contract violation").count(), 1, "{no}");
    assert!(no.contains("src/file 60.ts:f60"), "{no}");
    change(60, LOGIN);
    goes(&world.commit("c"));
}

#[test]
fn a_lock_of_somebody_else_is_told_refused_or_ignored_as_configured() {
    let world = world();
    let other = "export function other(): void {}\n";
    world.write("src/auth.ts", &format!("{LOGIN}{other}"));
    goes(&world.commit("a"));
    let _daemon = world.start();
    world.install();
    world.done("a", &["lock", "src/auth.ts:login"]);
    let change = |round: u32| {
        let login = LOGIN.replace("return a", &format!("return a + {round}"));
        world.write("src/auth.ts", &format!("{login}{other}"));
    };
    change(1);
    assert!(goes(&world.commit("b")).contains("locked: src/auth.ts:login by a"));
    world.configure("[coordination]\nenforce = \"deny\"\n");
    change(2);
    assert!(is_refused(&world.commit("b")).contains("locked: src/auth.ts:login by a"));
    assert!(!goes(&world.commit("a")).contains("locked"), "its own lock is in nobody's way");
    // Beside it one may work.
    let login = fs::read_to_string(world.repo().join("src/auth.ts")).unwrap();
    world.write("src/auth.ts", &login.replace("other(): void {}", "other(): void { login(\"\") }"));
    goes(&world.commit("b"));
    world.git(&["mv", "src/auth.ts", "src/moved.ts"]);
    is_refused(&world.commit("b"));
    world.git(&["reset", "-q", "--hard"]);
    world.configure("[coordination]\nenforce = \"off\"\n");
    change(3);
    assert!(!goes(&world.commit("b")).contains("locked"));
}

#[test]
fn trailers_name_the_live_intents_of_whoever_commits_for_what_is_committed() {
    let world = world();
    let _daemon = world.start();
    world.install();
    world.write("b.ts", LOGIN);
    let intend = |agent: &str, file: &str| {
        world.done(agent, &["intend", "x", "--file", file])["intent"]["id"].as_str().unwrap().to_owned()
    };
    let (mine, _elsewhere, _others) = (intend("a", "b.ts"), intend("a", "src/auth.ts"), intend("b", "b.ts"));
    goes(&world.commit("a"));
    let message = || world.git(&["log", "-1", "--format=%B"]);
    assert_eq!(message().trim(), format!("more\n\nWit-Intent: {mine}"));
    // Amended, it is there once.
    world.write("b.ts", CHANGED);
    world.git(&["add", "-A"]);
    let amend = world
        .git_in(&world.repo(), &["commit", "-q", "--amend", "--no-edit"])
        .env("WIT_SESSION", "a")
        .output();
    goes(&amend.unwrap());
    assert_eq!(message().matches("Wit-Intent").count(), 1);
    world.done("a", &["intent", "update", &mine, "resolved"]);
    world.write("b.ts", LOGIN);
    goes(&world.commit("a"));
    assert_eq!(message().trim(), "more");
}

#[test]
fn a_hook_that_was_there_has_the_first_word_and_comes_back() {
    let world = world();
    let _daemon = world.start();
    let seen = world.path("seen");
    // One of plain sh that looks at its own name, as some tools' do, and one in another language.
    world.write_hook(
        &world.hook("pre-commit"),
        &format!(
            "#!/bin/sh\nset -e\necho \"$(basename \"$0\") $#\" >> '{0}'\n[ ! -e refuse ]\necho on >> '{0}'\n",
            seen.display()
        ),
    );
    world.write_hook(
        &world.hook("pre-push"),
        &format!("#!/usr/bin/env bash\necho \"$1 $(cut -d' ' -f1)\" >> '{}'\nexit 7\n", seen.display()),
    );
    let before = fs::read(world.hook("pre-commit")).unwrap();
    world.install();
    world.install();
    let status = || world.done("x", &["git", "status"]);
    assert_eq!(
        status()[0],
        json!({
            "hook": "pre-commit", "state": "installed", "chained": true,
            "path": world.repo().canonicalize().unwrap().join(".git/hooks/pre-commit").display().to_string(),
        })
    );
    assert_eq!(fs::read(world.hook("pre-commit.before-provost")).unwrap(), before);

    world.write("x.txt", "x");
    goes(&world.commit("a"));
    assert_eq!(fs::read_to_string(&seen).unwrap(), "pre-commit 0\non\n");
    world.write("refuse", "");
    is_refused(&world.commit("a"));
    assert_eq!(fs::read_to_string(&seen).unwrap(), "pre-commit 0\non\npre-commit 0\n", "`set -e` counts");

    let remote = world.path("remote.git");
    world.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    world.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    let push =
        world.git_in(&world.repo(), &["push", "-q", "origin", "HEAD:refs/heads/main"]).output().unwrap();
    is_refused(&push);
    assert!(
        fs::read_to_string(&seen).unwrap().ends_with("origin HEAD\n"),
        "the same words and the same input"
    );

    // A tool that puts its own there again is not written over unseen.
    world.write_hook(&world.hook("pre-commit"), "#!/bin/sh\nexit 0\n");
    assert_eq!(status()[0]["state"], "other");
    let no = world.command(&["git", "install"]).output().unwrap();
    assert_eq!(no.status.code(), Some(4), "{no:?}");
    fs::write(world.hook("pre-commit"), &before).unwrap();
    world.install();

    let done = world.command(&["git", "uninstall"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read(world.hook("pre-commit")).unwrap(), before);
    assert!(!world.hook("prepare-commit-msg").exists() && !world.hook("pre-commit.before-provost").exists());
}

#[test]
fn hooks_path_is_honoured_and_one_outside_is_asked_about() {
    let world = world();
    let _daemon = world.start();
    world.git(&["config", "core.hooksPath", ".husky/_"]);
    // As husky has it: the hook finds out by its own name what to run.
    world.write_hook(
        &world.repo().join(".husky/_/h"),
        "n=$(basename \"$0\")\nsh -e \"$(dirname \"$(dirname \"$0\")\")/$n\"\nexit $?\n",
    );
    world.write_hook(
        &world.repo().join(".husky/_/pre-commit"),
        "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"\n",
    );
    world.write_hook(&world.repo().join(".husky/pre-commit"), "echo husky ran >&2\n");
    let below = world.by("x", &["git", "install"]).current_dir(world.repo().join("src")).output().unwrap();
    assert!(below.status.success(), "{below:?}");
    world.agree("src/auth.ts:login");
    world.write("src/auth.ts", CHANGED);
    let no = is_refused(&world.commit("c"));
    assert!(no.contains("husky ran") && no.contains("Contract violation"), "{no}");

    let outside = world.path("hooks");
    world.git(&["config", "core.hooksPath", outside.to_str().unwrap()]);
    let no = world.command(&["git", "install"]).output().unwrap();
    assert_eq!(no.status.code(), Some(4), "{no:?}");
    assert!(!outside.exists());
    let done = world.command(&["git", "install", "--shared"]).output().unwrap();
    assert!(done.status.success() && outside.join("pre-commit").exists(), "{done:?}");
}

#[test]
fn work_trees_and_folders_below_share_the_hooks_and_the_daemon() {
    let world = world();
    let tree = world.path("tree");
    world.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let _daemon = world.start();
    world.install();
    world.agree("src/auth.ts:login");
    for folder in [tree.clone(), tree.join("src"), world.repo().join("src")] {
        let top = if folder.starts_with(&tree) { tree.clone() } else { world.repo() };
        fs::write(top.join("src/auth.ts"), CHANGED).unwrap();
        let no = world.git_in(&folder, &["commit", "-qam", "x"]).output().unwrap();
        assert!(is_refused(&no).contains("Contract violation"));
        let status = world.by("x", &["git", "status"]).current_dir(&folder).output().unwrap();
        assert_eq!(crate::support::commands::said(&status).1[2]["state"], "installed");
    }
}

#[test]
fn what_is_pushed_is_held_against_contracts_too() {
    let world = world();
    let remote = world.path("remote.git");
    world.git(&["init", "-q", "--bare", remote.to_str().unwrap()]);
    world.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    world.git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    world.git(&["fetch", "-q"]);
    let _daemon = world.start();
    world.install();
    world.agree("src/auth.ts:login");
    let push = |to: &str| world.git_in(&world.repo(), &["push", "-q", "origin", to]).output().unwrap();
    world.write("other.txt", "x");
    goes(&world.commit("c"));
    goes(&push("HEAD:refs/heads/main"));
    world.write("src/auth.ts", CHANGED);
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "sneaked in", "--no-verify"]);
    world.write("other.txt", "y");
    goes(&world.commit("c"));
    for to in ["HEAD:refs/heads/main", "HEAD:refs/heads/new"] {
        let no = is_refused(&push(to));
        assert!(no.contains("Contract violation: src/auth.ts:login"), "{no}");
    }
    goes(&push(":refs/heads/main"));
    world.write("src/auth.ts", LOGIN);
    goes(&world.commit("c"));
    goes(&push("HEAD:refs/heads/main"));
}

#[test]
fn a_check_that_cannot_be_made_says_so_and_blocks_only_if_configured() {
    let world = world();
    let mut daemon = world.start();
    world.agree("src/auth.ts:login");
    world.install();
    world.configure("[git]\ndeadline = \"1s\"\n");
    world.write("src/auth.ts", CHANGED);
    // It hangs: the hooks end all the same.
    let pid = rustix::process::Pid::from_child(&daemon.child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let warned = goes(&world.commit("c"));
    assert!(warned.contains("not checked") && warned.contains("longer"), "{warned}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    daemon.kill();
    world.write("src/auth.ts", &format!("{CHANGED}\n"));
    let warned = goes(&world.commit("c"));
    assert!(warned.contains("not checked") && warned.contains("no daemon runs"), "{warned}");
    world.configure("[git]\nwhen_unchecked = \"block\"\n");
    world.write("src/auth.ts", LOGIN);
    assert!(is_refused(&world.commit("c")).contains("not checked"));
    // A configuration that cannot be used may have said so, too.
    world.configure("[git]\nwhen_unchecked = \"maybe\"\n");
    assert!(is_refused(&world.commit("c")).contains("configuration"));
    // Started by the hook itself, it checks.
    world.configure("[git]\nstart_daemon = true\ndeadline = \"1m\"\n");
    goes(&world.commit("c"));
    world.write("src/auth.ts", CHANGED);
    assert!(is_refused(&world.commit("c")).contains("Contract violation"));
    // No daemon outlives the test: none is started from here on.
    world.configure("");
    assert!(world.command(&["down"]).output().unwrap().status.success());
    // The program is gone altogether.
    let hook = world.hook("pre-commit");
    let script = fs::read_to_string(&hook).unwrap();
    let place = crate::support::provost().canonicalize().unwrap();
    fs::write(&hook, script.replace(place.to_str().unwrap(), "/nowhere/provost")).unwrap();
    assert!(goes(&world.commit("c")).contains("the program is gone"));
}

#[test]
fn a_commit_is_checked_where_git_s_index_cannot_be_held() {
    let world = world();
    let _daemon = world.start();
    world.agree("src/auth.ts:login");
    world.install();
    // As many resources as one share has: there is no room for the index.
    let mut taken = 0;
    while world.ask(&format!("n{}", taken % 5), &["lock", &format!("@full:{taken}")]).0 == 0 {
        taken += 1;
    }
    world.write("src/auth.ts", CHANGED);
    let no = is_refused(&world.commit("n0"));
    assert!(no.contains("Contract violation: src/auth.ts:login"), "{no}");
    assert_eq!(no.matches("warning: git's index is not held for this commit").count(), 1, "{no}");
}
