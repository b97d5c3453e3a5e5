//! Invitations of machines: one line to paste on the other machine, and a code that takes another way.
//!
//! ```text
//!   provost-host:BASE64URL    what `provost host export-key` writes into a file, with the database's address sealed in it
//! ```

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::cli_error::{DONE, USAGE};
use super::hosts::{must_be_an_admin, shared};
use super::{CliError, RepoContext, out};
use provost_base::HostRole;
use provost_base::limits::{HOST_KEY_BYTES_MAX, HOSTS_MAX};
use provost_store::{self as store, RepositoryRoute};
use provost_system as system;

/// The beginning of such a line.
const BEGINS: &str = "provost-host:";
/// Most bytes of an address of git, and of a file with authorities.
const ADDRESS_BYTES_MAX: usize = 2_048;
const AUTHORITIES_BYTES_MAX: u64 = 256 << 10;

/// `provost host invite`.
#[derive(Args, Debug)]
pub(super) struct Invite {
    /// What the machine joins for
    #[arg(long, value_enum, default_value_t = Role::Full, value_name = "worker|full")]
    role: Role,
    /// How many machines may join with the line
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=HOSTS_MAX as i64))]
    hosts: u32,
    /// The machine's own login to the database; without it, the line names the one of this host
    #[arg(long, value_name = "NAME")]
    login: Option<String>,
    /// From where the machine clones the repository, if it has no clone; by default the address of this clone's `origin`
    #[arg(long, value_name = "URL")]
    clone: Option<String>,
}

/// See [`HostRole`].
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// It carries out tasks that other hosts have asked for, and decides nothing
    Worker,
    /// People and agents ask, answer and decide there
    Full,
}

impl From<Role> for HostRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Worker => HostRole::Worker,
            Role::Full => HostRole::Full,
        }
    }
}

pub(super) fn invite(here: &RepoContext, asked: &Invite) -> Result<u8, CliError> {
    let database = shared(here)?;
    must_be_an_admin(here, &database)?;
    let failed = |err: &dyn std::fmt::Display| CliError::of("no machine was invited").because(err);
    let url = match &asked.login {
        Some(login) => with_login(&database.url, login).map_err(|why| failed(&why).with_code(USAGE))?,
        None => database.url.clone(),
    };
    let ca = database.ca.as_deref().map(authorities).transpose().map_err(|err| failed(&err))?;
    let clone = match &asked.clone {
        Some(it) => Some(address(it).map_err(|why| failed(&why).with_code(USAGE))?),
        // An address that may contain a secret stays on this machine.
        None => origin(&here.places.worktree).and_then(|it| address(&it).ok()),
    };
    let role = HostRole::from(asked.role);
    let way = Some(RepositoryRoute { url, ca, clone });
    let invite = store::Invite { name: &database.name, most: asked.hosts, role, way };
    let sealed = store::seal_key(&here.places.state, invite).map_err(|err| failed(&err))?;
    let line = format!("{BEGINS}{}", URL_SAFE_NO_PAD.encode(sealed.text.as_bytes()));
    let code = String::from_utf8_lossy(sealed.code.expose()).into_owned();
    if here.json {
        let role = role.as_str();
        out::json(&json!({ "line": line, "code": code, "name": database.name, "role": role }))?;
        return Ok(DONE);
    }
    let (does, command) = match role {
        HostRole::Worker => ("carries out tasks of other hosts", "provost worker join LINE"),
        HostRole::Full => (
            "takes part as this one does; it needs the same `[store] url` and name, and a clone",
            "provost host join LINE",
        ),
    };
    out::line(format!(
        "an invitation into {:?}: a machine that joins with it {does}\n\n{line}\n\nthis code opens the line, is shown once, and goes \
         another way than it:\n\n  {code}\n\non the other machine: {command}",
        database.name
    ))?;
    if asked.login.is_none() {
        out::note("the line names this host's own login to the database: --login NAME names another one");
    }
    Ok(DONE)
}

/// Returns the sealed content of such a line.
///
/// # Errors
/// A sentence for people about a text that is no such line.
pub(super) fn read(line: &str) -> Result<String, CliError> {
    let line = line.trim();
    let no = |why: &str| {
        CliError::of("this is no line of `provost host invite`")
            .because(why)
            .next("on a full host of the repository: provost host invite")
            .with_code(USAGE)
    };
    if line.starts_with("postgres://") || line.starts_with("postgresql://") {
        return Err(no(
            "it is the address of a database, and an address lets no machine in: the line has the address in it",
        ));
    }
    let bytes = line.strip_prefix(BEGINS).ok_or_else(|| no(&format!("such a line begins with {BEGINS}")))?;
    if bytes.len() as u64 > 2 * HOST_KEY_BYTES_MAX {
        return Err(no("it is too long"));
    }
    let text = URL_SAFE_NO_PAD
        .decode(bytes)
        .map_err(|_| no("a part of it is missing, or was changed on the way"))?;
    // The form shows only that the line is complete; the store checks the content.
    match String::from_utf8(text) {
        Ok(text) if serde_json::from_str::<serde_json::Value>(&text).is_ok() => Ok(text),
        _ => Err(no("a part of it is missing, or was changed on the way")),
    }
}

/// Returns the same address with another user.
fn with_login(url: &str, login: &str) -> Result<Box<str>, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    if login.is_empty() || !login.chars().all(is_plain) {
        return Err("a login of --login has letters, digits, `_`, `-` and `.`".into());
    }
    let unfit = || {
        "`[store] url` does not name its user before the server: write the address without --login".to_owned()
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(unfit)?;
    let (authority, path) = rest.split_once('/').ok_or_else(unfit)?;
    let (_, servers) = authority.rsplit_once('@').ok_or_else(unfit)?;
    if path.contains("user=") {
        return Err(unfit());
    }
    Ok(format!("{scheme}://{login}@{servers}/{path}").into())
}

fn authorities(path: &Path) -> Result<Box<str>, String> {
    system::short_text(path, AUTHORITIES_BYTES_MAX)
        .map(Into::into)
        .map_err(|err| format!("the authorities of the database, {}: {err}", path.display()))
}

/// Checks an address from which any machine may clone: it has no secret, and git takes it for no option and no command.
pub(super) fn address(url: &str) -> Result<Box<str>, String> {
    let is_odd =
        url.is_empty() || url.len() > ADDRESS_BYTES_MAX || url.starts_with('-') || url.contains("::");
    if is_odd || url.chars().any(|it| it.is_control() || it.is_whitespace()) {
        return Err(
            "--clone takes an address as `git clone` takes it, such as https://git.example/shop.git".into()
        );
    }
    let user = url.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'));
    if user.is_some_and(|(user, _)| user.contains(':')) {
        return Err("an address with a password goes into no invitation".into());
    }
    Ok(url.into())
}

/// Returns the address from which this clone was made.
fn origin(top: &Path) -> Option<String> {
    let program = system::find_program_outside("git", &[top])?;
    let mut git = std::process::Command::new(program);
    git.args(["--no-pager", "-c", "core.fsmonitor=false", "config", "--local", "--get", "remote.origin.url"]);
    let said = git.current_dir(top).stdin(std::process::Stdio::null()).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}
