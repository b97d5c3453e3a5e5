//! The daemon: wiring, signals, shutdown. The only file that uses everything.

mod about;
mod addresses;
mod again;
mod agents;
mod broker;
mod clock;
mod code_owners;
#[cfg(unix)]
mod committed;
mod file_watcher;
mod follow;
mod hosts;
mod identities;
mod idle_checks;
mod logging;
mod loopback_doors;
mod memory;
mod metrics;
mod notice_addresses;
mod notices;
mod passkeys;
mod pictures;
mod policy_file;
mod published;
mod queue;
mod ready;
mod rehearse;
mod reloading;
mod rules;
mod seen_files;
mod shutdown;
mod spending;
mod start;
#[cfg_attr(not(target_os = "linux"), path = "daemon/supervisor_elsewhere.rs")]
mod supervisor;
mod taking;
mod telemetry;
mod web_socket;
mod wiring;
#[cfg(unix)]
mod wit_sockets;
#[cfg(unix)]
mod worker_doors;
#[cfg_attr(windows, path = "daemon/worker_user_windows.rs")]
mod worker_user;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use loopback_doors::TakenPorts;
use policy_file::PolicyFile;
use provost_agents::AgentService;
use provost_api::wire;
use provost_auth::keys::KeyRing;
use provost_auth::names::Names;
use provost_auth::role;
use provost_base::limits::{CONNECTIONS_MAX, POLICY_LOOK_S};
use provost_base::{AgentId, EffectId, Json, Timestamp};
use provost_config::env::Environment;
use provost_config::{Config, Limits, Loaded, Severity, Sources, StoreSettings, daemons, load, pin, sockets};
use provost_domain::command::Record;
use provost_domain::{Effect, Judge as _, Owed, Principal};
use provost_effects::{
    CaptureConfig, DesktopOptions, DesktopParts, EffectParts, EffectRunner, HookCommand, HookParts,
    NoticeParts, NoticeSettings, Notices, OpenDoor, WorkerParts,
};
use provost_engine::{self as engine, Clock as _, Engine, SystemClock};
use provost_jail::{Conversations, OutputBoard, Root};
use provost_policy::RuleSet;
use provost_protocols::devit::Devit;
use provost_protocols::own::{DaemonCommand, InProcessApi, Ordered, Own};
use provost_protocols::scrape::Phase;
use provost_protocols::wit::Wit;
use provost_service::Provost;
use provost_system::folder_watch::FolderWatcher;
use provost_system::{self as system, Signal, Signals};
use provost_transport::accept::{AllDoors, Capacity};
use provost_transport::listen::SocketFolder;
use provost_vault::Vault;
use ready::Ready;
pub use rehearse::rehearse;
pub use start::{DevitdForm, Start};
use supervisor::Supervisor;
use wiring::Opened;

/// Our own version, which `provost status` and ACKs show beside the advertised `daemon_version`.
const VERSION: &str = concat!("provost/", env!("CARGO_PKG_VERSION"));
/// How long open connections may take to finish at shutdown.
const GRACE: Duration = Duration::from_secs(2);
/// How often the policy file and idleness are checked.
const LOOK_EVERY: Duration = Duration::from_secs(POLICY_LOOK_S);

/// Runs the daemon until a signal, an order or idleness ends it.
///
/// # Errors
/// The reason why it could not start, with the remedy; also written to [`Start::ready`].
pub fn run(mut start: Start) -> Result<()> {
    let mut ready = Ready::new(start.ready.take());
    let outcome = prepare(&start).and_then(|prepared| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.enable_all().worker_threads(door_threads()).build()?;
        let outcome = runtime.block_on(serve(start, prepared, &mut ready));
        runtime.shutdown_timeout(GRACE);
        outcome
    });
    let outcome = match outcome {
        Err(err) if again::is_due(&err) => Err(again::begin(err)),
        outcome => outcome,
    };
    if let Err(err) = &outcome {
        ready.say(&format!("{err:#}"));
    }
    outcome
}

/// Returns how many threads serve doors: half of the cores, since the engine has a thread of its own, files and code are read on
/// others, and clients are on the same machine. With more, each request wakes threads that find nothing to do.
fn door_threads() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| (cores.get() / 2).max(2))
}

/// The results of the steps before any thread exists.
struct Prepared {
    loaded: Loaded,
    uid: u32,
    user: AgentId,
    /// The user and group of workers, when the daemon is root.
    worker_user: Option<(u32, u32)>,
    _log: Option<tracing_appender::non_blocking::WorkerGuard>,
}

