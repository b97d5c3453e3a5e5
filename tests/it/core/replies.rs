//! Replies of agents: found among their words, brought into form, or said not to be.

use provost::agents::{Severity, as_code, as_markdown, review, unread_review};

const GOOD: &str = r#"{"issues":[{"severity":"error","message":"off by one","line":2,"suggestion":"use <"}],"summary":"one"}"#;

#[test]
fn a_review_is_found_in_three_ways() {
    let around = [
        GOOD.to_owned(),
        format!("\n  {GOOD}\n"),
        format!("Here it is:\n```json\n{GOOD}\n```\nThat is all {{really}}."),
        format!("```json\n{{\"issues\": 1}}\n```\nNo, this:\n```json\n{GOOD}\n```"),
        format!("I think {{ this }} is it: {GOOD} and {{\"other\": true}}"),
        format!("`````\n{GOOD}\n`````"),
    ];
    for reply in around {
        let found = review(&reply, 3).unwrap_or_else(|why| panic!("{reply}: {why}"));
        assert_eq!(found.issues.len(), 1, "{reply}");
        let issue = &found.issues[0];
        assert_eq!(
            (issue.severity, issue.line, issue.suggestion.as_deref()),
            (Severity::Error, Some(2), Some("use <"))
        );
        assert_eq!(found.summary, "one");
    }
}

#[test]
fn other_words_for_the_same_are_understood() {
    let with = |issue: &str| {
        review(&format!(r#"{{"issues":[{issue}],"summary":"s"}}"#), 10).unwrap().issues.remove(0)
    };
    for (word, severity) in [
        ("CRITICAL", Severity::Error),
        ("high", Severity::Error),
        ("major", Severity::Error),
        ("Medium", Severity::Warning),
        ("minor", Severity::Warning),
        ("nit", Severity::Info),
    ] {
        assert_eq!(with(&format!(r#"{{"severity":"{word}","message":"m"}}"#)).severity, severity, "{word}");
    }
    for (line, meant) in [
        ("3", Some(3)),
        ("\"4\"", Some(4)),
        ("5.0", Some(5)),
        ("0", None),
        ("11", None),
        ("null", None),
        ("\"?\"", None),
        ("-1", None),
    ] {
        assert_eq!(
            with(&format!(r#"{{"severity":"info","message":"m","line":{line}}}"#)).line,
            meant,
            "{line}"
        );
    }
    let long = with(&format!(
        r#"{{"severity":"info","message":"{}","suggestion":" ","more":[1]}}"#,
        "ä".repeat(9_000)
    ));
    assert_eq!((long.message.chars().count(), long.suggestion), (4_000, None));
    let many = format!(
        r#"{{"issues":[{}],"summary":""}}"#,
        vec![r#"{"severity":"info","message":"m"}"#; 500].join(",")
    );
    assert_eq!(review(&many, 1).unwrap().issues.len(), 200);
    assert_eq!(review(r#"{"issues":[],"summary":"fine"}"#, 1).unwrap().issues, []);
}

#[test]
fn what_is_no_review_says_what_is_wrong_with_it() {
    for (reply, why) in [
        ("", "no JSON object with `issues`"),
        ("It looks fine to me.", "no JSON object with `issues`"),
        ("{\"issues\":[]}", "summary"),
        ("{\"issues\":{},\"summary\":\"\"}", "`/issues`"),
        ("{\"issues\":[{\"message\":\"m\"}],\"summary\":\"\"}", "severity"),
        ("{\"issues\":[{\"severity\":\"info\",\"message\":\"  \"}],\"summary\":\"\"}", "`/issues/0/message`"),
        ("{\"issues\":[1],\"summary\":\"\"}", "`/issues/0`"),
        ("{\"issues\":[{\"severity\":\"info\",\"message\":\"m\"}],\"summ", "no JSON object with `issues`"),
    ] {
        let said = review(reply, 10).unwrap_err();
        assert!(said.contains(why), "{reply}: {said}");
    }
    let unread = unread_review("It looks fine to me.\n");
    assert_eq!((unread.issues.len(), unread.issues[0].severity), (1, Severity::Info));
    assert_eq!(unread.summary, "It looks fine to me.");
}

#[test]
fn hostile_replies_take_no_time() {
    for reply in [
        "{".repeat(1 << 20),
        "{\"issues\":[".repeat(100_000),
        "```json\n".repeat(100_000),
        "{\"a\":\"".repeat(200_000),
    ] {
        assert!(review(&reply, 10).is_err());
    }
    let deep = format!("{{\"issues\":{}{},\"summary\":\"\"}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(review(&deep, 10).is_err());
}

#[test]
fn one_fence_around_everything_is_taken_off() {
    assert_eq!(as_markdown("```markdown\n# A\n```"), "# A\n");
    assert_eq!(as_markdown("# A\n```rust\nx\n```"), "# A\n```rust\nx\n```");
    assert_eq!(as_markdown("```rust\nx\n```"), "```rust\nx\n```", "that is code, and stays a block");
    assert_eq!(as_markdown("```md\na\n```\nb\n```\nc\n```"), "```md\na\n```\nb\n```\nc\n```");
    assert_eq!(as_code("```python\n  x = 1\n```", "python"), "  x = 1\n");
    assert_eq!(as_code("  x = 1\n\n", "python"), "  x = 1\n\n");
    assert_eq!(
        as_code("```rust\nx\n```", "markdown"),
        "```rust\nx\n```",
        "in Markdown it is the text itself"
    );
}
