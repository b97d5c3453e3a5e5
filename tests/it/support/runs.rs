//! The real core over real jails, without a door: delegations in, ends out.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use provost::base::{AgentId, Digest, EffectId, Json, RepoPath, RuleId, TaskId, Ttl};
use provost::domain::command::CancelTask;
use provost::domain::view::LiveTask;
use provost::domain::{
    Answer, Command, Decision, Delegate, Directory, Door, Effect, Facts, Judge, Owed, Principal, Proof,
    Scope, Settings, Status, Task, TaskState, Terms, Tier, Tool, WorkerKind, WorkerSetting,
};
use provost::effects::{
    CaptureConfig, DeedHands, DesktopOptions, DesktopParts, EffectParts, EffectRunner, HookMessage,
    HookParts, Keep, NoticeParts, TaskNotices, WorkerParts, shell_profile,
};
use provost::engine::{Engine, Started, SystemClock};
use provost::jail::{ForbiddenPaths, OutputBoard, Profile, Root, Supervisor, resolve_program};
use provost::store::{Artifacts, Retention};
use provost::system::folder_watch::FolderWatcher;
use provost::workspace::work_trees::WorkTrees;
use provost_test_equipment::callers::caller;
use provost_test_equipment::{MemoryControl, MemoryStore};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

/// Says yes to everything, under the same terms.
pub(crate) struct Yes(Terms);

impl Judge for Yes {
    fn decide(&self, _who: &Principal, _command: &Command, _facts: &Facts) -> Decision {
        Decision::Allow { rule: RuleId::parse("test.yes").unwrap(), terms: self.0.clone() }
    }

    fn version(&self) -> Digest {
        Digest::default()
    }
}

/// A repository with a daemon's inner half: core, store in memory, and effects that wait for hands.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: MemoryControl,
    pub(crate) engine: Engine,
    pub(crate) thread: Option<JoinHandle<Option<provost::engine::Lost>>>,
    pub(crate) effects: Option<UnboundedReceiver<(EffectId, Effect)>>,
    pub(crate) owed: Vec<Owed>,
    pub(crate) profile: Profile,
    pub(crate) outputs: OutputBoard,
    pub(crate) concurrent: usize,
}

/// No address gets notices.
fn no_notices() -> NoticeParts {
    let settings = tokio::sync::watch::channel(Arc::default()).1;
    let vault = provost::vault::Vault::at(PathBuf::from("/nowhere"));
    NoticeParts { settings, vault, page: Arc::new(|| None) }
}

/// Nobody looks at these runs.
pub(crate) fn no_desktop() -> DesktopParts {
    let (enabled, answer, answer_permissions) = (false, false, false);
    let options =
        DesktopOptions { enabled, answer, answer_permissions, tasks: TaskNotices::None, per_minute: 1 };
    DesktopParts { person: host(), options: tokio::sync::watch::channel(options).1, page: Arc::new(|| None) }
}

