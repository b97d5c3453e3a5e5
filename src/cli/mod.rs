//! The command line: the commands that a person types, and the texts that they read.
//!
//! Promises: every error ends with the next step; text from agents and workers cannot move a cursor or pass for
//! Provost's own; every list is available as JSON too; a closed pipe ends a command quietly. The daemon, which
//! `client` talks to, decides the effect of a command; only files that belong to the user (keys, pins, policy, the
//! journal) are handled here, so that their commands work without a daemon as well.
#![forbid(unsafe_code)]

mod a6s;
mod acp;
mod adapt;
mod agents;
mod allow;
mod applies;
mod approvals;
mod args;
mod backup;
mod broker;
mod changes;
mod claims;
mod cli_error;
mod contracts;
mod cost;
mod crew;
mod database;
mod delegate;
mod devitd;
mod diff_colours;
mod doctor;
mod follow;
mod forms;
mod git;
mod git_index;
mod graph;
mod guard;
mod help;
mod hook;
mod hooks;
mod host_list;
mod host_upgrade;
mod hosts;
mod identity;
mod init;
mod intents;
mod invitations;
mod jail;
mod journal;
mod keys;
mod locks;
mod log;
mod loss;
mod manual;
mod mcp;
mod merge;
mod metrics;
mod moving;
mod notify;
mod out;
mod overview;
mod passkeys;
mod policy;
mod port;
mod push;
mod repo_context;
mod say;
mod screens;
mod screenshot;
mod search;
mod search_all;
mod secrets;
mod session;
mod signatures;
mod status;
mod task_table;
mod tasks;
mod tokens;
mod ui;
mod up;
mod users;
mod waits;
mod watch;
mod web;
mod web_all;
mod with;
#[cfg(unix)]
mod work_machine;
#[cfg(unix)]
mod worker;
mod workflows;
mod worktrees;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use args::{Command, Config, Daemon, Line};
use cli_error::CliError;
use repo_context::RepoContext;

pub use forms::{FORMS, Form, Kind, OLD_FORMS_END, Read, read};
pub use help::definition;
pub use hooks::HookDoor;
pub use jail::{Rehearse, Rehearsed, Words};
pub use up::{Devitd, Ports, Serve};

/// Runs the daemon in this process until it ends; `main.rs` provides it.
pub type Run = dyn Fn(Serve) -> anyhow::Result<()>;

/// Makes the plan that a worker's run would have; `main.rs` provides it.
pub type Rehearsal = dyn Fn(Rehearse) -> anyhow::Result<Rehearsed>;

/// Carries out the command line of this process.
pub fn main(run: &Run, rehearse: &Rehearsal) -> ExitCode {
    let args = a6s::read(std::env::args_os().collect());
    let done = if devitd::is_meant(&args) { devitd::main(&args, run) } else { provost(&args, run, rehearse) };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error.report();
            ExitCode::from(error.code())
        }
    }
}

fn provost(args: &[OsString], run: &Run, rehearse: &Rehearsal) -> Result<u8, CliError> {
    let mut definition = help::for_a_terminal();
    let mut args = args.to_vec();
    help::asked(&mut args);
    let narrowed = overview::go_elsewhere(&mut args)?;
    let Read { args, form } = read(args, &definition);
    let hint = form.and_then(Form::hint);
    // A line that cannot be parsed may still have `--json`, which tells that a program reads the answer.
    let is_program = args.iter().take_while(|it| *it != "--").any(|it| it == "--json");
    let matches = definition.try_get_matches_from_mut(args);
    let line = match matches.and_then(|mut it| Line::from_arg_matches_mut(&mut it)) {
        Ok(line) => line,
        Err(err) if err.use_stderr() && is_program => {
            return Err(for_a_program(&err).typed_as(form).for_program(true));
        }
        Err(err) => {
            hint.iter().for_each(out::note);
            return spoken(&err, form);
        }
    };
    let json = line.json;
    hint.iter().filter(|_| !json).for_each(out::note);
    let done = carry_out(line, narrowed, run, rehearse);
    // A program reads one value on standard error: there an error has the hint as a member.
    hint.iter().filter(|_| json && done.is_ok()).for_each(out::note);
    done.map_err(|error| error.typed_as(form).for_program(json))
}

fn carry_out(line: Line, narrowed: bool, run: &Run, rehearse: &Rehearsal) -> Result<u8, CliError> {
    let json = line.json;
    match line.command {
        None => overview::overview(narrowed, json),
        // These need no repository, so they work anywhere.
        Some(Command::Completions(it)) => manual::completions(it.shell),
        Some(Command::Man) => manual::page(),
        Some(Command::Doctor) => doctor::doctor(json),
        Some(Command::Ui(it)) => ui::ui(&it, narrowed, json),
        // Hooks have answers of their own where no repository is found.
        Some(Command::Git(it)) => git::git(it, json),
        Some(Command::Hook(it)) => hooks::hook(it, json),
        #[cfg(unix)]
        Some(Command::Worker(worker::Worker::Inside(it))) => worker::inside_a_jail(&it, json),
        #[cfg(unix)]
        Some(Command::Worker(worker::Worker::Join(it))) => {
            RepoContext::find(json).and_then(|here| work_machine::join(here, &it))
        }
        Some(Command::Jail(it)) => RepoContext::find(json).and_then(|here| jail::jail(&here, it, rehearse)),
        Some(Command::Agent(it)) => {
            RepoContext::find(json).and_then(|here| with_age(&here, agents::agent(&here, it, rehearse)))
        }
        Some(command) => {
            RepoContext::find(json).and_then(|here| with_age(&here, in_repository(&here, command, run)))
        }
    }
}

