//! The least that several hosts of one log could do: two round trips a batch over bare tokio-postgres, without rules, memory, proof or a
//! journal. It is what the sketch did from which Provost's turn was taken, without the sketch's toy of a core.

use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::server::{connect, runtime};

/// The tables: where the log ends, the log, and the hosts.
const TABLES: &str = "
    create table head (id int primary key, n bigint not null) with (fillfactor = 50);
    create table entry (n bigint primary key, host int not null, body text not null);
    create table host (id int primary key, beat timestamptz not null) with (fillfactor = 50);
    insert into head values (1, 0);
    insert into host select it, clock_timestamp() from generate_series(0, 2) it;";

/// The largest batch, as the engine has it.
const BATCH_MAX: usize = provost::base::limits::BATCH_MAX;

/// Makes the tables in an empty database.
pub(super) fn make_tables(server: &Path, database: &str) -> Result<()> {
    runtime()?.block_on(async { Ok(connect(server, database).await?.batch_execute(TABLES).await?) })
}

/// One of those who ask.
#[derive(Clone)]
pub(super) struct Asker(mpsc::Sender<oneshot::Sender<()>>);

impl Asker {
    /// Has something put on record.
    pub(super) async fn ask(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.0.send(reply)?;
        answer.await.map_err(|_| anyhow!("the floor's host has ended"))
    }
}

/// A host: a thread with a connection, and those who ask it.
pub(super) struct Bare {
    queue: Option<mpsc::Sender<oneshot::Sender<()>>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Bare {
    /// Starts one whose entries have so many bytes for each that asks.
    pub(super) fn start(server: &Path, database: &str, host: i32, bytes: usize) -> Result<Self> {
        let (queue, inbox) = mpsc::channel();
        let (server, database) = (server.to_owned(), database.to_owned());
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = runtime()?;
            let mut turns = runtime.block_on(Turns::begin(&server, &database, host))?;
            ready.send(())?;
            work(&runtime, &mut turns, &inbox, bytes)
        });
        if is_ready.recv().is_err() {
            thread.join().map_err(|_| anyhow!("the floor's host panicked"))??;
            return Err(anyhow!("the floor's host has ended"));
        }
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(super) fn asker(&self) -> Result<Asker> {
        self.queue.clone().map(Asker).ok_or_else(|| anyhow!("the floor's host has ended"))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.queue.take());
        // Its error was told to those who asked.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn work(
    runtime: &tokio::runtime::Runtime,
    turns: &mut Turns,
    inbox: &mpsc::Receiver<oneshot::Sender<()>>,
    bytes: usize,
) -> Result<()> {
    while let Ok(first) = inbox.recv() {
        runtime.block_on(turns.take())?;
        let mut waiting = vec![first];
        waiting.extend(inbox.try_iter().take(BATCH_MAX - 1));
        runtime.block_on(turns.commit(&"x".repeat(bytes * waiting.len())))?;
        for reply in waiting {
            // Who asks waits for the answer.
            let _ = reply.send(());
        }
    }
    Ok(())
}

/// A connection with its statements.
struct Turns {
    client: Client,
    host: i32,
    /// The last entry that this host knows.
    n: i64,
    row: Statement,
    head: Statement,
    tail: Statement,
    hosts: Statement,
    insert: Statement,
    moves: Statement,
}

impl Turns {
    async fn begin(server: &Path, database: &str, host: i32) -> Result<Self> {
        let client = connect(server, database).await?;
        client
            .batch_execute(
                "set synchronous_commit = on; set default_transaction_isolation = 'read committed'",
            )
            .await?;
        let row = client.prepare("select 1 from head where id = 1 for update").await?;
        let head = client
            .prepare("select n, (extract(epoch from clock_timestamp()) * 1000)::bigint from head")
            .await?;
        let tail =
            client.prepare("select n, host, body from entry where n > $1 order by n limit 2000").await?;
        let hosts = client.prepare("select id, (extract(epoch from beat) * 1000)::bigint from host").await?;
        let insert = client.prepare("insert into entry values ($1, $2, $3)").await?;
        let moves = client.prepare("update head set n = $1 where id = 1 and n = $2").await?;
        let n = client.query_one(&head, &[]).await?.get(0);
        Ok(Self { client, host, n, row, head, tail, hosts, insert, moves })
    }

    async fn take(&mut self) -> Result<()> {
        let it = &*self;
        let after: [&(dyn ToSql + Sync); 1] = [&it.n];
        let (begun, row, head, tail, hosts) = tokio::join!(
            it.client.batch_execute("begin"),
            it.client.query(&it.row, &[]),
            it.client.query_one(&it.head, &[]),
            it.client.query(&it.tail, &after),
            it.client.query(&it.hosts, &[]),
        );
        begun?;
        row?;
        tail?;
        hosts?;
        self.n = head?.get(0);
        Ok(())
    }

    async fn commit(&mut self, body: &str) -> Result<()> {
        let (it, next) = (&*self, self.n + 1);
        let entry: [&(dyn ToSql + Sync); 3] = [&next, &it.host, &body];
        let moves: [&(dyn ToSql + Sync); 2] = [&next, &it.n];
        let (inserted, moved, committed) = tokio::join!(
            it.client.execute(&it.insert, &entry),
            it.client.execute(&it.moves, &moves),
            it.client.batch_execute("commit"),
        );
        inserted?;
        committed?;
        anyhow::ensure!(moved? == 1, "the floor's head has moved");
        self.n = next;
        Ok(())
    }
}
