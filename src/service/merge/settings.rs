//! Files of a branch that are merged only where a person says so: they run later, or tell agents what to do.

use super::super::Provost;
use super::MergeError;
use provost_base::later::{names, row_over};
use provost_domain::Refusal;
use provost_workspace::git_objects::TreeChange;

impl Provost {
    /// Such files among the changes of each of some branches: by their names; because git's configuration or ours names
    /// or protects them, in the workspace as it is; or because a check of a merge is in them and was there before.
    ///
    /// # Errors
    /// [`MergeError::Unknown`] where it is not known what runs outside of every jail.
    pub(super) async fn settings_among(
        &self,
        all: Vec<Vec<TreeChange>>,
    ) -> Result<Vec<Vec<String>>, MergeError> {
        let (service, checks) = (self.clone(), self.merge_settings().checks.clone());
        let work = move || {
            let paths: Vec<String> = all.iter().flatten().map(|it| it.path.clone()).collect();
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
        let done = done.map_err(|_| Refusal::Unavailable { why: "it is shutting down".into() })?;
        done.map_err(MergeError::Unknown)
    }
}

/// Whether a file is one by its name, or leads to another repository.
fn is_setting(change: &TreeChange) -> bool {
    let path = change.path.as_str();
    let hides = path.split('/').next_back().is_some_and(|it| matches!(it, ".gitattributes" | ".gitmodules"));
    let is_submodule = change.new.as_ref().is_some_and(|it| it.mode == "160000");
    hides || is_submodule || row_over(path.as_bytes()).is_some() || path.split('/').any(names::is_ci)
}

/// Whether a command line has a file among its words.
fn names_file(line: &str, path: &str) -> bool {
    let mut words = line.split(|c: char| c.is_whitespace() || "'\"=;&|()<>".contains(c));
    words.any(|word| word.trim_start_matches("./") == path)
}
