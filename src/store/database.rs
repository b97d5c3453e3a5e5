//! A store in a database server: where it is, what is made of it, and what it promises. A program without the
//! feature `postgres` refuses each of these with a sentence.

use std::path::{Path, PathBuf};

use super::StoreError;
use provost_base::Secret;

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

/// A database that several repositories, and later several hosts, have their state in.
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
}

impl Database {
    /// The database at an address; the repository has the name of its folder, unless another one is given.
    pub fn at(url: &str, ca: Option<&Path>, name: Option<&str>, root: &Path) -> Self {
        let folder = || root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned();
        let name = name.map_or_else(folder, str::to_owned);
        Self { url: url.into(), ca: ca.map(Path::to_owned), name, password: None }
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

/// The store in PostgreSQL, where this program has it.
#[cfg(feature = "postgres")]
pub(super) mod in_database {
    use std::path::Path;

    use super::Database;
    pub(super) use crate::postgres::{migrate, protection};
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
    use crate::{Options, Reader, Store, StoreError};

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

    pub(super) fn migrate(_: &Database, _: bool) -> Result<Migrated, StoreError> {
        refused()
    }

    pub(super) fn protection(_: &Database) -> Result<Protection, StoreError> {
        refused()
    }
}
