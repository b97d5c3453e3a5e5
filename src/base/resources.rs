//! Names of resources, things other than files that agents share, such as `@port:5432`, `@db:test` and `@gpu:2`.
//!
//! ```text
//! @KIND            KIND   begins with a letter of a-z, then a-z, 0-9 and `-`; at most 32 bytes
//! @KIND:VALUE      VALUE  letters and digits of one script, and . _ - + / : between them; at most 128 bytes
//! ```
//! Large letters are read as small ones, so that two agents that write one name differently mean one
//! resource. A name that looks like another one is refused, by the rules for names of agents. What begins
//! with `@` is a resource where its first `/` does not come before its first `:`; a file of such a name is
//! written `./@name`.

use std::fmt;

use super::digest::Digest;
use super::limits::{RESOURCE_KIND_LEN_MAX, RESOURCE_VALUE_LEN_MAX};
use super::lookalikes::{self, Unclear};
use super::small;

/// The kind whose values are numbers of ports.
const PORT: &str = "port";

/// The kind of what git has in each work tree.
const GIT: &str = "git";

/// How much of a work tree's name stands in the name of its index, before the digest of its path.
const TREE_CHARS: usize = 40;

/// The character before the number of a grant, in the name of what is held of a counted kind. No value has it.
const GRANT: char = '#';

/// Why the name of a resource was turned down. Safe to show to the client that sent it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadResource {
    /// It does not begin with `@`.
    #[error("is no resource: one begins with `@`, such as @db:test")]
    NoSign,
    /// There is no kind, or one with other characters.
    #[error(
        "has no kind before its colon, which is a letter of a-z and then a-z, 0-9 or `-`, such as @db:test; a file of that \
         name is written with `./` before it"
    )]
    Kind,
    /// Longer than a kind is.
    #[error("has a kind of more than {RESOURCE_KIND_LEN_MAX} bytes")]
    KindTooLong,
    /// A colon, and nothing after it.
    #[error("has nothing after its colon; leave the colon out, or name one")]
    Empty,
    /// Longer than a value is.
    #[error("has more than {RESOURCE_VALUE_LEN_MAX} bytes after its colon")]
    TooLong,
    /// Terminal escapes and line breaks have no place in a name.
    #[error("contains a control character")]
    ControlCharacter,
    /// A character that no value has.
    #[error("contains {0:?}; after the colon there are letters, digits and . _ - + / : between them")]
    Character(char),
    /// A point, a dash or the like where a letter or digit has to be.
    #[error("begins or ends with {0:?} after its colon; there it has a letter or digit")]
    Edge(char),
    /// It cannot be told from another one by looking at it.
    #[error("{0}")]
    Unclear(Unclear),
    /// A port that no machine has.
    #[error("is no port: that is a number from 1 to 65535, such as @port:5432")]
    Port,
}

/// The name of a resource, in the one spelling that is compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Resource {
    kind: Box<str>,
    value: Option<Box<str>>,
}

impl Resource {
    /// Whether a text means a resource, and no symbol or file: it begins with `@`, and has no `/` before its
    /// first colon.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with('@') && !text.split(':').next().unwrap_or_default().contains(['/', '\\'])
    }

    /// Reads `@kind` or `@kind:value`.
    ///
    /// # Errors
    /// [`BadResource`] says what was wrong.
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

    /// A port of this machine.
    pub fn port(number: u16) -> Self {
        Self { kind: PORT.into(), value: Some(number.to_string().into()) }
    }

    /// The resource as it is in a linked work tree: each has an index of git's own. Everything else is one
    /// for all.
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

    /// Whether it is git's index of a work tree.
    pub fn is_git_index(&self) -> bool {
        let rest = self.value.as_deref().and_then(|it| it.strip_prefix("index"));
        &*self.kind == GIT && rest.is_some_and(|it| it.is_empty() || it.starts_with(':'))
    }

    /// The word before the colon, without its `@`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What is after the colon.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The number of the port, if it is one.
    pub fn as_port(&self) -> Option<u16> {
        (&*self.kind == PORT).then(|| self.value.as_deref()?.parse().ok()).flatten()
    }

    /// How many of a counted kind are asked for: one where no number is named; `None` where its value is no
    /// number.
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
    // Before the characters, since it names the one that a reader does not see.
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

/// The beginning of the names under which what is held of a counted kind is kept.
pub fn held_of(kind: &str) -> String {
    format!("@{kind}{GRANT}")
}

/// Whether a text is the name of a grant of a counted kind, such as `@gpu#12`.
pub(super) fn is_grant(text: &str) -> bool {
    text.strip_prefix('@').and_then(|it| it.split_once(GRANT)).is_some_and(|(kind, number)| {
        Resource::parse(&format!("@{kind}")).is_ok_and(|it| it.kind() == kind && it.value.is_none())
            && number.parse::<u64>().is_ok()
    })
}
