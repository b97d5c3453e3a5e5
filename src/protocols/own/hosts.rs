//! What a host may know of the tasks that its agent has asked for: one handler per path. Those of others are unknown here.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};

use super::asked::{Caller, Query};
use super::map::{self, Fault};
use super::routes::{Answered, patience};
use super::{Own, wire};
use crate::base::limits::MY_TASKS_MAX;
use crate::domain::Refusal;

pub(super) fn routes() -> Router<Own> {
    Router::new().route("/my-task", get(my_task)).route("/my-tasks", get(my_tasks))
}

async fn my_task(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::MyTaskQuery>,
) -> Answered<wire::Task> {
    let id = map::task_id(&query.id)?;
    // Before anything is waited for: how long a stranger's task takes is nobody's business either.
    let now = own.0.provost.task(&id).await.map_err(map::fault)?;
    if now.asked_by != *who.agent() {
        return Err(map::fault(Refusal::TaskNotFound));
    }
    let seen = query.seen.unwrap_or_default();
    let unchanged = |task: &crate::domain::Task| task.updated_at.rfc3339() == seen;
    let task = own.0.provost.task_after(&id, unchanged, patience(query.wait_ms)).await.map_err(map::fault)?;
    Ok(Json(map::task(&task)))
}

async fn my_tasks(
    State(own): State<Own>,
    Caller(who): Caller,
    Query(query): Query<wire::MyTasksQuery>,
) -> Answered<wire::MyTasks> {
    let limit = query.limit.unwrap_or(MY_TASKS_MAX).clamp(1, MY_TASKS_MAX);
    let after = query.after.map(|it| map::task_id(&it)).transpose()?;
    let page = own.0.provost.asked_by(who.agent(), after, limit).await.map_err(|refusal| match refusal {
        Refusal::TaskNotFound => Fault::invalid("the cursor is not one of a page of yours"),
        other => map::fault(other),
    })?;
    let tasks = page.tasks.iter().map(|task| map::task(task)).collect();
    Ok(Json(wire::MyTasks { tasks, next: page.next.map(|id| id.to_string()) }))
}
