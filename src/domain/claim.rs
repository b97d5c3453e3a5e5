//! Claims: whole files that agents of the crew work on, one agent at a time.
//!
//! ```text
//!             claim                  another has changed it
//!   [free] ----------> [claimed] ------------------------------> [conflicted]
//!     ^  |  lock          |   ^ lock, unlock                          |
//!     |  +---> [locked] --|---+                                       |
//!     +--- release, leave, silence -----+------ settled --------------+
//! ```
//! The daemon remembers each file that was ever claimed, with its content at its last release. Agent Protocol, 3.3.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{ClaimFile, FileClaimed, FileLocked, FileReleased, LockFile, ReleaseFile};
use super::tally::Tally;
use super::{
    CrewChange, CrewEvent, CrewRefusal, Earlier, Outbox, Part, Principal, Refusal, Reservation,
    ReservationKind, Share, State, Title, Version,
};
use provost_base::limits::{CLAIMS_MAX, CLAIMS_OF_ONE_MAX, CLAIMS_PER_AGENT_MAX};
use provost_base::{AgentId, AssignmentId, Digest, Fence, RepoPath, Timestamp};

/// The content of a file, as far as the daemon knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Content {
    /// The first bytes of the digest of its content.
    Sha([u8; 8]),
    /// The file does not exist.
    Missing,
    /// The path is not a regular file, or cannot be read.
    Unreadable,
    /// The file is larger than the daemon reads.
    TooLarge,
}

impl Content {
    /// Returns the content of a file with this digest.
    pub fn of(digest: &Digest) -> Self {
        let (first, _) = digest.as_bytes().split_first_chunk::<8>().expect("a digest has more bytes");
        Content::Sha(*first)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Sha(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Content::Missing => f.write_str("missing"),
            Content::Unreadable => f.write_str("unreadable"),
            Content::TooLarge => f.write_str("too_large"),
        }
    }
}

impl From<Content> for String {
    fn from(content: Content) -> String {
        content.to_string()
    }
}

impl TryFrom<String> for Content {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = u64::from_str_radix(&text, 16).ok().filter(|_| text.len() == 16);
        match (text.as_str(), digits) {
            ("missing", _) => Ok(Content::Missing),
            ("unreadable", _) => Ok(Content::Unreadable),
            ("too_large", _) => Ok(Content::TooLarge),
            (_, Some(digits)) => Ok(Content::Sha(digits.to_be_bytes())),
            _ => Err("neither a short digest nor the reason for its absence"),
        }
    }
}

/// The agent that has a file, and the way in which it has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// No agent has the file.
    Free,
    /// Claimed by an agent.
    Claimed {
        /// The agent that has claimed it.
        owner: AgentId,
        /// When the agent claimed it.
        since: Timestamp,
    },
    /// The lead has locked it, so that no other agent changes it.
    Locked {
        /// The lead that has locked it.
        owner: AgentId,
        /// When the lead locked it.
        since: Timestamp,
    },
    /// No agent has the file until it is decided whose change counts.
    Conflicted {
        /// The agent that had it before the conflict.
        owner: AgentId,
        /// When that agent claimed it.
        since: Timestamp,
    },
}

impl Hold {
    /// Returns the agent that has the file, or had it before a conflict.
    pub fn owner(&self) -> Option<&AgentId> {
        match self {
            Hold::Free => None,
            Hold::Claimed { owner, .. } | Hold::Locked { owner, .. } | Hold::Conflicted { owner, .. } => {
                Some(owner)
            }
        }
    }

    /// Returns when the file was claimed or locked; `None` if it is free. A conflict keeps the time of its claim.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Hold::Free => None,
            Hold::Claimed { since, .. } | Hold::Locked { since, .. } | Hold::Conflicted { since, .. } => {
                Some(*since)
            }
        }
    }
}

