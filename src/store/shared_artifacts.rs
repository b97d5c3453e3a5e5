//! Results of runs for other hosts than the one that ran them: the files of its folder, packed and signed, in the database that the hosts
//! share.
//!
//! The host that ran the task signs the whole ([`HostSeals`]). A host takes a result only with the signature of the very host that its own record
//! of the task names, so no other host, and no login to the database, leaves a result in that one's place.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::StoreError;
use super::database::{Database, in_database};
use super::host_seals::HostSeals;
use provost_base::limits::{CHANGED_FILES_MAX, SHARED_ARTIFACT_BYTES_MAX};
use provost_base::{HostId, TaskId};

/// The first bytes of a pack.
const MAGIC: &[u8] = b"provost-artifacts-1\n";
/// The label under which a result is signed: the shelf and the whole.
const RESULT: &[u8] = b"provost-artifacts-v1";

/// The database in which runs leave their results for other hosts. Cheap to clone. Blocking.
#[derive(Clone)]
pub struct SharedArtifacts {
    state: PathBuf,
    database: Arc<Database>,
    seals: Arc<HostSeals>,
    link: Arc<Mutex<Link>>,
}

/// The connection, and when the last one failed: a reader does not wait for a database that is away.
#[derive(Default)]
struct Link {
    open: Option<in_database::SharedArtifactStore>,
    failed: Option<Instant>,
}

/// The most files of one result: the list, the output, the number of the attempt, and two for each changed file.
const FILES_MAX: usize = 3 + 2 * CHANGED_FILES_MAX;

/// The time after a failure in which no connection is tried.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

impl fmt::Debug for SharedArtifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedArtifacts").field("name", &self.database.name).finish_non_exhaustive()
    }
}

/// Files of a folder: their names and contents.
pub(super) type Packed = Vec<(String, Vec<u8>)>;

impl SharedArtifacts {
    /// Returns the shelves in this database, for the state folder of one of its hosts. It connects at its first use.
    pub fn of(state: &Path, database: Database) -> Self {
        let (database, seals) = (Arc::new(database), Arc::new(HostSeals::of(state)));
        Self { state: state.to_owned(), database, seals, link: Arc::default() }
    }

    /// Leaves files of a task's run for the other hosts, and replaces earlier ones.
    ///
    /// # Errors
    /// [`StoreError::Database`] if they are too large for the database, or if it does not answer.
    pub(super) fn put(&self, task: &TaskId, shelf: &str, files: &Packed) -> Result<(), StoreError> {
        let bytes = pack(files);
        if bytes.len() > SHARED_ARTIFACT_BYTES_MAX {
            let (bytes, most) = (bytes.len(), SHARED_ARTIFACT_BYTES_MAX);
            return Err(StoreError::Database(
                format!("what the run has left has {bytes} bytes, and {most} at the most go to other hosts")
                    .into(),
            ));
        }
        let (_, signature) = self.seals.sign(RESULT, &[shelf.as_bytes(), &bytes])?;
        self.with(|link| link.put(task, shelf, &signature, &bytes))
    }

    /// Returns the files on a shelf that the host which ran the task has left; `None` if there are none.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if that host has not signed them, or an error if the database does not answer.
    pub(super) fn get(&self, shelf: &str, ran_by: HostId) -> Result<Option<Packed>, StoreError> {
        let Some((signature, bytes)) = self.with(|link| link.get(shelf, ran_by))? else { return Ok(None) };
        // A host that has left since had run the task all the same.
        if !self.seals.has_signed(ran_by, true, (RESULT, &[shelf.as_bytes(), &bytes]), &signature)? {
            return Err(StoreError::damaged(
                "the result in the database is not signed by the host that ran the task",
            ));
        }
        unpack(&bytes).map(Some)
    }

    /// Returns those of these shelves that have content.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn has(&self, shelves: Vec<String>) -> Result<BTreeSet<String>, StoreError> {
        self.with(|link| link.has(&shelves))
    }

    /// Removes the content of a shelf.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn clear(&self, shelf: &str) -> Result<(), StoreError> {
        self.with(|link| link.clear(shelf))
    }

    /// Does the work over the existing connection, or over a new one. A lost connection is made again once: each of
    /// these actions can be done twice.
    fn with<T>(
        &self,
        work: impl Fn(&mut in_database::SharedArtifactStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = link.open.as_mut() {
            match work(open) {
                Err(StoreError::Away(_)) => link.open = None,
                done => return done,
            }
        }
        if link.failed.is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
            return Err(StoreError::Away("it has not answered a moment ago".into()));
        }
        let opened = in_database::SharedArtifactStore::open(&self.state, &self.database);
        let mut open = opened.inspect_err(|_| link.failed = Some(Instant::now()))?;
        let done = work(&mut open)?;
        *link = Link { open: Some(open), failed: None };
        Ok(done)
    }
}

fn pack(files: &Packed) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (name, content) in files {
        bytes.extend((name.len() as u64).to_be_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend((content.len() as u64).to_be_bytes());
        bytes.extend(content);
    }
    bytes
}

fn unpack(bytes: &[u8]) -> Result<Packed, StoreError> {
    let broken = || StoreError::damaged("what a run has left in the database cannot be unpacked");
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(broken)?;
    let take = |rest: &mut &[u8]| -> Result<Vec<u8>, StoreError> {
        let (length, after) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
        let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| broken())?;
        let (content, after) = after.split_at_checked(length).ok_or_else(broken)?;
        *rest = after;
        Ok(content.to_vec())
    };
    let mut files = Vec::new();
    while !rest.is_empty() {
        let name = String::from_utf8(take(&mut rest)?).map_err(|_| broken())?;
        files.push((name, take(&mut rest)?));
        if files.len() > FILES_MAX {
            return Err(broken());
        }
    }
    Ok(files)
}
