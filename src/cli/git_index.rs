//! Git's index and stash of a work tree as a resource, `@git:index`: an agent that writes them holds it for that moment.
//!
//! All agents of a work tree have one index. A commit would include what another agent has staged; a stash would remove what another
//! agent is about to commit. Hooks of hosts hold the resource around a shell command, git's own hooks around a commit. A commit within
//! such a command, or within `provost with @git:index`, has the same agent, or runs under the process with which the lock ends.

use super::tasks::short_time;
use super::{RepoContext, out};
use provost_api::wire;
use provost_base::Resource;
use provost_client::{Client, ClientError};

/// The name of the resource.
pub(super) const INDEX: &str = "@git:index";

/// The longest time of one hold, in milliseconds: for a command of a host that does not report its end.
pub(super) const MOMENT_MS: u64 = 120_000;

/// Returns the resource's name in the caller's work tree: in a linked one, the tree's name follows.
pub(super) fn name(here: &RepoContext) -> String {
    in_tree(here, INDEX).map_or_else(|| INDEX.to_owned(), |it| it.to_string())
}

/// Returns a resource with its name in the caller's work tree; `None` where the text names no resource.
pub(super) fn in_tree(here: &RepoContext, name: &str) -> Option<Resource> {
    let resource = Resource::parse(name).ok()?;
    Some(match here.linked_worktree() {
        Some(tree) => resource.in_tree(&tree),
        None => resource,
    })
}

/// The result of taking the index.
pub(super) enum Index {
    /// The caller now holds it for this moment.
    Taken,
    /// The caller, or a process that the caller runs in, held it already.
    Ours,
    /// Another agent holds it: the text says which one, and until when.
    Held(String),
}

/// Takes the index of this work tree for a moment, on behalf of a process, and waits for at most `wait_ms`. A lock
/// that ends with one of the processes in `above` is the caller's own.
///
/// # Errors
/// [`ClientError`], except for the conflict, which is an answer.
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

/// Checks whether the caller, or a process above this one, holds the index already: then nothing has to wait.
async fn is_ours(client: &Client, held: &wire::ErrorBody, above: &[u32]) -> Result<bool, ClientError> {
    let fence = held.data.as_ref().and_then(|it| it.get("fence")).and_then(serde_json::Value::as_u64);
    let Some(fence) = fence else { return Ok(false) };
    let (me, locks) = (client.who_am_i().await?.agent, client.locks(&wire::Whose::default()).await?.locks);
    let Some(lock) = locks.into_iter().find(|it| it.fence == fence) else { return Ok(false) };
    Ok(lock.holder == me || lock.pid.is_some_and(|pid| above.contains(&pid)))
}

/// Releases the index. A failure is ignored: the lock ends with its process, or after its time.
pub(super) async fn give_back(here: &RepoContext, client: &Client, fence: Option<u64>) {
    let request = wire::Unlock {
        symbol: INDEX.into(),
        fence,
        worktree: here.linked_worktree(),
        ..wire::Unlock::default()
    };
    let _late = client.unlock(&request).await;
}

/// Says which agent holds it, until when, and for what reason.
fn in_words(fault: &wire::ErrorBody) -> String {
    let text = |name: &str| fault.data.as_ref()?.get(name)?.as_str().map(|it| out::one_line(it, 200));
    let holder = text("holder").unwrap_or_else(|| "another agent".into());
    let until =
        text("until").map(|it| format!(" until {} at the latest", short_time(&it))).unwrap_or_default();
    let reason = text("reason").map(|it| format!(" ({it})")).unwrap_or_default();
    format!("git's index of this work tree is {holder}'s{until}{reason}")
}
