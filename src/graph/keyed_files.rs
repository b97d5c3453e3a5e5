//! Files by the keys under which they define or add something, or by which they ask other files for it. A file has many keys,
//! and most of them concern no other file. Their texts would be larger than all names of the graph, so a fingerprint of each is
//! kept instead. If two keys have one fingerprint, a file looks again for nothing, or looks through a file that does not have
//! the name.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

/// The fingerprint of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(u64);

/// Makes fingerprints with a secret of its own, so that no file can choose them.
#[derive(Default, Debug)]
pub(super) struct Fingerprints(RandomState);

impl Fingerprints {
    pub(super) fn of(&self, key: &str) -> Key {
        Key(self.0.hash_one(key))
    }
}

/// Files, by number, under keys.
#[derive(Default, Debug)]
pub(super) struct KeyedFiles(BTreeSet<(Key, u32)>);

impl KeyedFiles {
    /// The files under a key, in the order of their numbers.
    pub(super) fn under(&self, key: Key) -> impl Iterator<Item = u32> + '_ {
        self.0.range((key, 0)..=(key, u32::MAX)).map(|(_, file)| *file)
    }

    /// Checks whether a key has more files than so many. Counts no further.
    pub(super) fn has_more_than(&self, key: Key, most: usize) -> bool {
        self.under(key).nth(most).is_some()
    }

    pub(super) fn has(&self, key: Key, file: u32) -> bool {
        self.0.contains(&(key, file))
    }

    pub(super) fn insert(&mut self, key: Key, file: u32) {
        self.0.insert((key, file));
    }

    pub(super) fn remove(&mut self, key: Key, file: u32) {
        self.0.remove(&(key, file));
    }
}
