//! A work tree of the user's that follows its branch, as after `git merge --ff-only`. Blocking.
//!
//! ```text
//!   [as it was] --prepare--> [locked, all new files beside] --the branch is moved--> finish --> [as it should be]
//!        ^                        |                                                   ^
//!        +------ release ---------+      the daemon dies: the branch says which ------+
//! ```
//! From `prepare` to the end, git's own lock of the index is held; so no git of the user's sees a work tree between the
//! two states. The plan and all new files are in a folder of ours that no worker reaches: a process that may write git's
//! folder can make a lock with our text, and that lock has no effect. Each file is exchanged in one step; after a crash, a
//! file that has neither the old nor the new content is the user's, and stays.

mod marks;
mod modes;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::git_objects::{Objects, TreeChange};
use super::git_process::{self, GitError};
use super::git_refs::WorkTree;
use provost_base::Digest;
use provost_system::{file_inside, folder_inside, make_private_folders, plain_file, short_text};

/// The folder, among ours, for work trees that follow.
const FOLDER: &str = "followers";
/// The file in a follower's folder that names the old and the new commit.
const WAY: &str = "way";
/// Longest text of a lock that is read, in bytes.
const LOCK_BYTES_MAX: u64 = 1_024;

/// Attributes that decide how the content of a file is written.
const WRITTEN_BY: [&str; 6] = ["filter", "text", "crlf", "eol", "working-tree-encoding", "ident"];

/// Files that git keeps while an operation of its own is under way.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("BISECT_LOG", "a bisect"),
];

/// The refs among those files, which a repository may keep in a table instead of files.
const REFS: [(&str, &str); 2] = [("CHERRY_PICK_HEAD", "a cherry-pick"), ("REVERT_HEAD", "a revert")];

/// The beginning of the text of our locks.
const MARK: &str = "provost merge ";

/// Files of a work tree that do not have the new content after it has followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftAlone {
    /// Files that the user has changed.
    pub yours: Vec<String>,
    /// Files that could not be written, each with the reason.
    pub unwritten: Vec<String>,
}

/// Returns the old and the new commit of a work tree that was left half-way: those noted for it, if its index still has our
/// lock for them. A note without that lock is removed: the user has taken over the work tree.
pub fn marked_way(objects: &Objects, tree: &WorkTree) -> Option<(String, String)> {
    let folder = folder_of(objects, tree);
    let text = short_text(&folder.join(WAY), LOCK_BYTES_MAX).ok()?;
    let (from, to) = text.strip_prefix(MARK)?.trim_end().split_once(' ')?;
    let way = (from.to_owned(), to.to_owned());
    if !Follower::new(objects, tree, (&way.0, &way.1)).is_ours() {
        // Another merge replaces the files that stay.
        let _removed = remove_folder(&folder);
        return None;
    }
    Some(way)
}

/// Returns our folder for a work tree, outside of every repository.
fn folder_of(objects: &Objects, tree: &WorkTree) -> PathBuf {
    let name = Digest::of(tree.git_dir.as_os_str().as_encoded_bytes()).to_string();
    objects.scratch().join(FOLDER).join(name.replace(':', "-"))
}

/// The reason why a work tree cannot follow; nothing has changed then. Safe to show.
#[derive(Debug, thiserror::Error)]
pub enum CannotFollow {
    /// Files of the user's are in the way.
    #[error("the work tree {tree} cannot follow: {why}")]
    InTheWay {
        /// The top of the work tree.
        tree: String,
        /// The obstacle, and the remedy.
        why: String,
    },
    /// Git has not answered.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The system refused a step.
    #[error("a work tree could not be prepared: {0}")]
    Io(#[from] io::Error),
}

/// A work tree that follows its branch from one commit to another.
pub struct Follower<'a> {
    objects: &'a Objects,
    tree: &'a WorkTree,
    /// The old and the new commit.
    way: (&'a str, &'a str),
}

