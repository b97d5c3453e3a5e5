//! Jobs: one handler per path.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use tokio::time::Instant;

use super::asked::{Caller, Query};
use super::map::{self, Fault};
use super::routes::{Answered, patience};
use super::{Own, wire};
use crate::base::JobId;
use crate::domain::Refusal;

pub(super) fn routes() -> Router<Own> {
    Router::new().route("/job-log", get(log))
}

async fn log(
    State(own): State<Own>,
    _caller: Caller,
    Query(query): Query<wire::JobLogQuery>,
) -> Answered<wire::JobLog> {
    let unknown = || {
        Fault::new(StatusCode::NOT_FOUND, "job_not_found", format!("there is no job {}", query.id))
            .hint("its id begins with job_, exec_ or task_; jobs are remembered for seven days")
    };
    let id = JobId::of_any_kind(&query.id).ok_or_else(unknown)?;
    let until = Instant::now() + patience(query.wait_ms);
    let (part, done) = match own.0.provost.job_log(&id, query.from, until).await {
        Err(Refusal::TaskNotFound) => return Err(unknown()),
        found => found.map_err(map::fault)?,
    };
    Ok(Json(wire::JobLog { text: part.text, next: part.next, done }))
}
