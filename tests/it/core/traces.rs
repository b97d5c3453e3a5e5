//! Traces that requests bring, at each door, over restarts and over hosts, as a collector reads them.

use std::collections::BTreeSet;

use provost::base::{ApplyId, ApprovalId, Digest, EventSeq, HostId, TaskId, Timestamp, TraceContext};
use provost::domain::command::Status;
use provost::domain::{ApplyEvent, Event, EventKind, Verdict};
use provost::telemetry::Traces;
use serde_json::{Value, json};

use super::tasks_of_hosts::{builder, host_of, is, machines, rules};
use crate::support::World;
use crate::support::collector::{configured, hex, known, of_task, spans, world};
use crate::support::desk::{ask, file};
use crate::support::loopback_client::Http;
use crate::support::mcp_host::Host;
use crate::support::own_api::own;
use crate::support::receiver::Receiver;
use crate::support::rules::{ALLOW, ASK};
use crate::support::terminal::at_the_terminal;
use crate::support::waits::until_some;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// The header of a span in the trace, which is recorded.
fn header(span: &str) -> String {
    format!("00-{TRACE}-{span}-01")
}

/// A delegation over the own API: its status, and what was answered.
fn asked(world: &World, trace: &str, body: &Value) -> (u16, Value) {
    own(world, ("POST", "/delegate"), &[("x-provost-agent", "ada"), ("traceparent", trace)], body)
}

fn delegate(world: &World, trace: &str, body: &Value) {
    let (status, said) = asked(world, trace, body);
    assert_eq!(status, 200, "{said}");
}

fn says_its_span(id: &str) -> Value {
    json!({ "task": id, "goal": "echo $TRACEPARENT", "worker": "shell" })
}

