//! Heads of requests, at every door that speaks HTTP: read up to one bound, and refused beyond it.

use provost::base::limits::HTTP_HEAD_BYTES_MAX;

use crate::support::Connection;
use crate::support::loopback_client::Http;
use crate::support::wit_client::{Answer, Wit, world};

/// A request whose head has so many bytes.
fn head(line: &str, host: &str, bytes: usize) -> Vec<u8> {
    let (begin, end) = (format!("{line} HTTP/1.1\r\nHost: {host}\r\nX: "), "\r\n\r\n");
    let padding = "x".repeat(bytes - begin.len() - end.len());
    [begin, padding, end.into()].concat().into_bytes()
}

/// The status that a door answers with; none where it closes before everything is sent.
fn status(mut connection: impl std::io::Read + std::io::Write, request: &[u8], pieces: usize) -> Option<u16> {
    for piece in request.chunks(pieces) {
        // What was refused on the way may be closed already.
        if connection.write_all(piece).is_err() {
            break;
        }
    }
    Answer::read(&mut connection, false).ok().map(|it| it.status)
}

#[test]
fn a_head_within_the_bound_is_read_and_a_larger_one_refused_at_every_door() {
    let world = world();
    let _daemon = world.start();
    let own = world.own_socket();
    let wit = Wit::of(&world);
    for pieces in [usize::MAX, 1_000] {
        let tried = |bytes: usize| {
            let mut all = Vec::new();
            for door in [Http::agent_protocol(&world), Http::broker(&world)] {
                let host = format!("127.0.0.1:{}", door.port);
                all.push(status(door.connect(), &head("GET /nowhere", &host, bytes), pieces));
            }
            all.push(status(wit.connect(), &head("GET /nowhere", "l", bytes), pieces));
            all.push(status(Connection::to(&own).unwrap(), &head("GET /nowhere", "l", bytes), pieces));
            all
        };
        // The last wants its version first.
        assert_eq!(tried(HTTP_HEAD_BYTES_MAX - 1_000), [404, 404, 404, 400].map(Some), "{pieces}");
        for bytes in [HTTP_HEAD_BYTES_MAX + 1, HTTP_HEAD_BYTES_MAX + 8_000, 10 * HTTP_HEAD_BYTES_MAX] {
            let refused = |it: &Option<u16>| matches!(it, Some(431) | None);
            let said = tried(bytes);
            assert!(said.iter().all(refused), "{bytes} in pieces of {pieces}: {said:?}");
            // Where nothing is left unread, the answer arrives.
            if bytes == HTTP_HEAD_BYTES_MAX + 1 {
                assert!(said.iter().any(Option::is_some), "{said:?}");
            }
        }
    }
    assert!(wit.answers());
}
