//! Carries out an apply: file by file, each saved before it is replaced, each reported afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::one_step::Judged;
use super::{Applied, kept_by, places, undo};
use crate::Provost;
use provost_base::limits::{APPLIED_TOLD_AT_ONCE, APPLY_TRIES_MAX, DIFF_MS_MAX};
use provost_base::{AgentId, ApplyId, Digest, RepoPath};
use provost_domain::command::{ApplyBegun, TellApplied};
use provost_domain::view::InTheWay;
use provost_domain::{AppliedFile, Taking};
use provost_workspace::apply_record::{Head, Pen, Side, Step, Totals};
use provost_workspace::change_plan::{FileWrite, Plan, Want, plan};
use provost_workspace::file::{self, Done, Found, New};

/// How long the answer to an apply waits until the end of the apply is on record. If the store accepts nothing for
/// longer, the end is recorded after the answer.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// An apply under way.
struct Carrying {
    provost: Provost,
    by: AgentId,
    apply: ApplyId,
    pen: Option<Pen>,
    /// Whether an approval covers exactly these changes, so that no other content may be written.
    exactly: bool,
    /// The effect on the changes of a task.
    takes: Option<Taking>,
    judged: Judged,
    /// The files that were written, and whose writing is not on record yet.
    untold: Vec<Written>,
}

/// A written file, and the effect on the changes of a task.
pub(super) type Written = (AppliedFile, Option<Taking>);

/// Writes the files of an apply, and returns the outcome of all its files, also of those that were counted before.
pub(super) async fn out(
    provost: Provost,
    by: AgentId,
    begun: ApplyBegun,
    (orders, settings): (Vec<FileWrite>, u64),
    (undoes, takes): (Option<ApplyId>, Option<Taking>),
    mut applied: Applied,
) -> Applied {
    let ApplyBegun { apply, granted: exactly } = begun;
    applied.apply = Some(apply);
    let head = Head { apply, by: by.clone(), at: provost.engine().now(), undoes, takes: takes.clone() };
    let records = provost.clone();
    let begun = provost.in_applying_turn(move || records.0.applying.records.begin(&head)).await;
    let pen = match begun {
        Ok(Ok(pen)) => Ok(pen),
        Ok(Err(err)) => Err(format!("what is there cannot be kept for an undo: {err}")),
        Err(refusal) => Err(refusal.to_string()),
    };
    let judged = Judged::at(settings);
    let mut carrying = Carrying { provost, by, apply, pen: None, exactly, takes, judged, untold: Vec::new() };
    match pen {
        Ok(pen) => {
            carrying.pen = Some(pen);
            carrying.all(orders, &mut applied).await;
        }
        Err(why) => applied.errors.extend(orders.iter().map(|it| format!("{}: {why}", it.path))),
    }
    carrying.end(&applied).await;
    applied
}

impl Carrying {
    /// Writes all files in order. Of a change that consists of several files, it writes all or none.
    async fn all(&mut self, orders: Vec<FileWrite>, applied: &mut Applied) {
        let groups = places::groups(&orders);
        let mut waiting = places::together(&orders, &groups);
        // By the number of the group: the files that were written, and those that could not be.
        let (mut written, mut failed) = (BTreeMap::<usize, BTreeSet<RepoPath>>::new(), BTreeMap::new());
        for (order, group) in orders.into_iter().zip(groups) {
            let path = order.path.clone();
            // The other files were checked when the apply began, which may have been a while ago.
            if let Some(all) = waiting.remove(&group)
                && let Err((one, why)) = self.still_fits(all).await
            {
                applied.errors.push(format!("{one}: {why}"));
                failed.insert(group, one);
            }
            if failed.get(&group) == Some(&path) {
                continue;
            }
            if let Some(one) = failed.get(&group) {
                applied
                    .errors
                    .push(format!("{path}: {one}, which belongs to this change, cannot be written"));
                continue;
            }
            match self.one(order).await {
                Ok(None) => applied.skipped += 1,
                Ok(Some(file)) => {
                    applied.applied += 1;
                    written.entry(group).or_default().insert(path);
                    self.wrote(file, self.takes.clone()).await;
                }
                Err(why) => {
                    applied.errors.push(format!("{path}: {why}"));
                    self.put_back(&written.remove(&group).unwrap_or_default(), &path, applied).await;
                    failed.insert(group, path);
                }
            }
        }
    }

    /// Checks all files of a change again before the first of them is removed. The error names a file that no
    /// longer fits, with the reason.
    async fn still_fits(&self, orders: Vec<FileWrite>) -> Result<(), (RepoPath, String)> {
        let (provost, exactly) = (self.provost.clone(), self.exactly);
        let first = orders.first().map(|it| it.path.clone()).unwrap_or_default();
        let look = move || provost.look_again(&orders, exactly);
        let looked = self.provost.in_applying_turn(look).await;
        looked.unwrap_or_else(|refusal| Err((first, refusal.to_string())))
    }

