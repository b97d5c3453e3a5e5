//! One connection: its requests, which run side by side within a bound, and their answers.
//!
//! A request that has begun is carried out to its end even if its connection ends, since its work may be half done.
//! Every request is answered exactly once, unless its connection has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::timeout;

use super::A6s;
use super::audience::{Hold, Holds, Listener};
use super::envelope::{A6sError, Request, Said, answer};
use crate::loopback::Upgraded;
use crate::proven::ended;
use provost_auth::Rejected;
use provost_auth::caller::Caller;
use provost_auth::names::HoldsFor;
use provost_base::limits::{A6S_REQUESTS_MAX, A6S_SETTLE_MS_MAX};
use provost_domain::Principal;
use provost_transport::accept::Guard;
use provost_transport::http::Taken;
use provost_transport::websocket::{Code, Outbox, Unsent, serve};

/// A message up to this size, in bytes, is read where it arrives. A larger one is read on a thread of its
/// own, since reading it would delay other connections.
const SMALL_BYTES: usize = 64 << 10;

/// The state of a connection that its requests share.
pub(super) struct Session {
    pub(super) door: A6s,
    /// The agent as which the connection speaks; each request proves it again.
    pub(super) who: Principal,
    caller: Caller,
    outbox: Outbox,
    requests: Mutex<Requests>,
    /// Signalled when a request was answered.
    answered: Notify,
    stopping: AtomicBool,
    /// Set when the connection may not use its name any more.
    revoked: AtomicBool,
    /// Set when a request had an empty list as parameters, as only one editor sends.
    says_lists: AtomicBool,
    listener: OnceLock<Listener>,
}

/// The open requests of a connection; the id of a request is unknown until it was read.
#[derive(Default)]
struct Requests {
    next: u64,
    open: BTreeMap<u64, Option<Box<RawValue>>>,
}

/// A request's place among those of its connection. When it is dropped, the request has been answered.
struct RequestSlot {
    session: Arc<Session>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

/// The outcome of a request: its answer, and the events that its connection gets after it.
pub(super) type Outcome = Result<(Said, Option<Hold>), A6sError>;

/// Serves a connection until it ends.
pub(super) async fn run(door: A6s, connection: Upgraded, who: Principal, guard: Guard) {
    let Upgraded { stream, first, caller } = connection;
    // Editors stay connected for days and ask little: they are not closed to make room.
    let _busy = guard.busy();
    let session = Arc::new(Session {
        outbox: Outbox::new(door.waiting().clone()),
        door,
        who,
        caller,
        requests: Mutex::default(),
        answered: Notify::new(),
        stopping: AtomicBool::new(false),
        revoked: AtomicBool::new(false),
        says_lists: AtomicBool::new(false),
        listener: OnceLock::new(),
    });
    let heard = |message| Arc::clone(&session).hear(message);
    let serving = serve(stream, first, session.door.room(), &session.outbox, heard);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = serving.as_mut() => {}
        refused = ended(session.caller.names(), || session.still()) => {
            session.refuse_all(&refused);
            serving.await;
        }
        () = guard.stopping() => {
            tokio::select! {
                () = serving.as_mut() => {}
                () = session.stop() => serving.await,
            }
        }
    }
    session.end();
}

impl Session {
    /// Accepts a message, without waiting for its answer.
    fn hear(self: Arc<Self>, message: Taken) {
        let place = Arc::clone(&self).place();
        let Some(place) = place else {
            self.turn_down(&message.bytes);
            return;
        };
        tokio::spawn(async move {
            let Some(Request { id, call, says_list }) = read(message).await else {
                tracing::debug!(door = "a6s", "a message that is no request was passed over");
                return;
            };
            place.begin(&id);
            self.says_lists.fetch_or(says_list, Ordering::Relaxed);
            let outcome = match call {
                _ if self.stopping.load(Ordering::Acquire) => Err(stopping()),
                Ok(call) => self.carry_out(call).await,
                Err(fault) => Err(fault),
            };
            place.answer(&id, outcome);
        });
    }

    async fn carry_out(self: &Arc<Self>, call: super::call::Call) -> Outcome {
        self.check_name()?;
        // From now on the connection may get events. A client would not be ready for earlier ones.
        let (caller, who) = (self.caller.clone(), self.who.clone());
        let holds: Holds = Box::new(move || caller.still(&who).is_ok());
        let join = || self.door.audience().join(self.outbox.clone(), Some(holds));
        let listener = *self.listener.get_or_init(join);
        if self.outbox.is_closed() {
            // The connection may have ended before it was on the list.
            self.door.audience().leave(listener);
        }
        tracing::debug!(door = "a6s", method = call.method(), who = %self.who, "asked");
        self.door.clone().carry_out(self, call).await
    }

    /// Checks the connection's name, which is valid as long as its proof, and not as long as the connection.
    fn check_name(&self) -> Result<(), A6sError> {
        let still = self.still().map(drop);
        still.inspect_err(|refused| {
            tracing::warn!(door = "a6s", agent = %self.who.agent(), cause = refused.as_str(), "a connection ends");
            self.revoked.store(true, Ordering::Release);
        })
    }

