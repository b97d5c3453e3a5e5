//! Intents, and their collisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::page::{self, Page};
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{fenced, listed, more, named, one_line, short};
use provost_api::wire;

/// The longest description that is shown, in characters.
const SHOWN_CHARS: usize = 500;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "intent_declare",
            title: "Announce a change",
            description: "Announces what you are about to change and says what it collides with, without a lock: no agent is stopped. work_begin does both. End it with intent_update.",
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
            description: "Lists changes that agents have announced: who, where, until when. Call it before you plan work.",
            kind: Kind::Reads,
        }
        .does(list),
        About {
            name: "conflicts_check",
            title: "Look for conflicts",
            description: "Says what a change would collide with: locks, claims and intents of others. Announces nothing; to begin the change, call work_begin.",
            kind: Kind::Reads,
        }
        .does(check),
    ]
}

/// The change to announce.
#[derive(Deserialize, JsonSchema)]
struct Declare {
    /// The change, in a sentence that others will read.
    description: String,
    /// Such as `src/app.py`.
    files: Vec<String>,
    /// Symbols of these files, such as `parse`; whole files when absent.
    #[serde(default)]
    symbols: Vec<String>,
    /// Seconds until it lapses.
    ttl_s: Option<u64>,
    /// Absolute path of your git work tree, if you work in a linked one.
    worktree: Option<String>,
}

/// An announced change, with its texts and lists shortened.
#[derive(Serialize, JsonSchema)]
pub(super) struct Intent {
    /// The id that identifies it in intent_update.
    pub(super) intent_id: String,
    /// The agent that has announced it.
    agent: String,
    /// The change: its owner's words, data.
    description: String,
    /// Paths of the files that it will change.
    files: Vec<String>,
    /// Symbols of these files that it will change; empty for whole files.
    symbols: Vec<String>,
    /// `declared`, `active`, `resolved`, `abandoned`.
    status: String,
    /// When it was declared.
    declared_at: String,
    /// When it lapses.
    expires_at: String,
}

/// The most files or symbols of an intent that are shown.
const PLACES: usize = 50;

pub(super) fn intent(it: wire::Intent) -> Intent {
    let files: Vec<String> = it.files.into_iter().map(|file| file.path).collect();
    Intent {
        intent_id: it.id,
        agent: it.agent,
        description: short(&it.description, SHOWN_CHARS),
        files: crate::words::first_of(&files, PLACES),
        symbols: crate::words::first_of(&it.symbols, PLACES),
        status: it.status,
        declared_at: it.declared_at,
        expires_at: it.expires_at,
    }
}

/// The new intent, and its collisions.
#[derive(Serialize, JsonSchema)]
struct Declared {
    /// The caller's new intent.
    intent: Intent,
    /// The locks and intents of other agents that the change collides with.
    conflicts: Vec<Told>,
    /// Conflicts that are not listed.
    more: usize,
}

/// A warning about an obstacle or a fact.
#[derive(Serialize, JsonSchema)]
pub(super) struct Told {
    /// The kind of warning, in the words of `api::wire::Told`.
    kind: String,
    /// The warning as a sentence; it names the other agent if there is one.
    pub(super) message: String,
    /// The agent that has the lock, claim or intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    /// The symbol that is locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// The number of the lock's grant, for warnings about a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    /// When the lock ends, for warnings about a lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    /// The id of the other agent's intent, for warnings about an intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    intent_id: Option<String>,
}

impl From<wire::Told> for Told {
    fn from(it: wire::Told) -> Self {
        Self {
            kind: it.kind,
            message: short(&it.message, SHOWN_CHARS),
            holder: it.holder,
            symbol: it.symbol,
            fence: it.fence,
            until: it.until,
            intent_id: it.intent,
        }
    }
}

/// Returns as many as fit, and the number of the others.
pub(super) fn told(conflicts: Vec<wire::Told>, more: usize) -> (Vec<Told>, usize) {
    let all = conflicts.len();
    let short = conflicts.into_iter().map(Told::from);
    let (shown, _) = page::fitting(short, provost_base::limits::MCP_PAGE_ROWS_MAX);
    let left = all - shown.len();
    (shown, more + left)
}

/// The kind of a warning that is no conflict: some conflicts may be missing.
const INCOMPLETE: &str = "incomplete";

