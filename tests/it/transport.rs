//! Sockets, lines and peers: bounded against whoever is at the other end.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use provost::auth::Rejected;
use provost::auth::peer::{self, PeerId};
use provost::base::limits::FRAME_LEN_MAX;
use provost::transport::Stream;
use provost::transport::accept::{Guard, accept_loop};
use provost::transport::lines::{ByteBudget, Line, LineReader, delivered, write_line};
use provost::transport::listen::{BindError, Place, bind, connect};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(10);

fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Stream::unproven(ours), theirs)
}

fn reader(stream: Stream) -> LineReader<Stream> {
    LineReader::new(stream, SOON)
}

async fn next(reader: &mut LineReader<Stream>) -> String {
    match reader.next().await.unwrap() {
        Line::Frame(frame) => String::from_utf8_lossy(frame).into_owned(),
        other => format!("{other:?}"),
    }
}

mod lines {
    use super::*;

    #[tokio::test]
    async fn lines_come_as_they_were_sent_however_they_were_cut() {
        for proven in [false, true] {
            for size in [1, 2, 3, 5, 7, 100] {
                let (mut ours, mut theirs) = pair();
                if proven {
                    ours.proven();
                }
                let sent = b"one\n\n  two\t\r\nthree\xff\n \x0b\n\nlast".to_vec();
                let writer = tokio::spawn(async move {
                    for piece in sent.chunks(size) {
                        theirs.write_all(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                });
                let mut reader = reader(ours);
                for expected in ["one", "", "two", "three\u{fffd}", "\u{b}", "", "last", "Eof", "Eof"] {
                    assert_eq!(next(&mut reader).await, expected, "{proven} {size}");
                }
                writer.await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_frame_of_the_largest_size_passes_and_one_byte_more_does_not() {
        for (extra, proven) in [(0, false), (1, false), (0, true), (1, true)] {
            for ending in ["\n", ""] {
                let (mut ours, mut theirs) = pair();
                if proven {
                    ours.proven();
                }
                let writer = tokio::spawn(async move {
                    let line = [&vec![b'x'; FRAME_LEN_MAX + extra], ending.as_bytes()].concat();
                    // The reader gives up on a line that is too long, and then this fails.
                    let _sent = theirs.write_all(&line).await;
                });
                let mut reader = reader(ours);
                match reader.next().await.unwrap() {
                    Line::Frame(frame) => assert_eq!((frame.len(), extra), (FRAME_LEN_MAX, 0)),
                    other => assert_eq!((other, extra), (Line::TooLong, 1)),
                }
                if extra > 0 {
                    assert_eq!(reader.next().await.unwrap(), Line::TooLong);
                }
                drop(reader);
                writer.await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_line_that_is_begun_must_end_in_time() {
        let (ours, mut theirs) = pair();
        let mut reader = LineReader::new(ours, Duration::from_millis(60));
        let writer = tokio::spawn(async move {
            // Between lines there is no hurry.
            tokio::time::sleep(Duration::from_millis(150)).await;
            theirs.write_all(b"quick\n").await.unwrap();
            // A byte now and then does not help.
            while theirs.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert_eq!(next(&mut reader).await, "quick");
        assert_eq!(tokio::time::timeout(SOON, next(&mut reader)).await.unwrap(), "TimedOut");
        drop(reader);
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn waiting_for_a_line_can_be_given_up_without_losing_any_of_it() {
        let (ours, mut theirs) = pair();
        let mut reader = reader(ours);
        for piece in ["be", "gun", " and", " ended\nnext\n"] {
            theirs.write_all(piece.as_bytes()).await.unwrap();
            if !piece.contains('\n') {
                let waited = tokio::time::timeout(Duration::from_millis(5), reader.next()).await;
                assert!(waited.is_err());
            }
        }
        assert_eq!(next(&mut reader).await, "begun and ended");
        assert_eq!(next(&mut reader).await, "next");
    }

    #[tokio::test]
    async fn unproven_peers_share_one_budget_and_proven_ones_use_none() {
        let budget = ByteBudget::new(64 << 10);
        let (ours, mut theirs) = pair();
        let mut greedy = reader(ours).within(&budget);
        theirs.write_all(&[b'x'; 40 << 10]).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(50), greedy.next()).await;
        assert!(waited.is_err() && budget.left() < 24 << 10);

        let (ours, mut late) = pair();
        let mut second = reader(ours).within(&budget);
        let writer = tokio::spawn(async move { late.write_all(&[b'y'; 100 << 10]).await });
        assert_eq!(next(&mut second).await, "OverBudget");
        drop(second);
        assert!(writer.await.unwrap().is_err());

        theirs.write_all(b"\n").await.unwrap();
        assert_eq!(next(&mut greedy).await.len(), 40 << 10);
        greedy.proven();
        assert_eq!(budget.left(), 64 << 10);
        let writer = tokio::spawn(async move {
            theirs.write_all(&[b'z'; 100 << 10]).await.unwrap();
            theirs.write_all(b"\n").await.unwrap();
            theirs
        });
        assert_eq!(next(&mut greedy).await.len(), 100 << 10);
        writer.await.unwrap();
    }

    #[tokio::test]
    async fn a_large_line_gives_its_memory_back() {
        let budget = ByteBudget::new(4 << 20);
        let (ours, mut theirs) = pair();
        let mut reader = reader(ours).within(&budget);
        let writer = tokio::spawn(async move {
            theirs.write_all(&[vec![b'x'; 900 << 10], b"\nsmall\n".to_vec()].concat()).await.unwrap();
            theirs
        });
        assert_eq!(next(&mut reader).await.len(), 900 << 10);
        assert!(budget.left() < (4 << 20) - (900 << 10));
        assert_eq!(next(&mut reader).await, "small");
        let waited = tokio::time::timeout(Duration::from_millis(5), reader.next()).await;
        assert!(waited.is_err());
        assert!(budget.left() > (4 << 20) - (8 << 10), "{}", budget.left());
        drop(reader);
        assert_eq!(budget.left(), 4 << 20);
        drop(writer.await.unwrap());
    }

    #[tokio::test]
    async fn writing_to_a_peer_that_does_not_read_ends() {
        let (mut ours, theirs) = pair();
        let line = vec![b'x'; 4 << 20];
        let error = write_line(&mut ours, &line, Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
        let error = write_line(&mut ours, b"x", SOON).await.unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn a_written_line_arrives_whole() {
        let (mut ours, mut theirs) = pair();
        let line = vec![b'x'; 3 << 20];
        let sender = tokio::spawn(async move {
            write_line(&mut ours, &line, SOON).await.unwrap();
            write_line(&mut ours, b"", SOON).await.unwrap();
        });
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).await.unwrap();
        sender.await.unwrap();
        assert_eq!(got.len(), (3 << 20) + 2);
        assert!(got.ends_with(b"x\n\n"));
    }
}

mod refusal {
    use super::*;

    /// A client as they are: one line in one write, then one line back.
    fn client(mut stream: StdStream) -> (Vec<u8>, Option<io::ErrorKind>) {
        stream.write_all(b"{\"msg_type\":\"REGISTER\"}\n").unwrap();
        let mut got = Vec::new();
        let error = stream.read_to_end(&mut got).err().map(|e| e.kind());
        (got, error)
    }

    fn std_pair() -> (Stream, StdStream) {
        let (ours, theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Stream::unproven(UnixStream::from_std(ours).unwrap()), theirs)
    }

    #[tokio::test]
    async fn a_refused_client_sees_why_and_then_a_reset() {
        let (ours, theirs) = std_pair();
        let client = tokio::task::spawn_blocking(|| client(theirs));
        let mut reader = reader(ours);
        assert!(next(&mut reader).await.contains("REGISTER"));
        reader.into_inner().close_with_reset(b"{\"msg_type\":\"ERR\"}");
        assert_eq!(
            client.await.unwrap(),
            (b"{\"msg_type\":\"ERR\"}".to_vec(), Some(io::ErrorKind::ConnectionReset))
        );
    }

    #[tokio::test]
    async fn a_client_that_reads_one_line_gets_an_error_and_not_an_empty_answer() {
        let (ours, mut theirs) = std_pair();
        let client = tokio::task::spawn_blocking(move || {
            theirs.write_all(b"{}\n").unwrap();
            io::BufRead::read_line(&mut io::BufReader::new(theirs), &mut String::new())
        });
        let mut reader = reader(ours);
        assert_eq!(next(&mut reader).await, "{}");
        reader.into_inner().close_with_reset(b"{\"reason\":\"authentication failed\"}");
        assert_eq!(client.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_line_without_its_break_is_refused_as_loudly() {
        let (ours, mut theirs) = std_pair();
        let client = tokio::task::spawn_blocking(move || {
            theirs.write_all(b"{}").unwrap();
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            io::BufRead::read_line(&mut io::BufReader::new(theirs), &mut String::new())
        });
        let mut reader = reader(ours);
        assert_eq!(next(&mut reader).await, "{}");
        reader.into_inner().close_with_reset(b"no");
        assert_eq!(client.await.unwrap().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn an_accepted_client_sees_a_clean_end() {
        let (ours, theirs) = std_pair();
        let client = tokio::task::spawn_blocking(|| client(theirs));
        let mut reader = reader(ours);
        assert!(next(&mut reader).await.contains("REGISTER"));
        reader.proven();
        write_line(reader.get_mut(), b"ACK", SOON).await.unwrap();
        drop(reader);
        assert_eq!(client.await.unwrap(), (b"ACK\n".to_vec(), None));
    }

    #[tokio::test]
    async fn a_line_counts_as_delivered_when_the_peer_goes_on_or_closes_after_reading_it() {
        for (reads, says_more, expected) in
            [(true, false, true), (true, true, true), (false, false, false), (false, true, true)]
        {
            let (ours, mut theirs) = pair();
            let mut reader = reader(ours);
            theirs.write_all(b"HEARTBEAT\n").await.unwrap();
            assert_eq!(next(&mut reader).await, "HEARTBEAT");
            reader.proven();
            write_line(reader.get_mut(), b"DELEGATE", SOON).await.unwrap();
            if reads {
                let mut line = [0; 9];
                theirs.read_exact(&mut line).await.unwrap();
            }
            if says_more {
                theirs.write_all(b"NOTIFY\n").await.unwrap();
            } else {
                drop(theirs);
            }
            let after = reader.next().await;
            assert_eq!(delivered(&after), expected);
            if !expected {
                assert_eq!(after.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            }
        }
    }

    #[tokio::test]
    async fn a_line_is_not_delivered_to_a_peer_that_has_gone() {
        let (ours, theirs) = pair();
        let mut reader = reader(ours);
        drop(theirs);
        let error = write_line(reader.get_mut(), b"DELEGATE", SOON).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(!delivered(&Err(error)));
        assert!(!delivered(&Ok(Line::TimedOut)));
    }
}

mod listening {
    use super::*;

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
        let bound = bind(&path, Place::Ours).unwrap();
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
        assert!(matches!(bind(&path, Place::Ours), Err(BindError::OpenFolder(_))));
        let bound = bind(&path, Place::Given).unwrap();
        assert_eq!(mode(bound.path()), 0o600);
        assert!(bind(&dir.path().join("missing/s"), Place::Given).is_err());
        assert!(matches!(bind(Path::new("/"), Place::Given), Err(BindError::NotAName(_))));
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        assert!(bind(&link.join("s"), Place::Ours).is_err());
    }

    #[tokio::test]
    async fn nothing_but_a_dead_socket_is_ever_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(bind(&path, Place::Given), Err(BindError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::rename(&path, dir.path().join("file")).unwrap();
        symlink(dir.path().join("file"), &path).unwrap();
        assert!(matches!(bind(&path, Place::Given), Err(BindError::NotASocket(_))));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(bind(&path, Place::Given), Err(BindError::NotASocket(_))));
        fs::remove_dir(&path).unwrap();

        drop(StdListener::bind(&path).unwrap());
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
        let bound = bind(&path, Place::Given).unwrap();
        assert!(matches!(bind(&path, Place::Given), Err(BindError::InUse(_))));
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
            let Ok(stream) =
                tokio::time::timeout(Duration::from_millis(20), UnixStream::connect(&path)).await
            else {
                break;
            };
            match stream {
                Ok(stream) => waiting.push(stream),
                Err(_) => break,
            }
        }
        assert!(matches!(bind(&path, Place::Given), Err(BindError::InUse(_))));
    }

    #[tokio::test]
    async fn a_file_that_took_our_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let bound = bind(&path, Place::Given).unwrap();
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
                    tokio::task::spawn_blocking(move || bind(&path, Place::Given).ok())
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
        let bound = bind(&path, Place::Ours).unwrap();
        let (served, asked) = tokio::join!(bound.accept(), connect(&path));
        drop((served.unwrap(), asked.unwrap()));
        assert!(matches!(bind(&path, Place::Ours), Err(BindError::InUse(_))));
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
        let bound = bind(&path, Place::Given).unwrap();
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
        let bound = bind(&path, Place::Given).unwrap();
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
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "run by another test"]
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
        let until = Instant::now() + SOON;
        while echo_once(&door.path).await.is_err() {
            assert!(Instant::now() < until, "does not accept any more");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!door.task.is_finished());
    }

    #[test]
    fn running_out_of_descriptors_does_not_end_the_door() {
        let status = this_test("transport::listening::with_few_descriptors").status().unwrap();
        assert!(status.success());
    }
}

/// This executable, running one of its ignored tests.
fn this_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", name]).stdin(Stdio::null());
    command
}

mod peers {
    use super::*;

    /// Where the process that plays a peer finds the socket.
    const SOCKET: &str = "PEER_TEST_SOCKET";

    /// Connects, and stays until it is told to go.
    #[test]
    #[ignore = "the other end for tests of peers"]
    fn a_peer() {
        let mut stream = StdStream::connect(std::env::var_os(SOCKET).unwrap()).unwrap();
        let _end = stream.read(&mut [0]);
    }

    /// Has `launcher` run a peer, and returns our end, with the launcher to wait for.
    fn peer_by(launcher: &[&str]) -> (StdStream, std::process::Child) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = StdListener::bind(&path).unwrap();
        let peer = this_test("transport::peers::a_peer");
        let mut command = match launcher {
            [] => peer,
            // `script` takes a command line.
            ["script", ..] => {
                let mut command = Command::new(launcher[0]);
                let exe = std::env::current_exe().unwrap();
                let line = format!("{} --ignored --exact transport::peers::a_peer", exe.display());
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
        let until = Instant::now() + SOON;
        loop {
            match listener.accept() {
                Ok((stream, _)) => return (stream, child),
                Err(e) => assert!(
                    e.kind() == io::ErrorKind::WouldBlock && Instant::now() < until,
                    "{launcher:?}: {e}"
                ),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(stream: StdStream, mut child: std::process::Child) {
        drop(stream);
        child.wait().unwrap();
    }

    #[test]
    fn the_kernel_says_who_connected() {
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
}
