//! Reads history in pages beside the writer, on a session that cannot write. A lost connection is made again once:
//! a read changes nothing.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::batch::asked;
use super::bounds::{self, Page, in_row};
use super::gaps::gaps;
use super::load::{self, checkpoints, event, walk_seeing};
use super::remembered::{Newest, Remembered};
use super::repo_row::{REPO_ROW, RepoRow};
use super::session::{Purpose, Session, Step};
use super::signing::HostKeys;
use super::{Database, address, posts, protection, schema, search, sums, unreadable};
use crate::codec::{int, parse};
use crate::journal::{ChainDefect, GIVEN_UP, Key, Walk};
use crate::{
    Anchor, CountedRow, FinishedFilter, Found, Letters, Protection, Reader, SearchQuery, See, StoreError,
    StoredEvent, StoredPost, TimelineOrder, TimelineQuery, UsageQuery, UsageRow, Verdict, files, marks,
};
use provost_base::limits::{EVENT_PAGE_BYTES_MAX, LONG_STATEMENT_MS_MAX};
use provost_base::{EventSeq, JobId, Json, TaskId};
use provost_domain::{BEAT, JobResult, Task};

/// The number of rows of finished tasks or of the timeline that are fetched at a time; each may be large.
const PAGE: i64 = 100;

/// A reader of one repository.
pub(crate) struct PostgresReader {
    session: Session,
    newest: Newest,
    dir: PathBuf,
    name: String,
    repo: RepoNumber,
}

/// The number of a repository in the database to which a session is connected.
#[derive(Default)]
pub(super) struct RepoNumber {
    /// The number, and since when the session has been connected to the server that has said so.
    found: Option<(i32, Instant)>,
}

impl RepoNumber {
    /// Returns it. A session that was connected again may be at another database, which has other numbers.
    ///
    /// # Errors
    /// [`StoreError::Database`] if that database has no such repository, or the server's error.
    pub(super) fn find(&mut self, session: &mut Session, name: &str) -> Result<i32, StoreError> {
        let since = session.linked_since()?;
        if let Some((number, _)) = self.found.filter(|it| it.1 == since) {
            return Ok(number);
        }
        let rows =
            session.rows(Step::new("select id from provost.repo where name = $1").with(name.to_owned()))?;
        let none =
            || format!("there is no repository {name:?} in it yet: the first start of the daemon makes it");
        let row = rows.first().ok_or_else(|| StoreError::Database(none().into()))?;
        let number = row.try_get(0).map_err(unreadable)?;
        self.found = Some((number, since));
        Ok(number)
    }
}

/// Returns a finished task.
///
/// # Errors
/// If the database does not answer, or the row cannot be read.
pub(super) fn past_task(session: &mut Session, repo: i32, id: &TaskId) -> Result<Option<Task>, StoreError> {
    let sql = "select body from provost.task where repo = $1 and id = $2 and not live";
    one(session, ("task", id.as_str()), Step::new(sql).with(repo).with(id.as_str().to_owned()))
}

/// Reads the body of a row; the error names the row.
fn one<T: DeserializeOwned>(
    session: &mut Session,
    (table, key): (&str, &str),
    step: Step,
) -> Result<Option<T>, StoreError> {
    let rows = session.rows(step)?;
    let body = rows.first().map(|it| it.try_get::<_, &str>(0)).transpose().map_err(unreadable)?;
    body.map(|body| in_row(table, key, || parse(body))).transpose()
}

impl PostgresReader {
    /// Opens a reader of the repository that has its name in the database.
    ///
    /// # Errors
    /// If the database does not answer, or has no repository with that name.
    pub(crate) fn open(dir: &Path, database: &Database) -> Result<Self, StoreError> {
        Self::open_where(dir, database, schema::check)
    }

    /// Opens a reader for a running daemon, even over tables to which a later release has added meanwhile.
    ///
    /// # Errors
    /// As for [`PostgresReader::open`].
    pub(super) fn of_daemon(dir: &Path, database: &Database) -> Result<Self, StoreError> {
        Self::open_where(dir, database, |_| Ok(()))
    }

    fn open_where(
        dir: &Path,
        database: &Database,
        check: impl FnOnce(&mut Session) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let dir = files::existing_dir(dir)?;
        super::must_have_no_other(&dir)?;
        let remembered = Remembered::of(&dir, &database.name)?;
        let servers = address::servers(database, &format!("provost-reader/{}", remembered.short()))?;
        let mut session = Session::new(servers, Purpose::Read)?;
        let newest = Newest::of(&dir);
        session.follow(&newest)?;
        check(&mut session)?;
        let mut repo = RepoNumber::default();
        repo.find(&mut session, &database.name)?;
        Ok(Self { session, newest, dir, name: database.name.clone(), repo })
    }

