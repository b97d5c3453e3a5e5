//! The parts of scripts over the core: callers, rules by the goal's first word, and the time by hand.

use std::sync::Arc;

use provost::base::{AgentId, ApprovalId, Digest, Json, RuleId, TaskId, Timestamp, Ttl};
use provost::domain::command::{
    AnswerApproval, CancelTask, CollectMail, Collected, Delegate, Register, ReportTask, SettleMail, Status,
};
use provost::domain::{
    Answer, Approver, Call, Change, Command, Core, Decision, Door, Effect, EventKind, Facts, Judge, Mail,
    MailKind, Outbox, Principal, Proof, Rate, Refusal, Reply, Report, Scope, Settings, State, Task,
    TaskState, Terms, Verdict,
};
use provost::service::MergeSettings;
use provost_test_equipment::callers::caller;

use crate::support::storm::{agent, order, settings};

/// Nothing is merged.
pub(crate) fn no_merges() -> Arc<MergeSettings> {
    Arc::new(MergeSettings { scratch: "/nowhere".into(), checks: Vec::new(), check_timeout: Ttl::minutes(1) })
}

/// Rules by the goal's first word; `strict` turns every yes into a no.
#[derive(Clone, Copy, Default)]
pub(crate) struct ByWord {
    pub(crate) strict: bool,
}

/// How often the word `rated` may be used in a minute, and how many `few` may be unfinished.
pub(crate) const RATED: u32 = 3;
pub(crate) const FEW: u32 = 2;
/// How often a failed task of `bounded` may begin again.
pub(crate) const BOUNDED: u32 = 3;
/// How often the question of `ask-again` is asked again.
pub(crate) const AGAIN: u32 = 2;
pub(crate) const DEPTH: u32 = 3;

impl Judge for ByWord {
    fn decide(&self, _: &Principal, command: &Command, facts: &Facts) -> Decision {
        let word = match command {
            Command::Delegate(verb) => verb.goal.split(' ').next().unwrap_or_default(),
            // `never-7`, `ask-7`.
            Command::TakeScreenshot(verb) => verb.task.as_str().split('-').next().unwrap_or_default(),
            Command::AskPermission(verb) => &verb.tool,
            _ => return Decision::Allow { rule: rule("any"), terms: Terms::default() },
        };
        let id = rule(word);
        let boss = || Approver::Agent(agent("boss"));
        let mut terms = Terms::default();
        let again = if word == "ask-again" { AGAIN } else { 0 };
        let asks = |terms, by| Decision::NeedApproval {
            rule: rule(word),
            reason: "it says so".into(),
            terms,
            wait: Ttl::minutes(5),
            again,
            by,
        };
        if self.strict || facts.depth > DEPTH {
            return Decision::Deny { rule: rule("strict"), reason: "not any more".into() };
        }
        match word {
            "never" => Decision::Deny { rule: id, reason: "never".into() },
            "ask" => asks(terms, vec![Approver::Human, boss()]),
            "ask-again" => asks(terms, vec![Approver::Human, boss()]),
            "ask-human" => asks(terms, vec![Approver::Human]),
            "ask-passkey" => asks(terms, vec![Approver::Passkey]),
            "ask-passkey-if-enrolled" => asks(terms, vec![Approver::PasskeyIfEnrolled]),
            "ask-passkey-if-enrolled-or-boss" => asks(terms, vec![Approver::PasskeyIfEnrolled, boss()]),
            "ask-rated" => {
                terms.rate = Some(Rate { count: RATED, per: Ttl::minutes(1) });
                asks(terms, vec![Approver::Human, boss()])
            }
            _ => {
                match word {
                    "rated" => terms.rate = Some(Rate { count: RATED, per: Ttl::minutes(1) }),
                    "few" => terms.concurrent = Some(FEW),
                    "bounded" => terms.retries = Some(BOUNDED),
                    "hasty" => terms.timeout = Some(Ttl::minutes(20)),
                    "short" => terms.timeout = Some(Ttl::minutes(2)),
                    _ => {}
                }
                Decision::Allow { rule: id, terms }
            }
        }
    }

    fn version(&self) -> Digest {
        Digest::of(if self.strict { b"strict" } else { b"by word" })
    }
}

