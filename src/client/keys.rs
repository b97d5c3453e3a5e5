//! Changes keys: in their files first, then in the daemon, if one runs.

use serde_json::{Value, json};

use super::{Client, ClientError, wire};

pub use provost_auth::keys::{KeyDates, KeyError, KeyInfo, KeyRing, Role};
pub use provost_auth::role::is_reserved;

/// Whether a running daemon has taken a change over.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The daemon has taken the change over and recorded it.
    Daemon,
    /// No daemon runs; the next one will read the files.
    Nobody,
    /// A daemon runs, but could not be told; it goes on with the old keys.
    Failed(ClientError),
}

/// Makes a running daemon read the files again and record the change: `what` was done to the key of `ident`; `details` have no secrets.
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

/// Returns the members of a key that are recorded: its role, ids and dates.
pub fn on_record(info: &KeyInfo) -> Value {
    let ids: Vec<&str> = info.keys.iter().map(|key| key.id.as_str()).collect();
    json!({ "role": info.role, "keys": ids, "revoked": info.revoked.map(|at| at.rfc3339()) })
}
