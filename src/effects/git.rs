//! What git would run from within a workspace, as git itself says it. Blocking.
//!
//! `git config --list` reads configuration and does nothing else: no hook, no file system monitor, no driver, no
//! pager is started by it. It is asked because its answer includes what no single file says: the user's and the
//! system's configuration, and files that others include.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::base::limits::{GIT_ANSWER_BYTES_MAX, GIT_ANSWER_MS_MAX};
use crate::jail::Missing;

/// Ends of keys whose values are programs.
const PROGRAMS: [&str; 25] = [
    ".alternaterefscommand",
    ".clean",
    ".cmd",
    ".command",
    ".defaultkeycommand",
    ".difffilter",
    ".driver",
    ".editor",
    ".external",
    ".fsmonitor",
    ".gitproxy",
    ".helper",
    ".packobjectshook",
    ".pager",
    ".postbuffercmd",
    ".process",
    ".program",
    ".receivepack",
    ".recentobjectshook",
    ".smudge",
    ".sshcommand",
    ".textconv",
    ".uploadpack",
    ".askpass",
    ".path",
];

/// Beginnings of keys of the same.
const PROGRAM_SECTIONS: [&str; 3] = ["alias.", "pager.", "sendemail."];

/// Files and folders that git's configuration names, absolute and by their words, with what stands in for a
/// missing one.
pub(super) type Named = BTreeMap<PathBuf, Missing>;

/// What a configuration means that git itself cannot read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreadable {
    /// The user is to mend it first.
    IsRefused,
    /// Git runs nothing there, and no worker can mend it.
    RunsNothing,
}

/// Asks git. Empty where there is no git.
///
/// # Errors
/// A sentence when git cannot be asked, or not in time: then it is not known what it would run.
pub(super) fn named_by_git(root: &Path, unreadable: Unreadable) -> Result<Named, String> {
    // The workspace may be a folder of the repository; names are from the repository's top.
    let is_top = |folder: &&Path| std::fs::symlink_metadata(folder.join(".git")).is_ok();
    let Some(root) = root.ancestors().find(is_top) else { return Ok(Named::new()) };
    let mut git = Command::new("git");
    git.args(["--no-pager", "config", "--list", "--show-origin", "-z"]).current_dir(root).env_clear();
    for name in ["PATH", "HOME", "XDG_CONFIG_HOME"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let answer = answer_of(git);
    let answer = match (answer, unreadable) {
        (Ok(Ok(answer)), _) => Ok(answer),
        (Ok(Err(_)), Unreadable::RunsNothing) => return Ok(Named::new()),
        (Ok(Err(status)), Unreadable::IsRefused) => Err(format!("`git config --list` ended with {status}")),
        (Err(why), _) => Err(why),
    };
    let answer = answer.map_err(|why| {
        format!(
            "git's configuration cannot be read in {}, so what it would run is not known: {why}; mend it and delegate again",
            root.display()
        )
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    Ok(read(&answer, root, &home))
}

/// What a program prints, within bounds, or how it ended that was no success. Empty where there is no such program: then
/// it runs nothing either.
fn answer_of(mut program: Command) -> Result<Result<Vec<u8>, ExitStatus>, String> {
    let mut child = match program.spawn() {
        Ok(child) => child,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Ok(Vec::new())),
        Err(err) => return Err(err.to_string()),
    };
    let (tell, heard) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Ends when the program does, at the latest when it is killed.
        let reads = std::thread::Builder::new().name("git".into()).spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(GIT_ANSWER_BYTES_MAX + 1).read_to_end(&mut answer);
            // Who does not listen any more has given up.
            let _unheard = tell.send(read.map(|_| answer));
        });
        if let Err(err) = reads {
            // It has ended by itself if this fails.
            let _ended = child.kill();
            child.wait().map_err(|err| err.to_string())?;
            return Err(format!("it could not be listened to: {err}"));
        }
    }
    let answer = match heard.recv_timeout(Duration::from_millis(GIT_ANSWER_MS_MAX)) {
        Err(_) => Err(format!("it took longer than {GIT_ANSWER_MS_MAX} ms")),
        Ok(Err(err)) => Err(err.to_string()),
        Ok(Ok(answer)) if answer.len() as u64 > GIT_ANSWER_BYTES_MAX => {
            Err(format!("it is larger than {GIT_ANSWER_BYTES_MAX} bytes"))
        }
        Ok(Ok(answer)) => Ok(answer),
    };
    if answer.is_err() {
        // It has ended by itself if this fails.
        let _ended = child.kill();
    }
    let status = child.wait().map_err(|err| err.to_string())?;
    let answer = answer?;
    Ok(if status.success() { Ok(answer) } else { Err(status) })
}

/// Reads origins, keys and values off git's answer.
fn read(answer: &[u8], root: &Path, home: &Path) -> Named {
    let mut named = Named::new();
    let text = String::from_utf8_lossy(answer);
    let mut parts = text.split('\0');
    while let (Some(origin), Some(entry)) = (parts.next(), parts.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let file = origin.strip_prefix("file:").map(|file| absolute(root, home, file));
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(root);
        if let Some(file) = &file {
            named.insert(file.clone(), Missing::File);
        }
        let is_include = key == "include.path" || (key.starts_with("includeif.") && key.ends_with(".path"));
        if key == "core.hookspath" {
            named.insert(absolute(root, home, value), Missing::Directory);
        } else if is_include {
            // Also where its condition does not hold at present: a worker may bring that about.
            named.insert(absolute(folder, home, value), Missing::File);
        } else if PROGRAMS.iter().any(|end| key.ends_with(end))
            || PROGRAM_SECTIONS.iter().any(|section| key.starts_with(section))
        {
            let words =
                value.split_whitespace().map(|word| word.trim_matches(['"', '\'', '!', ';', '(', ')']));
            for (number, word) in words.filter(|word| !word.is_empty()).enumerate() {
                let file = absolute(root, home, word);
                // The program itself may be on another branch; a worker is not the one to bring it.
                let is_missing =
                    number == 0 && word.contains('/') && !file.exists() && file.starts_with(root);
                if is_missing || file.is_file() {
                    named.insert(file, if is_missing { Missing::File } else { Missing::Leave });
                }
            }
        }
    }
    named
}

/// A path as git reads it, without `.` and, by its words, without `..`.
pub(super) fn absolute(folder: &Path, home: &Path, text: &str) -> PathBuf {
    let path = match text.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => folder.join(text),
    };
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
