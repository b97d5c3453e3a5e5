//! What happens between "allowed" and "done": real workers in real jails, driven by the real core.
//!
//! These tests need an ordinary user and a host that can confine; they fail elsewhere, they are never skipped.

mod ends;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use provost::auth::testing::caller;
use provost::base::{AgentId, Digest, EffectId, Json, RepoPath, RuleId, TaskId, Timestamp, Ttl};
use provost::domain::command::{BeginRun, CancelTask, Record};
use provost::domain::view::LiveTask;
use provost::domain::{
    Answer, Command, Decision, Delegate, Directory, Door, Effect, EventKind, Facts, Failure, Judge, Owed,
    Principal, Proof, Refusal, Scope, Settings, Status, Task, TaskState, Terms, Tier, Tool, WorkerKind,
    WorkerSetting,
};
use provost::effects::{
    Camera, DesktopOptions, DesktopParts, Hands, HookParts, Keep, Parts, TaskNotices, Told, WorkerParts,
    shell_profile,
};
use provost::engine::{Engine, Started, SystemClock};
use provost::jail::{Copies, Grounds, OutputBoard, Profile, Root, Supervisor, resolve_program};
use provost::store::{Artifacts, MemoryControl, MemoryStore, Retention};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

/// Says yes to everything, under the same terms.
struct Yes(Terms);

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
    dir: tempfile::TempDir,
    store: MemoryControl,
    engine: Engine,
    thread: Option<JoinHandle<Option<provost::engine::Lost>>>,
    effects: Option<UnboundedReceiver<(EffectId, Effect)>>,
    owed: Vec<Owed>,
    pub(crate) profile: Profile,
    outputs: OutputBoard,
    concurrent: usize,
}

