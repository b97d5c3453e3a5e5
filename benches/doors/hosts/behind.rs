//! How long a host takes that was away while others have gone on: behind by more entries than it folds, it loads the rows; behind by
//! fewer, it folds them.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use provost::base::{Digest, Secret, Timestamp};
use provost::domain::{Change, Core, Outbox, State};
use provost::store::journal::Key;
use provost::store::{Behind, ENTRY_FORMAT, Head, JOURNAL_KEY, Loaded, Store};
use tokio_postgres::Client;

use super::engines::{
    Allows, Folder, Host, acquire, agent, closed_loops, must_hold, options, settings, symbol,
};
use super::server::{Server, by, connect, runtime};
use crate::table::{Rounds, Table, Unit};
use provost_test_equipment::host_signature::{Own, to_sign};
use provost_test_equipment::repo_row::{COLUMNS, RepoRow};

const ROUNDS: usize = 3;
/// The aim is below two seconds for so many.
const MANY: usize = 100_000;
/// As many as a host folds, and no more.
const FEW: usize = 2_000;
/// Locks that live meanwhile, which a host has to load.
const LOCKS: usize = 3_000;
/// Entries that are written at a time.
const BITE: usize = 5_000;

/// The database of this part.
const DATABASE: &str = "behind";

pub(super) fn measure(table: &mut Table, server: &Server) -> Result<()> {
    let database = server.database(DATABASE)?;
    let first = Folder::new()?;
    live_locks(&first, server)?;
    let joined = Folder::joining(&first, &database)?;
    let mut away = joined.store(options(Some(database), false))?;
    let mut loaded = away.load(settings()?)?;
    let secret = fs::read(first.path().join(JOURNAL_KEY))?;
    let key = Key::new(&Secret::new(secret.clone()));
    let forger = Others { secret, key, own: Own::of(&first.path())?, server, runtime: runtime()? };
    table.ratios(ROUNDS)?;
    let (mut loads, mut reads) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        let head = forger.write(MANY, &loaded)?;
        let begun = Instant::now();
        loaded = caught_up_by_loading(&mut *away, loaded.head)?;
        loads.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(loaded.head == head, "a host that has caught up is not where the others are");
        reads.push(forger.read(MANY)?);
    }
    let what =
        format!("a host that is {MANY} entries behind has all, {LOCKS} live locks, to reading the entries");
    table.ratio(&what, Unit::Milliseconds, &loads, &reads)?;
    let (mut folds, mut reads) = (Rounds::default(), Rounds::default());
    let mut core = Core::new(std::mem::replace(&mut loaded.state, State::new(settings()?)), Box::new(Allows));
    for _ in 0..ROUNDS {
        // The locks are the core's now, which has what the rows have.
        let head = forger.write_of(FEW, &loaded, core.state())?;
        let begun = Instant::now();
        loaded.head = caught_up_by_folding(&mut *away, loaded.head, &mut core)?;
        folds.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(loaded.head == head, "a host that has caught up is not where the others are");
        reads.push(forger.read(FEW)?);
    }
    let what = format!("a host that is {FEW} entries behind has folded them, to reading the entries");
    table.ratio(&what, Unit::Milliseconds, &folds, &reads)?;
    away.let_go()?;
    Ok(away.close()?)
}

/// As the engine does: the turn says that it is too far, and memory is loaded again.
fn caught_up_by_loading(store: &mut dyn Store, head: Head) -> Result<Loaded> {
    let begun = store.begin(head)?;
    ensure!(matches!(begun.behind, Behind::TooFar), "so many entries are folded");
    store.let_go()?;
    Ok(store.load(settings()?)?)
}

fn caught_up_by_folding(store: &mut dyn Store, head: Head, core: &mut Core) -> Result<Head> {
    let begun = store.begin(head)?;
    let Behind::Entries(entries) = begun.behind else { anyhow::bail!("so few entries are not folded") };
    entries.iter().for_each(|it| core.fold(it));
    store.let_go()?;
    let last = entries.last().context("there are entries")?;
    Ok(Head { n: last.n, mac: last.mac })
}

/// Has agents of a host take locks.
fn live_locks(folder: &Folder, server: &Server) -> Result<()> {
    let host = Host::start(folder.store(options(Some(by(server.dir(), DATABASE)), false))?)?;
    let (callers, mut left) = (60, LOCKS);
    while left > 0 {
        let now = left.min(callers);
        left -= now;
        let from = left;
        let take = |_, number: usize| {
            let (engine, who) = (host.engine.clone(), agent(&format!("holder-{number}")));
            let at = symbol(&format!("l{}", from + number))?;
            Ok(async move || must_hold(engine.submit(&who, acquire(&at, None)).await))
        };
        // Each asks once: the time is over when it is answered.
        closed_loops((1, now), std::time::Duration::ZERO, take)?;
    }
    Ok(())
}

