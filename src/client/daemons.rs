//! Finds the daemons of the user, and hears of those that come and go.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use provost_base::limits::{DAEMON_ASKED_MS, DAEMONS_ASKED_MAX};
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
#[derive(Debug)]
pub struct Found {
    /// Where it is, and where its daemon listens.
    pub places: Places,
    /// What people see of it.
    pub repository: Repository,
    /// Whether it is the one around the command.
    pub is_here: bool,
}

/// A repository and its daemon, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repository {
    /// What people call it.
    pub name: String,
    /// Its folder.
    pub root: String,
    /// What a command for it begins with: `provost`, or `provost -C FOLDER`.
    pub program: String,
}

/// Entries that are being looked at: a disk that does not answer is asked once.
pub type Looking = Arc<Mutex<BTreeSet<PathBuf>>>;

impl Whose {
    /// Sends the repositories of this moment, the one around the command first; those on a disk that is slow come later, and hold
    /// up no other.
    pub async fn find(self, looking: Looking, found: mpsc::Sender<Vec<Found>>) {
        let mut first: Vec<Found> = self.here.iter().map(|it| self::found(it.clone(), true)).collect();
        let mut looks = if self.narrowed { Vec::new() } else { self.looks(&looking).await };
        let until = Instant::now() + Duration::from_millis(DAEMON_ASKED_MS);
        let (mut others, mut late) = (Vec::new(), Vec::new());
        for mut look in looks.drain(..) {
            match timeout_at(until, &mut look).await {
                Ok(it) => others.extend(it.ok().flatten()),
                Err(_) => late.push(look),
            }
        }
        others.sort_by(|a: &Found, b| a.places.root.cmp(&b.places.root));
        first.extend(others);
        // A screen that has ended wants none.
        let _ended = found.send(first).await;
        for look in late {
            if let Ok(Some(it)) = look.await {
                let _ended = found.send(vec![it]).await;
            }
        }
    }

    /// Begins to look at each entry that is not looked at already.
    async fn looks(&self, looking: &Looking) -> Vec<JoinHandle<Option<Found>>> {
        let environment = self.environment.clone();
        let files = spawn_blocking(move || daemons::files(&environment, DAEMONS_ASKED_MAX)).await;
        let files = files.ok().and_then(Result::ok).map(|it| it.0).unwrap_or_default();
        let here = self.here.as_ref().map(|it| it.hash.clone());
        let begin = |path: PathBuf| {
            let is_new = lock(looking).insert(path.clone());
            let (environment, here, looking) = (self.environment.clone(), here.clone(), looking.clone());
            is_new.then(|| {
                spawn_blocking(move || {
                    let listed = daemons::look(&path, &environment);
                    lock(&looking).remove(&path);
                    match listed? {
                        Listed::Runs { places, .. } if here.as_ref() != Some(&places.hash) => {
                            Some(self::found(*places, false))
                        }
                        _ => None,
                    }
                })
            })
        };
        files.into_iter().filter_map(begin).collect()
    }

    /// Tells of changes among the daemons' entries, for as long as it is kept; `None` where the system cannot tell.
    pub fn watch(&self, changed: Arc<Notify>) -> Option<Subscription> {
        let folder = daemons::folder(&self.environment).ok()?;
        let watch = FolderWatcher::default().subscribe(PATHS_MAX, |_| true, move || changed.notify_one());
        let covered = watch.cover(&BTreeSet::from([folder.clone()]));
        // Where one watch covers all that lies below.
        let _told = watch.tree(&folder);
        covered.missing.is_none().then_some(watch)
    }
}

fn lock(looking: &Looking) -> MutexGuard<'_, BTreeSet<PathBuf>> {
    // A set is whole between any two of its operations.
    looking.lock().unwrap_or_else(PoisonError::into_inner)
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
