//! The rows that a batch changes: only the last change of each key, since one statement must not meet a key twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::sums::{Calls, Run};
use crate::StoreError;
use crate::codec::{ended_at, int, text};
use provost_base::{AgentId, DaemonId, Slug};
use provost_domain::{
    Change, CrewChange, Gone, JobChange, Outbox, PasskeyChange, PostChange, PushChange, SpendChange,
    Switched, Task,
};

/// The id of the row in a table with a single row.
pub(super) const ONLY: &str = "1";

/// The row of a task.
pub(super) struct TaskRow {
    pub(super) finished: Option<i64>,
    pub(super) at: i64,
    pub(super) status: &'static str,
    pub(super) body: String,
}

/// The change of an effect's row.
pub(super) enum EffectRow {
    /// It is owed from now on, by this daemon.
    New { body: String, started: bool, by: DaemonId },
    /// It was owed, and has begun.
    Started,
    /// It is not owed any more.
    Gone,
}

/// Puts and drops of rows, by table and key.
#[derive(Default)]
pub(super) struct Rows {
    /// Tables whose keys are texts; `None` as the body removes the row.
    pub(super) keyed: BTreeMap<&'static str, BTreeMap<String, Option<String>>>,
    /// Tables whose keys are numbers.
    pub(super) numbered: BTreeMap<&'static str, BTreeMap<i64, Option<String>>>,
    pub(super) tasks: BTreeMap<String, TaskRow>,
    /// Bodies of finished tasks with additions.
    pub(super) amended: BTreeMap<String, String>,
    pub(super) effects: BTreeMap<i64, EffectRow>,
    /// Daemons that count as dead.
    pub(super) down: Vec<(DaemonId, Gone)>,
    /// Messages: number, event, time.
    pub(super) posts: Vec<(i64, i64, i64)>,
    /// Inboxes: reader, number, event.
    pub(super) inbox: Vec<(String, i64, i64)>,
    /// Posts that wait for an absent reader; `None` as the event removes the row.
    pub(super) parked: BTreeMap<(String, i64), Option<i64>>,
    /// Inboxes that no agent reads any more: all rows in the database, and up to a number of this batch.
    pub(super) emptied: BTreeMap<String, Option<i64>>,
    /// Runs whose usage is counted, in their order.
    pub(super) runs: Vec<Run>,
    /// Calls that are counted, in their order.
    pub(super) calls: Vec<Calls>,
}

/// Returns text in the form that PostgreSQL accepts, without zero bytes. JSON never has one.
pub(super) fn word(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() }
}

