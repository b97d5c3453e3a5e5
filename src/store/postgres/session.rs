//! One session with the database: its server, its settings, and flushes of several statements.
//!
//! The connection is driven on a runtime of the session's own, and only while a request waits. The statements of
//! one flush are sent together and answered in order, which costs one round trip. After a flush without all of its
//! answers, the connection is dropped: sent statements cannot be taken back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

mod flush;
mod handshake;
mod place;

use flush::{Ahead, Sent};
use handshake::{Haste, best, open};

pub(super) use flush::Answers;
pub(super) use place::Place;

use super::address::Server;
use super::remembered::Newest;
use super::trouble;
use crate::{ServerAt, StoreError};
use provost_base::limits::{
    COMMIT_MS_MAX, CONNECT_MS_MAX, HANDSHAKE_MS_MAX, LINK_ENDS_MS_MAX, STANDBY_READ_MS_MAX, STATEMENT_MS_MAX,
};

/// A future that a caller waits for.
type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A value of a statement.
pub(super) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement with its values.
pub(super) struct Step {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

impl Step {
    pub(super) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    /// Returns the statement with one more value.
    pub(super) fn with(mut self, value: impl ToSql + Sync + Send + 'static) -> Self {
        self.values.push(Box::new(value));
        self
    }

    /// Returns the statement with several more values.
    pub(super) fn with_all(mut self, values: Vec<Value>) -> Self {
        self.values.extend(values);
        self
    }
}

/// The purpose of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// It writes, in the order that the repository's row determines.
    Write,
    /// It reads history.
    Read,
    /// It makes tables and roles.
    Migrate,
    /// It moves a whole state in one transaction.
    Move,
    /// It listens for other daemons' commits, and tells them about this daemon's.
    Listen,
}

/// A function that gets each word of the server to this session, with its channel.
pub(super) type Heard = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The reason why a listening session stops waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waited {
    /// The awaited event has come.
    Came,
    /// The connection is gone.
    Cut,
}

/// Servers, and the connection to one of them.
pub(super) struct Session {
    runtime: Option<Runtime>,
    pub(super) servers: Vec<Server>,
    purpose: Purpose,
    heard: Option<Heard>,
    link: Option<Link>,
    /// A transaction of the link that nothing has used yet.
    ahead: Option<Ahead>,
    /// The longest time of a handshake if no server has answered sooner.
    patience: Duration,
}

/// A connection.
struct Link {
    client: Arc<Client>,
    statements: HashMap<String, Statement>,
    place: Place,
    since: Instant,
    /// The server's name, known once the server was chosen, and its version.
    name: Arc<str>,
    version: Arc<str>,
    /// Whether the server has warned since the last look.
    warned: Arc<AtomicBool>,
    /// The task that sends and receives.
    driver: JoinHandle<()>,
}

