//! A seeded storm of commands through the real core, for every rule that always has to hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use provost::base::{AgentId, Digest, EffectId, Json, RuleId, TaskId, Timestamp, Ttl};
use provost::domain::command::{
    AnswerApproval, BeginRun, CancelTask, CollectMail, Collected, Delegate, EndRun, Record, Register,
    ReportTask, SettleEffect, SettleMail, Status,
};
use provost::domain::{
    Answer, Approver, Call, Change, Command, Core, Counters, Decision, Door, Effect, Facts, Hooks, Judge,
    Outbox, Owed, Placement, Principal, Proof, Quota, Rate, Reply, Report, Scope, Settings, State, Task,
    Tasks, Terms, Tier, Tool, Verdict, WorkerKind, WorkerSetting,
};
use provost::domain::{Approvals, Mail, Network, RegisteredAgent};
use provost::store::Store;
use provost_test_equipment::callers::caller;

/// The same numbers for the same seed, on every machine. (SplitMix64.)
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// Says yes, no and "ask" by the goal's first word.
struct ByGoal;

impl Judge for ByGoal {
    fn decide(&self, _: &Principal, command: &Command, _: &Facts) -> Decision {
        let rule = RuleId::parse("storm").expect("a valid id");
        let rate = Some(Rate { count: 5, per: Ttl::minutes(1) });
        let terms = Terms { rate, ..Terms::default() };
        let Command::Delegate(verb) = command else {
            return Decision::Allow { rule, terms: Terms::default() };
        };
        match verb.goal.split(' ').next() {
            Some("ask") => {
                let by = vec![Approver::Human, Approver::Agent(agent("boss"))];
                Decision::NeedApproval {
                    rule,
                    reason: "ask".into(),
                    terms,
                    wait: Ttl::minutes(5),
                    again: 1,
                    by,
                }
            }
            Some("never") => Decision::Deny { rule, reason: "never".into() },
            _ => Decision::Allow { rule, terms },
        }
    }

    fn version(&self) -> Digest {
        Digest::of(b"storm")
    }
}

pub(crate) fn agent(name: &str) -> AgentId {
    AgentId::parse(name).expect("a valid id")
}

pub(crate) fn settings() -> Settings {
    let mut settings = Settings::new(agent("boss"));
    let worker = WorkerSetting {
        kind: WorkerKind::Cli,
        secrets: Vec::new(),
        network: Network::None,
        tier: Tier::Ns,
        git: Default::default(),
        copy: false,
        other_hosts: false,
        speaks: true,
        needs: Vec::new(),
        needs_wait: Ttl::minutes(30),
        retries: provost::domain::Retries::default(),
        broken: None,
    };
    settings.workers.insert(agent("cli"), worker);
    settings
}

/// Someone who may do everything a client, a person or the daemon may do.
fn everybody(name: &str, door: Door, proof: Proof) -> Principal {
    use Scope::{Approve, Coordinate, Delegate, Host, Join, Operate, Read, Work};
    caller(name, door, &[Approve, Coordinate, Delegate, Host, Join, Operate, Read, Work], proof)
}

/// The part of a state that is stored.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rest {
    pub(crate) agents: Vec<Arc<RegisteredAgent>>,
    pub(crate) tasks: Tasks,
    pub(crate) approvals: Approvals,
    pub(crate) mail: Vec<Arc<Mail>>,
    pub(crate) quota: Quota,
    pub(crate) hooks: Hooks,
    pub(crate) counters: Counters,
}

impl Rest {
    pub(crate) fn of(state: &State) -> Self {
        Self {
            agents: state.agents.iter().cloned().collect(),
            tasks: state.tasks.clone(),
            approvals: state.approvals.clone(),
            mail: state.mail.iter().cloned().collect(),
            quota: state.quota.clone(),
            hooks: state.hooks.clone(),
            counters: state.counters,
        }
    }
}

/// A core under a storm, and what should be on record of it.
pub(crate) struct Storm {
    pub(crate) core: Core,
    pub(crate) now: Timestamp,
    pub(crate) out: Outbox,
    /// Finished tasks, in the order in which they finished.
    pub(crate) finished: Vec<Arc<Task>>,
    pub(crate) owed: BTreeMap<EffectId, Owed>,
    dice: Dice,
    seen: (usize, usize),
    named: u64,
}

