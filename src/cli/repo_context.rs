//! The surroundings of a command: the repository, its places, and the client of its daemon.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use super::CliError;
use provost_base::{AgentId, Timestamp};
use provost_client::keys::KeyRing;
use provost_client::{Age, Client};
use provost_config::env::Environment;
use provost_config::{Dialect, Loaded, Places, Sources, load, pin};
use provost_vault::Vault;

/// The surroundings of a command.
pub(super) struct RepoContext {
    pub(super) cwd: PathBuf,
    pub(super) environment: Environment,
    pub(super) places: Places,
    /// Whether a program reads the answer.
    pub(super) json: bool,
    /// The daemon, where this process is the daemon.
    pub(super) inside: Option<Inside>,
    /// The greatest age of the daemon's answers.
    pub(super) age: Age,
}

/// The daemon of a repository, used by its own process on behalf of a caller that one of its doors has authenticated.
#[derive(Clone)]
pub(super) struct Inside {
    /// The runtime that carries out the daemon's work. The threads that wait for it do not belong to it.
    pub(super) runtime: tokio::runtime::Handle,
    /// Returns a client for the caller under a name, or the reason why the caller may not have that name.
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
        Ok(Self { cwd, environment, places, json, inside: None, age: Age::default() })
    }

    /// Does the same for a folder that the caller names.
    pub(super) fn in_folder(cwd: PathBuf, environment: Environment) -> Result<Self, CliError> {
        let places = Places::find(&cwd, &environment)?;
        Ok(Self { cwd, environment, places, json: false, inside: None, age: Age::default() })
    }

    /// Returns a client of this repository's daemon, whether or not it runs.
    pub(super) fn client(&self) -> Client {
        let client = Client::at(self.places.own_socket()).showing(self.environment.token.as_ref());
        client.noting(self.age.clone())
    }

    /// Does the same, on behalf of an agent.
    ///
    /// # Errors
    /// The reason why the caller of a door may not speak as that agent.
    pub(super) fn speaking(&self, agent: AgentId) -> Result<Client, CliError> {
        match &self.inside {
            Some(inside) => (inside.clients)(agent).map_err(CliError::of),
            None => Ok(self.client().speaking_as(Some(agent))),
        }
    }

    /// Returns a client of this repository's daemon, after a check of the version that the environment requires.
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

    /// Reads the configuration as a daemon started now would read it.
    pub(super) fn config(&self, explicit: Option<(PathBuf, Dialect)>) -> Result<Loaded, CliError> {
        let repository = pin::pending(&self.places.root, &self.places.state)?;
        let sources = Sources::usual(&self.places, repository, explicit);
        Ok(load(&sources, &self.environment)?)
    }

    /// Returns the folder of the key ring.
    pub(super) fn keys_folder(&self) -> PathBuf {
        self.places.config.join("keys")
    }

    /// Returns the vault with secrets for workers.
    pub(super) fn vault(&self) -> Result<Vault, CliError> {
        self.places.create_config()?;
        Ok(Vault::at(self.places.secrets()))
    }

    /// Opens the key ring, or creates it.
    pub(super) fn key_ring(&self) -> Result<KeyRing, CliError> {
        self.places.create_config()?;
        Ok(KeyRing::open(&self.keys_folder())?)
    }
}

/// Runs a future that waits for the daemon.
pub(super) fn wait_for<T>(it: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let mut done = None;
    // Boxed, and without its result, so that the runtime's code is compiled once, and not for each command.
    block_on(Box::pin(async { done = Some(it.await) }))?;
    done.expect("the awaited work has ended")
}

fn block_on(it: Pin<Box<dyn Future<Output = ()> + '_>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| CliError::of("the system has no resources left").because(e))?.block_on(it);
    Ok(())
}

/// Returns the present time; a clock before 1970 counts as 1970.
pub(super) fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis().max(0))
}
