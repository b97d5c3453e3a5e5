//! Marks: positions that the journal has reached, recorded beside the key and outside of the state folder,
//! for the check at a start.
//!
//! Each file has two places of a fixed length. One is for changes that waited for the disk: they have to exist
//! after every crash. The other is for changes that only the kernel had: they have to exist as long as the machine
//! has not been rebooted. Both are sealed with the journal's key. A store that ends before its mark has lost its
//! newest history.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::journal::{Anchor, Key};
use super::{StoreError, codec, files};
use provost_base::{Digest, EventSeq};
use provost_domain::Counters;
use provost_system as system;

/// The file's name in the state folder.
pub(super) const MARK: &str = "journal.anchor";

/// Bytes of a place: all numbers at their largest take two thirds of it. A disk writes at least half of it in one
/// operation.
const PLACE: usize = 1_024;

/// The place of a mark in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum As {
    /// The mark is on the disk.
    Durable,
    /// The mark is as safe as the kernel.
    Written,
}

/// The content of a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) head: Anchor,
    pub(super) counters: Counters,
    /// The name of the machine's boot in which it was written.
    boot: Box<str>,
    seal: Digest,
}

/// The marks of a store.
#[derive(Debug, Default)]
pub(super) struct Marks {
    places: Vec<MarksFile>,
    boot: Box<str>,
}

/// A file for marks. After an error, it is tried again with the next mark.
#[derive(Debug)]
struct MarksFile {
    path: PathBuf,
    /// `None` while the file cannot be opened.
    file: Option<File>,
    /// The reason why the last mark is missing, for a person.
    wrong: Option<Box<str>>,
}

impl MarksFile {
    fn at(path: &Path) -> Self {
        let mut place = Self { path: path.to_owned(), file: None, wrong: None };
        let opened = place.open();
        place.tell(opened);
        place
    }

    fn open(&mut self) -> Result<(), Box<str>> {
        if self.file.is_none() {
            self.file = Some(files::open_mark(&self.path, true).map_err(|err| err.to_string())?);
        }
        Ok(())
    }

    fn write(&mut self, from: u64, text: &str) -> Result<(), Box<str>> {
        self.open()?;
        let Some(file) = &mut self.file else { return Ok(()) };
        let done = file.seek(SeekFrom::Start(from)).and_then(|_| file.write_all(text.as_bytes()));
        done.map_err(|err| format!("{}: {err}", self.path.display()).into())
    }

    /// Notes the outcome of a write: a change of outcome goes to the log, and the last error is kept.
    fn tell(&mut self, done: Result<(), Box<str>>) {
        let path = self.path.display();
        match (&done, &self.wrong) {
            (Err(why), None) => {
                tracing::warn!(%why, %path, "how far the journal has come cannot be noted there");
            }
            (Ok(()), Some(_)) => tracing::info!(%path, "how far the journal has come is noted there again"),
            _ => {}
        }
        if done.is_err() {
            // By the next time, another file may be at this path.
            self.file = None;
        }
        self.wrong = done.err();
    }
}

/// The marks that were found at the start, in all files.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundMarks {
    durable: Vec<Mark>,
    written: Vec<Mark>,
    /// The file in which the mark of each event was first found.
    at: BTreeMap<EventSeq, PathBuf>,
}

/// Returns the places of marks: beside the key, and outside of the folder if that is configured.
pub(super) fn places(dir: &Path, outside: Option<&Path>) -> Vec<PathBuf> {
    [Some(dir.join(MARK)), outside.map(Path::to_owned)].into_iter().flatten().collect()
}

/// Checks whether there is a mark at any place.
pub(super) fn exist(places: &[PathBuf]) -> bool {
    places.iter().any(|path| path.symlink_metadata().is_ok_and(|meta| meta.len() > 0))
}

