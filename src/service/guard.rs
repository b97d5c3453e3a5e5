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

/// A file that a caller is about to write, or to commit.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The path of the file, from the top of the repository.
    pub path: RepoPath,
    /// What it contains before and after, where that is known; otherwise every lock in the file counts.
    pub change: Option<BeforeAndAfter>,
    /// Of the file, this symbol alone.
    pub symbol: Option<Box<str>>,
    /// Whether the host will refuse the edit itself, so that it writes nothing.
    pub fails: bool,
}

/// The answer about some edits.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// What stands in their way, in their order.
    pub blocked: Vec<Blocked>,
    /// Announced changes of others that are about the same, with the file and the symbol as far as they are named.
    pub near: Vec<(Arc<Intent>, Box<str>)>,
    /// Leases of others on the same that keep nobody out here.
    pub written: Vec<Arc<Lock>>,
}

/// Other agents' holds on the place of the write.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The lock or the claim that is in the way.
    pub by: Obstacle,
    /// Whether it is known that what is theirs changes; of a lock, otherwise only its file does.
    pub touched: bool,
    /// What its holder says that it does: the reason of a lock, or its newest intent.
    pub doing: Option<Box<str>>,
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

    /// Whether one is the other, or part of it.
    fn overlaps(&self, other: &Hold<'_>) -> bool {
        let touch = |a: &str, b: &str| a == b || encloses(a, b) || encloses(b, a);
        self.is_whole()
            || other.is_whole()
            || self.names.iter().any(|a| other.names.iter().any(|b| touch(a, b)))
    }

    /// Whether a touched place is it, or part of it, or the file.
    fn meets(&self, places: &[Box<str>]) -> bool {
        self.is_whole() && !places.is_empty() || places.iter().any(|it| it.is_empty() || self.covers(it))
    }

    fn covers(&self, place: &str) -> bool {
        self.is_whole() || self.names.iter().any(|name| *name == place || encloses(name, place))
    }
}

/// An edit as it is read: what the file says before and after.
struct Read<'a> {
    old: (Source, &'a [u8]),
    new: (Source, &'a [u8]),
}

impl Read<'_> {
    fn versions(&self) -> Option<(Version<'_>, Version<'_>)> {
        let (old, new) = (self.old.0.reading()?, self.new.0.reading()?);
        Some((Version { reading: old, bytes: self.old.1 }, Version { reading: new, bytes: self.new.1 }))
    }

    /// The names of a symbol beside its whole path, in the version that has it.
    fn other_names(&self, path: &str) -> Vec<Box<str>> {
        let readings = [self.new.0.reading(), self.old.0.reading()].into_iter().flatten();
        let names = readings.map(|it| known_as(it, path).1).find(|it| !it.is_empty());
        names.unwrap_or_default()
    }
}

/// The top of a work tree, as leases name it.
pub(super) fn tree_of(base: &Base) -> Box<str> {
    base.root().place().path().to_string_lossy().into()
}

/// What an edit touches, by whole paths; the file where that cannot be told.
fn places_of(read: Option<&Read<'_>>, names: &[Box<str>]) -> Vec<Box<str>> {
    if let Some(name) = names.first() {
        return vec![name.clone()];
    }
    let Some(read) = read else { return vec!["".into()] };
    if read.old.1 == read.new.1 {
        return Vec::new();
    }
    // What is made or removed is touched as a whole.
    let is_all = read.old.1.is_empty() || read.new.1.is_empty();
    let places = read.versions().filter(|_| !is_all).map(|(old, new)| touched(old, new));
    match places {
        Some(places) if places.len() <= HELD_IN_A_FILE_MAX => places,
        _ => vec!["".into()],
    }
}

/// Whether a write touches another agent's place by what belongs to it, such as its comment, or moves it.
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

/// What the holder says that it does.
fn doing(by: &Obstacle, intents: &[Arc<Intent>]) -> Option<Box<str>> {
    let (holder, reason) = match by {
        Obstacle::Lock(lock) => (Some(&lock.it.holder), lock.it.reason.clone()),
        Obstacle::Claim(claim) => (claim.held.owner(), None),
    };
    let newest = || intents.iter().filter(|it| Some(&it.agent) == holder).max_by_key(|it| it.place);
    reason.or_else(|| newest().map(|it| it.description.clone()))
}

/// Some edits, compared with what others hold.
#[derive(Default)]
pub(super) struct Looked {
    /// The answer about them.
    pub(super) guarded: Guarded,
    /// The grants of others in the files.
    pub(super) seen: Vec<Fence>,
    /// The files, in their one spelling.
    pub(super) files: Vec<RepoPath>,
    /// What the edits touch: symbols by their whole paths, with an empty one for the file.
    pub(super) touched: Vec<(RepoPath, Box<str>, Vec<Box<str>>)>,
}

/// What is held and announced in some files.
struct Around {
    locks: Vec<Named<Arc<Lock>>>,
    own_claims: Vec<Arc<Claim>>,
    intents: Vec<Arc<Intent>>,
    here: HostId,
}

impl Provost {
    /// Claims and locks of others that stand in the way of some edits in a work tree, in the order of the edits. Of two that
    /// overlap, the earlier grant counts: the later one has what the earlier one leaves.
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

    /// The same, and for a writer what its edits touch.
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
        // What is claimed or announced of a folder is about each file in it.
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
                        || (writes && is_touched(&by, &mine, &places, moves.as_mut()))
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
        // Who has the file has all of it that others leave.
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

    /// Every name of a symbol of a file, as the file is now.
    async fn names_of(&self, base: &Base, file: &RepoPath, symbol: &str) -> Vec<Box<str>> {
        let source = self.code().read(base, file).await;
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

/// The folders that a file is in, the innermost first.
fn folders_of(file: &RepoPath) -> Vec<RepoPath> {
    let ends = file.as_str().rmatch_indices('/').map(|(at, _)| at);
    ends.filter_map(|end| RepoPath::parse(&file.as_str()[..end]).ok()).collect()
}

/// Whether a path is a file's, or one of a folder that it is in.
fn is_or_has(path: &RepoPath, file: &RepoPath) -> bool {
    let rest = file.as_str().strip_prefix(path.as_str());
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Where an announced change is about what an edit, or a change of a symbol, touches.
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
    // Where it cannot be told what an edit changes, whose grant in the file is the earliest goes first, or two would keep each other
    // out.
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
    if !old.is_whole() || !new.is_whole() {
        return !is_first;
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
