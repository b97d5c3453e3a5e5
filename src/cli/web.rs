//! The page for people: opened, and its address.

use clap::Subcommand;

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};

/// `provost web`.
#[derive(Subcommand, Debug)]
pub(super) enum Web {
    /// Open the page until the daemon stops, and print its address; with `enabled = true` in `[web]` it is always open
    #[command(
        after_help = "Examples:\n  provost web open\n  xdg-open \"$(provost web open)\"\n  provost web open --json | jq -r .address"
    )]
    Open,
}

pub(super) fn web(here: &RepoContext, asked: Web) -> Result<u8, CliError> {
    let Web::Open = asked;
    let page = wait_for(async { Ok(here.daemon(None).await?.open_page().await?) })?;
    if here.json {
        return out::json(&page).map(|()| DONE);
    }
    out::line(out::one_line(&page.address, 400)).map(|()| DONE)
}
