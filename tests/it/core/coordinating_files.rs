//! Locks, intents and contracts on real files: what the code says, beneath the root and within bounds.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost::base::later::RunsOutside;
use provost::base::limits::SOURCE_BYTES_MAX;
use provost::base::{AgentId, ContractId, IntentId, Span, Ttl};
use provost::domain::command::{Apart, Conflict, Warning};
use provost::domain::view::{SomeContracts, SomeIntents};
use provost::domain::{Contract, ContractStatus, Door, Principal, Proof, Refusal, Scope};
use provost::engine::SystemClock;
use provost::index::{Index, Options};
use provost::jail::{OutputBoard, Root};
use provost::service::{
    ApplyRules, Applying, Configured, Content, ContractMismatch, Edit, Granted, IntentOrder, LockOrder,
    ProposeError, Provost, Staged, Violation,
};
use provost::store::{Artifacts, Retention};
use provost::system::folder_watch::FolderWatcher;
use provost::workspace::Versions;
use provost::workspace::work_trees::WorkTrees;
use provost_test_equipment::MemoryStore;
use provost_test_equipment::callers::caller;
use tempfile::TempDir;

use crate::support::coordinating::{at, path};
use crate::support::script::{ByWord, client, no_merges};
use crate::support::storm::settings;
use crate::support::waits::eventually_so;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    dir: TempDir,
    provost: Provost,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keep = Duration::from_secs(3_600);
        let retention = Retention { tasks: keep, tasks_most: u32::MAX, events: keep };
        let judge = Box::new(ByWord::default());
        let store = Box::new(MemoryStore::new());
        let started =
            provost::engine::start(store, judge, settings(), Box::new(SystemClock), retention).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let options = Options { on: false, files_max: 0 };
        let index = Index::start(dir.path(), Arc::default(), &FolderWatcher::default(), options).unwrap();
        let versions = Versions::open(&dir.path().join(".state")).unwrap();
        let nowhere = Path::new("/nowhere");
        let workers = Configured {
            profiles: Arc::default(),
            artifacts: Artifacts::at(nowhere),
            room: Default::default(),
            merges: no_merges(),
        };
        let applying = Applying::open(
            &dir.path().join(".state"),
            ApplyRules {
                deny: &[],
                unknown: true,
                settings: false,
                files: 500,
                held: Box::new(|_, _| Ok(RunsOutside::default())),
            },
        )
        .unwrap();
        let trees = Arc::new(WorkTrees::new(dir.path(), &dir.path().join(".trees")));
        let kept = (versions, applying, trees);
        let provost =
            Provost::new(started.engine, host(), root, OutputBoard::default(), workers, index, kept);
        Self { dir, provost }
    }

    fn put(&self, file: &str, text: &str) {
        let file = self.dir.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn at(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    async fn lock(&self, who: &str, symbol: &str) -> Result<Granted, Refusal> {
        let mut granted = self.provost.lock(&client(who), order(symbol)).await?;
        // Nothing has read this repository whole.
        granted.warnings.retain(|it| !matches!(it, Warning::Incomplete(_)));
        Ok(granted)
    }

    async fn declare(&self, who: &str, number: u64, file: &str, symbols: &[&str]) -> Vec<Conflict> {
        let order = IntentOrder {
            base: None,
            id: intent_id(number),
            description: "change it".into(),
            files: vec![(path(file), file.into())],
            symbols: symbols.iter().map(|it| (*it).into()).collect(),
            ttl: None,
            grants: Vec::new(),
        };
        let mut conflicts = self.provost.declare(&client(who), order).await.unwrap().conflicts;
        // The index is off here.
        conflicts.retain(|it| !matches!(it, Conflict::Incomplete(_)));
        conflicts
    }

    async fn agree(&self, number: u64, symbol: &str) -> Arc<Contract> {
        let id = ContractId::parse(&format!("c-{number}")).unwrap();
        self.provost.propose(&client("ada"), None, id.clone(), &at(symbol), symbol).await.unwrap();
        self.provost.answer_contract(&client("bob"), id, true).await.unwrap()
    }

    async fn faults(&self, staged: Vec<Staged>, deleted: &[&str]) -> Vec<ContractMismatch> {
        let deleted = deleted.iter().map(|it| path(it)).collect();
        let checked = self.provost.check_contracts(None, staged, deleted).await.unwrap();
        checked.violations.into_iter().map(|Violation { fault, .. }| fault).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.provost.engine().stop();
    }
}

fn host() -> Principal {
    caller("provost", Door::Internal, &[Scope::Host, Scope::Operate, Scope::Read], Proof::Internal)
}

fn order(symbol: &str) -> LockOrder {
    LockOrder {
        base: None,
        at: at(symbol),
        asked: symbol.into(),
        ttl: Some(Ttl::minutes(30)),
        at_least: false,
        wait: None,
        reason: None,
        process: None,
        apart: Apart::FromNone,
        in_session: false,
    }
}

fn intent_id(number: u64) -> IntentId {
    IntentId::parse(&format!("i-{number}")).unwrap()
}

fn staged(file: &str, content: &str) -> Staged {
    Staged { path: path(file), content: Some(content.as_bytes().into()), renamed_from: None }
}

const AUTH: &str = "export function check(token: string): boolean { return true }\n\
                    export function login(): void { check('x') }\n\
                    export class Session { renew(): void { login() } end(): void {} }\n\
                    class Other { end(): void {} }\n";

#[tokio::test]
async fn one_file_has_one_spelling_through_dots_slashes_and_links() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    std::os::unix::fs::symlink("src", world.at("alias")).unwrap();
    std::os::unix::fs::symlink("auth.ts", world.at("src/same.ts")).unwrap();
    world.lock("ada", "src/auth.ts:check").await.unwrap();
    for other in
        ["./src//auth.ts:check", "x/../src/auth.ts:check", "alias/auth.ts:check", "src/same.ts:check"]
    {
        assert!(matches!(world.lock("bob", other).await, Err(Refusal::LockConflict(_))), "{other}");
    }
    world.lock("ada", "alias/new.ts:f").await.unwrap();
    let later = world.lock("bob", "src/new.ts:f").await;
    assert!(matches!(later, Err(Refusal::LockConflict(_))), "a file that is not there yet: {later:?}");
}

