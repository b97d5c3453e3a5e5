//! The doors over loopback HTTP, and peers that send too much, too slowly, or nothing at all.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use provost::base::limits::{STREAM_BYTES_MAX, STREAM_EVENTS_MAX, STREAM_READERS_MAX};
use provost::protocols::loopback::{Reply, stream};
use provost::transport::sse::{CutOff, EventSender, KeepAlive, Readers};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::World;
use crate::support::loopback_client::{Answer, Http};

/// Both doors, a path at each that takes bodies, and the largest body.
fn doors(world: &World) -> [(Http, &'static str, usize); 2] {
    [(Http::agent_protocol(world), "/agents/announce", 1 << 20), (Http::broker(world), "/publish", 2 << 20)]
}

/// Reads until the door closes the connection; waits for twenty seconds at most.
fn rest(connection: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match connection.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(err) if err.kind() == ErrorKind::ConnectionReset => {}
        Err(err) => panic!("not closed: {err}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn ten_thousand_idle_connections_keep_nobody_from_an_answer() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let world = World::new();
    let _daemon = world.start();
    for (door, ..) in doors(&world) {
        let mut kept = door.connect();
        let ask = door.bytes("GET /nowhere", &[("Host", "127.0.0.1:PORT")], b"");
        let mut crowd = Vec::new();
        for number in 0..10_000 {
            crowd.push(door.connect());
            if number % 1_000 == 999 {
                assert_eq!(door.get("/nowhere").status, 404, "after {number}");
            }
            if number % 500 == 499 {
                // Who asks now and then is not among those that were silent for longest.
                kept.write_all(&ask).unwrap();
                assert_eq!(Answer::read(&mut kept, false).unwrap().status, 404);
            }
        }
        // The oldest had to go, the newest are there.
        assert_eq!(rest(&mut crowd[0]), "");
        let newest = crowd.last_mut().unwrap();
        newest.write_all(&ask).unwrap();
        assert_eq!(Answer::read(newest, false).unwrap().status, 404);
    }
}

#[test]
fn heads_bodies_and_answers_that_stop_half_way_end_by_themselves() {
    let world = World::new();
    let _daemon = world.start();
    let mut waiting = Vec::new();
    for (door, path, _) in doors(&world) {
        let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", door.port);
        let body = format!("{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{");
        let chunked =
            format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n");
        for (said, answered) in
            [("", false), ("GET /stat", false), (&*head, false), (&*body, true), (&*chunked, true)]
        {
            let mut connection = door.connect();
            connection.write_all(said.as_bytes()).unwrap();
            waiting.push((format!("{path} {said:?}"), connection, answered));
        }
        // A head that comes a byte at a time is none that goes on.
        let (mut drip, drop_by_drop) = (door.connect(), door.connect());
        std::thread::spawn(move || {
            while drip.write_all(b"X").is_ok() {
                // tidy: sleeps because it is a peer whose slowness is tried
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        waiting.push((format!("{path}, silent"), drop_by_drop, false));
    }
    for (what, mut connection, answered) in waiting {
        let said = rest(&mut connection);
        assert_eq!(said.contains(" 408 "), answered, "{what}: {said}");
        assert!(
            answered || said.is_empty() || said.contains(" 408 ") || said.contains(" 400 "),
            "{what}: {said}"
        );
    }
    assert!(doors(&world).iter().all(|(door, ..)| door.get("/nowhere").status == 404));
}

#[test]
fn who_asks_and_never_reads_is_cut_off_and_costs_nobody_an_answer() {
    let world = World::new();
    let _daemon = world.start();
    for (door, ..) in doors(&world) {
        let ask = door.bytes("GET /status", &[("Host", "127.0.0.1:PORT")], b"").repeat(100);
        let mut deaf = door.connect();
        deaf.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        // Its answers fill what the kernel holds, then it is waited for, then it is closed.
        let ended = (0..100_000).find_map(|_| deaf.write_all(&ask).err()).expect("an end");
        assert!(matches!(ended.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{ended}");
        assert_eq!(door.get("/nowhere").status, 404);
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_held() {
    let world = World::new();
    let _daemon = world.start();
    for (door, path, most) in doors(&world) {
        let line = format!("POST {path}");
        let json = ("Content-Type", "application/json");
        // Announced: the answer comes before the body does.
        let head = format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            door.port,
            most + 1
        );
        assert_eq!(door.raw(head.as_bytes()).status, 413);
        for length in ["18446744073709551615", "99999999999999999999", "-1", "1e3", "0x10", "1,1"] {
            let answer = door.send(&line, &[json, ("Content-Length", length)], b"");
            assert!(matches!(answer.status, 400 | 413 | 431), "{length}: {answer:?}");
        }
        // Not announced, in pieces: as soon as it is too much.
        let mut connection = door.connect();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            door.port
        );
        connection.write_all(head.as_bytes()).unwrap();
        let piece = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        let pieces = (0..1_000).take_while(|_| connection.write_all(&piece).is_ok()).count();
        assert!(pieces < 1_000, "it went on");
        let mut status = [0; 12];
        // What was sent on may have reset the connection before the answer was read.
        if connection.read_exact(&mut status).is_ok() {
            assert_eq!(&status, b"HTTP/1.1 413");
        }
        // As large as may be, it is read, and found to be nothing.
        let answer = door.send(&line, &[json], &vec![b' '; most]);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(door.get("/nowhere").status, 404);
    }
}

#[test]
fn what_is_no_http_of_ours_is_refused_and_closed() {
    let world = World::new();
    let _daemon = world.start();
    for (door, path, _) in doors(&world) {
        let host = format!("Host: 127.0.0.1:{}\r\n", door.port);
        let long = "x".repeat(40_000);
        let many = "A: b\r\n".repeat(200);
        for request in [
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03".to_owned() + &"\0".repeat(500),
            "HELO localhost\r\n\r\n".to_owned(),
            format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
            format!("GET / HTTP/1.1\r\n{host}X: {long}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{host}{many}\r\n"),
            format!("GET / HTTP/1.1\r\n{host}X\0Y: z\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{host}X : z\r\n\r\n"),
            format!("POST {path} HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            format!("POST {path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
            format!(
                "POST {path} HTTP/1.1\r\n{host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
            ),
        ] {
            let mut connection = door.connect();
            connection.write_all(request.as_bytes()).unwrap();
            let said = rest(&mut connection);
            let status = said.split(' ').nth(1).unwrap_or("none");
            let refused = matches!(status, "400" | "411" | "414" | "431" | "501" | "none");
            let shown: String = request.chars().take(60).collect();
            assert!(refused, "{shown:?}: {said}");
        }
        assert_eq!(door.get("/nowhere").status, 404);
    }
}

#[test]
fn requests_in_a_row_are_answered_in_a_row_until_somebody_says_close() {
    let world = World::new();
    let _daemon = world.start();
    for (door, ..) in doors(&world) {
        let own = ("Host", "127.0.0.1:PORT");
        let mut connection = door.connect();
        let many = [
            door.bytes("GET /status", &[own], b""),
            door.bytes("GET /nowhere", &[own], b""),
            door.bytes("GET /status", &[own, ("Connection", "close")], b""),
            door.bytes("GET /nowhere", &[own], b""),
        ];
        connection.write_all(&many.concat()).unwrap();
        for expected in [200, 404, 200] {
            let answer = Answer::read(&mut connection, false).unwrap();
            assert_eq!(answer.status, expected);
            assert!(
                answer.header("content-length").is_some() && answer.header("transfer-encoding").is_none()
            );
        }
        assert_eq!(rest(&mut connection), "", "nothing after the last");
        // A body that nobody asked for is not taken for the next request.
        let smuggled = format!("GET /status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", door.port);
        let mut connection = door.connect();
        let with_body = door.bytes("POST /nowhere", &[own, ("Connection", "close")], smuggled.as_bytes());
        connection.write_all(&with_body).unwrap();
        let said = rest(&mut connection);
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{said}");
        // A refused request ends its connection: what follows it is not looked at.
        let mut connection = door.connect();
        let foreign = door.bytes("GET /status", &[("Host", "evil.example")], b"");
        connection.write_all(&[foreign, many[0].clone()].concat()).unwrap();
        let said = rest(&mut connection);
        assert!(said.starts_with("HTTP/1.1 403 ") && said.matches("HTTP/1.1 ").count() == 1, "{said}");
    }
}

fn frame(len: usize) -> Bytes {
    Bytes::from(vec![b'x'; len])
}

/// One reader more, as the body of its answer.
fn enter(readers: &Readers, every: Option<Duration>) -> Option<(EventSender, Reply)> {
    readers.enter(every.map(KeepAlive::comment)).map(|(sender, events)| (sender, stream(events).into_body()))
}

#[tokio::test]
async fn a_reader_that_does_not_keep_up_is_cut_off_after_so_many_events_or_bytes() {
    let readers = Readers::default();
    let (sender, stream) = enter(&readers, None).unwrap();
    for _ in 0..STREAM_EVENTS_MAX {
        sender.send(frame(10)).unwrap();
    }
    assert_eq!(sender.send(frame(10)), Err(CutOff::TooSlow));
    drop(sender);
    let all = stream.collect().await.unwrap().to_bytes();
    assert_eq!(all.len(), STREAM_EVENTS_MAX * 10, "what was in the queue still comes, then the end");

    let (sender, mut stream) = enter(&readers, None).unwrap();
    sender.send(frame(STREAM_BYTES_MAX * 2)).expect("one alone may be of any size");
    assert_eq!(sender.send(frame(1)), Err(CutOff::TooSlow));
    assert_eq!(stream.frame().await.unwrap().unwrap().into_data().unwrap().len(), STREAM_BYTES_MAX * 2);

    let (sender, mut stream) = enter(&readers, None).unwrap();
    for _ in 0..10 * STREAM_EVENTS_MAX {
        sender.send(frame(1 << 16)).unwrap();
        stream.frame().await.unwrap().unwrap();
    }
    drop(stream);
    assert_eq!(sender.send(frame(1)), Err(CutOff::Gone));
    sender.gone().await;
}

#[tokio::test]
async fn there_are_so_many_readers_and_one_that_goes_makes_room() {
    let readers = Readers::default();
    let mut all: Vec<_> = (0..STREAM_READERS_MAX).map(|_| enter(&readers, None).unwrap()).collect();
    assert!(enter(&readers, None).is_none());
    let (_sender, stream) = all.pop().unwrap();
    drop(stream);
    assert!(enter(&readers, None).is_some());
}

#[tokio::test]
async fn a_comment_comes_into_a_silence_and_never_before_the_first_event() {
    let every = Duration::from_millis(20);
    let (sender, mut stream) = enter(&Readers::default(), Some(every)).unwrap();
    let silence = tokio::time::timeout(10 * every, stream.frame()).await;
    assert!(silence.is_err(), "a reader that waits for its first event reads nothing else");
    sender.send(Bytes::from_static(b"data: {}\n\n")).unwrap();
    assert_eq!(stream.frame().await.unwrap().unwrap().into_data().unwrap(), "data: {}\n\n");
    for _ in 0..3 {
        assert_eq!(stream.frame().await.unwrap().unwrap().into_data().unwrap(), ":\n\n");
    }
}
