//! Reads the query of a target: `since`, `since_time`, `wait` and `numbered`.

use std::borrow::Cow;
use std::str::Utf8Error;

use hyper::StatusCode;
use percent_encoding::percent_decode_str;

use super::No;
use super::map::BrokerError;

/// The parameters that the door knows; it ignores the others.
#[derive(Default)]
pub(super) struct Query {
    since: Option<String>,
    since_time: Option<String>,
    wait: Option<String>,
    numbered: Option<String>,
}

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// A parameter that occurs twice.
    pub(super) fn read(text: &str) -> Result<Self, No> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let [name, value] = [name, value].map(|it| {
                let spaced = it.replace('+', " ");
                decoded(&spaced).unwrap_or_else(|_| "\u{fffd}".into())
            });
            let slot = match name.as_str() {
                "since" => &mut query.since,
                "since_time" => &mut query.since_time,
                "wait" => &mut query.wait,
                "numbered" => &mut query.numbered,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                let what = format!("Failed to deserialize query string: duplicate field `{name}`");
                return Err(No::Text(StatusCode::BAD_REQUEST, what));
            }
        }
        Ok(query)
    }

    /// Returns the number after which messages are wanted.
    pub(super) fn since(&self) -> Result<Option<u64>, BrokerError> {
        number("since", self.since.as_deref())
    }

    /// Returns the time after which messages are wanted, in seconds since 1970.
    pub(super) fn since_time(&self) -> Result<Option<u64>, BrokerError> {
        number("since_time", self.since_time.as_deref())
    }

    /// Returns how long to wait if there is no message, in seconds.
    pub(super) fn wait(&self) -> Result<Option<u64>, BrokerError> {
        number("wait", self.wait.as_deref())
    }

    /// Returns whether messages are wanted with their numbers and times.
    pub(super) fn numbered(&self) -> bool {
        self.numbered.as_deref().is_some_and(|it| !matches!(it, "0" | "false"))
    }
}

fn number(name: &str, text: Option<&str>) -> Result<Option<u64>, BrokerError> {
    let bad = |_| BrokerError::new(format!("{name} must be a valid u64"));
    text.map(str::parse).transpose().map_err(bad)
}

/// Decodes percent-encoding. A percent sign without two digits stands for itself.
///
/// # Errors
/// Bytes that are no text.
pub(super) fn decoded(text: &str) -> Result<String, Utf8Error> {
    percent_decode_str(text).decode_utf8().map(Cow::into_owned)
}
