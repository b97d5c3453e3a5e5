//! Names of resources, things other than files that agents share, such as `@port:5432`, `@db:test` and `@gpu:2`.
//!
//! ```text
//! @KIND            KIND   begins with a letter of a-z, then a-z, 0-9 and `-`; at most 32 bytes
//! @KIND:VALUE      VALUE  letters and digits of one script, and . _ - + / : between them; at most 128 bytes
//! ```
//! Large letters are read as small ones, so that two agents that write one name differently mean one resource. A
//! name that looks like another one is refused, by the rules for names of agents. A text that begins with `@` is a
//! resource unless its first `/` comes before its first `:`; a file with such a name is written `./@name`.

use std::fmt;

use super::digest::Digest;
use super::limits::{RESOURCE_KIND_LEN_MAX, RESOURCE_VALUE_LEN_MAX};
use super::lookalikes::{self, Unclear};
use super::small;

/// The kind whose values are numbers of ports.
const PORT: &str = "port";

/// The kind of git's things in each work tree.
const GIT: &str = "git";

/// The part of a work tree's name in the name of its index, in characters, before the digest of its path.
const TREE_CHARS: usize = 40;

/// The character before the number of a grant, in the name of an agent's units of a counted kind. No value has it.
const GRANT: char = '#';

/// The reason why the name of a resource was refused. Safe to show to the client that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadResource {
    /// It does not begin with `@`.
    #[error("is no resource: one begins with `@`, such as @db:test")]
    NoSign,
    /// It has no kind, or a kind with other characters.
    #[error(
        "has no kind before its colon, which is a letter of a-z and then a-z, 0-9 or `-`, such as @db:test; a file of that \
         name is written with `./` before it"
    )]
    Kind,
    /// The kind is too long.
    #[error("has a kind of more than {RESOURCE_KIND_LEN_MAX} bytes")]
    KindTooLong,
    /// It has a colon, and nothing after it.
    #[error("has nothing after its colon; leave the colon out, or name one")]
    Empty,
    /// The value is too long.
    #[error("has more than {RESOURCE_VALUE_LEN_MAX} bytes after its colon")]
    TooLong,
    /// It has control characters: terminal escapes and line breaks do not belong in a name.
    #[error("contains a control character")]
    ControlCharacter,
    /// It has a character that values may not have.
    #[error("contains {0:?}; after the colon there are letters, digits and . _ - + / : between them")]
    Character(char),
    /// It has a point, a dash or the like where a letter or digit is required.
    #[error("begins or ends with {0:?} after its colon; there it has a letter or digit")]
    Edge(char),
    /// It cannot be distinguished from another name by its looks.
    #[error("{0}")]
    Unclear(Unclear),
    /// It names a port that no machine has.
    #[error("is no port: that is a number from 1 to 65535, such as @port:5432")]
    Port,
}

/// The name of a resource, in the one spelling by which it is compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Resource {
    kind: Box<str>,
    value: Option<Box<str>>,
}

impl Resource {
    /// Checks whether a text means a resource, and not a symbol or file: it begins with `@`, and has no `/` before
    /// its first colon.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with('@') && !text.split(':').next().unwrap_or_default().contains(['/', '\\'])
    }

    /// Reads `@kind` or `@kind:value`.
    ///
    /// # Errors
    /// [`BadResource`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, BadResource> {
        let name = text.strip_prefix('@').ok_or(BadResource::NoSign)?;
        if name.chars().any(char::is_control) {
            return Err(BadResource::ControlCharacter);
        }
        let (kind, value) = match name.split_once(':') {
            Some((kind, value)) => (kind, Some(value)),
            None => (name, None),
        };
        if kind.len() > RESOURCE_KIND_LEN_MAX {
            return Err(BadResource::KindTooLong);
        }
        let kind = kind.to_ascii_lowercase();
        let is_kind = kind.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
            && kind.starts_with(|it: char| it.is_ascii_lowercase());
        if !is_kind {
            return Err(BadResource::Kind);
        }
        let value = value.map(read_value).transpose()?;
        if kind == PORT {
            let number = value.as_deref().filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
            let number = number.and_then(|it| it.parse::<u16>().ok()).filter(|it| *it > 0);
            return Ok(Self::port(number.ok_or(BadResource::Port)?));
        }
        Ok(Self { kind: kind.into(), value })
    }

    /// Returns the resource for a port of this machine.
    pub fn port(number: u16) -> Self {
        Self { kind: PORT.into(), value: Some(number.to_string().into()) }
    }

    /// Returns the resource as it is in a linked work tree: each has an index of git's own. Every other resource is
    /// one for all.
    #[must_use]
    pub fn in_tree(self, tree: &str) -> Self {
        if &*self.kind != GIT || self.value.as_deref() != Some("index") {
            return self;
        }
        let name = tree.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
        let plain = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
        let name: String = name.chars().map(plain).take(TREE_CHARS).collect();
        let value = format!("index:{}-{}", name.trim_matches('-'), Digest::of(tree.as_bytes()).short());
        Self { value: Some(value.replace(":-", ":").into()), ..self }
    }

    /// Checks whether it is git's index of a work tree.
    pub fn is_git_index(&self) -> bool {
        let rest = self.value.as_deref().and_then(|it| it.strip_prefix("index"));
        &*self.kind == GIT && rest.is_some_and(|it| it.is_empty() || it.starts_with(':'))
    }

    /// Returns the word before the colon, without its `@`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the part after the colon.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Returns the number of the port, if it is one.
    pub fn as_port(&self) -> Option<u16> {
        (&*self.kind == PORT).then(|| self.value.as_deref()?.parse().ok()).flatten()
    }

    /// Returns how many units of a counted kind are asked for: one if no number is named; `None` if the value is
    /// not a number.
    pub fn units(&self) -> Option<u64> {
        match &self.value {
            None => Some(1),
            Some(text) if text.bytes().all(|it| it.is_ascii_digit()) => {
                Some(text.parse().unwrap_or(u64::MAX))
            }
            Some(_) => None,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "@{}:{value}", self.kind),
            None => write!(f, "@{}", self.kind),
        }
    }
}

fn read_value(value: &str) -> Result<Box<str>, BadResource> {
    if value.is_empty() {
        return Err(BadResource::Empty);
    }
    if value.len() > RESOURCE_VALUE_LEN_MAX {
        return Err(BadResource::TooLong);
    }
    // This comes before the check of characters, since it names the one that a reader does not see.
    lookalikes::check(value).map_err(BadResource::Unclear)?;
    let between = |it: char| matches!(it, '.' | '_' | '-' | '+' | '/' | ':');
    if let Some(other) = value.chars().find(|it| !it.is_alphanumeric() && !between(*it)) {
        return Err(BadResource::Character(other));
    }
    let edges = [value.chars().next(), value.chars().next_back()];
    if let Some(edge) = edges.into_iter().flatten().find(|it| between(*it)) {
        return Err(BadResource::Edge(edge));
    }
    Ok(value.chars().map(small).collect::<String>().into())
}

/// Returns the beginning of the names under which units of a counted kind are kept.
pub fn held_of(kind: &str) -> String {
    format!("@{kind}{GRANT}")
}

/// Checks whether a text is the name of a grant of a counted kind, such as `@gpu#12`.
pub(super) fn is_grant(text: &str) -> bool {
    text.strip_prefix('@').and_then(|it| it.split_once(GRANT)).is_some_and(|(kind, number)| {
        Resource::parse(&format!("@{kind}")).is_ok_and(|it| it.kind() == kind && it.value.is_none())
            && number.parse::<u64>().is_ok()
    })
}
