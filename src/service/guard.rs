//! Checks whether an agent may write to a file.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::Provost;
use super::code::{READ_TIME_MAX, Source};
use super::locks::known_as;
use provost_base::{AgentId, Fence, RepoPath, encloses};
use provost_domain::view::{ClaimsOf, ClaimsOn, IntentsOn, Named};
use provost_domain::{Claim, Intent, Lock, Refusal};
use provost_syntax::Reading;

/// A file's content before and after an edit.
pub type BeforeAndAfter = (Arc<[u8]>, Arc<[u8]>);

/// A file that a caller is about to write, or to commit.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The path of the file, from the top of the repository.
    pub path: RepoPath,
    /// What it contains before and after, where that is known; otherwise every lock in the file counts.
    pub change: Option<BeforeAndAfter>,
    /// Of the file, this symbol alone.
    pub symbol: Option<Box<str>>,
}

/// The answer about some edits.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// What stands in their way, in their order.
    pub blocked: Vec<Blocked>,
    /// Announced changes of others that are about the same, with the file and the symbol as far as they are named.
    pub near: Vec<(Arc<Intent>, Box<str>)>,
}

/// Other agents' holds on the place of the write.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The lock or the claim that is in the way.
    pub by: Obstacle,
    /// Whether it is known that what is theirs changes; of a lock, otherwise only its file does.
    pub touched: bool,
}

/// What can stand in the way of writing.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// A lock, with its holder's name for people.
    Lock(Named<Arc<Lock>>),
    /// A claim on the file.
    Claim(Arc<Claim>),
}

/// What an agent has of a file, or would have: its names, or all of it where there is none.
struct Hold<'a> {
    names: Vec<&'a str>,
    fence: Fence,
}

impl<'a> Hold<'a> {
    fn of_lock(lock: &'a Lock) -> Self {
        let whole = lock.at.symbol().is_empty();
        let names = if whole { Vec::new() } else { lock.all_names().collect() };
        Self { names, fence: lock.fence }
    }

    fn of_claim(claim: &Claim) -> Self {
        Self { names: Vec::new(), fence: claim.fence }
    }

