//! Contracts: agreements on the signature of a symbol, and checks of files against them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::cli_error::{DONE, FAILED, USAGE};
use super::git::{Checker, say_violations};
use super::identity::IdentityArgs;
use super::intents::only;
use super::repo_context::wait_for;
use super::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::{shell_word, visible_name};
use provost_client::{Client, ClientError};

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
    /// List the contracts, the oldest first
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
    identity: IdentityArgs,
}

/// One contract.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// The contract's id, or a unique beginning of it
    id: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// `provost contract list`.
#[derive(Args, Debug)]
pub(super) struct List {
    /// List only the contracts on this symbol
    #[arg(long)]
    symbol: Option<String>,
    /// List only the contracts with this status
    #[arg(long, value_enum)]
    status: Option<ContractStatus>,
}

/// `provost contract check`.
#[derive(Args, Debug)]
pub(super) struct Check {
    /// The files on disk to compare; by default the staged changes
    #[arg(value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// The status of a contract.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum ContractStatus {
    /// The contract is offered
    Proposed,
    /// The contract is in force
    Accepted,
    /// The contract was rejected
    Rejected,
    /// A newer contract has replaced it
    Superseded,
    /// The contract was withdrawn
    Withdrawn,
}

impl ContractStatus {
    fn word(self) -> &'static str {
        match self {
            ContractStatus::Proposed => "proposed",
            ContractStatus::Accepted => "accepted",
            ContractStatus::Rejected => "rejected",
            ContractStatus::Superseded => "superseded",
            ContractStatus::Withdrawn => "withdrawn",
        }
    }
}

pub(super) fn contract(here: &RepoContext, asked: Contract) -> Result<u8, CliError> {
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

fn propose(here: &RepoContext, asked: &Propose) -> Result<wire::Contract, CliError> {
    let request = wire::Propose { symbol: here.symbol(&asked.symbol)?, worktree: here.linked_worktree() };
    let shown = visible_name(request.symbol.trim_end_matches(':'), 400);
    if request.symbol.ends_with(':') {
        return Err(CliError::of(format!("{shown} names no symbol"))
            .because("a contract is about the signature of one symbol")
            .next(format!("provost contract propose {}:SYMBOL", shell_word(&shown)))
            .with_code(USAGE));
    }
    IdentityArgs::start(here)?;
    wait_for(async {
        match asked.identity.daemon(here).await?.propose(&request).await {
            Err(ClientError::Refused { status, fault }) if fault.error == "no_symbol" => {
                let error = CliError::from(ClientError::Refused { status, fault });
                Err(error
                    .about(format!("no contract can be made on {shown}"))
                    .or_next("name a symbol that its file declares with a signature"))
            }
            done => Ok(done?),
        }
    })
}

fn answer(here: &RepoContext, asked: &Which, accept: bool) -> Result<wire::Contract, CliError> {
    wait_for(async {
        let client = asked.identity.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.answer_contract(&wire::AnswerContract { id, accept }).await?)
    })
}

fn withdraw(here: &RepoContext, asked: &Which) -> Result<wire::Contract, CliError> {
    wait_for(async {
        let client = asked.identity.daemon(here).await?;
        let id = meant(&client, &asked.id).await?;
        Ok(client.withdraw_contract(&wire::WithdrawContract { id }).await?)
    })
}

async fn meant(client: &Client, id: &str) -> Result<String, CliError> {
    let all = client.contracts(&wire::ContractsQuery::default()).await?;
    only(id, all.into_iter().map(|it| it.id).collect(), "provost contract list")
}

fn list(here: &RepoContext, asked: &List) -> Result<u8, CliError> {
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

/// Returns contracts as a table.
pub(super) fn table(contracts: &[wire::Contract]) -> String {
    let mut rows = vec![["CONTRACT", "STATUS", "BETWEEN", "SYMBOL", "SIGNATURE"].map(String::from)];
    rows.extend(contracts.iter().map(|it| {
        let between = format!("{} and {}", it.proposer, it.responder.as_deref().unwrap_or("?"));
        [
            out::one_line(&it.id, 40),
            out::one_line(&it.status, 12),
            out::one_line(&between, 80),
            out::name(&it.symbol, 120),
            out::one_line(&it.signature, 120),
        ]
    }));
    out::table(&rows)
}

fn check(here: &RepoContext, asked: &Check) -> Result<u8, CliError> {
    let checked = wait_for(async {
        let checker = Checker::new(here, here.daemon(None).await?);
        match asked.files.is_empty() {
            true => checker.staged().await,
            false => checker.on_disk(&asked.files).await,
        }
    })?;
    // A missing file may have been part of a contract; if no contract names it, its name is probably mistyped.
    let absent = asked.files.iter().find(|it| !here.cwd.join(it).exists());
    if let Some(absent) = absent.filter(|_| checked.compared == 0) {
        return Err(CliError::of(format!(
            "there is no file {}",
            visible_name(&absent.to_string_lossy(), 400)
        ))
        .because("no contract is about it, either")
        .next("provost contract list"));
    }
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
