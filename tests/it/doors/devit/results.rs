//! The result of a run becomes its task's last message as DevIt 1.10 describes it, for any output of the worker.

mod bounds;
mod compact;

use std::collections::BTreeMap;

use provost::base::{AgentId, Digest, Json, RuleId, TaskId, Timestamp, Ttl};
use provost::domain::{
    Delegate, Door, Failure, Network, Status, Task, TaskState, Terms, Tier, Tool, WorkerKind,
};
use provost::effects::{End, Outcome, Output, TaskRun, outcome};
use provost::jail::{Bounds, Copies, Limits, ParseMode, Profile, Space};
use serde_json::{Value, json};

/// One run with everything in its most ordinary form; a test changes what it is about.
struct Case {
    task: Task,
    profile: Profile,
    output: Output,
}

fn case(parse: ParseMode, stdout: &str) -> Case {
    let worker = AgentId::parse("coder").unwrap();
    let order = Delegate {
        task: TaskId::parse("t-1").unwrap(),
        goal: "look".into(),
        worker: worker.clone(),
        return_to: None,
        tool: Tool::default(),
        timeout: Ttl::minutes(5),
        model: None,
        context: None,
        watch_patterns: vec![],
        working_dir: None,
        format: None,
        payload: Json::null(),
        errand: None,
        work_tree: None,
        continues: None,
        placement: None,
        trace: None,
    };
    let task = Task {
        request: order.digest(),
        order,
        asked_by: AgentId::parse("orch").unwrap(),
        asked_from: None,
        worked_from: None,
        asked_via: Door::Devit,
        kind: WorkerKind::Cli,
        state: TaskState::Queued { until: Timestamp(0) },
        created_at: Timestamp(1_000),
        updated_at: Timestamp(1_000),
        rule: RuleId::parse("project.delegate").unwrap(),
        terms: Terms::default(),
        directory: None,
        program: Some(Digest::of(b"")),
        network: Network::None,
        tried: 0,
        waits: Vec::new(),
        depth: 0,
        above: None,
        approval: None,
        model_used: None,
        capture: false,
        beside: Vec::new(),
        handoff: None,
        watched: None,
        changes: None,
        talk: None,
        daemon: Default::default(),
        travel: None,
        failure: None,
        notes: vec![],
    };
    let profile = Profile {
        mcp: None,
        acp: None,
        id: worker,
        program: "/opt/coder".into(),
        args: vec![],
        parse,
        working_dir: None,
        timeout: Ttl::minutes(5),
        response_bytes_max: None,
        default_model: None,
        allowed_models: vec![],
        secrets: Vec::new(),
        env: BTreeMap::new(),
        read_only: vec![],
        protect: vec![],
        run_outside: vec![],
        git: Default::default(),
        copies: Copies::No,
        bounds: Bounds::default(),
        agent: None,
    };
    let output = Output { stdout: stdout.into(), ..Output::default() };
    Case { task, profile, output }
}

fn text(stdout: &str) -> Case {
    case(ParseMode::Text, stdout)
}

fn json(stdout: &str) -> Case {
    case(ParseMode::Json, stdout)
}

impl Case {
    fn stderr(mut self, stderr: &str) -> Self {
        self.output.stderr = stderr.into();
        self
    }

    fn at_most(mut self, bytes: usize) -> Self {
        self.profile.response_bytes_max = Some(bytes);
        self
    }

    fn compact(mut self) -> Self {
        self.task.order.format = Some("compact".into());
        self
    }

    fn ends(&self, end: End) -> Outcome {
        self.ends_within(end, &Limits::default(), false)
    }

    fn ends_within(&self, end: End, limits: &Limits, processes_reached: bool) -> Outcome {
        let run = TaskRun {
            task: &self.task,
            profile: &self.profile,
            tier: Some(Tier::Ns),
            model: Some("m-1"),
            started: Some(Timestamp(1_500)),
            ended: Timestamp(3_000),
            limit: Ttl::seconds_clamped(90),
            limits: Some(limits),
            processes_reached,
        };
        outcome(&run, &end, &self.output)
    }

    fn ends_well(&self) -> Outcome {
        self.ends(End::Code(0))
    }
}

fn details(outcome: &Outcome) -> Value {
    outcome.report.details.as_ref().expect("every result has details").value()
}

fn metadata(outcome: &Outcome) -> Value {
    outcome.report.metadata.as_ref().expect("every result has metadata").value()
}

