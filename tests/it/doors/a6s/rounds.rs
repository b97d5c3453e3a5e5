//! The steps around the work of an agent in an execution: the context of the workspace, commands that tidy up and
//! check, a reviewer, and phases that are runs of their own. Real commands in the real jail.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::rules::{allow, approvers, ask, policy};
use crate::support::{Daemon, World, eventually};

/// An agent that is a few lines of shell, in the place of a language model.
fn agent(id: &str, script: &str, more: &str) -> String {
    format!("[[agent]]\nid = \"{id}\"\ncommand = [\"/bin/sh\", \"-c\", '''{script}''']\n{more}\n")
}

/// Writes a list that is in no order.
const LISTS: &str = "cat > /dev/null; printf 'b\\na\\n' > list.txt; echo wrote a list";

fn started(configuration: &str) -> (World, Daemon, Socket) {
    let world = World::new();
    world.configure(&format!("{OPEN}{configuration}"));
    let daemon = world.start();
    let socket = Socket::open(Http::a6s(&world));
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    (world, daemon, socket)
}

/// The whole execution, when it is over.
fn invoke(socket: &mut Socket, agent: &str, task: &str) -> Value {
    let begun = socket.result("agents.invoke", &json!({ "agentType": agent, "task": task }));
    let id = begun["executionId"].as_str().unwrap().to_owned();
    let mut seen = std::mem::take(&mut socket.aside);
    loop {
        let is_last = |it: &&Value| it["type"] == "execution.complete" && it["data"]["executionId"] == *id;
        if let Some(last) = seen.iter().find(is_last) {
            return last["data"].clone();
        }
        seen = vec![socket.message()];
    }
}

fn paths(whole: &Value) -> Vec<&str> {
    whole["artifacts"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect()
}

#[track_caller]
fn content<'a>(whole: &'a Value, path: &str) -> &'a str {
    let found = whole["artifacts"].as_array().unwrap().iter().find(|it| it["path"] == path);
    found.unwrap_or_else(|| panic!("{path}: {whole}"))["content"].as_str().unwrap()
}

fn phases(whole: &Value) -> Vec<&str> {
    whole["phases"].as_array().unwrap().iter().map(|it| it["status"].as_str().unwrap()).collect()
}

#[test]
fn what_was_changed_is_tidied_up_and_checked_where_it_is() {
    let rounds = "fix = [[\"sort\", \"-o\", \"list.txt\", \"list.txt\"], [\"sh\", \"-c\", \"env > env.txt; cat >> env.txt\"]]\n\
                  check = [[\"grep\", \"a\", \"list.txt\"], [\"sh\", \"-c\", \"echo '```'; echo aside >&2; touch made; exit 4\"]]\n\
                  env = { CODER = \"1\" }\n";
    let (world, _daemon, mut socket) = started(&agent("coder-ai", LISTS, rounds));
    let whole = invoke(&mut socket, "coder-ai", "make a list");
    assert_eq!((&whole["status"], whole.get("error")), (&json!("success"), None), "{whole}");
    assert!(whole["phases"].as_array().unwrap().iter().all(|it| it["duration"].is_u64()), "{whole}");
    assert_eq!(paths(&whole), ["env.txt", "list.txt", ".provost/checks.md"]);
    assert_eq!(content(&whole, "list.txt"), "a\nb\n");
    let env = content(&whole, "env.txt");
    assert!(env.contains("PROVOST_PHASE=optimize\n") && env.contains("CODER=1\n"), "{env}");
    assert!(!env.contains("make a list"), "a command is told nothing of the task: {env}");
    let checks = content(&whole, ".provost/checks.md");
    assert!(checks.starts_with("# Checks\n\n1 of 2 passed.\n\n## `grep a list.txt`\n\npassed\n"), "{checks}");
    assert!(
        checks.contains(" failed: exit code 4\n") && checks.contains("````\n```\naside\n````"),
        "{checks}"
    );
    assert!(!world.repo().join("list.txt").exists());
    let tasks = world.command(&["task", "list", "--json"]).output().unwrap();
    let tasks = String::from_utf8_lossy(&tasks.stdout).into_owned();
    let job = whole["executionId"].as_str().unwrap().replace("exec_", "job_");
    assert!(tasks.contains(&format!("{job}.5")), "each command is a task like any other: {tasks}");
    eventually("its copy is given back", || {
        std::fs::read_dir(world.state_dir().with_extension("copies")).unwrap().next().is_none()
    });
}

