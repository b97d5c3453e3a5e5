//! The state of the store, for people: why and since when it takes no writes, which server has it, and when it was last reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use provost_base::limits::{HOST_BEAT_MS, HOST_TTL_MS, STALE_AFTER_MS};
use provost_base::{DaemonId, HostRole, Timestamp};
use provost_store::{Begun, HostBeat, HostState, ServerAt, StoreError};

/// The facts that the engine's thread reports about its store.
#[derive(Clone, Default)]
pub(super) struct Trouble {
    told: Arc<Mutex<OfTheStore>>,
    /// What is said of a server that is silent, so that nothing can be read there; `None` if it is not.
    silent: Arc<watch::Sender<Option<Box<str>>>>,
}

#[derive(Default)]
struct OfTheStore {
    /// The reason why the store takes no writes; `None` while it does.
    trouble: Option<Box<str>>,
    /// When that began.
    since: Timestamp,
    /// A problem that a person should know though the store still takes every write.
    note: Option<Box<str>>,
    /// Facts about a store that others write, too.
    shared: Option<Shared>,
}

struct Shared {
    /// When the last turn was taken.
    looked: Instant,
    server: Option<ServerAt>,
    is_unsure: bool,
    /// The time that the beginning of the last turn took.
    begin_took: Duration,
    /// The time that the last commit took, and when it ended; `None` before the first one.
    commit: Option<(Duration, Instant)>,
    /// The hosts as the store had them in the last turn, and the time by the store's clock then.
    hosts: (Vec<HostBeat>, Option<Timestamp>),
}

/// The hosts of a shared store as the last turn has found them.
#[derive(Clone, Debug)]
pub struct HostsSeen {
    /// The hosts, by their machines' names; removed ones last.
    pub hosts: Vec<HostSeen>,
    /// The time since that turn.
    pub looked: Duration,
}

/// A host as the last turn has found it.
#[derive(Clone, Debug)]
pub struct HostSeen {
    /// The host, and its present or last incarnation.
    pub daemon: DaemonId,
    /// The machine's name.
    pub name: Box<str>,
    /// The role with which it has joined.
    pub role: HostRole,
    /// The state of its membership, in a word.
    pub state: &'static str,
    /// The time since its last sign of life.
    pub silent: Duration,
    /// The oldest format of the log that it reads, and the newest one that it writes.
    pub formats: (u32, u32),
}

/// The state of a database from the view of the daemon that has its state there.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The server to which the daemon was last connected.
    pub server: Option<ServerAt>,
    /// Since when the database takes no writes, and the reason; `None` while it does.
    pub away: Option<(Timestamp, Box<str>)>,
    /// Whether it is unknown at present whether the last batch is stored.
    pub is_unsure: bool,
    /// The time since the daemon last had everything that the database has.
    pub looked: Duration,
    /// The time that a turn takes now: the beginning of the last one, and the last commit.
    pub turn_took: Duration,
}

impl Shared {
    /// Returns the time that the last commit took; zero if that was long ago.
    fn commit_of_late(&self) -> Duration {
        let of_late = self.commit.filter(|(_, at)| at.elapsed() < Duration::from_millis(HOST_TTL_MS));
        of_late.map_or(Duration::ZERO, |(took, _)| took)
    }
}

impl Trouble {
    fn of(&self) -> MutexGuard<'_, OfTheStore> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the store takes no writes for this reason, or takes them again.
    pub(super) fn tell(&self, err: Option<&StoreError>, now: Timestamp) {
        let mut it = self.of();
        if it.trouble.is_none() {
            it.since = now;
        }
        it.trouble = err.map(|err| err.to_string().into());
        self.silent.send_replace(err.and_then(StoreError::silent).map(Box::from));
    }

    /// Waits until the engine finds the server silent, and returns what is said of it: each reader would wait for the server for its own time.
    pub(super) async fn is_silent(&self) -> StoreError {
        let mut told = self.silent.subscribe();
        match told.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()) {
            Some(why) => StoreError::Away(why),
            // The engine has ended.
            None => std::future::pending().await,
        }
    }

    pub(super) fn tell_note(&self, note: Option<Box<str>>) {
        self.of().note = note;
    }

    /// Notes a turn at a store that others write, too, with the time that its beginning took, and the hosts that it has found.
    pub(super) fn tell_turn(&self, server: Option<ServerAt>, begin_took: Duration, begun: &Begun) {
        let mut it = self.of();
        let before = it.shared.take();
        let (is_unsure, known, commit) =
            before.map_or((false, None, None), |it| (it.is_unsure, it.server, it.commit));
        let looked = Instant::now();
        let hosts = (begun.hosts.clone(), begun.now);
        it.shared = Some(Shared { looked, server: server.or(known), is_unsure, begin_took, commit, hosts });
    }

    /// Notes the time that a commit took.
    pub(super) fn tell_commit(&self, took: Duration) {
        self.of().shared.iter_mut().for_each(|it| it.commit = Some((took, Instant::now())));
    }

    /// Notes whether it is unknown if a batch is stored.
    pub(super) fn tell_unsure(&self, is_unsure: bool) {
        self.of().shared.iter_mut().for_each(|it| it.is_unsure = is_unsure);
    }

    pub(super) fn why(&self) -> Option<Box<str>> {
        self.of().trouble.clone()
    }

    pub(super) fn note(&self) -> Option<Box<str>> {
        self.of().note.clone()
    }

    /// Returns the age of what memory has, if the daemon has not heard in time from a database; `None` for a store that one daemon writes alone.
    pub(super) fn stale(&self) -> Option<Duration> {
        let it = self.of();
        let shared = it.shared.as_ref()?;
        let is_heard = it.trouble.is_none() && !shared.is_unsure;
        // A daemon without work hears from the others with each beat.
        let fresh_ms = if is_heard { HOST_BEAT_MS + STALE_AFTER_MS } else { STALE_AFTER_MS };
        Some(shared.looked.elapsed()).filter(|it| *it > Duration::from_millis(fresh_ms))
    }

    /// Returns the hosts of the last turn; `None` for a store that one daemon writes alone.
    pub(super) fn hosts_seen(&self) -> Option<HostsSeen> {
        let it = self.of();
        let shared = it.shared.as_ref()?;
        let (hosts, now) = &shared.hosts;
        let looked = shared.looked.elapsed();
        let mut hosts: Vec<&HostBeat> = hosts.iter().collect();
        hosts.sort_by_key(|it| (it.state == HostState::Removed, &it.name, it.daemon));
        let seen = |it: &HostBeat| HostSeen {
            daemon: it.daemon,
            name: it.name.clone(),
            role: it.role,
            state: if it.is_stopped { "stopped" } else { it.state.as_str() },
            silent: Duration::from_millis(now.map_or(0, |now| now.since_ms(it.beat))) + looked,
            formats: it.formats,
        };
        Some(HostsSeen { hosts: hosts.into_iter().map(seen).collect(), looked })
    }

    /// Returns the state of the database; `None` for a store that one daemon writes alone.
    pub(super) fn standing(&self) -> Option<Standing> {
        let it = self.of();
        let shared = it.shared.as_ref()?;
        Some(Standing {
            server: shared.server.clone(),
            away: it.trouble.clone().map(|why| (it.since, why)),
            is_unsure: shared.is_unsure,
            looked: shared.looked.elapsed(),
            turn_took: shared.begin_took + shared.commit_of_late(),
        })
    }
}
