//! Puts the use of a run's calls to models on record, and holds the next call until the budgets allow it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::engine_handle::EngineHandle;
use provost_base::limits::BUDGET_HOLD_MS_MAX;
use provost_base::{ApprovalId, Json, TaskId};
use provost_domain::command::{GoOn, NoteCalls, Record};
use provost_domain::{Answer, Counted, Event, EventKind, Facts, MayCall, NextCall, Refusal};
use provost_egress::{CallCount, Doing, Meter};

/// The meter of one run.
#[derive(Clone)]
pub(super) struct TaskMeter(Arc<Inner>);

struct Inner {
    handle: EngineHandle,
    task: TaskId,
    /// Whether a call that was not made is on record already.
    is_stopped: AtomicBool,
}

impl TaskMeter {
    pub(super) fn new(handle: EngineHandle, task: TaskId) -> Self {
        Self(Arc::new(Inner { handle, task, is_stopped: AtomicBool::new(false) }))
    }
}

impl Meter for TaskMeter {
    fn note(&self, used: Vec<CallCount>) -> Doing<()> {
        let inner = self.0.clone();
        Box::pin(async move { inner.note(used).await })
    }

    fn may_call(&self, is_deferred: bool) -> Doing<Result<(), String>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let answer = inner.may_call(is_deferred).await;
            if let Err(why) = &answer {
                inner.note_stop(why).await;
            }
            answer
        })
    }
}

impl Inner {
    async fn note(&self, used: Vec<CallCount>) {
        let calls = used.into_iter().map(|it| {
            let counted = Counted {
                calls: it.calls,
                input: it.input,
                output: it.output,
                reasoning: it.reasoning,
                cache_read: it.cache_read,
                cache_write: it.cache_write,
                guessed_input: it.guessed_input,
                guessed_output: it.guessed_output,
            };
            (it.model.unwrap_or_default(), counted)
        });
        let verb = NoteCalls { task: self.task.clone(), calls: calls.collect() };
        if let Err(refusal) = self.handle.tell(verb).await {
            tracing::error!(%refusal, "what a run's calls have used is not on record");
        }
    }

    /// Waits until the next call may be made. Fails closed: if the core does not answer, the call is not made.
    async fn may_call(&self, is_deferred: bool) -> Result<(), String> {
        let until = Instant::now() + Duration::from_millis(BUDGET_HOLD_MS_MAX);
        let next = NextCall { task: self.task.clone(), is_deferred };
        loop {
            let may = self.handle.look_at(next.clone()).await.map_err(|refusal| refusal.to_string())?;
            let asks = match may {
                MayCall::Yes => return Ok(()),
                MayCall::No(why) => return Err(why.into()),
                MayCall::Ask(asks) => *asks,
            };
            let asked = self.handle.persist(|| {
                let (engine, system) = (&self.handle.engine, &self.handle.system);
                engine.submit_judged(system, asks.clone(), Facts::default())
            });
            match asked.await.map_err(|refusal| refusal.to_string())? {
                Answer::Done(_) => {}
                Answer::Denied(denial) => return Err(denial.reason.into()),
                Answer::Parked(approval) => self.answered(approval, &asks, until).await?,
            }
        }
    }

    /// Waits until a person has answered the approval.
    async fn answered(&self, approval: ApprovalId, asks: &GoOn, until: Instant) -> Result<(), String> {
        let concerns = |event: &Event| match &event.kind {
            EventKind::ApprovalAnswered { approval: it, .. }
            | EventKind::ApprovalExpired { approval: it } => *it == approval,
            _ => false,
        };
        let waits = || async {
            let waiting = self.handle.engine.view(provost_domain::view::WaitingOne(approval)).await?;
            Ok::<_, Refusal>(waiting.is_none().then_some(()))
        };
        let answered = self.handle.engine.wait_for(until, concerns, waits).await;
        match answered.map_err(|refusal| refusal.to_string())? {
            Some(()) => Ok(()),
            None => Err(format!(
                "{} of the {} that this budget allows are used, and no person has said yet whether it goes on: `provost approval list` shows approval {approval}",
                asks.limit.text(asks.used),
                asks.limit.text(asks.limit.most()),
            )),
        }
    }

    /// Records that a call was not made, once for each run: an agent may try again as often as it likes.
    async fn note_stop(&self, why: &str) {
        if self.is_stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        let details = Json::from_value(&serde_json::json!({ "why": why }));
        let what = Record { what: "budget.stopped".into(), subject: self.task.as_str().into(), details };
        if let Err(refusal) = self.handle.tell(what).await {
            tracing::error!(%refusal, "that a budget has stopped a run is not on record");
        }
    }
}
