//! The agent's program: starts it, and ends it with all processes that it has started.

use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::BEHIND;
use crate::{CliError, out};
use provost_base::AgentId;
use provost_base::limits::ACP_PROXY_END_MS;

/// The program to start.
pub(super) struct Program {
    pub(super) words: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// The agent that the program and its shells speak as, if it is the same for all sessions.
    pub(super) agent: Option<AgentId>,
}

/// The exit codes of a shell for a program that does not exist, and for one that cannot be run.
const NOT_THERE: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

const END: Duration = Duration::from_millis(ACP_PROXY_END_MS);
/// The time that the processes left by an ended agent get between SIGTERM and SIGKILL.
const LEFT: Duration = Duration::from_millis(200);

impl Program {
    /// Starts the program in a process group of its own, with its input and output as pipes to this process.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub(super) fn start(&self) -> Result<Child, CliError> {
        let mut command = std::process::Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(&self.variables).env(BEHIND, std::process::id().to_string());
        if let Some(agent) = &self.agent {
            command.env("PROVOST_AGENT", agent.as_str());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // This thread starts the program, and stays until the program has ended.
        provost_system::end_with_us(&mut command);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Command::from(command).kill_on_drop(true).spawn().map_err(|err| {
            let name = out::one_line(&self.words[0], 200);
            let code = if err.kind() == std::io::ErrorKind::NotFound { NOT_THERE } else { NOT_RUNNABLE };
            CliError::of(format!("the agent {name} cannot be started"))
                .because(err)
                .next("name a program that is on your PATH: provost acp -- COMMAND")
                .with_code(code)
        })
    }
}

/// Ends the program, whose input is closed: waits for its exit, then sends SIGTERM to all of its processes, and then kills them.
pub(super) async fn end(child: &mut Child, group: Option<u32>) -> Option<ExitStatus> {
    let by_itself = timeout(END, child.wait()).await;
    let ended = match by_itself {
        Ok(ended) => Ok(ended),
        Err(_) => {
            kill(group, Force::Ask);
            timeout(END, child.wait()).await
        }
    };
    // Processes that it has started may go on without it.
    if kill(group, Force::Ask) {
        tokio::time::sleep(LEFT).await;
    }
    kill(group, Force::Kill);
    // Needed on a system without process groups.
    let _gone = child.start_kill();
    match ended {
        Ok(ended) => ended.ok(),
        Err(_) => child.wait().await.ok(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    Ask,
    Kill,
}

/// Sends a signal to all processes of the agent's group; returns whether there is a process.
#[cfg(unix)]
fn kill(group: Option<u32>, force: Force) -> bool {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = group.and_then(|it| i32::try_from(it).ok()).and_then(Pid::from_raw);
    let signal = if force == Force::Ask { Signal::TERM } else { Signal::KILL };
    group.is_some_and(|it| kill_process_group(it, signal).is_ok())
}

/// There are no process groups here: only the program itself is ended.
#[cfg(not(unix))]
fn kill(_group: Option<u32>, _force: Force) -> bool {
    false
}

/// Describes the end of the program, for people.
pub(super) fn told(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("the agent has ended ({status})"),
        None => "the agent has closed its output".into(),
    }
}
