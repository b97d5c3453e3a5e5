//! Several at once: applies of the same files, claims and locks of others, links that are swapped meanwhile.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::desk::{Desk, FREELY, errors, file, file_for, gone, sha};
use crate::support::eventually;
use crate::support::loopback_client::Http;

#[test]
fn of_two_applies_at_once_each_file_has_one_order_and_nothing_is_lost() {
    let desk = Desk::new();
    let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
    names.iter().for_each(|it| desk.put(it, format!("old {it}\n")));
    let both = |make: &(dyn Fn(&str, &str) -> Value + Sync)| {
        std::thread::scope(|scope| {
            let one = |agent: &'static str| {
                let artifacts: Vec<Value> = names.iter().map(|it| make(agent, it)).collect();
                let desk = &desk;
                scope.spawn(move || desk.apply_as(agent, &json!(artifacts)))
            };
            let (ada, bob) = (one("ada"), one("bob"));
            (ada.join().unwrap(), bob.join().unwrap())
        })
    };
    let (ada, bob) = both(&|agent, name| file(name, &format!("{agent}'s {name}\n")));
    assert_eq!((&ada["applied"], &bob["applied"]), (&json!(40), &json!(40)), "{ada} {bob}");
    let [ada, bob] = [ada, bob].map(|it| it["apply"].as_u64().unwrap());
    // Whichever came last is undone first, file by file.
    let undone: u64 =
        [ada, bob, ada].iter().map(|it| desk.undo(*it, false)["applied"].as_u64().unwrap()).sum();
    assert_eq!(undone, 80);
    names.iter().for_each(|it| assert_eq!(desk.text(it), format!("old {it}\n")));

    let made_for = |agent: &str, name: &str| {
        file_for(&format!("old {name}\n"), name, &format!("{agent} makes {name}\n"))
    };
    let (ada, bob) = both(&made_for);
    let count = |it: &Value| it["applied"].as_u64().unwrap();
    assert_eq!(count(&ada) + count(&bob), 40, "of two that are made for the same, one counts: {ada} {bob}");
}

#[test]
fn an_apply_goes_on_when_whoever_asked_has_gone() {
    let desk = Desk::new();
    let artifacts: Vec<Value> = (0..100).map(|n| file(&format!("f{n}"), "new")).collect();
    let body = json!({ "artifacts": artifacts }).to_string();
    let mut stream = UnixStream::connect(desk.world.own_socket()).unwrap();
    write!(
        stream,
        "POST /apply-artifacts HTTP/1.1\r\nhost: provost\r\nx-provost-api: 1\r\nx-provost-agent: ed\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    eventually("the first file", || desk.at("f0").exists());
    drop(stream);
    eventually("the end of the apply", || !desk.events("apply_ended").is_empty());
    assert_eq!(desk.events("apply_ended")[0]["applied"], 100);
    assert_eq!(desk.files().len(), 100);
}

#[test]
fn a_link_that_is_swapped_in_meanwhile_leads_nowhere() {
    let desk = Desk::new();
    let outside = desk.world.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "theirs").unwrap();
    let (dir, aside) = (desk.at("dir"), desk.at("aside"));
    desk.put("dir/f", "old");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The folder, or a link to one outside, by the same name.
                let _ = fs::rename(&dir, &aside);
                let _ = symlink(&outside, &dir);
                let _ = fs::remove_file(&dir);
                let _ = fs::rename(&aside, &dir);
            }
        });
        for n in 0..150 {
            let answer =
                desk.apply(&json!([file("dir/f", &format!("new {n}")), file(&format!("dir/new{n}"), "x")]));
            assert!(answer["state"] == "applied", "{answer}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let there: Vec<_> = fs::read_dir(&outside).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(there, ["f"], "nothing was made outside");
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "theirs");
}

#[test]
fn an_edit_by_hand_in_the_same_moment_is_not_lost() {
    let desk = Desk::new();
    desk.put("f", "0");
    let stop = AtomicBool::new(false);
    let new = desk.world.path("new");
    let mut seen = vec!["0".to_owned()];
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut written = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // As editors do it: a whole file in the place of the old one.
                let text = format!("by hand {}", written.len());
                fs::write(&new, &text).unwrap();
                fs::rename(&new, desk.at("f")).unwrap();
                written.push(text);
                // tidy: sleeps because it is an editor that saves now and then
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            written
        });
        let mut applies = Vec::new();
        for n in 0..60 {
            let answer = desk.apply(&json!([file("f", &format!("apply {n}"))]));
            applies.extend(answer["apply"].as_u64().filter(|_| answer["applied"] == 1));
        }
        stop.store(true, Ordering::Relaxed);
        seen.extend(editor.join().unwrap());
        assert!(!applies.is_empty());
    });
    // What an apply has replaced is in its record, whole: one of the texts that were written, by hand or by
    // an apply.
    let last = desk.applies();
    let newest = last[0]["apply"].as_u64().unwrap();
    desk.undo(newest, true);
    let back = desk.text("f");
    assert!(seen.contains(&back) || back.starts_with("apply "), "{back:?}");
    assert_eq!(desk.files(), ["f"], "nothing is left beside it");
}