#[test]
fn what_fails_first_ends_the_execution_in_its_phase_and_nothing_comes_after_it() {
    let agents = [
        agent("broken-ai", "echo no idea >&2; exit 3", "fix = [[\"touch\", \"never\"]]\n"),
        agent(
            "fix-ai",
            LISTS,
            "fix = [[\"sh\", \"-c\", \"echo bad; echo worse >&2; exit 2\"], [\"touch\", \"never\"]]\n",
        ),
        agent("lost-ai", LISTS, "fix = [[\"no-such-program-at-all\", \"x\"]]\n"),
        agent(
            "check-ai",
            LISTS,
            "checks = \"required\"\ncheck = [[\"sh\", \"-c\", \"echo wrong >&2; exit 1\"], [\"true\"]]\n",
        ),
    ];
    let (_world, _daemon, mut socket) = started(&agents.concat());
    let mut whole = |agent: &str| invoke(&mut socket, agent, "make a list");
    let failed = |whole: &Value, phase: usize, error: &str| {
        assert_eq!(whole["status"], "failure", "{whole}");
        let said = whole["error"].as_str().unwrap();
        assert!(said.starts_with(error), "{said}");
        let words: Vec<&str> = (0..5)
            .map(|n| ["completed", "failed", "pending"][1 + usize::from(n > phase) - usize::from(n < phase)])
            .collect();
        assert_eq!(phases(whole), words);
    };
    let broken = whole("broken-ai");
    failed(&broken, 2, "generate: Worker '/bin/sh' failed: ");
    assert!(broken["error"].as_str().unwrap().contains("no idea"), "{broken}");
    let fix = whole("fix-ai");
    failed(&fix, 3, "optimize: `sh -c 'echo bad; echo worse >&2; exit 2'` failed: exit code 2\nworse");
    assert_eq!(paths(&fix), ["list.txt"], "what the agent has done is not lost");
    failed(&whole("lost-ai"), 3, "optimize: `no-such-program-at-all x` failed: there is no executable");
    let check = whole("check-ai");
    failed(&check, 4, "review: `sh -c 'echo wrong >&2; exit 1'` failed: exit code 1\nwrong");
    assert!(
        content(&check, ".provost/checks.md").contains("1 of 2 passed"),
        "the others are run all the same"
    );
}

#[test]
fn a_reviewer_looks_at_what_was_changed_and_changes_nothing() {
    let agents = [
        agent("coder-ai", LISTS, "reviewer = \"critic-ai\"\n"),
        agent(
            "critic-ai",
            "cat; cat list.txt; echo mine > list.txt; echo looks fine",
            "methods = [\"code.review\"]\n",
        ),
        agent("strict-ai", LISTS, "reviewer = \"grumpy-ai\"\nchecks = \"required\"\n"),
        agent("lax-ai", LISTS, "reviewer = \"grumpy-ai\"\n"),
        agent("grumpy-ai", "echo so bad; echo out of order >&2; exit 9", ""),
    ];
    let (_world, _daemon, mut socket) = started(&agents.concat());
    let whole = invoke(&mut socket, "coder-ai", "make a list");
    assert_eq!(
        (&whole["status"], paths(&whole)),
        (&json!("success"), vec!["list.txt", ".provost/review.md"])
    );
    assert_eq!(content(&whole, "list.txt"), "b\na\n", "what a reviewer changes is not kept");
    let review = content(&whole, ".provost/review.md");
    assert!(review.ends_with("b\na\nlooks fine") || review.ends_with("b\na\nlooks fine\n"), "{review}");
    assert!(review.contains("make a list") && review.contains("- list.txt (written)"), "{review}");
    assert!(review.contains("wrote a list"), "it is told what the agent has said: {review}");
    let log = &whole["artifacts"][1];
    assert_eq!((&log["type"], &log["language"]), (&json!("log"), &json!("markdown")));

    let whole = invoke(&mut socket, "lax-ai", "make a list");
    assert_eq!(whole["status"], "success", "{whole}");
    let review = content(&whole, ".provost/review.md");
    assert!(review.starts_with("The reviewer failed: ") && review.contains("so bad"), "{review}");
    let whole = invoke(&mut socket, "strict-ai", "make a list");
    assert_eq!(whole["status"], "failure", "{whole}");
    assert!(whole["error"].as_str().unwrap().starts_with("review: "), "{whole}");
    assert!(whole["error"].as_str().unwrap().contains("out of order"), "{whole}");
}

