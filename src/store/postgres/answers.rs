//! Answers that people gave at other hosts while this daemon was away: found in the journal at a start or a reload,
//! and checked by the caller's rule about passkeys, before any owed effect begins.

use tokio_postgres::Row;

use super::gaps::{self, gaps};
use super::session::Step;
use super::{PostgresStore, load, unreadable};
use crate::StoreError;
use crate::codec::{int, nat};
use crate::host_keys::At;
use provost_base::{EntryNo, EventSeq, TaskId};
use provost_domain::{AnsweredAway, Effect, Owed, PastEvent, State};

/// The statement for other hosts' answers after an event.
const ANSWERED: &str =
    "select seq, kind, body from provost.event where repo = $1 and seq > $2 and kind = 'approval_answered'
    and body::json->>'host' is distinct from $3 order by seq";

/// The statement for events about passkeys, and for the questions and answers of these approvals, each with the link of the event before it.
const ABOUT: &str = "select seq, at, kind, actor, task, body, substr(hash, 1, 33), substr(mac, 1, 33),
        (select substr(b.mac, 1, 33) from provost.event b where b.repo = e.repo and b.seq = e.seq - 1)
    from provost.event e where repo = $1 and seq <= (select event from provost.repo where id = $1)
    and (kind in ('passkey_added', 'passkey_revoked', 'passkeys_reset') or (kind in ('approval_asked', 'approval_answered')
        and (body::json->'kind'->kind->>'approval')::bigint = any($2))) order by seq";

impl PostgresStore {
    /// Has the answers since an event checked, with the state of the rows, and the tasks that this daemon is about to begin.
    ///
    /// # Errors
    /// [`StoreError::BrokenLog`] with the entry that does not prove its content; it is remembered.
    pub(super) fn check_answers(
        &mut self,
        (state, owed): (&State, &[Owed]),
        since: At,
    ) -> Result<(), StoreError> {
        let Some(check) = &self.answers else { return Ok(()) };
        let here = self.remembered.host;
        let step = Step::new(ANSWERED).with(self.repo).with(int(since.event.0)?).with(here.to_string());
        let answered = self.session.rows(step)?;
        let begins: Vec<TaskId> = owed.iter().filter_map(begins).collect();
        let of_tasks = begins.iter().filter_map(|it| state.tasks.get(it)?.approval);
        let mut approvals = of_tasks.map(|it| int(it.0)).collect::<Result<Vec<i64>, _>>()?;
        for row in &answered {
            approvals.extend(approval_of(&past(row)?));
        }
        if approvals.is_empty() {
            return Ok(());
        }
        let rows = self.session.rows(Step::new(ABOUT).with(self.repo).with(approvals))?;
        let gaps = gaps(&mut self.session, self.repo)?;
        let mut events = Vec::with_capacity(rows.len());
        for row in &rows {
            let it = load::event(row)?;
            gaps::must_be_of_the_chain(&self.key, &it, row, &gaps)?;
            events.push(PastEvent { seq: it.seq, kind: it.kind, body: it.body });
        }
        let Err((seq, why)) = check(state, &AnsweredAway { here, since: since.event, events, begins }) else {
            return Ok(());
        };
        let n = self.entry_of(seq)?;
        let what = format!("event {seq}: {why}");
        self.keys.distrust(n, &what);
        self.keys.known.checked = since;
        self.keys.keep()?;
        Err(StoreError::BrokenLog { n, what: what.into() })
    }

    /// Returns the entry with an event.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(super) fn entry_of(&mut self, seq: EventSeq) -> Result<EntryNo, StoreError> {
        let sql = "select n from provost.signature where repo = $1 and event >= $2 order by event limit 1";
        let rows = self.session.rows(Step::new(sql).with(self.repo).with(int(seq.0)?))?;
        let n = rows.first().map(|it| it.try_get(0)).transpose().map_err(unreadable)?;
        Ok(EntryNo(nat(n.unwrap_or(0))?))
    }
}

/// Returns the task that an effect begins, if it has not begun.
fn begins(owed: &Owed) -> Option<TaskId> {
    match &owed.effect {
        Effect::SpawnWorker { task } | Effect::Capture { task, .. } if !owed.started => Some(task.clone()),
        _ => None,
    }
}

fn past(row: &Row) -> Result<PastEvent, StoreError> {
    Ok(PastEvent {
        seq: EventSeq(nat(row.try_get(0).map_err(unreadable)?)?),
        kind: row.try_get::<_, String>(1).map_err(unreadable)?.into(),
        body: row.try_get::<_, Option<String>>(2).map_err(unreadable)?.map(Into::into),
    })
}

/// Returns the approval that an answer is for.
fn approval_of(answer: &PastEvent) -> Option<i64> {
    let body: serde_json::Value = serde_json::from_str(answer.body.as_deref()?).ok()?;
    body["kind"]["approval_answered"]["approval"].as_i64()
}
