//! Questions about code as they travel, and what is found in it. A6s 3.0 and 3.2.

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::text::{Code, Path, Text, Word};

/// `code.explain`, `code.refactor`, `code.generateTests`, `code.review`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfCode {
    /// What is selected, as it is but for blanks at both ends.
    pub code: Code,
    /// As the editor calls it; may be empty.
    pub language: Option<Word>,
    /// Absolute, or the name of a buffer without a file; may be empty.
    pub file_path: Option<Path>,
    /// For `code.refactor`. Nothing but blanks is nothing.
    #[serde(default, deserialize_with = "unless_blank")]
    pub instructions: Option<Text>,
    /// For `code.review`; everything where it is missing.
    pub review_type: Option<ReviewType>,
}

impl OfCode {
    /// Empty where it is not said.
    pub fn language(&self) -> &str {
        self.language.as_ref().map_or("", Word::as_str)
    }

    /// Empty where it is not said.
    pub fn file_path(&self) -> &str {
        self.file_path.as_ref().map_or("", Path::as_str)
    }

    /// The user's own words.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_ref().map(Text::as_str)
    }
}

fn unless_blank<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.filter(|text| !text.trim().is_empty());
    text.map(|text| Text::deserialize(text.into_deserializer())).transpose()
}

/// The kind of faults that a review looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewType {
    /// Faults by which the code could be abused.
    Security,
    /// What takes longer than it has to.
    Performance,
    /// What is hard to read and to change.
    Quality,
    /// All of these.
    #[default]
    All,
}

/// The answer to `code.review`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Review {
    /// The worst need not come first.
    pub issues: Vec<Issue>,
    /// In a few sentences.
    pub summary: String,
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Issue {
    /// `error`, `warning`, `info`.
    pub severity: &'static str,
    /// The finding in a sentence.
    pub message: String,
    /// In which line of the code that was sent, from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// A way to mend it, if the agent has named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}
