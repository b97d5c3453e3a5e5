//! Events that are waited for: the stream, and the long poll.

use std::thread;

use serde_json::{Value, json};

use crate::support::agent_protocol::started;
use crate::support::loopback_client::Http;

#[test]
fn a_plain_stream_is_events_and_nothing_else() {
    let (_world, _daemon, http) = started();
    let mut stream = http.stream("");
    for header in ["content-type: text/event-stream", "cache-control: no-cache", "connection: keep-alive"] {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    http.announce("a");
    let frame = stream.frame().unwrap();
    assert!(frame.starts_with("data: {\"id\":\"evt_") && frame.ends_with("}\n\n"), "{frame}");
    assert_eq!(frame.matches('\n').count(), 2, "{frame}");
    http.post("/agents/a/heartbeat", &json!({}));
    assert_eq!(stream.event()["action"], "agent.heartbeat");
    http.claim("src/a.ts", "a");
    assert_eq!(stream.event(), http.get("/events?limit=1").json()[0], "the same as when asked for");
}

#[test]
fn a_stream_with_ids_goes_on_where_it_was_broken_off() {
    let (world, mut daemon, http) = started();
    let mut stream = http.stream("?ids=1&heartbeats=0&agent_id=a");
    http.announce("b");
    http.announce("a");
    let frame = stream.frame().unwrap();
    let id = frame.lines().next().unwrap().strip_prefix("id: ").unwrap().to_owned();
    assert_eq!(frame.lines().nth(1).unwrap(), format!("data: {}", first_event(http, "agent_id=a")));
    drop(stream);
    http.post("/agents/a/heartbeat", &json!({}));
    http.claim("src/a.ts", "a");
    daemon.kill();
    let _daemon = world.start();
    let http = Http::agent_protocol(&world);
    http.claim("src/b.ts", "a");
    let mut stream = http.stream(&format!("?ids=1&heartbeats=0&agent_id=a&last_event_id={id}"));
    http.claim("src/c.ts", "a");
    let files: Vec<Value> = (0..3).map(|_| stream.event()["resource"].clone()).collect();
    assert_eq!(files, ["src/a.ts", "src/b.ts", "src/c.ts"]);
    let unknown = http.get("/events/stream?ids=1&last_event_id=evt_AAAAAAAAAAAA");
    assert_eq!((unknown.status, unknown.json()), (400, json!({ "error": "Last-Event-ID is no event's id" })));
}

fn first_event(http: Http, query: &str) -> String {
    let text = String::from_utf8(http.get(&format!("/events?limit=1&{query}")).body).unwrap();
    text.trim_start_matches('[').trim_end_matches(']').to_owned()
}

#[test]
fn everybody_sees_every_event_once_and_in_order() {
    let (_world, _daemon, http) = started();
    let mut streams: Vec<_> = (0..8).map(|_| http.stream("")).collect();
    let writers: Vec<_> = (0..4)
        .map(|w| {
            thread::spawn(move || {
                for n in 0..50 {
                    let body = json!({ "agent_id": "a", "action": "my.own", "metadata": { "w": w, "n": n } });
                    assert_eq!(http.post("/events", &body).status, 201);
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|it| it.join().unwrap());
    let all = http.get("/events?limit=200&action=my.own").json();
    let mut wanted: Vec<Value> = all.as_array().unwrap().clone();
    wanted.reverse();
    for stream in &mut streams {
        let got: Vec<Value> = (0..200).map(|_| stream.event()).collect();
        assert!(got == wanted);
    }
}

#[test]
fn a_long_poll_ends_with_the_next_event() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let last = http.get("/events?limit=1").json()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(http.get(&format!("/events?since_id={last}")).json(), json!([]));
    let waiting = thread::spawn({
        let path = format!("/events?since_id={last}&wait=25&action=resource.claimed");
        move || http.get(&path).json()
    });
    http.post("/agents/a/heartbeat", &json!({}));
    http.claim("src/a.ts", "a");
    let found = waiting.join().unwrap();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["resource"]), (1, &json!("src/a.ts")));
    assert_eq!(http.get("/events?since_id=evt_x").status, 400);
    assert_eq!(http.get("/events?since_id=evt_x&wait=x").status, 400);
}

#[test]
fn a_stop_ends_streams_and_takes_no_time() {
    let (_world, daemon, http) = started();
    let mut stream = http.stream("");
    http.announce("a");
    stream.event();
    daemon.stop();
    assert_eq!(stream.frame(), None);
}
