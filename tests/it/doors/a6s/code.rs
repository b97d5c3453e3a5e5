//! Questions about code, as editors ask them: explained, reviewed, changed and tested by agents in the jail.

use serde_json::{Value, json};

use crate::support::a6s_client::OPEN;
use crate::support::a6s_desk::{Desk, begun};

fn about(code: &str, file: &str) -> Value {
    json!({ "code": code, "language": "python", "filePath": file })
}

/// The one artifact of an answer: type, path, content.
fn only(artifacts: &Value) -> (&str, &str, &str) {
    let [one] = &artifacts.as_array().unwrap()[..] else { panic!("{artifacts}") };
    assert!(one["id"].as_str().unwrap().starts_with("art_"), "{one}");
    assert!(!one.to_string().contains("null"), "{one}");
    (one["type"].as_str().unwrap(), one["path"].as_str().unwrap(), one["content"].as_str().unwrap())
}

const CALC: &str =
    "class Calc:\n    def add(self, a, b):\n        return a + b\n\n    def zero(self):\n        return 0\n";

#[test]
fn code_is_explained_once_and_again_when_its_file_has_changed() {
    let desk = Desk::new("text", "");
    let file = desk.file("src/calc.py", CALC);
    desk.put("echo", "");
    let (_daemon, mut socket) = desk.start();
    let params = about("def zero(self):\n        return 0", &file);
    let answer = socket.ask("code.explain", &params);
    let said = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    assert!(said.contains("`src/calc.py`") && said.contains("```python\ndef zero(self):\n"), "{said}");
    let log = answer["conversation_log_id"].as_str().unwrap();
    assert_eq!(
        socket.result("feedback.submit", &json!({ "conversation_log_id": log, "signal": "accept" }))["ok"],
        true
    );
    desk.remove("echo");
    desk.put("answer", "```markdown\n# Zero\n\nIt is \\033[31mzero\\033[0m: \u{1b}[1m0\u{1b}[0m.\n```\n");
    assert_eq!(socket.result("code.explain", &params), said.as_str(), "it was asked once");
    assert_eq!(begun(&mut socket), 1);
    desk.file("src/calc.py", &CALC.replace("zero", "nil"));
    let again = socket.result("code.explain", &params);
    assert_eq!(again, "# Zero\n\nIt is \\033[31mzero\\033[0m: 0.", "the file is another one");
    let other = about("def zero(self):\n        return 0 ", &file);
    socket.result("code.explain", &other);
    assert_eq!(begun(&mut socket), 3, "another question is another job");
    assert_eq!(socket.aside.iter().filter(|it| it["type"] == "execution.complete").count(), 0);
    let row = &socket.result("background.list", &json!([]))[0];
    assert_eq!(
        (&row["task"], &row["agentType"], &row["status"]),
        (&json!("Explain src/calc.py"), &json!("coder-ai"), &json!("completed"))
    );
}

#[test]
fn what_agents_print_is_answered_within_bounds_or_with_a_sentence() {
    let desk = Desk::new("text", "");
    let (_daemon, mut socket) = desk.start();
    desk.put("does", "echo the model is away >&2");
    let why = socket.error("code.explain", &about("a", ""));
    assert_eq!(why, "The worker gave no answer\nthe model is away");
    // One that failed is asked anew.
    desk.put("does", "exit 3");
    let why = socket.error("code.explain", &about("a", ""));
    assert!(!why.starts_with("The worker gave no answer"), "{why}");
    desk.put("does", "head -c 900000 /dev/zero | tr '\\0' x");
    let long = socket.result("code.explain", &about("a", ""));
    assert_eq!(long.as_str().unwrap().len(), 200 << 10);
    desk.put("does", "head -c 50000 /dev/urandom");
    assert!(socket.result("code.explain", &about("b", "")).is_string());
    desk.put("does", "head -c 3000000 /dev/zero | tr '\\0' x");
    let why = socket.error("code.refactor", &about("c", ""));
    assert_eq!(why, "No change proposed: the answer has more than 1048576 bytes");
}

const REVIEW: &str = r#"Here it is.
```json
{"issues":[{"severity":"critical","message":"adds","line":2,"suggestion":null},
 {"severity":"nit","message":"far","line":99}],"summary":"two","more":1}
```"#;

