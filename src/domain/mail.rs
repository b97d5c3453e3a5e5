//! One queue of messages per agent, in order, emptied one message at a time.
//!
//! ```text
//!   [queued] --collect--> [carried] --arrived--> gone
//!       ^                     |
//!       +---- did not --------+
//! ```
//! Only memory knows that a message is being carried: after a crash it is delivered again, never lost.
//! DevIt 1.5, HEARTBEAT and POLL; decisions on bounds are in `docs/protocols/devit.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::command::{CollectMail, Collected, SettleMail, Settled};
use super::{
    Agents, Call, Change, EventKind, Failure, Outbox, Principal, Refusal, Report, Reservation,
    ReservationKind, State,
};
use provost_base::limits::{MAIL_BYTES_MAX, MAIL_MAX, MAIL_TOTAL_BYTES_MAX, PROGRESS_WAITING_MAX};
use provost_base::{
    AgentId, ApprovalId, DaemonId, Digest, Fence, Json, MailSeq, RepoPath, TaskId, Timestamp, Ttl,
};

/// Mail older than this is dropped for an agent whose name ends in a process id and that comes back after silence:
/// another process may have got the number.
const RECURRING_PID_KEEP: Ttl = Ttl::minutes(10);

/// A message in an agent's queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mail {
    /// The message's number, over all queues, in commit order.
    pub seq: MailSeq,
    /// The agent in whose queue it is.
    pub to: AgentId,
    /// When it was queued.
    pub at: Timestamp,
    /// The content of the message.
    pub kind: MailKind,
}

/// The content of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// Work for a polling worker.
    Work {
        /// The task that the recipient does.
        task: TaskId,
        /// The request, passed on unchanged.
        payload: Json,
    },
    /// News of a task for its asker; or, for its worker, that the task is over.
    Word {
        /// The task that the word is about.
        task: TaskId,
        /// The agent that reports; `None` for the daemon.
        from: Option<AgentId>,
        /// The worker of the task.
        worker: AgentId,
        /// The goal of the task.
        goal: Box<str>,
        /// The status word, as its sender wrote it.
        said: Box<str>,
        /// Whether this is the last message about the task.
        last: bool,
        /// The report, in words and data.
        report: Report,
        /// The reason for the failure, if the daemon gives one.
        failure: Option<Failure>,
        /// The agent that the message was meant for; `None` if that is the asker.
        return_to: Option<AgentId>,
    },
    /// A request that waits for the recipient's answer.
    Approval {
        /// The number by which the recipient answers.
        approval: ApprovalId,
        /// The task that the command would make.
        task: Option<TaskId>,
        /// The tool that policy was asked about.
        tool: Box<str>,
        /// The reason why approval is needed.
        reason: Box<str>,
        /// The risk of the command.
        risk: Risk,
        /// The request, with everything that is shown to an approver.
        details: Json,
        /// The digest that the answer is bound to.
        shown: Digest,
        /// The end of the time in which an answer counts.
        expires_at: Timestamp,
    },
    /// An agent has a place through another door that the recipient has, too.
    Met {
        /// The file in which both have a place.
        file: RepoPath,
        /// The way in which the recipient has it.
        mine: ReservationKind,
        /// The reservation of the other agent.
        other: Box<Reservation>,
    },
    /// An agent waits for a lock that the recipient has.
    Wanted {
        /// The lock, as its holder wrote it.
        symbol: Box<str>,
        /// The number of the recipient's grant.
        fence: Fence,
        /// The agent that waits.
        agent: AgentId,
        /// When that agent stops waiting.
        until: Timestamp,
    },
}

/// The risk of a command that waits for approval. DevIt 1.6, `risk_level`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing unusual.
    Low,
    /// A central file or a long test run.
    Medium,
    /// The command reaches outside of the jail.
    High,
}

