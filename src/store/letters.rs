//! Messages between agents, as readers choose and get them.

use provost_base::{PostSeq, Slug, Timestamp};
use provost_domain::{Event, EventKind, Post, Proof};

/// A choice of messages between agents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Letters {
    /// The messages in an agent's inbox after a number.
    In(Slug, PostSeq),
    /// All messages after a number.
    After(PostSeq),
    /// The newest messages that fit.
    Newest,
    /// All messages before a number, newest first.
    Before(PostSeq),
}

/// A message between agents, at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredPost {
    /// Its number here, which differs from its own if it had to wait for its reader.
    pub n: PostSeq,
    /// The number with which it was published.
    pub own: PostSeq,
    /// When it was published.
    pub at: Timestamp,
    /// The message, as it was published.
    pub post: Post,
    /// The proof of the sender's name; `None` if the sender only claims it.
    pub proof: Option<Proof>,
}

impl StoredPost {
    /// Returns the message in an event; `None` for an event of another kind.
    pub fn of(n: PostSeq, event: Event) -> Option<Self> {
        let EventKind::Published { n: own, post, proof, .. } = event.kind else { return None };
        Some(Self { n, own, at: event.at, post, proof })
    }
}
