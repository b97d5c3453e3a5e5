//! Configuration files of a repository count only after a person has allowed exactly their content.
//!
//! Otherwise anyone who can push to the repository, and any worker that can write in it, could configure the daemon.
//! The pins are SHA-256 digests in the state folder, which no jail can reach.

use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use provost_base::Digest;
use provost_base::limits::WORKFLOW_FILES_MAX;
use provost_system as system;

/// Provost's file in a repository.
pub const PROVOST: &str = ".provost/provost.toml";
/// DevIt's file in a repository.
pub const DEVIT: &str = "devit.core.toml";
/// git-paw's file in a repository.
pub const GIT_PAW: &str = ".git-paw/config.toml";
/// The files that the daemon looks for: Provost's, DevIt's, the broker's and Agent Protocol's.
pub const FILES: [&str; 4] = [PROVOST, DEVIT, GIT_PAW, ".agent-protocol/config.json"];

/// The folder of a repository's own workflows; every `.toml` file in it needs a person's permission, too.
pub const WORKFLOWS: &str = ".provost/workflows";

/// The size of the largest file that can be allowed, in bytes: a person has to read it.
pub const FILE_LEN_MAX: u64 = 256 << 10;

/// Name of the list of pins in the state folder.
const PINS: &str = "allowed.toml";

/// A file of the repository in its present state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepoFile {
    /// Its path from the root, one of [`FILES`] or of the files of workflows.
    pub path: String,
    /// The digest of the content that was read.
    pub digest: Digest,
    /// Whether this content may be used.
    pub status: Status,
    /// The content; empty when missing or unreadable.
    pub text: String,
}

/// Whether a file's content may be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// No content of this file was ever allowed.
    New,
    /// Other content was allowed.
    Changed,
    /// Exactly this content was allowed.
    Allowed,
    /// Content was allowed once, and the file is gone.
    Missing,
    /// The file exists but cannot be used, for this reason.
    Unreadable(String),
}

/// The error of a list of pins or a file that cannot be used. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Nothing is allowed while the list is in doubt.
    #[error("{0}; no file of the repository is used until that is corrected")]
    List(String),
    /// Only the known files can be allowed.
    #[error("{0} is not one of the files that a repository may bring: {list}", list = known())]
    NotOurs(String),
    /// The file has gone, or is no plain text file within bounds.
    #[error("{0} cannot be allowed: {1}")]
    Unusable(String, String),
    /// The file was replaced between reading and allowing.
    #[error("{0} has changed since it was shown; look at it again")]
    ChangedSinceShown(String),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    #[serde(default)]
    file: Vec<Pin>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    path: String,
    sha256: Digest,
}

/// Returns the files of settings that a repository may bring, for people.
pub fn known() -> String {
    format!("{}, {WORKFLOWS}/*.toml", FILES.join(", "))
}

/// Checks whether a path is that of a file with workflows.
pub fn is_workflow_file(path: &str) -> bool {
    let name = path.strip_prefix(WORKFLOWS).and_then(|rest| rest.strip_prefix('/'));
    name.is_some_and(is_workflow_name)
}

/// Checks the name of a file in a folder of workflows: it must be plain, so that it reads the same wherever it is shown.
pub fn is_workflow_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    let stem = name.strip_suffix(".toml").unwrap_or_default();
    !stem.is_empty() && stem.len() <= 64 && stem.bytes().all(plain)
}

/// Returns the files of workflows that exist, by name, up to the bound; the code that opens one handles links.
fn workflow_files(root: &Path) -> Vec<String> {
    let dir = cap_std::fs::Dir::open_ambient_dir(root, cap_std::ambient_authority());
    let Ok(entries) = dir.and_then(|dir| dir.read_dir(WORKFLOWS)) else { return Vec::new() };
    let names = entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| is_workflow_name(name)).collect();
    names.sort();
    names.truncate(WORKFLOW_FILES_MAX);
    names.iter().map(|name| format!("{WORKFLOWS}/{name}")).collect()
}

