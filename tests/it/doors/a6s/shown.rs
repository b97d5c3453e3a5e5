//! The texts that users of editors' plugins see: plugins show an error, a difference, a status and a list of files, and
//! no other member of the messages. Real agents in the real jail.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::a6s_artifacts::{
    ALL, APPLY, Editor, PREVIEW, desk, file, made, nothing_written, row, socket,
};
use crate::support::a6s_client::{CLOSE, Socket};
use crate::support::desk::{Desk, errors};

fn mode(desk: &Desk, path: &str) -> u32 {
    std::fs::metadata(desk.at(path)).unwrap().permissions().mode() & 0o777
}

fn undo(desk: &Desk, apply: &Value) {
    let undone = desk.world.command(&["undo", &apply.to_string()]).output().unwrap();
    assert!(undone.status.success(), "{undone:?}");
}

#[test]
fn why_nothing_was_written_is_the_error_and_why_a_file_is_skipped_its_difference() {
    let desk = desk(ALL, "", "");
    desk.put("a.txt", "as it was\n");
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, "DO write a.txt by the worker\\n");
    desk.put("a.txt", "by hand\n");
    let refused = [artifacts[0].clone(), file(".env", "x")];
    for editor in [Editor::Neovim, Editor::Emacs, Editor::Sublime] {
        let preview = editor.result(&mut socket, PREVIEW, &refused);
        let shown = row(&preview, "a.txt")["diff"].as_str().unwrap();
        assert_eq!(shown, "a.txt is not written: changed on disk since it was generated\n");
        let answer = editor.answer(&mut socket, APPLY, &refused);
        let reasons = nothing_written(&answer);
        assert_eq!(reasons[0], "a.txt: changed on disk since it was generated", "{answer}");
        assert!(reasons[1].starts_with(".env: ") && reasons[1].contains("a6s.deny"), "{answer}");
    }
    // What is a part of many is bounded.
    let many: Vec<Value> = (0..500).map(|n| file(&format!("../{n}-{}", "x".repeat(100)), "x")).collect();
    let reasons = nothing_written(&Editor::Neovim.answer(&mut socket, APPLY, &many));
    assert!(reasons.len() < 50 && reasons.last().unwrap().ends_with(" more"), "{reasons:?}");
    // As long as one file is written, it is no error.
    let some = [file("new.txt", "x"), file(".env", "x")];
    let applied = Editor::Neovim.result(&mut socket, APPLY, &some);
    assert_eq!((&applied["applied"], errors(&applied).len()), (&json!(1), 1));
}

