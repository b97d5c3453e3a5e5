//! The rules that come with Provost, and DevIt's own rules for tools.

use provost::base::AgentId;
use provost::domain::{Approver, Decision, Judge as _};
use provost::policy::{Builtin, RuleSet, builtin, check};

use super::{request, says};

#[test]
fn the_shipped_rules_load_without_a_warning_and_their_examples_hold() {
    for it in Builtin::ALL {
        let report = check(it.text(), it.name());
        assert!(report.loads(), "{:?}", report.problems);
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        assert!(report.rules > 10);
        assert_eq!(report.version, Some(builtin(it.name()).unwrap().version()));
    }
    assert!(builtin("lenient").is_none());
}

/// Each shipped policy, and what it says to the same requests.
#[test]
fn the_shipped_rules_say_what_their_names_promise() {
    let [default, strict, open] = Builtin::ALL.map(|it| RuleSet::new(it.layer()));
    for (words, by_default, by_strict, by_open) in [
        ("worker = \"shell\"", "allow worker.confined", "allow worker.small", "allow worker.confined"),
        ("goal_bytes = 9000", "allow worker.confined", "approve worker.large", "allow worker.confined"),
        ("network = \"hosts\"", "approve worker.network", "approve worker.network", "allow worker.confined"),
        ("network = \"ports\"", "approve worker.network", "approve worker.network", "allow worker.confined"),
        ("tier = \"ll\"", "approve worker.weak", "deny worker.weak", "allow worker.weak"),
        (
            "tier = \"ll\"; network = \"ports\"",
            "approve worker.network",
            "deny worker.weak",
            "approve worker.weak-network",
        ),
        ("worker_kind = \"polling\"", "allow worker.polling", "deny worker.polling", "allow worker.polling"),
        (
            "action = \"screenshot\"",
            "approve screenshot.ask",
            "deny screenshot.never",
            "approve screenshot.ask",
        ),
        ("action = \"apply\"", "approve apply.ask", "approve apply.ask", "allow apply.results"),
        (
            "action = \"approve\"; proof = \"own_key\"",
            "allow approval.by-key",
            "deny approval.people-only",
            "allow approval.by-key",
        ),
        (
            "action = \"approve\"; proof = \"shared_key\"",
            "deny no-rule",
            "deny approval.people-only",
            "deny no-rule",
        ),
        ("depth = 3", "deny delegate.depth", "deny delegate.depth", "allow worker.confined"),
        (
            "root = \"/home/ada/.ssh\"",
            "deny workspace.private",
            "deny workspace.private",
            "deny workspace.private",
        ),
        (
            "cwd = \"x/.git/hooks\"",
            "deny workspace.machinery",
            "deny workspace.machinery",
            "deny workspace.machinery",
        ),
    ] {
        let answers = [&default, &strict, &open].map(|set| says(set, words));
        assert_eq!(answers, [by_default, by_strict, by_open], "{words}");
    }
}

#[test]
fn people_and_the_configured_approver_are_asked_by_default() {
    let decision = builtin("default").unwrap().decide_request(&request("network = \"ports\""));
    let Decision::NeedApproval { by, wait, again, .. } = decision else { panic!("{decision:?}") };
    assert_eq!(
        by,
        [Approver::PasskeyIfEnrolled, Approver::Agent(AgentId::parse("client:approver").unwrap())]
    );
    assert_eq!((wait, again), (provost::base::Ttl::minutes(30), 3));
}

