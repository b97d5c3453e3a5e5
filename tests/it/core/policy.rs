//! Judgement: what rules say about requests.

mod calls;
mod shipped;
mod shown;

use provost::base::{AgentId, RuleId, TaskId};
use provost::domain::command::AckTask;
use provost::domain::{
    Approver, Command, Decision, Door, Facts, Judge, Network, Principal, Proof, Rate, Scope, Terms, Tier,
    WorkerKind,
};
use provost::policy::{Case, Layer, Request, RuleSet, builtin, run_cases};
use provost_test_equipment::callers::caller;

/// A rule file with the header filled in.
fn rules(text: &str) -> RuleSet {
    RuleSet::parse(&format!("version = 1\n{text}"), "test.toml")
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn layer(text: &str) -> Layer {
    Layer::parse(&format!("version = 1\n{text}"), "test.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

/// A request in the words of an example.
fn request(words: &str) -> Request {
    let text = format!("[[case]]\nexpect = \"deny\"\n{}", words.replace("; ", "\n"));
    Case::parse(&text, "request").unwrap_or_else(|problems| panic!("{problems}")).remove(0).request
}

/// A decision as `allow rule`, `approve rule` or `deny rule`.
fn says(rules: &RuleSet, words: &str) -> String {
    said(&rules.decide_request(&request(words)))
}

fn said(decision: &Decision) -> String {
    match decision {
        Decision::Allow { rule, .. } => format!("allow {rule}"),
        Decision::NeedApproval { rule, .. } => format!("approve {rule}"),
        Decision::Deny { rule, .. } => format!("deny {rule}"),
    }
}

fn terms(rules: &RuleSet, words: &str) -> Terms {
    match rules.decide_request(&request(words)) {
        Decision::Allow { terms, .. } | Decision::NeedApproval { terms, .. } => terms,
        denied => panic!("{denied:?}"),
    }
}

/// A rule file of rules that are only about the worker's name.
fn rule(id: &str, decision: &str, more: &str) -> String {
    let ask =
        if decision == "approve" && !more.contains("approve.by") { "approve.by = [\"human\"]" } else { "" };
    format!(
        "[[rule]]\nid = \"{id}\"\ndecision = \"{decision}\"\nreason = \"reason of {id}\"\n\
         when.action = [\"delegate\"]\n{more}\n{ask}\n"
    )
}

#[test]
fn each_condition_holds_where_it_should_and_nowhere_else() {
    for (condition, matching, other) in [
        (r#"client = ["mcp*"]"#, r#"client = "mcp-server""#, r#"client = "a mcp""#),
        (r#"door = ["own"]"#, r#"door = "own""#, r#"door = "devit""#),
        (r#"proof = ["own_key", "person"]"#, r#"proof = "person""#, r#"proof = "shared_key""#),
        (r#"proof = ["peer_uid"]"#, r#"proof = "peer_uid""#, r#"proof = "own_key""#),
        (r#"worker = ["claude", "codex*"]"#, r#"worker = "codex:2""#, r#"worker = "claude2""#),
        (r#"worker_kind = "polling""#, r#"worker_kind = "polling""#, r#"worker_kind = "cli""#),
        (r#"tier = "ll""#, r#"tier = "ll""#, r#"tier = "ns""#),
        (r#"tier = "job""#, r#"tier = "job""#, r#"tier = "ll""#),
        (r#"tier = ["ll", "ns"]"#, r#"tier = "ns""#, r#"worker_kind = "polling""#),
        (r#"network = "none""#, r#"network = "none""#, r#"network = "ports""#),
        (r#"network = "any""#, r#"network = "ports""#, r#"network = "none""#),
        (r#"network = ["hosts"]"#, r#"network = "hosts""#, r#"network = "ports""#),
        (r#"cwd = ["a/**"]"#, r#"cwd = "a""#, r#"cwd = "ab""#),
        (r#"cwd = ["a/**"]"#, r#"cwd = "b/../a/c/d""#, r#"cwd = "a/../b""#),
        (r#"cwd = ["."]"#, r#"cwd = ".""#, r#"cwd = "a""#),
        (r#"cwd = ["*/src"]"#, r#"cwd = "x/src""#, r#"cwd = "x/y/src""#),
        (r#"cwd = ["/srv/**/app"]"#, "root = \"/srv/app\"", "root = \"/srv/x/apple\""),
        (r#"tool = ["devit_*"]"#, r#"tool = "devit_x""#, r#"tool = "x_devit_""#),
        (r#"path = ["src/**"]"#, r#"path = "src/./a.rs""#, r#"path = "/src/a.rs""#),
        (r#"path = ["/etc/**"]"#, r#"path = "/w/../etc//x""#, r#"path = "/etcetera""#),
        (r#"path = ["../**"]"#, r#"path = "a/../../x""#, r#"path = "..x""#),
        (r#"path_outside = ["src/**"]"#, r#"path = "srcfoo""#, r#"path = "src/x""#),
        (r#"path_outside = ["src/**"]"#, r#"path = "src/../x""#, "depth = 0"),
        ("path_missing = true", "depth = 0", r#"path = "x""#),
        (r#"command_has = ["rm -rf"]"#, r#"command = "x;rm  -rf y""#, r#"command = "rmx -rf""#),
        (r#"command_has = ["sudo"]"#, r#"command = "/bin/SUDO x""#, r#"command = "pseudo""#),
        (r#"max_bytes_over = "1KiB""#, "max_bytes = 1025", "max_bytes = 1024"),
        (r#"timeout_over = "2m""#, "timeout_secs = 121", "timeout_secs = 120"),
        ("goal_bytes_max = 9", "goal_bytes = 9", "goal_bytes = 10"),
        (r#"goal_bytes_over = "1KiB""#, "goal_bytes = 1025", "goal_bytes = 1024"),
        ("depth_over = 1", "depth = 2", "depth = 1"),
        ("running_over = 1", "running = 2", "running = 1"),
    ] {
        let rules = rules(&rule("it", "allow", &format!("when.{condition}")));
        assert_eq!(says(&rules, matching), "allow it", "{condition} with {matching}");
        assert_eq!(says(&rules, other), "deny no-rule", "{condition} with {other}");
    }
}

#[test]
fn hours_are_local_to_their_offset_and_may_wrap_around_midnight() {
    let day = rules(&rule("day", "allow", r#"when.hours = "08:00-20:00+01:00""#));
    let night = rules(&rule("night", "allow", r#"when.hours = "22:00-06:00-03:30""#));
    for (set, at, expected) in [
        (&day, "06:59:59", "deny no-rule"),
        (&day, "07:00:00", "allow day"),
        (&day, "18:59:59", "allow day"),
        (&day, "19:00:00", "deny no-rule"),
        (&night, "01:29:59", "deny no-rule"),
        (&night, "01:30:00", "allow night"),
        (&night, "09:29:59", "allow night"),
        (&night, "09:30:00", "deny no-rule"),
    ] {
        assert_eq!(says(set, &format!("now = \"2026-05-04T{at}Z\"")), expected, "{at}");
    }
}

#[test]
fn an_action_has_the_conditions_of_its_kind_only() {
    let all = rules(
        "[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.any = true\n\
         [[rule]]\nid = \"deep\"\ndecision = \"deny\"\nreason = \"r\"\nwhen.goal_bytes_max = 100\n",
    );
    assert_eq!(says(&all, "action = \"delegate\""), "deny deep");
    assert_eq!(says(&all, "action = \"screenshot\""), "allow all");
    assert_eq!(says(&all, "action = \"apply\""), "allow all");
    assert_eq!(says(&all, "action = \"approve\""), "allow all");
}

#[test]
fn what_no_rule_matches_is_denied() {
    assert_eq!(says(&rules(""), "depth = 0"), "deny no-rule");
    assert_eq!(says(&rules(&rule("other", "allow", "when.worker = \"x\"")), "depth = 0"), "deny no-rule");
}

#[test]
fn the_strictest_rule_wins_in_any_order() {
    let (allow, approve, deny) = (rule("a", "allow", ""), rule("b", "approve", ""), rule("c", "deny", ""));
    for text in [[&allow, &approve, &deny], [&deny, &approve, &allow], [&approve, &deny, &allow]] {
        assert_eq!(says(&rules(&text.map(String::as_str).concat()), "depth = 0"), "deny c");
    }
    for text in [[&allow, &approve], [&approve, &allow]] {
        assert_eq!(says(&rules(&text.map(String::as_str).concat()), "depth = 0"), "approve b");
    }
}

#[test]
fn the_first_rule_of_the_winning_kind_gives_name_and_reason() {
    let set =
        rules(&["deny", "deny"].iter().zip(["x", "y"]).map(|(d, id)| rule(id, d, "")).collect::<String>());
    let Decision::Deny { rule, reason } = set.decide_request(&Request::default()) else { panic!() };
    assert_eq!((rule.as_str(), &*reason), ("x", "reason of x"));
}

#[test]
fn the_limits_of_all_rules_that_allow_are_intersected() {
    let set = rules(&[
        rule(
            "wide",
            "allow",
            "limit.timeout = \"20m\"\nlimit.memory = \"2GiB\"\nlimit.processes = 9\nlimit.rate = \"30/h per client\"\nlimit.retries = 4\n\
             limit.hosts = [\"a.example:443\", \"B.example:443\"]",
        ),
        rule(
            "narrow",
            "allow",
            "when.worker = \"w*\"\nlimit.timeout = \"5m\"\nlimit.memory = \"3GiB\"\nlimit.concurrent = 2\nlimit.retries = 1\n\
             limit.tier_min = \"ns\"\nlimit.rate = \"5/m\"\nlimit.hosts = [\"b.example:443\", \"c.example:443\"]",
        ),
    ].concat());
    let hosts = "network = \"hosts\"; hosts = [\"a.example:443\", \"b.example:443\", \"c.example:443\"]";
    let rate = |count, minutes| Some(Rate { count, per: provost::base::Ttl::minutes(minutes) });
    assert_eq!(
        terms(&set, hosts),
        Terms {
            tier_min: Some(Tier::Ns),
            timeout: Some(provost::base::Ttl::minutes(5)),
            memory: Some(2 << 30),
            processes: Some(9),
            concurrent: Some(2),
            rate: rate(30, 60),
            hosts: vec!["b.example:443".into()],
            credentials: None,
            retries: Some(1),
        }
    );
    assert_eq!(terms(&set, "worker = \"other\"").tier_min, None);
    assert!(terms(&set, "network = \"none\"").hosts.is_empty());
}

#[test]
fn an_approved_command_keeps_the_limits_of_the_rules_that_allow_it() {
    let set = rules(
        &[
            rule("go", "allow", "limit.timeout = \"20m\"\nlimit.processes = 9"),
            rule("ask", "approve", "limit.timeout = \"5m\""),
        ]
        .concat(),
    );
    let terms = terms(&set, "depth = 0");
    assert_eq!((terms.timeout, terms.processes), (Some(provost::base::Ttl::minutes(5)), Some(9)));
}

#[test]
fn those_are_asked_whom_every_rule_believes_and_for_the_shortest_time() {
    let set = rules(
        &[
            rule("one", "approve", "approve.by = [\"human\", \"client:approver\"]\napprove.expires = \"9m\""),
            rule("two", "approve", "approve.by = [\"client:approver\"]\napprove.expires = \"3m\""),
            rule("three", "approve", "when.worker = \"x\"\napprove.by = [\"human\"]"),
        ]
        .concat(),
    );
    let decision = set.decide_request(&Request::default());
    let Decision::NeedApproval { rule, by, wait, .. } = decision else { panic!("{decision:?}") };
    assert_eq!((rule.as_str(), wait), ("one", provost::base::Ttl::minutes(3)));
    assert_eq!(by, [Approver::Agent(AgentId::parse("client:approver").unwrap())]);
    let nobody = set.decide_request(&request("worker = \"x\""));
    let Decision::Deny { rule, reason } = nobody else { panic!("{nobody:?}") };
    assert!(rule.as_str() == "one" && reason.contains("no approver"), "{rule}: {reason}");
}

#[test]
fn an_answer_to_an_approval_never_waits_for_another() {
    let set = rules(
        "[[rule]]\nid = \"all\"\ndecision = \"approve\"\nreason = \"r\"\nwhen.any = true\napprove.by = [\"human\"]",
    );
    assert_eq!(says(&set, "action = \"approve\""), "deny all");
    assert_eq!(says(&set, "action = \"apply\""), "approve all");
}

#[test]
fn a_confinement_that_the_worker_cannot_have_is_a_no() {
    let set = rules(&rule("it", "allow", "limit.tier_min = \"ns\""));
    assert_eq!(says(&set, "tier = \"ns\""), "allow it");
    for (words, why) in
        [("tier = \"ll\"", "tier ll"), ("worker_kind = \"polling\"", "no jail binds a polling worker")]
    {
        let decision = set.decide_request(&request(words));
        assert!(matches!(&decision, Decision::Deny { reason, .. } if reason.contains(why)), "{decision:?}");
    }
}

#[test]
fn tier_job_is_for_rules_that_name_it() {
    let set = rules(&rule("it", "allow", ""));
    let decision = set.decide_request(&request("tier = \"job\""));
    assert!(
        matches!(&decision, Decision::Deny { reason, .. } if reason.contains("when.tier = [\"job\"]")),
        "{decision:?}"
    );
    for named in ["when.tier = [\"job\"]", "when.tier = [\"job\", \"ns\"]", "limit.tier_min = \"job\""] {
        assert_eq!(says(&rules(&rule("it", "allow", named)), "tier = \"job\""), "allow it", "{named}");
    }
    let stronger = rules(&rule("it", "allow", "limit.tier_min = \"ll\""));
    assert_eq!(says(&stronger, "tier = \"job\""), "deny it");
    // What only tightens cannot open this either.
    let over = layer(&rule("over", "allow", "when.tier = [\"job\"]"));
    let layered = RuleSet::layered(layer(&rule("it", "allow", "")), vec![over]);
    assert_eq!(says(&layered, "tier = \"job\""), "deny it");
    for (name, said) in [("default", "deny"), ("strict", "deny"), ("open", "approve")] {
        let found = says(&builtin(name).unwrap(), "tier = \"job\"");
        assert_eq!(found, format!("{said} worker.job"), "{name}");
    }
}

#[test]
fn writing_to_the_repository_is_for_rules_that_name_it() {
    let set = rules(&rule("it", "allow", ""));
    let decision = set.decide_request(&request("git = \"write\""));
    assert!(
        matches!(&decision, Decision::Deny { reason, .. } if reason.contains("when.git = [\"write\"]")),
        "{decision:?}"
    );
    for named in ["when.git = [\"write\"]", "when.git = [\"read\", \"write\"]"] {
        assert_eq!(says(&rules(&rule("it", "allow", named)), "git = \"write\""), "allow it", "{named}");
    }
    assert_eq!(
        says(&rules(&rule("it", "allow", "when.git = [\"read\"]")), "git = \"write\""),
        "deny no-rule"
    );
    // What only tightens cannot open this either.
    let over = layer(&rule("over", "allow", "when.git = [\"write\"]"));
    let layered = RuleSet::layered(layer(&rule("it", "allow", "")), vec![over]);
    assert_eq!(says(&layered, "git = \"write\""), "deny it");
    for (name, said) in [("default", "approve worker.git"), ("open", "approve worker.git")] {
        assert_eq!(says(&builtin(name).unwrap(), "git = \"write\""), said, "{name}");
    }
    assert!(says(&builtin("strict").unwrap(), "git = \"write\"").starts_with("deny "));
}

#[test]
fn a_directory_outside_the_root_is_refused_whatever_the_rules_say() {
    let set = rules(&rule("it", "allow", ""));
    assert_eq!(says(&set, "cwd = \"../x\""), "deny sandbox");
    assert_eq!(says(&set, "root = \"/a\"; cwd = \"/ab\""), "deny sandbox");
    assert_eq!(says(&set, "root = \"/a\"; cwd = \"/a/b\""), "allow it");
    assert_eq!(says(&set, "root = \"/\"; cwd = \"/a/b\""), "allow it");
}

#[test]
fn a_layer_over_the_base_tightens_and_opens_nothing() {
    let base = layer(&rule("base", "allow", "when.worker = \"w*\"\nlimit.timeout = \"9m\""));
    let over = |text: &str| RuleSet::layered(base.clone(), vec![layer(text)]);
    let allowing = over(&rule("sys", "allow", "limit.timeout = \"3m\""));
    assert_eq!(says(&allowing, "worker = \"other\""), "deny no-rule");
    assert_eq!(says(&allowing, "worker = \"w\""), "allow base");
    assert_eq!(terms(&allowing, "worker = \"w\"").timeout, Some(provost::base::Ttl::minutes(3)));
    assert_eq!(says(&over(&rule("sys", "approve", "")), "worker = \"w\""), "approve sys");
    assert_eq!(says(&over(&rule("sys", "approve", "")), "worker = \"other\""), "deny no-rule");
    assert_eq!(says(&over(&rule("sys", "deny", "")), "worker = \"w\""), "deny sys");
    assert_eq!(says(&over(""), "worker = \"w\""), "allow base");
}

#[test]
fn a_version_changes_with_the_rules_and_not_with_their_spelling() {
    let version = |text: &str| rules(text).version();
    let text = rule("it", "allow", "when.worker = [\"a\", \"b\"]\nlimit.timeout = \"60s\"");
    let spelled =
        format!("# note\n{}", text.replace("\"60s\"", "\"1m\"").replace("[\"a\", \"b\"]", "['b', \"a\"]"));
    let with_example = format!("{text}example.allow = [{{ worker = \"a\" }}]\n");
    assert_eq!(version(&text), version(&spelled));
    assert_eq!(version(&text), version(&with_example));
    assert_ne!(version(&text), version(&text.replace("60s", "61s")));
    assert_ne!(version(&text), version(&text.replace("\"a\"", "\"c\"")));
    assert_ne!(version(&text), version(&text.replace("reason of it", "another reason")));
    let (base, over) = (layer(&text), layer(&rule("sys", "deny", "")));
    let (one, two) = (RuleSet::layered(base.clone(), vec![over.clone()]), RuleSet::layered(over, vec![base]));
    assert_ne!(one.version(), two.version());
}

#[test]
fn verbs_without_judgement_are_not_let_through_by_mistake() {
    let set = rules("[[rule]]\nid = \"all\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.any = true");
    let who: Principal = caller("mcp", Door::Devit, &[Scope::Coordinate], Proof::SharedKey);
    let command = Command::from(AckTask { task: TaskId::parse("t").unwrap() });
    assert_eq!(said(&set.decide(&who, &command, &Facts::default())), "deny no-rule");
    assert!(Request::of(&who, &command, &Facts::default()).is_none());
}

#[test]
fn a_rule_set_serves_the_core_as_its_judge() {
    let judge: Box<dyn Judge> = Box::new(builtin("default").unwrap());
    let who = caller("mcp", Door::Devit, &[Scope::Delegate], Proof::SharedKey);
    let command = Command::from(provost::domain::command::TakeScreenshot {
        task: provost::base::TaskId::parse("s-1").unwrap(),
    });
    assert_eq!(said(&judge.decide(&who, &command, &Facts::default())), "approve screenshot.ask");
    let facts = Facts { network: Network::None, worker_kind: Some(WorkerKind::Cli), ..Facts::default() };
    assert_eq!(judge.version(), builtin("default").unwrap().version());
    assert_eq!(said(&judge.decide(&who, &command, &facts)), "approve screenshot.ask");
    assert_eq!(RuleId::parse("screenshot.ask").unwrap().as_str(), "screenshot.ask");
}

/// The examples in the language's own documentation must hold.
#[test]
fn the_examples_of_the_readme_load() {
    let readme = include_str!("../../../policy/README.md");
    let blocks: Vec<&str> =
        readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [policy, calls, table] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    for rules in [policy, &format!("version = 1\n{calls}")] {
        RuleSet::parse(rules, "README.md").unwrap_or_else(|problems| panic!("{problems}"));
    }
    let cases = Case::parse(table, "README.md").unwrap_or_else(|problems| panic!("{problems}"));
    assert!(run_cases(&builtin("default").unwrap(), &cases).is_empty());
}