#[test]
fn a_mode_that_alone_was_changed_is_shown_written_and_undone() {
    let desk = desk(ALL, "", "");
    desk.put("run.sh", "echo\n");
    desk.put("plain.sh", "echo\n");
    std::fs::set_permissions(desk.at("plain.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, "DO program run.sh\nDO mode plain.sh 644");
    let preview = Editor::Sublime.result(&mut socket, PREVIEW, &artifacts);
    let diff = |path: &str| row(&preview, path)["diff"].as_str().unwrap().to_owned();
    assert_eq!(diff("run.sh"), "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n");
    assert!(diff("plain.sh").ends_with("old mode 100755\nnew mode 100644\n"), "{preview}");
    let applied = Editor::Sublime.result(&mut socket, APPLY, &artifacts);
    assert_eq!((&applied["applied"], &applied["skipped"]), (&json!(2), &json!(0)), "{applied}");
    assert_eq!((mode(&desk, "run.sh"), mode(&desk, "plain.sh")), (0o755, 0o640));
    assert_eq!(desk.text("run.sh"), "echo\n");
    let again = Editor::Sublime.result(&mut socket, APPLY, &artifacts);
    assert_eq!(again["skipped"], 2, "{again}");
    undo(&desk, &applied["apply"]);
    assert_eq!((mode(&desk, "run.sh") & 0o111, mode(&desk, "plain.sh") & 0o100), (0, 0o100));
    // What only its user has made a program stays one.
    let artifacts = made(&mut socket, "DO write run.sh echo more\\n");
    std::fs::set_permissions(desk.at("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(Editor::Sublime.result(&mut socket, APPLY, &artifacts)["applied"], 1);
    assert_eq!((mode(&desk, "run.sh"), desk.text("run.sh")), (0o755, "echo more\n".into()));
}

#[test]
fn a_file_that_becomes_a_folder_is_applied_whole_or_not_at_all() {
    let desk = desk(ALL, "deny = [\".env\", \"place/secret\"]\n", "");
    desk.put("place", "a file\n");
    let mut socket = socket(&desk);
    let artifacts =
        made(&mut socket, "DO remove place\nDO write place/a x\nDO write place/deep/b y\nDO write c z");
    let preview = Editor::Neovim.result(&mut socket, PREVIEW, &artifacts);
    let actions: Vec<&str> = ["place", "place/a", "place/deep/b", "c"].map(|it| action(&preview, it)).into();
    assert_eq!(actions, ["modify", "create", "create", "create"]);
    let applied = Editor::Neovim.result(&mut socket, APPLY, &artifacts);
    assert_eq!((&applied["applied"], errors(&applied)), (&json!(4), Vec::new()), "{applied}");
    assert_eq!(desk.files(), ["c", "place/a", "place/deep/b"]);
    undo(&desk, &applied["apply"]);
    assert_eq!((desk.files(), desk.text("place")), (vec!["place".to_owned()], "a file\n".to_owned()));

    // A part of it that may not be written keeps the rest of it from being done, and nothing else.
    let artifacts =
        made(&mut socket, "DO remove place\nDO write place/a x\nDO write place/secret y\nDO write c z");
    let applied = Editor::Neovim.result(&mut socket, APPLY, &artifacts);
    assert_eq!((&applied["applied"], errors(&applied).len()), (&json!(1), 3), "{applied}");
    let withheld = "place: place/secret, which belongs to this change, cannot be written";
    assert!(errors(&applied).iter().any(|it| it == withheld), "{applied}");
    assert_eq!((desk.files(), desk.text("place")), (vec!["c".into(), "place".into()], "a file\n".into()));
}

#[test]
fn a_folder_that_becomes_a_file_is_applied_whole_or_not_at_all() {
    let desk = desk(ALL, "", "");
    let put = || {
        desk.put("place/a", "1\n");
        desk.put("place/x/b", "2\n");
        desk.put("place/y/c", "3\n");
    };
    put();
    let steps = "DO remove place/a\nDO remove place/x/b\nDO remove place/y/c\nDO rmdir place/x\nDO rmdir place/y\n\
                 DO rmdir place\nDO write place a file\\n";
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, steps);
    assert_eq!(action(&Editor::Emacs.result(&mut socket, PREVIEW, &artifacts), "place"), "create");
    // What came meanwhile is somebody's, and stays, with all that belongs to it.
    desk.put("place/y/mine", "by hand\n");
    let refused = Editor::Emacs.answer(&mut socket, APPLY, &artifacts);
    let reasons = nothing_written(&refused);
    let why = "place: it is a folder, and place/y/mine in it stays";
    assert!(reasons.len() == 4 && reasons.iter().any(|it| it == why), "{refused}");
    assert_eq!(desk.files(), ["place/a", "place/x/b", "place/y/c", "place/y/mine"]);
    std::fs::remove_file(desk.at("place/y/mine")).unwrap();
    let applied = Editor::Emacs.result(&mut socket, APPLY, &artifacts);
    assert_eq!((&applied["applied"], desk.text("place")), (&json!(4), "a file\n".to_owned()), "{applied}");
    undo(&desk, &applied["apply"]);
    assert_eq!(desk.files(), ["place/a", "place/x/b", "place/y/c"]);
    assert_eq!(desk.text("place/x/b"), "2\n");
}

fn action<'a>(preview: &'a Value, path: &str) -> &'a str {
    row(preview, path)["action"].as_str().unwrap()
}

/// Begins some work; returns the id that its events have.
fn begin(socket: &mut Socket, method: &str, steps: &str) -> String {
    let ask = json!({ "agentType": "coder-ai", "task": format!("Please.\n{steps}") });
    let begun = socket.result(method, &ask);
    let id = begun["executionId"].as_str().or(begun["taskId"].as_str()).unwrap();
    id.replace("task_", "exec_")
}

/// Waits for an event about something.
fn told(socket: &mut Socket, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = match socket.aside.is_empty() {
            true => socket.message(),
            false => socket.aside.remove(0),
        };
        if message["type"] == kind && wanted(&message["data"]) {
            return message["data"].clone();
        }
    }
}

fn over(socket: &mut Socket, execution: &str) -> Value {
    told(socket, "execution.complete", |data| data["executionId"] == execution)
}

/// Waits until its agent has made the first of its files: from then on it waits itself.
fn works(socket: &mut Socket, task: &str) {
    let task = task.replace("exec_", "task_");
    loop {
        let output = socket.result("background.output", &json!({ "taskId": task }));
        if output.as_str().unwrap().contains("made it") {
            return;
        }
    }
}

