//! Output is bounded, can be followed, and does nothing to a terminal.

use provost::base::TaskId;
use provost::base::limits::{
    OUTPUT_BYTES_MAX, OUTPUT_OVER_BYTES_MAX, OUTPUT_PAGE_BYTES_MAX, OUTPUT_TASKS_MAX,
};
use provost::jail::{Capture, OutputBoard, plain_text};

use crate::support::jails::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_flood_neither_blocks_the_worker_nor_grows_the_daemon() {
    let world = World::new();
    let total = 1_u64 << 30;
    let before = resident();
    let script = format!("head -c {total} /dev/zero | tr '\\0' x; echo THE END");
    let mut running = world.start(world.sh(&script)).await.unwrap();
    let exit = running.wait().await;
    assert_eq!(exit.reason, ExitReason::Code(0));
    assert_eq!(running.output().total(), total + 8);
    let text = running.output().text(Stream::Out);
    assert!(text.len() <= OUTPUT_BYTES_MAX + 100, "{}", text.len());
    assert!(text.ends_with("THE END\n") && text.contains("bytes dropped ...]"));
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "grown by {grown} bytes");
}

#[test]
fn the_first_and_the_newest_half_are_kept() {
    let mut capture = Capture::new(4096);
    for n in 0..10_000 {
        capture.push(Stream::Out, format!("{n}\n").as_bytes());
    }
    let text = capture.text(Stream::Out);
    let (head, rest) = text.split_once("\n[... ").unwrap();
    let (dropped, tail) = rest.split_once(" bytes dropped ...]\n").unwrap();
    assert!(head.starts_with("0\n1\n2\n") && tail.ends_with("9998\n9999\n"));
    assert_eq!(dropped.parse::<u64>().unwrap(), capture.dropped(Stream::Out));
    let kept = (head.len() + tail.len()) as u64;
    assert_eq!(kept + capture.dropped(Stream::Out), capture.total());
    assert!((1500..=4096).contains(&kept), "{kept}");
}

#[test]
fn output_byte_by_byte_on_both_streams_stays_bounded() {
    let before = resident();
    let mut capture = Capture::new(OUTPUT_BYTES_MAX);
    for n in 0..2_000_000_u32 {
        capture.push(if n % 2 == 0 { Stream::Out } else { Stream::Err }, b"x");
    }
    assert!(resident().saturating_sub(before) < 32 << 20);
    assert!(capture.dropped(Stream::Out) > 0);
}

#[test]
fn nothing_is_dropped_below_the_bound() {
    let mut capture = Capture::new(1 << 20);
    capture.push(Stream::Out, &vec![b'a'; 400_000]);
    capture.push(Stream::Out, b"\xff\xfe end");
    assert_eq!(capture.dropped(Stream::Out), 0);
    assert!(capture.text(Stream::Out).ends_with("\u{fffd}\u{fffd} end"));
}

#[test]
fn a_cursor_sees_everything_once_and_in_order() {
    let mut capture = Capture::new(1 << 20);
    let mut expected = Vec::new();
    for n in 0..1000_u32 {
        let stream = if n % 3 == 0 { Stream::Err } else { Stream::Out };
        let text = format!("line {n}\n");
        capture.push(stream, text.as_bytes());
        expected.extend(text.into_bytes());
    }
    let (mut cursor, mut seen) = (0, Vec::new());
    loop {
        let page = capture.read_from(cursor);
        if page.chunks.is_empty() {
            break;
        }
        seen.extend(page.chunks.iter().flat_map(|chunk| chunk.bytes.clone()));
        cursor = page.next;
    }
    assert_eq!(seen, expected);
    let middle = capture.read_from(5);
    assert_eq!((middle.chunks[0].at, middle.chunks[0].bytes[0]), (5, b'0'));
}

#[test]
fn one_answer_is_a_page_and_the_next_goes_on() {
    let mut capture = Capture::new(OUTPUT_BYTES_MAX);
    capture.push(Stream::Out, &vec![b'x'; 900_000]);
    let (mut cursor, mut seen) = (0, 0);
    while seen < 900_000 {
        let page = capture.read_from(cursor);
        let size: usize = page.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        assert!(size > 0 && size <= OUTPUT_PAGE_BYTES_MAX + (16 << 10), "{size}");
        (cursor, seen) = (page.next, seen + size);
    }
    assert_eq!((cursor, seen), (900_000, 900_000));
}

