//! Handoffs: work that one agent of the crew hands over to another one, with its notes.
//!
//! ```text
//!   [pending] --accept--> [accepted]
//!       +------reject---> [rejected]
//! ```
//! Agent Protocol, `POST /handoffs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AnswerTransfer, OfferTransfer, TransferAnswered, TransferOffered};
use super::tally::Tally;
use super::{CrewChange, CrewEvent, CrewRefusal, Outbox, Principal, Refusal, Share, State};
use provost_base::limits::{
    RECORD_BYTES_MAX, RECORDS_BYTES_MAX, RECORDS_OF_ONE_BYTES_MAX, TRANSFERS_MAX, TRANSFERS_OF_ONE_MAX,
};
use provost_base::{AgentId, Fence, HandoffId, Timestamp};

/// The state of a handoff.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoffState {
    /// No member has answered.
    Pending,
    /// Its recipient continues the work.
    Accepted,
    /// Its recipient has declined it.
    Rejected,
}

/// Work that is handed over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Handoff {
    /// The id that the door has chosen.
    pub id: HandoffId,
    /// The agent that hands the work over.
    pub from: AgentId,
    /// The agent that should take it, under any name; `None` offers it to all.
    pub to: Option<Box<str>>,
    /// The assignment that the work is part of.
    pub assignment: Box<str>,
    /// The state of the offer.
    pub state: HandoffState,
    /// The work that was done so far.
    pub summary: Box<str>,
    /// Files that the sender has changed.
    pub modified: Vec<Box<str>>,
    /// Files that the sender has made.
    pub created: Vec<Box<str>>,
    /// Information for the recipient.
    pub context: Box<str>,
    /// Obstacles that keep the work from going on.
    pub blockers: Vec<Box<str>>,
    /// When it was offered.
    pub created_at: Timestamp,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The share to which the handoff counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Handoff {
    fn bytes(&self) -> usize {
        let lists = self.modified.iter().chain(&self.created).chain(&self.blockers);
        let texts = self.summary.len() + self.context.len() + self.assignment.len();
        texts + self.to.as_deref().map_or(0, str::len) + lists.map(|it| it.len() + 16).sum::<usize>()
    }
}

/// All handoffs. The oldest of the answered ones are dropped first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Handoffs {
    all: BTreeMap<HandoffId, Arc<Handoff>>,
    places: BTreeMap<Fence, HandoffId>,
    answered: BTreeSet<Fence>,
    bytes: usize,
    /// Handoffs that wait for an answer, and their bytes, for each share.
    open: Tally,
    open_bytes: Tally,
}

impl Handoffs {
    pub(super) fn put(&mut self, it: Arc<Handoff>) {
        self.remove(&it.id);
        self.places.insert(it.place, it.id.clone());
        if it.state != HandoffState::Pending {
            self.answered.insert(it.place);
        } else {
            self.open.add(it.share.as_ref());
            self.open_bytes.add_many(it.share.as_ref(), it.bytes());
        }
        self.bytes += it.bytes();
        self.all.insert(it.id.clone(), it);
    }

    pub(super) fn remove(&mut self, id: &HandoffId) {
        let Some(it) = self.all.remove(id) else { return };
        self.places.remove(&it.place);
        if !self.answered.remove(&it.place) {
            self.open.take(it.share.as_ref());
            self.open_bytes.take_many(it.share.as_ref(), it.bytes());
        }
        self.bytes = self.bytes.saturating_sub(it.bytes());
    }

    /// Returns the handoff with this id, if it is remembered.
    pub fn get(&self, id: &HandoffId) -> Option<&Arc<Handoff>> {
        self.all.get(id)
    }

    /// Returns all handoffs, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Handoff>> {
        self.places.values().filter_map(|id| self.all.get(id))
    }
}

