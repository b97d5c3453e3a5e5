//! Engines as daemons have them, each with a state folder and a store of its own, and callers that take and release locks.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use provost::base::{AgentId, Digest, EffectId, HostRole, RuleId, SymbolPath, Ttl};
use provost::domain::command::{AcquireLock, Apart, Locked, ReleaseLock, SymbolFacts, SymbolPresence};
use provost::domain::{
    Command, Decision, Door, Effect, Facts, Judge, Principal, Proof, Refusal, Scope, Settings, Terms,
};
use provost::engine::{Engine, Lost, SteadyClock, start};
use provost::store::{Database, Invite, Options, Retention, Store, join, open, seal_key};
use provost_test_equipment::callers::caller;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Rules that allow everything: no lock is judged.
pub(super) struct Allows;

impl Judge for Allows {
    fn decide(&self, _: &Principal, _: &Command, _: &Facts) -> Decision {
        Decision::Allow { rule: RuleId::parse("any").expect("a valid id"), terms: Terms::default() }
    }

    fn version(&self) -> Digest {
        Digest::default()
    }
}

/// The settings of a daemon whose configuration says nothing.
pub(super) fn settings() -> Result<Settings> {
    Ok(Settings::new(AgentId::parse("client:approver")?))
}

/// A state folder.
pub(super) struct Folder(TempDir);

impl Folder {
    /// A new one.
    pub(super) fn new() -> Result<Self> {
        let dir = TempDir::new()?;
        fs::DirBuilder::new().mode(0o700).create(dir.path().join("state"))?;
        Ok(Self(dir))
    }

    /// One more that has been invited by another one, as `provost host export-key` and `provost host join` do it.
    pub(super) fn joining(other: &Self, database: &Database) -> Result<Self> {
        let new = Self::new()?;
        let invite = Invite { name: &database.name, most: 1, role: HostRole::Full, way: None };
        let invitation = seal_key(&other.path(), invite)?;
        join(&new.path(), database, &invitation.text, &invitation.code)?;
        Ok(new)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("state")
    }

    /// Its store.
    pub(super) fn store(&self, options: Options) -> Result<Box<dyn Store>> {
        Ok(open(&self.path(), options)?)
    }
}

/// A running engine; stopped when dropped.
pub(super) struct Host {
    pub(super) engine: Engine,
    thread: Option<JoinHandle<Option<Lost>>>,
    _effects: mpsc::UnboundedReceiver<(EffectId, Effect)>,
}

impl Host {
    pub(super) fn start(store: Box<dyn Store>) -> Result<Self> {
        let keeps = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };
        let started = start(store, Box::new(Allows), settings()?, Box::<SteadyClock>::default(), keeps)?;
        Ok(Self { engine: started.engine, thread: Some(started.thread), _effects: started.effects })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.engine.stop();
        // An engine that has lost its store has told its callers.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Who asks at one host, by name.
pub(super) fn agent(name: &str) -> Principal {
    caller(name, Door::Devit, &[Scope::Join, Scope::Coordinate, Scope::Read], Proof::SharedKey)
}

/// A function of a file that the benchmark's agents edit.
pub(super) fn symbol(name: &str) -> Result<SymbolPath> {
    Ok(SymbolPath::parse_lockable(&format!("src/long.rs:{name}"))?)
}

/// Asks for a lock, and waits for it so long.
pub(super) fn acquire(at: &SymbolPath, wait: Option<Ttl>) -> AcquireLock {
    AcquireLock {
        at: at.clone(),
        asked: at.to_string().into(),
        ttl: Ttl::minutes(30),
        keeps_longer: false,
        wait,
        ticket: None,
        reason: None,
        process: None,
        seen: SymbolFacts { known: SymbolPresence::Found, ..SymbolFacts::default() },
        in_session: false,
        apart: Apart::FromNone,
        until_commit: None,
    }
}

/// Gives a lock up.
pub(super) fn release(at: &SymbolPath) -> ReleaseLock {
    ReleaseLock { at: at.clone(), fence: None, force: false }
}

/// Has a lock, or says why not.
pub(super) fn must_hold(answer: Result<Locked, Refusal>) -> Result<()> {
    let answer = answer.map_err(|it| anyhow::anyhow!("a lock was refused: {it:?}"))?;
    ensure!(matches!(answer, Locked::Held { .. }), "a lock of another agent's was asked for: {answer:?}");
    Ok(())
}

/// What came of some time of asking.
#[derive(Default)]
pub(super) struct Asked {
    /// Answers that came within the time.
    pub(super) answers: usize,
    /// How long each took, in milliseconds.
    pub(super) took: Vec<f64>,
    /// How many were at each host.
    pub(super) at: Vec<usize>,
}

impl Asked {
    pub(super) fn median(&mut self) -> f64 {
        self.took.sort_by(f64::total_cmp);
        self.took.get(self.took.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// So many callers at each host, for so long; each asks again once it is answered. `ask` makes the next request of a
/// caller at a host; the numbers are the host's and the caller's.
pub(super) fn closed_loops<A: AsyncFnMut() -> Result<()> + 'static>(
    (hosts, callers): (usize, usize),
    time: Duration,
    mut ask: impl FnMut(usize, usize) -> Result<A>,
) -> Result<Asked> {
    let runtime = super::server::runtime()?;
    let local = tokio::task::LocalSet::new();
    let mut tasks = tokio::task::JoinSet::new();
    let until = Instant::now() + time;
    for host in 0..hosts {
        for number in 0..callers {
            let mut ask = ask(host, number)?;
            let work = async move {
                let mut took = Vec::new();
                loop {
                    let begun = Instant::now();
                    ask().await?;
                    // The last answer of each comes behind the end, and is none of the time.
                    if Instant::now() >= until {
                        return anyhow::Ok((host, took));
                    }
                    took.push(begun.elapsed().as_secs_f64() * 1e3);
                }
            };
            tasks.spawn_local_on(work, &local);
        }
    }
    local.block_on(&runtime, async {
        let mut all = Asked { at: vec![0; hosts], ..Asked::default() };
        while let Some(done) = tasks.join_next().await {
            let (host, took) = done??;
            all.answers += took.len();
            all.at[host] += took.len();
            all.took.extend(took);
        }
        Ok(all)
    })
}

/// A caller of an engine, which takes and releases a lock of its own by turns.
pub(super) fn locker(
    engine: &Engine,
    host: usize,
    number: usize,
) -> Result<impl AsyncFnMut() -> Result<()> + use<>> {
    let (engine, who) = (engine.clone(), agent(&format!("bench-{host}-{number}")));
    let at = symbol(&format!("f{host}_{number}"))?;
    let mut holds = false;
    Ok(async move || {
        let held = holds;
        holds = !held;
        if held {
            let done = engine.submit(&who, release(&at)).await;
            done.map_err(|it| anyhow::anyhow!("a lock is not released: {it:?}"))?;
        } else {
            must_hold(engine.submit(&who, acquire(&at, None)).await)?;
        }
        Ok(())
    })
}

/// How a store is opened: in a database, or in its folder.
pub(super) fn options(database: Option<Database>, always_durable: bool) -> Options {
    Options { database, always_durable, ..Options::default() }
}
