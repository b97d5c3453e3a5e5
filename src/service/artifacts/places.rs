//! A file that takes the place of a folder, and files in a folder that takes the place of a file.
//!
//! Such a change consists of several artifacts, removals among them; each alone would be refused, or would leave the change
//! half done. The daemon plans them as if the removals were done already, and carries out all of them or none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use cap_std::fs::Dir;

use super::{Action, Previewed, Sorted};
use provost_base::RepoPath;
use provost_base::limits::{APPLY_FILES_MAX, COPY_DEPTH_MAX, HARVEST_ENTRIES_MAX};
use provost_system::walk::{Bounds, Entry, Folder, Kind, Step, Unread, Visitor, walk};
use provost_workspace::change_plan::FileWrite;
use provost_workspace::file::{self, Found, Trouble};

/// Reads a file as it will be once the leaving files are gone.
///
/// # Errors
/// The reason why it cannot be read, safe to show.
pub(super) fn look_past(
    root: &Dir,
    path: &RepoPath,
    leaving: &BTreeSet<RepoPath>,
) -> Result<Option<Found>, String> {
    match file::look(root, path) {
        Err(Trouble::NoFolder) if leaving.iter().any(|gone| is_below(path, gone)) => Ok(None),
        Err(Trouble::Folder) if leaving.iter().any(|gone| is_below(gone, path)) => {
            let folder = file::folder_at(root, path).ok().flatten();
            let looked = folder.map_or(Ok(()), |folder| {
                walk(&mut Staying { leaving }, (folder, OsStr::new(path.as_str())), 0, BOUNDS)
            });
            looked.map(|()| None).map_err(|one| format!("it is a folder, and {one} in it stays"))
        }
        looked => looked.map_err(|trouble| trouble.to_string()),
    }
}

fn is_below(path: &RepoPath, folder: &RepoPath) -> bool {
    path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// The bounds of a walk through such a folder.
const BOUNDS: Bounds = Bounds { entries: HARVEST_ENTRIES_MAX, depth: COPY_DEPTH_MAX, until: None };

/// Looks for an entry of a folder that stays. The first one ends the walk.
struct Staying<'a> {
    leaving: &'a BTreeSet<RepoPath>,
}

impl Visitor for Staying<'_> {
    /// The number of entries of a folder that were looked at.
    type Here = usize;
    type Stop = String;

    fn entry(&mut self, at: Entry<'_>, number: &mut usize) -> Result<Step<usize>, String> {
        let path = at.text().ok_or("what cannot be looked at")?;
        *number += 1;
        match at.open() {
            // There are more folders than leaving files, so some of them hold other files.
            Ok(_) if *number > self.leaving.len() + 1 => Err(path.to_owned()),
            Ok(inner) => Ok(Step::Into(inner, 0)),
            Err(_) if RepoPath::as_is(path).is_some_and(|path| self.leaving.contains(&path)) => {
                Ok(Step::Over)
            }
            Err(_) => Err(path.to_owned()),
        }
    }

    fn unread(&mut self, _folder: Folder<'_>, _why: Unread) -> Result<(), String> {
        Err("what cannot be looked at".into())
    }
}

/// Removes a folder in the place of a file, and the folders in it, if there are no files in them.
pub(super) fn sweep(root: &Dir, path: &RepoPath) {
    let Ok(Some(folder)) = file::folder_at(root, path) else { return };
    let mut found = Folders(vec![path.clone()]);
    // A folder that could not be read is not empty, and stays.
    let _seen = walk(&mut found, (folder, OsStr::new(path.as_str())), (), BOUNDS);
    let Folders(mut folders) = found;
    // The innermost folders come first; a folder that is not empty stays, and so do the folders around it.
    folders.sort_by_key(|it| std::cmp::Reverse(it.as_str().matches('/').count()));
    for folder in folders {
        file::remove_folders(root, &[folder]);
    }
}

/// The folders within a folder, up to the number that could become empty.
struct Folders(Vec<RepoPath>);

/// The error that there are more folders than removed files.
struct TooMany;

impl Visitor for Folders {
    type Here = ();
    type Stop = TooMany;

