//! A store in a database server: where it is, what is made of it, and what it promises. A program without the
//! feature `postgres` refuses each of these with a sentence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{HostRow, Joined, StoreError, TakenOut};
use provost_base::{HostId, Secret};

/// What the state folder remembers of the database that has its state.
pub(super) const IN_DATABASE: &str = "postgres.json";

/// The statements that an administrator runs once, where the owner's role may not make roles.
pub const ROLES: &str = "\
create role provost_host nologin;
create role provost_reader nologin;
-- one for each machine:
create role provost_laptop login in role provost_host connection limit 10;
\\password provost_laptop
";

/// A database that several repositories have their state in, each of one host or several.
#[derive(Clone, Default)]
pub struct Database {
    /// The servers, the user and the database: `postgres://USER@HOST:5432,HOST:5432/NAME`, without a password.
    pub url: Box<str>,
    /// A file with the authorities of the servers' certificates, in PEM; without it, the public ones.
    pub ca: Option<PathBuf>,
    /// The repository's name there.
    pub name: String,
    /// The password, if the servers ask for one.
    pub password: Option<Secret>,
    /// Finds the root commits of this repository, when a host joins.
    pub roots: Roots,
}

/// The root commits of a repository, by which a clone is recognised; or why they are not known.
pub type RootCommits = Result<Vec<Box<str>>, Box<str>>;

/// Finds root commits, which takes a while for a long history. The default finds none, as in a folder that is no clone.
#[derive(Clone)]
pub struct Roots(Arc<dyn Fn() -> RootCommits + Send + Sync>);

impl Roots {
    /// Those that this finds.
    pub fn by(find: impl Fn() -> RootCommits + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// Finds them. Blocking.
    ///
    /// # Errors
    /// Why they cannot be known.
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
    /// The database at an address; the repository has the name of its folder, unless another one is given.
    pub fn at(url: &str, ca: Option<&Path>, name: Option<&str>, root: &Path) -> Self {
        let folder = || root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned();
        let name = name.map_or_else(folder, str::to_owned);
        Self { url: url.into(), ca: ca.map(Path::to_owned), name, ..Self::default() }
    }
}

/// What a migration has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// The version that was there; 0 where there was none.
    pub from: u32,
    /// The version that is there.
    pub to: u32,
    /// Groups of roles that are missing; nothing was granted to them.
    pub missing_roles: Vec<&'static str>,
}

/// What protects what was acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protection {
    /// The server's version.
    pub version: String,
    /// How many standbys it has now.
    pub standbys: i64,
    /// Whether a commit waits for one of them.
    pub waits_for_standby: bool,
    /// Whether commits wait for the server's own disk.
    pub waits_for_disk: bool,
    /// The timeline that it writes.
    pub timeline: u64,
    /// Whether the daemon's role may change the tables themselves, which only `provost store migrate` needs.
    pub owns_tables: bool,
}

/// Brings the tables to the newest version; makes the groups of roles where `roles` says so.
///
/// # Errors
/// [`StoreError::Newer`] for tables of a later release; otherwise what the server says.
pub fn migrate(to: &Database, roles: bool) -> Result<Migrated, StoreError> {
    in_database::migrate(to, roles)
}

/// Asks the server that a daemon would write to.
///
/// # Errors
/// When it does not answer, or its tables are not those that are known here.
pub fn protection(of: &Database) -> Result<Protection, StoreError> {
    in_database::protection(of)
}

/// All hosts of the repository, removed ones last; the one of this state folder is marked.
///
/// # Errors
/// When the database does not answer, or its tables are not those that are known here.
pub fn hosts(dir: &Path, of: &Database) -> Result<Vec<HostRow>, StoreError> {
    in_database::hosts(dir, of)
}

/// Takes a host out: at once, or after its last run. The daemons that take part carry it out in their next turns.
///
/// # Errors
/// Where there is no such host, or no other one that would carry it out.
pub fn take_out(of: &Database, host: HostId, how: TakenOut) -> Result<(), StoreError> {
    in_database::take_out(of, host, how)
}

/// Puts the journal's key into a state folder, out of a file that [`super::seal_key`] has made and with its code, so that its daemon
/// can join the repository as one more host. The folder has to be a clone of that repository.
///
/// # Errors
/// What does not fit; then nothing is written.
pub fn join(dir: &Path, of: &Database, file: &str, code: &Secret) -> Result<Joined, StoreError> {
    let code =
        std::str::from_utf8(code.expose()).map_err(|_| StoreError::Key("the code is no text".into()))?;
    in_database::join(dir, of, file, code)
}

/// The store in PostgreSQL, where this program has it.
#[cfg(feature = "postgres")]
pub(super) mod in_database {
    use std::path::Path;

    use super::Database;
    pub(super) use crate::postgres::{hosts, join, migrate, protection, take_out};
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

/// The same in a program that was built without it.
#[cfg(not(feature = "postgres"))]
pub(super) mod in_database {
    use std::path::Path;

    use super::{Database, Migrated, Protection};
    use crate::{HostRow, Joined, Options, Reader, Store, StoreError, TakenOut};
    use provost_base::HostId;

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

    pub(super) fn hosts(_: &Path, _: &Database) -> Result<Vec<HostRow>, StoreError> {
        refused()
    }

    pub(super) fn take_out(_: &Database, _: HostId, _: TakenOut) -> Result<(), StoreError> {
        refused()
    }

    pub(super) fn join(_: &Path, _: &Database, _: &str, _: &str) -> Result<Joined, StoreError> {
        refused()
    }

    pub(super) fn migrate(_: &Database, _: bool) -> Result<Migrated, StoreError> {
        refused()
    }

    pub(super) fn protection(_: &Database) -> Result<Protection, StoreError> {
        refused()
    }
}
