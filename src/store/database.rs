//! A store in a database server: its place, the operations on it, and its protection of writes. A program without
//! the feature `postgres` refuses each operation with a sentence.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::{Anchor, DATABASE, Hosts, Joined, StoreError, TakenOut, Upgraded, files};
use provost_base::{EventSeq, HostId, Secret, Timestamp};

/// The file in which the state folder remembers the database with its state.
pub(super) const IN_DATABASE: &str = "postgres.json";

/// The highest size of that file, in bytes.
pub(super) const IN_DATABASE_LEN_MAX: u64 = 4_096;

/// The statements that an administrator runs once, if the owner's role may not make roles.
pub const ROLES: &str = "\
create role provost_host nologin;
create role provost_worker nologin;
create role provost_reader nologin;
-- one for each machine:
create role provost_laptop login in role provost_host connection limit 10;
-- one that only works is in provost_worker instead
\\password provost_laptop
";

/// A database with the state of several repositories, each of one host or several.
#[derive(Clone, Default)]
pub struct Database {
    /// The servers, the user and the database: `postgres://USER@HOST:5432,HOST:5432/NAME`, without a password.
    pub url: Box<str>,
    /// A file with the authorities of the servers' certificates, in PEM; without it, the public ones.
    pub ca: Option<PathBuf>,
    /// The repository's name there.
    pub name: String,
    /// The password, if the servers ask for one.
    pub password: Option<Password>,
    /// Finds the root commits of this repository, when a host joins.
    pub roots: Roots,
}

/// A password that is read for each connection, so that a new one counts without a restart.
#[derive(Clone)]
pub struct Password(Arc<dyn Fn() -> Result<Secret, Box<str>> + Send + Sync>);

impl Password {
    /// Makes one from the function that reads it. The function may block, and says why the password cannot be read.
    pub fn by(read: impl Fn() -> Result<Secret, Box<str>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Reads the password. Blocking.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) fn read(&self) -> Result<Secret, Box<str>> {
        (self.0)()
    }
}

impl From<Secret> for Password {
    fn from(secret: Secret) -> Self {
        Self::by(move || Ok(secret.clone()))
    }
}

/// The root commits of a repository, by which a clone is recognised; or the reason why they are not known.
pub type RootCommits = Result<Vec<Box<str>>, Box<str>>;

/// Finds root commits, which takes a while for a long history. The default finds none, as in a folder that is not a clone.
#[derive(Clone)]
pub struct Roots(Arc<dyn Fn() -> RootCommits + Send + Sync>);

impl Roots {
    /// Makes a finder from a function.
    pub fn by(find: impl Fn() -> RootCommits + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Finds the root commits. Blocking.
    ///
    /// # Errors
    /// The reason why they cannot be known.
    pub fn find(&self) -> RootCommits {
        (self.0)()
    }
}

impl Default for Roots {
    fn default() -> Self {
        Self::by(|| Ok(Vec::new()))
    }
}

impl Database {
    /// Returns the database at an address; the repository has the name of its folder, unless another one is given.
    pub fn at(url: &str, ca: Option<&Path>, name: Option<&str>, root: &Path) -> Self {
        let folder = || root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned();
        let name = name.map_or_else(folder, str::to_owned);
        Self { url: url.into(), ca: ca.map(Path::to_owned), name, ..Self::default() }
    }
}

/// The result of a migration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// The version before; 0 if there were no tables.
    pub from: u32,
    /// The version now.
    pub to: u32,
    /// Groups of roles that are missing; nothing was granted to them.
    pub missing_roles: Vec<&'static str>,
}

/// The protection of acknowledged writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protection {
    /// The server's version.
    pub version: String,
    /// The number of standbys that the server has now.
    pub standbys: i64,
    /// Whether a commit waits for a standby.
    pub waits_for_standby: bool,
    /// Whether commits wait for the server's own disk.
    pub waits_for_disk: bool,
    /// The timeline that the server writes.
    pub timeline: u64,
    /// Whether the daemon's role may change the tables themselves, a right that only `provost store migrate` needs.
    pub owns_tables: bool,
}

