//! The files beside the work trees that name their owners: one record for each, and a note while a work tree is being made.
//!
//! Each is written beside its place, to the disk, and moved there, so that a killed daemon leaves the old or the new one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use provost_base::limits::TREE_RECORD_BYTES_MAX;
use provost_system as system;

/// The extension of a record.
const RECORD: &str = "json";
/// The extension of the note about a work tree that is being made.
const MAKING: &str = "making";
/// The extension of a folder that is being removed.
pub(super) const GONE: &str = "gone";

/// The record of a work tree that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) branch: String,
    /// Git's folder for the work tree, in the repository.
    pub(super) entry: PathBuf,
    /// The agent of the last run in the work tree, and that run's task.
    pub(super) agent: String,
    pub(super) task: String,
    /// The commit at which that run began. It stays after the run: a daemon can be killed before the end is on record,
    /// and the next start then finds the run's commit by it.
    pub(super) began: Option<String>,
    /// Files that earlier runs have left uncommitted, from the top of the work tree.
    pub(super) left: Vec<String>,
    /// The origin of the branch; `None` for a branch that existed before.
    #[serde(default)]
    pub(super) made: Option<Made>,
}

/// The origin of a branch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Made {
    /// The task for whose run the branch was made.
    pub(super) task: String,
    /// The commit at which the branch was made.
    pub(super) at: String,
}

/// The note about a work tree that is being made. Its files do not count yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Making {
    pub(super) branch: String,
    /// The commit at which the branch was made for it; `None` for a branch that existed before.
    pub(super) made_at: Option<String>,
}

/// The paths of one work tree.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    /// The folder of all work trees.
    pub(super) folder: PathBuf,
    /// The name of this work tree's folder, and of the files beside it.
    pub(super) name: String,
}

impl Shelf {
    /// Returns the folder of the work tree.
    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    pub(super) fn beside(&self, end: &str) -> PathBuf {
        self.folder.join(format!("{}.{end}", self.name))
    }

    /// Takes the lock that a process holds while it changes this work tree with git, and hands to the git commands that it starts.
    pub(super) fn lock(&self) -> io::Result<File> {
        system::make_private_folders(&self.folder)?;
        let file = File::options().create(true).truncate(false).write(true).open(self.beside("lock"))?;
        file.lock()?;
        Ok(file)
    }

    pub(super) fn record(&self) -> io::Result<Option<Record>> {
        read(&self.beside(RECORD))
    }

    pub(super) fn put_record(&self, record: &Record) -> io::Result<()> {
        write(&self.beside(RECORD), record)
    }

    pub(super) fn making(&self) -> io::Result<Option<Making>> {
        read(&self.beside(MAKING))
    }

    pub(super) fn put_making(&self, making: &Making) -> io::Result<()> {
        write(&self.beside(MAKING), making)
    }

    pub(super) fn drop_making(&self) -> io::Result<()> {
        removed(&self.beside(MAKING))
    }

    pub(super) fn drop_record(&self) -> io::Result<()> {
        removed(&self.beside(RECORD))
    }
}

/// Returns all work trees that have a file beside them.
pub(super) fn shelves(folder: &Path) -> Vec<Shelf> {
    let names = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok());
    let of = |name: String| {
        let (name, end) = name.rsplit_once('.')?;
        [RECORD, MAKING].contains(&end).then(|| name.to_owned())
    };
    let mut names: Vec<String> = names.filter_map(of).collect();
    names.sort();
    names.dedup();
    names.into_iter().map(|name| Shelf { folder: folder.to_path_buf(), name }).collect()
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match system::short_text(path, TREE_RECORD_BYTES_MAX) {
        Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(err),
    }
}

fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        system::make_private_folders(folder)?;
    }
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
        _ => Ok(()),
    }
}
