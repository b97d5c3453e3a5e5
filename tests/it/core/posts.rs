//! Messages between agents and the conflicts that come of them, as scripts over the core.

use provost::base::limits::{
    PARKED_AGENTS_MAX, POST_AGENTS_MAX, POST_AGENTS_OF_ONE_MAX, POST_FILES_MAX, POST_FINDINGS_MAX,
    POST_REGIONS_MAX, POST_WIDE_MAX, POST_WIDE_OF_ONE_MAX, POST_WILDCARDS_MAX, ROSTER_TEXT_MAX,
};
use provost::base::{AgentId, PostSeq, Slug, Ttl};
use provost::domain::command::{AddressAgent, Publish, Published};
use provost::domain::post::{IntendedFile, PathScope, Post, Region, Source, slug, slug_of_branch};
use provost::domain::{
    Answer, Change, Command, Door, Event, EventKind, PostChange, Principal, Proof, Refusal, Reply, Scope,
};
use provost_test_equipment::callers::caller;
use provost_test_equipment::callers::from_tree;

use crate::support::script::{Said, Script};

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn who(name: &str) -> Principal {
    caller(name, Door::Own, &[Scope::Join, Scope::Coordinate, Scope::Read], Proof::PeerUid)
}

/// A script, and everything that it has left so far.
struct Crew {
    script: Script,
    events: Vec<Event>,
    changes: Vec<Change>,
}

impl Crew {
    fn new() -> Self {
        Self { script: Script::new(), events: Vec::new(), changes: Vec::new() }
    }

    fn say(&mut self, who: &Principal, command: impl Into<Command>) -> Said {
        let said = self.script.say(who, command);
        self.keep();
        said
    }

    fn wait(&mut self, ttl: Ttl) {
        self.script.pass(ttl);
        self.keep();
    }

    fn keep(&mut self) {
        self.events.extend(self.script.out.events.iter().cloned());
        self.changes.extend(self.script.out.changes.iter().cloned());
    }
}

fn texts(texts: &[&str]) -> Vec<Box<str>> {
    texts.iter().map(|it| (*it).into()).collect()
}

fn status(name: &str, status: &str, files: &[&str]) -> Post {
    Post::Status {
        agent: agent(name),
        status: status.into(),
        files: texts(files),
        message: None,
        cli: None,
        phase: None,
        detail: None,
    }
}

fn artifact(name: &str, status: &str, files: &[&str]) -> Post {
    Post::Artifact { agent: agent(name), status: status.into(), exports: Vec::new(), files: texts(files) }
}

fn question(name: &str, text: &str) -> Post {
    Post::Question { agent: agent(name), question: text.into() }
}

fn answer(name: &str, text: &str) -> Post {
    Post::Answer { agent: agent(name), from: agent("supervisor"), answer: text.into(), re: None }
}

fn feedback(name: &str, text: &str) -> Post {
    Post::Feedback { agent: agent(name), from: agent("supervisor"), errors: texts(&[text]), re: None }
}

fn intent(name: &str, files: &[(&str, &[Region])]) -> Post {
    let files = files.iter().map(|(path, regions)| IntendedFile {
        path: (*path).into(),
        regions: regions.to_vec(),
        plain: regions.is_empty(),
    });
    Post::Intent { agent: agent(name), files: files.collect(), summary: "s".into(), valid_s: 600 }
}

fn publish(s: &mut Crew, post: Post) -> PostSeq {
    say(s, post, Source::Client)
}

fn watched(s: &mut Crew, name: &str, files: &[&str]) {
    say(s, status(name, "working", files), Source::Watcher);
}

fn say(s: &mut Crew, post: Post, source: Source) -> PostSeq {
    let sender = who(post.sender().as_str());
    match s.say(&sender, Publish { post, source }) {
        Ok(Answer::Done(Reply::Published(Published { n }))) => n,
        other => panic!("{other:?}"),
    }
}

