//! A file that takes the place of a folder, and files in a folder that takes the place of a file.
//!
//! Such changes are several artifacts, removals among them, of which each alone would be refused or would leave half of
//! it done. The daemon plans them as if the removals were already done, and does all of them or none.

use std::collections::{BTreeMap, BTreeSet};

use cap_std::fs::Dir;

use super::Sorted;
use provost_base::RepoPath;
use provost_base::limits::{APPLY_FILES_MAX, COPY_DEPTH_MAX};
use provost_workspace::change_plan::FileWrite;
use provost_workspace::file::{self, Found, Trouble};

/// What a file says, as it will be once these are gone.
///
/// # Errors
/// Why it cannot be looked at, safe to show.
pub(super) fn look_past(
    root: &Dir,
    path: &RepoPath,
    leaving: &BTreeSet<RepoPath>,
) -> Result<Option<Found>, String> {
    match file::look(root, path) {
        Err(Trouble::NoFolder) if leaving.iter().any(|gone| is_below(path, gone)) => Ok(None),
        Err(Trouble::Folder) if leaving.iter().any(|gone| is_below(gone, path)) => {
            let mut stays = Vec::new();
            if let Ok(Some(folder)) = file::folder_at(root, path) {
                staying(&folder, path.as_str(), leaving, COPY_DEPTH_MAX, &mut stays);
            }
            match stays.first() {
                Some(one) => Err(format!("it is a folder, and {one} in it stays")),
                None => Ok(None),
            }
        }
        looked => looked.map_err(|trouble| trouble.to_string()),
    }
}

fn is_below(path: &RepoPath, folder: &RepoPath) -> bool {
    path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// What is in a folder and does not go; one is enough.
fn staying(dir: &Dir, at: &str, leaving: &BTreeSet<RepoPath>, depth: usize, stays: &mut Vec<String>) {
    let Some((depth, entries)) = depth.checked_sub(1).zip(dir.entries().ok()) else {
        return stays.push("what cannot be looked at".into());
    };
    for (number, entry) in entries.enumerate() {
        if !stays.is_empty() {
            return;
        }
        let Some(name) = entry.ok().and_then(|it| it.file_name().into_string().ok()) else {
            return stays.push("what cannot be looked at".into());
        };
        let path = format!("{at}/{name}");
        match file::folder_at(dir, &name_alone(&name)) {
            // More folders than files that go: some of them have others in them.
            Ok(Some(_)) if number > APPLY_FILES_MAX => stays.push(path),
            Ok(Some(inner)) => staying(&inner, &path, leaving, depth, stays),
            _ if RepoPath::parse(&path).is_ok_and(|path| leaving.contains(&path)) => {}
            _ => stays.push(path),
        }
    }
}

/// A name as a path from its own folder.
fn name_alone(name: &str) -> RepoPath {
    RepoPath::parse(name).unwrap_or_default()
}

/// Removes a folder in the place of a file, with the folders in it, as far as there are no files in them.
pub(super) fn sweep(root: &Dir, path: &RepoPath) {
    let Ok(Some(folder)) = file::folder_at(root, path) else { return };
    let mut folders = vec![path.clone()];
    empty_folders(&folder, path.as_str(), COPY_DEPTH_MAX, &mut folders);
    // The innermost of each first; one that is not empty is left, and those around it.
    folders.sort_by_key(|it| std::cmp::Reverse(it.as_str().matches('/').count()));
    for folder in folders {
        file::remove_folders(root, &[folder]);
    }
}

fn empty_folders(dir: &Dir, at: &str, depth: usize, found: &mut Vec<RepoPath>) {
    let Some((depth, entries)) = depth.checked_sub(1).zip(dir.entries().ok()) else { return };
    for name in entries.filter_map(|it| it.ok()?.file_name().into_string().ok()) {
        let path = format!("{at}/{name}");
        if found.len() <= APPLY_FILES_MAX
            && let Ok(Some(inner)) = file::folder_at(dir, &name_alone(&name))
            && let Ok(place) = RepoPath::parse(&path)
        {
            found.push(place);
            empty_folders(&inner, &path, depth, found);
        }
    }
}

/// Whether one of two takes the place of the other; each with whether it is removed.
fn meets((path, gone): (&RepoPath, bool), (other, other_gone): (&RepoPath, bool)) -> bool {
    gone != other_gone && (is_below(path, other) || is_below(other, path))
}

/// Which orders belong to one change: those of one group have the same number.
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

/// The orders of each group that has several, by its number.
pub(super) fn together(orders: &[FileWrite], groups: &[usize]) -> BTreeMap<usize, Vec<FileWrite>> {
    let mut all: BTreeMap<usize, Vec<FileWrite>> = BTreeMap::new();
    for (order, group) in orders.iter().zip(groups) {
        all.entry(*group).or_default().push(order.clone());
    }
    all.retain(|_, orders| orders.len() > 1);
    all
}

impl Sorted {
    /// Withholds what belongs to something that cannot be done, and puts what goes before what takes its place.
    /// `failed` are files that cannot be written, or cannot be removed where it says so.
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
