//! Additions to the protocol's document: locks, the lead, options of tasks and claims, single records, pages of events.

use serde_json::{Value, json};

use crate::support::World;
use crate::support::agent_protocol::started;
use crate::support::loopback_client::{Answer, Http};

impl Http {
    fn about(self, what: &str, path: &str, agent: &str) -> (u16, Value) {
        let answer = self.post(&format!("/resources/{what}"), &json!({ "path": path, "agent_id": agent }));
        (answer.status, answer.json())
    }

    fn patch(self, path: &str, body: &Value) -> Answer {
        let head = [("Content-Type", "application/json")];
        self.send(&format!("PATCH {path}"), &head, body.to_string().as_bytes())
    }

    fn task(self, more: &Value) -> String {
        let mut body = json!({ "title": "t", "assigned_by": "a" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/tasks", &body).json()["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_lead_locks_files_and_everybody_else_is_told_whose_they_are() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    http.announce("b");
    for what in ["lock", "unlock"] {
        let (status, says) = http.about(what, "src/a.ts", "b");
        assert_eq!((status, &says), (403, &json!({ "error": "only the lead may lock a file, which is a" })));
        let body = json!({ "agent_id": "a" });
        let missing = http.post(&format!("/resources/{what}"), &body);
        assert_eq!(missing.json(), json!({ "error": "path and agent_id are required" }));
        assert_eq!(http.about(what, "../x", "a"), (400, json!({ "error": "Invalid path" })));
        let stranger = json!({ "granted": false, "reason": "Agent not registered" });
        assert_eq!(http.about(what, "src/a.ts", "nobody"), (409, stranger));
    }
    assert_eq!(http.about("unlock", "src/a.ts", "a"), (200, json!({ "unlocked": false })));
    for _ in 0..2 {
        assert_eq!(http.about("lock", "src/a.ts", "a"), (200, json!({ "locked": true })));
    }
    let event = http.get("/events?limit=1").json()[0].clone();
    assert_eq!(
        json!([event["agent_id"], event["action"], event["resource"], event["metadata"]]),
        json!(["a", "authority.decision", "src/a.ts", { "type": "resource_locked" }])
    );
    assert_eq!(http.get("/resources/src/a.ts").json()["state"], "locked");
    let says = "Resource locked by lead agent (a)";
    let refused = json!({ "granted": false, "owner": "a", "reason": says });
    let claimed = http.claim("src/a.ts", "b");
    assert_eq!((claimed.status, claimed.json()), (409, refused));
    assert_eq!(http.about("unlock", "src/a.ts", "a"), (200, json!({ "unlocked": true })));
    assert_eq!(http.claim("src/a.ts", "b").status, 200);
    let (status, says) = http.about("lock", "src/a.ts", "a");
    assert_eq!((status, &says["owner"]), (409, &json!("b")), "what somebody works at is not locked: {says}");
}

#[test]
fn who_asks_to_lead_while_another_does_leads_next() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    http.post("/agents/announce", &json!({ "id": "s", "tool": "x", "role": "specialist" }));
    let asked = http.post("/agents/announce", &json!({ "id": "b", "tool": "x", "role": "lead" })).json();
    assert_eq!((&asked["role"], &asked["requested_role"]), (&json!("worker"), &json!("lead")));
    assert!(http.announce("a").get("requested_role").is_none());
    http.delete("/agents/a");
    let leads = http.get("/agents/b").json();
    assert_eq!((&leads["role"], leads.get("requested_role")), (&json!("lead"), None));
    let all = http.get("/agents").json();
    assert_eq!(all.as_array().unwrap().iter().filter(|it| it["role"] == "lead").count(), 1);
}

#[test]
fn a_claim_for_a_task_is_for_its_files_where_that_is_wanted() {
    let world = World::new();
    for (strict, outside) in [(false, 200), (true, 409)] {
        world.configure(&format!("[agent_protocol]\nstrict_scope = {strict}\n"));
        let daemon = world.start();
        let http = Http::agent_protocol(&world);
        http.announce("a");
        let id = http.task(&json!({ "resources": ["src/auth", "./docs/a.md"] }));
        let claim = |path: &str, task: &str| {
            http.post("/resources/claim", &json!({ "path": path, "agent_id": "a", "task_id": task }))
        };
        assert_eq!(claim("src/auth/deep/x.ts", &id).status, 200);
        assert_eq!(claim("docs/a.md", &id).status, 200);
        for (path, task) in [("src/authors.ts", &*id), ("docs/b.md", &id), ("src/auth/y.ts", "task_unknown")]
        {
            let answer = claim(path, task);
            assert_eq!(answer.status, outside, "{path} {task}");
            if strict {
                let says = format!("this file is not one of those that task {task} is about");
                assert_eq!(answer.json(), json!({ "granted": false, "reason": says }));
            }
        }
        assert_eq!(claim("elsewhere.md", "").status, 200, "not for a task");
        assert_eq!(http.claim("nowhere.md", "a").status, 200);
        http.delete("/agents/a");
        daemon.stop();
    }
}

#[test]
fn a_task_waits_for_others_where_that_is_wanted() {
    let world = World::new();
    for honour in [false, true] {
        world.configure(&format!("[agent_protocol]\nhonour_dependencies = {honour}\n"));
        let daemon = world.start();
        let http = Http::agent_protocol(&world);
        let first = http.task(&json!({}));
        let second = http.task(&json!({ "depends_on": [first] }));
        let begin = |id: &str| {
            http.patch(&format!("/tasks/{id}"), &json!({ "status": "in_progress", "agent_id": "a" }))
        };
        let answer = begin(&second);
        assert_eq!(answer.status, if honour { 409 } else { 200 });
        if honour {
            let says = format!("this task depends on {first}, which is not done");
            assert_eq!(answer.json(), json!({ "error": says }));
            assert_eq!(http.get(&format!("/tasks/{second}")).json()["started_at"], Value::Null);
            http.patch(&format!("/tasks/{first}"), &json!({ "status": "done", "agent_id": "a" }));
            assert_eq!(begin(&second).status, 200);
        }
        daemon.stop();
    }
}

#[test]
fn single_records_are_found_and_missing_ones_are_said_to_be() {
    let (_world, _daemon, http) = started();
    http.announce("a");
    let task = http.task(&json!({}));
    let handoff =
        http.post("/handoffs", &json!({ "from_agent": "a", "task_id": task, "summary": "s" })).json();
    let id = handoff["id"].as_str().unwrap();
    assert_eq!(http.get(&format!("/handoffs/{id}")).json(), handoff);
    assert_eq!(http.get("/handoffs").json(), json!([handoff]));
    assert_eq!(json!([http.get(&format!("/tasks/{task}")).json()]), http.get("/tasks").json());
    for (path, says) in [
        ("/tasks/task_nothere1", "Task not found"),
        ("/tasks/%20", "Task not found"),
        ("/handoffs/hoff_nothere", "Handoff not found"),
        ("/handoffs/%00", "Handoff not found"),
        ("/agents/nobody", "Agent not found"),
        ("/resources/none.ts", "Resource not tracked"),
    ] {
        let answer = http.get(path);
        assert_eq!((answer.status, answer.json()), (404, json!({ "error": says })), "{path}");
    }
}

#[test]
fn events_come_in_pages_in_both_directions() {
    let (_world, _daemon, http) = started();
    for n in 0..10 {
        let body = json!({ "agent_id": "a", "action": "my.own", "metadata": n });
        assert_eq!(http.post("/events", &body).status, 201);
    }
    let page = |query: &str| {
        let all = http.get(&format!("/events?action=my.own&{query}")).json();
        let all = all.as_array().unwrap_or_else(|| panic!("{query}: {all}")).clone();
        all.iter().map(|it| (it["metadata"].as_u64().unwrap(), it["id"].clone())).collect::<Vec<_>>()
    };
    let numbers = |query: &str| page(query).into_iter().map(|it| it.0).collect::<Vec<_>>();
    let id = |n: u64| page("").into_iter().find(|it| it.0 == n).unwrap().1.as_str().unwrap().to_owned();
    assert_eq!(numbers("limit=3"), [9, 8, 7]);
    assert_eq!(numbers(&format!("limit=3&before_id={}", id(7))), [6, 5, 4]);
    assert_eq!(
        numbers(&format!("limit=3&since_id={}", id(3))),
        [4, 5, 6],
        "oldest first, nothing passed over"
    );
    assert_eq!(numbers(&format!("since_id={}&before_id={}", id(3), id(6))), [4, 5]);
    assert_eq!(numbers(&format!("since_id={}&wait=25", id(8))), [9], "what is there is not waited for");
    assert_eq!(numbers(&format!("since_id={}&wait=0", id(9))), [0; 0]);
    assert_eq!(numbers("limit=0&wait=25"), [0; 0], "nobody wants any");
    assert_eq!((numbers("limit=-1").len(), numbers("limit=99999999").len()), (10, 10));
    let stream = format!("since_id={}&wait=25&agent_id=b", id(9));
    let waiting = std::thread::spawn(move || http.get(&format!("/events?{stream}")).json());
    http.post("/events", &json!({ "agent_id": "a", "action": "my.own" }));
    http.post("/events", &json!({ "agent_id": "b", "action": "other" }));
    let found = waiting.join().unwrap();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["agent_id"]), (1, &json!("b")));
    for (query, says) in [
        ("before_id=evt_", "before_id is no event's id"),
        ("since_id=0", "since_id is no event's id"),
        ("since_id=a&since_id=b", "since_id was given several times"),
        ("wait=-1", "wait must be a number of seconds"),
        ("wait=1&wait=2", "wait was given several times"),
        ("limit=1&limit=2", "limit must be a number"),
    ] {
        let answer = http.get(&format!("/events?{query}"));
        assert_eq!((answer.status, answer.json()), (400, json!({ "error": says })), "{query}");
    }
    assert_eq!(http.get("/events?agent_id=a&agent_id=b").json(), json!([]), "as the published server has it");
}
