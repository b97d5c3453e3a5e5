//! The forms of conditions: how a rule writes the value, and when the condition holds.
//!
//! A row of [`super::condition`] names a form and the property of the request that it examines. Most new
//! conditions need no new form.

use std::fmt::Debug;

use serde::Serialize;

use super::file::{ACTIONS, DOORS, GITS, KINDS, NETS, Net, PROOFS, Ruling, TIERS};
use super::glob::{NameGlobs, PathGlobs, name_pattern, path_pattern};
use super::reader::{Notes, Section, choice};
use super::subject::{NamedPaths, WorkingDir};
use super::units::{Hours, duration, hours, size};
use provost_base::{Timestamp, Ttl};
use provost_domain::{Action, Door, Git, Proof, Tier, ToolPath, WorkerKind};

/// A form of condition: the value that a rule states, and the property of a request that it is compared with.
pub(super) trait Form: Sized {
    /// The property, borrowed from the request.
    type Found<'a>;
    /// The value, prepared for repeated comparison.
    type Test: Clone + Debug + Send + Sync + 'static;

    /// Reads the value; `None` where the key is absent, or wrong and noted.
    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self>;

    /// Returns the value as text, for people and for comparison.
    fn text(&self) -> String;

    /// Prepares the value for a rule of this kind.
    ///
    /// # Errors
    /// A sentence, if the patterns together are too large to compile, or make no sense in such a rule.
    fn compile(&self, ruling: Ruling) -> Result<Self::Test, String>;

    fn holds(test: &Self::Test, found: Self::Found<'_>) -> bool;

    /// Returns the property as text, for people.
    fn shown(found: Self::Found<'_>) -> String;
}

/// A property whose value is one of a few words.
pub(super) trait Keyword: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// Each word as rules write it, in the order of the normal form.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the values that one word of a rule stands for.
    ///
    /// # Errors
    /// A sentence that lists the known words.
    fn read(text: &str) -> Result<Vec<Self>, String> {
        choice(Self::WORDS, text).map(|one| vec![one])
    }
}

macro_rules! words {
    ($($type:ty: $words:expr),+ $(,)?) => {
        $(impl Keyword for $type {
            const WORDS: &'static [(&'static str, Self)] = $words;
        })+
    };
}

words! { Action: ACTIONS, Door: DOORS, Proof: PROOFS, WorkerKind: KINDS, Tier: TIERS, Git: GITS }

impl Keyword for Net {
    const WORDS: &'static [(&'static str, Self)] = NETS;

    /// Reads `any` as every kind of network but `none`.
    fn read(text: &str) -> Result<Vec<Self>, String> {
        match text {
            "any" => Ok(vec![Net::Ports, Net::Hosts]),
            _ => choice(NETS, text).map(|net| vec![net]).map_err(|why| format!("{why}, or any")),
        }
    }
}

fn names<T: Keyword>(values: &[T]) -> String {
    let known = |value: &T| T::WORDS.iter().find(|(_, it)| it == value).map(|(name, _)| *name);
    values.iter().filter_map(known).collect::<Vec<_>>().join(", ")
}

/// A list of words. The condition holds when the property is one of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OneOf<T>(pub Vec<T>);

impl<T: PartialEq> OneOf<T> {
    pub(super) fn contains(&self, value: &T) -> bool {
        self.0.contains(value)
    }
}

impl<T: Keyword> Form for OneOf<T> {
    type Found<'a> = T;
    type Test = Vec<T>;

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        let listed = from.texts(notes, key, T::read)?.concat();
        let in_order = T::WORDS.iter().map(|(_, it)| *it).filter(|it| listed.contains(it));
        Some(Self(in_order.collect()))
    }

    fn text(&self) -> String {
        names(&self.0)
    }

    fn compile(&self, _ruling: Ruling) -> Result<Vec<T>, String> {
        Ok(self.0.clone())
    }

    fn holds(test: &Vec<T>, found: T) -> bool {
        test.contains(&found)
    }

    fn shown(found: T) -> String {
        names(&[found])
    }
}

