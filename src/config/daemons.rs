//! The daemons of one user: each has an entry in a folder of the state directory while it runs.
//!
//! An entry names a repository and a process, and a reader believes no more of it: the address of the daemon comes
//! from that repository's state folder, and the entry's own name must be that folder's. So an entry leads to no other
//! socket than a command in the repository itself would use. A daemon that ends removes its entry; the entry of a
//! killed daemon is removed by a reader, once the process is proved to have ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::env::Environment;
use super::places::{Places, PlacesError, make_private, states};
use provost_base::limits::DAEMON_ENTRY_BYTES_MAX;
use provost_system as system;

/// The folder's name in the state directory.
const FOLDER: &str = "daemons";

/// The suffix of an entry's name; the stem is the name of the state folder.
const SUFFIX: &str = "json";

/// The content of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The main working copy of the repository.
    pub root: PathBuf,
    /// The name of the repository for people: its folder's name.
    pub name: String,
    /// The socket or pipe of the daemon's own API.
    pub own: PathBuf,
    /// The daemon's process.
    pub pid: u32,
    /// The moment at which that process began, in the system's own count; absent where the system does not tell.
    pub began: Option<u64>,
}

/// A daemon's entry; it is removed when this is dropped.
#[derive(Debug)]
pub struct Announced {
    path: PathBuf,
    text: Vec<u8>,
}

impl Announced {
    /// Writes the entry. Only the daemon that has the state folder's lease may call it.
    ///
    /// # Errors
    /// The system's error, or the reason why the folder is not this user's alone.
    pub fn keep(places: &Places) -> io::Result<Self> {
        let folder = places.state.parent().unwrap_or(&places.state).join(FOLDER);
        make_private(&folder).map_err(io::Error::other)?;
        let pid = std::process::id();
        let name = places.root.file_name().unwrap_or(places.root.as_os_str()).to_string_lossy().into_owned();
        // Without a start time, the entry of a killed process stays, and no daemon answers at it.
        let began = system::process_began(pid).ok().flatten();
        let entry = Entry { root: places.root.clone(), name, own: places.own_socket(), pid, began };
        let text = serde_json::to_vec(&entry)?;
        let path = folder.join(format!("{}.{SUFFIX}", places.hash));
        let new = folder.join(format!(".{}.{pid}", places.hash));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        system::private_file(&mut options).open(&new)?.write_all(&text)?;
        fs::rename(&new, &path)?;
        Ok(Self { path, text })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        take_away(&self.path, &self.text);
    }
}

/// Removes an entry if it has this content: another daemon may have written its own in the meantime.
fn take_away(path: &Path, text: &[u8]) {
    let aside = path.with_extension(format!("ended-{}", std::process::id()));
    if fs::rename(path, &aside).is_err() {
        return;
    }
    if fs::read(&aside).is_ok_and(|it| it != text) {
        // This fails where a still newer entry has taken the place.
        let _newer = fs::hard_link(&aside, path);
    }
    let _gone = fs::remove_file(&aside);
}

/// The result of reading an entry.
#[derive(Debug)]
pub enum Listed {
    /// A daemon that runs, as far as the entry tells.
    Runs {
        /// Its entry.
        entry: Entry,
        /// The places of its repository.
        places: Box<Places>,
    },
    /// A daemon that was killed; reading has removed its entry.
    Ended {
        /// Its entry.
        entry: Entry,
        /// The places of its repository, if the repository still exists.
        places: Option<Box<Places>>,
    },
    /// A file in the folder that no daemon of this user has written, or that does not fit its repository.
    Unfit {
        /// The file.
        path: PathBuf,
        /// The reason why it is not believed.
        why: String,
    },
}

/// Returns the folder of the entries, for callers that watch it.
///
/// # Errors
/// [`PlacesError`] if no state directory can be found.
pub fn folder(environment: &Environment) -> Result<PathBuf, PlacesError> {
    Ok(states(environment)?.join(FOLDER))
}

/// Returns the files of the folder, the newest first, at most `most`, and the number of files beyond that.
///
/// # Errors
/// [`PlacesError`] if the folder is not this user's alone. A missing folder is empty.
pub fn files(environment: &Environment, most: usize) -> Result<(Vec<PathBuf>, usize), PlacesError> {
    let folder = folder(environment)?;
    let unusable = |why: String| PlacesError::Unusable { path: folder.display().to_string(), why };
    match fs::symlink_metadata(&folder) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(err) => return Err(unusable(err.to_string())),
        Ok(meta) if !meta.is_dir() => {
            return Err(unusable("is no folder; remove it, and start the daemons again".into()));
        }
        Ok(_) => {}
    }
    let close = system::CLOSE;
    let fix = |why| format!("{why}; look at what is in it, then run {close}");
    system::private(&folder).map_err(|why| unusable(fix(why)))?;
    let entries = fs::read_dir(&folder).map_err(|err| unusable(err.to_string()))?;
    let is_entry = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
        !is_hidden && path.extension().is_some_and(|it| it == SUFFIX)
    };
    let written = |path: &PathBuf| {
        path.symlink_metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<(SystemTime, PathBuf)> =
        entries.flatten().map(|it| it.path()).filter(is_entry).map(|it| (written(&it), it)).collect();
    files.sort_by(|a, b| b.cmp(a));
    let more = files.len().saturating_sub(most);
    Ok((files.into_iter().take(most).map(|it| it.1).collect(), more))
}

/// Reads an entry, and removes it if its daemon has ended. It also reads the repository, so it may block as long as a
/// disk does. `None` if the entry has gone in the meantime.
pub fn look(path: &Path, environment: &Environment) -> Option<Listed> {
    let unfit = |why: String| Some(Listed::Unfit { path: path.to_owned(), why });
    let text = match read(path) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return None,
        Err(err) => return unfit(err.to_string()),
    };
    let entry: Entry = match serde_json::from_slice(&text) {
        Ok(entry) => entry,
        Err(err) => return unfit(format!("is no entry: {err}")),
    };
    if !entry.root.is_absolute() {
        return unfit("names no absolute path".into());
    }
    let mut anywhere = environment.clone();
    anywhere.root = None;
    let places = Places::find(&entry.root, &anywhere).ok();
    let places =
        places.filter(|it| path.file_stem().is_some_and(|stem| stem == it.hash.as_str())).map(Box::new);
    let has_ended = match system::process_began(entry.pid) {
        Ok(None) => true,
        Ok(began) => entry.began.is_some() && began != entry.began,
        // This proves nothing.
        Err(_) => false,
    };
    if has_ended {
        take_away(path, &text);
        return Some(Listed::Ended { entry, places });
    }
    match places {
        None => unfit(format!("does not fit the repository that it names, {}", entry.root.display())),
        Some(places) if places.own_socket() != entry.own => {
            unfit(format!("names another address than the state folder of {}", entry.root.display()))
        }
        Some(places) => Some(Listed::Runs { entry, places }),
    }
}

/// Reads the content of an entry: a file of this user, and no link.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("is no file"));
    }
    if meta.len() > DAEMON_ENTRY_BYTES_MAX {
        return Err(io::Error::other("is larger than an entry"));
    }
    system::owned(path).map_err(io::Error::other)?;
    let mut text = Vec::new();
    File::open(path)?.take(DAEMON_ENTRY_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}
