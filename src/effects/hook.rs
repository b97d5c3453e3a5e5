//! Carries out the effects `RunHook` and `SignalAck`.
//!
//! ```text
//!   [owed] --a place is free--> [running] --it ends, or its time does--> settled
//!     |                            |
//!     |  given up: nothing         +-- daemon stops or dies: killed, still owed, runs again after the next start
//!     +-- ACK: released as soon as it runs
//! ```
//! Every run of a pending hook has the same number in its environment, so that a hook can recognise a repeat. An ACK
//! stays pending as long as a hook that it releases, so that it releases a repeat too. DevIt 1.9.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::ack::{Endpoint, sweep};
use super::engine_handle::EngineHandle;
use super::keeper;
use provost_base::limits::{HOOK_COMPLAINT_MAX, HOOK_END_MS_MAX};
use provost_base::{EffectId, Json, TaskId, Timestamp};
use provost_domain::command::Record;
use provost_domain::view::View;
use provost_domain::{Notice, State};

/// The command that runs for every notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookCommand {
    /// The command line, for a login shell.
    pub line: String,
    /// How long the command may run.
    pub timeout: Duration,
    /// Variables that the configuration adds.
    pub env: BTreeMap<String, String>,
}

/// The message for a hook: variables, and the whole message as the content of a file.
pub type HookMessage = (Vec<(&'static str, String)>, String);

/// The parts of the daemon that hooks need.
pub struct HookParts {
    /// The command, as the configuration has it now.
    pub command: watch::Receiver<Option<Arc<HookCommand>>>,
    /// The door's words for a notice.
    pub words: Box<dyn Fn(&Notice) -> HookMessage + Send + Sync>,
    /// Folder for the private folders of notifications; ours alone, emptied at start.
    pub folder: PathBuf,
    /// The directory in which hooks begin: the workspace.
    pub root: PathBuf,
    /// The executable that calls [`keep_if_asked`](super::keep_if_asked) first.
    pub executable: PathBuf,
    /// The number of hooks that may run at once; at least one. The others wait.
    pub concurrent: usize,
}

/// Names of variables that hooks get from the daemon's environment: the user, the language, and the way to the desktop.
const TAKEN_OVER: [&str; 25] = [
    "COLORTERM",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
    "XDG_SESSION_TYPE",
    "XDG_STATE_HOME",
];

/// A hook that is owed, as this module sees it.
struct PendingHook {
    effect: EffectId,
    task: TaskId,
    acked: CancellationToken,
    over: CancellationToken,
}

/// State that all hooks share.
pub(super) struct Hooks {
    handle: EngineHandle,
    parts: HookParts,
    queue: mpsc::UnboundedSender<Arc<PendingHook>>,
    known: Mutex<HashMap<TaskId, Vec<Arc<PendingHook>>>>,
}

/// The end of a run.
enum End {
    Code(i32),
    TimedOut(Duration),
    NotStarted(String),
    Killed,
    /// The daemon stops; the hook stays owed.
    Stopped,
}

impl Hooks {
    pub(super) fn new(handle: EngineHandle, parts: HookParts) -> Arc<Self> {
        let (queue, owed) = mpsc::unbounded_channel();
        let free = Arc::new(Semaphore::new(parts.concurrent.max(1)));
        let hooks = Arc::new(Self { handle, parts, queue, known: Mutex::default() });
        hooks.handle.tracker.spawn(hooks.clone().hand_out(owed, free));
        hooks
    }

    /// Removes the leftovers of an earlier daemon. Runs before the first hook.
    pub(super) async fn sweep(&self) {
        let folder = self.parts.folder.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || sweep(&folder)).await {
            tracing::warn!(%error, "folders of earlier hooks were not removed");
        }
    }

    /// Queues a hook that is owed.
    pub(super) fn run(&self, effect: EffectId, task: TaskId) {
        let (acked, over) = (CancellationToken::new(), CancellationToken::new());
        let known = Arc::new(PendingHook { effect, task: task.clone(), acked, over });
        self.known().entry(task).or_default().push(known.clone());
        // The receiver is gone only when the daemon stops; then the hook stays owed.
        let _stopping = self.queue.send(known);
    }

    /// Releases every hook of the task that was owed before this release.
    pub(super) fn signal(self: &Arc<Self>, effect: EffectId, task: &TaskId) {
        let waiting = self.known().get(task).cloned().unwrap_or_default();
        waiting.iter().for_each(|hook| hook.acked.cancel());
        let handle = self.handle.clone();
        self.handle.tracker.spawn(async move {
            for hook in waiting {
                tokio::select! {
                    biased;
                    () = hook.over.cancelled() => {}
                    () = handle.shutdown.cancelled() => return,
                }
            }
            handle.settle(effect).await;
        });
    }

    /// Begins hooks in the order in which they became owed, as places become free.
    async fn hand_out(
        self: Arc<Self>,
        mut owed: mpsc::UnboundedReceiver<Arc<PendingHook>>,
        free: Arc<Semaphore>,
    ) {
        loop {
            let place = tokio::select! {
                biased;
                () = self.handle.shutdown.cancelled() => return,
                place = free.clone().acquire_owned() => place,
            };
            let Ok(place) = place else { return };
            let next = tokio::select! {
                biased;
                () = self.handle.shutdown.cancelled() => return,
                next = owed.recv() => next,
            };
            let Some(hook) = next else { return };
            let span = tracing::info_span!("hook", task = %hook.task, effect = %hook.effect);
            self.handle.tracker.spawn(self.clone().carry_out(hook, place).instrument(span));
        }
    }

    async fn carry_out(self: Arc<Self>, hook: Arc<PendingHook>, _place: OwnedSemaphorePermit) {
        let found = self.handle.look_at(OwedHook(hook.effect)).await;
        // If the daemon stops, the core cannot say whether the hook is owed: then it stays so.
        if let Ok(Some(notice)) = found {
            let end = self.run_once(&hook, notice).await;
            if let Some(trouble) = end.trouble() {
                tracing::warn!("hook {trouble}");
                let details = json!({ "effect": hook.effect, "why": trouble });
                let (what, subject) = ("hook.failed".into(), hook.task.as_str().into());
                // The trouble goes on record, and is no reason to run the hook again.
                let record = Record { what, subject, details: Json::from_value(&details) };
                let _busy = self.handle.tell(record).await;
            }
            if !matches!(end, End::Stopped) {
                self.handle.settle(hook.effect).await;
            }
        }
        self.forget(&hook);
    }

    async fn run_once(self: &Arc<Self>, hook: &PendingHook, notice: Arc<Notice>) -> End {
        let Some(command) = self.parts.command.borrow().clone() else {
            return End::NotStarted("is not in the configuration any more".into());
        };
        let hooks = self.clone();
        let made = tokio::task::spawn_blocking(move || {
            let (variables, payload) = (hooks.parts.words)(&notice);
            Endpoint::make(&hooks.parts.folder, payload.as_bytes()).map(|endpoint| (variables, endpoint))
        });
        let (variables, mut endpoint) = match made.await {
            Ok(Ok(made)) => made,
            Ok(Err(err)) => {
                return End::NotStarted(format!("was not started, its folder cannot be made: {err}"));
            }
            Err(err) if err.is_panic() => {
                return End::NotStarted("was not started, its words cannot be found".into());
            }
            // The runtime is shutting down.
            Err(_) => return End::Stopped,
        };
        let mut process = self.command(hook.effect, &command, variables);
        process.envs(endpoint.variables());
        let end = match process.spawn() {
            Ok(child) => self.attend(child, &mut endpoint, &hook.acked, command.timeout).await,
            Err(err) => End::NotStarted(format!("was not started: {err}")),
        };
        endpoint.remove().await;
        end
    }

    /// Makes the environment from nothing. The documented variables win over those that the configuration adds.
    fn command(&self, effect: EffectId, command: &HookCommand, told: Vec<(&'static str, String)>) -> Command {
        let mut process = Command::new(&self.parts.executable);
        process.arg(keeper::ARGUMENT).args(keeper::shell(&command.line)).current_dir(&self.parts.root);
        process.env_clear().env("PATH", keeper::USUAL_PATH).envs(taken_over(std::env::vars_os()));
        // A worker may have made the programs in the workspace; hooks have to name those by their paths.
        if let Ok(path) = std::env::join_paths(provost_system::path_outside(&[&self.parts.root]))
            && !path.is_empty()
        {
            process.env("PATH", path);
        }
        process.envs(&command.env).envs(told).env("PROVOST_EFFECT_ID", effect.to_string());
        process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        process
    }

    /// Follows a hook to its end. No process of the hook is left afterwards.
    async fn attend(
        &self,
        mut child: Child,
        endpoint: &mut Endpoint,
        acked: &CancellationToken,
        most: Duration,
    ) -> End {
        let keeper = child.id();
        let complaint = tokio::spawn(complaint(child.stderr.take()));
        // Waiting for a child closes its standard input; closing ours is the order to end.
        let order = child.stdin.take();
        let end = tokio::select! {
            biased;
            () = self.handle.shutdown.cancelled() => End::Stopped,
            ended = child.wait() => match ended.ok().and_then(|status| status.code()) {
                Some(code) => End::Code(code),
                None => End::Killed,
            },
            () = tokio::time::sleep(most) => End::TimedOut(most),
            never = endpoint.serve(acked) => match never {},
        };
        drop(order);
        let patience = Duration::from_millis(2 * HOOK_END_MS_MAX);
        if timeout(patience, child.wait()).await.is_err() {
            tracing::error!("a hook's processes do not end");
            // This fails only if the process has ended by now.
            let _gone = child.kill().await;
        }
        if let (Some(keeper), Some(None)) = (keeper, ended_with(&mut child)) {
            // The task returns nothing, and only a shutdown of the runtime cancels it.
            let _ended = tokio::task::spawn_blocking(move || keeper::end_orphans(keeper)).await;
        }
        let said = timeout(patience, complaint).await.ok().and_then(Result::ok).unwrap_or_default();
        if end.trouble().is_some() && !said.is_empty() {
            tracing::warn!(stderr = ?String::from_utf8_lossy(&said), "hook said");
        }
        end
    }

    /// Forgets a hook that needs nothing more.
    fn forget(&self, hook: &Arc<PendingHook>) {
        let mut known = self.known();
        if let Some(hooks) = known.get_mut(&hook.task) {
            hooks.retain(|it| !Arc::ptr_eq(it, hook));
            if hooks.is_empty() {
                known.remove(&hook.task);
            }
        }
        hook.over.cancel();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, Vec<Arc<PendingHook>>>> {
        // Inserting and removing leave it valid at every moment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl End {
    /// Returns the trouble that is logged; `None` for a run without trouble.
    fn trouble(&self) -> Option<String> {
        match self {
            End::Code(0) | End::Stopped => None,
            End::Code(code) => Some(format!("ended with exit code {code}")),
            End::TimedOut(most) => Some(format!("was killed after {}s", most.as_secs())),
            End::NotStarted(why) => Some(why.clone()),
            End::Killed => Some("was killed".into()),
        }
    }
}

/// Returns the exit code of a process, which is `None` if it was killed; `None` as a whole while the process runs.
fn ended_with(child: &mut Child) -> Option<Option<i32>> {
    child.try_wait().ok().flatten().map(|status| status.code())
}

fn taken_over(all: impl Iterator<Item = (OsString, OsString)>) -> impl Iterator<Item = (OsString, OsString)> {
    all.filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            TAKEN_OVER.contains(&name) || keeper::TAKEN_OVER_TOO.contains(&name) || name.starts_with("LC_")
        })
    })
}

/// Returns the beginning of a hook's error output; the rest is read and dropped, so that the hook never waits for us.
async fn complaint(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    let Some(mut from) = from else { return kept };
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let room = HOOK_COMPLAINT_MAX.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
    }
    kept
}

/// The view of a hook's notice, if the hook is still owed.
#[derive(Clone, Copy)]
struct OwedHook(EffectId);

impl View for OwedHook {
    type Out = Option<Arc<Notice>>;

    fn look(self, _now: Timestamp, state: &State) -> Self::Out {
        state.hooks.get(self.0).cloned()
    }
}
