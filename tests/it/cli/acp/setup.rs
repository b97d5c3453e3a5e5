//! How a session begins: Provost's MCP server, names, and which agent is started.

use serde_json::{Value, json};

use super::{Editor, agent, world};
use crate::support::World;

/// The servers that the agent was told of in a request.
fn servers(editor: &Editor, method: &str) -> Vec<Value> {
    let line = editor.agent_gets(method);
    let message: Value = serde_json::from_str(&line).unwrap();
    message["params"]["mcpServers"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_session_gets_our_server_beside_its_own_and_the_rest_of_the_request_stays() {
    let world = world();
    let mut editor = Editor::with(&world, &[], &[]);
    let cwd = json!(world.repo());
    let theirs = r#"{"name":"x","command":"x","args":[],"env":[],"_n":1.0}"#;
    let line = format!(
        r#"{{"id":1,"params":{{ "mcpServers" : [ {theirs} ] , "z":1e2,"cwd":{cwd},"a":0.50}},"method":"session/new","jsonrpc":"2.0"}}"#
    );
    editor.raw(line.as_bytes());
    editor.answer(1);
    let got = editor.agent_gets("session/new");
    let all = servers(&editor, "session/new");
    assert_eq!(all.len(), 2, "{got}");
    assert_eq!(
        (&all[1]["name"], &all[1]["args"][0], &all[1]["args"][1]),
        (&json!("provost"), &json!("mcp"), &json!("serve"))
    );
    assert!(all[1]["args"][3].as_str().unwrap().starts_with("acp-"), "{got}");
    let without = got.replace(&format!(",{}", all_text(&got, theirs)), "");
    assert_eq!(without, line, "all other bytes stay");
}

/// Our server as it stands in a line, behind theirs.
fn all_text(line: &str, theirs: &str) -> String {
    let rest = line.split_once(theirs).unwrap().1;
    let ours = &rest[rest.find('{').unwrap()..];
    let mut values = serde_json::Deserializer::from_str(ours).into_iter::<Value>();
    values.next().unwrap().unwrap();
    ours[..values.byte_offset()].to_owned()
}

#[test]
fn a_session_that_is_taken_up_gets_it_too_and_one_that_has_it_gets_no_second() {
    let world = world();
    let mut editor = Editor::with(&world, &[], &[]);
    let cwd = world.repo();
    editor.call("session/resume", &json!({ "sessionId": "old", "cwd": cwd }));
    assert_eq!(servers(&editor, "session/resume").len(), 1);
    editor.call("session/load", &json!({ "sessionId": "older", "cwd": cwd, "mcpServers": null }));
    assert_eq!(servers(&editor, "session/load").len(), 1);
    let ours = json!([{ "name": "mine", "command": "/opt/bin/provost", "args": ["mcp"], "env": [] }]);
    editor.call("session/new", &json!({ "cwd": cwd, "mcpServers": ours }));
    assert_eq!(servers(&editor, "session/new").len(), 1);
    // What the agent has to refuse is not made well.
    editor.call("session/fork", &json!({ "cwd": cwd, "mcpServers": "none" }));
    assert!(editor.agent_gets("session/fork").contains("\"none\""));
}

#[test]
fn outside_of_a_repository_nothing_is_added() {
    let world = world();
    let mut editor = Editor::with(&world, &[], &[]);
    editor.call("session/new", &json!({ "cwd": world.home(), "mcpServers": [] }));
    assert!(servers(&editor, "session/new").is_empty());
}

#[test]
fn each_session_has_a_name_of_its_own_unless_one_is_named() {
    let world = world();
    let name = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["params"]["mcpServers"][0]["args"][3].as_str().unwrap().to_owned()
    };
    let names = |editor: &Editor| -> Vec<String> {
        editor.agent_got().iter().filter(|it| it.contains("session/new")).map(|it| name(it)).collect()
    };
    let mut editor = Editor::new(&world);
    editor.begin(&world);
    let two = names(&editor);
    assert!(two.len() == 2 && two[0] != two[1], "{two:?}");
    let mut editor = Editor::with(&world, &["--as", "ada"], &[]);
    editor.begin(&world);
    editor.begin(&world);
    assert_eq!(names(&editor), ["ada", "ada"]);
}

fn refused(world: &World, args: &[&str]) -> (Option<i32>, String) {
    let output = world.command(&[&["acp"], args].concat()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_agent_of_the_configuration_is_started_without_its_jail_only_where_that_is_said() {
    let world = world();
    let command: Vec<String> = agent(&world, &[]);
    let entry = |id: &str| {
        format!(
            "[workers.{id}]\ntype = \"acp\"\nbinary = \"{}\"\nargs = [\"{}\"]\nenv = {{ HELLO = \"x\" }}\n",
            command[0], command[1]
        )
    };
    world.configure(&entry("coder"));
    let (code, said) = refused(&world, &["--agent", "codr", "--no-jail"]);
    assert!(code == Some(2) && said.contains("did you mean coder?"), "{said}");
    let (_, said) = refused(&world, &["--agent", "shell", "--no-jail"]);
    assert!(said.contains("does not speak ACP"), "{said}");
    for args in [&["acp", "--agent", "coder", "--no-jail"][..], &["acp", "serve", "--no-jail"]] {
        let mut editor = Editor::start(&world, world.command(args));
        editor.begin(&world);
        assert!(!editor.agent_got().is_empty(), "it runs as its person would start it");
        assert_eq!(editor.close().code(), Some(0));
    }
    world.configure(&format!("{}{}", entry("coder"), entry("writer")));
    let (code, said) = refused(&world, &[]);
    assert!(code == Some(2) && said.contains("coder, writer"), "{said}");
    world.configure("");
    let (code, said) = refused(&world, &[]);
    assert!(code == Some(2) && said.contains("provost acp -- COMMAND"), "{said}");
    let (code, said) = refused(&world, &["--", "no-such-agent"]);
    assert!(code == Some(127) && said.contains("no-such-agent"), "{said}");
}

#[test]
fn a_command_without_a_word_is_refused_with_the_next_step() {
    let world = world();
    for word in ["", "  "] {
        let output = world.command(&["acp", "--", word]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("the agent's command is empty") && said.contains("provost acp -- COMMAND"),
            "{said}"
        );
    }
}
