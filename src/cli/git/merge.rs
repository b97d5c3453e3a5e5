//! A merge that is being committed: its parents, and what of it is its committer's.
//!
//! What is as a parent has it came with that parent, where it was committed before. What is as no parent has it is the
//! committer's, and so is everything that is picked, reverted or rebased: that makes a commit of one parent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::changes::{Change, ask, broken, changes};
use crate::CliError;

/// Paths asked about at once; a command line takes many times as much.
const PATHS_AT_ONCE: usize = 200;

/// What git keeps while it makes commits again.
const AGAIN: [&str; 4] = ["rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

/// The parents of a merge; none where it is no merge.
#[derive(Default)]
pub(super) struct Merge(Vec<Parent>);

/// One of them, by git's name for it.
pub(super) struct Parent(String);

async fn of_git(name: &str) -> Result<PathBuf, CliError> {
    let said = ask(&["rev-parse", "--git-path", name]).await?;
    Ok(String::from_utf8_lossy(&said).trim_end_matches(['\n', '\r']).into())
}

impl Merge {
    /// The merge that is under way.
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

    /// Those beside the one that is checked out.
    pub(super) fn others(&self) -> &[Parent] {
        self.0.get(1..).unwrap_or_default()
    }

    /// Of all that changes, leaves the files that are as no parent has them.
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
    /// What some of its files are, by git's names for their contents; what is no file there is left out.
    pub(super) async fn blobs(&self, paths: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, CliError> {
        let paths: Vec<&str> = paths.iter().copied().collect();
        let mut found = BTreeMap::new();
        for some in paths.chunks(PATHS_AT_ONCE) {
            let list = ["ls-tree", "-r", "-z", "--full-tree", &self.0, "--"];
            let said = ask(&[&list[..], some].concat()).await?;
            for line in said.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
                let line = std::str::from_utf8(line).ok().and_then(|it| it.split_once('\t'));
                // What has no name of ours was not asked for.
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