/// Returns the marks at these places that are sealed with this key. A place that cannot be read has none.
pub(super) fn read(places: &[PathBuf], key: &Key) -> FoundMarks {
    let mut known = FoundMarks::default();
    for path in places {
        let Ok(file) = files::open_mark(path, false) else { continue };
        let mut bytes = Vec::new();
        if file.take(2 * PLACE as u64).read_to_end(&mut bytes).is_err() {
            continue;
        }
        for (place, found) in bytes.chunks(PLACE).zip([&mut known.durable, &mut known.written]) {
            let text = std::str::from_utf8(place).unwrap_or_default().trim_end_matches(['\n', ' ', '\0']);
            let Ok(mark) = codec::parse::<Mark>(text) else { continue };
            if key.mark(&mark.head, &mark.counters, &mark.boot).is_ok_and(|seal| seal == mark.seal) {
                known.at.entry(mark.head.seq).or_insert_with(|| path.clone());
                found.push(mark);
            }
        }
    }
    known
}

impl FoundMarks {
    /// Returns the mark that the journal must have reached at least.
    pub(super) fn least(&self) -> Option<&Mark> {
        let boot = system::boot_name();
        let same = self.written.iter().filter(|it| !it.boot.is_empty() && *it.boot == *boot);
        self.durable.iter().chain(same).max_by_key(|it| it.head.seq)
    }

    /// Returns the refusal of a store that ends at `head`, before this anchor.
    pub(super) fn behind(&self, anchor: Anchor, head: EventSeq) -> StoreError {
        let at = self.at.get(&anchor.seq).map(|it| it.display().to_string()).unwrap_or_default().into();
        StoreError::Behind { anchor, head, at }
    }

    /// Returns these marks with those of another file.
    pub(super) fn and(mut self, more: Self) -> Self {
        self.durable.extend(more.durable);
        self.written.extend(more.written);
        self.at.extend(more.at);
        self
    }

    /// Returns all marks, those on the disk first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Mark> {
        self.durable.iter().chain(&self.written)
    }
}

impl Marks {
    /// Opens all places, and makes those that do not exist. A place that cannot be opened is tried again with each
    /// mark.
    pub(super) fn open(places: &[PathBuf]) -> Self {
        let places = places.iter().map(|path| MarksFile::at(path)).collect();
        Self { places, boot: system::boot_name() }
    }

    /// Writes a mark, as well as it can: the store itself has the marked state.
    pub(super) fn write(&mut self, key: &Key, head: &Anchor, counters: &Counters, safe: As) {
        let seal = match key.mark(head, counters, &self.boot) {
            Ok(seal) => seal,
            Err(err) => return tracing::warn!(%err, "how far the journal has come cannot be noted"),
        };
        let mark = Mark { head: *head, counters: *counters, boot: self.boot.clone(), seal };
        let Ok(mut text) = codec::text(&mark) else { return };
        text.push_str(&" ".repeat((PLACE - 1).saturating_sub(text.len())));
        text.push('\n');
        let from = if safe == As::Durable { 0 } else { PLACE as u64 };
        // A mark that waited for the disk is newer than the one written before.
        let text = if safe == As::Durable { text.repeat(2) } else { text };
        for place in &mut self.places {
            let done = place.write(from, &text);
            place.tell(done);
        }
    }

    /// Returns the files in which the last mark could not be written, with the reasons, for a person; `None` if all have it.
    pub(super) fn note(&self) -> Option<Box<str>> {
        let wrong = |it: &MarksFile| it.wrong.as_ref().map(|why| format!("{} ({why})", it.path.display()));
        let wrong: Vec<String> = self.places.iter().filter_map(wrong).collect();
        let places = wrong.join(", ");
        (!wrong.is_empty()).then(|| {
            format!(
                "how far the journal has come cannot be noted in {places}: an older copy put back would not be noticed \
                 there; it is tried again with every commit"
            )
            .into()
        })
    }

    /// Waits until the disk has the marks.
    pub(super) fn sync(&mut self) {
        for place in &self.places {
            if let Some(Err(err)) = place.file.as_ref().map(File::sync_data) {
                tracing::warn!(%err, path = %place.path.display(), "a mark is not on the disk");
            }
        }
    }
}
