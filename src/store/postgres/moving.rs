//! Moving a whole state between the state folder and the database.
//!
//! ```text
//!   into the database:  [folder] --one transaction, checked--> [both] --the folder remembers the database-->
//!                       [in the database, the file still there] --the file gets another name--> [in the database]
//!   out of it:          [in the database] --a new file, checked--> --the database notes it--> [both]
//!                       --the file gets its name--> [in the folder, which remembers the database] --it forgets it--> [in the folder]
//! ```
//! In the state `[both]` the source stays in use as before, and a repeated move replaces the copy. In the last
//! state but one the destination is in use: its start does the last step.

use std::path::Path;
use std::time::Duration;

use tokio_postgres::Row;

use super::gaps::{self, gaps};
use super::hosts::MACHINE_SIGNS_MAX;
use super::load;
use super::remembered::Remembered;
use super::repo_row::{self, REPO_ROW, RepoRow};
use super::session::{Place, Purpose, Session, Step, must_be_its_own};
use super::{PostgresStore, Written, address, schema, unreadable};
use crate::codec::{int, nat, text};
use crate::database::{Ending, Moved, Site, ending};
use crate::files::{self, Lease};
use crate::journal::{Key, Walk};
use crate::moving::{BYTES_AT_ONCE, Cell, FACTS, Kind, NOT_MOVED, ROWS_AT_ONCE, Table, tables};
use crate::sqlite::{Arriving, Leaving};
use crate::{DATABASE, Database, ENTRY_FORMAT, IN_DATABASE, Options, Store as _, StoreError, Verdict};
use provost_base::limits::LONG_STATEMENT_MS_MAX;
use provost_base::{Digest, HostId, Timestamp, visible_name};
use provost_domain::{Settings, provost};

/// The name of the fact that a repository's state has left the database; its value is the host whose folder has the state.
const MOVED_TO: &str = "moved_to";

/// The longest time that one step of a move may take.
const LONG: Duration = Duration::from_millis(LONG_STATEMENT_MS_MAX);

/// Does the last step in the folder of a move into the database, or takes back an unfinished move out of it, so
/// that the database stays in use.
///
/// # Errors
/// If the folder cannot be changed.
pub(super) fn ended(dir: &Path, mut remembered: Remembered) -> Result<Remembered, StoreError> {
    match ending(dir)? {
        Some(Ending::Into(name)) if files::has_database(dir) => {
            files::rename_aside(dir, &name)?;
        }
        Some(Ending::Out) if !files::has_database(dir) => {
            remembered.goes_here = false;
            remembered.write()?;
        }
        _ => {}
    }
    Ok(remembered)
}

impl PostgresStore {
    /// Refuses a repository whose state has left for the folder of another host. If it was meant for this host's
    /// folder, the move was not completed, since the folder has no state: the database stays in use.
    ///
    /// # Errors
    /// [`StoreError::Database`] with the host.
    pub(super) fn must_not_be_moved(&mut self) -> Result<(), StoreError> {
        let Some(host) = load::meta(&mut self.session, self.repo, MOVED_TO)? else { return Ok(()) };
        if host == self.host().to_string() {
            let sql = "delete from provost.meta where repo = $1 and id = $2";
            return self.session.rows(Step::new(sql).with(self.repo).with(MOVED_TO)).map(drop);
        }
        Err(StoreError::Database(
            format!(
                "the state of the repository {:?} was moved out of it, into the state folder of the host {}: `provost store move` \
                 there moves it back",
                self.database.name,
                host.chars().take(8).collect::<String>()
            )
            .into(),
        ))
    }
}

/// Returns a session for a long transaction over the whole state, with the server that has the highest timeline.
///
/// # Errors
/// If there is none, or it has tables that this release does not know.
pub(super) fn session(database: &Database, least: &Place) -> Result<(Session, Place), StoreError> {
    let mut session = Session::new(address::servers(database, "provost/move")?, Purpose::Move)?;
    let place = session.connect(least)?.clone();
    must_be_its_own(&mut session)?;
    schema::check(&mut session)?;
    let known = tables();
    let sql =
        "select relname::text from pg_class where relkind = 'r' and relnamespace = 'provost'::regnamespace";
    for row in session.rows(Step::new(sql))? {
        let name: String = row.try_get(0).map_err(unreadable)?;
        if !NOT_MOVED.contains(&&*name) && !known.iter().any(|it| it.name == name) {
            return Err(StoreError::Database(
                format!("this release does not know how to move the table `{name}`").into(),
            ));
        }
    }
    Ok((session, place))
}

