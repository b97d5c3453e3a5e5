//! A daemon that lacks something: few descriptors, threads or address space, or a store that cannot be read.

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

use crate::support::broker_client::status;
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::processes::{CHILD, this_test};
use crate::support::script::{ByWord, host};
use crate::support::storm::settings;
use crate::support::waits::within;
use crate::support::wit_client::{Wit, world};
use crate::support::{Client, Connection, Daemon, Reply, UP, World, eventually, provost};

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
    assert!(matches!(said, Err(Refusal::Stopping)), "nothing is said afterwards: {said:?}");
}

/// Gives its user so many instances of inotify, starts the product, and on request runs a command beside it,
/// and says how many instances are left, and the watches of the daemon, one to a line.
const COUNTER: &str = "
import ctypes, os, signal, subprocess, sys, time
open('/proc/sys/user/max_inotify_instances', 'w').write(sys.argv[2])
libc = ctypes.CDLL(None)
daemon = subprocess.Popen(sys.argv[3:], preexec_fn=lambda: libc.prctl(1, signal.SIGTERM))
def watches():
    at = '/proc/%d/fdinfo' % daemon.pid
    for fd in os.listdir(at):
        try: lines = open(at + '/' + fd).read().splitlines()
        except FileNotFoundError: continue
        yield from (line.split(' mask')[0].split(' ', 2)[2] for line in lines if line.startswith('inotify wd:'))
while daemon.poll() is None:
    time.sleep(0.01)
    if not os.path.exists(sys.argv[1] + '/ask'): continue
    subprocess.run(['/bin/sh', '-c', open(sys.argv[1] + '/ask').read()], stdout=subprocess.DEVNULL, check=True)
    os.remove(sys.argv[1] + '/ask')
    got = []
    while (one := libc.inotify_init1(0)) >= 0: got.append(one)
    [os.close(one) for one in got]
    open(sys.argv[1] + '/.answer', 'w').write('\\n'.join([str(len(got))] + sorted(watches())))
    os.rename(sys.argv[1] + '/.answer', sys.argv[1] + '/answer')
";

/// A daemon whose user has this many instances of inotify.
fn with_instances(world: &World, instances: usize) -> Daemon {
    let like = world.command(UP);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "/usr/bin/python3", "-c", COUNTER]);
    command.arg(world.home()).arg(instances.to_string()).arg(provost()).args(UP);
    command.current_dir(world.repo()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    world.start_as(command)
}

/// How many instances its user has left, and the folders that the daemon has watched, each as often as it is
/// watched.
fn counted(world: &World) -> (usize, Vec<String>) {
    counted_after(world, "")
}

/// The same after a command, which the daemon can examine: it sees no processes in the namespace around its own.
fn counted_after(world: &World, command: &str) -> (usize, Vec<String>) {
    world.put(&world.home().join("ask"), command);
    eventually("an answer", || world.home().join("answer").exists());
    let answer = std::fs::read_to_string(world.home().join("answer")).unwrap();
    std::fs::remove_file(world.home().join("answer")).unwrap();
    let mut lines = answer.lines().map(str::to_owned);
    let left = lines.next().unwrap().parse().unwrap();
    (left, lines.collect())
}

/// An agent of the broker's, whose work tree is then watched.
fn publish_beside(world: &World, agent: &str) {
    let said = status(agent, "working", &[]);
    counted_after(world, &format!("exec {} broker publish '{said}'", provost().display()));
}

/// Checks whether a new task that watches files gets changes of them; all such tasks get each change.
fn is_told_of_files(world: &World, (client, worker): (&Client, &Client), round: usize) -> bool {
    let watched = json!({ "watch_patterns": ["*.rs"], "timeout": 600 });
    let (task, reply) = client.delegate("worker:code", "look", watched);
    reply.ack();
    eventually("the work", || matches!(worker.say("HEARTBEAT", json!({})), Reply::Message(_)));
    (0..200).any(|number| {
        std::fs::write(world.repo().join(format!("{round}-{number}.rs")), "").unwrap();
        match client.poll() {
            Reply::Message(message) => message["payload"]["task_id"] == task,
            _ => false,
        }
    })
}

#[test]
fn all_parts_of_a_daemon_share_one_instance_of_inotify_and_one_watch_of_each_folder() {
    let world = World::new();
    for path in ["src/a/one.rs", "src/b/two.rs", "docs/CODEOWNERS", ".github/note"] {
        world.put(&world.repo().join(path), "");
    }
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "one"]);
    world.git(&["checkout", "-qb", "feat/x"]);
    let daemon = with_instances(&world, 12);
    let broker = Http::broker(&world);
    let told = |file: &str| broker.get("/log?since=0").json().to_string().contains(file);
    // The root, `src` and the two in it, `docs`, `.github`, `.git`, and the folder with the user's passkeys.
    eventually("what the index, the owners of code, the list of work trees and the passkeys watch", || {
        counted(&world).1.len() == 8
    });
    let (left, before) = counted(&world);
    assert_eq!(left, 11);
    let folders: std::collections::BTreeSet<_> = before.iter().collect();
    assert_eq!(folders.len(), before.len(), "each folder once: {before:?}");
    publish_beside(&world, "feat-x");
    world.put(&world.repo().join("src/b/three.rs"), "x");
    eventually("the work tree is watched", || told("src/b/three.rs"));
    assert_eq!(counted(&world), (left, before.clone()), "with the work tree of an agent");
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    for round in 0..3 {
        assert!(is_told_of_files(&world, (&client, &worker), round), "{}", world.log());
        assert_eq!(counted(&world), (left, before.clone()), "with {} watched tasks", round + 1);
    }
    // A folder that comes is watched once, too, and one that goes no more.
    world.put(&world.repo().join("src/c/four.rs"), "x");
    eventually("the new folder is told of", || told("src/c/four.rs"));
    eventually("it is watched once", || counted(&world).1.len() == before.len() + 1);
    std::fs::remove_dir_all(world.repo().join("src/c")).unwrap();
    eventually("it is watched no more", || counted(&world) == (left, before.clone()));
}

#[test]
fn where_inotify_has_no_room_files_are_looked_at_at_intervals() {
    let world = World::new();
    world.git(&["checkout", "-qb", "feat/x"]);
    let daemon = with_instances(&world, 0);
    let (client, worker) = (world.client(&daemon, "orch:a"), world.client(&daemon, "worker:code"));
    assert!(is_told_of_files(&world, (&client, &worker), 0), "{}", world.log());
    let broker = Http::broker(&world);
    publish_beside(&world, "feat-x");
    world.put(&world.repo().join("new.txt"), "x");
    let told = || broker.get("/log?since=0").json().to_string().contains("new.txt");
    assert!(within(Duration::from_secs(40), told), "{}", world.log());
    assert!(world.log().contains("fs.inotify.max_user_instances"), "{}", world.log());
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
