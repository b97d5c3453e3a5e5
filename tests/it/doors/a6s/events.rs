//! The events that connections of the A6s door get, in which order, and the fate of connections that do not listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use provost::base::limits::{SOCKET_QUEUE_BYTES_MAX, SOCKET_QUEUE_MESSAGES_MAX};
use provost::protocols::a6s::audience::{Audience, Listener, Written};
use provost::protocols::a6s::events::A6sEvent;
use provost::protocols::a6s::pace::Pace;
use provost::transport::http::{BodyLimits, Room};
use provost::transport::websocket::{Code, Outbox, Unsent, Waiting, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::timeout;

use crate::support::a6s_client::{TEXT, frame, head};
use crate::support::processes::resident;

const PATIENCE: Duration = Duration::from_secs(20);

/// The one that tells all connections, whose time the test moves.
struct Timed {
    audience: Audience,
    pace: Pace,
    now: Instant,
    /// How many texts were written.
    written: usize,
}

impl Timed {
    fn hub() -> Self {
        Self { audience: Audience::default(), pace: Pace::default(), now: Instant::now(), written: 0 }
    }

    fn send(&mut self, written: Option<Written>) {
        if let Some(written) = written {
            self.written += 1;
            self.audience.tell(&written);
        }
    }

    fn tell(&mut self, event: A6sEvent) {
        let written = self.pace.tell(event, self.now);
        self.send(written);
    }

    /// So much later, with everything told that is due by then.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        while let Some(at) = self.pace.next_due().filter(|at| *at <= self.now) {
            let written = self.pace.due(at);
            self.send(written);
        }
    }
}

impl std::ops::Deref for Timed {
    type Target = Audience;

    fn deref(&self) -> &Audience {
        &self.audience
    }
}

/// A client, and its connection.
struct Client {
    outbox: Outbox,
    listener: Listener,
    stream: DuplexStream,
}

impl Client {
    /// One that has asked for something already.
    fn of(hub: &Audience) -> Self {
        Self::with_buffer(hub, 1 << 20)
    }

    /// The same with so many bytes under way.
    fn with_buffer(hub: &Audience, bytes: usize) -> Self {
        let (stream, theirs) = tokio::io::duplex(bytes);
        let outbox = Outbox::new(Waiting::default());
        let serving = outbox.clone();
        tokio::spawn(async move {
            let limits = BodyLimits { most: 1 << 20, total: 4 << 20, small: 1 << 10, time: PATIENCE };
            serve(theirs, hyper::body::Bytes::new(), &Room::new(limits), &serving, drop).await;
        });
        Self { listener: hub.join(outbox.clone(), None), outbox, stream }
    }

    /// The next message.
    async fn told(&mut self) -> Value {
        let mut head = [0; 2];
        timeout(PATIENCE, self.stream.read_exact(&mut head)).await.expect("a message").unwrap();
        assert_eq!(head[0], TEXT, "one whole text frame");
        let len = match head[1] {
            126 => usize::from(self.stream.read_u16().await.unwrap()),
            127 => usize::try_from(self.stream.read_u64().await.unwrap()).unwrap(),
            len => usize::from(len),
        };
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload).await.unwrap();
        serde_json::from_slice(&payload).unwrap()
    }

    /// Returns the messages that the connection has got by the time that it gets an answer.
    async fn told_until_now(&mut self) -> Vec<Value> {
        self.outbox.send(r#"{"id":"now"}"#).unwrap();
        let mut all = Vec::new();
        loop {
            match self.told().await {
                it if it["id"] == "now" => return all,
                it => all.push(it),
            }
        }
    }
}

fn phase(execution: &str, phase: &'static str, status: &'static str, progress: u8) -> A6sEvent {
    A6sEvent::Phase { execution: execution.into(), phase, status, progress }
}

fn task(task: &str, status: &'static str, progress: u8) -> A6sEvent {
    A6sEvent::Task { task: task.into(), status, progress }
}

fn complete(execution: &str) -> A6sEvent {
    let result = json!({ "executionId": execution, "status": "success" });
    A6sEvent::Complete {
        execution: execution.into(),
        result: serde_json::value::to_raw_value(&result).unwrap(),
    }
}

