//! Tasks: delegating, showing, reporting and cancelling.

use super::Own;
use super::handle::{Answered, Call, Handles, patience};
use super::map::{self, OwnError};
use provost_api::{endpoints, wire};
use provost_base::Timestamp;
use provost_base::limits::{SEARCH_LEN_MAX, TASK_PAGE_MAX};
use provost_domain::command::AckTask;
use provost_domain::view::WaitingOne;
use provost_domain::{Answer, AwaitedNeeds, IdlestInPool, PlaceInLine, Task};
use provost_service::{Chunk, Stream, TASK_STATES, TaskChoice, TaskFilter, TaskPlace};

impl Handles<endpoints::Delegate> for Own {
    async fn handle(&self, call: &Call, body: wire::Delegate) -> Answered<wire::Delegated> {
        let body = self.with_worker(body).await?;
        let verb = map::delegate(body)?;
        let task = verb.task.clone();
        Ok(match self.0.provost.delegate(&call.who, verb).await.map_err(map::fault)? {
            Answer::Done(done) => map::delegated(&task, &done.state),
            Answer::Parked(id) => map::parked(&task, id),
            Answer::Denied(denial) => map::denied(&task, denial),
        })
    }
}

impl Handles<endpoints::Screenshot> for Own {
    async fn handle(&self, call: &Call, body: wire::Screenshot) -> Answered<wire::Delegated> {
        let verb = map::screenshot(body)?;
        let task = verb.task.clone();
        Ok(match self.0.provost.submit_judged(&call.who, verb).await.map_err(map::fault)? {
            Answer::Done(done) => map::delegated(&done.task, &done.state),
            Answer::Parked(id) => {
                // If the caller has asked before, this is the task that waits already.
                let waiting = self.0.provost.view(WaitingOne(id)).await.map_err(map::fault)?;
                let waiting = waiting.and_then(|it| it.task().cloned());
                map::parked(waiting.as_ref().unwrap_or(&task), id)
            }
            Answer::Denied(denial) => map::denied(&task, denial),
        })
    }
}

impl Handles<endpoints::Tasks> for Own {
    async fn handle(&self, _call: &Call, query: wire::TasksQuery) -> Answered<wire::Tasks> {
        let filter = match query.filter.as_deref().unwrap_or("all") {
            "all" => TaskFilter::All,
            "active" => TaskFilter::Active,
            "finished" => TaskFilter::Finished,
            "completed" => TaskFilter::Completed,
            "failed" => TaskFilter::Failed,
            other => {
                return Err(OwnError::invalid(format!(
                    "filter '{other}' is not one of all, active, finished, completed, failed"
                )));
            }
        };
        let before = query.before.map(|it| map::task_id(&it)).transpose()?;
        let snapshot =
            self.0.provost.snapshot_before(filter, query.limit, before).await.map_err(map::fault)?;
        let there = self.0.provost.with_changes(snapshot.finished.tasks.iter()).await;
        let awaited = self.0.provost.view(AwaitedNeeds).await.map_err(map::fault)?;
        Ok(map::tasks(&snapshot, &there, &awaited))
    }
}

impl Handles<endpoints::Task> for Own {
    async fn handle(&self, _call: &Call, query: wire::TaskQuery) -> Answered<wire::Task> {
        let id = map::task_id(&query.id)?;
        let seen = query.seen.unwrap_or_default();
        let unchanged = |task: &provost_domain::Task| task.updated_at.rfc3339() == seen;
        let task =
            self.0.provost.task_after(&id, unchanged, patience(query.wait_ms)).await.map_err(map::fault)?;
        if !task.state.is_queued() {
            return Ok(self.told(&task).await);
        }
        let awaited = self.0.provost.view(AwaitedNeeds).await.map_err(map::fault)?;
        let place = self.0.provost.view(PlaceInLine(task.id().clone())).await.map_err(map::fault)?;
        Ok(wire::Task { place, ..map::with_needs(self.told(&task).await, &awaited) })
    }
}

impl Own {
    /// Names the worker of a delegation to a pool: the one with the least to do; for a repeated request, the worker that it has.
    async fn with_worker(&self, body: wire::Delegate) -> Answered<wire::Delegate> {
        let Some(pool) = body.pool.as_deref().map(str::trim).filter(|it| !it.is_empty()) else {
            return Ok(body);
        };
        if !body.worker.trim().is_empty() {
            return Ok(body);
        }
        if let Some(id) = &body.task
            && let Ok(known) = self.0.provost.task(&map::task_id(id)?).await
        {
            return Ok(wire::Delegate { worker: known.order.worker.to_string(), ..body });
        }
        let worker = self.0.provost.view(IdlestInPool(pool.into())).await.map_err(map::fault)?;
        let worker = worker.ok_or_else(|| {
            let pool: String = pool.chars().take(64).collect();
            OwnError::invalid(format!(
                "there is no pool '{pool}', or none of its workers can be used; `[pool.NAME]` in the settings names pools"
            ))
        })?;
        Ok(wire::Delegate { worker: worker.to_string(), ..body })
    }

