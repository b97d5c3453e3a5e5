//! Agents who coordinate at the wit door: which agent gets a lock and when, and the messages about intents and contracts.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::commands::waits_begun;
use crate::support::eventually;
use crate::support::wit_client::{Answer, Wit, git, request, world};
use crate::support::wit_world::{kinds, lock, started};

fn waiting(at: &str, who: &str, ms: u64) -> Value {
    json!({ "symbolPath": at, "sessionId": who, "waitMs": ms })
}

/// Asks for a lock in the background, and returns when it waits behind so many.
fn queue(wit: &Wit, at: &str, who: &str, behind: usize) -> JoinHandle<Value> {
    let (asking, params) = (wit.clone(), waiting(at, who, 30_000));
    let asked = std::thread::spawn(move || asking.call("lock.acquire", Some(&params)));
    eventually("a place in the queue", || {
        wit.refused("lock.acquire", lock(at, "onlooker"))["data"]["waiting"] == behind + 1
    });
    asked
}

#[test]
fn a_grant_has_a_number_that_rises_and_a_refresh_keeps_it() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("register", json!({ "name": "Ada", "sessionId": "A" }));
    let first =
        wit.ask("lock.acquire", json!({ "symbolPath": "a.ts:f", "sessionId": "A", "reason": "rework" }));
    let again = wit.ask("lock.acquire", lock("a.ts:f", "A"));
    assert_eq!(first["fence"], again["fence"]);
    let conflict = wit.refused("lock.acquire", lock("a.ts:f", "B"));
    assert_eq!((&conflict["code"], &conflict["message"]), (&json!(-32000), &json!("LOCK_CONFLICT")));
    let data = &conflict["data"];
    assert_eq!(
        [&data["heldBy"], &data["agentName"], &data["symbolPath"], &data["fence"], &data["waiting"]],
        [&json!("A"), &json!("Ada"), &json!("a.ts:f"), &first["fence"], &json!(0)]
    );
    assert_eq!(data["expiresAt"], again["expiresAt"]);
    assert!(data["retryAfterMs"].as_u64().unwrap() > 1_700_000 && data["message"].is_string(), "{data}");
    let rows = wit.ask("lock.query", json!({}));
    assert_eq!((&rows[0]["agentName"], &rows[0]["fence"]), (&json!("Ada"), &first["fence"]));

    let stale =
        json!({ "symbolPath": "a.ts:f", "sessionId": "A", "fence": first["fence"].as_u64().unwrap() + 1 });
    assert_eq!(wit.token("lock.release", stale), "LOCK_NOT_HELD");
    wit.ask("lock.release", json!({ "symbolPath": "./a.ts:f", "sessionId": "A", "fence": first["fence"] }));
    let next = wit.ask("lock.acquire", lock("a.ts:f", "B"));
    assert!(next["fence"].as_u64() > first["fence"].as_u64());
}

#[test]
fn those_who_wait_are_served_in_the_order_of_asking() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("a.ts:f", "A"));
    let waits: Vec<_> =
        ["B", "C", "D"].iter().enumerate().map(|(at, who)| queue(&wit, "a.ts:f", who, at)).collect();
    for (holder, wait) in ["A", "B", "C"].iter().zip(waits) {
        // Nobody gets past those who wait.
        assert_eq!(wit.token("lock.acquire", lock("a.ts:f", "E")), "LOCK_CONFLICT");
        wit.ask("lock.release", lock("a.ts:f", holder));
        let got = wait.join().unwrap();
        assert!(got["result"]["fence"].is_u64(), "{got}");
    }
    assert_eq!(wit.ask("lock.query", json!({}))[0]["sessionId"], "D");
}

#[test]
fn a_wait_ends_with_its_time_and_with_its_connection() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("a.ts:f", "A"));
    assert_eq!(wit.token("lock.acquire", waiting("a.ts:f", "B", 100)), "LOCK_CONFLICT");
    // One that hangs up.
    let body = json!({ "jsonrpc": "2.0", "witVersion": "1", "id": "i", "method": "lock.acquire", "params": waiting("a.ts:f", "B", 30_000) });
    let mut connection = wit.connect();
    connection.write_all(&request("POST /rpc", &[], body.to_string().as_bytes())).unwrap();
    let ahead = || wit.refused("lock.acquire", lock("a.ts:f", "X"))["data"]["waiting"].clone();
    eventually("one who waits", || ahead() == 1);
    drop(connection);
    eventually("nobody who waits", || ahead() == 0);
    wit.ask("lock.release", lock("a.ts:f", "A"));
    assert_eq!(wit.ask("lock.query", json!({})), json!([]), "nothing was granted to one who is gone");
}