impl Protection {
    /// Returns the ways in which acknowledged writes could be lost, each with the setting that prevents it.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.waits_for_disk {
            all.push("fsync is off: acknowledged writes can be lost when the server's machine stops; set fsync = on".into());
        }
        if self.standbys > 0 && !self.waits_for_standby {
            all.push(
                "acknowledged writes can be lost at a failover: set synchronous_standby_names = 'ANY 1 (…)' at the server"
                    .into(),
            );
        }
        if self.standbys == 0 && self.waits_for_standby {
            all.push(
                "a write waits for a standby, and the server has none: writes are not acknowledged until one is there"
                    .into(),
            );
        }
        all
    }
}

/// The result of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The end of the journal, on both sides.
    pub head: Anchor,
    /// The number of rows that were moved; zero if an earlier move that had moved all rows was completed.
    pub rows: u64,
    /// The new name of the folder's file, if the state has left it.
    pub aside: Option<String>,
    /// The name in the database of an older copy of this repository, if there was one.
    pub earlier: Option<String>,
}

/// The place of a state, or the target of its move, while no daemon runs.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The state folder.
    pub dir: &'a Path,
    /// A file outside of the folder that records how far the journal has come.
    pub outside: Option<&'a Path>,
    /// The database.
    pub database: &'a Database,
    /// The time, for names of kept files.
    pub now: Timestamp,
}

/// The loss of a database, and the way to continue without the lost part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The last event that the database is known to have had.
    pub was: EventSeq,
    /// The last event that it has now.
    pub is: EventSeq,
    /// The number of the event that records the loss; the numbers before it that the database does not have are skipped.
    pub goes_on_at: EventSeq,
    /// The fence above which locks are granted from then on.
    pub fences_above: u64,
}

/// The progress of a move that has only its steps in the folder left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// The database has the state; the folder's file still has to get this name.
    Into(String),
    /// The folder's file has the state; the folder still has to forget the database.
    Out,
}

/// The folder's note of a move; the rest of the file is the database's.
#[derive(Deserialize)]
struct Remembered {
    #[serde(default)]
    here_until: Option<String>,
    #[serde(default)]
    goes_here: bool,
}

/// Returns the progress of a move that was interrupted at its end; `None` if there is none.
///
/// # Errors
/// If the folder's note cannot be read.
pub(super) fn ending(dir: &Path) -> Result<Option<Ending>, StoreError> {
    let path = dir.join(IN_DATABASE);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let (file, mut text) = (files::open_mark(&path, false)?, String::new());
    file.take(IN_DATABASE_LEN_MAX).read_to_string(&mut text).map_err(StoreError::io(&path))?;
    // Other readers examine the rest of the file.
    let Ok(noted) = serde_json::from_str::<Remembered>(&text) else { return Ok(None) };
    let is_name = |it: &String| it.starts_with(DATABASE) && !it.contains(['/', '\\']);
    Ok(match (noted.goes_here, noted.here_until.filter(is_name)) {
        (true, _) => Some(Ending::Out),
        (false, name) => name.map(Ending::Into),
    })
}

/// Moves the state of a folder into a database, which must have the tables. `tell` gets the number of rows done and of all rows. An
/// interruption leaves the folder's state as it is, or the whole state in the database; a repeated call continues from there.
///
/// # Errors
/// [`StoreError::InUse`] while a daemon runs; otherwise the reason why nothing was moved.
pub fn move_into_database(what: Site<'_>, tell: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
    in_database::move_into(what, tell)
}

/// Moves the state of a folder's repository out of the database, into the folder.
///
/// # Errors
/// As for [`move_into_database`].
pub fn move_into_folder(what: Site<'_>, tell: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
    in_database::move_out(what, tell)
}

