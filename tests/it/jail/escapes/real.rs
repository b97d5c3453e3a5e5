//! The same intruder as a worker of a real daemon: delegated, allowed, confined and heard as any other.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::intruder::{Facts, Saw};
use super::kernel;
use super::roles::INTRUDER;
use super::stand_in::link;
use super::table::{self, Held};
use super::world::outcomes;
use crate::support::{Client, Daemon, World};
use provost::jail::Tier;

/// Everything but two signals that only their receiver can report, and what uses up the host.
const IN_JAIL: [&str; 18] = [
    "fs.",
    "git.",
    "cfg.",
    "daemon.",
    "fd.",
    "env.",
    "proc.",
    "sig.kill_daemon",
    "sig.kill_supervisor",
    "sig.pidfd_send",
    "sig.tgkill",
    "sig.sigqueue",
    "net.",
    "ipc.",
    "priv.",
    "ns.",
    "kern.",
    "tty.",
];

/// Without a jail: what concerns the daemon itself.
const AT_LARGE: [&str; 4] = ["env.daemon", "proc.", "sig.kill_daemon", "ipc.daemon_socket"];

fn facts(world: &World, daemon: &Daemon, socket: &Path, only: &[&str]) -> Facts {
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
        stream: socket.into(),
        datagram: world.own_socket(),
        abstract_name: "none".into(),
        memory_key: 0x7072_ffff,
        queue: "none".into(),
        shared: world.path("none"),
        network: link("/proc/self/ns/net"),
        users: link("/proc/self/ns/user"),
        terminals: kernel::terminals().unwrap(),
        forks: 0,
        only: only.iter().map(|only| (*only).to_owned()).collect(),
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
    world.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    world.write("nested/.git/config", "[core]\n");
    let daemon = world.start();
    let (client, approver) = (world.client(&daemon, "orch:a"), world.approver(&daemon));
    for socket in [world.own_socket(), daemon.socket.clone()] {
        // Tier `ll` keeps nobody from the index, and with one that cannot be read no worker is started.
        let _not_there = std::fs::remove_file(world.repo().join(".git/index"));
        let goal = serde_json::to_string(&facts(&world, &daemon, &socket, &IN_JAIL)).unwrap();
        for (name, tier) in [("inner", Tier::Ns), ("thin", Tier::Ll)] {
            let seen = outcomes(&delegated(&client, &approver, name, &goal));
            assert!(seen.len() > 130, "{seen:?}");
            for row in table::rows() {
                let Some((saw, what)) = seen.get(&row.name) else { continue };
                let open =
                    matches!(row.held(tier), Held::Nothing(_)) || is_the_own_door(tier, &row.name, what);
                assert!(open || *saw == Saw::Shut, "tier {tier:?}: {}: {saw:?}, {what}", row.name);
            }
        }
        // Without a jail the socket and the process are there; what the daemon holds in memory it keeps to
        // itself.
        let facts = serde_json::to_string(&facts(&world, &daemon, &socket, &AT_LARGE)).unwrap();
        let said = Command::new(&program).args([INTRUDER, &facts]).stdin(Stdio::null()).output().unwrap();
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

/// In tier `ll` a worker inherits one connection, to a door where it is nobody but itself; the tests of that
/// door are in `worker_door.rs`.
fn is_the_own_door(tier: Tier, name: &str, what: &str) -> bool {
    tier == Tier::Ll && name == "fd.inherited" && what.contains(":socket:") && !what.contains(' ')
}
