//! Turns of editors' sessions, kept on the disk for editors that take a session up. Blocking.
//!
//! ```text
//!   conversations/<whose session>/<turn>.jsonl     a line for each update, as the run's output has it
//! ```
//! A keeper appends each update as soon as it reads it, so that a kill of the daemon loses none of them; it takes out what an agent has said
//! twice when the turn is over, or the file has grown. Only the daemon's user can read the folder. The contents are an agent's words and are
//! not trusted.
#![forbid(unsafe_code)]

mod condensed;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::sync::watch;

use super::output::{Page, Stream};
use provost_base::limits::{
    CHANGESETS_KEPT_DAYS, CONVERSATION_BYTES_MAX, CONVERSATIONS_BYTES_MAX, CONVERSATIONS_TURNS_MAX,
    STREAM_LINE_BYTES_MAX, TURN_KEPT_BYTES_MAX, TURN_ROUGH_BYTES_MAX,
};
use provost_base::{AgentId, Digest, TaskId};
use provost_system::{self as system, Ages};

/// Ends the name of a turn's file.
const SUFFIX: &str = "jsonl";
/// Ends the name of a turn's file that is being rewritten.
const UNFINISHED: &str = "new";
/// The extension of the file with the ages of turns, beside the folder.
const AGES: &str = "ages";

/// The turns that are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Conversations {
    folder: Arc<Path>,
    /// Of each turn that is under way, the byte of the run's output up to which it is on the disk.
    written: Arc<Mutex<HashMap<TaskId, watch::Receiver<u64>>>>,
    tidying: Arc<Mutex<()>>,
}

/// A turn of an editor's session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionTurn {
    /// The agent that the session speaks as. Another agent's session with the same id is another session.
    pub owner: AgentId,
    /// The id of the session.
    pub session: Box<str>,
    /// The task that the turn is.
    pub task: TaskId,
}

impl Conversations {
    /// Makes the store for a folder, which the first keeper makes.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.into(), written: Arc::default(), tidying: Arc::default() }
    }

    fn place(&self, turn: &SessionTurn) -> PathBuf {
        let named = |fields: &[&str]| {
            let digest = Digest::of_fields(fields.iter().map(|it| it.as_bytes())).to_string();
            digest.chars().take(32).collect::<String>()
        };
        let session = named(&["session of", turn.owner.as_str(), &turn.session]);
        self.folder.join(session).join(named(&["turn", turn.task.as_str()])).with_extension(SUFFIX)
    }

    /// Begins to keep a turn, or goes on with a turn whose run goes on.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn keep(&self, turn: &SessionTurn) -> io::Result<TurnKeeper> {
        let path = self.place(turn);
        system::make_private_folders(path.parent().unwrap_or(&self.folder))?;
        let mut file = open(&path)?;
        let mut length = file.seek(SeekFrom::End(0))?;
        if length > 0 && !ends_with_a_line(&mut file)? {
            // A kill has cut the last line off. A line break parts it from what follows.
            file.write_all(b"\n")?;
            length += 1;
        }
        let (tells, written) = watch::channel(0);
        self.written().insert(turn.task.clone(), written);
        Ok(TurnKeeper {
            kept: self.clone(),
            task: turn.task.clone(),
            path,
            file,
            length,
            line: Vec::new(),
            is_skipping: false,
            tells,
        })
    }

    /// Returns how much of a turn's output is on the disk; `None` if no keeper is at work on it.
    pub fn written_of(&self, task: &TaskId) -> Option<watch::Receiver<u64>> {
        self.written().get(task).cloned()
    }

    /// Returns the updates of a turn, in order: each call with its last state, and the last plan. Empty if nothing is kept.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn of(&self, turn: &SessionTurn) -> io::Result<Vec<Value>> {
        let read = read_updates(&self.place(turn));
        match read.map(|it| condensed::fitted(it, TURN_KEPT_BYTES_MAX)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        }
    }

    /// Returns the updates of a turn as they were at a moment, or as they are now, with that moment. So a reader gets the pages of one reading,
    /// although the turn goes on. `None` if the file was rewritten since that moment, or is gone.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn of_moment(
        &self,
        turn: &SessionTurn,
        at: Option<&str>,
    ) -> io::Result<Option<(Vec<Value>, String)>> {
        let mut text = match read_rough(&self.place(turn)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        if let Some(at) = at {
            let length = at.split_once('-').and_then(|it| it.0.parse().ok()).unwrap_or(usize::MAX);
            if length > text.len() {
                return Ok(None);
            }
            text.truncate(length);
        }
        let digest: String = Digest::of(&text).to_string().chars().take(32).collect();
        let moment = format!("{}-{digest}", text.len());
        if at.is_some_and(|at| at != moment) {
            return Ok(None);
        }
        Ok(Some((condensed::fitted(updates_in(&text), TURN_KEPT_BYTES_MAX), moment)))
    }

    /// Removes old turns, and the oldest turns beyond the bounds; never the turn at `newest`. The age of a turn is the time that the daemon has
    /// seen pass, so that a clock that is set ahead removes none.
    fn tidy(&self, newest: &Path) {
        let _one_at_a_time = self.tidying.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turns = self.turns();
        let ages =
            Ages::look(self.folder.with_extension(AGES), turns.iter().map(|it| self.name_of(&it.path)));
        if let Err(err) = ages.keep() {
            // Their recorded age then stays the same, and they are kept for longer.
            tracing::warn!(%err, "the ages of kept turns of editors' sessions cannot be saved");
        }
        turns.retain(|it| it.path != newest);
        turns.sort_by_cached_key(|it| (ages.of(&self.name_of(&it.path)), std::cmp::Reverse(it.changed)));
        let most = Duration::from_secs(CHANGESETS_KEPT_DAYS * 24 * 60 * 60);
        let length = fs::metadata(newest).map_or(0, |it| it.len());
        let (mut all, mut of_session) = (length, HashMap::new());
        of_session.insert(newest.parent().map(Path::to_owned), length);
        for (number, it) in turns.iter().enumerate() {
            let session = of_session.entry(it.path.parent().map(Path::to_owned)).or_default();
            let is_too_much = all + it.bytes > CONVERSATIONS_BYTES_MAX
                || *session + it.bytes > CONVERSATION_BYTES_MAX
                || number + 1 >= CONVERSATIONS_TURNS_MAX;
            if is_too_much || ages.of(&self.name_of(&it.path)) >= most {
                let removed = fs::remove_file(&it.path);
                if let Err(err) = removed {
                    tracing::warn!(%err, path = %it.path.display(), "an old turn of an editor's session was not removed");
                }
                // This removes an empty folder only.
                let _not_empty = it.path.parent().map(fs::remove_dir);
                continue;
            }
            all += it.bytes;
            *session += it.bytes;
        }
    }

    /// The name of a turn's file within the folder.
    fn name_of(&self, path: &Path) -> Box<str> {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into()
    }

    /// Lists the files of all turns.
    fn turns(&self) -> Vec<Turn> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let sessions = entries(&self.folder).filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
        let files = sessions.flat_map(|it| entries(&it.path()).collect::<Vec<_>>());
        let turn = |entry: fs::DirEntry| {
            let data = entry.metadata().ok()?;
            let changed = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Turn { path: entry.path(), bytes: data.len(), changed })
        };
        files.filter_map(turn).collect()
    }

    fn written(&self) -> MutexGuard<'_, HashMap<TaskId, watch::Receiver<u64>>> {
        // Inserting and removing leave it valid at every moment.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file of one turn.
