//! One event to many readers of a stream: how long until each has it, and whether all do.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast};
use tokio::task::LocalSet;

use crate::http::{Line, Request, Server, publish_port, run};

/// The word by which this executable is started as the least that could tell many readers.
pub(crate) const FANOUT_ROLE: &str = "floor-fanout";

/// How long all readers may take for one event.
const EVENT_TIME_MAX: Duration = Duration::from_secs(30);

/// What is looked for in a stream: it is in each event once.
pub(crate) const MARK: &str = "bench.tick";

/// What an event of the door takes as it travels, for the floor to send as many bytes.
const FRAME: &str = "data: {\"id\":\"evt_123456789012\",\"timestamp\":1795296143000,\"agent_id\":\"bench-0\",\"action\":\"bench.tick\",\"resource\":null,\"task_id\":null,\"before_hash\":null,\"after_hash\":null,\"metadata\":{}}\n\n";

/// Answers a GET with a stream, and a POST by sending one event to all streams. Reads no request beyond its first word.
pub(crate) fn serve(port_file: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        publish_port(port_file, &listener)?;
        let (events, _) = broadcast::channel::<()>(1_024);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(talk(stream, events.clone()));
        }
    })
}

async fn talk(mut stream: TcpStream, events: broadcast::Sender<()>) -> Result<()> {
    let mut block = [0; 4_096];
    loop {
        let read = stream.read(&mut block).await?;
        if block[..read].starts_with(b"GET") {
            let mut ticks = events.subscribe();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await?;
            while ticks.recv().await.is_ok() {
                stream.write_all(FRAME.as_bytes()).await?;
            }
        }
        if read == 0 {
            return Ok(());
        }
        // Nobody may be listening.
        let _ = events.send(());
        stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// When each event was sent, and what all readers have had of it.
pub(crate) struct Course {
    sent: Vec<Instant>,
    /// Milliseconds from sending an event to a reader's having it.
    took: Vec<f64>,
    readers: usize,
    all_have: Rc<Notify>,
}

impl Course {
    /// With so many readers.
    pub(crate) fn new(readers: usize) -> Rc<RefCell<Self>> {
        let all_have = Rc::new(Notify::new());
        Rc::new(RefCell::new(Self { sent: Vec::new(), took: Vec::new(), readers, all_have }))
    }

    /// What each reader took for each event, in order of time.
    pub(crate) fn taken(course: &RefCell<Self>) -> Vec<f64> {
        let mut took = std::mem::take(&mut course.borrow_mut().took);
        took.sort_by(f64::total_cmp);
        took
    }

    /// Sends an event, and waits until all readers have it.
    pub(crate) async fn event(course: &RefCell<Self>, send: impl Future<Output = Result<()>>) -> Result<()> {
        let all_have = course.borrow().all_have.clone();
        course.borrow_mut().sent.push(Instant::now());
        send.await?;
        let all = tokio::time::timeout(EVENT_TIME_MAX, all_have.notified()).await;
        all.map_err(|_| anyhow!("an event was lost: {} have it", course.borrow().took.len()))
    }
}

/// Sends events, each once all readers have the one before; returns how long each reader took for each, in order of
/// time.
pub(crate) fn fan_out(
    server: Server,
    readers: usize,
    events: usize,
    stream: &Request,
    tick: &Request,
) -> Result<Vec<f64>> {
    let course = run(async {
        let (course, local) = (Course::new(readers), LocalSet::new());
        for _ in 0..readers {
            let reader = Line::to(server).await?.begin(stream).await?;
            local.spawn_local(read_on(reader, course.clone(), MARK));
        }
        let publish = async {
            let mut line = Line::to(server).await?;
            for _ in 0..events {
                Course::event(&course, async { line.ask(tick).await.map(drop) }).await?;
            }
            anyhow::Ok(())
        };
        local.run_until(publish).await?;
        Ok(course)
    })?;
    let took = Course::taken(&course);
    ensure!(took.len() == readers * events, "{} of {} arrived", took.len(), readers * events);
    Ok(took)
}

/// Takes note of each event in a stream, by a mark that it has once.
pub(crate) async fn read_on(
    mut stream: TcpStream,
    course: Rc<RefCell<Course>>,
    mark: &'static str,
) -> Result<()> {
    let finder = memchr::memmem::Finder::new(mark);
    let (mut seen, mut block, mut kept) = (0, vec![0; 16 << 10], 0);
    loop {
        let read = stream.read(&mut block[kept..]).await?;
        ensure!(read > 0, "the stream ended");
        let whole = kept + read;
        let mut from = 0;
        while let Some(at) = finder.find(&block[from..whole]) {
            from += at + mark.len();
            let mut course = course.borrow_mut();
            let took = course.sent.get(seen).map_or(f64::NAN, |sent| sent.elapsed().as_secs_f64() * 1e3);
            course.took.push(took);
            seen += 1;
            if course.took.len() == course.readers * course.sent.len() {
                course.all_have.notify_one();
            }
        }
        // The mark may have been cut in two.
        kept = (whole - from).min(mark.len() - 1);
        block.copy_within(whole - kept..whole, 0);
    }
}
