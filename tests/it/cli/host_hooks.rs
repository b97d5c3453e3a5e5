//! Hooks of agents' hosts, called as the hosts call them: by the command in their own configuration, with the messages
//! in their documentation.

mod afterwards;
mod backslash;
mod bounds;
mod bytes;
mod crowd;
mod given_back;
mod held;
mod history;
mod inbox;
mod index;
mod installing;
mod languages;
#[cfg(target_os = "linux")]
mod machines;
mod names;
mod odd;
mod overlaps;
mod patched;
mod screens;
mod seen;
mod served;
mod shells;
mod spoilt;
mod stopped;
mod trusted;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::host_hooks::recorded;
use crate::support::{World, provost};

const CODE: &str = "export function login(a: string): string { return a }\n\n\
                    export function logout(b: string): string { return b }\n";

/// A host, by the word for it, and its configuration file.
const HOSTS: [(&str, &str); 3] = [
    ("claude", ".claude/settings.local.json"),
    ("codex", ".codex/hooks.json"),
    ("cursor", ".cursor/hooks.json"),
];

/// Returns the message that Claude Code sends its hook before it runs a command in the top folder.
fn told(world: &World, command: &str) -> Value {
    let mut told = recorded(world, "claude/bash");
    told["cwd"] = json!(world.repo());
    told["tool_input"]["command"] = json!(command);
    told
}

/// The command that stands in a host's configuration for an event.
fn command_of(world: &World, host: &str, event: &str) -> String {
    let (_, file) = HOSTS.iter().find(|it| it.0 == host).unwrap();
    let settings: Value =
        serde_json::from_str(&fs::read_to_string(world.repo().join(file)).unwrap()).unwrap();
    let entry = &settings["hooks"][event][0];
    let command = entry["hooks"][0]["command"].as_str().or_else(|| entry["command"].as_str());
    command.unwrap_or_else(|| panic!("{host} has no {event}: {settings:#}")).to_owned()
}

