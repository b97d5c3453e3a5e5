//! A merge that is being committed: its parents, and the part of it that its committer has written.
//!
//! A file that is the same in a parent came with that parent, where it was committed before. A file that differs from every
//! parent is the committer's, and so is everything that is picked, reverted or rebased: that makes a commit of one parent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::changes::{Change, ask, broken, changes};
use crate::CliError;

/// Most paths of one request; a command line takes many times as many.
const PATHS_AT_ONCE: usize = 200;

/// The files that git keeps while it makes commits again.
const AGAIN: [&str; 4] = ["rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

/// The parents of a merge; empty where no merge is being committed.
#[derive(Default)]
pub(super) struct Merge(Vec<Parent>);

/// One parent, by git's name for it.
pub(super) struct Parent(String);

async fn of_git(name: &str) -> Result<PathBuf, CliError> {
    let said = ask(&["rev-parse", "--git-path", name]).await?;
    Ok(String::from_utf8_lossy(&said).trim_end_matches(['\n', '\r']).into())
}

impl Merge {
    /// Reads the merge that is under way.
    pub(super) async fn read() -> Result<Self, CliError> {
        let text = match std::fs::read_to_string(of_git("MERGE_HEAD").await?) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(err) => return Err(broken(format!("MERGE_HEAD cannot be read: {err}"))),
        };
        for name in AGAIN {
            if of_git(name).await?.symlink_metadata().is_ok() {
                return Ok(Self::default());
            }
        }
        let heads = text.lines().map(str::trim).filter(|it| !it.is_empty());
        Ok(Self(std::iter::once("HEAD").chain(heads).map(|it| Parent(it.to_owned())).collect()))
    }

    pub(super) fn is_one(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn parents(&self) -> &[Parent] {
        &self.0
    }

    /// Returns the parents beside the one that is checked out.
    pub(super) fn others(&self) -> &[Parent] {
        self.0.get(1..).unwrap_or_default()
    }

    /// Keeps, of all changes, only the files that differ from every parent.
    pub(super) async fn leave_own(&self, all: &mut Vec<Change>) -> Result<(), CliError> {
        for parent in self.others() {
            let differs = changes(&["--cached", &parent.0]).await?;
            let differs: BTreeSet<Option<String>> =
                differs.into_iter().flat_map(|it| [it.path, it.from]).collect();
            all.retain(|change| {
                let of_change = [&change.path, &change.from];
                of_change.into_iter().any(|path| path.is_some() && differs.contains(path))
                    || change.path.is_none()
            });
        }
        Ok(())
    }
}

impl Parent {
    /// Returns the contents of some of its files, by git's names; paths that are no files in it are left out.
    pub(super) async fn blobs(&self, paths: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, CliError> {
        let paths: Vec<&str> = paths.iter().copied().collect();
        let mut found = BTreeMap::new();
        for some in paths.chunks(PATHS_AT_ONCE) {
            let list = ["ls-tree", "-r", "-z", "--full-tree", &self.0, "--"];
            let said = ask(&[&list[..], some].concat()).await?;
            for line in said.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
                let line = std::str::from_utf8(line).ok().and_then(|it| it.split_once('\t'));
                // A path that Provost cannot name was not asked for.
                let Some((head, path)) = line else { continue };
                let mut words = head.split(' ');
                let (mode, id) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
                if mode.starts_with("100") {
                    found.insert(path.to_owned(), id.to_owned());
                }
            }
        }
        Ok(found)
    }
}
