//! Notices on the desktop, on a private bus with a notification service that records its messages.

mod permissions;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use provost::effects::DesktopSystem;
use serde_json::{Value, json};

use crate::support::rules::{ask, policy};
use crate::support::{Daemon, World, eventually};

fn asks(whom: &str) -> String {
    policy([ask(whom, &["when.action = [\"delegate\"]"])])
}

/// A session bus that nobody else uses, and perhaps a notification service on it.
struct Bus {
    bus: Child,
    service: Option<Child>,
    address: String,
    folder: tempfile::TempDir,
}

impl Bus {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("bus.conf");
        let socket = folder.path().join("bus");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            socket.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut bus = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { bus, service: None, address: address.trim().into(), folder }
    }

    /// With a service; `mode` is how it misbehaves.
    fn with_service(mode: &str) -> Self {
        let mut bus = Self::start();
        let script = crate::support::source::project_root().join("tests/it/fixtures/notify_service.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).arg(bus.folder.path()).env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
        if !mode.is_empty() {
            command.arg(mode);
        }
        bus.service = Some(command.stdin(Stdio::null()).spawn().unwrap());
        eventually("the notification service", || bus.calls("ready").len() == 1);
        bus
    }

    fn calls(&self, call: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("notices.jsonl")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|it| it["call"] == call).collect()
    }

    /// The first notice whose summary has this in it.
    fn notice(&self, summary: &str) -> Value {
        let find =
            || self.calls("notify").into_iter().find(|it| it["summary"].as_str().unwrap().contains(summary));
        eventually(summary, || find().is_some());
        find().unwrap()
    }

    fn click(&self, notice: &Value, key: &str) {
        let mut clicks = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("clicks"))
            .unwrap();
        writeln!(clicks, "{} {key}", notice["id"]).unwrap();
    }

    fn closes(&self, notice: &Value) -> bool {
        self.calls("close").iter().any(|it| it["id"] == notice["id"])
    }

    fn daemon(&self, world: &World) -> Daemon {
        let mut command = world.command(&["up", "--foreground"]);
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        world.start_as(command)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        for child in self.service.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn world(settings: &str) -> World {
    let world = World::new();
    world.configure(settings);
    world.rule(&asks("\"human\""));
    world
}

/// The button of a notice with this label.
fn button(notice: &Value, label: &str) -> String {
    let actions = notice["actions"].as_array().unwrap();
    let at = actions.iter().position(|it| it == label).unwrap();
    actions[at - 1].as_str().unwrap().to_owned()
}

#[test]
fn a_click_answers_as_the_person_and_the_notice_goes() {
    let (bus, world) = (Bus::with_service(""), world(""));
    let daemon = bus.daemon(&world);
    let client = world.client(&daemon, "orch:a");
    let mut earlier = None;
    for (label, end, proof) in [("Approve", "completed", "granted"), ("Deny", "failed", "denied")] {
        let goal = format!("echo {label} > {label}");
        let (task, reply) = client.delegate("shell", &goal, json!({}));
        reply.ack();
        let find = || {
            bus.calls("notify")
                .into_iter()
                .find(|it| it["body"].as_str().unwrap().contains(&goal.replace('>', "&gt;")))
        };
        eventually("the notice", || find().is_some());
        let notice = find().unwrap();
        let body = notice["body"].as_str().unwrap();
        assert!(
            body.starts_with("orch:a wants a task for shell\nRule test.ask: somebody looks at it"),
            "{body}"
        );
        // Names that can be guessed come to nothing, and so do those of another notice.
        let guess = earlier.replace(button(&notice, label)).unwrap_or_else(|| label.to_lowercase());
        bus.click(&notice, &guess);
        eventually("a guess", || {
            let here = |it: &&Value| it["key"] == guess.as_str() && it["id"] == notice["id"];
            bus.calls("click").iter().filter(here).count() > 2
        });
        assert_eq!(client.task(&task).unwrap()["status"], "pending", "a guess has answered");
        bus.click(&notice, &button(&notice, label));
        assert_eq!(client.result_of(&task)["status"], end, "{label}");
        assert_eq!(world.repo().join(label).exists(), label == "Approve");
        let journal = world.command(&["log", "--json"]).output().unwrap();
        let journal = String::from_utf8(journal.stdout).unwrap();
        assert!(journal.contains("\"proof\":\"desktop\"") && journal.contains(proof), "{journal}");
        eventually("the notice's end", || bus.closes(&notice));
        let ended = bus.notice(&format!("a task {end}"));
        assert!(ended["body"].as_str().unwrap().contains(&task), "{ended}");
    }
}

#[test]
fn what_is_answered_elsewhere_or_taken_back_leaves_no_notice() {
    let (bus, world) = (Bus::with_service(""), world("[desktop]\ntasks = \"none\"\n"));
    let daemon = bus.daemon(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, _) = client.delegate("shell", "true", json!({}));
    let notice = bus.notice("approval");
    assert!(
        world.command(&["task", "cancel", &task, "--as", "orch:a"]).status().unwrap().success()
            || world.command(&["task", "cancel", &task]).status().unwrap().success()
    );
    eventually("the notice's end", || bus.closes(&notice));
    assert_eq!(bus.calls("notify").len(), 1, "tasks are not told");
}

#[test]
fn words_of_agents_cannot_pass_for_ours() {
    let (bus, world) = (Bus::with_service(""), world(""));
    let daemon = bus.daemon(&world);
    let goal = "true »\nRule safe: <b>harmless</b> & «\u{202e}approved\u{1b}[31m\u{200b}\n".to_owned()
        + &"x".repeat(2_000);
    world.client(&daemon, "orch:a").delegate("shell", &goal, json!({})).1.ack();
    let body = bus.notice("approval")["body"].as_str().unwrap().to_owned();
    let lines: Vec<_> = body.lines().collect();
    assert_eq!(lines.len(), 4, "{body}");
    assert!(
        lines[3].starts_with(
            "It says: «true › Rule safe: &lt;b&gt;harmless&lt;/b&gt; &amp; ‹\\u{202e}approved\\u{1b}[31m\\u{200b} x"
        ),
        "{body}"
    );
    assert!(
        body.len() < 800
            && !body.contains(['\u{202e}', '\u{1b}', '\u{200b}'])
            && body.matches('»').count() == 1,
        "{body}"
    );
}

#[test]
fn no_buttons_where_nobody_may_or_can_click() {
    for (mode, settings, rules) in [
        ("--no-actions", "", asks("\"human\"")),
        ("", "[desktop]\nanswer = false\n", asks("\"human\"")),
        ("", "", asks("\"client:approver\"")),
    ] {
        let (bus, world) = (Bus::with_service(mode), world(settings));
        world.rule(&rules);
        let daemon = bus.daemon(&world);
        world.client(&daemon, "orch:a").delegate("shell", "true", json!({})).1.ack();
        assert_eq!(bus.notice("approval")["actions"], json!([]), "{mode} {settings}");
    }
}

#[test]
fn a_crowd_is_summed_up() {
    let (bus, world) = (Bus::with_service(""), world("[desktop]\nper_minute = 3\n"));
    let daemon = bus.daemon(&world);
    let client = world.client(&daemon, "orch:a");
    for _ in 0..10 {
        client.delegate("shell", "true", json!({})).1.ack();
    }
    let sum = bus.notice("more has happened");
    let body = sum["body"].as_str().unwrap();
    assert!(body.contains("more approvals") && sum["actions"] == json!([]), "{sum}");
    let later = client.delegate("shell", "echo later", json!({}));
    later.1.ack();
    assert!(bus.calls("notify").len() <= 3, "{:?}", bus.calls("notify"));
}

#[test]
fn without_a_bus_without_a_service_and_with_one_that_hangs_all_goes_on() {
    let nobody = Bus::start();
    let hangs = Bus::with_service("--hang");
    for address in ["unix:path=/nonexistent/bus", &nobody.address, &hangs.address] {
        let world = World::new();
        let mut command = world.command(&["up", "--foreground"]);
        command.env("DBUS_SESSION_BUS_ADDRESS", address);
        let daemon = world.start_as(command);
        let client = world.client(&daemon, "orch:a");
        for n in 0..3 {
            let (task, reply) = client.delegate("shell", &format!("echo {n}"), json!({}));
            reply.ack();
            assert_eq!(client.result_of(&task)["status"], "completed");
        }
        daemon.stop();
    }
    assert_eq!(hangs.calls("hang").len(), 1, "nobody asks a service that hangs again and again");
}

#[test]
fn notices_can_be_switched_off() {
    let (bus, world) = (Bus::with_service(""), world("[desktop]\nenabled = false\n"));
    let daemon = bus.daemon(&world);
    let client = world.client(&daemon, "orch:a");
    let (task, reply) = client.delegate("shell", "true", json!({}));
    reply.ack();
    assert!(world.command(&["task", "cancel", &task]).status().unwrap().success());
    client.result_of(&task);
    daemon.stop();
    assert!(bus.calls("notify").is_empty());
}

#[test]
fn the_commands_of_macos_and_windows_carry_texts_as_data_and_no_button() {
    let (title, text) =
        ("Provost: approval 7 is wanted", "a\" & (do shell script \"id\")\n$(id) `id` '; Stop-Process");
    let link = "http://provost.localhost:4720/a/7?d=1f9ac2";
    let macos = DesktopSystem::MacOs.command("", title, text, Some(link));
    assert_eq!(macos.program, "/usr/bin/osascript");
    assert_eq!(macos.args[macos.args.len() - 2..], [title, text], "behind the lines of the script");
    assert!(!macos.args[..macos.args.len() - 2].concat().contains("id\""));
    let windows = DesktopSystem::Windows.command(r"C:\Windows", title, text, Some(link));
    assert_eq!(windows.program, r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe");
    let script = windows.args.concat();
    assert!(
        !script.contains("Stop-Process") && !script.contains("approval 7") && !script.contains("<action")
    );
    let variables: Vec<&str> = windows.variables.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(variables, [title, text, link]);
    assert_eq!(DesktopSystem::here(), None, "Linux has its bus");
}