fn summary(outcome: &Outcome) -> &str {
    &outcome.report.summary
}

#[test]
fn text_is_summarised_by_its_beginning() {
    let done = text("  all tests pass\n").stderr("warning: slow\n").ends_well();
    assert_eq!((done.status, summary(&done)), (Status::Completed, "all tests pass"));
    assert_eq!(details(&done), json!({"stdout": "  all tests pass\n", "stderr": "warning: slow"}));
    assert_eq!(done.failure, None);
    assert_eq!(done.model_used.as_deref(), Some("m-1"));

    let long = text(&"é".repeat(400)).ends_well();
    assert_eq!(summary(&long), "é".repeat(120), "240 bytes, and no half characters");
    let odd = text(&format!("x{}", "é".repeat(400))).ends_well();
    assert_eq!(summary(&odd).len(), 239);

    let silent = text(" \n").ends_well();
    assert_eq!(summary(&silent), "Worker coder completed without output");
}

#[test]
fn json_is_summarised_by_the_member_that_speaks() {
    let table = [
        (r#"{"result":"done","response":"no"}"#, "done"),
        (r#"{"response":"answered"}"#, "answered"),
        (r#"{"result":7,"response":"answered"}"#, "answered"),
        (r#"{"content":[{"type":"image"},{"type":"text","text":"said"}]}"#, "said"),
        (r#"{"content":"said"}"#, "Worker completed"),
        (r#"[1,2]"#, "Worker completed"),
        (r#""words""#, "Worker completed"),
    ];
    for (stdout, expected) in table {
        let done = json(stdout).ends_well();
        assert_eq!((done.status, summary(&done)), (Status::Completed, expected), "{stdout}");
        assert_eq!(details(&done), json!({"stdout": serde_json::from_str::<Value>(stdout).unwrap()}));
    }
}

#[test]
fn json_may_be_the_last_line_that_is_some() {
    let done = json("starting\n{\"step\":1}\n{\"result\":\"fine\"}\nbye {\n").stderr("note").ends_well();
    assert_eq!(summary(&done), "fine");
    assert_eq!(details(&done), json!({"stdout": {"result": "fine"}, "stderr": "note"}));
    let pretty = json("{\n  \"result\": \"fine\"\n}\n").ends_well();
    assert_eq!(summary(&pretty), "fine");
    let coloured = json("\u{1b}[32m{\"result\":\"fine\"}\u{1b}[0m\n").ends_well();
    assert_eq!(summary(&coloured), "fine");
}

#[test]
fn output_without_json_fails_where_json_is_promised() {
    for (stdout, word) in [("", "is empty"), ("  \n", "is empty"), ("no data\n", "holds no JSON value")] {
        let failed = json(stdout).ends_well();
        assert_eq!(failed.status, Status::Failed);
        assert!(
            summary(&failed).starts_with("Worker '/opt/coder' failed: its output"),
            "{}",
            summary(&failed)
        );
        assert!(summary(&failed).contains(word));
        assert!(matches!(failed.failure, Some(Failure::WorkerFailed { .. })));
        assert_eq!(details(&failed)["stdout"], stdout);
        assert_eq!(metadata(&failed)["exit_code"], 0);
        assert_ne!(metadata(&failed)["exit_reason"], "success");
    }
}

#[test]
fn json_too_deep_to_be_stored_is_no_json() {
    let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let failed = json(&deep).ends_well();
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(details(&failed)["stdout"], deep.as_str());
    let fine = format!("{}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(json(&fine).ends_well().status, Status::Completed);
}

#[test]
fn every_bad_end_has_its_words() {
    let timeout = Failure::RunTimeout { timeout_s: 90 };
    let worker = |why: &str| Failure::WorkerFailed { why: why.into() };
    let jail = Failure::JailRefused { why: "no user namespaces".into() };
    let table = [
        (End::Code(3), "Worker '/opt/coder' failed: bad luck", 3, "exit code 3", worker("exit code 3")),
        (
            End::Signal(9),
            "Worker '/opt/coder' failed: bad luck",
            -1,
            "terminated by signal",
            worker("terminated by signal 9"),
        ),
        (
            End::TimedOut,
            "Worker execution error: worker timed out after 90s",
            -1,
            "worker timed out after 90s",
            timeout,
        ),
        (
            End::OverMemory,
            "Worker execution error: worker had more memory than it may: over 6 GiB for all its processes together",
            -1,
            "worker had more memory than it may: over 6 GiB for all its processes together",
            worker("worker had more memory than it may: over 6 GiB for all its processes together"),
        ),
        (
            End::SupervisorLost,
            "Worker execution error: worker was killed because its supervisor died",
            -1,
            "worker was killed because its supervisor died",
            worker("worker was killed because its supervisor died"),
        ),
        (
            End::ProtectionLost,
            "Worker execution error: worker was killed because a protected file (git hooks or configuration) was replaced while it ran",
            -1,
            "worker was killed because a protected file (git hooks or configuration) was replaced while it ran",
            worker(
                "worker was killed because a protected file (git hooks or configuration) was replaced while it ran",
            ),
        ),
        (
            End::NotStarted(jail.clone()),
            "Worker execution error: no user namespaces",
            -1,
            "no user namespaces",
            jail,
        ),
        (
            End::Lost("daemon stopped"),
            "Worker coder was lost: daemon stopped while it ran",
            -1,
            "daemon stopped",
            Failure::Lost,
        ),
    ];
    for (end, words, code, reason, failure) in table {
        let failed = text("half done").stderr(" bad luck\n").ends(end);
        assert_eq!((failed.status, summary(&failed)), (Status::Failed, words));
        assert_eq!(failed.failure, Some(failure));
        assert_eq!(details(&failed), json!({"stdout": "half done", "stderr": " bad luck"}));
        assert_eq!(
            (&metadata(&failed)["exit_code"], &metadata(&failed)["exit_reason"]),
            (&json!(code), &json!(reason))
        );
    }
}

/// Each limit is named behind DevIt's words for the end, with its number, and by its key for programs.
#[test]
fn the_end_names_the_limit_that_was_reached() {
    let limits = Limits {
        processes: 40,
        cpu_seconds: 7,
        file_bytes: 3 << 20,
        growth_bytes: 5 << 30,
        growth_entries: 900,
        tmp_bytes: 1000,
        ..Limits::default()
    };
    let cpu = "more processor time than it may, over 7 s in one process";
    let file = "a larger file than it may write, over 3 MiB";
    let table = [
        (End::Code(0), "success".to_owned(), vec![]),
        (End::Code(3), "exit code 3".into(), vec![]),
        (End::Code(152), format!("exit code 152: {cpu}"), vec!["cpu_secs"]),
        (End::Code(153), format!("exit code 153: {file}"), vec!["file_size"]),
        (End::Signal(24), format!("terminated by signal: {cpu}"), vec!["cpu_secs"]),
        (End::Signal(25), format!("terminated by signal: {file}"), vec!["file_size"]),
        (End::Signal(11), "terminated by signal".into(), vec![]),
        (End::TimedOut, "worker timed out after 90s".into(), vec!["timeout"]),
        (
            End::OverSpace(Space::Bytes),
            "worker took more space than it may: what it may change grew by more than 5 GiB while it ran"
                .into(),
            vec!["growth"],
        ),
        (
            End::OverSpace(Space::Entries),
            "worker took more space than it may: what it may change grew by more than 900 files while it ran"
                .into(),
            vec!["growth_files"],
        ),
        (
            End::OverSpace(Space::Depth),
            "worker took more space than it may: directories in directories, deeper than can be watched"
                .into(),
            vec!["growth_files"],
        ),
        (
            End::OverSpace(Space::Temporary),
            "worker took more space than it may: more than 1000 bytes of temporary files".into(),
            vec!["tmp_size"],
        ),
    ];
    for (end, reason, reached) in table {
        let ended = text("x").ends_within(end.clone(), &limits, false);
        assert_eq!(metadata(&ended)["exit_reason"], reason);
        assert_eq!(metadata(&ended)["limits_reached"], json!(reached), "{end:?}");
    }
    let failed = text("x").ends_within(End::Code(3), &limits, true);
    let reason = "exit code 3; it was at its limit of 40 processes and threads";
    assert_eq!(metadata(&failed)["exit_reason"], reason);
    assert_eq!(metadata(&failed)["limits_reached"], json!(["processes"]));
    assert_eq!(summary(&failed), format!("Worker '/opt/coder' failed: {reason}"));
    let fine = text("x").ends_within(End::Code(0), &limits, true);
    assert_eq!((fine.status, &metadata(&fine)["exit_reason"]), (Status::Completed, &json!("success")));
}

#[test]
fn a_worker_that_fails_silently_is_known_by_its_exit() {
    assert_eq!(summary(&text("").ends(End::Code(1))), "Worker '/opt/coder' failed: exit code 1");
}

#[test]
fn a_stopped_worker_is_cancelled_not_failed() {
    let stopped = text("some").ends(End::Stopped("no longer needed".into()));
    assert_eq!((stopped.status, stopped.failure.clone()), (Status::Cancelled, None));
    assert_eq!(summary(&stopped), "Worker coder was stopped: no longer needed");
    assert_eq!(metadata(&stopped)["exit_reason"], "stopped");
}

#[test]
fn metadata_always_has_all_its_keys() {
    let keys = |outcome: &Outcome| metadata(outcome).as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut expected = [
        "time_queued",
        "time_started",
        "time_completed",
        "duration_total_ms",
        "duration_execution_ms",
        "worker_type",
        "worker_version",
        "model_requested",
        "model_used",
        "exit_code",
        "exit_reason",
        "tokens_input",
        "tokens_output",
        "tokens_reasoning",
        "tokens_cache_read",
        "tokens_cache_write",
        "model_reported",
        "cost_estimate_usd",
        "tier",
        "rule",
        "stdout_dropped_bytes",
        "stderr_dropped_bytes",
        "limits_reached",
    ];
    expected.sort_unstable();
    let done = text("x").ends_well();
    assert_eq!(keys(&done), expected);
    assert_eq!(keys(&text("x").ends(End::NotStarted(Failure::Lost))), expected);
    let metadata = metadata(&done);
    assert_eq!(metadata["time_queued"], "1970-01-01T00:00:01.000Z");
    assert_eq!(metadata["time_started"], "1970-01-01T00:00:01.500Z");
    assert_eq!(metadata["time_completed"], "1970-01-01T00:00:03.000Z");
    assert_eq!(
        (&metadata["duration_total_ms"], &metadata["duration_execution_ms"]),
        (&json!(2000), &json!(1500))
    );
    assert_eq!((&metadata["worker_type"], &metadata["worker_version"]), (&json!("cli"), &Value::Null));
    assert_eq!((&metadata["exit_code"], &metadata["exit_reason"]), (&json!(0), &json!("success")));
    assert_eq!((&metadata["tier"], &metadata["rule"]), (&json!("ns"), &json!("project.delegate")));
    assert_eq!((&metadata["model_requested"], &metadata["model_used"]), (&Value::Null, &json!("m-1")));
}

#[test]
fn the_requested_model_may_stand_in_the_context() {
    let mut asked = text("x");
    asked.task.order.context = Some(Json::parse(r#"{"model":"from-context"}"#).unwrap());
    assert_eq!(metadata(&asked.ends_well())["model_requested"], "from-context");
    asked.task.order.model = Some("explicit".into());
    assert_eq!(metadata(&asked.ends_well())["model_requested"], "explicit");
}

#[test]
fn tokens_and_cost_are_found_wherever_they_stand() {
    let table = [
        (
            r#"{"result":"x","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":4,"cost":9}}"#,
            json!([10, 4, null, 0.25]),
        ),
        (r#"{"a":[{"b":{"prompt_token_count":7,"candidates_token_count":2}}]}"#, json!([7, 2, null, null])),
        (
            r#"{"usage":{"prompt_tokens":3,"total_tokens":9,"details":{"reasoning_tokens":5}}}"#,
            json!([3, 9, 5, null]),
        ),
        (r#"{"pricing":{"cost":0.5},"deep":{"tokens_output":1}}"#, json!([null, 1, null, 0.5])),
        (r#"{"cost":0.5,"input_tokens":"many","tokens_output":-3}"#, json!([null, null, null, null])),
        (r#"{"input_tokens":1,"parts":[{"input_tokens":99}]}"#, json!([1, null, null, null])),
        (r#"{"usage":{"cost":-1}}"#, json!([null, null, null, null])),
        (r#"{"a":{"step":{"input_tokens":99}},"z":{"input_tokens":1}}"#, json!([1, null, null, null])),
        (r#"{"a":{"input_tokens":1},"z":{"step":{"input_tokens":99}}}"#, json!([1, null, null, null])),
    ];
    for (stdout, expected) in table {
        let m = metadata(&json(stdout).ends_well());
        let found =
            json!([m["tokens_input"], m["tokens_output"], m["tokens_reasoning"], m["cost_estimate_usd"]]);
        assert_eq!(found, expected, "{stdout}");
    }
    assert_eq!(metadata(&text(r#"{"input_tokens":1}"#).ends_well())["tokens_input"], Value::Null);
}
