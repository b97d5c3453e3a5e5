//! The environment of a worker, built from nothing.
//!
//! Nothing is inherited by accident: the daemon hands on a few variables that describe language and terminal, and the
//! configuration names the others. A variable that makes a program load code, or that leads
//! to the user's agents and desktop, is refused even when it is asked for.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use provost_base::limits::PATH_LEN_MAX;
use provost_system as system;

/// Names that workers get from the daemon's own environment when they are set there.
const TAKEN_OVER: [&str; 12] = [
    "COLORTERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "NO_COLOR",
    "TERM",
    "TZ",
];

/// Names that the jail sets itself, since only the jail knows their true values inside.
const SET_BY_THE_JAIL: [&str; 5] = ["HOME", "OLDPWD", "PWD", "SHLVL", "TMPDIR"];

/// Beginnings of names that configure a loader, or inject configuration that can name programs.
const LOADING_PREFIXES: [&str; 9] =
    ["BASH_FUNC_", "CARGO_TARGET_", "DYLD_", "GIT_CONFIG", "GIT_TRACE", "LD_", "NPM_CONFIG_", "PIP_", "_RLD"];

/// Names that make a shell, an interpreter or a tool run code from elsewhere.
const LOADING: [&str; 72] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GIT_ASKPASS",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKEFLAGS",
    "MALLOC_TRACE",
    "MANPAGER",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "SHELLOPTS",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Names that lead out: to agents that hold keys, to the desktop, to other daemons.
const LEADING_OUT: [&str; 12] = [
    "CONTAINER_HOST",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// The reason why a variable is not given to a worker. Safe to show.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EnvironmentRefused {
    /// Not of the form `[A-Za-z_][A-Za-z0-9_]*`.
    #[error("`{0}` is not the name of an environment variable")]
    Name(String),
    /// NUL in the value, or longer than [`PATH_LEN_MAX`] times eight.
    #[error("the value of `{0}` is too long or contains a zero byte")]
    Value(String),
    /// The name makes a program load code.
    #[error("`{0}` makes programs load code from elsewhere and is never given to a worker")]
    LoadsCode(String),
    /// The name leads to the user's agents, desktop or other daemons.
    #[error("`{0}` leads out of the jail and is never given to a worker")]
    LeadsOut(String),
    /// `HOME`, `TMPDIR` and the like.
    #[error("`{0}` is set by the jail itself")]
    SetByTheJail(String),
}

/// The variables of a worker. Every one has passed [`Environment::set`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Makes an environment of `PATH` with the system's directories, and the language and terminal names found in `host`.
    pub fn new(host: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut environment = Self(BTreeMap::new());
        for (name, value) in host {
            let needed = system::NEEDED_VARIABLES.iter().any(|it| it.eq_ignore_ascii_case(&name));
            if (needed || TAKEN_OVER.contains(&name.as_str())) && !value.contains('\0') {
                environment.0.insert(name, value);
            }
        }
        environment.0.insert("PATH".into(), system::program_folders());
        environment.0.entry("LANG".into()).or_insert_with(|| "C.UTF-8".into());
        environment
    }

    /// Adds or replaces one variable.
    ///
    /// # Errors
    /// [`EnvironmentRefused`]; nothing has changed then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), EnvironmentRefused> {
        check(name, value)?;
        if system::VARIABLES_FOLD {
            self.0.retain(|known, _| !known.eq_ignore_ascii_case(name));
        }
        self.0.insert(name.into(), value.into());
        Ok(())
    }

    /// Puts a directory before all others of `PATH`.
    ///
    /// # Errors
    /// [`EnvironmentRefused::Value`] for a relative directory, or one that contains the separator.
    pub fn prepend_path(&mut self, directory: &str) -> Result<(), EnvironmentRefused> {
        if !Path::new(directory).is_absolute() || directory.contains(system::PATH_SEPARATOR) {
            return Err(EnvironmentRefused::Value("PATH".into()));
        }
        let path = match self.0.get("PATH") {
            Some(rest) => format!("{directory}{}{rest}", system::PATH_SEPARATOR),
            None => directory.into(),
        };
        self.set("PATH", &path)
    }

    /// Puts a directory behind all others of `PATH`.
    ///
    /// # Errors
    /// [`EnvironmentRefused::Value`] for a relative directory, or one that contains the separator.
    pub fn append_path(&mut self, directory: &str) -> Result<(), EnvironmentRefused> {
        if !Path::new(directory).is_absolute() || directory.contains(system::PATH_SEPARATOR) {
            return Err(EnvironmentRefused::Value("PATH".into()));
        }
        let path = match self.0.get("PATH") {
            Some(first) if first.split(system::PATH_SEPARATOR).any(|part| part == directory) => return Ok(()),
            Some(first) => format!("{first}{}{directory}", system::PATH_SEPARATOR),
            None => directory.into(),
        };
        self.set("PATH", &path)
    }

    /// Returns names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn check(name: &str, value: &str) -> Result<(), EnvironmentRefused> {
    let wellformed = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    if !wellformed {
        return Err(EnvironmentRefused::Name(name.into()));
    }
    // Some programs ignore the case of names, and so does this check.
    let upper = name.to_ascii_uppercase();
    let is = |list: &[&str]| list.contains(&upper.as_str());
    if LOADING_PREFIXES.iter().any(|prefix| upper.starts_with(prefix)) || is(&LOADING) {
        return Err(EnvironmentRefused::LoadsCode(name.into()));
    }
    if is(&LEADING_OUT) {
        return Err(EnvironmentRefused::LeadsOut(name.into()));
    }
    if is(&SET_BY_THE_JAIL) || is(system::JAIL_VARIABLES) {
        return Err(EnvironmentRefused::SetByTheJail(name.into()));
    }
    let relative_path =
        upper == "PATH" && value.split(system::PATH_SEPARATOR).any(|part| !Path::new(part).is_absolute());
    if value.contains('\0') || value.len() > 8 * PATH_LEN_MAX || relative_path {
        return Err(EnvironmentRefused::Value(name.into()));
    }
    Ok(())
}
