//! Scans one work tree: finds the files that are changed there, as git reports them, and the folders in
//! which more could change.
//!
//! git is called so that it takes no lock, writes no index and starts no program, under any configuration that it
//! finds. The call names the folder of the repository, so that no pointer in the work tree leads git to
//! another one, and switches off the filters that are configured there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::watch::TreeListener;
use crate::daemon::file_watcher::Covered;
use provost_base::RepoPath;
use provost_base::limits::{
    GIT_ANSWER_BYTES_MAX, GIT_ANSWER_MS_MAX, GIT_FILTERS_MAX, INDEX_ENTRIES_MAX, POST_FILES_MAX,
    SURVEY_DEPTH_MAX, WATCH_FOLDERS_MAX,
};
use provost_config::WorkTree;
use provost_system as system;
use provost_system::walk::{Bounds, Entry, Folder, Kind, Name, Step, Unread, Visitor, walk};

/// How many times in a row a work tree is scanned in which folders come and go.
const LOOKS_IN_A_ROW: u32 = 3;

/// The result of one scan of a work tree.
pub(super) struct Looked {
    /// Changed files, with untracked ones one by one; sorted by name.
    pub(super) files: Vec<String>,
    /// Whether the system reports changes from now on.
    pub(super) covered: Covered,
}

/// Scans a work tree, and its folders too if these may have changed. Blocking.
pub(super) fn look(tree: &WorkTree, hears: &TreeListener, folders_too: bool) -> Result<Looked, String> {
    let mut looked = Looked { files: Vec::new(), covered: Covered::Before };
    for _ in 0..LOOKS_IN_A_ROW {
        let (files, ignored) = status(tree)?;
        looked.files = files;
        if folders_too {
            // The listener starts before the last scan, so that no change falls between the two.
            looked.covered = match folders(tree, &ignored) {
                Some(folders) => hears.listener.cover(&folders),
                None => {
                    hears.listener.cover(&BTreeSet::new());
                    Covered::Not
                }
            };
        }
        hears.ignore(ignored);
        if looked.covered != Covered::Since {
            break;
        }
    }
    Ok(looked)
}

