//! WebSockets over loopback: a client of our own, and the least that answers one.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::broadcast;

use crate::http::{Server, publish_port};

/// The word by which this executable is started as the echo over WebSockets.
pub(crate) const ECHO_ROLE: &str = "floor-websocket";

/// The key of every handshake here; nobody looks at its answer.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A text in one frame.
const TEXT: u8 = 0x81;

/// What a message begins with that the echo sends to all, and not back.
pub(crate) const TO_ALL: &[u8] = b"to all: ";

/// Sends each message back as it came, or to everybody. Looks at nothing but lengths and masks. Writes down its port.
pub(crate) fn serve_echo(port_file: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        publish_port(port_file, &listener)?;
        let (events, _) = broadcast::channel(1_024);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (socket, events) = (Socket { stream, buffer: Vec::new() }, events.clone());
            // One that has ended needs no word.
            tokio::spawn(async move { echo(socket, events).await.ok() });
        }
    })
}

async fn echo(mut socket: Socket, events: broadcast::Sender<Arc<[u8]>>) -> Result<()> {
    socket.head().await?;
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    socket.stream.write_all(answer).await?;
    let mut all = events.subscribe();
    loop {
        let text = tokio::select! {
            event = all.recv() => event?,
            text = socket.message() => Arc::from(text?),
        };
        if text.starts_with(TO_ALL) {
            // This connection is one of those that hear of it.
            events.send(text[TO_ALL.len()..].into())?;
            continue;
        }
        let mut frame = head(text.len(), 0);
        frame.extend_from_slice(&text);
        socket.stream.write_all(&frame).await?;
    }
}

/// One end of a connection.
pub(crate) struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Socket {
    /// Connects, and shakes hands.
    pub(crate) async fn to(server: Server) -> Result<Self> {
        Self::at(server, "/ws").await
    }

    /// The same at another path.
    pub(crate) async fn at(server: Server, path: &str) -> Result<Self> {
        Self::over(TcpStream::connect(server.at).await?, path).await
    }

    /// The same with so little room for what comes that whoever sends has to wait soon.
    pub(crate) async fn narrow(server: Server) -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 << 10)?;
        Self::over(socket.connect(server.at).await?, "/ws").await
    }

    async fn over(stream: TcpStream, path: &str) -> Result<Self> {
        stream.set_nodelay(true)?;
        let port = stream.peer_addr()?.port();
        let mut socket = Self { stream, buffer: Vec::new() };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        socket.stream.write_all(request.as_bytes()).await?;
        let head = socket.head().await?;
        ensure!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        Ok(socket)
    }

    /// What is under it; everything that came has been taken.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends a request, and takes what answers it; events that come before it are passed over.
    pub(crate) async fn ask(&mut self, id: &str, method: &str, params: &Value) -> Result<Value> {
        self.send(&frame(&request(id, method, params))).await?;
        loop {
            let message: Value = serde_json::from_slice(&self.message().await?)?;
            if message["id"] == id {
                ensure!(message["error"].is_null(), "{method}: {message}");
                return Ok(message["result"].clone());
            }
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some((at, len, masked)) = self.whole() {
                let mut text = self.buffer[at..at + len].to_vec();
                if masked {
                    let key: [u8; 4] = self.buffer[at - 4..at].try_into()?;
                    text.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
                }
                self.buffer.drain(..at + len);
                return Ok(text);
            }
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection ended");
        }
    }

    /// Where the next frame's payload is, how long, and whether behind a mask, once all of it is there.
    fn whole(&self) -> Option<(usize, usize, bool)> {
        let [_, second, rest @ ..] = &self.buffer[..] else { return None };
        let masked = second & 0x80 != 0;
        let (wide, len) = match second & 0x7f {
            126 => (2, usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?))),
            127 => (8, usize::try_from(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?)).ok()?),
            len => (0, usize::from(len)),
        };
        let at = 2 + wide + if masked { 4 } else { 0 };
        (self.buffer.len() >= at + len).then_some((at, len, masked))
    }

    /// The head of a request or an answer.
    async fn head(&mut self) -> Result<Vec<u8>> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                return Ok(self.buffer.drain(..end + 4).collect());
            }
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection ended");
        }
    }
}

/// A request's text.
pub(crate) fn request(id: &str, method: &str, params: &Value) -> String {
    serde_json::json!({ "id": id, "method": method, "params": params }).to_string()
}

/// A client's frame, whose mask changes nothing.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let mut frame = head(text.len(), 0x80);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

fn head(len: usize, masked: u8) -> Vec<u8> {
    match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short @ ..126), _) => vec![TEXT, masked | short],
        (_, Ok(long)) => [&[TEXT, masked | 126][..], &long.to_be_bytes()].concat(),
        _ => [&[TEXT, masked | 127][..], &(len as u64).to_be_bytes()].concat(),
    }
}
