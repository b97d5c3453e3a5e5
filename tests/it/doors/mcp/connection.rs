//! How `provost mcp` reaches its daemon: by connections that it keeps from one call to the next.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::mcp_host::Host;
use crate::support::{World, eventually};

/// The sockets that a process has open, by their numbers in the kernel.
fn sockets(pid: u32) -> BTreeSet<String> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = open.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    links.filter_map(|it| it.to_str().filter(|it| it.starts_with("socket:")).map(str::to_owned)).collect()
}

#[test]
fn a_host_keeps_its_connection_to_the_daemon_from_one_call_to_the_next() {
    let world = World::new();
    let _daemon = world.start();
    let mut host = Host::old(&world, "one");
    let before = sockets(host.pid());
    host.does("locks_list", json!({}));
    let kept: BTreeSet<_> = sockets(host.pid()).difference(&before).cloned().collect();
    assert_eq!(kept.len(), 1, "one connection is there between two calls");
    for _ in 0..20 {
        host.does("locks_list", json!({}));
        let now: BTreeSet<_> = sockets(host.pid()).difference(&before).cloned().collect();
        assert_eq!(now, kept, "it is the same one");
    }
    assert!(!host.fails("lock_release", json!({ "symbol": "a.py" })).is_empty());
    let now: BTreeSet<_> = sockets(host.pid()).difference(&before).cloned().collect();
    assert_eq!(now, kept, "a refusal is an answer as well");
}

#[test]
fn a_kept_connection_is_given_up_with_its_daemon_and_the_next_call_finds_the_new_one() {
    let world = World::new();
    let daemon = world.start();
    let mut host = Host::old(&world, "one");
    host.does("lock_acquire", json!({ "symbol": "a.py" }));
    daemon.stop();
    assert!(host.fails("locks_list", json!({})).contains("no daemon"), "it is told that there is none");
    let _daemon = world.start();
    assert_eq!(host.does("locks_list", json!({}))["locks"][0]["symbol"], "a.py:");
}

#[test]
fn a_call_that_is_given_up_leaves_no_answer_to_the_next_one() {
    let world = World::new();
    let _daemon = world.start();
    let (mut holder, mut host) = (Host::old(&world, "holder"), Host::old(&world, "one"));
    holder.does("lock_acquire", json!({ "symbol": "a.py" }));
    let asked = json!({ "name": "lock_acquire", "arguments": { "symbol": "a.py", "wait_s": 45 } });
    let waiting = host.begin("tools/call", asked);
    eventually("it waits", || {
        let said = world.command(&["lock", "list", "--json"]).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("\"one\"")
    });
    host.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting } }),
    );
    for _ in 0..5 {
        let locks = host.does("locks_list", json!({}));
        assert_eq!(locks["locks"][0]["holder"], "holder");
    }
    eventually("its wait has ended", || {
        let said = world.command(&["lock", "list", "--json"]).output().unwrap();
        !String::from_utf8_lossy(&said.stdout).contains("\"one\"")
    });
}
