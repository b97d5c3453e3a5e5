//! The root commits of a repository: they identify a clone of it on any machine, at any branch of the same history.

use std::path::Path;
use std::process::{Command, Output};

use super::Places;
use provost_base::limits::ROOT_COMMITS_MAX;
use provost_system as system;

/// Returns the root commits behind the present commit, in order; empty where no commit or no git repository exists.
/// Walks the whole history, which takes seconds for a large one. Blocks.
///
/// # Errors
/// The reason why they cannot be known, with the next step.
pub fn root_commits(places: &Places) -> Result<Vec<Box<str>>, Box<str>> {
    if !places.identity.join("HEAD").is_file() {
        return Ok(Vec::new());
    }
    let top = &places.worktree;
    if !git(top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.status.success() {
        return Ok(Vec::new());
    }
    let shallow = words(git(top, &["rev-parse", "--is-shallow-repository"])?)?;
    if shallow.trim() == "true" {
        return Err("it is a shallow clone, without its first commits: run `git fetch --unshallow`".into());
    }
    let said = words(git(top, &["rev-list", "--max-parents=0", "HEAD"])?)?;
    let mut roots: Vec<Box<str>> = said.lines().map(Into::into).collect();
    roots.sort();
    roots.truncate(ROOT_COMMITS_MAX);
    Ok(roots)
}

fn words(said: Output) -> Result<String, Box<str>> {
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        false => Err(format!("git failed: {}", String::from_utf8_lossy(&said.stderr).trim()).into()),
    }
}

/// Runs git with only those variables of this process's environment that locate the user's configuration, and without
/// any program that the repository names.
fn git(top: &Path, args: &[&str]) -> Result<Output, Box<str>> {
    let program = system::find_program_outside("git", &[top])
        .ok_or("git is not found in PATH outside of the repository: install it")?;
    let mut git = Command::new(program);
    git.args(["--no-pager", "-c", "core.fsmonitor=false"]).args(args).current_dir(top).env_clear();
    for name in ["HOME", "XDG_CONFIG_HOME", "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.envs(std::env::join_paths(system::path_outside(&[top])).map(|path| ("PATH", path)));
    git.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_NO_REPLACE_OBJECTS", "1");
    git.output().map_err(|err| format!("git could not be asked: {err}").into())
}
