//! The door that is made for one run: what a jailed worker can say there, and what it cannot anywhere else.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::rules::ALLOW;
use crate::support::{Client, Daemon, Reply, World, eventually};

const LIBRARY: &str = include_str!("worker_door/inside.py");

/// Two workers that run Python, one in each tier, without anybody being asked.
const WORKERS: &str = "\
[workers.ns]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"inside.py\", \"{goal}\"]\nparse_mode = \"text\"\n\
[workers.ll]\ntype = \"cli\"\nbinary = \"/usr/bin/python3\"\nargs = [\"inside.py\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n";

const TIERS: [&str; 2] = ["ns", "ll"];

struct Desk {
    world: World,
    daemon: Daemon,
    client: Client,
}

impl Desk {
    fn new() -> Self {
        let world = World::new();
        let extra = world.path("extra.sock");
        world.configure(&format!("{WORKERS}[devit]\nsocket = {extra:?}\n"));
        world.rule(ALLOW);
        std::fs::write(world.repo().join("inside.py"), LIBRARY).unwrap();
        let daemon = world.start();
        let client = world.client(&daemon, "orch:a");
        Self { world, daemon, client }
    }

    /// Starts a Python program in the jail of a tier.
    fn start(&self, tier: &str, program: &str) -> String {
        let (task, reply) = self.client.delegate(tier, program, json!({}));
        reply.ack();
        task
    }

    /// Runs one to its end and answers what it printed.
    #[track_caller]
    fn run(&self, tier: &str, program: &str) -> Vec<String> {
        let task = self.start(tier, program);
        self.printed(&task)
    }

    #[track_caller]
    fn printed(&self, task: &str) -> Vec<String> {
        let result = self.client.result_of(task);
        assert_eq!(result["status"], "completed", "{result}");
        let stdout = result["artifacts"]["details"]["stdout"].as_str().unwrap_or_default();
        stdout.lines().map(str::to_owned).collect()
    }

    /// The next progress of a task that reaches its delegator.
    fn progress(&self, task: &str) -> Value {
        self.client.poll_until(|it| it["payload"]["task_id"] == task)["payload"].clone()
    }

