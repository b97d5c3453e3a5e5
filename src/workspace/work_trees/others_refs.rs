//! The names that a run's branch may have: none that git reads as another ref, none that is a symbolic ref, and not the
//! trunk's.

use super::WorkTrees;
use crate::quiet_git::{Input, QuietGit};
use provost_base::shell_word;

/// Branches that never belong to a run, whether they exist or not.
const TRUNKS: [&str; 2] = ["main", "master"];

/// The first parts of git's other refs, and the remote that every clone has.
const FIRST_PARTS: [&str; 7] = ["refs", "heads", "tags", "remotes", "worktrees", "main-worktree", "origin"];

/// Refuses names that begin or end like one of git's own, whether the repository has that one or not.
///
/// # Errors
/// The fault of the name, as the end of a sentence.
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
    /// Checks that a run may use a branch: it is no symbolic ref, and not the trunk.
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

    /// Checks that a branch can be made without hiding another object of the same name.
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
        // Git finds a tag, a commit, or another object by this name.
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

/// Returns the names of the remotes.
fn remotes(git: &QuietGit) -> Result<Vec<String>, String> {
    let names = git.must(&["remote"], Input::Nothing)?;
    Ok(String::from_utf8_lossy(&names).lines().map(str::to_owned).filter(|it| !it.is_empty()).collect())
}
