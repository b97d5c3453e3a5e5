//! The answer of a hook to its host: on standard output for a program, and the body of the response over HTTP.

use std::fmt::Display;

use serde_json::Value;

use crate::cli_error::{DONE, USAGE};
use crate::out;

/// The exit code that hosts take for a refusal with its reason on standard error.
const REFUSED: u8 = USAGE;

/// An answer. Without a line the host goes on as if it had no hook.
#[derive(Default)]
pub(super) struct Said {
    line: Option<Value>,
    /// The reason of a refusal, in case the line cannot be written.
    refusal: Option<String>,
    /// Texts for people, which are no part of the answer.
    notes: Vec<String>,
}

impl Said {
    /// Makes an empty answer.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// Makes an answer of a line in the host's own form.
    pub(super) fn line(line: Value) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    /// Makes a refusal in the host's own form, with its reason.
    pub(super) fn refused(line: Value, reason: String) -> Self {
        Self { line: Some(line), refusal: Some(reason), notes: Vec::new() }
    }

    /// Makes an empty answer with a text for people.
    pub(super) fn note(text: impl Display) -> Self {
        Self::nothing().noting(text)
    }

    /// The same answer, with one more text for people.
    pub(super) fn noting(mut self, text: impl Display) -> Self {
        self.notes.push(text.to_string());
        self
    }

    /// Writes the answer as a program that a host has started; returns the exit code.
    pub(super) fn tell(self) -> u8 {
        self.notes.iter().for_each(out::note);
        let Some(line) = &self.line else { return DONE };
        match (out::json_line(line), self.refusal) {
            (Ok(()), _) | (Err(_), None) => DONE,
            (Err(_), Some(reason)) => {
                out::note(reason);
                REFUSED
            }
        }
    }

    /// Returns the body of a response over HTTP: JSON, or empty for an empty answer.
    pub(super) fn into_body(self) -> String {
        self.line.map(|it| it.to_string()).unwrap_or_default()
    }
}
