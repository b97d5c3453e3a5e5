//! The same intruder as a worker of a real daemon: delegated, allowed, confined and heard as any other.

use std::process::{Command, Stdio};

use serde_json::json;

use super::intruder::{Facts, Saw};
use super::roles::INTRUDER;
use super::table::{self, Held};
use super::world::outcomes;
use crate::support::{Client, Daemon, World};
use provost::jail::Tier;

/// What concerns the daemon itself. Signals that only their receiver can report are not among them.
const TRIED: [&str; 10] = [
    "fd.",
    "env.",
    "fs.proc_daemon",
    "proc.",
    "sig.kill_daemon",
    "sig.kill_supervisor",
    "sig.pidfd_send",
    "sig.tgkill",
    "sig.sigqueue",
    "ipc.daemon_socket",
];

fn facts(world: &World, daemon: &Daemon, socket: std::path::PathBuf) -> Facts {
    Facts {
        daemon: daemon.pid() as i32,
        workspace: world.repo(),
        outside: world.path("outside"),
        secret: world.home().join("secret"),
        state: world.state_dir(),
        toolchain: world.path("tools"),
        tcp: 0,
        tcp6: 0,
        udp: 0,
        stream: socket,
        datagram: world.own_socket(),
        abstract_name: "none".into(),
        memory_key: 0,
        queue: "none".into(),
        shared: world.path("none"),
        network: "none".into(),
        users: "none".into(),
        forks: 0,
        only: TRIED.map(String::from).to_vec(),
    }
}

fn delegated(client: &Client, approver: &Client, worker: &str, goal: &str) -> String {
    let (task, reply) = client.delegate(worker, goal, json!({}));
    if reply.ack()["approval"] == "required" {
        let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
        let id = question["msg_id"].as_str().unwrap();
        approver.say_to("APPROVAL_DECISION", id, "orchestrator", json!({ "status": "granted" })).ack();
    }
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}");
    result["artifacts"]["details"]["stdout"].as_str().unwrap().to_owned()
}

#[test]
fn a_worker_reaches_neither_the_daemon_nor_its_sockets() {
    let world = World::new();
    let program = std::env::current_exe().unwrap();
    let worker = |name: &str, tier: &str| {
        format!(
            "[workers.{name}]\ntype = \"cli\"\nbinary = \"{}\"\nargs = [\"{INTRUDER}\", \"{{goal}}\"]\n\
             parse_mode = \"text\"\ntier = \"{tier}\"\n",
            program.display()
        )
    };
    world.configure(&(worker("inner", "ns") + &worker("thin", "ll")));
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    for socket in [world.own_socket(), daemon.socket.clone()] {
        let goal = serde_json::to_string(&facts(&world, &daemon, socket)).unwrap();
        for (name, tier) in [("inner", Tier::Ns), ("thin", Tier::Ll)] {
            let seen = outcomes(&delegated(&client, &approver, name, &goal));
            assert!(seen.len() > 25, "{seen:?}");
            for row in table::rows() {
                let Some((saw, what)) = seen.get(&row.name) else { continue };
                let open = matches!(row.held(tier), Held::Nothing(_));
                assert!(open || *saw == Saw::Shut, "tier {tier:?}: {}: {saw:?}, {what}", row.name);
            }
        }
        // Without a jail the socket and the process are there; what the daemon holds in memory it keeps to itself.
        let said = Command::new(&program).args([INTRUDER, &goal]).stdin(Stdio::null()).output().unwrap();
        let seen = outcomes(&String::from_utf8_lossy(&said.stdout));
        for name in ["ipc.daemon_socket", "sig.kill_daemon", "proc.renice_daemon"] {
            assert_eq!(seen[name].0, Saw::Open, "{name}: {seen:?}");
        }
        for name in ["proc.mem_daemon", "proc.ptrace_daemon", "env.daemon_environ", "proc.pidfd_getfd"] {
            assert_eq!(seen[name].0, Saw::Shut, "{name}: {seen:?}");
        }
    }
    assert_eq!(client.say("HEARTBEAT", json!({})), crate::support::Reply::Nothing, "it still answers");
}
