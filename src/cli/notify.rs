//! `provost notify`: the addresses outside of Provost that get notices.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_client::ClientError;

/// `provost notify`.
#[derive(Subcommand, Debug)]
pub(super) enum Notify {
    /// List the addresses that get notices, what each is owed, and how its last attempt went
    #[command(after_help = "Examples:\n  provost notify list\n  provost notify list --json")]
    List,
    /// Send a sample to an address, and say what it answers
    #[command(after_help = "Examples:\n  provost notify test phone\n  provost notify test phone --json")]
    Test(Test),
}

/// `provost notify test`.
#[derive(Args, Debug)]
pub(super) struct Test {
    /// The name of the address: that of its section `[notify.NAME]` in the settings
    name: String,
}

pub(super) fn notify(here: &RepoContext, asked: Notify) -> Result<u8, CliError> {
    match asked {
        Notify::List => list(here),
        Notify::Test(Test { name }) => test(here, name),
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let targets = wait_for(async { Ok(here.daemon(None).await?.about().await?) })?.notices;
    if here.json {
        out::json(&targets)?;
        return Ok(DONE);
    }
    if targets.is_empty() {
        out::note("no address gets notices; add a section [notify.NAME] to your settings: docs/notices.md");
        return Ok(DONE);
    }
    let mut rows = vec![["NAME", "TYPE", "WHERE", "TOLD OF", "OWED", "LAST"].map(String::from)];
    rows.extend(targets.iter().map(|it| {
        [
            out::one_line(&it.name, 64),
            it.kind.clone(),
            out::one_line(&it.host, 80),
            it.kinds.join(" "),
            it.owed.to_string(),
            out::one_line(&last(it), 200),
        ]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

/// Says why an address gets no notices, or how its last attempt went.
pub(super) fn last(it: &wire::NoticeTarget) -> String {
    match (&it.broken, &it.last) {
        _ if !it.enabled => "gets none: `enabled = false`".into(),
        (Some(why), _) => format!("gets none: {why}"),
        (None, Some(last)) => format!("{}: {}", short_time(&last.at), last.says),
        (None, None) => "nothing sent yet".into(),
    }
}

/// Returns one line about an address, for `provost status`.
pub(super) fn standing(it: &wire::NoticeTarget) -> String {
    let owed = match &it.owed_since {
        Some(since) => format!("{} owed since {}; ", it.owed, short_time(since)),
        None => String::new(),
    };
    let kind = if it.kind.is_empty() { String::new() } else { format!("{}, ", it.kind) };
    format!("{kind}{owed}{}", last(it))
}

fn test(here: &RepoContext, name: String) -> Result<u8, CliError> {
    let request = wire::TestNotice { name };
    let tested = wait_for(async {
        let tested = here.daemon(None).await?.test_notice(&request).await;
        tested.map_err(|why| not_taken(&request.name, why, "provost notify list, and docs/notices.md"))
    })?;
    say_tested(here, &tested, (&tested.name, &tested.says))
}

/// Makes the error of a sample that an address has not accepted.
pub(super) fn not_taken(name: &str, why: ClientError, next: &str) -> CliError {
    CliError::of(format!("{} has not taken the sample", out::one_line(name, 64))).because(why).next(next)
}

/// Prints the answer of an address to a sample.
pub(super) fn say_tested(
    here: &RepoContext,
    tested: &impl Serialize,
    (name, says): (&str, &str),
) -> Result<u8, CliError> {
    if here.json {
        out::json(tested)?;
    } else {
        out::line(format!("{}: {}", out::one_line(name, 64), out::one_line(says, 400)))?;
    }
    Ok(DONE)
}
