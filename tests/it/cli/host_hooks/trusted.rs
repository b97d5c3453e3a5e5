//! Whether Codex trusts our hooks, as it keeps that on record itself.

use provost::base::Digest;
use serde_json::{Value, json};

use super::world;
use crate::support::World;

/// Returns the digest that Codex 0.169 keeps of a trusted hook.
fn digest_of(event: &str, group: &Value) -> String {
    let hook = &group["hooks"][0];
    let mut members = vec![
        format!("\"event_name\":\"{event}\""),
        format!(
            "\"hooks\":[{{\"async\":false,\"command\":{},\"timeout\":{},\"type\":\"command\"}}]",
            hook["command"], hook["timeout"]
        ),
    ];
    if group["matcher"].is_string() {
        members.push(format!("\"matcher\":{}", group["matcher"]));
    }
    format!("sha256:{}", Digest::of(format!("{{{}}}", members.join(",")).as_bytes()))
}

fn status(world: &World) -> String {
    let done = world.command(&["hook", "status"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn hooks_that_codex_does_not_trust_yet_are_not_called_installed() {
    // As it was recorded: the digest of a hook by `hooks/list` of its app server.
    let group = json!({ "hooks": [{ "command": "./check", "timeout": 600 }] });
    let known = "sha256:e483f4689bab8d1b323414290a6b9da635aa14a004468ee87316659e79089e04";
    assert_eq!(digest_of("pre_tool_use", &group), known);
    let world = world("codex");
    let said = status(&world);
    assert!(said.contains("codex: untrusted") && said.contains("/hooks"), "{said}");
    let file = world.repo().join(".codex/hooks.json");
    let hooks: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let events = [
        ("PreToolUse", "pre_tool_use"),
        ("PermissionRequest", "permission_request"),
        ("PostToolUse", "post_tool_use"),
        ("UserPromptSubmit", "user_prompt_submit"),
        ("SessionStart", "session_start"),
        ("SessionEnd", "session_end"),
    ];
    let folder = world.home().join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    let top = world.repo().canonicalize().unwrap();
    let project = |level: &str| format!("[projects.\"{}\"]\ntrust_level = \"{level}\"\n", top.display());
    std::fs::write(folder.join("config.toml"), project("trusted")).unwrap();
    let said = status(&world);
    assert!(said.contains("codex: untrusted") && said.contains("before you trust it"), "{said}");
    let mut config = format!("model = \"any\"\n{}", project("trusted"));
    for (event, key) in events {
        let digest = digest_of(key, &hooks["hooks"][event][0]);
        config.push_str(&format!(
            "[hooks.state.\"{}:{key}:0:0\"]\ntrusted_hash = \"{digest}\"\n",
            file.display()
        ));
    }
    std::fs::write(folder.join("config.toml"), &config).unwrap();
    assert!(status(&world).contains("codex: installed"), "{}\n{config}", status(&world));
    // A repository that it does not trust, as one that it has not heard of.
    for other in [project("untrusted"), String::new()] {
        std::fs::write(folder.join("config.toml"), config.replace(&project("trusted"), &other)).unwrap();
        let said = status(&world);
        assert!(
            said.contains("codex: untrusted") && said.contains("reads no hooks of a repository"),
            "{said}"
        );
    }
    // One that is switched off, and one that has changed since.
    std::fs::write(folder.join("config.toml"), format!("{config}enabled = false\n")).unwrap();
    let said = status(&world);
    assert!(said.contains("codex: untrusted") && said.contains("switched off"), "{said}");
    std::fs::write(folder.join("config.toml"), &config).unwrap();
    assert!(world.install_hooks("codex", &["--agent", "pair"]).status.success());
    let said = status(&world);
    assert!(said.contains("codex: untrusted") && said.contains("have changed since"), "{said}");
    // One of an earlier version: what it lacks is named, before and beside what it trusts.
    let mut earlier = hooks.clone();
    for event in ["PostToolUse", "UserPromptSubmit"] {
        earlier["hooks"].as_object_mut().unwrap().remove(event).unwrap();
    }
    std::fs::write(&file, earlier.to_string()).unwrap();
    let said = status(&world);
    let lacks = format!(
        "codex: partly: {}: without PostToolUse, UserPromptSubmit; provost hook install codex",
        file.display()
    );
    assert!(said.contains(&lacks), "{said}");
    let json = world.command(&["hook", "status", "codex", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let why = json.pointer("/hosts/0/why").unwrap();
    assert_eq!(*why, "without PostToolUse, UserPromptSubmit; provost hook install codex");
    assert!(world.install_hooks("codex", &[]).status.success());
    let earlier: String = config
        .split("[hooks.state")
        .filter(|it| !it.contains("post_tool") && !it.contains("user_prompt"))
        .collect::<Vec<_>>()
        .join("[hooks.state");
    std::fs::write(folder.join("config.toml"), &earlier).unwrap();
    let said = status(&world);
    assert!(said.contains("codex: untrusted") && said.contains("runs no hook before you trust it"), "{said}");
    std::fs::write(folder.join("config.toml"), &config).unwrap();
    assert!(status(&world).contains("codex: installed"), "{}", status(&world));
    std::fs::remove_file(folder.join("config.toml")).unwrap();
    let alone = world.command(&["hook", "status", "codex"]).output().unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    assert!(
        alone.contains("codex: untrusted") && !alone.contains("claude") && !alone.contains("pre-commit"),
        "{alone}"
    );
}

#[test]
fn codex_is_told_not_to_ask_about_our_tools_beside_the_servers_own_entry() {
    let world = crate::support::World::new();
    let folder = world.home().join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config.toml");
    let said = || std::fs::read_to_string(&path).unwrap();
    let install = || assert!(world.install_hooks("codex", &[]).status.success());
    let remove = || {
        let done = world.command(&["hook", "remove", "codex"]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let server = "# mine\nmodel = \"any\"\n\n[mcp_servers.provost] # ours\ncommand = \"/usr/bin/provost\"\nargs = [\"mcp\"]\n\n[a]\nb = 1\n";
    std::fs::write(&path, server).unwrap();
    install();
    let config: toml::Table = said().parse().unwrap();
    assert_eq!(config["mcp_servers"]["provost"]["default_tools_approval_mode"].as_str(), Some("approve"));
    assert!(said().starts_with("# mine\n") && said().ends_with("[a]\nb = 1\n"), "{}", said());
    let once = said();
    install();
    assert_eq!(said(), once);
    assert!(status(&world).contains(&format!("codex: installed: {}", path.display())), "{}", status(&world));
    // What Codex itself writes there meanwhile stays.
    std::fs::write(&path, format!("{once}\n[hooks.state]\n")).unwrap();
    remove();
    assert_eq!(said(), format!("{server}\n[hooks.state]\n"));
    // By its address, and at the end of the file.
    let by_address = "[mcp_servers.provost]\nurl = \"http://127.0.0.1:4710/mcp\"";
    std::fs::write(&path, by_address).unwrap();
    install();
    assert!(said().contains("approve"), "{}", said());
    remove();
    // What is not ours, or said already, or has no such place, stays as it is, and is told.
    for (theirs, told) in [
        ("model = \"any\"\n", "codex mcp add provost"),
        ("[mcp_servers.provost]\ncommand = \"other\"\n", "codex mcp add provost"),
        ("[mcp_servers.provost]\nurl = \"https://example.org/mcp\"\n", "codex mcp add provost"),
        (
            "[mcp_servers.provost]\ncommand = \"provost\"\ndefault_tools_approval_mode = \"prompt\"\n",
            "\"prompt\", which stays",
        ),
        ("mcp_servers = { provost = { command = \"provost\" } }\n", "Codex asks about Provost's tools"),
        ("[mcp_servers.provost\n", "unreadable"),
    ] {
        std::fs::write(&path, theirs).unwrap();
        install();
        assert_eq!(said(), theirs);
        assert!(status(&world).contains(told), "{theirs}: {}", status(&world));
        remove();
        assert_eq!(said(), theirs);
    }
}
