//! The repository's row: the ends of log and journal, and the numbers that were given last, under a seal with the journal's key.
//!
//! ```text
//!   seal = HMAC(the journal's key, label || SHA-256 of the fields, each after its length)
//! ```
//! Each login of the database can change the row, and none has the key. No host takes a value from a row whose seal does not hold: a turn goes on
//! from what the host has read, and a load works the values out from the log ([`super::remade`]).

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::session::{Place, Step};
use super::{Written, load, unreadable};
use crate::codec::{int, nat, parse, text};
use crate::journal::Key;
use crate::{Anchor, Head, StoreError};
use provost_base::{Digest, EntryNo, EventSeq, Timestamp};

/// The columns of [`RepoRow`]. The statement comes after the one that waits for the row, so that its snapshot and its clock are from after the
/// wait.
pub(super) const REPO_ROW: &str = "select id, n, event, format, (select version from provost.schema),
    (extract(epoch from clock_timestamp()) * 1000)::bigint, substr(seal, 1, 33), substr(mac, 1, 33), substr(event_mac, 1, 33), pruned_to,
    left(counters::text, 8192), finished, searched_to, checkpoint, at, left(system, 64), timeline
    from provost.repo where id = $1";

/// This statement, and the transaction with it, fails if the row has moved on: a second fence in addition to the lock.
const MOVES: &str = "with moved as (
        update provost.repo set n = $2, mac = $3, event = $4, event_mac = $5, pruned_to = $6, counters = $7::text::jsonb, finished = $8,
        searched_to = $9, checkpoint = $10, at = $11, system = $12, timeline = $13, seal = $14 where id = $1 and n = $15 and event = $16 returning 1
    ) select 1 / count(*)::int from moved";

const LABEL: &[u8] = b"provost-repository-v1";

/// The repository's row.
pub(super) struct RepoRow {
    /// The repository's number.
    id: i32,
    /// The numbers of the ends of log and journal, as they stand there.
    pub(super) ends: (i64, i64),
    /// The format of the log's entries.
    pub(super) format: i32,
    /// The version of the tables.
    pub(super) tables: i32,
    /// The time by the server's own clock.
    pub(super) clock: Timestamp,
    /// The state that the row says, in which this daemon has written no entry.
    pub(super) state: Written,
    /// The newest time that the daemons were given. It never goes back.
    pub(super) at: Timestamp,
    /// Where numbers were given last.
    pub(super) place: Place,
    /// The seal, and the numbers that were given last with all names that stand there; `None` for a row that no host can have sealed.
    sealed: Option<(Digest, String)>,
}

impl RepoRow {
    /// Reads the row from its columns. If one cannot be read, the state is empty and counts as one that no host has sealed.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a column has another type.
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let mut it = Self {
            id: row.try_get(0).map_err(unreadable)?,
            ends: (row.try_get(1).map_err(unreadable)?, row.try_get(2).map_err(unreadable)?),
            format: row.try_get(3).map_err(unreadable)?,
            tables: row.try_get(4).map_err(unreadable)?,
            clock: Timestamp(row.try_get(5).map_err(unreadable)?),
            state: Written::default(),
            at: Timestamp::default(),
            place: Place::default(),
            sealed: None,
        };
        if let Err(err) = it.read_state(row) {
            tracing::warn!(%err, "the repository's row cannot be read");
        }
        Ok(it)
    }

    fn read_state(&mut self, row: &Row) -> Result<(), StoreError> {
        let number = |at: usize| -> Result<u64, StoreError> { nat(row.try_get(at).map_err(unreadable)?) };
        let seal: Option<&[u8]> = row.try_get(6).map_err(unreadable)?;
        let counters: &str = row.try_get(10).map_err(unreadable)?;
        let state = Written {
            entry: Head { n: EntryNo(number(1)?), mac: load::digest(row, 7)? },
            head: Anchor { seq: EventSeq(number(2)?), mac: load::digest(row, 8)? },
            own_n: 0,
            pruned_to: EventSeq(number(9)?),
            counters: parse(counters)?,
            finished: row.try_get(11).map_err(unreadable)?,
            indexed_to: EventSeq(number(12)?),
            checkpoint: EventSeq(number(13)?),
        };
        let at = Timestamp(row.try_get(14).map_err(unreadable)?);
        let place = Place { system: row.try_get(15).map_err(unreadable)?, timeline: number(16)? };
        let seal = seal.and_then(|it| it.try_into().ok()).map(Digest::from_bytes);
        let counters = in_order(counters)?;
        (self.state, self.at, self.place) = (state, at, place);
        self.sealed = seal.map(|it| (it, counters));
        Ok(())
    }

    /// Returns the row as it stands there, with a state that was worked out.
    pub(super) fn with(&self, state: Written, at: Timestamp, place: Place) -> Self {
        let Self { id, ends, format, tables, clock, .. } = *self;
        Self { id, ends, format, tables, clock, state, at, place, sealed: None }
    }

    /// Returns the time by the database's clock, and never before the newest one that was given.
    pub(super) fn now(&self) -> Timestamp {
        self.at.max(self.clock)
    }

    /// Checks whether a host has sealed exactly this.
    pub(super) fn is_sealed(&self, key: &Key) -> bool {
        let Some((seal, counters)) = &self.sealed else { return false };
        *seal == sealed(key, self.id, (&self.state, counters), (self.at, &self.place))
    }

    /// Returns the statement that moves the row on from exactly this to a state, sealed.
    ///
    /// # Errors
    /// If a number does not fit its column.
    pub(super) fn moves(
        &self,
        key: &Key,
        next: &Written,
        (at, place): (Timestamp, &Place),
    ) -> Result<Step, StoreError> {
        moves((self.id, key), self.ends, next, (at, place))
    }
}

