//! `provost mcp`: an MCP server on standard input and output, for the host that starts it.

use clap::{Args, Subcommand};

use super::cli_error::DONE;
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, session, up};
use provost_base::AgentId;
use provost_config::McpTools;
use provost_mcp::{CallOf, Mcp as Server, Settings, serve};

/// `provost mcp`.
#[derive(Subcommand, Debug)]
pub(super) enum Mcp {
    /// Serve MCP on standard input and output, for an agent's host that starts it
    #[command(
        after_help = "For the host's configuration:\n  {\"mcpServers\": {\"provost\": {\"command\": \"provost\", \"args\": [\"mcp\"]}}}\n\nExamples:\n  provost mcp serve\n  provost mcp serve --as coder"
    )]
    Serve(Serve),
}

/// `provost mcp serve`.
#[derive(Args, Debug)]
pub(super) struct Serve {
    /// The agent that the host speaks as; by default PROVOST_AGENT, else a name made from the host's session or
    /// process
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// The offered tools, as sets: default, all, tasks, approvals, locks, intents, contracts, claims, handoffs,
    /// messages, pictures, devit; by default as `[mcp] tools` says
    #[arg(long, value_name = "SETS", value_delimiter = ',', value_parser = McpTools::parse)]
    tools: Option<Vec<McpTools>>,
    /// Fail if no daemon runs, instead of starting one
    #[arg(long)]
    no_start: bool,
}

pub(super) fn mcp(here: &RepoContext, asked: Mcp) -> Result<u8, CliError> {
    let Mcp::Serve(asked) = asked;
    up::start_if_absent(here, !asked.no_start)?;
    let config = here.config(None)?.config;
    let sets = asked.tools.as_deref().unwrap_or(&config.mcp.tools);
    let devit = config.mcp.devit_tools.then_some(McpTools::Devit).filter(|_| asked.tools.is_none());
    let settings = Settings {
        tools: sets.iter().copied().chain(devit).map(|it| it.as_str().to_owned()).collect(),
        output_schemas: config.mcp.output_schemas,
        screenshots: config.screenshot.enabled,
    };
    let named = IdentityArgs::named_plainly(here, asked.speak_as)?;
    let named = named.or_else(|| session::agent_of_the_servers_host(&here.places));
    // A call may still name its session.
    let by_session = named.is_none();
    let agent = named.or_else(session::agent_of_the_process);
    let agent = agent.ok_or_else(|| CliError::of("the host has no name").next("provost mcp --as AGENT"))?;
    // Hooks of the same host use this name, also after this process has ended.
    session::settle(&here.places, &agent);
    let _note = session::note(&here.places, &agent);
    wait_for(async {
        let client = here.daemon(Some(agent)).await?.keeping_connections().bound_to(std::process::id());
        let server = Server::new(client, settings).in_worktree(here.linked_worktree());
        let places = here.places.clone();
        let names = move |call: &CallOf<'_>| session::agent_of_the_call(&places, call);
        let served = serve(if by_session { server.by_session(names) } else { server }).await;
        served.map_err(|error| CliError::of("the host could not be served").because(error))?;
        Ok(DONE)
    })
}