/// A file that an agent has asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The file, in its one spelling.
    pub file: RepoPath,
    /// The agent that has it, and in which way.
    pub held: Hold,
    /// The assignment for which the agent has asked for it, as the agent wrote it.
    pub assignment: Option<Box<str>>,
    /// The agent that had it last; `None` if it was never released.
    pub last: Option<AgentId>,
    /// The file's content, as it was last seen.
    pub content: Content,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The number of the grant, which rises each time.
    pub fence: Fence,
    /// The content before changes that its owner may not have made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// While the file is in conflict: both sides, as far as known, the owner's first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<Version>,
    /// The owner's share, against whose limit the claim counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Claim {
    /// Returns the owner's reservation in the file, for the comparison with reservations of other doors.
    pub(super) fn stake(&self) -> Option<Reservation> {
        Some(Reservation {
            agent: self.held.owner()?.clone(),
            kind: ReservationKind::Claim,
            at: self.file.clone(),
            pattern: None,
            part: Part::default(),
            since: self.held.since()?,
            until: None,
            asked: self.file.as_str().into(),
        })
    }

    fn is_free(&self) -> bool {
        self.held == Hold::Free
    }
}

/// All files that are remembered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Claims {
    all: BTreeMap<RepoPath, Arc<Claim>>,
    places: BTreeMap<Fence, RepoPath>,
    by_owner: BTreeMap<AgentId, BTreeSet<Fence>>,
    by_share: Tally,
    /// Claims without an owner, in the order of their last request, oldest first.
    free: BTreeSet<(Fence, RepoPath)>,
    claimed: usize,
    conflicted: usize,
}

impl Claims {
    pub(super) fn put(&mut self, claim: Arc<Claim>) {
        self.remove(&claim.file);
        self.places.insert(claim.place, claim.file.clone());
        match claim.held.owner() {
            None => drop(self.free.insert((claim.fence, claim.file.clone()))),
            Some(owner) => {
                self.by_owner.entry(owner.clone()).or_default().insert(claim.place);
                self.by_share.add(claim.share.as_ref());
            }
        }
        match &claim.held {
            Hold::Claimed { .. } => self.claimed += 1,
            Hold::Conflicted { .. } => self.conflicted += 1,
            _ => {}
        }
        self.all.insert(claim.file.clone(), claim);
    }

