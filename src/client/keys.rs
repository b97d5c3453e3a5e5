//! Changes keys: in their files first, then in the daemon, if one runs.

use serde_json::{Value, json};

use super::{Client, ClientError, wire};

pub use provost_auth::keys::{KeyDates, KeyError, KeyInfo, KeyRing, Role};
pub use provost_auth::role::is_reserved;

/// Whether a running daemon knows of a change.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// It has taken the change over and put it on record.
    Daemon,
    /// No daemon runs; the next one will read the files.
    Nobody,
    /// One runs and could not be told; it goes on with the old keys.
    Failed(ClientError),
}

/// Has a running daemon take the files over and put on record what was done: `what` to whose key, without secrets.
pub async fn tell(client: &Client, what: &str, ident: &str, details: Value) -> ReloadOutcome {
    let record = wire::Record { what: what.into(), subject: ident.into(), details };
    let told = async {
        client.reload().await?;
        client.record(&record).await
    };
    match told.await {
        Ok(_) => ReloadOutcome::Daemon,
        Err(ClientError::NotRunning(_)) => ReloadOutcome::Nobody,
        Err(err) => ReloadOutcome::Failed(err),
    }
}

/// What the record says of a key: its id and dates.
pub fn on_record(info: &KeyInfo) -> Value {
    let ids: Vec<&str> = info.keys.iter().map(|key| key.id.as_str()).collect();
    json!({ "role": info.role, "keys": ids, "revoked": info.revoked.map(|at| at.rfc3339()) })
}
