//! Contracts: signatures that two agents have agreed on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits::MCP_PAGE_ROWS_MAX;
use crate::client::wire;
use crate::mcp::call::Call;
use crate::mcp::page::{self, Page};
use crate::mcp::tool::{About, Entry, Fault, Kind, Said};
use crate::mcp::words::{first_of, listed, one_line, short};

/// Longest signature that is shown, in characters.
const SHOWN_CHARS: usize = 1_000;

/// Files to which a contract has moved that are shown.
const PLACES: usize = 20;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "contract_propose",
            title: "Offer a contract",
            description: "Offers the signature that a symbol (`src/a.rs:parse`) has on disk as a contract: once another agent accepts it, a commit that changes it is refused.",
            kind: Kind::Begins,
        }
        .does(propose),
        About {
            name: "contract_respond",
            title: "Answer a contract",
            description: "Accepts or rejects a contract that another agent has offered, or withdraws one that you have offered.",
            kind: Kind::Ends,
        }
        .does(respond),
        About {
            name: "contracts_list",
            title: "List contracts",
            description: "Contracts on signatures: who has offered and accepted what.",
            kind: Kind::Reads,
        }
        .does(list),
        About {
            name: "contracts_check",
            title: "Check contracts",
            description: "Compares files, as they are on disk or as you give them, with the contracts in force: which signatures a commit would break.",
            kind: Kind::Reads,
        }
        .does(check),
    ]
}

/// On what.
#[derive(Deserialize, JsonSchema)]
struct Propose {
    /// `file:symbol`, from the root of the repository.
    symbol: String,
    /// The absolute path of the work tree where you work, if it is not the repository's own.
    worktree: Option<String>,
}

/// A contract.
#[derive(Serialize, JsonSchema)]
struct Contract {
    /// Its id.
    contract: String,
    /// On what.
    symbol: String,
    /// Files to which the symbol was moved; it binds there, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// The signature that was agreed on.
    signature: String,
    /// Who offered it.
    proposer: String,
    /// Who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    responder: Option<String>,
    /// `proposed`, `accepted`, `rejected`, `superseded`, `withdrawn`.
    status: String,
    /// When it was offered.
    proposed_at: String,
    /// When it was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    responded_at: Option<String>,
}

fn contract(it: wire::Contract) -> Contract {
    Contract {
        contract: it.id,
        symbol: it.symbol,
        also: first_of(&it.also, PLACES),
        signature: short(&it.signature, SHOWN_CHARS),
        proposer: it.proposer,
        responder: it.responder,
        status: it.status,
        proposed_at: it.proposed_at,
        responded_at: it.responded_at,
    }
}

fn in_words(it: &Contract) -> String {
    format!("Contract {} on {} is {}.", it.contract, one_line(&it.symbol, SHOWN_CHARS), it.status)
}

async fn propose(call: Call, asked: Propose) -> Result<Said<Contract>, Fault> {
    let request = wire::Propose { symbol: asked.symbol, worktree: asked.worktree };
    let made = contract(call.client().propose(&request).await?);
    Ok(Said { text: in_words(&made), answer: made })
}

/// What is done with a contract.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// It is in force from now on.
    Accept,
    /// It is not wanted.
    Reject,
    /// The offer is taken back by whoever has made it.
    Withdraw,
}

/// Which, and what.
#[derive(Deserialize, JsonSchema)]
struct Respond {
    /// Which, by its id.
    contract: String,
    /// What is done with it.
    answer: Word,
}

async fn respond(call: Call, asked: Respond) -> Result<Said<Contract>, Fault> {
    let id = asked.contract;
    let now = match asked.answer {
        Word::Withdraw => call.client().withdraw_contract(&wire::WithdrawContract { id }).await?,
        word => {
            let accept = word == Word::Accept;
            call.client().answer_contract(&wire::AnswerContract { id, accept }).await?
        }
    };
    let now = contract(now);
    Ok(Said { text: in_words(&now), answer: now })
}

/// Which contracts.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only those on this symbol.
    symbol: Option<String>,
    /// Only those that stand so: `proposed`, `accepted`, `rejected`, `superseded`, `withdrawn`.
    status: Option<String>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// So many at most, up to 100.
    limit: Option<usize>,
}

async fn list(call: Call, asked: Which) -> Result<Said<Page<Contract>>, Fault> {
    let query = wire::ContractsQuery { symbol: asked.symbol, status: asked.status };
    let all = call.client().contracts(&query).await?.into_iter().map(contract).collect();
    let place = |it: &Contract| format!("{} {}", it.proposed_at, it.contract);
    let found = page::page(&call, (asked.cursor, asked.limit), all, place).await?;
    let text = listed(&format!("{} contracts.", found.rows.len()), found.rows.iter().map(in_words));
    Ok(Said { text, answer: found })
}

/// A file as a commit would have it.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// Where, from the root of the repository.
    path: String,
    /// All that it says.
    content: String,
    /// Where it was before, if it was renamed.
    renamed_from: Option<String>,
}

/// Which files.
#[derive(Deserialize, JsonSchema)]
struct Check {
    /// Files as they are on disk, from the root of the repository.
    #[serde(default)]
    files: Vec<String>,
    /// Files as they would be.
    #[serde(default)]
    given: Vec<Given>,
    /// Files that would not be there any more.
    #[serde(default)]
    deleted: Vec<String>,
    /// The absolute path of the work tree where the files are, if it is not the repository's own.
    worktree: Option<String>,
}

async fn check(call: Call, asked: Check) -> Result<Said<wire::Checked>, Fault> {
    if asked.files.is_empty() && asked.given.is_empty() && asked.deleted.is_empty() {
        return Err(Fault::new("there is nothing to check: name some `files`, `given` or `deleted`"));
    }
    let staged = |it: Given| wire::StagedFile {
        path: it.path,
        content: STANDARD.encode(it.content),
        from: it.renamed_from,
    };
    let request = wire::CheckContracts {
        files: asked.given.into_iter().map(staged).collect(),
        on_disk: asked.files,
        deleted: asked.deleted,
        worktree: asked.worktree,
    };
    let checked = call.client().check_contracts(&request).await?;
    let broken = checked.violations.len();
    let cut = |it: wire::Violation| wire::Violation {
        expected: short(&it.expected, SHOWN_CHARS),
        actual: short(&it.actual, SHOWN_CHARS),
        ..it
    };
    let (violations, more) = page::fitting(checked.violations.into_iter().map(cut), MCP_PAGE_ROWS_MAX);
    let head = match (broken, checked.compared) {
        (0, 0) => "No contract is in force on these files.".to_owned(),
        (0, many) => format!("All {many} contracts are kept."),
        (broken, many) => {
            format!("{broken} of {many} contracts would be broken{}", if more { "; the first:" } else { ":" })
        }
    };
    let lines = violations.iter().map(|it| {
        let (was, is) = (one_line(&it.expected, 200), one_line(&it.actual, 200));
        format!("{} ({}): agreed {was}, would be {is}", it.symbol, it.between.join(" and "))
    });
    let text = listed(&head, lines);
    Ok(Said { text, answer: wire::Checked { violations, compared: checked.compared } })
}
