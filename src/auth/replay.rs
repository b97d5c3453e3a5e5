//! Replay protection: the daemon accepts no frame twice.
//!
//! The guard remembers each nonce for as long as its frame's time stamp is within the window, in one bucket per
//! second. When its memory is full, it drops the oldest second and refuses frames of that age from then on: it
//! never accepts a frame that its memory cannot cover. Frames that are dated ahead get a small part of the memory
//! and push nothing out, so that a sender of such frames cannot lock out the others.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Rejected;
use provost_base::limits::FRAMES_AHEAD_MAX;
use provost_base::{Digest, Timestamp};

/// Frames dated ahead may fill one part in so many of the memory; clocks on one machine agree.
const AHEAD_SHARE: usize = 8;

/// The nonces that were seen, and the age beyond which the guard refuses.
pub struct ReplayGuard {
    /// Whole seconds since the epoch; DevIt's `ts` is no finer.
    started_at: u64,
    window_seconds: u64,
    capacity: usize,
    /// Two keys that only this process knows, so that no sender can choose nonces that collide.
    hashers: [RandomState; 2],
    seen: Mutex<Seen>,
    /// The record of frames dated ahead, which the next start could otherwise accept a second time.
    ahead: Option<Ahead>,
}

#[derive(Default)]
struct Seen {
    /// Marks by the second of their frames; no set is empty.
    buckets: BTreeMap<u64, HashSet<u128, BuildHasherDefault<Itself>>>,
    count: usize,
    /// Frames with a smaller `ts` are refused: some of them may have been forgotten.
    floor: u64,
    /// Forgotten seconds above the floor; there are some only if the clock was set back.
    closed: BTreeSet<u64>,
}

