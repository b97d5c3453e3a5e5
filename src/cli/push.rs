//! `provost push`: the browsers that get notices through their push services.

use clap::{Args, Subcommand};

use super::cli_error::DONE;
use super::notify::{not_taken, say_tested};
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out};
use provost_api::wire;

/// `provost push`.
#[derive(Subcommand, Debug)]
pub(super) enum Push {
    /// List the browsers that are told, what each is owed, and how its last attempt went
    #[command(after_help = "Examples:\n  provost push list\n  provost push list --json")]
    List,
    /// Remove a browser, which then gets no more notices
    #[command(after_help = "Examples:\n  provost push remove 1f9ac2d0\n  provost push remove phone --json")]
    Remove(Browser),
    /// Send a sample to a browser, and say what its push service answers
    #[command(after_help = "Examples:\n  provost push test 1f9ac2d0\n  provost push test phone --json")]
    Test(Browser),
}

/// A browser that is told.
#[derive(Args, Debug)]
pub(super) struct Browser {
    /// Its id, or its name where only one has it
    browser: String,
}

pub(super) fn push(here: &RepoContext, asked: Push) -> Result<u8, CliError> {
    match asked {
        Push::List => list(here),
        Push::Remove(Browser { browser }) => remove(here, browser),
        Push::Test(Browser { browser }) => test(here, browser),
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let known = wait_for(async { Ok(here.daemon(None).await?.browsers().await?) })?;
    if here.json {
        out::json(&known)?;
        return Ok(DONE);
    }
    if let Some(problem) = &known.problem {
        out::note(format!("no browser can be told: {}", out::one_line(problem, 400)));
    }
    if known.browsers.is_empty() {
        out::note("no browser is told; have one told on its page, under Passkeys: provost web");
        return Ok(DONE);
    }
    let mut rows = vec![["ID", "NAME", "BY", "PAGE", "SINCE", "OWED", "LAST"].map(String::from)];
    rows.extend(known.browsers.iter().map(|it| {
        [
            it.id.clone(),
            out::one_line(&it.name, 64),
            out::one_line(&it.host, 80),
            out::one_line(&it.origin, 80),
            short_time(&it.added_at),
            it.owed.to_string(),
            out::one_line(&last(it), 200),
        ]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

/// Says how the last attempt at a browser went.
pub(super) fn last(it: &wire::PushBrowser) -> String {
    match &it.last {
        Some(last) => format!("{}: {}", short_time(&last.at), last.says),
        None => "nothing sent yet".into(),
    }
}

fn remove(here: &RepoContext, id: String) -> Result<u8, CliError> {
    let request = wire::RemovePush { id };
    let gone = wait_for(async { Ok(here.daemon(None).await?.remove_push(&request).await?) })?;
    if here.json {
        out::json(&gone)?;
    } else {
        out::line(format!("{} ({}) gets no more notices", out::one_line(&gone.name, 64), gone.id))?;
    }
    Ok(DONE)
}

fn test(here: &RepoContext, id: String) -> Result<u8, CliError> {
    let request = wire::TestPush { id };
    let tested = wait_for(async {
        let tested = here.daemon(None).await?.test_push(&request).await;
        tested.map_err(|why| not_taken(&request.id, why, "provost push list, and docs/push.md"))
    })?;
    say_tested(here, &tested, (&tested.name, &tested.says))
}