fn prepare(start: &Start) -> Result<Prepared> {
    let (uid, superuser) = (system::user_number(), system::is_superuser());
    if superuser && !start.allow_root {
        bail!(
            "provost does not run as {}, since a mistake would then concern the whole machine. \
             Start it as an ordinary user; in a container without one, use --allow-root",
            system::SUPERUSER
        );
    }
    start.places.create()?;
    start.places.create_config()?;
    let loaded = load_config(start)?;
    let worker_user = if superuser { worker_user::for_workers(&loaded.config, &start.places)? } else { None };
    system::take_all_descriptors();
    system::check_headroom().map_err(|why| anyhow!(why))?;
    provost_jail::harden_daemon().context("cannot protect the daemon's memory from other processes")?;
    provost_jail::become_subreaper().context("cannot become the reaper of workers")?;
    let log = logging::start_log(start, &loaded.config)?;
    let user = AgentId::parse(&format!("user:{}", system::user_name()))
        .map_err(|err| anyhow!("the user's name {err}"))?;
    Ok(Prepared { loaded, uid, user, worker_user, _log: log })
}

fn load_config(start: &Start) -> Result<Loaded> {
    let environment = Environment::current();
    let named = provost_config::named(start.config_file.clone(), start.devitd.is_some(), &environment);
    let repository = pin::pending(&start.places.root, &start.places.state)?;
    Ok(load(&Sources::usual(&start.places, repository, named), &environment)?)
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// The beginning of the note about rules that could not be used.
const NOT_RELOADED: &str = "policy not reloaded: ";

/// The running daemon, with everything that ends with it.
struct Daemon {
    start: Start,
    provost: Provost,
    /// The watcher of folders, for all parts of the daemon.
    watcher: FolderWatcher,
    agents: AgentService,
    system: Principal,
    /// The key ring, and one more for every address with a secret of its own.
    keys: Vec<Arc<KeyRing>>,
    names: Arc<Names>,
    capture_config: watch::Sender<Arc<CaptureConfig>>,
    notices: watch::Sender<DesktopOptions>,
    /// The addresses of notices, and the part that sends them.
    addresses: watch::Sender<Arc<NoticeSettings>>,
    sender: Notices,
    devit: Devit,
    wit: Wit,
    stop: CancellationToken,
    doors: TaskTracker,
    /// How many connections each door may have.
    capacity: Capacity,
    shared: Arc<Mutex<Shared>>,
    /// The rules that were put in force last, for queries about them.
    in_force: watch::Sender<RuleSet>,
    policy: PolicyFile,
    clock: Arc<clock::Watch>,
    hook: watch::Sender<Option<Arc<HookCommand>>>,
    auto_shutdown_s: Option<u64>,
    /// The settings with which the store was opened, and the limits of concurrent work; a reload changes neither.
    store: StoreSettings,
    limits: Limits,
    idle_since: Timestamp,
    root: idle_checks::Root,
    uid: u32,
    /// Notes that stay for as long as the daemon runs, for instance about ports.
    lasting_notes: Vec<String>,
    /// The phase that is seen from outside, and the supervisor of the daemon.
    phase: watch::Sender<Phase>,
    supervisor: Supervisor,
}

/// The parts of the answer to `GET /about` that do not come from the engine.
#[derive(Default)]
struct Shared(wire::About);

async fn serve(start: Start, prepared: Prepared, ready: &mut Ready) -> Result<()> {
    let config = prepared.loaded.config.clone();
    // Before any door is open: a client that was answered may send a signal, which would kill us.
    let mut signals = Signals::catch()?;
    let (orders, mut inbox) = mpsc::channel(16);
    let supervisor = Supervisor::of(&start);
    let (places, waits) = (&start.places, (supervisor, &mut signals));
    let opened = again::opened(|| wiring::opened(places, &config), places, waits).await?;
    let Some(opened) = opened else { return Ok(()) };
    let (mut daemon, own, mut started, mut hands) =
        assemble(start, &prepared, &config, opened, (orders, supervisor)).await?;
    // The record is written before any door is open, so that a client that finds one door finds the others.
    let _sockets = sockets::Record::keep(&daemon.start.places)
        .context("it cannot be written into the state folder where the sockets are")?;
    daemon.open_metrics(&prepared.loaded, &own).await?;
    daemon.send_telemetry(&prepared.loaded, &own).await?;
    // A client at a door has to see the outcome of an earlier daemon's jobs and applies.
    hands.owed_taken_up().await;
    let provost = daemon.provost.clone();
    daemon.doors.spawn(async move { provost.settle_followers().await });
    // Rules that ask for a passkey once one is enrolled have to know before a person can answer.
    own.look_at_passkeys().await;
    // The process that starts a daemon waits for the doors that open last: then the others
    // are open, and logged.
    let inside = own.inside();
    daemon.open_loopback(&prepared.loaded, inside.clone()).await?;
    daemon.take_over_published(&config);
    daemon.say_started(started.clean, &prepared.loaded).await?;
    let (listed, stop) = (daemon.start.places.config.clone(), daemon.stop.clone());
    let heard = daemon.engine().subscribe_beside_posts();
    daemon.doors.spawn(passkeys::follow(own.clone(), heard, daemon.watcher.clone(), listed, stop));
    daemon.open(Arc::new(own), &daemon.start.places.own_socket(), SocketFolder::Ours)?;
    let devit_at = daemon.start.places.devit_socket();
    daemon.open_devit(&devit_at, SocketFolder::Ours)?;
    daemon.open_extra(&config)?;
    daemon.follow_files();
    daemon.take_open_tasks(&config);
    daemon.see_files(&config.agent_protocol);
    daemon.follow_code_owners();
    daemon.doors.spawn(memory::give_back(daemon.stop.clone()));
    #[cfg(unix)]
    daemon.give_back_committed();
    #[cfg(unix)]
    daemon.open_wit(&config).await;
    let mut look = tokio::time::interval(LOOK_EVERY);
    // Everything else works without the announcement; only `provost` elsewhere does not list this daemon.
    let _announced = daemons::Announced::keep(&daemon.start.places)
        .inspect_err(|err| tracing::warn!(%err, "this daemon is not listed among those of its user"));
    ready.say("ready");
    daemon.say_open();
    let mut reply_to = None;
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => break,
                Signal::Reload => if let Err(err) = daemon.reload().await {
                    tracing::error!("reload refused; the old settings stay in force: {err:#}");
                }
            },
            order = inbox.recv() => match order {
                Some((DaemonCommand::Stop, reply)) => { reply_to = Some(reply); break }
                Some(order) => daemon.obey(order, &inside).await,
                None => break,
            },
            _ = look.tick() => if daemon.look_around().await { break },
            _ = &mut started.ended => break,
        }
    }
    daemon.shut_down(hands, started.thread, reply_to).await
}