/// A hasher for marks. A mark is already the outcome of two keyed hashes, so one half of it serves as its hash.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, bytes: &[u8]) {
        // Integers come through the method below; this one is here for completeness.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, mark: u128) {
        // The set uses the upper bits of a hash as well as the lower ones; each half has both.
        self.0 = (mark >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl ReplayGuard {
    /// Makes a guard that accepts each frame once, if its time stamp is within `window_seconds` before or after the
    /// present and not before the second of `started_at`. It remembers at most `capacity` nonces.
    pub fn new(started_at: Timestamp, window_seconds: u64, capacity: usize) -> Self {
        Self {
            started_at: started_at.seconds(),
            window_seconds,
            capacity,
            hashers: [RandomState::new(), RandomState::new()],
            seen: Mutex::default(),
            ahead: None,
        }
    }

    /// Adds a file for the facts that a start cannot know: the accepted frames that are dated ahead, and the newest
    /// second of the others, after which the new start begins. The clock may have been set back since, or may have
    /// been ahead.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn remembering(self, file: &Path) -> io::Result<Self> {
        let ahead = Ahead::open(file, self.started_at.saturating_sub(self.window_seconds))?;
        let started_at = ahead.newest.map_or(self.started_at, |it| self.started_at.max(it.saturating_add(1)));
        Ok(Self { ahead: Some(ahead), started_at, ..self })
    }

    /// Returns the first second, since 1970, whose frames are accepted.
    pub fn begins_at(&self) -> u64 {
        self.started_at
    }

    /// Remembers a frame whose MAC was correct. A refused frame leaves no trace.
    ///
    /// # Errors
    /// [`Rejected::TooOld`], [`Rejected::TooNew`], [`Rejected::BeforeStart`], [`Rejected::Forgotten`],
    /// [`Rejected::Replayed`], and [`Rejected::TooMany`] when memory is full and nothing in it is older than
    /// this frame, or when too much of it is dated ahead, as this frame is.
    pub fn check(&self, from: &str, ts: u64, nonce: &str, now: Timestamp) -> Result<(), Rejected> {
        let now = now.seconds();
        let oldest = now.saturating_sub(self.window_seconds);
        let newest = now.saturating_add(self.window_seconds);
        if ts < oldest {
            return Err(Rejected::TooOld);
        }
        if ts > newest {
            return Err(Rejected::TooNew);
        }
        if ts < self.started_at {
            return Err(Rejected::BeforeStart);
        }
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one((from, nonce)));
        let mark = u128::from(high) << 64 | u128::from(low);
        if self.ahead.as_ref().is_some_and(|it| it.has(from, ts, nonce)) {
            return Err(Rejected::Replayed);
        }
        self.remember(ts, mark, now)?;
        if let Some(ahead) = &self.ahead {
            // Written after it is remembered in memory, so that only senders of such frames wait for the disk. A
            // frame that cannot be kept over a start is refused.
            let kept = if ts > now { ahead.keep(from, ts, nonce, oldest) } else { ahead.reached(ts) };
            kept.inspect_err(|_| self.forget(ts, mark))?;
        }
        Ok(())
    }

    /// Removes the trace of a frame that is refused after all.
    fn forget(&self, ts: u64, mark: u128) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = seen.buckets.get_mut(&ts) else { return };
        let had = bucket.remove(&mark);
        if bucket.is_empty() {
            seen.buckets.remove(&ts);
        }
        seen.count -= usize::from(had);
    }

    /// Remembers a frame of the window, unless it is remembered already or too old to tell.
    fn remember(&self, ts: u64, mark: u128, now: u64) -> Result<(), Rejected> {
        let oldest = now.saturating_sub(self.window_seconds);
        let newest = now.saturating_add(self.window_seconds);
        // A set is whole between any two of its operations, so a panic elsewhere has not harmed it.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        while seen.buckets.first_key_value().is_some_and(|(second, _)| *second < oldest) {
            seen.forget_oldest();
        }
        while seen.closed.first().is_some_and(|second| *second < oldest) {
            seen.closed.pop_first();
        }
        if ts < seen.floor || seen.closed.contains(&ts) {
            return Err(Rejected::Forgotten);
        }
        if seen.buckets.get(&ts).is_some_and(|bucket| bucket.contains(&mark)) {
            return Err(Rejected::Replayed);
        }
        if ts > now {
            let ahead: usize = seen.buckets.range(now + 1..).map(|(_, bucket)| bucket.len()).sum();
            if ahead >= self.capacity.div_ceil(AHEAD_SHARE) || seen.count >= self.capacity {
                return Err(Rejected::TooMany);
            }
        }
        while seen.count >= self.capacity {
            seen.make_room(ts, newest)?;
        }
        seen.buckets.entry(ts).or_default().insert(mark);
        seen.count += 1;
        Ok(())
    }

    /// Returns the time before and after the present within which frames are accepted, in seconds.
    pub fn window_seconds(&self) -> u64 {
        self.window_seconds
    }

    /// Returns the number of remembered nonces.
    pub fn remembered(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).count
    }
}

/// The record that is kept over starts: a line for each accepted frame that is dated ahead, with its second and a
/// digest of the rest, and one line, ending in `-`, for the newest second of the others.
struct Ahead {
    /// Frames of earlier starts. Those of the present start are remembered with the others.
    before: BTreeSet<(u64, String)>,
    /// The newest second of frames that were not dated ahead, or are no longer kept.
    newest: Option<u64>,
    book: Mutex<Book>,
}

/// The file with these lines, and its content.
struct Book {
    path: PathBuf,
    /// `None` until the file has been rewritten: not every system replaces a file that is open.
    file: Option<File>,
    lines: usize,
    known: BTreeSet<(u64, String)>,
    newest: Option<u64>,
}

/// The number of useless lines at which the file is rewritten.
const AHEAD_LINES_OVER: usize = 1_024;

/// The word that stands in place of a digest, in the line with the newest second.
const NEWEST: &str = "-";

