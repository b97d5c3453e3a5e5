//! Records of applies, in the daemon's own folder: the old content of each file, and how far the apply came.
//!
//! The records do not decide which applies go on: the store has those that are owed. An undo, and the next start for an apply that
//! is owed, read here which files were about to be written, and their content before.
//!
//! Each record is one file that only grows. A line of JSON names the next file and its change, followed by the file's
//! old bytes; both are on disk before the file changes. An entry that a crash has cut off was never begun.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use serde::{Deserialize, Serialize};

use provost_base::limits::{APPLIES_BYTES_MAX, APPLIES_MAX, APPLY_LINE_BYTES_MAX, ARTIFACT_BYTES_MAX};
use provost_base::{AgentId, ApplyId, Digest, RepoPath, Timestamp};
use provost_domain::{AppliedFile, Taking};
use provost_system::{file_inside, make_private_folders, new_file_inside, sync_folder};

/// The folder in the daemon's state.
const FOLDER: &str = "applies";

/// The first line of a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The apply of the record; the file is named after it.
    pub apply: ApplyId,
    /// The agent that asked for the apply.
    pub by: AgentId,
    /// When the daemon began to write.
    pub at: Timestamp,
    /// The earlier apply that this one undoes; `None` if it is no undo.
    pub undoes: Option<ApplyId>,
    /// The changes of a task that it takes in or out; `None` if they are no task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Taking>,
}

/// The content and mode of a file at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The digest of the file's bytes.
    pub digest: Digest,
    /// The file's length in bytes.
    pub len: u64,
    /// The file's permission bits; `None` on a system without them.
    pub mode: Option<u32>,
}

/// A file that is about to be written; the old bytes follow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The position of the step in the record, from 1; a `done` line repeats it.
    pub n: u32,
    /// The file, from the repository's top.
    pub path: RepoPath,
    /// The name beside the file under which its new content is written before the exchange.
    pub beside: Box<str>,
    /// The file before the step; `None` if there was none. Its bytes follow the line.
    pub before: Option<Side>,
    /// The file after the step; `None` if the step removes it.
    pub after: Option<Side>,
    /// Folders that have to be made for the file, the outermost first.
    pub folders: Vec<RepoPath>,
}

impl Step {
    /// Returns the file in the form of the log, after it was written.
    pub fn applied(&self) -> AppliedFile {
        let digest = |side: &Option<Side>| side.as_ref().map(|it| it.digest);
        AppliedFile { path: self.path.clone(), before: digest(&self.before), after: digest(&self.after) }
    }
}

/// The numbers at the end of an apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Files that were written or removed.
    pub applied: u32,
    /// Files that were left unchanged.
    pub skipped: u32,
    /// Files that could not be written.
    pub errors: u32,
    /// Whether the apply ended before it came to its last file.
    pub broken_off: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Head(Head),
    Step(Step),
    Done(u32),
    End(Totals),
}

/// A record that was read back.
#[derive(Debug)]
pub struct Record {
    /// The first line of the record.
    pub head: Head,
    /// The steps, each with the offset of its old bytes, and whether its file is known to have been written.
    pub steps: Vec<(Step, u64, bool)>,
    /// The last line of the record; `None` if the apply goes on, or the daemon ended during the apply.
    pub end: Option<Totals>,
    /// The length of the record's complete part, in bytes.
    whole: u64,
}

impl Record {
    /// Returns the files that were written, in order.
    pub fn written(&self) -> impl DoubleEndedIterator<Item = (&Step, u64)> {
        self.steps.iter().filter(|it| it.2).map(|(step, at, _)| (step, *at))
    }

    /// Returns the net change of each file, in order. A file that was put back is unchanged, and left out.
    pub fn changed(&self) -> Vec<(Step, u64)> {
        let mut changed: Vec<(Step, u64)> = Vec::new();
        for (step, at) in self.written() {
            match changed.iter_mut().find(|(first, _)| first.path == step.path) {
                Some((first, _)) => first.after = step.after.clone(),
                None => changed.push((step.clone(), at)),
            }
        }
        changed.retain(|(step, _)| step.before != step.after);
        changed
    }
}

/// A record that is being written.
pub struct Pen {
    file: File,
    /// The length of the complete part.
    len: u64,
    n: u32,
}

/// The folder of all records, which only the daemon can write.
#[derive(Debug)]
pub struct Records {
    dir: Dir,
}

