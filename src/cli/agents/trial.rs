//! `provost agent try`: one run in the jail, on a question that changes nothing.
//!
//! It first looks for problems that show without a run: in the entry, its program, its secret. Then the daemon runs the agent
//! like any task, under the same rules, and each problem is reported in words with the next command. Only an answer is a success.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::failures::next_of;
use super::file::SettingsFile;
use super::find;
use crate::args::duration;
use crate::cli_error::{DONE, FAILED, INTERRUPTED};
use crate::follow::waiting_for;
use crate::repo_context::wait_for;
use crate::{CliError, RepoContext, out, tasks, up};
use provost_api::wire;
use provost_base::{AgentId, Ttl, nearest, task_command};
use provost_client::Client;
use provost_config::{AgentConfig, Config, Worker};
use provost_vault::{Delivery, LoginError, VaultError};

/// The word that the question asks for. No error text has it.
const WORD: &str = "PROVOST-READY";

/// The question.
const QUESTION: &str = "This is a test of the connection. Do not use any tool and do not change any file. \
                        Answer with the single word PROVOST-READY.";

/// The time limit of the run.
const TIME: Ttl = Ttl::minutes(3);

/// How long one request to the daemon waits, in milliseconds.
const WAIT_MS: u64 = 5_000;

/// The most pages of the journal that are searched for the hosts that a run has reached.
const PAGES_MAX: usize = 64;

/// The longest text of an agent that is shown, in characters.
const SHOWN_CHARS: usize = 600;

/// `provost agent try`.
#[derive(Args, Debug)]
pub(crate) struct Try {
    /// The agent's name
    name: AgentId,
    /// Give up after this time
    #[arg(long, value_parser = duration, value_name = "3m")]
    timeout: Option<Ttl>,
    /// Fail if no daemon runs, instead of starting one
    #[arg(long)]
    no_start: bool,
}

/// A thing that is missing, and the next command.
#[derive(Clone, Debug, Serialize)]
struct Missing {
    what: String,
    next: String,
}

/// The findings.
#[derive(Debug, Default, Serialize)]
struct Tried {
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<wire::Used>,
    /// Hosts to which the agent's requests were refused; they may not matter.
    refused_hosts: Vec<String>,
    missing: Vec<Missing>,
}

pub(super) fn run(here: &RepoContext, asked: &Try) -> Result<u8, CliError> {
    let config = here.config(None)?.config;
    let (agent, worker) = entry(here, &config, &asked.name)?;
    let mut tried = Tried { agent: asked.name.to_string(), ..Tried::default() };
    tried.missing = before(here, agent, worker);
    if tried.missing.is_empty() {
        up::start_if_absent(here, !asked.no_start)?;
        let limit = asked.timeout.unwrap_or(TIME);
        let interrupted = wait_for(async {
            let client = here.daemon(None).await?;
            // The entry may have been added while this daemon ran.
            if !client.about().await?.workers.iter().any(|it| it.id == asked.name.as_str()) {
                client.reload().await?;
            }
            tokio::select! {
                done = ask(here, &client, asked, limit, &mut tried) => done.map(|()| false),
                _interrupted = tokio::signal::ctrl_c() => Ok(true),
            }
        })?;
        if !tried.ok {
            tried.missing.extend(old_node(agent));
        }
        if interrupted {
            let stop = task_command("task cancel", tried.task.as_deref().unwrap_or("ID"), "");
            out::note(format!("\nstop it: {stop}"));
            return Ok(INTERRUPTED);
        }
    }
    report(here, &tried)
}

/// Returns the entry of an agent, if it can be asked at all.
fn entry<'a>(
    here: &RepoContext,
    config: &'a Config,
    name: &AgentId,
) -> Result<(&'a AgentConfig, &'a Worker), CliError> {
    if let Some(refused) = config.refused_workers.get(name.as_str()) {
        return Err(CliError::of(format!("the entry of {name} cannot be used"))
            .because(format!("{}: {}", refused.file, refused.reason))
            .next("correct the entry, or: provost agent remove NAME"));
    }
    let agent = config.agents.iter().find(|it| it.id == *name);
    let found = agent.and_then(|agent| Some((agent, config.workers.get(name)?)));
    found.ok_or_else(|| {
        let file = SettingsFile::read(&here.places.root.join(provost_config::pin::PROVOST));
        if file.is_ok_and(|file| file.ids().iter().any(|it| it == name.as_str())) {
            return CliError::of(format!("no agent {name} is configured"))
                .because(format!("its entry in {} is not allowed yet", provost_config::pin::PROVOST))
                .next(format!("provost config allow {}", provost_config::pin::PROVOST));
        }
        let near = nearest(name.as_str(), config.agents.iter().map(|it| it.id.as_str()));
        CliError::of(format!("no agent {name} is configured")).next(match near {
            Some(near) => format!("did you mean {near}?"),
            None => "provost agent add claude|codex|gemini|opencode|copilot|qwen|goose|cursor".into(),
        })
    })
}

