//! What happened outside of the core and is put on record.

use serde::{Deserialize, Serialize};

use crate::base::Json;

/// Something that happened outside the core and belongs in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// What kind of thing: `daemon.started`, `key.added`, `policy.loaded`, ...
    pub what: Box<str>,
    /// About what: an ident, a file.
    pub subject: Box<str>,
    /// Details without secrets.
    pub details: Json,
}

/// It is in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded;