impl Ahead {
    /// Reads the file. Frames from before `oldest` are dropped, but their newest second is kept.
    fn open(path: &Path, oldest: u64) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(err) if err.kind() == io::ErrorKind::NotFound => String::new(),
            Err(err) => return Err(err),
        };
        let (mut before, mut newest) = (BTreeSet::new(), None);
        for line in text.lines() {
            let Some((ts, rest)) = line.split_once(' ').and_then(|(ts, rest)| Some((ts.parse().ok()?, rest)))
            else {
                continue;
            };
            match rest {
                NEWEST => newest = newest.max(Some(ts)),
                _ => drop(before.insert((ts, rest.to_owned()))),
            }
        }
        let mut book = Book { path: path.to_owned(), file: None, lines: 0, known: before, newest };
        book.forget(oldest);
        book.write_afresh()?;
        Ok(Self { before: book.known.clone(), newest: book.newest, book: Mutex::new(book) })
    }

    fn has(&self, from: &str, ts: u64, nonce: &str) -> bool {
        self.before.last().is_some_and(|(last, _)| ts <= *last)
            && self.before.contains(&(ts, Book::mark(from, nonce)))
    }

    /// Records an accepted frame that is dated ahead.
    fn keep(&self, from: &str, ts: u64, nonce: &str, oldest: u64) -> Result<(), Rejected> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.forget(oldest);
        if book.known.len() >= FRAMES_AHEAD_MAX {
            return Err(Rejected::TooMany);
        }
        let rest = Book::mark(from, nonce);
        book.put(ts, &rest).map_err(|err| not_kept(&err))?;
        book.known.insert((ts, rest));
        Ok(())
    }

    /// Records the second of an accepted frame, at most one line a second.
    fn reached(&self, ts: u64) -> Result<(), Rejected> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        if book.newest >= Some(ts) {
            return Ok(());
        }
        book.put(ts, NEWEST).map_err(|err| not_kept(&err))?;
        book.newest = Some(ts);
        Ok(())
    }
}

/// Returns the rejection of a frame whose line cannot be written: a start has to know the frame, so it is refused.
fn not_kept(err: &io::Error) -> Rejected {
    tracing::warn!(%err, "what a start has to know of DevIt's frames cannot be kept in mind");
    Rejected::TooMany
}

impl Book {
    fn write_afresh(&mut self) -> io::Result<()> {
        self.file = None;
        let mut fresh = self.path.as_os_str().to_owned();
        fresh.push(".new");
        let mut options = File::options();
        options.create(true).write(true).truncate(true);
        let mut file = provost_system::private_file(&mut options).open(&fresh)?;
        let frames = self.known.iter().map(|(ts, rest)| format!("{ts} {rest}\n"));
        let text: String = frames.chain(self.newest.map(|ts| format!("{ts} {NEWEST}\n"))).collect();
        file.write_all(text.as_bytes())?;
        std::fs::rename(&fresh, &self.path)?;
        (self.file, self.lines) = (Some(file), self.known.len() + 1);
        Ok(())
    }

    fn mark(from: &str, nonce: &str) -> String {
        Digest::of_fields([from.as_bytes(), nonce.as_bytes()]).to_string()
    }

    /// Drops frames from before a second. The next start begins after them, since the clock that makes them so old
    /// may be wrong.
    fn forget(&mut self, oldest: u64) {
        while self.known.first().is_some_and(|(second, _)| *second < oldest) {
            let second = self.known.pop_first().map(|(second, _)| second);
            self.newest = self.newest.max(second);
        }
    }

    fn put(&mut self, ts: u64, rest: &str) -> io::Result<()> {
        if self.file.is_none() || self.lines > self.known.len() + AHEAD_LINES_OVER {
            self.write_afresh()?;
        }
        let file = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.write_all(format!("{ts} {rest}\n").as_bytes())?;
        self.lines += 1;
        Ok(())
    }
}

impl Seen {
    /// Makes room for a frame that is not dated ahead.
    fn make_room(&mut self, ts: u64, newest: u64) -> Result<(), Rejected> {
        // Seconds beyond the window are left over from a clock that was ahead.
        let last = self.buckets.last_key_value().map_or(0, |(second, _)| *second);
        if last > newest {
            self.count -= self.buckets.pop_last().map_or(0, |(_, bucket)| bucket.len());
            self.closed.insert(last);
            return Ok(());
        }
        match self.buckets.first_key_value() {
            Some((second, _)) if *second < ts => {
                self.forget_oldest();
                Ok(())
            }
            _ => Err(Rejected::TooMany),
        }
    }

    /// Drops the oldest second and raises the floor, even if that second has left the window, in case the clock is set back.
    fn forget_oldest(&mut self) {
        if let Some((second, bucket)) = self.buckets.pop_first() {
            self.count -= bucket.len();
            self.floor = self.floor.max(second.saturating_add(1));
        }
    }
}
