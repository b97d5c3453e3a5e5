//! Conflicts: writes both versions of a file to a folder for people, and restores one on request.
//!
//! It writes them to `.agent-protocol/conflicts/`, which git ignores, before it records the conflict; so the files
//! of a record exist, and a crash can only leave an unused file. Other programs can write to that folder: before
//! the daemon restores a version, it checks the digest, which they cannot change. It follows no link on the way to
//! the folder or to the file.

use std::io::{self, ErrorKind, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::Dir;

use super::{Base, Provost};
use provost_base::limits::{CONFLICT_BYTES_MAX, CONFLICT_ENTRIES_MAX, CONFLICT_FILES_MAX};
use provost_base::{AgentId, Digest, RepoPath};
use provost_domain::command::{NoteTaken, SettledFile, TakeNote};
use provost_domain::view::{ConflictAhead, OneClaim};
use provost_domain::{Ahead, Claim, Content, Hold, KeptVersion, Note, Principal, Refusal, Version};
use provost_system::{
    file_inside, folder_inside, make_folder_inside, mode_of, new_file_inside, set_mode, sync_folder,
};
use provost_workspace::versions::{Versions, bounded, first};

/// The folder of the versions, from the top of the workspace.
const FOLDER: [&str; 2] = [".agent-protocol", "conflicts"];

/// The prefix of the names of unfinished files.
const HALF: &str = "half-";

/// The mode of a restored file whose mode is not known: the one that editors use.
const MODE: u32 = 0o644;

/// The longest part of a file's name that becomes part of its version's name, in bytes; the end of a name shows the file's type.
const NAME_LEN_MAX: usize = 100;

/// Selects the version to restore.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Restore {
    /// The version of the agent whose change counts.
    Picked,
    /// The version of this agent, or the one at this path.
    Of(Box<str>),
}

/// The reason why a conflict was not settled; then nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettleError {
    /// The core has refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The file has no conflict, so there is no version to restore.
    #[error("this file is not in conflict, so none of its versions is brought back")]
    NotInConflict,
    /// The word is neither an agent's name nor the path of a version; the variant lists the words that are.
    #[error("restore names no version of this file; there are: {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// The version was never kept.
    #[error("this version was not kept: it was too large, or no file that can be read")]
    NotKept,
    /// The version has been changed, and there is no other copy.
    #[error("this version is gone, or was changed since; settle the conflict without it")]
    Gone,
    /// The present content of the file would be lost.
    #[error(
        "what the file says now cannot be kept, since it is too large or no regular file; move it away first"
    )]
    InTheWay,
    /// The system's error.
    #[error("the version could not be brought back: {0}")]
    Io(Box<str>),
}

impl From<io::Error> for SettleError {
    fn from(err: io::Error) -> Self {
        Self::Io(err.to_string().into())
    }
}

impl Provost {
    /// Writes the versions of a file to the folder for people, if a change of the file would be a conflict. `by` is
    /// the agent that has changed it, if known. `after` is its present content.
    pub(super) async fn versions_ahead(
        &self,
        file: &RepoPath,
        by: Option<&AgentId>,
        after: Content,
    ) -> Result<Vec<Version>, Refusal> {
        let asked = ConflictAhead { file: file.clone(), by: by.cloned() };
        let Some(ahead) = self.view(asked).await? else { return Ok(Vec::new()) };
        let intruder = by.cloned().unwrap_or_else(provost_domain::unknown);
        let (base, kept, file) = (self.base().clone(), Arc::clone(&self.0.versions), file.clone());
        let put = self.in_turn(move || put_all(&base, &kept, &file, &ahead, &intruder, after)).await;
        Ok(put.unwrap_or_default())
    }

    /// Ends the conflict about a file, restores one of its versions if the caller wants that, and puts the note
    /// that says so on the timeline.
    ///
    /// # Errors
    /// [`SettleError`]; then nothing has changed.
    pub async fn settle_conflict(
        &self,
        who: &Principal,
        note: Note,
        (file, pick): (RepoPath, Option<AgentId>),
        restore: Option<Restore>,
    ) -> Result<NoteTaken, SettleError> {
        // Conflicts are settled one by one, so that no version is restored to a file that another agent has claimed meanwhile.
        let turn = self.0.settling.acquire().await;
        let turn = turn.map_err(|_| Refusal::Stopping)?;
        let content = match restore {
            None => None,
            Some(restore) => {
                let claim = self.view(OneClaim(file.clone())).await?;
                let conflicted = |it: &Arc<Claim>| matches!(it.held, Hold::Conflicted { .. });
                let claim = claim.filter(conflicted).ok_or(SettleError::NotInConflict)?;
                let version = chosen(&claim, pick.as_ref(), &restore)?;
                let wanted = version.kept.clone().ok_or(SettleError::NotKept)?;
                let (base, kept) = (self.base().clone(), Arc::clone(&self.0.versions));
                let content = version.content;
                let back = move || bring_back(&base, &kept, &claim, content, &wanted);
                let busy = || Refusal::busy("files that are read at once");
                self.in_turn(back).await.ok_or_else(busy)??;
                Some(content)
            }
        };
        let settles = Some(SettledFile { file, pick, content });
        let taken = self.submit(who, TakeNote { note, changed: None, settles }).await?;
        drop(turn);
        Ok(taken)
    }
}

