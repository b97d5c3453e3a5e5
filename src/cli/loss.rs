//! `provost store accept-loss`: an operator goes on with a database that has lost acknowledged writes for good.

use std::io::{BufRead as _, IsTerminal as _};

use clap::Args;
use serde_json::json;

use super::cli_error::{DONE, FAILED};
use super::repo_context::now;
use super::{CliError, RepoContext, database, out};
use provost_store::{self as store, Loss, Site, StoreError};

/// `provost store accept-loss`.
#[derive(Args, Debug)]
pub(super) struct AcceptLoss {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) fn accept_loss(here: &RepoContext, asked: &AcceptLoss) -> Result<u8, CliError> {
    let Some(database) = database::of(here)? else {
        return Err(CliError::of("the state of this repository is in the state folder")
            .because("this command is for a store in PostgreSQL; `[store] url` names none")
            .next("provost store restore --help"));
    };
    let anchor = here.places.anchor();
    let site = Site { dir: &here.places.state, outside: Some(&anchor), database: &database, now: now() };
    if !asked.yes {
        confirm(database::ask(|| store::loss(site)).map_err(refused)?)?;
    }
    let done = database::ask(|| store::accept_loss(site)).map_err(refused)?;
    if here.json {
        out::json(&json!({
            "was": done.was, "is": done.is, "goes_on_at": done.goes_on_at, "fences_above": done.fences_above,
            "tokens_dropped": true,
        }))?;
        return Ok(DONE);
    }
    out::line(format!(
        "the database was at event {} and ends at event {}: the journal goes on at event {}, and fences above {}",
        done.was, done.is, done.goes_on_at, done.fences_above
    ))?;
    out::note(
        "the next start reports tasks that were running then, or waited for a place or their next attempt, and pictures as lost, and runs no \
         pending hooks; all tokens are void: mint new ones with `provost token mint`",
    );
    out::note(
        "what waited then for an answer or for another task waits again, also if it was answered or cancelled since: see `provost \
         task list` and `provost approval list`",
    );
    out::note("start the daemon: provost up");
    Ok(DONE)
}

fn refused(err: StoreError) -> CliError {
    let next = match err {
        StoreError::InUse { .. } => "provost down, then this again",
        _ => "provost doctor",
    };
    CliError::refusal("the journal was not continued").because(err).next(next)
}

/// Waits until the person at the terminal confirms.
fn confirm(lost: Loss) -> Result<(), CliError> {
    let says = format!(
        "the database was at event {} and ends at event {}, so what was acknowledged after that is lost there",
        lost.was, lost.is
    );
    if !std::io::stdin().is_terminal() {
        return Err(CliError::refusal("there is no person to ask whether the loss is accepted")
            .because(says)
            .next("start the server again that has the rest, or provost store accept-loss --yes"));
    }
    out::note(format!("{says}. Go on without it? A server that has the rest must not come back then. [y/N]"));
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CliError::of("nothing was changed").with_code(FAILED)),
    }
}