#[tokio::test]
async fn names_of_one_symbol_are_one_lock_and_a_misspelt_one_is_told() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    world.lock("ada", "src/auth.ts:renew").await.unwrap();
    assert!(matches!(world.lock("bob", "src/auth.ts:Session.renew").await, Err(Refusal::LockConflict(_))));
    let class = world.lock("bob", "src/auth.ts:Session").await.unwrap();
    assert!(matches!(&class.warnings[..], [Warning::Around(_)]), "{:?}", class.warnings);
    let typo = world.lock("eve", "src/auth.ts:chekc").await.unwrap();
    assert!(matches!(&typo.warnings[..], [Warning::Unknown]), "{:?}", typo.warnings);
    world.lock("eve", "src/auth.ts:Other.end").await.unwrap();
    // A lock by a name of two symbols takes both. Two other agents hold one of them each.
    for (agent, held) in [("bob", "src/auth.ts:Session"), ("eve", "src/auth.ts:Other.end")] {
        let asked = world.lock("zoe", "src/auth.ts:end").await;
        assert!(matches!(asked, Err(Refusal::LockConflict(_))), "{asked:?}");
        world.provost.unlock(&client(agent), None, &at(held), None, false).await.unwrap();
    }
    let two = world.lock("zoe", "src/auth.ts:end").await.unwrap();
    let names = |warning: &Warning| match warning {
        Warning::Ambiguous(paths) => Some(paths.join(" ")),
        _ => None,
    };
    assert_eq!(two.warnings.iter().find_map(names).unwrap(), "Other.end Session.end");
    let nowhere = world.lock("zoe", "nowhere.zig:main").await.unwrap();
    assert!(matches!(&nowhere.warnings[..], [Warning::NoFile]), "{:?}", nowhere.warnings);
    world.put("main.zig", "package main");
    let none = world.lock("zoe", "main.zig:main").await.unwrap();
    // A language that is not read has no symbols: the whole file is held, and the answer says so.
    assert!(
        matches!(&none.warnings[..], [Warning::Unreadable(why)] if why.contains("the whole file")),
        "{:?}",
        none.warnings
    );
}

#[tokio::test]
async fn a_caller_that_another_has_locked_is_told_and_a_new_version_of_the_file_counts_at_once() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    world.lock("ada", "src/auth.ts:login").await.unwrap();
    let told = world.lock("bob", "src/auth.ts:check").await.unwrap();
    match &told.warnings[..] {
        [Warning::CallerLocked { caller, .. }] => assert_eq!(*caller, at("src/auth.ts:login")),
        other => panic!("{other:?}"),
    }
    world.put("src/auth.ts", "function check() {}\nfunction login() {}\n");
    assert!(world.lock("bob", "src/auth.ts:check").await.unwrap().warnings.is_empty());
    // As long as before, and written within the same moment.
    world.put("src/auth.ts", "function check() {}\nfunction lagin() {}\n");
    let now = world.lock("ada", "src/auth.ts:login").await.unwrap();
    assert!(matches!(&now.warnings[..], [Warning::Unknown]), "{:?}", now.warnings);
}

