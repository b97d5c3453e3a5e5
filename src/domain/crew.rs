//! The crew: agents that have announced themselves to work together, with one lead among them.
//!
//! ```text
//!             announce                  silence for `dead_after`
//!  [unknown] ----------> [at work] ----------------------------> [offline, gone]
//!                          ^   |  says so itself                      |
//!                          |   +--------> [offline] --- silence ------+
//!                          +------------- any sign of life -----------+
//! ```
//! As long as an agent is at work, exactly one agent leads. When an agent falls silent, the daemon reports it once,
//! frees its claims, and elects the next lead in the same step. Agent Protocol, 3.1 and 3.2.

mod event;
mod refusal;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    AppointLead, BeatCrew, CrewBeaten, CrewJoined, CrewLeft, JoinCrew, LeadAppointed, LeaveCrew, MemberMoved,
    MoveMember,
};
use super::{Outbox, Principal, Refusal, Share, State};
use provost_base::limits::{CAPS_MAX, ID_LEN_MAX, MEMBERS_MAX, MEMBERS_OF_ONE_MAX};
use provost_base::{AgentId, Fence, Timestamp};

pub use event::{CrewChange, CrewEvent, Elected, Note, Origin, Seen};
pub use refusal::CrewRefusal;

/// The role of a member in the crew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Decides; one member at a time has this role.
    Lead,
    /// Has a special skill; becomes lead before workers do.
    Specialist,
    /// Does any work of the crew.
    Worker,
}

/// The activity of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The member has no work.
    Idle,
    /// The member is at work.
    Working,
    /// The member has work that cannot go on.
    Blocked,
    /// The member waits for a review of its work.
    WaitingReview,
    /// The member is away: it says so itself, or has fallen silent.
    Offline,
}

/// An agent that has announced itself to the crew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The name of the agent.
    pub id: AgentId,
    /// The program that the member runs as, in its own words.
    pub tool: Box<str>,
    /// The role that the member asked for.
    pub asked: Role,
    /// Whether the member is the lead.
    pub leads: bool,
    /// The present activity of the member.
    pub standing: Standing,
    /// The member's capabilities, in its own words.
    pub capabilities: Vec<Box<str>>,
    /// When the member last announced itself.
    pub joined_at: Timestamp,
    /// When the member gave its last sign of life.
    pub seen_at: Timestamp,
    /// Whether the daemon has noticed the member's silence.
    pub gone: bool,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The share to which the member counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Member {
    /// Returns the member's role: of the members that asked to lead, only the lead has that role.
    pub fn role(&self) -> Role {
        match self.asked {
            _ if self.leads => Role::Lead,
            Role::Lead => Role::Worker,
            other => other,
        }
    }

    /// Checks whether the member is present.
    pub fn is_there(&self) -> bool {
        self.standing != Standing::Offline
    }
}

/// All members that are remembered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Crew {
    all: BTreeMap<AgentId, Arc<Member>>,
    places: BTreeMap<Fence, AgentId>,
    /// Members whose silence would be noticed, by their last sign of life.
    heard: BTreeSet<(Timestamp, AgentId)>,
    lead: Option<AgentId>,
}

impl Crew {
    pub(super) fn put(&mut self, member: Arc<Member>) {
        self.remove(&member.id);
        self.places.insert(member.place, member.id.clone());
        if !member.gone {
            self.heard.insert((member.seen_at, member.id.clone()));
        }
        if member.leads {
            self.lead = Some(member.id.clone());
        }
        self.all.insert(member.id.clone(), member);
    }

    pub(super) fn remove(&mut self, id: &AgentId) {
        let Some(member) = self.all.remove(id) else { return };
        self.places.remove(&member.place);
        self.heard.remove(&(member.seen_at, id.clone()));
        if self.lead.as_ref() == Some(id) {
            self.lead = None;
        }
    }

    /// Returns the member with this name, if it exists.
    pub fn get(&self, id: &AgentId) -> Option<&Arc<Member>> {
        self.all.get(id)
    }

    /// Returns all members, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.places.values().filter_map(|id| self.all.get(id))
    }

    /// Returns the present lead; `None` while no member is at work.
    pub fn lead(&self) -> Option<&AgentId> {
        self.lead.as_ref()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether the crew has no member.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the member that has been gone for longest, of all members or of one share.
    fn longest_gone(&self, of: Option<&Share>) -> Option<&Arc<Member>> {
        let theirs = |it: &&Arc<Member>| of.is_none() || it.share.as_ref() == of;
        self.all.values().filter(theirs).filter(|it| it.gone).min_by_key(|it| (it.seen_at, it.place))
    }
}

impl State {
    /// Returns when the next silence of a member is noticed. Time in which the daemon did not run does not count as
    /// silence: no member could give a sign of life then.
    pub(super) fn next_silence(&self) -> Option<Timestamp> {
        self.crew.heard.first().map(|(seen, _)| self.silent_at(*seen))
    }