/// Keeps what it was told, and says which phase it is in.
const EACH: &str = "cat > told-$PROVOST_PHASE.txt; echo \"the answer of $PROVOST_PHASE\"";

#[test]
fn in_a_pipeline_each_phase_is_a_run_that_is_told_what_the_one_before_has_answered() {
    let agents = [
        agent("coder-ai", EACH, "mode = \"pipeline\"\nfix = [[\"sh\", \"-c\", \"ls told-* > seen.txt\"]]\n"),
        agent("thinker-ai", "cat > thought.txt; echo the answer of a thinker", ""),
        agent("single-ai", EACH, "mode = \"single\"\n"),
    ];
    let prompts = "[a6s.pipeline]\ninspect = \"thinker-ai\"\n\
                   [a6s.pipeline.prompts]\noptimize = \"Polish it: {task} {previous}\"\n";
    let (_world, _daemon, mut socket) =
        started(&format!("mode = \"pipeline\"\n{}{prompts}", agents.concat()));
    let whole = invoke(&mut socket, "coder-ai", "make `a` list");
    assert_eq!(whole["status"], "success", "{whole}");
    assert_eq!(
        paths(&whole),
        [
            "seen.txt",
            "thought.txt",
            "told-generate.txt",
            "told-optimize.txt",
            "told-research.txt",
            ".provost/review.md"
        ]
    );
    for (path, before) in [
        ("thought.txt", "the answer of research"),
        ("told-generate.txt", "the answer of a thinker"),
        ("told-optimize.txt", "the answer of generate"),
    ] {
        let told = content(&whole, path);
        assert!(told.contains("make `a` list") && told.contains(&format!("```\n{before}\n```")), "{told}");
    }
    assert!(content(&whole, "told-optimize.txt").starts_with("Polish it: make `a` list"));
    assert_eq!(content(&whole, "seen.txt").lines().count(), 3, "all work in one copy");
    assert_eq!(content(&whole, ".provost/review.md").trim(), "the answer of review");
    let whole = invoke(&mut socket, "single-ai", "make a list");
    assert_eq!(paths(&whole), ["told-generate.txt"], "an agent's own word comes first");
}

#[test]
fn a_phase_that_nobody_can_do_fails_and_says_who_was_meant() {
    let pipeline = "[a6s.pipeline]\noptimize = \"nobody-ai\"\n";
    let more = format!("mode = \"pipeline\"\n{}{pipeline}", agent("coder-ai", EACH, ""));
    let (_world, _daemon, mut socket) = started(&more);
    let whole = invoke(&mut socket, "coder-ai", "make a list");
    assert_eq!(whole["error"], "optimize: no agent that can be used is called nobody-ai", "{whole}");
    assert_eq!(phases(&whole), ["completed", "completed", "completed", "failed", "pending"]);
    assert!(paths(&whole).contains(&"told-generate.txt"));
}

