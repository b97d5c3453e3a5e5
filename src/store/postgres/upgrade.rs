//! Hosts with different releases on one log: an older release refuses an entry that it cannot read, and names the
//! newer release; the format in which all write is raised once all can read the next one.

use std::path::Path;

use super::address;
use super::bounds::{self, Page};
use super::hosts::{MACHINE_SIGNS_MAX, all_rows};
use super::remembered::Newest;
use super::schema;
use super::session::{Purpose, Session, Step};
use super::{PostgresStore, entry, unreadable};
use crate::codec::{int, nat};
use crate::host_keys::At;
use crate::{Database, HostRow, HostState, StoreError, Upgraded, log};
use provost_base::limits::POSTGRES_PAGE_ROWS;
use provost_base::{DaemonId, EntryNo, HostId, visible_name};

/// The version of this release.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The number of entries of other releases that a start checks.
const LOOKED_AT_MAX: u64 = 2_000;

/// The hosts that have another release than this one.
const OF_OTHER_RELEASES: &str = "select left(id, 64) from provost.host where repo = $1 and version <> $2";

/// Raises the format of the log to the newest one, if all hosts that may come back can read it.
///
/// # Errors
/// If the database does not answer, or its tables have a version that is not known here; then nothing has changed.
pub(crate) fn upgrade(dir: &Path, database: &Database, newest: u32) -> Result<Upgraded, StoreError> {
    let mut session = Session::new(address::servers(database, "provost/upgrade")?, Purpose::Write)?;
    session.follow(&Newest::of(dir))?;
    schema::check(&mut session)?;
    let take = "select id, format from provost.repo where name = $1 for update";
    let found = session.ask(&[Step::new("begin"), Step::new(take).with(database.name.clone())])?;
    let row = found.last().and_then(|it| it.first()).ok_or_else(|| {
        StoreError::Database(format!("the database has no repository {:?}", database.name).into())
    })?;
    let (repo, format): (i32, i32) =
        (row.try_get(0).map_err(unreadable)?, row.try_get(1).map_err(unreadable)?);
    let from = u32::try_from(format).map_err(StoreError::damaged)?;
    // This comes after the row is taken: a host that begins to take part waits for the row.
    let mut hosts = all_rows(&mut session, dir, database)?;
    let doubted = hosts.iter().filter(|it| it.claimed.is_some()).cloned().collect();
    hosts.retain(|it| !matches!(it.state, HostState::Removing | HostState::Removed));
    let (behind, able): (Vec<HostRow>, Vec<HostRow>) =
        hosts.into_iter().partition(|it| it.formats.1 < newest);
    let rises = behind.is_empty() && from < newest;
    if rises {
        let sql = "update provost.repo set format = $2 where id = $1";
        let newest = i32::try_from(newest).map_err(StoreError::damaged)?;
        session.ask(&[Step::new(sql).with(repo).with(newest), Step::new("commit")])?;
    } else {
        session.ask(&[Step::new("rollback")])?;
    }
    let others = able.into_iter().filter(|it| it.version != VERSION).collect();
    Ok(Upgraded { from, to: if rises { newest } else { from }, newest, behind, others, doubted })
}

impl PostgresStore {
    /// Refuses to continue if a host of another release has just written a change that this one does not know: the state loaded from the rows would
    /// lack it. `end` is the end of the log, whose signatures were checked behind `since`; of the entries before it, those count to which the chain
    /// leads, since each login can add rows where the log was cut.
    ///
    /// # Errors
    /// [`StoreError::UnknownChange`].
    pub(super) fn must_know_all_changes(&mut self, end: EntryNo, since: At) -> Result<(), StoreError> {
        let others = self.session.rows(Step::new(OF_OTHER_RELEASES).with(self.repo).with(VERSION))?;
        let others: Vec<HostId> =
            others.iter().filter_map(|it| it.try_get::<_, &str>(0).ok()?.parse().ok()).collect();
        if others.is_empty() {
            return Ok(());
        }
        let (mut n, mut before) = (end.0.saturating_sub(LOOKED_AT_MAX), None);
        loop {
            let page = bounds::entries(self.repo, int(n)?, Page::of(POSTGRES_PAGE_ROWS));
            let rows = self.session.rows(page)?;
            for row in &rows {
                let Ok(it) = entry::read(row) else {
                    // A login has added it: those that a host has written were read before.
                    (n, before) = (nat(row.try_get(0).map_err(unreadable)?)?, None);
                    continue;
                };
                if it.n > end {
                    return Ok(());
                }
                let is_proved =
                    it.n > since.n || before.is_some_and(|before| self.key.is_next_entry(&before, &it));
                if is_proved
                    && others.contains(&it.by.host)
                    && let Err(err) = log::must_be_known(&it)
                {
                    // The next attempt has to look again.
                    self.keys.known.checked = since;
                    return Err(self.with_version(err));
                }
                (n, before) = (it.n.0, Some(it.head()));
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the error with the release of the host that has written the unknown change.
    pub(super) fn with_version(&mut self, err: StoreError) -> StoreError {
        match err {
            StoreError::UnknownChange { n, by, what, version: None } => {
                let version = self.version_of(by).unwrap_or(None);
                StoreError::UnknownChange { n, by, what, version }
            }
            err => err,
        }
    }

    fn version_of(&mut self, by: DaemonId) -> Result<Option<Box<str>>, StoreError> {
        let sql = "select version from provost.host where repo = $1 and id = $2";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(by.host.to_string()))?;
        let version: Option<String> = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
        Ok(version.map(|it| visible_name(&it, MACHINE_SIGNS_MAX).into()))
    }

    /// Returns a note for a person if the tables were made for a later release: this release continues with them as long as it runs.
    pub(super) fn tables_note(&self) -> Option<Box<str>> {
        let (found, known) = (self.tables, schema::known());
        (found > known).then(|| {
            format!(
                "the database's tables are of version {found}, which a newer Provost has made, and this one knows {known}: it goes on while \
                 it runs, and does not start again; install that release here, and start the daemon again"
            )
            .into()
        })
    }
}
