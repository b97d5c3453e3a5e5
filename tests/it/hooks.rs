//! Notification hooks and their ACK: real frames, real daemon, real hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost::base::limits::{HOOKS_OWED_BYTES_MAX, HOOKS_OWED_MAX};
use provost::base::{Digest, Json, Ttl};
use provost::domain::command::{AckTask, ReportTask, SettleEffect, Status};
use provost::domain::{Change, Effect, EventKind, Notice, Settings, Verdict};
use provost::protocols::devit::hook_words;
use serde_json::{Value, json};

use crate::script::{Script, client, host, person, report};
use crate::source::project_root;
use crate::storm::settings;
use crate::support::{Client, Daemon, Reply, World, eventually};

/// A world whose hook is this script; `$OUT` is a folder of the test's.
struct Hooked {
    world: World,
    daemon: Option<Daemon>,
}

impl Hooked {
    fn new(script: &str) -> Self {
        Self::with(script, "", "")
    }

    /// With more in the hook's section, and more after it.
    fn with(script: &str, more: &str, after: &str) -> Self {
        let world = World::new();
        fs::create_dir(world.path("out")).unwrap();
        fs::write(world.path("hook.sh"), script).unwrap();
        let hooked = Self { world, daemon: None };
        hooked.configure(more, after);
        hooked.started()
    }

    fn configure(&self, more: &str, after: &str) {
        let (script, out) = (self.world.path("hook.sh"), self.out(""));
        self.world.configure(&format!(
            "[hooks.notify]\ncommand = \"OUT='{}' exec sh '{}'\"\n{more}{after}",
            out.display(),
            script.display()
        ));
    }

    fn started(mut self) -> Self {
        self.daemon = Some(self.world.start());
        self
    }

    fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().unwrap()
    }

    fn client(&self, ident: &str) -> Client {
        self.world.client(self.daemon.as_ref().unwrap(), ident)
    }

    /// A file that hooks of this test write.
    fn out(&self, name: &str) -> PathBuf {
        self.world.path("out").join(name)
    }

    fn wait_for(&self, name: &str) -> String {
        eventually(name, || self.out(name).exists());
        fs::read_to_string(self.out(name)).unwrap()
    }

    /// The number that a hook wrote there, once it is complete.
    fn process_in(&self, name: &str) -> String {
        let text = || fs::read_to_string(self.out(name)).unwrap_or_default();
        eventually(name, || text().ends_with('\n'));
        text()
    }

    /// A task of `orch:a` for `worker:w`, which collects its tasks.
    fn task(&self, more: Value) -> String {
        let (task, reply) = self.client("orch:a").delegate("worker:w", "do it", more);
        reply.ack();
        task
    }

    fn notify(&self, task: &str, status: &str, artifacts: Value) {
        notify(&self.client("worker:w"), task, status, artifacts).ack();
    }

    fn ack(&self, who: &str, task: &str) -> Reply {
        notify(&self.client(who), task, "ack", json!({}))
    }

    /// Below the runtime folder, one for each hook that runs.
    fn folders(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.world.path("run/provost")).unwrap().flatten();
        let hooks = all.filter_map(|it| fs::read_dir(it.path().join("hooks")).ok());
        hooks.flatten().flatten().map(|it| it.path()).collect()
    }

    fn over(&self) {
        eventually("the end of the hooks", || self.folders().is_empty());
    }

    /// An ACK finds no hook; the last one may just be putting its end on record.
    fn nobody_waits(&self, task: &str) {
        eventually("an ACK without effect", || self.ack("orch:a", task).ack()["released"] == 0);
    }

    /// What `provost log` shows, as JSON lines.
    fn log(&self) -> String {
        let output = self.world.command(&["log", "--json", "--limit", "500"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn notify(client: &Client, task: &str, status: &str, artifacts: Value) -> Reply {
    client.say("NOTIFY", json!({ "task_id": task, "status": status, "artifacts": artifacts }))
}

/// Writes the environment as it is, each hook into a file of its own.
const TELL: &str = "env --null > \"$OUT/new.$$\" && mv \"$OUT/new.$$\" \"$OUT/$DEVIT_NOTIFY_STATUS\"\n";

fn environment(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('\0').filter_map(|it| it.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

// What a hook is told.

#[test]
fn a_hook_is_told_all_there_is_in_devits_words() {
    let script = format!(
        "stat -c '%a %F' \"${{DEVIT_ACK_SOCKET%/*}}\" \"$DEVIT_ACK_SOCKET\" \"$DEVIT_NOTIFY_PAYLOAD_FILE\" > \"$OUT/modes\"
         cp \"$DEVIT_NOTIFY_PAYLOAD_FILE\" \"$OUT/file\"; test -e \"$DEVIT_ACK_MARKER\" && touch \"$OUT/early\"\n{TELL}"
    );
    let hooked = Hooked::new(&script);
    fs::create_dir(hooked.world.repo().join("src")).unwrap();
    let task = hooked.task(json!({ "working_dir": "src" }));
    let artifacts = json!({
        "summary": "it's \"done\"\n$(id)", "details": { "b": 1, "a": [true, "é"] },
        "evidence": { "log": "x" }, "metadata": { "model_used": "m" }, "reported_at": "2025-01-01T00:00:00.000Z",
    });
    hooked.notify(&task, "completed", artifacts);
    let env = environment(&hooked.wait_for("completed"));
    let said = |name: &str| env.get(&format!("DEVIT_NOTIFY_{name}")).map_or("", String::as_str);
    assert_eq!((said("TASK_ID"), said("STATUS"), said("WORKER")), (&*task, "completed", "worker:w"));
    assert_eq!((said("RETURN_TO"), said("WORKDIR")), ("orch:a", "src"));
    assert_eq!(said("SUMMARY"), "it's \"done\"\n$(id)");
    assert_eq!((said("DETAILS"), said("EVIDENCE")), ("{\"a\":[true,\"é\"],\"b\":1}", "{\"log\":\"x\"}"));
    assert_eq!(said("METADATA"), "{\"model_used\":\"m\"}");
    let time = chrono::DateTime::parse_from_rfc3339(said("TIMESTAMP")).unwrap();
    assert!(said("TIMESTAMP").len() == 24 && said("TIMESTAMP").ends_with('Z'), "{time}");
    let payload = format!(
        "{{\"task_id\":\"{task}\",\"status\":\"completed\",\"worker\":\"worker:w\",\"return_to\":\"orch:a\",\
         \"summary\":\"it's \\\"done\\\"\\n$(id)\",\"working_dir\":\"src\",\"details\":{{\"a\":[true,\"é\"],\"b\":1}},\
         \"evidence\":{{\"log\":\"x\"}},\"timestamp\":\"{}\",\"metadata\":{{\"model_used\":\"m\"}}}}",
        said("TIMESTAMP")
    );
    assert_eq!(said("PAYLOAD"), payload, "the members are in DevIt's order");
    assert_eq!(fs::read_to_string(hooked.out("file")).unwrap(), payload);
    assert!(env["PROVOST_EFFECT_ID"].parse::<u64>().is_ok());
    let modes = fs::read_to_string(hooked.out("modes")).unwrap();
    assert_eq!(modes, "700 directory\n600 socket\n600 regular file\n");
    assert!(!hooked.out("early").exists(), "the marker is not there before the ACK");
    hooked.over();
}

#[test]
fn what_is_not_there_has_no_variable_and_is_null_in_the_payload() {
    let hooked = Hooked::new(TELL);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "reviewing", json!({ "summary": "half", "details": null }));
    let env = environment(&hooked.wait_for("reviewing"));
    for name in ["WORKDIR", "DETAILS", "EVIDENCE", "METADATA"] {
        assert!(!env.contains_key(&format!("DEVIT_NOTIFY_{name}")), "{name}");
    }
    let payload: Value = serde_json::from_str(&env["DEVIT_NOTIFY_PAYLOAD"]).unwrap();
    assert_eq!((&payload["status"], &payload["details"]), (&json!("reviewing"), &Value::Null));
    assert!(payload.as_object().unwrap().contains_key("working_dir"));
}

#[test]
fn what_is_larger_than_an_environment_is_whole_in_the_file() {
    let script = format!("cp \"$DEVIT_NOTIFY_PAYLOAD_FILE\" \"$OUT/file\"\n{TELL}");
    let hooked = Hooked::new(&script);
    let task = hooked.task(json!({}));
    let (long, zero) = ("\u{1}é".repeat(20_000), "a\0b");
    let artifacts =
        json!({ "summary": long, "details": { "text": long }, "evidence": [zero], "metadata": [long] });
    hooked.notify(&task, "completed", artifacts);
    let env = environment(&hooked.wait_for("completed"));
    let details: Value = serde_json::from_str(&env["DEVIT_NOTIFY_DETAILS"]).unwrap();
    assert_eq!(details["truncated"], true, "{details}");
    assert!(details["original_size"].as_u64().unwrap() > 150_000);
    assert!(details["beginning"].as_str().unwrap().starts_with("{\"text\":\"\\u0001é"));
    let payload: Value = serde_json::from_str(&env["DEVIT_NOTIFY_PAYLOAD"]).unwrap();
    assert_eq!(payload["details"], details);
    assert_eq!(env["DEVIT_NOTIFY_EVIDENCE"], "[\"a\\u0000b\"]");
    let file: Value = serde_json::from_str(&fs::read_to_string(hooked.out("file")).unwrap()).unwrap();
    assert_eq!((&file["details"]["text"], &file["metadata"][0]), (&json!(long), &json!(long)));
    assert!(file["summary"].as_str().unwrap().len() > 3_000);
}

#[test]
fn the_environment_is_made_from_a_short_list() {
    let world = World::new();
    fs::create_dir(world.path("out")).unwrap();
    fs::write(world.path("hook.sh"), TELL).unwrap();
    let hooked = Hooked { world, daemon: None };
    hooked.configure("env = { EXTRA = \"mine\", DEVIT_NOTIFY_STATUS = \"forged\" }\n", "");
    let mut command = hooked.world.command(&["up", "--foreground"]);
    command.env("DEVIT_SECRET", "a-secret-that-nobody-else-has-seen").env("SSH_AUTH_SOCK", "/agent");
    command.env("DISPLAY", ":7").env("LC_TIME", "C.UTF-8").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/bus");
    command.env("DEVIT_NOTIFY_TASK_ID", "forged");
    let daemon = hooked.world.start_as(command);
    let client = |ident: &str| hooked.world.client(&daemon, ident);
    let (task, reply) = client("orch:a").delegate("worker:w", "do it", json!({}));
    reply.ack();
    notify(&client("worker:w"), &task, "completed", json!({ "summary": "done" })).ack();
    let env = environment(&hooked.wait_for("completed"));
    assert_eq!((&*env["DISPLAY"], &*env["LC_TIME"], &*env["EXTRA"]), (":7", "C.UTF-8", "mine"));
    assert_eq!((&*env["DBUS_SESSION_BUS_ADDRESS"], &env["DEVIT_NOTIFY_TASK_ID"]), ("unix:path=/bus", &task));
    let shell = ["PWD", "SHLVL", "_", "OLDPWD", "OUT"];
    let ours = |name: &str| name.starts_with("DEVIT_NOTIFY_") || name.starts_with("DEVIT_ACK_");
    let known = ["DISPLAY", "LC_TIME", "EXTRA", "DBUS_SESSION_BUS_ADDRESS", "PROVOST_EFFECT_ID"];
    let plain = ["HOME", "PATH", "USER", "XDG_RUNTIME_DIR", "LANG"];
    let odd: Vec<&String> = env
        .keys()
        .filter(|it| !ours(it) && ![&shell[..], &known, &plain].concat().contains(&it.as_str()))
        .collect();
    assert_eq!(odd, [""; 0], "nothing else is inherited");
    let secret = hooked.world.secret();
    assert!(!env.values().any(|it| it.contains("nobody-else") || it.contains(&secret)));
}

// When it runs.

#[test]
fn it_runs_for_every_word_about_a_task_and_not_for_denials() {
    let script = "echo \"$DEVIT_NOTIFY_TASK_ID $DEVIT_NOTIFY_STATUS $DEVIT_NOTIFY_WORKER\" >> \"$OUT/all\"\n";
    let hooked = Hooked::new(script);
    hooked.world.rule("version = 1\ndefault = \"deny\"\n[[rule]]\nid = \"t\"\ndecision = \"allow\"\nreason = \"x\"\nwhen.action = [\"delegate\"]\nwhen.worker = [\"shell\", \"worker:w\"]\n");
    let client = hooked.client("orch:a");
    let denied =
        |reply: Reply| matches!(reply, Reply::Message(it) if it["payload"]["code"] == "E_POLICY_DENIED");
    eventually("the rules", || denied(client.delegate("worker:x", "no", json!({})).1));
    let task = hooked.task(json!({}));
    hooked.notify(&task, "progress", json!({ "summary": "half" }));
    hooked.notify(&task, "completed", json!({ "summary": "done" }));
    assert_eq!(notify(&hooked.client("worker:w"), &task, "failed", json!({})).code(), "E_TASK_FINISHED");
    assert_eq!(notify(&hooked.client("worker:w"), "never", "failed", json!({})).code(), "E_TASK_NOT_FOUND");
    let taken_back = hooked.task(json!({}));
    notify(&client, &taken_back, "cancelled", json!({ "summary": "enough" })).ack();
    let (ran, reply) = client.delegate("shell", "exit 3", json!({}));
    reply.ack();
    let wanted = [
        format!("{task} progress worker:w"),
        format!("{task} completed worker:w"),
        format!("{taken_back} cancelled worker:w"),
        format!("{ran} failed shell"),
    ];
    let all = || fs::read_to_string(hooked.out("all")).unwrap_or_default();
    eventually("every hook", || wanted.iter().all(|line| all().lines().any(|it| it == line)));
    hooked.over();
    assert_eq!(all().lines().count(), wanted.len(), "one each, and none for a denial: {}", all());
}

#[test]
fn no_more_hooks_run_at_once_than_configured_and_they_begin_in_order() {
    let script = "mkdir \"$OUT/alone\" || echo both >> \"$OUT/order\"\necho \"$DEVIT_NOTIFY_SUMMARY\" >> \"$OUT/order\"\n\
                  rmdir \"$OUT/alone\"\n";
    let hooked = Hooked::with(script, "", "[limits]\nhooks = 1\n");
    let task = hooked.task(json!({}));
    let words: Vec<String> = (0..8).map(|n| format!("word {n}")).collect();
    for word in &words {
        hooked.notify(&task, "progress", json!({ "summary": word }));
    }
    let order = || fs::read_to_string(hooked.out("order")).unwrap_or_default();
    eventually("all of them", || order().lines().count() >= words.len());
    assert_eq!(order().lines().collect::<Vec<_>>(), words);
}

#[test]
fn a_reload_changes_the_hook_and_takes_it_away() {
    let hooked = Hooked::new("touch \"$OUT/first.$DEVIT_NOTIFY_STATUS\"\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "one", json!({ "summary": "x" }));
    hooked.wait_for("first.one");
    hooked
        .world
        .configure(&format!("[hooks.notify]\ncommand = \"touch {}\"\n", hooked.out("second").display()));
    assert!(hooked.world.command(&["reload"]).status().unwrap().success());
    hooked.notify(&task, "two", json!({ "summary": "x" }));
    hooked.wait_for("second");
    assert!(!hooked.out("first.two").exists());
    hooked.over();
    fs::remove_file(hooked.out("second")).unwrap();
    hooked.world.configure("");
    assert!(hooked.world.command(&["reload"]).status().unwrap().success());
    hooked.notify(&task, "three", json!({ "summary": "x" }));
    hooked.nobody_waits(&task);
    assert!(!hooked.out("second").exists() && hooked.folders().is_empty());
}

// The ACK.

/// The sample that a user copies, waiting in one way.
fn sample(way: &str) -> Hooked {
    let world = World::new();
    fs::create_dir(world.path("out")).unwrap();
    let script = project_root().join("scripts/hooks/notify-ack.sh");
    world.configure(&format!(
        "[hooks.notify]\ncommand = \"exec '{}'\"\n\
         env = {{ ACK_WAIT = \"{way}\", ACK_TIMEOUT = \"50\", NOTIFY_LOG = \"{}\", PROVOST = \"{}\" }}\n",
        script.display(),
        world.path("out/log").display(),
        crate::support::provost().display(),
    ));
    Hooked { world, daemon: None }.started()
}

fn released_by_ack(way: &str) {
    let hooked = sample(way);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "ready" }));
    let log = || fs::read_to_string(hooked.out("log")).unwrap_or_default();
    eventually("the notification", || log().contains(&format!(" {task} completed ready\n")));
    let answer = hooked.ack("orch:a", &task).ack();
    assert_eq!(answer, json!({ "ok": true, "task_id": task, "released": 1 }));
    eventually("the release", || log().lines().any(|it| it.ends_with(" acknowledged")));
    hooked.over();
    assert!(!log().contains("not acknowledged"), "{}", log());
    assert!(!hooked.log().contains("hook.failed"));
}

#[test]
fn the_sample_hook_is_released_with_socat() {
    released_by_ack("socat");
}

#[test]
fn the_sample_hook_is_released_with_nc() {
    released_by_ack("nc");
}

#[test]
fn the_sample_hook_is_released_with_provost_hook_wait() {
    released_by_ack("provost");
}

#[test]
fn the_sample_hook_is_released_in_pure_shell() {
    released_by_ack("marker");
}

#[test]
fn the_sample_hook_finds_a_way_by_itself() {
    released_by_ack("");
}

/// Says what came at the socket, to its end.
const LISTEN: &str = "touch \"$OUT/ready\"; socat -u UNIX-CONNECT:\"$DEVIT_ACK_SOCKET\" - | od -An -tx1 > \"$OUT/new\"\n\
                      cat \"$DEVIT_ACK_MARKER\" > \"$OUT/marker\"; mv \"$OUT/new\" \"$OUT/bytes\"\n";

#[test]
fn an_ack_is_one_byte_and_the_end_and_the_marker() {
    let script = LISTEN
        .replace("cat \"$DEVIT", "until test -e \"$DEVIT_ACK_MARKER\"; do sleep 0.02; done; cat \"$DEVIT");
    let hooked = Hooked::new(&script);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    hooked.ack("orch:a", &task).ack();
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
    assert_eq!(fs::read_to_string(hooked.out("marker")).unwrap(), "ack");
}

#[test]
fn only_who_was_notified_acknowledges_and_nothing_else_changes_anything() {
    let hooked = Hooked::new(LISTEN);
    let client = hooked.client("orch:a");
    let payload = json!({ "return_to": "boss:b", "task": { "action": "devit_delegate", "goal": "x" } });
    let task = crate::support::fresh("task");
    client.say_to("DELEGATE", &task, "worker:w", payload).ack();
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    for stranger in ["worker:w", "mallory", "client:approver"] {
        let who = match stranger {
            "client:approver" => hooked.world.approver(hooked.daemon.as_ref().unwrap()),
            name => hooked.client(name),
        };
        assert_eq!(notify(&who, &task, "ack", json!({})).code(), "E_FORBIDDEN", "{stranger}");
    }
    assert_eq!(hooked.ack("orch:a", "nothing").code(), "E_TASK_NOT_FOUND");
    assert_eq!(hooked.ack("orch:a", "../../escape").code(), "E_TASK_NOT_FOUND");
    let folder = hooked.folders().pop().unwrap();
    assert!(!folder.join("ack").exists() && !hooked.out("bytes").exists(), "nobody was released");
    assert_eq!(hooked.ack("boss:b", &task).ack()["released"], 1);
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
    hooked.over();
    // Twice, and late.
    hooked.nobody_waits(&task);
    assert!(hooked.folders().is_empty());
}

#[test]
fn a_person_acknowledges_at_the_terminal_and_a_script_of_theirs_does_not() {
    let hooked = Hooked::new(LISTEN);
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("ready");
    let refused = hooked.world.command(&["notify", &task, "--status", "ack"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "without a terminal it is anybody: {refused:?}");
    let line = format!("{} notify {task} --status ack", crate::support::provost().display());
    let mut person = std::process::Command::new("script");
    person.args(["-qec", &line, "/dev/null"]).current_dir(hooked.world.repo()).env_clear();
    for (name, value) in hooked.world.command(&[]).get_envs() {
        person.env(name, value.unwrap());
    }
    let said = person.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(hooked.wait_for("bytes").trim(), "01");
}

#[test]
fn an_ack_counts_for_hooks_that_wait_for_their_turn() {
    let script = "if test \"$DEVIT_NOTIFY_STATUS\" = first; then until test -e \"$OUT/go\"; do sleep 0.02; done; fi\n\
                  socat -u UNIX-CONNECT:\"$DEVIT_ACK_SOCKET\" - | od -An -tx1 > \"$OUT/$DEVIT_NOTIFY_STATUS\"\n";
    let hooked = Hooked::with(script, "", "[limits]\nhooks = 1\n");
    let task = hooked.task(json!({}));
    hooked.notify(&task, "first", json!({ "summary": "x" }));
    eventually("the first", || !hooked.folders().is_empty());
    hooked.notify(&task, "second", json!({ "summary": "x" }));
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 2);
    hooked.notify(&task, "third", json!({ "summary": "x" }));
    fs::write(hooked.out("go"), "").unwrap();
    eventually("the third", || hooked.out("third").exists());
    assert_eq!(fs::read_to_string(hooked.out("second")).unwrap().trim(), "01");
    assert_eq!(fs::read_to_string(hooked.out("third")).unwrap(), "", "it came after the ACK and still waits");
    assert_eq!(hooked.ack("orch:a", &task).ack()["released"], 1);
    hooked.over();
    assert_eq!(fs::read_to_string(hooked.out("third")).unwrap().trim(), "01");
}

// Hooks that misbehave.

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
fn the_hook_has_no_terminal_and_no_input() {
    let hooked = Hooked::new(
        "if (: < /dev/tty) 2>/dev/null; then echo tty; fi > \"$OUT/new\"; cat >> \"$OUT/new\"; mv \"$OUT/new\" \"$OUT/said\"\n",
    );
    let task = hooked.task(json!({}));
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    assert_eq!(hooked.wait_for("said"), "");
}

// Crashes.

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

// Our own waiting.

#[test]
fn provost_hook_wait_says_how_it_went() {
    let hooked = Hooked::new("true\n");
    let run = |args: &[&str], env: &[(&str, &Path)]| {
        let mut command = hooked.world.command(&[&["hook", "wait"], args].concat());
        command.envs(env.iter().copied()).current_dir("/");
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&[], &[]);
    assert!(code == 2 && said.contains("[hooks.notify]"), "{code}: {said}");
    let marker = hooked.out("marker");
    let (code, said) = run(&["--timeout", "100ms"], &[("DEVIT_ACK_MARKER", &marker)]);
    assert!(code == 1 && said.contains("within 100ms"), "{code}: {said}");
    let gone = hooked.out("gone/marker");
    assert_eq!(run(&[], &[("DEVIT_ACK_MARKER", &gone)]).0, 3, "its folder has gone");
    std::os::unix::fs::symlink("/etc/passwd", &marker).unwrap();
    assert_eq!(run(&["--timeout", "100ms"], &[("DEVIT_ACK_MARKER", &marker)]).0, 1, "a link is no marker");
    fs::remove_file(&marker).unwrap();
    fs::write(&marker, "ack").unwrap();
    assert_eq!(run(&[], &[("DEVIT_ACK_MARKER", &marker)]).0, 0);
    let socket = hooked.out("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let closes = std::thread::spawn(move || drop(listener.accept().unwrap()));
    assert_eq!(run(&[], &[("DEVIT_ACK_SOCKET", &socket)]).0, 3, "the end without the byte is no ACK");
    closes.join().unwrap();
    assert_eq!(run(&[], &[("DEVIT_ACK_SOCKET", &socket)]).0, 3, "nobody listens");
    assert_eq!(run(&["--timeout", "soon"], &[]).0, 2);
}

// What the tests above rely on.

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
    eventually("the record", || hooked.log().contains("is not ours alone"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    hooked.notify(&task, "completed", json!({ "summary": "x" }));
    hooked.wait_for("completed");
    assert!(!hooked.out("half").exists());
}

// The rules, by script.

/// A core with a hook, and every effect since its start.
fn scripted() -> Script {
    Script::with(Settings { hooks: true, ..settings() })
}

fn notices(s: &Script) -> Vec<Arc<Notice>> {
    let hook = |effect: &Effect| match effect {
        Effect::RunHook { notice } => Some(notice.clone()),
        _ => None,
    };
    s.out.effects.iter().filter_map(|(_, effect)| hook(effect)).collect()
}

#[test]
fn a_lease_that_runs_out_is_told_in_devits_words() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    s.receive(&client("wes")).unwrap();
    s.pass(Ttl::minutes(60));
    let notices = notices(&s);
    assert_eq!(notices.len(), 1, "{notices:?}");
    let (variables, payload) = hook_words(&notices[0], &Digest::of(b"salt"));
    let details = variables.iter().find(|(name, _)| *name == "DEVIT_NOTIFY_DETAILS").unwrap();
    let details: Value = serde_json::from_str(&details.1).unwrap();
    assert_eq!((&details["reason"], &details["worker"]), (&json!("lease_timeout"), &json!("wes")));
    assert!(details["expired_at"].as_str().unwrap().ends_with('Z') && details["timeout_secs"].is_u64());
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!((&payload["task_id"], &payload["status"]), (&json!(task.as_str()), &json!("failed")));
    assert_eq!(payload["metadata"]["failure"]["reason"], "lease_timeout");
    assert!(payload["summary"].as_str().unwrap().starts_with("Task lease expired after"), "{payload}");
}

#[test]
fn no_denial_is_news_for_a_hook_and_what_was_granted_is() {
    let mut s = scripted();
    let never = s.order("never", "wes");
    s.say(&client("ada"), never).unwrap();
    assert_eq!(notices(&s).len(), 0);
    let (_, refused) = s.ask(&client("ada"), "ask once", "wes");
    s.answer(&person("owner"), refused, Verdict::Denied).unwrap();
    assert_eq!(notices(&s).len(), 0);
    s.ask(&client("ada"), "ask twice", "wes");
    s.pass(Ttl::minutes(30));
    assert_eq!(notices(&s).len(), 0, "nobody answered in time");
    let (task, granted) = s.ask(&client("ada"), "ask again", "wes");
    s.answer(&person("owner"), granted, Verdict::Granted).unwrap();
    s.report(&client("wes"), &task, Status::Completed).unwrap();
    assert_eq!(notices(&s).len(), 1);
}

#[test]
fn a_repeated_report_runs_no_second_hook() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    let verb = ReportTask { message: Some("m-1".into()), ..report(&task, Status::InProgress) };
    s.say(&client("wes"), verb.clone()).unwrap();
    assert_eq!(notices(&s).len(), 1);
    s.say(&client("wes"), verb).unwrap();
    assert_eq!(notices(&s).len(), 0);
}

#[test]
fn when_too_many_hooks_are_owed_the_oldest_progress_gives_way() {
    let mut s = scripted();
    let (done, task) =
        (s.delegate(&client("ada"), "do it", "wes"), s.delegate(&client("ada"), "do it", "wes"));
    s.report(&client("wes"), &done, Status::Completed).unwrap();
    let last = s.out.effects.iter().find(|(_, it)| matches!(it, Effect::RunHook { .. })).unwrap().0;
    let mut first = None;
    for _ in 1..HOOKS_OWED_MAX {
        s.report(&client("wes"), &task, Status::InProgress).unwrap();
        first = first.or(s.out.effects.first().map(|(id, _)| *id));
    }
    assert_eq!(s.core.state().hooks.len(), HOOKS_OWED_MAX);
    s.report(&client("wes"), &task, Status::InProgress).unwrap();
    let hooks = &s.core.state().hooks;
    assert_eq!(hooks.len(), HOOKS_OWED_MAX, "one for one");
    assert!(hooks.get(first.unwrap()).is_none() && hooks.get(last).is_some(), "the last word stays");
    let dropped = s
        .events()
        .iter()
        .any(|it| matches!(it, EventKind::HookDropped { effect, .. } if Some(*effect) == first));
    assert!(dropped, "and the log says so");
    assert!(s.out.changes.contains(&Change::DropEffect(first.unwrap())), "the store forgets it too");

    let large = Json::from_value(&json!("x".repeat(900_000)));
    let mut verb = report(&task, Status::InProgress);
    verb.report.details = Some(large);
    for _ in 0..200 {
        s.say(&client("wes"), verb.clone()).unwrap();
    }
    let owed = s.core.state().hooks.len();
    assert!(owed * 900_000 <= HOOKS_OWED_BYTES_MAX + 900_000, "{owed} large ones");
}

#[test]
fn an_ack_is_owed_only_where_a_hook_waits() {
    let mut s = scripted();
    let task = s.delegate(&client("ada"), "do it", "wes");
    s.say(&client("ada"), AckTask { task: task.clone() }).unwrap();
    assert!(s.out.effects.is_empty());
    s.report(&client("wes"), &task, Status::Completed).unwrap();
    let hook = s.out.effects[0].0;
    s.say(&client("ada"), AckTask { task: task.clone() }).unwrap();
    assert!(matches!(s.out.effects[..], [(_, Effect::SignalAck { .. })]));
    s.say(&host(), SettleEffect { effect: hook }).unwrap();
    s.say(&client("ada"), AckTask { task }).unwrap();
    assert!(s.out.effects.is_empty(), "it has ended");
}
