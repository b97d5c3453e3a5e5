//! The files that git ignores, by its ignore files. The caller reads the files; this module only interprets
//! them.

use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The patterns of ignore files, from the root of the repository down. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules(Vec<(usize, Arc<Gitignore>)>);

impl IgnoreRules {
    /// Adds the patterns of an ignore file for everything below a folder, which is given from the root; the root
    /// itself is the empty name.
    pub fn add(&mut self, text: &str, folder: &str) {
        let mut builder = GitignoreBuilder::new(".");
        for line in text.lines() {
            // A line that is not a pattern is skipped, as git does.
            let _unread = builder.add_line(None, line);
        }
        if let Ok(rules) = builder.build()
            && !rules.is_empty()
        {
            let below = if folder.is_empty() { 0 } else { folder.len() + 1 };
            self.0.push((below, rules.into()));
        }
    }

    /// Checks whether git ignores a path, given from the root; its parent folders are not checked.
    pub fn ignores(&self, path: &str, is_folder: bool) -> bool {
        for (below, rules) in self.0.iter().rev() {
            let found = rules.matched(&path[*below..], is_folder);
            if !found.is_none() {
                return found.is_ignore();
            }
        }
        false
    }
}
