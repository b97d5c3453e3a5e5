//! The addresses of the servers, from `[store] url`.

use std::net::IpAddr;
use std::path::Path;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};

use super::Database;
use super::tls::Tls;
use crate::{Password, StoreError};
use provost_base::limits::{
    HOST_KEEPALIVE_IDLE_S, HOST_KEEPALIVE_INTERVAL_S, HOST_KEEPALIVE_TRIES, HOST_TCP_WAIT_S,
};

/// One of the servers that are tried.
#[derive(Clone)]
pub(super) struct Server {
    config: Config,
    password: Option<Password>,
    /// TLS, if it is used; `None` on a Unix socket, and on the loopback unless the address asks for it.
    pub(super) tls: Option<Tls>,
    /// The host and port, for people.
    pub(super) name: Box<str>,
}

impl Server {
    /// Returns the parameters of a new connection. Blocking: the password is read.
    ///
    /// # Errors
    /// [`StoreError::Database`] if the password cannot be read now; the next connection reads it again.
    pub(super) fn config(&self) -> Result<Config, StoreError> {
        let mut config = self.config.clone();
        if let Some(password) = &self.password {
            let read = password.read();
            let secret = read.map_err(|why| {
                StoreError::Database(format!("the password of `[store] url` cannot be read: {why}").into())
            })?;
            config.password(secret.expose());
        }
        Ok(config)
    }
}

/// The form of an address, as advice.
const FORM: &str = "write postgres://USER@HOST:5432/DATABASE";

/// Returns the error for a mistake in `[store] url`, with the correction.
fn unfit(why: impl std::fmt::Display) -> StoreError {
    StoreError::Setting(format!("`url`: {why}").into())
}

/// Returns the servers of an address.
///
/// # Errors
/// [`StoreError::Setting`] with the mistake.
pub(super) fn servers(of: &Database, application: &str) -> Result<Vec<Server>, StoreError> {
    // This is libpq's word for the check that is always made here; weaker checks are not offered.
    let text = of.url.replace("sslmode=verify-full", "sslmode=require");
    let all: Config = text.parse().map_err(|err| {
        unfit(format_args!("it is no address of PostgreSQL ({}): {FORM}", with_cause(&err)))
    })?;
    if all.get_password().is_some() {
        return Err(unfit(
            "it has a password, and settings are printed: take it out, keep it with `provost secret add NAME --daemon`, and \
             write `password = \"NAME\"`",
        ));
    }
    if !all.get_hostaddrs().is_empty() {
        return Err(unfit(
            "`hostaddr` is not used here: write the server's name in its place, since the certificate is for it",
        ));
    }
    if all.get_target_session_attrs() != TargetSessionAttrs::Any {
        return Err(unfit(
            "leave `target_session_attrs` out: the server with the highest timeline is taken, since an old primary \
                that comes back \
             says of itself that it can be written, too",
        ));
    }
    let (hosts, ports) = (all.get_hosts(), all.get_ports());
    if hosts.is_empty() {
        return Err(unfit(format_args!("it names no server: {FORM}")));
    }
    let mut found = Vec::with_capacity(hosts.len());
    for (at, host) in hosts.iter().enumerate() {
        let port = match ports {
            [] => 5432,
            [one] => *one,
            several => {
                *several.get(at).ok_or_else(|| unfit("it has another number of ports than of servers"))?
            }
        };
        found.push(server(&all, host, port, of, application)?);
    }
    Ok(found)
}

fn server(
    all: &Config,
    host: &Host,
    port: u16,
    of: &Database,
    application: &str,
) -> Result<Server, StoreError> {
    let mut config = Config::new();
    config.port(port).application_name(application);
    config.user(
        all.get_user().ok_or_else(|| unfit("it names no user: write postgres://USER@HOST:5432/DATABASE"))?,
    );
    config.dbname(
        all.get_dbname()
            .ok_or_else(|| unfit("it names no database: write postgres://USER@HOST:5432/DATABASE"))?,
    );
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    let near = |name: &str| name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    let (name, secure) = match host {
        #[cfg(unix)]
        Host::Unix(path) => {
            config.host_path(path);
            (format!("{}/.s.PGSQL.{port}", path.display()), false)
        }
        Host::Tcp(name) => {
            config
                .host(name)
                .keepalives_idle(seconds(HOST_KEEPALIVE_IDLE_S))
                .tcp_user_timeout(seconds(HOST_TCP_WAIT_S));
            config
                .keepalives_interval(seconds(HOST_KEEPALIVE_INTERVAL_S))
                .keepalives_retries(HOST_KEEPALIVE_TRIES);
            (format!("{name}:{port}"), !near(name) || all.get_ssl_mode() == SslMode::Require)
        }
    };
    if secure && all.get_ssl_mode() == SslMode::Disable {
        return Err(unfit(format!(
            "`sslmode=disable` would send everything in the clear to {name}, which is not this machine: leave it out"
        )));
    }
    let tls = secure.then(|| Tls::trusting(of.ca.as_deref().map(Path::new))).transpose()?;
    config.ssl_mode(if secure { SslMode::Require } else { SslMode::Disable });
    config.channel_binding(if secure { ChannelBinding::Require } else { ChannelBinding::Disable });
    Ok(Server { config, password: of.password.clone(), tls, name: name.into() })
}

fn seconds(number: u64) -> std::time::Duration {
    std::time::Duration::from_secs(number)
}

/// Returns the text of a client's error with its causes, which the error's own text leaves out.
pub(super) fn with_cause(err: &tokio_postgres::Error) -> String {
    let mut text = err.to_string();
    let mut cause = std::error::Error::source(err);
    while let Some(it) = cause {
        let more = it.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = it.source();
    }
    text
}