/// Returns everything that an inbox has got in the whole script: numbers and messages.
fn inbox(s: &Crew, name: &str) -> Vec<(PostSeq, Post)> {
    let posts: Vec<_> = s
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Published { post, .. } => Some((event.seq, post.clone())),
            _ => None,
        })
        .collect();
    let to = slug(name);
    let mut found = Vec::new();
    for change in &s.changes {
        if let Change::Post(PostChange::File { n, seq, to: all, .. }) = change
            && all.contains(&to)
        {
            let post = posts.iter().find(|(it, _)| it == seq).unwrap().1.clone();
            found.push((*n, post));
        }
    }
    found
}

/// Returns the texts that the conflict detector has sent to an agent.
fn told(s: &Crew, name: &str) -> Vec<String> {
    let text = |post: Post| match post {
        Post::Feedback { errors, .. } => Some(errors.join("|")),
        Post::Question { question, .. } => Some(question.into()),
        _ => None,
    };
    let all = inbox(s, name).into_iter().filter_map(|(_, post)| text(post));
    all.filter_map(|it| it.strip_prefix("[conflict-detector] ").map(str::to_owned)).collect()
}

fn label(s: &Crew, name: &str) -> String {
    s.script.core.state().broker.get(&slug(name)).unwrap().row.as_ref().unwrap().label.to_string()
}

/// Three agents that have said where they are.
fn crew() -> Crew {
    let mut s = Crew::new();
    for name in ["feat-aa", "feat-bb", "supervisor"] {
        publish(&mut s, status(name, "working", &[]));
    }
    s
}

#[test]
fn all_spellings_of_a_branch_are_one_agent() {
    let cases = [
        ("feat/http-broker", "feat-http-broker"),
        ("Feat/HTTP_Broker", "feat-http_broker"),
        ("users/jane/feat/x", "users-jane-feat-x"),
        ("feat//x", "feat-x"),
        ("/feat/x/", "feat-x"),
        ("feat--x-", "feat-x"),
        ("main", "main"),
    ];
    for (name, expected) in cases {
        assert_eq!(slug(name).as_str(), expected, "{name}");
        assert_eq!(slug_of_branch(name).unwrap().as_str(), expected, "{name}");
    }
    // Clients make their own names of branches; other agents have theirs from people.
    for (branch, expected) in [("feat/日本語", Some("feat")), ("日本語", None), ("", None), ("///", None)]
    {
        assert_eq!(slug_of_branch(branch).as_ref().map(Slug::as_str), expected, "{branch}");
    }
    for (name, expected) in [
        ("feat/日本語", "feat-日本語"),
        ("Élan", "élan"),
        ("feat/x.y", "feat-x.y"),
        ("a.b", "a.b"),
        ("A b", "a b"),
        ("ΟΔΌΣ", "οδόσ"),
        ("οδός", "οδόσ"),
        ("日本-", "日本"),
        ("///", "///"),
        ("-", "-"),
        ("", "-"),
        ("\n", "-"),
        ("\u{85}", "-"),
    ] {
        assert_eq!(slug(name).as_str(), expected, "{name:?}");
    }
    let long = "太".repeat(100);
    assert_eq!(slug(&long).as_str().len(), 198);
    let mut s = crew();
    publish(&mut s, status("feat/x", "working", &[]));
    publish(&mut s, feedback("feat-x", "to the dash"));
    publish(&mut s, feedback("feat/x", "to the slash"));
    assert_eq!(inbox(&s, "feat-x").len(), 2);
}

#[test]
fn what_comes_before_its_reader_waits_for_them() {
    let mut s = crew();
    let early = publish(&mut s, feedback("feat-late", "early"));
    publish(&mut s, answer("feat/late", "also early"));
    assert!(inbox(&s, "feat-late").is_empty(), "a poll stays empty until then");
    let n = publish(&mut s, status("feat-late", "working", &[]));
    let got = inbox(&s, "feat-late");
    assert_eq!(got.len(), 2);
    assert!(got.iter().all(|(it, _)| *it > early && *it < n), "fresh numbers: {got:?}");
    // Nobody gets it twice.
    publish(&mut s, status("feat-late", "working", &[]));
    assert_eq!(inbox(&s, "feat-late").len(), 2);
}

