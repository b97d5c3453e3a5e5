//! Peers that mean harm, through real sockets: what they send is refused, costs little, and harms nobody else.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::processes::this_test;
use crate::support::waits::stays;
use crate::support::{Client, Daemon, Reply, World, eventually, fresh, mac, read_line};

/// The variables that tell a child process its socket, its message, and the file for the answer.
const SOCKET: &str = "PROVOST_TEST_SOCKET";
const WORDS: &str = "PROVOST_TEST_WORDS";
const HEARD: &str = "PROVOST_TEST_HEARD";

/// The child: sends a message to a door and writes down the answer.
fn talk() {
    let mut stream = UnixStream::connect(std::env::var_os(SOCKET).unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut heard = Vec::new();
    // Refused before a byte was read, writing and reading may fail; what came before that is what counts.
    let words = std::env::var(WORDS).unwrap();
    let _said = stream.write_all(words.as_bytes());
    // The DevIt door goes on until its client has no more to say; the own one was asked to close.
    let _no_more = words.starts_with('{').then(|| stream.shutdown(std::net::Shutdown::Write));
    let _end = stream.read_to_end(&mut heard);
    std::fs::write(std::env::var_os(HEARD).unwrap(), heard).unwrap();
}

/// Has a process, started by `launcher`, say something; returns what it heard.
fn heard_by(world: &World, launcher: &[&str], socket: &Path, words: &str) -> String {
    let child = this_test("doors::hostile::a_peer_in_another_pid_namespace_is_refused_on_both_doors");
    let mut line = launcher.iter().copied().chain([child.get_program().to_str().unwrap()]);
    let mut command = Command::new(line.next().unwrap());
    command.args(line).args(child.get_args());
    let heard = world.path(&fresh("heard"));
    command.env(SOCKET, socket).env(WORDS, words).env(HEARD, &heard);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{launcher:?} ended with {status}");
    String::from_utf8_lossy(&std::fs::read(heard).unwrap()).into_owned()
}

fn http(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One request to the own API; the whole answer as text.
fn ask_own(world: &World, request: &str) -> String {
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _until_closed = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A line of `/proc/PID/status`, in KiB.
fn kib(daemon: &Daemon, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find(|it| it.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn nothing_happened(client: &Client) {
    let status = client.say("STATUS_REQUEST", json!({})).message()["payload"].clone();
    assert_eq!((&status["active_tasks"], &status["completed_tasks"]), (&json!([]), &json!([])), "{status}");
}

#[test]
fn a_peer_in_another_pid_namespace_is_refused_on_both_doors() {
    if std::env::var_os(HEARD).is_some() {
        return talk();
    }
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let jailed = ["unshare", "--user", "--map-current-user", "--pid", "--fork"];
    let free = ["env"];
    let about = http("GET", "/about", "");
    let said = |launcher: &[&str]| {
        let task = json!({ "task": { "goal": "touch escaped" } });
        let frame = client.frame("DELEGATE", &fresh("task"), "shell", &task);
        (
            heard_by(&world, launcher, &daemon.socket, &format!("{frame}\n")),
            heard_by(&world, launcher, &world.own_socket(), &about),
        )
    };
    let (devit, own) = said(&jailed);
    assert!(!devit.contains("\"ACK\""), "the DevIt door served a jailed peer: {devit}");
    assert!(!own.contains("200 OK"), "the own door served a jailed peer: {own}");
    nothing_happened(&client);
    // The very same words from outside are served, so it was the jail that mattered.
    let (devit, own) = said(&free);
    assert!(own.starts_with("HTTP/1.1 200 OK"), "{own}");
    assert!(devit.contains("\"ACK\""), "{devit}");
}

/// A line of the document's dialect on a connection of its own.
struct Session(UnixStream);

impl Session {
    fn new(daemon: &Daemon) -> Self {
        let stream = UnixStream::connect(&daemon.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    fn ask(&mut self, method: &str, params: Value) -> Reply {
        let request = json!({ "msg_type": "request", "msg_id": "m", "method": method, "params": params });
        let _refused = self.0.write_all(format!("{request}\n").as_bytes());
        read_line(&mut self.0)
    }

    fn open(daemon: &Daemon, secret: &str, ident: &str) -> (Self, String) {
        let mut session = Self::new(daemon);
        let answer = session.ask("authenticate", json!({ "secret": secret, "ident": ident })).message();
        let token = answer["result"]["session_token"].as_str().unwrap().to_owned();
        (session, token)
    }
}

fn refused(reply: Reply) {
    match reply {
        // The end of a key may be said to its session before the request is read, and then without its id.
        Reply::Message(said) if said["msg_type"] == "ERR" => {
            assert_eq!(said["payload"]["data"]["code"], 1001, "{said}");
        }
        Reply::Message(answer) => assert_eq!(answer["error"]["data"]["code"], 1001, "{answer}"),
        Reply::Closed(words) | Reply::Reset(words) => {
            assert!(!String::from_utf8_lossy(&words).contains("result"));
        }
        Reply::Nothing => panic!("an empty line is no refusal"),
    }
}

fn key(world: &World, args: &[&str]) {
    let said = world.command(&[&["key"], args].concat()).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn a_token_got_with_the_shared_secret_is_void_once_its_name_has_a_key_of_its_own() {
    let world = World::new();
    let daemon = world.start();
    let (mut open, token) = Session::open(&daemon, &world.secret(), "boss:a");
    key(&world, &["add", "boss:a", "--role", "approver"]);
    refused(Session::new(&daemon).ask("status", json!({ "session_token": token })));
    refused(open.ask("status", json!({})));
}

#[test]
fn sessions_and_tokens_end_with_the_key_they_were_got_with() {
    let world = World::new();
    let daemon = world.start();
    key(&world, &["add", "doc:own"]);
    let (mut open, token) = Session::open(&daemon, &world.key_of("doc:own"), "doc:own");
    assert!(open.ask("status", json!({})).message()["result"].is_object());
    key(&world, &["revoke", "doc:own"]);
    refused(open.ask("status", json!({})));
    key(&world, &["add", "doc:own"]);
    refused(Session::new(&daemon).ask("status", json!({ "session_token": token })));
}

#[test]
fn a_frame_that_one_address_has_taken_is_a_repeat_at_every_other() {
    let world = World::new();
    let daemon = world.start();
    let approver = world.approver(&daemon);
    let second = world.path("second.sock");
    let address = json!({ "address": second, "secret": "a secret of that address alone" }).to_string();
    let said = ask_own(&world, &http("POST", "/listen", &address));
    assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    let frame = approver.frame("STATUS_REQUEST", &fresh("m"), "orchestrator", &json!({})).to_string() + "\n";
    assert_eq!(approver.send(frame.as_bytes()).message()["msg_type"], "STATUS_RESPONSE");
    let there = Client { socket: second, ..approver };
    assert_eq!(there.say("HEARTBEAT", json!({})), Reply::Nothing, "its key is good there too");
    assert_eq!(there.send(frame.as_bytes()).code(), "E_AUTH");
}

#[test]
fn addresses_are_not_opened_without_end() {
    let world = World::new();
    let daemon = world.start();
    let mut refused = None;
    for n in 0..64 {
        let address = json!({ "address": world.path(&format!("{n}.sock")) }).to_string();
        let said = ask_own(&world, &http("POST", "/listen", &address));
        if !said.starts_with("HTTP/1.1 200 OK") {
            refused = Some((n, said));
            break;
        }
    }
    let (n, said) = refused.expect("64 addresses were opened");
    assert!(n >= 8 && said.contains("addresses"), "after {n}: {said}");
    assert_eq!(world.client(&daemon, "orch:a").say("HEARTBEAT", json!({})), Reply::Nothing);
}

#[test]
fn the_own_door_gives_up_on_peers_that_do_not_finish_a_request() {
    let world = World::new();
    let _daemon = world.start();
    let head = http("POST", "/delegate", &" ".repeat(100)).replace(&" ".repeat(100), "");
    let kinds = ["", "GET /about HTTP/1.1\r\nx-provost-api: 1\r\n", head.as_str()];
    let began = Instant::now();
    let mut waiting: Vec<UnixStream> = Vec::new();
    for words in kinds.iter().cycle().take(300) {
        let mut stream = UnixStream::connect(world.own_socket()).unwrap();
        stream.write_all(words.as_bytes()).unwrap();
        waiting.push(stream);
    }
    let answer = ask_own(&world, &http("GET", "/about", ""));
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for (n, mut stream) in waiting.into_iter().enumerate() {
        stream.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
        let mut heard = Vec::new();
        let closed = stream.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard);
        assert!(closed.is_ok(), "kind {} is still held after {:?}: {heard}", n % 3, began.elapsed());
        assert!(!heard.contains("200 OK"), "{heard}");
    }
}

#[test]
fn the_own_door_refuses_what_is_too_large_or_no_request() {
    let world = World::new();
    let daemon = world.start();
    let before = kib(&daemon, "VmHWM:");
    let large = http("POST", "/delegate", &format!("{{\"goal\":\"{}\"}}", "x".repeat(2 << 20)));
    let head = format!("GET /about HTTP/1.1\r\nx-provost-api: 1\r\nx-long: {}\r\n\r\n", "x".repeat(1 << 20));
    let deep = http("POST", "/delegate", &"[".repeat(500_000));
    let cases = [
        (large.as_str(), "413"),
        (head.as_str(), "431"),
        (deep.as_str(), "422"),
        ("\0\u{1}\u{2} nonsense\r\n\r\n", "400"),
        ("GET /about HTTP/1.1\r\nhost: provost\r\n\r\n", "400"),
        ("GET /nowhere HTTP/1.1\r\nx-provost-api: 1\r\nconnection: close\r\n\r\n", "404"),
        ("DELETE /about HTTP/1.1\r\nx-provost-api: 1\r\nconnection: close\r\n\r\n", "405"),
    ];
    for (request, status) in cases {
        let shown = request.get(..40).unwrap_or(request);
        let mut stream = UnixStream::connect(world.own_socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // It may answer and close before it was sent all of it.
        let _said = stream.write_all(request.as_bytes());
        let mut answer = [0; 12];
        // A reset may overtake the answer of one that was refused half-way; a service never does.
        if stream.read_exact(&mut answer).is_ok() {
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.ends_with(status), "{shown:?} was answered {answer}");
        }
    }
    nothing_happened(&world.client(&daemon, "orch:a"));
    assert!(kib(&daemon, "VmHWM:") < before + (64 << 10));
}

#[test]
fn requests_that_blow_up_when_they_are_read_cost_a_stranger_no_memory_of_ours() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let many = "{\"\":0},".repeat((1 << 20) / 7 - 100);
    let line = format!("{{\"method\":\"status\",\"params\":[{}0]}}\n", many);
    assert!(line.len() < 1 << 20);
    let asked: Vec<_> = (0..24)
        .map(|_| {
            let (line, socket) = (line.clone(), client.socket.clone());
            std::thread::spawn(move || {
                let Ok(mut stream) = UnixStream::connect(socket) else { return };
                stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let _said = stream.write_all(line.as_bytes());
                let _heard = stream.read(&mut [0; 512]);
            })
        })
        .collect();
    asked.into_iter().for_each(|it| it.join().unwrap());
    assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
    let peak = kib(&daemon, "VmHWM:");
    assert!(peak < 160 << 10, "{peak} KiB at the peak");
}

#[test]
fn frames_in_pieces_are_put_together_and_frames_without_an_end_do_nothing() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let task = json!({ "task": { "goal": "true" } });
    let frames = [(); 2].map(|()| client.frame("DELEGATE", &fresh("task"), "poller:x", &task).to_string());
    let mut streams = [(); 2].map(|()| UnixStream::connect(&client.socket).unwrap());
    // Two connections whose bytes come in turns: neither gets what belongs to the other.
    for at in 0..frames[0].len().max(frames[1].len()) {
        for (frame, stream) in frames.iter().zip(&mut streams) {
            let byte = frame.as_bytes().get(at..=at).unwrap_or_default();
            stream.write_all(byte).unwrap();
        }
    }
    nothing_happened(&client);
    for (frame, stream) in frames.iter().zip(&mut streams) {
        stream.write_all(b"\n").unwrap();
        let ack = read_line(stream).message();
        assert_eq!(ack["payload"]["task_id"], frame.parse::<Value>().unwrap()["msg_id"], "{ack}");
    }
    // Half of one message and half of the next on one line is no message.
    let cut = client.frame("DELEGATE", &fresh("task"), "poller:x", &task).to_string();
    let mixed = format!("{}{cut}\n", &cut[..cut.len() / 2]);
    assert_eq!(client.send(mixed.as_bytes()).message()["payload"]["code"], "E_INVALID");
    let mut half = UnixStream::connect(&client.socket).unwrap();
    half.write_all(&cut.as_bytes()[..cut.len() - 1]).unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    half.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _answer = read_line(&mut half);
    let status = client.say("STATUS_REQUEST", json!({})).message();
    assert_eq!(status["payload"]["summary"]["total_active"], 2, "{status}");
}

#[test]
fn a_message_for_a_peer_that_had_no_more_to_say_and_never_read_comes_again() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "poller:x"));
    let (task, reply) = client.delegate("poller:x", "do it", json!({}));
    reply.ack();
    for _ in 0..3 {
        let mut stream = UnixStream::connect(&worker.socket).unwrap();
        let poll = worker.frame("POLL", &fresh("m"), "orchestrator", &json!({}));
        stream.write_all(format!("{poll}\n").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut ready = [rustix::event::PollFd::new(&stream, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ready, None).unwrap();
    }
    let work = worker.poll_until(|it| it["msg_type"] == "DELEGATE");
    assert_eq!(work["msg_id"], task.as_str());
    // One that reads before it goes has got its message, and it is not sent twice.
    let (_, reply) = client.delegate("poller:x", "once", json!({}));
    reply.ack();
    let mut stream = UnixStream::connect(&worker.socket).unwrap();
    let poll = worker.frame("POLL", &fresh("m"), "orchestrator", &json!({}));
    stream.write_all(format!("{poll}\n").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_line(&mut stream).message()["msg_type"], "DELEGATE");
    drop(stream);
    eventually("its delivery", || {
        world
            .command(&["log", "--json"])
            .output()
            .unwrap()
            .stdout
            .windows(14)
            .filter(|it| *it == b"mail_delivered")
            .count()
            >= 2
    });
    assert_eq!(worker.poll(), Reply::Nothing);
}

#[test]
fn nobody_puts_the_daemons_own_words_on_record() {
    let world = World::new();
    let daemon = world.start();
    let say = |what: &str, subject: &str| {
        let body = json!({ "what": what, "subject": subject, "details": {} }).to_string();
        ask_own(&world, &http("POST", "/record", &body))
    };
    let long = "x".repeat(100_000);
    for (what, subject) in
        [("policy.loaded", "open.toml"), ("daemon.stopped", "/"), ("key.added", long.as_str())]
    {
        let answer = say(what, subject);
        assert!(answer.starts_with("HTTP/1.1 400"), "{what}: {answer}");
    }
    assert!(say("key.added", "worker:gpu").starts_with("HTTP/1.1 200"));
    assert_eq!(world.client(&daemon, "orch:a").say("HEARTBEAT", json!({})), Reply::Nothing);
    let output = world.command(&["log", "--json"]).output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(
        log.contains("worker:gpu") && !log.contains("open.toml") && !log.contains("daemon.stopped"),
        "{output:?}"
    );
}

#[test]
fn absurd_numbers_are_refused_or_bounded() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    let (id, reply) =
        client.delegate("poller:x", "wait", json!({ "timeout": u64::MAX, "max_bytes": u64::MAX }));
    reply.ack();
    let timeout = client.task(&id).unwrap()["timeout_secs"].as_u64().unwrap();
    assert!(timeout <= 7 * 24 * 60 * 60, "a task that outlives a week: {timeout}");
    for ts in ["18446744073709551615", "-1", "1e400", "1.5", "99999999999999999999999", "0"] {
        let nonce = fresh("n");
        let hmac =
            mac(&client.secret, ["HEARTBEAT", "m", "orch:a", "o"], ts.parse().unwrap_or(0), &nonce, "{}");
        let line = format!(
            "{{\"msg_type\":\"HEARTBEAT\",\"msg_id\":\"m\",\"from\":\"orch:a\",\"to\":\"o\",\"ts\":{ts},\
             \"nonce\":\"{nonce}\",\"hmac\":\"{hmac}\",\"payload\":{{}}}}\n"
        );
        let code = client.send(line.as_bytes()).code();
        assert!(matches!(code.as_str(), "E_AUTH" | "E_INVALID"), "ts {ts}: {code}");
    }
    let limit = json!({ "limit": u64::MAX });
    assert_eq!(client.say("STATUS_REQUEST", limit).message()["msg_type"], "STATUS_RESPONSE");
    let huge = format!("{{\"goal\":\"x\",\"worker\":\"shell\",\"timeout_s\":{}}}", "9".repeat(400));
    assert!(!ask_own(&world, &http("POST", "/delegate", &huge)).starts_with("HTTP/1.1 200"));
    for query in ["/events?after=18446744073709551615", "/task?id=x&wait_ms=18446744073709551615"] {
        let answer = ask_own(&world, &http("GET", query, ""));
        assert!(answer.starts_with("HTTP/1.1 "), "{query}: {answer}");
    }
    assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
}

#[test]
fn a_status_is_bounded_however_much_its_tasks_have_to_say() {
    let world = World::new();
    let daemon = world.start();
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "poller:x"));
    let big = "x".repeat(900 << 10);
    let tasks: Vec<_> = (0..3).map(|_| client.delegate("poller:x", "talk", json!({})).0).collect();
    for task in &tasks {
        for n in 0..4 {
            let said = json!({ "task_id": task, "status": "in_progress", "artifacts": { "summary": n, "details": big } });
            worker.say("NOTIFY", said).ack();
        }
    }
    let payload = client.say("STATUS_REQUEST", json!({})).message()["payload"].clone();
    let size = payload.to_string().len();
    assert!(size <= provost::base::limits::STATUS_BYTES_MAX + (64 << 10), "{size} bytes");
    assert_eq!(payload["active_tasks"].as_array().unwrap().len(), 3, "every active task is there");
    assert_eq!(payload["truncated"], true);
    // One by one they are complete.
    let one = client.say("TASK_REQUEST", json!({ "task_id": tasks[0] })).message();
    assert_eq!(one["payload"]["notifications"].as_array().unwrap().len(), 4);
}

/// Starts a daemon after a shell has set limits.
fn with_limits(world: &World, limits: &str) -> Daemon {
    let line = format!("{limits}; exec {} up --foreground", crate::support::provost().display());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).current_dir(world.repo()).env_clear().stdin(Stdio::null());
    world.command(&[]).get_envs().for_each(|(name, value)| {
        shell.env(name, value.unwrap_or_default());
    });
    world.start_as(shell)
}