/// Events in short: what they are about, and how that stands.
fn short(told: &[Value]) -> Vec<String> {
    let one = |it: &Value| {
        let data = &it["data"];
        match it["type"].as_str().unwrap() {
            "phase.update" => {
                let words = [&data["phase"], &data["status"]].map(|it| it.as_str().unwrap());
                format!("{} {} {}", words[0], words[1], data["progress"])
            }
            "task.update" => format!("{} {}", data["status"].as_str().unwrap(), data["progress"]),
            "execution.complete" => format!("over {}", data["executionId"].as_str().unwrap()),
            other => panic!("{other}"),
        }
    };
    told.iter().map(one).collect()
}

#[tokio::test]
async fn events_have_the_documents_form_and_no_id() {
    let mut hub = Timed::hub();
    let mut client = Client::of(&hub);
    hub.watch(client.listener, "exec_1");
    hub.tell(phase("exec_1", "research", "running", 0));
    hub.tell(task("task_1", "queued", 0));
    hub.tell(complete("exec_1"));
    assert_eq!(
        client.told().await,
        json!({ "type": "phase.update",
            "data": { "executionId": "exec_1", "phase": "research", "status": "running", "progress": 0 } })
    );
    assert_eq!(
        client.told().await,
        json!({ "type": "task.update", "data": { "taskId": "task_1", "status": "queued", "progress": 0 } })
    );
    assert_eq!(
        client.told().await,
        json!({ "type": "execution.complete", "data": { "executionId": "exec_1", "status": "success" } })
    );
}

#[tokio::test]
async fn an_execution_is_told_to_those_who_watch_and_to_all_when_none_is_left() {
    let mut hub = Timed::hub();
    let (mut watcher, mut asker, mut other) = (Client::of(&hub), Client::of(&hub), Client::of(&hub));
    hub.watch(watcher.listener, "exec_1");
    hub.tell(phase("exec_1", "research", "running", 0));
    hub.watch(asker.listener, "exec_1");
    hub.tell(phase("exec_1", "research", "completed", 100));
    hub.tell(task("task_9", "running", 0));
    assert_eq!(
        short(&watcher.told_until_now().await),
        ["research running 0", "research completed 100", "running 0"]
    );
    assert_eq!(short(&asker.told_until_now().await), ["research completed 100", "running 0"]);
    assert_eq!(
        short(&other.told_until_now().await),
        ["running 0"],
        "tasks are everybody's, executions are not"
    );
    hub.leave(watcher.listener);
    hub.leave(asker.listener);
    hub.tell(complete("exec_1"));
    assert_eq!(short(&other.told_until_now().await), ["over exec_1"], "somebody has to hear of it");
    assert_eq!(short(&watcher.told_until_now().await), Vec::<String>::new(), "who has left is told nothing");
}

