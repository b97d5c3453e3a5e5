//! Assignments: work that agents of the crew request from each other. They are plain records, which the daemon does
//! not carry out; delegated work is a [`super::Task`].
//!
//! Any state may follow any other, as the crew decides. Agent Protocol, `POST /tasks` and `PATCH /tasks/:id`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AssignmentMade, AssignmentMoved, MakeAssignment, MoveAssignment};
use super::tally::Tally;
use super::{CrewChange, CrewEvent, CrewRefusal, Outbox, Principal, Refusal, Share, State};
use provost_base::limits::{
    ASSIGNMENTS_MAX, ASSIGNMENTS_OF_ONE_MAX, RECORD_BYTES_MAX, RECORDS_BYTES_MAX, RECORDS_OF_ONE_BYTES_MAX,
};
use provost_base::{AgentId, AssignmentId, Fence, RepoPath, Timestamp};

/// The state of an assignment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentState {
    /// No agent has it yet, and any member may take it.
    Queued,
    /// Assigned to an agent.
    Assigned,
    /// An agent works on it.
    InProgress,
    /// The work waits for a review, or is under review.
    Review,
    /// The work is done.
    Done,
    /// The work cannot go on at the moment.
    Blocked,
}

/// Work that one agent requests from another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The id that the door has chosen.
    pub id: AssignmentId,
    /// The title, for lists.
    pub title: Box<str>,
    /// The work, in words.
    pub description: Box<str>,
    /// The agent that should do it, under any name; `None` leaves it to any member.
    pub to: Option<Box<str>>,
    /// The agent that requests the work.
    pub by: AgentId,
    /// The state of the work, as the crew says.
    pub state: AssignmentState,
    /// Files that the work is about, as they were written.
    pub files: Vec<Box<str>>,
    /// Ids of assignments that have to be done before this one.
    pub after: Vec<Box<str>>,
    /// When the assignment was made.
    pub created_at: Timestamp,
    /// When the work first began.
    pub started_at: Option<Timestamp>,
    /// When the work was last done.
    pub completed_at: Option<Timestamp>,
    /// A number that only orders lists: older ones first.
    pub place: Fence,
    /// The share against whose limit it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
}

impl Assignment {
    /// Checks whether a file is one of the assignment's files, or lies in one of their folders.
    pub fn covers(&self, file: &RepoPath) -> bool {
        let named = self.files.iter().filter_map(|it| RepoPath::parse(it).ok());
        let mut named = named.map(|it| it.as_str().to_owned());
        let inside = |folder: &str| file.as_str().strip_prefix(folder).is_some_and(|it| it.starts_with('/'));
        named.any(|it| it == file.as_str() || inside(&it))
    }

    fn bytes(&self) -> usize {
        let lists = self.files.iter().chain(&self.after).map(|it| it.len() + 16).sum::<usize>();
        let texts = self.title.len() + self.description.len() + self.to.as_deref().map_or(0, str::len);
        texts + lists
    }
}

/// All assignments. The oldest of those that are done are dropped first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assignments {
    all: BTreeMap<AssignmentId, Arc<Assignment>>,
    places: BTreeMap<Fence, AssignmentId>,
    done: BTreeSet<Fence>,
    in_progress: usize,
    bytes: usize,
    /// Assignments that are not done, and their bytes, for each share.
    open: Tally,
    open_bytes: Tally,
}

impl Assignments {
    pub(super) fn put(&mut self, it: Arc<Assignment>) {
        self.remove(&it.id);
        self.places.insert(it.place, it.id.clone());
        if it.state == AssignmentState::Done {
            self.done.insert(it.place);
        } else {
            self.open.add(it.share.as_ref());
            self.open_bytes.add_many(it.share.as_ref(), it.bytes());
        }
        self.in_progress += usize::from(it.state == AssignmentState::InProgress);
        self.bytes += it.bytes();
        self.all.insert(it.id.clone(), it);
    }

    pub(super) fn remove(&mut self, id: &AssignmentId) {
        let Some(it) = self.all.remove(id) else { return };
        self.places.remove(&it.place);
        if !self.done.remove(&it.place) {
            self.open.take(it.share.as_ref());
            self.open_bytes.take_many(it.share.as_ref(), it.bytes());
        }
        self.in_progress -= usize::from(it.state == AssignmentState::InProgress);
        self.bytes = self.bytes.saturating_sub(it.bytes());
    }

    /// Returns the assignment with this id, if it exists.
    pub fn get(&self, id: &AssignmentId) -> Option<&Arc<Assignment>> {
        self.all.get(id)
    }

    /// Returns the number of assignments.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks whether there are no assignments.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns how many assignments are in progress.
    pub fn in_progress(&self) -> usize {
        self.in_progress
    }

    /// Returns how many assignments are done.
    pub fn done(&self) -> usize {
        self.done.len()
    }

