//! The files that an agent works on: those that it announces, reports, commits, and was seen to change.
//!
//! A heartbeat does not affect files that the daemon has seen changed: only the daemon's next check can find that
//! they are clean.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::paths::PathScope;
use super::{IntendedFile, Post, Region, Source, slug};
use provost_base::limits::{PATH_LEN_MAX, POST_FILES_MAX, POST_REGIONS_MAX, POST_WIDE_MAX};
use provost_base::{PostSeq, Slug, Timestamp};

/// Everything that the broker knows of an agent's files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkingSet {
    /// The agent that works on the files.
    pub slug: Slug,
    /// The announcement that is in force, if any.
    pub intent: Option<Announced>,
    /// Files that the agent says it has changed.
    pub said: Vec<Box<str>>,
    /// Files that the daemon has seen to be changed.
    pub seen: Vec<Box<str>>,
    /// Files that it has committed, and that no agent has verified or merged.
    pub left: Vec<Box<str>>,
    /// Owners of files that the agent has changed, with the files about which it was told.
    pub told: BTreeMap<Box<str>, Vec<Box<str>>>,
    /// The agents with whose intents (by their numbers) its own overlaps, as found so far.
    pub overlaps: BTreeMap<Slug, PostSeq>,
}

/// An intent that is in force.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Announced {
    /// The post with which the intent got these files.
    pub n: PostSeq,
    /// The announced files, with the parts of them.
    pub files: Vec<IntendedFile>,
    /// The purpose of the change, for people.
    #[serde(default)]
    pub summary: Box<str>,
    /// When the announcement was made.
    #[serde(default)]
    pub since: Timestamp,
    /// When the announcement ends.
    pub until: Timestamp,
}

impl Announced {
    /// Returns the announced files, ready for a look at many places.
    pub(super) fn places(&self) -> AnnouncedPlaces<'_> {
        let mut places = AnnouncedPlaces { files: BTreeMap::new(), wide: Vec::new() };
        for (at, file) in self.files.iter().enumerate() {
            match PathScope::of(&file.path) {
                place @ PathScope::File(_) => drop(places.files.entry(place).or_insert((at, file))),
                place => places.wide.push((at, place, file)),
            }
        }
        places
    }
}

/// The files of an announcement by their places. A post names a thousand files, and an announcement as many: each
/// file is read once, and not once for each of the others, since no other command is carried out meanwhile.
pub(super) struct AnnouncedPlaces<'a> {
    /// Single files, with their positions in the announcement.
    files: BTreeMap<PathScope, (usize, &'a IntendedFile)>,
    /// Folders and patterns; there are few ([`POST_WIDE_MAX`]).
    wide: Vec<(usize, PathScope, &'a IntendedFile)>,
}

impl<'a> AnnouncedPlaces<'a> {
    /// Returns the first entry of the announcement that covers the place, if one does.
    pub(super) fn on(&self, place: &PathScope) -> Option<&'a IntendedFile> {
        let wide = self.wide.iter().find(|(_, it, _)| it.meets(place)).map(|(at, _, file)| (*at, *file));
        let single = match place.file() {
            Some(_) => self.files.get(place).copied(),
            None => {
                self.files.iter().filter(|(it, _)| it.meets(place)).map(|(_, it)| *it).min_by_key(|it| it.0)
            }
        };
        wide.into_iter().chain(single).min_by_key(|it| it.0).map(|it| it.1)
    }
}

impl WorkingSet {
    pub(super) fn new(slug: Slug) -> Self {
        Self {
            slug,
            intent: None,
            said: Vec::new(),
            seen: Vec::new(),
            left: Vec::new(),
            told: BTreeMap::new(),
            overlaps: BTreeMap::new(),
        }
    }

    /// Returns the announcement, if it is in force now.
    pub fn live(&self, now: Timestamp) -> Option<&Announced> {
        self.intent.as_ref().filter(|it| now < it.until)
    }

    /// Returns the files that the agent has changed, in their one spelling, each with a spelling in which it was written.
    pub(super) fn files(&self) -> BTreeMap<PathScope, &str> {
        let all = self.left.iter().chain(&self.seen).chain(&self.said);
        all.map(|it| (PathScope::of(it), it.trim())).collect()
    }

    /// Returns the working set after one of the agent's own posts; the folders and patterns of a list are compared as far
    /// as there is `room` for them.
    pub(super) fn after(
        &self,
        now: Timestamp,
        n: PostSeq,
        (post, source): (&Post, Source),
        room: usize,
    ) -> Self {
        let kept = |files: &[Box<str>]| kept(files, room);
        let mut next = self.clone();
        match post {
            // Another program's report about the agent does not concern its files.
            Post::Status { files, .. } if post.hearsay() && files.is_empty() => {}
            Post::Status { files, .. } if source == Source::Watcher => next.seen = kept(files),
            Post::Status { files, status, .. } => {
                next.said = kept(files);
                if files.is_empty() && &**status != "working" {
                    next.left.clear();
                }
            }
            Post::Artifact { files, status, .. } => {
                next.said.clear();
                if &**status == "committed" {
                    next.commit(kept(files), files, room);
                } else {
                    next.left = kept(files);
                }
            }
            Post::Intent { files, valid_s, summary, .. } => {
                let mut bounds = Bounds::new(room);
                let compared = files.iter().filter(|it| bounds.has_room_for(&it.path));
                let files = compared.take(POST_FILES_MAX).map(bounded).collect();
                next.announce(now, n, files, (summary, *valid_s));
            }
            _ => {}
        }
        next
    }