#[test]
fn a_wait_is_had_once_at_this_door_too() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("a.ts:f", "A"));
    for round in 1..=5 {
        assert_eq!(wit.token("lock.acquire", waiting("a.ts:f", "B", 150)), "LOCK_CONFLICT");
        assert_eq!(waits_begun(&world), round);
    }
}

#[test]
fn whoever_would_close_a_circle_is_told_who_is_in_it() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", lock("a.ts:x", "A"));
    wit.ask("lock.acquire", lock("a.ts:y", "B"));
    let blocked = queue(&wit, "a.ts:y", "A", 0);
    let circle = wit.refused("lock.acquire", waiting("a.ts:x", "B", 30_000));
    assert_eq!(circle["message"], "LOCK_CONFLICT");
    assert_eq!(circle["data"]["cycle"], json!(["B", "A"]));
    wit.ask("lock.release", lock("a.ts:y", "B"));
    assert!(blocked.join().unwrap()["result"].is_object());
}

#[test]
fn a_lock_whose_time_is_up_is_free_for_others_and_still_its_holders_to_release() {
    let world = world();
    let (_daemon, wit) = started(&world);
    wit.ask("lock.acquire", json!({ "symbolPath": "a.ts:f", "sessionId": "A", "ttlMs": 200 }));
    wit.ask("lock.acquire", json!({ "symbolPath": "a.ts:g", "sessionId": "A", "ttlMs": 200 }));
    eventually("its end", || wit.ask("lock.query", json!({})) == json!([]));
    assert_eq!(wit.token("lock.release", lock("a.ts:f", "B")), "LOCK_NOT_FOUND");
    assert_eq!(wit.ask("lock.release", lock("a.ts:f", "A")), json!({ "released": true }));
    wit.ask("lock.acquire", lock("a.ts:g", "B"));
    assert_eq!(wit.token("lock.release", lock("a.ts:g", "A")), "LOCK_NOT_HELD");
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_ends_with_the_process_that_it_was_bound_to() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let mut agent = Ended(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap());
    let bound = json!({ "symbolPath": "a.ts:f", "sessionId": "A", "pid": agent.0.id() });
    wit.ask("lock.acquire", bound.clone());
    wit.ask("lock.acquire", lock("a.ts:g", "A"));
    agent.0.kill().unwrap();
    agent.0.wait().unwrap();
    eventually("one lock less", || wit.ask("lock.query", json!({})).as_array().unwrap().len() == 1);
    assert_eq!(wit.ask("lock.query", json!({}))[0]["symbolPath"], "a.ts:g");
    // It has ended; and the first process is not ours to bind to.
    for pid in [json!(agent.0.id()), json!(1), json!(0), json!(u64::MAX)] {
        let wrong = json!({ "symbolPath": "a.ts:f", "sessionId": "A", "pid": pid });
        assert!(wit.refused("lock.acquire", wrong)["data"]["fieldErrors"]["pid"].is_array(), "{pid}");
    }
}

#[test]
fn a_session_that_leaves_holds_nothing_any_more() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let declare = json!({ "sessionId": "A", "description": "d", "files": ["a.ts"] });
    wit.ask("lock.acquire", lock("a.ts:f", "A"));
    wit.ask("lock.acquire", lock("a.ts:g", "A"));
    wit.ask("intent.declare", declare.clone());
    assert_eq!(wit.ask("provost.leave", json!({ "sessionId": "A" })), json!({ "locks": 2, "intents": 0 }));
    assert_eq!(wit.ask("lock.query", json!({})), json!([]));
    assert_eq!(wit.ask("intent.query", json!({})).as_array().unwrap().len(), 1);
    wit.ask("lock.acquire", lock("a.ts:f", "A"));
    let left = wit.ask("provost.leave", json!({ "sessionId": "A", "intents": true }));
    assert_eq!(left, json!({ "locks": 1, "intents": 1 }));
    assert_eq!(wit.ask("intent.query", json!({})), json!([]));
    assert_eq!(
        wit.ask("provost.leave", json!({ "sessionId": "nobody" })),
        json!({ "locks": 0, "intents": 0 })
    );
}

