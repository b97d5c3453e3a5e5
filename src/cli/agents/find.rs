//! Finds the program of a preset on this machine: its path, the files that it needs, and its version.
//!
//! Programs in the repository are skipped, since a worker may have made them. A program is refused if another user can write
//! it, or a folder above it. Nothing is executed unless only the program itself knows its version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use super::presets::{Form, Preset};
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext, out};
use provost_base::limits::{PACKAGE_BYTES_MAX, PROGRAM_VERSION_BYTES_MAX};
use provost_system as system;

/// The time that a program may take to print its version. Programs in JavaScript take seconds on a busy machine.
const VERSION_TIME_MAX: Duration = Duration::from_secs(20);

/// The number of folders above a program in which the description of its package is looked for.
const PACKAGE_ABOVE_MAX: usize = 4;

/// Folders that every jail shows.
const SYSTEM: [&str; 6] = ["/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"];

/// How long the rest of an answer is awaited after its program and its group have ended.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// The most work trees that are read; no program inside of a work tree is started.
const TREES_MAX: usize = 4_096;

/// A program that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// The command that starts it, without the preset's arguments.
    pub(super) command: Vec<String>,
    /// Folders and files that it needs, outside of the system's folders.
    pub(super) read_only: Vec<String>,
    /// Its version; `None` if that cannot be found out.
    pub(super) version: Option<String>,
    /// The path of the file, with links resolved.
    pub(super) real: PathBuf,
    /// The major version of Node.js that it requires, and the older one that would start it.
    pub(super) old_node: Option<(u32, String)>,
}

/// Checks whether a program of this name is on `PATH`, outside of folders in which workers write.
pub(super) fn is_there(here: &RepoContext, program: &str) -> bool {
    let trees = here.places.worktrees(TREES_MAX);
    system::find_program_outside(program, &outside_of(here, &trees)).is_some()
}

/// Returns the version that a program of this name prints, among those on `PATH` outside of folders in which workers write.
pub(crate) fn version_on_path(here: &RepoContext, program: &str) -> Option<String> {
    let trees = here.places.worktrees(TREES_MAX);
    let found = system::find_program_outside(program, &outside_of(here, &trees))?;
    spoken(&[found.to_str()?.to_owned()])
}

/// Checks whether a path leads to the program of a form, by its name or by the name of its package.
pub(super) fn is_of(here: &RepoContext, path: &Path, form: &Form) -> bool {
    let path = here.cwd.join(path);
    let is_named = |path: &Path| path.file_stem().is_some_and(|it| it == form.program);
    let is_packaged = |real: &Path| {
        let name = package(real, form).and_then(|(_, it)| it["name"].as_str().map(str::to_owned));
        name.is_some_and(|it| form.install.ends_with(&format!(" {it}")))
    };
    is_named(&path) || system::real_path(&path).is_ok_and(|it| is_named(&it) || is_packaged(&it))
}

/// Returns the folders from which no program is taken: workers write in all work trees, not only in this one.
fn outside_of<'a>(here: &'a RepoContext, trees: &'a [PathBuf]) -> Vec<&'a Path> {
    let own = [&here.places.root, &here.places.worktree, &here.places.identity, &here.cwd];
    trees.iter().map(PathBuf::as_path).chain(own.map(|it| it.as_path())).collect()
}

/// Finds a program. `named` is the path that the caller typed.
pub(super) fn find(
    here: &RepoContext,
    preset: &Preset,
    form: &Form,
    named: Option<&Path>,
) -> Result<Found, CliError> {
    let trees = here.places.worktrees(TREES_MAX);
    let inside = outside_of(here, &trees);
    let path = match named {
        Some(path) => here.cwd.join(path),
        None => system::find_program_outside(form.program, &inside).ok_or_else(|| missing(preset, form))?,
    };
    let real = trusted(&path, &inside)?;
    let mut read_only = Vec::new();
    let mut command = Vec::new();
    let started_by = interpreter(&real);
    let is_script = started_by.is_some();
    match started_by {
        // The command names the interpreter: the jail starts a worker's program as an open file, whose first line then finds
        // no interpreter.
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
            needs(&program, None, &mut read_only)?;
            command.push(text(&program)?);
            command.extend(args);
            command.push(text(&real)?);
        }
        // A shell starts the program by its path, which must exist in the jail; otherwise the link is used, so that
        // it follows an update.
        None if form.shell.is_some() => command.push(text(&real)?),
        None => command.push(text(&path)?),
    }
    needs(&real, Some(form), &mut read_only)?;
    let version = packaged(&real, form).or_else(|| spoken(&command));
    let old_node = if is_script { old_node_of(&command) } else { None };
    Ok(Found { command, read_only, version, real, old_node })
}

