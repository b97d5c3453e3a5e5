//! Flushes: statements that are sent together, and the beginning of the next transaction, which may be sent right behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::super::trouble;
use super::{Session, Step, Work, not_linked, run};
use crate::StoreError;
use provost_base::limits::TURN_MS_MAX;

/// The answers of a flush, statement by statement.
pub(in super::super) type Answers = Vec<Result<Vec<Row>, Error>>;

/// Statements that were sent, and the answers that have come.
pub(super) struct Sent<'a, T> {
    all: Vec<Work<'a, T>>,
    answers: Vec<Option<T>>,
}

impl<'a, T> Sent<'a, T> {
    /// They are sent in their order, when they are polled for the first time.
    pub(super) fn of(all: Vec<Work<'a, T>>) -> Self {
        let answers = all.iter().map(|_| None).collect();
        Self { all, answers }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waits = false;
        for (work, answer) in self.all.iter_mut().zip(&mut self.answers) {
            if answer.is_none() {
                match work.as_mut().poll(cx) {
                    Poll::Ready(it) => *answer = Some(it),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Waits for all answers.
    pub(super) async fn answers(mut self) -> Vec<T> {
        std::future::poll_fn(|cx| self.poll(cx)).await;
        self.answers.into_iter().flatten().collect()
    }

    /// Waits for all answers, and has `next` sent behind these.
    async fn answers_before<U>(mut self, next: &mut Sent<'_, U>) -> Vec<T> {
        let mut has_sent = false;
        std::future::poll_fn(|cx| {
            let done = self.poll(cx);
            if !std::mem::replace(&mut has_sent, true) {
                let _not_awaited = next.poll(cx);
            }
            done
        })
        .await;
        self.answers.into_iter().flatten().collect()
    }
}

/// A transaction that was begun with the commit of the one before it.
pub(super) struct Ahead {
    sent: Sent<'static, Result<Vec<Row>, Error>>,
    since: Instant,
}

impl Session {
    /// Sends all statements at once, and waits for all answers. An error of the server belongs to its statement;
    /// later statements of the same transaction then fail, too, and COMMIT answers without an error although
    /// nothing was stored: check each answer.
    ///
    /// # Errors
    /// [`StoreError::Away`] if answers are missing. The connection is gone then.
    pub(in super::super) fn flush(&mut self, steps: &[Step], limit: Duration) -> Result<Answers, StoreError> {
        self.flush_before(steps, Vec::new(), limit)
    }

    /// Does the same, and sends the beginning of another transaction behind it, whose answers [`Session::begun_ahead`] waits for. Anything
    /// else that is sent meanwhile ends that transaction first.
    ///
    /// # Errors
    /// As for [`Session::flush`].
    pub(in super::super) fn flush_before(
        &mut self,
        steps: &[Step],
        next: Vec<Step>,
        limit: Duration,
    ) -> Result<Answers, StoreError> {
        self.end_ahead()?;
        self.prepare(steps, limit)?;
        let Some(link) = &self.link else { return Err(not_linked()) };
        link.warned.store(false, Ordering::Release);
        let query = |step: &Step| {
            let statement = link.statements.get(&*step.sql)?;
            Some((link.client.clone(), statement.clone()))
        };
        let all = steps.iter().filter_map(|step| query(step).map(|it| sent(it, step)));
        let all = Sent::of(all.collect());
        let has_all = next.iter().all(|step| query(step).is_some());
        let next = next.into_iter().filter(|_| has_all);
        let next = next.filter_map(|step| query(&step).map(|it| sent_with(it, step)));
        let mut next = Sent::of(next.collect());
        let work = async { timeout(limit, all.answers_before(&mut next)).await };
        let answered = run(&self.runtime, work)?;
        if !next.all.is_empty() {
            self.ahead = Some(Ahead { sent: next, since: Instant::now() });
        }
        self.judged(answered.ok(), limit)
    }

    /// Returns the answers to the transaction that was begun ahead; `None` if there is none.
    ///
    /// # Errors
    /// As for [`Session::flush`].
    pub(in super::super) fn begun_ahead(&mut self, limit: Duration) -> Result<Option<Answers>, StoreError> {
        let Some(ahead) = self.ahead.take() else { return Ok(None) };
        let work = async {
            let answers = timeout(limit, ahead.sent.answers()).await;
            // They may have come long ago: the end of a session that the server has ended since is seen, too, once the connection is driven.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            answers
        };
        let answered = run(&self.runtime, work)?;
        self.judged(answered.ok(), limit).map(Some)
    }

    /// Returns how long ago a transaction was begun ahead that nothing has used yet.
    pub(in super::super) fn ahead_for(&self) -> Option<Duration> {
        self.ahead.as_ref().map(|it| it.since.elapsed())
    }

    /// Ends a transaction that was begun ahead.
    ///
    /// # Errors
    /// As for [`Session::flush`].
    pub(in super::super) fn end_ahead(&mut self) -> Result<(), StoreError> {
        let limit = Duration::from_millis(TURN_MS_MAX);
        match self.begun_ahead(limit)? {
            Some(_) => self.flush(&[Step::new("rollback")], limit).map(drop),
            None => Ok(()),
        }
    }

    /// Takes the answers of a flush; without all of them, the connection is dropped, since what was sent cannot be taken back.
    fn judged(&mut self, answers: Option<Answers>, limit: Duration) -> Result<Answers, StoreError> {
        let Some(answers) = answers else {
            self.drop_link();
            return Err(StoreError::silence(limit));
        };
        let is_lost = |it: &Result<_, Error>| it.as_ref().is_err_and(|err| !trouble::was_answered(err));
        if answers.iter().any(is_lost) {
            self.drop_link();
            let lost = answers.into_iter().filter_map(Result::err).find(|err| !trouble::was_answered(err));
            return Err(lost.map_or_else(not_linked, trouble::store_error));
        }
        if answers.iter().any(|it| it.as_ref().is_err_and(trouble::is_of_other_tables)) {
            self.drop_link();
        }
        Ok(answers)
    }
}

type Prepared = (Arc<Client>, Statement);

fn sent((client, statement): Prepared, step: &Step) -> Work<'_, Result<Vec<Row>, Error>> {
    Box::pin(async move {
        let values: Vec<_> = step.values.iter().map(|it| &**it as &(dyn ToSql + Sync)).collect();
        client.query(&statement, &values).await
    })
}

fn sent_with(prepared: Prepared, step: Step) -> Work<'static, Result<Vec<Row>, Error>> {
    Box::pin(async move { sent(prepared, &step).await })
}