    /// Does some reads; once more over a new connection if the first one was lost.
    fn read<T>(
        &mut self,
        mut work: impl FnMut(&mut Session, i32) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let was_linked = self.session.is_linked();
        let mut attempt = |it: &mut Self| {
            let repo = it.follow()?;
            work(&mut it.session, repo)
        };
        match attempt(self) {
            Err(StoreError::Away(_)) if was_linked && !self.session.is_linked() => attempt(self),
            done => done,
        }
    }

    /// Connects, and returns the repository's number in that database.
    fn follow(&mut self) -> Result<i32, StoreError> {
        self.session.follow(&self.newest)?;
        self.repo.find(&mut self.session, &self.name)
    }

    /// Does some reads in one snapshot.
    fn moment<T>(
        &mut self,
        mut work: impl FnMut(&mut Session, i32) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read(|session, repo| {
            session.ask(&[
                Step::new("begin isolation level repeatable read read only"),
                Step::new(format!("set local statement_timeout = {LONG_STATEMENT_MS_MAX}")),
                Step::new("set local idle_in_transaction_session_timeout = 60000"),
            ])?;
            let done = work(session, repo);
            if session.is_linked() && session.ask(&[Step::new("rollback")]).is_err() {
                session.drop_link();
            }
            done
        })
    }

    fn walk(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError> {
        let Some(secret) = files::journal_key(&self.dir)? else {
            return Ok(Verdict::CannotCheck("the journal's key is missing".into()));
        };
        let key = Key::new(&secret);
        let (name, dir) = (self.name.clone(), self.dir.clone());
        let host = Remembered::of(&dir, &name)?.host;
        self.moment(|session, repo| {
            let rows = session.ask(&[
                Step::new(REPO_ROW).with(repo),
                Step::new("select key_print from provost.repo where id = $1").with(repo),
            ])?;
            let line = |at: usize| {
                rows.get(at)
                    .and_then(|it| it.first())
                    .ok_or_else(|| StoreError::damaged("the repository is gone"))
            };
            let print: String = line(1)?.try_get(0).map_err(unreadable)?;
            if print != key.fingerprint().to_string() {
                return Ok(Verdict::CannotCheck(
                    format!("the journal's key here is not that of {name:?}: bring that one back").into(),
                ));
            }
            let counted = RepoRow::read(line(0)?)?.state.counters.event;
            if let Some(it) = anchor.filter(|it| session.is_at_standby() && it.seq > counted) {
                return Ok(Verdict::CannotCheck(not_there_yet(it.seq).to_string().into()));
            }
            let mut walk = Walk::whole(&key, checkpoints(session, repo)?, gaps(session, repo)?, anchor);
            if !walk_seeing(session, repo, &mut walk, see)? {
                return Ok(Verdict::CannotCheck(GIVEN_UP.into()));
            }
            let verdict = walk.finish(counted);
            let Verdict::Ok { head, .. } = &verdict else { return Ok(verdict) };
            let mut keys = HostKeys::of(&dir, &name, host, &key)?;
            Ok(match keys.verify((session, repo, &key), head)? {
                Some((first_bad_seq, what)) => Verdict::Tampered { first_bad_seq, what: what.into() },
                None => verdict,
            })
        })
    }
}

/// Checks whether the state in the database can be used, without changing anything: the end of the journal, or the
/// whole journal if `all` says so.
///
/// # Errors
/// The reason why not, with the next step.
pub(crate) fn look(
    dir: &Path,
    database: &Database,
    outside: Option<&Path>,
    all: bool,
) -> Result<(), StoreError> {
    let dir = files::existing_dir(dir)?;
    let places = marks::places(&dir, outside);
    super::must_have_no_other(&dir)?;
    if !crate::is_in_database(&dir) && !marks::exist(&places) {
        return Ok(());
    }
    // The marks come first: the journal of a running daemon only grows.
    let Some(secret) = files::journal_key(&dir)? else {
        return Err(StoreError::Key(
            format!("{} is missing: bring it back", dir.join(crate::JOURNAL_KEY).display()).into(),
        ));
    };
    let key = Key::new(&secret);
    let least = marks::read(&places, &key).least().map(|it| it.head);
    let mut reader = PostgresReader::open(&dir, database)?;
    if all && let Verdict::Tampered { first_bad_seq, what } = reader.walk(None, &mut |_| true)? {
        return Err(StoreError::Tampered { seq: first_bad_seq, what });
    }
    reader.moment(|session, repo| {
        let (head, _) = load::tail(session, repo, &key, None)?;
        match least {
            Some(least) if least.seq > head.seq => {
                let may_lack_it = session.is_at_standby();
                Err(if may_lack_it {
                    not_there_yet(least.seq)
                } else {
                    StoreError::WentBack { was: least.seq, is: head.seq }
                })
            }
            Some(least) if load::event_mac(session, repo, least.seq)?.is_some_and(|mac| mac != least.mac) => {
                Err(StoreError::WentBack { was: least.seq, is: head.seq })
            }
            _ => Ok(()),
        }
    })
}

/// The error for an event that a standby lacks: the primary may well have it.
fn not_there_yet(seq: EventSeq) -> StoreError {
    StoreError::Away(
        format!("the only server that answers is a standby, which has not got event {seq} yet").into(),
    )
}

impl Reader for PostgresReader {
    fn finished(
        &mut self,
        filter: FinishedFilter,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Task>, bool), StoreError> {
        self.read(|session, repo| {
            let mut before = match &filter.before {
                None => i64::MAX,
                Some(id) => {
                    let sql = "select finished_seq from provost.task where repo = $1 and id = $2 and not live";
                    let rows = session.rows(Step::new(sql).with(repo).with(id.as_str().to_owned()))?;
                    let Some(row) = rows.first() else { return Ok((Vec::new(), false)) };
                    row.try_get(0).map_err(unreadable)?
                }
            };
            let status = filter.status.map(|it| it.as_str());
            let which = status.map_or("", |_| "and status = $4");
            let sql = format!(
                "select body, finished_seq, id from provost.task where repo = $1 and not live and finished_seq < $2 {which}
                 order by finished_seq desc limit $3"
            );
            let (mut tasks, mut bytes) = (Vec::new(), 0_usize);
            loop {
                let step = Step::new(sql.clone()).with(repo).with(before).with(PAGE);
                let rows = session.rows(status.into_iter().fold(step, Step::with))?;
                for row in &rows {
                    let body: &str = row.try_get(0).map_err(unreadable)?;
                    before = row.try_get(1).map_err(unreadable)?;
                    bytes = bytes.saturating_add(body.len());
                    if tasks.len() >= limit || (bytes > bytes_max && !tasks.is_empty()) {
                        return Ok((tasks, true));
                    }
                    let id: &str = row.try_get(2).map_err(unreadable)?;
                    tasks.push(in_row("task", id, || parse(body))?);
                }
                if (rows.len() as i64) < PAGE {
                    return Ok((tasks, false));
                }
            }
        })
    }

    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        self.read(|session, repo| past_task(session, repo, id))
    }

