//! A client of the A6s door: frames written and read byte by byte, with the habits of each editor.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::World;
use crate::support::loopback_client::Http;

/// The configuration that opens the door.
pub(crate) const OPEN: &str = "[a6s]\nenabled = true\n";

/// The key of all handshakes here, and its answer, as RFC 6455 has them.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;

/// A world whose daemon has the door open.
pub(crate) fn world() -> World {
    let world = World::new();
    world.configure(OPEN);
    world
}

/// The request by which every public client opens its connection.
pub(crate) fn handshake(port: u16) -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// A connection.
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    asked: u64,
    /// Messages that came while another one was waited for.
    pub(crate) aside: Vec<Value>,
}

/// A frame as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its first byte: whether it is whole, and what it is.
    pub(crate) first: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.first, TEXT, "a message is one text frame: {self:?}");
        serde_json::from_slice(&self.payload).unwrap()
    }

    /// The code of a close frame, which has nothing else.
    pub(crate) fn code(&self) -> u16 {
        assert_eq!((self.first, self.payload.len()), (CLOSE, 2), "{self:?}");
        u16::from_be_bytes([self.payload[0], self.payload[1]])
    }
}

impl Socket {
    pub(crate) fn open(door: Http) -> Self {
        let (socket, head) = Self::with_head(door, handshake(door.port).as_bytes());
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        socket
    }

    /// The same with a request of one's own, and the head that answers it.
    pub(crate) fn with_head(door: Http, request: &[u8]) -> (Self, String) {
        let mut stream = door.connect();
        stream.write_all(request).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (Self { stream, asked: 0, aside: Vec::new() }, String::from_utf8(head).unwrap())
    }

    /// Sends a frame behind a mask.
    pub(crate) fn send(&mut self, first: u8, payload: &[u8]) {
        self.stream.write_all(&frame(first, payload)).unwrap();
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.send(TEXT, text.as_bytes());
    }

    /// The next frame.
    pub(crate) fn frame(&mut self) -> Frame {
        self.try_frame().unwrap_or_else(|err| panic!("no frame: {err}"))
    }

    pub(crate) fn try_frame(&mut self) -> std::io::Result<Frame> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head)?;
        assert_eq!(head[1] & 0x80, 0, "a server's frame has no mask");
        let len = match head[1] {
            126 => {
                let mut len = [0; 2];
                self.stream.read_exact(&mut len)?;
                u64::from(u16::from_be_bytes(len))
            }
            127 => {
                let mut len = [0; 8];
                self.stream.read_exact(&mut len)?;
                u64::from_be_bytes(len)
            }
            len => u64::from(len),
        };
        let mut payload = vec![0; usize::try_from(len).unwrap()];
        self.stream.read_exact(&mut payload)?;
        Ok(Frame { first: head[0], payload })
    }

    /// The next message.
    pub(crate) fn message(&mut self) -> Value {
        self.frame().json()
    }

    /// Sends a request without waiting for its answer; its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> String {
        self.asked += 1;
        let id = format!("req_{}", self.asked);
        self.text(&json!({ "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The answer to a request; what else comes meanwhile is put aside.
    pub(crate) fn answer(&mut self, id: &str) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
            self.aside.push(message);
        }
    }

    /// Asks, and takes the whole answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(&id)
    }

    /// Asks, and takes the result, which has to be one.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    /// Asks, and takes the error, which has to be one.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> String {
        let answer = self.ask(method, params);
        assert!(answer.get("result").is_none(), "{method} {params}: {answer}");
        let error = answer["error"].as_str().unwrap().to_owned();
        assert!(!error.is_empty());
        error
    }

    /// Whether the door still answers here.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.result("agents.list", &json!({})).is_array()
    }

    /// Reads the rest of the connection until it ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ended = self.stream.read_to_end(&mut rest);
        rest
    }
}

/// A client's frame. A large one has a mask that changes nothing: this is built without optimisation.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = if payload.len() > 1 << 20 { [0; 4] } else { [0x1f, 0x2e, 0x3d, 0x4c] };
    let mut frame = head(first, 0x80, payload.len() as u64);
    frame.extend_from_slice(&mask);
    if mask == [0; 4] {
        frame.extend_from_slice(payload);
    } else {
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    }
    frame
}

/// A frame's head without a mask's key.
pub(crate) fn head(first: u8, masked: u8, len: u64) -> Vec<u8> {
    let mut head = vec![first];
    match len {
        0..126 => head.push(masked | u8::try_from(len).unwrap()),
        126..0x1_0000 => {
            head.push(masked | 126);
            head.extend_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
        }
        _ => {
            head.push(masked | 127);
            head.extend_from_slice(&len.to_be_bytes());
        }
    }
    head
}
