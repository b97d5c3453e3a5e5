//! Files that the daemon writes for an agent: requested, judged, counted, reported.
//!
//! ```text
//!   asked --allowed------------------------------> [begun] --told, file by file--> [ended]
//!     \\--approval--> waits --granted--> asked again --^
//!                       \--denied---> asked again: refused, for as long as a grant would have counted
//! ```
//! As with a screenshot, existing clients do not wait but ask again. A grant is valid once, for the same agent and
//! the same contents. A6s 6.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{AppliedTold, ApplyBegun, ApplyEnded, ApplyFiles, ChangedFile, EndApply, TellApplied};
use super::event::EventKind;
use super::judged::{Judged, Permit, QuestionKind, Redeemed};
use super::owing::{self, Deed};
use super::row::Change;
use super::{
    Action, Answer, Call, Content, CrewEvent, Failure, Grant, GrantChange, Judge, Outbox, Outcome, Parked,
    Principal, Refusal, Reply, Reservation, ReservationKind, Scope, Seen, State, Task,
};
use provost_base::limits::APPLIED_REMEMBERED_MAX;
use provost_base::{AgentId, ApplyId, Digest, Json, RepoPath, Timestamp};

/// A file that the apply writes or removes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApplyFile {
    /// The file, relative to the repository's root.
    pub path: RepoPath,
    /// Whether the apply removes the file.
    pub gone: bool,
}

/// A file that the apply has written or removed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AppliedFile {
    /// The file, relative to the repository's root.
    pub path: RepoPath,
    /// The digest of the content before; `None` if the file did not exist.
    pub before: Option<Digest>,
    /// The digest of the content now; `None` if the file no longer exists.
    pub after: Option<Digest>,
}

impl AppliedFile {
    fn says(digest: Option<Digest>) -> Content {
        digest.map_or(Content::Missing, |it| Content::of(&it))
    }

    fn how(&self) -> Seen {
        match (self.before, self.after) {
            (None, _) => Seen::Created,
            (_, None) => Seen::Deleted,
            (Some(_), Some(_)) => Seen::Changed,
        }
    }
}

/// A step of an apply, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyEvent {
    /// Files are about to be written. The actor asked for it.
    ApplyBegun {
        /// The number of the apply.
        apply: ApplyId,
        /// The digest of all contents that the apply is going to write.
        digest: Digest,
        /// The number of files that it is going to write or remove.
        files: u32,
        /// The apply that this one undoes.
        undoes: Option<ApplyId>,
    },
    /// A batch of files was written or removed.
    FilesApplied {
        /// The apply that wrote them.
        apply: ApplyId,
        /// The agent for which they were written.
        by: AgentId,
        /// The files, each with its digests.
        files: Vec<AppliedFile>,
    },
    /// An apply is over.
    ApplyEnded {
        /// The apply that has ended.
        apply: ApplyId,
        /// The agent for which it wrote.
        by: AgentId,
        /// Files that it has written.
        applied: u32,
        /// Files that already had the right content.
        skipped: u32,
        /// Files that it could not write.
        errors: u32,
        /// Whether the daemon ended in the middle of it.
        broken_off: bool,
    },
}

impl ApplyEvent {
    /// Returns the kind's name, as it is stored and as filters name it.
    pub fn name(&self) -> &'static str {
        match self {
            ApplyEvent::ApplyBegun { .. } => "apply_begun",
            ApplyEvent::FilesApplied { .. } => "files_applied",
            ApplyEvent::ApplyEnded { .. } => "apply_ended",
        }
    }
}

impl From<ApplyEvent> for EventKind {
    fn from(event: ApplyEvent) -> Self {
        EventKind::Apply(event)
    }
}

/// Changes to the memory of recent applies, which the store does not keep.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyChange {
    /// A file was written and has this content now.
    Wrote(RepoPath, Content),
    /// A file has got another content since.
    Forget(RepoPath),
}

impl From<ApplyChange> for Change {
    fn from(change: ApplyChange) -> Self {
        Change::Apply(change)
    }
}

/// Files that were written lately. In memory only.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written(BTreeMap<RepoPath, Content>);

impl Written {
    pub(super) fn apply(&mut self, change: &ApplyChange) {
        match change {
            ApplyChange::Wrote(file, content) => {
                // It does not matter which file is dropped: at worst, the change is reported twice.
                if self.0.len() >= APPLIED_REMEMBERED_MAX {
                    self.0.pop_first();
                }
                self.0.insert(file.clone(), *content);
            }
            ApplyChange::Forget(file) => drop(self.0.remove(file)),
        }
    }

    /// Returns the content that an apply has lately written to a file.
    pub(super) fn of(&self, file: &RepoPath) -> Option<Content> {
        self.0.get(file).copied()
    }
}

