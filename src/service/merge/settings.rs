//! Files of a branch that are merged only with a person's consent: they run later, or instruct agents.

use super::super::Provost;
use super::MergeError;
use provost_base::AgentId;
use provost_base::later::{ROWS, names, row_over};
use provost_domain::Refusal;
use provost_workspace::git_objects::TreeChange;

impl Provost {
    /// Returns the files that need consent among the changes of each branch: by their names; because git's or Provost's
    /// configuration names or protects them, in the present workspace; or because a check of a merge names them and they
    /// existed before.
    ///
    /// # Errors
    /// [`MergeError::Unknown`] if the daemon cannot determine which files run outside of every jail.
    pub(super) async fn settings_among(
        &self,
        all: Vec<Vec<TreeChange>>,
    ) -> Result<Vec<Vec<String>>, MergeError> {
        let (service, checks) = (self.clone(), self.lines_of_checks());
        let work = move || {
            let paths: Vec<(String, bool)> =
                all.iter().flatten().map(|it| (it.path.clone(), is_link(it))).collect();
            let held = if paths.is_empty() { Vec::new() } else { service.are_held(&paths)? };
            let mut held = held.into_iter();
            let is_one = |change: &TreeChange, is_held: bool| {
                let checks_by = |line: &str| change.old.is_some() && names_file(line, &change.path);
                is_held || is_setting(change) || checks.iter().any(|it| checks_by(it))
            };
            let of_branch = |changes: &Vec<TreeChange>| {
                let each = changes.iter().zip(held.by_ref());
                each.filter(|(it, is_held)| is_one(it, *is_held)).map(|(it, _)| it.path.clone()).collect()
            };
            Ok(all.iter().map(of_branch).collect())
        };
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|_| Refusal::Stopping)?;
        done.map_err(MergeError::Unknown)
    }
}

impl Provost {
    /// Returns the command lines of the checks; for a check by a worker, the worker's own command line.
    fn lines_of_checks(&self) -> Vec<String> {
        let profiles = self.profiles();
        let line = |check: &str| {
            let worker = AgentId::parse(check).ok().and_then(|it| profiles.get(&it).cloned());
            worker.map_or_else(|| check.to_string(), |it| it.args.join(" "))
        };
        self.merge_settings().checks.iter().map(|it| line(it)).collect()
    }
}

/// Checks whether a change adds or removes a link.
fn is_link(change: &TreeChange) -> bool {
    [&change.old, &change.new].into_iter().flatten().any(|it| it.mode == "120000")
}

/// Checks whether a file needs consent because of its name, or because it leads to another repository.
fn is_setting(change: &TreeChange) -> bool {
    let path = change.path.as_str();
    let hides = path.split('/').next_back().is_some_and(|it| matches!(it, ".gitattributes" | ".gitmodules"));
    let is_submodule = change.new.as_ref().is_some_and(|it| it.mode == "160000");
    // A link in the place of a folder brings the settings in its target.
    let brings = || {
        let name = path.rsplit('/').next().unwrap_or(path);
        is_link(change) && ROWS.iter().any(|it| it.pattern.split('/').next() == Some(name))
    };
    hides
        || is_submodule
        || row_over(path.as_bytes()).is_some()
        || path.split('/').any(names::is_ci)
        || brings()
}

/// Checks whether a command line names a file, from the top or from a folder that it changes to first.
fn names_file(line: &str, path: &str) -> bool {
    let mut words = line.split(|c: char| c.is_whitespace() || "'\"=;&|()<>".contains(c));
    let is_it = |word: &str| path == word || path.strip_suffix(word).is_some_and(|it| it.ends_with('/'));
    words.any(|word| {
        let word = word.trim_start_matches("./");
        !word.is_empty() && is_it(word)
    })
}
