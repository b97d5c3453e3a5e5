//! `lead`, `agent-protocol`: the lead among the agents of Agent Protocol, and the import of the published server's
//! data.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::complaint::DONE;
use super::here::wait_for;
use super::{Complaint, Here, out};
use provost_api::wire;

/// `provost lead`.
#[derive(Args, Debug)]
pub(super) struct Lead {
    /// The agent; it must have announced itself, and must not be offline
    agent: String,
}

pub(super) fn lead(here: &Here, asked: Lead) -> Result<u8, Complaint> {
    let request = wire::AppointLead { agent: asked.agent };
    let done = wait_for(async { Ok(here.daemon(None).await?.appoint_lead(&request).await?) })?;
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

pub(super) fn agent_protocol(here: &Here, asked: AgentProtocol) -> Result<u8, Complaint> {
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
