//! Git's index and stash of a work tree as a resource, `@git:index`: who writes them holds it for that moment.
//!
//! All agents of a work tree have one index. What one has staged, another's commit would take along; a stash takes away what
//! another is about to commit. Hooks of hosts hold it around a shell command, git's own hooks around a commit. A commit within such a
//! command, or within `provost with @git:index`, is its own agent's, or below the process with which the lock ends.

use super::tasks::short_time;
use super::{RepoContext, out};
use provost_api::wire;
use provost_base::Resource;
use provost_client::{Client, ClientError};

/// What it is called.
pub(super) const INDEX: &str = "@git:index";

/// How long one moment lasts at most, in milliseconds: a command of a host that does not say when it has ended.
pub(super) const MOMENT_MS: u64 = 120_000;

/// What it is called in the caller's work tree: that of a linked one has the tree's name behind it.
pub(super) fn name(here: &RepoContext) -> String {
    in_tree(here, INDEX).map_or_else(|| INDEX.to_owned(), |it| it.to_string())
}

/// A resource as it is named in the caller's work tree; `None` where the text names no resource.
pub(super) fn in_tree(here: &RepoContext, name: &str) -> Option<Resource> {
    let resource = Resource::parse(name).ok()?;
    Some(match here.linked_worktree() {
        Some(tree) => resource.in_tree(&tree),
        None => resource,
    })
}

/// How it stands with the index.
pub(super) enum Index {
    /// It is held for this moment.
    Taken,
    /// It is the caller's from before, or of what the caller runs in.
    Ours,
    /// Another agent has it: who, and until when.
    Held(String),
}

/// Takes the index of this work tree for a moment, for a process; waits for it no longer than so. What ends with one of the processes
/// that are `above` is the caller's.
///
/// # Errors
/// [`ClientError`], but for the conflict, which is an answer.
pub(super) async fn take(
    here: &RepoContext,
    client: &Client,
    pid: Option<u32>,
    (why, above): (&str, &[u32]),
    wait_ms: u64,
) -> Result<Index, ClientError> {
    let request = wire::TakeLock {
        symbol: INDEX.into(),
        ttl_ms: Some(MOMENT_MS),
        reason: Some(why.into()),
        pid,
        fresh: true,
        worktree: here.linked_worktree(),
        ..wire::TakeLock::default()
    };
    let held = match client.lock(&request).await {
        Ok(_) => return Ok(Index::Taken),
        Err(ClientError::Refused { fault, .. }) if fault.error == "lock_conflict" => fault,
        Err(error) => return Err(error),
    };
    if is_ours(client, &held, above).await? {
        return Ok(Index::Ours);
    }
    let request = wire::TakeLock { wait_ms: Some(wait_ms.max(1)), ..request };
    match client.lock(&request).await {
        Ok(_) => Ok(Index::Taken),
        Err(ClientError::Refused { fault, .. })
            if matches!(fault.error.as_str(), "lock_conflict" | "would_deadlock") =>
        {
            Ok(Index::Held(in_words(&fault)))
        }
        Err(error) => Err(error),
    }
}

/// Whether the index is the caller's own already, or of a process above this one: what runs within waits for nothing.
async fn is_ours(client: &Client, held: &wire::ErrorBody, above: &[u32]) -> Result<bool, ClientError> {
    let fence = held.data.as_ref().and_then(|it| it.get("fence")).and_then(serde_json::Value::as_u64);
    let Some(fence) = fence else { return Ok(false) };
    let (me, locks) = (client.who_am_i().await?.agent, client.locks(&wire::Whose::default()).await?.locks);
    let Some(lock) = locks.into_iter().find(|it| it.fence == fence) else { return Ok(false) };
    Ok(lock.holder == me || lock.pid.is_some_and(|pid| above.contains(&pid)))
}

/// Gives back what was taken. What cannot be given back now ends with its process, or its time.
pub(super) async fn give_back(here: &RepoContext, client: &Client, fence: Option<u64>) {
    let request = wire::Unlock {
        symbol: INDEX.into(),
        fence,
        worktree: here.linked_worktree(),
        ..wire::Unlock::default()
    };
    let _late = client.unlock(&request).await;
}

/// The agent that has it, since when, and for what.
fn in_words(fault: &wire::ErrorBody) -> String {
    let text = |name: &str| fault.data.as_ref()?.get(name)?.as_str().map(|it| out::one_line(it, 200));
    let holder = text("holder").unwrap_or_else(|| "another agent".into());
    let until =
        text("until").map(|it| format!(" until {} at the latest", short_time(&it))).unwrap_or_default();
    let reason = text("reason").map(|it| format!(" ({it})")).unwrap_or_default();
    format!("git's index of this work tree is {holder}'s{until}{reason}")
}