fn missing(preset: &Preset, form: &Form) -> CliError {
    let error = CliError::of(format!("{} is not on this machine", preset.title));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let planted = std::env::split_paths(&folders).map(|it| it.join(form.program)).find(|it| it.is_file());
    let why = match planted {
        Some(path) => {
            format!("{} lies in the repository or is not absolute, and is never started", path.display())
        }
        None => format!("no folder of PATH has a program `{}`", form.program),
    };
    let install = match preset.acp.install {
        // The adapter brings the program along.
        adapter if adapter != form.install => format!("{adapter}, or: {}", form.install),
        only => only.to_owned(),
    };
    error.because(why).next(format!("{install}; then: provost agent add {}", preset.name))
}

/// Returns the file that a path leads to, if no other user can change it.
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
    if !is_executable(&real) {
        return Err(refused(&real, "is not executable".into()));
    }
    let tops = inside.iter().filter_map(|it| system::real_path(it).ok());
    if tops.into_iter().any(|top| real.starts_with(top)) {
        return Err(refused(&real, "lies in the repository, where workers write".into()));
    }
    // The name may be a link: a user who can replace the link chooses the program.
    for file in [real.as_path(), path] {
        for at in file.ancestors().filter(|at| !at.as_os_str().is_empty()) {
            if !is_sticky(at) {
                system::trusted(at).map_err(|why| refused(at, why))?;
            }
        }
    }
    Ok(real)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

/// Checks whether a folder is like /tmp: every user can write there, and no user can replace a file of another user.
#[cfg(unix)]
fn is_sticky(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().is_ok_and(|meta| meta.is_dir() && meta.mode() & 0o1000 != 0 && meta.uid() == 0)
}

#[cfg(not(unix))]
fn is_sticky(_: &Path) -> bool {
    false
}

/// Returns the program that a script names in its first line, and its arguments: `node`, of `#!/usr/bin/env node`.
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

/// Adds the paths that must be visible for a file to work: its installation if that is known, or else the file alone.
/// An interpreter has no preset.
fn needs(real: &Path, form: Option<&Form>, read_only: &mut Vec<String>) -> Result<(), CliError> {
    if SYSTEM.iter().any(|at| real.starts_with(at)) {
        return Ok(());
    }
    let place = installation(real, form).filter(|it| !is_shared(it));
    let place = text(&place.unwrap_or_else(|| real.to_owned()))?;
    if !read_only.contains(&place) {
        read_only.push(place);
    }
    Ok(())
}

/// Returns the folder that has this program's installation, and nothing else.
fn installation(real: &Path, form: Option<&Form>) -> Option<PathBuf> {
    let packages = real.ancestors().filter(|at| at.ends_with("node_modules")).last();
    if let Some(packages) = packages {
        // A package that is installed for all projects has its dependencies below its own folder; elsewhere they lie beside it.
        return match packages.parent().is_some_and(|above| above.ends_with("lib")) {
            true => package_below(packages, real),
            false => Some(packages.to_owned()),
        };
    }
    let form = form?;
    if let Some((folder, _)) = package(real, form) {
        return Some(folder);
    }
    // Claude's installer has a file for each version; the link to it changes with an update.
    let versions = real.parent().filter(|it| it.ends_with("versions"))?;
    versions.parent().is_some_and(|it| it.ends_with(form.program)).then(|| versions.to_owned())
}

/// Returns `node_modules/PACKAGE`, or `node_modules/@SCOPE/PACKAGE`.
fn package_below(packages: &Path, real: &Path) -> Option<PathBuf> {
    let mut names = real.strip_prefix(packages).ok()?.iter();
    let first = packages.join(names.next()?);
    let has_scope = first.file_name()?.to_str().is_some_and(|it| it.starts_with('@'));
    Some(if has_scope { first.join(names.next()?) } else { first })
}

