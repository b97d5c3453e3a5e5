//! A repository, a daemon over it, and a DevIt client of our own making.
//!
//! The client signs as the protocol says, with code that shares nothing with the product's, and behaves like
//! today's clients: one connection per message, at most one line of answer.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use tempfile::TempDir;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod host;

pub(crate) use host::{Connection, UP};
#[cfg(unix)]
pub(crate) use host::{apart, relay};

/// The product's executable, also where tests run from an archive.
pub(crate) fn provost() -> PathBuf {
    std::env::var_os("NEXTEST_BIN_EXE_provost")
        .map_or_else(|| env!("CARGO_BIN_EXE_provost").into(), PathBuf::from)
}

/// An ordinary user's machine, as far as Provost sees it: a home, a runtime folder and a repository.
pub(crate) struct World {
    dir: TempDir,
    home: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        assert!(!host::is_root(), "these tests are an ordinary user's: run scripts/test");
        let dir = TempDir::new().unwrap();
        let home = dir.path().join("home");
        let world = Self { dir, home };
        for name in ["home", "run", "repo"] {
            let folder = world.dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            host::close_to_others(&folder);
        }
        host::init_repository(&world.repo());
        world
    }

    /// Another repository of the same user.
    pub(crate) fn beside(&self) -> Self {
        Self { home: self.home.clone(), ..Self::new() }
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.clone()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn config_dir(&self) -> PathBuf {
        self.home().join(host::CONFIG_DIR)
    }

    /// Writes the user's `provost.toml`.
    pub(crate) fn configure(&self, text: &str) {
        self.put(&self.config_dir().join("provost.toml"), text);
    }

    /// Writes the user's policy.
    pub(crate) fn rule(&self, text: &str) {
        self.put(&self.config_dir().join("policy.toml"), text);
    }

    pub(crate) fn put(&self, path: &Path, text: &str) {
        let folder = path.parent().unwrap();
        std::fs::create_dir_all(folder).unwrap();
        host::close_to_others(folder);
        // Replaced in one step, as an editor does it.
        let new = path.with_extension("new");
        std::fs::write(&new, text).unwrap();
        host::close_to_others(&new);
        std::fs::rename(&new, path).unwrap();
    }

    /// A command of the product in this world.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(provost());
        command.args(args).current_dir(self.repo()).env_clear().stdin(Stdio::null());
        host::environment(&mut command, self.dir.path(), &self.home);
        command
    }

    /// Starts a daemon and waits until its doors are open.
    pub(crate) fn start(&self) -> Daemon {
        self.start_with(UP)
    }

    pub(crate) fn start_with(&self, args: &[&str]) -> Daemon {
        self.start_as(self.command(args))
    }

    /// The same with a command that becomes the daemon.
    pub(crate) fn start_as(&self, mut command: Command) -> Daemon {
        let log = std::fs::File::create(self.dir.path().join("daemon.log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut daemon = Daemon { child, socket: PathBuf::new() };
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let is_open = |name| {
                Some(self.find_socket(name)?)
                    .filter(|it| Connection::to(it).is_ok_and(|it| it.is_of_the_living()))
            };
            if let Some(socket) = is_open("devit.sock")
                && is_open("own.sock").is_some()
            {
                daemon.socket = socket;
                return daemon;
            }
            if let Some(status) = daemon.child.try_wait().unwrap() {
                panic!("the daemon ended with {status}: {}", self.log());
            }
            assert!(Instant::now() < until, "the daemon does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn find_socket(&self, name: &str) -> Option<PathBuf> {
        host::find_socket(self.dir.path(), name)
    }

    /// Whether a daemon listens; not so while one begins again.
    pub(crate) fn listens(&self) -> bool {
        self.find_socket("own.sock").is_some()
    }

    pub(crate) fn own_socket(&self) -> PathBuf {
        self.find_socket("own.sock").unwrap()
    }

    /// Returns the daemon's standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("daemon.log")).unwrap_or_default()
    }

    /// The state folder of the only repository.
    pub(crate) fn state_dir(&self) -> PathBuf {
        let below = std::fs::read_dir(self.home().join(host::STATE_DIR)).unwrap();
        below.flatten().map(|it| it.path()).find(|it| it.join("provost.db").exists()).unwrap()
    }

    /// The same, also where it has no database.
    pub(crate) fn state_dir_of_one(&self) -> PathBuf {
        let below = std::fs::read_dir(self.home().join(host::STATE_DIR)).unwrap();
        below.flatten().map(|it| it.path()).find(|it| it.join("daemon.lock").exists()).unwrap()
    }

    /// The secret that DevIt's clients share.
    pub(crate) fn secret(&self) -> String {
        std::fs::read_to_string(self.config_dir().join("keys/shared.secret")).unwrap().trim().to_owned()
    }

    /// The secret of an ident with a key of its own.
    pub(crate) fn key_of(&self, ident: &str) -> String {
        for file in std::fs::read_dir(self.config_dir().join("keys")).unwrap().flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap();
            if let Ok(table) = text.parse::<toml::Table>()
                && table.get("ident").and_then(|it| it.as_str()) == Some(ident)
            {
                return table["key"][0]["secret"].as_str().unwrap().to_owned();
            }
        }
        panic!("{ident} has no key");
    }

    /// A client with the shared secret.
    pub(crate) fn client(&self, daemon: &Daemon, ident: &str) -> Client {
        Client { socket: daemon.socket.clone(), ident: ident.into(), secret: self.secret() }
    }

    /// The approver, with its own key, which is not of the tree of processes that asks.
    pub(crate) fn approver(&self, daemon: &Daemon) -> Client {
        let ident = "client:approver";
        let socket = host::elsewhere(self.dir.path(), &daemon.socket);
        Client { socket, ident: ident.into(), secret: self.key_of(ident) }
    }

    /// The same from where this test asks.
    pub(crate) fn approver_from_here(&self, daemon: &Daemon) -> Client {
        Client { socket: daemon.socket.clone(), ..self.approver(daemon) }
    }
}

