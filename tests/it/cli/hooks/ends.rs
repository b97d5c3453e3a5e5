//! Hooks that misbehave, and what becomes of hooks when they, their keeper or the daemon end.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use provost::base::limits::HOOK_COMPLAINT_MAX;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Hooked, TELL};
use crate::support::eventually;

#[test]
fn links_in_place_of_marker_and_socket_are_never_followed() {
    let script = "cd \"${DEVIT_ACK_MARKER%/*}\" && mv sock elsewhere && ln -s \"$OUT/victim\" sock && ln -s \"$OUT/new-file\" ack\n\
                  ln -s \"$OUT\" deep\ntouch \"$OUT/ready\"; until test -e \"$OUT/go\"; do sleep 0.02; done\n";
    let hooked = Hooked::new(script);
    fs::write(hooked.out("victim"), "precious").unwrap();
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 1);
    let refused = || hooked.world.log().contains("an ACK marker was not written");
    eventually("the marker's refusal", refused);
    fs::write(hooked.out("go"), "").unwrap();
    hooked.over();
    assert!(!hooked.out("new-file").exists(), "no marker was written through a link");
    assert_eq!(fs::read_to_string(hooked.out("victim")).unwrap(), "precious");
}

#[test]
fn a_folder_that_was_replaced_or_deleted_hurts_nobody() {
    let script = "folder=\"${DEVIT_ACK_MARKER%/*}\"\ncase \"$DEVIT_NOTIFY_STATUS\" in\n\
                  gone) rm -rf \"$folder\" ;;\n\
                  moved) mv \"$folder\" \"$OUT/moved\"; ln -s \"$OUT/home\" \"$folder\" ;;\nesac\n\
                  touch \"$OUT/ready.$DEVIT_NOTIFY_STATUS\"; until test -e \"$OUT/go\"; do sleep 0.02; done\n";
    let hooked = Hooked::new(script);
    fs::create_dir(hooked.out("home")).unwrap();
    fs::write(hooked.out("home/ack"), "precious").unwrap();
    let task = hooked.task(json!({}));
    for status in ["gone", "moved"] {
        hooked.notify(&task, status, json!({ "summary": "x" }));
        hooked.wait_for(&format!("ready.{status}"));
    }
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 2);
    fs::write(hooked.out("go"), "").unwrap();
    hooked.over();
    assert_eq!(fs::read_to_string(hooked.out("home/ack")).unwrap(), "precious", "the link was not followed");
    eventually("the moved folder", || fs::read_dir(hooked.out("moved")).unwrap().next().is_none());
    hooked.notify(&task, "completed", json!({ "summary": "and it goes on" }));
    hooked.wait_for("ready.completed");
}

fn alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn a_hook_that_never_ends_is_killed_with_all_it_started() {
    let script = "trap '' TERM INT HUP\nrm -f \"$OUT/away\"\nsetsid sh -c 'trap \"\" TERM HUP; echo $$ > \"$0/away\"; while :; do sleep 1; done' \"$OUT\" &\n\
                  until test -s \"$OUT/away\"; do sleep 0.02; done\necho $$ > \"$OUT/self\"\nwhile :; do sleep 1; done\n";
    let hooked = Hooked::with(script, "timeout = \"1s\"\n", "");
    let task = hooked.task(json!({}));
    // A busy machine may not get it going within its second; then there is another one.
    loop {
        hooked.notify(&task, "progress", json!({ "summary": "x" }));
        eventually("a hook", || !hooked.folders().is_empty());
        eventually("its work or its end", || hooked.out("self").exists() || hooked.folders().is_empty());
        if hooked.out("self").exists() {
            break;
        }
    }
    let (away, hook) = (hooked.process_in("away"), hooked.process_in("self"));
    eventually("the end", || !alive(&away) && !alive(&hook));
    hooked.over();
    eventually("the record", || hooked.log().contains("was killed after 1s"));
    // Late.
    hooked.nobody_waits(&task);
    assert!(hooked.folders().is_empty());
}

