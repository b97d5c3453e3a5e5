//! `provost watch`: the present locks, intents and contracts, and then their changes.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::cli_error::{DONE, INTERRUPTED};
use super::repo_context::wait_for;
use super::{CliError, RepoContext, contracts, intents, locks, log, out};
use provost_api::wire;
use provost_base::limits::EVENT_PAGE_MAX;
use provost_client::Client;

/// The time that one request waits for new events, in milliseconds.
const WAIT_MS: u64 = 20_000;

/// `provost timeline`.
#[derive(Subcommand, Debug)]
pub(super) enum Timeline {
    /// Watch locks, intents and contracts as they come and go; end with Ctrl-C
    #[command(
        after_help = "Examples:\n  provost timeline watch\n  provost timeline watch --json | jq --unbuffered .kind"
    )]
    Watch(Watch),
}

/// `provost timeline watch`.
#[derive(Args, Debug)]
pub(super) struct Watch {
    /// Leave out the locks, intents and contracts that exist already
    #[arg(long)]
    only_new: bool,
    /// Begin after this event, by its number in `provost log`
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
}

pub(super) fn timeline(here: &RepoContext, asked: &Timeline) -> Result<u8, CliError> {
    let Timeline::Watch(asked) = asked;
    wait_for(async {
        let client = here.daemon(None).await?;
        // The position in the log is read first: a change in the meantime is then told twice, and never missed.
        let from = match asked.after {
            Some(after) => after,
            None => client.about().await?.journal_seq,
        };
        if !asked.only_new {
            as_it_stands(here, &client, from).await?;
        }
        tokio::select! {
            ended = follow(here, &client, from) => ended,
            _interrupted = tokio::signal::ctrl_c() => Ok(INTERRUPTED),
        }
    })
}

async fn as_it_stands(here: &RepoContext, client: &Client, from: u64) -> Result<u8, CliError> {
    let all = wire::Whose::default();
    let (held, intended) = (client.locks(&all).await?, client.intents(&all).await?);
    let mut agreed = client.contracts(&wire::ContractsQuery::default()).await?;
    agreed.retain(|it| matches!(it.status.as_str(), "proposed" | "accepted"));
    if here.json {
        let state =
            json!({ "locks": held.locks, "waiting": held.waiting, "intents": intended, "contracts": agreed });
        out::json_line(&json!({ "seq": from, "state": state }))?;
        return Ok(DONE);
    }
    let tables = [
        (held.locks.is_empty(), locks::table(&held.locks)),
        (intended.is_empty(), intents::table(&intended)),
        (agreed.is_empty(), contracts::table(&agreed)),
    ];
    for (_, table) in tables.iter().filter(|(is_empty, _)| !is_empty) {
        out::text_as_is(&format!("{table}\n"))?;
    }
    out::note("watching; end with Ctrl-C");
    Ok(DONE)
}

async fn follow(here: &RepoContext, client: &Client, mut from: u64) -> Result<u8, CliError> {
    loop {
        let query =
            wire::EventsQuery { after: Some(from), limit: Some(EVENT_PAGE_MAX), wait_ms: Some(WAIT_MS) };
        let page = client.events(&query).await?;
        page.events.iter().filter(|event| is_about_us(event)).try_for_each(|event| log::show(here, event))?;
        from = page.next;
    }
}

fn is_about_us(event: &Value) -> bool {
    let kind = event["kind"].as_object().and_then(|it| it.keys().next());
    kind.is_some_and(|kind| ["lock_", "intent_", "contract_"].iter().any(|start| kind.starts_with(start)))
}