#[test]
fn an_agent_that_changes_nothing_leaves_what_it_has_said() {
    let agents = [
        agent("text-ai", "cat > /dev/null; echo '# All there is'", "output = \"text\"\n"),
        agent("silent-ai", "cat > /dev/null", ""),
    ];
    let (_world, _daemon, mut socket) = started(&agents.concat());
    let whole = invoke(&mut socket, "text-ai", "explain");
    let path = format!(".provost/{}.md", whole["executionId"].as_str().unwrap());
    assert_eq!(paths(&whole), [&*path]);
    assert_eq!(
        (content(&whole, &path).trim(), &whole["artifacts"][0]["type"]),
        ("# All there is", &json!("log"))
    );
    assert!(whole["artifacts"][0]["id"].as_str().unwrap().starts_with("art_"));
    let applied = socket.result("artifacts.apply", &json!({ "artifacts": whole["artifacts"] }));
    assert_eq!((&applied["applied"], &applied["skipped"]), (&json!(0), &json!(1)), "{applied}");
    assert_eq!(paths(&invoke(&mut socket, "silent-ai", "explain")), Vec::<&str>::new());
}

#[test]
fn an_agent_is_told_how_the_workspace_stands() {
    let (world, _daemon, mut socket) = started(&agent("coder-ai", "cat", "output = \"text\"\n"));
    world.put(&world.repo().join("new ``` file.txt"), "x");
    let whole = invoke(&mut socket, "coder-ai", "look around");
    let told = whole["artifacts"][0]["content"].as_str().unwrap();
    assert!(told.contains("The workspace, as `git status` has it:\n## "), "{told}");
    assert!(told.contains("\n?? new ``` file.txt\n````"), "it stands between fences, as data: {told}");
}

/// Returns the events of an execution, until one satisfies the condition.
fn until(socket: &mut Socket, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut seen = std::mem::take(&mut socket.aside);
    while !seen.iter().any(&wanted) {
        seen.push(socket.message());
    }
    seen
}

fn begin(socket: &mut Socket, agent: &str) -> String {
    let begun = socket.result("agents.invoke", &json!({ "agentType": agent, "task": "make a list" }));
    begun["executionId"].as_str().unwrap().to_owned()
}

fn copies(world: &World) -> usize {
    std::fs::read_dir(world.state_dir().with_extension("copies")).map_or(0, Iterator::count)
}

#[test]
fn progress_goes_from_command_to_command() {
    let rounds = "fix = [[\"true\"], [\"sleep\", \"1\"], [\"true\"]]\ncheck = [[\"sleep\", \"1\"]]\n";
    let (_world, _daemon, mut socket) = started(&agent("coder-ai", LISTS, rounds));
    begin(&mut socket, "coder-ai");
    let seen = until(&mut socket, |it| it["type"] == "execution.complete");
    for (phase, least, most) in [("optimize", 33, 66), ("review", 50, 99)] {
        let told = seen.iter().filter(|it| it["type"] == "phase.update" && it["data"]["phase"] == phase);
        let told: Vec<u64> = told.map(|it| it["data"]["progress"].as_u64().unwrap()).collect();
        assert!(told.is_sorted() && told.last() == Some(&100), "{phase}: {told:?}");
        assert!(told.iter().any(|it| (least..=most).contains(it)), "{phase}: {told:?}");
    }
}

#[test]
fn what_is_taken_back_between_two_runs_leaves_neither_process_nor_copy() {
    let rounds = "fix = [[\"sleep\", \"987652\"], [\"touch\", \"never\"]]\n";
    let (world, _daemon, mut socket) = started(&agent("coder-ai", LISTS, rounds));
    let execution = begin(&mut socket, "coder-ai");
    until(&mut socket, |it| it["data"]["phase"] == "optimize");
    eventually("the command runs", || {
        let found = std::process::Command::new("pgrep").args(["-f", "sleep 987652"]).output().unwrap();
        !found.stdout.is_empty()
    });
    assert_eq!(copies(&world), 1);
    assert!(socket.result("workflows.cancel", &json!({ "executionId": execution })).is_null());
    let seen = until(&mut socket, |it| it["type"] == "execution.complete");
    let whole = &seen.last().unwrap()["data"];
    assert_eq!((&whole["error"], &whole["cancelled"]), (&json!("cancelled"), &json!(true)), "{whole}");
    assert_eq!(phases(whole), ["completed", "completed", "completed", "failed", "pending"]);
    eventually("nothing of it is left", || {
        let found = std::process::Command::new("pgrep").args(["-f", "sleep 987652"]).output().unwrap();
        found.stdout.is_empty() && copies(&world) == 0
    });
}

