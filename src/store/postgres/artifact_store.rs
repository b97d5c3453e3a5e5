//! Results of runs for other hosts, in pieces, outside of the repository's order: no turn waits for them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::read::RepoNumber;
use super::remembered::{Newest, Remembered};
use super::session::{Purpose, Session, Step};
use super::{address, schema, unreadable};
use crate::{Database, StoreError};
use provost_base::limits::{
    LONG_STATEMENT_MS_MAX, SHARED_ARTIFACT_BYTES_MAX, SHARED_ARTIFACT_PIECE_BYTES, SHARED_ARTIFACTS_BYTES_MAX,
};
use provost_base::{HostId, TaskId};

/// A signature, and the bytes that it is under.
pub(crate) type Signed = (Vec<u8>, Vec<u8>);

/// A session with the shelves of one repository.
pub(crate) struct SharedArtifactStore {
    session: Session,
    newest: Newest,
    name: String,
    repo: RepoNumber,
    host: String,
}

/// The statement that removes the oldest shelves until the others fit within so many bytes.
const MAKE_ROOM: &str = "with shelves as (
        select shelf, max(at) as at, sum(length(bytes)) as bytes from provost.artifact where repo = $1 group by shelf
    ), kept as (
        select shelf, sum(bytes) over (order by at desc, shelf) as bytes from shelves
    ) delete from provost.artifact where repo = $1 and shelf in (select shelf from kept where bytes > $2::bigint)";

impl SharedArtifactStore {
    /// Opens a session.
    ///
    /// # Errors
    /// If the database does not answer, or has no such repository.
    pub(crate) fn open(dir: &Path, database: &Database) -> Result<Self, StoreError> {
        let remembered = Remembered::of(dir, &database.name)?;
        let servers = address::servers(database, &format!("provost-artifacts/{}", remembered.short()))?;
        let mut session = Session::new(servers, Purpose::Write)?;
        let newest = Newest::of(dir);
        session.follow(&newest)?;
        schema::check(&mut session)?;
        let mut repo = RepoNumber::default();
        repo.find(&mut session, &database.name)?;
        let name = database.name.clone();
        Ok(Self { session, newest, name, repo, host: remembered.host.to_string() })
    }

    /// Connects, and returns the repository's number in that database.
    fn follow(&mut self) -> Result<i32, StoreError> {
        self.session.follow(&self.newest)?;
        self.repo.find(&mut self.session, &self.name)
    }

    /// Puts bytes on a shelf, and replaces its content.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) fn put(
        &mut self,
        task: &TaskId,
        shelf: &str,
        signature: &[u8],
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let repo = self.follow()?;
        let room = SHARED_ARTIFACTS_BYTES_MAX.saturating_sub(bytes.len() as u64);
        let mut steps = vec![
            Step::new("begin"),
            Step::new(MAKE_ROOM).with(repo).with(room.cast_signed()),
            Step::new(CLEAR).with(repo).with(shelf.to_owned()),
        ];
        for (n, piece) in (0_i32..).zip(bytes.chunks(SHARED_ARTIFACT_PIECE_BYTES)) {
            let sql = "insert into provost.artifact (repo, shelf, n, task, host, seal, bytes) values ($1, $2, $3, $4, $5, $6, $7)";
            let step = Step::new(sql).with(repo).with(shelf.to_owned()).with(n);
            let step = step.with(task.as_str().to_owned()).with(self.host.clone());
            steps.push(step.with(signature.to_vec()).with(piece.to_vec()));
        }
        steps.push(Step::new("commit"));
        let done = self.session.ask_within(&steps, Duration::from_millis(LONG_STATEMENT_MS_MAX));
        done.map(drop).inspect_err(|_| self.session.drop_link())
    }

    /// Returns the signature of a shelf, and its content, as this host has left it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) fn get(&mut self, shelf: &str, ran_by: HostId) -> Result<Option<Signed>, StoreError> {
        let repo = self.follow()?;
        // Each login can add rows: no more is read than a result has.
        let (pieces, size) =
            (SHARED_ARTIFACT_BYTES_MAX.div_ceil(SHARED_ARTIFACT_PIECE_BYTES), SHARED_ARTIFACT_PIECE_BYTES);
        let sql = "select seal, bytes from provost.artifact where repo = $1 and shelf = $2 and length(bytes) <= $3::bigint
            and length(seal) <= 64 and host = $5 order by n limit $4::bigint";
        let step = Step::new(sql).with(repo).with(shelf.to_owned()).with(size as i64);
        let step = step.with(pieces as i64).with(ran_by.to_string());
        let rows = self.session.ask_within(&[step], Duration::from_millis(LONG_STATEMENT_MS_MAX))?;
        let (mut signature, mut bytes) = (None, Vec::new());
        for row in rows.iter().flatten() {
            signature = Some(row.try_get(0).map_err(unreadable)?);
            bytes.extend_from_slice(row.try_get(1).map_err(unreadable)?);
        }
        Ok(signature.map(|signature| (signature, bytes)))
    }

    /// Returns those of these shelves that have content.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) fn has(&mut self, shelves: &[String]) -> Result<BTreeSet<String>, StoreError> {
        let sql = "select shelf from provost.artifact where repo = $1 and n = 0 and shelf = any($2::text[])";
        let repo = self.follow()?;
        let rows = self.session.rows(Step::new(sql).with(repo).with(shelves.to_vec()))?;
        rows.iter().map(|it| it.try_get(0).map_err(unreadable)).collect()
    }

    /// Removes the content of a shelf.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(crate) fn clear(&mut self, shelf: &str) -> Result<(), StoreError> {
        let repo = self.follow()?;
        self.session.ask(&[Step::new(CLEAR).with(repo).with(shelf.to_owned())]).map(drop)
    }
}

const CLEAR: &str = "delete from provost.artifact where repo = $1 and shelf = $2";
