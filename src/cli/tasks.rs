//! Tasks: lists, one in full, ending one, and reporting on one.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::complaint::{DONE, USAGE};
use super::follow::Follow;
use super::here::wait_for;
use super::{Complaint, Here, out};
use crate::base::{AgentId, TaskId};
use crate::client::wire;

/// `provost tasks`.
#[derive(Args, Debug)]
pub(super) struct Tasks {
    /// Which ones
    #[arg(long, value_enum, default_value_t = Filter::All)]
    filter: Filter,
    /// Finished ones at most
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

/// Which tasks.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Filter {
    /// Every one
    All,
    /// Those that are not finished
    Active,
    /// Those that succeeded or were cancelled
    Completed,
    /// Those that failed
    Failed,
}

/// `provost task`.
#[derive(Args, Debug)]
pub(super) struct Task {
    /// Its id
    id: TaskId,
    /// Watch it to its end, and end with the worker's exit code
    #[arg(long)]
    wait: bool,
    /// With --wait: show output to the letter, escape sequences included
    #[arg(long, requires = "wait")]
    raw: bool,
}

/// `provost cancel`.
#[derive(Args, Debug)]
pub(super) struct Cancel {
    /// Its id
    id: TaskId,
    /// Why
    #[arg(long)]
    reason: Option<String>,
}

/// `provost notify`.
#[derive(Args, Debug)]
pub(super) struct Notify {
    /// The task's id
    id: TaskId,
    /// Where it stands
    #[arg(long, value_enum)]
    status: Status,
    /// What to tell people
    #[arg(long, default_value = "")]
    summary: String,
    /// Results, as JSON
    #[arg(long, value_name = "JSON")]
    details: Option<String>,
    /// Logs and the like, as JSON
    #[arg(long, value_name = "JSON")]
    evidence: Option<String>,
    /// Speak as this agent instead of as yourself
    #[arg(long = "as", value_name = "AGENT")]
    speak_as: Option<AgentId>,
}

/// DevIt's words for where a task stands.
#[derive(ValueEnum, Clone, Copy, Debug)]
#[value(rename_all = "snake_case")]
enum Status {
    /// Not begun
    Pending,
    /// Under way
    InProgress,
    /// Done
    Completed,
    /// Not done
    Failed,
    /// Not wanted any more
    Cancelled,
    /// The notification was seen
    Ack,
}

pub(super) fn list(here: &Here, asked: &Tasks) -> Result<u8, Complaint> {
    let filter = match asked.filter {
        Filter::All => "all",
        Filter::Active => "active",
        Filter::Completed => "completed",
        Filter::Failed => "failed",
    };
    let query = wire::TasksQuery { filter: Some(filter.into()), limit: Some(asked.limit) };
    let tasks = wait_for(async { Ok(here.daemon(None).await?.tasks(&query).await?) })?;
    if here.json {
        out::json(&tasks)?;
        return Ok(DONE);
    }
    if tasks.active.is_empty() && tasks.finished.is_empty() {
        out::note("no tasks; have something done: provost delegate \"make test\" --wait");
        return Ok(DONE);
    }
    if tasks.truncated {
        out::note(format!("only the newest {} finished ones; more: --limit", tasks.finished.len()));
    }
    out::text_as_is(&table(tasks.finished.iter().rev().chain(&tasks.active)))?;
    Ok(DONE)
}

/// Tasks as aligned rows; the goal fills what the line has left.
pub(super) fn table<'a>(tasks: impl Iterator<Item = &'a wire::Task>) -> String {
    let mut rows = vec![["TASK", "STATE", "WORKER", "BY", "CREATED", "GOAL"].map(String::from)];
    let tasks: Vec<&wire::Task> = tasks.collect();
    for task in &tasks {
        rows.push([
            out::one_line(&task.id, 40),
            state(task),
            out::one_line(&task.worker, 20),
            out::one_line(&task.asked_by, 20),
            short_time(&task.created_at),
            String::new(),
        ]);
    }
    let used: usize =
        (0..5).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + 2).sum();
    for (row, task) in rows.iter_mut().skip(1).zip(tasks) {
        row[5] = out::one_line(&task.goal, out::width().saturating_sub(used).max(20));
    }
    out::table(&rows)
}

fn state(task: &wire::Task) -> String {
    match (task.state.as_str(), task.approval, task.exit_code) {
        ("awaiting", Some(approval), _) => format!("awaiting {approval}"),
        ("failed", _, Some(code)) => format!("failed ({code})"),
        (state, ..) => out::one_line(state, 20),
    }
}

