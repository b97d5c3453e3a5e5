//! Notes for the model after a tool call: files of others that a shell command has overwritten, and places that the agent still holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::call::HookInput;
use super::overwritten::{self, Changed, HeldFiles, TreePath};
use super::run::{self, Run};
use super::trees;
use super::waits::within;
use crate::{CliError, RepoContext, out};
use provost_api::wire;
use provost_base::limits::{HOOK_ASIDE_MS_MAX, HOOK_OBSTACLES_NAMED_MAX, WIT_WORKTREES_MAX};
use provost_base::{AgentId, Resource};
use provost_client::{Client, ClientError};

/// Returns an id for one call of a tool, before and after it. Cursor does not number commands: there the command's text is the id.
pub(super) fn call(told: &HookInput) -> Value {
    let tool = told.tool().unwrap_or_default();
    match (told.text("tool_use_id"), told.text("command")) {
        (Some(id), _) => json!([tool, id]),
        (None, Some(command)) => json!([tool, command]),
        (None, None) => json!([tool, told.arguments()]),
    }
}

/// Copies the files that other agents hold, before a command. Without a daemon no agent holds anything, and a command
/// that cannot be watched still runs.
pub(super) fn put_aside(asked: &Run, here: &RepoContext, told: &HookInput, until: Instant) {
    let Ok(agent) = run::agent(asked, told, here) else { return };
    let until = until.min(Instant::now() + Duration::from_millis(HOOK_ASIDE_MS_MAX));
    let Ok(client) = here.speaking(agent.clone()) else { return };
    let held = within(here, until, async { Ok(held_by_others(here, &client).await?) });
    if let Ok(held) = held {
        overwritten::put_aside(here, &agent, &call(told), &held);
    }
}

/// Returns the files in which other agents hold places: those of this work tree, and those of others in which they write.
async fn held_by_others(here: &RepoContext, client: &Client) -> Result<HeldFiles, ClientError> {
    let locks = client.locks(&wire::Whose::default()).await?.locks;
    let claims = client.claims(&wire::ClaimsQuery::default()).await?;
    if locks.is_empty() && claims.is_empty() {
        return Ok(HeldFiles::new());
    }
    let me = client.who_am_i().await?.agent;
    let ours = &here.places.worktree;
    let is_elsewhere = |it: &wire::Lock| it.written_in.as_deref().is_some_and(|it| Path::new(it) != ours);
    let tops =
        if locks.iter().any(is_elsewhere) { here.places.worktrees(WIT_WORKTREES_MAX) } else { Vec::new() };
    let tree_of = |it: &wire::Lock| match it.written_in.as_deref().map(Path::new) {
        Some(tree) if tree != ours => tops.iter().find(|it| *it == tree).cloned(),
        _ => Some(ours.clone()),
    };
    let is_file = |it: &wire::Lock| !Resource::is_meant(&it.symbol);
    let others = locks.into_iter().filter(|it| it.holder != me && is_file(it));
    let locked = others.filter_map(|it| Some(((tree_of(&it)?, file_of(&it.symbol)), it.holder)));
    let claimed = claims.into_iter().filter(|it| it.holder != me);
    let claimed = claimed.map(|it| ((ours.clone(), it.file), it.holder));
    let mut held = HeldFiles::new();
    for (place, holder) in locked.chain(claimed) {
        held.entry(place).or_default().insert(holder);
    }
    Ok(held)
}

fn file_of(symbol: &str) -> String {
    symbol.split_once(':').map_or(symbol, |(file, _)| file).to_owned()
}

/// The changed places, by holder and file.
type ByHolder = BTreeMap<String, BTreeMap<TreePath, BTreeSet<String>>>;

/// Finds the holders of the changed places.
async fn holders_of(here: &RepoContext, client: &Client, changed: &[Changed]) -> Result<ByHolder, CliError> {
    let mut by_holder = ByHolder::new();
    let trees: BTreeSet<&PathBuf> = changed.iter().map(|it| &it.place.0).collect();
    for tree in trees {
        let edits = changed.iter().filter(|it| it.place.0 == *tree).map(Changed::edit).collect();
        let guarded = client.guard(&wire::Guard { edits, worktree: trees::linked(here, tree) }).await?;
        for it in guarded.blocked {
            let lock = it.lock.map(|it| (it.holder, file_of(&it.symbol), it.symbol));
            let Some((holder, file, what)) =
                lock.or_else(|| it.claim.map(|it| (it.holder, it.file.clone(), it.file)))
            else {
                continue;
            };
            by_holder.entry(holder).or_default().entry((tree.clone(), file)).or_default().insert(what);
        }
    }
    // A command that commits the files that it has overwritten ends the leases in them.
    let still = held_by_others(here, client).await?;
    for file in changed {
        let is_held = |it: &&String| still.get(&file.place).is_some_and(|now| now.contains(*it));
        for holder in file.holders.iter().filter(|it| !is_held(it)) {
            let of_it = by_holder.entry(holder.clone()).or_default();
            of_it.entry(file.place.clone()).or_insert_with(|| BTreeSet::from([file.place.1.clone()]));
        }
    }
    Ok(by_holder)
}

