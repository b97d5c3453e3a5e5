//! Where a caller is among the processes of the machine is known for as long as its connection lasts: of what
//! cannot be known, nothing good is believed.

use std::path::Path;
use std::process::{Command, Stdio};

use provost::base::limits::{PARKED_OF_ONE_MAX, QUESTIONS_MAX};
use serde_json::{Value, json};

use crate::support::own_answers::{ask, is_refused_for_its_place, waiting, world};
use crate::support::own_api::own;
use crate::support::terminal::at_a_hosts_terminal;
use crate::support::{Client, Daemon, Reply, World, eventually, provost};

/// A child connects, and ends: either once it was let in, or before anybody has looked at it. What it leaves
/// says something.
const LEFT: &str = r#"
import os, signal, socket, sys, time
at, said, how, daemon = sys.argv[1:]
one, other = socket.socketpair()
one.settimeout(20)
child = os.fork()
if child == 0:
    it = socket.socket(socket.AF_UNIX)
    it.connect(at)
    if how == "let in":
        time.sleep(0.7)
    socket.send_fds(other, [b"x"], [it.fileno()])
    os._exit(0)
_, fds, _, _ = socket.recv_fds(one, 1, 1)
os.waitpid(child, 0)
it = socket.socket(fileno=fds[0])
it.settimeout(20)
try:
    it.sendall(open(said, "rb").read())
    if how == "unseen":
        os.kill(int(daemon), signal.SIGCONT)
    while data := it.recv(65536):
        os.write(1, data)
        if data.endswith(b"\n"): break
except OSError:
    pass
if how == "unseen":
    os.kill(int(daemon), signal.SIGCONT)
"#;

/// The last of so many processes, each started by the one before, says something; what it heard is in the file.
const LEVELS: &str = r#"
n=$1
shift
[ "$n" -gt 0 ] || exec "$@"
sh "$0" $((n - 1)) "$@"
exit
"#;

/// Says what a file has at a socket, and writes what it hears into another file.
const DEEP: &str = r#"
import os, socket, sys
at, said, heard = sys.argv[1:]
it = socket.socket(socket.AF_UNIX)
it.connect(at)
it.settimeout(20)
answer = b""
try:
    it.sendall(open(said, "rb").read())
    while data := it.recv(65536):
        answer += data
        if answer.endswith(b"\n"): break
except OSError:
    pass
open(heard + ".new", "wb").write(answer)
os.rename(heard + ".new", heard)
"#;

