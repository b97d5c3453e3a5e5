//! The crew of Agent Protocol: its lead, and the import of the published server's
//! data.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::cli_error::DONE;
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;

/// `provost crew`.
#[derive(Subcommand, Debug)]
pub(super) enum Crew {
    /// Appoint the agent that leads the crew, from a terminal
    #[command(after_help = "Example:\n  provost crew appoint claude-code-1")]
    Appoint(Appoint),
}

/// `provost crew appoint`.
#[derive(Args, Debug)]
pub(super) struct Appoint {
    /// The agent; it must have announced itself, and must not be offline
    agent: String,
}

pub(super) fn crew(here: &RepoContext, asked: Crew) -> Result<u8, CliError> {
    let Crew::Appoint(asked) = asked;
    let request = wire::AppointLead { agent: asked.agent };
    let done = wait_for(async {
        Ok(here.daemon(IdentityArgs::named(here, None)?).await?.appoint_lead(&request).await?)
    })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&done.message, 400)).map(|()| DONE)
}

/// `provost agent-protocol`.
#[derive(Subcommand, Debug)]
pub(super) enum AgentProtocol {
    /// Import its events into the timeline; known events are skipped
    #[command(after_help = "Example:\n  provost agent-protocol import .agent-protocol/protocol.db")]
    Import(Import),
}

/// `provost agent-protocol import`.
#[derive(Args, Debug)]
pub(super) struct Import {
    /// The database; by default `.agent-protocol/protocol.db` of the workspace
    #[arg(value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub(super) fn agent_protocol(here: &RepoContext, asked: AgentProtocol) -> Result<u8, CliError> {
    let AgentProtocol::Import(Import { file }) = asked;
    let file = file.unwrap_or_else(|| here.places.root.join(".agent-protocol/protocol.db"));
    let file = std::path::absolute(&file).unwrap_or(file);
    let request = wire::ImportEvents { file: file.display().to_string() };
    let done = wait_for(async { Ok(here.daemon(None).await?.import_events(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    let wire::Imported { taken, known, unfit } = done;
    out::line(format!("{taken} imported, {known} known already, {unfit} unfit")).map(|()| DONE)
}
