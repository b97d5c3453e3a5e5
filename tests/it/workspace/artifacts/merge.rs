//! Files that were changed on both sides: merged where that can be done, left alone where not.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use provost::base::later::RunsOutside;
use provost::base::{Digest, TaskId};
use provost::domain::artifact::artifact_id;
use provost::domain::{Answer, Artifact, Changeset, CollectedArtifact};
use provost::engine::SystemClock;
use provost::index::{Index, Options};
use provost::jail::{OutputBoard, Root};
use provost::service::{Applied, ApplyRules, Applying, Configured, Provost};
use provost::store::{Artifacts, Retention};
use provost::system::folder_watch::FolderWatcher;
use provost::workspace::Versions;
use provost::workspace::work_trees::WorkTrees;
use provost_test_equipment::MemoryStore;
use tempfile::TempDir;

use crate::support::script::{ByWord, client, host, no_merges};
use crate::support::storm::settings;

fn task() -> TaskId {
    TaskId::parse("a-run").unwrap()
}

/// Returns the changes of a run that found this base.
fn harvest(base: Option<&str>) -> Changeset {
    let artifact = Artifact {
        id: artifact_id(&task(), 1),
        kind: "file".into(),
        path: "f".into(),
        content: "by the worker".into(),
        language: Box::default(),
        base_hash: base.map(|it| Digest::of(it.as_bytes())),
        mode: Some(0o4777),
        base_mode: base.map(|_| 0o4777),
    };
    let binary = Artifact {
        id: artifact_id(&task(), 2),
        kind: "binary".into(),
        path: "f.png".into(),
        ..artifact.clone()
    };
    let binary = Artifact { base_hash: None, content: Box::default(), ..binary };
    let collected = vec![
        CollectedArtifact {
            artifact,
            bytes: None,
            base: base.map(|it| it.as_bytes().to_vec()),
            lines: (0, 0),
        },
        CollectedArtifact { artifact: binary, bytes: Some(vec![0, 1, 2, 255]), base: None, lines: (0, 0) },
    ];
    Changeset { collected, ..Changeset::default() }
}

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

struct World {
    dir: TempDir,
    provost: Provost,
}

impl World {
    /// With one artifact that was made when its file said `base`; `None` when there was none.
    fn new(base: Option<&'static str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keep = Duration::from_secs(3_600);
        let retention = Retention { tasks: keep, tasks_most: u32::MAX, events: keep };
        let store = Box::new(MemoryStore::new());
        let judge = Box::new(ByWord::default());
        let started =
            provost::engine::start(store, judge, settings(), Box::new(SystemClock), retention).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let index = Index::start(
            dir.path(),
            Arc::default(),
            &FolderWatcher::default(),
            Options { on: false, files_max: 0 },
        )
        .unwrap();
        let state = dir.path().join(".state");
        let kept = (
            Versions::open(&state).unwrap(),
            Applying::open(
                &state,
                ApplyRules {
                    deny: &[],
                    unknown: true,
                    settings: false,
                    files: 500,
                    held: Box::new(|_, _| Ok(RunsOutside::default())),
                },
            )
            .unwrap(),
            Arc::new(WorkTrees::new(dir.path(), &dir.path().join(".trees"))),
        );
        let artifacts = Artifacts::at(&state);
        artifacts.keep((&task(), 1), &harvest(base), "").unwrap();
        let configured =
            Configured { profiles: Arc::default(), artifacts, room: Default::default(), merges: no_merges() };
        let outputs = OutputBoard::default();
        let provost = Provost::new(started.engine, host(), root, outputs, configured, index, kept);
        Self { dir, provost }
    }

