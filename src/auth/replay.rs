//! No frame is believed twice.
//!
//! Remembers each nonce for as long as its frame's time stamp is within the window, in one bucket per second.
//! When memory is full, the oldest second is forgotten and frames that old are refused from then on: what is
//! not remembered is not believed. Frames that are dated ahead get a small part of the memory and push
//! nothing out, so that a sender of such frames cannot lock out the others.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Rejected;
use crate::base::{Digest, Timestamp};

/// Frames dated ahead may fill one part in so many of the memory; clocks on one machine agree.
const AHEAD_SHARE: usize = 8;

/// What has been seen, and what is too old to tell.
pub struct ReplayGuard {
    /// Whole seconds since the epoch; DevIt's `ts` is no finer.
    started_at: u64,
    window_seconds: u64,
    capacity: usize,
    /// Two keys that nobody outside knows, so that no one can choose nonces that collide.
    hashers: [RandomState; 2],
    seen: Mutex<Seen>,
    /// Frames dated ahead, which the next start could take for its own.
    ahead: Option<Mutex<Ahead>>,
}

#[derive(Default)]
struct Seen {
    /// By `ts`; never empty sets.
    buckets: BTreeMap<u64, HashSet<u128, BuildHasherDefault<Itself>>>,
    count: usize,
    /// Frames with a smaller `ts` are refused: some of them may have been forgotten.
    floor: u64,
    /// Forgotten seconds above the floor; there are some only if the clock was set back.
    closed: BTreeSet<u64>,
}

/// What is remembered is the outcome of two keyed hashes already, so that one half of it serves as its hash.
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
    /// Frames from `window_seconds` before to as many after the present are believed, once, unless they are
    /// from before the second of `started_at`. At most `capacity` nonces are remembered.
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

    /// The same with a file where it keeps in mind what was believed that is dated ahead: a start believes nothing from
    /// before itself by its date, and such frames are not.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remembering(self, file: &Path) -> io::Result<Self> {
        let ahead = Ahead::open(file, self.started_at)?;
        Ok(Self { ahead: Some(Mutex::new(ahead)), ..self })
    }

    /// Remembers a frame whose MAC was found right. A frame that is refused leaves no trace.
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
        let mut ahead = self.ahead.as_ref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        if ahead.as_ref().is_some_and(|it| it.has(from, ts, nonce)) {
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
        if ts > now
            && let Some(ahead) = &mut ahead
        {
            // What cannot be kept in mind over a start is not believed.
            ahead.keep(from, ts, nonce, oldest).map_err(|err| {
                tracing::warn!(%err, "a frame that is dated ahead cannot be kept in mind");
                Rejected::TooNew
            })?;
        }
        seen.buckets.entry(ts).or_default().insert(mark);
        seen.count += 1;
        Ok(())
    }

    /// For how long before and after the present frames are believed.
    pub fn window_seconds(&self) -> u64 {
        self.window_seconds
    }

    /// How many nonces are remembered.
    pub fn remembered(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).count
    }
}

/// Frames dated ahead that were believed, over starts: one line for each, with its second and a digest of the rest.
struct Ahead {
    path: PathBuf,
    file: File,
    lines: usize,
    known: BTreeSet<(u64, String)>,
}

/// Lines beyond those that are still of use before the file is written afresh.
const AHEAD_LINES_OVER: usize = 1_024;

impl Ahead {
    fn open(path: &Path, since: u64) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(err) if err.kind() == io::ErrorKind::NotFound => String::new(),
            Err(err) => return Err(err),
        };
        let line = |line: &str| {
            let (ts, rest) = line.split_once(' ')?;
            Some((ts.parse().ok()?, rest.to_owned()))
        };
        let known = text.lines().filter_map(line).filter(|(ts, _)| *ts >= since).collect();
        Self::afresh(path, known)
    }

    fn afresh(path: &Path, known: BTreeSet<(u64, String)>) -> io::Result<Self> {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let mut options = File::options();
        options.create(true).write(true).truncate(true);
        let mut file = crate::system::private_file(&mut options).open(&fresh)?;
        let text: String = known.iter().map(|(ts, rest)| format!("{ts} {rest}\n")).collect();
        file.write_all(text.as_bytes())?;
        std::fs::rename(&fresh, path)?;
        Ok(Self { path: path.to_owned(), file, lines: known.len(), known })
    }

    fn mark(from: &str, ts: u64, nonce: &str) -> (u64, String) {
        (ts, Digest::of_fields([from.as_bytes(), nonce.as_bytes()]).to_string())
    }

    fn has(&self, from: &str, ts: u64, nonce: &str) -> bool {
        self.known.last().is_some_and(|(last, _)| ts <= *last)
            && self.known.contains(&Self::mark(from, ts, nonce))
    }

    fn keep(&mut self, from: &str, ts: u64, nonce: &str, oldest: u64) -> io::Result<()> {
        while self.known.first().is_some_and(|(second, _)| *second < oldest) {
            self.known.pop_first();
        }
        if self.lines > self.known.len() + AHEAD_LINES_OVER {
            *self = Self::afresh(&self.path, std::mem::take(&mut self.known))?;
        }
        let (ts, rest) = Self::mark(from, ts, nonce);
        self.file.write_all(format!("{ts} {rest}\n").as_bytes())?;
        self.lines += 1;
        self.known.insert((ts, rest));
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

    /// Raises the floor also when the second has left the window, in case the clock is set back.
    fn forget_oldest(&mut self) {
        if let Some((second, bucket)) = self.buckets.pop_first() {
            self.count -= bucket.len();
            self.floor = self.floor.max(second.saturating_add(1));
        }
    }
}
