//! `provost key`: keys, which keep other callers from using an agent's name. Changes the files, then tells a running
//! daemon.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::cli_error::DONE;
use super::repo_context::{now, wait_for};
use super::tasks::short_time;
use super::{CliError, RepoContext, args, out};
use provost_base::{AgentId, Secret, Ttl};
use provost_client::keys::{self, KeyInfo, KeyRing, ReloadOutcome, Role, is_reserved};

/// `provost key`.
#[derive(Subcommand, Debug)]
pub(super) enum Key {
    /// Make a key; it is printed once, and from then on the shared secret does not speak for this agent
    #[command(
        after_help = "Examples:\n  provost key add client:approver --role approver\n  DEVIT_SECRET=$(provost key add worker:gpu --role worker)"
    )]
    Add(Add),
    /// List the agents with a key of their own; secrets are not shown
    #[command(after_help = "Examples:\n  provost key list\n  provost key list --json")]
    List,
    /// Make a new key for an agent; the old key stays valid for a while
    #[command(after_help = "Example:\n  provost key rotate client:approver --overlap 1h")]
    Rotate(Rotate),
    /// Revoke all keys of an agent at once; its name stays reserved
    #[command(after_help = "Example:\n  provost key revoke worker:gpu")]
    Revoke(Revoke),
}

/// `provost key add`.
#[derive(Args, Debug)]
pub(super) struct Add {
    /// The agent's name
    agent: AgentId,
    /// The purpose of the key
    #[arg(long, value_enum, default_value_t = Purpose::Agent)]
    role: Purpose,
}

/// The purpose of a key.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// The agent works and coordinates
    Agent,
    /// The agent answers approvals, too
    Approver,
    /// The agent receives delegated tasks
    Worker,
}

/// `provost key rotate`.
#[derive(Args, Debug)]
pub(super) struct Rotate {
    /// The agent's name
    agent: AgentId,
    /// How long the old key stays valid
    #[arg(long, value_parser = args::duration, default_value = "1h")]
    overlap: Ttl,
}

/// `provost key revoke`.
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// The agent's name
    agent: AgentId,
}

pub(super) fn key(here: &RepoContext, asked: Key) -> Result<u8, CliError> {
    let ring = here.key_ring()?;
    match asked {
        Key::List => list(here, &ring),
        Key::Add(it) => {
            if is_reserved(&it.agent) {
                let what = format!("{} is no name for a key", it.agent);
                return Err(CliError::of(what)
                    .because(
                        "it means the daemon, a page, or a person at a terminal, and no client may speak under it",
                    )
                    .next("provost key add with the client's own name"));
            }
            let role = match it.role {
                Purpose::Agent => Role::Agent,
                Purpose::Approver => Role::Approver,
                Purpose::Worker => Role::Worker,
            };
            let secret = ring.add(&it.agent, role, now())?;
            changed(here, &ring, "key.added", &it.agent, Some(&secret))
        }
        Key::Rotate(it) => {
            let secret = ring.rotate(&it.agent, it.overlap, now())?;
            changed(here, &ring, "key.rotated", &it.agent, Some(&secret))
        }
        Key::Revoke(it) => {
            ring.revoke(&it.agent, now())?;
            changed(here, &ring, "key.revoked", &it.agent, None)
        }
    }
}

/// Prints a new secret, the only time that it is shown, and tells the daemon of the change.
fn changed(
    here: &RepoContext,
    ring: &KeyRing,
    what: &str,
    agent: &AgentId,
    secret: Option<&Secret>,
) -> Result<u8, CliError> {
    let list = ring.list();
    let details = list.iter().find(|info| info.ident == *agent).map(keys::on_record).unwrap_or_default();
    let secret = secret.map(|secret| String::from_utf8_lossy(secret.expose()));
    // The secret first: it must not be lost when the daemon does not answer.
    if here.json {
        out::json(&json!({ "agent": agent, "secret": secret, "key": details }))?;
    } else if let Some(secret) = secret {
        out::line(secret)?;
        out::note(format!("the key of {agent}, shown only once; clients read it from DEVIT_SECRET"));
    } else {
        out::note(format!("{agent} has no valid key any more; its name stays reserved"));
    }
    match wait_for(async { Ok(keys::tell(&here.client(), what, agent.as_str(), details).await) })? {
        ReloadOutcome::Daemon | ReloadOutcome::Nobody => Ok(DONE),
        ReloadOutcome::Failed(err) => {
            Err(CliError::of("the files are changed, but the running daemon still uses the old keys")
                .because(err)
                .next("provost daemon reload"))
        }
    }
}

fn list(here: &RepoContext, ring: &KeyRing) -> Result<u8, CliError> {
    let list = ring.list();
    if here.json {
        out::json(&list)?;
        return Ok(DONE);
    }
    if list.is_empty() {
        out::note("no agent has a key of its own; all share one secret (provost env)");
        return Ok(DONE);
    }
    let mut rows = vec![["AGENT", "ROLE", "KEY", "MADE", "VALID UNTIL"].map(String::from)];
    list.iter().for_each(|info| rows.extend(rows_of(info)));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

fn rows_of(info: &KeyInfo) -> Vec<[String; 5]> {
    let role = match info.role {
        Role::Agent => "agent",
        Role::Approver => "approver",
        Role::Worker => "worker",
    };
    let role = role.to_owned();
    let agent = out::one_line(info.ident.as_str(), 60);
    if let Some(at) = info.revoked {
        return vec![[agent, role, "-".into(), "-".into(), format!("revoked {}", short_time(&at.rfc3339()))]];
    }
    let row = |key: &keys::KeyDates| {
        let until = key.expires.map_or("-".into(), |at| short_time(&at.rfc3339()));
        let created = short_time(&key.created.rfc3339());
        [agent.clone(), role.clone(), key.id.clone(), created, until]
    };
    info.keys.iter().map(row).collect()
}
