//! `provost store move`: moves the whole state into a database, or back into the state folder.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;

use super::cli_error::DONE;
use super::database::named;
use super::repo_context::now;
use super::{CliError, RepoContext, out};
use provost_config::{Config, RepositoryName};
use provost_store::{self as store, Database, Moved, StoreError};

/// The word for the state folder.
const FOLDER: &str = "folder";

/// `provost store move`.
#[derive(Args, Debug)]
pub(super) struct Move {
    /// A database, postgres://USER@HOST:5432/DATABASE, or `folder`, the state folder
    #[arg(long, value_name = "URL|folder", value_hint = ValueHint::Url)]
    to: String,
    /// The database that has the state; without it, `[store] url`
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    from: Option<String>,
    /// The secret that has the password; without it, the one of `[store] password`
    #[arg(long, value_name = "NAME")]
    password: Option<String>,
    /// A file with the authority of the servers' certificates; without it, `[store] ca`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca: Option<PathBuf>,
    /// The repository's name in the database; without it, `[store] name`, or the name of its folder
    #[arg(long, value_name = "NAME")]
    name: Option<RepositoryName>,
}

pub(super) fn move_state(here: &RepoContext, asked: &Move) -> Result<u8, CliError> {
    let config = here.config(None)?.config;
    let is_back = asked.to == FOLDER;
    let database = match (is_back, &asked.from) {
        (true, from) => {
            let url = from.as_deref().or(config.store.url.as_deref()).ok_or_else(|| {
                CliError::of("there is no database to move the state from")
                    .because("neither --from nor `[store] url` names one")
                    .next("provost store move --to folder --from postgres://USER@HOST:5432/DATABASE")
            })?;
            of(here, &config, asked, url)?
        }
        (false, Some(_)) => {
            return Err(CliError::of("a state is moved out of a database into the folder alone")
                .because("--from names a database, and --to another one")
                .next("provost store move --to folder --from URL, then provost store move --to URL"));
        }
        (false, None) => of(here, &config, asked, &asked.to)?,
    };
    let anchor = here.places.anchor();
    let what =
        store::Site { dir: &here.places.state, outside: Some(&anchor), database: &database, now: now() };
    let mut progress = out::Progress::begin("moving the state").told_once();
    let mut tell = |done: u64, all: u64| {
        progress.says(format!("moving the state: {done} of {all} rows"));
        progress.tick();
    };
    let done = match is_back {
        true => store::move_into_folder(what, &mut tell),
        false => store::move_into_database(what, &mut tell),
    };
    drop(progress);
    tell_of(here, asked, &config, done.map_err(refused)?)
}

fn of(here: &RepoContext, config: &Config, asked: &Move, url: &str) -> Result<Database, CliError> {
    let password = asked.password.as_deref().or(config.store.password.as_deref());
    let mut database = named(here, config, url, password)?;
    database.ca = asked.ca.clone().or(database.ca);
    if let Some(name) = &asked.name {
        name.as_str().clone_into(&mut database.name);
    }
    Ok(database)
}

fn refused(err: StoreError) -> CliError {
    let next = match &err {
        StoreError::InUse { .. } => "provost down, then this again",
        StoreError::NotOnRecord { .. } => "provost up, then provost down, then this again",
        StoreError::Away(_) => "the same again, once the database answers; provost doctor says how it is",
        StoreError::Unsafe { .. } => "provost doctor",
        _ => "the same again, once that is mended",
    };
    let what = match &err {
        StoreError::Away(_) => "the move has not come to its end",
        _ => "the state was not moved",
    };
    CliError::refusal(what).because(err).next(next)
}

fn tell_of(here: &RepoContext, asked: &Move, config: &Config, done: Moved) -> Result<u8, CliError> {
    if here.json {
        out::json(&json!({
            "to": if asked.to == FOLDER { FOLDER } else { "database" }, "seq": done.head.seq, "anchor": done.head.to_string(),
            "rows": done.rows, "aside": done.aside, "earlier": done.earlier,
        }))?;
        return Ok(DONE);
    }
    let place = if asked.to == FOLDER { "the state folder" } else { "the database" };
    out::line(match done.rows {
        0 => {
            format!("the move into {place} has come to its end: the journal ends at event {}", done.head.seq)
        }
        rows => format!(
            "{rows} rows are moved into {place}: the journal is whole, and ends at event {}",
            done.head.seq
        ),
    })?;
    if let Some(aside) = &done.aside {
        out::note(format!(
            "the folder's file is kept as {}; no daemon uses it, and you can remove it",
            here.places.state.join(aside).display()
        ));
    }
    if let Some(earlier) = &done.earlier {
        out::note(format!(
            "the database had an older copy of this repository, which has the name {:?} now",
            out::one_line(earlier, 200)
        ));
    }
    let file = here.places.config.join("provost.toml");
    let is_set = config.store.url.as_deref() == Some(&*asked.to);
    out::note(match (asked.to == FOLDER, is_set) {
        (true, _) if config.store.url.is_some() => {
            format!("take `[store] url` out of {}, then start the daemon: provost up", file.display())
        }
        (false, false) => format!(
            "write it into {}, then start the daemon with `provost up`:\n{}",
            file.display(),
            settings(asked)
        ),
        _ => "start the daemon: provost up".into(),
    });
    Ok(DONE)
}

/// Returns the lines of the configuration with which a daemon finds the state.
fn settings(asked: &Move) -> String {
    let text = |it: &str| serde_json::to_string(it).unwrap_or_default();
    let mut lines = vec![format!("store.url = {}", text(&asked.to))];
    lines.extend(asked.password.as_deref().map(|it| format!("store.password = {}", text(it))));
    lines.extend(asked.ca.as_ref().map(|it| format!("store.ca = {}", text(&it.display().to_string()))));
    lines.extend(asked.name.as_ref().map(|it| format!("store.name = {}", text(it.as_str()))));
    lines.join("\n")
}
