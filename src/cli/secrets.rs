//! `provost secret`: secrets of workers. Changes the files, then tells a running daemon. It reads a value from
//! standard input, never from an argument, and never prints one.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use serde_json::{Value, json};

use super::cli_error::DONE;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_base::limits::SECRET_VALUE_BYTES_MAX;
use provost_base::{RepoPath, Secret};
use provost_client::keys::{self, ReloadOutcome};
use provost_system::HiddenTyping;
use provost_vault::{ByProxy, Delivery, Upstream};

/// `provost secret`.
#[derive(Subcommand, Debug)]
pub(super) enum Secrets {
    /// Store a secret for workers that name it, or for notices; the value is read from standard input
    #[command(
        after_help = "Examples:\n  provost secret add anthropic --upstream https://api.anthropic.com --header x-api-key \\\n      --base-url-in ANTHROPIC_BASE_URL --token-in ANTHROPIC_API_KEY < key.txt\n  provost secret add registry --file .config/registry/token < token\n  provost secret add ci --env CI_TOKEN\n  provost secret add hook-key --daemon < key.txt"
    )]
    Add(Box<Add>),
    /// List the secrets, and how workers get them; values are not shown
    #[command(after_help = "Examples:\n  provost secret list\n  provost secret list --json")]
    List,
    /// Remove a secret
    #[command(after_help = "Example:\n  provost secret remove anthropic")]
    Remove(Remove),
}

/// `provost secret add`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["upstream", "file", "env", "daemon"]))]
pub(super) struct Add {
    /// The secret's name, as configured workers list it in `secrets`
    name: String,
    /// Let the daemon add the secret to requests for this address; the worker never sees it
    #[arg(long, value_name = "URL", value_parser = upstream)]
    upstream: Option<Upstream>,
    /// The header that carries the secret
    #[arg(long, default_value = "authorization")]
    header: String,
    /// The text before the secret in that header; by default `Bearer ` in authorization and empty elsewhere
    #[arg(long)]
    prefix: Option<String>,
    /// The variable in which the worker's program looks for the base URL; may be repeated
    #[arg(long = "base-url-in", value_name = "VARIABLE", requires = "upstream")]
    base_url: Vec<String>,
    /// The variable in which the program looks for its key, and finds a token of its run; may be repeated
    #[arg(long = "token-in", value_name = "VARIABLE", requires = "upstream")]
    token: Vec<String>,
    /// The certificate authority of the address (PEM), if it is not a public one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "upstream")]
    authority: Option<PathBuf>,
    /// Give workers a copy of the secret as this file of their home
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Give the secret to workers in this variable
    #[arg(long, value_name = "VARIABLE")]
    env: Option<String>,
    /// Keep the secret for the daemon itself, which sends notices with it; no worker gets it
    #[arg(long)]
    daemon: bool,
}

/// `provost secret remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The secret's name
    name: String,
}

fn upstream(text: &str) -> Result<Upstream, String> {
    Upstream::parse(text).map_err(|why| why.to_string())
}

pub(super) fn secret(here: &RepoContext, asked: Secrets) -> Result<u8, CliError> {
    match asked {
        Secrets::List => list(here),
        Secrets::Add(it) => add(here, *it),
        Secrets::Remove(it) => {
            let vault = here.vault()?;
            let is_daemons = vault.look(&it.name).is_ok_and(|known| known.delivery == Delivery::Daemon);
            vault.remove(&it.name)?;
            let says = match is_daemons {
                true => "the daemon sends no notice that needs it",
                false => "the daemon refuses workers that name it",
            };
            changed(here, "secret.removed", &it.name, json!({}), says)
        }
    }
}

fn add(here: &RepoContext, asked: Add) -> Result<u8, CliError> {
    let vault = here.vault()?;
    let name = asked.name.clone();
    let delivery = delivery(asked)?;
    // This check comes before the user types a value that could not be stored.
    delivery.check().map_err(|why| {
        CliError::refusal("these options are no way to give a secret")
            .because(why)
            .next("provost secret add --help")
    })?;
    let value = value(&name, &delivery)?;
    let details = json!({ "delivery": delivery });
    vault.add(&name, delivery, &value)?;
    changed(here, "secret.added", &name, details, "")
}