    /// Returns the time at which an agent counts as silent if it was last heard at the given time.
    fn silent_at(&self, seen: Timestamp) -> Timestamp {
        let heard = self.awake_since.map_or(seen, |awake| awake.max(seen));
        let due = heard.after(self.settings.crew.dead_after);
        let Some(interval) = self.settings.crew.heartbeat_interval else { return due };
        // Silence is checked at whole multiples of the interval.
        let every = i64::from(interval.as_millis());
        Timestamp(due.0.saturating_add((every - due.0.rem_euclid(every)) % every))
    }

    pub(super) fn fallen_silent(&self, now: Timestamp) -> Vec<AgentId> {
        let late = self.crew.heard.iter().take_while(|(seen, _)| self.silent_at(*seen) <= now);
        late.map(|(_, id)| id.clone()).collect()
    }

    /// Takes in a member. A member that announces itself again starts over, and keeps the lead. Agent Protocol, `POST /agents/announce`.
    pub(super) fn join_crew(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &JoinCrew,
        out: &mut Outbox,
    ) -> Result<CrewJoined, Refusal> {
        let long = |it: &str| it.len() > ID_LEN_MAX;
        if verb.capabilities.len() > CAPS_MAX {
            return Err(Refusal::too_long("an agent", CAPS_MAX, "capabilities"));
        }
        if verb.capabilities.iter().any(|it| long(it)) || long(&verb.tool) {
            return Err(Refusal::too_long("a capability or tool", ID_LEN_MAX, "bytes"));
        }
        let known = self.crew.get(who.agent());
        let share = who.share();
        if known.is_none() {
            self.make_room_in_crew(&share, out)?;
        }
        self.agents.beat(now, who.agent(), out);
        let mut member = Member {
            id: who.agent().clone(),
            tool: verb.tool.clone(),
            asked: verb.role,
            leads: known.is_some_and(|it| it.leads),
            standing: Standing::Idle,
            capabilities: verb.capabilities.clone(),
            joined_at: now,
            seen_at: now,
            gone: false,
            place: known.map_or_else(|| out.next_fence(), |it| it.place),
            share: Some(share),
        };
        let pinned = self.settings.crew.lead.as_ref() == Some(&member.id);
        let displaced = self.crew.lead().filter(|it| pinned && **it != member.id).cloned();
        // A crew is never without a lead: the first member has the place until the configured one comes.
        member.leads |= pinned || self.crew.lead().is_none();
        out.append_event(CrewEvent::joined(&member).into());
        if let Some(old) = displaced {
            self.step_down(&old, out);
            out.append_event(
                CrewEvent::LeadElected { lead: member.id.clone(), why: Elected::Configured }.into(),
            );
        }
        let member = Arc::new(member);
        out.put(CrewChange::PutMember(member.clone()).into());
        Ok(CrewJoined { member })
    }

    /// Makes room for one more member of this share, if there is no room.
    fn make_room_in_crew(&self, share: &Share, out: &mut Outbox) -> Result<(), Refusal> {
        let theirs = self.crew.all.values().filter(|it| it.share.as_ref() == Some(share)).count();
        let crowd = (theirs >= MEMBERS_OF_ONE_MAX).then_some(share);
        if crowd.is_none() && self.crew.len() < MEMBERS_MAX {
            return Ok(());
        }
        let full = || match crowd {
            Some(_) => Refusal::quota(
                "as many agents as the processes of one agent can be under all their names",
                MEMBERS_OF_ONE_MAX,
                "let some leave",
            ),
            None => Refusal::busy("as many agents as there can be"),
        };
        let gone = self.crew.longest_gone(crowd).ok_or_else(full)?;
        out.put(CrewChange::DropMember(gone.id.clone()).into());
        Ok(())
    }

    /// Removes a member, and frees its claims. An agent that was not a member gets no error. Agent Protocol,
    /// `DELETE /agents/:id`.
    pub(super) fn leave_crew(&self, who: &Principal, verb: &LeaveCrew, out: &mut Outbox) -> CrewLeft {
        let Some(member) = self.crew.get(who.agent()) else { return CrewLeft { was_there: false } };
        if verb.only_if_idle && self.claims.of(&member.id).next().is_some() {
            return CrewLeft { was_there: false };
        }
        self.free_claims_of(&member.id, &verb.contents, None, out);
        out.append_event(CrewEvent::MemberLeft.into());
        out.put(CrewChange::DropMember(member.id.clone()).into());
        if member.leads {
            self.succeed(&member.id, out);
        }
        CrewLeft { was_there: true }
    }

    /// Notes a sign of life. Agent Protocol, `POST /agents/:id/heartbeat`.
    pub(super) fn beat_crew(
        &self,
        now: Timestamp,
        who: &Principal,
        _: &BeatCrew,
        out: &mut Outbox,
    ) -> Result<CrewBeaten, Refusal> {
        let member = self.crew.get(who.agent()).ok_or(CrewRefusal::NotInCrew)?;
        self.agents.beat(now, who.agent(), out);
        if self.settings.crew.beats {
            out.append_event(CrewEvent::MemberBeat.into());
        }
        let back = if member.is_there() { member.standing } else { Standing::Idle };
        if back != member.standing {
            out.append_event(CrewEvent::moved(member, back, None).into());
        }
        self.seen_at_work(now, member, back, out);
        Ok(CrewBeaten)
    }

