//! Files that a new rule in a work tree hides from git: the run's worker may have written the rule.

use std::collections::BTreeMap;

use super::WorkTree;
use crate::quiet_git::{Input, succeeded};
use provost_base::limits::{IGNORE_BYTES_MAX, TREE_GIT_MS_MAX};
use provost_system::short_text;

impl WorkTree {
    /// Returns files and folders that are ignored by a rule that a commit's ignore files lack, from the top of the work tree.
    ///
    /// # Errors
    /// A sentence if git cannot be asked.
    pub fn hidden_since(&self, commit: &str) -> Result<Vec<String>, String> {
        let git = self.git();
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let ignored = git.must(&args, Input::Nothing)?;
        if ignored.is_empty() {
            return Ok(Vec::new());
        }
        // Each row has four parts: the file of the rule, its line, the rule, and the ignored path.
        let said = self.ignored_of(&["--verbose"], ignored.split(|byte| *byte == 0))?;
        let words: Vec<&[u8]> = said.split(|byte| *byte == 0).collect();
        let (mut known, mut hidden) = (BTreeMap::new(), Vec::new());
        for row in words.chunks_exact(4) {
            let [source, _, rule, path] = row else { continue };
            let [source, rule] = [source, rule].map(|it| String::from_utf8_lossy(it).into_owned());
            // The user's own lists lie outside, and are named by absolute paths or below the repository's folder.
            let is_inside = source == ".gitignore" || source.ends_with("/.gitignore");
            if !is_inside || source.starts_with('/') || rule.starts_with('!') {
                continue;
            }
            let path = String::from_utf8_lossy(plain(path)).into_owned();
            let mut is_new = false;
            // Removing an exception, in this folder or below, hides as much as a new rule.
            for file in ignore_files(&source, &path) {
                if !known.contains_key(&file) {
                    known.insert(file.clone(), self.rules_at(commit, &file)?);
                }
                let before = &known[&file];
                let now = self.rules_now(&file);
                let exceptions = before.iter().filter(|it| it.starts_with('!'));
                let place = |rules: &[String], one: &String| rules.iter().rposition(|it| it == one);
                let counted = |rules: &[String], one: &String| {
                    let of_rule = if file == source { place(rules, &rule) } else { None };
                    place(rules, one).is_some_and(|at| of_rule.is_none_or(|it| it < at))
                };
                is_new |= file == source && !before.contains(&rule);
                is_new |= exceptions.into_iter().any(|it| counted(before, it) && !counted(&now, it));
            }
            if is_new {
                hidden.push(path);
            }
        }
        Ok(hidden)
    }

    /// Returns the lines of `git check-ignore` about these paths; each path begins with `./`.
    pub(super) fn ignored_of<'p>(
        &self,
        how: &[&str],
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Vec<u8>, String> {
        let mut asked = Vec::new();
        for path in paths.filter(|it| !it.is_empty()) {
            // The prefix keeps a name from being read as a pattern: this command knows no literal ones.
            asked.extend_from_slice(b"./");
            asked.extend_from_slice(path);
            asked.push(0);
        }
        let args = [&["check-ignore", "-z", "--stdin"], how].concat();
        let not_literal = [("GIT_LITERAL_PATHSPECS", "0")];
        let answer = self.git().run_for(&args, Input::Bytes(&asked), &not_literal, TREE_GIT_MS_MAX)?;
        // Git exits with 1 and prints nothing if no path is ignored.
        if answer.success || answer.status == Some(1) { Ok(answer.out) } else { succeeded(&args, answer) }
    }

    /// Returns the lines of an ignore file in the work tree; none if it is missing or too long.
    fn rules_now(&self, file: &str) -> Vec<String> {
        let text = short_text(&self.path.join(file), IGNORE_BYTES_MAX as u64).unwrap_or_default();
        text.lines().map(|it| it.trim_end().to_owned()).collect()
    }

    /// Returns the lines of an ignore file at a commit; none if it did not exist.
    fn rules_at(&self, commit: &str, file: &str) -> Result<Vec<String>, String> {
        let answer = self.git().run(&["cat-file", "blob", &format!("{commit}:{file}")], Input::Nothing)?;
        let text = if answer.success { answer.out } else { Vec::new() };
        Ok(String::from_utf8_lossy(&text).lines().map(|it| it.trim_end().to_owned()).collect())
    }
}

/// Returns the ignore files that may concern a path, from the file of its rule down to the path's own folder.
fn ignore_files(source: &str, path: &str) -> Vec<String> {
    let top = source.strip_suffix(".gitignore").unwrap_or_default();
    let mut found = vec![source.to_owned()];
    let Some(below) = path.strip_prefix(top) else { return found };
    let ends = below.match_indices('/').map(|(at, _)| at + 1).filter(|at| *at < below.len());
    found.extend(ends.map(|at| format!("{top}{}.gitignore", &below[..at])));
    found
}

/// Removes the prefix that [`WorkTree::ignored_of`] has put before a path.
pub(super) fn plain(path: &[u8]) -> &[u8] {
    path.strip_prefix(b"./").unwrap_or(path)
}
