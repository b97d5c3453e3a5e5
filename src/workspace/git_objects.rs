//! The objects of a repository: merges, compares, reads and writes trees without a work tree. Blocking.
//!
//! Git runs in a repository of ours that contains only the user's objects: no configuration of the user's,
//! no hook, no attribute and no ref counts there. So no file of a branch can name a program that
//! git runs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::git_process::{self, GitError};
use super::git_refs::{Person, Repository};
use provost_base::limits::{MERGE_COMMITS_MAX, MERGE_CONTENTS_AT_ONCE_BYTES, SOURCE_BYTES_MAX};
use provost_system as system;

/// Settings of the user's that decide how files are written, and that name no program.
const OF_FILES: [&str; 9] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.longpaths",
    "core.protectntfs",
    "core.sharedrepository",
];

/// Longest list of the commits at which a shallow clone ends, in bytes.
const SHALLOW_BYTES_MAX: u64 = 64 << 20;

/// The objects of a repository.
#[derive(Clone, Debug)]
pub struct Objects {
    repository: Repository,
    /// The repository of ours in which git runs.
    own: PathBuf,
}

/// The outcome of a merge of two commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextMerge {
    /// The merged tree; a file in conflict contains both sides.
    pub tree: String,
    /// The files in conflict, each with git's message.
    pub conflicts: Vec<TextConflict>,
}

/// A file that git cannot merge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextConflict {
    /// The file, from the top of the repository.
    pub path: String,
    /// Git's message about the conflict.
    pub why: String,
}

/// A file of a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TreeFile {
    /// The file's mode: `100644`, `100755`, `120000`, `160000`.
    pub mode: String,
    /// The name of the file's object.
    pub object: String,
}

impl TreeFile {
    /// Checks whether the entry is a file with content, and no link or submodule.
    pub fn is_regular(&self) -> bool {
        self.mode.starts_with("100")
    }
}

/// A file that differs between two trees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeChange {
    /// The file, from the top of the repository.
    pub path: String,
    /// The old file; `None` if it is new.
    pub old: Option<TreeFile>,
    /// The new file; `None` if it was removed.
    pub new: Option<TreeFile>,
}

/// A commit of a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitInfo {
    /// The commit's hash.
    pub id: String,
    /// The author's name and address.
    pub author: String,
    /// The commit's message.
    pub message: String,
}