    pub(super) fn remove(&mut self, file: &RepoPath) {
        let Some(claim) = self.all.remove(file) else { return };
        self.places.remove(&claim.place);
        self.free.remove(&(claim.fence, file.clone()));
        match &claim.held {
            Hold::Claimed { .. } => self.claimed -= 1,
            Hold::Conflicted { .. } => self.conflicted -= 1,
            _ => {}
        }
        if !claim.is_free() {
            self.by_share.take(claim.share.as_ref());
        }
        if let Some(owner) = claim.held.owner()
            && let Some(places) = self.by_owner.get_mut(owner)
        {
            places.remove(&claim.place);
            if places.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Returns the claim on this file, if the file was ever claimed and is remembered.
    pub fn get(&self, file: &RepoPath) -> Option<&Arc<Claim>> {
        self.all.get(file)
    }

    /// Returns all claims, in the order in which the files were first asked for.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.places.values().filter_map(|file| self.all.get(file))
    }

    /// Returns all claims, by path.
    pub fn by_path(&self) -> impl Iterator<Item = &Arc<Claim>> {
        self.all.values()
    }

    /// Returns an agent's claims, in the order in which the files were first asked for, conflicted ones included.
    pub fn of(&self, owner: &AgentId) -> impl Iterator<Item = &Arc<Claim>> {
        let places = self.by_owner.get(owner).into_iter().flatten();
        places.filter_map(|place| self.all.get(self.places.get(place)?))
    }

    /// Returns how many files are claimed and not in conflict.
    pub fn claimed(&self) -> usize {
        self.claimed
    }

    /// Returns how many files are in conflict.
    pub fn conflicted(&self) -> usize {
        self.conflicted
    }

    /// Returns how many files are remembered.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether no file is remembered.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl State {
    /// Claims a file. An agent that already has it keeps it, and nothing changes. Agent Protocol, `POST /resources/claim`.
    pub(super) fn claim_file(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ClaimFile,
        out: &mut Outbox,
    ) -> Result<FileClaimed, Refusal> {
        self.crew.get(who.agent()).ok_or(CrewRefusal::NotInCrew)?;
        let known = self.claims.get(&verb.file);
        if let Some(claim) = known {
            self.claimable(claim, who.agent())?;
            if !claim.is_free() {
                return Ok(FileClaimed { claim: claim.clone(), fresh: false, met: Vec::new() });
            }
        }
        self.within_assignment(verb)?;
        self.room_for_claim(who, known.is_none(), out)?;
        self.agents.beat(now, who.agent(), out);
        let held = Hold::Claimed { owner: who.agent().clone(), since: now };
        let taken = self.taken(verb.file.clone(), held, verb.content, verb.assignment.clone(), out);
        let claim = Arc::new(Claim { share: Some(who.share()), ..taken });
        let stakes: Vec<Reservation> = claim.stake().into_iter().collect();
        let met = self.meet(now, &Title::Claim(verb.file.clone()), &stakes, out)?;
        out.append_event(
            CrewEvent::ClaimGranted {
                file: verb.file.clone(),
                first: known.is_none(),
                assignment: verb.assignment.clone(),
            }
            .into(),
        );
        out.put(CrewChange::PutClaim(claim.clone()).into());
        Ok(FileClaimed { claim, fresh: true, met })
    }

    /// Checks whether a file is free for an agent, or already its own.
    fn claimable(&self, claim: &Claim, who: &AgentId) -> Result<(), Refusal> {
        match &claim.held {
            Hold::Conflicted { .. } => Err(CrewRefusal::FileConflicted.into()),
            Hold::Claimed { owner, .. } if owner != who => {
                Err(CrewRefusal::FileClaimed { by: owner.clone() }.into())
            }
            Hold::Locked { owner, .. } if owner != who => {
                Err(CrewRefusal::FileLocked { by: owner.clone() }.into())
            }
            Hold::Free | Hold::Claimed { .. } | Hold::Locked { .. } => Ok(()),
        }
    }

    /// Checks that a claim for an assignment is for one of its files, if `strict_scope` is set.
    fn within_assignment(&self, verb: &ClaimFile) -> Result<(), Refusal> {
        let Some(id) = verb.assignment.as_deref().filter(|_| self.settings.crew.strict_scope) else {
            return Ok(());
        };
        let found = AssignmentId::parse(id).ok().and_then(|id| self.assignments.get(&id));
        match found {
            Some(assignment) if assignment.covers(&verb.file) => Ok(()),
            _ => Err(CrewRefusal::OutsideAssignment { assignment: id.into() }.into()),
        }
    }

    fn room_for_claim(&self, who: &Principal, new: bool, out: &mut Outbox) -> Result<(), Refusal> {
        if self.claims.by_owner.get(who.agent()).map_or(0, BTreeSet::len) >= CLAIMS_PER_AGENT_MAX {
            return Err(Refusal::quota(
                "as many files as one agent can claim",
                CLAIMS_PER_AGENT_MAX,
                "release some",
            ));
        }
        if self.claims.by_share.of(&who.share()) >= CLAIMS_OF_ONE_MAX {
            return Err(Refusal::quota(
                "as many files as the processes of one agent can claim under all their names",
                CLAIMS_OF_ONE_MAX,
                "release some",
            ));
        }
        if new && self.claims.len() >= CLAIMS_MAX {
            let (_, oldest) = self
                .claims
                .free
                .first()
                .ok_or_else(|| Refusal::busy("as many claimed files as there can be"))?;
            out.put(CrewChange::DropClaim(oldest.clone()).into());
        }
        Ok(())
    }

    fn taken(
        &self,
        file: RepoPath,
        held: Hold,
        content: Content,
        assignment: Option<Box<str>>,
        out: &mut Outbox,
    ) -> Claim {
        let known = self.claims.get(&file);
        let fence = out.next_fence();
        Claim {
            place: known.map_or(fence, |it| it.place),
            last: known.and_then(|it| it.last.clone()),
            file,
            held,
            assignment,
            content,
            fence,
            earlier: None,
            versions: Vec::new(),
            share: None,
        }
    }

    /// Releases a claim; nothing happens if the claim is not the caller's. Agent Protocol, `POST /resources/release`.
    pub(super) fn release_file(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &ReleaseFile,
        out: &mut Outbox,
    ) -> FileReleased {
        let own = |it: &&Arc<Claim>| it.held.owner() == Some(who.agent());
        let settled = |it: &&Arc<Claim>| !matches!(it.held, Hold::Conflicted { .. });
        let Some(claim) = self.claims.get(&verb.file).filter(own).filter(settled) else {
            return FileReleased { released: false };
        };
        self.agents.beat(now, who.agent(), out);
        self.free_claim(claim, verb.content, None, out);
        FileReleased { released: true }
    }

    pub(super) fn free_claim(&self, claim: &Claim, content: Content, why: Option<&str>, out: &mut Outbox) {
        let Some(owner) = claim.held.owner().cloned() else { return };
        let why = why.map(Into::into);
        let last = Some(owner.clone());
        out.append_event(CrewEvent::ClaimFreed { file: claim.file.clone(), owner, content, why }.into());
        let (held, versions) = (Hold::Free, Vec::new());
        let free = Claim { held, assignment: None, last, content, earlier: None, versions, ..claim.clone() };
        out.put(CrewChange::PutClaim(Arc::new(free)).into());
    }

    /// Frees all files of an agent; `contents` has their present content, as far as it was read.
    pub(super) fn free_claims_of(
        &self,
        owner: &AgentId,
        contents: &BTreeMap<RepoPath, Content>,
        why: Option<&str>,
        out: &mut Outbox,
    ) {
        for claim in self.claims.of(owner) {
            let content = contents.get(&claim.file).copied().unwrap_or(claim.content);
            self.free_claim(claim, content, why, out);
        }
    }

    /// Locks a file for the lead, so that no other agent changes it, or frees it.
    pub(super) fn lock_file(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &LockFile,
        out: &mut Outbox,
    ) -> Result<FileLocked, Refusal> {
        self.crew.get(who.agent()).ok_or(CrewRefusal::NotInCrew)?;
        let known = self.claims.get(&verb.file);
        let locked = known.is_some_and(|it| matches!(it.held, Hold::Locked { .. }));
        let own = known.is_some_and(|it| it.held.owner() == Some(who.agent()));
        let leads = self.crew.lead() == Some(who.agent());
        if !(leads || own && locked && !verb.lock) {
            return Err(CrewRefusal::LeadOnly { lead: self.crew.lead().cloned() }.into());
        }
        if !verb.lock {
            // A lock outlives the lead who set it; the present lead may end it.
            if let Some(claim) = known.filter(|_| locked) {
                out.append_event(CrewEvent::ClaimLocked { file: verb.file.clone(), locked: false }.into());
                self.free_claim(claim, verb.content, None, out);
            }
            return Ok(FileLocked { changed: locked });
        }
        if let Some(claim) = known {
            self.claimable(claim, who.agent())?;
        }
        if own && locked {
            return Ok(FileLocked { changed: false });
        }
        self.room_for_claim(who, known.is_none(), out)?;
        self.agents.beat(now, who.agent(), out);
        let held = Hold::Locked { owner: who.agent().clone(), since: now };
        let taken = self.taken(verb.file.clone(), held, verb.content, None, out);
        let claim = Claim { share: Some(who.share()), ..taken };
        out.append_event(CrewEvent::ClaimLocked { file: verb.file.clone(), locked: true }.into());
        out.put(CrewChange::PutClaim(Arc::new(claim)).into());
        Ok(FileLocked { changed: true })
    }
}