#[test]
fn when_the_disk_is_full_writes_are_refused_and_everything_else_goes_on() {
    let world = World::new();
    // Files that cannot grow beyond four megabytes are what a full disk looks like to a program.
    let daemon = with_limits(&world, "trap '' XFSZ; ulimit -f 8000");
    let client = world.client(&daemon, "orch:a");
    let goal = "x".repeat(200 << 10);
    let mut kept = Vec::new();
    let refusal = loop {
        assert!(kept.len() < 200, "forty megabytes fit on a disk of four");
        let (id, reply) = client.delegate("poller:x", &goal, json!({}));
        match reply.message() {
            ack if ack["msg_type"] == "ACK" => kept.push(id),
            refusal => break refusal,
        }
    };
    assert_eq!(refusal["payload"]["code"], "E_INTERNAL", "{refusal}");
    // A changed policy, which has to be put on record, does not end the daemon either.
    let rules = "version = 1\ndefault = \"deny\"\n";
    world.rule(rules);
    let about = || ask_own(&world, &http("GET", "/about", ""));
    eventually("the new policy", || about().contains("policy.toml"));
    stays("what is read", Duration::from_secs(3), || about().starts_with("HTTP/1.1 200 OK"));
    let status = client.say("STATUS_REQUEST", json!({})).message();
    assert_eq!(status["payload"]["summary"]["total_active"], kept.len(), "what was answered is there");
}