/// A time of the wire, to the second.
pub(super) fn short_time(rfc3339: &str) -> String {
    let plain = out::one_line(rfc3339, 40);
    let local = chrono::DateTime::parse_from_rfc3339(&plain).map(|at| at.with_timezone(&chrono::Local));
    local.map_or(plain, |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

pub(super) fn show(here: &Here, asked: &Task) -> Result<u8, Complaint> {
    let id = asked.id.to_string();
    wait_for(async {
        let client = here.daemon(None).await?;
        if asked.wait {
            return Follow { client, raw: asked.raw, json: here.json }.to_the_end(&id).await;
        }
        let query = wire::TaskQuery { id, ..wire::TaskQuery::default() };
        let task = client.task(&query).await?;
        if here.json {
            out::json(&task)?
        } else {
            out::text_as_is(&in_full(&task))?
        }
        Ok(DONE)
    })
}

/// Facts first, then what was said, indented so that it cannot pass for a fact.
fn in_full(task: &wire::Task) -> String {
    let mut facts = vec![("task", task.id.clone()), ("state", state(task)), ("worker", task.worker.clone())];
    facts.extend([("asked by", task.asked_by.clone()), ("rule", task.rule.clone())]);
    facts.extend(task.working_dir.clone().map(|dir| ("directory", dir)));
    facts.extend(task.model_used.clone().or_else(|| task.model.clone()).map(|model| ("model", model)));
    facts.extend([("created", short_time(&task.created_at)), ("updated", short_time(&task.updated_at))]);
    facts.push(("time limit", format!("{} s", task.timeout_s)));
    facts.extend(task.exit_code.map(|code| ("exit code", code.to_string())));
    facts.extend(task.failure.as_ref().map(|failure| ("failure", failure_in_words(failure))));
    let rows: Vec<_> =
        facts.iter().map(|(name, fact)| [(*name).to_owned(), out::one_line(fact, 400)]).collect();
    let mut text = out::table(&rows);
    text.push_str(&fenced("goal", &task.goal));
    for note in &task.notes {
        let head = format!("{} {}: {}", short_time(&note.at), note.from, note.status);
        text.push_str(&fenced(&out::one_line(&head, 400), &note.summary));
    }
    text
}

/// A failure is a word, or a word with details: `worker_failed: exit code 3`.
pub(super) fn failure_in_words(failure: &Value) -> String {
    let in_short = |details: &Value| match details {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let texts = members.values().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let text = match failure.as_object().and_then(|members| members.iter().next()) {
        Some((word, details)) => format!("{word}: {}", in_short(details)),
        None => in_short(failure),
    };
    out::one_line(&text, 400)
}

/// Words from elsewhere, behind a bar.
pub(super) fn fenced(head: &str, words: &str) -> String {
    let lines: String = out::plain(words).lines().map(|line| format!("  | {line}\n")).collect();
    format!("{head}\n{lines}")
}

pub(super) fn cancel(here: &Here, asked: Cancel) -> Result<u8, Complaint> {
    let body = wire::Cancel { task: asked.id.to_string(), reason: asked.reason };
    let done = wait_for(async { Ok(here.daemon(None).await?.cancel(&body).await?) })?;
    said(here, &done)
}

pub(super) fn notify(here: &Here, asked: Notify) -> Result<u8, Complaint> {
    let status = match asked.status {
        Status::Pending => "pending",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
        Status::Ack => "ack",
    };
    let body = wire::Report {
        task: asked.id.to_string(),
        status: status.into(),
        summary: Some(asked.summary).filter(|summary| !summary.is_empty()),
        details: json("--details", asked.details.as_deref())?,
        evidence: json("--evidence", asked.evidence.as_deref())?,
    };
    let done = wait_for(async { Ok(here.daemon(asked.speak_as).await?.report(&body).await?) })?;
    said(here, &done)
}

fn said(here: &Here, done: &wire::TaskState) -> Result<u8, Complaint> {
    if here.json {
        out::json(done)?;
    } else {
        out::line(format!("task {}: {}", out::one_line(&done.task, 400), out::one_line(&done.state, 40)))?;
    }
    Ok(DONE)
}

fn json(flag: &str, text: Option<&str>) -> Result<Option<Value>, Complaint> {
    text.map(serde_json::from_str).transpose().map_err(|e| {
        Complaint::of(format!("{flag} is not JSON"))
            .because(e)
            .next(format!("provost notify ID --status completed {flag} '{{\"tests\": 12}}'"))
            .with_code(USAGE)
    })
}
