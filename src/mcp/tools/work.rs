//! A change from its beginning to its end: announced, locked, and released, with one call each.
//!
//! This module remembers nothing. An intent stands for a piece of work and has the grants of the locks that were
//! taken for it: its end releases these, and no earlier lock.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::intents::{Told, in_words, intent, told};
use super::locks::Held;
use crate::call::Call;
use crate::tool::{About, Entry, Kind, Said, ToolError};
use crate::words::{listed, one_line};
use provost_api::wire;
use provost_base::Resource;
use provost_base::limits::{LOCK_TTL_S, MCP_PLACES_MAX, MCP_WAIT_S_MAX};
use provost_client::{Client, ClientError};

pub(super) fn tools() -> Vec<Entry> {
    vec![
        About {
            name: "work_begin",
            title: "Begin a change",
            description: "Announces a change, locks its places for you, and says what it collides with, in one call. Call it before you edit code that others may edit. All places are locked, or none. End it with work_end.",
            kind: Kind::Begins,
        }
        .does(begin),
        About {
            name: "work_end",
            title: "End a change",
            description: "Ends what work_begin has begun: gives its locks back and closes the announcement. Call it when the change is written, and also when you give it up.",
            kind: Kind::Ends,
        }
        .does(end),
    ]
}

/// The change to begin.
#[derive(Deserialize, JsonSchema)]
struct Begin {
    /// What you are about to do, in a sentence for the others.
    description: String,
    /// Such as `src/app.py:parse` or `src/session.ts:Session.renew`; a path alone is the whole file.
    places: Vec<String>,
    /// Seconds until it ends; 1800 when absent.
    ttl_s: Option<u64>,
    /// Seconds to wait while other agents have a place, up to 45.
    wait_s: Option<u64>,
    /// Absolute path of your git work tree, if you work in a linked one.
    worktree: Option<String>,
}

/// The beginning of a change: its intent, its locks, and its collisions.
#[derive(Serialize, JsonSchema)]
struct Begun {
    /// The id of the intent, which work_end takes.
    intent_id: String,
    /// The locks that the caller has now.
    locks: Vec<Held>,
    /// The collisions, and other facts to know.
    conflicts: Vec<Told>,
    /// The number of conflicts that are not listed.
    more: usize,
}

/// Splits a place into its file and symbol.
fn parts(place: &str) -> (&str, &str) {
    place.split_once(':').unwrap_or((place, ""))
}

/// Returns the places of code. A resource is locked with the others, but it is no file to announce.
fn of_code(places: &BTreeSet<String>) -> impl Iterator<Item = &String> {
    places.iter().filter(|it| !Resource::is_meant(it))
}

/// Returns the files of places, each once.
fn files_of(places: &BTreeSet<String>) -> Vec<String> {
    let files: BTreeSet<&str> = of_code(places).map(|it| parts(it).0).collect();
    files.into_iter().map(str::to_owned).collect()
}

/// Returns the symbols by which a change is announced. If one of its places is a whole file, there are none: an
/// intent's symbols apply to all of its files.
fn symbols_of(places: &BTreeSet<String>) -> Vec<String> {
    let symbols: BTreeSet<&str> = of_code(places).map(|it| parts(it).1).collect();
    if symbols.contains("") { Vec::new() } else { symbols.into_iter().map(str::to_owned).collect() }
}

/// Returns the requested places, each once.
fn places_of(asked: &[String]) -> Result<BTreeSet<String>, ToolError> {
    // Every agent takes places in the same order, so that no two agents wait for each other.
    let places: BTreeSet<String> = asked.iter().map(|it| it.trim().to_owned()).collect();
    if places.is_empty() || places.len() > MCP_PLACES_MAX {
        return Err(ToolError::new(format!(
            "`places` has 1 to {MCP_PLACES_MAX} entries, such as `src/app.py:parse`"
        )));
    }
    if of_code(&places).next().is_none() {
        return Err(ToolError::new("`places` names no code; a resource alone is taken with lock_acquire"));
    }
    Ok(places)
}

