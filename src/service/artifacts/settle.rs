//! Applies that a crash has broken off, settled before any door is open: each file is as it was or as it was to be,
//! what lies beside it goes, and the journal says which.

use super::record::{Record, Totals};
use super::{ApplyFault, Provost, file};
use crate::base::ApplyId;
use crate::domain::AppliedFile;
use crate::domain::command::{EndApply, TellApplied};

impl Provost {
    /// Settles what was under way when the daemon ended, before anybody asks for a file to be written.
    pub async fn settle_applies(&self) {
        let provost = self.clone();
        let all = match self.in_applying_turn(move || provost.0.applying.records.all()).await {
            Ok(Ok(all)) => all,
            Ok(Err(err)) => return tracing::error!(%err, "the records of applies cannot be read"),
            Err(_stopping) => return,
        };
        for apply in all {
            if let Err(err) = self.settle_apply(apply).await {
                tracing::error!(%err, %apply, "an apply that was broken off is not settled");
            }
        }
    }

    async fn settle_apply(&self, apply: ApplyId) -> Result<(), ApplyFault> {
        let provost = self.clone();
        let record = self.in_applying_turn(move || provost.0.applying.records.read(apply)).await??;
        let Some(record) = record.filter(|it| it.end.is_none()) else { return Ok(()) };
        let (provost, by) = (self.clone(), record.head.by.clone());
        let (record, files, troubles) = self.in_applying_turn(move || provost.look_over(record)).await?;
        let applied = u32::try_from(files.len()).unwrap_or(u32::MAX);
        for some in files.chunks(crate::base::limits::APPLIED_TOLD_AT_ONCE) {
            let verb = TellApplied { apply, by: by.clone(), files: some.to_vec() };
            if !self.submit_patiently(verb).await {
                return Ok(());
            }
        }
        let totals = Totals { applied, skipped: 0, errors: troubles, broken_off: true };
        let verb = EndApply { apply, by, applied, skipped: 0, errors: troubles, broken_off: true };
        if self.submit_patiently(verb).await {
            let provost = self.clone();
            let ended = move || provost.0.applying.records.resume(&record)?.end(totals);
            self.in_applying_turn(ended).await??;
        }
        tracing::warn!(%apply, applied, "an apply was broken off by the end of the daemon; what it had not written stays as it was");
        Ok(())
    }

    /// Looks at each file that was about to be written; the record then says which were.
    fn look_over(&self, mut record: Record) -> (Record, Vec<AppliedFile>, u32) {
        let (mut files, mut troubles) = (Vec::new(), 0);
        let root = self.root().handle();
        for (step, _, done) in &mut record.steps {
            let sides = (step.before.as_ref().map(|it| it.digest), step.after.as_ref().map(|it| it.digest));
            match file::settle(root, &step.path, &step.beside, sides) {
                Ok(written) => *done |= written,
                Err(trouble) => {
                    troubles += 1;
                    tracing::warn!(%trouble, path = %step.path, "a file that was being written cannot be looked at");
                }
            }
            if *done {
                files.push(AppliedFile { path: step.path.clone(), before: sides.0, after: sides.1 });
            } else {
                file::remove_folders(root, &step.folders);
            }
        }
        let marked = self.0.applying.records.resume(&record).and_then(|mut pen| {
            let done = record.steps.iter().filter(|it| it.2);
            done.map(|(step, ..)| step.n).try_for_each(|n| pen.done(n))
        });
        if let Err(err) = marked {
            tracing::warn!(%err, "the record of an apply that was broken off cannot be written");
        }
        (record, files, troubles)
    }
}
