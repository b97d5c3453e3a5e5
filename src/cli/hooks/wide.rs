//! Writes whose files are not named one by one: finds the files of others among them.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use super::call::real;
use provost_base::WatchPatterns;
use provost_base::limits::{HOOK_CHANGED_MAX, HOOK_GIT_BYTES_MAX, HOOK_WIDE_MAX};

/// A write to many files.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wide {
    /// The files below a folder whose names match one of these patterns; without patterns, all of them.
    Below(PathBuf, Vec<String>),
    /// The files of the work tree around a folder that git finds to differ.
    Changed(PathBuf, Between),
    /// Any file.
    Anything,
}

/// A file, by its path from the top of a work tree, with the target of that path.
pub(super) struct TreeFile<'a> {
    path: &'a str,
    whole: PathBuf,
}

impl<'a> TreeFile<'a> {
    pub(super) fn all(top: &Path, paths: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let whole = |path| real(&top.join(path)).unwrap_or_else(|| top.join(path));
        paths.map(|path| Self { path, whole: whole(path) }).collect()
    }
}

/// Returns each write once; if there are more than the hook can examine one by one, any file.
pub(super) fn bounded(wide: Vec<Wide>) -> Vec<Wide> {
    let all: HashSet<Wide> = wide.into_iter().collect();
    let asking = all.iter().filter(|it| matches!(it, Wide::Changed(..))).count();
    match all.len() > HOOK_WIDE_MAX || asking > HOOK_CHANGED_MAX {
        true => vec![Wide::Anything],
        false => all.into_iter().collect(),
    }
}

/// The two states between which a command of git moves; it writes the files that differ between them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Between {
    /// From the content of the work tree to the checked-out commit.
    Uncommitted,
    /// The removal of files that git does not know.
    Untracked,
    /// From the checked-out commit to a revision.
    Revision(String),
    /// From the common ancestor of a revision and the checked-out commit to that revision: the changes of a merge.
    Brought(String),
    /// From before these commits to after them, or the reverse.
    Commits(Vec<String>),
    /// To the content of a stash.
    Stash(String),
}

impl Wide {
    /// Returns those of some files of a work tree that are written, as far as this can be told until then; a doubtful file
    /// counts as written.
    pub(super) fn among<'a>(&self, top: &Path, files: &[TreeFile<'a>], until: Instant) -> Vec<&'a str> {
        let all = || files.iter().map(|it| it.path).collect();
        match self {
            Self::Anything => all(),
            Self::Below(folder, patterns) => {
                let folder = real(folder).unwrap_or_else(|| folder.clone());
                // Unreadable patterns may match any file.
                let patterns = WatchPatterns::parse(patterns).ok().filter(|_| !patterns.is_empty());
                let is_meant = |file: &&TreeFile<'_>| {
                    let Ok(below) = file.whole.strip_prefix(&folder) else { return false };
                    patterns.as_ref().is_none_or(|it| it.matches(&below.to_string_lossy()))
                };
                files.iter().filter(is_meant).map(|it| it.path).collect()
            }
            Self::Changed(folder, between) => {
                if !real(folder).is_none_or(|it| it.starts_with(top)) {
                    return Vec::new();
                }
                let paths: Vec<&str> = all();
                match (Asking { folder, paths: &paths, until }).names(between) {
                    Some(names) => {
                        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
                        paths.into_iter().filter(|it| names.contains(it)).collect()
                    }
                    // Without an answer of git, any file may be written.
                    None => paths,
                }
            }
        }
    }
}

/// The context of a question to git.
struct Asking<'a> {
    folder: &'a Path,
    paths: &'a [&'a str],
    until: Instant,
}

const DIFFERS: [&str; 6] = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--end-of-options"];

impl Asking<'_> {
    /// Returns those of the files that are written; `None` where git does not answer, for instance about a revision that it does not know.
    fn names(&self, between: &Between) -> Option<Vec<String>> {
        const TOUCHED: [&str; 8] =
            ["log", "--format=", "--name-only", "-z", "-m", "--no-walk", "--no-renames", "--end-of-options"];
        match between {
            Between::Uncommitted => self.named(&DIFFERS, &["HEAD"]),
            Between::Untracked => self.named(&["ls-files", "--others", "-z", "--full-name"], &[]),
            Between::Revision(to) => self.named(&DIFFERS, &["HEAD", to]).or_else(|| self.of_a_remote(to)),
            Between::Brought(from) => self.named(&DIFFERS, &[&format!("HEAD...{from}")]),
            Between::Commits(commits) => {
                let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
                if commits.is_empty() { Some(Vec::new()) } else { self.named(&TOUCHED, &commits) }
            }
            Between::Stash(which) => {
                let mut names = self.named(&DIFFERS, &[&format!("{which}^1"), which])?;
                // Only a stash with untracked files has such a parent.
                let others = ["ls-tree", "-r", "--name-only", "--full-tree", "-z"];
                names
                    .extend(self.said(&[&others[..], &[&format!("{which}^3")]].concat()).unwrap_or_default());
                Some(names)
            }
        }
    }

    /// Does the same for a branch that only remotes have, as `checkout` accepts it.
    fn of_a_remote(&self, branch: &str) -> Option<Vec<String>> {
        if branch.contains(['*', '?', '[', '\\']) {
            return None;
        }
        let remotes =
            self.said(&["for-each-ref", "--format=%(refname)", &format!("refs/remotes/*/{branch}")])?;
        if remotes.is_empty() {
            return None;
        }
        let mut all = Vec::new();
        for remote in remotes {
            all.extend(self.named(&DIFFERS, &["HEAD", &remote])?);
        }
        Some(all)
    }

    /// Returns those of the files that git names.
    fn named(&self, how: &[&str], what: &[&str]) -> Option<Vec<String>> {
        let paths: Vec<String> = self.paths.iter().map(|it| format!(":(top,literal){it}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        self.said(&[how, what, &["--"], &paths].concat())
    }

    fn said(&self, words: &[&str]) -> Option<Vec<String>> {
        let text = said_by_git(self.folder, words, self.until)?;
        Some(text.split(['\0', '\n']).filter(|it| !it.is_empty()).map(str::to_owned).collect())
    }
}

/// Returns git's output in a folder; `None` if git fails, prints too much, or takes longer than until then.
pub(super) fn said_by_git(folder: &Path, words: &[&str], until: Instant) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["-c", "core.fsmonitor=false"]).args(words).current_dir(folder);
    git.env("GIT_OPTIONAL_LOCKS", "0").env_remove("GIT_LITERAL_PATHSPECS");
    let mut git = git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let said = git.stdout.take()?;
    let (give, take) = mpsc::channel();
    let reads = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let read = said.take(HOOK_GIT_BYTES_MAX as u64 + 1).read_to_end(&mut text);
        let _unheard = give.send(read.map(|_| text));
    });
    let left = until.saturating_duration_since(Instant::now());
    let text = reads.ok().and_then(|_| take.recv_timeout(left).ok()).and_then(Result::ok);
    let text = text.filter(|it| it.len() <= HOOK_GIT_BYTES_MAX);
    if text.is_none() {
        let _gone = git.kill();
    }
    let done = git.wait().ok()?;
    text.filter(|_| done.success()).and_then(|it| String::from_utf8(it).ok())
}
