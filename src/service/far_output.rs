//! The output of runs on other hosts, while they go on.
//!
//! A daemon asks the daemon of the run's host, in words between the daemons ([`HostWords`]), for the output after a position,
//! and gets a page of bounded size; the next question waits a moment. It asks while a reader looks here, once for all readers.
//! It keeps the output as it keeps the output of a run here, with the same positions, so the doors need not know of it. Output
//! that the host does not send in this way comes with the end of the run, as its result does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::Provost;
use provost_base::limits::{
    FAR_OUTPUT_ASKED_MAX, FAR_OUTPUT_EVERY_MS, FAR_OUTPUT_LATE_MS, FAR_OUTPUT_LOOKED_MS,
    FAR_OUTPUT_PATIENCE_MS, FAR_OUTPUTS_MAX, HOST_WORD_BYTES_MAX, OUTPUT_BYTES_MAX,
};
use provost_base::{HostId, TaskId};
use provost_domain::{HereIs, Task, TaskState, WorkerKind};
use provost_jail::{LiveOutput, Page};
use provost_store::HostWords;

const PATIENCE: Duration = Duration::from_millis(FAR_OUTPUT_PATIENCE_MS);
/// How long the daemon waits for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_millis(FAR_OUTPUT_PATIENCE_MS + FAR_OUTPUT_LATE_MS);
const EVERY: Duration = Duration::from_millis(FAR_OUTPUT_EVERY_MS);
/// The pause between two questions to a host that has no output of the run, or does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const LOOKED_FOR: Duration = Duration::from_millis(FAR_OUTPUT_LOOKED_MS);
/// The most bytes before the page in an answer.
const ANSWER_HEAD_MAX: usize = 100;

/// The outputs of runs on other hosts that this daemon follows.
pub(super) struct FarOutputs {
    words: OnceLock<HostWords>,
    /// The questions that wait for their answers, by their numbers.
    asked: Mutex<BTreeMap<String, oneshot::Sender<Option<Page>>>>,
    followed: Mutex<Vec<Arc<Followed>>>,
    /// The permits for answering questions of other hosts.
    places: Arc<Semaphore>,
}

/// The output of one run on another host.
struct Followed {
    task: TaskId,
    attempt: u32,
    host: HostId,
    output: LiveOutput,
    looked: Mutex<Instant>,
    /// Whether the daemon waits for the answer to a question about it.
    is_asked: AtomicBool,
    /// Whether the host has not answered the last question.
    is_silent: AtomicBool,
}

impl Default for FarOutputs {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(FAR_OUTPUT_ASKED_MAX));
        Self { words: OnceLock::new(), asked: Mutex::default(), followed: Mutex::default(), places }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each of these values is consistent between any two statements.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FarOutputs {
    fn of(&self, task: &TaskId, attempt: u32) -> Option<Arc<Followed>> {
        lock(&self.followed).iter().find(|it| it.task == *task && it.attempt == attempt).cloned()
    }

    /// Returns the output of this run, which a reader looks at now. Beyond the bound, drops the output that was not read for longest.
    fn look_at(&self, task: &Task, host: HostId) -> Arc<Followed> {
        if let Some(found) = self.of(task.id(), task.attempt()).filter(|it| it.host == host) {
            *lock(&found.looked) = Instant::now();
            return found;
        }
        let mut followed = lock(&self.followed);
        followed.retain(|it| it.task != *task.id());
        if followed.len() >= FAR_OUTPUTS_MAX
            && let Some(oldest) = (0..followed.len()).min_by_key(|at| *lock(&followed[*at].looked))
        {
            followed.remove(oldest);
        }
        let new = Arc::new(Followed {
            task: task.id().clone(),
            attempt: task.attempt(),
            host,
            output: LiveOutput::new(OUTPUT_BYTES_MAX),
            looked: Mutex::new(Instant::now()),
            is_asked: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
        });
        followed.push(new.clone());
        new
    }

    /// Asks one question and waits for its answer; `None` if no answer came in time, `Some(None)` if the host has no output of the run.
    async fn ask(&self, of: &Followed) -> Option<Option<Page>> {
        let number = Uuid::new_v4().simple().to_string();
        let (answers, answer) = oneshot::channel();
        lock(&self.asked).insert(number.clone(), answers);
        let question = json!({ "output_of": of.task.as_str(), "attempt": of.attempt, "from": of.output.total(), "number": number });
        let is_said = self.words.get().is_some_and(|it| it.say(of.host, question.to_string().into_bytes()));
        let answer = if is_said { timeout(ANSWERED_WITHIN, answer).await.ok() } else { None };
        lock(&self.asked).remove(&number);
        answer?.ok()
    }

    fn is_answered(&self, number: &str, page: Option<Page>) {
        if let Some(waits) = lock(&self.asked).remove(number) {
            // The asking task may have ended.
            let _ = waits.send(page);
        }
    }
}

