//! The queue of branches that wait to be merged.
//!
//! ```text
//!              run                 checks pass                 the trunk has moved
//!   [waiting] ------> [working] ------------------> [moving] ----------------------> [merged]
//!       ^                |  |                          |
//!       |                |  +-- conflict, check fails, the branch is another one --> [set aside]
//!       +-- daemon ends -+------------- the trunk was moved by another ---+
//! ```
//! The core remembers the waiting branches and the progress of each. The service does the merging.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{
    MergeAsked, MergeMoved, MergesBegun, MergesQueued, MergesRemoved, MoveMerge, QueueMerges, RemoveMerges,
    RunMerges,
};
use super::judged::{Judged, Permit, QuestionKind, Redeemed};
use super::post::{Post, Round};
use super::{
    Action, Answer, Call, Change, Effect, EventKind, Failure, Grant, GrantChange, Judge, Outbox, Outcome,
    Parked, Principal, Refusal, Reply, Scope, State,
};
use provost_base::limits::{MERGE_BRANCHES_MAX, MERGES_OVER_MAX, MERGES_WAITING_MAX};
use provost_base::{AgentId, Digest, Fence, Json, Timestamp};

/// The checks of a merge that its asker waives. Only a person can waive them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MergePasses {
    /// The check for changes of files that run later, or that instruct agents.
    pub settings: bool,
    /// The check for locks and claims of agents on changed places.
    pub held: bool,
    /// The check for conflicts of symbols, and broken contracts.
    pub symbols: bool,
    /// The configured checks.
    pub unchecked: bool,
}

/// A branch in the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MergeEntry {
    /// The number of the entry; later entries have higher ones.
    pub number: Fence,
    /// The name of the branch, without `refs/heads/`.
    pub branch: Box<str>,
    /// The branch into which it will be merged.
    pub into: Box<str>,
    /// The commit that will be merged.
    pub commit: Box<str>,
    /// The agent or person that has put it into the queue.
    pub by: AgentId,
    /// When it was put into the queue.
    pub at: Timestamp,
    /// The checks that the asker waives.
    pub passes: MergePasses,
    /// The state of the entry.
    pub state: MergeState,
    /// Whether a run has taken the entry up, and will merge it unchanged.
    #[serde(default)]
    pub taken_up: bool,
}

/// The state of a branch of the queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeState {
    /// The branch waits for a run.
    Waiting,
    /// The branch is being merged and checked. No file or branch of the user has changed yet.
    Working {
        /// The step, in words for people.
        step: Box<str>,
    },
    /// The trunk is about to be moved. After a crash, the trunk itself shows whether it was.
    Moving {
        /// The commit at which the trunk was.
        from: Box<str>,
        /// The commit to which it goes.
        to: Box<str>,
        /// The work trees that follow the trunk, each by its top.
        trees: Vec<Box<str>>,
    },
    /// The branch is in the trunk.
    Merged {
        /// The commit at which the trunk was afterwards.
        to: Box<str>,
        /// When the branch was merged.
        at: Timestamp,
        /// Further information, in words for people.
        note: Box<str>,
    },
    /// The branch is not merged; the others go on.
    SetAside {
        /// The cause in a word, for commands and tools.
        cause: Box<str>,
        /// The reason, in words for people.
        why: Box<str>,
        /// The agent that was told.
        told: Option<AgentId>,
        /// When the branch was set aside.
        at: Timestamp,
    },
}

impl MergeState {
    /// Returns the word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            MergeState::Waiting => "waiting",
            MergeState::Working { .. } => "working",
            MergeState::Moving { .. } => "moving",
            MergeState::Merged { .. } => "merged",
            MergeState::SetAside { .. } => "set_aside",
        }
    }

    /// Checks whether the entry has reached its end.
    pub fn is_over(&self) -> bool {
        matches!(self, MergeState::Merged { .. } | MergeState::SetAside { .. })
    }

    fn is_under_way(&self) -> bool {
        matches!(self, MergeState::Working { .. } | MergeState::Moving { .. })
    }

    /// Checks whether the diagram has an arrow from this state to the other.
    fn leads_to(&self, to: &MergeState) -> bool {
        match self {
            MergeState::Waiting => matches!(to, MergeState::Working { .. }),
            MergeState::Working { .. } => true,
            MergeState::Moving { .. } => !matches!(to, MergeState::Moving { .. }),
            MergeState::Merged { .. } | MergeState::SetAside { .. } => false,
        }
    }
}