    fn events_after(&mut self, seq: EventSeq, limit: u16) -> Result<Vec<StoredEvent>, StoreError> {
        // The cursor is a caller's number; one that is too large for the column finds nothing.
        let after = int(seq.0).unwrap_or(i64::MAX);
        self.read(|session, repo| {
            let (mut events, mut bytes, mut after) = (Vec::<StoredEvent>::new(), 0_usize, after);
            while events.len() < usize::from(limit) {
                let most = PAGE.min(i64::from(limit) - events.len() as i64);
                let rows = session.rows(bounds::events(repo, (after, i64::MAX), Page::of(most)))?;
                for row in &rows {
                    if bytes >= EVENT_PAGE_BYTES_MAX {
                        return Ok(events);
                    }
                    let event = event(row)?;
                    after = int(event.seq.0)?;
                    bytes = bytes.saturating_add(event.body.as_ref().map_or(0, |body| body.len()));
                    events.push(event);
                }
                if rows.is_empty() {
                    break;
                }
            }
            Ok(events)
        })
    }

    fn each_letter(
        &mut self,
        which: &Letters,
        bytes_max: usize,
        each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        // Messages that were handed over cannot be taken back: the connection is tested first.
        self.read(|session, _| session.rows(Step::new("select 1")).map(drop))?;
        let repo = self.follow()?;
        posts::each_letter(&mut self.session, repo, which, bytes_max, each)
    }

    fn timeline(&mut self, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.read(|session, repo| timeline(session, repo, query))
    }

    fn imported(&mut self, ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
        let as_stored: Vec<String> = ids.iter().map(|it| asked(it).into_owned()).collect();
        self.read(|session, repo| {
            let sql = "select id from provost.imported where repo = $1 and id = any($2::text[])";
            let rows = session.rows(Step::new(sql).with(repo).with(as_stored.clone()))?;
            let found = rows
                .iter()
                .map(|it| it.try_get(0))
                .collect::<Result<BTreeSet<String>, _>>()
                .map_err(unreadable)?;
            Ok(ids
                .iter()
                .zip(&as_stored)
                .filter(|(_, stored)| found.contains(*stored))
                .map(|(id, _)| id.clone())
                .collect())
        })
    }