/// Returns a text of a query in the same form.
pub(super) fn asked(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

impl Rows {
    /// Returns the rows for a batch of this daemon; `finished` is the last place given to a finished task, and moves on.
    ///
    /// # Errors
    /// If a number does not fit its column.
    pub(super) fn of(batch: &Outbox, daemon: DaemonId, finished: &mut i64) -> Result<Self, StoreError> {
        let mut rows = Self::default();
        // They come before the changes: one command may owe an effect that a later one of the same batch settles.
        for (id, effect) in &batch.effects {
            let by = batch.owed_at(*id).unwrap_or(daemon);
            rows.effects.insert(int(id.0)?, EffectRow::New { body: text(effect)?, started: false, by });
        }
        for change in &batch.changes {
            rows.take(change, finished)?;
        }
        Ok(rows)
    }

    fn put(&mut self, table: &'static str, key: &str, body: String) {
        self.keyed.entry(table).or_default().insert(word(key), Some(body));
    }

    fn drop_key(&mut self, table: &'static str, key: &str) {
        self.keyed.entry(table).or_default().insert(word(key), None);
    }

    fn put_number(&mut self, table: &'static str, key: u64, body: Option<String>) -> Result<(), StoreError> {
        self.numbered.entry(table).or_default().insert(int(key)?, body);
        Ok(())
    }

    // tidy: long because it has an arm for every change
    fn take(&mut self, change: &Change, finished: &mut i64) -> Result<(), StoreError> {
        match change {
            Change::PutTask(task) => self.put_task(task, None)?,
            Change::FinishTask(task) => {
                *finished = finished.saturating_add(1);
                self.put_task(task, Some(*finished))?;
                self.runs.extend(Run::of(task)?);
            }
            Change::AmendTask(task) => {
                match self.tasks.get_mut(task.id().as_str()) {
                    Some(row) if row.finished.is_some() => row.body = text(task)?,
                    Some(_) => {}
                    None => drop(self.amended.insert(task.id().as_str().to_owned(), text(task)?)),
                }
                self.runs.extend(Run::of(task)?);
            }
            Change::PutAgent(it) => self.put("agent", it.id.as_str(), text(it)?),
            Change::DropAgent(id) => {
                self.drop_key("agent", id.as_str());
                self.drop_key("present", id.as_str());
            }
            Change::PutMail(it) => self.put_number("mail", it.seq.0, Some(text(it)?))?,
            Change::DropMail(_, seq) => {
                self.put_number("mail", seq.0, None)?;
                self.put_number("carried", seq.0, None)?;
            }
            Change::CarryMail(agent, seq, by) => {
                let body = by.map(|by| text(&(agent, by))).transpose()?;
                self.put_number("carried", seq.0, body)?;
            }
            Change::PutWaiter(it) => self.put_number("waiter", it.ticket.0, Some(text(it)?))?,
            Change::DropWaiter(ticket) => self.put_number("waiter", ticket.0, None)?,
            Change::At(agent, Some(at)) => self.put("present", agent.as_str(), text(&(agent, at))?),
            Change::At(agent, None) => self.drop_key("present", agent.as_str()),
            Change::HostDown(daemon, gone) => {
                self.down.push((*daemon, *gone));
                self.drop_key("ability", &daemon.host.to_string());
            }
            Change::PutAbility(it) => self.put("ability", &it.daemon.host.to_string(), text(&**it)?),
            Change::DropAbility(host) => self.drop_key("ability", &host.to_string()),
            Change::PutApproval(it) => self.put_number("approval", it.id.0, Some(text(it)?))?,
            Change::DropApproval(id) => self.put_number("approval", id.0, None)?,
            Change::PutUses(it) => {
                let key = text(&(it.rule.as_str(), it.who.to_string()))?;
                if it.at.is_empty() { self.drop_key("uses", &key) } else { self.put("uses", &key, text(it)?) }
            }
            Change::PutLock(it) => self.put("symbol_lock", &String::from(it.at.clone()), text(it)?),
            Change::DropLock(at) => self.drop_key("symbol_lock", &String::from(at.clone())),
            Change::PutIntent(it) => self.put("intent", it.id.as_str(), text(it)?),
            Change::DropIntent(id) => self.drop_key("intent", id.as_str()),
            Change::PutContract(it) => self.put("contract", it.id.as_str(), text(it)?),
            Change::DropContract(id) => self.drop_key("contract", id.as_str()),
            Change::Post(change) => self.post(change)?,
            Change::PutToken(it) => self.put("token", &it.digest.to_string(), text(it)?),
            Change::DropToken(digest) => self.drop_key("token", &digest.to_string()),
            Change::Job(change) => self.job(change)?,
            Change::PutMerge(it) => self.put_number("merge_entry", it.number.0, Some(text(it)?))?,
            Change::DropMerge(number) => self.put_number("merge_entry", number.0, None)?,
            Change::Passkey(change) => self.passkey(change)?,
            Change::Push(PushChange::Put(it)) => self.put("push", &it.id, text(&**it)?),
            Change::Push(PushChange::Drop(id)) => self.drop_key("push", id),
            Change::Spend(SpendChange::Put(it)) => self.put("spent", &it.key.to_string(), text(&**it)?),
            Change::Spend(SpendChange::Drop(key)) => self.drop_key("spent", &key.to_string()),
            Change::Spend(SpendChange::Calls { task, worker, at, model, counted }) => {
                self.calls.push(Calls::of(task, worker.as_str(), *at, model, counted)?);
            }
            Change::Switch(worker, to) => self.switch(worker, to.as_ref())?,
            Change::PutUser(it) => self.put("host_user", &it.host.to_string(), text(&**it)?),
            Change::DropUser(host) => self.drop_key("host_user", &host.to_string()),
            Change::StartEffect(id) => {
                let row = self.effects.entry(int(id.0)?).or_insert(EffectRow::Started);
                if let EffectRow::New { started, .. } = row {
                    *started = true;
                }
            }
            Change::DropEffect(id) => drop(self.effects.insert(int(id.0)?, EffectRow::Gone)),
            Change::Crew(change) => self.crew(change)?,
            // All of these but the last are in memory only; the last count of a batch goes into the repository's row.
            Change::Beat(..)
            | Change::CameBy(..)
            | Change::Grant(..)
            | Change::Apply(..)
            | Change::OweHook(..)
            | Change::OweNotice(..)
            | Change::OweDeed(..)
            | Change::RefuseCircle(..)
            | Change::Count(_) => {}
        }
        Ok(())
    }

    fn put_task(&mut self, task: &Task, finished: Option<i64>) -> Result<(), StoreError> {
        let row = TaskRow {
            finished,
            at: ended_at(task).0,
            status: task.state.status().as_str(),
            body: text(task)?,
        };
        let id = task.id().as_str().to_owned();
        self.amended.remove(&id);
        self.tasks.insert(id, row);
        Ok(())
    }

    /// Writes a switch. One that does not last ends with its daemon, by a change of its own.
    fn switch(&mut self, worker: &AgentId, to: Option<&Switched>) -> Result<(), StoreError> {
        match to {
            Some(to) => self.put("switched", worker.as_str(), text(&(worker, to))?),
            None => self.drop_key("switched", worker.as_str()),
        }
        Ok(())
    }

    fn passkey(&mut self, change: &PasskeyChange) -> Result<(), StoreError> {
        match change {
            PasskeyChange::Put(it) => self.put("passkey", &it.passkey.id, text(it)?),
            PasskeyChange::Drop(id) => self.drop_key("passkey", id),
            PasskeyChange::Standing(it) => self.put("passkey_reset", ONLY, text(it)?),
            // It is made with the repository's row, and never changes.
            PasskeyChange::Daemon(_) => {}
        }
        Ok(())
    }

    fn job(&mut self, change: &JobChange) -> Result<(), StoreError> {
        match change {
            JobChange::Put(it) => self.put("job", it.id.as_str(), text(it)?),
            JobChange::PutOrder(id, it) => self.put("job_order", id.as_str(), it.as_str().to_owned()),
            JobChange::DropOrder(id) => self.drop_key("job_order", id.as_str()),
            JobChange::PutResult(id, it) => self.put("job_result", id.as_str(), text(it)?),
            JobChange::Drop(id) => {
                ["job", "job_order", "job_result"]
                    .into_iter()
                    .for_each(|table| self.drop_key(table, id.as_str()));
            }
        }
        Ok(())
    }

    fn crew(&mut self, change: &CrewChange) -> Result<(), StoreError> {
        match change {
            CrewChange::PutMember(it) => self.put("member", it.id.as_str(), text(it)?),
            CrewChange::DropMember(id) => self.drop_key("member", id.as_str()),
            CrewChange::PutClaim(it) => self.put("claim", it.file.as_str(), text(it)?),
            CrewChange::DropClaim(file) => self.drop_key("claim", file.as_str()),
            CrewChange::PutAssignment(it) => self.put("assignment", it.id.as_str(), text(it)?),
            CrewChange::DropAssignment(id) => self.drop_key("assignment", id.as_str()),
            CrewChange::PutHandoff(it) => self.put("transfer", it.id.as_str(), text(it)?),
            CrewChange::DropHandoff(id) => self.drop_key("transfer", id.as_str()),
        }
        Ok(())
    }

    fn post(&mut self, change: &PostChange) -> Result<(), StoreError> {
        match change {
            PostChange::File { n, seq, at, to, own } => {
                let (n, seq) = (int(n.0)?, int(seq.0)?);
                if *own {
                    self.posts.push((n, seq, at.0));
                }
                self.inbox.extend(to.iter().map(|to| (to.as_str().to_owned(), n, seq)));
            }
            PostChange::PutMailbox(it) => self.put("correspondent", it.slug.as_str(), text(it)?),
            PostChange::DropMailbox(slug) => self.drop_mailbox(slug),
            PostChange::PutWorkingSet(it) => self.put("footprint", it.slug.as_str(), text(it)?),
            PostChange::PutContention(it) => self.put("standoff", &it.id(), text(it)?),
            PostChange::DropContention(it) => self.drop_key("standoff", &it.id()),
            PostChange::PutQuestion(it) => self.put_number("question", it.n.0, Some(text(it)?))?,
            PostChange::DropQuestion(n) => self.put_number("question", n.0, None)?,
            PostChange::Park(to, n, seq) => {
                self.parked.insert((to.as_str().to_owned(), int(n.0)?), Some(int(seq.0)?));
            }
            PostChange::Unpark(to, n) => drop(self.parked.insert((to.as_str().to_owned(), int(n.0)?), None)),
            PostChange::BeginLog(n) => self.put("meta", super::posts::LOG_FROM, n.0.to_string()),
            PostChange::Newest(..) => {}
        }
        Ok(())
    }

    /// Drops a mailbox. Its inbox may have many rows: they are no longer seen, and are removed in small portions.
    fn drop_mailbox(&mut self, slug: &Slug) {
        self.drop_key("correspondent", slug.as_str());
        self.drop_key("footprint", slug.as_str());
        let newest = self.inbox.iter().filter(|it| it.0 == slug.as_str()).map(|it| it.1).max();
        self.emptied.insert(slug.as_str().to_owned(), newest);
    }
}
