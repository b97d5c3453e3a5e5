//! Where a command was typed: the repository, its places, and the way to its daemon.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use super::CliError;
use provost_base::{AgentId, Timestamp};
use provost_client::Client;
use provost_client::keys::KeyRing;
use provost_config::env::Environment;
use provost_config::{Dialect, Loaded, Places, Sources, load, pin};
use provost_vault::Vault;

/// Everything a command needs to know about its surroundings.
pub(super) struct RepoContext {
    pub(super) cwd: PathBuf,
    pub(super) environment: Environment,
    pub(super) places: Places,
    /// Whether the answer is for programs.
    pub(super) json: bool,
    /// The daemon, where this process is that.
    pub(super) inside: Option<Inside>,
}

/// The daemon of a repository, asked by its own process for a caller that a door of it has recognised.
#[derive(Clone)]
pub(super) struct Inside {
    /// What carries out the daemon's work. The threads that wait for it are none of its own.
    pub(super) runtime: tokio::runtime::Handle,
    /// A client for the caller under a name, or why it may not have that.
    pub(super) clients: ClientsByName,
}

/// See [`Inside::clients`].
pub(super) type ClientsByName = Arc<dyn Fn(AgentId) -> Result<Client, String> + Send + Sync>;

impl RepoContext {
    pub(super) fn find(json: bool) -> Result<Self, CliError> {
        let environment = Environment::current();
        let cwd = std::env::current_dir().map_err(|e| {
            CliError::of("the current directory cannot be entered").because(e).next("cd to the repository")
        })?;
        let places = Places::find(&cwd, &environment)?;
        Ok(Self { cwd, environment, places, json, inside: None })
    }

    /// The same for a folder that somebody names.
    pub(super) fn in_folder(cwd: PathBuf, environment: Environment) -> Result<Self, CliError> {
        let places = Places::find(&cwd, &environment)?;
        Ok(Self { cwd, environment, places, json: false, inside: None })
    }

    /// The daemon of this repository, whether or not it runs.
    pub(super) fn client(&self) -> Client {
        Client::at(self.places.own_socket()).showing(self.environment.token.as_ref())
    }

    /// The same, speaking as an agent.
    ///
    /// # Errors
    /// Why the caller of a door may not speak as that one.
    pub(super) fn speaking(&self, agent: AgentId) -> Result<Client, CliError> {
        match &self.inside {
            Some(inside) => (inside.clients)(agent).map_err(CliError::of),
            None => Ok(self.client().speaking_as(Some(agent))),
        }
    }

    /// The daemon of this repository, after making sure that it is of the version that the environment insists on.
    pub(super) async fn daemon(&self, agent: Option<AgentId>) -> Result<Client, CliError> {
        if let (Some(_), Some(agent)) = (&self.inside, &agent) {
            return self.speaking(agent.clone());
        }
        let client = self.client().speaking_as(agent);
        let Some(expected) = &self.environment.expected_daemon_version else { return Ok(client) };
        let about = self.client().about().await?;
        let advertised = self.config(None)?.config.daemon.advertised_version;
        if *expected != about.version && *expected != advertised {
            return Err(CliError::refusal(
                "the daemon is of another version than DEVIT_EXPECTED_DAEMON_VERSION says",
            )
            .because(format!(
                "expected {expected}, found {} (to DevIt's clients: {advertised})",
                about.version
            ))
            .next("unset DEVIT_EXPECTED_DAEMON_VERSION, or install the version that it names"));
        }
        Ok(client)
    }

    /// The configuration as a daemon started now would see it.
    pub(super) fn config(&self, explicit: Option<(PathBuf, Dialect)>) -> Result<Loaded, CliError> {
        let repository = pin::pending(&self.places.root, &self.places.state)?;
        let sources = Sources::usual(&self.places, repository, explicit);
        Ok(load(&sources, &self.environment)?)
    }

    /// Where the key ring is.
    pub(super) fn keys_folder(&self) -> PathBuf {
        self.places.config.join("keys")
    }

    /// Where secrets for workers are kept.
    pub(super) fn vault(&self) -> Result<Vault, CliError> {
        self.places.create_config()?;
        Ok(Vault::at(self.places.secrets()))
    }

    /// The key ring; made if it is missing.
    pub(super) fn key_ring(&self) -> Result<KeyRing, CliError> {
        self.places.create_config()?;
        Ok(KeyRing::open(&self.keys_folder())?)
    }
}

/// Carries out something that waits for the daemon.
pub(super) fn wait_for<T>(it: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let mut done = None;
    // Boxed, and without its outcome: a runtime's code is there once, and not for each command.
    block_on(Box::pin(async { done = Some(it.await) }))?;
    done.expect("what was waited for has come to its end")
}

fn block_on(it: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| CliError::of("the system has no resources left").because(e))?.block_on(it);
    Ok(())
}

/// The time now; a clock before 1970 counts as 1970.
pub(super) fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis().max(0))
}
