//! Installs the hooks, removes them, and lists the installed ones.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::hooks::{BEFORE, HOOKS, Hook, is_ours};
use crate::cli_error::DONE;
use crate::{CliError, RepoContext, out};
use provost_system::{make_executable, real_path};

/// The state of a hook.
#[derive(Serialize)]
pub(crate) struct Standing {
    hook: &'static str,
    path: String,
    /// `installed`, `outdated`, `missing`, `other`.
    state: &'static str,
    /// Whether it first runs an earlier hook.
    chained: bool,
}

impl Standing {
    /// Checks whether it tells others of commits.
    pub(crate) fn tells_commits(&self) -> bool {
        self.hook == "post-commit" && matches!(self.state, "installed" | "outdated")
    }
}

/// Returns the folder in which git looks for hooks, by `core.hooksPath` and work trees.
fn folder(here: &RepoContext) -> Result<PathBuf, CliError> {
    let wrong = |why: String| {
        CliError::of("git does not say where its hooks are")
            .because(why)
            .next("git rev-parse --git-path hooks")
    };
    // A relative `core.hooksPath` begins at the top.
    let top = &here.places.worktree;
    let mut git = Command::new("git");
    let said = git.args(["rev-parse", "--git-path", "hooks"]).current_dir(top).output();
    let said = said.map_err(|err| wrong(err.to_string()))?;
    if !said.status.success() {
        return Err(wrong(String::from_utf8_lossy(&said.stderr).trim().to_owned()));
    }
    let text = String::from_utf8(said.stdout).map_err(|_| wrong("its path is not UTF-8".into()))?;
    Ok(top.join(text.trim_end_matches(['\n', '\r'])))
}

/// Checks whether the folder belongs to this repository alone.
fn is_own(here: &RepoContext, folder: &Path) -> bool {
    let real = |path: &Path| real_path(path).unwrap_or_else(|_| path.to_owned());
    // A missing folder lies where its parent does.
    let place = folder.ancestors().find(|it| it.exists()).map_or_else(|| folder.to_owned(), real);
    [&here.places.identity, &here.places.root, &here.places.worktree]
        .iter()
        .any(|it| place.starts_with(real(it)))
}

/// Returns the path of this program, for scripts that outlive it.
fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|err| CliError::of("this program does not know where it is").because(err))
}

fn before(hook: &Path) -> PathBuf {
    let mut name = hook.as_os_str().to_owned();
    name.push(BEFORE);
    name.into()
}

fn failed(path: &Path, err: impl std::fmt::Display) -> CliError {
    CliError::of(format!("{} cannot be changed", path.display()))
        .because(err)
        .next("make the folder of the hooks writable for you, then run this again")
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn install(here: &RepoContext, shared: bool) -> Result<u8, CliError> {
    let folder = folder(here)?;
    if !shared && !is_own(here, &folder) {
        return Err(CliError::refusal("core.hooksPath leads out of this repository")
            .because(format!("{} may be the hooks of other repositories, too", folder.display()))
            .next("provost git install --shared, or: git config --local core.hooksPath .git/hooks"));
    }
    let when_unchecked = here.config(None)?.config.git.when_unchecked;
    fs::create_dir_all(&folder).map_err(|err| failed(&folder, err))?;
    let program = program()?;
    for hook in HOOKS {
        let script = hook.script(&program, when_unchecked);
        put(&folder.join(hook.name), &script)?;
    }
    status(here)
}

/// Renames an existing hook, and puts the whole script in its place.
fn put(path: &Path, script: &str) -> Result<(), CliError> {
    let there = match fs::read(path) {
        Ok(text) => Some(text),
        Err(err) if err.kind() == io::ErrorKind::NotFound && !exists(path) => None,
        Err(err) => return Err(failed(path, err)),
    };
    let kept = before(path);
    match &there {
        Some(text) if is_ours(text) => {}
        // A tool has installed its hook again; if it is a different one, a person has to look at both.
        Some(text) if exists(&kept) && fs::read(&kept).ok().as_ref() == Some(text) => {}
        Some(_) if exists(&kept) => {
            return Err(CliError::refusal(format!("there are two hooks to keep: {}", path.display()))
                .because(format!("{} is another one, from before", kept.display()))
                .next(format!("merge them into the first, remove {}, then run this again", kept.display())));
        }
        Some(_) => fs::rename(path, &kept).map_err(|err| failed(path, err))?,
        None => {}
    }
    let new = path.with_extension("provost-new");
    let write = || -> io::Result<()> {
        let mut file = fs::File::create(&new)?;
        file.write_all(script.as_bytes())?;
        make_executable(&file)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|err| {
        // The earlier hook must not stay renamed because of this failure.
        let _unheard = fs::remove_file(&new);
        if !exists(path) && exists(&kept) {
            let _unheard = fs::rename(&kept, path);
        }
        failed(path, err)
    })
}

pub(crate) fn uninstall(here: &RepoContext) -> Result<u8, CliError> {
    let folder = folder(here)?;
    for hook in HOOKS {
        let path = folder.join(hook.name);
        let kept = before(&path);
        match fs::read(&path) {
            Ok(text) if is_ours(&text) && exists(&kept) => {
                fs::rename(&kept, &path).map_err(|err| failed(&path, err))?;
            }
            Ok(text) if is_ours(&text) => fs::remove_file(&path).map_err(|err| failed(&path, err))?,
            Ok(_) if exists(&kept) => {
                out::note(format!("{} is not Provost's, so {} stays, too", path.display(), kept.display()));
            }
            _ => {}
        }
    }
    status(here)
}

fn standing(folder: &Path, hook: Hook, script: &str) -> Standing {
    let path = folder.join(hook.name);
    let state = match fs::read(&path) {
        Ok(text) if text == script.as_bytes() => "installed",
        Ok(text) if is_ours(&text) => "outdated",
        Ok(_) => "other",
        Err(_) if exists(&path) => "other",
        Err(_) => "missing",
    };
    let chained = matches!(state, "installed" | "outdated") && exists(&before(&path));
    Standing { hook: hook.name, path: path.display().to_string(), state, chained }
}

/// Returns the state of all hooks.
pub(crate) fn standings(here: &RepoContext) -> Result<Vec<Standing>, CliError> {
    let folder = folder(here)?;
    let when_unchecked = here.config(None)?.config.git.when_unchecked;
    let program = program()?;
    let one = |hook: &Hook| standing(&folder, *hook, &hook.script(&program, when_unchecked));
    Ok(HOOKS.iter().map(one).collect())
}

pub(crate) fn status(here: &RepoContext) -> Result<u8, CliError> {
    let (folder, all) = (folder(here)?, standings(here)?);
    if here.json {
        return out::json(&all).map(|()| DONE);
    }
    for it in &all {
        let chained = if it.chained { ", after the earlier hook" } else { "" };
        let more = match it.state {
            "outdated" => "; provost git install",
            "other" => ", not Provost's; provost git install keeps it and lets it run first",
            _ => "",
        };
        out::line(out::one_line(&format!("{}: {}{chained}{more}", it.hook, it.state), 400))?;
    }
    out::line(out::one_line(&format!("in {}", folder.display()), 4096))?;
    Ok(DONE)
}
