//! Runs whose agent or daemon has died: resumed once if the agent can, and otherwise reported as lost.

use std::sync::Arc;

use super::agent_run::{is_apart, is_resumed};
use super::prepare::Prepared;
use super::result::End;
use super::run::{Once, Over, note_report, profile_of, report};
#[cfg(unix)]
use super::scan_report::put_out_of_force;
use super::work_tree_run::rescue;
use super::worker::Workers;
use provost_base::limits::CHANGESETS_KEPT_DAYS;
use provost_base::{EffectId, TaskId};
use provost_domain::{Changeset, ScanReport, Task, TaskState};
use provost_jail::{Copies, Profile};
#[cfg(unix)]
use provost_jail::{Repositories, find_place};
#[cfg(unix)]
use provost_workspace::integrity_scan::Ground;
use provost_workspace::orphaned_copies;

/// Resumes a run that an earlier daemon began, if its agent can; reports it as lost otherwise, since no daemon saw its end.
pub(super) async fn lost(once: Once) {
    let (workers, task, order) = (once.workers.clone(), once.task.clone(), once.order.clone());
    match workers.handle.look(&task).await {
        Ok(Some((found, _))) if workers.can_take_up(&found).await => once.carry_out().await,
        Ok(Some((found, _))) => report_lost(workers.clone(), once.effect, task.clone(), found).await,
        Ok(None) => workers.handle.settle(once.effect).await,
        // The daemon stops; the effect stays owed.
        Err(_) => {}
    }
    workers.done(&task, &order);
}

async fn report_lost(workers: Arc<Workers>, effect: EffectId, task: TaskId, found: Arc<Task>) {
    let started = match found.state {
        TaskState::Running { since, .. } => Some(since),
        _ => None,
    };
    let profile = profile_of(&workers, &found);
    let mut over = Over::of(End::Lost("daemon ended"), started);
    match found.order.work_tree {
        Some(_) => (over.harvest, over.tree) = rescue(&workers, &found).await,
        None => over.harvest = remains(&workers, &found, &profile).await,
    }
    // A comparison from before the crash stays true; without one, the state of the workspace before the run is
    // unknown.
    let unseen = workers.left_unseen(&task);
    let is_left = matches!(&over.harvest, Some(it) if it.incomplete) && found.order.work_tree.is_none();
    if found.handoff.is_none() && (profile.copies == Copies::No || is_left || unseen.is_some()) {
        let unknown =
            || ScanReport::unknown("the daemon ended while it ran, so there is nothing to compare with");
        note_report(&workers, &task, unseen.map_or_else(unknown, |it| it.report), None).await;
    }
    report(&workers, effect, found, profile, over).await;
}

/// Returns a note on the changes that a lost run has made in its private copy; `None` if it worked in place.
async fn remains(workers: &Workers, task: &Task, profile: &Profile) -> Option<Changeset> {
    if !is_apart(task, profile) {
        return None;
    }
    let (copies, id) = (workers.place.copies.clone(), task.id().clone());
    let look = move || {
        let place = orphaned_copies::of(&copies, &id)?;
        let made = quieted(&place);
        Some((place, made))
    };
    let found = tokio::task::spawn_blocking(look).await.ok().flatten();
    let why = match found {
        Some((place, made)) => format!(
            "what it had changed is not among the artifacts: the private copy in which it worked is at {}, as it was then, \
             and is removed after {CHANGESETS_KEPT_DAYS} days; run nothing in it and open it in no editor, and compare it from the \
             workspace (git diff --no-index){made}",
            place.display()
        ),
        None => "what it had changed is lost: its private copy is not there any more".into(),
    };
    Some(Changeset { left_out: vec![why.into()], incomplete: true, ..Changeset::default() })
}

/// Disables the repositories in an agent's leftovers: git, prompts and editors obey a repository where they find it.
/// Returns their names, in words.
#[cfg(unix)]
fn quieted(place: &std::path::Path) -> String {
    let Ok(root) = find_place(place) else { return String::new() };
    let ground = Ground::of_nothing(&root);
    let (_, made) = put_out_of_force(&ground, &Repositories::default(), &ground.look());
    made.map(|it| format!("; a git repository was in it: {it}")).unwrap_or_default()
}

/// Does nothing: on this system no run can be resumed in a copy with repositories.
#[cfg(not(unix))]
fn quieted(_place: &std::path::Path) -> String {
    String::new()
}

impl Once {
    /// Leaves the copy of an agent that has died for a run that resumes its session. `false` if no run can.
    pub(super) async fn leaves_it_to_another(&self, prepared: &mut Prepared) -> bool {
        let workers = &self.workers;
        let stops = workers.handle.shutdown.is_cancelled() || self.order.stop.is_cancelled();
        if stops || !prepared.private.is_own() || prepared.session.is_none() {
            return false;
        }
        let Ok(Some((task, _))) = workers.handle.look(&self.task).await else { return false };
        if !task.can_be_resumed() {
            return false;
        }
        let (private, session) = (std::mem::take(&mut prepared.private), prepared.session.take());
        let (copies, task) = (workers.place.copies.clone(), self.task.clone());
        let work = move || {
            drop(session);
            private.leave(&copies, &task)
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }
}

impl Workers {
    /// Checks whether a run of an earlier daemon can be resumed: its agent can, and its copy still exists.
    async fn can_take_up(&self, task: &Task) -> bool {
        let profile = (self.profiles)(&task.order.worker);
        if !task.can_be_resumed() || !is_resumed(task) || profile.is_none_or(|it| it.acp.is_none()) {
            return false;
        }
        let session = task.talk.as_ref().and_then(|it| it.session.clone());
        let (place, id) = (self.place.clone(), task.id().clone());
        let work = move || {
            let base =
                place.sessions.as_ref().zip(session?.kept).map(|(kept, first)| kept.base_of(&first))?;
            orphaned_copies::of(&place.copies, &id).filter(|_| base.is_file())
        };
        tokio::task::spawn_blocking(work).await.ok().flatten().is_some()
    }
}
