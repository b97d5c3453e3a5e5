//! Messages that agents publish, each kind with its members. The broker door translates them into its own words.
//!
//! ```text
//!                     +--> the inboxes of those whom it concerns
//!   publish --> post -+--> the roster: where its sender stands
//!                     +--> working sets: which files its sender works on --> conflicts, which are posts again
//! ```
//! All of this is one step: a reader that is at a number has seen everything below it.

mod broker_state;
pub(crate) mod change;
mod contention;
mod detector;
mod form;
mod paths;
mod publish;
mod roster;
mod slug;
mod working_set;

use serde::{Deserialize, Serialize};

pub use broker_state::{BrokerState, Question};
pub use change::PostChange;
pub use contention::Contention;
pub use paths::PathScope;
pub(crate) use paths::{fits, fixed_part};
pub(crate) use publish::Round;
pub use roster::{Mailbox, Row};
pub use slug::{owned_slug, owner_slugs, slug, slug_of_branch};
pub use working_set::{Announced, WorkingSet};

use super::Principal;
use provost_base::{AgentId, Json, Slug, Timestamp, Ttl};

/// One message. Names are as their writer spelled them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Post {
    /// The state of an agent's work.
    Status {
        /// The agent whose status it is.
        agent: AgentId,
        /// The status in one word, which the agent chooses freely.
        status: Box<str>,
        /// Files that it has changed.
        files: Vec<Box<str>>,
        /// The status in a sentence, for people.
        message: Option<Box<str>>,
        /// The program that the agent runs as, in its own words.
        cli: Option<Box<str>>,
        /// The activity of the agent, in one word.
        phase: Option<Box<str>>,
        /// Further members, in a form that the agent chooses.
        detail: Option<Json>,
    },
    /// Work that is done, or committed.
    Artifact {
        /// The agent that has done the work.
        agent: AgentId,
        /// The state of the work in one word, which the agent chooses freely.
        status: Box<str>,
        /// The parts of it that others can use.
        exports: Vec<Box<str>>,
        /// The files that the work has changed.
        files: Vec<Box<str>>,
    },
    /// An agent cannot go on.
    Blocked {
        /// The agent that cannot go on.
        agent: AgentId,
        /// The agent's need.
        needs: Box<str>,
        /// The agent that could meet the need, or a name for something else.
        from: Box<str>,
    },
    /// A reviewer has approved an agent's work.
    Verified {
        /// The agent whose work was checked.
        agent: AgentId,
        /// The agent that has checked it.
        by: AgentId,
        /// The reviewer's remark, if there is one.
        message: Option<Box<str>>,
    },
    /// A reviewer has found fault with an agent's work.
    Feedback {
        /// The agent whose work was checked.
        agent: AgentId,
        /// The agent that has checked it.
        from: AgentId,
        /// The faults, one text for each.
        errors: Vec<Box<str>>,
        /// The question that this answers, if it repeats an answer for an agent that understands only feedback.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        re: Option<Box<str>>,
    },
    /// An agent asks a question.
    Question {
        /// The agent that asks.
        agent: AgentId,
        /// The text of the question.
        question: Box<str>,
    },
    /// An agent announces the files that it will change.
    Intent {
        /// The agent that will make the change.
        agent: AgentId,
        /// The files that will change, with the parts of them.
        files: Vec<IntendedFile>,
        /// The purpose of the change, for people.
        summary: Box<str>,
        /// The time for which the announcement counts, in seconds.
        valid_s: u64,
    },
    /// The answer to an agent's question.
    Answer {
        /// The agent that has asked.
        agent: AgentId,
        /// The agent that answers.
        from: AgentId,
        /// The text of the answer.
        answer: Box<str>,
        /// The question that this answers, as the answering agent names it; `None` if it names none.
        re: Option<Box<str>>,
    },
    /// A branch was merged.
    Advanced {
        /// The agent that has merged it.
        from: AgentId,
        /// The branch that was merged.
        branch: Box<str>,
        /// The commit at which the base is now.
        sha: Box<str>,
        /// The branch into which it was merged.
        base: Box<str>,
        /// The time of the merge, as the sender wrote it.
        at: Box<str>,
        /// A summary of the merged changes, for people.
        summary: Option<Box<str>>,
    },
    /// A lesson to remember for the next time.
    Learning {
        /// Its id, unique to its writer.
        id: Box<str>,
        /// The agent that has learned it.
        agent: AgentId,
        /// The branch in which it was learned; the branch's agent gets the message.
        branch: Option<Box<str>>,
        /// The kind of learning, in a word that the agent chooses.
        category: Box<str>,
        /// The learning in a few words.
        title: Box<str>,
        /// The whole lesson, in a form that the agent chooses.
        body: Json,
        /// The time, as its writer wrote it.
        timestamp: Box<str>,
    },
    /// Work waits for a check.
    VerifyNow {
        /// The agent whose work should be checked.
        branch: AgentId,
    },
}

