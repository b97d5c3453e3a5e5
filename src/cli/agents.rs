//! `provost agent`: lists the known agents, adds and removes the entry of an agent's program, and tries one.
//!
//! ```text
//!   add:     program found --> credential chosen --> entry made --> vault --> file --> daemon told
//!   clean-up: what was put into the vault is taken out again when the file is not written
//! ```
//! No half is left: the command takes the secret out of the vault again if the file cannot be written, and the entry out of the
//! file if the settings cannot be read with it.

mod access;
mod entry;
mod failures;
mod file;
mod find;
mod presets;
mod release;
mod trial;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use serde_json::{Value, json};

use super::cli_error::{DONE, REFUSED, USAGE};
use super::repo_context::wait_for;
use super::{CliError, Rehearsal, RepoContext, jail, out, status};
use provost_base::limits::MODEL_NAME_BYTES_MAX;
use provost_base::{AgentId, nearest};
use provost_client::keys::{self, ReloadOutcome};
use provost_config::Places;
use provost_vault::Upstream;

use access::Chosen;
use entry::Choice;
use file::SettingsFile;
use find::Found;
pub(super) use find::version_on_path;
use presets::{PRESETS, Preset};

/// `provost agent`.
#[derive(Subcommand, Debug)]
pub(super) enum Agent {
    /// List the known agents, each once, with the doors that they use
    #[command(after_help = "Example:\n  provost agent list")]
    List,
    /// Add an agent: find its program and its credential, and write its entry
    #[command(
        after_help = "Examples:\n  provost agent add claude\n  provost agent add claude --asks\n  provost agent add codex --one-shot --name coder --key-from OPENAI_API_KEY\n  provost agent add opencode --model gpt-5 --key-from - < key.txt\n  provost agent add gemini --dry-run\n\n\
                      Programs: claude, codex, gemini, opencode, copilot, qwen, goose, cursor. They are spoken to in the Agent Client Protocol, Claude Code and \
                      Codex through an adapter; without that, they do one task and end. The credential goes into the vault, and the daemon adds it to \
                      the program's requests; it never enters the jail. Next: provost agent try NAME"
    )]
    Add(Box<Add>),
    /// Release all that an agent holds: its locks, places in queues, claimed files and intents
    #[command(
        after_help = "Examples:\n  provost agent release feat-a\n  provost agent release feat-a --json\n\nOnly the user may. The agent can take it again."
    )]
    Release(release::Release),
    /// Remove the entry of an agent; its secret stays in the vault
    #[command(after_help = "Example:\n  provost agent remove claude")]
    Remove(Remove),
    /// Ask an agent a question that changes nothing, and say what is missing
    #[command(
        after_help = "Examples:\n  provost agent try claude\n  provost agent try claude --json\n\nEnds with 0 only if an answer came."
    )]
    Try(trial::Try),
}

/// `provost agent add`.
#[derive(Args, Debug)]
pub(super) struct Add {
    /// The program: claude, codex, gemini, opencode, copilot, qwen, goose or cursor
    program: String,
    /// The agent's name; by default the program's
    #[arg(long)]
    name: Option<AgentId>,
    /// The model that the agent uses; by default the program's own choice, if it has one
    #[arg(long, value_parser = model)]
    model: Option<String>,
    /// Take the credential from this variable, or from standard input (-)
    #[arg(long, value_name = "VARIABLE")]
    key_from: Option<String>,
    /// The name of the secret in the vault; without --key-from it has to be there
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    /// Send requests to this address instead of the vendor's: a gateway
    #[arg(long, value_name = "URL", value_parser = upstream)]
    upstream: Option<Upstream>,
    /// The program's file, if it is not the first on PATH
    #[arg(long = "program", value_name = "PATH", value_hint = ValueHint::FilePath)]
    at: Option<PathBuf>,
    /// Have it ask before it writes or runs anything: the rules answer, or a person among the approvals
    #[arg(long, conflicts_with = "one_shot")]
    asks: bool,
    /// Have it do one task and end, instead of speaking the Agent Client Protocol with it
    #[arg(long)]
    one_shot: bool,
    /// The file that gets the entry
    #[arg(long = "in", value_enum, default_value_t = SettingsOf::User, value_name = "user|repo")]
    into: SettingsOf,
    /// Print the entry, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// `provost agent remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The agent's name
    name: AgentId,
}

