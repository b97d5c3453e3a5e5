//! The broker door over this repository: whose it is, and which work trees there are.

#[cfg(unix)]
mod log;
#[cfg(unix)]
mod watch;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::Daemon;
use crate::base::limits::WIT_WORKTREES_MAX;
use crate::config::{Config, Places};
use crate::protocols::broker::{Broker, Tree, Trees, Watch};

impl Daemon {
    /// The door of this repository, with what follows its messages: the log of them, and the files of those who speak.
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
            let (provost, places) = (self.provost.clone(), self.start.places.clone());
            self.doors.spawn(watch::watch(provost, places, named.clone(), self.stop.clone()));
        }
        Box::new(move |agent, path| named.put(agent, path))
    }

    #[cfg(not(unix))]
    fn follow_agents(&self, _config: &Config) -> Watch {
        Box::new(|_, _| {})
    }
}

/// The work trees, each with the name of its branch.
pub(super) fn trees(places: &Places) -> Vec<Tree> {
    let all = places.worktrees(WIT_WORKTREES_MAX);
    all.into_iter().map(|top| (top.clone(), branch(&top))).collect()
}

/// The branch that is checked out in a work tree; none where that is no branch.
fn branch(top: &Path) -> Option<String> {
    let dot_git = top.join(".git");
    let git_dir = match fs::read_to_string(&dot_git) {
        Ok(pointer) => top.join(pointer.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => dot_git,
    };
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    head.strip_prefix("ref: refs/heads/").map(|it| it.trim_end().to_owned())
}
