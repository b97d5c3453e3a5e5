//! The preview of an apply or an undo that a person confirms, and the check that exactly this is written.

use super::{ApplyError, Provost, Sorted, digest_of};
use provost_base::{AgentId, ApplyId, Digest, TaskId};
use provost_workspace::change_plan::FileWrite;

/// The writes that an apply or an undo would make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WouldWrite {
    /// The difference, in git's form, as much of it as an approver is shown.
    pub diff: Box<str>,
    /// Files that would be written.
    pub files: usize,
    /// Files that need nothing.
    pub skipped: u32,
    /// Files that would not be written, each with the reason.
    pub errors: Vec<String>,
    /// The content that a person agrees to by confirming.
    pub agreed: Agreed,
}

/// The content that a person has agreed to: these contents in these files, and the difference that showed them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    orders: Digest,
    diff: Digest,
}

impl Agreed {
    pub(super) fn to(orders: &[FileWrite], undoes: Option<ApplyId>, diff: &str) -> Self {
        Self { orders: digest_of(orders, undoes), diff: Digest::of(diff.as_bytes()) }
    }
}

impl Sorted {
    /// Turns sorted artifacts into a preview for a person who has yet to agree.
    fn would_write(self, undoes: Option<ApplyId>) -> WouldWrite {
        let Self { orders, applied, shown, .. } = self;
        let diff = shown.done();
        let agreed = Agreed::to(&orders, undoes, &diff);
        WouldWrite { diff, files: orders.len(), skipped: applied.skipped, errors: applied.errors, agreed }
    }
}

impl Provost {
    /// Returns the writes that taking in a task's changes would make now for this agent: all changes, or those at
    /// these paths and below them. Changes nothing.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub async fn would_apply(
        &self,
        who: &AgentId,
        task: &TaskId,
        paths: &[String],
    ) -> Result<WouldWrite, ApplyError> {
        let changes = self.changes_of(task, paths).await?;
        Ok(self.sorted(who, changes).await?.would_write(None))
    }

    /// Returns the writes that an undo would make now. Changes nothing.
    ///
    /// # Errors
    /// [`ApplyError`].
    pub async fn would_undo(&self, apply: ApplyId, force: bool) -> Result<WouldWrite, ApplyError> {
        Ok(self.sorted_back(apply, force).await?.would_write(Some(apply)))
    }
}
