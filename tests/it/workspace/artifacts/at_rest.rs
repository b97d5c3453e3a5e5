//! The artifacts of runs in the files of the state folder: whole or not there, and not for ever.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use provost::base::{Digest, HostId, TaskId};
use provost::domain::artifact::{artifact_id, is_test, language_by_name, place_of, shelf};
use provost::domain::{Artifact, Changeset, CollectedArtifact};
use provost::store::Artifacts;

fn task(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn harvest(task: &TaskId) -> Changeset {
    let artifact = |number: usize, kind: &str, path: &str, content: &str| Artifact {
        id: artifact_id(task, number),
        kind: kind.into(),
        path: path.into(),
        content: content.into(),
        language: language_by_name(path).into(),
        base_hash: (number == 1).then(|| Digest::of(b"old")),
        mode: Some(0o644),
        base_mode: None,
    };
    let text = artifact(1, "file", "a.rs", "new\r\n\u{1f980}");
    let image = artifact(2, "binary", "b.png", "");
    Changeset {
        collected: vec![
            CollectedArtifact { artifact: text, bytes: None, base: Some(b"old".to_vec()), lines: (0, 0) },
            CollectedArtifact { artifact: image, bytes: Some(vec![0, 255, 10]), base: None, lines: (0, 0) },
        ],
        left_out: vec!["c: is a symbolic link".into()],
        incomplete: false,
        beyond: None,
    }
}

#[test]
fn what_was_kept_is_found_by_its_task_and_by_its_id() {
    let state = tempfile::tempdir().unwrap();
    let store = Artifacts::at(state.path());
    let (one, other) = (task("../../etc/passwd"), task("exec_1"));
    assert_eq!(store.of(&one).unwrap(), None);
    store.keep((&one, 1), &harvest(&one), "the answer").unwrap();
    let kept = store.of(&one).unwrap().unwrap();
    assert_eq!((kept.artifacts.len(), &*kept.answer), (2, "the answer"));
    assert_eq!(kept.artifacts[0], harvest(&one).collected[0].artifact);
    assert_eq!(store.base_of(&kept.artifacts[0].id).unwrap().unwrap(), b"old");
    assert_eq!(store.bytes_of(&kept.artifacts[1].id).unwrap().unwrap(), [0, 255, 10]);
    assert_eq!(store.base_of(&kept.artifacts[1].id).unwrap(), None);
    assert_eq!(store.of(&other).unwrap(), None);
    for id in [&*artifact_id(&other, 1), &artifact_id(&one, 3), "art_../../x_1", "", "art_1"] {
        assert_eq!((store.get(id).unwrap(), store.base_of(id).unwrap()), (None, None), "{id}");
    }
    let names: Vec<_> = fs::read_dir(state.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["artifacts"], "a task's id is no path");
    store.keep((&one, 1), &Changeset::default(), "again").unwrap();
    assert_eq!(store.of(&one).unwrap().unwrap().artifacts, [], "the last one counts");
    assert_eq!(store.base_of(&kept.artifacts[0].id).unwrap(), None);
    // An attempt's result is not that of another.
    store.keep((&one, 2), &harvest(&one), "of the second").unwrap();
    let answer = |attempt: u32| store.of_attempt(&one, attempt).unwrap().map(|it| it.answer.to_string());
    assert_eq!((answer(1), answer(2).as_deref(), answer(3)), (None, Some("of the second"), None));
    let having = |ran_here: bool| store.having(vec![(one.clone(), ran_here), (other.clone(), ran_here)]);
    assert_eq!((having(true).len(), having(false).len()), (1, 0));
    // What an attempt here has left is not the result of the one that another host has made afterwards.
    store.keep((&one, 1), &harvest(&one), "an attempt's").unwrap();
    assert_eq!(store.of_elsewhere(&one, (HostId::of(7), 1)).unwrap(), None);
}

#[test]
fn what_is_old_or_was_not_finished_goes() {
    let state = tempfile::tempdir().unwrap();
    let store = Artifacts::at(state.path());
    let (old, new) = (task("old"), task("new"));
    let folder = state.path().join("artifacts");
    store.keep((&old, 1), &harvest(&old), "").unwrap();
    store.remove_old();
    // Eight days pass.
    let ages = state.path().join("artifacts.ages");
    let mut seen: serde_json::Value = serde_json::from_slice(&fs::read(&ages).unwrap()).unwrap();
    seen["passed"] = (seen["passed"].as_u64().unwrap() + 8 * 24 * 60 * 60).into();
    fs::write(&ages, seen.to_string()).unwrap();
    store.keep((&new, 1), &harvest(&new), "").unwrap();
    // What the files themselves say of their time is the system's clock, which can be set.
    let list = File::options().write(true).open(folder.join(shelf(&new)).join("kept.json")).unwrap();
    list.set_modified(SystemTime::now() - Duration::from_secs(80 * 24 * 60 * 60)).unwrap();
    fs::create_dir(folder.join(".new-1")).unwrap();
    store.remove_old();
    assert!(folder.join(".new-1").exists(), "somebody may be at it");
    store.remove_unfinished();
    assert!(!folder.join(".new-1").exists());
    assert_eq!(store.of(&old).unwrap(), None);
    assert_eq!(store.of(&new).unwrap().unwrap().artifacts.len(), 2);
}

#[test]
fn what_is_damaged_is_an_error_and_not_nothing() {
    let state = tempfile::tempdir().unwrap();
    let store = Artifacts::at(state.path());
    let one = task("one");
    store.keep((&one, 1), &harvest(&one), "").unwrap();
    let list = state.path().join("artifacts").join(shelf(&one)).join("kept.json");
    let text = fs::read(&list).unwrap();
    fs::write(&list, &text[..text.len() / 2]).unwrap();
    assert!(store.of(&one).is_err());
    assert!(store.get(&artifact_id(&one, 1)).is_err());
}

#[test]
fn an_id_leads_to_its_shelf_and_nothing_else_does() {
    let one = task("exec_../../x");
    let (id, shelf) = (artifact_id(&one, 17), shelf(&one));
    assert_eq!(place_of(&id), Some((&*shelf, 17)));
    for wrong in [
        "art__1",
        "art_../../etc_1",
        &format!("art_{shelf}_0"),
        &format!("art_{shelf}_+1"),
        &format!("art_{shelf}_01"),
    ] {
        assert_eq!(place_of(wrong), None, "{wrong}");
    }
}

#[test]
fn tests_and_languages_are_told_by_their_names() {
    for test in ["tests/a.rs", "a/test_x.py", "x_test.go", "x.test.ts", "src/__tests__/x.js", "XTest.java"] {
        assert!(is_test(test), "{test}");
    }
    for other in ["src/latest.rs", "testing.md", "src/attest/x.py"] {
        assert!(!is_test(other), "{other}");
    }
    assert_eq!((language_by_name("a/b.RS"), language_by_name("Dockerfile")), ("rust", "dockerfile"));
    assert_eq!((language_by_name(".rs"), language_by_name("x.unheard")), ("", ""));
}
