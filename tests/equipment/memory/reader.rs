//! A reader beside the engine, over a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use super::{Disk, crew, key, lock};
use provost_base::limits::EVENT_PAGE_BYTES_MAX;
use provost_base::{EventSeq, JobId, Json, TaskId};
use provost_domain::{Counted, JobResult, SpendChange, Task, Usage};
use provost_store::journal::{GIVEN_UP, Walk};
use provost_store::{
    Anchor, CountedRow, FinishedFilter, Found, Letters, Reader, SearchQuery, See, StoreError, StoredEvent,
    StoredPost, TimelineQuery, UsageBy, UsageQuery, UsageRow, Verdict, codec,
};

/// Reads the same rows beside the store.
pub(super) struct MemoryReader(pub(super) Arc<Mutex<Disk>>);

impl Reader for MemoryReader {
    fn finished(
        &mut self,
        filter: FinishedFilter,
        limit: usize,
        bytes_max: usize,
    ) -> Result<(Vec<Task>, bool), StoreError> {
        let disk = lock(&self.0);
        let all = &disk.read()?.finished;
        let end = match &filter.before {
            None => all.len(),
            Some(id) => all.iter().position(|task| task.id() == id).unwrap_or(0),
        };
        let wanted = |task: &&Arc<Task>| filter.status.is_none_or(|it| it == task.state.status());
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for task in all[..end].iter().rev().filter(wanted) {
            bytes += codec::text(task)?.len();
            if tasks.len() >= limit || (bytes > bytes_max && !tasks.is_empty()) {
                return Ok((tasks, true));
            }
            tasks.push(Task::clone(task));
        }
        Ok((tasks, false))
    }

    fn search(&mut self, _query: &SearchQuery) -> Result<Found, StoreError> {
        Ok(Found::default())
    }

    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let disk = lock(&self.0);
        Ok(disk.read()?.finished.iter().find(|task| task.id() == id).map(|task| Task::clone(task)))
    }

    fn events_after(&mut self, seq: EventSeq, limit: u16) -> Result<Vec<StoredEvent>, StoreError> {
        // The journal is dense, so an event's number says where it lies.
        let known = usize::try_from(seq.0).unwrap_or(usize::MAX);
        let disk = lock(&self.0);
        let mut bytes = 0_usize;
        let page = disk.read()?.events.iter().skip(known).take(limit.into()).take_while(|it| {
            let room = bytes < EVENT_PAGE_BYTES_MAX;
            bytes = bytes.saturating_add(it.body.as_ref().map_or(0, |body| body.len()));
            room
        });
        Ok(page.cloned().collect())
    }

    fn each_letter(
        &mut self,
        which: &Letters,
        bytes_max: usize,
        each: &mut dyn FnMut(StoredPost) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let disk = lock(&self.0);
        let rows = disk.read()?;
        let found = rows.posts.letters(&rows.events, which, bytes_max)?;
        let _ = found.into_iter().try_for_each(each);
        Ok(())
    }

    fn imported(&mut self, ids: &[String]) -> Result<BTreeSet<String>, StoreError> {
        crew::imported(&lock(&self.0).read()?.events, ids)
    }

    fn job_order(&mut self, id: &JobId) -> Result<Option<Json>, StoreError> {
        Ok(lock(&self.0).read()?.job_orders.get(id).cloned())
    }

    fn job_result(&mut self, id: &JobId) -> Result<Option<JobResult>, StoreError> {
        Ok(lock(&self.0).read()?.job_results.get(id).map(|it| JobResult::clone(it)))
    }

    fn usage(&mut self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let disk = lock(&self.0);
        let since = query.since.map_or(i64::MIN, |it| it.0);
        let mut rows: BTreeMap<Box<str>, UsageRow> = BTreeMap::new();
        for task in disk.read()?.finished.iter().filter(|task| task.updated_at.0 >= since) {
            let used = task.notes.iter().rev().find_map(|it| Usage::of_metadata(it.report.metadata.as_ref()));
            let Some(used) = used else { continue };
            let key: Box<str> = match query.by {
                UsageBy::Agent => task.order.worker.as_str().into(),
                UsageBy::Day => task.updated_at.rfc3339()[..10].into(),
                UsageBy::Model => used.model.clone().unwrap_or_default(),
                UsageBy::Task => task.id().as_str().into(),
                UsageBy::Nothing => "".into(),
            };
            let row = rows.entry(key.clone()).or_default();
            (row.key, row.runs) = (key, row.runs + 1);
            row.worker = Some(task.order.worker.as_str().into());
            row.used.add(&used);
        }
        Ok(rows.into_values().take(query.limit).collect())
    }

    fn counted(&mut self, query: &UsageQuery) -> Result<Vec<CountedRow>, StoreError> {
        let disk = lock(&self.0);
        let since = query.since.map_or(i64::MIN, |it| it.0);
        let mut rows: BTreeMap<(Box<str>, Box<str>), CountedRow> = BTreeMap::new();
        for call in &disk.read()?.calls {
            let SpendChange::Calls { task, worker, at, model, counted } = call else { continue };
            if at.0 < since {
                continue;
            }
            let key: Box<str> = match query.by {
                UsageBy::Agent => worker.as_str().into(),
                UsageBy::Day => at.rfc3339()[..10].into(),
                UsageBy::Model => model.clone(),
                UsageBy::Task => task.as_str().into(),
                UsageBy::Nothing => "".into(),
            };
            let worker = Some(worker.as_str().into());
            let row =
                || CountedRow { key: key.clone(), worker, model: model.clone(), counted: Counted::default() };
            rows.entry((key.clone(), model.clone())).or_insert_with(row).counted.add(counted);
        }
        Ok(rows.into_values().collect())
    }

    fn counted_of(&mut self, task: &TaskId) -> Result<Vec<CountedRow>, StoreError> {
        let all = UsageQuery { by: UsageBy::Task, since: None, limit: usize::MAX };
        Ok(self.counted(&all)?.into_iter().filter(|it| *it.key == *task.as_str()).collect())
    }

    fn timeline(&mut self, query: &TimelineQuery) -> Result<Vec<StoredEvent>, StoreError> {
        crew::timeline(&lock(&self.0).read()?.events, query)
    }

    fn verify_with(&mut self, anchor: Option<Anchor>, see: &mut See<'_>) -> Result<Verdict, StoreError> {
        let disk = lock(&self.0);
        let (rows, key) = (disk.read()?, key());
        let mut walk = Walk::whole(&key, rows.checkpoints.clone(), Vec::new(), anchor);
        for event in &rows.events {
            if let Err(fault) = walk.step(event) {
                return Ok(fault.into());
            }
            if !see(event) {
                return Ok(Verdict::CannotCheck(GIVEN_UP.into()));
            }
        }
        Ok(walk.finish(rows.counters.event))
    }
}
