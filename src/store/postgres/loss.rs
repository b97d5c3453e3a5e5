//! A database with fewer events than a daemon knows it to have had: how that is noticed, and how to continue without the lost part.
//!
//! The lost rows had numbers, and other programs may have seen them: a file server has recorded a fence, a reader has a cursor. So
//! all numbers continue beyond every number that is known to have been issued, and the journal seals the gap, as after a restore of
//! a store in the state folder. Other hosts find that the log has continued without an entry, and load everything again.

use std::path::Path;

use super::gaps::{self, gaps};
use super::load;
use super::moving::session;
use super::remade::{LastEntry, Sources, above};
use super::remembered::Remembered;
use super::repo_row::{self, REPO_ROW, RepoRow};
use super::session::{Place, Session, Step};
use super::signing::HostKeys;
use super::start::{is_earlier, must_be_readable};
use super::{Written, must_have_no_other, unreadable, write};
use crate::codec::{int, parse};
use crate::database::{Loss, Site};
use crate::files::{self, Lease};
use crate::journal::{Checkpoint, Gap, Key, LOSS_ACCEPTED, Walk};
use crate::marks::{self, As, FoundMarks, Marks};
use crate::sqlite::{Settled, highest_of, settled};
use crate::{Anchor, Head, JournalHead, StoreError};
use provost_base::limits::{NUMBERS_SKIPPED, POSTGRES_NUMBER_MAX};
use provost_base::{EventSeq, Json, Timestamp};
use provost_domain::{Counters, Effect, Event, EventKind, provost};

/// Returns the event that the journal is known to have reached, by the state folder, if the database does not have
/// it; `None` if nothing is missing.
///
/// # Errors
/// If the database does not answer.
pub(super) fn missing(
    session: &mut Session,
    repo: i32,
    known: &FoundMarks,
    (row, head): (&RepoRow, &Anchor),
) -> Result<Option<EventSeq>, StoreError> {
    let Some((anchor, counters)) = known.least().map(|it| (it.head, it.counters)) else { return Ok(None) };
    if anchor.seq > head.seq
        || counters.fence > row.state.counters.fence
        || counters.mail > row.state.counters.mail
    {
        return Ok(Some(anchor.seq));
    }
    let there = load::event_mac(session, repo, anchor.seq)?;
    Ok(there.filter(|mac| *mac != anchor.mac).map(|_| anchor.seq))
}

/// The database of a stopped daemon, with the repository's row taken.
struct Held {
    session: Session,
    place: Place,
    remembered: Remembered,
    repo: i32,
    row: RepoRow,
    /// The end of the log, if the row was worked out.
    last: Option<LastEntry>,
    key: Key,
    places: Vec<std::path::PathBuf>,
    known: FoundMarks,
    /// The end of the journal, checked from its beginning, and the last event whose body may be missing.
    kept: JournalHead,
    pruned_to: EventSeq,
    checkpoints: Vec<Checkpoint>,
    was: EventSeq,
    dir: std::path::PathBuf,
    _lease: Lease,
}

fn journal_key(dir: &Path) -> Result<Key, StoreError> {
    let missing = || {
        let why = format!(
            "{} is missing, and the journal cannot be continued without it: bring it back",
            dir.join(crate::JOURNAL_KEY).display()
        );
        StoreError::Key(why.into())
    };
    Ok(Key::new(&files::journal_key(dir)?.ok_or_else(missing)?))
}

/// Takes the row of the repository with this name, whose journal must have this key.
fn repository(session: &mut Session, name: &str, key: &Key) -> Result<i32, StoreError> {
    let find = "select id, key_print from provost.repo where name = $1 for update";
    let rows = session.rows(Step::new(find).with(name.to_owned()))?;
    let none = || {
        let why =
            format!("it has no repository {name:?}: the database is another one; bring the right one back");
        StoreError::Database(why.into())
    };
    let found = rows.first().ok_or_else(none)?;
    let (repo, print): (i32, String) =
        (found.try_get(0).map_err(unreadable)?, found.try_get(1).map_err(unreadable)?);
    if print != key.fingerprint().to_string() {
        return Err(StoreError::Key(
            "the repository of this name in the database has another journal".into(),
        ));
    }
    Ok(repo)
}

