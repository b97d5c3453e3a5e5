//! A repository with a daemon over it, and frames signed ahead of time.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use provost::auth::frame::{Form, Outgoing};
use provost::base::{Json, Secret};
use provost::policy::Builtin;
use tempfile::TempDir;

/// How long a daemon may take to answer; it takes milliseconds.
const START_MAX: Duration = Duration::from_secs(30);

/// The product's executable, also where the two were copied elsewhere together.
pub(crate) fn provost() -> PathBuf {
    std::env::var_os("PROVOST_BENCHED").map_or_else(|| env!("CARGO_BIN_EXE_provost").into(), PathBuf::from)
}

/// A home, a runtime folder and a repository.
pub(crate) struct World {
    dir: TempDir,
}

/// A running daemon; ended when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) socket: PathBuf,
    secret: Secret,
}

impl World {
    /// An empty world whose policy lets everything confined through.
    pub(crate) fn new() -> Result<Self> {
        let world = Self { dir: TempDir::new()? };
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).recursive(true);
        for name in ["home/.config/provost", "run", "repo"] {
            private.create(world.path(name))?;
        }
        let rules = world.path("home/.config/provost/policy.toml");
        let mut rules = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(rules)?;
        rules.write_all(Builtin::Open.text().as_bytes())?;
        let git = Command::new("git").args(["init", "-q"]).arg(world.path("repo")).status()?;
        ensure!(git.success(), "git init failed");
        Ok(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the settings of its user, before it is started for the first time.
    pub(crate) fn configure(&self, settings: &str) -> Result<()> {
        let config = self.path("home/.config/provost/provost.toml");
        let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(config)?;
        Ok(file.write_all(settings.as_bytes())?)
    }

    /// Adds rules to those of its user.
    pub(crate) fn rule(&self, more: &str) -> Result<()> {
        let rules = self.path("home/.config/provost/policy.toml");
        let mut file = fs::OpenOptions::new().append(true).open(rules)?;
        Ok(file.write_all(more.as_bytes())?)
    }

    /// Where its daemon keeps state, once there was one.
    pub(crate) fn state_dir(&self) -> Result<PathBuf> {
        let below = fs::read_dir(self.path("home/.local/state/provost"))?.flatten().map(|it| it.path());
        let found = below.into_iter().find(|it| it.join(provost::store::DATABASE).exists());
        found.context("there is no state folder")
    }

    /// Starts a daemon and waits for its first answer to a signed HEARTBEAT; says how long that took.
    pub(crate) fn start(&self) -> Result<(Daemon, Duration)> {
        let log = fs::File::create(self.path("log"))?;
        let begun = Instant::now();
        let child = Command::new(provost())
            .args(["up", "--foreground", "--auto-ports"])
            .current_dir(self.path("repo"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("USER", "bench")
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .envs([
                ("PROVOST_AGENT_PROTOCOL_PORT", "0"),
                ("PROVOST_BROKER_PORT", "0"),
                ("PROVOST_A6S_PORT", "0"),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let mut daemon = Daemon { child, socket: PathBuf::new(), secret: Secret::new(Vec::new()) };
        loop {
            if let Some(mut stream) = self.connect(&mut daemon) {
                stream.write_all(&daemon.frame("HEARTBEAT", "bench:start", "orchestrator", "{}"))?;
                let mut answer = [0; 16];
                let read = stream.read(&mut answer)?;
                let took = begun.elapsed();
                ensure!(answer[..read] == *b"\n", "the first HEARTBEAT was answered with a message");
                return Ok((daemon, took));
            }
            if let Some(status) = daemon.child.try_wait()? {
                bail!("the daemon ended with {status}: {}", fs::read_to_string(self.path("log"))?);
            }
            ensure!(begun.elapsed() < START_MAX, "the daemon does not listen");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn connect(&self, daemon: &mut Daemon) -> Option<UnixStream> {
        let below = fs::read_dir(self.path("run/provost")).ok()?.flatten();
        daemon.socket = below.map(|it| it.path().join("devit.sock")).find(|it| it.exists())?;
        let stream = UnixStream::connect(&daemon.socket).ok()?;
        let secret = fs::read_to_string(self.path("home/.config/provost/keys/shared.secret")).ok()?;
        daemon.secret = Secret::new(secret.trim().as_bytes().to_vec());
        Some(stream)
    }
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port of a door over loopback HTTP, as soon as it is open; such doors open after the others.
    pub(crate) fn port(&self, door: &str) -> Result<u16> {
        let file = self.socket.parent().context("the socket is in a folder")?.join("ports.json");
        let begun = Instant::now();
        loop {
            let text = fs::read(&file).unwrap_or_default();
            let ports: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
            // Those of the daemon before it may still be there.
            if ports["pid"] == self.pid() {
                let port = ports[door].as_u64().with_context(|| format!("{door} has no port: {ports}"))?;
                return Ok(u16::try_from(port)?);
            }
            ensure!(begun.elapsed() < START_MAX, "the ports are not told: {ports}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A signed line with a nonce of its own. Good for as long as the daemon's window is.
    pub(crate) fn frame(&self, verb: &str, from: &str, to: &str, payload: &str) -> Vec<u8> {
        self.frame_named(verb, &fresh("message"), from, to, payload)
    }

    pub(crate) fn frame_named(&self, verb: &str, id: &str, from: &str, to: &str, payload: &str) -> Vec<u8> {
        let payload = Json::parse(payload).expect("the bench writes JSON");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nonce = fresh("4b0e2f6c-9d1a-4c55-8f3e");
        let outgoing = Outgoing {
            msg_type: verb,
            msg_id: id,
            from,
            to,
            ts: since.as_secs(),
            nonce: &nonce,
            payload: &payload,
        };
        let mut line = outgoing.sign(&self.secret, Form::Standard).into_bytes();
        line.push(b'\n');
        line
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        )?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has ended already after a stop in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text that was not used before in this run, of the length of the identifiers that clients send.
pub(crate) fn fresh(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{what}-{:012x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A child of the bench's own, ended when dropped.
pub(crate) struct Helper(pub(crate) Child);

impl Helper {
    /// Starts this executable again in another role, with a path that tells where it is to be found.
    pub(crate) fn begun(role: &str, at: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(Self(command.arg(role).arg(at).stdin(Stdio::null()).spawn()?))
    }

    /// Starts this executable again in another role, and waits until it listens.
    pub(crate) fn listening(role: &str, socket: &Path) -> Result<Self> {
        let helper = Self::begun(role, socket)?;
        let begun = Instant::now();
        while UnixStream::connect(socket).is_err() {
            ensure!(begun.elapsed() < START_MAX, "{role} does not listen");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(helper)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
