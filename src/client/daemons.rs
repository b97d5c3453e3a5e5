//! Finds the user's daemons, and is notified of those that start and stop.

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

/// Most changed paths that wait before the folder is read: one is enough, since all entries are then read.
const PATHS_MAX: usize = 1;

/// The choice of daemons that are shown.
#[derive(Clone)]
pub struct Whose {
    /// The environment of the command.
    pub environment: Environment,
    /// The repository around the command, if it is a known one.
    pub here: Option<Places>,
    /// Whether only that repository is shown.
    pub narrowed: bool,
}

/// A repository with a daemon, or the one around the command.
#[derive(Debug)]
pub struct Found {
    /// Its folders, and the address of its daemon.
    pub places: Places,
    /// The repository as people see it.
    pub repository: Repository,
    /// Whether it is the repository around the command.
    pub is_here: bool,
}

/// A repository and its daemon, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repository {
    /// The name that people call it by.
    pub name: String,
    /// Its folder.
    pub root: String,
    /// The beginning of commands for it: `provost`, or `provost -C FOLDER`.
    pub program: String,
}

/// The entries that are being read: a disk that does not answer is asked once.
pub type Looking = Arc<Mutex<BTreeSet<PathBuf>>>;

impl Whose {
    /// Sends the present repositories, the one around the command first. Those on a slow disk come later, and delay
    /// no other.
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
        // A screen that has ended does not receive them.
        let _ended = found.send(first).await;
        for look in late {
            if let Ok(Some(it)) = look.await {
                let _ended = found.send(vec![it]).await;
            }
        }
    }

    /// Starts to read each entry that is not being read already.
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

    /// Notifies of changes among the daemons' entries until the subscription is dropped; `None` where the system cannot notify.
    pub fn watch(&self, changed: Arc<Notify>) -> Option<Subscription> {
        let folder = daemons::folder(&self.environment).ok()?;
        let watch = FolderWatcher::default().subscribe(PATHS_MAX, |_| true, move || changed.notify_one());
        let covered = watch.cover(&BTreeSet::from([folder.clone()]));
        // On some systems one watch covers everything below the folder.
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
