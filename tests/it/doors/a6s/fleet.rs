//! `fleet.command`: agents switched off and on, held back, and given work, in the form of each editor.

use serde_json::{Value, json};

use crate::support::a6s_client::{OPEN, Socket};
use crate::support::loopback_client::Http;
use crate::support::{World, eventually};

/// Two agents that carry out their prompts in the shell, one of them with a capability of its own. They stand in for
/// programs with a model behind them: deterministic, and no more than a shell.
const AGENTS: &str = r#"
[[agent]]
id = "first-ai"
name = "The First"
command = ["/bin/sh", "-c", "sed -n 's/^DO //p' | sh"]
output = "text"

[[agent]]
id = "second-ai"
capability = "SECURE"
command = ["/bin/sh", "-c", "sed -n 's/^DO //p' | sh"]
output = "text"

[[agent]]
id = "never-ai"
capability = "GOVERN"
command = ["/bin/sh", "-c", "true"]
enabled = false
"#;

fn world() -> World {
    let world = World::new();
    world.configure(&format!("{OPEN}{AGENTS}"));
    world
}

fn socket(world: &World) -> Socket {
    let socket = Socket::open(Http::a6s(world));
    socket.stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    socket
}

fn command(socket: &mut Socket, agent: &str, word: &str) -> Value {
    socket.result("fleet.command", &json!({ "agentId": agent, "command": word }))
}

fn invoke(socket: &mut Socket, agent: &str, task: &str) -> String {
    let begun = socket.result("agents.invoke", &json!({ "agentType": agent, "task": task }));
    begun["executionId"].as_str().unwrap().to_owned()
}

fn completed(socket: &mut Socket, execution: &str) -> Value {
    loop {
        let found = socket
            .aside
            .iter()
            .find(|it| it["type"] == "execution.complete" && it["data"]["executionId"] == execution);
        if let Some(found) = found {
            return found["data"].clone();
        }
        let message = socket.message();
        socket.aside.push(message);
    }
}

fn status_of(socket: &mut Socket, method: &str, agent: &str) -> Value {
    let list = socket.result(method, &json!({}));
    list.as_array().unwrap().iter().find(|it| it["id"] == agent).unwrap()["status"].clone()
}

#[test]
fn the_three_forms_of_a_command_reach_the_agent_that_they_name() {
    let world = world();
    let _daemon = world.start();
    let mut socket = socket(&world);
    let mut who = |params: Value| {
        let said = socket.result("fleet.command", &params);
        assert_eq!(said["ok"], true, "{said}");
        let id = said["executionId"].as_str().unwrap();
        assert!(id.starts_with("ctl_") && id.len() == "ctl_".len() + 16, "{id}");
        assert_eq!(
            (&said["status"], &said["switch"], &said["activeTasks"]),
            (&json!("available"), &json!("on"), &json!(0))
        );
        assert!(!said.to_string().contains("null"), "{said}");
        said["agentId"].as_str().unwrap().to_owned()
    };
    // Neovim, Sublime, and Emacs, which says where and what for besides which.
    assert_eq!(who(json!({ "agentId": "second-ai", "command": "status" })), "second-ai");
    assert_eq!(who(json!({ "agentId": "the first", "command": " Status", "params": {} })), "first-ai");
    let emacs =
        json!({ "target": "local", "capability": "BUILD", "agentType": "second-ai", "command": "status" });
    assert_eq!(who(emacs), "second-ai");
    assert_eq!(who(json!({ "target": "second-ai", "command": "status" })), "second-ai");
    assert_eq!(who(json!({ "target": "local", "capability": "secure", "command": "status" })), "second-ai");
    assert_eq!(who(json!({ "capability": "BUILD", "command": "status" })), "first-ai");
    // A role is somebody, too.
    assert_eq!(who(json!({ "agentId": "tester-ai", "command": "status" })), "first-ai");
    let mut error = |params: Value| socket.error("fleet.command", &params);
    assert!(
        error(json!({ "agentId": "nobody", "command": "stop" }))
            .starts_with("Unknown agent: nobody. Configured: ")
    );
    assert!(error(json!({ "target": "moon", "command": "stop" })).starts_with("Unknown agent: moon"));
    assert_eq!(
        error(json!({ "capability": "EVOLVE", "command": "x" })),
        "No agent that works has the capability EVOLVE"
    );
    assert!(error(json!({ "command": "stop" })).contains("name an agent"));
    assert!(error(json!({ "agentId": "first-ai" })).contains("command"));
    assert_eq!(
        error(json!({ "agentId": "tester-ai", "command": "stop" })),
        "tester-ai is a role of first-ai, which has others too: say first-ai"
    );
    assert!(error(json!({ "agentId": "never-ai", "command": "start" })).contains("enabled = false"));
    assert_eq!(
        status_of(&mut socket, "agents.list", "first-ai"),
        "available",
        "none of that has changed anything"
    );
}

