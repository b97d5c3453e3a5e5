//! The door that is made for one run of a jailed worker: it accepts the same signed frames, of a single agent.
//!
//! Promises: only that run's worker can connect, with a key that is valid nowhere else; it works on its own task
//! and sees no other; a claim to be another agent or to have a right that it lacks is refused with an error and
//! recorded; the worker cannot slow other callers down, however much it sends. The door exists as long as the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::map::{self, Message};
use super::signed::encode;
use super::wire::{self, Code, DevitError};
use super::{Devit, DevitInner, KeySource, Said};
use provost_auth::frame::Frame;
use provost_auth::keys::{Keys, Role};
use provost_auth::replay::ReplayGuard;
use provost_auth::token::Tokens;
use provost_auth::{fresh_secret, role};
use provost_base::limits::{
    ID_LEN_MAX, WORKER_CLAIMS_MAX, WORKER_LINE_EVERY_MS, WORKER_LINES_BURST, WORKER_NONCES_MAX,
    WORKER_REPORT_BYTES_MAX, WORKER_REPORT_LINES, WORKER_UNPROVEN_BYTES_MAX,
};
use provost_base::{AgentId, Json, Secret, TaskId};
use provost_domain::command::Record;
use provost_domain::{Principal, Refusal, Scope, Task};
use provost_service::{Finished, Snapshot};
use provost_transport::lines::ByteBudget;

/// The average time between two lines of a run.
const EVERY: Duration = Duration::from_millis(WORKER_LINE_EVERY_MS);

/// The way in which a worker reaches its door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DoorTransport {
    /// A socket in its root directory. A caller that connects must be in a jail.
    Mounted,
    /// A connected socket that it inherits at its start; no other connection is accepted.
    Inherited,
}

/// The state of the door of a run.
pub(super) struct RunDoor {
    worker: AgentId,
    task: TaskId,
    secret: Secret,
    way: DoorTransport,
    /// The daemon's own principal, for recording refused claims.
    system: Principal,
    claims: AtomicU32,
    /// When the next line would be due if lines were evenly spread.
    due: Mutex<Instant>,
}

impl RunDoor {
    pub(super) fn is_inherited(&self) -> bool {
        self.way == DoorTransport::Inherited
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns the run's key for its worker, whose name may have another key elsewhere.
    pub(super) fn keys_of(&self, agent: &AgentId) -> Keys {
        match *agent == self.worker {
            true => Keys::Own { role: Role::Worker, secrets: vec![self.secret.clone()] },
            false => Keys::None,
        }
    }

    pub(super) fn principal(&self) -> Principal {
        role::worker(self.worker.clone(), &self.task)
    }

    /// Waits until one more line may be read. Each further line waits longer, so that a flood is slowed down.
    pub(super) async fn turn(&self) {
        let turn = self.spend(1).checked_sub(EVERY * WORKER_LINES_BURST);
        if let Some(turn) = turn {
            sleep_until(turn).await;
        }
    }

    /// Reserves the time for this many lines; returns when they would be due without a burst.
    fn spend(&self, lines: u32) -> Instant {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*due).max(Instant::now());
        *due = at + EVERY * lines;
        at
    }
}

/// The door of a run, which the runner serves and then closes.
pub struct WorkerDoor {
    door: Devit,
    run: Arc<RunDoor>,
}

impl WorkerDoor {
    /// Returns the key of its frames, which is valid nowhere else.
    pub fn secret(&self) -> &Secret {
        &self.run.secret
    }

    /// Returns the door that serves its connections.
    pub fn door(&self) -> Devit {
        self.door.clone()
    }

    /// Records the number of further claims that were only counted. Call this when the door is no longer served.
    pub async fn close(self) {
        let run = &self.run;
        let claims = run.claims.load(Ordering::Relaxed);
        if claims > WORKER_CLAIMS_MAX {
            let more = claims - WORKER_CLAIMS_MAX;
            self.door.record(run, json!({ "worker": run.worker.as_str(), "more": more })).await;
        }
    }
}