impl MailKind {
    /// Returns the task that the message is about.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            MailKind::Work { task, .. } | MailKind::Word { task, .. } => Some(task),
            MailKind::Approval { task, .. } => task.as_ref(),
            MailKind::Met { .. } | MailKind::Wanted { .. } => None,
        }
    }

    /// Returns the kind in one word, for the log.
    pub fn name(&self) -> &'static str {
        match self {
            MailKind::Work { .. } => "work",
            MailKind::Word { .. } => "word",
            MailKind::Approval { .. } => "approval",
            MailKind::Met { .. } => "met",
            MailKind::Wanted { .. } => "wanted",
        }
    }

    fn bytes(&self) -> usize {
        const OVERHEAD: usize = 256;
        OVERHEAD
            + match self {
                MailKind::Work { payload, .. } => payload.as_str().len(),
                MailKind::Word { report, goal, said, .. } => report.bytes() + goal.len() + said.len(),
                MailKind::Approval { details, .. } => details.as_str().len(),
                MailKind::Met { file, other, .. } => {
                    file.as_str().len() + other.at.as_str().len() + other.asked.len()
                }
                MailKind::Wanted { symbol, agent, .. } => symbol.len() + agent.as_str().len(),
            }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Queue {
    mail: BTreeMap<MailSeq, Arc<Mail>>,
    /// The numbers of the messages about each task, so that the end of a task need not look at all messages.
    about: BTreeMap<TaskId, BTreeSet<MailSeq>>,
    carried: BTreeMap<MailSeq, DaemonId>,
    bytes: usize,
}

impl Queue {
    /// Returns the messages about a task, oldest first.
    fn about<'a>(&'a self, task: &TaskId) -> impl Iterator<Item = (&'a MailSeq, &'a Arc<Mail>)> + use<'a> {
        self.about.get(task).into_iter().flatten().filter_map(|seq| self.mail.get_key_value(seq))
    }

    fn put(&mut self, mail: Arc<Mail>) {
        if let Some(task) = mail.kind.task() {
            self.about.entry(task.clone()).or_default().insert(mail.seq);
        }
        self.mail.insert(mail.seq, mail);
    }

    fn remove(&mut self, seq: MailSeq) -> Option<Arc<Mail>> {
        self.carried.remove(&seq);
        let mail = self.mail.remove(&seq)?;
        if let Some(task) = mail.kind.task()
            && let Some(numbers) = self.about.get_mut(task)
        {
            numbers.remove(&seq);
            if numbers.is_empty() {
                self.about.remove(task);
            }
        }
        Some(mail)
    }
}

/// The queues of all agents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mailboxes {
    queues: BTreeMap<AgentId, Queue>,
    bytes: usize,
}

impl State {
    /// Takes the caller's next message.
    pub(super) fn collect_mail(&self, call: &Call<'_>, verb: &CollectMail, out: &mut Outbox) -> Collected {
        let mail = self.mail.collect(call, verb, (&self.agents, self.here), out);
        let waiting = self.tasks.asked_by(call.who.agent()) > 0;
        Collected { mail, waiting }
    }

    /// Settles the delivery of a message; a delivered message with work assigns the work to its worker.
    pub(super) fn settle_mail(
        &self,
        call: &Call<'_>,
        verb: &SettleMail,
        out: &mut Outbox,
    ) -> Result<Settled, Refusal> {
        let arrived = self.mail.settle(call.who, verb, out)?;
        if let Some(MailKind::Work { task, .. }) = arrived.as_ref().map(|mail| &mail.kind) {
            self.assigned(call.now, call.who, task, out);
        }
        Ok(Settled)
    }
}

impl Mailboxes {
    /// Files a message, and makes room for it if the recipient's queue is full.
    pub(super) fn post(&self, now: Timestamp, to: &AgentId, kind: MailKind, out: &mut Outbox) {
        if let Some(queue) = self.queues.get(to) {
            self.supersede(to, queue, &kind, out);
        }
        self.make_room(to, kind.bytes(), out);
        let seq = out.next_mail();
        out.append_event(EventKind::MailQueued {
            mail: seq,
            to: to.clone(),
            what: kind.name().into(),
            task: kind.task().cloned(),
        });
        out.put(Change::PutMail(Arc::new(Mail { seq, to: to.clone(), at: now, kind })));
    }

    /// Files a message only if no other one has to go for it, and if all queues together have room.
    pub(super) fn post_if_it_fits(&self, now: Timestamp, to: &AgentId, kind: MailKind, out: &mut Outbox) {
        if !self.is_full() && self.has_room(to, &kind) {
            self.post(now, to, kind, out);
        }
    }