async fn content(world: &World, file: &str) -> Content {
    tokio::time::timeout(PATIENCE, world.provost.code().read(world.provost.base(), &path(file)))
        .await
        .unwrap()
        .content
}

#[tokio::test]
async fn what_is_no_source_file_beneath_the_root_is_never_read_and_never_waited_for() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.ts"), "export function key() {}").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.ts"), world.at("file.ts")).unwrap();
    std::os::unix::fs::symlink(outside.path(), world.at("folder")).unwrap();
    fs::create_dir(world.at("dir.ts")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.at("pipe.py"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    std::os::unix::net::UnixListener::bind(world.at("socket.ts")).unwrap();
    let huge = fs::File::create(world.at("huge.ts")).unwrap();
    huge.set_len(SOURCE_BYTES_MAX as u64 + 1).unwrap();
    fs::write(world.at("nest.ts"), "(".repeat(100_000)).unwrap();
    fs::write(world.at("bytes.ts"), b"\xef\xbb\xbffunction f() {}\n// \xff\xfe\n").unwrap();
    for (file, why) in [
        ("file.ts", "leads out"),
        ("folder/secret.ts", "leads out"),
        ("pipe.py", "not a regular file"),
        ("huge.ts", "more than files are read"),
        ("socket.ts", ""),
    ] {
        match content(&world, file).await {
            Content::Unreadable(said) => assert!(said.contains(why), "{file}: {said}"),
            other => panic!("{file}: {other:?}"),
        }
        let told = world.lock("ada", &format!("{file}:key")).await.unwrap();
        assert!(matches!(&told.warnings[..], [Warning::Unreadable(_)]), "{file}: {:?}", told.warnings);
    }
    for file in ["dir.ts", "none.ts", "main.zig", "none/deep/er.ts"] {
        assert!(matches!(content(&world, file).await, Content::None), "{file}");
    }
    assert!(matches!(content(&world, "nest.ts").await, Content::Code(_) | Content::Unreadable(_)));
    let Content::Code(reading) = content(&world, "bytes.ts").await else { panic!("it is code") };
    assert_eq!(reading.ranges("f").first(), Some(&(3..18)), "bytes as on disk");
}

#[tokio::test]
async fn whoever_waits_gets_the_lock_in_turn_and_whoever_gives_up_loses_the_place() {
    let world = World::new();
    let wait = |who: &'static str| {
        let (provost, order) =
            (world.provost.clone(), LockOrder { wait: Some(Ttl::minutes(5)), ..order("a.ts:f") });
        tokio::spawn(async move { provost.lock(&client(who), order).await })
    };
    world.lock("ada", "a.ts:f").await.unwrap();
    let first = wait("bob");
    waiters(&world, 1).await;
    let second = wait("eve");
    waiters(&world, 2).await;
    first.abort();
    waiters(&world, 1).await;
    let release = |who: &'static str| {
        let provost = world.provost.clone();
        async move { provost.unlock(&client(who), None, &at("a.ts:f"), None, false).await }
    };
    release("ada").await.unwrap();
    let granted = tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
    assert_eq!(granted.lock.holder.as_str(), "eve");
    let short = LockOrder { wait: Ttl::from_millis(20), ..order("a.ts:f") };
    let late = tokio::time::timeout(PATIENCE, world.provost.lock(&client("ada"), short)).await.unwrap();
    assert!(matches!(late, Err(Refusal::LockConflict(rival)) if rival.by.as_str() == "eve"));
    waiters(&world, 0).await;
}

async fn waiters(world: &World, count: usize) {
    let reached = async || world.provost.lock_waiters().await.unwrap().len() == count;
    eventually_so("so many who wait", reached).await;
}

#[tokio::test]
async fn a_grant_of_which_nobody_heard_is_given_back() {
    let world = World::new();
    world.lock("ada", "a.ts:kept").await.unwrap();
    for number in 0..200 {
        let provost = world.provost.clone();
        let asked =
            tokio::spawn(
                async move { provost.lock(&client("bob"), order(&format!("a.ts:f{number}"))).await },
            );
        for _ in 0..number % 40 {
            tokio::task::yield_now().await;
        }
        asked.abort();
        if let Ok(Ok(granted)) = asked.await {
            let at = granted.lock.at.clone();
            world.provost.unlock(&client("bob"), None, &at, None, false).await.unwrap();
        }
    }
    let settled = async || world.provost.locks(None, Vec::new()).await.unwrap().0.len() == 1;
    eventually_so("the end of locks that nobody knows of", settled).await;
}

