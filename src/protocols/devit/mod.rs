//! The DevIt door: signed frames, one per line, on a Unix socket; and the protocol document's own dialect.
//!
//! Promises the behaviour in `docs/protocols/devit.md`: present clients work unchanged and never wait for an answer
//! that does not come. A frame is accepted when its peer is this user and not jailed, its MAC verifies with a key
//! of its sender, and its time and nonce are fresh; only then is its content read.
#![forbid(unsafe_code)]

mod document;
mod map;
mod meeting;
mod notice;
mod run_door;
mod screenshot;
mod signed;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::FrontDoor;
use map::Message;
pub use notice::hook_words;
use provost_auth::frame::{Form, Frame, Outgoing};
use provost_auth::keys::KeyRing;
use provost_auth::names::Names;
use provost_auth::peer::PeerId;
use provost_auth::replay::ReplayGuard;
use provost_auth::role::Standing;
use provost_auth::token::Tokens;
use provost_auth::{Rejected, UNSEEN};
use provost_base::limits::TTL_MAX_MS;
use provost_base::{AgentId, Digest, Secret, Timestamp};
use provost_domain::{Mail, Principal, Refusal};
use provost_engine::QueueSlot;
use provost_service::Provost;
use provost_transport::Stream;
use provost_transport::accept::Guard;
use provost_transport::lines::{ByteBudget, Line, LineReader, delivered, write_line};
use run_door::RunDoor;
pub use run_door::{DoorTransport, WorkerDoor};
use wire::DevitError;

/// The size from which a payload is handled apart: a larger one can take milliseconds, and a mebibyte of numbers a third of a second.
const LARGE_BYTES: usize = 16 << 10;
/// How long a peer may take to send a line that it has begun, and to read an answer.
const LINE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be silent, before and after it has proved its sender.
const SILENT_UNPROVEN_MAX: Duration = Duration::from_secs(10);
const SILENT_PROVEN_MAX: Duration = Duration::from_secs(300);

/// The bytes of a buffer that are kept from one line to the next, so that ordinary lines need no new memory.
const LINE_KEPT: usize = 4 << 10;

/// The configuration of this door.
#[derive(Clone, Debug)]
pub struct Options {
    /// `daemon_version` in ACKs. DevIt 1.16: deployments compare it for equality.
    pub advertised_version: String,
    /// How long an empty POLL of a caller with unfinished delegations waits; under a second.
    pub hold: Duration,
    /// Whether the door also speaks the protocol document's dialect.
    pub dialect_document: bool,
    /// Makes approval ids of this daemon recognisable; the same after restarts.
    pub salt: Digest,
    /// The user whose processes may connect.
    pub uid: u32,
}

/// The door that serves DevIt's clients. Clones share everything.
#[derive(Clone)]
pub struct Devit(Arc<DevitInner>);

struct DevitInner {
    provost: Provost,
    lock: KeySource,
    names: Arc<Names>,
    replay: Arc<ReplayGuard>,
    tokens: Arc<Tokens>,
    budget: ByteBudget,
    options: Options,
    /// Returns the time of the system's clock, from which clients take a frame's `ts`.
    now: fn() -> Timestamp,
}

/// The keys of a door.
#[derive(Clone)]
enum KeySource {
    /// The keys of the user's key ring.
    Ring(Arc<KeyRing>),
    /// The key that was made for a run.
    Run(Arc<RunDoor>),
}

/// The answer to a line.
enum Said {
    /// No answer: the line is empty and ends the wait of a client at once. DevIt 1.1.
    Nothing,
    /// A message, which the daemon signs before it sends it.
    Message(Message),
    /// A queued message, which counts as delivered when the peer sends another line or closes.
    Mail(Arc<Mail>),
    /// An answer with the content of a queued message, which counts as delivered when the answer does.
    InAdvance(Message, Arc<Mail>),
}

/// A message whose arrival is not certain yet. However its connection ends, the message is not lost.
struct Carried {
    provost: Provost,
    who: Principal,
    mail: Option<Arc<Mail>>,
}

impl Carried {
    async fn settle(mut self, arrived: bool) {
        if let Some(mail) = &self.mail {
            self.provost.settle(&self.who, mail, arrived).await;
        }
        // This comes last: a connection that is dropped while it waits for the answer gives the message back. If
        // the message has arrived after all, it is not in its queue any more, and giving it back has no effect.
        self.mail = None;
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(mail) = self.mail.take() {
            self.provost.engine().put_back(&self.who, mail.seq);
        }
    }
}

/// The state of a connection after a line.
enum Next {
    Go,
    /// A message was written; the peer's next action shows whether it arrived.
    Carrying(Carried),
    /// The connection ends without a further answer.
    Hangup,
    /// The request is refused with a reset, which a client cannot overlook.
    Reset(String),
    /// The peer has a session of the document's dialect.
    Session(Box<document::Session>),
}