    /// Removes committed files, which are no longer being changed, and no longer intended. Of the folders and patterns of
    /// all commits, the newest stay for which there is `room`.
    fn commit(&mut self, kept: Vec<Box<str>>, files: &[Box<str>], room: usize) {
        let places: BTreeSet<PathScope> = files.iter().map(|it| PathScope::of(it)).collect();
        self.seen.retain(|it| !places.contains(&PathScope::of(it)));
        if let Some(intent) = &mut self.intent {
            intent.files.retain(|it| !places.contains(&PathScope::of(&it.path)));
        }
        self.intent.take_if(|it| it.files.is_empty());
        let known: BTreeSet<PathScope> = self.left.iter().map(|it| PathScope::of(it)).collect();
        let new = kept.into_iter().filter(|it| !known.contains(&PathScope::of(it)));
        self.left.extend(new);
        let excess = self.left.len().saturating_sub(POST_FILES_MAX);
        self.left.drain(..excess);
        let mut bounds = Bounds::new(room);
        self.left.reverse();
        self.left.retain(|it| bounds.has_room_for(it));
        self.left.reverse();
    }

    fn announce(
        &mut self,
        now: Timestamp,
        n: PostSeq,
        files: Vec<IntendedFile>,
        (summary, valid_s): (&str, u64),
    ) {
        let ms = i64::try_from(valid_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let until = Timestamp(now.0.saturating_add(ms));
        match self.intent.as_mut().filter(|it| now < it.until && it.files == files) {
            Some(same) => (same.until, same.summary) = (until, summary.into()),
            None => {
                self.intent = Some(Announced { n, files, summary: summary.into(), since: now, until });
                self.overlaps.clear();
            }
        }
    }

    /// Returns the working set after the committed files were checked or merged.
    pub(super) fn settled(&self) -> Self {
        Self { left: Vec::new(), ..self.clone() }
    }
}

fn kept(files: &[Box<str>], room: usize) -> Vec<Box<str>> {
    let mut bounds = Bounds::new(room);
    files.iter().filter(|it| bounds.has_room_for(it)).take(POST_FILES_MAX).cloned().collect()
}

/// The bounds of a list that is compared: it leaves out paths that no file can have, and all but a few that mean
/// many files.
struct Bounds {
    wide: usize,
    most: usize,
}

impl Bounds {
    fn new(room: usize) -> Self {
        Self { wide: 0, most: room.min(POST_WIDE_MAX) }
    }

    fn has_room_for(&mut self, path: &str) -> bool {
        if path.len() > PATH_LEN_MAX {
            return false;
        }
        let is_wide = PathScope::of(path).file().is_none();
        self.wide += usize::from(is_wide);
        !is_wide || self.wide <= self.most
    }
}

/// Returns a file of an intent in the form in which it is compared.
fn bounded(file: &IntendedFile) -> IntendedFile {
    let regions = if file.regions.len() > POST_REGIONS_MAX { Vec::new() } else { file.regions.clone() };
    IntendedFile { path: file.path.clone(), regions, plain: file.plain }
}

/// The parts of a file that both mean, and whether they only meet because one gave a name and the other lines.
pub(super) struct Shared {
    pub(super) regions: Vec<Region>,
    pub(super) across_kinds: bool,
}

/// Returns the regions of one file that two sets share, as the first set writes them.
pub(super) fn shared(mine: &[Region], theirs: &[Region]) -> Option<Shared> {
    let (mut regions, mut across_kinds) = (Vec::new(), false);
    let named = |of: &[Region]| -> Vec<String> { of.iter().map(plain_name).collect() };
    let (my_names, their_names) = (named(mine), named(theirs));
    for (a, my_name) in mine.iter().zip(&my_names) {
        for (b, their_name) in theirs.iter().zip(&their_names) {
            match (a, b) {
                (Region::Lines(a0, a1), Region::Lines(b0, b1)) if a0 <= b1 && b0 <= a1 => {
                    regions.push(Region::Lines(*a0.max(b0), *a1.min(b1)));
                }
                (Region::Lines(..), Region::Lines(..)) => {}
                (Region::Lines(..), _) | (_, Region::Lines(..)) => {
                    regions.extend([a.clone(), b.clone()]);
                    across_kinds = true;
                }
                (a, b) if my_name == their_name => {
                    regions.push(a.clone());
                    if std::mem::discriminant(a) != std::mem::discriminant(b) {
                        regions.push(b.clone());
                        across_kinds = true;
                    }
                }
                _ => {}
            }
        }
    }
    regions.sort_by_key(shown);
    regions.dedup();
    (!regions.is_empty()).then_some(Shared { regions, across_kinds })
}

/// Returns a region as text for agents.
pub(super) fn shown(region: &Region) -> String {
    match region {
        Region::Function(name) => format!("function {name}"),
        Region::Class(name) => format!("class {name}"),
        Region::Block(anchor) => format!("block {anchor}"),
        Region::Lines(from, to) => format!("range {from}-{to}"),
    }
}

/// Returns a name without the additions that people write: case, blanks, `()`, and the word for its kind.
fn plain_name(region: &Region) -> String {
    let (Region::Function(name) | Region::Class(name) | Region::Block(name)) = region else {
        return String::new();
    };
    let between = |c: char| matches!(c, ' ' | '\t' | '_' | '-');
    let name = name.trim().to_lowercase();
    let name = name.strip_suffix("()").unwrap_or(&name);
    let words = ["function", "class", "def", "fn"];
    let bare = words.iter().find_map(|word| name.strip_prefix(word).filter(|rest| rest.starts_with(between)));
    let parts = bare.unwrap_or(name).split(between).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// Returns the slug of the agent with this name.
pub(super) fn of(name: &provost_base::AgentId) -> Slug {
    slug(name.as_str())
}
