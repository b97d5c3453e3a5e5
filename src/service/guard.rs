//! Checks whether an agent may write to a file.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::Provost;
use super::code::{Base, READ_TIME_MAX, Source};
use super::locks::known_as;
use provost_base::limits::HELD_IN_A_FILE_MAX;
use provost_base::{AgentId, Fence, HostId, RepoPath, encloses};
use provost_domain::view::{ClaimsOf, ClaimsOn, IntentsOn, Named, OwnHost};
use provost_domain::{Claim, Intent, Lock, Refusal, Writer};
use provost_syntax::{Moves, Reading, Version, touched};

/// A file's content before and after an edit.
pub type BeforeAndAfter = (Arc<[u8]>, Arc<[u8]>);

/// A file that a caller is about to write or commit.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The path of the file, from the top of the repository.
    pub path: RepoPath,
    /// The content before and after, if known; otherwise every lock in the file counts.
    pub change: Option<BeforeAndAfter>,
    /// The only symbol that the edit is about; `None` for the file.
    pub symbol: Option<Box<str>>,
    /// Whether the host itself will refuse the edit, so that nothing is written.
    pub fails: bool,
}

/// The answer about some edits.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// The obstacles to the edits, in the order of the edits.
    pub blocked: Vec<Blocked>,
    /// The intents of other agents that meet the edits, each with the file and the symbol that they name.
    pub near: Vec<(Arc<Intent>, Box<str>)>,
    /// The leases of other agents on the same places that block no agent here.
    pub written: Vec<Arc<Lock>>,
}

/// Another agent's hold on the place of a write.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The lock or the claim that is in the way.
    pub by: Obstacle,
    /// Whether the edit is known to change the held place; for a lock, otherwise only its file is known to change.
    pub touched: bool,
    /// The holder's own description of its work: the reason of the lock, or its newest intent.
    pub doing: Option<Box<str>>,
}

/// An obstacle to a write.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// A lock, with its holder's name for people.
    Lock(Named<Arc<Lock>>),
    /// A claim on the file.
    Claim(Arc<Claim>),
}

/// The part of a file that an agent holds, or would hold: its names; the whole file if there are none.
struct Hold<'a> {
    names: Vec<&'a str>,
    fence: Fence,
}

impl<'a> Hold<'a> {
    fn of_lock(lock: &'a Lock) -> Self {
        let whole = lock.at.name().is_empty();
        let names = if whole { Vec::new() } else { lock.all_names().collect() };
        Self { names, fence: lock.fence }
    }

    fn of_claim(claim: &Claim) -> Self {
        Self { names: Vec::new(), fence: claim.fence }
    }

    fn is_whole(&self) -> bool {
        self.names.is_empty()
    }

    /// Checks whether two holds share a place, or one encloses a place of the other.
    fn overlaps(&self, other: &Hold<'_>) -> bool {
        let touch = |a: &str, b: &str| a == b || encloses(a, b) || encloses(b, a);
        self.is_whole()
            || other.is_whole()
            || self.names.iter().any(|a| other.names.iter().any(|b| touch(a, b)))
    }

    /// Checks whether a touched place is the held one, a part of it, or the file.
    fn meets(&self, places: &[Box<str>]) -> bool {
        self.is_whole() && !places.is_empty() || places.iter().any(|it| it.is_empty() || self.covers(it))
    }

    fn covers(&self, place: &str) -> bool {
        self.is_whole() || self.names.iter().any(|name| *name == place || encloses(name, place))
    }
}

/// An edit with both versions of the file, read.
struct Read<'a> {
    old: (Source, &'a [u8]),
    new: (Source, &'a [u8]),
}

impl Read<'_> {
    fn versions(&self) -> Option<(Version<'_>, Version<'_>)> {
        let (old, new) = (self.old.0.reading()?, self.new.0.reading()?);
        Some((Version { reading: old, bytes: self.old.1 }, Version { reading: new, bytes: self.new.1 }))
    }

    /// Returns the other names of a symbol, in the version that has it.
    fn other_names(&self, path: &str) -> Vec<Box<str>> {
        let readings = [self.new.0.reading(), self.old.0.reading()].into_iter().flatten();
        let names = readings.map(|it| known_as(it, path).1).find(|it| !it.is_empty());
        names.unwrap_or_default()
    }
}