impl Session {
    /// Makes a session that connects at its first use.
    ///
    /// # Errors
    /// If the system provides no runtime.
    pub(super) fn new(servers: Vec<Server>, purpose: Purpose) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| StoreError::Io { path: "the connection to the database".into(), source })?;
        let patience = Duration::from_millis(HANDSHAKE_MS_MAX);
        Ok(Self { runtime: Some(runtime), servers, purpose, heard: None, link: None, ahead: None, patience })
    }

    /// Gives later handshakes no more than [`CONNECT_MS_MAX`]: callers of the engine wait for them.
    pub(super) fn hurry(&mut self) {
        self.patience = Duration::from_millis(CONNECT_MS_MAX);
    }

    /// Returns the session with this function, which gets each word from the server while the session waits or asks.
    pub(super) fn hearing(mut self, heard: Heard) -> Self {
        self.heard = Some(heard);
        self
    }

    /// Waits for a future of the caller, without a connection.
    pub(super) fn pause(&self, what: impl Future<Output = ()> + Send) {
        // Without a runtime there is nothing to wait for.
        let _ = run(&self.runtime, what);
    }

    /// Waits for a future of the caller, and listens meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Away`] if there is no connection.
    pub(super) fn wait_for(&mut self, what: impl Future<Output = ()> + Send) -> Result<Waited, StoreError> {
        let Some(link) = &mut self.link else { return Err(not_linked()) };
        let driver = &mut link.driver;
        let waited = run(&self.runtime, async {
            let mut what = std::pin::pin!(what);
            let mut driver = std::pin::pin!(driver);
            std::future::poll_fn(|cx| match (what.as_mut().poll(cx), driver.as_mut().poll(cx)) {
                (Poll::Ready(()), _) => Poll::Ready(Waited::Came),
                (_, Poll::Ready(_)) => Poll::Ready(Waited::Cut),
                _ => Poll::Pending,
            })
            .await
        })?;
        if waited == Waited::Cut {
            // The driver must not be polled again.
            self.link = None;
        }
        Ok(waited)
    }

    /// Ends the connection; the server rolls uncommitted work back. The server must learn of it now: the connection
    /// is driven only while a request waits, and would keep the repository's row.
    pub(super) fn drop_link(&mut self) {
        // It has the client, too, and the connection ends with the client.
        self.ahead = None;
        let Some(Link { client, mut driver, .. }) = self.link.take() else { return };
        drop(client);
        let ended = run(&self.runtime, async move {
            if timeout(Duration::from_millis(LINK_ENDS_MS_MAX), &mut driver).await.is_err() {
                driver.abort();
                let _aborted = driver.await;
            }
        });
        if let Err(err) = ended {
            tracing::debug!(%err, "a connection to the database was not ended in order");
        }
    }

    /// Returns the place of the connected server.
    ///
    /// # Errors
    /// [`StoreError::Away`] if there is no connection.
    pub(super) fn place(&self) -> Result<&Place, StoreError> {
        self.link.as_ref().map(|it| &it.place).ok_or_else(not_linked)
    }

    /// Returns the connected server.
    pub(super) fn server(&self) -> Option<ServerAt> {
        let link = self.link.as_ref()?;
        let (name, version) = (link.name.clone(), link.version.clone());
        Some(ServerAt { name, version, timeline: link.place.timeline })
    }

    /// Returns since when there is this connection.
    ///
    /// # Errors
    /// [`StoreError::Away`] if there is none.
    pub(super) fn linked_since(&self) -> Result<Instant, StoreError> {
        self.link.as_ref().map(|it| it.since).ok_or_else(not_linked)
    }

    /// Checks whether the connected server is a standby.
    pub(super) fn is_at_standby(&self) -> bool {
        self.link.as_ref().is_some_and(|it| it.place.timeline == 0)
    }

    /// Checks whether there is a connection, as far as is known.
    pub(super) fn is_linked(&self) -> bool {
        self.link.as_ref().is_some_and(|it| !it.client.is_closed())
    }

    /// Connects, if there is no connection, to the server with the highest timeline, which must not be below
    /// `least`.
    ///
    /// # Errors
    /// [`StoreError::Away`] if no server can be reached; otherwise the error of a server.
    pub(super) fn connect(&mut self, least: &Place) -> Result<&Place, StoreError> {
        if !self.is_linked() {
            self.drop_link();
            let (servers, purpose, heard) = (&self.servers, self.purpose, &self.heard);
            let haste = Haste { least, answered: AtomicBool::new(false), patience: self.patience };
            let tried = run(&self.runtime, async {
                let all = servers.iter().map(|it| Box::pin(open(it, purpose, heard, &haste)) as Work<'_, _>);
                Sent::of(all.collect()).answers().await
            })?;
            self.link = Some(best(tried, servers, least)?);
        }
        self.link.as_ref().map(|it| &it.place).ok_or(StoreError::NotRunning)
    }

    /// Connects as [`Session::connect`] does, and leaves a server whose history ends before the one that the state folder remembers by now: an old
    /// primary that came back takes connections, and lacks what was acknowledged since.
    ///
    /// # Errors
    /// As for [`Session::connect`].
    pub(super) fn follow(&mut self, newest: &Newest) -> Result<&Place, StoreError> {
        let least = newest.place();
        // A standby may be behind, and fall behind further, once the primary is there again. A server of another database was the only one that answered.
        let is_a_makeshift = |it: &Link| {
            (it.place.timeline == 0 || it.place.is_foreign(&least))
                && it.since.elapsed() >= Duration::from_millis(STANDBY_READ_MS_MAX)
        };
        if self.is_before(&least) || self.link.as_ref().is_some_and(is_a_makeshift) {
            self.drop_link();
        }
        self.connect(&least)
    }

    /// Checks whether the connected server has an earlier part of the history.
    pub(super) fn is_before(&self, least: &Place) -> bool {
        self.link.as_ref().is_some_and(|it| it.place.is_before(least))
    }

    /// Checks whether the connected server has another database than the one that was seen.
    pub(super) fn is_foreign(&self, seen: &Place) -> bool {
        self.link.as_ref().is_some_and(|it| it.place.is_foreign(seen))
    }

    /// Asks without leaving a transaction open; returns the rows of each statement, or the first error.
    ///
    /// # Errors
    /// The first error of a statement.
    pub(super) fn ask(&mut self, steps: &[Step]) -> Result<Vec<Vec<Row>>, StoreError> {
        // While the writing session waits, all writers and readers of the daemon wait.
        let limit =
            if self.purpose == Purpose::Write { COMMIT_MS_MAX } else { COMMIT_MS_MAX.max(STATEMENT_MS_MAX) };
        self.ask_within(steps, Duration::from_millis(limit))
    }

    /// Asks with a time limit of the caller's.
    ///
    /// # Errors
    /// As for [`Session::ask`].
    pub(super) fn ask_within(
        &mut self,
        steps: &[Step],
        limit: Duration,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        rows(self.flush(steps, limit)?)
    }

    /// Returns the rows of one statement.
    ///
    /// # Errors
    /// As for [`Session::ask`].
    pub(super) fn rows(&mut self, step: Step) -> Result<Vec<Row>, StoreError> {
        Ok(self.ask(&[step])?.pop().unwrap_or_default())
    }

    /// Runs statements as text, without values: those that make tables.
    ///
    /// # Errors
    /// The first error.
    pub(super) fn script(&mut self, sql: &str, limit: Duration) -> Result<(), StoreError> {
        let Some(link) = &self.link else { return Err(not_linked()) };
        match run(&self.runtime, async { timeout(limit, link.client.batch_execute(sql)).await })? {
            Ok(done) => done.map_err(trouble::store_error),
            Err(_) => {
                self.drop_link();
                Err(StoreError::silence(limit))
            }
        }
    }

    /// Checks whether the server has warned during the last flush.
    pub(super) fn was_warned(&self) -> bool {
        self.link.as_ref().is_some_and(|it| it.warned.load(Ordering::Acquire))
    }

    /// Prepares the statements that are not prepared yet, in one round trip, within the limit, and no longer than a commit may take.
    ///
    /// # Errors
    /// The server's error about one of them; nothing was done then.
    pub(super) fn prepare(&mut self, steps: &[Step], limit: Duration) -> Result<(), StoreError> {
        let Some(link) = &mut self.link else { return Err(not_linked()) };
        let mut new: Vec<&str> =
            steps.iter().map(|it| &*it.sql).filter(|it| !link.statements.contains_key(*it)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let client = &link.client;
        let work = async {
            let all = new.iter().map(|sql| Box::pin(client.prepare(sql)) as Work<'_, _>);
            timeout(limit.min(Duration::from_millis(COMMIT_MS_MAX)), Sent::of(all.collect()).answers()).await
        };
        let Ok(made) = run(&self.runtime, work)? else {
            self.drop_link();
            return Err(StoreError::Away("it has not answered in time".into()));
        };
        for (sql, made) in new.into_iter().zip(made) {
            match made {
                Ok(statement) => drop(link.statements.insert(sql.to_owned(), statement)),
                Err(err) => {
                    self.drop_link();
                    return Err(trouble::store_error(err));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.drop_link();
        // Dropping a runtime inside of another runtime would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn not_linked() -> StoreError {
    StoreError::Away("the connection was lost".into())
}

/// Refuses a pooler that gives a session's connection to others between transactions: settings and prepared statements would
/// be lost, or be other sessions'. Behind such a pooler, two sessions at the same time have one process of the server.
///
/// # Errors
/// [`StoreError::Setting`] if there is such a pooler, or the server's error.
pub(super) fn must_be_its_own(session: &mut Session) -> Result<(), StoreError> {
    let process = |it: &mut Session| -> Result<i32, StoreError> {
        let rows = it.rows(Step::new("select pg_backend_pid()"))?;
        rows.first()
            .map(|it| it.try_get(0))
            .transpose()
            .map(Option::unwrap_or_default)
            .map_err(trouble::store_error)
    };
    let mut other = Session::new(session.servers.clone(), Purpose::Read)?;
    other.connect(&Place::default())?;
    let is_same_server = session.server().map(|it| it.name) == other.server().map(|it| it.name);
    let (ours, its, again) = (process(session)?, process(&mut other)?, process(session)?);
    if ours == again && (ours != its || !is_same_server) {
        return Ok(());
    }
    Err(StoreError::Setting(trouble::POOLED.into()))
}

/// Returns the rows of each statement, or the first error that is not the consequence of an earlier one.
///
/// # Errors
/// That error.
pub(super) fn rows(answers: Answers) -> Result<Vec<Vec<Row>>, StoreError> {
    let (mut found, mut first) = (Vec::with_capacity(answers.len()), None);
    for answer in answers {
        match answer {
            Ok(rows) => found.push(rows),
            Err(err) if first.as_ref().is_none_or(trouble::came_behind) => first = Some(err),
            Err(_) => {}
        }
    }
    first.map_or(Ok(found), |err| Err(trouble::store_error(err)))
}

/// Waits for some work of a session. Within another runtime, a separate thread does it.
fn run<T: Send>(runtime: &Option<Runtime>, work: impl Future<Output = T> + Send) -> Result<T, StoreError> {
    let runtime = runtime.as_ref().ok_or(StoreError::NotRunning)?;
    if Handle::try_current().is_err() {
        return Ok(runtime.block_on(work));
    }
    let no_thread = |source| StoreError::Io { path: "a thread for the database".into(), source };
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().spawn_scoped(scope, || runtime.block_on(work)).map_err(no_thread)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
