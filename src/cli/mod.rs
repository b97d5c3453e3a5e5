//! The command line: what a person types, and what they read.
//!
//! Promises: every error ends with the next step; text from agents and workers cannot move a cursor or pass for
//! ours; every list comes as JSON too; a closed pipe ends a command quietly. What a command means is decided by
//! the daemon, to whom `client` talks; only files that belong to the user (keys, pins, policy, the journal) are
//! handled here, so that these commands work without a daemon as well.
#![forbid(unsafe_code)]

mod a6s;
mod adapt;
mod allow;
mod applies;
mod approvals;
mod args;
mod backup;
mod broker;
mod claims;
mod complaint;
mod contracts;
mod crew;
mod delegate;
mod devitd;
mod doctor;
mod follow;
mod git;
mod graph;
mod guard;
mod here;
mod hook;
mod hooks;
mod init;
mod intents;
mod jail;
mod journal;
mod keys;
mod locks;
mod log;
mod manual;
mod mcp;
mod out;
mod policy;
mod screenshot;
mod secrets;
mod session;
mod speaker;
mod status;
mod tasks;
mod tokens;
mod up;
mod watch;
#[cfg(unix)]
mod worker;
mod workflows;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Command, Line};
use complaint::Complaint;
use here::Here;

pub use jail::{Rehearse, Rehearsed, Words};
pub use up::{Devitd, Ports, Serve};

/// Runs the daemon in this process until it ends; given by whoever wires everything together.
pub type Run = dyn Fn(Serve) -> anyhow::Result<()>;

/// Makes the plan that a worker's run would have; given by whoever wires everything together.
pub type Rehearsal = dyn Fn(Rehearse) -> anyhow::Result<Rehearsed>;

/// Does what the command line of this process asks for.
pub fn main(run: &Run, rehearse: &Rehearsal) -> ExitCode {
    let args = a6s::read(std::env::args_os().collect());
    let done = if devitd::is_meant(&args) { devitd::main(&args, run) } else { provost(&args, run, rehearse) };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(complaint) => {
            complaint.report();
            ExitCode::from(complaint.code())
        }
    }
}

fn provost(args: &[OsString], run: &Run, rehearse: &Rehearsal) -> Result<u8, Complaint> {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(err) => return spoken(&err),
    };
    let json = line.json;
    let done = match line.command {
        None => Here::find(json).and_then(|here| status::overview(&here)),
        // These need no repository, so that they work anywhere.
        Some(Command::Completions(it)) => manual::completions(it.shell),
        Some(Command::Man) => manual::page(),
        Some(Command::Doctor) => doctor::doctor(json),
        Some(Command::Hook(it)) => hook::hook(it, json),
        // Its hooks have a word of their own where there is no repository to speak of.
        Some(Command::Git(it)) => git::git(it, json),
        Some(Command::Hooks(it)) => hooks::hooks(it, json),
        #[cfg(unix)]
        Some(Command::Worker(worker::Worker::Inside(it))) => worker::inside_a_jail(&it, json),
        Some(Command::Jail(it)) => Here::find(json).and_then(|here| jail::jail(&here, it, rehearse)),
        Some(command) => Here::find(json).and_then(|here| in_repository(&here, command, run)),
    };
    done.map_err(|complaint| complaint.for_program(json))
}

fn in_repository(here: &Here, command: Command, run: &Run) -> Result<u8, Complaint> {
    match command {
        Command::Init(it) => init::init(here, &it),
        Command::Up(it) => up::up(here, it, run),
        Command::Down => up::down(here),
        Command::Status => status::status(here),
        Command::Env(it) => init::env(here, &it),
        Command::Delegate(it) => delegate::delegate(here, it),
        Command::Screenshot(it) => screenshot::screenshot(here, it),
        Command::Tasks(it) => tasks::list(here, &it),
        Command::Task(it) => tasks::show(here, &it),
        Command::Cancel(it) => tasks::cancel(here, it),
        Command::Notify(it) => tasks::notify(here, it),
        Command::Approvals => approvals::list(here),
        Command::Approve(it) => approvals::approve(here, it),
        Command::Deny(it) => approvals::deny(here, it),
        Command::Apply(it) => applies::apply(here, &it),
        Command::Applies => applies::list(here),
        Command::Undo(it) => applies::undo(here, &it),
        Command::Workflows(it) => workflows::workflows(here, it),
        Command::Agents => status::agents(here),
        Command::Lock(it) => locks::lock(here, it),
        Command::Unlock(it) => locks::unlock(here, it),
        Command::Locks(it) => locks::list(here, it),
        Command::Intend(it) => intents::intend(here, it),
        Command::Intents(it) => intents::list(here, it),
        Command::Intent(it) => intents::update(here, it),
        Command::Lead(it) => crew::lead(here, it),
        Command::AgentProtocol(it) => crew::agent_protocol(here, it),
        Command::Contract(it) => contracts::contract(here, it),
        Command::Claim(it) => claims::claim(here, it),
        Command::Claims => claims::list(here),
        Command::Release(it) => claims::release(here, it),
        Command::Adapt(it) => adapt::adapt(here, it),
        Command::Watch(it) => watch::watch(here, &it),
        Command::Broker(it) => broker::broker(here, it),
        Command::Answer(it) => broker::answer(here, &it),
        Command::Guard(it) => guard::guard(here, it),
        Command::Key(it) => keys::key(here, it),
        Command::Token(it) => tokens::token(here, it),
        Command::Secret(it) => secrets::secret(here, it),
        Command::Allow(it) => allow::allow(here, &it),
        Command::Policy(it) => policy::policy(here, it),
        Command::Reload => up::reload(here),
        Command::Backup(it) => backup::backup(here, &it),
        Command::Restore(it) => backup::restore(here, &it),
        Command::Journal(it) => journal::journal(here, it),
        Command::Log(it) => log::log(here, &it),
        Command::Mcp(it) => mcp::mcp(here, it),
        Command::Graph(it) => graph::graph(here, it),
        #[cfg(unix)]
        Command::Worker(it) => worker::switch(here, &it),
        Command::Completions(_)
        | Command::Man
        | Command::Doctor
        | Command::Hook(_)
        | Command::Git(_)
        | Command::Hooks(_)
        | Command::Jail(_) => Ok(complaint::DONE),
    }
}

/// What the definition of the command line has to say: help and version, or what is wrong.
fn spoken(err: &clap::Error) -> Result<u8, Complaint> {
    let text = err.render();
    if err.use_stderr() {
        out::note(text.to_string().trim_end());
        return Ok(complaint::USAGE);
    }
    out::text_as_is(&text.to_string())?;
    Ok(complaint::DONE)
}
