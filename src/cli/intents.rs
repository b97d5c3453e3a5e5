//! Intents: changes that agents announce.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::args::duration;
use super::cli_error::{DONE, USAGE};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::short_time;
use super::{CliError, RepoContext, locks, out};
use provost_api::wire;
use provost_base::{AgentId, Ttl};
use provost_client::Client;

/// The least length of the beginning of an id that may stand for the id.
const PREFIX_LEN_MIN: usize = 4;

/// `provost intent`.
#[derive(Subcommand, Debug)]
pub(super) enum Intent {
    /// Declare an intent, which announces a change, and list its collisions
    #[command(
        after_help = "Examples:\n  provost intent declare \"rename renew to refresh\" --file src/auth.ts --symbol Session.renew\n  provost intent declare \"new parser\" --file src/parse.py --ttl 2h --json"
    )]
    Declare(Declare),
    /// List the intents
    #[command(
        after_help = "Examples:\n  provost intent list\n  provost intent list --file src/auth.ts --status resolved"
    )]
    List(List),
    /// List where two agents are in the same place, through whichever doors, the gravest first
    #[command(after_help = "Examples:\n  provost intent conflicts\n  provost intent conflicts --json")]
    Conflicts,
    /// Update the status of an intent
    #[command(
        after_help = "Examples:\n  provost intent update 3f0c2a active\n  provost intent update 3f0c2a resolved\n  provost intent update 3f0c2a abandoned --force"
    )]
    Update(Update),
}

/// `provost intent declare`.
#[derive(Args, Debug)]
pub(super) struct Declare {
    /// A description of the change
    description: String,
    /// A file of the change; may be repeated
    #[arg(long = "file", value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A symbol of the files; may be repeated. By default the whole files
    #[arg(long = "symbol", value_name = "SYMBOL")]
    symbols: Vec<String>,
    /// The time after which the intent lapses by itself
    #[arg(long, value_parser = duration, value_name = "2h")]
    ttl: Option<Ttl>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// `provost intent list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// List only the intents of the agent that --as names
    #[arg(long)]
    mine: bool,
    /// List only the intents of this agent
    #[arg(long, conflicts_with = "mine")]
    agent: Option<AgentId>,
    /// List only the intents for this file
    #[arg(long, value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// List only the intents with this status; by default the declared and the active ones
    #[arg(long, value_enum)]
    status: Option<IntentStatus>,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// The status of an intent.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum IntentStatus {
    /// The change is announced
    Declared,
    /// The change is under way
    Active,
    /// The change is done
    Resolved,
    /// The change is given up
    Abandoned,
}

impl IntentStatus {
    fn word(self) -> &'static str {
        match self {
            IntentStatus::Declared => "declared",
            IntentStatus::Active => "active",
            IntentStatus::Resolved => "resolved",
            IntentStatus::Abandoned => "abandoned",
        }
    }
}

/// `provost intent update`.
#[derive(Args, Debug)]
pub(super) struct Update {
    /// The intent's id, or enough of its beginning
    id: String,
    /// End another agent's intent, as the user: with `abandoned`
    #[arg(long)]
    force: bool,
    /// The new status
    #[arg(value_enum)]
    to: To,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// The new status of an intent.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum To {
    /// The change is under way
    Active,
    /// The change is done
    Resolved,
    /// The change is given up
    Abandoned,
}

pub(super) fn intent(here: &RepoContext, asked: Intent) -> Result<u8, CliError> {
    match asked {
        Intent::Declare(it) => declare(here, it),
        Intent::List(it) => list(here, it),
        Intent::Conflicts => conflicts(here),
        Intent::Update(it) => update(here, it),
    }
}

fn conflicts(here: &RepoContext) -> Result<u8, CliError> {
    let met = wait_for(async { Ok(here.daemon(None).await?.meetings().await?) })?;
    if here.json {
        return out::json(&met).map(|()| DONE);
    }
    if met.is_empty() {
        out::note("no two agents are in the same place");
    }
    for it in &met {
        let side = |it: &wire::MeetingSide| format!("{} ({}: {})", it.agent, it.kind, it.asked);
        let sides = it.sides.iter().map(side).collect::<Vec<_>>().join(" and ");
        let how = match it.severity.as_str() {
            "caller" => "caller of".to_owned(),
            severity => format!("same {severity}:"),
        };
        out::line(out::one_line(&format!("{how} {}: {sides}", it.file), 600))?;
    }
    Ok(DONE)
}

fn declare(here: &RepoContext, asked: Declare) -> Result<u8, CliError> {
    let request = wire::Declare {
        description: asked.description,
        files: asked.files.iter().map(|file| here.path(file)).collect::<Result<_, _>>()?,
        symbols: asked.symbols,
        ttl_ms: asked.ttl.map(|ttl| u64::from(ttl.as_millis())),
        worktree: here.linked_worktree(),
        grants: Vec::new(),
    };
    IdentityArgs::start(here)?;
    let declared = wait_for(async { Ok(asked.identity.daemon(here).await?.declare(&request).await?) })?;
    if here.json {
        return out::json(&declared).map(|()| DONE);
    }
    out::line(out::one_line(&format!("intent {} declared", declared.intent.id), 400))?;
    locks::told("conflict", &declared.conflicts, declared.more);
    Ok(DONE)
}

fn list(here: &RepoContext, asked: List) -> Result<u8, CliError> {
    let query = wire::Whose {
        mine: asked.mine,
        agent: asked.agent.map(|it| it.to_string()),
        file: asked.file.map(|it| here.path(&it)).transpose()?,
        status: asked.status.map(|it| it.word().into()),
    };
    let intents = wait_for(async { Ok(asked.identity.daemon(here).await?.intents(&query).await?) })?;
    if here.json {
        return out::json(&intents).map(|()| DONE);
    }
    match intents.is_empty() {
        true => out::note("no intents"),
        false => out::text_as_is(&table(&intents))?,
    }
    Ok(DONE)
}

/// Returns intents as a table.
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

fn update(here: &RepoContext, asked: Update) -> Result<u8, CliError> {
    let to = match asked.to {
        To::Active => "active",
        To::Resolved => "resolved",
        To::Abandoned => "abandoned",
    };
    let intent = wait_for(async {
        let client = asked.identity.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.update_intent(&wire::UpdateIntent { id, to: to.into(), force: asked.force }).await?)
    })?;
    if here.json {
        return out::json(&intent).map(|()| DONE);
    }
    out::line(out::one_line(&format!("intent {}: {}", intent.id, intent.status), 400)).map(|()| DONE)
}

/// Returns the id of the intent that the person means, by its id, or by the beginning of the id of one that is in force.
async fn meant(client: &Client, id: &str) -> Result<String, CliError> {
    let live = client.intents(&wire::Whose::default()).await?;
    only(id, live.into_iter().map(|it| it.id).collect(), "provost intent list")
}

/// Returns the only id with this beginning; a text that begins no id is returned unchanged.
pub(super) fn only(id: &str, mut all: Vec<String>, list: &str) -> Result<String, CliError> {
    if id.len() < PREFIX_LEN_MIN || all.iter().any(|it| it == id) {
        return Ok(id.to_owned());
    }
    all.retain(|it| it.starts_with(id));
    match all.len() {
        0 => Ok(id.to_owned()),
        1 => Ok(all.remove(0)),
        many => Err(CliError::of(format!("{many} ids begin with {id}"))
            .next(format!("write more of the id; {list}"))
            .with_code(USAGE)),
    }
}