/// A running daemon; ended when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would, as far as a process can be.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// Asks it to stop and waits.
    pub(crate) fn stop(self) {
        let status = self.asked_to_stop();
        assert!(status.success(), "the daemon ended with {status}");
    }

    /// The same of one that may have a reason not to end in order.
    pub(crate) fn asked_to_stop(mut self) -> std::process::ExitStatus {
        host::terminate(&self.child);
        self.child.wait().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reply to a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// An empty line: nothing to say.
    Nothing,
    /// A message; its signature was checked.
    Message(Value),
    /// The connection ended without a line.
    Closed(Vec<u8>),
    /// The connection was reset; what could be read before.
    Reset(Vec<u8>),
}

impl Reply {
    pub(crate) fn message(self) -> Value {
        match self {
            Reply::Message(message) => message,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    /// The payload of an ACK.
    pub(crate) fn ack(self) -> Value {
        let message = self.message();
        assert_eq!(message["msg_type"], "ACK", "{message}");
        message["payload"].clone()
    }

    /// The code of an ERR.
    pub(crate) fn code(self) -> String {
        let message = self.message();
        assert_eq!(message["msg_type"], "ERR", "{message}");
        message["payload"]["code"].as_str().unwrap().to_owned()
    }
}

/// A DevIt client.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) socket: PathBuf,
    pub(crate) ident: String,
    pub(crate) secret: String,
}

static NONCE: AtomicU64 = AtomicU64::new(1);

pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub(crate) fn fresh(what: &str) -> String {
    format!("{what}-{}-{}", std::process::id(), NONCE.fetch_add(1, Ordering::Relaxed))
}

/// `serde_json`'s maps are sorted and its text is compact, which is DevIt's canonical form without floats.
pub(crate) fn mac(secret: &str, head: [&str; 4], ts: u64, nonce: &str, payload: &str) -> String {
    let body = format!("{}|{}|{}|{}|{ts}|{nonce}|{payload}", head[0], head[1], head[2], head[3]);
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes())
}

impl Client {
    /// A signed message that is not sent yet.
    pub(crate) fn frame(&self, msg_type: &str, msg_id: &str, to: &str, payload: &Value) -> Value {
        let (ts, nonce) = (now_s(), fresh("nonce"));
        let hmac = mac(&self.secret, [msg_type, msg_id, &self.ident, to], ts, &nonce, &payload.to_string());
        json!({
            "msg_type": msg_type, "msg_id": msg_id, "from": self.ident, "to": to,
            "ts": ts, "nonce": nonce, "hmac": hmac, "payload": payload,
        })
    }

