//! The scan report: what a run has left that runs later, named where people and agents look.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::repositories::{OPEN, THIN};
use crate::support::{Client, World, eventually, provost};

fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]);
    let done = git.args(args).current_dir(folder).env("HOME", folder).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn write(world: &World, path: &str, text: &str) {
    let path = world.repo().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a goal to its end and answers the metadata of its result.
fn left_by(client: &Client, worker: &str, goal: &str) -> (String, Value) {
    let (task, reply) = client.delegate(worker, goal, json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    (task, result["artifacts"]["metadata"].clone())
}

/// `change kind path` of every finding.
fn findings(metadata: &Value) -> BTreeSet<String> {
    let all = metadata["handoff"]["findings"].as_array().cloned().unwrap_or_default();
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    all.iter().map(|it| ["change", "kind", "path"].map(|name| word(it, name)).join(" ")).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(ToString::to_string).collect()
}

fn said(world: &World, args: &[&str]) -> String {
    let said = world.command(args).output().unwrap();
    assert!(said.status.success(), "{args:?}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn ordinary_work_is_not_tainted() {
    let world = World::new();
    write(&world, "src/main.rs", "fn main() {}\n");
    write(&world, "Makefile", "all:\n");
    write(&world, "run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(world.repo().join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("src/main.rs", world.repo().join("link")).unwrap();
    symlink("/usr/bin", world.repo().join("old")).unwrap();
    git(&world.repo(), &["add", "."]);
    git(&world.repo(), &["commit", "--quiet", "--message", "one"]);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo '// more' >> src/main.rs; mkdir doc; echo text > doc/new.md; ln -s ../src/main.rs doc/to; \
                ln -s $DEVIT_WORKSPACE/src doc/absolute; rm link; cat Makefile; ./run.sh; \
                git status --short; git diff --stat";
    let (task, metadata) = left_by(&client, "shell", goal);
    assert_eq!((&metadata["tainted"], &metadata["handoff"]), (&json!(false), &Value::Null), "{metadata}");
    assert_eq!(client.task(&task).unwrap()["tainted"], false);
    assert!(!said(&world, &["task", "list"]).contains("tainted"));
    assert!(!said(&world, &["log"]).contains("tainted"));
}

#[test]
fn whatever_runs_later_is_named_and_the_task_is_tainted() {
    let world = World::new();
    for path in ["Makefile", "sub/package.json", "Cargo.lock", ".github/workflows/ci.yml", "plain", "gone.mk"]
    {
        write(&world, path, "mine\n");
    }
    write(&world, "tool", "#!/bin/sh\n");
    std::fs::set_permissions(world.repo().join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x >> Makefile; echo x >> sub/package.json; echo x > sub/conftest.py; echo x > Cargo.lock; \
                echo x > .github/workflows/ci.yml; echo x > .gitlab-ci.yml; chmod +x plain; echo x >> tool; \
                echo x > new; chmod 755 new; ln -s /etc/passwd out; ln -s ../.. up; ln -s ../gone dangling; \
                rm gone.mk; mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json; \
                mkdir .cargo; echo x > .cargo/config.toml; \
                echo '*' > sub/.gitignore; echo '* -diff' > .gitattributes; \
                mkdir -p trick/deep/er; ln -s ../.. trick/deep/er/up; ln -s deep/er/up/../../x trick/late";
    let (task, metadata) = left_by(&client, "shell", goal);
    assert_eq!(metadata["tainted"], true);
    let expected = set(&[
        "changed build Makefile",
        "changed build sub/package.json",
        "new build sub/conftest.py",
        "new build .cargo/config.toml",
        "removed build gone.mk",
        "changed lock Cargo.lock",
        "changed ci .github/workflows/ci.yml",
        "new ci .gitlab-ci.yml",
        "new executable plain",
        "changed executable tool",
        "new executable new",
        "new link out",
        "new link up",
        "new link dangling",
        "new link trick/late",
        "new setting sub/.vscode/tasks.json",
        "new git sub/.gitignore",
        "new git .gitattributes",
    ]);
    let mut found = findings(&metadata);
    // Git's samples of hooks: as many as this git brings.
    found.retain(|it| !it.contains("/hooks/"));
    assert_eq!(found, expected, "{metadata:#}");
    assert_eq!(metadata["handoff"]["unknown"], Value::Null);

    // Wherever it is looked for.
    let shown = client.task(&task).unwrap();
    assert_eq!(
        (&shown["tainted"], &shown["notifications"][0]["metadata"]["tainted"]),
        (&json!(true), &json!(true))
    );
    assert!(said(&world, &["task", "list"]).contains("completed, tainted"));
    let in_full = said(&world, &["task", "show", &task]);
    assert!(in_full.contains("look at these") && in_full.contains("! new link: out"), "{in_full}");
    for args in [&["status"][..], &[]] {
        assert!(said(&world, args).contains("ainted"), "{args:?}");
    }
    let json: Value = serde_json::from_str(&said(&world, &["task", "show", &task, "--json"])).unwrap();
    assert_eq!((&json["tainted"], &json["handoff"]["findings"][0]["kind"]), (&json!(true), &json!("git")));
    let json: Value = serde_json::from_str(&said(&world, &["status", "--json"])).unwrap();
    assert_eq!(json["tainted"], json!([task]));
    assert!(said(&world, &["log", "--json"]).contains("task_tainted"));
}

#[test]
fn what_tier_ll_cannot_protect_the_report_catches() {
    let world = World::new();
    world.configure(&format!("{OPEN}{THIN}"));
    write(&world, ".envrc", "mine\n");
    write(&world, ".git/hooks/pre-push", "mine\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; git config core.hooksPath /tmp; \
                rm .git/hooks/pre-push; mkdir .claude .vscode; echo x > .claude/settings.json; \
                echo x > .vscode/tasks.json; echo x >> .envrc; mkdir -p .git/modules/m/hooks; \
                echo x > .git/modules/m/config; touch .git/modules/m/HEAD .git/modules/m/commondir; \
                touch -d @7768678 .git/modules/m/config .envrc";
    let (_, metadata) = left_by(&client, "thin", goal);
    let expected = set(&[
        "new git .git/hooks/pre-commit",
        "removed git .git/hooks/pre-push",
        "changed git .git/config",
        "new setting .claude/settings.json",
        "new setting .vscode/tasks.json",
        "changed setting .envrc",
        "new git .git/modules/m/config",
        "new git .git/modules/m/HEAD",
        "new git .git/modules/m/commondir",
    ]);
    assert_eq!(findings(&metadata), expected, "{metadata:#}");
    // What hides changes, and moves what they are compared with.
    let goal = "export GIT_AUTHOR_NAME=w GIT_AUTHOR_EMAIL=w@localhost GIT_COMMITTER_NAME=w GIT_COMMITTER_EMAIL=w@localhost; \
                echo x > a; git add a; git commit -qm x; git update-index --skip-worktree a; echo a >> .git/info/exclude; \
                git commit -q --allow-empty -m y; git replace HEAD HEAD~1; \
                mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates";
    let found = findings(&left_by(&client, "thin", goal).1);
    for expected in
        ["new git .git/index", "changed git .git/info/exclude", "new git .git/objects/info/alternates"]
    {
        assert!(found.contains(expected), "{expected} is not among {found:?}");
    }
    for part in [" git .git/refs/heads/", "new git .git/refs/replace/", " git .git/logs/HEAD"] {
        assert!(found.iter().any(|it| it.contains(part)), "{part} is not among {found:?}");
    }
    // Objects by themselves hide nothing, unless they are changed.
    assert!(!found.iter().any(|it| it.contains(".git/objects/") && !it.contains("alternates")), "{found:?}");
    let goal =
        "o=$(ls .git/objects/??/* | head -n 1); chmod u+w $o; echo x >> $o; rm -r .vscode; echo x > .vscode";
    let found = findings(&left_by(&client, "thin", goal).1);
    assert!(found.iter().any(|it| it.starts_with("changed git .git/objects/")), "{found:?}");
    assert!(found.contains("new setting .vscode"), "{found:?}");
}

#[test]
fn a_link_that_leads_out_since_another_one_was_turned_is_named() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("a/b")).unwrap();
    symlink("a/b", world.repo().join("way")).unwrap();
    symlink("way/../../x", world.repo().join("late")).unwrap();
    write(&world, "x", "");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Neither is new, and the turned one stays inside.
    let (_, metadata) = left_by(&client, "shell", "rm way; ln -s a way");
    assert_eq!(findings(&metadata), set(&["new link late"]), "{metadata:#}");
}

#[test]
fn what_cannot_be_compared_counts_as_tainted() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (_, metadata) = left_by(&client, "shell", "mkdir shut; echo x > shut/Makefile; chmod 0 shut");
    assert_eq!(metadata["tainted"], true);
    assert!(
        findings(&metadata).contains("new build shut/Makefile"),
        "it is opened and looked into: {metadata}"
    );
    // Nothing of it is new to the next one.
    assert_eq!(left_by(&client, "shell", "true").1["tainted"], false);
    let deep = "i=0; while [ $i -lt 140 ]; do mkdir d; cd d; i=$((i+1)); done; echo x > Makefile";
    let (_, metadata) = left_by(&client, "shell", deep);
    assert!(metadata["handoff"]["unknown"].as_str().unwrap().contains("deeper"), "{metadata}");
}

#[test]
fn many_findings_are_counted_and_the_gravest_are_listed() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "i=0; while [ $i -lt 100 ]; do echo > e$i; i=$((i+1)); done; chmod +x e*; ln -s / out; \
                n=$(printf '%0200d' 0); mkdir $n $n/$n $n/$n/$n; echo > $n/$n/$n/Makefile; \
                printf '' > \"$(printf 'b\\033[31m\\nx.mk')\"";
    let (_, metadata) = left_by(&client, "shell", goal);
    let listed = metadata["handoff"]["findings"].as_array().unwrap();
    assert_eq!((listed.len(), &metadata["handoff"]["more"]), (64, &json!(39)));
    assert_eq!((&listed[0]["path"], &listed[0]["kind"]), (&json!("out"), &json!("link")));
    let texts: Vec<&str> = listed.iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert!(texts.iter().all(|it| it.len() <= 512 && !it.contains(['\u{1b}', '\n'])), "{texts:?}");
    assert!(metadata.to_string().len() < 64 << 10);
}

#[test]
fn a_copy_hands_nothing_over() {
    let world = World::new();
    let entry = "type = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ncopy = true\n";
    world.configure(&format!("[workers.apart]\n{entry}"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (_, metadata) = left_by(&client, "apart", "echo x > Makefile; ln -s / out");
    assert_eq!(metadata["tainted"], false, "{metadata}");
}

#[test]
fn a_cancelled_worker_is_looked_after_too() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, _) =
        client.delegate("shell", "echo x > Makefile; touch up; sleep 1000", json!({ "timeout": 600 }));
    eventually("the start", || world.repo().join("up").exists());
    let cancel = json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "enough" } });
    client.say("NOTIFY", cancel).ack();
    let told = client.poll_until(|it| it["payload"]["artifacts"]["metadata"]["tainted"] == true);
    assert_eq!(
        (&told["payload"]["task_id"], &told["payload"]["status"]),
        (&json!(task), &json!("cancelled"))
    );
    assert_eq!(findings(&told["payload"]["artifacts"]["metadata"]), set(&["new build Makefile"]));
    let shown = client.task(&task).unwrap();
    assert_eq!((&shown["status"], &shown["tainted"]), (&json!("cancelled"), &json!(true)));
    assert_eq!(shown["notifications"][0]["metadata"]["tainted"], true);
    // It is history, and stays so.
    daemon.stop();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:b");
    assert_eq!(client.task(&task).unwrap()["tainted"], true);
}

