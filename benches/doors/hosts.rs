//! What several hosts cost: engines over one PostgreSQL, at several network delays, against two bare round trips a batch and against SQLite.
//!
//! Each host is the engine and the store of a daemon, in this process, and has a connection of its own through a delay of its own; what is
//! asked are locks and releases; each is on record when it is answered. The floor makes the same two round trips a batch over bare
//! connections, with as many bytes, and decides nothing.

mod bare;
mod behind;
mod delay;
mod engines;
mod server;
mod waits;

use std::time::{Duration, Instant};

use anyhow::Result;
use provost::base::limits::{INDEX_BITE, INDEX_BITES_BEFORE_SEARCH};
use provost::store::Database;

use crate::delegations::delegate;
use crate::table::{Rounds, Table, Unit};
use crate::world::World;
use bare::Bare;
use delay::Delay;
use engines::{Asked, Folder, Host, closed_loops, locker, options};
use server::{Server, by};

/// One side of a cell is measured so long in each round.
const TIME: Duration = Duration::from_millis(400);
const ROUNDS: usize = 3;
const CALLERS: [usize; 3] = [1, 16, 64];
/// Round trips, in milliseconds.
const ROUND_TRIPS: [u64; 3] = [0, 1, 5];
const HOSTS: usize = 3;

/// Delegations of each of 16 clients in one round.
const DELEGATIONS: usize = 40;

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let server = Server::start()?;
    let database = server.database("ours")?;
    beside_sqlite(table, &server)?;
    over_sockets(table, &server)?;
    let site = Site::begin(&server, &database)?;
    site.measure(table)?;
    drop(site);
    behind::measure(table, &server)
}

/// A lone host over the server's own socket, against a store in the state folder whose commits wait for the disk, too.
fn beside_sqlite(table: &mut Table, server: &Server) -> Result<()> {
    let database = server.database("lone")?;
    let (ours, here) = (Folder::new()?, Folder::new()?);
    let ours = Host::start(ours.store(options(Some(database), false))?)?;
    let sqlite = Host::start(here.store(options(None, true))?)?;
    table.ratios(ROUNDS)?;
    for callers in CALLERS {
        let (mut rate, mut floor) = (Rounds::default(), Rounds::default());
        for round in 0..=ROUNDS {
            let one = closed_loops((1, callers), TIME, |host, it| locker(&ours.engine, host, it))?;
            let other = closed_loops((1, callers), TIME, |host, it| locker(&sqlite.engine, host, it))?;
            // The first round prepares statements, and finds every agent new.
            if round > 0 {
                rate.push(per_second(&one));
                floor.push(per_second(&other));
            }
        }
        let what = format!("a lone host, {callers} callers, to SQLite on disk");
        table.ratio(&what, Unit::PerSecond, &rate, &floor)?;
    }
    Ok(())
}

/// The same with real daemons, each behind its door.
fn over_sockets(table: &mut Table, server: &Server) -> Result<()> {
    let database = server.database("daemon")?;
    let (ours, here) = (World::new()?, World::new()?);
    let room = "[limits]\ntasks_per_agent = 10000\n";
    ours.configure(&format!("store.url = {:?}\nstore.name = \"bench\"\n{room}", database.url))?;
    here.configure(room)?;
    let (ours, _) = ours.start()?;
    let (here, _) = here.start()?;
    let (mut rate, mut floor) = (Rounds::default(), Rounds::default());
    let per_second = |took: Duration| (16 * DELEGATIONS) as f64 / took.as_secs_f64();
    for round in 0..=ROUNDS {
        let one = delegate(&ours, 16, DELEGATIONS)?;
        let other = delegate(&here, 16, DELEGATIONS)?;
        if round > 0 {
            rate.push(per_second(one));
            floor.push(per_second(other));
        }
    }
    table.ratio("durable DELEGATE over sockets, 16 clients, to SQLite", Unit::PerSecond, &rate, &floor)?;
    ours.stop()?;
    here.stop()
}

fn per_second(asked: &Asked) -> f64 {
    asked.answers as f64 / TIME.as_secs_f64()
}

/// The hosts of both sides, and the delays between them and the server.
struct Site {
    delays: Vec<Delay>,
    folders: Vec<Folder>,
    bytes: usize,
}

impl Site {
    fn begin(server: &Server, database: &Database) -> Result<Self> {
        server.empty_database("bare")?;
        bare::make_tables(server.dir(), "bare")?;
        let first = Folder::new()?;
        let bytes = {
            let host = Host::start(first.store(options(Some(database.clone()), false))?)?;
            closed_loops((1, 1), TIME, |host_at, it| locker(&host.engine, host_at, it))?;
            bytes_of_a_command(server)?
        };
        let (mut folders, mut delays) = (vec![first], Vec::new());
        while folders.len() < HOSTS {
            folders.push(Folder::joining(&folders[0], database)?);
        }
        for _ in 0..HOSTS {
            delays.push(Delay::before(server.dir())?);
        }
        Ok(Self { delays, folders, bytes })
    }

