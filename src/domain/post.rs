//! Messages that agents publish, each kind with what it carries. The broker door speaks of them in its own words.
//!
//! ```text
//!                     +--> the inboxes of those whom it concerns
//!   publish --> post -+--> the roster: where its sender stands
//!                     +--> footprints: which files its sender works on --> conflicts, which are posts again
//! ```
//! All of that is one step: a reader up to a number has seen everything below it.

pub(in crate::domain) mod change;
mod desk;
mod detector;
mod footprint;
mod paths;
mod publish;
mod roster;
mod slug;
mod standoff;

use serde::{Deserialize, Serialize};

pub use change::PostChange;
pub use desk::{Desk, Question};
pub use footprint::{Announced, Footprint};
pub use paths::Place;
pub(in crate::domain) use paths::{fits, fixed_part};
pub(in crate::domain) use publish::Round;
pub use roster::{Correspondent, Row};
pub use slug::{owned_slug, owner_slugs, slug, slug_of_branch};
pub use standoff::Standoff;

use super::Principal;
use crate::base::{AgentId, Json, Slug, Timestamp, Ttl};

/// One message. Names are as their writer spelt them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Post {
    /// Where an agent stands.
    Status {
        /// Who.
        agent: AgentId,
        /// In one word, freely chosen.
        status: Box<str>,
        /// Files that it has changed.
        files: Vec<Box<str>>,
        /// In a sentence.
        message: Option<Box<str>>,
        /// The program that it runs as.
        cli: Option<Box<str>>,
        /// What it is busy with.
        phase: Option<Box<str>>,
        /// More, freely formed.
        detail: Option<Json>,
    },
    /// Work that is done, or committed.
    Artifact {
        /// Whose.
        agent: AgentId,
        /// In one word, freely chosen.
        status: Box<str>,
        /// What others can use of it.
        exports: Vec<Box<str>>,
        /// Its files.
        files: Vec<Box<str>>,
    },
    /// An agent cannot go on.
    Blocked {
        /// Who.
        agent: AgentId,
        /// For want of what.
        needs: Box<str>,
        /// From whom, an agent or something else.
        from: Box<str>,
    },
    /// A reviewer has approved an agent's work.
    Verified {
        /// Whose work.
        agent: AgentId,
        /// Who has checked it.
        by: AgentId,
        /// What there is to say.
        message: Option<Box<str>>,
    },
    /// A reviewer has found fault with an agent's work.
    Feedback {
        /// Whose work.
        agent: AgentId,
        /// Who has found it.
        from: AgentId,
        /// Each fault.
        errors: Vec<Box<str>>,
    },
    /// An agent asks.
    Question {
        /// Who.
        agent: AgentId,
        /// What.
        question: Box<str>,
    },
    /// An agent announces which files it will change.
    Intent {
        /// Who.
        agent: AgentId,
        /// Where.
        files: Vec<IntendedFile>,
        /// What for.
        summary: Box<str>,
        /// For how long, in seconds.
        valid_s: u64,
    },
    /// The answer to an agent's question.
    Answer {
        /// Whose question.
        agent: AgentId,
        /// Who answers.
        from: AgentId,
        /// What.
        answer: Box<str>,
        /// To which question.
        re: Option<Box<str>>,
    },
    /// A branch was merged.
    Advanced {
        /// By whom.
        from: AgentId,
        /// Which.
        branch: Box<str>,
        /// What the base is at now.
        sha: Box<str>,
        /// Into which.
        base: Box<str>,
        /// When.
        at: Box<str>,
        /// What for.
        summary: Option<Box<str>>,
    },
    /// Something to remember for the next time.
    Learning {
        /// Its number among those of its writer.
        id: Box<str>,
        /// Who has learnt it.
        agent: AgentId,
        /// In which branch.
        branch: Option<Box<str>>,
        /// Of which kind.
        category: Box<str>,
        /// In a few words.
        title: Box<str>,
        /// More, freely formed.
        body: Json,
        /// When, as its writer wrote it.
        timestamp: Box<str>,
    },
    /// There is work to be checked.
    VerifyNow {
        /// Whose.
        branch: AgentId,
    },
}

/// A file that an agent will change, and where in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFile {
    /// Which, as written: a path, a folder with a slash at its end, or a pattern.
    pub path: Box<str>,
    /// Where; nowhere in particular if empty.
    pub regions: Vec<Region>,
    /// Whether it was written as a path alone.
    pub plain: bool,
}

/// A part of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// A function.
    Function(Box<str>),
    /// A class.
    Class(Box<str>),
    /// Something with a name.
    Block(Box<str>),
    /// Lines, the last one included.
    Lines(u32, u32),
}

