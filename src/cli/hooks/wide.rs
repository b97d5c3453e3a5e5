//! Writes whose files are not named one by one: of those that others have, which are among them.

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
    /// What is below a folder and called like one of these patterns; without any, everything.
    Below(PathBuf, Vec<String>),
    /// What git finds to differ in the work tree around a folder.
    Changed(PathBuf, Between),
    /// Whatever there is.
    Anything,
}

/// A file, by its path from the top of a work tree, and where that leads.
pub(super) struct Known<'a> {
    path: &'a str,
    whole: PathBuf,
}

impl<'a> Known<'a> {
    pub(super) fn all(top: &Path, paths: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let whole = |path| real(&top.join(path)).unwrap_or_else(|| top.join(path));
        paths.map(|path| Self { path, whole: whole(path) }).collect()
    }
}

/// Each once; of more than are looked at one by one, whatever there is.
pub(super) fn bounded(wide: Vec<Wide>) -> Vec<Wide> {
    let all: HashSet<Wide> = wide.into_iter().collect();
    let asking = all.iter().filter(|it| matches!(it, Wide::Changed(..))).count();
    match all.len() > HOOK_WIDE_MAX || asking > HOOK_CHANGED_MAX {
        true => vec![Wide::Anything],
        false => all.into_iter().collect(),
    }
}

/// What a command of git goes from and to, and so between which of its trees files differ that it writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Between {
    /// From what is in the work tree to what is checked out.
    Uncommitted,
    /// Away from what git does not know.
    Untracked,
    /// From what is checked out to a revision.
    Revision(String),
    /// From where a revision has parted from what is checked out to that revision: what a merge brings.
    Brought(String),
    /// From before these commits to after them, or the other way.
    Commits(Vec<String>),
    /// To what a stash has kept.
    Stash(String),
}

impl Wide {
    /// Which of some files of a work tree are written, as far as can be told until then; what cannot be told may be.
    pub(super) fn among<'a>(&self, top: &Path, files: &[Known<'a>], until: Instant) -> Vec<&'a str> {
        let all = || files.iter().map(|it| it.path).collect();
        match self {
            Self::Anything => all(),
            Self::Below(folder, patterns) => {
                let folder = real(folder).unwrap_or_else(|| folder.clone());
                // What cannot be read as patterns may be anything.
                let patterns = WatchPatterns::parse(patterns).ok().filter(|_| !patterns.is_empty());
                let is_meant = |file: &&Known<'_>| {
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
                    // Where git does not say, all may be.
                    None => paths,
                }
            }
        }
    }
}

/// What git is asked about.
struct Asking<'a> {
    folder: &'a Path,
    paths: &'a [&'a str],
    until: Instant,
}

const DIFFERS: [&str; 6] = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--end-of-options"];

impl Asking<'_> {
    /// Which of the files are written; `None` where git does not say, as of a revision that it does not know.
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
                // Only where files that git does not know were kept there is such a parent.
                let others = ["ls-tree", "-r", "--name-only", "--full-tree", "-z"];
                names
                    .extend(self.said(&[&others[..], &[&format!("{which}^3")]].concat()).unwrap_or_default());
                Some(names)
            }
        }
    }

    /// The same for a branch that remotes alone have, as `checkout` takes it.
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

    /// Which of the files git names.
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

/// What git says in a folder; `None` if it fails, says too much, or takes longer than until then.
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
