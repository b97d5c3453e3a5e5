//! Messages between agents, as they are chosen and read.

use provost_base::{PostSeq, Slug, Timestamp};
use provost_domain::{Event, EventKind, Post, Proof};

/// A choice of messages between agents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Letters {
    /// The messages in an agent's inbox after a number.
    In(Slug, PostSeq),
    /// All after a number.
    After(PostSeq),
    /// The newest that there is room for.
    Newest,
    /// All before a number, newest first.
    Before(PostSeq),
}

/// A message between agents, at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredPost {
    /// Its number here; another one than its own where it had to wait for its reader.
    pub n: PostSeq,
    /// The number with which it was published.
    pub own: PostSeq,
    /// When it was published.
    pub at: Timestamp,
    /// The message, as it was published.
    pub post: Post,
    /// By what its sender has proven the name in it; `None` where it only says so.
    pub proof: Option<Proof>,
}

impl StoredPost {
    /// A letter from the event that carries it; `None` for an event of another kind.
    pub fn of(n: PostSeq, event: Event) -> Option<Self> {
        let EventKind::Published { n: own, post, proof, .. } = event.kind else { return None };
        Some(Self { n, own, at: event.at, post, proof })
    }
}
