//! Reads tasks: the unfinished ones from memory, the others from the store.

use std::sync::Arc;

use super::{Provost, conversations, unreadable};
use provost_base::limits::{MY_TASKS_SCANNED_MAX, STATUS_BYTES_MAX, STATUS_FINISHED_MAX};
use provost_base::{AgentId, EventSeq, TaskId};
use provost_domain::command::Status;
use provost_domain::view::{LiveTask, LiveTasks, TaskCounts};
use provost_domain::{Refusal, Task};
use provost_store::{
    CountedRow, FinishedFilter, Found, Reader, SearchQuery, StoreError, UsageBy, UsageQuery, UsageRow,
};

/// The tasks that a caller wants to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskFilter {
    /// All of them, within bounds.
    #[default]
    All,
    /// Tasks that are not finished.
    Active,
    /// Tasks that are finished, with any outcome.
    Finished,
    /// Tasks that were completed or cancelled.
    Completed,
    /// Tasks that have failed.
    Failed,
}

/// Tasks and totals at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The unfinished tasks, oldest first.
    pub active: Vec<Arc<Task>>,
    /// The finished tasks, newest first.
    pub finished: Finished,
    /// The number of completed and cancelled tasks since the store was created.
    pub completed: u64,
    /// The number of failed tasks since the store was created.
    pub failed: u64,
}

/// A bounded page of finished tasks.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Finished tasks, newest first.
    pub tasks: Vec<Task>,
    /// Whether some tasks did not fit.
    pub truncated: bool,
    /// Why there are none: they cannot be read at the moment.
    pub unread: Option<Box<str>>,
}

/// A page of the tasks that an agent has asked for.
#[derive(Clone, Debug, Default)]
pub struct AskedBy {
    /// The tasks: first the unfinished ones, oldest first; then the finished ones, newest first.
    pub tasks: Vec<Arc<Task>>,
    /// The task after which the next page begins; `None` at the end. The next page may be empty.
    pub next: Option<TaskId>,
}

impl Provost {
    /// Returns the tasks that an agent has asked for, or the turns of one session of its editor among them, after the task
    /// `after`, at most `limit`. If many tasks of other agents lie between, there are fewer, and `next` is set.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] if `after` does not exist, [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn asked_by(
        &self,
        (asker, session): (&AgentId, Option<&str>),
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<AskedBy, Refusal> {
        let is_meant = |task: &Task| {
            task.asked_by == *asker && session.is_none_or(|it| conversations::is_turn_of(task, it))
        };
        let live = self.view(LiveTasks).await?.tasks;
        let begin = match &after {
            None => Some(0),
            Some(id) => live.iter().position(|task| task.id() == id).map(|at| at + 1),
        };
        let mut page = AskedBy::default();
        if let Some(begin) = begin {
            for task in live[begin..].iter().filter(|task| is_meant(task)) {
                if page.tasks.len() == limit {
                    page.next = page.tasks.last().map(|task| task.id().clone());
                    return Ok(page);
                }
                page.tasks.push(task.clone());
            }
        } else if let Some(id) = &after {
            self.task(id).await?;
        }
        let (mut before, mut scanned) = (if begin.is_some() { None } else { after }, 0);
        while page.tasks.len() < limit && scanned < MY_TASKS_SCANNED_MAX {
            let filter = FinishedFilter { status: None, before: before.clone() };
            let found =
                self.read(move |it| it.finished(filter, STATUS_FINISHED_MAX, STATUS_BYTES_MAX)).await?;
            let (tasks, more) = found;
            for task in tasks {
                if page.tasks.len() == limit {
                    page.next = before;
                    return Ok(page);
                }
                scanned += 1;
                before = Some(task.id().clone());
                if is_meant(&task) {
                    page.tasks.push(Arc::new(task));
                }
            }
            if !more {
                return Ok(page);
            }
        }
        page.next = before.or_else(|| page.tasks.last().map(|task| task.id().clone()));
        Ok(page)
    }