const SESSION: &str = "export class Session {\n  renew(n: number): void { this.check(); }\n  check(): boolean { return true; }\n}\n\
    export function login(s: Session): boolean { return s.check(); }\n";

#[test]
fn warnings_say_what_is_around_in_and_planned_and_every_one_can_be_printed() {
    let world = world();
    world.put(&world.repo().join("src/session.ts"), SESSION);
    let (_daemon, wit) = started(&world);
    let declare = json!({ "sessionId": "A", "description": "simplify", "files": ["src/session.ts"], "symbols": ["Session.check"] });
    wit.ask("intent.declare", declare);
    wit.ask("lock.acquire", lock("src/session.ts:Session.renew", "A"));
    let class = wit.ask("lock.acquire", lock("src/session.ts:Session", "B"));
    assert_eq!(kinds(&class["warnings"]), ["MEMBER_LOCKED", "INTENDED"]);
    // Of what somebody has as a whole nobody else gets a part; what was had before goes on.
    assert_eq!(wit.token("lock.acquire", lock("src/session.ts:Session.check", "C")), "LOCK_CONFLICT");
    let method = wit.ask("lock.acquire", lock("src/session.ts:Session.renew", "A"));
    assert!(kinds(&method["warnings"]).contains(&"CONTAINER_LOCKED"), "{method}");
    let unknown = wit.ask("lock.acquire", lock("src/session.ts:lgoin", "E"));
    wit.ask("lock.release", lock("src/session.ts:lgoin", "E"));
    let file = wit.ask("lock.acquire", lock("src/session.ts:", "D"));
    assert!(kinds(&file["warnings"]).contains(&"MEMBER_LOCKED"), "{file}");
    // One symbol under two names is one lock.
    assert_eq!(wit.token("lock.acquire", lock("src/session.ts:renew", "E")), "LOCK_CONFLICT");
    assert!(kinds(&unknown["warnings"]).contains(&"UNKNOWN_SYMBOL"));
    for warning in [&class, &method, &file, &unknown].iter().flat_map(|it| it["warnings"].as_array().unwrap())
    {
        assert!(warning["message"].as_str().is_some_and(|it| !it.is_empty()), "{warning}");
        assert!(warning["lockedSymbol"].is_string() && warning["chain"].is_array(), "{warning}");
    }
}

#[test]
fn an_intent_is_told_of_locks_in_its_files_and_every_item_can_be_printed() {
    let world = world();
    world.put(&world.repo().join("src/session.ts"), SESSION);
    let (_daemon, wit) = started(&world);
    wit.ask("register", json!({ "name": "Ada", "sessionId": "A" }));
    wit.ask("lock.acquire", lock("src/session.ts:Session.check", "A"));
    let declare = |who: &str, symbols: Value| json!({ "sessionId": who, "description": "mine", "files": ["src/session.ts"], "symbols": symbols });
    let whole = wit.ask("intent.declare", declare("B", json!([])));
    assert_eq!(kinds(&whole["conflicts"]["items"]), ["LOCK_IN_FILE"]);
    assert_eq!(whole["conflicts"]["hasConflicts"], false, "none of the documented kinds");
    let some = wit.ask("intent.declare", declare("C", json!(["Session.check", "login"])));
    assert_eq!(
        kinds(&some["conflicts"]["items"]),
        ["INTENT_OVERLAP", "LOCK_INTERSECTION", "DEP_CHAIN"],
        "{some}"
    );
    assert_eq!(some["conflicts"]["hasConflicts"], true);
    for item in [&whole, &some].iter().flat_map(|it| it["conflicts"]["items"].as_array().unwrap()) {
        assert!(
            ["description", "message"].iter().all(|it| item[*it].as_str().is_some_and(|it| !it.is_empty()))
        );
    }
    wit.ask(
        "intent.declare",
        json!({ "sessionId": "A", "description": "short", "files": ["b.ts"], "ttlMs": 200 }),
    );
    eventually("its end", || wit.ask("intent.query", json!({ "sessionId": "A" })) == json!([]));
    let ended = wit.ask("intent.query", json!({ "sessionId": "A", "status": "abandoned" }));
    assert_eq!((&ended[0]["description"], &ended[0]["agentName"]), (&json!("short"), &json!("Ada")));
}

