//! The messages to a service manager of a daemon that it has started: over a real socket, as systemd has it.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::World;
use crate::support::desk::ask;

/// The time of the watchdog of these tests.
const WATCHDOG: Duration = Duration::from_millis(400);

/// A manager, and its socket.
pub(super) struct Manager {
    socket: UnixDatagram,
    pub(super) at: std::path::PathBuf,
}

impl Manager {
    pub(super) fn new(world: &World) -> Self {
        let at = world.path("notify");
        let socket = UnixDatagram::bind(&at).unwrap();
        Self { socket, at }
    }

    /// The next word that is not the watchdog's, or `None` if there is none in this time.
    pub(super) fn word(&self, patience: Duration) -> Option<String> {
        let until = Instant::now() + patience;
        loop {
            match self.any(until.saturating_duration_since(Instant::now())) {
                Some(word) if word == "WATCHDOG=1" => {}
                other => return other,
            }
        }
    }

    /// The next word.
    fn any(&self, patience: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1)))).unwrap();
        let mut bytes = [0; 256];
        let length = self.socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
    }

    /// Has everything that was said before read.
    fn drain(&self) {
        while self.any(Duration::from_millis(1)).is_some() {}
    }
}

pub(super) const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_service_manager_is_told_of_the_start_of_each_sign_of_life_and_of_the_end() {
    let world = World::new();
    let manager = Manager::new(&world);
    let mut command = world.command(&["up", "--foreground"]);
    command.env("NOTIFY_SOCKET", &manager.at).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
    let daemon = world.start_as(command);
    assert_eq!(manager.word(LONG).as_deref(), Some("READY=1"));
    for _ in 0..3 {
        assert_eq!(manager.any(LONG).as_deref(), Some("WATCHDOG=1"));
    }
    // What the store keeps waiting, the engine keeps waiting, and its watchdog starves.
    let database = world.state_dir().join("provost.db");
    let other = rusqlite::Connection::open(database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&world, "agent-a", "POST /lock", &json!({ "symbol": "a.ts:f" })));
        let starves = (0..20).any(|_| {
            manager.drain();
            manager.any(4 * WATCHDOG).is_none()
        });
        assert!(starves, "the watchdog is fed by something else than the engine");
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(manager.any(LONG).as_deref(), Some("WATCHDOG=1"), "it goes on");
    });
    daemon.stop();
    assert_eq!(manager.word(LONG).as_deref(), Some("STOPPING=1"));
}

#[test]
fn a_daemon_in_the_background_says_nothing_to_the_manager_of_another_service() {
    let world = World::new();
    let manager = Manager::new(&world);
    for args in [["up"], ["down"]] {
        let mut command = world.command(&args);
        command.env("NOTIFY_SOCKET", &manager.at).env("WATCHDOG_USEC", WATCHDOG.as_micros().to_string());
        assert!(command.status().unwrap().success(), "{args:?}");
    }
    assert_eq!(manager.any(Duration::from_millis(1)), None);
}
