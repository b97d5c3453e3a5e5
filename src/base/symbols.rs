//! Names of things that can be locked: a file of the repository with the name of a symbol in it, or a resource.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::Fence;
use super::limits::SYMBOL_LEN_MAX;
use super::names::{BadName, RepoPath};
use super::resources::{BadResource, Resource, held_of, is_grant};

/// The reason why a symbol's name from a peer was refused. Safe to show to that peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSymbol {
    /// No colon separates the file from the symbol.
    #[error("has no colon: write it as file:symbol")]
    NoColon,
    /// The part before the colon is empty.
    #[error("names no file before its colon")]
    NoFile,
    /// The part before the colon is not a path in the repository.
    #[error("names a file whose path {0}")]
    File(BadName),
    /// It has more than [`SYMBOL_LEN_MAX`] bytes after the colon.
    #[error("is longer than {SYMBOL_LEN_MAX} bytes after its colon")]
    TooLong,
    /// It has control characters: terminal escapes and line breaks do not belong in a name.
    #[error("contains a control character")]
    ControlCharacter,
    /// It begins with `@`, but is not a resource.
    #[error("{0}")]
    Resource(BadResource),
}

/// The character between a symbol and the number of a lease beside others. No name from a peer has it.
const BESIDE: char = '\u{1f}';

/// A symbol in a file: `src/auth.ts:Session.renew`. It is split at the first colon; the file is normalised, the
/// symbol is as written. An empty symbol is the whole file. wit, 5.3.
///
/// Or a resource: `@db:test`, which is in no file. Its file is the root, where no symbol is, and its name is kept
/// as that of a symbol. A file that could be taken for a resource is written with `./` before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SymbolPath {
    file: RepoPath,
    symbol: Box<str>,
}

impl SymbolPath {
    /// Reads `file:symbol`.
    ///
    /// # Errors
    /// [`BadSymbol`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, BadSymbol> {
        let (file, symbol) = text.split_once(':').ok_or(BadSymbol::NoColon)?;
        let file = RepoPath::parse(file).map_err(BadSymbol::File)?;
        if file.is_root() {
            return Err(BadSymbol::NoFile);
        }
        Self::of(file, symbol)
    }

    /// Returns a symbol in a file.
    ///
    /// # Errors
    /// [`BadSymbol`] if the symbol is too long or contains a control character.
    pub fn of(file: RepoPath, symbol: &str) -> Result<Self, BadSymbol> {
        if symbol.len() > SYMBOL_LEN_MAX {
            return Err(BadSymbol::TooLong);
        }
        if symbol.chars().any(char::is_control) {
            return Err(BadSymbol::ControlCharacter);
        }
        Ok(Self { file, symbol: symbol.into() })
    }

    /// Reads a name that can be locked: `@kind:value`, `file:symbol`, or a file.
    ///
    /// # Errors
    /// [`BadSymbol`] names the rule that the text breaks.
    pub fn parse_lockable(text: &str) -> Result<Self, BadSymbol> {
        if Resource::is_meant(text) {
            return Resource::parse(text).map(|it| Self::of_resource(&it)).map_err(BadSymbol::Resource);
        }
        match text.contains(':') {
            true => Self::parse(text),
            false => Self::parse(&format!("{text}:")),
        }
    }

    /// Returns the path of a resource.
    pub fn of_resource(resource: &Resource) -> Self {
        Self { file: RepoPath::default(), symbol: resource.to_string().into() }
    }

    /// Returns the same symbol for a lease of another work tree, by the grant, since several agents may have one
    /// each; `None` if there is no room for the number.
    pub fn beside(&self, grant: Fence) -> Option<Self> {
        let symbol = format!("{}{BESIDE}{grant}", self.name());
        (symbol.len() <= SYMBOL_LEN_MAX).then(|| Self { file: self.file.clone(), symbol: symbol.into() })
    }

    /// Checks whether it belongs to such a lease.
    pub fn is_beside(&self) -> bool {
        self.symbol.contains(BESIDE)
    }

    /// Returns the symbol that such a lease is on; any other path stays the same.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { file: self.file.clone(), symbol: self.name().into() }
    }

    /// Returns the symbol's name without the number of a grant.
    pub fn name(&self) -> &str {
        self.symbol.split(BESIDE).next().unwrap_or_default()
    }

    /// Returns the path for an agent's units of a counted kind, by the grant.
    pub fn of_units(kind: &str, grant: Fence) -> Self {
        Self { file: RepoPath::default(), symbol: format!("{}{grant}", held_of(kind)).into() }
    }

    /// Checks whether it is a resource, and not a symbol.
    pub fn is_resource(&self) -> bool {
        self.file.is_root() && self.symbol.starts_with('@')
    }

    /// Returns the resource; `None` for a symbol, or a grant of a counted kind.
    pub fn resource(&self) -> Option<Resource> {
        if self.is_resource() { Resource::parse(&self.symbol).ok() } else { None }
    }

    /// Returns the file that it is in; for a resource, the root.
    pub fn file(&self) -> &RepoPath {
        &self.file
    }

    /// Returns the name within that file: `Session.renew`; empty for the whole file.
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Returns the same symbol in another file, or under another name of the same file.
    #[must_use]
    pub fn in_file(&self, file: RepoPath) -> Self {
        Self { file, symbol: self.symbol.clone() }
    }
}

/// Writes it as people and clients see it: without the number of a grant beside others.
impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_resource() {
            return f.write_str(&self.symbol);
        }
        let file = self.file.as_str();
        write!(f, "{}{file}:{}", if Resource::is_meant(file) { "./" } else { "" }, self.name())
    }
}

impl TryFrom<String> for SymbolPath {
    type Error = BadSymbol;
    /// Reads a stored path, which may be older than the rule that some names are resources.
    fn try_from(text: String) -> Result<Self, BadSymbol> {
        if is_grant(&text) {
            return Ok(Self { file: RepoPath::default(), symbol: text.into() });
        }
        if let Some((plain, grant)) = text.split_once(BESIDE) {
            let plain = Self::parse(plain)?;
            let grant = grant.parse().map_err(|_| BadSymbol::ControlCharacter)?;
            let grant = Fence(grant);
            return plain.beside(grant).ok_or(BadSymbol::TooLong);
        }
        match Resource::parse(&text) {
            Ok(resource) => Ok(Self::of_resource(&resource)),
            Err(_) => Self::parse(&text),
        }
    }
}

/// Writes it as a store keeps it.
impl From<SymbolPath> for String {
    fn from(path: SymbolPath) -> String {
        let grant = path.symbol.split_once(BESIDE).map(|(_, grant)| grant);
        match grant {
            Some(grant) => format!("{path}{BESIDE}{grant}"),
            None => path.to_string(),
        }
    }
}

/// Checks whether `inner` lies inside `outer`, by name: `Session.renew` in `Session`, and everything in a whole
/// file (the empty name).
pub fn encloses(outer: &str, inner: &str) -> bool {
    if outer.is_empty() {
        return !inner.is_empty();
    }
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// A range of bytes of a file: from `start` up to, and not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Span {
    /// The first byte, counted from 0 at the beginning of the file.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// Checks whether both have a byte in common.
    pub fn meets(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}
