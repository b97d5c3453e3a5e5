//! Checkouts of the repository, from whose tops absolute paths are written.
//!
//! A path means a file of a checkout by its spelling, or because a symbolic link outside of the checkout leads into it.
//! Nothing is opened here, and links within a checkout are followed where files are opened, as for every path.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};

use provost_base::limits::{PATH_LEN_MAX, WAY_FOLDERS_MAX};
use provost_base::{Tops, is_absolute, plain_path};
use provost_system::Ways;

/// The tops of some checkouts, for the paths of one request.
#[derive(Debug)]
pub struct Checkouts {
    folders: Vec<PathBuf>,
    tops: Tops,
    ways: OnceCell<RefCell<Ways>>,
}

impl Checkouts {
    /// Makes checkouts with these tops; a path is rewritten from the innermost top around it.
    pub fn at(tops: impl IntoIterator<Item = PathBuf>) -> Self {
        let folders: Vec<PathBuf> = tops.into_iter().collect();
        Self { tops: Tops::new(&folders), folders, ways: OnceCell::new() }
    }

    /// Rewrites an absolute path, or `file:symbol`, as relative to a top; a relative path or one outside stays as it is.
    ///
    /// Reads the file system if the spelling does not tell, and may then block for as long as the disk does.
    pub fn inside<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let inside = self.tops.inside(text);
        if !is_absolute(&inside) {
            return inside;
        }
        let entered = Path::new(text).parent().and_then(|folder| self.entering(folder));
        let Some((folder, name)) = entered.zip(Path::new(text).file_name()) else { return inside };
        let whole = folder.join(name);
        let found = whole.to_str().map(|it| self.tops.inside(it).into_owned());
        found.filter(|it| !is_absolute(it)).map_or(inside, Cow::Owned)
    }

    /// Checks whether a text, a path or `file:symbol`, names a file here that has a backslash in its name, as names
    /// may on Unix. Read as a path, the text would mean another file.
    pub fn has_with_backslash(&self, text: &str) -> bool {
        let file = text.split(':').next().unwrap_or_default();
        if cfg!(windows) || !file.contains('\\') || file.len() > PATH_LEN_MAX || file.contains('\0') {
            return false;
        }
        let is_there = || self.folders.iter().any(|it| it.join(file).symlink_metadata().is_ok());
        tokio::task::block_in_place(is_there)
    }

    /// Rewrites a folder as [`Self::inside`] rewrites a path; the result is empty for a top itself, and `None` for a folder outside.
    pub fn folder_inside(&self, text: &str) -> Option<String> {
        let folder = self.entering(Path::new(text))?;
        let tops = self.folders.iter().filter(|it| folder.starts_with(it));
        let top = tops.max_by_key(|it| it.components().count())?;
        Some(folder.strip_prefix(top).ok()?.to_str()?.replace(std::path::MAIN_SEPARATOR, "/"))
    }

    /// Resolves the links by which a folder outside of the checkouts leads into one.
    fn entering(&self, folder: &Path) -> Option<PathBuf> {
        if !folder.is_absolute() || folder.as_os_str().len() > PATH_LEN_MAX {
            return None;
        }
        let folder = plain_path(folder);
        let ways = || RefCell::new(Ways::new(&self.folders, WAY_FOLDERS_MAX));
        let look = || self.ways.get_or_init(ways).borrow_mut().entering(&folder);
        // The daemon's other threads go on with other requests meanwhile.
        tokio::task::block_in_place(look)
    }
}
