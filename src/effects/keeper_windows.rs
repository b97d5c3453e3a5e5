//! The process between the daemon and a hook, which makes sure that no process of a hook outlives it: on Windows a job object, to which
//! all processes of the keeper belong, and which ends with the keeper.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use provost_system::end_children_with_us;

/// The hidden command under which this executable is a keeper; the hook's own command line follows.
pub(super) const ARGUMENT: &str = "__hook";

/// The default `PATH`, for a daemon that has none.
pub(super) const USUAL_PATH: &str = r"C:\Windows\System32;C:\Windows";

/// Variables that hooks get from the daemon's environment, in addition to those of every system.
pub(super) const TAKEN_OVER_TOO: &[&str] = &[
    "APPDATA",
    "ComSpec",
    "LOCALAPPDATA",
    "PATHEXT",
    "PSModulePath",
    "Path",
    "ProgramData",
    "ProgramFiles",
    "SystemDrive",
    "SystemRoot",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "windir",
];

/// The exit code by which shells report a program that cannot be started.
const NOT_STARTED: i32 = 127;

/// PowerShell's options for no profile, no prompt and no question. DevIt 1.9.
const OPTIONS: [&str; 5] = ["-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-STA"];

/// Returns the command that carries out a hook's line: a script with that name if there is one, or else words for PowerShell.
pub(super) fn shell(line: &str) -> Vec<OsString> {
    let mut command: Vec<OsString> = vec![power_shell().into()];
    command.extend(OPTIONS.map(OsString::from));
    let script = Path::new(line.trim()).is_file();
    command.push(if script { "-File" } else { "-Command" }.into());
    command.push(line.trim().into());
    command
}

/// Returns the PowerShell that `DEVIT_POWERSHELL` names, the system's, or one that is found by name.
fn power_shell() -> PathBuf {
    if let Some(named) = std::env::var_os("DEVIT_POWERSHELL").filter(|named| !named.is_empty()) {
        return named.into();
    }
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    let system = Path::new(&root).join(r"System32\WindowsPowerShell\v1.0\powershell.exe");
    if system.is_file() { system } else { "pwsh.exe".into() }
}

/// Becomes a keeper if the daemon has started this process as one; does not return then.
pub fn keep_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == ARGUMENT) {
        let line: Vec<OsString> = args.collect();
        std::process::exit(keep(&line));
    }
}

fn keep(line: &[OsString]) -> i32 {
    let Some((program, args)) = line.split_first() else { return NOT_STARTED };
    if let Err(err) = end_children_with_us() {
        complain(&format!("a hook's processes cannot be kept together: {err}"));
        return NOT_STARTED;
    }
    let mut hook = match Command::new(program).args(args).stdin(Stdio::null()).spawn() {
        Ok(hook) => hook,
        Err(err) => {
            complain(&format!("{}: {err}", program.display()));
            return NOT_STARTED;
        }
    };
    std::thread::spawn(|| {
        // The daemon never sends anything; the end of the pipe is the order, and the keeper's end is that of the whole job.
        let _ended = std::io::stdin().read(&mut [0]);
        std::process::exit(NOT_STARTED);
    });
    hook.wait().ok().and_then(|status| status.code()).unwrap_or(NOT_STARTED)
}

/// Writes to standard error, which the daemon reads.
fn complain(text: &str) {
    use std::io::Write as _;
    let _nobody_reads = writeln!(std::io::stderr(), "{text}");
}

/// Does nothing: a job ends with its keeper in every case.
pub(super) fn end_orphans(_keeper: u32) {}
