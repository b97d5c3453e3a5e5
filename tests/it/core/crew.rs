//! The crew: members and their lead, claims, assignments, transfers and notes, as rules and in every store.

use std::collections::BTreeMap;

use provost::base::{AssignmentId, EventSeq, HandoffId, Json, RepoPath, Ttl};
use provost::domain::command::{
    AnswerTransfer, AppointLead, BeatCrew, ChangedFile, ClaimFile, FileClaimed, JoinCrew, LeaveCrew,
    LockFile, MakeAssignment, MoveAssignment, MoveMember, OfferTransfer, ReleaseFile, SeeFiles, SeenFile,
    SettledFile, TakeNote,
};
use provost::domain::{
    Answer, AssignmentState, Content, CrewEvent, CrewRefusal, Door, EventKind, Hold, Note, Principal, Proof,
    Refusal, Reply, Role, Scope, Seen, Standing,
};
use provost::store::{Options, Store, TimelineOrder, TimelineQuery, open};
use provost_test_equipment::MemoryStore;
use provost_test_equipment::callers::caller;

use crate::support::script::{Script, host, person};
use crate::support::storm::{agent, settings};

fn member(name: &str) -> Principal {
    caller(name, Door::AgentProtocol, &[Scope::Join, Scope::Read, Scope::Coordinate], Proof::PeerUid)
}

fn path(text: &str) -> RepoPath {
    RepoPath::parse(text).unwrap()
}

const SHA: Content = Content::Sha([1, 2, 3, 4, 5, 6, 7, 8]);

fn joining(role: Role) -> JoinCrew {
    JoinCrew { tool: "x".into(), role, capabilities: vec!["code".into()] }
}

fn claiming(file: &str) -> ClaimFile {
    ClaimFile { file: path(file), content: SHA, assignment: None }
}

impl Script {
    fn joins(&mut self, name: &str, role: Role) {
        self.later(1);
        self.say(&member(name), joining(role)).unwrap();
    }

    fn later(&mut self, ms: i64) {
        self.now.0 += ms;
    }

    fn lead(&self) -> Option<&str> {
        self.core.state().crew.lead().map(|it| it.as_str())
    }

    fn role(&self, name: &str) -> Role {
        self.core.state().crew.get(&agent(name)).unwrap().role()
    }

    fn crew_said(&self) -> Vec<CrewEvent> {
        let crew = |kind: &EventKind| match kind {
            EventKind::Crew(event) => Some(event.clone()),
            _ => None,
        };
        self.out.events.iter().filter_map(|it| crew(&it.kind)).collect()
    }

    fn names_said(&self) -> Vec<&'static str> {
        self.out.events.iter().filter(|it| it.topic().is_some()).map(|it| it.kind.name()).collect()
    }

    fn ticks(&mut self, ms: i64) {
        self.later(ms);
        self.out.clear();
        self.core.tick(self.now, &mut self.out);
    }

    fn hold(&self, file: &str) -> Hold {
        self.core.state().claims.get(&path(file)).unwrap().held.clone()
    }

    fn leads(&self) -> usize {
        self.core.state().crew.iter().filter(|it| it.role() == Role::Lead).count()
    }
}