pub(crate) fn rule(name: &str) -> RuleId {
    RuleId::parse(if name.is_empty() { "none" } else { name }).unwrap()
}

pub(crate) fn task_id(id: &str) -> TaskId {
    TaskId::parse(id).unwrap()
}

/// A client with the shared secret.
pub(crate) fn client(name: &str) -> Principal {
    use Scope::{Coordinate, Delegate, Join, Read, Work};
    caller(name, Door::Devit, &[Join, Coordinate, Delegate, Work, Read], Proof::SharedKey)
}

/// An approver with a key of its own.
pub(crate) fn approver(name: &str) -> Principal {
    use Scope::{Approve, Coordinate, Delegate, Join, Read, Work};
    caller(name, Door::Devit, &[Join, Coordinate, Delegate, Work, Read, Approve], Proof::OwnKey)
}

/// A person at a terminal.
pub(crate) fn person(name: &str) -> Principal {
    use Scope::{Approve, Coordinate, Delegate, Join, Operate, Read};
    caller(name, Door::Own, &[Join, Coordinate, Delegate, Read, Approve, Operate], Proof::Terminal)
}

/// The daemon's own hands.
pub(crate) fn host() -> Principal {
    caller("provost", Door::Internal, &[Scope::Host, Scope::Operate], Proof::Internal)
}

/// A core whose time is turned by hand.
pub(crate) struct Script {
    pub(crate) core: Core,
    pub(crate) now: Timestamp,
    pub(crate) out: Outbox,
    pub(crate) finished: Vec<Arc<Task>>,
    number: u64,
}

pub(crate) type Said = Result<Answer<Reply>, Refusal>;

