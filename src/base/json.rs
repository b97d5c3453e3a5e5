//! Provost's canonical JSON: the text that is signed, stored and compared.
//!
//! Promises: the same value has one text, regardless of its form on arrival and of the features of
//! `serde_json`, which it does not use. A number gets the text that existing clients read and print back
//! unchanged, so that they find the signed bytes. The caller interprets the value.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::limits::JSON_DEPTH_MAX;

mod canon;
mod number;

pub use canon::push_text;
pub use number::Reading;

/// The reason why some JSON text was refused. Safe to show to the peer that sent it: it quotes nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadJson(pub Box<str>);

/// One JSON value as canonical text: compact, keys sorted, last duplicate wins, numbers at their fixpoint.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Json(Arc<str>);

impl Json {
    /// Parses any JSON text and brings it to canonical form.
    ///
    /// # Errors
    /// [`BadJson`] if the text is not one JSON value by RFC 8259, is nested deeper than [`JSON_DEPTH_MAX`], has
    /// half of a surrogate pair in a string, or a number that no double can hold.
    pub fn parse(text: &str) -> Result<Self, BadJson> {
        canon::canonical(text, Reading::Settled, JSON_DEPTH_MAX).map(|canonical| Self(canonical.text.into()))
    }

    /// Returns the canonical form of a value that Provost has built.
    ///
    /// Its depth is not limited, since Provost's answers wrap the values of peers.
    pub fn from_value(value: &serde_json::Value) -> Self {
        let text = value.to_string();
        // A number at the very edge of a double's range may have no fixpoint; it is then printed exactly.
        let canonical = canon::canonical(&text, Reading::Settled, usize::MAX)
            .or_else(|_| canon::canonical(&text, Reading::Exact, usize::MAX));
        Self(canonical.map_or(text, |canonical| canonical.text).into())
    }

    /// Returns `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Returns the canonical text, as it is signed, stored and compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value, for a look inside.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// Returns the canonical texts that a sender of `text` may have signed, the likeliest first, each made on demand.
///
/// They differ only in how numbers with a fraction or an exponent are printed: as they were spelled, as their
/// exact double prints, and as the double prints that `serde_json` reads by default. Text without such
/// numbers has one canonical form.
///
/// # Errors
/// [`BadJson`] as for [`Json::parse`].
pub fn canon_variants(text: &str) -> Result<impl Iterator<Item = String>, BadJson> {
    let spelled = canon::canonical(text, Reading::Spelled, JSON_DEPTH_MAX)?;
    let others: &[Reading] = if spelled.fractions { &[Reading::Exact, Reading::Inexact] } else { &[] };
    let others = others.iter().filter_map(move |reading| {
        canon::canonical(text, *reading, JSON_DEPTH_MAX).ok().map(|canonical| canonical.text)
    });
    Ok(std::iter::once(spelled.text).chain(others))
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// Reads from JSON text only, and not through `#[serde(flatten)]` or enums without an outer tag: serde keeps no
/// text for those.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // A stored value may wrap a value of a peer that was as deep as allowed.
        canon::canonical(raw.get(), Reading::Settled, 2 * JSON_DEPTH_MAX)
            .map(|canonical| Self(canonical.text.into()))
            .map_err(serde::de::Error::custom)
    }
}