impl Post {
    /// The name of its kind, as the log has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Post::Status { .. } => "status",
            Post::Artifact { .. } => "artifact",
            Post::Blocked { .. } => "blocked",
            Post::Verified { .. } => "verified",
            Post::Feedback { .. } => "feedback",
            Post::Question { .. } => "question",
            Post::Intent { .. } => "intent",
            Post::Answer { .. } => "answer",
            Post::Advanced { .. } => "advanced",
            Post::Learning { .. } => "learning",
            Post::VerifyNow { .. } => "verify_now",
        }
    }

    /// The sender. A request to check an agent's work counts as that agent's.
    pub fn sender(&self) -> &AgentId {
        match self {
            Post::Status { agent, .. }
            | Post::Artifact { agent, .. }
            | Post::Blocked { agent, .. }
            | Post::Question { agent, .. }
            | Post::Intent { agent, .. }
            | Post::Learning { agent, .. } => agent,
            Post::Verified { by, .. } => by,
            Post::Feedback { from, .. } | Post::Answer { from, .. } | Post::Advanced { from, .. } => from,
            Post::VerifyNow { branch } => branch,
        }
    }

    /// Whether it says where its sender stands, so that the roster has a row for them.
    pub(super) fn is_of_roster(&self) -> bool {
        matches!(
            self,
            Post::Status { .. } | Post::Artifact { .. } | Post::Blocked { .. } | Post::Intent { .. }
        )
    }

    fn audience(&self) -> Audience {
        let one = |name: &str| Audience::One { to: slug(name), absent: Absent::Wait };
        let sure = |to: Slug| Audience::One { to, absent: Absent::Make };
        match self {
            Post::Status { .. } => Audience::Nobody,
            Post::Artifact { agent, .. } | Post::Intent { agent, .. } => {
                Audience::AllBut(slug(agent.as_str()))
            }
            Post::Verified { by, .. } => Audience::AllBut(slug(by.as_str())),
            Post::Advanced { from, .. } => Audience::AllBut(slug(from.as_str())),
            Post::Blocked { from, .. } => one(from),
            Post::Feedback { agent, .. } | Post::Answer { agent, .. } => one(agent.as_str()),
            Post::Question { .. } | Post::VerifyNow { .. } => sure(supervisor()),
            Post::Learning { branch, .. } => {
                sure(branch.as_deref().and_then(slug_of_branch).unwrap_or_else(supervisor))
            }
        }
    }
}

/// Whom a post is for.
enum Audience {
    Nobody,
    /// Everybody who has an inbox, but for this one.
    AllBut(Slug),
    One {
        to: Slug,
        absent: Absent,
    },
}

/// The handling of a post for an agent without an inbox.
enum Absent {
    /// It waits until they have one.
    Wait,
    /// They get one.
    Make,
}

/// Who looks after the others.
pub(super) fn supervisor() -> Slug {
    Slug::parse("supervisor").expect("a constant that is a valid id")
}

/// The beginning of a text.
fn shortened(text: &str, most: usize) -> Box<str> {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].into()
}

/// A post that an agent has published, to be carried out once more where it is not on record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Received {
    /// When, by the time that everything is measured in.
    pub at: Timestamp,
    /// Who has published it.
    pub who: Principal,
    /// What.
    pub post: Post,
}

/// Where a post comes from, which decides what an empty list of files means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An agent has published it.
    Client,
    /// The daemon has looked at the files itself.
    Watcher,
}

/// The configuration's part in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostSettings {
    /// Whether conflicts are looked for.
    pub detector: bool,
    /// How long two agents may change one file before the supervisor is asked.
    pub window: Ttl,
    /// Whether overlapping intents are told.
    pub warn_on_overlap: bool,
    /// Whether the supervisor is asked about edits in others' files.
    pub escalate: bool,
    /// Whether a commit calls for a check.
    pub nudge: bool,
    /// How long an agent's work stays finished although late signs of work still come; with zero, commits stay.
    pub settle_s: u64,
    /// Who owns which files, whatever they announce, as the repository says it.
    pub code_owners: Vec<Owner>,
    /// And as the configuration does, which has the word.
    pub owners: Vec<Owner>,
}

impl Default for PostSettings {
    fn default() -> Self {
        Self {
            detector: true,
            window: Ttl::minutes(2),
            warn_on_overlap: true,
            escalate: true,
            nudge: true,
            settle_s: 60,
            code_owners: Vec::new(),
            owners: Vec::new(),
        }
    }
}

/// Files that belong to an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Which.
    pub pattern: Box<str>,
    /// Whose; several may share them.
    pub by: Vec<Slug>,
    /// Where that is written, for those who are told.
    pub source: Box<str>,
}