const CLIENTS: [&str; 4] = ["ada", "bob", "eve:17", "zoë"];

impl Storm {
    pub(crate) fn new(seed: u64, mut state: State) -> Self {
        state.settings.hooks = true;
        Self {
            core: Core::new(state, Box::new(ByGoal)),
            now: Timestamp(1_700_000_000_000),
            out: Outbox::default(),
            finished: Vec::new(),
            owed: BTreeMap::new(),
            dice: Dice::new(seed),
            seen: (0, 0),
            named: seed * 1_000_000,
        }
    }

    /// One command more, or some time. Refusals are part of the weather.
    pub(crate) fn step(&mut self) {
        self.now = Timestamp(self.now.0 + i64::try_from(self.dice.roll(3_000)).expect("small"));
        match self.dice.roll(16) {
            0 => self.register(),
            1..=4 => self.delegate(),
            5 | 6 => self.collect(),
            7 | 8 => self.report(),
            9 => self.cancel(),
            10 | 11 => self.answer(),
            12..=14 => self.carry_out(),
            _ if self.dice.roll(8) > 0 => {
                let details = Json::parse(r#"{"b":1,"a":"\u001b é"}"#).expect("JSON");
                let record = Record { what: "storm".into(), subject: "wind".into(), details };
                self.say("host", record);
            }
            _ => {
                self.now = self.now.after(Ttl::minutes(2));
                self.core.tick(self.now, &mut self.out);
                self.note();
            }
        }
    }

    /// Returns the next batch for the store.
    pub(crate) fn batch(&mut self) -> Outbox {
        self.seen = (0, 0);
        std::mem::take(&mut self.out)
    }

    pub(crate) fn say(&mut self, who: &str, command: impl Into<Command>) -> Option<Answer<Reply>> {
        let command = command.into();
        let who = match who {
            "person" => everybody(who, Door::Own, Proof::Terminal),
            "host" => everybody(who, Door::Internal, Proof::Internal),
            _ => everybody(who, Door::Devit, Proof::OwnKey),
        };
        let past = command.names_task().and_then(|id| self.finished.iter().find(|it| it.id() == id)).cloned();
        let call = Call {
            now: self.now,
            wall: self.now,
            who: &who,
            facts: Facts::default(),
            past,
            earlier: Vec::new(),
        };
        let answer = self.core.apply(call, command, &mut self.out).ok();
        self.note();
        answer
    }

    fn note(&mut self) {
        for (id, effect) in &self.out.effects[self.seen.0..] {
            self.owed.insert(
                *id,
                Owed { id: *id, effect: effect.clone(), started: false, by: self.core.state().here },
            );
        }
        for change in &self.out.changes[self.seen.1..] {
            match change {
                Change::FinishTask(task) => self.finished.push(task.clone()),
                // More is known of it; its place stays.
                Change::AmendTask(task) => {
                    let known = self.finished.iter_mut().find(|it| it.id() == task.id());
                    *known.expect("it was finished before") = task.clone();
                }
                Change::StartEffect(id) => {
                    self.owed.entry(*id).and_modify(|owed| owed.started = true);
                }
                Change::DropEffect(id) => drop(self.owed.remove(id)),
                _ => {}
            }
        }
        self.seen = (self.out.effects.len(), self.out.changes.len());
    }

    fn client(&mut self) -> &'static str {
        CLIENTS[usize::try_from(self.dice.roll(4)).expect("small")]
    }

    fn live(&mut self) -> Option<Arc<Task>> {
        let tasks: Vec<_> = self.core.state().tasks.iter().cloned().collect();
        let which = self.dice.roll(tasks.len().max(1) as u64);
        tasks.get(usize::try_from(which).expect("small")).cloned()
    }

    fn register(&mut self) {
        let who = self.client();
        let pid = Some(self.dice.roll(9));
        self.say(who, Register { caps: vec!["x".into()], pid, peer_pid: Some(7), version: None });
    }

