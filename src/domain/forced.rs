//! Things that a person takes from agents: intents, claimed files, and everything that one agent holds. Locks are
//! released by force in `lock`.

use super::claim::Hold;
use super::command::{AgentReleased, ClaimFreed, EndIntent, FreeClaim, IntentEnded, ReleaseAgent};
use super::{CrewRefusal, IntentStatus, Outbox, Principal, Refusal, Scope, State};
use provost_base::Timestamp;

/// The reason in the journal why files, intents and locks of an agent are free.
const FORCED: &str = "forced";

/// Checks that the caller may act as the operator on others' things.
fn operates(who: &Principal) -> Result<(), Refusal> {
    match who.operates() {
        true => Ok(()),
        false => Err(Refusal::OutOfScope { needs: Scope::Operate }),
    }
}

impl State {
    /// Abandons the intent of any agent.
    pub(super) fn end_intent(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &EndIntent,
        out: &mut Outbox,
    ) -> Result<IntentEnded, Refusal> {
        operates(who)?;
        let intent = self.intents.get(&verb.id).ok_or(Refusal::IntentNotFound)?;
        if !intent.status.is_live() {
            return Err(Refusal::IntentCannot { from: intent.status, to: IntentStatus::Abandoned });
        }
        Ok(IntentEnded { intent: self.settle_intent(now, intent, IntentStatus::Abandoned, out) })
    }

    /// Frees the file of any agent. A file in conflict waits for the decision about whose change counts.
    pub(super) fn free_claim_by_force(
        &self,
        who: &Principal,
        verb: &FreeClaim,
        out: &mut Outbox,
    ) -> Result<ClaimFreed, Refusal> {
        operates(who)?;
        let Some(claim) = self.claims.get(&verb.file).filter(|it| it.held != Hold::Free) else {
            return Ok(ClaimFreed { released: false });
        };
        if matches!(claim.held, Hold::Conflicted { .. }) {
            return Err(CrewRefusal::FileConflicted.into());
        }
        if let Some(owner) = claim.held.owner()
            && verb.fence.is_some_and(|fence| fence != claim.fence)
        {
            return Err(CrewRefusal::FileClaimed { by: owner.clone() }.into());
        }
        self.free_claim(claim, verb.content, Some(FORCED), out);
        Ok(ClaimFreed { released: true })
    }

    /// Frees everything that an agent holds, as if each of its sessions had left.
    pub(super) fn release_agent(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReleaseAgent,
        out: &mut Outbox,
    ) -> Result<AgentReleased, Refusal> {
        operates(who)?;
        let (locks, waits) = self.free_places_of(&verb.agent, FORCED, out);
        let claims = self.claims.of(&verb.agent).count();
        self.free_claims_of(&verb.agent, &verb.contents, Some(FORCED), out);
        let intents = self.abandon_all(now, &verb.agent, out);
        Ok(AgentReleased { locks, waits, claims, intents })
    }
}