fn python(program: &str, args: &[&str]) -> String {
    let output =
        Command::new("python3").args(["-c", program]).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns a door's answer on a socket whose opener has ended.
fn left(world: &World, daemon: &Daemon, socket: &Path, how: &str, said: &str) -> String {
    let (file, pid) = (world.path("said"), daemon.pid().to_string());
    std::fs::write(&file, said).unwrap();
    let process = rustix::process::Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    if how == "unseen" {
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    }
    python(LEFT, &[socket.to_str().unwrap(), file.to_str().unwrap(), how, &pid])
}

/// The same from a process with so many above it.
fn deep(world: &World, socket: &Path, depth: u32, said: &str) -> String {
    let (file, heard) = (world.path("said"), world.path("heard"));
    std::fs::write(&file, said).unwrap();
    let script = world.path("deep.sh");
    std::fs::write(&script, LEVELS).unwrap();
    let mut shell = Command::new("sh");
    shell.arg(&script).arg(depth.to_string()).args(["python3", "-c", DEEP]);
    assert!(shell.args([socket, &file, &heard]).status().unwrap().success());
    eventually("the answer", || heard.exists());
    let text = std::fs::read_to_string(&heard).unwrap();
    std::fs::remove_file(&heard).unwrap();
    text
}

fn grants(approver: &Client, approval: &str) -> String {
    format!(
        "{}\n",
        approver.frame("APPROVAL_DECISION", approval, "orchestrator", &json!({ "status": "granted" }))
    )
}

/// A request to the own API without a name.
fn request(method: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_socket_whose_opener_has_ended_answers_for_no_asker() {
    let (world, daemon) = world();
    let approval = ask(&world.client(&daemon, "orch:a"));
    let here = world.approver_from_here(&daemon);
    for how in ["let in", "unseen"] {
        let said = left(&world, &daemon, &daemon.socket, how, &grants(&here, &approval));
        assert!(!said.contains("\"ACK\""), "{how}: {said}");
        assert_eq!(waiting(&world), 1, "{how}: {said}");
    }
}

#[test]
fn a_socket_whose_opener_has_ended_reads_and_revokes_in_no_name_of_another() {
    let world = crate::support::wit_client::world();
    let daemon = world.start();
    let wit = crate::support::wit_client::Wit::of(&world);
    eventually("the wit door", || wit.socket.exists() && wit.answers());
    assert!(world.command(&["key", "add", "keyed9"]).status().unwrap().success());
    assert!(world.command(&["token", "mint", "tokened9"]).output().unwrap().status.success());
    // An agent has spoken in the session of these tests.
    assert_eq!(world.client(&daemon, "orch:a").say("HEARTBEAT", json!({})), Reply::Nothing);
    let own = world.own_socket();
    for how in ["let in", "unseen"] {
        for said in [
            request("GET", "/posts?inbox=keyed9", &json!({})),
            request("POST", "/revoke-tokens", &json!({ "agent": "tokened9" })),
        ] {
            let answer = left(&world, &daemon, &own, how, &said);
            assert!(!answer.starts_with("HTTP/1.1 2"), "{how}: {said}\n{answer}");
        }
    }
    let register = json!({ "method": "register", "params": { "sessionId": "w", "name": "w" } }).to_string();
    let said = format!(
        "POST /rpc HTTP/1.1\r\nhost: wit\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{register}",
        register.len()
    );
    let answer = left(&world, &daemon, &wit.socket, "unseen", &said);
    assert!(!answer.contains("\"result\""), "{answer}");
}

#[test]
fn a_process_below_more_than_can_be_looked_at_answers_for_no_asker() {
    let (world, daemon) = world();
    let approval = ask(&world.client(&daemon, "orch:a"));
    let here = world.approver_from_here(&daemon);
    let said = deep(&world, &daemon.socket, 40, &grants(&here, &approval));
    assert!(is_refused_for_its_place(&said), "{said}");
    let said = deep(&world, &daemon.socket, 1_003, &grants(&here, &approval));
    assert!(said.contains("cannot all be seen"), "{said}");
    assert_eq!(waiting(&world), 1);
    let said = deep(&world, &world.own_socket(), 1_003, &request("GET", "/status", &json!({})));
    assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("cannot all be seen"), "{said}");
}

/// A host over stdio that says this and closes its server's input.
fn mcp(line: &str, program: &str) -> String {
    let begun = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "host", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    format!("(printf '%s\\n' '{begun}' '{ready}' '{line}'; sleep 1) | {program} mcp --as hosted")
}

#[test]
fn a_host_that_starts_its_server_in_a_session_of_its_own_is_no_person_either() {
    let world = World::new();
    world.rule(crate::support::rules::ASK);
    let _daemon = world.start();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                       "params": { "name": "delegate", "arguments": { "worker": "shell", "goal": "true" } } });
    let server = format!("setsid {}", provost().display());
    let said = at_a_hosts_terminal(
        &world,
        &format!(
            "{}\nn=$(provost approval list --json | grep -m1 '\"id\":' | tr -dc 0-9)\nprovost approve \"$n\"\necho \"ended: $?\"",
            mcp(&call.to_string(), &server)
        ),
    );
    assert_eq!(waiting(&world), 1, "{said}");
    assert!(said.contains("ended: 4"), "{said}");
    // Its person has another terminal.
    let id = asked(&world);
    let person = crate::support::terminal::at_the_terminal(&world, &format!("approve {id}"));
    assert!(person.status.success(), "{person:?}");
}

#[test]
fn a_host_whose_session_has_begun_or_that_is_about_to_run_a_command_is_no_person() {
    let (world, daemon) = world();
    let cwd = world.repo();
    let hook = |word: &str, name: &str, more: Value| {
        let mut told = json!({ "session_id": "s1", "cwd": cwd, "hook_event_name": name });
        told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("echo '{told}' | provost hook run claude {word}")
    };
    for (before, ends) in [
        (String::new(), "ended: 0"),
        (hook("session-start", "SessionStart", json!({ "source": "startup" })), "ended: 4"),
        (
            hook(
                "pre-tool-use",
                "PreToolUse",
                json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }),
            ),
            "ended: 4",
        ),
    ] {
        ask(&world.client(&daemon, "orch:a"));
        let lines = format!("{before}\nprovost approve {}\necho \"ended: $?\"", asked(&world));
        let said = at_a_hosts_terminal(&world, &lines);
        assert!(said.contains(ends), "{before}: {said}");
    }
}

fn asked(world: &World) -> Value {
    let output = world.command(&["approval", "list", "--json"]).output().unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    all.last().unwrap()["id"].clone()
}

