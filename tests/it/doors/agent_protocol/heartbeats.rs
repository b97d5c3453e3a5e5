//! Signs of life: they count, and are not kept for ever.

use serde_json::json;

use crate::support::agent_protocol::started;
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

const BEATS: &str = "/events?action=agent.heartbeat";

impl Http {
    fn beat(self, id: &str) {
        assert_eq!(self.post(&format!("/agents/{id}/heartbeat"), &json!({})).status, 200);
    }

    fn beats(self) -> usize {
        self.get(BEATS).json().as_array().unwrap().len()
    }
}

#[test]
fn heartbeats_are_forgotten_after_a_day_and_counted_for_ever() {
    let (world, daemon, http) = started();
    http.announce("a");
    (0..5).for_each(|_| http.beat("a"));
    http.claim("src/a.ts", "a");
    assert_eq!((http.beats(), http.count()), (5, 8));
    let others = http.get("/events?heartbeats=0").json();
    daemon.stop();
    // All but one of them are of the day before yesterday.
    let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
    let two_days = 2 * 24 * 60 * 60 * 1_000;
    let aged = db.execute(
        "UPDATE timeline SET at = at - ?1 WHERE seq IN
         (SELECT seq FROM timeline WHERE word = 'agent.heartbeat' ORDER BY seq LIMIT 4)",
        [two_days],
    );
    assert_eq!(aged.unwrap(), 4);
    drop(db);
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    eventually("old heartbeats to be gone", || http.beats() == 1);
    assert_eq!(http.count(), 9, "all of them, and two starts");
    let left = http.get("/events?heartbeats=0").json();
    assert_eq!(left.as_array().unwrap()[1..], others.as_array().unwrap()[..], "nothing else has gone");
    http.beat("a");
    daemon.stop();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    assert_eq!((http.beats(), http.count()), (2, 11), "the count goes on where it was");
}

#[test]
fn heartbeats_need_not_be_events() {
    let world = World::new();
    world.configure("[agent_protocol]\nheartbeat_events = false\n");
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    let joined = http.announce("a")["last_heartbeat"].as_i64().unwrap();
    let count = http.count();
    let mut stream = http.stream("");
    let heard = || http.get("/agents/a").json()["last_heartbeat"].as_i64().unwrap();
    eventually("a later moment", || {
        http.beat("a");
        heard() > joined
    });
    assert_eq!((http.beats(), http.count()), (0, count));
    http.claim("x", "a");
    assert_eq!(stream.event()["action"], "resource.claimed", "the first that is told");
}