impl<'a> Follower<'a> {
    /// Makes a follower for a work tree, from the old commit to the new one.
    pub fn new(objects: &'a Objects, tree: &'a WorkTree, way: (&'a str, &'a str)) -> Self {
        Self { objects, tree, way }
    }

    /// Returns the work tree's top, for people.
    pub fn top(&self) -> String {
        self.tree.top.display().to_string()
    }

    fn lock(&self) -> PathBuf {
        self.tree.git_dir.join("index.lock")
    }

    fn folder(&self) -> PathBuf {
        folder_of(self.objects, self.tree)
    }

    fn index(&self) -> PathBuf {
        self.tree.git_dir.join("index")
    }

    /// Returns the text that marks our lock.
    fn mark(&self) -> String {
        format!("{MARK}{} {}\n", self.way.0, self.way.1)
    }

    fn in_the_way(&self, why: impl Into<String>) -> CannotFollow {
        CannotFollow::InTheWay { tree: self.top(), why: why.into() }
    }

    /// Locks the index, checks that no file of the user's is in the way, and puts all new files beside it.
    ///
    /// # Errors
    /// [`CannotFollow`]; the lock is removed then.
    pub fn prepare(&self) -> Result<(), CannotFollow> {
        for (name, what) in UNDER_WAY {
            if self.tree.git_dir.join(name).symlink_metadata().is_ok() {
                return Err(self.in_the_way(format!("{what} is under way there; end it first")));
            }
        }
        let repository = self.objects.repository();
        if repository.setting("extensions.refstorage")?.is_some_and(|it| it != "files") {
            for (name, what) in REFS {
                if repository.has_ref_in(self.tree, name)? {
                    return Err(self.in_the_way(format!("{what} is under way there; end it first")));
                }
            }
        }
        self.take_lock()?;
        let done = self.stage();
        if done.is_err() {
            self.release()?;
        }
        done
    }

    /// Notes the commits, and then takes git's lock of the index, which has our text from the first moment. Never writes through a
    /// name in git's folder that others may have made.
    fn take_lock(&self) -> Result<(), CannotFollow> {
        let held =
            || self.in_the_way("another git holds its index (index.lock); try again when it has ended");
        if self.lock().symlink_metadata().is_ok() {
            return Err(held());
        }
        remove_folder(&self.folder())?;
        make_private_folders(&self.folder())?;
        create(&self.folder().join(WAY), self.mark().as_bytes())?;
        let marked = self.tree.git_dir.join(format!("provost-{}.lock", uuid::Uuid::new_v4().simple()));
        create(&marked, self.mark().as_bytes())?;
        let locked = fs::hard_link(&marked, self.lock());
        fs::remove_file(&marked)?;
        match locked {
            Ok(()) => Ok(()),
            Err(err) => {
                remove_folder(&self.folder())?;
                Err(if err.kind() == ErrorKind::AlreadyExists { held() } else { err.into() })
            }
        }
    }

    fn stage(&self) -> Result<(), CannotFollow> {
        let folder = self.folder();
        let (old, new) = (folder.join("old"), folder.join("new"));
        if self.index().symlink_metadata().is_ok() {
            copy_plain(&self.index(), &old)?;
            self.objects.repository().make_whole(self.tree, &old)?;
        } else {
            self.git(&old, &["read-tree", "--empty"])?.good("read-tree")?;
        }
        let (from, to) = self.way;
        let changes = self.objects.changes(from, to)?;
        let assumed = self.without_assumptions(&old, &changes)?;
        // A file is unchanged if only its time has changed.
        let _not_all_the_same = self.git(&old, &["update-index", "-q", "--refresh"])?;
        fs::copy(&old, &new)?;
        let read = self.git(&new, &["read-tree", "-m", from, to])?;
        if !read.status.success() {
            let why = read.words.trim().replace("error: ", "").replace('\n', "; ");
            return Err(self.in_the_way(format!(
                "files with changes of yours are in the way ({}); commit or stash them, and merge again",
                why.chars().take(400).collect::<String>()
            )));
        }
        self.mark_files(&new, "--assume-unchanged", &assumed)?;
        self.check_filters(&new, &changes)?;
        self.check_new_places(&old, &changes)?;
        self.check_folders(&changes)?;
        let files = folder.join("files");
        fs::create_dir(&files)?;
        let names: Vec<&str> =
            changes.iter().filter(|it| is_written(it)).map(|it| it.path.as_str()).collect();
        let mut git = self.objects.git_at(&new, &files)?;
        git.args(["checkout-index", "-z", "--stdin", "--quiet"]);
        git_process::reading(&mut git, (names.join("\0") + "\0").as_bytes(), self.objects.scratch())?;
        if !names.is_empty() {
            git_process::run(git, "checkout-index", self.objects.scratch())?.good("checkout-index")?;
        }
        Ok(())
    }