/// A hook as a host starts it.
fn start(world: &World, line: &str, folder: &Path) -> Child {
    let like = world.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env_clear();
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(mut child: Child, input: &[u8]) -> Output {
    let mut to = child.stdin.take().unwrap();
    let input = input.to_vec();
    // It may end without reading everything.
    let writing = std::thread::spawn(move || drop(to.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

impl World {
    fn install_hooks(&self, host: &str, more: &[&str]) -> Output {
        self.command(&[&["hook", "install", host][..], more].concat()).output().unwrap()
    }

    /// Has a host call its hook for something.
    fn call(&self, host: &str, event: &str, told: &Value) -> Output {
        finish(start(self, &command_of(self, host, event), &self.repo()), told.to_string().as_bytes())
    }

    /// Why a host is not to do it; `None` where nothing is said.
    #[track_caller]
    fn objection(&self, host: &str, told: &Value) -> Option<String> {
        let event = told["hook_event_name"].as_str().unwrap();
        let output = self.call(host, event, told);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        if output.stdout.is_empty() {
            return None;
        }
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (decision, reason) = match host {
            "cursor" => (&said["permission"], &said["user_message"]),
            _ => {
                let inner = &said["hookSpecificOutput"];
                assert_eq!(inner["hookEventName"], "PreToolUse");
                (&inner["permissionDecision"], &inner["permissionDecisionReason"])
            }
        };
        assert_eq!(decision, "deny", "{said}");
        Some(reason.as_str().unwrap().to_owned())
    }

    #[track_caller]
    fn is_refused(&self, host: &str, told: &Value) -> String {
        self.objection(host, told).unwrap_or_else(|| panic!("not refused: {told}"))
    }

    #[track_caller]
    fn goes_on(&self, host: &str, told: &Value) {
        assert_eq!(self.objection(host, told), None, "{told}");
    }
}

/// A world with code in it and the hooks of a host. A write takes no lease there: tried is what agents have
/// asked for.
fn world(host: &str) -> World {
    let world = World::new();
    world.configure("[coordination]\nauto = \"off\"\n");
    world.write("src/auth.ts", CODE);
    world.write("notes.ipynb", "{}");
    let done = world.install_hooks(host, &[]);
    assert!(done.status.success(), "{done:?}");
    world
}

#[test]
fn claude_is_refused_what_another_agent_has_and_nothing_beside_it() {
    let world = world("claude");
    let _daemon = world.start();
    let told = |name: &str| recorded(&world, &format!("claude/{name}"));
    world.goes_on("claude", &told("edit"));
    world.done("codex-1", &["lock", "src/auth.ts:login", "--reason", "new tokens"]);
    let why = world.is_refused("claude", &told("edit"));
    for word in ["src/auth.ts:login", "codex-1", "new tokens", "until", "lock_acquire", "claude-64a1f3c001"] {
        assert!(why.contains(word) || word.starts_with("claude-"), "{word}: {why}");
    }
    assert!(why.contains("you are claude-2b64a1f3c001"), "{why}");
    // The same file, another function.
    world.goes_on("claude", &told("edit_beside"));
    world.goes_on("claude", &told("write"));
    world.is_refused("claude", &told("monitor"));
    // A file that is not there yet, and one that is nobody's.
    let mut new = told("write");
    new["tool_input"]["file_path"] = json!(world.repo().join("src/new.ts"));
    world.goes_on("claude", &new);
    world.done("codex-1", &["unlock", "src/auth.ts:login"]);
    world.goes_on("claude", &told("edit"));
    // A whole file, and what no symbols are read in.
    world.done("codex-1", &["lock", "notes.ipynb"]);
    world.is_refused("claude", &told("notebook_edit"));
    world.is_refused("claude", &{
        let mut told = told("write");
        told["tool_input"]["file_path"] = json!("notes.ipynb");
        told
    });
}

#[test]
fn what_the_session_itself_has_it_may_write() {
    let world = world("claude");
    let _daemon = world.start();
    let told = recorded(&world, "claude/edit");
    world.done("claude-2b64a1f3c001", &["lock", "src/auth.ts:login"]);
    world.goes_on("claude", &told);
    let mut other = told.clone();
    other["session_id"] = json!("5f0c9b1e-7a52-4c1d-9d0e-2b64a1f3c002");
    let why = world.is_refused("claude", &other);
    assert!(why.contains("claude-2b64a1f3c001"), "{why}");
}

#[test]
fn shell_commands_that_plainly_write_are_refused_and_others_are_not() {
    let world = world("claude");
    let _daemon = world.start();
    world.done("codex-1", &["lock", "src/auth.ts"]);
    let mut told = recorded(&world, "claude/bash");
    world.is_refused("claude", &told);
    let refused = [
        "echo x > auth.ts",
        "echo x >> ../src/auth.ts; true",
        "cat a | tee auth.ts",
        "cd ..; cp /etc/passwd $PWD/x; rm -rf ./src",
        "mv auth.ts b.ts",
        "mv b.ts auth.ts",
        "cp b.ts auth.ts",
        "FOO=1 sudo sed -ni.bak s/a/b/ 'auth.ts'",
        "git checkout -- auth.ts",
        "dd if=/dev/zero of=auth.ts",
        "true && (echo \"a > b\" &> auth.ts)",
        "echo \"$X\" > \"auth.ts\"",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: auth.ts\n*** End Patch\nEOF",
    ];
    for command in refused {
        told["tool_input"]["command"] = json!(command);
        world.is_refused("claude", &told);
    }
    let free = [
        "cat auth.ts > /dev/null 2>&1",
        "grep -n 'x > auth.ts' auth.ts # > auth.ts",
        "cp auth.ts copy.ts",
        "sed -n s/a/b/p auth.ts",
        "tee other.ts < auth.ts",
        "echo '> auth.ts'",
        "cat > other.ts <<EOF\nrm auth.ts\nEOF",
        "git status",
        "",
    ];
    for command in free {
        told["tool_input"]["command"] = json!(command);
        world.goes_on("claude", &told);
    }
}

#[test]
fn codex_is_refused_by_the_patch_that_it_is_about_to_apply() {
    let world = world("codex");
    let _daemon = world.start();
    let told = |name: &str| recorded(&world, &format!("codex/{name}"));
    world.goes_on("codex", &told("apply_patch"));
    world.goes_on("codex", &told("bash"));
    world.done("claude-1", &["lock", "src/auth.ts:login"]);
    let why = world.is_refused("codex", &told("apply_patch"));
    assert!(why.contains("claude-1") && why.contains("you are codex-9690b4ce6b9e"), "{why}");
    world.goes_on("codex", &told("apply_patch_beside"));
    world.is_refused("codex", &told("bash"));
    let mut patch = told("apply_patch");
    let refused = [
        "*** Begin Patch\n*** Delete File: src/auth.ts\n*** End Patch",
        "*** Begin Patch\n*** Update File: src/auth.ts\n*** Move to: src/b.ts\n@@\n-export function logout(b: string): \
         string { return b }\n+export const b = 1\n*** End Patch",
        "*** Begin Patch\n*** Update File: src/other.ts\n*** Move to: src/auth.ts\n@@\n-a\n+b\n*** End Patch",
        // What does not fit to the letter is not guessed.
        "*** Begin Patch\n*** Update File: src/auth.ts\n@@\n-nothing like it\n+x\n*** End Patch",
        // Blanks before a heading do not count behind a file that is added or deleted.
        "*** Begin Patch\n*** Add File: src/c.ts\n+x\n  *** Update File: src/auth.ts\n@@\n-nothing like it\n+x\n*** End Patch",
        "*** Begin Patch\n*** Delete File: src/c.ts\n *** Delete File: src/auth.ts\n*** End Patch",
        "*** Begin Patch\r\n*** Update File: src/../src/./auth.ts\r\n@@\r\n-nothing like it\r\n+x\r\n*** End Patch",
    ];
    for text in refused {
        patch["tool_input"]["command"] = json!(text);
        world.is_refused("codex", &patch);
    }
    patch["tool_input"]["command"] = json!("*** Begin Patch\n*** Add File: src/b.ts\n+x\n*** End Patch");
    world.goes_on("codex", &patch);
}

#[test]
fn cursor_is_refused_in_its_own_form() {
    let world = world("cursor");
    let _daemon = world.start();
    let told = |name: &str| recorded(&world, &format!("cursor/{name}"));
    for name in ["write", "str_replace", "shell"] {
        world.goes_on("cursor", &told(name));
    }
    world.done("codex-1", &["lock", "src/auth.ts:login"]);
    for name in ["write", "shell"] {
        let why = world.is_refused("cursor", &told(name));
        assert!(why.contains("you are cursor-466fec86e7") || why.contains("cursor-2a466fec86e7"), "{why}");
    }
    world.goes_on("cursor", &told("str_replace"));
}

#[test]
fn a_session_begins_with_what_to_know_and_ends_with_nothing_held() {
    for (host, start, end) in [
        ("claude", "SessionStart", "SessionEnd"),
        ("codex", "SessionStart", "SessionEnd"),
        ("cursor", "sessionStart", "sessionEnd"),
    ] {
        let world = world(host);
        let _daemon = world.start();
        let begun = world.call(host, start, &recorded(&world, &format!("{host}/session_start")));
        let said: Value = serde_json::from_slice(&begun.stdout).unwrap();
        let context = match host {
            "cursor" => &said["additional_context"],
            _ => &said["hookSpecificOutput"]["additionalContext"],
        };
        let context = context.as_str().unwrap();
        let agent = context.split("you are ").nth(1).unwrap().split('.').next().unwrap().to_owned();
        assert!(agent.starts_with(host) && context.contains("lock_acquire"), "{context}");
        world.done(&agent, &["lock", "src/auth.ts:login"]);
        world.done("other", &["lock", "src/auth.ts:logout"]);
        world.done(&agent, &["intent", "declare", "more", "--file", "src/auth.ts"]);
        let ended = world.call(host, end, &recorded(&world, &format!("{host}/session_end")));
        assert_eq!(ended.status.code(), Some(0));
        assert!(ended.stdout.is_empty(), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("released 1 locks, abandoned 1 intents"), "{said}");
        let locks = world.done("other", &["lock", "list"])["locks"].clone();
        assert_eq!(locks.as_array().unwrap().len(), 1, "{locks}");
    }
}

#[test]
fn shells_of_a_session_speak_as_it() {
    let world = world("claude");
    let _daemon = world.start();
    let file = world.path("env");
    let line = format!("CLAUDE_ENV_FILE='{}' {}", file.display(), {
        let line = command_of(&world, "claude", "SessionStart");
        format!("sh -c \"$LINE\" # {}", line.len())
    });
    let hook = command_of(&world, "claude", "SessionStart");
    let line = format!("LINE={}; export LINE; {line}", shell_quoted(&hook));
    let done = finish(
        start(&world, &line, &world.repo()),
        recorded(&world, "claude/session_start").to_string().as_bytes(),
    );
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "export PROVOST_AGENT='claude-2b64a1f3c001'\n");
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// An MCP server that a host has started.
struct Server {
    child: Child,
    to: Option<std::process::ChildStdin>,
    from: std::io::BufReader<std::process::ChildStdout>,
    said: u64,
}

impl Server {
    /// A host that takes the lock of a symbol by a call.
    fn that_locks(world: &World, session: Option<&str>, meta: &Value) -> Self {
        Self::of("host", world, session, meta)
    }

    /// The same of a host that goes by this name.
    fn of(host: &str, world: &World, session: Option<&str>, meta: &Value) -> Self {
        let mut server = world.command(&["mcp", "--tools", "locks,claims,intents"]);
        server.envs(session.map(|it| ("CLAUDE_CODE_SESSION_ID", it)));
        let mut child = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), std::io::BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, to, from, said: 1 };
        server.says(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": host, "version": "1" } } }));
        server.says(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server.calls_with("lock_acquire", &json!({ "symbol": "src/auth.ts:login" }), meta);
        server
    }

    fn says(&mut self, message: &Value) {
        writeln!(self.to.as_ref().unwrap(), "{message}").unwrap();
    }

    #[track_caller]
    fn calls(&mut self, tool: &str, arguments: &Value) -> Value {
        self.calls_with(tool, arguments, &json!({}))
    }

    #[track_caller]
    fn calls_with(&mut self, tool: &str, arguments: &Value, meta: &Value) -> Value {
        self.said += 1;
        let id = self.said;
        self.says(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": meta } }));
        loop {
            let mut line = String::new();
            assert_ne!(std::io::BufRead::read_line(&mut self.from, &mut line).unwrap(), 0);
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert_ne!(message["result"]["isError"], true, "{message}");
                assert!(message["error"].is_null(), "{message}");
                return message["result"]["structuredContent"].clone();
            }
        }
    }
}

/// Everything that is locked.
fn locked(world: &World) -> Vec<String> {
    let locks = world.done("anyone", &["lock", "list"])["locks"].clone();
    locks.as_array().unwrap().iter().map(|it| it["symbol"].as_str().unwrap().to_owned()).collect()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.to.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn hooks_and_the_mcp_server_of_a_session_are_one_agent_whatever_becomes_of_the_session() {
    let world = world("claude");
    let _daemon = world.start();
    let mut told = recorded(&world, "claude/edit");
    // Started by the same process as the hooks, and told the session that there was then.
    let server = Server::that_locks(&world, told["session_id"].as_str(), &json!({}));
    world.goes_on("claude", &told);
    // The person clears the conversation: hooks are told of another session, and the server is not.
    told["session_id"] = json!("aaaaaaaa-7a52-4c1d-9d0e-bbbbbbbbbbbb");
    world.goes_on("claude", &told);
    // Also when the server has gone, as it has when the session's end is told.
    drop(server);
    world.done("claude-2b64a1f3c001", &["lock", "src/auth.ts:login"]);
    world.goes_on("claude", &told);
    told["session_id"] = json!("aaaaaaaa-7a52-4c1d-9d0e-cccccccccccc");
    let why = world.is_refused("claude", &told);
    assert!(why.contains("you are claude-cccccccccccc") && why.contains("claude-2b64a1f3c001"), "{why}");
}

#[test]
fn codex_is_the_agent_of_the_session_that_it_names_with_each_call() {
    let world = world("codex");
    let _daemon = world.start();
    let told = recorded(&world, "codex/apply_patch");
    let session = told["session_id"].clone();
    let thread = "019dba93-ffff-7d50-a089-000000000001";
    for meta in [
        json!({ "threadId": thread, "x-codex-turn-metadata": { "session_id": session, "turn_id": "t" } }),
        json!({ "x-codex-turn-metadata": format!("{{\"session_id\":{session}}}") }),
        json!({ "threadId": session }),
    ] {
        let server = Server::that_locks(&world, None, &meta);
        world.goes_on("codex", &told);
        let mut other = told.clone();
        other["session_id"] = json!(thread);
        assert!(world.is_refused("codex", &other).contains("codex-9690b4ce6b9e"), "{meta}");
        // What it has taken goes with it.
        drop(server);
        crate::support::eventually("its locks are free", || locked(&world).is_empty());
    }
}

/// Returns each holder with the symbols that it holds.
fn holders(world: &World) -> Vec<(String, String)> {
    let locks = world.done("anyone", &["lock", "list"])["locks"].clone();
    let row = |it: &Value| [&it["symbol"], &it["holder"]].map(|it| it.as_str().unwrap().to_owned());
    locks.as_array().unwrap().iter().map(row).map(|[symbol, holder]| (symbol, holder)).collect()
}

/// Runs a line as a shell of Codex does in a session.
fn in_a_shell_of_codex(world: &World, session: &str, variable: &str, line: &str) {
    let line = format!("{} {line}; ended=$?; exit $ended", provost().display());
    let like = world.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(world.repo()).env_clear().env(variable, session);
    shell.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_session_of_codex_is_the_agent_of_its_adapter_in_hooks_calls_and_shells() {
    let world = world("codex");
    let _daemon = world.start();
    let _adapter = crate::support::adapter::Adapter::start(&world, "codex", "AGENTS.md");
    let told = recorded(&world, "codex/apply_patch");
    let session = told["session_id"].as_str().unwrap();
    let server = Server::that_locks(&world, None, &json!({ "threadId": session }));
    assert_eq!(holders(&world), [("src/auth.ts:login".to_owned(), "codex-1".to_owned())]);
    world.goes_on("codex", &told);
    for variable in ["CODEX_SESSION_ID", "CODEX_THREAD_ID"] {
        // As the section has it.
        in_a_shell_of_codex(&world, session, variable, "lock src/other.ts:f");
        assert_eq!(holders(&world)[1], ("src/other.ts:f".to_owned(), "codex-1".to_owned()), "{variable}");
        in_a_shell_of_codex(&world, session, variable, "unlock src/other.ts:f");
    }
    // A second session is another agent, by each of the ways.
    let second = "019dba93-ffff-7d50-a089-000000000001";
    let mut other = told.clone();
    other["session_id"] = json!(second);
    assert!(world.is_refused("codex", &other).contains("you are codex-000000000001"));
    in_a_shell_of_codex(&world, second, "CODEX_THREAD_ID", "lock src/other.ts:f");
    assert_eq!(holders(&world)[1].1, "codex-000000000001");
    // When the first one is over, the next one may have the name.
    let mut over = recorded(&world, "codex/session_end");
    over["session_id"] = json!(session);
    drop(server);
    assert!(world.call("codex", "SessionEnd", &over).status.success());
    in_a_shell_of_codex(
        &world,
        "019dba93-ffff-7d50-a089-000000000002",
        "CODEX_THREAD_ID",
        "lock src/third.ts:f",
    );
    assert!(holders(&world).contains(&("src/third.ts:f".to_owned(), "codex-1".to_owned())));
}

#[test]
fn conversations_of_cursor_are_the_agent_that_its_file_names() {
    let world = world("cursor");
    let _daemon = world.start();
    let _adapter = crate::support::adapter::Adapter::start(&world, "cursor", ".cursor/rules/provost.mdc");
    let _server = Server::of("cursor-vscode", &world, None, &json!({}));
    assert_eq!(holders(&world), [("src/auth.ts:login".to_owned(), "cursor-1".to_owned())]);
    let told = recorded(&world, "cursor/write");
    world.goes_on("cursor", &told);
    // The commands in the section name the agent.
    let rules = std::fs::read_to_string(world.repo().join(".cursor/rules/provost.mdc")).unwrap();
    assert!(rules.contains("--as cursor-1"), "{rules}");
}

#[test]
fn two_hosts_with_one_name_are_one_agent() {
    let world = world("claude");
    let done = world.install_hooks("codex", &["--agent", "pair"]);
    assert!(done.status.success(), "{done:?}");
    let done = world.install_hooks("claude", &["--agent", "pair"]);
    assert!(done.status.success(), "{done:?}");
    let _daemon = world.start();
    world.done("pair", &["lock", "src/auth.ts:login"]);
    world.goes_on("claude", &recorded(&world, "claude/edit"));
    world.goes_on("codex", &recorded(&world, "codex/apply_patch"));
    world.done("pair", &["unlock", "src/auth.ts:login"]);
    world.done("third", &["lock", "src/auth.ts:login"]);
    for (host, name) in [("claude", "claude/edit"), ("codex", "codex/apply_patch")] {
        assert!(world.is_refused(host, &recorded(&world, name)).contains("you are pair"));
    }
}
