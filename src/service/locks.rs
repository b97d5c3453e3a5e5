//! Locks on symbols and resources: reads the code before a request, and waits for a lock.

use std::sync::Arc;

use tokio::time::Instant;

use super::Provost;
use super::code::{Base, Content, Source};
use super::commits::Commits;
use super::graph::cut;
use super::guard::tree_of;
use provost_base::limits::{CALLERS_MAX, LOCK_TTL_S};
use provost_base::{AgentId, Fence, RepoPath, SymbolPath, Ticket, Timestamp, Ttl, symbol_as_path};
use provost_domain::command::{
    AcquireLock, Apart, HasLeft, Leave, LeaveQueue, LockReleased, Locked, ReleaseLock, SymbolFacts,
    SymbolPresence, Warning,
};
use provost_domain::view::{LiveLocks, LockWaiters, Named};
use provost_domain::{Event, EventKind, Lock, Principal, ProcessMark, Refusal, UntilCommit, Waiter};
use provost_graph::FoundBy;
use provost_syntax::{Reading, Unread, language_of};

/// The most symbols of one name that a lock by that name holds; with more, the lock holds the name alone, and says so.
const NAMESAKES_MAX: usize = 32;

/// The warning about a lock on a part of a file in a language that Provost does not read.
const UNREAD_LANGUAGE: &str = "Provost does not read its language, so each edit takes the whole file, and this lock keeps others out \
                               of all of it; `provost graph languages` lists the languages";

/// The warning about a lock on a symbol that is not found in a file, and whose name stands where the file could not be read.
const IN_PART: &str = "its name stands in a part that does not parse; the lock is on the name, and holds the symbol when the part \
                       parses again";

/// The same for a file that was read in part.
const NOT_TO_THE_END: &str =
    "not all of its file was read, and the symbol may be in the rest; the lock is on its name";

/// A request for a lock.
#[derive(Clone, Debug)]
pub struct LockOrder {
    /// The checkout in which the caller works; `None` means the daemon's own.
    pub base: Option<Base>,
    /// The symbol to lock, or a whole file.
    pub at: SymbolPath,
    /// The symbol as the caller wrote it.
    pub asked: Box<str>,
    /// The time of the lock; `None` means the usual time, but no less than a lock of the caller's own has left.
    pub ttl: Option<Ttl>,
    /// Whether a lock that the caller already has keeps its time if that is longer.
    pub at_least: bool,
    /// How long to wait if another agent has the lock.
    pub wait: Option<Ttl>,
    /// The purpose, for people and other agents; `None` keeps the one of a lock that is refreshed.
    pub reason: Option<Box<str>>,
    /// The process with which the lock ends; `None` keeps the process of a lock that the caller already has.
    pub process: Option<ProcessMark>,
    /// Whether the door ties the lock to a session instead.
    pub in_session: bool,
    /// The grants of the caller's own agent that block it, too.
    pub apart: Apart,
}

/// A lock that was granted or refreshed.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The lock as it is after the grant.
    pub lock: Arc<Lock>,
    /// Warnings for the holder.
    pub warnings: Vec<Warning>,
    /// The number of warnings that are not listed.
    pub more: usize,
}

impl Provost {
    /// Takes or refreshes a lock, and waits for it as long as the order says. A caller that stops waiting loses its
    /// place in the queue.
    ///
    /// # Errors
    /// [`Refusal::LockConflict`] and [`Refusal::WouldDeadlock`]; then nothing has changed.
    pub async fn lock(&self, who: &Principal, order: LockOrder) -> Result<Granted, Refusal> {
        let base = order.base.as_ref().unwrap_or(self.base());
        let (at, seen) = if order.at.is_resource() {
            (order.at, SymbolFacts::default())
        } else {
            let source = self.code().read(base, order.at.file()).await;
            let at = order.at.in_file(source.path.clone());
            let seen = self.facts_about(base, &source, &at).await;
            (at, seen)
        };
        let mut verb = AcquireLock {
            seen,
            at,
            asked: order.asked,
            ttl: order.ttl.unwrap_or(Ttl::seconds_clamped(LOCK_TTL_S)),
            keeps_longer: order.at_least || order.ttl.is_none(),
            wait: order.wait,
            ticket: None,
            reason: order.reason,
            process: order.process,
            in_session: order.in_session,
            apart: order.apart,
            until_commit: None,
        };
        let (agent, file) = (who.agent(), verb.at.file().clone());
        let is_advised = !verb.at.is_resource() && self.advised().is_about(agent, &file);
        let (began, mut waited) = (Instant::now(), false);
        let mut news = self.engine().subscribe();
        let mut place = PlaceInQueue { provost: self, who, ticket: None };
        loop {
            if is_advised {
                // This is read at each try: a commit that the holder has made meanwhile is not the caller's work.
                let commit = Commits::around(base, vec![file.clone()]).await.innermost();
                verb.until_commit = Some(UntilCommit { tree: tree_of(base), commit });
            }
            let answer = self.engine().submit(who, verb.clone()).await;
            let (ticket, until) = match answer? {
                Locked::Held { lock, mut warnings, more, .. } => {
                    place.ticket = None;
                    self.advised().is_followed(agent, &file);
                    if waited {
                        self.engine().measures().lock_waits.note(began.elapsed());
                    }
                    warnings.extend(in_use(&lock).await);
                    return Ok(Granted { lock, warnings, more });
                }
                Locked::Queued { ticket, until, .. } => (ticket, until),
            };
            waited = true;
            // From here on the ticket waits. If its time is over, the last answer is the conflict itself.
            (place.ticket, verb.ticket) = (Some(ticket), Some(ticket));
            let remaining = Ttl::from_millis(until.since_ms(self.now().await?)).map(Ttl::as_duration);
            let until = Instant::now() + remaining.unwrap_or_default();
            // The loop submits the ticket again in every case; an engine that has stopped refuses it.
            news.change(until, |event| frees(event, verb.at.file())).await;
        }
    }