fn paths(whole: &Value) -> Vec<&str> {
    whole["artifacts"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect()
}

#[test]
fn what_a_run_has_changed_is_offered_however_it_has_ended() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    for method in ["agents.invoke", "background.launch"] {
        let failed = begin(&mut socket, method, "DO write made.txt x\nDO exit 3");
        let whole = over(&mut socket, &failed);
        assert_eq!((&whole["status"], paths(&whole)), (&json!("failure"), vec!["made.txt"]), "{whole}");
        assert!(whole["error"].as_str().unwrap().contains("exit code 3"), "{whole}");

        let taken_back = begin(&mut socket, method, "DO write made.txt x\nDO say made it\nDO wait");
        works(&mut socket, &taken_back);
        socket.result("background.cancel", &json!({ "taskId": taken_back }));
        let whole = over(&mut socket, &taken_back);
        assert_eq!((&whole["cancelled"], paths(&whole)), (&json!(true), vec!["made.txt"]), "{whole}");
        let asked = socket.result("execution.status", &json!({ "executionId": taken_back }));
        assert_eq!(asked["artifacts"], whole["artifacts"], "it is there whenever it is asked for");
    }
    // What such a run has left is as good as any other.
    let failed = begin(&mut socket, "agents.invoke", "DO write made.txt x\nDO exit 3");
    let whole = over(&mut socket, &failed);
    let applied = Editor::Neovim.result(&mut socket, APPLY, whole["artifacts"].as_array().unwrap());
    assert_eq!((&applied["applied"], desk.text("made.txt")), (&json!(1), "x".to_owned()));
}

#[test]
fn what_a_run_has_changed_that_took_too_long_is_offered() {
    let desk = desk(ALL, "", "timeout = \"2s\"\n");
    let mut socket = socket(&desk);
    let late = begin(&mut socket, "agents.invoke", "DO write made.txt x\nDO wait");
    let whole = over(&mut socket, &late);
    assert_eq!((&whole["status"], paths(&whole)), (&json!("failure"), vec!["made.txt"]), "{whole}");
    assert!(whole["error"].as_str().unwrap().contains("timed out after 2s"), "{whole}");
}

#[test]
fn whoever_waits_for_an_end_is_told_that_the_daemon_stops_and_finds_what_was_changed_afterwards() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    let ran = begin(&mut socket, "agents.invoke", "DO write made.txt x\nDO say made it\nDO wait");
    works(&mut socket, &ran);
    let stop = desk.world.command(&["down"]).spawn().unwrap();
    let whole = over(&mut socket, &ran);
    assert_eq!((&whole["status"], &whole["error"]), (&json!("failure"), &json!("daemon stopped")));
    assert_eq!(socket.frame().first, CLOSE, "nothing comes after it");
    assert!(stop.wait_with_output().unwrap().status.success());
    let _daemon = desk.world.start();
    let mut socket = self::socket(&desk);
    let whole = socket.result("execution.status", &json!({ "executionId": ran }));
    assert_eq!((&whole["error"], paths(&whole)), (&json!("daemon stopped"), vec!["made.txt"]), "{whole}");
}

#[test]
fn a_part_of_what_was_changed_is_no_success_and_what_is_missing_is_a_file_that_says_so() {
    let desk = desk(ALL, "", "");
    let mut socket = socket(&desk);
    let cut = begin(&mut socket, "agents.invoke", "DO many folder 250");
    let whole = over(&mut socket, &cut);
    assert_eq!((&whole["status"], paths(&whole).len()), (&json!("failure"), 201), "{}", whole["error"]);
    let error = whole["error"].as_str().unwrap();
    assert!(error.contains("in part, 200 files") && error.contains("50 more changed files"), "{error}");
    // What could never be offered is told, and keeps nothing from being one.
    let link = begin(&mut socket, "agents.invoke", "DO write made.txt x\nDO link away /etc/passwd");
    let whole = over(&mut socket, &link);
    assert_eq!(
        (&whole["status"], paths(&whole)),
        (&json!("success"), vec!["made.txt", ".provost/left_out.md"])
    );
    let told = whole["artifacts"][1]["content"].as_str().unwrap();
    assert!(told.contains("- away: is a symbolic link"), "{told}");
    assert_eq!(whole["artifacts"][1]["type"], "log");
}

