//! The files that git's configuration and Provost's protect in a workspace, for real daemons, jails and repositories.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, World, eventually};

fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]);
    let done = git.args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn write(world: &World, path: &str, text: &str) {
    let path = world.repo().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.repo().join(path)).unwrap_or_else(|err| err.kind().to_string())
}

fn result(client: &Client, goal: &str, more: Value) -> Value {
    let (task, reply) = client.delegate("shell", goal, more);
    reply.ack();
    client.result_of(&task)
}

/// Runs a goal that tries to get at something, and makes sure that it ran and left nothing that runs later.
fn in_vain(client: &Client, goal: &str) {
    let result = result(client, &format!("{goal}\necho tried"), json!({}));
    assert_eq!(result["artifacts"]["details"]["stdout"], "tried\n", "{result:#}");
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!(metadata["tainted"], false, "{metadata:#}");
}

/// Why a task was not run.
fn refusal(client: &Client, more: Value) -> String {
    let result = result(client, "touch ran", more);
    assert_eq!(result["metadata"]["failure"]["reason"], "jail_refused", "{result}");
    result["metadata"]["failure"]["explanation"].as_str().unwrap().to_owned()
}

#[test]
fn hooks_are_protected_wherever_git_looks_for_them() {
    let world = World::new();
    write(&world, "team/hooks/pre-push", "mine\n");
    git(&world.repo(), &["config", "core.hooksPath", "team/hooks"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(
        &client,
        "echo x > team/hooks/pre-commit; echo x >> team/hooks/pre-push; mv team t; mv team/hooks h; \
         rm -r team/hooks; echo fine > team/other",
    );
    assert_eq!(
        (read(&world, "team/hooks/pre-push"), read(&world, "team/other")),
        ("mine\n".into(), "fine\n".into())
    );
    // Where there is none yet.
    git(&world.repo(), &["config", "core.hooksPath", "later/hooks"]);
    in_vain(&client, "mkdir -p later/hooks; echo x > later/hooks/pre-commit");
    assert!(!world.repo().join("later").exists());
    // In the user's own configuration.
    git(&world.repo(), &["config", "--unset", "core.hooksPath"]);
    std::fs::write(world.home().join(".gitconfig"), "[core]\n\thooksPath = .mine\n").unwrap();
    in_vain(&client, "mkdir .mine; echo x > .mine/pre-commit");
    assert!(!world.repo().join(".mine").exists());
}

#[test]
fn hooks_that_cannot_be_protected_refuse_the_worker() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("hooks/inner")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    git(&world.repo(), &["config", "core.hooksPath", "."]);
    assert!(refusal(&client, json!({})).contains("core.hooksPath"));
    git(&world.repo(), &["config", "core.hooksPath", "hooks"]);
    assert!(refusal(&client, json!({ "working_dir": "hooks/inner" })).contains("another working directory"));
    symlink("hooks", world.repo().join("link")).unwrap();
    git(&world.repo(), &["config", "core.hooksPath", "link"]);
    assert!(refusal(&client, json!({})).contains("link"));
    std::fs::write(world.repo().join(".git/config"), "[core\n").unwrap();
    assert!(refusal(&client, json!({})).contains("git's configuration cannot be read"));
    for ran in ["ran", "hooks/inner/ran"] {
        assert!(!world.repo().join(ran).exists(), "{ran}");
    }
}

#[test]
fn files_that_gits_configuration_includes_or_runs_are_protected() {
    let world = World::new();
    write(&world, "shared.gitconfig", "[alias]\n\tst = status\n");
    write(&world, "tools/clean.sh", "mine\n");
    write(&world, "tools/other.sh", "anybody's\n");
    git(&world.repo(), &["config", "include.path", "../shared.gitconfig"]);
    git(&world.repo(), &["config", "includeIf.onbranch:work.path", "../work.gitconfig"]);
    git(&world.repo(), &["config", "filter.f.clean", "sh ./tools/clean.sh %f"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(
        &client,
        "echo x >> shared.gitconfig; rm shared.gitconfig; echo x > work.gitconfig; mv tools t; \
         echo x > tools/clean.sh; echo x > n; mv -f n tools/clean.sh; rm -f n; echo x > tools/other.sh",
    );
    assert_eq!(read(&world, "tools/clean.sh"), "mine\n");
    assert_eq!(read(&world, "shared.gitconfig"), "[alias]\n\tst = status\n");
    assert_eq!(read(&world, "tools/other.sh"), "x\n");
    assert!(!world.repo().join("work.gitconfig").exists());
}

#[test]
fn the_link_of_a_submodule_cannot_be_turned_elsewhere() {
    let world = World::new();
    let origin = world.path("origin");
    std::fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "--quiet"]);
    git(&origin, &["commit", "--quiet", "--allow-empty", "--message", "one"]);
    git(&world.repo(), &["submodule", "--quiet", "add", origin.to_str().unwrap(), "deps/sub"]);
    let link = read(&world, "deps/sub/.git");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(
        &client,
        "echo 'gitdir: /tmp' > deps/sub/.git; rm -f deps/sub/.git; mv deps d; \
         echo x > .git/modules/deps/sub/hooks/post-checkout; echo x >> .git/modules/deps/sub/config; \
         echo fine > deps/sub/file; git -C deps/sub status --short > /dev/null || exit 1",
    );
    assert_eq!((read(&world, "deps/sub/.git"), read(&world, "deps/sub/file")), (link, "fine\n".into()));
}

#[test]
fn a_linked_worktree_is_protected_like_its_repository() {
    let world = World::new();
    git(&world.repo(), &["commit", "--quiet", "--allow-empty", "--message", "one"]);
    git(&world.repo(), &["worktree", "add", "--quiet", "inner"]);
    git(&world.repo(), &["config", "core.hooksPath", "hooks"]);
    let link = read(&world, "inner/.git");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(
        &client,
        "echo x > inner/.git; mv inner i; echo x > .git/worktrees/inner/commondir; echo fine > inner/file",
    );
    assert_eq!((read(&world, "inner/.git"), read(&world, "inner/file")), (link.clone(), "fine\n".into()));
    // A task in it: the repository lies outside of what it may change.
    let (task, _) =
        client.delegate("shell", "echo x > .git; rm -f .git; echo tried", json!({ "working_dir": "inner" }));
    let result = client.result_of(&task);
    assert_eq!(result["artifacts"]["metadata"]["tainted"], false, "{result:#}");
    assert_eq!(read(&world, "inner/.git"), link);
}

#[test]
fn further_paths_are_protected_as_configured_for_all_and_for_one() {
    let world = World::new();
    let entry = "type = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n";
    world.configure(&format!(
        "[workspace]\nprotect = [\".github/workflows\", \"part/deep/file\"]\n[workers.shy]\n{entry}protect = [\"docs\"]\n"
    ));
    write(&world, ".github/workflows/ci.yml", "mine\n");
    write(&world, "docs/a.md", "mine\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(
        &client,
        "echo x > .github/workflows/ci.yml; mv .github g; mkdir -p part/deep; echo x > part/deep/file; \
         echo fine > docs/a.md",
    );
    assert_eq!(read(&world, ".github/workflows/ci.yml"), "mine\n");
    assert_eq!(read(&world, "docs/a.md"), "fine\n");
    assert!(!world.repo().join("part").exists());
    let (task, _) = client.delegate(
        "shy",
        "echo x > docs/a.md; rm -r docs; echo x > .github/workflows/ci.yml",
        json!({}),
    );
    client.result_of(&task);
    assert_eq!(
        (read(&world, "docs/a.md"), read(&world, ".github/workflows/ci.yml")),
        ("fine\n".into(), "mine\n".into())
    );
    assert!(refusal(&client, json!({ "working_dir": ".github/workflows" })).contains("is protected"));

    // In tier ll, where nothing can be protected, a change is named.
    let thin = format!("{entry}tier = \"ll\"\n");
    world.configure(&format!(
        "[policy]\nfile = \"builtin:open\"\n[workers.thin]\n{thin}protect = [\"docs\"]\n"
    ));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let (task, _) = client.delegate("thin", "echo x > docs/a.md; echo x > docs/b.md", json!({}));
    let result = client.result_of(&task);
    let handoff = &result["artifacts"]["metadata"]["handoff"]["findings"];
    let expected = json!([
        { "path": "docs/a.md", "kind": "protected", "change": "changed" },
        { "path": "docs/b.md", "kind": "protected", "change": "new" },
    ]);
    assert_eq!(*handoff, expected, "{result:#}");
}

#[test]
fn a_path_that_cannot_be_protected_is_an_error_of_the_configuration() {
    for wrong in ["/etc", "../x", ".", "", "a\\n"] {
        let world = World::new();
        world.configure(&format!("[workspace]\nprotect = [\"{wrong}\"]\n"));
        let said = world.command(&["up", "--foreground"]).output().unwrap();
        assert!(!said.status.success(), "{wrong}");
        assert!(String::from_utf8_lossy(&said.stderr).contains("protect"), "{wrong}: {said:?}");
    }
    let world = World::new();
    let entry = "type = \"cli\"\nbinary = \"/bin/sh\"\nprotect = [\"../x\"]\n";
    world.configure(&format!("[workers.odd]\n{entry}"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    assert_eq!(client.delegate("odd", "x", json!({})).1.code(), "E_INVALID");
}

#[test]
fn a_repositorys_file_cannot_change_what_is_protected() {
    let world = World::new();
    world.configure("[workspace]\nprotect = [\"docs\"]\n");
    write(&world, "docs/a.md", "mine\n");
    write(&world, ".provost/provost.toml", "[workspace]\nprotect = []\n");
    assert!(
        world.command(&["config", "allow", ".provost/provost.toml", "--yes"]).status().unwrap().success()
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    in_vain(&client, "echo x > docs/a.md");
    assert_eq!(read(&world, "docs/a.md"), "mine\n");
    assert!(world.log().contains("protect"), "{}", world.log());
}

#[test]
fn runs_in_a_folder_and_around_it_come_and_go_without_harm_to_each_other() {
    let world = World::new();
    std::fs::create_dir(world.repo().join("part")).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let wait = |up: &str, go: &str| format!("touch {up}; until [ -e {go} ]; do sleep 0.01; done; sleep 0.3");
    let begin = |goal: &str, more: Value| {
        let (task, reply) = client.delegate("shell", goal, more);
        reply.ack();
        task
    };
    // Whoever ends last has relied on what the other one put into the workspace, or had come before it.
    for first in ["around", "inside"] {
        let around = || begin(&wait("up", "go"), json!({}));
        let inside = || begin(&wait("up", "go"), json!({ "working_dir": "part" }));
        let up = |path: &str| eventually("the start", || world.repo().join(path).exists());
        let (outer, inner) = if first == "around" {
            let outer = around();
            up("up");
            (outer, inside())
        } else {
            let inner = inside();
            up("part/up");
            (around(), inner)
        };
        up("up");
        up("part/up");
        write(&world, "go", "");
        assert_eq!(client.result_of(&outer)["status"], "completed", "{first}");
        write(&world, "part/go", "");
        let ended = client.result_of(&inner);
        assert_eq!(ended["status"], "completed", "{first} first: {ended:#}");
        for file in ["up", "go", "part/up", "part/go"] {
            std::fs::remove_file(world.repo().join(file)).unwrap();
        }
        let left: Vec<_> =
            std::fs::read_dir(world.repo()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }
}

#[test]
fn what_notification_hooks_run_in_the_workspace_stays_read_only() {
    let world = World::new();
    write(&world, "tools/notify.sh", "mine\n");
    write(&world, "tools/inner.py", "mine\n");
    write(&world, "tools/other.sh", "anybody's\n");
    for line in [
        "sh ./tools/notify.sh; cd tools && python3 inner.py; true",
        "A=b exec 'tools/notify.sh' \\\"$PWD/tools/inner.py\\\" ./later.sh",
    ] {
        world.configure(&format!("[hooks.notify]\ncommand = \"{line}\"\n"));
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        in_vain(
            &client,
            "echo x >> tools/notify.sh; mv tools t; echo x > n; mv -f n tools/inner.py; rm -f n tools/notify.sh; \
             echo x > tools/other.sh; mkdir -p tools",
        );
        assert_eq!(read(&world, "tools/notify.sh"), "mine\n", "{line}");
        assert_eq!(read(&world, "tools/inner.py"), "mine\n", "{line}");
        // Python loads what lies beside its script before anything else.
        let other = if line.contains("python3") { "anybody's\n" } else { "x\n" };
        assert_eq!(read(&world, "tools/other.sh"), other, "{line}");
        if line.contains("later") {
            in_vain(&client, "echo x > later.sh");
            assert!(!world.repo().join("later.sh").exists(), "one that is not there yet");
        }
        daemon.stop();
    }
}
