//! The places of the repository and of the private folders that belong to it.
//!
//! One daemon serves one repository: everything with the same git common dir, or a folder without git. Its state and
//! its sockets are in folders of mode 0700 named by a digest of that path. This module does not run git.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::sockets;
use provost_base::{Digest, Door};
use provost_system::{self as system, ADDRESS_BYTES_MAX};

pub use provost_system::SYSTEM_CONFIG;

/// Most folders above the current one that are searched; a working copy is not nested deeper.
const ANCESTORS_MAX: usize = 128;

/// A work tree of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkTree {
    /// The folder of the work tree, without links in its path.
    pub top: PathBuf,
    /// The folder for git's own data of this work tree: its checked-out commit, and its index.
    pub git_dir: PathBuf,
}

/// The folders of one repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// The main working copy, or the folder itself without git.
    pub root: PathBuf,
    /// The working copy around the command: the root, or one of its `git worktree`s.
    pub worktree: PathBuf,
    /// The path that identifies the repository: the git common dir, or the folder.
    pub identity: PathBuf,
    /// The name of its folders: 16 hexadecimal digits of the digest of `identity`.
    pub hash: String,
    /// State: store, journal key, secret, pins.
    pub state: PathBuf,
    /// The folder of sockets: that of the daemon if one runs, else the one that a daemon started from here would use.
    pub runtime: PathBuf,
    /// The user's configuration, policy and keys, shared by all repositories.
    pub config: PathBuf,
    /// Notes for the user, such as an unusable `XDG_RUNTIME_DIR`.
    pub notes: Vec<String>,
}

/// The error of a folder that cannot be used. The text names the problem and the next step.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlacesError {
    /// Neither XDG variables nor HOME are set.
    #[error(
        "HOME is not set, so there is no place for state; set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME"
    )]
    NoHome,
    /// A folder cannot be found or created.
    #[error("{path}: {why}")]
    Unusable {
        /// The path of the folder.
        path: String,
        /// The problem, and the next step.
        why: String,
    },
}

fn unusable(path: &Path, why: impl Into<String>) -> PlacesError {
    PlacesError::Unusable { path: path.display().to_string(), why: why.into() }
}

impl Places {
    /// Finds the repository around `cwd` and names its folders. Creates nothing.
    ///
    /// # Errors
    /// [`PlacesError`] when there is no home, or the repository's own pointers do not fit together.
    pub fn find(cwd: &Path, environment: &Environment) -> Result<Self, PlacesError> {
        let start = environment.root.as_deref().unwrap_or(cwd);
        let start =
            system::real_path(start).map_err(|e| unusable(start, format!("cannot be entered: {e}")))?;
        let states = states(environment)?;
        let config = base(environment, &environment.config_home, ".config")?.join("provost");
        let repository = match repository_around(&start)? {
            Some(repository) => repository,
            None => Repository::plain(nearest_known(&start, &states)),
        };
        let hash = hash_of(&repository.identity);
        let state = states.join(&hash);
        let mut notes = Vec::new();
        let runtime = match &environment.runtime_dir {
            Some(dir) => match usable_runtime(dir) {
                Ok(()) => dir.join("provost").join(&hash),
                Err(why) => {
                    notes.push(format!(
                        "XDG_RUNTIME_DIR={} {why}; sockets go to the state folder",
                        dir.display()
                    ));
                    state.join("run")
                }
            },
            None => state.join("run"),
        };
        // The record of a running daemon names the folder of its sockets, since not every client has the daemon's
        // environment.
        let runtime = sockets::of_running(&state).map_or(runtime, |it| it.runtime);
        let Repository { root, worktree, identity } = repository;
        Ok(Self { root, worktree, identity, hash, state, runtime, config, notes })
    }

    /// Creates the state and runtime folders, mode 0700, or checks the existing ones.
    ///
    /// # Errors
    /// [`PlacesError::Unusable`] when a folder is a link, belongs to another user, is open to others, or leaves no
    /// room for a socket's name.
    pub fn create(&self) -> Result<(), PlacesError> {
        for folder in [&self.state, &self.runtime] {
            let parent = folder.parent().unwrap_or(folder);
            for part in [parent, folder] {
                make_private(part)?;
            }
        }
        let longest = self.devit_socket();
        if longest.as_os_str().len() > ADDRESS_BYTES_MAX {
            let why = format!(
                "is too long for a socket, which may have {ADDRESS_BYTES_MAX} bytes; set XDG_RUNTIME_DIR to a shorter path"
            );
            return Err(unusable(&longest, why));
        }
        Ok(())
    }

