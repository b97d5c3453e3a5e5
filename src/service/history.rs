//! Reads tasks wherever they are: the unfinished in memory, the rest in the store.

use std::sync::Arc;

use super::{Provost, unreadable};
use provost_base::limits::{MY_TASKS_SCANNED_MAX, STATUS_BYTES_MAX, STATUS_FINISHED_MAX};
use provost_base::{AgentId, EventSeq, TaskId};
use provost_domain::command::Status;
use provost_domain::view::{LiveTask, LiveTasks, TaskCounts};
use provost_domain::{Refusal, Task};
use provost_store::{
    CountedRow, FinishedFilter, Found, Reader, SearchQuery, StoreError, UsageBy, UsageQuery, UsageRow,
};

/// Which tasks a caller wants to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskFilter {
    /// All of them, within bounds.
    #[default]
    All,
    /// Tasks that are not finished.
    Active,
    /// Tasks that are finished, whatever their end.
    Finished,
    /// The completed and cancelled.
    Completed,
    /// Tasks that have failed.
    Failed,
}

/// Tasks and totals at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Unfinished, oldest first.
    pub active: Vec<Arc<Task>>,
    /// Finished, newest first.
    pub finished: Finished,
    /// Completed and cancelled since the beginning.
    pub completed: u64,
    /// Failed since the beginning.
    pub failed: u64,
}

/// A bounded page of finished tasks.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Finished tasks, newest first.
    pub tasks: Vec<Task>,
    /// Whether there are more than fit.
    pub truncated: bool,
}

/// A page of the tasks that an agent has asked for.
#[derive(Clone, Debug, Default)]
pub struct AskedBy {
    /// Unfinished, oldest first; then finished, newest first.
    pub tasks: Vec<Arc<Task>>,
    /// Where the next page begins; `None` at the end. The next page may be empty.
    pub next: Option<TaskId>,
}

impl Provost {
    /// The tasks that an agent has asked for, behind `after`, `limit` at most. Where many tasks of others lie
    /// between, there are fewer, and a place where the next page begins.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`] for a place that is not there, [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn asked_by(
        &self,
        asker: &AgentId,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<AskedBy, Refusal> {
        let live = self.view(LiveTasks).await?.tasks;
        let begin = match &after {
            None => Some(0),
            Some(id) => live.iter().position(|task| task.id() == id).map(|at| at + 1),
        };
        let mut page = AskedBy::default();
        if let Some(begin) = begin {
            for task in live[begin..].iter().filter(|task| task.asked_by == *asker) {
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
                if task.asked_by == *asker {
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

    /// All unfinished tasks and the newest finished ones, within `limit` and the bytes of a status answer.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn snapshot(&self, filter: TaskFilter, limit: Option<usize>) -> Result<Snapshot, Refusal> {
        self.snapshot_before(filter, limit, None).await
    }

    /// The same, with finished tasks from behind one on.
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
        Ok(Finished { tasks, truncated })
    }

    /// One task, finished or not.
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

    /// Sums of what runs say that they have used, and the sum of all of them in that time.
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

    /// Sums of what the daemon has counted itself, a row for each model of each key.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn counted(&self, query: UsageQuery) -> Result<Vec<CountedRow>, Refusal> {
        self.read(move |reader| reader.counted(&query)).await
    }

    /// What the daemon has counted of a task, a row for each model.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn counted_of(&self, task: &TaskId) -> Result<Vec<CountedRow>, Refusal> {
        let task = task.clone();
        self.read(move |reader| reader.counted_of(&task)).await
    }

    /// Tasks, messages and events that have all the words of a query; and the end of the journal at that moment.
    ///
    /// # Errors
    /// [`Refusal::Busy`] or [`Refusal::Unavailable`].
    pub async fn search(&self, query: SearchQuery) -> Result<(Found, EventSeq), Refusal> {
        // What is on record by now is to be found.
        let head = self.engine().journal_head().await?.seq;
        self.engine().index().await?;
        Ok((self.read(move |reader| reader.search(&query)).await?, head))
    }

    /// Asks the store something.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.engine().read(question).await.map_err(|err| unreadable(&err))
    }

    /// Waits until something is said about a task, or it changes; returns it as it is then.
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