/// The parts of a started engine that are left once its effects are taken up.
struct Running {
    clean: bool,
    thread: std::thread::JoinHandle<Option<engine::Lost>>,
    ended: oneshot::Receiver<()>,
}

// tidy: long because it puts together what a daemon is made of, each part once
async fn assemble(
    start: Start,
    prepared: &Prepared,
    config: &Config,
    opened: Opened,
    (orders, supervisor): (mpsc::Sender<Ordered>, Supervisor),
) -> Result<(Daemon, Own, Running, EffectRunner)> {
    let places = &start.places;
    let Opened { policy, rules, workers, agents, words, started } = opened;
    let about = about::about(&start, prepared, config, &policy, &rules);
    let in_force = watch::Sender::new(rules);
    let engine = started.engine.clone();
    let root_path = config.workspace.sandbox_root.clone().unwrap_or_else(|| places.root.clone());
    let open_root = || Root::open(&root_path).with_context(|| format!("workspace {}", root_path.display()));
    let conversations = Conversations::at(&places.state.join("conversations"));
    let (outputs, watcher) = (OutputBoard::default().keeping(conversations), FolderWatcher::default());
    let index = wiring::index(&root_path, &watcher, config)?;
    let kept = wiring::kept(places, config, &open_root()?)?;
    let provost =
        Provost::new(engine.clone(), role::system(), open_root()?, outputs.clone(), workers, index, kept);
    provost.speaks_by(words);
    let agents = AgentService::new(provost.clone(), agents);
    let names = identities::names(&start, prepared, config, &engine)?;
    let (shared, sender) = (Arc::new(Mutex::new(Shared(about))), Arc::new(OnceLock::new()));
    let watch = Arc::new(clock::Watch::new(engine.clone()));
    let about = clock::told_with(shared.clone(), watch.clone(), sender.clone());
    let (user, passkeys) = ((prepared.user.clone(), prepared.uid), wiring::passkeys(config, places));
    let push = notices::push_told(sender.clone());
    let told = (about, rules::about(in_force.subscribe(), places.root.clone()), push);
    let own = Own::new(agents.clone(), names.clone(), user, orders, told, wiring::bases(places), passkeys);
    hosts::tell_sessions(&own, places);
    let wit = Wit::new(provost.clone(), names.clone(), prepared.uid);
    let devit = identities::devit_door(&start, prepared, config, (&provost, &names))?;
    let (hook, hook_command) = watch::channel(wiring::hook(config));
    let hooks = wiring::hook_parts(&start, config, hook_command);
    let (capture_config, seen) = watch::channel(Arc::new(pictures::capture_config(config, &start.places)));
    let (notices, addresses, desktop, outgoing) = notices::both(&start, prepared, config, &shared);
    let work = (started.effects, started.owed);
    let ground = (open_root()?, watcher.clone(), doors_of_workers(&start, prepared, &devit)?);
    let hands = start_hands(&start, prepared, &agents, ground, (hooks, seen, desktop, outgoing), work)?;
    let sender = sender.get_or_init(|| hands.notices().clone()).clone();
    let daemon = Daemon {
        auto_shutdown_s: start.auto_shutdown_s(config),
        start,
        provost,
        watcher,
        agents,
        system: role::system(),
        keys: vec![names.keys().clone()],
        names,
        capture_config,
        notices,
        addresses,
        sender,
        devit,
        wit,
        stop: CancellationToken::new(),
        doors: TaskTracker::new(),
        capacity: Capacity::within(&AllDoors::of_a_process_with(system::descriptors_max()), CONNECTIONS_MAX),
        shared,
        in_force,
        policy,
        clock: watch,
        hook,
        store: config.store.clone(),
        limits: config.limits.clone(),
        idle_since: engine.now(),
        root: idle_checks::Root::default(),
        uid: prepared.uid,
        lasting_notes: Vec::new(),
        phase: watch::Sender::new(Phase::Starting),
        supervisor,
    };
    let engine::Started { clean, thread, ended, .. } = started;
    Ok((daemon, own, Running { clean, thread, ended }, hands))
}