/// Returns the command line's text about a task that is over.
fn shown(world: &World, task: &str) -> String {
    let out = world.by("ada", &["task", "show", task]).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn a_task_is_within_the_span_that_its_request_names_and_so_is_its_worker() {
    let receiver = Receiver::plain();
    let world = world(ALLOW, receiver.port, "commands = 0");
    let _daemon = world.start();
    delegate(&world, &header(SPAN), &says_its_span("t1"));
    let its = of_task(&receiver, "t1");
    let root = &its["task"];
    assert_eq!((hex(&root.trace_id).as_str(), hex(&root.parent_span_id).as_str()), (TRACE, SPAN));
    assert_eq!(its["run"].parent_span_id, root.span_id);
    let parent = header(&hex(&its["run"].span_id));
    assert!(shown(&world, "t1").contains(&parent), "{parent}: {}", shown(&world, "t1"));
    // A member of the request counts before the header.
    let mut said = says_its_span("t2");
    said["traceparent"] = json!(header("aaaaaaaaaaaaaaaa"));
    delegate(&world, &header(SPAN), &said);
    assert_eq!(hex(&of_task(&receiver, "t2")["task"].parent_span_id), "aaaaaaaaaaaaaaaa");
    // What the caller does not record is sent nevertheless, and its worker is told so.
    delegate(&world, &header(SPAN).replace("-01", "-00"), &says_its_span("t3"));
    let run = hex(&of_task(&receiver, "t3")["run"].span_id);
    assert!(shown(&world, "t3").contains(&format!("00-{TRACE}-{run}-00")), "{}", shown(&world, "t3"));
    for (n, no_header) in [
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "nothing",
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("no-{n}");
        delegate(&world, no_header, &says_its_span(&id));
        let root = &of_task(&receiver, &id)["task"];
        assert!(root.parent_span_id.is_empty() && hex(&root.trace_id) != TRACE, "{no_header}");
    }
}

#[test]
fn a_repeat_within_another_span_is_the_same_request_and_its_approval_counts() {
    let receiver = Receiver::plain();
    let world = world(ASK, receiver.port, "commands = 0");
    let daemon = world.start();
    let body = says_its_span("t1");
    let (status, first) = asked(&world, &header(SPAN), &body);
    let again = asked(&world, &header("bbbbbbbbbbbbbbbb"), &body);
    assert_eq!(again, (status, first.clone()), "it waits for the same answer");
    let (status, other) =
        asked(&world, &header(SPAN), &json!({ "task": "t1", "goal": "true", "worker": "shell" }));
    assert_eq!((status, &other["error"]), (409, &json!("task_exists")), "{other}");
    // The trace is kept with the question, over a restart too.
    daemon.stop();
    let _daemon = world.start();
    assert!(at_the_terminal(&world, "approve 1").status.success());
    let its = of_task(&receiver, "t1");
    assert_eq!(
        (hex(&its["task"].trace_id).as_str(), hex(&its["task"].parent_span_id).as_str()),
        (TRACE, SPAN)
    );
    let run = header(&hex(&its["run"].span_id));
    assert!(shown(&world, "t1").contains(&run), "{run}: {}", shown(&world, "t1"));
    delegate(&world, &header("cccccccccccccccc"), &body);
    delegate(&world, "", &body);
    assert_eq!(spans(&receiver).iter().filter(|it| it.name == "task").count(), 1);
}

#[test]
fn a_task_that_goes_on_over_a_start_stays_in_its_trace() {
    let receiver = Receiver::plain();
    let world = world(ALLOW, receiver.port, "commands = 0");
    world.configure(&format!(
        "{}[workers.robot]\ntype = \"polling\"\n",
        configured(receiver.port, "commands = 0")
    ));
    let daemon = world.start();
    delegate(&world, &header(SPAN), &json!({ "task": "t1", "goal": "wait", "worker": "robot" }));
    daemon.stop();
    let _daemon = world.start();
    world.done("ada", &["task", "cancel", "t1"]);
    let root = &of_task(&receiver, "t1")["task"];
    assert_eq!((hex(&root.trace_id).as_str(), hex(&root.parent_span_id).as_str()), (TRACE, SPAN));
}

#[test]
fn what_is_denied_is_in_the_trace_of_its_request() {
    let receiver = Receiver::plain();
    let world = world("version = 1\ndefault = \"deny\"\n", receiver.port, "commands = 0");
    let _daemon = world.start();
    let (_, said) = asked(&world, &header(SPAN), &says_its_span("t1"));
    assert_eq!(said["state"], "denied", "{said}");
    let root = &of_task(&receiver, "t1")["task"];
    assert_eq!((hex(&root.trace_id).as_str(), hex(&root.parent_span_id).as_str()), (TRACE, SPAN));
}

#[test]
fn calls_of_mcp_bring_their_trace_over_http_and_in_a_program_of_the_hosts() {
    let receiver = Receiver::plain();
    let world = world(ALLOW, receiver.port, "commands = 0");
    let _daemon = world.start();
    let call = |id: &str, meta: Value| {
        let arguments = json!({ "goal": "true", "worker": "shell", "task_id": id });
        let mut params = json!({ "name": "delegate", "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        } });
        meta.as_object().unwrap().iter().for_each(|(name, it)| params["_meta"][name] = it.clone());
        params
    };
    let over_http = |id: &str, meta: Value, trace: &str| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call(id, meta) });
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "delegate"),
            ("traceparent", trace),
        ];
        let answer = Http::mcp(&world).send("POST /mcp?agent=ada", &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    };
    over_http("header", json!({}), &header(SPAN));
    over_http("meta", json!({ "traceparent": header("aaaaaaaaaaaaaaaa") }), &header(SPAN));
    let mut program = world.command(&["mcp", "--as", "ada"]);
    program.env("TRACEPARENT", header("bbbbbbbbbbbbbbbb"));
    let mut host = Host::of(program).declaring(json!({}));
    host.ask("tools/call", call("environment", json!({})));
    host.ask("tools/call", call("said", json!({ "traceparent": header("cccccccccccccccc") })));
    for (task, span) in [
        ("header", SPAN),
        ("meta", "aaaaaaaaaaaaaaaa"),
        ("environment", "bbbbbbbbbbbbbbbb"),
        ("said", "cccccccccccccccc"),
    ] {
        // All are in one trace.
        let root = until_some("the task's span", || {
            let is_it = |it: &String| it == task;
            let all = spans(&receiver).into_iter();
            all.filter(|it| it.name == "task").find(|it| known(it).get("provost.task.id").is_some_and(is_it))
        });
        assert_eq!(
            (hex(&root.trace_id).as_str(), hex(&root.parent_span_id).as_str()),
            (TRACE, span),
            "{task}"
        );
    }
}

