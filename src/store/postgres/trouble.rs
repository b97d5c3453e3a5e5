//! Errors of PostgreSQL and of the connection, as errors of the store with the next step.

use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use super::address::with_cause;
use super::start::replaced;
use crate::StoreError;
use crate::error::READ_ONLY;

/// Checks whether the server has answered with an error of the statement, so that nothing was done. An error that
/// ends the session may come after a commit.
pub(super) fn was_answered(err: &Error) -> bool {
    err.as_db_error().is_some_and(|it| it.parsed_severity() == Some(Severity::Error))
}

/// Checks whether statements have to be prepared again, since the tables have changed meanwhile.
pub(super) fn is_of_other_tables(err: &Error) -> bool {
    err.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED)
}

/// Checks whether the transaction had failed before this statement.
pub(super) fn came_behind(err: &Error) -> bool {
    err.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

/// The error for a pooler without sessions.
pub(super) const POOLED: &str = "`url`: a pooler in transaction or statement mode is in between, where a session's settings and statements are not \
     its own: set pool_mode = session for this database, or write the server's own address";

/// Returns the store's error for an error of the client.
pub(super) fn store_error(err: Error) -> StoreError {
    let Some(code) = err.code().cloned() else {
        return StoreError::Away(with_cause(&err).into());
    };
    let says = err.as_db_error().map_or_else(|| err.to_string(), |it| it.message().to_owned());
    let told = |next: &str| StoreError::Database(format!("{says} ({}); {next}", code.code()).into());
    match code.code() {
        "53100" => StoreError::Full(Box::new(err)),
        "25006" => StoreError::Away(
            format!(
                "{says}: {READ_ONLY}; the primary has to be among the \
            servers of `[store] url`"
            )
            .into(),
        ),
        "53300" => StoreError::Away(
            format!("{says} (53300): raise `max_connections`, or the role's connection limit").into(),
        ),
        // The prepared statement belongs, or belonged, to another session: a pooler gives the connection to others.
        "26000" | "42P05" => StoreError::Setting(POOLED.into()),
        it if it.starts_with("08") && says.contains("statement pooling") => {
            StoreError::Setting(POOLED.into())
        }
        // The fence of a batch: see `turn.rs`.
        "22012" => replaced(),
        "55P03" => told(
            "another session holds the repository's row: try again; `select * from pg_stat_activity`
            shows which one it is",
        ),
        "57014" => told("the statement took too long: try again, and look at the server's load"),
        "42501" => told(
            "run `provost store migrate` with the owner's role, and make the daemon's role a member of \
            provost_host",
        ),
        "42P01" | "3F000" | "42703" => told("run `provost store migrate`, which makes the tables"),
        "3D000" => told("make the database: createdb --owner=provost_owner NAME"),
        "28P01" | "28000" => told(
            "check the user in `[store] url`, the secret of `[store] password`, and the \
            server's pg_hba.conf",
        ),
        // The server was cut off by itself or by an operator, is starting, or is out of memory: it will come back.
        it if it.starts_with("57P") || it.starts_with("08") || it.starts_with("53") => {
            StoreError::Away(format!("{says} ({it})").into())
        }
        "25P03" | "25P04" => StoreError::Away(format!("{says} ({})", code.code()).into()),
        _ => told("the server's log has more"),
    }
}
