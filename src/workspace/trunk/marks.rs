//! Files that the user has told git to take for unchanged (`git update-index --assume-unchanged`, `--skip-worktree`): a merge
//! neither overwrites their contents nor loses the marks.

use std::collections::BTreeSet;
use std::path::Path;

use super::{CannotFollow, Follower};
use crate::git_objects::TreeChange;
use crate::git_process::{self, GitError};

impl Follower<'_> {
    /// Makes git check the files that change, even if the user has marked them as unchanged. Returns the marked ones,
    /// which get their marks back. Marks of other files stay.
    pub(super) fn without_assumptions(
        &self,
        index: &Path,
        changes: &[TreeChange],
    ) -> Result<Vec<String>, CannotFollow> {
        let said = self.git(index, &["ls-files", "-v", "-z"])?.good("ls-files")?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let changed: BTreeSet<&str> = changes.iter().map(|it| it.path.as_str()).collect();
        let files = said.split('\0').filter_map(|it| it.split_once(' ')).filter(|it| changed.contains(it.1));
        let mut assumed = Vec::new();
        for (mark, path) in files {
            // Git does not check these files at all.
            if matches!(mark, "S" | "s") {
                return Err(self.in_the_way(format!(
                    "{path:?} is marked skip-worktree, so git does not say whether you have changed it; run \
                     `git update-index --no-skip-worktree` on it, or `git merge --ff-only {}` there instead",
                    self.way.1
                )));
            }
            if mark.starts_with(|it: char| it.is_ascii_lowercase()) {
                assumed.push(path.to_owned());
            }
        }
        self.mark_files(index, "--no-assume-unchanged", &assumed)?;
        Ok(assumed)
    }

    /// Marks files in an index, as far as the index has them.
    pub(super) fn mark_files(&self, index: &Path, how: &str, files: &[String]) -> Result<(), GitError> {
        if files.is_empty() {
            return Ok(());
        }
        let mut git = self.objects.git_at(index, &self.tree.top)?;
        git.args(["update-index", "-q", how, "-z", "--stdin"]);
        git_process::reading(&mut git, (files.join("\0") + "\0").as_bytes(), self.objects.scratch())?;
        git_process::run(git, "update-index", self.objects.scratch()).map(drop)
    }
}
