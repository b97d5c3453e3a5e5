//! `provost host`: the hosts that work on one repository over PostgreSQL.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::cli_error::DONE;
use super::{CliError, RepoContext, database, host_upgrade, out};
use provost_base::Secret;
use provost_base::limits::{HOST_KEY_BYTES_MAX, HOSTS_MAX};
use provost_store::{self as store, Database, HostRow, TakenOut};
use provost_system::HiddenTyping;

/// `provost host`.
#[derive(Subcommand, Debug)]
pub(super) enum Host {
    /// Write the journal's key and an invitation into a file for a machine that is to join, and print the code that opens it
    #[command(
        after_help = "The file and the code are worth something only together: give them to the other machine in two ways. One machine joins with a file, unless --hosts says how many.\n\nExample:\n  provost host export-key shop.key"
    )]
    ExportKey(ExportKey),
    /// Join the repository that `[store]` names as one more host, with a file of `provost host export-key`
    #[command(
        after_help = "The code is asked for at the terminal, or read from standard input. The folder has to be a clone of the repository, and must have no state of its own yet.\n\nExample:\n  provost host join --key-file shop.key"
    )]
    Join(Join),
    /// Take a host out at once: what it holds is freed, its runs are lost, and it never takes part again
    #[command(
        after_help = "The daemons of the other hosts do it within seconds. The removed machine still knows the journal's key: take its login away from the database, too.\n\nExamples:\n  provost host remove 3f0c2a71\n  provost host remove 3f0c2a71 --yes"
    )]
    Remove(Remove),
    /// Have a host take no new tasks, and leave after its last run
    #[command(after_help = "Example:\n  provost host drain 3f0c2a71")]
    Drain(Drain),
    /// Raise the format in which the hosts write their log, once all of them have a release that reads it
    #[command(
        after_help = "The last step of an update of Provost on several hosts; docs/hosts.md has the others. It changes nothing where a host could not go on, and says which.\n\nExamples:\n  provost host upgrade\n  provost host upgrade --json"
    )]
    Upgrade,
    /// List the hosts of the repository
    #[command(after_help = "Examples:\n  provost host list\n  provost host list --json")]
    List,
}

/// `provost host export-key`.
#[derive(Args, Debug)]
pub(super) struct ExportKey {
    /// The file to write, which must not exist
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How many machines may join with the file
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=HOSTS_MAX as i64))]
    hosts: u32,
}

/// `provost host join`.
#[derive(Args, Debug)]
pub(super) struct Join {
    /// The file that `provost host export-key` has written on another host
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key_file: PathBuf,
}

/// `provost host remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The host's id, or its first digits, as `provost host list` shows them
    host: String,
    /// Remove it without a question
    #[arg(long)]
    yes: bool,
}

/// `provost host drain`.
#[derive(Args, Debug)]
pub(super) struct Drain {
    /// The host's id, or its first digits, as `provost host list` shows them
    host: String,
}

pub(super) fn host(here: &RepoContext, asked: &Host) -> Result<u8, CliError> {
    match asked {
        Host::ExportKey(it) => export_key(here, it),
        Host::Join(it) => join(here, it),
        Host::Remove(it) => remove(here, it),
        Host::Drain(it) => take_out(here, &it.host, TakenOut::Drained),
        Host::Upgrade => host_upgrade::upgrade(here, &shared(here)?),
        Host::List => list(here),
    }
}

/// The database that the hosts share.
pub(super) fn shared(here: &RepoContext) -> Result<Database, CliError> {
    database::of(here)?.ok_or_else(|| {
        CliError::of("this repository has one host")
            .because("its state is in the state folder: `[store] url` names no database")
            .next("docs/hosts.md says how several hosts work on one repository")
    })
}

fn export_key(here: &RepoContext, asked: &ExportKey) -> Result<u8, CliError> {
    let name = shared(here)?.name;
    let failed = |err: &dyn std::fmt::Display| {
        CliError::of("the key was not exported").because(err).next("name a file that does not exist")
    };
    let sealed = store::seal_key(&here.places.state, &name, asked.hosts).map_err(|err| failed(&err))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&asked.file).and_then(|mut file| {
        file.write_all(sealed.text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|err| failed(&format!("{}: {err}", asked.file.display())))?;
    let code = String::from_utf8_lossy(sealed.code.expose()).into_owned();
    if here.json {
        out::json(&json!({ "file": asked.file, "name": name, "code": code }))?;
        return Ok(DONE);
    }
    out::line(format!(
        "{} has the journal's key of {name:?} and an invitation, sealed; this code opens it, and is shown once:\n\n  {code}\n\n\
         On the other machine, in a clone of the repository, with the same `[store] url` and name:\n\
         provost host join --key-file FILE",
        asked.file.display()
    ))?;
    Ok(DONE)
}

fn join(here: &RepoContext, asked: &Join) -> Result<u8, CliError> {
    let mut database = shared(here)?;
    let places = here.places.clone();
    database.roots = store::Roots::by(move || provost_config::root_commits(&places));
    let unread = |err: &dyn std::fmt::Display| {
        CliError::of(format!("{} cannot be read", asked.key_file.display()))
            .because(err)
            .next("on a host of the repository: provost host export-key FILE")
    };
    let mut text = String::new();
    let file = std::fs::File::open(&asked.key_file).map_err(|err| unread(&err))?;
    file.take(HOST_KEY_BYTES_MAX + 1).read_to_string(&mut text).map_err(|err| unread(&err))?;
    let code = code()?;
    here.places.create()?;
    here.places.create_config()?;
    let joined = store::join(&here.places.state, &database, &text, &code).map_err(|err| {
        CliError::refusal("this machine has not joined, and nothing was written")
            .because(err)
            .next("docs/hosts.md says what a second host needs")
    })?;
    if here.json {
        let hosts: Vec<_> = joined.hosts.iter().map(row_json).collect();
        out::json(&json!({ "name": database.name, "hosts": hosts }))?;
        return Ok(DONE);
    }
    let names: Vec<&str> = joined.hosts.iter().map(|it| it.name.as_str()).collect();
    out::line(format!(
        "this folder can take part in {:?} now, beside {}\nnext: provost up; and remove {}, which is needed no more",
        database.name,
        names.join(", "),
        asked.key_file.display()
    ))?;
    Ok(DONE)
}

/// The code, from the terminal without showing it, or from standard input.
fn code() -> Result<Secret, CliError> {
    let unread = |err: io::Error| CliError::of("the code could not be read").because(err);
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(128));
    if io::stdin().is_terminal() {
        out::note(
            "type the code that `provost host export-key` has printed, and press Enter; it is not shown",
        );
        let _hidden = HiddenTyping::begin().map_err(unread)?;
        let mut byte = [0];
        while bytes.len() < 128 && io::stdin().lock().read(&mut byte).map_err(unread)? == 1 && byte != *b"\n"
        {
            bytes.push(byte[0]);
        }
    } else {
        io::stdin().lock().take(128).read_to_end(&mut bytes).map_err(unread)?;
    }
    Ok(Secret::new(bytes.to_vec()))
}