#[tokio::test]
async fn intents_are_compared_where_their_symbols_are_now() {
    let world = World::new();
    world.put("a.ts", "function f() {}\nfunction g() {}\n");
    assert!(world.declare("ada", 1, "a.ts", &["f"]).await.is_empty());
    assert!(world.declare("bob", 2, "./a.ts", &["g"]).await.is_empty());
    let both = world.declare("eve", 3, "a.ts", &[]).await;
    assert_eq!(both.len(), 2, "{both:?}");
    // `f` moves to where `g` was told to be.
    world.put("a.ts", "// a comment\nfunction g() {}\n\nfunction f() {}\n");
    assert_eq!(world.declare("zoe", 4, "a.ts", &["g"]).await.len(), 2, "bob's and eve's, and not ada's");
    let which = SomeIntents { agent: Some(AgentId::parse("ada").unwrap()), ..SomeIntents::default() };
    let known = world.provost.intents(which.clone()).await.unwrap();
    assert_eq!(known[0].it.reach(), Some(Span { start: 30, end: 45 }));
    world.put("a.ts", "function f() {}\n");
    assert_eq!(world.provost.intents(which).await.unwrap()[0].it.reach(), Some(Span { start: 0, end: 15 }));
}

#[tokio::test]
async fn what_an_intent_calls_and_another_has_locked_is_told() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    world.lock("ada", "src/auth.ts:check").await.unwrap();
    let conflicts = world.declare("bob", 1, "src/auth.ts", &["check", "login"]).await;
    assert!(
        matches!(&conflicts[..], [Conflict::Locked { .. }, Conflict::Chain { symbol, .. }] if *symbol == at("src/auth.ts:login")),
        "{conflicts:?}"
    );
    let whole = world.declare("eve", 2, "src/auth.ts", &[]).await;
    assert!(whole.iter().any(|it| matches!(it, Conflict::Within(_))), "{whole:?}");
}

#[tokio::test]
async fn a_contract_survives_a_formatter_and_nothing_that_callers_would_notice() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    let contract = world.agree(1, "./src/auth.ts:check").await;
    assert_eq!((&*contract.signature, &contract.at), ("(token: string): boolean", &at("src/auth.ts:check")));
    for same in [
        "export function check(token:string):boolean { return !1 }",
        "export function check(\n  token: string, // the token\n): boolean { return true }",
    ] {
        assert_eq!(world.faults(vec![staged("src/auth.ts", same)], &[]).await, [], "{same}");
    }
    for (other, actual) in [
        ("export async function check(token: string): Promise<boolean> { return true }", Some("async")),
        ("export function check<T>(token: string): boolean { return true }", Some("<T>")),
        ("export function check(token: string): token is 'a' { return true }", Some("token is")),
        ("export const nothing = 1", None),
    ] {
        match (&world.faults(vec![staged("src/auth.ts", other)], &[]).await[..], actual) {
            ([ContractMismatch::Changed(said)], Some(part)) => assert!(said.contains(part), "{said}"),
            ([ContractMismatch::Missing], None) => {}
            other => panic!("{other:?}"),
        }
    }
    let broken =
        world.faults(vec![staged("src/auth.ts", "export function check(token: string {")], &[]).await;
    assert!(
        matches!(
            &broken[..],
            [ContractMismatch::Untold(_) | ContractMismatch::Missing | ContractMismatch::Changed(_)]
        ),
        "{broken:?}"
    );
    assert_eq!(world.faults(vec![staged("src/other.ts", "")], &[]).await, [], "another file");
}

#[tokio::test]
async fn neither_deleting_nor_renaming_a_file_loses_its_contracts() {
    let world = World::new();
    world.put("src/a.ts", "export function f(a: number): void {}\n");
    world.agree(1, "src/a.ts:f").await;
    assert_eq!(world.faults(Vec::new(), &["src/a.ts"]).await, [ContractMismatch::Deleted]);
    let renamed = |content| Staged { renamed_from: Some(path("src/a.ts")), ..staged("src/b.ts", content) };
    let changed = world.faults(vec![renamed("export function f(): void {}\n")], &[]).await;
    assert!(matches!(&changed[..], [ContractMismatch::Changed(_)]), "{changed:?}");
    assert_eq!(world.faults(vec![renamed("export function f(a: number): void {}\n")], &[]).await, []);
    fs::rename(world.at("src/a.ts"), world.at("src/b.ts")).unwrap();
    let later = world.faults(vec![staged("src/b.ts", "export function f(): void {}\n")], &[]).await;
    assert!(matches!(&later[..], [ContractMismatch::Changed(_)]), "it binds where it went: {later:?}");
    assert_eq!(world.faults(Vec::new(), &["src/b.ts"]).await, [ContractMismatch::Deleted]);
    let all = world.provost.contracts(SomeContracts::default()).await.unwrap();
    assert_eq!((all.len(), all[0].status), (1, ContractStatus::Accepted));
}

