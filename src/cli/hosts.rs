//! `provost host`: the hosts that work on one repository over PostgreSQL.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use serde_json::json;

use super::cli_error::{DONE, USAGE};
use super::invitations::{self, Invite};
use super::{CliError, RepoContext, database, host_list, host_upgrade, out};
use provost_base::limits::{HOST_KEY_BYTES_MAX, HOSTS_MAX};
use provost_base::{HostRole, Secret};
use provost_store::{self as store, Database, HostRow, TakenOut};
use provost_system::HiddenTyping;

/// Most bytes of a line that is typed.
const LINE_MAX: usize = 1_024;

/// `provost host`.
#[derive(Subcommand, Debug)]
pub(super) enum HostCommand {
    /// Write the journal's key and an invitation into a file for a machine that is to join, and print the code that opens it
    #[command(
        after_help = "The file and the code are worth something only together: give them to the other machine in two ways. One machine joins with a file, unless --hosts says how many.\n\nExample:\n  provost host export-key shop.key"
    )]
    ExportKey(ExportKey),
    /// Invite a machine: print a line for it, and the code that opens the line
    #[command(
        after_help = "The line has the journal's key, the database's address and the invitation, sealed; it is worth something only with its code. Give both to the other machine in two ways. With --role worker, the machine carries out tasks of other hosts and decides nothing: docs/hosts.md. Give it a login of the database of its own, and name that with --login.\n\nExamples:\n  provost host invite --role worker --login provost_ci1\n  provost host invite --role worker --hosts 4 --clone https://git.example/shop.git\n  provost host invite"
    )]
    Invite(Invite),
    /// Join the repository that `[store]` names as one more host, with a line of `provost host invite` or a file of `provost host export-key`
    #[command(
        after_help = "The code is asked for at the terminal, or read from standard input. The folder has to be a clone of the repository, and must have no state of its own yet. For a machine that only works: provost worker join LINE\n\nExamples:\n  provost host join --key-file shop.key\n  provost host join LINE"
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
#[command(group = clap::ArgGroup::new("with").required(true).args(["line", "key_file"]))]
pub(super) struct Join {
    /// The line that `provost host invite` has printed on another host
    line: Option<String>,
    /// The file that `provost host export-key` has written on another host
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key_file: Option<PathBuf>,
}

/// `provost host remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The host's id, or its first digits, as `provost host list` shows them
    host: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// `provost host drain`.
#[derive(Args, Debug)]
pub(super) struct Drain {
    /// The host's id, or its first digits, as `provost host list` shows them
    host: String,
}

pub(super) fn host(here: &RepoContext, asked: &HostCommand) -> Result<u8, CliError> {
    match asked {
        HostCommand::ExportKey(it) => export_key(here, it),
        HostCommand::Invite(it) => invitations::invite(here, it),
        HostCommand::Join(it) => join(here, it),
        HostCommand::Remove(it) => remove(here, it),
        HostCommand::Drain(it) => take_out(here, &it.host, TakenOut::Drained),
        HostCommand::Upgrade => host_upgrade::upgrade(here, &shared(here)?),
        HostCommand::List => host_list::list(here),
    }
}

/// Returns the database that the hosts share.
pub(super) fn shared(here: &RepoContext) -> Result<Database, CliError> {
    database::of(here)?.ok_or_else(|| {
        CliError::of("this repository has one host")
            .because("its state is in the state folder: `[store] url` names no database")
            .next("docs/hosts.md says how several hosts work on one repository")
    })
}

/// Refuses an invitation by a user who is known not to be an admin. The other machines do not check that: a program with the journal's key can make one.
pub(super) fn must_be_an_admin(here: &RepoContext, database: &Database) -> Result<(), CliError> {
    let state = &here.places.state;
    match database::ask(|| store::why_no_invitation(state, database)) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(CliError::refusal("no machine was invited")
            .because(why)
            .next("on the machine of an admin: the same command")),
        Err(err) => {
            if !here.json {
                let why = out::one_line(&err.to_string(), 400);
                out::note(format!("the role of this machine's user could not be looked up: {why}"));
            }
            Ok(())
        }
    }
}

