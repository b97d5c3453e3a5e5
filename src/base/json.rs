//! Canonical JSON, ours: what is signed, stored and compared.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Why some JSON text was turned down. Safe to show to the peer that sent it.
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
    /// [`BadJson`] when the text is not one JSON value, or nested too deeply.
    pub fn parse(text: &str) -> Result<Self, BadJson> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| BadJson(e.to_string().into()))?;
        Ok(Self::from_value(&value))
    }

    /// The canonical form of a value built here.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, to look inside.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}