/// Returns what the database of a stopped daemon has lost, and changes nothing.
///
/// # Errors
/// If nothing is lost, if the rest of the journal is not whole, and [`StoreError::InUse`] while a daemon runs.
pub fn loss(of: Site<'_>) -> Result<Loss, StoreError> {
    in_database::loss(of)
}

/// Continues without the lost part of the database: all numbers continue beyond those that are known to have been issued,
/// and the journal records that. Owed effects that may have been done count as done, and all tokens become invalid.
///
/// # Errors
/// As for [`loss`].
pub fn accept_loss(of: Site<'_>) -> Result<Loss, StoreError> {
    in_database::accept_loss(of)
}

/// Brings the tables to the newest version; makes the groups of roles if `roles` says so. The state folder, which need not exist, says which
/// servers lack what it has seen.
///
/// # Errors
/// [`StoreError::Newer`] for tables of a later release; otherwise the server's error.
pub fn migrate(dir: &Path, to: &Database, roles: bool) -> Result<Migrated, StoreError> {
    in_database::migrate(dir, to, roles)
}

/// Asks the server that a daemon of this state folder would write to about its protection of writes.
///
/// # Errors
/// If it does not answer, or its tables have a version that is not known here.
pub fn protection(dir: &Path, of: &Database) -> Result<Protection, StoreError> {
    in_database::protection(dir, of)
}

/// Returns all hosts of the repository, removed ones last; the host of this state folder is marked. A state that only the table of hosts has, which
/// each login can write, does not count: the host has it as `claimed`.
///
/// # Errors
/// If the database does not answer, or its tables have a version that is not known here.
pub fn hosts(dir: &Path, of: &Database) -> Result<Hosts, StoreError> {
    in_database::hosts(dir, of)
}

/// Takes a host out: at once, or after its last run. The daemons that take part do this in their next turns. The host of this state folder signs
/// it.
///
/// # Errors
/// If the host does not exist, or no other host would do it.
pub fn take_out(dir: &Path, of: &Database, host: HostId, how: TakenOut) -> Result<(), StoreError> {
    in_database::take_out(dir, of, host, how)
}

/// Returns why the user of this folder's host should not invite machines, by the list of users; `None` if nothing is known against it. This keeps no
/// machine that has the journal's key from making an invitation, which the other hosts take.
///
/// # Errors
/// If the database does not answer, or its tables have a version that is not known here.
pub fn why_no_invitation(dir: &Path, of: &Database) -> Result<Option<String>, StoreError> {
    in_database::why_no_invitation(dir, of)
}

/// Raises the format of the log of several hosts to the newest one of the calling release, if all hosts that may
/// come back can read it.
///
/// # Errors
/// If the database does not answer, or its tables have a version that is not known here; then nothing has changed.
pub fn upgrade(dir: &Path, of: &Database, newest: u32) -> Result<Upgraded, StoreError> {
    in_database::upgrade(dir, of, newest)
}

/// Puts the journal's key into a state folder, from a file that [`super::seal_key`] has made and with its code, so
/// that its daemon can join the repository as one more host. The folder must be a clone of that repository.
///
/// # Errors
/// The part that does not fit; then nothing is written.
pub fn join(dir: &Path, of: &Database, file: &str, code: &Secret) -> Result<Joined, StoreError> {
    let code =
        std::str::from_utf8(code.expose()).map_err(|_| StoreError::Key("the code is no text".into()))?;
    in_database::join(dir, of, file, code)
}

/// The store in PostgreSQL, in a program that has it.
#[cfg(feature = "postgres")]
pub(super) mod in_database {
    use std::path::Path;

    use super::Database;
    pub(crate) use crate::postgres::SharedArtifactStore;
    pub(super) use crate::postgres::{
        accept_loss, hosts, join, loss, migrate, move_into, move_out, protection, take_out, upgrade,
        why_no_invitation,
    };
    use crate::{Options, Reader, Store, StoreError, postgres};

