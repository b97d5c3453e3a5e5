//! The one walk through a tree of folders. Blocking.
//!
//! ```text
//!   top --> [list a folder] --folder--> [next name] --entry--> Over: the next name
//!               ^     |                      ^         |
//!               |  unread: a bound,          |         +-----> Into: the folder that the visitor has opened
//!               |  or the system's error     |                                |
//!               +----------------------------+--------------------------------+
//! ```
//! Promises: each folder is opened by one name in a handle of the folder around it, and a name that has become a link is
//! not followed. So a folder that is moved or replaced meanwhile leads nowhere else. One folder for each level is
//! held open. The walk ends within its bounds of entries, depth and time; it tells the visitor of a bound that is reached, and of a
//! folder that cannot be listed, and the visitor decides whether the walk goes on. It crosses from one file system into
//! another, and it is not recursive, so that no tree is too deep for a thread.
//!
//! The visitor decides the rest: which folders to open, and how; the order of the names; and when to stop. Workers may
//! write to the trees meanwhile: an entry may be gone, or be of another kind, when its visitor examines it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Instant;

use cap_std::fs::{Dir, Metadata};

use super::listing::{each_name, is_gone, open_folder};
use provost_base::limits::WALK_NAMES_BYTES_MAX;

/// The bounds of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The number of names that are listed in all.
    pub entries: u64,
    /// The number of nested folders, counting the one at the top.
    pub depth: usize,
    /// The moment when the walk ends.
    pub until: Option<Instant>,
}

/// The bound that a walk has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// There are more entries, or their names take too much memory. If the walk goes on, it visits the listed
    /// entries.
    Entries,
    /// The folder lies too deep. If the walk goes on, it skips this folder.
    Depth,
    /// The walk takes too long. It ends in any case.
    Time,
}

/// The reason why a folder was not listed, or not to its end.
#[derive(Debug)]
pub enum Unread {
    /// A bound was reached.
    Beyond(Bound),
    /// The system's error.
    Failed(io::Error),
}

/// The reason why a folder was not opened.
#[derive(Debug)]
pub enum Unopened {
    /// The folder has vanished since it was listed, or another file has its name.
    Gone(io::Error),
    /// The folder's permissions keep this user out.
    Shut(io::Error),
    /// Another error of the system.
    Failed(io::Error),
}

impl From<Unopened> for io::Error {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Gone(error) | Unopened::Shut(error) | Unopened::Failed(error) => error,
        }
    }
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Self {
        match error {
            error if is_gone(&error) => Self::Gone(error),
            error if error.kind() == io::ErrorKind::PermissionDenied => Self::Shut(error),
            error => Self::Failed(error),
        }
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A local socket.
    Socket,
    /// A named pipe.
    Pipe,
    /// A device, or an entry that has vanished already.
    Other,
    /// A folder; it comes last in an order by kind.
    Folder,
}

/// A name in a folder, as it was listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The name, without the folder.
    pub name: OsString,
    /// The kind when it was listed.
    pub kind: Kind,
}

/// An open folder.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    /// The folder's handle.
    pub dir: &'a Dir,
    path: &'a OsStr,
}

impl<'a> Folder<'a> {
    /// Returns the folder's path from the beginning of the walk's paths, with `/` between the names.
    pub fn path(&self) -> &'a OsStr {
        self.path
    }
}

/// One entry of a folder.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The folder of the entry.
    pub dir: &'a Dir,
    listed: &'a Name,
    path: &'a OsStr,
}

impl<'a> Entry<'a> {
    /// Returns the entry's name.
    pub fn name(&self) -> &'a OsStr {
        &self.listed.name
    }

    /// Returns the entry's kind when it was listed.
    pub fn kind(&self) -> Kind {
        self.listed.kind
    }

    /// Returns the entry's path from the beginning of the walk's paths, with `/` between the names.
    pub fn path(&self) -> &'a OsStr {
        self.path
    }

    /// Returns the entry's path as text, if it is text.
    pub fn text(&self) -> Option<&'a str> {
        self.path.to_str()
    }

    /// Returns the system's present metadata of the entry; for a link, of the link itself.
    ///
    /// # Errors
    /// The system's error, also if the entry has vanished.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.dir.symlink_metadata(&self.listed.name)
    }

    /// Returns the kernel's present metadata of it.
    ///
    /// # Errors
    /// The system's error, also if the entry has vanished.
    #[cfg(unix)]
    pub fn stat(&self) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::statat(self.dir, &*self.listed.name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the entry as a folder. A link is no folder.
    ///
    /// # Errors
    /// The reason why the entry was not opened.
    pub fn open(&self) -> Result<Dir, Unopened> {
        Ok(open_folder(self.dir, &self.listed.name)?)
    }
}

/// The next step of the walk after an entry.
pub enum Step<H> {
    /// To the next one.
    Over,
    /// Into a folder, with the visitor's state for it.
    Into(Dir, H),
}

