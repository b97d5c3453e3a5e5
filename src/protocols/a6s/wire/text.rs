//! Texts within their bounds. A6s 3.3.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use provost_base::limits::{
    A6S_CODE_BYTES_MAX, A6S_CONTEXT_BYTES_MAX, A6S_TEXT_CHARS_MAX, ID_LEN_MAX, PATH_LEN_MAX,
};

/// Defines a bounded text, whose errors name its kind.
macro_rules! bounded {
    ($(#[doc = $about:literal])+ $Name:ident, $check:expr $(, $Default:ident)?) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Eq, Debug $(, $Default)?)]
        pub struct $Name(Box<str>);

        impl $Name {
            /// Returns the text exactly as the client sent it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                let check: fn(&str) -> Result<(), String> = $check;
                check(&text).map_err(D::Error::custom)?;
                Ok(Self(text.into()))
            }
        }
    };
}

bounded!(
    /// A text that a person has written: not blank, and bounded.
    Text,
    |text| {
        not_blank(text)?;
        // A text has at most as many characters as bytes.
        let fits = text.len() <= A6S_TEXT_CHARS_MAX || text.trim().chars().count() <= A6S_TEXT_CHARS_MAX;
        if fits { Ok(()) } else { Err(format!("is longer than {A6S_TEXT_CHARS_MAX} characters")) }
    }
);

bounded!(
    /// The name of a thing.
    Id,
    |text| {
        not_blank(text)?;
        at_most(text, ID_LEN_MAX)
    }
);

bounded!(
    /// A word that may be empty.
    Word,
    |text| at_most(text, ID_LEN_MAX),
    Default
);

bounded!(
    /// A path, or any other name of a buffer; may be empty.
    Path,
    |text| at_most(text, PATH_LEN_MAX),
    Default
);

bounded!(
    /// Code, kept unchanged.
    Code,
    |text| {
        not_blank(text)?;
        at_most(text, A6S_CODE_BYTES_MAX)
    }
);

fn not_blank(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Err("is empty".into()) } else { Ok(()) }
}

fn at_most(text: &str, bytes: usize) -> Result<(), String> {
    if text.len() <= bytes { Ok(()) } else { Err(format!("is longer than {bytes} bytes")) }
}

/// Any JSON, unparsed.
#[derive(Clone, Debug)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Returns the JSON text exactly as the client sent it.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        at_most(raw.get(), A6S_CONTEXT_BYTES_MAX).map_err(D::Error::custom)?;
        Ok(Self(raw))
    }
}
