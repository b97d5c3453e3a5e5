//! The own API's stream of events: resumed by its cursor over connections, a crash and slow reading, and
//! ended with its proof.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::desk::ask;

/// One event as a reader gets it.
#[derive(Debug)]
struct Got {
    id: u64,
    kind: String,
    data: Value,
}

/// A reader of the stream.
struct Reader {
    lines: BufReader<UnixStream>,
    status: u16,
}

impl Reader {
    /// A reader with these headers, each with its line end, at this query.
    fn open(world: &World, query: &str, headers: &str) -> Self {
        let mut stream = UnixStream::connect(world.own_socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "GET /event-stream{query} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        Self { lines, status }
    }

    fn after(world: &World, after: u64) -> Self {
        let reader = Self::open(world, "", &format!("last-event-id: {after}\r\n"));
        assert_eq!(reader.status, 200);
        reader
    }

    /// The next event; nothing where the stream has ended. Sizes of chunks and comments are passed over.
    fn next(&mut self) -> Option<Got> {
        let (mut id, mut kind, mut data) = (0, String::new(), None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            // The chunk without bytes is the last one.
            if line == "0" {
                return None;
            }
            if let Some(it) = line.strip_prefix("id: ") {
                id = it.parse().unwrap();
            } else if let Some(it) = line.strip_prefix("event: ") {
                kind = it.into();
            } else if let Some(it) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(it).unwrap());
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some(Got { id, kind: std::mem::take(&mut kind), data });
            }
        }
    }

    /// So many events.
    fn take(&mut self, count: usize) -> Vec<Got> {
        (0..count)
            .map(|at| self.next().unwrap_or_else(|| panic!("the stream has ended before event {at}")))
            .collect()
    }
}

fn record(world: &World, subject: &str) {
    let body = json!({ "what": "key.added", "subject": subject, "details": { "text": "x".repeat(100) } });
    let head = format!(
        "POST /record HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.to_string().len()
    );
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
}

fn head(world: &World) -> u64 {
    ask(world, "looker", "GET /about", &Value::Null).1["journal_seq"].as_u64().unwrap()
}

