//! Work trees at different commits on several machines, at the doors of wit and of the own API: locks are by path in the repository, what is written is
//! held within a work tree and told across them, and contracts bind on branches where the settings say so.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::tasks_of_hosts::until;
use crate::support::machines::{Machines, git};
use crate::support::own_api::own;
use crate::support::wit_client::Wit;
use crate::support::wit_world::{kinds, lock};
use crate::support::{Daemon, World};

const LOGIN: &str = "export function login(a: string): string { return a }\n";
const LOGOUT: &str = "export function logout(b: string): string { return b }\n";

/// Two machines: the first one is on `trunk`; the second one is on `feature`, where everything is further down, and has a linked work tree on `trunk`.
struct Trees {
    machines: Machines,
    linked: PathBuf,
    _daemons: Vec<Daemon>,
}

impl Trees {
    fn with(more: &str) -> Self {
        let machines = Machines::joined(2);
        let (a, b) = (&machines.all[0], &machines.all[1]);
        a.write("src/auth.ts", &format!("{LOGIN}\n{LOGOUT}"));
        git(a, &["checkout", "-q", "-b", "trunk"]);
        git(a, &["add", "."]);
        git(a, &["commit", "-q", "-m", "code"]);
        let from = a.repo().display().to_string();
        git(b, &["fetch", "-q", &from, "trunk:trunk"]);
        git(b, &["checkout", "-q", "-b", "feature", "trunk"]);
        b.write("src/auth.ts", &format!("// Further down.\n\n\n{LOGIN}\n{LOGOUT}"));
        git(b, &["commit", "-q", "-a", "-m", "down"]);
        let linked = b.path("linked");
        git(b, &["worktree", "add", "-q", &linked.display().to_string(), "trunk"]);
        for world in [a, b] {
            machines.configure_with(world, more);
            std::fs::create_dir(world.repo().join(".wit")).unwrap();
        }
        let daemons = machines.start();
        let trees = Self { machines, linked, _daemons: daemons };
        for wit in trees.wits() {
            until("its door answers", || wit.answers());
        }
        trees
    }

    fn hosts(&self) -> (&World, &World) {
        (&self.machines.all[0], &self.machines.all[1])
    }

    /// The doors of wit: the first machine's, the second one's, and that in the second one's linked work tree.
    fn wits(&self) -> [Wit; 3] {
        let (a, b) = self.hosts();
        [Wit::of(a), Wit::of(b), Wit::in_tree(&self.linked)]
    }
}

/// The own API's answer to an agent.
fn asked(world: &World, agent: &str, path: &str, body: &Value) -> (u16, Value) {
    own(world, ("POST", path), &[("x-provost-agent", agent)], body)
}

/// An agent is about to write `login` in a work tree: who is in its way, and who has written it elsewhere.
fn writes(world: &World, agent: &str, tree: Option<&PathBuf>) -> (Vec<String>, Vec<String>) {
    let mut body = json!({ "edits": [{ "path": "src/auth.ts", "symbol": "login" }] });
    if let Some(tree) = tree {
        body["worktree"] = json!(tree);
    }
    let (status, said) = asked(world, agent, "/hold-edits", &body);
    assert_eq!(status, 200, "{said}");
    let names = |list: &Value, holder: fn(&Value) -> &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|it| holder(it).as_str().unwrap_or_else(|| panic!("{list}")).to_owned()).collect()
    };
    (names(&said["blocked"], |it| &it["lock"]["holder"]), names(&said["written"], |it| &it["holder"]))
}

#[test]
fn a_lock_is_by_path_at_each_door_of_each_machine_whatever_is_checked_out() {
    let trees = Trees::with("");
    let ((a, b), [at_a, at_b, linked]) = (trees.hosts(), trees.wits());
    let first = at_a.ask("lock.acquire", lock("src/auth.ts:login", "anna"));
    for wit in [&at_b, &linked] {
        until("the other machine has it", || {
            !wit.ask("lock.query", json!({})).as_array().unwrap().is_empty()
        });
        let refused = wit.refused("lock.acquire", lock("./src/auth.ts:login", "bert"));
        assert_eq!(
            (&refused["message"], &refused["data"]["heldBy"]),
            (&json!("LOCK_CONFLICT"), &json!("anna"))
        );
    }
    let (status, said) = asked(b, "bob", "/lock", &json!({ "symbol": "src/auth.ts:login" }));
    assert!(status == 409 && said.to_string().contains("anna"), "{status}: {said}");
    // What is beside it is free, at each door.
    assert_eq!(asked(b, "bob", "/lock", &json!({ "symbol": "src/auth.ts:logout" })).0, 200);
    until("the first machine has it", || at_a.ask("lock.query", json!({})).as_array().unwrap().len() == 2);
    assert_eq!(at_a.token("lock.acquire", lock("src/auth.ts:logout", "anna")), "LOCK_CONFLICT");

    // A wait on one machine ends with the release on the other one.
    let waits = linked.clone();
    let waiting = std::thread::spawn(move || {
        let params = json!({ "symbolPath": "src/auth.ts:login", "sessionId": "bert", "waitMs": 30_000 });
        waits.ask("lock.acquire", params)
    });
    until("it waits", || {
        at_a.refused("lock.acquire", lock("src/auth.ts:login", "carl"))["data"]["waiting"] == 1
    });
    at_a.ask("lock.release", lock("src/auth.ts:login", "anna"));
    let second = waiting.join().unwrap();
    assert!(second["fence"].as_u64() > first["fence"].as_u64(), "{second}");
    let (status, said) = asked(a, "ada", "/lock", &json!({ "symbol": "src/auth.ts:login" }));
    assert!(status == 409 && said.to_string().contains("bert"), "{status}: {said}");

    // What one announces, the other one hears of.
    at_a.ask(
        "intent.declare",
        json!({ "sessionId": "anna", "description": "rework", "files": ["src/auth.ts"] }),
    );
    let overlap = || {
        at_b.ask(
            "intent.declare",
            json!({ "sessionId": "bert", "description": "too", "files": ["src/auth.ts"] }),
        )
    };
    until("the overlap is told", || {
        let said = overlap();
        kinds(&said["conflicts"]["items"]).contains(&"INTENT_OVERLAP") && said.to_string().contains("anna")
    });
    trees.machines.check();
}

