//! Pages of the tasks that match a filter: first the unfinished ones, in the order of their states, then the finished ones, newest first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Provost, unreadable};
use provost_base::limits::{STATUS_BYTES_MAX, TASK_PAGE_SCANNED_MAX, TASK_TEXT_LOOKED_AT};
use provost_base::{TaskId, Timestamp};
use provost_domain::command::Status;
use provost_domain::view::LiveTasks;
use provost_domain::{Refusal, Task, TaskState};
use provost_store::{FinishedFilter, Reader, StoreError};

/// How many finished tasks are read from the store at a time.
const READ_AT_ONCE: usize = 200;

/// The states of tasks, in the order of lists.
pub const TASK_STATES: [&str; 9] =
    ["awaiting", "running", "assigned", "queued", "retrying", "waiting", "completed", "failed", "cancelled"];

/// A filter of tasks. A member that is `None` excludes no task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskChoice {
    /// Only tasks in this state, one of [`TASK_STATES`].
    pub state: Option<&'static str>,
    /// Only tasks of workers whose names contain this text.
    pub worker: Option<String>,
    /// Only tasks of agents whose names contain this text.
    pub by: Option<String>,
    /// Only tasks that have each of these words in their id, goal or name.
    pub words: Vec<String>,
    /// Only tasks that have changed since this time.
    pub since: Option<Timestamp>,
}

/// Returns the word for a task's state.
pub fn task_state(task: &Task) -> &'static str {
    match task.state {
        TaskState::Awaiting { .. } => "awaiting",
        TaskState::Running { .. } => "running",
        TaskState::Assigned { .. } => "assigned",
        TaskState::Queued { .. } => "queued",
        TaskState::Waiting => "waiting",
        TaskState::Retrying { .. } => "retrying",
        TaskState::Finished { status: Status::Completed, .. } => "completed",
        TaskState::Finished { status: Status::Cancelled, .. } => "cancelled",
        TaskState::Finished { .. } => "failed",
    }
}

fn rank(task: &Task) -> usize {
    TASK_STATES.iter().position(|it| *it == task_state(task)).unwrap_or(TASK_STATES.len())
}

impl TaskChoice {
    /// Makes a filter whose texts are compared without regard to case.
    pub fn new(state: Option<&'static str>, worker: Option<&str>, by: Option<&str>, text: &str) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase).collect();
        let low = |it: Option<&str>| it.map(str::to_lowercase).filter(|it| !it.is_empty());
        Self { state, worker: low(worker), by: low(by), words, since: None }
    }

    /// Returns the same filter, restricted to tasks that have changed since this time.
    #[must_use]
    pub fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    fn takes(&self, task: &Task) -> bool {
        let has = |name: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|it| name.to_lowercase().contains(it.as_str()))
        };
        self.state.is_none_or(|it| it == task_state(task))
            && has(task.order.worker.as_str(), &self.worker)
            && has(task.asked_by.as_str(), &self.by)
            && self.since.is_none_or(|it| task.updated_at >= it)
            && self.has_words(task)
    }

    fn has_words(&self, task: &Task) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let goal = &task.order.goal;
        let goal = &goal[..goal.floor_char_boundary(TASK_TEXT_LOOKED_AT.min(goal.len()))];
        let texts = [task.id().as_str(), goal, task.order.worker.as_str(), task.asked_by.as_str()];
        let texts = texts.map(str::to_lowercase);
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
    }

    /// Returns the status of the finished tasks to read; `None` if no finished task can match.
    fn finished(&self) -> Option<Option<Status>> {
        match self.state {
            None => Some(None),
            Some("completed") => Some(Some(Status::Completed)),
            Some("failed") => Some(Some(Status::Failed)),
            Some("cancelled") => Some(Some(Status::Cancelled)),
            Some(_) => None,
        }
    }
}

/// The end of a page. Tasks change between pages; a place among the unfinished keeps the task's rank and time as they were.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TaskPlace {
    /// After an unfinished task with this rank, time and id.
    Live(usize, Timestamp, TaskId),
    /// After a finished task.
    Finished(TaskId),
}

impl TaskPlace {
    fn of(task: &Task) -> Self {
        match task.state.is_finished() {
            true => Self::Finished(task.id().clone()),
            false => Self::Live(rank(task), task.created_at, task.id().clone()),
        }
    }