/// No jobs and no applies belong to these runs.
fn no_deeds() -> DeedHands {
    DeedHands {
        discards: Box::new(|_| Box::pin(async { Ok(()) })),
        merges: Box::new(|_, _| Box::pin(async { Ok(()) })),
        jobs: Box::new(|_, _| Box::pin(async { Ok(()) })),
        applies: Box::new(|_, _| Box::pin(async { Ok(()) })),
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::under(Terms::default())
    }

    pub(crate) fn under(terms: Terms) -> Self {
        assert!(
            !rustix::process::geteuid().is_root(),
            "jails are tried as an ordinary user: run scripts/test"
        );
        let dir = tempfile::tempdir().unwrap();
        for folder in ["repo/sub", "home", "state", "tools"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let store = MemoryStore::new();
        let control = store.control();
        let started = started(store, &terms);
        Self {
            dir,
            store: control,
            engine: started.engine,
            thread: Some(started.thread),
            effects: Some(started.effects),
            owed: started.owed,
            profile: shell_profile(),
            outputs: OutputBoard::default(),
            concurrent: 4,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// The engine ends and another one goes on with its store.
    pub(crate) fn restart(&mut self) {
        self.engine.stop();
        self.thread.take().unwrap().join().unwrap();
        let started = started(self.store.reopen(), &Terms::default());
        self.engine = started.engine;
        self.thread = Some(started.thread);
        (self.effects, self.owed) = (Some(started.effects), started.owed);
    }

    /// Hands for what is owed and for what comes.
    pub(crate) fn hands(&mut self) -> EffectRunner {
        let profile = Arc::new(self.profile.clone());
        let workers = WorkerParts {
            judge: None,
            asker: None,
            trace_parent: None,
            commits: Arc::new(|_, _| Err("there is no repository".into())),
            profiles: Arc::new(move |id| (*id == profile.id).then(|| profile.clone())),
            root: Root::open(&self.path("repo")).unwrap(),
            forbidden_paths: ForbiddenPaths { home: self.path("home"), forbidden: vec![self.path("state")] },
            copies: self.path("copies"),
            trees: Arc::new(WorkTrees::new(&self.path("repo"), &self.path("trees"))),
            withhold: Arc::new(|_, _| Vec::new()),
            doors: None,
            program: None,
            vault: provost::vault::Vault::at(PathBuf::from("/nowhere")),
            supervisor: Supervisor::at(provost()),
            outputs: self.outputs.clone(),
            concurrent: self.concurrent,
            folders: FolderWatcher::default(),
            keep: keeper(Artifacts::at(&self.path("state"))),
            share: Arc::new(|_, _| Ok(())),
            room: Arc::new(provost::workspace::collect::ChangesRoom::default),
        };
        let hooks = HookParts {
            command: tokio::sync::watch::channel(None).1,
            words: Box::new(|_| HookMessage::default()),
            folder: self.path("hooks"),
            root: self.path("repo"),
            executable: provost(),
            concurrent: 1,
        };
        let capture_config = self.no_camera();
        let parts = EffectParts {
            engine: self.engine.clone(),
            system: host(),
            workers,
            hooks,
            capture_config,
            desktop: no_desktop(),
            notices: no_notices(),
            deeds: no_deeds(),
        };
        EffectRunner::start(parts, self.effects.take().unwrap(), std::mem::take(&mut self.owed))
    }

    /// These runs take no pictures.
    pub(crate) fn no_camera(&self) -> tokio::sync::watch::Receiver<Arc<CaptureConfig>> {
        let capture_config = CaptureConfig {
            backend: None,
            format: "png",
            folder: Err("there is no place for pictures".into()),
            staging: self.path("screen"),
            workspace: self.path("repo"),
            environment: Vec::new(),
        };
        tokio::sync::watch::channel(Arc::new(capture_config)).1
    }

    pub(crate) async fn delegate(&self, task: &str, goal: &str) -> TaskId {
        self.delegate_in("", task, goal).await
    }

    pub(crate) async fn delegate_in(&self, folder: &str, task: &str, goal: &str) -> TaskId {
        self.order(folder, task, goal, Ttl::minutes(2)).await
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) async fn order(&self, folder: &str, task: &str, goal: &str, timeout: Ttl) -> TaskId {
        let (order, facts) = self.delegation(folder, task, goal, timeout);
        let id = order.task.clone();
        let answer = self.engine.submit_judged(&asker(), order, facts).await;
        assert!(matches!(answer, Ok(Answer::Done(_))), "{answer:?}");
        id
    }

    /// A delegation of this world's worker, and what is found out before it is judged.
    pub(crate) fn delegation(&self, folder: &str, task: &str, goal: &str, timeout: Ttl) -> (Delegate, Facts) {
        let id = TaskId::parse(task).unwrap();
        let root = Root::open(&self.path("repo")).unwrap();
        let relative = RepoPath::parse(folder).unwrap();
        let found = root.resolve_dir(&relative).unwrap();
        let absolute = found.place().path().to_str().unwrap().into();
        let (dev, ino) = (found.place().dev(), found.place().ino());
        let facts = Facts {
            directory: Some(Directory { relative, absolute, dev, ino }),
            program: Some(self.profile.fingerprint(resolve_program(&self.profile.program).unwrap().digest())),
            ..Facts::default()
        };
        let order = Delegate {
            task: id,
            goal: goal.into(),
            worker: self.profile.id.clone(),
            return_to: None,
            tool: Tool::default(),
            timeout,
            model: None,
            context: None,
            watch_patterns: vec![],
            working_dir: None,
            format: None,
            payload: Json::null(),
            errand: None,
            work_tree: None,
            continues: None,
            placement: None,
            trace: None,
        };
        (order, facts)
    }

    pub(crate) async fn cancel(&self, task: &TaskId) {
        let verb = CancelTask { task: task.clone(), reason: "changed my mind".into() };
        self.engine.submit(&asker(), verb).await.unwrap();
    }

    /// The task as it was left. Waits for its end.
    pub(crate) async fn finished(&self, task: &TaskId) -> Task {
        let mut events = self.engine.subscribe();
        while self.engine.view(LiveTask(task.clone())).await.unwrap().is_some() {
            let next = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
            next.expect("the task ends").unwrap();
        }
        let id = task.clone();
        let kept = self.engine.read(move |reader| reader.task(&id)).await.unwrap();
        kept.expect("a finished task is kept")
    }

    pub(crate) async fn running(&self, task: &TaskId) {
        let mut events = self.engine.subscribe();
        loop {
            let live = self.engine.view(LiveTask(task.clone())).await.unwrap().expect("it has not ended");
            if matches!(live.state, TaskState::Running { .. }) {
                return;
            }
            tokio::time::timeout(Duration::from_secs(60), events.recv()).await.expect("it begins").unwrap();
        }
    }

    pub(crate) async fn has_begun(&self, task: &TaskId) -> bool {
        let live = self.engine.view(LiveTask(task.clone())).await.unwrap();
        live.is_none_or(|task| !matches!(task.state, TaskState::Queued { .. }))
    }

    /// Returns the digest that the run finds when this world's worker runs another program.
    pub(crate) fn program_instead(&self, name: &str) -> Option<Digest> {
        let profile = self.profile.instead(provost::system::find_program(name)?);
        Some(profile.fingerprint(resolve_program(&profile.program).ok()?.digest()))
    }

    /// The worker has said something.
    pub(crate) async fn heard(&self, task: &TaskId) {
        self.running(task).await;
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < Duration::from_secs(60), "the worker says something");
            if let Some(output) = self.outputs.get(task) {
                let page = tokio::time::timeout(Duration::from_secs(60), output.follow(0)).await;
                assert!(!page.expect("the worker says something").chunks.is_empty());
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Returns the effects that a start would find owed. Ends the engine.
    pub(crate) fn still_owed(&mut self) -> Vec<Owed> {
        self.restart();
        std::mem::take(&mut self.owed)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

pub(crate) fn started(store: MemoryStore, terms: &Terms) -> Started {
    let mut settings = Settings::new(AgentId::parse("client:approver").unwrap());
    let setting = |tier| WorkerSetting {
        kind: WorkerKind::Cli,
        secrets: Vec::new(),
        network: Default::default(),
        tier,
        git: Default::default(),
        copy: false,
        other_hosts: false,
        speaks: false,
        needs: Vec::new(),
        needs_wait: Ttl::minutes(30),
        retries: provost::domain::Retries::default(),
        broken: None,
    };
    settings.workers = BTreeMap::from([(AgentId::parse("shell").unwrap(), setting(Tier::Ns))]);
    let keep = Duration::from_secs(3600);
    let retention = Retention { tasks: keep, tasks_most: u32::MAX, events: keep };
    let judge = Box::new(Yes(terms.clone()));
    provost::engine::start(Box::new(store), judge, settings, Box::new(SystemClock), retention).unwrap()
}

pub(crate) fn asker() -> Principal {
    caller("orch", Door::Own, &[Scope::Delegate, Scope::Read], Proof::PeerUid)
}

pub(crate) fn host() -> Principal {
    caller("provost", Door::Internal, &[Scope::Host], Proof::Internal)
}

pub(crate) fn provost() -> PathBuf {
    let built = std::env::var_os("NEXTEST_BIN_EXE_provost");
    built.map_or_else(|| env!("CARGO_BIN_EXE_provost").into(), PathBuf::from)
}

pub(crate) fn status(task: &Task) -> Status {
    task.state.status()
}

#[track_caller]
pub(crate) fn summary(task: &Task) -> String {
    task.notes.last().expect("an end has a note").report.summary.to_string()
}

pub(crate) fn details(task: &Task) -> Value {
    task.notes.last().unwrap().report.details.as_ref().unwrap().value()
}

pub(crate) fn metadata(task: &Task) -> Value {
    task.notes.last().unwrap().report.metadata.as_ref().unwrap().value()
}

pub(crate) fn keeper(artifacts: Artifacts) -> Keep {
    Arc::new(move |task, harvest, answer| {
        artifacts.keep(task, harvest, answer).map_err(|error| error.to_string())
    })
}