/// The file with an entry.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum SettingsOf {
    /// The user's own settings, which count in every repository
    User,
    /// The repository's settings, which count after `provost config allow`
    Repo,
}

fn upstream(text: &str) -> Result<Upstream, String> {
    Upstream::parse(text).map_err(|why| why.to_string())
}

/// Checks a model's name, which is passed to a program in an argument and a variable.
pub(super) fn model(text: &str) -> Result<String, String> {
    let fits =
        text.len() <= MODEL_NAME_BYTES_MAX && !text.trim().is_empty() && !text.chars().any(char::is_control);
    match fits {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("a model's name has 1 to {MODEL_NAME_BYTES_MAX} bytes and no control characters"))
        }
    }
}

pub(super) fn agent(here: &RepoContext, asked: Agent, rehearse: &Rehearsal) -> Result<u8, CliError> {
    match asked {
        Agent::List => status::agents(here),
        Agent::Add(it) => add(here, &it, rehearse),
        Agent::Remove(it) => remove(here, &it.name),
        Agent::Try(it) => trial::run(here, &it),
        Agent::Release(it) => release::run(here, &it),
    }
}

fn settings(places: &Places, into: SettingsOf) -> PathBuf {
    match into {
        SettingsOf::User => places.config.join("provost.toml"),
        SettingsOf::Repo => places.root.join(provost_config::pin::PROVOST),
    }
}

fn add(here: &RepoContext, asked: &Add, rehearse: &Rehearsal) -> Result<u8, CliError> {
    if cfg!(windows) {
        return Err(CliError::refusal("agents with a key cannot be added on Windows")
            .because("a jail there has no network of its own, so that no proxy could keep the key outside")
            .next("run the daemon in WSL 2, where Linux's jail works"));
    }
    let preset = preset(&asked.program)?;
    let id = match &asked.name {
        Some(name) => name.clone(),
        None => AgentId::parse(preset.name).map_err(CliError::of)?,
    };
    is_plain(&id)?;
    if preset.needs_model && asked.model.is_none() {
        return Err(CliError::of(format!("{} needs the name of a model", preset.title))
            .next(format!("provost agent add {} --model NAME", preset.name))
            .with_code(USAGE));
    }
    is_free(here, &id, preset)?;
    let mut file = SettingsFile::read(&settings(&here.places, asked.into))?;
    let choice = Choice::make(here, preset, asked)?;
    let found = find::find(here, preset, choice.form, asked.at.as_deref())?;
    let wanted = access::AccessArgs {
        key_from: asked.key_from.as_deref(),
        secret: asked.secret.as_deref(),
        upstream: asked.upstream.as_ref(),
    };
    let chosen = access::choose(here, preset, &wanted)?;
    let entry = entry::text(&id, &choice, &found, &chosen, asked.model.as_deref());
    let text = file.with(&entry)?;
    let is_new = chosen.new.is_some();
    if !asked.dry_run {
        let counts = || counts(here, &id, rehearse);
        write(here, &mut file, &text, &chosen, asked.into, &counts)?;
    }
    report(
        here,
        asked,
        &choice,
        &Added { id: &id, found: &found, chosen: &chosen, is_new, entry, file: &file },
    )
}

fn preset(program: &str) -> Result<&'static Preset, CliError> {
    presets::named(program).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|it| it.name).collect();
        let near = nearest(program, names.iter().copied());
        let next = match near {
            Some(near) => format!("did you mean {near}?"),
            None => "docs/agents.md shows an entry for any other program".into(),
        };
        CliError::of(format!("{} is no program that is known here", out::one_line(program, 60)))
            .because(format!("known: {}", names.join(", ")))
            .next(next)
            .with_code(USAGE)
    })
}

