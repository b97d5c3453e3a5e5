//! The ACK of a hook: who gives it, how it comes, and how it is waited for.

use std::fs;
use std::path::Path;

use provost::base::limits::ACK_PEERS_MAX;
use serde_json::json;

use super::{Hooked, notify};
use crate::support::source::project_root;
use crate::support::{World, eventually};

/// The sample that a user copies, waiting in one way.
fn sample(way: &str) -> Hooked {
    let world = World::new();
    fs::create_dir(world.path("out")).unwrap();
    let script = project_root().join("scripts/hooks/notify-ack.sh");
    world.configure(&format!(
        "[hooks.notify]\ncommand = \"exec '{}'\"\n\
         env = {{ ACK_WAIT = \"{way}\", ACK_TIMEOUT = \"50\", NOTIFY_LOG = \"{}\", PROVOST = \"{}\" }}\n",
        script.display(),
        world.path("out/log").display(),
        crate::support::provost().display(),
    ));
    Hooked { world, daemon: None }.started()
}

fn released_by_ack(way: &str) {
    let hooked = sample(way);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "ready" }));
    let log = || fs::read_to_string(hooked.out("log")).unwrap_or_default();
    eventually("the notification", || log().contains(&format!(" {task} completed ready\n")));
    let answer = hooked.ack("orch:a", &task).ack();
    assert_eq!(answer, json!({ "ok": true, "task_id": task, "released": 1 }));
    eventually("the release", || log().lines().any(|it| it.ends_with(" acknowledged")));
    hooked.over();
    assert!(!log().contains("not acknowledged"), "{}", log());
    assert!(!hooked.log().contains("hook.failed"));
}

#[test]
fn the_sample_hook_is_released_with_socat() {
    released_by_ack("socat");
}

#[test]
fn the_sample_hook_is_released_with_nc() {
    released_by_ack("nc");
}

#[test]
fn the_sample_hook_is_released_with_provost_hook_wait() {
    released_by_ack("provost");
}

#[test]
fn the_sample_hook_is_released_in_pure_shell() {
    released_by_ack("marker");
}

#[test]
fn words_of_an_agent_are_one_line_in_the_samples_log() {
    let hooked = sample("socat");
    let task = hooked.task(json!({}));
    let summary = "done\n1 acknowledged\r\u{1b}[2J\tüber";
    hooked.notify(&task, "completed", json!({ "summary": summary }));
    let log = || fs::read_to_string(hooked.out("log")).unwrap_or_default();
    eventually("the notification", || log().ends_with('\n'));
    let said = log();
    assert_eq!(said.lines().count(), 1, "{said:?}");
    assert!(said.ends_with(" completed done 1 acknowledged  [2J über\n"), "{said:?}");
    hooked.ack("orch:a", &task).ack();
    hooked.over();
    assert_eq!(log().lines().count(), 2);
}

#[test]
fn the_sample_hook_finds_a_way_by_itself() {
    released_by_ack("");
}

/// Says what came at the socket, to its end.
const LISTEN: &str = "touch \"$OUT/ready\"; socat -u UNIX-CONNECT:\"$DEVIT_ACK_SOCKET\" - | od -An -tx1 > \"$OUT/new\"\n\
                      cat \"$DEVIT_ACK_MARKER\" > \"$OUT/marker\"; mv \"$OUT/new\" \"$OUT/bytes\"\n";