/// A file that an agent will change, with the parts that change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IntendedFile {
    /// A path, a folder with a slash at its end, or a pattern, as the agent wrote it.
    pub path: Box<str>,
    /// The parts of it that will change; empty if the agent names none.
    pub regions: Vec<Region>,
    /// Whether it was written as a path without parts.
    pub plain: bool,
}

/// A part of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// The function of this name.
    Function(Box<str>),
    /// The class of this name.
    Class(Box<str>),
    /// Any other part that has this name.
    Block(Box<str>),
    /// Lines, the last one included.
    Lines(u32, u32),
}

impl Post {
    /// Returns the name of the message's kind, as it stands in the log.
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

    /// Returns the sender. A request to check an agent's work counts as that agent's.
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

    /// Checks whether the message reports its sender's state, so that the roster has a row for the sender.
    pub(super) fn is_of_roster(&self) -> bool {
        matches!(
            self,
            Post::Status { .. } | Post::Artifact { .. } | Post::Blocked { .. } | Post::Intent { .. }
        )
    }

    /// Returns the agent that the message is for, in the broker's spelling; `None` if it is for all agents or for none.
    pub fn recipient(&self) -> Option<Slug> {
        match self.audience() {
            Audience::One { to, .. } => Some(to),
            Audience::Nobody | Audience::AllBut(_) => None,
        }
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

/// The agents that a post is for.
enum Audience {
    Nobody,
    /// Every agent with an inbox except this one.
    AllBut(Slug),
    One {
        to: Slug,
        absent: Absent,
    },
}

/// The handling of a post for an agent without an inbox.
enum Absent {
    /// The post waits until the agent has an inbox.
    Wait,
    /// The agent gets an inbox at once.
    Make,
}

/// Returns the slug of the agent that looks after the others.
pub(super) fn supervisor() -> Slug {
    Slug::parse("supervisor").expect("a constant that is a valid id")
}

/// Returns the beginning of a text, cut between characters, at most `most` bytes long.
fn shortened(text: &str, most: usize) -> Box<str> {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].into()
}

/// A published post, which is carried out again if it is not on record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Received {
    /// When it was published, by the engine's clock.
    pub at: Timestamp,
    /// The principal that has published it.
    pub who: Principal,
    /// The message, as it was published.
    pub post: Post,
}

/// The source of a post, which decides what an empty list of files means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An agent has published it.
    Client,
    /// An agent's program asks in a form, and waits for the answer.
    Form,
    /// The daemon has looked at the files itself.
    Watcher,
}

/// The settings of the broker door that its rules depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostSettings {
    /// Whether the daemon looks for conflicts.
    pub detector: bool,
    /// The time for which two agents may change one file before the supervisor is asked.
    pub window: Ttl,
    /// Whether overlapping intents are reported.
    pub warn_on_overlap: bool,
    /// Whether the supervisor is asked about edits in others' files.
    pub escalate: bool,
    /// Whether a commit calls for a check.
    pub nudge: bool,
    /// The time for which an agent's work stays finished although late signs of work still come, in seconds; with
    /// zero for good, and commits, too.
    pub settle_s: u64,
    /// The owners of files by the repository's own list, regardless of agents' announcements.
    pub code_owners: Vec<Owner>,
    /// The owners of files by the configuration, which takes precedence.
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
    /// The pattern of the files, as in the broker's messages.
    pub pattern: Box<str>,
    /// The owner of the files; several may share them.
    pub by: Vec<Slug>,
    /// The file or setting with this rule, for agents that are told of it.
    pub source: Box<str>,
}
