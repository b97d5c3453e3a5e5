//! Addresses: made, taken over, given up, and served in spite of peers' mistakes.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use provost::transport::Stream;
use provost::transport::accept::{Guard, accept_loop};
use provost::transport::lines::{Line, LineReader, write_line};
use provost::transport::listen::{BindError, SocketFolder, bind, connect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::support::processes::{CHILD, SOON, this_test};
use crate::support::waits::eventually_so;

async fn echo_once(path: &Path) -> io::Result<()> {
    let mut stream = connect(path).await?;
    write_line(&mut stream, b"hello", SOON).await?;
    let mut reader = LineReader::new(stream, SOON);
    assert_eq!(reader.next().await?, Line::Frame(b"hello"));
    Ok(())
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn a_socket_is_ours_alone_and_goes_when_we_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run/deep/devitd.sock");
    let bound = bind(&path, SocketFolder::Ours).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    let (served, asked) = tokio::join!(bound.accept(), connect(&path));
    let (mut served, mut asked) = (served.unwrap(), asked.unwrap());
    asked.write_all(b"x").await.unwrap();
    assert_eq!(served.read_u8().await.unwrap(), b'x');
    drop(bound);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_folder_of_ours_that_others_can_enter_is_refused_and_a_given_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let path = dir.path().join("s");
    assert!(matches!(bind(&path, SocketFolder::Ours), Err(BindError::OpenFolder(_))));
    let bound = bind(&path, SocketFolder::Given).unwrap();
    assert_eq!(mode(bound.path()), 0o600);
    assert!(bind(&dir.path().join("missing/s"), SocketFolder::Given).is_err());
    assert!(matches!(bind(Path::new("/"), SocketFolder::Given), Err(BindError::NotAName(_))));
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    fs::create_dir(&target).unwrap();
    symlink(&target, &link).unwrap();
    assert!(bind(&link.join("s"), SocketFolder::Ours).is_err());
}

#[tokio::test]
async fn nothing_but_a_dead_socket_is_ever_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(bind(&path, SocketFolder::Given), Err(BindError::NotASocket(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::rename(&path, dir.path().join("file")).unwrap();
    symlink(dir.path().join("file"), &path).unwrap();
    assert!(matches!(bind(&path, SocketFolder::Given), Err(BindError::NotASocket(_))));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(bind(&path, SocketFolder::Given), Err(BindError::NotASocket(_))));
    fs::remove_dir(&path).unwrap();

    drop(StdListener::bind(&path).unwrap());
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    let bound = bind(&path, SocketFolder::Given).unwrap();
    assert!(matches!(bind(&path, SocketFolder::Given), Err(BindError::InUse(_))));
    connect(&path).await.unwrap();
    drop(bound);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_daemon_with_a_full_queue_is_not_taken_for_dead() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let _busy = StdListener::bind(&path).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..10_000 {
        let Ok(stream) = tokio::time::timeout(Duration::from_millis(20), UnixStream::connect(&path)).await
        else {
            break;
        };
        match stream {
            Ok(stream) => waiting.push(stream),
            Err(_) => break,
        }
    }
    assert!(matches!(bind(&path, SocketFolder::Given), Err(BindError::InUse(_))));
}

#[tokio::test]
async fn a_file_that_took_our_name_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let bound = bind(&path, SocketFolder::Given).unwrap();
    fs::remove_file(&path).unwrap();
    let other = StdListener::bind(&path).unwrap();
    drop(bound);
    assert!(path.exists());
    drop(other);
}

#[tokio::test]
async fn of_daemons_that_start_at_once_one_gets_the_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    for round in 0..200 {
        if round % 2 == 0 {
            drop(StdListener::bind(&path).unwrap());
        }
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let path = path.clone();
                tokio::task::spawn_blocking(move || bind(&path, SocketFolder::Given).ok())
            })
            .collect();
        let mut bound = Vec::new();
        for task in tasks {
            bound.extend(task.await.unwrap());
        }
        assert!(bound.len() <= 1, "{}", bound.len());
        if let Some(bound) = bound.pop() {
            connect(&path).await.unwrap();
            drop(bound);
        }
        let _left_over = fs::remove_file(&path);
    }
}

