//! The daemon's side of a running worker: starts the supervisor, follows it, and ends it.
//!
//! One task for each worker owns the socket to the supervisor and waits for the first of three: the worker's end,
//! its time limit, or an order from [`Running`]. Closing the socket is the kill switch. The supervisor takes the
//! socket's end as the order to kill everything, so that it works alike for a stopped task, a dropped [`Running`], a runtime
//! that shuts down and a daemon that was killed.
#![forbid(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::child::{First, clear_group, sweep_orphans};
use super::control::{Breach, Ended, HANDED_MAX, REFUSED, Said, SetupError, Step};
use super::launch::{Exit, ExitReason, GROUPS_VARIABLE, Groups, Handle, Running, Supervisor};
use super::layer::Layer;
use super::output::{LiveOutput, Stream};
use super::plan::Plan;
use provost_base::limits::{JAIL_END_MS_MAX, JAIL_GRACE_MS, JAIL_SETUP_MS_MAX, OUTLETS_MAX, PLAN_BYTES_MAX};

/// Sends the request to a new supervisor and waits until the worker runs, or cannot run.
pub(super) async fn start(
    supervisor: &Supervisor,
    (request, descriptors): (Vec<u8>, Vec<Handle>),
    plan: &Plan,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    let (mut child, mut control) =
        spawn(supervisor, plan).map_err(|e| SetupError::new(Step::Supervisor, e))?;
    let pid = child.id().unwrap_or_default();
    let readers = vec![
        reader(child.stdout.take(), Stream::Out, output.clone()),
        reader(child.stderr.take(), Stream::Err, output.clone()),
    ];
    let deadline = Instant::now() + plan.limits().wall.as_duration();
    let hello = greet(&mut control, &request, descriptors, plan);
    let said = match timeout(Duration::from_millis(JAIL_SETUP_MS_MAX), hello).await {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(e)) => Err(SetupError::new(Step::Supervisor, e)),
        Err(_) => Err(SetupError::new(Step::Supervisor, format!("no answer within {JAIL_SETUP_MS_MAX} ms"))),
    };
    let (layers, first, scratch, outlets) = match said {
        Ok((Said::Ready { layers, first, scratch }, outlets)) => {
            (layers, First::hold(first), scratch, outlets)
        }
        Ok((Said::Refused(error), _)) => return Err(refused(child, control, readers, error).await),
        Ok((Said::Ended(_) | Said::Outlets(_), _)) => {
            let error = SetupError::new(Step::Supervisor, "ended before it began");
            return Err(refused(child, control, readers, error).await);
        }
        Err(error) => return Err(refused(child, control, readers, error).await),
    };
    let group = supervisor.groups().cloned().map(|groups| (groups, pid));
    let (stop, stopped) = oneshot::channel();
    let (tell, exit) = watch::channel(None);
    let keeper =
        Keeper { child, control, deadline, stopped, readers, output: output.clone(), first, scratch, group };
    tokio::spawn(async move {
        let exit = keeper.keep().await;
        tell.send_replace(Some(exit));
    });
    Ok(Running { supervisor: pid, layers, output, stop: Some(stop), exit, outlets })
}

fn spawn(supervisor: &Supervisor, plan: &Plan) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(supervisor.executable());
    if let Some((uid, gid)) = supervisor.user() {
        // With both set and no groups named, the standard library also drops all other groups.
        command.gid(gid).uid(uid);
    }
    if !plan.lacks(Layer::Environment) {
        command.env_clear();
    }
    if let Some(groups) = supervisor.groups() {
        command.env(GROUPS_VARIABLE, serde_json::to_string(groups)?);
    }
    let child = command
        .arg(super::child::ARGUMENT)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    Ok((child, UnixStream::from_std(ours)?))
}

/// Reads one stream to its end, faster than any worker can write it and into bounded memory.
fn reader(
    from: Option<impl AsyncRead + Unpin + Send + 'static>,
    stream: Stream,
    to: LiveOutput,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(mut from) = from else { return };
        let mut block = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut block).await {
            to.push(stream, &block[..read]);
            to.room().await;
        }
    })
}