#[test]
fn a_task_that_was_tried_again_says_how_often_it_has_begun() {
    let receiver = Receiver::plain();
    let world = world(ALLOW, receiver.port, "");
    let flaky = "[workers.flaky]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\n\
                 retries = 1\nretry_delay = \"1s\"\n";
    world.configure(&format!("{}{flaky}", configured(receiver.port, "commands = 0")));
    let _daemon = world.start();
    delegate(&world, &header(SPAN), &json!({ "task": "t1", "goal": "exit 3", "worker": "flaky" }));
    let its = of_task(&receiver, "t1");
    assert_eq!(known(&its["task"])["provost.attempts"], "2");
    assert!(its["run"].start_time_unix_nano < its["run"].end_time_unix_nano);
    assert_eq!(spans(&receiver).iter().filter(|it| it.name == "run").count(), 1, "one span for all attempts");
}

#[test]
fn each_apply_of_a_tasks_changes_is_in_its_trace_and_says_what_was_not_written() {
    let receiver = Receiver::plain();
    let world = world(&rules(), receiver.port, "commands = 0");
    world.configure(&format!("{}{}", configured(receiver.port, "commands = 0"), builder("")));
    let names = ["first-file", "second-file", "third-file"];
    names.iter().for_each(|it| world.write(it, "old\n"));
    let _daemon = world.start();
    let goal = names.map(|it| format!("echo new >{it}")).join("; ");
    delegate(&world, &header(SPAN), &json!({ "task": "t1", "goal": goal, "worker": "builder" }));
    let root = of_task(&receiver, "t1").remove("task").unwrap();
    assert_eq!(hex(&root.trace_id), TRACE);
    let person = |line: &str, is_done: bool| {
        let ended = at_the_terminal(&world, line);
        assert_eq!(ended.status.success(), is_done, "{line}: {ended:?}");
    };
    person("apply t1 first-file", true);
    world.write("second-file", "mine\n");
    // It would write nothing, so that it does not begin.
    person("apply t1 second-file", false);
    person("apply t1", false);
    person("undo 1", true);
    let artifacts = json!({ "artifacts": [file("fourth-file", "made elsewhere\n")] });
    let (status, said) = ask(&world, "ed", "POST /apply-artifacts", &artifacts);
    assert!(status == 200 && said["applied"] == 1, "{said}");
    let texts = names.map(|it| std::fs::read_to_string(world.repo().join(it)).unwrap());
    assert_eq!(texts, ["old\n", "mine\n", "new\n"]);
    let applies = until_some("the spans of four applies", || {
        let all: Vec<_> = spans(&receiver).into_iter().filter(|it| it.name == "apply").collect();
        (all.len() >= 4).then_some(all)
    });
    let counts = |n: usize| {
        let known = known(&applies[n]);
        let said = ["provost.apply", "provost.files.applied", "provost.files.failed"];
        (said.map(|it| known[it].parse::<u32>().unwrap()), applies[n].status.as_ref().unwrap().code)
    };
    let all: Vec<_> = (0..applies.len()).map(counts).collect();
    assert_eq!(all, [([1, 1, 0], 1), ([2, 1, 1], 2), ([3, 1, 0], 1), ([4, 1, 0], 1)]);
    for it in &applies[..3] {
        assert_eq!((&it.trace_id, &it.parent_span_id), (&root.trace_id, &root.span_id), "{it:?}");
        assert_eq!(known(it)["provost.task.id"], "t1");
        assert!(it.start_time_unix_nano >= root.end_time_unix_nano, "{it:?}");
        assert!(it.start_time_unix_nano <= it.end_time_unix_nano, "{it:?}");
    }
    let ids: BTreeSet<_> = applies.iter().map(|it| it.span_id.clone()).collect();
    assert_eq!(ids.len(), 4, "each is a span of its own");
    // What an editor brings is no task's.
    assert!(applies[3].parent_span_id.is_empty() && applies[3].trace_id != root.trace_id);
    assert!(!known(&applies[3]).contains_key("provost.task.id"));
    assert!(receiver.heard().iter().all(|it| !it.body.contains("-file")), "a path was sent");
}

