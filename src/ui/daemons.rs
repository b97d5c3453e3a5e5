//! Finds the daemons of the user, and hears of those that come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Notify;

use super::inputs::Repository;
use provost_base::limits::DAEMONS_ASKED_MAX;
use provost_base::shell_word;
use provost_config::Places;
use provost_config::daemons::{self, Listed};
use provost_config::env::Environment;
use provost_system::folder_watch::{FolderWatcher, Subscription};

/// How many paths of the folder wait before everything is looked at: one is enough, since everything is.
const PATHS_MAX: usize = 1;

/// Whose daemons are shown.
#[derive(Clone)]
pub struct Whose {
    /// The environment of the command.
    pub environment: Environment,
    /// The repository around the command, if it is one that is known.
    pub here: Option<Places>,
    /// Whether that one alone is shown.
    pub narrowed: bool,
}

/// A repository with a daemon, or the one around the command.
pub(super) struct Found {
    pub places: Places,
    pub repository: Repository,
    pub is_here: bool,
}

impl Whose {
    /// The repositories of this moment, the one around the command first. Blocks for as long as a disk does.
    pub(super) fn find(&self) -> Vec<Found> {
        let mut found: Vec<Found> = self.here.iter().map(|it| found(it.clone(), true)).collect();
        if self.narrowed {
            return found;
        }
        let files = daemons::files(&self.environment, DAEMONS_ASKED_MAX).map(|it| it.0).unwrap_or_default();
        let mut others: Vec<Found> = files
            .iter()
            .filter_map(|path| match daemons::look(path, &self.environment)? {
                Listed::Runs { places, .. } => Some(places),
                Listed::Ended { .. } | Listed::Unfit { .. } => None,
            })
            .filter(|it| self.here.as_ref().is_none_or(|here| here.hash != it.hash))
            .map(|it| self::found(*it, false))
            .collect();
        others.sort_by(|a, b| a.places.root.cmp(&b.places.root));
        found.extend(others);
        found
    }

    /// Tells of changes among the daemons' entries, for as long as it is kept; `None` where the system cannot tell.
    pub(super) fn watch(&self, changed: Arc<Notify>) -> Option<Subscription> {
        let folder = daemons::folder(&self.environment).ok()?;
        let watch = FolderWatcher::default().subscribe(PATHS_MAX, |_| true, move || changed.notify_one());
        let covered = watch.cover(&BTreeSet::from([folder.clone()]));
        // Where one watch covers all that lies below.
        let _told = watch.tree(&folder);
        covered.missing.is_none().then_some(watch)
    }
}

fn found(places: Places, is_here: bool) -> Found {
    let root = places.root.display().to_string();
    let name = places.root.file_name().unwrap_or(places.root.as_os_str()).to_string_lossy().into_owned();
    let program = match is_here {
        true => "provost".to_owned(),
        false => format!("provost -C {}", shell_word(&root)),
    };
    Found { places, repository: Repository { name, root, program }, is_here }
}
