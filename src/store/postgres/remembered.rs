//! The state folder's memory of the database: the id of this host, and the newest timeline that was seen.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::session::Place;
use crate::database::IN_DATABASE_LEN_MAX;
use crate::{StoreError, codec, files};
use provost_base::HostId;

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Noted {
    /// The repository's name in the database.
    name: String,
    host: HostId,
    system: String,
    timeline: u64,
    /// The name of the file that had the state before it was moved into the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    here_until: Option<String>,
    /// Whether a move of the state back into the folder has begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    goes_here: bool,
}

/// The newest history of the database that a state folder remembers, as it is when it is asked for: a daemon that runs may have seen a failover
/// since.
pub(super) struct Newest {
    path: PathBuf,
    last: Mutex<Place>,
}

impl Newest {
    /// Of a state folder.
    pub(super) fn of(dir: &Path) -> Self {
        Self { path: dir.join(crate::IN_DATABASE), last: Mutex::default() }
    }

    /// Returns it; while the file cannot be read, as in the moment in which it is written, what it said last. A folder that has never remembered
    /// any excludes no server.
    pub(super) fn place(&self) -> Place {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Some(noted)) = noted(&self.path) {
            *last = Place { system: noted.system, timeline: noted.timeline };
        }
        last.clone()
    }
}

/// The remembered facts, and their file.
#[derive(Clone)]
pub(super) struct Remembered {
    path: PathBuf,
    name: String,
    pub(super) host: HostId,
    pub(super) place: Place,
    pub(super) here_until: Option<String>,
    pub(super) goes_here: bool,
}

impl Remembered {
    /// Returns the facts that the folder remembers, or a new host's id, which it does not remember yet.
    ///
    /// # Errors
    /// If the file cannot be read, or has another repository's name.
    pub(super) fn of(dir: &Path, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(crate::IN_DATABASE);
        if let Some(noted) = noted(&path)? {
            let unsafe_name = || {
                StoreError::Setting(
                format!(
                    "`name` is {name:?}, and this state folder belongs to the repository {:?} in the database: write \
                        that name ({} says so)",
                    noted.name,
                    path.display()
                )
                .into(),
            )
            };
            if noted.name != name {
                return Err(unsafe_name());
            }
            let place = Place { system: noted.system, timeline: noted.timeline };
            let Noted { name, host, here_until, goes_here, .. } = noted;
            return Ok(Self { path, name, host, place, here_until, goes_here });
        }
        let mut bits = [0; 16];
        getrandom::fill(&mut bits)
            .map_err(|err| StoreError::Key(format!("no random numbers: {err}").into()))?;
        Ok(Self {
            path,
            name: name.to_owned(),
            host: HostId::of(u128::from_le_bytes(bits)),
            place: Place::default(),
            here_until: None,
            goes_here: false,
        })
    }

    /// Has the folder remember the facts from now on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&self) -> Result<(), StoreError> {
        if self.path.symlink_metadata().is_ok() { Ok(()) } else { self.write() }
    }

    /// Remembers the place that issues numbers now; returns whether it is another one than before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn see(&mut self, place: Place) -> Result<bool, StoreError> {
        let is_new = self.place != place;
        if is_new {
            let was = std::mem::replace(&mut self.place, place);
            // The sessions beside this one go by the file, so a note that failed is written again.
            self.write().inspect_err(|_| self.place = was)?;
        }
        Ok(is_new)
    }

    /// Returns the first characters of the host's id, as the server's administrator sees them.
    pub(super) fn short(&self) -> String {
        self.host.to_string().chars().take(8).collect()
    }

    /// Returns the repository's name in the database.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Writes all facts, as they are now.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        let noted = Noted {
            name: self.name.clone(),
            host: self.host,
            system: self.place.system.clone(),
            timeline: self.place.timeline,
            here_until: self.here_until.clone(),
            goes_here: self.goes_here,
        };
        let text = codec::text(&noted)?;
        let mut file = files::open_mark(&self.path, true)?;
        let done = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_all());
        done.map_err(StoreError::io(&self.path))
    }
}

fn noted(path: &Path) -> Result<Option<Noted>, StoreError> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let mut text = String::new();
    let file = files::open_mark(path, false)?;
    file.take(IN_DATABASE_LEN_MAX).read_to_string(&mut text).map_err(StoreError::io(path))?;
    let unfit = |err| StoreError::Unsafe {
        path: path.display().to_string().into(),
        why: format!(
            "cannot be read ({err}); it says which host this is: bring it back from a backup of the state \
            folder"
        )
        .into(),
    };
    serde_json::from_str(&text).map(Some).map_err(unfit)
}
