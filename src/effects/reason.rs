//! The reason why a run ended, in DevIt's words if it has any, and the limit that the run reached.
//!
//! DevIt 1.10, `exit_reason`: "success", "exit code N", "terminated by signal". Further details follow them, so that
//! a client that compares the beginning still finds these words.
#![forbid(unsafe_code)]

use super::result::{End, Output, TaskRun};
use provost_base::Ttl;
use provost_domain::Failure;
use provost_jail::{Limits, Space, size};

/// Stands for an exit code that does not exist or is unknown. DevIt 1.10.
const CODE_UNKNOWN: i32 = -1;
/// Shells report a command that a signal has ended by this code plus the signal's number.
const SHELL_SIGNAL: i32 = 128;
/// The signal for more processor time than allowed. Linux has the same number on every processor that Provost runs on.
const SIGXCPU: i32 = 24;
/// The signal for a file that is larger than allowed.
const SIGXFSZ: i32 = 25;

/// Returns the exit code of a run.
pub(super) fn code(end: &End) -> i32 {
    match end {
        End::Code(code) => *code,
        End::Told(_) => 0,
        _ => CODE_UNKNOWN,
    }
}

/// Returns the text of `exit_reason`. DevIt 1.10.
pub(super) fn reason(run: &TaskRun<'_>, end: &End) -> String {
    let words = match end {
        End::Code(0) | End::Told(_) => return "success".into(),
        End::Untold(why) => why.to_string(),
        End::Code(code) => with_cause(format!("exit code {code}"), signal_in_words(code - SHELL_SIGNAL, run)),
        End::Signal(signal) => with_cause("terminated by signal".into(), signal_in_words(*signal, run)),
        End::TimedOut => format!("worker timed out after {}s", whole_seconds(run.limit)),
        End::OverMemory => with_cause(
            "worker had more memory than it may".into(),
            run.limits.map(|it| format!("over {} for all its processes together", size(it.resident_bytes))),
        ),
        End::OverSpace(space) => {
            let cause = run.limits.map(|it| space_in_words(*space, it));
            with_cause("worker took more space than it may".into(), cause)
        }
        End::SupervisorLost => "worker was killed because its supervisor died".into(),
        End::ProtectionLost => {
            "worker was killed because a protected file (git hooks or configuration) was replaced while it ran".into()
        }
        End::RepositoryMade(which) => {
            let which = if which.is_empty() { String::new() } else { format!(" ({which})") };
            format!(
                "worker was ended because a git repository was made in its workspace{which}: git runs what such a one \
                 names; if it is meant to be there, give it its name back, and let workers make theirs in a copy"
            )
        }
        End::Stopped(_) => "stopped".into(),
        End::Lost(reason) => (*reason).to_owned(),
        End::NotStarted(failure) => sentence(failure),
    };
    match run.limits.filter(|_| run.processes_reached) {
        Some(limits) => format!("{words}; it was at its limit of {} processes and threads", limits.processes),
        None => words,
    }
}

/// Returns the limits that a run exceeded or was held at, by the names that they have in the configuration or near it.
pub(super) fn limits_reached(run: &TaskRun<'_>, end: &End, output: &Output) -> Vec<&'static str> {
    let mut reached = Vec::new();
    match end {
        End::TimedOut => reached.push("timeout"),
        End::OverMemory => reached.push("memory"),
        End::OverSpace(Space::Bytes) => reached.push("growth"),
        End::OverSpace(Space::Entries | Space::Depth) => reached.push("growth_files"),
        End::OverSpace(Space::Temporary) => reached.push("tmp_size"),
        End::Signal(SIGXCPU) => reached.push("cpu_secs"),
        End::Signal(SIGXFSZ) => reached.push("file_size"),
        End::Code(code) if *code == SHELL_SIGNAL + SIGXCPU => reached.push("cpu_secs"),
        End::Code(code) if *code == SHELL_SIGNAL + SIGXFSZ => reached.push("file_size"),
        _ => {}
    }
    if run.processes_reached {
        reached.push("processes");
    }
    if output.stdout_dropped > 0 || output.stderr_dropped > 0 {
        reached.push("output");
    }
    reached
}

fn with_cause(words: String, cause: Option<String>) -> String {
    match cause {
        Some(cause) => format!("{words}: {cause}"),
        None => words,
    }
}

fn signal_in_words(signal: i32, run: &TaskRun<'_>) -> Option<String> {
    let limits = run.limits?;
    match signal {
        SIGXCPU => {
            Some(format!("more processor time than it may, over {} s in one process", limits.cpu_seconds))
        }
        SIGXFSZ => Some(format!("a larger file than it may write, over {}", size(limits.file_bytes))),
        _ => None,
    }
}

fn space_in_words(space: Space, limits: &Limits) -> String {
    match space {
        Space::Bytes => {
            format!("what it may change grew by more than {} while it ran", size(limits.growth_bytes))
        }
        Space::Entries => {
            format!("what it may change grew by more than {} files while it ran", limits.growth_entries)
        }
        Space::Depth => "directories in directories, deeper than can be watched".into(),
        Space::Temporary => format!("more than {} of temporary files", size(limits.tmp_bytes)),
    }
}

/// Returns the sentence that describes a failure.
pub(super) fn sentence(failure: &Failure) -> String {
    match failure {
        Failure::JailRefused { why }
        | Failure::Sandbox { why }
        | Failure::NoHost { why }
        | Failure::WorkerFailed { why } => why.to_string(),
        other => other.reason().to_owned(),
    }
}

/// Returns whole seconds, rounded up, so that no limit reads as zero.
pub(super) fn whole_seconds(ttl: Ttl) -> u64 {
    u64::from(ttl.as_millis()).div_ceil(1000)
}