#[test]
fn one_of_the_crew_leads_whoever_asks() {
    let mut s = Script::new();
    s.joins("a", Role::Worker);
    assert_eq!((s.lead(), s.role("a")), (Some("a"), Role::Lead), "the first one leads");
    s.joins("b", Role::Specialist);
    s.joins("c", Role::Lead);
    s.joins("d", Role::Worker);
    assert_eq!((s.lead(), s.role("c"), s.leads()), (Some("a"), Role::Worker, 1));
    s.say(&member("a"), LeaveCrew { only_if_idle: false, contents: BTreeMap::new() }).unwrap();
    assert_eq!(s.names_said(), ["member_left", "lead_elected"]);
    assert_eq!(s.lead(), Some("c"), "whoever asked to lead comes first");
    s.say(&member("c"), MoveMember { to: Standing::Offline }).unwrap();
    assert_eq!((s.lead(), s.role("c"), s.leads()), (Some("b"), Role::Worker, 1), "then specialists");
    s.say(&person("ann"), AppointLead { agent: agent("d") }).unwrap();
    assert_eq!((s.lead(), s.role("b"), s.leads()), (Some("d"), Role::Specialist, 1));
    let nobody = s.say(&person("ann"), AppointLead { agent: agent("c") });
    assert_eq!(nobody, Err(CrewRefusal::NotInCrew.into()), "one who is not there");
    assert!(
        s.say(&member("b"), AppointLead { agent: agent("b") }).is_err(),
        "agents do not appoint themselves"
    );
    let appoint = AppointLead { agent: agent("b") };
    assert_eq!(s.say(&host(), appoint), Err(CrewRefusal::PersonOnly.into()));
    s.joins("d", Role::Worker);
    assert_eq!(s.lead(), Some("d"), "whoever announces itself again leads on");
}

#[test]
fn the_configured_lead_leads_whenever_it_is_there() {
    let mut settings = settings();
    settings.crew.lead = Some(agent("boss"));
    let mut s = Script::with(settings);
    s.joins("a", Role::Lead);
    s.joins("boss", Role::Worker);
    assert_eq!((s.lead(), s.leads()), (Some("boss"), 1));
    assert_eq!(s.names_said(), ["member_joined", "lead_elected"]);
    s.say(&member("boss"), LeaveCrew { only_if_idle: false, contents: BTreeMap::new() }).unwrap();
    assert_eq!(s.lead(), Some("a"));
}

#[test]
fn a_silent_member_is_told_once_and_loses_lead_and_claims() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    s.joins("b", Role::Worker);
    s.say(&member("a"), MoveMember { to: Standing::Working }).unwrap();
    s.say(&member("a"), claiming("src/a.ts")).unwrap();
    s.later(40_000);
    s.say(&member("b"), BeatCrew).unwrap();
    assert_eq!(s.names_said(), ["member_beat"]);
    s.ticks(19_998);
    assert_eq!(s.names_said(), [""; 0], "not before its time");
    s.ticks(10);
    assert_eq!(s.names_said(), ["member_moved", "claim_freed", "lead_elected"]);
    let Some(CrewEvent::MemberMoved { from, to, why, .. }) = s.crew_said().first().cloned() else { panic!() };
    assert_eq!((from, to, why.as_deref()), (Standing::Working, Standing::Offline, Some("heartbeat_timeout")));
    assert_eq!((s.lead(), s.hold("src/a.ts")), (Some("b"), Hold::Free));
    for _ in 0..3 {
        s.say(&member("b"), BeatCrew).unwrap();
        s.ticks(30_000);
        assert_eq!(s.names_said(), [""; 0], "told once");
    }
    s.say(&member("a"), BeatCrew).unwrap();
    assert_eq!(s.names_said(), ["member_beat", "member_moved"], "a sign of life brings it back");
    assert_eq!((s.lead(), s.role("a")), (Some("b"), Role::Worker), "as what it is now");
}

#[test]
fn silence_is_looked_for_as_often_as_is_wanted() {
    let mut settings = settings();
    settings.crew.heartbeat_interval = Some(Ttl::seconds_clamped(45));
    let mut s = Script::with(settings);
    s.now.0 = 45_000 * 1_000_000 - 1;
    s.joins("a", Role::Lead);
    assert_eq!(s.now.0 % 45_000, 0);
    s.ticks(89_999);
    assert_eq!(s.names_said(), [""; 0], "a minute of silence, and nobody looks");
    assert!(s.core.state().next_deadline().is_some_and(|it| it <= s.now.after(Ttl::from_millis(1).unwrap())));
    s.ticks(1);
    assert_eq!(s.names_said(), ["member_moved"]);
}