/// Returns the changed files, and the paths that git ignores.
fn status(tree: &WorkTree) -> Result<(Vec<String>, BTreeSet<PathBuf>), String> {
    let (mut answer, whole) = ask_status(tree, &["--untracked-files=all", "--ignored=matching"])?;
    if !whole {
        // The part of git's answer up to the bound counts, without half a name at its end.
        let end = answer.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
        answer.truncate(end);
    }
    let (mut files, mut ignored) = (Vec::new(), BTreeSet::new());
    for entry in answer.split(|byte| *byte == 0) {
        // An entry is two letters, a blank, and a name.
        let Some((letters, name)) = entry.split_at_checked(3) else { continue };
        if letters == b"!! " {
            let name = name.strip_suffix(b"/").unwrap_or(name);
            ignored.insert(tree.top.join(OsStr::from_bytes(name)));
        } else {
            files.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    files.sort();
    files.dedup();
    files.truncate(POST_FILES_MAX);
    Ok((files, ignored))
}

/// Returns git's status of a work tree for people, in lines: the branch, and the changed and new files, a folder of new files as
/// one; at most `lines` lines. Blocking.
///
/// # Errors
/// The reason why the status is unknown.
pub(in crate::daemon) fn in_words(tree: &WorkTree, lines: usize) -> Result<String, String> {
    let (answer, whole) = ask_status(tree, &["--untracked-files=normal", "--branch"])?;
    let mut entries: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    // The last part is the empty end, or half a name.
    entries.pop();
    let more = entries.len().saturating_sub(lines);
    // A name may contain a line break.
    let line = |entry: &&[u8]| String::from_utf8_lossy(entry).replace(char::is_control, "?") + "\n";
    let mut text: String = entries.iter().take(lines).map(line).collect();
    if more > 0 || !whole {
        text += &format!("and {}{more} more\n", if whole { "" } else { "at least " });
    }
    Ok(text)
}

/// Returns those of some files that are as committed. Blocking.
///
/// # Errors
/// The reason why git could not tell.
pub(in crate::daemon) fn as_committed(tree: &WorkTree, files: &[RepoPath]) -> Result<Vec<RepoPath>, String> {
    let mut found = Vec::new();
    for some in files.chunks(FILES_AT_ONCE) {
        let literal: Vec<String> = some.iter().map(|it| format!(":(top,literal){}", it.as_str())).collect();
        let mut args = vec!["--untracked-files=all", "--ignored=matching", "--"];
        args.extend(literal.iter().map(String::as_str));
        let (answer, whole) = ask_status(tree, &args)?;
        if !whole {
            return Err("git says more than is read".into());
        }
        let names = answer.split(|byte| *byte == 0).filter_map(|it| it.split_at_checked(3));
        let mut changed: BTreeSet<&[u8]> = names.clone().map(|(_, name)| name).collect();
        let in_tree_alone = names.filter(|(letters, _)| *letters == b" M ").map(|(_, name)| name);
        for name in as_added(tree, in_tree_alone)? {
            changed.remove(name);
        }
        // For an ignored folder, git names only the folder.
        let is_changed = |file: &[u8]| {
            let mut folders = changed.iter().filter(|it| it.ends_with(b"/"));
            changed.contains(file) || folders.any(|it| file.starts_with(it))
        };
        found.extend(some.iter().filter(|it| !is_changed(it.as_str().as_bytes())).cloned());
    }
    Ok(found)
}

/// Returns those of some files that git takes for changed although they are as they were when they were added. A filter writes
/// their committed content; without it git compares contents that must differ, if a file's time is too close to the index's. The
/// file's time in the index says whether it has been written since.
fn as_added<'a>(tree: &WorkTree, files: impl Iterator<Item = &'a [u8]>) -> Result<Vec<&'a [u8]>, String> {
    let files: Vec<&[u8]> = files.collect();
    if files.is_empty() || filters(tree)?.is_empty() {
        return Ok(Vec::new());
    }
    let names = || files.iter().map(|it| OsStr::from_bytes(it));
    let mut git = self::git(tree);
    git.args(["--no-pager", "check-attr", "-z", "filter", "--"]).args(names());
    let (said, _) = answer_of(git)?;
    let said: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
    let is_filtered = |file: &[u8]| {
        let none: [&[u8]; 2] = [b"unspecified", b"unset"];
        said.chunks_exact(3).any(|it| it[0] == file && !none.contains(&it[2]))
    };
    let mut git = self::git(tree);
    git.args(["--no-pager", "--literal-pathspecs", "ls-files", "--debug", "-z", "--"]).args(names());
    let (added, _) = answer_of(git)?;
    let is_as_added = |file: &[u8]| {
        let Some((seconds, rest)) = time_added(&added, file) else { return false };
        let meta = tree.top.join(OsStr::from_bytes(file)).symlink_metadata();
        meta.is_ok_and(|it| it.is_file() && (it.mtime(), it.mtime_nsec()) == (seconds, rest))
    };
    Ok(files.iter().copied().filter(|it| is_filtered(it) && is_as_added(it)).collect())
}

/// Returns the time of a file when it was added, in seconds and billionths, as `git ls-files --debug -z` prints it.
fn time_added(said: &[u8], file: &[u8]) -> Option<(i64, i64)> {
    // Lines about a file stand behind its name, and then comes the next name.
    let begin = [file, b"\0  ctime: "].concat();
    let at = said.windows(begin.len()).position(|it| it == begin)?;
    let is_name = at == 0 || said.get(at - 1) == Some(&b'\n');
    let text = String::from_utf8_lossy(said.get(at..)?.get(..said.len().min(at + begin.len() + 200) - at)?)
        .into_owned();
    let time = text.split("mtime: ").nth(1)?.lines().next()?.to_owned();
    let (seconds, rest) = time.split_once(':')?;
    is_name.then_some((seconds.parse().ok()?, rest.parse().ok()?))
}

