//! Approvals: waiting requests, and a person's answers to them.
//!
//! The daemon's facts come first; the agent's own words come last and behind a bar, so that they cannot pass for a
//! fact. An answer carries the digest of the shown request and is void for any other content.

use clap::{Args, Subcommand};

use super::cli_error::{DONE, FAILED};
use super::identity::IdentityArgs;
use super::repo_context::wait_for;
use super::tasks::{fenced, short_time};
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::ApprovalId;
use provost_client::ClientError;
use provost_client::approvals::{facts, words};

/// `provost approval`.
#[derive(Subcommand, Debug)]
pub(super) enum Approval {
    /// List the requests that wait for approval
    #[command(after_help = "Example:\n  provost approval list")]
    List,
    /// Approve a request, from a terminal
    #[command(after_help = "Example:\n  provost approval approve 7 --note \"looked at it\"")]
    Approve(Approve),
    /// Deny a request, from a terminal
    #[command(after_help = "Example:\n  provost approval deny 7 --reason \"not on a Friday\"")]
    Deny(Deny),
}

/// `provost approval approve`.
#[derive(Args, Debug)]
pub(super) struct Approve {
    /// The approval's number, as `provost approval list` shows it
    #[arg(value_parser = number)]
    id: ApprovalId,
    /// The reason, for the journal
    #[arg(long)]
    note: Option<String>,
}

/// `provost approval deny`.
#[derive(Args, Debug)]
pub(super) struct Deny {
    /// The approval's number, as `provost approval list` shows it
    #[arg(value_parser = number)]
    id: ApprovalId,
    /// The reason; the daemon tells it to the asking agent
    #[arg(long)]
    reason: String,
}

fn number(typed: &str) -> Result<ApprovalId, String> {
    typed
        .parse()
        .map_err(|_| "it is the number of an approval, as `provost approval list` shows it".to_owned())
}

pub(super) fn approval(here: &RepoContext, asked: Approval) -> Result<u8, CliError> {
    match asked {
        Approval::List => list(here),
        Approval::Approve(it) => approve(here, it),
        Approval::Deny(it) => deny(here, it),
    }
}

/// Says how to go on where a command waits for an approval. The caller has to be an agent: a person at a terminal of their
/// own is not asked.
pub(super) fn then_again(approval: u64) -> String {
    format!(
        "provost approve {approval}, in another terminal, in which no agent has run; then the same command again here"
    )
}

fn list(here: &RepoContext) -> Result<u8, CliError> {
    let waiting = wait_for(async { Ok(here.daemon(None).await?.approvals().await?) })?;
    if here.json {
        out::json(&waiting)?;
        return Ok(DONE);
    }
    if waiting.is_empty() {
        out::note("nothing waits for approval");
    }
    for approval in &waiting {
        out::text_as_is(&in_full(approval))?;
        let id = approval.id;
        out::line(match provost_view::no_terminal(&approval.by) {
            None => format!("  answer: provost approve {id}, or provost deny {id} --reason WHY\n"),
            Some(why) => format!("  answer: {why}\n"),
        })?;
    }
    Ok(DONE)
}

fn approve(here: &RepoContext, asked: Approve) -> Result<u8, CliError> {
    answer(here, asked.id, true, asked.note)
}

fn deny(here: &RepoContext, asked: Deny) -> Result<u8, CliError> {
    answer(here, asked.id, false, Some(asked.reason))
}

fn answer(here: &RepoContext, id: ApprovalId, grant: bool, note: Option<String>) -> Result<u8, CliError> {
    // In an agent's shell the answer is the agent's; a terminal does not make it a person's.
    let speaker = IdentityArgs::named(here, None)?;
    let is_person = speaker.is_none();
    let (answered, asker) = wait_for(async {
        let client = here.daemon(speaker).await?;
        let waiting = client.approvals().await?;
        let Some(shown) = waiting.iter().find(|approval| approval.id == id.0) else {
            let because = match client.what_became(id.0).await? {
                Some(what) => what,
                None => "it was answered, has expired, or never existed".into(),
            };
            return Err(CliError::of(format!("no approval {id} waits"))
                .because(out::one_line(&because, 800))
                .next("provost approval list"));
        };
        if !here.json {
            out::text_as_is(&in_full(shown))?;
        }
        let digest = Some(shown.digest.clone());
        let why = provost_view::no_terminal(&shown.by).filter(|_| is_person);
        let asker = provost_view::is_repeated_by_its_asker(&shown.verb).then(|| shown.asked_by.clone());
        let answered = client.answer(&wire::Answer { approval: id.0, grant, note, digest }).await;
        answered.map(|it| (it, asker)).map_err(|error| match (why, &error) {
            (Some(why), ClientError::Refused { status: 403, .. }) => {
                CliError::from(error).because(why).next("provost approval list")
            }
            _ => error.into(),
        })
    })?;
    if here.json {
        out::json(&answered)?;
    }
    if let Some(why) = &answered.failed {
        return Err(CliError::of("granted, but it could not be carried out")
            .because(out::one_line(why, 4_000))
            .next("provost log")
            .with_code(FAILED));
    }
    if !here.json {
        let word = if grant { "approved" } else { "denied" };
        let task = answered.task.map(|task| provost_base::task_command("task show", &task, "--wait"));
        out::line(match (task, asker) {
            (Some(task), _) if grant => format!("{word}; watch it: {task}"),
            (None, Some(asker)) if grant => {
                let asker = out::one_line(&asker, 60);
                format!("{word}; it is carried out when {asker} gives the same command again")
            }
            _ => word.to_owned(),
        })?;
    }
    Ok(DONE)
}

fn in_full(approval: &wire::Approval) -> String {
    let facts = facts(approval, short_time);
    let rows: Vec<_> =
        facts.iter().map(|(name, fact)| [format!("  {name}"), out::one_line(fact, 400)]).collect();
    let words = words(approval);
    let words: String = words.iter().map(|(says, text)| fenced(&format!("  {says}"), text)).collect();
    format!("Approval {}\n{}{words}", approval.id, out::table(&rows))
}

/// Returns a table with one row for each, for the overview.
pub(super) fn table(waiting: &[wire::Approval]) -> String {
    let mut rows = vec![["ID", "RISK", "BY", "WHAT", "RULE", "SINCE", "UNTIL"].map(String::from)];
    rows.extend(waiting.iter().map(|approval| {
        [
            approval.id.to_string(),
            out::one_line(&approval.risk, 10),
            out::one_line(&approval.asked_by, 30),
            out::one_line(&what(approval), 60),
            out::one_line(&approval.rule, 40),
            short_time(&approval.asked_at),
            short_time(&approval.expires_at),
        ]
    }));
    out::table(&rows)
}

/// Says in short what an approval asks for: whose task or change it is, or a host's tool with the beginning of its command.
fn what(approval: &wire::Approval) -> String {
    let arguments = approval.request.as_ref().and_then(|it| it.get("arguments"));
    let does =
        ["command", "cmd", "file_path", "url"].into_iter().find_map(|name| arguments?.get(name)?.as_str());
    format!("{} {}", provost_view::asked(approval), does.unwrap_or_default()).trim_end().to_owned()
}
