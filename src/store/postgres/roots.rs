//! The check whether a folder is a clone of the repository that a database has: both have a root commit in common.
//! Addresses of remotes are not compared, since forks and mirrors differ in them.

use super::session::{Session, Step};
use super::unreadable;
use crate::{Database, RootCommits, StoreError};
use provost_base::HostId;

/// Returns the root commits of this folder, if a start has to compare or note them. They are found before the
/// repository's row is taken, for which other daemons wait.
///
/// # Errors
/// If the database does not answer.
pub(super) fn needed(
    session: &mut Session,
    database: &Database,
    host: HostId,
) -> Result<RootCommits, StoreError> {
    let sql =
        "select r.roots is not null and exists (select from provost.host h where h.repo = r.id and h.id = $2)
               from provost.repo r where r.name = $1";
    let rows = session.rows(Step::new(sql).with(database.name.clone()).with(host.to_string()))?;
    let is_known: Option<bool> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
    Ok(if is_known == Some(true) { Ok(Vec::new()) } else { database.roots.find() })
}

/// Refuses a new host whose repository has no root commit in common with the one in the database.
///
/// # Errors
/// [`StoreError::Database`], with the next step.
pub(super) fn must_share_one(name: &str, ours: &RootCommits, theirs: Option<&str>) -> Result<(), StoreError> {
    let Some(theirs) = theirs else { return Ok(()) };
    let refused = |why: String| Err(StoreError::Database(why.into()));
    let own = match ours {
        Ok(own) => own,
        Err(why) => {
            return refused(format!("it cannot be seen whether this folder is a clone of {name:?}: {why}"));
        }
    };
    if own.iter().any(|it| theirs.split(' ').any(|other| *other == **it)) {
        return Ok(());
    }
    refused(format!(
        "this folder is no clone of {name:?}: its first commit is {}, and that of {name:?} is {theirs}; write another `[store] \
         name`, or start in a clone of that repository",
        own.first().map_or("none yet", |it| it)
    ))
}
