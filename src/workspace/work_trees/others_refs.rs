//! Which names are a run's to take: none that git reads as another ref, none that is another name of a branch, and none
//! that stands for the trunk.

use super::WorkTrees;
use crate::quiet_git::{Input, QuietGit};
use provost_base::shell_word;

/// Branches that are never a run's, whether or not they are there.
const TRUNKS: [&str; 2] = ["main", "master"];

/// What git keeps beside the branches, and the remote that every clone has.
const FIRST_PARTS: [&str; 7] = ["refs", "heads", "tags", "remotes", "worktrees", "main-worktree", "origin"];

/// Whether git's own name for something begins or ends like this, whatever the repository has.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn check_reserved(name: &str) -> Result<(), String> {
    let first = name.split('/').next().unwrap_or_default();
    let is_own = FIRST_PARTS.iter().any(|it| first.eq_ignore_ascii_case(it));
    let is_root = name == "HEAD" || name.ends_with("_HEAD") || name.ends_with("/HEAD") || name == "stash";
    let is_commit = name.len() >= 40 && name.bytes().all(|it| it.is_ascii_hexdigit());
    match is_own || is_root || is_commit {
        true => Err("is no name for a run's branch: git takes it for something else; name another branch with --worktree, \
                     as in `feat/x`"
            .into()),
        false => Ok(()),
    }
}

impl WorkTrees {
    /// Whether a branch is a run's to use: no other name of another one, and not the trunk.
    pub(super) fn is_a_runs(git: &QuietGit, branch: &str) -> Result<(), String> {
        let word = shell_word(branch);
        let reference = format!("refs/heads/{branch}");
        if let Some(target) = git.line(&["symbolic-ref", "--quiet", &reference])? {
            let target = shell_word(target.strip_prefix("refs/heads/").unwrap_or(&target));
            return Err(format!(
                "branch {word} is another name of {target} (git symbolic-ref); name another branch with --worktree"
            ));
        }
        let heads = ["for-each-ref", "--format=%(symref)", "refs/remotes/**/HEAD"];
        let heads = git.must(&heads, Input::Nothing)?;
        let heads = String::from_utf8_lossy(&heads).into_owned();
        let remotes = remotes(git)?;
        let is_remotes_head = |head: &str| {
            let rest = |remote: &String| {
                head.strip_prefix("refs/remotes/")?.strip_prefix(remote.as_str())?.strip_prefix('/')
            };
            remotes.iter().filter_map(rest).any(|it| it == branch)
        };
        let is_trunk = TRUNKS.iter().any(|it| branch.eq_ignore_ascii_case(it));
        if is_trunk || heads.lines().any(is_remotes_head) {
            return Err(format!(
                "branch {word} is the repository's trunk, on which no run commits; name another branch with --worktree"
            ));
        }
        Ok(())
    }

    /// Whether a branch can be made without hiding something else of the same name.
    pub(super) fn hides_nothing(git: &QuietGit, branch: &str) -> Result<(), String> {
        let word = shell_word(branch);
        let remotes = remotes(git)?;
        for remote in &remotes {
            let below = branch.get(..remote.len()).filter(|it| it.eq_ignore_ascii_case(remote));
            if below.is_some() && matches!(branch.as_bytes().get(remote.len()), None | Some(b'/')) {
                return Err(format!(
                    "a branch {word} would hide what git has of the remote {}; name another branch with --worktree",
                    shell_word(remote)
                ));
            }
            let there = format!("refs/remotes/{remote}/{branch}");
            if git.line(&["rev-parse", "--verify", "--quiet", &there])?.is_some() {
                let at = shell_word(&format!("{remote}/{branch}"));
                return Err(format!(
                    "branch {word} is at the remote {} and not here; `git branch {word} {at}` makes it here, or name another \
                     branch with --worktree",
                    shell_word(remote)
                ));
            }
        }
        // A tag, a commit, or another object that git finds by this name.
        if let Some(found) = git.line(&["rev-parse", "--verify", "--quiet", branch])? {
            let full = git.line(&["rev-parse", "--symbolic-full-name", branch])?.filter(|it| !it.is_empty());
            return Err(format!(
                "git reads {word} as {}; name another branch with --worktree",
                shell_word(&full.unwrap_or(found))
            ));
        }
        Ok(())
    }
}

/// The names of the remotes.
fn remotes(git: &QuietGit) -> Result<Vec<String>, String> {
    let names = git.must(&["remote"], Input::Nothing)?;
    Ok(String::from_utf8_lossy(&names).lines().map(str::to_owned).filter(|it| !it.is_empty()).collect())
}
