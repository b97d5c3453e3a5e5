//! The output of jobs' workers, in files of the state folder: one for each job, as text for people.
//!
//! It is bounded for each job and in total. A file that a crash left incomplete has the output until then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::StoreError;
use provost_base::JobId;
use provost_base::limits::{JOB_LOG_BYTES_MAX, JOB_LOGS_BYTES_MAX, JOBS_KEPT_MAX, JOBS_LIVE_MAX};
use provost_system as system;

const FOLDER: &str = "jobs";
const ENDING: &str = "log";

/// The logs of jobs. Cheap to clone. Blocking.
#[derive(Clone, Debug)]
pub struct JobLogs(Arc<Path>);

/// A part of a log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogPart {
    /// The text of this part; it begins and ends between characters.
    pub text: String,
    /// The number of bytes before it.
    pub from: u64,
    /// The byte after it, at which the next part begins.
    pub next: u64,
}

impl JobLogs {
    /// Returns the logs of a state folder, which need not exist.
    pub fn at(state: &Path) -> Self {
        Self(state.join(FOLDER).into())
    }

    /// Adds to a job's log, as long as there is room in it.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn append(&self, job: &JobId, text: &str) -> Result<(), StoreError> {
        let path = self.path(job)?;
        system::make_private_folders(&self.0).map_err(StoreError::io(&self.0))?;
        let mut options = OpenOptions::new();
        let file = system::private_file(options.append(true).create(true)).open(&path);
        let written = file.and_then(|mut file| {
            let room = JOB_LOG_BYTES_MAX.saturating_sub(file.metadata()?.len());
            if room == 0 {
                return Ok(());
            }
            let end = text.floor_char_boundary(usize::try_from(room).unwrap_or(usize::MAX).min(text.len()));
            file.write_all(&text.as_bytes()[..end])?;
            if end < text.len() {
                file.write_all(FULL.as_bytes())?;
            }
            Ok(())
        });
        written.map_err(StoreError::io(&path))
    }

    /// Returns the end of a job's log, at most `most` bytes; an empty part if there is none.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn tail(&self, job: &JobId, most: usize) -> Result<LogPart, StoreError> {
        self.part(job, |size| size.saturating_sub(most as u64), most)
    }

    /// Returns a job's log from a byte on, at most `most` bytes.
    ///
    /// # Errors
    /// As for [`JobLogs::tail`].
    pub fn from(&self, job: &JobId, from: u64, most: usize) -> Result<LogPart, StoreError> {
        self.part(job, |size| from.min(size), most)
    }

    fn part(&self, job: &JobId, from: impl Fn(u64) -> u64, most: usize) -> Result<LogPart, StoreError> {
        let path = self.path(job)?;
        let read = || -> io::Result<LogPart> {
            let mut file = File::open(&path)?;
            let from = from(file.metadata()?.len());
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(most as u64).read_to_end(&mut bytes)?;
            Ok(whole_characters(&bytes, from))
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(LogPart::default()),
            read => read.map_err(StoreError::io(&path)),
        }
    }

    /// Removes logs beyond the limits: the oldest, if there are too many or they are too large.
    pub fn remove_old(&self) {
        let mut room = JOB_LOGS_BYTES_MAX;
        let mut logs: Vec<(SystemTime, u64, PathBuf)> = self.all().collect();
        logs.sort_by(|a, b| b.cmp(a));
        for (number, (_, size, path)) in logs.into_iter().enumerate() {
            let fits = room.checked_sub(size);
            room = fits.unwrap_or(0);
            let is_old = number >= JOBS_KEPT_MAX + JOBS_LIVE_MAX || fits.is_none();
            if is_old && let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "an old log was not removed");
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (SystemTime, u64, PathBuf)> + use<> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let logs = entries.filter(|entry| entry.path().extension().is_some_and(|it| it == ENDING));
        logs.filter_map(|entry| {
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()))
        })
    }

    /// Returns the path of a job's log. Provost's ids are plain; another id would not be a file name.
    fn path(&self, job: &JobId) -> Result<PathBuf, StoreError> {
        match job.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => Ok(self.0.join(format!("{job}.{ENDING}"))),
            false => Err(StoreError::damaged("a job's id is not one of ours")),
        }
    }
}

/// The last line of a log that has no room left.
const FULL: &str = "\n[what follows was not kept]\n";

/// Cuts a part so that it begins and ends between characters.
fn whole_characters(bytes: &[u8], from: u64) -> LogPart {
    let is_inner = |byte: &&u8| **byte & 0xC0 == 0x80;
    let skipped = if from == 0 { 0 } else { bytes.iter().take(3).take_while(is_inner).count() };
    let whole = match std::str::from_utf8(&bytes[skipped..]) {
        Err(error) if error.error_len().is_none() => skipped + error.valid_up_to(),
        _ => bytes.len(),
    };
    let text = String::from_utf8_lossy(&bytes[skipped..whole]).into_owned();
    LogPart { text, from: from + skipped as u64, next: from + whole as u64 }
}