/// Returns numbers by name in the form in which they are sealed: in the order of their names, with those of later releases.
fn in_order(counters: &str) -> Result<String, StoreError> {
    text(&parse::<BTreeMap<String, u64>>(counters)?)
}

fn sealed(
    key: &Key,
    repo: i32,
    (it, counters): (&Written, &str),
    (at, place): (Timestamp, &Place),
) -> Digest {
    let number = |it: u64| it.to_le_bytes();
    let (n, event, pruned_to) = (number(it.entry.n.0), number(it.head.seq.0), number(it.pruned_to.0));
    let (indexed_to, checkpoint) = (number(it.indexed_to.0), number(it.checkpoint.0));
    let (finished, at, timeline) = (it.finished.to_le_bytes(), at.0.to_le_bytes(), number(place.timeline));
    let fields: [&[u8]; 13] = [
        &repo.to_le_bytes(),
        &n,
        it.entry.mac.as_bytes(),
        &event,
        it.head.mac.as_bytes(),
        &pruned_to,
        counters.as_bytes(),
        &finished,
        &indexed_to,
        &checkpoint,
        &at,
        place.system.as_bytes(),
        &timeline,
    ];
    key.mac(LABEL, &[Digest::of_fields(fields).as_bytes()])
}

/// Returns the statement that takes a seal away before another one is set: the same state again has the same seal, which the server refuses.
pub(super) fn unseals(repo: i32) -> Step {
    Step::new("update provost.repo set seal = null where id = $1").with(repo)
}

/// Returns the statement that moves the row on to a state, sealed, from exactly these ends of log and journal.
///
/// # Errors
/// If a number does not fit its column.
pub(super) fn moves(
    (repo, key): (i32, &Key),
    (from_n, from_event): (i64, i64),
    next: &Written,
    (at, place): (Timestamp, &Place),
) -> Result<Step, StoreError> {
    let Anchor { seq, mac } = next.head;
    let counters = text(&next.counters)?;
    let seal = sealed(key, repo, (next, &in_order(&counters)?), (at, place));
    Ok(Step::new(MOVES)
        .with(repo)
        .with(int(next.entry.n.0)?)
        .with(next.entry.mac.as_bytes().to_vec())
        .with(int(seq.0)?)
        .with(mac.as_bytes().to_vec())
        .with(int(next.pruned_to.0)?)
        .with(counters)
        .with(next.finished)
        .with(int(next.indexed_to.0)?)
        .with(int(next.checkpoint.0)?)
        .with(at.0)
        .with(place.system.clone())
        .with(int(place.timeline)?)
        .with(seal.as_bytes().to_vec())
        .with(from_n)
        .with(from_event))
}