/// Returns the problems that show without a run.
fn before(here: &RepoContext, agent: &AgentConfig, worker: &Worker) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut lacks = |what: String, next: String| missing.push(Missing { what, next });
    if !agent.enabled {
        lacks(
            format!("{} is switched off: `enabled = false`", agent.id),
            "set `enabled = true` in its entry".into(),
        );
    }
    let again = format!("provost agent remove {0}, then provost agent add … --name {0}", agent.id);
    let programs = agent.command.iter().filter(|word| Path::new(word).is_absolute());
    for program in programs.filter(|it| !Path::new(it).exists()) {
        lacks(format!("the program {} is not there any more", out::one_line(program, 300)), again.clone());
    }
    for folder in worker.read_only.iter().filter(|it| !it.exists()) {
        lacks(format!("{}, which the program needs, is not there any more", folder.display()), again.clone());
    }
    let Ok(vault) = here.vault() else { return missing };
    for name in &worker.secrets {
        match vault.get(name) {
            Ok(credential) => {
                let Delivery::Proxy(by) = &credential.delivery else { continue };
                let to = by.upstream.authority().to_string();
                if !worker.hosts.contains(&to) {
                    missing.push(Missing {
                        what: format!("the secret `{name}` is for {to}, which the entry does not name"),
                        next: format!("add \"{to}\" to `hosts` in the entry of {}", agent.id),
                    });
                }
            }
            // The run renews the log-in.
            Err(VaultError::Login { why: LoginError::Expired { .. }, .. })
                if vault.look(name).is_ok_and(|it| it.login.is_some_and(|it| it.renewal.is_some())) => {}
            Err(err) => missing.push(Missing {
                what: err.to_string(),
                next: format!("then: provost agent try {}", agent.id),
            }),
        }
    }
    missing
}

/// Reports a Node.js that is older than the program requires. Some programs work anyway, so this is reported only after a failure.
fn old_node(agent: &AgentConfig) -> Option<Missing> {
    let (needed, node) = find::old_node_of(&agent.command)?;
    Some(Missing {
        what: format!("it asks for Node.js {needed} or newer, and its entry starts it with {node}"),
        next: format!(
            "install Node.js {needed}, then: provost agent remove {0}, and provost agent add … --name {0}",
            agent.id
        ),
    })
}

/// Asks the agent, and evaluates the end of the run.
async fn ask(
    here: &RepoContext,
    client: &Client,
    asked: &Try,
    limit: Ttl,
    tried: &mut Tried,
) -> Result<(), CliError> {
    let request = wire::Delegate {
        goal: QUESTION.into(),
        worker: asked.name.to_string(),
        timeout_s: Some(limit.as_seconds().max(1)),
        ..wire::Delegate::default()
    };
    let from = journal_end(client).await?;
    let done = client.delegate(&request).await?;
    if done.state == "denied" {
        let (rule, reason) = (done.rule.unwrap_or_default(), done.reason.unwrap_or_default());
        tried.missing.push(Missing {
            what: out::one_line(&format!("the rule {rule} denies it: {reason}"), SHOWN_CHARS),
            next: format!("provost policy explain --worker {}", asked.name),
        });
        return Ok(());
    }
    tried.task = Some(done.task.clone());
    if let (Some(approval), false) = (done.approval, here.json) {
        out::note(waiting_for(client, approval).await);
    }
    let task = end_of(client, &asked.name, &done.task).await?;
    tried.usage = task.usage.clone();
    look(&asked.name, &task, tried);
    tried.refused_hosts = refused_hosts(client, &task.id, from).await?;
    Ok(())
}

/// Waits for the end of the run. The daemon holds each request until the task has changed.
async fn end_of(client: &Client, name: &AgentId, id: &str) -> Result<wire::Task, CliError> {
    let mut query = wire::TaskQuery { id: id.to_owned(), seen: None, wait_ms: Some(0) };
    let mut progress =
        out::Progress::begin(format!("waiting for an answer of {name} (task {id})")).told_once();
    loop {
        let task = progress.during(client.task(&query)).await?;
        if matches!(task.state.as_str(), "completed" | "failed" | "cancelled") {
            return Ok(task);
        }
        query.seen = Some(task.updated_at);
        query.wait_ms = Some(WAIT_MS);
    }
}

