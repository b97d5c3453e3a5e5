//! The intake: messages that were acknowledged before their commit, in two files of its own.
//!
//! ```text
//!   file  = frame ...                    the end is where a frame does not verify
//!   frame = length of text || seal || text
//!   seal  = HMAC(key, label || what is before || text)
//! ```
//! The first frame is sealed after the journal's head, and each later one after the seal of the frame before. So
//! frames continue exactly one head. The commit that brings their messages into the journal moves that head, which
//! makes all of them void without a write. The next frame then begins at the start of a file again.
//!
//! Frames are also written while a commit is under way, into the other file, and continue the frames that are being
//! committed. That commit notes their last seal together with the head to which it brings the journal ([`End`]). A
//! start finds the frames after that seal, or all of them if the commit did not complete.
//!
//! A frame is as safe as a commit that does not wait for the disk: it outlives the process, but not a loss of
//! power.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::files::{self, Identity, Stamps};
use super::journal::{Anchor, Key};
use super::{JournalHead, StoreError, codec};
use provost_base::limits::INTAKE_BYTES_MAX;
use provost_base::{Digest, EventSeq};
use provost_domain::post::Received;

/// Keeps messages whose commit comes later, even while the store commits earlier ones.
pub trait Intake: Send + std::fmt::Debug {
    /// Keeps messages as safely as a commit that does not wait for the disk; [`super::Loaded::received`] has them
    /// if no commit comes. Returns `false` if a commit has to come first.
    ///
    /// # Errors
    /// Any; then they are not kept.
    fn keep(&mut self, messages: &[Received]) -> Result<bool, StoreError>;

    /// Checks that the files of the database are still those at their paths. Unless a commit is under way,
    /// [`super::Store::look`] checks more.
    ///
    /// # Errors
    /// [`StoreError::Swapped`] if they are not.
    fn look(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the end of the messages that were kept so far. The next [`super::Store::commit_kept`] includes all
    /// of them, and none that is kept later; it has to be over before the next turn.
    fn turn(&mut self) -> Digest;

    /// Notes that the journal has come to `head`, and has all kept messages.
    fn begin_at(&mut self, _head: &JournalHead) {}

    /// Drops all kept messages, since the store was closed.
    fn clear(&mut self) {}
}

/// The files' names in the state folder.
const FILES: [&str; 2] = ["intake.log", "intake-2.log"];

/// Bytes of a frame's length, and of its seal.
const LENGTH: usize = 4;
const SEAL: usize = 32;

/// The end of the frames that a journal with this head includes. It is stored with the commit that makes the head.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct End {
    seq: EventSeq,
    end: Digest,
    seal: Digest,
}

impl End {
    pub(super) fn new(key: &Key, head: &Anchor, end: Digest) -> Self {
        Self { seq: head.seq, end, seal: key.intake_end(head, &end) }
    }

    /// Returns the seal that the first frame continues which a journal with this head does not include.
    pub(super) fn before(noted: Option<&str>, key: &Key, head: &Anchor) -> Digest {
        let noted = noted.and_then(|it| codec::parse::<Self>(it).ok());
        let its = noted.filter(|it| it.seq == head.seq && it.seal == key.intake_end(head, &it.end));
        its.map_or(head.mac, |it| it.end)
    }
}

/// The files, and the progress of writing them.
pub(super) struct FileIntake {
    key: Key,
    files: [IntakeFile; 2],
    /// The index of the file that is being written.
    writes: usize,
    database: Stamps,
    /// The seal that the next frame continues.
    before: Digest,
}

struct IntakeFile {
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    /// The place where the next frame begins, in bytes.
    at: u64,
    /// The place where the system writes next, if it is known.
    cursor: Option<u64>,
}

