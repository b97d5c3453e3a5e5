//! Lines, refusals and deliveries over real sockets: bounded against any peer.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use crate::support::processes::SOON;
use provost::base::limits::FRAME_LEN_MAX;
use provost::transport::Stream;
use provost::transport::lines::{ByteBudget, Line, LineReader, delivered, write_line};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

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
            // tidy: sleeps because it is a peer whose silence is tried
            tokio::time::sleep(Duration::from_millis(150)).await;
            theirs.write_all(b"quick\n").await.unwrap();
            // A byte now and then does not help.
            while theirs.write_all(b"x").await.is_ok() {
                // tidy: sleeps because it is a peer whose slowness is tried
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
