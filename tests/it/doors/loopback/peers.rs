//! The callers that the doors over loopback HTTP admit, by the owner of the socket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use provost::auth::Rejected;
use provost::auth::loopback::LoopbackPeer;
use serde_json::json;

use crate::support::a6s_client::{self, OPEN};
use crate::support::loopback_client::{Answer, Http};
use crate::support::{Daemon, World, eventually};

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A connection: the peer's end, ours, and their addresses, the peer's first.
fn pair(at: &str) -> (TcpStream, TcpStream, SocketAddr, SocketAddr) {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, peer) = listener.accept().unwrap();
    let us = ours.local_addr().unwrap();
    (theirs, ours, peer, us)
}

/// The peer as the kernel knows it once it has caught up.
fn until(peer: SocketAddr, us: SocketAddr, wanted: impl Fn(&Result<LoopbackPeer, Rejected>) -> bool) {
    eventually("what the kernel should say", || wanted(&LoopbackPeer::of(peer, us)));
}

#[test]
fn a_peer_is_its_user_and_its_socket_in_both_families() {
    for address in ["127.0.0.1", "::1"] {
        let (_theirs, _ours, peer, door) = pair(address);
        let found = LoopbackPeer::of(peer, door).unwrap();
        assert_eq!(found.uid, us());
        assert_ne!(found.inode, 0);
        assert_eq!(found.check_same_user(us()), Ok(found));
        assert_eq!(found.check_same_user(us() + 1), Err(Rejected::OtherUser));
        // Of two connections each is told by all four of its numbers.
        let (_theirs, _ours, other, other_door) = pair(address);
        assert_ne!(LoopbackPeer::of(other, other_door).unwrap().inode, found.inode);
        assert_eq!(LoopbackPeer::of(peer, other_door), Err(Rejected::Gone));
        assert_eq!(
            LoopbackPeer::of(door, peer).map(|it| it.inode == found.inode),
            Ok(false),
            "its other end"
        );
    }
}

#[test]
fn a_socket_of_one_family_that_connects_by_the_other_is_known_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _theirs = TcpStream::connect(("::ffff:127.0.0.1", port)).unwrap();
    let (ours, peer) = listener.accept().unwrap();
    assert_eq!(LoopbackPeer::of(peer, ours.local_addr().unwrap()).unwrap().uid, us());
}

#[test]
fn who_has_closed_or_half_closed_is_nobody() {
    // The peer has closed, and waits for our end: the kernel calls that socket the superuser's.
    let (theirs, ours, peer, door) = pair("127.0.0.1");
    drop(theirs);
    until(peer, door, |it| *it == Err(Rejected::Gone));
    // Both have: the peer's end waits to be forgotten.
    drop(ours);
    until(peer, door, |it| *it == Err(Rejected::Gone));
    // The peer has said all that it will.
    let (theirs, _ours, peer, door) = pair("127.0.0.1");
    theirs.shutdown(Shutdown::Write).unwrap();
    until(peer, door, |it| *it == Err(Rejected::Gone));
    // We have closed first, and the peer has not.
    let (_theirs, ours, peer, door) = pair("127.0.0.1");
    drop(ours);
    until(peer, door, |it| *it == Err(Rejected::Gone));
    // There never was one, and somebody listens at that port.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    assert_eq!(LoopbackPeer::of(at, door), Err(Rejected::Gone));
}

#[test]
fn many_that_come_and_go_at_once_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let crowd: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..500 {
                    drop(TcpStream::connect(at).unwrap());
                }
            })
        })
        .collect();
    for _ in 0..2_000 {
        let (ours, peer) = listener.accept().unwrap();
        // Either it is still there, and ours, or it is nobody; never anybody else.
        match LoopbackPeer::of(peer, ours.local_addr().unwrap()) {
            Ok(found) => assert_eq!(found.uid, us()),
            Err(why) => assert_eq!(why, Rejected::Gone),
        }
    }
    crowd.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn our_own_process_is_taken_for_a_workers_way_out_and_another_is_not() {
    let (_theirs, _ours, peer, door) = pair("127.0.0.1");
    assert_eq!(LoopbackPeer::of(peer, door).unwrap().check_not_jailed(), Err(Rejected::Jailed));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut other = Command::new("nc").args(["127.0.0.1", &port]).stdin(Stdio::piped()).spawn().unwrap();
    let (ours, peer) = listener.accept().unwrap();
    let found = LoopbackPeer::of(peer, ours.local_addr().unwrap()).unwrap();
    assert_eq!(found.check_not_jailed(), Ok(found));
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_process_in_another_pid_namespace_is_taken_for_a_worker() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let args = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "nc", "127.0.0.1", &port];
    let mut jailed = Command::new("unshare").args(args).stdin(Stdio::piped()).spawn().unwrap();
    let (ours, peer) = listener.accept().unwrap();
    let found = LoopbackPeer::of(peer, ours.local_addr().unwrap()).unwrap();
    assert_eq!(found.uid, us(), "its user is the same, seen from here");
    assert_eq!(found.check_not_jailed(), Err(Rejected::Jailed));
    jailed.kill().unwrap();
    jailed.wait().unwrap();
}

/// A world in which a worker runs until a file is there.
fn with_a_worker(goal: &str) -> (World, Daemon, String) {
    let world = World::new();
    world.configure(&format!("[policy]\nfile = \"builtin:open\"\n{OPEN}"));
    let daemon = world.start();
    let (task, reply) = world.client(&daemon, "orch").delegate("shell", goal, json!({}));
    reply.ack();
    let client = world.client(&daemon, "orch");
    eventually("its start", || client.task(&task).is_some_and(|it| it["status"] == "in_progress"));
    (world, daemon, task)
}