/// The receiver of a walk's entries.
pub trait Visitor {
    /// The visitor's state for a folder, made from that of the folder around it.
    type Here;
    /// The reason why the visitor ends the walk.
    type Stop;

    /// Handles a folder that was listed, before any of its entries is visited. The names are visited in the order in which this
    /// function leaves them.
    ///
    /// # Errors
    /// Ends the walk.
    fn folder(
        &mut self,
        _folder: Folder<'_>,
        _names: &mut Vec<Name>,
        _here: &mut Self::Here,
    ) -> Result<(), Self::Stop> {
        Ok(())
    }

    /// Handles the next entry of a folder.
    ///
    /// # Errors
    /// Ends the walk.
    fn entry(&mut self, entry: Entry<'_>, here: &mut Self::Here) -> Result<Step<Self::Here>, Self::Stop>;

    /// Handles a folder that is not listed to its end. If the result is no error, the walk goes on as [`Bound`] says.
    ///
    /// # Errors
    /// Ends the walk.
    fn unread(&mut self, folder: Folder<'_>, why: Unread) -> Result<(), Self::Stop>;
}

/// A folder with its names that have not been visited yet.
struct Frame<H> {
    dir: Dir,
    path: OsString,
    names: std::vec::IntoIter<Name>,
    bytes: usize,
    here: H,
}

/// The rest of the bounds.
struct Left {
    bounds: Bounds,
    /// Memory for the names of open folders, in bytes.
    bytes: usize,
}

/// Returns the memory for one name: its own bytes and its container.
fn bytes_of(name: &OsStr) -> usize {
    name.len() + size_of::<Name>()
}

impl Left {
    fn is_over(&self) -> bool {
        self.bounds.until.is_some_and(|until| Instant::now() > until)
    }

    /// Lists the names in a folder; also returns their memory, and the reason if they are not all.
    fn list(&mut self, dir: &Dir) -> (Vec<Name>, usize, Option<Unread>) {
        let (mut names, mut taken, mut why) = (Vec::new(), 0, None);
        let listed = each_name(dir, |name, kind| {
            let left = self.bytes.checked_sub(bytes_of(name)).zip(self.bounds.entries.checked_sub(1));
            let Some((bytes, entries)) = left else {
                why = Some(Unread::Beyond(Bound::Entries));
                return false;
            };
            (self.bytes, self.bounds.entries) = (bytes, entries);
            taken += bytes_of(name);
            names.push(Name { name: name.to_owned(), kind });
            true
        });
        (names, taken, listed.err().map(Unread::Failed).or(why))
    }
}

/// Walks through a tree from `top` down; its paths begin with `path`, and `here` is the visitor's state for the top.
///
/// # Errors
/// The reason why the visitor has ended the walk.
pub fn walk<V: Visitor>(
    visitor: &mut V,
    (top, path): (Dir, &OsStr),
    here: V::Here,
    bounds: Bounds,
) -> Result<(), V::Stop> {
    let mut left = Left { bounds, bytes: WALK_NAMES_BYTES_MAX };
    let mut frames: Vec<Frame<V::Here>> = Vec::new();
    let mut next = Some((top, path.to_owned(), here));
    let mut path = OsString::new();
    loop {
        if let Some((dir, path, here)) = next.take() {
            let folder = Folder { dir: &dir, path: &path };
            if frames.len() >= bounds.depth {
                visitor.unread(folder, Unread::Beyond(Bound::Depth))?;
            } else {
                frames.push(listed(visitor, &mut left, (dir, path), here)?);
            }
        }
        let Some(frame) = frames.last_mut() else { return Ok(()) };
        let Some(name) = frame.names.next() else {
            left.bytes += frame.bytes;
            frames.pop();
            continue;
        };
        // Looked at for each name: one folder can have more names than the time allows.
        if left.is_over() {
            return visitor
                .unread(Folder { dir: &frame.dir, path: &frame.path }, Unread::Beyond(Bound::Time));
        }
        path.clear();
        if !frame.path.is_empty() {
            path.push(&frame.path);
            path.push("/");
        }
        path.push(&name.name);
        let entry = Entry { dir: &frame.dir, listed: &name, path: &path };
        if let Step::Into(dir, here) = visitor.entry(entry, &mut frame.here)? {
            next = Some((dir, path.clone(), here));
        }
    }
}

/// Lists a folder, and tells the visitor of it.
fn listed<V: Visitor>(
    visitor: &mut V,
    left: &mut Left,
    (dir, path): (Dir, OsString),
    mut here: V::Here,
) -> Result<Frame<V::Here>, V::Stop> {
    let folder = Folder { dir: &dir, path: &path };
    let (mut names, bytes, why) = left.list(&dir);
    if let Some(why) = why {
        visitor.unread(folder, why)?;
    }
    visitor.folder(folder, &mut names, &mut here)?;
    Ok(Frame { dir, path, names: names.into_iter(), bytes, here })
}