impl Judged for ApplyFiles {
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
        Some(state.begin_apply(call, self, out).map(Reply::ApplyBegun))
    }

    fn permitted(
        &self,
        state: &State,
        _judge: &dyn Judge,
        call: &Call<'_>,
        _permit: Permit,
        out: &mut Outbox,
    ) -> Result<Reply, Refusal> {
        state.begin_apply(call, self, out).map(Reply::ApplyBegun)
    }

    /// Checks whether the caller's token carries a person's consent: the person presses the key in an editor that holds the token.
    fn brings_a_yes(&self, who: &Principal) -> bool {
        who.may(Scope::Apply)
    }

    fn tool(&self) -> Box<str> {
        "ApplyFiles".into()
    }

    fn shown(&self) -> Json {
        ApplyFiles::shown(self)
    }

    fn kind(&self) -> QuestionKind {
        QuestionKind::Apply
    }
}

impl Redeemed for ApplyFiles {
    fn question(&self) -> Digest {
        self.digest
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
        let begun = ApplyBegun { granted: true, ..state.begin_apply(call, self, out)? };
        out.put(GrantChange::Use(call.who.agent().clone(), self.digest).into());
        Ok(Answer::Done(Reply::ApplyBegun(begun)))
    }

    fn outcome_of(&self, parked: &Parked, why: &str, failure: Failure) -> Outcome {
        let why = match why {
            "" => format!("approval {} was denied", parked.id),
            why => format!("approval {}: {why}", parked.id),
        };
        Outcome::Denied(why.into(), failure)
    }
}

impl State {
    /// Begins an allowed apply, which is owed until its end.
    fn begin_apply(
        &self,
        call: &Call<'_>,
        verb: &ApplyFiles,
        out: &mut Outbox,
    ) -> Result<ApplyBegun, Refusal> {
        // An undo is possible also after the changes were discarded.
        if verb.undoes.is_none() {
            self.can_be_taken(verb.of.as_ref(), call.past.as_ref())?;
        }
        let apply = out.next_apply();
        let files = u32::try_from(verb.files.len()).unwrap_or(u32::MAX);
        let (digest, undoes) = (verb.digest, verb.undoes);
        out.append_event(ApplyEvent::ApplyBegun { apply, digest, files, undoes }.into());
        owing::owe_apply(apply, call.who.agent(), verb.of.as_ref(), out);
        Ok(ApplyBegun { apply, granted: false })
    }

    /// Records files that were written, and tells the followers of these files which agent wanted that.
    pub(super) fn tell_applied(
        &self,
        now: Timestamp,
        verb: &TellApplied,
        past: Option<&Arc<Task>>,
        out: &mut Outbox,
    ) -> AppliedTold {
        let TellApplied { apply, by, files, takes } = verb;
        if let Some(taking) = takes {
            self.take_in((now, *apply), taking, files, past, out);
        }
        out.append_event(
            ApplyEvent::FilesApplied { apply: *apply, by: by.clone(), files: files.clone() }.into(),
        );
        for file in files {
            let (before, after) = (AppliedFile::says(file.before), AppliedFile::says(file.after));
            let claim = self.claims.get(&file.path);
            let owner = claim.and_then(|it| it.held.owner()).filter(|it| !self.is_away(it)).cloned();
            out.append_event(
                CrewEvent::FileChanged {
                    file: file.path.clone(),
                    how: file.how(),
                    tracked: claim.is_some(),
                    owner,
                    by: Some(by.clone()),
                    before: file.before.map(|_| before),
                    after: file.after.map(|_| after),
                }
                .into(),
            );
            let changed = ChangedFile { file: file.path.clone(), content: after, versions: Vec::new() };
            self.report_change(now, by, &changed, out);
            out.put(ApplyChange::Wrote(file.path.clone(), after).into());
        }
        AppliedTold
    }

    /// Records the end of an apply.
    pub(super) fn end_apply(&self, verb: &EndApply, out: &mut Outbox) -> ApplyEnded {
        let EndApply { apply, by, applied, skipped, errors, broken_off } = verb.clone();
        self.settle_deed(&Deed::Apply(apply), out);
        out.append_event(ApplyEvent::ApplyEnded { apply, by, applied, skipped, errors, broken_off }.into());
        ApplyEnded
    }

    /// Returns the reservation that keeps an agent from writing to a file: a claim, a lock in it, or, if the configuration
    /// says so, an announced change. The rules are those between protocols: a write covers the whole file.
    pub fn keeper_of(&self, now: Timestamp, who: &AgentId, file: &RepoPath) -> Option<Reservation> {
        let mine = Reservation {
            agent: who.clone(),
            kind: ReservationKind::Claim,
            at: file.clone(),
            pattern: None,
            part: super::Part::default(),
            since: now,
            until: None,
            asked: file.as_str().into(),
        };
        let binds = |it: &Reservation| match it.kind {
            ReservationKind::Claim | ReservationKind::Lock => true,
            ReservationKind::Intent | ReservationKind::Plan => self.settings.deny_across_doors,
        };
        self.first_in_the_way(now, &mine, binds)
    }
}