fn held(what: Site<'_>) -> Result<Held, StoreError> {
    let dir = files::existing_dir(what.dir)?;
    let lease = Lease::take(&dir)?;
    must_have_no_other(&dir)?;
    let remembered = Remembered::of(&dir, &what.database.name)?;
    let key = journal_key(&dir)?;
    let places = marks::places(&dir, what.outside);
    let known = marks::read(&places, &key);
    // An old primary lacks what its successor has, and every other host refuses it.
    let (mut session, place) = session(what.database, &remembered.place)?;
    session.ask(&[Step::new("begin")])?;
    let repo = repository(&mut session, &what.database.name, &key)?;
    let rows = session.rows(Step::new(REPO_ROW).with(repo))?;
    let row =
        RepoRow::read(rows.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)?;
    must_be_readable(&row)?;
    let checkpoints = load::checkpoints(&mut session, repo)?;
    let mut walk = Walk::whole(&key, checkpoints.clone(), gaps(&mut session, repo)?, None);
    load::walk_after(&mut session, repo, &mut walk)?;
    walk.leap()?;
    let (kept, pruned_to) = (walk.head(), walk.pruned_to());
    let mut last = None;
    let row = if row.is_sealed(&key) && !is_earlier(&row.state.head, &kept) {
        row
    } else {
        let checkpoint = checkpoints.iter().rfind(|it| key.is_sealed(it));
        let session = &mut session;
        let sources = Sources { session, repo, key: &key, marks: &known, journal: &kept, checkpoint };
        let remade = sources.remake(&row, &place, Counters::default())?;
        last = Some(remade.last);
        remade.row
    };
    if kept.seq != row.state.head.seq {
        return Err(StoreError::EndMissing { head: kept.seq });
    }
    let Some(was) = missing(&mut session, repo, &known, (&row, &kept))? else {
        return Err(StoreError::Database(
            format!(
                "nothing is lost: the journal ends at event {}, and has everything that this state folder knows of",
                kept.seq
            )
            .into(),
        ));
    };
    Ok(Held {
        session,
        place,
        remembered,
        repo,
        row,
        last,
        key,
        places,
        known,
        kept,
        pruned_to,
        checkpoints,
        was,
        dir,
        _lease: lease,
    })
}

/// Returns the loss, and changes nothing.
///
/// # Errors
/// As for [`crate::loss`].
pub(crate) fn loss(what: Site<'_>) -> Result<Loss, StoreError> {
    let held = held(what)?;
    let (next, _) = held.next()?;
    Ok(held.told(&next))
}

/// Continues without the lost part.
///
/// # Errors
/// As for [`crate::accept_loss`].
pub(crate) fn accept_loss(what: Site<'_>) -> Result<Loss, StoreError> {
    let mut held = held(what)?;
    let (mut next, to) = held.next()?;
    let gap = held.key.gap(held.kept, to);
    let event = held.event(to, &next, what.now)?;
    next.event = event.seq;
    let told = held.told(&next);
    let linked = held.key.extend(&gap.head(), std::slice::from_ref(&event))?;
    let head = linked.last().map_or(gap.head(), |it| Anchor { seq: it.seq, mac: it.mac });
    held.write(&gap, (&linked, event), (&head, &next))?;
    // A start that finds the old marks must find their numbers skipped.
    let mut marks = Marks::open(&held.places);
    marks.write(&held.key, &head, &next, As::Durable);
    marks.sync();
    held.remembered.see(held.place.clone())?;
    Ok(told)
}

impl Held {
    /// Returns the numbers to continue with, and the last number of an event that is skipped.
    fn next(&self) -> Result<(Counters, EventSeq), StoreError> {
        let mut all = vec![self.row.state.counters];
        for it in self.checkpoints.iter().filter(|it| self.key.is_sealed(it)) {
            all.push(parse(&it.counters)?);
        }
        all.extend(self.known.all().map(|it| Counters { event: it.head.seq, ..it.counters }));
        let highest = highest_of(&all);
        let mut next = above(&highest);
        let to = EventSeq(highest.event.0.max(self.kept.seq.0).saturating_add(NUMBERS_SKIPPED));
        next.event = to.next();
        Ok((next, to))
    }

