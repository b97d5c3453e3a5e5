//! Names that point into a repository. They are parsed once at the edge, and trusted inside.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::limits::PATH_LEN_MAX;

/// The error for a file that has a backslash in its name, as is possible on Unix.
pub const WITH_BACKSLASH: &str =
    "a backslash in a name counts as a slash, so that it would mean another file";

/// The reason why a path from a peer was refused. Safe to show to that peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadName {
    /// It has more than [`PATH_LEN_MAX`] bytes.
    #[error("is longer than {PATH_LEN_MAX} bytes")]
    TooLong,
    /// It has a character of Unicode's class of control characters, NUL included.
    #[error("contains a control character")]
    ControlCharacter,
    /// It begins with `/`, a drive letter or a backslash.
    #[error("must be relative to the repository root")]
    NotRelative,
    /// It has more `..` than directories before it.
    #[error("leaves the repository through `..`")]
    ClimbsOut,
}

/// A path inside the repository: relative, `/`-separated, normalised (no `.`, no `..`, no doubled or trailing
/// slash), never climbing out. The root itself is the empty path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(Box<str>);

impl RepoPath {
    /// Normalises and checks a path. `\` counts as `/`, since DevIt clients on Windows write it.
    ///
    /// The check is by spelling only; whether a symbolic link leads outside shows when the path is opened.
    ///
    /// # Errors
    /// [`BadName`] names the rule that the path breaks.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        if text.len() > PATH_LEN_MAX {
            return Err(BadName::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(BadName::ControlCharacter);
        }
        let text = text.replace('\\', "/");
        if text.starts_with('/') || text.as_bytes().get(1) == Some(&b':') {
            return Err(BadName::NotRelative);
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or(BadName::ClimbsOut)?;
                }
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/").into()))
    }

    /// Returns the path for a name that a file system or git has, if it means itself. A name that would mean
    /// another path here has none: on Unix a backslash is an ordinary character.
    pub fn as_is(text: &str) -> Option<Self> {
        Self::parse(text).ok().filter(|it| it.as_str() == text)
    }

    /// Returns the normalised text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks whether this is the repository root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

/// Collections with paths as keys can be searched by text that is normalised already.
impl std::borrow::Borrow<str> for RepoPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl TryFrom<String> for RepoPath {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        Self::parse(&text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> String {
        path.0.into()
    }
}

/// Folders relative to which paths are written: the top of the repository, and those of its work trees.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tops(Box<[String]>);

impl Tops {
    /// Returns these tops. A path is written relative to the innermost one.
    pub fn new<P: AsRef<Path>>(tops: impl IntoIterator<Item = P>) -> Self {
        let plain = |it: P| it.as_ref().to_str().map(normalised_path);
        let mut tops: Vec<String> = tops.into_iter().filter_map(plain).filter(|it| it != "/").collect();
        tops.sort_by_key(|it| std::cmp::Reverse(it.len()));
        Self(tops.into())
    }

    /// Returns an absolute path, or `file:symbol`, relative to a top; a relative path, and one outside, stays as it is.
    ///
    /// It goes by spelling only, as [`normalised_path`].
    pub fn inside<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !is_absolute(text) {
            return Cow::Borrowed(text);
        }
        let plain = normalised_path(text);
        let below = |top: &String| plain.strip_prefix(top.as_str())?.strip_prefix('/').map(str::to_owned);
        self.0.iter().find_map(below).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// Checks whether a path begins at the top of a file system, by the rules of any system.
pub fn is_absolute(text: &str) -> bool {
    let drive = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && matches!(text.as_bytes().get(1..3), Some(b":/" | b":\\"));
    text.starts_with(['/', '\\']) || drive
}

/// Brings a path that rules compare to its plainest spelling: `/` only, no `.`, no doubled or trailing slash, and
/// no `..` that can be resolved. An absolute path stays absolute and cannot climb above `/`; a relative one keeps
/// its leading `..`, so that rules can see it, and becomes `.` when nothing is left.
///
/// It goes by spelling only, and follows no link. The code that opens the path finds out where it leads.
pub fn normalised_path(text: &str) -> String {
    let text = text.replace('\\', "/");
    let absolute = text.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            name => parts.push(name),
        }
    }
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// Returns a path of the system without `.` and, by its spelling, without `..`; it cannot climb above its beginning.
pub fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