fn delivery(asked: Add) -> Result<Delivery, CliError> {
    if let Some(path) = asked.file {
        let path = RepoPath::parse(&path).map_err(|why| CliError::of(format!("--file {why}")))?;
        return Ok(Delivery::File { path });
    }
    if asked.daemon {
        return Ok(Delivery::Daemon);
    }
    if let Some(variable) = asked.env {
        return Ok(Delivery::Env { variable });
    }
    let upstream = asked.upstream.ok_or_else(|| CliError::of("say how workers get it"))?;
    let usual = if asked.header.eq_ignore_ascii_case("authorization") { "Bearer " } else { "" };
    let authority = asked.authority.map(|path| {
        std::fs::read_to_string(&path)
            .map_err(|err| CliError::of(format!("{} cannot be read", path.display())).because(err))
    });
    Ok(Delivery::Proxy(ByProxy {
        upstream,
        header: asked.header,
        prefix: asked.prefix.unwrap_or_else(|| usual.into()),
        base_url: asked.base_url,
        token: asked.token,
        authority: authority.transpose()?,
    }))
}

/// Reads the value. Typing at a terminal is hidden.
pub(super) fn value(name: &str, delivery: &Delivery) -> Result<Secret, CliError> {
    let unread = |err: io::Error| CliError::of("the value could not be read").because(err);
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(SECRET_VALUE_BYTES_MAX + 2));
    if io::stdin().is_terminal() {
        out::note(format!("type the value of {name} and press Enter; it is not shown"));
        let _hidden = HiddenTyping::begin().map_err(unread)?;
        let mut byte = [0];
        while io::stdin().lock().read(&mut byte).map_err(unread)? == 1 && byte != *b"\n" {
            bytes.push(byte[0]);
        }
    } else {
        let most = SECRET_VALUE_BYTES_MAX as u64 + 2;
        io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(unread)?;
    }
    // A file is stored unchanged; for other values the line break at the end is dropped.
    if !matches!(delivery, Delivery::File { .. }) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let length = line.strip_suffix(b"\r").unwrap_or(line).len();
        bytes.truncate(length);
    }
    Ok(Secret::new(bytes.to_vec()))
}

fn changed(
    here: &RepoContext,
    what: &str,
    name: &str,
    details: Value,
    removed: &str,
) -> Result<u8, CliError> {
    let is_of_the_store = here.config(None).is_ok_and(|it| it.config.store.password.as_deref() == Some(name));
    if here.json {
        out::json(&json!({ "secret": name, "what": what, "details": details }))?;
    } else {
        out::note(match what {
            "secret.added" if is_of_the_store => {
                format!("stored; the daemon logs in with {name} at its next connection to the database")
            }
            "secret.added" if details["delivery"]["mode"] == "daemon" => {
                format!("stored; an entry [notify.NAME] of the settings may name {name}")
            }
            "secret.added" => format!("stored; a worker with secrets = [\"{name}\"] may get it"),
            _ => format!("{name} is removed; {removed}"),
        });
    }
    match wait_for(async { Ok(keys::tell(&here.client(), what, name, details).await) })? {
        ReloadOutcome::Daemon | ReloadOutcome::Nobody => Ok(DONE),
        // The daemon reads this one for each connection, and cannot write before it has logged in with the new one.
        ReloadOutcome::Failed(err) if is_of_the_store => {
            if !here.json {
                out::note(format!(
                    "the journal has no entry about it: {}",
                    out::one_line(&err.to_string(), 400)
                ));
            }
            Ok(DONE)
        }
        ReloadOutcome::Failed(err) => {
            Err(CliError::of("the files are changed, but the running daemon does not know")
                .because(err)
                .next("provost daemon reload"))
        }
    }
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let list = here.vault()?.list()?;
    if here.json {
        out::json(&list)?;
        return Ok(DONE);
    }
    if list.is_empty() {
        out::note("there are no secrets; see provost secret add --help");
        return Ok(DONE);
    }
    let mut rows = vec![["SECRET", "BY", "WHERE"].map(String::from)];
    rows.extend(list.iter().map(|it| {
        let place = match &it.delivery {
            Delivery::Proxy(by) => match &it.login {
                Some(login) => format!("{} in {}, from {}", by.upstream, by.header, login.path.display()),
                None => format!("{} in {}", by.upstream, by.header),
            },
            Delivery::File { path } => format!("~/{path}"),
            Delivery::Env { variable } => variable.clone(),
            Delivery::Daemon => "notices".into(),
        };
        let by = match it.delivery {
            Delivery::Daemon => "daemon",
            _ => it.delivery.credentials().name(),
        };
        [it.name.to_string(), by.into(), out::one_line(&place, 200)]
    }));
    out::text_as_is(&out::table(&rows))?;
    Ok(DONE)
}