    /// Returns all unfinished tasks and the newest finished ones, at most `limit`, and within the size of a status answer.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn snapshot(&self, filter: TaskFilter, limit: Option<usize>) -> Result<Snapshot, Refusal> {
        self.snapshot_before(filter, limit, None).await
    }

    /// Returns the same with the finished tasks that follow `before`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn snapshot_before(
        &self,
        filter: TaskFilter,
        limit: Option<usize>,
        before: Option<TaskId>,
    ) -> Result<Snapshot, Refusal> {
        let (active, completed, failed) = match filter {
            TaskFilter::All | TaskFilter::Active => {
                let live = self.view(LiveTasks).await?;
                (live.tasks, live.completed, live.failed)
            }
            TaskFilter::Finished | TaskFilter::Completed | TaskFilter::Failed => {
                let counts = self.view(TaskCounts).await?;
                (Vec::new(), counts.completed, counts.failed)
            }
        };
        let finished = match filter {
            TaskFilter::Active => Finished::default(),
            // The unfinished tasks are in memory, and are shown while the store is away.
            TaskFilter::All if before.is_none() => match self.finished(None, limit, None).await {
                Err(Refusal::Unavailable { why }) => {
                    Finished { truncated: true, unread: Some(why), ..Finished::default() }
                }
                read => read?,
            },
            TaskFilter::All | TaskFilter::Finished => self.finished(None, limit, before).await?,
            TaskFilter::Completed => self.finished(Some(Status::Completed), limit, before).await?,
            TaskFilter::Failed => self.finished(Some(Status::Failed), limit, before).await?,
        };
        Ok(Snapshot { active, finished, completed, failed })
    }

    async fn finished(
        &self,
        status: Option<Status>,
        limit: Option<usize>,
        before: Option<TaskId>,
    ) -> Result<Finished, Refusal> {
        let limit = limit.unwrap_or(STATUS_FINISHED_MAX).min(STATUS_FINISHED_MAX);
        let filter = FinishedFilter { status, before };
        let (tasks, truncated) =
            self.read(move |reader| reader.finished(filter, limit, STATUS_BYTES_MAX)).await?;
        Ok(Finished { tasks, truncated, unread: None })
    }

    /// Returns a task, finished or not.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`], [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn task(&self, id: &TaskId) -> Result<Arc<Task>, Refusal> {
        if let Some(task) = self.view(LiveTask(id.clone())).await? {
            return Ok(task);
        }
        let id = id.clone();
        let found = self.read(move |reader| reader.task(&id)).await?;
        found.map(Arc::new).ok_or(Refusal::TaskNotFound)
    }

    /// Returns sums of the usage that runs report, and the total in that time.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn usage(&self, query: UsageQuery) -> Result<(Vec<UsageRow>, UsageRow), Refusal> {
        self.read(move |reader| {
            let all = UsageQuery { by: UsageBy::Nothing, since: query.since, limit: 1 };
            let total = reader.usage(&all)?.pop().unwrap_or_default();
            Ok((reader.usage(&query)?, total))
        })
        .await
    }

    /// Returns sums of the usage that the daemon itself has counted, a row for each model of each key.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn counted(&self, query: UsageQuery) -> Result<Vec<CountedRow>, Refusal> {
        self.read(move |reader| reader.counted(&query)).await
    }

    /// Returns the usage that the daemon has counted for a task, a row for each model.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn counted_of(&self, task: &TaskId) -> Result<Vec<CountedRow>, Refusal> {
        let task = task.clone();
        self.read(move |reader| reader.counted_of(&task)).await
    }

    /// Returns tasks, messages and events that contain all words of a query, and the end of the journal at that moment.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn search(&self, query: SearchQuery) -> Result<(Found, EventSeq), Refusal> {
        // The search must find everything that is on record by now.
        let head = self.engine().journal_head().await?.seq;
        self.engine().index().await?;
        Ok((self.read(move |reader| reader.search(&query)).await?, head))
    }

    /// Runs a query on the store.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.engine().read(question).await.map_err(|err| unreadable(&err))
    }

    /// Waits until a task has ended, or differs from what `seen` accepts, or `patience` is over; returns the task as it is then.
    ///
    /// # Errors
    /// As [`Provost::task`].
    pub async fn task_after(
        &self,
        id: &TaskId,
        seen: impl Fn(&Task) -> bool,
        patience: std::time::Duration,
    ) -> Result<Arc<Task>, Refusal> {
        if patience.is_zero() {
            return self.task(id).await;
        }
        let until = tokio::time::Instant::now() + patience;
        let seen = &seen;
        let changed = self.engine().wait_for(
            until,
            |event| event.kind.task() == Some(id),
            || async move {
                let task = self.task(id).await?;
                Ok((task.state.is_finished() || !seen(&task)).then_some(task))
            },
        );
        match changed.await? {
            Some(task) => Ok(task),
            None => self.task(id).await,
        }
    }
}
