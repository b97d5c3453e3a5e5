//! The index of a real repository: what is read and what never is, how changes are heard of, and questions
//! about it.

mod scip_indexes;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use provost::index::{Changed, Index, Options};
use provost::system::folder_watch::FolderWatcher;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::support::graphs::{path, symbol};
use crate::support::waits::until_some;
use crate::support::wit_client::{self, Wit};
use crate::support::{World, eventually};

/// A repository of git's, and its index.
struct Read {
    dir: TempDir,
    index: Index,
    changes: Receiver<Changed>,
}

const ON: Options = Options { on: true, files_max: 1_000 };

impl Drop for Read {
    fn drop(&mut self) {
        self.index.stop();
    }
}

impl Read {
    fn of(files: &[(&str, &str)]) -> Self {
        Self::with(files, ON, |_| {})
    }

    fn with(files: &[(&str, &str)], options: Options, more: impl FnOnce(&Path)) -> Self {
        let dir = TempDir::new().unwrap();
        let git = Command::new("git").args(["init", "-q"]).arg(dir.path()).status().unwrap();
        assert!(git.success());
        files.iter().for_each(|(name, text)| put(dir.path(), name, text));
        more(dir.path());
        let index = Index::start(dir.path(), Arc::default(), &FolderWatcher::default(), options).unwrap();
        if options.on {
            eventually("the first reading", || index.state().took_ms.is_some());
        }
        let changes = index.changes();
        Self { dir, index, changes }
    }

    fn put(&self, name: &str, text: &str) {
        put(self.dir.path(), name, text);
    }

    /// Waits until the index tells of a change of this file.
    fn hears_of(&mut self, name: &str) {
        until_some(&format!("word of {name}"), || match self.changes.try_recv() {
            Ok(changed) => changed.iter().any(|it| it.as_str() == name).then_some(()),
            Err(TryRecvError::Empty) => None,
            Err(err) => panic!("{err}"),
        });
    }

    fn callers(&self, of: &str) -> Vec<String> {
        self.index.callers(&symbol(of)).iter().map(ToString::to_string).collect()
    }

    fn callees(&self, of: &str) -> Vec<String> {
        self.index.callees(&symbol(of)).iter().map(ToString::to_string).collect()
    }

    fn files(&self) -> usize {
        self.index.state().size.files
    }
}

fn put(root: &Path, name: &str, text: &str) {
    let file = root.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    // In one step, as editors and git do it.
    let new = file.with_extension("writing");
    fs::write(&new, text).unwrap();
    fs::rename(new, file).unwrap();
}

const AUTH: (&str, &str) = ("src/auth.ts", "export function check(t: string) { return t; }\n");
const ROUTES: (&str, &str) =
    ("src/routes.ts", "import { check } from './auth';\nexport function handle() { check('x'); }\n");

#[test]
fn a_repository_is_read_and_says_so() {
    let read = Read::of(&[AUTH, ROUTES, ("README.md", "no code")]);
    assert_eq!(read.callers("src/auth.ts:check"), ["src/routes.ts:handle"]);
    let state = read.index.state();
    assert!(state.complete && state.watching, "{state:?}");
    assert_eq!((state.size.files, state.size.symbols, state.size.edges), (2, 2, 1));
}

