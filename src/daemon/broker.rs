//! The broker door over this repository: the repository's identity, and its work trees.

#[cfg(unix)]
mod log;
#[cfg(unix)]
mod tree_scan;
#[cfg(unix)]
mod watch;

use std::sync::Arc;

use super::Daemon;
use provost_base::limits::{PATH_LEN_MAX, WIT_WORKTREES_MAX};
use provost_config::{Config, Places, WorkTree};
use provost_protocols::broker::{Broker, Tree, Trees, Watch};
use provost_system as system;

#[cfg(unix)]
pub(super) use tree_scan::{as_committed, in_commit, in_words};

impl Daemon {
    /// Makes the door of this repository, with the followers of its messages: their log, and the watch of the speakers' files.
    pub(super) fn broker(&self, config: &Config) -> Broker {
        let places = &self.start.places;
        let identity = (places.root.display().to_string(), places.hash.clone());
        let at = places.clone();
        let trees: Trees = Arc::new(move || trees(&at));
        Broker::new(self.provost.clone(), identity, super::now, (trees, self.follow_agents(config)))
    }

    #[cfg(unix)]
    fn follow_agents(&self, config: &Config) -> Watch {
        self.keep_broker_log(config);
        let named = watch::Named::default();
        if config.broker.watch {
            let about = (self.provost.clone(), self.start.places.clone(), self.watcher.clone());
            self.doors.spawn(watch::watch(about, named.clone(), self.stop.clone()));
        }
        Box::new(move |agent, path| named.put(agent, path))
    }

    #[cfg(not(unix))]
    fn follow_agents(&self, _config: &Config) -> Watch {
        Box::new(|_, _| {})
    }
}

/// Returns the work trees, each with the name of its branch.
fn trees(places: &Places) -> Vec<Tree> {
    let all = places.work_trees(WIT_WORKTREES_MAX);
    all.into_iter().map(|tree| (tree.top.clone(), branch(&tree))).collect()
}

/// Returns the branch that is checked out in a work tree; `None` if none is.
fn branch(tree: &WorkTree) -> Option<String> {
    let head = system::short_text(&tree.git_dir.join("HEAD"), 2 * PATH_LEN_MAX as u64).ok()?;
    let name = head.strip_prefix("ref: refs/heads/").map(|it| it.trim_end().to_owned());
    // Git writes this name if its refs are in a table.
    name.filter(|it| it != ".invalid")
}
