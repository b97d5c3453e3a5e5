//! Describes the workspace for agents before they begin, as `git status` does.

use provost_agents::Surroundings;
use provost_config::Places;

/// Returns the description of the daemon's own checkout.
#[cfg(unix)]
pub(in crate::daemon) fn surroundings(places: &Places) -> Surroundings {
    use provost_base::limits::SURROUNDINGS_LINES_MAX;
    let places = places.clone();
    Surroundings::new(move || {
        let is_repository = places.root.join(".git").exists();
        let tree = places.work_trees(1).into_iter().next().filter(|_| is_repository);
        tree.map_or_else(
            || Ok(String::new()),
            |tree| crate::daemon::broker::in_words(&tree, SURROUNDINGS_LINES_MAX),
        )
    })
}

/// Returns no description: on these systems the daemon does not ask git, since it cannot keep git from starting programs.
#[cfg(not(unix))]
pub(in crate::daemon) fn surroundings(_places: &Places) -> Surroundings {
    Surroundings::default()
}