    fn is_whole(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether one is the other, or part of it.
    fn overlaps(&self, other: &Hold<'_>) -> bool {
        let touch = |a: &str, b: &str| a == b || encloses(a, b) || encloses(b, a);
        self.is_whole()
            || other.is_whole()
            || self.names.iter().any(|a| other.names.iter().any(|b| touch(a, b)))
    }
}

/// An edit as it is read: what the file says before and after.
struct Read<'a> {
    old: (Source, &'a [u8]),
    new: (Source, &'a [u8]),
}

impl Provost {
    /// Claims and locks of others that stand in the way of some edits, in the order of the edits. Of two that
    /// overlap, the earlier grant counts: the later one has what the earlier one leaves.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]. The caller has to treat that as a no.
    pub async fn guard(&self, agent: &AgentId, edits: Vec<Edit>) -> Result<Guarded, Refusal> {
        let mut files = Vec::with_capacity(edits.len());
        for edit in &edits {
            files.push(self.code().spelling(self.base(), &edit.path).await);
        }
        let claims = self.view(ClaimsOn { files: files.clone(), others_than: agent.clone() }).await?;
        let own_claims = self.view(ClaimsOf(agent.clone())).await?;
        let (locks, _) = self.locks(None, files.clone()).await?;
        let (own, foreign): (Vec<_>, Vec<_>) = locks.into_iter().partition(|it| it.it.holder == *agent);
        let until = Instant::now() + READ_TIME_MAX;
        let intents = self.view(IntentsOn(files.clone())).await?;
        let intents: Vec<_> = intents.into_iter().filter(|it| it.agent != *agent).collect();
        let mut found = Guarded::default();
        for ((edit, file), claim) in edits.into_iter().zip(files).zip(claims) {
            let locks = foreign.iter().filter(|it| *it.it.at.file() == file).cloned().map(Obstacle::Lock);
            let theirs: Vec<Obstacle> = claim.into_iter().map(Obstacle::Claim).chain(locks).collect();
            let planned: Vec<_> =
                intents.iter().filter(|it| it.files.iter().any(|it| it.path == file)).collect();
            if theirs.is_empty() && planned.is_empty() {
                continue;
            }
            let locked = own.iter().filter(|it| *it.it.at.file() == file).map(|it| Hold::of_lock(&it.it));
            let claimed = own_claims.iter().filter(|it| it.file == file).map(|it| Hold::of_claim(it));
            let mine: Vec<Hold<'_>> = locked.chain(claimed).collect();
            let read = match &edit.change {
                None => None,
                Some((before, after)) => {
                    let old = self.code().read_content(file.clone(), before.clone(), until).await;
                    let new = self.code().read_content(file.clone(), after.clone(), until).await;
                    Some(Read { old: (old, before), new: (new, after) })
                }
            };
            let names = match &edit.symbol {
                Some(symbol) => self.names_of(&file, symbol).await,
                None => Vec::new(),
            };
            let touched = read.is_some() || !names.is_empty();
            let stands = theirs.into_iter().filter(|it| match names.is_empty() {
                true => is_in_the_way(it, &mine, read.as_ref()),
                false => is_in_the_way_of(it, &mine, &names),
            });
            found.blocked.extend(stands.map(|by| Blocked { by, touched }));
            for intent in planned {
                let is_told = found.near.iter().any(|(it, _)| it.id == intent.id);
                if let Some(at) = meets(intent, &file, &names, read.as_ref()).filter(|_| !is_told) {
                    found.near.push((intent.clone(), at));
                }
            }
        }
        Ok(found)
    }

    /// Every name of a symbol of a file, as the file is now.
    async fn names_of(&self, file: &RepoPath, symbol: &str) -> Vec<Box<str>> {
        let source = self.code().read(self.base(), file).await;
        let others = source.reading().map(|it| known_as(it, symbol).1).unwrap_or_default();
        std::iter::once(symbol.into()).chain(others).collect()
    }
}

/// The same for a symbol that is about to be changed.
fn is_in_the_way_of(theirs: &Obstacle, mine: &[Hold<'_>], names: &[Box<str>]) -> bool {
    let theirs = match theirs {
        Obstacle::Lock(lock) => Hold::of_lock(&lock.it),
        Obstacle::Claim(claim) => Hold::of_claim(claim),
    };
    let asked = Hold { names: names.iter().map(|it| &**it).collect(), fence: theirs.fence };
    let covers = |it: &&Hold<'_>| {
        it.is_whole() || it.names.iter().any(|a| asked.names.iter().any(|b| a == b || encloses(a, b)))
    };
    theirs.overlaps(&asked) && !mine.iter().filter(|it| it.fence < theirs.fence).any(|it| covers(&it))
}

/// Where an announced change is about what an edit, or a change of a symbol, touches.
fn meets(intent: &Intent, file: &RepoPath, names: &[Box<str>], edit: Option<&Read<'_>>) -> Option<Box<str>> {
    let planned = intent.files.iter().find(|it| it.path == *file)?;
    if intent.symbols.is_empty() || planned.names.is_empty() {
        let changes = edit.is_none_or(|it| it.old.1 != it.new.1);
        return changes.then(|| file.as_str().into());
    }
    let same = |a: &str, b: &str| a == b || encloses(a, b) || encloses(b, a);
    let is_touched = |name: &str| match edit {
        _ if !names.is_empty() => names.iter().any(|it| same(it, name)),
        None => true,
        Some(edit) => match (edit.old.0.reading(), edit.new.0.reading()) {
            (Some(old), Some(new)) if old.is_whole() && new.is_whole() => {
                left_of(old, edit.old.1, Some(name), &[]) != left_of(new, edit.new.1, Some(name), &[])
            }
            _ => edit.old.1 != edit.new.1,
        },
    };
    let name = planned.names.iter().find(|it| is_touched(it))?;
    Some(format!("{}:{name}", file.as_str()).into())
}

/// Whether an edit changes a place of another agent, beyond those that its writer had before it. Where that cannot be
/// told, what was had before counts.
fn is_in_the_way(theirs: &Obstacle, mine: &[Hold<'_>], edit: Option<&Read<'_>>) -> bool {
    let hold = match theirs {
        Obstacle::Lock(lock) => Hold::of_lock(&lock.it),
        Obstacle::Claim(claim) => Hold::of_claim(claim),
    };
    let earlier: Vec<&Hold<'_>> =
        mine.iter().filter(|it| it.fence < hold.fence && it.overlaps(&hold)).collect();
    let had = !earlier.is_empty();
    let Some(edit) = edit else { return !had };
    if edit.old.1 == edit.new.1 {
        return false;
    }
    if earlier.iter().any(|it| it.is_whole()) {
        return false;
    }
    let (Some(old), Some(new)) = (edit.old.0.reading(), edit.new.0.reading()) else { return !had };
    if hold.is_whole() && !had {
        return true;
    }
    if !old.is_whole() || !new.is_whole() {
        return !had;
    }
    let names: Vec<&str> = earlier.iter().flat_map(|it| it.names.iter().copied()).collect();
    let rest = |reading: &Reading, bytes, name| left_of(reading, bytes, name, &names);
    let (before, after) = (edit.old.1, edit.new.1);
    match hold.is_whole() {
        true => rest(old, before, None) != rest(new, after, None),
        false => hold.names.iter().any(|it| rest(old, before, Some(it)) != rest(new, after, Some(it))),
    }
}

/// Everything that is defined under a name, or all of the file, to the letter, without what is defined under others.
fn left_of<'a>(reading: &Reading, bytes: &'a [u8], name: Option<&str>, without: &[&str]) -> Vec<&'a [u8]> {
    let all = 0..u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut parts = name.map_or_else(|| vec![all], |it| reading.ranges(it));
    for cut in without.iter().flat_map(|it| reading.ranges(it)) {
        parts = parts
            .into_iter()
            .flat_map(|it| [it.start..it.end.min(cut.start), it.start.max(cut.end)..it.end])
            .collect();
        parts.retain(|it| it.start < it.end);
    }
    let part = |range: Range<u32>| bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
    parts.into_iter().map(part).collect()
}