impl Objects {
    /// Opens the objects of a repository.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn of(repository: &Repository) -> Result<Self, GitError> {
        let own = repository.scratch.join("objects.git");
        system::make_private_folders(&own.join("objects"))?;
        system::make_private_folders(&own.join("refs"))?;
        put(&own.join("HEAD"), b"ref: refs/heads/none\n")?;
        let format = repository.setting("extensions.objectformat")?;
        let version = usize::from(format.is_some());
        let mut text = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n");
        text.push_str("\tattributesFile = \n\texcludesFile = \n[gc]\n\tauto = 0\n");
        for key in OF_FILES {
            let value = repository.setting(key)?;
            if let (Some((_, name)), Some(value)) = (key.split_once('.'), value.filter(|it| is_word(it))) {
                text.push_str(&format!("[core]\n\t{name} = {value}\n"));
            }
        }
        if let Some(format) = format.filter(|it| is_word(it)) {
            text.push_str(&format!("[extensions]\n\tobjectFormat = {format}\n"));
        }
        put(&own.join("config"), text.as_bytes())?;
        // The commits at which the history of a shallow clone ends.
        let shallow = own.join("shallow");
        match system::beginning(&repository.common.join("shallow"), SHALLOW_BYTES_MAX) {
            Ok((text, true)) => put(&shallow, &text)?,
            Ok((_, false)) => {
                return Err(io::Error::other("the list of a shallow clone's ends is too long").into());
            }
            Err(err) if err.kind() == io::ErrorKind::NotFound => drop(fs::remove_file(&shallow)),
            Err(err) => return Err(err.into()),
        }
        Ok(Self { repository: repository.clone(), own })
    }

    /// Returns the repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns a git command that reads and writes these objects alone, without the user's configuration.
    pub(super) fn git(&self) -> Result<Command, GitError> {
        let mut git = git_process::git(&self.repository.outer, &self.own)?;
        // Only our own configuration counts.
        git.env_remove("HOME").env_remove("XDG_CONFIG_HOME").env_remove("USERPROFILE");
        git.env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", if cfg!(windows) { "NUL" } else { "/dev/null" });
        git.env("GIT_ATTR_NOSYSTEM", "1");
        git.env("GIT_DIR", &self.own).env("GIT_OBJECT_DIRECTORY", self.repository.common.join("objects"));
        Ok(git)
    }

    pub(super) fn scratch(&self) -> &Path {
        &self.repository.scratch
    }

    fn ask(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let (what, mut git) = (args.first().copied().unwrap_or_default(), self.git()?);
        git.args(args);
        git_process::run(git, what, self.scratch())?.good(what)
    }

    fn ask_line(&self, args: &[&str]) -> Result<String, GitError> {
        let said = self.ask(args)?;
        Ok(String::from_utf8_lossy(&said).trim_end_matches(['\n', '\r']).to_owned())
    }

    /// Checks whether one commit is in the history of another, or is the same.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn is_ancestor(&self, old: &str, new: &str) -> Result<bool, GitError> {
        let mut git = self.git()?;
        git.args(["merge-base", "--is-ancestor", old, new]);
        let answer = git_process::run(git, "merge-base", self.scratch())?;
        match answer.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(answer.failed("merge-base")),
        }
    }

    /// Returns a common ancestor of two commits; `None` if their histories have nothing in common.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn base_of(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        let mut git = self.git()?;
        git.args(["merge-base", one, other]);
        let answer = git_process::run(git, "merge-base", self.scratch())?;
        match answer.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&answer.said).trim_end().to_owned())),
            Some(1) => Ok(None),
            _ => Err(answer.failed("merge-base")),
        }
    }

    /// Merges two commits that have a history in common.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn merge(&self, ours: &str, theirs: &str) -> Result<TextMerge, GitError> {
        let mut git = self.git()?;
        git.args(["merge-tree", "--write-tree", "-z", "--name-only", ours, theirs]);
        let answer = git_process::run(git, "merge-tree", self.scratch())?;
        match answer.status.code() {
            Some(0 | 1) => Ok(text_merge(&String::from_utf8_lossy(&answer.said), answer.status.success())),
            _ => Err(answer.failed("merge-tree")),
        }
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.ask_line(&["rev-parse", "--verify", "--end-of-options", &format!("{commit}^{{tree}}")])
    }

    /// Returns all files of a tree. Names that are no text are left out.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn files(&self, tree: &str) -> Result<BTreeMap<String, TreeFile>, GitError> {
        let said = self.ask(&["ls-tree", "-r", "-z", "--full-tree", tree])?;
        let one = |row: &[u8]| {
            let text = std::str::from_utf8(row).ok()?;
            let (head, path) = text.split_once('\t')?;
            let mut words = head.split(' ');
            let (mode, object) = (words.next()?.to_owned(), words.nth(1)?.to_owned());
            Some((path.to_owned(), TreeFile { mode, object }))
        };
        Ok(said.split(|it| *it == 0).filter_map(one).collect())
    }

    /// Returns the files that differ between two trees; a renamed file counts as removed and added.
    ///
    /// # Errors
    /// [`GitError`], also for a name that is no text.
    pub fn changes(&self, old: &str, new: &str) -> Result<Vec<TreeChange>, GitError> {
        let said = self.ask(&["diff-tree", "-r", "-z", "--no-renames", "--full-index", old, new])?;
        let text = String::from_utf8(said).map_err(|_| GitError::Failed {
            what: "diff-tree".into(),
            why: "a file that differs has a name that is no UTF-8; rename it".into(),
        })?;
        let mut parts = text.split('\0');
        let mut found = Vec::new();
        while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
            let mut words = head.trim_start_matches(':').split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap_or_default();
            let (old_mode, new_mode, old, new) = (word(), word(), word(), word());
            let file = |mode: String, object| (mode != "000000").then_some(TreeFile { mode, object });
            let (old, new) = (file(old_mode, old), file(new_mode, new));
            found.push(TreeChange { path: path.to_owned(), old, new });
        }
        Ok(found)
    }

    /// Checks that the contents of files exist here, which a partial clone may lack.
    ///
    /// # Errors
    /// [`GitError::NotThere`] among others.
    pub fn see_that_there_are(&self, changes: &[TreeChange]) -> Result<(), GitError> {
        let files = changes.iter().filter_map(|it| it.new.as_ref()).filter(|it| it.mode != "160000");
        let objects: Vec<&str> = files.map(|it| &*it.object).collect();
        self.sizes(&objects).map(drop)
    }

    /// Returns the sizes of objects in bytes, in their order.
    fn sizes(&self, objects: &[&str]) -> Result<Vec<usize>, GitError> {
        let said = self.batch("--batch-check=%(objectsize)", objects)?;
        let sizes = String::from_utf8_lossy(&said).lines().map(|it| it.parse().ok()).collect::<Vec<_>>();
        let missing = sizes.iter().filter(|it: &&Option<usize>| it.is_none()).count();
        if missing > 0 || sizes.len() != objects.len() {
            return Err(GitError::NotThere(missing.max(objects.len() - sizes.len().min(objects.len()))));
        }
        Ok(sizes.into_iter().flatten().collect())
    }

    /// Returns the contents of files, in their order; `None` for one that is too large to be read as source.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn contents(&self, objects: &[&str]) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let of_source = |it: usize| (it <= SOURCE_BYTES_MAX).then_some(it);
        let sizes: Vec<Option<usize>> = self.sizes(objects)?.into_iter().map(of_source).collect();
        let (mut found, mut some, mut bytes) = (Vec::new(), Vec::new(), 0);
        let small = || objects.iter().zip(&sizes).filter_map(|(it, size)| Some((*it, (*size)?)));
        for (object, size) in small() {
            // Each request asks for as many as one answer may have.
            if !some.is_empty() && bytes + size > MERGE_CONTENTS_AT_ONCE_BYTES {
                found.extend(contents_of(&self.batch("--batch=%(objectsize)", &some)?));
                (some, bytes) = (Vec::new(), 0);
            }
            some.push(object);
            bytes += size;
        }
        found.extend(contents_of(&self.batch("--batch=%(objectsize)", &some)?));
        let mut found = found.into_iter();
        Ok(sizes.iter().map(|size| size.and_then(|_| found.next())).collect())
    }

    fn batch(&self, how: &str, objects: &[&str]) -> Result<Vec<u8>, GitError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let mut git = self.git()?;
        git.args(["cat-file", how]);
        git_process::reading(&mut git, (objects.join("\n") + "\n").as_bytes(), self.scratch())?;
        git_process::run(git, "cat-file", self.scratch())?.good("cat-file")
    }

    /// Writes a commit, which no ref names yet.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn commit(
        &self,
        tree: &str,
        parents: &[&str],
        (by, message): (&Person, &str),
    ) -> Result<String, GitError> {
        let mut git = self.git()?;
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), &by.name).env(format!("GIT_{role}_EMAIL"), &by.email);
        }
        git.args(["commit-tree", tree]);
        for parent in parents {
            git.args(["-p", parent]);
        }
        git_process::reading(&mut git, message.as_bytes(), self.scratch())?;
        let said = git_process::run(git, "commit-tree", self.scratch())?.good("commit-tree")?;
        Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
    }

    /// Returns the commits of a branch, without those of another commit if one is named, newest first; only the newest
    /// ones if there are many.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn commits(&self, without: Option<&str>, branch: &str) -> Result<Vec<CommitInfo>, GitError> {
        let most = format!("--max-count={MERGE_COMMITS_MAX}");
        let form = "--format=%H%x00%an <%ae>%x00%B%x00";
        let without = without.map(|it| format!("^{it}"));
        let arguments =
            ["log", "--no-show-signature", &most, form, branch].into_iter().chain(without.as_deref());
        let said = self.ask(&arguments.collect::<Vec<_>>())?;
        let text = String::from_utf8_lossy(&said).into_owned();
        let mut parts = text.split('\0');
        let mut found = Vec::new();
        while let (Some(id), Some(author), Some(message)) = (parts.next(), parts.next(), parts.next()) {
            let id = id.trim().to_owned();
            found.push(CommitInfo { id, author: author.to_owned(), message: message.to_owned() });
        }
        Ok(found)
    }

    /// Writes all files of a tree into an empty folder.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn write_all(&self, tree: &str, folder: &Path) -> Result<(), GitError> {
        let index = self.scratch().join(format!("{}.index", uuid::Uuid::new_v4().simple()));
        let done = self.read_into(&index, tree).and_then(|()| {
            let mut git = self.git_at(&index, folder)?;
            git.args(["checkout-index", "--all", "--quiet"]);
            git_process::run(git, "checkout-index", self.scratch())?.good("checkout-index").map(drop)
        });
        let _not_there = fs::remove_file(&index);
        done
    }

    fn read_into(&self, index: &Path, tree: &str) -> Result<(), GitError> {
        let mut git = self.git()?;
        git.env("GIT_INDEX_FILE", index).args(["read-tree", tree]);
        git_process::run(git, "read-tree", self.scratch())?.good("read-tree").map(drop)
    }

    /// Returns git with an index and a work tree, and with only our own configuration.
    pub(super) fn git_at(&self, index: &Path, work_tree: &Path) -> Result<Command, GitError> {
        let mut git = self.git()?;
        git.env("GIT_INDEX_FILE", index).env("GIT_WORK_TREE", work_tree).current_dir(work_tree);
        Ok(git)
    }
}

