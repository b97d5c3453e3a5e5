//! Commits the changes of a run with plumbing that runs no hook, no filter and no signing program.
//!
//! The commit is made of the run's kept contents, and not of the files in the work tree at that time. The branch
//! moves only from the commit at which the run began; in every other case nothing moves.

use std::collections::BTreeSet;
use std::path::Path;

use super::hidden::plain;
use super::names::author;
use super::{Record, WorkTree};
use crate::quiet_git::{Input, QuietGit, succeeded};
use provost_base::limits::{SUBJECT_CHARS_MAX, TREE_GIT_MS_MAX, TREE_LEFT_MAX};
use provost_base::{RepoPath, shell_word, visible_name};

/// A file that a run has changed.
#[derive(Clone, Debug)]
pub struct ChangedFile {
    /// The file's path from the top of the work tree.
    pub path: RepoPath,
    /// The file's new content; `None` for a removed file.
    pub content: Option<Vec<u8>>,
    /// Whether the file can be executed.
    pub program: bool,
}

/// The author of a commit, and the parts of its message.
#[derive(Clone, Debug)]
pub struct Author<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The agent's task.
    pub task: &'a str,
    /// The task's goal, from which the first line of the message is made.
    pub goal: &'a str,
    /// How the run has ended, if it has not ended well: `it took longer than 300 s`.
    pub unfinished: Option<&'a str>,
}

/// A file that is not in the commit: its path and the reason.
pub type NotCommitted = (String, String);

/// The outcome of committing a run's changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The commit; `None` if there was nothing to commit.
    pub commit: Option<String>,
    /// Files that are not in the commit.
    pub withheld: Vec<NotCommitted>,
}

