//! Several machines with clones of one repository, whose daemons share a database: each has a home, a state folder and a runtime
//! folder of its own.

use std::process::{Command, Stdio};

use provost::store::Database;
use serde_json::Value;

use super::postgres::{Server, name_of};
use super::rules::ALLOW;
use super::waits::until_some;
use super::{Daemon, World};

/// How many functions the repository's file has.
pub(crate) const FUNCTIONS: usize = 200;

/// The machines, and the database that they share.
pub(crate) struct Machines {
    pub(crate) server: Server,
    pub(crate) database: Database,
    pub(crate) all: Vec<World>,
    /// The further configuration of each machine.
    more: String,
}

/// A machine's repository is a clone of the first one's, with the same history.
fn clone(of: &World, into: &World) {
    let from = of.repo().display().to_string();
    git(into, &["fetch", "-q", &from, "HEAD"]);
    git(into, &["reset", "-q", "--hard", "FETCH_HEAD"]);
}

pub(crate) fn git(world: &World, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    git.current_dir(world.repo()).env("HOME", world.home()).stdin(Stdio::null());
    let out = git.output().expect("git");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

impl Machines {
    /// So many of them. The first one has begun the repository in the database, and the others have joined; no daemon runs.
    pub(crate) fn joined(count: usize) -> Self {
        Self::joined_of(Server::start(), count, "")
    }

    /// The same with more in each configuration.
    pub(crate) fn joined_with(count: usize, more: &str) -> Self {
        Self::joined_of(Server::start(), count, more)
    }

    /// The same at this server.
    pub(crate) fn joined_at(server: Server, count: usize) -> Self {
        Self::joined_of(server, count, "")
    }

    fn joined_of(server: Server, count: usize, more: &str) -> Self {
        let database = server.database();
        let mut machines = Self { server, database, all: vec![World::new()], more: more.into() };
        let first = &machines.all[0];
        let functions: String = (0..FUNCTIONS).map(|n| format!("pub fn f{n}() {{}}\n")).collect();
        first.write("src/a.rs", &functions);
        git(first, &["add", "."]);
        git(first, &["commit", "-q", "-m", "first"]);
        machines.configure(first);
        first.start().stop();
        for _ in 1..count {
            let world = machines.one_more();
            let (code, said) = machines.join(&world);
            assert_eq!(code, 0, "{said}");
            machines.all.push(world);
        }
        machines
    }

    /// A machine with a clone and a configuration, which has not joined.
    pub(crate) fn one_more(&self) -> World {
        let world = World::new();
        clone(&self.all[0], &world);
        self.configure(&world);
        world
    }

    /// A machine with a clone and nothing else.
    pub(crate) fn bare(&self) -> World {
        let world = World::new();
        clone(&self.all[0], &world);
        world
    }

    /// A line that lets a machine in that only works, and its code; by the first machine.
    pub(crate) fn invite(&self, more: &[&str]) -> (String, String) {
        let args = [&["host", "invite", "--role", "worker", "--json"], more].concat();
        let invited = self.all[0].command(&args).output().unwrap();
        let said: Value = serde_json::from_slice(&invited.stdout).unwrap_or_else(|_| panic!("{invited:?}"));
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        (text("line"), text("code"))
    }

    /// A machine that only works, and has joined.
    pub(crate) fn work_machine(&self, more: &[&str]) -> World {
        let world = self.bare();
        let (line, code) = self.invite(&[]);
        let (ended, said) = join_to_work(&world, &line, &code, more);
        assert_eq!(ended, 0, "{said}");
        world
    }

    fn configure(&self, world: &World) {
        self.configure_with(world, &self.more);
        world.rule(ALLOW);
    }

    /// Writes a machine's configuration, with more behind what it needs for the store.
    pub(crate) fn configure_with(&self, world: &World, more: &str) {
        Self::write(world, &self.database.url, more);
    }

    /// Has a machine find the database by this address.
    pub(crate) fn configure_at(&self, world: &World, url: &str) {
        Self::write(world, url, "");
    }

    /// The same with more behind it.
    pub(crate) fn configure_with_url(&self, world: &World, url: &str, more: &str) {
        Self::write(world, url, more);
    }

    fn write(world: &World, url: &str, more: &str) {
        world.configure(&format!(
            "store.url = {url:?}\nstore.name = \"shop\"\n[workers.robot]\ntype = \"polling\"\n{more}"
        ));
    }

    /// Exports the key on the first machine, and joins with it.
    pub(crate) fn join(&self, world: &World) -> (i32, String) {
        let file = world.path("shop.key").display().to_string();
        let exported = self.all[0].command(&["host", "export-key", &file, "--json"]).output().unwrap();
        let said: Value = serde_json::from_slice(&exported.stdout).unwrap_or_else(|_| panic!("{exported:?}"));
        join_with(world, &file, said["code"].as_str().unwrap())
    }

    pub(crate) fn sql(&self, text: &str) -> String {
        self.server.sql(&name_of(&self.database), text)
    }

    pub(crate) fn start(&self) -> Vec<Daemon> {
        self.all.iter().map(World::start).collect()
    }

    /// Checks the log and the journal after each test: no lock is granted twice, fences and numbers rise, an approval has one answer, a
    /// task is begun once, a host that was buried has written nothing afterwards, each machine verifies the journal.
    pub(crate) fn check(&self) {
        let gaps = "select count(*) from (select n - lag(n) over (order by n) as step from provost.entry) s where step <> 1";
        assert_eq!(self.sql(gaps), "0", "entries are dense");
        let gaps = "select count(*) from (select seq - lag(seq) over (order by seq) as step from provost.event) s where step <> 1";
        assert_eq!(self.sql(gaps), "0", "events are dense");
        let bodies = self.sql("select body from provost.event where body is not null order by seq");
        let mut held: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
        let mut newest = 0;
        for body in bodies.lines() {
            let event: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"));
            if let Some(it) = event["kind"]["lock_acquired"].as_object() {
                let (symbol, fence) = (it["symbol"].to_string(), it["fence"].as_u64().unwrap());
                if it["refreshed"] == true {
                    assert_eq!(held.get(&symbol), Some(&fence), "{body}");
                    continue;
                }
                assert!(fence > newest, "fence {fence} comes after {newest}");
                newest = fence;
                assert_eq!(held.insert(symbol, fence), None, "it is held, and granted: {body}");
            }
            if let Some(it) = event["kind"]["lock_freed"].as_object() {
                held.remove(&it["symbol"].to_string());
            }
        }
        let twice = "select count(*) from (select body::json->'kind'->'approval_answered'->>'approval' as it from provost.event
            where kind = 'approval_answered' group by 1 having count(*) > 1) s";
        assert_eq!(self.sql(twice), "0", "an approval has one answer");
        let twice = "select count(*) from (select count(*) filter (where kind = 'task_started') as begun,
            count(*) filter (where kind = 'attempt_failed') as failed from provost.event where task is not null group by task) s
            where begun > failed + 1";
        assert_eq!(self.sql(twice), "0", "each attempt of a task is begun once");
        let late = "select count(*) from provost.entry e join provost.event b on b.repo = e.repo and b.body like '%\"host.down\"%'
            where b.body::json->'kind'->'recorded'->>'subject' = e.host || '/' || e.inc and e.at > b.at";
        assert_eq!(self.sql(late), "0", "a host that was buried writes nothing more");
        for world in &self.all {
            // A server that is busy with other tests may be late once.
            let out = until_some("the journal is read", || {
                let out = world.command(&["journal", "verify"]).output().unwrap();
                let is_late = String::from_utf8_lossy(&out.stderr).contains("has not answered within");
                (!is_late).then_some(out)
            });
            assert!(out.status.success(), "{out:?}");
        }
    }
}

/// The state folder of a machine's repository.
pub(crate) fn state_dir(world: &World) -> std::path::PathBuf {
    let below = std::fs::read_dir(world.home().join(".local/state/provost")).expect("it has joined");
    let mut found = below.flatten().map(|it| it.path()).filter(|it| it.join("journal.key").exists());
    found.next().expect("a folder with the journal's key")
}

/// Joins with a file and a code.
pub(crate) fn join_with(world: &World, file: &str, code: &str) -> (i32, String) {
    typing(world.command(&["host", "join", "--key-file", file]), code)
}

/// Joins with a line and a code as a machine that only works.
pub(crate) fn join_to_work(world: &World, line: &str, code: &str, more: &[&str]) -> (i32, String) {
    typing(world.command(&[&["worker", "join", line], more].concat()), code)
}

/// How a command ends that gets this line on standard input, and what it says.
pub(crate) fn typing(mut command: Command, line: &str) -> (i32, String) {
    use std::io::Write as _;
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that has refused already reads nothing.
    let _unread = child.stdin.take().unwrap().write_all(format!("{line}\n").as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    (out.status.code().unwrap_or(-1), text)
}
