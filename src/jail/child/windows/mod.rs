//! Workers on Windows: tier `job`, enforced by a job object and a token that is restricted for writing.
//!
//! There is no supervisor: the daemon makes both, starts the program stopped, makes sure that they hold it,
//! and lets it begin. When the daemon ends, the job is closed, and all its processes end. The known gaps of
//! this tier are listed in [`OPEN_IN_JOB`](crate::OPEN_IN_JOB); plans of other tiers are refused.

mod keep;
mod scratch;
mod sys;
mod watch;

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::windows::io::OwnedHandle;
use std::path::Path;

use tokio::sync::{oneshot, watch as told};
use tokio::time::Instant;

use self::keep::Keeper;
use self::scratch::Scratch;
use self::sys::{Job, Process, Started, WriteRestricted, inheritable, make_folder, spawn};
use self::watch::Ground;
use crate::bounds::Limits;
use crate::control::{SetupError, Step};
use crate::job::{
    command_line, environment_block, folder_descriptor, folder_identity, job_environment, job_limits,
};
use crate::launch::{Handle, Running, Supervisor};
use crate::layer::Layer;
use crate::machine::{Facts, JobFacts};
use crate::output::LiveOutput;
use crate::plan::{Network, Plan, Tier};
use crate::root::{find_place, resolve_program};
use provost_system::Token;

/// With this in the environment, programs built for debugging run workers even if the token does not confine
/// them: for tests on machines that offer no better one. Other programs ignore it.
const UNRESTRICTED: &str = "PROVOST_TEST_UNRESTRICTED_JOBS";

/// The null device, which a worker without input reads.
const NOTHING: &str = "NUL";

/// Starts a worker, if its plan is one for this system.
pub(crate) async fn start(
    _supervisor: &Supervisor,
    (request, descriptors): (Vec<u8>, Vec<Handle>),
    plan: &Plan,
    output: LiveOutput,
) -> Result<Running, SetupError> {
    let deadline = Instant::now() + plan.limits().wall.as_duration();
    let built = {
        let plan = plan.clone();
        tokio::task::spawn_blocking(move || build(&plan, &request, descriptors))
    };
    // Only a panic, or the end of the runtime, prevents an answer.
    let built = built.await.map_err(|e| SetupError::new(Step::Supervisor, e))??;
    let (stop, stopped) = oneshot::channel();
    let (tell, exit) = told::channel(None);
    let (pid, layers) = (built.pid, built.layers.clone());
    let keeper = Keeper::new(built, plan.limits().clone(), deadline, stopped, &output)
        .map_err(|e| SetupError::new(Step::Supervisor, e))?;
    let finished = output.clone();
    tokio::spawn(async move {
        let exit = keeper.keep().await;
        finished.finish();
        tell.send_replace(Some(exit));
    });
    Ok(Running { supervisor: pid, layers, output, stop: Some(stop), exit, outlets: Vec::new() })
}

/// A running worker, with the handles that must stay open while it runs.
struct Built {
    process: Process,
    pid: u32,
    job: Job,
    streams: [PipeReader; 2],
    ground: Ground,
    scratch: Scratch,
    layers: Vec<String>,
}

/// Goes through the steps of [`Step::all`]. If one of them fails, no step of the worker has run.
fn build(plan: &Plan, request: &[u8], descriptors: Vec<Handle>) -> Result<Built, SetupError> {
    step(plan, Step::System, || fits(plan))?;
    let (input, feed) = step(plan, Step::Input, || input(request, descriptors))?;
    step(plan, Step::Program, || match resolve_program(plan.program().asked()) {
        Err(e) => Err(e.to_string()),
        Ok(found) if found != *plan.program() => Err("has changed since the task was accepted".into()),
        Ok(_) => Ok(()),
    })?;
    step(plan, Step::Sources, || sources(plan))?;
    let user = step(plan, Step::Token, || Token::of_this_process()?.user())?;
    let scratch = step(plan, Step::Scratch, || Scratch::new(&user))?;
    step(plan, Step::HomeFiles, || scratch.fill(&plan.home_files))?;
    let ground = step(plan, Step::Watch, || Ground::of(plan, scratch.path()))?;
    let token = step(plan, Step::Token, || restricted(plan, &user, &scratch))?;
    let job = step(plan, Step::Job, || Job::new(&job_limits(plan.limits())))?;
    let (streams, ends) = step(plan, Step::Fork, || pipes(input))?;
    let started = step(plan, Step::Execute, || worker(plan, &token, &scratch, &ends))?;
    drop(ends);
    // From here on the process exists, though it has not begun: an error must not leave it behind.
    let held = hold(plan, &job, &token, &started);
    let begun = held.and_then(|layers| {
        let begun = step(plan, Step::Limits, || started.begin());
        begun.map(|begun| (layers, begun))
    });
    match begun {
        Ok((layers, (process, pid))) => {
            feed.begin();
            Ok(Built { process, pid, job, streams, ground, scratch, layers })
        }
        Err(error) => {
            // Closing the job ends the process as well; this also ends one that is not in the job.
            let _ended = job.end(sys::KILLED);
            Err(error)
        }
    }
}