    /// Encodes a task with the state of its changes.
    pub(super) async fn told(&self, task: &Task) -> wire::Task {
        let there = self.0.provost.with_changes(std::iter::once(task)).await;
        self.with_counted(map::task(task, there.contains(task.id())), task).await
    }
}

impl Handles<endpoints::Output> for Own {
    async fn handle(&self, _call: &Call, query: wire::OutputQuery) -> Answered<wire::Output> {
        let id = map::task_id(&query.id)?;
        let (limit, patience) = (query.limit.unwrap_or(usize::MAX), patience(query.wait_ms));
        let page = match query.in_words {
            true => self.0.provost.output_in_words(&id, query.from, (patience, limit)).await,
            false => self.0.provost.output(&id, query.from, patience).await.map(|it| it.up_to(limit)),
        };
        let is_empty = page.as_ref().is_some_and(|it| it.chunks.is_empty() && !it.finished);
        let silent = if is_empty { self.0.provost.silent_host(&id) } else { None };
        let mut end = query.from;
        let chunk = |it: Chunk| {
            let lost = it.at.saturating_sub(end);
            end = it.at.saturating_add(it.bytes.len() as u64);
            wire::Chunk {
                stream: if it.stream == Stream::Out { "stdout" } else { "stderr" }.into(),
                text: String::from_utf8_lossy(&it.bytes).into_owned(),
                lost,
            }
        };
        Ok(match page {
            Some(page) => wire::Output {
                done: page.finished && page.chunks.is_empty(),
                next: page.next,
                chunks: page.chunks.into_iter().map(chunk).collect(),
                note: silent.map(|it| {
                    format!(
                        "it runs on host {}, which does not answer now; its output comes when it ends",
                        it.short()
                    )
                }),
            },
            None => wire::Output { chunks: Vec::new(), next: query.from, done: true, note: None },
        })
    }
}

impl Handles<endpoints::Cancel> for Own {
    async fn handle(&self, call: &Call, body: wire::Cancel) -> Answered<wire::TaskState> {
        let verb = map::cancel(body)?;
        let task = verb.task.to_string();
        let done = self.submit(&call.who, verb).await?;
        Ok(wire::TaskState { task, state: map::state_word(&done.state).into() })
    }
}

impl Handles<endpoints::Report> for Own {
    async fn handle(&self, call: &Call, body: wire::Report) -> Answered<wire::TaskState> {
        let task = body.task.clone();
        if body.status == "ack" {
            self.submit(&call.who, AckTask { task: map::task_id(&task)? }).await?;
            return Ok(wire::TaskState { task, state: "acknowledged".into() });
        }
        let done = self.submit(&call.who, map::report(body)?).await?;
        Ok(wire::TaskState { task, state: map::state_word(&done.state).into() })
    }
}

impl Handles<endpoints::TaskPage> for Own {
    async fn handle(&self, _call: &Call, query: wire::TaskPageQuery) -> Answered<wire::TaskPage> {
        let state = match query.state.as_deref() {
            None => None,
            Some(wanted) => Some(TASK_STATES.into_iter().find(|it| *it == wanted).ok_or_else(|| {
                let wanted: String = wanted.chars().take(40).collect();
                OwnError::invalid(format!("state '{wanted}' is not one of {}", TASK_STATES.join(", ")))
            })?),
        };
        let after = query.after.as_deref().map(|it| {
            TaskPlace::parse(it).ok_or_else(|| {
                OwnError::invalid("after is no place where a page ended").hint("pass on `next` as it came")
            })
        });
        let text = query.text.unwrap_or_default();
        if text.len() > SEARCH_LEN_MAX {
            return Err(OwnError::invalid(format!("text has more than {SEARCH_LEN_MAX} bytes")));
        }
        let now = self.0.provost.engine().now();
        let since = query.within_ms.map(|ms| Timestamp(now.0.saturating_sub_unsigned(ms)));
        let choice = TaskChoice::new(state, query.worker.as_deref(), query.by.as_deref(), &text).since(since);
        let limit = query.limit.unwrap_or(TASK_PAGE_MAX).clamp(1, TASK_PAGE_MAX);
        let page = self.0.provost.task_page(choice, after.transpose()?, limit).await.map_err(map::fault)?;
        let finished = page.tasks.iter().filter(|it| it.state.is_finished()).map(|it| &**it);
        let there = self.0.provost.with_changes(finished).await;
        let awaited = self.0.provost.view(AwaitedNeeds).await.map_err(map::fault)?;
        let count = |state: &str| page.counts.get(state).copied().unwrap_or(0);
        Ok(wire::TaskPage {
            tasks: page.tasks.iter().map(|it| map::row(it, &there, &awaited)).collect(),
            live: page.live,
            next: page.next.map(|it| it.in_words()),
            unread: page.unread.map(String::from),
            counts: wire::TaskCounts {
                awaiting: count("awaiting"),
                running: count("running"),
                assigned: count("assigned"),
                queued: count("queued"),
                waiting: count("waiting"),
                retrying: count("retrying"),
                completed: page.completed,
                failed: page.failed,
            },
        })
    }
}
