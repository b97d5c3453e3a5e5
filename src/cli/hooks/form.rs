//! The two forms of Claude Code's hooks: commands, and requests over HTTP to the daemon, which need no process for each write.
//!
//! Requests are chosen where the installed version of Claude Code is known to send them, and the daemon can be asked this way. Its
//! other hooks stay commands: the one for the beginning of a session, for which Claude Code sends no requests; the one for its person's
//! words, which starts a daemon where none runs; and the one that asks for a person, which waits beside Claude Code's dialog.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::host::{Event, HookHost};
use super::served;
use crate::{CliError, RepoContext, agents};
use provost_base::Door;
use provost_config::{LoopbackAuth, Ports, WhenDown};
use provost_mcp::{HOOK_PATH, HOOK_TOKEN_HEADER};
use provost_system as system;

/// The oldest version of Claude Code that was seen to send such requests, and to refuse a write when no answer comes.
const FIRST_VERSION: [u32; 3] = [2, 1, 330];

/// Most bytes of a host's settings file that are read.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// The form of hooks that the person wants.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// HTTP where that works, else commands
    Auto,
    /// HTTP, or an error that says why not
    Http,
    /// A command for each hook
    Command,
}

/// The address of hooks over HTTP, and their token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Http {
    /// The port of the door for hosts.
    pub(super) port: u16,
    /// The token of this repository's hooks.
    token: String,
}

/// The variables in which a host names the agent that it speaks as, in order of precedence, each with its header.
const SPEAKERS: [(&str, &str); 3] = [
    ("PROVOST_AGENT", "x-provost-agent"),
    ("WIT_SESSION", "x-wit-session"),
    ("CLAUDE_SESSION_ID", "x-claude-session-id"),
];

/// Checks whether an event's hook may be a request over HTTP.
pub(super) fn is_served(host: HookHost, event: Event) -> bool {
    host == HookHost::Claude
        && matches!(
            event,
            Event::PreToolUse
                | Event::PostToolUse
                | Event::Stop
                | Event::SubagentStop
                | Event::Notification
                | Event::SessionEnd
        )
}

/// Checks whether a request is Provost's, at any port.
pub(super) fn is_ours(host: HookHost, url: &str) -> bool {
    url.starts_with("http://127.0.0.1:") && url.contains(&format!("{HOOK_PATH}{}/", host.word()))
}

impl Http {
    /// Returns the present or last port of this repository's daemon, and the token of its hooks; `None` without both.
    pub(super) fn known(here: &RepoContext) -> Option<Self> {
        let port = Ports::of(&here.places).of_door(Door::Mcp)?;
        Some(Self { port, token: served::token(&here.places)? })
    }

    /// Returns a hook in Claude Code's form.
    pub(super) fn hook(&self, host: HookHost, event: Event, agent: Option<&str>, timeout_s: u64) -> Value {
        let word = event.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default();
        let speaks = agent.map(|it| format!("?as={it}")).unwrap_or_default();
        let mut headers = json!({ HOOK_TOKEN_HEADER: self.token });
        for (variable, header) in SPEAKERS {
            headers[header] = format!("${variable}").into();
        }
        let variables = SPEAKERS.map(|it| it.0);
        json!({
            "type": "http",
            "url": format!("{}{}/{word}{speaks}", self.address(), host.word()),
            "timeout": timeout_s,
            "headers": headers,
            "allowedEnvVars": variables,
        })
    }

    /// Checks whether an entry, as JSON, sends its request to this address.
    pub(super) fn is_asked(&self, entry: &str) -> bool {
        entry.contains(&self.address()) && entry.contains(&self.token)
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}{HOOK_PATH}", self.port)
    }
}

/// Checks whether a hook's entry is a request over HTTP.
pub(super) fn is_http(entry: &str) -> bool {
    entry.contains(HOOK_TOKEN_HEADER)
}

/// Chooses the form, with the reason.
///
/// # Errors
/// The reason why HTTP does not work, where the person demands it.
pub(super) fn choose(
    here: &RepoContext,
    (host, shared): (HookHost, bool),
    form: Form,
) -> Result<(Option<Http>, Option<String>), CliError> {
    if form == Form::Command || (host != HookHost::Claude && form == Form::Auto) {
        return Ok((None, None));
    }
    match possible(here, host, shared) {
        Ok((http, version)) => {
            let why = format!("over HTTP at port {}, since Claude Code {version} has such hooks", http.port);
            Ok((Some(http), Some(why)))
        }
        Err(why) if form == Form::Auto => Ok((None, Some(format!("by commands: {why}")))),
        Err(why) => Err(CliError::refusal("these hooks cannot be requests over HTTP")
            .because(why)
            .next("leave --form out: a command for each hook works everywhere")),
    }
}

