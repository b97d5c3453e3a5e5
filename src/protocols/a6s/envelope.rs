//! Reads requests and writes answers. A6s 2.
//!
//! A message without an id that could be echoed cannot be answered; it is passed over, as the document says.
//! An id is sent back exactly as it came.

use serde::Serialize;
use serde_json::value::RawValue;

use super::call::{Call, is_empty_list};
use super::wire;
use provost_base::limits::{A6S_REQUEST_ID_BYTES_MAX, JSON_DEPTH_MAX};
use provost_domain::Refusal;

/// A sentence for the asker. Never empty: an empty one counts as success with some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct A6sError(String);

/// Longest sentence, in bytes: what a reader of JSON complains about may be anything that a peer has sent.
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

    /// The sentence that the client is shown.
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
    /// Whether it says by an empty list that there are no parameters.
    pub(super) says_list: bool,
}

impl Request {
    /// Reads a message; `None` for a message that cannot be answered, since it has no id or is no JSON.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        // Before anything is read that follows it down.
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

/// Whether an id is one that can be echoed: a string or a number, and no longer than need be.
fn is_id(id: &str) -> bool {
    id.len() <= A6S_REQUEST_ID_BYTES_MAX
        && id.starts_with(|it: char| it == '"' || it == '-' || it.is_ascii_digit())
}

/// Whether some JSON goes deeper than so many levels. Looks at brackets alone, so that it holds for anything.
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

/// How many bytes a string takes, its last quote included.
fn end_of_string(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        // Skips the byte behind a backslash, whichever it is: an escaped quote does not end the string.
        at = (at + 1).min(bytes.len());
    }
    bytes.len()
}

/// The answer of a method.
#[derive(Debug)]
pub(super) struct Said {
    result: Result<Box<RawValue>, A6sError>,
    /// The id by which feedback refers to it; `None` for answers that take no feedback.
    pub(super) log: Option<String>,
}

impl Said {
    /// An answer with this result, and without a log that feedback could refer to.
    ///
    /// # Errors
    /// When it cannot be written, which types of ours always can.
    pub(super) fn new(result: &impl Serialize) -> Result<Self, A6sError> {
        let result = serde_json::value::to_raw_value(result).map_err(|err| A6sError::new(err.to_string()))?;
        Ok(Self { result: Ok(result), log: None })
    }

    /// No result, of something that has a log all the same.
    pub(super) fn failure(fault: A6sError, log: Option<String>) -> Self {
        Self { result: Err(fault), log }
    }
}

/// An answer as it travels.
pub(super) fn answer(id: &RawValue, said: Result<&Said, &A6sError>) -> String {
    let (result, log) = match said {
        Ok(Said { result, log }) => (result.as_deref(), log.as_deref()),
        Err(fault) => (Err(fault), None),
    };
    let text = match result {
        Ok(result) => serde_json::to_string(&wire::Success { id, result, conversation_log_id: log }),
        Err(A6sError(error)) => serde_json::to_string(&wire::Failure { id, error, conversation_log_id: log }),
    };
    // Our own types always encode.
    text.unwrap_or_default()
}

/// An event as it travels.
pub(super) fn event(kind: &str, data: impl Serialize) -> String {
    serde_json::to_string(&wire::Event { kind, data }).unwrap_or_default()
}
