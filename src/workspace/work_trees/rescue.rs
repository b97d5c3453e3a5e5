//! The changes of a run whose end no daemon saw: all differences from the commit at which it began.

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::listing::at;
use super::record::shelves;
use super::{WorkTree, WorkTrees, common_of};
use crate::quiet_git::Input;
use crate::snapshot::{Base, record};
use provost_base::RepoPath;
use provost_base::limits::BASE_FILE_BYTES_MAX;

impl WorkTrees {
    /// Returns the work tree in which a task's run had begun when the daemon was killed.
    ///
    /// # Errors
    /// A sentence if git cannot be asked.
    pub fn interrupted(&self, branch: &str, task: &str) -> Result<Option<WorkTree>, String> {
        let Some(shelf) = shelves(&self.folder).into_iter().find(|it| it.name == self.shelf(branch).name)
        else {
            return Ok(None);
        };
        let known = shelf.record().map_err(|err| self.unusable(&err))?;
        let Some(known) = known.filter(|it| it.task == task && it.began.is_some()) else { return Ok(None) };
        let _lock = shelf.lock().map_err(|err| self.unusable(&err))?;
        let git = self.git()?;
        let tree = at(&git, &common_of(&git)?, shelf, &known);
        tree.is_whole().map(|()| Some(tree))
    }
}

impl WorkTree {
    /// Records the files of a folder of the work tree as they are now, before a run.
    ///
    /// # Errors
    /// The reason why the files cannot be recorded.
    pub fn record(&self, below: &RepoPath, into: &Path) -> Result<Base, String> {
        let open = |path: &Path| {
            Dir::open_ambient_dir(path, ambient_authority())
                .map_err(|err| format!("{}: {err}", path.display()))
        };
        let (tree, common, entry) = (open(&self.path)?, open(&self.common)?, open(&self.entry)?);
        let folder = if below.is_root() { tree.try_clone() } else { tree.open_dir(below.as_str()) };
        let folder =
            folder.map_err(|err| format!("branch {} has no folder '{below}': {err}", self.branch))?;
        record((&tree, &folder, below), (&common, &entry), into).map_err(|err| err.to_string())
    }

    /// Records the files as they were at the commit at which a run began, after the run.
    ///
    /// # Errors
    /// The reason why the files cannot be found.
    pub fn record_of_start(&self, below: &RepoPath, into: &Path) -> Result<Base, String> {
        let mut base = self.record(below, into)?;
        let left = self.shelf.record().ok().flatten().map(|it| it.left).unwrap_or_default();
        let git = self.git();
        let differs =
            ["diff-index", "-z", "--name-only", "--no-renames", "--ignore-submodules=all", &self.start, "--"];
        let refresh = git.run(&["update-index", "-q", "--refresh"], Input::Nothing)?;
        drop(refresh);
        let changed = git.must(&differs, Input::Nothing)?;
        let new = git.must(&["ls-files", "-z", "--others", "--exclude-standard"], Input::Nothing)?;
        let paths = changed.split(|byte| *byte == 0).chain(new.split(|byte| *byte == 0));
        for path in paths.filter_map(|it| std::str::from_utf8(it).ok()).filter(|it| !it.is_empty()) {
            let is_inside = below.is_root() || Path::new(path).starts_with(below.as_str());
            if !is_inside || left.iter().any(|it| it == path) {
                continue;
            }
            match self.at_start(path)? {
                Some((mode, content)) => {
                    base.was_file(path, mode, &content).map_err(|err| err.to_string())?
                }
                None => base.was_not(path),
            }
        }
        Ok(base)
    }

    /// Returns a file at the commit at which the run began; `None` if it did not exist.
    fn at_start(&self, path: &str) -> Result<Option<(u32, Vec<u8>)>, String> {
        let found = self.git().must(&["ls-tree", "-z", &self.start, "--", path], Input::Nothing)?;
        let found = String::from_utf8_lossy(&found);
        let Some((head, _)) = found.trim_end_matches('\0').split_once('\t') else { return Ok(None) };
        let words: Vec<&str> = head.split(' ').collect();
        let [mode, "blob", name] = words.as_slice() else { return Ok(None) };
        let mode = match *mode {
            "100755" => 0o755,
            "100644" => 0o644,
            _ => return Ok(None),
        };
        let content = self.git().must(&["cat-file", "blob", name], Input::Nothing)?;
        let fits = content.len() as u64 <= BASE_FILE_BYTES_MAX;
        if fits { Ok(Some((mode, content))) } else { Err(format!("{path} is too large to be compared")) }
    }
}
