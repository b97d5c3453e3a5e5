//! Clients of four protocols at one repository: every door knows what one door knows.

use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::wit_client::{self, Wit};
use crate::support::{Daemon, World};

/// A repository with one file of code, its daemon, and a client of each door.
struct Doors {
    world: World,
    daemon: Daemon,
    wit: Wit,
    agents: Http,
    broker: Http,
}

impl Doors {
    fn open(configuration: &str) -> Self {
        let world = wit_client::world();
        world.configure(configuration);
        std::fs::create_dir(world.repo().join("src")).unwrap();
        let code = "export function renew() { return 1 }\nexport function drop() { return 2 }\n";
        std::fs::write(world.repo().join("src/a.ts"), code).unwrap();
        let daemon = world.start();
        let (agents, broker) = (Http::agent_protocol(&world), Http::broker(&world));
        let wit = Wit::of(&world);
        Self { world, daemon, wit, agents, broker }
    }

    fn claim(&self, agent: &str, path: &str) -> (u16, Value) {
        let announced = self.agents.post("/agents/announce", &json!({ "id": agent, "tool": "it" }));
        assert_eq!(announced.status, 201, "{announced:?}");
        let answer = self.agents.post("/resources/claim", &json!({ "agent_id": agent, "path": path }));
        (answer.status, answer.json())
    }

    fn publish(&self, kind: &str, agent: &str, payload: Value) -> u16 {
        let body = json!({ "type": kind, "agent_id": agent, "payload": payload });
        self.broker.post("/publish", &body).status
    }

    fn work(&self, agent: &str) {
        assert_eq!(
            self.publish("agent.status", agent, json!({ "status": "working", "modified_files": [] })),
            202
        );
    }

    fn intend(&self, agent: &str, file: Value) -> u16 {
        let payload = json!({ "files": [file], "summary": "renew sooner", "valid_for_seconds": 900 });
        self.publish("agent.intent", agent, payload)
    }

    /// Returns the messages about other doors in an agent's inbox.
    fn feedback(&self, agent: &str) -> Vec<String> {
        let inbox = self.broker.get(&format!("/messages/{agent}")).json();
        let errors =
            inbox["messages"].as_array().unwrap().iter().filter_map(|it| it["payload"]["errors"][0].as_str());
        errors.filter(|it| it.contains("across protocols")).map(str::to_owned).collect()
    }

    /// The conflicts on Agent Protocol's timeline, oldest first.
    fn conflicts(&self) -> Vec<Value> {
        let events = self.agents.get("/events?action=resource.conflict_detected").json();
        events.as_array().unwrap().iter().rev().cloned().collect()
    }