async fn begin(call: Call, asked: Begin) -> Result<Said<Begun>, ToolError> {
    let places = places_of(&asked.places)?;
    let worktree = call.worktree(asked.worktree);
    let ttl_ms = asked.ttl_s.map(|it| it.saturating_mul(1_000));
    let had = call.client().locks(&wire::Whose { mine: true, ..wire::Whose::default() }).await?;
    // If the work cannot begin, only the locks that it has taken are given back.
    let had: BTreeSet<u64> = had.locks.iter().map(|it| it.fence).collect();
    let until = Instant::now() + Duration::from_secs(asked.wait_s.unwrap_or(0).min(MCP_WAIT_S_MAX));
    let mut begun = Beginning {
        client: call.client().clone(),
        had,
        taken: BTreeSet::new(),
        places: places.clone(),
        worktree: worktree.clone(),
        is_open: true,
    };
    let (mut locks, mut known, mut more) = (Vec::new(), Vec::new(), 0);
    for place in &places {
        let left = until.saturating_duration_since(Instant::now());
        let request = wire::TakeLock {
            symbol: place.clone(),
            ttl_ms,
            at_least: true,
            wait_ms: u64::try_from(left.as_millis()).ok().filter(|it| *it > 0),
            reason: Some(asked.description.clone()),
            worktree: worktree.clone(),
            ..wire::TakeLock::default()
        };
        let waits = format!("Waiting for the lock on {}.", one_line(place, 200));
        match call.beat().during(&waits, call.client().lock(&request)).await {
            Ok(locked) => {
                known.extend(locked.warnings);
                more += locked.more;
                begun.taken.insert(locked.lock.fence);
                locks.push(locked.lock);
            }
            Err(error) => return Err(begun.undone(place, error).await),
        }
    }
    let grants = match of_works(&begun).await {
        Ok(grants) => grants,
        Err(error) => return Err(begun.undone("the announcement", error).await),
    };
    let declare = wire::Declare {
        description: asked.description,
        files: files_of(&places),
        symbols: symbols_of(&places),
        ttl_ms: Some(asked.ttl_s.unwrap_or(LOCK_TTL_S).saturating_mul(1_000)),
        worktree,
        grants,
    };
    let declared = match announced(call.client().clone(), declare).await {
        Ok(declared) => declared,
        Err(error) => return Err(begun.undone("the announcement", error).await),
    };
    begun.is_open = false;
    known.extend(declared.conflicts);
    let (conflicts, more) = told(known, more + declared.more);
    let intent = intent(declared.intent);
    let locks: Vec<Held> = locks.into_iter().map(Held::from).collect();
    let lines = locks.iter().map(|it| format!("{} is yours until {}", it.symbol, it.until));
    let head = format!("Work {} has begun; end it with work_end.", intent.intent_id);
    let text = format!("{}\n{}", listed(&head, lines), in_words(&conflicts, more));
    Ok(Said { text, answer: Begun { intent_id: intent.intent_id, locks, conflicts, more } })
}

/// Returns the grants of the beginning work: the new ones, and those that another work of the caller was given
/// before. The last of several works releases them.
async fn of_works(begun: &Beginning) -> Result<Vec<u64>, ClientError> {
    let (new, known): (Vec<u64>, Vec<u64>) = begun.taken.iter().partition(|it| !begun.had.contains(it));
    if known.is_empty() {
        return Ok(new);
    }
    let shared = grants_of_works(&begun.client).await?;
    Ok(new.into_iter().chain(known.into_iter().filter(|it| shared.contains(it))).collect())
}

/// Returns the grants of all unfinished works of the caller.
async fn grants_of_works(client: &Client) -> Result<BTreeSet<u64>, ClientError> {
    let works = client.intents(&wire::Whose { mine: true, ..wire::Whose::default() }).await?;
    Ok(works.into_iter().flat_map(|it| it.grants).collect())
}

/// Announces a change. If the host cancels the call meanwhile, no announcement remains.
async fn announced(client: Client, declare: wire::Declare) -> Result<wire::Declared, ClientError> {
    let (to, from) = oneshot::channel();
    tokio::spawn(async move {
        if let Err(Ok(unheard)) = to.send(client.declare(&declare).await) {
            let request = wire::UpdateIntent { id: unheard.intent.id, to: "abandoned".into(), force: false };
            // An intent that cannot be ended now lapses after its time.
            let _ended = client.update_intent(&request).await;
        }
    });
    from.await.unwrap_or(Err(ClientError::Broken("the announcement was given up".into())))
}

