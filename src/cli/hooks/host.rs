//! Hosts: the place of each one's hooks, the events that Provost needs, and the entries for them.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::form::{self, Http};

/// A host that calls hooks.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookHost {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
}

/// The event that a hook is called for.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A tool is about to be used
    PreToolUse,
    /// A person is about to be asked whether a tool may be used
    PermissionRequest,
    /// A tool was used, with success or without
    PostToolUse,
    /// A person has said something
    UserPromptSubmit,
    /// A turn ends
    Stop,
    /// The turn of a subagent ends
    SubagentStop,
    /// A host tells its person something
    Notification,
    /// A session begins, or goes on
    SessionStart,
    /// A session ends
    SessionEnd,
}

/// The properties that a hook should have.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    /// This program.
    pub(super) program: &'a Path,
    /// Whether the hook is for all users of the repository, wherever their program is.
    pub(super) shared: bool,
    /// The agent's name, where it replaces the session's.
    pub(super) agent: Option<&'a str>,
    /// The time that a person's answer is waited for, in seconds; zero means not at all.
    pub(super) patience_s: u64,
    /// The address of hooks over HTTP, where they are allowed.
    pub(super) http: Option<&'a Http>,
}

/// The time that a host gives a hook, in seconds. Provost's hooks end long before.
const TIMEOUT_S: u64 = 30;

/// The same for the hook at a session's end; Codex gives at most three seconds.
const END_TIMEOUT_S: u64 = 3;

/// The tools of Claude Code that write files.
const CLAUDE_TOOLS: &str = "Edit|MultiEdit|Write|NotebookEdit|Bash|Monitor";
/// The tools of Codex that write files, by its own names and by those that it treats alike.
const CODEX_TOOLS: &str = "apply_patch|Edit|Write|Bash";
/// Codex' tool for commands; after each command the hook compares the files that others hold.
const CODEX_SHELL: &str = "Bash";
/// The tools of Cursor that write files.
const CURSOR_TOOLS: &str = "Write|Edit|StrReplace|EditNotebook|Delete|ApplyPatch";
/// The tools of MCP servers that write files, as far as their names tell.
const MCP_TOOLS: &str = "mcp__.*(write|edit|create|delete|remove|move|rename|replace|insert|patch|apply).*";

