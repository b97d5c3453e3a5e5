//! The load generator: closed loops over many connections on one thread, with lines made beforehand.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

/// One line to send, and what its answer has to be.
pub(crate) struct Shot {
    pub(crate) line: Vec<u8>,
    pub(crate) wanted: Wanted,
}

/// What an answer has to be, so that nothing is measured that was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// An empty line.
    Nothing,
    /// A message of this type.
    Message(&'static str),
}

impl Shot {
    /// A line that is answered with an empty one.
    pub(crate) fn quiet(line: Vec<u8>) -> Self {
        Self { line, wanted: Wanted::Nothing }
    }

    /// A line that is answered with a message.
    pub(crate) fn answered(line: Vec<u8>, with: &'static str) -> Self {
        Self { line, wanted: Wanted::Message(with) }
    }
}

/// Each magazine goes over a connection of its own, a line at a time; the first line of each opens the connection
/// and is not measured. Returns how long the rest took.
pub(crate) fn persistent(socket: &Path, magazines: Vec<Vec<Shot>>) -> Result<Duration> {
    run(async move {
        let mut ready = Vec::new();
        for magazine in magazines {
            let mut stream = UnixStream::connect(socket).await?;
            let mut shots = magazine.into_iter();
            fire(&mut stream, &shots.next().context("an empty magazine")?).await?;
            ready.push((stream, shots));
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (mut stream, shots) in ready {
            tasks.spawn(async move {
                for shot in shots {
                    fire(&mut stream, &shot).await?;
                }
                anyhow::Ok(())
            });
        }
        join(tasks).await?;
        Ok(begun.elapsed())
    })
}

/// As today's clients do: a connection for each line. The first line of each magazine is not measured here either.
pub(crate) fn connecting(socket: &Path, magazines: Vec<Vec<Shot>>) -> Result<Duration> {
    run(async move {
        let mut ready = Vec::new();
        for magazine in magazines {
            let mut shots = magazine.into_iter();
            let first = shots.next().context("an empty magazine")?;
            fire(&mut UnixStream::connect(socket).await?, &first).await?;
            ready.push(shots);
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for shots in ready {
            let socket = socket.to_owned();
            tasks.spawn(async move {
                for shot in shots {
                    let mut stream = UnixStream::connect(&socket).await?;
                    fire(&mut stream, &shot).await?;
                }
                anyhow::Ok(())
            });
        }
        join(tasks).await?;
        Ok(begun.elapsed())
    })
}

fn run(work: impl Future<Output = Result<Duration>>) -> Result<Duration> {
    tokio::runtime::Builder::new_current_thread().enable_io().build()?.block_on(work)
}

async fn join(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn fire(stream: &mut UnixStream, shot: &Shot) -> Result<()> {
    stream.write_all(&shot.line).await?;
    let mut answer = [0; 4096];
    let mut read = stream.read(&mut answer).await?;
    ensure!(read > 0, "the connection ended without an answer");
    match shot.wanted {
        Wanted::Nothing => {
            ensure!(answer[..read] == *b"\n", "unexpected: {}", String::from_utf8_lossy(&answer[..read]));
        }
        Wanted::Message(kind) => {
            let wanted = format!("{{\"msg_type\":\"{kind}\"");
            let begins = answer[..read].starts_with(wanted.as_bytes());
            ensure!(begins, "not {kind}: {}", String::from_utf8_lossy(&answer[..read]));
            while answer[read - 1] != b'\n' {
                read = stream.read(&mut answer).await?;
                ensure!(read > 0, "the connection ended within an answer");
            }
        }
    }
    Ok(())
}
