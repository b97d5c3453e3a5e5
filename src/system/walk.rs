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
//! held open. The walk ends within its bounds of entries, depth and time; a bound that is reached, and a folder that
//! cannot be listed, is told to the visitor, which says whether the walk goes on. It crosses from one file system into
//! another, and it calls nothing of itself, so that no tree is too deep for a thread.
//!
//! The visitor decides the rest: which folders to open, and how; the order of the names; and when to stop. The trees are
//! ones that workers write to meanwhile: an entry may be gone, or be of another kind, when its visitor looks at it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Instant;

use cap_std::fs::{Dir, Metadata};

use super::listing::{each_name, is_gone, open_folder};
use provost_base::limits::WALK_NAMES_BYTES_MAX;

/// How far a walk may go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// So many names are listed in all.
    pub entries: u64,
    /// Folders in folders; the one at the top is the first.
    pub depth: usize,
    /// When the walk ends.
    pub until: Option<Instant>,
}

/// What was reached of the bounds of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// There are more entries, or their names take too much memory. If the walk goes on, those that were listed are
    /// visited.
    Entries,
    /// The folder lies too deep. If the walk goes on, it passes over this one.
    Depth,
    /// It takes too long. The walk ends in any case.
    Time,
}

/// Why a folder was not listed, or not to its end.
#[derive(Debug)]
pub enum Unread {
    /// A bound was reached.
    Beyond(Bound),
    /// The system's error.
    Failed(io::Error),
}

/// Why a folder was not opened.
#[derive(Debug)]
pub enum Unopened {
    /// It has gone since it was listed, or something else has its name.
    Gone(io::Error),
    /// Its rights keep this user out.
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

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A local socket.
    Socket,
    /// A pipe with a name.
    Pipe,
    /// A device, or something that has gone already.
    Other,
    /// A folder; it is last in an order by kind.
    Folder,
}

/// A name in a folder, as it was listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// The name, without the folder.
    pub name: OsString,
    /// What it was when it was listed.
    pub kind: Kind,
}

/// A folder that is open.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    /// Its handle.
    pub dir: &'a Dir,
    path: &'a OsStr,
}

impl<'a> Folder<'a> {
    /// Its path from where the walk counts paths, with `/` between the names.
    pub fn path(&self) -> &'a OsStr {
        self.path
    }
}

/// One entry of a folder.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The folder that it is in.
    pub dir: &'a Dir,
    listed: &'a Name,
    path: &'a OsStr,
}

impl<'a> Entry<'a> {
    /// Its name.
    pub fn name(&self) -> &'a OsStr {
        &self.listed.name
    }

    /// What it was when it was listed.
    pub fn kind(&self) -> Kind {
        self.listed.kind
    }

    /// Its path from where the walk counts paths, with `/` between the names.
    pub fn path(&self) -> &'a OsStr {
        self.path
    }

    /// The same as text, if it is text.
    pub fn text(&self) -> Option<&'a str> {
        self.path.to_str()
    }

    /// What the system says of it now; of a link, of the link itself.
    ///
    /// # Errors
    /// The system's, also when it has gone.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.dir.symlink_metadata(&self.listed.name)
    }

    /// The same as the kernel says it.
    ///
    /// # Errors
    /// The system's, also when it has gone.
    #[cfg(unix)]
    pub fn stat(&self) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::statat(self.dir, &*self.listed.name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens it as a folder. A link is none.
    ///
    /// # Errors
    /// Why it was not opened.
    pub fn open(&self) -> Result<Dir, Unopened> {
        Ok(open_folder(self.dir, &self.listed.name)?)
    }
}

/// Where the walk goes after an entry.
pub enum Step<H> {
    /// To the next one.
    Over,
    /// Into a folder, with what holds there.
    Into(Dir, H),
}

/// What a walk is for.
pub trait Visitor {
    /// What holds in a folder, handed from the one around it.
    type Here;
    /// Why the visitor ends the walk.
    type Stop;

    /// A folder was listed, and none of its entries was visited yet. The names are visited in the order in which this
    /// leaves them.
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

    /// The next entry of a folder.
    ///
    /// # Errors
    /// Ends the walk.
    fn entry(&mut self, entry: Entry<'_>, here: &mut Self::Here) -> Result<Step<Self::Here>, Self::Stop>;

    /// A folder is not listed to its end. The walk goes on if the answer is no error, and as [`Bound`] says.
    ///
    /// # Errors
    /// Ends the walk.
    fn unread(&mut self, folder: Folder<'_>, why: Unread) -> Result<(), Self::Stop>;
}

/// A folder with the names that are to be visited in it.
struct Frame<H> {
    dir: Dir,
    path: OsString,
    names: std::vec::IntoIter<Name>,
    bytes: usize,
    here: H,
}

/// How much of the bounds is left.
struct Left {
    bounds: Bounds,
    /// Memory for names of folders that are open.
    bytes: usize,
}

/// Memory for one name, as its own bytes and what keeps it.
fn bytes_of(name: &OsStr) -> usize {
    name.len() + size_of::<Name>()
}

impl Left {
    fn is_over(&self) -> bool {
        self.bounds.until.is_some_and(|until| Instant::now() > until)
    }

    /// The names in a folder, and why these are not all.
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

/// Walks through a tree from `top` down; `path` stands for it at the beginning of paths, and `here` holds in it.
///
/// # Errors
/// Why the visitor has ended the walk.
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