#[test]
fn a_contract_is_replaced_taken_back_and_not_escaped_by_a_rename_or_a_deletion() {
    let world = world();
    let file = world.repo().join("src/a.ts");
    world.put(&file, "export function f(a: string): boolean { return true; }\n");
    let (_daemon, wit) = started(&world);
    let propose = |who: &str| wit.ask("contract.propose", lock("src/a.ts:f", who))["contractId"].clone();
    let respond = |id: &Value| json!({ "contractId": id, "sessionId": "B", "accept": true });
    let status = |id: &Value| {
        let rows = wit.ask("contract.query", json!({}));
        rows.as_array().unwrap().iter().find(|it| it["contractId"] == *id).unwrap()["status"].clone()
    };
    let (first, offered) = (propose("A"), propose("A"));
    let withdraw = |who: &str| json!({ "contractId": offered, "sessionId": who });
    assert_eq!(wit.token("provost.contract.withdraw", withdraw("B")), "CONTRACT_NOT_OWNED");
    let withdrawn = wit.ask("provost.contract.withdraw", withdraw("A"));
    assert_eq!(withdrawn, json!({ "contractId": offered, "status": "withdrawn" }));
    assert_eq!(wit.token("contract.respond", respond(&offered)), "CONTRACT_ALREADY_RESOLVED");
    wit.ask("contract.respond", respond(&first));
    world.put(&file, "export function f(a: string, b: number): boolean { return true; }\n");
    let second = propose("A");
    wit.ask("contract.respond", respond(&second));
    assert_eq!((status(&first), status(&second)), (json!("superseded"), json!("accepted")));

    let check = |params: Value| wit.ask("check-contracts", params)["violations"].clone();
    let kept = "export function f(\n  a: string, // one\n  b: number,\n): boolean { return true; }\n";
    let one = |path: &str, content: &str| json!({ "files": [{ "path": path, "content": content }] });
    assert_eq!(check(one("src/a.ts", kept)), json!([]));
    assert_eq!(check(one("src/other.ts", "")), json!([]));
    let faults =
        |found: Value| found.as_array().unwrap().iter().map(|it| it["fault"].clone()).collect::<Vec<_>>();
    assert_eq!(
        faults(check(one("src/a.ts", "export function f(a: string): boolean { return true; }\n"))),
        ["changed"]
    );
    assert_eq!(faults(check(one("src/a.ts", ""))), ["missing"]);
    assert_eq!(faults(check(json!({ "files": [], "deleted": ["./src/a.ts"] }))), ["deleted"]);
    let renamed = |content: &str| json!({ "files": [{ "path": "src/b.ts", "content": content }], "renamed": [{ "from": "src/a.ts", "to": "src/b.ts" }] });
    assert_eq!(faults(check(renamed("export function f(): boolean { return true; }\n"))), ["changed"]);
    // To where nothing of it was sent.
    let away = json!({ "files": [], "renamed": [{ "from": "src/a.ts", "to": "src/b.ts" }] });
    assert_eq!(faults(check(away)), ["deleted"]);
    assert_eq!(check(renamed(kept)), json!([]));
    // The contract has gone along.
    assert_eq!(faults(check(one("src/b.ts", ""))), ["missing"]);
}

