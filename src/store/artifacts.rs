//! The changes of runs, kept in files of the state folder: a folder for each task, complete or absent.
//!
//! A folder is made under a temporary name, written, synced to disk and then renamed; a start removes folders that
//! still have a temporary name. The oldest ones are removed when there are too many, or when they are too old.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{SharedArtifacts, StoreError};
use provost_base::limits::{ANSWER_BYTES_MAX, CHANGED_BYTES_MAX, CHANGESETS_KEPT_DAYS, CHANGESETS_KEPT_MAX};
use provost_base::{HostId, TaskId};
use provost_domain::artifact::{place_of, shelf};
use provost_domain::{Artifact, Changeset, StoredChangeset};
use provost_system::{self as system, Ages};

const FOLDER: &str = "artifacts";
const LIST: &str = "kept.json";
/// The ending of the name of the file with the ages of results.
const AGES: &str = "ages";
/// The beginning of the names of unfinished folders.
const UNFINISHED: &str = ".new-";
/// The largest list, in bytes: every byte of its texts may need six.
const LIST_BYTES_MAX: u64 = 6 * (CHANGED_BYTES_MAX + ANSWER_BYTES_MAX as u64) + (4 << 20);

/// The kept results of runs. Cheap to clone. Blocking.
#[derive(Clone, Debug)]
pub struct Artifacts {
    folder: Arc<Path>,
    keeping: Keeping,
    /// The place where runs of other hosts leave their results.
    shared: Option<SharedArtifacts>,
    /// The lock of the reader that brings a result here.
    fetching: Arc<Mutex<()>>,
}

/// The number of results that are kept, and the time for which they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// The number of runs whose results are kept, newest first.
    pub runs: usize,
    /// The number of days for which they are kept.
    pub days: u64,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { runs: CHANGESETS_KEPT_MAX, days: CHANGESETS_KEPT_DAYS }
    }
}

/// The last attempt of a task that ran on another host: the host, and the attempt's number.
pub type RunElsewhere = (HostId, u32);

/// The list of a folder.
#[derive(Serialize, Deserialize)]
struct List {
    task: TaskId,
    /// The number of the task's attempt that has left it; `None` in a list of a release that wrote no number.
    attempt: Option<u32>,
    #[serde(flatten)]
    kept: StoredChangeset,
}

impl Artifacts {
    /// Returns the artifacts of a state folder, which need not exist.
    pub fn at(state: &Path) -> Self {
        Self {
            folder: state.join(FOLDER).into(),
            keeping: Keeping::default(),
            shared: None,
            fetching: Arc::default(),
        }
    }

    /// Returns them with a database in which runs of other hosts leave their results.
    #[must_use]
    pub fn sharing(self, shared: Option<SharedArtifacts>) -> Self {
        Self { shared, ..self }
    }

