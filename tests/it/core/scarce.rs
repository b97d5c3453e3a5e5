//! What a daemon does where there is little: few descriptors, threads or address space, or a store that cannot be read.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};
use std::time::Duration;

use provost::auth::Rejected;
use provost::auth::peer::PeerId;
use provost::base::Json;
use provost::domain::Refusal;
use provost::domain::command::Record;
use provost::engine::{SystemClock, start};
use provost::store::Retention;
use provost::transport::accept::AllDoors;
use provost_test_equipment::MemoryStore;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::json;

use crate::support::mcp_host::Host;
use crate::support::processes::{CHILD, this_test};
use crate::support::script::{ByWord, host};
use crate::support::storm::settings;
use crate::support::wit_client::{Wit, world};
use crate::support::{Connection, Reply, UP, World, eventually, provost};

/// The product with limits of `ulimit`'s, ready to be given arguments.
fn limited(world: &World, limits: &str, args: &[&str]) -> Command {
    let like = world.command(args);
    let mut command = Command::new("/bin/bash");
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), provost().to_str().unwrap()]).args(args);
    command.current_dir(world.repo()).env_clear().stdin(std::process::Stdio::null());
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Opens as many descriptors as there are.
fn fill() -> Vec<OwnedFd> {
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).map(OwnedFd::from).collect()
}

#[test]
fn a_peer_that_could_not_be_looked_at_is_not_known_and_is_known_afterwards() {
    if std::env::var_os(CHILD).is_none() {
        let output = this_test(
            "core::scarce::a_peer_that_could_not_be_looked_at_is_not_known_and_is_known_afterwards",
        )
        .output()
        .unwrap();
        assert!(output.status.success() && text(&output).contains("1 passed"), "{}", text(&output));
        return;
    }
    let (ours, _theirs) = UnixStream::pair().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) }).unwrap();
    let mut full = fill();
    assert_eq!(PeerId::of(&ours).map(drop), Err(Rejected::Busy));
    // One for the process, and none to see where it is.
    drop(full.pop());
    let peer = PeerId::of(&ours).unwrap();
    assert_eq!(peer.check_not_jailed(), Err(Rejected::Busy));
    assert_eq!(peer.check_jailed(), Err(Rejected::Busy));
    drop(full);
    assert_eq!(peer.check_not_jailed(), Ok(()));
    assert_eq!(peer.check_jailed(), Err(Rejected::NotJailed));
}

#[test]
fn connections_never_take_what_the_daemon_keeps_for_itself() {
    for limit in [64_u64, 256, 512, 1_024, 4_096, 20_000, 1 << 20, u64::MAX] {
        let taken = 2 * u64::try_from(AllDoors::of_a_process_with(limit).max()).unwrap();
        let kept = limit.saturating_sub(taken);
        assert!(kept >= 256.min(limit / 2) && taken >= limit / 4, "{limit}: {taken} and {kept}");
    }
}

#[test]
fn where_descriptors_are_few_the_doors_leave_some_for_the_daemon() {
    let world = world();
    let mut daemon = world.start_as(limited(&world, "ulimit -n 320", UP));
    let wit = Wit::of(&world);
    eventually("the wit door", || wit.answers());
    let mut crowd: Vec<Connection> = Vec::new();
    for _ in 0..200 {
        for socket in [&daemon.socket, &wit.socket, &world.own_socket()] {
            // What is too much is closed again, or waits.
            crowd.extend(Connection::to(socket));
        }
    }
    // The number is put back by whoever looks after the socket: it was looked at in the crowd.
    std::fs::remove_file(world.repo().join(".wit/daemon.pid")).unwrap();
    eventually("the number", || world.repo().join(".wit/daemon.pid").exists());
    assert!(wit.answers(), "{}", world.log());
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "echo fine", json!({}));
    reply.ack();
    let result = client.result_of(&task);
    assert_eq!(result["status"], "completed", "{result}\n{}", world.log());
    assert!(world.command(&["status"]).output().unwrap().status.success());
    drop(crowd);
    let log = world.log();
    daemon.kill();
    for wrong in ["os error 24", "another pid namespace", "placing it again", "panicked"] {
        assert!(!log.contains(wrong), "{wrong}: {log}");
    }
}

#[test]
fn idle_connections_at_the_wit_door_make_room_for_who_asks() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let world = world();
    let _daemon = world.start();
    let wit = Wit::of(&world);
    eventually("the wit door", || wit.answers());
    let crowd: Vec<Connection> = (0..2_100).filter_map(|_| Connection::to(&wit.socket).ok()).collect();
    // They stay: nobody leaves a place for the next one.
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut connection = wit.connect();
        let ping = json!({ "jsonrpc": "2.0", "witVersion": "1", "id": "it", "method": "ping" }).to_string();
        let request = crate::support::wit_client::request("POST /rpc", &[], ping.as_bytes());
        connection.write_all(&request).unwrap();
        let answer = crate::support::wit_client::Answer::read(&mut connection, false);
        assert_eq!(answer.unwrap().status, 200, "beside {}: {}", crowd.len(), world.log());
        held.push(connection);
    }
}