/// Somebody looks at what one of the agents is to do.
fn looks_at(whom: &str) -> String {
    let action = "when.action = [\"delegate\"]";
    policy([
        ask("\"client:approver\", \"human\"", &[action, whom]),
        allow("others", &[action, "limit.hosts = [\"example.org:443\"]"]),
        approvers(),
    ])
}

#[test]
fn who_approves_a_command_sees_which_it_is() {
    let world = World::new();
    world.rule(&looks_at("when.network = [\"none\"]"));
    let hosts =
        "network = \"hosts\"\nhosts = [\"example.org:443\"]\nfix = [[\"sh\", \"-c\", \"echo > made.txt\"]]\n";
    world.configure(&format!("{OPEN}{}", agent("coder-ai", LISTS, hosts)));
    let daemon = world.start();
    let approver = world.approver(&daemon);
    let mut socket = Socket::open(Http::a6s(&world));
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let execution = begin(&mut socket, "coder-ai");
    let words = |args: &[&str]| {
        let said = world.command(args).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let question = approver.poll_until(|it| it["msg_type"] == "APPROVAL");
    let command = &question["payload"]["details"]["errand"]["command"];
    assert_eq!(*command, json!(["sh", "-c", "echo > made.txt"]), "{question}");
    let waiting: Value = serde_json::from_str(&words(&["approval", "list", "--json"])).unwrap();
    let id = waiting.as_array().map_or(&waiting, |all| &all[0])["id"].to_string();
    // It is shown before it is refused: nobody is at a terminal here.
    let shown = words(&["approve", &id]);
    assert!(shown.contains("runs instead") && shown.contains("\"sh\" \"-c\" \"echo > made.txt\""), "{shown}");
    assert!(shown.contains("network       none\n"), "the agent's own is not for it: {shown}");
    let decision = json!({ "status": "granted", "note": "looked at" });
    approver.say_to("APPROVAL_DECISION", question["msg_id"].as_str().unwrap(), "orchestrator", decision);
    let seen = until(&mut socket, |it| it["type"] == "execution.complete");
    let whole = &seen.last().unwrap()["data"];
    assert_eq!((&whole["executionId"], &whole["status"]), (&json!(execution), &json!("success")), "{whole}");
    assert_eq!(paths(whole), ["list.txt", "made.txt"]);
}

#[test]
fn an_execution_that_a_restart_has_cut_off_leaves_nothing_to_be_approved() {
    let world = World::new();
    world.rule(&looks_at("when.worker = [\"critic-ai\"]"));
    let agents = agent("coder-ai", LISTS, "reviewer = \"critic-ai\"\n") + &agent("critic-ai", "cat", "");
    world.configure(&format!("{OPEN}{agents}"));
    let mut daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    socket.stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let execution = begin(&mut socket, "coder-ai");
    let open = || {
        let open = world.command(&["approval", "list", "--json"]).output().unwrap();
        String::from_utf8(open.stdout).unwrap()
    };
    let waits = format!("{}.2", execution.replace("exec_", "job_"));
    eventually("the reviewer waits for somebody's word", || open().contains(&waits));
    let shown = open();
    assert!(
        shown.contains("\"copy\"") && shown.contains("\"review\""),
        "what it is a part of is shown: {shown}"
    );
    daemon.kill();
    let _daemon = world.start();
    let mut socket = Socket::open(Http::a6s(&world));
    let whole = socket.result("execution.status", &json!({ "executionId": execution }));
    assert_eq!((&whole["status"], &whole["error"]), (&json!("failure"), &json!("daemon restarted")));
    assert!(!open().contains(&waits), "{}", open());
    assert_eq!(copies(&world), 0, "and its copy went with its daemon");
}