/// Replaces the text of a file in one step, since another git may be reading it.
fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|it| it == text) {
        return Ok(());
    }
    let new = path.with_extension(uuid::Uuid::new_v4().simple().to_string());
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

/// Checks whether a value of the configuration is one word, which a file of ours can repeat.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() < 64 && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

/// Reads `git merge-tree -z --name-only`: the tree, the files in conflict, and then messages, each with the
/// paths that it concerns.
fn text_merge(said: &str, is_clean: bool) -> TextMerge {
    let mut parts = said.split('\0');
    let tree = parts.next().unwrap_or_default().trim().to_owned();
    if is_clean {
        return TextMerge { tree, conflicts: Vec::new() };
    }
    let files: Vec<String> = parts.by_ref().take_while(|it| !it.is_empty()).map(str::to_owned).collect();
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    while let Some(count) = parts.next().and_then(|it| it.parse::<usize>().ok()) {
        let paths: Vec<&str> = parts.by_ref().take(count).collect();
        let kind = parts.next().unwrap_or_default();
        let text = parts.next().unwrap_or_default().trim();
        if kind.starts_with("CONFLICT") {
            for path in paths {
                words.entry(path.to_owned()).or_insert_with(|| text.to_owned());
            }
        }
    }
    let why = |path: &String| words.get(path).cloned().unwrap_or_else(|| "both sides have changed it".into());
    let mut conflicts: Vec<TextConflict> =
        files.into_iter().map(|path| TextConflict { why: why(&path), path }).collect();
    if conflicts.is_empty() {
        let all = words.into_iter().map(|(path, why)| TextConflict { path, why });
        conflicts.extend(all);
    }
    TextMerge { tree, conflicts }
}

/// Reads `git cat-file --batch=%(objectsize)`.
fn contents_of(said: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut rest) = (Vec::new(), said);
    while let Some(line) = rest.iter().position(|it| *it == b'\n') {
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|it| it.parse::<usize>().ok());
        let Some(size) = size else { break };
        let begin = line + 1;
        let Some(content) = rest.get(begin..begin + size) else { break };
        found.push(content.to_vec());
        rest = rest.get(begin + size + 1..).unwrap_or_default();
    }
    found
}
