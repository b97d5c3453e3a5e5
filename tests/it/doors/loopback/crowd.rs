//! Processes that take all the connections they can get at a door over loopback HTTP, and the others beside
//! them.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use provost::base::limits::{CONNECTIONS_MAX, LOOPBACK_CONNECTIONS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::support::loopback_client::{Answer, Http};
use crate::support::waits::within;
use crate::support::{World, eventually};

/// As many descriptors as the system lets us have; for the daemon, too, which is started afterwards.
fn many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Returns a door's answer to another process.
fn elsewhere(door: Http) -> String {
    let url = format!("http://127.0.0.1:{}/nowhere", door.port);
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "20", "--output", "/dev/null", "--write-out", "%{http_code}", &url])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// A request that is being answered until its connection ends, or for a long time.
fn lasting(door: Http, path: &str) -> TcpStream {
    let mut connection = door.connect();
    connection.write_all(&door.bytes(&format!("GET {path}"), &[("Host", "127.0.0.1:PORT")], b"")).unwrap();
    connection
}

fn doors(world: &World) -> [(Http, &'static str); 2] {
    [(Http::agent_protocol(world), "/events/stream"), (Http::broker(world), "/messages/feat-nobody?wait=60")]
}

/// Whether a connection is closed; what else comes on it is read over.
fn is_closed(mut connection: &TcpStream) -> bool {
    connection.set_nonblocking(true).unwrap();
    loop {
        match connection.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(err) => return err.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// This many connections in use; then the door refuses a further one.
fn filled(door: Http, path: &str, count: usize) -> Vec<TcpStream> {
    let (mut held, mut refusals) = (Vec::new(), 0);
    let full = within(Duration::from_secs(40), || {
        // One whose request was not read yet may have had to go, and one may have been refused beside a
        // question of ours that was not over yet.
        held.retain(|it| !is_closed(it));
        refusals = if held.len() < count { 0 } else { refusals };
        held.extend((held.len()..count).map(|_| lasting(door, path)));
        // What is asked while others still arrive may have to go for them, and is asked again.
        let answer = Answer::read(&mut lasting(door, "/nowhere"), false);
        refusals = if answer.is_ok_and(|it| refused(&it)) { refusals + 1 } else { 0 };
        refusals == 3
    });
    assert!(full, "never refused");
    held
}

fn refused(answer: &Answer) -> bool {
    answer.status == 503
}

#[test]
fn a_process_that_uses_all_connections_is_told_so_and_gives_way_to_any_other() {
    many_descriptors();
    let world = World::new();
    let _daemon = world.start();
    for (door, path) in doors(&world) {
        let mut held = filled(door, path, LOOPBACK_CONNECTIONS_MAX);
        let answer = door.get("/nowhere");
        let error: Value = answer.json();
        assert!(error["error"].as_str().unwrap().contains("close some, and try again"), "{error}");
        assert_eq!(error.as_object().unwrap().len(), 1, "{error}");
        assert_eq!((answer.header("retry-after"), answer.header("connection")), (Some("1"), Some("close")));
        // Whoever is not let in is not told even that.
        assert_eq!(door.bare("GET /nowhere", &[("Host", "evil.example")], b"").status, 403);
        assert!(!held.iter().any(is_closed), "nothing of its own was closed for it");
        for _ in 0..5 {
            assert_eq!(elsewhere(door), "404");
        }
        let closed: Vec<_> = (0..held.len()).filter(|at| is_closed(&held[*at])).collect();
        assert!(closed.len() <= 5 && closed.iter().copied().eq(0..closed.len()), "{closed:?}: the oldest");
        // One that ends makes room for one.
        drop(held);
        held = filled(door, path, LOOPBACK_CONNECTIONS_MAX);
        held.pop();
        eventually("room", || door.get("/nowhere").status == 404);
    }
    assert!(world.log().contains("its process has too many"), "{}", world.log());
}

/// Another process that keeps so many connections in use.
struct Holder(Child, BufReader<ChildStdout>);

impl Holder {
    fn start(door: Http, path: &str, count: usize) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", HOLDER, &door.port.to_string(), path, &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut it = Self(child, said);
        assert_eq!(it.line(), "all\n");
        it
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line
    }

    /// Ends it; how many of its connections were closed.
    fn end(mut self) -> usize {
        drop(self.0.stdin.take());
        let closed = self.line().trim().parse().unwrap();
        assert!(self.0.wait().unwrap().success());
        closed
    }
}

/// Says when it has all, and how many of them are closed when there is nothing more to read.
const HOLDER: &str = r"
import resource, socket, sys
port, path, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for _ in range(count):
    it = socket.create_connection(('127.0.0.1', port))
    it.sendall(f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n'.encode())
    held.append(it)
print('all', flush=True)
sys.stdin.read()
def is_closed(it):
    try:
        while it.recv(4096, socket.MSG_DONTWAIT):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
print(sum(map(is_closed, held)), flush=True)
";

#[test]
fn processes_that_fill_a_door_together_leave_room_for_a_further_one() {
    many_descriptors();
    let world = World::new();
    let _daemon = world.start();
    for (door, path) in doors(&world) {
        let others: Vec<_> =
            (0..2).map(|_| Holder::start(door, path, LOOPBACK_CONNECTIONS_MAX / 4)).collect();
        // Most are ours; all are in use.
        let held = filled(door, path, LOOPBACK_CONNECTIONS_MAX / 2);
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| elsewhere(door))).collect();
            asking.into_iter().for_each(|it| assert_eq!(it.join().unwrap(), "404"));
        });
        let third = Holder::start(door, path, 100);
        eventually("what it gives", || held.iter().filter(|it| is_closed(it)).count() >= 100);
        for holder in others.into_iter().chain([third]) {
            assert_eq!(holder.end(), 0, "who has less keeps it");
        }
    }
}