    fn job_order(&mut self, id: &JobId) -> Result<Option<Json>, StoreError> {
        self.read(|session, repo| {
            let sql = "select body from provost.job_order where repo = $1 and id = $2";
            let rows = session.rows(Step::new(sql).with(repo).with(id.as_str().to_owned()))?;
            let body = rows.first().map(|it| it.try_get::<_, &str>(0)).transpose().map_err(unreadable)?;
            let parsed =
                |body| in_row("job_order", id.as_str(), || Json::parse(body).map_err(StoreError::damaged));
            body.map(parsed).transpose()
        })
    }

    fn job_result(&mut self, id: &JobId) -> Result<Option<JobResult>, StoreError> {
        self.read(|session, repo| {
            let sql = "select body from provost.job_result where repo = $1 and id = $2";
            one(session, ("job_result", id.as_str()), Step::new(sql).with(repo).with(id.as_str().to_owned()))
        })
    }

    fn usage(&mut self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        self.read(|session, repo| sums::used(session, repo, query))
    }

    fn counted(&mut self, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError> {
        self.read(|session, repo| sums::counted(session, repo, query))
    }

    fn counted_of(&mut self, task: &TaskId) -> Result<Vec<CountedRow>, StoreError> {
        self.read(|session, repo| sums::counted_of(session, repo, task))
    }

    fn search(&mut self, query: &SearchQuery) -> Result<Found, StoreError> {
        // In one snapshot, a concurrent pruning is seen either completely or not at all.
        self.moment(|session, repo| search::search(session, repo, query))
    }

    fn protection(&mut self) -> Result<Option<Protection>, StoreError> {
        self.read(|session, _| protection::of_server(session)).map(Some)
    }

    fn verify_with(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError> {
        match self.walk(anchor, see) {
            Err(StoreError::Tampered { seq, what }) => Ok(ChainDefect { seq, what }.into()),
            Err(
                err @ (StoreError::Database(_)
                | StoreError::Away(_)
                | StoreError::Damaged(_)
                | StoreError::Key(_)),
            ) => Ok(Verdict::CannotCheck(err.to_string().into())),
            verdict => verdict,
        }
    }
}

fn timeline(session: &mut Session, repo: i32, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError> {
    // The cursor is a caller's number; one that is too large for the column finds nothing.
    let cursor = |seq: Option<EventSeq>| seq.map(|it| int(it.0).unwrap_or(i64::MAX));
    let text = |it: &Option<Box<str>>| it.as_deref().map(|it| asked(it).into_owned());
    let order = match query.order {
        TimelineOrder::NewestFirst => "t.at desc, t.seq desc",
        TimelineOrder::OldestFirst => "t.seq",
    };
    let (mut conditions, mut step_values): (String, Vec<super::session::Value>) = (String::new(), Vec::new());
    let mut given = |condition: &str, value: super::session::Value| {
        step_values.push(value);
        conditions.push_str(&condition.replace('?', &format!("${}", step_values.len() + 2)));
    };
    if let Some(agent) = text(&query.agent) {
        given(" and t.agent = ?", Box::new(agent));
    }
    if let Some(word) = text(&query.word) {
        given(" and t.word = ?", Box::new(word));
    }
    if let Some(file) = text(&query.file) {
        given(" and t.file = ?", Box::new(file));
    }
    if let Some(since) = query.since {
        given(" and t.at >= ?", Box::new(since.0));
    }
    if let Some(after) = cursor(query.after) {
        given(" and t.seq > ?", Box::new(after));
    }
    if let Some(before) = cursor(query.before) {
        given(" and t.seq < ?", Box::new(before));
    }
    if !query.beats {
        given(" and t.word <> ?", Box::new(BEAT));
    }
    let sql = format!(
        "select e.seq, e.at, e.kind, e.actor, e.task, e.body, substr(e.hash, 1, 33), substr(e.mac, 1, 33) from provost.timeline t
         join provost.event e on e.repo = t.repo and e.seq = t.seq
         where t.repo = $1 and e.body is not null {conditions} order by {order} limit $2"
    );
    let (mut found, mut bytes) = (Vec::<StoredEvent>::new(), 0_usize);
    let most = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let step = Step::new(sql).with(repo).with(most).with_all(step_values);
    let rows = session.ask_within(&[step], Duration::from_millis(LONG_STATEMENT_MS_MAX))?;
    for row in rows.into_iter().flatten() {
        let event = event(&row)?;
        bytes = bytes.saturating_add(event.body.as_deref().map_or(0, str::len));
        if bytes > query.bytes_max && !found.is_empty() {
            break;
        }
        found.push(event);
    }
    Ok(found)
}