/// Writes every known version to the folder: the owner's, oldest first, and the intruder's.
fn put_all(
    base: &Base,
    kept: &Versions,
    file: &RepoPath,
    ahead: &Ahead,
    intruder: &AgentId,
    after: Content,
) -> Vec<Version> {
    let owners = ahead.contents.iter().filter(|it| **it != after || ahead.contents.len() == 1);
    let both = owners.map(|it| (&ahead.owner, *it)).chain([(intruder, after)]);
    let version = |(agent, content): (&AgentId, Content)| {
        let put = kept.read(file, content).map(|found| {
            let digest = Digest::of(&found.bytes);
            put(base.root().handle(), file, content, &found.bytes).map(|path| KeptVersion {
                path,
                digest,
                mode: found.mode,
            })
        });
        let kept = put.transpose().unwrap_or_else(|err| {
            tracing::warn!(%err, %file, "a version of a file in conflict was not put into .agent-protocol/conflicts");
            None
        });
        Version { agent: agent.clone(), content, kept }
    };
    both.map(version).collect()
}

fn chosen<'a>(
    claim: &'a Claim,
    pick: Option<&AgentId>,
    restore: &Restore,
) -> Result<&'a Version, SettleError> {
    let path = |it: &Version| it.kept.as_ref().map(|it| it.path.to_string());
    let is = |it: &&Version| match restore {
        Restore::Picked => Some(&it.agent) == pick,
        Restore::Of(name) => *it.agent.as_str() == **name || path(it).as_deref() == Some(name),
    };
    let all = || {
        let names = claim.versions.iter().map(|it| (it.agent.to_string(), path(it)));
        names.flat_map(|(agent, path)| [Some(agent), path]).flatten().collect()
    };
    claim.versions.iter().find(is).ok_or_else(|| SettleError::Unknown(all()))
}

/// Opens the folder, and creates it if it is missing.
fn folder(root: &Dir) -> io::Result<Dir> {
    let mut dir = root.try_clone()?;
    for name in FOLDER {
        dir = match folder_inside(&dir, name) {
            Err(err) if err.kind() == ErrorKind::NotFound => match make_folder_inside(&dir, name) {
                Ok(()) => folder_inside(&dir, name)?,
                Err(err) if err.kind() == ErrorKind::AlreadyExists => folder_inside(&dir, name)?,
                Err(err) => return Err(err),
            },
            found => found?,
        };
    }
    match new_file_inside(&dir, ".gitignore") {
        Ok(mut file) => file.write_all(b"*\n")?,
        // An existing file is the user's choice.
        Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
        Err(err) => return Err(err),
    }
    Ok(dir)
}

/// Writes one version to the folder. When this returns, the version is on disk.
fn put(root: &Dir, file: &RepoPath, content: Content, bytes: &[u8]) -> io::Result<RepoPath> {
    let dir = folder(root)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_millis());
    let name = format!("{now:013}-{content}-{}", end_of(file));
    let half = half(&dir, bytes, None)?;
    dir.rename(&half, &dir, &name).inspect_err(|_| drop(dir.remove_file(&half)))?;
    sync_folder(&dir)?;
    prune(&dir);
    RepoPath::parse(&[FOLDER[0], FOLDER[1], &name].join("/"))
        .map_err(|_| io::Error::other("its name is not a valid path"))
}

/// Writes a whole file under a temporary name that no reader asks for.
fn half(dir: &Dir, bytes: &[u8], mode: Option<u32>) -> io::Result<String> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let name = format!("{HALF}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let mut file = new_file_inside(dir, &name)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| mode.map_or(Ok(()), |mode| set_mode(&file, mode)))
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(dir.remove_file(&name)))?;
    Ok(name)
}

/// Returns the last name of a path, or its end if it is too long.
fn end_of(file: &RepoPath) -> &str {
    let name = file.as_str().rsplit('/').next().unwrap_or_default();
    let from = name.len().saturating_sub(NAME_LEN_MAX);
    (from..=name.len()).find_map(|at| name.get(at..)).unwrap_or_default()
}

