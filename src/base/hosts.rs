//! Hosts: the machines whose daemons work on one repository.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A host's id: 128 random bits, written as 32 lower-case hexadecimal digits. The default one is the host of a
/// daemon that writes alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostId(u128);

/// The length of a host's id as text, in bytes.
const HOST_ID_LEN: usize = 32;

impl HostId {
    /// Returns the host with these bits.
    pub const fn of(bits: u128) -> Self {
        Self(bits)
    }

    /// Checks whether this is the host of a daemon that writes alone, for members that are omitted then.
    pub fn is_alone(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first eight digits, by which people distinguish hosts.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a host's id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the id of a host is 32 lower-case hexadecimal digits")]
pub struct BadHostId;

impl std::str::FromStr for HostId {
    type Err = BadHostId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Only the one spelling is valid: no sign, no upper case.
        let is_id =
            text.len() == HOST_ID_LEN && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        if !is_id {
            return Err(BadHostId);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| BadHostId)
    }
}

impl TryFrom<String> for HostId {
    type Error = BadHostId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<HostId> for String {
    fn from(id: HostId) -> String {
        id.to_string()
    }
}

/// The role with which a machine joins a repository. The invitation has it, so no machine can change its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRole {
    /// Everything: people and agents there ask, answer and decide.
    #[default]
    Full,
    /// The machine carries out tasks that other hosts have asked for, and decides nothing else.
    Worker,
}

impl HostRole {
    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            HostRole::Full => "full",
            HostRole::Worker => "worker",
        }
    }

    /// Returns the role with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [HostRole::Full, HostRole::Worker].into_iter().find(|it| it.as_str() == word)
    }

    /// Checks whether it is the usual role, for members that are omitted then.
    pub fn is_full(&self) -> bool {
        *self == HostRole::Full
    }
}

/// One life of a host's daemon, from its start to its end. The default one is a daemon that writes alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonId {
    /// The host that it runs on.
    pub host: HostId,
    /// The host's incarnation: the number of its starts. It only rises.
    pub incarnation: u64,
}

impl DaemonId {
    /// Checks whether this is a daemon that writes alone, for members that are omitted then.
    pub fn is_alone(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for DaemonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.incarnation)
    }
}
