//! Contracts: agreements on the signature of a symbol, and checks of files against them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::complaint::{DONE, FAILED};
use super::git::{Checker, say_violations};
use super::here::wait_for;
use super::intents::only;
use super::speaker::Speaker;
use super::{Complaint, Here, out};
use provost_api::wire;
use provost_client::Client;

/// `provost contract`.
#[derive(Subcommand, Debug)]
pub(super) enum Contract {
    /// Offer a contract on the signature that a symbol has on disk
    #[command(after_help = "Example:\n  provost contract propose src/auth.ts:login --as agent-a")]
    Propose(Propose),
    /// Accept a contract that another agent has offered; from then on it binds both agents
    #[command(after_help = "Example:\n  provost contract accept 3f0c2a --as agent-b")]
    Accept(Which),
    /// Reject an offered contract
    #[command(after_help = "Example:\n  provost contract reject 3f0c2a --as agent-b")]
    Reject(Which),
    /// Withdraw an offer; only the user can end an accepted contract
    #[command(after_help = "Example:\n  provost contract withdraw 3f0c2a --as agent-a")]
    Withdraw(Which),
    /// List contracts, oldest first
    #[command(
        after_help = "Examples:\n  provost contract list\n  provost contract list --status accepted --json"
    )]
    List(List),
    /// Compare staged changes, or files on disk, with the contracts in force
    #[command(
        after_help = "Examples:\n  provost contract check\n  provost contract check src/auth.ts\n\nExit codes: 0 kept; 1 broken."
    )]
    Check(Check),
}

/// `provost contract propose`.
#[derive(Args, Debug)]
pub(super) struct Propose {
    /// The symbol, as FILE:SYMBOL with FILE relative to the current directory
    symbol: String,
    #[command(flatten)]
    speaker: Speaker,
}

/// One contract.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// The contract's id, or a unique beginning of it
    id: String,
    #[command(flatten)]
    speaker: Speaker,
}

/// `provost contract list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// Only those on this symbol
    #[arg(long)]
    symbol: Option<String>,
    /// Only contracts with this status
    #[arg(long, value_enum)]
    status: Option<Status>,
}

/// `provost contract check`.
#[derive(Args, Debug)]
pub(super) struct Check {
    /// Files on disk; by default the staged changes
    #[arg(value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// The status of a contract.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Status {
    /// Offered
    Proposed,
    /// In force
    Accepted,
    /// Rejected
    Rejected,
    /// Replaced by a newer one
    Superseded,
    /// Withdrawn
    Withdrawn,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Proposed => "proposed",
            Status::Accepted => "accepted",
            Status::Rejected => "rejected",
            Status::Superseded => "superseded",
            Status::Withdrawn => "withdrawn",
        }
    }
}

pub(super) fn contract(here: &Here, asked: Contract) -> Result<u8, Complaint> {
    let done = match asked {
        Contract::Propose(it) => propose(here, &it)?,
        Contract::Accept(it) => answer(here, &it, true)?,
        Contract::Reject(it) => answer(here, &it, false)?,
        Contract::Withdraw(it) => withdraw(here, &it)?,
        Contract::List(it) => return list(here, &it),
        Contract::Check(it) => return check(here, &it),
    };
    if here.json {
        return out::json(&done).map(|()| DONE);
    }
    out::line(out::one_line(&format!("contract {}: {}", done.id, done.status), 400))?;
    out::line(out::one_line_indented(&format!("  {}  {}", done.symbol, done.signature), 800)).map(|()| DONE)
}

fn propose(here: &Here, asked: &Propose) -> Result<wire::Contract, Complaint> {
    let request = wire::Propose { symbol: here.symbol(&asked.symbol)?, worktree: here.linked_worktree() };
    Speaker::start(here)?;
    wait_for(async { Ok(asked.speaker.daemon(here).await?.propose(&request).await?) })
}

fn answer(here: &Here, asked: &Which, accept: bool) -> Result<wire::Contract, Complaint> {
    wait_for(async {
        let client = asked.speaker.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.answer_contract(&wire::AnswerContract { id, accept }).await?)
    })
}

fn withdraw(here: &Here, asked: &Which) -> Result<wire::Contract, Complaint> {
    wait_for(async {
        let client = asked.speaker.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.withdraw_contract(&wire::WithdrawContract { id }).await?)
    })
}

async fn meant(client: &Client, id: &str) -> Result<String, Complaint> {
    let all = client.contracts(&wire::ContractsQuery::default()).await?;
    only(id, all.into_iter().map(|it| it.id).collect(), "provost contract list")
}

fn list(here: &Here, asked: &List) -> Result<u8, Complaint> {
    let symbol = asked.symbol.as_deref().map(|it| here.symbol(it)).transpose()?;
    let query = wire::ContractsQuery { symbol, status: asked.status.map(|it| it.word().into()) };
    let all = wait_for(async { Ok(here.daemon(None).await?.contracts(&query).await?) })?;
    if here.json {
        return out::json(&all).map(|()| DONE);
    }
    match all.is_empty() {
        true => out::note("no contracts"),
        false => out::text_as_is(&table(&all))?,
    }
    Ok(DONE)
}

/// Contracts as rows.
pub(super) fn table(contracts: &[wire::Contract]) -> String {
    let mut rows = vec![["CONTRACT", "STATUS", "BETWEEN", "SYMBOL", "SIGNATURE"].map(String::from)];
    rows.extend(contracts.iter().map(|it| {
        let between = format!("{} and {}", it.proposer, it.responder.as_deref().unwrap_or("?"));
        [
            out::one_line(&it.id, 40),
            out::one_line(&it.status, 12),
            out::one_line(&between, 80),
            out::one_line(&it.symbol, 120),
            out::one_line(&it.signature, 120),
        ]
    }));
    out::table(&rows)
}

fn check(here: &Here, asked: &Check) -> Result<u8, Complaint> {
    let checked = wait_for(async {
        let checker = Checker::new(here, here.daemon(None).await?);
        match asked.files.is_empty() {
            true => checker.staged().await,
            false => checker.on_disk(&asked.files).await,
        }
    })?;
    let code = if checked.violations.is_empty() { DONE } else { FAILED };
    if here.json {
        return out::json(&checked).map(|()| code);
    }
    say_violations(&checked.violations);
    if code == DONE {
        out::line(format!("{} contracts compared, all kept", checked.compared))?;
    }
    Ok(code)
}
