//! `provost store`: a copy of the store, recovery after damage, and moves to and from a database.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::cli_error::{DONE, FAILED};
use super::repo_context::now;
use super::{CliError, RepoContext, database, journal, loss, moving, out, up};
use provost_store::{self as store, Restore, Verdict};

/// `provost store`.
#[derive(Subcommand, Debug)]
pub(super) enum Store {
    /// Copy the store into a file, while the daemon goes on
    #[command(after_help = "Example:\n  provost store backup ~/provost-2026-07-01.db")]
    Backup(Backup),
    /// Continue after damage: from a backup, with the remaining history, or empty
    #[command(
        after_help = "All numbers continue above the issued ones, so no number is issued twice. The present files are kept aside.\n\nExamples:\n  provost store restore ~/provost-2026-07-01.db\n  provost store restore --as-it-is\n  provost store restore --empty"
    )]
    Restore(RestoreFrom),
    /// Make or update the tables of a store in PostgreSQL
    #[command(
        after_help = "A daemon never does this by itself. Two runs at once wait for each other.\n\nExamples:\n  provost store migrate\n  provost store migrate --url postgres://provost_owner@db.example:5432/shop --password owner --roles\n  provost store migrate --print-roles"
    )]
    Migrate(database::Migrate),
    /// Move the whole state into a PostgreSQL database, or back into the state folder
    #[command(
        after_help = "The daemon has to be stopped. Everything goes, with the journal's chain, in one transaction; the state folder keeps the journal's key and the artifacts. A move that is interrupted leaves the source as it was: type the same again. The tables of the database come first, from `provost store migrate`.\n\nExamples:\n  provost store move --to postgres://provost_laptop@db.example:5432/shop --password pg\n  provost store move --to folder\n  provost store move --to folder --from postgres://provost_laptop@db.example:5432/shop --password pg"
    )]
    Move(moving::Move),
    /// Go on with a database that has lost acknowledged writes for good
    #[command(
        name = "accept-loss",
        after_help = "A daemon writes nothing to a database that has less than it had: after a failover that lost something, or with an older copy put back. This command, with the daemon stopped, goes on without what is lost: all numbers continue above the issued ones, so no number is issued twice, and the journal says so.\n\nExamples:\n  provost store accept-loss\n  provost store accept-loss --yes --json"
    )]
    AcceptLoss(loss::AcceptLoss),
}

/// `provost store backup`.
#[derive(Args, Debug)]
pub(super) struct Backup {
    /// The file of the copy, which must not exist. It contains the journal's key, so keep it secret
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// `provost store restore`.
#[derive(Args, Debug)]
pub(super) struct RestoreFrom {
    /// A file that `provost store backup` has written
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present_any = ["as_it_is", "empty"])]
    file: Option<PathBuf>,
    /// Take the backup also where it is of another repository, or of this one on another machine
    #[arg(long, requires = "file")]
    from_elsewhere: bool,
    /// Continue with the remaining history, if the newest part is missing
    #[arg(long, conflicts_with_all = ["file", "empty"])]
    as_it_is: bool,
    /// Continue with an empty store; the present files are kept aside
    #[arg(long, conflicts_with = "file")]
    empty: bool,
    /// With --empty: do not ask for confirmation, also where the store is undamaged
    #[arg(long, requires = "empty")]
    yes: bool,
}

pub(super) fn store(here: &RepoContext, asked: &Store) -> Result<u8, CliError> {
    match asked {
        Store::Backup(it) => backup(here, it),
        Store::Restore(it) => restore(here, it),
        Store::Migrate(it) => database::migrate(here, it),
        Store::Move(it) => moving::move_state(here, it),
        Store::AcceptLoss(it) => loss::accept_loss(here, it),
    }
}