#[test]
fn nobody_is_dead_because_the_daemon_was_away() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    let mut again = Script::new();
    again.core.restore(s.core.state().clone());
    // A start forgets when it was awake; the state of a core that was restored from rows has no such moment.
    let rows: Vec<_> = s.core.state().crew.iter().cloned().collect();
    let mut state = provost::domain::State::new(settings());
    rows.into_iter().for_each(|it| state.apply(&provost::domain::CrewChange::PutMember(it).into()));
    again.core.restore(state);
    again.now = s.now;
    again.ticks(10 * 60_000);
    assert_eq!(again.names_said(), [""; 0], "nobody could have heard it");
    again.ticks(59_999);
    assert_eq!(again.names_said(), [""; 0]);
    again.ticks(1);
    assert_eq!(again.names_said(), ["member_moved"]);
}

#[test]
fn a_file_is_one_agents_until_it_gives_it_back() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    s.joins("b", Role::Worker);
    let stranger = s.say(&member("ghost"), claiming("z"));
    assert_eq!(stranger, Err(CrewRefusal::NotInCrew.into()));
    s.say(&member("a"), claiming("src/a.ts")).unwrap();
    assert_eq!(s.names_said(), ["claim_granted"]);
    let again = s.say(&member("a"), claiming("src/a.ts")).unwrap();
    let Answer::Done(Reply::FileClaimed(FileClaimed { fresh, .. })) = again else { panic!() };
    assert_eq!((fresh, s.names_said()), (false, vec![]), "again without a word");
    let taken = s.say(&member("b"), claiming("src/a.ts"));
    assert_eq!(taken, Err(CrewRefusal::FileClaimed { by: agent("a") }.into()));
    let release = |s: &mut Script, who| {
        let verb = ReleaseFile { file: path("src/a.ts"), content: Content::Missing };
        match s.say(&member(who), verb).unwrap() {
            Answer::Done(Reply::FileReleased(it)) => it.released,
            other => panic!("{other:?}"),
        }
    };
    assert!(!release(&mut s, "b"));
    assert!(release(&mut s, "a"));
    assert!(!release(&mut s, "a"));
    let claim = s.core.state().claims.get(&path("src/a.ts")).unwrap().clone();
    assert_eq!(
        (claim.held.clone(), claim.content, claim.last.clone()),
        (Hold::Free, Content::Missing, Some(agent("a")))
    );
    s.say(&member("b"), claiming("src/a.ts")).unwrap();
    assert!(matches!(&s.crew_said()[..], [CrewEvent::ClaimGranted { first: false, .. }]));
}

#[test]
fn the_lead_alone_locks_files() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    s.joins("b", Role::Worker);
    let lock = |file, lock| LockFile { file: path(file), content: SHA, lock };
    let refused = s.say(&member("b"), lock("x", true));
    assert_eq!(refused, Err(CrewRefusal::LeadOnly { lead: Some(agent("a")) }.into()));
    s.say(&member("b"), claiming("y")).unwrap();
    assert!(s.say(&member("a"), lock("y", true)).is_err(), "claimed by another");
    s.say(&member("a"), lock("x", true)).unwrap();
    assert_eq!(s.say(&member("b"), claiming("x")), Err(CrewRefusal::FileLocked { by: agent("a") }.into()));
    s.say(&member("a"), claiming("x")).unwrap();
    assert_eq!(s.names_said(), [""; 0], "its owner has it already");
    s.say(&member("a"), lock("x", false)).unwrap();
    assert_eq!(s.hold("x"), Hold::Free);
    s.say(&member("b"), claiming("x")).unwrap();
}

fn assignment(id: &str, to: Option<&str>, after: &[&str]) -> MakeAssignment {
    MakeAssignment {
        id: AssignmentId::parse(id).unwrap(),
        title: "T".into(),
        description: "".into(),
        to: to.map(Into::into),
        files: vec!["src".into()],
        after: after.iter().map(|it| (*it).into()).collect(),
    }
}