/// Nobody looks at these runs.
fn no_desktop() -> DesktopParts {
    let options = DesktopOptions { enabled: false, answer: false, tasks: TaskNotices::None, per_minute: 1 };
    DesktopParts { person: host(), options: tokio::sync::watch::channel(options).1 }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::under(Terms::default())
    }

    fn under(terms: Terms) -> Self {
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
    pub(crate) fn hands(&mut self) -> Hands {
        let profile = Arc::new(self.profile.clone());
        let workers = WorkerParts {
            profiles: Arc::new(move |id| (*id == profile.id).then(|| profile.clone())),
            root: Root::open(&self.path("repo")).unwrap(),
            grounds: Grounds { home: self.path("home"), forbidden: vec![self.path("state")] },
            copies: self.path("copies"),
            doors: None,
            program: None,
            vault: provost::vault::Vault::at(PathBuf::from("/nowhere")),
            supervisor: Supervisor::at(provost()),
            outputs: self.outputs.clone(),
            concurrent: self.concurrent,
            keep: keeper(Artifacts::at(&self.path("state"))),
        };
        let hooks = HookParts {
            command: tokio::sync::watch::channel(None).1,
            words: Box::new(|_| Told::default()),
            folder: self.path("hooks"),
            root: self.path("repo"),
            executable: provost(),
            concurrent: 1,
        };
        let camera = self.no_camera();
        let parts = Parts {
            engine: self.engine.clone(),
            host: host(),
            workers,
            hooks,
            camera,
            desktop: no_desktop(),
        };
        Hands::start(parts, self.effects.take().unwrap(), std::mem::take(&mut self.owed))
    }

    /// These runs take no pictures.
    fn no_camera(&self) -> tokio::sync::watch::Receiver<Arc<Camera>> {
        let camera = Camera {
            backend: None,
            format: "png",
            gallery: Err("there is no place for pictures".into()),
            staging: self.path("screen"),
            workspace: self.path("repo"),
            environment: Vec::new(),
        };
        tokio::sync::watch::channel(Arc::new(camera)).1
    }

    async fn delegate(&self, task: &str, goal: &str) -> TaskId {
        self.delegate_in("", task, goal).await
    }

    async fn delegate_in(&self, folder: &str, task: &str, goal: &str) -> TaskId {
        self.order(folder, task, goal, Ttl::minutes(2)).await
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    async fn order(&self, folder: &str, task: &str, goal: &str, timeout: Ttl) -> TaskId {
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

    async fn running(&self, task: &TaskId) {
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

    /// What is found out before this world's worker runs something else.
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

    /// What a start would find owed. Ends the engine.
    fn still_owed(&mut self) -> Vec<Owed> {
        self.restart();
        std::mem::take(&mut self.owed)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

fn started(store: MemoryStore, terms: &Terms) -> Started {
    let mut settings = Settings::new(AgentId::parse("client:approver").unwrap());
    let setting = |tier| WorkerSetting {
        kind: WorkerKind::Cli,
        secrets: Vec::new(),
        network: Default::default(),
        tier,
        git: Default::default(),
        copy: false,
        broken: None,
    };
    settings.workers = BTreeMap::from([(AgentId::parse("shell").unwrap(), setting(Tier::Ns))]);
    let keep = Duration::from_secs(3600);
    let retention = Retention { tasks: keep, tasks_most: u32::MAX, events: keep };
    let judge = Box::new(Yes(terms.clone()));
    provost::engine::start(Box::new(store), judge, settings, Box::new(SystemClock), retention).unwrap()
}

fn keeper(artifacts: Artifacts) -> Keep {
    Arc::new(move |task, harvest, answer| {
        artifacts.keep(task, harvest, answer).map_err(|error| error.to_string())
    })
}

pub(crate) fn asker() -> Principal {
    caller("orch", Door::Own, &[Scope::Delegate, Scope::Read], Proof::PeerUid)
}

pub(crate) fn host() -> Principal {
    caller("provost", Door::Internal, &[Scope::Host], Proof::Internal)
}

fn provost() -> PathBuf {
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

fn metadata(task: &Task) -> Value {
    task.notes.last().unwrap().report.metadata.as_ref().unwrap().value()
}

/// Processes of the host whose command line contains a word.
fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.map(|entry| fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.filter(|line| line.windows(word.len()).any(|part| part == word.as_bytes())).count()
}

#[tokio::test]
async fn an_allowed_task_runs_and_its_result_is_kept() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo made > made.txt; echo all good; echo a note >&2").await;
    let done = world.finished(&task).await;
    assert_eq!((status(&done), summary(&done).as_str()), (Status::Completed, "all good"));
    assert_eq!(fs::read_to_string(world.path("repo/made.txt")).unwrap(), "made\n");
    assert_eq!(details(&done)["stderr"], "a note");
    let metadata = metadata(&done);
    assert_eq!((&metadata["exit_code"], &metadata["tier"]), (&0.into(), &"ns".into()));
    assert!(metadata["time_started"].is_string());
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_failing_command_reports_its_exit_code() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo bad luck >&2; exit 7").await;
    let done = world.finished(&task).await;
    assert_eq!(
        (status(&done), summary(&done).as_str()),
        (Status::Failed, "Worker '/bin/sh' failed: bad luck")
    );
    assert_eq!(done.failure, Some(Failure::WorkerFailed { why: "exit code 7".into() }));
    assert_eq!(metadata(&done)["exit_code"], 7);
    hands.stop().await;
}

#[tokio::test]
async fn a_worker_finds_its_task_and_no_secret_in_its_environment() {
    let mut world = World::new();
    world.profile.env = BTreeMap::from([("CODER_HOME".into(), "/opt/coder".into())]);
    let hands = world.hands();
    let task = world.delegate("t-1", "env").await;
    let said = details(&world.finished(&task).await)["stdout"].as_str().unwrap().to_owned();
    for expected in [
        "DEVIT_TASK_ID=t-1".to_owned(),
        "DEVIT_GOAL=env".to_owned(),
        format!("DEVIT_WORKSPACE={}", world.path("repo").display()),
        "CODER_HOME=/opt/coder".to_owned(),
    ] {
        assert!(said.lines().any(|line| line == expected), "{expected} in {said}");
    }
    assert!(!said.contains("SECRET") && !said.contains("NEXTEST") && !said.contains("PROVOST_"), "{said}");

    let mut world = World::new();
    for name in ["DEVIT_SECRET", "PROVOST_TOKEN"] {
        world.profile.env = BTreeMap::from([(name.into(), "x".into())]);
        let task = world.delegate(name, "env").await;
        let hands = world.hands();
        let failed = world.finished(&task).await;
        assert!(matches!(failed.failure, Some(Failure::JailRefused { .. })), "{failed:?}");
        assert!(summary(&failed).contains(name));
        hands.stop().await;
        world.restart();
    }
    hands.stop().await;
}

#[tokio::test]
async fn a_task_changes_its_own_directory_and_sees_the_rest() {
    let mut world = World::new();
    fs::write(world.path("repo/top.txt"), "readable").unwrap();
    fs::create_dir(world.path("repo/.provost")).unwrap();
    fs::write(world.path("repo/.provost/private"), "x").unwrap();
    let hands = world.hands();
    let goal = "cat ../top.txt; touch here; touch ../there 2>/dev/null || echo ' kept out'; ls ../.provost";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    assert_eq!(summary(&done), "readable kept out");
    assert!(world.path("repo/sub/here").exists() && !world.path("repo/there").exists());
    hands.stop().await;
}

#[tokio::test]
async fn a_worker_in_a_folder_reads_the_history_of_its_repository() {
    let mut world = World::new();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=T", "-c", "user.email=t@localhost"]).args(args);
        assert!(git.current_dir(world.path("repo")).output().unwrap().status.success(), "{args:?}");
    };
    fs::write(world.path("repo/sub/file"), "old\n").unwrap();
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first words"]);
    let hands = world.hands();
    let goal = "git log --format=%s; echo new > file; git diff --stat -- file | head -1; git gc 2>/dev/null || echo kept";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    assert_eq!(summary(&done), "first words\n sub/file | 2 +-\nkept", "{done:?}");
    hands.stop().await;
    let left: Vec<_> =
        fs::read_dir(world.path("repo/sub")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "nothing is left behind");
}

#[tokio::test]
async fn a_swapped_directory_is_refused() {
    let mut world = World::new();
    let task = world.delegate_in("sub", "t-1", "touch ran").await;
    fs::rename(world.path("repo/sub"), world.path("repo/was")).unwrap();
    fs::create_dir(world.path("repo/sub")).unwrap();
    let link = world.delegate_in("was", "t-2", "touch ran").await;
    fs::rename(world.path("repo/was"), world.path("repo/moved")).unwrap();
    std::os::unix::fs::symlink(world.path("home"), world.path("repo/was")).unwrap();
    let hands = world.hands();
    for task in [&task, &link] {
        let refused = world.finished(task).await;
        assert!(matches!(refused.failure, Some(Failure::Sandbox { .. })), "{refused:?}");
        assert_eq!(metadata(&refused)["time_started"], Value::Null);
    }
    for place in ["repo/sub", "repo/moved", "home"] {
        assert!(!world.path(place).join("ran").exists());
    }
    hands.stop().await;
    assert_eq!(world.still_owed(), []);
}

#[tokio::test]
async fn a_swapped_program_is_refused() {
    let mut world = World::new();
    let tool = world.path("tools/tool");
    let write = |script: &str| {
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("#!/bin/sh\necho honest\n");
    world.profile = Profile { program: tool.clone(), args: vec![], ..shell_profile() };
    let first = world.delegate("t-1", "x").await;
    write("#!/bin/sh\necho evil\n");
    let hands = world.hands();
    let refused = world.finished(&first).await;
    assert!(
        matches!(&refused.failure, Some(Failure::JailRefused { why }) if why.contains("delegate it again"))
    );
    let second = world.delegate("t-2", "x").await;
    assert_eq!(summary(&world.finished(&second).await), "evil", "allowed as it is now");
    hands.stop().await;
}

#[tokio::test]
async fn terms_that_cannot_be_kept_are_refused() {
    let mut world = World::under(Terms { processes: Some(1), ..Terms::default() });
    let hands = world.hands();
    let task = world.delegate("t-1", "sleep 0 & wait; echo forked").await;
    assert_eq!(status(&world.finished(&task).await), Status::Failed, "one process is one process");
    let long = world.delegate("t-2", &format!("true {}", "x".repeat(200_000))).await;
    let refused = world.finished(&long).await;
    assert!(summary(&refused).contains("put it into a file"), "{}", summary(&refused));
    hands.stop().await;
}

#[tokio::test]
async fn a_copy_is_changed_and_thrown_away() {
    let mut world = World::new();
    world.profile.copies = Copies::Thrown;
    fs::write(world.path("repo/sub/file"), "original").unwrap();
    std::os::unix::fs::symlink("file", world.path("repo/sub/link")).unwrap();
    let hands = world.hands();
    let goal = "cat link; echo changed > file; mkdir -m 0 locked; pwd; echo $DEVIT_WORKSPACE";
    let task = world.delegate_in("sub", "t-1", goal).await;
    let done = world.finished(&task).await;
    let said = summary(&done);
    let copies = world.path("copies");
    let mut lines = said.strip_prefix("original").expect(&said).lines();
    let (cwd, workspace) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(Path::new(cwd).starts_with(&copies) && cwd == workspace, "{said}");
    assert_eq!(fs::read_to_string(world.path("repo/sub/file")).unwrap(), "original");
    hands.stop().await;
    let started = Instant::now();
    while fs::read_dir(&copies).unwrap().count() > 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "copies are removed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn results_wait_for_a_store_that_fails() {
    let mut world = World::new();
    let hands = world.hands();
    let task = world.delegate("t-1", "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo done").await;
    world.heard(&task).await;
    world.store.fail_commits(true);
    let record = Record { what: "test".into(), subject: "x".into(), details: Json::null() };
    let operator = caller("operator", Door::Own, &[Scope::Operate], Proof::PeerUid);
    let refused = world.engine.submit(&operator, record).await;
    assert!(matches!(refused, Err(Refusal::Unavailable { .. })), "{refused:?}");
    let output = world.outputs.get(&task).unwrap();
    fs::write(world.path("repo/go"), "").unwrap();
    let mut read = 0;
    loop {
        let page = output.follow(read).await;
        read = page.next;
        if page.finished {
            break;
        }
    }
    // Nobody sees a refused result; this is the time in which it is refused several times.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(world.engine.view(LiveTask(task.clone())).await.unwrap().is_some());
    world.store.fail_commits(false);
    let done = world.finished(&task).await;
    assert_eq!(details(&done)["stdout"], "begun\ndone\n");
    hands.stop().await;
    let events = world.store.events().into_iter().filter_map(|it| it.event().ok().flatten());
    let starts = events.filter(|event| matches!(event.kind, EventKind::TaskStarted { .. })).count();
    assert_eq!(starts, 1);
}