/// New effects, and those that are owed from before.
type Work = (mpsc::UnboundedReceiver<(EffectId, Effect)>, Vec<Owed>);

/// The parts that show things outside of the daemon.
type Showing = (HookParts, watch::Receiver<Arc<CaptureConfig>>, DesktopParts, NoticeParts);

/// Returns the opener of doors for runs, if workers can be confined here.
#[cfg(unix)]
fn doors_of_workers(start: &Start, prepared: &Prepared, like: &Devit) -> Result<Option<OpenDoor>> {
    let folder = start.places.runtime.join("runs");
    let opener = worker_doors::opener(like, &folder, prepared.worker_user.is_some());
    opener.map(Some).with_context(|| format!("the doors of workers: {}", folder.display()))
}

#[cfg(not(unix))]
fn doors_of_workers(_start: &Start, _prepared: &Prepared, _like: &Devit) -> Result<Option<OpenDoor>> {
    Ok(None)
}

fn start_hands(
    start: &Start,
    prepared: &Prepared,
    service: &AgentService,
    (root, folders, doors): (Root, FolderWatcher, Option<OpenDoor>),
    (hooks, capture_config, desktop, notices): Showing,
    (effects, owed): Work,
) -> Result<EffectRunner> {
    let (places, provost) = (&start.places, service.provost());
    let copies = places.state.with_extension("copies");
    let profiles = provost.clone();
    let workers = WorkerParts {
        profiles: Arc::new(move |id: &AgentId| profiles.profiles().get(id).cloned()),
        root,
        forbidden_paths: wiring::forbidden_paths(places)?,
        copies,
        vault: Vault::at(places.secrets()),
        doors,
        program: std::env::current_exe().ok(),
        supervisor: wiring::supervisor(places, prepared),
        outputs: provost.outputs().clone(),
        concurrent: prepared.loaded.config.limits.workers as usize,
        folders,
        keep: agents::keeper(provost),
        room: agents::room(provost),
        share: agents::share(provost),
        trees: provost.work_trees().clone(),
        withhold: agents::withhold(provost),
        commits: agents::commits(provost),
        judge: Some(agents::permission_judge(provost)),
        asker: Some(agents::question_asker(provost)),
        trace_parent: telemetry::trace_parent(&prepared.loaded.config, places)?,
    };
    let parts = EffectParts {
        engine: provost.engine().clone(),
        system: role::system(),
        workers,
        hooks,
        capture_config,
        desktop,
        notices,
        deeds: agents::deed_hands(service),
    };
    Ok(EffectRunner::start(parts, effects, owed))
}