pub(super) fn in_words(conflicts: &[Told], more: usize) -> String {
    let incomplete = |it: &&Told| it.kind == INCOMPLETE;
    match conflicts.iter().filter(|it| !incomplete(it)).count() + more {
        0 => {
            let gaps = conflicts.iter().map(|it| one_line(&it.message, SHOWN_CHARS));
            match gaps.len() {
                0 => "Nothing is in the way.".into(),
                _ => listed("Nothing is in the way as far as is known:", gaps),
            }
        }
        many => {
            let head = if many == 1 { "One conflict:".into() } else { format!("{many} conflicts:") };
            listed(&head, conflicts.iter().map(|it| one_line(&it.message, SHOWN_CHARS)))
        }
    }
}

async fn declare(call: Call, asked: Declare) -> Result<Said<Declared>, ToolError> {
    let request = wire::Declare {
        description: asked.description,
        files: asked.files,
        symbols: asked.symbols,
        ttl_ms: asked.ttl_s.map(|it| it.saturating_mul(1_000)),
        worktree: call.worktree(asked.worktree),
        grants: Vec::new(),
    };
    let done = call.client().declare(&request).await?;
    let (conflicts, more) = told(done.conflicts, done.more);
    let intent = intent(done.intent);
    let text = format!(
        "Intent {} is declared until {}. {}",
        intent.intent_id,
        intent.expires_at,
        in_words(&conflicts, more)
    );
    Ok(Said { text, answer: Declared { intent, conflicts, more } })
}

/// The new status of an intent.
#[derive(Deserialize, JsonSchema)]
struct Update {
    /// Its id.
    intent_id: String,
    /// `active`, `resolved` or `abandoned`.
    status: String,
}

async fn update(call: Call, asked: Update) -> Result<Said<Intent>, ToolError> {
    let request = wire::UpdateIntent { id: asked.intent_id, to: asked.status, force: false };
    let now = intent(call.client().update_intent(&request).await?);
    Ok(Said { text: format!("Intent {} is {}.", now.intent_id, now.status), answer: now })
}

/// A filter of intents; without members, all live ones.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only your own.
    #[serde(default)]
    mine: bool,
    /// Only this agent's.
    agent: Option<String>,
    /// Only those for this file.
    file: Option<String>,
    /// Only those with this status; live ones when absent.
    status: Option<String>,
    /// From the last answer.
    cursor: Option<String>,
    /// Most rows, up to 100.
    limit: Option<usize>,
}

async fn list(call: Call, asked: Which) -> Result<Said<Page<Intent>>, ToolError> {
    let query = wire::Whose { mine: asked.mine, agent: asked.agent, file: asked.file, status: asked.status };
    let all = call.client().intents(&query).await?.into_iter().map(intent).collect();
    let place = |it: &Intent| format!("{} {}", it.declared_at, it.intent_id);
    let found = page::page(&call, (asked.cursor, asked.limit), all, place).await?;
    let lines = found.rows.iter().map(|it| {
        let places = named("files", &it.files) + &named("symbols", &it.symbols);
        let what = fenced(&one_line(&it.description, SHOWN_CHARS));
        format!(
            "intent {} of {}, {} until {}{places}:{what}",
            it.intent_id, it.agent, it.status, it.expires_at
        )
    });
    let text = listed(&format!("{} intents.", found.rows.len()), lines) + &more(found.cursor.as_deref());
    Ok(Said { text, answer: found })
}

/// The change to compare with locks and intents.
#[derive(Deserialize, JsonSchema)]
struct Check {
    /// Such as `src/app.py`.
    files: Vec<String>,
    /// Symbols of these files, such as `parse`; whole files when absent.
    #[serde(default)]
    symbols: Vec<String>,
    /// Absolute path of your git work tree, if you work in a linked one.
    worktree: Option<String>,
}

/// The collisions that the change would have.
#[derive(Serialize, JsonSchema)]
struct Conflicts {
    /// The locks and intents that the change would collide with.
    conflicts: Vec<Told>,
    /// The number of conflicts that are not listed.
    more: usize,
}

async fn check(call: Call, asked: Check) -> Result<Said<Conflicts>, ToolError> {
    let Check { files, symbols, worktree } = asked;
    let worktree = call.worktree(worktree);
    let found = call.client().check_conflicts(&wire::CheckConflicts { files, symbols, worktree }).await?;
    let (conflicts, more) = told(found.conflicts, found.more);
    Ok(Said { text: in_words(&conflicts, more), answer: Conflicts { conflicts, more } })
}
