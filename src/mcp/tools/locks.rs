//! Locks on symbols and files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::intents::{Told, told};
use crate::call::Call;
use crate::page;
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{fenced, listed, more, one_line, short};
use provost_api::wire;
use provost_base::limits::MCP_WAIT_S_MAX;

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "lock_acquire",
            title: "Take a lock",
            description: "Locks a symbol, a whole file or a resource (`@db:test`) for you, or refreshes your lock. Call it right before you edit or use what others may too; not for files that only you touch. While another agent has it, the call is refused, or waits up to wait_s. Give it back with lock_release.",
            kind: Kind::Steady,
        }
        .does(acquire),
        About {
            name: "lock_release",
            title: "Give a lock back",
            description: "Gives back a lock of yours. Call it as soon as your edit is written.",
            kind: Kind::Ends,
        }
        .does(release),
        About {
            name: "locks_list",
            title: "List locks",
            description: "Lists locks: who holds what, what for, until when, and who waits.",
            kind: Kind::Reads,
        }
        .does(list),
    ]
}

/// The symbol to lock, and the time.
#[derive(Deserialize, JsonSchema)]
struct Acquire {
    /// Such as `src/app.py:parse`; a path alone is the whole file; `@port:5432` a resource.
    symbol: String,
    /// Seconds until it ends; 1800 when absent.
    ttl_s: Option<u64>,
    /// Seconds to wait while another agent has it, up to 45.
    wait_s: Option<u64>,
    /// The purpose, in a few words for others.
    reason: Option<String>,
}

/// A lock of any agent, as tools show it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Held {
    /// The locked symbol, as `file:Path`.
    pub(super) symbol: String,
    /// The agent that has the lock.
    pub(super) holder: String,
    /// The number of the grant, which rises with every grant.
    fence: u64,
    /// When the lock was granted or last refreshed.
    since: String,
    /// When the lock ends by itself.
    pub(super) until: String,
    /// The purpose, in the holder's words; shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The task with which the lock ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
}

impl From<wire::Lock> for Held {
    fn from(it: wire::Lock) -> Self {
        Self {
            symbol: it.symbol,
            holder: it.holder,
            fence: it.fence,
            since: it.since,
            until: it.until,
            reason: it.reason.map(|it| short(&it, REASON_CHARS)),
            task_id: it.task,
        }
    }
}

/// A lock of the caller's.
#[derive(Serialize, JsonSchema)]
struct Locked {
    /// The caller's lock, as it is now.
    lock: Held,
    /// Warnings for the caller.
    warnings: Vec<Told>,
    /// The number of warnings that are not listed.
    more: usize,
}

async fn acquire(call: Call, asked: Acquire) -> Result<Said<Locked>, ToolError> {
    let request = wire::TakeLock {
        symbol: asked.symbol,
        ttl_ms: asked.ttl_s.map(|it| it.saturating_mul(1_000)),
        wait_ms: asked.wait_s.map(|it| it.min(MCP_WAIT_S_MAX) * 1_000),
        reason: asked.reason,
        worktree: call.worktree(None),
        ..wire::TakeLock::default()
    };
    let waits = format!("Waiting for the lock on {}.", request.symbol);
    let locked = call.beat().during(&waits, call.client().lock(&request)).await?;
    let (warnings, more) = told(locked.warnings, locked.more);
    let lock = Held::from(locked.lock);
    let head = format!("{} is yours until {} (fence {}).", lock.symbol, lock.until, lock.fence);
    let lines = warnings.iter().map(|it| format!("warning: {}", one_line(&it.message, 500)));
    let text = listed(&head, lines);
    Ok(Said { text, answer: Locked { lock, warnings, more } })
}

/// The lock to release.
#[derive(Deserialize, JsonSchema)]
struct Release {
    /// As it was locked.
    symbol: String,
    /// Only with this fence.
    fence: Option<u64>,
}

async fn release(call: Call, asked: Release) -> Result<Said<Held>, ToolError> {
    let request = wire::Unlock {
        symbol: asked.symbol,
        fence: asked.fence,
        worktree: call.worktree(None),
        ..wire::Unlock::default()
    };
    let lock = call.client().unlock(&request).await?;
    Ok(Said { text: format!("{} is free.", lock.symbol), answer: lock.into() })
}

/// A filter of locks; without members, all locks.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only your own.
    #[serde(default)]
    mine: bool,
    /// Only those in this file.
    file: Option<String>,
    /// From the last answer.
    cursor: Option<String>,
    /// Most rows, up to 100.
    limit: Option<usize>,
}

/// Locks of all agents.
#[derive(Serialize, JsonSchema)]
struct Locks {
    /// The locks, by their symbols.
    locks: Vec<Held>,
    /// The first agents that wait for a lock, longest wait first.
    waiting: Vec<wire::Waiter>,
    /// The cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// The most waiters that are shown, and the longest reason.
const WAITERS: usize = 20;
const REASON_CHARS: usize = 300;

async fn list(call: Call, asked: Which) -> Result<Said<Locks>, ToolError> {
    let query = wire::Whose { mine: asked.mine, file: asked.file, ..wire::Whose::default() };
    let found = call.client().locks(&query).await?;
    let head = format!("{} locks, {} waiting.", found.locks.len(), found.waiting.len());
    let all = found.locks.into_iter().map(Held::from).collect();
    let page = page::page(&call, (asked.cursor, asked.limit), all, |it| {
        // Several agents may hold units of a counted resource.
        format!("{} {:020}", it.symbol, it.fence)
    })
    .await?;
    let lines = page.rows.iter().map(|it| {
        let why = it.reason.as_deref().map(|it| fenced(&one_line(it, REASON_CHARS))).unwrap_or_default();
        let (symbol, holder, fence) = (one_line(&it.symbol, 300), &it.holder, it.fence);
        format!("{symbol} is locked by {holder} until {} (fence {fence}){why}", it.until)
    });
    let waiting: Vec<wire::Waiter> = found.waiting.into_iter().take(WAITERS).collect();
    let waits = waiting
        .iter()
        .map(|it| format!("{} waits for {} until {}", it.agent, one_line(&it.symbol, 300), it.until));
    let text = listed(&head, lines.chain(waits)) + &more(page.cursor.as_deref());
    Ok(Said { text, answer: Locks { locks: page.rows, waiting, cursor: page.cursor } })
}
