//! The daemon's side: start the supervisor, follow it, end it.
//!
//! One task per worker owns the socket to the supervisor and waits for whatever comes first: the worker's end,
//! its time limit, or a word from [`Running`]. Closing the socket is the kill switch. The supervisor takes its
//! end as the order to kill everything, so that it works for a stopped task, a dropped [`Running`], a runtime
//! that shuts down and a daemon that was killed, all alike.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::child::{kill_supervisor, sweep_orphans};
use super::control::{Ended, REFUSED, Request, Said, SetupError, Step, frame};
use super::output::{LiveOutput, Stream};
use super::plan::{Network, Plan};
use crate::base::limits::{JAIL_END_MS_MAX, JAIL_SETUP_MS_MAX, PLAN_BYTES_MAX, STDIN_BYTES_MAX};

/// How the supervisor is started: which executable has it.
#[derive(Clone, Debug)]
pub struct Supervisor {
    executable: PathBuf,
}

impl Default for Supervisor {
    /// This very executable, even if its file has been replaced since.
    fn default() -> Self {
        Self { executable: "/proc/self/exe".into() }
    }
}

impl Supervisor {
    /// Another executable that calls [`main_if_asked`](super::main_if_asked) first.
    pub fn at(executable: impl Into<PathBuf>) -> Self {
        Self { executable: executable.into() }
    }

    pub(super) fn executable(&self) -> &Path {
        &self.executable
    }
}

/// Why a worker is not running any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitReason {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal ended it: its own fault, or a limit.
    Signal(i32),
    /// Its wall time was over.
    TimedOut,
    /// It was stopped, or its [`Running`] was dropped.
    Cancelled,
    /// All its processes together had more memory than allowed.
    OverMemory,
    /// Its supervisor died; everything that was left has been killed.
    SupervisorLost,
}

/// How a worker ended. When one has this, no process of the worker is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit {
    /// Why.
    pub reason: ExitReason,
    /// Processes that outlived the worker's first one and had to be killed. Counted in tier `ll`; in `ns` the
    /// kernel ends them with the namespace, uncounted.
    pub swept: u32,
}

/// A worker that runs in its jail. Dropping it ends the worker.
#[derive(Debug)]
pub struct Running {
    supervisor: u32,
    layers: Vec<String>,
    output: LiveOutput,
    stop: Option<oneshot::Sender<()>>,
    exit: watch::Receiver<Option<Exit>>,
}

impl Running {
    /// The supervisor's process id.
    pub fn supervisor(&self) -> u32 {
        self.supervisor
    }

    /// What holds the worker, as reported by the supervisor after everything was in force.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// What the worker has said and will say.
    pub fn output(&self) -> &LiveOutput {
        &self.output
    }

    /// Orders the end. Returns at once; [`Running::wait`] tells when it has come.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until no process of the worker is left and its output is complete. Can be dropped and called again.
    pub async fn wait(&mut self) -> Exit {
        let lost = Exit { reason: ExitReason::SupervisorLost, swept: 0 };
        match self.exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(lost),
            // The runtime is shutting down; the socket is closed with it.
            Err(_) => lost,
        }
    }
}

/// Starts a worker. Its output goes to `output`, from the first byte. `input` is what it reads on its standard
/// input; `None` gives it `/dev/null`.
///
/// # Errors
/// [`SetupError`] when any layer of the jail could not be put in force. Nothing of the worker has run then.
pub async fn launch(
    supervisor: &Supervisor,
    plan: &Plan,
    input: Option<Vec<u8>>,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    let request = request(plan, input.as_deref())?;
    let (mut child, mut control) = start(supervisor).map_err(|e| SetupError::new(Step::Supervisor, e))?;
    let pid = child.id().unwrap_or_default();
    let readers = vec![
        reader(child.stdout.take(), Stream::Out, output.clone()),
        reader(child.stderr.take(), Stream::Err, output.clone()),
    ];
    let deadline = Instant::now() + plan.limits.wall.as_duration();
    let hello = async {
        control.write_all(&request).await?;
        if let Some(input) = &input {
            control.write_all(input).await?;
        }
        listen(&mut control).await
    };
    let said = match timeout(Duration::from_millis(JAIL_SETUP_MS_MAX), hello).await {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(e)) => Err(SetupError::new(Step::Supervisor, e)),
        Err(_) => Err(SetupError::new(Step::Supervisor, format!("no answer within {JAIL_SETUP_MS_MAX} ms"))),
    };
    let (layers, scratch) = match said {
        Ok(Said::Ready { layers, scratch }) => (layers, scratch),
        Ok(Said::Refused(error)) => return Err(refused(child, control, readers, error).await),
        Ok(Said::Ended(_)) => {
            let error = SetupError::new(Step::Supervisor, "ended before it began");
            return Err(refused(child, control, readers, error).await);
        }
        Err(error) => return Err(refused(child, control, readers, error).await),
    };
    let (stop, stopped) = oneshot::channel();
    let (tell, exit) = watch::channel(None);
    let keeper = Keeper { child, control, deadline, stopped, readers, output: output.clone(), scratch };
    tokio::spawn(async move {
        let exit = keeper.keep().await;
        tell.send_replace(Some(exit));
    });
    Ok(Running { supervisor: pid, layers, output, stop: Some(stop), exit })
}