    /// Sends a message on a connection of its own and reads one line.
    pub(crate) fn say(&self, msg_type: &str, payload: Value) -> Reply {
        self.say_to(msg_type, &fresh("msg"), "orchestrator", payload)
    }

    pub(crate) fn say_to(&self, msg_type: &str, msg_id: &str, to: &str, payload: Value) -> Reply {
        let frame = self.frame(msg_type, msg_id, to, &payload);
        self.check(self.send(format!("{frame}\n").as_bytes()))
    }

    /// A delegation as the orchestration backend sends it; returns the task id and the answer.
    pub(crate) fn delegate(&self, worker: &str, goal: &str, more: Value) -> (String, Reply) {
        let mut task = json!({ "action": "devit_delegate", "goal": goal, "timeout": 60 });
        for (name, value) in more.as_object().into_iter().flatten() {
            task[name] = value.clone();
        }
        let id = fresh("task");
        let reply = self.say_to("DELEGATE", &id, worker, json!({ "return_to": self.ident, "task": task }));
        (id, reply)
    }

    pub(crate) fn poll(&self) -> Reply {
        self.say("POLL", json!({}))
    }

    /// Collects mail until a message satisfies `wanted`; the daemon holds polls, so this does not spin.
    pub(crate) fn poll_until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            match self.poll() {
                Reply::Message(message) if wanted(&message) => return message,
                Reply::Message(_) => {}
                Reply::Nothing => std::thread::sleep(Duration::from_millis(20)),
                other => panic!("{other:?}"),
            }
        }
        panic!("{} got no such message", self.ident);
    }

    /// The last word about a task.
    pub(crate) fn result_of(&self, task: &str) -> Value {
        let last = |status: &Value| matches!(status.as_str(), Some("completed" | "failed" | "cancelled"));
        let message =
            self.poll_until(|it| it["payload"]["task_id"] == task && last(&it["payload"]["status"]));
        message["payload"].clone()
    }

    /// A task as STATUS shows it.
    pub(crate) fn task(&self, id: &str) -> Option<Value> {
        let status = self.say("STATUS_REQUEST", json!({})).message();
        let lists =
            ["active_tasks", "completed_tasks"].map(|it| status["payload"][it].as_array().unwrap().clone());
        lists.into_iter().flatten().find(|it| it["id"] == id)
    }

    /// Sends bytes as they are and reads one line, as today's clients do.
    pub(crate) fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = Connection::to(&self.socket).unwrap();
        match stream.write_all(bytes) {
            // Closed before it was read: by a door that refuses the peer itself.
            Err(err) if err.kind() == std::io::ErrorKind::BrokenPipe => return Reply::Reset(Vec::new()),
            done => done.unwrap(),
        }
        read_line(&mut stream)
    }

    /// Whatever carries a signature must carry a good one.
    fn check(&self, reply: Reply) -> Reply {
        if let Reply::Message(message) = &reply
            && message["hmac"] != ""
        {
            let text = |name: &str| message[name].as_str().unwrap();
            let head = [text("msg_type"), text("msg_id"), text("from"), text("to")];
            let ts = message["ts"].as_u64().unwrap();
            let expected = mac(&self.secret, head, ts, text("nonce"), &message["payload"].to_string());
            assert_eq!(text("hmac"), expected, "the daemon's signature is wrong: {message}");
        }
        reply
    }
}

pub(crate) fn read_line(stream: &mut impl Read) -> Reply {
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        match stream.read(&mut byte) {
            Ok(0) => return Reply::Closed(line),
            Ok(_) if byte[0] == b'\n' && line.is_empty() => return Reply::Nothing,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => return Reply::Reset(line),
            Err(err) => panic!("no answer: {err}; so far {:?}", String::from_utf8_lossy(&line)),
        }
    }
    // Where nothing can be reset, the words that are the last end in what is no text.
    if line.last() == Some(&0xff) {
        line.pop();
        return Reply::Reset(line);
    }
    Reply::Message(serde_json::from_slice(&line).unwrap())
}

/// Waits for a condition that another process brings about.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the clock shows another second: what was signed in the second of a start, or before it, is not
/// believed.
pub(crate) fn another_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    eventually("another second", || second() != now);
}
