//! `provost config allow`: a person reviews a configuration file of the repository, and allows it.

use std::io::{BufRead as _, IsTerminal as _};

use clap::Args;
use serde_json::json;

use super::cli_error::{DONE, FAILED, REFUSED};
use super::{CliError, RepoContext, out, up};
use provost_base::visible;
use provost_config::pin::{self, RepoFile, Status};

/// `provost config allow`.
#[derive(Args, Debug)]
pub(super) struct Allow {
    /// The file to allow; without it, the command lists the files
    file: Option<String>,
    /// Do not ask for confirmation
    #[arg(long, requires = "file")]
    yes: bool,
    /// Revoke the permission for the file
    #[arg(long, requires = "file", conflicts_with = "yes")]
    forget: bool,
}

pub(super) fn allow(here: &RepoContext, asked: &Allow) -> Result<u8, CliError> {
    here.places.create()?;
    let (root, state) = (&here.places.root, &here.places.state);
    let files = pin::pending(root, state)?;
    let Some(name) = &asked.file else { return list(here, &files) };
    if asked.forget {
        let forgotten = pin::forget(state, name)?;
        out::note(if forgotten { "forgotten" } else { "it was not allowed" });
        return told(here);
    }
    let not_there = || {
        CliError::of(format!("{name} cannot be allowed"))
            .because(format!("it does not exist, or is not one of {}", pin::known()))
            .next("provost config allow")
    };
    let file = files.iter().find(|file| file.path == *name).ok_or_else(not_there)?;
    match &file.status {
        Status::Allowed => {
            out::note(format!("{name} is allowed with this content"));
            return Ok(DONE);
        }
        Status::Missing => return Err(not_there()),
        Status::Unreadable(why) => return Err(not_there().because(why)),
        Status::New | Status::Changed => {}
    }
    if !asked.yes {
        ask(file)?;
    }
    pin::allow(root, state, name, file.digest)?;
    if here.json {
        out::json(&json!({ "file": name, "digest": file.digest, "status": "allowed" }))?;
    } else {
        out::note(format!(
            "allowed; after a change it does not count until you allow it again ({})",
            file.digest.short()
        ));
    }
    told(here)
}

/// Shows the content and waits for a yes.
fn ask(file: &RepoFile) -> Result<(), CliError> {
    let bar: String = visible(&file.text).lines().map(|line| format!("  | {line}\n")).collect();
    out::text_as_is(&format!("{}\n{bar}", file.path))?;
    if !std::io::stdin().is_terminal() {
        return Err(CliError::refusal("there is no person to ask")
            .because("standard input is no terminal")
            .next(format!("provost config allow {} --yes", file.path)));
    }
    out::note("Let it configure the daemon, with exactly this content? [y/N]");
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CliError::of("not allowed").with_code(FAILED)),
    }
}

/// Says that a running daemon reads its configuration only when a person tells it to.
fn told(here: &RepoContext) -> Result<u8, CliError> {
    match up::running(here)? {
        Some(_) => {
            out::note("a daemon is running; it loads this with: provost daemon reload");
            Ok(DONE)
        }
        None => Ok(DONE),
    }
}

fn list(here: &RepoContext, files: &[RepoFile]) -> Result<u8, CliError> {
    let word = |file: &RepoFile| match &file.status {
        Status::New => "not allowed yet".to_owned(),
        Status::Changed => "CHANGED since it was allowed, not used".to_owned(),
        Status::Allowed => "allowed".to_owned(),
        Status::Missing => "allowed, and gone".to_owned(),
        Status::Unreadable(why) => format!("cannot be used: {why}"),
    };
    if here.json {
        let row = |file: &RepoFile| json!({ "file": file.path, "digest": file.digest, "status": word(file) });
        out::json(&files.iter().map(row).collect::<Vec<_>>())?;
    } else if files.is_empty() {
        out::note(format!("this repository has none of {}", pin::known()));
    } else {
        let rows: Vec<_> =
            files.iter().map(|file| [file.path.clone(), out::one_line(&word(file), 400)]).collect();
        out::text_as_is(&out::table(&rows))?;
        out::note("review one and allow it: provost config allow FILE");
    }
    let changed = files.iter().any(|file| file.status == Status::Changed);
    Ok(if changed { REFUSED } else { DONE })
}