#[test]
fn idle_connections_of_a_process_make_room_for_its_own_and_never_for_others() {
    many_descriptors();
    let world = World::new();
    let _daemon = world.start();
    for (door, path) in doors(&world) {
        // Silence ends by itself after a while, which a slow machine may need for this; then it is tried again.
        let mut tries = std::iter::repeat_with(|| beside_a_crowd(door, path)).take(5);
        let (status, _) = tries.find(|(status, took)| status.is_some() || took.as_secs() < 10).unwrap();
        assert_eq!(status, Some(404), "the quiet one is still there");
    }
}

/// Returns the answer to a process that was there first and said nothing while this one took more connections than
/// there are; and how long that process was silent.
fn beside_a_crowd(door: Http, path: &str) -> (Option<u16>, Duration) {
    let mut quiet = Command::new("nc")
        .args(["127.0.0.1", &door.port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // By now it is there as well.
    assert_eq!(elsewhere(door), "404");
    let used: Vec<_> = (0..10).map(|_| lasting(door, path)).collect();
    let idle: Vec<_> = (0..CONNECTIONS_MAX + 50).map(|_| door.connect()).collect();
    assert_eq!(elsewhere(door), "404");
    assert_eq!(door.get("/nowhere").status, 404, "its own oldest had to go");
    let ask = door.bytes("GET /nowhere", &[("Host", "127.0.0.1:PORT"), ("Connection", "close")], b"");
    let mut stdin = quiet.stdin.take().unwrap();
    // Closed, it may have ended.
    let _ = stdin.write_all(&ask);
    let took = begun.elapsed();
    let answer = Answer::read(&mut quiet.stdout.take().unwrap(), false);
    let _ = quiet.kill();
    quiet.wait().unwrap();
    drop((used, idle));
    (answer.ok().map(|it| it.status), took)
}

#[test]
fn while_a_process_floods_a_door_others_are_answered() {
    many_descriptors();
    let world = World::new();
    let _daemon = world.start();
    for (door, _) in doors(&world) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let (mut held, mut count) = (std::collections::VecDeque::new(), 0_u32);
                while !over.load(Ordering::Relaxed) {
                    // Where the system's own queue is full, it is tried again.
                    if let Ok(connection) = TcpStream::connect(("127.0.0.1", door.port)) {
                        held.push_back(connection);
                        count += 1;
                    }
                    if held.len() > 4_000 {
                        held.pop_front();
                    }
                }
                count
            });
            let answers: Vec<_> = (0..10).map(|_| elsewhere(door)).collect();
            over.store(true, Ordering::Relaxed);
            let count = flood.join().unwrap();
            assert!(answers.iter().all(|it| it == "404"), "{answers:?} beside {count}");
        });
    }
}