#[test]
fn a_review_comes_in_the_protocols_form() {
    let desk = Desk::new("json", "");
    let file = desk.file("calc.py", CALC);
    let (_daemon, mut socket) = desk.start();
    desk.put("answer", REVIEW);
    let mut params = about(CALC.trim(), &file);
    params["reviewType"] = json!("security");
    let found = socket.result("code.review", &params);
    let expected = json!({
        "issues": [
            { "severity": "error", "message": "adds", "line": 2 },
            { "severity": "info", "message": "far" }
        ],
        "summary": "two"
    });
    assert_eq!(found, expected);
    // What a review looks for is a part of the question; without a word it is everything.
    desk.put("echo", "");
    params["reviewType"] = Value::Null;
    assert_eq!(socket.result("code.review", &params), expected);
    assert_eq!(begun(&mut socket), 2);
    params["reviewType"] = json!("style");
    let why = socket.error("code.review", &params);
    assert!(
        ["reviewType", "security", "performance", "quality", "all"].iter().all(|it| why.contains(it)),
        "{why}"
    );
}

#[test]
fn a_reviewer_is_asked_once_more_and_then_quoted() {
    let desk = Desk::new("text", "");
    let (_daemon, mut socket) = desk.start();
    desk.put("answer", "I would say that it is fine.");
    desk.put(
        "does.2",
        "case \"$prompt\" in *'I would say that it is fine.'*issues*) cat \"$here/good\" ;; esac",
    );
    desk.put("good", r#"{"issues":[],"summary":"fine"}"#);
    let found = socket.result("code.review", &about("a = 1", ""));
    assert_eq!(found, json!({ "issues": [], "summary": "fine" }), "it was shown what it had said");
    desk.put("does.2", "echo still no form");
    let found = socket.result("code.review", &about("a = 2", ""));
    let issue = json!({ "severity": "info", "message": "The reviewer's reply was not in the asked form" });
    assert_eq!(found, json!({ "issues": [issue], "summary": "I would say that it is fine." }));
    desk.put("does.2", "exit 1");
    let found = socket.result("code.review", &about("a = 3", ""));
    assert_eq!(found["summary"], "I would say that it is fine.", "there was an answer");
    desk.put("answer", "");
    assert_eq!(socket.error("code.review", &about("a = 4", "")), "The worker gave no answer");
}

#[test]
fn what_an_agent_answers_is_put_into_the_whole_file() {
    let desk = Desk::new("text", "");
    let file = desk.file("src/calc.py", CALC);
    let (_daemon, mut socket) = desk.start();
    desk.put("answer", "Shorter:\n```python\ndef add(self, a, b):\n    return sum((a, b))\n```\n");
    let mut params = about("def add(self, a, b):\n        return a + b", &file);
    params["instructions"] = json!("use sum");
    let made = socket.result("code.refactor", &params);
    let expected = CALC.replace("return a + b", "return sum((a, b))");
    assert_eq!(only(&made), ("file", "src/calc.py", expected.as_str()));
    let hash = provost::base::Digest::of(CALC.as_bytes()).to_string();
    assert_eq!((&made[0]["baseHash"], &made[0]["language"]), (&json!(hash), &json!("python")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CALC, "the user's file is as it was");
    params["instructions"] = Value::Null;
    desk.put("answer", "def add(self, a, b):\n        return a + b\n");
    let why = socket.error("code.refactor", &params);
    assert_eq!(why, "No change proposed: the answer is the code as it was");
    desk.put("answer", "One:\n```\na\n```\nTwo:\n```\nb\n```\n");
    let why = socket.error("code.refactor", &params);
    assert_eq!(why, "No change proposed: the answer has 2 blocks of code with words between them");
}

#[test]
fn a_selection_without_a_place_is_refused_before_anybody_works() {
    let desk = Desk::new("text", "");
    let file = desk.file("calc.py", "x = 1\ny = 2\nx = 1\n");
    let env = desk.file(".env", "KEY=1\n");
    let latin = desk.world.repo().join("latin.py");
    std::fs::write(&latin, b"x = '\xe4'\n").unwrap();
    let (_daemon, mut socket) = desk.start();
    let missing = desk.world.repo().join("new.py").to_string_lossy().into_owned();
    for (code, file, expected) in [
        (
            "x = 1",
            file.as_str(),
            "The selection occurs 2 times in calc.py; select more of the text around it",
        ),
        ("z = 3", &file, "The selection is not in calc.py on disk; save the buffer first"),
        ("z = 3", &missing, "The selection is not in new.py on disk; save the buffer first"),
        ("KEY=1", &env, ".env: the configuration keeps this file from being written (a6s.deny)"),
        ("x = 'ä'", &latin.to_string_lossy(), "latin.py: it is no text in UTF-8"),
    ] {
        assert_eq!(socket.error("code.refactor", &about(code, file)), expected);
    }
    assert_eq!(begun(&mut socket), 0);
}

#[test]
fn a_buffer_without_a_file_gets_a_snippet() {
    let desk = Desk::new("edit", "");
    desk.put("answer", "x = 2\n");
    desk.put("does", "echo changed > stray.txt");
    let outside = desk.world.path("elsewhere.py");
    std::fs::write(&outside, "x = 1\n").unwrap();
    let (_daemon, mut socket) = desk.start();
    let outside = outside.to_string_lossy();
    for (file, path) in [
        ("", "untitled"),
        ("untitled", "untitled"),
        ("*scratch*", "*scratch*"),
        (&*outside, "elsewhere.py"),
        ("../x.py", "x.py"),
    ] {
        let made = socket.result("code.refactor", &about("x = 1", file));
        assert_eq!(only(&made), ("snippet", path, "x = 2"), "{file}");
    }
    for params in [
        json!({ "code": "x = 1" }),
        json!({ "code": "x = 1", "language": null, "filePath": null, "instructions": null, "reviewType": null }),
        json!({ "code": "x = 1", "language": "", "filePath": "", "instructions": "" }),
    ] {
        let made = socket.result("code.refactor", &params);
        assert_eq!(only(&made), ("snippet", "untitled", "x = 2"), "{params}");
    }
    let why = socket.error("code.refactor", &json!({ "code": " \n", "filePath": "" }));
    assert!(why.starts_with("code.refactor: `code`: is empty"), "{why}");
}

#[test]
fn what_an_agent_changes_in_its_copy_is_what_it_proposes() {
    let desk = Desk::new("edit", "");
    let file = desk.file("src/calc.py", CALC);
    let (_daemon, mut socket) = desk.start();
    desk.put("does", "sed -i 's/return 0/return 1/' src/calc.py; echo more > src/new.py");
    let params = about("def zero(self):\n        return 0", &file);
    let made = socket.result("code.refactor", &params);
    let paths: Vec<&str> = made.as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["src/calc.py", "src/new.py"]);
    assert_eq!(made[0]["content"], CALC.replace("return 0", "return 1"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), CALC);
    // A buffer that was not saved is no hindrance to somebody who changes files.
    desk.put("does", "true");
    desk.put("answer", "\nIt is good as it is.\nReally.\n");
    let why = socket.error("code.refactor", &about("unsaved", &file));
    assert_eq!(why, "No change proposed: It is good as it is.");
    desk.put("does", "ln -s /etc/passwd src/link");
    let why = socket.error("code.refactor", &about("unsaved", &file));
    assert!(why.starts_with("No change proposed: left out: src/link: is a symbolic link"), "{why}");
}

const TESTS: &str = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n";

#[test]
fn tests_come_as_a_file_and_none_that_is_there_is_lost() {
    let desk = Desk::new("text", "");
    let file = desk.file("src/calc.py", CALC);
    let (_daemon, mut socket) = desk.start();
    desk.put("answer", &format!("```python\n{TESTS}```"));
    let made = socket.result("code.generateTests", &about("def add", &file));
    assert_eq!(only(&made), ("test", "src/test_calc.py", TESTS));
    // There are some by now.
    desk.file("tests/test_calc.py", TESTS);
    desk.put("answer", "import calc\n\n\ndef test_zero():\n    assert calc.zero() == 0\n");
    let made = socket.result("code.generateTests", &about("def zero", &file));
    let both = format!("{TESTS}\n\ndef test_zero():\n    assert calc.zero() == 0\n");
    assert_eq!(only(&made), ("test", "tests/test_calc.py", both.as_str()));
    assert!(made[0]["baseHash"].is_string());
    desk.put("answer", "import calc, os\n\n\ndef test_zero():\n    assert calc.zero() == 0\n");
    let made = socket.result("code.generateTests", &about("zero", &file));
    assert_eq!(only(&made).1, "tests/test_calc_2.py", "what cannot be put together stays apart");
    desk.put("answer", TESTS);
    let why = socket.error("code.generateTests", &about("a + b", &file));
    assert_eq!(why, "No change proposed: the answer holds no test that is not there already");
    let made = {
        desk.put("answer", "(ert-deftest f ())");
        socket.result(
            "code.generateTests",
            &json!({ "code": "(f)", "language": "emacs-lisp", "filePath": "*scratch*" }),
        )
    };
    assert_eq!(only(&made), ("snippet", "scratch-tests.el", "(ert-deftest f ())\n"));
}

#[test]
fn an_agent_that_takes_tests_away_proposes_what_is_left() {
    let desk = Desk::new("edit", "");
    let file = desk.file("calc.py", CALC);
    desk.file("tests/test_calc.py", TESTS);
    desk.file("tests/test_old.py", TESTS);
    let (_daemon, mut socket) = desk.start();
    desk.put(
        "does",
        "rm tests/test_old.py; echo 'def test_new(): pass' > tests/test_calc.py; echo > tests/test_more.py",
    );
    let made = socket.result("code.generateTests", &about("def add", &file));
    assert_eq!(only(&made).1, "tests/test_more.py");
    desk.put("does", "rm tests/test_old.py");
    let why = socket.error("code.generateTests", &about("def zero", &file));
    assert_eq!(why, "No change proposed: tests/test_old.py: tests that are there would be lost: all of it");
}

#[test]
fn somebody_is_asked_who_takes_such_questions_and_works() {
    let desk = Desk::new("text", "");
    desk.put("answer", "here");
    let agent = |id: &str, more: &str| desk.entry(id, "text", more);
    let with = |settings: &str, agents: &[String]| {
        desk.world.configure(&format!("{OPEN}{settings}\n{}", agents.concat()));
        let (daemon, mut socket) = desk.start();
        let answer = socket.ask("code.explain", &about("x", ""));
        let list = socket.result("background.list", &json!({}));
        daemon.stop();
        match answer["error"].as_str() {
            Some(error) => error.to_owned(),
            None => list.as_array().unwrap().last().unwrap()["agentType"].as_str().unwrap().to_owned(),
        }
    };
    let why = with("", &[]);
    assert_eq!(
        why,
        "No agent is configured for code.explain: put an [[agent]] entry into provost.toml, as docs/agents.md shows"
    );
    let (a, b) = (agent("a", "methods = [\"agents.*\"]"), agent("b", ""));
    assert_eq!(with("", &[a.clone(), b]), "b");
    let why = with("", &[a]);
    assert_eq!(why, "No agent takes code.explain: add it to the `methods` of one of them. Configured: a");
    let why = with("", &[agent("c", "enabled = false")]);
    assert_eq!(why, "c cannot be asked: it is switched off: `enabled = false` in its entry");
    let two = [agent("d", ""), agent("e", "")];
    assert_eq!(with("code_agent = \"e\"", &two), "e");
    let why = with("code_agent = \"nobody\"", &two);
    assert_eq!(why, "a6s.code_agent names no agent: nobody. Configured: d, e");
}

#[test]
fn new_text_is_merged_with_what_the_user_has_written_since_and_a_snippet_goes_nowhere() {
    let desk = Desk::new("text", "apply_unknown = false");
    let file = desk.file("src/calc.py", CALC);
    let (_daemon, mut socket) = desk.start();
    desk.put("answer", "return 1");
    let made = socket.result("code.refactor", &about("return 0", &file));
    desk.file("src/calc.py", &CALC.replace("class Calc", "class Calculator"));
    let shown = socket.result("artifacts.preview", &json!({ "artifacts": made }));
    let one = &shown["files"][0];
    assert_eq!(
        (&one["path"], &one["action"], &one["reason"]),
        (&json!("src/calc.py"), &json!("modify"), &Value::Null)
    );
    let diff = one["diff"].as_str().unwrap();
    assert!(diff.contains("-        return 0\n+        return 1\n") && !diff.contains("-class"), "{diff}");
    let snippet = socket.result("code.refactor", &about("return 0", "*scratch*"));
    let shown = socket.result("artifacts.preview", &json!({ "artifacts": snippet }));
    let one = &shown["files"][0];
    let why = "a snippet belongs to no file of the workspace; insert it where it should be";
    assert_eq!((&one["action"], &one["reason"]), (&json!("skip"), &json!(why)));
    let refused = socket.error("artifacts.apply", &json!({ "artifacts": snippet }));
    assert_eq!(refused, format!("Nothing was written\n*scratch*: {why}"));
}

#[test]
fn one_that_was_switched_off_is_passed_over() {
    let desk = Desk::new("text", "");
    desk.put("answer", "here");
    let two = [desk.entry("a", "text", ""), desk.entry("b", "text", "")].concat();
    desk.world.configure(&format!("{OPEN}{two}"));
    let (_daemon, mut socket) = desk.start();
    socket.result("fleet.command", &json!({ "agentId": "a", "command": "stop" }));
    assert_eq!(socket.result("code.explain", &about("x", "")), "here");
    assert_eq!(socket.result("background.list", &json!({}))[0]["agentType"], "b");
    socket.result("fleet.command", &json!({ "agentId": "b", "command": "stop" }));
    let why = socket.error("code.explain", &about("x", ""));
    assert_eq!(why, "a cannot be asked: it is switched off; the fleet.command `start` switches it on");
}
