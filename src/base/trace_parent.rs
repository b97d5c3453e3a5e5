//! The header `traceparent`: the trace and the span within which something was asked for. W3C Trace Context.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A trace, a span of it, and whether it is sampled, as they came with a request. Written as version 00 writes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext {
    /// The trace; not all zeros.
    pub trace: [u8; 16],
    /// The span; not all zeros.
    pub span: [u8; 8],
    /// Whether the caller records it.
    pub sampled: bool,
}

/// A text that is no such header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("is no `traceparent` of W3C Trace Context")]
pub struct BadTraceContext;

impl TraceContext {
    /// The value of the header. Of a later version its first parts are taken, as the standard says.
    ///
    /// # Errors
    /// [`BadTraceContext`] for what a receiver has to pass over.
    pub fn parse(text: &str) -> Result<Self, BadTraceContext> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(BadTraceContext);
        let version: [u8; 1] = bytes(next()?)?;
        let (trace, span, flags) = (bytes(next()?)?, bytes(next()?)?, bytes::<1>(next()?)?);
        let is_whole = version != [0] || parts.next().is_none();
        if version == [0xff] || !is_whole || trace == [0; 16] || span == [0; 8] {
            return Err(BadTraceContext);
        }
        Ok(Self { trace, span, sampled: flags[0] & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.iter().try_for_each(|it| write!(f, "{it:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|it| write!(f, "{it:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = BadTraceContext;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<TraceContext> for String {
    fn from(it: TraceContext) -> Self {
        it.to_string()
    }
}

/// So many bytes of lower-case hexadecimal digits.
fn bytes<const N: usize>(digits: &str) -> Result<[u8; N], BadTraceContext> {
    if digits.len() != 2 * N || !digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(BadTraceContext);
    }
    let mut found = [0; N];
    for (at, byte) in found.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| BadTraceContext)?;
    }
    Ok(found)
}