#[test]
fn without_a_collector_a_worker_is_within_the_span_of_the_command_line() {
    let world = World::new();
    world.rule(ALLOW);
    let _daemon = world.start();
    let args = ["delegate", "echo $TRACEPARENT", "--task", "t1", "--wait"];
    let out = world.by("ada", &args).env("TRACEPARENT", header(SPAN)).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains(&header(SPAN)), "{out:?}");
    // A worker of a task that brings none is told none, whatever the daemon was started with.
    let args = ["delegate", "echo it is ${TRACEPARENT:-none}", "--task", "t2", "--wait"];
    let out = world.by("ada", &args).env_remove("TRACEPARENT").output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("it is none"), "{out:?}");
}

#[test]
fn a_task_of_several_hosts_is_one_trace_that_the_host_sends_which_has_ended_it() {
    let receivers = [(); 2].map(|()| Receiver::plain());
    let telemetry = |it: usize| configured(receivers[it].port, "commands = 0");
    let (machines, _daemons) = machines([&telemetry(0), &format!("{}{}", telemetry(1), builder(""))]);
    let (a, b) = (&machines.all[0], &machines.all[1]);
    let far = json!({ "task": "far", "goal": "echo $TRACEPARENT", "worker": "builder" });
    delegate(a, &header(SPAN), &far);
    assert_eq!(is(a, "far", "completed")["host"], host_of(b));
    let brought = of_task(&receivers[1], "far");
    let names: Vec<&str> = brought.keys().map(String::as_str).collect();
    assert_eq!(names, ["ask", "judge", "queue", "run", "task"]);
    assert_eq!(
        (hex(&brought["task"].trace_id).as_str(), hex(&brought["task"].parent_span_id).as_str()),
        (TRACE, SPAN)
    );
    let run = header(&hex(&brought["run"].span_id));
    assert!(shown(a, "far").contains(&run), "{run}: {}", shown(a, "far"));
    // Without one, both hosts make the same ids.
    delegate(a, "", &json!({ "task": "own", "goal": "echo $TRACEPARENT", "worker": "builder" }));
    is(a, "own", "completed");
    let own = of_task(&receivers[1], "own");
    assert!(own["task"].parent_span_id.is_empty());
    let run = format!("00-{}-{}-01", hex(&own["task"].trace_id), hex(&own["run"].span_id));
    assert!(shown(a, "own").contains(&run), "{run}: {}", shown(a, "own"));
    // What ends at its asker's host is sent by that one.
    let (code, said) =
        super::tasks_of_hosts::delegate(a, "here", "true", &["--on", "none", "--wait-for-host"]);
    assert_eq!(code, 0, "{said}");
    a.done("ada", &["task", "cancel", "here"]);
    of_task(&receivers[0], "here");
    let tasks = |it: &Receiver| -> BTreeSet<String> {
        let roots = spans(it).into_iter().filter(|it| it.name == "task");
        roots.map(|it| known(&it)["provost.task.id"].clone()).collect()
    };
    assert_eq!(tasks(&receivers[0]), ["here".to_owned()].into());
    assert_eq!(tasks(&receivers[1]), ["far".to_owned(), "own".to_owned()].into());
    assert_eq!(spans(&receivers[1]).len(), 10, "each span is sent once");
    machines.check();
}

