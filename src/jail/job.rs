//! What tier `job` is made of, as far as it can be said without Windows: text and numbers, made from the plan
//! alone.
//!
//! A job object holds the worker's processes together and to their limits; a token that is restricted for
//! writing, and of low integrity, keeps them from writing anywhere but in folders made for them. Each such
//! folder names an identity of its own ([`folder_identity`]) in its access list, and the token is restricted
//! to the identities of the worker's folders.
//!
//! What is not covered stands in [`OPEN_IN_JOB`].
#![forbid(unsafe_code)]

use std::path::Path;

use super::bounds::Limits;
use super::machine::KnownOpen;
use super::plan::Plan;
use provost_base::Digest;

const fn open(attempt: &'static str, what: &'static str) -> KnownOpen {
    KnownOpen { attempt, what }
}

/// What stays open in tier `job`, for people who let workers run in it.
pub const OPEN_IN_JOB: [KnownOpen; 7] = [
    open(
        "job.read_files",
        "read every file that its user may read, keys and secrets of other programs among them",
    ),
    open("job.network", "connect to anything that this machine reaches, and listen"),
    open("job.list_processes", "list processes and their command lines"),
    open("job.settings", "read the user's part of the registry"),
    open("job.services", "ask services of the system for what they give to every user"),
    open("job.file_size", "write files of any size, and have any number of them open, until it is looked at"),
    open("job.low", "write what is open to everybody and to programs of low integrity"),
];

/// What a job object holds a worker to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobLimits {
    /// How many processes may run at the same time.
    pub processes: u32,
    /// Memory committed by one process, in bytes.
    pub process_bytes: usize,
    /// By all of them, in bytes.
    pub job_bytes: usize,
    /// Processor time of one process in user mode, in hundreds of nanoseconds.
    pub process_time: i64,
}

/// Hundreds of nanoseconds in a second.
const TICKS: u64 = 10_000_000;

/// The job object's share of a worker's limits. A number that the system cannot hold becomes the largest that
/// it can.
pub fn job_limits(limits: &Limits) -> JobLimits {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    JobLimits {
        processes: limits.processes,
        process_bytes: bytes(limits.data_bytes),
        job_bytes: bytes(limits.resident_bytes),
        process_time: i64::try_from(limits.cpu_seconds.saturating_mul(TICKS)).unwrap_or(i64::MAX),
    }
}

/// The identity that may write in a worker's folder, and that no account has. It is made from the folder's
/// own name, which is not used twice.
pub fn folder_identity(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    let digest =
        Digest::of_fields([b"provost worker folder".as_slice(), name.as_encoded_bytes()]).to_string();
    let part =
        |at: usize| u32::from_str_radix(digest.get(at * 8..at * 8 + 8).unwrap_or_default(), 16).unwrap_or(0);
    // Of the form that accounts have, in a domain that is none.
    format!("S-1-5-21-{}-{}-{}-{}", part(0), part(1), part(2), part(3))
}

/// Owner's and system's rights, changing what is in it for the worker, and low integrity; for everything
/// below, too.
pub fn folder_descriptor(user: &str, identity: &str) -> String {
    // Reading, writing, executing and deleting, but neither rights nor owners are the worker's to change.
    const CHANGE: &str = "0x1301bf";
    format!(
        "D:P(A;OICI;FA;;;{user})(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;{CHANGE};;;{identity})S:(ML;OICI;NW;;;LW)"
    )
}

/// Who may use what the worker makes besides files (processes, events, pipes) when it says nothing about that.
pub fn object_descriptor(user: &str, identities: &[String]) -> String {
    let theirs: String = identities.iter().map(|identity| format!("(A;;GA;;;{identity})")).collect();
    format!("D:(A;;GA;;;{user})(A;;GA;;;SY){theirs}")
}

/// The command line of a program that takes its arguments apart as most do; of `cmd.exe`, which does it
/// otherwise, with the last argument between quotation marks and everything else as it is.
///
/// # Errors
/// A sentence about a program that cannot be started so.
pub fn command_line(program: &Path, args: &[String]) -> Result<String, String> {
    let text = program.to_str().ok_or("its name is not plain text")?;
    if text.contains('"') {
        return Err(format!("{text}: has a quotation mark in its name"));
    }
    let name = text.rsplit(['\\', '/']).next().unwrap_or_default().to_ascii_lowercase();
    if !(name.ends_with(".exe") || name.ends_with(".com")) {
        return Err(format!(
            "{text}: is not an .exe file; a script is started by naming its interpreter, with the script among `args`"
        ));
    }
    let mut line = format!("\"{text}\"");
    let shell = name == "cmd.exe";
    for (at, arg) in args.iter().enumerate() {
        line.push(' ');
        match (shell, at + 1 == args.len()) {
            (true, true) => line.push_str(&format!("\"{arg}\"")),
            (true, false) => line.push_str(arg),
            (false, _) => quote(arg, &mut line),
        }
    }
    // The system's own bound, with the end that it counts.
    match line.encode_utf16().count() < COMMAND_LINE_MAX {
        true => Ok(line),
        false => {
            Err(format!("its command line is longer than the {COMMAND_LINE_MAX} units that Windows takes"))
        }
    }
}

/// UTF-16 units of the longest command line, with its end.
const COMMAND_LINE_MAX: usize = 32_767;

/// Backslashes count only before a quotation mark, where each stands for half of one.
fn quote(arg: &str, line: &mut String) {
    line.push('"');
    let mut slashes = 0;
    for letter in arg.chars() {
        match letter {
            '\\' => slashes += 1,
            '"' => {
                line.extend(std::iter::repeat_n('\\', slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        line.push(letter);
    }
    line.extend(std::iter::repeat_n('\\', slashes));
    line.push('"');
}

/// The worker's variables, those that lead to a home among them changed to lead into its private folder.
pub fn job_environment(plan: &Plan, scratch: &Path) -> Vec<(String, String)> {
    let inside = |name: &str| scratch.join(name).to_string_lossy().into_owned();
    let own = [
        ("APPDATA", inside("home")),
        ("HOME", inside("home")),
        ("LOCALAPPDATA", inside("home")),
        ("TEMP", inside("tmp")),
        ("TMP", inside("tmp")),
        ("TMPDIR", inside("tmp")),
        ("USERPROFILE", inside("home")),
    ];
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let given = plan.environment.iter().filter(|(name, _)| !is_own(name));
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all: Vec<_> =
        given.chain(own.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect();
    // As the system keeps them.
    all.sort_by_key(|(name, _)| name.to_ascii_uppercase());
    all
}

/// Variables in the form in which a process is given them.
pub fn environment_block(variables: &[(String, String)]) -> Vec<u16> {
    let mut block = Vec::new();
    for (name, value) in variables {
        block.extend(format!("{name}={value}").encode_utf16());
        block.push(0);
    }
    block.push(0);
    block
}