impl WorkTree {
    /// Commits changes to the branch. Files to which a filter applies stay uncommitted.
    ///
    /// # Errors
    /// The reason why nothing was committed, as a sentence; the branch has not moved then.
    pub fn commit(&self, files: Vec<ChangedFile>, of: &Author<'_>) -> Result<Committed, String> {
        self.is_whole()?;
        let lock = self.shelf.lock().map_err(|err| err.to_string())?;
        let (git, reference) = (&self.git, format!("refs/heads/{}", self.branch));
        let branch = shell_word(&self.branch);
        if git.line(&["symbolic-ref", "--quiet", &reference])?.is_some() {
            return Err(format!("branch {branch} was made another name of a branch while the run went on"));
        }
        let now = git.line(&["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")])?;
        let now = now.ok_or_else(|| format!("branch {branch} was deleted while the run went on"))?;
        if now != self.start {
            if !self.is_of(&now, of.task)? {
                return Err(format!("branch {branch} was moved while the run went on"));
            }
            // A daemon that was killed after its commit has not updated the index.
            self.tell_index(&self.lines_of(&now)?);
            return Ok(Committed { commit: Some(now), withheld: Vec::new() });
        }
        let (files, mut withheld) = self.without_filters(files)?;
        let (files, of_others) = self.without_submodules(files)?;
        withheld.extend(of_others);
        let files = self.without_ignored(files)?;
        let lines = self.stored(&files)?;
        let Some(commit) = self.written(&lines, of)? else { return Ok(Committed { commit: None, withheld }) };
        let said = format!("provost: task {}", visible_name(of.task, 80));
        let args = ["update-ref", "--no-deref", "-m", &said, &reference, &commit, &self.start];
        succeeded(&args, git.run(&args, Input::Lock(&lock))?)?;
        self.tell_index(&lines);
        Ok(Committed { commit: Some(commit), withheld })
    }

    /// Updates the index of the work tree, git's own record of the checked-out files, to the commit.
    fn tell_index(&self, lines: &[u8]) {
        let git = &self.git;
        let indexed = git.must(&["update-index", "-z", "--index-info"], Input::Bytes(lines));
        let refreshed = indexed.and_then(|_| git.run(&["update-index", "-q", "--refresh"], Input::Nothing));
        if let Err(why) = refreshed {
            tracing::warn!(why, tree = %self.path.display(), "the index of a work tree does not know its newest commit");
        }
    }

    /// Returns the changes of a commit since the run began, as lines for an index, removed files first.
    fn lines_of(&self, commit: &str) -> Result<Vec<u8>, String> {
        let args = ["diff-tree", "-r", "-z", "--no-renames", &self.start, commit];
        let answer = self.git.must(&args, Input::Nothing)?;
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        let mut parts = answer.split(|byte| *byte == 0);
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let head = String::from_utf8_lossy(head);
            let words: Vec<&str> = head.split(' ').collect();
            let [_, mode, _, name, _] = words.as_slice() else { continue };
            let is_gone = *mode == "000000";
            let lines = if is_gone { &mut gone } else { &mut there };
            lines.extend_from_slice(format!("{} {name}\t", if is_gone { "0" } else { mode }).as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        gone.append(&mut there);
        Ok(gone)
    }

    /// Notes that the end of a run was handled, so that the next run knows the changes that are left uncommitted.
    ///
    /// # Errors
    /// The reason why that is not on record.
    pub fn finish(&self, is_committed: bool) -> Result<(), String> {
        let record = self.shelf.record().map_err(|err| err.to_string())?;
        let Some(record) = record else { return Ok(()) };
        let left = match is_committed {
            true => self.uncommitted()?.into_iter().take(TREE_LEFT_MAX).collect(),
            false => record.left,
        };
        self.shelf.put_record(&Record { left, ..record }).map_err(|err| err.to_string())
    }

    /// Checks whether a commit was made for a task, on top of the commit at which its run began.
    fn is_of(&self, commit: &str, task: &str) -> Result<bool, String> {
        let args = ["log", "-1", "--no-show-signature", "--format=%P%n%B", commit];
        let said = self.git.must(&args, Input::Nothing)?;
        let said = String::from_utf8_lossy(&said);
        let trailer = trailer("Provost-Task", task);
        let mut lines = said.lines();
        Ok(lines.next() == Some(&self.start) && lines.any(|line| line == trailer))
    }

    /// Leaves out files that git would pass through a filter: no filter's program runs here, and a file that has
    /// not been filtered must not be committed.
    fn without_filters(
        &self,
        files: Vec<ChangedFile>,
    ) -> Result<(Vec<ChangedFile>, Vec<NotCommitted>), String> {
        let mut asked = Vec::new();
        for file in files.iter().filter(|it| it.content.is_some()) {
            asked.extend_from_slice(file.path.as_str().as_bytes());
            asked.push(0);
        }
        let args = ["check-attr", "-z", "--stdin", "filter", "working-tree-encoding"];
        let answer = self.git.must(&args, Input::Bytes(&asked))?;
        let words: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
        let mut filtered: BTreeSet<String> = BTreeSet::new();
        for row in words.chunks_exact(3) {
            let [path, _, value] = row else { continue };
            if ![&b"unspecified"[..], b"unset", b"set"].contains(value) {
                filtered.insert(String::from_utf8_lossy(path).into_owned());
            }
        }
        let (out, kept): (Vec<ChangedFile>, _) =
            files.into_iter().partition(|it| filtered.contains(it.path.as_str()));
        let why = ".gitattributes gives it a filter or an encoding, which the daemon does not run; add and commit it yourself";
        Ok((kept, out.into_iter().map(|it| (it.path.to_string(), why.to_owned())).collect()))
    }

    /// Leaves out files in the place of a submodule, which belong to another repository: committing them would remove its entry.
    fn without_submodules(
        &self,
        files: Vec<ChangedFile>,
    ) -> Result<(Vec<ChangedFile>, Vec<NotCommitted>), String> {
        let listed = self.git.must(&["ls-tree", "-r", "-z", "--full-tree", &self.start], Input::Nothing)?;
        let links = listed.split(|byte| *byte == 0).filter(|it| it.starts_with(b"160000 "));
        let links: BTreeSet<&[u8]> =
            links.filter_map(|it| it.splitn(2, |byte| *byte == b'\t').nth(1)).collect();
        let is_inside = |it: &ChangedFile| {
            let path = it.path.as_str();
            let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
            ends.into_iter().any(|end| links.contains(&path.as_bytes()[..end]))
        };
        let (out, kept): (Vec<ChangedFile>, _) = files.into_iter().partition(is_inside);
        let why = "it lies in a submodule, which is a repository of its own";
        Ok((kept, out.into_iter().map(|it| (it.path.to_string(), why.to_owned())).collect()))
    }

    /// Leaves out new files that git ignores, also by the user's own list.
    fn without_ignored(&self, files: Vec<ChangedFile>) -> Result<Vec<ChangedFile>, String> {
        let new = files.iter().filter(|it| it.content.is_some()).map(|it| it.path.as_str().as_bytes());
        // A file in the index is never ignored.
        let said = self.ignored_of(&[], new)?;
        let ignored: BTreeSet<&[u8]> = said.split(|byte| *byte == 0).map(plain).collect();
        Ok(files.into_iter().filter(|it| !ignored.contains(it.path.as_str().as_bytes())).collect())
    }

    /// Stores the contents, and returns the lines for an index, those of removed files first.
    fn stored(&self, files: &[ChangedFile]) -> Result<Vec<u8>, String> {
        let mut lines = Vec::new();
        let mut line = |text: String| {
            lines.extend_from_slice(text.as_bytes());
            lines.push(0);
        };
        let zero = "0".repeat(self.start.len());
        for file in files.iter().filter(|it| it.content.is_none()) {
            line(format!("0 {zero}\t{}", file.path));
        }
        for file in files {
            let Some(content) = &file.content else { continue };
            // With its path, git converts line ends as the file's attributes say; filters are off.
            let path = format!("--path={}", file.path);
            let name = self.git.must(&["hash-object", "-w", "--stdin", &path], Input::Bytes(content))?;
            let name = String::from_utf8_lossy(&name).trim().to_owned();
            let mode = if file.program { "100755" } else { "100644" };
            line(format!("{mode} {name}\t{}", file.path));
        }
        Ok(lines)
    }

    /// Writes the commit; `None` if it would change nothing.
    fn written(&self, lines: &[u8], of: &Author<'_>) -> Result<Option<String>, String> {
        let index = self.shelf.beside("index");
        let text = index.to_str().ok_or("the folder of work trees has a name that is no text")?;
        let of_index = [("GIT_INDEX_FILE", text)];
        let git = &self.git;
        let with_index = |args: &[&str], input: Input<'_>| {
            succeeded(args, git.run_for(args, input, &of_index, TREE_GIT_MS_MAX)?)
        };
        let tree = with_index(&["read-tree", &self.start], Input::Nothing)
            .and_then(|_| with_index(&["update-index", "-z", "--index-info"], Input::Bytes(lines)))
            .and_then(|_| with_index(&["write-tree"], Input::Nothing));
        remove_index(&index);
        let tree = String::from_utf8_lossy(&tree?).trim().to_owned();
        let before = git.line(&["rev-parse", "--verify", "--quiet", &format!("{}^{{tree}}", self.start)])?;
        if before.as_deref() == Some(&tree) {
            return Ok(None);
        }
        let (name, address) = author(of.agent);
        let variables = [("GIT_AUTHOR_NAME", name.as_str()), ("GIT_AUTHOR_EMAIL", address.as_str())];
        let args = ["commit-tree", "--no-gpg-sign", &tree, "-p", &self.start, "-F", "-"];
        let message = message(of);
        let written = git.run_for(&args, Input::Bytes(message.as_bytes()), &variables, TREE_GIT_MS_MAX)?;
        Ok(Some(String::from_utf8_lossy(&succeeded(&args, written)?).trim().to_owned()))
    }
}

/// Removes an index, and the lock beside it that a killed git leaves.
fn remove_index(index: &Path) {
    for file in [index.to_path_buf(), index.with_extension("index.lock")] {
        // Either of them may be missing.
        let _gone = std::fs::remove_file(file);
    }
}

/// Returns the message of a commit: one line about the task, the way in which its run has ended if not well, and the trailers.
fn message(of: &Author<'_>) -> String {
    let begin = if of.unfinished.is_some() { "Unfinished: " } else { "" };
    let line = of.goal.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("a task without words");
    let line = visible_name(line, SUBJECT_CHARS_MAX - begin.len());
    let ended =
        of.unfinished.map(|why| format!("The run has not ended well: {}.\n\n", visible_name(why, 800)));
    let (task, agent) = (trailer("Provost-Task", of.task), trailer("Provost-Agent", of.agent));
    format!("{begin}{line}\n\n{}{task}\n{agent}\n", ended.unwrap_or_default())
}

fn trailer(name: &str, value: &str) -> String {
    format!("{name}: {}", visible_name(value, 400))
}

impl WorkTree {
    /// Returns git for this work tree.
    pub(super) fn git(&self) -> &QuietGit {
        &self.git
    }
}