#[tokio::test]
async fn what_has_no_signature_of_its_own_cannot_be_agreed_on() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    world.put("broken.ts", "function f(a: number { }\n");
    for (symbol, part) in [
        ("src/auth.ts:nope", "no such symbol"),
        ("none.ts:f", "no such file"),
        ("main.zig:main", "no such file"),
        ("src/auth.ts:end", "several"),
    ] {
        let id = ContractId::parse("c").unwrap();
        match world.provost.propose(&client("ada"), None, id, &at(symbol), symbol).await {
            Err(ProposeError::NoSymbol { why, candidates }) => {
                assert!(why.contains(part), "{symbol}: {why}");
                assert_eq!(candidates.len(), if symbol.ends_with(":end") { 2 } else { 0 });
            }
            other => panic!("{symbol}: {other:?}"),
        }
    }
    let full = world.agree(2, "src/auth.ts:renew").await;
    assert_eq!(full.at, at("src/auth.ts:Session.renew"), "a contract is on the full name");
}

#[tokio::test]
async fn an_edit_is_stopped_by_locks_on_what_it_changes() {
    let world = World::new();
    let edit = |before: &str, after: &str| Edit {
        path: path("src/auth.ts"),
        change: Some((before.as_bytes().into(), after.as_bytes().into())),
        symbol: None,
        fails: false,
    };
    world.put("src/auth.ts", AUTH);
    world.lock("ada", "src/auth.ts:check").await.unwrap();
    let bob = AgentId::parse("bob").unwrap();
    let provost = &world.provost;
    let guard = |who: AgentId, edit: Edit| async move {
        provost.guard(&who, None, &[edit]).await.unwrap().blocked.len()
    };
    let elsewhere = AUTH.replace("end(): void {}", "end(): void { return }");
    let there = AUTH.replace("return true", "return false");
    assert_eq!(guard(bob.clone(), edit(AUTH, &elsewhere)).await, 0);
    assert_eq!(guard(bob.clone(), edit(AUTH, &there)).await, 1);
    assert_eq!(guard(bob.clone(), edit(AUTH, "")).await, 1, "what is gone has changed");
    assert_eq!(guard(bob.clone(), edit(AUTH, "function (((")).await, 1, "what cannot be told counts");
    let whole = |at: &str| Edit { path: path(at), change: None, symbol: None, fails: false };
    assert_eq!(guard(bob.clone(), whole("./src/auth.ts")).await, 1);
    assert_eq!(guard(AgentId::parse("ada").unwrap(), edit(AUTH, &there)).await, 0, "her own");
    assert_eq!(guard(bob, whole("src/none.ts")).await, 0);
}

#[tokio::test]
async fn a_slow_file_keeps_nobody_waiting_who_asks_for_another() {
    let world = World::new();
    world.put("small.ts", "function f() {}\n");
    world.lock("ada", "small.ts:f").await.unwrap();
    let mut slow = String::new();
    while slow.len() < SOURCE_BYTES_MAX - 100 {
        slow.push_str("function g() { return [1, 2, 3].map(x => x + 1); }\n");
    }
    let order_of_ends = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..8 {
        world.put(&format!("slow{number}.ts"), &format!("// {number}\n{slow}"));
        let (provost, ends) = (world.provost.clone(), order_of_ends.clone());
        tasks.push(tokio::spawn(async move {
            let _ = provost.lock(&client("eve"), order(&format!("slow{number}.ts:g"))).await;
            ends.lock().unwrap().push("slow");
        }));
    }
    tokio::task::yield_now().await;
    world.lock("bob", "small.ts:g").await.unwrap();
    order_of_ends.lock().unwrap().push("quick");
    for task in tasks {
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }
    let ends = order_of_ends.lock().unwrap().clone();
    assert_ne!(ends.last(), Some(&"quick"), "what is known already does not wait in line: {ends:?}");
}

#[tokio::test]
async fn what_is_asked_again_is_not_read_again() {
    let world = World::new();
    world.put("src/auth.ts", AUTH);
    for _ in 0..20 {
        world.lock("ada", "src/auth.ts:check").await.unwrap();
    }
    assert_eq!(world.provost.code().cache().reads(), 1);
}
