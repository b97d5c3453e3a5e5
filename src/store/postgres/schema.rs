//! The tables and roles, and the steps from earlier versions. Only `provost store migrate` makes them, with the
//! owner's role; a daemon checks that it knows their version.

use std::path::Path;
use std::time::Duration;

use super::Database;
use super::address;
use super::remembered::Newest;
use super::session::{Purpose, Session, Step};
use crate::{Migrated, StoreError};
use provost_base::limits::{LONG_STATEMENT_MS_MAX, STATEMENT_MS_MAX};

/// One step for each version, in order. A released step is never changed.
const STEPS: [&str; 5] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
];

/// The rights of the groups of roles, after each step.
const GRANTS: &str = include_str!("grants.sql");

/// The groups of roles: daemons, daemons of machines that only work, and readers.
const GROUPS: [&str; 3] = ["provost_host", "provost_worker", "provost_reader"];

/// The lock that the one running migration holds: `provost`, as bytes.
const MIGRATION: i64 = 0x0070_726f_766f_7374;

/// Returns the newest version that is known here.
pub(super) fn known() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}

/// Brings the tables to the newest version; makes the groups of roles if `roles` says so. A server that lacks what this state folder has seen
/// is left as it is.
///
/// # Errors
/// [`StoreError::Newer`] for tables of a later release; otherwise the server's error.
pub(crate) fn migrate(dir: &Path, to: &Database, roles: bool) -> Result<Migrated, StoreError> {
    let mut session = Session::new(address::servers(to, "provost/migrate")?, Purpose::Migrate)?;
    session.follow(&Newest::of(dir))?;
    session.ask(&[Step::new("begin"), Step::new("select pg_advisory_xact_lock($1)").with(MIGRATION)])?;
    // A migration waits for the turns of daemons, for three seconds at the most; a daemon that waits for the migration gives up soon.
    let long = Duration::from_millis(LONG_STATEMENT_MS_MAX);
    session.script(
        &format!("set local statement_timeout = {LONG_STATEMENT_MS_MAX}; set local lock_timeout = 3000"),
        long,
    )?;
    let from = found(&mut session)?;
    if from > known() {
        return Err(StoreError::Newer { found: from, known: known() });
    }
    if roles {
        for group in GROUPS {
            let is_there =
                session.rows(Step::new("select 1 from pg_roles where rolname = $1").with(group))?;
            if is_there.is_empty() {
                session.script(&format!("create role {group} nologin"), long)?;
            }
        }
    }
    for step in STEPS.get(from as usize..).unwrap_or_default() {
        session.script(step, long)?;
    }
    let by = concat!("provost ", env!("CARGO_PKG_VERSION"));
    let note = "insert into provost.schema values (true, $1, $2)
                on conflict (one) do update set version = excluded.version, made_by = excluded.made_by";
    session.ask(&[Step::new(note).with(i32::try_from(known()).unwrap_or(i32::MAX)).with(by)])?;
    session.script(GRANTS, long)?;
    let mut missing_roles = Vec::new();
    for group in GROUPS {
        if session.rows(Step::new("select 1 from pg_roles where rolname = $1").with(group))?.is_empty() {
            missing_roles.push(group);
        }
    }
    session.ask_within(&[Step::new("commit")], Duration::from_millis(STATEMENT_MS_MAX))?;
    Ok(Migrated { from, to: known(), missing_roles })
}

/// Refuses tables with another version than the one known here.
///
/// # Errors
/// [`StoreError::Newer`], and [`StoreError::Database`] with the next step.
pub(super) fn check(session: &mut Session) -> Result<(), StoreError> {
    match found(session)? {
        0 => Err(StoreError::Database(
            "the database has no tables of Provost's: run `provost store migrate` first".into(),
        )),
        it if it > known() => Err(StoreError::Newer { found: it, known: known() }),
        it if it < known() => Err(StoreError::Database(
            format!(
                "its tables are of version {it}, and this release needs {}: run `provost store migrate`",
                known()
            )
            .into(),
        )),
        _ => Ok(()),
    }
}

/// Returns the version of the tables; 0 if there are none.
///
/// # Errors
/// [`StoreError::Database`] where another program, or a person, has made a schema of that name.
fn found(session: &mut Session) -> Result<u32, StoreError> {
    let sql = "select to_regnamespace('provost') is not null, exists (
                   select from pg_attribute where attrelid = to_regclass('provost.schema') and attname = 'version')";
    let there = session.rows(Step::new(sql))?;
    let is = |column| there.first().map_or(Ok(false), |it| it.try_get(column)).map_err(super::unreadable);
    if !is(0)? {
        return Ok(0);
    }
    if !is(1)? {
        return Err(StoreError::Database(
            "it has a schema \"provost\" that Provost has not made: give Provost a database of its own, or drop that schema".into(),
        ));
    }
    let version = session.rows(Step::new("select version from provost.schema"))?;
    let version = version.first().map(|it| it.try_get::<_, i32>(0)).transpose().map_err(super::unreadable)?;
    u32::try_from(version.unwrap_or(0)).map_err(StoreError::damaged)
}