#[test]
fn changes_new_folders_and_removals_are_heard_of() {
    let mut read = Read::of(&[AUTH, ROUTES]);
    read.put("src/routes.ts", "export function handle() {}\n");
    read.hears_of("src/routes.ts");
    assert_eq!(read.callers("src/auth.ts:check"), [""; 0]);

    read.put(
        "app/deep/er/use.ts",
        "import { check } from '../../../src/auth';\nfunction late() { check(''); }\n",
    );
    read.hears_of("app/deep/er/use.ts");
    assert_eq!(read.callers("src/auth.ts:check"), ["app/deep/er/use.ts:late"]);

    // In a folder that was not there at the start.
    read.put(
        "app/deep/er/more.ts",
        "import { check } from '../../../src/auth';\nfunction more() { check(''); }\n",
    );
    read.hears_of("app/deep/er/more.ts");
    assert_eq!(read.callers("src/auth.ts:check").len(), 2);

    fs::rename(read.dir.path().join("app/deep"), read.dir.path().join("app/moved")).unwrap();
    read.hears_of("app/moved/er/use.ts");
    let gone =
        || read.callers("src/auth.ts:check") == ["app/moved/er/more.ts:more", "app/moved/er/use.ts:late"];
    eventually("the old folder is forgotten", gone);
    // A folder under a new name is listened to as before, and so is one that was moved elsewhere.
    fs::rename(read.dir.path().join("app/moved"), read.dir.path().join("elsewhere")).unwrap();
    read.hears_of("elsewhere/er/use.ts");
    for round in 0..3 {
        read.put("elsewhere/er/use.ts", &format!("function round{round}() {{}}\n"));
        eventually("a change in it is heard of", || !read.index.named(&format!("round{round}")).is_empty());
    }
    fs::remove_dir_all(read.dir.path().join("elsewhere")).unwrap();

    fs::remove_dir_all(read.dir.path().join("app")).unwrap();
    eventually("all of it is forgotten", || read.callers("src/auth.ts:check").is_empty());
    fs::remove_file(read.dir.path().join("src/auth.ts")).unwrap();
    read.hears_of("src/auth.ts");
    assert_eq!(read.files(), 1);
}

#[test]
fn what_git_ignores_and_hidden_files_are_not_read() {
    let mut read = Read::of(&[
        AUTH,
        (".gitignore", "dist/\n*.gen.ts\n!kept.gen.ts\n"),
        ("src/.gitignore", "/local.ts\n"),
        ("dist/a.ts", "function a() {}"),
        ("src/x.gen.ts", "function x() {}"),
        ("src/kept.gen.ts", "function kept() {}"),
        ("src/local.ts", "function local() {}"),
        ("src/deep/local.ts", "function local() {}"),
        (".hidden/h.ts", "function h() {}"),
        ("node_modules/m/m.js", "function m() {}"),
        (".git/info/exclude", "secret.ts\n"),
        ("secret.ts", "function secret() {}"),
    ]);
    let known = |read: &Read, name: &str| !read.index.named(name).is_empty();
    for (name, is_known) in [
        ("check", true),
        ("kept", true),
        ("a", false),
        ("x", false),
        ("h", false),
        ("m", false),
        ("secret", false),
    ] {
        assert_eq!(known(&read, name), is_known, "{name}");
    }
    assert_eq!(read.index.named("local"), [symbol("src/deep/local.ts:local")]);

    // Not by asking for them, either.
    read.index.touch(&path("dist/a.ts"));
    read.index.touch(&path(".hidden/h.ts"));
    assert_eq!(read.files(), 3);

    // What is ignored changes.
    read.put(".gitignore", "src/deep/\n");
    read.hears_of("src/x.gen.ts");
    eventually("the rules count", || {
        known(&read, "a") && known(&read, "x") && read.index.named("local").is_empty()
    });
}

#[test]
fn pipes_links_devices_and_monsters_do_not_stop_it() {
    let outside = TempDir::new().unwrap();
    put(outside.path(), "evil.ts", "export function evil() {}\n");
    let read = Read::with(
        &[AUTH, ("big.ts", &"f();\n".repeat(1_000_000)), ("nested.ts", &"[".repeat(100_000))],
        ON,
        |root| {
            let fifo = Command::new("mkfifo")
                .args([root.join("pipe.ts"), root.join(".gitignore")])
                .status()
                .unwrap();
            assert!(fifo.success());
            symlink(outside.path().join("evil.ts"), root.join("link.ts")).unwrap();
            symlink(outside.path(), root.join("linked")).unwrap();
            symlink("/dev/zero", root.join("zero.ts")).unwrap();
            symlink(".", root.join("loop")).unwrap();
            fs::create_dir(root.join("folder.ts")).unwrap();
            fs::write(root.join("bytes.py"), [0xff, 0xfe, 0, b'\n']).unwrap();
            fs::write(root.join("tsconfig.json"), "[".repeat(100_000)).unwrap();
        },
    );
    assert_eq!(read.index.named("evil"), []);
    assert_eq!(read.callers("src/auth.ts:check"), [""; 0]);
    let state = read.index.state();
    assert_eq!(state.size.files, 4, "auth.ts, big.ts, nested.ts, bytes.py");
    assert!(state.size.broken >= 2, "{state:?}");
    for name in ["pipe.ts", "link.ts", "linked/evil.ts", "zero.ts", "folder.ts", "none.ts", "../out.ts"] {
        if let Ok(path) = provost::base::RepoPath::parse(name) {
            read.index.touch(&path);
        }
    }
    assert_eq!(read.index.named("evil"), []);
}

