//! The hostile worker: tries one way out after the other and says how each has ended.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{calls, files, kernel, network, processes, resources};

/// Seconds that one attempt may take.
const SECONDS_MAX: u32 = 20;

/// How often it is tried to have a process for an attempt, and the pause in between.
const PATIENCE: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(10);

/// The intruder's knowledge of the world outside. It gets everything: no protection here relies on secrecy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The daemon's process.
    pub(super) daemon: i32,
    /// The directory that may be written.
    pub(super) workspace: PathBuf,
    /// A directory beside it.
    pub(super) outside: PathBuf,
    /// A file with a private key.
    pub(super) secret: PathBuf,
    /// The daemon's own folder.
    pub(super) state: PathBuf,
    /// A directory that may be read.
    pub(super) toolchain: PathBuf,
    /// A TCP port of the daemon on 127.0.0.1.
    pub(super) tcp: u16,
    /// The same on ::1.
    pub(super) tcp6: u16,
    /// A UDP port of the daemon.
    pub(super) udp: u16,
    /// A socket of the daemon.
    pub(super) stream: PathBuf,
    /// Another, for datagrams.
    pub(super) datagram: PathBuf,
    /// The name of a third, which has no path.
    pub(super) abstract_name: String,
    /// The key of shared memory on the host.
    pub(super) memory_key: i32,
    /// The name of a queue on the host.
    pub(super) queue: String,
    /// A file in the host's shared memory.
    pub(super) shared: PathBuf,
    /// The host's network, by its number.
    pub(super) network: String,
    /// The host's user namespace, by its number.
    pub(super) users: String,
    /// The file system of the host's terminals, by its number.
    pub(super) terminals: u64,
    /// Processes to start at once. Many where a limit is expected, to be told from what others of this user
    /// start and end meanwhile; few where there is none.
    pub(super) forks: u32,
    /// Only attempts that begin with one of these; all, when empty.
    pub(super) only: Vec<String>,
}

/// The intruder's knowledge of itself, before it begins.
pub(super) struct Own {
    /// The process that started it.
    pub(super) parent: i32,
    /// Descriptors that it has in addition to the three standard ones.
    pub(super) descriptors: Vec<String>,
}

/// How an attempt has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Saw {
    /// It got what it wanted.
    Open,
    /// It learned something that it should not.
    Leak,
    /// Nothing.
    Shut,
}

/// How an attempt has ended, with what was seen.
pub(super) struct Outcome(pub(super) Saw, pub(super) String);

pub(super) fn open(what: impl ToString) -> Outcome {
    Outcome(Saw::Open, what.to_string())
}

pub(super) fn leak(what: impl ToString) -> Outcome {
    Outcome(Saw::Leak, what.to_string())
}

pub(super) fn shut(why: impl ToString) -> Outcome {
    Outcome(Saw::Shut, why.to_string())
}

/// Returns the outcome of an attempt: open if it has worked, shut if it has failed.
pub(super) fn by<T, E: ToString>(result: Result<T, E>, what: &str) -> Outcome {
    match result {
        Ok(_) => open(what),
        Err(error) => shut(error),
    }
}

/// One way out.
pub(super) type Attempt = (&'static str, fn(&Facts, &Own) -> Outcome);

/// All of them, in the order in which they are tried.
pub(super) fn attempts() -> impl Iterator<Item = &'static Attempt> {
    let all: [&'static [Attempt]; 5] =
        [files::ATTEMPTS, processes::ATTEMPTS, network::ATTEMPTS, kernel::ATTEMPTS, resources::ATTEMPTS];
    all.into_iter().flatten()
}

/// Tries them all, each in a process of its own, and prints a line for each.
pub(super) fn main(facts: &str) -> ! {
    let facts: Facts = serde_json::from_str(facts).unwrap();
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let own = Own { parent, descriptors: descriptors() };
    let wanted =
        |name: &str| facts.only.is_empty() || facts.only.iter().any(|only| name.starts_with(only.as_str()));
    let mut out = std::io::stdout();
    for (name, attempt) in attempts().filter(|(name, _)| wanted(name)) {
        let line = tried(*attempt, &facts, &own);
        writeln!(out, "{name}\t{}", line.replace(['\n', '\r'], " ")).unwrap();
    }
    out.flush().unwrap();
    calls::leave(0)
}

fn tried(attempt: fn(&Facts, &Own) -> Outcome, facts: &Facts, own: &Own) -> String {
    let (mut read, mut write) = std::io::pipe().unwrap();
    // In tier `ll` others of this user may have used up the processes for a moment.
    let child = (0..PATIENCE).find_map(|_| {
        let child = calls::fork(|| {
            calls::end_after(SECONDS_MAX);
            let Outcome(saw, what) = attempt(facts, own);
            let _unheard = write!(write, "{saw:?}\t{what}");
            0
        });
        // tidy: sleeps because it runs in a jail, and tries again what others keep from it for a moment
        child.inspect_err(|_| std::thread::sleep(PAUSE)).ok()
    });
    drop(write);
    let Some(child) = child else { return "Failed\tno process to try it in".into() };
    let mut said = String::new();
    let _partly = read.read_to_string(&mut said);
    match calls::killed_by(calls::collect(child)) {
        Some(libc::SIGALRM) => "Failed\ttook too long".into(),
        Some(signal) if said.is_empty() => format!("Shut\tkilled by signal {signal}"),
        _ if said.is_empty() => "Failed\tsaid nothing".into(),
        _ => said,
    }
}

/// Everything above the three that a program starts with.
fn descriptors() -> Vec<String> {
    let open =
        (3..256).filter(|number| calls::call(libc::SYS_fcntl, [*number, libc::F_GETFD as usize]).is_ok());
    let name = |number| std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
    open.map(|number| format!("{number}:{}", name(number).display())).collect()
}
