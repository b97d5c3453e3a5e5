//! `provost screenshot take`: a picture of the screen, where the rules allow one.

use clap::{Args, Subcommand};

use super::cli_error::{DONE, FAILED};
use super::follow::{self, Follow};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out, up};
use provost_api::wire;
use provost_base::{AgentId, TaskId};

/// `provost screenshot`.
#[derive(Subcommand, Debug)]
pub(super) enum Screenshot {
    /// Take a picture of the screen, if the rules or an approval allow it
    #[command(after_help = "Examples:\n  provost screenshot take\n  provost screenshot take --wait --json")]
    Take(Take),
}

/// `provost screenshot take`.
#[derive(Args, Debug)]
pub(super) struct Take {
    /// The task's id; repeated commands with the same id take one picture
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Speak as this agent; by default as PROVOST_AGENT or the host of this shell says, else as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
    /// Wait for the approval, if one is needed
    #[arg(long)]
    wait: bool,
    /// Fail if no daemon runs, instead of starting one
    #[arg(long)]
    no_start: bool,
}

pub(super) fn screenshot(here: &RepoContext, asked: Screenshot) -> Result<u8, CliError> {
    let Screenshot::Take(asked) = asked;
    let request = wire::Screenshot { task: asked.task.as_ref().map(ToString::to_string) };
    up::start_if_absent(here, !asked.no_start)?;
    wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, asked.speak_as.clone())?).await?;
        let done = client.screenshot(&request).await?;
        match (done.state.as_str(), done.approval) {
            ("denied", _) if here.json => {
                out::json(&done)?;
                Err(CliError::silent(FAILED))
            }
            ("denied", _) => Err(denied(&done)),
            ("awaiting", Some(approval)) if !asked.wait => {
                match here.json {
                    true => out::json(&done)?,
                    false => {
                        out::line(out::one_line(&done.task, 400))?;
                        out::note(follow::waiting_for(&client, approval).await);
                    }
                }
                Ok(DONE)
            }
            _ => Follow { client, raw: false, json: here.json }.to_the_end(&done.task, done.approval).await,
        }
    })
}

fn denied(done: &wire::Delegated) -> CliError {
    let word = |text: &Option<String>| out::one_line(text.as_deref().unwrap_or("unknown"), 400);
    CliError::of("denied by policy")
        .because(format!("rule {}: {}", word(&done.rule), word(&done.reason)))
        .next("provost policy explain --action screenshot")
}
