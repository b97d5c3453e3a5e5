//! Real processes in real jails, started without a daemon.
//!
//! They need an ordinary user and a host that can confine; tests fail elsewhere, they are never skipped.

pub(crate) use std::fs;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::time::{Duration, Instant};

pub(crate) use provost::base::Ttl;
pub(crate) use provost::jail::{
    Draft, Environment, Exit, ExitReason, ForbiddenPaths, Limits, LiveOutput, Plan, Running, SetupError,
    Stream, Supervisor, Tier, find_place, launch, resolve_program,
};

/// Both tiers, for promises that both keep.
pub(crate) const TIERS: [Tier; 2] = [Tier::Ns, Tier::Ll];

/// A world of its own: a workspace, a home with a secret, and a folder outside of both.
pub(crate) struct World {
    pub(crate) path: PathBuf,
    /// Removed with the world; a world that belongs to another process has none.
    pub(crate) _dir: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn new() -> Self {
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The world of another process.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, _dir: None }
    }

    /// The path of the world, which is in the command line of every Python worker: a word to find it by.
    pub(crate) fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub(crate) fn forbidden_paths(&self) -> ForbiddenPaths {
        ForbiddenPaths { home: self.path("home"), forbidden: vec![self.path("state")] }
    }

    /// A worker that runs a program with some arguments in the workspace.
    pub(crate) fn draft(&self, program: &str, args: &[&str]) -> Draft {
        let program = resolve_program(Path::new(program)).unwrap();
        let mut draft = Draft::new(program, Environment::new([]), find_place(&self.workspace()).unwrap());
        draft.args = args.iter().map(|arg| arg.to_string()).collect();
        draft.limits = Limits { wall: Ttl::seconds_clamped(60), ..Limits::default() };
        draft
    }

    /// A worker that runs a shell script. `$W` is the world's folder.
    pub(crate) fn sh(&self, script: &str) -> Draft {
        let mut draft = self.draft("/bin/sh", &["-c", script]);
        draft.environment.set("W", self.name()).unwrap();
        draft
    }

    /// A worker that runs a Python program. `sys.argv[1]` is the world's folder.
    pub(crate) fn python(&self, program: &str) -> Draft {
        self.draft("/usr/bin/python3", &["-c", program, self.name()])
    }

    pub(crate) fn plan(&self, draft: Draft) -> Plan {
        draft.check(&self.forbidden_paths()).unwrap()
    }

    /// As a daemon's: it keeps placeholders for the next run.
    pub(crate) fn supervisor(&self) -> Supervisor {
        supervisor().keeping_spares_in(self.path("state/spares"))
    }

    pub(crate) async fn start(&self, draft: Draft) -> Result<Running, SetupError> {
        self.start_with(draft, None).await
    }

    pub(crate) async fn start_with(&self, draft: Draft, input: Option<&[u8]>) -> Result<Running, SetupError> {
        let output = LiveOutput::new(draft.limits.output_bytes);
        launch(&self.supervisor(), &self.plan(draft), input.map(<[u8]>::to_vec), output).await
    }

    pub(crate) async fn run(&self, draft: Draft) -> Ran {
        self.run_with(draft, None).await
    }

    pub(crate) async fn run_with(&self, draft: Draft, input: Option<&[u8]>) -> Ran {
        let mut running = self.start_with(draft, input).await.unwrap();
        let exit = running.wait().await;
        let text = |stream| running.output().text(stream);
        Ran { exit, out: text(Stream::Out), err: text(Stream::Err) }
    }
}

/// Says the tier of a draft in passing.
pub(crate) trait InTier {
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
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn says(&self, expected: &str) {
        assert_eq!(self.out.trim_end(), expected, "{self:?}");
        assert_eq!(self.exit.reason, ExitReason::Code(0), "{self:?}");
    }
}

pub(crate) fn provost() -> PathBuf {
    let built = std::env::var_os("NEXTEST_BIN_EXE_provost");
    built.map_or_else(|| env!("CARGO_BIN_EXE_provost").into(), PathBuf::from)
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::at(provost())
}

/// Processes of the host whose command line contains a word.
pub(crate) fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let command = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let lines = entries.map(command);
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

/// Waits for a condition, which should come true soon.
#[track_caller]
pub(crate) fn soon(what: &str, condition: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}