struct Turn {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
}

/// The writer of one turn while it goes on.
#[derive(Debug)]
pub struct TurnKeeper {
    kept: Conversations,
    task: TaskId,
    path: PathBuf,
    file: File,
    length: u64,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Whether the rest of the line is left out: it is too long, or its beginning is missing.
    is_skipping: bool,
    tells: watch::Sender<u64>,
}

impl TurnKeeper {
    /// Writes the updates in a page of the run's output; `at` is the end of the page before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn take(&mut self, page: &Page, mut at: u64) -> io::Result<()> {
        let mut lines = Vec::new();
        for chunk in &page.chunks {
            if chunk.at > at {
                self.line.clear();
                self.is_skipping = true;
            }
            at = chunk.at + chunk.bytes.len() as u64;
            if chunk.stream == Stream::Out {
                self.hear(&chunk.bytes, &mut lines);
            }
        }
        if !lines.is_empty() {
            self.file.write_all(&lines)?;
            self.length += lines.len() as u64;
        }
        if self.length > TURN_ROUGH_BYTES_MAX as u64 {
            self.condense()?;
        }
        self.tells.send_replace(page.next);
        Ok(())
    }

    /// Adds the complete lines that are updates.
    fn hear(&mut self, bytes: &[u8], lines: &mut Vec<u8>) {
        for part in bytes.split_inclusive(|it| *it == b'\n') {
            if !self.is_skipping {
                self.line.extend_from_slice(part);
            }
            self.is_skipping |= self.line.len() > STREAM_LINE_BYTES_MAX;
            if !part.ends_with(b"\n") {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if !std::mem::take(&mut self.is_skipping) && condensed::is_kept(&line) {
                lines.extend_from_slice(&line);
            }
        }
    }

    /// Rewrites the file without what was said twice, and within its bound.
    fn condense(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        for update in condensed::fitted(read_updates(&self.path)?, TURN_KEPT_BYTES_MAX) {
            text.extend_from_slice(update.to_string().as_bytes());
            text.push(b'\n');
        }
        let unfinished = self.path.with_extension(UNFINISHED);
        let _of_a_kill = fs::remove_file(&unfinished);
        let mut file = open(&unfinished)?;
        file.write_all(&text)?;
        fs::rename(&unfinished, &self.path)?;
        (self.file, self.length) = (file, text.len() as u64);
        Ok(())
    }

    /// Ends with the run: rewrites the file, and removes old turns.
    ///
    /// # Errors
    /// When the file cannot be rewritten; it stays as it is.
    pub fn end(mut self) -> io::Result<()> {
        let condensed = self.condense();
        self.kept.tidy(&self.path);
        condensed
    }
}

impl Drop for TurnKeeper {
    fn drop(&mut self) {
        self.kept.written().remove(&self.task);
    }
}

fn open(path: &Path) -> io::Result<File> {
    system::private_file(OpenOptions::new().read(true).append(true).create(true)).open(path)
}

fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Reads the updates in a file.
fn read_updates(path: &Path) -> io::Result<Vec<Value>> {
    read_rough(path).map(|text| updates_in(&text))
}

fn read_rough(path: &Path) -> io::Result<Vec<u8>> {
    // Twice the bound: a keeper writes a whole page before it looks at the length.
    let most = 2 * (TURN_ROUGH_BYTES_MAX + STREAM_LINE_BYTES_MAX) as u64;
    let mut text = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the updates in such a text. Lines that are no updates, such as a line that a kill has cut off, are left out.
fn updates_in(text: &[u8]) -> Vec<Value> {
    let lines = text.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    condensed::condensed(lines.filter_map(|it| serde_json::from_slice(it).ok()))
}
