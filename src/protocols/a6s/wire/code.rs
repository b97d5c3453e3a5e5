//! The types for questions about code, and for findings. A6s 3.0 and 3.2.

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::text::{Code, Path, Text, Word};

/// `code.explain`, `code.refactor`, `code.generateTests`, `code.review`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfCode {
    /// The selected code, without blanks at both ends.
    pub code: Code,
    /// The language in the editor's word; may be empty.
    pub language: Option<Word>,
    /// An absolute path, or the name of a buffer without a file; may be empty.
    pub file_path: Option<Path>,
    /// The instructions for `code.refactor`. A blank text counts as none.
    #[serde(default, deserialize_with = "unless_blank")]
    pub instructions: Option<Text>,
    /// The subject of `code.review`; all subjects if missing.
    pub review_type: Option<ReviewType>,
}

impl OfCode {
    /// Returns the language; empty if missing.
    pub fn language(&self) -> &str {
        self.language.as_ref().map_or("", Word::as_str)
    }

    /// Returns the path; empty if missing.
    pub fn file_path(&self) -> &str {
        self.file_path.as_ref().map_or("", Path::as_str)
    }

    /// Returns the user's own words.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_ref().map(Text::as_str)
    }
}

fn unless_blank<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.filter(|text| !text.trim().is_empty());
    text.map(|text| Text::deserialize(text.into_deserializer())).transpose()
}

/// The subject of a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReviewType {
    /// Faults that an attacker could use.
    Security,
    /// Unnecessary slowness.
    Performance,
    /// Code that is hard to read and to change.
    Quality,
    /// All of these subjects.
    #[default]
    All,
}

/// The answer to `code.review`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Review {
    /// The findings; the worst need not come first.
    pub issues: Vec<Issue>,
    /// A summary in a few sentences.
    pub summary: String,
}

/// A finding of a review.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Issue {
    /// `error`, `warning`, `info`.
    pub severity: &'static str,
    /// The finding in a sentence.
    pub message: String,
    /// The line in the sent code, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// A way to fix it, if the agent has named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}
