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
    /// What git finds to differ in the work tree around a folder.
    Changed(PathBuf, Between),
}

/// What a command of git goes from and to, and so between which of its trees files differ that it writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Between {
    /// From what is in the work tree to what is checked out.
    Uncommitted,
    /// Away from what git does not know.
    Untracked,
    /// From what is checked out to a revision.
    Revision(String),
    /// From before these commits to after them, or the other way.
    Commits(Vec<String>),
    /// To what a stash has kept.
    Stash(String),
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
            Self::Changed(folder, between) => {
                if !real(folder).is_none_or(|it| it.starts_with(top)) {
                    return Vec::new();
                }
                match between.names(folder, paths) {
                    Some(names) => {
                        paths.iter().filter(|it| names.iter().any(|name| name == *it)).copied().collect()
                    }
                    // Where git does not say, all may be.
                    None => paths.to_vec(),
                }
            }
        }
    }
}

impl Between {
    /// Which of some files it writes; `None` where git does not say, as of a revision that it does not know.
    fn names(&self, folder: &Path, paths: &[&str]) -> Option<Vec<String>> {
        const DIFFERS: [&str; 6] =
            ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--end-of-options"];
        const TOUCHED: [&str; 8] =
            ["log", "--format=", "--name-only", "-z", "-m", "--no-walk", "--no-renames", "--end-of-options"];
        let named = |how: &[&str], what: &[&str]| named(folder, &[how, what].concat(), paths);
        match self {
            Self::Uncommitted => named(&DIFFERS, &["HEAD"]),
            Self::Untracked => named(&["ls-files", "--others", "-z", "--full-name"], &[]),
            Self::Revision(to) => named(&DIFFERS, &["HEAD", to]),
            Self::Commits(commits) => {
                let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
                if commits.is_empty() { Some(Vec::new()) } else { named(&TOUCHED, &commits) }
            }
            Self::Stash(which) => {
                let mut names = named(&DIFFERS, &[&format!("{which}^1"), which])?;
                // Only where files that git does not know were kept there is such a parent.
                let others = ["ls-tree", "-r", "--name-only", "--full-tree", "-z"];
                names.extend(
                    names_of(folder, &[&others[..], &[&format!("{which}^3")]].concat()).unwrap_or_default(),
                );
                Some(names)
            }
        }
    }
}

/// Which of some files git names.
fn named(folder: &Path, words: &[&str], paths: &[&str]) -> Option<Vec<String>> {
    let paths: Vec<String> = paths.iter().map(|it| format!(":(top,literal){it}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    names_of(folder, &[words, &["--"], &paths].concat())
}

fn names_of(folder: &Path, words: &[&str]) -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false"]).args(words).current_dir(folder);
    git.env("GIT_OPTIONAL_LOCKS", "0").env_remove("GIT_LITERAL_PATHSPECS");
    let said = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    if !said.status.success() || said.stdout.len() > SAID_BYTES_MAX {
        return None;
    }
    let text = String::from_utf8(said.stdout).ok()?;
    let names = text.split(['\0', '\n']).filter(|it| !it.is_empty());
    Some(names.map(str::to_owned).collect())
}
