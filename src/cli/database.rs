//! The database that has the state, as the configuration names it, and `provost store migrate`, which makes its
//! tables.

use clap::Args;
use serde_json::json;

use super::cli_error::DONE;
use super::{CliError, RepoContext, out};
use provost_config::{Config, RepositoryName};
use provost_store::{self as store, Database, StoreError};
use provost_vault::{Delivery, Vault};

/// `provost store migrate`.
#[derive(Args, Debug)]
pub(super) struct Migrate {
    /// The database, with the role that owns the tables; without it, `[store] url`
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The secret that has that role's password; without --url, the one of `[store] password`
    #[arg(long, value_name = "NAME", requires = "url")]
    password: Option<String>,
    /// Make the groups of roles for daemons and readers, too, if they are missing
    #[arg(long)]
    roles: bool,
    /// Print the statements that make the roles, for an administrator, and do nothing
    #[arg(long, conflicts_with_all = ["url", "roles"])]
    print_roles: bool,
}

/// Returns the database that the configuration names; `None` where the state is in the state folder.
pub(super) fn of(here: &RepoContext) -> Result<Option<Database>, CliError> {
    let config = here.config(None)?.config;
    let Some(url) = &config.store.url else { return Ok(None) };
    named(here, &config, url, config.store.password.as_deref()).map(Some)
}

/// Returns the database at an address; its other settings come from the configuration.
///
/// # Errors
/// When the vault does not have the secret, or has it for workers.
pub(super) fn named(
    here: &RepoContext,
    config: &Config,
    url: &str,
    password: Option<&str>,
) -> Result<Database, CliError> {
    let it = &config.store;
    let mut database =
        Database::at(url, it.ca.as_deref(), it.name.as_ref().map(RepositoryName::as_str), &here.places.root);
    if let Some(name) = password {
        let found = Vault::at(here.places.secrets()).get(name)?;
        if !matches!(found.delivery, Delivery::Daemon) {
            return Err(CliError::of(format!("the secret {name} is for workers"))
                .because("a worker could get the password of the database")
                .next("provost secret add NAME --daemon"));
        }
        database.password = Some(found.value.into());
    }
    Ok(database)
}

/// Does work for which the database is asked, and says so if it takes longer than a second: a server that is silent is waited for.
pub(super) fn ask<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    out::Progress::begin("waiting for the database").beside(work)
}

/// Checks whether the store of this repository can be opened.
pub(super) fn look(here: &RepoContext, all: bool) -> Result<(), StoreOrConfig> {
    let database = of(here).map_err(StoreOrConfig::Config)?;
    let (state, anchor) = (&here.places.state, here.places.anchor());
    out::Progress::begin("checking the store")
        .beside(|| store::look_in(state, database.as_ref(), Some(&anchor), all))
        .map_err(StoreOrConfig::Store)
}

/// An error of the store, or of the configuration that locates it.
pub(super) enum StoreOrConfig {
    Store(StoreError),
    Config(CliError),
}

impl StoreOrConfig {
    /// Returns it as text, for a row of findings.
    pub(super) fn text(&self) -> String {
        match self {
            StoreOrConfig::Store(err) => err.to_string(),
            StoreOrConfig::Config(err) => err.text(),
        }
    }
}

impl From<StoreOrConfig> for CliError {
    fn from(err: StoreOrConfig) -> Self {
        match err {
            StoreOrConfig::Store(err) => err.into(),
            StoreOrConfig::Config(err) => err,
        }
    }
}

/// Adds the next step to a failed migration: the role matters only where the server has accepted the connection.
fn not_migrated(err: StoreError) -> CliError {
    let next = match &err {
        StoreError::Setting(_) => "write the address as in --url postgres://OWNER@HOST:5432/DATABASE",
        StoreError::Away(_) => "look whether the server runs and listens at this address, then this again",
        err if err.is_of_rights() => {
            "use the role that owns the tables, or one that may make a schema: --url postgres://OWNER@HOST:5432/DATABASE"
        }
        _ => "the same again, once that is mended",
    };
    CliError::of("the database was not migrated").because(err).next(next)
}

pub(super) fn migrate(here: &RepoContext, asked: &Migrate) -> Result<u8, CliError> {
    if asked.print_roles {
        out::text_as_is(store::ROLES)?;
        return Ok(DONE);
    }
    let config = here.config(None)?.config;
    let (url, password) = match &asked.url {
        Some(url) => (Some(url), asked.password.as_deref()),
        None => (config.store.url.as_ref(), config.store.password.as_deref()),
    };
    let Some(url) = url else {
        return Err(CliError::of("there is no database to migrate")
            .because("neither --url nor `[store] url` names one, so the state is in the state folder, where a start \
                migrates it")
            .next("provost store migrate --url postgres://OWNER@HOST:5432/DATABASE"));
    };
    let database = named(here, &config, url, password)?;
    let (state, roles) = (&here.places.state, asked.roles);
    let done = ask(|| store::migrate(state, &database, roles)).map_err(not_migrated)?;
    if here.json {
        out::json(&json!({ "from": done.from, "to": done.to, "missing_roles": done.missing_roles }))?;
        return Ok(DONE);
    }
    out::line(match done.from {
        0 => format!("the tables are made: version {}", done.to),
        from if from == done.to => format!("the tables are of version {} already", done.to),
        from => format!("the tables were of version {from} and are of version {} now", done.to),
    })?;
    if !done.missing_roles.is_empty() {
        out::note(format!(
            "the server has no {}, so that a daemon has to connect as the owner: make them with --roles, or have an \
                administrator run \
             what `provost store migrate --print-roles` prints",
            done.missing_roles.join(" and no ")
        ));
    }
    Ok(DONE)
}
