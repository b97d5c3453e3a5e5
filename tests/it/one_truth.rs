//! What agents have through different doors, compared by one rule set.

use provost::base::{RepoPath, Timestamp};
use provost::domain::{Part, Stake, StakeKind};

use crate::storm::agent;

/// A place as one line: a path or pattern, then `#name` and `@first-last` for parts of it.
fn stake(text: &str) -> Stake {
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
    Stake {
        agent: agent("ada"),
        kind: StakeKind::Plan,
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