    fn host(&self, at: usize) -> Result<Host> {
        Host::start(self.folders[at].store(options(Some(by(self.delays[at].dir(), "ours")), false))?)
    }

    fn bare(&self, at: usize) -> Result<Bare> {
        Bare::start(self.delays[at].dir(), "bare", i32::try_from(at)?, self.bytes)
    }

    fn set(&self, round_trip: Duration) {
        self.delays.iter().for_each(|it| it.set(round_trip));
    }

    fn measure(&self, table: &mut Table) -> Result<()> {
        table.note(&format!(
            "\nA command is stored as {} bytes in log and journal; so are the floor's.\n",
            self.bytes
        ))?;
        table.ratios(ROUNDS)?;
        let (mut hosts, mut bares, mut least) = (Vec::new(), Vec::new(), 1.0_f64);
        let mut indexed = Indexed::default();
        for count in 1..=HOSTS {
            // Started when it is measured: a host that is there hears of what the others do.
            self.set(Duration::ZERO);
            hosts.push(self.host(count - 1)?);
            bares.push(self.bare(count - 1)?);
            for ms in ROUND_TRIPS {
                self.set(Duration::from_millis(ms));
                for callers in CALLERS {
                    let share = cell(table, (&hosts, &bares), (ms, callers), &mut indexed)?;
                    least = least.min(share * count as f64);
                }
            }
        }
        table.note(&format!(
            "\nThe smallest share of a host, to an even share, over all of these: {least:.2}. The words of what was done were put \
             into the index after each round, as daemons do it in a pause: {indexed}.\n"
        ))?;
        table.ratios(20)?;
        for ms in ROUND_TRIPS {
            let round_trip = Duration::from_millis(ms);
            self.set(round_trip);
            let [one, other, ..] = &hosts[..] else { anyhow::bail!("two hosts are needed") };
            let (first, second) = (bares[0].asker()?, bares[1].asker()?);
            waits::measure(table, (one, other), (&first, &second), round_trip)?;
        }
        self.set(Duration::ZERO);
        table.note("")
    }
}

/// What was put into the index of words, and in how much time.
#[derive(Default)]
struct Indexed {
    commands: usize,
    took: Duration,
}

impl Indexed {
    /// Has a host put into the index what so many commands have done.
    fn after(&mut self, commands: usize, host: &Host) -> Result<()> {
        let begun = Instant::now();
        server::runtime()?.block_on(async {
            for _ in 0..=commands / usize::try_from(INDEX_BITE * INDEX_BITES_BEFORE_SEARCH)? {
                host.engine.index().await?;
            }
            anyhow::Ok(())
        })?;
        self.commands += commands;
        self.took += begun.elapsed();
        Ok(())
    }
}

impl std::fmt::Display for Indexed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} commands in {:.1} s", self.commands, self.took.as_secs_f64())
    }
}

/// One cell of the table: two rows. Returns the smallest share of a host in what was answered.
fn cell(
    table: &mut Table,
    (hosts, bares): (&[Host], &[Bare]),
    (ms, callers): (u64, usize),
    indexed: &mut Indexed,
) -> Result<f64> {
    let count = hosts.len();
    let (mut rate, mut rate_floor) = (Rounds::default(), Rounds::default());
    let (mut median, mut median_floor, mut least) = (Rounds::default(), Rounds::default(), 1.0_f64);
    for _ in 0..ROUNDS {
        let mut ours = closed_loops((count, callers), TIME, |at, it| locker(&hosts[at].engine, at, it))?;
        indexed.after(ours.answers, &hosts[0])?;
        let mut floor = closed_loops((count, callers), TIME, |at, _| {
            let asker = bares[at].asker()?;
            Ok(async move || asker.ask().await)
        })?;
        rate.push(per_second(&ours));
        rate_floor.push(per_second(&floor));
        median.push(ours.median());
        median_floor.push(floor.median());
        let share = |it: usize| it as f64 / ours.answers.max(1) as f64;
        least = ours.at.iter().map(|it| share(*it)).fold(least, f64::min);
    }
    let what = format!("{ms} ms, hosts: {count}, callers at each: {callers}");
    table.ratio(&what, Unit::PerSecond, &rate, &rate_floor)?;
    table.ratio("… median answer", Unit::Milliseconds, &median, &median_floor)?;
    Ok(least)
}

/// What log and journal have for one command.
fn bytes_of_a_command(server: &Server) -> Result<usize> {
    let sql = "select ((select sum(length(body)) from provost.entry) + (select sum(length(body)) from provost.event))::bigint,
               (select count(*) from provost.event where kind in ('lock_acquired', 'lock_freed'))";
    let row = server::runtime()?.block_on(async {
        anyhow::Ok(server::connect(server.dir(), "ours").await?.query_one(sql, &[]).await?)
    })?;
    let (bytes, commands): (i64, i64) = (row.get(0), row.get(1));
    Ok(usize::try_from(bytes / commands.max(1))?)
}