impl Records {
    /// Opens the folder in the daemon's state, and makes it if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(state: &Path) -> io::Result<Self> {
        let path = state.join(FOLDER);
        make_private_folders(&path)?;
        Ok(Self { dir: Dir::open_ambient_dir(&path, ambient_authority())? })
    }

    /// Begins a record. Removes the oldest records beyond the bounds.
    pub fn begin(&self, head: &Head) -> io::Result<Pen> {
        self.prune()?;
        let mut pen = Pen { file: new_file_inside(&self.dir, &name(head.apply))?, len: 0, n: 0 };
        let begun = pen.put(&Line::Head(head.clone()), &[]).and_then(|()| sync_folder(&self.dir));
        if begun.is_err() {
            let _nobody_asks_for_it = self.dir.remove_file(name(head.apply));
        }
        begun.map(|()| pen)
    }

    /// Goes on with the record of an apply that was broken off.
    pub fn resume(&self, record: &Record) -> io::Result<Pen> {
        let options = OpenOptions::new().write(true).clone();
        let file = self.dir.open_with(name(record.head.apply), &options)?.into_std();
        let mut pen = Pen { file, len: record.whole, n: 0 };
        pen.back_to(record.whole)?;
        Ok(pen)
    }

    /// Returns all applies that have a record, the oldest first.
    pub fn all(&self) -> io::Result<Vec<ApplyId>> {
        let mut all = Vec::new();
        for entry in self.dir.entries()? {
            let found = entry?.file_name();
            let text = found.to_string_lossy();
            all.extend(text.parse().map(ApplyId).ok().filter(|id| name(*id) == text));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn prune(&self) -> io::Result<()> {
        let all = self.all()?;
        let len = |id: &ApplyId| self.dir.metadata(name(*id)).map_or(0, |it| it.len());
        let (mut bytes, mut kept) = (0_u64, 0);
        for id in all.iter().rev() {
            (bytes, kept) = (bytes.saturating_add(len(id)), kept + 1);
            // The record that is about to begin counts, too.
            if kept >= APPLIES_MAX || bytes > APPLIES_BYTES_MAX {
                self.dir.remove_file(name(*id))?;
            }
        }
        Ok(())
    }

    /// Reads a record back, without the old bytes; `None` if no record has this number.
    pub fn read(&self, apply: ApplyId) -> io::Result<Option<Record>> {
        let file = match file_inside(&self.dir, &name(apply)) {
            Ok(file) => file,
            Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        let len = file.metadata()?.len();
        let mut reader = BufReader::new(file);
        let (mut record, mut at): (Option<Record>, u64) = (None, 0);
        while let Some((line, read)) = line(&mut reader)? {
            at += read;
            match (line, &mut record) {
                (Line::Head(head), None) => {
                    record = Some(Record { head, steps: Vec::new(), end: None, whole: at });
                }
                (Line::Step(step), Some(record)) => {
                    let old = step.before.as_ref().map_or(0, |it| it.len);
                    // The record ends in the middle of the old bytes: the daemon ended before it wrote the file.
                    if at.saturating_add(old) >= len {
                        break;
                    }
                    reader.seek_relative(i64::try_from(old + 1).map_err(io::Error::other)?)?;
                    record.steps.push((step, at, false));
                    at += old + 1;
                }
                (Line::Done(n), Some(record)) => {
                    record.steps.iter_mut().filter(|it| it.0.n == n).for_each(|it| it.2 = true);
                }
                (Line::End(totals), Some(record)) => record.end = Some(totals),
                _ => break,
            }
            record.iter_mut().for_each(|it| it.whole = at);
        }
        Ok(record)
    }

    /// Returns the bytes before a step; `None` if they do not have the recorded digest any more.
    pub fn old(&self, apply: ApplyId, side: &Side, at: u64) -> io::Result<Option<Vec<u8>>> {
        let mut file = file_inside(&self.dir, &name(apply))?;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        file.take(side.len.min(ARTIFACT_BYTES_MAX as u64)).read_to_end(&mut bytes)?;
        Ok((Digest::of(&bytes) == side.digest).then_some(bytes))
    }
}

/// Returns the name of a record's file. Names sort like numbers.
fn name(apply: ApplyId) -> String {
    format!("{:012}", apply.0)
}

/// Returns the next line and its length; `None` at the end, or if a crash has left only a part of a line.
fn line(reader: &mut BufReader<File>) -> io::Result<Option<(Line, u64)>> {
    let mut text = Vec::new();
    reader.by_ref().take(APPLY_LINE_BYTES_MAX as u64).read_until(b'\n', &mut text)?;
    if text.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&text).ok().map(|line| (line, text.len() as u64)))
}

impl Pen {
    /// Returns the number of the next step.
    pub fn next_number(&mut self) -> u32 {
        self.n += 1;
        self.n
    }

    /// Records that a file is about to be written, with its old bytes. Both are on disk when this returns.
    pub fn step(&mut self, step: &Step, old: &[u8]) -> io::Result<()> {
        let before = self.len;
        self.put(&Line::Step(step.clone()), old)?;
        match self.file.sync_data() {
            Ok(()) => Ok(()),
            Err(err) => self.back_to(before).and(Err(err)),
        }
    }

    /// Notes that the file of this step was written.
    pub fn done(&mut self, n: u32) -> io::Result<()> {
        self.put(&Line::Done(n), &[])
    }

    /// Records the end of the apply.
    pub fn end(&mut self, totals: Totals) -> io::Result<()> {
        self.put(&Line::End(totals), &[])?;
        self.file.sync_data()
    }

    /// Appends a line. If it cannot be written completely, its part is removed again.
    fn put(&mut self, line: &Line, old: &[u8]) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line).map_err(io::Error::other)?;
        if bytes.len() >= APPLY_LINE_BYTES_MAX {
            return Err(io::Error::other("its path is too long to be kept"));
        }
        bytes.push(b'\n');
        let written = self.file.write_all(&bytes).and_then(|()| match line {
            Line::Step(_) => self.file.write_all(old).and_then(|()| self.file.write_all(b"\n")),
            _ => Ok(()),
        });
        match written {
            Ok(()) => {
                let more = if matches!(line, Line::Step(_)) { old.len() + 1 } else { 0 };
                self.len += (bytes.len() + more) as u64;
                Ok(())
            }
            Err(err) => self.back_to(self.len).and(Err(err)),
        }
    }

    fn back_to(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.len = self.file.seek(SeekFrom::Start(len))?;
        Ok(())
    }
}
