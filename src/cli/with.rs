//! `provost with`: runs a command while its caller holds resources.
//!
//! Each grant is bound to this process, apart from the agent's other grants: two of these commands take turns. The
//! leases are renewed while the command runs, released when it has ended, and freed by the daemon when this process
//! is killed; the command then ends too, where the system offers a way.

use std::convert::Infallible;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use clap::{Args, ValueHint};

use super::args::duration;
use super::cli_error::USAGE;
use super::git_index::in_tree;
use super::identity::{IdentityArgs, resource};
use super::locks::{taken, told};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::NEEDS_MAX;
use provost_base::{Resource, Ttl};
use provost_client::Client;

/// The duration of a wait without `--wait`. It also ends a wait of two process trees of one agent for each other, which
/// the daemon does not see.
const WAIT: Ttl = Ttl::minutes(10);

/// Exit codes of shells for a command that is not there, and for one that cannot be run.
const NOT_THERE: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

/// A lease is renewed when one part in so many of its time has passed.
const RENEWED_AFTER: u32 = 3;

/// Leases are renewed no more often than that, however short they are.
const RENEWED_EACH_MIN: Duration = Duration::from_millis(100);

/// `provost lock run`.
#[derive(Args, Debug)]
pub(super) struct Run {
    /// The resources, as @KIND or @KIND:VALUE; @KIND:N of a kind that the settings count
    #[arg(required = true, value_name = "@RESOURCE")]
    resources: Vec<String>,
    /// If another agent, or another command of yours, holds one, wait for it this long; by default ten minutes
    #[arg(long, value_parser = duration, value_name = "10m", conflicts_with = "now")]
    wait: Option<Ttl>,
    /// Do not wait
    #[arg(long)]
    now: bool,
    /// The duration of the leases, which are renewed while the command runs
    #[arg(long, value_parser = duration, value_name = "10m", default_value = "10m")]
    ttl: Ttl,
    /// The reason, for other agents to read; by default the command
    #[arg(long)]
    reason: Option<String>,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// Characters of the command that others read as the reason.
const REASON_CHARS: usize = 200;

pub(super) fn run(here: &RepoContext, asked: &Run) -> Result<u8, CliError> {
    let wanted = wanted(asked, here.linked_worktree())?;
    IdentityArgs::start(here)?;
    let above = held_above(here, asked)?;
    let wanted: Vec<_> = wanted.into_iter().filter_map(|it| lacking(here, it, &above)).collect();
    let mut held = Held { here, asked, locks: Vec::new() };
    for request in &wanted {
        held.take(request)?;
    }
    #[cfg(windows)]
    provost_system::end_children_with_us()
        .map_err(|err| CliError::of("the command could not be made to end with this one").because(err))?;
    let ended = held.run_the_command(&wanted);
    held.give_back();
    ended
}

/// Returns the request for each resource, in the same order for all callers, so that no two of these commands wait for each other.
fn wanted(asked: &Run, worktree: Option<String>) -> Result<Vec<wire::TakeLock>, CliError> {
    let mut resources = asked.resources.iter().map(|it| resource(it)).collect::<Result<Vec<_>, _>>()?;
    resources.sort();
    resources.dedup();
    if resources.len() > NEEDS_MAX {
        let error = CliError::of(format!("more than {NEEDS_MAX} resources")).with_code(USAGE);
        return Err(error.next("name those that the command cannot do without"));
    }
    let words: Vec<_> = asked.command.iter().map(|it| it.to_string_lossy()).collect();
    let reason = asked.reason.clone().unwrap_or_else(|| out::one_line(&words.join(" "), REASON_CHARS));
    let wait = if asked.now { None } else { Some(asked.wait.unwrap_or(WAIT)) };
    let request = |symbol: String| wire::TakeLock {
        symbol,
        ttl_ms: Some(u64::from(asked.ttl.as_millis())),
        wait_ms: wait.map(|it| u64::from(it.as_millis())),
        reason: Some(reason.clone()),
        pid: Some(std::process::id()),
        apart: true,
        worktree: worktree.clone(),
        ..wire::TakeLock::default()
    };
    Ok(resources.iter().map(|it| request(it.to_string())).collect())
}

/// Returns the locks that are bound to a process above this one, of any agent: a command within another one does not wait for them.
fn held_above(here: &RepoContext, asked: &Run) -> Result<Vec<wire::Lock>, CliError> {
    let above = provost_system::processes_above();
    let all = wire::Whose::default();
    let locks = wait_for(async { Ok(asked.identity.daemon(here).await?.locks(&all).await?) })?.locks;
    Ok(locks.into_iter().filter(|it| it.pid.is_some_and(|pid| above.contains(&pid))).collect())
}

/// Returns the part of a request that is not held above; `None` where all of it is.
fn lacking(here: &RepoContext, mut request: wire::TakeLock, above: &[wire::Lock]) -> Option<wire::TakeLock> {
    let Some(wanted) = in_tree(here, &request.symbol) else { return Some(request) };
    let name = wanted.to_string();
    if above.iter().any(|it| it.units.is_none() && it.symbol == name) {
        return None;
    }
    let is_of_kind =
        |it: &&wire::Lock| Resource::parse(&it.symbol).is_ok_and(|it| it.kind() == wanted.kind());
    let held: u64 = above.iter().filter(is_of_kind).filter_map(|it| it.units).map(u64::from).sum();
    match wanted.units() {
        // A request for zero units passes unchanged, and the daemon refuses it.
        Some(units) if held > 0 && units > 0 => {
            request.symbol = format!("@{}:{}", wanted.kind(), units.checked_sub(held).filter(|it| *it > 0)?);
            Some(request)
        }
        _ => Some(request),
    }
}

/// The locks that this process holds.
struct Held<'a> {
    here: &'a RepoContext,
    asked: &'a Run,
    locks: Vec<wire::Lock>,
}