impl Devit {
    /// Makes a door with the keys of these names.
    pub fn new(
        provost: Provost,
        names: Arc<Names>,
        replay: ReplayGuard,
        options: Options,
        now: fn() -> Timestamp,
    ) -> Self {
        let budget = ByteBudget::new(provost_base::limits::UNPROVEN_BYTES_MAX);
        let tokens = Arc::new(Tokens::new(provost_base::limits::TOKENS_MAX));
        let replay = Arc::new(replay);
        let lock = KeySource::Ring(names.keys().clone());
        Self(Arc::new(DevitInner { provost, lock, names, replay, tokens, budget, options, now }))
    }

    /// Returns the same door with other keys, for an address with a secret of its own. Some clients' keys are valid at
    /// both, so a frame that one door has accepted is a repeat at the other.
    #[must_use]
    pub fn with_keys(&self, keys: Arc<KeyRing>) -> Self {
        let DevitInner { provost, names, replay, tokens, budget, options, now, .. } = &*self.0;
        let (provost, names) = (provost.clone(), names.clone());
        let (replay, tokens) = (replay.clone(), tokens.clone());
        let (budget, options, now) = (budget.clone(), options.clone(), *now);
        Self(Arc::new(DevitInner {
            provost,
            lock: KeySource::Ring(keys),
            names,
            replay,
            tokens,
            budget,
            options,
            now,
        }))
    }

    /// Checks whether this door admits a peer. A peer that holds an inherited socket got it from the daemon.
    fn let_in(&self, peer: PeerId) -> Result<PeerId, Rejected> {
        match self.inside() {
            None => {
                peer.check_same_user(self.0.options.uid)?;
                peer.check_not_jailed()?;
                peer.check_seen()?;
            }
            Some(run) if !run.is_inherited() => {
                peer.check_same_user(self.0.options.uid)?;
                peer.check_jailed()?;
            }
            Some(_) => {}
        }
        Ok(peer)
    }

    async fn converse(self, stream: Stream, guard: Guard) {
        let peer = match PeerId::of(&stream).and_then(|peer| self.let_in(peer)) {
            Ok(peer) => peer,
            Err(rejected) => {
                tracing::warn!(door = "devit", cause = rejected.cause(), "connection refused");
                stream.close_with_reset(unsigned(&refusal(rejected)).as_bytes());
                return;
            }
        };
        let mut reader = LineReader::new(stream, LINE_TIME_MAX).within(&self.0.budget);
        let proven = self.inside().is_some_and(RunDoor::is_inherited);
        if proven {
            reader.proven();
        }
        let mut talk = Talk { door: self, peer, reader, guard, proven, carried: None, slot: None };
        if let Some(last_words) = talk.run().await {
            talk.reader.into_inner().close_with_reset(last_words.as_bytes());
        }
    }
}

impl FrontDoor for Devit {
    fn name(&self) -> &'static str {
        "devit"
    }

    fn serve(&self, stream: Stream, guard: Guard) -> Pin<Box<dyn Future<Output = ()> + Send + 'static>> {
        Box::pin(self.clone().converse(stream, guard))
    }
}

/// A connection, from its acceptance to its end.
struct Talk {
    door: Devit,
    peer: PeerId,
    reader: LineReader<Stream>,
    guard: Guard,
    proven: bool,
    carried: Option<Carried>,
    /// The queue slot of the agent that spoke last; mostly only one agent speaks on a connection.
    slot: Option<(AgentId, Arc<QueueSlot>)>,
}

impl Talk {
    /// Serves lines until the connection ends; returns the last words for a peer that is refused with a reset.
    async fn run(&mut self) -> Option<String> {
        // Both are made once: a timer for every line would cost as much as the line.
        let mut stopping = std::pin::pin!(self.guard.stopping());
        let mut silence = std::pin::pin!(tokio::time::sleep(SILENT_UNPROVEN_MAX));
        let mut line = Vec::new();
        loop {
            let since = Instant::now();
            let came = loop {
                tokio::select! {
                    biased;
                    came = self.reader.next() => break Some(came),
                    () = stopping.as_mut() => break None,
                    () = silence.as_mut() => {
                        let until = since + self.patience();
                        if until <= Instant::now() {
                            break None;
                        }
                        silence.as_mut().reset(until);
                    }
                }
            };
            let Some(came) = came else { break };
            let (arrived, ended) = (delivered(&came), matches!(came, Ok(Line::Eof)));
            let go_on = match came {
                Ok(Line::Frame(frame)) => {
                    line.extend_from_slice(frame);
                    true
                }
                Ok(Line::TooLong) => {
                    self.say_unsigned(&DevitError::invalid("the frame is larger than 1 MiB")).await;
                    false
                }
                Ok(Line::Eof | Line::TimedOut | Line::OverBudget) | Err(_) => false,
            };
            let arrived = arrived && (!ended || self.was_read().await);
            self.settle(arrived).await;
            if !go_on {
                break;
            }
            if line.is_empty() {
                continue;
            }
            match self.answer(&line).await {
                Next::Go => {}
                Next::Carrying(carried) => self.carried = Some(carried),
                Next::Hangup => break,
                Next::Reset(last_words) => return Some(last_words),
                Next::Session(session) => {
                    session.run(self).await;
                    break;
                }
            }
            // This comes before the next wait, so that a silent peer does not hold the memory of its last line.
            line.clear();
            line.shrink_to(LINE_KEPT);
        }
        self.settle(false).await;
        None
    }