fn request(plan: &Plan, input: Option<&[u8]>) -> Result<Vec<u8>, SetupError> {
    if plan.network != Network::None {
        return Err(SetupError::new(Step::Grant, "network grants are not available in this version"));
    }
    if input.is_some_and(|input| input.len() > STDIN_BYTES_MAX) {
        return Err(SetupError::new(Step::Input, format!("more than {STDIN_BYTES_MAX} bytes of input")));
    }
    let request = Request { plan: plan.clone(), input: input.map(<[u8]>::len) };
    let request = frame(&request).map_err(|e| SetupError::new(Step::Supervisor, e))?;
    if request.len() > PLAN_BYTES_MAX {
        return Err(SetupError::new(Step::Grant, format!("the plan has more than {PLAN_BYTES_MAX} bytes")));
    }
    Ok(request)
}

fn start(supervisor: &Supervisor) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(supervisor.executable())
        .arg(super::child::ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    Ok((child, UnixStream::from_std(ours)?))
}

/// Reads one stream to its end, faster than anyone can write it and into bounded memory.
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
        }
    })
}

async fn listen(control: &mut UnixStream) -> io::Result<Said> {
    let len = control.read_u32_le().await?;
    if len as usize > PLAN_BYTES_MAX {
        return Err(io::Error::other("the supervisor's message is too long"));
    }
    let mut body = vec![0; len as usize];
    control.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// The supervisor has refused, or does not answer: make sure that it is gone, and hand on its reason.
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
    scratch: Option<PathBuf>,
}

impl Keeper {
    async fn keep(mut self) -> Exit {
        let early = tokio::select! {
            biased;
            said = listen(&mut self.control) => Err(said),
            () = sleep_until(self.deadline) => Ok(ExitReason::TimedOut),
            _ = &mut self.stopped => Ok(ExitReason::Cancelled),
        };
        let (said, forced) = match early {
            Err(said) => (said.ok(), None),
            Ok(reason) => (self.order_the_end().await, Some(reason)),
        };
        let exit = match said {
            Some(Said::Ended(ended)) => exit_of(ended, forced),
            _ => {
                self.clean_up_after_the_supervisor().await;
                Exit { reason: forced.unwrap_or(ExitReason::SupervisorLost), swept: 0 }
            }
        };
        // It has nothing left to do; waiting collects its process.
        if timeout(Duration::from_millis(JAIL_END_MS_MAX), self.child.wait()).await.is_err() {
            kill_supervisor(&mut self.child).await;
        }
        for reader in &mut self.readers {
            // Nobody holds the other end any more, so what is left to read is short.
            if timeout(Duration::from_millis(JAIL_END_MS_MAX), &mut *reader).await.is_err() {
                reader.abort();
            }
        }
        self.output.finish();
        exit
    }

    /// Closes our side of the socket and waits for the supervisor's last word.
    async fn order_the_end(&mut self) -> Option<Said> {
        self.control.shutdown().await.ok()?;
        let last = timeout(Duration::from_millis(JAIL_END_MS_MAX), listen(&mut self.control));
        last.await.ok()?.ok()
    }

    /// In `ns` the jail died with its supervisor. In `ll` its processes have become ours, and their folder is
    /// still there.
    async fn clean_up_after_the_supervisor(&mut self) {
        kill_supervisor(&mut self.child).await;
        let scratch = self.scratch.take();
        let swept = tokio::task::spawn_blocking(move || {
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
        (None, Ended { over_memory: true, .. }) => ExitReason::OverMemory,
        (None, Ended { code: Some(code), .. }) => ExitReason::Code(code),
        (None, Ended { signal: Some(signal), .. }) => ExitReason::Signal(signal),
        (None, _) => ExitReason::SupervisorLost,
    };
    Exit { reason, swept: ended.swept }
}
