//! Claims, locks and intents that agents have through different doors, compared by one rule set.

use provost::base::{IntentId, RepoPath, Timestamp, Ttl};
use provost::domain::command::{
    ClaimFile, CollectMail, DeclareIntent, IntendedFile, JoinCrew, Leave, Publish,
};
use provost::domain::post::{self, Post, Region, Source};
use provost::domain::{
    Answer, Content, Event, EventKind, MailKind, Part, Refusal, Reply, Reservation, ReservationKind, Role,
    Settings,
};

use crate::support::coordinating::{acquire, path};
use crate::support::script::{Said, Script, client, register};
use crate::support::storm::{agent, settings};

/// A place as one line: a path or pattern, then `#name` and `@first-last` for parts of it.
fn stake(text: &str) -> Reservation {
    let mut words = text.split(' ');
    let path = words.next().unwrap();
    let mut part = Part::default();
    for word in words {
        if let Some(name) = word.strip_prefix('#') {
            part.names.push(name.into());
        } else {
            let (first, last) = word.strip_prefix('@').unwrap().split_once('-').unwrap();
            part.lines.push((first.parse().unwrap(), last.parse().unwrap()));
        }
    }
    let begins = path.find(['*', '?', '[', '{']).map(|at| path[..at].rsplit_once('/').map_or("", |it| it.0));
    Reservation {
        agent: agent("ada"),
        kind: ReservationKind::Plan,
        at: RepoPath::parse(begins.unwrap_or(path)).unwrap(),
        pattern: begins.map(|_| path.into()),
        part,
        since: Timestamp::default(),
        until: None,
        asked: path.into(),
    }
}

#[test]
fn places_meet_as_the_table_says() {
    let table = [
        // Paths.
        ("src/a.rs", "src/a.rs", true),
        ("src/a.rs", "src/b.rs", false),
        ("src/a.rs", "src/a.rs.bak", false),
        ("src", "src/a.rs", true),
        ("src", "srcs/a.rs", false),
        ("src/deep", "src/deep/er/a.rs", true),
        ("", "src/a.rs", true),
        // Patterns.
        ("src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/a.ts", false),
        ("src/*.rs", "src/deep/a.rs", false),
        ("src/**/*.rs", "src/deep/a.rs", true),
        ("**/*.rs", "src/a.rs", true),
        ("src/*.rs", "lib/*.rs", false),
        // As at the broker door, which they come from.
        ("*.rs", "a.rs", true),
        ("*.rs", "src/a.rs", false),
        ("src/[a].*", "src/a.rs", false),
        // Parts.
        ("a #f", "a", true),
        ("a", "a @3-4", true),
        ("a #f", "a #f", true),
        ("a #f", "a #g", false),
        ("a #F()", "a #f", true),
        ("a #Session", "a #Session.renew", true),
        ("a #Session.renew", "a #renew", true),
        ("a #Session.renew", "a #Session.drop", false),
        ("a #Session", "a #Sessions", false),
        ("a #f #g", "a #h #g", true),
        ("a @1-5", "a @5-9", true),
        ("a @1-5", "a @6-9", false),
        ("a #f", "a @6-9", true),
        ("a #f @1-2", "a #g @3-4", true),
        ("a #f", "b #f", false),
        ("src #f", "src/a.rs #f", true),
    ];
    for (mine, other, meet) in table {
        let (one, two) = (stake(mine), stake(other));
        assert_eq!(one.meets(&two), meet, "{mine} and {other}");
        assert_eq!(two.meets(&one), meet, "{other} and {mine}");
    }
}

/// Ways to have a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Claim,
    Lock,
    Intent,
    Plan,
}

const ALL: [How; 4] = [How::Claim, How::Lock, How::Intent, How::Plan];

/// Takes or announces `place` (a path, and perhaps `#symbol`) as `name`, through the door where that is done.
fn have(s: &mut Script, name: &str, how: How, place: &str) -> Said {
    let (file, symbol) = place.split_once('#').unwrap_or((place, ""));
    match how {
        How::Claim => {
            let join = JoinCrew { tool: "t".into(), role: Role::Worker, capabilities: vec!["code".into()] };
            s.say(&client(name), join).unwrap();
            let claim = ClaimFile { file: path(file), content: Content::Missing, assignment: None };
            s.say(&client(name), claim)
        }
        How::Lock => s.say(&client(name), acquire(&format!("{file}:{symbol}"))),
        How::Intent => {
            let id = IntentId::parse(&format!("{name}-{place}")).unwrap();
            let symbols: Vec<Box<str>> = (!symbol.is_empty()).then(|| symbol.into()).into_iter().collect();
            let file =
                IntendedFile { path: path(file), asked: file.into(), spans: Vec::new(), names: Vec::new() };
            let verb = DeclareIntent {
                id,
                description: "it".into(),
                files: vec![file],
                symbols,
                ttl: None,
                calls: Vec::new(),
                callers: Vec::new(),
                guessed: Vec::new(),
                fresh: Vec::new(),
                gaps: Vec::new(),
                grants: Vec::new(),
            };
            s.say(&client(name), verb)
        }
        How::Plan => {
            let regions: Vec<_> =
                (!symbol.is_empty()).then(|| Region::Function(symbol.into())).into_iter().collect();
            let file = post::IntendedFile { path: file.into(), plain: regions.is_empty(), regions };
            let post =
                Post::Intent { agent: agent(name), files: vec![file], summary: "it".into(), valid_s: 600 };
            s.say(&client(name), Publish { post, source: Source::Client })
        }
    }
}

/// Meetings that the last step has announced: who came later, and whom it met.
fn met(s: &Script) -> Vec<(String, String)> {
    let met = |event: &Event| match &event.kind {
        EventKind::StakesMet { by, .. } => Some((event.actor.to_string(), by.to_string())),
        _ => None,
    };
    s.out.events.iter().filter_map(met).collect()
}

