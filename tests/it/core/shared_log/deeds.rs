//! The actions of agents, people and daemons in the storm over one log.

use super::*;

impl Hosts {
    pub(super) fn say(
        &mut self,
        by: usize,
        who: &Principal,
        command: impl Into<Command>,
    ) -> Option<Answer<Reply>> {
        let command: Command = command.into();
        let past = command.names_task().and_then(|id| self.daemons[by].store.past_task(id).unwrap());
        let past = past.filter(|it| self.daemons[by].core.state().tasks.get(it.id()).is_none());
        let call =
            Call { now: self.now, wall: self.now, who, facts: Facts::default(), past, earlier: Vec::new() };
        let said = self.daemons[by].core.apply(call, command, &mut self.out).ok();
        self.count(if said.is_some() { "done" } else { "refused" });
        said
    }

    pub(super) fn deed(&mut self, by: usize) {
        match self.dice.roll(30) {
            0 => {
                let who = self.someone();
                self.say(by, &who, register(Some("1.0")));
            }
            1..=4 => self.delegate(by),
            5..=7 => self.collect(by),
            8 | 9 => self.report(by),
            10 => self.answer(by),
            11..=14 => self.carry_out(by),
            15..=19 => self.lock(by),
            20 => self.write(by),
            21 => self.intent(by),
            22 => self.contract(by),
            23 | 24 => self.post(by),
            25 => self.crew(by),
            26 => self.job(by),
            27 => self.token(by),
            28 => self.switch(by),
            _ => {
                let who = host();
                let details = Json::parse(r#"{"b":1,"a":"\u001b é"}"#).unwrap();
                self.say(by, &who, Record { what: "storm".into(), subject: "wind".into(), details });
            }
        }
    }

    fn delegate(&mut self, by: usize) {
        let who = self.someone();
        self.number += 1;
        let (goal, worker) = (self.pick(&GOALS), self.pick(&["cli", "cli", "ada", "bob"]));
        let mut facts = Facts::default();
        if worker == "cli" {
            facts.worker_kind = Some(provost::domain::WorkerKind::Cli);
        }
        let verb = order(self.number, &format!("{goal} it"), worker, Json::null());
        let call = Call { now: self.now, wall: self.now, who: &who, facts, past: None, earlier: Vec::new() };
        let said = self.daemons[by].core.apply(call, verb.into(), &mut self.out);
        self.count(if said.is_ok() { "done" } else { "refused" });
    }

    fn collect(&mut self, by: usize) {
        let who = self.someone();
        let said = self.say(by, &who, CollectMail { alive: self.number.is_multiple_of(2) });
        let Some(Answer::Done(Reply::Collected(Collected { mail: Some(mail), .. }))) = said else { return };
        self.count("mail carried");
        // At times it is on its way for longer than this batch.
        if self.dice.roll(3) > 0 {
            let delivered = self.dice.roll(4) > 0;
            self.say(by, &who, SettleMail { seq: mail.seq, delivered });
        }
    }

    fn report(&mut self, by: usize) {
        let live = self.daemons[by].core.state().tasks.iter().cloned().collect();
        let Some(task): Option<Arc<Task>> = self.one_of(live) else { return };
        let status = self.pick(&[Status::InProgress, Status::Completed, Status::Failed]);
        let who = client(task.order.worker.as_str());
        if self.dice.roll(5) == 0 {
            let asker = client(task.asked_by.as_str());
            self.say(by, &asker, CancelTask { task: task.id().clone(), reason: "enough".into() });
        } else {
            self.say(by, &who, report(task.id(), status));
        }
    }

    fn answer(&mut self, by: usize) {
        let waiting = self.daemons[by].core.state().approvals.iter().cloned().collect();
        let Some(parked): Option<Arc<provost::domain::Parked>> = self.one_of(waiting) else { return };
        let verdict = self.pick(&[Verdict::Granted, Verdict::Granted, Verdict::Denied]);
        let (approval, shown) = (parked.id, Some(parked.shown));
        self.say(by, &person("owner"), AnswerApproval { approval, verdict, note: None, shown, signed: None });
    }

    /// The daemon's own hands, for what it owes.
    fn carry_out(&mut self, by: usize) {
        let owed = self.daemons[by].store.owed();
        let Some(owed) = self.one_of(owed) else { return };
        let effect = owed.id;
        match owed.effect {
            Effect::SpawnWorker { task } if !owed.started => {
                let until = self.now.after(Ttl::minutes(10));
                if self.say(by, &host(), BeginRun { effect, task, until }).is_none() {
                    self.say(by, &host(), SettleEffect { effect });
                }
            }
            Effect::SpawnWorker { task } => {
                let (status, report) = (Status::Completed, report(&task, Status::Completed).report);
                let (failure, model_used, changes) = Default::default();
                self.say(by, &host(), EndRun { effect, task, status, report, failure, model_used, changes });
            }
            Effect::RunJob { job } if !owed.started => {
                self.say(by, &host(), MoveJob { job, phase: None, task: None, runs: true });
            }
            Effect::RunJob { job } => self.end_job(by, job),
            Effect::WriteFiles { apply, by: who, .. } => {
                let end = EndApply { apply, by: who, applied: 1, skipped: 0, errors: 0, broken_off: false };
                self.say(by, &host(), end);
            }
            _ => drop(self.say(by, &host(), SettleEffect { effect })),
        }
    }

    fn lock(&mut self, by: usize) {
        let who = self.someone();
        let symbol = self.pick(&SYMBOLS);
        match self.dice.roll(8) {
            0 => drop(self.say(by, &who, release(symbol))),
            1 => drop(self.say(by, &who, Leave { intents: false, process: None })),
            2 => {
                let Some((who, ticket, verb)) = self.daemons[by].tickets.pop() else { return };
                if self.dice.roll(3) == 0 {
                    self.say(by, &who, LeaveQueue { ticket });
                } else {
                    self.say(by, &who, AcquireLock { ticket: Some(ticket), ..verb });
                }
            }
            _ => {
                let mut verb = acquire(symbol);
                verb.ttl = Ttl::from_millis(1 + self.dice.roll(600_000)).unwrap();
                verb.wait = (self.dice.roll(2) == 0).then(|| Ttl::minutes(2));
                verb.process = (self.dice.roll(3) == 0).then_some(ProcessMark { pid: 7, started: 70 });
                let said = self.say(by, &who, verb.clone());
                if let Some(Answer::Done(Reply::Locked(Locked::Queued { ticket, .. }))) = said {
                    self.daemons[by].tickets.push((who, ticket, verb));
                    self.count("waits");
                }
            }
        }
    }

    fn write(&mut self, by: usize) {
        let who = self.someone();
        let (process, file) = (Some(ProcessMark { pid: 8, started: 80 }), at("c.ts:run"));
        let places = vec![PlaceToHold { at: file.clone(), names: Vec::new() }];
        let locks = self.daemons[by].core.state().locks.iter();
        let seen: Vec<Fence> = locks.filter(|it| it.at.file() == file.file()).map(|it| it.fence).collect();
        let files = vec![file.file().clone()];
        let verb = HoldPlaces {
            places,
            files,
            seen,
            tree: "/r".into(),
            commit: None,
            nested: Vec::new(),
            part: None,
            process,
        };
        self.say(by, &who, verb);
    }

    fn intent(&mut self, by: usize) {
        let who = self.someone();
        self.number += 1;
        if self.dice.roll(3) == 0 {
            let id = IntentId::parse(&format!("i-{}", 1 + self.dice.roll(self.number))).unwrap();
            let to = self.pick(&[IntentStatus::Active, IntentStatus::Resolved, IntentStatus::Abandoned]);
            self.say(by, &who, UpdateIntent { id, to });
        } else {
            let verb = intent(self.number, &[("a.ts", &[(3, 9)])], &["Base"]);
            self.say(by, &who, verb);
        }
    }

    fn contract(&mut self, by: usize) {
        let who = self.someone();
        self.number += 1;
        let symbol = self.pick(&SYMBOLS[..4]);
        let id = ContractId::parse(&format!("c-{}", 1 + self.dice.roll(self.number))).unwrap();
        if self.dice.roll(2) == 0 {
            self.say(by, &who, AnswerContract { id, accept: true });
        } else {
            let id = ContractId::parse(&format!("c-{}", self.number)).unwrap();
            let (at, asked) = (at(symbol), symbol.into());
            self.say(
                by,
                &who,
                ProposeContract { id, at, asked, signature: "()".into(), canon: "()".into(), branch: None },
            );
        }
    }

    fn post(&mut self, by: usize) {
        let name = self.pick(&NAMES);
        let who = client(name);
        let to = agent(self.pick(&NAMES));
        let post = match self.dice.roll(4) {
            0 => Post::Question { agent: agent(name), question: "may I?".into() },
            1 => Post::Answer { agent: to, from: agent(name), answer: "yes".into(), re: None },
            _ => Post::Status {
                agent: agent(name),
                status: "working".into(),
                files: vec!["src/a.rs".into()],
                message: None,
                cli: None,
                phase: None,
                detail: None,
            },
        };
        self.say(by, &who, Publish { post, source: Source::Client });
    }

    fn crew(&mut self, by: usize) {
        let who = self.someone();
        match self.dice.roll(3) {
            0 => drop(self.say(by, &who, BeatCrew)),
            1 => {
                let (tool, capabilities) = ("claude".into(), Vec::new());
                self.say(by, &who, JoinCrew { tool, role: Role::Worker, capabilities });
            }
            _ => {
                let content = Content::Missing;
                self.say(by, &who, ClaimFile { file: path("a.ts"), content, assignment: None });
            }
        }
    }

    fn job(&mut self, by: usize) {
        let who = self.someone();
        self.number += 1;
        if self.dice.roll(3) == 0 {
            let files = vec![ApplyFile { path: path("a"), gone: false }];
            let digest = Digest::of(self.number.to_string().as_bytes());
            let (later, diff) = (Vec::new(), Box::default());
            let verb = ApplyFiles { digest, files, later, diff, undoes: None, of: None, worker: None };
            self.say(by, &person("owner"), verb);
            return;
        }
        let verb = OpenJob {
            job: JobId::parse(&format!("j{}", self.number)).unwrap(),
            kind: JobKind::Execution,
            method: "agents.invoke".into(),
            title: "mend it".into(),
            agent: "Claude".into(),
            worker: agent("cli"),
            order: Json::null(),
            key: None,
            step: None,
        };
        self.say(by, &who, verb);
    }

    fn end_job(&mut self, by: usize, job: JobId) {
        let state = self.pick(&[JobState::Completed, JobState::Failed]);
        self.say(by, &host(), EndJob { job, state, error: None, result: None, steps: 0 });
    }

    fn token(&mut self, by: usize) {
        let name = agent(self.pick(&NAMES));
        self.number += 1;
        if self.dice.roll(3) == 0 {
            self.say(by, &person("owner"), RevokeTokens { which: WhichTokens::Of(name) });
        } else {
            let digest = Digest::of(self.number.to_string().as_bytes());
            self.say(
                by,
                &person("owner"),
                MintToken { digest, agent: name, scopes: Scopes::of(&[Scope::Read]), ttl: Ttl::minutes(9) },
            );
        }
    }

    fn switch(&mut self, by: usize) {
        let who = self.someone();
        let to = self.pick(&[Switch::On, Switch::Paused, Switch::Off]);
        if self.say(by, &who, SwitchWorker { worker: agent("cli"), to, command: "c".into() }).is_some() {
            self.count("switches");
        }
    }
}
