//! Reads requests and writes answers. A6s 2.
//!
//! A message without a usable id cannot be answered; it is ignored, as the document says. An id is sent back
//! exactly as it came.

use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Call, is_empty_list};
use super::wire;
use provost_base::limits::{A6S_REQUEST_ID_BYTES_MAX, JSON_DEPTH_MAX};
use provost_domain::Refusal;

/// An error as a sentence for the client. Never empty: some clients take an empty one for success.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct A6sError(String);

/// The longest sentence, in bytes: an error of the JSON reader may quote any bytes of the peer.
const FAULT_BYTES_MAX: usize = 2_000;

impl A6sError {
    pub(super) fn new(says: impl Into<String>) -> Self {
        let mut says: String = says.into();
        if says.len() > FAULT_BYTES_MAX {
            says.truncate(says.floor_char_boundary(FAULT_BYTES_MAX));
            says.push('…');
        }
        if says.trim().is_empty() {
            says = "It failed without saying why".into();
        }
        Self(says)
    }

    pub(super) fn unknown_method(name: &str) -> Self {
        Self::new(format!("Unknown method: {name}"))
    }

    /// Returns the sentence for the client.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Refusal> for A6sError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.to_string())
    }
}

/// A request that can be answered.
pub(super) struct Request {
    pub(super) id: Box<RawValue>,
    pub(super) call: Result<Call, A6sError>,
    /// Whether the parameters are an empty list.
    pub(super) says_list: bool,
}

impl Request {
    /// Reads a message; `None` for a message that cannot be answered, since it has no id or is not JSON.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        // This comes before any parser that recurses.
        if is_deeper(bytes, JSON_DEPTH_MAX) {
            return None;
        }
        let parts: wire::Request<'_> = serde_json::from_slice(bytes).ok()?;
        let id = parts.id.filter(|id| is_id(id.get()))?;
        let says_list = parts.params.is_some_and(|it| is_empty_list(it.get()));
        Some(Self { id: id.to_owned(), call: call(parts), says_list })
    }
}

fn call(parts: wire::Request<'_>) -> Result<Call, A6sError> {
    let method = parts.method.and_then(|it| serde_json::from_str::<String>(it.get()).ok());
    let method = method.ok_or_else(|| A6sError::new("A request needs a `method`, which is a string"))?;
    Call::read(&method, parts.params.map(RawValue::get))
}

/// Returns whether an id can be echoed: it is a string or a number, and not too long.
fn is_id(id: &str) -> bool {
    id.len() <= A6S_REQUEST_ID_BYTES_MAX
        && id.starts_with(|it: char| it == '"' || it == '-' || it.is_ascii_digit())
}

/// Returns whether JSON is nested deeper than this many levels. It only counts brackets, so it works for any bytes.
fn is_deeper(bytes: &[u8], most: usize) -> bool {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at += end_of_string(&bytes[at + 1..]),
            _ => {}
        }
        if depth > most {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns the length of a string in bytes, with its last quote.
fn end_of_string(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // This skips the byte after a backslash: an escaped quote does not end the string.
        at = (at + 1).min(bytes.len());
    }
    bytes.len()
}

/// The answer of a method.
#[derive(Debug)]
pub(super) struct Said {
    result: Result<Box<RawValue>, A6sError>,
    /// The id by which feedback refers to the answer; `None` for answers that take no feedback.
    pub(super) log: Option<String>,
}

impl Said {
    /// Makes an answer with this result, and without a log for feedback.
    ///
    /// # Errors
    /// The result cannot be encoded, which does not happen for Provost's own types.
    pub(super) fn new(result: &impl Serialize) -> Result<Self, A6sError> {
        let result = serde_json::value::to_raw_value(result).map_err(|err| A6sError::new(err.to_string()))?;
        Ok(Self { result: Ok(result), log: None })
    }

    /// Makes an answer with an error, which may have a log all the same.
    pub(super) fn failure(fault: A6sError, log: Option<String>) -> Self {
        Self { result: Err(fault), log }
    }
}

/// Encodes an answer.
pub(super) fn answer(id: &RawValue, said: Result<&Said, &A6sError>) -> String {
    let (result, log) = match said {
        Ok(Said { result, log }) => (result.as_deref(), log.as_deref()),
        Err(fault) => (Err(fault), None),
    };
    let text = match result {
        Ok(result) => serde_json::to_string(&wire::Success { id, result, conversation_log_id: log }),
        Err(A6sError(error)) => serde_json::to_string(&wire::Failure { id, error, conversation_log_id: log }),
    };
    // Provost's own types can always be encoded.
    text.unwrap_or_default()
}

/// Encodes an event.
pub(super) fn event(kind: &str, data: impl Serialize) -> String {
    serde_json::to_string(&wire::Event { kind, data }).unwrap_or_default()
}
