//! What is different about the run of an agent: its private copy, what it is told beside its prompt, and what of it is
//! kept.

use std::fs;

use super::apart::{self, Base};
use super::copy::Copied;
use super::gather::gather;
use super::prepare::{Place, jail_refused};
use super::result::Output;
use crate::base::TaskId;
use crate::base::limits::SCHEMA_BYTES_MAX;
use crate::domain::{Failure, Harvest, Task};
use crate::jail::{Draft, Profile, Reader, Resolved, Transcript, find_place};

/// Keeps what a run has left, on the disk.
pub type Keep = std::sync::Arc<dyn Fn(&TaskId, &Harvest, &str) -> Result<(), String> + Send + Sync>;

/// The folders that a run has for itself. Removed when this is dropped.
#[derive(Default)]
pub(super) struct Private {
    /// The copy that it works in.
    pub(super) copied: Option<Copied>,
    /// What the workspace was, where changes are kept.
    pub(super) base: Option<Base>,
    /// Files that it is given to read.
    given: Option<Copied>,
}

/// Whether a run works apart, so that its changes can be told and kept.
pub(super) fn is_apart(task: &Task, profile: &Profile) -> bool {
    profile.agent.is_some() || task.order.errand.as_ref().is_some_and(|errand| errand.harvest)
}

impl Private {
    /// Makes the copy that a task works in, if it does.
    pub(super) fn of(
        place: &Place,
        task: &Task,
        profile: &Profile,
        directory: &Resolved,
    ) -> Result<Self, Failure> {
        if is_apart(task, profile) {
            let below = task.directory.as_ref().map(|it| it.relative.clone()).unwrap_or_default();
            let copy = apart::copy(place.root.handle(), directory.handle(), &below, &place.copies);
            let (copied, base) = copy.map_err(jail_refused)?;
            return Ok(Self { copied: Some(copied), base: Some(base), given: None });
        }
        let copied = profile.copy.then(|| Copied::of(directory.handle(), &place.copies)).transpose();
        Ok(Self { copied: copied.map_err(jail_refused)?, ..Self::default() })
    }

    /// Tells the worker what its run is a part of.
    pub(super) fn tell(&mut self, draft: &mut Draft, task: &Task, place: &Place) -> Result<(), Failure> {
        let Some(errand) = &task.order.errand else { return Ok(()) };
        let words = [
            ("PROVOST_METHOD", &errand.method),
            ("PROVOST_JOB_ID", &errand.job),
            ("PROVOST_PHASE", &errand.phase),
        ];
        for (name, value) in words {
            draft.environment.set(name, value).map_err(jail_refused)?;
        }
        let Some(schema) = &errand.schema else { return Ok(()) };
        if schema.as_str().len() > SCHEMA_BYTES_MAX {
            return Err(jail_refused(format!("its schema has more than {SCHEMA_BYTES_MAX} bytes")));
        }
        let given = Copied::empty(&place.copies).map_err(jail_refused)?;
        let file = given.path().join("schema.json");
        fs::write(&file, schema.as_str()).map_err(jail_refused)?;
        draft.read_only.push(find_place(given.path()).map_err(jail_refused)?);
        let file =
            file.to_str().ok_or_else(|| jail_refused("the copies' folder has a name that is no text"))?;
        draft.environment.set("PROVOST_SCHEMA", file).map_err(jail_refused)?;
        self.given = Some(given);
        Ok(())
    }
}

/// What an agent is given on its standard input.
pub(super) fn input(task: &Task, profile: &Profile) -> Option<Vec<u8>> {
    profile.reads_its_goal().then(|| task.order.goal.as_bytes().to_vec())
}

/// What of a run is to be kept.
pub(super) struct Yield {
    task: TaskId,
    reader: Reader,
    gathers: bool,
}

impl Yield {
    /// `None` for a worker of which nothing is.
    pub(super) fn of(task: &Task, profile: &Profile) -> Option<Self> {
        let errand = task.order.errand.as_ref();
        is_apart(task, profile).then(|| Self {
            task: task.id().clone(),
            reader: profile.agent.map_or(Reader::Lines, |agent| agent.reader),
            gathers: errand.map_or(profile.agent.is_some_and(|agent| agent.edits), |errand| errand.harvest),
        })
    }

    /// Keeps it, and answers what that was. Blocking.
    ///
    /// # Errors
    /// Why it is lost.
    pub(super) fn keep(&self, private: &Private, output: &Output, keep: &Keep) -> Result<Harvest, String> {
        let harvest = match (&private.copied, &private.base) {
            (Some(copied), Some(base)) if self.gathers => gather(copied.path(), base, &self.task),
            _ => Harvest::default(),
        };
        let answer = Transcript::of(self.reader, &output.stdout);
        keep(&self.task, &harvest, answer.answer())?;
        Ok(harvest)
    }
}