    /// Returns the engine's time, by which a wait ends.
    async fn now(&self) -> Result<Timestamp, Refusal> {
        struct Now;
        impl provost_domain::view::View for Now {
            type Out = Timestamp;
            fn look(self, now: Timestamp, _: &provost_domain::State) -> Timestamp {
                now
            }
        }
        self.view(Now).await
    }

    /// Releases a lock.
    ///
    /// # Errors
    /// [`Refusal::LockNotFound`] and [`Refusal::LockNotHeld`]; then nothing has changed.
    pub async fn unlock(
        &self,
        who: &Principal,
        base: Option<&Base>,
        at: &SymbolPath,
        fence: Option<Fence>,
        force: bool,
    ) -> Result<LockReleased, Refusal> {
        let at = match at.is_resource() {
            true => at.clone(),
            false => at.in_file(self.code().spelling(base.unwrap_or(self.base()), at.file()).await),
        };
        self.submit(who, ReleaseLock { at, fence, force }).await
    }

    /// Ends a session: its locks are released and, with `intents`, its intents abandoned.
    ///
    /// # Errors
    /// A [`Refusal`]; then nothing has changed.
    pub async fn leave(
        &self,
        who: &Principal,
        intents: bool,
        process: Option<ProcessMark>,
    ) -> Result<HasLeft, Refusal> {
        self.submit(who, Leave { intents, process }).await
    }

    /// Returns the live locks in the order of their first grants, with the time of the query.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn locks(
        &self,
        holder: Option<AgentId>,
        files: Vec<RepoPath>,
    ) -> Result<(Vec<Named<Arc<Lock>>>, Timestamp), Refusal> {
        self.view(LiveLocks { holder, files }).await
    }

    /// Returns the agents that wait for a lock, longest wait first.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn lock_waiters(&self) -> Result<Vec<Arc<Waiter>>, Refusal> {
        self.view(LockWaiters).await
    }

    /// Collects the facts that the code gives about a symbol.
    async fn facts_about(&self, base: &Base, source: &Source, at: &SymbolPath) -> SymbolFacts {
        let reading = match &source.content {
            Content::Code(reading) => reading,
            // No file defines `?:name`, but the index can have its callers.
            Content::None => {
                let is_unread = !at.symbol().is_empty() && language_of(at.file().as_str()).is_none();
                let known = match is_missing(base, at.file()).await {
                    true => SymbolPresence::NoFile,
                    // `?:name` has no file that a lock could hold.
                    false if is_unread && at.file().as_str() != "?" => {
                        SymbolPresence::Unreadable(UNREAD_LANGUAGE.into())
                    }
                    false => SymbolPresence::Unasked,
                };
                return SymbolFacts { callers: self.callers_of_unknown(at), known, ..SymbolFacts::default() };
            }
            Content::Unreadable(why) => {
                return SymbolFacts {
                    known: SymbolPresence::Unreadable(why.clone()),
                    ..SymbolFacts::default()
                };
            }
        };
        let (mut known, names) = known_as(reading, at.symbol());
        if let Some(why) = unread_why(reading, at.symbol()).filter(|_| known == SymbolPresence::Missing) {
            known = SymbolPresence::Unreadable(why.into());
        }
        let is_several = matches!(known, SymbolPresence::Ambiguous(_));
        let path =
            names.iter().find(|name| name.contains('.') && !is_several).map_or(at.symbol(), |name| name);
        let full = SymbolPath::of(at.file().clone(), path);
        let mut callers = match &full {
            Ok(full) => self.callers_of(base, source, full).await,
            Err(_) => Vec::new(),
        };
        let called = self.calls_from(base, source, &[path.into()]).await;
        let mut callees: Vec<_> = called.into_iter().map(|(_, callee, by)| (callee, by)).collect();
        // Locks in the file itself are reported as locks in the whole file, not as locks of callees.
        let is_whole = at.symbol().is_empty();
        callees
            .retain(|(callee, _)| full.as_ref() != Ok(callee) && !(is_whole && callee.file() == at.file()));
        let symbols: &[Box<str>] = if is_whole { &[] } else { &[path.into()] };
        let mut gaps = self.graph_gaps(std::slice::from_ref(source), symbols).await;
        if callers.len().max(callees.len()) > CALLERS_MAX {
            gaps.push(cut());
        }
        callers.truncate(CALLERS_MAX);
        callees.truncate(CALLERS_MAX);
        let is_guess = |it: &&(SymbolPath, FoundBy)| it.1 == FoundBy::Guess;
        let [guessed_callers, guessed_callees] =
            [&callers, &callees].map(|all| all.iter().filter(is_guess).map(|it| it.0.clone()).collect());
        let [callers, callees] = [callers, callees].map(|it| it.into_iter().map(|it| it.0).collect());
        SymbolFacts { known, names, callers, callees, guessed_callers, guessed_callees, gaps }
    }
}