#[test]
fn who_has_spoken_as_an_agent_is_known_over_restarts() {
    let world = World::new();
    world.rule(crate::support::rules::ASK);
    let mut daemon = world.start();
    let host = {
        let (spoken, go) = (world.path("spoken"), world.path("go"));
        let lines = format!(
            "provost lock --as m README.md\nsetsid --wait {} delegate --as m --worker shell true\n: > {}\n\
             while [ ! -e {go} ]; do sleep 0.05; done\nn=$(cat {go})\nprovost approve \"$n\"\necho \"ended: $?\"",
            provost().display(),
            spoken.display(),
            go = go.display()
        );
        std::thread::scope(|scope| {
            let host = scope.spawn(|| at_a_hosts_terminal(&world, &lines));
            eventually("the host", || spoken.exists());
            // However it ends: with a farewell, and without one.
            daemon.kill();
            world.start().stop();
            daemon = world.start();
            let id = asked(&world).to_string();
            world.put(&go, &id);
            host.join().unwrap()
        })
    };
    assert!(host.contains("ended: 4"), "{host}");
    assert_eq!(waiting(&world), 1);
    let person = crate::support::terminal::at_the_terminal(&world, &format!("approve {}", asked(&world)));
    assert!(person.status.success(), "{person:?}");
    drop(daemon);
}

#[test]
fn an_agent_that_says_who_it_is_does_not_end_the_daemon_or_switch_anything() {
    let world = World::new();
    let _daemon = world.start();
    for order in
        [&["down"][..], &["daemon", "reload"], &["worker", "pause", "shell"], &["worker", "resume", "shell"]]
    {
        let refused = world.command(order).env("PROVOST_AGENT", "m").output().unwrap();
        assert_eq!(refused.status.code(), Some(4), "{order:?}: {refused:?}");
    }
    assert!(world.command(&["status"]).status().unwrap().success());
    assert!(world.command(&["down"]).status().unwrap().success());
}

/// Tokens are had for the asking.
const TOKENS: &str =
    "[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n";

#[test]
fn tokens_that_an_agent_has_made_share_with_it() {
    let world = World::new();
    world.rule(&format!("{}{TOKENS}", crate::support::rules::ASK));
    let _daemon = world.start();
    let delegate = |headers: &[(&str, &str)]| {
        let order = json!({ "worker": "shell", "goal": "true", "watch_patterns": [] });
        own(&world, ("POST", "/delegate"), headers, &order)
    };
    // The agent leaves its name out for what only the user does, and then has a token for each of many names.
    assert_eq!(delegate(&[("x-provost-agent", "evil")]).0, 200);
    for nth in 0..3 {
        let wanted = json!({ "agent": format!("evil{nth}"), "scopes": ["read", "delegate"] });
        let minted = own(&world, ("POST", "/mint-token"), &[], &wanted);
        let bearer = format!("Bearer {}", minted.1["secret"].as_str().unwrap());
        for _ in 0..PARKED_OF_ONE_MAX {
            delegate(&[("authorization", &bearer)]);
        }
    }
    assert_eq!(waiting(&world), PARKED_OF_ONE_MAX);
    // A token that the user gives away from elsewhere counts for itself.
    let minted =
        crate::support::terminal::at_the_terminal(&world, "token mint friend --scopes read,delegate");
    let shown = String::from_utf8(minted.stdout).unwrap();
    let token = shown.split_whitespace().find(|it| it.starts_with("pvst_")).unwrap();
    let bearer = format!("Bearer {token}");
    assert_eq!(delegate(&[("authorization", &bearer)]).0, 200);
    assert_eq!(waiting(&world), PARKED_OF_ONE_MAX + 1);
}

#[test]
fn who_asks_much_loses_its_own_questions_and_no_others() {
    let world = World::new();
    let _daemon = world.start();
    let question = |text: &str| json!({ "kind": "question", "to": "supervisor", "text": text });
    std::fs::write(world.path("question"), question("may I drop the table?").to_string()).unwrap();
    // From a terminal of its own, which is no tree of the one that asks much.
    let asked = at_a_hosts_terminal(
        &world,
        &format!(
            "curl --silent --unix-socket {} -H x-provost-api:1 -H x-provost-agent:honest -H content-type:application/json \
             --data @{} http://provost/send-message",
            world.own_socket().display(),
            world.path("question").display()
        ),
    );
    for nth in 0..=QUESTIONS_MAX {
        let said = own(
            &world,
            ("POST", "/send-message"),
            &[("x-provost-agent", "spammer")],
            &question(&nth.to_string()),
        );
        assert_eq!(said.0, 200, "{nth}: {said:?}");
    }
    let open = own(&world, ("GET", "/questions"), &[], &json!({})).1;
    let open = open.as_array().unwrap();
    assert_eq!(open.len(), QUESTIONS_MAX, "{asked}");
    assert!(open.iter().any(|it| it["agent"] == "honest"), "{asked}");
    assert!(open.iter().all(|it| it["text"] != "0"), "the first of many is gone");
}