/// Refuses where the state is in a database, whose own tools copy and restore it.
fn must_be_here(here: &RepoContext) -> Result<(), CliError> {
    if database::of(here)?.is_none() {
        return Ok(());
    }
    Err(CliError::of("the state of this repository is in PostgreSQL, and this command is for a store in the state folder")
        .because("a copy of a database is its administrator's: base backups with archived WAL, or pg_dump of its schema `provost`")
        .next("keep the state folder with the journal's key, too: see docs/hosts.md"))
}

fn backup(here: &RepoContext, asked: &Backup) -> Result<u8, CliError> {
    must_be_here(here)?;
    if let Some(why) = up::running(here)?.and_then(|about| about.broken) {
        return Err(CliError::refusal("the store cannot be copied").because(why).next("provost doctor"));
    }
    let head = store::backup(&here.places.state, &asked.file).map_err(|err| {
        CliError::of("no backup was made")
            .because(err)
            .next("name a file that does not exist; `provost doctor` checks the store")
    })?;
    if here.json {
        out::json(&json!({ "file": asked.file, "seq": head.seq, "anchor": head.to_string() }))?;
    } else {
        out::line(format!("{} has everything up to event {}\n{head}", asked.file.display(), head.seq))?;
    }
    Ok(DONE)
}

fn restore(here: &RepoContext, asked: &RestoreFrom) -> Result<u8, CliError> {
    must_be_here(here)?;
    let how = match (&asked.file, asked.as_it_is) {
        (Some(file), _) if asked.from_elsewhere => Restore::FromElsewhere(file),
        (Some(file), _) => Restore::From(file),
        (None, true) => Restore::AsItIs,
        (None, false) => Restore::Empty,
    };
    // Where a daemon runs, the restore itself fails with an error that says so.
    if how == Restore::Empty && !asked.yes && !matches!(up::running(here), Ok(Some(_))) && is_whole(here) {
        confirm()?;
    }
    here.places.create()?;
    here.places.create_config()?;
    let anchor = here.places.anchor();
    let done = store::restore(&here.places.state, Some(&anchor), how, now()).map_err(|err| {
        let next = match err {
            store::StoreError::InUse { .. } => "provost down, then this again",
            store::StoreError::AnotherJournal { .. } => {
                "a backup of this repository; or, if you mean this one, the same again with --from-elsewhere"
            }
            _ => "another backup; or, without any, provost store restore --empty, which keeps the present files beside it",
        };
        CliError::refusal("nothing was restored").because(err).next(next)
    })?;
    if here.json {
        out::json(&json!({
            "kept_to": done.kept, "anchor": done.head.to_string(), "aside": done.aside, "tokens_dropped": true,
            "owed_dropped": true,
        }))?;
        return Ok(DONE);
    }
    out::line(format!(
        "the journal is kept up to event {} and continues at event {}; all numbers are above the issued ones",
        done.kept, done.head.seq
    ))?;
    if how != Restore::Empty {
        out::note(
            "the next start reports tasks and pictures that were waiting or running then as lost, and runs no pending hooks; all tokens are void: mint new ones with `provost token mint`",
        );
    }
    if let Some(aside) = done.aside {
        out::note(format!("the earlier files are kept as {}", aside.display()));
    }
    out::note("start the daemon: provost up");
    Ok(DONE)
}

/// Checks whether a store exists and is undamaged.
fn is_whole(here: &RepoContext) -> bool {
    let verified = || journal::reader(here).and_then(|mut it| Ok(it.verify(None)?));
    store::look(&here.places.state, Some(&here.places.anchor()), true).is_ok()
        && verified().is_ok_and(|it| matches!(it, Verdict::Ok { .. }))
}

/// Waits until the person at the terminal confirms to begin without the content of an undamaged store.
fn confirm() -> Result<(), CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::refusal(
            "the store is undamaged, and there is no person to ask whether it is given up",
        )
        .because("standard input is no terminal")
        .next("provost store restore --empty --yes"));
    }
    out::note(
        "The store is undamaged. Begin with an empty one? Tasks, approvals and messages are gone. [y/N]",
    );
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CliError::of("nothing was restored").with_code(FAILED)),
    }
}