impl IntakeFile {
    /// Opens the file, or makes it, and reads what is in it.
    fn open(path: PathBuf) -> Result<(Self, Vec<u8>), StoreError> {
        let mut file = files::open_mark(&path, true)?;
        let mut bytes = Vec::new();
        std::io::Read::by_ref(&mut file)
            .take(INTAKE_BYTES_MAX as u64)
            .read_to_end(&mut bytes)
            .map_err(StoreError::io(&path))?;
        let identity = files::identity(&path);
        Ok((Self { path, file, identity, at: 0, cursor: None }, bytes))
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), StoreError> {
        let at_its_place = self.cursor.take() == Some(self.at);
        let sought = if at_its_place { Ok(self.at) } else { self.file.seek(SeekFrom::Start(self.at)) };
        sought.and_then(|_| self.file.write_all(frame)).map_err(StoreError::io(&self.path))?;
        self.at += frame.len() as u64;
        self.cursor = Some(self.at);
        Ok(())
    }
}

impl FileIntake {
    /// Opens the files, or makes them, and reads the frames that continue `before`.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub(super) fn open(dir: &Path, key: &Key, before: Digest) -> Result<(Self, Vec<Received>), StoreError> {
        let [(first, a), (second, b)] = {
            let [first, second] = FILES.map(|name| IntakeFile::open(dir.join(name)));
            [first?, second?]
        };
        let (key, database) = (key.clone(), Stamps::of(dir));
        let mut intake = Self { key, files: [first, second], writes: 0, database, before };
        let mut found = Vec::new();
        // If both files have frames, the first ones may be in either.
        for (which, bytes) in [(0, &a), (1, &b), (0, &a)] {
            if intake.files[which].at == 0 {
                intake.read(which, bytes, &mut found)?;
            }
        }
        Ok((intake, found))
    }

    fn read(&mut self, which: usize, bytes: &[u8], found: &mut Vec<Received>) -> Result<(), StoreError> {
        let mut rest = bytes;
        while let Some((seal, text, after)) = frame(rest) {
            if self.key.intake(&self.before, text) != seal {
                break;
            }
            let text = std::str::from_utf8(text).map_err(StoreError::damaged)?;
            found.extend(codec::parse::<Vec<Received>>(text)?);
            self.files[which].at += (rest.len() - after.len()) as u64;
            self.writes = which;
            (self.before, rest) = (seal, after);
        }
        Ok(())
    }
}

impl std::fmt::Debug for FileIntake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileIntake").finish_non_exhaustive()
    }
}

impl Intake for FileIntake {
    fn keep(&mut self, messages: &[Received]) -> Result<bool, StoreError> {
        let to = &mut self.files[self.writes];
        if files::identity(&to.path) != to.identity {
            return Err(StoreError::Swapped { path: to.path.display().to_string().into() });
        }
        let mut frame = vec![0; LENGTH + SEAL];
        serde_json::to_writer(&mut frame, messages).map_err(StoreError::damaged)?;
        let text = &frame[LENGTH + SEAL..];
        let seal = self.key.intake(&self.before, text);
        let length = u32::try_from(text.len()).map_err(StoreError::damaged)?;
        if to.at + frame.len() as u64 > INTAKE_BYTES_MAX as u64 {
            return Ok(false);
        }
        frame[..LENGTH].copy_from_slice(&length.to_le_bytes());
        frame[LENGTH..LENGTH + SEAL].copy_from_slice(seal.as_bytes());
        to.write(&frame)?;
        self.before = seal;
        Ok(true)
    }

    fn look(&self) -> Result<(), StoreError> {
        self.database.check(false)
    }

    fn turn(&mut self) -> Digest {
        self.writes = 1 - self.writes;
        self.files[self.writes].at = 0;
        self.before
    }

    fn begin_at(&mut self, head: &JournalHead) {
        self.before = head.mac;
        self.files[self.writes].at = 0;
    }

    fn clear(&mut self) {
        for it in &mut self.files {
            it.cursor = None;
            if let Err(err) = it.file.set_len(0) {
                tracing::debug!(%err, path = %it.path.display(), "what is void stays there");
            }
        }
    }
}

/// Returns the first frame of some bytes, and the bytes after it.
fn frame(bytes: &[u8]) -> Option<(Digest, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let (seal, rest) = rest.split_first_chunk::<SEAL>()?;
    let (text, after) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some((Digest::from_bytes(*seal), text, after))
}