    fn patience(&self) -> Duration {
        match self.door.inside() {
            // A worker has no other connection; this one ends with its run.
            Some(run) if run.is_inherited() => Duration::from_millis(TTL_MAX_MS.into()),
            _ if self.proven => SILENT_PROVEN_MAX,
            _ => SILENT_UNPROVEN_MAX,
        }
    }

    /// Returns whether a peer that has closed its side has read the last message, if there is one.
    async fn was_read(&self) -> bool {
        self.carried.is_none() || self.reader.get_ref().is_read_to_the_end(LINE_TIME_MAX).await
    }

    /// Records whether the last message has arrived.
    async fn settle(&mut self, arrived: bool) {
        if let Some(carried) = self.carried.take() {
            carried.settle(arrived).await;
        }
    }

    async fn answer(&mut self, line: &[u8]) -> Next {
        if let Some(run) = self.door.inside() {
            run.turn().await;
        }
        let frame = match Frame::parse(line) {
            Ok(frame) => frame,
            Err(fault) => return self.not_a_frame(line, &fault.to_string()).await,
        };
        if let Err(fault) = frame.check_separators() {
            return self.say_unsigned(&DevitError::invalid(fault.to_string())).await;
        }
        if let Some(fault) = self.door.foreign(&frame).await {
            return self.say_inside(&fault, &frame).await;
        }
        let now = (self.door.0.now)();
        let proved = apart(frame.payload.len(), || self.door.believe(&frame, now));
        let (agent, standing, key) = match proved {
            Ok(proved) => proved,
            Err((rejected, key)) => return self.refuse(&frame, rejected, key).await,
        };
        if !self.proven {
            self.proven = true;
            self.reader.proven();
            self.guard.proven();
        }
        let (to, form) = (frame.from.clone(), frame.form);
        let who = match self.who(agent.clone(), standing) {
            Ok(who) => who,
            Err(rejected) => {
                let message = self.not_ones_own(rejected, agent);
                return self.write(self.door.sign(&message, &to, &key, form).as_bytes()).await;
            }
        };
        // A heartbeat is the most frequent message, and mostly needs no answer.
        let moment = self.door.0.provost.engine().now();
        if frame.msg_type == "HEARTBEAT" && self.slot(&agent).is_idle(moment) {
            return self.write(b"").await;
        }
        let said = self.door.handle(&frame, &who, &self.peer).await;
        if let Err(rejected) = self.still_proven(&frame, &who, &said).await {
            return self.refuse(&frame, rejected, None).await;
        }
        let mut carried = None;
        let message = match said {
            Said::Nothing => return self.write(b"").await,
            Said::Message(message) if self.door.inside().is_some() => message.answering(&frame.msg_id),
            Said::Message(message) => message,
            Said::InAdvance(message, mail) => {
                carried = Some(Carried { provost: self.door.0.provost.clone(), who, mail: Some(mail) });
                message
            }
            Said::Mail(mail) => {
                let message = map::mail(&mail, self.door.0.provost.engine().now(), &self.door.0.options.salt);
                carried = Some(Carried { provost: self.door.0.provost.clone(), who, mail: Some(mail) });
                message
            }
        };
        let next = self.write(self.door.sign(&message, &to, &key, form).as_bytes()).await;
        match (carried, next) {
            (Some(carried), Next::Go) => Next::Carrying(carried),
            (Some(carried), next) => {
                carried.settle(false).await;
                next
            }
            (None, next) => next,
        }
    }

    /// Returns the answer to a caller whose name has become reserved.
    fn not_ones_own(&self, rejected: Rejected, agent: AgentId) -> Message {
        tracing::warn!(door = "devit", cause = rejected.cause(), pid = self.peer.pid, "frame refused");
        let refusal = match rejected {
            Rejected::OtherHost => Refusal::NameElsewhere { agent },
            _ => Refusal::NameTaken { agent },
        };
        Message::fault(&self.door.fault(refusal))
    }