#[test]
fn of_too_many_traces_the_one_that_was_kept_first_is_forgotten() {
    const MOST: u64 = 20_000;
    let trace = |n: u64| TraceContext::parse(&format!("00-{n:032x}-{n:016x}-01")).unwrap();
    let mut traces = Traces::of(Digest::of(b"a repository"));
    let id = |name: &str| TaskId::parse(name).unwrap();
    // By their names, the last one comes first.
    traces.keep(id("z"), trace(1));
    traces.keep(id("y"), trace(2));
    traces.keep(id("z"), trace(3));
    (3..=MOST).for_each(|n| traces.keep(id(&format!("m{n}")), trace(n)));
    let is_known = |traces: &mut Traces, name: &str, n: u64| {
        traces.begin_apply(ApplyId(n), Timestamp(1), Some(id(name)));
        let (by, errors) = (provost::domain::provost(), 0);
        let ended = ApplyEvent::ApplyEnded {
            apply: ApplyId(n),
            by,
            applied: 1,
            skipped: 0,
            errors,
            broken_off: false,
        };
        let event = Event {
            seq: EventSeq(n),
            at: Timestamp(2),
            actor: provost::domain::provost(),
            kind: ended.into(),
            host: HostId::default(),
        };
        let spans = traces.follow(&event);
        spans[0].ids.0 == trace(n).trace
    };
    assert!(is_known(&mut traces, "z", 3) && is_known(&mut traces, "y", 2) && is_known(&mut traces, "m3", 3));
    traces.keep(id("a"), trace(MOST + 1));
    assert!(!is_known(&mut traces, "y", 2), "it was kept before all others");
    assert!(is_known(&mut traces, "z", 3) && is_known(&mut traces, "a", MOST + 1));
    traces.keep(id("b"), trace(MOST + 2));
    assert!(!is_known(&mut traces, "z", 3));
}

#[test]
fn of_a_task_that_was_there_at_the_start_no_decision_is_told_that_was_not_heard() {
    let mut traces = Traces::of(Digest::of(b"a repository"));
    let id = |name: &str| TaskId::parse(name).unwrap();
    let event = |at: i64, kind: EventKind| {
        let (actor, host) = (provost::domain::provost(), HostId::default());
        Event { seq: EventSeq(1), at: Timestamp(at), actor, kind, host }
    };
    let ended = |task: &str, status| EventKind::TaskFinished {
        task: id(task),
        status,
        failure: None,
        report: Digest::of(b"a report"),
        usage: None,
    };
    let names = |spans: &[provost::telemetry::Span]| spans.iter().map(|it| it.name).collect::<Vec<_>>();
    traces.was_there(&id("runs"), Timestamp(1), None);
    traces.was_there(&id("asks"), Timestamp(1), Some(ApprovalId(7)));
    assert_eq!(names(&traces.follow(&event(2, ended("runs", Status::Completed)))), ["task"]);
    let answered = EventKind::ApprovalAnswered {
        approval: ApprovalId(7),
        verdict: Verdict::Denied,
        proof: "human".into(),
        signed: None,
    };
    traces.follow(&event(3, answered));
    let spans = traces.follow(&event(4, ended("asks", Status::Failed)));
    assert_eq!(names(&spans), ["task", "ask", "judge", "approve"]);
    let said = |of: usize| format!("{:?}", spans[of].attributes);
    assert!(said(2).contains("\"ask\"") && said(3).contains("\"denied\""), "{} {}", said(2), said(3));
    // A task that was refused at once says so.
    let spans = traces.follow(&event(5, ended("no", Status::Failed)));
    assert!(format!("{:?}", spans[2].attributes).contains("\"deny\""));
}
