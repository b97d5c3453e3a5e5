//! `provost worker join`: makes a machine one that carries out tasks of other hosts, and decides nothing.
//!
//! ```text
//!   line and code opened --> clone found, or made --> database asked, key and invitation kept --> password, settings, rules written
//! ```
//! All files are checked before the database is asked, so that a machine has joined completely, or not at all.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};
use serde_json::json;

use super::cli_error::DONE;
use super::hosts::{code, hidden_line, joined};
use super::{CliError, RepoContext, invitations, out};
use provost_base::{HostRole, Secret};
use provost_config::HostLabel;
use provost_policy::Builtin;
use provost_store::{self as store, Database, Invited, Password, RepositoryRoute};
use provost_system as system;
use provost_vault::{Delivery, Vault};

/// The secret with the database's password.
const PASSWORD: &str = "store";
/// The authorities of the database's certificate.
const AUTHORITIES: &str = "store-ca.pem";
const SETTINGS: &str = "provost.toml";
const RULES: &str = "policy.toml";
/// Programs of agents that `provost agent add` knows.
const AGENTS: [&str; 8] = ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "goose", "cursor"];

/// `provost worker join`.
#[derive(Args, Debug)]
pub(super) struct Join {
    /// The line that `provost host invite --role worker` has printed on a full host
    line: String,
    /// Where to make the clone, if this folder is none; by default a folder with the repository's name
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    into: Option<PathBuf>,
    /// A label of this machine, by which tasks ask for it: `provost delegate --on LABEL`; may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<HostLabel>,
    /// How many tasks it runs at once; by default as many as any host
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    places: Option<u32>,
}

pub(super) fn join(here: RepoContext, asked: &Join) -> Result<u8, CliError> {
    let text = invitations::read(&asked.line)?;
    let code = code()?;
    let opened = store::open_invitation(&text, &code).map_err(|err| {
        CliError::refusal("the invitation was not opened")
            .because(err)
            .next("on a full host: provost host invite --role worker")
    })?;
    let Invited { name, role: HostRole::Worker, way: Some(way) } = opened else {
        return Err(CliError::refusal("this invitation is not for a machine that only works")
            .because("it is for a full host")
            .next("here: provost host join LINE; or on a full host: provost host invite --role worker"));
    };
    must_be_free(&here.places.config)?;
    let password = hidden_line(
        "type the password of this machine's login to the database, and press Enter; it is not shown, and may be empty",
    )?;
    let password = Some(password).filter(|it| !it.expose().is_empty());
    let here = in_clone(here, asked, (&name, &way))?;
    let settings = settings(asked, (&name, &way), password.is_some(), &here.places.config);
    enrol(&here, (&name, &way), password.as_ref(), (&text, &code), &settings)?;
    say(&here, asked, &name)
}

/// Checks that the files that this command writes do not exist yet.
fn must_be_free(config: &Path) -> Result<(), CliError> {
    let is_there = |it: &&PathBuf| it.symlink_metadata().is_ok();
    match [config.join(SETTINGS), config.join(AUTHORITIES)].iter().find(is_there) {
        None => Ok(()),
        Some(path) => Err(CliError::refusal("this machine has not joined, and nothing was written")
            .because(format!(
                "{} is there, and may be yours: a machine that only works has settings of its own",
                path.display()
            ))
            .next("move it away, or join with another user of this machine")),
    }
}

/// Returns the clone around the command, or makes a new one.
fn in_clone(
    here: RepoContext,
    asked: &Join,
    (name, way): (&str, &RepositoryRoute),
) -> Result<RepoContext, CliError> {
    let is_clone = here.places.identity.join("HEAD").is_file();
    if is_clone && asked.into.is_none() {
        return Ok(here);
    }
    let no = |why: &str, next: &str| {
        Err(CliError::refusal("this machine has not joined, and nothing was written").because(why).next(next))
    };
    let Some(from) = &way.clone else {
        return no(
            "this folder is no clone of the repository, and the invitation does not say from where to clone it",
            "clone it by hand, and type this in the clone; or on a full host: provost host invite --role worker --clone URL",
        );
    };
    if let Err(why) = invitations::address(from) {
        return no(&why, "on a full host: provost host invite --role worker --clone URL");
    }
    let is_plain = |it: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-'))
    };
    let into = match &asked.into {
        Some(it) => here.cwd.join(it),
        None => here.cwd.join(if is_plain(name) { name } else { "repository" }),
    };
    if into.symlink_metadata().is_ok() {
        // As a try before this one has left it; whether it is a clone of this repository is checked with the invitation.
        let made = RepoContext::in_folder(into.clone(), here.environment.clone());
        if let Ok(made) = made.map(|it| RepoContext { json: here.json, ..it })
            && made.places.identity.join("HEAD").is_file()
            && made.places.worktree == into.canonicalize().unwrap_or_default()
        {
            return Ok(made);
        }
        return no(
            &format!("{} is there already, and no clone of git", into.display()),
            "name another folder: --into FOLDER; or type this in the clone",
        );
    }
    let Some(git) = system::find_program("git") else {
        return no("git is not found in PATH", "install it");
    };
    out::note(format!("cloning {} into {}", out::one_line(from, 400), into.display()));
    let mut command = Command::new(git);
    // This suppresses git's advice about names of branches; the clone brings its own.
    command
        .args(["-c", "init.defaultBranch=main", "clone", "--"])
        .arg(&**from)
        .arg(&into)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    match command.status() {
        Ok(done) if done.success() => {
            let json = here.json;
            Ok(RepoContext { json, ..RepoContext::in_folder(into, here.environment)? })
        }
        Ok(done) => {
            no(&format!("git clone has failed ({done})"), "clone it by hand, and type this in the clone")
        }
        Err(err) => {
            no(&format!("git cannot be started: {err}"), "clone it by hand, and type this in the clone")
        }
    }
}