#[test]
fn a_run_that_the_daemon_did_not_survive_counts_as_tainted() {
    let world = World::new();
    let mut daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, _) =
        client.delegate("shell", "echo x > Makefile; touch up; sleep 1000", json!({ "timeout": 600 }));
    eventually("the start", || world.repo().join("up").exists());
    daemon.kill();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!((&result["status"], &metadata["tainted"]), (&json!("failed"), &json!(true)), "{result}");
    assert!(
        metadata["handoff"]["unknown"].as_str().unwrap().contains("nothing to compare with"),
        "{metadata}"
    );
    assert!(said(&world, &["task", "show", &task]).contains("not everything was compared"));
}

#[test]
fn a_daemon_that_stops_still_compares() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, _) =
        client.delegate("shell", "echo x > Makefile; touch up; sleep 1000", json!({ "timeout": 600 }));
    eventually("the start", || world.repo().join("up").exists());
    daemon.stop();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let result = client.result_of(&task);
    assert_eq!(findings(&result["artifacts"]["metadata"]), set(&["new build Makefile"]), "{result}");
}

#[test]
fn a_task_in_a_folder_is_told_by_paths_of_the_workspace() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("part")).unwrap();
    write(&world, "other.txt", "x");
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "echo x > Makefile; ln -s ../other.txt inside; ln -s ../../out outside";
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "part" }));
    reply.ack();
    let metadata = client.result_of(&task)["artifacts"]["metadata"].clone();
    assert_eq!(
        findings(&metadata),
        set(&["new build part/Makefile", "new link part/outside"]),
        "{metadata:#}"
    );
}