    /// Creates the folder of the user's configuration and keys, mode 0700, or checks the existing one.
    ///
    /// # Errors
    /// As [`Self::create`]; others may read the folder, since people share their dotfiles.
    pub fn create_config(&self) -> Result<(), PlacesError> {
        make_folder(&self.config)?;
        let meta = fs::symlink_metadata(&self.config).map_err(|e| unusable(&self.config, e.to_string()))?;
        if !meta.is_dir() {
            return Err(unusable(&self.config, "is a link and not a folder; name the real one"));
        }
        let close = system::CLOSE_FOR_WRITING;
        system::trusted(&self.config).map_err(|why| unusable(&self.config, format!("{why}; run {close}")))
    }

    /// Returns the path of the anchor outside of the state folder, which tells a start how far the journal had come.
    pub fn anchor(&self) -> PathBuf {
        self.config.join("anchors").join(&self.hash)
    }

    /// Returns the work trees of the repository as git lists them, the main one first, each without links in its
    /// path; at most `most`. A folder that git would not list, or that does not point back, is left out.
    pub fn work_trees(&self, most: usize) -> Vec<WorkTree> {
        let entries = fs::read_dir(self.identity.join("worktrees")).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.map(|it| it.path()).take(most).collect();
        entries.sort();
        let linked = entries.into_iter().filter_map(|git_dir| {
            let dot_git = git_dir.join(first_line(&git_dir.join("gitdir")).ok()?);
            let top = system::real_path(dot_git.parent()?).ok()?;
            let dot_git = top.join(".git");
            let repository = from_pointer(&top, &dot_git).ok()?;
            // The folder must point back to this entry, and not only to the same repository.
            let pointed = first_line(&dot_git).ok()?;
            let back = resolve(&top, pointed.strip_prefix("gitdir:")?.trim()).ok()?;
            let is_ours = repository.identity == self.identity
                && system::real_path(&git_dir).is_ok_and(|it| it == back)
                && system::owned(&dot_git).is_ok();
            is_ours.then_some(WorkTree { top, git_dir })
        });
        let linked: Vec<WorkTree> = linked.collect();
        let git_dir = linked.iter().find(|it| it.top == self.root).map(|it| it.git_dir.clone());
        let git_dir = git_dir.unwrap_or_else(|| self.identity.clone());
        let mut found = vec![WorkTree { top: self.root.clone(), git_dir }];
        for tree in linked {
            if found.len() < most && !found.iter().any(|it| it.top == tree.top) {
                found.push(tree);
            }
        }
        found
    }

    /// Returns the folders of the work trees, at most `most`.
    pub fn worktrees(&self, most: usize) -> Vec<PathBuf> {
        self.work_trees(most).into_iter().map(|it| it.top).collect()
    }

    /// Returns the socket or pipe of the DevIt door.
    pub fn devit_socket(&self) -> PathBuf {
        system::socket(&self.runtime, Door::Devit.name())
    }

    /// Returns the folder in which placeholders are kept between the runs of workers.
    pub fn spares(&self) -> PathBuf {
        self.state.join("spares")
    }

    /// Returns the folder of secrets for workers.
    pub fn secrets(&self) -> PathBuf {
        self.config.join("secrets")
    }

    /// Returns the socket or pipe of the daemon's own API.
    pub fn own_socket(&self) -> PathBuf {
        system::socket(&self.runtime, Door::Own.name())
    }
}

/// Returns the folder that contains each repository's state folder.
pub(super) fn states(environment: &Environment) -> Result<PathBuf, PlacesError> {
    Ok(base(environment, &environment.state_home, ".local/state")?.join("provost"))
}

/// Returns a folder that a variable names, or one under the home.
fn base(environment: &Environment, given: &Option<PathBuf>, below: &str) -> Result<PathBuf, PlacesError> {
    let home = environment.home.as_deref();
    given.clone().or_else(|| home.map(|home| home.join(below))).ok_or(PlacesError::NoHome)
}

struct Repository {
    root: PathBuf,
    worktree: PathBuf,
    identity: PathBuf,
}

impl Repository {
    fn plain(folder: PathBuf) -> Self {
        Self { root: folder.clone(), worktree: folder.clone(), identity: folder }
    }
}

fn hash_of(identity: &Path) -> String {
    Digest::of(identity.as_os_str().as_encoded_bytes()).to_string().chars().take(16).collect()
}

/// Returns, for a folder without git, the nearest folder upwards that has state already, so that commands find their
/// daemon from below; otherwise this folder.
fn nearest_known(start: &Path, states: &Path) -> PathBuf {
    let known = |folder: &&Path| states.join(hash_of(folder)).is_dir();
    start.ancestors().take(ANCESTORS_MAX).find(known).unwrap_or(start).to_owned()
}