impl Script {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self {
            core: Core::new(State::new(settings), Box::new(ByWord::default())),
            now: Timestamp(1_700_000_000_000),
            out: Outbox::default(),
            finished: Vec::new(),
            number: 0,
        }
    }

    /// Sends a command; `out` has only the output of this command.
    pub(crate) fn say(&mut self, who: &Principal, command: impl Into<Command>) -> Said {
        let command = command.into();
        let past = command.names_task().and_then(|id| self.finished.iter().find(|it| it.id() == id)).cloned();
        let find = |id: &TaskId| self.finished.iter().find(|it| it.id() == id).cloned();
        let earlier = command.waits_for().iter().filter_map(find).collect();
        self.out.clear();
        let call = Call { now: self.now, wall: self.now, who, facts: Facts::default(), past, earlier };
        let said = self.core.apply(call, command, &mut self.out);
        if said.is_err() {
            assert!(self.out.changes.is_empty() && self.out.is_empty(), "a refusal has changed something");
        }
        self.note();
        said
    }

    /// Lets time pass, with every deadline on its way.
    pub(crate) fn pass(&mut self, ttl: Ttl) {
        let until = self.now.after(ttl);
        self.out.clear();
        while let Some(at) = self.core.state().next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.core.tick(self.now, &mut self.out);
        }
        self.now = until;
        self.note();
    }

    /// The same for a daemon that did not run meanwhile: memory is what was stored, and time has passed.
    pub(crate) fn restart_after(&mut self, ttl: Ttl, changes: &[Change]) {
        let mut state = State::new(self.core.state().settings.clone());
        changes.iter().filter(|change| change.is_stored()).for_each(|change| state.apply(change));
        self.core = Core::new(state, Box::new(ByWord::default()));
        self.now = self.now.after(ttl);
    }

    fn note(&mut self) {
        for change in &self.out.changes {
            match change {
                Change::FinishTask(task) => self.finished.push(task.clone()),
                Change::AmendTask(task) => {
                    let known = self.finished.iter_mut().find(|it| it.id() == task.id());
                    *known.expect("a finished task") = task.clone();
                }
                _ => {}
            }
        }
    }

    pub(crate) fn register(&mut self, who: &Principal) {
        self.say(who, register(None)).unwrap();
    }

    pub(crate) fn order(&mut self, goal: &str, worker: &str) -> Delegate {
        self.number += 1;
        let payload = Json::parse(&format!(r#"{{"n":{}}}"#, self.number)).unwrap();
        order(self.number, goal, worker, payload)
    }

    /// Delegates; the task's id.
    pub(crate) fn delegate(&mut self, who: &Principal, goal: &str, worker: &str) -> TaskId {
        let order = self.order(goal, worker);
        let id = order.task.clone();
        self.say(who, order).unwrap();
        id
    }

    /// Delegates what waits for approval.
    pub(crate) fn ask(&mut self, who: &Principal, goal: &str, worker: &str) -> (TaskId, ApprovalId) {
        let order = self.order(goal, worker);
        let id = order.task.clone();
        match self.say(who, order).unwrap() {
            Answer::Parked(approval) => (id, approval),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn answer(&mut self, who: &Principal, approval: ApprovalId, verdict: Verdict) -> Said {
        self.say(who, AnswerApproval { approval, verdict, note: None, shown: None, signed: None })
    }

    pub(crate) fn report(&mut self, who: &Principal, task: &TaskId, status: Status) -> Said {
        self.say(who, report(task, status))
    }

    pub(crate) fn cancel(&mut self, who: &Principal, task: &TaskId) -> Said {
        self.say(who, CancelTask { task: task.clone(), reason: "not needed".into() })
    }

    /// The next message, without saying whether it arrived.
    pub(crate) fn collect(&mut self, who: &Principal) -> Option<Arc<Mail>> {
        match self.say(who, CollectMail { alive: true }).unwrap() {
            Answer::Done(Reply::Collected(Collected { mail, .. })) => mail,
            other => panic!("{other:?}"),
        }
    }

    /// The next message, received.
    pub(crate) fn receive(&mut self, who: &Principal) -> Option<Arc<Mail>> {
        let mail = self.collect(who)?;
        self.say(who, SettleMail { seq: mail.seq, delivered: true }).unwrap();
        Some(mail)
    }

    /// Everything in a queue, received.
    pub(crate) fn receive_all(&mut self, who: &Principal) -> Vec<Arc<Mail>> {
        std::iter::from_fn(|| self.receive(who)).collect()
    }

    pub(crate) fn beat(&mut self, who: &Principal) {
        let mail = self.collect(who);
        assert!(mail.is_none(), "a sign of life that took mail along");
    }

    /// Where a task stands, finished ones included.
    pub(crate) fn state(&self, task: &TaskId) -> TaskState {
        self.task(task).state
    }

    pub(crate) fn task(&self, id: &TaskId) -> Arc<Task> {
        let live = self.core.state().tasks.get(id);
        live.or_else(|| self.finished.iter().find(|it| it.id() == id)).unwrap().clone()
    }

    pub(crate) fn spawned(&self) -> Vec<TaskId> {
        let spawn = |effect: &Effect| match effect {
            Effect::SpawnWorker { task } => Some(task.clone()),
            Effect::StopWorker { .. }
            | Effect::WatchFiles { .. }
            | Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::Capture { .. }
            | Effect::RunJob { .. }
            | Effect::DropChanges { .. }
            | Effect::RunMerges { .. }
            | Effect::WriteFiles { .. } => None,
        };
        self.out.effects.iter().filter_map(|(_, effect)| spawn(effect)).collect()
    }

    pub(crate) fn events(&self) -> Vec<&EventKind> {
        self.out.events.iter().map(|event| &event.kind).collect()
    }
}

pub(crate) fn register(version: Option<&str>) -> Register {
    Register { caps: vec!["work".into()], pid: Some(7), peer_pid: Some(7), version: version.map(Into::into) }
}

pub(crate) fn report(task: &TaskId, status: Status) -> ReportTask {
    let report = Report { summary: "so far".into(), ..Report::default() };
    ReportTask { task: task.clone(), status, report, message: None }
}

/// Returns the last reports among some mail: the task, and its status.
pub(crate) fn last_words(mail: &[Arc<Mail>]) -> Vec<(TaskId, String)> {
    let last = |mail: &Arc<Mail>| match &mail.kind {
        MailKind::Word { task, last: true, said, .. } => Some((task.clone(), said.to_string())),
        _ => None,
    };
    mail.iter().filter_map(last).collect()
}

pub(crate) fn works(mail: &[Arc<Mail>]) -> Vec<TaskId> {
    let work = |mail: &Arc<Mail>| match &mail.kind {
        MailKind::Work { task, .. } => Some(task.clone()),
        _ => None,
    };
    mail.iter().filter_map(work).collect()
}

pub(crate) fn named(name: &str) -> AgentId {
    agent(name)
}