/// Sends descriptors with one byte, after the request that announces them. Closes our copies.
async fn hand_over(control: &UnixStream, descriptors: Vec<Handle>) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    if descriptors.is_empty() {
        return Ok(());
    }
    let fds: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    control
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::Error::other("too many descriptors at once"));
            }
            let sent = sendmsg(control, &[io::IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
            if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        })
        .await
}

/// Sends the request and waits for the answer whether the worker runs.
async fn greet(
    control: &mut UnixStream,
    request: &[u8],
    descriptors: Vec<Handle>,
    plan: &Plan,
) -> io::Result<(Said, Vec<TcpListener>)> {
    control.write_all(request).await?;
    hand_over(control, descriptors).await?;
    let outlets = match plan.outlets.is_empty() {
        true => Ok(Vec::new()),
        false => receive_outlets(control).await?,
    };
    match outlets {
        Ok(outlets) => Ok((listen(control).await?, outlets)),
        Err(said) => Ok((said, Vec::new())),
    }
}

/// Receives the listeners of the jail's network, in the message before all others; or another message that came instead.
async fn receive_outlets(control: &mut UnixStream) -> io::Result<Result<Vec<TcpListener>, Said>> {
    let mut len = [0; 4];
    let (mut read, mut descriptors) = (0, Vec::new());
    while read < len.len() {
        let received =
            control.async_io(Interest::READABLE, || receive(&*control, &mut len[read..], &mut descriptors));
        match received.await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            some => read += some,
        }
    }
    let said = listen_on(control, u32::from_le_bytes(len)).await?;
    let Said::Outlets(at) = said else { return Ok(Err(said)) };
    if at.len() != descriptors.len() {
        return Err(io::Error::other(
            "listeners were lost on the way; the daemon may have too many files open",
        ));
    }
    Ok(Ok(descriptors.into_iter().map(TcpListener::from).collect()))
}

/// Reads once, with the descriptors that come along.
fn receive(from: impl AsFd, into: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 * OUTLETS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(from, &mut [IoSliceMut::new(into)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            descriptors.extend(came);
        }
    }
    Ok(received.bytes)
}

async fn listen(control: &mut UnixStream) -> io::Result<Said> {
    let len = control.read_u32_le().await?;
    listen_on(control, len).await
}