/// Tries to connect to two sockets, and leaves one of its own.
const CALLER: &str = "
import socket
for path in ('../top.sock', 'in.sock'):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print('through', path)
    except OSError: print('refused', path)
socket.socket(socket.AF_UNIX).bind('left.sock')
";

#[test]
fn sockets_of_the_users_programs_are_covered_and_those_that_appear_are_named() {
    let world = World::new();
    std::fs::create_dir_all(world.repo().join("part")).unwrap();
    let listen = |path: &str| {
        // Made under another name, as by a program that has its own view of the folders: the kernel does not
        // know where it is now.
        let made = world.repo().join("s");
        let listener = UnixListener::bind(&made).unwrap();
        std::fs::rename(made, world.repo().join(path)).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let listeners = [listen("top.sock"), listen("part/in.sock")];
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = format!("exec python3 -c \"{CALLER}\"");
    let (task, reply) = client.delegate("shell", &goal, json!({ "working_dir": "part" }));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    for listener in &listeners {
        let came = listener.accept().map(drop).map_err(|e| e.kind());
        assert_eq!(came, Err(std::io::ErrorKind::WouldBlock), "{result}");
    }
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!(findings(metadata), set(&["new socket part/left.sock"]), "{metadata:#}");
    assert!(world.repo().join("part/in.sock").exists() && world.repo().join("top.sock").exists());
}

#[test]
fn a_socket_in_a_folder_that_cannot_be_listed_is_not_the_workers() {
    let world = World::new();
    let repo = world.repo().to_path_buf();
    let folders = ["part/shut", "shut"].map(|it| repo.join(it));
    let modes = |mode: u32| {
        for folder in &folders {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let listen = |folder: &std::path::PathBuf| {
        std::fs::create_dir_all(folder).unwrap();
        // Made under another name: the kernel does not know where it is now.
        let listener = UnixListener::bind(repo.join("s")).unwrap();
        std::fs::rename(repo.join("s"), folder.join("sock")).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let listeners = [listen(&folders[0]), listen(&folders[1])];
    modes(0o300);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for s in shut/sock ../shut/sock; do python3 -c \"import socket, sys; \
                socket.socket(socket.AF_UNIX).connect(sys.argv[1])\" $s; done; true";
    let (task, reply) = client.delegate("shell", goal, json!({ "working_dir": "part" }));
    reply.ack();
    let result = client.result_of(&task);
    let came = listeners.each_ref().map(|it| it.accept().map(drop).map_err(|e| e.kind()));
    modes(0o700);
    assert_eq!(result["status"], "completed", "{result}");
    assert_eq!(came, [Err(std::io::ErrorKind::WouldBlock); 2], "{result}");
}

/// Waits for a socket, connects to it, and says how that went.
const LATE_CALLER: &str = "
import os, socket, time
open('up', 'w')
while not os.path.exists('late.sock'): time.sleep(0.01)
try:
    socket.socket(socket.AF_UNIX).connect('late.sock')
    print('through')
except OSError as e: print(e.strerror)
";

/// The kernel's version of Landlock.
fn landlock() -> u32 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = runtime.block_on(provost::jail::probe(&provost::jail::Supervisor::at(provost())));
    let note = host.findings.into_iter().find(|it| it.name == "Landlock").unwrap().note;
    let words = note.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|it| it.parse().ok()).next().unwrap_or(0)
}

#[test]
fn a_socket_of_the_users_that_appears_while_a_worker_runs_is_named_and_held_where_the_kernel_can() {
    let world = World::new();
    world.repo();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", &format!("exec python3 -c \"{LATE_CALLER}\""), json!({}));
    reply.ack();
    eventually("its run", || world.repo().join("up").exists());
    let _listener = UnixListener::bind(world.repo().join("late.sock")).unwrap();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    let said = result["artifacts"]["details"]["stdout"].to_string();
    // From this version on a worker reaches no socket with a path but those that it has made itself.
    let expected = if landlock() >= 9 { "Permission denied" } else { "through" };
    assert!(said.contains(expected), "{said}");
    let metadata = &result["artifacts"]["metadata"];
    assert_eq!(findings(metadata), set(&["new socket late.sock"]), "{metadata:#}");
}

