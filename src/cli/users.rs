//! `provost user`: the rights of the people at the hosts of one repository.

use clap::{Args, Subcommand};
use serde_json::json;

use super::cli_error::DONE;
use super::host_list::{HostList, hosts, tell_doubts};
use super::hosts::{named, shared};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_store::{HostRow, HostState};

/// `provost user`.
#[derive(Subcommand, Debug)]
pub(super) enum User {
    /// Put the user of a host on the list; the first entry begins it, and makes you its admin
    #[command(
        after_help = "Without a list, the users of all hosts are admins. Once there is one, a host that is not in it is a viewer's. The role holds on all hosts, for the person at that host and for the agents there; a passkey is good everywhere.\n\nExamples:\n  provost user add 3f0c2a71 --name bob --role agent\n  provost user add 9b1e04c2 --name ann --role approver"
    )]
    Add(Add),
    /// List the users of the hosts, with their roles
    #[command(after_help = "Examples:\n  provost user list\n  provost user list --json")]
    List,
    /// Give the user of a host another role
    #[command(after_help = "Example:\n  provost user role 3f0c2a71 viewer")]
    Role(Role),
    /// Take the user of a host off the list; from then on that user is a viewer
    #[command(after_help = "Example:\n  provost user remove 3f0c2a71")]
    Remove(Remove),
}

/// `provost user add`.
#[derive(Args, Debug)]
pub(super) struct Add {
    /// The host's id, or its first digits, as `provost host list` shows them
    host: String,
    /// The user's name, for people
    #[arg(long)]
    name: String,
    /// What the user may do: viewer, agent, approver or admin
    #[arg(long)]
    role: String,
}

/// `provost user role`.
#[derive(Args, Debug)]
pub(super) struct Role {
    /// The host's id, or its first digits, as `provost user list` shows them
    host: String,
    /// What the user may do: viewer, agent, approver or admin
    role: String,
}

/// `provost user remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The host's id, or its first digits, as `provost user list` shows them
    host: String,
}

pub(super) fn user(here: &RepoContext, asked: &User) -> Result<u8, CliError> {
    match asked {
        User::Add(it) => set(here, &it.host, Some(&it.name), Some(&it.role)),
        User::Role(it) => set(here, &it.host, None, Some(&it.role)),
        User::Remove(it) => set(here, &it.host, None, None),
        User::List => list(here),
    }
}

fn users(here: &RepoContext) -> Result<Vec<wire::User>, CliError> {
    wait_for(async { Ok(here.daemon(None).await?.users().await?) })
}

fn set(here: &RepoContext, host: &str, name: Option<&str>, role: Option<&str>) -> Result<u8, CliError> {
    let host = named(here, &shared(here)?, host)?.daemon.host.to_string();
    let listed = users(here)?.into_iter().find(|it| it.host == host);
    let name = match (name, listed) {
        (Some(name), None) => name.to_owned(),
        (Some(_), Some(it)) => {
            return Err(CliError::refusal("nothing has changed")
                .because(format!(
                    "the user of that host is on the list: {} ({})",
                    out::one_line(&it.name, 64),
                    it.role
                ))
                .next(format!(
                    "provost user role {} ROLE; for another name: provost user remove {0}, then add",
                    &host[..8]
                )));
        }
        (None, Some(it)) => it.name,
        (None, None) => {
            return Err(CliError::of("the user of that host is not on the list")
                .because("a host that is not listed is a viewer's, once there is a list")
                .next(format!("provost user add {} --name NAME --role ROLE", &host[..8])));
        }
    };
    let request = wire::SetUser { host, name, role: role.map(str::to_owned) };
    let done = wait_for(async { Ok(here.daemon(None).await?.set_user(&request).await?) })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&done.message, 400)).map(|()| DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let HostList { rows: hosts, note, stale_ms } = hosts(here)?;
    if !here.json {
        tell_doubts(&hosts, note.as_deref());
    }
    let listed = users(here)?;
    let takes_part = |it: &&HostRow| !matches!(it.state, HostState::Removing | HostState::Removed);
    let rows: Vec<(HostRow, Option<wire::User>)> = hosts
        .into_iter()
        .filter(|it| takes_part(&it))
        .map(|it| {
            let user = listed.iter().find(|user| user.host == it.daemon.host.to_string()).cloned();
            (it, user)
        })
        .collect();
    let role = |user: &Option<wire::User>| match user {
        Some(it) => it.role.clone(),
        None if listed.is_empty() => "admin".into(),
        None => "viewer".into(),
    };
    if here.json {
        let row = |(host, user): &(HostRow, Option<wire::User>)| {
            json!({
                "host": host.daemon.host.to_string(), "machine": host.name, "name": user.as_ref().map(|it| &it.name),
                "role": role(user), "listed": user.is_some(), "here": host.is_here,
            })
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        out::json(&json!({ "users": rows, "stale_ms": stale_ms }))?;
        return Ok(DONE);
    }
    let mut table = vec![["HOST", "MACHINE", "USER", "ROLE"].map(str::to_owned)];
    table.extend(rows.iter().map(|(host, user)| {
        let own = if host.is_here { " (here)" } else { "" };
        let name = user.as_ref().map_or_else(|| "not listed".to_owned(), |it| out::one_line(&it.name, 64));
        [host.daemon.host.short(), format!("{}{own}", host.name), name, role(user)]
    }));
    out::text_as_is(&out::table(&table))?;
    if listed.is_empty() {
        out::note("there is no list yet, so all are admins; `provost user add` begins it");
    }
    Ok(DONE)
}