#[test]
fn any_other_text_is_a_task() {
    let world = world();
    let _daemon = world.start();
    let mut socket = socket(&world);
    let asked = json!({ "target": "local", "capability": "SECURE", "command": "Please.\nDO echo done by $PROVOST_METHOD" });
    let said = socket.ask("fleet.command", &asked);
    let execution = said["result"]["executionId"].as_str().unwrap().to_owned();
    assert!(execution.starts_with("exec_"), "{said}");
    assert_eq!(said["result"], json!({ "ok": true, "executionId": execution }));
    assert_eq!(said["conversation_log_id"], execution.replace("exec_", "job_"));
    assert!(socket.aside.is_empty(), "nothing of it comes before the answer");
    assert_eq!(completed(&mut socket, &execution)["status"], "success");
    let output = socket.result("background.output", &json!({ "taskId": execution }));
    assert!(output.as_str().unwrap().contains("done by agents.invoke"), "{output}");
}

#[test]
fn an_agent_that_is_paused_takes_work_on_and_begins_it_when_it_is_resumed() {
    let world = world();
    let daemon = world.start();
    let mut socket = socket(&world);
    let runs = invoke(&mut socket, "first-ai", "DO until [ -e go ]; do sleep 0.05; done");
    eventually("it runs", || {
        let mut socket = self::socket(&world);
        status_of(&mut socket, "agents.list", "first-ai") == "busy"
    });
    let said = command(&mut socket, "first-ai", "pause");
    assert_eq!(
        (&said["status"], &said["switch"], &said["activeTasks"]),
        (&json!("offline"), &json!("paused"), &json!(1))
    );
    for method in ["agents.list", "fleet.list"] {
        assert_eq!(status_of(&mut socket, method, "first-ai"), "offline");
    }
    let waits = invoke(&mut socket, "first-ai", "DO echo after all");
    // What ran comes to its end: it is taken back here only because its copy is out of reach.
    socket.result("background.cancel", &json!({ "taskId": runs }));
    completed(&mut socket, &runs);
    // Another agent is not held up, and by the time it is done the one that waits could have begun.
    let other = invoke(&mut socket, "second-ai", "DO echo meanwhile");
    assert_eq!(completed(&mut socket, &other)["status"], "success");
    let now = socket.result("execution.status", &json!({ "executionId": waits }));
    assert_eq!((&now["status"], &now["phase"]), (&json!("running"), &json!("inspect")), "{now}");
    let shown = world.command(&["status"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("cli, switched paused by editor"), "{shown}");
    command(&mut socket, "first-ai", "resume");
    assert_eq!(completed(&mut socket, &waits)["status"], "success");
    assert_eq!(status_of(&mut socket, "agents.list", "first-ai"), "available");
    daemon.stop();
}

#[test]
fn an_agent_that_is_stopped_takes_nothing_on_from_anybody_until_it_is_started() {
    let world = world();
    let mut daemon = world.start();
    let mut socket = socket(&world);
    command(&mut socket, "first-ai", "pause");
    let waits = invoke(&mut socket, "first-ai", "DO echo after all");
    let said = command(&mut socket, "first-ai", "disable");
    assert_eq!((&said["status"], &said["switch"]), (&json!("offline"), &json!("off")));
    let refused = socket.error("agents.invoke", &json!({ "agentType": "first-ai", "task": "x" }));
    assert!(refused.contains("editor has switched it off") && refused.contains("`start`"), "{refused}");
    let together = socket.result("fleet.status", &json!(null));
    assert_eq!(
        (&together["total"], &together["available"], &together["offline"]),
        (&json!(3), &json!(1), &json!(2))
    );
    let delegated =
        world.command(&["delegate", "DO true", "--worker", "first-ai", "--wait"]).output().unwrap();
    assert!(String::from_utf8_lossy(&delegated.stderr).contains("switched it off"), "{delegated:?}");
    // The one that the word is for is meant, not the first that works.
    let said = socket.result("fleet.command", &json!({ "capability": "BUILD", "command": "enable" }));
    assert_eq!((&said["agentId"], &said["switch"]), (&json!("first-ai"), &json!("on")));
    assert_eq!(completed(&mut socket, &waits)["status"], "success");
    // What was answered is in the log, and the next daemon begins with what the configuration says.
    let command = command(&mut socket, "first-ai", "stop")["executionId"].as_str().unwrap().to_owned();
    daemon.kill();
    let _daemon = world.start();
    let log = world.command(&["log", "--json"]).output().unwrap();
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.lines().any(|line| line.contains("worker_switched") && line.contains(&command)), "{log}");
    let mut socket = self::socket(&world);
    assert_eq!(status_of(&mut socket, "agents.list", "first-ai"), "available");
    let begun = invoke(&mut socket, "first-ai", "DO true");
    let done = completed(&mut socket, &begun);
    assert_eq!(done["status"], "success", "{done}");
}