#[test]
fn what_is_written_is_held_within_a_work_tree_and_told_across_machines() {
    let trees = Trees::with("");
    let ((a, b), linked) = (trees.hosts(), Some(&trees.linked));
    let nobody: Vec<String> = Vec::new();
    assert_eq!(writes(a, "ada", None), (nobody.clone(), nobody.clone()));
    // Another work tree, on the same branch and on another one: told, not held.
    until("the other machine has it", || writes(b, "bob", None).1 == ["ada"]);
    let (blocked, mut written) = writes(b, "ben", linked);
    written.sort();
    assert_eq!((blocked, written), (nobody.clone(), vec!["ada".to_owned(), "bob".to_owned()]));
    // Within each of them, one agent has it.
    assert_eq!(writes(b, "cy", None).0, ["bob"]);
    assert_eq!(writes(b, "cy", linked).0, ["ben"]);
    until("the first machine has both", || writes(a, "ada", None).1.len() == 2);
    assert_eq!(writes(a, "dan", None).0, ["ada"]);
}

#[test]
fn with_auto_across_what_is_written_is_held_in_all_work_trees_of_all_machines() {
    let trees = Trees::with("[coordination]\nauto_across = \"hold\"\n");
    let ((a, b), linked) = (trees.hosts(), Some(&trees.linked));
    assert_eq!(writes(a, "ada", None), (Vec::new(), Vec::new()));
    let at_b = &trees.wits()[1];
    until("the other machine has it", || !at_b.ask("lock.query", json!({})).as_array().unwrap().is_empty());
    assert_eq!(writes(b, "bob", None).0, ["ada"]);
    assert_eq!(writes(b, "bob", linked).0, ["ada"]);
    assert_eq!(at_b.token("lock.acquire", lock("src/auth.ts:login", "bert")), "LOCK_CONFLICT");
    trees.machines.check();
}

/// The faults of `login` with another signature, as a door of wit finds them.
fn faults(wit: &Wit) -> Vec<Value> {
    let changed = format!("{}\n{LOGOUT}", LOGIN.replace("a: string", "a: number"));
    let files = json!({ "files": [{ "path": "src/auth.ts", "content": changed }] });
    let found = wit.ask("check-contracts", files)["violations"].clone();
    found.as_array().unwrap().iter().map(|it| it["fault"].clone()).collect()
}

/// A contract that the first machine has offered and the second one has accepted.
fn agreed(trees: &Trees) -> Value {
    let [at_a, at_b, _] = trees.wits();
    let offered = at_a.ask("contract.propose", lock("src/auth.ts:login", "anna"));
    let id = &offered["contractId"];
    until("the other machine has it", || {
        at_b.ask("contract.query", json!({})).to_string().contains(id.as_str().unwrap())
    });
    at_b.ask("contract.respond", json!({ "contractId": id, "sessionId": "bert", "accept": true }));
    until("the first machine hears so", || at_a.ask("contract.query", json!({}))[0]["status"] == "accepted");
    id.clone()
}

#[test]
fn a_contract_binds_on_all_machines_and_branches() {
    let trees = Trees::with("");
    agreed(&trees);
    for wit in trees.wits() {
        assert_eq!(faults(&wit), ["changed"]);
    }
    trees.machines.check();
}

#[test]
fn a_contract_by_branch_binds_where_that_branch_is_checked_out_on_any_machine() {
    let trees = Trees::with("[coordination]\ncontracts = \"branch\"\n");
    agreed(&trees);
    let [at_a, at_b, linked] = trees.wits();
    assert_eq!(faults(&at_a), ["changed"]);
    assert!(faults(&at_b).is_empty(), "it is on another branch");
    assert_eq!(faults(&linked), ["changed"], "it is on the contract's branch");
    // The branch counts that is checked out now.
    git(trees.hosts().1, &["checkout", "-q", "--detach"]);
    assert_eq!(faults(&at_b), ["changed"], "a work tree on no branch keeps all");
    trees.machines.check();
}