    /// Leaves the kept results of a task's attempt for the other hosts, with the output of its run.
    ///
    /// # Errors
    /// If it is too much, or the database does not answer.
    pub fn share(&self, (task, attempt): (&TaskId, u32), output: Vec<u8>) -> Result<(), StoreError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let (shelf, mut files) = (shelf(task), Vec::new());
        for path in fs::read_dir(self.folder.join(&shelf)).into_iter().flatten().flatten().map(|it| it.path())
        {
            if let Some(bytes) = read(&path, LIST_BYTES_MAX)? {
                files.push((name_of(&path).into_string(), bytes));
            }
        }
        files.push((OUTPUT.to_owned(), output));
        files.push((ATTEMPT.to_owned(), attempt.to_string().into_bytes()));
        shared.put(task, &shelf, &files).inspect_err(|_| {
            // What an earlier attempt has left would be taken for the result of this one by lists.
            let _left_out = shared.clear(&shelf);
        })
    }

    /// Returns the output of the last attempt of a task, as the other host that ran it has left it; `None` if it is not kept.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn output_of(&self, task: &TaskId, run: RunElsewhere) -> Result<Option<Vec<u8>>, StoreError> {
        self.fetch(task, run)?;
        read(&self.folder.join(shelf(task)).join(OUTPUT), LIST_BYTES_MAX)
    }

    /// Returns the kept result of a task whose last run was on another host, as that host has left it; `None` if it has left none.
    ///
    /// # Errors
    /// If that host has not signed the result, if the database does not answer, or if the result cannot be read.
    pub fn of_elsewhere(
        &self,
        task: &TaskId,
        run: RunElsewhere,
    ) -> Result<Option<StoredChangeset>, StoreError> {
        self.fetch(task, run)?;
        match self.is_of_elsewhere(&shelf(task)) {
            true => self.of(task),
            false => Ok(None),
        }
    }

    /// Checks whether another host has left what is on a shelf. An earlier attempt of the task here has left no output.
    fn is_of_elsewhere(&self, shelf: &str) -> bool {
        self.folder.join(shelf).join(OUTPUT).is_file()
    }

    /// Brings the result that a host has left of an attempt into this folder, if it has left one and it is not here. Of several readers,
    /// one brings it, and the others find it.
    fn fetch(&self, task: &TaskId, (ran_by, attempt): RunElsewhere) -> Result<(), StoreError> {
        let (Some(shared), shelf) = (&self.shared, shelf(task)) else { return Ok(()) };
        let is_here = || self.is_of_elsewhere(&shelf);
        if is_here() {
            return Ok(());
        }
        // The lock guards the folder alone, which is whole at any moment.
        let _alone = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        if is_here() {
            return Ok(());
        }
        let Some(mut files) = shared.get(&shelf, ran_by)? else { return Ok(()) };
        let number = files.iter().position(|(name, _)| name == ATTEMPT).map(|at| files.swap_remove(at).1);
        if files.iter().any(|(name, _)| !is_ours(name)) {
            return Err(StoreError::damaged(
                "a file that another host has left has a name that no file of a run has",
            ));
        }
        // The host had left the result of an earlier attempt, and could not leave that of the last.
        if number.is_none_or(|it| it != attempt.to_string().into_bytes()) {
            return Ok(());
        }
        system::make_private_folders(&self.folder).map_err(StoreError::io(&self.folder))?;
        let half = self.folder.join(format!("{UNFINISHED}{}", uuid::Uuid::new_v4().simple()));
        system::make_private_folders(&half).map_err(StoreError::io(&half))?;
        let written = files.iter().try_for_each(|(name, bytes)| write(&half.join(name), bytes));
        let put = written.and_then(|()| sync(&half)).and_then(|()| self.put_on(&half, &shelf));
        if put.is_err() {
            // The next start tries again.
            let _left = fs::remove_dir_all(&half);
        }
        put
    }

    /// Returns them with limits for the number of runs and for their age.
    #[must_use]
    pub fn keeping(self, keeping: Keeping) -> Self {
        Self { keeping, ..self }
    }

    /// Returns how many runs are kept, and for how long.
    pub fn kept_for(&self) -> Keeping {
        self.keeping
    }

    /// Keeps the changes of a task's attempt, in place of those of an earlier one. When this returns, they are on the disk.
    ///
    /// # Errors
    /// An error of the disk; then none of it is kept.
    pub fn keep(
        &self,
        (task, attempt): (&TaskId, u32),
        harvest: &Changeset,
        answer: &str,
    ) -> Result<(), StoreError> {
        system::make_private_folders(&self.folder).map_err(StoreError::io(&self.folder))?;
        let half = self.folder.join(format!("{UNFINISHED}{}", uuid::Uuid::new_v4().simple()));
        system::make_private_folders(&half).map_err(StoreError::io(&half))?;
        let written =
            self.write(&half, (task, attempt), harvest, answer).and_then(|()| self.put(&half, task));
        if written.is_err() {
            // The next start tries again.
            let _left = fs::remove_dir_all(&half);
        }
        written
    }

    fn write(
        &self,
        half: &Path,
        (task, attempt): (&TaskId, u32),
        harvest: &Changeset,
        answer: &str,
    ) -> Result<(), StoreError> {
        for (number, gathered) in (1..).zip(&harvest.collected) {
            for (content, ending) in [(&gathered.base, BASE), (&gathered.bytes, BYTES)] {
                if let Some(content) = content {
                    write(&half.join(format!("{number}.{ending}")), content)?;
                }
            }
        }
        let kept = StoredChangeset {
            artifacts: harvest.collected.iter().map(|it| it.artifact.clone()).collect(),
            left_out: harvest.left_out.clone(),
            incomplete: harvest.incomplete,
            answer: answer.into(),
        };
        let list = List { task: task.clone(), attempt: Some(attempt), kept };
        write(&half.join(LIST), &serde_json::to_vec(&list).map_err(StoreError::damaged)?)?;
        sync(half)
    }

    fn put(&self, half: &Path, task: &TaskId) -> Result<(), StoreError> {
        self.put_on(half, &shelf(task))
    }

    fn put_on(&self, half: &Path, shelf: &str) -> Result<(), StoreError> {
        let whole = self.folder.join(shelf);
        match fs::remove_dir_all(&whole) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(StoreError::io(&whole)(error)),
            _ => {}
        }
        fs::rename(half, &whole).map_err(StoreError::io(&whole))?;
        sync(&self.folder)
    }

    /// Returns the kept result of a task; `None` if there is none, or none any more.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn of(&self, task: &TaskId) -> Result<Option<StoredChangeset>, StoreError> {
        Ok(self.list(&shelf(task))?.filter(|list| list.task == *task).map(|list| list.kept))
    }

    /// Returns the kept result of an attempt of a task that ran here; `None` if there is none, or none any more.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn of_attempt(&self, task: &TaskId, attempt: u32) -> Result<Option<StoredChangeset>, StoreError> {
        let list = self.list(&shelf(task))?.filter(|it| it.task == *task);
        Ok(list.filter(|it| it.attempt.is_none_or(|left_by| left_by == attempt)).map(|it| it.kept))
    }

    /// Returns those of these tasks whose last attempts have a kept result. The word beside each says whether that attempt ran here.
    pub fn having(&self, tasks: Vec<(TaskId, bool)>) -> BTreeSet<TaskId> {
        // What an earlier attempt here has left has no output.
        let is_here = |(task, ran_here): &(TaskId, bool)| {
            let name = if *ran_here { LIST } else { OUTPUT };
            self.folder.join(shelf(task)).join(name).is_file()
        };
        let (here, elsewhere): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_here);
        let [here, elsewhere]: [BTreeSet<TaskId>; 2] =
            [here, elsewhere].map(|all| all.into_iter().map(|it| it.0).collect());
        let Some(shared) = self.shared.as_ref().filter(|_| !elsewhere.is_empty()) else { return here };
        let shelves = elsewhere.iter().map(shelf).collect();
        let there = shared.has(shelves).unwrap_or_else(|error| {
            tracing::warn!(%error, "what runs of other hosts have left is not known");
            BTreeSet::new()
        });
        here.into_iter().chain(elsewhere.into_iter().filter(|it| there.contains(&shelf(it)))).collect()
    }

    /// Removes the kept result of a task, at once and as a whole, even if the daemon ends in the middle of it.
    ///
    /// # Errors
    /// An error of the disk; then it may still be there.
    pub fn discard(&self, task: &TaskId) -> Result<(), StoreError> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.clear(&shelf(task)))?;
        let whole = self.folder.join(shelf(task));
        let half = self.folder.join(format!("{UNFINISHED}{}", uuid::Uuid::new_v4().simple()));
        match fs::rename(&whole, &half) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(StoreError::io(&whole))?,
        }
        sync(&self.folder)?;
        // The remaining folder has the name of an unfinished one, and is removed at the next start.
        fs::remove_dir_all(&half).map_err(StoreError::io(&half))
    }

    /// Returns the task whose run has left an artifact, by the artifact's id.
    ///
    /// # Errors
    /// As for [`Artifacts::of`].
    pub fn task_of(&self, id: &str) -> Result<Option<TaskId>, StoreError> {
        let Some((shelf, _)) = place_of(id) else { return Ok(None) };
        Ok(self.list(shelf)?.map(|list| list.task))
    }

    /// Returns an artifact by its id.
    ///
    /// # Errors
    /// As for [`Artifacts::of`].
    pub fn get(&self, id: &str) -> Result<Option<Artifact>, StoreError> {
        let Some((shelf, number)) = place_of(id) else { return Ok(None) };
        let list = self.list(shelf)?;
        Ok(list.and_then(|list| list.kept.artifacts.into_iter().nth(number - 1)).filter(|it| *it.id == *id))
    }

    /// Returns everything that is kept together with an artifact, by its id.
    ///
    /// # Errors
    /// As for [`Artifacts::of`].
    pub fn beside_it(&self, id: &str) -> Result<Option<StoredChangeset>, StoreError> {
        let Some((shelf, _)) = place_of(id) else { return Ok(None) };
        Ok(self.list(shelf)?.map(|list| list.kept))
    }

    /// Returns the content of an artifact's file when its run began; `None` for a new file, and if that was not
    /// kept.
    ///
    /// # Errors
    /// As for [`Artifacts::of`].
    pub fn base_of(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.beside(id, BASE)
    }

    /// Returns the bytes of an artifact that is not text.
    ///
    /// # Errors
    /// As for [`Artifacts::of`].
    pub fn bytes_of(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.beside(id, BYTES)
    }

    fn beside(&self, id: &str, ending: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some((shelf, number)) = place_of(id) else { return Ok(None) };
        read(&self.folder.join(shelf).join(format!("{number}.{ending}")), CHANGED_BYTES_MAX)
    }

    fn list(&self, shelf: &str) -> Result<Option<List>, StoreError> {
        let path = self.folder.join(shelf).join(LIST);
        let Some(bytes) = read(&path, LIST_BYTES_MAX)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(StoreError::damaged)
    }

    /// Removes unfinished folders; only before the first run.
    pub fn remove_unfinished(&self) {
        for folder in self.folders().filter(|it| is_unfinished(it)) {
            remove(&folder);
        }
    }

    /// Removes artifacts that are too old, or too many. Their age is the time that the daemon has run meanwhile.
    pub fn remove_old(&self) {
        let most = Duration::from_secs(self.keeping.days * 24 * 60 * 60);
        let written = |folder: PathBuf| {
            let at = fs::metadata(folder.join(LIST)).and_then(|meta| meta.modified());
            (at.unwrap_or(SystemTime::UNIX_EPOCH), folder)
        };
        let mut kept: Vec<_> = self.folders().filter(|it| !is_unfinished(it)).map(written).collect();
        if kept.is_empty() {
            return;
        }
        let names = kept.iter().map(|(_, folder)| name_of(folder));
        let ages = Ages::look(self.folder.with_extension(AGES), names);
        if let Err(error) = ages.keep() {
            // Their recorded age then stays the same, and they are kept for longer.
            tracing::warn!(%error, "how old what runs have left is cannot be written down");
        }
        kept.sort_by(|(at, a), (other, b)| {
            (ages.of(&name_of(a)), other, b).cmp(&(ages.of(&name_of(b)), at, a))
        });
        for (number, (_, folder)) in kept.iter().enumerate() {
            if number >= self.keeping.runs || ages.of(&name_of(folder)) >= most {
                remove(folder);
            }
        }
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> + use<> {
        fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path())
    }
}

