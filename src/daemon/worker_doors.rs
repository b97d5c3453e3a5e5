//! Opens the doors of runs: places their sockets, and serves them.

use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use provost_auth::role;
use provost_base::limits::WORKER_CONNECTIONS_MAX;
use provost_domain::{Task, Tier};
use provost_effects::{OpenDoor, WorkersDoor};
use provost_jail::{DOOR_SOCKET, DoorSocket};
use provost_protocols::FrontDoor as _;
use provost_protocols::devit::{Devit, DoorTransport, WorkerDoor};
use provost_transport::Stream;
use provost_transport::accept::{accept_loop, serve_one};
use provost_transport::listen::{SocketFolder, bind};

/// How long reading the messages from before a run's end may take. Their senders are gone by then.
const GRACE: Duration = Duration::from_secs(2);

/// Returns the opener of doors like `like`, with sockets in `folder`, which is ours alone and emptied now.
///
/// If workers run as another user (`inherit`), they can reach no socket of ours, and all of them inherit one.
pub(super) fn opener(like: &Devit, folder: &Path, inherit: bool) -> io::Result<OpenDoor> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    provost_system::make_private_folders(folder)?;
    // The path must be the kernel's own, since a jail follows no links.
    let folder = folder.canonicalize()?;
    let like = like.clone();
    Ok(Arc::new(move |task: &Task, tier| {
        let way = if inherit || tier != Tier::Ns { DoorTransport::Inherited } else { DoorTransport::Mounted };
        let (worker, id) = (task.order.worker.clone(), task.id().clone());
        let door = like.for_run(worker, id, way, role::system()).map_err(io::Error::other)?;
        let environment = environment(task, way, &door);
        let opened = match way {
            DoorTransport::Mounted => mounted(door, &folder)?,
            DoorTransport::Inherited => inherited(door)?,
        };
        Ok(WorkersDoor { environment, ..opened })
    }))
}

fn mounted(door: WorkerDoor, folder: &Path) -> io::Result<WorkersDoor> {
    // The name is short, since some clients use its full path; a name that is in use is an error like any other.
    let name = uuid::Uuid::new_v4().simple().to_string();
    let path: PathBuf = folder.join(format!("{}.sock", &name[..12]));
    let bound = bind(&path, SocketFolder::Ours).map_err(io::Error::other)?;
    let stop = CancellationToken::new();
    let (serving, until) = (door.door(), stop.clone());
    let served = tokio::spawn(async move {
        let serve = move |stream, guard| serving.serve(stream, guard);
        accept_loop(bound, WORKER_CONNECTIONS_MAX, until, GRACE, serve).await;
        door.close().await;
    });
    Ok(WorkersDoor::new(DoorSocket::Mounted(path), stop, served))
}

fn inherited(door: WorkerDoor) -> io::Result<WorkersDoor> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = Stream::trusted(UnixStream::from_std(ours)?);
    let stop = CancellationToken::new();
    let until = stop.clone();
    let served = tokio::spawn(async move {
        serve_one(stream, until, GRACE, |stream, guard| door.door().serve(stream, guard)).await;
        door.close().await;
    });
    let opened = WorkersDoor::new(DoorSocket::Inherited, stop, served);
    Ok(WorkersDoor { socket: Some(theirs.into()), ..opened })
}

/// Returns the variables that DevIt's clients read, with a secret that only this door accepts.
fn environment(task: &Task, way: DoorTransport, door: &WorkerDoor) -> Vec<(&'static str, String)> {
    let secret = String::from_utf8_lossy(door.secret().expose()).into_owned();
    let mut environment = vec![
        ("DEVIT_IDENT", task.order.worker.to_string()),
        ("DEVIT_SECRET", secret),
        ("DEVIT_NO_AUTO_START", "1".into()),
    ];
    if way == DoorTransport::Mounted {
        for name in ["PROVOST_WORKER_SOCKET", "DEVIT_SOCK", "DEVIT_DAEMON_SOCKET"] {
            environment.push((name, DOOR_SOCKET.into()));
        }
    }
    environment
}
