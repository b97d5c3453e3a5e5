//! Finds the program of a preset on this machine: where it is, what it needs beside it, and its version.
//!
//! What lies in the repository is passed over, since a worker may have made it. A program, or a folder above it, that another
//! user can write is refused. Nothing is executed unless only the program itself knows its version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::presets::Preset;
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext, out};
use provost_system as system;

/// How long a program may take to say its version. Those in JavaScript take seconds on a busy machine.
const VERSION_TIME_MAX: Duration = Duration::from_secs(20);

/// Longest description of a package that is read, in bytes.
const PACKAGE_BYTES_MAX: u64 = 1 << 20;

/// Folders above a program in which the description of its package is looked for.
const PACKAGE_ABOVE_MAX: usize = 4;

/// Folders that every jail shows.
const SYSTEM: [&str; 6] = ["/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"];

/// Folders with programs of many packages; none of them is shown to a worker for the sake of one.
const SHARED_ENDS: [&str; 2] = ["bin", "sbin"];

/// A program that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// What starts it, without the preset's arguments.
    pub(super) command: Vec<String>,
    /// Folders and files outside of the system's that it needs.
    pub(super) read_only: Vec<String>,
    /// Its version, where that can be found out.
    pub(super) version: Option<String>,
    /// The file, without links.
    pub(super) real: PathBuf,
}

/// Finds a program. `named` is the path that somebody typed.
pub(super) fn find(here: &RepoContext, preset: &Preset, named: Option<&Path>) -> Result<Found, CliError> {
    let inside = [here.places.root.as_path(), here.places.worktree.as_path(), here.cwd.as_path()];
    let path = match named {
        Some(path) => here.cwd.join(path),
        None => system::find_program_outside(preset.program, &inside).ok_or_else(|| missing(preset))?,
    };
    let real = trusted(&path, &inside)?;
    let mut read_only = Vec::new();
    let mut command = Vec::new();
    match interpreter(&real) {
        // Named itself: a worker's program is started as an open file, which no interpreter finds by a name.
        Some((name, args)) => {
            let found = match Path::new(&name).is_absolute() {
                true => Some(PathBuf::from(&name)),
                false => system::find_program_outside(&name, &inside),
            };
            let program = found.ok_or_else(|| {
                CliError::of(format!("{} needs `{name}`, which is not on PATH", preset.title))
                    .next(format!("install {name}, then: provost agent add {}", preset.name))
            })?;
            let program = trusted(&program, &inside)?;
            needs(&program, &mut read_only)?;
            command.push(text(&program)?);
            command.extend(args);
            command.push(text(&real)?);
        }
        // Through a shell the program is started by its path, which has to be there in the jail; otherwise the link counts, so
        // that an update is followed.
        None if preset.shell.is_some() => command.push(text(&real)?),
        None => command.push(text(&path)?),
    }
    needs(&real, &mut read_only)?;
    let version = version(&real, &command);
    Ok(Found { command, read_only, version, real })
}

fn missing(preset: &Preset) -> CliError {
    let error = CliError::of(format!("{} is not on this machine", preset.title));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let planted = std::env::split_paths(&folders).map(|it| it.join(preset.program)).find(|it| it.is_file());
    let why = match planted {
        Some(path) => {
            format!("{} lies in the repository or is not absolute, and is never started", path.display())
        }
        None => format!("no folder of PATH has a program `{}`", preset.program),
    };
    error.because(why).next(format!("{}, then: provost agent add {}", preset.install, preset.name))
}

