//! Intents: changes that agents announce.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::args::duration;
use super::complaint::{DONE, USAGE};
use super::here::wait_for;
use super::speaker::Speaker;
use super::tasks::short_time;
use super::{Complaint, Here, locks, out};
use provost_api::wire;
use provost_base::{AgentId, Ttl};
use provost_client::Client;

/// The beginning of an id must be this long to stand for it.
const PREFIX_LEN_MIN: usize = 4;

/// `provost intend`.
#[derive(Args, Debug)]
pub(super) struct Intend {
    /// A description of the change
    description: String,
    /// A file of the change; may be repeated
    #[arg(long = "file", value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A symbol of the files; may be repeated. By default the whole files
    #[arg(long = "symbol", value_name = "SYMBOL")]
    symbols: Vec<String>,
    /// The intent lapses by itself after this time
    #[arg(long, value_parser = duration, value_name = "2h")]
    ttl: Option<Ttl>,
    #[command(flatten)]
    speaker: Speaker,
}

/// `provost intents`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// Only the speaker's own
    #[arg(long)]
    mine: bool,
    /// Only this agent's
    #[arg(long, conflicts_with = "mine")]
    agent: Option<AgentId>,
    /// Only those for this file
    #[arg(long, value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Only intents with this status; by default the live ones
    #[arg(long, value_enum)]
    status: Option<Status>,
    #[command(flatten)]
    speaker: Speaker,
}

/// The status of an intent.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Status {
    /// Announced
    Declared,
    /// Under way
    Active,
    /// Done
    Resolved,
    /// Given up
    Abandoned,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Declared => "declared",
            Status::Active => "active",
            Status::Resolved => "resolved",
            Status::Abandoned => "abandoned",
        }
    }
}

/// `provost intent`.
#[derive(Args, Debug)]
pub(super) struct Update {
    /// Its id, or enough of its beginning
    id: String,
    /// The new status
    #[arg(value_enum)]
    to: To,
    #[command(flatten)]
    speaker: Speaker,
}

/// The new status of an intent.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum To {
    /// It is under way
    Active,
    /// It is done
    Resolved,
    /// It is given up
    Abandoned,
}

pub(super) fn intend(here: &Here, asked: Intend) -> Result<u8, Complaint> {
    let request = wire::Declare {
        description: asked.description,
        files: asked.files.iter().map(|file| here.path(file)).collect::<Result<_, _>>()?,
        symbols: asked.symbols,
        ttl_ms: asked.ttl.map(|ttl| u64::from(ttl.as_millis())),
        worktree: here.linked_worktree(),
        grants: Vec::new(),
    };
    Speaker::start(here)?;
    let declared = wait_for(async { Ok(asked.speaker.daemon(here).await?.declare(&request).await?) })?;
    if here.json {
        return out::json(&declared).map(|()| DONE);
    }
    out::line(out::one_line(&format!("intent {} declared", declared.intent.id), 400))?;
    locks::told("conflict", &declared.conflicts, declared.more);
    Ok(DONE)
}

pub(super) fn list(here: &Here, asked: List) -> Result<u8, Complaint> {
    let query = wire::Whose {
        mine: asked.mine,
        agent: asked.agent.map(|it| it.to_string()),
        file: asked.file.map(|it| here.path(&it)).transpose()?,
        status: asked.status.map(|it| it.word().into()),
    };
    let intents = wait_for(async { Ok(asked.speaker.daemon(here).await?.intents(&query).await?) })?;
    if here.json {
        return out::json(&intents).map(|()| DONE);
    }
    match intents.is_empty() {
        true => out::note("no intents"),
        false => out::text_as_is(&table(&intents))?,
    }
    Ok(DONE)
}

/// Intents as rows.
pub(super) fn table(intents: &[wire::Intent]) -> String {
    let mut rows = vec![["INTENT", "STATUS", "AGENT", "UNTIL", "WHERE", "WHAT"].map(String::from)];
    rows.extend(intents.iter().map(|it| {
        let files: Vec<&str> = it.files.iter().map(|file| file.path.as_str()).collect();
        let place = match it.symbols.is_empty() {
            true => files.join(" "),
            false => format!("{}: {}", files.join(" "), it.symbols.join(" ")),
        };
        let agent = it.name.as_ref().map_or(it.agent.clone(), |name| format!("{} ({name})", it.agent));
        [
            out::one_line(&it.id, 40),
            out::one_line(&it.status, 12),
            out::one_line(&agent, 60),
            short_time(&it.expires_at),
            out::one_line(&place, 80),
            out::one_line(&it.description, 80),
        ]
    }));
    out::table(&rows)
}

pub(super) fn update(here: &Here, asked: Update) -> Result<u8, Complaint> {
    let to = match asked.to {
        To::Active => "active",
        To::Resolved => "resolved",
        To::Abandoned => "abandoned",
    };
    let intent = wait_for(async {
        let client = asked.speaker.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.update_intent(&wire::UpdateIntent { id, to: to.into() }).await?)
    })?;
    if here.json {
        return out::json(&intent).map(|()| DONE);
    }
    out::line(out::one_line(&format!("intent {}: {}", intent.id, intent.status), 400)).map(|()| DONE)
}

/// The named intent: by its id, or by the beginning of a live one's id.
async fn meant(client: &Client, id: &str) -> Result<String, Complaint> {
    let live = client.intents(&wire::Whose::default()).await?;
    only(id, live.into_iter().map(|it| it.id).collect(), "provost intents")
}

/// The one id with this beginning; a text that begins no id is passed on unchanged.
pub(super) fn only(id: &str, mut all: Vec<String>, list: &str) -> Result<String, Complaint> {
    if id.len() < PREFIX_LEN_MIN || all.iter().any(|it| it == id) {
        return Ok(id.to_owned());
    }
    all.retain(|it| it.starts_with(id));
    match all.len() {
        0 => Ok(id.to_owned()),
        1 => Ok(all.remove(0)),
        many => Err(Complaint::of(format!("{many} ids begin with {id}"))
            .next(format!("write more of the id; {list}"))
            .with_code(USAGE)),
    }
}
