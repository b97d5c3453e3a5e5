//! A command line in the form in which DevIt's programs start their daemon: flags and no command, in the foreground.
//!
//! If a daemon already runs for the repository, it gets the address, and this process stays as long as that daemon,
//! since its starter takes an early end for a failure.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Parser as _;

use super::args;
use super::cli_error::{CliError, DONE};
use super::repo_context::{RepoContext, wait_for};
use super::up::{self, Devitd, Serve};
use super::{Run, out, spoken};
use provost_api::wire;
use provost_base::Secret;
use provost_client::{Client, ClientError};
use provost_config::env::weak_secret;
use provost_system::{self as system, Signals};

/// The interval between two checks whether the other daemon still runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The flags of this form.
const FLAGS: [&str; 5] = ["--socket", "--secret", "--debug", "--config", "--auto-shutdown-after"];

/// Checks whether the command line has this form: called by DevIt's name, or with its flags in place of a command.
pub(super) fn is_meant(args: &[OsString]) -> bool {
    let name = args.first().and_then(|name| Path::new(name).file_stem()?.to_str());
    let flag = args.get(1).and_then(|first| first.to_str()).unwrap_or_default();
    let flag = flag.split_once('=').map_or(flag, |(flag, _)| flag);
    name.is_some_and(|name| name.ends_with("devitd")) || FLAGS.contains(&flag)
}

pub(super) fn main(args: &[OsString], run: &Run) -> Result<u8, CliError> {
    let mut asked = match args::Devitd::try_parse_from(args) {
        Ok(asked) => asked,
        Err(err) => return spoken(&err, None),
    };
    let here = RepoContext::find(false)?;
    let given = asked.secret.take().map(|text| Secret::new(text.into_bytes()));
    let secret = given.or_else(|| here.environment.secret.clone());
    if let Some(why) = secret.as_ref().and_then(weak_secret) {
        return Err(CliError::refusal("this secret is not accepted")
            .because(why)
            .next("eval \"$(provost env)\", and start the client again"));
    }
    let socket = system::address(&here.cwd, &asked.socket).map_err(|why| {
        CliError::refusal("this address cannot be used").because(why).next("name another --socket")
    })?;
    if up::running(&here)?.is_some() {
        return hand_over(&here, &socket, secret.as_ref());
    }
    let served = run(Serve {
        places: here.places.clone(),
        cwd: here.cwd.clone(),
        config_file: asked.config,
        foreground: true,
        devitd: Some(Devitd { socket: socket.clone(), secret: secret.clone() }),
        auto_shutdown_after: asked.auto_shutdown_after,
        ports: up::Ports::Unattended,
        allow_root: false,
        debug: asked.debug,
        ready: None,
    });
    match served {
        Ok(()) => Ok(DONE),
        // Two clients started a daemon at the same moment, and the other was faster.
        Err(_) if up::running_soon(&here)?.is_some() => hand_over(&here, &socket, secret.as_ref()),
        Err(err) => Err(up::failed(err)),
    }
}

/// Makes the running daemon listen at the address too, and stays while that daemon runs.
fn hand_over(here: &RepoContext, socket: &Path, secret: Option<&Secret>) -> Result<u8, CliError> {
    let address = socket.to_str().ok_or_else(|| {
        CliError::of("the address is not UTF-8")
            .because(socket.display())
            .next("name a plain path with --socket")
    })?;
    wait_for(async {
        let client = here.client();
        let mut signals = Signals::catch().map_err(CliError::of)?;
        let pid = client.about().await?.pid;
        open_at(&client, address, secret).await?;
        out::note(format!("a daemon runs already (process {pid}); it listens at {address} too"));
        tokio::select! {
            () = ended(&client) => out::note("that daemon has ended"),
            _ = signals.next() => {}
        }
        Ok(DONE)
    })
}

/// Makes the daemon listen at an address, unless it already listens there.
async fn open_at(client: &Client, address: &str, secret: Option<&Secret>) -> Result<(), CliError> {
    let about = client.about().await?;
    if about.doors.iter().any(|at| at.address == address) {
        return Ok(());
    }
    let secret = secret.map(|it| String::from_utf8_lossy(it.expose()).into_owned());
    client.listen(&wire::Listen { address: address.to_owned(), secret }).await?;
    Ok(())
}

async fn ended(client: &Client) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if matches!(client.about().await, Err(ClientError::NotRunning(_))) {
            return;
        }
    }
}
