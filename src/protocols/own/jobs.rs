//! Jobs: one handler per path.

use hyper::StatusCode;
use tokio::time::Instant;

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::JobId;
use provost_domain::Refusal;

impl Handles<endpoints::JobLog> for Own {
    async fn handle(&self, _call: &Call, query: wire::JobLogQuery) -> Answered<wire::JobLog> {
        let unknown = || {
            OwnError::new(StatusCode::NOT_FOUND, "job_not_found", format!("there is no job {}", query.id))
                .hint("its id begins with job_, exec_ or task_; jobs are remembered for seven days")
        };
        let id = JobId::of_any_kind(&query.id).ok_or_else(unknown)?;
        let until = Instant::now() + patience(query.wait_ms);
        let (part, done) = match self.0.agents.job_log(&id, query.from, until).await {
            Err(Refusal::TaskNotFound) => return Err(unknown()),
            found => found.map_err(map::fault)?,
        };
        Ok(wire::JobLog { text: part.text, next: part.next, done })
    }
}