fn export_key(here: &RepoContext, asked: &ExportKey) -> Result<u8, CliError> {
    let database = shared(here)?;
    must_be_an_admin(here, &database)?;
    let name = database.name;
    let failed = |err: &dyn std::fmt::Display| {
        CliError::of("the key was not exported").because(err).next("name a file that does not exist")
    };
    let sealed = store::seal_key(
        &here.places.state,
        store::Invite { name: &name, most: asked.hosts, role: HostRole::Full, way: None },
    )
    .map_err(|err| failed(&err))?;
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
    let text = match (&asked.line, &asked.key_file) {
        (Some(line), _) => invitations::read(line)?,
        (None, Some(file)) => key_text(file)?,
        (None, None) => return Err(CliError::of("say with what: a line, or a file").with_code(USAGE)),
    };
    let code = code()?;
    let joined = joined(here, &database, &text, &code)?;
    if here.json {
        let hosts: Vec<_> = joined.hosts.iter().map(host_list::row_json).collect();
        out::json(&json!({ "name": database.name, "hosts": hosts }))?;
        return Ok(DONE);
    }
    let names: Vec<&str> = joined.hosts.iter().map(|it| it.name.as_str()).collect();
    let rest = asked.key_file.as_ref().map_or_else(String::new, |it| {
        format!("; and remove {}, once all machines that it is for have joined", it.display())
    });
    out::line(format!(
        "this folder can take part in {:?} now, beside {}\nnext: provost up{rest}",
        database.name,
        names.join(", "),
    ))?;
    Ok(DONE)
}

fn key_text(file: &Path) -> Result<String, CliError> {
    let unread = |err: &dyn std::fmt::Display| {
        CliError::of(format!("{} cannot be read", file.display()))
            .because(err)
            .next("on a host of the repository: provost host export-key FILE")
    };
    let mut text = String::new();
    let it = std::fs::File::open(file).map_err(|err| unread(&err))?;
    it.take(HOST_KEY_BYTES_MAX + 1).read_to_string(&mut text).map_err(|err| unread(&err))?;
    Ok(text)
}

/// Joins a repository with the sealed content of an invitation.
pub(super) fn joined(
    here: &RepoContext,
    database: &Database,
    text: &str,
    code: &Secret,
) -> Result<store::Joined, CliError> {
    here.places.create()?;
    here.places.create_config()?;
    let state = &here.places.state;
    database::ask(|| store::join(state, database, text, code)).map_err(|err| {
        CliError::refusal("this machine has not joined").because(err).next(
            "the same command once more, once that is mended; docs/hosts.md says what another host needs",
        )
    })
}

/// Asks for the code of a file or a line.
pub(super) fn code() -> Result<Secret, CliError> {
    hidden_line("type the code that was printed with the invitation, and press Enter; it is not shown")
}

/// Reads one line of standard input; at a terminal it asks with these words, and hides the typing. Empty where the input has no line.
pub(super) fn hidden_line(asks: &str) -> Result<Secret, CliError> {
    let unread = |err: io::Error| CliError::of("standard input could not be read").because(err);
    let is_typed = io::stdin().is_terminal();
    if is_typed {
        out::note(asks);
    }
    let _hidden = is_typed.then(HiddenTyping::begin).transpose().map_err(unread)?;
    let (mut bytes, mut byte) = (zeroize::Zeroizing::new(Vec::with_capacity(LINE_MAX)), [0]);
    while bytes.len() < LINE_MAX && io::stdin().lock().read(&mut byte).map_err(unread)? == 1 && byte != *b"\n"
    {
        bytes.push(byte[0]);
    }
    Ok(Secret::new(bytes.trim_ascii().to_vec()))
}

/// The number of digits of an id that are enough to name a host.
const DIGITS_MIN: usize = 4;

/// Returns the host whose id has this beginning.
pub(super) fn named(here: &RepoContext, database: &Database, begins: &str) -> Result<HostRow, CliError> {
    let state = &here.places.state;
    let hosts = database::ask(|| store::hosts(state, database))?;
    let mut found = hosts.rows.into_iter().filter(|it| it.daemon.host.to_string().starts_with(begins));
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
        out::note(format!(
            "Remove {} ({})? Its running tasks are lost. [y/N]",
            it.name,
            it.daemon.host.short()
        ));
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
    let state = &here.places.state;
    database::ask(|| store::take_out(state, &database, it.daemon.host, how))
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
