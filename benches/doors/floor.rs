//! The least that could do the same work.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rusqlite::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

/// The word by which this executable is started as the echo.
pub(crate) const ECHO_ROLE: &str = "floor-echo";

/// Answers each line with an empty one, on the runtime that the daemon has too. Checks nothing.
pub(crate) fn serve_echo(socket: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = UnixListener::bind(socket)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    let lines = buffer[..read].iter().filter(|byte| **byte == b'\n').count();
                    if lines > 0 && stream.write_all(&b"\n".repeat(lines)).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
}

/// The word by which this executable is started as the pong.
pub(crate) const PONG_ROLE: &str = "floor-pong";

/// Answers each request with wit's pong, over the HTTP library that the daemon uses. Looks at nothing.
pub(crate) fn serve_pong(socket: &Path) -> Result<()> {
    const PONG: &str = r#"{"jsonrpc":"2.0","witVersion":"1","id":"1","result":"pong"}"#;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = UnixListener::bind(socket)?;
        loop {
            let (stream, _) = listener.accept().await?;
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

/// How the writer thread of [`Rows`] commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commits {
    /// Each row by itself.
    Single,
    /// Everything that waits at the moment, at once.
    Batched,
}

/// A raw SQLite file in the modes that the store has, and rows of one size.
pub(crate) struct Rows {
    db: Connection,
    body: String,
}

impl Rows {
    pub(crate) fn create(path: &Path, row_bytes: usize) -> Result<Self> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "wal_autocheckpoint", provost::base::limits::WAL_PAGES)?;
        db.execute_batch("CREATE TABLE row (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
        let mut rows = Self { db, body: "x".repeat(row_bytes) };
        // A log that still grows costs more to flush than one that is used again, which is how a store lives.
        rows.wait_for_disk(false)?;
        for _ in 0..provost::base::limits::WAL_PAGES {
            rows.commit(1)?;
        }
        Ok(rows)
    }

    /// Whether commits wait for the disk.
    pub(crate) fn wait_for_disk(&self, wait: bool) -> Result<()> {
        Ok(self.db.pragma_update(None, "synchronous", if wait { "FULL" } else { "NORMAL" })?)
    }

    pub(crate) fn commit(&mut self, rows: usize) -> Result<()> {
        let tx = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for _ in 0..rows {
            tx.prepare_cached("INSERT INTO row (body) VALUES (?1)")?.execute([&self.body])?;
        }
        Ok(tx.commit()?)
    }

    /// As many clients as asked for hand rows to one thread that writes, each waiting for its row to be on disk
    /// before the next. Returns the rows and how long that took.
    pub(crate) fn written_by(
        mut self,
        clients: usize,
        each: usize,
        commits: Commits,
    ) -> Result<(Self, Duration)> {
        self.wait_for_disk(true)?;
        let (queue, inbox) = mpsc::channel::<oneshot::Sender<()>>();
        let writer = std::thread::spawn(move || -> Result<Self> {
            while let Ok(first) = inbox.recv() {
                let mut waiting = vec![first];
                if commits == Commits::Batched {
                    waiting.extend(inbox.try_iter());
                }
                self.commit(waiting.len())?;
                for reply in waiting {
                    // Clients wait for their answers.
                    let _ = reply.send(());
                }
            }
            Ok(self)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let begun = Instant::now();
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..clients {
                let queue = queue.clone();
                tasks.spawn(async move {
                    for _ in 0..each {
                        let (reply, answer) = oneshot::channel();
                        if queue.send(reply).is_err() || answer.await.is_err() {
                            break;
                        }
                    }
                });
            }
            tasks.join_all().await;
        });
        let took = begun.elapsed();
        drop(queue);
        let rows = writer.join().map_err(|_| anyhow!("the floor's writer panicked"))??;
        Ok((rows, took))
    }
}