    fn entry(&mut self, at: Entry<'_>, _here: &mut ()) -> Result<Step<()>, TooMany> {
        if self.0.len() > APPLY_FILES_MAX {
            return Err(TooMany);
        }
        let place = at.text().filter(|_| at.kind() == Kind::Folder).and_then(RepoPath::as_is);
        let Some((place, inner)) = place.zip(at.open().ok()) else { return Ok(Step::Over) };
        self.0.push(place);
        Ok(Step::Into(inner, ()))
    }

    fn unread(&mut self, _folder: Folder<'_>, _why: Unread) -> Result<(), TooMany> {
        Ok(())
    }
}

/// Returns whether one of two files takes the place of the other; each comes with whether it is removed.
fn meets((path, gone): (&RepoPath, bool), (other, other_gone): (&RepoPath, bool)) -> bool {
    gone != other_gone && (is_below(path, other) || is_below(other, path))
}

/// Returns a group number for each order; the orders of one change have the same number.
pub(super) fn groups(orders: &[FileWrite]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..orders.len()).collect();
    for (at, order) in orders.iter().enumerate() {
        for (before, other) in orders.iter().enumerate().take(at) {
            let together = meets((&order.path, order.is_removal()), (&other.path, other.is_removal()));
            if let (true, Some(&from), Some(&to)) = (together, groups.get(at), groups.get(before)) {
                groups.iter_mut().filter(|it| **it == from).for_each(|it| *it = to);
            }
        }
    }
    groups
}

/// Returns the orders of each group that has several, by the group's number.
pub(super) fn together(orders: &[FileWrite], groups: &[usize]) -> BTreeMap<usize, Vec<FileWrite>> {
    let mut all: BTreeMap<usize, Vec<FileWrite>> = BTreeMap::new();
    for (order, group) in orders.iter().zip(groups) {
        all.entry(*group).or_default().push(order.clone());
    }
    all.retain(|_, orders| orders.len() > 1);
    all
}

/// Withholds from a preview the files that an apply withholds: files of a change that has another part which cannot be
/// written. `places` are the files, each with whether it is removed; `None` where the path is no file.
pub(super) fn withhold_together(found: &mut [Previewed], places: &[Option<(RepoPath, bool)>]) {
    let refused = found.iter().zip(places).filter(|(it, _)| it.reason.is_some());
    let mut failed: Vec<(RepoPath, bool)> = refused.filter_map(|(_, place)| place.clone()).collect();
    let mut at = 0;
    while let Some((one, is_removal)) = failed.get(at).cloned() {
        at += 1;
        for (it, place) in found.iter_mut().zip(places) {
            let Some((path, gone)) = place.as_ref().filter(|_| it.action != Action::Skip) else { continue };
            if meets((path, *gone), (&one, is_removal)) {
                it.skip(format!("{one}, which belongs to this change, cannot be written"));
                failed.push((path.clone(), *gone));
            }
        }
    }
}

impl Sorted {
    /// Withholds the orders of a change if another part of the change cannot be written, and puts each removal before the file that takes
    /// its place. `failed` are the files that cannot be written, or that cannot be removed if the flag is set.
    pub(super) fn keep_together(&mut self, mut failed: Vec<(RepoPath, bool)>) {
        let mut at = 0;
        while let Some((one, is_removal)) = failed.get(at).cloned() {
            at += 1;
            let belongs = |order: &FileWrite| meets((&order.path, order.is_removal()), (&one, is_removal));
            let (withheld, orders) = std::mem::take(&mut self.orders).into_iter().partition(belongs);
            self.orders = orders;
            let withheld: Vec<FileWrite> = withheld;
            for order in withheld {
                let why = format!("{one}, which belongs to this change, cannot be written");
                self.applied.errors.push(format!("{}: {why}", order.path));
                self.shown.withhold(&order.path);
                failed.push((order.path.clone(), order.is_removal()));
            }
        }
        let swaps = |order: &FileWrite| {
            let mut others = self.orders.iter();
            others.any(|it| meets((&it.path, it.is_removal()), (&order.path, order.is_removal())))
        };
        if self.orders.iter().any(swaps) {
            self.orders.sort_by_key(|order| !order.is_removal());
        }
    }
}
