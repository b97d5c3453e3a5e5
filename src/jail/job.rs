//! The parts of tier `job` that do not need Windows: text and numbers, made from the plan
//! alone.
//!
//! A job object holds the worker's processes together and to their limits; a token that is restricted for
//! writing, and of low integrity, keeps them from writing anywhere but in folders made for them. Each such
//! folder names an identity of its own ([`folder_identity`]) in its access list, and the token is restricted
//! to the identities of the worker's folders.
//!
//! The known gaps are listed in [`OPEN_IN_JOB`].
#![forbid(unsafe_code)]

use std::path::Path;

use super::bounds::Limits;
use super::machine::KnownOpen;
use super::plan::Plan;
use provost_base::Digest;

const fn open(attempt: &'static str, what: &'static str) -> KnownOpen {
    KnownOpen { attempt, what }
}

/// The known gaps of tier `job`, for people who let workers run in it.
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

/// The limits that a job object enforces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobLimits {
    /// How many processes may run at the same time.
    pub processes: u32,
    /// Memory committed by one process, in bytes.
    pub process_bytes: usize,
    /// Memory committed by all processes, in bytes.
    pub job_bytes: usize,
    /// Processor time of one process in user mode, in hundreds of nanoseconds.
    pub process_time: i64,
}

/// The number of ticks, of a hundred nanoseconds each, in a second.
const TICKS: u64 = 10_000_000;

/// Returns the job object's part of a worker's limits. A number that the system cannot hold becomes the largest that
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

/// Returns the identity that may write in a worker's folder, and that no account has. It is made from the folder's
/// own name, which is not used twice.
pub fn folder_identity(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    let digest =
        Digest::of_fields([b"provost worker folder".as_slice(), name.as_encoded_bytes()]).to_string();
    let part =
        |at: usize| u32::from_str_radix(digest.get(at * 8..at * 8 + 8).unwrap_or_default(), 16).unwrap_or(0);
    // The form is that of accounts, in a domain that does not exist.
    format!("S-1-5-21-{}-{}-{}-{}", part(0), part(1), part(2), part(3))
}

/// Returns the folder's security descriptor: full rights for owner and system, changing the contents for the worker, and low
/// integrity; inherited by all files below.
pub fn folder_descriptor(user: &str, identity: &str) -> String {
    // The worker may read, write, execute and delete, but change neither rights nor owners.
    const CHANGE: &str = "0x1301bf";
    format!(
        "D:P(A;OICI;FA;;;{user})(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;{CHANGE};;;{identity})S:(ML;OICI;NW;;;LW)"
    )
}

/// Returns the descriptor of objects that the worker makes without naming one (processes, events, pipes).
pub fn object_descriptor(user: &str, identities: &[String]) -> String {
    let theirs: String = identities.iter().map(|identity| format!("(A;;GA;;;{identity})")).collect();
    format!("D:(A;;GA;;;{user})(A;;GA;;;SY){theirs}")
}

/// Returns the command line of a program that parses its arguments as most programs do; for `cmd.exe`, which parses
/// differently, with the last argument between quotation marks and all others unchanged.
///
/// # Errors
/// A sentence about a program that cannot be started in this way.
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
    // The system's own bound, which counts the terminating null.
    match line.encode_utf16().count() < COMMAND_LINE_MAX {
        true => Ok(line),
        false => {
            Err(format!("its command line is longer than the {COMMAND_LINE_MAX} units that Windows takes"))
        }
    }
}

/// UTF-16 units of the longest command line, with its terminating null.
const COMMAND_LINE_MAX: usize = 32_767;

/// Appends an argument in quotation marks. Backslashes count only before a quotation mark, where two stand for one.
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

/// Returns the worker's variables; those that lead to a home lead into its private folder.
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
    // The system keeps them in this order.
    all.sort_by_key(|(name, _)| name.to_ascii_uppercase());
    all
}

/// Returns variables in the form in which a process gets them.
pub fn environment_block(variables: &[(String, String)]) -> Vec<u16> {
    let mut block = Vec::new();
    for (name, value) in variables {
        block.extend(format!("{name}={value}").encode_utf16());
        block.push(0);
    }
    block.push(0);
    block
}
