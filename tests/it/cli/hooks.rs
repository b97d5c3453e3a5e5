//! Notification hooks and their ACK: real frames, real daemon, real hooks.

mod ack;
mod ends;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

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

    /// Returns the output of `provost log`, as JSON lines.
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
    assert!(hooked.world.command(&["daemon", "reload"]).status().unwrap().success());
    hooked.notify(&task, "two", json!({ "summary": "x" }));
    hooked.wait_for("second");
    assert!(!hooked.out("first.two").exists());
    hooked.over();
    fs::remove_file(hooked.out("second")).unwrap();
    hooked.world.configure("");
    assert!(hooked.world.command(&["daemon", "reload"]).status().unwrap().success());
    hooked.notify(&task, "three", json!({ "summary": "x" }));
    hooked.nobody_waits(&task);
    assert!(!hooked.out("second").exists() && hooked.folders().is_empty());
}
