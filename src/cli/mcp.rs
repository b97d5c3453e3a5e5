//! `provost mcp`: an MCP server on standard input and output, for the host that starts it.

use clap::Args;

use super::complaint::DONE;
use super::here::wait_for;
use super::speaker::Speaker;
use super::{Complaint, Here, up};
use crate::base::AgentId;
use crate::mcp::{Mcp as Server, Settings, serve};

/// `provost mcp`.
#[derive(Args, Debug)]
pub(super) struct Mcp {
    /// The agent as which the host speaks; without it as PROVOST_AGENT says, else one of the host's session or process
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// Fail when no daemon runs, instead of starting one
    #[arg(long)]
    no_start: bool,
}

pub(super) fn mcp(here: &Here, asked: Mcp) -> Result<u8, Complaint> {
    up::start_if_absent(here, !asked.no_start)?;
    let agent = match Speaker::named(here, asked.speak_as)? {
        Some(agent) => agent,
        None => of_the_host()?,
    };
    let settings = Settings { devit_tools: here.config(None)?.config.mcp.devit_tools };
    wait_for(async {
        let client = here.daemon(Some(agent)).await?;
        let served = serve(Server::new(client, settings)).await;
        served.map_err(|error| Complaint::of("the host could not be served").because(error))?;
        Ok(DONE)
    })
}

/// Hosts that say which session they are give each a name of its own; of others, each process has one.
fn of_the_host() -> Result<AgentId, Complaint> {
    let session = std::env::var("CLAUDE_CODE_SESSION_ID").ok();
    let plain = |it: &str| it.chars().filter(char::is_ascii_alphanumeric).take(12).collect::<String>();
    let session = session.as_deref().map(plain).filter(|it| !it.is_empty());
    let name = match session {
        Some(session) => format!("claude-{session}"),
        None => format!("mcp-{}", std::process::id()),
    };
    AgentId::parse(&name).map_err(|error| Complaint::of("the host has no name").because(error))
}
