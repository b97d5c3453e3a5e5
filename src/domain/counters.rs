//! The last issued numbers, and counters.

use serde::{Deserialize, Serialize};

use provost_base::{ApplyId, ApprovalId, EffectId, EventSeq, Fence, MailSeq, PostSeq, Ticket};

/// The last number issued of each kind, and totals that pruning never lowers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The number of the newest event.
    pub event: EventSeq,
    /// The number of the newest effect.
    pub effect: EffectId,
    /// The number of the newest approval.
    pub approval: ApprovalId,
    /// The number of the newest apply.
    pub apply: ApplyId,
    /// The number of the newest mail, over all queues.
    pub mail: MailSeq,
    /// The number of the newest grant of a lock; places in lists of intents and contracts are such numbers, too.
    pub fence: Fence,
    /// The number of the newest place in a queue for a lock.
    pub ticket: Ticket,
    /// The number of the newest message between agents.
    pub post: PostSeq,
    /// The number of the agent that was named last.
    pub named: u64,
    /// The number of tasks that ended completed or cancelled, since the beginning.
    pub completed: u64,
    /// The number of tasks that failed, since the beginning.
    pub failed: u64,
    /// The number of events on the timeline, since the beginning.
    pub timeline: u64,
}

impl Counters {
    /// Returns all counters, in a fixed order.
    pub(super) fn all(&self) -> [u64; 12] {
        let Self { event, effect, approval, apply, mail, fence, ticket, post, .. } = self;
        let Self { named, completed, failed, timeline, .. } = *self;
        let numbers = [event.0, effect.0, approval.0, apply.0, mail.0, fence.0, ticket.0, post.0];
        let [event, effect, approval, apply, mail, fence, ticket, post] = numbers;
        [event, effect, approval, apply, mail, fence, ticket, post, named, completed, failed, timeline]
    }

    /// Returns the counters with each number that was issued raised to at least that of `to`. Numbers of events are dense.
    #[must_use]
    pub fn raised(self, to: &Self) -> Self {
        Self {
            effect: self.effect.max(to.effect),
            approval: self.approval.max(to.approval),
            apply: self.apply.max(to.apply),
            mail: self.mail.max(to.mail),
            fence: self.fence.max(to.fence),
            ticket: self.ticket.max(to.ticket),
            post: self.post.max(to.post),
            ..self
        }
    }

    /// Returns the counters with `step` numbers of each kind skipped, which something outside may have kept. Numbers of events are dense.
    #[must_use]
    pub fn skipped(self, step: u64) -> Self {
        Self {
            effect: EffectId(self.effect.0.saturating_add(step)),
            approval: ApprovalId(self.approval.0.saturating_add(step)),
            mail: MailSeq(self.mail.0.saturating_add(step)),
            fence: Fence(self.fence.0.saturating_add(step)),
            post: PostSeq(self.post.0.saturating_add(step)),
            ..self
        }
    }
}