    fn git(&self, index: &Path, args: &[&str]) -> Result<git_process::Answer, GitError> {
        let mut git = self.objects.git_at(index, &self.tree.top)?;
        git.args(args);
        git_process::run(git, args.first().copied().unwrap_or_default(), self.objects.scratch())
    }

    /// Checks that no changed file would have to be written by a program of the user's.
    fn check_filters(&self, index: &Path, changes: &[TreeChange]) -> Result<(), CannotFollow> {
        let repository = self.objects.repository();
        let filters = repository.filters()?;
        let is_sparse = repository.is_set_in(self.tree, "core.sparsecheckout")?;
        let by_hand = format!("run `git merge --ff-only {}` there instead", self.way.1);
        if is_sparse {
            return Err(
                self.in_the_way(format!("only a part of it is checked out (sparse checkout); {by_hand}"))
            );
        }
        let names: Vec<&str> = changes.iter().map(|it| it.path.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let ours = self.attributes(self.objects.git_at(index, &self.folder())?, &names)?;
        let users = self.attributes(repository.git_at(index, &self.tree.top)?, &names)?;
        let is_filter = |it: &&[String; 3]| it[1] == "filter" && filters.contains(&it[2]);
        if let Some([path, _, filter]) = users.iter().find(is_filter) {
            return Err(self.in_the_way(format!(
                "{path:?} is written by the filter {filter:?}, a program that the daemon does not run; {by_hand}"
            )));
        }
        match users.iter().zip(&ours).find(|(user, own)| user != own) {
            Some(([path, name, _], _)) => Err(self.in_the_way(format!(
                "the attribute {name} of {path:?} is set outside of the branch (.git/info/attributes, core.attributesFile), \
                 where the daemon does not look; {by_hand}"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the attributes that decide how contents are written, each as path, name and value.
    fn attributes(&self, mut git: Command, names: &[&str]) -> Result<Vec<[String; 3]>, GitError> {
        git.args(["check-attr", "-z", "--stdin", "--cached"]).args(WRITTEN_BY);
        git_process::reading(&mut git, (names.join("\0") + "\0").as_bytes(), self.objects.scratch())?;
        let said = git_process::run(git, "check-attr", self.objects.scratch())?.good("check-attr")?;
        let text = String::from_utf8_lossy(&said).into_owned();
        let parts: Vec<&str> = text.split('\0').collect();
        Ok(parts.chunks_exact(3).map(|it| [it[0], it[1], it[2]].map(str::to_owned)).collect())
    }

    /// Checks that the places of new files are free.
    fn check_new_places(&self, old: &Path, changes: &[TreeChange]) -> Result<(), CannotFollow> {
        let top = Dir::open_ambient_dir(&self.tree.top, ambient_authority())?;
        let gone: BTreeSet<&str> = changes.iter().filter(|it| it.new.is_none()).map(|it| &*it.path).collect();
        let mut folded = BTreeSet::new();
        for it in changes.iter().filter(|it| it.old.is_none()) {
            let mut dir = top.try_clone()?;
            let (folders, name) = it.path.rsplit_once('/').unwrap_or(("", &it.path));
            let (mut way, mut is_free) = (String::new(), false);
            for part in folders.split('/').filter(|it| !it.is_empty()) {
                way = if way.is_empty() { part.to_owned() } else { format!("{way}/{part}") };
                match folder_inside(&dir, part) {
                    Ok(next) => dir = next,
                    Err(_) if dir.symlink_metadata(part).is_err() || gone.contains(way.as_str()) => {
                        is_free = true;
                        break;
                    }
                    Err(_) => {
                        return Err(self.in_the_way(format!(
                            "{way:?} is in the way of {:?}; move it away, and merge again",
                            it.path
                        )));
                    }
                }
            }
            let is_folder_that_goes =
                folder_inside(&dir, name).is_ok() && self.has_nothing_else(old, &it.path)?;
            if !is_free && dir.symlink_metadata(name).is_ok() && !is_folder_that_goes {
                let why = format!(
                    "{:?} is there, and git does not know it; move it away, and merge again",
                    it.path
                );
                return Err(self.in_the_way(why));
            }
            // Two names that this file system takes for one are found before any file is written.
            if !folded.insert(it.path.to_lowercase()) && self.folds_case(&top) {
                return Err(self.in_the_way(format!("{:?} is there twice, in capitals and not", it.path)));
            }
        }
        Ok(())
    }

    /// Checks that each folder with changes can be written to.
    fn check_folders(&self, changes: &[TreeChange]) -> Result<(), CannotFollow> {
        let top = Dir::open_ambient_dir(&self.tree.top, ambient_authority())?;
        let mut looked_at = BTreeSet::new();
        for it in changes {
            let folders = it.path.rsplit_once('/').map_or("", |(folders, _)| folders);
            if !looked_at.insert(folders) {
                continue;
            }
            // The last existing folder counts, since the others are made in it.
            let (mut dir, mut way) = (top.try_clone()?, PathBuf::new());
            for part in folders.split('/').filter(|it| !it.is_empty()) {
                let Ok(next) = folder_inside(&dir, part) else { break };
                dir = next;
                way.push(part);
            }
            if !modes::is_writable(&dir) {
                let way = if way.as_os_str().is_empty() { Path::new(".") } else { &way };
                return Err(self.in_the_way(format!(
                    "the folder {way:?} cannot be written, where {:?} changes; give yourself the right, and merge again",
                    it.path
                )));
            }
        }
        Ok(())
    }

    /// Checks whether all files of a folder are git's, so that the folder can be removed with them.
    fn has_nothing_else(&self, old: &Path, folder: &str) -> Result<bool, GitError> {
        let folder = format!(":(literal){folder}");
        let others = self.git(old, &["ls-files", "--others", "-z", "--", &folder])?.good("ls-files")?;
        Ok(others.is_empty())
    }

    fn folds_case(&self, top: &Dir) -> bool {
        top.symlink_metadata(".GIT").is_ok()
    }

    /// Releases the index, unchanged.
    ///
    /// # Errors
    /// The system's error.
    pub fn release(&self) -> io::Result<()> {
        let is_ours = self.is_ours();
        if is_ours {
            fs::remove_file(self.lock())?;
        }
        remove_folder(&self.folder())
    }

    /// Checks whether our folder notes these commits, and the lock of the index is ours for them.
    fn is_ours(&self) -> bool {
        let says = |path: PathBuf| short_text(&path, LOCK_BYTES_MAX).is_ok_and(|it| it == self.mark());
        says(self.folder().join(WAY)) && says(self.lock())
    }

    /// Brings the work tree to its branch's commit. Returns the files that it has left alone.
    ///
    /// # Errors
    /// [`CannotFollow`]; it can be called again then.
    pub fn finish(&self) -> Result<LeftAlone, CannotFollow> {
        if !self.is_ours() {
            // The user has removed the lock, and so taken over the work tree; or all is
            // done.
            remove_folder(&self.folder())?;
            return Ok(LeftAlone::default());
        }
        let (old, new) = (self.folder().join("old"), self.folder().join("new"));
        let mut left = LeftAlone::default();
        if new.exists() {
            left = self.write_files(&old)?;
            let _not_all_the_same = self.git(&new, &["update-index", "-q", "--refresh"])?;
            self.put_index(&new)?;
        }
        fs::remove_file(self.lock())?;
        remove_folder(&self.folder())?;
        Ok(left)
    }

    /// Gives git the new index in one step, also if git's folder is on another file system than ours.
    fn put_index(&self, new: &Path) -> io::Result<()> {
        let half = self.tree.git_dir.join(format!("provost-{}.index", uuid::Uuid::new_v4().simple()));
        let put = || {
            let mut file = File::options().write(true).create_new(true).open(&half)?;
            io::copy(&mut File::open(new)?, &mut file)?;
            if let Some(before) = self.index().symlink_metadata().ok().filter(fs::Metadata::is_file) {
                file.set_permissions(before.permissions())?;
            }
            file.sync_all()?;
            fs::rename(&half, self.index())
        };
        put().inspect_err(|_| drop(fs::remove_file(&half)))?;
        fs::remove_file(new)
    }

    /// Exchanges the files. A file that the user has changed is left alone, unless it has the new content already.
    fn write_files(&self, old: &Path) -> Result<LeftAlone, CannotFollow> {
        let dirty = self.git(old, &["diff-files", "--name-only", "-z"])?.good("diff-files")?;
        let dirty = String::from_utf8_lossy(&dirty).into_owned();
        let dirty: BTreeSet<&str> = dirty.split('\0').collect();
        let changes = self.objects.changes(self.way.0, self.way.1)?;
        let top = Dir::open_ambient_dir(&self.tree.top, ambient_authority())?;
        let files = Dir::open_ambient_dir(self.folder().join("files"), ambient_authority())?;
        let shared = modes::shared(self.objects.repository().setting("core.sharedrepository")?.as_deref());
        let mut left = LeftAlone::default();
        let is_file = |it: &&TreeChange| it.old.as_ref().is_some_and(|it| it.mode != "160000");
        for it in changes.iter().filter(|it| it.new.is_none()).filter(is_file) {
            let is_there = |(dir, name): (Dir, &str)| dir.symlink_metadata(name).is_ok();
            let is_theirs = dirty.contains(it.path.as_str()) && place(&top, &it.path).is_ok_and(is_there);
            if is_theirs {
                left.yours.push(it.path.clone());
            } else if let Err(error) = remove(&top, &it.path) {
                left.unwritten.push(format!("{} ({error})", it.path));
            }
        }
        for it in changes.iter().filter(|it| it.new.is_some()) {
            let is_submodule = it.new.as_ref().is_some_and(|it| it.mode == "160000");
            if is_submodule {
                if let Err(error) = folders_of(&top, &format!("{}/", it.path), Some(shared)) {
                    left.unwritten.push(format!("{} ({error})", it.path));
                }
            } else if place(&files, &it.path).is_ok_and(|(dir, name)| dir.symlink_metadata(name).is_ok()) {
                // A new file that is no longer beside is in its place already. A place with the new content was filled by an earlier
                // try, which did not come to remove the file beside.
                if it.old.is_some() && dirty.contains(it.path.as_str()) {
                    if !is_same(&top, &files, &it.path) {
                        left.yours.push(it.path.clone());
                    }
                    continue;
                }
                match exchange(&top, &files, it, shared) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        if !is_same(&top, &files, &it.path) {
                            left.yours.push(it.path.clone());
                        }
                    }
                    Err(error) => left.unwritten.push(format!("{} ({error})", it.path)),
                }
            }
        }
        Ok(left)
    }
}

/// Gives a file its new content, in one step. A file that has since appeared in the place of a new one is the user's.
fn exchange(top: &Dir, files: &Dir, it: &TreeChange, shared: u32) -> io::Result<()> {
    let (from, name) = place(files, &it.path)?;
    let to = folders_of(top, &it.path, Some(shared))?;
    if it.old.is_none() && to.symlink_metadata(name).is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    modes::take_over(&from, &to, name, shared)?;
    match from.rename(name, &to, name) {
        Err(err) if err.kind() == ErrorKind::CrossesDevices => across(&from, &to, name),
        done => done,
    }
}

/// Checks whether a file of the work tree equals the one beside it that was to replace it.
fn is_same(top: &Dir, files: &Dir, path: &str) -> bool {
    let content = |dir: &Dir| {
        let (dir, name) = place(dir, path).ok()?;
        if dir.symlink_metadata(name).ok()?.is_symlink() {
            return Some((true, dir.read_link_contents(name).ok()?.into_os_string().into_encoded_bytes()));
        }
        let mut bytes = Vec::new();
        file_inside(&dir, name).ok()?.read_to_end(&mut bytes).ok()?;
        Some((false, bytes))
    };
    content(top).is_some_and(|it| Some(it) == content(files))
}

/// Checks whether the file has a new content that has to be written.
fn is_written(it: &TreeChange) -> bool {
    it.new.as_ref().is_some_and(|it| it.mode != "160000")
}

/// Returns the folder of a file, reached through no link, and the file's name in it.
fn place<'p>(top: &Dir, path: &'p str) -> io::Result<(Dir, &'p str)> {
    Ok((folders_of(top, path, None)?, path.rsplit_once('/').map_or(path, |(_, name)| name)))
}

/// Returns the folder of a file, reached through no link. With `shared`, makes missing folders, with these permissions for the
/// users who share the repository.
fn folders_of(top: &Dir, path: &str, shared: Option<u32>) -> io::Result<Dir> {
    let mut dir = top.try_clone()?;
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    for part in folders.split('/').filter(|it| !it.is_empty()) {
        if part == ".." || part == "." || part.eq_ignore_ascii_case(".git") {
            return Err(ErrorKind::InvalidInput.into());
        }
        dir = match (folder_inside(&dir, part), shared) {
            (Err(err), Some(shared)) if err.kind() == ErrorKind::NotFound => {
                make_public_folder(&dir, part)?;
                let made = folder_inside(&dir, part)?;
                modes::share_folder(&made, shared)?;
                made
            }
            (found, _) => found?,
        };
    }
    Ok(dir)
}

fn make_public_folder(dir: &Dir, name: &str) -> io::Result<()> {
    match dir.create_dir(name) {
        Err(err) if err.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Removes a file, and the folders that become empty.
fn remove(top: &Dir, path: &str) -> io::Result<()> {
    let Ok((dir, name)) = place(top, path) else { return Ok(()) };
    match dir.remove_file(name) {
        Err(err) if err.kind() == ErrorKind::NotFound => {}
        done => done?,
    }
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        let Ok((dir, name)) = place(top, above) else { break };
        if dir.remove_dir(name).is_err() {
            break;
        }
        folder = above;
    }
    Ok(())
}

/// Replaces a rename if the work tree is on another file system than git's folder.
fn across(from: &Dir, to: &Dir, name: &str) -> io::Result<()> {
    let half = format!(".provost-merge-{}", uuid::Uuid::new_v4().simple());
    let meta = from.symlink_metadata(name)?;
    if meta.is_symlink() {
        let target = from.read_link_contents(name)?;
        #[cfg(unix)]
        to.symlink_contents(target, &half)?;
        #[cfg(windows)]
        to.symlink_file(target, &half)?;
    } else {
        from.copy(name, to, &half)?;
        file_inside(to, &half)?.sync_all()?;
    }
    to.rename(&half, to, name).inspect_err(|_| drop(to.remove_file(&half)))?;
    from.remove_file(name)
}

/// Writes a new file to the disk.
fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Copies a plain file; does not wait for a pipe in its place.
fn copy_plain(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = plain_file(from)?;
    io::copy(&mut from, &mut File::options().write(true).create_new(true).open(to)?).map(drop)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
