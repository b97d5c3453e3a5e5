//! The intake: messages that were acknowledged before their commit, in a file of its own.
//!
//! ```text
//!   file  = frame ...                    the end is where a frame does not verify
//!   frame = length of text || seal || text
//!   seal  = HMAC(key, label || what is before || text)
//! ```
//! The first frame is sealed after the journal's head, and each later one after the seal of the frame before.
//! So frames continue one head alone. The commit that brings their messages into the journal moves that head,
//! which makes all of them void without a write. The next frame then begins at the start of the file again.
//!
//! A frame is as safe as a commit that does not wait for the disk: it outlives the process, and not the
//! machine's power.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::files::{self, Identity};
use super::journal::{Anchor, Key};
use super::{StoreError, codec};
use provost_base::Digest;
use provost_base::limits::INTAKE_BYTES_MAX;
use provost_domain::post::Received;

/// The file's name in the state folder.
const INTAKE: &str = "intake.log";

/// Bytes of a frame's length, and of its seal.
const LENGTH: usize = 4;
const SEAL: usize = 32;

/// The file, and how far it is written.
#[derive(Debug)]
pub(super) struct Intake {
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    /// The seal that the next frame continues; the frame begins at `at`, in bytes.
    before: Digest,
    at: u64,
    /// Where the system writes next, if that is known.
    cursor: Option<u64>,
}

impl Intake {
    /// Opens the file, or makes it, and reads what continues a journal that ends at `head`.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) fn open(dir: &Path, key: &Key, head: &Anchor) -> Result<(Self, Vec<Received>), StoreError> {
        let path = dir.join(INTAKE);
        let mut file = files::open_mark(&path, true)?;
        let mut bytes = Vec::new();
        std::io::Read::by_ref(&mut file)
            .take(INTAKE_BYTES_MAX as u64)
            .read_to_end(&mut bytes)
            .map_err(StoreError::io(&path))?;
        let identity = files::identity(&path);
        let mut intake = Self { path, file, identity, before: head.mac, at: 0, cursor: None };
        let mut found = Vec::new();
        let mut rest = bytes.as_slice();
        while let Some((seal, text, after)) = frame(rest) {
            if key.intake(&intake.before, text) != seal {
                break;
            }
            let text = std::str::from_utf8(text).map_err(StoreError::damaged)?;
            found.extend(codec::parse::<Vec<Received>>(text)?);
            intake.at += (rest.len() - after.len()) as u64;
            (intake.before, rest) = (seal, after);
        }
        Ok((intake, found))
    }

    /// Writes a frame; `false` where there is no room for it.
    ///
    /// # Errors
    /// When it is not written, or not into the file that lies at its path.
    pub(super) fn write(&mut self, key: &Key, received: &[Received]) -> Result<bool, StoreError> {
        if files::identity(&self.path) != self.identity {
            return Err(StoreError::Swapped { path: self.path.display().to_string().into() });
        }
        let mut frame = vec![0; LENGTH + SEAL];
        serde_json::to_writer(&mut frame, received).map_err(StoreError::damaged)?;
        let text = &frame[LENGTH + SEAL..];
        let seal = key.intake(&self.before, text);
        let length = u32::try_from(text.len()).map_err(StoreError::damaged)?;
        if self.at + frame.len() as u64 > INTAKE_BYTES_MAX as u64 {
            return Ok(false);
        }
        frame[..LENGTH].copy_from_slice(&length.to_le_bytes());
        frame[LENGTH..LENGTH + SEAL].copy_from_slice(seal.as_bytes());
        let at_its_place = self.cursor.take() == Some(self.at);
        let sought = if at_its_place { Ok(self.at) } else { self.file.seek(SeekFrom::Start(self.at)) };
        sought.and_then(|_| self.file.write_all(&frame)).map_err(StoreError::io(&self.path))?;
        self.at += frame.len() as u64;
        (self.before, self.cursor) = (seal, Some(self.at));
        Ok(true)
    }

    /// The journal has come to `head`, and has all that was written here.
    pub(super) fn begin_at(&mut self, head: &Anchor) {
        (self.before, self.at) = (head.mac, 0);
    }

    /// Leaves nothing in the file.
    pub(super) fn clear(&mut self) {
        self.cursor = None;
        if let Err(err) = self.file.set_len(0) {
            tracing::debug!(%err, path = %self.path.display(), "what is void stays there");
        }
    }
}

/// The first frame of some bytes, and what comes after it.
fn frame(bytes: &[u8]) -> Option<(Digest, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    let (seal, rest) = rest.split_first_chunk::<SEAL>()?;
    let (text, after) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some((Digest::from_bytes(*seal), text, after))
}