/// Handles places of others that a command has changed: keeps both versions, sends the holders a message, and returns a
/// note for the model.
pub(super) async fn overwritten(
    here: &RepoContext,
    agent: AgentId,
    told: &HookInput,
) -> Result<Option<String>, CliError> {
    let found = overwritten::take_changed(here, &agent, &call(told));
    let changed = &found.changed;
    if changed.is_empty() {
        return Ok(None);
    }
    let client = here.daemon(Some(agent.clone())).await?;
    let by_holder = holders_of(here, &client, changed).await?;
    if by_holder.is_empty() {
        return Ok(None);
    }
    let mut kept = BTreeMap::new();
    for file in changed {
        let is_held = by_holder.values().any(|it| it.contains_key(&file.place));
        if is_held {
            let versions = file.keep(&here.places).map_err(|err| {
                CliError::of(format!("the versions of {} cannot be kept", file.place.1)).because(err)
            })?;
            kept.insert(file.place.clone(), versions);
        }
    }
    let mut lines = Vec::new();
    for (holder, files) in &by_holder {
        let lines_of_it = files.iter().map(|(file, what)| {
            let what: Vec<String> = what.iter().map(|it| out::one_line(it, 200)).collect();
            let kept = kept.get(file).map(String::as_str).unwrap_or_default();
            let tree = match file.0 == here.places.worktree {
                true => String::new(),
                false => format!(" in {}", out::name(&file.0.to_string_lossy(), 300)),
            };
            format!("{}{tree} ({kept})", what.join(", "))
        });
        let what: Vec<String> = lines_of_it.take(HOOK_OBSTACLES_NAMED_MAX).collect();
        let text = format!(
            "A shell command of {agent} has changed what you hold:\n{}\nBoth versions are kept; to bring one back, copy it.",
            what.join("\n")
        );
        let message = wire::SendMessage {
            kind: "message".into(),
            to: Some(holder.clone()),
            text,
            ..wire::SendMessage::default()
        };
        let sent = client.send_message(&message).await;
        let sent = if sent.is_ok() { "it was told" } else { "it could not be told" };
        lines.extend(what.into_iter().map(|it| format!("{}: {it}; {sent}", out::one_line(holder, 100))));
    }
    Ok(Some(format!(
        "Provost: the command has changed what other agents hold:\n{}\nAgree with them on what becomes of it. To take the \
         change back, copy the version before it over the file, or remove a file that was not there.",
        lines.join("\n")
    )))
}

/// Says what the agent holds in this work tree by uncommitted writes and by locks that it took; `None` where no daemon runs.
pub(super) async fn still_held(here: &RepoContext, agent: AgentId) -> Result<Option<String>, CliError> {
    let client = here.speaking(agent)?;
    let mine = wire::Whose { mine: true, ..wire::Whose::default() };
    let locks = match client.locks(&mine).await {
        Ok(locks) => locks.locks,
        Err(ClientError::NotRunning(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let tree = here.places.worktree.to_string_lossy();
    let written = locks.iter().filter(|it| it.written_in.as_deref() == Some(&*tree));
    let taken = locks.iter().filter(|it| it.written_in.is_none() && !Resource::is_meant(&it.symbol));
    let written = named(written).map(|names| {
        format!(
            "Provost: you still hold what you have written and not committed: {names}. Other agents cannot write it until you \
             commit it, or have not written there for a while. Commit it when it is done, or give it back with lock_release."
        )
    });
    let taken = named(taken).map(|names| {
        format!(
            "Provost: you hold locks that you took: {names}. A commit does not end them, but for those marked so: give back with \
             lock_release what you do not need any more."
        )
    });
    Ok(super::inbox::beside(written, taken))
}

/// Names the places of some locks, up to the bound for a model.
fn named<'a>(locks: impl Iterator<Item = &'a wire::Lock>) -> Option<String> {
    let mark = |it: &wire::Lock| if it.until_commit { " (until it is committed)" } else { "" };
    let all: Vec<String> = locks.map(|it| format!("{}{}", out::name(&it.symbol, 200), mark(it))).collect();
    let more = all.len().saturating_sub(HOOK_OBSTACLES_NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = all[..all.len().min(HOOK_OBSTACLES_NAMED_MAX)].join(", ");
    (!all.is_empty()).then(|| format!("{names}{more}"))
}