#[test]
fn what_a_killed_keeper_leaves_is_ended_by_the_daemon() {
    let script = "trap '' TERM HUP\nsetsid sh -c 'trap \"\" TERM HUP; echo $$ > \"$0/away\"; while :; do sleep 1; done' \"$OUT\" &\n\
                  until test -s \"$OUT/away\"; do sleep 0.02; done\necho $PPID > \"$OUT/keeper\"\necho $$ > \"$OUT/self\"\nwhile :; do sleep 1; done\n";
    let hooked = Hooked::new(script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    let (hook, away, keeper) =
        (hooked.process_in("self"), hooked.process_in("away"), hooked.process_in("keeper"));
    kill_process(Pid::from_raw(keeper.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    eventually("the end of all", || !alive(&hook) && !alive(&away));
    hooked.over();
    eventually("the record", || hooked.log().contains("was killed"));
    hooked.nobody_waits(&task);
}

#[test]
fn a_folder_that_was_shut_is_removed_all_the_same() {
    let hooked = Hooked::new("chmod 0 \"${DEVIT_ACK_MARKER%/*}\"\ntouch \"$OUT/shut\"\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("shut");
    hooked.over();
    hooked.nobody_waits(&task);
    assert!(hooked.folders().is_empty());
}

#[test]
fn one_folder_that_cannot_be_removed_keeps_no_other_one() {
    let mut hooked = Hooked::new(TELL);
    let folder = hooked.daemon().socket.parent().unwrap().join("hooks");
    eventually("the folder", || folder.exists());
    hooked.daemon().kill();
    for number in 0..20 {
        fs::create_dir_all(folder.join(format!("old-{number}/inner"))).unwrap();
    }
    let stuck = folder.join("old-7");
    fs::set_permissions(&stuck, fs::Permissions::from_mode(0o000)).unwrap();
    let hooked = hooked.started();
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("completed");
    eventually("the others' end", || hooked.folders() == [stuck.clone()]);
    fs::set_permissions(&stuck, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn what_a_hook_leaves_running_ends_with_it_and_a_failure_is_on_record() {
    let script =
        "setsid sh -c 'while :; do sleep 1; done' &\necho $! > \"$OUT/left\"\necho oh no >&2\nexit 7\n";
    let hooked = Hooked::new(script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    let left = hooked.process_in("left");
    eventually("its end", || !alive(&left));
    hooked.over();
    eventually("the record", || hooked.log().contains("ended with exit code 7"));
    eventually("its words", || hooked.world.log().contains("oh no"));
    assert!(hooked.log().contains("hook.failed"));
}

#[test]
fn a_hook_that_complains_without_end_is_not_held_up() {
    let hooked = Hooked::new("head -c 1000000 /dev/zero | tr '\\0' x >&2 && touch \"$OUT/said\"\nexit 5\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("said");
    hooked.over();
    eventually("the record", || hooked.log().contains("ended with exit code 5"));
    let longest = hooked.world.log().lines().map(str::len).max().unwrap();
    assert!(longest < 2 * HOOK_COMPLAINT_MAX, "{longest} bytes of it are in the log");
}

#[test]
fn the_hook_has_no_terminal_and_no_input() {
    let hooked = Hooked::new(
        "if (: < /dev/tty) 2>/dev/null; then echo tty; fi > \"$OUT/new\"; cat >> \"$OUT/new\"; mv \"$OUT/new\" \"$OUT/said\"\n",
    );
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    assert_eq!(hooked.wait_for("said"), "");
}

#[test]
fn what_was_owed_or_running_at_a_kill_runs_again_under_the_same_number() {
    let script = "echo \"$PROVOST_EFFECT_ID $DEVIT_NOTIFY_STATUS $DEVIT_ACK_MARKER\" >> \"$OUT/ran\"\necho $$ >> \"$OUT/pids\"\n\
                  until test -e \"$OUT/go\"; do sleep 0.05; done\n";
    let mut hooked = Hooked::with(script, "", "[limits]\nhooks = 1\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "half", json!({ "summary": "runs" }));
    hooked.process_in("pids");
    hooked.notify(&task, "completed", json!({ "summary": "waits" }));
    let ran = |hooked: &Hooked| fs::read_to_string(hooked.out("ran")).unwrap();
    assert_eq!(ran(&hooked).lines().count(), 1);
    hooked.daemon().kill();
    let pid = fs::read_to_string(hooked.out("pids")).unwrap();
    eventually("the end of the dead daemon's hook", || !alive(&pid));
    assert_eq!(hooked.folders().len(), 1, "nobody could clean up");
    let old = hooked.folders().pop().unwrap();

    let hooked = hooked.started();
    eventually("the first again", || ran(&hooked).lines().count() == 2);
    assert!(!old.exists(), "what the dead daemon left is swept");
    fs::write(hooked.out("go"), "").unwrap();
    hooked.over();
    eventually("the second", || ran(&hooked).lines().count() == 3);
    let said = ran(&hooked);
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!((words[0][1], words[1][1], words[2][1]), ("half", "half", "completed"));
    assert_eq!(words[0][0], words[1][0], "the same number, so that a repeat can be told");
    assert_ne!(words[1][0], words[2][0]);
    let markers: BTreeSet<&str> = words.iter().map(|it| it[2]).collect();
    assert_eq!(markers.len(), 3, "a folder of its own each time");
    hooked.over();
    drop(hooked.started());
}

#[test]
fn an_ack_outlives_a_kill_as_long_as_the_hook_that_it_releases() {
    let script = "echo run >> \"$OUT/runs\"\nif test -e \"$OUT/go\"; then\n\
                  socat -u UNIX-CONNECT:\"$DEVIT_ACK_SOCKET\" - | od -An -tx1 > \"$OUT/new\"; mv \"$OUT/new\" \"$OUT/bytes\"\n\
                  else while :; do sleep 1; done; fi\n";
    let mut hooked = Hooked::new(script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.process_in("runs");
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 1);
    hooked.daemon().kill();
    fs::write(hooked.out("go"), "").unwrap();
    let hooked = hooked.started();
    assert_eq!(hooked.wait_for("bytes").trim(), "01", "nobody has to acknowledge twice");
    hooked.over();
}

#[test]
fn a_stop_in_order_ends_hooks_and_the_next_start_runs_them() {
    let script =
        "echo $$ >> \"$OUT/pids\"\nuntil test -e \"$OUT/go\"; do sleep 0.05; done\ntouch \"$OUT/done\"\n";
    let mut hooked = Hooked::new(script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    let pid = hooked.process_in("pids");
    hooked.daemon.take().unwrap().stop();
    assert!(!alive(&pid) && hooked.folders().is_empty(), "nothing is left behind");
    fs::write(hooked.out("go"), "").unwrap();
    let hooked = hooked.started();
    hooked.wait_for("done");
    hooked.over();
}

#[test]
fn the_folder_of_hooks_is_refused_when_others_can_enter_it() {
    let hooked = Hooked::new(TELL);
    let folder = hooked.daemon.as_ref().unwrap().socket.parent().unwrap().join("hooks");
    // The doors open first.
    eventually("the folder", || folder.exists());
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let task = hooked.task(json!({}));
    hooked.notify(&task, "half", json!({ "summary": "x" }));
    eventually("the record", || hooked.log().contains("is accessible to others"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("completed");
    assert!(!hooked.out("half").exists());
}
