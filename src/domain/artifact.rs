//! Files as a worker would have them.

use serde::{Deserialize, Serialize};

use crate::base::Digest;

/// One file. A6s 3.0 and 6.2.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Artifact {
    /// By which it is asked for.
    pub id: Box<str>,
    /// What it is: `file`, `test`, `delete`, `binary`, `log`, `snippet`, or anything that a client says.
    pub kind: Box<str>,
    /// Where it belongs, relative to the workspace, with `/`.
    pub path: Box<str>,
    /// All of it, as it would be; empty for `binary` and `delete`.
    pub content: Box<str>,
    /// By its name.
    pub language: Box<str>,
    /// Of what was there when it was made; `None` where nothing was, or nobody knows.
    pub base_hash: Option<Digest>,
}
