//! Workers: a person pauses and resumes them; from inside a jail, a worker reports through the run's own door.

use std::env::var_os;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::cli_error::{DONE, FAILED, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out, work_machine};
use provost_api::wire;
use provost_base::{AgentId, Secret, TaskId};
use provost_client::worker::{DoorAddress, WorkerError};
use provost_jail::{ENTRANCE_FD, inherited_socket};

/// `provost worker`.
#[derive(Subcommand, Debug)]
pub(super) enum Worker {
    /// Make this machine one that carries out tasks of other hosts and decides nothing, with a line of `provost host invite --role worker`
    #[command(
        after_help = "The code, and then the password of this machine's login to the database, are asked for at the terminal, or read from standard input, a line each. Type it in a clone of the repository, or in a folder where one is to be made. docs/hosts.md says what such a machine may do.\n\nExamples:\n  provost worker join LINE\n  provost worker join LINE --into ~/shop --label gpu --places 4"
    )]
    Join(Box<work_machine::Join>),
    /// Resume a paused worker (only a person may, at a terminal)
    #[command(
        after_help = "Examples:\n  provost worker resume claude_code\n  provost worker resume claude_code --json"
    )]
    Resume(Which),
    /// Pause a worker: it takes no new task, and finishes the current one (only a person may, at a terminal)
    #[command(
        after_help = "Examples:\n  provost worker pause claude_code\n  provost worker pause claude_code --json"
    )]
    Pause(Which),
    #[command(flatten)]
    Inside(Inside),
}

/// `provost worker resume`, `provost worker pause`.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// A configured worker: `provost status` lists them
    name: String,
}

/// Commands inside of a jail.
#[derive(Subcommand, Debug)]
pub(super) enum Inside {
    /// Report progress to the agent that waits for the task
    #[command(
        after_help = "Examples:\n  provost worker report \"12 of 40 tests done\" --percent 30\n  provost worker report --status blocked \"needs the licence file\""
    )]
    Report(Report),
    /// Show the task as the daemon sees it
    #[command(after_help = "Example:\n  provost worker task")]
    Task,
}

/// `provost worker report`.
#[derive(Args, Debug)]
pub(super) struct Report {
    /// The text of the report
    text: String,
    /// The status of the task; the daemon sees the end of the task by itself
    #[arg(long, value_enum, default_value_t = WorkerStatus::Progress)]
    status: WorkerStatus,
    /// The finished part, in percent
    #[arg(long, value_name = "0-100", value_parser = clap::value_parser!(u8).range(0..=100))]
    percent: Option<u8>,
    /// Other data, as JSON
    #[arg(long, value_name = "JSON")]
    details: Option<String>,
}

/// The status of unfinished work.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum WorkerStatus {
    /// The work is under way
    Progress,
    /// The work waits for something
    Blocked,
}

pub(super) fn switch(here: &RepoContext, asked: &Worker) -> Result<u8, CliError> {
    let (which, on) = match asked {
        Worker::Resume(which) => (which, true),
        Worker::Pause(which) => (which, false),
        Worker::Inside(asked) => return inside_a_jail(asked, here.json),
        // This was carried out earlier, since it may have to find its folder.
        Worker::Join(_) => return Ok(DONE),
    };
    let asked = wire::SwitchWorker { worker: which.name.clone(), on };
    // A caller that names itself as an agent gets a refusal.
    let agent = IdentityArgs::named_plainly(here, None)?;
    let done = wait_for(async { Ok(here.daemon(agent).await?.switch_worker(&asked).await?) })?;
    if here.json {
        out::json(&done)?;
    } else {
        let name = out::one_line(&done.worker, 60);
        let now = match on {
            true => "takes tasks again",
            false => "takes no new tasks, and those that run come to their end",
        };
        out::line(format!("{name} is {}; it was {}: it {now}", done.to, done.from))?;
    }
    Ok(DONE)
}

pub(super) fn inside_a_jail(asked: &Inside, json: bool) -> Result<u8, CliError> {
    let inside = inside()?;
    match asked {
        Inside::Report(asked) => report(&inside, asked, json),
        Inside::Task => {
            let task = say(&inside, "TASK_REQUEST", &json!({ "task_id": inside.task.as_str() }))?;
            if json { out::json(&task) } else { out::line(in_words(&task)) }.map(|()| DONE)
        }
    }
}

fn report(inside: &provost_client::worker::Worker, asked: &Report, json: bool) -> Result<u8, CliError> {
    let details: Option<Value> = match asked.details.as_deref().map(serde_json::from_str).transpose() {
        Ok(details) => details,
        Err(e) => return Err(CliError::of("--details is not JSON").because(e).with_code(USAGE)),
    };
    let status = match asked.status {
        WorkerStatus::Progress => "progress",
        WorkerStatus::Blocked => "blocked",
    };
    let mut artifacts = json!({ "summary": asked.text });
    if let Some(details) = details {
        artifacts["details"] = details;
    }
    if let Some(percent) = asked.percent {
        artifacts["metadata"] = json!({ "percent": percent });
    }
    let payload = json!({ "task_id": inside.task.as_str(), "status": status, "artifacts": artifacts });
    let done = say(inside, "NOTIFY", &payload)?;
    if json {
        out::json(&done)?
    };
    Ok(DONE)
}

fn in_words(task: &Value) -> String {
    let text = |name: &str| out::one_line(task[name].as_str().unwrap_or("-"), out::width());
    let names = ["id", "status", "delegated_to", "created_at", "goal"];
    let rows: Vec<_> = names.iter().map(|name| [(*name).to_owned(), text(name)]).collect();
    out::table(&rows).trim_end().to_owned()
}

fn say(inside: &provost_client::worker::Worker, msg_type: &str, payload: &Value) -> Result<Value, CliError> {
    inside.say(msg_type, payload).map_err(|err| match err {
        WorkerError::Refused { ref code, .. } if code == "E_FORBIDDEN" => CliError::refusal(err),
        _ => CliError::of(err).with_code(FAILED),
    })
}

/// Returns the jail's data about this run.
fn inside() -> Result<provost_client::worker::Worker, CliError> {
    let outside = || {
        CliError::of("this is not a worker in a jail")
            .because("DEVIT_TASK_ID, DEVIT_IDENT, DEVIT_SECRET and a way to the door are set there")
            .next("from outside: provost task report TASK --status in_progress --summary TEXT")
            .with_code(USAGE)
    };
    let text = |name: &str| var_os(name).and_then(|it| it.into_string().ok()).filter(|it| !it.is_empty());
    let way = match (text("PROVOST_WORKER_SOCKET"), text(ENTRANCE_FD)) {
        (Some(path), _) => DoorAddress::Socket(path.into()),
        (None, Some(number)) => {
            let number: i32 = number.parse().map_err(|_| outside())?;
            let socket = inherited_socket(number).map_err(|e| {
                CliError::of(format!("the inherited socket {number} is gone"))
                    .because(e)
                    .next("start the command without closing inherited descriptors")
            })?;
            DoorAddress::Inherited(socket, var_os("TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from))
        }
        (None, None) => return Err(outside()),
    };
    let ident = text("DEVIT_IDENT").and_then(|it| AgentId::parse(&it).ok()).ok_or_else(outside)?;
    let task = text("DEVIT_TASK_ID").and_then(|it| TaskId::parse(&it).ok()).ok_or_else(outside)?;
    let secret = text("DEVIT_SECRET").map(|it| Secret::new(it.into_bytes())).ok_or_else(outside)?;
    Ok(provost_client::worker::Worker { way, ident, task, secret })
}