impl Provost {
    /// Speaks with the daemons of other hosts from now on.
    pub fn speaks_by(&self, words: HostWords) {
        // The receiver of words must not keep the service alive, since the service owns it.
        let (service, runtime) = (Arc::downgrade(&self.0), tokio::runtime::Handle::current());
        words.heard_by(move |from, word| {
            if let Some(service) = service.upgrade() {
                Provost(service).hears(&runtime, from, &word);
            }
        });
        let _there_are_some = self.0.far.words.set(words);
    }

    /// Returns the output of a run that goes on at another host; `None` for every other task.
    pub(super) async fn far_output(&self, task: &Task) -> Option<LiveOutput> {
        let host = task.daemon.host;
        let runs = matches!(task.state, TaskState::Running { .. }) && task.kind == WorkerKind::Cli;
        if !runs || host.is_alone() || self.0.far.words.get().is_none() {
            return None;
        }
        if self.view(HereIs).await.ok()?.host == host {
            return None;
        }
        let followed = self.0.far.look_at(task, host);
        if !followed.output.is_finished() && !followed.is_asked.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().follow_far(followed.clone()));
        }
        Some(followed.output.clone())
    }

    /// Returns the known output of a run on another host that has ended.
    pub(super) fn heard_of(&self, task: &Task, from: u64) -> Option<Page> {
        let followed = self.0.far.of(task.id(), task.attempt())?;
        Some(Page { finished: true, ..followed.output.read_from(from) })
    }

    /// Returns the other host that runs a task, if it does not answer questions about the output.
    pub fn silent_host(&self, task: &TaskId) -> Option<HostId> {
        let followed = lock(&self.0.far.followed);
        let found = followed.iter().find(|it| it.task == *task)?;
        let is_silent = found.is_silent.load(Ordering::Acquire) && !found.output.is_finished();
        is_silent.then_some(found.host)
    }

    /// Asks for more output until the run has ended, or no reader has looked for a while.
    async fn follow_far(self, of: Arc<Followed>) {
        while lock(&of.looked).elapsed() < LOOKED_FOR {
            let answer = self.0.far.ask(&of).await;
            of.is_silent.store(answer.is_none(), Ordering::Release);
            match answer.flatten() {
                Some(page) => {
                    of.output.take_over(&page);
                    if page.finished && page.chunks.is_empty() {
                        of.output.finish();
                        break;
                    }
                    sleep(EVERY).await;
                }
                None => {
                    let still = self.task(&of.task).await;
                    if !still.is_ok_and(|it| it.daemon.host == of.host && !it.state.is_finished()) {
                        break;
                    }
                    sleep(AGAIN_AFTER).await;
                }
            }
        }
        of.is_asked.store(false, Ordering::Release);
    }

    /// Handles a word from the daemon of another host.
    fn hears(&self, runtime: &tokio::runtime::Handle, from: HostId, word: &[u8]) {
        let (head, page) = match word.iter().position(|it| *it == b'\n') {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        };
        // This release ignores words of later releases that it cannot read.
        let Ok(head) = serde_json::from_slice::<Value>(head) else { return };
        let Some(number) = head["number"].as_str().map(str::to_owned) else { return };
        if head["answer"].is_string() {
            return self.0.far.is_answered(&number, page.and_then(Page::of_bytes));
        }
        let (Some(task), Some(attempt), Some(at)) = (
            head["output_of"].as_str().and_then(|it| TaskId::parse(it).ok()),
            head["attempt"].as_u64(),
            head["from"].as_u64(),
        ) else {
            return;
        };
        // A question beyond the bound gets no answer.
        let Ok(place) = self.0.far.places.clone().try_acquire_owned() else { return };
        let provost = self.clone();
        runtime.spawn(async move {
            let page = provost.page_for_another(&task, attempt, at).await;
            let mut answer = json!({ "answer": "output", "number": number }).to_string().into_bytes();
            if let Some(page) = page {
                answer.push(b'\n');
                answer.extend(page.to_bytes(HOST_WORD_BYTES_MAX - ANSWER_HEAD_MAX));
            }
            if let Some(words) = provost.0.far.words.get() {
                words.say(from, answer);
            }
            drop(place);
        });
    }

    /// Returns the output of a run here after a position, once the run has written some there.
    async fn page_for_another(&self, task: &TaskId, attempt: u64, from: u64) -> Option<Page> {
        let live = self.outputs().get_attempt(task, u32::try_from(attempt).ok()?)?;
        let page = timeout(PATIENCE, live.follow(from)).await;
        Some(page.unwrap_or_else(|_| live.read_from(from)))
    }
}