    /// Withdraws the message about a waiter for a grant: a newer one replaces it, or the grant has ended.
    pub(super) fn withdraw_wanted(&self, to: &AgentId, of: Fence, out: &mut Outbox) {
        let Some(queue) = self.queues.get(to) else { return };
        for (seq, mail) in &queue.mail {
            let its = matches!(&mail.kind, MailKind::Wanted { fence, .. } if *fence == of);
            if its && !queue.carried.contains_key(seq) {
                out.put(Change::DropMail(to.clone(), *seq));
            }
        }
    }

    /// Drops the oldest messages until one of `bytes` fits, counting the present command's own changes to the
    /// queue. Messages on their way stay, and so does work as long as there are others: a worker that never sees
    /// its work would leave the task waiting.
    fn make_room(&self, to: &AgentId, bytes: usize, out: &mut Outbox) {
        let (put, gone) = out.mail_of(to);
        let (queued, held) = self.queues.get(to).map_or((0, 0), |queue| (queue.mail.len(), queue.bytes));
        let new = put.iter().map(|mail| mail.kind.bytes()).sum::<usize>() + bytes;
        if queued + put.len() < MAIL_MAX && held + new <= MAIL_BYTES_MAX {
            return;
        }
        let queue = self.queues.get(to);
        let in_queue = |seq: &MailSeq| queue.and_then(|queue| queue.mail.get(seq));
        let (mut count, mut total) = (queued + put.len(), held + new);
        for mail in
            gone.iter().filter_map(|seq| in_queue(seq).or_else(|| put.iter().find(|it| it.seq == *seq)))
        {
            (count, total) = (count - 1, total - mail.kind.bytes());
        }
        let mut given_up = 0;
        for work in [false, true] {
            // It begins with the oldest and goes only as far as needed: a full queue is not searched as a whole for each message.
            for mail in queue.into_iter().flat_map(|queue| queue.mail.values()).chain(&put) {
                if count < MAIL_MAX && total <= MAIL_BYTES_MAX {
                    break;
                }
                let stays =
                    gone.contains(&mail.seq) || queue.is_some_and(|it| it.carried.contains_key(&mail.seq));
                if !stays && matches!(mail.kind, MailKind::Work { .. }) == work {
                    out.put(Change::DropMail(to.clone(), mail.seq));
                    (count, total, given_up) = (count - 1, total - mail.kind.bytes(), given_up + 1);
                }
            }
        }
        self.announce_dropped(to, given_up, "the queue was full", out);
    }

    /// Checks whether an agent has already been told that this other one waits for its grant.
    pub(super) fn has_word_of_waiter(&self, to: &AgentId, of: Fence, waiter: &AgentId) -> bool {
        let its = |mail: &Arc<Mail>| matches!(&mail.kind, MailKind::Wanted { fence, agent, .. } if *fence == of && agent == waiter);
        self.queues.get(to).is_some_and(|queue| queue.mail.values().any(its))
    }

