//! `provost host list`, and the hosts for `provost user list`: as the database has them, or as the running daemon has seen them last where the
//! database does not answer.

use serde_json::{Value, json};

use super::cli_error::DONE;
use super::hosts::shared;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, database, out};
use provost_api::wire;
use provost_base::{DaemonId, HostRole};
use provost_store::{self as store, HostRow, HostState, Hosts, StoreError};

/// The word for a host that is down because its daemon was stopped in order.
const STOPPED: &str = "stopped";

/// The hosts for a list.
pub(super) struct HostList {
    /// The hosts, removed ones last. Of those that a daemon has seen, the release, the key and the entries that they had not read are not known.
    pub(super) rows: Vec<HostRow>,
    /// Why the journal does not say which hosts were removed.
    pub(super) note: Option<Box<str>>,
    /// How old the list may be, in milliseconds, if it is the running daemon's; `None` if it is the database's.
    pub(super) stale_ms: Option<u64>,
}

/// Returns the hosts as the database has them. If it does not answer, the running daemon says what it has seen last, and the command says how old
/// that may be.
pub(super) fn hosts(here: &RepoContext) -> Result<HostList, CliError> {
    let (state, database) = (&here.places.state, shared(here)?);
    match database::ask(|| store::hosts(state, &database)) {
        Ok(Hosts { rows, note }) => Ok(HostList { rows, note, stale_ms: None }),
        Err(err @ StoreError::Away(_)) => of_the_daemon(here, &err),
        Err(err) => Err(err.into()),
    }
}

fn of_the_daemon(here: &RepoContext, err: &StoreError) -> Result<HostList, CliError> {
    let told = wait_for(async { Ok(here.daemon(None).await?.hosts().await?) });
    let told = match told {
        Ok(told) if !told.hosts.is_empty() => told,
        // What is wrong is the database, also if the daemon waits for it.
        _ => {
            return Err(CliError::of(
                "the hosts cannot be read: the database does not answer, and no daemon here has seen them",
            )
            .because(err)
            .next("look after the database, or mend `[store] url`: provost doctor asks it"));
        }
    };
    let rows = told.hosts.iter().map(seen).collect::<Result<Vec<_>, _>>()?;
    if !here.json {
        out::note(format!(
            "the database does not answer this command, so these are the hosts that the daemon has seen: {}",
            out::one_line(&err.to_string(), 400)
        ));
    }
    // An answer is never newer than the daemon's last turn.
    here.age.note(told.looked_ms.max(1));
    Ok(HostList { rows, note: None, stale_ms: Some(told.looked_ms) })
}

/// Returns the row of a host that the daemon has seen.
fn seen(it: &wire::Host) -> Result<HostRow, CliError> {
    let odd = |what: &str| {
        CliError::of(format!("the daemon has answered with {what} that this release does not know"))
            .next("provost down && provost up")
    };
    let is_stopped = it.state == STOPPED;
    let state = if is_stopped { Ok(HostState::Down) } else { HostState::parse(&it.state) };
    Ok(HostRow {
        daemon: DaemonId { host: it.host.parse().map_err(|_| odd("a host"))?, incarnation: it.incarnation },
        name: it.machine.clone(),
        version: String::new(),
        state: state.map_err(|_| odd("a state of a host"))?,
        claimed: None,
        is_stopped,
        silent_ms: it.silent_ms,
        behind: 0,
        formats: it.formats,
        key: None,
        role: HostRole::parse(&it.role).ok_or_else(|| odd("a role"))?,
        is_here: it.here,
    })
}

pub(super) fn list(here: &RepoContext) -> Result<u8, CliError> {
    let HostList { rows: hosts, note, stale_ms } = hosts(here)?;
    if here.json {
        let rows: Vec<Value> = hosts.iter().map(|it| listed_json(it, stale_ms)).collect();
        out::json(&json!({ "hosts": rows, "note": note, "stale_ms": stale_ms }))?;
        return Ok(DONE);
    }
    match stale_ms {
        None => {
            let head = ["ID", "MACHINE", "ROLE", "STATE", "LAST SEEN", "BEHIND", "KEY", "VERSION"];
            let rows: Vec<[String; 8]> =
                std::iter::once(head.map(str::to_owned)).chain(hosts.iter().map(row)).collect();
            out::text_as_is(&out::table(&rows))?;
        }
        Some(_) => {
            let head = ["ID", "MACHINE", "ROLE", "STATE", "LAST SEEN"].map(str::to_owned);
            let rows: Vec<[String; 5]> = std::iter::once(head).chain(hosts.iter().map(row_seen)).collect();
            out::text_as_is(&out::table(&rows))?;
        }
    }
    tell_doubts(&hosts, note.as_deref());
    Ok(DONE)
}

/// Names the rows of the table of hosts that do not count, and why the journal cannot be asked.
pub(super) fn tell_doubts(hosts: &[HostRow], note: Option<&str>) {
    hosts.iter().filter_map(doubt).for_each(out::note);
    if let Some(note) = note {
        out::note(format!(
            "the journal does not say which hosts were removed ({note}), so the list says what this machine knew before"
        ));
    }
}

/// Returns the sentence about a row of the table of hosts that does not count, with the next step.
fn doubt(it: &HostRow) -> Option<String> {
    let (claimed, state, id) = (it.claimed?.as_str(), it.state.as_str(), it.daemon.host.short());
    let row = format!("the table `provost.host` calls {} ({id}) {claimed}", it.name);
    Some(match it.state {
        HostState::Removed => format!(
            "{row}, and the signed journal says that it was removed, so it stays {state}: look which logins of the database there are, and \
             take away that of this machine"
        ),
        _ => format!(
            "{row}, and no host that may say so has signed that, so it counts as {state}: look which logins of the database there are; \
             provost host remove {id} takes the machine out"
        ),
    })
}

/// Returns the state of a host, in a word for people.
fn state(it: &HostRow) -> &'static str {
    if it.is_stopped { STOPPED } else { it.state.as_str() }
}

fn row_seen(it: &HostRow) -> [String; 5] {
    let own = if it.is_here { " (here)" } else { "" };
    [
        it.daemon.host.short(),
        format!("{}{own}", it.name),
        it.role.as_str().to_owned(),
        state(it).to_owned(),
        format!("{} s ago", it.silent_ms / 1_000),
    ]
}

fn row(it: &HostRow) -> [String; 8] {
    let [id, machine, role, state, seen] = row_seen(it);
    let key = it.key.clone().unwrap_or_else(|| "none yet".into());
    [id, machine, role, state, seen, format!("{} batches", it.behind), key, it.version.clone()]
}

/// Returns a row without what a daemon does not know of the host.
fn listed_json(it: &HostRow, stale_ms: Option<u64>) -> Value {
    let mut row = row_json(it);
    if stale_ms.is_some() {
        (row["behind"], row["version"]) = (Value::Null, Value::Null);
    }
    row
}

pub(super) fn row_json(it: &HostRow) -> serde_json::Value {
    json!({
        "host": it.daemon.host.to_string(), "incarnation": it.daemon.incarnation, "machine": it.name, "role": it.role.as_str(), "state": state(it),
        "claimed": it.claimed.map(HostState::as_str), "silent_ms": it.silent_ms, "behind": it.behind, "key": it.key, "version": it.version,
        "formats": it.formats, "here": it.is_here,
    })
}