#[test]
fn limits_that_are_too_low_are_told_in_a_sentence() {
    let world = World::new();
    for (limits, says) in [("ulimit -v 300000", "ulimit -v"), ("ulimit -u 3", "ulimit -u")] {
        let output = limited(&world, limits, UP).output().unwrap();
        let said = text(&output);
        assert!(!output.status.success() && said.contains(says), "{limits}: {said}");
        assert!(!said.contains("panicked"), "{limits}: {said}");
    }
    // Enough is enough.
    let _daemon = world.start_as(limited(&world, "ulimit -v 1200000", UP));
}

#[tokio::test]
async fn a_store_that_cannot_be_read_any_more_ends_the_engine_and_is_named() {
    let store = MemoryStore::new();
    let control = store.control();
    let retention = Retention { tasks: Duration::MAX, tasks_most: u32::MAX, events: Duration::MAX };
    let judge = Box::new(ByWord { strict: false });
    let started = start(Box::new(store), judge, settings(), Box::new(SystemClock), retention).unwrap();
    let nothing = Json::parse("{}").unwrap();
    let note = || Record { what: "test.note".into(), subject: "it".into(), details: nothing.clone() };
    started.engine.submit(&host(), note()).await.unwrap();
    control.fail_commits(true);
    control.fail_reads(true);
    let said = started.engine.submit(&host(), note()).await;
    assert!(matches!(said, Err(Refusal::Unavailable { .. })), "{said:?}");
    tokio::time::timeout(Duration::from_secs(20), started.ended).await.unwrap().unwrap_err();
    let lost = started.thread.join().unwrap().expect("a reason");
    assert!(lost.to_string().contains("the store cannot be read any more"), "{lost}");
    assert!(lost.to_string().contains("provost doctor"), "{lost}");
    let said = started.engine.submit(&host(), note()).await;
    assert!(matches!(said, Err(Refusal::Unavailable { .. })), "nothing is said afterwards: {said:?}");
}

/// Gives its user twelve instances of inotify, starts the product, and says on request how many are left.
const COUNTER: &str = "
import ctypes, os, signal, subprocess, sys, time
open('/proc/sys/user/max_inotify_instances', 'w').write('12')
libc = ctypes.CDLL(None)
daemon = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: libc.prctl(1, signal.SIGTERM))
while daemon.poll() is None:
    time.sleep(0.01)
    if not os.path.exists(sys.argv[1] + '/ask'): continue
    os.remove(sys.argv[1] + '/ask')
    got = []
    while (one := libc.inotify_init1(0)) >= 0: got.append(one)
    [os.close(one) for one in got]
    open(sys.argv[1] + '/.answer', 'w').write(str(len(got)))
    os.rename(sys.argv[1] + '/.answer', sys.argv[1] + '/answer')
";

#[test]
fn watched_tasks_share_what_the_kernel_gives_a_user_for_watching() {
    let world = World::new();
    let like = world.command(UP);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "/usr/bin/python3", "-c", COUNTER]);
    command.arg(world.home()).arg(provost()).args(UP).current_dir(world.repo()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let daemon = world.start_as(command);
    let left = || -> usize {
        std::fs::write(world.home().join("ask"), "").unwrap();
        eventually("an answer", || world.home().join("answer").exists());
        let answer = std::fs::read_to_string(world.home().join("answer")).unwrap();
        std::fs::remove_file(world.home().join("answer")).unwrap();
        answer.parse().unwrap()
    };
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    let mut counted = Vec::new();
    for round in 0..5 {
        let watched = json!({ "watch_patterns": ["*.rs"], "timeout": 600 });
        let (task, reply) = client.delegate("worker:code", "look", watched);
        reply.ack();
        eventually("the work", || matches!(worker.say("HEARTBEAT", json!({})), Reply::Message(_)));
        // It is watched once a change is told of. Each of them is told of all files.
        let told = (0..200).any(|number| {
            std::fs::write(world.repo().join(format!("{round}-{number}.rs")), "").unwrap();
            match client.poll() {
                Reply::Message(message) => message["payload"]["task_id"] == task,
                _ => false,
            }
        });
        assert!(told, "{}", world.log());
        counted.push(left());
    }
    assert_eq!(counted, [counted[0]; 5], "so many instances were left after each task");
}

#[test]
fn a_daemon_out_of_descriptors_takes_nothing_from_agents_that_are_there() {
    let world = World::new();
    let daemon = world.start();
    let mut host = Host::old(&world, "ada");
    host.does("claim_acquire", json!({ "path": "a.txt" }));
    host.does("intent_declare", json!({ "description": "tidy", "files": ["a.txt"] }));
    let held = |host: &mut Host| {
        let rows = |said: serde_json::Value| said["rows"].as_array().unwrap().len();
        (rows(host.does("claims", json!({}))), rows(host.does("intents_list", json!({}))))
    };
    assert_eq!(held(&mut host), (1, 1));
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).unwrap());
    let few = Rlimit { current: Some(3), ..getrlimit(Resource::Nofile) };
    let before = prlimit(pid, Resource::Nofile, few).unwrap();
    // tidy: sleeps because nobody sees the daemon's look; this is longer than from one to the next but one
    std::thread::sleep(Duration::from_millis(2_500));
    prlimit(pid, Resource::Nofile, before).unwrap();
    assert_eq!(held(&mut host), (1, 1), "{}", world.log());
    drop(host);
    let other = std::cell::RefCell::new(Host::old(&world, "bob"));
    eventually("what it had is given back with its end", || held(&mut other.borrow_mut()) == (0, 0));
}