impl HookHost {
    /// Returns the word on the command line, and in names of agents.
    pub(crate) fn word(self) -> &'static str {
        match self {
            HookHost::Claude => "claude",
            HookHost::Codex => "codex",
            HookHost::Cursor => "cursor",
        }
    }

    /// Returns the files that it reads, from the top of the work tree: the user's own, and the shared one.
    pub(super) fn files(self) -> [&'static str; 2] {
        match self {
            HookHost::Claude => [".claude/settings.local.json", ".claude/settings.json"],
            HookHost::Codex => [".codex/hooks.json"; 2],
            HookHost::Cursor => [".cursor/hooks.json"; 2],
        }
    }

    /// Returns the content of its file without any setting.
    pub(super) fn blank(self) -> &'static str {
        match self {
            HookHost::Claude | HookHost::Codex => "{}\n",
            HookHost::Cursor => "{\n  \"version\": 1\n}\n",
        }
    }

    /// Returns the rule that makes it ask no person about the tools of Provost's server: Provost's rules judge those
    /// when they are called. Codex allows no such rule in a file of its own.
    pub(super) fn allow_rule(self) -> Option<&'static str> {
        match self {
            HookHost::Claude => Some("mcp__provost__*"),
            HookHost::Codex | HookHost::Cursor => None,
        }
    }

    /// Returns the entries that should stand under `hooks`, event by event.
    pub(super) fn entries(self, wish: &Wish<'_>) -> Vec<(&'static str, Value)> {
        let group = |matcher: Option<String>, event, timeout, more: Value| {
            let mut hook = match wish.http.filter(|_| form::is_served(self, event)) {
                Some(http) => http.hook(self, event, wish.agent, timeout),
                None => {
                    json!({ "type": "command", "command": self.command(event, wish), "timeout": timeout })
                }
            };
            merge(&mut hook, more);
            let mut group = Map::new();
            if let Some(matcher) = matcher {
                group.insert("matcher".into(), matcher.into());
            }
            group.insert("hooks".into(), json!([hook]));
            Value::Object(group)
        };
        let plain = |event, more: Value| {
            let mut hook = json!({ "command": self.command(event, wish), "timeout": TIMEOUT_S });
            merge(&mut hook, more);
            hook
        };
        let ask_for = wish.patience_s + TIMEOUT_S;
        let mut all = match self {
            HookHost::Claude => {
                let tools = format!("{CLAUDE_TOOLS}|{MCP_TOOLS}");
                // Without this, a hook that runs out of time would let the write through.
                let block = if wish.shared { json!({}) } else { json!({ "onFailure": "block" }) };
                vec![
                    ("PreToolUse", group(Some(tools), Event::PreToolUse, TIMEOUT_S, block)),
                    ("PermissionRequest", group(None, Event::PermissionRequest, ask_for, json!({}))),
                    ("PostToolUse", group(None, Event::PostToolUse, TIMEOUT_S, json!({}))),
                    ("PostToolUseFailure", group(None, Event::PostToolUse, TIMEOUT_S, json!({}))),
                    ("UserPromptSubmit", group(None, Event::UserPromptSubmit, TIMEOUT_S, json!({}))),
                    ("Stop", group(None, Event::Stop, TIMEOUT_S, json!({}))),
                    ("SubagentStop", group(None, Event::SubagentStop, TIMEOUT_S, json!({}))),
                    ("Notification", group(None, Event::Notification, TIMEOUT_S, json!({}))),
                    ("SessionStart", group(None, Event::SessionStart, TIMEOUT_S, json!({}))),
                    ("SessionEnd", group(None, Event::SessionEnd, TIMEOUT_S, json!({}))),
                ]
            }
            HookHost::Codex => {
                let tools = format!("{CODEX_TOOLS}|{MCP_TOOLS}");
                vec![
                    ("PreToolUse", group(Some(tools), Event::PreToolUse, TIMEOUT_S, json!({}))),
                    ("PermissionRequest", group(None, Event::PermissionRequest, ask_for, json!({}))),
                    (
                        "PostToolUse",
                        group(Some(CODEX_SHELL.into()), Event::PostToolUse, TIMEOUT_S, json!({})),
                    ),
                    ("UserPromptSubmit", group(None, Event::UserPromptSubmit, TIMEOUT_S, json!({}))),
                    ("SessionStart", group(None, Event::SessionStart, TIMEOUT_S, json!({}))),
                    ("SessionEnd", group(None, Event::SessionEnd, END_TIMEOUT_S, json!({}))),
                ]
            }
            // An `allow` for a shell command would replace the person's decision, so the hook only ever objects there.
            HookHost::Cursor => vec![
                ("preToolUse", plain(Event::PreToolUse, json!({ "matcher": CURSOR_TOOLS }))),
                ("beforeShellExecution", plain(Event::PreToolUse, json!({}))),
                ("afterShellExecution", plain(Event::PostToolUse, json!({}))),
                ("sessionStart", plain(Event::SessionStart, json!({}))),
                ("sessionEnd", plain(Event::SessionEnd, json!({}))),
            ],
        };
        all.retain(|(event, _)| wish.patience_s > 0 || *event != "PermissionRequest");
        all
    }

    /// Returns the command line of a hook. It finds the program at its path, or on the `PATH`, in any shell.
    fn command(self, event: Event, wish: &Wish<'_>) -> String {
        let word = event.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default();
        let agent = wish.agent.map(|it| format!(" --as {it}")).unwrap_or_default();
        let wait = match event {
            Event::PermissionRequest => format!(" --wait {}s", wish.patience_s),
            // Hooks over HTTP cannot start a daemon.
            Event::SessionStart | Event::UserPromptSubmit => {
                wish.http.map(|it| format!(" --beside {}", it.port)).unwrap_or_default()
            }
            _ => String::new(),
        };
        let run = format!("hook run {} {word}{agent}{wait}", self.word());
        if cfg!(windows) {
            let program = if wish.shared { "provost".into() } else { wish.program.display().to_string() };
            let quote = if program.contains(' ') { "\"" } else { "" };
            return format!("{quote}{program}{quote} {run}");
        }
        let program = if wish.shared { "provost".into() } else { wish.program.to_string_lossy() };
        let gone = if event == Event::PreToolUse && !wish.shared { 2 } else { 0 };
        format!(
            "exec /bin/sh -c 'for p in \"$0\" provost; do p=$(command -v \"$p\") && exec \"$p\" {run}; done; \
             echo \"provost: not checked: the program is gone; install it again, or take this hook out\" >&2; \
             exit {gone}' {}",
            quoted(&program)
        )
    }

    /// Checks whether an entry, as JSON, calls this very program or the one on the `PATH`, or asks the daemon at its address.
    pub(super) fn names(self, entry: &str, program: &Path, http: Option<&Http>) -> bool {
        if form::is_http(entry) {
            return http.is_some_and(|it| it.is_asked(entry));
        }
        let named =
            |name: &str| serde_json::to_string(name).is_ok_and(|it| entry.contains(it.trim_matches('"')));
        match cfg!(windows) {
            true => named(&program.display().to_string()) || named("\"provost "),
            false => named(&quoted(&program.to_string_lossy())) || named("' 'provost'"),
        }
    }

    /// Checks whether a command is Provost's, of any version.
    pub(super) fn is_ours(self, command: &str) -> bool {
        let calls = |noun: &str| command.contains(&format!(" {noun} run {} ", self.word()));
        command.contains("provost") && (calls("hook") || calls("hooks"))
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

/// Quotes a text: within single quotes, shells take everything literally but the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