    /// Restores the written files of a change when one of its files cannot be written.
    async fn put_back(&mut self, paths: &BTreeSet<RepoPath>, one: &RepoPath, applied: &mut Applied) {
        if paths.is_empty() {
            return;
        }
        let (provost, apply) = (self.provost.clone(), self.apply);
        let read = provost.clone().in_applying_turn(move || provost.0.applying.records.read(apply)).await;
        let record = read.ok().and_then(Result::ok).flatten();
        let steps = record.iter().flat_map(|it| it.written().rev());
        let orders = steps.filter(|(step, _)| paths.contains(&step.path));
        let mut left = paths.clone();
        for (step, at) in orders {
            applied.applied -= 1;
            left.remove(&step.path);
            let turn = self.provost.0.applying.file(&step.path).await;
            match self.write(undo::back(apply, step, at), false, turn).await {
                Ok(file) => {
                    let why = format!("{one}, which belongs to this change, cannot be written, so it was put back");
                    applied.errors.push(format!("{}: {why}", step.path));
                    if let Some(file) = file {
                        let takes = self.takes.clone().map(|it| Taking { back: !it.back, ..it });
                        self.wrote(file, takes).await;
                    }
                }
                Err(why) => applied.errors.push(format!(
                    "{}: {one}, which belongs to this change, cannot be written, and this cannot be put back: {why}; \
                     `provost undo {apply}` brings it back",
                    step.path
                )),
            }
        }
        for path in left {
            tracing::warn!(%path, %apply, "a part of a change cannot be put back: its record cannot be read");
        }
    }

    /// Remembers a written file, and reports it when enough have come together.
    async fn wrote(&mut self, file: AppliedFile, takes: Option<Taking>) {
        self.untold.push((file, takes));
        if self.untold.len() >= APPLIED_TOLD_AT_ONCE {
            self.tell().await;
        }
    }

    /// Writes one file when no other apply writes it and no agent's reservation protects it;
    /// `None` if it needs nothing.
    async fn one(&mut self, order: FileWrite) -> Result<Option<AppliedFile>, String> {
        let provost = self.provost.clone();
        let turn = provost.0.applying.file(&order.path).await;
        let asked = InTheWay { who: self.by.clone(), files: vec![order.path.clone()] };
        let keepers = provost.view(asked).await.map_err(|it| it.to_string())?;
        if let Some(stake) = keepers.into_iter().flatten().next() {
            return Err(kept_by(&stake));
        }
        self.write(order, self.exactly, turn).await
    }

    /// Writes the file in its turn, once no reservation protects it.
    async fn write(
        &mut self,
        order: FileWrite,
        exactly: bool,
        turn: OwnedMutexGuard<()>,
    ) -> Result<Option<AppliedFile>, String> {
        let provost = self.provost.clone();
        let stopping = || "the daemon is stopping".to_owned();
        let mut pen = self.pen.take().ok_or_else(stopping)?;
        let (hands, apply) = (provost.clone(), self.apply);
        let mut judged = std::mem::replace(&mut self.judged, Judged::at(0));
        let beside = provost.0.applying.beside_others(&order).await;
        let work = move || {
            let allowed = hands.judge_again(&order, &mut judged);
            let written = allowed.and_then(|()| hands.write_file(&mut pen, apply, &order, exactly));
            (pen, judged, written)
        };
        let (pen, judged, written) = provost.in_applying_turn(work).await.map_err(|it| it.to_string())?;
        (self.pen, self.judged) = (Some(pen), judged);
        drop((beside, turn));
        written
    }

    /// Records the written files in the journal.
    async fn tell(&mut self) {
        let Some(verb) = told(self.apply, &self.by, &self.untold) else { return };
        let first = verb.files.len();
        match self.provost.submit(self.provost.system(), verb).await {
            Ok(_) => drop(self.untold.drain(..first)),
            // These files are recorded after the next ones, or at the end.
            Err(refusal) => {
                tracing::debug!(%refusal, apply = %self.apply, "files of an apply are told later")
            }
        }
    }

    /// Ends the apply: nothing more is written. Its own record gets the end first: if the journal cannot get it
    /// now, the next start reads it there and owes it.
    async fn end(self, applied: &Applied) {
        let errors = u32::try_from(applied.errors.len()).unwrap_or(u32::MAX);
        let totals = Totals { applied: applied.applied, skipped: applied.skipped, errors, broken_off: false };
        let Self { provost, by, apply, pen, untold, .. } = self;
        if let Some(mut pen) = pen
            && let Ok(Err(err)) = provost.in_applying_turn(move || pen.end(totals)).await
        {
            tracing::warn!(%err, %apply, "the record of an apply does not say how it has ended");
        }
        let ended = tokio::spawn(async move { provost.end_apply(apply, by, totals, untold).await });
        match timeout(ENDED_WITHIN, ended).await {
            Ok(Ok(Ok(()))) => {}
            Ok(refused) => {
                tracing::warn!(?refused, %apply, "the next start puts the end of an apply on record")
            }
            Err(_late) => {
                tracing::warn!(%apply, "the store does not take the end of an apply; it is offered again")
            }
        }
    }
}

