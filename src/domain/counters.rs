//! The last issued numbers, and counters.

use serde::{Deserialize, Serialize};

use crate::base::{ApplyId, ApprovalId, EffectId, EventSeq, Fence, MailSeq, PostSeq, Ticket};

/// The last number handed out of each kind, and totals that pruning never lowers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Of events.
    pub event: EventSeq,
    /// Of effects.
    pub effect: EffectId,
    /// Of approvals.
    pub approval: ApprovalId,
    /// Of applies.
    pub apply: ApplyId,
    /// Of messages.
    pub mail: MailSeq,
    /// Of grants of locks, and of places in lists of intents and contracts.
    pub fence: Fence,
    /// Of places in queues for locks.
    pub ticket: Ticket,
    /// Of messages between agents.
    pub post: PostSeq,
    /// Of agents with a name.
    pub named: u64,
    /// Tasks that ended completed or cancelled, since the beginning.
    pub completed: u64,
    /// Tasks that failed, since the beginning.
    pub failed: u64,
    /// Events on the timeline, since the beginning.
    pub timeline: u64,
}
