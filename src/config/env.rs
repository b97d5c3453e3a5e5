//! Environment variables: those that Provost reads, and those that `provost env` prints for clients.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::{PageName, Ports};
use provost_base::{At, Door, Secret};
use provost_system as system;

/// A variable that Provost reads or writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// The variable's name, as in the environment.
    pub name: &'static str,
    /// The program that reads it.
    pub reader: &'static str,
    /// The effect of the variable, for people.
    pub says: Cow<'static, str>,
}

const fn variable(name: &'static str, reader: &'static str, says: &'static str) -> Variable {
    Variable { name, reader, says: Cow::Borrowed(says) }
}

/// Returns every variable that Provost reads or prints: those below, and those of the doors.
pub fn variables() -> Vec<Variable> {
    let of_clients = Door::ALL.iter().flat_map(|door| door.row().variables);
    let addresses = of_clients.map(|(name, says)| variable(name, "clients", says));
    let ports = Door::over_loopback().map(|(door, at)| Variable {
        name: at.port_variable,
        reader: "daemon",
        says: format!("`{}.port`, when no file of yours sets it.", door.name()).into(),
    });
    VARIABLES.iter().cloned().chain(addresses).chain(ports).collect()
}

/// Variables that belong to no door's address or port.
const VARIABLES: &[Variable] = &[
    variable(
        "DEVIT_SECRET",
        "`devitd`, clients",
        "The secret that clients sign with, and for a daemon that is started as `devitd` that of its address, instead of the one that was created. Empty and well-known secrets are refused. `provost up` does not read it.",
    ),
    variable("DEVIT_CORE_CONFIG", "daemon", "A `devit.core.toml` to read, when `--config` names no file."),
    variable(
        "DEVIT_EXPECTED_WORKER_VERSION",
        "daemon",
        "`daemon.expected_worker_version`, several separated by commas, when no file sets it.",
    ),
    variable(
        "DEVIT_AUTO_SHUTDOWN_AFTER",
        "daemon",
        "`daemon.auto_shutdown_after` in seconds, 0 for off, when no file sets it.",
    ),
    variable("DEVIT_NOTIFY_HOOK", "daemon", "`hooks.notify.command`, when no file sets it."),
    variable(
        "DEVIT_EXPECTED_DAEMON_VERSION",
        "clients",
        "Our client too refuses a daemon of another version.",
    ),
    variable("DEVIT_NO_AUTO_START", "clients", "Set to anything: do not start a daemon. `CI` does the same."),
    variable(
        "PROVOST_WORKER_SOCKET",
        "workers",
        "Given to a worker in tier `ns`: the door of its run. `DEVIT_SOCK` says the same, and `DEVIT_SECRET` is good there alone.",
    ),
    variable(
        "PROVOST_WORKER_FD",
        "workers",
        "Given to a worker in tier `ll`: the number of the connected socket that is the door of its run.",
    ),
    variable("PROVOST_ROOT", "daemon, clients", "The folder to work on, instead of the current one."),
    variable(
        "PROVOST_AGENT",
        "clients",
        "As which agent the commands for locks, intents and contracts speak, and the git hooks; otherwise as the user.",
    ),
    variable(
        "PROVOST_TOKEN",
        "clients",
        "A token of `provost token mint`: our commands show it, and speak as its agent alone.",
    ),
    variable(
        "WIT_SESSION",
        "clients",
        "The same, without `PROVOST_AGENT`: what wit's clients call themselves.",
    ),
    variable("CLAUDE_SESSION_ID", "clients", "The same, without both."),
    variable(
        "CLAUDE_CODE_SESSION_ID",
        "clients",
        "The session of Claude Code whose shell this is: commands speak as it, without those. `CLAUDE_PID` is its process.",
    ),
    variable(
        "CODEX_SESSION_ID",
        "clients",
        "The same of Codex; without it `CODEX_THREAD_ID`. `CODEX_HOME` is where its configuration is.",
    ),
    variable("PROVOST_CONFIG", "daemon", "A provost.toml to read, when `--config` names no file."),
    variable("PROVOST_LOG", "daemon", "`log.level`, when no file sets it."),
    variable(
        "XDG_CONFIG_HOME",
        "daemon, clients",
        "Where configuration, policy and keys are; by default `~/.config`.",
    ),
    variable("XDG_STATE_HOME", "daemon, clients", "Where state is; by default `~/.local/state`."),
    variable(
        "XDG_RUNTIME_DIR",
        "daemon, clients",
        "Where sockets are; by default `run` in the state folder.",
    ),
    variable(
        "APPDATA",
        "daemon, clients",
        "On Windows, what `XDG_CONFIG_HOME` is elsewhere, unless that is set.",
    ),
    variable(
        "LOCALAPPDATA",
        "daemon, clients",
        "On Windows, what `XDG_STATE_HOME` is elsewhere, unless that is set.",
    ),
];

