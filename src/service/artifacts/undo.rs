//! Earlier applies and their undo, which is an apply of its own that restores the old files.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Agreed, Applied, ApplyError, Provost, Sorted, places};
use provost_base::limits::DIFF_MS_MAX;
use provost_base::{AgentId, ApplyId, RepoPath, TaskId, Timestamp};
use provost_domain::view::{AppliesUnderWay, TaskOfApply};
use provost_domain::{Answer, Principal, Seen, Taking};
use provost_workspace::apply_record::{Record, Side, Step};
use provost_workspace::change_plan::{Check, FileWrite, Want, plan};

/// An apply whose record is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PastApply {
    /// The id that `undo` takes; it rises with every apply.
    pub apply: ApplyId,
    /// The agent that asked for it.
    pub by: AgentId,
    /// When it was begun.
    pub at: Timestamp,
    /// The apply that this one has undone; `None` for one that is no undo.
    pub undoes: Option<ApplyId>,
    /// The task whose changes it has written or taken back; `None` if the files are no task's changes.
    pub task: Option<TaskId>,
    /// The last apply that has undone this one.
    pub undone_by: Option<ApplyId>,
    /// The files that it has written, and their present state.
    pub files: Vec<(RepoPath, Seen)>,
    /// The number of files that it could not write.
    pub errors: u32,
    /// Whether it has ended.
    pub over: bool,
    /// Whether the daemon ended during the apply.
    pub broken_off: bool,
}

impl Provost {
    /// Returns the applies that can be undone, the newest first.
    ///
    /// # Errors
    /// [`ApplyError::Unreadable`].
    pub async fn applies(&self) -> Result<Vec<PastApply>, ApplyError> {
        let provost = self.clone();
        let read = move || {
            let records = &provost.0.applying.records;
            let one = |id: ApplyId| records.read(id).transpose();
            records.all()?.into_iter().filter_map(one).collect::<std::io::Result<Vec<Record>>>()
        };
        let records = self.in_applying_turn(read).await??;
        // This query comes after the records: an apply that has a record and goes on is owed.
        let under_way = self.view(AppliesUnderWay).await?;
        let undone = records.iter().filter(|it| !it.changed().is_empty());
        let undone: BTreeMap<ApplyId, ApplyId> =
            undone.filter_map(|it| Some((it.head.undoes?, it.head.apply))).collect();
        let past = |record: &Record| PastApply {
            apply: record.head.apply,
            by: record.head.by.clone(),
            at: record.head.at,
            undoes: record.head.undoes,
            task: record.head.takes.as_ref().map(|it| it.task.clone()),
            undone_by: undone.get(&record.head.apply).copied(),
            files: record.changed().iter().map(|(step, _)| (step.path.clone(), became(step))).collect(),
            errors: record.end.map_or(0, |it| it.errors),
            over: !under_way.contains(&record.head.apply),
            broken_off: record.end.is_some_and(|it| it.broken_off),
        };
        Ok(records.iter().rev().map(past).collect())
    }

    /// Returns the task whose changes an apply of this host writes or takes back, also of one that is over by now;
    /// `None` if the files are no task's changes.
    pub async fn task_of_apply(&self, apply: ApplyId) -> Option<TaskId> {
        if let Ok(Some(task)) = self.view(TaskOfApply(apply)).await {
            return Some(task);
        }
        // The core forgets an apply with its end, but its record stays.
        let provost = self.clone();
        let read = self.in_applying_turn(move || provost.0.applying.records.read(apply)).await;
        read.ok()?.ok()??.head.takes.map(|it| it.task)
    }

    /// Restores the files as they were before an apply. A file that has changed since is left alone, unless `force`
    /// says that its present content is not wanted; that content is kept, too.
    ///
    /// # Errors
    /// [`ApplyError`]; then nothing has changed.
    pub async fn undo(
        &self,
        who: &Principal,
        apply: ApplyId,
        force: bool,
        agreed: Option<Agreed>,
    ) -> Result<Answer<Applied>, ApplyError> {
        let sorted = self.sorted_back(apply, force).await?;
        self.write(who, sorted, Some(apply), agreed).await
    }

    /// Returns the writes that an undo of this apply would make.
    pub(super) async fn sorted_back(&self, apply: ApplyId, force: bool) -> Result<Sorted, ApplyError> {
        let (provost, under_way) = (self.clone(), self.view(AppliesUnderWay).await?);
        let sorted = move || {
            let record = provost.0.applying.records.read(apply)?.ok_or(ApplyError::NoSuchApply(apply))?;
            if under_way.contains(&apply) {
                return Err(ApplyError::NotOver(apply));
            }
            Ok(provost.sort_back(&record, force))
        };
        self.in_applying_turn(sorted).await?
    }

    /// Returns the planned writes, and the outcome of the other files.
    fn sort_back(&self, record: &Record, force: bool) -> Sorted {
        let mut sorted = Sorted { settings: self.0.applying.settings_written(), ..Sorted::default() };
        let changed = record.changed();
        let new = changed.iter().filter(|(step, _)| step.before.is_none());
        let (leaving, mut failed) = (new.map(|(step, _)| step.path.clone()).collect(), Vec::new());
        for (step, at) in changed.iter().rev() {
            let mut order = back(record.head.apply, step, *at);
            if force {
                order.check = Check::Nothing;
            }
            let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
            let looked = places::look_past(self.root().handle(), &order.path, &leaving);
            let planned =
                looked.and_then(|it| Ok((plan(it.as_ref(), &order.want, &order.check, until)?, it)));
            match planned {
                Ok((plan, _)) if plan.is_nothing() => sorted.applied.skipped += 1,
                Ok((plan, found)) => {
                    let kept = self.kept_or(&order, [].into()).ok();
                    sorted.put(order, found.as_ref(), &plan, kept.as_deref());
                }
                Err(why) => {
                    sorted.applied.errors.push(format!("{}: {why}", order.path));
                    failed.push((order.path.clone(), order.is_removal()));
                }
            }
        }
        sorted.keep_together(failed);
        self.mark_what_runs_later(&mut sorted.orders);
        let taken = record.head.takes.clone();
        sorted.takes = taken.map(|it| Taking { back: !it.back, ..it });
        sorted
    }
}

/// Returns the write that restores a file as it was before a step, unless the file has changed since.
pub(super) fn back(apply: ApplyId, step: &Step, at: u64) -> FileWrite {
    let want = match &step.before {
        Some(side) => {
            let is_program = |side: &Side| side.mode.map(|it| it & 0o100 != 0);
            let after = step.after.as_ref().and_then(is_program);
            // Its permission bits come back if the apply has changed them.
            let program = is_program(side).filter(|was| after.is_some_and(|is| is != *was));
            Want::Kept { apply, side: side.clone(), at, program }
        }
        None => Want::Gone { sweep: step.folders.clone() },
    };
    let check = Check::Exactly(step.after.as_ref().map(|it| it.digest));
    FileWrite {
        id: Box::default(),
        kind: Box::default(),
        path: step.path.clone(),
        want,
        check,
        sides: (None, None),
        runs_later: false,
    }
}

fn became(step: &Step) -> Seen {
    match (&step.before, &step.after) {
        (None, _) => Seen::Created,
        (_, None) => Seen::Deleted,
        (Some(_), Some(_)) => Seen::Changed,
    }
}
