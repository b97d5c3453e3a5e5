//! A server's protection of acknowledged writes, for `provost doctor`.

use std::path::Path;

use super::Database;
use super::address;
use super::remembered::Newest;
use super::session::{Purpose, Session, Step};
use super::{schema, unreadable};
use crate::{Protection, StoreError};

/// Asks the server that a daemon of this state folder would write to about its protection of writes.
///
/// # Errors
/// If it does not answer, or its tables have a version that is not known here.
pub(crate) fn protection(dir: &Path, of: &Database) -> Result<Protection, StoreError> {
    let mut session = Session::new(address::servers(of, "provost/doctor")?, Purpose::Write)?;
    session.follow(&Newest::of(dir))?;
    schema::check(&mut session)?;
    of_server(&mut session)
}

/// Asks the server of an existing session.
///
/// # Errors
/// If it does not answer.
pub(super) fn of_server(session: &mut Session) -> Result<Protection, StoreError> {
    let timeline = session.place()?.timeline;
    let sql = "select current_setting('server_version'), (select count(*) from pg_stat_replication),
               current_setting('synchronous_standby_names') <> '', current_setting('fsync') = 'on',
               pg_has_role(current_user, (select nspowner from pg_namespace where nspname = 'provost'), 'usage')";
    let rows = session.rows(Step::new(sql))?;
    let row = rows.first().ok_or_else(|| StoreError::damaged("the server says nothing of itself"))?;
    Ok(Protection {
        version: row.try_get(0).map_err(unreadable)?,
        standbys: row.try_get(1).map_err(unreadable)?,
        waits_for_standby: row.try_get(2).map_err(unreadable)?,
        waits_for_disk: row.try_get(3).map_err(unreadable)?,
        timeline,
        owns_tables: row.try_get(4).map_err(unreadable)?,
    })
}
