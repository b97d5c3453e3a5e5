//! A client of the doors over loopback HTTP: requests written and answers read byte by byte.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::World;
pub(crate) use crate::support::wit_client::Answer;

/// A client of one port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http {
    pub(crate) port: u16,
}

impl Http {
    /// All of them, in a world that has them open.
    pub(crate) fn all(world: &World) -> [Self; 4] {
        [Self::agent_protocol(world), Self::broker(world), Self::a6s(world), Self::mcp(world)]
    }

    /// Of Agent Protocol's door.
    pub(crate) fn agent_protocol(world: &World) -> Self {
        Self::of(world, "agent_protocol")
    }

    /// Of the broker's door.
    pub(crate) fn broker(world: &World) -> Self {
        Self::of(world, "broker")
    }

    /// Of the A6s door, which a world has to open by its configuration.
    pub(crate) fn a6s(world: &World) -> Self {
        Self::of(world, "a6s")
    }

    /// Of the door for agents' hosts.
    pub(crate) fn mcp(world: &World) -> Self {
        Self::of(world, "mcp")
    }

    /// Of the page's door, which a world has to open by its configuration. It answers at names of its own: [`Http::look`].
    pub(crate) fn web(world: &World) -> Self {
        Self::of(world, "web")
    }

    /// Of the listener for metrics and health, which a world has to open by its configuration.
    pub(crate) fn metrics(world: &World) -> Self {
        Self::of(world, "metrics")
    }

    /// Returns the answer at a path of the page's door, under the page's own name.
    pub(crate) fn look(self, path: &str) -> Answer {
        self.bare(&format!("GET {path}"), &[("Host", "provost.localhost:PORT")], b"")
    }

    /// Of the door that `provost status` shows under this name.
    fn of(world: &World, door: &str) -> Self {
        // The doors open one after the other, and this one is not the first.
        let until = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let output = world.command(&["status", "--json"]).output().unwrap();
            let status: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|err| panic!("{err}: {output:?}"));
            let doors = status["doors"].as_array().unwrap();
            if let Some(at) = doors.iter().find(|it| it["door"] == door) {
                let address = at["address"].as_str().unwrap();
                return Self { port: address.rsplit_once(':').unwrap().1.parse().unwrap() };
            }
            assert!(std::time::Instant::now() < until, "no {door}: {status}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A connection on which nothing is waited for longer than twenty seconds.
    pub(crate) fn connect(self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends bytes on a connection of their own and reads one answer.
    pub(crate) fn raw(self, request: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.write_all(request).unwrap();
        Answer::read(&mut connection, request.starts_with(b"HEAD")).unwrap()
    }

    /// A request with these headers and no others but the length of its body.
    pub(crate) fn bare(self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.raw(&self.bytes(line, headers, body))
    }

    /// A request with these headers, to the door's own address.
    pub(crate) fn send(self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![("Host", host.as_str())];
        all.extend_from_slice(headers);
        self.bare(line, &all, body)
    }

    /// Returns the answer at a path.
    pub(crate) fn get(self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[], b"")
    }

    /// Sends JSON.
    pub(crate) fn post(self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send(&format!("POST {path}"), &[("Content-Type", "application/json")], body.as_bytes())
    }

    /// The bytes of a request. `PORT` in a header stands for the port.
    pub(crate) fn bytes(self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut head = format!("{line} HTTP/1.1\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {}\r\n", value.replace("PORT", &self.port.to_string())));
        }
        if !body.is_empty() || !line.starts_with("GET") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }
}
