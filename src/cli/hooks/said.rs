//! What a hook answers its host: a program says it on its output, and over HTTP it is the body of the answer.

use std::fmt::Display;

use serde_json::Value;

use crate::cli_error::{DONE, USAGE};
use crate::out;

/// What hosts take for a no whose reason is on standard error.
const REFUSED: u8 = USAGE;

/// An answer. Without a line the host goes on as if there were no hook.
#[derive(Default)]
pub(super) struct Said {
    line: Option<Value>,
    /// The reason of a no, for a host that cannot be told the line.
    refusal: Option<String>,
    /// Words for people, which are no part of the answer.
    notes: Vec<String>,
}

impl Said {
    /// Nothing.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// This, in the host's own form.
    pub(super) fn line(line: Value) -> Self {
        Self { line: Some(line), ..Self::default() }
    }

    /// A no in the host's own form, with its reason.
    pub(super) fn refused(line: Value, reason: String) -> Self {
        Self { line: Some(line), refusal: Some(reason), notes: Vec::new() }
    }

    /// Nothing to the host, and this to people.
    pub(super) fn note(text: impl Display) -> Self {
        Self::nothing().noting(text)
    }

    /// The same, with this for people.
    pub(super) fn noting(mut self, text: impl Display) -> Self {
        self.notes.push(text.to_string());
        self
    }

    /// Says it as a program that a host has started; its exit code.
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

    /// The body of an answer over HTTP: JSON, and nothing where nothing is said.
    pub(super) fn into_body(self) -> String {
        self.line.map(|it| it.to_string()).unwrap_or_default()
    }
}