/// Secrets that manuals and sources print, and that are therefore no secrets.
const WELL_KNOWN: &[&str] = &["change-me-in-production", "change-me", "changeme", "secret"];

/// The variables of the environment that Provost reads, taken once.
#[derive(Clone, Default)]
pub struct Environment {
    /// `HOME`; on Windows `USERPROFILE` too.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, absolute or ignored, as its specification says; on Windows `APPDATA` too.
    pub config_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`, likewise; on Windows `LOCALAPPDATA` too.
    pub state_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, likewise.
    pub runtime_dir: Option<PathBuf>,
    /// `PROVOST_ROOT`.
    pub root: Option<PathBuf>,
    /// `PROVOST_CONFIG`.
    pub provost_config: Option<PathBuf>,
    /// `DEVIT_CORE_CONFIG`.
    pub devit_config: Option<PathBuf>,
    /// `DEVIT_SOCK`, or `DEVIT_DAEMON_SOCKET` without it: the address for a client.
    pub socket: Option<PathBuf>,
    /// `DEVIT_SECRET`, even if empty or well known; [`weak_secret`] checks it.
    pub secret: Option<Secret>,
    /// `PROVOST_AGENT`, or `WIT_SESSION`, or `CLAUDE_SESSION_ID`: the name of a client.
    pub agent: Option<String>,
    /// `PROVOST_TOKEN`.
    pub token: Option<Secret>,
    /// `DEVIT_EXPECTED_DAEMON_VERSION`.
    pub expected_daemon_version: Option<String>,
    /// Whether a client may start a daemon: neither `DEVIT_NO_AUTO_START` nor `CI` is set.
    pub auto_start: bool,
    texts: Vec<(&'static str, String)>,
}

/// Variables that set a setting, other than the ports of doors: variable, section and key.
const SETTINGS: [Setting; 4] = [
    ("DEVIT_EXPECTED_WORKER_VERSION", "daemon", "expected_worker_version"),
    ("DEVIT_AUTO_SHUTDOWN_AFTER", "daemon", "auto_shutdown_after"),
    ("DEVIT_NOTIFY_HOOK", "hooks.notify", "command"),
    ("PROVOST_LOG", "log", "level"),
];

type Setting = (&'static str, &'static str, &'static str);

/// Returns every variable that sets a setting.
fn settings() -> impl Iterator<Item = Setting> {
    let ports = Door::over_loopback().map(|(door, at)| (at.port_variable, door.name(), "port"));
    SETTINGS.into_iter().chain(ports)
}

impl Environment {
    /// Returns the environment of this process.
    pub fn current() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// Returns an environment that a function from name to value describes.
    pub fn from_lookup(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute =
            |names: &[&str]| names.iter().find_map(|name| path(name).filter(|path| path.is_absolute()));
        let text = |name: &str| get(name).map(|value| value.to_string_lossy().into_owned());
        let present = |name: &'static str| text(name).filter(|t| !t.trim().is_empty()).map(|t| (name, t));
        Self {
            home: absolute(system::HOME),
            config_home: absolute(system::CONFIG_HOME),
            state_home: absolute(system::STATE_HOME),
            runtime_dir: absolute(&["XDG_RUNTIME_DIR"]),
            root: path("PROVOST_ROOT"),
            provost_config: path("PROVOST_CONFIG"),
            devit_config: path("DEVIT_CORE_CONFIG"),
            socket: path("DEVIT_SOCK").or_else(|| path("DEVIT_DAEMON_SOCKET")),
            secret: get("DEVIT_SECRET").map(|value| Secret::new(value.into_encoded_bytes())),
            agent: ["PROVOST_AGENT", "WIT_SESSION", "CLAUDE_SESSION_ID"]
                .into_iter()
                .find_map(|name| present(name).map(|(_, text)| text)),
            token: get("PROVOST_TOKEN")
                .filter(|it| !it.is_empty())
                .map(|value| Secret::new(value.into_encoded_bytes())),
            expected_daemon_version: present("DEVIT_EXPECTED_DAEMON_VERSION").map(|(_, text)| text),
            auto_start: get("DEVIT_NO_AUTO_START").is_none() && get("CI").is_none(),
            texts: settings().filter_map(|(name, ..)| present(name)).collect(),
        }
    }

    /// Returns the variables that set settings: variable, section, key and value.
    pub(super) fn settings(&self) -> Vec<(&'static str, &'static str, &'static str, DeValue<'_>)> {
        let row = |(name, path, key)| {
            let (_, text) = self.texts.iter().find(|(set, _)| *set == name)?;
            Some((name, path, key, as_toml(name, text.trim())))
        };
        settings().filter_map(row).collect()
    }
}

/// Returns the value in the form that the reader of the settings expects.
fn as_toml<'a>(name: &str, text: &'a str) -> DeValue<'a> {
    match name {
        "DEVIT_AUTO_SHUTDOWN_AFTER" => DeValue::String(match text.parse::<u64>() {
            Ok(0) => "off".into(),
            Ok(seconds) => format!("{seconds}s").into(),
            Err(_) => text.into(),
        }),
        "DEVIT_EXPECTED_WORKER_VERSION" if text.contains(',') => {
            let mut list = toml::de::DeArray::new();
            // A blank entry stays in the list, so that an empty list is an error and does not accept every version.
            let versions = text.split(',').map(|version| DeValue::String(version.trim().into()));
            versions.for_each(|version| list.push(toml::Spanned::new(0..0, version)));
            DeValue::Array(list)
        }
        name if Door::over_loopback().any(|(_, at)| at.port_variable == name) => {
            DeValue::parse(text).map_or_else(|_| DeValue::String(text.into()), toml::Spanned::into_inner)
        }
        _ => DeValue::String(text.into()),
    }
}

/// Returns the reason why a secret from a person or a program must not be used; `None` when it may be used.
pub fn weak_secret(secret: &Secret) -> Option<&'static str> {
    let bytes = secret.expose().trim_ascii();
    if bytes.is_empty() {
        return Some("the secret is empty; unset DEVIT_SECRET to use the one that Provost made");
    }
    let known = WELL_KNOWN.iter().any(|known| bytes.eq_ignore_ascii_case(known.as_bytes()));
    known.then_some(
        "the secret is printed in DevIt's manual; unset DEVIT_SECRET to use the one that Provost made",
    )
}

/// The syntax in which `provost env` prints variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shell {
    /// sh, bash, zsh: `export NAME='value'`.
    Sh,
    /// fish: `set -gx NAME 'value'`.
    Fish,
    /// One JSON object with a member for each variable.
    Json,
}

/// The addresses of this daemon for clients.
// No `Debug`: it holds a secret.
#[derive(Clone, Copy)]
pub struct Whereabouts<'a> {
    /// The socket or pipe of the DevIt door.
    pub socket: &'a Path,
    /// The secret of that door.
    pub secret: &'a Secret,
    /// The work tree whose `.wit` wit's clients are to find from its subdirectories, too.
    pub wit_root: Option<&'a Path>,
    /// The ports of the doors over loopback.
    pub ports: &'a Ports,
    /// The name of the page for people, where a setting names another than the usual one.
    pub page: Option<&'a PageName>,
}

/// Returns the variables that point existing clients at this daemon.
///
/// The result holds the secret in plain text: it goes to the caller's own standard output and nowhere else.
///
/// # Errors
/// When the address or the secret is not UTF-8, which shells do not all accept.
pub fn for_clients(at: &Whereabouts<'_>, shell: Shell) -> Result<String, &'static str> {
    let secret = std::str::from_utf8(at.secret.expose()).map_err(|_| "the secret is not UTF-8")?;
    let mut pairs = Vec::new();
    for door in Door::ALL {
        let address = address(*door, at)?;
        let variables = door.row().variables.iter().map(|(name, _)| *name);
        pairs.extend(address.iter().flat_map(|it| variables.clone().map(|name| (name, it.clone()))));
        if *door == Door::Devit {
            pairs.push(("DEVIT_SECRET", secret.to_owned()));
        }
    }
    let lines =
        |line: fn(&str, &str) -> String| pairs.iter().map(|(name, value)| line(name, value)).collect();
    Ok(match shell {
        Shell::Sh => lines(|name, value| format!("export {name}={}\n", quote_sh(value))),
        Shell::Fish => lines(|name, value| format!("set -gx {name} {};\n", quote_fish(value))),
        Shell::Json => {
            let object: serde_json::Map<_, _> =
                pairs.iter().map(|(name, value)| ((*name).into(), value.as_str().into())).collect();
            format!("{}\n", serde_json::Value::Object(object))
        }
    })
}

/// Returns the address for the variables of a door; `None` where the door is closed, or clients do not look for it.
fn address(door: Door, at: &Whereabouts<'_>) -> Result<Option<String>, &'static str> {
    Ok(match door.row().at {
        At::Socket if door == Door::Devit => {
            Some(at.socket.to_str().ok_or("the socket's path is not UTF-8")?.to_owned())
        }
        At::WorkTrees => match at.wit_root {
            Some(root) => Some(root.to_str().ok_or("the work tree's path is not UTF-8")?.to_owned()),
            None => None,
        },
        At::Loopback(loopback) => {
            let port = at.ports.of_door(door);
            match at.page.filter(|_| door == Door::Web) {
                Some(page) => port.map(|port| loopback.address_by(page.as_str(), port)),
                None => port.map(|port| loopback.address(port)),
            }
        }
        At::Socket | At::Run | At::Nowhere => None,
    })
}

/// Quotes a text for sh: within single quotes it takes everything literally but the quote itself.
fn quote_sh(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a text for fish: within single quotes it knows `\\` and `\'`.
fn quote_fish(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}
