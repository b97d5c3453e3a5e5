//! The own API's answers for views: waits, words, messages and meetings, through the real socket.

use serde_json::{Value, json};

use crate::support::commands::said;
use crate::support::own_api::own;
use crate::support::rules::ASK;
use crate::support::{World, eventually};

fn get(world: &World, path: &str) -> (u16, Value) {
    own(world, ("GET", path), &[], &Value::Null)
}

#[track_caller]
fn found(world: &World, words: &str) -> Vec<Value> {
    let (status, found) = get(world, &format!("/search?words={words}"));
    assert_eq!((status, &found["not_yet"]), (200, &json!(0)), "{found}");
    found["hits"].as_array().unwrap().clone()
}

fn publish(world: &World, agent: &str, message: &Value) {
    let done = world.by(agent, &["broker", "publish", &message.to_string()]).output().unwrap();
    assert_eq!(said(&done).0, 0, "{done:?}");
}

fn feedback(from: &str, to: &str, text: &str) -> Value {
    json!({ "type": "agent.feedback", "agent_id": to, "payload": { "from": from, "errors": [text] } })
}

#[test]
fn all_kinds_of_waits_are_in_one_answer_longest_first() {
    let world = World::new();
    world.rule(ASK);
    world.write("src/a.py", "def f():\n    return 1\n");
    let daemon = world.start();
    assert_eq!(get(&world, "/waits").1["waits"], json!([]));
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", "release <b>it</b>", json!({}));
    reply.ack();
    world.done("ada", &["lock", "src/a.py:f"]);
    let mut waits = world.begin("bob", &["lock", "src/a.py:f", "--wait", "1m"]);
    eventually("bob waits", || world.waiting() == ["bob"]);
    let question =
        json!({ "type": "agent.question", "agent_id": "eve", "payload": { "question": "which one?" } });
    publish(&world, "eve", &question);
    world.done("ada", &["contract", "propose", "src/a.py:f"]);
    let (status, found) = get(&world, "/waits");
    assert_eq!(status, 200);
    let rows = found["waits"].as_array().unwrap();
    let row =
        |kind: &str| rows.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {found}"));
    assert_eq!(
        (&row("approval")["agent"], &row("approval")["task"]),
        (&json!("orch"), &json!(task.to_string()))
    );
    assert_eq!(row("approval")["words"], "release <b>it</b>");
    let lock = row("lock");
    assert_eq!((&lock["agent"], &lock["by"], &lock["place"]), (&json!("bob"), &json!(["ada"]), &json!(1)));
    assert_eq!((&row("answer")["agent"], &row("answer")["words"]), (&json!("eve"), &json!("which one?")));
    assert_eq!(row("contract")["wanted"], "src/a.py:f");
    assert_eq!(rows.len(), 4, "{found}");
    let since: Vec<&str> = rows.iter().map(|it| it["since"].as_str().unwrap()).collect();
    assert!(since.is_sorted());
    assert!(found["refused_since"].as_str().unwrap() <= since[0]);
    waits.kill().unwrap();
    waits.wait().unwrap();
    eventually("the place is given up", || {
        get(&world, "/waits").1["waits"].as_array().unwrap().iter().all(|it| it["kind"] != "lock")
    });
}

