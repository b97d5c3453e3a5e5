//! Releases everything that an agent holds, on behalf of the user.

use clap::Args;

use super::super::cli_error::DONE;
use super::super::repo_context::wait_for;
use super::super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::AgentId;

/// `provost agent release`.
#[derive(Args, Debug)]
pub(in super::super) struct Release {
    /// The agent's name
    name: AgentId,
}

pub(super) fn run(here: &RepoContext, asked: &Release) -> Result<u8, CliError> {
    let request = wire::ReleaseAgent { agent: asked.name.to_string() };
    let done = wait_for(async { Ok(here.daemon(None).await?.release_agent(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&format!("taken from {}: {}", asked.name, done.in_words()), 400)).map(|()| DONE)
}
