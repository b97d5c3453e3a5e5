//! Locks on symbols and files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits::MCP_WAIT_S_MAX;
use crate::client::wire;
use crate::mcp::call::Call;
use crate::mcp::page;
use crate::mcp::tool::{About, Entry, Fault, Kind, Said};
use crate::mcp::words::{listed, one_line, short};

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "lock_acquire",
            title: "Take a lock",
            description: "Takes the lock on a symbol (`src/a.rs:parse`) or a whole file (`src/a.rs`), or refreshes yours. It ends by itself after ttl_s. Warnings name what else others are doing nearby.",
            kind: Kind::Steady,
        }
        .does(acquire),
        About {
            name: "lock_release",
            title: "Give a lock back",
            description: "Gives up a lock of yours.",
            kind: Kind::Ends,
        }
        .does(release),
        About {
            name: "locks_list",
            title: "List locks",
            description: "Who holds which symbols and files, what for and until when, and who waits.",
            kind: Kind::Reads,
        }
        .does(list),
    ]
}

/// On what, and for how long.
#[derive(Deserialize, JsonSchema)]
struct Acquire {
    /// `file:symbol`; without a symbol, the whole file. Paths are from the root of the repository.
    symbol: String,
    /// For how long, in seconds; half an hour when absent.
    ttl_s: Option<u64>,
    /// How long to wait for it when somebody else has it, in seconds, up to 45.
    wait_s: Option<u64>,
    /// What for, in a few words that others will read.
    reason: Option<String>,
}

async fn acquire(call: Call, asked: Acquire) -> Result<Said<wire::Locked>, Fault> {
    let request = wire::TakeLock {
        symbol: asked.symbol,
        ttl_ms: asked.ttl_s.map(|it| it.saturating_mul(1_000)),
        wait_ms: asked.wait_s.map(|it| it.min(MCP_WAIT_S_MAX) * 1_000),
        reason: asked.reason,
        ..wire::TakeLock::default()
    };
    let waits = format!("Waiting for the lock on {}.", request.symbol);
    let locked = call.beat().during(&waits, call.client().lock(&request)).await?;
    let warnings: String = locked.warnings.iter().map(|it| format!(" Warning: {}", it.message)).collect();
    let text = format!("{} is yours until {}.{warnings}", locked.lock.symbol, locked.lock.until);
    Ok(Said { text, answer: locked })
}

/// Which lock.
#[derive(Deserialize, JsonSchema)]
struct Release {
    /// `file:symbol`, as it was taken.
    symbol: String,
    /// Only if it still is this grant.
    fence: Option<u64>,
}

async fn release(call: Call, asked: Release) -> Result<Said<wire::Lock>, Fault> {
    let request = wire::Unlock { symbol: asked.symbol, fence: asked.fence, ..wire::Unlock::default() };
    let lock = call.client().unlock(&request).await?;
    Ok(Said { text: format!("{} is free.", lock.symbol), answer: lock })
}

/// Which locks.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Only your own.
    #[serde(default)]
    mine: bool,
    /// Only those in this file.
    file: Option<String>,
    /// Where the last page ended.
    cursor: Option<String>,
    /// So many at most, up to 100.
    limit: Option<usize>,
}

/// Who has locked what.
#[derive(Serialize, JsonSchema)]
struct Locks {
    /// By symbol.
    locks: Vec<wire::Lock>,
    /// The first of those who wait for one, longest first.
    waiting: Vec<wire::Waiter>,
    /// For the next page; there is none without.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// Waiters that are shown, and how much of a reason.
const WAITERS: usize = 20;
const REASON_CHARS: usize = 300;

async fn list(call: Call, asked: Which) -> Result<Said<Locks>, Fault> {
    let query = wire::Whose { mine: asked.mine, file: asked.file, ..wire::Whose::default() };
    let found = call.client().locks(&query).await?;
    let head = format!("{} locks, {} waiting.", found.locks.len(), found.waiting.len());
    let cut = |it: wire::Lock| wire::Lock { reason: it.reason.map(|it| short(&it, REASON_CHARS)), ..it };
    let all = found.locks.into_iter().map(cut).collect();
    let page = page::page(&call, (asked.cursor, asked.limit), all, |it| it.symbol.clone()).await?;
    let lines = page.rows.iter().map(|it| {
        let why = it.reason.as_deref().map(|it| format!(": {}", one_line(it, 100))).unwrap_or_default();
        format!("{} of {} until {}{why}", one_line(&it.symbol, 300), it.holder, it.until)
    });
    let text = listed(&head, lines);
    let waiting = found.waiting.into_iter().take(WAITERS).collect();
    Ok(Said { text, answer: Locks { locks: page.rows, waiting, cursor: page.cursor } })
}
