//! The output of runs on other hosts, while they go on.
//!
//! A host asks the one that has the run for what comes behind a place, in words between the daemons ([`HostWords`]), and gets a page of
//! bounded size; the next question waits a moment. It asks while someone looks here, and once for all who do. What it got is kept as the
//! output of a run here is, with the same places, so that no door knows of it. What a host does not say in this way comes with the end
//! of the run, as its result does.

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
/// How long an answer is waited for.
const ANSWERED_WITHIN: Duration = Duration::from_millis(FAR_OUTPUT_PATIENCE_MS + FAR_OUTPUT_LATE_MS);
const EVERY: Duration = Duration::from_millis(FAR_OUTPUT_EVERY_MS);
/// Between two questions to a host that has no output of the run, or does not answer.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const LOOKED_FOR: Duration = Duration::from_millis(FAR_OUTPUT_LOOKED_MS);
/// What an answer has before the page takes less than this.
const ANSWER_HEAD_MAX: usize = 100;

/// What is followed of other hosts' runs.
pub(super) struct FarOutputs {
    words: OnceLock<HostWords>,
    /// Questions that wait for their answers, by their numbers.
    asked: Mutex<BTreeMap<String, oneshot::Sender<Option<Page>>>>,
    followed: Mutex<Vec<Arc<Followed>>>,
    /// Places for questions of other hosts.
    places: Arc<Semaphore>,
}

/// The output of one run on another host.
struct Followed {
    task: TaskId,
    attempt: u32,
    host: HostId,
    output: LiveOutput,
    looked: Mutex<Instant>,
    /// Whether a question about it is under way.
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
    // Each is whole between any two statements.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FarOutputs {
    fn of(&self, task: &TaskId, attempt: u32) -> Option<Arc<Followed>> {
        lock(&self.followed).iter().find(|it| it.task == *task && it.attempt == attempt).cloned()
    }

    /// The one of this run, which was looked at now. Beyond the bound, the one goes that was not looked at for longest.
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

    /// One question and its answer; `None` where none came in time, and `Some(None)` where the host has no output of it.
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
            // Who has asked may have gone.
            let _ = waits.send(page);
        }
    }
}

impl Provost {
    /// Speaks with the daemons of other hosts from now on.
    pub fn speaks_by(&self, words: HostWords) {
        // What hears is part of what it would keep.
        let (service, runtime) = (Arc::downgrade(&self.0), tokio::runtime::Handle::current());
        words.heard_by(move |from, word| {
            if let Some(service) = service.upgrade() {
                Provost(service).hears(&runtime, from, &word);
            }
        });
        let _there_are_some = self.0.far.words.set(words);
    }

    /// The output of a run that goes on at another host; `None` for every other task.
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

    /// What was heard of a run on another host that is over.
    pub(super) fn heard_of(&self, task: &Task, from: u64) -> Option<Page> {
        let followed = self.0.far.of(task.id(), task.attempt())?;
        Some(Page { finished: true, ..followed.output.read_from(from) })
    }

    /// The other host at which a task runs, where it does not say what its worker writes.
    pub fn silent_host(&self, task: &TaskId) -> Option<HostId> {
        let followed = lock(&self.0.far.followed);
        let found = followed.iter().find(|it| it.task == *task)?;
        let is_silent = found.is_silent.load(Ordering::Acquire) && !found.output.is_finished();
        is_silent.then_some(found.host)
    }

    /// Asks until the run is over, or no reader has asked for a while.
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

    /// Hears what the daemon of another host says.
    fn hears(&self, runtime: &tokio::runtime::Handle, from: HostId, word: &[u8]) {
        let (head, page) = match word.iter().position(|it| *it == b'\n') {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        };
        // What a later release says is not for this one.
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
        // One that is too many has no answer.
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

    /// What a run here has said behind a place, after it has said something there.
    async fn page_for_another(&self, task: &TaskId, attempt: u64, from: u64) -> Option<Page> {
        let live = self.outputs().get(task)?;
        if u64::from(self.task(task).await.ok()?.attempt()) != attempt {
            return None;
        }
        let page = timeout(PATIENCE, live.follow(from)).await;
        Some(page.unwrap_or_else(|_| live.read_from(from)))
    }
}