const BASE: &str = "base";
const BYTES: &str = "bytes";
/// The name, in the database alone, of the file with the number of the attempt.
const ATTEMPT: &str = "attempt";
/// The name of the file with the output of another host's run.
const OUTPUT: &str = "output";

/// Checks whether a file of a run can have this name.
fn is_ours(name: &str) -> bool {
    let is_content = |(number, ending): (&str, &str)| {
        !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) && [BASE, BYTES].contains(&ending)
    };
    [LIST, OUTPUT].contains(&name) || name.split_once('.').is_some_and(is_content)
}

fn name_of(folder: &Path) -> Box<str> {
    folder.file_name().unwrap_or_default().to_string_lossy().into()
}

fn is_unfinished(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()))
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::warn!(%error, path = %folder.display(), "what a run has left was not removed");
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    let file = system::private_file(options.write(true).create_new(true)).open(path);
    let written = file.and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()));
    written.map_err(StoreError::io(path))
}

fn sync(folder: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::io(folder))?;
    }
    Ok(())
}

fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Ok(_) if bytes.len() as u64 > most => {
            Err(StoreError::io(path)(io::Error::other(format!("has more than {most} bytes"))))
        }
        read => read.map(|_| Some(bytes)).map_err(StoreError::io(path)),
    }
}
