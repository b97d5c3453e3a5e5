//! Settles applies that a crash has broken off, before any door opens: each file has its old or its new content,
//! temporary files are removed, and the journal records which.

use std::io;

use super::{ApplyError, Provost};
use provost_base::ApplyId;
use provost_domain::AppliedFile;
use provost_domain::command::{EndApply, TellApplied};
use provost_workspace::apply_record::{Pen, Record, Totals};
use provost_workspace::file;

impl Provost {
    /// Settles what was under way when the daemon ended, before any client asks for a file to be written.
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

    async fn settle_apply(&self, apply: ApplyId) -> Result<(), ApplyError> {
        let provost = self.clone();
        let record = self.in_applying_turn(move || provost.0.applying.records.read(apply)).await??;
        let Some(record) = record.filter(|it| it.end.is_none()) else { return Ok(()) };
        let (provost, by) = (self.clone(), record.head.by.clone());
        let (pen, files, troubles) = self.in_applying_turn(move || provost.look_over(record)).await?;
        let mut pen = pen?;
        let applied = u32::try_from(files.len()).unwrap_or(u32::MAX);
        for some in files.chunks(provost_base::limits::APPLIED_TOLD_AT_ONCE) {
            let verb = TellApplied { apply, by: by.clone(), files: some.to_vec() };
            if !self.submit_patiently(verb).await {
                return Ok(());
            }
        }
        let totals = Totals { applied, skipped: 0, errors: troubles, broken_off: true };
        let verb = EndApply { apply, by, applied, skipped: 0, errors: troubles, broken_off: true };
        if self.submit_patiently(verb).await {
            self.in_applying_turn(move || pen.end(totals)).await??;
        }
        tracing::warn!(%apply, applied, "an apply was broken off by the end of the daemon; what it had not written stays as it was");
        Ok(())
    }

    /// Looks at each file that was about to be written; the record then says which were.
    fn look_over(&self, record: Record) -> (io::Result<Pen>, Vec<AppliedFile>, u32) {
        let (mut files, mut written, mut troubles) = (Vec::new(), Vec::new(), 0);
        let root = self.root().handle();
        for (step, _, done) in &record.steps {
            let sides = (step.before.as_ref().map(|it| it.digest), step.after.as_ref().map(|it| it.digest));
            let settled = file::settle(root, &step.path, &step.beside, sides).unwrap_or_else(|trouble| {
                troubles += 1;
                tracing::warn!(%trouble, path = %step.path, "a file that was being written cannot be read");
                false
            });
            if *done || settled {
                files.push(AppliedFile { path: step.path.clone(), before: sides.0, after: sides.1 });
                written.push(step.n);
            } else {
                file::remove_folders(root, &step.folders);
            }
        }
        let pen = self.0.applying.records.resume(&record);
        let marked = pen.and_then(|mut pen| {
            written.into_iter().try_for_each(|n| pen.done(n))?;
            Ok(pen)
        });
        (marked, files, troubles)
    }
}
