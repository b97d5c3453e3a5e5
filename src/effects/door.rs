//! The way from inside a jail to the daemon: opened for one run, closed with that run.
//!
//! The door's protocol defines its messages; this module only makes the door, hands it to the jail, and removes it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::prepare::jail_refused;
use provost_domain::{Failure, Task, Tier};
use provost_jail::{DoorSocket, Draft, Handle, find_place};

/// Opens a door for a task's run, within the runtime.
pub type OpenDoor = Arc<dyn Fn(&Task, Tier) -> io::Result<WorkersDoor> + Send + Sync>;

/// An open door. It closes when this is dropped.
#[derive(Debug)]
pub struct WorkersDoor {
    /// How the worker reaches the door.
    pub door_socket: DoorSocket,
    /// The worker's end of [`DoorSocket::Inherited`].
    pub socket: Option<Handle>,
    /// Variables that name the door to the worker.
    pub environment: Vec<(&'static str, String)>,
    /// The guard that closes the door when it is dropped.
    pub stop: DropGuard,
    /// The task that ends when no connection is served any more and everything is on record.
    pub served: JoinHandle<()>,
}

impl WorkersDoor {
    /// Makes a door that `stop` closes.
    pub fn new(door_socket: DoorSocket, stop: CancellationToken, served: JoinHandle<()>) -> Self {
        Self { door_socket, socket: None, environment: Vec::new(), stop: stop.drop_guard(), served }
    }

    /// Serves the messages that were sent before, and admits no further connection.
    pub(super) async fn close(self) {
        let Self { stop, served, socket, .. } = self;
        drop((stop, socket));
        // The server ends by itself soon; if it has panicked, the door is closed, too.
        let _ended = served.await;
    }
}

/// Shows the worker its door, and the program by which a script speaks there.
pub(super) fn show(draft: &mut Draft, door: &WorkersDoor, program: Option<&PathBuf>) -> Result<(), Failure> {
    for (name, value) in &door.environment {
        draft.environment.set(name, value).map_err(jail_refused)?;
    }
    draft.door_socket = Some(door.door_socket.clone());
    // A program that has been replaced since is not shown; everything else works without it.
    let Some(place) = program.and_then(|path| find_place(path).ok()) else { return Ok(()) };
    let seen = |path: &std::path::Path| {
        path.starts_with("/usr") || draft.writable.iter().any(|place| path.starts_with(place.path()))
    };
    let folder = place.path().parent().and_then(|folder| folder.to_str()).map(str::to_owned);
    if !seen(place.path()) {
        draft.read_only.push(place);
    }
    folder.map_or(Ok(()), |folder| draft.environment.append_path(&folder)).map_err(jail_refused)
}
