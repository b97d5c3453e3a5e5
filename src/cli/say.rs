//! `provost say`: words for the agent that works on a task, and the lines that show them with the task.

use std::io::Read as _;

use clap::Args;

use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::{exactly_meant, fenced, short_time};
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::SAY_BYTES_MAX;
use provost_base::{AgentId, TaskId, task_command};

/// `provost task say`.
#[derive(Args, Debug)]
pub(super) struct Say {
    /// The task's id, or enough of its beginning
    id: TaskId,
    /// The words, as the agent gets them; `-` reads them from standard input
    text: String,
    /// End the agent's turn first; without it, the words wait for its end
    #[arg(long)]
    now: bool,
    /// Speak as this agent; by default as PROVOST_AGENT or the host of this shell says, else as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
}

pub(super) fn say(here: &RepoContext, asked: Say) -> Result<u8, CliError> {
    let text = words(asked.text)?;
    let said = wait_for(async {
        let client = here.daemon(IdentityArgs::named(here, asked.speak_as)?).await?;
        let task = exactly_meant(&client, &asked.id).await?.id;
        Ok(client.say(&wire::SayToTask { task, text, now: asked.now }).await?)
    })?;
    if here.json {
        out::json(&said)?;
        return Ok(DONE);
    }
    let when = if asked.now { "its turn is ended for it" } else { "it is delivered when the turn ends" };
    let task = out::one_line(&said.task, 400);
    out::line(format!("said to the agent of {task} as number {}: {when}", said.number))?;
    out::note(format!("what was delivered: {}", task_command("task show", &said.task, "")));
    Ok(DONE)
}

fn words(text: String) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text);
    }
    let wrong = |why: String| {
        CliError::of("the words cannot be read from standard input").because(why).with_code(USAGE)
    };
    let mut text = String::new();
    let most = SAY_BYTES_MAX as u64 + 1;
    // One byte more than the bound is read, so that the daemon refuses a longer text and names the bound.
    std::io::stdin().lock().take(most).read_to_string(&mut text).map_err(|err| wrong(err.to_string()))?;
    Ok(text)
}

/// Shows the session of a task's agent, and the words that were said in it.
pub(super) fn of_task(task: &wire::Task) -> String {
    let mut text = String::new();
    if let Some(session) = &task.session {
        let goes_on =
            if session.goes_on { "a later process can go on with it" } else { "it ends with its process" };
        let again = match session.resumed {
            0 => String::new(),
            times => format!("; its run was begun again {times} time(s)"),
        };
        text.push_str(&format!("session {} ({goes_on}{again})\n", out::one_line(&session.id, 100)));
    }
    for it in &task.said {
        let state = match it.state.as_str() {
            "not_delivered" => "not delivered: the run ended before",
            state => state,
        };
        let head = format!("{} {} said ({state})", short_time(&it.at), it.by);
        text.push_str(&fenced(&out::one_line(&head, 400), &it.text));
    }
    text
}
