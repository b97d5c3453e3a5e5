//! Editors' own clients, as they were recorded: CodeCompanion for Neovim, acp.el for Emacs, and the SDK for Python. What they send
//! reaches the agent through the proxy, and what the agent answers reaches them, to the byte.

use std::fs;

use serde_json::Value;

use super::{Editor, world};

/// Their conversations, one after the other; `$REPO` stands for the repository.
const RECORDED: &str = include_str!("../../vectors/acp/clients.jsonl");

const CLIENTS: [&str; 3] = ["CodeCompanion.nvim", "acp.el", "the Python SDK"];

/// An agent that says what was recorded, each time when as much has come as had come then.
const PLAYER: &str = r#"
import json, os, sys
log = open(os.environ["AGENT_LOG"], "ab", buffering=0)
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("c2a "):
        log.write(sys.stdin.buffer.readline())
    else:
        sys.stdout.write(line.removeprefix("a2c "))
        sys.stdout.flush()
log.write(b"END\n" if not sys.stdin.buffer.readline() else b"MORE\n")
"#;

/// Each conversation: the way of each line, and the line as it was.
fn conversations(repo: &str) -> Vec<Vec<(&'static str, String)>> {
    let mut all: Vec<Vec<(&'static str, String)>> = Vec::new();
    for line in RECORDED.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let way = if entry["dir"] == "c2a" { "c2a" } else { "a2c" };
        let text = line.split_once("\"msg\": ").unwrap().1.strip_suffix('}').unwrap();
        if entry["msg"]["method"] == "initialize" {
            all.push(Vec::new());
        }
        all.last_mut().unwrap().push((way, text.replace("$REPO", repo)));
    }
    all
}

#[test]
fn what_neovims_and_emacs_clients_say_reaches_an_agent_as_they_have_said_it() {
    let world = world();
    fs::write(world.path("player.py"), PLAYER).unwrap();
    let clients = conversations(world.repo().to_str().unwrap());
    assert_eq!(clients.len(), CLIENTS.len());
    for (name, lines) in CLIENTS.into_iter().zip(clients) {
        let file = world.path("recorded");
        let text: String = lines.iter().map(|(way, line)| format!("{way} {line}\n")).collect();
        fs::write(&file, text).unwrap();
        let mut command = world.command(&["acp", "--", "/usr/bin/python3"]);
        command.args([world.path("player.py"), file]);
        let mut editor = Editor::start(&world, command);
        for (way, line) in &lines {
            match *way {
                "c2a" => editor.raw(line.as_bytes()),
                _ => assert_eq!(String::from_utf8_lossy(&editor.line()).trim_end(), line, "{name}"),
            }
        }
        assert_eq!(editor.close().code(), Some(0), "{name}: {}", editor.complaints());
        let sent: Vec<&String> = lines.iter().filter(|it| it.0 == "c2a").map(|it| &it.1).collect();
        let got = editor.agent_got();
        assert_eq!(got.len(), sent.len() + 1, "{name}: {got:#?}");
        assert_eq!(got.last().map(String::as_str), Some("END"));
        for (sent, got) in sent.into_iter().zip(&got) {
            if !sent.contains("session/new") {
                assert_eq!(sent, got, "{name}");
                continue;
            }
            // The session has our server; it had none of its own.
            let [before, after] = [sent, got].map(|it| serde_json::from_str::<Value>(it).unwrap());
            assert_eq!(after["params"]["mcpServers"][0]["name"], "provost", "{name}: {got}");
            assert_eq!(before["params"]["cwd"], after["params"]["cwd"]);
        }
    }
}