#[test]
fn what_others_have_is_not_written() {
    let desk = Desk::with(FREELY, "");
    for name in ["src/claimed.ts", "src/mine.ts", "src/free.ts"] {
        desk.put(name, "export const a = 1\n");
    }
    desk.put("src/locked.ts", "export function f() {}\n");
    desk.put("src/intended.ts", "export function g() {}\n");
    let http = Http::agent_protocol(&desk.world);
    for agent in ["ada", "ed"] {
        assert!(http.post("/agents/announce", &json!({ "id": agent, "tool": "x" })).status < 300);
    }
    let claim = |path: &str, agent: &str| {
        let answer = http.post("/resources/claim", &json!({ "path": path, "agent_id": agent }));
        assert!(answer.status < 300, "{answer:?}");
    };
    claim("src/claimed.ts", "ada");
    claim("src/mine.ts", "ed");
    let run = |args: &[&str]| assert!(desk.world.command(args).status().unwrap().success(), "{args:?}");
    run(&["lock", "src/locked.ts:f", "--as", "bob"]);
    run(&["intent", "declare", "rename", "--file", "src/intended.ts", "--as", "bob"]);

    let names = ["claimed", "mine", "free", "locked", "intended"].map(|it| format!("src/{it}.ts"));
    let artifacts = json!(names.iter().map(|it| file(it, "new\n")).collect::<Vec<_>>());
    let shown = desk.preview(&artifacts);
    assert_eq!((&shown[0]["action"], &shown[0]["reason"]), (&json!("skip"), &json!("claimed by ada")));
    let answer = desk.apply(&artifacts);
    assert_eq!(answer["applied"], 3, "{answer}");
    assert_eq!(errors(&answer), ["src/claimed.ts: claimed by ada", "src/locked.ts: claimed by bob (a lock)"]);
    let changed = http.get("/events?limit=50&action=resource.modified").json();
    let by: Vec<(&str, &str)> = changed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["resource"].as_str().unwrap(), it["agent_id"].as_str().unwrap()))
        .collect();
    for name in ["src/mine.ts", "src/free.ts", "src/intended.ts"] {
        assert!(by.contains(&(name, "ed")), "{name}: {changed}");
    }
    assert_eq!(
        http.get("/resources/src/mine.ts").json()["state"],
        "claimed",
        "one's own change is no conflict"
    );
}

#[test]
fn what_others_intend_is_left_alone_where_the_configuration_says_so() {
    let desk = Desk::with(FREELY, "[coordination]\nacross_doors = \"deny\"\n[a6s]\ndeny = [\"*.lock\"]\n");
    desk.put("src/intended.ts", "export function g() {}\n");
    let intend = ["intent", "declare", "rename", "--file", "src/intended.ts", "--as", "bob"];
    assert!(desk.world.command(&intend).status().unwrap().success());
    let answer =
        desk.apply(&json!([file("src/intended.ts", "x"), file("Cargo.lock", "x"), file(".env", "x")]));
    assert_eq!(answer["applied"], 1, "{answer}");
    let said = errors(&answer);
    assert!(said.contains(&"src/intended.ts: claimed by bob (an intent)".to_owned()), "{said:?}");
    assert!(said.iter().any(|it| it.starts_with("Cargo.lock: the configuration")), "{said:?}");
}

/// Removes a whole folder for a file in its place, while a person saves another file there.
#[test]
fn what_belongs_together_comes_back_when_the_rest_cannot_be_done() {
    let desk = Desk::new();
    let names: Vec<String> = (0..150).map(|n| format!("d/f{n}")).collect();
    names.iter().for_each(|it| desk.put(it, format!("old {it}\n")));
    let mut work: Vec<Value> = names.iter().map(|it| gone(it)).collect();
    work.push(file("d", "a file now\n"));
    work.push(file("other", "on its own\n"));
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            eventually("the first removal", || !desk.at("d/f0").exists());
            fs::write(desk.at("d/z"), "saved meanwhile").unwrap();
        });
        desk.apply(&json!(work))
    });
    assert_eq!(answer["applied"], 1, "{answer}");
    assert_eq!(errors(&answer).len(), names.len() + 1, "{answer}");
    assert_eq!((desk.text("d/z"), desk.text("other")), ("saved meanwhile".into(), "on its own\n".into()));
    names.iter().for_each(|it| assert_eq!(desk.text(it), format!("old {it}\n")));
    // What has come back is nothing that an undo would take away.
    let undone = desk.undo(answer["apply"].as_u64().unwrap(), false);
    assert_eq!((&undone["applied"], errors(&undone).len()), (&json!(1), 0), "{undone}");
    names.iter().for_each(|it| assert_eq!(desk.text(it), format!("old {it}\n")));
    assert_eq!(desk.text("other"), "-");
}

/// Removes a folder for a file in its place, and a person saves another file there before its turn has come.
#[test]
fn nothing_of_a_change_is_removed_that_does_not_fit_any_more() {
    use std::os::unix::fs::MetadataExt as _;
    for spoilt in ["g/two", "g/three"] {
        let desk = Desk::new();
        let others: Vec<String> = (0..150).map(|n| format!("a{n:03}")).collect();
        others.iter().for_each(|it| desk.put(it, "old\n"));
        ["g/one", "g/two"].iter().for_each(|it| desk.put(it, "old\n"));
        let one = fs::metadata(desk.at("g/one")).unwrap().ino();
        let mut work: Vec<Value> = others.iter().map(|it| gone(it)).collect();
        let mut two = gone("g/two");
        two["base_hash"] = json!(sha("old\n"));
        work.extend([gone("g/one"), two]);
        work.push(file("g", "a file now\n"));
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the first removal", || !desk.at("a000").exists());
                fs::write(desk.at(spoilt), "saved meanwhile").unwrap();
            });
            desk.apply(&json!(work))
        });
        assert_eq!((answer["applied"].as_u64(), errors(&answer).len()), (Some(150), 3), "{spoilt}: {answer}");
        assert_eq!(desk.text(spoilt), "saved meanwhile");
        assert_eq!(fs::metadata(desk.at("g/one")).unwrap().ino(), one, "{spoilt}: it was gone for a moment");
    }
}