fn refused(dir: &Path, file: &str, why: &str) -> StoreError {
    StoreError::Unsafe { path: dir.join(file).display().to_string().into(), why: why.into() }
}

/// Returns the repository's number and the print of its key.
fn found(session: &mut Session, name: &str) -> Result<Option<(i32, String)>, StoreError> {
    let sql = "select id, key_print from provost.repo where name = $1 for update";
    let rows = session.rows(Step::new(sql).with(name.to_owned()))?;
    let row = |it: &Row| Ok((it.try_get(0).map_err(unreadable)?, it.try_get(1).map_err(unreadable)?));
    rows.first().map(row).transpose()
}

/// Moves the state of a folder into the database.
///
/// # Errors
/// As for [`crate::move_into_database`].
pub(crate) fn move_into(what: Site<'_>, tell: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
    let dir = files::existing_dir(what.dir)?;
    match (files::has_database(&dir), dir.join(IN_DATABASE).exists(), ending(&dir)?) {
        (true, _, Some(Ending::Into(name))) => return end_move(&dir, what.database, name),
        (true, false, _) | (true, true, Some(Ending::Out)) => {}
        (true, true, None) => {
            return Err(refused(
                &dir,
                IN_DATABASE,
                "is there beside provost.db: one of them is left over; move it away",
            ));
        }
        (false, true, _) => {
            return Err(refused(&dir, IN_DATABASE, "says that the state is in the database already"));
        }
        (false, false, _) => {
            return Err(refused(
                &dir,
                DATABASE,
                "is not there, so there is nothing to move: write `[store] url`, and start the daemon",
            ));
        }
    }
    let (mut session, place) = session(what.database, &Place::default())?;
    let leaving = Leaving::open(&dir, what.outside)?;
    files::forget(&dir.join(IN_DATABASE))?;
    session.ask_within(&[Step::new("begin")], LONG)?;
    let earlier = make_room(&mut session, what.database, leaving.key(), what.now)?;
    let mut remembered = Remembered::of(&dir, &what.database.name)?;
    let repo = begin(&mut session, what.database, &leaving, &place)?;
    let owes = owes(&mut session, remembered.host)?;
    let rows = put_all(&mut session, (repo, owes), &leaving, tell)?;
    must_be_whole(&mut session, repo, &leaving)?;
    commit(&mut session)?;
    let aside = format!("{DATABASE}.moved-{}", what.now.0);
    (remembered.place, remembered.here_until) = (place, Some(aside.clone()));
    remembered.write()?;
    let head = leaving.head();
    leaving.set_aside(&aside)?;
    Ok(Moved { head, rows, aside: Some(aside), earlier })
}

/// Does the last step of a move that was interrupted before it.
fn end_move(dir: &Path, database: &Database, name: String) -> Result<Moved, StoreError> {
    let lease = Lease::take(dir)?;
    let remembered = Remembered::of(dir, &database.name)?;
    let (mut session, _) = session(database, &remembered.place)?;
    let (repo, _) = found(&mut session, &database.name)?
        .ok_or_else(|| StoreError::Database("the repository that was moved into it is gone".into()))?;
    let rows = session.rows(Step::new(REPO_ROW).with(repo))?;
    let row =
        RepoRow::read(rows.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)?;
    files::rename_aside(dir, &name)?;
    drop(lease);
    Ok(Moved { head: row.state.head, rows: 0, aside: Some(name), earlier: None })
}

/// Renames an older copy of this repository so that no daemon uses it: one that an interrupted move has left, or
/// one whose state was moved out again.
fn make_room(
    session: &mut Session,
    database: &Database,
    key: &Key,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let Some((repo, print)) = found(session, &database.name)? else { return Ok(None) };
    let told = |why: &str| {
        let name = &database.name;
        StoreError::Database(
            format!("it has a repository {name:?} already, {why}: take another name, with --name").into(),
        )
    };
    if print != key.fingerprint().to_string() {
        return Err(told("which is another one, with another journal"));
    }
    let hosts = session.rows(Step::new("select 1 from provost.host where repo = $1 limit 1").with(repo))?;
    if !hosts.is_empty() && load::meta(session, repo, MOVED_TO)?.is_none() {
        return Err(told("with which a daemon has gone on, so that this state and that one are two"));
    }
    let name = format!("{} (until {})", database.name, now.rfc3339());
    session
        .rows(Step::new("update provost.repo set name = $2 where id = $1").with(repo).with(name.clone()))?;
    Ok(Some(name))
}