/// Returns the settings of a machine that only works: the place of the state, no doors that it does not need, and the
/// built-in worker with a copy, so that it takes tasks of other hosts.
fn settings(
    asked: &Join,
    (name, way): (&str, &RepositoryRoute),
    has_password: bool,
    config: &Path,
) -> String {
    let text = |it: &str| toml::Value::String(it.to_owned()).to_string();
    let mut lines = vec![
        "# A machine that only works: it carries out tasks that other hosts have asked for. docs/hosts.md"
            .to_owned(),
        "# `provost config init` prints every setting; `provost agent add NAME` adds a worker.".to_owned(),
        format!("store.url = {}", text(&way.url)),
        format!("store.name = {}", text(name)),
    ];
    if has_password {
        lines.push(format!("store.password = {}", text(PASSWORD)));
    }
    if way.ca.is_some() {
        lines.push(format!("store.ca = {}", text(&config.join(AUTHORITIES).display().to_string())));
    }
    if !asked.labels.is_empty() {
        let labels: Vec<String> = asked.labels.iter().map(|it| text(&it.0)).collect();
        lines.push(format!("host.labels = [{}]", labels.join(", ")));
    }
    lines.extend(asked.places.map(|it| format!("limits.workers = {it}")));
    lines.push("\n# People and editors have no door here.".to_owned());
    lines.extend(CLOSED.map(|it| format!("{it} = false")));
    let (program, before) = system::shell();
    let args: Vec<String> = before.iter().copied().chain(["{goal}"]).map(text).collect();
    lines.push(format!(
        "\n# Tasks of the shell, each in a copy of the files of the commit that its asker is at.\n[workers.shell]\ntype = \"cli\"\n\
         binary = {}\nargs = [{}]\nparse_mode = \"text\"\ncopy = \"kept\"\n",
        text(&program.to_string_lossy()),
        args.join(", ")
    ));
    lines.join("\n")
}

/// The doors and notices for people and agents at a machine.
const CLOSED: [&str; 7] = [
    "a6s.enabled",
    "agent_protocol.enabled",
    "broker.enabled",
    "desktop.answer",
    "desktop.enabled",
    "mcp.enabled",
    "web.enabled",
];

fn enrol(
    here: &RepoContext,
    (name, way): (&str, &RepositoryRoute),
    password: Option<&Secret>,
    (text, code): (&str, &Secret),
    settings: &str,
) -> Result<(), CliError> {
    let config = &here.places.config;
    here.places.create_config()?;
    let authorities = way.ca.as_ref().map(|it| (config.join(AUTHORITIES), it));
    if let Some((path, pem)) = &authorities {
        write_new(path, pem)?;
    }
    let mut database =
        Database::at(&way.url, authorities.as_ref().map(|it| it.0.as_path()), Some(name), &here.places.root);
    database.password = password.cloned().map(Password::from);
    let places = here.places.clone();
    database.roots = store::Roots::by(move || provost_config::root_commits(&places));
    if let Err(err) = joined(here, &database, text, code) {
        // It has not joined, so it leaves no file behind.
        authorities.iter().for_each(|(path, _)| drop(std::fs::remove_file(path)));
        return Err(err);
    }
    if let Some(password) = password {
        Vault::at(here.places.secrets()).add(PASSWORD, Delivery::Daemon, password)?;
    }
    write_new(&config.join(SETTINGS), settings)?;
    let rules = config.join(RULES);
    if rules.symlink_metadata().is_err() {
        write_new(&rules, Builtin::Default.text())?;
    }
    Ok(())
}

/// Writes a file that only its owner can read.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    let written =
        system::private_file(&mut options).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|err| {
        CliError::of(format!("{} cannot be written", path.display())).because(err).next("provost doctor")
    })
}

fn say(here: &RepoContext, asked: &Join, name: &str) -> Result<u8, CliError> {
    let found: Vec<&str> = AGENTS.into_iter().filter(|it| system::find_program(it).is_some()).collect();
    let (folder, config) = (here.places.worktree.display(), here.places.config.display());
    if here.json {
        out::json(&json!({
            "name": name, "role": HostRole::Worker.as_str(), "folder": folder.to_string(), "config": config.to_string(),
            "workers": ["shell"], "labels": asked.labels.iter().map(|it| &it.0).collect::<Vec<_>>(), "found": found,
        }))?;
        return Ok(DONE);
    }
    out::line(format!(
        "this machine can work for {name:?} now, in {folder}; its settings and rules are in {config}\nit offers the worker shell, in copies of \
         the repository's files"
    ))?;
    if !found.is_empty() {
        out::line(format!(
            "found here as well: {}; each is offered once added: provost agent add NAME",
            found.join(", ")
        ))?;
    }
    let is_there = std::env::current_dir().is_ok_and(|it| it.starts_with(&here.places.worktree));
    out::line(match is_there {
        true => "next: provost up".to_owned(),
        false => format!("next: cd {folder} && provost up"),
    })?;
    Ok(DONE)
}