    /// Returns all assignments, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Assignment>> {
        self.places.values().filter_map(|id| self.all.get(id))
    }
}

impl State {
    /// Makes an assignment. Agent Protocol, `POST /tasks`.
    pub(super) fn make_assignment(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &MakeAssignment,
        out: &mut Outbox,
    ) -> Result<AssignmentMade, Refusal> {
        let named = verb.to.as_deref().is_some_and(|it| !it.is_empty());
        let assignment = Assignment {
            id: verb.id.clone(),
            title: verb.title.clone(),
            description: verb.description.clone(),
            to: verb.to.clone(),
            by: who.agent().clone(),
            state: if named { AssignmentState::Assigned } else { AssignmentState::Queued },
            files: verb.files.clone(),
            after: verb.after.clone(),
            created_at: now,
            started_at: None,
            completed_at: None,
            place: out.next_fence(),
            share: Some(who.share()),
        };
        self.room_for_assignment(&assignment, out)?;
        self.agents.beat(now, who.agent(), out);
        let (id, title, to) = (assignment.id.clone(), assignment.title.clone(), assignment.to.clone());
        out.append_event(CrewEvent::AssignmentMade { id, title, to }.into());
        let assignment = Arc::new(assignment);
        out.put(CrewChange::PutAssignment(assignment.clone()).into());
        Ok(AssignmentMade { assignment })
    }

    fn room_for_assignment(&self, new: &Assignment, out: &mut Outbox) -> Result<(), Refusal> {
        let known = &self.assignments;
        if known.get(&new.id).is_some() {
            return Err(Refusal::Exists { what: "an assignment" });
        }
        if new.bytes() > RECORD_BYTES_MAX {
            return Err(CrewRefusal::TooLarge { most: RECORD_BYTES_MAX }.into());
        }
        if let Some(share) = &new.share {
            let most =
                "as many tasks to be done as the processes of one agent can make under all their names";
            if known.open.of(share) >= ASSIGNMENTS_OF_ONE_MAX {
                return Err(Refusal::quota(most, ASSIGNMENTS_OF_ONE_MAX, "have some done first"));
            }
            if known.open_bytes.of(share) + new.bytes() > RECORDS_OF_ONE_BYTES_MAX {
                return Err(Refusal::quota(most, RECORDS_OF_ONE_BYTES_MAX, "in bytes; have some done first"));
            }
        }
        let (mut count, mut bytes) = (known.all.len(), known.bytes + new.bytes());
        let mut done = known.done.iter().filter_map(|place| known.all.get(known.places.get(place)?));
        while count >= ASSIGNMENTS_MAX || bytes > RECORDS_BYTES_MAX {
            let oldest =
                done.next().ok_or_else(|| Refusal::busy("as many unfinished tasks as there can be"))?;
            out.put(CrewChange::DropAssignment(oldest.id.clone()).into());
            (count, bytes) = (count - 1, bytes.saturating_sub(oldest.bytes()));
        }
        Ok(())
    }

    /// Moves an assignment to another state; with `expected`, only from that state. Agent Protocol, `PATCH /tasks/:id`.
    pub(super) fn move_assignment(
        &self,
        now: Timestamp,
        who: &Principal,
        verb: &MoveAssignment,
        out: &mut Outbox,
    ) -> Result<AssignmentMoved, Refusal> {
        let found = self.assignments.get(&verb.id).ok_or(CrewRefusal::AssignmentNotFound)?;
        if verb.expected.is_some_and(|it| it != found.state) {
            return Err(CrewRefusal::AssignmentElsewhere { at: found.state }.into());
        }
        if verb.to == AssignmentState::InProgress && self.settings.crew.honour_dependencies {
            self.may_begin(found)?;
        }
        self.agents.beat(now, who.agent(), out);
        let mut moved = Assignment { state: verb.to, ..Assignment::clone(found) };
        match verb.to {
            AssignmentState::InProgress => drop(moved.started_at.get_or_insert(now)),
            AssignmentState::Done => moved.completed_at = Some(now),
            _ => {}
        }
        out.append_event(
            CrewEvent::AssignmentMoved { id: verb.id.clone(), from: found.state, to: verb.to }.into(),
        );
        let assignment = Arc::new(moved);
        out.put(CrewChange::PutAssignment(assignment.clone()).into());
        Ok(AssignmentMoved { assignment })
    }

    fn may_begin(&self, it: &Assignment) -> Result<(), Refusal> {
        let is_done = |id: &str| {
            let found = AssignmentId::parse(id).ok().and_then(|id| self.assignments.get(&id));
            found.is_some_and(|it| it.state == AssignmentState::Done)
        };
        match it.after.iter().find(|id| !is_done(id)) {
            Some(on) => Err(CrewRefusal::AssignmentWaits { on: on.clone() }.into()),
            None => Ok(()),
        }
    }
}