/// Events of records, by what they are about.
fn subjects(events: &[Got]) -> Vec<String> {
    let of = |it: &Got| {
        let recorded = &it.data["kind"]["recorded"];
        // The daemon records its own beginning, too.
        (recorded["what"] == "key.added").then(|| recorded["subject"].as_str().unwrap().to_owned())
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn a_reader_goes_on_behind_its_cursor_after_a_crash_without_a_gap_or_a_repeat() {
    let world = World::new();
    let mut daemon = world.start();
    let begin = head(&world);
    let mut reader = Reader::after(&world, begin);
    for at in 0..5 {
        record(&world, &format!("s{at}"));
    }
    let first = reader.take(5);
    assert_eq!(subjects(&first), ["s0", "s1", "s2", "s3", "s4"]);
    let ids: Vec<u64> = first.iter().map(|it| it.id).collect();
    assert_eq!(ids, (begin + 1..=begin + 5).collect::<Vec<_>>());
    assert!(first.iter().all(|it| it.kind == "recorded" && it.data["seq"] == json!(it.id)), "{first:?}");
    record(&world, "while nobody reads");
    daemon.kill();
    assert!(reader.next().is_none_or(|it| it.id == begin + 6), "nothing else can come");
    let _daemon = world.start();
    record(&world, "afterwards");
    let mut again = Reader::after(&world, begin + 4);
    let mut seen = Vec::new();
    while subjects(&seen).last().is_none_or(|it| it != "afterwards") {
        seen.extend(again.take(1));
    }
    let ids: Vec<u64> = seen.iter().map(|it| it.id).collect();
    assert_eq!(ids, (begin + 5..begin + 5 + ids.len() as u64).collect::<Vec<_>>(), "dense, each once");
    assert_eq!(subjects(&seen), ["s4", "while nobody reads", "afterwards"]);
}

#[test]
fn a_slow_reader_gets_everything_and_holds_up_nobody() {
    let world = World::new();
    let _daemon = world.start();
    let begin = head(&world);
    let mut slow = Reader::after(&world, begin);
    let count = 3_200;
    let mut quick = Reader::after(&world, begin);
    std::thread::scope(|scope| {
        for part in 0..8 {
            let world = &world;
            scope.spawn(move || (0..count / 8).for_each(|at| record(world, &format!("s{part}-{at}"))));
        }
        assert_eq!(quick.take(count).len(), count, "while the other one reads nothing");
    });
    let ids: Vec<u64> = slow.take(count).iter().map(|it| it.id).collect();
    assert_eq!(ids, (begin + 1..=begin + count as u64).collect::<Vec<_>>());
}

#[test]
fn a_large_event_comes_at_its_place() {
    let world = World::new();
    let _daemon = world.start();
    let begin = head(&world);
    let mut reader = Reader::after(&world, begin);
    record(&world, "before");
    let body = json!({ "message": { "type": "agent.status", "agent_id": "feat-a",
        "payload": { "status": "y".repeat(20_000), "modified_files": [], "message": null } } });
    let (status, answer) = ask(&world, "feat-a", "POST /publish-post", &body);
    assert_eq!(status, 200, "{answer}");
    let mut seen = reader.take(2);
    while !seen.last().unwrap().data.to_string().contains("yyyy") {
        seen.extend(reader.take(1));
    }
    record(&world, "behind");
    seen.extend(reader.take(1));
    let ids: Vec<u64> = seen.iter().map(|it| it.id).collect();
    assert_eq!(ids, (begin + 1..begin + 1 + ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(subjects(&seen), ["before", "behind"]);
}

#[test]
fn a_reader_chooses_kinds_and_begins_at_the_newest_where_it_names_no_event() {
    let world = World::new();
    let _daemon = world.start();
    record(&world, "long ago");
    let mut newest = Reader::open(&world, "?kinds=recorded", "");
    let mut locks = Reader::open(&world, "?kinds=lock_acquired,lock_freed", "");
    let lock = json!({ "symbol": "a.py:f" });
    assert_eq!(ask(&world, "looker", "POST /lock", &lock).0, 200);
    record(&world, "now");
    assert_eq!(subjects(&newest.take(1)), ["now"]);
    assert_eq!(ask(&world, "looker", "POST /unlock", &lock).0, 200);
    let kinds: Vec<String> = locks.take(2).into_iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["lock_acquired", "lock_freed"]);
}

#[test]
fn a_cursor_that_no_event_has_is_refused_with_the_way_on() {
    let world = World::new();
    let _daemon = world.start();
    let far = head(&world) + 1_000;
    assert_eq!(Reader::open(&world, "", &format!("last-event-id: {far}\r\n")).status, 409);
    assert_eq!(Reader::open(&world, &format!("?after={far}"), "").status, 409);
    for wrong in ["-1", "x", "1.5", "99999999999999999999999"] {
        assert_eq!(Reader::open(&world, "", &format!("last-event-id: {wrong}\r\n")).status, 400, "{wrong}");
        assert_eq!(Reader::open(&world, &format!("?after={wrong}"), "").status, 400, "{wrong}");
    }
    let (status, fault) = ask(&world, "looker", "POST /event-stream", &json!({}));
    assert_eq!((status, &fault["error"]), (405, &json!("wrong_method")));
}

#[test]
fn a_stream_ends_at_once_with_the_daemon_and_says_so() {
    let world = World::new();
    let mut daemon = world.start();
    let mut reader = Reader::after(&world, head(&world));
    assert!(world.command(&["down"]).status().unwrap().success());
    let last = reader.next().unwrap();
    assert_eq!((last.kind.as_str(), &last.data["error"]), ("error", &json!("stopping")));
    assert!(reader.next().is_none());
    daemon.ended();
}

#[test]
fn a_stream_ends_with_the_token_of_its_reader() {
    let world = World::new();
    let _daemon = world.start();
    let secret = crate::support::tokens::mint(&world, "reader");
    let headers = format!("authorization: Bearer {secret}\r\nx-provost-agent: reader\r\n");
    for name in ["reader", "Reader", "human"] {
        assert_eq!(Reader::open(&world, "", &format!("x-provost-agent: {name}\r\n")).status, 403, "{name}");
    }
    let mut reader = Reader::open(&world, "", &headers);
    assert_eq!(reader.status, 200);
    record(&world, "before");
    while subjects(&reader.take(1)) != ["before"] {}
    crate::support::tokens::revoke_of(&world, "reader");
    let mut last = reader.next().unwrap();
    while last.kind != "error" {
        assert!(last.kind == "token_ended", "{last:?}");
        last = reader.next().unwrap();
    }
    assert!(last.data["message"].is_string(), "{last:?}");
    record(&world, "after");
    assert!(reader.next().is_none(), "nothing comes behind the end");
}

#[test]
fn a_process_that_opens_streams_without_end_keeps_nobody_from_asking() {
    let world = World::new();
    let _daemon = world.start();
    let head = "GET /event-stream HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\n\r\n";
    let mut open = Vec::new();
    while open.len() < 2_500 {
        // The test's own descriptors may be used up before.
        let Ok(mut stream) = UnixStream::connect(world.own_socket()) else { break };
        let _closed_by_now = stream.write_all(head.as_bytes());
        open.push(stream);
    }
    assert!(open.len() > 400, "{}", open.len());
    // Some for the command itself.
    open.truncate(open.len() - 20);
    for _ in 0..3 {
        let said = world.command(&["status"]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    record(&world, "still");
}

fn resident_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn readers_that_do_not_read_hold_little_memory_and_miss_nothing() {
    let world = World::new();
    let daemon = world.start();
    let begin = head(&world);
    for _ in 0..150 {
        let body = json!({ "message": { "type": "agent.status", "agent_id": "feat-a",
            "payload": { "status": "y".repeat(60_000), "modified_files": [], "message": null } } });
        assert_eq!(ask(&world, "feat-a", "POST /publish-post", &body).0, 200);
    }
    let before = resident_kib(daemon.pid());
    // Each of them reads from the store what has been told already.
    let mut deaf: Vec<Reader> = (0..20).map(|_| Reader::after(&world, begin)).collect();
    let mut reads = Reader::after(&world, begin);
    assert_eq!(reads.take(150).len(), 150, "which gives the others as much time");
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB for twenty readers of nine megabytes");
    for reader in &mut deaf {
        let mut large = 0;
        for at in 1.. {
            let event = reader.next().unwrap();
            assert_eq!(event.id, begin + at);
            large += usize::from(event.data.to_string().len() > 50_000);
            if large == 150 {
                break;
            }
        }
    }
}

#[test]
fn a_kind_that_no_event_has_is_refused() {
    let world = World::new();
    let _daemon = world.start();
    for (kinds, status) in
        [("nope", 400), ("recorded,nope", 400), ("task_delegated,approval_asked", 200), ("", 200)]
    {
        assert_eq!(Reader::open(&world, &format!("?kinds={kinds}"), "").status, status, "{kinds}");
    }
}