/// Work that is beginning. Until it has begun, every end of the call releases the locks that the call has taken; the
/// host may cancel the call at any moment.
struct Beginning {
    client: Client,
    /// The grants that the agent had before this call.
    had: BTreeSet<u64>,
    /// The grants of this call, including earlier ones.
    taken: BTreeSet<u64>,
    places: BTreeSet<String>,
    worktree: Option<String>,
    is_open: bool,
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let left = Self {
                client: self.client.clone(),
                had: std::mem::take(&mut self.had),
                taken: std::mem::take(&mut self.taken),
                places: std::mem::take(&mut self.places),
                worktree: self.worktree.take(),
                is_open: false,
            };
            tokio::spawn(async move { give_back(&left).await });
        }
    }
}

impl Beginning {
    /// Releases what the call has taken, and returns the error with the obstacle.
    async fn undone(mut self, place: &str, error: ClientError) -> ToolError {
        give_back(&self).await;
        self.is_open = false;
        ToolError::new(format!(
            "nothing was begun, and this call keeps no lock; what you had before stays: {}: {}",
            one_line(place, 300),
            ToolError::from(error)
        ))
    }
}

/// Releases the locks on these places that were granted since. The daemon lists them: a grant may have come after
/// the call was cancelled.
async fn give_back(of: &Beginning) {
    let mine = of.client.locks(&wire::Whose { mine: true, ..wire::Whose::default() }).await;
    let mine = mine.map(|it| it.locks).unwrap_or_default();
    // The symbol of a lock on a whole file ends with a colon; most places do not.
    let bare = |it: &str| it.trim_end_matches(':').to_owned();
    let places: BTreeSet<String> = of.places.iter().map(|it| bare(it)).collect();
    let new = |lock: &wire::Lock| {
        let named = places.contains(&bare(&lock.asked)) || places.contains(&bare(&lock.symbol));
        !of.had.contains(&lock.fence) && (named || of.taken.contains(&lock.fence))
    };
    for lock in mine.into_iter().filter(new) {
        let request = wire::Unlock {
            symbol: lock.symbol,
            fence: Some(lock.fence),
            worktree: of.worktree.clone(),
            ..wire::Unlock::default()
        };
        // A lock that has ended meanwhile is free as well.
        let _freed = of.client.unlock(&request).await;
    }
}

/// The outcome of a piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The change is made.
    #[default]
    Done,
    /// The work was given up.
    Abandoned,
}

/// The piece of work that ends, and its outcome.
#[derive(Deserialize, JsonSchema)]
struct End {
    /// From work_begin.
    intent_id: String,
    /// `done` when absent.
    #[serde(default)]
    outcome: Outcome,
}

/// The end of a change, with the released locks.
#[derive(Serialize, JsonSchema)]
struct Ended {
    /// The id of the intent that has ended.
    intent_id: String,
    /// The locks that were released.
    released: Vec<String>,
}

async fn end(call: Call, asked: End) -> Result<Said<Ended>, ToolError> {
    let to = if asked.outcome == Outcome::Done { "resolved" } else { "abandoned" };
    let request = wire::UpdateIntent { id: asked.intent_id, to: to.into(), force: false };
    // The daemon decides here who may end it, before any lock is released.
    let ended = call.client().update_intent(&request).await?;
    let mine = call.client().locks(&wire::Whose { mine: true, ..wire::Whose::default() }).await?;
    let shared = grants_of_works(call.client()).await?;
    let its = |lock: &wire::Lock| ended.grants.contains(&lock.fence) && !shared.contains(&lock.fence);
    let mut released = Vec::new();
    for lock in mine.locks.iter().filter(|it| its(it)) {
        let request =
            wire::Unlock { symbol: lock.symbol.clone(), fence: Some(lock.fence), ..wire::Unlock::default() };
        if call.client().unlock(&request).await.is_ok() {
            released.push(lock.symbol.clone());
        }
    }
    let lines = released.iter().map(|it| format!("{it} is free"));
    let text = listed(&format!("Work {} is {}.", ended.id, ended.status), lines);
    Ok(Said { text, answer: Ended { intent_id: ended.id, released } })
}
