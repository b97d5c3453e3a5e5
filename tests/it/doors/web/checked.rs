//! Checks and comparisons that the page requests from the daemon, by raw requests: the whole journal, both changes of two agents, a
//! message to a whole crew; the rights of a stolen session; and that a long history makes no answer dearer.

use std::time::{Duration, Instant};

use provost_test_equipment::full_store::{RARE, Size, fill};
use serde_json::{Value, json};

use super::{OPEN, ask, open_world};
use crate::support::loopback_client::Http;
use crate::support::own_api::own;
use crate::support::passkeys::{assertion, get};
use crate::support::proxied::Elsewhere;
use crate::support::repositories::{well, write};
use crate::support::rules::{ALLOW, allow, ask as asks_for, policy};
use crate::support::signing_desk::SigningDesk;
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;
use crate::support::{World, eventually};

/// Has the page check the journal, to its end; what was found.
fn checked(door: Http) -> Value {
    let begun = door.look("/rows/journal-check").json();
    let number = begun["check"].as_u64().unwrap_or_else(|| panic!("{begun}"));
    until_some("the check ends", || {
        let told = door.look(&format!("/rows/journal-check?check={number}&wait_ms=500")).json();
        Some(told["found"].clone()).filter(|it| !it.is_null())
    })
}

#[test]
fn the_whole_journal_is_checked_with_its_signatures_and_one_changed_byte_is_found() {
    let mut desk = SigningDesk::new(ALLOW);
    let stop = json!({ "to": ["feat-a"], "text": "stop" });
    assert_eq!(desk.act("message-agents", &stop).status, 200);
    let found = checked(desk.door);
    assert_eq!((&found["ok"], &found["first_bad"]), (&json!(true), &json!(null)), "{found}");
    assert!(found["signed"].as_u64().unwrap() >= 1, "{found}");
    // It says the same as the command, which reads the store by itself.
    let output = desk.world.command(&["journal", "verify", "--json"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said["events"].as_u64() >= found["events"].as_u64(), "{said} {found}");
    assert_eq!(said["signed"]["checked"], found["signed"]);
    // A check that there is not, and one that was followed by another.
    let gone = desk.door.look("/rows/journal-check?check=99");
    assert_eq!((gone.status, gone.json()["error"].clone()), (404, json!("check_not_found")));
    let path = desk.world.state_dir().join("provost.db");
    let db = rusqlite::Connection::open(path).unwrap();
    let bad: i64 =
        db.query_row("select min(seq) from event where kind = 'word_said'", [], |row| row.get(0)).unwrap();
    let changed = db.execute("update event set body = replace(body, 'stop', 'stob') where seq = ?1", [bad]);
    assert_eq!(changed.unwrap(), 1);
    drop(db);
    let found = checked(desk.door);
    assert_eq!((&found["ok"], &found["first_bad"]), (&json!(false), &json!(bad)), "{found}");
    assert!(found["says"].as_str().unwrap().contains("has been changed"), "{found}");
    assert!(found["anchor"].is_null(), "no anchor of a chain that does not hold: {found}");
}

#[test]
fn who_was_invited_and_who_is_not_signed_in_has_nothing_checked_or_compared() {
    let page = Elsewhere::new();
    let _key = page.enrolled();
    for path in ["/rows/journal-check", "/rows/both?file=a.py&one=a&other=b"] {
        assert_eq!(page.get(path, "").status, 401, "{path}");
    }
}

#[test]
fn what_two_agents_have_changed_of_one_file_is_read_in_the_work_tree_of_each() {
    let (world, _daemon, door) = open_world();
    let repo = world.repo();
    write(repo.join("src/a.py"), "def f():\n    return 1\n");
    well(&repo, &["add", "."]);
    well(&repo, &["commit", "-qm", "one"]);
    let (ada, bob) = (world.path("ada"), world.path("bob"));
    for (tree, branch) in [(&ada, "feat/ada"), (&bob, "bob")] {
        well(&repo, &["worktree", "add", "-q", "-b", branch, tree.to_str().unwrap()]);
    }
    // What one has committed, what the other has not, and what came to the trunk meanwhile, which neither has changed.
    write(ada.join("src/a.py"), "def f():\n    return 2\n");
    well(&ada, &["commit", "-qam", "two"]);
    write(bob.join("src/a.py"), "def f():\n    return \"\u{202e}<b>\"\n");
    write(repo.join("src/a.py"), "def f():\n    return 1\n\n# of the trunk\n");
    well(&repo, &["commit", "-qam", "three"]);
    let both = |one: &str, other: &str, file: &str| {
        door.look(&format!("/rows/both?file={file}&one={one}&other={other}"))
    };
    let said = both("feat-ada", "bob", "src%2Fa.py").json();
    let titles: Vec<&str> =
        said["blocks"].as_array().unwrap().iter().filter_map(|it| it["title"].as_str()).collect();
    assert_eq!(titles, ["feat-ada, on branch feat/ada", "bob, on branch bob", "At a terminal"], "{said}");
    let text = said.to_string();
    assert!(text.contains("return 2") && text.contains("\\\\u{202e}<b>"), "{text}");
    assert!(!text.contains("of the trunk"), "what the trunk has is no change of theirs: {text}");
    // One without a work tree, a folder, a file that neither has, and a name that is none.
    let said = both("zoe", "bob", "src%2Fa.py").json().to_string();
    assert!(
        said.contains(
            "What zoe has changed there is not known: the daemon knows no separate work tree of it"
        ),
        "{said}"
    );
    let said = both("feat-ada", "bob", "src").json().to_string();
    assert!(said.contains("it is a folder"), "{said}");
    assert_eq!(both("feat-ada", "bob", "none.py").status, 200);
    for bad in [
        both("feat-ada", "bob", "..%2Fa.py"),
        both("feat-ada", "", "src%2Fa.py"),
        both("a%0Ab", "bob", "src%2Fa.py"),
    ] {
        assert_eq!(bad.status, 400, "{bad:?}");
    }
    // A link in a work tree leads nowhere.
    std::fs::remove_file(bob.join("src/a.py")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bob.join("src/a.py")).unwrap();
    let said = both("feat-ada", "bob", "src%2Fa.py").json().to_string();
    assert!(said.contains("a symbolic link is on the way") && !said.contains("root:"), "{said}");
}

#[test]
fn a_message_to_the_whole_crew_names_all_of_it_and_reaches_each_by_one_signature() {
    let mut desk = SigningDesk::new(ALLOW);
    for agent in ["feat-a", "feat-b", "feat-c"] {
        desk.as_agent(agent, &["lock", "acquire", &format!("@thing:{agent}")]);
    }
    let to_all = until_some("all of them are there", || {
        let view = desk.door.look("/rows/messages").json();
        let blocks = view["blocks"].as_array().unwrap().clone();
        let block = blocks.into_iter().find(|it| it["title"] == "To all agents that give a sign of life")?;
        Some(block["commands"][0]["here"]["arguments"]["to"].clone())
            .filter(|it| it.as_array().is_some_and(|it| it.len() >= 3))
    });
    assert_eq!(to_all, json!(["feat-a", "feat-b", "feat-c"]));
    let told = desk.act("message-agents", &json!({ "to": to_all, "text": "the trunk is closed" }));
    assert_eq!(told.status, 200, "{told:?}");
    for agent in ["feat-a", "feat-b", "feat-c"] {
        let (status, inbox) =
            own(&desk.world, ("POST", "/read-inbox"), &[("x-provost-agent", agent)], &json!({}));
        assert!(status == 200 && inbox.to_string().contains("the trunk is closed"), "{agent}: {inbox}");
    }
}

#[test]
fn where_all_is_calm_the_view_says_when_the_last_decision_was() {
    let (world, daemon, door) = open_world();
    let last = || {
        let view = door.look("/rows/needs-you").json();
        let blocks = view["blocks"].as_array().unwrap();
        blocks.iter().find(|it| it["title"] == "Waiting for your word").unwrap()["empty"]["last"].clone()
    };
    assert!(last().is_null(), "nothing was decided yet");
    ask(&world, &daemon, "make the release");
    assert!(last().is_null(), "something waits");
    assert!(at_the_terminal(&world, "deny 1 --reason no").status.success());
    let told = until_some("it is told", || Some(last()).filter(|it| !it.is_null()));
    let events = get(&world, "/events?after=0&limit=1000");
    let events = events["events"].as_array().unwrap();
    let answered = events.iter().find(|it| it["kind"].get("approval_answered").is_some()).unwrap();
    assert_eq!(told, json!(["Last decision", answered["at"]]));
}

#[test]
fn a_stolen_session_reads_and_signs_nothing_and_ends_with_a_word_of_its_owner() {
    let page = Elsewhere::new();
    let mut key = page.enrolled();
    let cookie = page.sign_in(&mut key);
    // The thief has the cookie, another connection and a passkey of its own, and neither the owner's passkey nor a code.
    for path in ["/rows/needs-you", "/rows/tasks", "/rows/messages"] {
        assert_eq!(page.get(path, &cookie).status, 200, "{path}: it reads what its owner reads");
    }
    let mut thief = page.key();
    for asked in [
        json!({ "verb": "message-agents", "arguments": { "to": ["feat-a"], "text": "do it" } }),
        json!({ "verb": "revoke-tokens", "arguments": { "agent": "feat-a" } }),
    ] {
        let challenge = page.post("/word-challenge", &cookie, &asked);
        assert_eq!(challenge.status, 200, "{challenge:?}");
        let challenge = challenge.json();
        let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(&mut thief, &challenge) });
        assert_eq!(page.post("/signed-word", &cookie, &signed).status, 403, "{asked}");
    }
    let begun = page.post(
        "/begin-passkey",
        &cookie,
        &json!({ "code": "AAAA-AAAA-AAAA", "name": "thief", "origin": page.origin() }),
    );
    assert!(begun.status >= 400, "a session is no code: {begun:?}");
    let events = get(&page.world, "/events?after=0&limit=1000").to_string();
    assert!(
        !events.contains("message-agents") && !events.contains("revoke-tokens"),
        "nothing of it is on record"
    );
    // Its owner ends it, and it reads nothing more.
    let ended = page.world.command(&["web", "session", "end", "--all"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    eventually("it is over", || page.get("/rows/needs-you", &cookie).status == 401);
}

/// A page over a store with so many events.
fn with_history(events: usize) -> (World, crate::support::Daemon, Http) {
    let world = World::new();
    world.configure(&format!("{OPEN}[limits]\ntasks_per_agent = 10000\n"));
    world.rule(&policy([
        asks_for("\"human\"", &["when.action = [\"delegate\"]", "when.client = [\"asker\"]"]),
        allow("rest", &["when.action = [\"delegate\"]"]),
    ]));
    let daemon = world.start();
    world.client(&daemon, "filler").delegate("absent", "look at the parser", json!({})).1.ack();
    world.client(&daemon, "asker").delegate("shell", "true", json!({})).1.ack();
    daemon.stop();
    let size = Size { events, ..Size::default() };
    fill(&world.state_dir(), size, chrono::Utc::now().timestamp_millis()).unwrap();
    let daemon = world.start();
    let door = Http::web(&world);
    let all = || door.look(&format!("/rows/search?q={RARE}")).json()["blocks"][0]["block"] == "list";
    eventually("all words can be searched", all);
    (world, daemon, door)
}

/// How much longer a page may take over a history that is thirty times as long, beside other tests on the same cores.
const TIMES_MAX: u32 = 5;

#[test]
fn a_long_history_makes_no_page_and_no_search_dearer() {
    const SHORT: usize = 4_000;
    const LONG: usize = 120_000;
    let (_short, _short_daemon, short) = with_history(SHORT);
    let (_long, _long_daemon, long) = with_history(LONG);
    let middle = |events: usize| format!("/rows/events?before={}", events / 2);
    let rare = format!("/rows/search?q={RARE}");
    let same = |path: &str| (path.to_owned(), path.to_owned());
    for (of_short, of_long) in [
        same("/rows/events"),
        (middle(SHORT), middle(LONG)),
        same("/rows/search?q=albatross"),
        same(&rare),
        same("/rows/needs-you"),
        same("/rows/tasks"),
        same("/rows/audit"),
    ] {
        let best = |door: Http, path: &str| {
            let one = |_| {
                let begun = Instant::now();
                assert_eq!(door.look(path).status, 200, "{path}");
                begun.elapsed()
            };
            (0..7).map(one).min().unwrap()
        };
        let (few, many) = (best(short, &of_short), best(long, &of_long));
        let allowed = few.max(Duration::from_millis(10)) * TIMES_MAX;
        assert!(many <= allowed, "{of_long}: {many:?} with {LONG} events, {few:?} with {SHORT}");
    }
}