fn moving(id: &str, to: AssignmentState, expected: Option<AssignmentState>) -> MoveAssignment {
    MoveAssignment { id: AssignmentId::parse(id).unwrap(), to, expected }
}

#[test]
fn an_assignment_remembers_its_first_start_and_its_last_end() {
    use AssignmentState::{Assigned, Done, InProgress, Queued};
    let mut s = Script::new();
    s.say(&member("a"), assignment("t1", Some("b"), &[])).unwrap();
    s.say(&member("a"), assignment("t2", Some(""), &["t1"])).unwrap();
    let get =
        |s: &Script, id| s.core.state().assignments.get(&AssignmentId::parse(id).unwrap()).unwrap().clone();
    assert_eq!((get(&s, "t1").state, get(&s, "t2").state), (Assigned, Queued));
    s.later(10);
    s.say(&member("b"), moving("t1", InProgress, None)).unwrap();
    let started = get(&s, "t1").started_at.unwrap();
    s.later(10);
    s.say(&member("b"), moving("t1", Done, None)).unwrap();
    s.say(&member("b"), moving("t1", InProgress, Some(Done))).unwrap();
    assert_eq!(get(&s, "t1").started_at, Some(started));
    assert_eq!(get(&s, "t1").completed_at, Some(s.now));
    let late = s.say(&member("c"), moving("t1", Queued, Some(Done)));
    assert_eq!(
        late,
        Err(CrewRefusal::AssignmentElsewhere { at: InProgress }.into()),
        "nobody's update is lost"
    );
    assert_eq!(s.say(&member("c"), moving("t9", Done, None)), Err(CrewRefusal::AssignmentNotFound.into()));
    s.say(&member("c"), moving("t2", InProgress, None)).unwrap();
}

#[test]
fn dependencies_and_scope_are_honoured_where_that_is_wanted() {
    use AssignmentState::{Done, InProgress};
    let mut settings = settings();
    (settings.crew.honour_dependencies, settings.crew.strict_scope) = (true, true);
    let mut s = Script::with(settings);
    s.joins("a", Role::Lead);
    s.say(&member("a"), assignment("t1", None, &[])).unwrap();
    s.say(&member("a"), assignment("t2", None, &["t1", "t0"])).unwrap();
    let waits = |on: &str| Err(CrewRefusal::AssignmentWaits { on: on.into() }.into());
    assert_eq!(s.say(&member("a"), moving("t2", InProgress, None)), waits("t1"));
    s.say(&member("a"), moving("t1", Done, None)).unwrap();
    assert_eq!(s.say(&member("a"), moving("t2", InProgress, None)), waits("t0"), "nobody knows t0");
    let scoped = |file| ClaimFile { assignment: Some("t1".into()), ..claiming(file) };
    s.say(&member("a"), scoped("src/deep/a.ts")).unwrap();
    for outside in ["srcs/a.ts", "b"] {
        assert!(s.say(&member("a"), scoped(outside)).is_err(), "{outside}");
    }
    s.say(&member("a"), claiming("b")).unwrap();
}

#[test]
fn a_transfer_is_answered_once() {
    let mut s = Script::new();
    let id = HandoffId::parse("h1").unwrap();
    let offer = OfferTransfer {
        id: id.clone(),
        to: None,
        assignment: "t".into(),
        summary: "s".into(),
        modified: vec!["a".into()],
        created: vec!["b".into()],
        context: "".into(),
        blockers: vec![],
    };
    s.say(&member("a"), offer).unwrap();
    assert!(matches!(&s.crew_said()[..], [CrewEvent::TransferOffered { files: 2, .. }]));
    let answer = |accept| AnswerTransfer { id: id.clone(), accept, reason: "".into() };
    s.say(&member("b"), answer(false)).unwrap();
    assert_eq!(s.names_said(), ["transfer_answered"]);
    s.say(&member("b"), answer(true)).unwrap();
    assert_eq!(s.names_said(), [""; 0]);
}

