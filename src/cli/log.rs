//! `provost journal show`: the events, from the daemon's feed, or from the store if no daemon runs.

mod job;

use chrono::DateTime;
use clap::Args;
use serde_json::{Map, Value};

use super::cli_error::{DONE, INTERRUPTED};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, journal, out, tasks};
use provost_api::wire;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_base::{EventSeq, Scope, Scopes};
use provost_client::Client;

/// `provost journal show`.
#[derive(Args, Debug)]
pub(super) struct Log {
    /// Show the output of this job's workers instead: `job_...`, as editors' clients show it
    #[arg(conflicts_with_all = ["after", "limit"])]
    job: Option<String>,
    /// Stay and show new events as well; end with Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Begin after the event of this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Show at most this many events: the newest, by default 50; with --after the next ones, by default all
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
}

/// The number of newest events that are shown where the person gives no number.
const NEWEST: u64 = 50;

pub(super) fn log(here: &RepoContext, asked: &Log) -> Result<u8, CliError> {
    if let Some(job) = &asked.job {
        return job::show(here, job, asked.follow);
    }
    wait_for(async {
        let client = here.daemon(None).await?;
        let about = match client.about().await.map_err(CliError::from) {
            Ok(about) => about,
            Err(error) if error.is_not_running() && !asked.follow => return from_store(here, asked),
            Err(error) => return Err(error),
        };
        let newest = about.journal_seq.saturating_sub(asked.limit.unwrap_or(NEWEST));
        // Pruned events have no line, so the shown lines are counted where the person asks for a number of next events.
        let mut left = asked.limit.filter(|_| asked.after.is_some()).unwrap_or(u64::MAX);
        let from = asked.after.unwrap_or(newest);
        let from = show_until(here, &client, from, about.journal_seq, &mut left).await?;
        if !asked.follow || left == 0 {
            return Ok(DONE);
        }
        tokio::select! {
            ended = follow(here, &client, from, left) => ended,
            _interrupted = tokio::signal::ctrl_c() => Ok(INTERRUPTED),
        }
    })
}

/// Shows the events after `from` up to `last`, at most `left`; returns where it stopped.
async fn show_until(
    here: &RepoContext,
    client: &Client,
    mut from: u64,
    last: u64,
    left: &mut u64,
) -> Result<u64, CliError> {
    while from < last && *left > 0 {
        let limit = u16::try_from(*left).unwrap_or(EVENT_PAGE_MAX).min(EVENT_PAGE_MAX);
        let query = wire::EventsQuery { after: Some(from), limit: Some(limit), wait_ms: None };
        let page = client.events(&query).await?;
        page.events.iter().try_for_each(|event| show(here, event))?;
        *left = left.saturating_sub(page.events.len() as u64);
        // A page of pruned events alone has no line.
        if page.next <= from {
            break;
        }
        from = page.next;
    }
    Ok(from)
}

async fn follow(here: &RepoContext, client: &Client, from: u64, mut left: u64) -> Result<u8, CliError> {
    let mut events = client.event_stream(from).await?;
    while left > 0 {
        show(here, &events.next().await?)?;
        left -= 1;
    }
    Ok(DONE)
}

/// Reads the files, if no daemon runs.
fn from_store(here: &RepoContext, asked: &Log) -> Result<u8, CliError> {
    let mut reader = journal::reader(here)?;
    let mut kept = std::collections::VecDeque::new();
    let mut after = EventSeq(asked.after.unwrap_or(0));
    let mut left = asked.limit.filter(|_| asked.after.is_some()).unwrap_or(u64::MAX);
    loop {
        let page = reader.events_after(after, EVENT_PAGE_MAX)?;
        let Some(newest) = page.last() else { break };
        after = newest.seq;
        for event in page {
            let body: Option<Value> = event.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
            let gone = serde_json::json!({
                "seq": event.seq, "at": event.at, "actor": event.actor, "kind": &*event.kind
            });
            let mut event = body.unwrap_or(gone);
            event["at"] = in_words(&event["at"]);
            if asked.after.is_some() {
                if left == 0 {
                    return Ok(DONE);
                }
                left -= 1;
                show(here, &event)?;
                continue;
            }
            kept.push_back(event);
            if kept.len() as u64 > asked.limit.unwrap_or(NEWEST) {
                kept.pop_front();
            }
        }
    }
    kept.iter().try_for_each(|event| show(here, event))?;
    Ok(DONE)
}

/// Returns the time of a stored event, a number of milliseconds, as text.
fn in_words(at: &Value) -> Value {
    let moment = at.as_i64().and_then(DateTime::from_timestamp_millis);
    moment.map_or(at.clone(), |at| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true).into())
}

/// Shows one event as a line.
pub(super) fn show(here: &RepoContext, event: &Value) -> Result<(), CliError> {
    if here.json {
        return out::json_line(event);
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (kind, details) = match &event["kind"] {
        Value::Object(kind) => match kind.iter().next() {
            Some((name, Value::Object(details))) => (name.clone(), in_short(details)),
            Some((name, other)) => (name.clone(), text(other)),
            None => ("unknown".into(), String::new()),
        },
        kind => (text(kind), String::new()),
    };
    let line = format!(
        "{} {} {} {} {details}",
        text(&event["seq"]),
        tasks::short_time(&text(&event["at"])),
        text(&event["actor"]),
        kind
    );
    out::line(out::one_line(&line, out::width()))
}

/// Writes the members that have a value as `name=value`; digests by their beginning, moments as times, scopes by their names.
fn in_short(details: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Null => return None,
            Value::Number(_) if is_moment(name) => match in_words(value) {
                Value::String(at) => tasks::short_time(&at),
                other => other.to_string(),
            },
            Value::Number(_) if name == "scopes" => scopes(value),
            Value::String(text) if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                text.get(..12).unwrap_or(text).to_owned()
            }
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(format!("{name}={value}"))
    };
    details.iter().filter_map(pair).collect::<Vec<_>>().join(" ")
}

/// Checks whether a number of this name is a moment, in milliseconds since 1970.
fn is_moment(name: &str) -> bool {
    matches!(name, "until" | "since" | "at") || name.ends_with("_at")
}

/// Returns the names of scopes, which the journal has as one number.
fn scopes(bits: &Value) -> String {
    match serde_json::from_value::<Scopes>(bits.clone()) {
        Ok(scopes) => scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(","),
        Err(_) => bits.to_string(),
    }
}