#[test]
fn a_question_is_asked_once_until_it_is_answered() {
    let mut s = crew();
    let count = |s: &Crew| inbox(s, "supervisor").len();
    publish(&mut s, question("feat-aa", "RS256?"));
    publish(&mut s, question("feat-aa", "RS256?"));
    publish(&mut s, question("feat/aa", "RS256?"));
    assert_eq!(count(&s), 1);
    publish(&mut s, question("feat-bb", "RS256?"));
    assert_eq!(count(&s), 2, "somebody else's question");
    assert_eq!(s.script.core.state().broker.questions().count(), 2);
    publish(&mut s, answer("feat-aa", "yes"));
    assert_eq!(s.script.core.state().broker.questions().count(), 1);
    publish(&mut s, question("feat-aa", "RS256?"));
    assert_eq!(count(&s), 3, "asked again after an answer");
}

#[test]
fn a_block_ends_when_its_agent_works_again_and_what_is_done_stays_for_a_while() {
    let mut s = crew();
    publish(&mut s, Post::Blocked { agent: agent("feat-aa"), needs: "n".into(), from: "feat-bb".into() });
    publish(&mut s, status("feat-aa", "idle", &[]));
    assert_eq!(label(&s, "feat-aa"), "blocked");
    watched(&mut s, "feat-aa", &["a"]);
    assert_eq!(label(&s, "feat-aa"), "blocked", "an edit is no word of its agent");
    publish(&mut s, status("feat-aa", "working", &[]));
    assert_eq!(label(&s, "feat-aa"), "working");
    publish(&mut s, artifact("feat-aa", "done", &[]));
    publish(&mut s, status("feat-aa", "working", &[]));
    assert_eq!(label(&s, "feat-aa"), "done", "a late heartbeat");
    s.wait(Ttl::minutes(2));
    publish(&mut s, status("feat-aa", "working", &[]));
    assert_eq!(label(&s, "feat-aa"), "working", "new work");
}

#[test]
fn a_commit_does_not_evaporate_when_the_tree_becomes_clean() {
    let mut s = crew();
    watched(&mut s, "feat-aa", &["src/a.rs"]);
    publish(&mut s, artifact("feat-aa", "committed", &["src/a.rs"]));
    watched(&mut s, "feat-aa", &[]);
    assert_eq!(label(&s, "feat-aa"), "committed");
    watched(&mut s, "feat-aa", &["src/b.rs"]);
    assert_eq!(label(&s, "feat-aa"), "working", "a real edit");
}

#[test]
fn what_somebody_tells_about_an_agent_is_no_sign_of_its_life() {
    let mut s = crew();
    let seen =
        |s: &Crew| s.script.core.state().broker.get(&slug("feat-aa")).unwrap().row.clone().unwrap().seen;
    let before = seen(&s);
    watched(&mut s, "feat-aa", &["src/a.rs"]);
    s.wait(Ttl::minutes(1));
    let working = seen(&s);
    assert_eq!(before, working);
    publish(&mut s, status("feat-aa", "auto_approved", &[]));
    assert_eq!(seen(&s), working);
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert_eq!(told(&s, "feat-aa").len(), 1, "and says nothing about its files");
}

