//! The handshake with each server, its settings, and which of the servers is the one to talk to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Config, Connection, Error, NoTls, Socket};

use super::super::address::{Server, with_cause};
use super::super::trouble;
use super::{Heard, Link, Place, Purpose};
use crate::StoreError;
use crate::error::READ_ONLY;
use provost_base::limits::{
    CONNECT_MS_MAX, IDLE_IN_TRANSACTION_MS, LOCK_TIMEOUT_MS, LONG_STATEMENT_MS_MAX, STATEMENT_MS_MAX,
};

/// The time of handshakes that are made at the same time.
pub(super) struct Haste<'a> {
    /// The newest history that was seen. A server with an earlier part of it, or with another one, takes no time from the others.
    pub(super) least: &'a Place,
    /// Whether a server of that history has let this host in.
    pub(super) answered: AtomicBool,
    /// The time of a handshake while none has.
    pub(super) patience: Duration,
}

/// Does the whole handshake with a server. It takes at most [`CONNECT_MS_MAX`] if another server of the same history is there by then: a server that is silent
/// keeps no host from its successor. If none is, a server that is only far away gets more time.
pub(super) async fn open(
    server: &Server,
    purpose: Purpose,
    heard: &Option<Heard>,
    haste: &Haste<'_>,
) -> Result<Link, StoreError> {
    let config = server.config()?;
    let mut handshake = std::pin::pin!(async {
        match &server.tls {
            Some(tls) => link(&config, tls.clone(), purpose, heard).await,
            None => link(&config, NoTls, purpose, heard).await,
        }
    });
    let mut limit = Duration::from_millis(CONNECT_MS_MAX);
    let mut done = timeout(limit, &mut handshake).await;
    if done.is_err() && haste.patience > limit && !haste.answered.load(Ordering::Relaxed) {
        done = timeout(haste.patience - limit, handshake).await;
        limit = haste.patience;
    }
    let done = done.map_err(|_| StoreError::silence(limit)).flatten();
    let is_of_it = |it: &Link| !it.place.is_before(haste.least) && !it.place.is_foreign(haste.least);
    haste.answered.fetch_or(done.as_ref().is_ok_and(is_of_it), Ordering::Relaxed);
    done
}

async fn link<T>(config: &Config, tls: T, purpose: Purpose, heard: &Option<Heard>) -> Result<Link, StoreError>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await.map_err(refused)?;
    let warned = Arc::new(AtomicBool::new(false));
    let driver = tokio::spawn(drive(connection, warned.clone(), heard.clone()));
    client.batch_execute(&settings(purpose)).await.map_err(trouble::store_error)?;
    // For some time after a promotion, the control file still has the old timeline; this function returns the one
    // that is written, and fails on a standby.
    let sql = if purpose == Purpose::Read {
        "select (select system_identifier from pg_control_system())::text, case when pg_is_in_recovery() then 0 else \
         ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint end, \
         current_setting('server_version')"
    } else {
        "select (select system_identifier from pg_control_system())::text, \
         ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint, \
         current_setting('server_version')"
    };
    let row =
        client.query_one(sql, &[]).await.map_err(|err| match err.code().map(|it| it.code().to_owned()) {
            Some(code) if code == "55000" => StoreError::Away(READ_ONLY.into()),
            _ => trouble::store_error(err),
        })?;
    let timeline: i64 = row.try_get(1).map_err(trouble::store_error)?;
    let place = Place {
        system: row.try_get(0).map_err(trouble::store_error)?,
        timeline: u64::try_from(timeline).map_err(StoreError::damaged)?,
    };
    let version: String = row.try_get(2).map_err(trouble::store_error)?;
    let (name, version) = (Arc::from(""), version.into());
    Ok(Link {
        client: Arc::new(client),
        statements: HashMap::new(),
        place,
        since: Instant::now(),
        name,
        version,
        warned,
        driver,
    })
}

