//! A client of Agent Protocol's door.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::loopback_client::{Answer, Http};
use crate::support::{Daemon, World, eventually};

impl Http {
    pub(crate) fn delete(self, path: &str) -> Answer {
        self.send(&format!("DELETE {path}"), &[], b"")
    }

    pub(crate) fn announce(self, id: &str) -> Value {
        let answer = self.post("/agents/announce", &json!({ "id": id, "tool": "x" }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    pub(crate) fn claim(self, path: &str, agent: &str) -> Answer {
        self.post("/resources/claim", &json!({ "path": path, "agent_id": agent }))
    }

    pub(crate) fn count(self) -> u64 {
        self.get("/status").json()["event_count"].as_u64().unwrap()
    }

    /// A stream of events, from now on.
    pub(crate) fn stream(self, query: &str) -> Stream {
        let mut connection = self.connect();
        let head = format!("GET /events/stream{query} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port);
        connection.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Stream { reader, head: head.to_ascii_lowercase() }
    }
}

pub(crate) struct Stream {
    pub(crate) reader: BufReader<TcpStream>,
    pub(crate) head: String,
}

impl Stream {
    /// The next chunk, which is a whole frame.
    pub(crate) fn frame(&mut self) -> Option<String> {
        let mut size = String::new();
        if self.reader.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|it| *it > 0)?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(String::from_utf8(chunk).unwrap())
    }

    pub(crate) fn event(&mut self) -> Value {
        let frame = self.frame().expect("an event");
        let data =
            frame.lines().find_map(|it| it.strip_prefix("data: ")).unwrap_or_else(|| panic!("{frame}"));
        serde_json::from_str(data).unwrap()
    }
}

pub(crate) fn started() -> (World, Daemon, Http) {
    let world = World::new();
    world.write("src/a.ts", "export const a = 1\n");
    let daemon = world.start();
    let http = Http::agent_protocol(&world);
    (world, daemon, http)
}

/// Waits until changes of files are seen.
pub(crate) fn watched(world: &World) {
    eventually("the first look", || {
        world
            .command(&["graph", "status", "--json"])
            .output()
            .unwrap()
            .stdout
            .windows(10)
            .any(|it| it == b"\"complete\"")
    });
}
