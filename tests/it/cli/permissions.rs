//! Questions about tools of hosts: the rules as scripts over the core, and the hooks that ask, with a real
//! daemon and a person at a terminal.

mod settled;

use std::process::{Child, Command, Stdio};

use provost::base::{ApprovalId, Digest, Json, Ttl};
use provost::domain::command::{AnswerApproval, AskPermission};
use provost::domain::{Answer, EventKind, Failure, PermissionEvent, Refusal, Reply, Verdict};
use serde_json::{Value, json};

use crate::support::loopback_client::Http;
use crate::support::script::{ByWord, RATED, Said, Script, approver, client, person};
use crate::support::terminal::at_the_terminal;
use crate::support::{World, eventually, provost};

fn question(id: &str, tool: &str) -> AskPermission {
    let arguments = Json::from_value(&json!({ "command": "make" }));
    AskPermission {
        id: id.into(),
        host: "claude".into(),
        tool: tool.into(),
        arguments,
        wait: Ttl::minutes(1),
        folder: None,
    }
}

impl Script {
    fn permission(&mut self, who: &str, id: &str, tool: &str) -> Said {
        self.say(&client(who), question(id, tool))
    }

    fn parked(&mut self, who: &str, id: &str, tool: &str) -> ApprovalId {
        match self.permission(who, id, tool) {
            Ok(Answer::Parked(approval)) => approval,
            other => panic!("{other:?}"),
        }
    }

    fn given(&self) -> usize {
        let given =
            |it: &&EventKind| matches!(it, EventKind::Permission(PermissionEvent::PermissionGiven { .. }));
        self.events().into_iter().filter(given).count()
    }
}

fn is_given(said: &Said) -> bool {
    matches!(said, Ok(Answer::Done(Reply::Permitted(_))))
}