    fn delegate(&mut self) {
        let who = self.client();
        self.named += u64::from(self.dice.roll(10) > 0);
        let goal =
            ["do it", "do it", "ask first", "never"][usize::try_from(self.dice.roll(4)).expect("small")];
        let worker = if self.dice.roll(2) == 0 { "cli" } else { self.client() };
        let payload = Json::parse(&format!(r#"{{"n":{},"deep":[1,2.50,"\\"]}}"#, self.named)).expect("JSON");
        let mut order = order(self.named, goal, worker, payload);
        // Every sixth one waits for another task, without a throw of the dice.
        if self.named.is_multiple_of(6)
            && let Some(earlier) = self.core.state().tasks.iter().last()
        {
            let after = vec![earlier.id().clone()];
            order.placement = Placement { after, ..Placement::default() }.unless_usual();
        }
        self.say(who, order);
    }

    fn collect(&mut self) {
        let who = self.client();
        let Some(Answer::Done(reply)) = self.say(who, CollectMail { alive: true }) else { return };
        let Ok(Collected { mail: Some(mail), .. }) = Collected::try_from(reply) else { return };
        let delivered = self.dice.roll(4) > 0;
        self.say(who, SettleMail { seq: mail.seq, delivered });
    }

    fn report(&mut self) {
        let Some(task) = self.live() else { return };
        let last = [Status::Completed, Status::Failed, Status::InProgress]
            [usize::try_from(self.dice.roll(3)).expect("3")];
        let details = Some(Json::parse(r#"{"ok":true}"#).expect("JSON"));
        let report = Report { summary: "so far".into(), details, ..Report::default() };
        let report = ReportTask { task: task.id().clone(), status: last, report, message: None };
        let worker = task.order.worker.clone();
        self.say(worker.as_str(), report);
    }

    fn cancel(&mut self) {
        let Some(task) = self.live() else { return };
        let cancel = CancelTask { task: task.id().clone(), reason: "changed my mind".into() };
        let asker = task.asked_by.clone();
        self.say(asker.as_str(), cancel);
    }

    fn answer(&mut self) {
        let Some(parked) = self.core.state().approvals.iter().next().cloned() else { return };
        let verdict = if self.dice.roll(3) > 0 { Verdict::Granted } else { Verdict::Denied };
        let who = if self.dice.roll(2) > 0 { "person" } else { "boss" };
        let shown = Some(parked.shown);
        self.say(who, AnswerApproval { approval: parked.id, verdict, note: None, shown, signed: None });
    }

    fn carry_out(&mut self) {
        let which = self.dice.roll(self.owed.len().max(1) as u64);
        let Some(owed) = self.owed.values().nth(usize::try_from(which).expect("small")).cloned() else {
            return;
        };
        match owed.effect {
            Effect::SpawnWorker { task } if !owed.started => {
                let until = self.now.after(Ttl::minutes(10));
                self.say("host", BeginRun { effect: owed.id, task, until });
            }
            Effect::SpawnWorker { task } => {
                let report = Report { summary: "done".into(), ..Report::default() };
                let (effect, status) = (owed.id, Status::Completed);
                self.say(
                    "host",
                    EndRun { effect, task, status, report, failure: None, model_used: None, changes: None },
                );
            }
            Effect::StopWorker { .. }
            | Effect::WatchFiles { .. }
            | Effect::RunHook { .. }
            | Effect::SendNotice { .. }
            | Effect::SignalAck { .. }
            | Effect::Capture { .. }
            | Effect::RunJob { .. }
            | Effect::DropChanges { .. }
            | Effect::RunMerges { .. }
            | Effect::WriteFiles { .. } => {
                self.say("host", SettleEffect { effect: owed.id });
            }
        }
    }
}

/// A delegation.
pub(crate) fn order(number: u64, goal: &str, worker: &str, payload: Json) -> Delegate {
    Delegate {
        task: TaskId::parse(&format!("t-{number}")).expect("a valid id"),
        goal: goal.into(),
        worker: agent(worker),
        return_to: None,
        tool: Tool { name: "devit_delegate".into(), ..Tool::default() },
        timeout: Ttl::minutes(10),
        model: None,
        context: None,
        watch_patterns: vec!["*.rs".into()],
        working_dir: None,
        format: None,
        payload,
        errand: None,
        work_tree: None,
        continues: None,
        placement: None,
        trace: None,
    }
}

/// A storm of `steps`, committed every few commands.
pub(crate) fn rage(store: &mut dyn Store, storm: &mut Storm, steps: u32) {
    for step in 0..steps {
        storm.step();
        if step % 3 == 2 {
            let batch = storm.batch();
            store.commit(&batch).expect("the commit");
        }
    }
    let batch = storm.batch();
    store.commit(&batch).expect("the last commit");
}
