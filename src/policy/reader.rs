//! Reads TOML so that every complaint names its line and its key.
//!
//! It collects all problems of a file, so that a person can repair them together.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use provost_base::nearest;

/// A mistake in a file, in words that let its author repair it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file's name, as the caller gave it.
    pub file: Box<str>,
    /// The line, counted from one.
    pub line: usize,
    /// The mistake, and the next step.
    pub what: Box<str>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// All mistakes in a file; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A value with its place in the text.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// Collects the problems of one file.
pub(super) struct Notes<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, problems: Vec::new() }
    }

    /// Returns the line of a byte of the text.
    pub(super) fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        1 + before.filter(|byte| **byte == b'\n').count()
    }

    pub(super) fn add(&mut self, at: usize, what: impl Into<String>) {
        let line = self.line(at);
        self.add_line(line, what);
    }

    pub(super) fn add_line(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem { file: self.file.into(), line, what: what.into().into() });
    }

    /// Returns `value`, unless there are problems.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, Problems> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.problems.is_empty() { Ok(value) } else { Err(Problems(self.problems)) }
    }

    /// Parses the text as TOML; `None`, and a problem, if it is none.
    pub(super) fn toml(&mut self) -> Option<Spanned<DeTable<'a>>> {
        match DeTable::parse(self.text) {
            Ok(table) => Some(table),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                self.add(at, format!("this is not TOML: {}", error.message()));
                None
            }
        }
    }
}

/// A table of the file whose keys are known in advance.
pub(super) struct Section<'t, 'i> {
    prefix: String,
    at: usize,
    table: &'t DeTable<'i>,
}

impl<'t, 'i> Section<'t, 'i> {
    /// Takes a table and complains about keys that are not in `known`.
    pub(super) fn new(
        notes: &mut Notes<'_>,
        table: &'t DeTable<'i>,
        at: usize,
        prefix: &str,
        known: &[&str],
    ) -> Self {
        for (key, _) in table {
            let name = key.get_ref();
            if !known.contains(&name.as_ref()) {
                let hint = suggestion(name, known, prefix);
                notes.add(key.span().start, format!("`{prefix}{name}` is not a key known here{hint}"));
            }
        }
        Self { prefix: prefix.to_owned(), at, table }
    }

    /// Returns where the section begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn entry(&self, key: &str) -> Option<(usize, &'t Value<'i>)> {
        let (name, value) = self.table.iter().find(|(name, _)| name.get_ref() == key)?;
        Some((name.span().start, value))
    }

    /// Returns the place of a key; the section's beginning if the key is absent.
    pub(super) fn place(&self, key: &str) -> usize {
        self.entry(key).map_or(self.at, |(at, _)| at)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    pub(super) fn wrong(&self, notes: &mut Notes<'_>, key: &str, why: impl fmt::Display) {
        notes.add(self.place(key), format!("`{}{key}`: {why}", self.prefix));
    }

    /// Returns a table within this one; `None`, without a complaint, if it is absent.
    pub(super) fn section(
        &self,
        notes: &mut Notes<'_>,
        key: &str,
        known: &[&str],
    ) -> Option<Section<'t, 'i>> {
        let (at, value) = self.entry(key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(notes, key, "must be a table");
            return None;
        };
        Some(Section::new(notes, table, at, &format!("{key}."), known))
    }

    /// Returns a list of tables within this one.
    pub(super) fn sections(&self, notes: &mut Notes<'_>, key: &str, known: &[&str]) -> Vec<Section<'t, 'i>> {
        let Some((_, value)) = self.entry(key) else { return Vec::new() };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(notes, key, "must be a list of tables");
            return Vec::new();
        };
        let mut found = Vec::new();
        for item in list {
            match item.get_ref().as_table() {
                Some(table) => found.push(Section::new(notes, table, item.span().start, "", known)),
                None => notes.add(item.span().start, format!("`{}{key}` must hold tables", self.prefix)),
            }
        }
        found
    }

    /// Reads a text and converts it.
    pub(super) fn text<T>(
        &self,
        notes: &mut Notes<'_>,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (_, value) = self.entry(key)?;
        match value.get_ref().as_str().map(read) {
            Some(Ok(it)) => Some(it),
            Some(Err(why)) => {
                self.wrong(notes, key, why);
                None
            }
            None => {
                self.wrong(notes, key, "must be a text in quotes");
                None
            }
        }
    }

    /// Reads one text or a list of texts. An empty list is refused, since nothing could ever match it.
    pub(super) fn texts<T>(
        &self,
        notes: &mut Notes<'_>,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let (_, value) = self.entry(key)?;
        let Some(list) = value.get_ref().as_array() else {
            return self.text(notes, key, read).map(|one| vec![one]);
        };
        if list.is_empty() {
            self.wrong(notes, key, "is empty, which nothing can match; leave it out or list something");
        }
        let mut found = Vec::new();
        for item in list {
            match item.get_ref().as_str().map(&read) {
                Some(Ok(it)) => found.push(it),
                Some(Err(why)) => notes.add(item.span().start, format!("`{}{key}`: {why}", self.prefix)),
                None => {
                    notes.add(item.span().start, format!("`{}{key}` must hold texts in quotes", self.prefix));
                }
            }
        }
        Some(found)
    }

    /// Reads a whole number that is not negative.
    pub(super) fn number(&self, notes: &mut Notes<'_>, key: &str) -> Option<u64> {
        let (_, value) = self.entry(key)?;
        let number = value.get_ref().as_integer();
        let read = number.and_then(|it| u64::from_str_radix(it.as_str(), it.radix()).ok());
        if read.is_none() {
            self.wrong(notes, key, "must be a whole number that is not negative");
        }
        read
    }

    /// Reads a whole number that fits 32 bits.
    pub(super) fn small(&self, notes: &mut Notes<'_>, key: &str) -> Option<u32> {
        let number = self.number(notes, key)?;
        let read = u32::try_from(number).ok();
        if read.is_none() {
            self.wrong(notes, key, "is too large");
        }
        read
    }

    /// Reads a number, or a text that stands for one.
    pub(super) fn amount(
        &self,
        notes: &mut Notes<'_>,
        key: &str,
        read: impl Fn(&str) -> Result<u64, String>,
    ) -> Option<u64> {
        let (_, value) = self.entry(key)?;
        if value.get_ref().is_integer() { self.number(notes, key) } else { self.text(notes, key, read) }
    }

    /// Reads a condition that can only be switched on.
    pub(super) fn switch(&self, notes: &mut Notes<'_>, key: &str) -> bool {
        let Some((_, value)) = self.entry(key) else { return false };
        let on = value.get_ref().as_bool() == Some(true);
        if !on {
            self.wrong(notes, key, "can only be `true`; leave it out otherwise");
        }
        on
    }
}

/// Finds one of several words; the error lists them all.
pub(super) fn choice<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, String> {
    if let Some((_, it)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*it);
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(format!("`{text}` is not one of {}{}", known.join(", "), suggestion(text, &known, "")))
}

/// Reads a text that must not be empty.
pub(super) fn words(text: &str) -> Result<Box<str>, String> {
    if text.trim().is_empty() { Err("is empty".to_owned()) } else { Ok(text.into()) }
}

/// Returns "; did you mean ...?" if one of the known words is close.
fn suggestion(text: &str, known: &[&str], prefix: &str) -> String {
    match nearest(text, known.iter().copied()) {
        Some(word) => format!("; did you mean `{prefix}{word}`?"),
        None if prefix.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    }
}