#[test]
fn what_somebody_holds_back_begins_again_when_they_say_so_or_a_person() {
    use provost::domain::command::SwitchWorker;
    use provost::domain::{Principal, Switch};

    use crate::support::script::{Script, client, named, person};

    let mut s = Script::new();
    let mut switch = |who: &Principal, to: Switch| {
        let said = s.say(who, SwitchWorker { worker: named("cli"), to, command: "c".into() });
        (said.is_ok(), s.core.state().switches.of(&named("cli")))
    };
    let (ada, bob, owner) = (client("ada"), client("bob"), person("owner"));
    assert_eq!(switch(&owner, Switch::Off), (true, Switch::Off));
    for to in [Switch::On, Switch::Paused] {
        assert_eq!(switch(&ada, to), (false, Switch::Off));
    }
    // Nor by way of holding it back oneself.
    assert_eq!(switch(&ada, Switch::Off), (true, Switch::Off));
    assert_eq!(switch(&ada, Switch::On), (false, Switch::Off));
    assert_eq!(switch(&owner, Switch::On), (true, Switch::On));
    assert_eq!(switch(&ada, Switch::Paused), (true, Switch::Paused));
    assert_eq!(switch(&bob, Switch::On), (false, Switch::Paused));
    assert_eq!(switch(&ada, Switch::On), (true, Switch::On));
    assert_eq!(switch(&ada, Switch::Off), (true, Switch::Off));
    assert_eq!(switch(&owner, Switch::On), (true, Switch::On), "a person decides over all");
}

#[test]
fn what_a_person_holds_back_begins_again_when_a_person_says_so_and_no_agent() {
    let world = world();
    let _daemon = world.start();
    let mut socket = socket(&world);
    let by_person = |line: &str| {
        let output = crate::support::terminal::at_the_terminal(&world, line);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = by_person("worker pause first-ai --json");
    assert_eq!(code, Some(0), "{said}");
    let told: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(told, json!({ "worker": "first-ai", "from": "on", "to": "off" }));
    // Neither from another door, nor in the name of the person, nor as an agent.
    let refused = socket.error("fleet.command", &json!({ "agentId": "first-ai", "command": "start" }));
    assert!(refused.contains("a person has it begin again"), "{refused}");
    for args in [["worker", "resume", "first-ai"], ["worker", "pause", "second-ai"]] {
        let output = world.command(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(4) && said.contains("at a terminal that is not"),
            "{args:?}: {said}"
        );
    }
    assert_eq!(status_of(&mut socket, "agents.list", "first-ai"), "offline");
    // What an agent holds back, a person may have begin again, too.
    command(&mut socket, "second-ai", "pause");
    for name in ["first-ai", "second-ai"] {
        let (code, said) = by_person(&format!("worker resume {name}"));
        assert!(code == Some(0) && said.contains(&format!("{name} is on; it was ")), "{said}");
        assert_eq!(status_of(&mut socket, "agents.list", name), "available");
    }
    let (code, said) = by_person("worker resume nobody-ai");
    assert!(code != Some(0) && said.contains("not in the configuration"), "{said}");
}

#[test]
fn what_a_person_holds_back_stays_so_over_restarts() {
    let world = world();
    let mut daemon = world.start();
    let by_person = |line: &str| {
        let output = crate::support::terminal::at_the_terminal(&world, line);
        assert!(output.status.success(), "{line}: {output:?}");
    };
    by_person("worker pause first-ai");
    by_person("worker pause second-ai");
    by_person("worker resume second-ai");
    daemon.kill();
    daemon = world.start();
    let mut editor = socket(&world);
    assert_eq!(status_of(&mut editor, "agents.list", "first-ai"), "offline");
    assert_eq!(status_of(&mut editor, "agents.list", "second-ai"), "available");
    let refused = editor.error("fleet.command", &json!({ "agentId": "first-ai", "command": "start" }));
    assert!(refused.contains("a person has it begin again"), "{refused}");
    // What an agent holds back is the daemon's that it has said so to.
    command(&mut editor, "second-ai", "pause");
    drop(editor);
    daemon.stop();
    let _daemon = world.start();
    let mut editor = socket(&world);
    assert_eq!(status_of(&mut editor, "agents.list", "first-ai"), "offline");
    assert_eq!(status_of(&mut editor, "agents.list", "second-ai"), "available");
    by_person("worker resume first-ai");
    assert_eq!(status_of(&mut editor, "agents.list", "first-ai"), "available");
}