/// The queue, with the entries that have lately left it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Merges(BTreeMap<Fence, Arc<MergeEntry>>);

impl Merges {
    pub(super) fn put(&mut self, entry: Arc<MergeEntry>) {
        self.0.insert(entry.number, entry);
    }

    pub(super) fn remove(&mut self, number: Fence) {
        self.0.remove(&number);
    }

    /// Returns the entry with this number.
    pub fn get(&self, number: Fence) -> Option<&Arc<MergeEntry>> {
        self.0.get(&number)
    }

    /// Returns all entries, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<MergeEntry>> {
        self.0.values()
    }

    fn of_branch<'a>(&'a self, branch: &'a str, into: &'a str) -> impl Iterator<Item = &'a Arc<MergeEntry>> {
        self.iter().filter(move |it| *it.branch == *branch && *it.into == *into)
    }
}

/// A step of the queue, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeEvent {
    /// A branch was put into the queue.
    MergeQueued {
        /// The number of the entry.
        number: Fence,
        /// The branch.
        branch: Box<str>,
        /// The branch into which it will be merged.
        into: Box<str>,
        /// The commit that will be merged.
        commit: Box<str>,
    },
    /// A branch was taken out of the queue.
    MergeRemoved {
        /// The number of the entry.
        number: Fence,
        /// The branch.
        branch: Box<str>,
    },
    /// The state of a branch in the queue has changed.
    MergeMoved {
        /// The number of the entry.
        number: Fence,
        /// The branch.
        branch: Box<str>,
        /// The branch into which it will be merged.
        into: Box<str>,
        /// The present state of the branch.
        to: MergeState,
    },
}

impl MergeEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            MergeEvent::MergeQueued { .. } => "merge_queued",
            MergeEvent::MergeRemoved { .. } => "merge_removed",
            MergeEvent::MergeMoved { .. } => "merge_moved",
        }
    }
}

impl From<MergeEvent> for EventKind {
    fn from(event: MergeEvent) -> Self {
        EventKind::Merge(event)
    }
}

impl Judged for QueueMerges {
    /// Returns the action of an apply: a merge, too, brings changes into the repository.
    fn action(&self) -> Action {
        Action::Apply
    }

    fn by_person(
        &self,
        state: &State,
        _judge: &dyn Judge,
        call: &Call<'_>,
        out: &mut Outbox,
    ) -> Option<Result<Reply, Refusal>> {
        Some(state.queue_merges(call, self, out).map(Reply::MergesQueued))
    }

    fn permitted(
        &self,
        state: &State,
        _judge: &dyn Judge,
        call: &Call<'_>,
        _permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        state.queue_merges(call, self, out).map(Reply::MergesQueued)
    }

    fn tool(&self) -> Box<str> {
        "QueueMerges".into()
    }

    fn shown(&self) -> Json {
        QueueMerges::shown(self)
    }

    fn kind(&self) -> QuestionKind {
        QuestionKind::Apply
    }
}

impl Redeemed for QueueMerges {
    fn question(&self) -> Digest {
        self.digest()
    }

    /// Uses up the answer to an earlier question. A grant counts once; a denial counts for as long as a grant would have.
    fn redeem(
        &self,
        state: &State,
        call: &Call<'_>,
        grant: &Grant,
        out: &mut Outbox,
    ) -> Result<Answer<Reply>, Refusal> {
        match &grant.outcome {
            Outcome::Granted => {}
            Outcome::Denied(why, _) => {
                return Err(Refusal::Denied { rule: grant.rule.clone(), reason: why.clone() });
            }
            Outcome::Made(_) => return Err(grant.for_something_else()),
        }
        let queued = state.queue_merges(call, self, out)?;
        out.put(GrantChange::Use(call.who.agent().clone(), self.digest()).into());
        Ok(Answer::Done(Reply::MergesQueued(queued)))
    }

