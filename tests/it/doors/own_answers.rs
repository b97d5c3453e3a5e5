//! No agent answers for itself: not under another name, not with another key, not at another door, and not
//! from another session of their own tree of processes.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::loopback_client::Http;
use crate::support::own_answers::{ask, is_refused_for_its_place, waiting, world};
use crate::support::{Client, Daemon, Reply, World, eventually, relay};

/// Processes that pass on what is said, started like this below the test; ended when dropped.
struct Way(Child, PathBuf);

impl Way {
    fn by(world: &World, daemon: &Daemon, name: &str, how: &[&str]) -> Self {
        let at = world.path(name);
        let mut words: Vec<String> = how.iter().map(|it| (*it).to_owned()).collect();
        words.extend(relay(&at, &daemon.socket));
        let mut command = Command::new(&words[0]);
        if words[0] == "script" {
            // It wants one line for a shell.
            let quoted: Vec<_> =
                words[2..].iter().map(|it| format!("'{}'", it.replace('\'', r"'\''"))).collect();
            command.args(["-qec", &quoted.join(" "), "/dev/null"]);
        } else {
            command.args(&words[1..]);
        }
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        eventually("the way", || at.exists());
        Self(child, at)
    }

    fn client(&self, like: &Client) -> Client {
        Client { socket: self.1.clone(), ..like.clone() }
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ended = (self.0.kill(), self.0.wait());
    }
}

fn answers(approver: &Client, approval: &str) -> Reply {
    approver.say_to("APPROVAL_DECISION", approval, "orchestrator", json!({ "status": "granted" }))
}

/// Whether an answer was refused for where it comes from, in words that say what to do.
fn is_refused(reply: Reply) -> bool {
    let Reply::Message(message) = reply else { return false };
    message["msg_type"] == "ERR" && is_refused_for_its_place(&message["payload"].to_string())
}

#[test]
fn no_process_of_the_askers_tree_answers_under_whatever_name_and_key() {
    let (world, daemon) = world();
    let (asker, here) = (world.client(&daemon, "orch:a"), world.approver_from_here(&daemon));
    let approval = ask(&asker);
    let mut open = Vec::new();
    if !is_refused(answers(&here, &approval)) {
        open.push("the same process");
    }
    let ways: [(&str, &[&str]); 5] = [
        ("a child", &["env"]),
        ("a child's child", &["sh", "-c", "\"$@\"; true", "sh"]),
        ("a session below", &["setsid"]),
        ("a session below a session below", &["setsid", "setsid", "--wait"]),
        ("a terminal below", &["script", "-qec"]),
    ];
    for (nth, (what, how)) in ways.iter().enumerate() {
        let way = Way::by(&world, &daemon, &format!("w{nth}"), how);
        if !is_refused(answers(&way.client(&here), &approval)) {
            open.push(what);
        }
    }
    assert!(open.is_empty(), "answered from: {open:?}");
    assert_eq!(waiting(&world), 1);
    // From elsewhere it is an approver's word.
    answers(&world.approver(&daemon), &approval).ack();
    assert_eq!(waiting(&world), 0);
}

#[test]
fn a_question_that_was_asked_from_below_is_not_answered_from_above_or_beside() {
    let (world, daemon) = world();
    let here = world.approver_from_here(&daemon);
    // The tree has spoken, as a host has that has called a hook.
    assert_eq!(world.client(&daemon, "orch:a").say("HEARTBEAT", json!({})), Reply::Nothing);
    for (nth, how) in [&["env"][..], &["setsid"], &["script", "-qec"]].into_iter().enumerate() {
        let (one, other) = (format!("one{nth}"), format!("other{nth}"));
        let below = Way::by(&world, &daemon, &one, how);
        let beside = Way::by(&world, &daemon, &other, how);
        let approval = ask(&below.client(&world.client(&daemon, "orch:below")));
        assert!(is_refused(answers(&here, &approval)), "{how:?} from above");
        assert!(is_refused(answers(&beside.client(&here), &approval)), "{how:?} from beside");
        answers(&world.approver(&daemon), &approval).ack();
    }
}

#[test]
fn the_door_at_which_it_was_asked_and_a_restart_make_no_difference() {
    let (world, mut daemon) = world();
    let delegate = |args: &[&str]| {
        let all: Vec<&str> = [&["delegate", "--worker", "shell"], args, &["true"]].concat();
        world.command(&all).output().unwrap();
    };
    // As the user, and as an agent at the same door.
    delegate(&[]);
    delegate(&["--as", "other"]);
    // At the door for hosts over HTTP.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "worker": "shell", "goal": "true" });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "delegate", "arguments": arguments, "_meta": meta } });
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "delegate"),
        ("x-provost-agent", "hosted"),
    ];
    let answer = Http::mcp(&world).send("POST /mcp", &headers, call.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{answer:?}");
    // What a host asks about its tools.
    let told = crate::support::host_hooks::recorded(&world, "claude/permission_request");
    std::fs::write(world.path("told.json"), told.to_string()).unwrap();
    let mut hook = world.command(&["hooks", "run", "claude", "permission-request", "--wait", "9m"]);
    hook.stdin(std::fs::File::open(world.path("told.json")).unwrap()).stdout(Stdio::null());
    let mut hook = hook.spawn().unwrap();
    eventually("the questions", || waiting(&world) == 4);
    let approver = world.approver(&daemon);
    let question = || approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let asked: Vec<_> = (0..4).map(|_| question()["msg_id"].as_str().unwrap().to_owned()).collect();
    for approval in &asked {
        assert!(is_refused(answers(&world.approver_from_here(&daemon), approval)), "{approval}");
    }
    daemon.kill();
    let daemon = world.start();
    for approval in &asked {
        let said = answers(&world.approver_from_here(&daemon), approval);
        assert!(is_refused(said), "{approval} after a restart");
    }
    let _ended = (hook.kill(), hook.wait());
}

/// A process that keeps others of its user from seeing what it has open.
const HIDDEN: &str = r#"
import ctypes, socket, sys
ctypes.CDLL(None).prctl(4, 0)
it = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
it.sendall(open(sys.argv[2], "rb").read())
print(it.recv(4096).decode(errors="replace"))
"#;

#[test]
fn a_process_that_hides_itself_speaks_in_no_name_at_the_doors_over_http() {
    let (world, _daemon) = world();
    for (http, path, body) in [
        (Http::agent_protocol(&world), "/agents/announce", json!({ "id": "model", "tool": "x" })),
        (Http::mcp(&world), "/mcp", json!({})),
    ] {
        let (body, request) = (body.to_string(), world.path("request"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            http.port,
            body.len()
        );
        std::fs::write(&request, head).unwrap();
        let said = Command::new("python3")
            .args(["-c", HIDDEN, &http.port.to_string()])
            .arg(&request)
            .output()
            .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.starts_with("HTTP/1.1 503 "), "{path}: {said}");
    }
    let agents = world.command(&["status", "--json"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&agents.stdout).contains("\"model\""));
}
