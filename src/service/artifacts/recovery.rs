//! Ends applies: those that were carried out, and those that a crash has cut short. The owed effect names them; the
//! record of each says how far it came.

use std::collections::BTreeSet;
use std::io;

use super::apply::{Written, told};
use super::{ApplyError, Provost};
use provost_base::{AgentId, ApplyId, RepoPath};
use provost_domain::command::EndApply;
use provost_domain::{AppliedFile, Refusal, Taking, Verb};
use provost_workspace::apply_record::{Record, Totals};
use provost_workspace::file;

impl Provost {
    /// Settles an apply that an earlier daemon owes, before any client asks for a file to be written: each file has its old or
    /// its new content, temporary files are removed, and the journal records which content each file has.
    ///
    /// # Errors
    /// A [`Refusal`]; then the apply is still owed.
    pub async fn settle_apply(&self, apply: ApplyId, by: AgentId) -> Result<(), Refusal> {
        let provost = self.clone();
        let looked = self.in_applying_turn(move || provost.look_over(apply)).await?;
        let (files, totals) = looked.map_err(|err| {
            tracing::error!(%err, %apply, "the record of an apply cannot be read or written");
            // This is no error of the core: the next start tries it again.
            Refusal::NotReady { why: ApplyError::from(err).to_string().into() }
        })?;
        self.end_apply(apply, by, totals, files).await?;
        if totals.broken_off {
            let applied = totals.applied;
            tracing::warn!(%apply, applied, "an apply was broken off by the end of the daemon; what it had not written stays as it was");
        }
        Ok(())
    }

    /// Puts the end of an apply on record, with the written files that are not on record yet. The effect stays owed until then.
    pub(super) async fn end_apply(
        &self,
        apply: ApplyId,
        by: AgentId,
        totals: Totals,
        mut untold: Vec<Written>,
    ) -> Result<(), Refusal> {
        while let Some(verb) = told(apply, &by, &untold) {
            let first = verb.files.len();
            self.insist(verb).await?;
            drop(untold.drain(..first));
        }
        let Totals { applied, skipped, errors, broken_off } = totals;
        self.insist(EndApply { apply, by, applied, skipped, errors, broken_off }).await
    }

    /// Submits a verb as the daemon until the core accepts it.
    async fn insist<V: Verb + Clone>(&self, verb: V) -> Result<(), Refusal> {
        // This ends at the latest when the engine does.
        self.engine().insist(None, || self.submit(self.system(), verb.clone())).await.map(drop)
    }

    /// Finds out how far an apply came, and completes its record: the files that were written, and the totals.
    fn look_over(&self, apply: ApplyId) -> io::Result<(Vec<Written>, Totals)> {
        let Some(record) = self.0.applying.records.read(apply)? else {
            // The daemon ended before the apply was about to write the first file.
            return Ok((Vec::new(), Totals { broken_off: true, ..Totals::default() }));
        };
        if let Some(totals) = record.end {
            return Ok((written_of(&record), totals));
        }
        self.settle_files(record)
    }

    /// Checks each file that was about to be written, and notes in the record whether it was.
    fn settle_files(&self, mut record: Record) -> io::Result<(Vec<Written>, Totals)> {
        let (mut written, mut troubles) = (Vec::new(), 0);
        let root = self.root().handle();
        for (step, _, done) in &mut record.steps {
            let AppliedFile { before, after, .. } = step.applied();
            let sides = (before, after);
            let settled = file::settle(root, &step.path, &step.beside, sides).unwrap_or_else(|trouble| {
                troubles += 1;
                tracing::warn!(%trouble, path = %step.path, "a file that was being written cannot be read");
                false
            });
            *done |= settled;
            if *done {
                written.push(step.n);
            } else {
                file::remove_folders(root, &step.folders);
            }
        }
        let mut pen = self.0.applying.records.resume(&record)?;
        written.into_iter().try_for_each(|n| pen.done(n))?;
        let files = written_of(&record);
        let applied = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let totals = Totals { applied, skipped: 0, errors: troubles, broken_off: true };
        pen.end(totals)?;
        Ok((files, totals))
    }
}

/// Returns the writes of a record. For a file that was put back, the effect on the task is reversed.
fn written_of(record: &Record) -> Vec<Written> {
    let changed: BTreeSet<RepoPath> = record.changed().into_iter().map(|(step, _)| step.path).collect();
    let takes = |path: &RepoPath| {
        let takes = record.head.takes.clone();
        if changed.contains(path) { takes } else { takes.map(|it| Taking { back: !it.back, ..it }) }
    };
    record.written().map(|(step, _)| (step.applied(), takes(&step.path))).collect()
}
