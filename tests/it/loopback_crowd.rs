//! One process that takes all the connections it can get at a door over loopback HTTP, and the others beside it.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use provost::base::limits::{CONNECTIONS_MAX, LOOPBACK_PROCESS_CONNECTIONS_MAX};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::loopback_client::{Answer, Http};
use crate::support::{World, eventually};

/// As many descriptors as the system lets us have; for the daemon, too, which is started afterwards.
fn many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// What a door says to another process.
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

#[test]
fn a_process_that_uses_all_its_connections_is_told_so_and_no_other_one_is() {
    many_descriptors();
    let world = World::new();
    let _daemon = world.start();
    for (door, path) in doors(&world) {
        let mut held: Vec<_> = (0..LOOPBACK_PROCESS_CONNECTIONS_MAX).map(|_| lasting(door, path)).collect();
        let refused = |answer: &Answer| answer.status == 503;
        eventually("a refusal", || refused(&door.get("/nowhere")));
        let answer = door.get("/nowhere");
        let error: Value = answer.json();
        assert!(error["error"].as_str().unwrap().contains("close some, and try again"), "{error}");
        assert_eq!(error.as_object().unwrap().len(), 1, "{error}");
        assert_eq!((answer.header("retry-after"), answer.header("connection")), (Some("1"), Some("close")));
        // Whoever is not let in is not told even that.
        assert_eq!(door.bare("GET /nowhere", &[("Host", "evil.example")], b"").status, 403);
        for _ in 0..5 {
            assert_eq!(elsewhere(door), "404");
        }
        // Refused connections are not counted on top, and one that ends makes room for one.
        assert!(refused(&door.get("/nowhere")));
        held.pop();
        eventually("room", || door.get("/nowhere").status == 404);
        held.push(lasting(door, path));
        eventually("a refusal again", || refused(&door.get("/nowhere")));
    }
    assert!(world.log().contains("its process has too many"), "{}", world.log());
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

/// What a process is answered that was there first and said nothing while this one took more than there is; and how
/// long it was silent.
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
