//! Writes whose files are not named one by one: of those that others have, which are among them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::call::real;
use crate::base::WatchPatterns;

/// Length of what git says that is read, in bytes.
const SAID_BYTES_MAX: usize = 1 << 20;

/// A write to many files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wide {
    /// What is below a folder and called like one of these patterns; without any, everything.
    Below(PathBuf, Vec<String>),
    /// What differs from what is checked out in the work tree around a folder, and from this revision.
    Changed(PathBuf, Option<String>),
}

impl Wide {
    /// Which of some files of a work tree are written, by their paths from its top.
    pub(super) fn among<'a>(&self, top: &Path, paths: &[&'a str]) -> Vec<&'a str> {
        match self {
            Self::Below(folder, patterns) => {
                let folder = real(folder).unwrap_or_else(|| folder.clone());
                // What cannot be read as patterns may be anything.
                let patterns = WatchPatterns::parse(patterns).ok().filter(|_| !patterns.is_empty());
                let is_meant = |path: &&&str| {
                    let whole = real(&top.join(path)).unwrap_or_else(|| top.join(path));
                    let Ok(below) = whole.strip_prefix(&folder) else { return false };
                    patterns.as_ref().is_none_or(|it| it.matches(&below.to_string_lossy()))
                };
                paths.iter().filter(is_meant).copied().collect()
            }
            Self::Changed(folder, to) => {
                let in_that_tree = real(folder).is_none_or(|it| it.starts_with(top));
                let Some(changed) = in_that_tree.then(|| changed(folder, to.as_deref(), paths)) else {
                    return Vec::new();
                };
                // Where git does not say, all may be.
                match changed {
                    Some(names) => {
                        paths.iter().filter(|it| names.iter().any(|name| name == *it)).copied().collect()
                    }
                    None => paths.to_vec(),
                }
            }
        }
    }
}

/// Which of some files differ from what is checked out, or from a revision.
fn changed(folder: &Path, to: Option<&str>, paths: &[&str]) -> Option<Vec<String>> {
    let mut names = differing(folder, &["HEAD"], paths)?;
    if let Some(to) = to {
        // What is no revision (`git pull origin`) may bring anything.
        names.extend(differing(folder, &["HEAD", to], paths)?);
    }
    Some(names)
}

fn differing(folder: &Path, revisions: &[&str], paths: &[&str]) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false", "diff", "--name-only", "-z", "--no-renames"]);
    git.args(["--no-ext-diff", "--end-of-options"]).args(revisions).arg("--");
    git.args(paths.iter().map(|it| format!(":(top,literal){it}"))).current_dir(folder);
    git.env("GIT_OPTIONAL_LOCKS", "0").env_remove("GIT_LITERAL_PATHSPECS");
    let said = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    if !said.status.success() || said.stdout.len() > SAID_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8(said.stdout).ok()?;
    Some(text.split('\0').filter(|it| !it.is_empty()).map(str::to_owned).collect())
}