    fn log(&self) -> Vec<Value> {
        let output = self.world.command(&["log", "--json"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn claims_locks_and_intents_of_three_protocols_find_each_other() {
    let doors = Doors::open("");
    let client = doors.world.client(&doors.daemon, "mailed");
    client.say("REGISTER", json!({ "ident": "mailed", "caps": [] })).ack();

    // First a claim, of an agent that collects mail, too. Then a lock, which is warned.
    assert_eq!(doors.claim("mailed", "./src//a.ts"), (200, json!({ "granted": true })));
    let granted = doors.wit.ask(
        "lock.acquire",
        json!({ "sessionId": "witty", "symbolPath": "src/a.ts:renew", "ttlMs": 60_000 }),
    );
    let warning = &granted["warnings"][0];
    assert_eq!(
        (&warning["type"], &warning["heldBy"]),
        (&json!("FILE_CLAIMED"), &json!("mailed")),
        "{granted}"
    );
    let mail = client.poll_until(|it| it["payload"]["task_id"] == "coordination");
    let about = &mail["payload"]["artifacts"]["metadata"]["coordination"];
    assert_eq!(
        (&about["agent"], &about["theirs"], &about["yours"]),
        (&json!("witty"), &json!("lock"), &json!("claim"))
    );

    // Then an intent at the broker, on the same function: it meets both. One on another function meets the
    // claim alone.
    doors.work("feat-a");
    doors.work("feat-b");
    let renew = json!({ "path": "src/a.ts", "regions": [{ "kind": "function", "name": "renew" }] });
    assert_eq!(doors.intend("feat-a", renew.clone()), 202);
    let told = doors.feedback("feat-a");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().any(|it| it.contains("claimed by mailed"))
            && told.iter().any(|it| it.contains("locked by witty")),
        "{told:?}"
    );
    let drop = json!({ "path": "src/a.ts", "regions": [{ "kind": "function", "name": "drop" }] });
    assert_eq!(doors.intend("feat-b", drop), 202);
    assert_eq!(doors.feedback("feat-b").len(), 1);

    // Said again, it is no news.
    assert_eq!(doors.intend("feat-a", renew), 202);
    assert_eq!(doors.feedback("feat-a").len(), 2);

    // An intent through wit meets the claim and both intents of the broker, whose owners hear of it.
    let declared = doors.wit.ask(
        "intent.declare",
        json!({ "sessionId": "other", "description": "tidy up", "files": ["src/a.ts"] }),
    );
    let items = declared["conflicts"]["items"].as_array().unwrap().clone();
    let kinds = |kind: &str| items.iter().filter(|it| it["type"] == kind).count();
    assert_eq!((kinds("FILE_CLAIMED"), kinds("ANNOUNCED")), (1, 2), "{declared}");
    assert!(doors.feedback("feat-b").iter().any(|it| it.contains("other") && it.contains("tidy up")));

    // A message at the broker is on the timeline; where somebody stands is not.
    let announced = doors.agents.get("/events?action=intent.declared&agent_id=feat-a").json();
    assert_eq!(announced[0]["metadata"]["summary"], "renew sooner", "{announced}");

    // Everybody sees each meeting once: on the timeline, and in the log.
    let met = doors.log().iter().filter(|it| it["kind"].get("stakes_met").is_some()).count();
    let shown = doors.conflicts();
    assert_eq!((met, shown.len()), (7, 7), "{shown:?}");
    assert!(shown.iter().all(|it| it["resource"] == "src/a.ts"), "{shown:?}");
}

#[test]
fn where_the_configuration_denies_each_protocol_refuses_in_its_own_words() {
    let doors = Doors::open("[coordination]\nacross_doors = \"deny\"\n");
    doors.wit.ask(
        "lock.acquire",
        json!({ "sessionId": "witty", "symbolPath": "src/a.ts:renew", "ttlMs": 60_000 }),
    );

    let (status, refused) = doors.claim("claimer", "src/a.ts");
    assert_eq!(
        (status, &refused["granted"], &refused["owner"]),
        (409, &json!(false), &json!("witty")),
        "{refused}"
    );
    doors.work("feat-a");
    let renew = json!({ "path": "src/a.ts", "regions": [{ "kind": "function", "name": "renew" }] });
    assert_eq!(doors.intend("feat-a", renew), 409);
    assert!(doors.feedback("feat-a").is_empty() && doors.conflicts().is_empty(), "a refusal leaves nothing");

    // Another function of the same file is free, and then in wit's way.
    let drop = json!({ "path": "src/a.ts", "regions": [{ "kind": "function", "name": "drop" }] });
    assert_eq!(doors.intend("feat-a", drop), 202);
    let refused = doors.wit.refused(
        "lock.acquire",
        json!({ "sessionId": "witty", "symbolPath": "src/a.ts:drop", "ttlMs": 60_000 }),
    );
    assert_eq!(
        (&refused["message"], &refused["data"]["heldBy"]),
        (&json!("LOCK_CONFLICT"), &json!("feat-a"))
    );
    let refused = doors.wit.refused(
        "intent.declare",
        json!({ "sessionId": "other", "description": "tidy up", "files": ["src/a.ts"] }),
    );
    assert_eq!(
        (&refused["message"], &refused["data"]["heldBy"]),
        (&json!("LOCK_CONFLICT"), &json!("feat-a"))
    );
    let output = doors.world.command(&["lock", "src/a.ts:drop", "--as", "third"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn an_agent_is_one_agent_on_all_doors_and_not_in_its_own_way() {
    let mut doors = Doors::open("");
    assert_eq!(doors.claim("feat-x", "src/a.ts"), (200, json!({ "granted": true })));
    let granted = doors.wit.ask(
        "lock.acquire",
        json!({ "sessionId": "feat-x", "symbolPath": "src/a.ts:renew", "ttlMs": 60_000 }),
    );
    assert_eq!(granted["warnings"], json!([]));
    doors.work("feat-x");
    assert_eq!(doors.intend("feat/x", json!("src/a.ts")), 202);
    assert!(doors.feedback("feat-x").is_empty() && doors.conflicts().is_empty());

    let agents = |doors: &Doors| -> Vec<Value> {
        let output = doors.world.command(&["agent", "list", "--json"]).output().unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        all.as_array().unwrap().iter().filter(|it| it["id"] == "feat-x").cloned().collect()
    };
    let found = agents(&doors);
    assert_eq!(found.len(), 1, "{found:?}");
    let has = |it: &Value, door: &str| it["doors"].as_array().unwrap().iter().any(|it| it == door);
    assert!(["wit", "agent_protocol", "broker"].iter().all(|door| has(&found[0], door)), "{found:?}");

    // What is known of it outlives the daemon, and so does what it has.
    doors.daemon.kill();
    doors.daemon = doors.world.start();
    (doors.agents, doors.broker) = (Http::agent_protocol(&doors.world), Http::broker(&doors.world));
    let found = agents(&doors);
    assert!(has(&found[0], "agent_protocol") && has(&found[0], "broker"), "{found:?}");
    let granted = doors
        .wit
        .ask("lock.acquire", json!({ "sessionId": "late", "symbolPath": "src/a.ts:drop", "ttlMs": 60_000 }));
    let types: Vec<&Value> = granted["warnings"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert!(types.contains(&&json!("FILE_CLAIMED")) && types.contains(&&json!("ANNOUNCED")), "{granted}");
}

#[test]
fn a_claim_counts_where_writing_is_guarded() {
    let doors = Doors::open("");
    doors.claim("claimer", "src/a.ts");
    let guard = |agent: &str| {
        doors.world.command(&["guard", "src/a.ts", "--agent", agent, "--json"]).output().unwrap()
    };
    let output = guard("other");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["blocked"][0]["claim"]["holder"], "claimer", "{said}");
    assert_eq!(guard("claimer").status.code(), Some(0));
}
