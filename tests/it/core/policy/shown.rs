//! Rules shown, compared and checked: explanations, test tables, differences, and rules that can never decide.

use provost::domain::Judge as _;
use provost::policy::{Case, Request, Ruling, builtin, check, diff, explain_request, run_cases};

use super::{request, rule};

#[test]
fn an_explanation_names_the_first_condition_that_failed() {
    let set = builtin("default").unwrap();
    let told = explain_request(&set, &request("network = \"hosts\""));
    assert_eq!((told.outcome.decision, told.outcome.rule.as_str()), (Ruling::Approve, "worker.network"));
    let confined = told.rules.iter().find(|it| it.id.as_str() == "worker.confined").unwrap();
    let unmet = confined.first_failed.as_ref().unwrap();
    assert_eq!((&*unmet.key, &*unmet.wants, &*unmet.found), ("when.network", "none", "hosts"));
    let text = told.to_string();
    assert!(text.starts_with("approve by worker.network: the worker wants to use the network (ask passkey-if-enrolled, client:approver within 1800s, asked again 3 times)"), "{text}");
    assert!(text.contains("worker.confined (builtin:default:"), "{text}");
    assert!(text.contains("when.network wants none, found hosts"), "{text}");
    assert!(text.ends_with(&set.version().short()), "{text}");
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["outcome"]["decision"], "approve");
    assert_eq!(json["rules"].as_array().unwrap().len(), set.layers()[0].file().rules.len());
}

#[test]
fn a_permission_is_explained_with_its_reason() {
    let told = explain_request(&builtin("default").unwrap(), &Request::default());
    assert_eq!(&*told.outcome.reason, "confined workers may work in the repository without network");
}

#[test]
fn a_test_table_reports_what_was_answered_otherwise() {
    let cases = Case::parse(
        "[[case]]\nname = \"fine\"\nexpect = \"allow\"\nrule = \"worker.confined\"\n\
         [[case]]\nexpect = \"allow\"\nnetwork = \"ports\"\n\
         [[case]]\nname = \"other rule\"\nexpect = \"deny\"\nrule = \"delegate.depth\"\nroot = \"/etc\"\n",
        "cases.toml",
    )
    .unwrap();
    let failed = run_cases(&builtin("default").unwrap(), &cases);
    let names: Vec<_> = failed.iter().map(|it| (&*it.case.name, it.outcome.rule.as_str())).collect();
    assert_eq!(names, [("line 5", "worker.network"), ("other rule", "workspace.private")]);
}

#[test]
fn a_difference_between_two_policies_is_found_by_asking_both() {
    let requests = [Request::default(), request("worker_kind = \"polling\""), request("depth = 9")];
    let changed = diff(&builtin("default").unwrap(), &builtin("strict").unwrap(), &requests);
    let told: Vec<_> = changed.iter().map(|it| (it.index, it.before.decision, it.after.decision)).collect();
    // The first goes through in both, with limits under the strict rules.
    assert_eq!(told, [(0, Ruling::Allow, Ruling::Allow), (1, Ruling::Allow, Ruling::Deny)]);
    let same = builtin("default").unwrap();
    assert!(diff(&same, &same, &requests).is_empty());
}

#[test]
fn a_request_can_be_written_as_json() {
    let read: Request =
        serde_json::from_str(r#"{"client":"mcp","network":"hosts","worker_kind":"cli"}"#).unwrap();
    assert_eq!(read, request("client = \"mcp\"; network = \"hosts\""));
    assert!(serde_json::from_str::<Request>(r#"{"cleint":"mcp"}"#).is_err());
}

#[test]
fn rules_that_can_never_decide_are_pointed_out() {
    let warned = |text: &str| {
        let report = check(&format!("version = 1\n{text}"), "test.toml");
        assert!(report.loads(), "{:?}", report.problems);
        report.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let pair = |one: &str, other: &str| format!("{}{}{}", rule("ok", "allow", ""), one, other);
    for (text, expected) in [
        (
            pair(&rule("a", "allow", "when.worker = \"x\""), &rule("d", "deny", "when.worker = \"x\"")),
            "rule `a` can never decide: `d`",
        ),
        (
            pair(
                &rule("p", "approve", "when.worker = \"x\"\nwhen.depth_over = 1"),
                &rule("d", "deny", "when.worker = \"x\""),
            ),
            "rule `p` can never decide: `d`",
        ),
        (
            pair(&rule("d1", "deny", "when.worker = \"x\""), &rule("d2", "deny", "when.worker = \"x\"")),
            "rule `d2` can never decide: `d1`",
        ),
        (
            pair(&rule("a", "allow", "when.path_missing = true\nwhen.path = \"x\""), ""),
            "`path_missing` contradicts",
        ),
        (
            pair(&rule("a", "allow", "when.goal_bytes_max = 9\nwhen.goal_bytes_over = 9"), ""),
            "`goal_bytes_over` leaves nothing",
        ),
        (
            pair(&rule("a", "allow", "when.tier = \"ns\"\nwhen.worker_kind = \"polling\""), ""),
            "a polling worker has no tier",
        ),
        (
            pair(&rule("a", "allow", "when.worker_kind = \"polling\"\nlimit.tier_min = \"ll\""), ""),
            "`limit.tier_min` asks for more",
        ),
        (
            pair(&rule("a", "allow", "when.depth_over = 1").replace("delegate", "screenshot"), ""),
            "only a delegation has a worker",
        ),
        (rule("d", "deny", ""), "everything is denied"),
    ] {
        let warnings = warned(&text);
        assert!(warnings.contains(expected), "{expected:?} is not in {warnings:?}");
    }
    assert_eq!(warned(&rule("fine", "allow", "")), "");
}