/// Returns the number of messages about other doors that the last step has put into an inbox of the broker.
fn fed_back(s: &Script, name: &str) -> usize {
    let about = |event: &Event| match &event.kind {
        EventKind::Published { post: Post::Feedback { agent, errors, .. }, .. } => {
            agent.as_str() == name && errors.iter().any(|it| it.contains("across protocols"))
        }
        _ => false,
    };
    s.out.events.iter().filter(|it| about(it)).count()
}

/// Whether the two are of one protocol.
fn own_rules(a: How, b: How) -> bool {
    a == b || matches!((a, b), (How::Lock, How::Intent) | (How::Intent, How::Lock))
}

/// Claims are for whole files.
fn meets(how: (How, How), place: (&str, &str)) -> bool {
    let part = |how: How, place: &str| match how {
        How::Claim => String::new(),
        _ => place.split_once('#').unwrap_or_default().1.to_owned(),
    };
    let file = |place: &str| place.split('#').next().unwrap().to_owned();
    let (a, b) = (part(how.0, place.0), part(how.1, place.1));
    file(place.0) == file(place.1) && (a.is_empty() || b.is_empty() || a == b)
}

#[test]
fn whoever_comes_second_through_another_door_meets_the_first_and_both_are_told_once() {
    for first in ALL {
        for second in ALL {
            let places = [
                ("src/a.ts", "src/a.ts"),
                ("src/a.ts", "src/b.ts"),
                ("src/a.ts#f", "src/a.ts#f"),
                ("src/a.ts#f", "src/a.ts#g"),
                ("src/a.ts", "src/a.ts#g"),
            ];
            for (a, b) in places {
                let case = format!("{first:?} {a}, then {second:?} {b}");
                let mut s = Script::new();
                have(&mut s, "ada", first, a).unwrap();
                assert_eq!(met(&s), [], "{case}");
                let said = have(&mut s, "bob", second, b);
                let expected = !own_rules(first, second) && meets((first, second), (a, b));
                let told = if expected { vec![("bob".to_owned(), "ada".to_owned())] } else { Vec::new() };
                assert_eq!(met(&s), told, "{case}: {said:?}");
                // The one of them that reads messages at the broker door is told there.
                let reads = [("ada", first), ("bob", second)].map(|(who, how)| (who, how == How::Plan));
                for (who, reads) in reads {
                    assert_eq!(fed_back(&s, who), usize::from(expected && reads), "{case}: {who}");
                }
                // Once more is no news.
                if said.is_ok() && second != How::Intent {
                    have(&mut s, "bob", second, b).unwrap();
                    assert_eq!(
                        (met(&s), fed_back(&s, "ada"), fed_back(&s, "bob")),
                        (Vec::new(), 0, 0),
                        "{case}, again"
                    );
                }
            }
        }
    }
}

#[test]
fn where_the_configuration_says_so_the_second_is_refused_and_nothing_has_changed() {
    for first in ALL {
        for second in ALL.into_iter().filter(|it| !own_rules(first, *it)) {
            let mut s = Script::with(Settings { deny_across_doors: true, ..settings() });
            have(&mut s, "ada", first, "src/a.ts").unwrap();
            let said = have(&mut s, "bob", second, "src/a.ts#f");
            let Err(Refusal::HeldElsewhere(stake)) = said else { panic!("{first:?}, {second:?}: {said:?}") };
            assert_eq!((stake.agent.as_str(), stake.at.as_str()), ("ada", "src/a.ts"));
            assert!(s.out.changes.is_empty() && s.out.events.is_empty(), "{first:?}, {second:?}");
            // Nobody is in their own way, and elsewhere there is room.
            have(&mut s, "ada", second, "src/a.ts#f").unwrap();
            have(&mut s, "bob", second, "src/b.ts#f").unwrap();
        }
    }
}

#[test]
fn what_is_over_is_in_nobodys_way() {
    let mut s = Script::new();
    have(&mut s, "ada", How::Lock, "a.ts#f").unwrap();
    have(&mut s, "ada", How::Intent, "a.ts#f").unwrap();
    s.say(&client("ada"), Leave { intents: true, process: None }).unwrap();
    have(&mut s, "bob", How::Plan, "a.ts").unwrap();
    assert_eq!(met(&s), []);
    s.pass(Ttl::minutes(11));
    have(&mut s, "ada", How::Lock, "a.ts#f").unwrap();
    assert_eq!(met(&s), [], "the plan's time was up");
    have(&mut s, "bob", How::Plan, "a.ts").unwrap();
    assert_eq!(met(&s), [("bob".to_owned(), "ada".to_owned())]);
    s.pass(Ttl::minutes(31));
    have(&mut s, "bob", How::Plan, "a.ts").unwrap();
    assert_eq!(met(&s), [], "the lock's time was up");
}

#[test]
fn whoever_collects_mail_is_told_by_mail() {
    let mut s = Script::new();
    s.say(&client("ada"), register(None)).unwrap();
    have(&mut s, "ada", How::Lock, "a.ts#f").unwrap();
    have(&mut s, "bob", How::Plan, "a.ts").unwrap();
    let Ok(Answer::Done(Reply::Collected(collected))) = s.say(&client("ada"), CollectMail { alive: true })
    else {
        panic!("collecting is never refused")
    };
    let mail = collected.mail.unwrap();
    let MailKind::Met { file, mine, other } = &mail.kind else { panic!("{mail:?}") };
    assert_eq!((file.as_str(), *mine), ("a.ts", ReservationKind::Lock));
    assert_eq!((other.agent.as_str(), other.kind), ("bob", ReservationKind::Plan));
}