impl State {
    /// Offers work. Neither agents nor assignment need to be known. Agent Protocol, `POST /handoffs`.
    pub(super) fn offer_transfer(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &OfferTransfer,
        out: &mut Outbox,
    ) -> Result<TransferOffered, Refusal> {
        let transfer = Handoff {
            id: verb.id.clone(),
            from: who.agent().clone(),
            to: verb.to.clone(),
            assignment: verb.assignment.clone(),
            state: HandoffState::Pending,
            summary: verb.summary.clone(),
            modified: verb.modified.clone(),
            created: verb.created.clone(),
            context: verb.context.clone(),
            blockers: verb.blockers.clone(),
            created_at: now,
            place: out.next_fence(),
            share: Some(who.share()),
        };
        self.room_for_transfer(&transfer, out)?;
        self.agents.beat(now, who.agent(), out);
        let files = u32::try_from(transfer.modified.len() + transfer.created.len()).unwrap_or(u32::MAX);
        let (id, to, assignment) = (transfer.id.clone(), transfer.to.clone(), transfer.assignment.clone());
        out.append_event(CrewEvent::TransferOffered { id, to, assignment, files }.into());
        let transfer = Arc::new(transfer);
        out.put(CrewChange::PutHandoff(transfer.clone()).into());
        Ok(TransferOffered { transfer })
    }

    fn room_for_transfer(&self, new: &Handoff, out: &mut Outbox) -> Result<(), Refusal> {
        let known = &self.handoffs;
        if known.get(&new.id).is_some() {
            return Err(Refusal::Exists { what: "a transfer" });
        }
        if new.bytes() > RECORD_BYTES_MAX {
            return Err(CrewRefusal::TooLarge { most: RECORD_BYTES_MAX }.into());
        }
        if let Some(share) = &new.share {
            let most =
                "as many unanswered handoffs as the processes of one agent can offer under all their names";
            if known.open.of(share) >= TRANSFERS_OF_ONE_MAX {
                return Err(Refusal::quota(most, TRANSFERS_OF_ONE_MAX, "have some answered first"));
            }
            if known.open_bytes.of(share) + new.bytes() > RECORDS_OF_ONE_BYTES_MAX {
                return Err(Refusal::quota(
                    most,
                    RECORDS_OF_ONE_BYTES_MAX,
                    "in bytes; have some answered first",
                ));
            }
        }
        let (mut count, mut bytes) = (known.all.len(), known.bytes + new.bytes());
        let mut answered = known.answered.iter().filter_map(|place| known.all.get(known.places.get(place)?));
        // The oldest answered handoffs give way. One that waits for an answer never does: its maker was told that it is there.
        while count >= TRANSFERS_MAX || bytes > RECORDS_BYTES_MAX {
            let oldest = answered
                .next()
                .ok_or_else(|| Refusal::busy("as many unanswered handoffs as there can be"))?;
            out.put(CrewChange::DropHandoff(oldest.id.clone()).into());
            (count, bytes) = (count - 1, bytes.saturating_sub(oldest.bytes()));
        }
        Ok(())
    }

    /// Answers an offer; nothing happens if it does not wait for an answer. Agent Protocol, `PATCH /handoffs/:id/accept` and `reject`.
    pub(super) fn answer_transfer(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &AnswerTransfer,
        out: &mut Outbox,
    ) -> TransferAnswered {
        let found = self.handoffs.get(&verb.id).filter(|it| it.state == HandoffState::Pending);
        let Some(transfer) = found else { return TransferAnswered { answered: false } };
        self.agents.beat(now, who.agent(), out);
        out.append_event(
            CrewEvent::TransferAnswered {
                id: verb.id.clone(),
                assignment: transfer.assignment.clone(),
                accepted: verb.accept,
                reason: verb.reason.clone(),
            }
            .into(),
        );
        let state = if verb.accept { HandoffState::Accepted } else { HandoffState::Rejected };
        out.put(CrewChange::PutHandoff(Arc::new(Handoff { state, ..Handoff::clone(transfer) })).into());
        TransferAnswered { answered: true }
    }
}