/// Refuses a name that looks like a path, or like a name of another kind.
fn is_plain(id: &AgentId) -> Result<(), CliError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let name = id.as_str();
    if name.bytes().all(plain) && name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(CliError::of(format!("--name {} is no name for an agent", out::one_line(name, 60)))
        .next("use letters, digits, `-`, `_` and `.`")
        .with_code(USAGE))
}

/// Refuses a name that an agent, a worker or a role of any file has.
fn is_free(here: &RepoContext, id: &AgentId, preset: &Preset) -> Result<(), CliError> {
    let config = here.config(None)?.config;
    let what = match () {
        () if id.as_str() == "shell" => "the name of the built-in worker",
        () if config.agents.iter().any(|it| it.id == *id) => "the name of an agent",
        () if config.workers.contains_key(id) => "the name of a worker",
        () if config.roles.contains_key(id) => "the name of a role",
        () if config.refused_workers.contains_key(id.as_str()) => "the name of an entry that cannot be used",
        () => return Ok(()),
    };
    let another = format!("provost agent add {} --name ANOTHER", preset.name);
    let is_agent = config.agents.iter().any(|it| it.id == *id) && id.as_str() != "shell";
    let next = if is_agent { format!("provost agent remove {id}, or: {another}") } else { another };
    Err(CliError::refusal(format!("{id} is {what} already")).next(next))
}

/// Writes the vault first: an entry whose secret is missing would be refused. A new secret is removed again if the rest fails.
fn write(
    here: &RepoContext,
    file: &mut SettingsFile,
    text: &str,
    chosen: &Chosen,
    into: SettingsOf,
    counts: &dyn Fn() -> Result<(), CliError>,
) -> Result<(), CliError> {
    if into == SettingsOf::User {
        here.places.create_config()?;
    }
    let is_new = access::keep(here, chosen)?;
    let before = file.text().map(str::to_owned);
    let done = file.replace(text).and_then(|()| match into {
        SettingsOf::User => counts().or_else(|err| file.put_back(before.as_deref()).and(Err(err))),
        // The entry counts only after a person has allowed the file.
        SettingsOf::Repo => Ok(()),
    });
    if done.is_err() && is_new {
        let _kept = here.vault()?.remove(&chosen.secret);
    }
    done
}

/// Checks that the settings can be read with the entry and contain it, and that a jail can be built for it.
fn counts(here: &RepoContext, id: &AgentId, rehearse: &Rehearsal) -> Result<(), CliError> {
    let loaded = here.config(None)?;
    if loaded.config.agents.iter().any(|it| it.id == *id) {
        let mut asked = jail::question(here, id.clone(), None)?;
        // The daemon renews an expired log-in before a run, so the jail need not check it.
        asked.config.workers.entry(id.clone()).and_modify(|it| it.secrets = Vec::new());
        let planned = rehearse(asked);
        return planned.map(drop).map_err(|err| {
            CliError::refusal(format!("the jail would refuse the entry of {id}, which was not kept"))
                .because(format!("{err:#}"))
                .next("install the program in a folder of its own, or name another one with --program PATH")
        });
    }
    let refused = loaded.config.refused_workers.get(id.as_str()).map(|it| it.reason.clone());
    let why = refused.unwrap_or_else(|| "another file of settings replaces it".into());
    Err(CliError::refusal(format!("the entry of {id} would not count, and was not kept")).because(why))
}

/// The changes that the report shows.
struct Added<'a> {
    id: &'a AgentId,
    found: &'a Found,
    chosen: &'a Chosen,
    is_new: bool,
    entry: String,
    file: &'a SettingsFile,
}