#[tokio::test]
async fn a_running_worker_can_be_followed_from_a_cursor() {
    let world = World::new();
    let board = OutputBoard::default();
    let task = TaskId::parse("task-1").unwrap();
    let script = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2";
    let mut running = world.start(world.sh(script)).await.unwrap();
    board.add((task.clone(), 1), running.output().clone());
    let first = board.get(&task).unwrap().follow(0).await;
    assert_eq!((first.chunks[0].bytes.as_slice(), first.next, first.finished), (&b"one\n"[..], 4, false));
    assert!(board.read_from(&task, 4).unwrap().chunks.is_empty());
    fs::write(world.path("workspace/go"), "").unwrap();
    let second = board.get(&task).unwrap().follow(first.next).await;
    assert_eq!((second.chunks[0].stream, second.chunks[0].bytes.as_slice()), (Stream::Err, &b"two\n"[..]));
    running.wait().await;
    let output = board.get(&task).unwrap();
    assert!(output.follow(second.next).await.finished);
    assert!(!board.is_empty());
    board.retire(&task, &LiveOutput::new(100));
    assert!(!board.is_empty(), "that is the output of another run of the task");
    board.retire(&task, &output);
    assert!(board.is_empty() && board.read_from(&task, 0).unwrap().finished);
}

#[tokio::test]
async fn who_waits_for_a_run_is_woken_by_its_output_and_by_what_it_says() {
    let (board, live) = (OutputBoard::default(), LiveOutput::new(100));
    let task = TaskId::parse("task-1").unwrap();
    let waits = async {
        let live = board.appears(&task).await;
        live.grows_beyond(0).await;
        live.grows_beyond(4).await;
        live.total()
    };
    let runs = async {
        board.add((TaskId::parse("task-2").unwrap(), 1), LiveOutput::new(100));
        tokio::task::yield_now().await;
        board.add((task.clone(), 1), live.clone());
        for word in ["one\n", "two\n"] {
            tokio::task::yield_now().await;
            live.push(Stream::Out, word.as_bytes());
        }
    };
    let (heard, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(waits, runs) }).await.unwrap();
    assert_eq!(heard, 8);
    let more = tokio::time::timeout(Duration::ZERO, live.grows_beyond(8)).await;
    assert!(more.is_err(), "nothing more has come");
}

#[test]
fn the_board_forgets_the_oldest_task_first() {
    let board = OutputBoard::default();
    let task = |n: usize| TaskId::parse(&format!("task-{n}")).unwrap();
    for n in 0..=OUTPUT_TASKS_MAX {
        board.add((task(n), 1), LiveOutput::new(100));
    }
    assert!(board.get(&task(0)).is_none() && board.get(&task(1)).is_some());
    // One whose run is over gives way before one that still runs.
    board.retire(&task(7), &board.get(&task(7)).unwrap());
    board.add((task(OUTPUT_TASKS_MAX + 1), 1), LiveOutput::new(100));
    assert!(board.get(&task(7)).is_none() && board.get(&task(1)).is_some());
}

#[test]
fn what_was_said_stays_after_the_end_as_long_as_there_is_room() {
    let board = OutputBoard::default();
    let task = |n: usize| TaskId::parse(&format!("task-{n}")).unwrap();
    for n in 0..20 {
        let live = LiveOutput::new(OUTPUT_BYTES_MAX);
        for _ in 0..OUTPUT_BYTES_MAX / (64 << 10) {
            live.push(Stream::Out, &[b'x'; 64 << 10]);
        }
        board.add((task(n), 1), live.clone());
        if n != 1 {
            board.retire(&task(n), &live);
        }
    }
    let kept: Vec<usize> = (0..20).filter(|n| board.get(&task(*n)).is_some()).collect();
    let room = OUTPUT_OVER_BYTES_MAX / OUTPUT_BYTES_MAX;
    assert!(kept.len() > room / 2 && kept.len() <= room + 2, "{kept:?}");
    assert!(kept.contains(&1) && kept.contains(&19) && !kept.contains(&0), "{kept:?}");
}

#[test]
fn shown_text_does_nothing_to_a_terminal() {
    for (given, shown) in [
        ("plain\ttext\nü 漢", "plain\ttext\nü 漢"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}]0;title\u{7}after", "after"),
        ("\u{1b}]52;c;c2VjcmV0\u{1b}\\after", "after"),
        ("\u{1b}P1$r\u{1b}\\after", "after"),
        ("\u{9b}31mred \u{9d}0;t\u{9c}end", "red end"),
        ("\u{1b}(Bx\u{1b}cx", "xx"),
        ("a\u{8}\u{7f}\u{0}b", "ab"),
        ("50%\r100%\r\ndone", "50%\n100%\ndone"),
        ("abc\u{202e}fed\u{2066}x", "abcfedx"),
        ("\u{1b}]0;unfinished\nnext line", "\nnext line"),
        ("\u{1b}[31", ""),
        ("\u{1b}", ""),
    ] {
        assert_eq!(plain_text(given), shown, "{given:?}");
    }
}