#[test]
fn a_work_trees_socket_reads_that_work_trees_files_and_all_share_their_locks() {
    let world = world();
    let repo = world.repo();
    let file = |text: &str| format!("export function f({text}): void {{}}\n");
    world.put(&repo.join("src/a.ts"), &file("here: string"));
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "--quiet", "-m", "first"]);
    let other = world.path("other");
    git(&repo, &["worktree", "add", "--quiet", other.to_str().unwrap()]);
    fs::write(other.join("src/a.ts"), file("there: number")).unwrap();
    let (_daemon, wit) = started(&world);
    let there = Wit::in_tree(&other);
    eventually("an answer", || there.answers());
    assert_eq!(wit.ask("contract.propose", lock("src/a.ts:f", "A"))["signature"], "(here: string): void");
    assert_eq!(there.ask("contract.propose", lock("src/a.ts:f", "A"))["signature"], "(there: number): void");
    wit.ask("lock.acquire", lock("src/a.ts:f", "A"));
    assert_eq!(there.token("lock.acquire", lock("src/a.ts:f", "B")), "LOCK_CONFLICT");
    there.ask("lock.release", lock("src/a.ts:f", "A"));
    assert_eq!(wit.ask("lock.query", json!({})), json!([]));
}

/// Returns a request of wit's command line, to the byte except for the port of its runtime.
fn as_the_command_line(body: &str) -> Vec<u8> {
    format!(
        "POST /rpc HTTP/1.1\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nUser-Agent: Bun/1.4.5\r\n\
         Accept: */*\r\nHost: localhost\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn what_wits_command_line_sends_is_answered_as_it_expects() {
    let world = world();
    let (_daemon, wit) = started(&world);
    let id = "05eec4ed-cdec-478b-a991-cfaf69057a74";
    let calls = [
        (r#""method":"lock.acquire","params":{"symbolPath":"a:b","sessionId":"q"}"#, "result"),
        (r#""method":"lock.acquire","params":{"symbolPath":"a:b","sessionId":"q","ttlMs":60000}"#, "result"),
        (r#""method":"lock.acquire","params":{"symbolPath":"a:b","sessionId":"q","ttlMs":null}"#, "error"),
        (
            r#""method":"intent.declare","params":{"sessionId":"q","description":"d","files":["a"],"symbols":[]}"#,
            "result",
        ),
        (r#""method":"intent.query","params":{}"#, "result"),
        (r#""method":"lock.query","params":{}"#, "result"),
        (r#""method":"contract.query","params":{}"#, "result"),
        (r#""method":"intent.query","params":{"sessionId":"q","status":"active"}"#, "result"),
        (
            r#""method":"check-contracts","params":{"files":[{"path":"a.ts","content":"export const x = 1;\n"}]}"#,
            "result",
        ),
        (r#""method":"lock.release","params":{"symbolPath":"a:b","sessionId":"q"}"#, "result"),
        (r#""method":"lock.release","params":{"symbolPath":"a:b","sessionId":"q"}"#, "error"),
    ];
    for (call, expected) in calls {
        // One connection for each call; it is kept open until the client ends.
        let mut connection = wit.connect();
        let body = format!(r#"{{"jsonrpc":"2.0","witVersion":"1","id":"{id}",{call}}}"#);
        connection.write_all(&as_the_command_line(&body)).unwrap();
        let answer = Answer::read(&mut connection, false).unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.header("content-encoding"), None);
        let response = answer.json();
        assert_eq!(response["id"], id);
        assert!(response.get(expected).is_some(), "{call}: {response}");
    }
}

#[test]
fn wit_has_symbols_alone_and_a_name_of_a_resource_is_one_of_a_file_here() {
    let world = world();
    let (_daemon, wit) = started(&world);
    world.done("a", &["lock", "@db:test"]);
    world.done("a", &["lock", "src/x.ts:f"]);
    let listed = |wit: &Wit| wit.ask("lock.query", json!({})).to_string();
    assert!(!listed(&wit).contains("@db") && listed(&wit).contains("src/x.ts:f"), "{}", listed(&wit));
    // As published, it is a symbol of a file; nobody has that.
    let taken = wit.ask("lock.acquire", lock("@db:test", "B"));
    assert_eq!(taken["symbolPath"], "@db:test");
    assert!(listed(&wit).contains("\"@db:test\""));
    assert_eq!(world.locked(), ["@db:test", "src/x.ts:f", "./@db:test"]);
    wit.ask("lock.release", json!({ "symbolPath": "@db:test", "sessionId": "B" }));
    assert_eq!(world.locked(), ["@db:test", "src/x.ts:f"], "the resource is not wit's to give back");
}