fn report(here: &RepoContext, asked: &Add, choice: &Choice, it: &Added<'_>) -> Result<u8, CliError> {
    let told = if asked.dry_run { Ok(()) } else { tell(here, it) };
    let file = it.file.path();
    let next = match asked.into {
        _ if asked.dry_run => "the same without --dry-run".to_owned(),
        SettingsOf::User => format!("provost agent try {}", it.id),
        SettingsOf::Repo => format!("provost config allow {}", provost_config::pin::PROVOST),
    };
    if here.json {
        out::json(&json!({
            "agent": it.id, "program": it.found.real, "version": it.found.version, "tried": choice.form.tried.version(),
            "protocol": choice.is_acp().then_some("acp"), "why": choice.why, "asks": choice.mode.is_some() && asked.asks,
            "file": file, "written": !asked.dry_run, "entry": it.entry, "next": next,
            "secret": { "name": it.chosen.secret, "from": it.chosen.origin, "new": it.is_new,
                        "upstream": it.chosen.delivery.upstream, "header": it.chosen.delivery.header },
        }))?;
        return told.map(|()| DONE);
    }
    let version = it.found.version.as_deref().unwrap_or("of an unknown version");
    out::note(out::one_line(
        &format!(
            "program:    {} {version} ({}); {}",
            choice.started(),
            it.found.real.display(),
            choice.form.tried.in_words()
        ),
        400,
    ));
    out::note(out::one_line(&format!("spoken to:  {}", choice.in_words()), 400));
    if let Some((needed, node)) = &it.found.old_node {
        out::note(format!("note:       it asks for Node.js {needed} and would be started with {node}"));
    }
    out::note(out::one_line(
        &format!(
            "credential: {}, from {}; secret `{}`, added by the proxy for {}",
            it.chosen.access.title, it.chosen.origin, it.chosen.secret, it.chosen.delivery.upstream
        ),
        400,
    ));
    let what = if asked.dry_run { "would be added to" } else { "added to" };
    out::note(format!("{what} {}:", file.display()));
    out::text_as_is(&out::plain(&it.entry))?;
    out::note(format!("next: {next}"));
    told.map(|()| DONE)
}

/// Makes a running daemon read the settings again; a new secret is recorded in the journal, without its value.
fn tell(here: &RepoContext, it: &Added<'_>) -> Result<(), CliError> {
    let details =
        json!({ "agent": it.id, "delivery": provost_vault::Delivery::Proxy(it.chosen.delivery.clone()) });
    let (what, subject) = match it.is_new {
        true => ("secret.added", it.chosen.secret.as_str()),
        false => ("agent.added", it.id.as_str()),
    };
    told(here, what, subject, details)
}

fn told(here: &RepoContext, what: &str, subject: &str, details: Value) -> Result<(), CliError> {
    match wait_for(async { Ok(keys::tell(&here.client(), what, subject, details).await) })? {
        ReloadOutcome::Daemon | ReloadOutcome::Nobody => Ok(()),
        ReloadOutcome::Failed(err) => {
            Err(CliError::of("the files are changed, but the running daemon does not know")
                .because(err)
                .next("provost daemon reload"))
        }
    }
}

fn remove(here: &RepoContext, id: &AgentId) -> Result<u8, CliError> {
    for into in [SettingsOf::User, SettingsOf::Repo] {
        let path = settings(&here.places, into);
        if into == SettingsOf::Repo && !path.is_file() {
            continue;
        }
        let mut file = SettingsFile::read(&path)?;
        let Some(text) = file.without(id.as_str())? else { continue };
        let secrets = file.secrets(id.as_str());
        file.replace(&text)?;
        if here.json {
            out::json(&json!({ "agent": id, "file": path, "what": "agent.removed" }))?;
        } else {
            out::note(format!("{id} is removed from {}", path.display()));
            for secret in secrets {
                let secret = out::one_line(&secret, 80);
                out::note(format!(
                    "its secret `{secret}` stays in the vault: provost secret remove {secret}"
                ));
            }
        }
        told(here, "agent.removed", id.as_str(), json!({}))?;
        return Ok(DONE);
    }
    let file = SettingsFile::read(&settings(&here.places, SettingsOf::User))?;
    let ids = file.ids();
    let near = nearest(id.as_str(), ids.iter().map(String::as_str));
    let error = CliError::of(format!("no file of settings has an agent {id}")).with_code(REFUSED);
    let named = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
    Err(error.because(format!("{} has {named}", file.path().display())).next(match near {
        Some(near) => format!("did you mean {near}?"),
        None => "provost agent list".into(),
    }))
}
