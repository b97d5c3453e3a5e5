//! How much of a run is kept: the bounds are settings, and more than fits is an error that says how many.

use serde_json::Value;

use super::parts::freely;
use super::{done, printed, ran, task, text, world};

#[test]
fn more_files_than_fit_fail_the_run_in_numbers_and_what_fits_can_be_taken_in() {
    let world = world(&[], "\n[changes]\nfiles = 3\n");
    world.rule(&freely());
    let daemon = world.start();
    let id = done(&world, "for n in 1 2 3 4 5; do echo $n > f$n; done");
    let failed = task(&world, &id);
    assert_eq!(failed["state"], "failed", "{failed}");
    let why = failed["failure"].to_string();
    assert!(why.contains("5 changed files, 3 fit: `changes.files` is 3"), "{why}");
    let waited = world.command(&["task", "show", &id, "--wait"]).output().unwrap();
    assert!(!waited.status.success(), "half of a change is no success: {waited:?}");
    assert_eq!(failed["changes"]["files"], 3, "{failed}");
    let said = ran(&world, &["apply", &id], 0);
    assert!(said.contains("written: 3"), "{said}");
    daemon.stop();
    world.configure(&format!("{}\n[changes]\nfiles = 600\nfiles_per_call = 4\n", super::AGENT));
    let _daemon = world.start();
    // More than one call of an editor may have: a task's own are no such call.
    let id = done(&world, "for n in $(seq 550); do echo new > g$n; done");
    let whole = task(&world, &id);
    assert_eq!((&whole["state"], &whole["changes"]["files"]), (&"completed".into(), &550.into()), "{whole}");
    let shown = ran(&world, &["task", "show", &id], 0);
    assert!(
        shown.contains("550 files changed, 550 insertions(+)") && shown.contains("and 350 more"),
        "{shown}"
    );
    let files: Value = serde_json::from_str(&printed(&world, &["task", "diff", &id, "--json"])).unwrap();
    assert_eq!(files.as_array().unwrap().len(), 550);
    let said = ran(&world, &["apply", &id], 0);
    assert!(said.contains("written: 550"), "{said}");
    assert_eq!(text(&world, "g550"), "new\n");
    let artifacts: Vec<Value> = (0..5)
        .map(|n| serde_json::json!({ "type": "file", "path": format!("h{n}"), "content": "x" }))
        .collect();
    let body = serde_json::json!({ "artifacts": artifacts });
    let (status, answer) = crate::support::desk::ask(&world, "ed", "POST /apply-artifacts", &body);
    assert_eq!(status, 400, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("5 artifacts are more than the 4"), "{answer}");
}

#[test]
fn larger_changes_than_fit_fail_the_run_too() {
    let world = world(&[("b.txt", "b\n")], "\n[changes]\nsize = \"4KiB\"\n");
    let _daemon = world.start();
    let id = done(
        &world,
        "head -c 3000 /dev/zero | tr '\\0' a > a.txt; head -c 3000 /dev/zero | tr '\\0' b > b.txt; echo c > c.txt",
    );
    let failed = task(&world, &id);
    let why = failed["failure"].to_string();
    assert!(why.contains("3 changed files, 2 fit: `changes.size` is 4096 bytes"), "{failed}");
    let shown = ran(&world, &["task", "show", &id], 0);
    assert!(shown.contains("not kept: b.txt: has 3000 bytes"), "{shown}");
}

#[test]
fn a_bound_that_makes_no_sense_is_refused_with_what_does() {
    for (line, says) in
        [("files = 0", "2000"), ("files = 2001", "2000"), ("size = \"1GiB\"", "64"), ("days = 0", "365")]
    {
        let world = world(&[], &format!("\n[changes]\n{line}\n"));
        let up = world.command(&["up"]).output().unwrap();
        let said = String::from_utf8([up.stdout, up.stderr].concat()).unwrap();
        assert!(said.contains("changes") && said.contains(says), "{line}: {said}");
        let _down = world.command(&["down"]).output();
    }
}

#[test]
fn what_follows_an_agents_run_sums_up_what_has_changed_and_says_what_to_do_next() {
    let world = world(&[("a.txt", "1\n2\n3\n")], "");
    let _daemon = world.start();
    let script = "printf '1\\ntwo\\n3\\n' > a.txt; printf '\\0' > b.bin; exit 3";
    let waited = world.command(&["delegate", "--worker", "coder", script, "--wait"]).output().unwrap();
    let said = String::from_utf8([waited.stdout, waited.stderr].concat()).unwrap();
    assert_eq!(waited.status.code(), Some(3), "{said}");
    assert!(
        said.contains(" a.txt |   2 +-\n b.bin | Bin\n 2 files changed, 1 insertion(+), 1 deletion(-)"),
        "{said}"
    );
    let data: Value = serde_json::from_slice(
        &world
            .command(&["delegate", "--worker", "coder", script, "--wait", "--json"])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    let id = data["id"].as_str().unwrap();
    let next =
        [format!("provost task diff {id}"), format!("provost apply {id}"), format!("provost discard {id}")];
    assert_eq!(data["changes"]["next"], serde_json::json!(next), "{data}");
    assert_eq!((&data["changes"]["added"], &data["changes"]["removed"]), (&1.into(), &1.into()), "{data}");
    let shown = ran(&world, &["task", "show", id], 0);
    next.iter().for_each(|it| assert!(shown.contains(it), "{it}: {shown}"));
    for lines in
        ["show them:    provost task diff", "write them:   provost apply", "discard them: provost discard"]
    {
        assert!(said.contains(lines), "{said}");
    }
}
