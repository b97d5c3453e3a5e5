//! The sources of rules, and the check that they can be trusted.
//!
//! The base is one source: the file named in the configuration, else the user's own, else the shipped
//! default. A system file, if it exists, lies over it and can only restrict further. A rule file that another
//! user could have written is not read at all; the caller keeps the present rules.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::builtin::Builtin;
use super::judge::{Layer, RuleSet};
use super::reader::Problems;
use provost_base::limits::POLICY_BYTES_MAX;

pub use provost_system::SYSTEM_POLICY;

/// The prefix by which the configuration names a shipped file.
const BUILTIN_PREFIX: &str = "builtin:";

/// The source of a layer of rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A file that ships with the program.
    Builtin(Builtin),
    /// A file, which must exist.
    File(PathBuf),
}

/// The reason why rules could not be loaded. Every sentence names the next step.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file does not exist or cannot be read.
    #[error("cannot read the rules in {}: {why}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        why: Box<str>,
    },
    /// Another user could have written the file.
    #[error("will not trust the rules in {}: {why}", path.display())]
    Untrusted {
        /// The path of the file.
        path: PathBuf,
        /// The reason, and the next step.
        why: Box<str>,
    },
    /// There is no shipped file of this name.
    #[error("there are no shipped rules named `{0}`; known are default, strict and open")]
    NoSuchBuiltin(Box<str>),
    /// The text of the file has mistakes.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

impl Source {
    /// Returns the base of a configuration: the source that it names (`builtin:strict`, or a path from the folder
    /// of the user's own file), else the user's own file if there is one, else the shipped default.
    ///
    /// # Errors
    /// [`LoadError::NoSuchBuiltin`]. A named file that is missing is an error only when it is loaded.
    pub fn base(named: Option<&str>, user: &Path) -> Result<Self, LoadError> {
        match named {
            Some(named) => match named.strip_prefix(BUILTIN_PREFIX) {
                Some(name) => {
                    let builtin =
                        Builtin::named(name).ok_or_else(|| LoadError::NoSuchBuiltin(name.into()))?;
                    Ok(Source::Builtin(builtin))
                }
                None => Ok(Source::File(user.parent().unwrap_or(user).join(named))),
            },
            // A dangling link counts as a file too, and is refused when it is loaded.
            None if user.symlink_metadata().is_ok() => Ok(Source::File(user.to_owned())),
            None => Ok(Source::Builtin(Builtin::Default)),
        }
    }

    /// Loads the rules of this source as one layer.
    ///
    /// # Errors
    /// [`LoadError`]; then nothing of the file comes into force.
    pub fn load(&self) -> Result<Layer, LoadError> {
        match self {
            Source::Builtin(builtin) => Ok(builtin.layer()),
            Source::File(path) => {
                let text = read(path)?;
                Ok(Layer::parse(&text, &path.display().to_string())?)
            }
        }
    }

    /// Loads the base and, if `system` exists, the layer over it.
    ///
    /// # Errors
    /// [`LoadError`] of the first layer that has one; the caller keeps its present rules.
    pub fn load_layers(base: &Source, system: &Path) -> Result<RuleSet, LoadError> {
        let base = base.load()?;
        let absent = |error: std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        if system.symlink_metadata().is_err_and(absent) {
            return Ok(RuleSet::new(base));
        }
        Ok(RuleSet::layered(base, vec![Source::File(system.to_owned()).load()?]))
    }
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> LoadError {
    LoadError::Unreadable { path: path.to_owned(), why: why.to_string().into() }
}

/// Reads a trusted file: the check and the read use the same handle.
fn read(path: &Path) -> Result<String, LoadError> {
    let path = std::path::absolute(path).map_err(|error| unreadable(path, error))?;
    let untrusted = |why: String| LoadError::Untrusted { path: path.clone(), why: why.into() };
    trust::folders(&path).map_err(untrusted)?;
    let file = trust::open(&path).map_err(|error| unreadable(&path, error))?;
    let file =
        file.ok_or_else(|| untrusted("it is a symbolic link; put the file itself there".to_owned()))?;
    trust::file(&file).map_err(untrusted)?;
    text(&file, &path)
}

fn text(file: &File, path: &Path) -> Result<String, LoadError> {
    let mut text = String::new();
    // One byte more than allowed is enough to notice.
    let most = POLICY_BYTES_MAX as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(|error| unreadable(path, error))?;
    Ok(text)
}

#[cfg(unix)]
mod trust {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    const WRITABLE_BY_OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;

    fn owned_well(about: &Metadata) -> bool {
        about.uid() == 0 || about.uid() == rustix::process::geteuid().as_raw()
    }

    /// Opens a file without waiting for a pipe's writer; `None` for a link, which is not followed.
    pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
        let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(path, how, Mode::empty()) {
            Ok(handle) => Ok(Some(File::from(handle))),
            Err(Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn file(file: &File) -> Result<(), String> {
        let about = file.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        if !owned_well(&about) {
            return Err(format!("it belongs to user {}; it must be yours or root's (chown)", about.uid()));
        }
        if about.mode() & WRITABLE_BY_OTHERS != 0 {
            let mode = about.mode() & 0o7777;
            return Err(format!("its mode {mode:04o} lets others write it; run `chmod go-w` on it"));
        }
        Ok(())
    }

    /// Checks the folders on the way: any user that can replace one can replace the file. A folder with the sticky
    /// bit, like the shared temporary one, protects the files that others have put there; root's own links are
    /// trusted like root.
    pub(super) fn folders(path: &Path) -> Result<(), String> {
        for folder in path.ancestors().skip(1) {
            let about =
                folder.symlink_metadata().map_err(|error| format!("{}: {error}", folder.display()))?;
            let name = folder.display();
            if about.is_symlink() {
                if about.uid() != 0 {
                    return Err(format!("{name} on the way to it is a symbolic link; name the real folder"));
                }
                let real = folder.canonicalize().map_err(|error| format!("{name}: {error}"))?;
                return folders(&real.join("within"));
            }
            if !owned_well(&about) {
                return Err(format!("the folder {name} belongs to user {}", about.uid()));
            }
            if about.mode() & WRITABLE_BY_OTHERS != 0 && about.mode() & STICKY == 0 {
                return Err(format!("others can write in the folder {name}; run `chmod go-w` on it"));
            }
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod trust {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Opens a file without following links.
    pub(super) fn open(path: &Path) -> io::Result<Option<File>> {
        if path.symlink_metadata()?.is_symlink() {
            return Ok(None);
        }
        File::open(path).map(Some)
    }

    /// Checks that it is a regular file. [`folders`] has checked its access list, by name.
    pub(super) fn file(file: &File) -> Result<(), String> {
        let about = file.metadata().map_err(|error| error.to_string())?;
        if about.is_file() { Ok(()) } else { Err("it is not a regular file".to_owned()) }
    }

    /// Checks access lists: any account that can write the file, or replace it in its folder, writes the rules.
    pub(super) fn folders(path: &Path) -> Result<(), String> {
        for path in path.ancestors().take(2).filter(|path| path.exists()) {
            provost_system::trusted(path).map_err(|why| format!("{} {why}", path.display()))?;
        }
        Ok(())
    }
}