/// Warns if a program listens at a locked port. The agent has the lock all the same: the program may be its own.
async fn in_use(lock: &Lock) -> Option<Warning> {
    let port = lock.at.resource()?.as_port()?;
    let tried = tokio::task::spawn_blocking(move || provost_system::port_is_free(port)).await.ok()?;
    let is_used = tried.is_err_and(|err| err.kind() == std::io::ErrorKind::AddrInUse);
    is_used.then_some(Warning::PortInUse(port))
}

/// Checks whether a file is missing; for `?:name`, which names no file, it is not.
async fn is_missing(base: &Base, file: &RepoPath) -> bool {
    let at = base.root().place().path().join(file.as_str());
    let found = tokio::fs::symlink_metadata(&at).await;
    file.as_str() != "?" && found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Returns whether a file defines a name, and the other names of the same symbol; for a name that several symbols
/// have, their whole paths, so that a lock by the name holds each of them.
pub(super) fn known_as(reading: &Reading, name: &str) -> (SymbolPresence, Vec<Box<str>>) {
    if name.is_empty() {
        return (SymbolPresence::Found, Vec::new());
    }
    let mut paths: Vec<&str> = reading.find(name).iter().map(|symbol| &*symbol.path).collect();
    paths.sort_unstable();
    paths.dedup();
    let [path] = paths[..] else {
        if let Some(plain) = symbol_as_path(name).filter(|_| paths.is_empty()) {
            let (known, mut names) = known_as(reading, &plain);
            if !matches!(known, SymbolPresence::Missing) {
                names.insert(0, plain.into());
                return (known, names);
            }
        }
        let paths: Vec<Box<str>> = paths.into_iter().map(Into::into).collect();
        return match paths.len() {
            0 => (SymbolPresence::Missing, Vec::new()),
            1..=NAMESAKES_MAX => (SymbolPresence::Ambiguous(paths.clone()), paths),
            _ => (SymbolPresence::Ambiguous(paths), Vec::new()),
        };
    };
    let own = reading.find(path).first().map_or(path, |symbol| symbol.name());
    let only_one = reading.find(own).iter().all(|symbol| &*symbol.path == path);
    let mut names: Vec<Box<str>> = Vec::new();
    for other in std::iter::once(path).chain(only_one.then_some(own)) {
        if other != name && !names.iter().any(|it| **it == *other) {
            names.push(other.into());
        }
    }
    (SymbolPresence::Found, names)
}

/// Returns why a symbol that was not found may be in the file all the same; `None` if it is not.
fn unread_why(reading: &Reading, symbol: &str) -> Option<&'static str> {
    let plain = symbol_as_path(symbol);
    let name = plain.as_deref().unwrap_or(symbol).rsplit('.').next().unwrap_or_default();
    match reading.unread() {
        Unread::Nothing => None,
        Unread::Beside(names) => names.contains(name).then_some(IN_PART),
        Unread::Anything => Some(NOT_TO_THE_END),
    }
}

/// Checks whether an event says that a lock or a place in a queue has ended in a file.
fn frees(event: &Event, file: &RepoPath) -> bool {
    match &event.kind {
        EventKind::LockFreed { symbol, .. } | EventKind::LockWaitEnded { symbol, .. } => {
            symbol.file() == file
        }
        _ => false,
    }
}

/// A place in a queue, which is given up on drop.
struct PlaceInQueue<'a> {
    provost: &'a Provost,
    who: &'a Principal,
    ticket: Option<Ticket>,
}

impl Drop for PlaceInQueue<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let (provost, who) = (self.provost.clone(), self.who.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // A place that cannot be given up now ends after its time.
                let _ = provost.submit(&who, LeaveQueue { ticket }).await;
            });
        }
    }
}