/// Makes the repository's row. The log begins with the next entry.
fn begin(
    session: &mut Session,
    database: &Database,
    from: &Leaving,
    place: &Place,
) -> Result<i32, StoreError> {
    let sql = "insert into provost.repo (name, format, n, mac, event, event_mac, pruned_to, log_from, system, timeline, key_print,
                   counters, finished, searched_to, at)
               values ($1, $2, 0, $3, $4, $5, $6, 1, $7, $8, $9, $10::text::jsonb, $11, 0, $12) returning id";
    let head = from.head();
    let step = Step::new(sql)
        .with(database.name.clone())
        .with(i32::try_from(ENTRY_FORMAT).map_err(StoreError::damaged)?)
        .with(Digest::default().as_bytes().to_vec())
        .with(int(head.seq.0)?)
        .with(head.mac.as_bytes().to_vec())
        .with(int(from.pruned_to().0)?)
        .with(place.system.clone())
        .with(int(place.timeline)?)
        .with(from.key().fingerprint().to_string())
        .with(text(&from.counters())?)
        .with(from.finished())
        .with(from.until.0);
    let rows = session.rows(step)?;
    let row = rows.first().ok_or_else(|| StoreError::damaged("the repository's row is not there"))?;
    let repo = row.try_get(0).map_err(unreadable)?;
    let state = Written {
        head,
        counters: from.counters(),
        pruned_to: from.pruned_to(),
        finished: from.finished(),
        ..Written::default()
    };
    let ends = (0, int(head.seq.0)?);
    session.rows(repo_row::moves((repo, from.key()), ends, &state, (from.until, place))?)?;
    Ok(repo)
}

/// Returns the daemon that rows of effects name, if the tables have columns for it: this host's.
fn owes(session: &mut Session, host: HostId) -> Result<Owes, StoreError> {
    let sql = "select 1 from pg_attribute where attrelid = 'provost.effect'::regclass and attname = 'host' and not attisdropped";
    let is_there = !session.rows(Step::new(sql))?.is_empty();
    Ok(is_there.then(|| format!("'{host}', 0")))
}

/// The values of the columns `host` and `inc`; `None` if the table has no such columns.
type Owes = Option<String>;

fn put_all(
    session: &mut Session,
    (repo, owes): (i32, Owes),
    from: &Leaving,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<u64, StoreError> {
    let (all, mut done) = (from.count()?, 0);
    for table in tables() {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        from.each(&table, &mut |row| {
            bytes += row.iter().map(Cell::len).sum::<usize>();
            rows.push(row);
            if rows.len() >= ROWS_AT_ONCE || bytes >= BYTES_AT_ONCE {
                done += rows.len() as u64;
                bytes = 0;
                put(session, (repo, &owes), &table, std::mem::take(&mut rows))?;
                tell(done, all);
            }
            Ok(())
        })?;
        done += rows.len() as u64;
        put(session, (repo, &owes), &table, rows)?;
        tell(done, all);
    }
    let fact = "insert into provost.meta (repo, id, body) values ($1, $2, $3)";
    for (name, value) in from.facts()? {
        session.rows(Step::new(fact).with(repo).with(name).with(value))?;
    }
    for gap in from.gaps()? {
        session.ask_within(&[gaps::step(repo, &gap)?], LONG)?;
    }
    Ok(done)
}

/// Writes rows into a table, a column at a time.
fn put(
    session: &mut Session,
    (repo, owes): (i32, &Owes),
    table: &Table,
    rows: Vec<Vec<Cell>>,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let (mut names, mut places) = (String::new(), String::new());
    for (n, (name, kind)) in table.columns.iter().enumerate() {
        let of = match kind {
            Kind::Int => "bigint",
            Kind::Text => "text",
            Kind::Blob => "bytea",
            Kind::Flag => "boolean",
        };
        names.push_str(&format!(", {name}"));
        places.push_str(&format!("{}${}::{of}[]", if n > 0 { ", " } else { "" }, n + 2));
    }
    let (more, values) = match owes {
        Some(values) if table.name == "effect" => (", host, inc", format!(", {values}")),
        _ => ("", String::new()),
    };
    let name = table.name;
    let sql =
        format!("insert into provost.{name} (repo{names}{more}) select $1, *{values} from unnest({places})");
    let mut columns: Vec<std::vec::IntoIter<Cell>> = Vec::new();
    let mut turned: Vec<Vec<Cell>> = table.columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        row.into_iter().zip(&mut turned).for_each(|(cell, column)| column.push(cell));
    }
    columns.extend(turned.into_iter().map(Vec::into_iter));
    let mut step = Step::new(sql).with(repo);
    for (cells, (_, kind)) in columns.into_iter().zip(&table.columns) {
        step = match kind {
            Kind::Int => step.with(cells.map(number).collect::<Vec<_>>()),
            Kind::Text => step.with(cells.map(words).collect::<Vec<_>>()),
            Kind::Blob => step.with(cells.map(bytes).collect::<Vec<_>>()),
            Kind::Flag => step.with(cells.map(flag).collect::<Vec<_>>()),
        };
    }
    session.ask_within(&[step], LONG).map(drop)
}