/// Returns the top of a work tree in the form that leases use.
pub(super) fn tree_of(base: &Base) -> Box<str> {
    base.root().place().path().to_string_lossy().into()
}

/// Returns the places that an edit touches, by whole paths; the file if they cannot be determined.
fn places_of(read: Option<&Read<'_>>, names: &[Box<str>]) -> Vec<Box<str>> {
    if let Some(name) = names.first() {
        return vec![name.clone()];
    }
    let Some(read) = read else { return vec!["".into()] };
    if read.old.1 == read.new.1 {
        return Vec::new();
    }
    // A file that the edit creates or removes is touched as a whole.
    let is_all = read.old.1.is_empty() || read.new.1.is_empty();
    let places = read.versions().filter(|_| !is_all).map(|(old, new)| touched(old, new));
    match places {
        Some(places) if places.len() <= HELD_IN_A_FILE_MAX => places,
        _ => vec!["".into()],
    }
}

/// Checks whether a write touches what belongs to another agent's place, such as its comment, or moves the place.
fn is_touched(
    theirs: &Obstacle,
    mine: &[Hold<'_>],
    places: &[Box<str>],
    moves: Option<&mut Moves<'_>>,
) -> bool {
    let Obstacle::Lock(lock) = theirs else { return false };
    let hold = Hold::of_lock(&lock.it);
    if hold.is_whole() {
        return false;
    }
    let had = |place: &str| mine.iter().any(|it| it.fence < hold.fence && it.covers(place));
    let is_covered = places.iter().any(|it| hold.covers(it) && !had(it));
    is_covered || moves.is_some_and(|moves| hold.names.iter().any(|it| moves.has(it) && !had(it)))
}

/// Returns the holder's own description of its work.
fn doing(by: &Obstacle, intents: &[Arc<Intent>]) -> Option<Box<str>> {
    let (holder, reason) = match by {
        Obstacle::Lock(lock) => (Some(&lock.it.holder), lock.it.reason.clone()),
        Obstacle::Claim(claim) => (claim.held.owner(), None),
    };
    let newest = || intents.iter().filter(|it| Some(&it.agent) == holder).max_by_key(|it| it.place);
    reason.or_else(|| newest().map(|it| it.description.clone()))
}

/// The result of comparing some edits with the holds of other agents.
#[derive(Default)]
pub(super) struct Looked {
    /// The answer about the edits.
    pub(super) guarded: Guarded,
    /// The grants of other agents in the files.
    pub(super) seen: Vec<Fence>,
    /// The files, in their one spelling.
    pub(super) files: Vec<RepoPath>,
    /// The places that the edits touch: symbols by their whole paths, with an empty one for the file.
    pub(super) touched: Vec<(RepoPath, Box<str>, Vec<Box<str>>)>,
}

/// The holds and intents in some files.
struct Around {
    locks: Vec<Named<Arc<Lock>>>,
    own_claims: Vec<Arc<Claim>>,
    intents: Vec<Arc<Intent>>,
    here: HostId,
}

impl Provost {
    /// Returns the claims and locks of other agents that block some edits in a work tree, in the order of the edits. If two
    /// holds overlap, the earlier grant counts: the later holder has only what the earlier one leaves.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`]. The caller has to treat that as a no.
    pub async fn guard(
        &self,
        agent: &AgentId,
        base: Option<&Base>,
        edits: &[Edit],
    ) -> Result<Guarded, Refusal> {
        let writer = Writer { agent: agent.clone(), part: None, parts_differ: false };
        let guarded = self.look_at(&writer, base.unwrap_or(self.base()), edits, false).await?.guarded;
        self.advised().note(agent, &guarded);
        Ok(guarded)
    }

    /// Compares edits with holds, and also returns, for a write, the places that the edits touch.
    pub(super) async fn look_at(
        &self,
        writer: &Writer,
        base: &Base,
        edits: &[Edit],
        writes: bool,
    ) -> Result<Looked, Refusal> {
        let mut files = Vec::with_capacity(edits.len());
        for edit in edits {
            files.push(self.code().spelling(base, &edit.path).await);
        }
        // A claim on a folder, or an intent for it, concerns each file in the folder.
        let with_folders: Vec<Vec<RepoPath>> =
            files.iter().map(|it| std::iter::once(it.clone()).chain(folders_of(it)).collect()).collect();
        let asked = ClaimsOn { files: with_folders.concat(), others_than: writer.agent.clone() };
        let mut found = self.view(asked).await?.into_iter();
        let claims: Vec<Option<Arc<Claim>>> =
            with_folders.iter().map(|all| found.by_ref().take(all.len()).fold(None, Option::or)).collect();
        let around = Around {
            own_claims: self.view(ClaimsOf(writer.agent.clone())).await?,
            locks: self.locks(None, files.clone()).await?.0,
            intents: self.view(IntentsOn(with_folders.concat())).await?,
            here: self.view(OwnHost).await?,
        };
        let mut looked = Looked { files: files.clone(), ..Looked::default() };
        let foreign = around.locks.iter().filter(|it| writer.is_other(&it.it)).map(|it| it.it.fence);
        looked.seen.extend(foreign.chain(claims.iter().flatten().map(|it| it.fence)));
        let until = Instant::now() + READ_TIME_MAX;
        for ((edit, file), claim) in edits.iter().zip(files).zip(claims) {
            self.look_at_one((writer, base), (edit, &file, claim), &around, (writes, until), &mut looked)
                .await;
        }
        Ok(looked)
    }

    async fn look_at_one(
        &self,
        (writer, base): (&Writer, &Base),
        (edit, file, claim): (&Edit, &RepoPath, Option<Arc<Claim>>),
        around: &Around,
        (writes, until): (bool, Instant),
        looked: &mut Looked,
    ) {
        let top = tree_of(base);
        let tree = Some((&*top, around.here));
        let locks = || around.locks.iter().filter(|it| *it.it.at.file() == *file);
        let foreign = || locks().filter(|it| writer.is_other(&it.it));
        let walls = foreign().filter(|it| it.it.keeps_out(tree)).cloned().map(Obstacle::Lock);
        let theirs: Vec<Obstacle> = claim.into_iter().map(Obstacle::Claim).chain(walls).collect();
        let is_planned = |it: &&Arc<Intent>| {
            it.agent != writer.agent && it.files.iter().any(|it| is_or_has(&it.path, file))
        };
        let planned: Vec<_> = around.intents.iter().filter(is_planned).collect();
        if !writes && theirs.is_empty() && planned.is_empty() && foreign().next().is_none() {
            return;
        }
        let locked = locks().filter(|it| !writer.is_other(&it.it)).map(|it| Hold::of_lock(&it.it));
        let claimed =
            around.own_claims.iter().filter(|it| is_or_has(&it.file, file)).map(|it| Hold::of_claim(it));
        let mine: Vec<Hold<'_>> = locked.chain(claimed).collect();
        let read = self.read_edit(edit, file, until).await;
        let names = match &edit.symbol {
            Some(symbol) => self.names_of(base, file, symbol).await,
            None => Vec::new(),
        };
        let places = if edit.fails { Vec::new() } else { places_of(read.as_ref(), &names) };
        let is_known = read.is_some() || !names.is_empty();
        let versions = read.as_ref().and_then(Read::versions);
        let mut moves = versions.map(|(old, new)| Moves::of(old.reading, new.reading));
        for by in theirs {
            let stands = match names.is_empty() {
                true => {
                    is_in_the_way(&by, &mine, read.as_ref())
                        || is_touched(&by, &mine, &places, moves.as_mut())
                }
                false => is_in_the_way_of(&by, &mine, &names),
            };
            if stands {
                let doing = doing(&by, &around.intents);
                looked.guarded.blocked.push(Blocked { by, touched: is_known, doing });
            }
        }
        let near = foreign().filter(|it| !it.it.keeps_out(tree));
        let near = near.filter(|it| Hold::of_lock(&it.it).meets(&places));
        looked.guarded.written.extend(near.map(|it| it.it.clone()));
        for intent in planned {
            let is_told = looked.guarded.near.iter().any(|(it, _)| it.id == intent.id);
            if let Some(at) = meets(intent, file, &names, read.as_ref()).filter(|_| !is_told) {
                looked.guarded.near.push((intent.clone(), at));
            }
        }
        let also = |path: &str| read.as_ref().map(|it| it.other_names(path)).unwrap_or_default();
        // The holder of a file has all parts of it that no other agent holds.
        let is_file = places.iter().any(|it| it.is_empty());
        let held = places.into_iter().filter(|it| !is_file || it.is_empty());
        looked.touched.extend(held.map(|it| (file.clone(), it.clone(), also(&it))));
    }

    async fn read_edit<'a>(&self, edit: &'a Edit, file: &RepoPath, until: Instant) -> Option<Read<'a>> {
        let (before, after) = edit.change.as_ref()?;
        let old = self.code().read_content(file.clone(), before.clone(), until).await;
        let new = self.code().read_content(file.clone(), after.clone(), until).await;
        Some(Read { old: (old, before), new: (new, after) })
    }

    /// Returns every name of a symbol, according to the present file.
    async fn names_of(&self, base: &Base, file: &RepoPath, symbol: &str) -> Vec<Box<str>> {
        let source = self.code().read(base, file).await;
        let others = source.reading().map(|it| known_as(it, symbol).1).unwrap_or_default();
        std::iter::once(symbol.into()).chain(others).collect()
    }
}