#[test]
fn what_is_said_is_found_at_once_with_the_way_to_it_and_after_a_start() {
    let world = World::new();
    world.rule(ASK);
    let mut daemon = world.start();
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", "paint the shed green", json!({}));
    reply.ack();
    publish(&world, "ada", &feedback("ada", "bob", "the shed is not green"));
    for round in ["running", "after a kill"] {
        let hits = found(&world, "shed+green");
        let kinds: Vec<&str> = hits.iter().map(|it| it["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["task", "message"], "{round}: {hits:?}");
        assert_eq!((&hits[0]["task"], &hits[0]["actor"]), (&json!(task.to_string()), &json!("orch")));
        assert!(hits[1]["message"].is_u64() && hits[1]["excerpt"].as_str().unwrap().contains("not green"));
        assert!(found(&world, "approval_asked").iter().all(|it| it["kind"] == "event"));
        assert!(!found(&world, "approval_asked").is_empty());
        daemon.kill();
        daemon = world.start();
    }
    let text = |args: &[&str]| {
        let done = world.command(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let line = text(&["search", "shed", "gre*"]);
    assert!(line.contains("paint the shed") && line.contains("provost task show"), "{line}");
    assert!(text(&["search", "\"not green\"", "--only", "messages"]).contains("message"));
    assert_eq!(text(&["search", "no-such-word"]), "");
    let json: Value = serde_json::from_str(&text(&["search", "shed", "--json"])).unwrap();
    assert_eq!(json["hits"].as_array().unwrap().len(), 2);
}

#[test]
fn a_search_that_is_none_is_refused_in_words_and_changes_nothing() {
    let world = World::new();
    let _daemon = world.start();
    for (words, says) in [
        ("", "nothing to search for"),
        ("%22open", "not closed"),
        ("%3B--", "neither letters nor digits"),
        ("a%00b", "control character"),
        ("%1b%5B2J", "control character"),
        (&"a+".repeat(20), "12 words"),
        (&"a".repeat(400), "300 bytes"),
    ] {
        let (status, said) = get(&world, &format!("/search?words={words}"));
        assert_eq!((status, &said["error"]), (400, &json!("invalid")), "{words}: {said}");
        assert!(said["message"].as_str().unwrap().contains(says), "{words}: {said}");
    }
    assert_eq!(get(&world, "/search?words=a&only=bread").0, 400);
    assert_eq!(get(&world, "/search?words=a&before=x").0, 400);
    // What would be a command of the index's language, or of SQL, is a word like any other.
    for words in ["a%22+OR+%22b", "NEAR(a,b)", "said:x+NOT+y", "a*)+UNION+SELECT+1--z", "'x'='x'"] {
        assert_eq!(get(&world, &format!("/search?words={words}")).0, 200, "{words}");
    }
    let wrong = world.command(&["search", ";;"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(4), "{wrong:?}");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("neither letters nor digits"), "{wrong:?}");
}

#[test]
fn a_message_says_whether_its_sender_is_proven_and_pages_go_back() {
    let world = World::new();
    world.rule(&format!("{ASK}{}", crate::support::rules::allow("token", &["when.action = [\"token\"]"])));
    let _daemon = world.start();
    let minted = world.command(&["token", "mint", "keyed"]).output().unwrap();
    assert!(minted.status.success(), "{minted:?}");
    let token = String::from_utf8(minted.stdout).unwrap().trim().to_owned();
    publish(&world, "ada", &feedback("ada", "bob", "from one who says so"));
    let bearer = format!("Bearer {token}");
    let sent = own(
        &world,
        ("POST", "/send-message"),
        &[("authorization", &bearer), ("x-provost-agent", "keyed")],
        &json!({ "kind": "message", "to": "bob", "text": "from one with a token" }),
    );
    assert_eq!(sent.0, 200, "{sent:?}");
    // One without proof does not get the name.
    let stolen = own(
        &world,
        ("POST", "/send-message"),
        &[("x-provost-agent", "keyed")],
        &json!({ "kind": "message", "to": "bob", "text": "stolen" }),
    );
    assert!(stolen.0 >= 400, "{stolen:?}");
    let (_, page) = get(&world, "/posts?limit=10");
    let posts = page["posts"].as_array().unwrap();
    let shown: Vec<(&str, &Value, &Value)> =
        posts.iter().map(|it| (it["from"].as_str().unwrap(), &it["to"], &it["proof"])).collect();
    let bob = json!("bob");
    assert_eq!(shown, [("keyed", &bob, &json!("token")), ("ada", &bob, &Value::Null)], "{page}");
    assert_eq!(posts[0]["said"], "from one with a token");
    let before = posts[0]["seq"].as_u64().unwrap();
    let (_, older) = get(&world, &format!("/posts?before={before}&limit=1"));
    assert_eq!((older["posts"].as_array().unwrap().len(), &older["posts"][0]["from"]), (1, &json!("ada")));
    assert_eq!(get(&world, "/posts?before=1&limit=1").1["posts"], json!([]));
}

#[test]
fn a_claim_and_an_intent_of_another_door_meet_once_with_the_words_of_both() {
    let world = World::new();
    world.write("src/a.py", "def f():\n    return 1\n\ndef g():\n    return 2\n");
    let _daemon = world.start();
    assert_eq!(get(&world, "/meetings").1, json!([]));
    world.done("ada", &["claim", "acquire", "src/a.py"]);
    world.done("bob", &["intent", "declare", "a new form of f", "--file", "src/a.py", "--symbol", "f"]);
    let (status, met) = get(&world, "/meetings");
    assert_eq!((status, met.as_array().unwrap().len()), (200, 1), "{met}");
    let sides = met[0]["sides"].as_array().unwrap();
    assert_eq!((&met[0]["file"], &met[0]["severity"]), (&json!("src/a.py"), &json!("file")));
    let kinds: Vec<(&Value, &Value)> = sides.iter().map(|it| (&it["agent"], &it["kind"])).collect();
    assert_eq!(kinds, [(&json!("ada"), &json!("claim")), (&json!("bob"), &json!("intent"))]);
    assert!(sides[1]["asked"].as_str().unwrap().contains("a new form of f"), "{met}");
    // Two who name the same symbol are graver, and come first.
    world.write("src/b.py", "def h():\n    return 1\n");
    world.done("eve", &["lock", "src/b.py:h"]);
    world.done("bob", &["intent", "declare", "h goes", "--file", "src/b.py", "--symbol", "h"]);
    let (_, met) = get(&world, "/meetings");
    let severities: Vec<&str> =
        met.as_array().unwrap().iter().map(|it| it["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["symbol", "file"], "{met}");
    let text = world.command(&["intent", "conflicts"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("same symbol: src/b.py: ") && text.contains("a new form of f"), "{text}");
}

#[test]
fn who_has_a_caller_of_what_another_agent_has_is_told_between_the_same_symbol_and_the_same_file() {
    let world = World::new();
    world.configure("[web]\nenabled = true\n");
    world.write("src/a.py", "def f():\n    return 1\n");
    world
        .write("src/b.py", "from src.a import f\n\n\ndef g():\n    return f()\n\n\ndef h():\n    return 2\n");
    world.write("src/c.py", "def k():\n    return 3\n");
    let _daemon = world.start();
    eventually("the repository is read", || {
        get(&world, "/graph/callers?symbol=src%2Fa.py%3Af").1["symbols"] == json!(["src/b.py:g"])
    });
    world.done("ada", &["lock", "src/a.py:f"]);
    world.done("bob", &["intent", "declare", "g goes", "--file", "src/b.py", "--symbol", "g"]);
    let severities = || -> Vec<(String, String, String)> {
        let (_, met) = get(&world, "/meetings");
        let of = |it: &Value| it.as_str().unwrap().to_owned();
        let met = met.as_array().unwrap().iter();
        met.map(|it| (of(&it["severity"]), of(&it["file"]), of(&it["sides"][0]["agent"]))).collect()
    };
    // The one that calls stands first.
    let caller = ("caller".to_owned(), "src/a.py:f".to_owned(), "bob".to_owned());
    assert_eq!(severities(), std::slice::from_ref(&caller));
    // What calls nothing of it is no meeting, and one's own caller neither.
    world.done("eve", &["lock", "src/b.py:h"]);
    world.done("ada", &["intent", "declare", "g as well", "--file", "src/c.py", "--symbol", "k"]);
    assert_eq!(severities(), [caller]);
    // Between the same symbol and the same file.
    world.done("zoe", &["intent", "declare", "g is mine", "--file", "src/b.py", "--symbol", "g"]);
    world.done("ida", &["claim", "acquire", "src/c.py"]);
    let words: Vec<String> = severities().into_iter().map(|it| it.0).collect();
    assert_eq!(words, ["symbol", "caller", "caller", "file"]);
    let text = world.command(&["intent", "conflicts"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("caller of src/a.py:f: bob (intent: "), "{text}");
    let rows = crate::support::loopback_client::Http::web(&world).look("/rows/intents").json().to_string();
    assert!(rows.contains("calls a symbol that the other changes"), "{rows}");
    // A lock that has ended is no side of a meeting.
    world.done("ada", &["unlock", "src/a.py:f"]);
    assert!(severities().iter().all(|it| it.0 != "caller"), "{:?}", severities());
}

#[test]
fn a_message_to_both_reaches_both_when_its_command_is_typed() {
    let world = World::new();
    world.configure("[web]\nenabled = true\n");
    world.write("src/a.py", "def f():\n    return 1\n");
    let _daemon = world.start();
    for agent in ["feat-a", "feat-b"] {
        world.done(agent, &["intent", "declare", "a new form", "--file", "src/a.py"]);
    }
    let rows = crate::support::loopback_client::Http::web(&world).look("/rows/intents").json();
    let row = &rows["blocks"][0]["rows"][0];
    let command = row["commands"].as_array().unwrap().iter().find(|it| it["does"] == "Message both").unwrap();
    let line = command["line"].as_str().unwrap().replace("TEXT", "one of you first");
    // As a person's shell runs it.
    let script = format!("provost() {{ {} \"$@\"; }}\n{line}\n", crate::support::provost().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(world.repo()).env_clear();
    for (name, value) in world.command(&[]).get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = crate::support::apart(&shell);
    assert!(output.status.success(), "{line}: {output:?}");
    for agent in ["feat-a", "feat-b"] {
        let (_, posts) = get(&world, "/posts?limit=10");
        let to = posts["posts"].as_array().unwrap().iter().filter(|it| it["to"] == agent);
        let said: Vec<&Value> = to.map(|it| &it["said"]).collect();
        assert!(said.iter().any(|it| it.as_str().unwrap().contains("one of you first")), "{agent}: {posts}");
    }
    // The page signs for both.
    assert_eq!(command["here"]["arguments"]["to"], json!(["feat-a", "feat-b"]));
}

#[test]
fn tasks_come_by_pages_and_filters_each_once_with_the_counts_of_all() {
    let world = World::new();
    world.configure("[policy]\nfile = \"builtin:open\"\n[workers.paint]\ntype = \"polling\"\n");
    let daemon = world.start();
    let client = world.client(&daemon, "orch");
    for n in 0..25 {
        let (_, reply) = client.delegate("paint", &format!("paint Shed unique-{n:02}-end"), json!({}));
        reply.ack();
    }
    let page = |query: &str| {
        let (status, page) = get(&world, &format!("/task-page{query}"));
        assert_eq!(status, 200, "{query}: {page}");
        page
    };
    let goals = |page: &Value| -> Vec<String> {
        page["tasks"].as_array().unwrap().iter().map(|it| it["goal"].as_str().unwrap().to_owned()).collect()
    };
    let (mut seen, mut at, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let found = page(&format!("?limit=10{at}"));
        assert_eq!((&found["live"], &found["counts"]["queued"]), (&json!(25), &json!(25)));
        seen.extend(goals(&found));
        pages += 1;
        match found["next"].as_str() {
            Some(next) => at = format!("&after={}", next.replace(':', "%3A")),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages), (25, 3));
    let unlike: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!(unlike.len(), 25, "none twice");
    assert_eq!(goals(&page("?text=shed+UNIQUE-07-end")), ["paint Shed unique-07-end"]);
    assert_eq!(goals(&page("?worker=pai&by=orch&state=queued")).len(), 25);
    for none in ["?state=running", "?worker=shell", "?by=nobody", "?text=bread"] {
        assert_eq!((goals(&page(none)).len(), page(none)["live"].clone()), (0, json!(0)), "{none}");
    }
    // What has ended stands behind what has not, and a page goes on from one to the other.
    let done = page("?text=unique-07-end")["tasks"][0]["id"].as_str().unwrap().to_owned();
    assert!(world.command(&["task", "cancel", &done]).output().unwrap().status.success());
    let all = page("?limit=200");
    assert_eq!(goals(&all).last().map(String::as_str), Some("paint Shed unique-07-end"));
    assert_eq!((&all["live"], &all["counts"]["completed"]), (&json!(24), &json!(1)));
    assert_eq!(goals(&page("?state=cancelled")), ["paint Shed unique-07-end"]);
    for wrong in ["?state=bread", "?after=7", "?after=live%3Ax", &format!("?text={}", "a".repeat(400))] {
        let (status, said) = get(&world, &format!("/task-page{wrong}"));
        assert_eq!((status, &said["error"]), (400, &json!("invalid")), "{wrong}: {said}");
    }
    let list = |args: &[&str]| {
        let done = world.command(&[&["task", "list"], args].concat()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let (text, note) = list(&["--state", "queued", "--limit", "5"]);
    assert!(text.lines().count() == 6 && note.contains("--after live:"), "{text}{note}");
    assert_eq!(list(&["--text", "shed unique-07-end"]).0.lines().count(), 2);
    let (json, _) = list(&["--by", "orch", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["live"], 24);
}

#[test]
fn the_numbers_of_the_page_are_those_of_the_status_and_unknown_is_not_zero() {
    let world = World::new();
    world.write("src/a.py", "def f():\n    return 1\n");
    let _daemon = world.start();
    let (status, fresh) = get(&world, "/health");
    assert_eq!((status, &fresh["used_today"], &fresh["lock_waits"]), (200, &Value::Null, &Value::Null));
    assert!(fresh["store_bytes"].as_u64().unwrap() > 10_000);
    let (free, all) = (fresh["disk_free_bytes"].as_u64().unwrap(), fresh["disk_bytes"].as_u64().unwrap());
    assert!(free <= all && all > 1 << 20, "{fresh}");
    world.done("ada", &["lock", "src/a.py:f"]);
    let waits = world.begin("bob", &["lock", "src/a.py:f", "--wait", "1m"]);
    eventually("bob waits", || world.waiting() == ["bob"]);
    assert_eq!(get(&world, "/health").1["waiting_for_locks"], 1);
    world.done("ada", &["unlock", "src/a.py:f"]);
    assert_eq!(said(&waits.wait_with_output().unwrap()).0, 0);
    let (_, health) = get(&world, "/health");
    let spread = &health["lock_waits"];
    assert_eq!(spread["count"], 1, "{health}");
    assert!(spread["p50_us"].as_u64() <= spread["p99_us"].as_u64() && spread["p50_us"].as_u64().unwrap() > 0);
    assert!(health["commits"]["count"].as_u64().unwrap() >= 3, "{health}");
    assert_eq!((&health["queued"], &health["hooks_owed"]), (&json!(0), &json!(0)));
    let status = world.command(&["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    for same in ["commits", "lock_waits", "hooks_owed", "approvals", "disk_bytes", "queued_max"] {
        assert_eq!(status["health"][same], health[same], "{same}");
    }
    let text = String::from_utf8(world.command(&["status"]).output().unwrap().stdout).unwrap();
    assert!(text.contains("half within") && text.contains("unknown: no run"), "{text}");
}

#[test]
fn the_rules_in_force_are_listed_and_say_what_they_would_to_a_made_up_request() {
    let world = World::new();
    world.rule(ASK);
    let _daemon = world.start();
    let (status, listed) = get(&world, "/rules");
    assert_eq!((status, &listed["outcome"]), (200, &Value::Null), "{listed}");
    let about = get(&world, "/about").1;
    assert_eq!(listed["digest"], about["policy"]);
    let rules = listed["rules"].as_array().unwrap();
    assert!(rules.iter().any(|it| it["id"] == "test.ask" && it["decision"] == "approve"), "{listed}");
    assert!(rules.iter().all(|it| it["matched"].is_null()));
    let before = about["journal_seq"].clone();
    let (status, said) = get(&world, "/rules?worker=shell&dir=src&client=ann&door=own&proof=peer_uid");
    assert_eq!(status, 200, "{said}");
    let here = [
        "policy", "explain", "--worker", "shell", "--dir", "src", "--client", "ann", "--proof", "peer_uid",
        "--json",
    ];
    let explained = world.command(&here).output().unwrap();
    let explained: Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(said["outcome"]["decision"], explained["outcome"]["decision"], "{said} {explained}");
    assert_eq!(said["outcome"]["rule"], explained["outcome"]["rule"]);
    assert!(said["rules"].as_array().unwrap().iter().any(|it| it["matched"] == json!(true)));
    assert_eq!(get(&world, "/about").1["journal_seq"], before, "nothing was asked for");
    for wrong in
        ["?worker=bread", "?worker=shell&door=bread", "?worker=shell&proof=x", "?worker=shell&action=x"]
    {
        assert_eq!(get(&world, &format!("/rules{wrong}")).0, 400, "{wrong}");
    }
    // Other rules are told as soon as they are in force.
    world.rule(crate::support::rules::ALLOW);
    assert!(world.command(&["daemon", "reload"]).output().unwrap().status.success());
    let (_, other) = get(&world, "/rules");
    assert_ne!(other["digest"], listed["digest"]);
    assert_eq!(other["digest"], get(&world, "/about").1["policy"]);
}
