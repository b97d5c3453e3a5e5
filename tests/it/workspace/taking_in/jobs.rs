//! An editor's job: its changes are those of its last run that kept any, under the job's id.

use serde_json::Value;

use super::{kept, printed, ran, task, text};
use crate::support::a6s_artifacts::{APPLY, Editor, desk, made, socket};
use crate::support::desk::FREELY;
use crate::support::eventually;
use crate::support::terminal::at_the_terminal;

fn rules() -> String {
    format!(
        "{FREELY}\n[[rule]]\nid = \"it\"\ndecision = \"allow\"\nreason = \"r\"\nwhen.action = [\"delegate\"]\n"
    )
}

/// The ids of all tasks, the oldest first.
fn tasks(world: &crate::support::World) -> Vec<String> {
    let list: Value = serde_json::from_str(&printed(world, &["task", "list", "--json"])).unwrap();
    let mut ids: Vec<String> =
        list["finished"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn a_job_of_several_runs_is_taken_in_and_discarded_by_its_id() {
    let around = "fix = [[\"sh\", \"-c\", \"echo fixed >> a.txt\"]]\ncheck = [[\"sh\", \"-c\", \"echo no > checked.txt\"]]\n";
    let desk = desk(&rules(), "", around);
    desk.put("a.txt", "old\n");
    let mut socket = socket(&desk);
    made(&mut socket, "DO write a.txt new\\n\nDO write b.txt more\\n\n");
    let ids = tasks(&desk.world);
    assert_eq!(ids.len(), 3, "the agent, a fix and a check: {ids:?}");
    let job = ids[0].clone();
    let patch = printed(&desk.world, &["task", "diff", &job]);
    assert!(patch.contains("+fixed") && patch.contains("b/b.txt") && !patch.contains("checked"), "{patch}");
    ran(&desk.world, &["apply", &job, "b.txt"], 0);
    assert_eq!((desk.text("a.txt").as_str(), desk.text("b.txt").as_str()), ("old\n", "more\n"));
    // The editor speaks from here, so nothing here is the user's own.
    ran(&desk.world, &["discard", &job, "--yes"], 4);
    let person = at_the_terminal(&desk.world, &format!("discard {job} --yes"));
    assert!(String::from_utf8_lossy(&person.stdout).contains("discarded: 2 changed files"), "{person:?}");
    let said = ran(&desk.world, &["apply", &job], 4);
    assert!(said.contains("discarded"), "{said}");
    for id in &ids[..2] {
        assert_eq!(task(&desk.world, id)["changes"]["state"], "discarded", "{id}");
    }
    eventually("the answer of the check alone is left", || kept(&desk.world) <= 1);
}

#[test]
fn what_an_editor_has_applied_is_known_to_the_task() {
    let desk = desk(&rules(), "", "");
    desk.put("a.txt", "old\n");
    let mut socket = socket(&desk);
    let artifacts = made(&mut socket, "DO write a.txt new\\n\nDO write b.txt more\\n");
    let id = tasks(&desk.world).remove(0);
    assert_eq!(task(&desk.world, &id)["changes"]["state"], "kept");
    let one: Vec<Value> = artifacts.iter().filter(|it| it["path"] == "a.txt").cloned().collect();
    assert_eq!(Editor::Neovim.result(&mut socket, APPLY, &one)["applied"], 1);
    assert_eq!(text(&desk.world, "a.txt"), "new\n");
    assert_eq!(task(&desk.world, &id)["changes"]["state"], "partly_taken_in");
    let said = ran(&desk.world, &["apply", &id], 0);
    assert!(said.contains("written: 1, 1 unchanged, since the files have this content already"), "{said}");
    assert_eq!(task(&desk.world, &id)["changes"]["state"], "taken_in");
}