/// Says how old the daemon's answers may be, if they are old.
fn with_age(here: &RepoContext, done: Result<u8, CliError>) -> Result<u8, CliError> {
    // A program reads one value on standard error, which is the error's.
    here.age.in_words().iter().filter(|_| !here.json || done.is_ok()).for_each(out::note);
    done
}

fn in_repository(here: &RepoContext, command: Command, run: &Run) -> Result<u8, CliError> {
    match command {
        Command::Daemon(it) => match it {
            Daemon::Start(it) => up::up(here, it, run),
            Daemon::Stop => up::down(here),
            Daemon::Status => status::status(here),
            Daemon::Metrics => metrics::metrics(here),
            Daemon::Reload => up::reload(here),
            Daemon::Env(it) => init::env(here, &it),
        },
        Command::Config(Config::Init(it)) => init::init(here, &it),
        Command::Config(Config::Allow(it)) => allow::allow(here, &it),
        Command::Journal(it) => journal::journal(here, it),
        Command::Store(it) => backup::store(here, &it),
        Command::Host(it) => hosts::host(here, &it),
        Command::User(it) => users::user(here, &it),
        Command::Task(it) => tasks::task(here, it),
        Command::Worktree(it) => worktrees::worktree(here, it),
        Command::Cost(it) => cost::cost(here, &it),
        Command::Approval(it) => approvals::approval(here, it),
        Command::Apply(it) => applies::of_files(here, &it),
        Command::Screenshot(it) => screenshot::screenshot(here, it),
        #[cfg(unix)]
        Command::Worker(it) => worker::switch(here, &it),
        Command::Workflow(it) => workflows::workflows(here, it),
        Command::Lock(it) => locks::lock(here, it),
        Command::Wait(it) => waits::wait(here, &it),
        Command::Intent(it) => intents::intent(here, it),
        Command::Contract(it) => contracts::contract(here, it),
        Command::Claim(it) => claims::claim(here, it),
        Command::File(it) => guard::file(here, it),
        Command::Timeline(it) => watch::timeline(here, &it),
        Command::Graph(it) => graph::graph(here, it),
        Command::Web(it) => web::web(here, it),
        Command::Notify(it) => notify::notify(here, it),
        Command::Push(it) => push::push(here, it),
        Command::Crew(it) => crew::crew(here, it),
        Command::AgentProtocol(it) => crew::agent_protocol(here, it),
        Command::Broker(it) => broker::broker(here, it),
        Command::Question(it) => broker::question(here, &it),
        Command::Merge(it) => merge::merge(here, it),
        Command::Mcp(it) => mcp::mcp(here, it),
        Command::Acp(it) => acp::acp(here, it),
        Command::Adapter(it) => adapt::adapter(here, it),
        Command::Policy(it) => policy::policy(here, it),
        Command::Key(it) => keys::key(here, it),
        Command::Token(it) => tokens::token(here, it),
        Command::Passkey(it) => passkeys::passkey(here, it),
        Command::Secret(it) => secrets::secret(here, it),
        Command::Completions(_)
        | Command::Man
        | Command::Doctor
        | Command::Ui(_)
        | Command::Hook(_)
        | Command::Git(_)
        | Command::Agent(_)
        | Command::Jail(_) => Ok(cli_error::DONE),
    }
}

/// Turns an error of the command line into the form of all errors.
fn for_a_program(err: &clap::Error) -> CliError {
    use clap::error::ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand as NoCommand, MissingSubcommand};
    if matches!(err.kind(), NoCommand | MissingSubcommand) {
        return CliError::of("a command is missing").next("the same with --help").with_code(cli_error::USAGE);
    }
    let text = help::plain(&err.render().to_string());
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let (what, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let error = CliError::of(out::one_line(what, 800)).with_code(cli_error::USAGE);
    if rest.trim().is_empty() { error } else { error.next(out::one_line(rest, 800)) }
}

/// Prints the answer of the command line's definition: help and version, or an error.
fn spoken(err: &clap::Error, form: Option<&Form>) -> Result<u8, CliError> {
    let text = help::plain(&err.render().to_string());
    if err.use_stderr() {
        out::note(text.trim_end());
        overview::misplaced(err).iter().for_each(out::note);
        if let Some(Form { typed, meant, kind: Kind::Short }) = form {
            let [typed, meant] = [typed, meant].map(|words| format!("provost {words}"));
            out::note(format!("\nnote: `{typed}` is short for `{meant}`"));
        }
        return Ok(cli_error::USAGE);
    }
    out::text_as_is(&text)?;
    Ok(cli_error::DONE)
}