impl Held<'_> {
    fn take(&mut self, request: &wire::TakeLock) -> Result<(), CliError> {
        let locked = wait_for(async {
            let client = self.asked.identity.daemon(self.here).await?;
            taken(&client, request).await
        });
        match locked {
            // If two requests got one lock, each renewal would change it.
            Ok(locked) if self.locks.iter().any(|it| it.fence == locked.lock.fence) => {
                self.give_back();
                let error = format!("{} and another one that is named are one resource", request.symbol);
                let next =
                    "name it once; of a kind that is counted, the number that is needed, such as @gpu:2";
                Err(CliError::of(error).next(next).with_code(USAGE))
            }
            Ok(locked) => {
                told("warning", &locked.warnings, locked.more);
                self.locks.push(locked.lock);
                Ok(())
            }
            Err(error) => {
                self.give_back();
                Err(error)
            }
        }
    }

    /// Runs the command, renews the leases, and passes signals on until it has ended.
    fn run_the_command(&self, wanted: &[wire::TakeLock]) -> Result<u8, CliError> {
        let mut command = Command::new(&self.asked.command[0]);
        command.args(&self.asked.command[1..]);
        wait_for(async {
            let client = self.asked.identity.daemon(self.here).await?;
            // This thread starts the command and stays until it has ended: the command ends with this thread.
            let mut child = provost_system::end_with_us(&mut command)
                .spawn()
                .map_err(|err| not_started(self.asked, err))?;
            let pid = child.id();
            let (tell, ended) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || tell.send(child.wait()));
            tokio::select! {
                ended = ended => match ended {
                    Ok(Ok(status)) => Ok(code(status)),
                    Ok(Err(err)) => Err(CliError::of("the end of the command cannot be seen").because(err)),
                    Err(_) => Err(CliError::of("the end of the command cannot be seen")),
                },
                Err(err) = provost_system::pass_signals_on(pid) => {
                    Err(CliError::of("signals cannot be passed on").because(err))
                }
                never = self.renew(&client, wanted) => match never {},
            }
        })
    }

    async fn renew(&self, client: &Client, wanted: &[wire::TakeLock]) -> Infallible {
        let each = (self.asked.ttl.as_duration() / RENEWED_AFTER).max(RENEWED_EACH_MIN);
        let mut is_told = false;
        loop {
            tokio::time::sleep(each).await;
            for (request, lock) in wanted.iter().zip(&self.locks) {
                let request = wire::TakeLock { wait_ms: None, at_least: true, ..request.clone() };
                let why = match client.lock(&request).await {
                    Ok(renewed) if renewed.lock.fence == lock.fence => continue,
                    Ok(renewed) => format!("it was free meanwhile (grant {} is over)", renewed.lock.fence),
                    Err(err) => CliError::from(err).in_short(),
                };
                // The command goes on, since it may be one that must not be interrupted. One line reports the loss.
                if !std::mem::replace(&mut is_told, true) {
                    out::note(out::one_line(
                        &format!("provost: {} is not held any more: {why}", lock.symbol),
                        400,
                    ));
                }
            }
        }
    }

    /// Releases the locks. A lock that cannot be released now ends with this process.
    fn give_back(&mut self) {
        let locks = std::mem::take(&mut self.locks);
        let _late = wait_for(async {
            let client = self.asked.identity.daemon(self.here).await?;
            for lock in &locks {
                let request = wire::Unlock {
                    symbol: lock.symbol.clone(),
                    fence: Some(lock.fence),
                    ..wire::Unlock::default()
                };
                client.unlock(&request).await?;
            }
            Ok(())
        });
    }
}

fn not_started(asked: &Run, err: std::io::Error) -> CliError {
    let name = out::one_line(&asked.command[0].to_string_lossy(), 200);
    let code = if err.kind() == std::io::ErrorKind::NotFound { NOT_THERE } else { NOT_RUNNABLE };
    CliError::of(format!("{name} cannot be run")).because(err).with_code(code)
}

/// Returns the exit code that a shell would have for the same end.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(u8::MAX, |it| u8::try_from(it).unwrap_or(u8::MAX))
}