/// Returns those of some files that a commit contains. Blocking.
///
/// # Errors
/// The reason why git could not tell.
pub(in crate::daemon) fn in_commit(
    tree: &WorkTree,
    commit: &str,
    files: &[RepoPath],
) -> Result<BTreeSet<RepoPath>, String> {
    let mut found = BTreeSet::new();
    for some in files.chunks(FILES_AT_ONCE) {
        let mut git = git(tree);
        git.args(["--no-pager", "--literal-pathspecs", "ls-tree", "-z", "-r", "--full-tree", "--name-only"])
            .args(["--end-of-options", commit, "--"])
            .args(some.iter().map(RepoPath::as_str));
        let (answer, whole) = answer_of(git)?;
        if !whole {
            return Err("git says more than is read".into());
        }
        let names: BTreeSet<&[u8]> = answer.split(|byte| *byte == 0).collect();
        found.extend(some.iter().filter(|it| names.contains(it.as_str().as_bytes())).cloned());
    }
    Ok(found)
}

/// How many files git is asked about in one call.
const FILES_AT_ONCE: usize = 200;

/// Asks git for the status of a work tree. Returns its answer, and whether that is complete.
fn ask_status(tree: &WorkTree, args: &[&str]) -> Result<(Vec<u8>, bool), String> {
    let mut git = git(tree);
    git.args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(["-c", "protocol.allow=never", "status", "--porcelain=v1", "-z"])
        .args(["--no-renames", "--ignore-submodules=all"])
        .args(args);
    for (n, key) in filters(tree)?.iter().enumerate() {
        let off: &[u8] = if key.ends_with(b".required") { b"false" } else { b"" };
        git.env(format!("GIT_CONFIG_KEY_{n}"), OsStr::from_bytes(key));
        git.env(format!("GIT_CONFIG_VALUE_{n}"), OsStr::from_bytes(off));
        git.env("GIT_CONFIG_COUNT", (n + 1).to_string());
    }
    answer_of(git)
}

/// Returns the settings of filters, since git would start a program for each.
fn filters(tree: &WorkTree) -> Result<Vec<Vec<u8>>, String> {
    let mut git = git(tree);
    git.args(["--no-pager", "config", "--list", "--name-only", "-z"]);
    let (answer, whole) = answer_of(git)?;
    let ends: [&[u8]; 4] = [b".clean", b".smudge", b".process", b".required"];
    let is_filter = |key: &&[u8]| key.starts_with(b"filter.") && ends.iter().any(|end| key.ends_with(end));
    let found: BTreeSet<&[u8]> = answer.split(|byte| *byte == 0).filter(is_filter).collect();
    if !whole || found.len() > GIT_FILTERS_MAX {
        return Err("git's configuration is too large to be sure of what it would start".into());
    }
    Ok(found.into_iter().map(<[u8]>::to_owned).collect())
}

