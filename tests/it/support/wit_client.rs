//! A wit client of our own making: HTTP over a Unix socket, written and read byte by byte.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Connection, World};

/// An answer over HTTP.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|err| panic!("{err}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// Reads one answer.
    pub(crate) fn read(from: &mut impl io::Read, to_head: bool) -> io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            from.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let mut answer = Self { status, headers: lines.map(header).collect(), body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |it| it.parse().unwrap());
        if !to_head && status != 100 {
            answer.body = vec![0; length];
            from.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }
}

/// A client of one socket.
#[derive(Clone, Debug)]
pub(crate) struct Wit {
    pub(crate) socket: PathBuf,
}

/// A world whose repository has a folder `.wit`, so that a daemon opens the door there.
pub(crate) fn world() -> World {
    let world = World::new();
    std::fs::create_dir(world.repo().join(".wit")).unwrap();
    world
}

impl Wit {
    pub(crate) fn in_tree(top: &Path) -> Self {
        Self { socket: top.join(".wit/daemon.sock") }
    }

    pub(crate) fn of(world: &World) -> Self {
        Self::in_tree(&world.repo())
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(&self.socket).unwrap_or_else(|err| panic!("{}: {err}", self.socket.display()))
    }

    /// Sends bytes on a connection of their own and reads one answer.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.write_all(request).unwrap();
        Answer::read(&mut connection, request.starts_with(b"HEAD")).unwrap()
    }

    /// The same for a request with a body.
    pub(crate) fn http(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.raw(&request(line, headers, body))
    }

    /// A whole response to a method.
    pub(crate) fn call(&self, method: &str, params: Option<&Value>) -> Value {
        let mut envelope = json!({ "jsonrpc": "2.0", "witVersion": "1", "id": "it", "method": method });
        if let Some(params) = params {
            envelope["params"] = params.clone();
        }
        let answer =
            self.http("POST /rpc", &[("Content-Type", "application/json")], envelope.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{method} {params:?}: {answer:?}");
        let response = answer.json();
        assert_eq!(
            (&response["jsonrpc"], &response["witVersion"], &response["id"]),
            (&json!("2.0"), &json!("1"), &json!("it"))
        );
        response
    }

    /// The result of a method that must work.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let response = self.call(method, Some(&params));
        assert!(response.get("error").is_none(), "{method} {params}: {response}");
        response["result"].clone()
    }

    /// The error of a method that must not.
    pub(crate) fn refused(&self, method: &str, params: Value) -> Value {
        let response = self.call(method, Some(&params));
        assert!(response.get("result").is_none(), "{method} {params}: {response}");
        response["error"].clone()
    }

    /// The word of that error.
    pub(crate) fn token(&self, method: &str, params: Value) -> String {
        self.refused(method, params)["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn answers(&self) -> bool {
        Connection::to(&self.socket).is_ok() && self.ask("ping", json!({})) == "pong"
    }
}

/// The bytes of a request with a body.
pub(crate) fn request(line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    let mut bytes = format!("{head}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Returns git's output, run in a folder.
pub(crate) fn git(at: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@t.invalid"])
        .args(args)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