fn failure(said: Said) -> Failure {
    match said {
        Ok(Answer::Denied(denial)) => denial.failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_word_is_for_one_question_and_once() {
    let mut s = Script::new();
    assert!(is_given(&s.permission("ada", "q0", "any")));
    assert_eq!(s.given(), 1, "what a rule allows is on record");
    let approval = s.parked("ada", "q1", "ask");
    assert_eq!(s.parked("ada", "q1", "ask"), approval, "the same question is asked once");
    assert_eq!(s.given(), 0);
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    // Neither for another question, nor for somebody else.
    let other = s.parked("ada", "q2", "ask");
    s.parked("bob", "q1", "ask");
    assert!(is_given(&s.permission("ada", "q1", "ask")));
    assert_eq!(s.given(), 1);
    let anew = s.parked("ada", "q1", "ask");
    assert!(anew != approval && anew != other);
}

#[test]
fn no_is_told_with_its_reason_and_silence_is_no_answer() {
    let mut s = Script::new();
    let denied = s.parked("ada", "q1", "ask");
    let note = Some("not today".into());
    let no = AnswerApproval { approval: denied, verdict: Verdict::Denied, note, shown: None, signed: None };
    s.say(&person("owner"), no).unwrap();
    let Failure::ApprovalDenied { note, .. } = failure(s.permission("ada", "q1", "ask")) else { panic!() };
    assert_eq!(note.as_deref(), Some("not today"));
    // Nobody waits longer than the host does, whatever the rule says.
    let late = s.parked("ada", "q2", "ask");
    s.pass(Ttl::minutes(1));
    let too_late = s.answer(&person("owner"), late, Verdict::Granted);
    assert_eq!(too_late, Err(Refusal::ApprovalNotFound(late)));
    assert!(matches!(failure(s.permission("ada", "q2", "ask")), Failure::ApprovalTimeout { .. }));
    assert!(matches!(failure(s.permission("ada", "q3", "never")), Failure::PolicyDenied { .. }));
    for number in 0..RATED {
        s.parked("ada", &format!("r{number}"), "ask-rated");
    }
    assert!(matches!(failure(s.permission("ada", "r9", "ask-rated")), Failure::PolicyDenied { .. }));
}

#[test]
fn nobody_permits_themselves_anything_and_what_is_answered_is_what_was_shown() {
    let mut s = Script::new();
    let own = match s.say(&approver("boss"), question("q1", "ask")) {
        Ok(Answer::Parked(approval)) => approval,
        other => panic!("{other:?}"),
    };
    assert_eq!(s.answer(&approver("boss"), own, Verdict::Granted), Err(Refusal::ApprovalOwn));
    assert!(s.answer(&client("cat"), own, Verdict::Granted).is_err());
    let shown = Some(Digest::of(b"something else"));
    let verb = AnswerApproval { approval: own, verdict: Verdict::Granted, note: None, shown, signed: None };
    assert_eq!(s.say(&person("owner"), verb), Err(Refusal::ApprovalChanged));
    // Rules that have become stricter count.
    s.core.set_judge(Box::new(ByWord { strict: true }));
    s.answer(&person("owner"), own, Verdict::Granted).unwrap();
    assert!(matches!(failure(s.say(&approver("boss"), question("q1", "ask"))), Failure::PolicyDenied { .. }));
}

#[test]
fn a_question_outlives_the_daemon_and_a_word_does_not() {
    let mut s = Script::new();
    let approval = s.parked("ada", "q1", "ask");
    let changes = s.out.changes.clone();
    s.restart_after(Ttl::seconds_clamped(1), &changes);
    assert_eq!(s.parked("ada", "q1", "ask"), approval);
    s.answer(&person("owner"), approval, Verdict::Granted).unwrap();
    let changes = [changes, s.out.changes.clone()].concat();
    s.restart_after(Ttl::seconds_clamped(1), &changes);
    assert_ne!(s.parked("ada", "q1", "ask"), approval);
}

/// A host that has called its hook for a permission request, and waits for it.
struct Asking(Child);

impl Asking {
    fn begin(world: &World, host: &str, wait: &str) -> Self {
        let told = crate::support::host_hooks::recorded(world, &format!("{host}/permission_request"));
        Self::say(world, host, wait, &told, &[])
    }

    /// The same with what the host says, and variables of its own; without a time, as long as the hook waits
    /// by itself.
    fn say(world: &World, host: &str, wait: &str, told: &Value, variables: &[(&str, &str)]) -> Self {
        let like = world.command(&[]);
        let file = world.path("told.json");
        std::fs::write(&file, told.to_string()).unwrap();
        let wait = if wait.is_empty() { String::new() } else { format!("--wait {wait}") };
        // A host of its own, so that the test is not taken for one.
        let line = format!(
            "{} hooks run {host} permission-request {wait} < {}; status=$?; exit $status",
            provost().display(),
            file.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(world.repo()).env_clear();
        shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.envs(variables.iter().copied());
        Self(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// The host's answer; nothing where it is to ask its person itself.
    fn answer(self) -> Value {
        let output = self.0.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        if output.stdout.is_empty() {
            return Value::Null;
        }
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
        said["hookSpecificOutput"]["decision"].clone()
    }
}

fn waiting(world: &World) -> Vec<Value> {
    let output = world.command(&["approval", "list", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one question that waits, once it does.
fn asked(world: &World) -> Value {
    eventually("the question", || waiting(world).len() == 1);
    waiting(world).remove(0)
}

#[test]
fn a_permission_request_waits_in_the_queue_and_the_answer_is_the_hosts() {
    for host in ["claude", "codex"] {
        let world = World::new();
        let _daemon = world.start();
        let asking = Asking::begin(&world, host, "9m");
        let shown = asked(&world);
        assert_eq!(shown["verb"], "AskPermission");
        assert_eq!(shown["tool"], format!("{host}:Bash"));
        assert!(shown["asked_by"].as_str().unwrap().starts_with(host), "{shown}");
        assert_eq!(shown["rule"], "permission.ask");
        let command = shown["request"]["arguments"]["command"].as_str().unwrap();
        let person = at_the_terminal(&world, &format!("approve {}", shown["id"]));
        assert!(person.status.success(), "{person:?}");
        assert!(String::from_utf8_lossy(&person.stdout).contains(command), "{person:?}");
        assert_eq!(asking.answer(), json!({ "behavior": "allow" }));
        let asking = Asking::begin(&world, host, "9m");
        let person = at_the_terminal(&world, &format!("deny {} --reason 'not this'", asked(&world)["id"]));
        assert!(person.status.success(), "{person:?}");
        let no = asking.answer();
        assert_eq!(no["behavior"], "deny");
        assert!(no["message"].as_str().unwrap().contains("not this"), "{no}");
        let log = world.command(&["log", "--json"]).output().unwrap();
        assert!(String::from_utf8(log.stdout).unwrap().contains("permission_given"));
    }
}

/// As a person does it: no agent has the daemon read its rules again.
fn reloaded(world: &World) {
    let ended = world.command(&["daemon", "reload"]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn without_an_answer_the_host_asks_its_person_itself() {
    let world = World::new();
    let _daemon = world.start();
    assert_eq!(Asking::begin(&world, "claude", "1s").answer(), Value::Null);
    eventually("nothing waits any more", || waiting(&world).is_empty());
    // Rules of one's own that do not speak of it leave it to the host; those that deny, deny.
    let rules = |more: &str| {
        format!("version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"mine\"\nreason = \"so it is\"\n{more}\n")
    };
    world.rule(&rules("decision = \"allow\"\nwhen.action = [\"delegate\"]"));
    reloaded(&world);
    assert_eq!(Asking::begin(&world, "claude", "9m").answer(), Value::Null);
    world.rule(&rules("decision = \"deny\"\nwhen.action = [\"permission\"]"));
    reloaded(&world);
    let no = Asking::begin(&world, "claude", "9m").answer();
    assert!(no["behavior"] == "deny" && no["message"].as_str().unwrap().contains("so it is"), "{no}");
    world.rule(&rules("decision = \"allow\"\nwhen.action = [\"permission\"]"));
    reloaded(&world);
    assert_eq!(Asking::begin(&world, "claude", "9m").answer(), json!({ "behavior": "allow" }));
}

#[test]
fn a_model_does_not_answer_for_itself_from_its_hosts_terminal() {
    let world = World::new();
    let _daemon = world.start();
    let told = crate::support::host_hooks::recorded(&world, "claude/permission_request");
    std::fs::write(world.path("told.json"), told.to_string()).unwrap();
    // A host at a terminal, which calls its hook and meanwhile does what a model wants of it.
    let line = format!(
        "(sleep 0; exec {0} hooks run claude permission-request --wait 9m < {1} > {2}) & \
         {0} hooks run claude permission-request --wait 9m < {1} > {2} & \
         n=; while [ -z \"$n\" ]; do n=$({0} approvals --json | grep -m1 '\"id\":' | tr -dc 0-9); done; \
         {0} approve \"$n\"; echo \"ended: $?\"; kill %1 %2",
        provost().display(),
        world.path("told.json").display(),
        world.path("answer").display()
    );
    let mut host = Command::new("script");
    host.args(["-qec", &format!("sh -c '{}'", line.replace('\'', r"'\''")), "/dev/null"]);
    host.current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        host.env(name, value.unwrap());
    }
    let said = String::from_utf8(host.output().unwrap().stdout).unwrap();
    assert!(said.contains("ended: 4"), "{said}");
    // Nobody waits for it any more.
    eventually("the questions of hooks that were killed are gone", || waiting(&world).is_empty());
}

/// A host at a terminal that runs this line and then approves; how that ended.
fn host_that_approves(world: &World, line: &str, approval: &Value) -> String {
    let all =
        format!("{line} >/dev/null 2>&1; {} approve {approval}; echo \"ended: $?\"", provost().display());
    let mut host = Command::new("script");
    host.args(["-qec", &format!("sh -c '{}'", all.replace('\'', r"'\''")), "/dev/null"]);
    host.current_dir(world.repo()).env_clear().stdin(Stdio::null());
    for (name, value) in world.command(&[]).get_envs() {
        host.env(name, value.unwrap());
    }
    String::from_utf8_lossy(&crate::support::apart(&host).stdout).into_owned()
}

#[test]
fn whoever_has_spoken_as_an_agent_at_any_door_is_no_person_and_neither_is_what_runs_below() {
    let world = crate::support::wit_client::world();
    world.rule(crate::support::rules::ASK);
    std::fs::write(world.repo().join("README.md"), "x\n").unwrap();
    world.configure(crate::support::a6s_client::OPEN);
    let daemon = world.start();
    let wit = crate::support::wit_client::Wit::of(&world);
    eventually("the wit door", || wit.socket.exists() && wit.answers());
    let provost = provost().display().to_string();
    let port = |door: Http| door.port;
    let post = |at: String, body: Value| {
        format!(
            "curl --silent -H content-type:application/json -H \"accept: application/json, text/event-stream\" -d \"$(cat {})\" {at}",
            {
                let file = world.path(&format!("body-{}", at.len() * 1_000 + body.to_string().len()));
                std::fs::write(&file, body.to_string()).unwrap();
                file.display().to_string()
            }
        )
    };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "locks_list", "arguments": {}, "_meta": meta } });
    std::fs::write(world.path("call.json"), format!("{call}\n")).unwrap();
    let status = json!({ "type": "agent.status", "agent_id": "feat-model", "payload": { "status": "working", "modified_files": [] } });
    let devit = world.path("frame.py");
    let frame = world.client(&daemon, "model").frame("HEARTBEAT", "h1", "orchestrator", &json!({}));
    std::fs::write(world.path("frame"), format!("{frame}\n")).unwrap();
    let speaks = format!(
        "import socket\nit = socket.socket(socket.AF_UNIX)\nit.connect({:?})\n\
         it.sendall(open({:?}, 'rb').read())\nit.recv(1)\n",
        daemon.socket.display().to_string(),
        world.path("frame").display().to_string()
    );
    std::fs::write(&devit, speaks).unwrap();
    let ways = [
        ("nothing", ":".to_owned(), "ended: 0"),
        ("a look as the user", format!("{provost} status"), "ended: 0"),
        ("own", format!("{provost} intend --as model --file README.md x"), "ended: 4"),
        ("own, and its answer was no", format!("{provost} intend --as human --file README.md x"), "ended: 4"),
        ("mcp", format!("{provost} mcp --as model < {}", world.path("call.json").display()), "ended: 4"),
        (
            "broker",
            post(format!("http://127.0.0.1:{}/publish", port(Http::broker(&world))), status),
            "ended: 4",
        ),
        (
            "agent_protocol",
            post(
                format!("http://127.0.0.1:{}/agents/announce", port(Http::agent_protocol(&world))),
                json!({ "id": "model", "tool": "x" }),
            ),
            "ended: 4",
        ),
        (
            "wit",
            post(
                format!("--unix-socket {} http://localhost/rpc", wit.socket.display()),
                json!({ "jsonrpc": "2.0", "witVersion": "1", "id": 1, "method": "register", "params": { "sessionId": "model", "name": "m" } }),
            ),
            "ended: 4",
        ),
        ("devit", format!("python3 {}", devit.display()), "ended: 4"),
        (
            "a6s",
            format!(
                "curl --silent --max-time 2 --http1.1 -H \"Connection: Upgrade\" -H \"Upgrade: websocket\" \
                 -H \"Sec-WebSocket-Version: 13\" -H \"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\" http://127.0.0.1:{}/ws",
                Http::a6s(&world).port
            ),
            "ended: 4",
        ),
    ];
    for (what, line, ended) in ways {
        let before = waiting(&world).len();
        let output = world.command(&["delegate", "--worker", "shell", "true"]).output().unwrap();
        eventually("the question", || waiting(&world).len() > before);
        let id = waiting(&world).iter().map(|it| it["id"].as_u64().unwrap()).max().unwrap();
        let said = host_that_approves(&world, &line, &json!(id));
        assert!(said.contains(ended), "{what}: {said} {output:?}");
    }
}