fn number(it: Cell) -> Option<i64> {
    if let Cell::Int(it) = it { Some(it) } else { None }
}

/// Returns text in the form that PostgreSQL accepts, as in [`super::batch::word`].
fn words(it: Cell) -> Option<String> {
    if let Cell::Text(it) = it { Some(super::batch::word(&it)) } else { None }
}

fn bytes(it: Cell) -> Option<Vec<u8>> {
    if let Cell::Blob(it) = it { Some(it) } else { None }
}

fn flag(it: Cell) -> Option<bool> {
    if let Cell::Flag(it) = it { Some(it) } else { None }
}

/// Reads the written rows back before the commit, and checks that every row is there and the chain holds up to the same head.
fn must_be_whole(session: &mut Session, repo: i32, from: &Leaving) -> Result<(), StoreError> {
    if count(session, repo)? != from.count()? {
        return Err(StoreError::damaged("rows are missing in the database that the folder has"));
    }
    let mut walk = Walk::whole(from.key(), load::checkpoints(session, repo)?, gaps(session, repo)?, None);
    load::walk_after(session, repo, &mut walk)?;
    match walk.finish(from.counters().event) {
        Verdict::Ok { head, .. } if head == from.head() => Ok(()),
        other => {
            Err(StoreError::damaged(format!("the journal in the database is not the folder's: {other:?}")))
        }
    }
}

/// Returns how many rows the repository has in tables that are moved.
fn count(session: &mut Session, repo: i32) -> Result<u64, StoreError> {
    let one =
        |it: Table| Step::new(format!("select count(*) from provost.{} where repo = $1", it.name)).with(repo);
    let steps: Vec<Step> = tables().into_iter().map(one).collect();
    let mut all = 0;
    for rows in session.ask_within(&steps, LONG)? {
        all += nat(rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?.unwrap_or(0))?;
    }
    Ok(all)
}

/// Commits; a warning of the server may mean that no standby has the data.
fn commit(session: &mut Session) -> Result<(), StoreError> {
    let not_known = |why: String| {
        StoreError::Away(
            format!(
                "{why}; it is not known whether the move is stored, and the same command again continues in both cases"
            )
            .into(),
        )
    };
    match session.ask_within(&[Step::new("commit")], LONG) {
        Err(err) => Err(not_known(err.short())),
        Ok(_) if session.was_warned() => Err(not_known("it has warned while it committed".into())),
        Ok(_) => Ok(()),
    }
}

/// Moves the state of the folder's repository out of the database.
///
/// # Errors
/// As for [`crate::move_into_folder`].
pub(crate) fn move_out(what: Site<'_>, tell: &mut dyn FnMut(u64, u64)) -> Result<Moved, StoreError> {
    let dir = files::existing_dir(what.dir)?;
    match (files::has_database(&dir), dir.join(IN_DATABASE).exists(), ending(&dir)?) {
        (true, _, Some(Ending::Out)) => return end_moving_out(&dir),
        (true, true, Some(Ending::Into(_))) | (false, true, _) => {}
        (true, _, _) => {
            let why = "has the state already: take `[store] url` out of provost.toml, then type `provost up`";
            return Err(refused(&dir, DATABASE, why));
        }
        (false, false, _) => {
            return Err(refused(
                &dir,
                IN_DATABASE,
                "is not there: this folder has never had a daemon with its state in a database",
            ));
        }
    }
    let options = Options { outside: what.outside.map(Path::to_owned), ..Options::default() };
    let mut store = PostgresStore::open(&dir, what.database.clone(), options)?;
    store.load(Settings::new(provost()))?;
    store.close()?;
    let (mut session, _) = session(what.database, &store.remembered.place)?;
    let rows = fetch_all(&mut session, &store, &dir, tell)?;
    let fact = "insert into provost.meta (repo, id, body) values ($1, $2, $3)";
    session.rows(Step::new(fact).with(store.repo).with(MOVED_TO).with(store.host().to_string()))?;
    commit(&mut session)?;
    store.remembered.goes_here = true;
    store.remembered.write()?;
    files::rename_into_place(&dir)?;
    files::forget(&dir.join(IN_DATABASE))?;
    Ok(Moved { head: store.written.head, rows, aside: None, earlier: None })
}