/// Returns a door's answer to a program that is started for this and may be in a pid namespace of its own.
fn asked_by(door: Http, before: &[&str]) -> String {
    let request = format!(
        "GET /nowhere HTTP/1.1\\r\\nHost: 127.0.0.1:{}\\r\\nConnection: close\\r\\n\\r\\n",
        door.port
    );
    let script = format!("(printf '{request}'; sleep 5) | nc 127.0.0.1 {}", door.port);
    let mut all: Vec<&str> = before.to_vec();
    all.extend(["sh", "-c", &script]);
    let output = Command::new(all[0]).args(&all[1..]).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn while_a_worker_runs_a_jailed_peer_is_refused_and_others_are_not() {
    let (world, daemon, task) = with_a_worker("while [ ! -e over ]; do sleep 0.05; done");
    let jail = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    for door in Http::all(&world) {
        assert!(asked_by(door, &jail).contains(" 403 "), "{door:?}");
        assert!(asked_by(door, &["env"]).contains(" 404 "), "{door:?}");
        assert_eq!(door.get("/nowhere").status, 404);
    }
    assert!(world.log().contains("another pid namespace"), "{}", world.log());
    std::fs::write(world.repo().join("over"), "").unwrap();
    world.client(&daemon, "orch").result_of(&task);
}

#[test]
fn what_carries_connections_of_containers_is_not_its_user() {
    let world = World::new();
    let _daemon = world.start();
    for name in ["slirp4netns", "pasta.avx2", "rootlesskit"] {
        let carrier = world.path(name);
        std::fs::copy("/usr/bin/nc", &carrier).unwrap();
        let idle = ["-lU".to_owned(), world.path(&format!("{name}.sock")).display().to_string()];
        let mut idle = Command::new(&carrier).args(idle).stdin(Stdio::piped()).spawn().unwrap();
        for door in Http::all(&world) {
            let carried = || {
                let mut it = Command::new(&carrier);
                let mut it = it.args(["127.0.0.1", &door.port.to_string()]);
                it = it.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut it = it.spawn().unwrap();
                let ask = format!("GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", door.port);
                it.stdin.as_mut().unwrap().write_all(ask.as_bytes()).unwrap();
                let mut line = String::new();
                BufReader::new(it.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
                it.kill().unwrap();
                it.wait().unwrap();
                line
            };
            eventually("that it is seen", || carried().contains(" 403 "));
            for _ in 0..3 {
                assert!(carried().contains(" 403 "), "{name} at {door:?}");
                assert_eq!(door.get("/nowhere").status, 404, "who speaks for itself is let in beside it");
            }
        }
        idle.kill().unwrap();
        idle.wait().unwrap();
    }
    assert!(world.log().contains("of a container"), "{}", world.log());
}

#[test]
fn a_worker_has_no_way_to_the_doors() {
    let world = World::new();
    world.configure(&format!("[policy]\nfile = \"builtin:open\"\n{OPEN}"));
    let daemon = world.start();
    let client = world.client(&daemon, "orch");
    for door in Http::all(&world) {
        let goal = format!(
            "for a in 127.0.0.1 ::1; do nc -z -w 2 $a {} && echo reached || echo none; done",
            door.port
        );
        let (task, reply) = client.delegate("shell", &goal, json!({}));
        reply.ack();
        let result = client.result_of(&task);
        let said = result["artifacts"]["details"]["stdout"].as_str().unwrap();
        assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["none", "none"], "{result}");
    }
}

#[test]
fn no_worker_is_granted_a_door_as_a_port_or_as_a_host() {
    let world = World::new();
    let daemon = world.start();
    let port = Http::broker(&world).port;
    let worker = |name: &str, network: &str| {
        format!(
            "[workers.{name}]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{{goal}}\"]\n\
             parse_mode = \"text\"\n{network}\n"
        )
    };
    world.configure(&format!(
        "[policy]\nfile = \"builtin:open\"\n{}{}",
        worker("by-port", &format!("network = \"ports\"\nports = [{port}]")),
        worker("by-host", &format!("network = \"hosts\"\nhosts = [\"door.example:{port}=127.0.0.1\"]")),
    ));
    assert!(world.command(&["daemon", "reload"]).status().unwrap().success());
    let client = world.client(&daemon, "orch");
    for name in ["by-port", "by-host"] {
        let (task, reply) = client.delegate(name, "true", json!({}));
        let mut said = reply.message();
        if said["msg_type"] == "ACK" {
            said = client.result_of(&task);
            assert_eq!(said["status"], "failed", "{name}: {said}");
        }
        assert!(said.to_string().contains("door of provost itself"), "{name}: {said}");
    }
}

#[test]
fn another_user_is_refused_whatever_it_asks() {
    let program = std::env::var("PROVOST_TEST_OTHER")
        .expect("a program that connects as another user: run scripts/test as root, which makes one");
    let world = a6s_client::world();
    let _daemon = world.start();
    for door in Http::all(&world) {
        for address in ["127.0.0.1", "::1"] {
            let mut other = Command::new(&program)
                .args([address, &door.port.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let host = if address == "::1" { "[::1]" } else { address };
            let request = format!("GET /nowhere HTTP/1.1\r\nHost: {host}:{}\r\n\r\n", door.port);
            other.stdin.as_ref().unwrap().write_all(request.as_bytes()).unwrap();
            let mut stdout = other.stdout.take().unwrap();
            let answer = Answer::read(&mut stdout, false).unwrap();
            assert_eq!(answer.status, 403, "{address}");
            assert_eq!(answer.header("connection"), Some("close"));
            drop(other.stdin.take());
            let mut rest = Vec::new();
            stdout.read_to_end(&mut rest).unwrap();
            assert!(rest.is_empty());
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
    assert!(world.log().contains("the peer is another user"), "{}", world.log());
}