/// Checks whether a name is a version's: a time in milliseconds, the content's digest, and a file name.
fn is_ours(name: &str) -> bool {
    let mut parts = name.splitn(3, '-');
    let mut part = |len: usize, fits: fn(&u8) -> bool| {
        parts.next().is_some_and(|it| it.len() == len && it.as_bytes().iter().all(fits))
    };
    part(13, u8::is_ascii_digit) && part(16, u8::is_ascii_hexdigit) && parts.next().is_some()
}

/// Removes the oldest versions when there are too many, and the unfinished files of an earlier process.
fn prune(dir: &Dir) {
    let own = format!("{HALF}{}-", std::process::id());
    let pruned = || -> io::Result<()> {
        let (mut found, mut bytes) = (Vec::new(), 0_u64);
        for entry in dir.entries()?.take(CONFLICT_ENTRIES_MAX) {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(HALF) && !name.starts_with(&own) {
                dir.remove_file(&name)?;
            }
            let meta = entry.metadata()?;
            if is_ours(&name) && meta.is_file() {
                bytes = bytes.saturating_add(meta.len());
                found.push((name, meta.len()));
            }
        }
        found.sort_unstable();
        let mut left = found.len();
        for (name, len) in found {
            // The last two belong to the newest conflict, and stay even if they are large.
            if left <= 2 || (left <= CONFLICT_FILES_MAX && bytes <= CONFLICT_BYTES_MAX) {
                break;
            }
            dir.remove_file(&name)?;
            (left, bytes) = (left - 1, bytes - len);
        }
        Ok(())
    };
    if let Err(err) = pruned() {
        tracing::warn!(%err, "old versions in .agent-protocol/conflicts were not removed");
    }
}

/// Restores a version. The present content is kept, and the file never holds half of one content and half of the
/// other.
fn bring_back(
    base: &Base,
    kept: &Versions,
    claim: &Claim,
    content: Content,
    wanted: &KeptVersion,
) -> Result<(), SettleError> {
    let root = base.root().handle();
    let good = |bytes: &Vec<u8>| Digest::of(bytes) == wanted.digest;
    let name = wanted.path.as_str().rsplit('/').next().unwrap_or_default();
    let dir = folder(root)?;
    let copy = file_inside(&dir, name).and_then(bounded).ok().flatten().filter(good);
    let bytes = copy.or_else(|| kept.read(&claim.file, content).map(|it| it.bytes).filter(good));
    let bytes = bytes.ok_or(SettleError::Gone)?;

    let (parent, name) = place(root, &claim.file)?;
    let mode = match file_inside(&parent, name) {
        Err(err) if err.kind() == ErrorKind::NotFound => wanted.mode.or(Some(MODE)),
        Err(err) if is_link(&parent, name) => {
            tracing::debug!(%err, "a link stands where a version was to be brought back");
            return Err(SettleError::InTheWay);
        }
        Err(err) => return Err(err.into()),
        Ok(now) => {
            if !now.metadata()?.is_file() {
                return Err(SettleError::InTheWay);
            }
            let mode = mode_of(&now)?;
            let says = bounded(now)?.ok_or(SettleError::InTheWay)?;
            let digest = Digest::of(&says);
            if digest == wanted.digest {
                return Ok(());
            }
            let known = claim.versions.iter().filter_map(|it| it.kept.as_ref()).any(|it| it.digest == digest);
            // What stands there is in no kept version: it is kept before it is replaced.
            if !known {
                put(root, &claim.file, Content::Sha(first(&digest)), &says)?;
            }
            mode
        }
    };
    let half = half(&dir, &bytes, mode)?;
    dir.rename(&half, &parent, name).inspect_err(|_| drop(dir.remove_file(&half)))?;
    Ok(sync_folder(&parent)?)
}

fn is_link(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok_and(|it| it.is_symlink())
}

/// Opens the folder of a file, creates it if it is missing, and returns it with the file's name.
fn place<'a>(root: &Dir, file: &'a RepoPath) -> io::Result<(Dir, &'a str)> {
    let mut dir = root.try_clone()?;
    let (folders, name) = file.as_str().rsplit_once('/').unwrap_or(("", file.as_str()));
    for folder in folders.split('/').filter(|it| !it.is_empty()) {
        dir = match folder_inside(&dir, folder) {
            Err(err) if err.kind() == ErrorKind::NotFound => {
                dir.create_dir(folder)?;
                folder_inside(&dir, folder)?
            }
            found => found?,
        };
    }
    Ok((dir, name))
}