    /// Refused claims on record.
    fn claims(&self) -> Vec<Value> {
        let output = self.world.command(&["log", "--json", "--limit", "500"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let recorded = events.map(|it| it["kind"]["recorded"].clone());
        recorded.filter(|it| it["what"] == "worker.refused").collect()
    }

    /// The sockets of runs, as they lie on the host.
    fn sockets(&self) -> Vec<PathBuf> {
        let folder = self.daemon.socket.parent().unwrap().join("runs");
        std::fs::read_dir(folder).unwrap().flatten().map(|it| it.path()).collect()
    }

    fn wait_for(&self, file: &str) {
        eventually(file, || self.world.repo().join(file).exists());
    }

    fn touch(&self, file: &str) {
        std::fs::write(self.world.repo().join(file), "").unwrap();
    }
}

/// Waits in the jail for a file that the test makes.
const WAIT: &str = "\nwhile not os.path.exists('go'): time.sleep(0.01)\n";

#[test]
fn progress_from_inside_arrives_at_the_delegator() {
    let desk = Desk::new();
    for tier in TIERS {
        // A word that was not collected yet gives way to the last one, so the last one waits.
        let report = "said(code(Door().say(*report('blocked', 'needs a file', details={'n': 1}))))";
        let task = desk.start(tier, &format!("{report}{WAIT}"));
        let word = desk.progress(&task);
        assert_eq!(
            (&word["status"], &word["artifacts"]["summary"]),
            (&json!("blocked"), &json!("needs a file"))
        );
        assert_eq!(word["artifacts"]["details"]["n"], 1, "{word}");
        desk.touch("go");
        assert_eq!(desk.printed(&task), ["ACK"]);
        std::fs::remove_file(desk.world.repo().join("go")).unwrap();
        let notes = desk.client.task(&task).unwrap()["notifications"].clone();
        assert_eq!((&notes[0]["status"], &notes[1]["status"]), (&json!("blocked"), &json!("completed")));
    }
}

#[test]
fn a_script_reports_with_our_own_program() {
    let world = World::new();
    world.configure(
        "[workers.ll]\ntype = \"cli\"\nbinary = \"/bin/sh\"\nargs = [\"-c\", \"{goal}\"]\nparse_mode = \"text\"\ntier = \"ll\"\n",
    );
    world.rule(ALLOW);
    let daemon = world.start();
    let client = world.client(&daemon, "orch:a");
    // Several at once share the inherited connection of tier ll; each gets its own answer.
    let script = "for i in 1 2 3 4 5; do provost worker report \"step $i\" --percent ${i}0 & done; wait; \
                  provost worker task | grep ^status; provost worker report x --percent 101; echo $?; \
                  while [ ! -e go ]; do sleep 0.02; done; exec 2>&1; DEVIT_IDENT=client:approver provost worker report y; echo $?";
    for worker in ["shell", "ll"] {
        let (task, reply) = client.delegate(worker, script, json!({}));
        reply.ack();
        let mut steps = Vec::new();
        while steps.len() < 5 {
            let word = client.poll_until(|it| it["payload"]["task_id"] == task)["payload"].clone();
            assert_eq!(word["status"], "progress", "{word}");
            steps.push((
                word["artifacts"]["summary"].clone(),
                word["artifacts"]["metadata"]["percent"].clone(),
            ));
        }
        steps.sort_by_key(|step| step.0.to_string());
        let expected: Vec<_> = (1..=5).map(|i| (json!(format!("step {i}")), json!(10 * i))).collect();
        assert_eq!(steps, expected);
        // A last word takes unread progress out of the queue; this one comes after all was read.
        std::fs::write(world.repo().join("go"), "").unwrap();
        let result = client.result_of(&task);
        let stdout = result["artifacts"]["details"]["stdout"].as_str().unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["status", "in_progress"], "{result}");
        assert_eq!(lines[1], "2", "{result}");
        assert!(lines[2].contains(&format!("this door is for {worker}")), "{result}");
        assert_eq!(lines.last().unwrap(), &"4", "{result}");
        std::fs::remove_file(world.repo().join("go")).unwrap();
    }
    let outside = world.command(&["worker", "report", "x"]).output().unwrap();
    assert_eq!(outside.status.code(), Some(2));
}

#[test]
fn a_worker_that_says_it_is_done_is_not_done_before_it_ends() {
    let desk = Desk::new();
    for tier in TIERS {
        let program = format!("said(code(Door().say(*report('completed', 'all done')))){WAIT}sys.exit(3)");
        let task = desk.start(tier, &program);
        let word = desk.progress(&task);
        assert_eq!(
            (&word["status"], &word["artifacts"]["summary"]),
            (&json!("progress"), &json!("all done"))
        );
        assert_eq!(word["artifacts"]["metadata"]["worker_said"], "completed", "{word}");
        assert_eq!(desk.client.task(&task).unwrap()["status"], "in_progress");
        desk.touch("go");
        assert_eq!(desk.client.result_of(&task)["status"], "failed", "its exit code has the last word");
        std::fs::remove_file(desk.world.repo().join("go")).unwrap();
    }
}

#[test]
fn a_claim_to_be_somebody_else_is_refused_and_on_record() {
    let desk = Desk::new();
    for tier in TIERS {
        let program = "\
d = Door()
said(code(d.say('APPROVAL_DECISION', {'status': 'granted'}, sender='client:approver')))
said(code(d.say('APPROVAL_DECISION', {'status': 'granted'})))
said(code(d.say('DELEGATE', {'task': {'goal': 'x'}})))
said(code(d.say('SCREENSHOT', {})))
said(code(d.say(*report('progress', 'x', task='another'))))
said(code(d.say('NOTIFY', {'task_id': TASK, 'status': 'ACK'})))
said(code(d.say('TASK_REQUEST', {'task_id': 'another'})))
said(code(d.say(*report('progress', 'y' * 70000))))
said(code(d.say('WHAT', {})))
said(code(d.say('REGISTER', {'caps': [], 'pid': 1, 'version': 'x'})))
s = d.say('STATUS_REQUEST', {})['payload']
said([t['id'] for t in s['active_tasks']] == [TASK], s['completed_tasks'], s['summary']['total_active'])
said(d.say('TASK_REQUEST', {'task_id': TASK})['payload']['status'])
said(code(d.say('POLL', {})))
";
        let before = desk.claims().len();
        let (other, _) = desk.client.delegate("nobody", "private words", json!({}));
        let task = desk.start(tier, program);
        let forbidden = vec!["E_FORBIDDEN"; 7];
        let rest = ["E_INVALID", "E_INVALID", "ACK", "True [] 1", "in_progress", "nothing"];
        assert_eq!(desk.printed(&task), [forbidden, rest.to_vec()].concat());
        let claims = desk.claims().split_off(before);
        let said: Vec<&str> = claims.iter().map(|it| it["details"]["said"].as_str().unwrap()).collect();
        let expected = [
            "APPROVAL_DECISION",
            "APPROVAL_DECISION",
            "DELEGATE",
            "SCREENSHOT",
            "NOTIFY",
            "NOTIFY",
            "TASK_REQUEST",
        ];
        assert_eq!(said, expected, "{claims:?}");
        assert_eq!(claims[0]["details"]["claimed"], "client:approver");
        assert!(claims.iter().all(|it| it["subject"] == *task && it["details"]["worker"] == tier));
        assert!(desk.client.task(&other).is_none_or(|it| it["notifications"].as_array().unwrap().is_empty()));
    }
}

#[test]
fn claims_without_end_fill_no_log() {
    let desk = Desk::new();
    let program =
        "d = Door()\nfor i in range(30): a = d.say('POLL', {}, sender='client:approver')\nsaid(code(a))";
    assert_eq!(desk.run("ns", program), ["E_FORBIDDEN"]);
    let claims = desk.claims();
    assert_eq!(claims.len(), 9, "{claims:?}");
    assert_eq!(claims[8]["details"]["more"], 22, "{claims:?}");
}

#[test]
fn the_other_doors_are_closed_to_a_worker_that_knows_them() {
    let desk = Desk::new();
    let doors = [desk.daemon.socket.clone(), desk.world.own_socket(), desk.world.path("extra.sock")];
    let secret = desk.world.secret();
    for path in &doors {
        eventually("the control: from outside it opens", || UnixStream::connect(path).is_ok());
    }
    for tier in TIERS {
        let program = format!(
            "for path in {doors:?}:\n    said(attempt(lambda: Door(path).say('POLL', {{}}, secret={secret:?})))\n\
             said(attempt(lambda: code(Door().say('POLL', {{}}, secret={secret:?}))))"
        );
        let printed = desk.run(tier, &program);
        let wall = if tier == "ns" { "FileNotFoundError" } else { "PermissionError" };
        assert_eq!(printed[..3], [wall; 3], "{tier}: {printed:?}");
        let no = if tier == "ns" { "ConnectionResetError" } else { "E_AUTH" };
        assert_eq!(printed[3], no, "the user's secret means nothing at a run's door: {printed:?}");
    }
}

#[test]
fn the_door_of_one_run_is_nobody_elses() {
    let desk = Desk::new();
    let give = format!(
        "open('a', 'w').write(json.dumps([SECRET, TASK]))\nos.rename('a', 'a.json'){WAIT}said(os.path.exists('/run/provost'))"
    );
    let first = desk.start("ns", &give);
    desk.wait_for("a.json");
    let known: Vec<String> =
        serde_json::from_str(&std::fs::read_to_string(desk.world.repo().join("a.json")).unwrap()).unwrap();
    let socket = desk.sockets().remove(0);

    // From outside, by this very user, with the right secret.
    let stranger = Client { socket: socket.clone(), ident: "ns".into(), secret: known[0].clone() };
    assert!(
        matches!(stranger.say("POLL", json!({})), Reply::Reset(_)),
        "a peer outside of any jail is refused"
    );
    // With the run's secret at the user's door.
    let outside = Client { socket: desk.daemon.socket.clone(), ident: "ns".into(), secret: known[0].clone() };
    assert!(
        matches!(outside.say("POLL", json!({})), Reply::Reset(_)),
        "a run's secret is good at its door alone"
    );
    // From another jail, in both tiers.
    for tier in TIERS {
        let program = format!(
            "secret, task = json.load(open('a.json'))\n\
             said(attempt(lambda: Door({socket:?})))\n\
             said(attempt(lambda: code(Door().say(*report('progress', 'x', task=task), secret=secret))))\n\
             said(code(Door().say(*report('progress', 'x', task=task))))"
        );
        let printed = desk.run(tier, &program);
        let wall = if tier == "ns" { "FileNotFoundError" } else { "PermissionError" };
        let no = if tier == "ns" { "ConnectionResetError" } else { "E_AUTH" };
        assert_eq!(printed, [wall, no, "E_FORBIDDEN"], "{tier}");
    }
    desk.touch("go");
    assert_eq!(desk.printed(&first), ["True"]);
    assert!(
        desk.client.task(&first).unwrap()["notifications"].as_array().unwrap().len() == 1,
        "nobody spoke for it"
    );
    assert_eq!(desk.sockets(), Vec::<PathBuf>::new(), "the door is gone with its run");
}

#[test]
fn garbage_and_endless_lines_harm_nobody() {
    let desk = Desk::new();
    let program = "\
for data in [b'garbage\\n', b'{}\\n', b'\\xff\\xfe\\n', b'{\"msg_type\":1}\\n', b'[' * 5000 + b'\\n']:
    said(code(Door().send(data)))
def large():
    d = Door()
    d.socket.sendall(b'x' * (1 << 21) + b'\\n')
    return code(json.loads(d.file.readline() or b'{}'))
if 'DEVIT_SOCK' in os.environ:
    said(attempt(large) in ('E_INVALID', 'ConnectionResetError', 'BrokenPipeError'))
said(code(Door().say(*report('progress', 'still here'))))
";
    for tier in TIERS {
        let printed = desk.run(tier, program);
        assert_eq!(printed[..5], ["E_INVALID"; 5], "{tier}: {printed:?}");
        assert_eq!(printed.last().unwrap(), "ACK", "{tier}: {printed:?}");
        assert!(tier == "ll" || printed[5] == "True", "{printed:?}");
    }
}

#[test]
fn a_flood_from_inside_delays_nobody_and_ends_with_its_run() {
    let desk = Desk::new();
    let program = "\
import threading
open('flood', 'w')
def pour(n):
    while True:
        try:
            d = Door()
            while True: d.send(frame(*report('progress', 'word %d' % n)))
        except OSError: time.sleep(0.01)
for n in range(20): threading.Thread(target=pour, args=(n,)).start()
";
    let tasks: Vec<String> = TIERS.iter().map(|tier| desk.start(tier, program)).collect();
    desk.wait_for("flood");
    for task in &tasks {
        eventually("the flood", || {
            desk.client.task(task).unwrap()["notifications"].as_array().unwrap().len() >= 16
        });
    }
    // Everybody else goes on meanwhile, and the queue of whoever is told holds the newest words only.
    assert_eq!(desk.run("ns", "said(code(Door().say(*report('progress', 'calm'))))"), ["ACK"]);
    for task in &tasks {
        let cancel = json!({ "task_id": task, "status": "cancelled", "artifacts": { "summary": "enough" } });
        desk.client.say("NOTIFY", cancel).ack();
        assert_eq!(desk.client.result_of(task)["status"], "cancelled");
    }
    eventually("the end of the doors", || desk.sockets().is_empty());
}

#[test]
fn what_a_killed_daemon_leaves_is_cleared_by_the_next() {
    let mut desk = Desk::new();
    let task = desk.start("ns", &format!("open('up', 'w'){WAIT}"));
    desk.wait_for("up");
    assert_eq!(desk.sockets().len(), 1);
    desk.daemon.kill();
    assert_eq!(desk.sockets().len(), 1, "the control: a killed daemon removes nothing");
    desk.daemon = desk.world.start();
    assert_eq!(desk.sockets(), Vec::<PathBuf>::new());
    let client = desk.world.client(&desk.daemon, "orch:a");
    assert_eq!(client.result_of(&task)["status"], "failed");
}