#[tokio::test]
async fn what_begins_before_its_answer_is_told_after_it() {
    let mut hub = Timed::hub();
    let (mut asker, mut other) = (Client::of(&hub), Client::of(&hub));
    let hold = hub.hold(asker.listener, "exec_1");
    for (name, status, progress) in
        [("research", "running", 0), ("research", "completed", 100), ("inspect", "running", 0)]
    {
        hub.tell(phase("exec_1", name, status, progress));
    }
    asker.outbox.send(r#"{"id":"req_1","result":{"executionId":"exec_1"}}"#).unwrap();
    hold.release();
    hub.tell(complete("exec_1"));
    assert_eq!(asker.told().await["id"], "req_1");
    assert_eq!(
        short(&asker.told_until_now().await),
        ["research running 0", "research completed 100", "inspect running 0", "over exec_1"]
    );
    assert_eq!(short(&other.told_until_now().await), Vec::<String>::new());
    // What was not begun after all is watched by nobody.
    drop(hub.hold(asker.listener, "exec_2"));
    hub.tell(complete("exec_2"));
    assert_eq!(short(&other.told_until_now().await), ["over exec_2"]);
    // A second question about what is watched already leaves it watched, whatever becomes of it.
    hub.watch(asker.listener, "exec_3");
    drop(hub.hold(asker.listener, "exec_3"));
    hub.tell(complete("exec_3"));
    assert_eq!(short(&asker.told_until_now().await), ["over exec_2", "over exec_3"]);
    assert_eq!(short(&other.told_until_now().await), Vec::<String>::new());
}

#[tokio::test]
async fn progress_comes_four_times_a_second_and_changes_of_status_at_once() {
    let mut hub = Timed::hub();
    let mut client = Client::of(&hub);
    hub.watch(client.listener, "exec_1");
    hub.tell(phase("exec_1", "generate", "running", 0));
    let mut told = client.told_until_now().await;
    for progress in 1..=40 {
        hub.tell(phase("exec_1", "generate", "running", progress));
        hub.pass(Duration::from_millis(25));
        told.extend(client.told_until_now().await);
    }
    // What was said last comes, although nothing follows it.
    assert_eq!(short(&told), [0, 10, 20, 30, 40].map(|progress| format!("generate running {progress}")));
    // What waits for its time is overtaken by what it is about.
    hub.tell(phase("exec_1", "generate", "running", 41));
    hub.tell(phase("exec_1", "generate", "running", 42));
    hub.tell(phase("exec_1", "generate", "completed", 100));
    hub.tell(phase("exec_1", "optimize", "running", 0));
    let told = short(&client.told_until_now().await);
    assert_eq!(told, ["generate completed 100", "optimize running 0"]);
    hub.pass(Duration::from_millis(600));
    assert_eq!(short(&client.told_until_now().await), Vec::<String>::new(), "nothing late");
}

#[tokio::test]
async fn nothing_goes_back_and_nothing_comes_after_the_end() {
    let mut hub = Timed::hub();
    let mut client = Client::of(&hub);
    let calm = Duration::from_millis(260);
    hub.watch(client.listener, "exec_1");
    for (name, status, progress) in [
        ("research", "running", 50),
        ("research", "running", 40),
        ("research", "running", 50),
        ("research", "completed", 100),
        ("research", "running", 60),
        ("inspect", "running", 33),
        ("research", "completed", 100),
        ("inspect", "failed", 0),
    ] {
        hub.tell(phase("exec_1", name, status, progress));
        hub.pass(calm);
    }
    hub.tell(complete("exec_1"));
    hub.tell(phase("exec_1", "generate", "running", 1));
    hub.tell(complete("exec_1"));
    hub.pass(calm);
    assert_eq!(
        short(&client.told_until_now().await),
        [
            "research running 50",
            "research completed 100",
            "inspect running 33",
            "inspect failed 33",
            "over exec_1"
        ]
    );
    for (status, progress) in
        [("queued", 0), ("running", 0), ("running", 7), ("cancelled", 7), ("running", 8)]
    {
        hub.tell(task("task_1", status, progress));
        hub.pass(calm);
    }
    assert_eq!(short(&client.told_until_now().await), ["queued 0", "running 0", "running 7", "cancelled 7"]);
}

#[tokio::test]
async fn who_does_not_read_loses_progress_first_then_its_connection_and_holds_nobody_up() {
    let mut hub = Timed::hub();
    // Of one nothing is read any more, and hardly anything is under way.
    let (stalled, mut client) = (Client::with_buffer(&hub, 64), Client::of(&hub));
    for n in 0..SOCKET_QUEUE_MESSAGES_MAX {
        let topic = n as u64;
        stalled.outbox.send_passing(topic, format!(r#"{{"passing":{n}}}"#).into()).unwrap();
    }
    for n in 0..SOCKET_QUEUE_MESSAGES_MAX {
        stalled.outbox.send_passing(0, format!(r#"{{"passing":{n}}}"#).into()).unwrap();
        hub.tell(task(&format!("task_{n}"), "running", 0));
        assert_eq!(
            client.told().await["data"]["taskId"],
            format!("task_{n}"),
            "the other one has it at once"
        );
    }
    // All progress has given way to what has to arrive, and now that does not fit either.
    assert!(stalled.outbox.is_closed() || stalled.outbox.send("{}") == Err(Unsent::TooSlow));
    assert_eq!(stalled.outbox.send("{}"), Err(Unsent::Gone));
    assert_eq!(stalled.outbox.send_passing(1, "{}".into()), Err(Unsent::Gone));
    // So does what is large; one message alone may be of any size.
    let large = Client::with_buffer(&hub, 64);
    large.outbox.send(vec![b' '; 2 * SOCKET_QUEUE_BYTES_MAX]).unwrap();
    assert_eq!(large.outbox.send("{}"), Err(Unsent::TooSlow));
}

#[tokio::test]
async fn who_reads_late_delays_nobody_and_misses_no_change_of_status() {
    let mut hub = Timed::hub();
    let (mut late, mut client) = (Client::with_buffer(&hub, 64), Client::of(&hub));
    let ids: Vec<String> = (0..50).map(|n| format!("exec_{n}")).collect();
    let mut soon = Vec::new();
    for id in &ids {
        hub.watch(late.listener, id);
        hub.watch(client.listener, id);
        hub.tell(phase(id, "research", "running", 0));
        for progress in 1..=20 {
            hub.tell(phase(id, "research", "running", progress));
            hub.pass(Duration::from_millis(260));
            soon.extend(client.told_until_now().await);
        }
        hub.tell(phase(id, "research", "completed", 100));
        hub.tell(complete(id));
        soon.extend(client.told_until_now().await);
    }
    assert_eq!(
        short(&soon).iter().filter(|it| it.starts_with("over ")).count(),
        50,
        "the other one has all by now"
    );
    let (late, soon) = (short(&late.told_until_now().await), short(&soon));
    let is_progress = |it: &&String| it.starts_with("research running ") && !it.ends_with(" 0");
    let changes = |all: &[String]| all.iter().filter(|it| !is_progress(it)).cloned().collect::<Vec<_>>();
    assert_eq!(changes(&late), changes(&soon), "each change of status and each end, in order");
    assert!(late.len() < soon.len(), "progress that was overtaken is not told any more");
}

#[tokio::test]
async fn while_a_name_is_looked_up_others_come_and_go() {
    let mut hub = Timed::hub();
    let audience = hub.audience.clone();
    let looked_up = Arc::new(AtomicUsize::new(0));
    let count = looked_up.clone();
    let holds = move || {
        // With the list locked, this would never return.
        let other = audience.join(Outbox::new(Waiting::default()), None);
        audience.watch(other, "exec_1");
        audience.leave(other);
        count.fetch_add(1, Ordering::SeqCst);
        true
    };
    let outbox = Outbox::new(Waiting::default());
    let listener = hub.join(outbox, Some(Box::new(holds)));
    let (done, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        hub.tell(task("task_1", "running", 0));
        let hold = hub.hold(listener, "exec_1");
        hub.tell(complete("exec_1"));
        hold.release();
        done.send(()).unwrap();
    });
    timeout(PATIENCE, told).await.expect("nobody waits for a lock").unwrap();
    assert_eq!(looked_up.load(Ordering::SeqCst), 2, "for an event at once, and for one that was held back");
}

#[tokio::test]
async fn an_event_for_many_is_written_once_and_its_text_is_in_memory_once() {
    const MANY: usize = 200;
    let mut hub = Timed::hub();
    let stalled: Vec<Client> = (0..MANY).map(|_| Client::with_buffer(&hub, 64)).collect();
    let mut client = Client::of(&hub);
    let large = json!({ "executionId": "exec_1", "text": "x".repeat(2 << 20) });
    let result = serde_json::value::to_raw_value(&large).unwrap();
    let before = resident(std::process::id());
    hub.tell(A6sEvent::Complete { execution: "exec_1".into(), result });
    assert_eq!(client.told().await["data"], large);
    assert!(stalled.iter().all(|it| !it.outbox.is_closed()), "it waits for each of them");
    let after = resident(std::process::id());
    assert_eq!(hub.written, 1, "for {MANY} readers");
    assert!(after < before + 40_000, "{before} kB, then {after} kB for {MANY} times 2 MiB");
}

#[tokio::test]
async fn progress_that_waits_gives_way_to_its_successor_in_its_place() {
    let hub = Timed::hub();
    let mut client = Client::with_buffer(&hub, 16);
    // The first one is on its way; what follows waits.
    client.outbox.send(r#"{"n":"first, and longer than what is under way"}"#).unwrap();
    tokio::task::yield_now().await;
    client.outbox.send_passing(1, r#"{"n":"old"}"#.into()).unwrap();
    client.outbox.send(r#"{"n":"between"}"#).unwrap();
    client.outbox.send_passing(1, r#"{"n":"new"}"#.into()).unwrap();
    client.outbox.send_passing(2, r#"{"n":"another"}"#.into()).unwrap();
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(client.told().await["n"].as_str().unwrap().to_owned());
    }
    assert_eq!(told[1..], ["new", "between", "another"]);
    client.outbox.close(Code::GOING_AWAY);
    let mut rest = Vec::new();
    client.stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, [0x88, 2, 0x03, 0xe9]);
    assert!(client.outbox.is_closed());
}

#[tokio::test]
async fn many_that_do_not_read_hold_so_much_together_and_then_each_its_share() {
    let (hub, waiting) = (Audience::default(), Waiting::default());
    let many: Vec<Outbox> = (0..100).map(|_| Outbox::new(waiting.clone())).collect();
    let megabyte = hyper::body::Bytes::from(vec![b' '; 1 << 20]);
    let held = |outbox: &Outbox| (0..8).take_while(|_| outbox.send(megabyte.clone()).is_ok()).count();
    let all: Vec<usize> = many.iter().map(held).collect();
    assert_eq!(all[0], 8, "as much as one may have");
    assert!(all.iter().sum::<usize>() < 130 + 100, "{all:?}");
    assert_eq!(all[99], 1, "one message alone in any case");
    // Who keeps up is not held to account for them.
    drop(hub);
    drop(many);
    assert_eq!(held(&Outbox::new(waiting)), 8, "what was held is given back");
}

#[tokio::test]
async fn a_message_that_stops_half_way_ends_its_connection_and_silence_does_not() {
    let limits =
        BodyLimits { most: 1 << 20, total: 4 << 20, small: 1 << 10, time: Duration::from_millis(200) };
    let room = Room::new(limits);
    let half = frame(TEXT, &[b' '; 100]);
    let in_pieces = frame(0x01, b"{");
    let pinging = [frame(0x01, b"{"), frame(0x89, b"")].concat();
    for (what, bytes) in [
        ("a head", &half[..1]),
        ("a mask", &half[..4]),
        ("a payload", &half[..50]),
        ("a message", &in_pieces[..]),
        ("a message with pings", &pinging[..]),
        ("a control frame", &frame(0x89, b"ping")[..8]),
    ] {
        let (mut stream, theirs) = tokio::io::duplex(1 << 10);
        stream.write_all(bytes).await.unwrap();
        let outbox = Outbox::new(Waiting::default());
        let mut answer = Vec::new();
        let serving = serve(theirs, hyper::body::Bytes::new(), &room, &outbox, drop);
        let (_, read) = tokio::join!(serving, timeout(PATIENCE, stream.read_to_end(&mut answer)));
        read.expect("an end").unwrap();
        assert!(answer.ends_with(&[0x88, 2, 0x03, 0xf0]), "{what}: {answer:?}");
    }
    let (mut stream, theirs) = tokio::io::duplex(1 << 10);
    let outbox = Outbox::new(Waiting::default());
    let (heard, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let first = hyper::body::Bytes::from(frame(TEXT, b"first"));
    let serving = serve(theirs, first, &room, &outbox, |it| heard.send(it.bytes).unwrap());
    let client = async {
        assert_eq!(messages.recv().await.unwrap(), b"first", "what came behind the request");
        // tidy: sleeps because it is a peer whose silence is tried
        tokio::time::sleep(Duration::from_millis(600)).await;
        stream.write_all(&frame(TEXT, b"second")).await.unwrap();
        assert_eq!(messages.recv().await.unwrap(), b"second", "long after its time, had it begun");
        drop(stream);
    };
    tokio::join!(serving, client);
    assert!(outbox.is_closed());
}

#[test]
fn heads_of_all_lengths_are_what_the_document_says() {
    // The helper above writes them; this is what it is held against. RFC 6455, 5.7.
    assert_eq!(head(0x82, 0, 256), [0x82, 0x7e, 0x01, 0x00]);
    assert_eq!(head(0x82, 0, 65_536), [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(head(0x81, 0x80, 5), [0x81, 0x85]);
}