/// Returns git for one work tree.
fn git(tree: &WorkTree) -> Command {
    // A program that a worker may have put into a folder of `PATH` in the repository is not used.
    // For a linked work tree, the main checkout is another such folder.
    let trees = tree.git_dir.parent().filter(|it| it.ends_with("worktrees"));
    let main = trees.and_then(|it| it.parent()?.parent()).unwrap_or(&tree.top);
    // A repository may lie inside of another one.
    let around = tree.top.ancestors().skip(1).filter(|it| it.join(".git").symlink_metadata().is_ok());
    let inside: Vec<&Path> =
        [tree.top.as_path(), tree.git_dir.as_path(), main].into_iter().chain(around).collect();
    let mut git = Command::new(
        system::find_program_outside("git", &inside).unwrap_or_else(|| "/nonexistent/git".into()),
    );
    git.current_dir(&tree.top).env_clear();
    for name in ["HOME", "XDG_CONFIG_HOME"] {
        git.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    git.envs(std::env::join_paths(system::path_outside(&inside)).map(|path| ("PATH", path)));
    git.env("GIT_DIR", &tree.git_dir).env("GIT_WORK_TREE", &tree.top);
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    git
}

/// Returns git's output, and whether that is complete.
fn answer_of(mut git: Command) -> Result<(Vec<u8>, bool), String> {
    let mut child = git.spawn().map_err(|err| err.to_string())?;
    let (tell, heard) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // The thread ends when git does, at the latest when it is killed.
        let reads = std::thread::Builder::new().name("git".into()).spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(GIT_ANSWER_BYTES_MAX).read_to_end(&mut answer);
            // A receiver that is gone has given up waiting.
            let _unheard = tell.send(read.map(|_| answer));
        });
        if let Err(err) = reads {
            // This fails only if git has ended by itself.
            let _ended = child.kill();
            child.wait().map_err(|err| err.to_string())?;
            return Err(format!("git could not be listened to: {err}"));
        }
    }
    let answer = heard.recv_timeout(Duration::from_millis(GIT_ANSWER_MS_MAX));
    if answer.is_err() {
        // This fails only if git has ended by itself.
        let _ended = child.kill();
    }
    let status = child.wait().map_err(|err| err.to_string())?;
    let answer = answer.map_err(|err| err.to_string())?.map_err(|err| err.to_string())?;
    let whole = (answer.len() as u64) < GIT_ANSWER_BYTES_MAX;
    // When the answer is cut off at the bound, git fails because its pipe has no reader; that is no error.
    if whole && !status.success() {
        return Err(format!("git ended with {status}"));
    }
    Ok((answer, whole))
}

/// Returns the folders in which a change would appear in git's status; `None` if there are too many.
fn folders(tree: &WorkTree, ignored: &BTreeSet<PathBuf>) -> Option<BTreeSet<PathBuf>> {
    let mut listing = Listing { top: &tree.top, ignored, found: BTreeSet::from([tree.git_dir.clone()]) };
    // The folder is gone by now, or we may not open it.
    let Ok(top) = Dir::open_ambient_dir(&tree.top, ambient_authority()) else { return Some(listing.found) };
    let bounds = Bounds { entries: INDEX_ENTRIES_MAX, depth: SURVEY_DEPTH_MAX, until: None };
    walk(&mut listing, (top, OsStr::new("")), (), bounds).ok()?;
    Some(listing.found)
}

struct Listing<'a> {
    top: &'a Path,
    ignored: &'a BTreeSet<PathBuf>,
    found: BTreeSet<PathBuf>,
}

/// Stops the walk: there are too many folders, or too many entries in them.
struct TooMany;

impl Visitor for Listing<'_> {
    type Here = ();
    type Stop = TooMany;

    fn folder(&mut self, folder: Folder<'_>, _names: &mut Vec<Name>, _here: &mut ()) -> Result<(), TooMany> {
        if self.found.len() > WATCH_FOLDERS_MAX {
            return Err(TooMany);
        }
        let is_top = folder.path().is_empty();
        self.found.insert(if is_top { self.top.to_owned() } else { self.top.join(folder.path()) });
        Ok(())
    }

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, TooMany> {
        let is_wanted = at.kind() == Kind::Folder
            && at.name() != ".git"
            && !self.ignored.contains(&self.top.join(at.path()));
        // A folder that cannot be opened is gone by now, or we may not open it.
        let opened = is_wanted.then(|| at.open().ok()).flatten();
        Ok(opened.filter(|dir| !is_repository(dir)).map_or(Step::Over, |dir| Step::Into(dir, ())))
    }

    fn unread(&mut self, _folder: Folder<'_>, why: Unread) -> Result<(), TooMany> {
        match why {
            Unread::Beyond(_) => Err(TooMany),
            Unread::Failed(_) => Ok(()),
        }
    }
}

/// Checks whether a folder is another repository, or another work tree of this one.
fn is_repository(folder: &Dir) -> bool {
    folder.symlink_metadata(".git").is_ok()
}