#[test]
fn devits_own_tool_rules_narrow_what_the_worker_rules_let_through() {
    let set = builtin("default").unwrap();
    for (words, expected) in [
        ("tool = \"devit_patch_apply\"; path = \"/workdir/src/main.rs\"", "allow worker.confined"),
        ("tool = \"devit_patch_apply\"; path = \"/workdir/tests/it.rs\"", "allow worker.confined"),
        ("tool = \"devit_patch_apply\"; path = \"/tmp/devit/x\"", "allow worker.confined"),
        ("tool = \"devit_patch_apply\"; path = \"/workdir/src/../../etc/x\"", "deny devit.patch-system"),
        ("tool = \"devit_patch_apply\"; path = \"/workdir/src//..//..//etc/./x\"", "deny devit.patch-system"),
        ("tool = \"devit_patch_apply\"; path = '\\workdir\\src\\..\\..\\etc\\x'", "deny devit.patch-system"),
        ("tool = \"devit_patch_apply\"; path = \"/etc\"", "deny devit.patch-system"),
        ("tool = \"devit_patch_apply\"; path = \"../../home/ada/x\"", "deny devit.patch-system"),
        ("tool = \"devit_patch_apply\"; path = \"/workdir/srcfoo\"", "approve devit.patch-elsewhere"),
        ("tool = \"devit_patch_apply\"; path = \"/etcetera\"", "approve devit.patch-elsewhere"),
        ("tool = \"devit_patch_apply\"", "approve devit.patch-unnamed"),
        ("tool = \"devit_file_read\"; path = \"src/keyboard.rs\"", "allow worker.confined"),
        ("tool = \"devit_file_read\"; path = \"monkey.rs\"", "allow worker.confined"),
        ("tool = \"devit_file_read\"; path = \"/etc/shadow\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"/root/.ssh\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"~/.ssh/id_rsa\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"conf/my-passwords.txt\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"/srv/secrets/a\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"tls/server.key\"", "deny devit.read-secret"),
        ("tool = \"devit_file_read\"; path = \"a\"; max_bytes = 1048576", "allow worker.confined"),
        ("tool = \"devit_file_read\"; path = \"a\"; max_bytes = 1048577", "approve devit.read-large"),
        ("tool = \"devit_test_run\"; command = \"cargo test\"; timeout_secs = 120", "allow worker.confined"),
        (
            "tool = \"devit_test_run\"; command = \"cargo test\"; timeout_secs = 121",
            "approve devit.test-long",
        ),
        ("tool = \"devit_test_run\"; command = \"sudo cargo test\"", "approve devit.test-dangerous"),
        ("tool = \"devit_test_run\"; command = \"docker-compose up\"", "approve devit.test-dangerous"),
        ("tool = \"devit_snapshot\"", "allow worker.confined"),
        ("tool = \"something_else\"", "allow worker.confined"),
        ("tool = \"devit_test_run\"; command = \"cargo test\"; tier = \"ll\"", "approve worker.weak"),
        ("tool = \"devit_file_read\"; path = \"a\"; worker_kind = \"polling\"", "allow worker.polling"),
    ] {
        assert_eq!(says(&set, words), expected, "{words}");
    }
}

#[test]
fn a_tools_allowance_never_carries_a_worker_that_no_rule_allows() {
    let text = Builtin::Default.text();
    let (start, end) = (text.find("# No jail binds").unwrap(), text.find("# ---- what reaches").unwrap());
    let without = format!("{}{}", &text[..start], &text[end..]);
    let set = RuleSet::parse(&without, "test.toml").unwrap();
    for tool in [
        "devit_delegate",
        "devit_patch_apply\"; path = \"/workdir/src/a",
        "devit_test_run",
        "devit_file_read",
    ] {
        let words = format!("worker_kind = \"polling\"; tool = \"{tool}\"");
        assert_eq!(says(&set, &words), "deny no-rule", "{words}");
    }
}

#[test]
fn tool_paths_are_brought_to_their_shortest_spelling() {
    for (path, expected) in [
        ("", "."),
        (".", "."),
        ("a/", "a"),
        ("./a//b/.", "a/b"),
        ("a/../b", "b"),
        ("a/..", "."),
        ("..", ".."),
        ("../../a", "../../a"),
        ("a/../../b", "../b"),
        ("/", "/"),
        ("//", "/"),
        ("/..", "/"),
        ("/../etc//x/", "/etc/x"),
        ("/workdir/src/../../etc/x", "/etc/x"),
        ("a\\..\\..\\b", "../b"),
        ("...", "..."),
    ] {
        assert_eq!(provost::base::normalised_path(path), expected, "{path}");
        assert_eq!(provost::base::normalised_path(expected), expected, "{path} is not at rest");
    }
}
