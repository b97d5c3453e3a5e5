//! The ports of a daemon, recorded in its runtime folder: for `provost env`, for the next start, and for the daemons
//! of other repositories, which name the owner of a taken port.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Places;
use provost_base::Door;
use provost_system as system;

/// The file in the runtime folder.
const FILE: &str = "ports.json";

/// The size of the largest such file that is read, in bytes.
const FILE_LEN_MAX: u64 = 4 << 10;

/// Most repositories that are searched for the owner of a port.
const REPOSITORIES_MAX: usize = 1_000;

/// The ports of a repository's daemon while it runs, or of its last run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ports {
    /// The daemon's process.
    pub pid: u32,
    /// The moment at which that process began, so that the id means this process and no later one.
    pub began: u64,
    /// The root of the daemon's repository.
    pub root: String,
    /// The ports of the doors over loopback, by the doors' names.
    #[serde(flatten)]
    doors: BTreeMap<String, Option<u16>>,
}

impl Ports {
    /// Makes a record without ports for the daemon of this process.
    pub fn ours(places: &Places) -> Self {
        let pid = std::process::id();
        let began = system::process_began(pid).ok().flatten().unwrap_or_default();
        Self { pid, began, root: places.root.display().to_string(), ..Self::default() }
    }

    /// Returns the port of a door, if it has one.
    pub fn of_door(&self, door: Door) -> Option<u16> {
        self.doors.get(door.name()).copied().flatten()
    }

    /// Sets the port of a door.
    pub fn put(&mut self, door: Door, port: Option<u16>) {
        self.doors.insert(door.name().into(), port);
    }

    /// Reads the record of a repository's daemon; an empty one where none can be read.
    pub fn of(places: &Places) -> Self {
        Self::in_folder(&places.runtime).unwrap_or_default()
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let path = folder.join(FILE);
        let meta = fs::symlink_metadata(&path).ok()?;
        let text = (meta.is_file() && meta.len() <= FILE_LEN_MAX).then(|| fs::read(&path).ok())??;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the record to the runtime folder.
    ///
    /// # Errors
    /// The system's error.
    pub fn write(&self, places: &Places) -> std::io::Result<()> {
        let new = places.runtime.join(format!("{FILE}.{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let text = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        let written = system::private_file(&mut options).open(&new).and_then(|mut it| it.write_all(&text));
        let placed = written.and_then(|()| fs::rename(&new, places.runtime.join(FILE)));
        if placed.is_err() {
            let _removed = fs::remove_file(&new);
        }
        placed
    }

    /// Returns the record of another repository whose running daemon has this port.
    pub fn held_elsewhere(places: &Places, port: u16) -> Option<Self> {
        let above = places.runtime.parent()?;
        let others = fs::read_dir(above).ok()?.flatten().take(REPOSITORIES_MAX).map(|it| it.path());
        let mut others = others.filter(|it| *it != places.runtime).filter_map(|it| Self::in_folder(&it));
        let has = |it: &Self| it.doors.values().any(|its| *its == Some(port));
        let runs = |it: &Self| system::process_began(it.pid).is_ok_and(|began| began == Some(it.began));
        others.find(|it| has(it) && runs(it))
    }
}