/// The file that a path leads to, if nobody else can change it.
fn trusted(path: &Path, inside: &[&Path]) -> Result<PathBuf, CliError> {
    let refused = |at: &Path, why: String| {
        CliError::refusal(format!("{} is not started", path.display()))
            .because(format!("{} {why}", at.display()))
            .next("correct that, or name another program with --program PATH")
    };
    let real = system::real_path(path).map_err(|err| refused(path, format!("cannot be found: {err}")))?;
    if !real.is_file() {
        return Err(refused(&real, "is no file".into()));
    }
    let tops = inside.iter().filter_map(|it| system::real_path(it).ok());
    if tops.into_iter().any(|top| real.starts_with(top)) {
        return Err(refused(&real, "lies in the repository, where workers write".into()));
    }
    // The name may be a link: who can replace that, chooses the program.
    for file in [real.as_path(), path] {
        for at in file.ancestors().filter(|at| !at.as_os_str().is_empty()) {
            if !is_sticky(at) {
                system::trusted(at).map_err(|why| refused(at, why))?;
            }
        }
    }
    Ok(real)
}

/// A folder like /tmp, where everybody writes and nobody replaces what another user has made.
#[cfg(unix)]
fn is_sticky(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().is_ok_and(|meta| meta.is_dir() && meta.mode() & 0o1000 != 0 && meta.uid() == 0)
}

#[cfg(not(unix))]
fn is_sticky(_: &Path) -> bool {
    false
}

/// The program that a script names in its first line, and its arguments: `node`, of `#!/usr/bin/env node`.
fn interpreter(real: &Path) -> Option<(String, Vec<String>)> {
    let (begin, _) = system::beginning(real, 200).ok()?;
    let line = begin.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some((program, words.collect()));
    }
    let mut words = words.skip_while(|word| word.starts_with('-') || word.contains('='));
    let name = words.next()?;
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    is_plain.then(|| (name, words.collect()))
}

/// Adds what has to be visible for a file to work: the packages around it, its folder, or the file alone.
fn needs(real: &Path, read_only: &mut Vec<String>) -> Result<(), CliError> {
    if SYSTEM.iter().any(|at| real.starts_with(at)) {
        return Ok(());
    }
    let packages = real.ancestors().filter(|at| at.ends_with("node_modules")).last();
    let folder = real.parent().unwrap_or(real);
    let is_shared = SHARED_ENDS.iter().any(|end| folder.ends_with(end));
    let place = match packages {
        Some(packages) => packages,
        // An installation of its own has `bin` and `lib` side by side; `~/.local/bin` and `~/bin` belong to everything.
        None if is_shared && folder.parent().is_some_and(|above| above.join("lib/node_modules").is_dir()) => {
            folder.parent().unwrap_or(folder)
        }
        None if is_shared => real,
        None => folder,
    };
    let place = text(place)?;
    if !read_only.contains(&place) {
        read_only.push(place);
    }
    Ok(())
}

fn text(path: &Path) -> Result<String, CliError> {
    let text = path.to_str().filter(|it| !it.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        CliError::of(format!("{} has a name that no entry can hold", path.display()))
            .next("install the program in a folder with a plain name")
    })
}

/// The version: as its package says, or as the program does.
fn version(real: &Path, command: &[String]) -> Option<String> {
    packaged(real).or_else(|| spoken(command))
}

fn packaged(real: &Path) -> Option<String> {
    let above = real.ancestors().skip(1).take(PACKAGE_ABOVE_MAX);
    let package = above.map(|at| at.join("package.json")).find(|it| it.is_file())?;
    let package: Value = serde_json::from_str(&system::short_text(&package, PACKAGE_BYTES_MAX).ok()?).ok()?;
    package.get("version")?.as_str().map(|it| out::one_line(it, 40))
}

fn spoken(command: &[String]) -> Option<String> {
    let (program, args) = command.split_first()?;
    let mut asked = tokio::process::Command::new(program);
    asked.args(args).arg("--version").current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    let answer = asked.env_clear().env("PATH", system::program_folders()).kill_on_drop(true);
    let text = wait_for(async {
        let done = tokio::time::timeout(VERSION_TIME_MAX, answer.output()).await;
        Ok(done.ok().and_then(Result::ok).filter(|it| it.status.success()).map(|it| it.stdout))
    });
    let text = text.ok()??;
    let line = String::from_utf8_lossy(&text).lines().next().map(|it| out::one_line(it, 40))?;
    line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}