#[test]
fn what_a_models_program_says_went_wrong_is_what_its_asker_hears() {
    for (stream, mode) in
        [("claude-json", "claude"), ("codex-jsonl", "codex"), ("lines", "lines"), ("lines", "json")]
    {
        let desk = desk(ALL, "", &format!("stream = \"{stream}\"\n"));
        let config = desk.world.config_dir().join("provost.toml");
        let text = std::fs::read_to_string(&config).unwrap().replace("\"lines\"]", &format!("\"{mode}\"]"));
        std::fs::write(&config, text).unwrap();
        assert!(desk.world.command(&["daemon", "reload"]).output().unwrap().status.success());
        let mut socket = socket(&desk);
        let failed = begin(&mut socket, "agents.invoke", "DO complain Invalid API key");
        let whole = over(&mut socket, &failed);
        let error = whole["error"].as_str().unwrap();
        assert!(error.contains("Invalid API key") && !error.contains("stream error"), "{mode}: {error}");
        if mode == "claude" {
            let failed = begin(&mut socket, "agents.invoke", "DO give-up");
            let whole = over(&mut socket, &failed);
            assert!(whole["error"].as_str().unwrap().contains("as many turns as it may"), "{whole}");
        }
    }
}

#[test]
fn a_background_task_that_waits_for_somebodys_word_says_so_in_the_list() {
    let rules = ALL.replace("\"allow\"", "\"approve\"") + "approve.by = [\"human\"]\n";
    let desk = desk(&rules, "", "");
    let mut socket = socket(&desk);
    let held = begin(&mut socket, "background.launch", "x").replace("exec_", "task_");
    let waits = loop {
        let list = socket.result("background.list", &json!({}));
        let task = list[0]["task"].as_str().unwrap().to_owned();
        if task.starts_with('[') {
            break task;
        }
    };
    assert_eq!(waits, "[waits for approval 1: provost approve 1] Please.\nx");
    let output = socket.result("background.output", &json!({ "taskId": held }));
    assert_eq!(output, "waits for approval 1: provost approve 1");
}

#[test]
fn what_a_run_has_used_is_kept_and_shown_in_text_on_doors_and_in_the_journal() {
    let desk = desk(ALL, "", "stream = \"claude-json\"\n");
    let config = desk.world.config_dir().join("provost.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"lines\"]", "\"claude\"]");
    std::fs::write(&config, text).unwrap();
    assert!(desk.world.command(&["daemon", "reload"]).output().unwrap().status.success());
    let mut socket = socket(&desk);
    let ran = begin(&mut socket, "agents.invoke", "DO say something");
    let whole = over(&mut socket, &ran);
    let used = json!({
        "inputTokens": 11, "outputTokens": 22, "cacheReadTokens": 7, "cacheWriteTokens": 3, "costUsd": 0.25,
        "model": "a-model-2",
    });
    assert_eq!(whole["usage"], used, "{whole}");
    // A second one, and the sum of both is its agent's.
    let again = begin(&mut socket, "agents.invoke", "DO say something");
    over(&mut socket, &again);
    let agents = socket.result("fleet.list", &json!({}));
    let agent = agents[0]["agentId"].clone();
    let status = socket.result("fleet.status", &json!({ "agentId": agent }));
    let sum = json!({
        "inputTokens": 22, "outputTokens": 44, "cacheReadTokens": 14, "cacheWriteTokens": 6, "costUsd": 0.5,
        "model": "a-model-2",
    });
    assert_eq!(status["usage"], sum, "{status}");
    let task = ran.replace("exec_", "job_");
    let shown = desk.world.command(&["task", "show", &task]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let line =
        "11 tokens in, 7 of the cache, 3 into the cache, 22 out, 0.2500 USD by a-model-2, as its worker says";
    assert!(shown.contains(line), "{shown}");
    let own = desk.world.command(&["task", "show", &task, "--json"]).output().unwrap();
    let own: Value = serde_json::from_slice(&own.stdout).unwrap();
    assert_eq!((&own["usage"]["tokens_cache_read"], &own["model_used"]), (&json!(7), &json!("a-model-2")));
    let (_, log) = desk.ask("ed", "GET /events?after=0&limit=1000", &Value::Null);
    let finished: Vec<&Value> =
        log["events"].as_array().unwrap().iter().map(|it| &it["kind"]["task_finished"]).collect();
    let finished: Vec<&Value> = finished.into_iter().filter(|it| it.is_object()).collect();
    let kept = &finished.last().unwrap()["usage"];
    assert_eq!((&kept["cache_write"], &kept["cost_microusd"]), (&json!(3), &json!(250_000)), "{finished:?}");
    assert_eq!(kept["model"], "a-model-2");
    // In sums, the runs of jobs count once.
    let cost = desk.world.command(&["cost", "--json"]).output().unwrap();
    let cost: Value = serde_json::from_slice(&cost.stdout).unwrap();
    let total = &cost["total"];
    assert_eq!((&total["runs"], &total["used"]["tokens_input"]), (&json!(2), &json!(22)), "{cost}");
    assert_eq!(
        (&total["used"]["cost_usd"], &total["used"]["model"]),
        (&json!(0.5), &json!("a-model-2")),
        "{cost}"
    );
}
