//! An agent that has a good token of its own, and says another's name beside it: in headers, queries, paths
//! and bodies that disagree, in every spelling. It reads nothing that is the other's, and nothing happens in
//! the other's name.

mod hosts;
mod loopback;
mod sockets;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::wit_client::{self, Wit};
use crate::support::{Daemon, World, eventually};

const RULES: &str = "version = 1\ndefault = \"deny\"\n\
    [[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"t\"\nwhen.action = [\"token\"]\n\
    [[rule]]\nid = \"a\"\ndecision = \"approve\"\nreason = \"a\"\nwhen.action = [\"delegate\"]\napprove.by = [\"human\"]\n";

const DOORS: &str = "[broker]\nenabled = true\n[agent_protocol]\nenabled = true\n[a6s]\nenabled = true\n[mcp]\ntools = [\"all\"]\n";

/// A text that only the other agent may read.
const LETTER: &str = "for the eyes of one alone";

/// The other one's name, as it may be written.
const SPELLINGS: [&str; 9] = [
    "feat-victim",
    "Feat-Victim",
    "FEAT/VICTIM",
    "feat--victim",
    "feat.victim",
    "-feat-victim-",
    " feat-victim",
    "feat-victim ",
    "feat/victim",
];

const MALLORY: &str = "feat-mallory";

/// A daemon, two agents with tokens, and what one of them has.
struct Stage {
    world: World,
    daemon: Daemon,
    victim: String,
    mallory: String,
    /// Ids of the victim's intent, contract, of an offer made to it, and of a task that it is to do.
    intent: String,
    contract: String,
    offer: String,
    task: String,
    /// Events by the victim so far.
    by_victim: usize,
}

fn told(world: &World, args: &[&str]) -> String {
    let output = world.command(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Stage {
    fn set() -> Self {
        let world = wit_client::world();
        world.configure(DOORS);
        world.rule(RULES);
        world.write("src/a.ts", "export function f() {}\nexport function g() {}\n");
        let daemon = world.start();
        eventually("the wit door", || Wit::of(&world).socket.exists() && Wit::of(&world).answers());
        let scopes = ["--scopes", "read,join,coordinate,delegate,work"];
        let [victim, mallory] =
            ["feat-victim", MALLORY].map(|name| told(&world, &["token", "mint", name, scopes[0], scopes[1]]));
        told(&world, &["key", "add", "keyed-victim"]);
        told(&world, &["key", "add", "keyed-mallory"]);
        let bearer = format!("Bearer {victim}");
        let does = |path: &str, body: Value| {
            let said = own(&world, ("POST", path), &[("authorization", &bearer)], &body);
            assert_eq!(said.0, 200, "{path}: {said:?}");
            said.1
        };
        does("/lock", json!({ "symbol": "src/a.ts:f" }));
        let intent = does("/declare", json!({ "description": "x", "files": ["src/b.ts"] }));
        does("/join-crew", json!({ "tool": "x", "capabilities": [] }));
        does("/claim", json!({ "path": "c.ts" }));
        let by =
            |body: Value| own(&world, ("POST", "/propose-contract"), &[("x-provost-agent", "friend")], &body);
        let contract = by(json!({ "symbol": "src/a.ts:g" })).1;
        does(
            "/delegate",
            json!({ "task": "theirs", "worker": "shell", "goal": "true", "watch_patterns": [] }),
        );
        let letter = json!({ "to": "feat-victim", "kind": "message", "text": LETTER });
        assert_eq!(own(&world, ("POST", "/send-message"), &[("x-provost-agent", "friend")], &letter).0, 200);
        let http = Http::agent_protocol(&world);
        http.post("/agents/announce", &json!({ "id": "friend", "tool": "x" }));
        let offered =
            json!({ "from_agent": "friend", "to_agent": "feat-victim", "task_id": "t", "summary": "s" });
        let offer = http.post("/handoffs", &offered).json();
        let order = json!({ "title": "t", "description": "d", "assigned_by": "friend", "assigned_to": "feat-victim" });
        let task = http.post("/tasks", &order).json();
        let id = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let mut stage = Self {
            intent: id(&intent["intent"]["id"]),
            contract: id(&contract["id"]),
            offer: id(&offer["id"]),
            task: id(&task["id"]),
            world,
            daemon,
            victim,
            mallory,
            by_victim: 0,
        };
        stage.by_victim = stage.events_by_victim().len();
        stage
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.mallory)
    }

    fn events_by_victim(&self) -> Vec<String> {
        let all = told(&self.world, &["journal", "export"]);
        let is_theirs = |it: &&str| {
            let event: Value = serde_json::from_str(it).unwrap();
            let actor = event["actor"].as_str().unwrap().to_lowercase().replace(['/', '.', ' '], "-");
            actor.replace("--", "-").trim_matches('-').ends_with("victim")
        };
        all.lines().filter(is_theirs).map(str::to_owned).collect()
    }

    /// All is as it was, and nobody was told what is another's.
    fn is_untouched(&self, answers: &[(String, String)]) {
        for (what, answer) in answers {
            assert!(!answer.contains(LETTER), "{what} reads the letter: {answer}");
        }
        let events = self.events_by_victim();
        let by_others: Vec<_> = answers.iter().map(|it| &it.0).collect();
        assert_eq!(
            events.len(),
            self.by_victim,
            "{:#?} after {by_others:?}",
            &events[self.by_victim.min(events.len())..]
        );
        let bearer = format!("Bearer {}", self.victim);
        let get = |path: &str| own(&self.world, ("GET", path), &[("authorization", &bearer)], &json!({})).1;
        let locks = get("/locks?mine=true");
        assert_eq!(locks["locks"][0]["symbol"], "src/a.ts:f", "{locks}");
        let intents = get("/intents?mine=true");
        assert_eq!(intents[0]["status"], "declared", "{intents}");
        let claims = get("/claims?mine=true");
        assert_eq!(claims[0]["file"], "c.ts", "{claims}");
        let tasks = get("/tasks").to_string();
        assert!(tasks.contains("theirs") && !tasks.contains("cancelled"), "{tasks}");
        let http = Http::agent_protocol(&self.world);
        assert_eq!(http.get(&format!("/handoffs/{}", self.offer)).json()["status"], "pending");
        assert_ne!(http.get(&format!("/tasks/{}", self.task)).json()["status"], "done");
        assert_eq!(http.get("/agents/feat-victim").json()["id"], "feat-victim");
        // The token is good still, and so is the letter there.
        let read = own(&self.world, ("POST", "/read-inbox"), &[("authorization", &bearer)], &json!({}));
        assert!(read.1.to_string().contains(LETTER), "{read:?}");
    }
}

/// A request to the own API, byte for byte.
fn own_raw(world: &World, method: &str, target: &str, headers: &[(&str, String)], body: &str) -> String {
    let mut stream = UnixStream::connect(world.own_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A door that refuses a head may have closed by then.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _until_closed = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Every path of the own API, by either method.
fn routes() -> Vec<(&'static str, &'static str)> {
    let found: Vec<_> =
        provost::api::ENDPOINTS.iter().flat_map(|it| [("GET", it.path), ("POST", it.path)]).collect();
    assert!(found.len() > 120, "{found:?}");
    found
}