/// Listens where git looks for the program that tells it what has changed.
const FALSE_MONITOR: &str = "
import socket
s = socket.socket(socket.AF_UNIX)
try: s.bind('.git/fsmonitor--daemon.ipc')
except OSError as e: print(e.strerror)
else: s.listen(); print('listens')
";

#[test]
fn no_worker_listens_where_git_asks_what_has_changed_but_one_that_may_write_there_and_that_is_told() {
    let world = World::new();
    world.configure(
        "[workers.writer]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ngit = \"write\"\n",
    );
    world.rule(
        "version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\n\
         when.action = [\"delegate\"]\nwhen.git = [\"read\", \"write\"]\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let socket = world.repo().join(".git/fsmonitor--daemon.ipc");
    for (worker, word, found) in [
        ("shell", "Read-only file system", set(&[])),
        ("writer", "listens", set(&["new socket .git/fsmonitor--daemon.ipc"])),
    ] {
        let (task, reply) =
            client.delegate(worker, &format!("exec python3 -c \"{FALSE_MONITOR}\""), json!({}));
        reply.ack();
        let result = client.result_of(&task);
        assert_eq!(result["status"], "completed", "{result}");
        assert!(result["artifacts"]["details"]["stdout"].to_string().contains(word), "{worker}: {result}");
        let metadata = &result["artifacts"]["metadata"];
        let told: Vec<String> = findings(metadata).into_iter().filter(|it| it.contains("socket")).collect();
        assert_eq!(told, found.into_iter().collect::<Vec<_>>(), "{worker}: {metadata:#}");
        assert_eq!(socket.exists(), worker == "writer");
    }
}

#[test]
fn many_findings_of_one_kind_hide_none_of_another() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let goal = "for i in $(seq 200); do mkdir -p a$i; echo x > a$i/.gitattributes; done; \
                mkdir -p z/.vscode; echo x > z/.vscode/tasks.json; echo x > z/Makefile; ln -s /etc z/out";
    let (_, metadata) = left_by(&client, "shell", goal);
    let found = findings(&metadata);
    for one in ["new setting z/.vscode/tasks.json", "new build z/Makefile", "new link z/out"] {
        assert!(found.contains(one), "{one}: {found:?}");
    }
    assert_eq!((found.len(), &metadata["handoff"]["more"]), (64, &json!(139)), "{metadata}");
}