    /// Checks whether a message may still be delivered: a poll may have waited, and the caller's key may have ended
    /// meanwhile. Otherwise the message goes back into its queue.
    async fn still_proven(&self, frame: &Frame<'_>, who: &Principal, said: &Said) -> Result<(), Rejected> {
        let Said::Mail(mail) = said else { return Ok(()) };
        let still = self.door.still(frame, who);
        if still.is_err() {
            self.door.0.provost.settle(who, mail, false).await;
        }
        still
    }

    /// Returns the principal for the sender of an accepted frame.
    fn who(&mut self, agent: AgentId, standing: Standing) -> Result<Principal, Rejected> {
        if let Some(run) = self.door.inside() {
            return Ok(run.principal());
        }
        self.door.0.names.by_frame(agent, standing, self.peer.line())
    }

    fn slot(&mut self, agent: &AgentId) -> &QueueSlot {
        let known = self.slot.take().filter(|(known, _)| known == agent);
        let board = self.door.0.provost.engine().empty_queues();
        let known = known.unwrap_or_else(|| (agent.clone(), board.slot(agent)));
        &self.slot.insert(known).1
    }

    /// Handles a line that is no frame: it may be the document's dialect; otherwise the sender is told which part is wrong.
    async fn not_a_frame(&mut self, line: &[u8], why: &str) -> Next {
        if self.door.0.options.dialect_document
            && let Some(request) = document::Request::read(line)
        {
            return document::first(self, request).await;
        }
        tracing::debug!(door = "devit", size = line.len(), why, "malformed line");
        self.say_unsigned(&DevitError::invalid(why)).await
    }

    /// Refuses a frame. A peer with a wrong secret is disconnected; a peer with a valid secret and a stale or
    /// repeated frame gets an error.
    async fn refuse(&mut self, frame: &Frame<'_>, rejected: Rejected, key: Option<Secret>) -> Next {
        tracing::warn!(door = "devit", cause = rejected.cause(), pid = self.peer.pid, "frame refused");
        let Some(key) = key else {
            if self.door.inside().is_some_and(RunDoor::is_inherited) {
                return self.say_unsigned(&refusal(rejected)).await;
            }
            if self.proven {
                self.say_unsigned(&refusal(rejected)).await;
                return Next::Hangup;
            }
            return Next::Reset(unsigned(&refusal(rejected)));
        };
        let message = Message::fault(&refusal(rejected));
        let line = self.door.sign(&message, &frame.from, &key, frame.form);
        self.write(line.as_bytes()).await
    }

    /// Refuses a frame that was not read, with the key of the run.
    async fn say_inside(&mut self, fault: &DevitError, frame: &Frame<'_>) -> Next {
        let Some(run) = self.door.inside() else { return Next::Hangup };
        let message = Message::fault(fault).answering(&frame.msg_id);
        let line = self.door.sign(&message, &frame.from, run.secret(), frame.form);
        self.write(line.as_bytes()).await
    }

    async fn say_unsigned(&mut self, fault: &DevitError) -> Next {
        let line = unsigned(fault);
        self.write(line.as_bytes()).await
    }

    async fn write(&mut self, line: &[u8]) -> Next {
        match write_line(self.reader.get_mut(), line, LINE_TIME_MAX).await {
            Ok(()) => Next::Go,
            Err(_) => Next::Hangup,
        }
    }
}

impl Devit {
    fn sign(&self, message: &Message, to: &str, key: &Secret, form: Form) -> String {
        let fresh = uuid::Uuid::new_v4().to_string();
        let nonce = uuid::Uuid::new_v4().to_string();
        let outgoing = Outgoing {
            msg_type: message.msg_type,
            msg_id: message.msg_id.as_deref().unwrap_or(&fresh),
            from: &message.from,
            to,
            ts: (self.0.now)().seconds(),
            nonce: &nonce,
            payload: &message.payload,
        };
        outgoing.sign(key, form)
    }
}

/// Does work that takes long for a large text, such as its canonical form, without delaying the other tasks of this
/// thread.
fn apart<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LARGE_BYTES { tokio::task::block_in_place(work) } else { work() }
}

/// Returns the same answer for every cause; the log has the cause.
fn refusal(rejected: Rejected) -> DevitError {
    if rejected == Rejected::Busy {
        return DevitError::new(wire::Code::Busy, format!("{}; try again", rejected.cause()));
    }
    let why = if rejected == Rejected::Unseen { UNSEEN.to_owned() } else { rejected.to_string() };
    DevitError::new(wire::Code::Auth, why)
}

/// Returns an error for a peer that shares no key: it is readable, and proves nothing.
fn unsigned(fault: &DevitError) -> String {
    json!({
        "msg_type": "ERR",
        "msg_id": uuid::Uuid::new_v4().to_string(),
        "from": wire::ORCHESTRATOR,
        "to": "",
        "ts": 0,
        "nonce": "",
        "hmac": "",
        "payload": fault.payload().value(),
    })
    .to_string()
}
