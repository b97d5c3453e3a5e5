//! `provost config init` and `provost daemon env`: everything from a fresh start to clients that find the daemon.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;

use super::args::{Env, Init, Preset, Shell};
use super::cli_error::DONE;
use super::repo_context::now;
use super::{CliError, RepoContext, out, up};
use provost_client::keys::Role;
use provost_config::{Ports, env, print_toml};
use provost_policy::Builtin;

/// Creates missing files and changes no existing one.
pub(super) fn init(here: &RepoContext, asked: &Init) -> Result<u8, CliError> {
    here.places.create()?;
    let ring = here.key_ring()?;
    let mut made = Vec::new();
    let settings = here.places.config.join("provost.toml");
    if write_new(&settings, &print_toml())? {
        made.push(format!("{} (every setting, as a comment)", settings.display()));
    }
    if let Some(preset) = asked.policy {
        let path = here.places.config.join("policy.toml");
        if !write_new(&path, builtin(preset).text())? {
            return Err(CliError::refusal(format!("{} is there already", path.display()))
                .because("it was not replaced, since it may be yours")
                .next(format!(
                    "move it away, then: provost config init --policy {}",
                    builtin(preset).name()
                )));
        }
        made.push(format!("{} (the rules that decide)", path.display()));
    }
    let approver = here.config(None)?.config.approvals.default_target;
    if !ring.has(&approver) {
        ring.add(&approver, Role::Approver, now())?;
        made.push(format!("a key for {approver}, which answers approvals"));
    }
    if here.json {
        let (config, state) = (here.places.config.display(), here.places.state.display());
        out::json(&json!({ "made": made, "config": config.to_string(), "state": state.to_string() }))?;
        return Ok(DONE);
    }
    out::line(format!("configuration, keys: {}", here.places.config.display()))?;
    out::line(format!("state:               {}", here.places.state.display()))?;
    made.iter().try_for_each(|it| out::line(format!("made {it}")))?;
    out::line(
        "\nnext:\n  provost doctor                         check this machine\n  \
         provost up                             start the daemon\n  \
         provost delegate \"make test\" --wait    run a command in the jail\n  \
         eval \"$(provost env)\"                  point existing clients here\n  \
         provost key rotate client:approver     get the approver's key, for an approving agent",
    )?;
    Ok(DONE)
}

pub(super) fn builtin(preset: Preset) -> Builtin {
    match preset {
        Preset::Strict => Builtin::Strict,
        Preset::Default => Builtin::Default,
        Preset::Open => Builtin::Open,
    }
}

/// Writes a file that only its owner may change; returns `false` when it exists already.
fn write_new(path: &Path, text: &str) -> Result<bool, CliError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    match provost_system::private_file(&mut options)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
    {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(CliError::of(format!("{} cannot be written", path.display()))
            .because(e)
            .next("provost doctor")),
    }
}

pub(super) fn env(here: &RepoContext, asked: &Env) -> Result<u8, CliError> {
    let shell = match asked.shell {
        _ if here.json => env::Shell::Json,
        Shell::Sh => env::Shell::Sh,
        Shell::Fish => env::Shell::Fish,
        Shell::Json => env::Shell::Json,
    };
    let secret = here.key_ring()?.shared();
    let top = &here.places.worktree;
    let wit_root = top.join(".wit").is_dir().then_some(top.as_path());
    let ports = Ports::of(&here.places);
    // Clients get the addresses of their doors even where the settings cannot be used.
    let names = here.config(None).map(|it| it.config.web.names).unwrap_or_default();
    let at = env::Whereabouts {
        socket: &here.places.devit_socket(),
        secret: &secret,
        wit_root,
        ports: &ports,
        page: names.first(),
    };
    let text = env::for_clients(&at, shell).map_err(|why| {
        CliError::of("clients cannot be pointed here")
            .because(why)
            .next("set XDG_RUNTIME_DIR to a plain path")
    })?;
    out::text_as_is(&text)?;
    if up::running(here)?.is_none() {
        out::note("no daemon runs yet; start it: provost up");
    }
    Ok(DONE)
}
