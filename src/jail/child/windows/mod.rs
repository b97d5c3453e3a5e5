//! Workers on Windows: tier `job`, kept by a job object and a token that is restricted for writing.
//!
//! There is no supervisor: the daemon makes both, starts the program stopped, makes sure that it has them,
//! and lets it begin. When the daemon ends, the job is closed, and everything in it ends. What stays open in
//! this tier stands in [`OPEN_IN_JOB`](crate::OPEN_IN_JOB); plans of other tiers are refused.

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

/// With this in the environment, programs built for debugging run workers although the token does not confine
/// them: for tests where nothing else can be had. Others do not look at it.
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
    // Only a panic, or the end of the runtime, keeps it from an answer.
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

/// A worker that runs, and what is to be kept as long as it does.
struct Built {
    process: Process,
    pid: u32,
    job: Job,
    streams: [PipeReader; 2],
    ground: Ground,
    scratch: Scratch,
    layers: Vec<String>,
}

/// Walks through the steps of [`Step::all`]. Nothing of the worker has run when one of them fails.
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
    // From here on it is there, though it has not begun: it must not be left behind.
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
            // Closing the job ends it as well; so does this, should it not be in there.
            let _ended = job.end(sys::KILLED);
            Err(error)
        }
    }
}

/// One step of the way to a worker.
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
    if plan.network != Network::None || !plan.outlets.is_empty() || plan.entrance.is_some() {
        return Err("tier job has neither a network of its own nor a door".into());
    }
    if plan.without.iter().any(|layer| *layer != Layer::Token || !plan.lacks(*layer)) {
        return Err("this executable builds no jail that lacks a layer".into());
    }
    Ok(())
}

/// Directories are what they were when the task was accepted, and were made to be changed.
fn sources(plan: &Plan) -> Result<(), String> {
    for place in plan.writable.iter().chain(&plan.read_only) {
        let found = find_place(place.path()).map_err(|e| e.to_string())?;
        if found != *place {
            return Err(format!("{} is not the one that the task was accepted for", place.path().display()));
        }
    }
    Ok(())
}

/// The token, tried; with it the worker can change its own folders.
fn restricted(plan: &Plan, user: &str, scratch: &Scratch) -> Result<WriteRestricted, String> {
    let folders = plan.writable.iter().map(|place| place.path()).chain([scratch.path()]);
    let identities: Vec<String> = folders.map(folder_identity).collect();
    let token = WriteRestricted::new(user, &identities).map_err(|e| e.to_string())?;
    if !unrestricted(plan) {
        token.confines(scratch.path(), &std::env::temp_dir())?;
    }
    Ok(token)
}

/// Whether a token that does not confine is good enough. Never, in programs as they are released.
fn unrestricted(plan: &Plan) -> bool {
    cfg!(debug_assertions) && (plan.lacks(Layer::Token) || std::env::var_os(UNRESTRICTED).is_some())
}

/// Starts the program, stopped.
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

/// Puts it into the job and makes sure that it has its token. What holds it then, in words.
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
        // It is in no job, perhaps, and would wait for ever.
        started.kill();
    }
    Ok(vec!["job object".into(), taken?.into(), "handle list".into()])
}

/// What the worker reads, and who writes that.
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

/// Bytes that a worker is to read.
struct Feed(Option<(PipeWriter, Vec<u8>)>);

impl Feed {
    /// Writes them, in a thread of its own: the worker may take its time.
    fn begin(self) {
        let Some((mut writer, bytes)) = self.0 else { return };
        // A worker that does not want them has closed its end; one that has ended closes it, too.
        std::thread::spawn(move || writer.write_all(&bytes));
    }
}

/// Our ends of its output, and its own three.
fn pipes(input: OwnedHandle) -> io::Result<([PipeReader; 2], [OwnedHandle; 3])> {
    let ((out, out_end), (err, err_end)) = (io::pipe()?, io::pipe()?);
    let ends = [inheritable(input)?, inheritable(out_end.into())?, inheritable(err_end.into())?];
    Ok(([out, err], ends))
}

/// Makes a folder that a worker of tier `job` may change, with all that will be in it.
///
/// # Errors
/// What the system says; also when there is something of this name.
pub fn make_worker_folder(path: &Path) -> io::Result<()> {
    let user = Token::of_this_process()?.user()?;
    make_folder(path, &folder_descriptor(&user, &folder_identity(path)))
}

/// Makes what a worker is held by, and tries it.
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
