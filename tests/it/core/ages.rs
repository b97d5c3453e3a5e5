//! Records of the ages of kept files: each is written completely or not at all, and beside others of the same name.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use provost::system::Ages;

fn look(path: &Path, kept: &[&str]) -> Ages {
    Ages::look(path.to_owned(), kept.iter().map(|it| (*it).into()))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_record_of_ages_is_written_beside_others_of_its_name_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // A file that has the record's name with another extension is not the record's to write.
    for other in ["c.new", "c.session-ages.tmp", "c"] {
        fs::write(path(other), "not an age").unwrap();
    }
    // Two records of one name, as those of turns and those of sessions are, are written at once.
    let records = [("c.ages", "a turn"), ("c.session-ages", "a session")];
    std::thread::scope(|scope| {
        for (record, kept) in records {
            let path = path(record);
            scope.spawn(move || {
                for _ in 0..200 {
                    look(&path, &[kept]).keep().expect("the record is written");
                }
            });
        }
    });
    for (record, kept) in records {
        let text = fs::read_to_string(path(record)).unwrap();
        let seen: serde_json::Value = serde_json::from_str(&text).expect("a whole record");
        let first: Vec<&String> = seen["first"].as_object().unwrap().keys().collect();
        assert_eq!(first, [kept], "{text}");
        assert_eq!(fs::metadata(path(record)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(names(folder.path()), ["c", "c.ages", "c.new", "c.session-ages", "c.session-ages.tmp"]);
    for other in ["c.new", "c.session-ages.tmp", "c"] {
        assert_eq!(fs::read_to_string(path(other)).unwrap(), "not an age");
    }
}

#[test]
fn a_temporary_record_that_a_kill_has_left_is_written_over_and_a_record_that_cannot_be_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.ages");
    fs::write(folder.path().join("c.ages.new"), "{\"passed\":900000000000").unwrap();
    look(&path, &["x"]).keep().unwrap();
    assert_eq!(names(folder.path()), ["c.ages"]);
    let mut seen: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    seen["passed"] = serde_json::json!(seen["passed"].as_u64().unwrap() + 5_000);
    let before = seen.to_string();
    fs::write(&path, &before).unwrap();
    // Where the temporary record cannot be made, the record is as it was, and is read again.
    fs::create_dir(folder.path().join("c.ages.new")).unwrap();
    let ages = look(&path, &["x", "y"]);
    assert!(ages.keep().is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!((5_000..9_000).contains(&ages.of("x").as_secs()), "{:?}", ages.of("x"));
    assert_eq!(ages.of("y").as_secs(), 0);
    // A record that cannot be read makes all files young.
    fs::write(&path, &before[..before.len() / 2]).unwrap();
    assert_eq!(look(&path, &["x"]).of("x").as_secs(), 0);
}