impl Devit {
    /// Makes the door of a run, with a secret of its own. `system` is the daemon's own principal.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn for_run(
        &self,
        worker: AgentId,
        task: TaskId,
        way: DoorTransport,
        system: Principal,
    ) -> Result<WorkerDoor, getrandom::Error> {
        let DevitInner { provost, names, replay, options, now, .. } = &*self.0;
        let mut options = options.clone();
        options.dialect_document = false;
        let replay = ReplayGuard::new(now(), replay.window_seconds(), WORKER_NONCES_MAX);
        let (claims, due) = (AtomicU32::new(0), Mutex::new(Instant::now()));
        let run = Arc::new(RunDoor { worker, task, secret: fresh_secret()?, way, system, claims, due });
        let door = Self(Arc::new(DevitInner {
            provost: provost.clone(),
            lock: KeySource::Run(run.clone()),
            names: names.clone(),
            replay: Arc::new(replay),
            tokens: Arc::new(Tokens::new(1)),
            budget: ByteBudget::new(WORKER_UNPROVEN_BYTES_MAX),
            options,
            now: *now,
        }));
        Ok(WorkerDoor { door, run })
    }

    /// Returns the run of this door, if it is the door of a run.
    pub(super) fn inside(&self) -> Option<&RunDoor> {
        match &self.0.lock {
            KeySource::Run(run) => Some(run),
            KeySource::Ring(_) => None,
        }
    }

    /// Refuses a frame that names another sender, regardless of its signature.
    pub(super) async fn foreign(&self, frame: &Frame<'_>) -> Option<DevitError> {
        let run = self.inside().filter(|run| *frame.from != *run.worker.as_str())?;
        self.refused(run, &frame.msg_type, json!({ "claimed": begin(&frame.from) })).await;
        let text = format!("this door is for {} alone", run.worker);
        Some(DevitError::new(Code::Forbidden, text))
    }

    /// Answers the frames that this door handles in its own way; `None` for those that every door handles alike.
    pub(super) async fn said_inside(
        &self,
        run: &RunDoor,
        frame: &Frame<'_>,
        who: &Principal,
    ) -> Option<Said> {
        let no = |fault: DevitError| Some(Said::Message(Message::fault(&fault)));
        let needs = match &*frame.msg_type {
            "DELEGATE" | "SCREENSHOT" => Scope::Delegate,
            "APPROVAL_DECISION" => Scope::Approve,
            "STATUS_REQUEST" => return Some(self.own_status(run, frame.payload).await),
            "TASK_REQUEST" => return self.names_another(run, frame).await,
            "NOTIFY" if frame.payload.len() > WORKER_REPORT_BYTES_MAX => {
                let most = WORKER_REPORT_BYTES_MAX >> 10;
                let text = format!("a report holds at most {most} KiB; put the rest into a file");
                return no(DevitError::invalid(text));
            }
            "NOTIFY" => return self.names_another(run, frame).await,
            _ => return None,
        };
        if who.may(needs) {
            return None;
        }
        let fault = self.fault(Refusal::OutOfScope { needs });
        self.refused(run, &frame.msg_type, json!({})).await;
        no(fault)
    }

    /// Refuses a frame about another task than the run's.
    async fn names_another(&self, run: &RunDoor, frame: &Frame<'_>) -> Option<Said> {
        let named = match wire::payload::<wire::Notify>(frame.payload) {
            Ok(named) => named,
            Err(fault) => return Some(Said::Message(Message::fault(&fault))),
        };
        let notify = frame.msg_type == "NOTIFY";
        if notify {
            run.spend(WORKER_REPORT_LINES);
        }
        let is_ack = notify && named.status.is_some_and(|it| it.eq_ignore_ascii_case("ack"));
        let task = named.task_id.or_else(|| notify.then(|| frame.msg_id.to_string()))?;
        let text = match (is_ack, task == run.task.as_str()) {
            (false, true) => return None,
            (true, _) => "a worker acknowledges nothing at its own door".to_owned(),
            (false, false) => format!("this door is for task {} alone; name it in task_id", run.task),
        };
        self.refused(run, &frame.msg_type, json!({ "task": begin(&task) })).await;
        Some(Said::Message(Message::fault(&DevitError::new(Code::Forbidden, text))))
    }

    /// Answers STATUS with the run's own task only.
    async fn own_status(&self, run: &RunDoor, payload: &str) -> Said {
        let answer = async {
            let _request: wire::StatusRequest = wire::payload(payload)?;
            let task = self.0.provost.task(&run.task).await.map_err(|it| self.fault(it))?;
            let over = task.state.is_finished();
            let (active, tasks) =
                if over { (vec![], vec![Task::clone(&task)]) } else { (vec![task], vec![]) };
            let finished = Finished { tasks, ..Finished::default() };
            let snapshot = Snapshot { active, finished, completed: 0, failed: 0 };
            encode(&map::status(&snapshot, &self.0.options.salt))
        };
        match answer.await {
            Ok(status) => Said::Message(Message::new("STATUS_RESPONSE", status)),
            Err(fault) => Said::Message(Message::fault(&fault)),
        }
    }

    /// Records a refused claim before the answer: the first ones each, the others as a number.
    async fn refused(&self, run: &RunDoor, msg_type: &str, mut details: Value) {
        let earlier = run.claims.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(door = "worker", task = %run.task, worker = %run.worker, msg_type, "claim refused");
        if earlier < WORKER_CLAIMS_MAX {
            details["worker"] = json!(run.worker.as_str());
            details["said"] = json!(begin(msg_type));
            self.record(run, details).await;
        }
    }

    async fn record(&self, run: &RunDoor, details: Value) {
        let subject = run.task.as_str().into();
        let verb = Record { what: "worker.refused".into(), subject, details: Json::from_value(&details) };
        if let Err(refusal) = self.0.provost.submit(&run.system, verb).await {
            tracing::error!(%refusal, task = %run.task, "a refused claim of a worker is not on record");
        }
    }
}

/// Returns the beginning of a worker's text, for the log.
fn begin(text: &str) -> &str {
    &text[..text.floor_char_boundary(ID_LEN_MAX)]
}