fn note(action: &str, file: Option<&str>) -> Note {
    Note {
        action: action.into(),
        file: file.map(Into::into),
        plain: None,
        assignment: None,
        before: None,
        after: None,
        metadata: Json::parse("{}").unwrap(),
        origin: None,
    }
}

#[test]
fn a_change_of_anothers_file_is_a_conflict_until_somebody_settles_it() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    s.joins("b", Role::Worker);
    s.say(&member("a"), claiming("f")).unwrap();
    let changed = |who: &Script| {
        let _ = who;
        TakeNote {
            note: note("resource.modified", Some("f")),
            changed: Some(ChangedFile { file: path("f"), content: Content::Missing, versions: Vec::new() }),
            settles: None,
        }
    };
    let own = changed(&s);
    s.say(&member("a"), own.clone()).unwrap();
    assert_eq!(s.names_said(), ["noted"]);
    s.say(&member("b"), own).unwrap();
    assert_eq!(s.names_said(), ["noted", "conflict_found"]);
    assert!(matches!(s.hold("f"), Hold::Conflicted { .. }));
    for who in ["a", "b"] {
        assert_eq!(s.say(&member(who), claiming("f")), Err(CrewRefusal::FileConflicted.into()));
    }
    let settle = |pick: Option<&str>| TakeNote {
        note: note("resource.conflict_resolved", Some("f")),
        changed: None,
        settles: Some(SettledFile { file: path("f"), pick: pick.map(agent), content: None }),
    };
    s.say(&member("cli"), settle(Some("b"))).unwrap();
    assert!(matches!(s.hold("f"), Hold::Claimed { owner, .. } if owner == agent("b")));
    s.say(&member("cli"), settle(None)).unwrap();
    assert!(matches!(s.hold("f"), Hold::Claimed { .. }), "there is nothing to settle");
}

#[test]
fn a_change_that_was_seen_is_told_as_whose_file_it_is() {
    let mut s = Script::new();
    s.joins("a", Role::Lead);
    s.say(&member("a"), claiming("f")).unwrap();
    let seen = |file: &str, how, after| SeeFiles {
        files: vec![SeenFile { file: path(file), how, before: None, after, versions: Vec::new() }],
    };
    let told = |s: &Script| {
        let event = s.out.events.iter().find(|it| it.topic().is_some());
        event.map(|it| it.topic().unwrap().agent.to_owned())
    };
    s.say(&host(), seen("f", Seen::Changed, Some(SHA))).unwrap();
    assert_eq!(told(&s), None, "it says what it said");
    s.say(&host(), seen("f", Seen::Changed, Some(Content::TooLarge))).unwrap();
    assert_eq!(told(&s).as_deref(), Some("a"));
    s.say(&host(), seen("other", Seen::Changed, Some(SHA))).unwrap();
    assert_eq!(told(&s).as_deref(), Some("watcher"));
    s.say(&host(), seen("f", Seen::Deleted, None)).unwrap();
    assert_eq!(told(&s).as_deref(), Some("watcher"));
    s.say(&member("a"), ReleaseFile { file: path("f"), content: SHA }).unwrap();
    s.say(&host(), seen("f", Seen::Changed, Some(Content::TooLarge))).unwrap();
    assert_eq!(told(&s).as_deref(), Some("unknown"), "nobody had claimed it");
    s.say(&member("a"), claiming("f")).unwrap();
    s.say(&member("a"), MoveMember { to: Standing::Offline }).unwrap();
    s.say(&host(), seen("f", Seen::Changed, Some(SHA))).unwrap();
    assert_eq!(s.names_said(), [""; 0], "the same content");
    s.say(&host(), seen("f", Seen::Changed, Some(Content::Unreadable))).unwrap();
    assert_eq!(s.names_said(), ["file_changed", "conflict_found"], "its owner is not there");
}