#[test]
fn a_question_sees_the_file_as_it_is_now() {
    // Off: nobody watches, and only what is asked about is known.
    let read = Read::with(&[AUTH, ROUTES], Options { on: false, ..ON }, |_| {});
    assert_eq!(read.files(), 0);
    read.index.touch(&path("src/routes.ts"));
    assert_eq!(read.callees("src/routes.ts:handle"), ["?:check"]);
    read.index.touch(&path("src/auth.ts"));
    assert_eq!(read.callees("src/routes.ts:handle"), ["src/auth.ts:check"]);
    read.put("src/routes.ts", "export function handle() { other(); }\n");
    read.index.touch(&path("src/routes.ts"));
    assert_eq!(read.callees("src/routes.ts:handle"), ["?:other"]);
    let state = read.index.state();
    assert!(!state.complete && state.missing[0].contains("coordination.index is off"), "{state:?}");
    fs::remove_file(read.dir.path().join("src/routes.ts")).unwrap();
    read.index.touch(&path("src/routes.ts"));
    assert_eq!(read.files(), 1);
}

#[test]
fn a_reading_that_somebody_hands_in_counts_at_once() {
    let read = Read::of(&[AUTH, ROUTES]);
    let text = "import { check } from './auth';\nexport function other() { check('x'); }\n";
    let patience = provost::syntax::ParseDeadline::endless();
    let reading = read.index.cache().read(provost::syntax::Language::TypeScript, text.as_bytes(), &patience);
    read.index.fresh(&path("src/routes.ts"), &reading);
    assert_eq!(read.callers("src/auth.ts:check"), ["src/routes.ts:other"]);
    // The file says otherwise, and is asked again.
    read.index.touch(&path("src/routes.ts"));
    assert_eq!(read.callers("src/auth.ts:check"), ["src/routes.ts:handle"]);
}