/// Evaluates the end of the run: an answer, or the things that are missing.
fn look(name: &AgentId, task: &wire::Task, tried: &mut Tried) {
    let summary = task.notes.last().map(|it| it.summary.clone()).unwrap_or_default();
    if task.state == "completed" {
        match summary.trim() {
            "" => tried.missing.push(Missing {
                what: "the program has ended well and answered nothing".into(),
                next: task_command("task show", &task.id, ""),
            }),
            _ if !is_understood(task) => tried.missing.push(Missing {
                what: format!(
                    "the program wrote no message that `stream` in its entry means; it wrote: {}",
                    out::one_line(summary.trim(), SHOWN_CHARS)
                ),
                next: next_of(name, &task.id, &summary, &stderr_of(task)),
            }),
            // A program that repeats its question has not answered it.
            text if text.replace(QUESTION, "").contains(WORD) => {
                tried.ok = true;
                tried.answer = Some(out::one_line(text, SHOWN_CHARS));
            }
            text => tried.missing.push(Missing {
                what: format!("answered something else than {WORD}: {}", out::one_line(text, SHOWN_CHARS)),
                next: next_of(name, &task.id, text, &stderr_of(task)),
            }),
        }
        return;
    }
    let failure = tasks::failure_in_words(task).unwrap_or_default();
    let said = stderr_of(task);
    let what = if failure.is_empty() { summary } else { failure };
    let next = next_of(name, &task.id, &what, &said);
    tried.missing.push(Missing { what: out::one_line(&what, SHOWN_CHARS), next });
    if let Some(last) = said.lines().rev().find(|it| !it.trim().is_empty()) {
        let next = task_command("task show", &task.id, "");
        tried
            .missing
            .push(Missing { what: format!("its last words: {}", out::one_line(last, SHOWN_CHARS)), next });
    }
}

/// Checks whether the daemon has understood a message, if the agent writes messages.
fn is_understood(task: &wire::Task) -> bool {
    let metadata = task.notes.last().and_then(|it| it.metadata.as_ref());
    metadata.and_then(|it| it.get("messages_understood")).and_then(Value::as_bool) != Some(false)
}

fn stderr_of(task: &wire::Task) -> String {
    let details = task.notes.last().and_then(|it| it.details.as_ref());
    let text = details.and_then(|it| it.get("stderr")).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Returns the cursor of the present end of the journal.
async fn journal_end(client: &Client) -> Result<u64, CliError> {
    let query = wire::EventsQuery { after: None, limit: Some(1), wait_ms: Some(0) };
    Ok(client.events(&query).await?.next)
}

/// Returns the hosts that the proxy has refused to the run, from the record in the journal that precedes the run's end.
async fn refused_hosts(client: &Client, task: &str, from: u64) -> Result<Vec<String>, CliError> {
    let mut query = wire::EventsQuery { after: Some(from), limit: None, wait_ms: Some(0) };
    for _ in 0..PAGES_MAX {
        let page = client.events(&query).await?;
        for event in &page.events {
            let record = &event["kind"]["recorded"];
            if record["what"] == "network.used" && record["subject"] == task {
                let names = record["details"]["refused_names"].as_array();
                let names = names.into_iter().flatten().filter_map(Value::as_str);
                return Ok(names.map(|it| out::one_line(it, 200)).collect());
            }
        }
        if page.events.is_empty() {
            break;
        }
        query.after = Some(page.next);
    }
    Ok(Vec::new())
}

fn report(here: &RepoContext, tried: &Tried) -> Result<u8, CliError> {
    if here.json {
        out::json(tried)?;
    } else {
        if let Some(answer) = &tried.answer {
            out::line(format!("{} answers: {answer}", tried.agent))?;
        }
        if let Some(used) = tried.usage.as_ref().and_then(wire::Used::in_words) {
            out::note(format!("used: {}", out::one_line(&used, SHOWN_CHARS)));
        }
        for host in &tried.refused_hosts {
            out::note(format!(
                "refused: {} (add it to `hosts` if the agent needs it)",
                out::one_line(host, 200)
            ));
        }
        for it in &tried.missing {
            out::note(format!("missing: {}\n  next: {}", it.what, it.next));
        }
    }
    if tried.ok { Ok(DONE) } else { Err(CliError::silent(FAILED)) }
}