fn repository_around(start: &Path) -> Result<Option<Repository>, PlacesError> {
    for top in start.ancestors().take(ANCESTORS_MAX) {
        let dot_git = top.join(".git");
        let Ok(meta) = fs::symlink_metadata(&dot_git) else { continue };
        let repository = if meta.is_dir() || meta.is_symlink() {
            dot_git.join("HEAD").symlink_metadata().is_ok().then(|| from_folder(top, &dot_git)).transpose()?
        } else {
            Some(from_pointer(top, &dot_git)?)
        };
        if let Some(repository) = repository {
            system::owned(&dot_git).map_err(|why| {
                unusable(
                    &dot_git,
                    format!("{why}; its owner decides what runs here, so clone it for yourself"),
                )
            })?;
            return Ok(Some(repository));
        }
    }
    Ok(None)
}

fn from_folder(top: &Path, dot_git: &Path) -> Result<Repository, PlacesError> {
    let identity = system::real_path(dot_git).map_err(|e| unusable(dot_git, e.to_string()))?;
    Ok(Repository { root: top.to_owned(), worktree: top.to_owned(), identity })
}

/// Reads a `.git` file: it belongs to a worktree, whose common dir is elsewhere, or to a submodule, which has its own.
fn from_pointer(top: &Path, dot_git: &Path) -> Result<Repository, PlacesError> {
    let line = first_line(dot_git)?;
    let target = line
        .strip_prefix("gitdir:")
        .ok_or_else(|| unusable(dot_git, "does not begin with `gitdir:`; run `git worktree repair`"))?;
    let git_dir = resolve(top, target.trim()).map_err(|e| {
        unusable(
            dot_git,
            format!("points to {}, which cannot be used ({e}); run `git worktree repair`", target.trim()),
        )
    })?;
    let common = git_dir.join("commondir");
    if common.symlink_metadata().is_err() {
        return Ok(Repository { root: top.to_owned(), worktree: top.to_owned(), identity: git_dir });
    }
    // A foreign repository could name any common dir; it is trusted only if that dir names this worktree too.
    let back = first_line(&git_dir.join("gitdir"))?;
    if resolve(&git_dir, &back).ok() != system::real_path(dot_git).ok() {
        let why =
            format!("points to {}, which does not point back; run `git worktree repair`", git_dir.display());
        return Err(unusable(dot_git, why));
    }
    let identity = resolve(&git_dir, &first_line(&common)?).map_err(|e| unusable(&common, e.to_string()))?;
    let root = match identity.parent() {
        Some(parent) if identity.file_name().is_some_and(|name| name == ".git") => parent.to_owned(),
        _ => top.to_owned(),
    };
    Ok(Repository { root, worktree: top.to_owned(), identity })
}

fn resolve(from: &Path, path: &str) -> io::Result<PathBuf> {
    system::real_path(&from.join(path))
}

/// Reads a pointer file of git: it has one path, and a longer file is none.
fn first_line(path: &Path) -> Result<String, PlacesError> {
    let meta = fs::metadata(path).map_err(|e| unusable(path, e.to_string()))?;
    if !meta.is_file() || meta.len() > 2 * provost_base::limits::PATH_LEN_MAX as u64 {
        return Err(unusable(path, "is not one of git's pointer files; run `git worktree repair`"));
    }
    let most = 2 * provost_base::limits::PATH_LEN_MAX as u64;
    let text = system::short_text(path, most).map_err(|e| unusable(path, e.to_string()))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Creates the folders above a private one (0700) where they are missing; existing ones are not checked, since they are the user's.
fn make_folder(path: &Path) -> Result<(), PlacesError> {
    system::make_private_folders(path).map_err(|e| {
        unusable(
            path,
            format!("cannot be made: {e}; make it, or point the XDG variables at a folder of your own"),
        )
    })
}

pub(super) fn make_private(path: &Path) -> Result<(), PlacesError> {
    make_folder(path)?;
    let meta = fs::symlink_metadata(path).map_err(|e| unusable(path, e.to_string()))?;
    if !meta.is_dir() {
        return Err(unusable(path, "is a link and not a folder; remove it"));
    }
    let close = system::CLOSE;
    system::private(path)
        .map_err(|why| unusable(path, format!("{why}; run {close} if it is yours, else remove it")))
}

fn usable_runtime(dir: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(dir).map_err(|e| format!("cannot be used ({e})"))?;
    if !meta.is_dir() {
        return Err("is not a folder".into());
    }
    system::private(dir)
}
