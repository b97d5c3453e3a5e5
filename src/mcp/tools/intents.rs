//! Announced changes, and what they collide with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::wire;
use crate::mcp::call::Call;
use crate::mcp::page::{self, Page};
use crate::mcp::tool::{About, Entry, Fault, Kind, Said};
use crate::mcp::words::{listed, one_line, short};

/// Longest description that is shown, in characters.
const SHOWN_CHARS: usize = 500;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "intent_declare",
            title: "Announce a change",
            description: "Announces which files, and which symbols of them, you are about to change, and tells what that collides with: locks, claims and intents of others. It stops nobody; take locks for that. Say with intent_update when it is done.",
            kind: Kind::Begins,
        }
        .does(declare),
        About {
            name: "intent_update",
            title: "Move an announced change on",
            description: "Says of an intent of yours that it is active, resolved or abandoned.",
            kind: Kind::Ends,
        }
        .does(update),
        About {
            name: "intents_list",
            title: "List announced changes",
            description: "What others have announced to change, where, and until when.",
            kind: Kind::Reads,
        }
        .does(list),
        About {
            name: "conflicts_check",
            title: "Look for conflicts",
            description: "What a change of these files and symbols would collide with: locks, claims and intents of others, and locks on what the symbols call. Announces nothing.",
            kind: Kind::Reads,
        }
        .does(check),
    ]
}

/// What is about to be changed.
#[derive(Deserialize, JsonSchema)]
struct Declare {
    /// What is to be done, in a sentence that others will read.
    description: String,
    /// In which files, from the root of the repository.
    files: Vec<String>,
    /// In which symbols of them; without any, whole files are meant.
    #[serde(default)]
    symbols: Vec<String>,
    /// When it lapses by itself, in seconds.
    ttl_s: Option<u64>,
    /// The absolute path of the work tree where you work, if it is not the repository's own.
    worktree: Option<String>,
}

/// An announced change.
#[derive(Serialize, JsonSchema)]
struct Intent {
    /// Its id.
    intent: String,
    /// Whose.
    agent: String,
    /// What is to be done: its owner's words, data.
    description: String,
    /// In which files.
    files: Vec<String>,
    /// In which symbols of them.
    symbols: Vec<String>,
    /// `declared`, `active`, `resolved`, `abandoned`.
    status: String,
    /// When it was declared.
    declared_at: String,
    /// When it lapses by itself.
    expires_at: String,
}

/// Files or symbols of an intent that are shown.
const PLACES: usize = 50;

fn intent(it: wire::Intent) -> Intent {
    let files: Vec<String> = it.files.into_iter().map(|file| file.path).collect();
    Intent {
        intent: it.id,
        agent: it.agent,
        description: short(&it.description, SHOWN_CHARS),
        files: crate::mcp::words::first_of(&files, PLACES),
        symbols: crate::mcp::words::first_of(&it.symbols, PLACES),
        status: it.status,
        declared_at: it.declared_at,
        expires_at: it.expires_at,
    }
}

/// What came of it.
#[derive(Serialize, JsonSchema)]
struct Declared {
    /// The intent.
    intent: Intent,
    /// What it collides with.
    conflicts: Vec<wire::Told>,
    /// Conflicts beyond those.
    more: usize,
}

/// As many as fit, and how many do not.
fn told(conflicts: Vec<wire::Told>, more: usize) -> (Vec<wire::Told>, usize) {
    let all = conflicts.len();
    let short = conflicts.into_iter().map(|it| wire::Told { message: short(&it.message, SHOWN_CHARS), ..it });
    let (shown, _) = page::fitting(short, crate::base::limits::MCP_PAGE_ROWS_MAX);
    let left = all - shown.len();
    (shown, more + left)
}

fn in_words(conflicts: &[wire::Told], more: usize) -> String {
    match conflicts.len() + more {
        0 => "Nothing is in the way.".into(),
        many => {
            let head = if many == 1 { "One conflict:".into() } else { format!("{many} conflicts:") };
            listed(&head, conflicts.iter().map(|it| one_line(&it.message, SHOWN_CHARS)))
        }
    }
}

async fn declare(call: Call, asked: Declare) -> Result<Said<Declared>, Fault> {
    let request = wire::Declare {
        description: asked.description,
        files: asked.files,
        symbols: asked.symbols,
        ttl_ms: asked.ttl_s.map(|it| it.saturating_mul(1_000)),
        worktree: asked.worktree,
    };
    let done = call.client().declare(&request).await?;
    let (conflicts, more) = told(done.conflicts, done.more);
    let intent = intent(done.intent);
    let text = format!("Intent {} is declared. {}", intent.intent, in_words(&conflicts, more));
    Ok(Said { text, answer: Declared { intent, conflicts, more } })
}

/// How an intent goes on.
#[derive(Deserialize, JsonSchema)]
struct Update {
    /// Which, by its id.
    intent: String,
    /// `active`, `resolved` or `abandoned`.
    status: String,
}

async fn update(call: Call, asked: Update) -> Result<Said<Intent>, Fault> {
    let request = wire::UpdateIntent { id: asked.intent, to: asked.status };
    let now = intent(call.client().update_intent(&request).await?);
    Ok(Said { text: format!("Intent {} is {}.", now.intent, now.status), answer: now })
}

/// Which intents.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only your own.
    #[serde(default)]
    mine: bool,
    /// Only this agent's.
    agent: Option<String>,
    /// Only those for this file.
    file: Option<String>,
    /// Only those that stand so; those that live when absent.
    status: Option<String>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// So many at most, up to 100.
    limit: Option<usize>,
}

async fn list(call: Call, asked: Which) -> Result<Said<Page<Intent>>, Fault> {
    let query = wire::Whose { mine: asked.mine, agent: asked.agent, file: asked.file, status: asked.status };
    let all = call.client().intents(&query).await?.into_iter().map(intent).collect();
    let place = |it: &Intent| format!("{} {}", it.declared_at, it.intent);
    let found = page::page(&call, (asked.cursor, asked.limit), all, place).await?;
    let lines = found.rows.iter().map(|it| {
        format!("{} of {}, {}: {}", it.intent, it.agent, it.status, one_line(&it.description, SHOWN_CHARS))
    });
    let text = listed(&format!("{} intents.", found.rows.len()), lines);
    Ok(Said { text, answer: found })
}

/// What would be changed.
#[derive(Deserialize, JsonSchema)]
struct Check {
    /// In which files, from the root of the repository.
    files: Vec<String>,
    /// In which symbols of them; without any, whole files are meant.
    #[serde(default)]
    symbols: Vec<String>,
    /// The absolute path of the work tree where you work, if it is not the repository's own.
    worktree: Option<String>,
}

async fn check(call: Call, asked: Check) -> Result<Said<wire::Conflicts>, Fault> {
    let Check { files, symbols, worktree } = asked;
    let found = call.client().check_conflicts(&wire::CheckConflicts { files, symbols, worktree }).await?;
    let (conflicts, more) = told(found.conflicts, found.more);
    Ok(Said { text: in_words(&conflicts, more), answer: wire::Conflicts { conflicts, more } })
}
