//! Repositories in a workspace: what workers do in them, and what is reported of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{Client, World};

/// As a person types it: with nothing switched off.
pub(crate) fn git(folder: &Path, args: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]);
    git.args(args).current_dir(folder).env("HOME", folder.parent().unwrap()).output().unwrap()
}

pub(crate) fn well(folder: &Path, args: &[&str]) -> String {
    let done = git(folder, args);
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

pub(crate) fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A repository with one commit.
pub(crate) fn committed(world: &World) -> PathBuf {
    let repo = world.repo();
    write(repo.join("src/a.rs"), "fn a() {}\n");
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "one"]);
    repo
}

pub(crate) fn ended(client: &Client, worker: &str, goal: &str) -> Value {
    let (task, reply) = client.delegate(worker, goal, json!({ "timeout": 60 }));
    reply.ack();
    client.result_of(&task)
}

/// Two workers that are shells in a copy: `kept`, whose changes are kept, and `thrown`, whose copy is deleted.
pub(crate) fn in_copies() -> String {
    let entry = |name: &str, copy: &str| {
        format!(
            "[workers.{name}]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\nparse_mode = \"text\"\ncopy = {copy}\n"
        )
    };
    [entry("kept", "\"kept\""), entry("thrown", "true")].concat()
}

pub(crate) fn findings(result: &Value) -> Vec<String> {
    let all = result["artifacts"]["metadata"]["handoff"]["findings"].as_array().cloned().unwrap_or_default();
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    all.iter().map(|it| ["change", "kind", "path"].map(|name| word(it, name)).join(" ")).collect()
}

/// The command that makes `at` a repository that is not called `.git`, as git itself recognises one.
pub(crate) const BARE: &str =
    "git init -q --bare at && git -C at config core.bare false && git -C at config core.worktree ..";

/// A worker of tier `ll`, whose jail cannot protect files in the workspace, and a policy that lets it run.
pub(crate) const THIN: &str = "[workers.thin]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n";

pub(crate) const OPEN: &str = "[policy]\nfile = \"builtin:open\"\n";