/// Returns why a handshake failed. The client's own message leaves out that the cause is a certificate without a binding.
fn refused(err: Error) -> StoreError {
    let says = with_cause(&err);
    if says.contains("channel binding") {
        return StoreError::Database(
            format!(
                "{says}: the server has to ask for a password with scram-sha-256 (pg_hba.conf), and its certificate \
                    must not be of \
                 Ed25519, for which PostgreSQL has no channel binding"
            )
            .into(),
        );
    }
    if err.code().is_none() && says.contains("certificate") {
        return StoreError::Database(
            format!("{says}: name the authority of the server's certificate in `[store] ca`, and the server by the \
                name in it").into(),
        );
    }
    trouble::store_error(err)
}

fn settings(purpose: Purpose) -> String {
    let mut text = format!(
        "set lock_timeout = {LOCK_TIMEOUT_MS}; set idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}; \
         set statement_timeout = {STATEMENT_MS_MAX}; set default_transaction_isolation = 'read committed'; \
         set synchronous_commit = on; set client_encoding = 'UTF8'; set standard_conforming_strings = on; \
         set search_path = pg_catalog; set client_connection_check_interval = 1000;"
    );
    match purpose {
        Purpose::Move => text.push_str(&format!(
            "set statement_timeout = {LONG_STATEMENT_MS_MAX}; set idle_in_transaction_session_timeout = {LONG_STATEMENT_MS_MAX};"
        )),
        Purpose::Write | Purpose::Read | Purpose::Migrate | Purpose::Listen => text.push_str(
            "select set_config('transaction_timeout', '10s', false) where current_setting('server_version_num')::int >= 170000;",
        ),
    }
    if purpose == Purpose::Listen {
        // A word is a commit, which would wait for the disk and for standbys, under a lock over all databases of
        // the server. A lost word only costs a beat.
        text.push_str("set synchronous_commit = off;");
    }
    if purpose == Purpose::Read {
        text.push_str("set default_transaction_read_only = on;");
    }
    text
}

/// Sends and receives, and notes warnings: one during COMMIT may mean that no standby has the data.
async fn drive<S>(mut connection: Connection<Socket, S>, warned: Arc<AtomicBool>, heard: Option<Heard>)
where
    S: tokio_postgres::tls::TlsStream + Unpin + Send,
{
    loop {
        match std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notice(it))) => {
                if it.code().code().starts_with("01") {
                    tracing::warn!(code = it.code().code(), says = it.message(), "the database warns");
                    warned.store(true, Ordering::Release);
                }
            }
            Some(Ok(AsyncMessage::Notification(it))) => {
                heard.iter().for_each(|heard| heard(it.channel(), it.payload()));
            }
            Some(Ok(_)) => {}
            Some(Err(err)) => return tracing::debug!(%err, "the connection to the database has ended"),
            None => return,
        }
    }
}

/// Returns the connection to the server with the highest timeline, of those of the database that was seen if one of them answers. An old primary
/// that comes back claims that it can be written.
pub(super) fn best(
    tried: Vec<Result<Link, StoreError>>,
    servers: &[Server],
    least: &Place,
) -> Result<Link, StoreError> {
    let (mut best, mut whys, mut told): (Option<Link>, Vec<String>, Option<StoreError>) =
        (None, Vec::new(), None);
    for (found, server) in tried.into_iter().zip(servers) {
        match found {
            Ok(link) if link.place.is_before(least) => {
                whys.push(format!(
                    "{}: an old primary, at timeline {}, and {} was seen (start its successor; if that is gone for good, see docs/hosts.md, \"Go on after a loss\")",
                    server.name, link.place.timeline, least.timeline
                ));
            }
            Ok(mut link) => {
                link.name = Arc::from(&*server.name);
                let rank = |it: &Link| (!it.place.is_foreign(least), it.place.timeline);
                if best.as_ref().is_none_or(|it| rank(it) < rank(&link)) {
                    best = Some(link);
                }
            }
            Err(err) => {
                whys.push(format!("{}: {}", server.name, err.short()));
                told = told.or(Some(err).filter(|it| !matches!(it, StoreError::Away(_))));
            }
        }
    }
    match (best, told) {
        (Some(link), _) => Ok(link),
        (None, Some(err)) if servers.len() == 1 => Err(err),
        (None, _) => Err(StoreError::Away(whys.join("; ").into())),
    }
}
