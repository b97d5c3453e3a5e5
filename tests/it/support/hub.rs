//! The page over all repositories: its process, and what it is asked.

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::loopback_client::{Answer, Http};
use crate::support::{World, eventually};

/// A port that no program has now. It is none of those that the system gives to programs that ask for any: daemons that start beside a
/// test take such ones.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 20_000;
    const MANY: u32 = 12_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let port = || {
        let at = std::process::id().wrapping_mul(7).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        u16::try_from(FIRST + at % MANY).unwrap()
    };
    (0..MANY).map(|_| port()).find(|it| std::net::TcpListener::bind(("127.0.0.1", *it)).is_ok()).unwrap()
}

/// The process that shows all repositories; ended when dropped.
pub(crate) struct Hub {
    child: Child,
    pub(crate) door: Http,
}

impl Hub {
    /// Opens the page of the user of this world, at the port that their settings name.
    pub(crate) fn start(world: &World, port: u16) -> Self {
        let log = std::fs::File::create(world.path("hub.log")).unwrap();
        let mut command = world.command(&["web", "--all", "--foreground"]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let door = Http { port };
        eventually("the page over all repositories", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { child, door }
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the answer at a path, once it is there.
    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.door.look(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// The path below which the repository of a world is.
    pub(crate) fn base(&self, world: &World) -> String {
        self.base_of(&world.repo().canonicalize().unwrap().display().to_string())
    }

    /// The same of the repository in this folder.
    pub(crate) fn base_of(&self, root: &str) -> String {
        let row = crate::support::waits::until_some("its repository", || self.row(root));
        row["to"].as_str().unwrap().trim_end_matches('/').to_owned()
    }

    /// The row of the repository in this folder, once it is known.
    pub(crate) fn row(&self, root: &str) -> Option<Value> {
        let rows = self.json("/rows/repositories")["blocks"][0]["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|it| it["cells"][3]["text"] == root)
    }

    /// How it stands with the repository in this folder: `live`, `stale` and so on; nothing before it is known.
    pub(crate) fn state(&self, root: &str) -> String {
        let row = self.row(root).unwrap_or_default();
        row["cells"][0]["word"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a request as the page does.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [
            ("Host", "provost.localhost:PORT"),
            ("Origin", "http://provost.localhost:PORT"),
            ("Content-Type", "application/json"),
        ];
        self.door.bare(&format!("POST {path}"), &headers, body.to_string().as_bytes())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
