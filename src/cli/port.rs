//! `provost port`: locks a free port of a range, and prints it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use clap::Args;

use super::cli_error::{DONE, HELD};
use super::identity::IdentityArgs;
use super::locks::{LeaseArgs, told};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::Resource;
use provost_client::{Client, ClientError};

/// `provost lock port`.
#[derive(Args, Debug)]
pub(super) struct Port {
    /// The range of ports, as FIRST-LAST; it includes both
    #[arg(value_parser = range, value_name = "FIRST-LAST")]
    range: RangeInclusive<u16>,
    #[command(flatten)]
    lease: LeaseArgs,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// Reads `3000-3999`, or one port.
fn range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let wrong = || "write two ports such as 3000-3999, from 1 to 65535, the lower one first".to_owned();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |it: &str| it.trim().parse::<u16>().ok().filter(|it| *it > 0).ok_or_else(wrong);
    let (first, last) = (port(first)?, port(last)?);
    if first > last { Err(wrong()) } else { Ok(first..=last) }
}

pub(super) fn port(here: &RepoContext, asked: &Port) -> Result<u8, CliError> {
    let pid = asked.lease.process()?.or_else(|| asked.identity.host_process());
    IdentityArgs::start(here)?;
    let (port, locked) = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        first_free(&client, asked, pid).await
    })?;
    if here.json {
        return out::json(&locked).map(|()| DONE);
    }
    told("warning", &locked.warnings, locked.more);
    out::line(port.to_string()).map(|()| DONE)
}

/// Locks the lowest port that no agent has locked and at which no program listens.
async fn first_free(
    client: &Client,
    asked: &Port,
    pid: Option<u32>,
) -> Result<(u16, wire::Locked), CliError> {
    let held = client.locks(&wire::Whose::default()).await?.locks;
    // The caller's own ports count too: each of its calls gets another port.
    let held: BTreeSet<u16> =
        held.iter().filter_map(|it| Resource::parse(&it.symbol).ok()?.as_port()).collect();
    let (mut locked_by_others, mut used) = (0, 0);
    for port in asked.range.clone() {
        if held.contains(&port) {
            locked_by_others += 1;
            continue;
        }
        if provost_system::port_is_free(port).is_err() {
            used += 1;
            continue;
        }
        let request = wire::TakeLock {
            symbol: Resource::port(port).to_string(),
            ttl_ms: asked.lease.ttl_ms(),
            reason: asked.lease.reason.clone(),
            pid,
            fresh: true,
            ..wire::TakeLock::default()
        };
        match client.lock(&request).await {
            Ok(locked) => return Ok((port, locked)),
            // Another agent was quicker.
            Err(ClientError::Refused { fault, .. }) if fault.error == "lock_conflict" => {
                locked_by_others += 1
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (first, last) = (asked.range.start(), asked.range.end());
    Err(CliError::refusal(format!("no port from {first} to {last} is free"))
        .because(format!(
            "{locked_by_others} are locked, and {used} are used by programs or not yours to use"
        ))
        .next("provost lock list shows whose they are; or name another range")
        .with_code(HELD))
}
