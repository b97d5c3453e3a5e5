//! `provost log JOB`: the output of a job's workers.

use crate::cli_error::{DONE, INTERRUPTED};
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext, out};
use provost_api::wire;
use provost_client::Client;

/// The time that one request waits for more, in milliseconds.
const WAIT_MS: u64 = 20_000;

pub(super) fn show(here: &RepoContext, job: &str, follow: bool) -> Result<u8, CliError> {
    wait_for(async {
        let client = here.daemon(None).await?;
        tokio::select! {
            ended = pages(here, &client, job, follow) => ended,
            _interrupted = tokio::signal::ctrl_c() => Ok(INTERRUPTED),
        }
    })
}

async fn pages(here: &RepoContext, client: &Client, job: &str, follow: bool) -> Result<u8, CliError> {
    let mut from = 0;
    loop {
        let wait_ms = follow.then_some(WAIT_MS);
        let query = wire::JobLogQuery { id: job.to_owned(), from, wait_ms };
        let page = client.job_log(&query).await?;
        if here.json {
            out::json_line(&page)?;
        } else {
            out::text_as_is(&page.text)?;
        }
        let is_all = page.text.is_empty() && !follow;
        if page.done || is_all {
            return Ok(DONE);
        }
        from = page.next;
    }
}
