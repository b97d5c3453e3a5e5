//! The names of one file, each stored once: a graph of thousands of files consists mostly of names.

use std::collections::BTreeMap;

/// A name, as a number in its file's [`InternedNames`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct NameId(u32);

/// Names stored one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InternedNames {
    text: Box<str>,
    /// The offset at which each name ends; the next one begins there.
    ends: Box<[u32]>,
}

impl InternedNames {
    pub(super) fn get(&self, word: NameId) -> &str {
        let at = word.0 as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[at] as usize]
    }

    /// Whether both begin with the same words, so many of them.
    pub(super) fn agree(&self, other: &Self, many: usize) -> bool {
        let ends = |words: &Self| words.ends.get(..many).map(<[u32]>::to_vec);
        let (Some(ours), Some(theirs)) = (ends(self), ends(other)) else { return false };
        let len = ours.last().map_or(0, |end| *end as usize);
        ours == theirs && self.text[..len] == other.text[..len]
    }

    pub(super) fn weight(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }
}

/// Collects the names of one file, each once.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    ends: Vec<u32>,
    known: BTreeMap<Box<str>, NameId>,
}

impl Writer {
    pub(super) fn word(&mut self, text: &str) -> NameId {
        if let Some(word) = self.known.get(text) {
            return *word;
        }
        let word = NameId(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        self.text.push_str(text);
        // A file's words are shorter than the file, and that is far below 4 GiB.
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.known.insert(text.into(), word);
        word
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn done(self) -> InternedNames {
        InternedNames { text: self.text.into(), ends: self.ends.into() }
    }
}