    /// Changes a member's standing. Agent Protocol, `PATCH /agents/:id/status`.
    pub(super) fn move_member(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &MoveMember,
        out: &mut Outbox,
    ) -> Result<MemberMoved, Refusal> {
        let member = self.crew.get(who.agent()).ok_or(CrewRefusal::NotInCrew)?;
        self.agents.beat(now, who.agent(), out);
        out.append_event(CrewEvent::moved(member, verb.to, None).into());
        self.seen_at_work(now, member, verb.to, out);
        Ok(MemberMoved)
    }

    /// Notes a member's sign of life. A present member leads if no other does; a leaving member loses the lead.
    fn seen_at_work(&self, now: Timestamp, member: &Member, standing: Standing, out: &mut Outbox) {
        let there = standing != Standing::Offline;
        let leads = there && (member.leads || self.crew.lead().is_none());
        if leads && !member.leads {
            out.append_event(CrewEvent::LeadElected { lead: member.id.clone(), why: Elected::Nobody }.into());
        }
        let moved = Member { standing, seen_at: now, gone: false, leads, ..member.clone() };
        out.put(CrewChange::PutMember(Arc::new(moved)).into());
        if member.leads && !leads {
            self.succeed(&member.id, out);
        }
    }

    /// Makes a member the lead, as a person says.
    pub(super) fn appoint_lead(
        &self,
        who: &Principal,
        verb: &AppointLead,
        out: &mut Outbox,
    ) -> Result<LeadAppointed, Refusal> {
        if !who.is_person() {
            return Err(CrewRefusal::PersonOnly.into());
        }
        let member = self.crew.get(&verb.agent).filter(|it| it.is_there()).ok_or(CrewRefusal::NotInCrew)?;
        if !member.leads {
            if let Some(old) = self.crew.lead() {
                self.step_down(old, out);
            }
            self.take_over(member, Elected::Appointed, out);
        }
        Ok(LeadAppointed)
    }

    /// Handles a member that has been silent for too long: it loses the lead and its claims.
    pub(super) fn fall_silent(&self, id: &AgentId, out: &mut Outbox) {
        let Some(member) = self.crew.get(id) else { return };
        if member.is_there() {
            out.append_event(CrewEvent::moved(member, Standing::Offline, Some("heartbeat_timeout")).into());
        }
        self.free_claims_of(id, &BTreeMap::new(), Some("heartbeat_timeout"), out);
        let gone = Member { standing: Standing::Offline, gone: true, leads: false, ..Member::clone(member) };
        out.put(CrewChange::PutMember(Arc::new(gone)).into());
        if member.leads {
            self.succeed(id, out);
        }
    }

    /// Makes another member the lead, if one is present.
    fn succeed(&self, departed: &AgentId, out: &mut Outbox) {
        let pinned = self.settings.crew.lead.as_ref();
        // The smallest rank is the best: first the member that the configuration names, then one that asked to
        // lead, a specialist, the oldest.
        let rank = |it: &&Arc<Member>| {
            let worker = it.asked == Role::Worker;
            (Some(&it.id) != pinned, it.asked != Role::Lead, worker, it.joined_at, it.place)
        };
        let candidates = self.crew.all.values().filter(|it| it.is_there() && it.id != *departed);
        if let Some(next) = candidates.min_by_key(rank) {
            self.take_over(next, Elected::Departed, out);
        }
    }

    fn take_over(&self, member: &Member, why: Elected, out: &mut Outbox) {
        out.append_event(CrewEvent::LeadElected { lead: member.id.clone(), why }.into());
        out.put(CrewChange::PutMember(Arc::new(Member { leads: true, ..member.clone() })).into());
    }

    fn step_down(&self, id: &AgentId, out: &mut Outbox) {
        if let Some(old) = self.crew.get(id) {
            let old = Member { leads: false, ..Member::clone(old) };
            out.put(CrewChange::PutMember(Arc::new(old)).into());
        }
    }
}

impl State {
    /// Applies a change to the crew.
    pub(super) fn apply_to_crew(&mut self, change: &CrewChange) {
        match change {
            CrewChange::PutMember(it) => self.crew.put(it.clone()),
            CrewChange::DropMember(id) => self.crew.remove(id),
            CrewChange::PutClaim(it) => self.claims.put(it.clone()),
            CrewChange::DropClaim(file) => self.claims.remove(file),
            CrewChange::PutAssignment(it) => self.assignments.put(it.clone()),
            CrewChange::DropAssignment(id) => self.assignments.remove(id),
            CrewChange::PutHandoff(it) => self.handoffs.put(it.clone()),
            CrewChange::DropHandoff(id) => self.handoffs.remove(id),
        }
    }
}