/// Returns every known file that exists or was allowed, in the order of [`FILES`], and then the files of workflows.
///
/// # Errors
/// [`PinError::List`] when the list of pins is damaged or others could have written it.
pub fn pending(root: &Path, state: &Path) -> Result<Vec<RepoFile>, PinError> {
    let pins = read_pins(state)?;
    let look = |path: &str| {
        let pinned = pins.file.iter().find(|pin| pin.path == path).map(|pin| pin.sha256);
        let found = |status, digest, text| Some(RepoFile { path: path.into(), digest, status, text });
        match read(root, path) {
            Ok(None) => pinned.and_then(|digest| found(Status::Missing, digest, String::new())),
            Err(why) => found(Status::Unreadable(why), Digest::default(), String::new()),
            Ok(Some(text)) => {
                let digest = Digest::of(text.as_bytes());
                let status = match pinned {
                    None => Status::New,
                    Some(pinned) if pinned == digest => Status::Allowed,
                    Some(_) => Status::Changed,
                };
                found(status, digest, text)
            }
        }
    };
    let gone = pins.file.iter().map(|pin| pin.path.clone()).filter(|path| is_workflow_file(path));
    let mut workflows: Vec<String> = workflow_files(root).into_iter().chain(gone).collect();
    workflows.sort();
    workflows.dedup();
    let settings = FILES.into_iter().filter_map(look);
    Ok(settings.chain(workflows.iter().filter_map(|path| look(path))).collect())
}

/// Pins the content that was shown, whose digest the caller passes on, and returns the file as allowed.
///
/// # Errors
/// [`PinError`]; nothing is pinned then. [`PinError::ChangedSinceShown`] when the file is no longer what the
/// person saw.
pub fn allow(root: &Path, state: &Path, path: &str, shown: Digest) -> Result<RepoFile, PinError> {
    if !FILES.contains(&path) && !is_workflow_file(path) {
        return Err(PinError::NotOurs(path.into()));
    }
    let text = read(root, path).and_then(|text| text.ok_or_else(|| "it is not there".into()));
    let text = text.map_err(|why| PinError::Unusable(path.into(), why))?;
    if Digest::of(text.as_bytes()) != shown {
        return Err(PinError::ChangedSinceShown(path.into()));
    }
    let mut pins = read_pins(state)?;
    pins.file.retain(|pin| pin.path != path);
    pins.file.push(Pin { path: path.into(), sha256: shown });
    write_pins(state, &pins)?;
    Ok(RepoFile { path: path.into(), digest: shown, status: Status::Allowed, text })
}

/// Forgets that a file was allowed; `false` when it was not.
///
/// # Errors
/// [`PinError::List`] as for [`pending`].
pub fn forget(state: &Path, path: &str) -> Result<bool, PinError> {
    let mut pins = read_pins(state)?;
    let before = pins.file.len();
    pins.file.retain(|pin| pin.path != path);
    let forgotten = pins.file.len() < before;
    if forgotten {
        write_pins(state, &pins)?;
    }
    Ok(forgotten)
}

/// Reads a file below the root, and never a file outside that a symbolic link leads to.
fn read(root: &Path, path: &str) -> Result<Option<String>, String> {
    let absent = |e: &std::io::Error| {
        matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
    };
    let said = |e: std::io::Error| format!("it cannot be read: {e}");
    let dir = cap_std::fs::Dir::open_ambient_dir(root, cap_std::ambient_authority()).map_err(said)?;
    let mut options = cap_std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        // Without this flag, opening a FIFO would wait for its writer.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = match dir.open_with(path, &options) {
        Err(e) if absent(&e) => return Ok(None),
        opened => opened.map_err(said)?,
    };
    if !file.metadata().map_err(said)?.is_file() {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > FILE_LEN_MAX {
        return Err(format!("it is larger than {} KiB", FILE_LEN_MAX >> 10));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".into())
}

fn read_pins(state: &Path) -> Result<Pins, PinError> {
    let path = state.join(PINS);
    let shown = path.display();
    let wrong = |why: String| PinError::List(format!("{shown} {why}"));
    let meta = match std::fs::symlink_metadata(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Pins::default()),
        found => found.map_err(|e| wrong(format!("cannot be read: {e}")))?,
    };
    if !meta.is_file() {
        return Err(wrong("is not a file; remove it and run `provost config allow` again".into()));
    }
    system::private(&path)
        .map_err(|why| wrong(format!("{why}; remove it and run `provost config allow` again")))?;
    let text = std::fs::read_to_string(&path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    let damaged = |e: toml::de::Error| {
        wrong(format!("is damaged ({}); remove it and run `provost config allow` again", e.message()))
    };
    toml::from_str(&text).map_err(damaged)
}

/// Replaces the list in one step, so that a crash leaves the old one or the new one.
fn write_pins(state: &Path, pins: &Pins) -> Result<(), PinError> {
    let path = state.join(PINS);
    let wrong = |why: String| PinError::List(format!("{} cannot be written: {why}", path.display()));
    let text = toml::to_string(pins).map_err(|e| wrong(e.to_string()))?;
    let fresh = state.join(format!("{PINS}.{}", std::process::id()));
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = system::private_file(&mut options).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &path)
    };
    // The file may be left over from a crashed process with the same process id.
    let _ = std::fs::remove_file(&fresh);
    write().map_err(|e| wrong(e.to_string()))
}
