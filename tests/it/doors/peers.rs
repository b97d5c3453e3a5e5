//! The process at the other end of a socket, by the kernel's data.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use provost::auth::Rejected;
use provost::auth::peer::{self, PeerId};

use crate::support::processes::this_test;
use crate::support::waits::until_some;

/// Where the process that plays a peer finds the socket.
const SOCKET: &str = "PROVOST_TEST_PEER";
/// The test that plays it when it is started once more as a child.
const PEER: &str = "doors::peers::the_kernel_says_who_connected";

/// Connects, and stays until its input says to go.
fn play_peer(socket: &std::ffi::OsStr) {
    let mut stream = StdStream::connect(socket).unwrap();
    let _end = stream.read(&mut [0]);
}

/// Has `launcher` run a peer, and returns our end, with the launcher to wait for.
fn peer_by(launcher: &[&str]) -> (StdStream, std::process::Child) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = StdListener::bind(&path).unwrap();
    let peer = this_test(PEER);
    let mut command = match launcher {
        [] => peer,
        // `script` takes a command line.
        ["script", ..] => {
            let mut command = Command::new(launcher[0]);
            let exe = std::env::current_exe().unwrap();
            let line = format!("{} --exact {PEER}", exe.display());
            command.args(&launcher[1..]).args(["-qec", &line, "/dev/null"]);
            command
        }
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(peer.get_program()).args(peer.get_args());
            command
        }
    };
    command.env(SOCKET, &path).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().unwrap();
    listener.set_nonblocking(true).unwrap();
    let accepted = || match listener.accept() {
        Ok((stream, _)) => Some(stream),
        Err(err) => {
            assert_eq!(err.kind(), io::ErrorKind::WouldBlock, "{launcher:?}: {err}");
            None
        }
    };
    (until_some("a connection", accepted), child)
}

fn end(stream: StdStream, mut child: std::process::Child) {
    drop(stream);
    child.wait().unwrap();
}

#[test]
fn the_kernel_says_who_connected() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        return play_peer(&socket);
    }
    let (stream, child) = peer_by(&[]);
    let peer = PeerId::of(&stream).unwrap();
    assert_eq!(peer.pid, i32::try_from(child.id()).unwrap());
    let us = rustix::process::geteuid().as_raw();
    assert_eq!(peer.check_same_user(us), Ok(()));
    assert_eq!(peer.check_same_user(us + 1), Err(Rejected::OtherUser));
    assert_eq!(peer.check_not_jailed(), Ok(()));
    assert_eq!(peer::ancestors(peer.pid).unwrap()[0], i32::try_from(std::process::id()).unwrap());
    end(stream, child);
    assert!(!peer.is_alive());
    assert_eq!(peer.check_not_jailed(), Err(Rejected::Gone));
    assert!(peer::ancestors(peer.pid).is_err());
}

#[test]
fn a_peer_that_has_ended_is_nobody() {
    let (stream, mut child) = peer_by(&[]);
    child.kill().unwrap();
    child.wait().unwrap();
    match PeerId::of(&stream) {
        Err(rejected) => assert_eq!(rejected, Rejected::Gone),
        Ok(peer) => assert_eq!(peer.check_not_jailed(), Err(Rejected::Gone)),
    }
}

#[test]
fn a_peer_in_a_pid_namespace_below_ours_is_jailed_whatever_its_user() {
    let launcher: &[&str] = if rustix::process::geteuid().is_root() {
        &["unshare", "--pid", "--fork"]
    } else {
        &["unshare", "--user", "--map-current-user", "--pid", "--fork"]
    };
    let (stream, child) = peer_by(launcher);
    let peer = PeerId::of(&stream).unwrap();
    assert_eq!(peer.check_same_user(rustix::process::geteuid().as_raw()), Ok(()));
    assert_eq!(peer.check_not_jailed(), Err(Rejected::Jailed));
    end(stream, child);
}

#[test]
fn a_person_has_a_terminal_that_is_not_below_an_agent() {
    let (stream, child) = peer_by(&["script"]);
    let peer = PeerId::of(&stream).unwrap();
    let script = i32::try_from(child.id()).unwrap();
    let us = i32::try_from(std::process::id()).unwrap();
    assert!(peer::controlling_tty(peer.pid).unwrap().is_some());
    assert!(peer.is_at_terminal_outside(&[].into()));
    assert!(peer.is_at_terminal_outside(&[i32::MAX].into()));
    for agent in [peer.pid, script, us] {
        assert!(!peer.is_at_terminal_outside(&[agent].into()), "{agent}");
    }
    end(stream, child);
    assert!(!peer.is_at_terminal_outside(&[].into()));

    let (stream, child) = peer_by(&["setsid", "--wait"]);
    let peer = PeerId::of(&stream).unwrap();
    assert_eq!(peer::controlling_tty(peer.pid).unwrap(), None);
    assert!(!peer.is_at_terminal_outside(&[].into()));
    end(stream, child);
}

#[test]
fn a_process_name_cannot_forge_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().join("x) S 1 1 (y");
    fs::copy("/bin/sleep", &name).unwrap();
    let mut child = Command::new(&name).arg("60").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let chain = peer::ancestors(pid);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(chain.unwrap()[0], i32::try_from(std::process::id()).unwrap());
}

#[test]
fn asking_who_a_peer_is_takes_microseconds() {
    let (stream, child) = peer_by(&[]);
    PeerId::of(&stream).unwrap().check_not_jailed().unwrap();
    let rounds = 500;
    let begun = Instant::now();
    for _ in 0..rounds {
        PeerId::of(&stream).unwrap().check_not_jailed().unwrap();
    }
    let each = begun.elapsed() / rounds;
    end(stream, child);
    // Twenty on an idle machine; the rest is for a busy one.
    assert!(each < Duration::from_micros(500), "{each:?}");
}
