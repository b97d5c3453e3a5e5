//! The properties of pipes that sockets do not have, and the command line over them.

use std::fs::File;
use std::future::ready;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use provost::system::{Token, address, is_end_of_pipe, process_behind, process_serving};
use provost::transport::Stream;
use provost::transport::pipe::{BindError, Bound, SocketFolder, bind, connect, descriptor_for};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::support::{Client, Connection, Daemon, Reply, UP, World, eventually, fresh};

/// How a command ended, and what it said.
fn said(mut command: Command) -> (bool, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let texts = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&texts).into_owned())
}

fn json_of(world: &World, args: &[&str]) -> Value {
    let output = world.command(&[&["--json"], args].concat()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

fn pipe(what: &str) -> PathBuf {
    PathBuf::from(format!(r"\\.\pipe\{}", fresh(what)))
}

#[test]
fn the_descriptor_names_the_current_user_and_nobody_else() {
    let us = Token::of_this_process().unwrap().user().unwrap();
    assert!(us.starts_with("S-1-5-"), "{us}");
    assert_eq!(descriptor_for(&us), format!("D:P(A;;GA;;;{us})"));
}

#[tokio::test]
async fn both_ends_know_the_process_at_the_other() {
    let at = pipe("ends");
    let mut bound = bind(&at, SocketFolder::Given).unwrap();
    let client = connect(&at).await.unwrap();
    let server = bound.accept().await.unwrap();
    use std::os::windows::io::AsHandle;
    assert_eq!(process_behind(server.as_handle()).unwrap(), std::process::id());
    assert_eq!(process_serving(client.as_handle()).unwrap(), std::process::id());
    let peer = provost::auth::peer::PeerId::of(&server).unwrap();
    peer.check_same_user(0).unwrap();
    peer.check_not_jailed().unwrap();
    assert!(peer.is_alive());
    assert!(!peer.is_at_terminal_outside(&std::collections::HashSet::new()), "a console proves no person");
}

#[tokio::test]
async fn a_name_is_free_again_when_its_listener_has_gone() {
    let at = pipe("again");
    for _ in 0..3 {
        let mut bound = bind(&at, SocketFolder::Given).unwrap();
        drop((connect(&at).await.unwrap(), bound.accept().await.unwrap()));
    }
    assert!(connect(&at).await.is_err(), "nobody listens");
}

/// A listener that waits for a client.
async fn listening(at: &Path) -> Bound {
    let mut bound = bind(at, SocketFolder::Given).unwrap();
    tokio::select! {
        biased;
        _ = bound.accept() => panic!("nobody has connected"),
        () = ready(()) => {}
    }
    bound
}

/// Whether a client of a pipe that nobody serves any more notices that.
async fn sees_the_end(mut client: Stream) -> bool {
    let read = timeout(Duration::from_secs(10), client.read(&mut [0])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

// On one thread, the runtime hears of a client only when the test waits for something.
#[tokio::test]
async fn a_client_that_the_runtime_has_not_heard_of_sees_the_end_of_its_listener() {
    let at = pipe("unheard");
    let bound = listening(&at).await;
    let client = connect(&at).await.unwrap();
    drop(bound);
    assert!(sees_the_end(client).await, "it waits at a pipe that nobody serves");
}

#[tokio::test]
async fn a_program_that_reads_without_a_runtime_sees_that_end_too() {
    let at = pipe("plain");
    let bound = listening(&at).await;
    let mut client = File::open(&at).unwrap();
    drop(bound);
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(client.read(&mut [0])));
    let read = ended.recv_timeout(Duration::from_secs(10)).expect("it waits");
    assert!(is_end_of_pipe(read.as_ref().unwrap_err()), "{read:?}");
}

#[tokio::test]
async fn no_client_gets_in_when_its_listener_has_gone() {
    let at = pipe("late");
    drop(listening(&at).await);
    if let Ok(client) = connect(&at).await {
        panic!("it got in, and sees the end: {}", sees_the_end(client).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_connect_while_their_listener_goes_see_the_end() {
    let mut clients = Vec::new();
    for _ in 0..200 {
        let at = pipe("going");
        let bound = listening(&at).await;
        let both = Arc::new(Barrier::new(2));
        let (now, runtime) = (both.clone(), tokio::runtime::Handle::current());
        let client = spawn_blocking(move || {
            now.wait();
            runtime.block_on(connect(&at))
        });
        let gone = spawn_blocking(move || {
            both.wait();
            drop(bound);
        });
        gone.await.unwrap();
        if let Ok(client) = client.await.unwrap() {
            clients.push(tokio::spawn(sees_the_end(client)));
        }
    }
    let (all, mut stuck) = (clients.len(), 0);
    for client in clients {
        stuck += usize::from(!client.await.unwrap());
    }
    assert_eq!(stuck, 0, "of {all} clients");
}

#[tokio::test]
async fn only_names_of_pipes_of_this_machine_are_listened_at() {
    for name in ["devit.sock", r"C:\devit.sock", r"\\other\pipe\devit"] {
        assert!(matches!(bind(Path::new(name), SocketFolder::Given), Err(BindError::NotAName(_))), "{name}");
    }
}

#[test]
fn addresses_are_read_as_devit_reads_them() {
    let cwd = Path::new(r"C:\repo");
    let read = |text: &str| address(cwd, Path::new(text));
    for text in [r"\\.\pipe\devitd", "pipe:devitd", "devitd", " devitd "] {
        assert_eq!(read(text).unwrap(), Path::new(r"\\.\pipe\devitd"), "{text}");
    }
    for text in ["127.0.0.1:60459", "pipe:", r"\\.\pipe\", r"a\b", "/tmp/devitd.sock", r"\\there\pipe\x"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn the_command_line_talks_to_the_daemon_over_a_pipe() {
    let world = World::new();
    let daemon = world.start();
    let about = json_of(&world, &["status"]);
    assert!(about.to_string().contains(&format!("{}", daemon.pid())), "{about}");
    let (done, text) = said(world.command(&["delegate", "look around", "--worker", "worker:code"]));
    assert!(done, "{text}");
    let worker = world.client(&daemon, "worker:code");
    let work = worker.say("HEARTBEAT", json!({})).message();
    assert_eq!(work["payload"]["task"]["goal"], "look around");
    let done =
        json!({ "task_id": work["msg_id"], "status": "completed", "artifacts": { "summary": "seen" } });
    worker.say("NOTIFY", done).ack();
    let shown = json_of(&world, &["task", "show", work["msg_id"].as_str().unwrap()]);
    assert!(shown.to_string().contains("seen"), "{shown}");
}

#[test]
fn up_and_down_work_in_the_background() {
    let world = World::new();
    let (started, text) = said(world.command(&["up", "--allow-root"]));
    assert!(started && text.contains(r"\\.\pipe\"), "{text}");
    let (again, text) = said(world.command(&["up", "--allow-root"]));
    assert!(again && text.contains("already running"), "{text}");
    let environment = json_of(&world, &["env"]);
    let at = environment["DEVIT_SOCK"].as_str().unwrap();
    let secret = environment["DEVIT_SECRET"].as_str().unwrap();
    let client = Client { socket: at.into(), ident: "orch:a".into(), secret: secret.into() };
    client.say("REGISTER", json!({ "caps": [] })).ack();
    let (stopped, text) = said(world.command(&["down"]));
    assert!(stopped, "{text}");
    assert!(Connection::to(Path::new(at)).is_err(), "the pipe is still there");
    let (running, text) = said(world.command(&["status"]));
    assert!(!running, "{text}");
}

#[test]
fn devits_form_listens_at_the_pipe_that_it_names() {
    let world = World::new();
    let name = fresh("devitd");
    let secret = "a secret that nobody knows yet, long enough";
    let daemon = world.start_as(world.command(UP));
    // A daemon runs already: it is handed the address.
    let mut command = world.command(&["--socket", &format!("pipe:{name}"), "--secret", secret]);
    let mut handed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let at = PathBuf::from(format!(r"\\.\pipe\{name}"));
    eventually("the pipe", || Connection::to(&at).is_ok());
    let client = Client { socket: at, ident: "orch:a".into(), secret: secret.into() };
    assert_eq!(client.say("POLL", json!({})), Reply::Nothing);
    let elsewhere = Client { socket: daemon.socket.clone(), ..client };
    assert!(!matches!(elsewhere.say("POLL", json!({})), Reply::Nothing), "its secret counts there alone");
    handed.kill().unwrap();
    handed.wait().unwrap();

    let (done, text) = said(world.command(&["--socket", "127.0.0.1:60459", "--secret", secret]));
    assert!(!done && text.contains("TCP is not offered"), "{text}");
}

#[test]
fn an_approver_answers_with_its_key_and_a_console_is_no_person() {
    let world = World::new();
    world.rule(
        "version = 1\n[[rule]]\nid = \"ask\"\ndecision = \"approve\"\nreason = \"look first\"\n\
         when.action = [\"delegate\"]\napprove.by = [\"client:approver\", \"human\"]\n\
         [[rule]]\nid = \"answer\"\ndecision = \"allow\"\nreason = \"by key\"\nwhen.action = [\"approve\"]\n\
         when.proof = [\"own_key\"]\n",
    );
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("worker:code", "careful", json!({}));
    let parked = reply.ack();
    assert_eq!(parked["status"], "pending", "{parked}");
    let waiting = json_of(&world, &["approval", "list"]);
    let id = waiting[0]["id"].to_string();
    let (done, text) = said(world.command(&["approve", &id]));
    assert!(!done, "{text}");
    let decision = json!({ "status": "approved" });
    let approval = parked["approval_id"].as_str().unwrap();
    world.approver(&daemon).say_to("APPROVAL_DECISION", approval, "orchestrator", decision).ack();
    let work = world.client(&daemon, "worker:code").poll_until(|it| it["msg_type"] == "DELEGATE");
    assert_eq!(work["msg_id"], task.as_str());
}

#[test]
fn keys_are_made_changed_and_revoked_while_the_daemon_runs() {
    let world = World::new();
    let daemon = world.start();
    let poll = |daemon: &Daemon, secret: String| {
        let ident = "worker:code".into();
        Client { socket: daemon.socket.clone(), ident, secret }.say("POLL", json!({}))
    };
    let shared = world.secret();
    assert_eq!(poll(&daemon, shared.clone()), Reply::Nothing);
    let (done, text) = said(world.command(&["key", "add", "worker:code"]));
    assert!(done, "{text}");
    assert_ne!(poll(&daemon, shared), Reply::Nothing, "a reserved name is not had with the shared secret");
    assert_eq!(poll(&daemon, world.key_of("worker:code")), Reply::Nothing);
    let key = world.key_of("worker:code");
    let (done, text) = said(world.command(&["key", "revoke", "worker:code"]));
    assert!(done, "{text}");
    assert_ne!(poll(&daemon, key), Reply::Nothing);
}