/// Returns the texts of a rule, sorted, each once.
pub(super) fn texts(
    notes: &mut Notes<'_>,
    from: &Section<'_, '_>,
    key: &str,
    check: impl Fn(&str) -> Result<Box<str>, String>,
) -> Option<Vec<Box<str>>> {
    let mut listed = from.texts(notes, key, check)?;
    listed.sort();
    listed.dedup();
    Some(listed)
}

/// Patterns over a name. The condition holds when one of them matches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Names(pub Vec<Box<str>>);

impl Form for Names {
    type Found<'a> = &'a str;
    type Test = NameGlobs;

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        texts(notes, from, key, name_pattern).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, _ruling: Ruling) -> Result<NameGlobs, String> {
        NameGlobs::new(&self.0)
    }

    fn holds(test: &NameGlobs, found: &str) -> bool {
        test.matches(found)
    }

    fn shown(found: &str) -> String {
        found.to_owned()
    }
}

/// Patterns over a working directory. The condition holds when one of them matches its path below the root,
/// or its absolute path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Folders(pub Vec<Box<str>>);

impl Form for Folders {
    type Found<'a> = &'a WorkingDir<'a>;
    type Test = PathGlobs;

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        texts(notes, from, key, |it| path_pattern(it, false)).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, _ruling: Ruling) -> Result<PathGlobs, String> {
        PathGlobs::new(&self.0)
    }

    fn holds(test: &PathGlobs, found: &WorkingDir<'_>) -> bool {
        test.matches(&found.relative) || test.matches(&found.absolute)
    }

    fn shown(found: &WorkingDir<'_>) -> String {
        found.absolute.to_string()
    }
}

/// Patterns over a delegation's path. The condition holds when none of them matches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PathsOutside(pub Vec<Box<str>>);

impl Form for PathsOutside {
    type Found<'a> = &'a str;
    type Test = PathGlobs;

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        texts(notes, from, key, |it| path_pattern(it, true)).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, _ruling: Ruling) -> Result<PathGlobs, String> {
        PathGlobs::new(&self.0)
    }

    fn holds(test: &PathGlobs, found: &str) -> bool {
        !test.matches(found)
    }

    fn shown(found: &str) -> String {
        found.to_owned()
    }
}

/// Patterns over the paths of a tool. For a delegation's one path, one of them must match. For the files that a
/// call of a host's tool names, a rule that allows needs a match of every file, any other rule of one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Paths(pub Vec<Box<str>>);

impl Form for Paths {
    type Found<'a> = NamedPaths<'a>;
    type Test = (PathGlobs, Ruling);

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        texts(notes, from, key, |it| path_pattern(it, true)).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, ruling: Ruling) -> Result<(PathGlobs, Ruling), String> {
        Ok((PathGlobs::new(&self.0)?, ruling))
    }

    fn holds((globs, ruling): &(PathGlobs, Ruling), found: NamedPaths<'_>) -> bool {
        let leads = |it: &ToolPath| it.at.iter().any(|at| globs.matches(at));
        match (found, ruling) {
            (NamedPaths::One(path), _) => globs.matches(path),
            (NamedPaths::OfCall(call), Ruling::Allow) => {
                call.complete
                    && !call.more
                    && !call.paths.is_empty()
                    && call.paths.iter().all(|it| it.sure && leads(it))
            }
            (NamedPaths::OfCall(call), Ruling::Approve | Ruling::Deny) => {
                call.more
                    || call.paths.iter().any(|it| it.anywhere || leads(it) || globs.matches(&it.spelled))
                    || call.open.iter().any(|it| globs.may_match(it))
            }
        }
    }

    fn shown(found: NamedPaths<'_>) -> String {
        match found {
            NamedPaths::One(path) => path.to_owned(),
            NamedPaths::OfCall(call) => match &call.paths[..] {
                [] => "no path".to_owned(),
                paths => paths
                    .iter()
                    .map(|it| it.at.first().unwrap_or(&it.spelled).to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            },
        }
    }
}

/// Phrases. The condition holds when one of them occurs in a command as whole words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Phrases(pub Vec<Box<str>>);

