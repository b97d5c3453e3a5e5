//! Workers on macOS, where Seatbelt enforces tier `ll`: the system's own `sandbox-exec`, with a profile
//! made for the plan.
//!
//! The tests, which run on Linux, do not run this; they check the profile's text. The gaps are listed
//! in [`SEATBELT_LACKS`](crate::SEATBELT_LACKS). Plans of tier `ns` are refused.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::control::{SetupError, Step};
use crate::launch::{Exit, ExitReason, Handle, Running, Supervisor};
use crate::output::{LiveOutput, Stream};
use crate::plan::{Plan, Tier};
use crate::root::{find_place, resolve_program};
use crate::seatbelt::seatbelt_profile;
use provost_base::limits::JAIL_END_MS_MAX;

/// The system's program that puts a profile in force and becomes another program.
const SANDBOX: &str = "/usr/bin/sandbox-exec";

/// A shell line that sets the limits which a shell can set, and then becomes the worker, or exits.
const LIMITS: &str = "umask 077 && ulimit -c 0 && ulimit -n \"$1\" && ulimit -u \"$2\" && ulimit -f \"$3\" && \
                      ulimit -t \"$4\" && shift 4 && exec \"$@\"; exit 125";

/// Bytes of the blocks in which a shell counts the size of a file.
const BLOCK: u64 = 512;

/// The time between two checks of a worker's processes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Starts a worker, if its plan is one for this system.
pub(crate) async fn start(
    _supervisor: &Supervisor,
    (request, descriptors): (Vec<u8>, Vec<Handle>),
    plan: &Plan,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    if plan.tier() != Tier::Ll {
        let why = "this system has no namespaces; set `tier = \"ll\"`, which Seatbelt keeps, and let policy accept it";
        return Err(SetupError::new(Step::Namespaces, why));
    }
    unchanged(plan)?;
    let scratch = Scratch::new().map_err(|e| SetupError::new(Step::Scratch, e))?;
    let profile = seatbelt_profile(plan, &scratch.0).map_err(|e| SetupError::new(Step::Grant, e))?;
    let input = Input::of(&request, descriptors, plan);
    let mut child = command(plan, &profile, &scratch.0)
        .stdin(input.stdio())
        .spawn()
        .map_err(|e| SetupError::new(Step::Execute, format!("{SANDBOX}: {e}")))?;
    input.feed(&mut child);
    let pid = child.id().unwrap_or_default();
    let readers = vec![
        reader(child.stdout.take(), Stream::Out, output.clone()),
        reader(child.stderr.take(), Stream::Err, output.clone()),
    ];
    let (stop, stopped) = oneshot::channel();
    let (tell, exit) = watch::channel(None);
    let deadline = Instant::now() + plan.limits().wall.as_duration();
    let most = plan.limits().resident_bytes;
    let keeper =
        Keeper { child, pid, family: ProcessTree::default(), deadline, most, stopped, _scratch: scratch };
    let finished = output.clone();
    tokio::spawn(async move {
        let exit = keeper.keep().await;
        for reader in readers {
            let _late = tokio::time::timeout(Duration::from_millis(JAIL_END_MS_MAX), reader).await;
        }
        finished.finish();
        tell.send_replace(Some(exit));
    });
    let layers = vec!["seatbelt".into(), "resource limits".into()];
    Ok(Running { supervisor: pid, layers, output, stop: Some(stop), exit, outlets: Vec::new() })
}

/// Checks that program and directories are still those of the time when the task was accepted.
fn unchanged(plan: &Plan) -> Result<(), SetupError> {
    let program = resolve_program(plan.program().asked()).map_err(|e| SetupError::new(Step::Program, e))?;
    if program != *plan.program() {
        return Err(SetupError::new(Step::Program, "has changed since the task was accepted"));
    }
    for place in plan.writable.iter().chain(&plan.read_only) {
        let found = find_place(place.path()).map_err(|e| SetupError::new(Step::Sources, e))?;
        if found != *place {
            let why = format!("{} is not the one that the task was accepted for", place.path().display());
            return Err(SetupError::new(Step::Sources, why));
        }
    }
    Ok(())
}