/// Returns the address for hooks over HTTP, and the version of the host; or the reason why they would not work.
fn possible(here: &RepoContext, host: HookHost, shared: bool) -> Result<(Http, String), String> {
    if host != HookHost::Claude {
        return Err("Claude Code alone has such hooks".into());
    }
    if shared {
        return Err("a file for all users has no token of this machine in it".into());
    }
    if !cfg!(target_os = "linux") {
        return Err("this system does not say whose process asks".into());
    }
    let version = agents::version_on_path(here, "claude")
        .ok_or("no `claude` that says its version is on the PATH outside of the repository")?;
    if !is_enough(&version) {
        let [major, minor, patch] = FIRST_VERSION;
        return Err(format!("Claude Code is {version}; they were tried with {major}.{minor}.{patch}"));
    }
    let config = here.config(None).map_err(|err| err.in_short())?.config;
    if config.hooks.when_down == WhenDown::Pass {
        return Err(
            "`hooks.when_down` is \"pass\", and a request that no daemon answers refuses the write".into()
        );
    }
    match config.doors.of(Door::Mcp) {
        Some(door) if !door.enabled => {
            return Err("`mcp.enabled` is false, so that there is no door for hosts".into());
        }
        Some(door) if door.auth == LoopbackAuth::Token => {
            return Err("`mcp.auth` is \"token\", and hooks show no agent's token".into());
        }
        _ => {}
    }
    if let Some(why) = led_elsewhere(here) {
        return Err(why);
    }
    let port = Ports::of(&here.places).of_door(Door::Mcp);
    let port = port.ok_or("no daemon has run here yet, so that its port is not known")?;
    let token =
        served::token_or_new(&here.places).map_err(|err| format!("their token cannot be kept: {err}"))?;
    Ok((Http { port, token }, version))
}

fn is_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    let found: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    found >= FIRST_VERSION
}

/// Returns a setting that would lead a host's request away from the daemon, or block it.
fn led_elsewhere(here: &RepoContext) -> Option<String> {
    let variable = |names: [&str; 2]| {
        names.into_iter().find_map(|it| std::env::var(it).ok().filter(|it| !it.is_empty()))
    };
    let proxied = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let proxy = proxied.into_iter().find(|it| variable([*it, &it.to_lowercase()]).is_some());
    let spared = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let is_spared = spared.split([',', ' ']).any(|it| matches!(it, "*" | "127.0.0.1" | "127.0.0.0/8"));
    if let Some(proxy) = proxy.filter(|_| !is_spared) {
        return Some(format!("{proxy} is set, and NO_PROXY does not name 127.0.0.1"));
    }
    let tree = here.places.worktree.join(".claude");
    let home =
        system::HOME.iter().find_map(std::env::var_os).map(|it| std::path::PathBuf::from(it).join(".claude"));
    let files = [
        Some(tree.join("settings.local.json")),
        Some(tree.join("settings.json")),
        home.map(|it| it.join("settings.json")),
    ];
    files.into_iter().flatten().find_map(|file| {
        let text = system::short_text(&file, SETTINGS_BYTES_MAX).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let sandboxed = value.pointer("/sandbox/enabled") == Some(&Value::Bool(true));
        let what = match () {
            () if sandboxed => "`sandbox.enabled` leads them through a proxy",
            () if value.get("allowedHttpHookUrls").is_some() => "`allowedHttpHookUrls` bounds where they go",
            () => return None,
        };
        Some(format!("{what}, in {}", file.display()))
    })
}

/// Returns a note for the model where the daemon is not at the port of the host's other hooks; `None` where it is, or does not run.
pub(super) fn moved(here: &RepoContext, asked: u16) -> Option<String> {
    let now = Ports::of(&here.places).of_door(Door::Mcp).filter(|it| *it != asked)?;
    Some(format!(
        "Provost: the hooks of this host ask at port {asked}, and the daemon is at {now}, so that each write is refused. Tell \
         your person: `provost hook install claude` mends it; then begin a new session."
    ))
}