    fn outcome_of(&self, parked: &Parked, why: &str, failure: Failure) -> Outcome {
        let why = match why {
            "" => format!("approval {} was denied", parked.id),
            why => format!("approval {}: {why}", parked.id),
        };
        Outcome::Denied(why.into(), failure)
    }
}

/// Checks whether the caller is the user, by a process in which no agent has spoken.
fn is_the_user(who: &Principal) -> bool {
    who.operates()
}

impl State {
    /// Puts branches into the queue. A branch that waits already, or has left the queue, is put there again;
    /// another agent's entry stays as it is, unless the user asks.
    fn queue_merges(
        &self,
        call: &Call<'_>,
        verb: &QueueMerges,
        out: &mut Outbox,
    ) -> Result<MergesQueued, Refusal> {
        if verb.passes != MergePasses::default() && !is_the_user(call.who) {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        if verb.branches.len() > MERGE_BRANCHES_MAX {
            return Err(Refusal::too_long("a merge", MERGE_BRANCHES_MAX, "branches"));
        }
        let waiting = self.merges.iter().filter(|it| !it.state.is_over()).count();
        if waiting + verb.branches.len() > MERGES_WAITING_MAX {
            let next = "run the queue, or remove branches from it: `provost merge queue list` lists them";
            return Err(Refusal::quota(
                "as many branches as can wait to be merged",
                MERGES_WAITING_MAX,
                next,
            ));
        }
        let mut entries = Vec::new();
        for it in &verb.branches {
            let known: Vec<_> = self.merges.of_branch(&it.branch, &verb.into).collect();
            if let Some(same) = self.as_it_waits(call.who, it, &known)? {
                entries.push(same);
                continue;
            }
            // A branch has one entry: the new one has a number and a place of its own.
            known.iter().for_each(|known| out.put(Change::DropMerge(known.number)));
            let number = out.next_fence();
            let (branch, into, commit) = (it.branch.clone(), verb.into.clone(), it.commit.clone());
            let asked = (branch.clone(), into.clone(), commit.clone());
            out.append_event(
                MergeEvent::MergeQueued { number, branch: asked.0, into: asked.1, commit: asked.2 }.into(),
            );
            let (by, at) = (call.who.agent().clone(), call.now);
            let (passes, state) = (verb.passes, MergeState::Waiting);
            let entry =
                Arc::new(MergeEntry { number, branch, into, commit, by, at, passes, state, taken_up: false });
            out.put(Change::PutMerge(entry.clone()));
            entries.push(entry);
        }
        Ok(MergesQueued { entries })
    }

    /// Returns the present entry that a request to add a branch leaves as it is.
    fn as_it_waits(
        &self,
        who: &Principal,
        asked: &MergeAsked,
        known: &[&Arc<MergeEntry>],
    ) -> Result<Option<Arc<MergeEntry>>, Refusal> {
        let cannot = |why: String| Err(Refusal::MergeCannot { why: why.into() });
        for it in known.iter().filter(|it| !it.state.is_over()) {
            if it.state.is_under_way() {
                return cannot(format!("the branch {} is being merged; wait for its end", it.branch));
            }
            let is_anothers = it.by != *who.agent() && !is_the_user(who);
            if is_anothers && it.commit == asked.commit {
                return Ok(Some(Arc::clone(it)));
            }
            if is_anothers {
                let by = &it.by;
                return cannot(format!(
                    "the branch {} was put into the queue by {by}, at another commit; ask {by} to add it again",
                    it.branch
                ));
            }
            if it.taken_up {
                return cannot(format!(
                    "a run of the queue has taken up the branch {}; wait for its end, or remove the branch from the queue and \
                     add it again",
                    it.branch
                ));
            }
        }
        Ok(None)
    }

    /// Takes entries out of the queue: the caller's own; for the user, any.
    pub(super) fn remove_merges(
        &self,
        who: &Principal,
        verb: &RemoveMerges,
        out: &mut Outbox,
    ) -> Result<MergesRemoved, Refusal> {
        for number in &verb.numbers {
            let Some(entry) = self.merges.get(*number) else {
                let why = format!("there is no entry {number} in the queue of merges");
                return Err(Refusal::MergeCannot { why: why.into() });
            };
            if entry.by != *who.agent() && !is_the_user(who) {
                return Err(Refusal::OutOfScope { needs: Scope::Operate });
            }
            if entry.state.is_under_way() {
                let why = format!("the branch {} is being merged; wait for its end", entry.branch);
                return Err(Refusal::MergeCannot { why: why.into() });
            }
            out.append_event(
                MergeEvent::MergeRemoved { number: *number, branch: entry.branch.clone() }.into(),
            );
            out.put(Change::DropMerge(*number));
        }
        Ok(MergesRemoved { count: u32::try_from(verb.numbers.len()).unwrap_or(u32::MAX) })
    }

    /// Owes a run of the queue. Only the user may begin one, since it moves the trunk.
    pub(super) fn run_merges(
        &self,
        who: &Principal,
        verb: &RunMerges,
        out: &mut Outbox,
    ) -> Result<MergesBegun, Refusal> {
        if !is_the_user(who) {
            return Err(Refusal::OutOfScope { needs: Scope::Operate });
        }
        let waits =
            |number: &Fence| self.merges.get(*number).is_some_and(|it| it.state == MergeState::Waiting);
        let numbers: Vec<Fence> = match verb.only.is_empty() {
            true => self.merges.iter().map(|it| it.number).filter(waits).collect(),
            false => verb.only.clone(),
        };
        if let Some(number) = numbers.iter().find(|it| !waits(it)) {
            let why = format!("entry {number} of the queue of merges does not wait; add its branch again");
            return Err(Refusal::MergeCannot { why: why.into() });
        }
        for entry in numbers.iter().filter_map(|it| self.merges.get(*it)).filter(|it| !it.taken_up) {
            out.put(Change::PutMerge(Arc::new(MergeEntry { taken_up: true, ..MergeEntry::clone(entry) })));
        }
        if !numbers.is_empty() {
            out.owe(Effect::RunMerges { numbers: numbers.clone(), asker: who.clone() });
        }
        Ok(MergesBegun { numbers })
    }

    /// Tells the owner of a branch why it was set aside, and all agents that the trunk has moved.
    fn tell_of_merge(&self, now: Timestamp, entry: &MergeEntry, out: &mut Outbox) -> Result<(), Refusal> {
        let from = super::provost();
        let post = match &entry.state {
            MergeState::SetAside { why, told: Some(agent), .. } => {
                Post::Feedback { agent: agent.clone(), from, errors: vec![why.clone()], re: None }
            }
            MergeState::Merged { to, at, .. } => Post::Advanced {
                from,
                branch: entry.branch.clone(),
                sha: to.clone(),
                base: entry.into.clone(),
                at: at.rfc3339().into(),
                summary: None,
            },
            _ => return Ok(()),
        };
        Round::new(now, self, out).tell(post).map(drop)
    }

    /// Records the progress of an entry.
    pub(super) fn move_merge(
        &self,
        now: Timestamp,
        verb: &MoveMerge,
        out: &mut Outbox,
    ) -> Result<MergeMoved, Refusal> {
        let Some(entry) = self.merges.get(verb.number) else { return Ok(MergeMoved { entry: None }) };
        if entry.state == verb.to {
            return Ok(MergeMoved { entry: Some(entry.clone()) });
        }
        if !entry.state.leads_to(&verb.to) {
            let why = format!("entry {} is {}", verb.number, entry.state.as_str());
            return Err(Refusal::MergeCannot { why: why.into() });
        }
        let (branch, into) = (entry.branch.clone(), entry.into.clone());
        out.append_event(
            MergeEvent::MergeMoved { number: verb.number, branch, into, to: verb.to.clone() }.into(),
        );
        let entry = Arc::new(MergeEntry { state: verb.to.clone(), ..MergeEntry::clone(entry) });
        self.tell_of_merge(now, &entry, out)?;
        out.put(Change::PutMerge(entry.clone()));
        if entry.state.is_over() {
            let over: Vec<Fence> =
                self.merges.iter().filter(|it| it.state.is_over()).map(|it| it.number).collect();
            let old = over.len().saturating_sub(MERGES_OVER_MAX - 1);
            over.iter().take(old).for_each(|number| out.put(Change::DropMerge(*number)));
        }
        Ok(MergeMoved { entry: Some(entry) })
    }
}