    fn still(&self) -> Result<HoldsFor, A6sError> {
        self.caller.still(&self.who).map_err(|why| match why {
            Rejected::BadToken => A6sError::new("The token of this connection is not good any more"),
            _ => A6sError::new(format!(
                "The name {} is reserved; a connection under it has to show a token",
                self.who.agent()
            )),
        })
    }

    /// Answers all open requests with this error, and closes: the connection may no longer use its name.
    fn refuse_all(&self, refused: &A6sError) {
        tracing::warn!(door = "a6s", agent = %self.who.agent(), cause = refused.as_str(), "a connection ends");
        self.revoked.store(true, Ordering::Release);
        self.answer_open(refused);
        self.outbox.close(Code::NOT_ALLOWED);
    }

    fn answer_open(&self, fault: &A6sError) {
        // A request whose id was not read yet answers by itself as soon as it is.
        let read: Vec<_> = self.requests().open.extract_if(.., |_, id| id.is_some()).collect();
        for id in read.into_iter().filter_map(|(_, id)| id) {
            self.send(answer(&id, Err(fault)));
        }
    }

    /// Returns whether the client is Neovim's plugin.
    pub(super) fn is_neovim(&self) -> bool {
        self.says_lists.load(Ordering::Relaxed)
    }

    /// Returns the listener of this connection for events, once it has sent a request.
    pub(super) fn listener(&self) -> Option<Listener> {
        self.listener.get().copied()
    }

    /// Takes a slot for one more request; `None` if the connection has the most requests already.
    fn place(self: Arc<Self>) -> Option<RequestSlot> {
        let permit = self.door.turn()?;
        let number = {
            let mut requests = self.requests();
            if requests.open.len() >= A6S_REQUESTS_MAX {
                return None;
            }
            requests.next += 1;
            let number = requests.next;
            requests.open.insert(number, None);
            number
        };
        Some(RequestSlot { session: self, number, _permit: permit })
    }

    fn turn_down(&self, bytes: &[u8]) {
        let Some(Request { id, .. }) = Request::read(bytes) else { return };
        let many = format!(
            "Too many requests at once: {A6S_REQUESTS_MAX} of a connection are answered side by side; \
             ask again when some are"
        );
        self.send(answer(&id, Err(&A6sError::new(many))));
    }

    /// Returns when the connection has ended, so that no answer can be sent any more.
    pub(super) async fn gone(&self) {
        self.outbox.was_cut().await;
    }

    fn send(&self, text: String) {
        if self.outbox.send(text) == Err(Unsent::TooSlow) {
            tracing::debug!(door = "a6s", "a client that does not keep up is cut off");
        }
    }

    /// Lets requests end for a moment, answers the others, and closes. Clients would otherwise wait in vain.
    async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        let settled = async {
            loop {
                let answered = self.answered.notified();
                if self.requests().open.is_empty() {
                    return;
                }
                answered.await;
            }
        };
        let _settled = timeout(Duration::from_millis(A6S_SETTLE_MS_MAX), settled).await;
        self.answer_open(&stopping());
        // A client that waits for an end gets its event.
        let all_told = self.door.told().cancelled();
        let _told = timeout(Duration::from_millis(A6S_SETTLE_MS_MAX), all_told).await;
        self.outbox.close(Code::GOING_AWAY);
    }

    fn end(&self) {
        self.outbox.cut();
        self.listener().inspect(|it| self.door.audience().leave(*it));
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stopping() -> A6sError {
    A6sError::new("Provost is stopping; whether this was done is not known. Ask again when it runs")
}

/// Reads a message; a large one on a blocking thread.
async fn read(message: Taken) -> Option<Request> {
    if message.bytes.len() <= SMALL_BYTES {
        return Request::read(&message.bytes);
    }
    // Dropping the message gives its room back.
    tokio::task::spawn_blocking(move || Request::read(&message.bytes)).await.ok().flatten()
}

impl RequestSlot {
    /// Sets the id of the request.
    fn begin(&self, id: &RawValue) {
        if let Some(open) = self.session.requests().open.get_mut(&self.number) {
            *open = Some(id.to_owned());
        }
    }

    fn answer(self, id: &RawValue, outcome: Outcome) {
        // Another task may have answered the request.
        if self.session.requests().open.remove(&self.number).is_none() {
            return;
        }
        // The result may have come after the end of the caller's proof.
        let (said, hold) = match self.session.check_name().and(outcome) {
            Ok((said, hold)) => (Ok(said), hold),
            Err(fault) => (Err(fault), None),
        };
        self.session.send(answer(id, said.as_ref()));
        if let Some(hold) = hold {
            hold.release();
        }
        if self.session.revoked.load(Ordering::Acquire) {
            self.session.outbox.close(Code::NOT_ALLOWED);
        }
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        // The entry is left only if the message was no request, or if the answering code has panicked.
        let left = self.session.requests().open.remove(&self.number);
        if let Some(id) = left.flatten() {
            self.session
                .send(answer(&id, Err(&A6sError::new("Something went wrong inside; the log says what"))));
        }
        self.session.answered.notify_waiters();
    }
}
