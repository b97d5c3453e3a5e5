//! Follow-ups: finds the session of an earlier task, and says why a delegation cannot continue it.

use super::Provost;
use provost_base::task_command;
use provost_domain::{AgentSession, ChangesState, Continued, Delegate, Principal, Scope, Task};

impl Provost {
    /// Fills in the session that a delegation continues, with the folder and the branch of the earlier task;
    /// returns the reason if it cannot.
    pub(super) async fn settle_continued(&self, who: &Principal, verb: &mut Delegate) -> Option<Box<str>> {
        let continued = verb.continues.clone()?;
        let Ok(earlier) = self.task(&continued.task).await else {
            return Some(
                format!("there is no task {} to go on with; `provost task list` lists tasks", continued.task)
                    .into(),
            );
        };
        match session_of(&earlier, who, verb) {
            Ok(session) => {
                let order = &earlier.order;
                verb.working_dir = verb.working_dir.take().or_else(|| order.working_dir.clone());
                verb.work_tree = verb.work_tree.take().or_else(|| order.work_tree.clone());
                let task = continued.task;
                verb.continues = Some(Box::new(Continued { task, session: Some(session) }));
                None
            }
            Err(why) => Some(why.into()),
        }
    }
}

/// Returns the session of an earlier task, for a delegation that continues it.
fn session_of(earlier: &Task, who: &Principal, verb: &Delegate) -> Result<AgentSession, String> {
    let (id, worker) = (earlier.id(), &earlier.order.worker);
    // A model that has omitted its name goes by the user's name; here, as where words are said to a task, it does not count as the user.
    let is_askers = earlier.asked_by == *who.agent() && !who.may(Scope::Operate);
    if !is_askers && !who.operates() {
        return Err(format!(
            "task {id} belongs to {}: only that agent and people can go on with it; --as gives a name",
            earlier.asked_by
        ));
    }
    if verb.worker != *worker {
        return Err(format!(
            "task {id} was done by {worker}, and {} has no part in its session",
            verb.worker
        ));
    }
    if verb.errand.is_some() {
        return Err("an editor's request always begins a new session".into());
    }
    if !earlier.state.is_finished() {
        let say = task_command("say", id.as_str(), "\"…\"");
        return Err(format!("task {id} is not over yet; say it to its agent: {say}"));
    }
    let Some(session) = earlier.talk.as_ref().and_then(|it| it.session.as_ref()) else {
        return Err(format!("task {id} has no session to go on with: only agents that speak ACP begin one"));
    };
    if !session.goes_on() {
        return Err(format!(
            "{worker} cannot go on with a session in a new process: it offers neither session/resume nor session/load"
        ));
    }
    if session.kept.is_none() {
        return Err(format!(
            "the home in which {worker} had its session was not kept: that is done in tier ns, and without secrets in files"
        ));
    }
    let is_left = |it: &provost_domain::TaskChanges| {
        earlier.order.work_tree.is_none()
            && matches!(it.state(), ChangesState::Kept | ChangesState::PartlyTaken)
    };
    if earlier.changes.as_ref().is_some_and(is_left) {
        let [apply, discard] = ["apply", "discard"].map(|it| task_command(it, id.as_str(), ""));
        return Err(format!(
            "what task {id} has changed is not all in the workspace, where its agent would look for it; take it in or discard it \
             first: {apply}, or {discard}"
        ));
    }
    Ok(session.clone())
}
