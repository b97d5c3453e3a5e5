//! Claims on whole files, as in Agent Protocol.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::cli_error::{DONE, REFUSED};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_client::ClientError;

/// `provost claim`.
#[derive(Subcommand, Debug)]
pub(super) enum Claim {
    /// Claim a whole file, so that no other agent of the crew works on it
    #[command(
        after_help = "Examples:\n  provost claim acquire src/auth.ts --as claude-code-1\n  provost claim acquire src/auth.ts --json\n\nExit codes: 0 you hold it; 5 another agent holds it. An agent that is not in the crew joins it by its claim."
    )]
    Acquire(Acquire),
    /// Release a claimed file
    #[command(
        after_help = "Examples:\n  provost claim release src/auth.ts --as claude-code-1\n  provost claim release src/auth.ts --force"
    )]
    Release(Release),
    /// List the files that agents of the crew have claimed
    #[command(after_help = "Examples:\n  provost claim list\n  provost claim list --json")]
    List,
}

/// `provost claim acquire`.
#[derive(Args, Debug)]
pub(super) struct Acquire {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The task of Agent Protocol that the claim is for
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// `provost claim release`.
#[derive(Args, Debug)]
pub(super) struct Release {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Free another agent's file, as the user
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

pub(super) fn claim(here: &RepoContext, asked: Claim) -> Result<u8, CliError> {
    match asked {
        Claim::Acquire(it) => acquire(here, it),
        Claim::Release(it) => release(here, it),
        Claim::List => list(here),
    }
}

fn acquire(here: &RepoContext, asked: Acquire) -> Result<u8, CliError> {
    let request = wire::ClaimFile { path: here.path(&asked.file)?, task: asked.task };
    let done = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        match client.claim(&request).await {
            // A session joins the crew with its first claim.
            Err(ClientError::Refused { fault, .. }) if fault.error == "not_in_crew" => {
                let join = wire::JoinCrew { tool: "provost".into(), role: None, capabilities: Vec::new() };
                client.join_crew(&join).await?;
                Ok(client.claim(&request).await?)
            }
            done => Ok(done?),
        }
    })?;
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&format!("claimed: {}", done.file), 4_200))?;
    for warning in &done.warnings {
        out::note(out::one_line(&format!("warning: {}", out::local_times(warning)), 800));
    }
    Ok(DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let held = wait_for(async { Ok(here.daemon(None).await?.claims(&wire::ClaimsQuery::default()).await?) })?;
    if here.json {
        return out::json(&held).map(|()| DONE);
    }
    if held.is_empty() {
        out::note("no file is claimed");
        return Ok(DONE);
    }
    let mut rows = vec![["FILE", "STATE", "AGENT", "SINCE"].map(String::from)];
    rows.extend(held.iter().map(|it| {
        let since = it.since.as_deref().map_or_else(|| "-".to_owned(), short_time);
        [out::name(&it.file, 400), out::one_line(&it.how, 20), out::one_line(&it.holder, 60), since]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

fn release(here: &RepoContext, asked: Release) -> Result<u8, CliError> {
    let request = wire::ReleaseClaim { path: here.path(&asked.file)?, force: asked.force, fence: None };
    let done = wait_for(async { Ok(asked.identity.daemon(here).await?.release_claim(&request).await?) })?;
    let code = if done.released { DONE } else { REFUSED };
    if here.json {
        return out::json(&done).map(|()| code);
    }
    if !done.released {
        return Err(CliError::refusal(format!("{} was not yours, nothing released", request.path))
            .next("provost claim list, which says whose it is"));
    }
    out::line(out::one_line(&format!("released: {}", request.path), 4_200)).map(|()| DONE)
}
