//! Hears from the system of changes in folders.
//!
//! Promises: no more folders are watched than their bound; a folder that has gone is no error, since the folder around it
//! tells of that; reading is no change, or the listener's own reading would be heard without end; when something may have
//! been missed, the listener is told so. Links out of a tree are not followed. A report does not say what a file says now,
//! and how changes are gathered until there is time for them is the listener's: its queue needs a bound of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use provost_base::limits::WATCH_FOLDERS_MAX;

/// What the system tells.
#[derive(Debug)]
pub enum Heard {
    /// Something has changed.
    Change {
        /// At these paths.
        paths: Vec<PathBuf>,
        /// Whether there may be other folders than before.
        moves_folders: bool,
    },
    /// Something may have been missed: anything may have changed.
    Lost,
}

/// The system's watching of some folders.
pub struct FolderWatch {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

/// Whether this system watches each folder for itself. On others [`FolderWatch::tree`] watches all that lies below.
pub const ONE_BY_ONE: bool = cfg!(target_os = "linux");

impl FolderWatch {
    /// Watches nothing at first. `hear` is called on a thread of the system's watching, and must not block.
    ///
    /// # Errors
    /// Why the system watches nothing, in words.
    pub fn new(hear: impl Fn(Heard) + Send + 'static) -> Result<Self, String> {
        let on_event = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => hear(Heard::Lost),
            Ok(event) if is_change(event.kind) => {
                hear(Heard::Change { moves_folders: may_move_folders(event.kind), paths: event.paths });
            }
            Ok(_) => {}
            Err(_) => hear(Heard::Lost),
        };
        let config = notify::Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(on_event, config).map_err(|err| err.to_string())?;
        Ok(Self { watcher, folders: BTreeSet::new() })
    }

    /// Watches a folder with all that lies below it, on systems that can. On others, call [`FolderWatch::change`] for each.
    ///
    /// # Errors
    /// Why it is not watched, in words.
    pub fn tree(&mut self, top: &Path) -> Result<(), String> {
        if ONE_BY_ONE {
            return Ok(());
        }
        self.watcher.watch(top, RecursiveMode::Recursive).map_err(|err| err.to_string())
    }

    /// Watches the `new` folders, those anew that are watched already, and the `gone` ones no more.
    ///
    /// # Errors
    /// Why not all of the new ones are watched, in words.
    pub fn change(&mut self, gone: &[PathBuf], new: &[PathBuf]) -> Result<(), String> {
        let mut paths = self.watcher.paths_mut();
        // Old folders first: one that was renamed is the same to the system under both names.
        for folder in gone {
            if self.folders.remove(folder) {
                // The system has let go of one that is gone.
                let _gone = paths.remove(folder);
            }
        }
        let fresh = new.iter().filter(|it| !self.folders.contains(*it)).count();
        let has_room = self.folders.len() + fresh <= WATCH_FOLDERS_MAX;
        let mut done =
            if has_room { Ok(()) } else { Err(format!("there are more than {WATCH_FOLDERS_MAX} folders")) };
        for folder in new.iter().filter(|_| has_room) {
            match paths.add(folder, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.folders.insert(folder.clone())),
                // Gone already; the folder that it was in tells of it.
                Err(err) if is_gone(&err) => drop(self.folders.remove(folder)),
                Err(err) => {
                    done = Err(err.to_string());
                    break;
                }
            }
        }
        paths.commit().map_err(|err| err.to_string())?;
        done
    }
}

fn is_gone(err: &notify::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match &err.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(err) => matches!(err.kind(), NotFound | NotADirectory),
        _ => false,
    }
}

fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn may_move_folders(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(kind) => kind != CreateKind::File,
        EventKind::Remove(kind) => kind != RemoveKind::File,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Any | ModifyKind::Other),
        EventKind::Any | EventKind::Other => true,
        EventKind::Access(_) => false,
    }
}