    fn told(&self, next: &Counters) -> Loss {
        Loss { was: self.was, is: self.kept.seq, goes_on_at: next.event, fences_above: next.fence.0 }
    }

    fn event(&mut self, to: EventSeq, next: &Counters, now: Timestamp) -> Result<Event, StoreError> {
        let last = load::event_time(&mut self.session, self.repo, self.kept.seq)?;
        let details = serde_json::json!({
            "kept_to": self.kept.seq, "was_at": self.was, "goes_on_at": to.next(), "fences_above": next.fence,
            "timeline": self.place.timeline, "system": self.place.system,
        });
        Ok(Event {
            seq: to.next(),
            at: now.max(last),
            actor: provost(),
            kind: EventKind::Recorded {
                what: LOSS_ACCEPTED.into(),
                subject: "the database went back".into(),
                details: Json::from_value(&details),
            },
            host: self.remembered.host,
        })
    }

    fn write(
        &mut self,
        gap: &Gap,
        (linked, event): (&[crate::StoredEvent], Event),
        (head, next): (&JournalHead, &Counters),
    ) -> Result<(), StoreError> {
        let repo = self.repo;
        let mut steps = self.settle_owed()?;
        // A token that is valid here may have been revoked in the lost part.
        steps.push(Step::new("delete from provost.token where repo = $1").with(repo));
        steps.push(gaps::step(repo, gap)?);
        write::events(repo, linked, &[event], &mut steps)?;
        steps.push(write::checkpoint(repo, &self.key.checkpoint(*head, self.pruned_to, next)?)?);
        // The log skips one entry, so that a host which has a lost entry does not take a later one for it.
        let Head { n, mac: before } = self.row.state.entry;
        let n = n.next();
        let mac = self.key.mac(b"provost-log-goes-on-v1", &[before.as_bytes(), &n.0.to_le_bytes()]);
        let state = Written {
            entry: Head { n, mac },
            head: *head,
            counters: *next,
            pruned_to: self.pruned_to,
            checkpoint: head.seq,
            ..self.row.state.clone()
        };
        let seals = (self.row.at, &self.place);
        steps.extend([repo_row::unseals(repo), self.row.moves(&self.key, &state, seals)?]);
        let begins = "update provost.repo set log_from = $2 where id = $1";
        steps.push(Step::new(begins).with(repo).with(int(n.next().0)?));
        let (dir, name) = (self.dir.clone(), self.remembered.name().to_owned());
        let mut keys = HostKeys::of(&dir, &name, self.remembered.host, &self.key)?;
        if let Some(last) = &self.last {
            last.must_be_signed((&mut self.session, repo, &self.key), &mut keys, &self.kept)?;
        }
        keys.sign_alone(repo, (n, &mac), head, &mut steps)?;
        // The lost part may include starts of daemons.
        steps.push(
            Step::new("update provost.host set inc = least(inc, $3) + $2 where repo = $1")
                .with(repo)
                .with(int(NUMBERS_SKIPPED)?)
                .with(POSTGRES_NUMBER_MAX),
        );
        self.session.ask(&steps)?;
        self.session.ask(&[Step::new("commit")]).map(drop)
    }

    /// Settles the effects that may have been carried out in the lost part.
    fn settle_owed(&mut self) -> Result<Vec<Step>, StoreError> {
        let rows = self
            .session
            .rows(Step::new("select id, body from provost.effect where repo = $1").with(self.repo))?;
        let (mut begun, mut gone) = (Vec::new(), Vec::new());
        for row in &rows {
            let id: i64 = row.try_get(0).map_err(unreadable)?;
            match settled(&parse::<Effect>(row.try_get(1).map_err(unreadable)?)?) {
                Settled::Begun => begun.push(id),
                Settled::Gone => gone.push(id),
                Settled::Owed => {}
            }
        }
        let of = |sql: &'static str, ids: Vec<i64>| Step::new(sql).with(self.repo).with(ids);
        Ok(vec![
            of("update provost.effect set started = true where repo = $1 and id = any($2::bigint[])", begun),
            of("delete from provost.effect where repo = $1 and id = any($2::bigint[])", gone),
        ])
    }
}