/// What others write, sealed with the key and in bulk: each entry puts a lock as it is, so that rows and log say the same.
struct Others<'a> {
    secret: Vec<u8>,
    key: Key,
    own: Own,
    server: &'a Server,
    runtime: tokio::runtime::Runtime,
}

impl Others<'_> {
    fn write(&self, many: usize, loaded: &Loaded) -> Result<Head> {
        self.write_of(many, loaded, &loaded.state)
    }

    fn write_of(&self, many: usize, loaded: &Loaded, state: &State) -> Result<Head> {
        self.runtime.block_on(async {
            let client = connect(self.server.dir(), DATABASE).await?;
            let by = client
                .query_one(
                    "select host, inc, max(own_n) from provost.entry group by 1, 2 order by 3 desc limit 1",
                    &[],
                )
                .await?;
            let (host, inc, own): (String, i64, i64) = (by.get(0), by.get(1), by.get(2));
            let daemon = provost::base::DaemonId { host: host.parse()?, incarnation: u64::try_from(inc)? };
            let (mut head, mut own) = (loaded.head, u64::try_from(own)?);
            let sql = "select decode(key_print, 'hex'), event, event_mac from provost.repo";
            let at = client.query_one(sql, &[]).await?;
            let digest = |column: usize| {
                anyhow::Ok(Digest::from_bytes(
                    at.get::<_, Vec<u8>>(column).try_into().map_err(|_| anyhow!("no digest"))?,
                ))
            };
            let (print, event) = (digest(0)?, (u64::try_from(at.get::<_, i64>(1))?, digest(2)?));
            let now = Timestamp(i64::try_from(provost::system::wall_time().as_millis())?);
            let locks: Vec<_> = state.locks.iter().cloned().collect();
            let mut locks = locks.iter().cycle();
            let mut left = many;
            while left > 0 {
                let mut rows = Rows::default();
                for _ in 0..left.min(BITE) {
                    let mut batch = Outbox::default();
                    batch.changes.push(Change::PutLock(locks.next().context("there are locks")?.clone()));
                    own += 1;
                    let sealed = self.key.entry(&head, (daemon, own), (now, ENTRY_FORMAT), &batch)?;
                    head = sealed.head();
                    rows.n.push(i64::try_from(sealed.n.0)?);
                    rows.own.push(i64::try_from(own)?);
                    rows.format.push(i32::try_from(sealed.format)?);
                    rows.body.push(sealed.body.into());
                    rows.mac.push(sealed.mac.as_bytes().to_vec());
                    let text = to_sign(&print, (sealed.n.0, &sealed.mac), (event.0, &event.1));
                    rows.sig.push(self.own.pair.sign(&text).as_ref().to_vec());
                }
                left -= rows.n.len();
                rows.insert(&client, (&host, inc, now.0)).await?;
            }
            let row: String = client
                .query_one(&format!("select concat_ws('|', {COLUMNS}) from provost.repo"), &[])
                .await?
                .get(0);
            let row = RepoRow { entry: (head.n.0, head.mac), ..RepoRow::parse(&row)? };
            client.batch_execute(&format!("update provost.repo set {}", row.sets(&self.secret)?)).await?;
            Ok(head)
        })
    }

    /// How long a bare client takes to read the last of them, in milliseconds.
    fn read(&self, many: usize) -> Result<f64> {
        self.runtime.block_on(async {
            let client = connect(self.server.dir(), DATABASE).await?;
            let sql = "select n, host, inc, own_n, at, format, body, mac from provost.entry order by n desc limit $1";
            let statement = client.prepare(sql).await?;
            let begun = Instant::now();
            let rows = client.query(&statement, &[&i64::try_from(many)?]).await?;
            let took = begun.elapsed().as_secs_f64() * 1e3;
            ensure!(rows.len() == many, "the log has {} of {many} entries", rows.len());
            Ok(took)
        })
    }
}

/// Entries by column.
#[derive(Default)]
struct Rows {
    n: Vec<i64>,
    own: Vec<i64>,
    format: Vec<i32>,
    body: Vec<String>,
    mac: Vec<Vec<u8>>,
    sig: Vec<Vec<u8>>,
}

impl Rows {
    async fn insert(&self, client: &Client, (host, inc, at): (&str, i64, i64)) -> Result<()> {
        let sql = "insert into provost.entry (repo, n, host, inc, own_n, at, format, body, mac, sig)
                   select (select id from provost.repo), n, $1, $2, own, $3, format, body, mac, sig
                   from unnest($4::bigint[], $5::bigint[], $6::int[], $7::text[], $8::bytea[], $9::bytea[])
                       as it (n, own, format, body, mac, sig)";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
            [&host, &inc, &at, &self.n, &self.own, &self.format, &self.body, &self.mac, &self.sig];
        let written = client.execute(sql, &values).await?;
        ensure!(written as usize == self.n.len(), "entries are missing");
        Ok(())
    }
}