/// Does the last step of a move that was interrupted before it.
fn end_moving_out(dir: &Path) -> Result<Moved, StoreError> {
    let head = Leaving::open(dir, None)?.head();
    files::forget(&dir.join(IN_DATABASE))?;
    Ok(Moved { head, rows: 0, aside: None, earlier: None })
}

/// Writes the whole state into a new file beside the folder's store, in a transaction that has the repository's row.
fn fetch_all(
    session: &mut Session,
    store: &PostgresStore,
    dir: &Path,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<u64, StoreError> {
    let repo = store.repo;
    let begin = [
        Step::new("begin"),
        Step::new("select 1 from provost.repo where id = $1 for update").with(repo),
        Step::new(REPO_ROW).with(repo),
        Step::new("select name from provost.host where repo = $1 and id <> $2 and state <> 'removed'")
            .with(repo)
            .with(store.host().to_string()),
    ];
    let mut answers = session.ask_within(&begin, LONG)?;
    let (others, row) = (answers.pop().unwrap_or_default(), answers.pop().unwrap_or_default());
    let row = RepoRow::read(row.first().ok_or_else(|| StoreError::damaged("the repository's row is gone"))?)?;
    if let Some(other) = others.first() {
        let name: String = other.try_get(0).map_err(unreadable)?;
        return Err(StoreError::Database(
            format!(
                "the host {} works on this repository, too, and has to be removed first",
                visible_name(&name, MACHINE_SIGNS_MAX)
            )
            .into(),
        ));
    }
    let is_ours = (row.state.head, row.state.entry) == (store.written.head, store.written.entry);
    if !is_ours || !row.is_sealed(&store.key) {
        return Err(StoreError::Database("another daemon has gone on there meanwhile: try again".into()));
    }
    let arriving = Arriving::begin(dir, &store._lease)?;
    let (all, mut done) = (count(session, repo)?, 0);
    for table in tables() {
        done += fetch(session, repo, &table, &arriving, &mut |more| tell(done + more, all))?;
        tell(done, all);
    }
    let mut facts = Vec::new();
    for name in FACTS {
        facts.extend(load::meta(session, repo, name)?.map(|it| (name, it)));
    }
    let passed_over = gaps(session, repo)?;
    arriving.end(&store.key, (row.state.head, &row.state.counters), &facts, &passed_over)?;
    Ok(done)
}

/// Reads a table page by page.
fn fetch(
    session: &mut Session,
    repo: i32,
    table: &Table,
    into: &Arriving,
    tell: &mut dyn FnMut(u64),
) -> Result<u64, StoreError> {
    let (name, columns) = (table.name, table.columns.iter().map(|it| it.0).collect::<Vec<_>>().join(", "));
    let declare = format!(
        "declare move_{name} no scroll cursor for select {columns} from provost.{name} where repo = {repo}"
    );
    session.ask_within(&[Step::new(declare)], LONG)?;
    let mut done = 0;
    loop {
        let next = Step::new(format!("fetch {ROWS_AT_ONCE} from move_{name}"));
        let page = session.ask_within(&[next], LONG)?.pop().unwrap_or_default();
        let is_last = page.len() < ROWS_AT_ONCE;
        done += page.len() as u64;
        into.put(table, page.iter().map(|it| cells(it, table)).collect::<Result<_, _>>()?)?;
        tell(done);
        if is_last {
            return Ok(done);
        }
    }
}

fn cells(row: &Row, table: &Table) -> Result<Vec<Cell>, StoreError> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| -> Result<Cell, tokio_postgres::Error> {
        Ok(match kind {
            Kind::Int => row.try_get::<_, Option<i64>>(at)?.map_or(Cell::Null, Cell::Int),
            Kind::Text => row.try_get::<_, Option<String>>(at)?.map_or(Cell::Null, Cell::Text),
            Kind::Blob => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Cell::Null, Cell::Blob),
            Kind::Flag => row.try_get::<_, Option<bool>>(at)?.map_or(Cell::Null, Cell::Flag),
        })
    };
    table.columns.iter().enumerate().map(cell).collect::<Result<_, _>>().map_err(unreadable)
}