impl Form for Phrases {
    type Found<'a> = &'a str;
    type Test = Vec<Box<str>>;

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        let check = |text: &str| match command_words(text).next() {
            Some(_) => Ok(text.into()),
            None => Err(format!("`{text}` has no letters or digits to look for")),
        };
        texts(notes, from, key, check).map(Self)
    }

    fn text(&self) -> String {
        self.0.join(", ")
    }

    fn compile(&self, _ruling: Ruling) -> Result<Vec<Box<str>>, String> {
        Ok(self.0.clone())
    }

    fn holds(test: &Vec<Box<str>>, found: &str) -> bool {
        test.iter().any(|phrase| says(found, phrase))
    }

    fn shown(found: &str) -> String {
        found.to_owned()
    }
}

/// Returns the words of a command: runs of letters, digits and `_`. So `/usr/bin/sudo` contains `sudo`, but
/// `pseudo` does not.
fn command_words(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Checks whether the words of a phrase occur in sequence.
fn says(command: &str, phrase: &str) -> bool {
    let mut rest = command_words(command);
    loop {
        let mut here = rest.clone();
        if command_words(phrase).all(|word| here.next().is_some_and(|it| it.eq_ignore_ascii_case(word))) {
            return true;
        }
        if rest.next().is_none() {
            return false;
        }
    }
}

/// `true`: the request lacks the property that others name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missing;

impl Form for Missing {
    type Found<'a> = Option<&'a str>;
    type Test = ();

    fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
        from.switch(notes, key).then_some(Self)
    }

    fn text(&self) -> String {
        "true".to_owned()
    }

    fn compile(&self, _ruling: Ruling) -> Result<(), String> {
        Ok(())
    }

    fn holds((): &(), found: Option<&str>) -> bool {
        found.is_none()
    }

    fn shown(found: Option<&str>) -> String {
        found.unwrap_or("nothing").to_owned()
    }
}

/// Forms whose value can be compared as it is.
macro_rules! plain {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident($value:ty) of $found:ty: $read:expr, $text:expr, $holds:expr, $shown:expr;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
            pub struct $name(pub $value);

            impl Form for $name {
                type Found<'a> = $found;
                type Test = $value;

                fn read(notes: &mut Notes<'_>, from: &Section<'_, '_>, key: &str) -> Option<Self> {
                    $read(from, notes, key).map(Self)
                }

                fn text(&self) -> String {
                    $text(self.0)
                }

                fn compile(&self, _ruling: Ruling) -> Result<$value, String> {
                    Ok(self.0)
                }

                fn holds(test: &$value, found: $found) -> bool {
                    $holds(found, *test)
                }

                fn shown(found: $found) -> String {
                    $shown(found)
                }
            }
        )+
    };
}

plain! {
    /// More than a number.
    CountOver(u32) of u32: |from: &Section<'_, '_>, notes: &mut Notes<'_>, key: &str| from.small(notes, key),
        |it: u32| it.to_string(), |found, most| found > most, |it: u32| it.to_string();
    /// More than a size, in bytes.
    BytesOver(u64) of u64: read_size, |it: u64| it.to_string(), |found, most| found > most, |it: u64| it.to_string();
    /// At most a size, in bytes.
    BytesMax(u64) of u64: read_size, |it: u64| it.to_string(), |found, most| found <= most, |it: u64| it.to_string();
    /// More than a time; the request states seconds.
    TimeOver(Ttl) of u64:
        |from: &Section<'_, '_>, notes: &mut Notes<'_>, key: &str| from.text(notes, key, duration),
        |it: Ttl| format!("{}s", f64::from(it.as_millis()) / 1000.0), lasts_longer, |it: u64| format!("{it}s");
    /// Within a part of every day.
    Within(Hours) of Timestamp:
        |from: &Section<'_, '_>, notes: &mut Notes<'_>, key: &str| from.text(notes, key, hours),
        |it: Hours| it.to_string(), |now, hours: Hours| hours.hold(now), |it: Timestamp| it.to_string();
}

fn read_size(from: &Section<'_, '_>, notes: &mut Notes<'_>, key: &str) -> Option<u64> {
    from.amount(notes, key, size)
}

fn lasts_longer(seconds: u64, most: Ttl) -> bool {
    seconds.saturating_mul(1000) > u64::from(most.as_millis())
}
