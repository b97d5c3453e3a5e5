//! HTTP over loopback TCP: requests made beforehand, sent in closed loops by one thread; and the least that answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::machine::processor_ns;
use crate::table::{Rounds, Table, Unit};
use crate::world::Helper;

/// The word by which this executable is started as the pong over TCP.
pub(crate) const PONG_ROLE: &str = "floor-http";

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Answers each request alike, over the HTTP library that the daemon uses. Looks at nothing. Writes down its port.
pub(crate) fn serve_pong(port_file: &Path) -> Result<()> {
    const PONG: &str = r#"{"ok":true}"#;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        publish_port(port_file, &listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answer = hyper::service::service_fn(|request: hyper::Request<hyper::body::Incoming>| async {
                http_body_util::BodyExt::collect(request.into_body()).await?;
                let body = http_body_util::Full::new(axum::body::Bytes::from_static(PONG.as_bytes()));
                Ok::<_, hyper::Error>(hyper::Response::new(body))
            });
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, answer));
        }
    })
}

/// Writes a listener's port where whoever has started it looks for it.
pub(crate) fn publish_port(file: &Path, listener: &TcpListener) -> Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, listener.local_addr()?.port().to_string())?;
    Ok(std::fs::rename(new, file)?)
}

/// A server of this bench's or of the product's: where it is, and its process.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    pub(crate) pid: u32,
}

impl Server {
    pub(crate) fn new(port: u16, pid: u32) -> Self {
        Self { at: (Ipv4Addr::LOCALHOST, port).into(), pid }
    }
}

/// A helper that has written its port down.
pub(crate) fn started(role: &str, port_file: &Path) -> Result<(Helper, Server)> {
    let helper = Helper::begun(role, port_file)?;
    let begun = Instant::now();
    let port = loop {
        if let Ok(text) = std::fs::read_to_string(port_file) {
            break text.parse()?;
        }
        ensure!(begun.elapsed() < Duration::from_secs(30), "{role} does not listen");
        std::thread::sleep(Duration::from_millis(1));
    };
    let server = Server::new(port, helper.0.id());
    Ok((helper, server))
}

/// A request, and the status that it has to be answered with.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    pub(crate) wanted: u16,
}

impl Request {
    pub(crate) fn get(port: u16, path: &str) -> Self {
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        Self { bytes: head.into_bytes(), wanted: 200 }
    }

    pub(crate) fn post(port: u16, path: &str, body: &str, wanted: u16) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Self { bytes: head.into_bytes(), wanted }
    }
}

/// One keep-alive connection.
pub(crate) struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Line {
    pub(crate) async fn to(server: Server) -> Result<Self> {
        let stream = TcpStream::connect(server.at).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Sends a request and returns the body of its answer.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<&[u8]> {
        self.stream.write_all(&request.bytes).await?;
        self.answer(request.wanted).await
    }

    /// Sends a request whose answer goes on; returns when its head is there.
    pub(crate) async fn begin(mut self, request: &Request) -> Result<TcpStream> {
        self.stream.write_all(&request.bytes).await?;
        loop {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection ended");
            if memchr::memmem::find(&self.buffer, b"\r\n\r\n").is_some() {
                check_status(&self.buffer, request.wanted)?;
                return Ok(self.stream);
            }
        }
    }

    async fn answer(&mut self, wanted: u16) -> Result<&[u8]> {
        self.buffer.clear();
        loop {
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the connection ended within an answer"
            );
            let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") else { continue };
            let length = content_length(&self.buffer[..end]).context("an answer without a length")?;
            ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
            let whole = end + 4 + length;
            while self.buffer.len() < whole {
                ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
            }
            check_status(&self.buffer, wanted)?;
            return Ok(&self.buffer[end + 4..whole]);
        }
    }
}

fn check_status(answer: &[u8], wanted: u16) -> Result<()> {
    let status = answer.get(9..12).and_then(|it| std::str::from_utf8(it).ok()).and_then(|it| it.parse().ok());
    ensure!(status == Some(wanted), "not {wanted}: {}", String::from_utf8_lossy(answer));
    Ok(())
}