#[test]
fn who_waits_for_news_holds_no_files_open() {
    let world = World::new();
    // Enough for so many connections and what the daemon keeps for itself, not for as many times the files of
    // the store.
    let daemon = with_limits(&world, "ulimit -n 600");
    let mut waiting: Vec<UnixStream> = (0..120)
        .map(|_| {
            let mut stream = UnixStream::connect(world.own_socket()).unwrap();
            stream.write_all(http("GET", "/events?wait_ms=30000", "").as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..5 {
        let about = ask_own(&world, &http("GET", "/about", ""));
        assert!(about.starts_with("HTTP/1.1 200 OK"), "{about}\n{}", world.log());
        let status = world.client(&daemon, "orch:a").say("STATUS_REQUEST", json!({})).message();
        assert_eq!(status["msg_type"], "STATUS_RESPONSE", "{status}");
    }
    for stream in &mut waiting {
        stream.set_nonblocking(true).unwrap();
        let mut answer = [0; 4096];
        let heard =
            stream.read(&mut answer).map(|read| String::from_utf8_lossy(&answer[..read]).into_owned());
        assert!(heard.is_err(), "one that waits was answered {heard:?}");
    }
    assert!(!world.log().contains("cannot accept"), "{}", world.log());
}

#[test]
fn more_clients_at_work_than_a_shell_allows_files_find_room() {
    let world = World::new();
    let daemon = with_limits(&world, "ulimit -S -n 256");
    let client = world.client(&daemon, "orch:a");
    let frame = || format!("{}\n", client.frame("HEARTBEAT", &fresh("m"), "orchestrator", &json!({})));
    let mut at_work: Vec<UnixStream> = (0..200)
        .map(|_| {
            let mut stream = UnixStream::connect(&client.socket).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream.write_all(frame().as_bytes()).unwrap();
            stream
        })
        .collect();
    assert!(at_work.iter_mut().all(|stream| read_line(stream) == Reply::Nothing));
    assert!(ask_own(&world, &http("GET", "/about", "")).starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn files_that_nest_without_end_are_errors_and_not_crashes() {
    let world = World::new();
    let deep = format!("a = {}\n", "[".repeat(100_000));
    let dotted = format!("{} = 1\n", vec!["a"; 50_000].join("."));
    let tables = format!("[{}]\n", vec!["a"; 50_000].join("."));
    for text in [deep, dotted, tables] {
        world.configure(&text);
        let said = world.command(&["up", "--foreground"]).output().unwrap();
        assert_eq!(said.status.signal(), None, "the configuration crashed it");
        world.configure("");
        let file = world.path("policy.toml");
        world.put(&file, &text);
        let said = world.command(&["policy", "check", file.to_str().unwrap()]).output().unwrap();
        assert!(said.status.code().is_some_and(|code| code != 0), "the policy: {said:?}");
    }
}

#[test]
fn large_frames_that_prove_nothing_hold_up_nobody() {
    let world = World::new();
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Numbers cost the most to look at, and a MAC that is wrong has every spelling of them tried.
    let numbers = vec!["0.12380196114964559"; 50_000].join(",");
    let line = |n: usize| {
        format!(
            "{{\"msg_type\":\"NOTIFY\",\"msg_id\":\"m{n}\",\"from\":\"orch:x\",\"to\":\"orchestrator\",\"ts\":1,\"nonce\":\"n{n}\",\
             \"hmac\":\"{}=\",\"payload\":{{\"b\":1,\"a\":[{numbers}]}}}}\n",
            "A".repeat(43)
        )
    };
    let heavy: Vec<UnixStream> = (0..12)
        .map(|n| {
            let mut stream = UnixStream::connect(&client.socket).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.write_all(line(n).as_bytes()).unwrap();
            stream
        })
        .collect();
    // Others are served while these are looked through, and not only after them.
    let answered = |stream: &UnixStream| rustix::io::ioctl_fionread(stream).is_ok_and(|bytes| bytes > 0);
    for served in 0..20 {
        assert!(
            heavy.iter().any(|stream| !answered(stream)),
            "only {served} heartbeats were answered meanwhile"
        );
        assert_eq!(client.say("HEARTBEAT", json!({})), Reply::Nothing);
    }
    for mut stream in heavy {
        assert!(matches!(crate::support::read_line(&mut stream), Reply::Reset(_)));
    }
}