fn command(plan: &Plan, profile: &str, scratch: &Path) -> Command {
    let limits = plan.limits();
    let mut command = Command::new(SANDBOX);
    command.args(["-p", profile, "/bin/sh", "-c", LIMITS, "provost"]);
    let numbers = [
        u64::from(limits.open_files),
        u64::from(limits.processes),
        limits.file_bytes.div_ceil(BLOCK),
        limits.cpu_seconds,
    ];
    command.args(numbers.map(|number| number.to_string()));
    command.arg(plan.program().place().path()).args(&plan.args);
    command.env_clear().envs(plan.environment.iter());
    command.env("HOME", scratch.join("home")).env("TMPDIR", scratch.join("tmp"));
    command.current_dir(plan.cwd.path()).process_group(0).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The worker's standard input.
enum Input {
    Nothing,
    Bytes(Vec<u8>),
    Handed(Handle),
}

impl Input {
    /// Takes the bytes behind the plan in the request, or the descriptor that is no door.
    fn of(request: &[u8], mut descriptors: Vec<Handle>, plan: &Plan) -> Self {
        if plan.door_socket.is_some() && !descriptors.is_empty() {
            descriptors.remove(0);
        }
        if let Some(handed) = descriptors.pop() {
            return Self::Handed(handed);
        }
        let plan_len = request.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
        match request.get(4 + plan_len..) {
            None | Some([]) => Self::Nothing,
            Some(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    fn stdio(&self) -> Stdio {
        match self {
            Self::Nothing => Stdio::null(),
            Self::Bytes(_) => Stdio::piped(),
            Self::Handed(handed) => handed.try_clone().map_or_else(|_| Stdio::null(), Stdio::from),
        }
    }

    fn feed(self, child: &mut Child) {
        if let (Self::Bytes(bytes), Some(mut to)) = (self, child.stdin.take()) {
            // A worker that does not read it has closed its end.
            tokio::spawn(async move { to.write_all(&bytes).await });
        }
    }
}

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

/// One process, as `ps` lists it: its parent, its group, its memory in bytes, and the time when it began.
#[derive(Clone, Debug)]
struct Seen {
    parent: i32,
    group: i32,
    resident: u64,
    began: String,
}

/// All processes that were ever seen to descend from a worker, each with the time when it began: the same number with
/// another time is another process.
#[derive(Default)]
struct ProcessTree(BTreeMap<i32, String>);

impl ProcessTree {
    /// Lists all processes, and returns those of the tree that are alive.
    async fn look(&mut self, worker: i32) -> BTreeMap<i32, Seen> {
        let listed =
            Command::new("/bin/ps").args(["-axo", "pid=,ppid=,pgid=,rss=,lstart="]).env_clear().output();
        let text = listed.await.map(|output| output.stdout).unwrap_or_default();
        let all: BTreeMap<i32, Seen> = String::from_utf8_lossy(&text).lines().filter_map(seen).collect();
        loop {
            let before = self.0.len();
            for (pid, one) in &all {
                let known = |id: i32| id == worker || self.0.get(&id).is_some_and(|_| all.contains_key(&id));
                if *pid == worker || one.group == worker || known(one.parent) {
                    self.0.entry(*pid).or_insert_with(|| one.began.clone());
                }
            }
            if self.0.len() == before {
                break;
            }
        }
        self.0.retain(|pid, began| all.get(pid).is_some_and(|one| one.began == *began));
        all.into_iter().filter(|(pid, _)| self.0.contains_key(pid)).collect()
    }
}

fn seen(line: &str) -> Option<(i32, Seen)> {
    let mut fields = line.split_whitespace();
    let mut number = || fields.next()?.parse::<i64>().ok();
    let (pid, parent, group, kib) = (number()?, number()?, number()?, number()?);
    let began = fields.collect::<Vec<_>>().join(" ");
    let resident = u64::try_from(kib).ok()?.saturating_mul(1024);
    let [pid, parent, group] = [pid, parent, group].map(|it| i32::try_from(it).unwrap_or(0));
    Some((pid, Seen { parent, group, resident, began }))
}

struct Keeper {
    child: Child,
    pid: u32,
    family: ProcessTree,
    deadline: Instant,
    most: u64,
    stopped: oneshot::Receiver<()>,
    _scratch: Scratch,
}

impl Keeper {
    async fn keep(mut self) -> Exit {
        let worker = i32::try_from(self.pid).unwrap_or(0);
        let reason = loop {
            tokio::select! {
                biased;
                status = self.child.wait() => break status.map_or(ExitReason::SupervisorLost, reason_of),
                () = sleep_until(self.deadline) => break ExitReason::TimedOut,
                _ = &mut self.stopped => break ExitReason::Cancelled,
                () = sleep(LOOK_EVERY) => {
                    let alive = self.family.look(worker).await;
                    if alive.values().map(|one| one.resident).sum::<u64>() > self.most {
                        break ExitReason::OverMemory;
                    }
                }
            }
        };
        let swept = self.end(worker).await;
        Exit { reason, swept, ..Exit::default() }
    }

    /// Stops all processes first, so that none starts another one meanwhile, and then kills them;
    /// repeats until none is left.
    async fn end(&mut self, worker: i32) -> u32 {
        let until = Instant::now() + Duration::from_millis(JAIL_END_MS_MAX);
        let mut swept = 0;
        loop {
            let alive = self.family.look(worker).await;
            let others = alive.keys().filter(|pid| **pid != worker).count();
            swept = swept.max(u32::try_from(others).unwrap_or(u32::MAX));
            for signal in [Signal::STOP, Signal::KILL] {
                for pid in alive.keys().filter_map(|pid| Pid::from_raw(*pid)) {
                    // This fails for a process that has ended meanwhile, which is as good.
                    let _gone = kill_process(pid, signal);
                }
            }
            let _collected = self.child.try_wait();
            if alive.is_empty() || Instant::now() >= until {
                return swept;
            }
        }
    }
}

fn reason_of(status: std::process::ExitStatus) -> ExitReason {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Code(code),
        (None, Some(signal)) => ExitReason::Signal(signal),
        (None, None) => ExitReason::SupervisorLost,
    }
}

/// The private folder of a worker. Removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = std::env::temp_dir().canonicalize()?.join(format!("provost-{name}"));
        let mut private = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        private.create(&path)?;
        let scratch = Self(path);
        private.create(scratch.0.join("home"))?;
        private.create(scratch.0.join("tmp"))?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}
