//! `provost metrics`: the daemon's counts, as the text that Prometheus reads.

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::exposition;

pub(super) fn metrics(here: &RepoContext) -> Result<u8, CliError> {
    let metrics = wait_for(async { Ok(here.daemon(None).await?.metrics().await?) })?;
    if here.json {
        out::json(&metrics)?;
        return Ok(DONE);
    }
    out::text_as_is(&exposition(&metrics))?;
    if !metrics.counting {
        out::note(
            "commands, tasks and calls are not counted: set `enabled = true` in `[metrics]`, and start the daemon again",
        );
    }
    Ok(DONE)
}
