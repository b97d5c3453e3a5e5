//! The changes that a post makes in addition to its event.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BrokerState, Contention, Mailbox, Question, WorkingSet};
use provost_base::{EventSeq, PostSeq, Slug, Timestamp};

/// A change to a row of the broker. Memory and store apply the same changes in the same order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostChange {
    /// A post, or one that was kept for an agent, is in these inboxes. Only its event has its text.
    File {
        /// The number of the post, over all inboxes.
        n: PostSeq,
        /// The event that has the text of the post.
        seq: EventSeq,
        /// When the post was published.
        at: Timestamp,
        /// The inboxes that have it from now on.
        to: Arc<[Slug]>,
        /// Whether it is a new post, and not one that was kept for an agent.
        own: bool,
    },
    /// The number of the newest post in an agent's inbox, as the store has it. In memory only.
    Newest(Slug, PostSeq),
    /// An agent has an inbox, and perhaps a row in the roster.
    PutMailbox(Arc<Mailbox>),
    /// An agent was forgotten, with its inbox.
    DropMailbox(Slug),
    /// The files that an agent works on.
    PutWorkingSet(Arc<WorkingSet>),
    /// Two agents change one file.
    PutContention(Arc<Contention>),
    /// The two agents do not change that file any more.
    DropContention(Arc<Contention>),
    /// A question was asked.
    PutQuestion(Arc<Question>),
    /// The question was answered, has expired, or made room for another one.
    DropQuestion(PostSeq),
    /// A post waits until an agent has an inbox.
    Park(Slug, PostSeq, EventSeq),
    /// The oldest of the posts that wait for this agent no longer waits.
    Unpark(Slug, PostSeq),
    /// The audit log begins after this number.
    BeginLog(PostSeq),
}

impl PostChange {
    pub(crate) fn apply(&self, broker: &mut BrokerState) {
        match self {
            PostChange::File { n, to, .. } => to.iter().for_each(|to| broker.filed(to, *n)),
            PostChange::Newest(to, n) => broker.filed(to, *n),
            PostChange::PutMailbox(it) => broker.put_correspondent(it.clone()),
            PostChange::DropMailbox(slug) => broker.forget(slug),
            PostChange::PutWorkingSet(it) => broker.put_footprint(it.clone()),
            PostChange::PutContention(it) => broker.put_standoff(it.clone()),
            PostChange::DropContention(it) => broker.drop_standoff(it),
            PostChange::PutQuestion(it) => broker.put_question(it.clone()),
            PostChange::DropQuestion(n) => broker.drop_question(*n),
            PostChange::Park(to, n, seq) => broker.park(to, *n, *seq),
            PostChange::Unpark(to, n) => broker.unpark(to, *n),
            PostChange::BeginLog(n) => broker.log_from = *n,
        }
    }
}
