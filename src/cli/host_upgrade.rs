//! `provost host upgrade`: the last step of an update on several hosts, once no host has an older release.

use serde_json::json;

use super::cli_error::DONE;
use super::host_list::{row_json, tell_doubts};
use super::{CliError, RepoContext, database, out};
use provost_store::{self as store, Database, ENTRY_FORMAT, HostRow, StoreError, Upgraded};

/// Raises the format of the log where all hosts can read the newest one of this release.
pub(super) fn upgrade(here: &RepoContext, database: &Database) -> Result<u8, CliError> {
    let state = &here.places.state;
    let upgraded = database::ask(|| store::upgrade(state, database, ENTRY_FORMAT));
    let done = upgraded.map_err(|err| refused(&err))?;
    if !here.json {
        tell_doubts(&done.doubted, None);
    }
    if !done.behind.is_empty() {
        return Err(CliError::refusal(format!(
            "nothing has changed: the log stays in format {}, since not all hosts can read {}",
            done.from, done.newest
        ))
        .because(names(&done.behind))
        .next(
            "on each of these hosts: provost down; install the newer release; provost up. A host that is gone for good: provost \
             host remove ID. Then this again",
        ));
    }
    if here.json {
        let rows = |of: &[HostRow]| of.iter().map(row_json).collect::<Vec<_>>();
        out::json(&json!({
            "from": done.from, "to": done.to, "raised": done.from != done.to, "other_releases": rows(&done.others), "doubted": rows(&done.doubted),
        }))?;
        return Ok(DONE);
    }
    out::line(told(&done))?;
    Ok(DONE)
}

fn told(done: &Upgraded) -> String {
    let mut text = match done.from == done.to {
        true => format!(
            "nothing to do: the log is in format {}, the newest of this release, and all hosts read it",
            done.to
        ),
        false => format!(
            "the log is written in format {} from now on; a host that reads only {} does not start any more",
            done.to, done.from
        ),
    };
    if !done.others.is_empty() {
        text.push_str(&format!(
            "\nnext: these hosts have another release than this one, {}: {}",
            env!("CARGO_PKG_VERSION"),
            names(&done.others)
        ));
    }
    text
}

fn names(hosts: &[HostRow]) -> String {
    let one = |it: &HostRow| {
        let (oldest, newest) = it.formats;
        let reads = if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") };
        format!("{} ({}, Provost {}, reads format {reads})", it.name, it.daemon.host.short(), it.version)
    };
    hosts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Adds the next step to a refusal: where the tables are of a newer release, that release has to be installed first.
fn refused(err: &StoreError) -> CliError {
    let refusal = CliError::refusal("nothing has changed").because(err);
    match err {
        StoreError::Newer { .. } => {
            refusal.next("install the newer release here, and ask again with that one")
        }
        _ => refusal.next("docs/hosts.md says in which order several hosts are updated"),
    }
}