/// Reads the rest of a message of `len` bytes.
async fn listen_on(control: &mut UnixStream, len: u32) -> io::Result<Said> {
    if len as usize > PLAN_BYTES_MAX {
        return Err(io::Error::other("the supervisor's message is too long"));
    }
    let mut body = vec![0; len as usize];
    control.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// Makes sure that a supervisor that refuses, or does not answer, is gone, and returns its reason.
async fn refused(
    mut child: Child,
    control: UnixStream,
    readers: Vec<JoinHandle<()>>,
    error: SetupError,
) -> SetupError {
    drop(control);
    let code = match timeout(Duration::from_millis(JAIL_END_MS_MAX), child.wait()).await {
        Ok(Ok(status)) => status.code(),
        _ => {
            kill_supervisor(&mut child).await;
            None
        }
    };
    readers.iter().for_each(JoinHandle::abort);
    SetupError { exit: code.or(error.exit.filter(|code| *code == REFUSED)), ..error }
}

struct Keeper {
    child: Child,
    control: UnixStream,
    deadline: Instant,
    stopped: oneshot::Receiver<()>,
    readers: Vec<JoinHandle<()>>,
    output: LiveOutput,
    first: Option<First>,
    scratch: Option<PathBuf>,
    /// The place of the worker's control group, and the number in the group's name.
    group: Option<(Groups, u32)>,
}

impl Keeper {
    async fn keep(mut self) -> Exit {
        let mut is_asked = false;
        let early = tokio::select! {
            biased;
            said = listen(&mut self.control) => Err(said),
            () = sleep_until(self.deadline) => Ok(ExitReason::TimedOut),
            asked = &mut self.stopped => {
                is_asked = asked.is_ok();
                Ok(ExitReason::Cancelled)
            }
        };
        let (said, forced) = match early {
            Err(said) => (said.ok(), None),
            Ok(reason) => {
                let said = if is_asked { self.ask_for_the_end().await } else { None };
                (if said.is_some() { said } else { self.order_the_end().await }, Some(reason))
            }
        };
        let exit = match said {
            Some(Said::Ended(ended)) => exit_of(ended, forced),
            _ => {
                self.clean_up_after_the_supervisor().await;
                Exit { reason: forced.unwrap_or(ExitReason::SupervisorLost), ..Exit::default() }
            }
        };
        // The supervisor has nothing left to do; waiting collects its process.
        if timeout(Duration::from_millis(JAIL_END_MS_MAX), self.child.wait()).await.is_err() {
            kill_supervisor(&mut self.child).await;
        }
        for reader in &mut self.readers {
            // No process holds the other end any more, so the rest is short; but
            // its reader may be slow.
            if self.output.is_paced() {
                let _read = (&mut *reader).await;
            } else if timeout(Duration::from_millis(JAIL_END_MS_MAX), &mut *reader).await.is_err() {
                reader.abort();
            }
        }
        self.output.finish();
        exit
    }

    /// Asks the worker to end, and gives it the time to do so.
    async fn ask_for_the_end(&mut self) -> Option<Said> {
        self.control.write_all(&[1]).await.ok()?;
        let last = timeout(Duration::from_millis(JAIL_GRACE_MS), listen(&mut self.control));
        last.await.ok()?.ok()
    }

    /// Closes our side of the socket and waits for the supervisor's last message.
    async fn order_the_end(&mut self) -> Option<Said> {
        self.control.shutdown().await.ok()?;
        let last = timeout(Duration::from_millis(JAIL_END_MS_MAX), listen(&mut self.control));
        last.await.ok()?.ok()
    }

    /// Cleans up after a dead supervisor. In `ns` the jail dies with it, which takes a moment. In `ll` its processes have become
    /// children of the daemon, and their folder is still there.
    async fn clean_up_after_the_supervisor(&mut self) {
        kill_supervisor(&mut self.child).await;
        let (first, scratch, group) = (self.first.take(), self.scratch.take(), self.group.take());
        let swept = tokio::task::spawn_blocking(move || {
            if let Some((groups, supervisor)) = group {
                clear_group(&groups, supervisor);
            }
            if let Some(first) = first {
                first.end();
            }
            let swept = sweep_orphans();
            scratch.map(std::fs::remove_dir_all);
            swept
        });
        match swept.await {
            Ok(0) | Err(_) => tracing::warn!("a worker's supervisor died"),
            Ok(swept) => tracing::warn!(swept, "a worker's supervisor died, its processes were killed"),
        }
    }
}

fn exit_of(ended: Ended, forced: Option<ExitReason>) -> Exit {
    let reason = match (forced, ended) {
        (Some(reason), _) => reason,
        (None, Ended { breach: Some(Breach::Memory), .. }) => ExitReason::OverMemory,
        (None, Ended { breach: Some(Breach::Space(space)), .. }) => ExitReason::OverSpace(space),
        (None, Ended { breach: Some(Breach::Protection), .. }) => ExitReason::ProtectionLost,
        (None, Ended { breach: Some(Breach::Repository), .. }) => ExitReason::RepositoryMade,
        (None, Ended { code: Some(code), .. }) => ExitReason::Code(code),
        (None, Ended { signal: Some(signal), .. }) => ExitReason::Signal(signal),
        (None, _) => ExitReason::SupervisorLost,
    };
    Exit { reason, swept: ended.swept, processes_reached: ended.processes_reached }
}

/// Ends a supervisor that does not answer, and collects it.
async fn kill_supervisor(child: &mut Child) {
    // This fails only for a supervisor that has been collected already.
    let _gone = child.kill().await;
}
