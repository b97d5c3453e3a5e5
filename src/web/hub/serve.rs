//! The process of the page over all repositories: opens its port, finds daemons, and shuts down in order.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::HubDoor;
use super::known::Hub;
use provost_auth::loopback::KNOWS_PEERS;
use provost_auth::names::Names;
use provost_base::Door;
use provost_base::limits::{CONNECTIONS_MAX, DAEMONS_ASKED_MAX};
use provost_client::daemons::{Found, Looking, Whose};
use provost_config::daemons::{self, Listed};
use provost_config::env::Environment;
use provost_config::{HubRecord, Ports};
use provost_protocols::loopback::{Carriers, Gate, Shell, origin};
use provost_system::{Signals, descriptors_max, listener_at, process_began, user_number};
use provost_transport::accept::{AllDoors, Capacity, accept_loop};
use provost_transport::loopback::{Loopback, bind};

/// How long unfinished answers may take at the end.
const GRACE: Duration = Duration::from_secs(2);

/// The number of search results for daemons that can wait in the queue.
const FOUND_MAX: usize = 16;

/// The number of threads that serve: the daemons do the slow work.
const THREADS: usize = 2;

/// The settings with which a page over all repositories starts.
pub struct Start {
    /// The environment of the user whose daemons are shown.
    pub environment: Environment,
    /// The names by which browsers reach it; it calls itself by the first.
    pub names: Vec<String>,
    /// Its port.
    pub port: u16,
    /// Called with the address once the page is open.
    pub opened: Box<dyn FnOnce(&str)>,
}

/// The reason why the page cannot run.
#[derive(Debug)]
pub struct Failed {
    /// The problem, as a sentence.
    pub why: String,
    /// The next step for the user.
    pub next: String,
}

impl Failed {
    fn new(why: impl Into<String>, next: impl Into<String>) -> Self {
        Self { why: why.into(), next: next.into() }
    }

    fn system(what: &str, err: &io::Error) -> Self {
        Self::new(format!("{what}: {err}"), "provost doctor")
    }
}

/// Serves the page until a signal ends it.
///
/// # Errors
/// The reason why it cannot be opened.
pub fn run(start: Start) -> Result<(), Failed> {
    if !KNOWS_PEERS {
        let why = "this system does not say who connects, so the page has to stay shut";
        return Err(Failed::new(why, "provost, which prints what needs you in all repositories"));
    }
    if start.names.is_empty() {
        let why = "`names` in `[web]` is empty, so that no browser could ask for the page";
        return Err(Failed::new(why, "leave it out"));
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(|err| Failed::system("the system has no resources left", &err))?;
    let outcome = runtime.block_on(serve(start));
    // A disk that does not answer does not delay the end.
    runtime.shutdown_background();
    outcome
}

async fn serve(start: Start) -> Result<(), Failed> {
    let Start { environment, names, port, opened } = start;
    // Signals are caught before anything is open, so that none is lost.
    let mut signals = Signals::catch().map_err(|err| Failed::system("signals cannot be heard", &err))?;
    if let Some(other) = HubRecord::of_running(&environment) {
        let why = format!("process {} shows all repositories already, at port {}", other.pid, other.port);
        return Err(Failed::new(
            why,
            "provost web --all, which prints its address; provost web close ends it",
        ));
    }
    let bound = bind(port).map_err(|err| taken(&err, port, &environment))?;
    let kept = HubRecord::keep(&environment, port);
    let _record = kept.map_err(|err| Failed::system("the state folder cannot be written", &err))?;
    let stop = CancellationToken::new();
    let hub = Hub::new(stop.clone());
    let changed = Arc::new(Notify::new());
    let whose = Whose { environment, here: None, narrowed: false };
    let watch = whose.watch(Arc::clone(&changed));
    let (sender, mut found) = mpsc::channel::<Vec<Found>>(FOUND_MAX);
    let looking = Looking::default();
    let search = || tokio::spawn(whose.clone().find(Arc::clone(&looking), sender.clone()));
    search();
    let address = origin(names.first().map_or("", String::as_str), port);
    let doors = open(bound, names, hub.clone());
    opened(&format!("{address}/"));
    loop {
        tokio::select! {
            _ = signals.next() => break,
            () = changed.notified() => {
                if let Some(watch) = &watch {
                    watch.take();
                }
                search();
            }
            Some(found) = found.recv() => hub.take(found),
        }
    }
    stop.cancel();
    // Unfinished answers are completed, or cut off after a time.
    let _finished = doors.await;
    Ok(())
}

/// Serves browsers at the port.
fn open(bound: Loopback, names: Vec<String>, hub: Hub) -> tokio::task::JoinHandle<()> {
    let gate = Gate {
        port: bound.port(),
        uid: user_number(),
        names: Arc::new(Names::without_keys()),
        provost: None,
        demands_token: false,
        carriers: Carriers::default(),
    };
    let stop = hub.0.stop.clone();
    let shell = Shell::new(HubDoor { names, hub }, gate);
    let capacity = Capacity::within(&AllDoors::of_a_process_with(descriptors_max()), CONNECTIONS_MAX);
    let serve = move |accepted, guard| shell.clone().serve(accepted, guard);
    tokio::spawn(accept_loop(bound, capacity, stop, GRACE, serve))
}

/// Returns why the port cannot be opened, and the next step.
fn taken(err: &io::Error, port: u16, environment: &Environment) -> Failed {
    let other = "name another port: `all_port` in `[web]` of your provost.toml, and restart your daemons";
    if err.kind() != ErrorKind::AddrInUse {
        return Failed::new(format!("port {port} cannot be had: {err}"), other);
    }
    if let Some((root, pid, door)) = daemon_at(port, environment) {
        let what = if door == Door::Web { "its own page" } else { door.name() };
        let why = format!("port {port} is taken by the daemon of {root} (process {pid}), for {what}");
        let next = format!(
            "give that door another port, `port` in `[{}]`, and restart that daemon; or {other}",
            door.name()
        );
        return Failed::new(why, next);
    }
    let who = match listener_at(port) {
        Some(it) => match it.process {
            Some((pid, command)) => format!("process {pid} ({command})"),
            None => format!("a process of the user with uid {}", it.uid),
        },
        None => "another process".into(),
    };
    Failed::new(format!("port {port} is taken by {who}"), format!("end that process, or {other}"))
}

/// Returns the daemon of this user that uses a port: its repository, its process, and the door.
fn daemon_at(port: u16, environment: &Environment) -> Option<(String, u32, Door)> {
    let files = daemons::files(environment, DAEMONS_ASKED_MAX).ok()?.0;
    files.iter().find_map(|file| {
        let Some(Listed::Runs { places, .. }) = daemons::look(file, environment) else { return None };
        let ports = Ports::of(&places);
        let runs = process_began(ports.pid).is_ok_and(|began| began == Some(ports.began));
        let door = Door::ALL.iter().copied().find(|it| ports.of_door(*it) == Some(port));
        door.filter(|_| runs).map(|door| (places.root.display().to_string(), ports.pid, door))
    })
}
