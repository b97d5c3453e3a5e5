//! Contracts: signatures that two agents have agreed on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::page::{self, Page};
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{first_of, listed, more, named, one_line, short};
use provost_api::wire;
use provost_base::limits::MCP_PAGE_ROWS_MAX;

/// The longest signature that is shown, in characters.
const SHOWN_CHARS: usize = 1_000;

/// The most files of a moved contract that are shown.
const PLACES: usize = 20;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "contract_propose",
            title: "Offer a contract",
            description: "Offers the signature that a symbol has on disk as a contract. Once another agent accepts it, a commit that changes it is refused. Use it when others call what you write; not for private code.",
            kind: Kind::Begins,
        }
        .does(propose),
        About {
            name: "contract_respond",
            title: "Answer a contract",
            description: "Accepts or rejects a contract of another agent, or withdraws your own offer.",
            kind: Kind::Ends,
        }
        .does(respond),
        About {
            name: "contracts_list",
            title: "List contracts",
            description: "Lists contracts on signatures: who has offered and accepted what.",
            kind: Kind::Reads,
        }
        .does(list),
        About {
            name: "contracts_check",
            title: "Check contracts",
            description: "Compares files with the contracts in force and says which signatures a commit would break. Call it before a commit.",
            kind: Kind::Reads,
        }
        .does(check),
    ]
}

/// The symbol whose signature is to be fixed.
#[derive(Deserialize, JsonSchema)]
struct Propose {
    /// Such as `src/app.py:parse` or `src/session.ts:Session.renew`.
    symbol: String,
    /// Absolute path of your git work tree, if you work in a linked one.
    worktree: Option<String>,
}

/// A contract in any state, as the caller sees it.
#[derive(Serialize, JsonSchema)]
struct Contract {
    /// The id that identifies it in contract_respond.
    contract_id: String,
    /// The symbol whose signature it fixes.
    symbol: String,
    /// Files to which the symbol was moved; it binds there, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// The signature that was agreed on.
    signature: String,
    /// The agent that has offered it.
    proposer: String,
    /// The agent that has accepted or rejected it.
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
        contract_id: it.id,
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
    let answered = it.responder.as_deref().map(|it| format!(", answered by {it}")).unwrap_or_default();
    let also = named("also in", &it.also);
    format!(
        "Contract {} on {} is {}, offered by {}{answered}{also}; signature: {}",
        it.contract_id,
        one_line(&it.symbol, SHOWN_CHARS),
        it.status,
        it.proposer,
        one_line(&it.signature, SHOWN_CHARS)
    )
}

async fn propose(call: Call, asked: Propose) -> Result<Said<Contract>, ToolError> {
    let request = wire::Propose { symbol: asked.symbol, worktree: call.worktree(asked.worktree) };
    let made = contract(call.client().propose(&request).await?);
    Ok(Said { text: in_words(&made), answer: made })
}

/// The caller's answer to a contract.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// The contract is in force.
    Accept,
    /// It is rejected.
    Reject,
    /// The proposer takes the offer back.
    Withdraw,
}

/// The answer to a contract.
#[derive(Deserialize, JsonSchema)]
struct Respond {
    /// Its id.
    contract_id: String,
    /// The answer.
    answer: Word,
}

async fn respond(call: Call, asked: Respond) -> Result<Said<Contract>, ToolError> {
    let id = asked.contract_id;
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

/// A filter of contracts; without members, all contracts.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only those on this symbol.
    symbol: Option<String>,
    /// Only with this status: `proposed`, `accepted`, `rejected`, `superseded`, `withdrawn`.
    status: Option<String>,
    /// From the last answer.
    cursor: Option<String>,
    /// Most rows, up to 100.
    limit: Option<usize>,
}

async fn list(call: Call, asked: Which) -> Result<Said<Page<Contract>>, ToolError> {
    let query = wire::ContractsQuery { symbol: asked.symbol, status: asked.status };
    let all = call.client().contracts(&query).await?.into_iter().map(contract).collect();
    let place = |it: &Contract| format!("{} {}", it.proposed_at, it.contract_id);
    let found = page::page(&call, (asked.cursor, asked.limit), all, place).await?;
    let text = listed(&format!("{} contracts.", found.rows.len()), found.rows.iter().map(in_words));
    let text = text + &more(found.cursor.as_deref());
    Ok(Said { text, answer: found })
}

/// A file with its content in a commit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    /// Path from the root of the repository.
    path: String,
    /// Whole content.
    content: String,
    /// Its path before a rename.
    renamed_from: Option<String>,
}

/// The files to compare with the contracts in force.
#[derive(Deserialize, JsonSchema)]
struct Check {
    /// Files as they are on disk, from the root of the repository.
    #[serde(default)]
    files: Vec<String>,
    /// Files with contents.
    #[serde(default)]
    given: Vec<Given>,
    /// Files that would be removed.
    #[serde(default)]
    deleted: Vec<String>,
    /// Absolute path of your git work tree, if you work in a linked one.
    worktree: Option<String>,
}

/// A contract that would be broken.
#[derive(Serialize, JsonSchema)]
struct Violation {
    /// The id of the contract.
    contract_id: String,
    /// The symbol whose signature the contract fixes.
    symbol: String,
    /// The file that breaks it.
    file: String,
    /// `changed`, `missing`, `deleted`, `untold`.
    fault: String,
    /// The signature that was agreed on.
    expected: String,
    /// The signature that it would have, or what happens to the symbol.
    actual: String,
    /// The agents that have agreed on it.
    between: Vec<String>,
}

/// The outcome of comparing files with the contracts in force.
#[derive(Serialize, JsonSchema)]
struct Checked {
    /// Contracts that a commit would break.
    violations: Vec<Violation>,
    /// The number of contracts that were compared.
    compared: usize,
}

async fn check(call: Call, asked: Check) -> Result<Said<Checked>, ToolError> {
    if asked.files.is_empty() && asked.given.is_empty() && asked.deleted.is_empty() {
        return Err(ToolError::new("there is nothing to check: name some `files`, `given` or `deleted`"));
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
        worktree: call.worktree(asked.worktree),
    };
    let checked = call.client().check_contracts(&request).await?;
    let broken = checked.violations.len();
    let cut = |it: wire::Violation| Violation {
        expected: short(&it.expected, SHOWN_CHARS),
        actual: short(&it.actual, SHOWN_CHARS),
        contract_id: it.contract,
        symbol: it.symbol,
        file: it.file,
        fault: it.fault,
        between: it.between,
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
        let (was, is) = (one_line(&it.expected, SHOWN_CHARS), one_line(&it.actual, SHOWN_CHARS));
        let (id, symbol, file) = (&it.contract_id, &it.symbol, one_line(&it.file, 300));
        let between = it.between.join(" and ");
        format!(
            "{symbol} in {file}, contract {id} between {between}, {}: agreed {was}, would be {is}",
            it.fault
        )
    });
    let text = listed(&head, lines);
    Ok(Said { text, answer: Checked { violations, compared: checked.compared } })
}
