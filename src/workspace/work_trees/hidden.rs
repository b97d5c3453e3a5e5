//! Files that a new rule in a work tree hides from git: its worker may have written the rule.

use std::collections::BTreeMap;

use super::WorkTree;
use crate::quiet_git::Input;

impl WorkTree {
    /// Files and folders that are ignored by a rule that a commit's ignore files do not have, from the top of the work tree.
    ///
    /// # Errors
    /// A sentence, when git cannot be asked.
    pub fn hidden_since(&self, commit: &str) -> Result<Vec<String>, String> {
        let git = self.git();
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let ignored = git.must(&args, Input::Nothing)?;
        if ignored.is_empty() {
            return Ok(Vec::new());
        }
        // Answers rows of four: the file of the rule, its line, the rule, and what it ignores.
        let answer = git.run(&["check-ignore", "--verbose", "-z", "--stdin"], Input::Bytes(&ignored))?;
        let words: Vec<&[u8]> = answer.out.split(|byte| *byte == 0).collect();
        let (mut known, mut hidden) = (BTreeMap::new(), Vec::new());
        for row in words.chunks_exact(4) {
            let [source, _, rule, path] = row else { continue };
            let [source, rule] = [source, rule].map(|it| String::from_utf8_lossy(it).into_owned());
            // Lists of the user's own lie outside, and are named by absolute paths or below the repository's folder.
            let is_inside = source == ".gitignore" || source.ends_with("/.gitignore");
            if !is_inside || source.starts_with('/') || rule.starts_with('!') {
                continue;
            }
            if !known.contains_key(&source) {
                known.insert(source.clone(), self.rules_at(commit, &source)?);
            }
            if !known[&source].contains(&rule) {
                hidden.push(String::from_utf8_lossy(path).into_owned());
            }
        }
        Ok(hidden)
    }

    /// The lines of an ignore file at a commit; none where it was not there.
    fn rules_at(&self, commit: &str, file: &str) -> Result<Vec<String>, String> {
        let answer = self.git().run(&["cat-file", "blob", &format!("{commit}:{file}")], Input::Nothing)?;
        let text = if answer.success { answer.out } else { Vec::new() };
        Ok(String::from_utf8_lossy(&text).lines().map(|it| it.trim_end().to_owned()).collect())
    }
}