/// Checks whether a hold blocks a change of a symbol with these names.
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

/// Returns the folders around a file, the innermost first.
fn folders_of(file: &RepoPath) -> Vec<RepoPath> {
    let ends = file.as_str().rmatch_indices('/').map(|(at, _)| at);
    ends.filter_map(|end| RepoPath::parse(&file.as_str()[..end]).ok()).collect()
}

/// Checks whether a path is the file's, or that of a folder around it.
fn is_or_has(path: &RepoPath, file: &RepoPath) -> bool {
    let rest = file.as_str().strip_prefix(path.as_str());
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Returns the place where an intent and an edit, or a change of a symbol, meet.
fn meets(intent: &Intent, file: &RepoPath, names: &[Box<str>], edit: Option<&Read<'_>>) -> Option<Box<str>> {
    let exact = intent.files.iter().find(|it| it.path == *file);
    let planned = exact.or_else(|| intent.files.iter().find(|it| is_or_has(&it.path, file)))?;
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

/// Checks whether an edit changes another agent's place beyond the parts that its writer held earlier. If that
/// cannot be determined, the earlier hold counts.
fn is_in_the_way(theirs: &Obstacle, mine: &[Hold<'_>], edit: Option<&Read<'_>>) -> bool {
    let hold = match theirs {
        Obstacle::Lock(lock) => Hold::of_lock(&lock.it),
        Obstacle::Claim(claim) => Hold::of_claim(claim),
    };
    let earlier: Vec<&Hold<'_>> =
        mine.iter().filter(|it| it.fence < hold.fence && it.overlaps(&hold)).collect();
    let had = !earlier.is_empty();
    // If the changes of an edit cannot be determined, the holder of the earliest grant in the file goes first, or
    // two agents would block each other.
    let is_first = mine.iter().any(|it| it.fence < hold.fence);
    let Some(edit) = edit else { return !had };
    if edit.old.1 == edit.new.1 {
        return false;
    }
    if earlier.iter().any(|it| it.is_whole()) {
        return false;
    }
    let (Some(old), Some(new)) = (edit.old.0.reading(), edit.new.0.reading()) else { return !is_first };
    if hold.is_whole() && !had {
        return true;
    }
    let names: Vec<&str> = earlier.iter().flat_map(|it| it.names.iter().copied()).collect();
    let (before, after) = (edit.old.1, edit.new.1);
    if !old.is_whole() || !new.is_whole() {
        // A text that an edit opens can hide a definition, and another one of its name can stand for it from then on.
        let stays = |name: &str| {
            let is_in_both = !old.ranges(name).is_empty() && !new.ranges(name).is_empty();
            is_in_both && left_of(old, before, Some(name), &names) == left_of(new, after, Some(name), &names)
        };
        let meets = |name: &&str| match changes_within(edit, name, &names) {
            Some(false) if stays(name) => false,
            Some(true) => true,
            _ => !is_first,
        };
        return if hold.is_whole() { !is_first } else { hold.names.iter().any(meets) };
    }
    let rest = |reading: &Reading, bytes, name| left_of(reading, bytes, name, &names);
    match hold.is_whole() {
        true => rest(old, before, None) != rest(new, after, None),
        false => hold.names.iter().any(|it| rest(old, before, Some(it)) != rest(new, after, Some(it))),
    }
}

/// Checks whether an edit of a file that does not parse changes a byte of the definitions under a name, outside of those under other names.
/// `None` if that is not known: the version that parses does not have the name, or not both have it where neither parses.
fn changes_within(edit: &Read<'_>, name: &str, without: &[&str]) -> Option<bool> {
    let (old, new) = edit.versions()?;
    let changes = [Change::between(old.bytes, new.bytes, true), Change::between(old.bytes, new.bytes, false)];
    // Where a text could have been put in at either of two places, it was put in outside.
    let within = |version: Version<'_>, is_old: bool| -> Option<bool> {
        let (theirs, mine) =
            (version.reading.ranges(name), without.iter().map(|it| version.reading.ranges(it)));
        let mine: Vec<Range<u32>> = mine.flatten().collect();
        let meets = |change: &Change| {
            let (from, to) = if is_old { change.old } else { change.new };
            let is_met = theirs.iter().any(|it| from < it.end as usize && (it.start as usize) < to);
            is_met && !mine.iter().any(|it| it.start as usize <= from && to <= it.end as usize)
        };
        (!theirs.is_empty()).then(|| changes.iter().all(meets))
    };
    match (old.reading.is_whole(), new.reading.is_whole()) {
        (true, _) => within(old, true),
        (_, true) => within(new, false),
        _ => Some(within(old, true)? || within(new, false)?),
    }
}

/// The bytes that differ between two versions, from the first to the last, in each of them.
struct Change {
    old: (usize, usize),
    new: (usize, usize),
}

impl Change {
    /// Compares two versions, from the beginning or from the end first.
    fn between(old: &[u8], new: &[u8], from_beginning: bool) -> Self {
        let least = old.len().min(new.len());
        let same_before = |most: usize| (0..most).take_while(|at| old[*at] == new[*at]).count();
        let same_after =
            |most: usize| (1..=most).take_while(|at| old[old.len() - at] == new[new.len() - at]).count();
        let (before, after) = if from_beginning {
            let before = same_before(least);
            (before, same_after(least - before))
        } else {
            let after = same_after(least);
            (same_before(least - after), after)
        };
        Self { old: (before, old.len() - after), new: (before, new.len() - after) }
    }
}

/// Returns the exact bytes of all definitions under a name, or of the whole file, without the definitions under other names.
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