#[tokio::test]
async fn paths_longer_than_an_address_work() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("d".repeat(100)).join("e".repeat(100));
    let path = folder.join("n".repeat(200));
    let bound = bind(&path, SocketFolder::Ours).unwrap();
    let (served, asked) = tokio::join!(bound.accept(), connect(&path));
    drop((served.unwrap(), asked.unwrap()));
    assert!(matches!(bind(&path, SocketFolder::Ours), Err(BindError::InUse(_))));
    drop(bound);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(connect(&path).await.unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// Sends each line back; believes peers that say `proof`.
async fn echo(stream: Stream, guard: Guard) {
    let mut reader = LineReader::new(stream, SOON);
    loop {
        let line = tokio::select! {
            () = guard.stopping() => return,
            line = reader.next() => match line {
                Ok(Line::Frame(line)) => line.to_vec(),
                _ => return,
            }
        };
        if line == b"proof" {
            guard.proven();
            reader.proven();
        }
        if line == b"panic" {
            panic!("as asked");
        }
        if write_line(reader.get_mut(), &line, SOON).await.is_err() {
            return;
        }
    }
}

struct Door {
    _dir: tempfile::TempDir,
    path: PathBuf,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn door(connections_max: usize) -> Door {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let bound = bind(&path, SocketFolder::Given).unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(accept_loop(bound, connections_max, stop.clone(), SOON, echo));
    Door { _dir: dir, path, stop, task }
}

async fn say(stream: &mut Stream, line: &str) -> io::Result<()> {
    write_line(stream, line.as_bytes(), SOON).await?;
    let mut got = vec![0; line.len() + 1];
    stream.read_exact(&mut got).await.map(|_| ())
}

#[tokio::test]
async fn a_crowd_of_silent_peers_costs_the_oldest_of_them_and_nobody_at_work() {
    let door = door(5);
    let mut worker = connect(&door.path).await.unwrap();
    say(&mut worker, "proof").await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&door.path).await.unwrap();
        say(&mut stream, "hello").await.unwrap();
        silent.push(stream);
    }
    for (age, stream) in silent.iter_mut().rev().enumerate() {
        assert_eq!(say(stream, "still here").await.is_ok(), age < 4, "{age}");
    }
    say(&mut worker, "still here").await.unwrap();
}

#[tokio::test]
async fn when_all_are_proven_a_newcomer_is_turned_away_until_one_leaves() {
    let door = door(2);
    let mut workers = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(&door.path).await.unwrap();
        say(&mut stream, "proof").await.unwrap();
        workers.push(stream);
    }
    let mut newcomer = connect(&door.path).await.unwrap();
    assert!(say(&mut newcomer, "hello").await.is_err());
    for worker in &mut workers {
        say(worker, "still here").await.unwrap();
    }
    workers.pop();
    let until = Instant::now() + SOON;
    while echo_once(&door.path).await.is_err() {
        assert!(Instant::now() < until);
    }
}

#[tokio::test]
async fn peers_that_say_nothing_or_break_their_task_do_no_harm() {
    let door = door(3);
    for _ in 0..20 {
        drop(connect(&door.path).await.unwrap());
        let mut stream = connect(&door.path).await.unwrap();
        assert!(say(&mut stream, "panic").await.is_err());
    }
    echo_once(&door.path).await.unwrap();
}

#[tokio::test]
async fn a_stop_closes_the_address_at_once_and_then_waits_for_those_at_work() {
    let door = door(10);
    let mut stream = connect(&door.path).await.unwrap();
    say(&mut stream, "hello").await.unwrap();
    door.stop.cancel();
    tokio::time::timeout(SOON, door.task).await.unwrap().unwrap();
    assert!(!door.path.exists());
    assert!(say(&mut stream, "hello").await.is_err());
}

#[tokio::test]
async fn who_does_not_stop_in_time_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let bound = bind(&path, SocketFolder::Given).unwrap();
    let stop = CancellationToken::new();
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&begun);
    let deaf = move |_stream, _guard| {
        counter.fetch_add(1, Ordering::SeqCst);
        std::future::pending()
    };
    let task = tokio::spawn(accept_loop(bound, 10, stop.clone(), Duration::from_millis(20), deaf));
    let _stream = connect(&path).await.unwrap();
    while begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    tokio::time::timeout(SOON, task).await.unwrap().unwrap();
}

/// In a process of its own, since it takes the descriptors of the whole process away.
async fn with_few_descriptors() {
    let door = door(10_000);
    let limit = rustix::process::Rlimit { current: Some(40), maximum: Some(40) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut flood = Vec::new();
    for _ in 0..200 {
        match tokio::time::timeout(Duration::from_millis(20), connect(&door.path)).await {
            Ok(Ok(stream)) => flood.push(stream),
            _ => break,
        }
    }
    assert!(flood.len() > 10);
    drop(flood);
    eventually_so("another accepted connection", async || echo_once(&door.path).await.is_ok()).await;
    assert!(!door.task.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn running_out_of_descriptors_does_not_end_the_door() {
    if std::env::var_os(CHILD).is_some() {
        return with_few_descriptors().await;
    }
    let name = "doors::listening::running_out_of_descriptors_does_not_end_the_door";
    let mut child = this_test(name);
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