/// Does one step on the way to a worker.
fn step<T, E: ToString>(
    plan: &Plan,
    step: Step,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, SetupError> {
    if cfg!(debug_assertions) && plan.fail_at == Some(step) {
        return Err(SetupError::new(step, "made to fail"));
    }
    work().map_err(|e| SetupError::new(step, e.to_string()))
}

fn fits(plan: &Plan) -> Result<(), String> {
    if plan.tier() != Tier::Job {
        return Err(format!(
            "Windows has no tier {}: set `tier = \"job\"` and `copy = true` for the worker, and let a rule allow it \
             with when.tier = [\"job\"]",
            plan.tier().name()
        ));
    }
    if plan.network != Network::None || !plan.outlets.is_empty() || plan.door_socket.is_some() {
        return Err("tier job has neither a network of its own nor a door".into());
    }
    if plan.without.iter().any(|layer| *layer != Layer::Token || !plan.lacks(*layer)) {
        return Err("this executable builds no jail that lacks a layer".into());
    }
    Ok(())
}

/// Checks that the directories are those of the time when the task was accepted, and were made for workers.
fn sources(plan: &Plan) -> Result<(), String> {
    for place in plan.writable.iter().chain(&plan.read_only) {
        let found = find_place(place.path()).map_err(|e| e.to_string())?;
        if found != *place {
            return Err(format!("{} is not the one that the task was accepted for", place.path().display()));
        }
    }
    Ok(())
}

/// Makes the token and tries it; with it the worker can change its own folders.
fn restricted(plan: &Plan, user: &str, scratch: &Scratch) -> Result<WriteRestricted, String> {
    let folders = plan.writable.iter().map(|place| place.path()).chain([scratch.path()]);
    let identities: Vec<String> = folders.map(folder_identity).collect();
    let token = WriteRestricted::new(user, &identities).map_err(|e| e.to_string())?;
    if !unrestricted(plan) {
        token.confines(scratch.path(), &std::env::temp_dir())?;
    }
    Ok(token)
}

/// Checks whether a token that does not confine is accepted. Never true in released programs.
fn unrestricted(plan: &Plan) -> bool {
    cfg!(debug_assertions) && (plan.lacks(Layer::Token) || std::env::var_os(UNRESTRICTED).is_some())
}

/// Starts the program, stopped before its first step.
fn worker(
    plan: &Plan,
    token: &WriteRestricted,
    scratch: &Scratch,
    ends: &[OwnedHandle; 3],
) -> Result<Started, String> {
    let program = plan.program().place().path();
    let line = command_line(program, &plan.args)?;
    let environment = environment_block(&job_environment(plan, scratch.path()));
    let started = spawn(token, program, &line, &environment, plan.cwd.path(), ends);
    started.map_err(|e| format!("{}: {e}", program.display()))
}

/// Puts the process into the job and checks its token. Returns the layers that hold it, in words.
fn hold(
    plan: &Plan,
    job: &Job,
    token: &WriteRestricted,
    started: &Started,
) -> Result<Vec<String>, SetupError> {
    let taken = step(plan, Step::Job, || job.take(started.handle()));
    let taken = taken.and_then(|()| match unrestricted(plan) {
        true => Ok("no restriction of its token, for a test"),
        false => step(plan, Step::Token, || token.is_of(started.handle())).map(|()| "write-restricted token"),
    });
    if taken.is_err() {
        // The process may be in no job, and would wait for ever.
        started.kill();
    }
    Ok(vec!["job object".into(), taken?.into(), "handle list".into()])
}

/// Returns the worker's standard input, and the feed that writes to it.
fn input(request: &[u8], mut descriptors: Vec<Handle>) -> io::Result<(OwnedHandle, Feed)> {
    if let Some(handed) = descriptors.pop() {
        return Ok((handed, Feed(None)));
    }
    let plan_len = request.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
    match request.get(4 + plan_len..) {
        None | Some([]) => Ok((OpenOptions::new().read(true).open(NOTHING)?.into(), Feed(None))),
        Some(bytes) => {
            let (reader, writer) = io::pipe()?;
            Ok((reader.into(), Feed(Some((writer, bytes.to_vec())))))
        }
    }
}

/// The bytes for a worker's standard input, with the end of the pipe.
struct Feed(Option<(PipeWriter, Vec<u8>)>);

impl Feed {
    /// Writes the bytes in a thread of its own, since the worker may be slow to read.
    fn begin(self) {
        let Some((mut writer, bytes)) = self.0 else { return };
        // A worker that does not read them has closed its end; so has one that has ended.
        std::thread::spawn(move || writer.write_all(&bytes));
    }
}

/// Makes the pipes: our ends of the worker's output, and its own three handles.
fn pipes(input: OwnedHandle) -> io::Result<([PipeReader; 2], [OwnedHandle; 3])> {
    let ((out, out_end), (err, err_end)) = (io::pipe()?, io::pipe()?);
    let ends = [inheritable(input)?, inheritable(out_end.into())?, inheritable(err_end.into())?];
    Ok(([out, err], ends))
}

/// Makes a folder that a worker of tier `job` may change, with all that will be in it.
///
/// # Errors
/// The system's error; also if a file with this name exists.
pub fn make_worker_folder(path: &Path) -> io::Result<()> {
    let user = Token::of_this_process()?.user()?;
    make_folder(path, &folder_descriptor(&user, &folder_identity(path)))
}

/// Makes a job object and a token to try whether the host has them.
pub(crate) fn host_facts() -> Facts {
    let object = Job::new(&job_limits(&Limits::default())).map(drop).map_err(|e| e.to_string());
    Facts { job: Some(JobFacts { object, token: tried() }), ..Facts::default() }
}

fn tried() -> Result<(), String> {
    let user = Token::of_this_process().and_then(|token| token.user()).map_err(|e| e.to_string())?;
    let scratch = Scratch::new(&user).map_err(|e| e.to_string())?;
    let token = WriteRestricted::new(&user, &[folder_identity(scratch.path())]).map_err(|e| e.to_string())?;
    token.confines(scratch.path(), &std::env::temp_dir())
}