#[test]
fn an_ack_is_one_byte_and_the_end_and_the_marker() {
    let script = LISTEN
        .replace("cat \"$DEVIT", "until test -e \"$DEVIT_ACK_MARKER\"; do sleep 0.02; done; cat \"$DEVIT");
    let hooked = Hooked::new(&script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    hooked.ack("orch:a", &task).ack();
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
    assert_eq!(fs::read_to_string(hooked.out("marker")).unwrap(), "ack");
}

/// One more connection than may wait; the first one is to end without the byte, the others with it.
const CROWD: &str = r#"
import os, socket, sys
most, out = int(sys.argv[1]), os.environ["OUT"]
peers = []
for _ in range(most + 1):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(os.environ["DEVIT_ACK_SOCKET"])
    peers.append(peer)
first = peers.pop(0).recv(2)
open(out + "/ready", "w").close()
said = b"".join(peer.recv(2) for peer in peers)
open(out + "/new", "w").write(f"{len(first)} {said.hex()}")
os.rename(out + "/new", out + "/said")
"#;

#[test]
fn a_crowd_at_a_hooks_socket_is_bounded_and_all_who_wait_are_released() {
    let script = format!("export OUT\nexec python3 \"$OUT/crowd.py\" {ACK_PEERS_MAX}\n");
    let hooked = Hooked::new(&script);
    fs::write(hooked.out("crowd.py"), CROWD).unwrap();
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    hooked.ack("orch:a", &task).ack();
    assert_eq!(hooked.wait_for("said"), format!("0 {}", "01".repeat(ACK_PEERS_MAX)));
}

#[test]
fn only_who_was_notified_acknowledges_and_nothing_else_changes_anything() {
    let hooked = Hooked::new(LISTEN);
    let client = hooked.client("orch:a");
    let payload = json!({ "return_to": "boss:b", "task": { "action": "devit_delegate", "goal": "x" } });
    let task = crate::support::fresh("task");
    client.say_to("DELEGATE", &task, "worker:w", payload).ack();
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    for stranger in ["worker:w", "mallory", "client:approver"] {
        let who = match stranger {
            "client:approver" => hooked.world.approver(hooked.daemon.as_ref().unwrap()),
            name => hooked.client(name),
        };
        assert_eq!(notify(&who, &task, "ack", json!({})).code(), "E_FORBIDDEN", "{stranger}");
    }
    assert_eq!(hooked.ack("orch:a", "nothing").code(), "E_TASK_NOT_FOUND");
    assert_eq!(hooked.ack("orch:a", "../../escape").code(), "E_TASK_NOT_FOUND");
    let folder = hooked.folders().pop().unwrap();
    assert!(!folder.join("ack").exists() && !hooked.out("bytes").exists(), "nobody was released");
    assert_eq!(hooked.ack("boss:b", &task).ack()["released"], 1);
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
    hooked.over();
    // Twice, and late.
    hooked.nobody_waits(&task);
    assert!(hooked.folders().is_empty());
}

#[test]
fn a_person_acknowledges_at_the_terminal_and_a_script_of_theirs_does_not() {
    let hooked = Hooked::new(LISTEN);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    let refused = hooked.world.command(&["task", "report", &task, "--status", "ack"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "without a terminal it is anybody: {refused:?}");
    let line = format!("{} notify {task} --status ack", crate::support::provost().display());
    let mut person = std::process::Command::new("script");
    person.args(["-qec", &line, "/dev/null"]).current_dir(hooked.world.repo()).env_clear();
    for (name, value) in hooked.world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    let said = crate::support::apart(&person);
    assert!(said.status.success(), "{said:?}");
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
}

#[test]
fn an_ack_counts_for_hooks_that_wait_for_their_turn() {
    let script = "if test \"$DEVIT_NOTIFY_STATUS\" = first; then until test -e \"$OUT/go\"; do sleep 0.02; done; fi\n\
                  socat -u UNIX-CONNECT:\"$DEVIT_ACK_SOCKET\" - | od -An -tx1 > \"$OUT/$DEVIT_NOTIFY_STATUS\"\n";
    let hooked = Hooked::with(script, "", "[limits]\nhooks = 1\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "first", json!({ "summary": "x" }));
    eventually("the first", || !hooked.folders().is_empty());
    hooked.notify(&task, "second", json!({ "summary": "x" }));
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 2);
    hooked.notify(&task, "third", json!({ "summary": "x" }));
    fs::write(hooked.out("go"), "").unwrap();
    eventually("the third", || hooked.out("third").exists());
    assert_eq!(fs::read_to_string(hooked.out("second")).unwrap().trim(), "01");
    assert_eq!(fs::read_to_string(hooked.out("third")).unwrap(), "", "it came after the ACK and still waits");
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 1);
    hooked.over();
    assert_eq!(fs::read_to_string(hooked.out("third")).unwrap().trim(), "01");
}

#[test]
fn provost_hook_wait_says_how_it_went() {
    let hooked = Hooked::new("true\n");
    let run = |args: &[&str], env: &[(&str, &Path)]| {
        let mut command = hooked.world.command(&[&["hook", "wait"], args].concat());
        command.envs(env.iter().copied()).current_dir("/");
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&[], &[]);
    assert!(code == 2 && said.contains("[hooks.notify]"), "{code}: {said}");
    let marker = hooked.out("marker");
    let (code, said) = run(&["--timeout", "100ms"], &[("DEVIT_ACK_MARKER", &marker)]);
    assert!(code == 1 && said.contains("within 100 ms"), "{code}: {said}");
    let gone = hooked.out("gone/marker");
    assert_eq!(run(&[], &[("DEVIT_ACK_MARKER", &gone)]).0, 3, "its folder has gone");
    std::os::unix::fs::symlink("/etc/passwd", &marker).unwrap();
    assert_eq!(run(&["--timeout", "100ms"], &[("DEVIT_ACK_MARKER", &marker)]).0, 1, "a link is no marker");
    fs::remove_file(&marker).unwrap();
    fs::write(&marker, "ack").unwrap();
    assert_eq!(run(&[], &[("DEVIT_ACK_MARKER", &marker)]).0, 0);
    let socket = hooked.out("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let closes = std::thread::spawn(move || drop(listener.accept().unwrap()));
    assert_eq!(run(&[], &[("DEVIT_ACK_SOCKET", &socket)]).0, 3, "the end without the byte is no ACK");
    closes.join().unwrap();
    assert_eq!(run(&[], &[("DEVIT_ACK_SOCKET", &socket)]).0, 3, "nobody listens");
    assert_eq!(run(&["--timeout", "soon"], &[]).0, 2);
}