#[test]
fn who_owns_up_in_time_has_changed_what_was_seen_before() {
    let changed = |content| TakeNote {
        note: note("resource.modified", Some("f")),
        changed: Some(ChangedFile { file: path("f"), content, versions: Vec::new() }),
        settles: None,
    };
    let sees = |after| SeeFiles {
        files: vec![SeenFile {
            file: path("f"),
            how: Seen::Changed,
            before: None,
            after: Some(after),
            versions: Vec::new(),
        }],
    };
    let (second, third) = (Content::Sha([2; 8]), Content::Sha([3; 8]));
    // How long after the first change was seen, whether its owner has owned up to it, and what is the owner's
    // then.
    for (late, owned, before) in [
        (5_000, false, SHA),
        (5_001, false, third),
        (0, false, SHA),
        (1, true, second),
        (4_000, true, second),
    ] {
        let mut s = Script::new();
        s.joins("a", Role::Lead);
        s.joins("b", Role::Worker);
        s.say(&member("a"), claiming("f")).unwrap();
        s.say(&host(), sees(second)).unwrap();
        if owned {
            s.say(&member("a"), changed(second)).unwrap();
            assert_eq!(s.names_said(), ["noted"]);
        }
        s.say(&host(), sees(third)).unwrap();
        assert_eq!(s.names_said(), ["file_changed"]);
        s.later(late);
        s.say(&member("b"), changed(third)).unwrap();
        let found = s.crew_said().into_iter().find_map(|it| match it {
            CrewEvent::ConflictFound { before, after, .. } => Some((before, after)),
            _ => None,
        });
        assert_eq!(found, Some((before, third)), "{late} {owned}");
        s.say(&host(), sees(third)).unwrap();
        assert_eq!(s.names_said(), [""; 0], "what was said is not told again");
    }
}

#[test]
fn what_is_too_large_is_refused_and_changes_nothing() {
    let mut s = Script::new();
    let mut large = assignment("t", None, &[]);
    large.description = "x".repeat(70_000).into();
    assert!(matches!(s.say(&member("a"), large), Err(Refusal::Crew(CrewRefusal::TooLarge { .. }))));
    let mut long = note("x", None);
    long.metadata = Json::parse(&format!("\"{}\"", "x".repeat(300_000))).unwrap();
    let verb = TakeNote { note: long, changed: None, settles: None };
    assert!(matches!(s.say(&member("a"), verb), Err(Refusal::Crew(CrewRefusal::TooLarge { .. }))));
    assert!(s.core.state().assignments.iter().next().is_none());
    assert_eq!(s.core.state().counters.timeline, 0);
}

fn all() -> TimelineQuery {
    TimelineQuery {
        agent: None,
        word: None,
        file: None,
        since: None,
        after: None,
        before: None,
        beats: true,
        order: TimelineOrder::NewestFirst,
        limit: 100,
        bytes_max: usize::MAX,
    }
}

/// A crew with everything, written to a store batch by batch.
fn worked(store: &mut dyn Store) -> Script {
    let mut s = Script::new();
    let loaded = store.load(settings()).unwrap();
    s.core.restore(loaded.state);
    let steps: Vec<(&str, provost::domain::Command)> = vec![
        ("a", joining(Role::Lead).into()),
        ("b", joining(Role::Worker).into()),
        ("a", claiming("src/a.ts").into()),
        ("b", claiming("src/b.ts").into()),
        ("a", BeatCrew.into()),
        ("a", assignment("t1", Some("b"), &[]).into()),
        ("b", moving("t1", AssignmentState::InProgress, None).into()),
        ("b", TakeNote { note: note("my.own", Some("src/a.ts")), changed: None, settles: None }.into()),
        ("b", ReleaseFile { file: path("src/b.ts"), content: Content::Missing }.into()),
    ];
    for (who, command) in steps {
        s.later(10);
        s.say(&member(who), command).unwrap();
        store.commit(&s.out).unwrap();
    }
    s
}

fn each_store(test: impl Fn(Box<dyn Store>, &dyn Fn() -> Box<dyn Store>)) {
    let control = MemoryStore::new().control();
    test(Box::new(control.reopen()), &|| Box::new(control.reopen()));
    let dir = tempfile::tempdir().unwrap();
    let again = || open(dir.path(), Options::default()).unwrap();
    test(again(), &again);
}