    async fn apply(&self, id: &str, base: Option<&str>, now: Option<&str>, new: &str) -> (Applied, String) {
        let file = self.dir.path().join("f");
        match now {
            Some(now) => fs::write(&file, now).unwrap(),
            None => drop(fs::remove_file(&file)),
        }
        let id = if id == "known" { artifact_id(&task(), 1) } else { id.into() };
        let artifact: Artifact = serde_json::from_value(serde_json::json!({
            "id": id, "kind": "file", "path": "f", "content": new, "language": "",
            "base_hash": base.map(|it| Digest::of(it.as_bytes())),
        }))
        .unwrap();
        let Answer::Done(done) = self.provost.apply(&client("ed"), vec![artifact]).await.unwrap() else {
            panic!("it is allowed")
        };
        (done, fs::read_to_string(&file).unwrap_or_else(|_| "-".into()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_different_lines_are_both_there_afterwards() {
    let world = World::new(Some(BASE));
    let theirs = BASE.replace("two\n", "2\n");
    let ours = BASE.replace("six\n", "6\nsix and a half\n");
    let both = theirs.replace("six\n", "6\nsix and a half\n");
    for base in [Some(BASE), None] {
        let (done, says) = world.apply("known", base, Some(&ours), &theirs).await;
        assert_eq!((done.applied, says.as_str()), (1, both.as_str()), "{done:?}");
    }
    let at_the_end = format!("{BASE}eight");
    let (done, says) = world.apply("known", Some(BASE), Some(&at_the_end), &format!("zero\n{BASE}")).await;
    assert_eq!((done.applied, says), (1, format!("zero\n{BASE}eight")));
    // The same change on both sides needs nothing more.
    let (done, says) = world.apply("known", Some(BASE), Some(&both), &theirs).await;
    assert_eq!((done.skipped, says), (1, both));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_same_lines_are_left_to_people() {
    let world = World::new(Some(BASE));
    let theirs = BASE.replace("three\n", "3\n");
    let crlf = BASE.replace('\n', "\r\n");
    let cases = [
        BASE.replace("three\n", "drei\n"),
        BASE.replace("three\n", ""),
        // Lines that touch.
        BASE.replace("four\n", "4\n"),
        crlf,
        "\0 is no text".to_owned(),
    ];
    for now in cases {
        let (done, says) = world.apply("known", Some(BASE), Some(&now), &theirs).await;
        assert_eq!(done.errors, ["f: changed on disk since it was generated"], "{now}");
        assert_eq!((says, done.apply), (now, None));
    }
    let (done, says) = world.apply("known", Some(BASE), None, &theirs).await;
    assert_eq!((done.errors.len(), says.as_str()), (1, "-"), "it was removed");
    // Nobody knows what it said: nothing can be merged.
    let (done, _) = world.apply("unknown", Some(BASE), Some(&BASE.replace("six", "6")), &theirs).await;
    assert_eq!(done.errors.len(), 1);
    // Somebody says that it was made for something else than the daemon knows.
    let (done, _) = world.apply("known", Some("else"), Some(&BASE.replace("six", "6")), &theirs).await;
    assert_eq!(done.errors.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_has_appeared_since_is_not_overwritten() {
    let world = World::new(None);
    let (done, says) = world.apply("known", None, Some("somebody's\n"), "new\n").await;
    assert_eq!((done.errors.len(), says.as_str()), (1, "somebody's\n"), "{done:?}");
    let (done, says) = world.apply("known", None, None, "new\n").await;
    assert_eq!((done.applied, says.as_str()), (1, "new\n"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_is_written_as_it_was_kept() {
    let world = World::new(None);
    let artifact = |id: Box<str>| -> Artifact {
        let json =
            serde_json::json!({ "id": id, "kind": "binary", "path": "f.png", "content": "", "language": "" });
        serde_json::from_value(json).unwrap()
    };
    let Answer::Done(done) = world.provost.apply(&client("ed"), vec![artifact("mine".into())]).await.unwrap()
    else {
        panic!("it is allowed")
    };
    assert!(done.errors[0].contains("is not kept here"), "{done:?}");
    let kept = artifact(artifact_id(&task(), 2));
    let Answer::Done(done) = world.provost.apply(&client("ed"), vec![kept]).await.unwrap() else {
        panic!("it is allowed")
    };
    assert_eq!(done.applied, 1, "{done:?}");
    let file = world.dir.path().join("f.png");
    assert_eq!(fs::read(&file).unwrap(), [0, 1, 2, 255]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o7777, 0o755, "it is a program, and nothing more than that");
}

/// Every way in which three lines can be changed on both sides, against a merge that is seen to be right:
/// lines that only one side has changed are that side's.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_merged_has_every_change_of_both() {
    let world = World::new(Some(BASE));
    let lines: Vec<&str> = BASE.split_inclusive('\n').collect();
    for mine in 0..1_u32 << lines.len() {
        // A fixed set of changes of theirs for each; every third, to stay quick.
        if mine % 3 != 0 {
            continue;
        }
        let theirs = mine.wrapping_mul(37) & 0x7f & !mine;
        let side = |set: u32, word: &str| -> String {
            let line =
                |n: usize| if set & (1 << n) != 0 { format!("{word} {n}\n") } else { lines[n].to_owned() };
            (0..lines.len()).map(line).collect()
        };
        let (ours, new) = (side(mine, "ours"), side(theirs, "new"));
        let (done, says) = world.apply("known", Some(BASE), Some(&ours), &new).await;
        let touching = (0..lines.len()).any(|n| {
            let near = (1 << n) | (1 << n >> 1) | (1 << (n + 1));
            mine & (1 << n) != 0 && theirs & near != 0
        });
        let merged: String = (0..lines.len())
            .map(|n| match (mine & (1 << n) != 0, theirs & (1 << n) != 0) {
                (true, _) => format!("ours {n}\n"),
                (_, true) => format!("new {n}\n"),
                _ => lines[n].to_owned(),
            })
            .collect();
        let expected = if touching { ours } else { merged };
        assert_eq!(says, expected, "{mine:b} {theirs:b} {done:?}");
        assert_eq!(done.errors.len(), usize::from(touching), "{mine:b} {theirs:b}");
    }
}