    pub(crate) fn open(
        dir: &Path,
        database: Database,
        options: Options,
    ) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(postgres::PostgresStore::open(dir, database, options)?))
    }

    pub(crate) fn look(
        dir: &Path,
        database: &Database,
        outside: Option<&Path>,
        all: bool,
    ) -> Result<(), StoreError> {
        postgres::look(dir, database, outside, all)
    }

    pub(crate) fn open_reader(dir: &Path, database: &Database) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(postgres::PostgresReader::open(dir, database)?))
    }
}

/// The replacement in a program that was built without it.
#[cfg(not(feature = "postgres"))]
pub(super) mod in_database {
    use std::path::Path;

    use std::collections::BTreeSet;

    use super::{Database, Loss, Migrated, Moved, Protection, Site};
    use crate::{Hosts, Joined, Options, Reader, Store, StoreError, TakenOut, Upgraded};
    use provost_base::{HostId, TaskId};

    type Signed = (Vec<u8>, Vec<u8>);

    /// Such a store cannot be opened.
    pub(crate) struct SharedArtifactStore(std::convert::Infallible);

    impl SharedArtifactStore {
        pub(crate) fn open(_: &Path, _: &Database) -> Result<Self, StoreError> {
            refused()
        }

        pub(crate) fn put(&mut self, _: &TaskId, _: &str, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
            match self.0 {}
        }

        pub(crate) fn get(&mut self, _: &str, _: HostId) -> Result<Option<Signed>, StoreError> {
            match self.0 {}
        }

        pub(crate) fn has(&mut self, _: &[String]) -> Result<BTreeSet<String>, StoreError> {
            match self.0 {}
        }

        pub(crate) fn clear(&mut self, _: &str) -> Result<(), StoreError> {
            match self.0 {}
        }
    }

    fn refused<T>() -> Result<T, StoreError> {
        Err(StoreError::Setting(
            "`url`: this program was built without the feature `postgres`: build it with that feature, or take the \
                setting out".into(),
        ))
    }

    pub(crate) fn open(_: &Path, _: Database, _: Options) -> Result<Box<dyn Store>, StoreError> {
        refused()
    }

    pub(crate) fn look(_: &Path, _: &Database, _: Option<&Path>, _: bool) -> Result<(), StoreError> {
        refused()
    }

    pub(crate) fn open_reader(_: &Path, _: &Database) -> Result<Box<dyn Reader>, StoreError> {
        refused()
    }

    pub(super) fn hosts(_: &Path, _: &Database) -> Result<Hosts, StoreError> {
        refused()
    }

    pub(super) fn take_out(_: &Path, _: &Database, _: HostId, _: TakenOut) -> Result<(), StoreError> {
        refused()
    }

    pub(super) fn why_no_invitation(_: &Path, _: &Database) -> Result<Option<String>, StoreError> {
        refused()
    }

    pub(super) fn upgrade(_: &Path, _: &Database, _: u32) -> Result<Upgraded, StoreError> {
        refused()
    }

    pub(super) fn join(_: &Path, _: &Database, _: &str, _: &str) -> Result<Joined, StoreError> {
        refused()
    }

    pub(super) fn migrate(_: &Path, _: &Database, _: bool) -> Result<Migrated, StoreError> {
        refused()
    }

    pub(super) fn protection(_: &Path, _: &Database) -> Result<Protection, StoreError> {
        refused()
    }

    pub(super) fn loss(_: Site<'_>) -> Result<Loss, StoreError> {
        refused()
    }

    pub(super) fn accept_loss(_: Site<'_>) -> Result<Loss, StoreError> {
        refused()
    }

    pub(super) fn move_into(_: Site<'_>, _: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
        refused()
    }

    pub(super) fn move_out(_: Site<'_>, _: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
        refused()
    }
}