    /// Parses a place that [`TaskPlace::in_words`] has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "ended" => Some(Self::Finished(TaskId::parse(rest).ok()?)),
            "live" => {
                let mut parts = rest.splitn(3, ':');
                let (rank, at) = (parts.next()?.parse().ok()?, Timestamp(parts.next()?.parse().ok()?));
                Some(Self::Live(rank, at, TaskId::parse(parts.next()?).ok()?))
            }
            _ => None,
        }
    }

    /// Returns the place as text for clients.
    pub fn in_words(&self) -> String {
        match self {
            Self::Live(rank, at, id) => format!("live:{rank}:{}:{id}", at.0),
            Self::Finished(id) => format!("ended:{id}"),
        }
    }
}

/// A page of tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// The number of unfinished tasks that match the filter.
    pub live: usize,
    /// The place after which the next page begins; that page may be empty if few of many tasks match.
    pub next: Option<TaskPlace>,
    /// Why the finished tasks are missing: they cannot be read at the moment.
    pub unread: Option<Box<str>>,
    /// The number of unfinished tasks in each state, including those that the filter leaves out.
    pub counts: BTreeMap<&'static str, u64>,
    /// The number of completed and cancelled tasks since the store was created.
    pub completed: u64,
    /// The number of failed tasks since the store was created.
    pub failed: u64,
}

impl Provost {
    /// Returns a page of the tasks that match a filter, after a place, at most `limit`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn task_page(
        &self,
        choice: TaskChoice,
        after: Option<TaskPlace>,
        limit: usize,
    ) -> Result<TaskPage, Refusal> {
        let live = self.view(LiveTasks).await?;
        let mut page = TaskPage { completed: live.completed, failed: live.failed, ..TaskPage::default() };
        for task in &live.tasks {
            *page.counts.entry(task_state(task)).or_default() += 1;
        }
        let mut fitting: Vec<&Arc<Task>> = live.tasks.iter().filter(|it| choice.takes(it)).collect();
        page.live = fitting.len();
        // The list is sorted by age; this stable sort keeps that order within a state.
        fitting.sort_by_key(|it| rank(it));
        let is_behind = |it: &&Arc<Task>| after.as_ref().is_none_or(|place| TaskPlace::of(it) > *place);
        let is_live = !matches!(after, Some(TaskPlace::Finished(_)));
        for task in fitting.into_iter().filter(|it| is_live && is_behind(it)) {
            if page.tasks.len() == limit {
                page.next = page.tasks.last().map(|it| TaskPlace::of(it));
                return Ok(page);
            }
            page.tasks.push(task.clone());
        }
        let before = match after {
            Some(TaskPlace::Finished(id)) => Some(id),
            _ => None,
        };
        let without = page.clone();
        let read = move |reader: &mut dyn Reader| -> Result<TaskPage, StoreError> {
            finished(reader, &choice, before, limit, &mut page)?;
            Ok(page)
        };
        match self.engine().read(read).await.map_err(|err| unreadable(&err)) {
            // The unfinished tasks are in memory, and are shown while the store is away.
            Err(Refusal::Unavailable { why }) if is_live => Ok(TaskPage { unread: Some(why), ..without }),
            read => read,
        }
    }
}

/// Fills a page up with finished tasks. The number of tasks that are read for this has a bound, however few of them match.
fn finished(
    reader: &mut dyn Reader,
    choice: &TaskChoice,
    mut before: Option<TaskId>,
    limit: usize,
    page: &mut TaskPage,
) -> Result<(), StoreError> {
    let Some(status) = choice.finished() else { return Ok(()) };
    let mut scanned = 0;
    loop {
        let filter = FinishedFilter { status, before: before.clone() };
        let (found, more) = reader.finished(filter, READ_AT_ONCE, STATUS_BYTES_MAX)?;
        for task in found {
            if page.tasks.len() == limit || scanned == TASK_PAGE_SCANNED_MAX {
                page.next =
                    before.map(TaskPlace::Finished).or_else(|| page.tasks.last().map(|it| TaskPlace::of(it)));
                return Ok(());
            }
            scanned += 1;
            before = Some(task.id().clone());
            if choice.takes(&task) {
                page.tasks.push(Arc::new(task));
            }
        }
        if !more {
            return Ok(());
        }
    }
}