/// Checks whether a folder contains more than one installation: a home or a folder above one, and those right below `/`.
fn is_shared(folder: &Path) -> bool {
    let parts = folder.components().count();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let real = home.as_deref().and_then(|it| system::real_path(it).ok());
    let is_home = [home, real].into_iter().flatten().any(|home| home.starts_with(folder));
    is_home || parts <= 2 || (folder.starts_with("/home") && parts <= 3)
}

fn text(path: &Path) -> Result<String, CliError> {
    let text = path.to_str().filter(|it| !it.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        CliError::of(format!("{} has a name that no entry can hold", path.display()))
            .next("install the program in a folder with a plain name")
    })
}

/// Returns the package of a program: its folder, and its description. The description of another program is skipped.
fn package(real: &Path, form: &Form) -> Option<(PathBuf, Value)> {
    let names = [form.install.rsplit(' ').next().unwrap_or(form.program), form.program];
    real.ancestors().skip(1).take(PACKAGE_ABOVE_MAX).find_map(|folder| {
        let text = system::short_text(&folder.join("package.json"), PACKAGE_BYTES_MAX).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        let is_named = package["name"].as_str().is_some_and(|it| names.contains(&it));
        let is_of_it = is_named || package["bin"].get(form.program).is_some();
        is_of_it.then(|| (folder.to_owned(), package))
    })
}

/// Returns the version that the program's package states.
fn packaged(real: &Path, form: &Form) -> Option<String> {
    package(real, form)?.1.get("version")?.as_str().map(|it| out::one_line(it, 40))
}

/// Returns the major version of Node.js that the package of a script requires, such as 22 for `>=22.0.0`, and the
/// older version with which a command starts it.
pub(super) fn old_node_of(command: &[String]) -> Option<(u32, String)> {
    let at = command.iter().position(|it| Path::new(it).is_absolute() && it.ends_with("node"))?;
    let script = command[at + 1..].iter().map(Path::new).find(|it| it.is_absolute())?;
    let needed = script.ancestors().skip(1).take(PACKAGE_ABOVE_MAX).find_map(|folder| {
        let text = system::short_text(&folder.join("package.json"), PACKAGE_BYTES_MAX).ok()?;
        let package: Value = serde_json::from_str(&text).ok()?;
        major(package.pointer("/engines/node")?.as_str()?.trim().strip_prefix(">=")?)
    })?;
    let node = spoken(&command[at..=at])?;
    major(&node).is_some_and(|it| it < needed).then_some((needed, node))
}

fn major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Returns the version that the program prints. The program has a bounded time for a bounded answer, and no process
/// that it has started outlives that time.
fn spoken(command: &[String]) -> Option<String> {
    let (program, args) = command.split_first()?;
    let mut asked = std::process::Command::new(program);
    asked.args(args).arg("--version").current_dir("/");
    asked.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    asked.env_clear().env("PATH", system::program_folders());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut asked, 0);
    let said = wait_for(async { Ok(said(asked).await) });
    let said = said.ok()??;
    let line = String::from_utf8_lossy(&said).lines().next().map(|it| out::one_line(it, 40))?;
    let mut words = line.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

/// Returns the output of a program, if it ends well.
async fn said(asked: std::process::Command) -> Option<Vec<u8>> {
    let mut child = tokio::process::Command::from(asked).kill_on_drop(true).spawn().ok()?;
    let group = child.id()?;
    let stdout = child.stdout.take()?;
    let mut reading = Box::pin(async move {
        let mut said = Vec::new();
        let read = stdout.take(PROGRAM_VERSION_BYTES_MAX).read_to_end(&mut said).await;
        read.ok().map(|_| said)
    });
    let asking = async {
        tokio::select! {
            said = &mut reading => (Some(said), child.wait().await),
            status = child.wait() => (None, status),
        }
    };
    let ended = tokio::time::timeout(VERSION_TIME_MAX, asking).await;
    end_group(group);
    let (said, status) = ended.ok()?;
    status.ok().filter(std::process::ExitStatus::success)?;
    match said {
        Some(said) => said,
        // The program has ended, and its output is in the pipe.
        None => tokio::time::timeout(REST_TIME_MAX, reading).await.ok()?,
    }
}

#[cfg(unix)]
fn end_group(number: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(number).ok().and_then(Pid::from_raw) {
        let _none_left = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_: u32) {}