impl Daemon {
    fn engine(&self) -> &Engine {
        self.provost.engine()
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn record(&self, what: &str, subject: &str, details: serde_json::Value) -> Result<()> {
        let verb = Record { what: what.into(), subject: subject.into(), details: Json::from_value(&details) };
        self.provost.submit(&self.system, verb).await.map(|_| ()).map_err(|err| anyhow!("{err}"))
    }

    async fn say_started(&self, clean: bool, loaded: &Loaded) -> Result<()> {
        for note in &loaded.notes {
            match note.severity {
                Severity::Info => tracing::info!("{note}"),
                Severity::Warning => tracing::warn!("{note}"),
                Severity::Error => tracing::error!("{note}"),
            }
        }
        pictures::note(&loaded.config, &self.start.places).iter().for_each(|note| tracing::warn!("{note}"));
        let policy = self.shared().0.policy.clone();
        let details = json!({ "version": VERSION, "policy": policy, "policy_source": self.policy.name(), "clean": clean });
        self.record("daemon.started", &self.start.places.root.display().to_string(), details).await
    }

    async fn obey(&mut self, (order, reply): Ordered, inside: &InProcessApi) {
        let outcome = match order {
            DaemonCommand::Reload => self.reload().await,
            DaemonCommand::Listen(path, secret) => {
                let opened = if path.is_absolute() {
                    self.open_devit_with(&path, secret)
                } else {
                    Err(anyhow!("{}: the address must be absolute", path.display()))
                };
                opened.map(|()| format!("the DevIt door is open at {}", path.display()))
            }
            DaemonCommand::TestNotice(name) => {
                let sender = self.sender.clone();
                // An address that is slow does not delay other orders. The asker may be gone.
                self.doors.spawn(async move { reply.send(sender.try_out(&name).await).ok() });
                return;
            }
            DaemonCommand::PushKey => return self.say_push_key(reply),
            DaemonCommand::CheckPush { endpoint, keys } => self.check_push(&endpoint, &keys),
            DaemonCommand::OpenPage => self.open_page(inside.clone()).await,
            // The main loop handles this one itself.
            DaemonCommand::Stop => Ok("stopping".to_owned()),
        };
        // The asker may be gone.
        let _ = reply.send(outcome.map_err(|err| format!("{err:#}")));
    }

    async fn put_in_force(&mut self, rules: RuleSet) -> Result<()> {
        let version = rules.version().to_string();
        self.engine().set_judge(Box::new(rules.clone())).map_err(|err| anyhow!("{err}"))?;
        self.in_force.send_replace(rules);
        let name = self.policy.name();
        let before = {
            let about = &mut self.shared().0;
            about.policy_source.clone_from(&name);
            about.policy.clone()
        };
        if before != version {
            tracing::info!(policy = version, "policy in force");
            self.record("policy.loaded", &name, json!({ "policy": version, "before": before })).await?;
            self.shared().0.policy = version;
        }
        Ok(())
    }

    /// Puts changed rules in force. If the store takes nothing at the moment, the daemon goes on, and the
    /// next check tries again.
    async fn take_over(&mut self, rules: RuleSet) {
        match self.put_in_force(rules).await {
            Ok(()) => self.shared().0.notes.retain(|note| !note.starts_with(NOT_RELOADED)),
            Err(err) => {
                tracing::error!("the changed policy is not on record yet: {err:#}");
                self.policy.seen.clear();
            }
        }
    }

    /// Checks for a changed policy and for idleness; returns `true` when it is time to stop.
    async fn look_around(&mut self) -> bool {
        self.look_at_the_clock().await;
        if self.is_without_its_repository().await {
            return true;
        }
        let stamps = self.policy.stamps();
        if stamps != self.policy.seen {
            self.policy.seen = stamps;
            match self.policy.load() {
                Ok(rules) => self.take_over(rules).await,
                Err(err) => {
                    tracing::error!("the changed policy is not used, the old one stays in force: {err:#}");
                    let notes = &mut self.shared().0.notes;
                    notes.retain(|note| !note.starts_with(NOT_RELOADED));
                    notes.push(format!("{NOT_RELOADED}{err:#}"));
                }
            }
        }
        let Some(limit) = self.auto_shutdown_s else { return false };
        if self.is_busy().await {
            self.idle_since = self.engine().now();
        }
        self.engine().now().since_ms(self.idle_since) / 1000 >= limit
    }
}