impl Provost {
    /// Checks whether each of these files can be written once the files that the apply removes are gone.
    fn look_again(&self, orders: &[FileWrite], exactly: bool) -> Result<(), (RepoPath, String)> {
        let root = self.root().handle();
        let leaving = orders.iter().filter(|it| it.is_removal()).map(|it| it.path.clone()).collect();
        let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
        for order in orders {
            let looked = places::look_past(root, &order.path, &leaving).and_then(|found| {
                let plan = plan(found.as_ref(), &order.want, &order.check, until)?;
                fits(exactly, &plan, found.as_ref(), order)
            });
            looked.map_err(|why| (order.path.clone(), why))?;
        }
        Ok(())
    }

    /// Writes one file; `None` if it needs nothing. It reads the present content again whenever another program
    /// changes it meanwhile, up to a bound.
    fn write_file(
        &self,
        pen: &mut Pen,
        apply: ApplyId,
        order: &FileWrite,
        exactly: bool,
    ) -> Result<Option<AppliedFile>, String> {
        let root = self.root().handle();
        let plainly = |trouble: file::Trouble| trouble.to_string();
        if !order.is_removal() {
            // The file that was in its place is gone by now; this removes its remains.
            places::sweep(root, &order.path);
        }
        for _ in 0..APPLY_TRIES_MAX {
            let found = file::look(root, &order.path).map_err(plainly)?;
            let until = Instant::now() + Duration::from_millis(DIFF_MS_MAX);
            let plan = plan(found.as_ref(), &order.want, &order.check, until)?;
            fits(exactly, &plan, found.as_ref(), order)?;
            let (bytes, mode) = match plan {
                Plan::Same => return Ok(None),
                Plan::Gone => (None, None),
                Plan::Says { bytes, mode } => (Some(self.kept_or(order, bytes)?), mode),
            };
            let n = pen.next_number();
            let old = found.as_ref().map(|it| side(&it.bytes, it.digest, it.mode));
            let new = bytes.as_ref().map(|it| side(it, Digest::of(it), mode));
            let step = Step {
                n,
                path: order.path.clone(),
                // A worker must not guess the name, or it could take it first.
                beside: format!(".provost-{apply}-{n}-{}", uuid::Uuid::new_v4().simple()).into(),
                before: old.clone(),
                after: new.clone(),
                folders: file::missing_folders(root, &order.path).map_err(plainly)?,
            };
            let old_bytes = found.as_ref().map(|it| it.bytes.as_slice()).unwrap_or_default();
            pen.step(&step, old_bytes)
                .map_err(|err| format!("what is there cannot be kept for an undo: {err}"))?;
            let new = match &bytes {
                Some(bytes) => New::Says { bytes, mode },
                None => New::Gone,
            };
            let old = old.map(|it| it.digest);
            match file::change(root, &order.path, &step.beside, old, &new) {
                Ok(Done::Moved) => file::remove_folders(root, &step.folders),
                Ok(Done::Changed) => {
                    if let Err(err) = pen.done(n) {
                        tracing::warn!(%err, path = %order.path, "an apply has written this, and cannot undo it");
                    }
                    if let Want::Gone { sweep } = &order.want {
                        file::remove_folders(root, sweep);
                    }
                    return Ok(Some(step.applied()));
                }
                Err(trouble) => {
                    file::remove_folders(root, &step.folders);
                    return Err(format!("it cannot be written: {trouble}"));
                }
            }
        }
        Err("it keeps changing while it is written".into())
    }

    /// Returns the content to write: the old content from before an apply where the order wants that, else these bytes.
    pub(super) fn kept_or(&self, order: &FileWrite, bytes: Arc<[u8]>) -> Result<Arc<[u8]>, String> {
        let Want::Kept { apply, side, at, .. } = &order.want else { return Ok(bytes) };
        let kept = self.0.applying.records.old(*apply, side, *at);
        match kept {
            Ok(Some(bytes)) => Ok(bytes.into()),
            Ok(None) => Err("the earlier content cannot be read back unchanged".into()),
            Err(err) => Err(format!("the earlier content cannot be read back: {err}")),
        }
    }
}

/// Returns the next report of written files: up to the size of one report, all with the same effect on a task.
pub(super) fn told(apply: ApplyId, by: &AgentId, untold: &[Written]) -> Option<TellApplied> {
    let (_, takes) = untold.first()?;
    let same = untold.iter().take(APPLIED_TOLD_AT_ONCE).take_while(|(_, its)| its == takes);
    let files = same.map(|(file, _)| file.clone()).collect();
    Some(TellApplied { apply, by: by.clone(), files, takes: takes.clone() })
}

/// Checks that a plan is the one that was allowed, where an approval covers it.
fn fits(exactly: bool, plan: &Plan, found: Option<&Found>, order: &FileWrite) -> Result<(), String> {
    match exactly && !plan.is_nothing() && plan.sides(found, &order.want) != order.sides {
        true => Err("changed on disk since its difference was allowed; ask again".into()),
        false => Ok(()),
    }
}

fn side(bytes: &[u8], digest: Digest, mode: Option<u32>) -> Side {
    Side { digest, len: bytes.len() as u64, mode }
}
