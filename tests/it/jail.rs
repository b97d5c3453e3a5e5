//! What a jail promises, tried with real processes in real jails.
//!
//! These tests need an ordinary user and a host that can confine; they fail elsewhere, they are never skipped.
#![expect(clippy::unwrap_used, reason = "what fails in here fails the test")]

mod agents;
mod descriptor;
mod destinations;
mod ends;
mod errands;
#[cfg(target_os = "linux")]
mod escapes;
mod greed;
mod groups;
mod guarded;
mod handoff;
mod hogs;
mod job;
mod kept_out;
mod later;
#[cfg(target_os = "linux")]
mod left_behind;
mod nested_repositories;
mod network;
mod output;
mod pipes;
mod plan;
mod protected;
mod refusals;
pub(crate) mod repositories;
mod root;
pub(crate) mod run_outside;
pub(crate) mod runs;
mod seatbelt;
mod secrets;
mod shared_files;
mod trial;
mod walls;
mod worker_door;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use provost::base::Ttl;
use provost::jail::{
    Draft, Environment, Exit, ExitReason, Grounds, Limits, LiveOutput, Plan, Running, SetupError, Stream,
    Supervisor, Tier, find_place, launch, resolve_program,
};

/// Both tiers, for promises that both keep.
const TIERS: [Tier; 2] = [Tier::Ns, Tier::Ll];

/// A world of its own: a workspace, a home with a secret, and a folder outside of both.
struct World {
    path: PathBuf,
    /// Removed with the world; a world that belongs to another process has none.
    _dir: Option<tempfile::TempDir>,
}

impl World {
    fn new() -> Self {
        assert!(
            !rustix::process::geteuid().is_root(),
            "jails are tried as an ordinary user: run scripts/test"
        );
        let dir = tempfile::tempdir().unwrap();
        let world = Self { path: dir.path().canonicalize().unwrap(), _dir: Some(dir) };
        for folder in ["workspace", "home/.ssh", "outside", "state"] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        fs::write(world.path("home/.ssh/id_ed25519"), "TOPSECRET").unwrap();
        fs::write(world.path("outside/canary"), "INTACT").unwrap();
        fs::write(world.path("state/secret"), "TOPSECRET").unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The world of another process.
    fn at(path: PathBuf) -> Self {
        Self { path, _dir: None }
    }

    /// The path of the world, which is in the command line of every Python worker: a word to find it by.
    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    fn grounds(&self) -> Grounds {
        Grounds { home: self.path("home"), forbidden: vec![self.path("state")] }
    }

    /// A worker that runs a program with some arguments in the workspace.
    fn draft(&self, program: &str, args: &[&str]) -> Draft {
        let program = resolve_program(Path::new(program)).unwrap();
        let mut draft = Draft::new(program, Environment::new([]), find_place(&self.workspace()).unwrap());
        draft.args = args.iter().map(|arg| arg.to_string()).collect();
        draft.limits = Limits { wall: Ttl::seconds_clamped(60), ..Limits::default() };
        draft
    }

    /// A worker that runs a shell script. `$W` is the world's folder.
    fn sh(&self, script: &str) -> Draft {
        let mut draft = self.draft("/bin/sh", &["-c", script]);
        draft.environment.set("W", self.name()).unwrap();
        draft
    }

    /// A worker that runs a Python program. `sys.argv[1]` is the world's folder.
    fn python(&self, program: &str) -> Draft {
        self.draft("/usr/bin/python3", &["-c", program, self.name()])
    }

    fn plan(&self, draft: Draft) -> Plan {
        draft.check(&self.grounds()).unwrap()
    }

    /// As a daemon's: it keeps placeholders for the next run.
    fn supervisor(&self) -> Supervisor {
        supervisor().keeping_spares_in(self.path("state/spares"))
    }

    async fn start(&self, draft: Draft) -> Result<Running, SetupError> {
        self.start_with(draft, None).await
    }

    async fn start_with(&self, draft: Draft, input: Option<&[u8]>) -> Result<Running, SetupError> {
        let output = LiveOutput::new(draft.limits.output_bytes);
        launch(&self.supervisor(), &self.plan(draft), input.map(<[u8]>::to_vec), output).await
    }

    async fn run(&self, draft: Draft) -> Ran {
        self.run_with(draft, None).await
    }

    async fn run_with(&self, draft: Draft, input: Option<&[u8]>) -> Ran {
        let mut running = self.start_with(draft, input).await.unwrap();
        let exit = running.wait().await;
        let text = |stream| running.output().text(stream);
        Ran { exit, out: text(Stream::Out), err: text(Stream::Err) }
    }
}

/// Says the tier of a draft in passing.
trait InTier {
    fn tier(self, tier: Tier) -> Self;
}

impl InTier for Draft {
    fn tier(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }
}

/// How a run went.
#[derive(Debug)]
struct Ran {
    exit: Exit,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    fn says(&self, expected: &str) {
        assert_eq!(self.out.trim_end(), expected, "{self:?}");
        assert_eq!(self.exit.reason, ExitReason::Code(0), "{self:?}");
    }
}

fn provost() -> PathBuf {
    let built = std::env::var_os("NEXTEST_BIN_EXE_provost");
    built.map_or_else(|| env!("CARGO_BIN_EXE_provost").into(), PathBuf::from)
}

fn supervisor() -> Supervisor {
    Supervisor::at(provost())
}

/// Processes of the host whose command line contains a word.
fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let command = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let lines = entries.map(command);
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

/// Waits for a condition, which should come true soon.
#[track_caller]
fn soon(what: &str, condition: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}