/// Digits of an id that are enough to name a host.
const DIGITS_MIN: usize = 4;

/// The host whose id begins so.
pub(super) fn named(here: &RepoContext, database: &Database, begins: &str) -> Result<HostRow, CliError> {
    let hosts = store::hosts(&here.places.state, database)?;
    let mut found = hosts.into_iter().filter(|it| it.daemon.host.to_string().starts_with(begins));
    match (found.next(), found.next()) {
        (Some(it), None) if begins.len() >= DIGITS_MIN => Ok(it),
        _ => Err(CliError::of(format!("no one host's id begins with {begins:?}"))
            .because(format!("it has to be {DIGITS_MIN} digits at least, and one host's alone"))
            .next("provost host list")),
    }
}

fn remove(here: &RepoContext, asked: &Remove) -> Result<u8, CliError> {
    if !asked.yes {
        if !io::stdin().is_terminal() {
            return Err(CliError::refusal("there is no person to ask whether the host is removed")
                .because("standard input is no terminal")
                .next(format!("provost host remove {} --yes", asked.host)));
        }
        let it = named(here, &shared(here)?, &asked.host)?;
        out::note(format!("Remove {} ({})? What it runs is lost. [y/N]", it.name, it.daemon.host.short()));
        let mut line = String::new();
        io::stdin()
            .read_line(&mut line)
            .map_err(|err| CliError::of("no answer could be read").because(err))?;
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            return Err(CliError::of("nothing was removed"));
        }
    }
    take_out(here, &asked.host, TakenOut::AtOnce)
}

fn take_out(here: &RepoContext, begins: &str, how: TakenOut) -> Result<u8, CliError> {
    let database = shared(here)?;
    let it = named(here, &database, begins)?;
    store::take_out(&database, it.daemon.host, how)
        .map_err(|err| CliError::refusal("nothing has changed").because(err).next("provost host list"))?;
    let state = match how {
        TakenOut::AtOnce => "removing",
        TakenOut::Drained => "draining",
    };
    if here.json {
        out::json(&json!({ "host": it.daemon.host.to_string(), "machine": it.name, "state": state }))?;
    } else {
        out::line(match how {
            TakenOut::AtOnce => format!(
                "{} is being removed: the other daemons free what it held within seconds\nnext: take its login away, since it \
                 still knows the journal's key",
                it.name
            ),
            TakenOut::Drained => format!("{} takes no new tasks, and leaves after its last run", it.name),
        })?;
    }
    Ok(DONE)
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let hosts = store::hosts(&here.places.state, &shared(here)?)?;
    if here.json {
        out::json(&json!({ "hosts": hosts.iter().map(row_json).collect::<Vec<_>>() }))?;
        return Ok(DONE);
    }
    let head = ["ID", "MACHINE", "STATE", "LAST SEEN", "BEHIND", "KEY", "VERSION"].map(str::to_owned);
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(hosts.iter().map(row)).collect();
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}

/// The state of a host, in a word for people.
fn state(it: &HostRow) -> &'static str {
    if it.is_stopped { "stopped" } else { it.state.as_str() }
}

fn row(it: &HostRow) -> [String; 7] {
    let own = if it.is_here { " (here)" } else { "" };
    [
        it.daemon.host.short(),
        format!("{}{own}", it.name),
        state(it).to_owned(),
        format!("{} s ago", it.silent_ms / 1_000),
        format!("{} batches", it.behind),
        it.key.clone().unwrap_or_else(|| "none yet".into()),
        it.version.clone(),
    ]
}

pub(super) fn row_json(it: &HostRow) -> serde_json::Value {
    json!({
        "host": it.daemon.host.to_string(), "incarnation": it.daemon.incarnation, "machine": it.name, "state": state(it),
        "silent_ms": it.silent_ms, "behind": it.behind, "key": it.key, "version": it.version,
        "formats": it.formats, "here": it.is_here,
    })
}