    /// Checks whether all queues together are full. Names can be invented freely, and each name could fill a queue;
    /// work under way goes on then, and no new work begins.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAIL_TOTAL_BYTES_MAX
    }

    /// Checks whether one more message fits without dropping another.
    pub(super) fn has_room(&self, to: &AgentId, kind: &MailKind) -> bool {
        let fits = |queue: &Queue| {
            queue.mail.len() < MAIL_MAX && queue.bytes.saturating_add(kind.bytes()) <= MAIL_BYTES_MAX
        };
        self.queues.get(to).is_none_or(fits)
    }

    /// Drops unread progress when a task's last message comes; a client that applied the progress later would go back.
    fn supersede(&self, to: &AgentId, queue: &Queue, kind: &MailKind, out: &mut Outbox) {
        let MailKind::Word { task, last: true, .. } = kind else { return };
        let (_, gone) = out.mail_of(to);
        let mut count = 0;
        for (seq, mail) in queue.about(task) {
            let older = matches!(&mail.kind, MailKind::Word { last: false, .. });
            if older && !queue.carried.contains_key(seq) && !gone.contains(seq) {
                out.put(Change::DropMail(to.clone(), *seq));
                count += 1;
            }
        }
        self.announce_dropped(to, count, "superseded by the task's last word", out);
    }

    /// Makes room for one more message of progress about a task. An agent that does not collect keeps the newest
    /// ones only, so that a worker which reports without end pushes no other mail out.
    pub(super) fn thin_out_progress(&self, to: &AgentId, about: &TaskId, out: &mut Outbox) {
        let Some(queue) = self.queues.get(to) else { return };
        let (_, gone) = out.mail_of(to);
        let words = queue.about(about).filter(|(seq, mail)| {
            let its = matches!(&mail.kind, MailKind::Word { last: false, .. });
            its && !queue.carried.contains_key(seq) && !gone.contains(seq)
        });
        let words: Vec<MailSeq> = words.map(|(seq, _)| *seq).collect();
        let many = words.len().saturating_sub(PROGRESS_WAITING_MAX - 1);
        for seq in &words[..many] {
            out.put(Change::DropMail(to.clone(), *seq));
        }
        let count = u32::try_from(many).unwrap_or(u32::MAX);
        self.announce_dropped(to, count, "superseded by newer progress", out);
    }

    fn announce_dropped(&self, to: &AgentId, count: u32, why: &str, out: &mut Outbox) {
        if count > 0 {
            out.append_event(EventKind::MailDropped { to: to.clone(), count, why: why.into() });
        }
    }

    fn collect(
        &self,
        call: &Call<'_>,
        verb: &CollectMail,
        (agents, here): (&Agents, DaemonId),
        out: &mut Outbox,
    ) -> Option<Arc<Mail>> {
        let who = call.who;
        if verb.alive {
            agents.beat(call.now, who.agent(), out);
        }
        let queue = self.queues.get(who.agent())?;
        let (seq, mail) = queue.mail.iter().find(|(seq, _)| !queue.carried.contains_key(seq))?;
        out.put(Change::CarryMail(who.agent().clone(), *seq, Some(here)));
        Some(mail.clone())
    }

    /// Returns the message if it has arrived, so that its task can move on.
    fn settle(
        &self,
        who: &Principal,
        verb: &SettleMail,
        out: &mut Outbox,
    ) -> Result<Option<Arc<Mail>>, Refusal> {
        let queue = self.queues.get(who.agent()).ok_or(Refusal::MailNotFound)?;
        let mail = queue.mail.get(&verb.seq).ok_or(Refusal::MailNotFound)?;
        if !verb.delivered {
            out.put(Change::CarryMail(who.agent().clone(), verb.seq, None));
            return Ok(None);
        }
        out.append_event(EventKind::MailDelivered { mail: verb.seq, to: who.agent().clone() });
        out.put(Change::DropMail(who.agent().clone(), verb.seq));
        Ok(Some(mail.clone()))
    }

    /// Withdraws a worker's unread work when its task is over.
    pub(super) fn withdraw_work(&self, worker: &AgentId, task: &TaskId, out: &mut Outbox) {
        let Some(queue) = self.queues.get(worker) else { return };
        let (_, gone) = out.mail_of(worker);
        for (seq, mail) in queue.about(task) {
            let its = matches!(&mail.kind, MailKind::Work { .. });
            if its && !gone.contains(seq) {
                out.put(Change::DropMail(worker.clone(), *seq));
            }
        }
    }

    /// Checks whether a task is just being handed to its worker.
    pub(super) fn is_handing_over(&self, worker: &AgentId, task: &TaskId) -> bool {
        let its = |mail: &Mail| matches!(&mail.kind, MailKind::Work { task: it, .. } if it == task);
        let mut carried = self.queues.get(worker).into_iter().flat_map(|queue| queue.carried.keys());
        carried
            .any(|seq| self.queues.get(worker).and_then(|it| it.mail.get(seq)).is_some_and(|mail| its(mail)))
    }

    /// Withdraws the mail about an approval that is settled.
    pub(super) fn withdraw_approval(&self, to: &AgentId, approval: ApprovalId, out: &mut Outbox) {
        let Some(queue) = self.queues.get(to) else { return };
        for (seq, mail) in &queue.mail {
            if matches!(&mail.kind, MailKind::Approval { approval: it, .. } if *it == approval)
                && !queue.carried.contains_key(seq)
            {
                out.put(Change::DropMail(to.clone(), *seq));
            }
        }
    }

    /// Drops the mail of a former process with the same number, when its name comes back after silence. Returns the
    /// tasks whose work was dropped.
    pub(super) fn clear_recurring(
        &self,
        now: Timestamp,
        who: &AgentId,
        agents: &Agents,
        out: &mut Outbox,
    ) -> Vec<TaskId> {
        let ends_in_pid = who
            .as_str()
            .rsplit_once(':')
            .is_some_and(|(_, pid)| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()));
        if !ends_in_pid || agents.is_alive(who, now) {
            return Vec::new();
        }
        let why = "left by an earlier process of this number";
        self.drop_older(who, now, RECURRING_PID_KEEP, why, |_| true, out)
    }

    /// Drops mail that has waited longer than `keep`, for every agent. Work stays as long as its task does.
    pub(super) fn expire(&self, now: Timestamp, keep: Ttl, out: &mut Outbox) {
        let news = |kind: &MailKind| !matches!(kind, MailKind::Work { .. });
        for agent in self.queues.keys() {
            self.drop_older(agent, now, keep, "not collected in time", news, out);
        }
    }

    fn drop_older(
        &self,
        agent: &AgentId,
        now: Timestamp,
        keep: Ttl,
        why: &str,
        which: impl Fn(&MailKind) -> bool,
        out: &mut Outbox,
    ) -> Vec<TaskId> {
        let (mut count, mut work) = (0, Vec::new());
        let old = self.queues.get(agent).into_iter().flat_map(|queue| &queue.mail);
        for (seq, mail) in old.take_while(|(_, mail)| mail.at.after(keep) <= now) {
            if !which(&mail.kind) {
                continue;
            }
            if let MailKind::Work { task, .. } = &mail.kind {
                work.push(task.clone());
            }
            out.put(Change::DropMail(agent.clone(), *seq));
            count += 1;
        }
        self.announce_dropped(agent, count, why, out);
        work
    }

    /// Returns the message with a task's result, unless it is being delivered.
    pub(super) fn last_word(&self, agent: &AgentId, task: &TaskId) -> Option<&Arc<Mail>> {
        let queue = self.queues.get(agent)?;
        let is_it = |kind: &MailKind| matches!(kind, MailKind::Word { last: true, .. });
        let mut free = queue.about(task).filter(|(seq, _)| !queue.carried.contains_key(seq));
        free.find(|(_, mail)| is_it(&mail.kind)).map(|(_, mail)| mail)
    }

    /// Returns how many messages of an agent wait, without those that are being carried.
    pub fn waiting(&self, agent: &AgentId) -> usize {
        self.queues.get(agent).map_or(0, |queue| queue.mail.len() - queue.carried.len())
    }

    /// Returns the messages of one agent after a number, oldest first, carried or not.
    pub(super) fn after(&self, agent: &AgentId, seq: MailSeq) -> impl Iterator<Item = &Arc<Mail>> {
        let after = (Bound::Excluded(seq), Bound::Unbounded);
        self.queues
            .get(agent)
            .into_iter()
            .flat_map(move |queue| queue.mail.range(after))
            .map(|(_, mail)| mail)
    }

    /// Returns every queued message, by recipient and age.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Mail>> {
        self.queues.values().flat_map(|queue| queue.mail.values())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(super) fn put(&mut self, mail: Arc<Mail>) {
        let queue = self.queues.entry(mail.to.clone()).or_default();
        let bytes = mail.kind.bytes();
        (queue.bytes, self.bytes) = (queue.bytes + bytes, self.bytes + bytes);
        queue.put(mail);
    }

    pub(super) fn remove(&mut self, agent: &AgentId, seq: MailSeq) {
        let Some(queue) = self.queues.get_mut(agent) else { return };
        if let Some(mail) = queue.remove(seq) {
            let bytes = mail.kind.bytes();
            queue.bytes = queue.bytes.saturating_sub(bytes);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        if queue.mail.is_empty() {
            self.queues.remove(agent);
        }
    }

    pub(super) fn carry(&mut self, agent: &AgentId, seq: MailSeq, by: Option<DaemonId>) {
        let Some(queue) = self.queues.get_mut(agent) else { return };
        match by.filter(|_| queue.mail.contains_key(&seq)) {
            Some(by) => drop(queue.carried.insert(seq, by)),
            None => drop(queue.carried.remove(&seq)),
        }
    }

    /// Puts the messages that these daemons were delivering back into waiting.
    pub(super) fn come_back_from(&self, theirs: impl Fn(DaemonId) -> bool, out: &mut Outbox) {
        for (agent, queue) in &self.queues {
            let its = queue.carried.iter().filter(|(_, by)| theirs(**by));
            its.for_each(|(seq, _)| out.put(Change::CarryMail(agent.clone(), *seq, None)));
        }
    }
}