#[test]
fn heartbeats_do_not_hide_files_that_were_seen_to_change() {
    let mut s = crew();
    watched(&mut s, "feat-aa", &["src/a.rs"]);
    publish(&mut s, status("feat-aa", "working", &[]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert_eq!(told(&s, "feat-aa").len(), 1);
    // What was only said is taken back by saying so.
    let mut s = crew();
    publish(&mut s, status("feat-aa", "working", &["src/a.rs"]));
    publish(&mut s, status("feat-aa", "working", &[]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert!(told(&s, "feat-aa").is_empty());
}

#[test]
fn other_spellings_folders_and_patterns_are_the_same_files() {
    for (announced, other) in [
        ("./src/a.rs", "src/a.rs"),
        ("src//x/../a.rs", "src/a.rs"),
        ("src/*.rs", "src/b.rs"),
        ("lib/", "lib/deep/x.rs"),
        ("src/**/x.rs", "src/a/b/x.rs"),
        ("src/**/x.rs", "src/x.rs"),
        ("**", "any/where"),
    ] {
        let mut s = crew();
        publish(&mut s, intent("feat-aa", &[(announced, &[])]));
        publish(&mut s, intent("feat-bb", &[(other, &[])]));
        let expected = format!("forward conflict: agent feat-aa also intends to modify: {other}");
        assert_eq!(told(&s, "feat-bb"), [expected], "{announced} {other}");
        let mut s = crew();
        publish(&mut s, intent("feat-aa", &[(announced, &[])]));
        publish(&mut s, status("feat-bb", "working", &[other]));
        assert_eq!(told(&s, "feat-bb").len(), 1, "{announced} {other}");
    }
    for (announced, other) in
        [("src/*.rs", "src/a/b.rs"), ("lib/", "library/x"), ("src/a.rs", "src/A.rs"), ("s?c/a", "s/c/a")]
    {
        let mut s = crew();
        publish(&mut s, intent("feat-aa", &[(announced, &[])]));
        publish(&mut s, intent("feat-bb", &[(other, &[])]));
        assert!(told(&s, "feat-bb").is_empty(), "{announced} {other}");
    }
}

#[test]
fn a_committed_artifact_ends_its_intent_and_is_in_the_way_until_it_is_verified() {
    let mut s = crew();
    publish(&mut s, intent("feat-aa", &[("src/a.rs", &[]), ("src/b.rs", &[])]));
    publish(&mut s, artifact("feat-aa", "committed", &["src/a.rs"]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    let both = "in-flight conflict: file src/a.rs is being modified by both you and ";
    assert_eq!(told(&s, "feat-bb"), [format!("{both}feat-aa")]);
    assert_eq!(told(&s, "feat-aa"), [format!("{both}feat-bb")]);
    publish(&mut s, status("feat-bb", "working", &["src/b.rs"]));
    assert!(told(&s, "feat-bb")[1].starts_with("ownership violation: you edited src/b.rs"), "still intended");
    let verified = Post::Verified { agent: agent("feat-aa"), by: agent("supervisor"), message: None };
    publish(&mut s, verified);
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert_eq!(told(&s, "feat-bb").len(), 2, "verified work is in nobody's way");
}

#[test]
fn an_ownership_violation_is_told_again_when_it_happens_again() {
    let mut s = crew();
    publish(&mut s, intent("feat-aa", &[("src/a.rs", &[])]));
    for expected in [1, 1] {
        publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
        assert_eq!(told(&s, "feat-bb").len(), expected);
    }
    publish(&mut s, status("feat-bb", "working", &[]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert_eq!(told(&s, "feat-bb").len(), 2);
    assert_eq!(told(&s, "supervisor").len(), 2, "and every owner's file is told once");
    publish(&mut s, status("supervisor", "working", &[]));
    publish(&mut s, intent("feat-cc", &[("src/a.rs", &[])]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    assert!(told(&s, "feat-bb").last().unwrap().contains("agent feat-cc declared intent"), "a second owner");
}

#[test]
fn each_standoff_that_lasts_is_brought_to_the_supervisor() {
    let mut s = crew();
    for round in 1..=2 {
        publish(&mut s, status("feat-aa", "working", &["src/a.rs"]));
        publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
        s.wait(Ttl::minutes(3));
        let asked = told(&s, "supervisor");
        assert_eq!(asked.len(), round, "{asked:?}");
        let text = "in-flight conflict on src/a.rs between feat-aa and feat-bb has not resolved within 120s. Human \
                    input requested.";
        assert_eq!(asked[round - 1], text);
        publish(&mut s, status("feat-aa", "working", &[]));
    }
}

#[test]
fn what_the_daemon_writes_by_itself_is_proven_to_be_its_own() {
    let mut s = crew();
    publish(&mut s, status("feat-aa", "working", &["src/a.rs"]));
    publish(&mut s, status("feat-bb", "working", &["src/a.rs"]));
    s.wait(Ttl::minutes(3));
    publish(&mut s, artifact("feat-aa", "committed", &["src/a.rs"]));
    // A client may take the name in which the daemon writes, and not its proof.
    let feigned = Post::Feedback {
        agent: agent("feat-aa"),
        from: agent("supervisor"),
        errors: texts(&["stop"]),
        re: None,
    };
    publish(&mut s, feigned);
    let mut kinds = Vec::new();
    for event in &s.events {
        let EventKind::Published { post, proof, .. } = &event.kind else { continue };
        let is_daemons = match post {
            Post::Feedback { errors, .. } => *errors != texts(&["stop"]),
            Post::Question { .. } | Post::VerifyNow { .. } => true,
            _ => false,
        };
        assert_eq!(*proof == Some(Proof::Internal), is_daemons, "{post:?}");
        kinds.extend(is_daemons.then(|| post.kind()));
    }
    for kind in ["feedback", "question", "verify_now"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
}

#[test]
fn edits_in_different_parts_are_no_case_for_the_supervisor() {
    let mut s = crew();
    publish(&mut s, intent("feat-aa", &[("src/c.rs", &[Region::Lines(10, 30)])]));
    publish(&mut s, intent("feat-bb", &[("src/c.rs", &[Region::Lines(80, 120)])]));
    publish(&mut s, status("feat-aa", "working", &["src/c.rs"]));
    publish(&mut s, status("feat-bb", "working", &["./src/c.rs"]));
    s.wait(Ttl::minutes(3));
    assert!(told(&s, "supervisor").is_empty());
    assert!(told(&s, "feat-aa")[1].starts_with("shared file, additive"), "{:?}", told(&s, "feat-aa"));
}

#[test]
fn invented_names_do_not_fill_the_memory() {
    let mut s = Crew::new();
    let bound = POST_AGENTS_MAX;
    for n in 0..bound {
        // Each tree of processes has a share of it.
        let name = format!("feat-{n}");
        let from = from_tree(who(&name), 1 + u32::try_from(n / POST_AGENTS_OF_ONE_MAX).unwrap());
        let post = status(&name, "working", &[]);
        s.say(&from, Publish { post, source: Source::Client }).unwrap();
        if (n + 1) % POST_AGENTS_OF_ONE_MAX == 0 && n + 1 < bound {
            let more = Publish { post: status("feat-more", "working", &[]), source: Source::Client };
            let said = s.say(
                &from_tree(who("feat-more"), 1 + u32::try_from(n / POST_AGENTS_OF_ONE_MAX).unwrap()),
                more,
            );
            assert!(matches!(said, Err(Refusal::Quota { .. })), "{n}: {said:?}");
        }
    }
    let one_more = Publish { post: status("feat-more", "working", &[]), source: Source::Client };
    assert!(s.say(&who("feat-more"), one_more.clone()).is_err(), "all of them are fresh");
    s.wait(Ttl::minutes(61));
    publish(&mut s, status("feat-1", "working", &[]));
    s.say(&who("feat-more"), one_more).unwrap();
    let broker = &s.script.core.state().broker;
    assert_eq!(broker.iter().count(), bound);
    assert!(broker.get(&Slug::parse("feat-0").unwrap()).is_none(), "the longest silent one has gone");
    for n in 0..3_000 {
        publish(&mut s, feedback(&format!("nobody-{n}"), "e"));
    }
    let parked = s.script.core.state().broker.waiting();
    assert!(parked <= PARKED_AGENTS_MAX, "{parked}");
}

#[test]
fn what_is_said_without_end_is_delivered_and_compared_in_part() {
    let mut s = crew();
    let long = "x".repeat(100_000);
    let lines: Vec<Region> = (0..20_000).map(|n| Region::Function(format!("f{n}").into())).collect();
    let mut files: Vec<(String, Vec<Region>)> = (0..5_000).map(|n| (format!("d{n}/*a*b*"), vec![])).collect();
    files.insert(0, (long.clone(), vec![]));
    files.insert(1, ("src/a.rs".into(), lines.clone()));
    files.insert(2, ("src/b.rs".into(), lines[..POST_REGIONS_MAX].to_vec()));
    let listed: Vec<(&str, &[Region])> =
        files.iter().map(|(path, it)| (path.as_str(), it.as_slice())).collect();
    publish(&mut s, intent("feat-aa", &listed));
    let print = s.script.core.state().broker.print(&slug("feat-aa")).unwrap().clone();
    let kept = &print.intent.as_ref().unwrap().files;
    assert_eq!(kept.len(), 2 + POST_WIDE_MAX, "two files, and so many patterns");
    assert_eq!((kept[0].regions.len(), kept[1].regions.len()), (0, POST_REGIONS_MAX));
    // The whole list is in the message all the same.
    assert!(matches!(&inbox(&s, "feat-bb")[0].1, Post::Intent { files, .. } if files.len() == 5_003));
    // All of a file that has too many parts is meant, and of the other these parts.
    publish(&mut s, intent("feat-bb", &[("src/a.rs", &[Region::Function("g".into())])]));
    publish(&mut s, intent("feat-bb", &[("src/b.rs", &[Region::Function("f7()".into())])]));
    publish(&mut s, intent("feat-bb", &[("src/b.rs", &[Region::Function("g".into())])]));
    let heard: Vec<_> = told(&s, "feat-bb");
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].ends_with("src/a.rs") && heard[1].contains("function f7"), "{heard:?}");

    let names: Vec<String> = (0..3_000).map(|n| format!("{n}/{}", "y".repeat(3_000))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain([long.as_str()]).collect();
    for _ in 0..3 {
        publish(&mut s, artifact("feat-aa", "committed", &names));
    }
    let print = s.script.core.state().broker.print(&slug("feat-aa")).unwrap().clone();
    assert_eq!(print.left.len(), POST_FILES_MAX);
    let status = Post::Status {
        agent: agent("feat-aa"),
        status: long.as_str().into(),
        files: Vec::new(),
        message: None,
        cli: Some(long.as_str().into()),
        phase: Some(long.as_str().into()),
        detail: None,
    };
    publish(&mut s, artifact("feat-aa", "idle", &[]));
    s.wait(Ttl::minutes(5));
    publish(&mut s, status);
    let it = s.script.core.state().broker.get(&slug("feat-aa")).unwrap().clone();
    let row = it.row.as_ref().unwrap();
    for text in [&row.label, row.phase.as_ref().unwrap(), it.cli.as_ref().unwrap()] {
        assert!(text.len() <= ROSTER_TEXT_MAX);
    }
}

#[test]
fn patterns_of_invented_names_are_compared_as_far_as_those_of_a_few_agents() {
    let mut s = crew();
    let patterns: Vec<String> = (0..POST_WIDE_MAX).map(|n| format!("src/**/*{n}.rs")).collect();
    let listed: Vec<(&str, &[Region])> = patterns.iter().map(|it| (it.as_str(), &[] as &[Region])).collect();
    let announced = |s: &Crew, name: &str| {
        let print = s.script.core.state().broker.print(&slug(name)).cloned();
        print.and_then(|it| it.intent.as_ref().map(|it| it.files.len())).unwrap_or_default()
    };
    for n in 0..20 {
        let name = format!("feat-{n}");
        let post = intent(&name, &listed);
        s.say(&from_tree(who(&name), 1), Publish { post, source: Source::Client }).unwrap();
    }
    let all: usize = (0..20).map(|n| announced(&s, &format!("feat-{n}"))).sum();
    assert_eq!(all, POST_WIDE_OF_ONE_MAX);
    // It is nothing to an agent of another tree, and what names single files is compared as before.
    let post = intent("feat-other", &listed);
    s.say(&from_tree(who("feat-other"), 2), Publish { post, source: Source::Client }).unwrap();
    assert_eq!(announced(&s, "feat-other"), POST_WIDE_MAX);
    let post = intent("feat-19", &[("src/a.rs", &[])]);
    s.say(&from_tree(who("feat-19"), 1), Publish { post, source: Source::Client }).unwrap();
    assert_eq!(announced(&s, "feat-19"), 1);
    // With more wildcards than that a text is the name of a file.
    let many = "*a".repeat(POST_WILDCARDS_MAX + 1);
    assert!(PathScope::of(&many).file().is_some() && PathScope::of(&many[2..]).file().is_none());
    assert!(PathScope::of(&"**/".repeat(POST_WILDCARDS_MAX)).file().is_none());
}

#[test]
fn commits_one_after_the_other_leave_no_more_patterns_than_one() {
    let mut s = crew();
    for commit in 0..4 {
        let patterns: Vec<String> = (0..POST_WIDE_MAX).map(|n| format!("src/{commit}/**/*{n}.rs")).collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        publish(&mut s, artifact("feat-aa", "committed", &patterns));
    }
    let left = s.script.core.state().broker.print(&slug("feat-aa")).unwrap().left.clone();
    assert_eq!(left.len(), POST_WIDE_MAX);
    assert!(left.iter().all(|it| it.starts_with("src/3/")), "{left:?}");
}

#[test]
fn a_report_that_meets_thousands_of_others_is_told_of_them_bit_by_bit() {
    let mut s = crew();
    let files: Vec<String> = (0..POST_FINDINGS_MAX + 50).map(|n| format!("src/{n}.rs")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // Of files that both change.
    publish(&mut s, status("feat-aa", "working", &files));
    publish(&mut s, status("feat-bb", "working", &files));
    assert_eq!(told(&s, "feat-bb").len(), POST_FINDINGS_MAX);
    publish(&mut s, status("feat-bb", "working", &files));
    publish(&mut s, status("feat-bb", "working", &files));
    assert_eq!((told(&s, "feat-bb").len(), told(&s, "feat-aa").len()), (files.len(), files.len()));
    // Of files that one has announced, and another one changes.
    let listed: Vec<(&str, &[Region])> = files.iter().map(|it| (*it, &[] as &[Region])).collect();
    publish(&mut s, status("feat-aa", "idle", &[]));
    publish(&mut s, status("feat-bb", "idle", &[]));
    publish(&mut s, intent("feat-aa", &listed));
    let before = told(&s, "feat-bb").len();
    for after in [POST_FINDINGS_MAX, files.len(), files.len()] {
        publish(&mut s, status("feat-bb", "working", &files));
        assert_eq!(told(&s, "feat-bb").len() - before, after);
    }
}

#[test]
fn what_is_left_to_the_next_report_is_told_then_though_the_other_agent_has_stopped() {
    let mut s = crew();
    let files: Vec<String> = (0..POST_FINDINGS_MAX + 50).map(|n| format!("src/{n}.rs")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let listed: Vec<(&str, &[Region])> = files.iter().map(|it| (*it, &[] as &[Region])).collect();
    publish(&mut s, intent("feat-aa", &listed));
    publish(&mut s, status("feat-aa", "working", &files));
    publish(&mut s, status("feat-bb", "working", &files));
    assert_eq!(told(&s, "feat-bb").len(), POST_FINDINGS_MAX);
    // The files are no longer changed by both, but still announced by the other one.
    publish(&mut s, status("feat-aa", "idle", &[]));
    publish(&mut s, status("feat-bb", "working", &files));
    assert_eq!(told(&s, "feat-bb").len(), files.len());
}

#[test]
fn an_addressed_agent_has_an_inbox_and_no_row() {
    let mut s = crew();
    let add = AddressAgent { agent: agent("feat/w"), cli: "claude".into() };
    s.say(&who("feat/w"), add).unwrap();
    let it = s.script.core.state().broker.get(&slug("feat-w")).unwrap().clone();
    assert!(it.row.is_none() && it.cli.as_deref() == Some("claude"));
    publish(&mut s, artifact("feat-aa", "done", &[]));
    assert_eq!(inbox(&s, "feat-w").len(), 1);
}