#[test]
fn too_many_files_are_left_out_and_that_is_said() {
    let files: Vec<(String, String)> =
        (0..30).map(|at| (format!("f{at}.py"), format!("def f{at}(): pass\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let read = Read::with(&files, Options { files_max: 10, ..ON }, |_| {});
    let state = read.index.state();
    assert_eq!((state.size.files, state.complete), (10, false));
    assert!(state.missing.iter().any(|why| why.contains("more source files")), "{state:?}");
}

// The daemon.

fn provost(world: &World, args: &[&str]) -> (i32, String, String) {
    let out = world.command(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

#[test]
fn the_command_line_tells_who_calls_whom() {
    let world = World::new();
    for (name, text) in [AUTH, ROUTES, ("src/other.ts", "export function check() {}\n")] {
        put(&world.repo(), name, text);
    }
    let _daemon = world.start();
    let status = || {
        let (_, out, _) = provost(&world, &["graph", "status", "--json"]);
        serde_json::from_str::<Value>(&out).unwrap()
    };
    eventually("the repository is read", || status()["complete"] == true);
    let state = status();
    assert_eq!((&state["files"], &state["edges"]), (&3.into(), &1.into()), "{state}");

    let (code, out, err) = provost(&world, &["graph", "callers", "src/auth.ts:check"]);
    assert_eq!((code, &*out, &*err), (0, "src/routes.ts:handle\n", ""));
    let (_, out, _) = provost(&world, &["graph", "callees", "handle", "--json"]);
    let calls: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(calls["of"], json!(["src/routes.ts:handle"]));
    assert_eq!(calls["symbols"], json!(["src/auth.ts:check"]));

    for (asked, code, says) in [
        ("check", 4, "src/auth.ts:check, src/other.ts:check"),
        ("src/auth.ts:chek", 1, "maybe src/auth.ts:check"),
        ("src/auth.ts:something", 1, "nothing has this name"),
        ("src/auth.ts:checks", 1, "src/auth.ts:check"),
        ("src/none.ts:f", 1, "src/none.ts is not known"),
        ("../out.ts:f", 4, "leaves the repository"),
        ("nowhere", 1, "nothing has this name"),
    ] {
        let (status, out, err) = provost(&world, &["graph", "callers", asked]);
        assert_eq!((status, &*out), (code, ""), "{asked}: {err}");
        assert!(err.contains(says) && err.contains("try:"), "{asked}: {err}");
    }

    // Written a moment ago: no need to wait for anybody.
    put(&world.repo(), "src/routes.ts", "export function renamed() { gone(); }\n");
    let (_, out, _) = provost(&world, &["graph", "callees", "src/routes.ts:renamed"]);
    assert_eq!(out, "?:gone\n");
}

#[test]
fn locks_and_intents_know_callers_and_callees_in_other_files() {
    let world = wit_client::world();
    let files = [
        ("tsconfig.json", r#"{ "compilerOptions": { "paths": { "@auth": ["./src/auth.ts"] } } }"#),
        AUTH,
        (
            "src/routes.ts",
            "import { check } from '@auth';\nexport class Api { handle() { check('x'); unknown(); } }\n",
        ),
    ];
    files.iter().for_each(|(name, text)| put(&world.repo(), name, text));
    let _daemon = world.start();
    let ready = || {
        let (_, out, _) = provost(&world, &["graph", "status", "--json"]);
        serde_json::from_str::<Value>(&out).unwrap()["complete"] == true
    };
    eventually("the repository is read", ready);
    let wit = Wit::of(&world);
    eventually("the door of wit is open", || wit.answers());
    let lock = |session: &str, symbol: &str| {
        wit.ask("lock.acquire", json!({ "symbolPath": symbol, "sessionId": session }))
    };
    lock("ada", "src/routes.ts:Api.handle");
    let held = lock("bob", "src/auth.ts:check");
    let warning = &held["warnings"][0];
    assert_eq!(warning["lockedSymbol"], "src/routes.ts:Api.handle", "{held}");
    assert_eq!(warning["heldBy"], "ada");
    assert_eq!(warning["chain"], json!(["src/routes.ts:Api.handle", "src/auth.ts:check"]));

    lock("bob", "?:unknown");
    let declare = json!({
        "sessionId": "eve", "description": "routes", "files": ["src/routes.ts"], "symbols": ["Api"],
    });
    let declared = wit.ask("intent.declare", declare);
    let items = declared["conflicts"]["items"].as_array().unwrap();
    let chains: Vec<&Value> = items.iter().filter(|it| it["type"] == "DEP_CHAIN").collect();
    let callees: Vec<&str> = chains.iter().map(|it| it["lockedCallee"].as_str().unwrap()).collect();
    assert_eq!(callees, ["src/auth.ts:check", "?:unknown"], "{declared}");
    assert!(
        chains.iter().all(|it| it["intentSymbol"] == "src/routes.ts:Api" && it["heldBy"] == "bob"),
        "{declared}"
    );
}

#[test]
fn whole_files_have_callers_and_callees_and_what_was_not_read_whole_is_said() {
    let world = World::new();
    let huge = format!(
        "import {{ small }} from './small';\nexport function big() {{ small(); }}\n{}",
        "// x\n".repeat(1_000_000)
    );
    let files = [
        ("src/lib.ts", "export function called() {}\nexport function other() {}\n"),
        ("src/use.ts", "import { called } from './lib';\nexport function caller() { called(); }\n"),
    ];
    files.iter().for_each(|(name, text)| put(&world.repo(), name, text));
    let _daemon = world.start();
    let ready = || {
        let (_, out, _) = provost(&world, &["graph", "status", "--json"]);
        serde_json::from_str::<Value>(&out).unwrap()["complete"] == true
    };
    eventually("the repository is read", ready);
    let kinds = |told: &Value| -> Vec<String> {
        told.as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap().into()).collect()
    };
    let lock = |symbol: &str| kinds(&world.done("b", &["lock", symbol])["warnings"]);
    let intend =
        |file: &str| kinds(&world.done("b", &["intent", "declare", "x", "--file", file])["conflicts"]);
    world.done("a", &["lock", "src/lib.ts:called"]);
    assert_eq!(lock("src/use.ts"), ["callee_locked"]);
    world.done("b", &["unlock", "--all"]);
    assert_eq!(intend("src/use.ts"), ["callee_locked"]);
    world.done("b", &["unlock", "--all", "--intents"]);
    world.done("a", &["unlock", "--all"]);
    world.done("a", &["lock", "src/use.ts:caller"]);
    assert_eq!(lock("src/lib.ts"), ["caller_locked"]);
    world.done("b", &["unlock", "--all"]);
    assert_eq!(intend("src/lib.ts"), ["caller_locked"]);
    world.done("b", &["unlock", "--all", "--intents"]);
    world.done("a", &["unlock", "--all"]);

    put(&world.repo(), "src/small.ts", "export function small() {}\n");
    put(&world.repo(), "src/huge.ts", &huge);
    let unread = || provost(&world, &["graph", "status"]).1.contains("not read whole  1 files");
    eventually("the file is known", || unread() && ready());
    let taken = world.done("b", &["lock", "src/small.ts:small"]);
    assert_eq!(kinds(&taken["warnings"]), ["incomplete"]);
    assert!(taken["warnings"][0]["message"].as_str().unwrap().contains("src/huge.ts"), "{taken}");
    let meant = world.done("b", &["intent", "declare", "x", "--file", "src/small.ts", "--symbol", "small"]);
    assert_eq!(kinds(&meant["conflicts"]), ["incomplete"], "{meant}");
    let mut host = crate::support::mcp_host::Host::old(&world, "c");
    let asked = json!({ "files": ["src/lib.ts"] });
    let found = host.does("conflicts_check", asked)["conflicts"].clone();
    assert!(kinds(&found).contains(&"incomplete".into()), "{found}");
}

#[test]
fn a_list_of_callers_that_was_cut_says_so_to_those_who_lock_and_those_who_intend() {
    let world = World::new();
    put(&world.repo(), "src/lib.ts", "export function called() {}\nexport function other() {}\n");
    let calls: String = (0..4_200).map(|at| format!("export function f{at}() {{ called(); }}\n")).collect();
    put(&world.repo(), "src/use.ts", &format!("import {{ called }} from './lib';\n{calls}"));
    let _daemon = world.start();
    let callers = || provost(&world, &["graph", "callers", "src/lib.ts:called"]).1.lines().count();
    eventually("the repository is read", || callers() > 0);
    for asked in [["lock", "src/lib.ts:called"], ["lock", "src/lib.ts"]] {
        let taken = world.done("b", &asked);
        assert_eq!(taken["warnings"][0]["kind"], "incomplete", "{asked:?}: {taken}");
    }
    for more in [&["--symbol", "called"][..], &[]] {
        let meant = world.done("c", &[&["intent", "declare", "x", "--file", "src/lib.ts"], more].concat());
        let cut = meant["conflicts"].as_array().unwrap().iter().any(|it| it["kind"] == "incomplete");
        assert!(cut, "{more:?}: {meant}");
    }
}

#[test]
fn an_intent_follows_its_symbol_when_the_file_changes() {
    let world = wit_client::world();
    put(&world.repo(), AUTH.0, AUTH.1);
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("the door of wit is open", || wit.answers());
    let declare = json!({ "sessionId": "ada", "description": "x", "files": [AUTH.0], "symbols": ["check"] });
    wit.ask("intent.declare", declare);
    // Whoever asks for intents has them brought up to date by that, so the store is looked into.
    let begins_at = || {
        let db = rusqlite::Connection::open(world.state_dir().join("provost.db")).unwrap();
        let body: String = db.query_row("SELECT body FROM intent", [], |row| row.get(0)).unwrap();
        let intent: Value = serde_json::from_str(&body).unwrap();
        intent["files"][0]["spans"][0]["start"].clone()
    };
    assert_eq!(begins_at(), 7, "behind `export `");
    put(&world.repo(), AUTH.0, &format!("// a line more\n{}", AUTH.1));
    eventually("the intent is brought up to date though nobody asks", || begins_at() == 22);
}