/// Without allocating: the client shares its cores with the server.
fn content_length(head: &[u8]) -> Option<usize> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(b"content-length");
        is_it.then(|| std::str::from_utf8(&line[colon + 1..]).ok()?.trim().parse().ok()).flatten()
    })
}

/// Each magazine goes over a connection of its own, a request at a time; the first of each is not measured.
pub(crate) fn persistent(server: Server, magazines: Vec<Vec<Request>>) -> Result<Duration> {
    run(async move {
        let mut ready = Vec::new();
        for magazine in magazines {
            let mut line = Line::to(server).await?;
            let mut requests = magazine.into_iter();
            line.ask(&requests.next().context("an empty magazine")?).await?;
            ready.push((line, requests));
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (mut line, requests) in ready {
            tasks.spawn(async move {
                for request in requests {
                    line.ask(&request).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(begun.elapsed())
    })
}

/// A connection for each request.
pub(crate) fn connecting(server: Server, magazines: Vec<Vec<Request>>) -> Result<Duration> {
    run(async move {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for magazine in magazines {
            tasks.spawn(async move {
                for request in magazine {
                    Line::to(server).await?.ask(&request).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(begun.elapsed())
    })
}

/// A request for what the page shows, by the name that it goes by.
pub(crate) fn of_the_page(port: u16, path: &str) -> Request {
    let head = format!("GET {path} HTTP/1.1\r\nHost: provost.localhost:{port}\r\n\r\n");
    Request { bytes: head.into_bytes(), wanted: 200 }
}

/// Runs something on one thread.
pub(crate) fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// How requests are sent.
pub(crate) type Send = fn(Server, Vec<Vec<Request>>) -> Result<Duration>;

/// One row: requests of one kind, over so many connections, against the pong.
pub(crate) struct Cell<'a> {
    pub(crate) what: &'a str,
    pub(crate) connections: usize,
    /// Requests of one round, over all connections.
    pub(crate) requests: usize,
    pub(crate) rounds: usize,
    pub(crate) send: Send,
}

impl Cell<'_> {
    /// Measures both by turns. `make` makes the request of a connection with a number that was not used before.
    pub(crate) fn measure(
        &self,
        table: &mut Table,
        ours: Server,
        floor: Server,
        mut make: impl FnMut(usize) -> Request,
    ) -> Result<()> {
        let (mut rate, mut floor_rate) = (Rounds::default(), Rounds::default());
        let (mut cost, mut floor_cost) = (Rounds::default(), Rounds::default());
        let pong = Request::get(floor.at.port(), "/");
        for round in 0..=self.rounds {
            for is_ours in [true, false] {
                let each = self.requests / self.connections;
                let mut one = |connection| if is_ours { make(connection) } else { pong.clone() };
                let magazine = |connection| (0..=each).map(|_| one(connection)).collect::<Vec<_>>();
                let magazines: Vec<_> = (0..self.connections).map(magazine).collect();
                let server = if is_ours { ours } else { floor };
                let before = processor_ns(server.pid)?;
                let took = (self.send)(server, magazines)?;
                let used = processor_ns(server.pid)?.saturating_sub(before);
                // The first round finds everything cold.
                if round > 0 {
                    let (rate, cost) =
                        if is_ours { (&mut rate, &mut cost) } else { (&mut floor_rate, &mut floor_cost) };
                    let requests = (each * self.connections) as f64;
                    rate.push(requests / took.as_secs_f64());
                    cost.push(used as f64 / 1e3 / requests);
                }
            }
        }
        let what = format!("{}, connections: {}", self.what, self.connections);
        table.ratio(&what, Unit::PerSecond, &rate, &floor_rate)?;
        table.ratio("… server's processor time a request", Unit::Microseconds, &cost, &floor_cost)
    }
}
