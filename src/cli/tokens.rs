//! `provost token`: tokens, which prove an agent's name over HTTP and reserve it.

use clap::{Args, Subcommand};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, args, out, up};
use provost_api::wire;
use provost_base::{AgentId, Ttl};

/// `provost token`.
#[derive(Subcommand, Debug)]
pub(super) enum Tokens {
    /// Make a token; it is printed once, and from then on only its holder speaks as this agent
    #[command(
        after_help = "Examples:\n  TOKEN=$(provost token mint feat-auth)\n  curl -H \"Authorization: Bearer $TOKEN\" \"$GIT_PAW_BROKER_URL/status\"\n  provost token mint reviewer --scopes read --ttl 2h"
    )]
    Mint(Mint),
    /// List the valid tokens, without their values
    #[command(after_help = "Examples:\n  provost token list\n  provost token list --json")]
    List,
    /// Revoke a token, or all tokens of an agent, at once
    #[command(
        after_help = "Examples:\n  provost token revoke 3f0c2a91b7de\n  provost token revoke --of feat-auth"
    )]
    Revoke(Revoke),
}

/// `provost token mint`.
#[derive(Args, Debug)]
pub(super) struct Mint {
    /// The agent's name
    agent: AgentId,
    /// The token's scopes: read, join, coordinate, delegate, work; and apply, for your own editor: what it writes needs no further approval
    #[arg(long, value_delimiter = ',', default_value = "read,join,coordinate")]
    scopes: Vec<String>,
    /// The token's lifetime, up to seven days
    #[arg(long, value_parser = args::duration, default_value = "24h")]
    ttl: Ttl,
}

/// `provost token revoke`.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct Revoke {
    /// The token's id, as `provost token list` shows it
    id: Option<String>,
    /// Revoke all tokens of this agent
    #[arg(long, value_name = "AGENT")]
    of: Option<AgentId>,
}

pub(super) fn token(here: &RepoContext, asked: Tokens) -> Result<u8, CliError> {
    up::start_if_absent(here, true)?;
    match asked {
        Tokens::Mint(it) => mint(here, it),
        Tokens::List => list(here),
        Tokens::Revoke(it) => revoke(here, it),
    }
}

fn mint(here: &RepoContext, asked: Mint) -> Result<u8, CliError> {
    let Mint { agent, scopes, ttl } = asked;
    let request = wire::MintToken {
        agent: agent.to_string(),
        scopes: Some(scopes),
        // At least a second: a shorter time was meant to be valid for a moment.
        ttl_s: Some(ttl.as_seconds().max(1)),
    };
    let minted = wait_for(async { Ok(here.daemon(None).await?.mint_token(&request).await?) })?;
    if here.json {
        out::json(&minted)?;
        return Ok(DONE);
    }
    out::line(&minted.secret)?;
    out::note(format!(
        "the token of {agent}, shown only once, valid until {}; clients send it as Authorization: Bearer, and commands read it from PROVOST_TOKEN",
        short_time(&minted.token.expires_at)
    ));
    Ok(DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let tokens = wait_for(async { Ok(here.daemon(None).await?.tokens().await?) })?;
    if here.json {
        out::json(&tokens)?;
        return Ok(DONE);
    }
    if tokens.is_empty() {
        out::note("there are no tokens; see provost token mint --help");
        return Ok(DONE);
    }
    let mut rows = vec![["TOKEN", "AGENT", "GOOD FOR", "GOOD UNTIL", "MADE BY"].map(String::from)];
    rows.extend(tokens.iter().map(|it| {
        let (agent, by) = (out::one_line(&it.agent, 60), out::one_line(&it.minted_by, 60));
        [it.id.clone(), agent, it.scopes.join(","), short_time(&it.expires_at), by]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

fn revoke(here: &RepoContext, asked: Revoke) -> Result<u8, CliError> {
    let request = wire::RevokeTokens { id: asked.id, agent: asked.of.map(|it| it.to_string()) };
    let revoked = wait_for(async { Ok(here.daemon(None).await?.revoke_tokens(&request).await?) })?;
    if here.json {
        out::json(&revoked)?;
        return Ok(DONE);
    }
    for token in revoked {
        out::line(format!("{} of {} is no longer valid", token.id, out::one_line(&token.agent, 60)))?;
    }
    Ok(DONE)
}
