//! The status of each agent.
//!
//! ```text
//!              anything            done, verified, blocked, committed
//!   [a word] ------------> [a word] ------------------------------> [settled]
//!                              ^                                        |
//!                              +----- `working`, where that is news ----+
//! ```
//! A late sign of work does not undo a settled status. A commit and a block end as soon as their agent reports
//! work; `done` and `verified` some time later. Files that become clean change nothing.

use serde::{Deserialize, Serialize};

use super::{Post, Source, shortened};
use crate::Share;
use provost_base::limits::ROSTER_TEXT_MAX;
use provost_base::{AgentId, Slug, Timestamp};

/// An agent that has an inbox.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mailbox {
    /// The name that all spellings of the agent's name have in common.
    pub slug: Slug,
    /// The agent's name as it was last written.
    pub name: AgentId,
    /// The program that the agent runs as, if known.
    pub cli: Option<Box<str>>,
    /// The agent's status, once it has reported one.
    pub row: Option<Row>,
    /// When the daemon came to know the agent.
    pub since: Timestamp,
    /// The share to which its inbox counts: the one that the agent had when it became known; `None` for agents that
    /// the daemon names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

/// An agent's status, as the roster shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The status in one word.
    pub label: Box<str>,
    /// When the status became this one; a settled status counts from its last repeat.
    pub since: Timestamp,
    /// The agent's activity, if its last status had one.
    pub phase: Option<Box<str>>,
    /// When the agent last reported its status.
    pub seen: Timestamp,
}

/// Checks whether a word is one that other words do not replace easily.
pub(super) fn is_settled(label: &str) -> bool {
    matches!(label, "done" | "verified" | "blocked" | "committed")
}

/// Checks whether another program reports this status in an agent's name; then the agent itself has not been seen.
fn is_hearsay(status: &str, phase: Option<&str>) -> bool {
    let stuck =
        ["stuck-on-prompt", "stuck-stream-timeout", "context-bloat", "no-progress", "blocked-on-supervisor"];
    status == "auto_approved" || phase.is_some_and(|it| stuck.contains(&it))
}

impl Post {
    /// Checks whether a watching program has sent the post in the agent's name.
    pub(super) fn hearsay(&self) -> bool {
        matches!(self, Post::Status { status, phase, .. } if is_hearsay(status, phase.as_deref()))
    }
}

impl Mailbox {
    pub(super) fn new(slug: Slug, name: AgentId, now: Timestamp) -> Self {
        Self { slug, name, cli: None, row: None, since: now, share: None }
    }

    /// Returns the row after one of the agent's posts that changes the roster.
    pub(super) fn after(&self, now: Timestamp, post: &Post, source: Source, settle_s: u64) -> Self {
        let (label, phase): (&str, Option<&Box<str>>) = match post {
            Post::Status { status, phase, .. } => (status, phase.as_ref()),
            Post::Artifact { status, .. } => (status, None),
            Post::Blocked { .. } => ("blocked", None),
            Post::Intent { .. } => ("intent", None),
            _ => return self.clone(),
        };
        let clean =
            source == Source::Watcher && matches!(post, Post::Status { files, .. } if files.is_empty());
        let stays = self.row.as_ref().filter(|row| row.keeps(now, label, source, clean, settle_s));
        let (label, since) = match (stays, &self.row) {
            (Some(row), _) => (row.label.clone(), row.since),
            (None, Some(row)) if *row.label == *label && !is_settled(label) => (label.into(), row.since),
            (None, _) => (label.into(), now),
        };
        let seen = match &self.row {
            Some(row) if post.hearsay() => row.seen,
            _ => now,
        };
        let mut next = self.clone();
        next.name = post.sender().clone();
        let phase = phase.map(|it| shortened(it, ROSTER_TEXT_MAX));
        next.row = Some(Row { label: shortened(&label, ROSTER_TEXT_MAX), since, phase, seen });
        if let Post::Status { cli: Some(cli), .. } = post {
            next.cli.get_or_insert_with(|| shortened(cli, ROSTER_TEXT_MAX));
        }
        next
    }
}

impl Row {
    fn keeps(&self, now: Timestamp, word: &str, source: Source, clean: bool, settle_s: u64) -> bool {
        if clean {
            return !self.label.is_empty();
        }
        if is_settled(word) || !is_settled(&self.label) {
            return false;
        }
        if word != "working" {
            return true;
        }
        let settled_for = now.since_ms(self.since) / 1000;
        match &*self.label {
            "blocked" => source == Source::Watcher,
            "committed" => settle_s == 0,
            _ => settle_s == 0 || settled_for < settle_s || source == Source::Watcher,
        }
    }
}