#[test]
fn a_crew_survives_a_stop_and_a_crash() {
    each_store(|mut store, again| {
        let s = worked(&mut *store);
        drop(store);
        let loaded = again().load(settings()).unwrap();
        assert!(!loaded.clean);
        let (state, known) = (&loaded.state, s.core.state());
        assert_eq!(state.crew, known.crew);
        assert_eq!(state.claims, known.claims);
        assert_eq!(state.assignments, known.assignments);
        assert_eq!(state.handoffs, known.handoffs);
        assert_eq!(state.counters.timeline, 9);
    });
}

#[test]
fn the_timeline_is_asked_in_pages_and_by_any_part() {
    each_store(|mut store, _| {
        let s = worked(&mut *store);
        let mut reader = store.opens_reader().and_then(|open| open()).unwrap();
        let mut ask = |query: TimelineQuery| -> Vec<u64> {
            reader.timeline(&query).unwrap().iter().map(|it| it.seq.0).collect()
        };
        assert_eq!(ask(all()), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
        let oldest = |query: TimelineQuery| TimelineQuery { order: TimelineOrder::OldestFirst, ..query };
        assert_eq!(ask(oldest(TimelineQuery { after: Some(EventSeq(7)), ..all() })), [8, 9]);
        assert_eq!(ask(TimelineQuery { before: Some(EventSeq(3)), ..all() }), [2, 1]);
        assert_eq!(ask(TimelineQuery { limit: 2, ..all() }), [9, 8]);
        assert_eq!(ask(TimelineQuery { limit: 0, ..all() }), [0; 0]);
        assert_eq!(ask(TimelineQuery { agent: Some("b".into()), ..all() }), [9, 8, 7, 4, 2]);
        assert_eq!(ask(TimelineQuery { word: Some("resource.claimed".into()), ..all() }), [4, 3]);
        assert_eq!(ask(TimelineQuery { file: Some("src/a.ts".into()), ..all() }), [8, 3]);
        let both = TimelineQuery { agent: Some("b".into()), file: Some("src/a.ts".into()), ..all() };
        assert_eq!(ask(both), [8]);
        assert_eq!(ask(TimelineQuery { beats: false, limit: 4, ..all() }), [9, 8, 7, 6]);
        assert_eq!(ask(TimelineQuery { beats: false, ..all() }).len(), 8);
        assert_eq!(ask(TimelineQuery { since: Some(s.now), ..all() }), [9], "that moment included");
        assert_eq!(ask(TimelineQuery { bytes_max: 1, ..all() }), [9], "the first always comes");
        assert_eq!(ask(TimelineQuery { after: Some(EventSeq(u64::MAX)), ..all() }), [0; 0]);
    });
}

#[test]
fn the_timeline_forgets_what_the_journal_forgets_and_counts_on() {
    use provost::store::Retention;
    use std::time::Duration;
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path(), Options::default()).unwrap();
    let s = worked(&mut *store);
    let keep = |events| Retention { tasks: Duration::MAX, tasks_most: 10, events };
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let later = s.now.after(Ttl::minutes(25 * 60));
    store.prune(later, &keep(week), 100).unwrap();
    let mut reader = store.opens_reader().and_then(|open| open()).unwrap();
    let count = |reader: &mut Box<dyn provost::store::Reader>| reader.timeline(&all()).unwrap().len();
    assert_eq!(count(&mut reader), 8, "signs of life are old after a day");
    store.prune(later, &keep(Duration::from_secs(1)), 100).unwrap();
    assert_eq!(count(&mut reader), 0);
    drop(reader);
    store.close().unwrap();
    drop(store);
    let loaded = open(dir.path(), Options::default()).unwrap().load(settings()).unwrap();
    assert_eq!(loaded.state.counters.timeline, 9);
}
