//! Bytes of a settings file that are not ours: they stay while our parts are put in and taken out.

use std::fs;

use super::HOSTS;
use super::installing::{done, refused};
use crate::support::World;

/// Files as people write them: with comments, blank lines, tabs and other indentation, and members on one line.
const THEIRS: [&str; 6] = [
    "{\n  \"model\": \"opus\"\n}\n",
    "{\n\n    // Above, with a comma and a { bracket.\n    \"model\": \"opus\", // beside, https://example.com\n\n    \
     \"zoo\": {\"b\":1,   \"a\": [ 1,2 ]} /* before the end, */\n\n    // the end\n\n}\n\n",
    "// first\n{\n\t\"b\": 1,\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"command\": \"./mine\" } // mine\n\t\t],\n\n\t\t\"Other\": []\n\t},\n\
     \t\"a\": [\"\\u00e9\\/\", \"é\"]\n}\n// last",
    "{\n   \"hooks\": {\n      \"PreToolUse\": [\n         // one\n         { \"command\": \"./mine\" } /* two */\n         // three\n      ],\n\n      \
     \"preToolUse\": [\n         { \"command\": \"./mine\" }\n      ]\n   },\n   \"permissions\": {\n      \"deny\": [ ],\n      \
     \"allow\": [\n         \"Read\" // four\n      ]\n   }\n}",
    "{ // brace\n  \"a\": 1.50e+1, \"b\": 2\n  , \"c\": 3\n}\n",
    "\u{feff}{\n  \"model\": \"opus\" // mark\n}\n",
];

/// Whether all lines of theirs stand in ours, in order and to the byte; one may have got the comma after its
/// last value.
fn stays_in(theirs: &str, ours: &str) -> bool {
    let mut lines = ours.split_inclusive('\n');
    theirs.split_inclusive('\n').all(|line| {
        lines.any(|it| {
            let more = it.match_indices(',').any(|(at, _)| format!("{}{}", &it[..at], &it[at + 1..]) == line);
            it == line || more
        })
    })
}

#[test]
fn lines_comments_and_line_ends_stay_to_the_byte_and_come_back_part_by_part() {
    let world = World::new();
    for (host, file) in HOSTS {
        let path = world.repo().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for theirs in THEIRS.iter().flat_map(|it| [it.to_string(), it.replace('\n', "\r\n")]) {
            fs::write(&path, &theirs).unwrap();
            done(&world, &["install", host]);
            let ours = fs::read_to_string(&path).unwrap();
            assert!(stays_in(&theirs, &ours), "{host}: {theirs:?}\n{ours:?}");
            if theirs.contains('\r') {
                assert_eq!(ours.matches('\n').count(), ours.matches("\r\n").count(), "{host}: {ours:?}");
            } else {
                assert!(!ours.contains('\r'), "{host}: {ours:?}");
            }
            // Without what was kept of the file before us.
            fs::remove_dir_all(world.home().join(".local/state/provost")).unwrap();
            done(&world, &["remove", host]);
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs, "{host}: {ours:?}");
        }
    }
}

#[test]
fn a_comment_before_our_parts_does_not_take_the_closing_bracket_along() {
    let world = World::new();
    let path = world.repo().join(HOSTS[0].1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for theirs in ["{ // mine\n}", "{ // mine\r\n}", "{\n  \"a\": 1 // mine\n}"] {
        fs::write(&path, theirs).unwrap();
        done(&world, &["install", "claude"]);
        let ours = fs::read_to_string(&path).unwrap();
        let ours = format!("{} }}", ours.strip_suffix('}').unwrap().trim_end());
        fs::write(&path, &ours).unwrap();
        done(&world, &["remove", "claude"]);
        let left = fs::read_to_string(&path).unwrap();
        assert_eq!(left.replacen(" }", "}", 1), theirs, "{ours}");
    }
}

#[test]
fn a_name_that_stands_twice_where_our_parts_go_is_refused_and_elsewhere_is_left() {
    let world = World::new();
    let path = world.repo().join(HOSTS[0].1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for (twice, name) in [
        ("{ \"hooks\": {}, \"a\": 1, \"hooks\": {} }", "hooks"),
        ("{ \"hooks\": {}, \"h\\u006foks\": {} }", "hooks"),
        ("{ \"hooks\": { \"Stop\": [], \"Stop\": [] } }", "Stop"),
        ("{ \"permissions\": {}, \"permissions\": { \"allow\": [] } }", "permissions"),
        ("{ \"permissions\": { \"allow\": [], \"deny\": [], \"allow\": [] } }", "allow"),
    ] {
        fs::write(&path, twice).unwrap();
        for what in ["install", "remove"] {
            let said = refused(&world, &[what, "claude"]);
            assert!(said.contains("stays as it is"), "{said}");
            assert!(said.contains(&format!("it says `{name}` twice")), "{said}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), twice);
    }
    let theirs = "{\n  \"a\": 1,\n  \"a\": 2,\n  \"permissions\": { \"deny\": [], \"deny\": [] }\n}\n";
    fs::write(&path, theirs).unwrap();
    done(&world, &["install", "claude"]);
    done(&world, &["remove", "claude"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
}

#[test]
fn what_is_nested_too_deeply_is_refused_in_a_sentence() {
    let world = World::new();
    let path = world.repo().join(HOSTS[0].1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let nested = |count: usize| {
        let (open, close) = ("[{\"b\":".repeat(count), "}]".repeat(count));
        format!("{{\n  \"a\": {open}1{close}\n}}\n")
    };
    for deep in ["[".repeat(100_000), "{\"a\":".repeat(100_000), nested(100_000), nested(64)] {
        fs::write(&path, &deep).unwrap();
        for what in ["install", "remove"] {
            let said = refused(&world, &[what, "claude"]);
            assert!(said.contains("stays as it is") && said.contains("it is nested too deeply"), "{said}");
        }
        assert!(done(&world, &["status"]).contains("claude: unreadable"));
        assert_eq!(fs::read_to_string(&path).unwrap(), deep);
    }
    let theirs = nested(63);
    fs::write(&path, &theirs).unwrap();
    done(&world, &["install", "claude"]);
    assert!(stays_in(&theirs, &fs::read_to_string(&path).unwrap()));
}
