//! Lists and removes the git work trees of runs.

use clap::{Args, Subcommand};

use super::cli_error::DONE;
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::visible_name;

/// `provost worktree`.
#[derive(Subcommand, Debug)]
pub(super) enum Worktree {
    /// List the git work trees of runs, with their branches
    #[command(
        after_help = "Examples:\n  provost worktree list\n  provost worktree list --json | jq '.[].branch'"
    )]
    List,
    /// Remove the git work tree of a branch; the branch stays, unless you say otherwise
    #[command(
        after_help = "Examples:\n  provost worktree remove feat/x\n  provost worktree remove feat/x --branch   # deletes the branch as well, once it is merged\n  provost worktree remove feat/x --force    # also with changes that are not committed"
    )]
    Remove(Remove),
}

/// `provost worktree remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The branch that is checked out in it, or its folder
    #[arg(value_name = "BRANCH|PATH")]
    which: String,
    /// Remove it with changes that are not committed, and a branch with commits that are not merged
    #[arg(long)]
    force: bool,
    /// Delete the branch as well
    #[arg(long)]
    branch: bool,
}

/// Longest branch and path in a line, in characters.
const NAME_CHARS: usize = 400;

pub(super) fn worktree(here: &RepoContext, asked: Worktree) -> Result<u8, CliError> {
    match asked {
        Worktree::List => list(here),
        Worktree::Remove(it) => remove(here, &it),
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let found = wait_for(async { Ok(here.daemon(None).await?.work_trees().await?) })?;
    if here.json {
        return out::json(&found).map(|()| DONE);
    }
    if found.is_empty() {
        out::note("no run has a work tree; `provost delegate --worktree` makes one");
        return Ok(DONE);
    }
    let mut rows = vec![["BRANCH", "STATE", "AHEAD", "AGENT", "TASK", "PATH"].map(String::from)];
    rows.extend(found.iter().map(|it| {
        let ahead = it.ahead.map_or_else(|| "-".to_owned(), |ahead| ahead.to_string());
        let [branch, agent, task, path] =
            [&it.branch, &it.agent, &it.task, &it.path].map(|text| visible_name(text, NAME_CHARS));
        [branch, state(it), ahead, agent, task, path]
    }));
    out::text_as_is(&out::table(&rows))?;
    for it in &found {
        if let Some(why) = &it.stale {
            out::note(visible_name(&format!("{}: {why}", it.branch), 800));
        }
    }
    Ok(DONE)
}

fn state(it: &wire::WorkTree) -> String {
    match (it.running, &it.stale, it.uncommitted) {
        (true, ..) => "running".into(),
        (_, Some(_), _) => "stale".into(),
        (_, None, 0) => "clean".into(),
        (_, None, files) => format!("{files} uncommitted"),
    }
}

fn remove(here: &RepoContext, asked: &Remove) -> Result<u8, CliError> {
    // A folder is typed as in any command; a branch's name is not the path of a folder with a `.git` in it.
    let folder = here.cwd.join(&asked.which);
    let is_folder = folder.join(".git").is_file();
    let which = if is_folder { folder.to_string_lossy().into_owned() } else { asked.which.clone() };
    let request = wire::RemoveWorkTree { which, force: asked.force, branch: asked.branch };
    let done = wait_for(async {
        Ok(here.daemon(IdentityArgs::named(here, None)?).await?.remove_work_tree(&request).await?)
    })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    let branch = if done.branch_deleted { "; the branch is deleted" } else { "; the branch stays" };
    out::line(visible_name(&format!("removed: {} of {}{branch}", done.path, done.branch), 800))?;
    Ok(DONE)
}
